// SPDX-License-Identifier: MIT OR GPL-2.0
/* What `ringgate bench` measures with: what came out is what went in, and is in order. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "bench.h"

static struct bench_opts opts(void)
{
	return (struct bench_opts){
		.slots = 64, .slot_size = 256, .cpu = { -1, -1 }, .yield = true,
		.time_ns = 2000000,
	};
}

static void rate(void **state)
{
	struct bench_opts o = opts();
	struct bench_rate r = { .size = 100 };

	(void)state;
	assert_int_equal(bench_rate(&o, &r), 0);
	assert_true(r.frames >= 64);
	assert_true(r.seconds >= 0.002);
	/* A ring that cannot be */
	o.slots = 3;
	assert_int_equal(bench_rate(&o, &r), -EINVAL);
}

static void latency(void **state)
{
	struct bench_opts o = opts();
	struct bench_latency l;

	(void)state;
	memset(&l, 0xff, sizeof(l));
	assert_int_equal(bench_latency(&o, &l), 0);
	assert_true(l.samples > 0 && l.samples <= 200000);
	assert_true(l.p50 > 0 && l.p50 <= l.p90 && l.p90 <= l.p99 && l.p99 <= l.p999 &&
		    l.p999 <= l.max);
	assert_true(l.max < UINT32_MAX);
	o.slots = 3;
	assert_int_equal(bench_latency(&o, &l), -EINVAL);
}

/* Nothing of it is left. */
static void leaves_nothing(void **state)
{
	const unsigned int fds = unit_entries("/proc/self/fd");

	rate(state);
	latency(state);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(rate), cmocka_unit_test(latency), cmocka_unit_test(leaves_nothing),
};

UNIT_MAIN(tests)
