/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 *	memory_service.c	the object, and its board
 *	memory_ops.c		what requests do
 *	memory_ask.c		those that another node has to answer
 *	memory_serve.c		what other nodes ask
 *	regions.c		what is exported, and what is done to it
 */
#ifndef RGATE_MEMORY_PRIV_H
#define RGATE_MEMORY_PRIV_H

#include "board.h"
#include "errand.h"
#include "memory_service.h"
#include "memory_wire.h"

enum object_kind {
	OBJECT_EXPORT,
	OBJECT_OPENING,		/* its node was asked */
	OBJECT_OPENED,
	OBJECT_DEAD,		/* its node has refused it: the handle is to be taken away */
};

/* What a handle names */
struct object {
	enum object_kind kind;
	struct region *region;		/* OBJECT_EXPORT */
	/* that was opened: */
	uint32_t node;			/* or BOARD_HERE */
	uint32_t rights;
	uint64_t id;			/* of the region, at its node */
	uint64_t len;
	struct rgate_seat *seat;	/* OBJECT_OPENING, OBJECT_DEAD */
	uint32_t handle;
	struct link dead;
};

/* A request that another node has to answer, by as many messages as it takes */
struct task {
	struct errand errand;
	struct memory_node *node;
	struct rgate_req *r;		/* whose word of data this is */
	struct memory_question q;
	struct object *object;		/* MEMORY_OPEN */
	uint32_t total, asked;		/* bytes, or 1 where there are none */
	uint64_t value;
};

struct memory_node {
	struct memory_service *sv;
	struct line *line;		/* NULL: not a node that can be asked */
	struct errands *tasks;
};

struct memory_service {
	struct fair lock;		/* all below, but for what never changes */
	struct memory_opts o;
	struct board *board;		/* NULL: no other node */
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

/* memory_ask.c */
/*
 * The request has begun, and ends when the node has answered. Of @q number and name's end are
 * filled in. @o: that becomes OBJECT_OPENED or OBJECT_DEAD. RGATE_REQ_LATER; -ENOMEM
 */
int memory_ask(struct memory_node *n, struct rgate_req *r, const struct memory_question *q,
	       struct object *o);
/* Asks what can be asked. */
void memory_ask_pump(struct memory_node *n);
void memory_ask_answer(struct memory_node *n, const void *msg, size_t len);

/* memory_serve.c */
void memory_serve_question(struct memory_node *n, const void *msg, size_t len);

#endif
