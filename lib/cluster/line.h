/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A line of a service to one other node, in both roles: questions to it, of which CALL_PLACES
 * are under way at once, and answers to what it asks. It lasts for all connections; what a
 * connection that ends leaves open is asked, or answered, again over the next one (call.h).
 *
 * No lock: whoever owns it calls its functions one at a time. A thread may ask, and another one
 * hand on what the hub has: what is written with the owner's lock held is all there is to order.
 */
#ifndef RGATE_CLUSTER_LINE_H
#define RGATE_CLUSTER_LINE_H

#include "call.h"

struct line;

/* -ENOMEM, or as rgate_pool_alloc(). @node has to be one with rgate_hub_peer(). */
int line_create(struct line **line, struct rgate_hub *hub, uint32_t node);
/* As line_settle(); who still waits for an answer is told -ECANCELED. NULL is allowed */
void line_destroy(struct line *l);
/* None of its messages is being sent any more; one that takes 2 s ends its connection. */
void line_settle(struct line *l);

uint32_t line_node(const struct line *l);
struct rgate_peer *line_peer(const struct line *l);
/* Of the node's process, rgate_node_incarnation(); 0: none was there so far */
uint64_t line_process(const struct line *l);
/* Is there a connection, as far as was told? */
bool line_is_up(const struct line *l);

/* ---- The hub's thread ---- */

/* @what comes, before those hear of it who wait at the line */
typedef void (*line_news_fn)(void *ctx, uint32_t node, enum session_news what);

/* Tells what has happened to the connection. @news may be NULL */
void line_look(struct line *l, line_news_fn news, void *ctx);
/* After line_look(): did what the hub hands on come over the connection that there is? */
bool line_is_current(const struct line *l);

/*
 * line_post - a transfer over the connection that there is, before what is asked or told later
 * As xfer_post(); -ENOTCONN: there is none, or not that one any more. It is over when one of the
 * line's functions says so, with line_settle() at the latest.
 */
int line_post(struct line *l, struct xfer *x, struct rgate_op *op, xfer_over_fn over);

/* ---- Who asks ---- */

/* A question. The line's: it is the asker's until he is told of its answer, or leaves */
struct ask {
	uint64_t number;	/* for the question: its answer has it, too */
	void *msg;		/* CALL_MSG_MAX bytes for it */
	void *ctx;		/* the asker's: who asks, for line_leave(); not NULL */
	uint64_t word;		/* likewise, for what he likes */
};

/*
 * The answer, which is valid until it returns; or @err: why there is none: -ECONNRESET: another
 * process is there, and whether the last one has done it is not known; -ECANCELED: line_destroy().
 * The place is free already.
 */
typedef void (*line_over_fn)(struct ask *a, int err, const void *answer, size_t len);

/* Looks which messages have left: their places are free. Before line_open() */
void line_reap(struct line *l);
/* A question to be filled in, for line_ask(), which has to follow. NULL: no place is free */
struct ask *line_open(struct line *l);
/* @len: of a->msg; @repeat: as call_ask() has it. It leaves with line_send(). */
void line_ask(struct ask *a, size_t len, bool repeat, line_over_fn over);
/*
 * Posts what can be, and has the hub call when there may be more to do. @waits: somebody has to
 * be given up at some time.
 */
void line_send(struct line *l, bool waits);
/*
 * @ctx waits for no answer any more, and is told of none; the places of what has left come back
 * with answer or connection. Was something of it sent, so that the node may have done it?
 */
bool line_leave(struct line *l, const void *ctx);
/* All who wait do so no more. Errands would wait on: end those of the line, too. */
void line_leave_all(struct line *l);
/* It did not leave before then: ns of CLOCK_BOOTTIME, for leases */
uint64_t line_asked_ns(const struct ask *a);
/* An answer has come. False: nobody has asked that */
bool line_answered(struct line *l, uint64_t number, const void *answer, size_t len);

/* ---- Who answers ---- */

/*
 * line_take - a question has come
 * True: it is to be carried out, once, and line_say() tells what came of it, now or later. Else
 * it was before: what was said to it is said again, or will be when it is known.
 */
bool line_take(struct line *l, uint64_t number);
/*
 * The answer to @number, and to its like over the next connection: is said as soon as there is
 * room. Of CALL_MSG_MAX bytes at most; dropped, if the node has asked anew in that place. What a
 * process of the node has asked is forgotten when SESSION_OTHER is told: the next one has the
 * same numbers, so a service that answers later has to forget those that are under way then.
 */
void line_say(struct line *l, uint64_t number, const void *answer, size_t len);
/*
 * line_tell - what nobody has asked for
 * False: not now, and it is to be told again when the service is pumped: there is no room, or
 * the line is up over a connection that the hub has yet to look at.
 */
bool line_tell(struct line *l, const void *msg, size_t len);
/* What could not be said for want of room */
void line_say_again(struct line *l);

/* Does something wait for room, which nobody tells of? */
bool line_is_stalled(const struct line *l);

#endif
