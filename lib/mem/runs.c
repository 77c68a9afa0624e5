// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"

enum {
	INNER = 0,	/* inside of a run: says nothing */
	FREE = 1,	/* first or last grain of a free run */
	USED = 2,	/* first grain of a taken run */
};

/* Runs of less than RGATE_RUNS_STEPS grains have a bin for each length. */
static void bin_of(uint32_t n, unsigned int *level, unsigned int *step)
{
	unsigned int fl;

	if (n < RGATE_RUNS_STEPS) {
		*level = 0;
		*step = n;
		return;
	}
	fl = 31 - (unsigned int)__builtin_clz(n);
	*level = fl - 2;
	*step = n >> (fl - 3) & (RGATE_RUNS_STEPS - 1);
}

static void insert(struct rgate_runs *r, uint32_t first, uint32_t n)
{
	unsigned int level, step;
	uint32_t old;

	bin_of(n, &level, &step);
	old = r->head[level][step];
	r->len[first] = n;
	r->len[first + n - 1] = n;
	r->state[first] = FREE;
	r->state[first + n - 1] = FREE;
	r->next[first] = old;
	r->prev[first] = RGATE_RUNS_NONE;
	if (old != RGATE_RUNS_NONE)
		r->prev[old] = first;
	r->head[level][step] = first;
	r->steps[level] |= (uint8_t)(1U << step);
	r->levels |= 1U << level;
	r->free += n;
}

static void take_out(struct rgate_runs *r, uint32_t first)
{
	const uint32_t n = r->len[first], next = r->next[first], prev = r->prev[first];
	unsigned int level, step;

	bin_of(n, &level, &step);
	if (next != RGATE_RUNS_NONE)
		r->prev[next] = prev;
	if (prev != RGATE_RUNS_NONE)
		r->next[prev] = next;
	else
		r->head[level][step] = next;
	if (r->head[level][step] == RGATE_RUNS_NONE) {
		r->steps[level] &= (uint8_t)~(1U << step);
		if (!r->steps[level])
			r->levels &= ~(1U << level);
	}
	r->state[first] = INNER;
	r->state[first + n - 1] = INNER;
	r->free -= n;
}

size_t rgate_runs_bytes(uint32_t grains)
{
	const struct rgate_runs *r = NULL;

	return grains * (sizeof(*r->len) + sizeof(*r->next) + sizeof(*r->prev) + sizeof(*r->state));
}

int rgate_runs_init(struct rgate_runs *r, uint32_t grains)
{
	memset(r, 0, sizeof(*r));
	memset(r->head, 0xff, sizeof(r->head));
	r->grains = grains;
	r->len = calloc(grains, sizeof(*r->len));
	r->next = calloc(grains, sizeof(*r->next));
	r->prev = calloc(grains, sizeof(*r->prev));
	r->state = calloc(grains, sizeof(*r->state));
	if (!r->len || !r->next || !r->prev || !r->state) {
		rgate_runs_fini(r);
		return -ENOMEM;
	}
	insert(r, 0, grains);
	return 0;
}

void rgate_runs_fini(struct rgate_runs *r)
{
	free(r->len);
	free(r->next);
	free(r->prev);
	free(r->state);
	memset(r, 0, sizeof(*r));
}

/* Grains before the first one of a free run at @first that is aligned */
static uint32_t skip_of(uint32_t first, uint32_t align, uint32_t phase)
{
	return -(first + phase) & (align - 1);
}

/* A run of the bin that has room for @n aligned grains */
static uint32_t fits(const struct rgate_runs *r, unsigned int level, unsigned int step,
		     uint32_t n, uint32_t align, uint32_t phase)
{
	uint32_t first = r->head[level][step];

	for (; first != RGATE_RUNS_NONE; first = r->next[first])
		if (r->len[first] >= n &&
		    r->len[first] - n >= skip_of(first, align, phase))
			break;
	return first;
}

/*
 * From the bin of @n upward. Only in the first bin, and where alignment is asked for,
 * does a run have to be looked for in a bin; else the first one fits.
 */
static uint32_t find(const struct rgate_runs *r, uint32_t n, uint32_t align, uint32_t phase)
{
	unsigned int level, step;
	uint32_t first;

	bin_of(n, &level, &step);
	for (; level < RGATE_RUNS_LEVELS; level++, step = 0) {
		if (!(r->levels >> level))
			break;
		for (; step < RGATE_RUNS_STEPS; step++) {
			if (!(r->steps[level] >> step & 1))
				continue;
			first = fits(r, level, step, n, align, phase);
			if (first != RGATE_RUNS_NONE)
				return first;
		}
	}
	return RGATE_RUNS_NONE;
}

uint32_t rgate_runs_take(struct rgate_runs *r, uint32_t n, uint32_t align, uint32_t phase)
{
	uint32_t first, skip, rest;

	if (!n || n > r->grains)
		return RGATE_RUNS_NONE;
	first = find(r, n, align, phase);
	if (first == RGATE_RUNS_NONE)
		return first;
	skip = skip_of(first, align, phase);
	rest = r->len[first] - skip - n;
	take_out(r, first);
	if (skip)
		insert(r, first, skip);
	first += skip;
	if (rest)
		insert(r, first + n, rest);
	r->len[first] = n;
	r->state[first] = USED;
	return first;
}

void rgate_runs_give(struct rgate_runs *r, uint32_t first)
{
	uint32_t n = r->len[first], other;

	r->state[first] = INNER;
	/* The grain behind begins a run, the grain before ends one: states are true there. */
	if (first + n < r->grains && r->state[first + n] == FREE) {
		other = first + n;
		n += r->len[other];
		take_out(r, other);
	}
	if (first && r->state[first - 1] == FREE) {
		other = first - r->len[first - 1];
		n += r->len[other];
		take_out(r, other);
		first = other;
	}
	insert(r, first, n);
}

uint32_t rgate_runs_largest(const struct rgate_runs *r)
{
	unsigned int level, step;
	uint32_t first, most = 0;

	if (!r->levels)
		return 0;
	level = 31 - (unsigned int)__builtin_clz(r->levels);
	step = 31 - (unsigned int)__builtin_clz(r->steps[level]);
	for (first = r->head[level][step]; first != RGATE_RUNS_NONE; first = r->next[first])
		if (r->len[first] > most)
			most = r->len[first];
	return most;
}
