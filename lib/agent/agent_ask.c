// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent_priv.h"
#include "client_quiet.h"
#include "log.h"

/* Which socket a question is about */
struct about {
	struct conn *conn;	/* NULL: it is not known, or the next says what it is */
	struct conn *client;	/* accepted from this one, of the same agent */
	struct conn *listener;	/* ... by this one; NULL: it was closed */
	bool ours;
	bool joined;		/* the kernel has it connected */
};

/* What the kernel calls it says which it is, whatever the program says. */
static void find(struct agent *a, int fd, struct about *it)
{
	struct sockaddr_un un;
	struct agent_name room;
	const struct agent_name *name;
	socklen_t len = sizeof(un);
	struct conn *peer;
	uint64_t own, id;

	*it = (struct about){ .conn = NULL };
	if (fd < 0 || getsockname(fd, (struct sockaddr *)&un, &len) < 0)
		return;
	own = agent_path_id(a, &un, len);
	it->listener = own ? conn_find(a, own) : NULL;
	it->ours = own != 0;
	if (!own)
		return;
	it->conn = it->listener;
	len = sizeof(un);
	it->joined = !getpeername(fd, (struct sockaddr *)&un, &len);
	if (!it->joined)
		return;
	name = agent_name_of(a, &un, len, &room);
	if (name) {
		it->conn = conn_find(a, name->id);
		return;
	}
	id = agent_path_id(a, &un, len);
	if (!id || (it->conn && it->conn->state == CONN_LOCAL))
		return;
	/* Accepted, also if nobody knows from whom any more: it is not its listener. */
	it->conn = NULL;
	peer = conn_find(a, id);
	if (peer && (peer->state == CONN_LOCAL || peer->state == CONN_GONE))
		it->client = peer;
}

/* ---- Making one ---- */

/* The program's end, whose name has a file; -errno */
static int make_socket(struct conn *c, bool nonblock)
{
	struct sockaddr_un un;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0), 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ AGENT_ROOM }, sizeof(int));
	agent_path(c->agent, c->id, &un);
	if (bind(fd, (struct sockaddr *)&un, sizeof(un)) < 0) {
		const int err = -errno;

		close(fd);
		return err;
	}
	c->named = true;
	return fd;
}

static int ask_socket(struct agent_member *m, const struct agent_ask *ask, int *fd)
{
	const bool udp = ask->b & AGENT_DATAGRAM;
	struct agent *a = m->agent;
	struct conn *c;
	int err;

	if (ask->a != RGATE_SOCKET_INET && ask->a != RGATE_SOCKET_INET6)
		return -EAFNOSUPPORT;
	if (a->nconns >= a->conns_max)
		conns_reap(a, NULL);
	if (a->nconns >= a->conns_max)
		return -ENFILE;
	c = conn_make(m, udp ? CONN_DATAGRAM : CONN_NEW, (uint16_t)ask->a);
	if (!c)
		return -ENOMEM;
	c->bare = ask->b & AGENT_BARE;
	err = conn_open_socket(c);
	if (!err)
		err = (udp ? datagram_make : make_socket)(c, ask->b & AGENT_NONBLOCK);
	if (err < 0) {
		conn_free(c);
		return err;
	}
	*fd = err;
	return 0;
}

/* ---- Names ---- */

static int bind_loop(struct conn *c, struct rgate_socket_addr addr)
{
	if (addr.port && conn_at(c->agent, &addr, c->state)) {
		conns_reap(c->agent, c);
		if (conn_at(c->agent, &addr, c->state))
			return -EADDRINUSE;
	}
	if (!addr.port)
		addr.port = conn_free_port(c->agent);
	if (!addr.port)
		return -EADDRINUSE;
	c->local = addr;
	c->bound = c->chosen = c->loop = true;
	return 0;
}

/* Outside nobody knows of a port that another one has within alone. */
static int bind_outside(struct conn *c, const struct rgate_socket_addr *addr)
{
	if (c->state == CONN_DATAGRAM && addr->port && conn_has_inner(c->agent, addr->port))
		return -EADDRINUSE;
	return rgate_socket_bind(c->socket, addr);
}

static int ask_bind(struct conn *c, const struct rgate_socket_addr *addr)
{
	int err;

	if ((c->state != CONN_NEW && c->state != CONN_DATAGRAM) || c->bound)
		return -EINVAL;
	if (addr->family != c->family)
		return -EAFNOSUPPORT;
	if (c->agent->loopback == AGENT_LOOPBACK_OWN && agent_is_loop(addr))
		return bind_loop(c, *addr);
	err = bind_outside(c, addr);
	if (err == -EADDRINUSE) {
		/* Of who was closed a moment ago the agent may not know yet. */
		conns_reap(c->agent, c);
		if (c->state == CONN_DATAGRAM)
			conns_finish_at(c->agent, addr->port);
		err = bind_outside(c, addr);
	}
	if (!err)
		err = rgate_socket_name(c->socket, &c->local);
	c->bound = c->chosen = !err;
	return err;
}

/* The client's, as the listener's family has it */
static void to_listener(const struct about *it, struct rgate_socket_addr *addr)
{
	if (it->listener)
		agent_set_family(addr, it->listener->family);
}

static int name_of(const struct about *it, struct rgate_socket_addr *addr)
{
	if (it->client) {
		*addr = it->client->peer;
		to_listener(it, addr);
		return 0;
	}
	if (!it->conn)
		return -ENOTCONN;
	if (it->conn->state == CONN_DATAGRAM)
		return address_name(it->conn, addr);
	/* It has one as soon as the connect has begun. */
	if (it->conn->state == CONN_CONNECTING ||
	    (it->conn->state == CONN_STREAM && !it->conn->local.port))
		(void)rgate_socket_name(it->conn->socket, &it->conn->local);
	*addr = it->conn->local;
	return 0;
}

static int peer_of(const struct about *it, struct rgate_socket_addr *addr)
{
	if (it->client) {
		*addr = it->client->local;
		to_listener(it, addr);
		return 0;
	}
	if (!it->conn || !it->joined)
		return -ENOTCONN;
	if (it->conn->state != CONN_STREAM && it->conn->state != CONN_LOCAL && !it->conn->joined)
		return -ENOTCONN;
	*addr = it->conn->peer;
	return 0;
}

/* ---- Options ---- */

static int set_linger(struct conn *c, const struct agent_ask *ask)
{
	if (ask->len != sizeof(c->linger))
		return -EINVAL;
	memcpy(&c->linger, ask->value, sizeof(c->linger));
	c->linger.on = !!c->linger.on;
	return 0;
}

/* A buffer of more bytes is one for datagrams on their way to the program, or from it, too. */
static void widen(const struct conn *c, const struct agent_ask *ask, int fd)
{
	const int end = ask->a == RGATE_SOCKET_RCVBUF ? c->end : fd;
	socklen_t len = sizeof(int);
	int now, wanted;

	memcpy(&wanted, ask->value, sizeof(wanted));
	/* The kernel has doubled it. */
	if (!getsockopt(end, SOL_SOCKET, SO_SNDBUF, &now, &len) && wanted > now / 2)
		(void)setsockopt(end, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof(wanted));
}

/*
 * Of those that no TCP socket refuses the answer is known. While it connects it is waited for all
 * the same: renew_connecting() takes what is found by one that was not for what was so before.
 */
static bool takes_any(const struct conn *c, const struct agent_ask *ask)
{
	if (c->state == CONN_DATAGRAM || c->state == CONN_CONNECTING || ask->len != sizeof(int))
		return false;
	switch (ask->a) {
	case RGATE_SOCKET_TCP_NODELAY:
	case RGATE_SOCKET_TCP_CORK:
	case RGATE_SOCKET_TCP_QUICKACK:
	case RGATE_SOCKET_KEEPALIVE:
		return true;
	default:
		return false;
	}
}

static int set_there(struct conn *c, const struct agent_ask *ask)
{
	int err = -EAGAIN;

	if (takes_any(c, ask))
		err = socket_setopt_quiet(c->socket, ask->a, ask->value, ask->len);
	return err == -EAGAIN ? rgate_socket_setopt(c->socket, ask->a, ask->value, ask->len) : err;
}

static int set_option(const struct about *it, const struct agent_ask *ask, int fd)
{
	int err;

	/* Between two programs of this agent there is no TCP that had any. */
	if (it->client || !it->conn || !it->conn->socket)
		return 0;
	if (ask->a == RGATE_SOCKET_LINGER)
		return set_linger(it->conn, ask);
	err = set_there(it->conn, ask);
	if (!err && it->conn->state == CONN_DATAGRAM &&
	    (ask->a == RGATE_SOCKET_RCVBUF || ask->a == RGATE_SOCKET_SNDBUF))
		widen(it->conn, ask, fd);
	return err ? err : renew_keep_option(it->conn, ask);
}

static int get_option(const struct about *it, const struct agent_ask *ask,
		      struct agent_answer *answer)
{
	struct conn *c = it->conn;
	int n;

	answer->len = sizeof(int);
	if (ask->a == RGATE_SOCKET_ERROR_CODE) {
		if (c)
			memcpy(answer->value, &c->error, sizeof(c->error));
		if (c)
			c->error = 0;
		return 0;
	}
	if (ask->a == RGATE_SOCKET_DOMAIN) {
		const struct conn *from = c ? c : it->listener ? it->listener : it->client;
		const int family = from ? from->family : 0;

		memcpy(answer->value, &family, sizeof(family));
		return 0;
	}
	if (c && ask->a == RGATE_SOCKET_LINGER) {
		memcpy(answer->value, &c->linger, sizeof(c->linger));
		answer->len = sizeof(c->linger);
		return 0;
	}
	if (!c || !c->socket)
		return 0;
	n = rgate_socket_getopt(c->socket, ask->a, answer->value, ask->len);
	if (n < 0)
		return n;
	answer->len = (uint32_t)n;
	return 0;
}

/* ---- Connecting ---- */

/* As meet_connect(); 0: the program is told with whom it connects itself, as that may wait */
static int connect_new(struct conn *c, const struct agent_ask *ask, int fd,
		       struct agent_answer *answer)
{
	uint64_t id;
	int mine, err;

	if (ask->addr.family != c->family)
		return -EAFNOSUPPORT;
	if (meet_is_local(c, &ask->addr)) {
		err = meet_local(c, &ask->addr, &id);
		if (err)
			return err;
		memcpy(answer->value, &id, sizeof(id));
		answer->len = sizeof(id);
		return 0;
	}
	/* Who has closed his listener and connects there is refused, as by the kernel. */
	conns_reap_at(c->agent, ask->addr.port);
	mine = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (mine < 0)
		return -ENOBUFS;
	err = meet_connect(c, mine, &ask->addr);
	if (err != -EINPROGRESS)
		closer_put(c->agent, mine);
	return err;
}

static int connect_again(struct conn *c, const struct agent_ask *ask)
{
	int err;

	switch (c->state) {
	case CONN_CONNECTING:
		return ask->a & AGENT_NONBLOCK ? -EALREADY : -EINPROGRESS;
	case CONN_STREAM:
	case CONN_LOCAL:
		err = c->told ? -EISCONN : 0;
		c->told = true;
		return err;
	case CONN_FAILED:
		err = c->error ? -c->error : -ECONNABORTED;
		c->error = 0;
		return err;
	case CONN_LISTENS:
		return -EISCONN;
	default:
		return -EINVAL;
	}
}

/* 1: it waits */
static int ask_connect(struct asker *k, const struct about *it, const struct agent_ask *ask,
		       int fd, struct agent_answer *answer)
{
	struct conn *c = it->conn;
	int err;

	/* What the program did not come to by itself it may do again. */
	if (c->state == CONN_NEW || (c->state == CONN_LOCAL && !it->joined))
		err = connect_new(c, ask, fd, answer);
	else
		err = connect_again(c, ask);
	if (err != -EINPROGRESS || ask->a & AGENT_NONBLOCK)
		return err;
	err = asker_wait(k, &c->waiters);
	return err ? err : 1;
}

/* ---- All of them ---- */

static void say_refused(struct agent_member *m, const struct agent_ask *ask)
{
	m->info.refused++;
	if (m->said_refused)
		return;
	m->said_refused = true;
	member_warn(m, "a program asked for a socket of family %u and type %u, and was refused: there are TCP and UDP alone",
		    ask->a, ask->b);
}

static int do_it(struct asker *k, const struct agent_ask *ask, const struct about *it, int fd,
		 struct agent_answer *answer)
{
	struct conn *c = it->conn;

	switch (ask->what) {
	case AGENT_NAME:
		return name_of(it, &answer->addr);
	case AGENT_PEER:
		return peer_of(it, &answer->addr);
	case AGENT_SETOPT:
		return set_option(it, ask, fd);
	case AGENT_GETOPT:
		return get_option(it, ask, answer);
	default:
		break;
	}
	if (!c)
		return it->client ? -EISCONN : -EINVAL;
	switch (ask->what) {
	case AGENT_BIND:
		return ask_bind(c, &ask->addr);
	case AGENT_LISTEN:
		if (c->state == CONN_DATAGRAM)
			return -EOPNOTSUPP;
		return meet_listen(c, fd, (int)ask->a);
	case AGENT_CONNECT:
		if (c->state == CONN_DATAGRAM)
			return address_connect(c, fd, &ask->addr);
		return ask_connect(k, it, ask, fd, answer);
	default:
		return -EOPNOTSUPP;
	}
}

/* What its program has said is known without a socket. */
static bool needs_socket(const struct conn *c, uint32_t what)
{
	if (c->state != CONN_DATAGRAM)
		return !c->loop && what != AGENT_NAME && what != AGENT_PEER;
	return what != AGENT_PEER && (what != AGENT_NAME || !c->local.port);
}

/* Where its gateway was another one, it is asked of a socket of the new one. */
static int do_anew(struct asker *k, const struct agent_ask *ask, const struct about *it, int fd,
		   struct agent_answer *answer)
{
	struct conn *c = it->conn && renew_may(it->conn) ? it->conn : NULL;
	int ret;

	if (c && !c->socket && needs_socket(c, ask->what) && renew_now(c))
		return -ENETDOWN;
	ret = do_it(k, ask, it, fd, answer);
	if (ret != -ECONNRESET || !c)
		return ret;
	return renew_now(c) ? -ENETDOWN : do_it(k, ask, it, fd, answer);
}

static bool could_be(const struct agent_ask *ask)
{
	return ask->version == AGENT_VERSION && ask->len <= sizeof(ask->value) &&
	       ask->what >= AGENT_SOCKET && ask->what <= AGENT_RESOLVE;
}

bool ask_do(struct asker *k, const struct agent_ask *ask, int fd)
{
	struct agent_answer answer = { .result = 0 };
	struct agent *a = k->agent;
	struct about it;
	int made = -1;

	if (!could_be(ask)) {
		a->info.lies++;
		answer.result = ask->version == AGENT_VERSION ? -EINVAL : -EPROTONOSUPPORT;
	} else if (ask->what == AGENT_SOCKET) {
		answer.result = ask_socket(k->member, ask, &made);
	} else if (ask->what == AGENT_REFUSED) {
		say_refused(k->member, ask);
	} else if (ask->what == AGENT_RESOLVE) {
		answer.result = names_ask(k, ask);
		if (answer.result == 1)
			return false;
	} else {
		find(a, fd, &it);
		answer.result = it.ours ? do_anew(k, ask, &it, fd, &answer) : -ENOTSOCK;
		a->info.lies += !it.ours;
		if (answer.result == 1)
			return false;
		if (fd >= 0)
			return asker_answer_closed(k, &answer, fd);
	}
	asker_answer(k, &answer, made);
	if (made >= 0)
		close(made);
	return false;
}
