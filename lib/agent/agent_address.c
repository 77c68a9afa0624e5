// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Addresses of datagrams' sockets. Outside they are those of the service's socket; within, on the
 * agent's own loopback, datagrams go from one end to another by the table of ports. One that has
 * sent nothing outside, and is not bound there, has no port there either, at which somebody could
 * reach it: within it has one of the agent's alone then.
 */
#include <errno.h>
#include <sys/socket.h>

#include "agent_priv.h"

void address_mark(const struct conn *c, int fd)
{
	const int mark = (c->joined ? AGENT_MARK_CONNECTED : 0) |
			 (c->family == RGATE_SOCKET_INET6 ? AGENT_MARK_INET6 : 0);

	(void)setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &mark, sizeof(mark));
}

/* One that the kernel chooses, if it has none yet: something of it is about to go there. */
static int open_port(struct conn *c)
{
	const struct rgate_socket_addr any = { .family = c->family };
	int err = rgate_socket_bind(c->socket, &any);

	/* It has sent something, and so has one. */
	if (err && err != -EINVAL)
		return err;
	err = rgate_socket_name(c->socket, &c->local);
	c->bound = !err && c->local.port;
	return err;
}

/* For what it sends within, or hears there: the one that it has outside, if it has one */
static int need_port(struct conn *c)
{
	int err;

	if (c->local.port)
		return 0;
	if (datagram_goes(c) && !open_port(c) && c->bound)
		return 0;
	err = rgate_socket_name(c->socket, &c->local);
	if (err)
		return err;
	if (!c->local.port) {
		c->local.port = conn_inner_port(c->agent);
		c->inner = c->local.port;
	}
	c->bound = c->local.port;
	return c->bound ? 0 : -EADDRNOTAVAIL;
}

/* It has one as soon as it has sent something, whether that has gone or not. */
static int name_sent(struct conn *c)
{
	struct rgate_socket_addr to;
	int err;

	if (datagram_next(c, &to) && meet_is_local(c, &to))
		return need_port(c);
	err = datagram_pending(c) ? open_port(c) : rgate_socket_name(c->socket, &c->local);
	/* It may not go, and has none. */
	return err == -EACCES ? 0 : err;
}

int address_name(struct conn *c, struct rgate_socket_addr *addr)
{
	const int err = c->local.port ? 0 : name_sent(c);

	*addr = c->local;
	return err;
}

/* ---- Connected ---- */

static int leave(struct conn *c)
{
	const struct rgate_socket_addr none = { .family = 0 };
	int err = 0;

	if (c->joined && !c->near)
		err = rgate_socket_connect(c->socket, &none);
	if (err)
		return err;
	c->joined = c->near = false;
	c->peer = (struct rgate_socket_addr){ .family = c->family };
	if (!c->loop) {
		err = rgate_socket_name(c->socket, &c->local);
		c->inner = false;
	}
	/* A port that the connect had chosen goes with it. */
	c->bound = c->local.port;
	return err;
}

/* Where something for @to comes from */
static struct rgate_socket_addr source(const struct conn *c, const struct rgate_socket_addr *to)
{
	struct rgate_socket_addr from = c->local;

	if (!agent_is_any(&from))
		return from;
	from.family = agent_is_v4(to) ? RGATE_SOCKET_INET : RGATE_SOCKET_INET6;
	agent_set_loop(&from);
	agent_set_family(&from, c->family);
	return from;
}

static int join_near(struct conn *c, struct rgate_socket_addr to)
{
	int err = c->joined ? leave(c) : 0;

	if (!err)
		err = need_port(c);
	if (err)
		return err;
	if (agent_is_any(&to))
		agent_set_loop(&to);
	c->local = source(c, &to);
	c->peer = to;
	c->joined = c->near = true;
	c->member->info.local++;
	return 0;
}

static int join(struct conn *c, const struct rgate_socket_addr *to)
{
	int err = c->loop ? -EINVAL : rgate_socket_connect(c->socket, to);

	if (err)
		return err;
	c->peer = *to;
	if (agent_is_any(to))
		(void)rgate_socket_peer(c->socket, &c->peer);
	c->joined = true;
	c->near = c->inner = false;
	c->member->info.connected++;
	return rgate_socket_name(c->socket, &c->local);
}

int address_connect(struct conn *c, int fd, const struct rgate_socket_addr *to)
{
	int err;

	datagram_flush(c);
	if (!to->family)
		err = leave(c);
	else if (to->family != c->family)
		err = -EAFNOSUPPORT;
	else if (meet_is_local(c, to))
		err = join_near(c, *to);
	else
		err = join(c, to);
	address_mark(c, fd);
	return err;
}

/* ---- Within ---- */

/* How well @c may have what goes from @from to @to; 0: not at all */
static int fits(const struct conn *c, const struct rgate_socket_addr *to,
		const struct rgate_socket_addr *from)
{
	const bool same = agent_same_host(&c->local, to);

	/* One that was never bound has port 0, and nobody is to be met there. */
	if (c->state != CONN_DATAGRAM || c->hup || !to->port || c->local.port != to->port)
		return 0;
	/* :: is of both families, 0.0.0.0 of one. */
	if (!same && (!agent_is_any(&c->local) ||
		      (c->family == RGATE_SOCKET_INET && !agent_is_v4(to))))
		return 0;
	if (!c->joined)
		return 1 + same;
	return c->peer.port == from->port && agent_same_host(&c->peer, from) ? 4 : 0;
}

static struct conn *find(struct agent *a, const struct rgate_socket_addr *to,
			 const struct rgate_socket_addr *from)
{
	struct conn *best = NULL;
	int most = 0, n;
	struct link *at;

	for (at = a->all.next; at != &a->all; at = at->next) {
		struct conn *c = container_of(at, struct conn, link);

		n = fits(c, to, from);
		if (n > most)
			best = c;
		most = n > most ? n : most;
	}
	return best;
}

void address_pass(struct conn *c, const struct rgate_socket_addr *addr, const void *buf,
		  uint32_t len)
{
	struct rgate_socket_addr to = *addr, from;
	struct agent *a = c->agent;
	struct conn *other;

	if (agent_is_any(&to))
		agent_set_loop(&to);
	c->member->info.datagrams++;
	if (need_port(c)) {
		c->member->info.lost++;
		return;
	}
	if (domain_is(&to)) {
		domain_ask(c, buf, len);
		return;
	}
	from = source(c, &to);
	other = find(a, &to, &from);
	if (!other) {
		c->member->info.lost++;
		datagram_tell(c, ECONNREFUSED);
		return;
	}
	agent_set_family(&from, other->family);
	datagram_give(other, &from, buf, len);
}
