// SPDX-License-Identifier: MIT OR GPL-2.0
/* The ring's device code on this CPU: what the polling warp may take. */
#include "unit.h"

#include "gpu_dev.h"

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

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(does_not_wait),
};

UNIT_MAIN(tests)
