// SPDX-License-Identifier: MIT OR GPL-2.0
#include "line.h"

#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "container.h"

#define SETTLE_MS	2000

struct place {
	struct ask ask;
	struct call call;
	line_over_fn over;	/* NULL: nobody waits for its answer */
	uint64_t asked_ns;
	bool busy;
};

struct line {
	struct rgate_hub *hub;
	uint32_t node;
	struct session session;
	struct xfer_list xfers;
	/* who asks */
	struct call_client calls;
	struct place places[CALL_PLACES];
	bool stalled;		/* messages wait for room */
	/* who answers */
	struct call_server asked;
	uint32_t unsaid;	/* bit N: the answer of place N is to be said */
};

RGATE_ASSERT(CALL_PLACES <= 32);

int line_create(struct line **out, struct rgate_hub *hub, uint32_t node)
{
	struct rgate_peer *peer = rgate_hub_peer(hub, node);
	struct line *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->hub = hub;
	l->node = node;
	session_init(&l->session, peer, 0, 0);
	xfer_list_init(&l->xfers, peer);
	err = call_client_init(&l->calls, &l->session, &l->xfers,
			       rgate_node_stage(rgate_hub_node(hub)));
	if (err) {
		free(l);
		return err;
	}
	*out = l;
	return 0;
}

void line_settle(struct line *l)
{
	xfer_settle(&l->xfers, SETTLE_MS);
}

void line_destroy(struct line *l)
{
	if (!l)
		return;
	line_settle(l);
	call_client_fini(&l->calls);
	free(l);
}

uint32_t line_node(const struct line *l)
{
	return l->node;
}

struct rgate_peer *line_peer(const struct line *l)
{
	return l->session.peer;
}

uint64_t line_process(const struct line *l)
{
	return l->session.incarnation;
}

bool line_is_up(const struct line *l)
{
	return l->session.up;
}

bool line_is_stalled(const struct line *l)
{
	return l->stalled || l->unsaid;
}

/* ---- The connection ---- */

static void goes_down(struct line *l)
{
	line_reap(l);
	call_down(&l->calls);
	/* They are asked for again, if somebody waits for them. */
	l->unsaid = 0;
}

/* It counts anew what it asks, and knows nothing of what the last one has asked. */
static void is_another(struct line *l)
{
	call_other(&l->calls);
	l->asked = (struct call_server){ .kept[0].number = 0 };
	l->unsaid = 0;
}

void line_look(struct line *l, line_news_fn news, void *ctx)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	enum session_news what;

	while ((what = session_look(&l->session, now)) != SESSION_SAME) {
		if (news)
			news(ctx, l->node, what);
		if (what == SESSION_DOWN)
			goes_down(l);
		else if (what == SESSION_OTHER)
			is_another(l);
	}
}

bool line_is_current(const struct line *l)
{
	return l->session.up && rgate_hub_epoch(l->hub, l->node) == l->session.epoch;
}

int line_post(struct line *l, struct xfer *x, struct rgate_op *op, xfer_over_fn fn)
{
	int err;

	if (!l->session.up)
		return -ENOTCONN;
	op->epoch = l->session.epoch;
	err = xfer_post(&l->xfers, x, op, 1, fn);
	if (err)
		return err;
	/* Some are over by now; of the others the hub tells. */
	line_reap(l);
	if (!xfer_list_empty(&l->xfers))
		rgate_hub_await(l->hub, l->node);
	return 0;
}

/* ---- Who asks ---- */

void line_reap(struct line *l)
{
	(void)xfer_reap(&l->xfers);
}

struct ask *line_open(struct line *l)
{
	struct place *p;

	for (p = l->places; p->busy; p++)
		if (p == &l->places[CALL_PLACES - 1])
			return NULL;
	/* One that nobody waits at may still have a message that leaves. */
	if (call_open(&l->calls, &p->call))
		return NULL;
	p->ask = (struct ask){ .number = p->call.number, .msg = p->call.msg };
	return &p->ask;
}

static void over(struct call *c, int err, const void *answer, size_t len)
{
	struct place *p = container_of(c, struct place, call);

	p->busy = false;
	if (p->over)
		p->over(&p->ask, err, answer, len);
}

void line_ask(struct ask *a, size_t len, bool repeat, line_over_fn fn)
{
	struct place *p = container_of(a, struct place, ask);

	p->busy = true;
	p->over = fn;
	call_ask(&p->call, len, repeat, over);
}

static bool leave(struct place *p)
{
	const bool asked = p->call.place->asked;

	p->over = NULL;
	call_leave(&p->call, over);
	return asked;
}

bool line_leave(struct line *l, const void *ctx)
{
	bool asked = false;
	struct place *p;

	for (p = l->places; p < &l->places[CALL_PLACES]; p++)
		if (p->busy && p->over && p->ask.ctx == ctx)
			asked |= leave(p);
	return asked;
}

void line_leave_all(struct line *l)
{
	struct place *p;

	for (p = l->places; p < &l->places[CALL_PLACES]; p++)
		if (p->busy && p->over)
			(void)leave(p);
}

/* No earlier than the message leaves: what waits for a connection is not late. */
static void note_time(struct line *l)
{
	uint64_t now = 0;
	struct place *p;

	for (p = l->places; p < &l->places[CALL_PLACES]; p++) {
		if (!p->busy || p->call.place->asked)
			continue;
		if (!now)
			now = rgate_clock_now(CLOCK_BOOTTIME);
		p->asked_ns = now;
	}
}

void line_send(struct line *l, bool waits)
{
	note_time(l);
	l->stalled = call_send(&l->calls);
	/* The end of what was posted makes room. */
	if (waits || !xfer_list_empty(&l->xfers))
		rgate_hub_await(l->hub, l->node);
}

uint64_t line_asked_ns(const struct ask *a)
{
	return container_of(a, const struct place, ask)->asked_ns;
}

bool line_answered(struct line *l, uint64_t number, const void *answer, size_t len)
{
	return call_answer(&l->calls, number, answer, len);
}

/* ---- Who answers ---- */

/* Of the place of @number; later, if there is no room just now */
static void say(struct line *l, uint64_t number, const void *answer, size_t len)
{
	const uint32_t bit = 1U << number % CALL_PLACES;

	if (rgate_hub_send(l->hub, l->node, answer, len) == -EAGAIN)
		l->unsaid |= bit;
	else
		l->unsaid &= ~bit;
}

bool line_take(struct line *l, uint64_t number)
{
	const void *kept = NULL;
	size_t len = 0;

	switch (call_take(&l->asked, number, &kept, &len)) {
	case CALL_FIRST:
		/* Who asks anew in a place does not wait for what was not said there. */
		l->unsaid &= ~(1U << number % CALL_PLACES);
		return true;
	case CALL_AGAIN:
		if (kept)
			say(l, number, kept, len);
		return false;
	default:
		return false;
	}
}

void line_say(struct line *l, uint64_t number, const void *answer, size_t len)
{
	/*
	 * The hub has told of an end before the next connection is used, but maybe not yet of that
	 * one: over it another process may be there, with a question of the same number.
	 */
	if (call_keep(&l->asked, number, answer, len) && line_is_up(l))
		say(l, number, answer, len);
}

bool line_tell(struct line *l, const void *msg, size_t len)
{
	return line_is_up(l) && !rgate_hub_send(l->hub, l->node, msg, len);
}

void line_say_again(struct line *l)
{
	const struct call_kept *k;
	unsigned int i;

	for (i = 0; l->unsaid && i < CALL_PLACES; i++) {
		k = &l->asked.kept[i];
		if (l->unsaid & 1U << i)
			say(l, k->number, k->answer, k->len);
	}
}
