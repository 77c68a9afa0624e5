// SPDX-License-Identifier: MIT OR GPL-2.0
/* A session at another node: whether it is still there, and that it ends there as well as here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate_priv.h"

#define KEPT_MOST	256U		/* of a node, which has fewer guests at once */
#define NO_REQUEST	UINT64_MAX	/* no serial of one: the node takes none that is so high */

/* ---- Who is whose ---- */

/* Addresses differ in no low bits. */
static uint64_t hash_of(const struct rgate_seat *seat)
{
	return (uint64_t)(uintptr_t)seat * 0x9e3779b97f4a7c15 >> 32;
}

void gate_caller_add(struct gate_caller *c)
{
	struct gate_service *sv = c->sv;

	c->id = ++sv->serial;
	list_add_tail(&sv->callers, &c->of_service);
	index_add(&sv->by_id, &c->by_id, c->id);
	index_add(&sv->by_seat, &c->by_seat, hash_of(c->seat));
}

struct gate_caller *gate_caller_of(const struct gate_service *sv, const struct rgate_seat *seat,
				   const struct gate_caller *last)
{
	struct link *const ring = index_at(&sv->by_seat, hash_of(seat)), *l;
	struct gate_caller *c;

	for (l = last ? last->by_seat.link.next : ring->next; l != ring; l = l->next) {
		c = container_of(l, struct gate_caller, by_seat.link);
		if (c->seat == seat)
			return c;
	}
	return NULL;
}

/* ---- A session ends ---- */

static void set_kept(struct gate_caller *c, bool kept)
{
	c->node->nkept += (uint32_t)kept - (uint32_t)c->kept;
	c->kept = kept;
}

static void free_caller(struct gate_caller *c)
{
	set_kept(c, false);
	list_del(&c->of_service);
	index_del(&c->sv->by_id, &c->by_id);
	free(c);
}

/* It is over, and is not told to the node just now: is that to be told later? */
static void settle(struct gate_caller *c)
{
	if (c->there && !c->sv->over && c->node->nkept < KEPT_MOST)
		set_kept(c, true);
	else
		free_caller(c);
}

static size_t leave_ask(struct errand *e, struct ask *a)
{
	const struct gate_caller *c = container_of(e, struct gate_caller, leave);
	struct gate_question q = { .kind = GATE_LEAVE, .number = a->number, .uid = c->uid,
				   .guest = c->id };

	e->more = false;
	return gate_question_put(c->sv->o.role, a->msg, &q);
}

static void leave_over(struct errand *e, int err)
{
	struct gate_caller *c = container_of(e, struct gate_caller, leave);

	c->leaving = false;
	if (!err || err == -ECONNRESET)
		gate_caller_unlend(c);
	/* A node that stood still may go on, with all that the session has there. */
	c->there = !c->sv->over && (err == -ENOTCONN || err == -ETIMEDOUT);
	if (!c->seat)
		settle(c);
}

static const struct errand_ops leave_ops = {
	.ask = leave_ask, .answer = gate_plain_answer, .over = leave_over,
};

/* The node is told, if it may know of it: over each new connection, until it has answered. */
static void leave(struct gate_caller *c)
{
	if (!c->there || c->leaving || c->sv->over)
		return;
	memset(&c->leave, 0, sizeof(c->leave));
	c->leaving = !errand_begin(c->node->errands, &c->leave, &leave_ops, c->uid);
	c->there = !c->leaving;
	if (c->leaving)
		set_kept(c, false);
}

void gate_ask_leave(struct gate_caller *c)
{
	c->seat = NULL;
	index_del(&c->sv->by_seat, &c->by_seat);
	if (c->probing)
		errand_end(&c->probe, 0);
	leave(c);
	if (!c->leaving)
		settle(c);
}

/* ---- The node has nothing of it ---- */

void gate_caller_lose(struct gate_caller *c, int err)
{
	unsigned int i;

	if (c->lost)
		return;
	c->lost = true;
	for (i = 0; i < GATE_TICKETS; i++)
		if (c->ticket[i])
			gate_wish_give_up(c->ticket[i], err);
	/* What it has there is of no use to it, but may be to others. */
	leave(c);
}

void gate_ask_lost(struct gate_service *sv, const struct gate_node *n, bool other)
{
	struct link *l, *next;
	struct gate_caller *c;

	for (l = sv->callers.next; l != &sv->callers; l = next) {
		c = container_of(l, struct gate_caller, of_service);
		next = l->next;
		if ((n && c->node != n) || !(c->there || sv->over))
			continue;
		c->there &= !other;
		if (c->seat)
			gate_caller_lose(c, -ECONNRESET);
		else if (!c->leaving && (other || sv->over))
			free_caller(c);
	}
}

/* ---- Another connection ---- */

static void ask_again(struct gate_caller *c)
{
	unsigned int i;

	for (i = 0; i < GATE_TICKETS; i++)
		if (c->ticket[i])
			gate_ask_again(c->ticket[i]);
}

/* Of no request: 0 if there is such a guest */
static size_t probe_ask(struct errand *e, struct ask *a)
{
	const struct gate_caller *c = container_of(e, struct gate_caller, probe);
	struct gate_question q = { .kind = GATE_CANCEL, .number = a->number, .uid = c->uid,
				   .guest = c->id, .serial = NO_REQUEST };

	e->more = false;
	return gate_question_put(c->sv->o.role, a->msg, &q);
}

static void probe_over(struct errand *e, int err)
{
	struct gate_caller *c = container_of(e, struct gate_caller, probe);

	c->probing = false;
	/* Without a connection it is asked over the next one. */
	if (err && err != -ENOTCONN)
		gate_caller_lose(c, -ECONNRESET);
	/* That may have been said before the last pause. */
	gate_caller_make_sure(c);
}

static const struct errand_ops probe_ops = {
	.ask = probe_ask, .answer = gate_plain_answer, .over = probe_over,
};

void gate_caller_make_sure(struct gate_caller *c)
{
	const struct gate_node *n = c->node;

	if (!c->unsure || !c->there || !c->seat || c->lost || c->probing)
		return;
	memset(&c->probe, 0, sizeof(c->probe));
	c->probing = !errand_begin(n->errands, &c->probe, &probe_ops, c->uid);
	c->unsure = !c->probing;
}

void gate_ask_up(struct gate_node *n)
{
	struct link *const all = &n->sv->callers;
	struct gate_caller *c;
	struct link *l;

	for (l = all->next; l != all; l = l->next) {
		c = container_of(l, struct gate_caller, of_service);
		if (c->node != n)
			continue;
		if (!c->seat || c->lost) {
			leave(c);
			continue;
		}
		/* What is asked again may be answered as it was before. */
		c->unsure = c->there || !list_empty(&c->queue);
		gate_caller_make_sure(c);
		ask_again(c);
	}
}
