// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A ring that the gateway fills, as a program has it from the daemon: the device's code,
 * on this CPU, is its consumer.
 */
#include "plane.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu_dev.h"

#define NEAR	64
#define FLOWS	4U

static uint64_t next_of[FLOWS], seen;

/* Each frame whole, and the next of its flow */
static uint32_t check_frame(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t len = rgate_dpkt_total(pkt), flow, i;
	static unsigned char frame[9000];
	struct rgate_dlayers l;

	(void)result;
	(void)arg;
	rgate_dpkt_layers(pkt, &l);
	unit_require(l.payload == 42 && rgate_dpkt_dport(pkt, &l) == 53);
	flow = rgate_dpkt_sport(pkt, &l) - 1000;
	unit_require(flow < FLOWS && len <= sizeof(frame));
	unit_require(plane_frame(frame, flow, next_of[flow]++, len, false) == len);
	for (i = 0; i < len; i++)
		unit_require(rgate_dpkt_u8(pkt, i) == frame[i]);
	seen++;
	return 0;
}

static void consume(struct gpu_dev *d)
{
	static const struct rgate_dshape shape = { NEAR, 0, 32, 0, check_frame };
	static unsigned char mem[RGATE_DWARP_BYTES(NEAR, 0, 32)] __attribute__((aligned(16)));
	struct rgate_dnear near;
	struct rgate_drun run, piece;

	rgate_dnear_init(&near, mem, &shape);
	while (gpu_dev_find(d, &run))
		rgate_dqueue_hand(&d->ctx, 0, run.pos, run.count);
	while (d->queue.head < d->queue.tail) {
		unit_require(rgate_dqueue_take(&d->queue, d->queue.head++, &piece));
		rgate_drun_work(&d->ctx, &shape, &piece, &near);
	}
}

/* A handle of the ring as rgate_ring_open_remote() gives one: its slots are read-only */
static struct rgate_ring *handed_over(struct rgate_ring *from)
{
	struct rgate_ring *ring = NULL;
	int sv[2];

	unit_require(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	unit_require(!rgate_ring_send(from, sv[0]));
	unit_require(!rgate_ring_recv(&ring, sv[1]));
	close(sv[0]);
	close(sv[1]);
	assert_null(rgate_ring_slots_rw(ring));
	return ring;
}

static void consumes(const struct plane_opts *o, uint64_t n, size_t most)
{
	uint64_t sent[FLOWS] = { 0 }, i, seed = 9;
	struct gpu_dev *d;
	struct plane p;

	memset(next_of, 0, sizeof(next_of));
	seen = 0;
	plane_up(&p, o);
	d = gpu_dev_new(handed_over(p.at[1].ring));
	for (i = 0; i < n; i++) {
		unsigned int flow = (unsigned int)(unit_random(&seed) % FLOWS);
		size_t len = 70 + unit_random(&seed) % (most - 70);

		/* the small rings are full again and again: only this thread empties one */
		while (!plane_send(&p, flow, sent[flow], len, false))
			consume(d);
		sent[flow]++;
		if (i % 7 == 0)
			consume(d);
	}
	while (seen < n) {
		consume(d);
		nodes_nap();
	}
	wait_for(plane_inlet(&p.at[1]).stats.delivered == n);
	assert_int_equal(plane_inlet(&p.at[1]).stats.dropped_full, 0);
	rgate_dpoll_end(&d->ctx, &d->poll[0]);
	assert_int_equal(d->poll[0].ended, 0);
	compute_close_ring(&p, 1);
	rgate_dpoll_end(&d->ctx, &d->poll[0]);
	assert_int_equal(d->poll[0].ended, 1);
	assert_int_equal(seen, n);
	gpu_dev_free(d);
	plane_down(&p);
}

static void single_slots(void **state)
{
	(void)state;
	consumes(&(struct plane_opts){ .computes = 1, .slots = 256, .far_slots = 64 },
		 unit_rounds(10000), 1900);
}

static void chains(void **state)
{
	const struct plane_opts o = {
		.computes = 1, .slots = 256, .slot_size = 256, .far_slots = 128, .far_size = 256,
	};

	(void)state;
	consumes(&o, unit_rounds(4000), 5000);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(single_slots),
	cmocka_unit_test(chains),
};

UNIT_MAIN(tests)
