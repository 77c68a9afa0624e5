// SPDX-License-Identifier: GPL-2.0-only
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <ringgate/ring.h>
#include "parse.h"

/* The outer tag was taken off already; two more is more than anyone sends. */
#define RGATE_INNER_TAGS 2
/* A hostile chain of extension headers ends here. */
#define RGATE_EXT_HEADERS 8

static void rgate_parse_l4(const u8 *data, u32 len, u32 off, u8 proto,
			   struct rgate_offsets *o)
{
	u32 hdr = sizeof(struct udphdr);

	if (off >= len)
		return;
	o->ip_proto = proto;
	o->l4 = off;
	if (proto == IPPROTO_TCP) {
		if (off + sizeof(struct tcphdr) > len)
			return;
		hdr = (data[off + 12] >> 4) * 4;
		if (hdr < sizeof(struct tcphdr))
			return;
	} else if (proto != IPPROTO_UDP && proto != IPPROTO_UDPLITE &&
		   proto != IPPROTO_ICMP && proto != IPPROTO_ICMPV6) {
		return;
	}
	if (off + hdr <= len)
		o->payload = off + hdr;
}

static void rgate_parse_ipv4(const u8 *data, u32 len, u32 off,
			     struct rgate_offsets *o)
{
	const struct iphdr *ip = (const struct iphdr *)(data + off);

	if (off + sizeof(*ip) > len || ip->version != 4 || ip->ihl < 5)
		return;
	/* Later fragments have no transport header. */
	if (!(ip->frag_off & htons(IP_OFFSET)))
		rgate_parse_l4(data, len, off + ip->ihl * 4, ip->protocol, o);
}

/* Bytes of an extension header, 0 for what is none. */
static u32 rgate_ext_len(u8 proto, const u8 *hdr)
{
	switch (proto) {
	case NEXTHDR_HOP:
	case NEXTHDR_ROUTING:
	case NEXTHDR_DEST:
		return (hdr[1] + 1) * 8;
	case NEXTHDR_AUTH:
		return (hdr[1] + 2) * 4;
	case NEXTHDR_FRAGMENT:
		return sizeof(struct frag_hdr);
	default:
		return 0;
	}
}

static void rgate_parse_ipv6(const u8 *data, u32 len, u32 off,
			     struct rgate_offsets *o)
{
	const struct ipv6hdr *ip = (const struct ipv6hdr *)(data + off);
	u32 ext;
	u8 proto;
	int i;

	if (off + sizeof(*ip) > len || ip->version != 6)
		return;
	proto = ip->nexthdr;
	off += sizeof(*ip);
	for (i = 0; i < RGATE_EXT_HEADERS; i++) {
		if (off + 8 > len)
			return;
		ext = rgate_ext_len(proto, data + off);
		if (!ext) {
			if (proto != NEXTHDR_NONE)
				rgate_parse_l4(data, len, off, proto, o);
			return;
		}
		if (proto == NEXTHDR_FRAGMENT &&
		    (data[off + 2] || data[off + 3] & 0xf8))
			return;
		proto = data[off];
		off += ext;
	}
}

/* Offsets from behind the link-layer header to offsets in the frame. */
static void rgate_parse_rebase(struct rgate_offsets *o, u32 base)
{
	if (o->l3 != RGATE_OFF_NONE)
		o->l3 += base;
	if (o->l4 != RGATE_OFF_NONE)
		o->l4 += base;
	if (o->payload != RGATE_OFF_NONE)
		o->payload += base;
}

/* rgate_parse_any - as rgate_parse(), for everything that is not so plain */
struct rgate_offsets rgate_parse_any(const u8 *data, u32 len, __be16 proto,
				     u32 base)
{
	struct rgate_offsets o = {
		.l3 = RGATE_OFF_NONE,
		.l4 = RGATE_OFF_NONE,
		.payload = RGATE_OFF_NONE,
	};
	u32 off = 0;
	int i;

	len = min(len, RGATE_PARSE_MAX);
	for (i = 0; eth_type_vlan(proto); i++) {
		if (i == RGATE_INNER_TAGS || off + VLAN_HLEN > len)
			return o;
		proto = *(const __be16 *)(data + off + 2);
		off += VLAN_HLEN;
	}
	o.l3 = off;
	if (proto == htons(ETH_P_IP))
		rgate_parse_ipv4(data, len, off, &o);
	else if (proto == htons(ETH_P_IPV6))
		rgate_parse_ipv6(data, len, off, &o);
	rgate_parse_rebase(&o, base);
	return o;
}
