// SPDX-License-Identifier: MIT OR GPL-2.0
/* What has ended: that nobody told of, and then as it does */
#include <errno.h>
#include <string.h>

#include "keep_talk.h"

#define WAITS	48U	/* requests that wait at once: GATE_TICKETS is the limit */
#define QUIET	3U	/* times that the pause is doubled */

/* ---- What has ended that nobody told of? ---- */

/* Those of the next numbers: how many 64s of bits */
static uint32_t fill_bits(struct kept_queue *q)
{
	uint32_t words = 0, i;
	struct kept *t;
	uint64_t n;

	memset(q->bits, 0, sizeof(q->bits));
	q->base = 0;
	for (i = 0; i < RGATE_QUEUE_OVER_MAX && q->check_at != &q->tasks; i++) {
		t = container_of(q->check_at, struct kept, of_queue);
		if (t->of == q->of) {
			q->base = q->base ? q->base : t->id;
			n = t->id - q->base;
			if (t->id < q->base || n >= RGATE_QUEUE_OVER_MAX)
				break;
			q->bits[n / 64] |= 1ULL << n % 64;
			words = n / 64 < words ? words : (uint32_t)(n / 64 + 1);
		}
		q->check_at = t->of_queue.next;
	}
	return words;
}

void keep_check(struct kept_queue *q)
{
	struct link *const from = q->check_at;

	q->words = fill_bits(q);
	if (!q->words) {
		q->unsure = q->check_at != &q->tasks;
		return;
	}
	memcpy(keep_slot_mem(q), q->bits, q->words * sizeof(q->bits[0]));
	ASK(q, CHECK, .op = RGATE_REQ_QUEUE_OVER, .a0 = q->base, .off = keep_slot_off(q),
	    .len = (uint32_t)(q->words * sizeof(q->bits[0])));
	if (!q->asked)
		q->check_at = from;
}

void keep_checked(struct kept_queue *q, int result)
{
	uint64_t bits;
	struct kept *t;
	uint32_t i;

	if ((uint32_t)result != q->words * sizeof(bits)) {
		keep_refuse(q->user->keeper);
		keep_lost(q, -EPROTO);
		return;
	}
	for (i = 0; i < q->words; i++) {
		memcpy(&bits, keep_slot_mem(q) + i * sizeof(bits), sizeof(bits));
		if (bits & ~q->bits[i])
			keep_refuse(q->user->keeper);
		for (bits &= q->bits[i]; bits; bits &= bits - 1) {
			t = keep_find(q, q->of, q->base + i * 64ULL +
				      (unsigned int)__builtin_ctzll(bits));
			if (!t)
				continue;
			keep_forget(q, t);
			/* It may be told, too. */
			q->excused++;
		}
	}
}

/* ---- What ends ---- */

void keep_follow(struct kept_queue *q)
{
	const bool at_once = q->behind || q->crowded || q->user->n > WAITS;

	ASK(q, FOLLOW, .op = RGATE_REQ_QUEUE_FOLLOW, .a0 = q->next, .off = keep_slot_off(q),
	    .len = KEEP_SLOT,
	    .a1 = RGATE_FOLLOW_A1(q->user->keeper->tag, at_once ? RGATE_FOLLOW_NOW : 0));
}

/* Has any of those ended that are kept? */
static bool take_ends(struct kept_queue *q, uint32_t n)
{
	bool any = false;
	struct kept *t;
	uint64_t id;
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(&id, keep_slot_mem(q) + sizeof(struct rgate_queue_ends) + i * sizeof(id),
		       sizeof(id));
		t = keep_find(q, q->of, id);
		any |= t != NULL;
		if (t)
			keep_forget(q, t);
		else
			keep_stray(q, q->of, id);
	}
	return any;
}

void keep_followed(struct kept_queue *q, int result, uint64_t value)
{
	struct rgate_queue_ends head;

	if (keep_read_head(q, result, &head) || head.queue != (q->of & 0xffffff) || !value) {
		keep_refuse(q->user->keeper);
		keep_lost(q, -EPROTO);
		return;
	}
	q->next = value;
	q->crowded = false;
	/* Nothing came of it, whether that was asked for or is of no use. */
	if (take_ends(q, head.n)) {
		q->quiet = 0;
	} else {
		q->due = keep_now(q) + (KEEP_PAUSE_NS << q->quiet);
		q->quiet += q->quiet < QUIET;
	}
	if (head.flags & RGATE_ENDS_MISSED)
		keep_doubt(q);
}
