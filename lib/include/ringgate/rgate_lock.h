/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Locks with names, for programs of one machine or of several nodes.
 *
 *	rgate_lock_open(&lock, "builds/7", NULL);
 *	if (!rgate_lock_acquire(lock, 0, -1, &token))
 *		... as long as rgate_lock_valid(lock), and with the token where it is checked
 *	rgate_lock_release(lock);
 *	rgate_lock_close(lock);
 *
 * A lock is held until it is released or lost: when its program ends, its node is not heard of
 * for the time of a lease, or its home dies. Who holds it knows of that before anybody else gets
 * it. Tokens only rise: what several may write takes them along, and refuses lower ones.
 *
 * One thread at a time for each lock, but rgate_lock_valid(), _until() and _token(): any, until
 * rgate_lock_close(). After fork(2) it is the parent's, and not held by the child.
 */
#ifndef RINGGATE_RGATE_LOCK_H
#define RINGGATE_RGATE_LOCK_H

#include <stdbool.h>

#include <ringgate/rgate_sync.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_lock;

/*
 * rgate_lock_open - the lock of that name
 * @opts: NULL: this node's, of this user, made if it is not there
 * It is there as long as somebody has it open.
 * -EINVAL: name, options; -ENOENT: it is not there, and not to be made here; -EACCES: it is not for
 * this user; -ENXIO: no such node; -ENOTCONN, -ETIMEDOUT: its home is not there, or does not
 * answer; -EPROTONOSUPPORT: it has another version; -ECONNREFUSED: there is no daemon;
 * -EOPNOTSUPP: one without locks; -EDQUOT, -ENOSPC: too many are open; and as
 * rgate_session_open().
 */
RGATE_API int rgate_lock_open(struct rgate_lock **lock, const char *name,
			      const struct rgate_sync_opts *opts);

/* rgate_lock_close - releases it, too; NULL is allowed */
RGATE_API void rgate_lock_close(struct rgate_lock *lock);

/*
 * rgate_lock_acquire - waits for the lock; first come, first served
 * @flags: RGATE_LOCK_SHARED, RGATE_LOCK_TRY
 * @timeout_ms: -1: no limit
 * @token: out, may be NULL: higher than of all holds before, of this lock and all of its home
 * What the last holder did before its release, and made visible, comes before this (acquire).
 * -ETIMEDOUT; -EAGAIN: RGATE_LOCK_TRY, and it is not free, or its home began just now; -EINTR: a
 * signal, and it is not held; -EALREADY: it is held by this one; -ECONNRESET: its home is lost, or
 * begins anew: may be called again; -EPIPE: the daemon is gone; -EOWNERDEAD.
 */
RGATE_API int rgate_lock_acquire(struct rgate_lock *lock, uint32_t flags, int timeout_ms,
				 uint64_t *token);

/*
 * rgate_lock_release - the next one may have it (release)
 * -ENOLCK: it is not held; -ESTALE: it was lost before: others may have had it meanwhile; -EPIPE;
 * -EOWNERDEAD
 */
RGATE_API int rgate_lock_release(struct rgate_lock *lock);

/*
 * rgate_lock_valid - is it held, now? No system call.
 * False before anybody else gets it. True is of this moment: what takes longer than a lease,
 * 3 s usually, or can stand still, is to be safe by its token.
 */
RGATE_API bool rgate_lock_valid(const struct rgate_lock *lock);

/* rgate_lock_until - ns of CLOCK_BOOTTIME: it is held until then at least, unless it is released;
 * 0: it is not held; RGATE_SYNC_FOREVER */
RGATE_API uint64_t rgate_lock_until(const struct rgate_lock *lock);

/* rgate_lock_token - of the last hold; 0: there was none */
RGATE_API uint64_t rgate_lock_token(const struct rgate_lock *lock);

/* rgate_lock_info - who has it. -ESTALE: its home is lost, or begins anew; -EPIPE; -ETIMEDOUT */
RGATE_API int rgate_lock_info(struct rgate_lock *lock, struct rgate_lock_info *info);

/*
 * rgate_lock_list - calls @each for each lock of that home that this user may open
 * @opts: as rgate_lock_open(): only where it asks is looked at
 * Returns 0; what @each returned, if that is not 0, at once; -EPROTO: the home told what cannot be;
 * or as rgate_lock_open().
 */
RGATE_API int rgate_lock_list(const struct rgate_sync_opts *opts,
			      int (*each)(void *ctx, const struct rgate_lock_info *info),
			      void *ctx);

#ifdef __cplusplus
}
#endif
#endif
