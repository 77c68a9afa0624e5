// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The bare loop: slots 2 KiB apart, one flag in each, nothing else. The
 * producer waits for 0, copies and stores 1; the consumer waits for 1, checks
 * and stores 0. With several consumers each takes every so-manieth batch.
 */
#include "mem.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define DATA_OFF 64U	/* the payload begins on a cache line, as in the ring */

struct bare {
	unsigned char *there;
	unsigned char *back;	/* for the way home of a ping */
};

static unsigned char *slots_new(void)
{
	void *p = mmap(NULL, (size_t)MEM_SLOTS * MEM_STRIDE,
		       PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		bench_die(errno, "mmap");
	return p;
}

static inline unsigned char *slot_at(unsigned char *slots, uint64_t i)
{
	return slots + (size_t)(i % MEM_SLOTS) * MEM_STRIDE;
}

static inline void slot_wait(unsigned char *slot, uint64_t want,
			     const struct mem_job *job)
{
	while (__atomic_load_n((uint64_t *)slot, __ATOMIC_ACQUIRE) != want)
		mem_idle(job);
}

static inline void slot_set(unsigned char *slot, uint64_t v)
{
	__atomic_store_n((uint64_t *)slot, v, __ATOMIC_RELEASE);
}

static void *bare_make(const struct mem_job *job)
{
	struct bare *b = calloc(1, sizeof(*b));

	(void)job;
	if (!b)
		bench_die(ENOMEM, "bare loop");
	b->there = slots_new();
	b->back = slots_new();
	return b;
}

static void bare_drop(void *ctx)
{
	struct bare *b = ctx;

	munmap(b->there, (size_t)MEM_SLOTS * MEM_STRIDE);
	munmap(b->back, (size_t)MEM_SLOTS * MEM_STRIDE);
	free(b);
}

static inline void put(unsigned char *slots, uint64_t i,
		       const struct mem_job *job)
{
	unsigned char *s = slot_at(slots, i);

	slot_wait(s, 0, job);
	mem_put(s + DATA_OFF, i, job->len);
	slot_set(s, 1);
}

static inline void take(unsigned char *slots, uint64_t i,
			const struct mem_job *job, struct mem_sum *sum)
{
	unsigned char *s = slot_at(slots, i);

	slot_wait(s, 1, job);
	mem_check(s + DATA_OFF, i, job->len, sum);
	slot_set(s, 0);
}

static void bare_produce(void *ctx, const struct mem_job *job)
{
	struct bare *b = ctx;
	uint64_t i;

	for (i = 0; i < job->n; i++)
		put(b->there, i, job);
}

static void bare_consume(void *ctx, const struct mem_job *job, uint32_t id,
			 struct mem_sum *sum)
{
	uint64_t i = (uint64_t)id * MEM_BATCH, end;
	struct bare *b = ctx;

	for (; i < job->n; i += (uint64_t)(job->consumers - 1) * MEM_BATCH)
		for (end = i + MEM_BATCH; i < end; i++)
			take(b->there, i, job, sum);
}

static void bare_ping(void *ctx, const struct mem_job *job, uint64_t *ticks,
		      struct mem_sum *sum)
{
	struct bare *b = ctx;
	uint64_t i, t;

	for (i = 0; i < job->n; i++) {
		t = bench_ticks();
		put(b->there, i, job);
		take(b->back, i, job, sum);
		ticks[i] = bench_ticks() - t;
	}
}

static void bare_pong(void *ctx, const struct mem_job *job,
		      struct mem_sum *sum)
{
	struct bare *b = ctx;
	uint64_t i;

	for (i = 0; i < job->n; i++) {
		take(b->there, i, job, sum);
		put(b->back, i, job);
	}
}

const struct mem_ops mem_bare = {
	.name = "bare loop",
	.make = bare_make,
	.produce = bare_produce,
	.consume = bare_consume,
	.ping = bare_ping,
	.pong = bare_pong,
	.drop = bare_drop,
};
