// SPDX-License-Identifier: MIT OR GPL-2.0
/* The ring's device code on this CPU: what the polling warp may take, and whom it gives it to. */
#include "unit.h"

#include <pthread.h>
#include <string.h>

#include "gpu_dev.h"

#include <ringgate/gpu/kernel.cuh>

static struct rgate_slot *slot_of(struct rgate_ring *ring, uint32_t i)
{
	struct rgate_view v;

	rgate_ring_view(ring, &v);
	return (struct rgate_slot *)((uintptr_t)v.slots + i * v.slot_size);
}

/* Frames that wait for nobody's credit: the slots are not those of the lap before any more */
static void publish_over(struct rgate_ring *ring, uint64_t lap)
{
	uint32_t i;

	for (i = 0; i < 64; i++)
		__atomic_store_n(&slot_of(ring, i)->seq, lap, __ATOMIC_RELEASE);
}

static void done(struct gpu_dev *d, uint64_t pos, uint32_t count)
{
	const struct rgate_drun run = { .pos = pos, .count = count };

	rgate_drun_done(&d->ctx, &run);
}

/* A producer that does not wait is waited with: what is in hand is done with first */
static void does_not_wait(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	struct rgate_drun run;
	uint32_t n = 0;

	(void)state;
	publish_over(ring, 1);
	while (n < 64)
		n += gpu_dev_find(d, &run);
	publish_over(ring, 2);
	assert_int_equal(gpu_dev_find(d, &run), 0);
	done(d, 32, 32);
	assert_int_equal(gpu_dev_find(d, &run), 0);
	done(d, 0, 31);
	assert_int_equal(gpu_dev_find(d, &run), 0);
	done(d, 31, 1);
	for (n = 0; n < 64; n += run.count)
		assert_true(gpu_dev_find(d, &run) && run.pos == 64 + n);
	assert_int_equal(n, 64);
	/* nor is one taken that is there alone */
	__atomic_store_n(&slot_of(ring, 0)->seq, 3, __ATOMIC_RELEASE);
	assert_int_equal(gpu_dev_find(d, &run), 0);
	done(d, 64, 32);
	assert_int_equal(gpu_dev_find(d, &run), 1);
	assert_int_equal(run.pos, 128);
	gpu_dev_free(d);
}

/* What a hand is given; it stays with the first frame until it is told to go on */
struct held {
	struct gpu_dev *d;
	struct rgate_dhand hand[RGATE_DHANDS];
	uint64_t sum;		/* atomic, like the others */
	uint32_t inside;
	bool go;
};

static uint32_t hold(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	struct held *h = arg;

	(void)result;
	__atomic_fetch_add(&h->sum, pkt->pos + 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&h->inside, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&h->go, __ATOMIC_ACQUIRE))
		rgate_dpause(0);
	return 0;
}

static const struct rgate_dshape shape = { 64, 0, 32, 0, hold };

static void *hand_main(void *arg)
{
	static unsigned char mem[RGATE_DHANDS][RGATE_DWARP_BYTES(64, 0, 32)]
		__attribute__((aligned(16)));
	static uint32_t next;
	const uint32_t i = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
	struct rgate_dnear near;
	struct held *h = arg;

	rgate_dnear_init(&near, mem[i], &shape);
	rgate_dhand(&h->d->ctx, &shape, &near, &h->hand[i]);
	return NULL;
}

static int give(struct held *h, uint64_t pos, uint32_t count)
{
	const struct rgate_drun run = { .pos = pos, .count = count };

	return rgate_dhands_give(&h->d->ctx, h->hand, &run);
}

/* A piece of work for each hand that is free; more, and what is of two pieces, is for others */
static void hands(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct held h = { .d = gpu_dev_new(ring) };
	pthread_t thread[RGATE_DHANDS];
	struct rgate_drun run;
	uint64_t pos, sum = 0;
	uint32_t i, n = 0;

	(void)state;
	publish_over(ring, 1);
	while (n < 64)
		n += gpu_dev_find(h.d, &run);
	h.d->ctx.arg = &h;
	h.d->ctx.grain = 8;
	assert_int_equal(give(&h, 0, 9), 0);
	assert_int_equal(give(&h, 7, 2), 0);
	for (pos = 0; pos < RGATE_DHANDS; pos++)
		assert_int_equal(give(&h, pos, 1), 1);
	assert_int_equal(give(&h, pos, 1), 0);
	for (i = 0; i < RGATE_DHANDS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, hand_main, &h), 0);
	while (__atomic_load_n(&h.inside, __ATOMIC_ACQUIRE) < RGATE_DHANDS)
		rgate_dpause(0);
	assert_int_equal(give(&h, pos, 1), 0);
	__atomic_store_n(&h.go, true, __ATOMIC_RELEASE);
	/* free again, each time: a whole piece, and what is left of one */
	while (!give(&h, 8, 8))
		rgate_dpause(0);
	while (!give(&h, RGATE_DHANDS, 8 - RGATE_DHANDS))
		rgate_dpause(0);
	rgate_dhands_end(h.hand);
	for (i = 0; i < 16; i++)
		sum += i + 1;
	assert_int_equal(__atomic_load_n(&h.sum, __ATOMIC_RELAXED), sum);
	assert_int_equal(h.d->state[0].packets, 16);
	for (i = 0; i < RGATE_DHANDS; i++)
		pthread_join(thread[i], NULL);
	gpu_dev_free(h.d);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(does_not_wait),
	cmocka_unit_test(hands),
};

UNIT_MAIN(tests)
