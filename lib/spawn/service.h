/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The service RGATE_REQ_SPAWN: sessions ask for processes on other nodes.
 *
 * Two threads work for it: the engine's begins and cancels requests, the hub's hands on what
 * other nodes say and ends the requests that waited for it. Neither waits for a node. All that
 * they share, and all of a node's struct rgate_spawn, has one lock; the hub's comes before it,
 * those of a struct rgate_spawn and of the engine's ends after.
 *
 * What a user has started is that user's: the other node keeps whose it is, as this one tells
 * it, so it outlives this process. Root asks for all that this node has started.
 */
#ifndef RGATE_SPAWN_SERVICE_H
#define RGATE_SPAWN_SERVICE_H

#include <ringgate/rgate_hub.h>

#include "engine.h"

struct spawn_service;

/*
 * spawn_service_create - asks the nodes that @hub has peers for
 * @hub: stays until spawn_service_destroy()
 * 0; -EEXIST: the hub has a service that asks for processes; as rgate_spawn_open()
 */
int spawn_service_create(struct spawn_service **service, struct rgate_hub *hub);

/* The service gets requests of that engine from now on; as rgate_engine_add() */
int spawn_service_add(struct spawn_service *service, struct rgate_engine *engine);

/*
 * spawn_service_destroy - after the engine that it was added to; NULL is allowed
 * Waits until the nodes have let go of the memory of what they ran, 2 s for each at most.
 */
void spawn_service_destroy(struct spawn_service *service);

#endif
