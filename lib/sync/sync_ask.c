// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Locks and barriers whose home is another node. A handle has one question under way at most;
 * the next one is what is still missing between what its session wants and what the home
 * knows. So it does not matter in which order the session's requests and the home's answers come.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync_priv.h"

#define LEASE_LEAST	100U	/* ms, that a home may say */
#define LEASE_MOST	60000U

int sync_ask_init(struct sync_node *n)
{
	list_init(&n->handles);
	list_init(&n->ready);
	n->life = n->sv->first_life;
	return errands_create(&n->queries, n->line, CLOCK_BOOTTIME, n->sv->lease_ns);
}

/* The engine is no more: what is left has no session, and waits for its node alone. */
void sync_ask_fini(struct sync_node *n)
{
	sync_ask_lapse(n);
	errands_destroy(n->queries);
}

/* ---- A life, and its end ---- */

static void lapse_handle(struct handle *h)
{
	handle_lost(h);
	if (h->granted && h->as.kind == SYNC_LOCK && !h->leaves && h->place)
		__atomic_store_n(&h->place->lost, h->place->lost + 1, __ATOMIC_RELEASE);
	h->asking = h->taken = h->granted = h->wants = h->leaves = false;
	list_del(&h->ready);
	sync_end(&h->taking, -ECONNRESET, 0);
	sync_end(&h->waiting, -ECONNRESET, 0);
	sync_end(&h->dropping, -ESTALE, 0);
	if (h->closing)
		handle_retire(h);
	else if (h->state == HANDLE_OPENING)
		sync_ask_step(h);
	else
		h->state = HANDLE_STALE;
}

void sync_ask_lapse(struct sync_node *n)
{
	struct link *l, *next;

	line_leave_all(n->line);
	sync_fence_lapse(n, false);
	n->life++;
	n->lease_end = 0;
	n->renewing = false;
	/* So that the home need not wait for the end of the last one */
	n->renew_ns = 0;
	for (l = n->handles.next; l != &n->handles; l = next) {
		next = l->next;
		if (container_of(l, struct handle, of_home)->state != HANDLE_STALE)
			lapse_handle(container_of(l, struct handle, of_home));
	}
	errands_end(n->queries, -ECONNRESET);
}

/* The home has taken a question that was begun then. */
static void lives_on(struct sync_node *n, uint64_t asked_ns, uint32_t lease_ms)
{
	struct link *l;

	if (lease_ms < LEASE_LEAST || lease_ms > LEASE_MOST)
		lease_ms = LEASE_LEAST;
	n->lease_ns = lease_ms * 1000000ULL;
	if (asked_ns + n->lease_ns <= n->lease_end)
		return;
	n->lease_end = asked_ns + n->lease_ns;
	for (l = n->handles.next; l != &n->handles; l = l->next)
		handle_lease(container_of(l, struct handle, of_home));
}

static bool has_something(const struct sync_node *n)
{
	struct link *l;

	for (l = n->handles.next; l != &n->handles; l = l->next)
		if (container_of(l, struct handle, of_home)->state == HANDLE_OPEN)
			return true;
	return false;
}

void sync_ask_look(struct sync_node *n, uint64_t now)
{
	if (!n->lease_end || now < n->lease_end)
		return;
	if (has_something(n))
		sync_ask_lapse(n);
	else
		n->lease_end = 0;
}

/* ---- Answers ---- */

static void open_answered(struct handle *h, int err, uint64_t id)
{
	if (err) {
		sync_end(&h->opening, err, 0);
		handle_retire(h);
		return;
	}
	h->state = HANDLE_OPEN;
	h->id = id;
	sync_end(&h->opening, 0, h->number);
}

static void take_answered(struct handle *h, const struct sync_result *r)
{
	if (!r->err || (r->err == -EPIPE && r->kind == SYNC_BARRIER)) {
		handle_granted(h, r->err, r->value, &r->info.barrier);
	} else if (r->err != -EINPROGRESS) {
		/* What was asked after it was given up is to come yet. */
		if (!h->leaves)
			sync_end(&h->taking, r->err, 0);
		/* Who waits already, as with one submission, has nothing to wait for. */
		sync_end(&h->waiting, -ENOLCK, 0);
		sync_end(&h->dropping, 0, 0);
		handle_lost(h);
		h->taken = h->granted = h->leaves = false;
	} else if (h->as.kind == SYNC_BARRIER && h->taken) {
		sync_end(&h->taking, 0, 0);
	}
}

static void handle_answered(struct handle *h, const struct sync_result *r)
{
	h->asking = false;
	switch (r->op) {
	case SYNC_OPEN:
		open_answered(h, r->err, r->claim);
		if (r->err)
			return;
		break;
	case SYNC_TAKE:
		take_answered(h, r);
		break;
	case SYNC_DROP:
		h->taken = h->granted = h->leaves = false;
		sync_end(&h->dropping, r->err, 0);
		break;
	default:
		handle_retire(h);
		return;
	}
	sync_ask_step(h);
}

/* 0, or -errno */
static int take_info(struct query *y, const struct sync_result *r)
{
	const struct rgate_request *q = rgate_req_get(y->r);
	const bool lock = q->op >> RGATE_REQ_OP_SHIFT == RGATE_REQ_LOCK;
	void *room = rgate_req_mem(y->r);

	if (y->q.op == SYNC_LIST && !r->kind)
		return 0;
	if (r->kind != (lock ? SYNC_LOCK : SYNC_BARRIER))
		return -EPROTO;
	if (lock)
		memcpy(room, &r->info.lock, sizeof(r->info.lock));
	else
		memcpy(room, &r->info.barrier, sizeof(r->info.barrier));
	y->result = y->q.op == SYNC_LIST;
	return 0;
}

/*
 * What a question, whose operation is its word, came to: 0, and @r with that operation and an error
 * or none. -ECONNRESET: nothing of its life is there, and all who waited were told
 */
static int take_answer(struct sync_node *n, const struct ask *a, int err, const void *answer,
		       size_t len, struct sync_result *r)
{
	const enum sync_op op = (enum sync_op)a->word;

	r->err = err;
	if (!err)
		err = sync_answer_get(r, answer, len);
	if (!err && !r->err && r->op != op)
		err = -EPROTO;
	/* Not of this life: nothing of it is there. */
	if (err == -ECONNRESET || r->err == -ESTALE) {
		sync_ask_lapse(n);
		return -ECONNRESET;
	}
	/* Of a home of another version: it has not taken what it did not understand. */
	if (!err && r->err == -EPROTONOSUPPORT)
		err = r->err;
	if (err)
		*r = (struct sync_result){ .err = err };
	else
		lives_on(n, line_asked_ns(a), r->lease_ms);
	r->op = op;
	return 0;
}

static void over_handle(struct ask *a, int err, const void *answer, size_t len)
{
	struct handle *h = a->ctx;
	struct sync_result r;

	if (!take_answer(h->node, a, err, answer, len, &r))
		handle_answered(h, &r);
}

static void over_renew(struct ask *a, int err, const void *answer, size_t len)
{
	struct sync_node *n = a->ctx;
	struct sync_result r;

	if (!take_answer(n, a, err, answer, len, &r))
		n->renewing = false;
}

static void news(struct sync_node *n, const struct sync_result *r)
{
	struct handle *h;
	struct link *l;

	for (l = n->handles.next; l != &n->handles; l = l->next) {
		h = container_of(l, struct handle, of_home);
		if (h->state != HANDLE_OPEN || h->id != r->claim)
			continue;
		if (h->seq != r->number || !h->taken || h->granted)
			return;
		if (h->as.kind == SYNC_LOCK ? r->err : r->err && r->err != -EPIPE)
			return;
		handle_granted(h, r->err, r->value,
			       r->kind == SYNC_BARRIER ? &r->info.barrier : NULL);
		return;
	}
}

void sync_ask_answer(struct sync_node *n, const void *msg, size_t len)
{
	struct sync_result r;

	if (sync_answer_get(&r, msg, len))
		return;
	if (r.op == SYNC_NEWS)
		news(n, &r);
	else
		(void)line_answered(n->line, r.number, msg, len);
}

/* ---- Questions ---- */

/* Of this life. Its length */
static size_t put_question(struct sync_node *n, struct ask *a, const struct sync_question *what)
{
	struct sync_question q = *what;

	a->word = q.op;
	q.number = a->number;
	q.life = n->life;
	return sync_question_put(a->msg, &q);
}

/* False: there is no place for it now */
static bool ask(struct sync_node *n, const struct sync_question *q, line_over_fn over, void *ctx)
{
	struct ask *a = line_open(n->line);

	if (!a)
		return false;
	a->ctx = ctx;
	line_ask(a, put_question(n, a, q), false, over);
	return true;
}

/* What the home has to be told next; false: nothing */
static bool next_question(const struct handle *h, struct sync_question *q)
{
	*q = (struct sync_question){ .uid = h->uid, .claim = h->id, .seq = h->seq };
	if (h->asking)
		return false;
	if (h->state == HANDLE_OPENING) {
		q->op = SYNC_OPEN;
		q->as = h->as;
		q->claim = q->seq = 0;
		return !h->closing;
	}
	if (h->state != HANDLE_OPEN)
		return false;
	if (h->closing) {
		q->op = SYNC_CLOSE;
		q->flags = h->clean;
		return true;
	}
	if (h->leaves) {
		q->op = SYNC_DROP;
		return h->taken;
	}
	q->op = SYNC_TAKE;
	q->flags = h->flags;
	return h->wants;
}

void sync_ask_step(struct handle *h)
{
	struct sync_question q;

	if (next_question(h, &q) && list_empty(&h->ready))
		list_add_tail(&h->node->ready, &h->ready);
}

static bool ask_handle(struct handle *h)
{
	struct sync_question q;

	if (!next_question(h, &q)) {
		list_del(&h->ready);
		return true;
	}
	if (q.op == SYNC_TAKE)
		q.seq = h->seq + 1;
	if (!ask(h->node, &q, over_handle, h))
		return false;
	list_del(&h->ready);
	h->asking = true;
	if (q.op == SYNC_TAKE) {
		h->seq++;
		h->wants = false;
		h->taken = true;
		h->granted = false;
	}
	return true;
}

static void ask_renew(struct sync_node *n)
{
	const struct sync_question q = { .op = SYNC_RENEW };
	const uint64_t now = sync_now();

	if (n->renewing || now < n->renew_ns)
		return;
	/* A new life is told of, if there was one before: the home may have much of that. */
	if (!has_something(n) && (n->renew_ns || n->life == n->sv->first_life))
		return;
	if (!ask(n, &q, over_renew, n))
		return;
	n->renewing = true;
	n->renew_ns = now + (n->lease_ns ? n->lease_ns : n->sv->lease_ns) / 4;
}

void sync_ask_pump(struct sync_node *n)
{
	line_reap(n->line);
	ask_renew(n);
	while (!list_empty(&n->ready))
		if (!ask_handle(container_of(n->ready.next, struct handle, ready)))
			break;
	errands_pump(n->queries);
	line_send(n->line, !list_empty(&n->handles) || !errands_idle(n->queries));
}

/* ---- Questions of requests alone ---- */

static struct query *query_of(struct errand *e)
{
	return container_of(e, struct query, errand);
}

static size_t ask_query(struct errand *e, struct ask *a)
{
	e->more = false;
	return put_question(query_of(e)->node, a, &query_of(e)->q);
}

static int query_answered(struct errand *e, struct ask *a, int err, const void *answer, size_t len)
{
	struct query *y = query_of(e);
	struct sync_result r;

	err = take_answer(y->node, a, err, answer, len, &r);
	if (err)
		return err;
	y->value = r.claim;
	return r.err ? r.err : take_info(y, &r);
}

static void query_over(struct errand *e, int err)
{
	struct query *y = query_of(e);

	/* What was asked does nothing, so that it was matters to nobody; but what was answered. */
	if (!e->err && (err == -ETIMEDOUT || err == -ENOTCONN))
		err = line_is_up(y->node->line) ? -ETIMEDOUT : -ENOTCONN;
	sync_end(&y->r, err ? err : y->result, y->value);
	free(y);
}

static const struct errand_ops query_ops = {
	.ask = ask_query, .answer = query_answered, .over = query_over,
};

int sync_ask_query(struct sync_node *n, struct rgate_req *r, const struct sync_question *q)
{
	struct query *y = calloc(1, sizeof(*y));

	if (!y)
		return -ENOMEM;
	y->node = n;
	y->r = r;
	y->q = *q;
	if (errand_begin(n->queries, &y->errand, &query_ops, q->uid)) {
		free(y);
		return -ENOMEM;
	}
	rgate_req_set_data(r, y);
	sync_ask_pump(n);
	return RGATE_REQ_LATER;
}

/* ---- The clock ---- */

/* The home may have taken it: then it is closed as soon as that is known. */
static void give_up_opening(struct handle *h)
{
	sync_end(&h->opening, line_is_up(h->node->line) ? -ETIMEDOUT : -ENOTCONN, 0);
	h->closing = true;
	if (!h->asking) {
		handle_retire(h);
		return;
	}
	list_del(&h->dead);
	list_add_tail(&h->sv->dead, &h->dead);
}

static uint64_t expire_openings(struct sync_node *n, uint64_t now)
{
	uint64_t least = UINT64_MAX;
	struct link *l, *next;
	struct handle *h;

	for (l = n->handles.next; l != &n->handles; l = next) {
		next = l->next;
		h = container_of(l, struct handle, of_home);
		if (h->state != HANDLE_OPENING || !h->opening)
			continue;
		if (h->due <= now)
			give_up_opening(h);
		else if (h->due - now < least)
			least = h->due - now;
	}
	return least;
}

static uint64_t sooner(uint64_t ns, uint64_t at, uint64_t now)
{
	const uint64_t in = at > now ? at - now : 0;

	return in < ns ? in : ns;
}

uint64_t sync_ask_expire(struct sync_node *n, uint64_t now)
{
	const uint64_t waits = errands_expire(n->queries, now);
	uint64_t ns = expire_openings(n, now);

	ns = waits < ns ? waits : ns;
	if (n->lease_end)
		ns = sooner(ns, n->lease_end, now);
	if (!n->renewing && has_something(n))
		ns = sooner(ns, n->renew_ns, now);
	return ns;
}
