// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a former process of a home had, and has not ended, is submitted again. */
#include <errno.h>
#include <string.h>

#include "keep_talk.h"

static uint32_t delay_of(const struct kept *t, uint64_t at)
{
	return t->due_ns > at ? (uint32_t)((t->due_ns - at) / KEEP_MS) : 0;
}

static uint32_t write_task(const struct kept *t, unsigned char *mem, uint64_t at)
{
	struct rgate_queue_put put = t->put;
	const uint32_t len = (uint32_t)(sizeof(put) + RGATE_QUEUE_PADDED(put.len));

	put.delay_ms = delay_of(t, at);
	memset(mem, 0, len);
	memcpy(mem, &put, sizeof(put));
	memcpy(mem + sizeof(put), t->data, put.len);
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
		if (off + sizeof(t->put) + RGATE_QUEUE_PADDED(t->put.len) > KEEP_ROOM)
			break;
		q->again_at = t->of_queue.next;
		if (t->of == q->of || keep_life(t->of) > keep_life(q->of))
			continue;
		if (keep_life(t->of) == keep_life(q->of)) {
			in_another(q, t);
			continue;
		}
		off += write_task(t, u->mem + off, keep_now(q));
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
	ASK(q, AGAIN, .op = RGATE_REQ_QUEUE_SUBMIT, .len = len);
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
			keep_refuse(k);
			keep_forget(q, u->batch[i]);
		}
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
