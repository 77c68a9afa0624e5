/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Litmus kernels that are the device's alone; for litmus_variant.cuh, in a namespace */

#define LIT_BATCHES	4U
#define LIT_SLOTS	(LIT_BATCHES * RGATE_BATCH)
#define LIT_SLOT_SHIFT	7U	/* a line each */
#define LIT_TAG		64U	/* where in a slot what is looked at lies: behind the header */

/* Weak, as a user's function and rgate_dstage() read and write: may be served by the L1 cache */
RGATE_DEV uint64_t lit_weak(const void *p)
{
	uint64_t v;

	asm volatile("ld.weak.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}

RGATE_DEV void lit_put(void *p, uint64_t v)
{
	asm volatile("st.weak.global.u64 [%0], %1;" :: "l"(p), "l"(v) : "memory");
}

RGATE_DEV uint32_t lit_hash(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15ULL;
	return (uint32_t)(x >> 40);
}

/* Different at each call, mostly nothing */
RGATE_DEV void lit_delay(uint64_t x)
{
	const uint32_t h = lit_hash(x);

	if (h % 4 == 0)
		rgate_dpause(h / 4 % 512);
}

struct lit_tally {
	uint32_t good, stale, early, lost, hung, ahead;
};

/* What a word behind a hand-over holds, and has to */
RGATE_DEV void lit_compare(struct lit_tally *t, uint64_t is, uint64_t want)
{
	if (is == want)
		t->good++;
	else if ((int64_t)(is - want) < 0)
		t->stale++;
	else
		t->early++;
}

RGATE_DEV void lit_end(struct lit_seen *s, const struct lit_tally *t)
{
	atomicAdd(&s->good, t->good);
	atomicAdd(&s->stale, t->stale);
	atomicAdd(&s->early, t->early);
	atomicAdd(&s->lost, t->lost);
	atomicAdd(&s->hung, t->hung);
	atomicAdd(&s->ahead, t->ahead);
	atomicAdd(&s->done, 1);
}

/* Traffic, until @threads of the test are through */
RGATE_DEV void lit_noise(uint32_t *noise, const struct lit_seen *s, uint32_t threads)
{
	uint64_t x = ((uint64_t)blockIdx.x << 32 | threadIdx.x) + clock64();
	uint32_t i, sum = 0;

	while (rgate_dgpu_load((const uint64_t *)&s->done) < threads) {
		for (i = 0; i < 16; i++) {
			uint32_t at = lit_hash(++x) % LIT_NOISE;

			if (lit_hash(x) & 1)
				sum += noise[at];
			else
				noise[at] = sum;
		}
	}
}

/* A ring that one thread of the device fills and another one empties */
struct lit_pair {
	struct rgate_dctx ctx;
	struct rgate_dqueue queue;
	struct rgate_dstate state;
	struct rgate_dpair cell[8];
	uint32_t finished[LIT_BATCHES];
	uint64_t credits[LIT_BATCHES * 16];
	uint64_t results[LIT_BATCHES * 16];
	unsigned char slots[LIT_SLOTS << LIT_SLOT_SHIFT];
};

RGATE_DEV void *lit_slot(const struct lit_pair *p, uint64_t pos)
{
	return (unsigned char *)rgate_dring_slot(&p->ctx.ring[0], pos) + LIT_TAG;
}

/* 0: it took too long */
#define LIT_WAIT(t, c, ns) \
	({ \
		const uint64_t since_ = rgate_dnow(); \
		while (!(c)) { \
			if (rgate_dnow() - since_ > LIT_WAIT_NS) { \
				(t)->hung++; \
				break; \
			} \
			rgate_dpause(ns); \
		} \
		!(t)->hung; \
	})

/* The batch before the one that is number @n has come back: by its count, or by its credit */
RGATE_DEV int lit_back(struct lit_pair *p, uint32_t n, struct lit_tally *t)
{
	const struct rgate_dring *r = &p->ctx.ring[0];
	const uint64_t old = (uint64_t)(n - LIT_BATCHES) * RGATE_BATCH;

	if (n < LIT_BATCHES)
		return 1;
	if (n & 1 ? !LIT_WAIT(t, rgate_dbatch_finished(r, &p->state, old), 20) :
	    !LIT_WAIT(t, rgate_dsys_acquire(&r->credits[n % LIT_BATCHES]) ==
		      rgate_dring_lap(r, old), 20))
		return 0;
	/* what the other one has written meanwhile */
	lit_compare(t, lit_weak(&p->results[n % LIT_BATCHES * 16]), n - LIT_BATCHES + 1);
	return 1;
}

RGATE_DEV void lit_fill(struct lit_pair *p, uint32_t n)
{
	uint32_t i;

	for (i = lit_hash(n) % 4; i < RGATE_BATCH; i += 4)
		lit_put(lit_slot(p, (uint64_t)n * RGATE_BATCH + i), n + 1);
}

RGATE_DEV void lit_give(struct lit_pair *p, uint32_t rounds, struct lit_tally *t)
{
	struct rgate_drun run = { 0, 0, RGATE_BATCH };
	uint32_t n;

	for (n = 0; n < rounds && lit_back(p, n, t); n++) {
		lit_fill(p, n);
		run.pos = (uint64_t)n * RGATE_BATCH;
		rgate_dqueue_put(&p->queue, n, &run);
		lit_delay((uint64_t)n << 32 | blockIdx.x);
	}
}

RGATE_DEV void lit_take(struct lit_pair *p, uint32_t rounds, struct lit_tally *t)
{
	struct rgate_drun run;
	uint32_t n, i;

	for (n = 0; n < rounds && LIT_WAIT(t, rgate_dqueue_take(&p->queue, n, &run), 20); n++) {
		t->lost += run.pos != (uint64_t)n * RGATE_BATCH || run.count != RGATE_BATCH;
		lit_delay((uint64_t)n << 32 | blockIdx.x | 1 << 20);
		for (i = lit_hash(n) % 4; i < RGATE_BATCH; i += 4)
			lit_compare(t, lit_weak(lit_slot(p, (uint64_t)n * RGATE_BATCH + i)), n + 1);
		lit_put(&p->results[n % LIT_BATCHES * 16], n + 1);
		run.pos = (uint64_t)n * RGATE_BATCH;
		run.count = RGATE_BATCH;
		rgate_drun_done(&p->ctx, &run);
	}
}

/* Which pair the second one of this block is of */
RGATE_DEV uint32_t lit_other(enum lit_place place)
{
	return place < LIT_OTHER_BLOCK ? blockIdx.x : (blockIdx.x + gridDim.x / 2) % gridDim.x;
}

/* Cells of the queue, counts and credits of batches */
static __global__ void lit_queue_kernel(struct lit_pair *pairs, enum lit_place place,
					uint32_t rounds, uint32_t *noise, struct lit_seen *s)
{
	const uint32_t taker = place == LIT_SAME_WARP ? 16 : 32;
	struct lit_tally t = { 0 };

	if (threadIdx.x == 0)
		lit_give(&pairs[blockIdx.x], rounds, &t);
	else if (threadIdx.x == taker)
		lit_take(&pairs[lit_other(place)], rounds, &t);
	if (threadIdx.x == 0 || threadIdx.x == taker)
		lit_end(s, &t);
	else if (threadIdx.x >= 64)
		lit_noise(noise, s, 2 * gridDim.x);
}

/* One that polls and its clerk, and a worker: messages, then cells */
static __global__ void lit_mail_kernel(struct lit_pair *pairs, enum lit_place place,
				       uint32_t rounds, uint32_t *noise, struct lit_seen *s)
{
	struct lit_pair *p = &pairs[blockIdx.x], *q = &pairs[lit_other(place)];
	struct lit_tally t = { 0 };
	struct rgate_drun run = { 0, 0, RGATE_BATCH };
	__shared__ struct rgate_dmail mail;
	uint32_t n, got;

	if (threadIdx.x == 0)
		mail.put = mail.got = 0;
	__syncthreads();
	if (threadIdx.x == 0) {
		for (n = 0; n < rounds && lit_back(p, n, &t); n++) {
			lit_fill(p, n);
			run.pos = (uint64_t)n * RGATE_BATCH;
			rgate_dmail_hand(&mail, &run);
			lit_delay((uint64_t)n << 32 | blockIdx.x);
		}
		rgate_dmail_end(&mail);
		lit_end(s, &t);
	} else if (threadIdx.x / 32 == 1) {
		rgate_dclerk(&p->ctx, &mail);
	} else if (threadIdx.x / 32 == 2) {
		for (n = 0; n < rounds; n++) {
			got = 0;
			if (rgate_dlane() == 0)
				got = LIT_WAIT(&t, rgate_dqueue_take(&q->queue, n, &run), 20);
			rgate_dwarp_sync();
			if (!rgate_dwarp_first(got))
				break;
			if (rgate_dlane() % 4 == lit_hash(n) % 4)
				lit_compare(&t, lit_weak(lit_slot(q, (uint64_t)n * RGATE_BATCH +
								 rgate_dlane())), n + 1);
			rgate_dwarp_sync();
			if (rgate_dlane() == 0) {
				t.lost += run.pos != (uint64_t)n * RGATE_BATCH;
				run.pos = (uint64_t)n * RGATE_BATCH;
				lit_put(&q->results[n % LIT_BATCHES * 16], n + 1);
				rgate_drun_done(&q->ctx, &run);
			}
			rgate_dwarp_sync();
		}
		lit_end(s, &t);
	} else if (threadIdx.x / 32 >= 3) {
		lit_noise(noise, s, 33 * gridDim.x);
	}
}

/* An output ring in the device's memory, and one that takes from it */
struct lit_out {
	struct rgate_dctx ctx;
	struct rgate_dring back;	/* the same ring, for who takes */
	struct rgate_dctl ctl;
	struct rgate_doutstate state;
	struct rgate_prod prod;
	uint64_t credits[LIT_BATCHES];
	uint32_t filled[LIT_BATCHES];
	unsigned char slots[LIT_SLOTS << LIT_SLOT_SHIFT];
};

/* Slots that a warp asks for in round @i; LIT_OUT_MANY in 32 rounds */
#define LIT_OUT_WANT(i)	(1 + (i) * 7 % 32)
#define LIT_OUT_MANY	(33 * 16)

/* The whole warp */
RGATE_DEV void lit_out_give(struct lit_out *o, uint32_t rounds)
{
	const struct rgate_dout *out = &o->ctx.out;
	struct rgate_dhint hint = { 0, 0 };
	uint32_t i, n;
	uint64_t pos;

	for (i = 0; i < rounds; i++) {
		n = LIT_OUT_WANT(i);
		pos = rgate_dout_reserve(&o->ctx, &hint, &n);
		if (rgate_dlane() < n) {
			struct rgate_slot *s = rgate_dout_slot(out, pos + rgate_dlane());

			rgate_dout_header(s, NULL, 8, RGATE_DOUT_FLAGS);
			lit_put((unsigned char *)s + LIT_TAG, pos + rgate_dlane() + 1);
		}
		rgate_dout_show(out, pos, n);
		if (rgate_dlane() == 0)
			rgate_dout_pass(out, pos, n, 8 * n);
		rgate_dwarp_sync();
	}
}

/*
 * The whole warp: slots from @pos on that are published, as a runtime looks that has another one's
 * output ring: at the ends of batches, and at single slots. What it may count on beside is that
 * all of a batch is published whose end is: seq is loaded without acquire here, as who saw the
 * end need not look at it.
 */
RGATE_DEV uint32_t lit_out_there(const struct rgate_dring *r, uint64_t pos, struct lit_tally *t)
{
	uint32_t n, full, i;

	n = rgate_dring_look(r, pos, LIT_BATCHES, RGATE_DLOOK_SLOTS, &full);
	for (i = rgate_dlane(); full && i < n; i += 32)
		t->ahead += rgate_dsys_load(&rgate_dring_slot(r, pos + i)->seq) !=
			    rgate_dring_lap(r, pos + i);
	return n;
}

/* What a lane has seen of @n slots from @pos on; a part of them are of the warp's other lanes */
RGATE_DEV void lit_out_check(const struct rgate_dring *r, uint64_t pos, uint32_t n,
			     struct lit_tally *t)
{
	uint32_t i;

	for (i = rgate_dlane(); i < n; i += 32) {
		const unsigned char *s = (const unsigned char *)rgate_dring_slot(r, pos + i);

		lit_compare(t, lit_weak(s + LIT_TAG), pos + i + 1);
		t->lost += ((const struct rgate_slot *)s)->len != 8;
	}
}

RGATE_DEV void lit_out_take(struct lit_out *o, uint64_t total, struct lit_tally *t)
{
	const struct rgate_dring *r = &o->back;
	uint64_t pos = 0, b, since = rgate_dnow();
	uint32_t n;

	while (pos < total) {
		n = lit_out_there(r, pos, t);
		if (!n && rgate_dwarp_first(rgate_dnow() - since > LIT_WAIT_NS)) {
			t->hung++;
			return;
		}
		lit_out_check(r, pos, n, t);
		rgate_dwarp_sync();
		if (rgate_dlane() == 0)
			for (b = pos / RGATE_BATCH; b < (pos + n) / RGATE_BATCH; b++)
				rgate_dring_release(r, b * RGATE_BATCH);
		rgate_dwarp_sync();
		pos += n;
		since = n ? rgate_dnow() : since;
	}
}

/* One thread: all before tail, and before head, is there; it may have been written again */
RGATE_DEV void lit_out_watch(struct lit_out *o, uint64_t total, struct lit_tally *t)
{
	const uint64_t since = rgate_dnow();
	uint64_t at = 0, is;
	uint32_t i;

	for (i = 0; at < total && rgate_dnow() - since < LIT_WAIT_NS; i++) {
		if (i & 1) {
			rgate_dout_report(&o->ctx.out);
			at = rgate_dsys_acquire(&o->prod.head);
		} else {
			at = rgate_dgpu_acquire(&o->state.tail);
		}
		if (!at)
			continue;
		is = lit_weak((unsigned char *)rgate_dout_slot(&o->ctx.out, at - 1) + LIT_TAG);
		if (is >= at)
			t->good++;
		else
			t->stale++;
	}
}

/* Room, slots and tail of an output ring */
static __global__ void lit_out_kernel(struct lit_out *outs, enum lit_place place,
				      uint32_t rounds, uint32_t *noise, struct lit_seen *s)
{
	const uint64_t total = 2ULL * rounds / 32 * LIT_OUT_MANY;
	struct lit_out *o = &outs[blockIdx.x], *other = &outs[lit_other(place)];
	struct lit_tally t = { 0 };
	const uint32_t warp = threadIdx.x / 32;

	if (warp == 0)
		lit_out_take(o, total, &t);
	else if (warp == 1)
		lit_out_give(o, rounds);
	else if (warp == 2)
		lit_out_give(other, rounds);
	else if (warp == 3 && rgate_dlane() == 0)
		lit_out_watch(other, total, &t);
	else if (warp > 3)
		lit_noise(noise, s, 33 * gridDim.x);
	if (warp == 0 || (warp == 3 && rgate_dlane() == 0))
		lit_end(s, &t);
}

/* What a lock is for, in lines of their own */
struct lit_lock {
	struct rgate_daskstate ask;
	uint64_t lock, pad[15];
	uint32_t bit, pad2[31];
	uint64_t word[4][16];
};

/* Is it this thread's now? By each of the three ways that the headers have */
RGATE_DEV uint32_t lit_lock_take(struct lit_lock *l, const struct rgate_dask *a, uint32_t how)
{
	uint64_t pos;

	if (how == 0)
		return rgate_dgpu_cas(&l->lock, 0, 1) == 0;
	if (how == 1)
		return rgate_dask_lock(a, &pos);
	return rgate_dcell_bit(&l->bit, 0) != 0;
}

RGATE_DEV void lit_lock_give(struct lit_lock *l, const struct rgate_dask *a, uint32_t how)
{
	if (how == 0)
		rgate_dgpu_release(&l->lock, 0);
	else if (how == 1)
		rgate_dask_unlock(a, 0);
	else
		rgate_dcell_free(a, 1);
}

/*
 * Locks: each thread adds 1 to words that only who holds it has. Threads of a lock are lanes of
 * one warp, warps of one block, or of blocks all over the device.
 */
static __global__ void lit_lock_kernel(struct lit_lock *locks, uint32_t nlocks,
				       enum lit_place place, uint32_t rounds, uint32_t how,
				       uint32_t *noise, struct lit_seen *s)
{
	const uint32_t at = place < LIT_OTHER_BLOCK ? blockIdx.x : blockIdx.x % nlocks;
	const uint32_t lane = rgate_dlane(), warp = threadIdx.x / 32;
	struct lit_tally t = { 0 };
	struct lit_lock *l = &locks[at];
	struct rgate_dask a;
	uint64_t was;
	uint32_t i, k;

	if (warp > 1) {
		lit_noise(noise, s, 2 * gridDim.x);
		return;
	}
	if (place == LIT_SAME_WARP ? warp || lane % 16 : lane)
		return;
	memset(&a, 0, sizeof(a));
	a.state = &l->ask;
	a.free = &l->bit;
	for (i = 0; i < rounds && LIT_WAIT(&t, lit_lock_take(l, &a, how), 50); i++) {
		was = lit_weak(&l->word[0][0]);
		lit_put(&l->word[0][0], was + 1);
		for (k = 1; k < 4; k++) {
			/* they are the same, unless one of them is older */
			lit_compare(&t, lit_weak(&l->word[k][0]), was);
			lit_put(&l->word[k][0], was + 1);
		}
		lit_lock_give(l, &a, how);
		lit_delay((uint64_t)i << 32 | blockIdx.x << 6 | warp << 5 | lane);
	}
	lit_end(s, &t);
}

/* The last ticket that polling warps gave out, once they are out: one hand-over an instance */
static __global__ void lit_last_kernel(struct lit_pair *pairs, enum lit_place place,
				       uint32_t *noise, struct lit_seen *s)
{
	struct lit_pair *p = &pairs[blockIdx.x], *q = &pairs[lit_other(place)];
	const uint32_t taker = place == LIT_SAME_WARP ? 16 : 32;
	struct lit_tally t = { 0 };
	struct rgate_drun run = { 0, 0, RGATE_BATCH };
	uint32_t n;

	if (threadIdx.x == 0) {
		n = 1 + lit_hash(clock64()) % 4;
		for (run.pos = 0; run.pos < n; run.pos++)
			rgate_dqueue_put(&p->queue, rgate_dgpu_add(&p->queue.tail, 1), &run);
		lit_put(&p->results[0], n);
		rgate_dgpu_add32(&p->ctx.share->pollers_out, 1);
		lit_end(s, &t);
	} else if (threadIdx.x == taker) {
		/* into the cache: what it has to be is not that */
		n = (uint32_t)lit_weak(&q->results[0]);
		for (; rgate_dworker_wait(&q->ctx, n, &run); n++)
			;
		/* all that the one who is out had done comes before */
		if (lit_weak(&q->results[0]) == n && rgate_dgpu_load(&q->queue.tail) == n)
			t.good++;
		else
			t.stale++;
		lit_end(s, &t);
	} else if (threadIdx.x >= 64) {
		lit_noise(noise, s, 2 * gridDim.x);
	}
}
