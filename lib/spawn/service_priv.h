/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * service.c has the object and the hub's side, service_ops.c what is done with a process by its
 * handle, service_ask.c what is asked of a node without one, service_share.c how much memory a
 * user's processes may have.
 */
#ifndef RGATE_SPAWN_SERVICE_PRIV_H
#define RGATE_SPAWN_SERVICE_PRIV_H

#include <pthread.h>

#include "service.h"
#include "spawn_client.h"

/* A request that waits for its process; those of a kind end in their order */
enum task_kind {
	TASK_WAIT,
	TASK_READ_OUT,
	TASK_READ_ERR,
	TASK_WRITE,
	TASK_DETACH,	/* the task's last: nothing else names it any more */
	TASK_KINDS
};

struct waiter {
	struct waiter *next;
	struct rgate_req *r;	/* whose word of data this is while it waits */
	struct task *task;
	enum task_kind kind;
};

/* What a handle names */
struct task {
	struct spawn_node *node;
	struct rgate_spawn_job *job;
	struct waiter *waiters[TASK_KINDS];
};

/* A question to a node */
struct inquiry {
	struct inquiry *next;
	struct spawn_node *node;
	struct rgate_req *r;		/* NULL: nobody waits for it any more */
	uid_t uid;
	uint64_t due_ns;		/* CLOCK_MONOTONIC: not answered then, it never is */
	struct client_ask ask;
	struct client_question *q;	/* NULL: it was not asked yet */
};

struct spawn_node {
	struct rgate_spawn *spawn;	/* NULL: not a node that can be asked */
	struct inquiry *inquiries;	/* in their order */
	bool busy;			/* the hub's thread has to look after it, */
	uint64_t due_ns;		/* at the latest then */
};

/* Pools that a process has memory of: the one that its node writes, and the one that it reads */
enum spawn_pool {
	SPAWN_WRITTEN,
	SPAWN_READ,
	SPAWN_POOLS
};

/* What the processes of a user have; also those that were closed, until their node lets go */
struct spawn_share {
	struct spawn_share *next;
	struct spawn_service *service;
	uid_t uid;
	unsigned int jobs;		/* that keep it */
	uint64_t bytes[SPAWN_POOLS];
};

struct spawn_service {
	pthread_mutex_t lock;		/* all below, but for the hub and the shares */
	struct rgate_hub *hub;
	struct spawn_node node[RGATE_NODES_MAX];
	pthread_mutex_t share_lock;	/* after that of a struct rgate_spawn */
	struct spawn_share *shares;
};

extern const struct rgate_req_service spawn_requests;

int service_begin_list(struct rgate_req *r, void *ctx);
int service_begin_kill(struct rgate_req *r, void *ctx);
int service_begin_nodes(struct rgate_req *r, void *ctx);
int service_cancel_inquiry(struct rgate_req *r, void *ctx);

/* The other nodes' word for who asks */
static inline uint32_t spawn_owner_of(const struct rgate_req *r)
{
	const uid_t uid = rgate_seat_uid(rgate_req_seat(r));

	return uid ? (uint32_t)uid + 1 : RGATE_SPAWN_NODE;
}

/* With the lock: */

/* Something was done for it in the engine's thread: the hub's looks after what follows. */
void spawn_service_poke(struct spawn_service *service, struct spawn_node *node);
/*
 * Before a process of that user's: 0; -ENOBUFS: he has as much memory as is left for all; -ENOMEM.
 * Then spawn_share_end(), with what it has become, or NULL.
 */
int spawn_share_begin(struct spawn_service *service, const struct rgate_spawn *spawn, uid_t uid,
		      struct spawn_share **share);
void spawn_share_end(struct spawn_share *share, struct rgate_spawn_job *job);
/* Ends what needs not wait any more; the task may be gone then */
void spawn_task_news(struct task *task);
/* Asks what was not asked yet, ends what is overdue. When it has to be called again at the
 * latest; UINT64_MAX: need not */
uint64_t spawn_inquiries_look(struct spawn_node *node);

#endif
