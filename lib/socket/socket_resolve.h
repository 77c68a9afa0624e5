/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * RESOLVE: getaddrinfo(3) waits, so threads of its own ask it, a few, and none before the first
 * request. What waits for one is bounded for a user and in all, and users have turns.
 *
 * A request that is cancelled is over at once. The thread that asks for it cannot be told; what it
 * finds is dropped, and until then it counts as its user's. So nothing of the service waits for it,
 * nor does its end: the threads keep what they need themselves.
 */
#ifndef RGATE_SOCKET_RESOLVE_H
#define RGATE_SOCKET_RESOLVE_H

#include "engine.h"

#define RESOLVE_THREADS		8U
#define RESOLVE_OWN		2U	/* of them a user may have whatever others do; */
#define RESOLVE_SHARED		4U	/* more while fewer than so many are busy */
#define RESOLVE_WAIT		32U	/* requests of a user that wait for one */
#define RESOLVE_WAIT_ALL	256U

struct socket_service;
struct resolver;

/* -ENOMEM */
int resolver_create(struct resolver **resolver, struct socket_service *sv);
/* All requests are over. Threads that still ask end by themselves. NULL is allowed */
void resolver_destroy(struct resolver *resolver);

/* As of rgate_req_op. @ctx: struct socket_service. -EDQUOT, -ENOBUFS: too many wait; -EACCES */
int resolve_begin(struct rgate_req *r, void *ctx);
int resolve_cancel(struct rgate_req *r, void *ctx);

/* For who forks, around all else of the service */
void resolver_lock(struct resolver *resolver);
void resolver_unlock(struct resolver *resolver);

#endif
