// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a pool consists of, who holds what, and how it fares. */
#include <errno.h>
#include <string.h>

#include "cache.h"
#include "desc.h"
#include "opts.h"
#include "pool.h"
#include "pool_debug.h"

int rgate_pool_lookup(const struct rgate_pool *pool, const void *addr,
		      const struct rgate_buf **out)
{
	const struct rgate_region *r;
	const struct rgate_slab *s;
	const struct rgate_buf *buf;
	size_t off;
	int err = rgate_pool_gone(pool);

	if (err)
		return err;
	r = rgate_region_of(pool, addr);
	if (!r)
		return -EFAULT;
	off = (size_t)((const char *)addr - (const char *)r->backing.addr);
	/* Pairs with the release by which a slab gets its grains. */
	s = __atomic_load_n(&r->owner[off >> RGATE_GRAIN_SHIFT], __ATOMIC_ACQUIRE);
	if (!s)
		return -ENOENT;
	off = (size_t)((const char *)addr - s->base) / s->size;
	if (off >= s->n)
		return -ENOENT;
	buf = &s->buf[off];
	if ((uintptr_t)addr - (uintptr_t)buf->addr >= rgate_buf_held(buf))
		return -ENOENT;
	*out = buf;
	return 0;
}

int rgate_buf_desc(const struct rgate_pool *pool, const struct rgate_buf *buf, size_t offset,
		   size_t len, struct rgate_desc *desc)
{
	const struct rgate_slab *s = rgate_buf_slab(buf);
	const struct rgate_region *r;
	size_t at;

	if (rgate_pool_gone(pool))
		return -EPERM;
	if (!s || s->pool != pool)
		return -EINVAL;
	if (offset >= buf->length || len > buf->length - offset)
		return -ERANGE;
	if (!len)
		len = buf->length - offset;
	if (!(pool->access & RGATE_ACCESS_REMOTE))
		return -EACCES;
	r = s->region;
	at = (size_t)((char *)buf->addr - (char *)r->backing.addr) + offset;
	if (r->mem)
		return rgate_mem_desc(r->mem, at, len, desc);
	rgate_desc_fill(desc, r->rkey, at, len, pool->access, 0);
	return 0;
}

int rgate_pool_region(const struct rgate_pool *pool, unsigned int i,
		      struct rgate_pool_region *out)
{
	struct rgate_pool_region info;
	const struct rgate_region *r;

	if (rgate_pool_gone(pool))
		return -EPERM;
	if (i >= __atomic_load_n(&pool->regions, __ATOMIC_ACQUIRE))
		return -ENOENT;
	r = pool->region[i];
	info = (struct rgate_pool_region){
		.addr = r->backing.addr,
		.length = r->backing.len,
		.page_size = r->backing.page_size,
		.huge = r->backing.huge,
		.lkey = r->lkey,
		.rkey = r->rkey,
		.fd = r->backing.fd,
		.node = r->backing.node,
	};
	return rgate_info_copy(out, &info, sizeof(info));
}

/* The numbers of one class, as of now */
static void read_class(struct rgate_pool *pool, unsigned int i, struct rgate_pool_class *out)
{
	struct rgate_class *c = &pool->cls[i];
	uint64_t allocs, kept, taken;

	rgate_cache_counts(pool, i, &allocs, &kept);
	pthread_mutex_lock(&c->lock);
	taken = c->slab_bufs - c->free - c->depot_n;
	/* Threads go on meanwhile. */
	kept = kept < taken ? kept : taken;
	*out = (struct rgate_pool_class){
		.size = i == RGATE_RUN_CLASS ? 0 : rgate_class_size(i),
		.used = taken - kept,
		.cached = kept,
		.free = c->free + c->depot_n,
		.allocs = allocs,
		.slab_bytes = c->slab_bytes,
	};
	pthread_mutex_unlock(&c->lock);
}

static void fragmentation(struct rgate_pool_stats *st)
{
	if (st->free_bytes)
		st->fragmentation_ppm = 1000000 -
			(uint64_t)((double)st->largest_free / (double)st->free_bytes * 1e6);
}

static void read_runs(struct rgate_pool *pool, struct rgate_pool_stats *st)
{
	uint64_t largest = 0, n;
	unsigned int i;

	pthread_mutex_lock(&pool->runs_lock);
	for (i = 0; i < st->regions; i++) {
		const struct rgate_runs *r = &pool->region[i]->runs;

		st->free_bytes += (uint64_t)r->free << RGATE_GRAIN_SHIFT;
		n = rgate_runs_largest(r);
		largest = n > largest ? n : largest;
	}
	pthread_mutex_unlock(&pool->runs_lock);
	st->largest_free = largest << RGATE_GRAIN_SHIFT;
	fragmentation(st);
	/* What red zones take of a buffer */
	if (pool->flags & RGATE_POOL_DEBUG && st->largest_free)
		st->largest_free -= rgate_debug_size(0, RGATE_POOL_LINE);
}

static uint64_t counter(const uint64_t *c)
{
	return __atomic_load_n(c, __ATOMIC_RELAXED);
}

int rgate_pool_stats(const struct rgate_pool *cpool, struct rgate_pool_stats *out)
{
	struct rgate_pool *pool = (struct rgate_pool *)cpool;
	struct rgate_pool_stats st = { 0 };
	struct rgate_pool_class c;
	unsigned int i;

	if (rgate_pool_gone(pool))
		return -EPERM;
	st.regions = __atomic_load_n(&pool->regions, __ATOMIC_ACQUIRE);
	st.region_bytes = st.regions * pool->region_size;
	st.quota_bytes = pool->max_size;
	for (i = 0; i <= RGATE_CLASSES; i++) {
		read_class(pool, i, &c);
		st.used_buffers += c.used;
		st.used_bytes += c.size ? c.used * c.size : c.slab_bytes;
		st.cached_buffers += c.cached;
		st.cached_bytes += c.cached * c.size;
		st.allocs += c.allocs;
	}
	st.frees = st.allocs - st.used_buffers;
	read_runs(pool, &st);
	st.high_bytes = counter(&pool->high_bytes);
	st.refused = counter(&pool->refused);
	st.waits = counter(&pool->waits);
	st.timeouts = counter(&pool->timeouts);
	st.reclaims = counter(&pool->reclaims);
	st.grown = counter(&pool->grown);
	st.grow_failures = counter(&pool->grow_failures);
	st.double_frees = counter(&pool->double_frees);
	st.foreign_frees = counter(&pool->foreign_frees);
	st.overruns = counter(&pool->overruns);
	st.meta_bytes = counter(&pool->meta_bytes);
	return rgate_info_copy(out, &st, sizeof(st));
}

int rgate_pool_classes(const struct rgate_pool *cpool,
		       int (*fn)(void *ctx, const struct rgate_pool_class *c), void *ctx)
{
	struct rgate_pool *pool = (struct rgate_pool *)cpool;
	struct rgate_pool_class c;
	unsigned int i;
	int r = 0;

	if (rgate_pool_gone(pool))
		return -EPERM;
	for (i = 0; i < RGATE_CLASSES && !r; i++) {
		read_class(pool, i, &c);
		if (c.allocs || c.slab_bytes)
			r = fn(ctx, &c);
	}
	return r;
}

static int held_of(struct rgate_slab *s, int (*fn)(void *, const struct rgate_pool_holder *),
		   void *ctx)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < s->n && !r; i++) {
		struct rgate_pool_holder h = { .buf = &s->buf[i] };

		if (!rgate_buf_held(h.buf))
			continue;
		if (s->info) {
			h.tag = s->info[i].tag;
			h.site = s->info[i].site;
			h.thread = s->info[i].thread;
		}
		r = fn(ctx, &h);
	}
	return r;
}

int rgate_pool_held(const struct rgate_pool *cpool,
		    int (*fn)(void *ctx, const struct rgate_pool_holder *h), void *ctx)
{
	struct rgate_pool *pool = (struct rgate_pool *)cpool;
	struct rgate_slab *s;
	int r = 0;

	if (rgate_pool_gone(pool))
		return -EPERM;
	for (s = __atomic_load_n(&pool->slabs, __ATOMIC_ACQUIRE); s && !r; s = s->all) {
		struct rgate_class *c = &pool->cls[s->cls];

		pthread_mutex_lock(&c->lock);
		if (s->bytes)
			r = held_of(s, fn, ctx);
		pthread_mutex_unlock(&c->lock);
	}
	return r;
}

int rgate_pool_flush(struct rgate_pool *pool)
{
	struct rgate_cache *c;

	if (rgate_pool_gone(pool))
		return -EPERM;
	c = pool->cached ? rgate_cache_get(pool) : NULL;
	if (c)
		rgate_cache_flush(c);
	rgate_slab_trim(pool);
	rgate_pool_released(pool);
	return 0;
}

int rgate_pool_check(struct rgate_pool *pool)
{
	if (rgate_pool_gone(pool))
		return -EPERM;
	return pool->flags & RGATE_POOL_DEBUG ? rgate_debug_check(pool) : -EOPNOTSUPP;
}
