// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "gate_priv.h"

static struct caller *find_caller(struct gate_service *sv, const struct rgate_seat *seat)
{
	struct caller *c;
	struct link *l;

	for (l = sv->callers.next; l != &sv->callers; l = l->next) {
		c = container_of(l, struct caller, of_service);
		if (c->seat == seat)
			return c;
	}
	return NULL;
}

/* Its handle is no socket's: it tells of the session's end. */
static int new_caller(struct gate_service *sv, struct rgate_seat *seat, struct caller **out)
{
	struct caller *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->sv = sv;
	c->seat = seat;
	c->uid = rgate_seat_uid(seat);
	c->id = ++sv->serial;
	list_init(&c->queue);
	err = rgate_seat_handle(seat, RGATE_REQ_SOCKET, c, &c->handle);
	if (err) {
		free(c);
		return err;
	}
	list_add_tail(&sv->callers, &c->of_service);
	*out = c;
	return 0;
}

/* Who asks; whoever has not opened a socket has none. */
static int caller_of(struct gate_service *sv, struct rgate_req *r, struct caller **out)
{
	struct rgate_seat *seat = rgate_req_seat(r);

	*out = find_caller(sv, seat);
	if (sv->over || (*out && (*out)->lost))
		return -ECONNRESET;
	if (*out)
		return 0;
	return rgate_req_get(r)->op == RGATE_REQ_SOCKET_OPEN ? new_caller(sv, seat, out) : -EBADF;
}

static int take_ticket(struct caller *c, struct wish *w)
{
	uint32_t i;

	for (i = 0; i < GATE_TICKETS; i++) {
		if (c->ticket[i])
			continue;
		c->ticket[i] = w;
		w->ticket = i;
		w->caller = c;
		w->serial = ++c->sv->serial;
		return 0;
	}
	return -ENOBUFS;
}

static int hand_over(struct gate_service *sv, struct wish *w)
{
	struct caller *c;
	int err;

	fair_lock(&sv->lock);
	err = caller_of(sv, w->r, &c);
	if (!err)
		err = take_ticket(c, w);
	if (!err) {
		rgate_req_set_data(w->r, w);
		gate_ask(w);
		gate_pump(gate_gateway(sv));
	}
	fair_unlock(&sv->lock);
	return err;
}

/* Its second part of memory; an address that is sent is copied now. */
static int read_addr(struct wish *w)
{
	if (!(w->has & (GATE_HAS_TO | GATE_HAS_FROM)))
		return 0;
	w->addr_mem = rgate_seat_memory(rgate_req_seat(w->r), rgate_req_get(w->r)->a1, GATE_ADDR);
	if (!w->addr_mem)
		return -ERANGE;
	if (w->has & GATE_HAS_TO)
		memcpy(&w->addr, w->addr_mem, GATE_ADDR);
	return 0;
}

/* What the gateway would refuse is not asked. */
static int check(const struct rgate_request *q, uint32_t has)
{
	if (q->len <= GATE_ROOM)
		return 0;
	if (!(has & GATE_HAS_STREAM))
		return -EINVAL;
	/* A receive of all that ends before it has it would be taken for the stream's end. */
	return has & GATE_HAS_OUT && q->a0 & RGATE_SOCKET_ALL ? -EMSGSIZE : 0;
}

static int begin(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	const int has = gate_op_has(q->op);
	struct wish *w;
	int err;

	err = has < 0 ? has : check(q, (uint32_t)has);
	if (err)
		return err;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	list_init(&w->queue);
	w->r = r;
	w->has = (uint32_t)has;
	w->mem = rgate_req_mem(r);
	w->len = q->len < GATE_ROOM ? q->len : GATE_ROOM;
	if (q->deadline_us)
		w->due = rgate_clock_now(CLOCK_MONOTONIC) + q->deadline_us * 1000ULL;
	err = read_addr(w);
	if (!err)
		err = hand_over(ctx, w);
	if (!err)
		return RGATE_REQ_LATER;
	free(w);
	return err;
}

static int cancel(struct rgate_req *r, void *ctx)
{
	struct gate_service *sv = ctx;
	int err = -EALREADY;
	struct wish *w;

	fair_lock(&sv->lock);
	w = rgate_req_data(r);
	if (w) {
		err = gate_ask_cancel(w);
		gate_pump(gate_gateway(sv));
	}
	fair_unlock(&sv->lock);
	return err;
}

static void drop(void *object, void *ctx)
{
	struct gate_service *sv = ctx;

	fair_lock(&sv->lock);
	gate_ask_leave(object);
	if (!sv->over)
		gate_pump(gate_gateway(sv));
	fair_unlock(&sv->lock);
}

#define A0	RGATE_USES_A0
#define A1	RGATE_USES_A1
#define MEM	RGATE_USES_MEM
#define HANDLE	RGATE_USES_HANDLE
#define OP(n, text, fields) \
	[RGATE_REQ_SOCKET_##n & ((1U << RGATE_REQ_OP_SHIFT) - 1)] = { \
		.name = text, .uses = fields, .begin = begin, .cancel = cancel, \
	}

static const struct rgate_req_op ops[] = {
	OP(OPEN, "open", A0),
	OP(BIND, "bind", HANDLE | MEM), OP(LISTEN, "listen", HANDLE | A0),
	OP(ACCEPT, "accept", HANDLE | MEM), OP(CONNECT, "connect", HANDLE | MEM),
	OP(SEND, "send", HANDLE | A0 | MEM), OP(RECV, "recv", HANDLE | A0 | MEM),
	OP(SENDTO, "sendto", HANDLE | A0 | A1 | MEM),
	OP(RECVFROM, "recvfrom", HANDLE | A0 | A1 | MEM),
	OP(SHUTDOWN, "shutdown", HANDLE | A0), OP(CLOSE, "close", HANDLE),
	OP(NAME, "name", HANDLE | MEM), OP(PEER, "peer", HANDLE | MEM),
	OP(SETOPT, "setopt", HANDLE | A0 | MEM), OP(GETOPT, "getopt", HANDLE | A0 | MEM),
	OP(POLL, "poll", HANDLE | A0 | A1),
};

const struct rgate_req_service gate_requests = {
	.number = RGATE_REQ_SOCKET, .nops = sizeof(ops) / sizeof(ops[0]), .name = "socket",
	.ops = ops, .drop = drop,
};
