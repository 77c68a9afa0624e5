// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Queues of other nodes. A session has a caller at each node that it has queues of, and with it all
 * that it does there ends, whichever of the two nodes, or the session, ends first. A handle here
 * stands for one there; when the node is lost it stands for nothing, and is only good for CLOSE.
 */
#include <errno.h>
#include <stdlib.h>

#include "board.h"
#include "queue_priv.h"

/* ---- Sessions ---- */

int queue_away_node(const struct queue_service *sv, const struct rgate_req *r, uint32_t *node)
{
	const uint64_t number = rgate_req_get(r)->a0;

	*node = BOARD_HERE;
	if (number == RGATE_QUEUE_HERE)
		return 0;
	return sv->gate ? gate_service_find(sv->gate, number, node) : -ENXIO;
}

static struct visit *find_visit(struct queue_service *sv, const struct rgate_seat *seat,
				uint32_t node)
{
	struct visit *v;
	struct link *l;

	for (l = sv->visits.next; l != &sv->visits; l = l->next) {
		v = container_of(l, struct visit, of_service);
		if (v->seat == seat && v->node == node)
			return v;
	}
	return NULL;
}

static int new_visit(struct queue_service *sv, struct rgate_seat *seat, uint32_t node,
		     struct visit **out)
{
	struct visit *v = calloc(1, sizeof(*v));
	uint32_t handle;
	int err;

	if (!v)
		return -ENOMEM;
	v->named = NAMED_VISIT;
	v->seat = seat;
	v->node = node;
	err = rgate_seat_handle(seat, RGATE_REQ_QUEUE, v, &handle);
	if (err) {
		free(v);
		return err;
	}
	list_add_tail(&sv->visits, &v->of_service);
	*out = v;
	return 0;
}

/* Is all still there that it had at the node? */
static bool is_alive(struct visit *v)
{
	if (v->caller && gate_caller_is_lost(v->caller)) {
		gate_caller_leave(v->caller);
		v->caller = NULL;
		v->life++;
	}
	return v->caller;
}

/* Of the request's session, with a caller: another one than that which was lost */
static int visit_of(struct queue_service *sv, struct rgate_req *r, uint32_t node,
		    struct visit **out)
{
	struct rgate_seat *seat = rgate_req_seat(r);
	int err = 0;

	*out = find_visit(sv, seat, node);
	if (!*out)
		err = new_visit(sv, seat, node, out);
	if (err || is_alive(*out))
		return err;
	return gate_caller_new(sv->gate, seat, node, &(*out)->caller);
}

uint64_t queue_away_lacks(struct queue_service *sv, const struct rgate_seat *seat, uint32_t node)
{
	const struct visit *v = find_visit(sv, seat, node);

	return v ? __atomic_load_n(&v->lacks, __ATOMIC_RELAXED) : 0;
}

void queue_visit_drop(struct visit *v)
{
	if (v->caller)
		gate_caller_leave(v->caller);
	list_del(&v->of_service);
	free(v);
}

/* ---- Handles ---- */

static bool has_failed(const struct away *a)
{
	return __atomic_load_n(&a->failed, __ATOMIC_ACQUIRE);
}

/* Whoever ends the request calls it: its handle can be taken away in the engine's thread alone. */
static void fails(struct queue_service *sv, struct away *a)
{
	__atomic_store_n(&a->failed, true, __ATOMIC_RELEASE);
	a->next = __atomic_load_n(&sv->failed, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&sv->failed, &a->next, a, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

static void take_failed(struct queue_service *sv)
{
	struct away *a, *next;

	/* The engine comes by often, and nearly always there is none. */
	if (!__atomic_load_n(&sv->failed, __ATOMIC_RELAXED))
		return;
	for (a = __atomic_exchange_n(&sv->failed, NULL, __ATOMIC_ACQUIRE); a; a = next) {
		next = a->next;
		if (a->seat)
			(void)rgate_seat_release(a->seat, RGATE_REQ_QUEUE, a->number);
		free(a);
	}
}

void queue_away_drop(struct queue_service *sv, struct away *a)
{
	a->seat = NULL;
	/* Those are freed with the others of their kind. */
	if (!has_failed(a))
		free(a);
	take_failed(sv);
}

void queue_away_sweep(struct queue_service *sv)
{
	take_failed(sv);
}

/* ---- Requests ---- */

struct opening {
	struct queue_service *sv;
	struct gate_caller *caller;
	struct away *a;
};

static int is_open(void *ctx, int result, uint64_t *value)
{
	struct opening *o = ctx;
	struct away *a = o->a;

	if (result > 0 || (!result && (!*value || *value > UINT32_MAX)))
		result = -EPROTO;
	if (result == -ENOENT)
		__atomic_store_n(&a->visit->lacks, gate_caller_life(o->caller), __ATOMIC_RELAXED);
	if (result) {
		fails(o->sv, a);
	} else {
		const uint32_t number = a->number;

		a->born = gate_caller_life(o->caller);
		__atomic_store_n(&a->handle, (uint32_t)*value, __ATOMIC_RELEASE);
		/* A client that guesses its number may have it closed, and freed, from here on. */
		*value = number;
	}
	free(o);
	return result;
}

static int ask_for_it(struct queue_service *sv, struct rgate_req *r, struct away *a)
{
	struct gate_as as = { .over = is_open, .sent = UINT32_MAX };
	struct opening *o = calloc(1, sizeof(*o));
	int result;

	if (!o)
		return -ENOMEM;
	*o = (struct opening){ .sv = sv, .caller = a->visit->caller, .a = a };
	as.ctx = o;
	result = gate_forward(a->visit->caller, r, &as);
	if (result != RGATE_REQ_LATER)
		free(o);
	return result;
}

int queue_away_open(struct queue_service *sv, struct rgate_req *r, uint32_t node,
		    const struct queue_open *as)
{
	struct visit *v;
	struct away *a;
	int result;

	take_failed(sv);
	result = visit_of(sv, r, node, &v);
	if (result)
		return result;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	*a = (struct away){ .named = NAMED_AWAY, .visit = v, .life = v->life, .as = *as,
			    .seat = rgate_req_seat(r) };
	result = rgate_seat_handle(a->seat, RGATE_REQ_QUEUE, a, &a->number);
	if (result) {
		free(a);
		return result;
	}
	result = ask_for_it(sv, r, a);
	if (result != RGATE_REQ_LATER) {
		(void)rgate_seat_release(a->seat, RGATE_REQ_QUEUE, a->number);
		free(a);
	}
	return result;
}

int queue_away_list(struct queue_service *sv, struct rgate_req *r, uint32_t node)
{
	const struct gate_as as = { .sent = UINT32_MAX };
	struct visit *v;
	int err;

	take_failed(sv);
	err = visit_of(sv, r, node, &v);
	return err ? err : gate_forward(v->caller, r, &as);
}

int queue_away_mirror(struct queue_service *sv, struct rgate_req *r, uint32_t node)
{
	if (!keep_is_own(&sv->keeper, rgate_req_seat(r)))
		return -EINVAL;
	return queue_away_list(sv, r, node);
}

/*
 * A home that says nothing for too long may have done it, where -ETIMEDOUT of a program's own
 * limits says that nothing was done. What it had there is lost with it in any case.
 */
static int is_known(void *ctx, int result, uint64_t *value)
{
	const struct rgate_req *r = ctx;

	(void)value;
	return result == -ETIMEDOUT && !rgate_req_get(r)->deadline_us ? -ECONNRESET : result;
}

/* What the home takes is kept until it says what has become of it. */
static int submit(struct queue_service *sv, struct rgate_req *r, struct away *a, struct gate_as *as)
{
	struct gate_caller *caller = a->visit->caller;
	struct keeping *g;
	int result;

	/* Who follows is the keeper. */
	if (queue_high(rgate_req_get(r)->a1))
		return -EINVAL;
	queue_look_at_clock(sv);
	result = keep_begin(&sv->keeper, r, a->visit->node, &a->as, caller, &g);
	if (result)
		return result;
	as->a1 = RGATE_SUBMIT_A1(sv->keeper.tag, 0);
	if (g) {
		as->over = keep_over;
		as->ctx = g;
	}
	result = gate_forward(caller, r, as);
	if (g && result != RGATE_REQ_LATER)
		keep_undo(g);
	return result;
}

/* What programs would submit by that nobody would keep. */
static bool is_daemons(uint32_t op)
{
	return op == RGATE_REQ_QUEUE_AGAIN || op == RGATE_REQ_QUEUE_COPIES;
}

int queue_away_ask(struct queue_service *sv, struct rgate_req *r, struct away *a)
{
	struct gate_as as = {
		.handle = __atomic_load_n(&a->handle, __ATOMIC_ACQUIRE),
		.a0 = rgate_req_get(r)->a0, .sent = UINT32_MAX, .over = is_known, .ctx = r,
	};

	if (!as.handle)
		return -EBADF;
	if (is_daemons(rgate_req_get(r)->op) && !keep_is_own(&sv->keeper, rgate_req_seat(r)))
		return -EINVAL;
	/* The rest of it is for what comes back. */
	if (rgate_req_get(r)->op == RGATE_REQ_QUEUE_COPIES)
		as.sent = sizeof(struct rgate_queue_copies);
	if (!is_alive(a->visit) || a->life != a->visit->life)
		return -ECONNRESET;
	if (rgate_req_get(r)->op == RGATE_REQ_QUEUE_SUBMIT)
		return submit(sv, r, a, &as);
	return gate_forward(a->visit->caller, r, &as);
}

int queue_away_close(struct queue_service *sv, struct rgate_req *r, struct away *a)
{
	int result = queue_away_ask(sv, r, a);

	/* What is lost is closed. */
	if (result == -ECONNRESET)
		result = 0;
	if (result && result != RGATE_REQ_LATER)
		return result;
	(void)rgate_seat_release(a->seat, RGATE_REQ_QUEUE, a->number);
	free(a);
	return result;
}
