/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 *	queue_service.c	the object, and handles
 *	queue_ops.c	what requests do; queue_ops_claimed.c: on tasks that are claimed;
 *			queue_ops_ends.c: to who follows what becomes of tasks
 *	queue_pend.c	those that wait
 *			queue_ops_mirror.c: on queues of which other nodes have copies
 *	queue_away.c	those on queues of other nodes, which lib/gate hands over
 *	keep*.c		tasks that went there, or are copies of theirs
 *	journal*.c	tasks that outlive the process
 *	queues.c	queues whose home is this node
 *	mirror.c, origin.c	who has copies of a queue's tasks, and what came back from there
 *	queue.c, queue_table.c, queue_wait.c, queue_ends.c, queue_look.c	one of them
 */
#ifndef RGATE_QUEUE_PRIV_H
#define RGATE_QUEUE_PRIV_H

#include "gate_service.h"
#include "journal.h"
#include "keep.h"
#include "mirror.h"
#include "queue_service.h"
#include "queues.h"

enum right {
	RIGHT_SUBMIT = 1U << 0,
	RIGHT_WORK = 1U << 1,
	RIGHT_OWN = 1U << 2,
};

/* What all begins with that handles name */
enum named {
	NAMED_HERE,		/* struct opened */
	NAMED_AWAY,		/* struct away */
	NAMED_VISIT,		/* struct visit */
};

/* A queue of this node */
struct opened {
	enum named named;
	struct queue_service *sv;
	struct queue *queue;
	struct worker worker;
	struct link pending;
	uint32_t rights;		/* enum right */
	uint32_t number;
	uint32_t from;			/* of a queue with a mirror: whose guest, or MIRROR_HOME */
	uid_t uid;
};

/* A request that waits */
struct pending {
	struct waiter waiter;
	struct link of_handle;
	struct opened *o;
	struct rgate_req *r;		/* whose word of data this is */
};

/* A session, at another node: its handle is nothing that it can use, and tells of its end. */
struct visit {
	enum named named;
	struct link of_service;
	struct rgate_seat *seat;
	struct gate_caller *caller;	/* NULL: what it had there was lost */
	uint32_t node;
	uint32_t life;			/* how often it was lost */
	uint64_t lacks;			/* as queue_away_lacks(). Atomic */
};

/* A queue of another node */
struct away {
	enum named named;
	struct visit *visit;		/* there as long as its session is */
	struct rgate_seat *seat;	/* NULL: it is no more */
	struct away *next;		/* of those that could not be opened */
	uint32_t life;			/* of the visit */
	uint64_t born;			/* of the process there: gate_caller_life() */
	struct queue_open as;
	uint32_t number;		/* the handle here, */
	uint32_t handle;		/* and there; 0: it is not open. Atomic, as the next one */
	bool failed;
};

struct queue_service {
	uint64_t (*clock)(void);	/* NULL: the engine's */
	struct queues home;
	struct gate_service *gate;	/* NULL: there is no other node */
	struct link visits;
	struct keeper keeper;
	struct journal *journal;	/* NULL: none */
	struct away *failed;		/* atomic: the first one whose handle is to be taken away */
};

extern const struct rgate_req_service queue_requests;

/* All in the engine's thread: */

/* queue_service.c */
/* Before anything is done with queues */
void queue_look_at_clock(struct queue_service *sv);
/*
 * What a request on @q came to, if that is to be told when it is written: RGATE_REQ_LATER; else
 * @result
 */
int queue_tell_later(struct queue_service *sv, struct rgate_req *r, const struct queue *q,
		     int result, uint64_t value);
/* Its session has it no more. What waits was cancelled. */
void opened_free(struct opened *o);

/* queue_ops_claimed.c: what becomes of a task */
int queue_begin_begin(struct rgate_req *r, void *ctx);
int queue_begin_touch(struct rgate_req *r, void *ctx);
int queue_begin_complete(struct rgate_req *r, void *ctx);
int queue_begin_complete_many(struct rgate_req *r, void *ctx);
int queue_begin_release(struct rgate_req *r, void *ctx);
int queue_begin_bury(struct rgate_req *r, void *ctx);

/* queue_ops_ends.c: what becomes of those with a tag */
int queue_begin_follow(struct rgate_req *r, void *ctx);
int queue_begin_over(struct rgate_req *r, void *ctx);
/* Of whom a FOLLOW is */
struct follower queue_follower_of(const struct rgate_req *r, const struct opened *o);
/* What there is from where he is on, which is brought up to date: as begin(); -EAGAIN: nothing */
int queue_ops_ends(struct rgate_req *r, struct opened *o, struct follower *who);

/* queue_ops_mirror.c: of other daemons, which have copies, or are to have some */
int queue_begin_again(struct rgate_req *r, void *ctx);
int queue_begin_copies(struct rgate_req *r, void *ctx);
int queue_begin_mirror(struct rgate_req *r, void *ctx);
/* As queue_follower_of() */
struct follower queue_copies_of(const struct rgate_req *r, const struct opened *o);
/* What there is, as queue_ops_ends(); @some: it tells of something */
int queue_ops_copies(struct rgate_req *r, struct opened *o, struct follower *who, bool *some);
/* May it have a mirror here? -ENONET: there are not enough nodes */
int queue_mirror_check(struct queue_service *sv);
/* What the node said that was asked to have copies of a queue, as its copier @which */
void queue_mirror_asked(struct queue_service *sv, uint64_t serial, uint32_t which, int result);
/* Asks others to have copies, and answers who waits for too long; when again */
uint64_t queue_mirrors_tick(struct queue_service *sv);

/* queue_ops.c */
/* What OPEN and MIRROR say, and of which node */
int queue_read_open(const struct queue_service *sv, const struct rgate_req *r,
		    struct queue_open *as, uint32_t *node);
/* @fn of the request's handle; then who waits for what it did is told. Its home may be another */
int queue_on(struct rgate_req *r, void *ctx, uint32_t right,
	     int (*fn)(struct rgate_req *r, struct opened *o));
/* Likewise, and the answer is told when all of it is written to the journal, if there is one */
int queue_on_surely(struct rgate_req *r, void *ctx, uint32_t right,
		    int (*fn)(struct rgate_req *r, struct opened *o));

static inline uint32_t queue_high(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

/* What there is, up to @most: as begin() */
int queue_ops_claim(struct rgate_req *r, struct opened *o, uint32_t most, uint64_t *n);
int queue_ops_submit(struct rgate_req *r, struct opened *o, uint64_t *first);
/* The end of a task, which is DONE or BURIED */
int queue_ops_end(struct rgate_req *r, struct task *t);

/* queue_pend.c */
enum pend_for {
	PEND_TASKS,
	PEND_END,		/* of a task */
	PEND_ROOM,
	PEND_IDLE,
	PEND_FOLLOW,
	PEND_COPIES,
};

/*
 * @r says what PEND_TASKS, PEND_ROOM, PEND_FOLLOW and PEND_COPIES wait for. RGATE_REQ_LATER;
 * -ENOMEM, -ENOBUFS, -EMSGSIZE
 */
int pend(struct rgate_req *r, struct opened *o, enum pend_for what, struct task *t);
/* As rgate_req_op.cancel has it */
int pend_cancel(struct rgate_req *r);
/* All that wait at this handle */
void pend_cancel_all(struct opened *o);

/* queue_away.c */
/* What the request's a0 names: BOARD_HERE, or another node; -ENXIO: there is no such one */
int queue_away_node(const struct queue_service *sv, const struct rgate_req *r, uint32_t *node);
/* As begin() */
int queue_away_open(struct queue_service *sv, struct rgate_req *r, uint32_t node,
		    const struct queue_open *as);
int queue_away_list(struct queue_service *sv, struct rgate_req *r, uint32_t node);
/* MIRROR, by the keeper alone */
int queue_away_mirror(struct queue_service *sv, struct rgate_req *r, uint32_t node);
/* The request's handle is that one. */
int queue_away_ask(struct queue_service *sv, struct rgate_req *r, struct away *a);
int queue_away_close(struct queue_service *sv, struct rgate_req *r, struct away *a);
/* Which process of the node said last that a queue is not there: gate_caller_life() */
uint64_t queue_away_lacks(struct queue_service *sv, const struct rgate_seat *seat, uint32_t node);
/* As drop() */
void queue_away_drop(struct queue_service *sv, struct away *a);
void queue_visit_drop(struct visit *v);
/* Before the service is freed */
void queue_away_sweep(struct queue_service *sv);

/* Of CLAIM: 0 is all */
static inline uint64_t types_of(const struct rgate_request *q)
{
	return q->a0 ? q->a0 : UINT64_MAX;
}

#endif
