// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Requests that another node has to answer. Each is a task; a long one takes several messages,
 * pieces, of which CALL_PLACES are under way to a node. Users have turns, and the tasks of each:
 * a piece each, so that a long one does not hold the others up, nor a user with many.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
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

int memory_ask_init(struct memory_node *n)
{
	list_init(&n->tasks);
	list_init(&n->askers);
	list_init(&n->turns);
	return call_client_init(&n->calls, &n->session, &n->xfers,
				rgate_node_stage(rgate_hub_node(n->sv->o.hub)));
}

void memory_ask_fini(struct memory_node *n)
{
	xfer_settle(&n->xfers, 2000);
	call_client_fini(&n->calls);
}

/* ---- Who asks ---- */

static struct asker *asker_get(struct memory_node *n, uint32_t uid)
{
	struct asker *a;
	struct link *l;

	for (l = n->askers.next; l != &n->askers; l = l->next) {
		a = container_of(l, struct asker, of_node);
		if (a->uid == uid)
			return a;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->uid = uid;
	list_init(&a->turn);
	list_init(&a->ready);
	list_add_tail(&n->askers, &a->of_node);
	return a;
}

static void asker_put(struct asker *a)
{
	if (a->tasks)
		return;
	list_del(&a->of_node);
	list_del(&a->turn);
	free(a);
}

/* Last in its line, and its user in his, if he has a place there he keeps it. */
static void has_more(struct task *t)
{
	list_add_tail(&t->asker->ready, &t->ready);
	if (list_empty(&t->asker->turn))
		list_add_tail(&t->node->turns, &t->asker->turn);
}

static struct task *next_task(struct memory_node *n)
{
	struct asker *a;

	while (!list_empty(&n->turns)) {
		a = container_of(n->turns.next, struct asker, turn);
		if (!list_empty(&a->ready))
			return container_of(a->ready.next, struct task, ready);
		/* What he had to ask has ended. */
		list_del(&a->turn);
	}
	return NULL;
}

/* ---- The end of a task ---- */

static void unwanted(struct call *c, int err, const void *answer, size_t len)
{
	(void)err;
	(void)answer;
	(void)len;
	container_of(c, struct piece, call)->busy = false;
}

/* Answers that still come find nobody; their places are taken until then. */
static void leave_pieces(struct task *t)
{
	struct piece *p;

	for (p = t->node->pieces; p < t->node->pieces + CALL_PLACES; p++) {
		if (p->task != t)
			continue;
		t->touched |= p->call.place->asked;
		p->task = NULL;
		call_leave(&p->call, unwanted);
	}
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

void memory_task_end(struct task *t, int result)
{
	if (t->under_way)
		leave_pieces(t);
	list_del(&t->of_node);
	list_del(&t->ready);
	t->asker->tasks--;
	asker_put(t->asker);
	if (t->object)
		end_open(t, result);
	rgate_req_set_data(t->r, NULL);
	rgate_req_end(t->r, result, t->value);
	free(t);
}

/* Last in the line of those that are given up */
static void heard(struct task *t)
{
	t->due = rgate_clock_now(CLOCK_MONOTONIC) + t->node->sv->silence_ns;
	list_del(&t->of_node);
	list_add_tail(&t->node->tasks, &t->of_node);
}

uint64_t memory_ask_expire(struct memory_node *n, uint64_t now)
{
	struct task *t;

	while (!list_empty(&n->tasks)) {
		t = container_of(n->tasks.next, struct task, of_node);
		if (t->due > now)
			return t->due - now;
		if (t->under_way)
			leave_pieces(t);
		t->under_way = 0;
		/* What was never asked was not done. */
		memory_task_end(t, t->touched ? -ETIMEDOUT : -ENOTCONN);
	}
	return UINT64_MAX;
}

/* ---- Answers ---- */

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
static int take(struct task *t, const struct piece *p, const struct memory_result *r)
{
	if (r->err)
		return r->err;
	if (r->op != t->q.a.op)
		return -EPROTO;
	switch (r->op) {
	case MEMORY_OPEN:
		return take_open(t, r);
	case MEMORY_READ:
		if (r->len != p->len)
			return -EPROTO;
		memcpy((char *)t->q.a.data + p->off, r->data, r->len);
		return 0;
	case MEMORY_FETCH_ADD:
	case MEMORY_CMP_SWAP:
		t->value = r->value;
		return 0;
	default:
		return 0;
	}
}

static void answered(struct call *c, int err, const void *answer, size_t len)
{
	struct piece *p = container_of(c, struct piece, call);
	struct task *t = p->task;
	struct memory_result r;

	p->busy = false;
	p->task = NULL;
	t->under_way--;
	t->touched = true;
	if (!err)
		err = memory_answer_get(&r, answer, len);
	if (!err)
		err = take(t, p, &r);
	if (err && !t->err) {
		t->err = err;
		list_del(&t->ready);
	}
	if (!t->under_way && (t->err || t->asked == t->total))
		memory_task_end(t, t->err);
	else
		heard(t);
}

void memory_ask_answer(struct memory_node *n, const void *msg, size_t len)
{
	struct memory_result r;

	if (!memory_answer_get(&r, msg, len))
		(void)call_answer(&n->calls, r.number, msg, len);
}

/* ---- Questions ---- */

static struct piece *free_piece(struct memory_node *n)
{
	struct piece *p;

	for (p = n->pieces; p < n->pieces + CALL_PLACES; p++)
		if (!p->busy)
			return p;
	return NULL;
}

static void ask_piece(struct task *t, struct piece *p)
{
	struct memory_question q = t->q;

	p->busy = true;
	p->task = t;
	p->off = t->asked;
	p->len = t->total - t->asked < MEMORY_PIECE ? t->total - t->asked : MEMORY_PIECE;
	q.number = p->call.number;
	if (has_bytes(q.a.op)) {
		q.a.off += p->off;
		q.a.len = p->len;
		q.a.data = (char *)q.a.data + p->off;
	}
	call_ask(&p->call, memory_question_put(p->call.msg, &q), may_repeat(q.a.op), answered);
	t->under_way++;
	t->asked += p->len;
	list_del(&t->ready);
	list_del(&t->asker->turn);
	if (t->asked < t->total)
		has_more(t);
	else if (!list_empty(&t->asker->ready))
		list_add_tail(&t->node->turns, &t->asker->turn);
}

void memory_ask_pump(struct memory_node *n)
{
	struct piece *p;
	struct task *t;

	(void)xfer_reap(&n->xfers);
	while ((t = next_task(n))) {
		p = free_piece(n);
		if (!p || call_open(&n->calls, &p->call))
			break;
		ask_piece(t, p);
	}
	n->stalled = call_send(&n->calls);
	memory_await(n);
}

int memory_ask(struct memory_node *n, struct rgate_req *r, const struct memory_question *q,
	       struct object *o)
{
	struct asker *a = asker_get(n, q->a.uid);
	struct task *t;

	if (!a)
		return -ENOMEM;
	t = calloc(1, sizeof(*t));
	if (!t) {
		asker_put(a);
		return -ENOMEM;
	}
	a->tasks++;
	t->asker = a;
	t->node = n;
	t->r = r;
	t->q = *q;
	t->object = o;
	t->total = has_bytes(q->a.op) ? q->a.len : 1;
	list_init(&t->of_node);
	list_init(&t->ready);
	has_more(t);
	heard(t);
	rgate_req_set_data(r, t);
	memory_ask_pump(n);
	return RGATE_REQ_LATER;
}
