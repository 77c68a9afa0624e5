// SPDX-License-Identifier: MIT OR GPL-2.0
/* Allocation and release. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "cache.h"
#include "clock.h"
#include "log.h"
#include "opts.h"
#include "pool.h"
#include "pool_debug.h"

#define BATCH		32	/* buffers moved between a cache and the slabs at once */
#define MAX_ALIGN	((size_t)1 << 30)

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

/* What an allocation has to have; found once, used until there is a buffer */
struct want {
	size_t size;		/* as asked for */
	size_t bytes;		/* with what alignment and red zones take */
	size_t align;
	unsigned int cls;	/* RGATE_RUN_CLASS: none */
	const char *tag;
	const void *site;
	bool zero;
};

/* The last step for a buffer that did not come from the fast path */
static void hand_out(struct rgate_pool *pool, struct rgate_buf *buf, const struct want *w)
{
	const struct rgate_slab *s = rgate_buf_slab(buf);

	if (pool->flags & RGATE_POOL_DEBUG) {
		rgate_debug_alloc(pool, buf, w->size, w->align, w->tag, w->site);
	} else {
		buf->addr = s->base + (size_t)(buf - s->buf) * s->size;
		if (pool->annotate)
			rgate_mark_held(buf, w->size);
	}
	if (w->zero)
		memset(buf->addr, 0, w->size);
	rgate_buf_hold(buf, w->size);
}

static int find_want(const struct rgate_pool *pool, struct want *w)
{
	w->bytes = w->size;
	if (!w->size)
		return -EINVAL;
	if (pool->flags & RGATE_POOL_DEBUG) {
		w->bytes = rgate_debug_size(w->size, w->align);
		if (!w->bytes)
			return -EMSGSIZE;
	}
	if (w->bytes > pool->region_size || w->align > pool->region_size)
		return -EMSGSIZE;
	w->cls = RGATE_RUN_CLASS;
	/* Of a power of two that is a class every buffer is aligned to its size. */
	if (w->align > RGATE_POOL_LINE && w->align <= RGATE_GRAIN && w->bytes < RGATE_GRAIN) {
		size_t bytes = w->bytes > w->align ? w->bytes : w->align;

		w->bytes = (size_t)1 << (64 - __builtin_clzl(bytes - 1));
	}
	if (w->align <= RGATE_GRAIN && w->bytes <= RGATE_CLASS_MAX)
		w->cls = rgate_class_of(w->bytes);
	return 0;
}

static struct rgate_buf *take(struct rgate_pool *pool, const struct want *w)
{
	struct rgate_buf *buf;

	if (w->cls == RGATE_RUN_CLASS)
		return rgate_slab_take_run(pool, w->bytes, w->align);
	return rgate_slab_take(pool, w->cls, &buf, 1) ? buf : NULL;
}

/* One thread makes a region, the others wait for it and look again. 0: look again */
static int grow(struct rgate_pool *pool, unsigned int regions)
{
	int err = 0;

	pthread_mutex_lock(&pool->grow);
	if (regions == pool->regions) {
		err = rgate_region_add(pool);
		if (!err) {
			rgate_count(&pool->grown);
		} else if (err != -ENOBUFS || pool->regions < pool->max_regions) {
			rgate_count(&pool->grow_failures);
			rgate_err("%s: no further region: %s", pool->name,
				  rgate_mem_strerror(err));
			err = -ENOBUFS;
		}
	}
	pthread_mutex_unlock(&pool->grow);
	return err;
}

/* The slabs, then what lies idle in classes and threads, then a new region */
static struct rgate_buf *take_hard(struct rgate_pool *pool, const struct want *w)
{
	unsigned int regions = __atomic_load_n(&pool->regions, __ATOMIC_ACQUIRE);
	struct rgate_buf *buf = take(pool, w);

	if (!buf && rgate_slab_trim(pool))
		buf = take(pool, w);
	if (!buf && pool->cached && rgate_cache_reclaim(pool)) {
		rgate_slab_trim(pool);
		buf = take(pool, w);
	}
	while (!buf && !grow(pool, regions)) {
		regions = __atomic_load_n(&pool->regions, __ATOMIC_ACQUIRE);
		buf = take(pool, w);
	}
	return buf;
}

/*
 * Waits for releases. The count of waiters is up before the caches are taken back:
 * whoever releases afterwards sees it, by the fence in there (cache.h), and gives to the
 * slabs; whoever released before had it taken back.
 */
static struct rgate_buf *wait_for(struct rgate_pool *pool, const struct want *w, uint64_t end)
{
	struct timespec ts = { (time_t)(end / 1000000000), (long)(end % 1000000000) };
	struct rgate_buf *buf;
	uint64_t seen;
	int err = 0;

	rgate_count(&pool->waits);
	__atomic_fetch_add(&pool->waiters, 1, __ATOMIC_SEQ_CST);
	do {
		pthread_mutex_lock(&pool->wait);
		seen = pool->releases;
		pthread_mutex_unlock(&pool->wait);
		buf = take_hard(pool, w);
		if (buf)
			break;
		pthread_mutex_lock(&pool->wait);
		while (seen == pool->releases && !err)
			err = pthread_cond_timedwait(&pool->freed, &pool->wait, &ts);
		pthread_mutex_unlock(&pool->wait);
	} while (!err);
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

static int take_any(struct rgate_pool *pool, const struct want *w, uint64_t end,
		    struct rgate_buf **buf)
{
	*buf = take_hard(pool, w);
	if (!*buf && end)
		*buf = wait_for(pool, w, end);
	if (!*buf) {
		rgate_count(&pool->refused);
		return end ? -ETIMEDOUT : -ENOBUFS;
	}
	__atomic_fetch_add(&pool->cls[w->cls].allocs, 1, __ATOMIC_RELAXED);
	return 0;
}

/* This thread's cache, entered, with a bin that can be used; or NULL */
static struct rgate_cache *enter(struct rgate_pool *pool, unsigned int cls)
{
	struct rgate_cache *c;

	if (cls >= pool->cached)
		return NULL;
	c = rgate_cache_last;
	if (!c || c->pool != pool)
		c = rgate_cache_get(pool);
	if (!c)
		return NULL;
	while (!rgate_cache_enter(c))
		rgate_cache_wait(c);
	if (!c->bin[cls].cap && !rgate_cache_open_bin(c, cls)) {
		rgate_cache_leave(c);
		return NULL;
	}
	return c;
}

/* From the cache, refilled if it is empty. NULL: there is nothing to refill it with */
static struct rgate_buf *take_cached(struct rgate_pool *pool, unsigned int cls)
{
	struct rgate_buf *bufs[BATCH], *buf = NULL;
	struct rgate_cache *c = enter(pool, cls);
	unsigned int n, want;
	struct rgate_bin *bin;

	if (!c)
		return NULL;
	bin = &c->bin[cls];
	if (!bin->n) {
		want = bin->cap / 2 + 1;
		rgate_cache_leave(c);
		n = rgate_slab_take(pool, cls, bufs, want < BATCH ? want : BATCH);
		while (!rgate_cache_enter(c))
			rgate_cache_wait(c);
		/* Nobody but the owner puts anything in. */
		memcpy(bin->buf, bufs, n * sizeof(*bufs));
		bin->n = n;
	}
	if (bin->n) {
		buf = bin->buf[--bin->n];
		rgate_cache_note(&bin->allocs, 1);
	}
	rgate_cache_leave(c);
	return buf;
}

static int alloc_slow(struct rgate_pool *pool, struct want *w, int timeout_ms,
		      const struct rgate_buf **out)
{
	struct rgate_buf *buf = NULL;
	uint64_t end = 0;
	int err = rgate_pool_gone(pool);

	if (!err)
		err = find_want(pool, w);
	if (err)
		return err;
	if (timeout_ms)
		end = rgate_clock_now(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000;
	buf = take_cached(pool, w->cls);
	if (!buf) {
		err = take_any(pool, w, end, &buf);
		if (err)
			return err;
	}
	hand_out(pool, buf, w);
	*out = buf;
	return 0;
}

int rgate_pool_alloc(struct rgate_pool *pool, size_t size, const struct rgate_buf **out)
{
	const unsigned int cls = rgate_class_of(size);
	struct rgate_cache *c = rgate_cache_last;
	struct rgate_bin *bin;
	struct rgate_buf *buf;
	struct want w;

	if (unlikely(!c || c->pool != pool || cls >= pool->cached))
		goto slow;
	if (unlikely(!rgate_cache_enter(c))) {
		rgate_cache_leave(c);
		goto slow;
	}
	bin = &c->bin[cls];
	if (unlikely(!bin->n)) {
		rgate_cache_leave(c);
		goto slow;
	}
	buf = bin->buf[--bin->n];
	rgate_cache_note(&bin->allocs, 1);
	rgate_cache_leave(c);
	rgate_buf_hold(buf, size);
	*out = buf;
	return 0;

slow:
	w = (struct want){ .size = size, .align = RGATE_POOL_LINE,
			   .site = __builtin_return_address(0) };
	return alloc_slow(pool, &w, 0, out);
}

static int check_opts(struct rgate_alloc_opts *opts, const struct rgate_alloc_opts *user)
{
	int err = rgate_opts_copy(opts, sizeof(*opts), user);

	if (err)
		return err;
	if (!opts->align)
		opts->align = RGATE_POOL_LINE;
	if (opts->align & (opts->align - 1) || opts->align > MAX_ALIGN || opts->timeout_ms < 0 ||
	    opts->flags & ~RGATE_ALLOC_ZERO)
		return -EINVAL;
	if (opts->align < RGATE_POOL_LINE)
		opts->align = RGATE_POOL_LINE;
	return 0;
}

int rgate_pool_alloc_opts(struct rgate_pool *pool, size_t size,
			  const struct rgate_alloc_opts *user, const struct rgate_buf **out)
{
	struct rgate_alloc_opts opts;
	struct want w;
	int err = check_opts(&opts, user);

	if (err)
		return err;
	w = (struct want){ .size = size, .align = opts.align, .tag = opts.tag,
			   .zero = opts.flags & RGATE_ALLOC_ZERO,
			   .site = __builtin_return_address(0) };
	return alloc_slow(pool, &w, opts.timeout_ms, out);
}

/* As many as the thread keeps, at once */
static unsigned int batch_cached(struct rgate_pool *pool, const struct want *w,
				 const struct rgate_buf **bufs, unsigned int n)
{
	struct rgate_cache *c = enter(pool, w->cls);
	const size_t size = w->size;
	struct rgate_buf **from;
	struct rgate_bin *bin;
	unsigned int i;

	if (!c)
		return 0;
	bin = &c->bin[w->cls];
	if (n > bin->n)
		n = bin->n;
	bin->n -= n;
	from = bin->buf + bin->n;
	for (i = 0; i < n; i++) {
		struct rgate_buf *buf = from[i];

		rgate_buf_hold(buf, size);
		bufs[i] = buf;
	}
	rgate_cache_note(&bin->allocs, n);
	rgate_cache_leave(c);
	if (w->zero)
		for (i = 0; i < n; i++)
			memset(bufs[i]->addr, 0, w->size);
	return n;
}

int rgate_pool_alloc_batch(struct rgate_pool *pool, size_t size,
			   const struct rgate_alloc_opts *user, const struct rgate_buf **bufs,
			   unsigned int n)
{
	struct rgate_alloc_opts opts;
	unsigned int got = 0;
	uint64_t end = 0, now;
	int err, left = 0;
	struct want w, one;

	err = check_opts(&opts, user);
	/* A child has no cache (and a system call costs as much as thirty buffers). */
	if (!err && (!rgate_cache_last || rgate_cache_last->pool != pool))
		err = rgate_pool_gone(pool);
	if (err)
		return err;
	w = (struct want){ .size = size, .align = opts.align, .tag = opts.tag,
			   .zero = opts.flags & RGATE_ALLOC_ZERO,
			   .site = __builtin_return_address(0) };
	err = find_want(pool, &w);
	if (err)
		return err;
	if (opts.timeout_ms)
		end = rgate_clock_now(CLOCK_MONOTONIC) + (uint64_t)opts.timeout_ms * 1000000;
	got = batch_cached(pool, &w, bufs, n);
	while (got < n && !err) {
		if (end) {
			now = rgate_clock_now(CLOCK_MONOTONIC);
			left = now < end ? (int)((end - now) / 1000000) + 1 : 0;
		}
		one = (struct want){ .size = w.size, .align = w.align, .tag = w.tag,
				     .site = w.site, .zero = w.zero };
		err = alloc_slow(pool, &one, left, &bufs[got]);
		got += !err;
	}
	if (err) {
		rgate_pool_free_batch(pool, bufs, got);
		return end && err == -ENOBUFS ? -ETIMEDOUT : err;
	}
	return 0;
}

static int foreign(struct rgate_pool *pool, const struct rgate_buf *buf)
{
	rgate_count(&pool->foreign_frees);
	rgate_err("%s: %p is no buffer of this pool", pool->name, (const void *)buf);
	return -EINVAL;
}

static int twice(struct rgate_pool *pool, const struct rgate_buf *buf)
{
	rgate_count(&pool->double_frees);
	rgate_err("%s: the buffer at %p was released before", pool->name, buf->addr);
	return -EALREADY;
}

/* Makes room by giving the older half back */
static void spill(struct rgate_pool *pool, struct rgate_cache *c, struct rgate_bin *bin)
{
	unsigned int n = bin->cap / 2 ? bin->cap / 2 : 1;
	struct rgate_buf *bufs[BATCH];

	if (n > BATCH)
		n = BATCH;
	memcpy(bufs, bin->buf, n * sizeof(*bufs));
	bin->n -= n;
	memmove(bin->buf, bin->buf + n, bin->n * sizeof(*bufs));
	rgate_cache_leave(c);
	rgate_slab_give(pool, bufs, n);
	while (!rgate_cache_enter(c))
		rgate_cache_wait(c);
}

static int free_slow(struct rgate_pool *pool, struct rgate_buf *buf)
{
	struct rgate_slab *s;
	struct rgate_cache *c;
	int err = rgate_pool_gone(pool);

	if (err)
		return err;
	if (pool->flags & RGATE_POOL_DEBUG && !rgate_debug_known(pool, buf))
		return foreign(pool, buf);
	s = rgate_buf_slab(buf);
	if (!s || s->pool != pool)
		return foreign(pool, buf);
	if (!__atomic_exchange_n(&buf->length, 0, __ATOMIC_ACQ_REL))
		return twice(pool, buf);
	if (pool->annotate)
		rgate_mark_free(buf, s->size);
	if (pool->flags & RGATE_POOL_DEBUG)
		err = rgate_debug_free(pool, buf);
	c = __atomic_load_n(&pool->waiters, __ATOMIC_SEQ_CST) ? NULL : enter(pool, s->cls);
	/* The cache was entered after the look: look again, behind its fence. */
	if (c && __atomic_load_n(&pool->waiters, __ATOMIC_RELAXED)) {
		rgate_cache_leave(c);
		c = NULL;
	}
	if (c) {
		struct rgate_bin *bin = &c->bin[s->cls];

		if (bin->n == bin->cap)
			spill(pool, c, bin);
		bin->buf[bin->n++] = buf;
		rgate_cache_note(&bin->frees, 1);
		rgate_cache_leave(c);
		rgate_pool_released(pool);
		return err;
	}
	__atomic_fetch_add(&pool->cls[s->cls].frees, 1, __ATOMIC_RELAXED);
	if (!err)
		rgate_slab_give(pool, &buf, 1);
	rgate_pool_released(pool);
	return err;
}

int rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *cbuf)
{
	struct rgate_buf *buf = (struct rgate_buf *)cbuf;
	struct rgate_cache *c = rgate_cache_last;
	const struct rgate_slab *s;
	struct rgate_bin *bin;

	if (unlikely(!buf))
		return 0;
	if (unlikely(!c || c->pool != pool || !pool->cached))
		return free_slow(pool, buf);
	s = rgate_buf_slab(buf);
	if (unlikely(!rgate_buf_held(buf) || !s || s->pool != pool || s->cls >= pool->cached ||
		     !rgate_cache_enter(c)))
		goto slow;
	bin = &c->bin[s->cls];
	/* Waiters: behind the fence of entering, see wait_for(). */
	if (unlikely(bin->n == bin->cap || __atomic_load_n(&pool->waiters, __ATOMIC_RELAXED)))
		goto slow;
	rgate_buf_hold(buf, 0);
	bin->buf[bin->n++] = buf;
	rgate_cache_note(&bin->frees, 1);
	rgate_cache_leave(c);
	return 0;

slow:
	rgate_cache_leave(c);
	return free_slow(pool, buf);
}

/*
 * Into the thread's cache as many as go there without more ado, from the front of @bufs:
 * held, of this pool, all of one class. How many did
 */
static unsigned int free_cached(struct rgate_pool *pool, const struct rgate_buf *const *bufs,
				unsigned int n)
{
	struct rgate_cache *c = rgate_cache_last;
	const struct rgate_slab *s;
	struct rgate_buf **to;
	struct rgate_bin *bin;
	unsigned int i, cls;

	if (!c || c->pool != pool || !bufs[0])
		return 0;
	s = rgate_buf_slab(bufs[0]);
	if (!s || s->pool != pool || s->cls >= pool->cached)
		return 0;
	cls = s->cls;
	if (!rgate_cache_enter(c)) {
		rgate_cache_leave(c);
		return 0;
	}
	bin = &c->bin[cls];
	if (n > bin->cap - bin->n)
		n = bin->cap - bin->n;
	if (__atomic_load_n(&pool->waiters, __ATOMIC_RELAXED))
		n = 0;
	to = bin->buf + bin->n;
	for (i = 0; i < n && bufs[i]; i++) {
		struct rgate_buf *buf = (struct rgate_buf *)bufs[i];
		const struct rgate_slab *its = rgate_buf_slab(buf);

		if (its != s && (!its || its->pool != pool || its->cls != cls))
			break;
		s = its;
		if (!rgate_buf_held(buf))
			break;
		rgate_buf_hold(buf, 0);
		to[i] = buf;
	}
	bin->n += i;
	rgate_cache_note(&bin->frees, i);
	rgate_cache_leave(c);
	return i;
}

int rgate_pool_free_batch(struct rgate_pool *pool, const struct rgate_buf *const *bufs,
			  unsigned int n)
{
	unsigned int i = 0;
	int first = 0, err;

	while (i < n) {
		i += free_cached(pool, bufs + i, n - i);
		if (i == n)
			break;
		/* One that is not so plain; it makes room, or is refused. */
		err = rgate_pool_free(pool, bufs[i++]);
		if (err && !first)
			first = err;
	}
	return first;
}
