// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The ring's device code on this CPU: looking, handing out, finishing and returning,
 * against the library's producer.
 */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_dev.h"

#define NEAR 64

/* What one slot holds: checked by the user's function below */
static uint64_t expect;

static uint32_t check_frame(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	(void)result;
	(void)arg;
	assert_int_equal(unit_pattern_check(pkt->data, expect, pkt->len), 0);
	assert_memory_equal(pkt->near, pkt->data, pkt->near_len);
	expect++;
	return 0;
}

static const struct rgate_dshape plain = { NEAR, 0, 32, 0, check_frame };
static unsigned char near_mem[RGATE_DWARP_BYTES(NEAR, 0, 32)]
	__attribute__((aligned(16)));

static void work(struct gpu_dev *d, const struct rgate_dshape *sh, const struct rgate_drun *run)
{
	struct rgate_dnear near;

	rgate_dnear_init(&near, near_mem, sh);
	rgate_drun_work(&d->ctx, sh, run, &near);
}

/* A frame alone is found at once, and a batch is returned with its last slot only. */
static void one_by_one(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	struct rgate_producer p;
	struct rgate_drun run;
	uint64_t i;

	(void)state;
	expect = 0;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(gpu_dev_find(d, &run), 0);
	for (i = 0; i < 1000; i++) {
		uint64_t done = i / 32 * 32, credit = d->ctx.ring[0].credits[done / 32 % 2];

		assert_int_equal(unit_put(&p, i, i % 193), 0);
		assert_int_equal(gpu_dev_find(d, &run), 1);
		assert_int_equal(run.pos, i);
		assert_int_equal(d->ctx.ring[0].credits[done / 32 % 2], credit);
		work(d, &plain, &run);
		assert_int_equal(d->ctx.ring[0].credits[done / 32 % 2],
				 i % 32 == 31 ? i / 64 + 1 : credit);
		assert_int_equal(rgate_dpoll_done(&d->ctx, &d->poll[0]), i + 1);
	}
	assert_int_equal(expect, 1000);
	assert_int_equal(d->state[0].packets, 1000);
	rgate_producer_fini(&p);
	gpu_dev_free(d);
}

/* As many as there are, found in few looks */
static void many(void **state)
{
	struct rgate_ring *ring = unit_ring(4096, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	struct rgate_producer p;
	struct rgate_drun run;
	uint64_t i, next = 0;
	uint32_t n, looks = 0;

	(void)state;
	d->poll[0].check_end = 0;	/* not the first lap */
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (i = 0; i < 4096; i++)
		assert_int_equal(unit_put(&p, i, 64), 0);
	assert_int_equal(unit_put(&p, i, 64), -ENOBUFS);
	while ((n = gpu_dev_find(d, &run))) {
		assert_int_equal(run.pos, next);
		next += n;
		looks++;
	}
	assert_int_equal(next, 4096);
	assert_in_range(looks, 9, 10);	/* 1 + 2 + 4 + 8 + 16 + 3 * 31 batches and some */
	rgate_producer_fini(&p);
	gpu_dev_free(d);
}

static void say_head(const struct gpu_dev *d, uint64_t head)
{
	((struct rgate_prod *)(uintptr_t)d->ctx.ring[0].prod)->head = head;
}

/* What a look at @batches from the first one on sees */
static uint32_t full_of(const struct gpu_dev *d, uint64_t pos, uint32_t batches)
{
	uint32_t full, n = rgate_dring_look(&d->ctx.ring[0], pos, batches, 1, &full);

	assert_int_equal(n, full ? full * 32 - pos % 32 : n);
	return full;
}

/* Beyond those whose ends have a lane each it is head that tells, and only of more. */
static void told(void **state)
{
	struct rgate_ring *ring = unit_ring(4096, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	struct rgate_producer p;
	uint64_t i;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (i = 0; i < 100 * 32; i++)
		assert_int_equal(unit_put(&p, i, 64), 0);
	rgate_producer_flush(&p);
	assert_int_equal(full_of(d, 0, RGATE_DLOOK_AHEAD), 100);
	assert_int_equal(full_of(d, 7, RGATE_DLOOK_AHEAD), 100);
	assert_int_equal(full_of(d, 0, 99), 99);
	assert_int_equal(full_of(d, 0, RGATE_DLOOK_BATCHES), RGATE_DLOOK_BATCHES);
	assert_int_equal(full_of(d, 99 * 32, RGATE_DLOOK_AHEAD), 1);
	assert_int_equal(full_of(d, 100 * 32, RGATE_DLOOK_AHEAD), 0);
	/* a part of a batch is none */
	say_head(d, 40 * 32 + 31);
	assert_int_equal(full_of(d, 0, RGATE_DLOOK_AHEAD), 40);
	say_head(d, 40 * 32);
	assert_int_equal(full_of(d, 31, RGATE_DLOOK_AHEAD), 40);
	assert_int_equal(full_of(d, 40 * 32 - 1, RGATE_DLOOK_AHEAD), RGATE_DLOOK_BATCHES);
	say_head(d, 31);
	assert_int_equal(full_of(d, 0, RGATE_DLOOK_AHEAD), RGATE_DLOOK_BATCHES);
	/* one that is behind says nothing */
	say_head(d, 20 * 32);
	assert_int_equal(full_of(d, 0, RGATE_DLOOK_AHEAD), RGATE_DLOOK_BATCHES);
	/* and where each has a lane none is asked */
	say_head(d, UINT64_MAX);
	assert_int_equal(full_of(d, 90 * 32, RGATE_DLOOK_BATCHES), 10);
	rgate_producer_fini(&p);
	gpu_dev_free(d);
}

/* As far as the runtime's kernels look: all that there is, in few looks */
static void deep(void **state)
{
	struct rgate_ring *ring = unit_ring(8192, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	struct rgate_dseen seen;
	struct rgate_producer p;
	uint64_t i, next = 0;
	uint32_t looks = 0;

	(void)state;
	d->poll[0].check_end = 0;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (i = 0; i < 8192; i++)
		assert_int_equal(unit_put(&p, i, 64), 0);
	for (;; looks++) {
		rgate_dpoll_find(&d->ctx, &d->poll[0], RGATE_DLOOK_AHEAD, 1, &seen);
		if (!seen.run.count)
			break;
		assert_int_equal(seen.run.pos, next);
		next += seen.run.count;
		rgate_dpoll_note(&d->poll[0], &seen);
	}
	assert_int_equal(next, 8192);
	assert_int_equal(looks, 9);	/* 1 + 2 + 4 + ... + 64 + 128 + 1 batches */
	rgate_producer_fini(&p);
	gpu_dev_free(d);
}

/* All that a look finds, however often: where it ends */
static uint64_t find_all(struct gpu_dev *d)
{
	struct rgate_dseen seen;

	for (;;) {
		rgate_dpoll_find(&d->ctx, &d->poll[0], RGATE_DLOOK_AHEAD, 1, &seen);
		if (!seen.run.count)
			return d->poll[0].next;
		rgate_dpoll_note(&d->poll[0], &seen);
	}
}

static void done(struct gpu_dev *d, uint64_t batch)
{
	const struct rgate_drun run = { .pos = batch * 32, .count = 32 };

	rgate_drun_done(&d->ctx, &run);
}

/* As one would that does not wait for credits, and whose head lies */
static void publish_lap(struct gpu_dev *d, uint64_t lap)
{
	const struct rgate_dring *r = &d->ctx.ring[0];
	uint64_t i;

	for (i = 0; i <= r->mask; i++)
		((struct rgate_slot *)(uintptr_t)rgate_dring_slot(r, i))->seq = lap;
	say_head(d, UINT64_MAX);
}

/* Whatever a producer says, no slot is taken before all are done with its lap before. */
static void head_of_liar(void **state)
{
	struct rgate_ring *ring = unit_ring(2048, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	uint64_t i;

	(void)state;
	d->poll[0].check_end = 0;
	publish_lap(d, 1);
	assert_int_equal(find_all(d), 2048);
	publish_lap(d, 2);
	assert_int_equal(find_all(d), 2048);
	for (i = 0; i < 64; i++)
		if (i != 5 && i != 40)
			done(d, i);
	d->poll[0].batches = RGATE_DLOOK_AHEAD;
	assert_int_equal(find_all(d), 2048 + 5 * 32);
	done(d, 5);
	assert_int_equal(find_all(d), 2048 + 40 * 32);
	gpu_dev_free(d);
}

/* In the first lap only one batch is looked at, and those returned before are skipped. */
static void returned_before(void **state)
{
	struct rgate_ring *ring = unit_ring(256, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	struct rgate_producer p;
	struct rgate_drun run;
	uint64_t i;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (i = 0; i < 200; i++)
		assert_int_equal(unit_put(&p, i, 64), 0);
	/* batches 1, 2 and 4 */
	d->state[0].finished[1] = d->state[0].finished[2] = d->state[0].finished[4] = 32;
	assert_int_equal(gpu_dev_find(d, &run), 32);
	assert_int_equal(run.pos, 0);
	assert_int_equal(gpu_dev_find(d, &run), 32);
	assert_int_equal(run.pos, 96);
	assert_int_equal(gpu_dev_find(d, &run), 32);
	assert_int_equal(run.pos, 160);
	rgate_producer_fini(&p);
	gpu_dev_free(d);
}

/* Pieces go through the queue, divided at multiples of grain, and come out whole. */
static void through_queue(void **state)
{
	struct rgate_ring *ring = unit_ring(128, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	struct rgate_drun run, piece;
	struct rgate_producer p;
	uint64_t i = 0, taken = 0, seed = 99;
	unsigned int rounds;

	(void)state;
	expect = 0;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (rounds = 0; rounds < unit_rounds(3000); rounds++) {
		unsigned int n = (unsigned int)(unit_random(&seed) % 100);

		d->ctx.grain = 1U << unit_random(&seed) % 6;
		while (n-- && !unit_put(&p, i, i % 193))
			i++;
		while (gpu_dev_find(d, &run))
			rgate_dqueue_hand(&d->ctx, 0, run.pos, run.count);
		/* one piece remains for the next round, sometimes */
		while (d->queue.head < d->queue.tail - (d->queue.tail > 0 && rounds % 2)) {
			assert_true(rgate_dqueue_take(&d->queue, d->queue.head++, &piece));
			assert_int_equal(piece.pos, taken);
			assert_in_range(piece.count, 1, 32);
			assert_int_equal(piece.pos / 32, (piece.pos + piece.count - 1) / 32);
			taken += piece.count;
			work(d, &plain, &piece);
		}
		assert_false(rgate_dqueue_take(&d->queue, d->queue.tail, &piece));
	}
	assert_true(i > 100);
	assert_int_equal(expect, taken);
	rgate_producer_fini(&p);
	gpu_dev_free(d);
}

/* Pieces finished in any order: the batch is returned by the last, done moves in order. */
static void any_order(void **state)
{
	struct rgate_ring *ring = unit_ring(128, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	struct rgate_producer p;
	struct rgate_drun run = { 0, 0, 8 };
	static const uint64_t order[] = { 24, 40, 0, 56, 16, 32, 8, 48 };
	uint64_t i, done = 0;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (i = 0; i < 64; i++)
		assert_int_equal(unit_put(&p, i, 64), 0);
	d->poll[0].next = 64;
	for (i = 0; i < ARRAY_LEN(order); i++) {
		run.pos = order[i];
		rgate_drun_done(&d->ctx, &run);
		done = rgate_dpoll_done(&d->ctx, &d->poll[0]);
		assert_int_equal(done, i == 7 ? 64 : i == 6 ? 32 : 0);
		assert_int_equal(d->ctx.ring[0].credits[0], i >= 6);
		assert_int_equal(d->ctx.ring[0].credits[1], i == 7);
	}
	rgate_producer_fini(&p);
	gpu_dev_free(d);
}

/* The count of a batch's slots wraps after 2^27 laps. */
static void counts_wrap(void **state)
{
	struct rgate_dring r = { .mask = 63, .lap_shift = 6 };
	uint64_t credits[2] = { 0 };
	struct gpu_dev *d = calloc(1, sizeof(*d));
	uint64_t lap = (1ULL << 27) - 1, pos = (lap - 1) << 6;
	struct rgate_drun run = { pos, 0, 32 };
	uint32_t finished[2] = { (uint32_t)(lap - 1) * 32, 0 };

	(void)state;
	r.credits = credits;
	d->ctx.state = d->state;
	d->ctx.ring[0] = r;
	d->state[0].finished = finished;
	rgate_drun_done(&d->ctx, &run);
	assert_int_equal(credits[0], lap);
	run.pos += 64;
	rgate_drun_done(&d->ctx, &run);
	assert_int_equal(credits[0], lap + 1);
	assert_int_equal(finished[0], 0);	/* 2^32 */
	run.pos += 64;
	run.count = 31;
	rgate_drun_done(&d->ctx, &run);
	assert_int_equal(credits[0], lap + 1);
	free(d);
}

/* Half a chain is not given out. */
static void half_chain(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, RGATE_RING_CHAIN, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	static unsigned char frame[4000];
	struct rgate_producer p;
	struct rgate_drun run;
	unsigned char *slots = rgate_ring_slots_rw(ring);
	uint64_t *seq = (uint64_t *)(slots + 5 * 256);
	int i;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_producer_write(&p, NULL, frame, 10, 10), 0);
	assert_int_equal(rgate_producer_write(&p, NULL, frame, 1000, 1000), 0);
	*seq = 0;	/* the 5th of its 6 slots, and so the last, are not there */
	*(uint64_t *)(slots + 6 * 256) = 0;
	assert_int_equal(gpu_dev_find(d, &run), 1);
	for (i = 0; i < 5; i++)
		assert_int_equal(gpu_dev_find(d, &run), 0);
	*seq = 1;
	for (i = 0; i < 5; i++)
		assert_int_equal(gpu_dev_find(d, &run), 0);
	*(uint64_t *)(slots + 6 * 256) = 1;
	assert_int_equal(gpu_dev_find(d, &run), 6);
	assert_int_equal(run.pos, 1);
	rgate_producer_fini(&p);
	gpu_dev_free(d);
}

static unsigned char chain_frame[7000];
static uint32_t chain_len, chains_seen;

static uint32_t check_chain(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t i;

	(void)result;
	(void)arg;
	assert_int_equal(rgate_dpkt_total(pkt), chain_len);
	for (i = 0; i < chain_len; i++)
		assert_int_equal(rgate_dpkt_u8(pkt, i), chain_frame[i]);
	assert_int_equal(rgate_dpkt_u8(pkt, chain_len), 0);
	chains_seen++;
	return 0;
}

/* Frames of all lengths over slots, filler before them, read byte by byte */
static void chains(void **state)
{
	static const struct rgate_dshape sh = { NEAR, 0, 8, 1, check_chain };
	struct rgate_ring *ring = unit_ring(64, 256, RGATE_RING_CHAIN, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	struct rgate_producer p;
	struct rgate_drun run;
	uint32_t n = 0;
	uint64_t i;

	(void)state;
	chains_seen = 0;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (chain_len = 0; chain_len <= 192 * 32; chain_len += 61) {
		for (i = 0; i < chain_len; i++)
			chain_frame[i] = (unsigned char)(1 + i * 7 + chain_len);
		assert_int_equal(rgate_producer_write(&p, NULL, chain_frame, chain_len,
						      chain_len), 0);
		while (gpu_dev_find(d, &run))
			rgate_dqueue_hand(&d->ctx, 0, run.pos, run.count);
		while (d->queue.head < d->queue.tail) {
			assert_true(rgate_dqueue_take(&d->queue, d->queue.head++, &run));
			work(d, &sh, &run);
		}
		assert_int_equal(chains_seen, ++n);
	}
	rgate_producer_fini(&p);
	gpu_dev_free(d);
}

/* The ring's end is seen once its producer is gone and all is taken. */
static void end(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	struct rgate_producer p;
	struct rgate_drun run;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(unit_put(&p, 0, 64), 0);
	rgate_dpoll_end(&d->ctx, &d->poll[0]);
	assert_int_equal(d->poll[0].ended, 0);
	rgate_producer_fini(&p);
	rgate_dpoll_end(&d->ctx, &d->poll[0]);
	assert_int_equal(d->poll[0].ended, 0);
	assert_int_equal(rgate_dpoll_why(&d->ctx), 0);
	assert_int_equal(gpu_dev_find(d, &run), 1);
	rgate_dpoll_end(&d->ctx, &d->poll[0]);
	rgate_dpoll_report(&d->ctx, &d->poll[0]);
	assert_int_equal(d->poll[0].ended, 1);
	assert_int_equal(d->stat[0].ended, 0);	/* not finished yet */
	assert_int_equal(rgate_dpoll_why(&d->ctx), RGATE_DEXIT_RINGS);
	expect = 0;
	work(d, &plain, &run);
	rgate_dpoll_report(&d->ctx, &d->poll[0]);
	assert_int_equal(d->stat[0].ended, 1);
	assert_int_equal(d->stat[0].packets, 1);
	d->ctl.stop = 1;
	assert_int_equal(rgate_dpoll_why(&d->ctx), RGATE_DEXIT_STOP);
	gpu_dev_free(d);
}

/* A ring over which @n slots of a chain of 6 lie, behind one frame, and the producer dies */
static struct gpu_dev *dead_in_chain(struct rgate_producer *p, unsigned int n)
{
	struct rgate_ring *ring = unit_ring(64, 256, RGATE_RING_CHAIN, RGATE_POLICY_DROP);
	unsigned char *slots = rgate_ring_slots_rw(ring);
	static unsigned char frame[1000];
	struct gpu_dev *d = gpu_dev_new(ring);
	unsigned int i;

	assert_int_equal(rgate_producer_init(p, ring), 0);
	assert_int_equal(rgate_producer_write(p, NULL, frame, 10, 10), 0);
	assert_int_equal(rgate_producer_write(p, NULL, frame, 1000, 1000), 0);
	for (i = 1 + n; i < 7; i++)
		*(uint64_t *)(slots + i * 256) = 0;
	return d;
}

/* A chain whose producer died before its end is no frame: the ring is over without it. */
static void end_in_chain(void **state)
{
	struct rgate_producer p;
	struct rgate_drun run;
	struct gpu_dev *d;
	unsigned int n, i;

	(void)state;
	for (n = 0; n <= 6; n++) {
		d = dead_in_chain(&p, n);
		assert_int_equal(gpu_dev_find(d, &run), 1);
		rgate_dpoll_end(&d->ctx, &d->poll[0]);
		assert_int_equal(d->poll[0].ended, 0);
		__atomic_store_n(&d->ctl.gone, 1, __ATOMIC_RELEASE);
		rgate_dpoll_end(&d->ctx, &d->poll[0]);
		assert_int_equal(d->poll[0].ended, n < 6);
		for (i = 0; i < 6; i++)
			assert_int_equal(gpu_dev_find(d, &run), n == 6 && !i ? 6 : 0);
		rgate_dpoll_end(&d->ctx, &d->poll[0]);
		assert_int_equal(d->poll[0].ended, 1);
		assert_int_equal(rgate_dpoll_why(&d->ctx), RGATE_DEXIT_RINGS);
		rgate_producer_fini(&p);
		gpu_dev_free(d);
	}
}

/* A producer that closed its ring, and whose head lies: slots tell that it is over. */
static void end_of_liar(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	struct rgate_producer p;
	struct rgate_drun run;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(unit_put(&p, 0, 64), 0);
	rgate_producer_fini(&p);
	say_head(d, UINT64_MAX);
	rgate_dpoll_end(&d->ctx, &d->poll[0]);
	assert_int_equal(d->poll[0].ended, 0);
	assert_int_equal(gpu_dev_find(d, &run), 1);
	rgate_dpoll_end(&d->ctx, &d->poll[0]);
	assert_int_equal(d->poll[0].ended, 1);
	gpu_dev_free(d);
}

/* A launch ends, the next goes on in the middle of a batch. */
static void launches(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	struct rgate_producer p;
	struct rgate_drun run;
	uint64_t i;

	(void)state;
	expect = 0;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (i = 0; i < 500; i++) {
		assert_int_equal(unit_put(&p, i, 64), 0);
		if (i % 7)
			continue;
		while (gpu_dev_find(d, &run))
			work(d, &plain, &run);
		d->queue.head += 3;	/* three waited in vain */
		d->share.quit = RGATE_DEXIT_TIME;
		rgate_dpoll_save(&d->ctx, &d->poll[0]);
		rgate_dlaunch_out(&d->ctx, 2);
		assert_int_equal(d->report.exited, i / 7);
		rgate_dlaunch_out(&d->ctx, 2);
		assert_int_equal(d->report.exited, i / 7 + 1);
		assert_int_equal(d->report.why, RGATE_DEXIT_TIME);
		assert_int_equal(d->stat[0].done, i + 1);
		assert_int_equal(d->queue.head, d->queue.tail);
		memset(&d->poll[0], 0xff, sizeof(d->poll[0]));
		rgate_dpoll_load(&d->ctx, &d->poll[0], 0);
	}
	assert_int_equal(expect, 498);
	rgate_producer_fini(&p);
	gpu_dev_free(d);
}

/*
 * Readers
 */

static void readers(void **state)
{
	struct rgate_ring *ring = unit_ring(128, 256, RGATE_RING_CHAIN, RGATE_POLICY_DROP);
	static unsigned char frame[1000], back[1000];
	struct rgate_dring r = gpu_dev_dring(ring);
	struct rgate_dreader rd[3];
	struct rgate_producer p;
	uint64_t i, seen = 0, seed = 5;
	uint32_t k, len;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (k = 0; k < 3; k++)
		rgate_dreader_init(&rd[k], &r, 0, k, 3);
	for (i = 0; i < unit_rounds(20000); i++) {
		const struct rgate_slot *s;

		len = 8 + (uint32_t)(unit_random(&seed) % 900);
		unit_pattern(frame, i, len);
		assert_int_equal(rgate_producer_write(&p, NULL, frame, len, len), 0);
		for (k = 0; k < 3; k++)
			while ((s = rgate_dreader_next(&rd[k]))) {
				struct rgate_dpkt pkt;

				rgate_dpkt_view(&pkt, &r, rd[k].pos, rd[k].parts);
				assert_int_equal(rgate_dpkt_total(&pkt), s->wire_len);
				for (len = 0; len < s->wire_len; len++)
					back[len] = (unsigned char)rgate_dpkt_u8(&pkt, len);
				assert_int_equal(unit_pattern_check(back, i, len), 0);
				rgate_dreader_release(&rd[k]);
				seen++;
			}
		assert_int_equal(seen, i + 1);
	}
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

/*
 * With threads: a producer, a warp that looks, two that work
 */

#define THREAD_FRAMES 200000

struct threads {
	struct gpu_dev *d;
	uint64_t frames;
	unsigned char *seen;
};

static struct threads th;

static uint32_t note_frame(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint64_t i;

	(void)result;
	(void)arg;
	memcpy(&i, pkt->data, 8);
	unit_require(i < th.frames && !unit_pattern_check(pkt->data, i, pkt->len));
	unit_require(!__atomic_fetch_add(&th.seen[i], 1, __ATOMIC_RELAXED));
	return 0;
}

static const struct rgate_dshape noting = { NEAR, 0, 32, 0, note_frame };

static void *worker_main(void *arg)
{
	unsigned char mem[RGATE_DWARP_BYTES(NEAR, 0, 32)] __attribute__((aligned(16)));
	struct gpu_dev *d = arg;
	struct rgate_dnear near;
	struct rgate_drun run;

	rgate_dnear_init(&near, mem, &noting);
	for (;;) {
		uint64_t ticket = rgate_dgpu_add(&d->queue.head, 1);

		while (!rgate_dqueue_take(&d->queue, ticket, &run)) {
			if (rgate_dgpu_acquire32(&d->share.pollers_out) == 1 &&
			    rgate_dgpu_acquire(&d->queue.tail) <= ticket)
				return NULL;
			sched_yield();
		}
		rgate_drun_work(&d->ctx, &noting, &run, &near);
	}
}

static void *poller_main(void *arg)
{
	struct gpu_dev *d = arg;
	struct rgate_drun run;

	while (!rgate_dpoll_why(&d->ctx)) {
		if (gpu_dev_find(d, &run)) {
			rgate_dqueue_hand(&d->ctx, 0, run.pos, run.count);
			continue;
		}
		rgate_dpoll_end(&d->ctx, &d->poll[0]);
		sched_yield();
	}
	rgate_dgpu_add32(&d->share.pollers_out, 1);
	return NULL;
}

static void threads(void **state)
{
	struct rgate_ring *ring = unit_ring(256, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	struct rgate_producer p;
	pthread_t t[3];
	uint64_t i;

	(void)state;
	th.d = d;
	th.frames = unit_rounds(THREAD_FRAMES);
	th.seen = calloc(th.frames, 1);
	assert_non_null(th.seen);
	d->ctx.grain = 8;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(pthread_create(&t[0], NULL, poller_main, d), 0);
	for (i = 1; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, worker_main, d), 0);
	for (i = 0; i < th.frames; i++)
		while (unit_put(&p, i, 8 + i % 150))
			sched_yield();
	rgate_producer_fini(&p);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < th.frames; i++)
		assert_int_equal(th.seen[i], 1);
	assert_int_equal(rgate_dpoll_done(&d->ctx, &d->poll[0]), th.frames);
	free(th.seen);
	gpu_dev_free(d);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(one_by_one),
	cmocka_unit_test(many),
	cmocka_unit_test(told),
	cmocka_unit_test(deep),
	cmocka_unit_test(head_of_liar),
	cmocka_unit_test(returned_before),
	cmocka_unit_test(through_queue),
	cmocka_unit_test(any_order),
	cmocka_unit_test(counts_wrap),
	cmocka_unit_test(half_chain),
	cmocka_unit_test(chains),
	cmocka_unit_test(end),
	cmocka_unit_test(end_in_chain),
	cmocka_unit_test(end_of_liar),
	cmocka_unit_test(launches),
	cmocka_unit_test(readers),
	cmocka_unit_test(threads),
};

UNIT_MAIN(tests)
