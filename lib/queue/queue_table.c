// SPDX-License-Identifier: MIT OR GPL-2.0
/* Tasks by their numbers */
#include <errno.h>
#include <stdlib.h>

#include "queue.h"
#include "queues.h"

static struct task **place_of(const struct queue *q, uint64_t id)
{
	return &q->table[id & (q->places - 1)];
}

struct task *queue_find(const struct queue *q, uint64_t id)
{
	struct task *t;

	if (!q->places)
		return NULL;
	for (t = *place_of(q, id); t && t->id != id; t = t->chain)
		;
	return t;
}

void queue_table_enter(struct queue *q, struct task *t)
{
	struct task **at = place_of(q, t->id);

	t->chain = *at;
	*at = t;
}

/*
 * Numbers are given one after the other: in each place there is hardly more than one. The table is
 * its owner's memory as tasks are: it has once been as large as there were tasks.
 */
int queue_table_grow(struct queue *q)
{
	const uint32_t places = q->places ? q->places * 2 : QUEUE_PLACES_FIRST;
	const uint64_t more = (places - q->places) * sizeof(struct task *);
	struct task **table;
	struct link *l;
	int err;

	if (q->n < q->places)
		return 0;
	err = quota_take(q->quota, more);
	if (err)
		return err;
	table = calloc(places, sizeof(struct task *));
	if (!table) {
		quota_give(q->quota, more);
		return -ENOMEM;
	}
	free(q->table);
	q->table = table;
	q->places = places;
	for (l = q->tasks.next; l != &q->tasks; l = l->next)
		queue_table_enter(q, container_of(l, struct task, of_queue));
	return 0;
}

void queue_table_free(struct queue *q)
{
	quota_give(q->quota, q->places * sizeof(struct task *));
	free(q->table);
	q->table = NULL;
	q->places = 0;
}

void queue_table_leave(struct queue *q, struct task *t)
{
	struct task **at;

	for (at = place_of(q, t->id); *at != t; at = &(*at)->chain)
		;
	*at = t->chain;
}
