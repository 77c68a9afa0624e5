// SPDX-License-Identifier: MIT OR GPL-2.0
/* The life of a request from its begin to its completion. */
#include <errno.h>
#include <stdlib.h>

#include "engine_priv.h"

#define READY_TURN	64U	/* of chains, as much as is begun in one turn */

/* ---- Memory ---- */

static void free_later(struct rgate_engine *e, struct rgate_req *r)
{
	r->queue = e->free;
	e->free = r;
}

struct rgate_req *req_alloc(struct rgate_engine *e)
{
	struct req_chunk *c;
	struct rgate_req *r;
	unsigned int i;

	if (!e->free) {
		c = malloc(sizeof(*c));
		if (!c)
			return NULL;
		c->next = e->chunks;
		e->chunks = c;
		for (i = CHUNK; i--;)
			free_later(e, &c->req[i]);
	}
	r = e->free;
	e->free = r->queue;
	r->op = NULL;
	r->ctx = r->data = NULL;
	r->value = 0;
	r->result = r->why = 0;
	r->state = REQ_WAITS;
	r->tracked = r->asked = false;
	r->places = 1;
	r->multi = NULL;
	r->prev = r->next = NULL;
	r->timer.place = 0;
	return r;
}

int req_init(struct rgate_engine *e)
{
	return index_init(&e->cookies);
}

void req_free_all(struct rgate_engine *e)
{
	struct req_chunk *c;

	while (e->chunks) {
		c = e->chunks;
		e->chunks = c->next;
		free(c);
	}
	heap_fini(&e->timers);
	index_fini(&e->cookies);
}

/* ---- Who is under way ---- */

/*
 * Both halves of the product, and those mixed again: each bit of the cookie counts for each one
 * of the place. With less a client knew cookies that share a place, whatever the secret is.
 */
static uint64_t place_of(const struct rgate_engine *e, const struct rgate_seat *s, uint64_t cookie)
{
	__extension__ unsigned __int128 all = cookie ^ e->secret[0] ^ (uint64_t)s->owner << 32;
	uint64_t h;

	all *= e->secret[1];
	h = (uint64_t)all ^ (uint64_t)(all >> 64);
	h = (h ^ h >> 32) * e->secret[1];
	return h >> 32;
}

static void track(struct rgate_req *r)
{
	struct rgate_seat *s = r->seat;
	struct rgate_engine *e = s->engine;

	if (r->tracked)
		return;
	r->tracked = true;
	list_add_tail(&s->reqs, &r->of_seat);
	index_add(&e->cookies, &r->of_cookie, place_of(e, s, r->q.cookie));
}

static void untrack(struct rgate_req *r)
{
	if (!r->tracked)
		return;
	r->tracked = false;
	list_del(&r->of_seat);
	index_del(&r->seat->engine->cookies, &r->of_cookie);
}

struct rgate_req *req_find(struct rgate_seat *s, uint64_t cookie)
{
	struct link *b = index_at(&s->engine->cookies, place_of(s->engine, s, cookie)), *l;
	struct rgate_req *r;

	for (l = b->next; l != b; l = l->next) {
		r = container_of(l, struct rgate_req, of_cookie.link);
		if (r->seat == s && r->q.cookie == cookie)
			return r;
	}
	return NULL;
}

/* ---- Its end ---- */

void seat_posted(struct rgate_seat *s, uint64_t n)
{
	struct rgate_engine *e = s->engine;

	count(&e->stats.completions, n);
	count(&s->user->completions, n);
	if (s->dirty)
		return;
	s->dirty = true;
	s->dirty_next = e->dirty;
	e->dirty = s;
}

void seat_post(struct rgate_seat *s, uint64_t cookie, int result, uint32_t flags, uint64_t value)
{
	seat_write(s, s->posted, cookie, result, flags, value);
	seat_publish(s, s->posted++);
	seat_posted(s, 1);
}

static void ready(struct rgate_req *r)
{
	struct rgate_engine *e = r->seat->engine;

	r->state = REQ_READY;
	r->queue = NULL;
	*e->ready_last = r;
	e->ready_last = &r->queue;
}

/* The rest of the chain, here or still in the ring, goes on or not. */
static void unchain(struct rgate_req *r, int result)
{
	struct rgate_seat *s = r->seat;

	if (r->prev)
		r->prev->next = NULL;
	if (r->next) {
		r->next->prev = NULL;
		if (result < 0 && !r->next->why)
			r->next->why = -ECANCELED;
		ready(r->next);
	} else if (s->chain == CHAIN_RUNS && s->tail == r) {
		s->chain = result < 0 ? CHAIN_BROKEN : CHAIN_GOES_ON;
		s->tail = NULL;
		/* It need not wait in the chain any more: is_beyond() in engine_take.c */
		if (s->blocked && (s->now.q.op >> RGATE_REQ_OP_SHIFT == RGATE_REQ_CORE ||
				   s->now.q.flags & RGATE_REQ_MULTI))
			seat_hot(s);
	}
}

void seat_pass_on(struct rgate_seat *s)
{
	struct user *u = s->user;

	if (!list_empty(&u->blocked) && u->reserved < u->limits.requests)
		seat_hot(container_of(u->blocked.next, struct rgate_seat, turn));
}

/* What waited for something of this session's, or of this user's, to end */
static void unblock(struct rgate_seat *s)
{
	if (s->blocked && list_empty(&s->turn))
		seat_hot(s);
	/* Not one that has to go back behind the others: what was refused took nothing. */
	seat_pass_on(s);
}

/* Its completion, if it has one, takes one of its places: of the others no credit comes. */
static void give_back(struct rgate_req *r, bool told)
{
	struct rgate_seat *s = r->seat;

	s->reserved -= r->places;
	s->user->reserved -= r->places;
	if (s->parked && (!told || r->places > 1))
		seat_hot(s);
	unblock(s);
	/* There may be something for more than one of those that wait. */
	if (r->places > 1)
		seat_unblock_all(s->user);
}

static void finish(struct rgate_req *r, int result)
{
	struct rgate_seat *s = r->seat;
	struct rgate_engine *e = s->engine;
	bool told;

	if (r->why) {
		result = r->why;
		count(result == -ETIMEDOUT ? &e->stats.timed_out : &e->stats.cancelled, 1);
	}
	untrack(r);
	timer_del(e, r);
	unchain(r, result);
	if (s->drain == r)
		s->drain = NULL;
	s->under_way--;
	count(&s->user->under_way, (uint64_t)-1);
	count(&e->stats.under_way, (uint64_t)-1);
	e->dying |= s->leaving;
	told = !s->leaving && (result < 0 || !(r->q.flags & RGATE_REQ_NO_COMPLETION));
	if (told)
		seat_post(s, r->q.cookie, result, 0, result < 0 ? 0 : r->value);
	give_back(r, told);
	free(r->multi);
	free_later(e, r);
}

/* ---- Its begin ---- */

int req_drop(const struct rgate_req *r)
{
	return handle_drop(r->seat, r->q.op >> RGATE_REQ_OP_SHIFT, r->q.handle);
}

void req_begin(struct rgate_req *r)
{
	int result;

	if (r->why || !r->op) {
		finish(r, r->result);
		return;
	}
	r->state = REQ_BEGUN;
	result = r->op->begin(r, r->ctx);
	if (result == -ENOMEM && r->op->uses & RGATE_USES_ENDS)
		result = req_drop(r);
	if (result == RGATE_REQ_LATER)
		track(r);
	else
		finish(r, result);
}

void req_wait(struct rgate_req *r)
{
	track(r);
}

bool req_run_ready(struct rgate_engine *e)
{
	struct rgate_req *r;
	unsigned int n = 0;

	while (e->ready_first && n < READY_TURN) {
		r = e->ready_first;
		n += r->why ? 1 : req_cost(&r->q);
		e->ready_first = r->queue;
		if (!e->ready_first)
			e->ready_last = &e->ready_first;
		if (r->seat->leaving)
			r->why = -ECANCELED;
		req_begin(r);
	}
	return e->ready_first;
}

/* ---- Ended by others ---- */

/* 0: it ends, or has ended, with @why; -EALREADY: it ends by itself */
int req_cancel(struct rgate_req *r, int why)
{
	if (r->why)
		return -EALREADY;
	if (r->state != REQ_BEGUN) {
		r->why = why;
		/* A ready one is about to begin, and then ends. */
		if (r->state == REQ_WAITS)
			finish(r, why);
		return 0;
	}
	if (r->asked || !r->op->cancel)
		return -EALREADY;
	r->asked = true;
	if (r->op->cancel(r, r->ctx))
		return -EALREADY;
	r->why = why;
	return 0;
}

void req_reap(struct rgate_engine *e)
{
	struct rgate_req *r, *next, *list = NULL;

	/* Under the lock, so that who has brought it does not touch the engine any more. */
	pthread_mutex_lock(&e->end_lock);
	r = e->ended;
	__atomic_store_n(&e->ended, NULL, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&e->end_lock);
	for (; r; r = next) {
		next = r->queue;
		r->queue = list;
		list = r;
	}
	for (r = list; r; r = next) {
		next = r->queue;
		if (r->multi && !multi_reap(r))
			continue;
		if (r->op->over)
			r->op->over(r, r->ctx);
		finish(r, r->result);
	}
}

void req_bring(struct rgate_req *r)
{
	struct rgate_engine *e = r->seat->engine;

	if (r->multi && r->multi->listed)
		return;
	if (r->multi)
		r->multi->listed = true;
	r->queue = e->ended;
	__atomic_store_n(&e->ended, r, __ATOMIC_RELAXED);
	engine_wake(e);
}

void rgate_req_end(struct rgate_req *r, int result, uint64_t value)
{
	struct rgate_engine *e = r->seat->engine;

	r->result = result;
	r->value = value;
	pthread_mutex_lock(&e->end_lock);
	if (r->multi)
		r->multi->over = true;
	req_bring(r);
	pthread_mutex_unlock(&e->end_lock);
}

/* ---- What services ask of it ---- */

const struct rgate_request *rgate_req_get(const struct rgate_req *r)
{
	return &r->q;
}

struct rgate_seat *rgate_req_seat(const struct rgate_req *r)
{
	return r->seat;
}

void *rgate_req_mem(const struct rgate_req *r)
{
	return r->q.len ? (char *)r->seat->mem + r->q.off : NULL;
}

void rgate_req_set_data(struct rgate_req *r, void *data)
{
	r->data = data;
}

void *rgate_req_data(const struct rgate_req *r)
{
	return r->data;
}

void rgate_req_set_value(struct rgate_req *r, uint64_t value)
{
	r->value = value;
}

uint64_t rgate_req_value(const struct rgate_req *r)
{
	return r->value;
}
