/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Barriers with names, for programs of one machine or of several nodes: nobody goes on before
 * all have arrived.
 *
 * A member that dies, or leaves after it has arrived, breaks the barrier: all who wait, and who
 * arrive later, are told, and who it was. It stays so until all have closed it.
 *
 * What a member did by requests that have ended, or in memory that others map, is visible to
 * all who went through after it has arrived (release, acquire).
 *
 * One thread at a time for each barrier. After fork(2) it is the parent's.
 */
#ifndef RINGGATE_RGATE_BARRIER_H
#define RINGGATE_RGATE_BARRIER_H

#include <ringgate/rgate_sync.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_barrier;

/*
 * rgate_barrier_open - becomes a member
 * @members: 1 to RGATE_BARRIER_MEMBERS, the same for all
 * @opts: as rgate_lock_open()
 * -EINVAL: also another number of members; -EUSERS: it has so many; -EPIPE: it is broken; and as
 * rgate_lock_open()
 */
RGATE_API int rgate_barrier_open(struct rgate_barrier **barrier, const char *name,
				 uint32_t members, const struct rgate_sync_opts *opts);

/* rgate_barrier_close - NULL is allowed */
RGATE_API void rgate_barrier_close(struct rgate_barrier *barrier);

/*
 * rgate_barrier_arrive - this one is there, and counted when this returns
 * -EALREADY: and has not waited since; -EPIPE: broken, rgate_barrier_wait() tells by whom, or
 * the daemon is gone; -ECONNRESET, -ESTALE: the home is lost; -ETIMEDOUT, -EINTR: it may count all
 * the same: may be called again, and -EALREADY says that it does; -EOWNERDEAD
 */
RGATE_API int rgate_barrier_arrive(struct rgate_barrier *barrier);

/*
 * rgate_barrier_wait - until all have arrived
 * @timeout_ms: -1: no limit
 * @generation: out, may be NULL: how often they have
 * @broken: out, may be NULL: for -EPIPE: who did; members is 0: the daemon is gone
 * -ETIMEDOUT, -EINTR: may be called again; -ENOLCK: it has not arrived; -EPIPE; -ECONNRESET,
 * -ESTALE: the home is lost; -EOWNERDEAD
 */
RGATE_API int rgate_barrier_wait(struct rgate_barrier *barrier, int timeout_ms,
				 uint64_t *generation, struct rgate_barrier_info *broken);

/*
 * rgate_barrier_meet - arrives, and waits until all have, by requests that go together
 * For who has nothing to do in between: it sleeps once, and not twice. One that has arrived and
 * not gone through just waits.
 * @timeout_ms, @generation, @broken: as rgate_barrier_wait()
 * Returns as rgate_barrier_wait(). -ETIMEDOUT, -EINTR: it has arrived, or not; may be called again
 */
RGATE_API int rgate_barrier_meet(struct rgate_barrier *barrier, int timeout_ms,
				 uint64_t *generation, struct rgate_barrier_info *broken);

/* rgate_barrier_info - who has arrived. -ESTALE: the home is lost; -EPIPE; -ETIMEDOUT */
RGATE_API int rgate_barrier_info(struct rgate_barrier *barrier, struct rgate_barrier_info *info);

#ifdef __cplusplus
}
#endif
#endif
