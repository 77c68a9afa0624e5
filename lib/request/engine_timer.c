// SPDX-License-Identifier: MIT OR GPL-2.0
/* Deadlines of requests, and the clocks of services. */
#include <errno.h>

#include "clock.h"
#include "engine_priv.h"

int timer_add(struct rgate_engine *e, struct rgate_req *r)
{
	int err = heap_reserve(&e->timers, e->timers.n + 1);

	if (!err)
		heap_add(&e->timers, &r->timer, rgate_clock_now(CLOCK_MONOTONIC) +
			 r->q.deadline_us * 1000ULL);
	return err;
}

void timer_del(struct rgate_engine *e, struct rgate_req *r)
{
	heap_del(&e->timers, &r->timer);
}

void timer_expire(struct rgate_engine *e)
{
	struct heap_node *first;

	while ((first = heap_first(&e->timers)) && first->at <= e->now) {
		/* What cannot be cancelled goes on without a deadline. */
		heap_del(&e->timers, first);
		req_cancel(container_of(first, struct rgate_req, timer), -ETIMEDOUT);
	}
}

void timer_tick(struct rgate_engine *e)
{
	uint32_t ticks = __atomic_load_n(&e->ticks, __ATOMIC_ACQUIRE);
	const struct service *to;
	uint64_t at;

	e->tick_at = UINT64_MAX;
	for (; ticks; ticks &= ticks - 1) {
		to = &e->service[__builtin_ctz(ticks)];
		at = to->s->tick(to->ctx, e->now);
		e->tick_at = at < e->tick_at ? at : e->tick_at;
	}
}

uint64_t timer_next(const struct rgate_engine *e)
{
	const struct heap_node *first = heap_first(&e->timers);

	return first && first->at < e->tick_at ? first->at : e->tick_at;
}
