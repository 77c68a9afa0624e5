// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent_priv.h"
#include "clock.h"

#define FILL	2048U	/* bytes a write, of what keeps a socket from being writable */

/* ---- Accepting ---- */

void meet_accept_more(struct conn *c)
{
	const struct rgate_socket_io io = RGATE_OPTS(rgate_socket_io,
		.what = RGATE_SOCKET_DO_ACCEPT, .cookie = (uintptr_t)c);

	if (c->state != CONN_LISTENS || !c->socket || c->accepting || c->parked)
		return;
	/* Who is accepted has his place in this session. */
	if (c->lane->conns >= c->lane->conns_max || c->agent->nconns >= c->agent->conns_max ||
	    rgate_socket_begin(c->socket, &io)) {
		conn_retry(c);
		return;
	}
	c->accepting = true;
}

/*
 * An end that a program sends to. Urgent bytes come in their turn: else the kernel drops them when
 * what follows is read, and closes what was passed with them while the agent waits.
 */
static bool in_turn(int fd)
{
	return !setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &(int){ 1 }, sizeof(int));
}

/* The agent's end, with its name, which the program's accept(2) reads; -errno */
static int make_end(struct conn *c, int error)
{
	struct agent_name name = {
		.magic = AGENT_MAGIC, .error = (uint32_t)error, .agent = c->agent->number,
		.id = c->id, .local = c->local, .peer = c->peer,
	};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (in_turn(fd) && !agent_name_bind(fd, &name))
		return fd;
	close(fd);
	return -EIO;
}

/* Puts @c->end into the backlog of the program's listener; -EAGAIN: it is full; -errno */
static int hand_over(struct conn *listener, struct conn *c)
{
	struct sockaddr_un un;

	agent_path(listener->agent, listener->id, &un);
	return connect(c->end, (struct sockaddr *)&un, sizeof(un)) < 0 ? -errno : 0;
}

/* Who was accepted is the program's, or is parked, or there is no program any more. */
static void meet(struct conn *listener, struct conn *c)
{
	int err = hand_over(listener, c);

	if (err == -EAGAIN) {
		listener->parked = c;
		conn_retry(listener);
		return;
	}
	listener->parked = NULL;
	if (!err)
		err = flow_start(c);
	if (err) {
		conn_close_socket(c, true);
		conn_free(c);
	}
	if (err == -ECONNREFUSED || err == -ENOENT)
		conn_gone(listener);
	else
		meet_accept_more(listener);
}

/* Is it an error that is over some time, of who connected, or of what is used up? */
static bool passes(int error)
{
	switch (-error) {
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case EDQUOT:
	case ENOBUFS:
	case ENOMEM:
	case EPROTO:
	case EHOSTUNREACH:
	case ENETUNREACH:
		return true;
	default:
		return false;
	}
}

void meet_accepted(struct conn *listener, const struct rgate_socket_end *end)
{
	struct conn *c;

	listener->accepting = false;
	if (end->result < 0) {
		if (passes(end->result))
			conn_retry(listener);
		else if (end->result == -ECONNRESET)
			renew_lost(listener);
		else
			meet_break(listener, -end->result);
		return;
	}
	c = conn_make(listener->member, CONN_STREAM, listener->family);
	if (!c) {
		(void)rgate_socket_close(end->accepted);
		conn_retry(listener);
		return;
	}
	c->socket = end->accepted;
	c->lane = listener->lane;
	c->lane->conns++;
	c->peer = end->addr;
	c->armed = listener->armed;
	c->linger = listener->linger;
	listener->member->info.accepted++;
	if (rgate_socket_name(c->socket, &c->local))
		c->local = listener->local;
	c->end = make_end(c, 0);
	if (c->end < 0) {
		conn_close_socket(c, true);
		conn_free(c);
		conn_retry(listener);
		return;
	}
	meet(listener, c);
}

/* @c->end waits in the backlog then; -EAGAIN: there is no room */
static int put_news(struct conn *c, int error)
{
	struct conn news = { .agent = c->agent, .id = c->id, .local = c->local, .peer = c->local };
	int err;

	/* Its name stays where it is when it is closed. */
	conn_close_end(c);
	news.end = make_end(&news, error);
	if (news.end < 0)
		return -EAGAIN;
	err = hand_over(c, &news);
	if (err)
		conn_close_end(&news);
	else
		c->end = news.end;
	return err;
}

static void tell_broken(struct conn *c)
{
	int err = put_news(c, c->broken);

	if (!err)
		err = agent_watch(c->agent, c->end, EPOLLET, &c->source);
	/* Else it is closed, which is found soon. */
	if (err == -EAGAIN)
		conn_retry(c);
}

void meet_told(struct conn *c)
{
	/* A while later: there are programs that accept over and over. */
	conn_retry(c);
}

void meet_break(struct conn *c, int error)
{
	conn_close_socket(c, false);
	c->state = CONN_BROKEN;
	c->broken = error;
	tell_broken(c);
}

void meet_break_last(struct conn *c)
{
	unsigned int n;

	conn_close_socket(c, false);
	for (n = 0; n < AGENT_LAST_NEWS && !put_news(c, ENETDOWN); n++)
		;
}

void meet_retry(struct conn *c)
{
	if (c->state == CONN_BROKEN)
		tell_broken(c);
	else if (!c->socket)
		renew_retry(c);
	else if (c->parked)
		meet(c, c->parked);
	else
		meet_accept_more(c);
	/* It may be gone: nothing of it is touched here. */
}

/* Of who listened there, and was closed a moment ago, the agent may not know yet. */
static int listen_outside(struct conn *c, int backlog)
{
	int err;

	conn_arm(c);
	err = rgate_socket_listen(c->socket, backlog);
	if (err == -EADDRINUSE) {
		conns_reap(c->agent, c);
		err = rgate_socket_listen(c->socket, backlog);
	}
	if (!err)
		(void)rgate_socket_name(c->socket, &c->local);
	return err;
}

int meet_listen(struct conn *c, int prog, int backlog)
{
	int err = 0;

	if (c->state != CONN_NEW && c->state != CONN_LISTENS)
		return -EINVAL;
	if (!c->loop)
		err = listen_outside(c, backlog);
	if (!err && listen(prog, backlog < 0 ? SOMAXCONN : backlog) < 0)
		err = -errno;
	if (err)
		return err;
	c->state = CONN_LISTENS;
	list_del(&c->listens);
	list_add_tail(&c->agent->listeners, &c->listens);
	c->bound = true;
	c->backlog = backlog;
	if (!c->loop)
		meet_accept_more(c);
	return 0;
}

/* ---- Connecting ---- */

static int set_room(int fd, int bytes)
{
	return setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) < 0 ? -errno : 0;
}

/* As much as goes in: the socket is not writable until that is taken out. */
static int fill(struct conn *c)
{
	static const char filler[FILL];
	ssize_t n;

	while ((n = send(c->prog, filler, FILL, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
		c->filled += (uint32_t)n;
	return c->filled ? 0 : -ENOBUFS;
}

static int accept_data(struct agent *a)
{
	int fd = accept4(a->data_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0 && !in_turn(fd)) {
		close(fd);
		return -EIO;
	}
	return fd < 0 ? -errno : fd;
}

/* Both ends; only who asked for it can be there */
static int join(struct conn *c, int prog)
{
	struct sockaddr_un un;
	socklen_t len = sizeof(un);
	int fd;

	agent_data_path(c->agent, &un);
	if (connect(prog, (struct sockaddr *)&un, sizeof(un)) < 0)
		return -errno;
	fd = accept_data(c->agent);
	if (fd < 0)
		return fd == -EAGAIN ? -EIO : fd;
	c->end = fd;
	if (getpeername(fd, (struct sockaddr *)&un, &len) < 0)
		return -errno;
	return agent_path_id(c->agent, &un, len) == c->id ? 0 : -EIO;
}

/* @prog is not connected if this fails, or broken: what the kernel connected it does not let go */
static int pair(struct conn *c, int prog)
{
	socklen_t len = sizeof(c->room);
	int err;

	if (getsockopt(prog, SOL_SOCKET, SO_SNDBUF, &c->room, &len) < 0)
		return -errno;
	/* The kernel has doubled it, and makes of 1 the least that there is. */
	c->room /= 2;
	err = set_room(prog, 1);
	if (!err)
		err = join(c, prog);
	if (err) {
		(void)set_room(prog, c->room);
		return err;
	}
	c->prog = prog;
	return fill(c);
}

bool meet_is_local(const struct conn *c, const struct rgate_socket_addr *to)
{
	return domain_is(to) || (c->agent->loopback == AGENT_LOOPBACK_OWN &&
				 (agent_is_loop(to) || agent_is_any(to)));
}

int meet_local(struct conn *c, const struct rgate_socket_addr *to, uint64_t *id)
{
	struct rgate_socket_addr peer = *to;
	uint16_t port = c->local.port;
	struct conn *l;

	if (agent_is_any(&peer))
		agent_set_loop(&peer);
	closer_settle(c->agent);
	l = conn_at(c->agent, &peer, CONN_LISTENS);
	if (!l)
		return -ECONNREFUSED;
	if (!port)
		port = conn_free_port(c->agent);
	if (!port)
		return -EADDRNOTAVAIL;
	c->local = c->peer = peer;
	c->local.port = port;
	c->state = CONN_LOCAL;
	c->told = true;
	c->member->info.local++;
	*id = l->id;
	return 0;
}

static int begin(struct conn *c, const struct rgate_socket_addr *to)
{
	const struct rgate_socket_io io = RGATE_OPTS(rgate_socket_io,
		.what = RGATE_SOCKET_DO_CONNECT, .addr = to, .cookie = (uintptr_t)c);

	return rgate_socket_begin(c->socket, &io);
}

int meet_connect(struct conn *c, int prog, const struct rgate_socket_addr *to)
{
	int err;

	if (c->loop)
		return -EINVAL;
	conn_arm(c);
	err = pair(c, prog);
	if (!err)
		err = begin(c, to);
	if (err) {
		c->state = c->end < 0 ? CONN_NEW : CONN_FAILED;
		conn_close_end(c);
		c->prog = -1;
		return err;
	}
	c->state = CONN_CONNECTING;
	c->peer = *to;
	return -EINPROGRESS;
}

/* Nothing is there but one byte that is known, and the program's end is its own. */
static int drain(struct conn *c)
{
	char trash[FILL];
	struct iovec v = { .iov_base = trash };
	uint32_t left = c->filled - 1;
	ssize_t n;

	while (left) {
		v.iov_len = left < FILL ? left : FILL;
		n = closer_recv(c->agent, c->end, &v, 1, NULL);
		if (n <= 0)
			return -EIO;
		left -= (uint32_t)n;
	}
	c->held = true;
	conn_close_prog(c);
	return 0;
}

static void fail(struct conn *c, int error)
{
	c->error = error;
	c->state = CONN_FAILED;
	c->peer = (struct rgate_socket_addr){ .family = c->family };
	conn_close_socket(c, false);
	/* With what is unread: that is an error to the program. */
	conn_close_end(c);
	conn_close_prog(c);
	if (!list_empty(&c->waiters)) {
		conn_answer_waiters(c, -error);
		c->error = 0;
	}
}

void meet_connected(struct conn *c, int result)
{
	int err = result == -ECONNRESET ? renew_connecting(c) : result;

	c->up_busy = false;
	if (!err && result) {
		err = begin(c, &c->peer);
		if (!err)
			return;
	}
	/* What it is called here is asked for when its program wants to know. */
	if (!err)
		err = set_room(c->prog, c->room);
	if (!err)
		err = drain(c);
	if (!err) {
		c->state = CONN_STREAM;
		err = flow_start(c);
	}
	if (err) {
		fail(c, -err);
		return;
	}
	renew_forget_options(c);
	/* No address in particular is some address of the kernel's. */
	if (agent_is_any(&c->peer))
		(void)rgate_socket_peer(c->socket, &c->peer);
	c->member->info.connected++;
	c->told = !list_empty(&c->waiters);
	conn_answer_waiters(c, 0);
}
