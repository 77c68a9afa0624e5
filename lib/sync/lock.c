// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/rgate_lock.h>

#include "clock.h"
#include "session_priv.h"
#include "sync_client.h"
#include "sync_table.h"

#define LIST_MOST	(16 * TABLE_CLAIMS)	/* some come and go meanwhile */

struct rgate_lock {
	struct sync_client client;
};

int rgate_lock_open(struct rgate_lock **out, const char *name, const struct rgate_sync_opts *opts)
{
	struct rgate_lock *lock = calloc(1, sizeof(*lock));
	int err;

	if (!lock)
		return -ENOMEM;
	err = sync_client_open(&lock->client, name, RGATE_REQ_LOCK_OPEN, 0, opts);
	if (err)
		free(lock);
	else
		*out = lock;
	return err;
}

void rgate_lock_close(struct rgate_lock *lock)
{
	if (!lock)
		return;
	sync_client_close(&lock->client, RGATE_REQ_LOCK_CLOSE);
	free(lock);
}

int rgate_lock_acquire(struct rgate_lock *lock, uint32_t flags, int timeout_ms, uint64_t *token)
{
	struct sync_client *sc = &lock->client;
	struct rgate_request q = { .op = RGATE_REQ_LOCK_ACQUIRE, .a0 = flags };
	int err;

	q.handle = sc->handle;
	err = sc->handle ? sync_client_ask(sc, q, timeout_ms, token) : -ESTALE;
	if (err != -ESTALE)
		return err;
	err = sync_client_again(sc, RGATE_REQ_LOCK_CLOSE);
	if (err)
		return err == -EINTR || err == -EPIPE ? err : -ECONNRESET;
	q.handle = sc->handle;
	err = sync_client_ask(sc, q, timeout_ms, token);
	return err == -ESTALE ? -ECONNRESET : err;
}

int rgate_lock_release(struct rgate_lock *lock)
{
	struct sync_client *sc = &lock->client;
	const struct rgate_request q = { .op = RGATE_REQ_LOCK_RELEASE, .handle = sc->handle };

	if (!sc->handle)
		return -ENOLCK;
	/* At the end of the lease at the latest */
	return sync_client_ask(sc, q, SYNC_CLIENT_SURE, NULL);
}

/* A child has neither the lock nor its place. */
uint64_t rgate_lock_until(const struct rgate_lock *lock)
{
	if (rgate_session_forked(lock->client.session))
		return 0;
	return __atomic_load_n(&lock->client.place->lease_ns, __ATOMIC_ACQUIRE);
}

bool rgate_lock_valid(const struct rgate_lock *lock)
{
	const uint64_t until = rgate_lock_until(lock);

	return until && rgate_clock_now(CLOCK_BOOTTIME) < until;
}

uint64_t rgate_lock_token(const struct rgate_lock *lock)
{
	if (rgate_session_forked(lock->client.session))
		return 0;
	return __atomic_load_n(&lock->client.place->value, __ATOMIC_RELAXED);
}

int rgate_lock_info(struct rgate_lock *lock, struct rgate_lock_info *info)
{
	struct sync_client *sc = &lock->client;
	const struct rgate_request q = {
		.op = RGATE_REQ_LOCK_STATE, .handle = sc->handle, .off = SYNC_CLIENT_ROOM,
		.len = sizeof(*info),
	};
	int err;

	if (!sc->handle)
		return -ESTALE;
	err = sync_client_ask(sc, q, sc->timeout_ms, NULL);
	if (!err)
		memcpy(info, sc->room, sizeof(*info));
	return err;
}

int rgate_lock_list(const struct rgate_sync_opts *opts,
		    int (*each)(void *ctx, const struct rgate_lock_info *info), void *ctx)
{
	struct rgate_request q = { .op = RGATE_REQ_LOCK_LIST, .off = SYNC_CLIENT_ROOM };
	struct rgate_lock_info info;
	struct sync_client sc;
	uint64_t next = 0;
	unsigned int n = 0;
	int ret;

	ret = sync_client_connect(&sc, opts);
	if (ret)
		return ret;
	q.a0 = sc.open.a0;
	q.len = sizeof(info);
	do {
		q.a1 = next;
		ret = sync_client_ask(&sc, q, sc.timeout_ms, &next);
		if (ret != 1)
			break;
		memcpy(&info, sc.room, sizeof(info));
		/* Another node's words: names are printed, and it has to come to an end. */
		ret = sync_name_ok(info.name) && next > q.a1 && n++ < LIST_MOST ?
		      each(ctx, &info) : -EPROTO;
	} while (!ret);
	rgate_session_close(sc.session);
	return ret;
}
