/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the parts of a pool share. From below: runs of grains of a region; slabs, which
 * are runs cut into buffers of one class (or left whole as one buffer); caches, in which
 * each thread keeps buffers; pool_debug, what is done to buffers to find mistakes.
 *
 * Locks, outer to inner: reclaim, a thread being in its cache, cls[i].lock, runs.
 */
#ifndef RGATE_MEM_POOL_H
#define RGATE_MEM_POOL_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include <ringgate/rgate_pool.h>

#include "backing.h"
#include "runs.h"
#include "sizeclass.h"

#define RGATE_RUN_CLASS		RGATE_CLASSES	/* of buffers too large for a class */

struct rgate_cache;
struct rgate_buf_info;

/*
 * A run of grains cut into @n buffers. The structure outlives the run and serves another
 * of the same class later, so that a stale look at it finds a slab and not something
 * else. @free, @nfree, the links: under the class's lock.
 */
struct rgate_slab {
	struct rgate_pool *pool;
	struct rgate_region *region;
	char *base;
	size_t size;		/* bytes of a buffer */
	size_t bytes;		/* of the run, 0: has none */
	uint32_t cls;
	uint32_t n;
	uint32_t first;		/* grain */
	uint32_t nfree;
	uint32_t *free;		/* indices of free buffers, a stack */
	struct rgate_slab *next;
	struct rgate_slab *prev;
	struct rgate_slab *all;	/* every slab of the pool */
	struct rgate_buf_info *info;	/* debug: of each buffer */
	struct rgate_buf buf[];
} __attribute__((aligned(64)));

struct rgate_region {
	struct rgate_backing backing;
	struct rgate_mem *mem;		/* NULL without a device */
	struct rgate_runs runs;		/* under pool->runs_lock */
	struct rgate_slab **owner;	/* by grain; atomic: release by who makes a slab */
	uint32_t number;
	uint32_t lkey;
	uint32_t rkey;
};

/*
 * Buffers of one size. Counters under @lock, but for @allocs and @spoilt, which are atomic; what
 * caches count comes on top. The depot is in the lock's cache line: threads that pass buffers on
 * touch no other.
 */
struct rgate_class {
	pthread_mutex_t lock;
	struct rgate_buf **depot;	/* free buffers between threads, not in their slabs */
	uint32_t depot_n;
	uint32_t depot_cap;
	struct rgate_slab *partial;	/* some buffers free, or all of one kept in reserve */
	struct rgate_slab *spare;	/* structures without a run */
	uint32_t empty;			/* slabs in @partial with all buffers free */
	uint64_t free;			/* buffers free in slabs */
	uint64_t slab_bytes;
	uint64_t slab_bufs;
	uint64_t allocs;
	uint64_t spoilt;		/* released, and never to be handed out again */
} __attribute__((aligned(64)));

struct rgate_pool {
	/* Read by every call, written hardly ever */
	unsigned int cached;		/* classes that threads keep buffers of */
	unsigned int tight;		/* atomic: who looks for memory, and one more if @dry */
	uint32_t flags;
	uint32_t cache_buffers;
	size_t cache_bytes;
	size_t region_size;
	size_t max_size;
	size_t max_meta;		/* 0: no limit */
	uint32_t access;
	uint32_t first_key;		/* without a device: rkey of the first region */
	pid_t pid;
	uint32_t epoch;
	struct rgate_device *dev;
	bool annotate;			/* for valgrind or AddressSanitizer */
	struct rgate_backing_opts backing;
	char name[32];

	struct rgate_region **region;	/* @max_regions places, filled in order */
	unsigned int max_regions;
	unsigned int regions;		/* atomic: release by who adds one */

	pthread_mutex_t reclaim;	/* and the list of caches */
	struct rgate_cache *caches;
	pthread_mutex_t runs_lock;	/* and @slabs */
	struct rgate_slab *slabs;
	struct rgate_class cls[RGATE_CLASSES + 1];

	pthread_mutex_t wait;
	pthread_cond_t freed;
	bool growing;			/* under @wait: a thread makes a region */
	uint64_t releases;		/* under @wait: counts while somebody waits */
	unsigned int waiters;		/* atomic: threads that wait for a release */
	unsigned int dry;		/* atomic: a search was in vain, see pool_dry.c */

	uint64_t left;			/* atomic: held of one that was destroyed; else 0 */

	/* atomic, relaxed: counts */
	uint64_t used_bytes;		/* out of slabs: held, cached, in depots */
	uint64_t high_bytes;
	uint64_t meta_bytes, meta_refused;
	uint64_t refused, waits, timeouts, reclaims, grown, grow_failures;
	uint64_t double_frees, foreign_frees, overruns;
};

static inline void rgate_count(uint64_t *c)
{
	__atomic_fetch_add(c, 1, __ATOMIC_RELAXED);
}

/* Never changes as long as the slab's structure is there */
static inline struct rgate_slab *rgate_buf_slab(const struct rgate_buf *buf)
{
	return (struct rgate_slab *)buf->reserved[0];
}

/* The class, and with it the pool, without a look at the slab. Never changes either */
static inline struct rgate_class *rgate_buf_class(const struct rgate_buf *buf)
{
	return (struct rgate_class *)buf->reserved[1];
}

/* The length of a buffer that somebody holds, 0: nobody does */
static inline size_t rgate_buf_held(const struct rgate_buf *buf)
{
	return __atomic_load_n(&buf->length, __ATOMIC_RELAXED);
}

static inline void rgate_buf_hold(struct rgate_buf *buf, size_t length)
{
	__atomic_store_n(&buf->length, length, __ATOMIC_RELAXED);
}

/*
 * Nobody may keep what is free: somebody looks for memory. Who has entered its cache behind
 * the fence of a search sees that (cache.h), as does who has a class's lock behind it.
 */
static inline bool rgate_pool_tight(const struct rgate_pool *pool)
{
	return __atomic_load_n(&pool->tight, __ATOMIC_RELAXED);
}

/* pool.c */

/* As rgate_pool_create(); without a device regions have the keys from @first_key on, so that
 * those of several pools can be told apart */
int rgate_pool_create_keyed(struct rgate_pool **pool, struct rgate_device *dev,
			    const struct rgate_pool_opts *opts, uint32_t first_key);

/* A buffer came back, and nobody is in the pool for it any more: frees one that was destroyed if
 * it was the last */
void rgate_pool_back(struct rgate_pool *pool);

/* What an allocation has to have; found once, used until there is a buffer */
struct rgate_want {
	size_t size;		/* as asked for */
	size_t bytes;		/* with what alignment and red zones take */
	size_t align;
	unsigned int cls;	/* RGATE_RUN_CLASS: none */
	const char *tag;
	const void *site;
	bool zero;
};

/* Memory of the heap that is about to be taken for the pool; false: not beyond its quota */
static inline bool rgate_pool_charge(struct rgate_pool *pool, size_t bytes)
{
	const uint64_t now = __atomic_add_fetch(&pool->meta_bytes, bytes, __ATOMIC_RELAXED);

	if (!pool->max_meta || now <= pool->max_meta)
		return true;
	__atomic_sub_fetch(&pool->meta_bytes, bytes, __ATOMIC_RELAXED);
	rgate_count(&pool->meta_refused);
	return false;
}

static inline void rgate_pool_uncharge(struct rgate_pool *pool, size_t bytes)
{
	__atomic_sub_fetch(&pool->meta_bytes, bytes, __ATOMIC_RELAXED);
}

/* pool_dry.c */

/* One buffer wherever it is to be had; waits until @end (CLOCK_MONOTONIC) if that is not 0.
 * -ENOBUFS, -ETIMEDOUT */
int rgate_pool_take(struct rgate_pool *pool, const struct rgate_want *w, uint64_t end,
		    struct rgate_buf **buf);
/* Buffers came back to the slabs: whoever waits for some looks again */
void rgate_pool_released(struct rgate_pool *pool);
/* There is plenty: threads may keep some again */
void rgate_pool_not_dry(struct rgate_pool *pool);

/* slab.c */

/* Up to @n buffers of class @cls (not RGATE_RUN_CLASS) into @bufs; how many there were */
unsigned int rgate_slab_take(struct rgate_pool *pool, unsigned int cls,
			     struct rgate_buf **bufs, unsigned int n);
/* One of @size bytes whose address is a multiple of @align, cut from no slab of a class;
 * NULL: no such run */
struct rgate_buf *rgate_slab_take_run(struct rgate_pool *pool, size_t size, size_t align);
/* All of class @cls, into the depot or their slabs; a slab that is empty goes back to its
 * region. */
void rgate_slab_give(struct rgate_pool *pool, unsigned int cls, struct rgate_buf **bufs,
		     unsigned int n);
/* What depots keep, back to slabs, and empty slabs back to their regions */
void rgate_slab_trim(struct rgate_pool *pool);
/* Frees all structures, whatever is held */
void rgate_slab_fini(struct rgate_pool *pool);

/* region.c */

/* One more region; -ENOBUFS: the quota is reached; or why not */
int rgate_region_add(struct rgate_pool *pool);
void rgate_region_free_all(struct rgate_pool *pool);
/* The region that @addr lies in, or NULL */
struct rgate_region *rgate_region_of(const struct rgate_pool *pool, const void *addr);

/* What a pool in a child of fork() says */
static inline int rgate_pool_gone(const struct rgate_pool *pool)
{
	return pool->pid != getpid() ? -EPERM : 0;
}

#endif
