// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Requests that another node has to answer. Each is an errand; a long one takes several messages,
 * pieces, of which CALL_PLACES are under way to a node.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory_priv.h"

static bool has_bytes(enum memory_op op)
{
	return op == MEMORY_READ || op == MEMORY_WRITE;
}

/* Asked of another process of that node, it finds the region gone, or does no harm. */
static bool may_repeat(enum memory_op op)
{
	return op == MEMORY_OPEN || op == MEMORY_READ || op == MEMORY_FLUSH;
}

static struct task *task_of(struct errand *e)
{
	return container_of(e, struct task, errand);
}

/* Of the piece that begins there */
static uint32_t piece_len(const struct task *t, uint32_t off)
{
	return t->total - off < MEMORY_PIECE ? t->total - off : MEMORY_PIECE;
}

/* The piece's place in the whole is the question's word. */
static size_t ask_piece(struct errand *e, struct ask *a)
{
	struct task *t = task_of(e);
	struct memory_question q = t->q;
	const uint32_t len = piece_len(t, t->asked);

	a->word = t->asked;
	q.number = a->number;
	if (has_bytes(q.a.op)) {
		q.a.off += t->asked;
		q.a.len = len;
		q.a.data = (char *)q.a.data + t->asked;
	}
	t->asked += len;
	e->more = t->asked < t->total;
	return memory_question_put(a->msg, &q);
}

static int take_open(struct task *t, const struct memory_result *r)
{
	struct object *o = t->object;

	if (!r->region || !r->value || r->value > UINT32_MAX)
		return -EPROTO;
	o->id = r->region;
	o->len = r->value;
	t->value = o->len << 32 | o->handle;
	return 0;
}

/* What the node says is true or not, but nothing beyond what this piece asked for is written. */
static int take(struct task *t, uint32_t off, const struct memory_result *r)
{
	if (r->err)
		return r->err;
	if (r->op != t->q.a.op)
		return -EPROTO;
	switch (r->op) {
	case MEMORY_OPEN:
		return take_open(t, r);
	case MEMORY_READ:
		if (r->len != piece_len(t, off))
			return -EPROTO;
		memcpy((char *)t->q.a.data + off, r->data, r->len);
		return 0;
	case MEMORY_FETCH_ADD:
	case MEMORY_CMP_SWAP:
		t->value = r->value;
		return 0;
	default:
		return 0;
	}
}

static int answered(struct errand *e, struct ask *a, int err, const void *answer, size_t len)
{
	struct memory_result r;

	if (!err)
		err = memory_answer_get(&r, answer, len);
	return err ? err : take(task_of(e), (uint32_t)a->word, &r);
}

static void end_open(struct task *t, int result)
{
	struct object *o = t->object;

	if (!result) {
		o->kind = OBJECT_OPENED;
		return;
	}
	/* Its handle can be taken away in the engine's thread only. */
	o->kind = OBJECT_DEAD;
	list_add_tail(&t->node->sv->dead, &o->dead);
}

static void task_over(struct errand *e, int result)
{
	struct task *t = task_of(e);

	if (t->object)
		end_open(t, result);
	rgate_req_set_data(t->r, NULL);
	rgate_req_end(t->r, result, t->value);
	free(t);
}

static const struct errand_ops task_ops = {
	.ask = ask_piece, .answer = answered, .over = task_over,
};

void memory_ask_answer(struct memory_node *n, const void *msg, size_t len)
{
	struct memory_result r;

	if (!memory_answer_get(&r, msg, len))
		(void)line_answered(n->line, r.number, msg, len);
}

void memory_ask_pump(struct memory_node *n)
{
	line_reap(n->line);
	errands_pump(n->tasks);
	line_send(n->line, !errands_idle(n->tasks));
}

int memory_ask(struct memory_node *n, struct rgate_req *r, const struct memory_question *q,
	       struct object *o)
{
	struct task *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->node = n;
	t->r = r;
	t->q = *q;
	t->object = o;
	t->total = has_bytes(q->a.op) ? q->a.len : 1;
	t->errand.repeat = may_repeat(q->a.op);
	if (errand_begin(n->tasks, &t->errand, &task_ops, q->a.uid)) {
		free(t);
		return -ENOMEM;
	}
	rgate_req_set_data(r, t);
	memory_ask_pump(n);
	return RGATE_REQ_LATER;
}
