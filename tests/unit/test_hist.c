// SPDX-License-Identifier: MIT OR GPL-2.0
/* Histograms of durations, beside the sorted values themselves. */
#include "unit.h"
#include "hist.h"

#include <stdlib.h>
#include <string.h>

#define VALUES 20000U

static uint64_t values[VALUES];

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Never too low, and at most 1/32 too high */
static void percentiles(void **state)
{
	static const uint32_t ppm[] = { 0, 1, 100000, 500000, 900000, 990000, 999000, 999999,
					1000000 };
	static struct rgate_hist h;
	uint64_t seed = 5, sum, got, want, rank;
	unsigned int round, i;

	(void)state;
	for (round = 1; round < 40; round++) {
		const unsigned int n = round < 10 ? round : VALUES / 40 * round;

		memset(&h, 0, sizeof(h));
		for (i = 0, sum = 0; i < n; i++) {
			values[i] = unit_random(&seed) >> (24 + unit_random(&seed) % 40);
			rgate_hist_add(&h, values[i]);
			sum += values[i];
		}
		qsort(values, n, sizeof(values[0]), by_value);
		assert_int_equal(h.count, n);
		assert_int_equal(h.sum, sum);
		assert_int_equal(h.min, values[0]);
		assert_int_equal(h.max, values[n - 1]);
		for (i = 0; i < ARRAY_LEN(ppm); i++) {
			rank = ((uint64_t)n * ppm[i] + 999999) / 1000000;
			want = values[rank ? rank - 1 : 0];
			got = rgate_hist_at(&h, ppm[i]);
			assert_true(got >= want && got <= want + want / 32);
		}
	}
}

static void edges(void **state)
{
	static struct rgate_hist h;
	uint64_t v;

	(void)state;
	memset(&h, 0, sizeof(h));
	assert_int_equal(rgate_hist_at(&h, 500000), 0);
	/* each value up to 31 by itself, each power of two at the beginning of a bucket */
	for (v = 0; v < 64; v++) {
		memset(&h, 0, sizeof(h));
		rgate_hist_add(&h, v);
		rgate_hist_add(&h, 1ULL << 40);
		assert_int_equal(rgate_hist_at(&h, 500000), v);
	}
	memset(&h, 0, sizeof(h));
	rgate_hist_add(&h, UINT64_MAX);
	rgate_hist_add(&h, 1ULL << 41);
	assert_true(rgate_hist_at(&h, 500000) == UINT64_MAX);
	h.bucket[7] = UINT32_MAX;
	rgate_hist_add(&h, 7);
	assert_int_equal(h.bucket[7], UINT32_MAX);
}

static void merged(void **state)
{
	static struct rgate_hist a, b, all, none;
	uint64_t seed = 9, v;
	unsigned int i;

	(void)state;
	for (i = 0; i < 5000; i++) {
		v = unit_random(&seed) >> 30;
		rgate_hist_add(i % 3 ? &a : &b, v);
		rgate_hist_add(&all, v);
	}
	rgate_hist_merge(&a, &b);
	assert_memory_equal(&a, &all, sizeof(a));
	rgate_hist_merge(&a, &none);
	assert_memory_equal(&a, &all, sizeof(a));
	rgate_hist_merge(&none, &all);
	assert_memory_equal(&none, &all, sizeof(a));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(percentiles),
	cmocka_unit_test(edges),
	cmocka_unit_test(merged),
};

UNIT_MAIN_ALONE(tests)
