// SPDX-License-Identifier: MIT OR GPL-2.0
#include "vt.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>

#define MAGIC	0x72676174650a0d00ULL
#define HDRS	(ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr))

uint64_t vt_pkt_seed;

static const uint8_t src_mac[6] = { 0x02, 0, 0, 0, 0, 0x01 };
static const uint8_t dst_mac[6] = { 0x02, 0, 0, 0, 0, 0x02 };

uint16_t vt_csum(const void *data, size_t len, uint32_t sum)
{
	const uint8_t *p = data;
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	if (len & 1)
		sum += (uint32_t)p[len - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

void vt_pkt_fill(uint8_t *buf, size_t len, uint64_t seq)
{
	uint64_t x = (vt_pkt_seed ^ seq * 0x9e3779b97f4a7c15) | 1;
	size_t i;

	for (i = 0; i < len; i += 8) {
		size_t n = len - i < 8 ? len - i : 8;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(buf + i, &x, n);
	}
}

void vt_pkt_udp(uint8_t *buf, size_t len, uint64_t seq, uint16_t flow)
{
	struct iphdr ip = {
		.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
		.tot_len = htons((uint16_t)(len - ETH_HLEN)),
		.saddr = htonl(0x0a090001), .daddr = htonl(0x0a090002),
	};
	struct udphdr udp = {
		.source = htons((uint16_t)(VT_PKT_SPORT + flow)),
		.dest = htons(VT_PKT_DPORT),
		.len = htons((uint16_t)(len - ETH_HLEN - sizeof(ip))),
	};
	uint64_t head[2] = { MAGIC, seq };
	uint16_t be, c;

	if (len < VT_PKT_MIN || len > 65535 + ETH_HLEN)
		DIE("no such frame: %zu bytes", len);
	memcpy(buf, dst_mac, 6);
	memcpy(buf + 6, src_mac, 6);
	be = htons(ETH_P_IP);
	memcpy(buf + 12, &be, 2);
	ip.check = htons(vt_csum(&ip, sizeof(ip), 0));
	memcpy(buf + ETH_HLEN, &ip, sizeof(ip));
	memcpy(buf + HDRS, head, 16);
	vt_pkt_fill(buf + HDRS + 16, len - HDRS - 16, seq);
	memcpy(buf + ETH_HLEN + sizeof(ip), &udp, sizeof(udp));
	/* pseudo header: both addresses, protocol, length */
	c = vt_csum(buf + ETH_HLEN + sizeof(ip), len - ETH_HLEN - sizeof(ip),
		    0x0a09 + 1 + 0x0a09 + 2 + IPPROTO_UDP + ntohs(udp.len));
	udp.check = htons(c ? c : 0xffff);
	memcpy(buf + ETH_HLEN + sizeof(ip), &udp, sizeof(udp));
}

bool vt_pkt_check_cut(const uint8_t *buf, size_t have, size_t len, uint64_t *seq)
{
	static __thread uint8_t want[65536];
	uint64_t head[2];
	uint16_t sport;

	if (have < VT_PKT_MIN || len < have || len > sizeof(want))
		return false;
	memcpy(head, buf + HDRS, 16);
	if (head[0] != MAGIC)
		return false;
	memcpy(&sport, buf + ETH_HLEN + sizeof(struct iphdr), 2);
	vt_pkt_udp(want, len, head[1], (uint16_t)(ntohs(sport) - VT_PKT_SPORT));
	if (seq)
		*seq = head[1];
	return !memcmp(want, buf, have);
}

bool vt_pkt_check(const uint8_t *buf, size_t len, uint64_t *seq)
{
	return vt_pkt_check_cut(buf, len, len, seq);
}

void vt_seen_init(struct vt_seen *s, uint64_t n)
{
	memset(s, 0, sizeof(*s));
	s->map = calloc(n, 1);
	REQUIRE(s->map);
	s->n = n;
}

void vt_seen_add(struct vt_seen *s, uint64_t seq)
{
	if (seq >= s->n)
		s->alien++;
	else if (s->map[seq])
		s->dup++;
	else
		s->got += s->map[seq] = 1;
}
