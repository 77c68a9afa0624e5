// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "clock.h"
#include "socket_priv.h"

#define TURN_BYTES	(256U << 10)
#define TURN_OPS	32U
#define DUE_SLACK	50000000ULL	/* ns: the engine's deadline began a little before ours */

/* ---- The end of a request ---- */

static void lock(struct sock *s)
{
	pthread_mutex_lock(&s->sv->lock);
}

static void unlock(struct sock *s)
{
	pthread_mutex_unlock(&s->sv->lock);
}

/* For those nobody came: only the engine's thread can take the handles away. With the lock */
static void not_accepted(struct socket_service *sv, struct op *op)
{
	struct sock *s;

	for (; op->came < op->naccepted; op->came++) {
		s = op->accepted[op->came];
		s->state = SOCK_DEAD;
		list_add_tail(&sv->dead, &s->look);
	}
}

void op_end(struct sock *s, struct op *op, int result)
{
	struct rgate_req *r = op->r;
	const uint64_t value = op->value;

	list_del(&op->link);
	lock(s);
	rgate_req_set_data(r, NULL);
	s->under_way--;
	not_accepted(s->sv, op);
	unlock(s);
	free(op);
	rgate_req_end(r, result, result < 0 ? 0 : value);
}

/* What the client wants no more: the engine knows why, or, where it was told that it is too late,
 * the client does
 */
static int why(const struct op *op)
{
	if (op->done)
		return (int)op->done;
	return op->due && rgate_clock_now(CLOCK_MONOTONIC) + DUE_SLACK >= op->due ? -ETIMEDOUT :
	       -ECANCELED;
}

/* Is it still wanted? Then it runs from now on. */
static bool enter(struct sock *s, struct op *op)
{
	bool ok;

	lock(s);
	ok = !op->unwanted;
	op->runs = ok;
	unlock(s);
	return ok;
}

static bool leave(struct sock *s, struct op *op)
{
	bool ok;

	lock(s);
	ok = !op->unwanted;
	op->runs = false;
	unlock(s);
	return ok;
}

static void give_up(struct sock *s, struct op *op)
{
	op_undo(s, op);
	op_end(s, op, why(op));
}

/* ---- One request ---- */

/* Nothing of that one's is done yet. */
static void next_slot(struct op *op)
{
	op->done = 0;
	op->mem += op->slot;
	if (op->addr_mem)
		op->addr_mem += op->slot;
}

/* Told of that one; until all have come, or nobody wants more */
static void go_on(struct sock *s, struct op *op, int result)
{
	const bool more = rgate_req_more(op->r, result, op->value);

	if (op->slot)
		next_slot(op);
	if (!more)
		op_end(s, op, -ENOBUFS);
	else if (!leave(s, op))
		give_up(s, op);
}

/* Is it what one of many has come to? The end of a stream is that of the request. */
static bool is_shot(const struct sock *s, const struct op *op, int result)
{
	return op->multi && (result > 0 || (!result && (!op->slot ||
							s->type == RGATE_SOCKET_DGRAM)));
}

/* OP_WAITS, OP_AGAIN, or it has ended, or may be run once more: 0 */
static int run_op(struct sock *s, struct op *op, uint32_t *budget)
{
	int result;

	if (!enter(s, op)) {
		give_up(s, op);
		return 0;
	}
	result = op_do(s, op, budget);
	if (result == OP_WAITS || result == OP_AGAIN) {
		if (leave(s, op))
			return result;
		give_up(s, op);
		return 0;
	}
	if (is_shot(s, op, result))
		go_on(s, op, result);
	else
		op_end(s, op, result);
	return 0;
}

/* ---- Its queues ---- */

static bool is_at_once(const struct op *op)
{
	switch (RGATE_REQ_OP(RGATE_REQ_SOCKET, op->number)) {
	case RGATE_REQ_SOCKET_SHUTDOWN:
		/* What was to be sent before it goes before it. */
		return !(op->arg & RGATE_SOCKET_SHUT_SEND);
	case RGATE_REQ_SOCKET_BIND:
	case RGATE_REQ_SOCKET_LISTEN:
	case RGATE_REQ_SOCKET_NAME:
	case RGATE_REQ_SOCKET_PEER:
	case RGATE_REQ_SOCKET_SETOPT:
	case RGATE_REQ_SOCKET_GETOPT:
		return true;
	default:
		return false;
	}
}

static struct link *queue_of(struct sock *s, const struct op *op)
{
	switch (RGATE_REQ_OP(RGATE_REQ_SOCKET, op->number)) {
	case RGATE_REQ_SOCKET_POLL:
		return &s->polls;
	case RGATE_REQ_SOCKET_ACCEPT:
	case RGATE_REQ_SOCKET_RECV:
	case RGATE_REQ_SOCKET_RECVFROM:
		return &s->in;
	default:
		return &s->out;
	}
}

/* It does not wait: the first of those that do says -EAGAIN, so those behind it do as well. */
static bool is_behind(const struct link *queue, const struct op *op)
{
	return op->flags & RGATE_SOCKET_NOW && !list_empty(queue) &&
	       op->number != OP_NUMBER(RGATE_REQ_SOCKET_POLL);
}

static void sort_in(struct sock *s, struct op *op)
{
	struct link *queue = queue_of(s, op);
	uint32_t budget = TURN_BYTES;

	list_del(&op->link);
	if (s->dead)
		op_end(s, op, s->dead);
	else if (is_at_once(op))
		(void)run_op(s, op, &budget);
	else if (is_behind(queue, op))
		op_end(s, op, -EAGAIN);
	else
		list_add_tail(queue, &op->link);
}

/* Ends what is not wanted any more */
static void sweep(struct sock *s, struct link *queue)
{
	struct link *l, *next;
	struct op *op;
	bool gone;

	for (l = queue->next; l != queue; l = next) {
		next = l->next;
		op = container_of(l, struct op, link);
		lock(s);
		gone = op->unwanted;
		unlock(s);
		if (gone)
			give_up(s, op);
	}
}

/* True: there is more to be done at once */
static bool run_queue(struct sock *s, struct link *queue, const bool *maybe, uint32_t *budget)
{
	unsigned int n;
	struct op *op;
	int err;

	for (n = 0; !list_empty(queue); n++) {
		op = container_of(queue->next, struct op, link);
		if (n == TURN_OPS || !*budget)
			return true;
		/* What waits for an event is looked at only after one; but some can be done. */
		if (!*maybe && !(op->flags & RGATE_SOCKET_NOW) &&
		    op->number != OP_NUMBER(RGATE_REQ_SOCKET_SHUTDOWN))
			return false;
		err = run_op(s, op, budget);
		if (err == OP_WAITS)
			return false;
		if (err == OP_AGAIN)
			return true;
	}
	return false;
}

static void run_polls(struct sock *s)
{
	uint32_t budget = TURN_BYTES;
	struct link *l, *next;

	for (l = s->polls.next; l != &s->polls; l = next) {
		next = l->next;
		(void)run_op(s, container_of(l, struct op, link), &budget);
	}
}

static void end_queue(struct sock *s, struct link *queue, int result)
{
	struct op *op;

	while (!list_empty(queue)) {
		op = container_of(queue->next, struct op, link);
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
		op_end(s, op, op->done ? (int)op->done : result);
	}
}

void sock_end_all(struct sock *s, int result)
{
	end_queue(s, &s->out, result);
	end_queue(s, &s->in, result);
	end_queue(s, &s->polls, result);
}

/* ---- The end of the socket ---- */

/* The peer learns that it is no regular end. */
static void reset(struct sock *s)
{
	const struct linger now = { .l_onoff = 1 };

	if (s->fd >= 0)
		(void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	sock_shut(s);
}

static void die(struct sock *s, int err)
{
	s->dead = err;
	count_up(&s->sv->killed, 1);
	reset(s);
	sock_end_all(s, err);
}

/* Everything that was sent has arrived, or never will. */
static bool is_through(const struct sock *s)
{
	struct pollfd p = { .fd = s->fd };
	int unsent = 0;

	return ioctl(s->fd, SIOCOUTQ, &unsent) < 0 || !unsent ||
	       (poll(&p, 1, 0) == 1 && p.revents & POLLERR);
}

static void finish_close(struct sock *s, int result)
{
	struct op *op = s->closing;

	s->closing = NULL;
	/* Closed when it is told */
	sock_shut(s);
	op_end(s, op, result);
	sock_free(s);
}

bool sock_linger(struct sock *s, uint64_t now)
{
	bool unwanted;

	lock(s);
	unwanted = s->closing->unwanted;
	unlock(s);
	if (!unwanted && now < s->closes_by && !is_through(s))
		return false;
	/* The kernel goes on with what is left. */
	finish_close(s, unwanted ? why(s->closing) : 0);
	return true;
}

/* The kernel's own lingering close waits, and everybody with it: so it never has seconds. */
static void begin_close(struct sock *s, struct op *op)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);

	list_del(&op->link);
	sock_end_all(s, -ECANCELED);
	s->closing = op;
	if (s->fd < 0 || !s->linger.l_onoff || s->linger.l_linger <= 0 ||
	    s->type != RGATE_SOCKET_STREAM) {
		finish_close(s, 0);
		return;
	}
	(void)shutdown(s->fd, SHUT_WR);
	s->closes_by = now + (uint64_t)s->linger.l_linger * 1000000000;
	list_add_tail(&s->sv->lingers, &s->lingers);
}

/* ---- Its turn ---- */

/* What has come; CLOSE is the last there is. True: it is closed, and may be gone */
static bool take_incoming(struct sock *s)
{
	struct link list;
	struct op *op;

	list_init(&list);
	lock(s);
	while (!list_empty(&s->incoming)) {
		op = container_of(s->incoming.next, struct op, link);
		list_del(&op->link);
		list_add_tail(&list, &op->link);
	}
	unlock(s);
	while (!list_empty(&list)) {
		op = container_of(list.next, struct op, link);
		if (op->number == OP_NUMBER(RGATE_REQ_SOCKET_CLOSE)) {
			begin_close(s, op);
			return true;
		}
		sort_in(s, op);
	}
	return false;
}

bool sock_run(struct sock *s)
{
	uint32_t budget = TURN_BYTES;
	bool more, dropped, unwanted;
	int kill;

	lock(s);
	dropped = s->dropped;
	unwanted = s->sweep;
	s->sweep = false;
	kill = s->kill;
	unlock(s);
	if (s->closing) {
		(void)sock_linger(s, rgate_clock_now(CLOCK_MONOTONIC));
		return false;
	}
	if (dropped) {
		/* By the end of its session all of them have; not by one that had no memory. */
		if (!take_incoming(s)) {
			sock_end_all(s, -ECANCELED);
			sock_free(s);
		}
		return false;
	}
	if (kill && !s->dead)
		die(s, kill);
	if (take_incoming(s))
		return false;
	if (unwanted) {
		sweep(s, &s->out);
		sweep(s, &s->in);
		sweep(s, &s->polls);
	}
	more = run_queue(s, &s->out, &s->writable, &budget);
	more |= run_queue(s, &s->in, &s->readable, &budget);
	run_polls(s);
	return more;
}
