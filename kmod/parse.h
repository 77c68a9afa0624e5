/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a packet's headers stand; works on bytes, knows nothing of skbs. */
#ifndef RGATE_PARSE_H
#define RGATE_PARSE_H

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/types.h>
#include <linux/udp.h>
#include <net/ip.h>

/**
 * struct rgate_offsets - from the frame's first byte; RGATE_OFF_NONE: unknown
 * @l3: network header
 * @l4: transport header
 * @payload: behind the transport header
 * @ip_proto: of the transport header, 0 if that is unknown
 */
struct rgate_offsets {
	u16 l3;
	u16 l4;
	u16 payload;
	u8 ip_proto;
} __aligned(8);

/* No header is looked for further in. */
#define RGATE_PARSE_MAX 1024U

struct rgate_offsets rgate_parse_any(const u8 *data, u32 len, __be16 proto,
				     u32 base);

/**
 * rgate_parse - find the headers of a packet
 * @data: from behind the link-layer header
 * @len: bytes there; headers beyond are unknown
 * @proto: ethertype of what @data begins with
 * @base: bytes of link-layer header before @data
 *
 * UDP in IPv4 without options or fragments, which most packets are, at once.
 */
static inline struct rgate_offsets
rgate_parse(const u8 *data, u32 len, __be16 proto, u32 base)
{
	const struct iphdr *ip = (const struct iphdr *)data;
	const u32 plain = sizeof(*ip) + sizeof(struct udphdr);

	if (proto == htons(ETH_P_IP) && len >= plain && data[0] == 0x45 &&
	    ip->protocol == IPPROTO_UDP &&
	    !(ip->frag_off & htons(IP_OFFSET)))
		return (struct rgate_offsets){
			.l3 = base,
			.l4 = base + sizeof(*ip),
			.payload = base + plain,
			.ip_proto = IPPROTO_UDP,
		};
	return rgate_parse_any(data, len, proto, base);
}

#endif
