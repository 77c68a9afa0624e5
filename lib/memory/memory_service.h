/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The service RGATE_REQ_MEMORY: sessions export parts of their memory under a name, and read,
 * write and change what others have exported, here or at another node.
 *
 * Two threads work for it: the engine's begins and cancels requests, the hub's hands on what
 * other nodes ask and answer. Neither waits for a node. One lock over all that they share; the
 * hub's comes before it, those of a peer, of the policy and of the engine's ends after. All that
 * is done to memory is done with it held, in pieces of RGATE_MEMORY_LEN_MAX at most: a region that
 * has been released is not touched any more.
 */
#ifndef RGATE_MEMORY_SERVICE_H
#define RGATE_MEMORY_SERVICE_H

#include <ringgate/rgate_hub.h>

#include "engine.h"

struct memory_service;

struct memory_opts {
	size_t sz;
	struct rgate_hub *hub;	/* stays until memory_service_destroy(); NULL: no other node */
	/*
	 * may - does @node speak for @uid? Asked for all that a node wants, each time
	 * Hub's thread, with the service's lock; should not wait. NULL: none does.
	 */
	bool (*may)(void *ctx, uint32_t node, uid_t uid);
	void *ctx;
	uint32_t silence_ms;	/* a node that says nothing for so long is given up; 0: 10000 */
	uint32_t reserved;
};

/*
 * @opts: NULL for the defaults. -ENOMEM; -EINVAL; -errno of getrandom(2); -EEXIST: the hub has such
 * a service; and as rgate_pool_alloc()
 */
int memory_service_create(struct memory_service **service, const struct memory_opts *opts);

/* The service gets requests of that engine from now on; as rgate_engine_add() */
int memory_service_add(struct memory_service *service, struct rgate_engine *engine);

/*
 * memory_service_destroy - after the engine that it was added to; NULL is allowed
 * Waits until no message is being sent any more, 2 s for each at most.
 */
void memory_service_destroy(struct memory_service *service);

#endif
