/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Requests that another node carries out: sessions of this node ask for them, and that one's
 * engine does what they say, for a seat of its own for each session. Sockets are all at one node,
 * the gateway; a queue is where its home is.
 *
 * Where they are carried out nothing else is needed: who asks there is to the engine, and to the
 * service, a client as any other, of the user that his node says, if it may speak for him. So
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

struct gate_role;
struct gate_service;

struct gate_opts {
	size_t sz;
	const struct gate_role *role;	/* gate_wire.h has them */
	struct rgate_hub *hub;		/* stays until gate_service_destroy() */
	struct rgate_engine *engine;	/* of guests; NULL: there are none */
	/*
	 * may - does @node speak for @uid? Asked for all that a node wants, each time
	 * Hub's thread, or in gate_service_review(), with the service's lock; should not wait.
	 * NULL: none does.
	 */
	bool (*may)(void *ctx, uint32_t node, uid_t uid);
	/* What a guest of @uid may; false: nothing. As may(). NULL: everything */
	bool (*rights)(void *ctx, uid_t uid, struct rgate_limits *limits);
	void *ctx;
	uint32_t gateway;		/* whom gate_service_add() asks; 0 with another role */
	uint32_t silence_ms;		/* a node without a connection for so long is given up;
					 * 0: 10000 */
};

/* -ENOMEM; -EINVAL; -EMFILE; -EEXIST: the hub has such a service; and as rgate_pool_alloc() */
int gate_service_create(struct gate_service **service, const struct gate_opts *opts);

/*
 * Requests of sockets of that engine go to the gateway from now on; as rgate_engine_add(). -ENXIO:
 * the gateway is no other node
 */
int gate_service_add(struct gate_service *service, struct rgate_engine *engine);

/* ---- What a service of the engine hands over: in the engine's thread ---- */

struct gate_caller;

/* What a client calls a node: as board_find() */
int gate_service_find(const struct gate_service *service, uint64_t number, uint32_t *node);

/*
 * gate_caller_new - @seat has things at @node, one that gate_service_find() knows
 * -ENOMEM; -ECONNRESET: gate_service_quit() was called
 */
int gate_caller_new(struct gate_service *service, struct rgate_seat *seat, uint32_t node,
		    struct gate_caller **caller);

/* Its requests are over: what it has there ends, now or when the node hears of it. */
void gate_caller_leave(struct gate_caller *caller);

/* The node has nothing of it any more, or cannot be asked for it: all that is asked has failed */
bool gate_caller_is_lost(const struct gate_caller *caller);

/*
 * gate_caller_life - how many processes of its node there had been before the one that is there
 * In gate_as.over() alone: of the one that has said the result, if it is not negative
 */
uint64_t gate_caller_life(const struct gate_caller *caller);

/* Likewise, which one that is: as gate_service_process() of its own node has it */
uint64_t gate_caller_process(const struct gate_caller *caller);
/* This process, as no other one of this node, before or after it */
uint64_t gate_service_process(const struct gate_service *service);

/* Whose guest it is: a node; -ENOENT: nobody's, or not any more */
int gate_service_whose(struct gate_service *service, const struct rgate_seat *seat, uint32_t *node);

/*
 * gate_service_limits - what a session of this node may that asks for @uid, of its own accord
 * -EACCES: nothing; -ECONNRESET: gate_service_quit() was called: no session is to be made
 */
int gate_service_limits(struct gate_service *service, uid_t uid, struct rgate_limits *limits);

/* What differs from the client's words, and who wants to know what it came to */
struct gate_as {
	uint32_t handle;
	uint32_t sent;		/* bytes of its part at most that the node has to see */
	uint64_t a0;
	uint64_t a1;		/* bits that the node sees besides those of the client */
	/*
	 * over - before it ends: the result, and @value, may be another one then
	 * Once, with the service's lock, in any thread that has it. NULL: nobody wants to know
	 */
	int (*over)(void *ctx, int result, uint64_t *value);
	void *ctx;
};

/*
 * gate_forward - what begin() returns for a request that is carried out by @caller's node
 * -ECONNRESET: what it had there is lost; -ENOBUFS: too many are under way; -EINVAL: its part is
 * too long, or it has too many completions; -EMSGSIZE: it has many, and its part is too long;
 * -ERANGE; -ENOMEM; -EOPNOTSUPP
 */
int gate_forward(struct gate_caller *caller, struct rgate_req *r, const struct gate_as *as);

/* As rgate_req_op.cancel has it; -ENOENT: it was not handed over, or has ended */
int gate_forward_cancel(struct gate_service *service, struct rgate_req *r);

struct gate_stats {
	size_t sz;
	uint64_t guests;	/* now */
	uint64_t came;		/* so far */
	uint64_t turned_away;	/* for there were too many, or they came too fast */
	uint64_t docks_again;	/* memory for bytes that another node was asked for once more */
};

/* Any thread; @stats->sz is set by the caller. -EINVAL */
int gate_service_stats(struct gate_service *service, struct gate_stats *stats);

/*
 * gate_service_review - may() and rights() may say something else than before
 * Guests that may not be there any more end, with all that they had: what waits of theirs ends with
 * -EACCES. Any thread, before gate_service_quit() is called; NULL is allowed
 */
void gate_service_review(struct gate_service *service);

/*
 * gate_service_quit - before the engines are destroyed; NULL is allowed
 * What is under way ends, nothing can be begun any more, guests are gone. Waits until no message is
 * being sent any more, 2 s for each at most.
 */
void gate_service_quit(struct gate_service *service);

/* gate_service_destroy - after the engines; NULL is allowed */
void gate_service_destroy(struct gate_service *service);

#endif
