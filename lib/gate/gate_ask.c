// SPDX-License-Identifier: MIT OR GPL-2.0
/* What becomes of requests at another node. gate_caller.c has what becomes of their sessions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "gate_priv.h"

#define ENDS_MOST	8U	/* times as long as a node may be silent: what is not wanted has */

static void start(struct gate_caller *c);

static struct wish *wish_of(struct errand *e)
{
	return container_of(e, struct wish, errand);
}

static const struct gate_role *role_of(const struct wish *w)
{
	return w->caller->sv->o.role;
}

struct gate_question gate_wish_question(const struct wish *w, enum gate_kind kind,
					const struct ask *a)
{
	return (struct gate_question){
		.kind = kind, .number = a->number, .uid = w->caller->uid, .guest = w->caller->id,
		.ticket = w->ticket, .serial = w->serial,
	};
}

int gate_refusal(int err, const void *answer, size_t len, struct gate_result *r)
{
	if (!err)
		err = gate_answer_get(r, answer, len);
	if (err)
		return err;
	return r->result > 0 ? -EPROTO : r->result;
}

int gate_plain_answer(struct errand *e, struct ask *a, int err, const void *answer, size_t len)
{
	struct gate_result r;

	(void)e;
	(void)a;
	return gate_refusal(err, answer, len, &r);
}

/* ---- The end of a request ---- */

/* Where the node was told that it is not wanted, the engine does not say why. */
static int why(const struct wish *w, int result)
{
	if (result == -ECANCELED && w->due && rgate_clock_now(CLOCK_MONOTONIC) >= w->due)
		return -ETIMEDOUT;
	return result;
}

void gate_wish_end(struct wish *w, int result, uint64_t value)
{
	struct rgate_req *r = w->r;

	if (w->cancelling)
		errand_end(&w->cancel, 0);
	w->unsaid = false;
	if (w->hearing)
		errand_end(&w->hear, 0);
	list_del(&w->queue);
	gate_wish_abandon(w);
	w->caller->ticket[w->ticket] = NULL;
	result = why(w, result);
	if (w->as.over)
		result = w->as.over(w->as.ctx, result, &value);
	free(w);
	rgate_req_end(r, result, result < 0 ? 0 : value);
}

void gate_wish_fail(struct wish *w, int err)
{
	const bool goes = w->has & GATE_HAS_TO_GO && err == -ENOTCONN;
	struct gate_caller *c = w->caller;

	gate_wish_end(w, err, 0);
	if (err == -ECONNRESET || err == -ETIMEDOUT || err == -EPROTO || goes)
		gate_caller_lose(c, -ECONNRESET);
}

void gate_wish_forget(struct wish *w, int err)
{
	gate_wish_fail(w, err == -ETIMEDOUT || err == -EPROTO ? err : -ECONNRESET);
}

int gate_wish_begin(struct wish *w, enum wish_state state, const struct errand_ops *ops)
{
	memset(&w->errand, 0, sizeof(w->errand));
	w->state = state;
	return errand_begin(w->caller->node->errands, &w->errand, ops, w->caller->uid);
}

void gate_wish_give_up(struct wish *w, int err)
{
	if (w->state == WISH_QUEUED || w->state == WISH_WAITS)
		gate_wish_end(w, err, 0);
	else
		errand_end(&w->errand, err);
}

/* ---- Cancelled ---- */

static size_t cancel_ask(struct errand *e, struct ask *a)
{
	const struct wish *w = container_of(e, struct wish, cancel);
	struct gate_question q = gate_wish_question(w, GATE_CANCEL, a);

	e->more = false;
	return gate_question_put(role_of(w), a->msg, &q);
}

/* Last in the line of those that are given up, if it is in it: the node has said more of it */
static void goes_on(struct wish *w)
{
	struct gate_node *n = w->caller->node;
	const uint64_t now = w->last_ns ? rgate_clock_now(CLOCK_MONOTONIC) : 0;

	if (now >= w->last_ns)
		return;
	w->end_ns = now + n->sv->silence_ns;
	list_del(&w->queue);
	list_add_tail(&n->ending, &w->queue);
}

/* A node that says no more of it is not waited for, nor one that never comes to its end. */
static void ends_soon(struct wish *w)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);

	w->last_ns = now + ENDS_MOST * w->caller->node->sv->silence_ns;
	goes_on(w);
}

static void cancel_over(struct errand *e, int err)
{
	struct wish *w = container_of(e, struct wish, cancel);

	w->cancelling = false;
	if (w->state != WISH_WAITS)
		return;
	if (err)
		gate_wish_forget(w, err);
	else
		ends_soon(w);
}

static const struct errand_ops cancel_ops = {
	.ask = cancel_ask, .answer = gate_plain_answer, .over = cancel_over,
};

/* The node has it, and the engine asks for its end but once. */
static void end_there(struct wish *w)
{
	memset(&w->cancel, 0, sizeof(w->cancel));
	if (w->has & GATE_HAS_TO_GO || errand_begin(w->caller->node->errands, &w->cancel,
						    &cancel_ops, w->caller->uid))
		ends_soon(w);
	else
		w->cancelling = true;
}

int gate_ask_cancel(struct wish *w)
{
	const bool again = w->unwanted;

	w->unwanted = true;
	switch (w->state) {
	case WISH_QUEUED:
	case WISH_PUTS:
		if (w->has & GATE_HAS_TO_GO)
			break;
		/* The node has not seen it. */
		gate_wish_give_up(w, -ECANCELED);
		return 0;
	case WISH_WAITS:
		if (!again)
			end_there(w);
		break;
	default:
		break;
	}
	/* It ends with what became of it there: a stream loses nothing. */
	return -EALREADY;
}

uint64_t gate_ask_expire(struct gate_node *n, uint64_t now)
{
	bool failing = false;
	struct wish *w;

	/* That is no silence of it: if it does not come back, all that it has is given up. */
	if (n->down_ns)
		return UINT64_MAX;
	while (!list_empty(&n->ending)) {
		w = container_of(n->ending.next, struct wish, queue);
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
		if (w->end_ns > now)
			break;
		gate_wish_fail(w, -ETIMEDOUT);
		failing = true;
	}
	if (failing)
		gate_pump(n);
	return list_empty(&n->ending) ? UINT64_MAX :
	       container_of(n->ending.next, struct wish, queue)->end_ns - now;
}

/* ---- It goes on ---- */

/* A piece of the next completion: is there a place for that, and is it one that can have come? */
static bool is_next(const struct wish *w, const struct gate_result *r)
{
	if (r->number != w->heard || w->came == w->shots || r->result < 0 || r->addr ||
	    (uint32_t)r->result + gate_front(w->has) > w->share ||
	    r->len != gate_share(w->has, w->share, r->result))
		return false;
	if (r->lent.dock)
		return !w->moved && r->len > GATE_PIECE;
	/* Behind its first one */
	if (w->moved && (r->result != w->result || r->value != w->value))
		return false;
	return r->data_len == least(r->len - w->moved, GATE_PIECE);
}

/* In pieces or all at once; it counts as the pieces that it would be. False: it is not there */
static bool take_more(struct wish *w, const struct gate_result *r)
{
	const uint32_t at = w->came * w->share;

	if (r->lent.dock) {
		if (!gate_wish_took(w, &r->lent, at, r->len))
			return false;
		w->heard += gate_pieces(r->len);
		w->moved = r->len;
		return true;
	}
	if (r->data_len)
		memcpy(w->mem + at + w->moved, r->data, r->data_len);
	w->heard++;
	w->moved += r->data_len;
	return true;
}

static void more(struct wish *w, const struct gate_result *r)
{
	/* What was heard has been said before there was more, over another connection. */
	if (r->number < w->heard)
		return;
	if (!is_next(w, r) || !take_more(w, r)) {
		gate_wish_fail(w, -EPROTO);
		return;
	}
	goes_on(w);
	w->result = r->result;
	w->value = r->value;
	if (w->moved < r->len)
		return;
	w->moved = 0;
	w->came++;
	(void)rgate_req_more(w->r, r->result, r->value);
}

static size_t heard_ask(struct errand *e, struct ask *a)
{
	const struct wish *w = container_of(e, struct wish, hear);
	struct gate_question q = gate_wish_question(w, GATE_HEARD, a);

	q.a0 = w->heard;
	e->more = false;
	return gate_question_put(role_of(w), a->msg, &q);
}

static void say_heard(struct wish *w);

static void heard_over(struct errand *e, int err)
{
	struct wish *w = container_of(e, struct wish, hear);

	w->hearing = false;
	/* There was no place for it, or no connection: the node tells nothing before it is said. */
	if (err == -ENOTCONN)
		w->unsaid = true;
	if (err && err != -ENOTCONN)
		gate_wish_forget(w, err);
	else
		/* That may have been taken before the last pause. */
		say_heard(w);
}

static const struct errand_ops heard_ops = {
	.ask = heard_ask, .answer = gate_plain_answer, .over = heard_over,
};

static void say_heard(struct wish *w)
{
	const struct gate_caller *c = w->caller;

	if (!w->unsaid || w->hearing || w->state != WISH_WAITS)
		return;
	w->unsaid = false;
	memset(&w->hear, 0, sizeof(w->hear));
	w->hearing = !errand_begin(c->node->errands, &w->hear, &heard_ops, c->uid);
	if (!w->hearing)
		gate_wish_forget(w, -ENOMEM);
}

void gate_ask_again(struct wish *w)
{
	goes_on(w);
	if (!w->shots)
		return;
	/* What it has never been asked it tells of its own accord. */
	w->unsaid = w->state == WISH_WAITS ||
		    (w->state == WISH_SUBMITS && w->errand.under_way);
	say_heard(w);
}

/* ---- What is told without a question ---- */

static struct gate_caller *caller_of(const struct gate_node *n, uint64_t id)
{
	struct link *const ring = index_at(&n->sv->by_id, id);
	struct gate_caller *c;
	struct link *l;

	for (l = ring->next; l != ring; l = l->next) {
		c = container_of(l, struct gate_caller, by_id.link);
		if (c->id == id && c->node == n)
			return c;
	}
	return NULL;
}

/* It may come before the answer to GATE_SUBMIT, if that was lost with a connection. */
static void on_told(const struct gate_node *n, const struct gate_result *r)
{
	const struct gate_caller *c = caller_of(n, r->guest);
	struct wish *w = c ? c->ticket[r->ticket] : NULL;

	if (!w || w->serial != r->serial)
		return;
	if (w->state == WISH_SUBMITS && w->errand.under_way)
		errand_end(&w->errand, 0);
	if (w->state != WISH_WAITS)
		return;
	if (r->kind == GATE_MORE)
		more(w, r);
	else
		gate_wish_done(w, r);
}

/* ---- It goes to the node ---- */

static size_t submit_ask(struct errand *e, struct ask *a)
{
	struct wish *w = wish_of(e);
	const struct rgate_request *req = rgate_req_get(w->r);
	struct gate_question q = gate_wish_question(w, w->shots ? GATE_SUBMIT_MANY : GATE_SUBMIT,
						    a);

	q.op = req->op;
	q.handle = w->as.handle;
	q.a0 = w->as.a0;
	q.a1 = (w->addr_mem ? 0 : req->a1) | w->as.a1;
	q.len = w->len;
	q.addr = w->has & GATE_HAS_TO ? &w->addr : NULL;
	q.lent = w->lent;
	q.data = w->mem;
	q.data_len = w->first;
	e->more = false;
	return gate_question_put(role_of(w), a->msg, &q);
}

/* It was asked, whatever came of it: the node has no use for what was sent any more. */
static int submit_answer(struct errand *e, struct ask *a, int err, const void *answer, size_t len)
{
	const int ret = gate_plain_answer(e, a, err, answer, len);
	struct wish *w = wish_of(e);

	if (!err && ret)
		gate_wish_unlend(w);
	return ret;
}

static void submit_over(struct errand *e, int err)
{
	struct wish *w = wish_of(e);
	struct gate_caller *c = w->caller;

	if (!err || e->touched)
		c->there = true;
	else
		/* The node has not heard of it: nothing is written there. */
		gate_wish_unlend(w);
	if (!err || err == -EACCES)
		c->taken = !err;
	gate_caller_make_sure(c);
	/* What was written went over an earlier connection. It is still the first of the queue. */
	if (err == -ENOLINK && !w->plain) {
		w->plain = true;
		w->state = WISH_QUEUED;
		start(c);
		return;
	}
	list_del(&w->queue);
	if (err) {
		gate_wish_fail(w, err);
	} else {
		gate_wish_berthed(w);
		w->state = WISH_WAITS;
		if (w->unwanted)
			end_there(w);
		say_heard(w);
	}
	start(c);
}

static const struct errand_ops submit_ops = {
	.ask = submit_ask, .answer = submit_answer, .over = submit_over,
};

/* Where more may come than a message has room for; bytes that go with it leave none for that. */
static bool is_to_lend(const struct wish *w)
{
	return w->has & (GATE_HAS_OUT | GATE_HAS_WHOLE) && w->len > GATE_PIECE && !w->first;
}

static void submit(struct wish *w)
{
	if (is_to_lend(w))
		(void)gate_wish_lend(w, true);
	if (gate_wish_begin(w, WISH_SUBMITS, &submit_ops)) {
		gate_wish_unlend(w);
		gate_wish_end(w, -ENOMEM, 0);
	}
}

static size_t put_ask(struct errand *e, struct ask *a)
{
	struct wish *w = wish_of(e);
	struct gate_question q = gate_wish_question(w, GATE_PUT, a);

	q.off = w->moved;
	q.len = q.data_len = least(w->in - w->moved, GATE_PIECE);
	q.data = w->mem + w->moved;
	w->moved += q.len;
	e->more = w->moved < w->in;
	return gate_question_put(role_of(w), a->msg, &q);
}

static void put_over(struct errand *e, int err)
{
	struct wish *w = wish_of(e);
	struct gate_caller *c = w->caller;

	if (!err || e->touched)
		c->there = true;
	gate_caller_make_sure(c);
	if (!err) {
		submit(w);
	} else {
		/* What was put is of no request. */
		gate_wish_end(w, err, 0);
		if (err == -ECONNRESET)
			gate_caller_lose(c, err);
	}
	start(c);
}

static const struct errand_ops put_ops = {
	.ask = put_ask, .answer = gate_plain_answer, .over = put_over,
};

/* The first of the queue goes, if none does. */
static void start(struct gate_caller *c)
{
	struct wish *w;

	while (!c->lost && !list_empty(&c->queue)) {
		w = container_of(c->queue.next, struct wish, queue);
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
		if (w->state != WISH_QUEUED)
			return;
		w->first = least(w->in, GATE_PIECE - (w->has & GATE_HAS_TO ? GATE_ADDR : 0));
		if (w->first < w->in && gate_wish_put(w))
			w->first = 0;
		w->moved = w->first;
		if (w->lent.in || w->first == w->in)
			submit(w);
		else if (gate_wish_begin(w, WISH_PUTS, &put_ops))
			gate_wish_end(w, -ENOMEM, 0);
	}
}

void gate_ask(struct wish *w)
{
	struct gate_caller *c = w->caller;

	list_add_tail(&c->queue, &w->queue);
	start(c);
}

/* ---- Answers ---- */

void gate_ask_answer(struct gate_node *n, const void *msg, size_t len)
{
	struct gate_result r;

	if (gate_answer_get(&r, msg, len))
		return;
	if (r.kind == GATE_DONE || r.kind == GATE_MORE)
		on_told(n, &r);
	else
		(void)line_answered(n->line, r.number, msg, len);
}
