/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Errands: what users want of another node, each asked by as many questions as it takes, one
 * after the other or several at once, whose answers come in any order. Users have turns at a
 * line, and the errands of each: a question each, so that a long errand does not hold the others
 * up, nor a user with many. One whose node says nothing for too long is given up; it can be ended
 * at any time, and then no answer is heard any more.
 *
 * No lock: as a line's, whose owner owns its errands, too.
 */
#ifndef RGATE_CLUSTER_ERRAND_H
#define RGATE_CLUSTER_ERRAND_H

#include <sys/types.h>
#include <time.h>

#include "line.h"
#include "list.h"

struct errand;
struct errands;

struct errand_ops {
	/*
	 * Writes the next question, with a->number in it, to a->msg: its length. a->word is its
	 * own; e->more says then whether there is another one.
	 */
	size_t (*ask)(struct errand *e, struct ask *a);
	/*
	 * What came of it, as line_over_fn. 0, or why the errand fails; the first one ends it, as
	 * soon as all that was asked of it is over. May set @more: the next question is one that
	 * this answer brings up. It may end errands, this one as well: after it has returned.
	 */
	int (*answer)(struct errand *e, struct ask *a, int err, const void *answer, size_t len);
	/*
	 * It is over, once, and its owner's again: 0: all is answered; what answer() or
	 * errand_end() said; -ETIMEDOUT: the node said nothing for too long and may have done a
	 * part of it, whatever was known of the rest; -ENOTCONN: it was not asked anything. In
	 * the hub's thread, or in that which calls errand_end(), with the owner's lock
	 */
	void (*over)(struct errand *e, int err);
};

/* Part of an object of its owner's, who sets @more and @repeat alone */
struct errand {
	bool more;		/* there is something to ask */
	bool repeat;		/* may be asked of another process, too: line_ask() */
	bool touched;		/* the node may have done a part of it */
	bool answering;		/* in answer() */
	uint32_t under_way;	/* questions */
	int err;		/* the first one */
	uint64_t due;		/* given up then */
	const struct errand_ops *ops;
	struct errands *of;
	struct errand_user *user;
	struct link waiting;	/* of the line: who has waited longest for an answer is first */
	struct link ready;	/* of the user: has more to ask; else in no list */
};

/* Of @line; @silence_ns by @clock: for so long it may say nothing. -ENOMEM */
int errands_create(struct errands **es, struct line *line, clockid_t clock, uint64_t silence_ns);
/* Ends them with -ECANCELED. NULL is allowed. Before the line is destroyed */
void errands_destroy(struct errands *es);

/* Begins @e, which is zeroed, for @uid; errands_pump() asks. -ENOMEM: it has not begun */
int errand_begin(struct errands *es, struct errand *e, const struct errand_ops *ops, uid_t uid);
/* It is over with @result. From its own answer(): when that returns */
void errand_end(struct errand *e, int result);

/* All that there are */
void errands_end(struct errands *es, int result);
/* Asks what can be asked, between line_reap() and line_send() */
void errands_pump(struct errands *es);
/*
 * Gives up who waits too long at @now, of their clock; in how many ns the next one is due,
 * UINT64_MAX: nobody waits
 */
uint64_t errands_expire(struct errands *es, uint64_t now);
bool errands_idle(const struct errands *es);

#endif
