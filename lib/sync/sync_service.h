/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The services RGATE_REQ_LOCK and RGATE_REQ_BARRIER: sessions hold named locks and wait at
 * named barriers, of which each has a home, this node or another one.
 *
 * Two threads work for it: the engine's begins and cancels requests, the hub's hands on what
 * other nodes ask and answer, and looks at the clock. Neither waits for a node. One lock over
 * all that they share; the hub's comes before it, those of a peer, of a node's connections, of
 * the policy and of the engine's ends after.
 */
#ifndef RGATE_SYNC_SERVICE_H
#define RGATE_SYNC_SERVICE_H

#include <ringgate/rgate_hub.h>

#include "engine.h"

struct sync_service;

struct sync_opts {
	size_t sz;
	struct rgate_hub *hub;	/* stays until sync_service_destroy(); NULL: no other node, nor
				 * another process that was home of the same names before */
	/*
	 * may - does @node speak for @uid? Asked for all that a node wants, each time
	 * Hub's thread, with the service's lock; should not wait. NULL: none does.
	 */
	bool (*may)(void *ctx, uint32_t node, uid_t uid);
	void *ctx;
	uint32_t lease_ms;	/* what a node that says nothing has is another one's after that
				 * time; 0: 3000, 100 to 60000 */
	uint32_t reserved;
};

/*
 * @opts: NULL for the defaults. -ENOMEM; -EINVAL; -EEXIST: the hub has such a service; and as
 * rgate_pool_alloc()
 */
int sync_service_create(struct sync_service **service, const struct sync_opts *opts);

/* The services get requests of that engine from now on; as rgate_engine_add() */
int sync_service_add(struct sync_service *service, struct rgate_engine *engine);

/*
 * sync_service_destroy - after the engine that it was added to; NULL is allowed
 * Waits until no message is being sent any more, 2 s for each at most.
 */
void sync_service_destroy(struct sync_service *service);

#endif
