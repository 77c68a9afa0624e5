// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Which tasks have ended, for those who keep them elsewhere until then. The last QUEUE_ENDS are
 * remembered, each at a place of its own in all that there were: who follows says at which one he
 * is. Only of tasks with a tag, or of a queue with a mirror, and once each: who kicks a buried one
 * does so for himself.
 */
#include <errno.h>
#include <stdlib.h>

#include "queue.h"

/*
 * Not of its owner's bytes: where these are used up, who keeps tasks elsewhere could not hear that
 * they have ended, and would keep them for ever. There is one for each queue at most.
 */
int queue_ends_begin(struct queue *q)
{
	if (q->ends)
		return 0;
	q->ends = malloc(sizeof(*q->ends));
	if (!q->ends)
		return -ENOMEM;
	q->ends->next = q->ends->told = 1;
	return 0;
}

void queue_ends_free(struct queue *q)
{
	free(q->ends);
	q->ends = NULL;
}

void queue_ends_add(struct queue *q, struct task *t)
{
	struct ends *e = q->ends;

	if (e && !t->told && (t->tag || q->mirror)) {
		e->at[e->next % QUEUE_ENDS] = (struct ended){
			.id = t->id, .tag = t->tag, .uid = t->uid, .from = t->from,
			.again = t->again };
		e->next++;
	}
	t->told = true;
}

/* What a node has submitted it keeps, and has no copy of: unless it did so for having one. */
static bool is_his(const struct ended *at, const struct follower *who)
{
	if (who->copies)
		return at->from != who->node || at->again;
	return at->tag && at->tag == who->tag && at->uid == who->uid;
}

/* The first place that is remembered */
static uint64_t oldest(const struct ends *e)
{
	return e->next > QUEUE_ENDS ? e->next - QUEUE_ENDS : 1;
}

uint32_t queue_ends_take(const struct queue *q, struct follower *who, uint64_t *ids, uint32_t most,
			 bool *missed)
{
	const struct ends *e = q->ends;
	const struct ended *at;
	uint32_t n = 0;

	/* A place that there has not been is another queue's. */
	*missed = who->next && (who->next < oldest(e) || who->next > e->next);
	if (*missed)
		who->next = oldest(e);
	else if (!who->next)
		who->next = e->next;
	for (; who->next < e->next && n < most; who->next++) {
		at = &e->at[who->next % QUEUE_ENDS];
		if (is_his(at, who))
			ids[n++] = at->id;
	}
	return n;
}

int queue_await_ends(struct queue *q, struct waiter *w)
{
	const struct link *l;
	uint32_t n = 0;

	for (l = q->follows.next; l != &q->follows; l = l->next)
		n++;
	if (n >= QUEUE_FOLLOWERS)
		return -ENOBUFS;
	w->task = NULL;
	w->types = 0;
	list_add_tail(&q->follows, &w->in);
	return 0;
}

static bool has_some(const struct ends *e, const struct follower *who)
{
	uint64_t at;

	for (at = e->told; at < e->next; at++)
		if (is_his(&e->at[at % QUEUE_ENDS], who))
			return true;
	return false;
}

void queue_ends_tell(struct queue *q)
{
	struct ends *e = q->ends;
	struct link *l, *next;
	struct waiter *w;

	if (!e || e->told == e->next)
		return;
	if (e->told < oldest(e))
		e->told = oldest(e);
	for (l = q->follows.next; l != &q->follows; l = next) {
		next = l->next;
		w = container_of(l, struct waiter, in);
		if (!has_some(e, &w->who)) {
			w->who.next = e->next;
			continue;
		}
		list_del(&w->in);
		w->over(w, 0);
	}
	e->told = e->next;
}

uint32_t queue_ends_serial(const struct queue *q)
{
	return (uint32_t)q->serial & 0xffffff;
}

bool queue_has_ended(const struct queue *q, uid_t uid, uint64_t id)
{
	const struct task *t = queue_find(q, id);

	if (!id || id > q->last)
		return false;
	if (!t)
		return true;
	return t->uid == uid && (t->state == RGATE_TASK_DONE || t->state == RGATE_TASK_BURIED);
}
