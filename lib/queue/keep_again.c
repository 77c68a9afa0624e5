// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a former process of a home had, and has not ended, is submitted again. */
#include <errno.h>
#include <string.h>

#include "keep_talk.h"

static uint32_t delay_of(const struct kept *t, uint64_t at)
{
	return t->due_ns > at ? (uint32_t)((t->due_ns - at) / KEEP_MS) : 0;
}

static uint32_t head_len(const struct kept_queue *q)
{
	return keep_is_mirrored(q) ? sizeof(struct rgate_queue_copy) :
				     sizeof(struct rgate_queue_put);
}

static uint32_t write_task(const struct kept_queue *q, const struct kept *t, unsigned char *mem)
{
	struct rgate_queue_copy copy = { .origin = t->origin, .tag = t->tag, .put = t->put };
	const uint32_t head = head_len(q);
	const uint32_t len = (uint32_t)(head + RGATE_QUEUE_PADDED(t->put.len));

	copy.put.delay_ms = delay_of(t, keep_now(q));
	memset(mem, 0, len);
	if (keep_is_mirrored(q))
		memcpy(mem, &copy, sizeof(copy));
	else
		memcpy(mem, &copy.put, sizeof(copy.put));
	memcpy(mem + head, t->data, t->put.len);
	return len;
}

/*
 * That process has removed the queue that it was in, or has another one by now, where it was heard
 * of later than the question for that: then it is asked again.
 */
static void in_another(struct kept_queue *q, struct kept *t)
{
	if (t->asked == q->asks)
		q->looked = false;
	else
		keep_forget(q, t);
}

/* Bytes of those that go together */
static uint32_t fill_batch(struct kept_queue *q)
{
	struct keep_user *u = q->user;
	uint32_t off = 0, i;
	struct kept *t;

	u->nbatch = 0;
	for (i = 0; i < QUEUE_STEPS && q->again_at != &q->tasks; i++) {
		t = container_of(q->again_at, struct kept, of_queue);
		if (off + head_len(q) + RGATE_QUEUE_PADDED(t->put.len) > KEEP_ROOM)
			break;
		q->again_at = t->of_queue.next;
		if (t->of == q->of || keep_life(t->of) > keep_life(q->of))
			continue;
		if (keep_life(t->of) == keep_life(q->of)) {
			in_another(q, t);
			continue;
		}
		off += write_task(q, t, u->mem + off);
		u->batch[u->nbatch++] = t;
	}
	return off;
}

void keep_again(struct kept_queue *q)
{
	const uint32_t len = fill_batch(q);

	if (!len) {
		q->behind = q->again_at != &q->tasks;
		return;
	}
	ASK(q, AGAIN, .len = len, .op = keep_is_mirrored(q) ? RGATE_REQ_QUEUE_AGAIN :
							       RGATE_REQ_QUEUE_SUBMIT);
	if (q->asked)
		q->user->submits = q;
	else
		q->again_at = &q->user->batch[0]->of_queue;
}

static bool is_loss(int result)
{
	return result == -ECONNRESET || result == -ESTALE || result == -EBADF ||
	       result == -ETIMEDOUT || result == -ENOTCONN || result == -EPROTO;
}

void keep_submitted(struct kept_queue *q, int result, uint64_t value)
{
	struct keep_user *u = q->user;
	struct keeper *k = u->keeper;
	int i;

	u->submits = NULL;
	if (result > 0 && ((uint32_t)result > u->nbatch ||
			   RGATE_SUBMIT_QUEUE(value) != (q->of & 0xffffff))) {
		keep_refuse(k);
		result = -EPROTO;
	}
	if (is_loss(result)) {
		q->excused += u->nbatch;
		keep_lost(q, result);
		return;
	}
	for (i = 0; i < result; i++)
		if (keep_place(q, u->batch[i], q->of, RGATE_SUBMIT_FIRST(value) + (uint32_t)i)) {
			/* A copy of it is there by now. */
			if (!u->mirrors)
				keep_refuse(k);
			keep_forget(q, u->batch[i]);
		}
	/* Some were there before, and may have ended. */
	if (result > 0 && keep_is_mirrored(q))
		keep_doubt(q);
	if (result > 0)
		keep_count(&k->count.again, (uint64_t)result);
	i = result > 0 ? result : 0;
	if ((uint32_t)i == u->nbatch)
		return;
	q->again_at = &u->batch[i]->of_queue;
	q->again_due = keep_now(q) + (i || result == -EAGAIN ? KEEP_PAUSE_NS : KEEP_RETRY_NS);
	/* The queue that was made anew, by somebody else, has never room for it. */
	if (result == -EMSGSIZE || result == -EINVAL) {
		keep_count(&k->count.lost, 1);
		keep_forget(q, u->batch[0]);
	}
}
