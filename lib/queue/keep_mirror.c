// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Copies of tasks of other nodes' queues, which neither node has submitted that they are of. They
 * are kept as what was submitted here is, and submitted again likewise when the home is another
 * process: what was so before, by who has kept them, has the same number for both.
 *
 * And who is asked to have copies of a queue of this node.
 */
#include <errno.h>
#include <string.h>

#include "keep_talk.h"
#include "queue_priv.h"

#define ROOM_NS		(5000 * KEEP_MS) /* until all copies are asked for again */

int keep_mirror_begin(struct keeper *k, uid_t uid, uint32_t node, const struct queue_open *as)
{
	struct keep_user *u = keep_user_of(k, uid, true);
	struct kept_queue *q;
	int err;

	err = u ? keep_queue_for(u, node, as, &q) : -ENOMEM;
	k->due = 0;
	return err;
}

/* ---- What the home says ---- */

void keep_copies(struct kept_queue *q)
{
	const struct rgate_queue_copies head = {
		.after = q->after, .next = q->next,
		.flags = q->full ? RGATE_COPIES_FULL : 0,
	};

	memcpy(keep_slot_mem(q), &head, sizeof(head));
	ASK(q, FOLLOW, .op = RGATE_REQ_QUEUE_COPIES, .off = keep_slot_off(q),
	    .len = RGATE_QUEUE_PART_MAX,
	    .a1 = q->full || q->behind ? RGATE_COPIES_NOW : 0);
}

/* One of @left bytes at @mem: how many it has; 0: it cannot be, or @full: there is no room */
static uint32_t take_copy(struct kept_queue *q, const unsigned char *mem, uint32_t left, bool *full)
{
	struct rgate_queue_copy copy;
	struct kept *t;
	uint64_t len;
	int err;

	if (left < sizeof(copy))
		return 0;
	memcpy(&copy, mem, sizeof(copy));
	len = sizeof(copy) + RGATE_QUEUE_PADDED(copy.put.len);
	if (queue_put_check(&copy.put) || len > left || !copy.id || copy.id >> 40 ||
	    copy.reserved || !copy.origin.process || !RGATE_SUBMIT_FIRST(copy.origin.word))
		return 0;
	/* It is here already: all are told of once more, when it is not known which ones are. */
	if (keep_find(q, q->of, copy.id))
		return (uint32_t)len;
	t = keep_make(q, &copy.put, (const char *)mem + sizeof(copy), &err);
	if (t) {
		t->tag = copy.tag;
		t->origin = copy.origin;
		err = keep_enter(q, t, q->of, copy.id);
	}
	*full = err;
	return err ? 0 : (uint32_t)len;
}

/* False: it makes no sense */
static bool take_copies(struct kept_queue *q, const unsigned char *mem, uint32_t left, uint32_t n)
{
	bool full = false;
	uint32_t len;

	for (; n; n--, mem += len, left -= len) {
		len = take_copy(q, mem, left, &full);
		if (full)
			q->full = true;
		if (!len)
			return full;
	}
	return true;
}

static void take_ends(struct kept_queue *q, const unsigned char *mem, uint32_t n)
{
	struct kept *t;
	uint64_t id;
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(&id, mem + i * sizeof(id), sizeof(id));
		t = keep_find(q, q->of, id);
		if (t)
			keep_forget(q, t);
	}
}

/* The home knows that there was no room: all of it is asked for anew, after a while. */
static void was_full(struct kept_queue *q)
{
	q->full = false;
	q->after = 0;
	q->due = keep_now(q) + ROOM_NS;
}

void keep_copied(struct kept_queue *q, int result, uint64_t value)
{
	const unsigned char *mem = keep_slot_mem(q);
	struct rgate_queue_copies head = { .queue = ~0U };
	uint64_t ends;

	if (q->full) {
		was_full(q);
		return;
	}
	if (result >= (int)sizeof(head))
		memcpy(&head, mem, sizeof(head));
	ends = sizeof(head) + (uint64_t)head.ends * sizeof(uint64_t);
	if (head.queue != (q->of & 0xffffff) || !value || ends > (uint32_t)result ||
	    !take_copies(q, mem + ends, (uint32_t)(result - (int)ends), head.copies)) {
		keep_refuse(q->user->keeper);
		keep_lost(q, -EPROTO);
		return;
	}
	take_ends(q, mem + sizeof(head), head.ends);
	q->next = value;
	q->after = head.after;
	if (head.flags & RGATE_ENDS_MISSED)
		keep_doubt(q);
	/* One that tells of nothing is asked again, but not at once. */
	if (!head.ends && !head.copies)
		q->due = keep_now(q) + (q->behind ? KEEP_PAUSE_NS : KEEP_MS);
}

/* ---- Who is asked ---- */

int keep_mirror_ask(struct keeper *k, const struct queue_open *as, uint32_t node, uint64_t serial,
		    uint32_t which)
{
	struct keep_user *u = keep_user_of(k, as->owner, false);
	const uint64_t off = u ? keep_slot_at(u, KEEP_QUEUES) : 0;
	struct rgate_request r = {
		.op = RGATE_REQ_QUEUE_MIRROR, .a0 = node, .off = off, .cookie = KEEP_QUEUES,
		.a1 = RGATE_QUEUE_OPEN_A1(as->owner, 0), .len = sizeof(as->place),
		.deadline_us = KEEP_ANSWER_US,
	};
	int err;

	if (!u)
		return -ENOMEM;
	if (u->asks)
		return -EBUSY;
	err = keep_session_begin(u);
	if (err)
		return err;
	memcpy(u->mem + off, &as->place, sizeof(as->place));
	err = rgate_session_submit(u->session, &r);
	if (err)
		return err;
	u->asks = true;
	u->asks_serial = serial;
	u->asks_which = which;
	return 0;
}

void keep_mirror_asked(struct keep_user *u, int result)
{
	struct queue_service *sv = container_of(u->keeper, struct queue_service, keeper);

	u->asks = false;
	u->idle_ns = u->keeper->home->now;
	u->keeper->due = 0;
	queue_mirror_asked(sv, u->asks_serial, u->asks_which, result);
}
