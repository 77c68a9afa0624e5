// SPDX-License-Identifier: MIT OR GPL-2.0
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_cluster.h>

void bench_die(int err, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	if (err)
		fprintf(stderr, ": %s", strerror(err < 0 ? -err : err));
	fputc('\n', stderr);
	exit(1);
}

const uint8_t *bench_key(unsigned int id)
{
	static uint8_t keys[RGATE_NODES_MAX][RGATE_KEY_LEN];

	return memset(keys[id], 'a' + (int)id, RGATE_KEY_LEN);
}

size_t bench_public_keys(char *text, size_t at, size_t cap, unsigned int n)
{
	char base64[RGATE_KEY_TEXT];
	uint8_t public[RGATE_KEY_LEN];
	unsigned int i;
	int err;

	for (i = 0; i < n; i++) {
		err = rgate_key_public(public, bench_key(i));
		if (err)
			bench_die(-err, "a public key");
		rgate_key_to_text(base64, public);
		at += (size_t)snprintf(text + at, cap - at, "public-key %u %s\n", i, base64);
		if (at >= cap)
			bench_die(0, "the cluster's text is too long");
	}
	return at;
}

double bench_ticks_ns(void)
{
	static double per_tick;
	uint64_t n0, n1, t0, t1;

	if (per_tick != 0.0)
		return per_tick;
	n0 = bench_now_ns();
	t0 = bench_ticks();
	do {
		n1 = bench_now_ns();
	} while (n1 - n0 < 20000000);
	t1 = bench_ticks();
	per_tick = (double)(n1 - n0) / (double)(t1 - t0);
	return per_tick;
}

/* What the process was allowed at first: a later pin narrows it */
static const cpu_set_t *allowed(void)
{
	static cpu_set_t set;
	static bool known;

	if (!known && sched_getaffinity(0, sizeof(set), &set))
		bench_die(errno, "sched_getaffinity");
	known = true;
	return &set;
}

unsigned int bench_cpus(void)
{
	return (unsigned int)CPU_COUNT(allowed());
}

int bench_cpu(unsigned int i)
{
	const cpu_set_t *set = allowed();
	int cpu;

	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, set) && i-- == 0)
			return cpu;
	return -1;
}

void bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_die(errno, "cannot pin to CPU %d", cpu);
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_quantile(double *v, size_t n, double p)
{
	double at;
	size_t i;

	if (!n)
		return 0.0;
	qsort(v, n, sizeof(*v), cmp_double);
	at = p * (double)(n - 1);
	i = (size_t)at;
	if (i + 1 >= n)
		return v[n - 1];
	return v[i] + (at - (double)i) * (v[i + 1] - v[i]);
}

double bench_load(void)
{
	double l;

	return getloadavg(&l, 1) == 1 ? l : -1.0;
}

static void __attribute__((noreturn)) usage(const char *name)
{
	fprintf(stderr, "usage: %s [-r ROUNDS] [-t MS] [-o FILE.json]\n", name);
	exit(2);
}

void bench_start(int argc, char **argv, unsigned int cpu, struct bench_opts *o)
{
	int c;

	while ((c = getopt(argc, argv, "r:t:o:")) != -1) {
		switch (c) {
		case 'r':
			o->rounds = (unsigned int)atoi(optarg);
			break;
		case 't':
			o->ms = (unsigned int)atoi(optarg);
			break;
		case 'o':
			o->json = fopen(optarg, "w");
			if (!o->json)
				bench_die(errno, "%s", optarg);
			break;
		default:
			usage(argv[0]);
		}
	}
	if (o->rounds < 1 || o->rounds > BENCH_ROUNDS_MAX || o->ms < 1)
		bench_die(EINVAL, "-r 1 to %d, -t 1 or more", BENCH_ROUNDS_MAX);
	if (!o->cpus)
		o->cpus = 2;
	if (bench_cpus() < o->cpus)
		bench_die(0, "needs %u CPUs", o->cpus);
	bench_pin(bench_cpu(cpu));
}

void bench_json_begin(const struct bench_opts *o, double load)
{
	if (o->json)
		fprintf(o->json, "{\"cpus\":%u,\"load\":%.2f,\"rounds\":%u,\"rates\":[",
			bench_cpus(), load, o->rounds);
}

void bench_finish(struct bench_opts *o)
{
	if (!o->json)
		return;
	fprintf(o->json, "}\n");
	if (fclose(o->json))
		bench_die(errno, "writing the JSON file");
}
