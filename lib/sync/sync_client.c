// SPDX-License-Identifier: MIT OR GPL-2.0
#include "sync_client.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "opts.h"
#include "sync_later.h"
#include "spin.h"

#define TIMEOUT_MS	5000
#define ROOM_LEN	512U
#define SPIN_US		200U	/* see spin_us() */
#define FLAGS		(RGATE_SYNC_AT | RGATE_SYNC_OF | RGATE_SYNC_EXISTS | RGATE_SYNC_ANYBODY)

/* Of all that are under way, and what cancels one of them, all but one come before that at most. */
static void keep(struct sync_client *sc, const struct rgate_completion *c)
{
	if (sync_later_keep(sc, c))
		return;
	if (sc->nkept < sizeof(sc->kept) / sizeof(sc->kept[0]))
		sc->kept[sc->nkept++] = *c;
}

int sync_client_take(struct sync_client *sc, uint64_t cookie, struct rgate_completion *c)
{
	unsigned int i;
	int n;

	for (i = 0; i < sc->nkept; i++) {
		if (sc->kept[i].cookie != cookie)
			continue;
		*c = sc->kept[i];
		sc->kept[i] = sc->kept[--sc->nkept];
		return 1;
	}
	while ((n = rgate_session_poll(sc->session, c, 1)) == 1 && c->cookie != cookie)
		keep(sc, c);
	return n;
}

static int left_ms(uint64_t until, int timeout_ms)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);

	if (timeout_ms < 0)
		return -1;
	return now < until ? (int)((until - now + 999999) / 1000000) : 0;
}

/* 1: it is there; 0: the time is over; or as rgate_session_wait() */
static int await(struct sync_client *sc, uint64_t cookie, int timeout_ms,
		 struct rgate_completion *c)
{
	const uint64_t until = rgate_clock_now(CLOCK_MONOTONIC) +
			       (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * 1000000;
	int ret;

	for (;;) {
		ret = sync_client_take(sc, cookie, c);
		if (ret)
			return ret;
		ret = rgate_session_wait(sc->session, left_ms(until, timeout_ms));
		if (ret != 1)
			return ret;
	}
}

/* 1: it is there; or why it never will be */
static int await_surely(struct sync_client *sc, uint64_t cookie, struct rgate_completion *c)
{
	int ret;

	do {
		ret = await(sc, cookie, -1, c);
	} while (ret == -EINTR);
	return ret;
}

/*
 * It ends soon, one way or the other: what it had done by then counts. What cancels it may end
 * after it, and a session that was lent is left with no completion that its owner knows nothing of.
 */
int sync_client_give_up(struct sync_client *sc, uint64_t cookie, struct rgate_completion *c)
{
	const uint64_t own = ++sc->cookie;
	struct rgate_completion end;
	int ret;

	ret = rgate_session_cancel(sc->session, cookie, own);
	if (!ret)
		ret = await_surely(sc, cookie, c);
	if (ret == 1)
		ret = await_surely(sc, own, &end);
	return ret;
}

int sync_client_start(struct sync_client *sc, struct rgate_request *q, unsigned int n)
{
	unsigned int i;
	int ret;

	for (i = 0; i < n; i++)
		q[i].cookie = ++sc->cookie;
	sc->nkept = 0;
	/* There are places for all: one other is under way at most. */
	ret = rgate_session_submit_many(sc->session, q, n);
	return ret < 0 ? ret : 0;
}

int sync_client_finish(struct sync_client *sc, uint64_t cookie, int timeout_ms, uint64_t *value)
{
	struct rgate_completion c;
	int ret, why = 0;

	do {
		ret = await(sc, cookie, timeout_ms, &c);
	} while (ret == -EINTR && timeout_ms == SYNC_CLIENT_SURE);
	if (!ret || ret == -EINTR) {
		why = ret ? ret : -ETIMEDOUT;
		ret = sync_client_give_up(sc, cookie, &c);
	}
	sync_later_settle(sc);
	if (ret < 0)
		return ret;
	if (value)
		*value = c.value;
	return c.result == -ECANCELED && why ? why : c.result;
}

int sync_client_ask(struct sync_client *sc, struct rgate_request q, int timeout_ms,
		    uint64_t *value)
{
	const int err = sync_client_start(sc, &q, 1);

	return err ? err : sync_client_finish(sc, q.cookie, timeout_ms, value);
}

/*
 * Who waits for a lock waits for all that are before it. With the usual limit several would go to
 * sleep, each hand-over would then take as long as to wake one, and so they would never poll again.
 */
static uint32_t spin_us(void)
{
	struct rgate_spin usual;

	return rgate_spin_init(&usual, 0) || !usual.most_ns ? 0 : SPIN_US;
}

int sync_client_connect(struct sync_client *sc, const struct rgate_sync_opts *opts)
{
	struct rgate_session_opts so = RGATE_OPTS(rgate_session_opts,
		.requests = RGATE_REQ_PLACES_MIN, .memory = SYNC_CLIENT_ROOM + ROOM_LEN);
	struct rgate_sync_opts o;
	uint32_t flags;
	char *mem;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (!err && (o.flags & ~(uint32_t)FLAGS || o.timeout_ms > INT32_MAX))
		err = -EINVAL;
	if (err)
		return err;
	memset(sc, 0, sizeof(*sc));
	so.path = o.path;
	so.where = o.where;
	so.spin_us = spin_us();
	sc->timeout_ms = o.timeout_ms ? (int)o.timeout_ms : TIMEOUT_MS;
	sc->open.a0 = o.flags & RGATE_SYNC_AT ? o.home : RGATE_SYNC_HERE;
	flags = o.flags & RGATE_SYNC_EXISTS ? 0 : RGATE_SYNC_CREATE;
	flags |= o.flags & RGATE_SYNC_ANYBODY ? RGATE_SYNC_OTHERS : 0;
	sc->open.a1 = RGATE_SYNC_OPEN_A1(o.flags & RGATE_SYNC_OF ? o.owner : geteuid(), flags);
	err = rgate_session_open(&sc->session, &so);
	/* ENOENT is a lock that is not there. */
	if (err)
		return err == -ENOENT ? -ECONNREFUSED : err;
	mem = rgate_session_memory(sc->session, NULL);
	sc->place = (void *)mem;
	sc->room = mem + SYNC_CLIENT_ROOM;
	return 0;
}

static int open_it(struct sync_client *sc)
{
	uint64_t value;
	int err;

	err = sync_client_ask(sc, sc->open, sc->timeout_ms, &value);
	if (!err)
		sc->handle = (uint32_t)value;
	return err;
}

int sync_client_open(struct sync_client *sc, const char *name, uint32_t op, uint32_t members,
		     const struct rgate_sync_opts *opts)
{
	int err;

	if (!name || strlen(name) > RGATE_SYNC_NAME_MAX)
		return -EINVAL;
	err = sync_client_connect(sc, opts);
	if (err)
		return err;
	memcpy(sc->place->name, name, strlen(name) + 1);
	sc->place->members = members;
	sc->open.op = (__u16)op;
	sc->open.len = sizeof(*sc->place);
	err = open_it(sc);
	if (err)
		rgate_session_close(sc->session);
	return err;
}

int sync_client_again(struct sync_client *sc, uint32_t close_op)
{
	const struct rgate_request q = { .op = (__u16)close_op, .handle = sc->handle };

	/* What is closed goes on without being waited for: that handle is nothing any more. */
	if (sc->handle)
		(void)sync_client_ask(sc, q, sc->timeout_ms, NULL);
	sc->handle = 0;
	return open_it(sc);
}

void sync_client_close(struct sync_client *sc, uint32_t op)
{
	const struct rgate_request q = { .op = (__u16)op, .handle = sc->handle };

	/* A session that ends first would be a death. */
	if (sc->handle)
		(void)sync_client_ask(sc, q, SYNC_CLIENT_SURE, NULL);
	rgate_session_close(sc->session);
}
