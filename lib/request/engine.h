/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The engine: serves the requests of any number of sessions, by a table of services.
 *
 * A session's side here is a seat. Seats belong to users, by uid; users have turns, their
 * seats have turns within the user's, and there urgent requests go before normal ones and these
 * before bulk, which keep a share. All of it, and all functions of services, run in one thread:
 * the engine's own, or the caller's (RGATE_ENGINE_LOOP). A service that has something to wait
 * for gives the request back later, from any thread, by rgate_req_end().
 *
 * What a client writes is copied once, then checked. The engine trusts its own numbers alone,
 * so a client can harm its own session only. The memory that requests name is the client's
 * all the time: services, too, copy what they decide by.
 */
#ifndef RGATE_REQUEST_ENGINE_H
#define RGATE_REQUEST_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <ringgate/request.h>
#include <ringgate/rgate.h>
#include <ringgate/rgate_spin.h>

#include "wire.h"

struct rgate_engine;
struct rgate_seat;
struct rgate_req;

/* ---- Services ---- */

/* What begin() returns when rgate_req_end() will be called later; no errno, no result */
#define RGATE_REQ_LATER	INT32_MIN

/* rgate_req_op.uses: other fields of the request have to be 0, or it ends with -EINVAL */
#define RGATE_USES_A0		(1U << 0)
#define RGATE_USES_A1		(1U << 1)
#define RGATE_USES_MEM		(1U << 2)	/* mem, off, len: checked before begin() */
#define RGATE_USES_HANDLE	(1U << 3)	/* rgate_req_object() gives what it is */
/*
 * begin() takes no longer than a function call, returns the result, and calls nothing of this
 * file but rgate_req_get() and rgate_req_set_value(): many are answered in one go.
 */
#define RGATE_USES_NO_TIME	(1U << 4)
/* Can have RGATE_REQ_MULTI: rgate_req_shots(). a1 is the engine's then, whatever it is else */
#define RGATE_USES_MULTI	(1U << 5)
/*
 * It is the end of its handle. Where there is no memory for it, also where begin() says so, the
 * handle is dropped as at the end of the session, and that is its end: who gives back is not
 * refused.
 */
#define RGATE_USES_ENDS	(1U << 6)

/* One operation. @begin NULL: there is none of this number. */
struct rgate_req_op {
	const char *name;
	uint32_t uses;		/* RGATE_USES_* */
	/*
	 * begin - starts it; engine's thread, no lock held; should not wait
	 * @r: until it ends
	 * Returns the result, 0 or more, or -errno, after rgate_req_set_value() if it has a
	 * value; or RGATE_REQ_LATER: somebody calls rgate_req_end(), maybe already has.
	 */
	int (*begin)(struct rgate_req *r, void *ctx);
	/*
	 * cancel - the client, a deadline or the end of the session wants it to end
	 * Engine's thread, once a request, after begin() returned RGATE_REQ_LATER; may come
	 * after rgate_req_end() was called by another thread. NULL: cannot be.
	 * Returns 0: rgate_req_end() was called, or will be soon, and its result is of no
	 * account; -EALREADY: too late, it ends by itself.
	 */
	int (*cancel)(struct rgate_req *r, void *ctx);
	/*
	 * over - rgate_req_end() was called, and its completion comes next
	 * Engine's thread, once for each RGATE_REQ_LATER: what only that thread can take back of a
	 * request is gone when the client hears of its end. NULL: there is nothing of that kind.
	 */
	void (*over)(struct rgate_req *r, void *ctx);
};

struct rgate_req_service {
	uint32_t number;	/* below RGATE_REQ_SERVICES */
	uint32_t nops;		/* at most RGATE_REQ_OPS */
	const char *name;
	const struct rgate_req_op *ops;	/* [nops], by their number */
	/* A handle's session is over, and so are all its requests. Engine's thread. NULL: no
	 * handles. @object: as given to rgate_seat_handle() */
	void (*drop)(void *object, void *ctx);
	/*
	 * tick - once a turn, after what was begun in it; engine's thread, should not wait
	 * @now: CLOCK_MONOTONIC
	 * Returns when it has something to do at the latest; UINT64_MAX: as soon as it is asked
	 * for something. NULL: it has no clock of its own
	 */
	uint64_t (*tick)(void *ctx, uint64_t now);
	/* The node that carries out its requests; engine's thread. NULL: the engine's own */
	uint32_t (*node)(void *ctx);
};

/* ---- Users ---- */

/* What a user, by uid, may have at once. 0: no limit */
struct rgate_limits {
	uint32_t sessions;
	/* Completions of what is under way; more wait in their rings, or are refused if they are
	 * those of one request */
	uint32_t requests;
	uint32_t handles;
	uint32_t classes;	/* bit N: enum rgate_req_class; 0: all */
	uint64_t memory;	/* bytes of all sessions' memory and areas */
	uint64_t ops[RGATE_REQ_SERVICES]; /* bit N: operation N of that service */
};

/* All operations, no limits */
void rgate_limits_init(struct rgate_limits *limits);

/* ---- The engine ---- */

enum rgate_engine_flags {
	RGATE_ENGINE_LOOP	= 1U << 0,	/* no thread: the caller's loop serves */
};

struct rgate_engine_opts {
	size_t sz;
	uint32_t flags;		/* RGATE_ENGINE_* */
	uint32_t spin_us;	/* polls a quiet seat so long at most, see rgate_spin.h */
	/*
	 * log - RGATE_REQ_LOG_WRITE; engine's thread, should not wait
	 * @text: the engine's copy, @len bytes of any value, 1 to RGATE_ENGINE_LINE
	 * Returns the request's result. NULL: the line is one of the library's log.
	 */
	int (*log)(void *ctx, uid_t uid, const char *text, size_t len);
	void *log_ctx;
	uint32_t node;		/* 1 + the node that this is; 0: none of a cluster */
	uint32_t reserved;
};

#define RGATE_ENGINE_LINE	256U	/* bytes of a line for the log */

/*
 * rgate_engine_create - with the services 0 and 1, and no seat
 * Its thread blocks all signals. -EINVAL; -EMFILE; -ENOMEM; -EAGAIN as pthread_create(3)
 */
int rgate_engine_create(struct rgate_engine **engine, const struct rgate_engine_opts *opts);

/*
 * rgate_engine_destroy - removes the seats, and waits until the last request is over
 * So services must give back, within bounded time, what they are told to cancel. NULL is
 * allowed. Not from a service's function, nor while others call something of @engine.
 */
void rgate_engine_destroy(struct rgate_engine *engine);

/*
 * rgate_engine_add - @service is there from now on
 * @service: stays the caller's, who must keep it, and @ctx, until rgate_engine_destroy()
 * Only before the first seat. -EEXIST; -EINVAL: numbers, or no name; -EBUSY: there are seats
 */
int rgate_engine_add(struct rgate_engine *engine, const struct rgate_req_service *service,
		     void *ctx);

/* RGATE_ENGINE_LOOP: what to wait for until readable, by poll(2) or epoll(7); stays @engine's */
int rgate_engine_fd(const struct rgate_engine *engine);

/*
 * rgate_engine_turn - RGATE_ENGINE_LOOP: serves everybody once; one thread, always the same
 * Returns when to be called again at the latest, in ns: 0: at once, there is more, or seats
 * are still polled; -1: when rgate_engine_fd() is readable.
 */
int64_t rgate_engine_turn(struct rgate_engine *engine);

struct rgate_engine_stats {
	size_t sz;
	uint64_t seats;		/* now */
	uint64_t users;
	uint64_t under_way;
	uint64_t handles;
	uint64_t memory;	/* bytes, of all users */
	uint64_t accepted;	/* requests, so far */
	uint64_t refused;	/* of these, by a check */
	uint64_t completions;
	uint64_t cancelled;
	uint64_t timed_out;
	uint64_t wakeups;	/* of clients that slept */
	uint64_t sleeps;	/* of the engine */
};

/* Any thread; @stats->sz is set by the caller. -EINVAL */
int rgate_engine_stats(struct rgate_engine *engine, struct rgate_engine_stats *stats);

/* Of a user, since he has had a seat without a pause */
struct rgate_user_stats {
	size_t sz;
	uint64_t seats;		/* now */
	uint64_t under_way;
	uint64_t handles;
	uint64_t memory;	/* bytes */
	uint64_t accepted;	/* requests, so far */
	uint64_t refused;	/* of these, by a check */
	uint64_t completions;
	uid_t uid;
	uint32_t reserved;
};

/*
 * rgate_engine_user - of the @i-th of those who have seats, in no particular order
 * -ENOENT: there are not so many. Otherwise as rgate_engine_stats().
 */
int rgate_engine_user(struct rgate_engine *engine, unsigned int i,
		      struct rgate_user_stats *stats);

/*
 * rgate_engine_limits - what the user may have from now on
 * What he has beyond them already, he keeps; requests that were begun go on. -ENOENT: he has
 * no seat. Any thread.
 */
int rgate_engine_limits(struct rgate_engine *engine, uid_t uid,
			const struct rgate_limits *limits);

/* ---- Seats ---- */

struct rgate_seat_opts {
	size_t sz;
	uid_t uid;
	uint32_t requests;	/* places; powers of two, as in <ringgate/request.h> */
	uint32_t completions;
	uint64_t memory;	/* bytes, whole pages; 0: none */
	/*
	 * Memory that the caller provides: mapped here at @mem_addr until @over is called, and
	 * @mem_fd, @mem_off to map it by, which stay the caller's. NULL: a memfd is made.
	 */
	void *mem_addr;
	int mem_fd;
	uint64_t mem_off;
	const struct rgate_limits *limits; /* of the user from now on; NULL: all is allowed */
	/* The last request of a removed seat is over, nothing of it is used any more.
	 * Engine's thread. NULL: nobody wants to know */
	void (*over)(void *ctx);
	void *ctx;
	bool modest;		/* @limits are the user's only where no other seat of his set any:
				 * who comes by another way takes nothing from those here */
};

/*
 * rgate_seat_add - a session for a client
 * @welcome: out: what the client has to know; fields that are not about the seat are 0
 * @fds: out, for the client; the caller's to send and close. RGATE_FD_MEMORY: -1 where there is
 *	none, or @mem_fd, which stays as it is
 * -EINVAL: places, memory; -EDQUOT: over the user's limits; -EMFILE; -ENOMEM. Any thread.
 */
int rgate_seat_add(struct rgate_engine *engine, const struct rgate_seat_opts *opts,
		   struct rgate_seat **seat, struct rgate_welcome *welcome, int fds[RGATE_FDS]);

/*
 * rgate_seat_remove - the client is gone: all of its requests are cancelled
 * @seat: not to be used any more; over() tells when nothing does. Any thread.
 */
void rgate_seat_remove(struct rgate_seat *seat);

uid_t rgate_seat_uid(const struct rgate_seat *seat);

/*
 * rgate_seat_memory - @len bytes at @off of the session's memory, as rgate_req_mem() has them
 * For a request that names a second part of it. Engine's thread, while one of the seat's requests
 * is under way or it has a handle. NULL: not inside of it, or no bytes
 */
void *rgate_seat_memory(const struct rgate_seat *seat, uint64_t off, uint64_t len);

/* ---- Requests, for services ---- */

/* What the client asked; the engine's copy, and checked. Valid until it ends. */
const struct rgate_request *rgate_req_get(const struct rgate_req *r);
struct rgate_seat *rgate_req_seat(const struct rgate_req *r);

/*
 * The len bytes that it names; NULL if it named none. The client may write them at any time,
 * so what is decided by is copied first. Mapped until the request ends.
 */
void *rgate_req_mem(const struct rgate_req *r);

/* A word for the service, NULL at first */
void rgate_req_set_data(struct rgate_req *r, void *data);
void *rgate_req_data(const struct rgate_req *r);

/* The completion's value, 0 at first. Before begin() returns, in the engine's thread */
void rgate_req_set_value(struct rgate_req *r, uint64_t value);
/* What it is so far */
uint64_t rgate_req_value(const struct rgate_req *r);

/*
 * rgate_req_end - it is over; @r is not to be used any more
 * @result: 0 or more, or -errno
 * Whatever was written to the client's memory before is visible to it with the completion.
 * Any thread; once for each RGATE_REQ_LATER.
 */
void rgate_req_end(struct rgate_req *r, int result, uint64_t value);

/*
 * rgate_req_shots - how often rgate_req_more() may be called; 0: it has not RGATE_REQ_MULTI
 * Does not change while the request is under way.
 */
uint32_t rgate_req_shots(const struct rgate_req *r);

/*
 * rgate_req_more - a completion of a request that goes on, with RGATE_COMP_MORE
 * Returns how many more there may be; 0: that was the last one, and rgate_req_end() with -ENOBUFS
 * is due. All of them come before that, also if it is cancelled meanwhile. From begin() on, which
 * then returns RGATE_REQ_LATER; any thread, but one at a time for a request.
 */
uint32_t rgate_req_more(struct rgate_req *r, int result, uint64_t value);

/* ---- Handles: objects of a service that outlive a request. Engine's thread only ---- */

/* A new one for the seat; it counts against the user. Never 0. -EDQUOT; -ENOMEM */
int rgate_seat_handle(struct rgate_seat *seat, uint32_t service, void *object,
		      uint32_t *handle);
/* The object; NULL: the seat has no such handle, or it is another service's */
void *rgate_seat_object(const struct rgate_seat *seat, uint32_t service, uint32_t handle);
/* Takes it away without drop(); the object, or NULL as above */
void *rgate_seat_release(struct rgate_seat *seat, uint32_t service, uint32_t handle);
/* Of the request, with RGATE_USES_HANDLE: as rgate_seat_object() of its own service */
void *rgate_req_object(const struct rgate_req *r);

#endif
