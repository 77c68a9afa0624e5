// SPDX-License-Identifier: MIT OR GPL-2.0
/* Deadlines: a heap by time, of requests that know their place in it. */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "engine_priv.h"

#define ROOM_FIRST	64U

static void put(struct rgate_engine *e, uint32_t i, struct rgate_req *r)
{
	e->heap[i] = r;
	r->timer = i + 1;
}

static void sift_up(struct rgate_engine *e, uint32_t i, struct rgate_req *r)
{
	uint32_t parent;

	for (; i; i = parent) {
		parent = (i - 1) / 2;
		if (e->heap[parent]->deadline <= r->deadline)
			break;
		put(e, i, e->heap[parent]);
	}
	put(e, i, r);
}

static void sift_down(struct rgate_engine *e, uint32_t i, struct rgate_req *r)
{
	uint32_t child;

	for (; (child = i * 2 + 1) < e->nheap; i = child) {
		if (child + 1 < e->nheap &&
		    e->heap[child + 1]->deadline < e->heap[child]->deadline)
			child++;
		if (r->deadline <= e->heap[child]->deadline)
			break;
		put(e, i, e->heap[child]);
	}
	put(e, i, r);
}

int timer_add(struct rgate_engine *e, struct rgate_req *r)
{
	struct rgate_req **heap;
	uint32_t room;

	if (e->nheap == e->heap_room) {
		room = e->heap_room ? e->heap_room * 2 : ROOM_FIRST;
		heap = realloc(e->heap, room * sizeof(*heap));
		if (!heap)
			return -ENOMEM;
		e->heap = heap;
		e->heap_room = room;
	}
	r->deadline = rgate_clock_now(CLOCK_MONOTONIC) + r->q.deadline_us * 1000ULL;
	sift_up(e, e->nheap++, r);
	return 0;
}

void timer_del(struct rgate_engine *e, struct rgate_req *r)
{
	struct rgate_req *last;
	uint32_t i = r->timer - 1;

	if (!r->timer)
		return;
	r->timer = 0;
	last = e->heap[--e->nheap];
	if (last == r)
		return;
	if (i && last->deadline < e->heap[(i - 1) / 2]->deadline)
		sift_up(e, i, last);
	else
		sift_down(e, i, last);
}

void timer_expire(struct rgate_engine *e)
{
	struct rgate_req *r;

	while (e->nheap && e->heap[0]->deadline <= e->now) {
		r = e->heap[0];
		/* What cannot be cancelled goes on without a deadline. */
		timer_del(e, r);
		req_cancel(r, -ETIMEDOUT);
	}
}
