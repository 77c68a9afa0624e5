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
 * @path: NULL: environment RGATE_SOCKET, else RGATE_DAEMON_SOCKET
 * @answer: out, ended by a NUL; also words for an error of the daemon's. @len bytes
 * 0; -ENOENT, -ECONNREFUSED: no daemon there; -EACCES; -ETIMEDOUT: no answer within
 * 10 s, and whether it was done is not known; -EPROTO; -EMSGSIZE: it is longer; or the
 * daemon's error.
 */
RGATE_API int rgate_daemon_call(const char *path, const char *request, char *answer,
				size_t len);

/*
 * rgate_ring_open_remote - a ring that the cluster's gateway fills
 * @ring: out; used like any other: poll, take, release, wait, rgate_ring_stats(),
 *	rgate_ring_fd(); mapped memory can be registered with a GPU. Slots are read-only,
 *	and stay in this process: it cannot be sent or resized (-EOPNOTSUPP).
 * @opts: as for rgate_inlet_add(); `device` is the daemon's socket, NULL: as @path above
 * The daemon of this node makes it, and closes it when the ring is closed or this
 * process ends. Frames' time stamps are of the gateway's clock:
 * rgate_ring_tstamp_offset(). Errors as rgate_daemon_call(), rgate_inlet_add();
 * -EOPNOTSUPP: the daemon is the gateway's.
 */
RGATE_API int rgate_ring_open_remote(struct rgate_ring **ring,
				     const struct rgate_ring_opts *opts);

/*
 * rgate_ring_remote_state - does the gateway fill a ring of rgate_ring_open_remote()?
 * @why: out, words for a refusal, else empty; @len bytes, 64 or more
 * Asks the daemon, over the connection that keeps the ring: one thread at a time, which may
 * be another than the consumer's.
 * 1: it does. 0: not yet, as there is no gateway, or it did not answer so far.
 * -ECONNRESET: the daemon has ended, or closed the ring: nothing comes any more. -EINVAL: it
 * is no such ring. -ETIMEDOUT: no answer within 10 s. Else what the gateway refused it for,
 * with @why: -EMSGSIZE, its slots are too small.
 */
RGATE_API int rgate_ring_remote_state(struct rgate_ring *ring, char *why, size_t len);

/*
 * rgate_ring_remote_device - what the gateway calls the device that a frame came from
 * @ifindex: rgate_slot.ifindex; @name: out, RGATE_DEVICE_NAME bytes, as rgate_inlet_device()
 * As rgate_ring_remote_state(); also -EAGAIN: the gateway was asked, call again in some
 * milliseconds; -ENODEV: it has no such device; -ENOTCONN: there is no gateway now.
 */
RGATE_API int rgate_ring_remote_device(struct rgate_ring *ring, uint32_t ifindex, char *name);

#ifdef __cplusplus
}
#endif
#endif
