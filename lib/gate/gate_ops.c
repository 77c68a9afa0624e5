// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests of RGATE_REQ_SOCKET, all of which the gateway carries out. */
#include <errno.h>

#include "gate_priv.h"

static struct gate_caller *find_caller(struct gate_service *sv, const struct rgate_seat *seat)
{
	struct gate_caller *c;

	fair_lock(&sv->lock);
	c = gate_caller_of(sv, seat, NULL);
	fair_unlock(&sv->lock);
	return c;
}

/* Its handle is no socket's: it tells of the session's end. */
static int new_caller(struct gate_service *sv, struct rgate_seat *seat, struct gate_caller **out)
{
	uint32_t handle;
	int err;

	err = gate_caller_new(sv, seat, sv->o.gateway, out);
	if (err)
		return err;
	err = rgate_seat_handle(seat, RGATE_REQ_SOCKET, *out, &handle);
	if (err)
		gate_caller_leave(*out);
	return err;
}

/* Who asks; whoever has not opened a socket has none. */
static int caller_of(struct gate_service *sv, struct rgate_req *r, struct gate_caller **out)
{
	struct rgate_seat *seat = rgate_req_seat(r);
	const uint16_t op = rgate_req_get(r)->op;

	*out = find_caller(sv, seat);
	if (*out)
		return 0;
	return op == RGATE_REQ_SOCKET_OPEN || op == RGATE_REQ_SOCKET_RESOLVE ?
	       new_caller(sv, seat, out) : -EBADF;
}

/* A receive of all that ends before it has it would be taken for the stream's end. */
static bool is_cut_short(const struct rgate_request *q)
{
	const int has = gate_op_has(&gate_sockets, q->op);

	return has > 0 && has & GATE_HAS_STREAM && has & GATE_HAS_OUT &&
	       q->a0 & RGATE_SOCKET_ALL && q->len > gate_sockets.room;
}

/* Bytes of its part that the gateway has to see: of a name's only the question */
static uint32_t sent_of(const struct rgate_request *q)
{
	if (q->op != RGATE_REQ_SOCKET_RESOLVE)
		return UINT32_MAX;
	return (uint16_t)q->a1 + (uint32_t)(uint16_t)(q->a1 >> 16);
}

static int begin(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	const struct gate_as as = { .handle = q->handle, .a0 = q->a0, .sent = sent_of(q) };
	struct gate_caller *c;
	int err;

	if (is_cut_short(q))
		return -EMSGSIZE;
	err = caller_of(ctx, r, &c);
	return err ? err : gate_forward(c, r, &as);
}

static int cancel(struct rgate_req *r, void *ctx)
{
	int err = gate_forward_cancel(ctx, r);

	return err == -ENOENT ? -EALREADY : err;
}

static void drop(void *object, void *ctx)
{
	(void)ctx;
	gate_caller_leave(object);
}

static uint32_t node(void *ctx)
{
	const struct gate_service *sv = ctx;

	return sv->o.gateway;
}

#define A0	RGATE_USES_A0
#define A1	RGATE_USES_A1
#define MEM	RGATE_USES_MEM
#define HANDLE	RGATE_USES_HANDLE
#define OP(n, text, fields) \
	[RGATE_REQ_SOCKET_##n & ((1U << RGATE_REQ_OP_SHIFT) - 1)] = { \
		.name = (text), .uses = (fields), .begin = begin, .cancel = cancel, \
	}

static const struct rgate_req_op ops[] = {
	OP(OPEN, "open", A0),
	OP(BIND, "bind", HANDLE | MEM), OP(LISTEN, "listen", HANDLE | A0),
	OP(ACCEPT, "accept", HANDLE | MEM | RGATE_USES_MULTI),
	OP(CONNECT, "connect", HANDLE | MEM),
	OP(SEND, "send", HANDLE | A0 | MEM),
	OP(RECV, "recv", HANDLE | A0 | MEM | RGATE_USES_MULTI),
	OP(SENDTO, "sendto", HANDLE | A0 | A1 | MEM),
	OP(RECVFROM, "recvfrom", HANDLE | A0 | A1 | MEM | RGATE_USES_MULTI),
	OP(SHUTDOWN, "shutdown", HANDLE | A0), OP(CLOSE, "close", HANDLE),
	OP(NAME, "name", HANDLE | MEM), OP(PEER, "peer", HANDLE | MEM),
	OP(SETOPT, "setopt", HANDLE | A0 | MEM), OP(GETOPT, "getopt", HANDLE | A0 | MEM),
	OP(POLL, "poll", HANDLE | A0 | A1), OP(RESOLVE, "resolve", A0 | A1 | MEM),
};

const struct rgate_req_service gate_requests = {
	.number = RGATE_REQ_SOCKET, .nops = sizeof(ops) / sizeof(ops[0]), .name = "socket",
	.ops = ops, .drop = drop, .node = node,
};

int gate_service_add(struct gate_service *sv, struct rgate_engine *engine)
{
	if (sv->o.role != &gate_sockets || !sv->node[sv->o.gateway].line)
		return -ENXIO;
	return rgate_engine_add(engine, &gate_requests, sv);
}
