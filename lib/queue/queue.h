/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A queue of tasks, at its home. A task is ready, or will be later; somebody claims it, begins it,
 * and says what came of it. A claim has a number, and ends with its worker: what is said by a
 * number that is over is refused, so that of several who had a task one completes it.
 *
 * Whatever is done takes no longer where there are more tasks, but for the logarithm of how many
 * have times. Who waits for something is told by queue_settle(), which follows all that may have
 * brought it about.
 *
 * No lock: whoever owns the queues calls their functions one at a time.
 */
#ifndef RGATE_QUEUE_QUEUE_H
#define RGATE_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <ringgate/queue.h>

#include "heap.h"
#include "list.h"

struct mirror;
struct origin;
struct queues;
struct rgate_req;
struct segment;

/* Who claims: what he has */
struct worker {
	struct link tasks;
	struct link of_queue;		/* or of those who are gone */
	/* Nothing is left of what he had: queues_worker_gone() */
	void (*over)(struct worker *w);
};

struct task {
	struct link of_queue;		/* by their numbers */
	struct link in;			/* of its state, or of its worker */
	struct link waiters;		/* for its end */
	struct heap_node timer;		/* of the queues: DELAYED, RUNNING, DONE */
	struct task *chain;		/* of its place in the table */
	struct queue *queue;
	struct worker *worker;		/* CLAIMED, RUNNING */
	uint64_t id;
	uint64_t born_ns;
	uint32_t claim;			/* the last one's number */
	uint32_t attempts, most;
	uint32_t len, end_len;
	uint32_t tag;			/* of who is to hear of its end; 0: nobody, or he has */
	uid_t uid;
	uint8_t state, type, priority, flags;
	bool taken;			/* by a waiter */
	bool told;			/* of its end was, who follows */
	bool again;			/* who has submitted it had it before */
	uint8_t from;			/* with a mirror: a node, or MIRROR_HOME */
	struct origin *origin;		/* likewise; NULL: its own */
	char *end;			/* result or reason; NULL: none */
	struct segment *seg;		/* of the journal, that has it; NULL: none */
	struct link of_seg;
	uint32_t seg_len;
	char data[];
};

/* Who hears of the ends of his own tasks that have that tag */
struct follower {
	uint64_t next;			/* where he goes on; 0: nowhere so far */
	uint32_t tag;
	uid_t uid;
	/* Not NULL: all tasks, but those that this node has submitted first; and copies */
	const void *copies;
	uint32_t node;
};

struct ends;

/* Who waits: for tasks, the end of one, ends, room, or that all is over. In no list: he does not */
struct waiter {
	struct link in;
	uint64_t types;			/* for tasks: */
	uint32_t most;			/* so many; when he is told: so many may be taken */
	struct task *task;
	struct follower who;		/* for ends */
	/* He waits no more. 0: it is there; -ENOENT: the task is not; -ESTALE: the queue is not */
	void (*over)(struct waiter *w, int err);
};

struct queue_rules {
	uint64_t bytes;
	uint32_t tasks, attempts, run_ms, result_ms;
	uint32_t flags;			/* RGATE_QUEUE_* */
};

struct queue {
	struct link of_home;
	struct link of_due;		/* more is to be told with the next tick */
	struct queues *home;
	struct quota *quota;
	uint64_t serial;		/* of the home's queues */
	uid_t owner;
	char name[RGATE_QUEUE_NAME_ROOM];
	struct queue_rules rules;
	bool removed;
	bool journaled;
	uint32_t handles;
	struct link workers;
	/* tasks */
	struct link tasks;
	struct link ready[RGATE_QUEUE_PRIORITIES][RGATE_QUEUE_TYPES];
	uint64_t types[RGATE_QUEUE_PRIORITIES];	/* bit N: of type N some are ready */
	struct link delayed, buried, done;
	struct task **table;		/* by number */
	uint32_t places;
	uint32_t n;
	uint64_t last;			/* number */
	/* who waits */
	struct link claims, rooms, idle, follows;
	struct ends *ends;		/* NULL: nobody has asked for them */
	struct mirror *mirror;		/* NULL: it has none */
	uint32_t nclaims;
	uint64_t wanted;		/* types, or more */
	struct rgate_queue_info count;	/* all but what is read off the queue */
};

/* 0; -EINVAL: a task that cannot be */
int queue_put_check(const struct rgate_queue_put *put);

/*
 * queue_submit - a task, ready or delayed
 * @put: checked; @data: is copied, whatever becomes of it meanwhile; @tag: of who follows, or 0
 * -EAGAIN: it is full; -EMSGSIZE: it can never have it; -EDQUOT: its owner has too much, or all
 * have; -ENOMEM
 */
int queue_submit(struct queue *q, uid_t uid, uint32_t tag, const struct rgate_queue_put *put,
		 const void *data, uint64_t *id);

struct task *queue_find(const struct queue *q, uint64_t id);

/* The one that has waited longest of those that come first; NULL: none of @types is ready */
struct task *queue_first(const struct queue *q, uint64_t types);
void queue_claim(struct queue *q, struct task *t, struct worker *w, bool begin);

/*
 * What @w says of the task that it has claimed by that number. -ENOENT: there was no such task;
 * -ESTALE: the claim is over
 */
int queue_begin(struct queue *q, const struct worker *w, uint64_t id, uint32_t claim,
		uint32_t *attempts);
int queue_touch(struct queue *q, const struct worker *w, uint64_t id, uint32_t claim);
/* Also: -EMSGSIZE: there is never so much room; -EAGAIN: not for now; -EDQUOT; -ENOMEM */
int queue_complete(struct queue *q, const struct worker *w, uint64_t id, uint32_t claim,
		   const void *result, uint32_t len);
int queue_release(struct queue *q, const struct worker *w, uint64_t id, uint32_t claim,
		  uint32_t ms, uint32_t *state);
int queue_bury(struct queue *q, const struct worker *w, uint64_t id, uint32_t claim,
	       const void *reason, uint32_t len);

void queue_worker_init(struct queue *q, struct worker *w);
/* What it had goes back, @most of it: how many */
uint32_t queue_worker_give(struct queue *q, struct worker *w, uint32_t most);
/* All of it; it is none any more. */
void queue_worker_gone(struct queue *q, struct worker *w);

#define QUEUE_STEPS	256U	/* tasks of a call that goes on with the next one */

/* So many buried ones, then delayed ones, are ready, QUEUE_STEPS at most: how many */
uint32_t queue_kick(struct queue *q, uint32_t most);
/* Tasks of @states, RGATE_TASK_BIT(), that nobody has claimed: how many, QUEUE_STEPS at most */
uint32_t queue_discard(struct queue *q, uint32_t states);

/* ---- queue_restore.c ---- */

/* A task as it was read of a journal: all of it, checked by who reads */
struct queue_saved {
	uint64_t id, born_ns, due_ns;	/* of the queues' clock */
	const void *data, *end;
	uint32_t len, end_len, attempts, most;
	uid_t uid;
	uint8_t state, type, priority, flags;
};

/* -EEXIST: of that number there is one; -EDQUOT, -ENOMEM; -EAGAIN: more than the queue may have */
int queue_restore(struct queue *q, const struct queue_saved *saved, struct task **out);
/* What became of it after that; of @saved due_ns, end, attempts and state. -EDQUOT, -ENOMEM */
int queue_restore_change(struct queue *q, struct task *t, const struct queue_saved *saved);
/* All are there: in the order of their numbers. -ENOMEM */
int queue_restore_order(struct queue *q);

/* ---- queue.c, for queue_restore.c ---- */

/* What a task counts for */
static inline uint64_t queue_cost(uint32_t len)
{
	return sizeof(struct task) + len;
}

/* Memory for one of @len bytes more, of which the quota has queue_cost() then. -EDQUOT, -ENOMEM */
int queue_reserve(struct queue *q, uint32_t len);
/* It is in no list. */
void queue_task_init(struct task *t);
/* It has a number, and is the queue's, of no state */
void queue_add(struct queue *q, struct task *t);
void queue_place(struct queue *q, struct task *t, enum rgate_task_state state, uint64_t at);
/* Instead of what it had. -EDQUOT, -ENOMEM */
int queue_set_end(struct queue *q, struct task *t, const void *end, uint32_t len);

/* A task's time has come. */
void queue_expire(struct task *t);

/* Frees it, whatever its state is; who waits for it is told -ENOENT. */
void queue_drop(struct queue *q, struct task *t);

/* ---- queue_table.c: by number ---- */

#define QUEUE_PLACES_FIRST	64U

/* For one more. -EDQUOT, -ENOMEM */
int queue_table_grow(struct queue *q);
void queue_table_enter(struct queue *q, struct task *t);
void queue_table_leave(struct queue *q, struct task *t);
/* Of a queue without tasks */
void queue_table_free(struct queue *q);

/* ---- queue_wait.c ---- */

#define QUEUE_WAITERS	4096U	/* for tasks */

/* For @most tasks of @types. -ENOBUFS: too many wait */
int queue_await_tasks(struct queue *q, struct waiter *w);
void queue_await_end(struct task *t, struct waiter *w);
/* For room for one of @len bytes. -EMSGSIZE: there is never so much */
int queue_await_room(struct queue *q, struct waiter *w, uint32_t len);
void queue_await_idle(struct queue *q, struct waiter *w);
/* He does not wait for tasks, or for anything else, any more. */
void queue_leave(struct queue *q, struct waiter *w);
/* Tells who waits for @t's end: for queue.c */
void queue_tell(struct task *t, int err);
/* All who wait, when the queue is removed */
void queue_tell_all(struct queue *q);

bool queue_is_idle(const struct queue *q);

/* Tells who waits for what is there now. The queue is gone, if nobody needs it any more. */
void queue_settle(struct queue *q);

/* ---- queue_ends.c: tasks with a tag, or copies, that have ended: so many are remembered ---- */

#define QUEUE_ENDS	4096U
#define QUEUE_FOLLOWERS	256U	/* who wait */

struct ended {
	uint64_t id;
	uint32_t tag;
	uid_t uid;
	uint8_t from;
	bool again;
};

struct ends {
	uint64_t next;			/* place of the next one, from 1 on */
	uint64_t told;			/* who waits has seen those before it */
	struct ended at[QUEUE_ENDS];
};

/* From now on they are remembered. -ENOMEM */
int queue_ends_begin(struct queue *q);
void queue_ends_free(struct queue *q);
/* @t, which is done or buried, or gone */
void queue_ends_add(struct queue *q, struct task *t);
/*
 * The numbers of @who's, @most of them, from where he is on, which is brought up to date: how many
 * @missed: there were more, which are forgotten
 */
uint32_t queue_ends_take(const struct queue *q, struct follower *who, uint64_t *ids, uint32_t most,
			 bool *missed);
/* There is something for w->who. -ENOBUFS: too many wait */
int queue_await_ends(struct queue *q, struct waiter *w);
/* Tells those for whom there is something: for queue_settle() */
void queue_ends_tell(struct queue *q);
/* Of all numbers that the home's queues had: of this one */
uint32_t queue_ends_serial(const struct queue *q);
/* Has that task of @uid's ended? Not, if it is somebody else's */
bool queue_has_ended(const struct queue *q, uid_t uid, uint64_t id);

/* ---- queue_look.c ---- */

/*
 * The next task behind *@after of one of @states, RGATE_TASK_BIT(); NULL: none so far, and *@after
 * says where to go on; 0: that was the last
 */
struct task *queue_next(const struct queue *q, uint64_t *after, uint32_t states);
void queue_info(const struct queue *q, struct rgate_queue_info *info);
void task_head(const struct task *t, struct rgate_queue_task *head);

#endif
