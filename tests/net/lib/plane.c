// SPDX-License-Identifier: MIT OR GPL-2.0
#include "ended.h"
#include "plane.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>

#define HEADERS		42U	/* Ethernet, IPv4, UDP */
#define FRAME_MAX	9000U
#define DEPTH		1024

void compute_up(struct plane *p, unsigned int id)
{
	struct compute *at = &p->at[id];

	at->node = cluster_node(&p->c, id);
	unit_require(!rgate_hub_create(&at->hub, at->node, NULL));
	unit_require(!rgate_inlet_create(&at->inlet, at->hub));
}

void compute_ring(struct plane *p, unsigned int id, uint32_t slots, uint32_t slot_size)
{
	struct compute *at = &p->at[id];
	const struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = slots,
						    .slot_size = slot_size, .name = "r");

	unit_require(!rgate_inlet_add(at->inlet, &at->ring, &o, &at->number));
	unit_require(!rgate_consumer_init(&at->c, at->ring, NULL));
}

void compute_close_ring(struct plane *p, unsigned int id)
{
	struct compute *at = &p->at[id];

	if (!at->ring)
		return;
	unit_require(!rgate_inlet_remove(at->inlet, at->number));
	rgate_ring_close(at->ring);
	at->ring = NULL;
}

void compute_down(struct plane *p, unsigned int id)
{
	struct compute *at = &p->at[id];

	compute_close_ring(p, id);
	rgate_inlet_destroy(at->inlet);
	rgate_hub_destroy(at->hub);
	unit_require(!node_ended(at->node));
	memset(at, 0, sizeof(*at));
}

bool plane_packed(void)
{
	return getenv("RGATE_PLANE_PACKED");
}

void gateway_up(struct plane *p, const struct rgate_gateway_opts *opts)
{
	struct rgate_gateway_opts o = opts ? *opts : (struct rgate_gateway_opts){ .sz = sizeof(o) };

	/* Not by what an operation costs here: some tests look at what is written. */
	o.pack = plane_packed() ? RGATE_PACK_ALWAYS : RGATE_PACK_NEVER;
	p->node = cluster_node(&p->c, 0);
	unit_require(!rgate_hub_create(&p->hub, p->node, NULL));
	unit_require(!rgate_gateway_create(&p->gw, p->hub, &o));
}

void gateway_down(struct plane *p)
{
	rgate_gateway_destroy(p->gw);
	rgate_hub_destroy(p->hub);
	unit_require(!node_ended(p->node));
}

unsigned int plane_rings(struct plane *p)
{
	struct rgate_gateway_ring info = { .sz = sizeof(info) };
	unsigned int n = 0;

	while (!rgate_gateway_ring(p->gw, n, &info))
		n++;
	return n;
}

void plane_up(struct plane *p, const struct plane_opts *o)
{
	const uint32_t slots = o->slots ? o->slots : 1024;
	const uint32_t size = o->slot_size ? o->slot_size : 2048;
	unsigned int i;

	memset(p, 0, sizeof(*p));
	cluster_make(&p->c, o->computes + 1, o->timeout_ms);
	p->c.opts.send_depth = DEPTH;
	p->n = o->computes;
	p->source = unit_ring(slots, size, RGATE_RING_CHAIN, RGATE_POLICY_DROP);
	unit_require(!rgate_producer_init(&p->p, p->source));
	gateway_up(p, o->gw.sz ? &o->gw : NULL);
	unit_require(!rgate_gateway_add(p->gw, p->source));
	for (i = 1; i <= p->n; i++) {
		compute_up(p, i);
		compute_ring(p, i, o->far_slots ? o->far_slots : slots,
			     o->far_size ? o->far_size : size);
	}
	wait_for(plane_rings(p) == p->n);
}

void plane_down(struct plane *p)
{
	unsigned int i;

	for (i = 1; i <= p->n; i++)
		if (p->at[i].node)
			compute_down(p, i);
	gateway_down(p);
	rgate_producer_fini(&p->p);
	rgate_ring_close(p->source);
	cluster_free(&p->c);
}

void plane_rules(struct plane *p, const char *text)
{
	struct rgate_steer *steer;

	unit_require(!rgate_steer_create(&steer, p->c.conf));
	unit_require(!rgate_steer_parse(steer, "test", text, strlen(text)));
	unit_require(!rgate_gateway_steer(p->gw, steer));
	nodes_nap();
}

static void put16(unsigned char *at, unsigned int v)
{
	at[0] = (unsigned char)(v >> 8);
	at[1] = (unsigned char)v;
}

size_t plane_frame(unsigned char *buf, unsigned int flow, uint64_t i, size_t len, bool back)
{
	const unsigned char one[4] = { 192, 0, 2, 1 }, other[4] = { 198, 51, 100, 9 };

	if (len < 70)
		len = 70;
	memset(buf, 0, HEADERS);
	memset(buf, 2, 12);
	put16(buf + 12, 0x0800);
	buf[14] = 0x45;
	put16(buf + 16, (unsigned int)len - 14);
	buf[22] = 64;
	buf[23] = IPPROTO_UDP;
	memcpy(buf + 26, back ? other : one, 4);
	memcpy(buf + 30, back ? one : other, 4);
	put16(buf + 34, back ? 53 : 1000 + flow);
	put16(buf + 36, back ? 1000 + flow : 53);
	put16(buf + 38, (unsigned int)len - 34);
	memcpy(buf + 42, &i, 8);
	memcpy(buf + 50, &flow, 4);
	unit_pattern(buf + 54, i * 7 + flow, len - 54);
	return len;
}

bool plane_send(struct plane *p, unsigned int flow, uint64_t i, size_t len, bool patient)
{
	const struct rgate_slot hdr = {
		.protocol = 0x0800, .dev_type = ARPHRD_ETHER, .l3_off = 14, .l4_off = 34,
		.payload_off = 42, .ip_proto = IPPROTO_UDP,
	};
	const uint64_t end = unit_now_ns() + MS * 1000000ULL;
	unsigned char buf[FRAME_MAX];

	len = plane_frame(buf, flow, i, len, false);
	rgate_producer_stamp(&p->p);
	while (rgate_producer_write(&p->p, &hdr, buf, len, len)) {
		if (!patient)
			return false;
		unit_require(unit_now_ns() < end);
		nodes_nap();
	}
	rgate_producer_flush(&p->p);
	return true;
}

bool plane_take(struct compute *at, unsigned int *flow, uint64_t *i, struct rgate_slot *hdr,
		int ms)
{
	const uint64_t end = unit_now_ns() + (uint64_t)ms * 1000000;
	unsigned char buf[FRAME_MAX];
	unsigned int f;
	uint64_t n;
	long len;

	/* what wakes may be filler */
	for (;;) {
		len = rgate_consumer_copy(&at->c, hdr, buf, sizeof(buf));
		if (len != -EAGAIN)
			break;
		if (!ms || unit_now_ns() > end || rgate_consumer_wait(&at->c, ms) != 1)
			return false;
	}
	unit_require(len >= 70);
	memcpy(&n, buf + 42, 8);
	memcpy(&f, buf + 50, 4);
	unit_require(!unit_pattern_check(buf + 54, n * 7 + f, (size_t)len - 54));
	if (i)
		*i = n;
	if (flow)
		*flow = f;
	return true;
}

uint64_t plane_drain(struct compute *at, int ms)
{
	uint64_t n = 0;

	/* The first one comes when the machine gets to it; the others are behind it. */
	while (plane_take(at, NULL, NULL, NULL, n ? ms : ms * (int)unit_patience()))
		n++;
	return n;
}

struct rgate_gateway_stats plane_stats(struct plane *p)
{
	struct rgate_gateway_stats s = { .sz = sizeof(s) };

	unit_require(!rgate_gateway_stats(p->gw, &s));
	return s;
}

struct rgate_gateway_node plane_node(struct plane *p, unsigned int id)
{
	struct rgate_gateway_node s = { .sz = sizeof(s) };

	unit_require(!rgate_gateway_node(p->gw, id, &s));
	return s;
}

struct rgate_inlet_ring plane_inlet(struct compute *at)
{
	struct rgate_inlet_ring r = { .sz = sizeof(r) };

	unit_require(!rgate_inlet_info(at->inlet, 0, &r));
	return r;
}
