// SPDX-License-Identifier: MIT OR GPL-2.0
/* Runs of grains against a map of which grain is whose; sizes and their classes. */
#include "unit.h"
#include "runs.h"
#include "sizeclass.h"

#include <stdlib.h>
#include <string.h>

#define GRAINS	1000
#define MOST	900

static struct rgate_runs runs;
static uint8_t owner[GRAINS];
static struct {
	uint32_t first, n;
} taken[MOST];
static unsigned int count;

/* Is there room for @n aligned grains? By looking at each place. */
static bool room(uint32_t n, uint32_t align, uint32_t phase)
{
	uint32_t at, i;

	for (at = 0; at + n <= GRAINS; at++) {
		if ((at + phase) % align)
			continue;
		for (i = 0; i < n && !owner[at + i]; i++)
			;
		if (i == n)
			return true;
	}
	return false;
}

static void check_sums(void)
{
	uint32_t i, run = 0, most = 0, free = 0;

	for (i = 0; i < GRAINS; i++) {
		run = owner[i] ? 0 : run + 1;
		free += !owner[i];
		most = run > most ? run : most;
	}
	assert_int_equal(runs.free, free);
	assert_int_equal(rgate_runs_largest(&runs), most);
}

static void try_take(uint64_t *rnd)
{
	const uint32_t n = 1 + (uint32_t)(unit_random(rnd) % (unit_random(rnd) % 8 ? 20 : 300));
	const uint32_t align = unit_random(rnd) % 4 ? 1 : 1U << unit_random(rnd) % 6;
	const uint32_t phase = (uint32_t)(unit_random(rnd) % 64);
	uint32_t first = rgate_runs_take(&runs, n, align, phase), i;

	if (first == RGATE_RUNS_NONE) {
		assert_false(room(n, align, phase));
		return;
	}
	assert_true(first + n <= GRAINS);
	assert_int_equal((first + phase) % align, 0);
	for (i = first; i < first + n; i++)
		assert_int_equal(owner[i]++, 0);
	taken[count].first = first;
	taken[count++].n = n;
}

static void give_one(unsigned int i)
{
	rgate_runs_give(&runs, taken[i].first);
	memset(owner + taken[i].first, 0, taken[i].n);
	taken[i] = taken[--count];
}

static void against_a_map(void **state)
{
	uint64_t rnd = 0x72756e73;
	unsigned int k, rounds = unit_rounds(200000);

	(void)state;
	assert_int_equal(rgate_runs_init(&runs, GRAINS), 0);
	for (k = 0; k < rounds; k++) {
		if (unit_random(&rnd) % 2 && count < MOST)
			try_take(&rnd);
		else if (count)
			give_one((unsigned int)(unit_random(&rnd) % count));
		if (k % 16 == 0)
			check_sums();
	}
	while (count)
		give_one(0);
	/* all is one run again */
	assert_int_equal(rgate_runs_largest(&runs), GRAINS);
	assert_int_equal(rgate_runs_take(&runs, GRAINS, 1, 0), 0);
	assert_int_equal(runs.free, 0);
	assert_int_equal(rgate_runs_largest(&runs), 0);
	rgate_runs_fini(&runs);
}

static void edges(void **state)
{
	uint32_t a, b;

	(void)state;
	assert_int_equal(rgate_runs_init(&runs, 1), 0);
	assert_int_equal(rgate_runs_take(&runs, 0, 1, 0), RGATE_RUNS_NONE);
	assert_int_equal(rgate_runs_take(&runs, 2, 1, 0), RGATE_RUNS_NONE);
	assert_int_equal(rgate_runs_take(&runs, UINT32_MAX, 1, 0), RGATE_RUNS_NONE);
	assert_int_equal(rgate_runs_take(&runs, 1, 1, 0), 0);
	assert_int_equal(rgate_runs_take(&runs, 1, 1, 0), RGATE_RUNS_NONE);
	rgate_runs_give(&runs, 0);
	assert_int_equal(rgate_runs_take(&runs, 1, 1, 0), 0);
	rgate_runs_fini(&runs);
	/* 4096 of 32 grains are 131072 grains, without remainder */
	assert_int_equal(rgate_runs_init(&runs, 131072), 0);
	for (a = 0; (b = rgate_runs_take(&runs, 32, 1, 0)) != RGATE_RUNS_NONE; a++)
		assert_int_equal(b % 32, 0);
	assert_int_equal(a, 4096);
	assert_int_equal(runs.free, 0);
	rgate_runs_fini(&runs);
}

static void classes(void **state)
{
	size_t before = 0, size;
	unsigned int i;

	(void)state;
	for (i = 0; i < RGATE_CLASSES; i++) {
		size = rgate_class_size(i);
		assert_true(size > before);
		assert_int_equal(size % 64, 0);
		/* the class of all sizes from there to here */
		assert_int_equal(rgate_class_of(before + 1), i);
		assert_int_equal(rgate_class_of(size), i);
		/* little is lost to rounding */
		if (before >= 256)
			assert_true((size - before - 1) * 5 < size * 2);
		assert_int_equal(rgate_slab_size(size) % RGATE_GRAIN, 0);
		assert_true(rgate_slab_size(size) >= size);
		assert_true(rgate_slab_size(size) % size <= rgate_slab_size(size) / 8);
		before = size;
	}
	assert_int_equal(before, RGATE_CLASS_MAX);
	for (size = 64; size <= RGATE_CLASS_MAX; size *= 2)
		assert_int_equal(rgate_class_size(rgate_class_of(size)), size);
	assert_true(rgate_class_of(RGATE_CLASS_MAX + 1) >= RGATE_CLASSES);
	assert_true(rgate_class_of(SIZE_MAX) >= RGATE_CLASSES);
	assert_true(rgate_class_of(0) >= RGATE_CLASSES);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(against_a_map),
	cmocka_unit_test(edges),
	cmocka_unit_test(classes),
};

UNIT_MAIN_ALONE(tests)
