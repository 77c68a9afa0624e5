// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Kept tasks by number. With each one more the table has a place more, into which what belongs
 * there of one other place goes: so no task waits until all are put into a larger table.
 */
#include "keep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_FIRST	64U

/* The largest power of two up to there */
static uint32_t whole(uint32_t places)
{
	return 1U << (31 - (unsigned int)__builtin_clz(places));
}

/* The home has chosen it: it must not know which ones come together. */
static uint32_t spread(const struct kept_queue *q, uint64_t id)
{
	const uint64_t x = id * (q->secret | 1);

	return (uint32_t)(x ^ x >> 32);
}

/* Those that are not there yet are in the place of half as many. */
static struct kept **place_of(const struct kept_queue *q, uint64_t id)
{
	const uint32_t half = whole(q->places), i = spread(q, id) & (2 * half - 1);

	return &q->table[i < q->places ? i : i - half];
}

struct kept *keep_find(const struct kept_queue *q, uint64_t of, uint64_t id)
{
	struct kept *t;

	if (!q->places)
		return NULL;
	for (t = *place_of(q, id); t && (t->id != id || t->of != of); t = t->chain)
		;
	return t;
}

static void enter(struct kept_queue *q, struct kept *t)
{
	struct kept **at = place_of(q, t->id);

	t->chain = *at;
	*at = t;
}

void keep_displace(struct kept_queue *q, struct kept *t)
{
	struct kept **at;

	if (!t->of)
		return;
	for (at = place_of(q, t->id); *at != t; at = &(*at)->chain)
		;
	*at = t->chain;
	t->of = 0;
}

/* Of the place that has had both its own and those of the new one */
static void split(struct kept_queue *q)
{
	struct kept **from = &q->table[q->places - whole(q->places)], *t, *next;

	q->table[q->places++] = NULL;
	t = *from;
	for (*from = NULL; t; t = next) {
		next = t->chain;
		enter(q, t);
	}
}

int keep_grow(struct kept_queue *q)
{
	const uint32_t room = q->room ? q->room * 2 : PLACES_FIRST;
	struct kept **table;

	if (q->n < q->places)
		return 0;
	if (q->places == q->room) {
		table = realloc(q->table, room * sizeof(struct kept *));
		if (!table)
			return q->places ? 0 : -ENOMEM;
		q->table = table;
		q->room = room;
	}
	if (q->places) {
		split(q);
	} else {
		memset(q->table, 0, PLACES_FIRST * sizeof(struct kept *));
		q->places = PLACES_FIRST;
	}
	return 0;
}

int keep_place(struct kept_queue *q, struct kept *t, uint64_t of, uint64_t id)
{
	if (keep_find(q, of, id))
		return -EEXIST;
	keep_displace(q, t);
	t->of = of;
	t->id = id;
	t->asked = q->asks;
	enter(q, t);
	if (keep_life(q->latest) <= keep_life(of))
		q->latest = of;
	return 0;
}
