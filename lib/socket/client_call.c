// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"
#include "client_quiet.h"
#include "clock.h"
#include "socket_addr.h"

#define ADDR_LEN	sizeof(struct rgate_socket_addr)
#define FULL_MS		1000U	/* that a full ring is waited for */

/* ---- Waiting ---- */

static uint32_t deadline_of(const struct rgate_socket *s)
{
	return s->timeout_ms < UINT32_MAX / 1000 ? s->timeout_ms * 1000 : UINT32_MAX;
}

/*
 * Until the place's request has ended: whoever serves it ends it, or the session is over. A signal
 * does not end what has begun.
 */
static int wait_for(struct rgate_sockets *set, struct place *p)
{
	int err = 0;

	while (!p->ended && !err)
		err = sockets_await(set);
	if (p->ended)
		return 0;
	if (p->s)
		p->s->under_way--;
	p->s = NULL;
	/*
	 * Who stands still may carry it out when he goes on, with what is in its room then: so the
	 * place is nobody else's until that is told. Else nothing comes any more.
	 */
	p->quiet = true;
	if (err != -ETIMEDOUT)
		place_put(set, p);
	return err;
}

/* The engine takes what is in the ring in a moment, unless it waits for what this user has. */
static int submit(struct rgate_sockets *set, struct place *p, struct rgate_request *q)
{
	unsigned int tries;
	int n, err;

	for (tries = 0; (err = place_submit(set, p, q)) == -EAGAIN && tries < FULL_MS; tries++) {
		n = sockets_take(set, 1);
		if (n < 0 && n != -EINTR)
			return n;
	}
	return err;
}

/* Nothing is waited for any more, and so nothing asked but what closes */
static bool is_over(const struct rgate_sockets *set)
{
	return set->until && rgate_clock_now(CLOCK_MONOTONIC) >= set->until;
}

int place_ask(struct rgate_sockets *set, struct place *p, struct rgate_request *q)
{
	int err = is_over(set) ? -ETIMEDOUT : submit(set, p, q);

	if (err)
		place_put(set, p);
	return err ? err : wait_for(set, p);
}

static struct place *place_for(struct rgate_socket *s)
{
	struct place *p = place_get(s->set);

	if (p)
		p->s = s;
	return p;
}

/* @room: bytes that the request names of the place's room. The result; @out: copied from there */
static int call(struct rgate_socket *s, struct rgate_request *q, const void *in, void *out,
		uint32_t room)
{
	struct place *p = place_for(s);
	int result;

	if (!p)
		return -EAGAIN;
	q->handle = s->handle;
	if (room) {
		q->off = place_off(s->set, p);
		q->len = room;
	}
	if (in)
		memcpy(place_room(s->set, p), in, room);
	result = place_ask(s->set, p, q);
	if (result)
		return result;
	result = p->result;
	if (out && result >= 0)
		memcpy(out, place_room(s->set, p), room);
	place_put(s->set, p);
	return result;
}

/* ---- Sockets ---- */

int rgate_socket_open(struct rgate_sockets *set, struct rgate_socket **out, uint32_t family,
		      uint32_t type)
{
	struct rgate_request q = {
		.op = RGATE_REQ_SOCKET_OPEN, .a0 = RGATE_SOCKET_A0((uint16_t)family, type),
	};
	struct rgate_socket *s;
	struct place *p;
	int err;

	if (family > UINT16_MAX || type > UINT16_MAX)
		return -EINVAL;
	s = socket_make(set, type);
	if (!s)
		return -ENOMEM;
	p = place_get(set);
	err = p ? place_ask(set, p, &q) : -EAGAIN;
	if (err)
		goto forget;
	err = p->result;
	s->handle = (uint32_t)p->value;
	place_put(set, p);
	if (err)
		goto forget;
	*out = s;
	return 0;
forget:
	socket_forget(s);
	return err;
}

/* Ends that are to come, or have come, are nobody's any more. */
/* NOLINTNEXTLINE(misc-no-recursion): what was accepted and not taken has accepted nothing */
static void silence(struct rgate_socket *s)
{
	struct rgate_sockets *set = s->set;
	struct place *p;

	for (p = set->place; p < set->place + set->used; p++) {
		if (p->s != s || !p->what || p->quiet)
			continue;
		if (p->busy) {
			p->quiet = true;
		} else if (p->ended) {
			if (p->made)
				(void)rgate_socket_close(p->made);
			p->ended = false;
			p->s = NULL;
			place_put(set, p);
		}
	}
}

/* What is under way, or has ended, is of no socket then. */
static void forget(struct rgate_socket *s)
{
	struct rgate_sockets *set = s->set;
	struct place *p;

	for (p = set->place; p < set->place + set->used; p++) {
		if (p->s == s)
			p->s = NULL;
		if (p->of == s)
			p->of = NULL;
	}
	socket_forget(s);
}

static bool is_quiet(const struct place *p)
{
	return p->busy && p->quiet && !p->s;
}

static bool any_quiet(const struct rgate_sockets *set)
{
	const struct place *p;

	for (p = set->place; p < set->place + set->used; p++)
		if (is_quiet(p))
			return true;
	return false;
}

/* Those that tell nobody of their end may have taken all places: they come back by themselves. */
static int get_place(struct rgate_sockets *set, struct place **out)
{
	int err;

	while (!(*out = place_get(set))) {
		if (!any_quiet(set))
			return -EAGAIN;
		err = sockets_await(set);
		if (err)
			return err;
	}
	return 0;
}

/* The ring has room when the engine has taken what is in it. */
static int submit_close(struct rgate_sockets *set, struct place *p, struct rgate_request *q)
{
	int n, err;

	while ((err = place_submit(set, p, q)) == -EAGAIN) {
		n = sockets_pause(set);
		if (n)
			return n;
	}
	/* Who closes without waiting hears of nothing that would say that this wait is over. */
	set->silent_ns = 0;
	return err;
}

static int close_once(struct rgate_sockets *set, struct rgate_request *q)
{
	struct place *p = place_kept(set);
	int err = submit_close(set, p, q);

	if (!err)
		err = wait_for(set, p);
	if (!err)
		err = p->result;
	place_put(set, p);
	return err;
}

/*
 * Closes it at the service, until that has room for the request: a gateway that has none has some
 * when something has ended. That may be while it answers, and is not waited for then: perhaps
 * nothing else ever ends. -ENOBUFS: there is nothing that could. @over: out, the session's end
 */
static int close_there(struct rgate_socket *s, struct rgate_request *q, int *over)
{
	struct rgate_sockets *set = s->set;
	uint64_t before;
	int err;

	for (;;) {
		before = set->heard;
		err = close_once(set, q);
		if (err != -ENOBUFS)
			return err;
		if (set->heard - before > 1)
			continue;
		if (!s->under_way && !any_quiet(set))
			return err;
		*over = sockets_await(set);
		if (*over)
			return *over;
	}
}

/* NOLINTNEXTLINE(misc-no-recursion): see silence() */
int rgate_socket_close(struct rgate_socket *s)
{
	struct rgate_request q = { .op = RGATE_REQ_SOCKET_CLOSE };
	struct rgate_sockets *set;
	int err, over = 0;

	if (!s)
		return 0;
	set = s->set;
	silence(s);
	q.deadline_us = deadline_of(s);
	q.handle = s->handle;
	err = close_there(s, &q, &over);
	/* What it had under way ends now; what the session took with it is told by nobody. */
	while (s->under_way && !over)
		over = sockets_await(set);
	forget(s);
	return err;
}

/* ---- Without waiting ---- */

int socket_setopt_quiet(struct rgate_socket *s, uint32_t option, const void *value, uint32_t len)
{
	struct rgate_request q = {
		.op = RGATE_REQ_SOCKET_SETOPT, .a0 = option, .handle = s->handle, .len = len,
	};
	struct place *p;
	int err = len <= PLACE_ROOM ? get_place(s->set, &p) : -EINVAL;

	if (err)
		return err;
	memcpy(place_room(s->set, p), value, len);
	q.off = place_off(s->set, p);
	p->quiet = true;
	p->of = s;
	err = submit(s->set, p, &q);
	if (err)
		place_put(s->set, p);
	return err;
}

int socket_close_quiet(struct rgate_socket *s)
{
	struct rgate_request q = { .op = RGATE_REQ_SOCKET_CLOSE, .handle = s->handle };
	struct rgate_sockets *set = s->set;
	struct place *p;
	int err = get_place(set, &p);

	if (err)
		return rgate_socket_close(s);
	silence(s);
	p->quiet = true;
	err = submit_close(set, p, &q);
	if (err)
		place_put(set, p);
	forget(s);
	return err;
}

/* 1 and the node that carries out what is asked of @service, 0: of no cluster; -errno */
static int64_t node_of(struct rgate_sockets *set, uint32_t service)
{
	struct rgate_request q = {
		.op = RGATE_REQ_PROBE, .a0 = service, .a1 = RGATE_PROBE_NODE,
	};
	struct place *p = place_get(set);
	int64_t ret = p ? place_ask(set, p, &q) : -EAGAIN;

	if (ret)
		return ret;
	ret = p->result ? p->result : (int64_t)(p->value & INT32_MAX);
	place_put(set, p);
	return ret;
}

/* The daemon's own are where it tells the time. */
bool sockets_are_here(struct rgate_sockets *set)
{
	const int64_t node = node_of(set, RGATE_REQ_SOCKET);

	return node >= 0 && node == node_of(set, RGATE_REQ_CORE);
}

bool socket_is_lost(const struct rgate_socket *s)
{
	return s->lost;
}

int sockets_settle(struct rgate_sockets *set)
{
	int err = 0;

	while (!err && any_quiet(set))
		err = sockets_await(set);
	return err;
}

bool sockets_settled(const struct rgate_sockets *set)
{
	return !any_quiet(set);
}

void sockets_end_by(struct rgate_sockets *set, uint64_t ns)
{
	set->until = ns;
}

void rgate_socket_timeout(struct rgate_socket *s, uint32_t ms)
{
	s->timeout_ms = ms;
}

int rgate_socket_bind(struct rgate_socket *s, const struct rgate_socket_addr *addr)
{
	struct rgate_request q = { .op = RGATE_REQ_SOCKET_BIND };

	return call(s, &q, addr, NULL, ADDR_LEN);
}

int rgate_socket_listen(struct rgate_socket *s, int backlog)
{
	struct rgate_request q = {
		.op = RGATE_REQ_SOCKET_LISTEN, .a0 = backlog > 0 ? (uint64_t)backlog : 0,
	};

	return call(s, &q, NULL, NULL, 0);
}

int rgate_socket_connect(struct rgate_socket *s, const struct rgate_socket_addr *addr)
{
	struct rgate_request q = {
		.op = RGATE_REQ_SOCKET_CONNECT, .deadline_us = deadline_of(s),
	};

	return call(s, &q, addr, NULL, ADDR_LEN);
}

int rgate_socket_accept(struct rgate_socket *s, struct rgate_socket **accepted,
			struct rgate_socket_addr *peer)
{
	struct rgate_request q = {
		.op = RGATE_REQ_SOCKET_ACCEPT, .deadline_us = deadline_of(s),
		.handle = s->handle, .len = ADDR_LEN,
	};
	struct rgate_socket *made = socket_make(s->set, s->type);
	struct place *p = made ? place_for(s) : NULL;
	int err = made ? -EAGAIN : -ENOMEM;

	if (p) {
		q.off = place_off(s->set, p);
		err = place_ask(s->set, p, &q);
	}
	if (!p || err)
		goto forget;
	err = p->result;
	made->handle = (uint32_t)p->value;
	if (!err && peer)
		memcpy(peer, place_room(s->set, p), sizeof(*peer));
	place_put(s->set, p);
	if (err)
		goto forget;
	*accepted = made;
	return 0;
forget:
	if (made)
		socket_forget(made);
	return err;
}

int rgate_socket_shutdown(struct rgate_socket *s, uint32_t how)
{
	struct rgate_request q = {
		.op = RGATE_REQ_SOCKET_SHUTDOWN, .a0 = how, .deadline_us = deadline_of(s),
	};

	return call(s, &q, NULL, NULL, 0);
}

int rgate_socket_name(struct rgate_socket *s, struct rgate_socket_addr *addr)
{
	struct rgate_request q = { .op = RGATE_REQ_SOCKET_NAME };

	return call(s, &q, NULL, addr, ADDR_LEN);
}

int rgate_socket_peer(struct rgate_socket *s, struct rgate_socket_addr *addr)
{
	struct rgate_request q = { .op = RGATE_REQ_SOCKET_PEER };

	return call(s, &q, NULL, addr, ADDR_LEN);
}

int rgate_socket_setopt(struct rgate_socket *s, uint32_t option, const void *value, uint32_t len)
{
	struct rgate_request q = { .op = RGATE_REQ_SOCKET_SETOPT, .a0 = option };

	return len && len <= PLACE_ROOM ? call(s, &q, value, NULL, len) : -EINVAL;
}

int rgate_socket_getopt(struct rgate_socket *s, uint32_t option, void *value, uint32_t len)
{
	struct rgate_request q = { .op = RGATE_REQ_SOCKET_GETOPT, .a0 = option };
	unsigned char room[PLACE_ROOM];
	int n;

	if (!len || len > PLACE_ROOM)
		return -EINVAL;
	n = call(s, &q, NULL, room, len);
	if (n > (int)len)
		return -EPROTO;
	if (n > 0)
		memcpy(value, room, (size_t)n);
	return n;
}

/* ---- Data ---- */

static int data(struct rgate_socket *s, struct rgate_request *q, const void *buf, uint32_t len)
{
	uint64_t off;
	int err = sockets_off(s->set, buf, len, &off);

	q->len = len;
	q->deadline_us = deadline_of(s);
	q->handle = s->handle;
	q->off = off;
	return err;
}

int rgate_socket_send(struct rgate_socket *s, const void *buf, uint32_t len, uint32_t flags)
{
	struct rgate_request q = { .op = RGATE_REQ_SOCKET_SEND, .a0 = flags };
	int err = data(s, &q, buf, len);

	return err ? err : call(s, &q, NULL, NULL, 0);
}

int rgate_socket_recv(struct rgate_socket *s, void *buf, uint32_t len, uint32_t flags)
{
	struct rgate_request q = { .op = RGATE_REQ_SOCKET_RECV, .a0 = flags };
	int err = data(s, &q, buf, len);

	return err ? err : call(s, &q, NULL, NULL, 0);
}

/* With an address in the place's room */
static int data_with(struct rgate_socket *s, struct rgate_request *q,
		     const struct rgate_socket_addr *to, struct rgate_socket_addr *from,
		     uint32_t *full)
{
	struct place *p = place_for(s);
	int result;

	if (!p)
		return -EAGAIN;
	q->a1 = place_off(s->set, p);
	if (to)
		memcpy(place_room(s->set, p), to, sizeof(*to));
	result = place_ask(s->set, p, q);
	if (result)
		return result;
	result = p->result;
	if (result >= 0 && from)
		memcpy(from, place_room(s->set, p), sizeof(*from));
	if (result >= 0 && full)
		*full = (uint32_t)p->value;
	place_put(s->set, p);
	return result;
}

int rgate_socket_sendto(struct rgate_socket *s, const void *buf, uint32_t len, uint32_t flags,
			const struct rgate_socket_addr *addr)
{
	struct rgate_request q = { .op = RGATE_REQ_SOCKET_SENDTO, .a0 = flags };
	int err = data(s, &q, buf, len);

	return err ? err : data_with(s, &q, addr, NULL, NULL);
}

int rgate_socket_recvfrom(struct rgate_socket *s, void *buf, uint32_t len, uint32_t flags,
			  struct rgate_socket_addr *addr, uint32_t *full)
{
	struct rgate_request q = { .op = RGATE_REQ_SOCKET_RECVFROM, .a0 = flags };
	int err = data(s, &q, buf, len);

	return err ? err : data_with(s, &q, NULL, addr, full);
}

int rgate_socket_poll(struct rgate_socket *s, uint32_t events, int timeout_ms)
{
	struct rgate_request q = {
		.op = RGATE_REQ_SOCKET_POLL, .a0 = events, .handle = s->handle,
		.a1 = timeout_ms ? 0 : RGATE_SOCKET_NOW,
	};
	struct place *p = place_for(s);
	int result;

	if (!p)
		return -EAGAIN;
	if (timeout_ms > 0)
		q.deadline_us = timeout_ms < INT32_MAX / 1000 ? (uint32_t)timeout_ms * 1000 :
				UINT32_MAX;
	result = place_ask(s->set, p, &q);
	if (result)
		return result;
	result = p->result ? p->result : (int)p->value;
	place_put(s->set, p);
	return result == -ETIMEDOUT || result == -EAGAIN ? 0 : result;
}

/* ---- Addresses ---- */

int rgate_socket_addr_parse(const char *text, struct rgate_socket_addr *addr)
{
	const char *colon = strrchr(text, ':'), *s;
	char host[SOCKET_ADDR_TEXT];
	struct socket_host h;
	unsigned int bits;
	uint32_t port = 0;
	size_t n;

	if (!colon || !colon[1] || strchr(text, '/'))
		return -EINVAL;
	for (s = colon + 1; *s; s++) {
		if (*s < '0' || *s > '9')
			return -EINVAL;
		port = port * 10 + (uint32_t)(*s - '0');
		if (port > UINT16_MAX)
			return -EINVAL;
	}
	n = (size_t)(colon - text);
	if (*text == '[' && n > 2 && text[n - 1] == ']') {
		text++;
		n -= 2;
	} else if (memchr(text, ':', n)) {
		return -EINVAL;
	}
	if (!n || n >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = '\0';
	if (socket_host_parse(host, &h, &bits))
		return -EINVAL;
	memset(addr, 0, sizeof(*addr));
	addr->family = h.v6 ? RGATE_SOCKET_INET6 : RGATE_SOCKET_INET;
	addr->port = (uint16_t)port;
	memcpy(addr->addr, h.addr, h.v6 ? 16 : 4);
	return 0;
}

char *rgate_socket_addr_print(const struct rgate_socket_addr *addr, char *text, size_t len)
{
	char full[SOCKET_ADDR_TEXT];

	snprintf(text, len, "%s", socket_addr_text(addr, full));
	return text;
}
