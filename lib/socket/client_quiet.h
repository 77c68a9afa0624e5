/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What is asked of a socket without waiting, and how it ends is told to nobody: for who has many
 * sockets in one thread. It is carried out behind what was asked of the socket before.
 */
#ifndef RGATE_SOCKET_CLIENT_QUIET_H
#define RGATE_SOCKET_CLIENT_QUIET_H

#include <ringgate/rgate_socket.h>

/*
 * 0; -EAGAIN: as many are under way as can be, each of which tells of its end: nothing
 * was asked; -EPIPE
 * It waits only where others of these have all places.
 */
int socket_setopt_quiet(struct rgate_socket *s, uint32_t option, const void *value, uint32_t len);

/*
 * As rgate_socket_close(), which it is where as many are under way as can be. Nothing that is under
 * way of the socket may have a buffer: the service may write to it for a while yet.
 */
int socket_close_quiet(struct rgate_socket *s);

/* Has such an option found that the gateway of the socket was another one? */
bool socket_is_lost(const struct rgate_socket *s);

/* Are its sockets those of the daemon that it is of, and no gateway's? It waits */
bool sockets_are_here(struct rgate_sockets *set);

/*
 * Waits until all of these are done: the end of the set undoes what is not. -EPIPE; -ETIMEDOUT:
 * sockets_end_by()
 */
int sockets_settle(struct rgate_sockets *set);
/* Are they? */
bool sockets_settled(const struct rgate_sockets *set);

/*
 * For who is about to close it: no call waits for longer than until @ns of CLOCK_MONOTONIC, though
 * who serves stands still, and ends with -ETIMEDOUT. Behind that the set can only be closed.
 */
void sockets_end_by(struct rgate_sockets *set, uint64_t ns);

/*
 * sockets_open_asking - as rgate_sockets_open(), and of the set's calls, this one among them, each
 * that has waited for a moment asks from time to time whether that is enough
 * @enough: how long nothing has come, in ns; true: as sockets_end_by() with the time that it is.
 * NULL: no
 */
int sockets_open_asking(struct rgate_sockets **set, const struct rgate_sockets_opts *opts,
			bool (*enough)(void *ctx, uint64_t ns), void *ctx);

#endif
