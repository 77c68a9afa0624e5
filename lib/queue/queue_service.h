/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The service RGATE_REQ_QUEUE: sessions submit tasks to named queues, and claim them there.
 *
 * Queues are the engine's: all that is done with them is done in its thread, their clock is its
 * own. There is no lock. What is asked of queues whose home is another node goes there by lib/gate,
 * and what their sessions ask here comes by it. Tasks that go there are kept until they have ended.
 */
#ifndef RGATE_QUEUE_SERVICE_H
#define RGATE_QUEUE_SERVICE_H

#include "engine.h"

struct gate_service;
struct journal_opts;
struct journal_stats;
struct queue_service;

struct queue_opts {
	size_t sz;
	/* What time it is, ns; it never goes back. NULL: CLOCK_MONOTONIC */
	uint64_t (*clock)(void);
	/* To other nodes, of the role gate_queues: stays until queue_service_destroy(); or NULL */
	struct gate_service *gate;
	uint64_t keep_bytes;	/* of a user's tasks that are kept; 0: 512 MiB */
	const struct journal_opts *journal;	/* until it is created; NULL: none */
};

/* @opts: NULL for the defaults. -ENOMEM; -EINVAL; as journal_open() */
int queue_service_create(struct queue_service **service, const struct queue_opts *opts);

/* The service gets requests of that engine from now on, of no other one; as rgate_engine_add() */
int queue_service_add(struct queue_service *service, struct rgate_engine *engine);

/* Tasks that were submitted to queues of other nodes */
struct queue_kept_stats {
	size_t sz;
	uint64_t tasks;		/* that are kept, now */
	uint64_t bytes;
	uint64_t again;		/* submitted once more, so far */
	uint64_t refused;	/* what homes have said that could not be */
	uint64_t late;		/* ends that were known, or of what nobody has heard was taken */
	uint64_t lost;		/* tasks that the next process can never have, or for want of
				 * memory
				 */
	uint64_t copies;	/* of tasks of other nodes' queues, now; their bytes are in bytes */
	uint64_t unmirrored;	/* tasks of queues here that were taken without a copy, so far */
};

/* Any thread; @stats->sz is set by the caller. -EINVAL */
int queue_service_kept(const struct queue_service *service, struct queue_kept_stats *stats);

/* Likewise. -ENOENT: there is no journal */
int queue_service_journal(const struct queue_service *service, struct journal_stats *stats);

/*
 * It will be destroyed, and before that its engine: tasks of the journal whose sessions end from
 * now on have lost no attempt, and nobody waits for what cannot be written. Any thread
 */
void queue_service_stops(struct queue_service *service);

/* queue_service_destroy - after the engine; NULL is allowed. All tasks are gone */
void queue_service_destroy(struct queue_service *service);

#endif
