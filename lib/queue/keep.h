/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Tasks that programs of this node have submitted to queues of other nodes, kept until they have
 * ended there: done, buried, or dropped by who may. When the home was lost, and another process of
 * it is there, those that have not are submitted once more, in their order.
 *
 * A task is kept from the time on at which the home has said that it took it. What becomes of it
 * the home tells a session that this node has there for each user who has tasks kept: keep_talk.c.
 *
 * All in the engine's thread, but for what ends a SUBMIT, which leaves it to the next tick.
 */
#ifndef RGATE_QUEUE_KEEP_H
#define RGATE_QUEUE_KEEP_H

#include <ringgate/rgate_session.h>

#include "engine.h"
#include "gate_service.h"
#include "queue_service.h"
#include "queues.h"

#define KEEP_QUEUES	256U	/* of a user, and as many requests under way */
#define KEEP_MIRRORS	32U	/* of a user, of other nodes' queues: with more of each at once */
#define KEEP_STRAYS	1024U	/* ends that were told before their SUBMIT's */
#define KEEP_SLOT	4096U	/* bytes of a queue's requests */

/* A task. @of: in which process of its home, and in which of that one's queues; 0: in none */
struct kept {
	struct link of_queue;		/* as they were submitted */
	struct kept *chain;		/* of its place in the table */
	uint64_t of;
	uint64_t id;			/* there */
	uint64_t due_ns;		/* it is delayed till then */
	uint32_t asked;			/* of its queue, when this was heard of */
	uint32_t tag;			/* of who has submitted it */
	struct rgate_queue_origin origin;
	struct rgate_queue_put put;
	char data[];
};

struct keep_name {
	uint64_t of, id;
};

enum talk {
	TALK_OPEN,
	TALK_MAKE,			/* it is not there: anew */
	TALK_LOOK,			/* which one is it? */
	TALK_RULES,			/* as what is it to be made anew? */
	TALK_AGAIN,			/* what the former process had */
	TALK_CHECK,			/* what has ended before it was followed? */
	TALK_FOLLOW,
	TALK_CLOSE,
};

struct kept_queue {
	struct link of_user;
	struct keep_user *user;
	uint32_t node;
	uint32_t slot;
	struct queue_open as;
	struct link tasks;
	struct kept **table;
	uint64_t secret;		/* of the keeper: where a number is there */
	uint32_t room, places, n;	/* places of the table there can be, and are; tasks */
	uint32_t under_way;		/* SUBMITs of programs */
	uint64_t bytes;			/* theirs, too */
	struct keep_name *strays;	/* NULL: none */
	uint32_t nstrays;
	uint64_t excused;		/* ends of what is not kept that may be told nonetheless */
	/* what is said to the home */
	enum talk state;		/* of the request that is under way */
	bool asked;			/* there is one */
	bool make;			/* it was not there */
	bool looked, ruled;
	bool behind, unsure;		/* not all is looked at: for AGAIN; for CHECK */
	bool closes;			/* its handle is good for CLOSE alone */
	bool crowded;			/* too many follow it: no place to wait in */
	uint32_t quiet;			/* times that it told of nothing, in a row */
	/* Of copies: */
	bool fresh;			/* it was not opened yet */
	bool full;			/* no room for some: the home is to be told */
	uint64_t after;			/* as struct rgate_queue_copies has it */
	uint32_t handle;		/* 0: it is not open */
	uint64_t of;			/* which it is */
	uint32_t asks;			/* times that this was asked, or whether it is there */
	uint64_t latest;		/* of the last process, that a task was put into */
	uint64_t next;			/* of FOLLOW */
	uint64_t due;			/* nothing before then; */
	uint64_t again_due;		/* no AGAIN */
	/* Tasks of a process went with queues of it that were removed: */
	uint64_t gone;			/* keep_life(); 0: none are to be forgotten */
	uint64_t gone_of;		/* those of that queue, 0: of none, */
	uint32_t gone_asks;		/* and those that were heard of before that question; */
	bool all_gone;			/* or all of them */
	struct link *purge_at, *again_at, *check_at; /* the next task of each */
	uint64_t base, bits[RGATE_QUEUE_OVER_MAX / 64]; /* of CHECK */
	uint32_t words;
	uint32_t doubts;		/* times: what was under way then is to be asked for, too */
};

/* What is kept for one home: no more than is left for all others */
struct keep_share {
	uint64_t bytes;
	uint32_t queues;
};

/*
 * A user's tasks that are kept, for which there is a session. Those of which this node has copies
 * are of another one: of these each queue has a whole part of memory.
 */
struct keep_user {
	struct link of_keeper;
	struct keeper *keeper;
	uid_t uid;
	bool mirrors;
	uint64_t bytes;
	struct link queues;
	uint32_t n;
	struct keep_share of_home[RGATE_NODES_MAX];
	struct rgate_session *session;	/* NULL: none so far */
	struct rgate_seat *seat;	/* NULL: there is none any more */
	unsigned char *mem;
	uint64_t idle_ns;		/* since when; while there are no queues */
	struct kept_queue *slot[KEEP_QUEUES];
	struct kept_queue *submits;	/* whose AGAIN is under way */
	struct kept *batch[QUEUE_STEPS];
	uint32_t nbatch;
	/* A node that is asked to have copies of a queue of this one */
	bool asks;
	uint64_t asks_serial;
	uint32_t asks_which;
};

/* A SUBMIT of a program */
struct keeping {
	struct keeping *next;		/* of those that have ended */
	struct keeper *keeper;
	struct kept_queue *queue;
	struct gate_caller *caller;
	struct link tasks;
	uint32_t ntasks;
	uint32_t n;			/* of these the home has taken */
	uint32_t doubts;		/* of the queue, when it began */
	bool lie;			/* more than there were */
	bool unheard;			/* whether it has is not known */
	bool sound;			/* the home has nothing to refuse but the tag */
	bool limited;			/* who submits has a limit of his own, in time */
	uint64_t of, first;
	struct rgate_queue_origin origin; /* of the first one */
};

struct keeper {
	struct queues *home;		/* whose clock it is */
	struct gate_service *gate;
	struct rgate_engine *engine;
	uint64_t most;			/* bytes of a user's */
	uint64_t secret;
	uint32_t tag;
	uint32_t n;			/* queues */
	struct keep_share of_home[RGATE_NODES_MAX];
	struct link users;
	struct keeping *ended;		/* atomic */
	uint64_t due;
	struct queue_kept_stats count;	/* atomic, each */
};

/* @most: 0: the default */
void keeper_init(struct keeper *k, struct queues *home, struct gate_service *gate, uint64_t most);
/* After the engine */
void keeper_fini(struct keeper *k);
/* Does what there is to do; when there is more, UINT64_MAX: never */
uint64_t keeper_tick(struct keeper *k);

/*
 * Numbers of a process's queues do not say which is the older one: there are 2^24, and whoever
 * makes and removes queues there for some seconds has had them all. What the keeper has asked does:
 * when the home says which queue is there, all tasks that were heard of before that was asked, and
 * are in another one of that process, are in one that was removed (struct kept.asked).
 *
 * Two queues of one number are taken for one if 2^24 others, no more and no fewer, were made
 * between them, of the same name, while nothing was heard of the home, which is the same process
 * yet. Then tasks of the first one are asked for in the second: those up to its last number have
 * ended there, or do so, and are forgotten; none is submitted again. A task of the second one whose
 * number the first has, too, is counted as refused and is not kept. No result is another task's, as
 * results are asked for at the home, by a handle of the queue.
 */
static inline uint64_t keep_of(uint64_t life, uint32_t queue)
{
	return (life + 1) << 24 | queue;
}

static inline uint64_t keep_life(uint64_t of)
{
	return of >> 24;
}

/*
 * keep_begin - a SUBMIT to a queue at @node, of a session there
 * Copies its tasks, as far as the home can take them. -EDQUOT: too much is kept, for that home or
 * at all; -ENOMEM
 * @out: NULL: it is the keeper's own
 */
int keep_begin(struct keeper *k, struct rgate_req *r, uint32_t node, const struct queue_open *as,
	       struct gate_caller *caller, struct keeping **out);
/*
 * As gate_as.over; @ctx: the keeping, which is not the caller's any more. -EOPNOTSUPP: the home is
 * of a version that knows no tags; -ECONNRESET: nobody knows whether it has taken it
 */
int keep_over(void *ctx, int result, uint64_t *value);
/* It was not sent. */
void keep_undo(struct keeping *g);

/* ---- keep_table.c: by number ---- */

struct kept *keep_find(const struct kept_queue *q, uint64_t of, uint64_t id);
/* For one more. Without memory the table stays, and is slower. -ENOMEM: there is none */
int keep_grow(struct kept_queue *q);
/* It is in the queue @of by that number. -EEXIST: another one is */
int keep_place(struct kept_queue *q, struct kept *t, uint64_t of, uint64_t id);
/* It has no number any more, if it had one. */
void keep_displace(struct kept_queue *q, struct kept *t);

/* ---- For keep_talk.c, keep_again.c, keep_ends.c ---- */

void keep_forget(struct kept_queue *q, struct kept *t);
/* The home has said so of a task that is not kept. */
void keep_stray(struct kept_queue *q, uint64_t of, uint64_t id);
void keep_refuse(struct keeper *k);
/* Some may have ended that nobody will tell of: they are asked for. */
void keep_doubt(struct kept_queue *q);
/* Nothing is kept of it, and nothing is under way */
bool keep_is_idle(const struct kept_queue *q);
void keep_queue_free(struct kept_queue *q);
void keep_count(uint64_t *at, uint64_t n);

/* Goes on with it, as far as can be: when again. It may be freed */
uint64_t keep_talk(struct kept_queue *q);
/* ---- keep_mirror.c: copies ---- */

/* Copies of the tasks of a queue of @node from now on. -EDQUOT, -ENOMEM */
int keep_mirror_begin(struct keeper *k, uid_t uid, uint32_t node, const struct queue_open *as);
/*
 * @node is asked for that, for a queue of this one; queue_mirror_asked() tells what it says.
 * -EBUSY: another one is, in that user's name; as keep_session_begin()
 */
int keep_mirror_ask(struct keeper *k, const struct queue_open *as, uint32_t node, uint64_t serial,
		    uint32_t which);
void keep_mirror_asked(struct keep_user *u, int result);
/* Asks for more; what it has said */
void keep_copies(struct kept_queue *q);
void keep_copied(struct kept_queue *q, int result, uint64_t value);
/* Has it copies, in whichever node? So who submits again says which tasks they are */
static inline bool keep_is_mirrored(const struct kept_queue *q)
{
	return q->as.flags & RGATE_QUEUE_MIRROR;
}

/* ---- keep.c, for these ---- */

struct keep_user *keep_user_of(struct keeper *k, uid_t uid, bool mirrors);
int keep_queue_for(struct keep_user *u, uint32_t node, const struct queue_open *as,
		   struct kept_queue **out);
/* A task of these bytes, which is in no list. NULL: @err: -ENOMEM, -EDQUOT */
struct kept *keep_make(struct kept_queue *q, const struct rgate_queue_put *put, const char *data,
		       int *err);
void keep_free(struct kept_queue *q, struct kept *t);
/* It has it, by that number. -EEXIST, -ENOMEM: it is not, and was freed */
int keep_enter(struct kept_queue *q, struct kept *t, uint64_t of, uint64_t id);
int keep_session_begin(struct keep_user *u);

/* What the home has answered */
void keep_hear(struct keep_user *u);
/* Closes it, if there is one; u->seat is there until the engine has buried it */
void keep_session_end(struct keep_user *u);
/* With that seat? */
bool keep_is_own(const struct keeper *k, const struct rgate_seat *seat);

#endif
