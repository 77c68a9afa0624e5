/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Buffers that a thread keeps for itself, one array of pointers for each class.
 *
 * The owner works on its cache between rgate_cache_enter() and rgate_cache_leave(), with
 * plain stores. Who takes buffers back from all threads stores @stolen, has every
 * processor pass a full fence by membarrier(2), and waits until @busy is 0. Either the
 * owner sees @stolen, and stays out, or it stored @busy before the fence, and is waited
 * for: store and load on both sides with a fence between (Dekker), of which the owner's
 * costs nothing. Where membarrier is missing, and for ThreadSanitizer, which does not
 * know it, the owner's is a real one.
 */
#ifndef RGATE_MEM_CACHE_H
#define RGATE_MEM_CACHE_H

#include "pool.h"

#if defined(__SANITIZE_THREAD__)
#define RGATE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RGATE_TSAN 1
#endif
#endif

/* All fields: the owner's, inside; the counters are read from outside too */
struct rgate_bin {
	uint32_t n;
	uint32_t cap;		/* 0: not in use yet, or no room */
	struct rgate_buf **buf;
	uint64_t allocs;	/* atomic, relaxed; the owner writes */
	uint64_t frees;
};

struct rgate_cache {
	struct rgate_pool *pool;	/* atomic; NULL: the pool is no more */
	unsigned int busy;
	unsigned int stolen;
	/*
	 * The bin that the thread released into last, and its class. To guess it is cheaper
	 * than to wait for the buffer to say which it is, and mostly right.
	 */
	struct rgate_bin *last;
	const struct rgate_class *last_cls;
	size_t room;			/* bytes that no bin has been given yet */
	size_t meta;			/* bytes of the heap that the pool was charged with */
	struct rgate_cache *of_thread;	/* the thread's next one */
	struct rgate_cache *next;	/* the pool's; under its reclaim lock */
	struct rgate_cache *prev;
	struct rgate_bin bin[RGATE_CLASSES];
} __attribute__((aligned(64)));

/* The cache this thread used last; most threads use one pool. */
extern __thread struct rgate_cache *rgate_cache_last
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
/* membarrier(2) serves as the owner's fence */
extern bool rgate_cache_fenced __attribute__((visibility("hidden")));

/* False: buffers are being taken back; the owner stays out (rgate_cache_wait()) */
static inline bool rgate_cache_enter(struct rgate_cache *c)
{
#ifdef RGATE_TSAN
	__atomic_exchange_n(&c->busy, 1, __ATOMIC_SEQ_CST);
	return !__atomic_load_n(&c->stolen, __ATOMIC_SEQ_CST);
#else
	__atomic_store_n(&c->busy, 1, __ATOMIC_RELAXED);
	if (__builtin_expect(rgate_cache_fenced, 1))
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	else
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* Pairs with the release at the end of taking back. */
	return !__atomic_load_n(&c->stolen, __ATOMIC_ACQUIRE);
#endif
}

/* Pairs with the acquire of who waits for the owner to be out. */
static inline void rgate_cache_leave(struct rgate_cache *c)
{
	__atomic_store_n(&c->busy, 0, __ATOMIC_RELEASE);
}

static inline void rgate_cache_note(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* Not this process's pool? A child has no caches: who has one need not ask the kernel. */
static inline int rgate_cache_gone(const struct rgate_pool *pool)
{
	const struct rgate_cache *c = rgate_cache_last;

	return c && c->pool == pool ? 0 : rgate_pool_gone(pool);
}

/* To be called once before any cache is used */
void rgate_cache_init(void);
/* This thread's cache of @pool, made if need be; NULL: no memory, do without */
struct rgate_cache *rgate_cache_get(struct rgate_pool *pool);
/* Until taking back is over */
void rgate_cache_wait(struct rgate_cache *c);
/* Room for buffers in a bin that has none yet; false: there is none. Inside. */
bool rgate_cache_open_bin(struct rgate_cache *c, unsigned int cls);
/* All of one cache of this thread back to the pool */
void rgate_cache_flush(struct rgate_cache *c);
/* Takes back what all threads keep. An owner that is off its CPU inside is waited for until
 * @end (CLOCK_MONOTONIC, ns). False: not all came out */
bool rgate_cache_reclaim(struct rgate_pool *pool, uint64_t end);
/* The pool ends: no cache is its own any more */
void rgate_cache_orphan(struct rgate_pool *pool);
/* Sums over all caches of a class */
void rgate_cache_counts(struct rgate_pool *pool, unsigned int cls, uint64_t *allocs,
			uint64_t *frees);

#endif
