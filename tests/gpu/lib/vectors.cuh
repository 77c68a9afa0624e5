/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Frames, and what is to be found in them: for the device code on a GPU (t_own) and on a
 * CPU (tests/unit/test_gpu_packet).
 */
#ifndef GPU_VECTORS_CUH
#define GPU_VECTORS_CUH

#include <ringgate/ring.h>
#include <ringgate/gpu/packet.cuh>

#define VECTOR_FRAME	160

struct vector {
	const char *name;
	uint32_t dev_type;		/* ARPHRD_* */
	uint32_t protocol;		/* in the slot's header; 0: to be found */
	uint32_t slot_l3;		/* in the slot's header, or RGATE_OFF_NONE */
	uint32_t len;
	unsigned char frame[VECTOR_FRAME];
	/* expected */
	uint32_t want_protocol, vlan, l3, l4, payload, ip_proto, sport, dport;
	uint32_t ipv4_ok, l4_ok;
};

#define V_NONE	RGATE_OFF_NONE
#define V_MACS	2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2
/* 10.1.2.3:4660 -> 10.4.5.6:53, "abcde"; both checksums are right */
#define V_IP4(proto, len, check_hi, check_lo) \
	0x45, 0, 0, len, 0x12, 0x34, 0, 0, 64, proto, check_hi, check_lo, \
	10, 1, 2, 3, 10, 4, 5, 6
#define V_UDP	0x12, 0x34, 0, 53, 0, 13, 0xa8, 0x96, 'a', 'b', 'c', 'd', 'e'
#define V_IP6(next, len) \
	0x60, 0, 0, 0, 0, len, next, 64, \
	0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, \
	0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2

#define V_COUNT	12

#define V_ALL { \
	{ "udp over ipv4", 1, 0, V_NONE, 47, \
	  { V_MACS, 8, 0, V_IP4(17, 33, 0x4d, 0x8b), V_UDP }, \
	  0x800, 0, 14, 34, 42, 17, 4660, 53, 1, 1 }, \
	{ "a bit is wrong in the payload", 1, 0, V_NONE, 47, \
	  { V_MACS, 8, 0, V_IP4(17, 33, 0x4d, 0x8b), 0x12, 0x34, 0, 53, 0, 13, 0xa8, 0x96, \
	    'a', 'b', 'c', 'd', 'd' }, \
	  0x800, 0, 14, 34, 42, 17, 4660, 53, 1, 0 }, \
	{ "a bit is wrong in the header", 1, 0, V_NONE, 47, \
	  { V_MACS, 8, 0, V_IP4(17, 33, 0x4d, 0x8a), V_UDP }, \
	  0x800, 0, 14, 34, 42, 17, 4660, 53, 0, 1 }, \
	{ "udp without a checksum", 1, 0, V_NONE, 47, \
	  { V_MACS, 8, 0, V_IP4(17, 33, 0x4d, 0x8b), 0x12, 0x34, 0, 53, 0, 13, 0, 0, \
	    'x', 'b', 'c', 'd', 'e' }, \
	  0x800, 0, 14, 34, 42, 17, 4660, 53, 1, 1 }, \
	{ "no link layer, offsets given", 0xfffe, 0x800, 0, 33, \
	  { V_IP4(17, 33, 0x4d, 0x8b), V_UDP }, \
	  0x800, 0, 0, 20, 28, 17, 4660, 53, 1, 1 }, \
	{ "vlan", 1, 0, V_NONE, 51, \
	  { V_MACS, 0x81, 0, 0x60, 7, 8, 0, V_IP4(17, 33, 0x4d, 0x8b), V_UDP }, \
	  0x800, 0x6007, 18, 38, 46, 17, 4660, 53, 1, 1 }, \
	{ "two tags", 1, 0, V_NONE, 55, \
	  { V_MACS, 0x88, 0xa8, 0, 9, 0x81, 0, 0x60, 7, 8, 0, \
	    V_IP4(17, 33, 0x4d, 0x8b), V_UDP }, \
	  0x800, 9, 22, 42, 50, 17, 4660, 53, 1, 1 }, \
	{ "a later fragment", 1, 0, V_NONE, 54, \
	  { V_MACS, 8, 0, 0x45, 0, 0, 40, 0x12, 0x34, 0, 5, 64, 17, 0x4d, 0x7f, \
	    10, 1, 2, 3, 10, 4, 5, 6, V_UDP }, \
	  0x800, 0, 14, V_NONE, V_NONE, 0, 0, 0, 1, 1 }, \
	{ "tcp with options, ipv4 with options", 1, 0, V_NONE, 66, \
	  { V_MACS, 8, 0, 0x46, 0, 0, 52, 0x12, 0x34, 0, 0, 64, 6, 0x4a, 0x82, \
	    10, 1, 2, 3, 10, 4, 5, 6, 1, 1, 1, 0, \
	    0x12, 0x34, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x70, 0x18, 1, 0, 0x57, 0x77, 0, 0, \
	    2, 4, 5, 0xb4, 1, 1, 1, 0 }, \
	  0x800, 0, 14, 38, 66, 6, 4660, 80, 1, 1 }, \
	{ "udp over ipv6", 1, 0, V_NONE, 67, \
	  { V_MACS, 0x86, 0xdd, V_IP6(17, 13), 0x12, 0x34, 0, 53, 0, 13, 0x68, 0x2f, \
	    'a', 'b', 'c', 'd', 'e' }, \
	  0x86dd, 0, 14, 54, 62, 17, 4660, 53, 0, 1 }, \
	{ "udp over ipv6 behind two extension headers", 1, 0, V_NONE, 83, \
	  { V_MACS, 0x86, 0xdd, V_IP6(0, 29), 60, 0, 1, 4, 0, 0, 0, 0, \
	    17, 0, 1, 4, 0, 0, 0, 0, 0x12, 0x34, 0, 53, 0, 13, 0x68, 0x2f, \
	    'a', 'b', 'c', 'd', 'e' }, \
	  0x86dd, 0, 14, 70, 78, 17, 4660, 53, 0, 1 }, \
	{ "arp", 1, 0, V_NONE, 42, \
	  { V_MACS, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1 }, \
	  0x806, 0, 14, V_NONE, V_NONE, 0, 0, 0, 0, 1 }, \
}

/* The slot header of a vector, as a producer writes it */
static inline void vector_header(const struct vector *v, struct rgate_slot *h)
{
	h->protocol = (uint16_t)v->protocol;
	h->dev_type = (uint16_t)v->dev_type;
	h->l3_off = (uint16_t)v->slot_l3;
	h->l4_off = RGATE_OFF_NONE;
	h->payload_off = RGATE_OFF_NONE;
}

/* What is wrong, as a number; 0: nothing */
RGATE_DEV uint32_t vector_check(const struct vector *v, const struct rgate_dpkt *pkt)
{
	struct rgate_dlayers l;

	rgate_dpkt_layers(pkt, &l);
	if (l.protocol != v->want_protocol)
		return 1;
	if (l.vlan != v->vlan)
		return 2;
	if (l.l3 != v->l3)
		return 3;
	if (l.l4 != v->l4)
		return 4;
	if (l.payload != v->payload)
		return 5;
	if (l.ip_proto != v->ip_proto)
		return 6;
	if (rgate_dpkt_sport(pkt, &l) != v->sport)
		return 7;
	if (rgate_dpkt_dport(pkt, &l) != v->dport)
		return 8;
	if (l.protocol == RGATE_DETH_IPV4 && rgate_dpkt_ipv4_ok(pkt, &l) != (int)v->ipv4_ok)
		return 9;
	if (rgate_dpkt_l4_ok(pkt, &l) != (int)v->l4_ok)
		return 10;
	return 0;
}

#endif
