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

	if (!board_may(sv->board, line_node(n->line), q->a.uid))
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

void memory_serve_question(struct memory_node *n, const void *msg, size_t len)
{
	unsigned char piece[MEMORY_PIECE];
	uint64_t answer[RGATE_HUB_MSG_MAX / sizeof(uint64_t)];
	struct memory_question q;
	struct memory_result r;
	int err;

	err = memory_question_get(&q, msg, len);
	if (err == -EPROTO || !line_take(n->line, q.number))
		return;
	r = (struct memory_result){ .number = q.number, .op = q.a.op, .err = err };
	if (!err)
		r.err = carry_out(n, &q, &r, piece);
	line_say(n->line, q.number, answer, memory_answer_put(answer, &r));
}
