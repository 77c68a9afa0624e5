/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Kernels around a user's function. In a .cu file:
 *
 *	static __device__ uint32_t process(const struct rgate_dpkt *pkt, void *result,
 *					   void *arg)
 *	{
 *		...
 *	}
 *
 *	RGATE_GPU_LANES(mine, process, 64, 0)
 *
 * defines `mine`, for rgate_gpu_start(gpu, &mine, ...). Four ways:
 *
 *	RGATE_GPU_LANES		persistent; a packet is one thread's
 *	RGATE_GPU_WARPS		persistent; a packet is a warp's: all 32 lanes are in the
 *				function together, with the same packet, and read it side
 *				by side; for long frames
 *	RGATE_GPU_ORDERED	persistent; as LANES, and packets of one flow are
 *				processed, and answered, in the order they came
 *	RGATE_GPU_BATCH		as LANES, for rgate_gpu_launch(): what is there, then returns
 */
#ifndef RINGGATE_GPU_KERNEL_CUH
#define RINGGATE_GPU_KERNEL_CUH

#include <ringgate/gpu/stage.cuh>
#include <ringgate/rgate_gpu.h>

#define RGATE_DBLOCK_WARPS	8U
#define RGATE_DORDER_SLOTS	(RGATE_DBLOCK_WARPS * 32U)

/*
 * The persistent consumer's loops; one warp each
 */

/* The whole warp: tells the host how far this ring is; with the first, the output ring, too */
RGATE_DEV void rgate_dpoll_tell(const struct rgate_dctx *ctx, struct rgate_dpoll *p)
{
	rgate_dpoll_report(ctx, p);
	if (rgate_dlane() == 0 && p->ring == 0 && ctx->out.state)
		rgate_dout_report(&ctx->out);
	rgate_dwarp_sync();
}

/* Looks at the rings of poller @poller once; 0: nothing anywhere */
RGATE_DEV uint32_t rgate_dpoll_round(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				     struct rgate_dnear *near, struct rgate_dpoll *polls,
				     uint32_t npolls)
{
	uint32_t i, busy = 0;

	for (i = 0; i < npolls; i++) {
		struct rgate_dpoll *p = &polls[i];
		struct rgate_drun run;
		uint32_t n = rgate_dpoll_find(ctx, p, RGATE_DPOLL_AHEAD, &run);

		busy |= n;
		if (n > ctx->direct) {
			rgate_dqueue_hand(ctx, p->ring, run.pos, n);
		} else if (n) {
			rgate_drun_work(ctx, sh, &run, near);
			if (rgate_dlane() == 0)
				p->direct += n;
		} else if (p->idle % RGATE_DREPORT_LOOKS == 0) {
			/* not at once: what comes next would wait for it */
			rgate_dpoll_end(ctx, p);
			rgate_dpoll_tell(ctx, p);
			continue;
		}
		if (p->looks % RGATE_DREPORT_LOOKS == 0)
			rgate_dpoll_tell(ctx, p);
		rgate_dwarp_sync();
	}
	return busy;
}

RGATE_DEV void rgate_dpoller(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
			     struct rgate_dnear *near, struct rgate_dpoll *polls,
			     uint32_t poller)
{
	uint32_t ring, n = 0, i;
	uint64_t round;

	for (ring = poller; ring < ctx->nrings && n < RGATE_DPOLL_RINGS; ring += ctx->npollers)
		rgate_dpoll_load(ctx, &polls[n++], ring);
	if (poller == 0)
		rgate_dpoll_begin(ctx);
	for (round = 0;; round++) {
		uint32_t busy = rgate_dpoll_round(ctx, sh, near, polls, n);

		if (round % RGATE_DSTOP_ROUNDS == 0 && rgate_dpoll_quits(ctx, poller))
			break;
		if (!busy)
			rgate_dpause(ctx->pause_ns);
	}
	for (i = 0; i < n; i++)
		rgate_dpoll_save(ctx, &polls[i]);
	if (rgate_dlane() == 0)
		rgate_dgpu_add32(&ctx->share->pollers_out, 1);
}

/* Waits for the cell of @ticket to be filled; 0: it will not be */
RGATE_DEV int rgate_dworker_wait(const struct rgate_dctx *ctx, uint64_t ticket,
				 struct rgate_drun *run)
{
	uint32_t waits = 0;

	while (!rgate_dqueue_take(ctx->queue, ticket, run)) {
		/* tail is final once all pollers are out, whose additions this acquires */
		if (++waits % 8 == 0 &&
		    rgate_dgpu_acquire32(&ctx->share->pollers_out) == ctx->npollers &&
		    rgate_dgpu_acquire(&ctx->queue->tail) <= ticket)
			return 0;
		rgate_dpause(waits < 4096 ? 32 : 256);
	}
	return 1;
}

RGATE_DEV void rgate_dworker(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
			     struct rgate_dnear *near)
{
	struct rgate_drun run;

	for (;;) {
		uint64_t pos = 0, what = 0;

		if (rgate_dlane() == 0 &&
		    rgate_dworker_wait(ctx, rgate_dgpu_add(&ctx->queue->head, 1), &run)) {
			pos = run.pos;
			what = (uint64_t)run.ring << 32 | run.count;
		}
		/* the barrier hands on what lane 0 acquired */
		rgate_dwarp_sync();
		what = rgate_dwarp_first(what);
		if (!what)
			return;
		run.pos = rgate_dwarp_first(pos);
		run.ring = (uint32_t)(what >> 32);
		run.count = (uint32_t)what;
		rgate_drun_work(ctx, sh, &run, near);
	}
}

/*
 * Batch kernels: warp @warp of @warps takes every so manieth piece of what the host saw
 */
RGATE_DEV void rgate_dbatch(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
			    struct rgate_dnear *near, uint32_t warp, uint32_t warps)
{
	uint32_t ring;

	for (ring = 0; ring < ctx->nrings; ring++) {
		uint64_t from = ctx->state[ring].next, to = ctx->until[ring];
		uint64_t at = from / ctx->grain + warp;

		for (; at * ctx->grain < to; at += warps) {
			uint64_t a = at * ctx->grain, b = a + ctx->grain;
			struct rgate_drun run;

			run.pos = a < from ? from : a;
			run.ring = ring;
			run.count = (uint32_t)((b < to ? b : to) - run.pos);
			if (!rgate_dbatch_finished(&ctx->ring[ring], &ctx->state[ring],
						   run.pos))
				rgate_drun_work(ctx, sh, &run, near);
		}
	}
}

#ifdef __CUDACC__

/* Warp 0 of the first blocks polls; the others work. */
RGATE_DEV void rgate_dpersist(const struct rgate_dctx *ctx, const struct rgate_dshape *sh)
{
	extern __shared__ __align__(128) unsigned char rgate_dshared[];
	__shared__ struct rgate_dpoll polls[RGATE_DPOLL_RINGS];
	const uint32_t warp = threadIdx.x / 32, warps = blockDim.x / 32;
	struct rgate_dnear near;

	rgate_dnear_init(&near, rgate_dshared + warp * RGATE_DWARP_BYTES(sh->near_len, sh->reply,
									 sh->run), sh);
	if (warp == 0 && blockIdx.x < ctx->npollers)
		rgate_dpoller(ctx, sh, &near, polls, blockIdx.x);
	else
		rgate_dworker(ctx, sh, &near);
	__syncwarp();
	if (rgate_dlane() == 0)
		rgate_dlaunch_out(ctx, gridDim.x * warps);
}

RGATE_DEV void rgate_dsnapshot(const struct rgate_dctx *ctx, const struct rgate_dshape *sh)
{
	extern __shared__ __align__(128) unsigned char rgate_dshared[];
	const uint32_t warp = threadIdx.x / 32, warps = blockDim.x / 32;
	struct rgate_dnear near;

	rgate_dnear_init(&near, rgate_dshared + warp * RGATE_DWARP_BYTES(sh->near_len, sh->reply,
									 sh->run), sh);
	rgate_dbatch(ctx, sh, &near, blockIdx.x * warps + warp, gridDim.x * warps);
	__syncwarp();
	if (rgate_dlane() == 0)
		rgate_dlaunch_out(ctx, gridDim.x * warps);
}

/*
 * In order by flow: a block has a ring. Its first warp looks; all bring slots near, then
 * each takes the flows that fall to it, packet by packet in the ring's order. Lanes with
 * packets of one flow go one after the other.
 */
struct rgate_dorder {
	struct rgate_dpoll poll;
	struct rgate_drun run;
	uint32_t quit;
	uint32_t flow[RGATE_DORDER_SLOTS];	/* 0: no packet's first slot */
};

/* A warp's share of the work on what lies near in group @g of 32 slots */
RGATE_DEV void rgate_dorder_group(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				  struct rgate_dorder *o, struct rgate_dnear *near,
				  uint32_t g, struct rgate_dtally *t)
{
	const uint32_t lane = rgate_dlane(), warp = threadIdx.x / 32;
	uint32_t left = o->run.count - g * 32, n = left < 32 ? left : 32;
	uint32_t flow = lane < n ? o->flow[g * 32 + lane] : 0;
	uint32_t mine = flow && flow % (blockDim.x / 32) == warp;
	uint32_t same, rank, most, round, mask = __ballot_sync(~0U, mine);
	struct rgate_drun run = o->run;

	if (!mask)
		return;
	same = __match_any_sync(~0U, mine ? (uint64_t)flow : 1ULL << 32 | lane);
	rank = __popc(same & ((1U << lane) - 1));
	most = __reduce_max_sync(~0U, rank);
	run.pos += g * 32;
	for (round = 0; round <= most; round++) {
		if (mine && rank == round)
			rgate_dslot_work(ctx, sh, &run, near, lane, t);
		__syncwarp();
	}
	if (sh->reply)
		rgate_dreply_send(ctx, sh, near, n, mask);
}

/* The flow of the packet that begins in slot @i of group @g */
RGATE_DEV uint32_t rgate_dorder_flow(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				     const struct rgate_dorder *o, const struct rgate_dnear *near,
				     uint64_t pos, uint32_t i)
{
	const unsigned char *copy = near->slots + i * RGATE_DSTAGE_STRIDE(sh->near_len);
	const struct rgate_slot *s = (const struct rgate_slot *)copy;
	struct rgate_dpkt pkt;
	uint32_t flow;

	if (!rgate_dslot_parts(s, pos))
		return 0;
	rgate_dpkt_view(&pkt, &ctx->ring[o->run.ring], pos, 1);
	pkt.hdr = s;
	pkt.len = s->len < rgate_dring_room(pkt.r) ? s->len : rgate_dring_room(pkt.r);
	pkt.near = copy + RGATE_SLOT_HDR;
	pkt.near_len = pkt.len < sh->near_len ? pkt.len : sh->near_len;
	flow = rgate_dpkt_flow(&pkt);
	return flow ? flow : 1;
}

/* All of @o->run, by the whole block */
RGATE_DEV void rgate_dorder_work(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				 struct rgate_dorder *o, unsigned char *mem)
{
	const uint32_t warp = threadIdx.x / 32, lane = rgate_dlane(), n = o->run.count;
	const uint32_t bytes = RGATE_DWARP_BYTES(sh->near_len, sh->reply, sh->run);
	uint64_t began = rgate_dnow();
	struct rgate_dtally t = { 0, 0 };
	struct rgate_dnear near;
	uint32_t g, here;

	if (warp * 32 < n) {
		here = n - warp * 32 < 32 ? n - warp * 32 : 32;
		rgate_dnear_init(&near, mem + warp * bytes, sh);
		rgate_dstage(&ctx->ring[o->run.ring], o->run.pos + warp * 32, here, near.slots,
			     sh->near_len);
		if (lane < here)
			o->flow[warp * 32 + lane] = rgate_dorder_flow(ctx, sh, o, &near,
								      o->run.pos + warp * 32 + lane,
								      lane);
	}
	__syncthreads();
	for (g = 0; g * 32 < n; g++) {
		rgate_dnear_init(&near, mem + g * bytes, sh);
		rgate_dorder_group(ctx, sh, o, &near, g, &t);
	}
	__syncwarp();
	t.packets = rgate_dwarp_add(t.packets);
	t.bytes = rgate_dwarp_add(t.bytes);
	if (lane == 0)
		rgate_drun_count(ctx, o->run.ring, t.packets, t.bytes, rgate_dnow() - began);
	__syncthreads();
}

/* The first warp: returns the batches of a run that is done */
RGATE_DEV void rgate_dorder_done(const struct rgate_dctx *ctx, const struct rgate_drun *run)
{
	uint64_t pos = run->pos, end = run->pos + run->count;

	while (pos < end) {
		uint64_t to = rgate_dring_last(pos) + 1;
		struct rgate_drun piece = *run;

		piece.pos = pos;
		piece.count = (uint32_t)((to < end ? to : end) - pos);
		rgate_drun_done(ctx, &piece);
		pos = to;
	}
}

/* The first warp: what is there, for the block */
RGATE_DEV void rgate_dorder_find(const struct rgate_dctx *ctx, struct rgate_dorder *o,
				 uint64_t round)
{
	struct rgate_dpoll *p = &o->poll;
	struct rgate_drun run;
	uint32_t n, quit;

	n = rgate_dpoll_find(ctx, p, RGATE_DBLOCK_WARPS, &run);
	if (!n && p->idle % RGATE_DREPORT_LOOKS == 0)
		rgate_dpoll_end(ctx, p);
	if ((!n && p->idle % RGATE_DREPORT_LOOKS == 0) || p->looks % RGATE_DREPORT_LOOKS == 0)
		rgate_dpoll_tell(ctx, p);
	quit = round % RGATE_DSTOP_ROUNDS == 0 && rgate_dpoll_quits(ctx, blockIdx.x);
	if (rgate_dlane() == 0) {
		o->run = run;
		o->quit = quit;
	}
	if (!n)
		rgate_dpause(ctx->pause_ns);
	__syncwarp();
}

RGATE_DEV void rgate_dordered(const struct rgate_dctx *ctx, const struct rgate_dshape *sh)
{
	extern __shared__ __align__(128) unsigned char rgate_dshared[];
	__shared__ struct rgate_dorder o;
	const uint32_t warp = threadIdx.x / 32;
	uint64_t round;

	if (warp == 0) {
		rgate_dpoll_load(ctx, &o.poll, blockIdx.x);
		if (blockIdx.x == 0)
			rgate_dpoll_begin(ctx);
	}
	for (round = 0;; round++) {
		if (warp == 0)
			rgate_dorder_find(ctx, &o, round);
		__syncthreads();
		if (o.run.count)
			rgate_dorder_work(ctx, sh, &o, rgate_dshared);
		if (o.quit)
			break;
		/* the others have read quit and count before they are written again */
		__syncthreads();
		if (warp == 0)
			rgate_dorder_done(ctx, &o.run);
	}
	if (warp == 0) {
		rgate_dorder_done(ctx, &o.run);
		rgate_dpoll_save(ctx, &o.poll);
	}
	__syncwarp();
	if (rgate_dlane() == 0)
		rgate_dlaunch_out(ctx, gridDim.x * (blockDim.x / 32));
}

#define RGATE_GPU_KERNEL_(kernel, fn, near_bytes, reply_bytes, run_slots, whole_warp, kind_, body) \
	static __global__ void __launch_bounds__(RGATE_DBLOCK_WARPS * 32) \
	kernel##_entry(const __grid_constant__ struct rgate_dctx ctx) \
	{ \
		const struct rgate_dshape sh = { (near_bytes), (reply_bytes), (run_slots), \
						 (whole_warp), fn }; \
		static_assert((near_bytes) % 16 == 0, "near: a multiple of 16"); \
		static_assert((reply_bytes) % 64 == 0, "reply: a multiple of 64"); \
		body(&ctx, &sh); \
	} \
	static int kernel##_function(void **function) \
	{ \
		return (int)cudaGetFuncBySymbol((cudaFunction_t *)function, \
						(const void *)kernel##_entry); \
	} \
	extern "C" { \
	extern const struct rgate_gpu_kernel kernel; \
	const struct rgate_gpu_kernel kernel = { \
		sizeof(struct rgate_gpu_kernel), kernel##_function, #kernel, (kind_), \
		RGATE_DWARP_BYTES(near_bytes, reply_bytes, run_slots), (near_bytes), \
		(reply_bytes), (run_slots), sizeof(struct rgate_dctx), \
	}; \
	}

#define RGATE_GPU_LANES(kernel, fn, near_bytes, reply_bytes) \
	RGATE_GPU_KERNEL_(kernel, fn, near_bytes, reply_bytes, 32, 0, \
			  RGATE_GPU_KIND_PERSISTENT, rgate_dpersist)
#define RGATE_GPU_WARPS(kernel, fn, near_bytes, reply_bytes) \
	RGATE_GPU_KERNEL_(kernel, fn, near_bytes, reply_bytes, 8, 1, \
			  RGATE_GPU_KIND_PERSISTENT, rgate_dpersist)
#define RGATE_GPU_ORDERED(kernel, fn, near_bytes, reply_bytes) \
	RGATE_GPU_KERNEL_(kernel, fn, near_bytes, reply_bytes, 32, 0, \
			  RGATE_GPU_KIND_ORDERED, rgate_dordered)
#define RGATE_GPU_BATCH(kernel, fn, near_bytes, reply_bytes) \
	RGATE_GPU_KERNEL_(kernel, fn, near_bytes, reply_bytes, 32, 0, \
			  RGATE_GPU_KIND_BATCH, rgate_dsnapshot)

#endif /* __CUDACC__ */
#endif
