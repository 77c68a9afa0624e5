/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Requests of a GPU: kernels write them into the rings of a session (<ringgate/request.h>), and
 * look for their completions, which the CPU has no part in handing over.
 *
 *	struct rgate_dasker me;				a thread's own
 *
 *	rgate_dasker_init(&me, &ask, 0);		ask: of rgate_gpu_session_view()
 *	if (!rgate_dask_submit(&me, &req, &ticket))
 *		got = rgate_dask_wait(&me, ticket, &answer, 1000000);
 *	rgate_dasker_fini(&me);
 *
 * Any number of threads ask at once. Of the host's words each has one writer at a time:
 *
 *	a cell		of the device's memory is taken for the answer, by an atomic there
 *	places		of the ring by a counter there; room is known from the credits
 *	slots		are written, the seq of the first one last, with one fence for all: the
 *			engine takes them in their order
 *	completions	are looked for by those who wait, one at a time, each for all of them: it
 *			puts them into the cells, and gives the credits
 *
 * A ticket names a request until its answer is taken, by one thread, any: also in a later launch.
 * What a request names of the session's memory is the engine's as long. Nothing here waits longer
 * than it is told to, and all of it ends with -EPIPE once the session is over.
 */
#ifndef RINGGATE_GPU_ASK_CUH
#define RINGGATE_GPU_ASK_CUH

#include <string.h>

#include <ringgate/gpu/answer.cuh>

#define RGATE_DASK_HOLD		32U	/* looks by one who waits, before others may */
#define RGATE_DASK_HOLD_WARP	8U	/* by a warp that does */
#define RGATE_DASK_VAIN		5U	/* a pause is at most 2 us << this */
/*
 * An answer that has not come by so long after its deadline never will: a minute. Every request
 * ends before, by its deadline or with its session.
 */
#define RGATE_DASK_LATE		60000000000ULL

/*
 * There was no place: completions that are there make room, whoever they are for. Those who need
 * several cells come again at different times, or each would take what the others need, and
 * later each time.
 */
RGATE_DEV int rgate_dask_full(struct rgate_dasker *me)
{
	struct rgate_danswer none;
	uint64_t from, pos;

	if (rgate_dask_over(me->ask))
		return -EPIPE;
	rgate_dpause((me->rover += 2654435769U) >> (21 - me->in_vain));
	me->in_vain += me->in_vain < RGATE_DASK_VAIN;
	if (!rgate_dask_lock(me->ask, &from))
		return -EAGAIN;
	pos = from;
	rgate_dask_take_some(me, 0, &none, &pos, RGATE_REQ_BATCH);
	if (pos == from)
		rgate_dask_idle(me->ask);
	rgate_dask_unlock(me->ask, pos);
	return -EAGAIN;
}

/*
 * rgate_dask_submit_many - one thread: @n requests in a row, 32 at most, or none of them
 * @reqs: are copied; owner, cookie and seq are filled in; not with RGATE_REQ_MULTI
 * @tickets: out, one each, for waiting and cancelling; 0 for one with RGATE_REQ_NO_COMPLETION
 * What this thread has written to the session's memory, and knows of others' writes by barriers
 * and acquires, is visible to who serves the requests.
 * -EAGAIN: no place, or no cell: answers have to be taken, or the engine is busy; -EPIPE: the
 * session is over; -EINVAL: n.
 */
RGATE_DEV int rgate_dask_submit_many(struct rgate_dasker *me, const struct rgate_request *reqs,
				     uint32_t n, uint64_t *tickets)
{
	uint32_t i, some = 1;
	uint64_t pos = 0;

	if (!n || n > RGATE_DASK_MANY)
		return -EINVAL;
	for (i = 0; i < n && some; i++) {
		tickets[i] = 0;
		if (reqs[i].flags & RGATE_REQ_NO_COMPLETION)
			continue;
		tickets[i] = rgate_dcell_take(me);
		some = tickets[i] != 0;
	}
	if (!some || !rgate_dask_claim(me, n, &pos)) {
		while (i--)
			rgate_dcell_give_up(me->ask, tickets[i]);
		return rgate_dask_full(me);
	}
	me->in_vain = 0;
	for (i = 1; i < n; i++) {
		rgate_dask_write(me->ask, pos + i, &reqs[i], tickets[i]);
		rgate_dask_follow(me->ask, pos + i);
	}
	rgate_dask_write(me->ask, pos, &reqs[0], tickets[0]);
	rgate_dask_publish(me->ask, pos);
	return 0;
}

/* rgate_dask_submit - the same for one */
RGATE_DEV int rgate_dask_submit(struct rgate_dasker *me, const struct rgate_request *req,
				uint64_t *ticket)
{
	return rgate_dask_submit_many(me, req, 1, ticket);
}

/*
 * rgate_dask_submit_warp - the whole warp: a request of each lane that has one, or none of them
 * @has: this lane has one
 * They follow each other in the lanes' order, one fence is before all of them. Returns the same
 * in each lane, as rgate_dask_submit_many(). What any lane has written to the session's memory is
 * visible to who serves them.
 */
RGATE_DEV int rgate_dask_submit_warp(struct rgate_dasker *me, const struct rgate_request *req,
				     uint32_t has, uint64_t *ticket)
{
	const uint32_t bit = has ? 1U << rgate_dlane() : 0, all = rgate_dwarp_or(bit);
	const uint32_t n = rgate_dcount(all);
	const uint32_t rank = rgate_dcount(all & ((1U << rgate_dlane()) - 1));
	uint64_t pos = 0, ok = 0;
	uint32_t none = 0;

	*ticket = 0;
	if (has && !(req->flags & RGATE_REQ_NO_COMPLETION)) {
		*ticket = rgate_dcell_take(me);
		none = !*ticket;
	}
	if (!rgate_dwarp_or(none) && rgate_dlane() == 0)
		ok = n && rgate_dask_claim(me, n, &pos);
	ok = rgate_dwarp_first(ok);
	if (!ok) {
		rgate_dcell_give_up(me->ask, *ticket);
		ok = rgate_dlane() == 0 && n ? (uint64_t)rgate_dask_full(me) : 0;
		return n ? (int)rgate_dwarp_first(ok) : -EINVAL;
	}
	me->in_vain = 0;
	/* the barrier hands on what the first lane acquired of the limit */
	rgate_dwarp_sync();
	pos = rgate_dwarp_first(pos) + rank;
	if (has) {
		rgate_dask_write(me->ask, pos, req, *ticket);
		if (rank)
			rgate_dask_follow(me->ask, pos);
	}
	/* and this one all lanes' writes to who publishes them */
	rgate_dwarp_sync();
	if (has && !rank)
		rgate_dask_publish(me->ask, pos);
	return 0;
}

/*
 * rgate_dask_cancel - one thread: submits a RGATE_REQ_CANCEL
 * @target: a ticket; @ticket: out, of this request, whose result is that of
 *	rgate_session_cancel(). As rgate_dask_submit().
 */
RGATE_DEV int rgate_dask_cancel(struct rgate_dasker *me, uint64_t target, uint64_t *ticket)
{
	struct rgate_request q;

	memset(&q, 0, sizeof(q));
	q.op = RGATE_REQ_CANCEL;
	q.a0 = target;
	return rgate_dask_submit(me, &q, ticket);
}

/*
 * rgate_dask_poll - one thread: is the answer there?
 * 1: it is, and the ticket is over; 0: not yet; -EPIPE: nor will it be; -EINVAL: no such ticket.
 * What the request wrote to the session's memory is visible.
 */
RGATE_DEV int rgate_dask_poll(struct rgate_dasker *me, uint64_t ticket, struct rgate_danswer *out)
{
	int got = rgate_dask_got(me, ticket, out);
	uint64_t from, pos;
	uint32_t over;

	if (got)
		return got;
	/* before the look: what was published before the end is taken still */
	over = rgate_dask_over(me->ask);
	if (!rgate_dask_lock(me->ask, &from))
		return 0;
	pos = from;
	got = rgate_dask_got(me, ticket, out);
	if (!got)
		got = rgate_dask_take_some(me, ticket, out, &pos, RGATE_REQ_BATCH);
	if (!got && pos == from)
		rgate_dask_ask_over(me->ask);
	rgate_dask_unlock(me->ask, pos);
	return got || !over || pos != from ? got : -EPIPE;
}

/* One thread, which waits: looks for all that do, for a while; 1, 0, -EINVAL */
RGATE_DEV int rgate_dask_look(struct rgate_dasker *me, uint64_t ticket, struct rgate_danswer *out)
{
	struct rgate_dpair next;
	uint64_t from, pos;
	uint32_t i;
	int got;

	if (!rgate_dask_lock(me->ask, &from)) {
		rgate_dpause(100);
		return rgate_dask_got(me, ticket, out);
	}
	pos = from;
	/*
	 * Brought by who had the lock; as long as it is held nobody else brings it. Not with the
	 * first look under way: that came too early, mostly, and one more is a round over the link.
	 */
	got = rgate_dask_got(me, ticket, out);
	next = rgate_dask_peek(me->ask, pos);
	for (i = 0; i < RGATE_DASK_HOLD && !got; i++) {
		got = rgate_dask_take(me, ticket, out, &pos, next);
		if (!got)
			next = rgate_dask_peek(me->ask, pos);
	}
	if (!got && pos == from)
		rgate_dask_ask_over(me->ask);
	rgate_dask_unlock(me->ask, pos);
	return got;
}

/*
 * rgate_dask_wait - one thread: until the answer is there
 * @limit_ns: but no longer than that, by and large
 * As rgate_dask_poll(); 0: the time is over, and the ticket is not.
 */
RGATE_DEV int rgate_dask_wait(struct rgate_dasker *me, uint64_t ticket, struct rgate_danswer *out,
			      uint64_t limit_ns)
{
	const uint64_t since = rgate_dnow();
	uint32_t round;
	int got = 0;

	RGATE_DROLL
	for (round = 1; !got; round++) {
		got = rgate_dask_look(me, ticket, out);
		if (!got && round % RGATE_DASK_CHECK == 0 && rgate_dask_over(me->ask))
			got = rgate_dask_poll(me, ticket, out);
		if (!got && rgate_dnow() - since >= limit_ns)
			break;
	}
	return got;
}

/*
 * The whole warp, the first lane of which has the lock: looks for all who wait, until its own lanes
 * have their answers, for a while; how many came. @got: in and out, each lane's, where it has a
 * @ticket; @fenced: out, what rgate_dask_unlock_warp() asks
 */
RGATE_DEV uint32_t rgate_dask_look_warp(struct rgate_dasker *me, uint64_t pos, uint64_t ticket,
					struct rgate_danswer *out, int *got, uint32_t *fenced)
{
	uint32_t i, some = 0, n = 0;

	*fenced = 0;
	RGATE_DROLL
	for (i = 0; i < RGATE_DASK_HOLD_WARP; i++) {
		/* the first time: what who had the lock before has brought */
		if (ticket && !*got)
			*got = rgate_dask_got_locked(me, ticket, out);
		if (some < RGATE_DASK_EACH * RGATE_DWARP && !rgate_dwarp_or(ticket && !*got))
			return n;
		some = rgate_dask_take_warp(me->ask, pos + n);
		n += some;
		*fenced = some != 0;
		if (!some && rgate_dlane() == 0)
			rgate_dask_idle(me->ask);
	}
	if (ticket && !*got)
		*got = rgate_dask_got_locked(me, ticket, out);
	return n;
}

/*
 * rgate_dask_wait_warp - the whole warp: until all lanes have their answers
 * @ticket: 0: this lane waits for none
 * Up to 128 completions are looked for at once. Returns what rgate_dask_wait() does for each lane,
 * 0 where it waits for none.
 */
RGATE_DEV int rgate_dask_wait_warp(struct rgate_dasker *me, uint64_t ticket,
				   struct rgate_danswer *out, uint64_t limit_ns)
{
	const struct rgate_dask *a = me->ask;
	const uint64_t since = rgate_dnow();
	uint32_t over = 0, locked = 0, fenced, have, n;
	uint64_t pos = 0;
	int got = 0;

	RGATE_DROLL
	while (rgate_dwarp_or(ticket && !got)) {
		n = 0;
		have = !rgate_dwarp_first(locked) && rgate_dask_lock_warp(a, &pos);
		if (have) {
			n = rgate_dask_look_warp(me, pos, ticket, out, &got, &fenced);
			rgate_dask_unlock_warp(a, pos + n, fenced);
		} else {
			rgate_dpause(100);
			/* both in one round */
			locked = rgate_dask_locked(a);
			if (ticket && !got)
				got = rgate_dask_got(me, ticket, out);
		}
		if (!rgate_dwarp_or(ticket && !got))
			break;
		/* known before a look that found nothing: nothing will come any more */
		if (over && have && !n)
			return ticket && !got ? -EPIPE : got;
		over = (uint32_t)rgate_dwarp_first(rgate_dask_over(a));
		if (rgate_dwarp_first(rgate_dnow() - since >= limit_ns))
			break;
	}
	return got;
}

/*
 * rgate_dask_call_warp - the whole warp: a request of each lane that @has one, and its answer
 * @req: with the same deadline_us in each lane, which is what bounds the wait
 * Returns 0: it has ended, or this lane has none; -EPIPE: the session is over; -ETIMEDOUT: no answer
 * came a minute after the deadline. That answer may come still, and write the memory that the
 * request named: so every later call of the warp ends with -EPIPE.
 */
RGATE_DEV int rgate_dask_call_warp(struct rgate_dasker *me, const struct rgate_request *req,
				   uint32_t has, struct rgate_danswer *out)
{
	uint64_t ticket;
	int err;

	if (rgate_dwarp_or(me->lost))
		return -EPIPE;
	/* no place: answers that others wait for make some */
	while ((err = rgate_dask_submit_warp(me, req, has, &ticket)) == -EAGAIN)
		;
	if (err)
		return err == -EINVAL ? 0 : err;	/* -EINVAL: no lane has one */
	err = rgate_dask_wait_warp(me, ticket, out, RGATE_DASK_LATE + req->deadline_us * 1000ULL);
	me->lost = has && err != 1;
	/* hands on what a lane acquired with its answer */
	rgate_dwarp_sync();
	if (!has || err == 1)
		return 0;
	return err ? err : -ETIMEDOUT;
}

/*
 * rgate_dask_fetch - the whole warp: @bytes of the session's memory, from @off on, to @near
 * @off, @near: multiples of 16; up to 15 bytes behind @bytes come as well
 * They were written before an answer that a lane has acquired before a barrier, so what the
 * processor has cached of former ones is not taken for them.
 */
RGATE_DEV void rgate_dask_fetch(const struct rgate_dask *a, uint64_t off, uint32_t bytes, void *near)
{
	const unsigned char *from = a->memory + off;
	const uint32_t n = (bytes + 15) / 16, step = RGATE_DWARP;
	struct rgate_dvec v[4], *to = (struct rgate_dvec *)near;
	uint32_t at, i;

	RGATE_DROLL
	for (at = rgate_dlane(); at < n; at += 4 * step) {
		RGATE_DUNROLL
		for (i = 0; i < 4; i++)
			if (at + i * step < n)
				v[i] = rgate_dload16(from + (size_t)(at + i * step) * 16);
		RGATE_DUNROLL
		for (i = 0; i < 4; i++)
			if (at + i * step < n)
				to[at + i * step] = v[i];
	}
	rgate_dwarp_sync();
}

/*
 * rgate_dask_serve_warp - the whole warp: takes completions for all who wait, and does nothing else
 * @stop: a word of the device's memory; until it is not 0
 * Those who wait look at the device's memory alone meanwhile. Returns 0, or -EPIPE: the session
 * is over. Without such a warp those who wait take them by turns.
 */
RGATE_DEV int rgate_dask_serve_warp(const struct rgate_dask *a, const uint64_t *stop)
{
	uint32_t have = 0, over = 0, n = 1, some = 1, round;
	uint64_t pos = 0;

	while (!have && !rgate_dwarp_first(rgate_dgpu_load(stop)))
		have = rgate_dask_lock_warp(a, &pos);
	RGATE_DROLL
	for (round = 0; have; round++) {
		/* rounds of the device's memory: not with each look */
		if (round % RGATE_DASK_CHECK == 0 || !n) {
			if (rgate_dwarp_first(rgate_dgpu_load(stop)) || (over && !some))
				break;
			over = (uint32_t)rgate_dwarp_first(rgate_dask_over(a));
			some = 0;
		}
		n = rgate_dask_take_warp(a, pos);
		pos += n;
		some += n;
		if (!n && rgate_dlane() == 0)
			rgate_dask_idle(a);
	}
	if (have)
		rgate_dask_unlock_warp(a, pos, 0);
	return over && !some ? -EPIPE : 0;
}

#ifdef __CUDACC__

/*
 * rgate_dask_submit_block - the whole block: one request, of its first thread
 * What any thread of the block has written to the session's memory is visible to who serves it.
 * @ticket: out, in each thread; it is the first thread's to wait for and to cancel, or
 * rgate_dask_wait_block()'s. Returns the same in each thread, as rgate_dask_submit().
 */
RGATE_DEV int rgate_dask_submit_block(struct rgate_dasker *me, const struct rgate_request *req,
				      uint64_t *ticket)
{
	__shared__ uint64_t given;
	__shared__ int err;

	__syncthreads();
	if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
		given = 0;
		err = rgate_dask_submit(me, req, &given);
	}
	__syncthreads();
	*ticket = given;
	return err;
}

/* rgate_dask_wait_block - the whole block: for one ticket; @out and the return are each thread's */
RGATE_DEV int rgate_dask_wait_block(struct rgate_dasker *me, uint64_t ticket,
				    struct rgate_danswer *out, uint64_t limit_ns)
{
	__shared__ struct rgate_danswer answer;
	__shared__ int got;

	__syncthreads();
	if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)
		got = rgate_dask_wait(me, ticket, &answer, limit_ns);
	/* the barrier hands on what the first thread acquired */
	__syncthreads();
	if (got == 1)
		*out = answer;
	return got;
}

#endif /* __CUDACC__ */
#endif
