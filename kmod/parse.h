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
 * @all: of it in one word, for who keeps it in a register: the first three are
 *	stored together then, as a slot has them one behind the other, too
 */
struct rgate_offsets {
	union {
		struct {
			u16 l3;
			u16 l4;
			u16 payload;
			u8 ip_proto;
			u8 unused;
		};
		u64 all;
	};
};

/* @all, of its parts */
static __always_inline u64 rgate_offsets_all(u16 l3, u16 l4, u16 payload, u8 ip_proto)
{
#ifdef __LITTLE_ENDIAN
	return l3 | (u64)l4 << 16 | (u64)payload << 32 | (u64)ip_proto << 48;
#else
	return (u64)l3 << 48 | (u64)l4 << 32 | (u64)payload << 16 | (u64)ip_proto << 8;
#endif
}

static __always_inline u8 rgate_offsets_ip_proto(u64 all)
{
#ifdef __LITTLE_ENDIAN
	return all >> 48;
#else
	return all >> 8;
#endif
}

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
			/* No carry: link-layer headers are far from 64 KiB. */
			.all = rgate_offsets_all(0, sizeof(*ip), plain, IPPROTO_UDP) +
			       base * rgate_offsets_all(1, 1, 1, 0),
		};
	return rgate_parse_any(data, len, proto, base);
}

#endif
