/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The journal of a home: what becomes of tasks, in files of a directory, so that they outlive the
 * process. Whoever starts anew on the same directory has them again.
 *
 * Segments are written one behind the other. In the newest one are the queues that there are; where
 * a task was written whole it is of that segment. One that no task is of any more is removed, the
 * oldest first; where too much is of no use, tasks of the oldest are written anew: a few with each
 * turn.
 *
 * Whoever owns the queues calls these functions, one at a time, but journal_stats(). A thread of
 * the journal's own writes, and ends the requests that wait for that.
 */
#ifndef RGATE_QUEUE_JOURNAL_H
#define RGATE_QUEUE_JOURNAL_H

#include "engine.h"
#include "queues.h"

struct journal;

#define JOURNAL_SYNC_EACH	0U
#define JOURNAL_SYNC_NEVER	UINT32_MAX

/* Bytes of a segment that may be asked for */
#define JOURNAL_SEGMENT_LEAST_SET	(64U << 10)
#define JOURNAL_SEGMENT_MOST_SET	(16U << 20)

struct journal_opts {
	size_t sz;
	const char *dir;	/* is made if it is missing; stays the caller's until it is open */
	uint32_t sync_ms;	/* or JOURNAL_SYNC_* */
	uint32_t segment;	/* bytes; 0: 16 MiB */
	uid_t uid;		/* whose files it has: the process's, or who that will be */
	bool repair;		/* what cannot be read is left out */
	uint64_t (*wall)(void);	/* CLOCK_REALTIME, ns; NULL: that */
};

struct journal_stats {
	size_t sz;
	uint64_t bytes, live;	/* of the files; what of it would be written anew */
	uint64_t segments;
	uint64_t records, batches, syncs;
	uint64_t refused;	/* SUBMITs, as nothing could be written */
	uint64_t failed;	/* times that writing failed */
	uint64_t restored;	/* tasks, at the start */
	int error;		/* of now; 0: none */
};

/*
 * journal_open - reads what is there into @home, which has no queue so far, and goes on with it
 * The reason is a line of the log. -EBUSY: another process has the directory; -EPERM: it is not
 * @uid's alone; -EBADMSG: something in it is wrong; and as open(2), write(2)
 */
int journal_open(struct journal **journal, struct queues *home, const struct journal_opts *opts);

/*
 * Reads alone, for who would only know whether it can be. 0 also where there is no directory, or a
 * daemon has it: that one has read it
 */
int journal_check(const struct journal_opts *opts);

/* Writes what there is to be written, if that can be; @home has none any more. NULL is allowed */
void journal_close(struct journal *j);

int journal_stats(struct journal *j, struct journal_stats *stats);

/* ---- For queues ---- */

/* One more of @len bytes? -ENOSPC, -EIO: nothing can be written; -EAGAIN: too much waits to be;
 * -ENOMEM */
int journal_may_submit(struct journal *j, uint32_t len);
/* -EAGAIN, so far */
bool journal_is_full(struct journal *j);
/* Will a change with an end of @len bytes be taken? -ENOMEM, -ENOSPC */
int journal_may_change(struct journal *j, uint32_t len);

/* So much waits, or is in one file, that only what must be is to be recorded */
bool journal_is_crowded(struct journal *j);

void journal_queue(struct journal *j, const struct queue *q);
void journal_removed(struct journal *j, const struct queue *q);
/* It is the newest segment's from now on. */
void journal_task(struct journal *j, struct task *t);
void journal_change(struct journal *j, const struct task *t);
/* The task is of no segment any more. */
void journal_gone(struct journal *j, struct task *t);
/* Likewise, with its queue: nothing is written. */
void journal_leave(struct journal *j, struct task *t);

/* ---- For requests ---- */

/* So many records, so far */
uint64_t journal_mark(const struct journal *j);
/* Is something not written yet? */
bool journal_is_behind(struct journal *j);

/* What was answered, and is told when it is written */
struct journal_answer {
	struct rgate_req *r;
	int result;
	bool wait;		/* it is not told that nothing can be written: it waits */
	bool submit;		/* result: so many tasks, from value on, of that queue */
	uint64_t value, queue;
};

/* rgate_req_end() comes as soon as all that was recorded so far is written, or cannot be. */
void journal_hold(struct journal *j, const struct journal_answer *a);

/* Once a turn: when it is to be called again, ns; UINT64_MAX: whenever */
uint64_t journal_tick(struct journal *j, uint64_t now);

#endif
