// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What other nodes ask. Nothing is kept for them but the last answer of each of their places:
 * a question has all that decides about it, and each one is decided anew.
 */
#include <errno.h>

#include "memory_priv.h"

static int open_for(struct memory_service *sv, const struct memory_question *q,
		    struct memory_result *r)
{
	const struct region *region;
	int err;

	err = regions_open(&sv->regions, q->a.uid, q->owner, q->name, q->rights, &region);
	if (err)
		return err;
	r->region = region->id;
	r->value = region->len;
	return 0;
}

static int carry_out(struct memory_node *n, struct memory_question *q, struct memory_result *r,
		     void *piece)
{
	struct memory_service *sv = n->sv;
	int err;

	if (!sv->o.may || !sv->o.may(sv->o.ctx, memory_node_id(n), q->a.uid))
		return -EACCES;
	if (q->a.op == MEMORY_OPEN)
		return open_for(sv, q, r);
	if (q->a.op == MEMORY_READ)
		q->a.data = piece;
	err = regions_access(&sv->regions, &q->a, &r->value);
	if (!err && q->a.op == MEMORY_READ) {
		r->data = piece;
		r->len = q->a.len;
	}
	return err;
}

/* Of the place of @number; later, if there is no room just now */
static void say(struct memory_node *n, uint64_t number, const void *msg, size_t len)
{
	const uint32_t bit = 1U << number % CALL_PLACES;

	if (rgate_hub_send(n->sv->o.hub, memory_node_id(n), msg, len) == -EAGAIN)
		n->unsaid |= bit;
	else
		n->unsaid &= ~bit;
}

void memory_serve_pump(struct memory_node *n)
{
	struct call_kept *k;
	unsigned int i;

	for (i = 0; n->unsaid && i < CALL_PLACES; i++) {
		k = &n->asked.kept[i];
		if (n->unsaid & 1U << i)
			say(n, k->number, k->answer, k->len);
	}
}

void memory_serve_question(struct memory_node *n, const void *msg, size_t len)
{
	unsigned char piece[MEMORY_PIECE];
	uint64_t answer[RGATE_HUB_MSG_MAX / sizeof(uint64_t)];
	struct memory_question q;
	const void *kept = NULL;
	struct memory_result r;
	size_t kept_len;
	int err;

	err = memory_question_get(&q, msg, len);
	if (err == -EPROTO)
		return;
	r = (struct memory_result){ .number = q.number, .op = q.a.op, .err = err };
	switch (call_take(&n->asked, q.number, &kept, &kept_len)) {
	case CALL_FIRST:
		if (!err)
			r.err = carry_out(n, &q, &r, piece);
		kept = answer;
		kept_len = memory_answer_put(answer, &r);
		call_keep(&n->asked, q.number, answer, kept_len);
		break;
	case CALL_AGAIN:
		break;
	case CALL_OLD:
		return;
	}
	if (kept)
		say(n, q.number, kept, kept_len);
}
