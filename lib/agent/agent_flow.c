// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "agent_priv.h"

#define EDGES	(EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

/* 0, or why not: then @c waits for it */
static int begin(struct conn *c, uint32_t what, uint32_t flags, uint32_t events,
		 unsigned char *buf, uint32_t len)
{
	const uint64_t up = what == RGATE_SOCKET_DO_SEND || what == RGATE_SOCKET_DO_SHUTDOWN ||
			    events == RGATE_SOCKET_OUT ? CONN_UP : 0;
	const struct rgate_socket_io io = RGATE_OPTS(rgate_socket_io, .what = what,
		.flags = flags, .events = events, .buf = buf, .len = len,
		.cookie = (uintptr_t)c | up);
	int err = rgate_socket_begin(c->socket, &io);

	if (err == -EAGAIN)
		lane_want(c);
	return err;
}

/* A copy of what a buffer of the session has and nobody takes now. So the buffer is free again */
static int keep(unsigned char **left, uint32_t *left_len, uint32_t *off, const unsigned char *buf,
		uint32_t len)
{
	*left = malloc(len);
	if (!*left)
		return -ENOMEM;
	memcpy(*left, buf, len);
	*left_len = len;
	*off = 0;
	return 0;
}

static void put(struct conn *c, unsigned char **buf)
{
	lane_put_buffer(c->lane, *buf);
	*buf = NULL;
}

/* ---- The end of it ---- */

void flow_reset(struct conn *c)
{
	int there = 0;

	c->member->info.resets++;
	conn_close_socket(c, true);
	/* Who did not accept it yet has nothing there that could be unread. */
	if (!c->held && !c->hup && (ioctl(c->end, FIONREAD, &there) < 0 || !there)) {
		c->state = CONN_RESET;
		return;
	}
	conn_free(c);
}

/* All went both ways, or nobody is there for it. */
static void finish(struct conn *c)
{
	char known;

	/* An end, and no reset */
	if (c->held)
		(void)recv(c->end, &known, 1, MSG_DONTWAIT);
	conn_close_socket(c, c->linger.on && !c->linger.seconds);
	conn_free(c);
}

/* ---- From the program ---- */

/*
 * Bytes that stay where they are; -EAGAIN: there are none. -EPROTO: descriptors are with them. A
 * program's own end would be open for as long as they stay, and nobody would see that it has gone.
 */
static int look(const struct conn *c, void *buf, size_t len)
{
	struct iovec v = { .iov_base = buf, .iov_len = len };
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };
	ssize_t n = recvmsg(c->end, &mh, MSG_PEEK | MSG_DONTWAIT);

	if (n <= 0)
		return -EAGAIN;
	return mh.msg_flags & MSG_CTRUNC ? -EPROTO : (int)n;
}

/* Who has accepted it says so before anything else; 0; -EAGAIN; -EPROTO: something else came */
static int see_hello(struct conn *c)
{
	const struct agent_hello want = { .magic = AGENT_MAGIC, .id = c->id };
	struct agent_hello got;
	int n = look(c, &got, sizeof(got));

	if (n < 0)
		return n;
	if (memcmp(&got, &want, (size_t)n) || (n < (int)sizeof(got) && c->rdhup))
		return -EPROTO;
	if (n < (int)sizeof(got))
		return -EAGAIN;
	if (recv(c->end, &got, sizeof(got) - 1, MSG_DONTWAIT) != (ssize_t)sizeof(got) - 1)
		return -EIO;
	c->held = true;
	c->filled = 1;
	return 0;
}

/*
 * What the end has, but for the last byte, which is looked at and stays. Bytes; 0: the end of the
 * stream; -EAGAIN
 */
/* NOLINTNEXTLINE(misc-no-recursion): once, as the hello has been seen then */
static int take(struct conn *c, unsigned char *buf)
{
	const bool over = c->rdhup;
	const int held = c->held;
	char known;
	struct iovec v[2] = {
		{ .iov_base = &known, .iov_len = (size_t)held }, { .iov_base = buf },
	};
	int there, len;
	ssize_t n;

	if (ioctl(c->end, FIONREAD, &there) < 0)
		return -errno;
	if (there > 0 && !held && c->filled == 0) {
		const int err = see_hello(c);

		return err ? err : take(c, buf);
	}
	if (there <= held)
		return over ? 0 : -EAGAIN;
	len = there - held < (int)c->agent->piece ? there - held : (int)c->agent->piece;
	v[1].iov_len = (size_t)len - 1;
	n = held + len - 1 ? closer_recv(c->agent, c->end, v, 2, NULL) : 0;
	if (n != held + len - 1)
		return -EIO;
	if (look(c, buf + len - 1, 1) != 1)
		return -EIO;
	c->held = true;
	return len;
}

/* How many bytes there are to be sent, in up_buf; 0: the end; -EAGAIN: none now; -errno */
static int fetch(struct conn *c)
{
	int n;

	if (!c->up_left && !c->readable)
		return -EAGAIN;
	c->up_buf = lane_buffer(c->lane);
	if (!c->up_buf) {
		lane_want(c);
		return -EAGAIN;
	}
	if (c->up_left) {
		memcpy(c->up_buf, c->up_left + c->up_off, c->up_left_len - c->up_off);
		n = (int)(c->up_left_len - c->up_off);
		free(c->up_left);
		c->up_left = NULL;
	} else {
		n = take(c, c->up_buf);
	}
	if (n == -EAGAIN)
		c->readable = false;
	if (n <= 0)
		put(c, &c->up_buf);
	return n;
}

/* False: there is no connection any more */
static bool end_up(struct conn *c)
{
	/* Closed, and not only shut down: so is the other way. */
	if (c->hup) {
		finish(c);
		return false;
	}
	if (begin(c, RGATE_SOCKET_DO_SHUTDOWN, 0, RGATE_SOCKET_SHUT_SEND, NULL, 0))
		return true;
	c->up_busy = true;
	c->up_over = true;
	return true;
}

/* As a program's send goes nowhere whose peer has gone; a piece at a time */
static bool drop_up(struct conn *c)
{
	int n = fetch(c);

	if (n > 0) {
		put(c, &c->up_buf);
		lane_want(c);
	} else if (!n && c->hup) {
		finish(c);
		return false;
	} else if (n < 0 && n != -EAGAIN) {
		flow_reset(c);
		return false;
	}
	return true;
}

static bool pump_up(struct conn *c)
{
	int n, err;

	if (c->up_busy || c->up_over)
		return true;
	if (c->up_broke)
		return drop_up(c);
	if (c->up_full) {
		c->up_busy = !begin(c, RGATE_SOCKET_DO_POLL, 0, RGATE_SOCKET_OUT, NULL, 0);
		return true;
	}
	n = fetch(c);
	if (!n)
		return end_up(c);
	if (n < 0 && n != -EAGAIN) {
		flow_reset(c);
		return false;
	}
	if (n < 0)
		return true;
	c->up_len = (uint32_t)n;
	err = begin(c, RGATE_SOCKET_DO_SEND, RGATE_SOCKET_NOW, 0, c->up_buf, c->up_len);
	c->up_busy = !err;
	if (!err)
		return true;
	err = keep(&c->up_left, &c->up_left_len, &c->up_off, c->up_buf, c->up_len);
	put(c, &c->up_buf);
	if (!err)
		return true;
	flow_reset(c);
	return false;
}

/* Of the connection, which is over then: its reset is seen by who receives, too. */
static bool is_over(int error)
{
	switch (-error) {
	case ECONNRESET:
	case EPIPE:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
		return true;
	default:
		return false;
	}
}

/*
 * A gateway takes CHUNK bytes at once, of which the rest would have to wait each time, or, where it
 * has room for it, more: so that is tried from time to time, and less and less often in vain. All
 * that were begun before the first one was cut, and what is left of them, are one attempt.
 */
static void learn_piece(struct agent *a, uint32_t done, uint32_t len)
{
	if (done == CHUNK && done < len) {
		if (a->piece == CHUNK)
			return;
		a->piece = CHUNK;
		a->small = a->small_most;
		a->small_most = a->small_most < SMALL_MOST ? a->small_most * 2 : SMALL_MOST;
	} else if (done > CHUNK) {
		a->small_most = SMALL_LEAST;
	} else if (a->piece == CHUNK && done == CHUNK && !--a->small) {
		a->piece = STREAM_CHUNK;
	}
}

/* Nothing is behind an end that its program was told: its sends must fail then, as with TCP. */
static void break_up(struct conn *c)
{
	c->up_broke = true;
	if (c->down_over)
		(void)shutdown(c->end, SHUT_RD);
}

static bool up_ended(struct conn *c, const struct rgate_socket_end *end)
{
	uint32_t done;

	c->up_busy = false;
	if (end->what != RGATE_SOCKET_DO_SEND) {
		c->up_full = false;
		return true;
	}
	if (end->result < 0 && end->result != -EAGAIN && !is_over(end->result)) {
		/* Such as of who has no memory: the bytes are lost, and nobody else says so. */
		put(c, &c->up_buf);
		flow_reset(c);
		return false;
	}
	if (end->result < 0 && end->result != -EAGAIN) {
		/* What had come before is the program's yet; the reset is behind it. */
		put(c, &c->up_buf);
		break_up(c);
		return true;
	}
	done = end->result < 0 ? 0 : (uint32_t)end->result;
	if (done > c->up_len)
		done = c->up_len;	/* a lie of who serves */
	c->down_watch |= done && c->down_over;
	c->member->info.sent += done;
	learn_piece(c->agent, done, c->up_len);
	if (done < c->up_len) {
		c->up_full = true;
		if (keep(&c->up_left, &c->up_left_len, &c->up_off, c->up_buf + done,
			 c->up_len - done)) {
			flow_reset(c);
			return false;
		}
	}
	put(c, &c->up_buf);
	return true;
}

/* ---- To the program ---- */

/* What its socket does not take; -EAGAIN: all of the rest waits; -EPIPE */
static int give(struct conn *c, const unsigned char *buf, uint32_t len, uint32_t *done)
{
	ssize_t n;

	for (*done = 0; *done < len; *done += (uint32_t)n) {
		n = send(c->end, buf + *done, len - *done, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return -errno;
	}
	return 0;
}

static bool has_room(const struct conn *c)
{
	struct pollfd p = { .fd = c->end, .events = POLLOUT };

	return poll(&p, 1, 0) == 1;
}

/* True: nothing is left of what could not be given before */
static bool give_left(struct conn *c)
{
	uint32_t done;
	int err;

	if (!c->down_left)
		return true;
	err = give(c, c->down_left + c->down_off, c->down_left_len - c->down_off, &done);
	c->down_off += done;
	if (err == -EAGAIN)
		return false;
	c->down_drop |= err < 0;
	free(c->down_left);
	c->down_left = NULL;
	return true;
}

/*
 * Whose peer has ended its stream, and is gone when something comes from here, is told so: nobody
 * else looks until more is to be sent. Most send nothing behind that end, and need no request.
 */
static void watch(struct conn *c)
{
	if (c->down_watch && !c->up_broke && !c->up_over)
		c->down_busy = !begin(c, RGATE_SOCKET_DO_POLL, 0, RGATE_SOCKET_ERROR, NULL, 0);
}

static void pump_down(struct conn *c)
{
	if (c->down_busy)
		return;
	if (c->down_over) {
		watch(c);
		return;
	}
	if (!c->down_maybe) {
		c->down_busy = !begin(c, RGATE_SOCKET_DO_POLL, 0, RGATE_SOCKET_IN, NULL, 0);
		return;
	}
	/* Only what the program's socket takes at once is fetched: a buffer waits for nobody. */
	if (!give_left(c) || (!c->down_drop && !has_room(c))) {
		c->down_full = true;
		return;
	}
	c->down_full = false;
	c->down_buf = lane_buffer(c->lane);
	if (!c->down_buf) {
		lane_want(c);
		return;
	}
	c->down_busy = !begin(c, RGATE_SOCKET_DO_RECV, RGATE_SOCKET_NOW, 0, c->down_buf,
			      STREAM_CHUNK);
	if (!c->down_busy)
		put(c, &c->down_buf);
}

/* @n bytes came. False: there is no connection any more */
static bool came(struct conn *c, uint32_t n)
{
	uint32_t done = 0;
	int err;

	c->member->info.received += n;
	err = c->down_drop ? 0 : give(c, c->down_buf, n, &done);
	if (err == -EAGAIN)
		err = keep(&c->down_left, &c->down_left_len, &c->down_off, c->down_buf + done,
			   n - done);
	else if (err)
		c->down_drop = true;	/* the program receives no more; its end tells the rest */
	put(c, &c->down_buf);
	if (err != -ENOMEM)
		return true;
	flow_reset(c);
	return false;
}

static bool down_ended(struct conn *c, const struct rgate_socket_end *end)
{
	c->down_busy = false;
	if (end->what == RGATE_SOCKET_DO_POLL && c->down_over) {
		/* Not that both ways are over, which is no error of it */
		if (!c->up_over)
			break_up(c);
		return true;
	}
	if (end->what == RGATE_SOCKET_DO_POLL) {
		c->down_maybe = true;
		return true;
	}
	if (end->result > 0)
		return came(c, end->result > (int)STREAM_CHUNK ? STREAM_CHUNK :
			    (uint32_t)end->result);
	put(c, &c->down_buf);
	if (end->result == -EAGAIN) {
		c->down_maybe = false;
		return true;
	}
	if (end->result < 0 || c->up_broke) {
		flow_reset(c);
		return false;
	}
	c->down_over = true;
	(void)shutdown(c->end, SHUT_WR);
	return true;
}

/* ---- Both ---- */

void flow_pump(struct conn *c)
{
	if (c->state != CONN_STREAM)
		return;
	if (!pump_up(c))
		return;
	pump_down(c);
	/* A program that has closed its end takes nothing more. */
	if (c->up_over && !c->up_busy && (c->down_over || c->hup))
		finish(c);
}

void flow_end(struct conn *c, const struct rgate_socket_end *end)
{
	if (c->state != CONN_STREAM)
		return;
	if (end->cookie & CONN_UP ? up_ended(c, end) : down_ended(c, end))
		flow_pump(c);
}

int flow_start(struct conn *c)
{
	/* There is an edge at once, as there is room. */
	return agent_watch(c->agent, c->end, EDGES, &c->source);
}

/* The program's end is closed: with something unread that is a reset to its peer. */
static bool broke(const struct conn *c)
{
	socklen_t len = sizeof(int);
	int error = 0;

	return !getsockopt(c->end, SOL_SOCKET, SO_ERROR, &error, &len) && error;
}

void flow_event(struct conn *c, uint32_t events)
{
	int there = 0;

	if (c->state == CONN_RESET) {
		/* Its program has accepted it, or never will. */
		if (events & (EPOLLHUP | EPOLLERR) ||
		    (!ioctl(c->end, FIONREAD, &there) && there))
			conn_free(c);
		return;
	}
	if (c->state == CONN_BROKEN && events & (EPOLLHUP | EPOLLERR))
		meet_told(c);
	if (c->state != CONN_STREAM)
		return;
	c->readable |= !!(events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP));
	c->rdhup |= !!(events & (EPOLLRDHUP | EPOLLHUP));
	c->hup |= !!(events & EPOLLHUP);
	if (events & EPOLLERR && broke(c)) {
		flow_reset(c);
		return;
	}
	flow_pump(c);
}
