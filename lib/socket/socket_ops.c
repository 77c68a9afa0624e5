// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "socket_priv.h"

/* ---- Handles ---- */

/* Handles of connections that did not come: their seats are there, or drop() had them. */
static void accept_over(struct rgate_req *r, void *ctx)
{
	struct socket_service *sv = ctx;
	struct sock *s;

	(void)r;
	for (;;) {
		pthread_mutex_lock(&sv->lock);
		s = list_empty(&sv->dead) ? NULL : container_of(sv->dead.next, struct sock, look);
		pthread_mutex_unlock(&sv->lock);
		if (!s)
			return;
		(void)rgate_seat_release(s->seat, RGATE_REQ_SOCKET, s->handle);
		sock_drop(s);
	}
}

static void drop(void *object, void *ctx)
{
	(void)ctx;
	sock_drop(object);
}

/* A socket of who asks, and its handle; it may be dropped, but not freed, here */
static int new_sock(struct socket_service *sv, struct rgate_req *r, uint32_t family,
		    uint32_t type, enum sock_state state, struct sock **out)
{
	struct rgate_seat *seat = rgate_req_seat(r);
	struct sock *s = NULL;
	int err;

	pthread_mutex_lock(&sv->lock);
	err = sock_new(sv, rgate_seat_uid(seat), family, type, &s);
	if (!err)
		s->state = state;
	pthread_mutex_unlock(&sv->lock);
	if (err)
		return err;
	s->seat = seat;
	err = rgate_seat_handle(seat, RGATE_REQ_SOCKET, s, &s->handle);
	if (err)
		sock_drop(s);
	else
		*out = s;
	return err;
}

static void give_up(struct sock *s)
{
	(void)rgate_seat_release(s->seat, RGATE_REQ_SOCKET, s->handle);
	sock_drop(s);
}

/* ---- A new socket ---- */

static int open_fd(struct socket_service *sv, struct sock *s)
{
	int fd, err;

	/* Who forks knows of all descriptors. */
	pthread_mutex_lock(&sv->lock);
	fd = socket((int)s->family, (int)s->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	err = fd < 0 ? -errno : sock_watch(s, fd);
	if (!err)
		s->fd = fd;
	else if (fd >= 0)
		close(fd);
	pthread_mutex_unlock(&sv->lock);
	return err;
}

static int begin_open(struct rgate_req *r, void *ctx)
{
	const uint64_t a0 = rgate_req_get(r)->a0;
	const uint32_t family = (uint16_t)a0, type = (uint32_t)(a0 >> 16);
	struct socket_service *sv = ctx;
	struct sock *s = NULL;
	int err;

	if (a0 >> 32 || (type != RGATE_SOCKET_STREAM && type != RGATE_SOCKET_DGRAM))
		return -EINVAL;
	if (family != RGATE_SOCKET_INET && family != RGATE_SOCKET_INET6)
		return -EAFNOSUPPORT;
	err = new_sock(sv, r, family, type, SOCK_OPEN, &s);
	if (err)
		return err;
	err = open_fd(sv, s);
	if (err) {
		give_up(s);
		return err;
	}
	count_up(&sv->opened, 1);
	rgate_req_set_value(r, s->handle);
	return 0;
}

/* ---- What is asked of one ---- */

/* @accepts: connections that it may bring */
static int make_accepting(struct rgate_req *r, uint32_t accepts, struct op **out)
{
	const struct rgate_request *q = rgate_req_get(r);
	struct op *op = calloc(1, sizeof(*op) + accepts * sizeof(op->accepted[0]));

	if (!op)
		return -ENOMEM;
	list_init(&op->link);
	op->r = r;
	op->number = OP_NUMBER(q->op);
	op->mem = rgate_req_mem(r);
	op->len = q->len;
	op->arg = q->a0;
	if (q->deadline_us)
		op->due = rgate_clock_now(CLOCK_MONOTONIC) + q->deadline_us * 1000ULL;
	*out = op;
	return 0;
}

static int make_op(struct rgate_req *r, struct op **out)
{
	return make_accepting(r, 0, out);
}

/* To the service's thread; with the lock */
static bool send_op(struct sock *s, struct op *op)
{
	op->s = s;
	rgate_req_set_data(op->r, op);
	list_add_tail(&s->incoming, &op->link);
	s->under_way++;
	return sock_look(s);
}

/* False: its socket is not there, and the request stays the caller's */
static bool hand_over(struct socket_service *sv, struct op *op)
{
	struct sock *s = rgate_req_object(op->r);
	bool ok, wake = false;

	pthread_mutex_lock(&sv->lock);
	ok = s && s->state == SOCK_OPEN;
	if (ok)
		wake = send_op(s, op);
	pthread_mutex_unlock(&sv->lock);
	if (wake)
		service_wake(sv);
	return ok;
}

static int hand_on(struct socket_service *sv, struct op *op)
{
	if (hand_over(sv, op))
		return RGATE_REQ_LATER;
	free(op);
	return -EBADF;
}

static int begin(struct rgate_req *r, struct socket_service *sv)
{
	struct op *op = NULL;
	int err = make_op(r, &op);

	return err ? err : hand_on(sv, op);
}

/* The client's copy of an address, once */
static int copy_addr(struct rgate_socket_addr *to, const void *from)
{
	struct socket_name name;

	if (!from)
		return -EINVAL;
	memcpy(to, from, sizeof(*to));
	return socket_addr_get(to, &name);
}

/* @none: it may be of no family */
static int begin_at(struct rgate_req *r, struct socket_service *sv, bool none)
{
	struct op *op = NULL;
	int err;

	if (rgate_req_get(r)->len != sizeof(op->addr))
		return -EINVAL;
	err = make_op(r, &op);
	if (err)
		return err;
	err = copy_addr(&op->addr, op->mem);
	if (err && (!none || !op->mem || op->addr.family)) {
		free(op);
		return err;
	}
	return hand_on(sv, op);
}

static int begin_bind(struct rgate_req *r, void *ctx)
{
	return begin_at(r, ctx, false);
}

static int begin_connect(struct rgate_req *r, void *ctx)
{
	return begin_at(r, ctx, true);
}

/* NAME, PEER */
static int begin_name(struct rgate_req *r, void *ctx)
{
	return rgate_req_get(r)->len == sizeof(struct rgate_socket_addr) ? begin(r, ctx) : -EINVAL;
}

static int begin_listen(struct rgate_req *r, void *ctx)
{
	return rgate_req_get(r)->a0 > INT32_MAX ? -EINVAL : begin(r, ctx);
}

/* With their handles now, as only the engine's thread can give them */
static int new_pending(struct socket_service *sv, struct op *op, const struct sock *from,
		       uint32_t n)
{
	int err = 0;

	for (; !err && op->naccepted < n; op->naccepted += !err)
		err = new_sock(sv, op->r, from->family, from->type, SOCK_PENDING,
			       &op->accepted[op->naccepted]);
	return err;
}

static void give_up_op(struct op *op)
{
	while (op->naccepted)
		give_up(op->accepted[--op->naccepted]);
	free(op);
}

static int begin_accept(struct rgate_req *r, void *ctx)
{
	const uint32_t shots = rgate_req_shots(r), n = shots ? shots : 1;
	const uint32_t len = rgate_req_get(r)->len;
	struct socket_service *sv = ctx;
	const struct sock *from;
	struct op *op = NULL;
	int err;

	from = rgate_req_object(r);
	if (!from)
		return -EBADF;
	if (shots >= RGATE_SOCKET_ACCEPT_MOST || (len && len != n * sizeof(op->addr)))
		return -EINVAL;
	err = make_accepting(r, n, &op);
	if (err)
		return err;
	op->multi = shots;
	op->addr_mem = op->mem;
	err = new_pending(sv, op, from, n);
	if (!err && hand_over(sv, op))
		return RGATE_REQ_LATER;
	give_up_op(op);
	return err ? err : -EBADF;
}

static int begin_data(struct rgate_req *r, struct socket_service *sv, uint64_t flags,
		      uint64_t most, unsigned char *addr, bool to)
{
	struct op *op = NULL;
	int err;

	if (flags & ~most || (flags & RGATE_SOCKET_PEEK && flags & RGATE_SOCKET_ALL))
		return -EINVAL;
	err = make_op(r, &op);
	if (err)
		return err;
	op->flags = (uint32_t)flags;
	op->addr_mem = addr;
	if (to)
		err = copy_addr(&op->addr, addr);
	if (err) {
		free(op);
		return err;
	}
	return hand_on(sv, op);
}

static int begin_send(struct rgate_req *r, void *ctx)
{
	return begin_data(r, ctx, rgate_req_get(r)->a0, RGATE_SOCKET_NOW, NULL, false);
}

/*
 * As many as it has places for, each into a slot of its own: all of one length, and in front of it,
 * where @from, room for the sender's address.
 */
static int begin_many(struct rgate_req *r, struct socket_service *sv, uint32_t shots, bool from)
{
	const struct rgate_request *q = rgate_req_get(r);
	const uint32_t slot = q->len / shots, front = from ? sizeof(struct rgate_socket_addr) : 0;
	struct op *op = NULL;
	int err;

	if (q->a0 & ~(uint64_t)RGATE_SOCKET_NOW || q->len % shots || slot <= front)
		return -EINVAL;
	err = make_op(r, &op);
	if (err)
		return err;
	op->multi = true;
	op->slot = slot;
	op->len = slot - front;
	op->addr_mem = from ? op->mem : NULL;
	op->mem += front;
	op->flags = (uint32_t)q->a0;
	return hand_on(sv, op);
}

static int begin_recv(struct rgate_req *r, void *ctx)
{
	if (rgate_req_shots(r))
		return begin_many(r, ctx, rgate_req_shots(r), false);
	return begin_data(r, ctx, rgate_req_get(r)->a0,
			  RGATE_SOCKET_NOW | RGATE_SOCKET_PEEK | RGATE_SOCKET_ALL, NULL, false);
}

/* With an address besides */
static int begin_both(struct rgate_req *r, void *ctx, uint64_t most, bool to)
{
	const struct rgate_request *q = rgate_req_get(r);
	unsigned char *addr = rgate_seat_memory(rgate_req_seat(r), q->a1,
						sizeof(struct rgate_socket_addr));

	return addr ? begin_data(r, ctx, q->a0, most, addr, to) : -ERANGE;
}

static int begin_sendto(struct rgate_req *r, void *ctx)
{
	return begin_both(r, ctx, RGATE_SOCKET_NOW, true);
}

static int begin_recvfrom(struct rgate_req *r, void *ctx)
{
	if (rgate_req_shots(r))
		return begin_many(r, ctx, rgate_req_shots(r), true);
	return begin_both(r, ctx, RGATE_SOCKET_NOW | RGATE_SOCKET_PEEK, false);
}

static int begin_shutdown(struct rgate_req *r, void *ctx)
{
	const uint64_t how = rgate_req_get(r)->a0;

	return how && how <= (RGATE_SOCKET_SHUT_RECV | RGATE_SOCKET_SHUT_SEND) ?
	       begin(r, ctx) : -EINVAL;
}

static int begin_close(struct rgate_req *r, void *ctx)
{
	struct socket_service *sv = ctx;
	struct op *op = NULL;
	struct sock *s;
	bool ok, wake = false;
	int err;

	s = rgate_req_object(r);
	if (!s)
		return -EBADF;
	err = make_op(r, &op);
	if (err)
		return err;
	pthread_mutex_lock(&sv->lock);
	ok = s->state == SOCK_OPEN;
	if (ok) {
		s->state = SOCK_CLOSING;
		wake = send_op(s, op);
	}
	pthread_mutex_unlock(&sv->lock);
	if (!ok) {
		free(op);
		return -EBADF;
	}
	(void)rgate_seat_release(rgate_req_seat(r), RGATE_REQ_SOCKET, rgate_req_get(r)->handle);
	if (wake)
		service_wake(sv);
	return RGATE_REQ_LATER;
}

static int begin_option(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	const struct socket_option *o = socket_option(q->a0);
	int err;

	if (!o)
		return -ENOPROTOOPT;
	err = socket_option_check(o, OP_NUMBER(q->op) == OP_NUMBER(RGATE_REQ_SOCKET_SETOPT),
				  q->len);
	return err ? err : begin(r, ctx);
}

static int begin_poll(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	struct op *op = NULL;
	int err;

	if (q->a0 & ~(uint64_t)RGATE_SOCKET_EVENTS || q->a1 & ~(uint64_t)RGATE_SOCKET_NOW)
		return -EINVAL;
	err = make_op(r, &op);
	if (err)
		return err;
	op->flags = (uint32_t)q->a1;
	return hand_on(ctx, op);
}

/*
 * One that nothing was done for yet ends as the engine says. What the thread is at, or has moved
 * bytes already, ends by itself, with what became of it: a stream loses none. What has told of each
 * connection, or of all bytes, has nothing else to end with.
 */
static int cancel(struct rgate_req *r, void *ctx)
{
	struct socket_service *sv = ctx;
	bool wake = false;
	int err = -EALREADY;
	struct op *op;

	pthread_mutex_lock(&sv->lock);
	op = rgate_req_data(r);
	if (op) {
		op->unwanted = op->s->sweep = true;
		err = !op->multi && (op->runs || op->done) ? -EALREADY : 0;
		wake = sock_look(op->s);
	}
	pthread_mutex_unlock(&sv->lock);
	if (wake)
		service_wake(sv);
	return err;
}

#define A0	RGATE_USES_A0
#define A1	RGATE_USES_A1
#define MEM	RGATE_USES_MEM
#define OP(n, text, fields, function) \
	[OP_NUMBER(RGATE_REQ_SOCKET_##n)] = { \
		.name = (text), .uses = (fields) | RGATE_USES_HANDLE, .begin = (function), \
		.cancel = cancel, \
	}

static const struct rgate_req_op ops[] = {
	[OP_NUMBER(RGATE_REQ_SOCKET_OPEN)] = { .name = "open", .uses = A0, .begin = begin_open },
	OP(BIND, "bind", MEM, begin_bind),
	OP(LISTEN, "listen", A0, begin_listen),
	[OP_NUMBER(RGATE_REQ_SOCKET_ACCEPT)] = {
		.name = "accept", .uses = MEM | RGATE_USES_HANDLE | RGATE_USES_MULTI,
		.begin = begin_accept, .cancel = cancel, .over = accept_over,
	},
	OP(CONNECT, "connect", MEM, begin_connect),
	OP(SEND, "send", A0 | MEM, begin_send),
	OP(RECV, "recv", A0 | MEM | RGATE_USES_MULTI, begin_recv),
	OP(SENDTO, "sendto", A0 | A1 | MEM, begin_sendto),
	OP(RECVFROM, "recvfrom", A0 | A1 | MEM | RGATE_USES_MULTI, begin_recvfrom),
	OP(SHUTDOWN, "shutdown", A0, begin_shutdown),
	OP(CLOSE, "close", RGATE_USES_ENDS, begin_close),
	OP(NAME, "name", MEM, begin_name),
	OP(PEER, "peer", MEM, begin_name),
	OP(SETOPT, "setopt", A0 | MEM, begin_option),
	OP(GETOPT, "getopt", A0 | MEM, begin_option),
	OP(POLL, "poll", A0 | A1, begin_poll),
	[OP_NUMBER(RGATE_REQ_SOCKET_RESOLVE)] = {
		.name = "resolve", .uses = A0 | A1 | MEM, .begin = resolve_begin,
		.cancel = resolve_cancel,
	},
};

const struct rgate_req_service socket_requests = {
	.number = RGATE_REQ_SOCKET, .nops = sizeof(ops) / sizeof(ops[0]), .name = "socket",
	.ops = ops, .drop = drop,
};
