// SPDX-License-Identifier: MIT OR GPL-2.0
/* Frames from a ring at the gateway to rings at compute nodes. */
#include "ended.h"
#include "plane.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FLOWS	16U

struct sender {
	struct plane *p;
	uint64_t n;
	size_t most;
	pthread_t thread;
};

static void *send_all(void *arg)
{
	struct sender *s = arg;
	uint64_t next[FLOWS] = { 0 }, i, seed = 5;

	for (i = 0; i < s->n; i++) {
		const unsigned int flow = (unsigned int)(unit_random(&seed) % FLOWS);

		unit_require(plane_send(s->p, flow, next[flow]++,
					70 + unit_random(&seed) % (s->most - 70), true));
	}
	return NULL;
}

static void start(struct sender *s, struct plane *p, uint64_t n, size_t most)
{
	*s = (struct sender){ .p = p, .n = n, .most = most };
	unit_require(!pthread_create(&s->thread, NULL, send_all, s));
}

/* Every frame once, in its flow's order, whole */
static void straight(const struct plane_opts *o, uint64_t n, size_t most)
{
	uint64_t next[FLOWS] = { 0 }, i, got = 0;
	struct rgate_inlet_ring r;
	struct rgate_slot hdr;
	struct sender s;
	struct plane p;
	unsigned int flow;

	plane_up(&p, o);
	start(&s, &p, n, most);
	while (got < n) {
		assert_true(plane_take(&p.at[1], &flow, &i, &hdr, MS));
		assert_true(flow < FLOWS);
		assert_int_equal(i, next[flow]);
		next[flow]++;
		assert_int_equal(hdr.l4_off, 34);
		assert_int_equal(hdr.gap, 0);
		got++;
	}
	pthread_join(s.thread, NULL);
	assert_false(plane_take(&p.at[1], NULL, NULL, NULL, 20));
	wait_for(plane_node(&p, 1).frames == n);
	assert_int_equal(plane_stats(&p).frames, n);
	wait_for(plane_inlet(&p.at[1]).stats.delivered == n);
	r = plane_inlet(&p.at[1]);
	assert_int_equal(r.errors, 0);
	assert_int_equal(r.sessions, 1);
	assert_int_equal(r.stats.dropped_full, 0);
	plane_down(&p);
}

static void every_frame(void **state)
{
	(void)state;
	straight(&(struct plane_opts){ .computes = 1 }, unit_rounds(20000), 1500);
}

/* Wraps and full rings on both sides all the time */
static void small_rings(void **state)
{
	(void)state;
	straight(&(struct plane_opts){ .computes = 1, .slots = 128, .far_slots = 64 },
		 unit_rounds(20000), 1900);
}

static void chains(void **state)
{
	const struct plane_opts o = {
		.computes = 1, .slots = 256, .slot_size = 256, .far_slots = 128, .far_size = 256,
	};

	(void)state;
	straight(&o, unit_rounds(8000), 5800);
}

#define POSTED	256

/* Writes of a word each, in their order: the linker sends the gateway's here (--wrap) */
static struct {
	bool on;
	unsigned int n;
	uint64_t at[POSTED];
	unsigned int refused;	/* atomic: so many of the inlets' words are not taken yet */
} posted;

int __real_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket);
int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket);
int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket)
{
	unsigned int i;

	if (n == 1 && ops->nsge == 1 && ops->sge->length == (plane_packed() ? 16 : 8) &&
	    __atomic_load_n(&posted.refused, __ATOMIC_ACQUIRE)) {
		__atomic_sub_fetch(&posted.refused, 1, __ATOMIC_RELEASE);
		return -EAGAIN;
	}
	for (i = 0; i < n && __atomic_load_n(&posted.on, __ATOMIC_ACQUIRE); i++)
		if (ops[i].kind == RGATE_OP_WRITE && ops[i].nsge == 1 &&
		    ops[i].sge->length == 8 && posted.n < POSTED)
			posted.at[posted.n++] = ops[i].remote;
	return __real_rgate_peer_post(peer, ops, n, ticket);
}

/* The first slot of a chain is published last: who sees it sees them all. */
static void chain_order(void **state)
{
	const struct plane_opts o = {
		.computes = 1, .slots = 256, .slot_size = 256, .far_slots = 128, .far_size = 256,
	};
	unsigned int i, down = 0;
	struct rgate_slot hdr;
	struct plane p;

	(void)state;
	if (plane_packed())
		unit_skip("what is packed is one write: test_inbox has its order");
	plane_up(&p, &o);
	__atomic_store_n(&posted.on, true, __ATOMIC_RELEASE);
	assert_true(plane_send(&p, 0, 0, 5800, true));
	assert_true(plane_take(&p.at[1], NULL, NULL, &hdr, MS));
	__atomic_store_n(&posted.on, false, __ATOMIC_RELEASE);
	plane_down(&p);
	assert_in_range(hdr.chain_cnt, 25, 32);
	/* from slot to slot: back only */
	for (i = 1; i < posted.n; i++) {
		assert_true(posted.at[i] != posted.at[i - 1] + 256);
		down += posted.at[i] == posted.at[i - 1] - 256;
	}
	assert_int_equal(down, hdr.chain_cnt - 1);
}

/* A word about free slots that could not go out is said again: the gateway waits for it. */
static void told_again(void **state)
{
	const struct plane_opts o = { .computes = 1, .far_slots = 64, .far_size = 2048 };
	struct plane p;
	uint64_t i, n;

	(void)state;
	plane_up(&p, &o);
	/* all of the node's ring, and what the gateway has to ask for */
	for (i = 0; i < 80; i++)
		assert_true(plane_send(&p, 0, i, 100, true));
	wait_for(plane_node(&p, 1).frames >= 64);
	__atomic_store_n(&posted.refused, 3, __ATOMIC_RELEASE);
	for (i = 0; i < 80; i++) {
		assert_true(plane_take(&p.at[1], NULL, &n, NULL, MS));
		assert_int_equal(n, i);
	}
	wait_for(!__atomic_load_n(&posted.refused, __ATOMIC_ACQUIRE));
	plane_down(&p);
}

static void larger_slots(void **state)
{
	const struct plane_opts o = {
		.computes = 1, .slots = 256, .slot_size = 512, .far_slots = 64, .far_size = 4096,
	};

	(void)state;
	straight(&o, unit_rounds(5000), 3000);
}

static void one_by_one(void **state)
{
	const struct plane_opts o = {
		.computes = 1, .gw = RGATE_OPTS(rgate_gateway_opts, .burst = 1),
	};

	(void)state;
	straight(&o, unit_rounds(3000), 1500);
}

static void too_small(void **state)
{
	struct plane p;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	compute_close_ring(&p, 1);
	compute_ring(&p, 1, 64, 1024);
	wait_for(plane_inlet(&p.at[1]).error == -EMSGSIZE);
	assert_int_equal(plane_rings(&p), 0);
	assert_int_equal(plane_stats(&p).refused, 1);
	/* and the right one works */
	compute_close_ring(&p, 1);
	compute_ring(&p, 1, 64, 2048);
	wait_for(plane_rings(&p) == 1);
	plane_send(&p, 1, 1, 100, true);
	assert_true(plane_take(&p.at[1], NULL, NULL, NULL, MS));
	plane_down(&p);
}

/* Each flow at one node, and some at each */
static void hashed(void **state)
{
	uint64_t seen[FLOWS * 4] = { 0 }, i, got = 0;
	unsigned int id, k, flow, nodes = 0;
	struct plane p;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 3 });
	for (i = 0; i < 10; i++)
		for (k = 0; k < ARRAY_LEN(seen); k++)
			plane_send(&p, k, i, 200, true);
	for (id = 1; id <= 3; id++) {
		uint64_t n = 0;

		while (plane_take(&p.at[id], &flow, &i, NULL, 300)) {
			assert_true(flow < ARRAY_LEN(seen));
			assert_true(!seen[flow] || seen[flow] >> 32 == id);
			assert_int_equal(i, seen[flow] & 0xffffffff);
			seen[flow] = (uint64_t)id << 32 | (i + 1);
			n++;
		}
		nodes += n > 0;
		got += n;
	}
	assert_int_equal(nodes, 3);
	assert_int_equal(got, 10 * ARRAY_LEN(seen));
	plane_down(&p);
}

static void rules(void **state)
{
	char line[256];
	uint64_t hits;
	struct plane p;
	unsigned int i;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 2 });
	plane_rules(&p, "one node:1 udp src port 1001\n"
			"# a comment\n"
			"copy all:* udp src port 1002\n"
			"none drop udp src port 1003\n"
			"named node:2/r udp src port 1004\n"
			"absent node:2/other down=drop udp src port 1005\n");
	for (i = 1; i <= 6; i++)
		plane_send(&p, i, 0, 100, true);
	assert_int_equal(plane_drain(&p.at[1], 200), 2);
	assert_int_equal(plane_drain(&p.at[2], 200), 2);
	wait_for(plane_stats(&p).frames == 6);
	assert_int_equal(plane_stats(&p).dropped_rule, 1);
	assert_int_equal(plane_stats(&p).unmatched, 1);
	assert_int_equal(plane_stats(&p).dropped_down, 1);
	assert_int_equal(rgate_gateway_rule(p.gw, 1, line, sizeof(line), &hits), 0);
	assert_string_equal(line, "copy all:* udp src port 1002");
	assert_int_equal(hits, 1);
	assert_int_equal(rgate_gateway_rule(p.gw, 5, line, sizeof(line), &hits), -ENOENT);
	/* changed while it runs */
	plane_rules(&p, "all node:2\n");
	for (i = 0; i < 50; i++)
		plane_send(&p, i, 0, 100, true);
	assert_int_equal(plane_drain(&p.at[2], 200), 50);
	assert_int_equal(plane_drain(&p.at[1], 20), 0);
	plane_down(&p);
}

/* full=drop: what does not fit is counted, and told by the next frame's gap */
static void full_drop(void **state)
{
	uint64_t i, got = 0, gaps = 0, dropped;
	struct rgate_slot hdr;
	struct plane p;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1, .far_slots = 64 });
	plane_rules(&p, "all node:1 full=drop\n");
	for (i = 0; i < 300; i++)
		plane_send(&p, 0, i, 100, true);
	wait_for(plane_stats(&p).frames == 300);
	wait_for(plane_node(&p, 1).dropped_full + plane_node(&p, 1).frames == 300);
	dropped = plane_node(&p, 1).dropped_full;
	assert_true(dropped >= 300 - 64);
	while (plane_take(&p.at[1], NULL, &i, &hdr, 100)) {
		assert_int_equal(i, got);
		got++;
	}
	assert_int_equal(got + dropped, 300);
	plane_send(&p, 0, 300, 100, true);
	assert_true(plane_take(&p.at[1], NULL, &i, &hdr, MS));
	gaps = hdr.gap;
	assert_int_equal(i, 300);
	assert_int_equal(gaps, dropped);
	plane_down(&p);
}

/* full=wait: the source's policy sees it */
static void full_wait(void **state)
{
	uint64_t i, sent = 0, next = 0;
	struct plane p;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1, .slots = 128, .far_slots = 64 });
	for (i = 0; i < 100; i++) {
		while (sent < 1000 && plane_send(&p, 0, sent, 100, false))
			sent++;
		nodes_nap();
	}
	assert_true(sent >= 128 && sent <= 128 + 64);
	while (next < sent) {
		assert_true(plane_take(&p.at[1], NULL, &i, NULL, MS));
		assert_int_equal(i, next);
		next++;
	}
	assert_int_equal(plane_node(&p, 1).dropped_full, 0);
	/* and it goes on */
	plane_send(&p, 0, sent, 100, true);
	assert_true(plane_take(&p.at[1], NULL, &i, NULL, MS));
	assert_int_equal(i, sent);
	plane_down(&p);
}

/* A slow node keeps its own frames waiting, and nobody else's */
static void slow_neighbour(void **state)
{
	struct plane p;
	uint64_t i;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 2, .far_slots = 64 });
	plane_rules(&p, "a node:1 udp src port 1001\nb node:2\n");
	for (i = 0; i < 200; i++)
		plane_send(&p, 1, i, 100, true);
	for (i = 0; i < 200; i++) {
		plane_send(&p, 2, i, 100, true);
		assert_true(plane_take(&p.at[2], NULL, NULL, NULL, MS));
	}
	for (i = 0; i < 200; i++)
		assert_true(plane_take(&p.at[1], NULL, NULL, NULL, MS));
	plane_down(&p);
}

/* A node goes: its flows find others; it comes back, and they do, too */
static void node_goes(void **state)
{
	uint64_t first[3], later[3];
	unsigned int flow, id;
	struct plane p;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 2 });
	for (flow = 0; flow < 64; flow++)
		plane_send(&p, flow, 0, 100, true);
	for (id = 1; id <= 2; id++)
		first[id] = plane_drain(&p.at[id], 200);
	assert_int_equal(first[1] + first[2], 64);
	assert_true(first[1] && first[2]);
	compute_down(&p, 2);
	wait_for(plane_rings(&p) == 1);
	for (flow = 0; flow < 64; flow++)
		plane_send(&p, flow, 1, 100, true);
	assert_int_equal(plane_drain(&p.at[1], 200), 64);
	compute_up(&p, 2);
	compute_ring(&p, 2, 1024, 2048);
	wait_for(plane_rings(&p) == 2);
	for (flow = 0; flow < 64; flow++)
		plane_send(&p, flow, 2, 100, true);
	for (id = 1; id <= 2; id++)
		later[id] = plane_drain(&p.at[id], 200);
	assert_int_equal(later[1], first[1]);
	assert_int_equal(later[2], first[2]);
	assert_int_equal(plane_node(&p, 2).sessions, 2);
	plane_down(&p);
}

/* What waits for a node that goes is another's then, or dropped, as the rule says */
static void queued_when_it_goes(void **state)
{
	struct rgate_gateway_node n;
	struct plane p;
	uint64_t i;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 2, .far_slots = 64 });
	plane_rules(&p, "a node:2 udp src port 1001\nb hash:2 down=drop udp src port 1002\n"
			"rest node:1\n");
	for (i = 0; i < 100; i++) {
		plane_send(&p, 1, i, 100, true);
		plane_send(&p, 2, i, 100, true);
	}
	wait_for(plane_stats(&p).frames == 200);
	wait_for(plane_node(&p, 2).frames == 64);
	/* a close in good order tells what it had; these 64 are its own */
	compute_down(&p, 2);
	wait_for(plane_rings(&p) == 1);
	wait_for(plane_node(&p, 2).dropped_down + plane_node(&p, 2).lost >= 68);
	n = plane_node(&p, 2);
	assert_int_equal(plane_drain(&p.at[1], 300), 200 - 64 - n.lost - n.dropped_down);
	assert_int_equal(n.lost, 0);
	assert_int_equal(n.dropped_down, 68);
	plane_down(&p);
}

/* The gateway ends and begins anew: the ring at the node goes on */
static void gateway_goes(void **state)
{
	struct rgate_inlet_ring r;
	struct plane p;
	uint64_t i, k;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1, .far_slots = 64 });
	for (k = 0; k < 4; k++) {
		for (i = 0; i < 50; i++) {
			plane_send(&p, 0, k * 50 + i, 100, true);
			/* in the last round it is taken after the change */
			if (k == 3)
				continue;
			assert_true(plane_take(&p.at[1], NULL, NULL, NULL, MS));
		}
		wait_for(plane_stats(&p).frames == 50);
		gateway_down(&p);
		gateway_up(&p, NULL);
		wait_for(plane_rings(&p) == 1);
		/* only now, as frames for nobody are dropped */
		assert_int_equal(rgate_gateway_add(p.gw, p.source), 0);
	}
	for (i = 150; i < 200; i++) {
		assert_true(plane_take(&p.at[1], NULL, &k, NULL, MS));
		assert_int_equal(k, i);
	}
	assert_false(plane_take(&p.at[1], NULL, NULL, NULL, 20));
	/* The inlet's thread counts them, whoever sees them sooner. */
	wait_for((r = plane_inlet(&p.at[1]), r.stats.delivered == 200));
	assert_int_equal(r.sessions, 5);
	assert_int_equal(r.errors, 0);
	plane_down(&p);
}

/* The gateway's service alone, over the same connections */
static void service_again(void **state)
{
	struct plane p;
	uint64_t i, k;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1, .far_slots = 64 });
	for (k = 0; k < 5; k++) {
		for (i = 0; i < 50; i++)
			plane_send(&p, 0, k * 50 + i, 100, true);
		for (i = 0; i < 50; i++) {
			uint64_t n;

			assert_true(plane_take(&p.at[1], NULL, &n, NULL, MS));
			assert_int_equal(n, k * 50 + i);
		}
		rgate_gateway_destroy(p.gw);
		assert_int_equal(rgate_gateway_create(&p.gw, p.hub, NULL), 0);
		wait_for(plane_rings(&p) == 1);
		assert_int_equal(rgate_gateway_add(p.gw, p.source), 0);
	}
	plane_down(&p);
}

/*
 * A gateway that was not told measures: an operation on Soft-RoCE, over which this runs with
 * verbs, costs this CPU more than the copies do, and one between processes of a machine does not.
 */
static void packs_by_cost(void **state)
{
	struct rgate_gateway_opts o = { .sz = sizeof(o), .pack = RGATE_PACK_AUTO };
	struct rgate_gateway_ring r = { .sz = sizeof(r) };
	struct plane p;
	uint64_t i, n;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	rgate_gateway_destroy(p.gw);
	assert_int_equal(rgate_gateway_create(&p.gw, p.hub, &o), 0);
	wait_for(plane_rings(&p) == 1);
	assert_int_equal(rgate_gateway_ring(p.gw, 0, &r), 0);
	assert_int_equal(r.packed, !p.c.local);
	assert_int_equal(rgate_gateway_add(p.gw, p.source), 0);
	for (i = 0; i < 100; i++)
		assert_true(plane_send(&p, 0, i, 300, true));
	for (i = 0; i < 100; i++) {
		assert_true(plane_take(&p.at[1], NULL, &n, NULL, MS));
		assert_int_equal(n, i);
	}
	plane_down(&p);
}

/* A ring whose reader cannot be made is refused, and is no part of the gateway then. */
static bool no_reader;

int __real_rgate_consumer_init(struct rgate_consumer *c, struct rgate_ring *ring,
			       const struct rgate_consumer_opts *opts);
int __wrap_rgate_consumer_init(struct rgate_consumer *c, struct rgate_ring *ring,
			       const struct rgate_consumer_opts *opts);
int __wrap_rgate_consumer_init(struct rgate_consumer *c, struct rgate_ring *ring,
			       const struct rgate_consumer_opts *opts)
{
	return no_reader ? -ENOMEM : __real_rgate_consumer_init(c, ring, opts);
}

static int no_share;		/* what registering a source's memory comes to */

int __real_rgate_share_create(struct rgate_share **share, struct rgate_node *node, void *addr,
			      size_t len, int fd, uint64_t offset, uint32_t access);
int __wrap_rgate_share_create(struct rgate_share **share, struct rgate_node *node, void *addr,
			      size_t len, int fd, uint64_t offset, uint32_t access);
int __wrap_rgate_share_create(struct rgate_share **share, struct rgate_node *node, void *addr,
			      size_t len, int fd, uint64_t offset, uint32_t access)
{
	return no_share ? no_share :
	       __real_rgate_share_create(share, node, addr, len, fd, offset, access);
}

static void source_fails(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 1024, 0, RGATE_POLICY_DROP);
	struct plane p;
	uint64_t n;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	no_reader = true;
	assert_int_equal(rgate_gateway_add(p.gw, ring), -ENOMEM);
	no_reader = false;
	assert_int_equal(rgate_gateway_remove(p.gw, ring), -ENOENT);
	no_share = -EDQUOT;
	assert_int_equal(rgate_gateway_add(p.gw, ring), -EDQUOT);
	no_share = 0;
	assert_int_equal(rgate_gateway_remove(p.gw, ring), -ENOENT);
	assert_int_equal(rgate_gateway_add(p.gw, ring), 0);
	plane_send(&p, 0, 1, 300, true);
	assert_true(plane_take(&p.at[1], NULL, &n, NULL, MS));
	assert_int_equal(rgate_gateway_remove(p.gw, ring), 0);
	rgate_ring_close(ring);
	plane_down(&p);
}

static void sources(void **state)
{
	struct rgate_ring *more[RGATE_GATEWAY_RINGS_MAX], *over;
	struct rgate_producer prod;
	struct plane p;
	unsigned int i;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	for (i = 1; i < ARRAY_LEN(more); i++) {
		more[i] = unit_ring(64, 1024, 0, RGATE_POLICY_DROP);
		assert_int_equal(rgate_gateway_add(p.gw, more[i]), 0);
	}
	over = unit_ring(64, 1024, 0, RGATE_POLICY_OVERWRITE);
	assert_int_equal(rgate_gateway_add(p.gw, over), -EOPNOTSUPP);
	rgate_ring_close(over);
	over = unit_ring(64, 1024, 0, RGATE_POLICY_DROP);
	assert_int_equal(rgate_gateway_add(p.gw, over), -ENOSPC);
	assert_int_equal(rgate_gateway_remove(p.gw, over), -ENOENT);
	rgate_ring_close(over);
	over = unit_ring(64, 4096, 0, RGATE_POLICY_DROP);
	assert_int_equal(rgate_gateway_remove(p.gw, more[1]), 0);
	rgate_ring_close(more[1]);
	assert_int_equal(rgate_gateway_add(p.gw, over), -EMSGSIZE);
	rgate_ring_close(over);
	for (i = 2; i < ARRAY_LEN(more); i++) {
		unsigned char buf[128];
		size_t len = plane_frame(buf, i, 0, 100, false);

		assert_int_equal(rgate_producer_init(&prod, more[i]), 0);
		assert_int_equal(rgate_producer_write(&prod, NULL, buf, len, len), 0);
		rgate_producer_fini(&prod);
	}
	assert_int_equal(plane_drain(&p.at[1], 200), ARRAY_LEN(more) - 2);
	for (i = 2; i < ARRAY_LEN(more); i++) {
		assert_int_equal(rgate_gateway_remove(p.gw, more[i]), 0);
		rgate_ring_close(more[i]);
	}
	plane_down(&p);
}

/* The source is resized while frames come */
static void resized(void **state)
{
	struct plane p;
	uint64_t i, n;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1, .slots = 64 });
	for (i = 0; i < 1000; i++) {
		if (i % 100 == 50)
			assert_int_equal(rgate_ring_resize(p.source, 64U << (i / 100 % 3), 2048),
					 0);
		plane_send(&p, 0, i, 300, true);
		assert_true(plane_take(&p.at[1], NULL, &n, NULL, MS));
		assert_int_equal(n, i);
	}
	plane_down(&p);
}

/* The offset of a machine's clock from itself */
static void clocks(void **state)
{
	struct rgate_slot hdr;
	int64_t offset, late;
	uint64_t error;
	struct plane p;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	wait_for(!rgate_ring_tstamp_offset(p.at[1].ring, &offset, &error));
	assert_true(error > 0);
	assert_true((uint64_t)(offset < 0 ? -offset : offset) <= error);
	plane_send(&p, 0, 0, 100, true);
	assert_true(plane_take(&p.at[1], NULL, NULL, &hdr, MS));
	late = (int64_t)(unit_now_ns() - hdr.tstamp) + offset;
	assert_true(late > -(int64_t)error && late < MS * 1000000LL);
	assert_int_equal(rgate_ring_tstamp_offset(p.source, &offset, &error), 0);
	assert_int_equal(offset, 0);
	assert_int_equal(error, 0);
	plane_down(&p);
}

static uint32_t connections(struct plane *p)
{
	struct rgate_peer_info info = { .sz = sizeof(info) };

	assert_int_equal(rgate_peer_info(rgate_hub_peer(p->hub, 1), &info), 0);
	return info.epoch;
}

/* Nothing passes for a while that is longer than a message usually takes */
static void stalled_wire(void **state)
{
	uint32_t before;
	struct plane p;
	uint64_t i, n;

	(void)state;
	if (!getenv("RGATE_FABRIC_CUT") || !getenv("RGATE_FABRIC_MEND"))
		unit_skip("no RGATE_FABRIC_CUT and RGATE_FABRIC_MEND, commands that cut the wire");
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	before = connections(&p);
	assert_int_equal(system(getenv("RGATE_FABRIC_CUT")), 0);
	for (i = 0; i < 200; i++)
		plane_send(&p, 0, i, 300, true);
	usleep(2500000);
	assert_int_equal(system(getenv("RGATE_FABRIC_MEND")), 0);
	for (i = 0; i < 200; i++) {
		assert_true(plane_take(&p.at[1], NULL, &n, NULL, MS));
		assert_int_equal(n, i);
	}
	assert_int_equal(connections(&p), before);
	assert_int_equal(plane_node(&p, 1).lost, 0);
	plane_down(&p);
}

/* The number of the next datagram at the node, by rgate_consumer_copy(); -1: none in time */
static int64_t next_datagram(struct compute *at)
{
	struct rgate_slot hdr;
	unsigned char buf[256];
	uint64_t i;

	if (rgate_consumer_wait(&at->c, MS) != 1 ||
	    rgate_consumer_copy(&at->c, &hdr, buf, sizeof(buf)) < 0)
		return -1;
	memcpy(&i, buf + hdr.payload_off, sizeof(i));
	return (int64_t)i;
}

/* A socket that the gateway's thread reads itself, one datagram after a sleep, and many */
static void driven_source(void **state)
{
	struct rgate_source_opts o = RGATE_OPTS(rgate_source_opts, .driven = 1);
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	struct rgate_source_stats st;
	struct rgate_ring *ring;
	struct rgate_source *src;
	struct rgate_stats rs;
	struct plane p;
	uint64_t i;
	int sock;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	ring = unit_ring(128, 2048, 0, RGATE_POLICY_DROP);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(rgate_source_start_udp(&src, &ring, 1, (struct sockaddr *)&a, len, &o), 0);
	assert_int_equal(rgate_source_addr(src, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(rgate_gateway_add_source(p.gw, ring, src), 0);
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(sock, (struct sockaddr *)&a, len), 0);
	for (i = 0; i < 300; i++) {
		if (i % 50 == 0)
			nodes_nap();
		assert_int_equal(send(sock, &i, sizeof(i), 0), sizeof(i));
		/* less than a ring's worth is under way, those with late completions, too */
		if (i >= 32)
			assert_int_equal(next_datagram(&p.at[1]), i - 32);
	}
	for (i = 300 - 32; i < 300; i++)
		assert_int_equal(next_datagram(&p.at[1]), i);
	assert_int_equal(rgate_source_stats(src, &st), 0);
	assert_int_equal(st.received, 300);
	/* nobody was woken for them but who received them */
	rgate_ring_stats(ring, &rs);
	assert_int_equal(rs.wakeups, 0);
	assert_int_equal(rgate_gateway_remove(p.gw, ring), 0);
	assert_int_equal(send(sock, &i, sizeof(i), 0), sizeof(i));
	nodes_nap();
	assert_int_equal(rgate_source_stats(src, &st), 0);
	assert_int_equal(st.received, 300);
	assert_int_equal(source_ended(src), 0);
	close(sock);
	rgate_ring_close(ring);
	plane_down(&p);
}

/*
 * Consumers of the gateway's machine are woken by the gateway: one frame after a sleep each, and
 * the node's daemon is told of them in far fewer notices, but soon enough.
 */
static void bells(void **state)
{
	struct rgate_gateway_ring r = { .sz = sizeof(r) };
	struct rgate_waits w = { .sz = sizeof(w) };
	const uint64_t n = 300;
	uint64_t i, got;
	struct plane p;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	if (!rgate_node_bells(p.node) || plane_packed()) {
		plane_down(&p);
		unit_skip("nodes of several machines have no bells, and what is packed rings none");
	}
	for (i = 0; i < n; i++) {
		assert_true(plane_send(&p, 0, i, 100, true));
		assert_true(plane_take(&p.at[1], NULL, &got, NULL, MS));
		assert_int_equal(got, i);
	}
	assert_int_equal(rgate_consumer_waits(&p.at[1].c, &w), 0);
	assert_true(w.sleeps > 0);
	wait_for(plane_inlet(&p.at[1]).stats.delivered == n);
	assert_int_equal(rgate_gateway_ring(p.gw, 0, &r), 0);
	assert_true(r.posts >= n);
	assert_true(r.notices > 0);
	/* by the daemon, when it has got the mail: those that the bell did not wake */
	assert_true(plane_inlet(&p.at[1]).stats.wakeups * 2 < w.sleeps);
	plane_down(&p);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_frame),
	cmocka_unit_test(small_rings),
	cmocka_unit_test(chains),
	cmocka_unit_test(chain_order),
	cmocka_unit_test(told_again),
	cmocka_unit_test(larger_slots),
	cmocka_unit_test(one_by_one),
	cmocka_unit_test(too_small),
	cmocka_unit_test(hashed),
	cmocka_unit_test(rules),
	cmocka_unit_test(full_drop),
	cmocka_unit_test(full_wait),
	cmocka_unit_test(slow_neighbour),
	cmocka_unit_test(node_goes),
	cmocka_unit_test(queued_when_it_goes),
	cmocka_unit_test(gateway_goes),
	cmocka_unit_test(service_again),
	cmocka_unit_test(packs_by_cost),
	cmocka_unit_test(source_fails),
	cmocka_unit_test(sources),
	cmocka_unit_test(driven_source),
	cmocka_unit_test(bells),
	cmocka_unit_test(resized),
	cmocka_unit_test(clocks),
	cmocka_unit_test(stalled_wire),
};

UNIT_MAIN(tests)
