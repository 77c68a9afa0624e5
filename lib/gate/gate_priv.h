/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 *	gate_service.c	the object, and its board
 *	gate_ops.c	requests of sockets, in the engine's thread
 *	gate_forward.c	of any role: they are handed over
 *	gate_ask.c	what becomes of them at the other node
 *	gate_get.c	what they have come to there, and its bytes
 *	gate_dock.c	memory for bytes that the other node writes, and berths in its own
 *	gate_caller.c	of their sessions
 *	gate_serve.c	what other nodes ask
 *	gate_guest.c	their sessions here, and what their requests have come to
 *
 * A session's requests are handed over to a node one after the other, in their order: first its
 * bytes, if they are many, then the request; the next one follows when that was taken. There it
 * waits for as long as it likes, and its end is told by GATE_DONE, over each new connection again.
 *
 * Many bytes are written to a berth, before the message that says so, over the same connection: who
 * gets that sees them (the write's place, released by the message; acquired by rgate_peer_recv()).
 * He copies them before he looks, as the other node may write there at any time: who serves to the
 * ticket's room, and then the request is begun; who asks to the session's memory. What a message
 * says of another connection's dock is as if it was not said: a request is not begun, and is asked
 * anew; the bytes of one that has ended are asked for.
 *
 * What one with many completions comes to before is told by GATE_MORE, and over a new connection
 * from where GATE_HEARD says. All of them have their place from the begin: at the engine that asks,
 * as those of any such request; here with the ticket, and in the ring of the guest's session. So
 * nobody has to wait for who takes them, nor to hold more than the request could have.
 */
#ifndef RGATE_GATE_PRIV_H
#define RGATE_GATE_PRIV_H

#include <pthread.h>

#include <ringgate/rgate_mem.h>
#include <ringgate/rgate_session.h>

#include "board.h"
#include "errand.h"
#include "events.h"
#include "gate_service.h"
#include "gate_wire.h"
#include "index.h"
#include "limit.h"

/* ---- Who asks ---- */

enum wish_state {
	WISH_QUEUED,		/* behind others of its session */
	WISH_PUTS,		/* its bytes go */
	WISH_SUBMITS,
	WISH_WAITS,		/* the other node has it */
	WISH_GETS,		/* it has ended, and its bytes come */
};

/* A request */
struct wish {
	struct errand errand;		/* but of WISH_QUEUED and WISH_WAITS */
	struct errand cancel;		/* GATE_CANCEL */
	struct errand hear;		/* GATE_HEARD */
	bool cancelling, hearing;	/* there is that one */
	struct link queue;		/* of the caller, till it was taken; of the node, if its end
					 * is due; else in no list
					 */
	struct gate_caller *caller;
	struct rgate_req *r;
	enum wish_state state;
	bool unwanted;
	bool plain;			/* its bytes go in pieces */
	struct gate_lent lent;		/* berths that it has, or had in another dock */
	struct gate_as as;		/* what is sent instead of its own words */
	uint32_t has;			/* enum gate_has */
	uint32_t ticket;
	uint64_t serial, due;
	uint64_t end_ns;		/* CLOCK_MONOTONIC: then its end is due, */
	uint64_t last_ns;		/* whatever it comes to before; 0: it is not due at all */
	unsigned char *mem;
	uint32_t len, in;		/* bytes of its part; those that are sent */
	struct rgate_socket_addr addr;	/* the copy that is sent */
	void *addr_mem;			/* where one goes; NULL: nowhere */
	uint32_t moved, first;		/* bytes that went, or came; of those the first message's */
	uint32_t total;			/* to come */
	int result;
	uint64_t value;
	/* Of one with many completions; moved, result and value are those of the next one */
	uint32_t shots;			/* but the last one; 0: it has one */
	uint32_t share;			/* bytes of its part that each has */
	uint32_t came;
	uint64_t heard;			/* GATE_MORE, all in their order */
	bool unsaid;			/* over this connection */
};

/* A session, at one other node */
struct gate_caller {
	struct errand leave;		/* GATE_LEAVE */
	struct errand probe;		/* is its guest there? */
	struct link of_service;
	struct index_node by_id, by_seat;	/* the second one as long as it has a seat */
	struct gate_service *sv;
	struct gate_node *node;
	struct rgate_seat *seat;	/* NULL: is over */
	uid_t uid;
	uint64_t id;			/* of the guest */
	bool there;			/* the node may know of it, and not that it leaves */
	bool taken;			/* the node has taken a request, and none after it was
					 * one of a user who may not be there
					 */
	bool leaving;			/* it is told */
	bool kept;			/* its session is over, and it is to be told that later */
	bool unsure;			/* it may have given it up, over another connection */
	bool probing;			/* it is asked that */
	bool lost;			/* the node has nothing of it any more */
	struct link queue;		/* wishes */
	uint64_t left_dock;		/* berths of requests that ended before the node was done */
	uint64_t left_in, left_out;
	struct wish *ticket[GATE_TICKETS];
};

/* ---- Who serves ---- */

enum ticket_state {
	TICKET_FREE,		/* or bytes come for the request of that serial */
	TICKET_BUSY,
	TICKET_DONE,
};

/* Completions before the last one, kept until the ticket has another request */
struct shots {
	uint32_t most, share;		/* that can come; bytes of the part that each has */
	uint32_t came;
	uint32_t told, moved;		/* of these; bytes of the next one, likewise */
	uint64_t said;			/* messages that took */
	bool silent;			/* what was heard of them is not known */
	struct {
		uint64_t value;
		int result;
	} shot[];
};

struct ticket {
	enum ticket_state state;
	bool untold;
	uint64_t serial;
	uint32_t has, len;
	uint32_t total;		/* bytes to get */
	struct gate_lent lent;	/* out: where they go, in that dock */
	bool written;		/* they are there */
	int result;
	uint64_t value;
	struct shots *shots;	/* NULL: it has one completion */
};

#define GATE_PLACES	256U	/* of a guest's requests, and of what cancels them; besides: */
#define GATE_SHOTS	1792U	/* of what those under way that have many can come to */

struct guest {
	struct link of_node;
	struct gate_node *node;
	struct rgate_session *session;
	struct rgate_seat *seat;
	unsigned char *mem;
	unsigned int refs;		/* atomic: the node's, the seat's */
	uint64_t id;			/* as its node says */
	uint64_t key;			/* here, never given twice */
	uid_t uid;
	uint32_t turn;			/* the ticket that tells next */
	uint32_t shots;			/* of those under way */
	struct ticket ticket[GATE_TICKETS];
};

/* For one connection; zeroed: there is none */
struct gate_dock {
	uint64_t name;			/* as the other node knows it, too; 0: it does not (yet) */
	struct rgate_share *share;
	unsigned char *mem;		/* that the other node writes */
	struct rgate_desc here;		/* what it knows that by */
	struct rgate_remote there;	/* where this one writes */
	bool wide;			/* both have wide berths */
	uint64_t free_here, free_there;	/* who asks has both; bit N: the berth N + 1 is nobody's */
};

#define GATE_GONE	64U
#define GATE_SHARES	64U

struct gate_node {
	struct gate_service *sv;
	struct line *line;		/* NULL: not a node that can be asked */
	struct errands *errands;
	uint64_t down_ns;		/* CLOCK_MONOTONIC: since when; 0: up */
	uint64_t life;			/* of its processes: how many were there before */
	/* who asks */
	struct link ending;		/* wishes that are not wanted, whose end is due soon */
	uint32_t nkept;			/* callers that are */
	struct gate_dock asks;
	struct errand docks;		/* GATE_DOCK */
	bool docking, dockless;		/* there is that one; it is not to be asked (again) */
	uid_t dock_uid;			/* for whom it was asked */
	uint32_t dock_tries;		/* over this connection; not before: */
	uint64_t dock_ns;		/* CLOCK_MONOTONIC */
	/* who serves */
	struct gate_dock serves;
	uint32_t docks_made;		/* of these over this connection, or tried */
	struct link guests;
	uint32_t nguests;
	uint64_t gone[GATE_GONE];	/* ids, of its process, of guests that are gone; 0: none */
	uint64_t floor;			/* all up to this one are as well; 0: none */
	struct limit comes;		/* guests, whatever its process */
	struct limit share[GATE_SHARES];	/* likewise, of users with such a uid */
	bool untold;			/* some tickets are */
};

struct gate_service {
	struct fair lock;		/* all below, but for what never changes */
	struct gate_opts o;
	struct board_ops ops;
	struct board *board;
	uint64_t silence_ns;
	bool over;			/* gate_service_quit() */
	uint64_t serial;		/* of requests and guests */
	struct link callers;
	struct index by_id, by_seat;	/* the same ones */
	/* of guests: */
	struct events ev;
	pthread_t thread;
	bool runs;			/* there is one */
	uint64_t keys;			/* of guests, so far */
	uint64_t turned_away;
	uint64_t docks_again;		/* that were asked for once more over a connection */
	struct gate_node node[RGATE_NODES_MAX];
};

extern const struct rgate_req_service gate_requests;

/* All with the lock: */

/* gate_service.c: asks what can be asked */
void gate_pump(struct gate_node *n);

/* gate_ask.c */
/* It is the last of its caller's queue */
void gate_ask(struct wish *w);
/* It is over with that, whatever the other node does. */
void gate_wish_end(struct wish *w, int result, uint64_t value);
/*
 * It fails. Where nobody knows what the node has done of it, or it has nothing of the session, what
 * the session has there is not what its program takes it for.
 */
void gate_wish_fail(struct wish *w, int err);
/* Now, whatever its state is */
void gate_wish_give_up(struct wish *w, int err);
/* The node has it: what it does not say of that is not known, and so of all that the session has */
void gate_wish_forget(struct wish *w, int err);
int gate_wish_begin(struct wish *w, enum wish_state state, const struct errand_ops *ops);
struct gate_question gate_wish_question(const struct wish *w, enum gate_kind kind,
					const struct ask *a);
/* What an answer says: 0, or why not */
int gate_refusal(int err, const void *answer, size_t len, struct gate_result *r);
/* As rgate_req_op.cancel has it */
int gate_ask_cancel(struct wish *w);
/* Another connection: what was heard is said, and what ends has its time again */
void gate_ask_again(struct wish *w);
/* Gives up what should have ended; in how many ns the next one is, UINT64_MAX: none */
uint64_t gate_ask_expire(struct gate_node *n, uint64_t now);
void gate_ask_answer(struct gate_node *n, const void *msg, size_t len);
/* errand_ops.answer where all that is told is a result */
int gate_plain_answer(struct errand *e, struct ask *a, int err, const void *answer, size_t len);

/* gate_get.c: GATE_DONE */
void gate_wish_done(struct wish *w, const struct gate_result *r);

/* gate_dock.c */
/* -errno: there is none, as before */
int gate_dock_open(const struct gate_node *n, struct gate_dock *d);
void gate_dock_close(const struct gate_node *n, struct gate_dock *d);
/* The other node's, as it says, is @name's other half. -EPROTO: it is none; -EPROTONOSUPPORT */
int gate_dock_join(const struct gate_node *n, struct gate_dock *d, uint64_t name,
		   const void *desc, uint32_t len);
/* What the other node has written; it may do so again at any time */
unsigned char *gate_dock_at(const struct gate_node *n, const struct gate_dock *d, uint32_t berth);
/*
 * A copy of @len bytes is on its way to that berth of the other node's, from its byte @off on,
 * over the connection that the dock is of, in front of all that is said after this. -errno: it is
 * not
 */
int gate_dock_write(const struct gate_node *n, const struct gate_dock *d, uint32_t berth,
		    uint32_t off, const void *from, uint32_t len);
/* The connection is gone, and with it both docks */
void gate_docks_end(struct gate_node *n);
int gate_serve_dock(struct gate_node *n, const struct gate_question *q, struct gate_result *r);
/* The node has not heard of it: it may be one of @room bytes. */
static inline void gate_wish_cut(struct wish *w, uint32_t room)
{
	w->len = least(w->len, room);
	w->in = least(w->in, room);
}

/*
 * All of its part goes to a berth, which it has from now on; false: it goes in pieces. One that is
 * longer than most berths, and for which no wide one is free, is cut.
 */
bool gate_wish_put(struct wish *w);
/*
 * It has a berth for what it comes to; @waits: perhaps for long, from now on, and it is cut too.
 * False: it has none
 */
bool gate_wish_lend(struct wish *w, bool waits);
/*
 * The node has written @len bytes, as it says, from @off of berth and part on: they come. False:
 * not there, and none came
 */
bool gate_wish_took(struct wish *w, const struct gate_lent *lent, uint32_t off, uint32_t len);
/* The node has taken what was sent */
void gate_wish_berthed(struct wish *w);
/* It is done with both berths */
void gate_wish_unlend(struct wish *w);
/* It is not, and the request ends: the session's end there is that of its use of them */
void gate_wish_abandon(struct wish *w);
void gate_caller_unlend(struct gate_caller *c);

/* gate_caller.c */
/* It has all but an id */
void gate_caller_add(struct gate_caller *c);
/* Of that session: the next one after @last, the first one after NULL; NULL: there is no more */
struct gate_caller *gate_caller_of(const struct gate_service *sv, const struct rgate_seat *seat,
				   const struct gate_caller *last);
/* It has nothing at its node: all that is under way fails with @err, and the node is told. */
void gate_caller_lose(struct gate_caller *c, int err);
/* Asks, if need be: what waits there for as long as it likes does not tell of a gone guest */
void gate_caller_make_sure(struct gate_caller *c);
/* The session is over, and so are its requests. Frees it, now or when the node need not know */
void gate_ask_leave(struct gate_caller *c);
/* That node, or with NULL each, has nothing of anybody any more. @other: it is another process */
void gate_ask_lost(struct gate_service *sv, const struct gate_node *n, bool other);
/*
 * Another connection: is there still what should be, and do those know who do not? Who is lost for
 * want of memory stays: callers are freed by the engine's thread, or by the answer to GATE_LEAVE.
 */
void gate_ask_up(struct gate_node *n);

/* gate_serve.c */
void gate_serve_question(struct gate_node *n, const void *msg, size_t len);
/* Tells what has ended, as far as there is room */
void gate_serve_pump(struct gate_node *n);
/* Another connection: each end is told again, of many when it is known what was heard */
void gate_serve_up(struct gate_node *n);

/* gate_guest.c */
/*
 * -EACCES; -EDQUOT: the node, or the user, has too many; -EUSERS: they come and go too fast; as
 * rgate_session_at()
 */
int gate_guest_new(struct gate_node *n, uint64_t id, uid_t uid, struct guest **out);
struct guest *gate_guest_of(struct gate_node *n, uint64_t id);
bool gate_guest_at(const struct gate_node *n, const struct rgate_seat *seat);
/* Was there one of that id, or may there have been? It does not come back. */
bool gate_guest_is_gone(const struct gate_node *n, uint64_t id);
/* All that it has ends. */
void gate_guest_end(struct guest *g);
/* All guests of a node, whose process is not there any more or does not come */
void gate_guests_end(struct gate_node *n);
/* Another process of it has other ids. There are no guests. */
void gate_guests_forget(struct gate_node *n);
/* Without the lock: the thread that takes completions. -errno */
int gate_guests_start(struct gate_service *sv);
void gate_guests_stop(struct gate_service *sv);

#endif
