/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Requests: asking ringgated, or an engine in this process, for what the cluster can do.
 *
 *	rgate_session_open(&s, NULL);
 *	rgate_session_submit(s, &(struct rgate_request){ .op = RGATE_REQ_NOP, .cookie = 1 });
 *	while (rgate_session_poll(s, &done, 1) == 0)
 *		rgate_session_wait(s, 1000);
 *	rgate_session_close(s);
 *
 * Threads: one submits (submit, submit_many, cancel) and one takes completions (poll, wait,
 * arm, disarm); they may be the same, and need no lock between them. The other functions may
 * be called by any thread, rgate_session_close() by one, and last.
 *
 * When the session is over (-EPIPE) before it is closed, what was under way has no known
 * result: it may have been done, may still be, and its part of the session's memory may still
 * be read and written by whoever served it, or a device. That part is not the client's again:
 * rgate_session_close() leaves it to them, and a new session has memory of its own.
 *
 * After fork(2) a session is the parent's: in the child all functions but
 * rgate_session_close(), which frees the child's copy alone, return -EOWNERDEAD.
 */
#ifndef RINGGATE_RGATE_SESSION_H
#define RINGGATE_RGATE_SESSION_H

#include <ringgate/memory.h>
#include <ringgate/request.h>
#include <ringgate/rgate.h>
#include <ringgate/rgate_spin.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_session;

#define RGATE_SESSION_SOCKET	"/run/ringgate/request.sock"

/* Who serves the requests */
enum rgate_session_where {
	RGATE_SESSION_EITHER = 0,	/* the daemon; where there is none, this process */
	RGATE_SESSION_DAEMON = 1,
	RGATE_SESSION_PROCESS = 2,	/* a thread of this process, for all its sessions */
};

struct rgate_session_opts {
	size_t sz;
	const char *path;	/* the daemon's socket; NULL: RGATE_SESSION_SOCKET */
	uint32_t where;		/* enum rgate_session_where */
	uint32_t requests;	/* places; 0: RGATE_REQ_PLACES_DEFAULT; rounded up */
	uint32_t completions;	/* likewise; 0: as many as requests */
	uint32_t spin_us;	/* rgate_session_wait() polls so long, see rgate_spin.h */
	uint64_t memory;	/* bytes of rgate_session_memory(); rounded up to pages */
	uint32_t timeout_ms;	/* for the daemon to answer; 0: 5000 */
	uint32_t reserved;
};

/*
 * rgate_session_open - begins to ask
 * @opts: NULL: the daemon or this process, 256 places, no memory
 * The first session that this process serves itself starts a thread, which blocks all
 * signals, and polls as long as that session's spin_us says; the last one to be closed ends it.
 *
 * -EINVAL; -ENOENT, -ECONNREFUSED: RGATE_SESSION_DAEMON, and there is none; -EACCES: its
 * policy refuses this user; -EDQUOT: the user has as many sessions, or as much memory, as he
 * may; -EPROTONOSUPPORT: the daemon is of a version that this library does not speak (the
 * log says which); -EPROTO; -ETIMEDOUT; -EMFILE; -ENOMEM. Thread-safe.
 */
RGATE_API int rgate_session_open(struct rgate_session **session,
				 const struct rgate_session_opts *opts);

/*
 * rgate_session_close - ends the session; NULL is allowed
 * What is under way is cancelled, and nobody hears of it. The session's memory is unmapped:
 * the engine keeps its own mapping until the last of these requests is over.
 */
RGATE_API void rgate_session_close(struct rgate_session *session);

/*
 * rgate_session_reconnect - goes on with a daemon that was started again
 * @timeout_ms: how long to wait for it while nobody listens; -1: no limit; 0: does not
 * For a session that is over, by the one thread that uses it. It is as new then: nothing is under
 * way, completions that were not taken are gone, and handles of before mean nothing. Its memory
 * has the same address and length, and holds zeros: what was there is still that of who served it,
 * see above. rgate_session_fd() is another descriptor.
 * -EBUSY: it is not over, or is lent; -EINVAL: this process serves it; -EINTR; or as
 * rgate_session_open(), and it is over as before: it can be tried again.
 */
RGATE_API int rgate_session_reconnect(struct rgate_session *session, int timeout_ms);

/*
 * rgate_session_submit - publishes one request, and wakes the engine if it sleeps
 * @req: is copied; owner and seq are filled in
 * Whatever was stored in the session's memory before is visible to who serves the request.
 * Does not look into @req: what is wrong with it is told by its completion.
 * -EAGAIN: no place: completions have to be taken, or the engine is busy; -EPIPE: the session
 * is over; -EOWNERDEAD.
 */
RGATE_API int rgate_session_submit(struct rgate_session *session,
				   const struct rgate_request *req);

/*
 * rgate_session_submit_many - the same for @n, of which the first ones are taken
 * Returns how many, at least one; or as rgate_session_submit(). One look at whether the
 * engine sleeps for all of them. -EINVAL: n is 0.
 */
RGATE_API int rgate_session_submit_many(struct rgate_session *session,
					const struct rgate_request *reqs, unsigned int n);

/*
 * rgate_session_cancel - submits a RGATE_REQ_CANCEL
 * @target: cookie of a request of this session
 * @cookie: of this request, whose result is 0: the other ends with -ECANCELED, after what it has
 *	told with RGATE_COMP_MORE; -ENOENT: none
 *	with that cookie is under way; -EALREADY: it ends by itself, or is being cancelled
 * As rgate_session_submit().
 */
RGATE_API int rgate_session_cancel(struct rgate_session *session, uint64_t target,
				   uint64_t cookie);

/*
 * rgate_session_poll - takes up to @n completions; no system call while any are there
 * What the request wrote into the session's memory is visible. A request with RGATE_REQ_MULTI is
 * under way until its completion without RGATE_COMP_MORE. Returns how many, 0: none is there;
 * -EPIPE: nor will there be: the session is over; -EOWNERDEAD.
 */
RGATE_API int rgate_session_poll(struct rgate_session *session, struct rgate_completion *out,
				 unsigned int n);

/*
 * rgate_session_wait - until there is a completion to take
 * @timeout_ms: -1: no limit; 0: only looks
 * Returns 1; 0: the time is over; -EINTR; -EPIPE: the session is over, and all that it had
 * was taken; -EOWNERDEAD.
 */
RGATE_API int rgate_session_wait(struct rgate_session *session, int timeout_ms);

/*
 * rgate_session_fd - for poll(2) and epoll(7): readable once there is a completion after
 * rgate_session_arm(). Stays the session's; only to be waited for.
 */
RGATE_API int rgate_session_fd(const struct rgate_session *session);

/*
 * rgate_session_arm - asks to be woken by the descriptor for the next completion
 * Once for each sleep. Returns 0: sleep; 1: there is one already, do not; -EPIPE;
 * -EOWNERDEAD.
 */
RGATE_API int rgate_session_arm(struct rgate_session *session);

/* rgate_session_disarm - no wakeups any more; saves the engine a system call */
RGATE_API void rgate_session_disarm(struct rgate_session *session);

/*
 * rgate_session_memory - what requests name as RGATE_REQ_MEM_SESSION
 * @len: out, may be NULL. Returns NULL where none was asked for. Zeroed, the client's to
 * divide. While a request is under way its part of it is the engine's.
 */
RGATE_API void *rgate_session_memory(const struct rgate_session *session, size_t *len);

struct rgate_session_info {
	size_t sz;
	uint32_t where;		/* RGATE_SESSION_DAEMON or _PROCESS */
	uint32_t version;	/* of the area, RGATE_REQ_VERSION */
	uint32_t requests;	/* places */
	uint32_t completions;
	uint64_t memory;	/* bytes */
	uint64_t submitted;
	uint64_t completed;	/* completions taken */
	uint64_t kicks;		/* system calls that woke the engine */
	uint64_t sleeps;	/* of rgate_session_wait() */
};

/* rgate_session_info - numbers of the session; @info->sz is set by the caller. -EINVAL */
RGATE_API int rgate_session_info(const struct rgate_session *session,
				 struct rgate_session_info *info);

/*
 * What a session is made of, for who asks in the program's place: a GPU, see
 * rgate_gpu_bind_session(). Addresses are of this process, all of them in the area; who uses
 * them keeps to Documentation/requests.rst, as the engine does.
 */
struct rgate_session_loan {
	size_t sz;
	struct rgate_request *requests;
	const struct rgate_completion *completions;
	const uint64_t *request_credits;
	uint64_t *completion_credits;
	const struct rgate_req_server *server;
	void *area;
	uint64_t area_len;
	void *memory;		/* as rgate_session_memory() */
	uint64_t memory_len;
	uint32_t places;	/* of requests */
	uint32_t completion_places;
	uint32_t owner;		/* for rgate_request.owner */
	int32_t kick_fd;	/* 8 bytes to it wake the engine; the session's */
	int32_t gone_fd;	/* POLLRDHUP: the daemon is gone; -1: there is none */
	uint32_t reserved;
	uint64_t submitted;	/* the first position to be written */
	uint64_t room;		/* and the first that may not be, before its credit comes */
	uint64_t completed;	/* the first completion to be taken */
	/*
	 * Who wants to sleep until completion N is there stores N + 1, fences, and looks at it;
	 * until the engine is asleep, RGATE_REQ_WANT_NEED, and looks at need. If it comes later,
	 * wait_fd is readable; epoll_wait(2) of it takes that. 0: nobody sleeps
	 */
	uint64_t *want;
	int32_t wait_fd;
	uint32_t reserved2;
};

/*
 * rgate_session_lend - gives both rings away, for as long as the session lives
 * @loan: its sz is set by the caller
 * Submitting, taking, waiting and arming return -EBUSY from here on; memory and info are there as
 * before, and rgate_session_close() is the caller's, once nobody uses the loan any more. What is
 * under way is answered to the borrower. -EBUSY: it is lent; -EPIPE: it is over; -EINVAL: sz;
 * -EOWNERDEAD. Called by the thread that submits and takes.
 */
RGATE_API int rgate_session_lend(struct rgate_session *session,
				 struct rgate_session_loan *loan);

#ifdef __cplusplus
}
#endif
#endif
