// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/ringgate.h>

#include "bench.h"
#include "util.h"

#define SAMPLES_MAX	200000U
#define PAUSE_NS	500	/* between two samples: let the consumer settle */

struct run {
	const struct bench_opts *o;
	struct rgate_ring *ring;
	uint32_t size;
	atomic_bool stop;
	atomic_bool ready;	/* the consumer polls */
	int err;		/* consumer's, valid after join */
	uint64_t frames;
	uint64_t full;
	uint32_t *samples;	/* latency */

	/* samples taken; the producer polls it, so it has a line of its own */
	uint64_t seen __attribute__((aligned(64)));
};

static void relax(const struct run *r)
{
	if (r->o->yield)
		sched_yield();
#if defined(__x86_64__) || defined(__i386__)
	else
		__builtin_ia32_pause();
#endif
}

static void pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/*
 * First and last 8 bytes of a frame hold its number. What is counted here and in
 * the producer is kept apart until the end: it would share a cache line.
 */
static void *consume_rate(void *arg)
{
	static _Thread_local unsigned char copy[RGATE_SLOT_SIZE_MAX];
	struct run *r = arg;
	const uint32_t size = r->size;
	struct rgate_consumer c;
	uint64_t first, last, n = 0;
	int err;

	pin(r->o->cpu[1]);
	err = rgate_consumer_init(&c, r->ring, NULL);
	r->ready = true;
	while (!err) {
		const struct rgate_slot *s = rgate_consumer_next(&c);

		if (!s) {
			if (atomic_load_explicit(&r->stop, memory_order_acquire) &&
			    !rgate_consumer_next(&c))
				break;
			relax(r);
			continue;
		}
		memcpy(copy, rgate_slot_data(s), size);
		memcpy(&first, copy, 8);
		memcpy(&last, copy + size - 8, 8);
		if (s->len != size || first != n || last != n)
			err = -EBADMSG;
		rgate_consumer_release(&c);
		n++;
	}
	r->frames = n;
	r->err = err;
	return NULL;
}

static int produce_rate(struct run *r, double *seconds)
{
	static unsigned char frame[RGATE_SLOT_SIZE_MAX];
	const uint32_t size = r->size;
	struct rgate_producer p;
	uint64_t n = 0, full = 0, t0, now;
	int err = rgate_producer_init(&p, r->ring);

	if (err)
		return err;
	while (!r->ready)
		relax(r);
	memset(frame, 0x5a, size);
	t0 = now = util_now();
	while (now - t0 < r->o->time_ns && !util_stop) {
		struct rgate_slot *s = rgate_producer_reserve(&p);

		if (!s) {
			full++;
			relax(r);
			now = util_now();
			continue;
		}
		memcpy(frame, &n, 8);
		memcpy(frame + size - 8, &n, 8);
		memcpy(rgate_producer_data(s), frame, size);
		rgate_producer_fill(&p, s, size, size);
		rgate_producer_publish(&p);
		if (!(++n & 1023))
			now = util_now();
	}
	*seconds = (util_now() - t0) / 1e9;
	r->full = full;
	rgate_producer_fini(&p);
	return 0;
}

static int start(struct run *r, void *(*consumer)(void *), pthread_t *thread)
{
	struct rgate_ring_opts ro = {
		.sz = sizeof(ro),
		.slots = r->o->slots,
		.slot_size = r->o->slot_size,
		.name = "bench",
	};
	int err = rgate_ring_open_memfd(&r->ring, &ro);

	if (err)
		return err;
	pin(r->o->cpu[0]);
	err = -pthread_create(thread, NULL, consumer, r);
	if (err)
		rgate_ring_close(r->ring);
	return err;
}

int bench_rate(const struct bench_opts *o, struct bench_rate *out)
{
	struct run r = { .o = o, .size = out->size };
	pthread_t thread;
	int err = start(&r, consume_rate, &thread);

	if (err)
		return err;
	err = produce_rate(&r, &out->seconds);
	atomic_store_explicit(&r.stop, true, memory_order_release);
	pthread_join(thread, NULL);
	rgate_ring_close(r.ring);
	out->frames = r.frames;
	out->full = r.full;
	return err ?: r.err;
}

static void *consume_latency(void *arg)
{
	struct run *r = arg;
	struct rgate_consumer c;
	uint64_t sent, now;

	pin(r->o->cpu[1]);
	r->err = rgate_consumer_init(&c, r->ring, NULL);
	r->ready = true;
	while (!r->err) {
		const struct rgate_slot *s = rgate_consumer_next(&c);

		if (!s) {
			if (atomic_load_explicit(&r->stop, memory_order_acquire))
				break;
			relax(r);
			continue;
		}
		now = util_now();
		memcpy(&sent, rgate_slot_data(s), 8);
		if (r->frames < SAMPLES_MAX)
			r->samples[r->frames] = now - sent < UINT32_MAX ?
						now - sent : UINT32_MAX;
		r->frames++;
		rgate_consumer_release(&c);
		__atomic_store_n(&r->seen, r->frames, __ATOMIC_RELEASE);
	}
	return NULL;
}

static int produce_latency(struct run *r)
{
	struct rgate_producer p;
	uint64_t n, t0, now;
	int err = rgate_producer_init(&p, r->ring);

	if (err)
		return err;
	while (!r->ready)
		relax(r);
	if (r->err)	/* the consumer did not begin; set before ready */
		goto fini;
	t0 = util_now();
	for (n = 1; n <= SAMPLES_MAX && !util_stop; n++) {
		struct rgate_slot *s = rgate_producer_reserve(&p);

		if (!s) {
			err = -ENOBUFS;
			break;
		}
		rgate_producer_fill(&p, s, 64, 64);
		now = util_now();
		memcpy(rgate_producer_data(s), &now, 8);
		rgate_producer_publish(&p);
		while (__atomic_load_n(&r->seen, __ATOMIC_ACQUIRE) < n)
			relax(r);
		now = util_now();
		if (now - t0 >= r->o->time_ns)
			break;
		while (util_now() - now < PAUSE_NS)
			relax(r);
	}
fini:
	rgate_producer_fini(&p);
	return err;
}

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Median of two readings in a row */
static uint32_t clock_cost(void)
{
	uint32_t v[1001];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(v); i++) {
		uint64_t t = util_now();

		v[i] = util_now() - t;
	}
	qsort(v, ARRAY_SIZE(v), sizeof(*v), by_value);
	return v[ARRAY_SIZE(v) / 2];
}

static void percentiles(struct bench_latency *l, uint32_t *v, uint64_t n)
{
	l->samples = n;
	if (!n)
		return;
	qsort(v, n, sizeof(*v), by_value);
	l->p50 = v[n / 2];
	l->p90 = v[n * 9 / 10];
	l->p99 = v[n * 99 / 100];
	l->p999 = v[n * 999 / 1000];
	l->max = v[n - 1];
}

int bench_latency(const struct bench_opts *o, struct bench_latency *l)
{
	struct run r = { .o = o, .size = 64 };
	pthread_t thread;
	int err;

	r.samples = malloc(SAMPLES_MAX * sizeof(*r.samples));
	if (!r.samples)
		return -ENOMEM;
	err = start(&r, consume_latency, &thread);
	if (err)
		goto free;
	err = produce_latency(&r);
	atomic_store_explicit(&r.stop, true, memory_order_release);
	pthread_join(thread, NULL);
	rgate_ring_close(r.ring);
	err = err ?: r.err;
	l->clock = clock_cost();
	percentiles(l, r.samples, r.frames < SAMPLES_MAX ? r.frames : SAMPLES_MAX);
free:
	free(r.samples);
	return err;
}
