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

#include <ringgate/gpu/order.cuh>
#include <ringgate/rgate_gpu.h>

/*
 * The persistent consumer's loops; one warp each
 */

/* The polling warp: a run of its own, inside one batch; its clerk does what is left of it */
RGATE_DEV void rgate_dpoll_work(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				const struct rgate_drun *run, struct rgate_dnear *near,
				struct rgate_dmail *mail)
{
	struct rgate_drun piece = *run;
	uint32_t todo = run->count;
	struct rgate_dleft left;

	RGATE_DROLL
	while (todo) {
		piece.count = todo < sh->run ? todo : sh->run;
		rgate_drun_piece(ctx, sh, &piece, near, &left);
		if (rgate_dlane() == 0)
			rgate_dmail_left(mail, &left);
		rgate_dwarp_sync();
		piece.pos += piece.count;
		todo -= piece.count;
	}
}

/*
 * How many batches a look goes ahead. What all polling warps hand out at once is fetched at
 * once: far more than the link has under way only waits, and looks wait behind it.
 */
RGATE_DEV uint32_t rgate_dpoll_ahead(const struct rgate_dctx *ctx)
{
	uint32_t n = RGATE_DPOLL_AHEAD / ctx->npollers;

	if (n < RGATE_DPOLL_LEAST)
		return RGATE_DPOLL_LEAST;
	return n < RGATE_DLOOK_AHEAD ? n : RGATE_DLOOK_AHEAD;
}

/* A polling warp's helpers; in shared memory */
struct rgate_dstaff {
	struct rgate_dmail mail[RGATE_DCLERKS];
	struct rgate_dhand hand[RGATE_DHANDS];
};

#define RGATE_DSTAFF	(RGATE_DCLERKS + RGATE_DHANDS)	/* warps */

/* Looks at the rings of a polling warp once; 0: nothing anywhere */
RGATE_DEV uint32_t rgate_dpoll_round(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
				     struct rgate_dnear *near, struct rgate_dpoll *polls,
				     uint32_t npolls, struct rgate_dstaff *staff)
{
	uint32_t i, busy = 0;

	RGATE_DROLL
	for (i = 0; i < npolls; i++) {
		struct rgate_dpoll *p = &polls[i];
		struct rgate_dseen seen;
		uint32_t n;

		rgate_dpoll_find(ctx, p, rgate_dpoll_ahead(ctx),
				 npolls == 1 ? RGATE_DPOLL_LOOKS : 1, &seen);
		n = seen.run.count;
		busy |= n;
		if (n && n <= ctx->direct)
			rgate_dpoll_work(ctx, sh, &seen.run, near, &staff->mail[RGATE_DCLERK]);
		if (rgate_dlane() == 0) {
			if (n > ctx->direct && !rgate_dhands_give(ctx, staff->hand, &seen.run))
				rgate_dmail_hand(&staff->mail[RGATE_DCLERK], &seen.run);
			rgate_dpoll_note(p, &seen);
			if (n <= ctx->direct)
				p->direct += n;
			if (p->due)
				rgate_dmail_tell(&staff->mail[RGATE_DTELLER], p, i);
		}
		rgate_dwarp_sync();
		/* not at once: what comes next would wait for it */
		if (!n && p->idle % RGATE_DREPORT_LOOKS == 0)
			rgate_dpoll_end(ctx, p);
	}
	return busy;
}

RGATE_DEV void rgate_dpoller(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
			     struct rgate_dnear *near, struct rgate_dpoll *polls,
			     struct rgate_dstaff *staff, uint32_t poller)
{
	uint32_t ring, n = 0, i;
	uint64_t round;

	for (ring = poller; ring < ctx->nrings && n < RGATE_DPOLL_RINGS; ring += ctx->npollers) {
		rgate_dpoll_load(ctx, &staff->mail[RGATE_DTELLER].told[n], ring);
		rgate_dpoll_load(ctx, &polls[n++], ring);
	}
	if (poller == 0)
		rgate_dpoll_begin(ctx);
	for (round = 0;; round++) {
		uint32_t busy = rgate_dpoll_round(ctx, sh, near, polls, n, staff);

		if (round % RGATE_DSTOP_ROUNDS == 0 && rgate_dpoll_quits(ctx, poller))
			break;
		if (!busy)
			rgate_dpause(ctx->pause_ns);
	}
	/* what the host is told last is what follows */
	if (rgate_dlane() == 0) {
		rgate_dhands_end(staff->hand);
		for (i = 0; i < RGATE_DCLERKS; i++)
			rgate_dmail_end(&staff->mail[i]);
	}
	rgate_dwarp_sync();
	RGATE_DROLL
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

/* A warp of a polling warp's block: the @number-th of its helpers, from 0 on */
RGATE_DEV void rgate_dhelper(const struct rgate_dctx *ctx, const struct rgate_dshape *sh,
			     struct rgate_dnear *near, struct rgate_dstaff *staff, uint32_t number)
{
	if (number < RGATE_DCLERKS)
		rgate_dclerk(ctx, &staff->mail[number]);
	else
		rgate_dhand(ctx, sh, near, &staff->hand[number - RGATE_DCLERKS]);
}

#ifdef __CUDACC__

/* Warp 0 of the first blocks polls, the next ones help it; the others work. */
RGATE_DEV void rgate_dpersist(const struct rgate_dctx *ctx, const struct rgate_dshape *sh)
{
	extern __shared__ __align__(128) unsigned char rgate_dshared[];
	__shared__ struct rgate_dpoll polls[RGATE_DPOLL_RINGS];
	__shared__ struct rgate_dstaff staff;
	const uint32_t warp = threadIdx.x / 32, warps = blockDim.x / 32;
	struct rgate_dnear near;

	if (threadIdx.x < RGATE_DCLERKS)
		staff.mail[threadIdx.x].put = staff.mail[threadIdx.x].got = 0;
	if (threadIdx.x < RGATE_DHANDS)
		staff.hand[threadIdx.x].is = RGATE_DHAND_FREE;
	__syncthreads();
	rgate_dnear_init(&near, rgate_dshared + warp * RGATE_DWARP_BYTES(sh->near_len, sh->reply,
									 sh->run), sh);
	if (warp == 0 && blockIdx.x < ctx->npollers)
		rgate_dpoller(ctx, sh, &near, polls, &staff, blockIdx.x);
	else if (warp <= RGATE_DSTAFF && blockIdx.x < ctx->npollers)
		rgate_dhelper(ctx, sh, &near, &staff, warp - 1);
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

#define RGATE_GPU_KERNEL_(kernel, fn, near_bytes, reply_bytes, run_slots, whole_warp, kind_, warps_, \
			  body) \
	static __global__ void __launch_bounds__((warps_) * 32) \
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
		(reply_bytes), (run_slots), sizeof(struct rgate_dctx), (warps_), \
	}; \
	}

#define RGATE_GPU_LANES(kernel, fn, near_bytes, reply_bytes) \
	RGATE_GPU_KERNEL_(kernel, fn, near_bytes, reply_bytes, 32, 0, \
			  RGATE_GPU_KIND_PERSISTENT, RGATE_DBLOCK_WARPS, rgate_dpersist)
#define RGATE_GPU_WARPS(kernel, fn, near_bytes, reply_bytes) \
	RGATE_GPU_KERNEL_(kernel, fn, near_bytes, reply_bytes, 8, 1, \
			  RGATE_GPU_KIND_PERSISTENT, RGATE_DBLOCK_WARPS, rgate_dpersist)
#define RGATE_GPU_ORDERED(kernel, fn, near_bytes, reply_bytes) \
	RGATE_GPU_KERNEL_(kernel, fn, near_bytes, reply_bytes, 32, 0, \
			  RGATE_GPU_KIND_ORDERED, RGATE_DORDER_WARPS, rgate_dordered)
#define RGATE_GPU_BATCH(kernel, fn, near_bytes, reply_bytes) \
	RGATE_GPU_KERNEL_(kernel, fn, near_bytes, reply_bytes, 32, 0, \
			  RGATE_GPU_KIND_BATCH, RGATE_DBLOCK_WARPS, rgate_dsnapshot)

#endif /* __CUDACC__ */
#endif
