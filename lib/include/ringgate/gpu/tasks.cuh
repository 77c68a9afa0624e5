/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A warp of a GPU that works on a queue of tasks (<ringgate/queue.h>): it claims as many as it has
 * lanes with one request, brings them near, and completes them with one.
 *
 *	rgate_dworker_init(&w, &ask, handle, off, len, near);
 *	while ((n = rgate_dworker_claim(&w, 0, 32, RGATE_CLAIM_BEGIN, 1000, &task)) > 0) {
 *		if (task.id)			this lane has one
 *			*(uint64_t *)rgate_dworker_room(&w) = work(task.data, task.len);
 *		err = rgate_dworker_complete(&w, &task, 8);	a lane's own
 *	}
 *	rgate_dworker_fini(&w);
 *
 * All of it is called by the whole warp, also when a lane's task has failed: what ends a loop over
 * these has to be the warp's (rgate_dwarp_or()). @handle is what rgate_queue_handle() gave before the session
 * was lent. When the session ends, what is claimed goes back to the queue, as any worker's.
 */
#ifndef RINGGATE_GPU_TASKS_CUH
#define RINGGATE_GPU_TASKS_CUH

#include <ringgate/gpu/ask.cuh>
#include <ringgate/queue.h>

/*
 * Of a lane's share of the part: eight bytes, and what is before a result that is completed with
 * others' (struct rgate_queue_end), whose room begins at a multiple of 16 so
 */
#define RGATE_DWORKER_HEAD	(8U + sizeof(struct rgate_queue_end))

/* Each lane's own */
struct rgate_dworker {
	struct rgate_dasker me;
	unsigned char *near;
	uint64_t off;
	uint32_t len;
	uint32_t handle;
};

/* This lane's task */
struct rgate_dtask {
	uint64_t id;		/* 0: it has none */
	uint32_t claim;
	uint32_t len;
	const unsigned char *data; /* near, at a multiple of 8; until the next claim */
	uint32_t attempts, uid;
	uint8_t type, priority;
};

/*
 * rgate_dworker_init - what the warp needs to work on a queue
 * @ask: of rgate_gpu_session_view(); stays where it is
 * @handle: of the queue
 * @off: where in the session's memory the warp's own part begins, a multiple of 16
 * @len: bytes of it, a multiple of 16, from 48 for each lane up to RGATE_QUEUE_PART_MAX: tasks come
 *	there, with 40 bytes each and padded to 8; then results lie there, with 32 bytes each
 * @near: as many bytes, aligned to 16, of the block's shared memory or the device's
 * -EINVAL: one of these is not so, or the part is not the session's.
 */
RGATE_DEV int rgate_dworker_init(struct rgate_dworker *w, const struct rgate_dask *ask,
				 uint32_t handle, uint64_t off, uint32_t len, void *near)
{
	rgate_dasker_init(&w->me, ask, 0);
	w->near = (unsigned char *)near;
	w->off = off;
	w->len = len;
	w->handle = handle;
	if (off % 16 || len % 16 || (uintptr_t)near % 16 ||
	    len < RGATE_DWARP * (RGATE_DWORKER_HEAD + 16) || len > RGATE_QUEUE_PART_MAX)
		return -EINVAL;
	return len <= ask->memory_len && off <= ask->memory_len - len ? 0 : -EINVAL;
}

/* rgate_dworker_fini - the last of this warp */
RGATE_DEV void rgate_dworker_fini(struct rgate_dworker *w)
{
	rgate_dasker_fini(&w->me);
}

/*
 * The @nth task of @bytes that are near. Each lane walks there by itself, over headers that all
 * load at once. 0: there it is; -EPROTO: the part is shorter than it says
 */
RGATE_DEV int rgate_dworker_find(const struct rgate_dworker *w, uint32_t bytes, uint32_t nth,
				 struct rgate_dtask *out)
{
	const struct rgate_queue_task *t;
	uint64_t at = 0, need;
	uint32_t i;

	for (i = 0;; i++) {
		if (at > bytes || bytes - at < sizeof(*t))
			return -EPROTO;
		t = (const struct rgate_queue_task *)(w->near + at);
		need = sizeof(*t) + RGATE_QUEUE_PADDED(t->len);
		if (need > bytes - at)
			return -EPROTO;
		if (i == nth)
			break;
		at += need;
	}
	out->id = t->id;
	out->claim = t->claim;
	out->len = t->len;
	out->data = (const unsigned char *)(t + 1);
	out->attempts = t->attempts;
	out->uid = t->uid;
	out->type = t->type;
	out->priority = t->priority;
	return 0;
}

/*
 * rgate_dworker_claim - up to a task a lane
 * @types: bits; 0: all
 * @most: of tasks; the lanes of a warp are
 * @flags: RGATE_CLAIM_BEGIN, RGATE_CLAIM_NOW
 * @limit_us: how long they are waited for; 0: as RGATE_CLAIM_NOW
 * @mine: out: this lane's; the first lanes have one
 * Returns the same in each lane: how many, at least one. What the one who has submitted them did
 * before is visible. -EAGAIN, -ETIMEDOUT: there was none in that time; -EMSGSIZE: the part is too
 * short for the next one; -EINVAL, -EBADF, -EACCES, -ENOBUFS, -ESTALE: as rgate_queue_claim();
 * -EPIPE: the session is over; -EPROTO: what came is not what it should be.
 */
RGATE_DEV int rgate_dworker_claim(struct rgate_dworker *w, uint64_t types, uint32_t most,
				  uint32_t flags, uint32_t limit_us, struct rgate_dtask *mine)
{
	struct rgate_danswer a = { 0, 0, 0 };
	struct rgate_request q;
	uint32_t bytes, n;
	int err;

	mine->id = 0;
	if (most > RGATE_DWARP)
		most = RGATE_DWARP;
	if (!limit_us)
		flags |= RGATE_CLAIM_NOW;
	memset(&q, 0, sizeof(q));
	q.op = RGATE_REQ_QUEUE_CLAIM;
	q.handle = w->handle;
	q.a0 = types;
	q.a1 = RGATE_CLAIM_A1(most, flags);
	q.off = w->off;
	q.len = w->len;
	q.deadline_us = limit_us;
	err = rgate_dask_call_warp(&w->me, &q, rgate_dlane() == 0, &a);
	err = (int)rgate_dwarp_first((uint64_t)(err ? err : a.result));
	n = (uint32_t)rgate_dwarp_first(a.value);
	if (err < 0)
		return err;
	bytes = (uint32_t)err;
	if (bytes > w->len || !n || n > most)
		return -EPROTO;
	rgate_dask_fetch(w->me.ask, w->off, bytes, w->near);
	err = rgate_dlane() < n ? rgate_dworker_find(w, bytes, rgate_dlane(), mine) : 0;
	return rgate_dwarp_or(err != 0) ? -EPROTO : (int)n;
}

/* Of the part, a lane's share */
RGATE_DEV uint32_t rgate_dworker_share(const struct rgate_dworker *w)
{
	return w->len / RGATE_DWARP & ~15U;
}

/* rgate_dworker_room - where this lane's result or reason goes, a multiple of 16 */
RGATE_DEV void *rgate_dworker_room(const struct rgate_dworker *w)
{
	return w->me.ask->memory + w->off + rgate_dlane() * rgate_dworker_share(w) +
	       RGATE_DWORKER_HEAD;
}

/* rgate_dworker_room_len - bytes of that */
RGATE_DEV uint32_t rgate_dworker_room_len(const struct rgate_dworker *w)
{
	return rgate_dworker_share(w) - (uint32_t)RGATE_DWORKER_HEAD;
}

/* @op on the task of each lane that has one; 0, also where there is none, or -errno */
RGATE_DEV int rgate_dworker_end(struct rgate_dworker *w, uint16_t op, struct rgate_dtask *mine,
				uint32_t len, uint32_t ms)
{
	const uint32_t fits = mine->id && len <= rgate_dworker_room_len(w);
	const uint32_t too_long = mine->id && !fits;
	struct rgate_danswer a = { 0, 0, 0 };
	struct rgate_request q;
	int err;

	memset(&q, 0, sizeof(q));
	q.op = op;
	q.handle = w->handle;
	q.a0 = mine->id;
	q.a1 = RGATE_TASK_A1(mine->claim, ms);
	q.off = len ? w->off + rgate_dlane() * rgate_dworker_share(w) + RGATE_DWORKER_HEAD : 0;
	q.len = len;
	err = rgate_dask_call_warp(&w->me, &q, fits, &a);
	if (too_long)
		return -EMSGSIZE;
	return err || a.result >= 0 ? err : a.result;
}

/* Likewise; then the lane has none any more */
RGATE_DEV int rgate_dworker_over(struct rgate_dworker *w, uint16_t op, struct rgate_dtask *mine,
				 uint32_t len, uint32_t ms)
{
	int err = rgate_dworker_end(w, op, mine, len, ms);

	if (!err)
		mine->id = 0;
	return err;
}

/*
 * All lanes' that @has one with one request of the first: a bit of each that is completed, the
 * same in each lane; what is wrong with the others is not told.
 */
RGATE_DEV uint64_t rgate_dworker_complete_all(struct rgate_dworker *w, uint32_t has,
					      const struct rgate_dtask *mine, uint32_t len)
{
	const uint32_t lanes = rgate_dwarp_or(has ? 1U << rgate_dlane() : 0);
	const uint32_t last = 31 - rgate_dzeros(lanes), share = rgate_dworker_share(w);
	const uint32_t end = (uint32_t)(sizeof(struct rgate_queue_end) + RGATE_QUEUE_PADDED(len));
	struct rgate_queue_end *head = (struct rgate_queue_end *)rgate_dworker_room(w) - 1;
	struct rgate_danswer a = { 0, 0, 0 };
	struct rgate_request q;
	int err;

	if (!lanes)
		return 0;
	memset(&q, 0, sizeof(q));
	q.op = RGATE_REQ_QUEUE_COMPLETE_MANY;
	q.handle = w->handle;
	q.off = w->off + 8;
	q.len = last * share + rgate_dwarp_from(end, last);
	if (rgate_dlane() <= last) {
		head->id = has ? mine->id : 0;
		head->claim = has ? mine->claim : 0;
		head->len = has ? len : 0;
		head->size = rgate_dlane() == last ? end : share;
		head->reserved = 0;
	}
	err = rgate_dask_call_warp(&w->me, &q, rgate_dlane() == 0, &a);
	return rgate_dwarp_first(err ? 0 : a.value);
}

/*
 * rgate_dworker_complete - what becomes of this lane's task, if it has one
 * @len: bytes of its result, from rgate_dworker_room() on
 * The claim is over then, and the lane has no task. Each lane has a return of its own: 0; -EMSGSIZE:
 * there is no room for as much, and nothing was done; -EAGAIN, -EDQUOT: results have no room, for
 * now, and it is claimed still; -ESTALE: the claim was over before; -ENOENT; -EPIPE; as
 * rgate_queue_complete()
 */
RGATE_DEV int rgate_dworker_complete(struct rgate_dworker *w, struct rgate_dtask *mine,
				     uint32_t len)
{
	const uint32_t has = mine->id && len <= rgate_dworker_room_len(w);
	const uint64_t all = rgate_dworker_complete_all(w, has, mine, len);

	if (has && all >> rgate_dlane() & 1)
		mine->id = 0;
	/* the others ask for themselves, and hear why */
	if (!rgate_dwarp_or(mine->id != 0))
		return 0;
	return rgate_dworker_over(w, RGATE_REQ_QUEUE_COMPLETE, mine, len, 0);
}

/* rgate_dworker_release - it is ready again in @ms, or buried; likewise */
RGATE_DEV int rgate_dworker_release(struct rgate_dworker *w, struct rgate_dtask *mine, uint32_t ms)
{
	return rgate_dworker_over(w, RGATE_REQ_QUEUE_RELEASE, mine, 0, ms);
}

/* rgate_dworker_bury - @len: bytes of the reason, from rgate_dworker_room() on; likewise */
RGATE_DEV int rgate_dworker_bury(struct rgate_dworker *w, struct rgate_dtask *mine, uint32_t len)
{
	return rgate_dworker_over(w, RGATE_REQ_QUEUE_BURY, mine, len, 0);
}

/* rgate_dworker_begin - it runs, if it was claimed without RGATE_CLAIM_BEGIN; likewise */
RGATE_DEV int rgate_dworker_begin(struct rgate_dworker *w, struct rgate_dtask *mine)
{
	return rgate_dworker_end(w, RGATE_REQ_QUEUE_BEGIN, mine, 0, 0);
}

/* rgate_dworker_touch - its time to run begins anew; likewise */
RGATE_DEV int rgate_dworker_touch(struct rgate_dworker *w, struct rgate_dtask *mine)
{
	return rgate_dworker_end(w, RGATE_REQ_QUEUE_TOUCH, mine, 0, 0);
}

#endif
