// SPDX-License-Identifier: MIT OR GPL-2.0
/* What `ringgate bench` says of measurements, which are the test's own. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "bench.h"
#include "cli.h"

static int rate_err, latency_err;

int __wrap_bench_rate(const struct bench_opts *o, struct bench_rate *r);
int __wrap_bench_rate(const struct bench_opts *o, struct bench_rate *r)
{
	fprintf(stderr, "rate %u slots %u of %u, CPUs %d %d, yield %u, %llu ns\n", r->size,
		o->slots,
		o->slot_size, o->cpu[0], o->cpu[1], o->yield, (unsigned long long)o->time_ns);
	r->frames = 1000ULL * r->size;
	r->seconds = r->size == 1500 ? 0 : 0.5;
	r->full = 7000;
	return rate_err;
}

int __real_bench_rate(const struct bench_opts *o, struct bench_rate *r);
int __real_bench_latency(const struct bench_opts *o, struct bench_latency *l);

int __wrap_bench_latency(const struct bench_opts *o, struct bench_latency *l);
int __wrap_bench_latency(const struct bench_opts *o, struct bench_latency *l)
{
	(void)o;
	*l = (struct bench_latency){ 11, 12, 13, 14, 15, 16, 17 };
	return latency_err;
}

/* What the process may use */
static cpu_set_t may;
static bool really;

int __real_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	/* the library asks, too, when something is really measured */
	if (really)
		return __real_sched_getaffinity(pid, size, set);
	assert_int_equal(pid, 0);
	assert_int_equal(size, sizeof(may));
	*set = may;
	return 0;
}

static int begin(void **state)
{
	CPU_ZERO(&may);
	CPU_SET(0, &may);
	return cli_begin(state);
}

/* The first two that there are, or twice the only one */
static void cpus(void **state)
{
	(void)state;
	CPU_ZERO(&may);
	CPU_SET(3, &may);
	cli_says("bench -s 64", 0, "producer on CPU 3, consumer on CPU 3\n");
	cli_says("bench -s 64", 0, "share one CPU");
	CPU_SET(5, &may);
	CPU_SET(7, &may);
	cli_says("bench -s 64", 0, "producer on CPU 3, consumer on CPU 5\n");
	cli_says("bench -s 64", 0, "CPUs 3 5, yield 0");
	cli_says("bench --cpus 7,4", 1, "this process may not use CPUs 7 and 4\n");
}

static void text(void **state)
{
	(void)state;
	cli_is("bench --cpus 0,0", 0,
	       "ring of 4096 slots of 2048 bytes, producer on CPU 0, consumer on CPU 0\n\n"
	       "BYTES  FRAMES/S  BYTES/S  NS/FRAME   FULL\n"
	       "   64      128k    8.19M    7812.5  7.00k\n"
	       "  256      512k     131M    1953.1  7.00k\n"
	       " 1500         0        0       0.0  7.00k\n\n"
	       "hand-over of one frame, ns over 11 samples: p50 12  p90 13  p99 14  p99.9 15  max 16  "
	       "(the clock itself: 17)\n",
	       "ringgate bench: producer and consumer share one CPU: the figures are those of the "
	       "scheduler\n"
	       "rate 64 slots 4096 of 2048, CPUs 0 0, yield 1, 1000000000 ns\n"
	       "rate 256 slots 4096 of 2048, CPUs 0 0, yield 1, 1000000000 ns\n"
	       "rate 1500 slots 4096 of 2048, CPUs 0 0, yield 1, 1000000000 ns\n");
	/* only what fits */
	cli_says("bench --cpus 0,0 --slot-size 512 -t 0.25", 0, "  256      512k     131M    1953.1  7.00k\n\n");
	cli_says("bench --cpus 0,0 --slots 64 -s 100 -t 0.25", 0,
		 "rate 100 slots 64 of 2048, CPUs 0 0, yield 1, 250000000 ns\n");
}

static void json(void **state)
{
	(void)state;
	cli_says("bench --cpus 0,0 -s 64 -j", 0,
		 "{\n  \"slots\": 4096,\n  \"slot_size\": 2048,\n  \"producer_cpu\": 0,\n"
		 "  \"consumer_cpu\": 0,\n  \"rates\": [\n    {\n      \"size\": 64,\n"
		 "      \"frames\": 64000,\n      \"seconds\": 0.500,\n"
		 "      \"frames_per_second\": 128000.000,\n      \"bytes_per_second\": 8192000.000,\n"
		 "      \"full\": 7000\n    }\n  ],\n  \"latency_ns\": {\n    \"samples\": 11,\n"
		 "    \"p50\": 12,\n    \"p90\": 13,\n    \"p99\": 14,\n    \"p99_9\": 15,\n"
		 "    \"max\": 16,\n    \"clock\": 17\n  }\n}\n");
}

static void fails(void **state)
{
	(void)state;
	rate_err = -EBADMSG;
	cli_says("bench --cpus 0,0", 1, "a frame came out of the ring other than it went in: this is a "
		 "fault, please report it\n");
	rate_err = -ENOMEM;
	cli_says("bench --cpus 0,0", 1, "cannot measure: Cannot allocate memory\n");
	rate_err = 0;
	latency_err = -EIO;
	cli_says("bench --cpus 0,0", 1, "cannot measure: Input/output error\n");
	latency_err = 0;
}

/* To which CPU a measurement sends its threads */
static pthread_t main_thread;
static int sent[2];		/* the main thread; the other one */
static unsigned int sendings;

int __wrap_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set);
int __wrap_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
	const unsigned int i = !pthread_equal(thread, main_thread);
	int cpu;

	assert_int_equal(size, sizeof(*set));
	assert_int_equal(CPU_COUNT(set), 1);
	for (cpu = 0; !CPU_ISSET(cpu, set); cpu++)
		;
	sent[i] = cpu;
	__atomic_add_fetch(&sendings, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Really measured: each thread on the CPU that it was told, or, for -1, where it likes */
static void measured(void **state)
{
	struct bench_opts o = { .slots = 64, .slot_size = 256, .cpu = { 1021, 1022 }, .yield = true,
				.time_ns = 2000000 };
	struct bench_latency l = { 0 };
	struct bench_rate r = { .size = 100 };

	(void)state;
	cli.still = false;
	really = true;
	main_thread = pthread_self();
	assert_int_equal(__real_bench_rate(&o, &r), 0);
	assert_int_equal(sendings, 2);
	assert_int_equal(sent[0], 1021);
	assert_int_equal(sent[1], 1022);
	assert_true(r.frames > 0);
	assert_true(r.seconds >= 0.002);
	o.cpu[0] = 1;
	o.cpu[1] = 0;
	assert_int_equal(__real_bench_latency(&o, &l), 0);
	assert_int_equal(sendings, 4);
	assert_int_equal(sent[0], 1);
	assert_int_equal(sent[1], 0);
	assert_true(l.samples > 0);
	assert_true(l.p50 <= l.p90 && l.p90 <= l.p99 && l.p99 <= l.p999 && l.p999 <= l.max);
	o.cpu[0] = o.cpu[1] = -1;
	assert_int_equal(__real_bench_rate(&o, &r), 0);
	assert_int_equal(sendings, 4);
	really = false;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, cli_end)
static const struct CMUnitTest tests[] = {
	TEST(text), TEST(json), TEST(fails), TEST(cpus), TEST(measured),
};

UNIT_MAIN(tests)
