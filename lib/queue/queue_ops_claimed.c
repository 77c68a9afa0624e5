// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests on tasks that a session has claimed */
#include <errno.h>
#include <string.h>

#include "queue_priv.h"

static uint32_t claim_of(const struct rgate_request *q)
{
	return (uint32_t)q->a1;
}

static int begin_it(struct rgate_req *r, struct opened *o)
{
	const struct rgate_request *q = rgate_req_get(r);
	uint32_t attempts = 0;
	int err = queue_begin(o->queue, &o->worker, q->a0, claim_of(q), &attempts);

	rgate_req_set_value(r, attempts);
	return err;
}

int queue_begin_begin(struct rgate_req *r, void *ctx)
{
	if (queue_high(rgate_req_get(r)->a1))
		return -EINVAL;
	return queue_on(r, ctx, RIGHT_WORK | RIGHT_OWN, begin_it);
}

static int touch(struct rgate_req *r, struct opened *o)
{
	const struct rgate_request *q = rgate_req_get(r);

	return queue_touch(o->queue, &o->worker, q->a0, claim_of(q));
}

int queue_begin_touch(struct rgate_req *r, void *ctx)
{
	if (queue_high(rgate_req_get(r)->a1))
		return -EINVAL;
	return queue_on(r, ctx, RIGHT_WORK | RIGHT_OWN, touch);
}

static int complete(struct rgate_req *r, struct opened *o)
{
	const struct rgate_request *q = rgate_req_get(r);

	return queue_complete(o->queue, &o->worker, q->a0, claim_of(q), rgate_req_mem(r), q->len);
}

int queue_begin_complete(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);

	if (queue_high(q->a1) || q->len > RGATE_QUEUE_DATA_MAX)
		return -EINVAL;
	return queue_on_surely(r, ctx, RIGHT_WORK | RIGHT_OWN, complete);
}

/* One at @off of the request's part, where the next one begins then; 1: it is completed; -EINVAL */
static int complete_one(struct rgate_req *r, struct opened *o, uint32_t *off)
{
	const uint32_t left = rgate_req_get(r)->len - *off;
	const char *mem = (const char *)rgate_req_mem(r) + *off;
	struct rgate_queue_end end;

	if (left < sizeof(end))
		return -EINVAL;
	/* A copy: the client may write its memory while it is looked at. */
	memcpy(&end, mem, sizeof(end));
	if (end.size % 8 || end.size < sizeof(end) || end.size > left ||
	    end.len > end.size - sizeof(end) || end.len > RGATE_QUEUE_DATA_MAX || end.reserved)
		return -EINVAL;
	*off += end.size;
	return end.id && !queue_complete(o->queue, &o->worker, end.id, end.claim,
					 mem + sizeof(end), end.len);
}

/* What is wrong is told when it is the first one: those before are completed. */
static int complete_many(struct rgate_req *r, struct opened *o)
{
	const uint32_t len = rgate_req_get(r)->len;
	uint64_t bits = 0;
	uint32_t off = 0, n;
	int done;

	for (n = 0; off < len && n < RGATE_QUEUE_ENDS_MAX; n++) {
		done = complete_one(r, o, &off);
		if (done < 0 && !n)
			return done;
		if (done < 0)
			break;
		bits |= (uint64_t)done << n;
	}
	rgate_req_set_value(r, bits);
	return (int)n;
}

int queue_begin_complete_many(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);

	if (!q->len || q->len > RGATE_QUEUE_PART_MAX)
		return -EINVAL;
	return queue_on_surely(r, ctx, RIGHT_WORK | RIGHT_OWN, complete_many);
}

static int release(struct rgate_req *r, struct opened *o)
{
	const struct rgate_request *q = rgate_req_get(r);
	uint32_t state = 0;
	int err;

	err = queue_release(o->queue, &o->worker, q->a0, claim_of(q), queue_high(q->a1), &state);
	rgate_req_set_value(r, state);
	return err;
}

int queue_begin_release(struct rgate_req *r, void *ctx)
{
	if (queue_high(rgate_req_get(r)->a1) > RGATE_QUEUE_MS_MAX)
		return -EINVAL;
	return queue_on_surely(r, ctx, RIGHT_WORK | RIGHT_OWN, release);
}

static int bury(struct rgate_req *r, struct opened *o)
{
	const struct rgate_request *q = rgate_req_get(r);

	return queue_bury(o->queue, &o->worker, q->a0, claim_of(q), rgate_req_mem(r), q->len);
}

int queue_begin_bury(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);

	if (queue_high(q->a1) || q->len > RGATE_QUEUE_REASON_MAX)
		return -EINVAL;
	return queue_on_surely(r, ctx, RIGHT_WORK | RIGHT_OWN, bury);
}
