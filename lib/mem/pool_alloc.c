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

/* The last step for a buffer that did not come from the fast path */
static void hand_out(struct rgate_pool *pool, struct rgate_buf *buf, const struct rgate_want *w)
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

static int find_want(const struct rgate_pool *pool, struct rgate_want *w)
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
	if (unlikely(rgate_bin_many(__atomic_load_n(&c->bin[cls].state, __ATOMIC_RELAXED))))
		rgate_cache_sum(c, cls);
	while (!rgate_cache_enter(c))
		rgate_cache_wait(c);
	if (!c->bin[cls].cap && !rgate_cache_open_bin(c, cls)) {
		rgate_cache_leave(c);
		return NULL;
	}
	return c;
}

/*
 * Half of what the bin holds, into the bin, which is empty. Inside: nobody can take it
 * for used up while the buffers are on their way.
 */
static void refill(struct rgate_pool *pool, struct rgate_bin *bin, unsigned int cls)
{
	const unsigned int half = bin->cap / 2 + 1, want = half < BATCH ? half : BATCH;
	unsigned int n = rgate_slab_take(pool, cls, bin->buf, want);

	if (rgate_pool_tight(pool) && n > 1) {
		rgate_slab_give(pool, cls, bin->buf + 1, n - 1);
		if (n == want)
			rgate_pool_not_dry(pool);
		n = 1;
		rgate_pool_released(pool);
	}
	rgate_bin_set(bin, bin->state + n);
}

/* From the cache, refilled if it is empty. NULL: there is nothing to refill it with */
static struct rgate_buf *take_cached(struct rgate_pool *pool, unsigned int cls)
{
	struct rgate_cache *c = enter(pool, cls);
	struct rgate_buf *buf = NULL;
	struct rgate_bin *bin;
	unsigned int n;

	if (!c)
		return NULL;
	bin = &c->bin[cls];
	if (!rgate_bin_there(bin->state))
		refill(pool, bin, cls);
	n = rgate_bin_there(bin->state);
	if (n) {
		buf = bin->buf[n - 1];
		rgate_bin_set(bin, bin->state + RGATE_BIN_ALLOC);
	}
	rgate_cache_leave(c);
	return buf;
}

static uint64_t deadline(int timeout_ms)
{
	if (!timeout_ms)
		return 0;
	return rgate_clock_now(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000;
}

static int alloc_slow(struct rgate_pool *pool, struct rgate_want *w, int timeout_ms,
		      const struct rgate_buf **out)
{
	struct rgate_buf *buf;
	int err = rgate_cache_gone(pool);

	if (!err)
		err = find_want(pool, w);
	if (err)
		return err;
	buf = take_cached(pool, w->cls);
	if (!buf) {
		err = rgate_pool_take(pool, w, deadline(timeout_ms), &buf);
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
	struct rgate_want w;
	uint64_t state;

	/* Who has a cache of a pool keeps buffers of all classes. */
	if (unlikely(!c || c->pool != pool || cls >= RGATE_CLASSES))
		goto slow;
	if (unlikely(!rgate_cache_enter(c))) {
		rgate_cache_leave(c);
		goto slow;
	}
	bin = &c->bin[cls];
	state = bin->state;
	if (unlikely(!rgate_bin_there(state) || rgate_bin_many(state))) {
		rgate_cache_leave(c);
		goto slow;
	}
	buf = bin->buf[rgate_bin_there(state) - 1];
	rgate_bin_set(bin, state + RGATE_BIN_ALLOC);
	rgate_cache_leave(c);
	rgate_buf_hold(buf, size);
	*out = buf;
	return 0;

slow:
	w = (struct rgate_want){ .size = size, .align = RGATE_POOL_LINE,
			   .site = __builtin_return_address(0) };
	return alloc_slow(pool, &w, 0, out);
}

static int check_opts(struct rgate_alloc_opts *opts, const struct rgate_alloc_opts *user)
{
	int err;

	if (!user) {
		*opts = (struct rgate_alloc_opts){ .align = RGATE_POOL_LINE };
		return 0;
	}
	err = rgate_opts_copy(opts, sizeof(*opts), user);
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
	struct rgate_want w;
	int err = check_opts(&opts, user);

	if (err)
		return err;
	w = (struct rgate_want){ .size = size, .align = opts.align, .tag = opts.tag,
			   .zero = opts.flags & RGATE_ALLOC_ZERO,
			   .site = __builtin_return_address(0) };
	return alloc_slow(pool, &w, opts.timeout_ms, out);
}

/* As many as the thread keeps, and then as many as there are in the slabs, at once */
static unsigned int batch_cached(struct rgate_pool *pool, const struct rgate_want *w,
				 const struct rgate_buf **bufs, unsigned int n)
{
	struct rgate_cache *c = enter(pool, w->cls);
	struct rgate_buf **to = (struct rgate_buf **)bufs;
	const size_t size = w->size;
	struct rgate_bin *bin;
	struct rgate_buf **from;
	unsigned int i, got;

	if (!c)
		return 0;
	bin = &c->bin[w->cls];
	got = rgate_bin_there(bin->state);
	from = bin->buf + got;
	got = n < got ? n : got;
	from -= got;
	for (i = 0; i < got; i++)
		rgate_buf_hold(from[i], size);
	/* The pointers at once: a store each would be a third of all stores. */
	memcpy(to, from, got * sizeof(*to));
	rgate_bin_set(bin, bin->state + got * RGATE_BIN_ALLOC);
	if (got < n) {
		got += rgate_slab_take(pool, w->cls, to + got, n - got);
		rgate_bin_set(bin, bin->state + ((uint64_t)(got - i) << RGATE_BIN_SHIFT));
		for (; i < got; i++)
			rgate_buf_hold(to[i], size);
	}
	rgate_cache_leave(c);
	if (w->zero)
		for (i = 0; i < got; i++)
			memset(bufs[i]->addr, 0, size);
	return got;
}

/* All or none */
static int batch_alloc(struct rgate_pool *pool, const struct rgate_want *w, uint64_t end,
		       const struct rgate_buf **bufs, unsigned int n)
{
	struct rgate_buf *buf;
	unsigned int got = 0;
	int err;

	for (;;) {
		got += batch_cached(pool, w, bufs + got, n - got);
		if (got == n)
			return 0;
		/* One by one it is searched and waited for. */
		err = rgate_pool_take(pool, w, end, &buf);
		if (err)
			break;
		hand_out(pool, buf, w);
		bufs[got++] = buf;
	}
	rgate_pool_free_batch(pool, bufs, got);
	return err;
}

int rgate_pool_alloc_batch(struct rgate_pool *pool, size_t size,
			   const struct rgate_alloc_opts *user, const struct rgate_buf **bufs,
			   unsigned int n)
{
	struct rgate_alloc_opts opts;
	struct rgate_want w;
	int err;

	err = check_opts(&opts, user);
	/* A child has no cache (and a system call costs as much as thirty buffers). */
	if (!err)
		err = rgate_cache_gone(pool);
	if (err)
		return err;
	w = (struct rgate_want){ .size = size, .align = opts.align, .tag = opts.tag,
				 .zero = opts.flags & RGATE_ALLOC_ZERO,
				 .site = __builtin_return_address(0) };
	err = find_want(pool, &w);
	if (err)
		return err;
	return batch_alloc(pool, &w, deadline(opts.timeout_ms), bufs, n);
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

/*
 * Makes room by giving the older half back, all of it: what stays is moved once for as many
 * releases. Inside.
 */
static void spill(struct rgate_pool *pool, struct rgate_bin *bin, unsigned int cls)
{
	const unsigned int n = bin->cap / 2 ? bin->cap / 2 : 1;
	const unsigned int left = rgate_bin_there(bin->state) - n;
	unsigned int i;

	/* Others want the class's lock too. */
	for (i = 0; i < n; i += BATCH)
		rgate_slab_give(pool, cls, bin->buf + i, n - i < BATCH ? n - i : BATCH);
	memmove(bin->buf, bin->buf + n, left * sizeof(*bin->buf));
	rgate_bin_set(bin, bin->state - n);
}

static int free_slow(struct rgate_pool *pool, struct rgate_buf *buf)
{
	struct rgate_slab *s;
	struct rgate_cache *c;
	int err = rgate_cache_gone(pool);

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
	c = rgate_pool_tight(pool) ? NULL : enter(pool, s->cls);
	/* The cache was entered after the look: look again, behind its fence. */
	if (c && rgate_pool_tight(pool)) {
		rgate_cache_leave(c);
		c = NULL;
	}
	if (c) {
		struct rgate_bin *bin = &c->bin[s->cls];

		if (rgate_bin_there(bin->state) == bin->cap)
			spill(pool, bin, s->cls);
		bin->buf[rgate_bin_there(bin->state)] = buf;
		rgate_bin_set(bin, bin->state + 1);
		rgate_cache_leave(c);
		rgate_pool_released(pool);
		return err;
	}
	if (err)
		rgate_count(&pool->cls[s->cls].spoilt);
	else
		rgate_slab_give(pool, s->cls, &buf, 1);
	rgate_pool_released(pool);
	rgate_pool_back(pool);
	return err;
}

/*
 * The bin for @buf, if it is one of the pool's that threads keep; by its class, which lies
 * in the pool. Inside.
 */
static inline struct rgate_bin *bin_of(struct rgate_cache *c, const struct rgate_buf *buf)
{
	const struct rgate_class *cls = rgate_buf_class(buf), *all = c->pool->cls;
	size_t at = (uintptr_t)cls - (uintptr_t)all;

	if (likely(cls == c->last_cls))
		return c->last;
	if (at >= RGATE_CLASSES * sizeof(*cls))
		return NULL;
	c->last_cls = cls;
	c->last = &c->bin[at / sizeof(*cls)];
	return c->last;
}

int rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *cbuf)
{
	struct rgate_buf *buf = (struct rgate_buf *)cbuf;
	struct rgate_cache *c = rgate_cache_last;
	struct rgate_bin *bin;
	uint64_t state;

	if (unlikely(!buf))
		return 0;
	if (unlikely(!c || c->pool != pool))
		return free_slow(pool, buf);
	if (unlikely(!rgate_cache_enter(c)))
		goto slow;
	bin = bin_of(c, buf);
	/* Tight: behind the fence of entering */
	if (unlikely(!bin || !rgate_buf_held(buf) || rgate_pool_tight(pool)))
		goto slow;
	state = bin->state;
	if (unlikely(rgate_bin_there(state) == bin->cap))
		goto slow;
	rgate_buf_hold(buf, 0);
	bin->buf[rgate_bin_there(state)] = buf;
	rgate_bin_set(bin, state + 1);
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
	const struct rgate_class *cls;
	struct rgate_bin *bin;
	unsigned int i = 0, there;

	if (!c || c->pool != pool || !bufs[0])
		return 0;
	if (!rgate_cache_enter(c))
		goto leave;
	bin = bin_of(c, bufs[0]);
	if (!bin || rgate_pool_tight(pool))
		goto leave;
	cls = c->last_cls;
	there = rgate_bin_there(bin->state);
	if (n > bin->cap - there)
		n = bin->cap - there;
	for (; i < n; i++) {
		struct rgate_buf *buf = (struct rgate_buf *)bufs[i];

		if (!buf || rgate_buf_class(buf) != cls || !rgate_buf_held(buf))
			break;
		rgate_buf_hold(buf, 0);
	}
	memcpy(bin->buf + there, bufs, i * sizeof(*bufs));
	rgate_bin_set(bin, bin->state + i);
leave:
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
