// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "socket_own.h"
#include "socket_priv.h"

#define SECOND	1000000000ULL

/* ---- What the policy says ---- */

static void say_refused(struct socket_service *sv, const struct socket_wish *w)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	const char *type = w->type == RGATE_SOCKET_STREAM ? "tcp" : "udp";
	const char *act = w->act == SOCKET_ACT_LISTEN ? "listen" : "connect";
	char host[SOCKET_ADDR_TEXT];

	count_up(&sv->refused, 1);
	/* Who is refused often does not fill the log. */
	if (sv->said && now - sv->said < SECOND)
		return;
	sv->said = now;
	(void)socket_host_text(&w->host, host);
	rgate_warn("user %u may not %s %s %s port %u: 'allow user:%u %s %s %s %u' in the policy of sockets would let him",
		   (unsigned int)w->uid, act, type, host, w->port, (unsigned int)w->uid, act, type,
		   host, w->port);
}

int sock_may(struct sock *s, const struct socket_wish *w)
{
	struct socket_service *sv = s->sv;
	bool ok;

	pthread_mutex_lock(&sv->lock);
	ok = !sv->policy || socket_policy_may(sv->policy, w);
	if (ok && sv->policy) {
		s->wish[w->act] = *w;
		s->wished[w->act] = true;
	}
	pthread_mutex_unlock(&sv->lock);
	if (ok)
		return 0;
	say_refused(sv, w);
	return -EACCES;
}

static struct socket_wish wish_of(const struct sock *s, enum socket_act act,
				  const struct rgate_socket_addr *a)
{
	struct socket_wish w = {
		.uid = s->owner->uid, .act = act, .type = s->type, .port = a->port,
	};

	socket_host_of(a, &w.host);
	return w;
}

static bool is_granted(const struct sock *s, const struct socket_wish *w)
{
	const struct socket_wish *had = &s->wish[w->act];

	return s->wished[w->act] && had->port == w->port && had->host.v6 == w->host.v6 &&
	       !memcmp(had->host.addr, w->host.addr, sizeof(w->host.addr));
}

/* May it reach that address? As it is written, and as it is meant */
static int may_reach(struct sock *s, const struct rgate_socket_addr *a)
{
	struct socket_wish w = wish_of(s, SOCKET_ACT_CONNECT, a);
	struct socket_host as_is = { .v6 = a->family == RGATE_SOCKET_INET6 };
	int own;

	/* The next datagram to where one went is as good. */
	if (s->sv->own_fd < 0 || is_granted(s, &w))
		return 0;
	own = socket_own(s->sv->own_fd, &w.host);
	if (!own && as_is.v6 && !w.host.v6) {
		memcpy(as_is.addr, a->addr, sizeof(as_is.addr));
		own = socket_own(s->sv->own_fd, &as_is);
	}
	/* Not -EAGAIN, which would wait for the socket */
	if (own < 0)
		return -ENOBUFS;
	w.own = own;
	return sock_may(s, &w);
}

/* ---- Names ---- */

static int name_of(int fd, bool peer, struct rgate_socket_addr *a)
{
	struct socket_name name = { .len = sizeof(name.in6) };

	if ((peer ? getpeername : getsockname)(fd, &name.sa, &name.len) < 0)
		return -errno;
	socket_addr_put(a, &name);
	return 0;
}

static int do_name(struct sock *s, struct op *op, bool peer)
{
	struct rgate_socket_addr a;
	int err = name_of(s->fd, peer, &a);

	if (!err)
		memcpy(op->mem, &a, sizeof(a));
	return err;
}

static bool is_any(const struct socket_host *h)
{
	return socket_host_place(h, NULL) == PLACE_UNSPECIFIED;
}

/* Would both get what comes to one port? Two families may, as :: is of both. */
static bool collide(const struct rgate_socket_addr *a, const struct rgate_socket_addr *b)
{
	struct socket_host x, y;

	if (a->port != b->port)
		return false;
	socket_host_of(a, &x);
	socket_host_of(b, &y);
	return is_any(&x) || is_any(&y) ||
	       (x.v6 == y.v6 && !memcmp(x.addr, y.addr, sizeof(x.addr)));
}

/*
 * All sockets here are one user's to the kernel: SO_REUSEADDR and SO_REUSEPORT would let one user
 * have a part of what comes to another one's port.
 */
static bool is_others(struct sock *s, const struct rgate_socket_addr *a)
{
	struct socket_service *sv = s->sv;
	struct rgate_socket_addr theirs = { 0 };
	const struct sock *o;
	bool others = false;
	struct link *l;

	pthread_mutex_lock(&sv->lock);
	for (l = sv->all.next; l != &sv->all && !others; l = l->next) {
		o = container_of(l, struct sock, all);
		others = o->owner != s->owner && o->type == s->type && o->reuse && o->fd >= 0 &&
			 !name_of(o->fd, false, &theirs) && collide(a, &theirs);
	}
	pthread_mutex_unlock(&sv->lock);
	return others;
}

static int do_bind(struct sock *s, const struct rgate_socket_addr *a)
{
	const struct socket_wish w = wish_of(s, SOCKET_ACT_LISTEN, a);
	struct socket_name name;
	int err;

	err = socket_addr_get(a, &name);
	/* One that the kernel chooses keeps nobody from anything; a stream's is not reached yet. */
	if (!err && (a->port || s->type == RGATE_SOCKET_DGRAM))
		err = sock_may(s, &w);
	if (!err && a->port && is_others(s, a))
		err = -EADDRINUSE;
	if (err)
		return err;
	if (bind(s->fd, &name.sa, name.len) < 0)
		return -errno;
	s->chosen = !a->port;
	return 0;
}

static int do_listen(struct sock *s, const struct op *op)
{
	struct rgate_socket_addr a;
	struct socket_wish w;
	int err;

	if (s->type != RGATE_SOCKET_STREAM)
		return -EOPNOTSUPP;
	err = name_of(s->fd, false, &a);
	if (err)
		return err;
	/* 0 in a line means one that the kernel chooses. */
	if (s->chosen)
		a.port = 0;
	w = wish_of(s, SOCKET_ACT_LISTEN, &a);
	err = sock_may(s, &w);
	if (err)
		return err;
	return listen(s->fd, (int)op->arg) < 0 ? -errno : 0;
}

/* ---- Connections ---- */

static int disconnect(const struct sock *s)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	if (s->type != RGATE_SOCKET_DGRAM)
		return -EAFNOSUPPORT;
	return connect(s->fd, &none, sizeof(none)) < 0 ? -errno : 0;
}

static int do_connect(struct sock *s, struct op *op)
{
	struct socket_name name;
	int err;

	if (!op->addr.family)
		return disconnect(s);
	err = socket_addr_get(&op->addr, &name);
	if (!err && !op->begun)
		err = may_reach(s, &op->addr);
	if (err)
		return err;
	/*
	 * Once more says how it went, and leaves the socket as a connect(2) that waits does: what
	 * SO_ERROR says would leave it half connecting.
	 */
	if (!connect(s->fd, &name.sa, name.len))
		return 0;
	if (errno != EINPROGRESS && (errno != EALREADY || !op->begun))
		return -errno;
	op->begun = true;
	s->writable = false;
	return OP_WAITS;
}

/* What is under way would go on without anybody who wants it. */
void op_undo(struct sock *s, struct op *op)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	socklen_t len = sizeof(int);
	int err;

	if (op->number != OP_NUMBER(RGATE_REQ_SOCKET_CONNECT) || !op->begun || s->fd < 0)
		return;
	(void)connect(s->fd, &none, sizeof(none));
	/* The kernel keeps that it was ended for the next request, which is not concerned. */
	(void)getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &len);
}

/* With the lock: who forks knows of all descriptors. */
static int adopt(struct sock *from, struct sock *s, int fd)
{
	int err = sock_watch(s, fd);

	if (err) {
		close(fd);
		return err;
	}
	/* The policy lets its user be reached there as long as it lets him listen. */
	s->wish[SOCKET_ACT_LISTEN] = from->wish[SOCKET_ACT_LISTEN];
	s->wished[SOCKET_ACT_LISTEN] = from->wished[SOCKET_ACT_LISTEN];
	s->linger = from->linger;
	s->fd = fd;
	s->state = SOCK_OPEN;
	count_up(&s->sv->opened, 1);
	count_up(&s->sv->accepted, 1);
	return 0;
}

static int do_accept(struct sock *s, struct op *op)
{
	struct socket_name name = { .len = sizeof(name.in6) };
	struct sock *next = op->accepted[op->came];
	struct rgate_socket_addr a;
	int err, fd;

	pthread_mutex_lock(&s->sv->lock);
	fd = accept4(s->fd, &name.sa, &name.len, SOCK_CLOEXEC | SOCK_NONBLOCK);
	err = fd < 0 ? -errno : adopt(s, next, fd);
	pthread_mutex_unlock(&s->sv->lock);
	if (err)
		return err;
	if (op->addr_mem) {
		socket_addr_put(&a, &name);
		memcpy(op->addr_mem + op->came * sizeof(a), &a, sizeof(a));
	}
	op->came++;
	op->value = next->handle;
	return 0;
}

/* ---- Data ---- */

static void sent(struct sock *s, uint32_t n)
{
	__atomic_store_n(&s->sent, s->sent + n, __ATOMIC_RELAXED);
	count_up(&s->sv->sent, n);
}

static void received(struct sock *s, uint32_t n)
{
	__atomic_store_n(&s->received, s->received + n, __ATOMIC_RELAXED);
	count_up(&s->sv->received, n);
}

static uint32_t part(const struct op *op, uint32_t budget)
{
	const uint32_t left = op->len - op->done;

	return left < budget ? left : budget;
}

/* An error behind bytes that went is told by the next request. */
static int partly(const struct op *op, int err)
{
	return op->done ? (int)op->done : err;
}

static int send_stream(struct sock *s, struct op *op, uint32_t *budget)
{
	const unsigned char none[1] = { 0 };
	ssize_t n;

	do {
		n = send(s->fd, op->mem ? op->mem + op->done : none, part(op, *budget),
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN ? -EAGAIN : partly(op, -errno);
		sent(s, (uint32_t)n);
		op->done += (uint32_t)n;
		*budget -= (uint32_t)n;
		if (op->done == op->len)
			return (int)op->done;
	} while (*budget);
	return OP_AGAIN;
}

static int send_datagram(struct sock *s, struct op *op, uint32_t *budget)
{
	const bool to = op->number == OP_NUMBER(RGATE_REQ_SOCKET_SENDTO);
	struct socket_name name = { .len = 0 };
	const unsigned char none[1] = { 0 };
	ssize_t n;
	int err;

	if (to) {
		err = socket_addr_get(&op->addr, &name);
		if (!err)
			err = may_reach(s, &op->addr);
		if (err)
			return err;
	}
	n = sendto(s->fd, op->mem ? op->mem : none, op->len, MSG_NOSIGNAL | MSG_DONTWAIT,
		   to ? &name.sa : NULL, name.len);
	if (n < 0)
		return -errno;
	sent(s, (uint32_t)n);
	*budget -= part(op, *budget);
	return (int)n;
}

static int do_send(struct sock *s, struct op *op, uint32_t *budget)
{
	if (s->type == RGATE_SOCKET_DGRAM)
		return send_datagram(s, op, budget);
	if (op->number == OP_NUMBER(RGATE_REQ_SOCKET_SENDTO))
		return -EOPNOTSUPP;
	return send_stream(s, op, budget);
}

static int recv_stream(struct sock *s, struct op *op, uint32_t *budget)
{
	const int peek = op->flags & RGATE_SOCKET_PEEK ? MSG_PEEK : 0;
	unsigned char none;
	ssize_t n;

	do {
		n = recv(s->fd, op->mem ? op->mem + op->done : &none, part(op, *budget),
			 peek | MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN ? -EAGAIN : partly(op, -errno);
		*budget -= (uint32_t)n;
		op->done += (uint32_t)n;
		if (!peek)
			received(s, (uint32_t)n);
		if (!n || op->done == op->len || !(op->flags & RGATE_SOCKET_ALL))
			return (int)op->done;
	} while (*budget);
	return OP_AGAIN;
}

static int recv_datagram(struct sock *s, struct op *op, uint32_t *budget)
{
	const int peek = op->flags & RGATE_SOCKET_PEEK ? MSG_PEEK : 0;
	struct socket_name name = { .len = sizeof(name.in6) };
	struct rgate_socket_addr a;
	unsigned char none;
	uint32_t got;
	ssize_t n;

	n = recvfrom(s->fd, op->mem ? op->mem : &none, op->len, peek | MSG_DONTWAIT | MSG_TRUNC,
		     &name.sa, &name.len);
	if (n < 0)
		return -errno;
	op->value = (uint64_t)n;
	got = (uint64_t)n < op->len ? (uint32_t)n : op->len;
	if (op->addr_mem) {
		socket_addr_put(&a, &name);
		memcpy(op->addr_mem, &a, sizeof(a));
	}
	if (!peek)
		received(s, got);
	*budget -= part(op, *budget);
	return (int)got;
}

static int do_recv(struct sock *s, struct op *op, uint32_t *budget)
{
	if (s->type == RGATE_SOCKET_DGRAM)
		return op->flags & RGATE_SOCKET_ALL ? -EINVAL : recv_datagram(s, op, budget);
	/* Of a stream the sender is the peer. */
	if (op->addr_mem) {
		struct rgate_socket_addr a;
		int err = name_of(s->fd, true, &a);

		if (err)
			return err;
		memcpy(op->addr_mem, &a, sizeof(a));
	}
	return recv_stream(s, op, budget);
}

/* ---- The rest ---- */

static int do_shutdown(struct sock *s, const struct op *op)
{
	const bool in = op->arg & RGATE_SOCKET_SHUT_RECV, out = op->arg & RGATE_SOCKET_SHUT_SEND;

	return shutdown(s->fd, in && out ? SHUT_RDWR : in ? SHUT_RD : SHUT_WR) < 0 ? -errno : 0;
}

/* Seconds stay here, as the kernel would wait with whoever closes the socket: begin_close() */
static int set_linger(struct sock *s, const struct linger *l)
{
	const struct linger none = { .l_onoff = 0 }, now = { .l_onoff = 1 };
	const struct linger *there = l->l_onoff && !l->l_linger ? &now : &none;

	if (l->l_linger < 0)
		return -EINVAL;
	if (setsockopt(s->fd, SOL_SOCKET, SO_LINGER, there, sizeof(*there)) < 0)
		return -errno;
	s->linger = (struct linger){ .l_onoff = !!l->l_onoff, .l_linger = l->l_linger };
	return 0;
}

static int do_setopt(struct sock *s, const struct op *op)
{
	unsigned char value[RGATE_SOCKET_OPTION_MAX];
	struct linger l;

	/* A copy: the client may write its memory while it is looked at. */
	memcpy(value, op->mem, op->len);
	if (op->arg == RGATE_SOCKET_REUSEADDR || op->arg == RGATE_SOCKET_REUSEPORT)
		s->reuse = true;
	if (op->arg != RGATE_SOCKET_LINGER)
		return socket_option_set(s->fd, socket_option(op->arg), value, op->len);
	memcpy(&l, value, sizeof(l));
	return set_linger(s, &l);
}

static int do_getopt(struct sock *s, const struct op *op)
{
	unsigned char value[RGATE_SOCKET_OPTION_MAX];
	int n = (int)sizeof(s->linger);

	if (op->arg == RGATE_SOCKET_LINGER)
		memcpy(value, &s->linger, sizeof(s->linger));
	else
		n = socket_option_get(s->fd, socket_option(op->arg), value, op->len);
	if (n > 0)
		memcpy(op->mem, value, (size_t)n);
	return n;
}

static int do_poll(struct sock *s, struct op *op)
{
	static const struct {
		uint32_t event;
		short there;
	} map[] = {
		{ RGATE_SOCKET_IN, POLLIN }, { RGATE_SOCKET_OUT, POLLOUT },
		{ RGATE_SOCKET_RDHUP, POLLRDHUP }, { RGATE_SOCKET_ERROR, POLLERR },
		{ RGATE_SOCKET_HANGUP, POLLHUP },
	};
	struct pollfd p = { .fd = s->fd };
	unsigned int i;

	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (op->arg & map[i].event)
			p.events |= map[i].there;
	if (poll(&p, 1, 0) < 0)
		return -errno;
	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (p.revents & map[i].there)
			op->value |= map[i].event;
	return op->value ? 0 : -EAGAIN;
}

static int call(struct sock *s, struct op *op, uint32_t *budget)
{
	switch (RGATE_REQ_OP(RGATE_REQ_SOCKET, op->number)) {
	case RGATE_REQ_SOCKET_BIND:
		return do_bind(s, &op->addr);
	case RGATE_REQ_SOCKET_LISTEN:
		return do_listen(s, op);
	case RGATE_REQ_SOCKET_ACCEPT:
		return do_accept(s, op);
	case RGATE_REQ_SOCKET_CONNECT:
		return do_connect(s, op);
	case RGATE_REQ_SOCKET_SEND:
	case RGATE_REQ_SOCKET_SENDTO:
		return do_send(s, op, budget);
	case RGATE_REQ_SOCKET_RECV:
	case RGATE_REQ_SOCKET_RECVFROM:
		return do_recv(s, op, budget);
	case RGATE_REQ_SOCKET_SHUTDOWN:
		return do_shutdown(s, op);
	case RGATE_REQ_SOCKET_NAME:
		return do_name(s, op, false);
	case RGATE_REQ_SOCKET_PEER:
		return do_name(s, op, true);
	case RGATE_REQ_SOCKET_SETOPT:
		return do_setopt(s, op);
	case RGATE_REQ_SOCKET_GETOPT:
		return do_getopt(s, op);
	case RGATE_REQ_SOCKET_POLL:
		return do_poll(s, op);
	default:
		return -EOPNOTSUPP;
	}
}

static bool waits_for_input(const struct op *op)
{
	switch (RGATE_REQ_OP(RGATE_REQ_SOCKET, op->number)) {
	case RGATE_REQ_SOCKET_ACCEPT:
	case RGATE_REQ_SOCKET_RECV:
	case RGATE_REQ_SOCKET_RECVFROM:
		return true;
	default:
		return false;
	}
}

static bool waits_for_room(const struct op *op)
{
	return op->number == OP_NUMBER(RGATE_REQ_SOCKET_SEND) ||
	       op->number == OP_NUMBER(RGATE_REQ_SOCKET_SENDTO);
}

int op_do(struct sock *s, struct op *op, uint32_t *budget)
{
	int result = s->fd < 0 ? -EBADF : call(s, op, budget);
	const bool in = waits_for_input(op), out = waits_for_room(op);

	if (result == -EINTR)
		return OP_AGAIN;
	if (result != -EAGAIN)
		return result;
	if (in)
		s->readable = false;
	if (out)
		s->writable = false;
	if (op->flags & RGATE_SOCKET_NOW)
		return partly(op, -EAGAIN);
	return in || out || op->number == OP_NUMBER(RGATE_REQ_SOCKET_POLL) ? OP_WAITS : -EAGAIN;
}
