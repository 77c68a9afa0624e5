// SPDX-License-Identifier: MIT OR GPL-2.0
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "cache.h"
#include "clock.h"

#define PAUSE_NS	100000		/* between looks at a lock or an owner that takes long */

__thread struct rgate_cache *rgate_cache_last;
bool rgate_cache_fenced;

/* All of this thread's */
static __thread struct rgate_cache *mine;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* A pool may end while a thread that used it does: who goes first takes the cache apart. */
static pthread_mutex_t orphans = PTHREAD_MUTEX_INITIALIZER;

static void fence_all(void)
{
	if (rgate_cache_fenced)
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	else
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void free_cache(struct rgate_cache *c)
{
	unsigned int i;

	for (i = 0; i < RGATE_CLASSES; i++)
		free(c->bin[i].buf);
	free(c);
}

/* What all bins hold, to the slabs. Nobody else is in. */
static void empty_cache(struct rgate_cache *c, struct rgate_pool *pool)
{
	unsigned int i;

	for (i = 0; i < RGATE_CLASSES; i++) {
		struct rgate_bin *bin = &c->bin[i];
		const uint32_t n = rgate_bin_there(bin->state);

		if (n)
			rgate_slab_give(pool, i, bin->buf, n);
		rgate_bin_set(bin, bin->state - n);
	}
}

static void unlink_cache(struct rgate_pool *pool, struct rgate_cache *c)
{
	if (c->next)
		c->next->prev = c->prev;
	if (c->prev)
		c->prev->next = c->next;
	else
		pool->caches = c->next;
}

/* A cache of this thread that is in no list of the thread any more */
static void end_cache(struct rgate_cache *c)
{
	struct rgate_pool *pool;
	unsigned int i;

	pthread_mutex_lock(&orphans);
	pool = c->pool;
	if (pool && !rgate_pool_gone(pool)) {
		pthread_mutex_lock(&pool->reclaim);
		empty_cache(c, pool);
		for (i = 0; i < RGATE_CLASSES; i++) {
			const struct rgate_bin *bin = &c->bin[i];

			__atomic_fetch_add(&pool->cls[i].allocs,
					   bin->allocs + (bin->state >> RGATE_BIN_SHIFT),
					   __ATOMIC_RELAXED);
		}
		unlink_cache(pool, c);
		pthread_mutex_unlock(&pool->reclaim);
		rgate_pool_uncharge(pool, c->meta);
		rgate_pool_released(pool);
	}
	pthread_mutex_unlock(&orphans);
	free_cache(c);
}

/* The thread ends. Destructors of others may use pools after this one: a new cache is
 * made then, and this is called again. */
static void end_thread(void *arg)
{
	struct rgate_cache *c;

	(void)arg;
	rgate_cache_last = NULL;
	while ((c = mine)) {
		mine = c->of_thread;
		end_cache(c);
	}
}

/* A child has none of the parent's pools, and nobody else's locks. */
static void in_child(void)
{
	rgate_cache_last = NULL;
	mine = NULL;
	orphans = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void init(void)
{
	pthread_key_create(&key, end_thread);
	pthread_atfork(NULL, NULL, in_child);
#ifndef RGATE_TSAN
	rgate_cache_fenced = !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
				      0, 0);
#endif
}

void rgate_cache_init(void)
{
	pthread_once(&once, init);
}

/* Those of pools that are no more are freed by the thread they belong to. */
static void drop_orphans(void)
{
	struct rgate_cache **at = &mine, *c;

	while ((c = *at)) {
		if (__atomic_load_n(&c->pool, __ATOMIC_ACQUIRE)) {
			at = &c->of_thread;
			continue;
		}
		*at = c->of_thread;
		free_cache(c);
	}
}

struct rgate_cache *rgate_cache_get(struct rgate_pool *pool)
{
	struct rgate_cache *c;

	rgate_cache_last = NULL;
	drop_orphans();
	for (c = mine; c; c = c->of_thread)
		if (c->pool == pool)
			goto found;
	if (!rgate_pool_charge(pool, sizeof(*c)))
		return NULL;
	if (posix_memalign((void **)&c, 64, sizeof(*c)))
		goto uncharge;
	memset(c, 0, sizeof(*c));
	/* Any value but NULL: the destructor is to be called. */
	if (pthread_setspecific(key, c))
		goto free;
	c->pool = pool;
	c->room = pool->cache_bytes;
	c->meta = sizeof(*c);
	c->last = &c->bin[0];
	c->last_cls = &pool->cls[0];
	c->of_thread = mine;
	mine = c;
	pthread_mutex_lock(&pool->reclaim);
	c->next = pool->caches;
	if (c->next)
		c->next->prev = c;
	pool->caches = c;
	pthread_mutex_unlock(&pool->reclaim);
found:
	rgate_cache_last = c;
	return c;

free:
	free(c);
uncharge:
	rgate_pool_uncharge(pool, sizeof(*c));
	return NULL;
}

void rgate_cache_wait(struct rgate_cache *c)
{
	struct rgate_pool *pool = c->pool;

	rgate_cache_leave(c);
	/* Held while buffers are taken back. */
	pthread_mutex_lock(&pool->reclaim);
	pthread_mutex_unlock(&pool->reclaim);
}

/*
 * A bin gets at most half of what is left, so that there is something for the sizes that
 * come later too.
 */
bool rgate_cache_open_bin(struct rgate_cache *c, unsigned int cls)
{
	const size_t size = rgate_class_size(cls);
	struct rgate_bin *bin = &c->bin[cls];
	size_t cap = c->room / 2 / size, bytes;

	if (cap > c->pool->cache_buffers)
		cap = c->pool->cache_buffers;
	bytes = cap * sizeof(struct rgate_buf *);
	if (!cap || !rgate_pool_charge(c->pool, bytes))
		return false;
	if (posix_memalign((void **)&bin->buf, 64, bytes)) {
		bin->buf = NULL;
		rgate_pool_uncharge(c->pool, bytes);
		return false;
	}
	c->meta += bytes;
	c->room -= cap * size;
	bin->cap = (uint32_t)cap;
	return true;
}

void rgate_cache_sum(struct rgate_cache *c, unsigned int cls)
{
	struct rgate_pool *pool = c->pool;
	struct rgate_bin *bin = &c->bin[cls];

	/* Who reads the two has the lock. */
	pthread_mutex_lock(&pool->reclaim);
	bin->allocs += bin->state >> RGATE_BIN_SHIFT;
	rgate_bin_set(bin, bin->state & RGATE_BIN_THERE);
	pthread_mutex_unlock(&pool->reclaim);
}

void rgate_cache_flush(struct rgate_cache *c)
{
	while (!rgate_cache_enter(c))
		rgate_cache_wait(c);
	empty_cache(c, c->pool);
	rgate_cache_leave(c);
}

/* One that takes buffers back may be waiting for an owner, and has more time than this one. */
static bool lock_until(pthread_mutex_t *lock, uint64_t end)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	while (pthread_mutex_trylock(lock)) {
		if (rgate_clock_now(CLOCK_MONOTONIC) >= end)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Is the owner out? Some instructions are waited for, and from then on until @end. */
static bool owner_out(const struct rgate_cache *c, uint64_t end)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	unsigned int looks = 0;

	/* Pairs with the owner's release: what it did in there is seen. */
	while (__atomic_load_n(&c->busy, __ATOMIC_ACQUIRE)) {
		if (++looks < 1000) {
			rgate_cpu_relax();
			continue;
		}
		if (rgate_clock_now(CLOCK_MONOTONIC) >= end)
			return false;
		/* An owner of a lower priority gets no CPU from who only yields. */
		nanosleep(&pause, NULL);
	}
	return true;
}

bool rgate_cache_reclaim(struct rgate_pool *pool, uint64_t end)
{
	struct rgate_cache *c;
	bool all = true;

	if (!lock_until(&pool->reclaim, end))
		return false;
	for (c = pool->caches; c; c = c->next)
		__atomic_store_n(&c->stolen, 1, __ATOMIC_SEQ_CST);
	fence_all();
	for (c = pool->caches; c; c = c->next) {
		if (owner_out(c, end))
			empty_cache(c, pool);
		else
			all = false;
		/* The owner that sees this sees its cache as it is now. */
		__atomic_store_n(&c->stolen, 0, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&pool->reclaim);
	rgate_count(&pool->reclaims);
	return all;
}

void rgate_cache_orphan(struct rgate_pool *pool)
{
	struct rgate_cache *c;

	pthread_mutex_lock(&orphans);
	pthread_mutex_lock(&pool->reclaim);
	while ((c = pool->caches)) {
		empty_cache(c, pool);
		pool->caches = c->next;
		/* From here on it is the thread's alone: pairs with drop_orphans(). */
		__atomic_store_n(&c->pool, NULL, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&pool->reclaim);
	pthread_mutex_unlock(&orphans);
}

void rgate_cache_counts(struct rgate_pool *pool, unsigned int cls, uint64_t *allocs,
			uint64_t *kept)
{
	struct rgate_cache *c;
	uint64_t state;

	pthread_mutex_lock(&pool->reclaim);
	*allocs = __atomic_load_n(&pool->cls[cls].allocs, __ATOMIC_RELAXED);
	*kept = __atomic_load_n(&pool->cls[cls].spoilt, __ATOMIC_RELAXED);
	for (c = cls < RGATE_CLASSES ? pool->caches : NULL; c; c = c->next) {
		state = __atomic_load_n(&c->bin[cls].state, __ATOMIC_RELAXED);
		*allocs += c->bin[cls].allocs + (state >> RGATE_BIN_SHIFT);
		*kept += rgate_bin_there(state);
	}
	pthread_mutex_unlock(&pool->reclaim);
}
