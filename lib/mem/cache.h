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

/*
 * The owner's, inside; @state and @allocs are read from outside too. How many buffers there are
 * and how many were allocated is one word, as a word more to load, add to and store is what makes
 * a tenth of the time.
 */
struct rgate_bin {
	uint64_t state;		/* atomic, relaxed: allocated << RGATE_BIN_SHIFT | there */
	struct rgate_buf **buf;
	uint32_t cap;		/* 0: not in use yet, or no room */
	uint64_t allocs;	/* that @state has no longer; under the pool's reclaim lock */
};

#define RGATE_BIN_SHIFT	20	/* above the most that a bin can have */
#define RGATE_BIN_THERE	((1ULL << RGATE_BIN_SHIFT) - 1)
/* To be added: one more allocated, one fewer there */
#define RGATE_BIN_ALLOC	((1ULL << RGATE_BIN_SHIFT) - 1)

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

static inline uint32_t rgate_bin_there(uint64_t state)
{
	return (uint32_t)(state & RGATE_BIN_THERE);
}

static inline void rgate_bin_set(struct rgate_bin *bin, uint64_t state)
{
	__atomic_store_n(&bin->state, state, __ATOMIC_RELAXED);
}

/* So many were allocated that it is time for rgate_cache_sum(): once in some hours, or years */
static inline bool rgate_bin_many(uint64_t state)
{
	return state >> 63;
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
/* What was allocated of @cls is counted from 0 again, what was before is kept. Outside. */
void rgate_cache_sum(struct rgate_cache *c, unsigned int cls);
/* All of one cache of this thread back to the pool */
void rgate_cache_flush(struct rgate_cache *c);
/* Takes back what all threads keep. An owner that is off its CPU inside is waited for until
 * @end (CLOCK_MONOTONIC, ns). False: not all came out */
bool rgate_cache_reclaim(struct rgate_pool *pool, uint64_t end);
/* The pool ends: no cache is its own any more */
void rgate_cache_orphan(struct rgate_pool *pool);
/* Of a class: how many were allocated ever, and how many all threads keep, or nobody gets */
void rgate_cache_counts(struct rgate_pool *pool, unsigned int cls, uint64_t *allocs,
			uint64_t *kept);

#endif
