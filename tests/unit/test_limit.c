// SPDX-License-Identifier: MIT OR GPL-2.0
/* How often something may be: so many times at once, then one each so long. */
#include "unit.h"

#include "limit.h"

#define EACH	1000

static unsigned int swallowed;

/* So many of @tries pass at @now */
static unsigned int passed(struct limit *l, unsigned int tries, uint64_t now)
{
	unsigned int i, n = 0;

	for (i = 0; i < tries; i++)
		n += limit_pass(l, 4, EACH, now, &swallowed);
	return n;
}

static void one_burst(void **state)
{
	struct limit l = { 0 };

	(void)state;
	swallowed = 99;
	assert_int_equal(passed(&l, 1, 500), 1);
	assert_int_equal(swallowed, 0);
	assert_int_equal(passed(&l, 3, 500), 3);
	assert_int_equal(passed(&l, 5, 500), 0);
	/* not before the time of one has passed, and then one alone */
	assert_int_equal(passed(&l, 1, 500 + EACH - 1), 0);
	assert_int_equal(swallowed, 0);
	assert_int_equal(passed(&l, 2, 500 + EACH), 1);
	/* six before it, and the seventh is for the next one to tell */
	assert_int_equal(swallowed, 6);
	assert_int_equal(passed(&l, 1, 500 + 2 * EACH), 1);
	assert_int_equal(swallowed, 1);
	assert_int_equal(passed(&l, 1, 500 + 3 * EACH), 1);
	assert_int_equal(swallowed, 0);
}

/* The part of a time that is over is not lost, and not given twice. */
static void parts(void **state)
{
	struct limit l = { 0 };
	uint64_t now = 500;
	unsigned int i, n = 0;

	(void)state;
	assert_int_equal(passed(&l, 4, now), 4);
	for (i = 0; i < 100; i++) {
		now += EACH * 3 / 4;
		n += passed(&l, 1, now);
	}
	assert_int_equal(n, 75);
}

/* What was not done has not been passed. */
static void back(void **state)
{
	struct limit l = { 0 };
	unsigned int i;

	(void)state;
	for (i = 0; i < 20; i++) {
		assert_int_equal(passed(&l, 1, 500), 1);
		limit_back(&l);
	}
	assert_int_equal(passed(&l, 5, 500), 4);
	limit_back(&l);
	assert_int_equal(passed(&l, 2, 500), 1);
}

/* As many as were asked for are free again after their time, and never more */
static void refill(void **state)
{
	struct limit l = { 0 };

	(void)state;
	assert_int_equal(passed(&l, 4, 500), 4);
	assert_int_equal(passed(&l, 9, 500 + 3 * EACH), 3);
	assert_int_equal(passed(&l, 1, 500 + 4 * EACH), 1);
	assert_int_equal(passed(&l, 9, 500 + 8 * EACH), 4);
	assert_int_equal(passed(&l, 9, 500 + 1000 * EACH), 4);
	/* a full one does not get fuller */
	assert_int_equal(passed(&l, 1, 500 + 1004 * EACH), 1);
	assert_int_equal(passed(&l, 9, 500 + 1008 * EACH), 4);
	assert_int_equal(passed(&l, 9, 500 + 1010 * EACH), 2);
	/* long after: the number of times does not fit an int */
	assert_int_equal(passed(&l, 9, 500 + EACH * (1ULL << 32)), 4);
}

static void two(void **state)
{
	struct limit a = { 0 }, b = { 0 };

	(void)state;
	assert_int_equal(passed(&a, 9, 500), 4);
	assert_int_equal(passed(&b, 1, 500), 1);
	assert_int_equal(swallowed, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(one_burst),
	cmocka_unit_test(parts),
	cmocka_unit_test(refill),
	cmocka_unit_test(back),
	cmocka_unit_test(two),
};

UNIT_MAIN_ALONE(tests)
