/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Calls: a question to a peer, and its one answer. A question whose connection is lost before
 * the answer has come is asked again over the next one, and is carried out once all the same.
 *
 * Each call has one of CALL_PLACES places and a number, higher than any that its place had
 * before; both are in the word that the question and its answer carry. The side that answers
 * keeps, for each place of a peer, the highest number it was asked, and what it said. So it
 * has room for the answer of whatever it is asked, and one that does not read its answers
 * cannot ask more. (NFS 4.1 has such slots in its sessions, RFC 5661, 2.10.6.)
 *
 * Neither side has a lock: whoever owns one calls its functions one at a time.
 */
#ifndef RGATE_CLUSTER_CALL_H
#define RGATE_CLUSTER_CALL_H

#include <errno.h>

#include <ringgate/rgate_hub.h>
#include <ringgate/rgate_pool.h>

#include "session.h"
#include "xfer.h"

#define CALL_PLACES	16U
#define CALL_MSG_MAX	RGATE_HUB_MSG_MAX	/* bytes of a question, or of an answer */

/* The error that an answer's word says: 0 or -errno; -EIO: it is none */
static inline int call_error(uint32_t error)
{
	return error <= 4095 ? -(int)error : -EIO;
}

/* ---- Who asks ---- */

struct call;

/* @err: 0, or why there will be no @answer, which is valid until this returns */
typedef void (*call_over_fn)(struct call *c, int err, const void *answer, size_t len);

/* Part of an object of its owner's, who reads number and msg */
struct call {
	uint64_t number;	/* for the question: its answer has it, too */
	void *msg;		/* CALL_MSG_MAX bytes for the question */
	struct call_place *place;
	call_over_fn over;
};

struct call_place {
	struct call_client *client;
	struct call *call;	/* NULL: free, as soon as the message has left */
	struct xfer xfer;
	uint32_t len;		/* of the message; 0: it is not there yet */
	bool posted;		/* over the connection there is, */
	bool asked;		/* or over any so far */
	bool repeat;
	bool left;
};

struct call_client {
	const struct session *session;
	struct xfer_list *xfers;	/* to the session's peer */
	struct rgate_pool *stage;
	const struct rgate_buf *mem;
	struct call_place place[CALL_PLACES];
};

/* @stage: where no peer writes (rgate_node_stage()); -ENOMEM, or as rgate_pool_alloc() */
int call_client_init(struct call_client *cc, const struct session *session,
		     struct xfer_list *xfers, struct rgate_pool *stage);
/* Nothing is under way any more (xfer_settle()). Calls that wait are over: -ECANCELED */
void call_client_fini(struct call_client *cc);

/* A place for @c, with its number and memory; -EAGAIN: all are taken */
int call_open(struct call_client *cc, struct call *c);

/*
 * call_ask - the question, of @len bytes, is in c->msg
 * @repeat: it may be carried out twice, so another process of that node may be asked, too;
 *	else the call is over with -ECONNRESET when nobody knows what the last one did
 * @over: called once, by call_answer() and what follows it here
 */
void call_ask(struct call *c, size_t len, bool repeat, call_over_fn over);

/*
 * call_leave - nobody waits for the answer any more
 * Memory that the question lends may be written until @over is called.
 */
void call_leave(struct call *c, call_over_fn over);

/* Posts what is to be asked; true: something could not be, for now */
bool call_send(struct call_client *cc);

/* An answer has come. False: nobody waits for such a one */
bool call_answer(struct call_client *cc, uint64_t number, const void *answer, size_t len);

/* SESSION_DOWN, after xfer_reap(): what waits is asked again over the next connection */
void call_down(struct call_client *cc);
/* SESSION_OTHER */
void call_other(struct call_client *cc);

bool call_idle(const struct call_client *cc);

/* ---- Who answers ---- */

struct call_kept {
	uint64_t number;	/* the highest so far */
	uint32_t len;		/* of the answer; 0: there is none (yet) */
	uint8_t answer[CALL_MSG_MAX];
};

/* What a peer's process has asked; zeroed for another one (SESSION_OTHER) */
struct call_server {
	struct call_kept kept[CALL_PLACES];
};

enum call_asked {
	CALL_FIRST,	/* to be carried out */
	CALL_AGAIN,	/* it was asked before: what was kept is said again */
	CALL_OLD,	/* nobody waits for its answer any more */
};

/* @kept: out, for CALL_AGAIN: the answer; NULL: it is not there yet, or was not kept */
enum call_asked call_take(struct call_server *cs, uint64_t number, const void **kept, size_t *len);

/* What call_take() gives from now on; false: @number is not the last one's, and it is dropped */
bool call_keep(struct call_server *cs, uint64_t number, const void *answer, size_t len);

#endif
