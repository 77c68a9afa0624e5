// SPDX-License-Identifier: MIT OR GPL-2.0
/* Service 0: what the engine does by itself. */
#include <errno.h>

#include "clock.h"
#include "engine_priv.h"

static int nop(struct rgate_req *r, void *ctx)
{
	(void)ctx;
	r->value = r->q.a0;
	return 0;
}

static uint32_t node_of(const struct rgate_engine *e, const struct service *to)
{
	return to->s->node ? 1 + to->s->node(to->ctx) : e->node;
}

/* What this user may ask of a service, and where it is carried out. @ctx: the engine */
static int probe(struct rgate_req *r, void *ctx)
{
	const struct rgate_engine *e = ctx;
	const struct rgate_request *q = rgate_req_get(r);
	const uint64_t number = q->a0;
	const struct service *to;

	if (q->a1 > RGATE_PROBE_NODE)
		return -EINVAL;
	if (number >= RGATE_REQ_SERVICES || !e->service[number].s)
		return -ENOENT;
	to = &e->service[number];
	if (q->a1 == RGATE_PROBE_NODE)
		rgate_req_set_value(r, node_of(e, to));
	else
		rgate_req_set_value(r, (q->a1 ? to->multi : to->ops) &
				       r->seat->user->limits.ops[number]);
	return 0;
}

static int tell_time(struct rgate_req *r, void *ctx)
{
	uint64_t clock = rgate_req_get(r)->a0;

	(void)ctx;
	if (clock >= RGATE_CLOCK_COUNT)
		return -EINVAL;
	rgate_req_set_value(r, rgate_clock_now(rgate_clock_id((uint32_t)clock)));
	return 0;
}

static int cancel(struct rgate_req *r, void *ctx)
{
	struct rgate_req *other = req_find(r->seat, rgate_req_get(r)->a0);

	(void)ctx;
	return other ? req_cancel(other, -ECANCELED) : -ENOENT;
}

static const struct rgate_req_op ops[] = {
	{ .name = "nop", .uses = RGATE_USES_A0 | RGATE_USES_NO_TIME, .begin = nop },
	{ .name = "probe", .uses = RGATE_USES_A0 | RGATE_USES_A1 | RGATE_USES_NO_TIME,
	  .begin = probe },
	{ .name = "time", .uses = RGATE_USES_A0 | RGATE_USES_NO_TIME, .begin = tell_time },
	{ .name = "cancel", .uses = RGATE_USES_A0, .begin = cancel },
};

const struct rgate_req_service rgate_service_core = {
	.number = RGATE_REQ_CORE, .nops = sizeof(ops) / sizeof(ops[0]), .name = "core", .ops = ops,
};
