// SPDX-License-Identifier: MIT OR GPL-2.0
#include <arpa/inet.h>
#include <net/if_arp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <ringgate/rgate_consumer.h>

#include "clean.h"
#include "describe.h"
#include "fmt.h"
#include "json.h"
#include "util.h"

#define ETH_IPV4	0x0800
#define ETH_ARP		0x0806
#define ETH_IPV6	0x86dd

/* What is known of a frame, in words */
struct description {
	char proto[24];
	char src[INET6_ADDRSTRLEN + 2];
	char dst[INET6_ADDRSTRLEN + 2];
	int sport, dport;	/* -1: none */
};

static bool has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP ||
	       proto == IPPROTO_UDPLITE || proto == IPPROTO_SCTP;
}

static void ip_proto_name(char *buf, size_t len, uint8_t proto)
{
	static const struct {
		uint8_t proto;
		const char *name;
	} names[] = {
		{ IPPROTO_ICMP, "ICMP" }, { IPPROTO_TCP, "TCP" },
		{ IPPROTO_UDP, "UDP" }, { IPPROTO_UDPLITE, "UDPLITE" },
		{ IPPROTO_ICMPV6, "ICMP6" }, { IPPROTO_SCTP, "SCTP" },
		{ IPPROTO_IGMP, "IGMP" }, { IPPROTO_GRE, "GRE" },
		{ IPPROTO_ESP, "ESP" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (names[i].proto == proto) {
			snprintf(buf, len, "%s", names[i].name);
			return;
		}
	}
	snprintf(buf, len, "proto-%u", proto);
}

static void ports(struct description *d, const struct rgate_slot *s,
		  const unsigned char *p, uint32_t len)
{
	if (s->l4_off == RGATE_OFF_NONE || s->l4_off + 4U > len ||
	    !has_ports(s->ip_proto))
		return;
	p += s->l4_off;
	d->sport = p[0] << 8 | p[1];
	d->dport = p[2] << 8 | p[3];
}

static void describe_ip(struct description *d, const struct rgate_slot *s,
			const unsigned char *p, uint32_t len)
{
	const unsigned char *ip = p + s->l3_off;
	uint32_t left = len - s->l3_off;
	uint8_t proto;

	if (left >= 20 && ip[0] >> 4 == 4) {
		inet_ntop(AF_INET, ip + 12, d->src, sizeof(d->src));
		inet_ntop(AF_INET, ip + 16, d->dst, sizeof(d->dst));
		proto = ip[9];
		snprintf(d->proto, sizeof(d->proto), "IPv4");
	} else if (left >= 40 && ip[0] >> 4 == 6) {
		inet_ntop(AF_INET6, ip + 8, d->src, sizeof(d->src));
		inet_ntop(AF_INET6, ip + 24, d->dst, sizeof(d->dst));
		proto = s->l4_off == RGATE_OFF_NONE ? ip[6] : s->ip_proto;
		snprintf(d->proto, sizeof(d->proto), "IPv6");
	} else {
		return;
	}
	if (s->l4_off != RGATE_OFF_NONE) {
		ip_proto_name(d->proto, sizeof(d->proto), proto);
		ports(d, s, p, len);
	} else {
		/* a later fragment, or headers that were not understood */
		ip_proto_name(d->proto + 5, sizeof(d->proto) - 5, proto);
		d->proto[4] = '/';
	}
}

static void describe_arp(struct description *d, const unsigned char *p,
			 uint32_t left)
{
	if (left < 28)
		return;
	snprintf(d->proto, sizeof(d->proto), "ARP");
	inet_ntop(AF_INET, p + 14, d->src, sizeof(d->src));
	inet_ntop(AF_INET, p + 24, d->dst, sizeof(d->dst));
}

static void describe_macs(struct description *d, const unsigned char *p,
			  uint32_t len)
{
	if (len < 12)
		return;
	snprintf(d->src, sizeof(d->src), "%02x:%02x:%02x:%02x:%02x:%02x", p[6],
		 p[7], p[8], p[9], p[10], p[11]);
	snprintf(d->dst, sizeof(d->dst), "%02x:%02x:%02x:%02x:%02x:%02x", p[0],
		 p[1], p[2], p[3], p[4], p[5]);
}

/* Ethertype of what stands at layer 3: inner tags are still in the frame. */
static uint16_t l3_proto(const struct rgate_slot *s, const unsigned char *p)
{
	if ((s->protocol == 0x8100 || s->protocol == 0x88a8) && s->l3_off >= 2)
		return p[s->l3_off - 2] << 8 | p[s->l3_off - 1];
	return s->protocol;
}

static void describe(struct description *d, const struct rgate_slot *s,
		     uint32_t room)
{
	const unsigned char *p = rgate_slot_data(s);
	uint32_t len = s->len < room ? s->len : room;
	bool l3 = s->l3_off != RGATE_OFF_NONE && s->l3_off < len;
	uint16_t proto = s->protocol;

	*d = (struct description){ .sport = -1, .dport = -1 };
	if (l3)
		proto = l3_proto(s, p);
	if (l3 && (proto == ETH_IPV4 || proto == ETH_IPV6))
		describe_ip(d, s, p, len);
	else if (l3 && proto == ETH_ARP)
		describe_arp(d, p + s->l3_off, len - s->l3_off);
	if (!*d->proto) {
		snprintf(d->proto, sizeof(d->proto), "0x%04x", proto);
		if (s->dev_type == ARPHRD_ETHER || s->dev_type == ARPHRD_LOOPBACK)
			describe_macs(d, p, len);
	}
}

static void end_text(char *buf, size_t len, const char *addr, int port)
{
	if (port < 0)
		snprintf(buf, len, "%s", addr);
	else
		snprintf(buf, len, strchr(addr, ':') ? "[%s]:%d" : "%s:%d",
			 addr, port);
}

static void print_line(const struct description *d, const struct rgate_slot *s,
		       uint64_t time_ns, uint32_t cap_len, uint32_t orig_len, const char *dev)
{
	time_t sec = (time_t)(time_ns / NSEC);
	char when[16], src[80], dst[80];
	struct tm tm;

	localtime_r(&sec, &tm);
	strftime(when, sizeof(when), "%H:%M:%S", &tm);
	end_text(src, sizeof(src), d->src, d->sport);
	end_text(dst, sizeof(dst), d->dst, d->dport);
	printf("%s.%09u ", when, (unsigned int)(time_ns % NSEC));
	clean_put(stdout, dev);
	printf(" %u/%u ", cap_len, orig_len);
	if (s->flags & RGATE_SLOT_VLAN)
		printf("vlan %u ", s->vlan_tci & 0xfff);
	printf("%s%s%s%s%s", d->proto, *src ? " " : "", src,
	       *src ? " > " : "", dst);
	if (s->gap)
		printf(" (%u lost before)", s->gap);
	putchar('\n');
}

static void print_json(const struct description *d, const struct rgate_slot *s,
		       uint64_t time_ns, uint32_t cap_len, uint32_t orig_len, const char *dev)
{
	struct json j;

	json_init(&j, stdout, false);
	json_object(&j, NULL);
	json_u64(&j, "time_ns", time_ns);
	json_str(&j, "dev", dev);
	json_u64(&j, "len", cap_len);
	json_u64(&j, "wire_len", orig_len);
	if (s->flags & RGATE_SLOT_VLAN)
		json_u64(&j, "vlan", s->vlan_tci & 0xfff);
	json_str(&j, "proto", d->proto);
	if (*d->src) {
		json_str(&j, "src", d->src);
		json_str(&j, "dst", d->dst);
	}
	if (d->sport >= 0) {
		json_u64(&j, "sport", d->sport);
		json_u64(&j, "dport", d->dport);
	}
	json_u64(&j, "lost_before", s->gap);
	json_object_end(&j);
	fputc('\n', stdout);
}

void describe_frame(const struct rgate_slot *s, uint32_t room, uint64_t time_ns,
		    uint32_t cap_len, uint32_t orig_len, const char *dev, bool json)
{
	struct description d;

	describe(&d, s, room);
	if (json)
		print_json(&d, s, time_ns, cap_len, orig_len, dev);
	else
		print_line(&d, s, time_ns, cap_len, orig_len, dev);
}
