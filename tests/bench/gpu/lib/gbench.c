// SPDX-License-Identifier: MIT OR GPL-2.0
#include "gbench.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPARE_CPUS	2U	/* for the program's own thread and the runtime's */

void b_die(const char *file, int line, const char *what, const char *why)
{
	fprintf(stderr, "%s:%d: %s failed%s%s\n", file, line, what, why ? ": " : "",
		why ? why : "");
	exit(1);
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t b_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t b_thread_ns(pthread_t thread)
{
	clockid_t id;

	return pthread_getcpuclockid(thread, &id) ? 0 : clock_ns(id);
}

void b_sleep_ms(unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

/* Before the first pinning: the main thread's */
static const cpu_set_t *all_cpus(void)
{
	static cpu_set_t all;

	if (!CPU_COUNT(&all))
		b_require(!sched_getaffinity(0, sizeof(all), &all));
	return &all;
}

unsigned int b_cpus(void)
{
	return (unsigned int)CPU_COUNT(all_cpus());
}

void b_unpin(void)
{
	pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t), all_cpus());
}

void b_pin(unsigned int n)
{
	const cpu_set_t *all = all_cpus();
	cpu_set_t one;
	unsigned int i;

	n %= (unsigned int)CPU_COUNT(all);
	for (i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, all) && !n--)
			break;
	CPU_ZERO(&one);
	CPU_SET(i, &one);
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

void b_line(const char *name, ...)
{
	const char *key;
	va_list ap;

	printf("{\"name\": \"%s\"", name);
	va_start(ap, name);
	while ((key = va_arg(ap, const char *)))
		printf(", \"%s\": %.10g", key, va_arg(ap, double));
	va_end(ap);
	printf("}\n");
	fflush(stdout);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void b_quantiles(uint64_t *v, uint64_t n, struct b_quantiles *q)
{
	qsort(v, n, sizeof(*v), by_value);
	q->min = (double)v[0];
	q->p50 = (double)v[n / 2];
	q->p90 = (double)v[n * 9 / 10];
	q->p99 = (double)v[n * 99 / 100];
}

struct rgate_ring *b_ring(uint32_t slots, uint32_t slot_size)
{
	struct rgate_ring_opts o = {
		.sz = sizeof(o),
		.slots = slots,
		.slot_size = slot_size,
	};
	struct rgate_ring *ring = NULL;

	b_require(!rgate_ring_open_memfd(&ring, &o));
	return ring;
}

static bool stopped(const struct b_feed *f)
{
	return __atomic_load_n(&f->stop, __ATOMIC_RELAXED);
}

/* A ring, as one of the threads that publish its frames again sees it */
struct rearmed {
	struct rgate_view v;
	unsigned char *slots;
	__u64 *head;
	uint64_t *turn;		/* the batch whose end is published next */
	uint64_t next;		/* this thread's next batch */
	uint32_t group;		/* batches that a thread has in a row */
};

static uint64_t *seq_of(const struct rearmed *r, uint64_t b, uint32_t i)
{
	return (uint64_t *)(r->slots + (b * RGATE_BATCH + i) % r->v.nslots * r->v.slot_size);
}

/*
 * Publishes the next batch anew but for its end, if it was returned; false: not yet. Ends are
 * published by the group, in turn: who sees one will find all before it published.
 */
static bool rearm(struct rearmed *r, struct b_feed *f, uint32_t step)
{
	const uint64_t nb = r->v.nslots / RGATE_BATCH, lap = r->next / nb + 1;
	uint64_t b;
	uint32_t i;

	if (__atomic_load_n(&r->v.credits[r->next % nb], __ATOMIC_ACQUIRE) != lap - 1)
		return false;
	for (i = 0; i < RGATE_BATCH - 1; i++)
		__atomic_store_n(seq_of(r, r->next, i), lap, __ATOMIC_RELEASE);
	if (++r->next % r->group)
		return true;
	b = r->next - r->group;
	while (__atomic_load_n(r->turn, __ATOMIC_ACQUIRE) != b)
		if (stopped(f))
			return true;
	for (; b < r->next; b++)
		__atomic_store_n(seq_of(r, b, RGATE_BATCH - 1), b / nb + 1, __ATOMIC_RELEASE);
	__atomic_store_n(r->head, b * RGATE_BATCH, __ATOMIC_RELEASE);
	__atomic_store_n(r->turn, b, __ATOMIC_RELEASE);
	r->next += (uint64_t)(step - 1) * r->group;
	return true;
}

/* Rings are divided among threads, or threads among rings */
static void *rearm_main(void *arg)
{
	struct b_feeder *me = arg;
	struct b_feed *f = me->feed;
	uint32_t step = f->threads / f->rings, first = me->index, n = 0, i;
	struct rearmed rearmed[B_RINGS];

	b_pin(me->cpu);
	if (!step)
		step = 1;
	for (i = 0; i < f->rings; i++) {
		struct rearmed *r = &rearmed[n];
		uint64_t batches;

		if (f->threads >= f->rings ? i != first % f->rings : i % f->threads != first)
			continue;
		rgate_ring_view(f->ring[i], &r->v);
		r->slots = rgate_ring_slots_rw(f->ring[i]);
		r->head = &f->p[i].prod->head;
		r->turn = &f->turn[i].batch;
		/* one lap was published already; it is a multiple of what all threads have in a row */
		batches = r->v.nslots / RGATE_BATCH;
		r->group = 8;
		while (r->group > 1 && r->group * step * 4 > batches)
			r->group /= 2;
		r->next = batches + (f->threads >= f->rings ? first / f->rings : 0) * r->group;
		n++;
	}
	while (!stopped(f)) {
		uint32_t idle = 0;

		for (i = 0; i < n; i++)
			idle += !rearm(&rearmed[i], f, step);
		if (idle == n)
			__builtin_ia32_pause();
	}
	return NULL;
}

static void fill(struct rgate_producer *p, uint32_t size, uint64_t n)
{
	struct rgate_slot *s = rgate_producer_reserve(p);
	uint64_t *w;
	uint32_t i;

	b_require(s);
	w = rgate_producer_data(s);
	for (i = 0; i < (size + 7) / 8; i++)
		w[i] = n * 0x9e3779b97f4a7c15ULL + i;
	rgate_producer_fill(p, s, size, size);
	s->flags = RGATE_SLOT_HASH;
	s->hash = (uint32_t)(n * 0x9e3779b1U) >> 8;
	rgate_producer_publish(p);
}

static void *produce_main(void *arg)
{
	static _Thread_local uint64_t frame[RGATE_SLOT_SIZE_MAX / 8];
	struct b_feeder *me = arg;
	struct b_feed *f = me->feed;
	struct rgate_producer *p = &f->p[me->index];
	const uint32_t size = f->size;

	b_pin(me->cpu);
	memset(frame, 0x5a, size);
	while (!stopped(f)) {
		struct rgate_slot *s = rgate_producer_reserve(p);

		if (!s) {
			__builtin_ia32_pause();
			continue;
		}
		frame[0]++;
		memcpy(rgate_producer_data(s), frame, size);
		rgate_producer_fill(p, s, size, size);
		rgate_producer_publish(p);
	}
	return NULL;
}

void b_feed_open(struct b_feed *f, enum b_mode mode, uint32_t rings, uint32_t slots,
		 uint32_t slot_size, uint32_t size)
{
	uint32_t r, i;

	b_require(rings <= B_RINGS && size <= slot_size - RGATE_SLOT_HDR);
	memset(f, 0, sizeof(*f));
	f->mode = mode;
	f->rings = rings;
	f->size = size;
	for (r = 0; r < rings; r++) {
		f->ring[r] = b_ring(slots, slot_size);
		b_require(!rgate_producer_init(&f->p[r], f->ring[r]));
		for (i = 0; mode == B_REARM && i < slots; i++)
			fill(&f->p[r], size, i);
		rgate_producer_flush(&f->p[r]);
	}
}

void b_feed_start(struct b_feed *f, uint32_t threads)
{
	uint32_t most = b_cpus() > SPARE_CPUS ? b_cpus() - SPARE_CPUS : 1, n, i;

	n = threads ? threads : most;
	if (f->mode == B_PRODUCE) {
		n = f->rings;
	} else if (n >= f->rings) {
		/* each ring as many, a power of two so that they divide its batches evenly */
		uint32_t each = 1;

		while (each * 2 * f->rings <= n)
			each *= 2;
		n = each * f->rings;
	}
	f->threads = n;
	for (i = 0; i < f->rings; i++) {
		struct rgate_view v;

		rgate_ring_view(f->ring[i], &v);
		f->turn[i].batch = v.nslots / RGATE_BATCH;
	}
	for (i = 0; i < n; i++) {
		f->feeder[i] = (struct b_feeder){ f, i, i + SPARE_CPUS };
		b_require(!pthread_create(&f->thread[i], NULL, f->mode == B_REARM ? rearm_main :
					  produce_main, &f->feeder[i]));
	}
	f->running = n;
}

void b_feed_stop(struct b_feed *f)
{
	__atomic_store_n(&f->stop, true, __ATOMIC_RELAXED);
	while (f->running)
		pthread_join(f->thread[--f->running], NULL);
}

void b_feed_close(struct b_feed *f)
{
	uint32_t r;

	b_feed_stop(f);
	for (r = 0; r < f->rings; r++) {
		rgate_producer_fini(&f->p[r]);
		rgate_ring_close(f->ring[r]);
	}
}
