// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"
#include "queue_priv.h"

#define FULL_NS		10000000ULL	/* between looks whether a journal has room again */

static int on(struct rgate_req *r, void *ctx, uint32_t right,
	      int (*fn)(struct rgate_req *r, struct opened *o), bool surely)
{
	enum named *named = rgate_req_object(r);
	struct queue_service *sv = ctx;
	struct opened *o;
	int result;

	if (!named || *named == NAMED_VISIT)
		return -EBADF;
	if (*named == NAMED_AWAY)
		return queue_away_ask(sv, r, container_of(named, struct away, named));
	o = container_of(named, struct opened, named);
	if (o->queue->removed)
		return -ESTALE;
	if (right && !(o->rights & right))
		return -EACCES;
	queue_look_at_clock(sv);
	result = fn(r, o);
	if (surely && result != RGATE_REQ_LATER)
		result = queue_tell_later(sv, r, o->queue, result, rgate_req_value(r));
	queue_settle(o->queue);
	return result;
}

int queue_on(struct rgate_req *r, void *ctx, uint32_t right,
	     int (*fn)(struct rgate_req *r, struct opened *o))
{
	return on(r, ctx, right, fn, false);
}

int queue_on_surely(struct rgate_req *r, void *ctx, uint32_t right,
		    int (*fn)(struct rgate_req *r, struct opened *o))
{
	return on(r, ctx, right, fn, true);
}

/* ---- SUBMIT ---- */

/* One at @off of the request's part, where the next one begins then */
static int submit_one(struct rgate_req *r, struct opened *o, uint32_t *off, uint64_t *id)
{
	const uint32_t left = rgate_req_get(r)->len - *off;
	const char *mem = (const char *)rgate_req_mem(r) + *off;
	struct rgate_queue_put put;
	int err;

	if (left < sizeof(put))
		return -EINVAL;
	/* A copy: the client may write its memory while it is looked at. */
	memcpy(&put, mem, sizeof(put));
	err = queue_put_check(&put);
	if (!err && put.len > left - sizeof(put))
		err = -EINVAL;
	if (!err)
		err = queue_submit(o->queue, o->uid, queue_high(rgate_req_get(r)->a1), &put,
				   mem + sizeof(put), id);
	*off += (uint32_t)(sizeof(put) + RGATE_QUEUE_PADDED(put.len));
	if (!err && o->queue->mirror)
		queue_find(o->queue, *id)->from = (uint8_t)o->from;
	return err;
}

int queue_ops_submit(struct rgate_req *r, struct opened *o, uint64_t *first)
{
	const uint32_t len = rgate_req_get(r)->len;
	uint32_t off = 0, n;
	uint64_t id;
	int err = 0;

	for (n = 0; off < len && n < QUEUE_STEPS; n++) {
		err = submit_one(r, o, &off, &id);
		if (err)
			break;
		if (!n)
			*first = id;
	}
	/* What cannot be taken is told when it is the first one. */
	if (!n)
		return err;
	if (queue_high(rgate_req_get(r)->a1))
		*first |= (uint64_t)queue_ends_serial(o->queue) << 40;
	return (int)n;
}

static int submit(struct rgate_req *r, struct opened *o)
{
	const struct rgate_request *q = rgate_req_get(r);
	uint64_t first = 0;
	int n;

	/* Who waits for room goes first. */
	n = list_empty(&o->queue->rooms) ? queue_ops_submit(r, o, &first) : -EAGAIN;
	if (n == -EAGAIN && q->a1 & RGATE_SUBMIT_ROOM)
		return pend(r, o, PEND_ROOM, NULL);
	if (n > 0)
		rgate_req_set_value(r, first);
	return n;
}

static int begin_submit(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);

	if ((uint32_t)q->a1 & ~RGATE_SUBMIT_ROOM || q->len < sizeof(struct rgate_queue_put) ||
	    q->len > RGATE_QUEUE_PART_MAX)
		return -EINVAL;
	return queue_on_surely(r, ctx, RIGHT_SUBMIT | RIGHT_OWN, submit);
}

/* ---- CLAIM ---- */

/* Head and bytes of @t, at @off of the request's part; how many; 0: there is no room */
static uint32_t put_task(struct rgate_req *r, uint32_t off, const struct rgate_queue_task *head,
			 const struct task *t)
{
	const uint64_t need = sizeof(*head) + RGATE_QUEUE_PADDED(head->len) +
			      RGATE_QUEUE_PADDED(head->end_len);
	char *mem = (char *)rgate_req_mem(r) + off;

	if (need > rgate_req_get(r)->len - off)
		return 0;
	memset(mem, 0, need);
	memcpy(mem, head, sizeof(*head));
	mem += sizeof(*head);
	memcpy(mem, t->data, head->len);
	if (head->end_len)
		memcpy(mem + RGATE_QUEUE_PADDED(head->len), t->end, head->end_len);
	return (uint32_t)need;
}

static bool fits(const struct rgate_req *r, uint32_t off, const struct task *t)
{
	return sizeof(struct rgate_queue_task) + RGATE_QUEUE_PADDED(t->len) <=
	       rgate_req_get(r)->len - off;
}

int queue_ops_claim(struct rgate_req *r, struct opened *o, uint32_t most, uint64_t *n)
{
	const struct rgate_request *q = rgate_req_get(r);
	const bool begin = queue_high(q->a1) & RGATE_CLAIM_BEGIN;
	struct rgate_queue_task head;
	struct task *t = NULL;
	uint32_t off = 0;

	for (*n = 0; *n < most; ++*n) {
		t = queue_first(o->queue, types_of(q));
		if (!t || !fits(r, off, t))
			break;
		queue_claim(o->queue, t, &o->worker, begin);
		task_head(t, &head);
		off += put_task(r, off, &head, t);
	}
	if (*n)
		return (int)off;
	return t ? -EMSGSIZE : -EAGAIN;
}

static int claim(struct rgate_req *r, struct opened *o)
{
	const struct rgate_request *q = rgate_req_get(r);
	uint64_t n;
	int result = queue_ops_claim(r, o, (uint32_t)q->a1, &n);

	if (result == -EAGAIN && !(queue_high(q->a1) & RGATE_CLAIM_NOW))
		return pend(r, o, PEND_TASKS, NULL);
	rgate_req_set_value(r, n);
	return result;
}

static int begin_claim(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	const uint32_t most = (uint32_t)q->a1;

	if (!most || most > RGATE_QUEUE_CLAIM_MAX || queue_high(q->a1) & ~RGATE_CLAIM_FLAGS ||
	    q->len < sizeof(struct rgate_queue_task) || q->len > RGATE_QUEUE_PART_MAX)
		return -EINVAL;
	return queue_on(r, ctx, RIGHT_WORK | RIGHT_OWN, claim);
}

/* ---- WAIT ---- */

int queue_ops_end(struct rgate_req *r, struct task *t)
{
	const struct rgate_request *q = rgate_req_get(r);

	if (t->end_len > q->len)
		return -EMSGSIZE;
	if (t->end_len)
		memcpy(rgate_req_mem(r), t->end, t->end_len);
	t->taken |= q->a1 & RGATE_WAIT_TAKE;
	return (int)t->end_len;
}

/* His own, or he may have them all */
static bool may_see(const struct opened *o, const struct task *t)
{
	return o->uid == t->uid || o->rights & (RIGHT_OWN | RIGHT_WORK);
}

static int await_task(struct rgate_req *r, struct opened *o)
{
	const struct rgate_request *q = rgate_req_get(r);
	struct task *t = queue_find(o->queue, q->a0);
	int result;

	if (!t)
		return -ENOENT;
	if (!may_see(o, t) || (q->a1 & RGATE_WAIT_TAKE && o->uid != t->uid &&
			       !(o->rights & RIGHT_OWN)))
		return -EACCES;
	if (t->state != RGATE_TASK_DONE && t->state != RGATE_TASK_BURIED)
		return pend(r, o, PEND_END, t);
	rgate_req_set_value(r, t->state);
	result = queue_ops_end(r, t);
	if (t->taken)
		queue_drop(o->queue, t);
	return result;
}

static int await(struct rgate_req *r, struct opened *o)
{
	if (rgate_req_get(r)->a0)
		return await_task(r, o);
	if (!queue_is_idle(o->queue))
		return pend(r, o, PEND_IDLE, NULL);
	rgate_req_set_value(r, o->queue->count.now[RGATE_TASK_BURIED]);
	return 0;
}

static int begin_wait(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);

	if (q->a1 & ~(uint64_t)RGATE_WAIT_TAKE || q->len > RGATE_QUEUE_PART_MAX)
		return -EINVAL;
	return queue_on_surely(r, ctx, 0, await);
}

/* ---- The queue ---- */

static uint32_t least32(uint64_t n)
{
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static int kick(struct rgate_req *r, struct opened *o)
{
	rgate_req_set_value(r, queue_kick(o->queue, least32(rgate_req_get(r)->a0)));
	return 0;
}

static int begin_kick(struct rgate_req *r, void *ctx)
{
	return queue_on_surely(r, ctx, RIGHT_OWN, kick);
}

static int state(struct rgate_req *r, struct opened *o)
{
	struct rgate_queue_info info;

	queue_info(o->queue, &info);
	memcpy(rgate_req_mem(r), &info, sizeof(info));
	return 0;
}

static int begin_state(struct rgate_req *r, void *ctx)
{
	if (rgate_req_get(r)->len != sizeof(struct rgate_queue_info))
		return -EINVAL;
	return queue_on(r, ctx, 0, state);
}

static int peek(struct rgate_req *r, struct opened *o)
{
	const struct rgate_request *q = rgate_req_get(r);
	struct rgate_queue_task head;
	uint64_t after = q->a0;
	struct task *t;
	uint32_t n;

	t = queue_next(o->queue, &after, q->a1 ? (uint32_t)q->a1 : UINT32_MAX);
	rgate_req_set_value(r, after);
	if (!t)
		return 0;
	task_head(t, &head);
	head.end_len = t->end_len;
	n = put_task(r, 0, &head, t);
	return n ? (int)n : -EMSGSIZE;
}

static int begin_peek(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);

	if (q->a1 >> RGATE_TASK_STATES || q->len < sizeof(struct rgate_queue_task) ||
	    q->len > 2 * RGATE_QUEUE_PART_MAX)
		return -EINVAL;
	return queue_on(r, ctx, RIGHT_WORK | RIGHT_OWN, peek);
}

static int discard(struct rgate_req *r, struct opened *o)
{
	const struct rgate_request *q = rgate_req_get(r);
	struct task *t;

	if (!q->a0) {
		rgate_req_set_value(r, queue_discard(o->queue, (uint32_t)q->a1));
		return 0;
	}
	t = queue_find(o->queue, q->a0);
	if (!t)
		return -ENOENT;
	if (t->worker || !(q->a1 & RGATE_TASK_BIT(t->state)))
		return -EBUSY;
	queue_drop(o->queue, t);
	rgate_req_set_value(r, 1);
	return 0;
}

static int begin_discard(struct rgate_req *r, void *ctx)
{
	if (rgate_req_get(r)->a1 >> RGATE_TASK_STATES)
		return -EINVAL;
	return queue_on_surely(r, ctx, RIGHT_OWN, discard);
}

static int take_away(struct rgate_req *r, struct opened *o)
{
	(void)r;
	queues_remove(o->queue);
	return 0;
}

static int begin_remove(struct rgate_req *r, void *ctx)
{
	return queue_on_surely(r, ctx, RIGHT_OWN, take_away);
}

/* ---- Handles ---- */

int queue_read_open(const struct queue_service *sv, const struct rgate_req *r,
		    struct queue_open *as, uint32_t *node)
{
	const struct rgate_request *q = rgate_req_get(r);
	int err = queue_away_node(sv, r, node);

	if (err)
		return err;
	if (q->len != sizeof(as->place))
		return -EINVAL;
	*as = (struct queue_open){ .owner = (uint32_t)q->a1, .flags = queue_high(q->a1) };
	memcpy(&as->place, rgate_req_mem(r), sizeof(as->place));
	return queue_open_check(as);
}

static uint32_t rights_of(const struct queue *q, uid_t uid)
{
	return (q->rules.flags & RGATE_QUEUE_SUBMIT ? RIGHT_SUBMIT : 0) |
	       (q->rules.flags & RGATE_QUEUE_WORK ? RIGHT_WORK : 0) |
	       (q->owner == uid ? RIGHT_OWN : 0);
}

static int open_here(struct queue_service *sv, struct rgate_req *r, const struct queue_open *as)
{
	const uint64_t last = sv->home.serial;
	struct opened *o = calloc(1, sizeof(*o));
	int err;

	if (!o)
		return -ENOMEM;
	o->sv = sv;
	o->uid = rgate_seat_uid(rgate_req_seat(r));
	o->from = MIRROR_HOME;
	list_init(&o->pending);
	err = queues_open(&sv->home, o->uid, as, &o->queue);
	if (err) {
		free(o);
		return err;
	}
	o->rights = rights_of(o->queue, o->uid);
	if (o->queue->mirror && sv->gate)
		(void)gate_service_whose(sv->gate, rgate_req_seat(r), &o->from);
	queue_worker_init(o->queue, &o->worker);
	err = rgate_seat_handle(rgate_req_seat(r), RGATE_REQ_QUEUE, o, &o->number);
	if (err) {
		opened_free(o);
		return err;
	}
	rgate_req_set_value(r, o->number);
	/* Of one that was there nothing is to be written. */
	return sv->home.serial == last ? 0 : queue_tell_later(sv, r, o->queue, 0, o->number);
}

static int begin_open(struct rgate_req *r, void *ctx)
{
	struct queue_service *sv = ctx;
	struct queue_open as;
	uint32_t node;
	int err;

	err = queue_read_open(sv, r, &as, &node);
	if (err)
		return err;
	if (node != BOARD_HERE)
		return queue_away_open(sv, r, node, &as);
	if (as.flags & RGATE_QUEUE_MIRROR)
		err = queue_mirror_check(sv);
	if (err)
		return err;
	queue_look_at_clock(sv);
	return open_here(sv, r, &as);
}

static int begin_close(struct rgate_req *r, void *ctx)
{
	enum named *named = rgate_req_object(r);
	struct queue_service *sv = ctx;
	struct opened *o;

	if (!named || *named == NAMED_VISIT)
		return -EBADF;
	if (*named == NAMED_AWAY)
		return queue_away_close(sv, r, container_of(named, struct away, named));
	o = container_of(named, struct opened, named);
	(void)rgate_seat_release(rgate_req_seat(r), RGATE_REQ_QUEUE, o->number);
	queue_look_at_clock(sv);
	pend_cancel_all(o);
	opened_free(o);
	return 0;
}

static void drop(void *object, void *ctx)
{
	enum named *named = object;
	struct queue_service *sv = ctx;

	switch (*named) {
	case NAMED_HERE:
		queue_look_at_clock(sv);
		opened_free(container_of(named, struct opened, named));
		break;
	case NAMED_AWAY:
		queue_away_drop(sv, container_of(named, struct away, named));
		break;
	case NAMED_VISIT:
		queue_visit_drop(container_of(named, struct visit, named));
		break;
	}
}

static int begin_list(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	struct queue_service *sv = ctx;
	struct rgate_queue_info info;
	uint32_t node;
	uint64_t next;
	int err;

	err = queue_away_node(sv, r, &node);
	if (err)
		return err;
	if (q->len != sizeof(info))
		return -EINVAL;
	if (node != BOARD_HERE)
		return queue_away_list(sv, r, node);
	queue_look_at_clock(sv);
	next = queues_list(&sv->home, rgate_seat_uid(rgate_req_seat(r)), q->a1, &info);
	if (!next)
		return 0;
	memcpy(rgate_req_mem(r), &info, sizeof(info));
	rgate_req_set_value(r, next);
	return 1;
}

/* What waits for copies has been done: it is told so, without them. */
static int cancel_here(struct rgate_req *r, enum named *named)
{
	struct queue *q = named && *named == NAMED_HERE ?
			  container_of(named, struct opened, named)->queue : NULL;

	if (q && q->mirror && !rgate_req_data(r) && mirror_let_go(q, r))
		return -EALREADY;
	return pend_cancel(r);
}

static int cancel(struct rgate_req *r, void *ctx)
{
	enum named *named = rgate_req_object(r);
	struct queue_service *sv = ctx;
	int err;

	/* The gate's lock is nothing that a queue of this node should wait for. */
	if ((named && *named == NAMED_HERE) || !sv->gate)
		return cancel_here(r, named);
	err = gate_forward_cancel(sv->gate, r);
	return err == -ENOENT ? cancel_here(r, named) : err;
}

static uint64_t tick_journal(struct queue_service *sv, uint64_t now)
{
	const bool full = queues_give_room(&sv->home);
	const uint64_t at = journal_tick(sv->journal, now);

	return full && at > now + FULL_NS ? now + FULL_NS : at;
}

static uint64_t tick(void *ctx, uint64_t now)
{
	struct queue_service *sv = ctx;
	const uint64_t mine = sv->clock ? sv->clock() : now;
	uint64_t at = queues_tick(&sv->home, mine), kept;

	queue_away_sweep(sv);
	kept = keeper_tick(&sv->keeper);
	at = kept < at ? kept : at;
	kept = queue_mirrors_tick(sv);
	at = kept < at ? kept : at;
	if (sv->journal) {
		kept = tick_journal(sv, mine);
		at = kept < at ? kept : at;
	}
	if (at == UINT64_MAX)
		return at;
	return at > mine ? now + (at - mine) : now;
}

#define A0	RGATE_USES_A0
#define A1	RGATE_USES_A1
#define MEM	RGATE_USES_MEM
#define HANDLE	RGATE_USES_HANDLE
#define OP(n, text, fields, fn) \
	[RGATE_REQ_QUEUE_##n & ((1U << RGATE_REQ_OP_SHIFT) - 1)] = { \
		.name = (text), .uses = (fields), .begin = (fn), .cancel = cancel, \
	}

static const struct rgate_req_op ops[] = {
	OP(OPEN, "open", A0 | A1 | MEM, begin_open),
	OP(CLOSE, "close", HANDLE, begin_close),
	OP(SUBMIT, "submit", HANDLE | A1 | MEM, begin_submit),
	OP(CLAIM, "claim", HANDLE | A0 | A1 | MEM, begin_claim),
	OP(BEGIN, "begin", HANDLE | A0 | A1, queue_begin_begin),
	OP(TOUCH, "touch", HANDLE | A0 | A1, queue_begin_touch),
	OP(COMPLETE, "complete", HANDLE | A0 | A1 | MEM, queue_begin_complete),
	OP(RELEASE, "release", HANDLE | A0 | A1, queue_begin_release),
	OP(BURY, "bury", HANDLE | A0 | A1 | MEM, queue_begin_bury),
	OP(KICK, "kick", HANDLE | A0, begin_kick),
	OP(WAIT, "wait", HANDLE | A0 | A1 | MEM, begin_wait),
	OP(STATE, "state", HANDLE | MEM, begin_state),
	OP(LIST, "list", A0 | A1 | MEM, begin_list),
	OP(PEEK, "peek", HANDLE | A0 | A1 | MEM, begin_peek),
	OP(DISCARD, "discard", HANDLE | A0 | A1, begin_discard),
	OP(REMOVE, "remove", HANDLE, begin_remove),
	OP(COMPLETE_MANY, "complete_many", HANDLE | MEM, queue_begin_complete_many),
	OP(FOLLOW, "follow", HANDLE | A0 | A1 | MEM, queue_begin_follow),
	OP(OVER, "over", HANDLE | A0 | MEM, queue_begin_over),
	OP(AGAIN, "again", HANDLE | MEM, queue_begin_again),
	OP(COPIES, "copies", HANDLE | A1 | MEM, queue_begin_copies),
	OP(MIRROR, "mirror", A0 | A1 | MEM, queue_begin_mirror),
};

const struct rgate_req_service queue_requests = {
	.number = RGATE_REQ_QUEUE, .nops = sizeof(ops) / sizeof(ops[0]), .name = "queue",
	.ops = ops, .drop = drop, .tick = tick,
};
