// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests out of a seat's ring: when they are accepted, and what is checked. */
#include <errno.h>
#include <string.h>

#include "engine_priv.h"

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
	uint64_t copy[sizeof(struct rgate_request) / sizeof(uint64_t)];
	uint64_t lap;
	size_t i;

	if (s->have_head)
		return true;
	if (!published(s))
		return false;
	for (i = 0; i < sizeof(copy) / sizeof(copy[0]); i++)
		copy[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	memcpy(&s->head, copy, sizeof(copy));
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

/* A place for one more completion, besides those of what is under way? */
static bool place(struct rgate_seat *s)
{
	const uint64_t places = s->area.comp_mask + 1;

	while (s->posted - s->returned + s->under_way >= places) {
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
	err = check_fields(s, q, to->s->ops[op].uses);
	if (err)
		return err;
	r->op = &to->s->ops[op];
	r->ctx = to->ctx;
	return 0;
}

/*
 * Has the user as much under way as he may? The engine's own operations are over at once, and
 * may begin all the same; but for those that would wait in a chain, which takes memory.
 */
static bool is_beyond(const struct rgate_seat *s)
{
	const struct user *u = s->user;

	return u->limits.requests && u->under_way >= u->limits.requests &&
	       (s->chain == CHAIN_RUNS || s->head.op >> RGATE_REQ_OP_SHIFT != RGATE_REQ_CORE);
}

/* May it begin, for what its user and the requests before it are doing? */
static bool hindered(struct rgate_seat *s)
{
	struct user *u = s->user;

	if (s->drain || (s->head.flags & RGATE_REQ_DRAIN && s->under_way)) {
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

static void accept_one(struct rgate_seat *s)
{
	struct rgate_engine *e = s->engine;
	struct rgate_req *r = req_alloc(e);

	s->have_head = false;
	count(&e->stats.accepted, 1);
	count(&s->user->accepted, 1);
	if (!r) {
		s->chain = s->head.flags & RGATE_REQ_LINK ? CHAIN_BROKEN : CHAIN_NONE;
		seat_post(s, s->head.cookie, -ENOMEM, 0);
		return;
	}
	r->q = s->head;
	r->seat = s;
	s->under_way++;
	count(&s->user->under_way, 1);
	count(&e->stats.under_way, 1);
	r->result = check(r);
	if (r->result) {
		count(&e->stats.refused, 1);
		count(&s->user->refused, 1);
	} else if (r->q.deadline_us) {
		r->result = timer_add(e, r);
	}
	if (r->result)
		r->op = NULL;
	if (r->q.flags & RGATE_REQ_DRAIN)
		s->drain = r;
	link_in(s, r);
}

unsigned int seat_take(struct rgate_seat *s, unsigned int rank, unsigned int most,
		       enum taken *why)
{
	unsigned int n = 0;

	while (n < most) {
		if (!look(s)) {
			*why = TAKE_EMPTY;
			return n;
		}
		if (hindered(s)) {
			*why = TAKE_BLOCKED;
			return n;
		}
		if (!place(s)) {
			seat_pass_on(s);
			*why = TAKE_FULL;
			return n;
		}
		/* A visit begins with the class that it is for; better ones may follow. */
		if (n ? rank_of(s->head.cls) > rank : rank_of(s->head.cls) != rank)
			break;
		s->quiet = 0;
		n += req_cost(&s->head);
		accept_one(s);
	}
	*why = TAKE_MORE;
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
	return true;
}
