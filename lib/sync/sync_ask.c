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
	unsigned int i;

	list_init(&n->handles);
	list_init(&n->ready);
	list_init(&n->queries);
	n->life = 1;
	for (i = 0; i < CALL_PLACES; i++)
		n->pieces[i].node = n;
	return call_client_init(&n->calls, &n->session, &n->xfers,
				rgate_node_stage(rgate_hub_node(n->sv->o.hub)));
}

void sync_ask_fini(struct sync_node *n)
{
	xfer_settle(&n->xfers, 2000);
	/* The engine is no more: what is left has no session, and waits for its node alone. */
	sync_ask_lapse(n);
	call_client_fini(&n->calls);
}

/* ---- A life, and its end ---- */

static void unwanted(struct call *c, int err, const void *answer, size_t len)
{
	(void)err;
	(void)answer;
	(void)len;
	container_of(c, struct piece, call)->busy = false;
}

static void leave(struct piece *p)
{
	p->unwanted = true;
	p->handle = NULL;
	p->query = NULL;
	call_leave(&p->call, unwanted);
}

void sync_ask_end_query(struct query *y, int result, uint64_t value)
{
	if (y->piece)
		leave(y->piece);
	list_del(&y->of_node);
	sync_end(&y->r, result, value);
	free(y);
}

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
	struct piece *p;

	for (p = n->pieces; p < n->pieces + CALL_PLACES; p++)
		if (p->busy && !p->unwanted)
			leave(p);
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
	while (!list_empty(&n->queries)) {
		struct query *y = container_of(n->queries.next, struct query, of_node);

		y->piece = NULL;
		sync_ask_end_query(y, -ECONNRESET, 0);
	}
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

static int take_info(const struct query *y, const struct sync_result *r)
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
	return y->q.op == SYNC_LIST;
}

static void query_answered(struct query *y, const struct sync_result *r)
{
	y->piece = NULL;
	sync_ask_end_query(y, r->err ? r->err : take_info(y, r), r->claim);
}

static void answered(struct call *c, int err, const void *answer, size_t len)
{
	struct piece *p = container_of(c, struct piece, call);
	struct sync_result r = { .err = err };
	struct sync_node *n = p->node;

	p->busy = false;
	if (!err)
		err = sync_answer_get(&r, answer, len);
	if (!err && !r.err && r.op != p->op)
		err = -EPROTO;
	/* Not of this life: nothing of it is there. */
	if (err == -ECONNRESET || r.err == -ESTALE) {
		sync_ask_lapse(n);
		return;
	}
	if (err)
		r = (struct sync_result){ .err = err };
	else
		lives_on(n, p->asked_ns, r.lease_ms);
	r.op = p->op;
	if (p->handle)
		handle_answered(p->handle, &r);
	else if (p->query)
		query_answered(p->query, &r);
	else
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
		(void)call_answer(&n->calls, r.number, msg, len);
}

/* ---- Questions ---- */

static struct piece *free_piece(struct sync_node *n)
{
	struct piece *p;

	for (p = n->pieces; p < n->pieces + CALL_PLACES; p++)
		if (!p->busy && !call_open(&n->calls, &p->call))
			return p;
		else if (!p->busy)
			break;
	return NULL;
}

/* False: there is no place for it now */
static bool ask(struct sync_node *n, const struct sync_question *what, struct handle *h,
		struct query *y)
{
	struct piece *p = free_piece(n);
	struct sync_question q = *what;

	if (!p)
		return false;
	p->busy = true;
	p->unwanted = false;
	p->handle = h;
	p->query = y;
	p->op = q.op;
	q.number = p->call.number;
	q.life = n->life;
	if (y)
		y->piece = p;
	call_ask(&p->call, sync_question_put(p->call.msg, &q), false, answered);
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
	if (!ask(h->node, &q, h, NULL))
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
	if (!has_something(n) && (n->renew_ns || n->life == 1))
		return;
	if (!ask(n, &q, NULL, NULL))
		return;
	n->renewing = true;
	n->renew_ns = now + (n->lease_ns ? n->lease_ns : n->sv->lease_ns) / 4;
}

static void ask_queries(struct sync_node *n)
{
	struct query *y;
	struct link *l;

	for (l = n->queries.next; l != &n->queries; l = l->next) {
		y = container_of(l, struct query, of_node);
		if (!y->piece && !ask(n, &y->q, NULL, y))
			return;
	}
}

void sync_ask_pump(struct sync_node *n)
{
	struct piece *p;

	(void)xfer_reap(&n->xfers);
	ask_renew(n);
	while (!list_empty(&n->ready))
		if (!ask_handle(container_of(n->ready.next, struct handle, ready)))
			break;
	ask_queries(n);
	/* No earlier than the message leaves: what waits for a connection is not late. */
	for (p = n->pieces; p < n->pieces + CALL_PLACES; p++)
		if (p->busy && !p->call.place->asked)
			p->asked_ns = sync_now();
	n->stalled = call_send(&n->calls);
	sync_await(n);
}

int sync_ask_query(struct sync_node *n, struct rgate_req *r, const struct sync_question *q)
{
	struct query *y = calloc(1, sizeof(*y));

	if (!y)
		return -ENOMEM;
	y->node = n;
	y->r = r;
	y->q = *q;
	y->due = sync_now() + n->sv->lease_ns;
	list_add_tail(&n->queries, &y->of_node);
	rgate_req_set_data(r, y);
	sync_ask_pump(n);
	return RGATE_REQ_LATER;
}

/* ---- The clock ---- */

/* The home may have taken it: then it is closed as soon as that is known. */
static void give_up_opening(struct handle *h)
{
	sync_end(&h->opening, h->node->session.up ? -ETIMEDOUT : -ENOTCONN, 0);
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
	uint64_t ns = expire_openings(n, now);
	struct query *y;

	while (!list_empty(&n->queries)) {
		y = container_of(n->queries.next, struct query, of_node);
		if (y->due > now) {
			ns = sooner(ns, y->due, now);
			break;
		}
		sync_ask_end_query(y, n->session.up ? -ETIMEDOUT : -ENOTCONN, 0);
	}
	if (n->lease_end)
		ns = sooner(ns, n->lease_end, now);
	if (!n->renewing && has_something(n))
		ns = sooner(ns, n->renew_ns, now);
	return ns;
}
