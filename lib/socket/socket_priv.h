/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 *	socket_service.c	the object, and what others ask of it
 *	socket_ops.c		requests, in the engine's thread
 *	socket_table.c		sockets and their owners
 *	socket_loop.c		the service's thread: whose turn it is
 *	socket_run.c		a socket's turn: what its requests have come to
 *	socket_do.c		one request: calls on the descriptor
 *	socket_resolve.c	names: threads that ask for them
 *	socket_query.c		one name: what is asked, and what came of it
 *	socket_options.c, socket_addr.c, socket_policy.c, socket_own.c
 *
 * What is asked of a socket goes through its list `incoming` to the service's thread, and there
 * into one of its queues, by what it waits for. Of a queue only the first is worked on.
 */
#ifndef RGATE_SOCKET_PRIV_H
#define RGATE_SOCKET_PRIV_H

#include <pthread.h>
#include <sys/socket.h>

#include "events.h"
#include "list.h"
#include "socket_options.h"
#include "socket_resolve.h"
#include "socket_service.h"

#define OP_NUMBER(op)	((op) & ((1U << RGATE_REQ_OP_SHIFT) - 1))

enum sock_state {
	SOCK_PENDING,		/* somebody is to be accepted */
	SOCK_OPEN,
	SOCK_DEAD,		/* nobody was: the handle is to be taken away */
	SOCK_CLOSING,		/* the handle is gone */
};

/* A request under way. With the lock, where nothing else is said */
struct op {
	struct link link;		/* incoming, or a queue */
	struct sock *s;
	struct rgate_req *r;		/* whose word of data this is, until it ends */
	uint32_t number;		/* OP_NUMBER() */
	bool runs;			/* the thread is at it */
	bool unwanted;			/* cancelled */
	/* never changes */
	uint64_t due;			/* CLOCK_MONOTONIC, ns: its deadline; 0: none */
	uint32_t flags;
	uint64_t arg;
	struct rgate_socket_addr addr;	/* the copy that is acted on */
	bool multi;			/* it goes on until all have come */
	uint32_t slot;			/* bytes of the part that each receive of many has */
	/* likewise, but of one that receives many, where they are the thread's: of the next slot */
	unsigned char *mem;
	uint32_t len;
	unsigned char *addr_mem;	/* where one goes; may be NULL */
	/* the thread's; done also with the lock, while it does not run */
	uint32_t done;			/* bytes */
	bool begun;			/* CONNECT, CLOSE */
	uint64_t value;
	/* ACCEPT: those that are to come, which never change; the thread's: how many came */
	uint32_t naccepted, came;
	struct sock *accepted[];
};

/* A user who has sockets */
struct owner {
	struct link of_service;		/* lock */
	uid_t uid;
	uint32_t socks;			/* lock */
	struct link turn;		/* the thread's: among those with ready sockets */
	struct link ready;		/* likewise: sockets */
};

struct sock {
	struct socket_service *sv;
	struct owner *owner;
	uint64_t id;
	uint32_t family, type;
	/* lock */
	struct link all;		/* by id */
	struct link look;		/* the thread has to look at it */
	struct link incoming;
	enum sock_state state;
	struct rgate_seat *seat;	/* engine's: of a SOCK_PENDING one */
	uint32_t handle;
	bool dropped;			/* nobody has it any more */
	bool sweep;			/* something of it is unwanted */
	int kill;			/* -errno: the end that was made of it */
	uint32_t under_way;
	int fd;				/* written by the thread; -1: none */
	/* the thread's */
	struct link ready;		/* owner's */
	struct link out, in, polls;	/* requests */
	bool readable, writable;	/* maybe */
	int dead;			/* -errno: was killed */
	struct linger linger;
	struct op *closing;		/* CLOSE, that waits for what was sent */
	uint64_t closes_by;
	struct link lingers;
	struct socket_wish wish[2];	/* what was allowed last, by enum socket_act */
	bool wished[2];
	bool chosen;			/* bound to a port that the kernel chose */
	bool reuse;			/* others may be bound to the same one */
	/* one writer, the thread; relaxed */
	uint64_t sent, received;
};

struct socket_service {
	pthread_mutex_t lock;
	pthread_t thread;
	struct events ev;
	int own_fd;
	uint32_t most;
	struct resolver *resolver;
	/* lock */
	struct socket_policy *policy;
	struct link all, look, owners;
	struct link dead;		/* sockets whose handle is to be taken away, by `look` */
	uint64_t last_id;
	uint32_t socks;
	bool review;			/* the policy is another one */
	bool stop;
	/* the thread's */
	struct link turns;		/* owners */
	struct link lingers;		/* sockets */
	uint64_t said;			/* when a refusal was logged last */
	/* relaxed */
	uint64_t opened, accepted, refused, killed, sent, received;
};

static inline void count_up(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

extern const struct rgate_req_service socket_requests;

/* ---- socket_table.c ---- */

/* With the lock: the user's next one, without a descriptor. -EDQUOT, -ENFILE: too many; -ENOMEM */
int sock_new(struct socket_service *sv, uid_t uid, uint32_t family, uint32_t type,
	     struct sock **out);
/* Gives it a descriptor, which epoll watches from now on; -errno, and it stays the caller's */
int sock_watch(struct sock *s, int fd);
/* The thread's: takes it out of all lists, closes its descriptor, and frees it */
void sock_free(struct sock *s);
/* The thread's: closes the descriptor alone, for good */
void sock_shut(struct sock *s);
/* With the lock: the thread will look at it, if it is woken where this says so */
bool sock_look(struct sock *s);
/* Without the lock: the thread frees it */
void sock_drop(struct sock *s);
/* Without the lock */
void service_wake(struct socket_service *sv);

/* ---- socket_loop.c ---- */
void *socket_loop(void *service);
/* It gets a turn */
void sock_ready(struct sock *s);

/* ---- socket_run.c: the thread's ---- */

/* A turn: true: it has more to do at once */
bool sock_run(struct sock *s);
/* The request is over */
void op_end(struct sock *s, struct op *op, int result);
/* The end of all that is under way */
void sock_end_all(struct sock *s, int result);
/* What the lingering close waits for is there, or will not be: is it closed? */
bool sock_linger(struct sock *s, uint64_t now);

/* ---- socket_do.c: the thread's ---- */

#define OP_WAITS	INT32_MAX	/* no result yet: until there is an event */
#define OP_AGAIN	(INT32_MAX - 1)	/* no result yet: its turn is over */

/* One request, as far as it gets now: its result, OP_WAITS, OP_AGAIN. @budget: bytes of the turn */
int op_do(struct sock *s, struct op *op, uint32_t *budget);
/* What a cancelled one leaves behind is undone */
void op_undo(struct sock *s, struct op *op);
/* Is the wish granted? Says so if not. 0; -EACCES; -errno: nobody knows */
int sock_may(struct sock *s, const struct socket_wish *w);

#endif
