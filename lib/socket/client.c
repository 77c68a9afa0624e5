// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client_priv.h"
#include "client_quiet.h"
#include "clock.h"
#include "opts.h"

#define MEMORY		(1ULL << 20)
#define TAKE		32U
#define ASK_MS		50	/* between questions whether it is enough */
#define COOKIE_CANCEL	UINT64_MAX	/* of requests whose end is nobody's */

/* ---- Places ---- */

struct place *place_get(struct rgate_sockets *set)
{
	struct place *p;

	if (!list_empty(&set->free)) {
		p = container_of(set->free.next, struct place, link);
		list_del(&p->link);
	} else if (set->used < set->nplaces) {
		p = &set->place[set->used++];
		list_init(&p->link);
	} else {
		return NULL;
	}
	p->generation++;
	return p;
}

struct place *place_kept(struct rgate_sockets *set)
{
	struct place *p = &set->place[set->nplaces];

	p->generation++;
	return p;
}

void place_put(struct rgate_sockets *set, struct place *p)
{
	p->s = p->made = p->of = NULL;
	p->what = 0;
	p->busy = p->ended = p->quiet = p->has_addr = false;
	p->cookie = p->value = 0;
	p->result = 0;
	p->room = 0;
	list_del(&p->link);
	/* In front: as few as possible have memory of their own. */
	if (p < set->place + set->nplaces)
		list_add_tail(set->free.next, &p->link);
}

uint64_t place_off(const struct rgate_sockets *set, const struct place *p)
{
	return set->user_len + (uint64_t)(p - set->place) * PLACE_ROOM;
}

void *place_room(const struct rgate_sockets *set, const struct place *p)
{
	return set->mem + place_off(set, p);
}

static uint64_t cookie_of(const struct rgate_sockets *set, const struct place *p)
{
	return (uint64_t)p->generation << 32 | (uint64_t)(p - set->place);
}

int place_submit(struct rgate_sockets *set, struct place *p, struct rgate_request *q)
{
	int err;

	q->cookie = cookie_of(set, p);
	err = rgate_session_submit(set->session, q);
	if (err)
		return err;
	p->busy = true;
	if (p->s)
		p->s->under_way++;
	return 0;
}

/* ---- Sockets ---- */

struct rgate_socket *socket_make(struct rgate_sockets *set, uint32_t type)
{
	struct rgate_socket *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->set = set;
	s->type = type;
	list_add_tail(&set->all, &s->all);
	return s;
}

void socket_forget(struct rgate_socket *s)
{
	list_del(&s->all);
	free(s);
}

/* ---- How things end ---- */

/* Nobody will know of who was accepted. */
static void close_unwanted(struct rgate_sockets *set, uint32_t handle)
{
	struct rgate_request q = {
		.op = RGATE_REQ_SOCKET_CLOSE, .handle = handle, .cookie = COOKIE_CANCEL,
	};

	(void)rgate_session_submit(set->session, &q);
}

static void end_accept(struct rgate_sockets *set, struct place *p)
{
	if (p->result < 0 || p->quiet) {
		if (p->result >= 0)
			close_unwanted(set, (uint32_t)p->value);
		socket_forget(p->made);
		p->made = NULL;
		return;
	}
	p->made->handle = (uint32_t)p->value;
	p->value = 0;
}

static void end_place(struct rgate_sockets *set, const struct rgate_completion *c)
{
	const uint32_t number = (uint32_t)c->cookie;
	struct place *p;

	/* What is no place's of these days is nobody's: a cancelling, or a lie. */
	if (number > set->nplaces)
		return;
	p = &set->place[number];
	if (!p->busy || c->cookie >> 32 != p->generation)
		return;
	p->busy = false;
	p->ended = true;
	p->result = c->result;
	p->value = c->value;
	if (p->s)
		p->s->under_way--;
	/* No option of a socket that is there has this error. */
	if (p->of)
		p->of->lost |= p->result == -ECONNRESET;
	if (p->made)
		end_accept(set, p);
	if (p->quiet)
		place_put(set, p);
	else if (p->what)
		list_add_tail(&set->ended, &p->link);
}

int sockets_take(struct rgate_sockets *set, int timeout_ms)
{
	struct rgate_completion c[TAKE];
	int i, n;

	n = rgate_session_poll(set->session, c, TAKE);
	if (!n && timeout_ms) {
		n = rgate_session_wait(set->session, timeout_ms);
		if (n > 0)
			n = rgate_session_poll(set->session, c, TAKE);
	}
	for (i = 0; i < n; i++)
		end_place(set, &c[i]);
	set->heard += n > 0 ? (uint64_t)n : 0;
	return n > 0 ? 1 : n;
}

static int left_ms(uint64_t until)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);

	return now < until ? (int)((until - now) / 1000000) + 1 : 0;
}

/* Nothing has come: is that enough? */
static void ask_if_enough(struct rgate_sockets *set)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);

	if (!set->silent_ns)
		set->silent_ns = now;
	if (set->enough(set->enough_ctx, now - set->silent_ns))
		set->until = now;
}

/* For @most_ms at most; -1: as long as it takes */
static int await(struct rgate_sockets *set, int most_ms)
{
	const int left = set->until ? left_ms(set->until) : -1;
	const int most = set->enough && most_ms < 0 ? ASK_MS : most_ms;
	const int ms = most < 0 || (left >= 0 && left < most) ? left : most;
	const int n = sockets_take(set, ms);

	if (n > 0)
		set->silent_ns = 0;
	if (!n && !left)
		return -ETIMEDOUT;
	if (!n && set->enough)
		ask_if_enough(set);
	return n < 0 && n != -EINTR ? n : 0;
}

int sockets_await(struct rgate_sockets *set)
{
	return await(set, -1);
}

int sockets_pause(struct rgate_sockets *set)
{
	return await(set, 1);
}

/* ---- Sets ---- */

static uint32_t places_of(uint32_t wanted)
{
	uint32_t n = RGATE_REQ_PLACES_MIN;

	if (!wanted)
		return RGATE_REQ_PLACES_DEFAULT;
	while (n < wanted && n < RGATE_REQ_PLACES_MAX)
		n *= 2;
	return n;
}

static int open_session(struct rgate_sockets *set, const struct rgate_sockets_opts *o)
{
	/* However much is under way, what closes a socket, or cancels, has a completion. */
	struct rgate_session_opts so = RGATE_OPTS(rgate_session_opts, .path = o->path,
		.where = o->where, .requests = set->nplaces, .spin_us = o->spin_us,
		.completions = set->nplaces < RGATE_REQ_PLACES_MAX ? set->nplaces * 2 :
			       RGATE_REQ_PLACES_MAX);
	uint64_t room = (set->nplaces + 1ULL) * PLACE_ROOM;
	int err;

	so.memory = set->user_len + room;
	err = rgate_session_open(&set->session, &so);
	if (!err)
		set->mem = rgate_session_memory(set->session, NULL);
	return err;
}

/* -EACCES: this user may not ask for sockets; -EOPNOTSUPP: there are none there */
static int probe(struct rgate_sockets *set)
{
	struct rgate_request q = { .op = RGATE_REQ_PROBE, .a0 = RGATE_REQ_SOCKET };
	struct place *p = place_get(set);
	int err;

	if (!p)
		return -EAGAIN;
	err = place_submit(set, p, &q);	/* the first: there is room */
	while (!err && !p->ended)
		err = sockets_await(set);
	if (err)
		return err;
	err = p->result == -ENOENT ? -EOPNOTSUPP : p->result;
	if (!err && !(p->value & 1))
		err = -EACCES;
	place_put(set, p);
	return err;
}

int sockets_open_asking(struct rgate_sockets **out, const struct rgate_sockets_opts *opts,
			bool (*enough)(void *ctx, uint64_t ns), void *ctx)
{
	struct rgate_sockets_opts o;
	struct rgate_sockets *set;
	uint32_t n;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (err)
		return err;
	n = places_of(o.requests);
	if (o.memory > UINT64_MAX / 2)
		return -EINVAL;
	set = calloc(1, sizeof(*set) + (n + 1ULL) * sizeof(set->place[0]));
	if (!set)
		return -ENOMEM;
	set->nplaces = n;
	set->enough = enough;
	set->enough_ctx = ctx;
	set->user_len = ((o.memory ? o.memory : MEMORY) + PLACE_ROOM - 1) & ~(PLACE_ROOM - 1ULL);
	list_init(&set->all);
	list_init(&set->free);
	list_init(&set->ended);
	list_init(&set->place[n].link);
	err = open_session(set, &o);
	if (err)
		goto free;
	err = probe(set);
	if (err)
		goto close;
	*out = set;
	return 0;
close:
	rgate_session_close(set->session);
free:
	free(set);
	return err;
}

int rgate_sockets_open(struct rgate_sockets **out, const struct rgate_sockets_opts *opts)
{
	return sockets_open_asking(out, opts, NULL, NULL);
}

void rgate_sockets_close(struct rgate_sockets *set)
{
	if (!set)
		return;
	rgate_session_close(set->session);
	while (!list_empty(&set->all))
		socket_forget(container_of(set->all.next, struct rgate_socket, all));
	free(set);
}

void *rgate_sockets_memory(const struct rgate_sockets *set, size_t *len)
{
	if (len)
		*len = set->user_len;
	return set->mem;
}

int rgate_sockets_fd(const struct rgate_sockets *set)
{
	return rgate_session_fd(set->session);
}

int rgate_sockets_arm(struct rgate_sockets *set)
{
	return list_empty(&set->ended) ? rgate_session_arm(set->session) : 1;
}

int sockets_off(const struct rgate_sockets *set, const void *buf, uint32_t len, uint64_t *off)
{
	const uintptr_t at = (uintptr_t)buf, base = (uintptr_t)set->mem;

	*off = 0;
	if (!len)
		return 0;
	if (at < base || at - base > set->user_len || len > set->user_len - (at - base))
		return -EFAULT;
	*off = at - base;
	return 0;
}

/* ---- Beginning ---- */

static int with_addr(struct rgate_sockets *set, struct place *p, const struct rgate_socket_io *io)
{
	if (!io->addr)
		return -EINVAL;
	memcpy(place_room(set, p), io->addr, sizeof(*io->addr));
	return 0;
}

static int data_request(struct rgate_socket *s, struct place *p, const struct rgate_socket_io *io,
			struct rgate_request *q)
{
	const bool send = io->what == RGATE_SOCKET_DO_SEND;
	uint64_t off;
	int err;

	q->op = send ? RGATE_REQ_SOCKET_SEND : RGATE_REQ_SOCKET_RECV;
	q->a0 = io->flags;
	q->len = io->len;
	if (send ? io->addr != NULL : s->type == RGATE_SOCKET_DGRAM) {
		q->op = send ? RGATE_REQ_SOCKET_SENDTO : RGATE_REQ_SOCKET_RECVFROM;
		q->a1 = place_off(s->set, p);
		p->has_addr = !send;
		if (send)
			(void)with_addr(s->set, p, io);
	}
	err = sockets_off(s->set, io->buf, io->len, &off);
	q->off = off;
	return err;
}

/* gcc 12's analyzer loses what the place has. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
static int accept_request(struct rgate_socket *s, struct place *p, struct rgate_request *q)
{
	p->made = socket_make(s->set, s->type);
	if (!p->made)
		return -ENOMEM;
	q->op = RGATE_REQ_SOCKET_ACCEPT;
	q->off = place_off(s->set, p);
	q->len = sizeof(struct rgate_socket_addr);
	p->has_addr = true;
	return 0;
}

static int make_request(struct rgate_socket *s, struct place *p, const struct rgate_socket_io *io,
			struct rgate_request *q)
{
	switch (io->what) {
	case RGATE_SOCKET_DO_SEND:
	case RGATE_SOCKET_DO_RECV:
		return data_request(s, p, io, q);
	case RGATE_SOCKET_DO_ACCEPT:
		return accept_request(s, p, q);
	case RGATE_SOCKET_DO_CONNECT:
		q->op = RGATE_REQ_SOCKET_CONNECT;
		q->off = place_off(s->set, p);
		q->len = sizeof(struct rgate_socket_addr);
		return with_addr(s->set, p, io);
	case RGATE_SOCKET_DO_POLL:
		q->op = RGATE_REQ_SOCKET_POLL;
		q->a0 = io->events;
		q->a1 = io->flags;
		return 0;
	case RGATE_SOCKET_DO_SHUTDOWN:
		q->op = RGATE_REQ_SOCKET_SHUTDOWN;
		q->a0 = io->events;
		return 0;
	default:
		return -EINVAL;
	}
}

int rgate_socket_begin(struct rgate_socket *s, const struct rgate_socket_io *io)
{
	struct rgate_request q = { .handle = s->handle };
	struct rgate_socket_io o;
	struct place *p;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), io);
	if (err)
		return err;
	p = place_get(s->set);
	if (!p)
		return -EAGAIN;
	p->s = s;
	p->what = o.what;
	p->cookie = o.cookie;
	q.deadline_us = o.deadline_us;
	err = make_request(s, p, &o, &q);
	if (!err)
		err = place_submit(s->set, p, &q);
	if (!err)
		return 0;
	if (p->made)
		socket_forget(p->made);
	place_put(s->set, p);
	return err;
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

static int cancel(struct rgate_sockets *set, const struct rgate_socket *s, uint64_t cookie)
{
	struct place *p;
	int n = 0, err;

	for (p = set->place; p < set->place + set->used; p++) {
		if (!p->busy || p->s != s || !p->what || p->cookie != cookie)
			continue;
		err = rgate_session_cancel(set->session, cookie_of(set, p), COOKIE_CANCEL);
		if (err)
			return err;
		n++;
	}
	return n;
}

int rgate_socket_cancel(struct rgate_socket *s, uint64_t cookie)
{
	return cancel(s->set, s, cookie);
}

int rgate_sockets_cancel(struct rgate_sockets *set, uint64_t cookie)
{
	return cancel(set, NULL, cookie);
}

static void tell(struct rgate_sockets *set, struct place *p, struct rgate_socket_end *end)
{
	struct rgate_socket_end e = {
		.socket = p->s, .cookie = p->cookie, .result = p->result, .what = p->what,
		.value = p->value, .accepted = p->made,
	};

	if (p->what == RGATE_SOCKET_DO_RESOLVE)
		e.result = place_found(p);
	if (p->has_addr && p->result >= 0)
		memcpy(&e.addr, place_room(set, p), sizeof(e.addr));
	(void)rgate_info_copy(end, &e, sizeof(e));
	place_put(set, p);
}

int rgate_sockets_next(struct rgate_sockets *set, struct rgate_socket_end *end, int timeout_ms)
{
	const uint64_t until = timeout_ms <= 0 ? 0 :
		rgate_clock_now(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000;
	int n;

	if (end->sz < sizeof(size_t))
		return -EINVAL;
	/* Ends of calls, and of what is nobody's, are none. */
	while (list_empty(&set->ended)) {
		n = sockets_take(set, timeout_ms);
		if (n <= 0)
			return n;
		timeout_ms = until ? left_ms(until) : timeout_ms;
	}
	tell(set, container_of(set->ended.next, struct place, link), end);
	return 1;
}
