// SPDX-License-Identifier: MIT OR GPL-2.0
/* Making and ending pools. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "log.h"
#include "opts.h"
#include "pool.h"
#include "pool_debug.h"
#include "thread.h"

#define MIN_REGION	((size_t)2 << 20)
#define DEFAULT_REGION	((size_t)128 << 20)
#define MAX_REGION	((size_t)1 << 45)	/* grains are counted in 32 bits */
#define DEFAULT_BUFFERS	64
#define MAX_BUFFERS	65536
#define CACHE_PART	8			/* of a region, kept by a thread */
#define NAMED		16			/* holders in the log of a pool that ends */

static int check_opts(const struct rgate_pool_opts *o, const struct rgate_device *dev)
{
	const uint32_t known = RGATE_POOL_DEBUG | RGATE_POOL_NO_HUGE | RGATE_POOL_HUGE_ONLY |
			       RGATE_POOL_NO_PREFAULT | RGATE_POOL_NO_CACHE;

	if (o->flags & ~known || o->access & ~RGATE_ACCESS_ALL || o->reserved ||
	    o->access & RGATE_ACCESS_READONLY || o->cache_buffers > MAX_BUFFERS)
		return -EINVAL;
	if (o->flags & RGATE_POOL_NO_HUGE && o->flags & RGATE_POOL_HUGE_ONLY)
		return -EINVAL;
	if (o->flags & RGATE_POOL_NO_PREFAULT && dev)
		return -EINVAL;
	if (o->region_size > MAX_REGION || (o->region_size && o->region_size < MIN_REGION))
		return -EINVAL;
	if (o->max_size && (o->max_size < MIN_REGION || o->max_size < o->region_size))
		return -EINVAL;
	return 0;
}

/* Sizes as they will be: regions are whole huge pages, a quota whole regions. */
static int settle_sizes(struct rgate_pool *pool, const struct rgate_pool_opts *o)
{
	size_t regions;

	pool->region_size = o->region_size ? o->region_size : DEFAULT_REGION;
	/* Who says only how much there may be is not given more. */
	if (!o->region_size && o->max_size && o->max_size < DEFAULT_REGION)
		pool->region_size = o->max_size & ~(MIN_REGION - 1);
	pool->region_size = (pool->region_size + MIN_REGION - 1) & ~(MIN_REGION - 1);
	regions = o->max_size ? o->max_size / pool->region_size : 1;
	if (!regions)
		regions = 1;
	if (regions > UINT32_MAX - 1)
		return -EINVAL;
	pool->max_regions = (unsigned int)regions;
	pool->max_size = regions * pool->region_size;
	pool->cache_buffers = o->cache_buffers ? o->cache_buffers : DEFAULT_BUFFERS;
	pool->cache_bytes = o->cache_bytes ? o->cache_bytes : pool->region_size / CACHE_PART;
	return 0;
}

static void settle_flags(struct rgate_pool *pool, const struct rgate_pool_opts *o)
{
	const char *env = getenv("RGATE_POOL_DEBUG");

	pool->flags = o->flags;
	if (env && *env && strcmp(env, "0"))
		pool->flags |= RGATE_POOL_DEBUG;
	/* Red zones do the work of marks, and would be hit by them. */
	pool->annotate = !(pool->flags & RGATE_POOL_DEBUG) && rgate_annotated();
	if (!(pool->flags & (RGATE_POOL_DEBUG | RGATE_POOL_NO_CACHE)) && !pool->annotate)
		pool->cached = RGATE_CLASSES;
	pool->access = o->access;
	pool->max_meta = o->max_meta;
	snprintf(pool->name, sizeof(pool->name), "%.31s", o->name ? o->name : "pool");
	pool->backing = (struct rgate_backing_opts){
		.name = pool->name,
		.len = pool->region_size,
		.flags = o->flags,
		.node_plus1 = o->node_plus1,
		.threads = o->threads,
		.progress = o->progress,
		.progress_ctx = o->progress_ctx,
	};
}

static void init_locks(struct rgate_pool *pool)
{
	unsigned int i;

	pthread_mutex_init(&pool->reclaim, NULL);
	pthread_mutex_init(&pool->runs_lock, NULL);
	pthread_mutex_init(&pool->wait, NULL);
	rgate_cond_init(&pool->freed);
	/* Held for a few pointers mostly */
	for (i = 0; i <= RGATE_CLASSES; i++)
		rgate_mutex_init_brief(&pool->cls[i].lock);
}

static void free_pool(struct rgate_pool *pool)
{
	unsigned int i;

	for (i = 0; i < pool->regions; i++)
		if (pool->annotate)
			rgate_mark_region(pool->region[i]->backing.addr, pool->region_size, true);
	rgate_slab_fini(pool);
	rgate_region_free_all(pool);
	free(pool->region);
	for (i = 0; i <= RGATE_CLASSES; i++)
		pthread_mutex_destroy(&pool->cls[i].lock);
	pthread_cond_destroy(&pool->freed);
	pthread_mutex_destroy(&pool->wait);
	pthread_mutex_destroy(&pool->runs_lock);
	pthread_mutex_destroy(&pool->reclaim);
	free(pool);
}

int rgate_pool_create_keyed(struct rgate_pool **out, struct rgate_device *dev,
			    const struct rgate_pool_opts *user, uint32_t first_key)
{
	struct rgate_pool_opts opts;
	struct rgate_pool *pool;
	int err;

	err = rgate_opts_copy(&opts, sizeof(opts), user);
	if (!err)
		err = check_opts(&opts, dev);
	if (err)
		return err;
	rgate_cache_init();
	if (posix_memalign((void **)&pool, 64, sizeof(*pool)))
		return -ENOMEM;
	memset(pool, 0, sizeof(*pool));
	init_locks(pool);
	pool->dev = dev;
	pool->first_key = first_key;
	pool->pid = getpid();
	err = settle_sizes(pool, &opts);
	if (err)
		goto free;
	settle_flags(pool, &opts);
	pool->region = calloc(pool->max_regions, sizeof(struct rgate_region *));
	err = pool->region ? rgate_region_add(pool) : -ENOMEM;
	if (err)
		goto free;
	*out = pool;
	return 0;

free:
	free_pool(pool);
	return err;
}

int rgate_pool_create(struct rgate_pool **out, struct rgate_device *dev,
		      const struct rgate_pool_opts *user)
{
	return rgate_pool_create_keyed(out, dev, user, 1);
}

struct naming {
	const struct rgate_pool *pool;
	uint64_t n;
};

static int name_holder(void *ctx, const struct rgate_pool_holder *h)
{
	struct naming *na = ctx;

	if (na->n++ < NAMED)
		rgate_warn("%s: still held: %zu bytes at %p%s%s%s", na->pool->name, h->buf->length,
			   h->buf->addr, h->thread ? ", debug: " : "",
			   h->tag ? h->tag : "", "");
	return 0;
}

/* What a child has of its parent's pool: the bookkeeping, and nothing of the regions */
static void free_in_child(struct rgate_pool *pool)
{
	unsigned int i;

	for (i = 0; i < pool->regions; i++) {
		close(pool->region[i]->backing.fd);
		rgate_runs_fini(&pool->region[i]->runs);
		free(pool->region[i]->owner);
		free(pool->region[i]);
	}
	pool->regions = 0;
	pool->annotate = false;
	init_locks(pool);
	free_pool(pool);
}

void rgate_pool_destroy(struct rgate_pool *pool)
{
	struct naming na = { .pool = pool };

	if (!pool)
		return;
	if (rgate_pool_gone(pool)) {
		free_in_child(pool);
		return;
	}
	/* What is released from here on goes to the slabs: no thread keeps any of it. */
	pool->cached = 0;
	rgate_cache_orphan(pool);
	(void)rgate_pool_held(pool, name_holder, &na);
	if (na.n) {
		rgate_warn("%s: %llu buffers are held: it ends when they are released",
			   pool->name, (unsigned long long)na.n);
		__atomic_store_n(&pool->left, na.n, __ATOMIC_RELEASE);
		return;
	}
	free_pool(pool);
}

void rgate_pool_back(struct rgate_pool *pool)
{
	if (__atomic_load_n(&pool->left, __ATOMIC_ACQUIRE) &&
	    !__atomic_sub_fetch(&pool->left, 1, __ATOMIC_ACQ_REL))
		free_pool(pool);
}
