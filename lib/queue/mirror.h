/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A queue with RGATE_QUEUE_MIRROR, at its home: copies of its tasks go to another node, each to one
 * that has not submitted it, and whoever submits is answered when it is there. So a task is lost
 * only with three nodes: its home, the one that has submitted it, and the one that has the copy.
 *
 * Who has copies, a copier, asks for those behind the last number that he has, and says by that
 * what he has. There are two at most: the second one has what comes from the node of the first.
 *
 * Tasks that are submitted again, by who has kept them or has copies, have an origin: none is there
 * twice. No lock, as with all of the queue.
 */
#ifndef RGATE_QUEUE_MIRROR_H
#define RGATE_QUEUE_MIRROR_H

#include "queue.h"

#define MIRROR_COPIERS	2U
#define MIRROR_HOME	255U	/* the node of a task that comes from a program of the home */
#define MIRROR_WAIT_NS	2000000000ULL	/* so long an answer waits for the copies */

struct copier {
	const void *by;			/* the handle; NULL: there is none */
	uint32_t node;
	struct link *at;		/* of the queue's tasks: the next one to be looked at */
	uint64_t sent, acked;		/* all for him up to that number was sent; he has it */
	uint64_t told;			/* of that he was, in the last answer */
	uint32_t flies;			/* tasks that were sent, and he has not said that he has */
	bool late;			/* answers do not wait for him */
	bool holes;			/* he had no room for some */
	bool wanted;			/* there are, or were, tasks for him */
	/* who is asked to be one */
	bool asked;
	uint32_t avoid;			/* the node whose tasks he is for */
	uint32_t tried;			/* nodes, one after the other */
	uint64_t due;
};

/* An answer that waits for copies */
struct held {
	struct link in;
	struct rgate_req *r;
	int result;
	uint64_t value, last, due;
	const void *by;			/* the handle, which may not be there any more */
	uint32_t from;
};

struct origin {
	struct origin *chain;
	struct rgate_queue_origin name;
	uint64_t id;			/* of the task that is, or was, it */
};

struct mirror {
	struct link of_home;
	struct queue *queue;
	struct copier copier[MIRROR_COPIERS];
	uint32_t handles;		/* of copiers: they do not count as the queue's */
	struct link held;		/* in the order of their numbers */
	uint64_t missed;		/* tasks that were taken without a copy */
	struct origin **origins;
	uint32_t places, norigins;
};

/* -ENOMEM */
int mirror_create(struct queue *q);
/* Who waits is answered. NULL is allowed */
void mirror_destroy(struct mirror *m);

/* ---- Who submits ---- */

/* @as: as many tasks as its result, up to the last one: RGATE_REQ_LATER, or the result at once */
int mirror_hold(struct queue *q, const struct held *as);
/* All that were asked by that handle, which is closed */
void mirror_close(struct queue *q, const void *by);
/* It is answered now, if it waits: true */
bool mirror_let_go(struct queue *q, const struct rgate_req *r);
/* So are all, and nothing comes again: its queue is removed. */
void mirror_quit(struct mirror *m);
/* What waits for too long is answered; when again, UINT64_MAX: never */
uint64_t mirror_expire(struct mirror *m, uint64_t now);

/* ---- Copies ---- */

/* What becomes of the queue's list of tasks: one comes, at its end; @t goes */
void mirror_comes(struct mirror *m, struct task *t);
void mirror_goes(struct mirror *m, const struct task *t);

/* That handle's; NULL: none */
struct copier *mirror_copier(struct mirror *m, const void *by);
/* He is one from now on; NULL: there are two others */
struct copier *mirror_attach(struct queue *q, const void *by, uint32_t node);
void mirror_detach(struct queue *q, const void *by);
/* He has all up to there; @full: but for some, for which he has no room */
void mirror_has(struct queue *q, struct copier *c, uint64_t after, bool full);
/* The next task for him, which is not sent yet; NULL: none */
struct task *mirror_next(struct queue *q, struct copier *c);
/* It is. */
void mirror_sends(struct copier *c, const struct task *t);
/* Tells who waits for copies, or for them to be there: for queue_settle() */
void mirror_settle(struct queue *q);
uint32_t mirror_info(const struct mirror *m);

/* ---- origin.c ---- */

/* NULL: there is no such one */
const struct origin *origin_find(const struct mirror *m, const struct rgate_queue_origin *name);
/* -EDQUOT: it has too many; -ENOMEM */
int origin_add(struct queue *q, const struct rgate_queue_origin *name, struct origin **out);
/* The last one that was added, of which nothing came */
void origin_undo(struct queue *q, struct origin *o);
void origins_free(struct mirror *m);

#endif
