// SPDX-License-Identifier: MIT OR GPL-2.0
#include "call.h"

#include <errno.h>
#include <string.h>

/*
 * Of this process, so that numbers grow in whatever object of it has the place: the other side
 * tells processes apart, by their incarnation, and not objects.
 */
static uint64_t last_number;

int call_client_init(struct call_client *cc, const struct session *session,
		     struct xfer_list *xfers, struct rgate_pool *stage)
{
	unsigned int i;

	memset(cc, 0, sizeof(*cc));
	cc->session = session;
	cc->xfers = xfers;
	cc->stage = stage;
	for (i = 0; i < CALL_PLACES; i++)
		cc->place[i].client = cc;
	return rgate_pool_alloc(stage, (size_t)CALL_PLACES * CALL_MSG_MAX, &cc->mem);
}

static void end(struct call_place *p, int err, const void *answer, size_t len)
{
	struct call *c = p->call;

	p->call = NULL;
	c->over(c, err, answer, len);
}

void call_client_fini(struct call_client *cc)
{
	unsigned int i;

	for (i = 0; i < CALL_PLACES; i++)
		if (cc->place[i].call && cc->place[i].len)
			end(&cc->place[i], -ECANCELED, NULL, 0);
	rgate_pool_free(cc->stage, cc->mem);
	cc->mem = NULL;
}

static void *message_of(const struct call_client *cc, const struct call_place *p)
{
	return (uint8_t *)cc->mem->addr + (size_t)(p - cc->place) * CALL_MSG_MAX;
}

int call_open(struct call_client *cc, struct call *c)
{
	struct call_place *p;
	uint64_t n;

	for (p = cc->place; p->call || p->xfer.under_way; p++)
		if (p == &cc->place[CALL_PLACES - 1])
			return -EAGAIN;
	n = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
	*c = (struct call){ .number = n * CALL_PLACES + (uint64_t)(p - cc->place),
			    .msg = message_of(cc, p), .place = p };
	p->call = c;
	p->len = 0;
	p->posted = p->asked = p->left = false;
	return 0;
}

void call_ask(struct call *c, size_t len, bool repeat, call_over_fn over)
{
	c->over = over;
	c->place->repeat = repeat;
	c->place->len = (uint32_t)len;
}

void call_leave(struct call *c, call_over_fn over)
{
	struct call_place *p = c->place;

	c->over = over;
	p->left = true;
	/* It was never asked over this connection, and neither is an answer to come over it. */
	if (!p->posted)
		end(p, -ECANCELED, NULL, 0);
}

/* The answer tells more: until then nothing depends on when the message has left. */
static void left(struct xfer *x, int err)
{
	(void)x;
	(void)err;
}

static int post(struct call_client *cc, struct call_place *p)
{
	struct rgate_sge sge = { message_of(cc, p), p->len, cc->mem->lkey };
	const struct rgate_op op = { .kind = RGATE_OP_SEND, .nsge = 1, .sge = &sge,
				     .epoch = cc->session->epoch };

	return xfer_post(cc->xfers, &p->xfer, &op, 1, left);
}

bool call_send(struct call_client *cc)
{
	struct call_place *p;
	bool more = false;

	for (p = cc->place; p < &cc->place[CALL_PLACES] && cc->session->up; p++) {
		if (!p->call || !p->len || p->posted)
			continue;
		if (post(cc, p))
			more = true;
		else
			p->posted = p->asked = true;
	}
	return more;
}

bool call_answer(struct call_client *cc, uint64_t number, const void *answer, size_t len)
{
	struct call_place *p = &cc->place[number % CALL_PLACES];

	if (!p->call || p->call->number != number || !p->posted)
		return false;
	end(p, 0, answer, len);
	return true;
}

void call_down(struct call_client *cc)
{
	struct call_place *p;

	for (p = cc->place; p < &cc->place[CALL_PLACES]; p++) {
		/* Its message is over, as all that was posted to that connection. */
		p->posted = false;
		/* The answer was to come over that connection, and writes nothing after it. */
		if (p->call && p->left)
			end(p, -ECANCELED, NULL, 0);
	}
}

void call_other(struct call_client *cc)
{
	struct call_place *p;

	for (p = cc->place; p < &cc->place[CALL_PLACES]; p++)
		if (p->call && p->asked && !p->repeat)
			end(p, -ECONNRESET, NULL, 0);
}

bool call_idle(const struct call_client *cc)
{
	const struct call_place *p;

	for (p = cc->place; p < &cc->place[CALL_PLACES]; p++)
		if (p->call || p->xfer.under_way)
			return false;
	return true;
}

enum call_asked call_take(struct call_server *cs, uint64_t number, const void **kept, size_t *len)
{
	struct call_kept *k = &cs->kept[number % CALL_PLACES];

	if (number < k->number)
		return CALL_OLD;
	if (number == k->number) {
		*kept = k->len ? k->answer : NULL;
		*len = k->len;
		return CALL_AGAIN;
	}
	k->number = number;
	k->len = 0;
	return CALL_FIRST;
}

bool call_keep(struct call_server *cs, uint64_t number, const void *answer, size_t len)
{
	struct call_kept *k = &cs->kept[number % CALL_PLACES];

	if (number != k->number || len > sizeof(k->answer))
		return false;
	memcpy(k->answer, answer, len);
	k->len = (uint32_t)len;
	return true;
}
