// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool_carve.h"
#include "pool_pattern.h"
#include "util.h"

#define MARKS		6	/* places in a buffer: first, last, and random ones */
#define MARK_LEN	RGATE_POOL_LINE

static void on_progress(void *ctx, size_t done, size_t total)
{
	((const struct carve *)ctx)->progress("memory", done, total);
}

int carve_create(struct carve *c, struct rgate_device *dev, size_t size, size_t buffer,
		 uint32_t access, uint64_t key, carve_progress_fn progress)
{
	struct rgate_pool_opts o = {
		.sz = sizeof(o), .name = "verify", .region_size = size, .max_size = size,
		.access = access, .progress = progress ? on_progress : NULL,
		.progress_ctx = c,
	};
	int err;

	*c = (struct carve){ .buffer = buffer, .key = key, .progress = progress };
	err = rgate_pool_create(&c->pool, dev, &o);
	if (err)
		return err;
	c->region.sz = sizeof(c->region);
	err = rgate_pool_region(c->pool, 0, &c->region);
	if (err)
		goto destroy;
	/* one more than can be: a pool that hands out too many is caught */
	c->max = c->region.length / buffer + 1;
	c->bufs = calloc(c->max, sizeof(*c->bufs));
	c->touched = calloc(c->max, sizeof(*c->touched));
	if (c->bufs && c->touched)
		return 0;
	err = -ENOMEM;
	free(c->touched);
	free(c->bufs);
destroy:
	rgate_pool_destroy(c->pool);
	*c = (struct carve){ 0 };
	return err;
}

static int by_address(const void *a, const void *b)
{
	const struct rgate_buf *const *x = a, *const *y = b;

	return (*x)->addr < (*y)->addr ? -1 : (*x)->addr > (*y)->addr;
}

int carve_all(struct carve *c)
{
	int err = 0;

	while (!err && c->n < c->max) {
		err = rgate_pool_alloc(c->pool, c->buffer, &c->bufs[c->n]);
		if (!err)
			c->n++;
	}
	if (err && err != -ENOBUFS)
		return err;
	qsort(c->bufs, c->n, sizeof(*c->bufs), by_address);
	return c->n ? 0 : -ENOBUFS;
}

bool carve_complete(const struct carve *c, char text[CARVE_TEXT])
{
	struct rgate_pool_stats s = { .sz = sizeof(s) };
	size_t want = c->region.length / c->buffer;
	bool zones = getenv("RGATE_POOL_DEBUG"), exact = !zones &&
		     !(c->buffer & (c->buffer - 1)) && c->buffer >= RGATE_POOL_LINE;
	int err = rgate_pool_stats(c->pool, &s);

	if (err) {
		snprintf(text, CARVE_TEXT, "no statistics: %s", rgate_strerror("rgate_mem_", err));
		return false;
	}
	if (c->n > want || (exact && c->n != want)) {
		snprintf(text, CARVE_TEXT, "%zu buffers instead of %zu", c->n, want);
		return false;
	}
	if ((s.largest_free >= c->buffer && !zones) || s.used_buffers != c->n) {
		snprintf(text, CARVE_TEXT, "%zu buffers, but the pool says: %llu used, "
			 "%llu bytes free in one piece", c->n,
			 (unsigned long long)s.used_buffers,
			 (unsigned long long)s.largest_free);
		return false;
	}
	return true;
}

int carve_free(struct carve *c, uint64_t *rng)
{
	int err = 0, ret;
	size_t i, k;

	for (i = c->n; i > 0; i--) {
		const struct rgate_buf *b;

		k = pattern_below(rng, i);
		b = c->bufs[k];
		c->bufs[k] = c->bufs[i - 1];
		ret = rgate_pool_free(c->pool, b);
		err = err ?: ret;
	}
	c->n = 0;
	return err;
}

int carve_destroy(struct carve *c)
{
	struct rgate_pool_stats s = { .sz = sizeof(s) };
	int err = rgate_pool_stats(c->pool, &s);

	if (!err && s.used_buffers)
		err = -EBUSY;
	rgate_pool_destroy(c->pool);
	free(c->touched);
	free(c->bufs);
	*c = (struct carve){ 0 };
	return err;
}

const char *carve_misplaced(const struct carve *c, size_t i)
{
	const struct rgate_buf *b = c->bufs[i], *found;
	uintptr_t at = (uintptr_t)b->addr, base = (uintptr_t)c->region.addr;

	if (b->length != c->buffer)
		return "has another length than was asked for";
	if (b->lkey != c->region.lkey || b->rkey != c->region.rkey)
		return "has other keys than its region";
	if (at % RGATE_POOL_LINE)
		return "does not begin on a cache line";
	if (at < base || at - base > c->region.length ||
	    b->length > c->region.length - (at - base))
		return "is not inside of the region";
	if (i + 1 < c->n && at + b->length > (uintptr_t)c->bufs[i + 1]->addr)
		return "overlaps the next one";
	if (rgate_pool_lookup(c->pool, b->addr, &found) || found != b ||
	    rgate_pool_lookup(c->pool, (char *)b->addr + b->length - 1, &found) ||
	    found != b)
		return "is not what the pool finds at its address";
	return NULL;
}

/* The @k-th marked place of a buffer: first, last, then random */
static size_t mark(const struct carve *c, uint64_t *rng, unsigned int k, size_t *off)
{
	size_t len = c->buffer < MARK_LEN ? c->buffer : MARK_LEN;

	if (k == 0)
		*off = 0;
	else if (k == 1)
		*off = c->buffer - len;
	else
		*off = pattern_below(rng, c->buffer - len + 1);
	return len;
}

void carve_write(struct carve *c, carve_progress_fn progress)
{
	unsigned int k;
	size_t i, off;

	for (i = 0; i < c->n && !util_stop; i++) {
		uint64_t key = pattern_key(c->key, i), rng = key;

		for (k = 0; k < MARKS; k++) {
			size_t len = mark(c, &rng, k, &off);

			pattern_fill((char *)c->bufs[i]->addr + off, len, key, off);
		}
		c->touched[i] = false;
		if (progress)
			progress("patterns", i + 1, c->n);
	}
}

static bool buffer_intact(const struct carve *c, size_t i, char text[CARVE_TEXT])
{
	uint64_t key = pattern_key(c->key, i), rng = key;
	unsigned int k;
	size_t off;

	for (k = 0; k < MARKS; k++) {
		size_t len = mark(c, &rng, k, &off), at;
		const unsigned char *p = (unsigned char *)c->bufs[i]->addr + off;
		unsigned char want;

		at = pattern_differs(p, len, key, off, &want);
		if (at == len)
			continue;
		snprintf(text, CARVE_TEXT, "buffer %zu: byte %zu is %#04x instead of %#04x",
			 i, off + at, p[at], want);
		return false;
	}
	return true;
}

size_t carve_damaged(const struct carve *c, char text[CARVE_TEXT])
{
	char other[CARVE_TEXT];
	size_t i, n = 0;

	for (i = 0; i < c->n && !util_stop; i++)
		if (!c->touched[i] && !buffer_intact(c, i, n ? other : text))
			n++;
	return n;
}
