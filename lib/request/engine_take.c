// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests out of a seat's ring: when they are accepted, and what is checked. */
#include <errno.h>

#include "engine_priv.h"

#define AHEAD	8U	/* slots: their way here takes as long as some requests do */

/* By turn: urgent, normal, bulk; a class that there is not is refused as a normal one. */
static unsigned int rank_of(unsigned int cls)
{
	switch (cls) {
	case RGATE_CLASS_URGENT:
		return 0;
	case RGATE_CLASS_BULK:
		return 2;
	default:
		return 1;
	}
}

static bool published(const struct rgate_seat *s)
{
	const struct rgate_request *slot = &s->area.requests[s->taken & s->area.req_mask];

	return __atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) ==
	       rgate_area_req_lap(&s->area, s->taken);
}

/*
 * The next request, copied once: the client can write its slot at any time. Words are read
 * as such, so that each is one that the client has written.
 */
static bool look(struct rgate_seat *s)
{
	const uint64_t *from = (const void *)&s->area.requests[s->taken & s->area.req_mask];
	uint64_t lap;
	size_t i;

	if (s->have_head)
		return true;
	if (!published(s))
		return false;
	__builtin_prefetch(&s->area.requests[(s->taken + AHEAD) & s->area.req_mask]);
#pragma GCC unroll 8
	for (i = 0; i < sizeof(s->now.words) / sizeof(s->now.words[0]); i++)
		s->now.words[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	s->have_head = true;
	lap = rgate_area_req_lap(&s->area, s->taken);
	if ((s->taken + 1) % RGATE_REQ_BATCH == 0)
		__atomic_store_n(rgate_area_req_credit(&s->area, s->taken), lap,
				 __ATOMIC_RELEASE);
	s->taken++;
	return true;
}

/* Credits that the client has no completions for are of no account. */
static bool credited(const struct rgate_seat *s)
{
	return s->returned + RGATE_REQ_BATCH <= s->posted &&
	       __atomic_load_n(rgate_area_comp_credit(&s->area, s->returned),
			       __ATOMIC_ACQUIRE) == rgate_area_comp_lap(&s->area, s->returned);
}

/* Places for so many more completions, besides those of what is under way? */
static bool place(struct rgate_seat *s, uint32_t n)
{
	const uint64_t places = s->area.comp_mask + 1;

	while (s->posted - s->returned + s->reserved + n > places) {
		if (!credited(s))
			return false;
		s->returned += RGATE_REQ_BATCH;
	}
	return true;
}

/* What a request may name of the session, by the engine's own numbers */
static int check_mem(const struct rgate_seat *s, const struct rgate_request *q)
{
	if (q->mem != RGATE_REQ_MEM_SESSION)
		return -ENOENT;
	return q->off <= s->mem_len && q->len <= s->mem_len - q->off ? 0 : -ERANGE;
}

/*
 * Places that are not there now come free in no known time, with what has them: who asks for many
 * does not wait for that. A batch of them stays for others, as credits come by batches: one that
 * cancels gets through.
 */
static int check_multi(const struct rgate_seat *s, const struct rgate_request *q)
{
	const uint64_t places = s->area.comp_mask + 1 - RGATE_REQ_BATCH;
	const struct user *u = s->user;

	if (q->flags & (RGATE_REQ_LINK | RGATE_REQ_DRAIN | RGATE_REQ_NO_COMPLETION) ||
	    q->a1 < 2 || q->a1 > RGATE_REQ_PLACES_MAX)
		return -EINVAL;
	if (s->reserved + q->a1 > places)
		return -ENOSPC;
	return u->limits.requests && u->reserved + q->a1 > u->limits.requests ? -EDQUOT : 0;
}

static int check_fields(const struct rgate_seat *s, const struct rgate_request *q, uint32_t uses)
{
	if ((q->a0 && !(uses & RGATE_USES_A0)) || (q->a1 && !(uses & RGATE_USES_A1)) ||
	    (q->handle && !(uses & RGATE_USES_HANDLE)))
		return -EINVAL;
	if (uses & RGATE_USES_MEM)
		return check_mem(s, q);
	return q->mem || q->off || q->len ? -EINVAL : 0;
}

/* Finds the operation: 0, or what the request ends with */
static int check(struct rgate_req *r)
{
	const struct rgate_seat *s = r->seat;
	const struct rgate_request *q = &r->q;
	const struct rgate_limits *lim = &s->user->limits;
	unsigned int number = q->op >> RGATE_REQ_OP_SHIFT;
	unsigned int op = q->op & ((1U << RGATE_REQ_OP_SHIFT) - 1);
	const struct service *to;
	uint32_t uses;
	int err;

	if (q->owner != s->owner)
		return -ESTALE;
	if (q->flags & ~RGATE_REQ_FLAGS || q->cls >= RGATE_CLASS_COUNT)
		return -EINVAL;
	if (number >= RGATE_REQ_SERVICES || op >= RGATE_REQ_OPS)
		return -EOPNOTSUPP;
	to = &s->engine->service[number];
	if (!(to->ops & 1ULL << op))
		return -EOPNOTSUPP;
	if (!(lim->ops[number] & 1ULL << op) ||
	    (lim->classes && !(lim->classes & 1U << q->cls)))
		return -EACCES;
	uses = to->s->ops[op].uses;
	if (q->flags & RGATE_REQ_MULTI) {
		err = uses & RGATE_USES_MULTI ? check_multi(s, q) : -EOPNOTSUPP;
		if (err)
			return err;
		uses |= RGATE_USES_A1;
	}
	err = check_fields(s, q, uses);
	if (err)
		return err;
	r->op = &to->s->ops[op];
	r->ctx = to->ctx;
	return 0;
}

/*
 * Has the user as much under way as he may? The engine's own operations are over at once, and
 * may begin all the same, and those with many completions are refused: but for what would wait in a
 * chain, which takes memory.
 */
static bool is_beyond(const struct rgate_seat *s)
{
	const struct rgate_request *q = &s->now.q;
	const struct user *u = s->user;

	return u->limits.requests && u->reserved >= u->limits.requests &&
	       (s->chain == CHAIN_RUNS || (q->op >> RGATE_REQ_OP_SHIFT != RGATE_REQ_CORE &&
					   !(q->flags & RGATE_REQ_MULTI)));
}

/* May it begin, for what its user and the requests before it are doing? */
static bool hindered(struct rgate_seat *s)
{
	struct user *u = s->user;

	if (s->drain || (s->now.q.flags & RGATE_REQ_DRAIN && s->under_way)) {
		seat_cool(s);
	} else if (is_beyond(s)) {
		/* In their order: what ends makes the first of them hot. */
		seat_cool(s);
		list_add_tail(&u->blocked, &s->turn);
	} else {
		return false;
	}
	s->blocked = true;
	return true;
}

/* Where it stands in a chain; @s->chain is what the one before it has left. */
static void link_in(struct rgate_seat *s, struct rgate_req *r)
{
	enum chain before = s->chain;

	s->chain = CHAIN_NONE;
	if (before == CHAIN_RUNS) {
		r->prev = s->tail;
		s->tail->next = r;
	}
	if (before == CHAIN_BROKEN)
		r->why = -ECANCELED;
	if (r->q.flags & RGATE_REQ_LINK) {
		s->chain = CHAIN_RUNS;
		s->tail = r;
	}
	if (before == CHAIN_RUNS)
		req_wait(r);
	else
		req_begin(r);
}

/* What it needs while it is under way */
static int prepare(struct rgate_req *r)
{
	int err = r->q.flags & RGATE_REQ_MULTI ? multi_new(r) : 0;

	return !err && r->q.deadline_us ? timer_add(r->seat->engine, r) : err;
}

/* What the next one ends with. Alone it may be one that needs none */
static int without_memory(struct rgate_seat *s)
{
	struct rgate_req *r = &s->now;

	if (s->chain != CHAIN_NONE || r->q.flags || check(r) || !(r->op->uses & RGATE_USES_ENDS))
		return -ENOMEM;
	return req_drop(r);
}

static void accept_one(struct rgate_seat *s)
{
	struct rgate_engine *e = s->engine;
	struct rgate_req *r = req_alloc(e);

	s->have_head = false;
	count(&e->stats.accepted, 1);
	count(&s->user->accepted, 1);
	if (!r) {
		seat_post(s, s->now.q.cookie, without_memory(s), 0, 0);
		s->chain = s->now.q.flags & RGATE_REQ_LINK ? CHAIN_BROKEN : CHAIN_NONE;
		return;
	}
	r->q = s->now.q;
	r->seat = s;
	r->result = check(r);
	if (r->result) {
		count(&e->stats.refused, 1);
		count(&s->user->refused, 1);
	} else {
		r->places = req_places(&r->q);
		r->result = prepare(r);
	}
	if (r->result)
		r->op = NULL;
	s->under_way++;
	s->reserved += r->places;
	s->user->reserved += r->places;
	count(&s->user->under_way, 1);
	count(&e->stats.under_way, 1);
	if (r->q.flags & RGATE_REQ_DRAIN)
		s->drain = r;
	link_in(s, r);
}

/* Answered, and not published yet; none of them is under way any more */
struct run {
	uint64_t from;
	uint32_t n;
};

/* Can it be answered on the spot? Then it has its operation. What is refused goes the long way. */
static bool is_quick(struct rgate_seat *s)
{
	struct rgate_req *r = &s->now;

	return s->chain == CHAIN_NONE && !r->q.flags && !check(r) &&
	       r->op->uses & RGATE_USES_NO_TIME;
}

/* The first one's lap is stored last: a client that polls sees all of a run at once. */
static void run_end(struct rgate_seat *s, struct run *run)
{
	if (!run->n)
		return;
	count(&s->engine->stats.accepted, run->n);
	count(&s->user->accepted, run->n);
	seat_publish(s, run->from);
	seat_posted(s, run->n);
	run->n = 0;
}

static void run_add(struct rgate_seat *s, struct run *run)
{
	struct rgate_req *r = &s->now;
	int result;

	r->value = 0;
	result = r->op->begin(r, r->ctx);
	s->have_head = false;
	seat_write(s, s->posted, r->q.cookie, result, 0, result < 0 ? 0 : r->value);
	if (run->n++)
		seat_publish(s, s->posted);
	else
		run->from = s->posted;
	s->posted++;
	if (run->n == RGATE_REQ_BATCH)
		run_end(s, run);
}

/*
 * Those that follow one which was answered on the spot, and have the same first word: operation,
 * flags, class and owner. What check() and hindered() have found of that one holds for them, too,
 * as nothing has begun since, nor ended; but their fields are their own.
 */
static unsigned int run_more(struct rgate_seat *s, struct run *run, unsigned int most)
{
	const struct rgate_request *q = &s->now.q;
	const uint64_t first = s->now.words[0];
	const uint32_t uses = s->now.op->uses;
	unsigned int n = 0;

	while (n < most && look(s) && s->now.words[0] == first &&
	       !check_fields(s, q, uses) && place(s, 1)) {
		n += req_cost(q);
		run_add(s, run);
	}
	return n;
}

/* Places that the next one needs; of one that is refused only its answer's */
static uint32_t needs(const struct rgate_seat *s)
{
	const struct rgate_request *q = &s->now.q;

	return q->flags & RGATE_REQ_MULTI && !check_multi(s, q) ? (uint32_t)q->a1 : 1;
}

/* The next one: TAKE_MORE: it may begin, if its class has its turn */
static enum taken next(struct rgate_seat *s)
{
	if (!look(s))
		return TAKE_EMPTY;
	if (hindered(s))
		return TAKE_BLOCKED;
	return place(s, needs(s)) ? TAKE_MORE : TAKE_FULL;
}

unsigned int seat_take(struct rgate_seat *s, unsigned int rank, unsigned int most,
		       enum taken *why)
{
	struct run run = { .n = 0 };
	unsigned int n = 0;

	*why = TAKE_MORE;
	while (n < most) {
		*why = next(s);
		if (*why != TAKE_MORE)
			break;
		/* A visit begins with the class that it is for; better ones may follow. */
		if (n ? rank_of(s->now.q.cls) > rank : rank_of(s->now.q.cls) != rank)
			break;
		s->quiet = 0;
		n += req_cost(&s->now.q);
		if (is_quick(s)) {
			run_add(s, &run);
			n += n < most ? run_more(s, &run, most - n) : 0;
		} else {
			run_end(s, &run);
			accept_one(s);
		}
	}
	run_end(s, &run);
	if (*why == TAKE_FULL)
		seat_pass_on(s);
	return n;
}

bool seat_park(struct rgate_seat *s, enum taken why)
{
	uint32_t *need = &s->area.server->need;

	__atomic_store_n(need, why == TAKE_FULL ? RGATE_REQ_NEED_CREDIT : RGATE_REQ_NEED_REQUEST,
			 __ATOMIC_RELAXED);
	/* Against the client's: request or credit, fence, need there. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (why == TAKE_FULL ? credited(s) : published(s)) {
		__atomic_store_n(need, 0, __ATOMIC_RELAXED);
		return false;
	}
	seat_cool(s);
	s->parked = true;
	/* Likewise: RGATE_REQ_WANT_NEED, fence, need there */
	if (__atomic_load_n(&s->area.client->want, __ATOMIC_RELAXED) == RGATE_REQ_WANT_NEED)
		seat_wake(s);
	return true;
}
