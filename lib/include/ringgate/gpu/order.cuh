/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * In order by flow: a block has a ring. Its first warp looks and returns batches; meanwhile
 * the others work on what it found in the round before. They bring slots near, then each
 * takes the packets of the flows that fall to it, in the ring's order, up to 32 at a time;
 * lanes with packets of one flow go one after the other.
 *
 * A barrier of the block ends a round. What is found in one is worked on in the next, and
 * returned in that after it, so two runs are in memory at a time.
 */
#ifndef RINGGATE_GPU_ORDER_CUH
#define RINGGATE_GPU_ORDER_CUH

#include <ringgate/gpu/clerk.cuh>

#define RGATE_DBLOCK_WARPS	8U
/* Of a block, where there is memory near for so many; each thread has 96 registers then */
#define RGATE_DORDER_WARPS	20U

#ifdef __CUDACC__

#define RGATE_DORDER_MOST	(RGATE_DORDER_WARPS - 1U)	/* that work */
#define RGATE_DORDER_SLOTS	(RGATE_DORDER_MOST * 32U)

struct rgate_dorder {
	struct rgate_dpoll poll;
	struct rgate_drun run[2];
	uint32_t quit[2];			/* the run is the last one */
	uint32_t flow[RGATE_DORDER_SLOTS];
	/* whose, by number; RGATE_DORDER_MOST: no packet's first slot */
	unsigned char who[RGATE_DORDER_SLOTS];
	uint16_t mine[RGATE_DORDER_MOST][RGATE_DORDER_SLOTS];	/* slots, by warp */
};

/* A warp that works, and what it keeps from one run to the next */
struct rgate_dorderer {
	unsigned char *mem;	/* of the first of these warps */
	uint32_t bytes;		/* of each */
	uint32_t number;	/* this one's */
	struct rgate_dnear near;
};

/* Warps that work */
RGATE_DEV uint32_t rgate_dorder_workers(void)
{
	return blockDim.x / 32 - 1;
}

/* A barrier of them */
RGATE_DEV void rgate_dorder_sync(void)
{
	asm volatile("barrier.sync 1, %0;" :: "r"(blockDim.x - 32) : "memory");
}

/* Group @g of 32 slots, as it was brought near */
RGATE_DEV void rgate_dorder_near(struct rgate_dorderer *w, const struct rgate_dshape *sh,
				 uint32_t g)
{
	const struct rgate_dhint hint = w->near.hint;

	rgate_dnear_init(&w->near, w->mem + g * w->bytes, sh);
	w->near.hint = hint;
}

/* The flow of the packet that begins in slot @i of what is near */
RGATE_DEV uint32_t rgate_dorder_flow(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				     const struct rgate_drun *run, const struct rgate_dnear *near,
				     uint64_t pos, uint32_t i)
{
	const unsigned char *copy = near->slots + i * RGATE_DSTAGE_STRIDE(sh->near_len);
	const struct rgate_slot *s = (const struct rgate_slot *)copy;
	struct rgate_dpkt pkt;
	uint32_t flow;

	if (!rgate_dslot_parts(s, pos))
		return 0;
	rgate_dslot_view(&ctx->ring[run->ring], pos, copy, sh->near_len, &pkt);
	pkt.ring = run->ring;
	pkt.parts = 1;	/* the first is enough */
	flow = rgate_dpkt_flow(&pkt);
	return flow ? flow : 1;
}

/* Brings this warp's group near, and finds its flows */
RGATE_DEV void rgate_dorder_stage(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				  struct rgate_dorder *o, const struct rgate_drun *run,
				  struct rgate_dorderer *w)
{
	const uint32_t first = w->number * 32, lane = rgate_dlane();
	uint32_t n;

	if (first >= run->count)
		return;
	n = run->count - first < 32 ? run->count - first : 32;
	rgate_dorder_near(w, sh, w->number);
	rgate_dstage(&ctx->ring[run->ring], run->pos + first, n, w->near.slots, sh->near_len);
	if (lane < n) {
		uint32_t flow = rgate_dorder_flow(ctx, sh, run, &w->near, run->pos + first + lane,
						  lane);

		o->flow[first + lane] = flow;
		o->who[first + lane] = flow ? flow % rgate_dorder_workers() : RGATE_DORDER_MOST;
	}
}

/* Is slot @i of the run, below @n, the first of a packet of this warp's? By lane; bits */
RGATE_DEV uint32_t rgate_dorder_mask(const struct rgate_dorder *o, const struct rgate_dorderer *w,
				     uint32_t i, uint32_t n)
{
	return __ballot_sync(~0U, i < n && o->who[i] == w->number);
}

/* Up to 32 of this warp's packets, of which lane's is that in slot @i; none: ~0 */
RGATE_DEV void rgate_dorder_tile(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				 const struct rgate_dorder *o, const struct rgate_drun *run,
				 struct rgate_dorderer *w, uint32_t i, struct rgate_dtally *t)
{
	const uint32_t lane = rgate_dlane(), mine = i != ~0U;
	uint32_t same, rank, most, round;
	struct rgate_drun group = *run;

	same = __match_any_sync(~0U, mine ? (uint64_t)o->flow[i] : 1ULL << 32 | lane);
	rank = __popc(same & ((1U << lane) - 1));
	most = __reduce_max_sync(~0U, rank);
	if (mine) {
		rgate_dorder_near(w, sh, i / 32);
		group.pos += i & ~31U;
	}
	RGATE_DROLL
	for (round = 0; round <= most; round++) {
		if (mine && rank == round)
			rgate_dslot_work(ctx, sh, &group, &w->near, i % 32, t);
		__syncwarp();
	}
}

/* The answers, group by group: those of a flow are in the ring's order */
RGATE_DEV void rgate_dorder_answer(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				   const struct rgate_dorder *o, const struct rgate_drun *run,
				   struct rgate_dorderer *w)
{
	struct rgate_dleft left;
	uint32_t g, mask;

	RGATE_DROLL
	for (g = 0; g < run->count; g += 32) {
		mask = rgate_dorder_mask(o, w, g + rgate_dlane(), run->count);
		if (!mask)
			continue;
		rgate_dorder_near(w, sh, g / 32);
		rgate_dreply_send(ctx, sh, &w->near, run->count - g < 32 ? run->count - g : 32,
				  mask, &left);
		if (rgate_dlane() == 0 && left.answers)
			rgate_dout_pass(&ctx->out, left.out, left.answers, left.answer_bytes);
		__syncwarp();
	}
}

/* All of @run, by the warps that work */
RGATE_DEV void rgate_dorder_work(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				 struct rgate_dorder *o, const struct rgate_drun *run,
				 struct rgate_dorderer *w)
{
	uint16_t *mine = o->mine[w->number];
	uint64_t began = rgate_dnow();
	struct rgate_dtally t = { 0, 0 };
	uint32_t i, mask, n = 0, lane = rgate_dlane();

	rgate_dorder_stage(ctx, sh, o, run, w);
	rgate_dorder_sync();
	RGATE_DROLL
	for (i = lane; i - lane < run->count; i += 32) {
		mask = rgate_dorder_mask(o, w, i, run->count);
		if (mask >> lane & 1)
			mine[n + __popc(mask & ((1U << lane) - 1))] = (uint16_t)i;
		n += __popc(mask);
	}
	__syncwarp();
	RGATE_DROLL
	for (i = lane; i - lane < n; i += 32)
		rgate_dorder_tile(ctx, sh, o, run, w, i < n ? mine[i] : ~0U, &t);
	if (sh->reply)
		rgate_dorder_answer(ctx, sh, o, run, w);
	t.packets = rgate_dwarp_add(t.packets);
	t.bytes = rgate_dwarp_add(t.bytes);
	if (lane == 0)
		rgate_drun_count(ctx, run->ring, t.packets, t.bytes, rgate_dnow() - began);
}

/*
 * The first warp, after a barrier with those that worked on it: returns the batches of @run.
 * A batch is finished when its last slot is: runs follow each other. So the counts, which
 * this warp alone changes, need no exchange, and one fence is before all credits.
 */
RGATE_DEV void rgate_dorder_done(const struct rgate_dctx *ctx, const struct rgate_drun *run)
{
	const struct rgate_dring *r = &ctx->ring[run->ring];
	uint64_t end = run->pos + run->count;
	uint64_t pos = (run->pos & ~(uint64_t)(RGATE_BATCH - 1)) + rgate_dlane() * RGATE_BATCH;
	uint64_t to = rgate_dring_last(pos) + 1;
	uint32_t *count;

	if (!run->count)
		return;
	rgate_dsys_fence();
	if (pos >= end)
		return;
	count = rgate_dbatch_count(r, &ctx->state[run->ring], pos);
	rgate_dgpu_store32(count, rgate_dgpu_load32(count) +
			   (uint32_t)((to < end ? to : end) - (pos > run->pos ? pos : run->pos)));
	if (to <= end)
		rgate_dsys_store(&r->credits[(pos & r->mask) >> RGATE_BATCH_SHIFT],
				 rgate_dring_lap(r, pos));
}

/* Batches of a run: one of each worker's, and none twice, whatever the producer does */
RGATE_DEV uint32_t rgate_dorder_most(const struct rgate_dring *r)
{
	const uint64_t batches = (r->mask + 1) >> RGATE_BATCH_SHIFT;

	return batches < rgate_dorder_workers() ? (uint32_t)batches : rgate_dorder_workers();
}

/*
 * The first warp: what is there, for the others, into @run. What they have of the lap before is in
 * a run that they are done with before they begin this one.
 */
RGATE_DEV void rgate_dorder_find(const struct rgate_dctx *ctx, struct rgate_dpoll *p,
				 struct rgate_drun *run, uint32_t *quit, uint64_t round)
{
	struct rgate_dseen seen;
	uint32_t n, last;

	rgate_dpoll_look(ctx, p, rgate_dorder_most(&ctx->ring[p->ring]), 1, &seen);
	n = seen.run.count;
	if (rgate_dlane() == 0)
		rgate_dpoll_note(p, &seen);
	__syncwarp();
	if (!n && p->idle % RGATE_DREPORT_LOOKS == 0)
		rgate_dpoll_end(ctx, p);
	if (p->due) {
		rgate_dpoll_tell(ctx, p);
		if (rgate_dlane() == 0)
			p->due = 0;
	}
	last = round % RGATE_DSTOP_ROUNDS == 0 && rgate_dpoll_quits(ctx, blockIdx.x);
	if (rgate_dlane() == 0) {
		*run = seen.run;
		*quit = last;
	}
	if (!n)
		rgate_dpause(ctx->pause_ns);
	__syncwarp();
}

/* The first warp's share of a round; @quit: no more is to be found */
RGATE_DEV void rgate_dorder_look(const struct rgate_dctx *ctx, struct rgate_dorder *o,
				 uint64_t round, uint32_t quit)
{
	struct rgate_drun *run = &o->run[round & 1];

	/* worked on in the last round; the first thread writes there next */
	rgate_dorder_done(ctx, run);
	__syncwarp();
	if (!quit) {
		rgate_dorder_find(ctx, &o->poll, run, &o->quit[round & 1], round);
	} else if (rgate_dlane() == 0) {
		run->count = 0;
	}
	__syncwarp();
}

RGATE_DEV void rgate_dordered(const struct rgate_dctx *ctx, const struct rgate_dshape *sh)
{
	extern __shared__ __align__(128) unsigned char rgate_dshared[];
	__shared__ struct rgate_dorder o;
	const uint32_t warp = threadIdx.x / 32;
	struct rgate_dorderer w;
	uint32_t quit = 0;
	uint64_t round;

	w.mem = rgate_dshared;
	w.bytes = RGATE_DWARP_BYTES(sh->near_len, sh->reply, sh->run);
	w.number = warp - 1;
	w.near.hint.head = w.near.hint.limit = 0;
	if (warp == 0) {
		rgate_dpoll_load(ctx, &o.poll, blockIdx.x);
		if (blockIdx.x == 0)
			rgate_dpoll_begin(ctx);
		if (rgate_dlane() < 2)
			o.run[rgate_dlane()].count = 0;
	}
	__syncthreads();
	/* one round more: of what was found last */
	for (round = 0;; round++) {
		uint32_t over = quit;

		if (warp == 0)
			rgate_dorder_look(ctx, &o, round, over);
		else if (o.run[~round & 1].count)
			rgate_dorder_work(ctx, sh, &o, &o.run[~round & 1], &w);
		__syncthreads();
		if (over)
			break;
		/* not written again before the barrier after the next */
		quit = o.quit[round & 1];
	}
	if (warp == 0) {
		rgate_dorder_done(ctx, &o.run[~round & 1]);
		__syncwarp();
		rgate_dpoll_save(ctx, &o.poll);
	}
	__syncwarp();
	if (rgate_dlane() == 0)
		rgate_dlaunch_out(ctx, gridDim.x * (blockDim.x / 32));
}

#endif /* __CUDACC__ */
#endif
