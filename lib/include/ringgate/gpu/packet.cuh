/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A packet in a user's function, and what is often needed of it. Numbers are in host byte
 * order where the name does not say otherwise; what is asked for beyond the frame reads
 * as 0.
 */
#ifndef RINGGATE_GPU_PACKET_CUH
#define RINGGATE_GPU_PACKET_CUH

#include <ringgate/gpu/ring.cuh>

#define RGATE_DETH_IPV4	0x0800U
#define RGATE_DETH_IPV6	0x86ddU
#define RGATE_DETH_8021Q	0x8100U
#define RGATE_DETH_8021AD	0x88a8U
#define RGATE_DPROTO_TCP	6U
#define RGATE_DPROTO_UDP	17U

struct rgate_dpkt {
	const struct rgate_slot *hdr;	/* a copy near at hand */
	const unsigned char *near;	/* the frame's first bytes, near_len of them */
	const unsigned char *data;	/* all of it, in host memory; of a chain: its first slot's */
	const struct rgate_dring *r;
	uint64_t pos;			/* in its ring: the packet's number */
	uint32_t near_len;
	uint32_t len;			/* bytes in the first slot */
	uint32_t ring;
	uint32_t parts;			/* slots */
};

/* What the bytes at hand are: fills in a view of the slot at @pos; one thread */
RGATE_DEV void rgate_dpkt_view(struct rgate_dpkt *p, const struct rgate_dring *r, uint64_t pos,
			       uint32_t parts)
{
	const struct rgate_slot *s = rgate_dring_slot(r, pos);
	/* once: its producer may change it meanwhile */
	const uint32_t room = rgate_dring_room(r), len = *(const volatile uint32_t *)&s->len;

	p->hdr = s;
	p->data = p->near = (const unsigned char *)s + RGATE_SLOT_HDR;
	p->r = r;
	p->pos = pos;
	p->len = p->near_len = len < room ? len : room;
	p->ring = 0;
	p->parts = parts;
}

/* Slot @i of the packet, 0 to parts - 1; in host memory */
RGATE_DEV const struct rgate_slot *rgate_dpkt_part(const struct rgate_dpkt *p, uint32_t i)
{
	return rgate_dring_slot(p->r, p->pos + i);
}

/* Bytes of the whole frame that are there */
RGATE_DEV uint32_t rgate_dpkt_total(const struct rgate_dpkt *p)
{
	uint32_t room = rgate_dring_room(p->r), n = p->len, i;

	for (i = 1; i < p->parts; i++) {
		uint32_t len = *(const volatile uint32_t *)&rgate_dpkt_part(p, i)->len;

		n += len < room ? len : room;
	}
	return n;
}

/* Byte @off of the frame, wherever it lies. All slots of a chain but the last are full. */
RGATE_DEV uint32_t rgate_dpkt_u8(const struct rgate_dpkt *p, uint32_t off)
{
	uint32_t room, i;

	if (off < p->near_len && off < p->len)
		return p->near[off];
	if (off < p->len)
		return p->data[off];
	room = rgate_dring_room(p->r);
	i = off / room;
	if (!i || i >= p->parts || off % room >= rgate_dpkt_part(p, i)->len)
		return 0;
	return ((const unsigned char *)rgate_dpkt_part(p, i))[RGATE_SLOT_HDR + off % room];
}

/* 16 and 32 bits in network byte order at @off */
RGATE_DEV uint32_t rgate_dpkt_be16(const struct rgate_dpkt *p, uint32_t off)
{
	return rgate_dpkt_u8(p, off) << 8 | rgate_dpkt_u8(p, off + 1);
}

RGATE_DEV uint32_t rgate_dpkt_be32(const struct rgate_dpkt *p, uint32_t off)
{
	return rgate_dpkt_be16(p, off) << 16 | rgate_dpkt_be16(p, off + 2);
}

/*
 * Where the layers begin. The producer's offsets are taken where it gave them, else the
 * frame is parsed: Ethernet, up to two VLAN tags, IPv4, IPv6 with the usual extension
 * headers, TCP and UDP.
 */
struct rgate_dlayers {
	uint32_t protocol;	/* ethertype behind tags; 0: unknown */
	uint32_t vlan;		/* tci of the outer tag in the frame or the header; 0: none */
	uint32_t l3;		/* RGATE_OFF_NONE: unknown */
	uint32_t l4;
	uint32_t payload;
	uint32_t ip_proto;	/* 0: unknown */
};

RGATE_DEV void rgate_dlayers_ethernet(const struct rgate_dpkt *p, struct rgate_dlayers *l)
{
	uint32_t off = 14, tags;

	l->protocol = rgate_dpkt_be16(p, 12);
	for (tags = 0; tags < 2; tags++) {
		if (l->protocol != RGATE_DETH_8021Q && l->protocol != RGATE_DETH_8021AD)
			break;
		if (!l->vlan)
			l->vlan = rgate_dpkt_be16(p, off);
		l->protocol = rgate_dpkt_be16(p, off + 2);
		off += 4;
	}
	l->l3 = off;
}

/* Past hop-by-hop options, routing, fragment and destination options */
RGATE_DEV void rgate_dlayers_ipv6(const struct rgate_dpkt *p, struct rgate_dlayers *l)
{
	uint32_t next = rgate_dpkt_u8(p, l->l3 + 6), off = l->l3 + 40, i, len;

	for (i = 0; i < 8 && off < p->len; i++) {
		if (next == 44 && rgate_dpkt_be16(p, off + 2) & 0xfff8)
			return;		/* a later fragment: no header here */
		if (next != 0 && next != 43 && next != 44 && next != 60) {
			l->ip_proto = next;
			l->l4 = off;
			return;
		}
		len = next == 44 ? 8 : (rgate_dpkt_u8(p, off + 1) + 1) * 8;
		next = rgate_dpkt_u8(p, off);
		off += len;
	}
}

RGATE_DEV void rgate_dlayers_ip(const struct rgate_dpkt *p, struct rgate_dlayers *l)
{
	uint32_t version = rgate_dpkt_u8(p, l->l3) >> 4;

	if (l->protocol == RGATE_DETH_IPV4 && version == 4) {
		uint32_t ihl = (rgate_dpkt_u8(p, l->l3) & 15) * 4;

		if (ihl < 20 || rgate_dpkt_be16(p, l->l3 + 6) & 0x1fff)
			return;		/* malformed, or a later fragment */
		l->ip_proto = rgate_dpkt_u8(p, l->l3 + 9);
		l->l4 = l->l3 + ihl;
	} else if (l->protocol == RGATE_DETH_IPV6 && version == 6) {
		rgate_dlayers_ipv6(p, l);
	}
}

RGATE_DEV void rgate_dpkt_layers(const struct rgate_dpkt *p, struct rgate_dlayers *l)
{
	const struct rgate_slot *h = p->hdr;

	l->protocol = h->protocol;
	l->vlan = h->flags & RGATE_SLOT_VLAN ? h->vlan_tci : 0;
	l->l3 = h->l3_off;
	l->l4 = h->l4_off;
	l->payload = h->payload_off;
	l->ip_proto = h->ip_proto;
	if (l->l3 == RGATE_OFF_NONE && h->dev_type == 1)	/* ARPHRD_ETHER */
		rgate_dlayers_ethernet(p, l);
	if (l->l3 != RGATE_OFF_NONE && l->l4 == RGATE_OFF_NONE)
		rgate_dlayers_ip(p, l);
	if (l->l4 == RGATE_OFF_NONE || l->payload != RGATE_OFF_NONE)
		return;
	if (l->ip_proto == RGATE_DPROTO_UDP)
		l->payload = l->l4 + 8;
	else if (l->ip_proto == RGATE_DPROTO_TCP)
		l->payload = l->l4 + (rgate_dpkt_u8(p, l->l4 + 12) >> 4) * 4;
}

/* Source and destination port of TCP, UDP and what has them in the same place */
RGATE_DEV uint32_t rgate_dpkt_sport(const struct rgate_dpkt *p, const struct rgate_dlayers *l)
{
	return l->l4 == RGATE_OFF_NONE ? 0 : rgate_dpkt_be16(p, l->l4);
}

RGATE_DEV uint32_t rgate_dpkt_dport(const struct rgate_dpkt *p, const struct rgate_dlayers *l)
{
	return l->l4 == RGATE_OFF_NONE ? 0 : rgate_dpkt_be16(p, l->l4 + 2);
}

RGATE_DEV uint32_t rgate_dmix(uint32_t h, uint32_t v)
{
	h = (h ^ v) * 0x9e3779b1U;
	return h ^ h >> 15;
}

/*
 * rgate_dpkt_flow - the same number for packets of the same flow, from addresses,
 * protocol and ports (the producer's hash where it gives one). Fragments have no ports;
 * 0: no IP.
 */
RGATE_DEV uint32_t rgate_dpkt_flow(const struct rgate_dpkt *p)
{
	uint32_t h, i, words;
	struct rgate_dlayers l;

	if (p->hdr->flags & RGATE_SLOT_HASH)
		return p->hdr->hash;
	rgate_dpkt_layers(p, &l);
	if (l.l3 == RGATE_OFF_NONE)
		return 0;
	h = 0x2545f491U ^ l.ip_proto;
	words = l.protocol == RGATE_DETH_IPV6 ? 8 : 2;
	for (i = 0; i < words; i++)
		h = rgate_dmix(h, rgate_dpkt_be32(p, l.l3 + (words == 8 ? 8 : 12) + i * 4));
	if (l.ip_proto == RGATE_DPROTO_TCP || l.ip_proto == RGATE_DPROTO_UDP)
		h = rgate_dmix(h, rgate_dpkt_be32(p, l.l4));
	return h ? h : 1;
}

/*
 * The internet checksum: sums of 16-bit words in network byte order
 */

RGATE_DEV uint32_t rgate_dcsum_add(uint32_t sum, const unsigned char *p, uint32_t len)
{
	uint32_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	if (len & 1)
		sum += (uint32_t)p[len - 1] << 8;
	return sum;
}

/* What goes into the header, or 0 over a block that has its checksum in it */
RGATE_DEV uint32_t rgate_dcsum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

RGATE_DEV uint32_t rgate_dpkt_csum_add(const struct rgate_dpkt *p, uint32_t sum, uint32_t off,
				       uint32_t len)
{
	uint32_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += rgate_dpkt_be16(p, off + i);
	if (len & 1)
		sum += rgate_dpkt_u8(p, off + len - 1) << 8;
	return sum;
}

/* Is the IPv4 header's checksum right? */
RGATE_DEV int rgate_dpkt_ipv4_ok(const struct rgate_dpkt *p, const struct rgate_dlayers *l)
{
	uint32_t ihl = (rgate_dpkt_u8(p, l->l3) & 15) * 4;

	return !rgate_dcsum_fold(rgate_dpkt_csum_add(p, 0, l->l3, ihl));
}

/*
 * rgate_dpkt_l4_ok - is the checksum of TCP or UDP right? Also if there is none (UDP over
 * IPv4), or if the frame is cut, as nobody can tell then.
 */
RGATE_DEV int rgate_dpkt_l4_ok(const struct rgate_dpkt *p, const struct rgate_dlayers *l)
{
	uint32_t v6 = l->protocol == RGATE_DETH_IPV6, end, len, sum;

	if (l->l4 == RGATE_OFF_NONE || p->hdr->flags & RGATE_SLOT_TRUNC)
		return 1;
	end = v6 ? l->l3 + 40 + rgate_dpkt_be16(p, l->l3 + 4) :
		   l->l3 + rgate_dpkt_be16(p, l->l3 + 2);
	if (end < l->l4 || end > rgate_dpkt_total(p))
		return 0;
	len = end - l->l4;
	if (l->ip_proto == RGATE_DPROTO_UDP && !v6 && !rgate_dpkt_be16(p, l->l4 + 6))
		return 1;
	if (l->ip_proto != RGATE_DPROTO_UDP && l->ip_proto != RGATE_DPROTO_TCP)
		return 1;
	sum = l->ip_proto + len;
	sum = rgate_dpkt_csum_add(p, sum, l->l3 + (v6 ? 8 : 12), v6 ? 32 : 8);
	return !rgate_dcsum_fold(rgate_dpkt_csum_add(p, sum, l->l4, len));
}

#endif
