// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests of who keeps tasks elsewhere: what has become of them? */
#include <errno.h>
#include <string.h>

#include "queue_priv.h"

#define ENDS_AT_ONCE	512U

struct follower queue_follower_of(const struct rgate_req *r, const struct opened *o)
{
	const struct rgate_request *q = rgate_req_get(r);

	return (struct follower){ .next = q->a0, .tag = queue_high(q->a1), .uid = o->uid };
}

int queue_ops_ends(struct rgate_req *r, struct opened *o, struct follower *who)
{
	const uint32_t room = (rgate_req_get(r)->len - (uint32_t)sizeof(struct rgate_queue_ends)) /
			      (uint32_t)sizeof(uint64_t);
	const uint32_t most = room < ENDS_AT_ONCE ? room : ENDS_AT_ONCE;
	struct rgate_queue_ends head = { .queue = queue_ends_serial(o->queue) };
	uint64_t ids[ENDS_AT_ONCE];
	bool missed;

	head.n = queue_ends_take(o->queue, who, ids, most, &missed);
	head.flags = missed ? RGATE_ENDS_MISSED : 0;
	memcpy(rgate_req_mem(r), &head, sizeof(head));
	memcpy((char *)rgate_req_mem(r) + sizeof(head), ids, head.n * sizeof(ids[0]));
	if (!head.n && !missed && rgate_req_get(r)->a0 &&
	    !((uint32_t)rgate_req_get(r)->a1 & RGATE_FOLLOW_NOW))
		return -EAGAIN;
	return (int)(sizeof(head) + head.n * sizeof(ids[0]));
}

static int follow(struct rgate_req *r, struct opened *o)
{
	struct follower who = queue_follower_of(r, o);
	int result;

	result = queue_ends_begin(o->queue);
	if (result)
		return result;
	result = queue_ops_ends(r, o, &who);
	if (result == -EAGAIN)
		return pend(r, o, PEND_FOLLOW, NULL);
	rgate_req_set_value(r, who.next);
	return result;
}

int queue_begin_follow(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);

	if (!queue_high(q->a1) || (uint32_t)q->a1 & ~RGATE_FOLLOW_NOW ||
	    q->len < sizeof(struct rgate_queue_ends) + sizeof(uint64_t) ||
	    q->len > RGATE_QUEUE_PART_MAX)
		return -EINVAL;
	return queue_on(r, ctx, RIGHT_SUBMIT | RIGHT_OWN, follow);
}

/* A copy of each word: the client may write its memory while it is looked at. */
static int over(struct rgate_req *r, struct opened *o)
{
	const struct rgate_request *q = rgate_req_get(r);
	uint64_t bits, left, word;
	char *mem = rgate_req_mem(r);
	uint32_t i;

	for (i = 0; i < q->len / sizeof(word); i++) {
		memcpy(&word, mem + i * sizeof(word), sizeof(word));
		left = 0;
		for (bits = word; bits; bits &= bits - 1)
			if (queue_has_ended(o->queue, o->uid, q->a0 + i * 64ULL +
					    (unsigned int)__builtin_ctzll(bits)))
				left |= bits & -bits;
		memcpy(mem + i * sizeof(left), &left, sizeof(left));
	}
	return (int)q->len;
}

int queue_begin_over(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);

	if (!q->len || q->len % sizeof(uint64_t) || q->len > RGATE_QUEUE_OVER_MAX / 8)
		return -EINVAL;
	return queue_on(r, ctx, RIGHT_SUBMIT | RIGHT_OWN, over);
}
