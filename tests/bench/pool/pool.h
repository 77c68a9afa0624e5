/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Ways to get a buffer and give it back, behind one interface. Each runs the same
 * loops; these are made here for each of them, so that no call through a pointer is
 * in the figures and what a rival has in its headers is inlined as in its users.
 */
#ifndef POOL_H
#define POOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include "bench.h"

#define POOL_BATCH	32U	/* held, or taken and given at once */
#define POOL_WAY	4U	/* batches on their way to another thread */

/* One batch after the other from one thread to another. Each word has one writer. */
struct pool_way {
	struct {
		_Alignas(128) _Atomic uint64_t full;	/* number of the batch + 1 */
		void *buf[POOL_BATCH];
	} slot[POOL_WAY];
	_Alignas(128) _Atomic uint64_t taken;
};

enum pool_pattern {
	POOL_PAIR,	/* taken and given at once */
	POOL_FIFO,	/* POOL_BATCH held, the oldest given */
	POOL_BULK,	/* POOL_BATCH taken, then given, by the calls for many */
	POOL_PASS,	/* taken by one thread, given by another */
	POOL_PATTERNS
};

struct pool_cfg {
	size_t size;		/* bytes of a buffer */
	unsigned int buffers;	/* as many may be held and cached */
	unsigned int threads;
};

/* About @n buffers taken and given; returns how many. @thread is what enter() gave. */
typedef uint64_t (*pool_run_fn)(void *thread, uint64_t n);

struct pool_ops {
	const char *name;
	bool pool;		/* to be compared with as such */
	bool one_thread;	/* is not thread-safe */
	bool registers;		/* calls of the device: microseconds and more */
	/* NULL, and why: it cannot run here */
	void *(*open)(const struct pool_cfg *cfg, const char **why);
	void *(*enter)(void *pool, unsigned int thread);
	void (*leave)(void *thread);
	pool_run_fn run[POOL_PASS];
	uint64_t (*put_away)(void *thread, struct pool_way *way, uint64_t batches);
	uint64_t (*take_over)(void *thread, struct pool_way *way, uint64_t batches);
	void (*close)(void *pool);
};

extern const struct pool_ops pool_ringgate;
extern const struct pool_ops pool_dpdk;
extern const struct pool_ops pool_ucs;
extern const struct pool_ops pool_malloc;
extern const struct pool_ops pool_verbs;
extern const struct pool_ops pool_none;

/* The device that pool_ringgate and pool_verbs use; NULL, and why: there is none */
struct rgate_device *pool_device(const char **why);

/* The owner writes to it: without that some rivals had no memory behind it */
static __always_inline void pool_touch(void *addr)
{
	*(volatile char *)addr = 1;
}

static __always_inline uint64_t pool_loop_pair(void *thread, uint64_t n, void *(*get)(void *),
					       void *(*addr)(void *), void (*put)(void *, void *))
{
	uint64_t i;

	for (i = 0; i < n; i++) {
		void *buf = get(thread);

		pool_touch(addr(buf));
		put(thread, buf);
	}
	return n;
}

static __always_inline uint64_t pool_loop_fifo(void *thread, uint64_t n, void *(*get)(void *),
					       void *(*addr)(void *), void (*put)(void *, void *))
{
	void *held[POOL_BATCH];
	uint64_t i;

	for (i = 0; i < POOL_BATCH; i++) {
		held[i] = get(thread);
		pool_touch(addr(held[i]));
	}
	for (i = 0; i < n; i++) {
		void **oldest = &held[i % POOL_BATCH];

		put(thread, *oldest);
		*oldest = get(thread);
		pool_touch(addr(*oldest));
	}
	for (i = 0; i < POOL_BATCH; i++)
		put(thread, held[i]);
	return n + POOL_BATCH;
}

static __always_inline uint64_t pool_loop_bulk(void *thread, uint64_t n,
					       void (*get)(void *, void **, unsigned int),
					       void *(*addr)(void *),
					       void (*put)(void *, void **, unsigned int))
{
	void *held[POOL_BATCH];
	uint64_t i;
	unsigned int k;

	for (i = 0; i < n; i += POOL_BATCH) {
		get(thread, held, POOL_BATCH);
		for (k = 0; k < POOL_BATCH; k++)
			pool_touch(addr(held[k]));
		put(thread, held, POOL_BATCH);
	}
	return i;
}

static __always_inline uint64_t pool_loop_away(void *thread, struct pool_way *way, uint64_t batches,
					       void *(*get)(void *), void *(*addr)(void *))
{
	uint64_t i;
	unsigned int k;

	for (i = 0; i < batches; i++) {
		__typeof__(way->slot[0]) *slot = &way->slot[i % POOL_WAY];

		/* pairs with the release of the batch before in this slot */
		while (i - atomic_load_explicit(&way->taken, memory_order_acquire) >=
		       POOL_WAY)
			bench_relax();
		for (k = 0; k < POOL_BATCH; k++) {
			slot->buf[k] = get(thread);
			pool_touch(addr(slot->buf[k]));
		}
		/* pairs with the acquire of the thread that takes over */
		atomic_store_explicit(&slot->full, i + 1, memory_order_release);
	}
	return batches * POOL_BATCH;
}

static __always_inline uint64_t pool_loop_over(void *thread, struct pool_way *way, uint64_t batches,
					       void (*put)(void *, void *))
{
	uint64_t i;
	unsigned int k;

	for (i = 0; i < batches; i++) {
		__typeof__(way->slot[0]) *slot = &way->slot[i % POOL_WAY];

		while (atomic_load_explicit(&slot->full, memory_order_acquire) != i + 1)
			bench_relax();
		for (k = 0; k < POOL_BATCH; k++)
			put(thread, slot->buf[k]);
		atomic_store_explicit(&way->taken, i + 1, memory_order_release);
	}
	return batches * POOL_BATCH;
}

/* The loops of one rival, and their places in its struct pool_ops */
#define POOL_LOOPS(get, get_bulk, addr, put, put_bulk)				\
	static uint64_t run_pair(void *thread, uint64_t n)			\
	{									\
		return pool_loop_pair(thread, n, get, addr, put);		\
	}									\
	static uint64_t run_fifo(void *thread, uint64_t n)			\
	{									\
		return pool_loop_fifo(thread, n, get, addr, put);		\
	}									\
	static uint64_t run_bulk(void *thread, uint64_t n)			\
	{									\
		return pool_loop_bulk(thread, n, get_bulk, addr, put_bulk);	\
	}									\
	static uint64_t run_away(void *thread, struct pool_way *way, uint64_t n) \
	{									\
		return pool_loop_away(thread, way, n, get, addr);		\
	}									\
	static uint64_t run_over(void *thread, struct pool_way *way, uint64_t n) \
	{									\
		return pool_loop_over(thread, way, n, put);			\
	}

#define POOL_RUNS								\
	.run = { run_pair, run_fifo, run_bulk },				\
	.put_away = run_away,							\
	.take_over = run_over

/* For those without calls for many */
#define POOL_NO_BULK(get, put)							\
	static __always_inline void get_each(void *thread, void **bufs, unsigned int n)	\
	{									\
		unsigned int i;							\
										\
		for (i = 0; i < n; i++)						\
			bufs[i] = get(thread);					\
	}									\
	static __always_inline void put_each(void *thread, void **bufs, unsigned int n)	\
	{									\
		unsigned int i;							\
										\
		for (i = 0; i < n; i++)						\
			put(thread, bufs[i]);					\
	}

/* For those whose buffer is its address */
static __always_inline void *pool_itself(void *buf)
{
	return buf;
}

/* For those that know no threads */
static inline void *pool_enter_any(void *pool, unsigned int thread)
{
	(void)thread;
	return pool;
}

static inline void pool_leave_any(void *thread)
{
	(void)thread;
}

#endif
