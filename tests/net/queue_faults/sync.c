// SPDX-License-Identifier: MIT OR GPL-2.0
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <ringgate/rgate_barrier.h>
#include <ringgate/rgate_lock.h>
#include <ringgate/rgate_session.h>

#define MEMBERS	3U

static struct rgate_sync_opts at(const struct client *c)
{
	return (struct rgate_sync_opts){
		.sz = sizeof(struct rgate_sync_opts), .path = c->path,
		.where = RGATE_SESSION_DAEMON, .flags = RGATE_SYNC_AT, .home = c->home,
		.timeout_ms = 5000,
	};
}

/* ---- Locks ---- */

static struct rgate_lock *lock_opened(const struct client *c)
{
	const struct rgate_sync_opts opts = at(c);
	struct rgate_lock *l = NULL;
	int err;

	do {
		err = rgate_lock_open(&l, c->name, &opts);
		note('O', "%d", err);
	} while (again(err));
	return err ? NULL : l;
}

/* As long as it likes, or the lock is its own: a line for each time that it was seen to be */
static void hold(const struct rgate_lock *l)
{
	unsigned int i, n = (unsigned int)some(20);

	for (i = 0; i < n && !told; i++) {
		const uint64_t before = now_ns();

		if (!rgate_lock_valid(l))
			break;
		note('V', "%" PRIu64, before);
		nap_ms(some(some(4) ? 10 : 500));
	}
}

static int use(struct rgate_lock *l)
{
	const bool shared = !some(4);
	uint64_t token = 0;
	int err;

	note('I', "acquire %d", shared);
	err = rgate_lock_acquire(l, shared ? RGATE_LOCK_SHARED : 0, (int)some(5000), &token);
	note('R', "%d %" PRIu64, err, token);
	if (err)
		return err;
	hold(l);
	note('I', "unlock %" PRIu64, token);
	err = rgate_lock_release(l);
	note('R', "%d", err);
	return err;
}

int locker(const struct client *c)
{
	struct rgate_lock *l = lock_opened(c);

	while (l && !told) {
		const int err = use(l);

		if (err == -EPIPE || err == -EOWNERDEAD || err == -ESTALE || !some(50)) {
			rgate_lock_close(l);
			l = lock_opened(c);
		}
		nap_ms(some(20));
	}
	rgate_lock_close(l);
	return 0;
}

/* ---- Barriers ---- */

static struct rgate_barrier *barrier_opened(const struct client *c)
{
	const struct rgate_sync_opts opts = at(c);
	struct rgate_barrier *b = NULL;
	int err;

	do {
		err = rgate_barrier_open(&b, c->name, MEMBERS, &opts);
		note('O', "%d", err);
	} while (again(err));
	return err ? NULL : b;
}

static int meet(struct rgate_barrier *b)
{
	uint64_t generation = 0;
	int err;

	note('I', "arrive");
	err = rgate_barrier_arrive(b);
	note('R', "%d", err);
	if (err)
		return err;
	note('I', "meet");
	do {
		err = rgate_barrier_wait(b, 500, &generation, NULL);
	} while (err == -ETIMEDOUT && !told);
	note('R', "%d %" PRIu64, err, generation);
	return err;
}

int member(const struct client *c)
{
	struct rgate_barrier *b = barrier_opened(c);

	while (b && !told) {
		if (meet(b)) {
			rgate_barrier_close(b);
			nap_ms(some(100));
			b = barrier_opened(c);
		}
		nap_ms(some(30));
	}
	rgate_barrier_close(b);
	return 0;
}
