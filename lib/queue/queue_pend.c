// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests that wait for something of a queue */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue_priv.h"

/* @surely: it is told when it is written, if there is a journal */
static void end_as(struct pending *p, int result, uint64_t value, bool surely)
{
	struct queue_service *sv = p->o->sv;
	struct queue *q = p->o->queue;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
	struct rgate_req *r = p->r;

	queue_leave(q, &p->waiter);
	list_del(&p->of_handle);
	free(p);
	rgate_req_set_data(r, NULL);
	if (surely)
		result = queue_tell_later(sv, r, q, result, value);
	if (result != RGATE_REQ_LATER)
		rgate_req_end(r, result, value);
}

static void end(struct pending *p, int result, uint64_t value)
{
	end_as(p, result, value, false);
}

static void tasks_there(struct waiter *w, int err)
{
	struct pending *p = container_of(w, struct pending, waiter);
	uint64_t n = 0;
	int result = err ? err : queue_ops_claim(p->r, p->o, w->most, &n);

	end(p, result, n);
}

static void room_there(struct waiter *w, int err)
{
	struct pending *p = container_of(w, struct pending, waiter);
	uint64_t first = 0;
	int result = err ? err : queue_ops_submit(p->r, p->o, &first);

	end_as(p, result, first, true);
}

static void task_over(struct waiter *w, int err)
{
	struct pending *p = container_of(w, struct pending, waiter);
	const uint32_t state = err ? 0 : w->task->state;
	int result = err ? err : queue_ops_end(p->r, w->task);

	end_as(p, result, state, true);
}

static void all_over(struct waiter *w, int err)
{
	struct pending *p = container_of(w, struct pending, waiter);

	end_as(p, err, p->o->queue->count.now[RGATE_TASK_BURIED], true);
}

static void ends_there(struct waiter *w, int err)
{
	struct pending *p = container_of(w, struct pending, waiter);
	int result = err ? err : queue_ops_ends(p->r, p->o, &w->who);

	end_as(p, result, w->who.next, true);
}

static void copies_there(struct waiter *w, int err)
{
	struct pending *p = container_of(w, struct pending, waiter);
	bool some;
	int result = err ? err : queue_ops_copies(p->r, p->o, &w->who, &some);

	end_as(p, result, w->who.next, false);
}

static uint32_t first_len(const struct rgate_req *r)
{
	struct rgate_queue_put put;

	memcpy(&put, rgate_req_mem(r), sizeof(put));
	return put.len < RGATE_QUEUE_DATA_MAX ? put.len : RGATE_QUEUE_DATA_MAX;
}

static int await(struct pending *p, enum pend_for what, struct task *t)
{
	struct queue *q = p->o->queue;

	switch (what) {
	case PEND_TASKS:
		p->waiter.over = tasks_there;
		p->waiter.types = types_of(rgate_req_get(p->r));
		p->waiter.most = (uint32_t)rgate_req_get(p->r)->a1;
		return queue_await_tasks(q, &p->waiter);
	case PEND_END:
		p->waiter.over = task_over;
		queue_await_end(t, &p->waiter);
		return 0;
	case PEND_ROOM:
		p->waiter.over = room_there;
		return queue_await_room(q, &p->waiter, first_len(p->r));
	case PEND_FOLLOW:
		p->waiter.over = ends_there;
		p->waiter.who = queue_follower_of(p->r, p->o);
		return queue_await_ends(q, &p->waiter);
	case PEND_COPIES:
		p->waiter.over = copies_there;
		p->waiter.who = queue_copies_of(p->r, p->o);
		return queue_await_ends(q, &p->waiter);
	default:
		p->waiter.over = all_over;
		queue_await_idle(q, &p->waiter);
		return 0;
	}
}

int pend(struct rgate_req *r, struct opened *o, enum pend_for what, struct task *t)
{
	struct pending *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->o = o;
	p->r = r;
	list_init(&p->waiter.in);
	err = await(p, what, t);
	if (err) {
		free(p);
		return err;
	}
	list_add_tail(&o->pending, &p->of_handle);
	rgate_req_set_data(r, p);
	return RGATE_REQ_LATER;
}

int pend_cancel(struct rgate_req *r)
{
	struct pending *p = rgate_req_data(r);
	struct queue_service *sv;
	struct queue *q;

	if (!p)
		return -EALREADY;
	sv = p->o->sv;
	q = p->o->queue;
	end(p, -ECANCELED, 0);
	/* The engine may have slept till now: what has a time has it from here on. */
	queue_look_at_clock(sv);
	/* There may be room for who comes next, if that one wanted more. */
	queue_settle(q);
	return 0;
}

void pend_cancel_all(struct opened *o)
{
	while (!list_empty(&o->pending))
		end(container_of(o->pending.next, struct pending, of_handle), -ECANCELED, 0);
}
