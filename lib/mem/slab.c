// SPDX-License-Identifier: MIT OR GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "pool_debug.h"

/* Slabs with all buffers free that a class keeps, so as not to make them over and over */
#define KEEP_EMPTY	1
/* Buffers at most that a class keeps in its depot */
#define DEPOT_MAX	256U

static void link_partial(struct rgate_class *c, struct rgate_slab *s)
{
	s->prev = NULL;
	s->next = c->partial;
	if (s->next)
		s->next->prev = s;
	c->partial = s;
}

static void unlink_partial(struct rgate_class *c, struct rgate_slab *s)
{
	if (s->next)
		s->next->prev = s->prev;
	if (s->prev)
		s->prev->next = s->next;
	else
		c->partial = s->next;
}

/* A run of some region. @align: of the address, at least a grain */
static struct rgate_region *take_run(struct rgate_pool *pool, size_t bytes, size_t align,
				     uint32_t *first)
{
	unsigned int n = __atomic_load_n(&pool->regions, __ATOMIC_ACQUIRE), i;
	struct rgate_region *r = NULL;

	pthread_mutex_lock(&pool->runs_lock);
	for (i = 0; i < n; i++) {
		r = pool->region[i];
		*first = rgate_runs_take(&r->runs, (uint32_t)(bytes >> RGATE_GRAIN_SHIFT),
					 (uint32_t)(align >> RGATE_GRAIN_SHIFT),
					 (uint32_t)(((uintptr_t)r->backing.addr & (align - 1)) >>
						    RGATE_GRAIN_SHIFT));
		if (*first != RGATE_RUNS_NONE)
			break;
	}
	pthread_mutex_unlock(&pool->runs_lock);
	return i < n ? r : NULL;
}

static void give_run(struct rgate_pool *pool, struct rgate_region *r, uint32_t first)
{
	pthread_mutex_lock(&pool->runs_lock);
	rgate_runs_give(&r->runs, first);
	pthread_mutex_unlock(&pool->runs_lock);
}

/* Who looks up an address finds the slab by any of its grains. */
static void own(struct rgate_slab *s, struct rgate_slab *who)
{
	size_t i, n = s->bytes >> RGATE_GRAIN_SHIFT;

	for (i = 0; i < n; i++)
		__atomic_store_n(&s->region->owner[s->first + i], who, __ATOMIC_RELEASE);
}

/* The structure of a slab of @n buffers; kept by its class when its run is gone */
static struct rgate_slab *structure(struct rgate_pool *pool, struct rgate_class *c, uint32_t n)
{
	const size_t size = sizeof(struct rgate_slab) + n * sizeof(struct rgate_buf);
	const size_t info = pool->flags & RGATE_POOL_DEBUG ? n * sizeof(struct rgate_buf_info) : 0;
	/* What is free stands behind the buffers. */
	const size_t all = size + n * sizeof(uint32_t);
	struct rgate_slab *s = c->spare;

	if (s) {
		c->spare = s->next;
		return s;
	}
	if (!rgate_pool_charge(pool, all + info))
		return NULL;
	if (posix_memalign((void **)&s, 64, all))
		goto uncharge;
	memset(s, 0, all);
	s->free = (uint32_t *)((char *)s + size);
	if (info) {
		s->info = rgate_debug_infos(n);
		if (!s->info)
			goto free;
	}
	s->pool = pool;
	s->cls = (uint32_t)(c - pool->cls);
	s->n = n;
	pthread_mutex_lock(&pool->runs_lock);
	s->all = pool->slabs;
	/* Walked without a lock: who sees it sees what is in it. */
	__atomic_store_n(&pool->slabs, s, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&pool->runs_lock);
	return s;

free:
	free(s);
uncharge:
	rgate_pool_uncharge(pool, all + info);
	return NULL;
}

static void fill_bufs(struct rgate_slab *s)
{
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		s->buf[i] = (struct rgate_buf){
			.addr = s->base + i * s->size,
			.lkey = s->region->lkey,
			.rkey = s->region->rkey,
			.reserved = { (uintptr_t)s, (uintptr_t)&s->pool->cls[s->cls] },
		};
		/* The first is the first to be taken. */
		s->free[i] = s->n - 1 - i;
	}
	s->nfree = s->n;
	if (s->info)
		rgate_debug_fresh(s);
}

/* With the class's lock held */
static struct rgate_slab *make_slab(struct rgate_pool *pool, struct rgate_class *c,
				    size_t size, size_t bytes, size_t align)
{
	struct rgate_region *r;
	struct rgate_slab *s;
	uint32_t first;

	r = take_run(pool, bytes, align, &first);
	if (!r)
		return NULL;
	s = structure(pool, c, (uint32_t)(bytes / size));
	if (!s) {
		give_run(pool, r, first);
		return NULL;
	}
	s->region = r;
	s->first = first;
	s->size = size;
	s->bytes = bytes;
	s->base = (char *)r->backing.addr + ((size_t)first << RGATE_GRAIN_SHIFT);
	fill_bufs(s);
	own(s, s);
	c->slab_bytes += bytes;
	c->slab_bufs += s->n;
	c->free += s->n;
	c->empty++;
	return s;
}

static void end_slab(struct rgate_pool *pool, struct rgate_class *c, struct rgate_slab *s)
{
	own(s, NULL);
	c->slab_bytes -= s->bytes;
	c->slab_bufs -= s->n;
	c->free -= s->n;
	c->empty--;
	give_run(pool, s->region, s->first);
	s->bytes = 0;
	s->next = c->spare;
	c->spare = s;
}

static void note_out(struct rgate_pool *pool, uint64_t bytes)
{
	uint64_t now = __atomic_add_fetch(&pool->used_bytes, bytes, __ATOMIC_RELAXED);
	uint64_t high = __atomic_load_n(&pool->high_bytes, __ATOMIC_RELAXED);

	while (now > high &&
	       !__atomic_compare_exchange_n(&pool->high_bytes, &high, now, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Some buffers of a slab that has some; with the class's lock held */
static unsigned int take_from(struct rgate_class *c, struct rgate_slab *s,
			      struct rgate_buf **bufs, unsigned int n)
{
	unsigned int got = 0;

	if (s->nfree == s->n)
		c->empty--;
	while (got < n && s->nfree)
		bufs[got++] = &s->buf[s->free[--s->nfree]];
	c->free -= got;
	return got;
}

/*
 * The depot: where buffers that one thread releases and another allocates pass from cache
 * to cache, many at once, without a look at any of them and without slabs being made and
 * ended for them. With the class's lock held.
 */
static unsigned int depot_take(struct rgate_class *c, struct rgate_buf **bufs, unsigned int n)
{
	if (n > c->depot_n)
		n = c->depot_n;
	c->depot_n -= n;
	if (n)
		memcpy(bufs, c->depot + c->depot_n, n * sizeof(*bufs));
	return n;
}

static void make_depot(struct rgate_pool *pool, struct rgate_class *c, size_t cap)
{
	const size_t bytes = cap * sizeof(struct rgate_buf *);

	if (!cap || !rgate_pool_charge(pool, bytes))
		return;
	c->depot = malloc(bytes);
	if (c->depot)
		c->depot_cap = (uint32_t)cap;
	else
		rgate_pool_uncharge(pool, bytes);
}

/* How many of them it took; none when others look for memory */
static unsigned int depot_give(struct rgate_pool *pool, unsigned int cls,
			       struct rgate_buf **bufs, unsigned int n)
{
	struct rgate_class *c = &pool->cls[cls];

	if (!pool->cached || cls == RGATE_RUN_CLASS || rgate_pool_tight(pool))
		return 0;
	if (!c->depot) {
		size_t cap = pool->cache_bytes / rgate_class_size(cls);

		cap = cap < DEPOT_MAX ? cap : DEPOT_MAX;
		make_depot(pool, c, cap);
		if (!c->depot)
			return 0;
	}
	if (n > c->depot_cap - c->depot_n)
		n = c->depot_cap - c->depot_n;
	if (n)
		memcpy(c->depot + c->depot_n, bufs, n * sizeof(*bufs));
	c->depot_n += n;
	return n;
}

unsigned int rgate_slab_take(struct rgate_pool *pool, unsigned int cls,
			     struct rgate_buf **bufs, unsigned int n)
{
	const size_t size = rgate_class_size(cls);
	struct rgate_class *c = &pool->cls[cls];
	struct rgate_slab *s;
	unsigned int got, kept;

	pthread_mutex_lock(&c->lock);
	kept = depot_take(c, bufs, n);
	got = kept;
	while (got < n) {
		s = c->partial;
		if (!s) {
			s = make_slab(pool, c, size, rgate_slab_size(size), RGATE_GRAIN);
			if (!s)
				break;
			link_partial(c, s);
		}
		got += take_from(c, s, bufs + got, n - got);
		if (!s->nfree)
			unlink_partial(c, s);
	}
	pthread_mutex_unlock(&c->lock);
	if (got > kept)
		note_out(pool, (got - kept) * size);
	return got;
}

struct rgate_buf *rgate_slab_take_run(struct rgate_pool *pool, size_t size, size_t align)
{
	struct rgate_class *c = &pool->cls[RGATE_RUN_CLASS];
	const size_t bytes = (size + RGATE_GRAIN - 1) & ~(RGATE_GRAIN - 1);
	struct rgate_buf *buf = NULL;
	struct rgate_slab *s;

	pthread_mutex_lock(&c->lock);
	s = make_slab(pool, c, bytes, bytes, align < RGATE_GRAIN ? RGATE_GRAIN : align);
	if (s)
		take_from(c, s, &buf, 1);
	pthread_mutex_unlock(&c->lock);
	if (s)
		note_out(pool, bytes);
	return buf;
}

/* With the class's lock held */
static void give_one(struct rgate_pool *pool, struct rgate_class *c, struct rgate_slab *s,
		     const struct rgate_buf *buf)
{
	if (!s->nfree && s->cls != RGATE_RUN_CLASS)
		link_partial(c, s);
	s->free[s->nfree++] = (uint32_t)(buf - s->buf);
	c->free++;
	if (s->nfree < s->n)
		return;
	c->empty++;
	/* Runs are not kept: one of another size may be wanted, and threads keep some. */
	if (s->cls == RGATE_RUN_CLASS) {
		end_slab(pool, c, s);
	} else if (s->n == 1 || c->empty > KEEP_EMPTY || rgate_pool_tight(pool)) {
		unlink_partial(c, s);
		end_slab(pool, c, s);
	}
}

void rgate_slab_give(struct rgate_pool *pool, unsigned int cls, struct rgate_buf **bufs,
		     unsigned int n)
{
	struct rgate_class *c = &pool->cls[cls];
	uint64_t bytes = 0;
	unsigned int i;

	pthread_mutex_lock(&c->lock);
	for (i = depot_give(pool, cls, bufs, n); i < n; i++) {
		struct rgate_slab *s = rgate_buf_slab(bufs[i]);

		bytes += s->size;
		give_one(pool, c, s, bufs[i]);
	}
	pthread_mutex_unlock(&c->lock);
	if (bytes)
		__atomic_sub_fetch(&pool->used_bytes, bytes, __ATOMIC_RELAXED);
}

static void depot_empty(struct rgate_pool *pool, struct rgate_class *c)
{
	uint64_t bytes = 0;

	while (c->depot_n) {
		struct rgate_buf *buf = c->depot[--c->depot_n];
		struct rgate_slab *s = rgate_buf_slab(buf);

		bytes += s->size;
		give_one(pool, c, s, buf);
	}
	if (bytes)
		__atomic_sub_fetch(&pool->used_bytes, bytes, __ATOMIC_RELAXED);
}

/* What classes keep, given back when the pool runs dry */
void rgate_slab_trim(struct rgate_pool *pool)
{
	unsigned int i;

	for (i = 0; i < RGATE_CLASSES; i++) {
		struct rgate_class *c = &pool->cls[i];
		struct rgate_slab *s, *next;

		pthread_mutex_lock(&c->lock);
		depot_empty(pool, c);
		for (s = c->partial; s && c->empty; s = next) {
			next = s->next;
			if (s->nfree < s->n)
				continue;
			unlink_partial(c, s);
			end_slab(pool, c, s);
		}
		pthread_mutex_unlock(&c->lock);
	}
}

void rgate_slab_fini(struct rgate_pool *pool)
{
	struct rgate_slab *s;
	unsigned int i;

	for (i = 0; i < RGATE_CLASSES; i++)
		free(pool->cls[i].depot);
	while ((s = pool->slabs)) {
		pool->slabs = s->all;
		free(s->info);
		free(s);
	}
}
