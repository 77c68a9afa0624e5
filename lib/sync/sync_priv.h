/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * sync_service.c	the object, its board, the clock
 * sync_ops.c	what requests do
 * sync_handle.c	what becomes of a handle's lock, wherever its home is
 * sync_ask.c	of locks whose home is another node
 * sync_serve.c	what other nodes ask
 * sync_fence.c	whose life is over reaches no node any more
 * sync_table.c	locks whose home is this node
 *
 * Leases. Who has locks at another node is alive there for a life: it asks at least each
 * quarter of the lease. It takes its life for over when a lease has passed since it *began* to
 * ask the last question that was answered; the home when a lease and an eighth have passed since
 * it *took* the last question. So the one is always before the other, whatever the messages
 * took, as long as the two clocks (CLOCK_BOOTTIME) go equally fast but for an eighth. When a life
 * is over all that it had is lost, and the next one begins; there is no way back.
 *
 * A process numbers its lives upwards, as a home tells by that which one is the later, from a
 * number of which no other process of the node has one near: nodes that are asked to end a
 * connection for one life must not take it for one that they did before.
 */
#ifndef RGATE_SYNC_PRIV_H
#define RGATE_SYNC_PRIV_H

#include "board.h"
#include "errand.h"
#include "sync_service.h"
#include "sync_wire.h"

enum handle_state {
	HANDLE_OPENING,
	HANDLE_OPEN,
	HANDLE_STALE,		/* its life is over */
	HANDLE_DEAD,		/* could not be opened: the number is to be taken away */
};

/* A session's claim, here or at another node */
struct handle {
	struct link of_home;		/* of its node, or of the service */
	struct link ready;		/* of the node: has something to ask; else in no list */
	struct link dead;		/* of the service: its number is to be taken away */
	struct sync_service *sv;
	struct sync_node *node;		/* NULL: the home is here */
	struct claim *local;		/* there */
	struct rgate_seat *seat;	/* NULL: the session has it no more */
	uint32_t number;
	uid_t uid;
	struct sync_open as;
	struct rgate_sync_place *place;	/* of the session; NULL as the seat */
	enum handle_state state;
	uint64_t id;			/* of the claim, at its node */
	uint64_t seq;			/* of the last SYNC_TAKE */
	uint64_t due;			/* HANDLE_OPENING: given up then */
	uint32_t flags;			/* RGATE_LOCK_* of what is wanted */
	/* what the session wants */
	bool wants;			/* SYNC_TAKE is to be asked */
	bool leaves;			/* SYNC_DROP is to be asked, before another SYNC_TAKE */
	bool closing, clean;
	/* what the home was told, and has told */
	bool asking;			/* a question is under way */
	bool taken;			/* it waits there, or has it */
	bool granted;			/* it has it; of a barrier: the wait is over */
	int result;			/* of a barrier's wait */
	uint64_t value;
	struct rgate_barrier_info info;	/* for -EPIPE */
	/* requests, each NULL: none waits */
	struct rgate_req *opening, *taking, *waiting, *dropping, *ending;
};

/* A question of a request alone: STATE, LIST */
struct query {
	struct errand errand;
	struct sync_node *node;
	struct rgate_req *r;		/* whose word of data this is */
	struct sync_question q;
	int result;			/* 0 or 1: there is more */
	uint64_t value;
};

/* Another node that has claims here, for one life */
struct guest {
	struct party party;
	struct link orphan;	/* of the service: its process is not there any more; or its life */
	struct link untold;	/* claims that it has to be told of */
	uint64_t life;
	uint64_t heard_ns;
	/* whose life is over: */
	struct sync_service *sv;
	uint32_t to_ask, asked;	/* bits of nodes that are to end their connections to it */
	uint64_t again_ns;	/* they are not asked again before */
	uint64_t due_ns;	/* nor waited for any longer */
};

struct sync_node {
	struct sync_service *sv;
	struct line *line;		/* NULL: not a node that can be asked */
	/* who asks */
	struct link handles, ready;
	struct errands *queries;
	uint64_t life;
	uint64_t lease_end;		/* 0: there is nothing to lose */
	uint64_t lease_ns;		/* as the home says */
	uint64_t renew_ns;		/* when to ask again */
	bool renewing;
	/* who answers */
	struct guest *guest;		/* NULL: it has not asked */
	uint64_t over;			/* lives up to this one are */
	struct fenced {
		uint64_t ns;		/* 0: never */
		uint64_t life;
	} fenced[RGATE_NODES_MAX];	/* when it had that node's connection ended, and why */
};

struct sync_service {
	struct fair lock;		/* all below, but for what never changes */
	struct sync_opts o;
	uint64_t lease_ns;
	uint64_t begin_ns;		/* locks are given from then on */
	uint64_t first_life;		/* of this process, at any home */
	uint64_t refresh_ns;		/* when to write leases of those that are here */
	struct board *board;		/* NULL: no other node */
	struct sync_table table;
	struct party here;
	struct link handles;		/* whose home is here */
	struct link dead;
	struct link orphans, fences;
	struct sync_node node[RGATE_NODES_MAX];
};

extern const struct rgate_req_service lock_requests, barrier_requests;

/* All with the lock: */

uint64_t sync_now(void);
/* The home's part of the lease is longer. */
static inline uint64_t sync_patience(const struct sync_service *sv)
{
	return sv->lease_ns + sv->lease_ns / 8;
}

/* sync_service.c: hands the table's news on to handles and guests */
void sync_tell(struct sync_service *sv);

/* sync_handle.c */
void sync_end(struct rgate_req **r, int result, uint64_t value);
/* What was waited for is over: of a lock @err is 0; @info: of a barrier that broke */
void handle_granted(struct handle *h, int err, uint64_t value,
		    const struct rgate_barrier_info *info);
/* Its place says until when */
void handle_lease(struct handle *h);
/* The session has no part in it any more, or must not believe so. */
void handle_lost(struct handle *h);
/* The home has nothing of it any more: it is freed, now or when its number is taken away */
void handle_retire(struct handle *h);
/* Frees it. Its number was taken away, all its requests are over. */
void handle_free(struct handle *h);

/* sync_ask.c */
/* Of a node with a line. -ENOMEM */
int sync_ask_init(struct sync_node *n);
/* Frees what is left, which has no session any more. */
void sync_ask_fini(struct sync_node *n);
/* It may have something to ask */
void sync_ask_step(struct handle *h);
/* RGATE_REQ_LATER; -ENOMEM */
int sync_ask_query(struct sync_node *n, struct rgate_req *r, const struct sync_question *q);
/* Is the life over by now? Comes before all else that the clock or a message brings. */
void sync_ask_look(struct sync_node *n, uint64_t now);
void sync_ask_lapse(struct sync_node *n);
void sync_ask_pump(struct sync_node *n);
/* When to look again: ns from @now; UINT64_MAX: no need */
uint64_t sync_ask_expire(struct sync_node *n, uint64_t now);
void sync_ask_answer(struct sync_node *n, const void *msg, size_t len);

/* sync_serve.c */
void sync_serve_question(struct sync_node *n, const void *msg, size_t len);
/* Tells what its claims wait for, as far as there is room */
void sync_serve_pump(struct sync_node *n);
/* Is there such news left? */
bool sync_serve_waits(const struct sync_node *n);
/* The connection is another one: what was told over the last one may be lost. */
void sync_serve_up(struct sync_node *n);
/* Its process is another one. */
void sync_serve_other(struct sync_node *n);
/* Lives whose time is over; as sync_ask_expire() */
uint64_t sync_serve_expire(struct sync_service *sv, uint64_t now);
/* Who is to be told of that claim */
void sync_serve_tell(struct sync_service *sv, struct claim *c);
void sync_serve_fini(struct sync_service *sv);
/* What it had goes to others, and it is freed. */
void sync_serve_forget(struct sync_service *sv, struct guest *g);

/* sync_fence.c: a guest whose life is over, until sync_serve_forget(); before the pumps */
void sync_fence_begin(struct sync_service *sv, struct guest *g);
/* Asks node @n what it is to be asked, as far as there are places */
void sync_fence_pump(struct sync_node *n);
/* It was asked, and will not answer; @other: as its process is not there any more */
void sync_fence_lapse(struct sync_node *n, bool other);
/* As sync_serve_expire() */
uint64_t sync_fence_expire(struct sync_service *sv, uint64_t now);
/*
 * Node @n wants the connection to @node ended, whose @life is over; -EINVAL; -EAGAIN: it was a
 * moment ago, for another one
 */
int sync_fence_peer(struct sync_node *n, uint64_t node, uint64_t life);

#endif
