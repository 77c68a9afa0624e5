// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Locks and barriers of nodes of which one is of another build, whose messages have another
 * version. Node 0 is the home, 1 and 2 ask.
 */
#include "world.h"

#include <errno.h>
#include <string.h>

static struct wclient c[3];

static int setup(void **state)
{
	unsigned int i;

	(void)state;
	world_make(3);
	for (i = 0; i < 3; i++) {
		wclient_new(&c[i], i, 1);
		w.node[i].newer = 0;
	}
	return 0;
}

static int teardown(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		wclient_end(&c[i]);
		w.node[i].newer = 0;
	}
	world_unmake();
	return 0;
}

static int acquire(unsigned int i, uint32_t h)
{
	return wask(&c[i], (struct rgate_request){ .op = RGATE_REQ_LOCK_ACQUIRE, .handle = h,
						   .a0 = RGATE_LOCK_TRY }, NULL);
}

/* Whoever asks is told at once, and why; what both understand goes on */
static void told(unsigned int newer)
{
	struct rgate_request list = {
		.op = RGATE_REQ_LOCK_LIST, .a0 = 0, .off = ROOM,
		.len = sizeof(struct rgate_lock_info),
	};
	uint32_t h[3];

	w.node[newer].newer = 1;
	h[0] = lock_at(&c[0], 0, "l", 0);
	h[2] = newer == 0 ? 0 : lock_at(&c[2], 0, "l", 0);
	assert_int_equal(open_at(&c[1], 0, "l", 0, RGATE_SYNC_CREATE, 0, 1, &h[1]),
			 -EPROTONOSUPPORT);
	assert_int_equal(open_at(&c[1], 1, "b", 0, RGATE_SYNC_CREATE, 2, 1, &h[1]),
			 -EPROTONOSUPPORT);
	assert_int_equal(wask(&c[1], list, NULL), -EPROTONOSUPPORT);
	/* its own locks, and those of who is of the home's version */
	assert_int_equal(acquire(1, lock_at(&c[1], 2, "l", 1)), 0);
	assert_int_equal(acquire(0, h[0]), 0);
	if (h[2])
		assert_int_equal(acquire(2, h[2]), -EAGAIN);
	pass(5 * LEASE);
	assert_true(is_valid(&c[0], 0));
	assert_true(is_valid(&c[1], 2));
}

static void newer_home(void **state)
{
	(void)state;
	told(0);
}

static void newer_node(void **state)
{
	(void)state;
	told(1);
}

/*
 * A home that does not understand that a life goes on has not taken it so: its answer makes no
 * lease longer, and the lock is another one's when it is not valid any more.
 */
static void not_renewed(void **state)
{
	uint32_t h[2];
	unsigned int i;

	(void)state;
	h[0] = lock_at(&c[0], 0, "l", 0);
	h[1] = lock_at(&c[1], 0, "l", 0);
	assert_int_equal(acquire(1, h[1]), 0);
	pass(3 * LEASE);
	assert_true(is_valid(&c[1], 0));
	w.node[0].newer = 1;
	for (i = 0; acquire(0, h[0]); i++) {
		assert_true(i < 100);
		pass(50);
	}
	assert_true(i * 50 >= LEASE / 2);
	assert_false(is_valid(&c[1], 0));
	assert_true(place_of(&c[1], 0)->lost);
	/* When both are of one version again its node begins anew. */
	w.node[0].newer = 0;
	link_set(0, 1, true);
	pass(PATIENCE);
	h[1] = lock_at(&c[1], 1, "l", 0);
	assert_int_equal(acquire(1, h[1]), -EAGAIN);
	assert_true(is_valid(&c[0], 0));
}

#define BED(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

static const struct CMUnitTest tests[] = {
	BED(newer_home), BED(newer_node), BED(not_renewed),
};

UNIT_MAIN_ALONE(tests)
