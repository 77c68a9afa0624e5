// SPDX-License-Identifier: MIT OR GPL-2.0
/* Claims and waits in the background: one at a time, as what they are told has one place. */
#include <errno.h>
#include <string.h>

#include <ringgate/rgate_queue.h>

#include "queue_client.h"

/* What take has come to, which may be that it is under way */
static int taken(struct rgate_queue *q, int ret)
{
	if (ret == -EINPROGRESS)
		return -EAGAIN;
	q->later = 0;
	/* The home's own word for it would be taken for that. */
	return ret == -EAGAIN ? -EPROTO : ret;
}

int rgate_queue_next_start(struct rgate_queue *q, struct rgate_queue_result *results,
			   unsigned int n, uint64_t types, unsigned int most, uint32_t flags)
{
	int err;

	if (n > INT32_MAX || flags & RGATE_CLAIM_NOW)
		return -EINVAL;
	if (q->later)
		return -EBUSY;
	err = queue_complete_along(q, results, n, queue_claim_request(types, most, flags), true,
				   NULL);
	if (err)
		return err;
	q->later = RGATE_REQ_QUEUE_CLAIM;
	q->most = most;
	return 0;
}

int rgate_queue_next_take(struct rgate_queue *q, struct rgate_queue_got *got)
{
	uint64_t count = 0;
	int total;

	if (q->later != RGATE_REQ_QUEUE_CLAIM)
		return -EINVAL;
	total = taken(q, sync_later_take(&q->client, &count));
	return queue_read_tasks(q, total, count, q->most, got);
}

int rgate_queue_wait_start(struct rgate_queue *q, uint64_t id, uint32_t flags)
{
	const struct rgate_request r = {
		.op = RGATE_REQ_QUEUE_WAIT, .a0 = id, .a1 = flags,
		.off = id ? OUT_LEN : 0, .len = id ? RGATE_QUEUE_PART_MAX : 0,
	};
	int err;

	if (q->later)
		return -EBUSY;
	err = queue_complete_along(q, NULL, 0, r, true, NULL);
	if (!err)
		q->later = RGATE_REQ_QUEUE_WAIT;
	return err;
}

int rgate_queue_wait_take(struct rgate_queue *q, void *buf, size_t len, uint64_t *value)
{
	uint64_t told = 0;
	int n;

	if (q->later != RGATE_REQ_QUEUE_WAIT)
		return -EINVAL;
	n = taken(q, sync_later_take(&q->client, &told));
	if (n < 0)
		return n;
	if ((unsigned int)n > RGATE_QUEUE_PART_MAX)
		return -EPROTO;
	if ((size_t)n > len)
		return -EMSGSIZE;
	if (n)
		memcpy(buf, q->in, (size_t)n);
	if (value)
		*value = told;
	return n;
}

int rgate_queue_quit(struct rgate_queue *q)
{
	int ret = sync_later_quit(&q->client);

	if (ret != 1)
		q->later = 0;
	return ret;
}

int rgate_queue_fd(struct rgate_queue *q)
{
	return sync_later_fd(&q->client);
}
