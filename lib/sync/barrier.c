// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/rgate_barrier.h>

#include "session_priv.h"
#include "sync_client.h"

struct rgate_barrier {
	struct sync_client client;
};

int rgate_barrier_open(struct rgate_barrier **out, const char *name, uint32_t members,
		       const struct rgate_sync_opts *opts)
{
	struct rgate_barrier *b;
	int err;

	if (!members)
		return -EINVAL;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	err = sync_client_open(&b->client, name, RGATE_REQ_BARRIER_OPEN, members, opts);
	if (err)
		free(b);
	else
		*out = b;
	return err;
}

void rgate_barrier_close(struct rgate_barrier *b)
{
	if (!b)
		return;
	sync_client_close(&b->client, RGATE_REQ_BARRIER_CLOSE);
	free(b);
}

int rgate_barrier_arrive(struct rgate_barrier *b)
{
	struct sync_client *sc = &b->client;
	const struct rgate_request q = { .op = RGATE_REQ_BARRIER_ARRIVE, .handle = sc->handle };

	return sync_client_ask(sc, q, sc->timeout_ms, NULL);
}

/* What is told comes there: -EOWNERDEAD: it is not there, in a child */
static int empty_room(struct sync_client *sc)
{
	if (rgate_session_forked(sc->session))
		return -EOWNERDEAD;
	memset(sc->room, 0, sizeof(struct rgate_barrier_info));
	return 0;
}

int rgate_barrier_wait(struct rgate_barrier *b, int timeout_ms, uint64_t *generation,
		       struct rgate_barrier_info *broken)
{
	struct sync_client *sc = &b->client;
	const struct rgate_request q = {
		.op = RGATE_REQ_BARRIER_WAIT, .handle = sc->handle, .off = SYNC_CLIENT_ROOM,
		.len = sizeof(*broken),
	};
	int err = empty_room(sc);

	if (err)
		return err;
	err = sync_client_ask(sc, q, timeout_ms, generation);
	if (err == -EPIPE && broken)
		memcpy(broken, sc->room, sizeof(*broken));
	return err;
}

int rgate_barrier_meet(struct rgate_barrier *b, int timeout_ms, uint64_t *generation,
		       struct rgate_barrier_info *broken)
{
	struct sync_client *sc = &b->client;
	struct rgate_request q[] = {
		{ .op = RGATE_REQ_BARRIER_ARRIVE, .handle = sc->handle },
		{ .op = RGATE_REQ_BARRIER_WAIT, .handle = sc->handle, .off = SYNC_CLIENT_ROOM,
		  .len = sizeof(*broken) },
	};
	int arrived, err = empty_room(sc);

	if (!err)
		err = sync_client_start(sc, q, 2);
	if (err)
		return err;
	err = sync_client_finish(sc, q[1].cookie, timeout_ms, generation);
	arrived = sync_client_finish(sc, q[0].cookie, sc->timeout_ms, NULL);
	if (err == -EPIPE && broken)
		memcpy(broken, sc->room, sizeof(*broken));
	/* It could not arrive, and so there was nothing to wait for. */
	return err == -ENOLCK && arrived ? arrived : err;
}

int rgate_barrier_info(struct rgate_barrier *b, struct rgate_barrier_info *info)
{
	struct sync_client *sc = &b->client;
	const struct rgate_request q = {
		.op = RGATE_REQ_BARRIER_STATE, .handle = sc->handle, .off = SYNC_CLIENT_ROOM,
		.len = sizeof(*info),
	};
	int err;

	err = sync_client_ask(sc, q, sc->timeout_ms, NULL);
	if (!err)
		memcpy(info, sc->room, sizeof(*info));
	return err;
}
