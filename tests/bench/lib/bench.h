/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the benchmarks share: clocks, pinning, medians. */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static inline uint64_t bench_clock_ns(clockid_t clk)
{
	struct timespec t;

	clock_gettime(clk, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static inline uint64_t bench_now_ns(void)
{
	return bench_clock_ns(CLOCK_MONOTONIC);
}

/* A cheap clock for single events; bench_ticks_ns() makes it nanoseconds */
static inline uint64_t bench_ticks(void)
{
#if defined(__x86_64__)
	unsigned int aux;

	return __rdtscp(&aux);
#else
	return bench_now_ns();
#endif
}

static inline void bench_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

/* Nanoseconds a tick; measured once, over 20 ms */
double bench_ticks_ns(void);

/* The @i-th CPU this process may run on, or -1; call one of both before a pin */
int bench_cpu(unsigned int i);
unsigned int bench_cpus(void);

/* Pins the calling thread; exits with a message when that fails */
void bench_pin(int cpu);

/* Sorts @v. @p from 0 to 1. */
double bench_quantile(double *v, size_t n, double p);
static inline double bench_median(double *v, size_t n)
{
	return bench_quantile(v, n, 0.5);
}

/* One-minute load average, -1 if unknown */
double bench_load(void);

#define BENCH_ROUNDS_MAX	101

/* What the native benchmarks are told: -r ROUNDS -t MS -o FILE.json */
struct bench_opts {
	unsigned int rounds;
	unsigned int ms;	/* about, a turn */
	unsigned int cpus;	/* needed; 0: two */
	FILE *json;		/* or NULL */
};

/* Reads the command line over the defaults in @o, asks for the CPUs and pins this
 * thread to the @cpu-th; exits where that cannot be */
void bench_start(int argc, char **argv, unsigned int cpu, struct bench_opts *o);

/* Begins the JSON object, up to the first entry of its list "rates"; ends it */
void bench_json_begin(const struct bench_opts *o, double load);
void bench_finish(struct bench_opts *o);

/* The private key of node @id, the same in all processes of a benchmark: 32 bytes */
const uint8_t *bench_key(unsigned int id);
/* Appends the lines of the public keys of nodes 0 to @n - 1 to a cluster's text; its length */
size_t bench_public_keys(char *text, size_t at, size_t cap, unsigned int n);

void __attribute__((noreturn, format(printf, 2, 3)))
bench_die(int err, const char *fmt, ...);

#endif
