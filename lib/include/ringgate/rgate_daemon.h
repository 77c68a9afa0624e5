/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Talking to ringgated on this machine, over its UNIX socket. Thread-safe.
 */
#ifndef RINGGATE_RGATE_DAEMON_H
#define RINGGATE_RGATE_DAEMON_H

#include <ringgate/rgate_ring.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RGATE_DAEMON_SOCKET	"/run/ringgate/ringgated.sock"
#define RGATE_DAEMON_ANSWER	131072	/* bytes of an answer at most */

/*
 * rgate_daemon_call - one request and its answer, both text (ringgated(8) lists them)
 * @path: NULL: environment RINGGATED_SOCKET, else RGATE_DAEMON_SOCKET
 * @answer: out, ended by a NUL; also words for an error of the daemon's. @len bytes
 * 0; -ENOENT, -ECONNREFUSED: no daemon there; -EACCES; -ETIMEDOUT: no answer within
 * 10 s; -EPROTO; -EMSGSIZE: it is longer; or the daemon's error.
 */
RGATE_API int rgate_daemon_call(const char *path, const char *request, char *answer,
				size_t len);

/*
 * rgate_ring_open_remote - a ring that the cluster's gateway fills
 * @ring: out; used like any other: poll, take, release, wait, rgate_ring_stats(),
 *	rgate_ring_fd(); mapped memory can be registered with a GPU. Slots are read-only,
 *	and stay in this process: it cannot be sent or resized (-EOPNOTSUPP).
 * @opts: as for rgate_inlet_open(); `device` is the daemon's socket, NULL: as @path above
 * The daemon of this node makes it, and closes it when the ring is closed or this
 * process ends. Frames' time stamps are of the gateway's clock:
 * rgate_ring_tstamp_offset(). Errors as rgate_daemon_call(), rgate_inlet_open();
 * -EOPNOTSUPP: the daemon is the gateway's.
 */
RGATE_API int rgate_ring_open_remote(struct rgate_ring **ring,
				     const struct rgate_ring_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
