// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who waits for something of a queue */
#include <errno.h>

#include "journal.h"
#include "mirror.h"
#include "queue.h"
#include "queues.h"

int queue_await_tasks(struct queue *q, struct waiter *w)
{
	if (q->nclaims >= QUEUE_WAITERS)
		return -ENOBUFS;
	w->task = NULL;
	q->nclaims++;
	q->wanted |= w->types;
	list_add_tail(&q->claims, &w->in);
	return 0;
}

void queue_await_end(struct task *t, struct waiter *w)
{
	w->task = t;
	w->types = 0;
	list_add_tail(&t->waiters, &w->in);
}

int queue_await_room(struct queue *q, struct waiter *w, uint32_t len)
{
	/* It would wait for ever, and all who come later with it. */
	if (len > q->rules.bytes)
		return -EMSGSIZE;
	w->task = NULL;
	w->types = 0;
	w->most = len;
	list_add_tail(&q->rooms, &w->in);
	return 0;
}

void queue_await_idle(struct queue *q, struct waiter *w)
{
	w->task = NULL;
	w->types = 0;
	list_add_tail(&q->idle, &w->in);
}

void queue_leave(struct queue *q, struct waiter *w)
{
	if (list_empty(&w->in))
		return;
	/* Only who waits for tasks wants types. */
	q->nclaims -= w->types != 0;
	list_del(&w->in);
}

static struct waiter *first(const struct link *list)
{
	return container_of(list->next, struct waiter, in);
}

void queue_tell(struct task *t, int err)
{
	struct waiter *w;

	while (!list_empty(&t->waiters)) {
		w = first(&t->waiters);
		list_del(&w->in);
		w->over(w, err);
	}
}

static void tell_list(struct queue *q, struct link *list, int err)
{
	struct waiter *w;

	while (!list_empty(list)) {
		w = first(list);
		queue_leave(q, w);
		w->over(w, err);
	}
}

void queue_tell_all(struct queue *q)
{
	tell_list(q, &q->claims, -ESTALE);
	tell_list(q, &q->rooms, -ESTALE);
	tell_list(q, &q->idle, -ESTALE);
	tell_list(q, &q->follows, -ESTALE);
}

bool queue_is_idle(const struct queue *q)
{
	const uint32_t *now = q->count.now;

	return now[RGATE_TASK_BURIED] + now[RGATE_TASK_DONE] == q->n;
}

#define ROOMS	16U	/* who has room, at once: each submits QUEUE_STEPS tasks at most */

/* He would be told that there is none. */
static bool waits_for_disk(const struct queue *q)
{
	if (!q->home->journal || !q->journaled || !journal_is_full(q->home->journal))
		return false;
	q->home->full = true;
	return true;
}

/* Those who came first: each has to have what he wants before the next one has. */
static void give_room(struct queue *q)
{
	struct waiter *w;
	uint32_t n;

	for (n = 0; !list_empty(&q->rooms); n++) {
		w = first(&q->rooms);
		if (q->n >= q->rules.tasks || q->count.bytes + w->most > q->rules.bytes ||
		    waits_for_disk(q))
			return;
		if (n == ROOMS) {
			list_del(&q->of_due);
			list_add_tail(&q->home->due, &q->of_due);
			return;
		}
		list_del(&w->in);
		w->over(w, 0);
	}
}

static uint64_t ready_types(const struct queue *q)
{
	return q->types[0] | q->types[1] | q->types[2] | q->types[3];
}

static uint32_t count_waiters(const struct queue *q)
{
	const struct link *l;
	uint32_t n = 0;

	for (l = q->claims.next; l != &q->claims; l = l->next)
		n += (container_of(l, struct waiter, in)->types & ready_types(q)) != 0;
	return n;
}

/* So many that all @n who wait for such have some */
static uint32_t share(const struct queue *q, uint32_t n, uint32_t most)
{
	const uint32_t even = q->count.now[RGATE_TASK_READY] / (n ? n : 1);

	return even < 1 ? 1 : even < most ? even : most;
}

static void give_tasks(struct queue *q)
{
	struct link *l, *next;
	uint64_t wanted = 0;
	struct waiter *w;
	uint32_t n;

	if (!(ready_types(q) & q->wanted))
		return;
	n = count_waiters(q);
	for (l = q->claims.next; l != &q->claims && ready_types(q); l = next) {
		next = l->next;
		w = container_of(l, struct waiter, in);
		if (!(w->types & ready_types(q))) {
			wanted |= w->types;
			continue;
		}
		w->most = share(q, n, w->most);
		n -= n != 0;
		queue_leave(q, w);
		w->over(w, 0);
	}
	/* Nobody was left out: what these want is all that there is. */
	if (l == &q->claims)
		q->wanted = wanted;
}

RGATE_ASSERT(RGATE_QUEUE_PRIORITIES == 4);

void queue_settle(struct queue *q)
{
	give_room(q);
	give_tasks(q);
	if (queue_is_idle(q))
		tell_list(q, &q->idle, 0);
	queue_ends_tell(q);
	if (q->mirror)
		mirror_settle(q);
	queues_put(q);
}
