/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The persistent consumer's inside. One warp looks at a ring (or at several) and hands
 * runs of slots to the others by a queue in the device's memory; whoever finishes the
 * last slot of a batch returns it to the producer.
 *
 * What makes a packet's bytes visible to the warp that reads them: producer's release of
 * seq -> the polling warp's acquire.sys -> its release.gpu of the queue's cell -> the
 * worker's acquire.gpu of it. And back: reads of all warps -> their acq_rel.gpu additions
 * to the batch's count -> the last one's release.sys of the credit -> the producer.
 */
#ifndef RINGGATE_GPU_POLL_CUH
#define RINGGATE_GPU_POLL_CUH

#include <ringgate/gpu/context.cuh>

#define RGATE_DSTOP_ROUNDS	64U	/* rounds between two readings of ctl->stop */
#define RGATE_DREPORT_LOOKS	64U	/* looks between two reports */
#define RGATE_DPOLL_LOOKS	8U	/* looks in a row by a warp with one ring */
#define RGATE_DPOLL_AHEAD	96U	/* batches that all polling warps look ahead */
#define RGATE_DPOLL_LEAST	8U	/* ... and each at least may */

/* A run of slots inside one batch */
struct rgate_drun {
	uint64_t pos;
	uint32_t ring;
	uint32_t count;
};

/*
 * The queue
 */

/* One thread: fills the cell of @ticket */
RGATE_DEV void rgate_dqueue_put(struct rgate_dqueue *q, uint64_t ticket,
				const struct rgate_drun *run)
{
	struct rgate_dpair *c = &q->cell[ticket & q->mask];

	/* the one who emptied it has read it */
	while (RGATE_DCELL_TURN(rgate_dgpu_pair_acquire(c).v[1]) != (uint32_t)ticket)
		rgate_dpause(32);
	rgate_dgpu_pair_release(c, run->pos,
				RGATE_DCELL_WORD(ticket + 1, run->ring, run->count));
}

/* One thread: takes what is in the cell of @ticket. 0: nothing yet */
RGATE_DEV int rgate_dqueue_take(struct rgate_dqueue *q, uint64_t ticket,
				struct rgate_drun *run)
{
	struct rgate_dpair *c = &q->cell[ticket & q->mask];
	struct rgate_dpair v = rgate_dgpu_pair_acquire(c);

	if (RGATE_DCELL_TURN(v.v[1]) != (uint32_t)ticket + 1)
		return 0;
	run->pos = v.v[0];
	run->ring = RGATE_DCELL_RING(v.v[1]);
	run->count = RGATE_DCELL_COUNT(v.v[1]);
	rgate_dgpu_pair_store(c, 0, RGATE_DCELL_WORD(ticket + q->mask + 1, 0, 0));
	return 1;
}

/* The whole warp: @n slots from @pos on, of any number of batches, in pieces */
RGATE_DEV void rgate_dqueue_hand(const struct rgate_dctx *ctx, uint32_t ring, uint64_t pos,
				 uint32_t n)
{
	/* pieces do not cross a border of grain, a power of two, nor so one of a batch */
	const uint32_t shift = rgate_dones(ctx->grain - 1);
	uint64_t first = pos >> shift, end = (pos + n + ctx->grain - 1) >> shift;
	uint32_t pieces = (uint32_t)(end - first), i;
	uint64_t ticket = 0;

	if (rgate_dlane() == 0)
		ticket = rgate_dgpu_add(&ctx->queue->tail, pieces);
	ticket = rgate_dwarp_first(ticket);
	RGATE_DROLL
	for (i = rgate_dlane(); i < pieces; i += RGATE_DWARP) {
		uint64_t from = (first + i) * ctx->grain, to = from + ctx->grain;
		struct rgate_drun run;

		run.pos = from < pos ? pos : from;
		run.ring = ring;
		run.count = (uint32_t)((to > pos + n ? pos + n : to) - run.pos);
		rgate_dqueue_put(ctx->queue, ticket + i, &run);
	}
	rgate_dwarp_sync();
}

/*
 * Finishing
 */

/* @n times the lap, as the batch's count has it when that lap is over; may wrap */
RGATE_DEV uint32_t rgate_dlap_count(const struct rgate_dring *r, uint64_t pos)
{
	return (uint32_t)rgate_dring_lap(r, pos) * RGATE_BATCH;
}

RGATE_DEV uint32_t *rgate_dbatch_count(const struct rgate_dring *r,
				       const struct rgate_dstate *st, uint64_t pos)
{
	return &st->finished[(pos & r->mask) >> RGATE_BATCH_SHIFT];
}

/* One thread, after a barrier with all that had to do with it: all of @run is done with */
RGATE_DEV void rgate_drun_done(const struct rgate_dctx *ctx, const struct rgate_drun *run)
{
	const struct rgate_dring *r = &ctx->ring[run->ring];
	uint32_t *count = rgate_dbatch_count(r, &ctx->state[run->ring], run->pos);

	if (rgate_dgpu_add32(count, run->count) + run->count == rgate_dlap_count(r, run->pos))
		rgate_dring_release(r, run->pos);
}

/* One thread: counts what became of a run */
RGATE_DEV void rgate_drun_count(const struct rgate_dctx *ctx, uint32_t ring,
				uint32_t packets, uint64_t bytes, uint64_t ns)
{
	struct rgate_dstate *st = &ctx->state[ring];

	rgate_dgpu_add(&st->packets, packets);
	rgate_dgpu_add(&st->bytes, bytes);
	rgate_dgpu_add(&st->work_ns, ns);
}

/*
 * Polling
 */

/*
 * Is the batch that @pos begins finished? By now it may be in use for a later lap. The
 * acquire brings what was written on the way.
 */
RGATE_DEV int rgate_dbatch_finished(const struct rgate_dring *r, const struct rgate_dstate *st,
				    uint64_t pos)
{
	return (int32_t)(rgate_dgpu_acquire32(rgate_dbatch_count(r, st, pos)) -
			 rgate_dlap_count(r, pos)) >= 0;
}

/* The whole warp: position before which all is finished */
RGATE_DEV uint64_t rgate_dpoll_done(const struct rgate_dctx *ctx, const struct rgate_dpoll *p)
{
	const struct rgate_dring *r = &ctx->ring[p->ring];
	const struct rgate_dstate *st = &ctx->state[p->ring];
	uint64_t b = p->done >> RGATE_BATCH_SHIFT, top = p->next >> RGATE_BATCH_SHIFT, pos;
	uint32_t lane, mask, n, left, part = (uint32_t)(p->next & (RGATE_BATCH - 1));

	RGATE_DROLL
	for (; b < top; b += n) {
		mask = 0;
		RGATE_DROLL
		for (lane = rgate_dlane(); lane < 32; lane += RGATE_DWARP)
			if (b + lane >= top ||
			    rgate_dbatch_finished(r, st, (b + lane) << RGATE_BATCH_SHIFT))
				mask |= 1U << lane;
		n = rgate_dones(rgate_dwarp_or(mask));
		rgate_dwarp_sync();
		if (n < 32) {
			pos = (b + n) << RGATE_BATCH_SHIFT;
			return pos > p->done ? pos : p->done;
		}
	}
	pos = top << RGATE_BATCH_SHIFT;
	left = rgate_dlap_count(r, pos) -
	       rgate_dgpu_acquire32(rgate_dbatch_count(r, st, pos));
	if (left == RGATE_BATCH - part)
		return p->next;
	return pos > p->done ? pos : p->done;
}

/* The whole warp: tells the host how far this ring is */
RGATE_DEV void rgate_dpoll_report(const struct rgate_dctx *ctx, struct rgate_dpoll *p)
{
	struct rgate_dstate *st = &ctx->state[p->ring];
	struct rgate_dstat *to = &ctx->stat[p->ring];
	uint64_t done = rgate_dpoll_done(ctx, p);

	rgate_dwarp_sync();
	if (rgate_dlane() == 0) {
		p->done = done;
		rgate_dsys_store(&to->next, p->next);
		rgate_dsys_store(&to->packets, rgate_dgpu_load(&st->packets));
		rgate_dsys_store(&to->bytes, rgate_dgpu_load(&st->bytes));
		rgate_dsys_store(&to->work_ns, rgate_dgpu_load(&st->work_ns));
		rgate_dsys_store(&to->looks, p->looks);
		rgate_dsys_store(&to->empty, p->empty);
		rgate_dsys_store(&to->direct, p->direct);
		rgate_dsys_release(&to->done, done);
		/* drained, too */
		rgate_dsys_store(&to->ended, p->ended && done == p->next);
	}
	rgate_dwarp_sync();
}

/*
 * Only in the first lap: a batch after the oldest that was not returned may have been,
 * by another consumer, before this one began. The host has marked it as finished.
 */
RGATE_DEV int rgate_dpoll_returned(const struct rgate_dctx *ctx, const struct rgate_dpoll *p,
				   uint64_t pos)
{
	return pos < p->check_end && !(pos & (RGATE_BATCH - 1)) &&
	       rgate_dbatch_finished(&ctx->ring[p->ring], &ctx->state[p->ring], pos);
}

/* The whole warp: of the @n batches from number @b on, those of which the lap before is finished */
RGATE_DEV uint32_t rgate_dpoll_over(const struct rgate_dctx *ctx, uint32_t ring, uint64_t b,
				    uint32_t n)
{
	const struct rgate_dstate *st = &ctx->state[ring];
	const struct rgate_dring *r = &ctx->ring[ring];
	uint32_t i, lane, over, mask[RGATE_DLOOK_AHEAD / 32];

	/* all are under way before the first one is looked at */
	RGATE_DUNROLL
	for (i = 0; i < RGATE_DLOOK_AHEAD / 32; i++) {
		mask[i] = 0;
		RGATE_DROLL
		for (lane = rgate_dlane(); lane < 32 && i * 32 < n; lane += RGATE_DWARP) {
			const uint64_t pos = (b + i * 32 + lane) << RGATE_BATCH_SHIFT;
			const uint32_t count = rgate_dgpu_load32(rgate_dbatch_count(r, st, pos));

			if ((int32_t)(count + RGATE_BATCH - rgate_dlap_count(r, pos)) >= 0)
				mask[i] |= 1U << lane;
		}
	}
	RGATE_DUNROLL
	for (i = over = 0; i < RGATE_DLOOK_AHEAD / 32; i++)
		if (over == i * 32)
			over += rgate_dones(rgate_dwarp_or(mask[i]));
	return over;
}

/*
 * The whole warp: of the next @n batches, those that may be looked at. A producer waits for a
 * batch's credit before it begins the batch again. Of one that does not, nothing is taken before
 * others are done with the lap before: so no two have a slot, and no ring has more pieces under
 * way than slots, for which there is room in the queue.
 */
RGATE_DEV uint32_t rgate_dpoll_may(const struct rgate_dctx *ctx, struct rgate_dpoll *p, uint32_t n)
{
	const uint64_t first = p->next >> RGATE_BATCH_SHIFT;
	uint64_t over = p->over;

	if (over < first + n) {
		if (over < first)
			over = first;
		over += rgate_dpoll_over(ctx, p->ring, over, (uint32_t)(first + n - over));
		rgate_dwarp_sync();
		if (rgate_dlane() == 0)
			p->over = over;
		rgate_dwarp_sync();
	}
	return over - first < n ? (uint32_t)(over - first) : n;
}

/* How far the next look goes: doubled while all is there, else what was there and one */
RGATE_DEV uint32_t rgate_dpoll_adapt(uint32_t now, uint32_t found, uint32_t most)
{
	uint32_t to = found >= now ? now * 2 : found + 1;

	return to < most ? to : most;
}

/* What a look has seen */
struct rgate_dseen {
	struct rgate_drun run;	/* to be done; its count may be of several batches, 0: nothing */
	uint32_t looks;
	uint32_t got;		/* slots, before those of a chain that is not all there */
	uint32_t full;		/* batches to their ends */
};

/*
 * rgate_dpoll_look - the whole warp: looks at a ring
 * @most: batches at most, up to RGATE_DLOOK_AHEAD; 0: none may be there, it is a look in vain
 * @looks: how often at most while nothing is there, a power of two
 * @seen: out; its run is this warp's to hand out, and rgate_dpoll_note() is called before the next
 *	look, with nothing in between that waits for others: what is found need not wait for it
 */
RGATE_DEV void rgate_dpoll_look(const struct rgate_dctx *ctx, const struct rgate_dpoll *p,
				uint32_t most, uint32_t looks, struct rgate_dseen *seen)
{
	const struct rgate_dring *r = &ctx->ring[p->ring];
	uint64_t pos = p->next;
	uint32_t n = 0, ahead = p->batches < most ? p->batches : most;

	while (rgate_dpoll_returned(ctx, p, pos))
		pos += RGATE_BATCH;
	if (ahead && pos < p->check_end)
		ahead = 1;	/* one that was returned may come next */
	/* looks in vain in a row come by every multiple of @looks */
	looks -= (uint32_t)p->idle & (looks - 1);
	seen->full = 0;
	if (ahead)
		n = rgate_dring_await(r, pos, ahead, p->slots, &looks, ctx->pause_ns, &seen->full);
	seen->got = n;
	if (!seen->full && r->chain) {
		/* one lane alone: what changes meanwhile is not the same for all */
		if (rgate_dlane() == 0)
			n = rgate_dring_whole(r, pos, n);
		n = (uint32_t)rgate_dwarp_first(n);
	}
	seen->looks = looks;
	seen->run.pos = pos;
	seen->run.ring = p->ring;
	seen->run.count = n;
	rgate_dwarp_sync();
}

/* The same, where others may still have slots of the lap before in hand */
RGATE_DEV void rgate_dpoll_find(const struct rgate_dctx *ctx, struct rgate_dpoll *p,
				uint32_t most, uint32_t looks, struct rgate_dseen *seen)
{
	const uint32_t n = p->batches < most ? p->batches : most;

	rgate_dpoll_look(ctx, p, rgate_dpoll_may(ctx, p, n), looks, seen);
}

/* The first lane, after a barrier with all of the warp: goes on behind what was seen */
RGATE_DEV void rgate_dpoll_note(struct rgate_dpoll *p, const struct rgate_dseen *seen)
{
	const uint32_t n = seen->run.count, looks = seen->looks;

	p->batches = rgate_dpoll_adapt(p->batches, seen->full, RGATE_DLOOK_AHEAD);
	/* where ends are published looks at single slots tell nothing */
	p->slots = seen->full ? 1 : rgate_dpoll_adapt(p->slots, seen->got, RGATE_DLOOK_SLOTS);
	p->next = seen->run.pos + n;
	p->looks += looks;
	p->empty += looks - !!n;
	p->idle = n ? 0 : p->idle + looks;
	p->due |= (p->looks - looks) / RGATE_DREPORT_LOOKS != p->looks / RGATE_DREPORT_LOOKS;
}

/*
 * The whole warp: a ring without a producer, all of which was handed out? One that died
 * could not say so, maybe in the middle of a chain: what counts then is that nothing whole
 * is there after the host has seen its end.
 */
RGATE_DEV void rgate_dpoll_end(const struct rgate_dctx *ctx, struct rgate_dpoll *p)
{
	const struct rgate_dring *r = &ctx->ring[p->ring];

	if (rgate_dlane() == 0 && !p->ended &&
	    (rgate_dring_ended(r, p->next) ||
	     (rgate_dsys_acquire(&ctx->ctl->gone) >> p->ring & 1 &&
	      rgate_dring_bare(r, p->next)))) {
		p->ended = 1;
		rgate_dgpu_add32(&ctx->share->ended, 1);
	}
	rgate_dwarp_sync();
}

/* The whole warp: takes ring @ring over from the last launch, and leaves it to the next */
RGATE_DEV void rgate_dpoll_load(const struct rgate_dctx *ctx, struct rgate_dpoll *p,
				uint32_t ring)
{
	const struct rgate_dstate *st = &ctx->state[ring];

	if (rgate_dlane() == 0) {
		p->next = st->next;
		p->done = st->done;
		p->check_end = st->check_end;
		p->looks = st->looks;
		p->empty = st->empty;
		p->direct = st->direct;
		p->idle = 0;
		p->over = 0;
		p->batches = p->slots = 1;
		p->ended = 0;
		p->told = 0;
		p->due = 0;
		p->ring = ring;
	}
	rgate_dwarp_sync();
}

RGATE_DEV void rgate_dpoll_save(const struct rgate_dctx *ctx, const struct rgate_dpoll *p)
{
	struct rgate_dstate *st = &ctx->state[p->ring];

	if (rgate_dlane() == 0) {
		st->next = p->next;
		st->looks = p->looks;
		st->empty = p->empty;
		st->direct = p->direct;
		rgate_dsys_store(&ctx->stat[p->ring].ended, p->ended);
	}
	rgate_dwarp_sync();
}

/* One thread: is it time to return? */
RGATE_DEV uint32_t rgate_dpoll_why(const struct rgate_dctx *ctx)
{
	uint32_t quit = rgate_dgpu_load32(&ctx->share->quit);
	uint64_t until = rgate_dgpu_load(&ctx->share->until);

	if (quit)
		return quit;
	if (rgate_dsys_load(&ctx->ctl->stop))
		return RGATE_DEXIT_STOP;
	if (until && rgate_dnow() > until)
		return RGATE_DEXIT_TIME;
	if (rgate_dgpu_acquire32(&ctx->share->ended) == ctx->nrings)
		return RGATE_DEXIT_RINGS;
	return 0;
}

/* The first polling warp, once a launch */
RGATE_DEV void rgate_dpoll_begin(const struct rgate_dctx *ctx)
{
	if (rgate_dlane() == 0 && ctx->limit_ns)
		rgate_dgpu_release(&ctx->share->until, rgate_dnow() + ctx->limit_ns);
	rgate_dwarp_sync();
}

/* The whole warp; the warp of poller 0 decides for all */
RGATE_DEV int rgate_dpoll_quits(const struct rgate_dctx *ctx, uint32_t poller)
{
	uint64_t why = 0;

	if (rgate_dlane() == 0) {
		if (poller == 0) {
			why = rgate_dpoll_why(ctx);
			if (why)
				rgate_dgpu_store32(&ctx->share->quit, (uint32_t)why);
		} else {
			why = rgate_dgpu_load32(&ctx->share->quit);
		}
	}
	return rgate_dwarp_first(why) != 0;
}

/* One thread, the only one left: what the output ring has got */
RGATE_DEV void rgate_dlaunch_told(const struct rgate_dout *o)
{
	struct rgate_doutstate *st = o->state;

	rgate_dsys_store(&o->prod->stats.delivered, rgate_dgpu_load(&st->frames));
	rgate_dsys_store(&o->prod->stats.bytes, rgate_dgpu_load(&st->bytes));
	rgate_dsys_store(&o->prod->stats.dropped_full, rgate_dgpu_load(&st->dropped));
	st->told = rgate_dgpu_acquire(&st->tail);
	rgate_dsys_release(&o->prod->head, st->told);
}

/* One thread: the last warp of a launch makes everything ready for the next */
RGATE_DEV void rgate_dlaunch_out(const struct rgate_dctx *ctx, uint32_t warps)
{
	struct rgate_dshare *sh = ctx->share;
	uint32_t i;

	if (rgate_dgpu_add32(&sh->warps_out, 1) + 1 != warps)
		return;
	for (i = 0; i < ctx->nrings; i++) {
		struct rgate_dstate *st = &ctx->state[i];

		if (ctx->until)
			st->next = ctx->until[i];
		/* what was handed out is finished, as all warps have returned */
		st->done = st->next;
		rgate_dsys_store(&ctx->stat[i].next, st->next);
		rgate_dsys_store(&ctx->stat[i].packets, rgate_dgpu_load(&st->packets));
		rgate_dsys_store(&ctx->stat[i].bytes, rgate_dgpu_load(&st->bytes));
		rgate_dsys_store(&ctx->stat[i].work_ns, rgate_dgpu_load(&st->work_ns));
		rgate_dsys_store(&ctx->stat[i].done, st->done);
	}
	if (ctx->out.state)
		rgate_dlaunch_told(&ctx->out);
	/* tickets that were waited with in vain are given out again */
	ctx->queue->head = ctx->queue->tail;
	rgate_dsys_store(&ctx->report->why, sh->quit);
	sh->quit = 0;
	sh->pollers_out = 0;
	sh->warps_out = 0;
	sh->ended = 0;
	sh->until = 0;
	sh->launches++;
	rgate_dsys_release(&ctx->report->exited, sh->launches);
}

#endif
