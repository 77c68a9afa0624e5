// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync_priv.h"

static void lock(struct sync_service *sv)
{
	fair_lock(&sv->lock);
}

static void unlock(struct sync_service *sv)
{
	fair_unlock(&sv->lock);
}

/* What another node has to be told is, now or as soon as there is room. */
static void step(struct handle *h)
{
	sync_ask_step(h);
	sync_ask_pump(h->node);
}

/* @fn of the request's handle, or NULL */
static int on_handle(struct rgate_req *r, void *ctx,
		     int (*fn)(struct rgate_req *r, struct handle *h))
{
	int result;

	lock(ctx);
	result = fn(r, rgate_req_object(r));
	unlock(ctx);
	return result;
}

/* ---- Handles ---- */

static uint32_t service_of(const struct handle *h)
{
	return h->as.kind == SYNC_LOCK ? RGATE_REQ_LOCK : RGATE_REQ_BARRIER;
}

/* The session has it no more. It is freed, now or when its home knows that. */
static void let_go(struct handle *h, bool clean)
{
	handle_lost(h);
	h->seat = NULL;
	h->place = NULL;
	list_del(&h->dead);
	if (h->local) {
		sync_table_close(&h->sv->table, h->local, clean);
		sync_tell(h->sv);
		handle_free(h);
		return;
	}
	h->closing = true;
	h->clean = clean;
	if (h->state == HANDLE_OPEN || (h->state == HANDLE_OPENING && h->asking))
		step(h);
	else
		handle_free(h);
}

static void drop(void *object, void *ctx)
{
	struct sync_service *sv = ctx;

	lock(sv);
	let_go(object, false);
	unlock(sv);
}

/* Numbers of what could not be opened: their seats are there, or drop() had them. */
static void take_dead(struct sync_service *sv)
{
	struct handle *h;

	while (!list_empty(&sv->dead)) {
		h = container_of(sv->dead.next, struct handle, dead);
		(void)rgate_seat_release(h->seat, service_of(h), h->number);
		let_go(h, true);
	}
}

/* Of a request: 0, or -EBADF, -ESTALE */
static int usable(const struct handle *h)
{
	if (!h || h->closing || h->state == HANDLE_OPENING || h->state == HANDLE_DEAD)
		return -EBADF;
	return h->state == HANDLE_STALE ? -ESTALE : 0;
}

static void waits(struct rgate_req **at, struct rgate_req *r, void *data)
{
	*at = r;
	rgate_req_set_data(r, data);
}

/* ---- OPEN ---- */

/* -ENXIO: there is no such node. NULL: here */
static int node_of(struct sync_service *sv, uint64_t number, struct sync_node **node)
{
	uint32_t at;
	int err;

	err = board_find(sv->board, number, RGATE_SYNC_HERE, &at);
	*node = err || at == BOARD_HERE ? NULL : &sv->node[at];
	return err;
}

/* The client's copy of what it wants; its members and name are the client's to write. */
static int read_open(struct rgate_req *r, enum sync_kind kind, struct sync_open *as)
{
	const struct rgate_request *q = rgate_req_get(r);
	const struct rgate_sync_place *place = rgate_req_mem(r);

	if (q->len != sizeof(*place) || (uintptr_t)place % sizeof(uint64_t))
		return -EINVAL;
	*as = (struct sync_open){ .kind = kind, .owner = (uint32_t)q->a1,
				  .flags = (uint32_t)(q->a1 >> 32),
				  .members = __atomic_load_n(&place->members, __ATOMIC_RELAXED) };
	memcpy(as->name, place->name, sizeof(as->name));
	if (!sync_name_ok(as->name) || as->flags & ~RGATE_SYNC_FLAGS)
		return -EINVAL;
	if (kind == SYNC_LOCK)
		return as->members ? -EINVAL : 0;
	return as->members && as->members <= RGATE_BARRIER_MEMBERS ? 0 : -EINVAL;
}

static struct handle *make_handle(struct sync_service *sv, struct rgate_req *r,
				  const struct sync_open *as)
{
	struct handle *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->sv = sv;
	h->as = *as;
	h->seat = rgate_req_seat(r);
	h->uid = rgate_seat_uid(h->seat);
	h->place = rgate_req_mem(r);
	h->clean = true;
	list_init(&h->ready);
	list_init(&h->dead);
	list_init(&h->of_home);
	__atomic_store_n(&h->place->lease_ns, 0, __ATOMIC_RELEASE);
	return h;
}

static int open_here(struct sync_service *sv, struct rgate_req *r, struct handle *h)
{
	int err;

	err = sync_table_open(&sv->table, &sv->here, h->uid, &h->as, &h->local);
	if (err)
		return err;
	h->local->ctx = h;
	h->state = HANDLE_OPEN;
	/* Its lease is written in the hub's thread. */
	if (sv->o.hub)
		rgate_hub_wake(sv->o.hub);
	list_add_tail(&sv->handles, &h->of_home);
	rgate_req_set_value(r, h->number);
	return 0;
}

static int open_there(struct sync_node *n, struct rgate_req *r, struct handle *h)
{
	h->node = n;
	h->due = sync_now() + n->sv->lease_ns;
	list_add_tail(&n->handles, &h->of_home);
	waits(&h->opening, r, h);
	step(h);
	return RGATE_REQ_LATER;
}

static int open_at(struct sync_service *sv, struct rgate_req *r, const struct sync_open *as,
		   struct sync_node *n)
{
	struct handle *h = make_handle(sv, r, as);
	int result;

	if (!h)
		return -ENOMEM;
	result = rgate_seat_handle(h->seat, service_of(h), h, &h->number);
	if (result) {
		handle_free(h);
		return result;
	}
	result = n ? open_there(n, r, h) : open_here(sv, r, h);
	if (!result || result == RGATE_REQ_LATER)
		return result;
	(void)rgate_seat_release(h->seat, service_of(h), h->number);
	handle_free(h);
	return result;
}

static int begin_open(struct rgate_req *r, struct sync_service *sv, enum sync_kind kind)
{
	struct sync_node *n;
	struct sync_open as;
	int result;

	result = node_of(sv, rgate_req_get(r)->a0, &n);
	if (!result)
		result = read_open(r, kind, &as);
	if (result)
		return result;
	lock(sv);
	take_dead(sv);
	result = open_at(sv, r, &as, n);
	unlock(sv);
	return result;
}

static int open_lock(struct rgate_req *r, void *ctx)
{
	return begin_open(r, ctx, SYNC_LOCK);
}

static int open_barrier(struct rgate_req *r, void *ctx)
{
	return begin_open(r, ctx, SYNC_BARRIER);
}

static int close_it(struct rgate_req *r, struct handle *h)
{
	if (usable(h) == -EBADF)
		return -EBADF;
	(void)rgate_seat_release(h->seat, service_of(h), h->number);
	sync_end(&h->taking, -ECANCELED, 0);
	sync_end(&h->waiting, -ECANCELED, 0);
	if (h->node && h->state == HANDLE_OPEN) {
		waits(&h->ending, r, h);
		let_go(h, true);
		return RGATE_REQ_LATER;
	}
	let_go(h, true);
	return 0;
}

static int begin_close(struct rgate_req *r, void *ctx)
{
	return on_handle(r, ctx, close_it);
}

/* ---- Locks ---- */

static int take_here(struct rgate_req *r, struct handle *h)
{
	int err = sync_table_take(&h->sv->table, h->local, ++h->seq, h->flags);
	struct rgate_barrier_info info;

	if (err == -EPIPE) {
		claim_barrier_info(h->local, &info);
		handle_granted(h, err, 0, &info);
	}
	if (err && err != -EINPROGRESS)
		return err;
	h->taken = true;
	if (!err) {
		h->granted = false;
		handle_granted(h, 0, h->local->value, NULL);
		rgate_req_set_value(r, h->value);
		sync_tell(h->sv);
		return 0;
	}
	if (h->as.kind == SYNC_BARRIER)
		return 0;
	waits(&h->taking, r, h);
	return RGATE_REQ_LATER;
}

static int take(struct rgate_req *r, struct handle *h, uint32_t flags)
{
	int err = usable(h);

	if (err)
		return err;
	if (h->result)
		return h->result;
	/* A hold that is being given back comes before the next one. */
	if (h->taking || (!h->leaves && (h->taken || h->granted)))
		return -EALREADY;
	h->flags = flags;
	if (h->local)
		return take_here(r, h);
	h->wants = true;
	waits(&h->taking, r, h);
	step(h);
	return RGATE_REQ_LATER;
}

static int begin_acquire(struct rgate_req *r, void *ctx)
{
	const uint64_t flags = rgate_req_get(r)->a0;
	int result;

	if (flags & ~(uint64_t)RGATE_LOCK_FLAGS)
		return -EINVAL;
	lock(ctx);
	result = take(r, rgate_req_object(r), (uint32_t)flags);
	unlock(ctx);
	return result;
}

/* It neither has nor wants the lock from now on. */
static void give_back(struct handle *h)
{
	handle_lost(h);
	h->wants = false;
	if (h->local) {
		sync_table_drop(&h->sv->table, h->local);
		h->taken = h->granted = false;
		sync_tell(h->sv);
		return;
	}
	h->leaves = h->taken;
	step(h);
}

static int release(struct rgate_req *r, struct handle *h)
{
	int err = usable(h);

	if (err)
		return err;
	if (!h->granted || h->leaves)
		return -ENOLCK;
	if (!h->local)
		waits(&h->dropping, r, h);
	give_back(h);
	return h->local ? 0 : RGATE_REQ_LATER;
}

static int begin_release(struct rgate_req *r, void *ctx)
{
	return on_handle(r, ctx, release);
}

/* ---- Barriers ---- */

static int arrive(struct rgate_req *r, struct handle *h)
{
	return take(r, h, 0);
}

static int begin_arrive(struct rgate_req *r, void *ctx)
{
	return on_handle(r, ctx, arrive);
}

static int await(struct rgate_req *r, struct handle *h)
{
	void *room = rgate_req_mem(r);
	int err = usable(h);

	if (err)
		return err;
	if (h->waiting)
		return -EALREADY;
	if (!h->taken && !h->granted && !h->taking)
		return -ENOLCK;
	waits(&h->waiting, r, h);
	if (!h->granted)
		return RGATE_REQ_LATER;
	h->waiting = NULL;
	rgate_req_set_data(r, NULL);
	if (h->result && room)
		memcpy(room, &h->info, sizeof(h->info));
	h->granted = h->result;
	rgate_req_set_value(r, h->value);
	return h->result;
}

static int begin_wait(struct rgate_req *r, void *ctx)
{
	const uint32_t len = rgate_req_get(r)->len;

	if (len && len != sizeof(struct rgate_barrier_info))
		return -EINVAL;
	return on_handle(r, ctx, await);
}

/* ---- What there is ---- */

static int state_of(struct rgate_req *r, struct handle *h)
{
	struct sync_question q = { .op = SYNC_STATE };
	void *room = rgate_req_mem(r);
	int err = usable(h);

	if (err)
		return err;
	if (rgate_req_get(r)->len != (h->as.kind == SYNC_LOCK ? sizeof(struct rgate_lock_info) :
				      sizeof(struct rgate_barrier_info)))
		return -EINVAL;
	if (h->node) {
		q.claim = h->id;
		q.uid = h->uid;
		return sync_ask_query(h->node, r, &q);
	}
	if (h->as.kind == SYNC_LOCK) {
		struct rgate_lock_info info;

		claim_lock_info(h->local, &info);
		memcpy(room, &info, sizeof(info));
	} else {
		struct rgate_barrier_info info;

		claim_barrier_info(h->local, &info);
		memcpy(room, &info, sizeof(info));
	}
	return 0;
}

static int begin_state(struct rgate_req *r, void *ctx)
{
	return on_handle(r, ctx, state_of);
}

static int list(struct sync_service *sv, struct rgate_req *r, struct sync_node *n)
{
	const struct rgate_request *q = rgate_req_get(r);
	const struct sync_question ask = { .op = SYNC_LIST, .claim = q->a1,
					   .uid = rgate_seat_uid(rgate_req_seat(r)) };
	struct rgate_lock_info info;
	uint64_t next;

	if (n)
		return sync_ask_query(n, r, &ask);
	next = sync_table_list(&sv->table, ask.uid, q->a1, &info);
	if (!next)
		return 0;
	memcpy(rgate_req_mem(r), &info, sizeof(info));
	rgate_req_set_value(r, next);
	return 1;
}

static int begin_list(struct rgate_req *r, void *ctx)
{
	struct sync_node *n;
	int result;

	result = node_of(ctx, rgate_req_get(r)->a0, &n);
	if (!result && rgate_req_get(r)->len != sizeof(struct rgate_lock_info))
		result = -EINVAL;
	if (result)
		return result;
	lock(ctx);
	result = list(ctx, r, n);
	unlock(ctx);
	return result;
}

/* ---- Cancelled ---- */

static int cancel_query(struct rgate_req *r, void *ctx)
{
	struct query *y;

	lock(ctx);
	y = rgate_req_data(r);
	if (y)
		errand_end(&y->errand, -ECANCELED);
	unlock(ctx);
	return y ? 0 : -EALREADY;
}

/* The number of a handle that is not opened in the end is taken away with the next OPEN. */
static int cancel_open(struct rgate_req *r, void *ctx)
{
	struct sync_service *sv = ctx;
	struct handle *h;

	lock(sv);
	h = rgate_req_data(r);
	if (h) {
		sync_end(&h->opening, -ECANCELED, 0);
		h->closing = true;
		list_add_tail(&sv->dead, &h->dead);
	}
	unlock(sv);
	return h ? 0 : -EALREADY;
}

static int cancel_acquire(struct rgate_req *r, void *ctx)
{
	struct handle *h;

	lock(ctx);
	h = rgate_req_data(r);
	if (h) {
		sync_end(&h->taking, -ECANCELED, 0);
		give_back(h);
	}
	unlock(ctx);
	return h ? 0 : -EALREADY;
}

/* What the home was told stays so: the others may be through already. */
static int cancel_arrive(struct rgate_req *r, void *ctx)
{
	struct handle *h;

	lock(ctx);
	h = rgate_req_data(r);
	if (h) {
		h->wants = false;
		sync_end(&h->taking, -ECANCELED, 0);
	}
	unlock(ctx);
	return h ? 0 : -EALREADY;
}

/* Nobody waits for that it is done; what was begun goes on. */
static int cancel_waiting(struct rgate_req *r, void *ctx)
{
	struct handle *h;

	lock(ctx);
	h = rgate_req_data(r);
	if (h)
		sync_end(r == h->waiting ? &h->waiting : r == h->dropping ? &h->dropping :
			 &h->ending, -ECANCELED, 0);
	unlock(ctx);
	return h ? 0 : -EALREADY;
}

#define OP(number)	((number) & ((1U << RGATE_REQ_OP_SHIFT) - 1))

static const struct rgate_req_op lock_ops[] = {
	[OP(RGATE_REQ_LOCK_OPEN)] = {
		.name = "open", .uses = RGATE_USES_A0 | RGATE_USES_A1 | RGATE_USES_MEM,
		.begin = open_lock, .cancel = cancel_open,
	},
	[OP(RGATE_REQ_LOCK_ACQUIRE)] = {
		.name = "acquire", .uses = RGATE_USES_HANDLE | RGATE_USES_A0,
		.begin = begin_acquire, .cancel = cancel_acquire,
	},
	[OP(RGATE_REQ_LOCK_RELEASE)] = {
		.name = "release", .uses = RGATE_USES_HANDLE,
		.begin = begin_release, .cancel = cancel_waiting,
	},
	[OP(RGATE_REQ_LOCK_STATE)] = {
		.name = "state", .uses = RGATE_USES_HANDLE | RGATE_USES_MEM,
		.begin = begin_state, .cancel = cancel_query,
	},
	[OP(RGATE_REQ_LOCK_CLOSE)] = {
		.name = "close", .uses = RGATE_USES_HANDLE,
		.begin = begin_close, .cancel = cancel_waiting,
	},
	[OP(RGATE_REQ_LOCK_LIST)] = {
		.name = "list", .uses = RGATE_USES_A0 | RGATE_USES_A1 | RGATE_USES_MEM,
		.begin = begin_list, .cancel = cancel_query,
	},
};

const struct rgate_req_service lock_requests = {
	.number = RGATE_REQ_LOCK, .nops = sizeof(lock_ops) / sizeof(lock_ops[0]),
	.name = "lock", .ops = lock_ops, .drop = drop,
};

static const struct rgate_req_op barrier_ops[] = {
	[OP(RGATE_REQ_BARRIER_OPEN)] = {
		.name = "open", .uses = RGATE_USES_A0 | RGATE_USES_A1 | RGATE_USES_MEM,
		.begin = open_barrier, .cancel = cancel_open,
	},
	[OP(RGATE_REQ_BARRIER_ARRIVE)] = {
		.name = "arrive", .uses = RGATE_USES_HANDLE,
		.begin = begin_arrive, .cancel = cancel_arrive,
	},
	[OP(RGATE_REQ_BARRIER_WAIT)] = {
		.name = "wait", .uses = RGATE_USES_HANDLE | RGATE_USES_MEM,
		.begin = begin_wait, .cancel = cancel_waiting,
	},
	[OP(RGATE_REQ_BARRIER_STATE)] = {
		.name = "state", .uses = RGATE_USES_HANDLE | RGATE_USES_MEM,
		.begin = begin_state, .cancel = cancel_query,
	},
	[OP(RGATE_REQ_BARRIER_CLOSE)] = {
		.name = "close", .uses = RGATE_USES_HANDLE,
		.begin = begin_close, .cancel = cancel_waiting,
	},
};

const struct rgate_req_service barrier_requests = {
	.number = RGATE_REQ_BARRIER, .nops = sizeof(barrier_ops) / sizeof(barrier_ops[0]),
	.name = "barrier", .ops = barrier_ops, .drop = drop,
};
