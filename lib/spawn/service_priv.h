/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* service.c has the object and the hub's side, service_ops.c what requests do. */
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

struct spawn_node {
	struct rgate_spawn *spawn;	/* NULL: not a node that can be asked */
	bool busy;			/* the hub's thread has to look after it, */
	uint64_t due_ns;		/* at the latest then */
};

struct spawn_service {
	pthread_mutex_t lock;		/* all below, but for the hub */
	struct rgate_hub *hub;
	struct spawn_node node[RGATE_NODES_MAX];
};

extern const struct rgate_req_service spawn_requests;

/* With the lock: */

/* Something was done for it in the engine's thread: the hub's looks after what follows. */
void spawn_service_poke(struct spawn_service *service, struct spawn_node *node);
/* Ends what needs not wait any more */
void spawn_task_news(struct task *task);

#endif
