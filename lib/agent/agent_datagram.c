// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Datagrams of a program's UDP socket, one at a time each way. Those that a program does not take
 * at once are lost, as its socket's buffer is full; those that who serves does not take now wait,
 * and behind them what the program sends, in its own socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent_priv.h"
#include "clock.h"
#include "fds.h"
#include "log.h"

#define EDGES	(EPOLLIN | EPOLLRDHUP | EPOLLET)
#define BURST	32U	/* that are looked at until it is somebody else's turn */
#define FLUSH_NS	50000000ULL	/* in which they go before a connect */

/* ---- To the program ---- */

void datagram_give(struct conn *c, const struct rgate_socket_addr *from, const void *buf,
		   uint32_t len)
{
	struct agent_head head = { .addr = *from };
	struct iovec v[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)(uintptr_t)buf, .iov_len = len },
	};
	struct msghdr mh = { .msg_iov = v, .msg_iovlen = 2 };
	union rgate_fds_room room;
	int tag;

	if (c->bare) {
		tag = tag_of(c->agent, from);
		if (tag < 0) {
			c->member->info.lost++;
			return;
		}
		mh.msg_iov = v + 1;
		mh.msg_iovlen = 1;
		rgate_put_fds(&mh, &room, &tag, 1);
	}
	c->member->info.lost += sendmsg(c->end, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0;
}

static void say(struct conn *c, int error)
{
	datagram_give(c, &(struct rgate_socket_addr){ .scope = (uint32_t)error }, NULL, 0);
}

void datagram_tell(struct conn *c, int error)
{
	/* As the kernel has it */
	if (c->joined)
		say(c, error);
}

/* @io: what, flags, ...; 0, or why not: -EAGAIN: @c waits for it */
static int begin(struct conn *c, struct rgate_socket_io io, uint64_t up)
{
	int err;

	io.sz = sizeof(io);
	io.cookie = (uintptr_t)c | up;
	err = rgate_socket_begin(c->socket, &io);
	if (err == -EAGAIN)
		lane_want(c);
	return err;
}

#define BEGIN(c, up, ...)	begin(c, (struct rgate_socket_io){ __VA_ARGS__ }, up)

static void put(struct conn *c, unsigned char **buf)
{
	lane_put_buffer(c->lane, *buf);
	*buf = NULL;
}

static void pump_down(struct conn *c)
{
	if (c->down_busy)
		return;
	if (!c->down_maybe) {
		c->down_busy = !BEGIN(c, 0, .what = RGATE_SOCKET_DO_POLL,
				      .events = RGATE_SOCKET_IN);
		return;
	}
	c->down_buf = lane_buffer(c->lane);
	if (!c->down_buf) {
		lane_want(c);
		return;
	}
	c->down_busy = !BEGIN(c, 0, .what = RGATE_SOCKET_DO_RECV, .flags = RGATE_SOCKET_NOW,
			      .buf = c->down_buf, .len = CHUNK);
	if (!c->down_busy)
		put(c, &c->down_buf);
}

static void came(struct conn *c, const struct rgate_socket_end *end)
{
	const uint32_t n = end->result > (int)CHUNK ? CHUNK : (uint32_t)end->result;

	c->member->info.received += n;
	c->member->info.datagrams++;
	/* From outside, to one that is connected within; or a lie of who serves */
	if (c->near || end->addr.family != c->family || n > AGENT_DATAGRAM_MAX)
		c->member->info.lost++;
	else
		datagram_give(c, &end->addr, c->down_buf, n);
}

/* False: its socket is gone, and so is it */
static bool down_ended(struct conn *c, const struct rgate_socket_end *end)
{
	c->down_busy = false;
	if (end->what == RGATE_SOCKET_DO_POLL && end->result < 0) {
		datagram_break(c, -end->result);
		return false;
	}
	if (end->what == RGATE_SOCKET_DO_POLL) {
		c->down_maybe = true;
		return true;
	}
	if (end->result >= 0) {
		came(c, end);
	} else {
		/* Behind an error of all that is asked for the poll has one, too. */
		c->down_maybe = false;
		if (end->result != -EAGAIN)
			datagram_tell(c, -end->result);
	}
	put(c, &c->down_buf);
	return true;
}

/* ---- From the program ---- */

static bool is_right(const struct conn *c, const struct agent_head *head)
{
	return !head->addr.family || head->addr.family == c->family;
}

/* Has the program no more to send, but what was read with this? */
static bool is_end(const struct conn *c)
{
	struct pollfd p = { .fd = c->end, .events = POLLRDHUP };
	int there;

	if (c->bare && !poll(&p, 1, 0))
		return false;
	return ioctl(c->end, FIONREAD, &there) < 0 || !there;
}

/* @n bytes without a head: what has become one belongs in front of the others. */
static ssize_t put_head(struct agent_head *head, unsigned char *buf, ssize_t n)
{
	const size_t first = n < (ssize_t)sizeof(*head) ? (size_t)n : sizeof(*head);

	if (n > AGENT_DATAGRAM_MAX)
		return -EPROTO;
	memmove(buf + first, buf, (size_t)n - first);
	memcpy(buf, head, first);
	*head = (struct agent_head){ .addr.family = 0 };
	return n + (ssize_t)sizeof(*head);
}

/* The bytes of the next one that it has sent; -EAGAIN: there is none; others: that is none */
static int take(struct conn *c, unsigned char *buf)
{
	struct agent_head head;
	struct iovec v[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = buf, .iov_len = CHUNK },
	};
	int passed = -1;
	ssize_t n = closer_recv(c->agent, c->end, v, 2, c->bare ? &passed : NULL);

	/* An empty message reads as the end does. */
	if (!n && is_end(c))
		return -EAGAIN;
	/* What it has not read and will not is none of its mistakes. */
	if (n < 0 && n != -EPROTO)
		return (int)n;
	if (passed >= 0)
		closer_put(c->agent, passed);
	else if (c->bare && n >= 0)
		n = put_head(&head, buf, n);
	if (n < (ssize_t)sizeof(head) || n > (ssize_t)(sizeof(head) + AGENT_DATAGRAM_MAX) ||
	    !is_right(c, &head)) {
		c->agent->info.lies++;
		return -EPROTO;
	}
	c->up_to = head.addr;
	return (int)(n - (ssize_t)sizeof(head));
}

static void failed(struct conn *c, int error)
{
	c->member->info.lost++;
	datagram_tell(c, error);
	if (error != EACCES || c->member->said_denied)
		return;
	c->member->said_denied = true;
	member_warn(c->member, "a datagram may not go where a program has sent it: who has the sockets has a policy");
}

static void sent(struct conn *c, int result)
{
	const uint32_t n = result < 0 ? 0 : (uint32_t)result;

	c->member->info.datagrams++;
	c->member->info.sent += n < c->up_len ? n : c->up_len;
	if (result < 0)
		failed(c, -result);
}

static const struct rgate_socket_addr *up_to(const struct conn *c)
{
	return c->up_to.family ? &c->up_to : NULL;
}

/* True: it did not have to go outside */
static bool went(struct conn *c, const unsigned char *buf)
{
	const struct rgate_socket_addr *to = c->up_to.family ? &c->up_to :
					     c->joined ? &c->peer : NULL;

	if (!to)
		failed(c, EDESTADDRREQ);
	else if (meet_is_local(c, to))
		address_pass(c, to, buf, c->up_len);
	else if (c->loop)
		failed(c, EINVAL);
	else
		return false;
	return true;
}

/* A copy of what who serves does not take now: its buffer is free again */
static void keep(struct conn *c)
{
	c->up_left = malloc(c->up_len ? c->up_len : 1);
	if (c->up_left)
		memcpy(c->up_left, c->up_buf, c->up_len);
	else
		c->member->info.lost++;
}

/* False: there is none now, or no way for it */
static bool send_one(struct conn *c)
{
	int n, err;

	c->up_buf = lane_buffer(c->lane);
	if (!c->up_buf) {
		lane_want(c);
		return false;
	}
	n = (int)c->up_len;
	if (c->up_left) {
		memcpy(c->up_buf, c->up_left, c->up_len);
		free(c->up_left);
		c->up_left = NULL;
	} else {
		n = take(c, c->up_buf);
		c->readable = n != -EAGAIN;
		c->up_len = n < 0 ? 0 : (uint32_t)n;
	}
	if (n < 0 || went(c, c->up_buf)) {
		put(c, &c->up_buf);
		return n != -EAGAIN;
	}
	err = BEGIN(c, CONN_UP, .what = RGATE_SOCKET_DO_SEND, .flags = RGATE_SOCKET_NOW,
		    .buf = c->up_buf, .len = c->up_len, .addr = up_to(c));
	c->up_busy = !err;
	if (!err)
		return false;
	keep(c);
	put(c, &c->up_buf);
	return false;
}

static void pump_up(struct conn *c)
{
	unsigned int n;

	if (c->up_busy)
		return;
	if (c->up_full) {
		c->up_busy = !BEGIN(c, CONN_UP, .what = RGATE_SOCKET_DO_POLL,
				    .events = RGATE_SOCKET_OUT);
		return;
	}
	for (n = 0; n < BURST && (c->up_left || c->readable); n++)
		if (!send_one(c))
			return;
	/* The others' turn: what is left has an event again. */
	if (c->readable)
		(void)events_change(&c->agent->ev, c->end, EDGES, events_word(&c->source));
}

static void up_ended(struct conn *c, const struct rgate_socket_end *end)
{
	c->up_busy = false;
	if (end->what == RGATE_SOCKET_DO_POLL) {
		c->up_full = false;
		return;
	}
	c->up_full = end->result == -EAGAIN;
	if (c->up_full)
		keep(c);
	else
		sent(c, end->result);
	put(c, &c->up_buf);
}

/* -ETIMEDOUT: who stands still was not waited for, and may take it from there when he goes on */
static int send_now(struct conn *c, const unsigned char *buf)
{
	const struct rgate_socket_addr *to = up_to(c);
	const int ret = to ? rgate_socket_sendto(c->socket, buf, c->up_len, RGATE_SOCKET_NOW, to) :
			rgate_socket_send(c->socket, buf, c->up_len, RGATE_SOCKET_NOW);

	sent(c, ret);
	return ret;
}

/*
 * What was sent before a connect never goes to the new peer: what is left after a while is lost,
 * and what goes outside while all buffers are in use.
 */
void datagram_flush(struct conn *c)
{
	/* Of one that is under way, or waits, for which the peer is this one, too */
	const struct rgate_socket_addr to = c->up_to.family || !c->joined ? c->up_to : c->peer;
	const uint64_t end = rgate_clock_now(CLOCK_MONOTONIC) + FLUSH_NS;
	unsigned char *own = c->socket ? lane_buffer(c->lane) : NULL;
	const uint32_t len = c->up_len;
	int left = 0, n;

	/* Another thread may go on sending: only what is there now is taken. */
	if (ioctl(c->end, FIONREAD, &left) < 0)
		left = 0;
	for (; left > 0; left -= (c->bare ? 1 : (int)sizeof(struct agent_head)) + (n > 0 ? n : 0)) {
		unsigned char *const buf = own ? own : c->agent->spare;

		n = take(c, buf);
		if (n == -EAGAIN)
			break;
		c->up_len = n < 0 ? 0 : (uint32_t)n;
		if (n < 0 || went(c, buf))
			continue;
		if (!own || rgate_clock_now(CLOCK_MONOTONIC) > end)
			c->member->info.lost++;
		else if (send_now(c, buf) == -ETIMEDOUT)
			own = NULL;
	}
	if (own)
		lane_put_buffer(c->lane, own);
	c->up_to = to;
	c->up_len = len;
}

bool datagram_goes(const struct conn *c)
{
	return c->up_busy || c->up_left;
}

bool datagram_pending(const struct conn *c)
{
	int there = 0;

	return datagram_goes(c) || ioctl(c->end, FIONREAD, &there) < 0 || there;
}

bool datagram_next(const struct conn *c, struct rgate_socket_addr *to)
{
	struct agent_head head;
	struct iovec v = { .iov_base = &head, .iov_len = sizeof(head) };
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };
	const ssize_t n = recvmsg(c->end, &mh, MSG_PEEK | MSG_DONTWAIT);

	/* There is no room for the descriptor that would come with it. */
	if (n > 0 && c->bare && !(mh.msg_flags & MSG_CTRUNC))
		head.addr.family = 0;
	else if (n != (ssize_t)sizeof(head))
		return false;
	if (datagram_goes(c))
		return false;
	*to = head.addr.family ? head.addr : c->peer;
	return head.addr.family || c->joined;
}

/* ---- Both ways ---- */

void datagram_pump(struct conn *c)
{
	if (!c->socket) {
		/* Its gateway has gone, and it has. */
		if (c->hup)
			conn_free(c);
		return;
	}
	pump_up(c);
	if (!c->hup)
		pump_down(c);
	else if (!c->readable && !c->up_busy && !c->up_left)
		conn_free(c);
}

void datagram_event(struct conn *c, uint32_t events)
{
	c->readable |= !!(events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP));
	/* shutdown(2) both ways looks the same, but it goes on: it is closed when it is reaped. */
	c->hup |= events & EPOLLHUP && conn_is_closed(c);
	datagram_pump(c);
}

void datagram_break(struct conn *c, int error)
{
	say(c, error);
	conn_free(c);
}

void datagram_end(struct conn *c, const struct rgate_socket_end *end)
{
	/* No datagram's error: its gateway was another one. What was to be sent still is. */
	if (end->result == -ECONNRESET) {
		if (c->up_buf && !c->up_left)
			keep(c);
		renew_lost(c);
		return;
	}
	if (end->cookie & CONN_UP)
		up_ended(c, end);
	else if (!down_ended(c, end))
		return;
	datagram_pump(c);
}

void datagram_reap(struct conn *c)
{
	struct pollfd p = { .fd = c->end };

	if (poll(&p, 1, 0) == 1 && p.revents & POLLHUP)
		datagram_event(c, EPOLLHUP);
}

void datagram_finish(struct conn *c)
{
	if (!c->socket || c->up_full || c->up_left)
		return;
	datagram_flush(c);
	/* What is under way is done before this is. */
	if (c->up_busy)
		(void)rgate_socket_shutdown(c->socket, RGATE_SOCKET_SHUT_SEND);
	conn_free(c);
}

/* ---- Both ends ---- */

/* The agent's, which says to the program's calls what it is */
static int name_end(struct conn *c)
{
	struct agent_name name = { .magic = AGENT_MAGIC_DATAGRAM, .agent = c->agent->number,
				   .id = c->id };
	int err = agent_name_bind(c->end, &name);

	return err ? err : agent_watch(c->agent, c->end, EDGES, &c->source);
}

static int name_prog(struct conn *c, int fd, bool nonblock)
{
	struct sockaddr_un un;

	agent_path(c->agent, c->id, &un);
	if (bind(fd, (struct sockaddr *)&un, sizeof(un)) < 0)
		return -errno;
	c->named = true;
	address_mark(c, fd);
	return nonblock && fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

int datagram_make(struct conn *c, bool nonblock)
{
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	c->end = pair[0];
	err = name_prog(c, pair[1], nonblock);
	if (!err)
		err = name_end(c);
	if (err) {
		close(pair[1]);
		return err;
	}
	pump_down(c);
	return pair[1];
}
