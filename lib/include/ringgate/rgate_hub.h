/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A node's services: one thread that receives for all of them, from all peers.
 *
 * The first byte of a message is the number of the service that it is for, the topmost
 * four bits of a notice's 32 likewise. A service has two roles: the one that serves, to
 * which questions go, and the one that asks, to which answers and news go; the topmost bit
 * of the first byte tells them apart, so a node can be both for the same peer. The thread
 * calls the service's functions one at a time; they should not wait for long, as what comes
 * for the others waits for them. Who adds or removes a service waits for that service alone.
 */
#ifndef RINGGATE_RGATE_HUB_H
#define RINGGATE_RGATE_HUB_H

#include <ringgate/rgate_peer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_hub;

#define RGATE_SERVICES_MAX	16	/* numbers 1 to 15; from 8 on they are the user's */
#define RGATE_SERVICE_NET	1
#define RGATE_SERVICE_SPAWN	2
#define RGATE_SERVICE_MEMORY	3
#define RGATE_SERVICE_SYNC	4
#define RGATE_SERVICE_SOCKET	5
#define RGATE_SERVICE_QUEUE	6
#define RGATE_SERVICE_ASKER	0x80	/* with a number: its role that asks */
#define RGATE_NOTICE_SHIFT	28
#define RGATE_HUB_MSG_MAX	256	/* bytes, by rgate_hub_send() */

struct rgate_hub_opts {
	size_t sz;
	uint32_t nodes;		/* bit N: a peer for node N; 0: for all others */
	uint32_t flags;		/* enum rgate_hub_flags */
	uint32_t spin_us;	/* so long the thread polls before it sleeps, as
				 * <ringgate/rgate_spin.h> says; 0: by the number of CPUs */
};

enum rgate_hub_flags {
	/* Nothing is received before rgate_hub_start(): what comes meanwhile waits, and is not
	 * for nobody because its service is not there yet */
	RGATE_HUB_PAUSED = 1U << 0,
};

/* What a service does; each function may be NULL. @ctx: as given to rgate_hub_add() */
struct rgate_service {
	size_t sz;
	/* The connection to @node came up, or is gone; also told for those that are up
	 * when the service is added, before it is called for anything else. Up twice in a
	 * row: it is another connection. */
	void (*state)(void *ctx, uint32_t node, bool up);
	/* @msg is aligned for any type, and valid until the function returns */
	void (*message)(void *ctx, uint32_t node, const void *msg, size_t len);
	/* Never for the role that asks */
	void (*notice)(void *ctx, uint32_t node, uint32_t imm);
	/* Called before the thread sleeps; in how many ns again at the latest, -1: no wish */
	int64_t (*tick)(void *ctx);
};

/*
 * rgate_hub_create - opens the peers and starts the thread, which blocks all signals
 * -EBUSY: one of the peers is open already; -EINVAL: flags, spin_us.
 */
RGATE_API int rgate_hub_create(struct rgate_hub **hub, struct rgate_node *node,
			       const struct rgate_hub_opts *opts);

/*
 * rgate_hub_start - with RGATE_HUB_PAUSED: the services are there, the thread begins
 * -EALREADY: it has begun; or as pthread_create(3). By one thread.
 */
RGATE_API int rgate_hub_start(struct rgate_hub *hub);

/*
 * rgate_hub_destroy - the hub is nobody's any more; NULL is allowed
 * Services that are added go on: the hub ends, and closes its peers, when the last of them is
 * removed, which rgate_hub_stats() tells before. Not from a service's function.
 */
RGATE_API void rgate_hub_destroy(struct rgate_hub *hub);

/*
 * rgate_hub_add - @number is this service's from now on
 * @number: 1 to 15, its role that serves; with RGATE_SERVICE_ASKER: the other one, which is
 *	added by itself
 * -EEXIST; -EINVAL. Not from a service's function. Any thread.
 */
RGATE_API int rgate_hub_add(struct rgate_hub *hub, uint32_t number,
			    const struct rgate_service *service, void *ctx);

/* rgate_hub_remove - of @number as it was added, none of the functions runs once this has
 * returned. Not from one of them. */
RGATE_API void rgate_hub_remove(struct rgate_hub *hub, uint32_t number);

RGATE_API struct rgate_node *rgate_hub_node(const struct rgate_hub *hub);
/* The peer for operations; NULL: there is none for that node. Do not close it, nor
 * receive from it. */
RGATE_API struct rgate_peer *rgate_hub_peer(const struct rgate_hub *hub, uint32_t node);
/*
 * rgate_hub_epoch - the connection to @node that the services were told of last, for
 * struct rgate_op; 0: none so far. From a service's functions only: what they are given
 * came over this one.
 */
RGATE_API uint32_t rgate_hub_epoch(const struct rgate_hub *hub, uint32_t node);

/*
 * rgate_hub_send - a message to a service of @node, which is not waited for
 * @msg: is copied; its first byte is the service's number, with RGATE_SERVICE_ASKER if it is
 *	for the role that asks.
 *
 * Messages arrive in their order, all of them or, if the connection ends, the first ones:
 * when it comes up again, the services begin anew (state()). A wire that stalls for less
 * than the cluster's timeout delays them. From any thread, also from a service's function.
 * -ENOTCONN: no connection; -EMSGSIZE; -EAGAIN: 256 messages wait already.
 */
RGATE_API int rgate_hub_send(struct rgate_hub *hub, uint32_t node, const void *msg, size_t len);

/*
 * rgate_hub_await - the thread calls the tick functions when an operation to @node has ended
 * For services that post operations: by itself it is woken by messages. Holds until it has been
 * woken once; without a peer for @node nothing happens. Any thread, no lock.
 */
RGATE_API void rgate_hub_await(struct rgate_hub *hub, uint32_t node);

/* rgate_hub_wake - makes the thread call the tick functions; any thread, no lock */
RGATE_API void rgate_hub_wake(struct rgate_hub *hub);

struct rgate_hub_stats {
	size_t sz;
	uint64_t messages;
	uint64_t notices;
	uint64_t unknown;	/* messages and notices for services that are not here */
	uint64_t stale;		/* of a connection that was over before services knew of it */
	uint32_t serving;	/* bit N: a service of number N is added now, */
	uint32_t asking;	/* likewise with RGATE_SERVICE_ASKER */
};

/* @stats->sz is set by the caller */
RGATE_API int rgate_hub_stats(const struct rgate_hub *hub, struct rgate_hub_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
