/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A queue that a program has open: a session of its own, whose memory has two halves */
#ifndef RGATE_QUEUE_QUEUE_CLIENT_H
#define RGATE_QUEUE_QUEUE_CLIENT_H

#include <ringgate/rgate_queue.h>

#include "sync_later.h"

#define OUT_LEN		RGATE_QUEUE_PART_MAX		/* what is asked, */
#define IN_LEN		(RGATE_QUEUE_PART_MAX + 4096U)	/* and what is told, behind that */

struct rgate_queue {
	struct sync_client client;
	char *out, *in;
	/* of what is under way in the background: CLAIM or WAIT, and its tasks at most */
	uint16_t later;
	unsigned int most;
};

/*
 * May what is asked be written? -EOWNERDEAD: not by a child, which does not have the memory of a
 * session that its parent opened; -EBUSY: it is lent
 */
static inline int queue_mine(const struct rgate_queue *q)
{
	return rgate_session_poll(q->client.session, NULL, 0);
}

/* CLAIM, but for its handle */
struct rgate_request queue_claim_request(uint64_t types, unsigned int most, uint32_t flags);
/* @n tasks, of @total bytes, or why there are none */
int queue_read_tasks(const struct rgate_queue *q, int total, uint64_t n, unsigned int most,
		     struct rgate_queue_got *got);
/* @op on a task that was claimed; @len bytes of q->out go along */
int queue_of_task(struct rgate_queue *q, uint16_t op, const struct rgate_queue_task *task,
		  uint32_t ms, size_t len);

/*
 * Completes as rgate_queue_complete_many(), and asks @along by requests that go together. @later:
 * that one is not waited for, see sync_later.h; else @value: out, or NULL
 * What became of @along, or of asking it
 */
int queue_complete_along(struct rgate_queue *q, struct rgate_queue_result *results,
			 unsigned int n, struct rgate_request along, bool later, uint64_t *value);

/* rgate_queue_fetch(), which calls @each, if there is one, when a piece is there: the queue may be
 * asked for other things meanwhile */
int queue_fetch(struct rgate_queue *q, const struct rgate_queue_memory *memory, uint64_t off,
		void *buf, size_t len, int timeout_ms, void (*each)(void *ctx), void *ctx);

#endif
