// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Sockets whose gateway was another one. A stream is broken by that. What has no peer yet, and what
 * needs none, gets a socket of the new gateway, as its program has made it: with the options that
 * it set, bound to where it was, and listening.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent_priv.h"
#include "client_quiet.h"
#include "clock.h"

#define PAUSE_NS	100000000ULL	/* between two attempts */
#define MOST_NS		60000000000ULL	/* after which there are no more */

/* One that its program has set */
struct conn_option {
	struct conn_option *next;
	uint32_t option, len;
	unsigned char value[RGATE_SOCKET_OPTION_MAX];
};

/* ---- Options ---- */

/* NULL: it has not been set */
static struct conn_option *find(struct conn *c, uint32_t option, struct conn_option ***end)
{
	struct conn_option **at = &c->options;

	while (*at && (*at)->option != option)
		at = &(*at)->next;
	*end = at;
	return *at;
}

/* In the order in which they were set first: some must be there before a socket is bound. */
int renew_keep_option(struct conn *c, const struct agent_ask *ask)
{
	struct conn_option **end, *o;

	if (!renew_may(c))
		return 0;
	o = find(c, ask->a, &end);
	if (!o) {
		o = calloc(1, sizeof(*o));
		if (!o)
			return -ENOMEM;
		o->option = ask->a;
		*end = o;
	}
	o->len = ask->len;
	memcpy(o->value, ask->value, ask->len);
	return 0;
}

void renew_forget_options(struct conn *c)
{
	struct conn_option *o;

	while (c->options) {
		o = c->options;
		c->options = o->next;
		free(o);
	}
}

/* What the new gateway does not take is as it is there. */
static int set_options(struct conn *c)
{
	const struct conn_option *o;
	int err = 0;

	for (o = c->options; o && err != -ECONNRESET; o = o->next)
		err = rgate_socket_setopt(c->socket, o->option, o->value, o->len);
	return err == -ECONNRESET ? err : 0;
}

/* ---- As it was ---- */

static int set_reuse(struct conn *c, int on)
{
	return rgate_socket_setopt(c->socket, RGATE_SOCKET_REUSEADDR, &on, sizeof(on));
}

static int reuse_of(struct conn *c)
{
	const struct conn_option *o;
	struct conn_option **end;
	int on = 0;

	o = find(c, RGATE_SOCKET_REUSEADDR, &end);
	if (o && o->len == sizeof(on))
		memcpy(&on, o->value, sizeof(on));
	return on;
}

/*
 * Connections that the port had before the end of its gateway keep nobody from it, but for those of
 * a listener whose program did not ask for that: they do for a minute, see renew_retry().
 */
static int bind_stream(struct conn *c)
{
	int err = set_reuse(c, 1);

	return err ? err : rgate_socket_bind(c->socket, &c->local);
}

static int listen_again(struct conn *c)
{
	int err;

	conn_arm(c);
	err = rgate_socket_listen(c->socket, c->backlog);
	return err ? err : set_reuse(c, reuse_of(c));
}

static int make_stream(struct conn *c)
{
	int err = 0;

	if (c->loop)
		return 0;
	if (c->bound)
		err = bind_stream(c);
	if (!err && c->state == CONN_LISTENS)
		err = listen_again(c);
	return err;
}

/* A port that its program did not choose was the old gateway's. */
static int make_datagram(struct conn *c)
{
	int err = 0;

	if (c->chosen && !c->loop)
		err = rgate_socket_bind(c->socket, &c->local);
	if (!c->chosen && !c->inner) {
		c->bound = false;
		c->local = (struct rgate_socket_addr){ .family = c->family };
	}
	if (!err && c->joined && !c->near) {
		err = rgate_socket_connect(c->socket, &c->peer);
		if (!err)
			err = rgate_socket_name(c->socket, &c->local);
	}
	return err;
}

/* @lost: so is its session, which gets no others. */
static void leave(struct conn *c, bool lost)
{
	if (!c->socket)
		return;
	if (lost)
		lane_lose(c->lane);
	conn_close_socket(c, false);
	c->armed = c->down_maybe = c->up_full = false;
}

static int make(struct conn *c)
{
	int err = conn_open_socket(c);

	if (!err)
		err = set_options(c);
	if (!err)
		err = c->state == CONN_DATAGRAM ? make_datagram(c) : make_stream(c);
	if (err)
		leave(c, err == -ECONNRESET);
	return err;
}

bool renew_may(const struct conn *c)
{
	return c->state == CONN_NEW || c->state == CONN_LISTENS || c->state == CONN_DATAGRAM;
}

int renew_now(struct conn *c)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	int err;

	leave(c, true);
	err = make(c);
	if (err && (c->state == CONN_DATAGRAM || (c->state == CONN_LISTENS && !c->loop))) {
		c->lost_ns = c->lost_ns ? c->lost_ns : now;
		c->tried_ns = now;
		conn_retry(c);
	}
	if (err)
		return err;
	c->lost_ns = 0;
	if (c->state == CONN_DATAGRAM)
		lane_want(c);
	else if (c->parked)
		conn_retry(c);
	else if (!c->loop)
		meet_accept_more(c);
	return 0;
}

/* It has none, and gets none: whoever waits there is told. */
static void give_up(struct conn *c, int error)
{
	list_del(&c->retry);
	if (c->state == CONN_LISTENS) {
		meet_break(c, error);
		return;
	}
	datagram_break(c, error);
}

void renew_retry(struct conn *c)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	int err;

	if (now - c->tried_ns < PAUSE_NS) {
		conn_retry(c);
		return;
	}
	err = renew_now(c);
	/* Those are for good. */
	if (err == -EACCES || err == -EADDRNOTAVAIL)
		give_up(c, -err);
	else if (err && now - c->lost_ns >= (err == -EADDRINUSE ? 2 : 1) * MOST_NS && !c->loop)
		give_up(c, ENETDOWN);
}

void renew_lost(struct conn *c)
{
	leave(c, true);
	c->lost_ns = rgate_clock_now(CLOCK_MONOTONIC);
	c->tried_ns = c->lost_ns - PAUSE_NS;
	renew_retry(c);
}

/* ---- While it connects ---- */

static bool is_lost(const struct conn *c)
{
	struct rgate_socket_addr addr;

	return rgate_socket_name(c->socket, &addr) == -ECONNRESET;
}

int renew_connecting(struct conn *c)
{
	bool before;
	int err;

	if (!is_lost(c))
		return -ECONNRESET;
	/* What was asked of it just before the connect says so: then that has not begun. */
	before = socket_is_lost(c->socket);
	leave(c, true);
	if (!before)
		return -ENETDOWN;
	err = make(c);
	if (err)
		return -ENETDOWN;
	conn_arm(c);
	return 0;
}
