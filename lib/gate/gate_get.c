// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a request has come to at the other node, and its bytes: with that, or asked for. */
#include <errno.h>
#include <string.h>

#include "gate_priv.h"

#define BY_BERTH	(1ULL << 32)	/* ask.word, with an offset */

static struct wish *wish_of(struct errand *e)
{
	return container_of(e, struct wish, errand);
}

/* ---- Its bytes come ---- */

/* All that there are: one question, if they are written; else a piece */
static size_t get_ask(struct errand *e, struct ask *a)
{
	struct wish *w = wish_of(e);
	const uint32_t left = w->total - w->moved;
	struct gate_question q = gate_wish_question(w, GATE_GET, a);

	q.off = w->moved;
	a->word = q.off;
	if (left > GATE_PIECE && gate_wish_lend(w, false)) {
		q.len = left;
		q.lent = (struct gate_lent){ .dock = w->lent.dock, .out = w->lent.out };
		a->word |= BY_BERTH;
	} else {
		q.len = least(left, GATE_PIECE);
	}
	w->moved += q.len;
	e->more = w->moved < w->total;
	return gate_question_put(w->caller->sv->o.role, a->msg, &q);
}

/* An answer that the node said over an earlier connection is said again, but not what it wrote. */
static int written(struct errand *e, const struct ask *a, int err, const struct gate_result *r)
{
	const uint32_t off = (uint32_t)a->word;
	struct wish *w = wish_of(e);

	if (err && err != -EAGAIN && err != -ENOLINK)
		return err;
	if (!err && (r->len != w->total - off || r->data_len))
		return -EPROTO;
	w->plain |= err;
	if (err || !gate_wish_took(w, &w->lent, off, r->len)) {
		w->moved = off;
		e->more = true;
	}
	gate_wish_unlend(w);
	return 0;
}

static int get_answer(struct errand *e, struct ask *a, int err, const void *answer, size_t len)
{
	const uint32_t off = (uint32_t)a->word;
	struct wish *w = wish_of(e);
	struct gate_result r;

	err = gate_refusal(err, answer, len, &r);
	if (a->word & BY_BERTH)
		return written(e, a, err, &r);
	if (err)
		return err;
	if (r.data_len != least(w->total - off, GATE_PIECE))
		return -EPROTO;
	memcpy(w->mem + off, r.data, r.data_len);
	return 0;
}

static void get_over(struct errand *e, int err)
{
	struct wish *w = wish_of(e);

	if (err)
		gate_wish_forget(w, err);
	else
		gate_wish_end(w, w->result, w->value);
}

static const struct errand_ops get_ops = {
	.ask = get_ask, .answer = get_answer, .over = get_over,
};

/* ---- It has ended ---- */

/* Is it what that request can have come to? */
static bool is_sound(const struct wish *w, const struct gate_result *r)
{
	const bool good = r->result >= 0;

	if (r->result > (int)w->len || (!good && r->addr) || (r->lent.dock && r->data_len))
		return false;
	if (good && !r->addr != !(w->has & GATE_HAS_FROM))
		return false;
	return r->len == gate_bytes(w->has, w->len, r->result);
}

/*
 * Of one with many: have all come that were before it? It has no bytes of its own. A node whose
 * policy does not allow it any more stops in the middle of one.
 */
static bool is_last(const struct wish *w, const struct gate_result *r)
{
	if (w->moved && r->result != -EACCES)
		return false;
	return r->number <= w->heard && r->result <= 0 && !r->len && !r->addr;
}

void gate_wish_done(struct wish *w, const struct gate_result *r)
{
	if (w->shots ? !is_last(w, r) : !is_sound(w, r)) {
		gate_wish_fail(w, -EPROTO);
		return;
	}
	list_del(&w->queue);
	w->last_ns = 0;
	w->result = r->result;
	w->value = r->value;
	w->total = r->len;
	w->moved = r->data_len;
	if (r->data_len)
		memcpy(w->mem, r->data, r->data_len);
	if (r->addr)
		memcpy(w->addr_mem, r->addr, GATE_ADDR);
	if (r->lent.dock && gate_wish_took(w, &r->lent, 0, r->len))
		w->moved = r->len;
	gate_wish_unlend(w);
	if (w->moved == w->total)
		gate_wish_end(w, w->result, w->value);
	else if (gate_wish_begin(w, WISH_GETS, &get_ops))
		gate_wish_fail(w, -ECONNRESET);
}
