// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Allocation where neither the thread nor the slabs have anything: what lies idle is looked
 * for, the pool grows, others' releases are waited for.
 *
 * A search takes every class's lock and stops every processor for a moment, and empties all
 * threads' caches; a pool that is used up would do that for each allocation that fails. So a
 * search that was in vain leaves the pool dry: from before the search on, as long as @tight
 * is not 0, threads keep nothing, and give what is released to the slabs and empty slabs to
 * the regions. Then what is free is where rgate_slab_take() finds it, and there is nothing
 * to search for. It is over when a thread finds as much as it would keep.
 */
#include <errno.h>
#include <time.h>

#include "cache.h"
#include "clock.h"
#include "log.h"
#include "pool.h"

/* Who does not wait for releases does wait this long for others to be out of their way */
#define PATIENCE_NS	1000000000ULL

static struct rgate_buf *take(struct rgate_pool *pool, const struct rgate_want *w)
{
	struct rgate_buf *buf;

	if (w->cls == RGATE_RUN_CLASS)
		return rgate_slab_take_run(pool, w->bytes, w->align);
	return rgate_slab_take(pool, w->cls, &buf, 1) ? buf : NULL;
}

/* One thread at a time; another may be making a region, which can take seconds. */
static int begin_growing(struct rgate_pool *pool, uint64_t end)
{
	const struct timespec ts = rgate_clock_timespec(end);
	int err = 0;

	pthread_mutex_lock(&pool->wait);
	while (pool->growing && !err)
		err = end ? pthread_cond_timedwait(&pool->freed, &pool->wait, &ts) :
			    pthread_cond_wait(&pool->freed, &pool->wait);
	if (!err)
		pool->growing = true;
	pthread_mutex_unlock(&pool->wait);
	return -err;
}

static void end_growing(struct rgate_pool *pool)
{
	pthread_mutex_lock(&pool->wait);
	pool->growing = false;
	pthread_cond_broadcast(&pool->freed);
	pthread_mutex_unlock(&pool->wait);
}

/* One thread makes a region, the others wait for it and look again. 0: look again */
static int grow(struct rgate_pool *pool, unsigned int regions, uint64_t end)
{
	int err;

	/* Regions never get fewer. */
	if (regions == pool->max_regions)
		return -ENOBUFS;
	err = begin_growing(pool, end);
	if (err)
		return err;
	if (regions == pool->regions) {
		err = rgate_region_add(pool);
		if (!err) {
			rgate_count(&pool->grown);
		} else {
			rgate_count(&pool->grow_failures);
			rgate_err("%s: no further region: %s", pool->name,
				  rgate_strerror("rgate_mem_register", err));
			err = -ENOBUFS;
		}
	}
	end_growing(pool);
	return err;
}

static void get_dry(struct rgate_pool *pool)
{
	if (!__atomic_exchange_n(&pool->dry, 1, __ATOMIC_ACQ_REL))
		__atomic_fetch_add(&pool->tight, 1, __ATOMIC_RELAXED);
}

void rgate_pool_not_dry(struct rgate_pool *pool)
{
	if (__atomic_load_n(&pool->dry, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&pool->dry, 0, __ATOMIC_ACQ_REL))
		__atomic_fetch_sub(&pool->tight, 1, __ATOMIC_RELAXED);
}

/*
 * What lies idle in classes and threads. Whoever releases something from here on sees that
 * it is tight, by the locks of the classes or the fence of the reclaim, and gives it to the
 * slabs; what was released before is taken back.
 */
static struct rgate_buf *search(struct rgate_pool *pool, const struct rgate_want *w,
				uint64_t end)
{
	struct rgate_buf *buf;
	bool all = true;

	__atomic_fetch_add(&pool->tight, 1, __ATOMIC_SEQ_CST);
	rgate_slab_trim(pool);
	buf = take(pool, w);
	if (!buf && pool->cached) {
		if (!end)
			end = rgate_clock_now(CLOCK_MONOTONIC) + PATIENCE_NS;
		all = rgate_cache_reclaim(pool, end);
		buf = take(pool, w);
	}
	if (!buf && all)
		get_dry(pool);
	__atomic_fetch_sub(&pool->tight, 1, __ATOMIC_RELAXED);
	return buf;
}

/* The slabs, then what lies idle, then a new region */
static struct rgate_buf *take_hard(struct rgate_pool *pool, const struct rgate_want *w,
				   uint64_t end)
{
	const uint64_t refused = __atomic_load_n(&pool->meta_refused, __ATOMIC_RELAXED);
	unsigned int regions = __atomic_load_n(&pool->regions, __ATOMIC_ACQUIRE);
	/* Before the slabs are looked at: what is free was in them all the time then. */
	const bool dry = __atomic_load_n(&pool->dry, __ATOMIC_ACQUIRE);
	struct rgate_buf *buf = take(pool, w);

	if (!buf && !(dry && __atomic_load_n(&pool->dry, __ATOMIC_ACQUIRE)))
		buf = search(pool, w, end);
	/* A region is of no use where what would describe its buffers is refused. */
	while (!buf && refused == __atomic_load_n(&pool->meta_refused, __ATOMIC_RELAXED) &&
	       !grow(pool, regions, end)) {
		regions = __atomic_load_n(&pool->regions, __ATOMIC_ACQUIRE);
		buf = take(pool, w);
	}
	return buf;
}

/*
 * Waits for releases. The counts of waiters and of who looks for memory are up before the
 * caches are taken back: whoever releases afterwards sees them, and gives to the slabs.
 */
static struct rgate_buf *wait_for(struct rgate_pool *pool, const struct rgate_want *w,
				  uint64_t end)
{
	const struct timespec ts = rgate_clock_timespec(end);
	struct rgate_buf *buf;
	uint64_t seen;
	int err = 0;

	rgate_count(&pool->waits);
	__atomic_fetch_add(&pool->waiters, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&pool->tight, 1, __ATOMIC_SEQ_CST);
	do {
		pthread_mutex_lock(&pool->wait);
		seen = pool->releases;
		pthread_mutex_unlock(&pool->wait);
		buf = take_hard(pool, w, end);
		if (buf)
			break;
		pthread_mutex_lock(&pool->wait);
		while (seen == pool->releases && !err)
			err = pthread_cond_timedwait(&pool->freed, &pool->wait, &ts);
		pthread_mutex_unlock(&pool->wait);
	} while (!err);
	__atomic_fetch_sub(&pool->tight, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&pool->waiters, 1, __ATOMIC_RELAXED);
	if (!buf)
		rgate_count(&pool->timeouts);
	return buf;
}

void rgate_pool_released(struct rgate_pool *pool)
{
	if (!__atomic_load_n(&pool->waiters, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&pool->wait);
	pool->releases++;
	pthread_cond_broadcast(&pool->freed);
	pthread_mutex_unlock(&pool->wait);
}

int rgate_pool_take(struct rgate_pool *pool, const struct rgate_want *w, uint64_t end,
		    struct rgate_buf **buf)
{
	*buf = take_hard(pool, w, end);
	if (!*buf && end)
		*buf = wait_for(pool, w, end);
	if (!*buf) {
		rgate_count(&pool->refused);
		return end ? -ETIMEDOUT : -ENOBUFS;
	}
	__atomic_fetch_add(&pool->cls[w->cls].allocs, 1, __ATOMIC_RELAXED);
	return 0;
}
