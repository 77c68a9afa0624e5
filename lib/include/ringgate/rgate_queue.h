/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Queues of tasks, for programs of one machine or of several nodes.
 *
 *	rgate_queue_open(&q, "frames", &opts);
 *	rgate_queue_submit(q, &job, 1, -1, &id);
 *
 *	while (rgate_queue_claim(q, 0, 1, RGATE_CLAIM_BEGIN, -1, &got) == 1)
 *		... rgate_queue_complete(q, &got, result, len);
 *
 * A queue's home is one node, whose daemon keeps it; programs of others open it by RGATE_QUEUE_AT.
 *
 * A task is executed at least once while its home lives, and completed exactly once. Who ends, or
 * closes the queue, gives back what he has claimed. Documentation/queue.rst has the whole of it.
 *
 * Each has a session of its own; programs that wait for several things at once use the
 * requests (<ringgate/queue.h>) themselves. One thread at a time for each queue that is open. After
 * fork(2) it is the parent's.
 *
 * A signal that is caught ends each of these calls but rgate_queue_close(): -EINTR. Then, as with
 * -ETIMEDOUT, it has done nothing: a task that was to be completed is claimed still. Those that
 * tell how many they have kicked or discarded have done so much.
 */
#ifndef RINGGATE_RGATE_QUEUE_H
#define RINGGATE_RGATE_QUEUE_H

#include <ringgate/queue.h>
#include <ringgate/rgate.h>
#include <ringgate/rgate_session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_queue;

struct rgate_queue_opts {
	size_t sz;
	const char *path;	/* the daemon's socket; NULL: RGATE_SESSION_SOCKET */
	uint32_t where;		/* enum rgate_session_where */
	uint32_t flags;		/* RGATE_QUEUE_*, as OPEN has them, and RGATE_QUEUE_OF */
	uint32_t owner;		/* RGATE_QUEUE_OF: uid; else the own one */
	uint32_t timeout_ms;	/* for the daemon to answer; 0: 5000 */
	/* of a queue that is made; 0: the default */
	uint64_t bytes;		/* of its tasks, and as many of results */
	uint32_t tasks;
	uint32_t attempts;	/* of each, before it is buried */
	uint32_t run_ms;	/* a task that runs longer is taken away; 0: never */
	uint32_t result_ms;	/* results are kept for so long */
	uint32_t home;		/* RGATE_QUEUE_AT: that node; else this one */
	uint32_t reserved;
};

#define RGATE_QUEUE_OF	(1U << 16)	/* it is user @owner's */
#define RGATE_QUEUE_AT	(1U << 17)	/* its home is @home */

/*
 * rgate_queue_open - the queue of that name
 * @opts: NULL: this user's, made if it is not there; else it is made with RGATE_QUEUE_CREATE
 * -EINVAL: name, options; -ENOENT: it is not there, and not to be made here; -EEXIST:
 * RGATE_QUEUE_EXCLUSIVE; -EACCES: it is not for this user; -ECONNREFUSED: there is no daemon;
 * -EOPNOTSUPP: one without queues; -EDQUOT, -ENOSPC: too many; -ENONET: RGATE_QUEUE_MIRROR needs
 * a cluster of three nodes; -ETIMEDOUT; -EPIPE; and as
 * rgate_session_open(). With RGATE_QUEUE_AT: -ENXIO: there is no such node; -ENOTCONN, -ETIMEDOUT:
 * it is not there, or does not answer; -EUSERS: this node's sessions come and go too fast for it;
 * -EPROTONOSUPPORT: it has another version. From then on each call can also end with -ENOTCONN; and
 * with -ECONNRESET when the home was lost: what was claimed is not any more, and whether that which
 * was under way was done is not known. Then it is closed, and opened again.
 */
RGATE_API int rgate_queue_open(struct rgate_queue **queue, const char *name,
			       const struct rgate_queue_opts *opts);

/* rgate_queue_close - what was claimed goes back; NULL is allowed */
RGATE_API void rgate_queue_close(struct rgate_queue *queue);

/*
 * rgate_queue_handle - a queue for the requests of a session that there is already
 * @opts: as rgate_queue_open(), but path and where, as the session knows whom it asks
 * @handle: out: for rgate_request.handle; the session's, until it asks RGATE_REQ_QUEUE_CLOSE
 * For a session that is to be lent (rgate_session_lend()), or asks for more than these calls do.
 * Called by the thread that submits and takes, while nothing is under way. The first
 * sizeof(struct rgate_queue_place) bytes of its memory are written to, and free again then.
 * -EBUSY: it is lent, or has completions that were not taken: nothing is done; -EINVAL: it has less
 * memory, too; else as rgate_queue_open().
 */
RGATE_API int rgate_queue_handle(struct rgate_session *session, const char *name,
				 const struct rgate_queue_opts *opts, uint32_t *handle);

/* To be submitted */
struct rgate_queue_job {
	const void *data;
	uint32_t len;		/* RGATE_QUEUE_DATA_MAX at most */
	uint32_t delay_ms;
	uint32_t attempts;	/* 0: as the queue has it */
	uint8_t type;		/* below RGATE_QUEUE_TYPES */
	uint8_t priority;	/* below RGATE_QUEUE_PRIORITIES, 0 first */
	uint8_t flags;		/* RGATE_TASK_RESULT */
	uint8_t reserved;
};

/*
 * rgate_queue_submit - @n tasks, of which the first ones are taken
 * @timeout_ms: for room: 0: none is waited for; -1: no limit
 * @first: out, may be NULL: the number of the first; each has the next one
 * Returns how many, at least one: those that a request has room for, and the queue; or -EAGAIN,
 * -ETIMEDOUT: it is full; -EDQUOT: its owner's queues have too much; -EMSGSIZE: the first can never
 * have room; -ENOSPC, -EIO: its home's journal cannot be written; -EOPNOTSUPP: its home is another
 * node, of an older version that cannot tell when a task has ended; -EINVAL; -EACCES; -ESTALE: it
 * was removed; -EINTR; -EPIPE; -EOWNERDEAD
 */
RGATE_API int rgate_queue_submit(struct rgate_queue *queue, const struct rgate_queue_job *jobs,
				 unsigned int n, int timeout_ms, uint64_t *first);

/* A task, and what belongs to it: in the session's memory, until the queue's next call */
struct rgate_queue_got {
	struct rgate_queue_task task;
	const void *data;
	const void *end;	/* rgate_queue_peek(): result or reason */
	uint64_t reserved;
};

/*
 * rgate_queue_claim - waits for tasks of a type
 * @types: bits; 0: all
 * @most: of @got, up to RGATE_QUEUE_CLAIM_MAX
 * @flags: RGATE_CLAIM_BEGIN; RGATE_CLAIM_NOW: does not wait
 * @timeout_ms: -1: no limit
 * Returns how many, at least one. What the one who has submitted them did before is visible.
 * -EAGAIN: RGATE_CLAIM_NOW, and there is none; -ETIMEDOUT; -EINTR: none is claimed; -ENOBUFS: too
 * many wait; -EINVAL; -EACCES; -ESTALE: it was removed; -EPIPE: the daemon is gone; -EOWNERDEAD
 */
RGATE_API int rgate_queue_claim(struct rgate_queue *queue, uint64_t types, unsigned int most,
				uint32_t flags, int timeout_ms, struct rgate_queue_got *got);

/*
 * What becomes of a task that this one has claimed; the claim is over then, but for begin and
 * touch. -ESTALE: it was before, or the queue was removed: nothing is changed; -ENOENT: there was
 * no such task; -EACCES; -ETIMEDOUT; -EPIPE; -EOWNERDEAD
 *
 * begin: an attempt; touch: its time to run begins anew.
 */
RGATE_API int rgate_queue_begin(struct rgate_queue *queue, const struct rgate_queue_task *task);
RGATE_API int rgate_queue_touch(struct rgate_queue *queue, const struct rgate_queue_task *task);

/*
 * rgate_queue_complete - as rgate_queue_begin()
 * @result: @len bytes, or none
 * Also: -EAGAIN: there is no room for results, for now; -EDQUOT: nor is there for its owner;
 * -EMSGSIZE: longer than RGATE_QUEUE_DATA_MAX, or than all results of the queue may be; -ENOSPC,
 * -EIO: the home's journal cannot be written: if it dies before it can, the task is done again
 */
RGATE_API int rgate_queue_complete(struct rgate_queue *queue, const struct rgate_queue_task *task,
				   const void *result, size_t len);

/* To be completed with others */
struct rgate_queue_result {
	const struct rgate_queue_task *task;
	const void *data;	/* the result, or none */
	uint32_t len;
	int32_t error;		/* out: 0, or what rgate_queue_complete() returns */
	uint64_t reserved;
};

/*
 * rgate_queue_complete_many - as rgate_queue_complete() for each of @n, by fewer requests
 * What goes wrong with one of them does not keep the others.
 * Returns how many are completed; or, if none is, the first one's error. -EINVAL: n is 0.
 */
RGATE_API int rgate_queue_complete_many(struct rgate_queue *queue,
					struct rgate_queue_result *results, unsigned int n);

/*
 * rgate_queue_next - completes what is done, and waits for more, by requests that go together
 * @results, @n: as rgate_queue_complete_many(); n may be 0. Their tasks may be those in @got.
 * @types, @most, @flags, @timeout_ms, @got: as rgate_queue_claim()
 * For a worker that goes on: it waits once, and not for each of both. Data of the results may be
 * that of @got, too; who would complete a refused one again has a copy.
 * Returns as rgate_queue_claim(); what became of each result is in its error, whatever this
 * returns. -EAGAIN also: one of them is refused for now, which its error tells: nothing is waited
 * for then.
 */
RGATE_API int rgate_queue_next(struct rgate_queue *queue, struct rgate_queue_result *results,
			       unsigned int n, uint64_t types, unsigned int most, uint32_t flags,
			       int timeout_ms, struct rgate_queue_got *got);

/*
 * In the background: one claim, or one wait, that is asked for and taken later. Meanwhile tasks
 * that were claimed are begun, touched, completed and so on, and others submitted; what would be
 * told something else, as rgate_queue_claim(), _next(), _wait(), _peek() and _info(), is -EBUSY.
 *
 *	rgate_queue_next_start(q, NULL, 0, 0, 16, RGATE_CLAIM_BEGIN);
 *	while ((n = rgate_queue_next_take(q, got)) == -EAGAIN)
 *		... epoll_wait() with rgate_queue_fd(q) and others ...
 */

/*
 * rgate_queue_next_start - as rgate_queue_next(), whose claim is not waited for
 * The results are: what became of each is in its error. @flags: RGATE_CLAIM_BEGIN
 * -EBUSY: something is in the background; -EINVAL; -EPIPE; -EOWNERDEAD
 */
RGATE_API int rgate_queue_next_start(struct rgate_queue *queue,
				     struct rgate_queue_result *results, unsigned int n,
				     uint64_t types, unsigned int most, uint32_t flags);

/*
 * rgate_queue_next_take - the tasks, when they are there
 * @got: room for as many as were asked for
 * As rgate_queue_claim(). -EAGAIN: they are not there; -EINVAL: no claim is in the background.
 * After anything but -EAGAIN none is.
 */
RGATE_API int rgate_queue_next_take(struct rgate_queue *queue, struct rgate_queue_got *got);

/*
 * rgate_queue_wait_start - as rgate_queue_wait(), which is not waited for
 * @id: 0: as rgate_queue_wait_all()
 * As rgate_queue_next_start()
 */
RGATE_API int rgate_queue_wait_start(struct rgate_queue *queue, uint64_t id, uint32_t flags);

/*
 * rgate_queue_wait_take - its result, when it is there
 * @value: out, may be NULL: the state of the task; or how many are buried
 * As rgate_queue_wait(), and as rgate_queue_next_take(). With RGATE_WAIT_TAKE what is longer than
 * @buf is lost.
 */
RGATE_API int rgate_queue_wait_take(struct rgate_queue *queue, void *buf, size_t len,
				    uint64_t *value);

/*
 * rgate_queue_quit - ends what is in the background
 * Returns 0: it has done nothing; 1: it had ended before: what it has is to be taken. -EINVAL:
 * there is none; -EPIPE; -EOWNERDEAD
 */
RGATE_API int rgate_queue_quit(struct rgate_queue *queue);

/*
 * rgate_queue_fd - for poll(2) and epoll(7): readable once what is in the background may have ended
 * Stays the queue's; only to be waited for, by level. When it is readable, and before it is waited
 * for the first time, the _take function is called, which says -EAGAIN if there was nothing, and
 * then it is not readable any more. With nothing in the background it is not, either.
 * -EMFILE
 */
RGATE_API int rgate_queue_fd(struct rgate_queue *queue);

/*
 * rgate_queue_memory - says where the bytes of a task, or of a result, are
 * @memory: out: to be submitted, or completed with, as any bytes of that length
 * @node: RGATE_QUEUE_MEMORY_HERE: nobody at another node fetches them; @owner, @name: as
 * RGATE_REQ_MEMORY_OPEN has them
 * Who has exported them keeps them as they are until the task is over, or the result was fetched.
 * -EINVAL: no such name
 */
RGATE_API int rgate_queue_memory(struct rgate_queue_memory *memory, uint32_t node, uint32_t owner,
				 const char *name, uint64_t off, uint64_t len);

/*
 * rgate_queue_memory_of - are those bytes what rgate_queue_memory() has made?
 * @memory: out: a copy
 * -EINVAL: they are not
 */
RGATE_API int rgate_queue_memory_of(const void *bytes, size_t len,
				    struct rgate_queue_memory *memory);

/*
 * rgate_queue_fetch - a copy of what is there
 * @off: from there on; @buf: room for @len
 * @timeout_ms: for all of it; -1: no limit
 * The copy changes no more, whatever becomes of the memory; while it is made its owner may write.
 * What was claimed stays, also what @got of it points to. -ENOENT, -ESTALE: who had exported it is
 * gone, or has taken it back; -EACCES: it is not for this user; -ERANGE: it is shorter than was
 * said, or than is asked for; -ENXIO: no such node; -ENOTCONN: it is not there; -ECONNRESET: it was
 * lost meanwhile; -EOPNOTSUPP: a daemon without exported memory; -EDQUOT: too many are open;
 * -EINVAL; -ETIMEDOUT; -EINTR; -EPIPE; -EOWNERDEAD. Of @buf nothing counts then.
 */
RGATE_API int rgate_queue_fetch(struct rgate_queue *queue, const struct rgate_queue_memory *memory,
				uint64_t off, void *buf, size_t len, int timeout_ms);

/* rgate_queue_release - it is ready again in @delay_ms, or buried; as rgate_queue_begin() */
RGATE_API int rgate_queue_release(struct rgate_queue *queue, const struct rgate_queue_task *task,
				  uint32_t delay_ms);

/* rgate_queue_bury - @reason: a line, cut at RGATE_QUEUE_REASON_MAX; NULL: none; as
 * rgate_queue_begin() */
RGATE_API int rgate_queue_bury(struct rgate_queue *queue, const struct rgate_queue_task *task,
			       const char *reason);

/*
 * rgate_queue_wait - until a task is over
 * @id: its number
 * @flags: RGATE_WAIT_TAKE: the result is not kept any more
 * @timeout_ms: -1: no limit
 * @buf: room of @len bytes for the result, or the reason
 * @state: out, may be NULL: RGATE_TASK_DONE or RGATE_TASK_BURIED
 * Returns how many bytes there are. What its worker did before is visible. -ENOENT: there is no
 * such task any more; -EMSGSIZE: @buf is too small; -ETIMEDOUT; -EINTR; -EACCES; -EINVAL;
 * -ESTALE: the queue was removed; -EPIPE; -EOWNERDEAD
 */
RGATE_API int rgate_queue_wait(struct rgate_queue *queue, uint64_t id, uint32_t flags,
			       int timeout_ms, void *buf, size_t len, uint32_t *state);

/*
 * rgate_queue_wait_all - until no task is left that is not over
 * @buried: out, may be NULL: so many were not completed
 * -ETIMEDOUT; -EINTR; -ESTALE: it was removed; -EPIPE; -EOWNERDEAD
 */
RGATE_API int rgate_queue_wait_all(struct rgate_queue *queue, int timeout_ms, uint64_t *buried);

/*
 * rgate_queue_kick - buried tasks, then delayed ones, are ready
 * @most: so many at most; @kicked: out, may be NULL: how many were
 * -EACCES: only its owner may; -ESTALE: it was removed; -ETIMEDOUT; -EPIPE; -EOWNERDEAD
 */
RGATE_API int rgate_queue_kick(struct rgate_queue *queue, uint64_t most, uint64_t *kicked);

/*
 * rgate_queue_discard - drops tasks that nobody has claimed; as rgate_queue_kick()
 * @states: RGATE_TASK_BIT() of those; @discarded: out, may be NULL: how many
 */
RGATE_API int rgate_queue_discard(struct rgate_queue *queue, uint32_t states,
				  uint64_t *discarded);

/* rgate_queue_remove - the queue is gone, and all in it; as rgate_queue_kick() */
RGATE_API int rgate_queue_remove(struct rgate_queue *queue);

/*
 * rgate_queue_peek - the next task, without claiming it
 * @after: 0 at first; out: where to go on
 * @states: RGATE_TASK_BIT(); 0: all
 * Returns 1; 0: there is none any more. -EACCES; -ESTALE: the queue was removed; -ETIMEDOUT;
 * -EPIPE; -EOWNERDEAD
 */
RGATE_API int rgate_queue_peek(struct rgate_queue *queue, uint64_t *after, uint32_t states,
			       struct rgate_queue_got *got);

/* rgate_queue_info - numbers of it. -ESTALE: it was removed; -ETIMEDOUT; -EPIPE; -EOWNERDEAD */
RGATE_API int rgate_queue_info(struct rgate_queue *queue, struct rgate_queue_info *info);

/*
 * rgate_queue_list - calls @each for each queue that this user may open
 * @opts: as rgate_queue_open(): only where it asks is looked at
 * Returns 0; what @each returned, if that is not 0, at once; or as rgate_queue_open().
 */
RGATE_API int rgate_queue_list(const struct rgate_queue_opts *opts,
			       int (*each)(void *ctx, const struct rgate_queue_info *info),
			       void *ctx);

#ifdef __cplusplus
}
#endif
#endif
