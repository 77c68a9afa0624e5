/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 *	memory_service.c	the object, and the hub's side of it
 *	memory_ops.c		what requests do
 *	memory_ask.c		those that another node has to answer
 *	memory_serve.c		what other nodes ask
 *	regions.c		what is exported, and what is done to it
 */
#ifndef RGATE_MEMORY_PRIV_H
#define RGATE_MEMORY_PRIV_H

#include "call.h"
#include "fair.h"
#include "list.h"
#include "memory_service.h"
#include "memory_wire.h"

enum object_kind {
	OBJECT_EXPORT,
	OBJECT_OPENING,		/* its node was asked */
	OBJECT_OPENED,
	OBJECT_DEAD,		/* its node has refused it: the handle is to be taken away */
};

#define NODE_HERE	UINT32_MAX

/* What a handle names */
struct object {
	enum object_kind kind;
	struct region *region;		/* OBJECT_EXPORT */
	/* that was opened: */
	uint32_t node;			/* or NODE_HERE */
	uint32_t rights;
	uint64_t id;			/* of the region, at its node */
	uint64_t len;
	struct rgate_seat *seat;	/* OBJECT_OPENING, OBJECT_DEAD */
	uint32_t handle;
	struct link dead;
};

/* A user of this node, and what he has to ask of another one; as long as there is something */
struct asker {
	struct link of_node;
	struct link turn;		/* of the node, if he has ready tasks; else in no list */
	struct link ready;		/* tasks */
	uint32_t uid;
	uint32_t tasks;
};

/* A request that another node has to answer, by as many messages as it takes */
struct task {
	struct link of_node;		/* who has waited longest for an answer is first */
	struct link ready;		/* asker's, has more to ask; else in no list */
	struct memory_node *node;
	struct asker *asker;
	struct rgate_req *r;		/* whose word of data this is */
	struct memory_question q;
	struct object *object;		/* MEMORY_OPEN */
	uint32_t total, asked;		/* bytes, or 1 where there are none */
	uint32_t under_way;		/* pieces */
	bool touched;			/* the node may have carried out a part of it */
	int err;			/* the first one */
	uint64_t value;
	uint64_t due;			/* CLOCK_MONOTONIC, ns: given up then */
};

/* One message of a task */
struct piece {
	struct call call;
	struct task *task;		/* NULL: nobody waits for its answer */
	uint32_t off, len;
	bool busy;
};

struct memory_node {
	struct memory_service *sv;
	struct rgate_peer *peer;	/* NULL: not a node that can be asked */
	struct session session;
	struct xfer_list xfers;
	/* who asks */
	struct call_client calls;
	struct piece pieces[CALL_PLACES];
	struct link tasks;
	struct link askers, turns;
	bool stalled;			/* messages wait for room */
	/* who answers */
	struct call_server asked;
	uint32_t unsaid;		/* bit N: the answer of place N is to be said */
};

struct memory_service {
	struct fair lock;		/* all below, but for what never changes */
	struct memory_opts o;
	uint64_t silence_ns;
	uint32_t self;			/* this node, if there is a hub */
	struct link dead;		/* objects */
	struct regions regions;
	struct memory_node node[RGATE_NODES_MAX];
};

extern const struct rgate_req_service memory_requests;

/* Of the hub's thread and the engine's */
static inline void memory_lock(struct memory_service *sv)
{
	fair_lock(&sv->lock);
}

static inline void memory_unlock(struct memory_service *sv)
{
	fair_unlock(&sv->lock);
}

/* All with the lock: */

/* memory_service.c: after something was posted or has to be, in either thread */
void memory_await(struct memory_node *n);

/* memory_ask.c */
int memory_ask_init(struct memory_node *n);
void memory_ask_fini(struct memory_node *n);
/*
 * The request has begun, and ends when the node has answered. Of @q number and name's end are
 * filled in. @o: that becomes OBJECT_OPENED or OBJECT_DEAD. RGATE_REQ_LATER; -ENOMEM
 */
int memory_ask(struct memory_node *n, struct rgate_req *r, const struct memory_question *q,
	       struct object *o);
/* Ends it with @result, whatever its node does; in the engine's thread or the hub's */
void memory_task_end(struct task *t, int result);
/* Asks what can be asked. */
void memory_ask_pump(struct memory_node *n);
/* Gives up who waits too long; when to look again, in ns: UINT64_MAX: nobody waits */
uint64_t memory_ask_expire(struct memory_node *n, uint64_t now);
void memory_ask_answer(struct memory_node *n, const void *msg, size_t len);

/* memory_serve.c */
void memory_serve_question(struct memory_node *n, const void *msg, size_t len);
/* Says what could not be said so far */
void memory_serve_pump(struct memory_node *n);

static inline uint32_t memory_node_id(const struct memory_node *n)
{
	return (uint32_t)(n - n->sv->node);
}

#endif
