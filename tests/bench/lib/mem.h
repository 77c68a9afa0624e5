/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The memory benchmark's two contestants behind one interface: ringgate's ring
 * and a bare loop (a flag and a memcpy a slot). Both move the same payload and
 * both consumers check every byte of it.
 */
#ifndef MEM_H
#define MEM_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bench.h"

#define MEM_SLOTS	4096U
#define MEM_STRIDE	2048U
#define MEM_BATCH	32U
#define MEM_POOL	16U	/* different payloads; they stay in L1 */
#define MEM_LEN_MAX	1920U

struct mem_job {
	uint32_t len;		/* payload bytes, 8 to MEM_LEN_MAX */
	uint32_t consumers;
	uint64_t n;		/* payloads, a multiple of MEM_BATCH * consumers */
	bool yield;		/* consumers share a CPU: give it up when idle */
};

struct mem_sum {
	uint64_t good;
	uint64_t bad;
};

struct mem_ops {
	const char *name;
	void *(*make)(const struct mem_job *job);
	void (*produce)(void *ctx, const struct mem_job *job);
	void (*consume)(void *ctx, const struct mem_job *job, uint32_t id,
			struct mem_sum *sum);
	/* one payload there and one back, @ticks[n]; consumers == 1 */
	void (*ping)(void *ctx, const struct mem_job *job, uint64_t *ticks,
		     struct mem_sum *sum);
	void (*pong)(void *ctx, const struct mem_job *job, struct mem_sum *sum);
	void (*drop)(void *ctx);
};

extern const struct mem_ops mem_bare;
extern const struct mem_ops mem_ring;

extern unsigned char mem_pool[MEM_POOL][MEM_LEN_MAX];
void mem_pool_init(void);

/* No pause instruction: it costs tens of nanoseconds on some CPUs, and each
 * thread has a core of its own unless job->yield says otherwise. */
static inline void mem_idle(const struct mem_job *job)
{
	if (job->yield)
		sched_yield();
}

/* Payload @i: its number, then bytes that depend on the number */
static inline void mem_put(void *dst, uint64_t i, uint32_t len)
{
	memcpy(dst, mem_pool[i % MEM_POOL], len);
	memcpy(dst, &i, sizeof(i));
}

static inline void mem_check(const void *src, uint64_t i, uint32_t len,
			     struct mem_sum *sum)
{
	uint64_t got;

	memcpy(&got, src, sizeof(got));
	if (got == i && !memcmp((const unsigned char *)src + sizeof(i),
				mem_pool[i % MEM_POOL] + sizeof(i),
				len - sizeof(i)))
		sum->good++;
	else
		sum->bad++;
}

#endif
