/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The queues that this node is the home of, by owner and name; what they may have of memory, by
 * owner; and their clock. A queue is there as long as somebody has it open or it has a task, or,
 * with RGATE_QUEUE_KEEP, until it is removed.
 *
 * No lock: whoever owns them calls their functions one at a time.
 */
#ifndef RGATE_QUEUE_QUEUES_H
#define RGATE_QUEUE_QUEUES_H

#include "queue.h"

/* What stays of the flags that it was made with */
#define QUEUE_MADE_FLAGS	(RGATE_QUEUE_KEEP | RGATE_QUEUE_SUBMIT | RGATE_QUEUE_WORK | \
				 RGATE_QUEUE_NO_JOURNAL | RGATE_QUEUE_MIRROR)

#define QUEUES_MOST	1024U	/* of all, */
#define QUEUES_UID	256U	/* of a user */
#define QUEUES_BYTES	(1ULL << 30)	/* of all tasks and results, */
#define QUEUES_UID_BYTES (QUEUES_BYTES / 2) /* of those in a user's queues */

struct quota {
	struct link of_home;
	struct queues *home;
	uid_t uid;
	uint32_t queues;
	uint64_t bytes;
};

struct journal;

struct queues {
	uint64_t now;		/* ns; the owner's, brought up to date before anything is done */
	struct heap timers;	/* of all tasks */
	struct link all;	/* by their serials */
	struct link quotas;
	struct link gone;	/* workers who are, with tasks left */
	struct link removed;	/* queues that are, likewise */
	struct link due;	/* queues: queue_settle() has not told all */
	struct link mirrors;	/* of queues */
	uint64_t mirror_due;	/* something of these is to be done */
	uint64_t unmirrored;	/* atomic: tasks that were taken without a copy */
	uint32_t steps;		/* since the last tick, of what is gone */
	uint64_t serial;
	uint64_t bytes;
	uint32_t n;
	uint32_t ntasks;
	struct journal *journal; /* NULL: none */
	bool full;		/* it is: who waits for room waits for that */
	bool stops;		/* atomic: who has claimed ends with the process */
};

/* What is to be opened */
struct queue_open {
	uid_t owner;
	uint32_t flags;		/* RGATE_QUEUE_* */
	struct rgate_queue_place place;
};

void queues_init(struct queues *qs);
/* With all that they have, of which nobody may use anything any more */
void queues_fini(struct queues *qs);

/* -EINVAL: name, flags, rules */
int queue_open_check(const struct queue_open *as);

/*
 * queues_open - one handle more
 * @as: checked. -ENOENT: it is not there, and not to be made, or not by @uid; -EEXIST; -EACCES:
 * it is not for others; -EDQUOT, -ENOSPC: too many queues; -ENOMEM
 */
int queues_open(struct queues *qs, uid_t uid, const struct queue_open *as, struct queue **out);
/*
 * Who waits is told -ESTALE, its tasks go, many with the next ticks; it is freed with the last of
 * them and the last handle.
 */
void queues_remove(struct queue *q);
/* What @w had goes back, much with the next ticks; then w->over() */
void queues_worker_gone(struct queue *q, struct worker *w);

/* The first queue behind @after that @uid may open: its serial; 0: there is none */
uint64_t queues_list(const struct queues *qs, uid_t uid, uint64_t after,
		     struct rgate_queue_info *info);

/* Once a turn: who waited for the journal has room, if that has. True: it is full still */
bool queues_give_room(struct queues *qs);

/* Does what is due at @now, or some of it: when there is more to do; UINT64_MAX: never */
uint64_t queues_tick(struct queues *qs, uint64_t now);

/* Can it be a name? It ends within its room */
bool queue_name_ok(const char name[RGATE_QUEUE_NAME_ROOM]);

/* What was read of the journal: at the place of its serial, with a handle. As queues_open() */
int queues_restore(struct queues *qs, const struct queue_open *as, uint64_t serial,
		   struct queue **out);
struct queue *queues_by_serial(const struct queues *qs, uint64_t serial);

/* ---- For queue.c ---- */

/* Frees it, if nobody needs it any more */
void queues_put(struct queue *q);
/* A time for one task more. -ENOMEM */
int queues_reserve(struct queues *qs);
/* -EDQUOT */
int quota_take(struct quota *quota, uint64_t bytes);
void quota_give(struct quota *quota, uint64_t bytes);

#endif
