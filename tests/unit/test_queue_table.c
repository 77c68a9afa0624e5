// SPDX-License-Identifier: MIT OR GPL-2.0
/* Kept tasks by number: all are found, and none waits for all others when the table grows. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "keep.h"

#define MANY	5000U

static struct kept_queue q;
static struct kept *t;
static bool no_memory;

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_realloc(void *p, size_t size)
{
	return no_memory ? NULL : __real_realloc(p, size);
}

static int setup(void **state)
{
	(void)state;
	memset(&q, 0, sizeof(q));
	t = calloc(MANY, sizeof(*t));
	assert_non_null(t);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(q.table);
	free(t);
	return 0;
}

static void add(uint32_t i, uint64_t of, uint64_t id)
{
	assert_int_equal(keep_grow(&q), 0);
	assert_int_equal(keep_place(&q, &t[i], of, id), 0);
	q.n++;
}

/* The longest chain */
static uint32_t longest(void)
{
	uint32_t i, n, most = 0;
	const struct kept *k;

	for (i = 0; i < q.places; i++) {
		for (n = 0, k = q.table[i]; k; k = k->chain)
			n++;
		most = n > most ? n : most;
	}
	return most;
}

static void grows(void **state)
{
	uint32_t i, k, places = 0;

	(void)state;
	assert_null(keep_find(&q, 1, 1));
	for (i = 0; i < MANY; i++) {
		add(i, 1, 1 + i);
		/* by one place each time */
		assert_in_range(q.places, places, places ? places + 1 : 64);
		assert_true(q.places >= q.n);
		places = q.places;
		if (i % 97)
			continue;
		for (k = 0; k <= i; k++)
			assert_ptr_equal(keep_find(&q, 1, 1 + k), &t[k]);
		assert_null(keep_find(&q, 1, 2 + i));
		assert_in_range(longest(), 1, 2);
	}
}

/* A home that lies chooses numbers that would all be in one place. */
static void chosen(void **state)
{
	static const unsigned int by[] = { 13, 20, 27 };
	uint64_t secret = 7;
	uint32_t i, k;

	(void)state;
	q.secret = unit_random(&secret);
	for (i = 0; i < MANY - MANY % 3; i++)
		add(i, 1, (uint64_t)(1 + i / 3) << by[i % 3] | i % 3);
	assert_in_range(longest(), 1, 20);
	for (k = 0; k < i; k++)
		assert_ptr_equal(keep_find(&q, 1, (uint64_t)(1 + k / 3) << by[k % 3] | k % 3),
				 &t[k]);
}

/* Numbers of another queue are others; one that has none any more is not found. */
static void leave(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 1000; i++)
		add(i, 1 + i % 2, 1 + i / 2);
	for (i = 0; i < 1000; i++)
		assert_ptr_equal(keep_find(&q, 1 + i % 2, 1 + i / 2), &t[i]);
	assert_int_equal(keep_place(&q, &t[0], 2, 7), -EEXIST);
	assert_ptr_equal(keep_find(&q, 1, 1), &t[0]);
	for (i = 0; i < 1000; i += 3)
		keep_displace(&q, &t[i]);
	keep_displace(&q, &t[0]);
	for (i = 0; i < 1000; i++)
		assert_ptr_equal(keep_find(&q, 1 + i % 2, 1 + i / 2), i % 3 ? &t[i] : NULL);
	/* anew, by another number */
	assert_int_equal(keep_place(&q, &t[1], 5, 9), 0);
	assert_null(keep_find(&q, 2, 1));
	assert_ptr_equal(keep_find(&q, 5, 9), &t[1]);
	assert_int_equal(q.latest, 5);
}

/* Without memory it is slower; the first one has to be. */
static void without_memory(void **state)
{
	uint32_t i;

	(void)state;
	no_memory = true;
	assert_int_equal(keep_grow(&q), -ENOMEM);
	no_memory = false;
	for (i = 0; i < 64; i++)
		add(i, 1, 1 + i);
	no_memory = true;
	for (; i < 500; i++)
		add(i, 1, 1 + i);
	assert_int_equal(q.places, 64);
	no_memory = false;
	for (; i < 2000; i++)
		add(i, 1, 1 + i);
	for (i = 0; i < 2000; i++)
		assert_ptr_equal(keep_find(&q, 1, 1 + i), &t[i]);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(grows), TEST(chosen), TEST(leave), TEST(without_memory),
};

UNIT_MAIN_ALONE(tests)
