/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What is asked of a home, and what comes of it: for keep_talk.c, keep_again.c and keep_ends.c */
#ifndef RGATE_QUEUE_KEEP_TALK_H
#define RGATE_QUEUE_KEEP_TALK_H

#include "keep.h"

#define KEEP_MS		1000000ULL
#define KEEP_RETRY_NS	(1000 * KEEP_MS)
#define KEEP_PAUSE_NS	(100 * KEEP_MS)	/* where it is asked again and again */
#define KEEP_ANSWER_US	10000000U	/* a home that has not answered by then is lost */
/* Bytes for a SUBMIT, in front of those of each queue */
#define KEEP_ROOM	RGATE_QUEUE_PART_MAX

static inline uint64_t keep_now(const struct kept_queue *q)
{
	return q->user->keeper->home->now;
}

static inline uint32_t keep_slots(const struct keep_user *u)
{
	return u->mirrors ? KEEP_MIRRORS : KEEP_QUEUES;
}

static inline uint32_t keep_slot_len(const struct keep_user *u)
{
	return u->mirrors ? RGATE_QUEUE_PART_MAX : KEEP_SLOT;
}

/* Behind the last one there is a place for what is not of a kept queue. */
static inline uint64_t keep_slot_at(const struct keep_user *u, uint32_t slot)
{
	return KEEP_ROOM + (uint64_t)slot * keep_slot_len(u);
}

static inline uint64_t keep_slot_off(const struct kept_queue *q)
{
	return keep_slot_at(q->user, q->slot);
}

static inline unsigned char *keep_slot_mem(const struct kept_queue *q)
{
	return q->user->mem + keep_slot_off(q);
}

/* If there is a place for it: q->asked. Else it is due later */
void keep_ask(struct kept_queue *q, enum talk state, struct rgate_request r);

#define ASK(q, op_, ...) \
	keep_ask((q), TALK_##op_, \
		 (struct rgate_request){ .handle = (q)->handle, ##__VA_ARGS__ })

/* With its node, or with its queue: what is kept is looked at anew, over another handle. */
void keep_lost(struct kept_queue *q, int err);
/* Of a FOLLOW. -EPROTO: it is not what that can say */
int keep_read_head(const struct kept_queue *q, int result, struct rgate_queue_ends *head);

/* Submits some of what a former process had, if there is some; what came of it */
void keep_again(struct kept_queue *q);
void keep_submitted(struct kept_queue *q, int result, uint64_t value);
/* Asks of some whether they have ended; what was said */
void keep_check(struct kept_queue *q);
void keep_checked(struct kept_queue *q, int result);
/* Asks for the next ends; what they are */
void keep_follow(struct kept_queue *q);
void keep_followed(struct kept_queue *q, int result, uint64_t value);

#endif
