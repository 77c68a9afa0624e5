/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A request of a client that goes on while its caller does other things, also by the same client;
 * and a descriptor that is readable when its end may be there.
 *
 * Between two calls of the client one of both is true: the session is armed, so that its descriptor
 * becomes readable when a completion comes; or the bell rings. sync_later_take() that finds nothing
 * leaves the former. Without a request neither does, and nothing is readable.
 */
#ifndef RGATE_SYNC_LATER_H
#define RGATE_SYNC_LATER_H

#include "sync_client.h"

/* Whose sync_client_start() was, and is not to be finished, from now on. One at a time */
void sync_later_begin(struct sync_client *sc, uint64_t cookie);
static inline bool sync_later_has(const struct sync_client *sc)
{
	return sc->later.cookie;
}

/* Its result, as sync_client_finish(); -EINPROGRESS: it is under way */
int sync_later_take(struct sync_client *sc, uint64_t *value);
/* Cancels it. 0: it has done nothing; 1: it has ended before that, take tells; or as take */
int sync_later_quit(struct sync_client *sc);

/* The client's, until its end; -errno */
int sync_later_fd(struct sync_client *sc);
/* The client ends: before its session does */
void sync_later_close(struct sync_client *sc);

/* For the client: is that its completion? After one has waited for others, and slept */
bool sync_later_keep(struct sync_client *sc, const struct rgate_completion *c);
void sync_later_settle(struct sync_client *sc);

#endif
