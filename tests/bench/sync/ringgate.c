// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Locks and barriers of ringgated; and words that requests add to or swap. An address is the path
 * of the home's socket; or two, the home's and that of another node's daemon: then every other
 * process, the first one too, asks the other node's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "bench.h"
#include "rival.h"
#include "session.h"

#define WORD	2048U
#define LEN	(sizeof(NAME) - 1)

struct one {
	struct rgate_lock *lock;
	struct rgate_barrier *barrier;
	struct rgate_session *home, *session;
	uint32_t handle;
};

/* Of process @i, in @buf */
static const char *path_of(const char *address, unsigned int i, char *buf, size_t cap)
{
	const char *comma = strchr(address, ',');

	if (!comma)
		return address;
	if (i % 2 == 0)
		return comma + 1;
	snprintf(buf, cap, "%.*s", (int)(comma - address), address);
	return buf;
}

static struct one *make(void)
{
	struct one *o = calloc(1, sizeof(*o));

	if (!o)
		bench_die(ENOMEM, "a lock");
	return o;
}

static void nothing(const char *address)
{
	(void)address;
}

static void *join(const char *address, unsigned int i, unsigned int members)
{
	struct rgate_sync_opts opts = {
		.sz = sizeof(opts), .where = RGATE_SESSION_DAEMON, .flags = RGATE_SYNC_AT,
	};
	struct one *o = make();
	char buf[128];
	int err;

	opts.path = path_of(address, i, buf, sizeof(buf));
	err = members ? rgate_barrier_open(&o->barrier, NAME, members, &opts) :
			rgate_lock_open(&o->lock, NAME, &opts);
	if (err)
		bench_die(-err, "%s at %s", members ? "barrier" : "lock", opts.path);
	return o;
}

static void must(int err, const char *what)
{
	if (err)
		bench_die(-err, "%s", what);
}

static void acquire(void *h)
{
	must(rgate_lock_acquire(((struct one *)h)->lock, 0, 30000, NULL), "acquire");
}

static void release(void *h)
{
	must(rgate_lock_release(((struct one *)h)->lock), "release");
}

static void meet(void *h)
{
	struct one *o = h;

	must(rgate_barrier_arrive(o->barrier), "arrive");
	must(rgate_barrier_wait(o->barrier, 30000, NULL, NULL), "wait");
}

static void meet_at_once(void *h)
{
	must(rgate_barrier_meet(((struct one *)h)->barrier, 30000, NULL, NULL), "meet");
}

static void leave(void *h)
{
	struct one *o = h;

	rgate_lock_close(o->lock);
	rgate_barrier_close(o->barrier);
	free(o);
}

const struct rival ringgate_lock = { "ringgate", nothing, join, acquire, release, meet, leave };
const struct rival ringgate_meet = { "meet", nothing, join, NULL, NULL, meet_at_once, leave };

/* ---- By requests ---- */

/* As the library's own calls wait */
static uint64_t ask(struct rgate_session *s, const struct rgate_request *q)
{
	struct rgate_completion c;
	int n, err = rgate_session_submit(s, q);

	while (!err && !(n = rgate_session_poll(s, &c, 1))) {
		err = rgate_session_wait(s, 10000);
		err = err == 1 ? 0 : err ? err : -ETIMEDOUT;
	}
	if (err || c.result)
		bench_die(err ? -err : -c.result, "request %#x", q->op);
	return c.value;
}

/* RELEASE is not waited for: its end is taken with that of the next ACQUIRE. */
static void *join_requests(const char *address, unsigned int i, unsigned int members)
{
	const struct rgate_request open = {
		.op = RGATE_REQ_LOCK_OPEN, .len = sizeof(struct rgate_sync_place),
		.a1 = RGATE_SYNC_OPEN_A1(geteuid(), RGATE_SYNC_CREATE),
	};
	struct rgate_sync_place *place;
	struct one *o = make();
	char buf[128];

	(void)members;
	o->session = bench_session(path_of(address, i, buf, sizeof(buf)), NAME);
	place = rgate_session_memory(o->session, NULL);
	memset(place, 0, sizeof(*place));
	memcpy(place->name, NAME, sizeof(NAME));
	o->handle = (uint32_t)ask(o->session, &open);
	return o;
}

static void submit(struct rgate_session *s, const struct rgate_request *q, unsigned int n)
{
	if (rgate_session_submit_many(s, q, n) != (int)n)
		bench_die(0, "no room for a request");
}

/* Until the one with cookie 1 has ended; others have 0 */
static void take_until(struct rgate_session *s)
{
	struct rgate_completion c;
	int n;

	do {
		while (!(n = rgate_session_poll(s, &c, 1)))
			if (rgate_session_wait(s, 30000) != 1)
				bench_die(0, "nothing ends");
		if (n < 0 || c.result)
			bench_die(n < 0 ? -n : -c.result, "a request");
	} while (!c.cookie);
}

static void acquire_it(void *h)
{
	const struct one *o = h;
	const struct rgate_request q = { .op = RGATE_REQ_LOCK_ACQUIRE, .handle = o->handle,
					 .cookie = 1 };

	submit(o->session, &q, 1);
	take_until(o->session);
}

static void release_it(void *h)
{
	const struct one *o = h;
	const struct rgate_request q = { .op = RGATE_REQ_LOCK_RELEASE, .handle = o->handle };

	submit(o->session, &q, 1);
}

/* ---- A word in exported memory ---- */

static void *join_word(const char *address, unsigned int i, unsigned int members)
{
	const struct rgate_request export = {
		.op = RGATE_REQ_MEMORY_EXPORT, .off = WORD, .len = 64,
		.a1 = RGATE_MEMORY_EXPORT_A1(RGATE_MEMORY_MODE(RGATE_MEMORY_RIGHTS, 0), LEN),
	};
	const struct rgate_request open = {
		.op = RGATE_REQ_MEMORY_OPEN, .len = LEN, .a0 = 0,
		.a1 = RGATE_MEMORY_OPEN_A1(geteuid(), RGATE_MEMORY_ATOMIC | RGATE_MEMORY_WRITE),
	};
	struct one *o = make();
	char buf[128];

	(void)members;
	if (i)
		bench_die(0, "a word is for one process");
	o->home = bench_session(path_of(address, 1, buf, sizeof(buf)), NAME);
	o->session = bench_session(path_of(address, 0, buf, sizeof(buf)), NAME);
	(void)ask(o->home, &export);
	o->handle = RGATE_MEMORY_HANDLE(ask(o->session, &open));
	return o;
}

static void add(void *h)
{
	const struct one *o = h;
	const struct rgate_request q = { .op = RGATE_REQ_MEMORY_FETCH_ADD, .handle = o->handle,
					 .a1 = 1 };

	(void)ask(o->session, &q);
}

static void stays(void *h)
{
	(void)h;
}

static void put(const struct one *o, uint64_t value)
{
	memcpy((char *)rgate_session_memory(o->session, NULL) + WORD, &value, sizeof(value));
}

static void swap(void *h)
{
	const struct one *o = h;
	const struct rgate_request q = {
		.op = RGATE_REQ_MEMORY_CMP_SWAP, .handle = o->handle, .off = WORD, .len = 8,
	};

	put(o, 1);
	if (ask(o->session, &q))
		bench_die(0, "the word is not 0");
}

static void unswap(void *h)
{
	const struct one *o = h;
	const struct rgate_request q = {
		.op = RGATE_REQ_MEMORY_WRITE, .handle = o->handle, .off = WORD, .len = 8,
	};

	put(o, 0);
	(void)ask(o->session, &q);
}

static void leave_word(void *h)
{
	struct one *o = h;

	rgate_session_close(o->session);
	rgate_session_close(o->home);
	free(o);
}

const struct rival ringgate_requests = { "requests", nothing, join_requests, acquire_it, release_it,
					 NULL, leave_word };
const struct rival ringgate_add = { "fetch-add", nothing, join_word, add, stays, NULL, leave_word };
const struct rival ringgate_swap = { "cas-write", nothing, join_word, swap, unswap, NULL,
				     leave_word };
