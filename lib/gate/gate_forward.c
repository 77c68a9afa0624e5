// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests are handed over to another node, whatever role they have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "gate_priv.h"

/* ---- Sessions ---- */

int gate_service_find(const struct gate_service *sv, uint64_t number, uint32_t *node)
{
	return board_find(sv->board, number, sv->o.role->here, node);
}

static int add_caller(struct gate_service *sv, struct gate_caller *c)
{
	if (sv->over)
		return -ECONNRESET;
	gate_caller_add(c);
	return 0;
}

int gate_caller_new(struct gate_service *sv, struct rgate_seat *seat, uint32_t node,
		    struct gate_caller **out)
{
	struct gate_caller *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->sv = sv;
	c->node = &sv->node[node];
	c->seat = seat;
	c->uid = rgate_seat_uid(seat);
	list_init(&c->queue);
	fair_lock(&sv->lock);
	err = add_caller(sv, c);
	fair_unlock(&sv->lock);
	if (err)
		free(c);
	else
		*out = c;
	return err;
}

void gate_caller_leave(struct gate_caller *c)
{
	struct gate_service *sv = c->sv;
	struct gate_node *n = c->node;

	fair_lock(&sv->lock);
	gate_ask_leave(c);
	if (!sv->over)
		gate_pump(n);
	fair_unlock(&sv->lock);
}

bool gate_caller_is_lost(const struct gate_caller *c)
{
	bool lost;

	fair_lock(&c->sv->lock);
	lost = c->lost;
	fair_unlock(&c->sv->lock);
	return lost;
}

uint64_t gate_caller_life(const struct gate_caller *c)
{
	return c->node->life;
}

uint64_t gate_caller_process(const struct gate_caller *c)
{
	return line_process(c->node->line);
}

uint64_t gate_service_process(const struct gate_service *sv)
{
	return rgate_node_incarnation(rgate_hub_node(sv->o.hub));
}

int gate_service_whose(struct gate_service *sv, const struct rgate_seat *seat, uint32_t *node)
{
	const struct gate_node *n;
	int err = -ENOENT;

	fair_lock(&sv->lock);
	for (n = sv->node; err && n < sv->node + RGATE_NODES_MAX; n++) {
		if (!gate_guest_at(n, seat))
			continue;
		*node = (uint32_t)(n - sv->node);
		err = 0;
	}
	fair_unlock(&sv->lock);
	return err;
}

int gate_service_limits(struct gate_service *sv, uid_t uid, struct rgate_limits *limits)
{
	int err = 0;

	rgate_limits_init(limits);
	fair_lock(&sv->lock);
	if (sv->over)
		err = -ECONNRESET;
	else if (sv->o.rights && !sv->o.rights(sv->o.ctx, uid, limits))
		err = -EACCES;
	fair_unlock(&sv->lock);
	return err;
}

/* ---- Requests ---- */

/* One that is free, from @i on; GATE_TICKETS: there is none */
static uint32_t find_ticket(const struct gate_caller *c, uint32_t i)
{
	while (i < GATE_TICKETS && c->ticket[i])
		i++;
	return i;
}

/* What is longer than most tickets' rooms is cut, unless there are wide ones, and one is free. */
static int take_ticket(struct gate_caller *c, struct wish *w)
{
	const uint32_t room = c->sv->o.role->room;
	uint32_t i = GATE_TICKETS;

	if (w->len > room && c->node->asks.wide)
		i = find_ticket(c, GATE_TICKETS - GATE_WIDE);
	if (i == GATE_TICKETS) {
		gate_wish_cut(w, room);
		i = find_ticket(c, 0);
	}
	if (i == GATE_TICKETS)
		return -ENOBUFS;
	c->ticket[i] = w;
	w->ticket = i;
	w->caller = c;
	w->serial = ++c->sv->serial;
	return 0;
}

static int hand_over(struct gate_caller *c, struct wish *w)
{
	struct gate_service *sv = c->sv;
	int err;

	fair_lock(&sv->lock);
	err = sv->over || c->lost ? -ECONNRESET : take_ticket(c, w);
	if (!err) {
		gate_ask(w);
		gate_pump(c->node);
	}
	fair_unlock(&sv->lock);
	return err;
}

/* Its second part of memory; an address that is sent is copied now. */
static int read_addr(struct wish *w)
{
	/* Many have it in their shares. */
	if (w->shots || !(w->has & (GATE_HAS_TO | GATE_HAS_FROM)))
		return 0;
	w->addr_mem = rgate_seat_memory(rgate_req_seat(w->r), rgate_req_get(w->r)->a1, GATE_ADDR);
	if (!w->addr_mem)
		return -ERANGE;
	if (w->has & GATE_HAS_TO)
		memcpy(&w->addr, w->addr_mem, GATE_ADDR);
	return 0;
}

/* Bytes of its part that may go: take_ticket() says whether they do */
static uint32_t most(const struct gate_role *role, uint32_t has, uint32_t shots)
{
	const bool wide = role->wide && has & GATE_HAS_STREAM &&
			  !(has & (GATE_HAS_TO | GATE_HAS_FROM)) && !shots;

	return wide ? role->wide : role->room;
}

static int make_wish(const struct gate_role *role, struct rgate_req *r, const struct gate_as *as,
		     struct wish **out)
{
	const struct rgate_request *q = rgate_req_get(r);
	const int has = gate_op_has(role, q->op);
	const uint32_t shots = rgate_req_shots(r);
	struct wish *w;
	int err;

	if (has < 0)
		return has;
	/* What the node would refuse is not asked. */
	if (shots && q->len > role->room)
		return -EMSGSIZE;
	if (shots >= GATE_MANY || (q->len > role->room && !(has & GATE_HAS_STREAM)))
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	list_init(&w->queue);
	w->r = r;
	w->as = *as;
	w->has = (uint32_t)has;
	if (has & GATE_HAS_NODE)
		w->as.a0 = role->here;
	w->mem = rgate_req_mem(r);
	w->len = least(q->len, most(role, w->has, shots));
	w->shots = shots;
	w->share = shots ? w->len / shots : 0;
	w->in = has & GATE_HAS_IN ? least(w->len, as->sent) : 0;
	if (q->deadline_us)
		w->due = rgate_clock_now(CLOCK_MONOTONIC) + q->deadline_us * 1000ULL;
	err = read_addr(w);
	if (err)
		free(w);
	else
		*out = w;
	return err;
}

int gate_forward(struct gate_caller *c, struct rgate_req *r, const struct gate_as *as)
{
	struct wish *w;
	int err;

	err = make_wish(c->sv->o.role, r, as, &w);
	if (err)
		return err;
	err = hand_over(c, w);
	if (!err)
		return RGATE_REQ_LATER;
	free(w);
	return err;
}

static struct wish *find_wish(struct gate_service *sv, const struct rgate_req *r)
{
	const struct gate_caller *c = NULL;
	uint32_t i;

	while ((c = gate_caller_of(sv, rgate_req_seat(r), c)))
		for (i = 0; i < GATE_TICKETS; i++)
			if (c->ticket[i] && c->ticket[i]->r == r)
				return c->ticket[i];
	return NULL;
}

int gate_forward_cancel(struct gate_service *sv, struct rgate_req *r)
{
	struct gate_node *n;
	int err = -ENOENT;
	struct wish *w;

	fair_lock(&sv->lock);
	w = find_wish(sv, r);
	if (w) {
		n = w->caller->node;
		err = gate_ask_cancel(w);
		gate_pump(n);
	}
	fair_unlock(&sv->lock);
	return err;
}
