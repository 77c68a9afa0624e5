// SPDX-License-Identifier: MIT OR GPL-2.0
#include "errand.h"

#include <errno.h>
#include <stdlib.h>

#include "clock.h"

/* Who has errands, as long as there are some */
struct errand_user {
	struct link of_line;
	struct link turn;	/* of the line, if he has ready errands; else in no list */
	struct link ready;	/* errands */
	uid_t uid;
	uint32_t errands;
};

struct errands {
	struct line *line;
	clockid_t clock;
	uint64_t silence_ns;
	struct link waiting;
	struct link users, turns;
};

int errands_create(struct errands **out, struct line *line, clockid_t clock, uint64_t silence_ns)
{
	struct errands *es = calloc(1, sizeof(*es));

	if (!es)
		return -ENOMEM;
	es->line = line;
	es->clock = clock;
	es->silence_ns = silence_ns;
	list_init(&es->waiting);
	list_init(&es->users);
	list_init(&es->turns);
	*out = es;
	return 0;
}

void errands_destroy(struct errands *es)
{
	if (!es)
		return;
	errands_end(es, -ECANCELED);
	free(es);
}

bool errands_idle(const struct errands *es)
{
	return list_empty(&es->waiting);
}

/* ---- Users ---- */

static struct errand_user *user_get(struct errands *es, uid_t uid)
{
	struct errand_user *u;
	struct link *l;

	for (l = es->users.next; l != &es->users; l = l->next) {
		u = container_of(l, struct errand_user, of_line);
		if (u->uid == uid)
			return u;
	}
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	list_init(&u->turn);
	list_init(&u->ready);
	list_add_tail(&es->users, &u->of_line);
	return u;
}

static void user_put(struct errand_user *u)
{
	if (--u->errands)
		return;
	list_del(&u->of_line);
	list_del(&u->turn);
	free(u);
}

/* Last in its line, and its user in his; if he has a place there he keeps it. */
static void has_more(struct errand *e)
{
	list_add_tail(&e->user->ready, &e->ready);
	if (list_empty(&e->user->turn))
		list_add_tail(&e->of->turns, &e->user->turn);
}

static struct errand *next_errand(struct errands *es)
{
	struct errand_user *u;

	while (!list_empty(&es->turns)) {
		u = container_of(es->turns.next, struct errand_user, turn);
		if (!list_empty(&u->ready))
			return container_of(u->ready.next, struct errand, ready);
		/* What he had to ask has ended. */
		list_del(&u->turn);
	}
	return NULL;
}

/* ---- Begin and end ---- */

/* Last in the line of those that are given up */
static void heard(struct errand *e)
{
	e->due = rgate_clock_now(e->of->clock) + e->of->silence_ns;
	list_del(&e->waiting);
	list_add_tail(&e->of->waiting, &e->waiting);
}

int errand_begin(struct errands *es, struct errand *e, const struct errand_ops *ops, uid_t uid)
{
	struct errand_user *u = user_get(es, uid);

	if (!u)
		return -ENOMEM;
	u->errands++;
	e->of = es;
	e->user = u;
	e->ops = ops;
	e->more = true;
	list_init(&e->waiting);
	list_init(&e->ready);
	has_more(e);
	heard(e);
	return 0;
}

/* Answers that still come find nobody; their places are taken until then. */
static void leave(struct errand *e)
{
	if (e->under_way && line_leave(e->of->line, e))
		e->touched = true;
	e->under_way = 0;
}

static void finish(struct errand *e, int err)
{
	list_del(&e->waiting);
	list_del(&e->ready);
	user_put(e->user);
	e->ops->over(e, err);
}

void errand_end(struct errand *e, int result)
{
	leave(e);
	if (!e->answering) {
		finish(e, result);
		return;
	}
	if (!e->err)
		e->err = result;
	e->more = false;
	list_del(&e->ready);
}

void errands_end(struct errands *es, int result)
{
	struct link *l = es->waiting.next;
	struct errand *e;

	while (l != &es->waiting) {
		e = container_of(l, struct errand, waiting);
		/* An end may bring another one's, but for the one that is being answered. */
		l = e->answering ? l->next : NULL;
		errand_end(e, result);
		if (!l)
			l = es->waiting.next;
	}
}

uint64_t errands_expire(struct errands *es, uint64_t now)
{
	struct errand *e;

	while (!list_empty(&es->waiting)) {
		e = container_of(es->waiting.next, struct errand, waiting);
		if (e->due > now)
			return e->due - now;
		leave(e);
		/* What was never asked was not done. */
		finish(e, e->touched ? -ETIMEDOUT : -ENOTCONN);
	}
	return UINT64_MAX;
}

/* ---- Questions and answers ---- */

static void answered(struct ask *a, int err, const void *answer, size_t len)
{
	struct errand *e = a->ctx;

	e->under_way--;
	e->touched = true;
	e->answering = true;
	err = e->ops->answer(e, a, err, answer, len);
	e->answering = false;
	if (err && !e->err) {
		e->err = err;
		list_del(&e->ready);
	}
	if (!e->under_way && (e->err || !e->more)) {
		finish(e, e->err);
	} else {
		heard(e);
		/* The next question may be one that this answer brought up. */
		if (e->more && !e->err && list_empty(&e->ready))
			has_more(e);
	}
}

static void ask(struct errand *e, struct ask *a)
{
	struct errand_user *u = e->user;

	a->ctx = e;
	line_ask(a, e->ops->ask(e, a), e->repeat, answered);
	e->under_way++;
	list_del(&e->ready);
	list_del(&u->turn);
	if (e->more)
		has_more(e);
	else if (!list_empty(&u->ready))
		list_add_tail(&e->of->turns, &u->turn);
}

void errands_pump(struct errands *es)
{
	struct errand *e;
	struct ask *a;

	while ((e = next_errand(es))) {
		a = line_open(es->line);
		if (!a)
			break;
		ask(e, a);
	}
}
