// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory_priv.h"

/* ---- Objects ---- */

static int give_handle(struct rgate_req *r, struct object *o)
{
	o->seat = rgate_req_seat(r);
	return rgate_seat_handle(o->seat, RGATE_REQ_MEMORY, o, &o->handle);
}

static void free_object(struct memory_service *sv, struct object *o)
{
	memory_lock(sv);
	if (o->kind == OBJECT_EXPORT)
		regions_remove(o->region);
	if (o->kind == OBJECT_DEAD)
		list_del(&o->dead);
	memory_unlock(sv);
	free(o);
}

static void drop(void *object, void *ctx)
{
	free_object(ctx, object);
}

/* Handles of what another node has refused: their seats are there, or drop() had them. */
static void take_dead(struct memory_service *sv)
{
	struct object *o;

	memory_lock(sv);
	while (!list_empty(&sv->dead)) {
		o = container_of(sv->dead.next, struct object, dead);
		list_del(&o->dead);
		(void)rgate_seat_release(o->seat, RGATE_REQ_MEMORY, o->handle);
		free(o);
	}
	memory_unlock(sv);
}

/* Only its node's answer changes the kind, in the hub's thread. */
static enum object_kind kind_of(struct memory_service *sv, const struct object *o)
{
	enum object_kind kind;

	memory_lock(sv);
	kind = o->kind;
	memory_unlock(sv);
	return kind;
}

/* The client's copy of a name, with its end; -EINVAL: it is none */
static int copy_name(char *to, const void *from, uint64_t len)
{
	if (!from || len > RGATE_MEMORY_NAME_MAX)
		return -EINVAL;
	memcpy(to, from, len);
	to[len] = '\0';
	return regions_name_ok(to, len) ? 0 : -EINVAL;
}

/* ---- Who exports ---- */

static int add_region(struct memory_service *sv, const struct region *as, struct object **out)
{
	struct object *o = calloc(1, sizeof(*o));
	int err;

	if (!o)
		return -ENOMEM;
	o->kind = OBJECT_EXPORT;
	memory_lock(sv);
	err = regions_add(&sv->regions, as, &o->region);
	memory_unlock(sv);
	if (err)
		free(o);
	else
		*out = o;
	return err;
}

static int begin_export(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	struct rgate_seat *seat = rgate_req_seat(r);
	const uint64_t name_len = q->a1 >> 32;
	struct region as = {
		.addr = rgate_req_mem(r), .len = q->len, .mode = (uint32_t)q->a1,
		.owner = rgate_seat_uid(seat),
	};
	struct object *o = NULL;
	int err;

	take_dead(ctx);
	err = copy_name(as.name, rgate_seat_memory(seat, q->a0, name_len), name_len);
	if (!err)
		err = add_region(ctx, &as, &o);
	if (err)
		return err;
	err = give_handle(r, o);
	if (err) {
		free_object(ctx, o);
		return err;
	}
	rgate_req_set_value(r, o->handle);
	return 0;
}

static int begin_release(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	struct object *o = rgate_req_object(r);
	enum object_kind kind;

	if (!o)
		return -EBADF;
	kind = kind_of(ctx, o);
	if (kind != OBJECT_EXPORT && kind != OBJECT_OPENED)
		return -EBADF;
	(void)rgate_seat_release(rgate_req_seat(r), RGATE_REQ_MEMORY, q->handle);
	free_object(ctx, o);
	return 0;
}

/* ---- Who opens ---- */

static int open_here(struct memory_service *sv, struct rgate_req *r,
		     const struct memory_question *q, struct object *o)
{
	const struct region *region;
	int err;

	memory_lock(sv);
	err = regions_open(&sv->regions, q->a.uid, q->owner, q->name, q->rights, &region);
	if (!err) {
		o->kind = OBJECT_OPENED;
		o->id = region->id;
		o->len = region->len;
	}
	memory_unlock(sv);
	if (!err)
		rgate_req_set_value(r, o->len << 32 | o->handle);
	return err;
}

static int ask_node(struct memory_service *sv, struct rgate_req *r,
		    const struct memory_question *q, uint32_t node, struct object *o)
{
	int result;

	memory_lock(sv);
	result = memory_ask(&sv->node[node], r, q, o);
	memory_unlock(sv);
	return result;
}

/* Of a question that another node may have to answer */
static int open_at(struct memory_service *sv, struct rgate_req *r,
		   const struct memory_question *q, uint32_t node)
{
	struct object *o = calloc(1, sizeof(*o));
	int result;

	if (!o)
		return -ENOMEM;
	o->kind = OBJECT_OPENING;
	o->node = node;
	o->rights = q->rights;
	result = give_handle(r, o);
	if (result)
		goto free_object;
	result = node == BOARD_HERE ? open_here(sv, r, q, o) : ask_node(sv, r, q, node, o);
	if (!result || result == RGATE_REQ_LATER)
		return result;
	(void)rgate_seat_release(o->seat, RGATE_REQ_MEMORY, o->handle);
free_object:
	free(o);
	return result;
}

static int begin_open(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	struct memory_question mq = {
		.a = { .op = MEMORY_OPEN, .uid = rgate_seat_uid(rgate_req_seat(r)) },
		.owner = (uint32_t)q->a1, .rights = (uint32_t)(q->a1 >> 32),
	};
	struct memory_service *sv = ctx;
	uint32_t node;
	int err;

	take_dead(sv);
	err = board_find(sv->board, q->a0, RGATE_MEMORY_HERE, &node);
	if (!err)
		err = copy_name(mq.name, rgate_req_mem(r), q->len);
	return err ? err : open_at(sv, r, &mq, node);
}

static int cancel(struct rgate_req *r, void *ctx)
{
	struct memory_service *sv = ctx;
	struct task *t;

	memory_lock(sv);
	t = rgate_req_data(r);
	if (t)
		errand_end(&t->errand, -ECANCELED);
	memory_unlock(sv);
	return t ? 0 : -EALREADY;
}

/* ---- What is done to it ---- */

static int access_here(struct memory_service *sv, struct rgate_req *r,
		       const struct memory_access *a)
{
	uint64_t value = 0;
	int err;

	memory_lock(sv);
	err = regions_access(&sv->regions, a, &value);
	memory_unlock(sv);
	if (!err)
		rgate_req_set_value(r, value);
	return err;
}

/* What its home would refuse is not asked: so nothing of a long write was done then. */
static int check(const struct object *o, const struct memory_access *a)
{
	const uint32_t right = memory_right(a->op);
	const bool word = right == RGATE_MEMORY_ATOMIC;
	const uint64_t len = word ? sizeof(uint64_t) : a->len;

	if ((o->rights & right) != right)
		return -EACCES;
	if (a->off > o->len || len > o->len - a->off)
		return -ERANGE;
	return word && a->off % sizeof(uint64_t) ? -EINVAL : 0;
}

/* @a: without what the handle says */
static int begin_access(struct rgate_req *r, struct memory_service *sv, struct memory_access *a)
{
	struct memory_question q = { .number = 0 };
	const struct object *o = rgate_req_object(r);
	int err;

	if (!o || kind_of(sv, o) != OBJECT_OPENED)
		return -EBADF;
	a->uid = rgate_seat_uid(rgate_req_seat(r));
	a->region = o->id;
	a->off = rgate_req_get(r)->a0;
	err = check(o, a);
	if (err)
		return err;
	if (o->node == BOARD_HERE)
		return access_here(sv, r, a);
	q.a = *a;
	return ask_node(sv, r, &q, o->node, NULL);
}

static int begin_copy(struct rgate_req *r, struct memory_service *sv, enum memory_op op)
{
	struct memory_access a = {
		.op = op, .len = rgate_req_get(r)->len, .data = rgate_req_mem(r),
	};

	if (!a.len)
		return -EINVAL;
	if (a.len > RGATE_MEMORY_LEN_MAX)
		return -EMSGSIZE;
	return begin_access(r, sv, &a);
}

static int begin_read(struct rgate_req *r, void *ctx)
{
	return begin_copy(r, ctx, MEMORY_READ);
}

static int begin_write(struct rgate_req *r, void *ctx)
{
	return begin_copy(r, ctx, MEMORY_WRITE);
}

static int begin_fetch_add(struct rgate_req *r, void *ctx)
{
	struct memory_access a = { .op = MEMORY_FETCH_ADD, .operand = rgate_req_get(r)->a1 };

	return begin_access(r, ctx, &a);
}

static int begin_cmp_swap(struct rgate_req *r, void *ctx)
{
	struct memory_access a = { .op = MEMORY_CMP_SWAP, .operand = rgate_req_get(r)->a1 };

	if (rgate_req_get(r)->len != sizeof(a.swap))
		return -EINVAL;
	memcpy(&a.swap, rgate_req_mem(r), sizeof(a.swap));
	return begin_access(r, ctx, &a);
}

static int begin_flush(struct rgate_req *r, void *ctx)
{
	struct memory_access a = { .op = MEMORY_FLUSH };

	return begin_access(r, ctx, &a);
}

#define OP(number)	((number) & ((1U << RGATE_REQ_OP_SHIFT) - 1))

static const struct rgate_req_op ops[] = {
	[OP(RGATE_REQ_MEMORY_EXPORT)] = {
		.name = "export", .uses = RGATE_USES_A0 | RGATE_USES_A1 | RGATE_USES_MEM,
		.begin = begin_export,
	},
	[OP(RGATE_REQ_MEMORY_RELEASE)] = {
		.name = "release", .uses = RGATE_USES_HANDLE, .begin = begin_release,
	},
	[OP(RGATE_REQ_MEMORY_OPEN)] = {
		.name = "open", .uses = RGATE_USES_A0 | RGATE_USES_A1 | RGATE_USES_MEM,
		.begin = begin_open, .cancel = cancel,
	},
	[OP(RGATE_REQ_MEMORY_READ)] = {
		.name = "read", .uses = RGATE_USES_HANDLE | RGATE_USES_A0 | RGATE_USES_MEM,
		.begin = begin_read, .cancel = cancel,
	},
	[OP(RGATE_REQ_MEMORY_WRITE)] = {
		.name = "write", .uses = RGATE_USES_HANDLE | RGATE_USES_A0 | RGATE_USES_MEM,
		.begin = begin_write, .cancel = cancel,
	},
	[OP(RGATE_REQ_MEMORY_FETCH_ADD)] = {
		.name = "fetch-add", .uses = RGATE_USES_HANDLE | RGATE_USES_A0 | RGATE_USES_A1,
		.begin = begin_fetch_add, .cancel = cancel,
	},
	[OP(RGATE_REQ_MEMORY_CMP_SWAP)] = {
		.name = "cmp-swap", .uses = RGATE_USES_HANDLE | RGATE_USES_A0 | RGATE_USES_A1 |
			RGATE_USES_MEM,
		.begin = begin_cmp_swap, .cancel = cancel,
	},
	[OP(RGATE_REQ_MEMORY_FLUSH)] = {
		.name = "flush", .uses = RGATE_USES_HANDLE, .begin = begin_flush, .cancel = cancel,
	},
};

const struct rgate_req_service memory_requests = {
	.number = RGATE_REQ_MEMORY, .nops = sizeof(ops) / sizeof(ops[0]), .name = "memory",
	.ops = ops, .drop = drop,
};
