/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A worker: threads that claim a queue's tasks, call handlers by type, and say what came of it.
 *
 *	static int square(void *ctx, struct rgate_queue_work *work)
 *	...
 *	const struct rgate_queue_handler h = { .run = square };
 *	const struct rgate_queue_worker_opts o = RGATE_OPTS(rgate_queue_worker_opts,
 *		.handlers = &h, .nhandlers = 1, .threads = 4);
 *
 *	rgate_queue_worker_start(&worker, "numbers", &o);
 *	...
 *	rgate_queue_worker_stop(worker);
 *	rgate_queue_worker_join(worker, 10000);
 *	rgate_queue_worker_close(worker);
 *
 * Each thread has the queue open for itself, thus a session. It claims a batch by one request,
 * which completes what it has done so far, too. A task is begun, and loses an attempt, when its
 * handler is called: those that are claimed ahead, of the batch and by prefetch, have lost none
 * when they are given back, or this process dies.
 *
 * The threads block all signals. All functions may be called by any thread, but close, which is
 * the last one. After fork(2) a worker is the parent's: the child calls none of them.
 */
#ifndef RINGGATE_RGATE_QUEUE_WORKER_H
#define RINGGATE_RGATE_QUEUE_WORKER_H

#include <ringgate/rgate_queue.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_queue_worker;

#define RGATE_WORKER_THREADS_MAX	256U

/* A task that its handler has, as long as it runs */
struct rgate_queue_work {
	const struct rgate_queue_task *task;
	const void *data;	/* task->len bytes, which nobody else can write */
	void *result;		/* room for RGATE_QUEUE_DATA_MAX bytes */
	size_t len;		/* out: of the result; 0 at first */
	const char *reason;	/* out: why it is buried; NULL at first: what the error means */
	uint32_t delay_ms;	/* out: until it is ready again; as the options have it at first */
	uint32_t thread;	/* from 0 on */
	uint64_t reserved;
};

/*
 * For tasks of some types
 * @run: returns 0: it is completed with the result; -EAGAIN: it is released, with the delay;
 * anything else: it is buried, or, with RGATE_WORKER_RETRY, released likewise. What is released and
 * has no attempt left is buried. A result that is too long buries it.
 */
struct rgate_queue_handler {
	uint64_t types;		/* bits; 0: of all that no other handler has */
	int (*run)(void *ctx, struct rgate_queue_work *work);
	void *ctx;
	uint64_t reserved;
};

#define RGATE_WORKER_BEGIN	(1U << 0) /* a batch is begun when it is claimed: fewer requests */
#define RGATE_WORKER_RETRY	(1U << 1) /* a handler's errors are as -EAGAIN */
#define RGATE_WORKER_TOUCH	(1U << 2) /* tasks that run long are touched */
#define RGATE_WORKER_REOPEN	(1U << 3) /* a queue whose home or daemon was lost is opened anew */
#define RGATE_WORKER_DRAIN	(1U << 4) /* as if rgate_queue_worker_drain() was called at once */

struct rgate_queue_worker_opts {
	size_t sz;
	const struct rgate_queue_opts *queue;	/* as rgate_queue_open() */
	const struct rgate_queue_handler *handlers; /* are copied */
	uint32_t nhandlers;
	uint32_t threads;	/* 0: 1 */
	uint32_t batch;		/* tasks of a claim, RGATE_QUEUE_CLAIM_MAX at most; 0: 1 */
	uint32_t prefetch;	/* tasks that a thread has ahead of the one that runs, at least */
	uint32_t flags;		/* RGATE_WORKER_* */
	uint32_t retry_ms;	/* see delay_ms above */
	uint32_t touch_ms;	/* with RGATE_WORKER_TOUCH; 0: a third of the queue's time to run */
	uint32_t touch_for_ms;	/* what runs longer is not touched any more; 0: no limit */
};

/*
 * rgate_queue_worker_start - opens the queue in all threads, and starts them
 * -EINVAL: no handler, two for a type, options; -EAGAIN: pthread_create(3); -ENOMEM; or as
 * rgate_queue_open()
 */
RGATE_API int rgate_queue_worker_start(struct rgate_queue_worker **worker, const char *name,
				       const struct rgate_queue_worker_opts *opts);

/*
 * rgate_queue_worker_stop - no handler is called any more
 * Does not wait. Those that run go on, and what they return counts; what was claimed ahead is given
 * back. May be called by a handler, and for a signal.
 */
RGATE_API void rgate_queue_worker_stop(struct rgate_queue_worker *worker);

/*
 * rgate_queue_worker_drain - it ends when the queue has no task that is not over
 * That is looked at when a thread has none to do, 5 times a second. Does not wait; as
 * rgate_queue_worker_stop(), which may be called after it.
 */
RGATE_API void rgate_queue_worker_drain(struct rgate_queue_worker *worker);

/*
 * rgate_queue_worker_join - waits until all its threads have ended
 * @timeout_ms: -1: no limit
 * Returns 0: by stop or drain; or why the first one did else: -ECONNRESET, -ENOTCONN: its home was
 * lost; -ESTALE: the queue was removed; -EPIPE: the daemon is gone; and as rgate_queue_claim().
 * When one ends so, all do. -ETIMEDOUT: a handler runs, or there is no reason to end; -EDEADLK:
 * called by a handler of it. Who waits may be cancelled, see pthread_cancel(3).
 */
RGATE_API int rgate_queue_worker_join(struct rgate_queue_worker *worker, int timeout_ms);

/*
 * rgate_queue_worker_close - frees it; NULL is allowed
 * -EBUSY: it has not ended, see rgate_queue_worker_join(): nothing is done
 */
RGATE_API int rgate_queue_worker_close(struct rgate_queue_worker *worker);

struct rgate_queue_worker_info {
	size_t sz;
	uint32_t threads;	/* that have not ended */
	uint32_t running;	/* handlers, now */
	uint32_t ahead;		/* tasks claimed and not given to a handler, now */
	uint32_t held;		/* results that the queue has no room for, now */
	uint64_t claimed;	/* so far */
	uint64_t completed;
	uint64_t released;	/* by a handler's return; */
	uint64_t buried;	/* likewise, */
	uint64_t given_back;	/* and by stop */
	uint64_t touched;
	uint64_t late;		/* what was to be said of a task whose claim was over */
	uint64_t reopened;
	uint64_t busy_ns;	/* in handlers, of all threads */
};

/* rgate_queue_worker_info - numbers of it; @info->sz is set by the caller. -EINVAL */
RGATE_API int rgate_queue_worker_info(const struct rgate_queue_worker *worker,
				      struct rgate_queue_worker_info *info);

/*
 * rgate_queue_work_submit - as rgate_queue_submit(), for a handler, to the queue that it works for
 * Also: -ECANCELED: while it waited for room the worker was stopped. A handler that waits for room
 * may wait for itself: all others may do so, too.
 */
RGATE_API int rgate_queue_work_submit(struct rgate_queue_work *work,
				      const struct rgate_queue_job *jobs, unsigned int n,
				      int timeout_ms, uint64_t *first);

/* rgate_queue_work_fetch - as rgate_queue_fetch(), for a handler */
RGATE_API int rgate_queue_work_fetch(struct rgate_queue_work *work,
				     const struct rgate_queue_memory *memory, uint64_t off,
				     void *buf, size_t len, int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
