/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the engine's files share. Unless said otherwise a field belongs to the engine's thread.
 *
 * A seat is in one of these states:
 *	hot	looked at in every turn
 *	parked	nothing to do: `need` is set, and the client's eventfd makes it hot
 *	blocked	its next request has to wait for one that is under way; the end of that makes
 *		it hot
 */
#ifndef RGATE_REQUEST_ENGINE_PRIV_H
#define RGATE_REQUEST_ENGINE_PRIV_H

#include <pthread.h>

#include "area.h"
#include "engine.h"
#include "events.h"
#include "heap.h"
#include "index.h"
#include "list.h"
#include "spin.h"

struct service {
	const struct rgate_req_service *s;	/* NULL: there is none */
	void *ctx;
	uint64_t ops;			/* bit N: there is operation N */
	uint64_t multi;			/* likewise, and it can have RGATE_REQ_MULTI */
};

/* What a request with RGATE_REQ_MULTI has besides. Shots are its completions but the last one. */
struct multi {
	uint32_t shots;
	uint32_t told;		/* end_lock: by rgate_req_more() */
	bool listed;		/* end_lock: the request is among rgate_engine.ended */
	bool over;		/* end_lock: rgate_req_end() was called */
	uint32_t posted;
	struct {
		uint64_t value;
		int result;
	} shot[];
};

enum req_state {
	REQ_WAITS,		/* for its predecessor in a chain */
	REQ_READY,		/* on the engine's list, to be begun next */
	REQ_BEGUN,
};

struct rgate_req {
	union {
		struct rgate_request q;
		uint64_t words[sizeof(struct rgate_request) / sizeof(uint64_t)];
	};
	struct rgate_seat *seat;
	const struct rgate_req_op *op;	/* NULL: refused with `result` when its turn comes */
	void *ctx;			/* of the service */
	void *data;
	uint64_t value;
	int result;
	int why;		/* not 0: the result, whatever the service says */
	enum req_state state;
	bool tracked;		/* in the seat's list and among the cookies */
	bool asked;		/* cancel() was called */
	uint32_t places;	/* for completions, that are reserved */
	struct multi *multi;	/* NULL: it has one completion */
	struct rgate_req *prev, *next;	/* in its chain, while both are under way */
	struct rgate_req *queue;	/* free, ready, or ended and not seen yet */
	struct link of_seat;
	struct index_node of_cookie;
	struct heap_node timer;	/* of its deadline, CLOCK_MONOTONIC, ns */
};

/* What becomes of a request that follows one with LINK */
enum chain {
	CHAIN_NONE,		/* it follows none */
	CHAIN_RUNS,		/* waits for seat->tail */
	CHAIN_GOES_ON,		/* that has succeeded */
	CHAIN_BROKEN,		/* that has failed */
};

struct handle {
	void *object;		/* NULL: free */
	uint32_t service;
	uint32_t generation;	/* of the number */
};

struct user {
	uid_t uid;
	struct link of_engine;		/* the engine's lock */
	uint32_t sessions;		/* likewise */
	uint64_t memory;		/* likewise */
	struct rgate_limits limits;
	struct rgate_limits later;	/* the engine's lock: become `limits`, if `changed` */
	bool changed;
	bool limited;			/* a seat has set `limits` */
	uint64_t reserved;		/* places of what is under way */
	/* one writer, the thread; relaxed */
	uint64_t under_way, handles, accepted, refused, completions;
	struct link active;		/* of those with hot seats */
	struct link hot;		/* seats */
	struct link blocked;		/* seats, by the user's limit */
	unsigned int nhot;
};

struct rgate_seat {
	struct rgate_engine *engine;
	struct user *user;
	struct rgate_area area;
	struct link of_engine;
	struct link turn;		/* user's hot or blocked ones, or in none */
	bool hot, blocked, parked;
	bool leaving;
	uint32_t owner;

	uint64_t taken;			/* requests copied */
	uint64_t posted;		/* completions published */
	uint64_t returned;		/* of these, places given back; whole batches */
	uint32_t under_way;		/* accepted and not over */
	uint32_t reserved;		/* places for their completions to come */
	struct rgate_req now;		/* copied, and not accepted yet; or answered as it is */
	bool have_head;
	struct rgate_req *drain;	/* the one under way */
	struct rgate_req *tail;		/* CHAIN_RUNS: the chain's last one so far */
	enum chain chain;
	struct link reqs;		/* under way and tracked */

	struct rgate_seat *dirty_next;
	bool dirty;			/* completions were published in this turn */
	uint64_t woken;			/* the want that was woken for */
	struct rgate_spin spin;
	uint64_t quiet;			/* since when there is nothing to do; 0: there is */

	int kick_fd;			/* the client's eventfd: it writes */
	int wake_fd;			/* the engine's: nobody else has it */
	void *mem;
	uint64_t mem_len;
	bool own_mem;
	struct handle *handles;
	uint32_t nhandles;
	uint32_t free_handle;		/* no free one is before it */
	void (*over)(void *ctx);
	void *ctx;
	struct rgate_limits limits;	/* for the user, when the seat is taken */
	bool modest;			/* sets them only where no other seat has */
	struct link to_add, to_remove;	/* the engine's lock */
};

#define CHUNK	64U
struct req_chunk {
	struct req_chunk *next;
	struct rgate_req req[CHUNK];
};

struct rgate_engine {
	uint32_t flags, spin_us, node;
	int (*log)(void *ctx, uid_t uid, const char *text, size_t len);
	void *log_ctx;
	struct service service[RGATE_REQ_SERVICES];
	pthread_t thread;
	struct events ev;
	uint32_t asleep;		/* atomic: who brings something wakes it */
	uint32_t stop;			/* atomic */

	struct link active;		/* users */
	struct link seats;
	struct rgate_seat *dirty;
	struct rgate_req *ready_first, **ready_last;
	struct rgate_req *free;
	struct req_chunk *chunks;
	struct index cookies;
	uint64_t secret[2];
	struct heap timers;
	uint64_t tick_at;		/* a service wants to be called then */
	uint32_t ticks;			/* atomic: bit N: service N has a clock */
	bool dying;			/* a seat is over, and waits for its burial */
	uint64_t now;			/* as of this turn */
	unsigned int turns;

	pthread_mutex_t end_lock;
	struct rgate_req *ended;	/* end_lock, atomic: by rgate_req_end(), newest first */
	pthread_mutex_t lock;
	struct link users;		/* lock */
	struct link add, remove;	/* lock: seats, by to_add and to_remove */
	uint32_t commands;		/* atomic: there are some */
	uint32_t nseats;		/* lock: added, and not buried */
	uint32_t next_owner;		/* lock */

	struct rgate_engine_stats stats;	/* one writer, the thread; relaxed */
};

static inline void count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* engine.c */
void engine_wake(struct rgate_engine *e);

/* engine_seat.c */
void seat_hot(struct rgate_seat *s);
void seat_wake(struct rgate_seat *s);
void seat_cool(struct rgate_seat *s);	/* from its list */
void seat_kicked(struct rgate_seat *s);
void seat_commands(struct rgate_engine *e);
void seat_bury(struct rgate_engine *e);
void seat_remove_all(struct rgate_engine *e);
void seat_unblock_all(struct user *u);

/* engine_take.c: */
enum taken {
	TAKE_EMPTY,		/* nothing there */
	TAKE_FULL,		/* no place for a completion */
	TAKE_BLOCKED,		/* until something under way is over */
	TAKE_MORE,		/* or of a class whose turn it is not */
};

/* Accepts requests that make up @most of a turn, the last maybe more: the first of class rank
 * @rank, others of that or a better one; how much they make up, and why no more
 */
unsigned int seat_take(struct rgate_seat *s, unsigned int rank, unsigned int most,
		       enum taken *why);
/* Sets `need`, then looks once more; true: it can sleep */
bool seat_park(struct rgate_seat *s, enum taken why);

/* What is copied and looked through takes time, too: so many bytes as much as one request */
#define COST_BYTES	16384U

/* Completions that it may have, as the client says: not checked yet */
static inline unsigned int req_places(const struct rgate_request *q)
{
	if (!(q->flags & RGATE_REQ_MULTI))
		return 1;
	return q->a1 < RGATE_REQ_PLACES_MAX ? (unsigned int)q->a1 : RGATE_REQ_PLACES_MAX;
}

static inline unsigned int req_cost(const struct rgate_request *q)
{
	return req_places(q) + q->len / COST_BYTES;
}

/* engine_run.c */
int req_init(struct rgate_engine *e);
struct rgate_req *req_alloc(struct rgate_engine *e);
/* RGATE_USES_ENDS, without memory: its result */
int req_drop(const struct rgate_req *r);
void req_begin(struct rgate_req *r);
void req_wait(struct rgate_req *r);	/* for its predecessor */
int req_cancel(struct rgate_req *r, int why);
struct rgate_req *req_find(struct rgate_seat *s, uint64_t cookie);
bool req_run_ready(struct rgate_engine *e);	/* true: more are ready */
void req_reap(struct rgate_engine *e);		/* what services have brought */
void req_bring(struct rgate_req *r);		/* with end_lock: it will be looked at */
void req_free_all(struct rgate_engine *e);
void seat_post(struct rgate_seat *s, uint64_t cookie, int result, uint32_t flags, uint64_t value);
void seat_posted(struct rgate_seat *s, uint64_t n);	/* so many were published */

/*
 * All of the completion at @pos but its lap. There is a place for it: place() in engine_take.c.
 * The cookie after the result, with release: who reads both at once need not read again.
 */
static inline void seat_write(struct rgate_seat *s, uint64_t pos, uint64_t cookie, int result,
			      uint32_t flags, uint64_t value)
{
	struct rgate_completion *c = &s->area.completions[pos & s->area.comp_mask];

	__atomic_store_n(&c->result, result, __ATOMIC_RELAXED);
	__atomic_store_n(&c->flags, flags, __ATOMIC_RELAXED);
	__atomic_store_n(&c->cookie, cookie, __ATOMIC_RELEASE);
	__atomic_store_n(&c->value, value, __ATOMIC_RELAXED);
}

/* That one is there, and those behind it which have their lap already */
static inline void seat_publish(struct rgate_seat *s, uint64_t pos)
{
	struct rgate_completion *c = &s->area.completions[pos & s->area.comp_mask];

	__atomic_store_n(&c->seq, rgate_area_comp_lap(&s->area, pos), __ATOMIC_RELEASE);
}

/* @s cannot use what came free of the user's limit: the next one may */
void seat_pass_on(struct rgate_seat *s);

/* engine_multi.c */
/* -ENOMEM; the request's, which frees it */
int multi_new(struct rgate_req *r);
/* Posts what was told; true: rgate_req_end() was called */
bool multi_reap(struct rgate_req *r);

/* engine_timer.c */
int timer_add(struct rgate_engine *e, struct rgate_req *r);
void timer_del(struct rgate_engine *e, struct rgate_req *r);
void timer_expire(struct rgate_engine *e);
void timer_tick(struct rgate_engine *e);
uint64_t timer_next(const struct rgate_engine *e);

/* engine_handle.c */
/* The service drops what it is. 0; -EBADF */
int handle_drop(struct rgate_seat *s, uint32_t service, uint32_t handle);
void handles_drop(struct rgate_seat *s);

/* service_core.c, service_log.c */
extern const struct rgate_req_service rgate_service_core, rgate_service_log;

#endif
