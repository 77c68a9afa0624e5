/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Sockets of another node: requests of RGATE_REQ_SOCKET that sessions of this node ask for, and the
 * gateway's engine carries out, for a seat of its own for each of them.
 *
 * At the gateway nothing else is needed: who asks there is to its engine, and to the service of
 * sockets, a client as any other, of the user that his node says, if it may speak for him. So
 * policy, limits, bounds and the end of all that he had are what they are for its own programs.
 *
 * Three threads work for it: the engine's begins and cancels requests, the hub's hands on what
 * nodes say, one of its own takes what guests' requests have come to. One lock over all that
 * they share; the hub's comes before it, those of seats, of a peer and of the policy after.
 */
#ifndef RGATE_GATE_SERVICE_H
#define RGATE_GATE_SERVICE_H

#include <ringgate/rgate_hub.h>

#include "engine.h"

struct gate_service;

struct gate_opts {
	size_t sz;
	struct rgate_hub *hub;		/* stays until gate_service_destroy() */
	struct rgate_engine *engine;	/* of guests; NULL: there are none */
	/*
	 * may - does @node speak for @uid? Asked for all that a node wants, each time
	 * Hub's thread, with the service's lock; should not wait. NULL: none does.
	 */
	bool (*may)(void *ctx, uint32_t node, uid_t uid);
	/* What a guest of @uid may; false: nothing. As may(). NULL: everything */
	bool (*rights)(void *ctx, uid_t uid, struct rgate_limits *limits);
	void *ctx;
	uint32_t gateway;		/* whom gate_service_add() asks */
	uint32_t silence_ms;		/* a node without a connection for so long is given up;
					 * 0: 10000 */
};

/* -ENOMEM; -EINVAL; -EMFILE; -EEXIST: the hub has such a service; and as rgate_pool_alloc() */
int gate_service_create(struct gate_service **service, const struct gate_opts *opts);

/*
 * Requests of that engine go to the gateway from now on; as rgate_engine_add(). -ENXIO: the gateway
 * is no other node
 */
int gate_service_add(struct gate_service *service, struct rgate_engine *engine);

struct gate_stats {
	size_t sz;
	uint64_t guests;	/* now */
	uint64_t came;		/* so far */
	uint64_t turned_away;	/* for there were too many, or they came too fast */
};

/* Any thread; @stats->sz is set by the caller. -EINVAL */
int gate_service_stats(struct gate_service *service, struct gate_stats *stats);

/*
 * gate_service_quit - before the engines are destroyed; NULL is allowed
 * What is under way ends, nothing can be begun any more, guests are gone. Waits until no message is
 * being sent any more, 2 s for each at most.
 */
void gate_service_quit(struct gate_service *service);

/* gate_service_destroy - after the engines; NULL is allowed */
void gate_service_destroy(struct gate_service *service);

#endif
