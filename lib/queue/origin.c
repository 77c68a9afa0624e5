// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Which tasks have been submitted again, to this process of the home: the node that has kept one
 * and the node that has a copy both do so, and the second one, however late it comes, is told the
 * number that the first one was. So what has ended is remembered, too, as long as the queue is
 * there.
 */
#include <errno.h>
#include <stdlib.h>

#include "mirror.h"
#include "queues.h"

#define PLACES_FIRST	64U

static struct origin **place_of(const struct mirror *m, const struct rgate_queue_origin *name)
{
	const uint64_t x = (name->word ^ name->process) * 0x9e3779b97f4a7c15;

	return &m->origins[(x >> 32) & (m->places - 1)];
}

static bool is_it(const struct origin *o, const struct rgate_queue_origin *name)
{
	return o->name.word == name->word && o->name.process == name->process;
}

const struct origin *origin_find(const struct mirror *m, const struct rgate_queue_origin *name)
{
	const struct origin *o;

	if (!m->places)
		return NULL;
	for (o = *place_of(m, name); o && !is_it(o, name); o = o->chain)
		;
	return o;
}

static void enter(struct mirror *m, struct origin *o)
{
	struct origin **at = place_of(m, &o->name);

	o->chain = *at;
	*at = o;
}

static int grow(struct queue *q)
{
	struct mirror *m = q->mirror;
	const uint32_t was = m->places, places = was ? was * 2 : PLACES_FIRST;
	struct origin **old = m->origins, **table, *o, *next;
	uint32_t i;
	int err;

	if (m->norigins < was)
		return 0;
	err = quota_take(q->quota, (places - was) * sizeof(struct origin *));
	if (err)
		return err;
	table = calloc(places, sizeof(struct origin *));
	if (!table) {
		quota_give(q->quota, (places - was) * sizeof(struct origin *));
		return -ENOMEM;
	}
	m->origins = table;
	m->places = places;
	for (i = 0; i < was; i++)
		for (o = old[i]; o; o = next) {
			next = o->chain;
			enter(m, o);
		}
	free(old);
	return 0;
}

int origin_add(struct queue *q, const struct rgate_queue_origin *name, struct origin **out)
{
	struct mirror *m = q->mirror;
	struct origin *o;
	int err;

	if (m->norigins >= RGATE_QUEUE_TASKS_MAX)
		return -EDQUOT;
	err = grow(q);
	if (!err)
		err = quota_take(q->quota, sizeof(*o));
	if (err)
		return err;
	o = malloc(sizeof(*o));
	if (!o) {
		quota_give(q->quota, sizeof(*o));
		return -ENOMEM;
	}
	*o = (struct origin){ .name = *name };
	enter(m, o);
	m->norigins++;
	*out = o;
	return 0;
}

void origin_undo(struct queue *q, struct origin *o)
{
	struct origin **at = place_of(q->mirror, &o->name);

	while (*at != o)
		at = &(*at)->chain;
	*at = o->chain;
	q->mirror->norigins--;
	quota_give(q->quota, sizeof(*o));
	free(o);
}

void origins_free(struct mirror *m)
{
	struct origin *o, *next;
	uint32_t i;

	for (i = 0; i < m->places; i++)
		for (o = m->origins[i]; o; o = next) {
			next = o->chain;
			free(o);
		}
	free(m->origins);
	quota_give(m->queue->quota, m->norigins * sizeof(*o) + m->places * sizeof(o));
	m->origins = NULL;
	m->places = m->norigins = 0;
}
