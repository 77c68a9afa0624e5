// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Packets a second out of rings in host memory: every byte of every frame is read and
 * summed on the GPU. Beside it, in the same run, the copy engine and a kernel that only
 * reads the same bytes.
 */
#include <ringgate/gpu/kernel.cuh>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gbench.h"

#define WARM_MS		100
#define RUN_MS		400
#define SLOTS		4096U
#define DEEPEST		65536U

static uint32_t ring_slots = SLOTS;

static __device__ __forceinline__ uint32_t sum16(const unsigned char *p)
{
	const uint4 v = *(const uint4 *)p;

	return v.x + v.y + v.z + v.w;
}

/* The user's functions: the frame's sum is the result */
static __device__ uint32_t sum_lane(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t sum = 0, i;

	for (i = 0; i < pkt->near_len; i += 16)
		sum += sum16(pkt->near + i);
	*(uint32_t *)result = sum;
	return 0;
}

static __device__ uint32_t sum_warp_near(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t sum = 0, i;

	for (i = rgate_dlane() * 16; i < pkt->near_len; i += 512)
		sum += sum16(pkt->near + i);
	sum = rgate_dwarp_add(sum);
	if (rgate_dlane() == 0)
		*(uint32_t *)result = sum;
	return 0;
}

static __device__ uint32_t sum_warp_far(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t sum = 0, i, k;
	struct rgate_dvec v[4];

	for (i = rgate_dlane() * 16; i < pkt->len; i += 2048) {
		RGATE_DUNROLL
		for (k = 0; k < 4; k++)
			if (i + k * 512 < pkt->len)
				v[k] = rgate_dload16(pkt->data + i + k * 512);
		RGATE_DUNROLL
		for (k = 0; k < 4; k++)
			if (i + k * 512 < pkt->len)
				sum += v[k].w[0] + v[k].w[1] + v[k].w[2] + v[k].w[3];
	}
	sum = rgate_dwarp_add(sum);
	if (rgate_dlane() == 0)
		*(uint32_t *)result = sum;
	return 0;
}

RGATE_GPU_LANES(lanes64, sum_lane, 64, 0)
RGATE_GPU_LANES(lanes256, sum_lane, 256, 0)
RGATE_GPU_WARPS(warps256, sum_warp_near, 256, 0)
RGATE_GPU_WARPS(warps512, sum_warp_near, 512, 0)
RGATE_GPU_WARPS(warps1504, sum_warp_near, 1504, 0)
RGATE_GPU_WARPS(far_kernel, sum_warp_far, 0, 0)
RGATE_GPU_ORDERED(ordered64, sum_lane, 64, 0)

/*
 * Roofs
 */

/*
 * Header and frame of every slot of all rings, again and again, and nothing else. Once a
 * lap an acquire empties the processor's cache, as the ring's do all the time: else small
 * rings would be read out of it, and not over the link.
 */
static __global__ void read_only(const __grid_constant__ struct rgate_dctx ctx, uint32_t bytes,
				 uint32_t laps, uint64_t *out)
{
	const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
	const uint32_t warps = gridDim.x * blockDim.x / 32, per = bytes / 16;
	const uint32_t group = per >= 256 ? 1 : 256 / per;	/* slots in flight */
	const uint64_t slots = ctx.ring[0].mask + 1, groups = slots / group * ctx.nrings;
	uint32_t sum = 0, lap, k;

	for (lap = 0; lap < laps; lap++) {
		sum += (uint32_t)rgate_dgpu_acquire(out);
		for (uint64_t g = warp; g < groups; g += warps) {
			const struct rgate_dring r = ctx.ring[g % ctx.nrings];
			uint64_t pos = g / ctx.nrings * group;

			for (uint32_t c = rgate_dlane(); c < group * per; c += 256) {
				struct rgate_dvec v[8];

				RGATE_DUNROLL
				for (k = 0; k < 8; k++)
					if (c + k * 32 < group * per)
						v[k] = rgate_dload16((const char *)
							rgate_dring_slot(&r, pos + (c + k * 32) / per) +
							(c + k * 32) % per * 16);
				RGATE_DUNROLL
				for (k = 0; k < 8; k++)
					if (c + k * 32 < group * per)
						sum += v[k].w[0] ^ v[k].w[3];
			}
		}
	}
	if (sum == 0x12345678)
		*out = sum;
}

static double time_reads(struct rgate_dctx *ctx, uint32_t blocks, uint32_t bytes, uint32_t laps,
			 uint64_t *out, cudaStream_t stream)
{
	cudaEvent_t a, b;
	float ms = 0;

	b_require(!cudaEventCreate(&a) && !cudaEventCreate(&b));
	b_require(!cudaEventRecord(a, stream));
	read_only<<<blocks, 256, 0, stream>>>(*ctx, bytes, laps, out);
	b_require(!cudaEventRecord(b, stream) && !cudaEventSynchronize(b));
	b_require(!cudaEventElapsedTime(&ms, a, b));
	cudaEventDestroy(a);
	cudaEventDestroy(b);
	return ms / 1e3;
}

/* Frames a second of the best of several grids */
static double roof_reads(struct rgate_gpu *gpu, const struct b_feed *f)
{
	static const uint32_t blocks[] = { 2, 4, 8, 16, 32, 64, 132, 264 };
	uint32_t bytes = RGATE_SLOT_HDR + (f->size + 15) / 16 * 16, i;
	cudaStream_t stream = (cudaStream_t)rgate_gpu_stream(gpu);
	struct rgate_dctx ctx;
	double best = 0;
	uint64_t *out;

	memset(&ctx, 0, sizeof(ctx));
	ctx.nrings = f->rings;
	for (i = 0; i < f->rings; i++)
		b_ok(gpu, rgate_gpu_ring_view(gpu, i, &ctx.ring[i], sizeof(ctx.ring[i]), NULL));
	b_require(!cudaMalloc((void **)&out, 8) && !cudaMemset(out, 0, 8));
	for (i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		double frames = (double)ring_slots * f->rings, t;
		uint32_t laps;

		t = time_reads(&ctx, blocks[i], bytes, 2, out, stream);
		laps = (uint32_t)(0.05 / (t / 2)) + 1;
		t = time_reads(&ctx, blocks[i], bytes, laps, out, stream);
		if (getenv("BENCH_VERBOSE"))
			b_line("roof_reads", "size", (double)f->size, "rings", (double)f->rings,
			       "blocks", (double)blocks[i], "bytes_per_s", frames * laps / t * bytes,
			       NULL);
		if (frames * laps / t > best)
			best = frames * laps / t;
	}
	cudaFree(out);
	return best;
}

static void roof_copy(void)
{
	const size_t len = 256UL << 20;
	cudaEvent_t a, b;
	void *host, *dev;
	double best = 0;
	int i;

	b_require(!cudaHostAlloc(&host, len, cudaHostAllocDefault));
	b_require(!cudaMalloc(&dev, len) && !cudaEventCreate(&a) && !cudaEventCreate(&b));
	memset(host, 0x5a, len);
	for (i = 0; i < 6; i++) {
		float ms = 0;

		b_require(!cudaEventRecord(a) &&
			  !cudaMemcpyAsync(dev, host, len, cudaMemcpyHostToDevice) &&
			  !cudaEventRecord(b) && !cudaEventSynchronize(b) &&
			  !cudaEventElapsedTime(&ms, a, b));
		if (len / (ms / 1e3) > best)
			best = len / (ms / 1e3);
	}
	b_line("roof_copy", "bytes_per_s", best, NULL);
	cudaFreeHost(host);
	cudaFree(dev);
}

/*
 * The rings
 */

struct way {
	const char *name;
	const struct rgate_gpu_kernel *kernel;
	uint32_t blocks;	/* 0: the runtime's choice */
	uint32_t grain, direct, pollers;
};

static uint64_t packets(struct rgate_gpu *gpu, uint32_t rings, uint64_t *looks, uint64_t *work)
{
	uint64_t sum = 0;
	uint32_t i;

	*looks = *work = 0;
	for (i = 0; i < rings; i++) {
		struct rgate_gpu_stats st;

		memset(&st, 0, sizeof(st));
		st.sz = sizeof(st);
		b_require(!rgate_gpu_ring_stats(gpu, i, &st));
		sum += st.packets;
		*looks += st.looks;
		*work += st.work_ns;
	}
	return sum;
}

static void measure(const char *name, enum b_mode mode, const struct way *w, uint32_t size,
		    uint32_t slot_size, uint32_t rings, bool roof)
{
	struct rgate_gpu_start_opts o;
	uint64_t n0, n1, t0, t1, l0, l1, w0, w1;
	struct rgate_gpu_status st;
	struct rgate_gpu *gpu;
	double reads = 0, pps;
	struct b_feed f;
	uint32_t i;

	b_feed_open(&f, mode, rings, ring_slots, slot_size, size);
	b_ok(NULL, rgate_gpu_open(&gpu, NULL));
	for (i = 0; i < rings; i++)
		b_ok(gpu, rgate_gpu_bind(gpu, f.ring[i], NULL));
	/* the threads wait for credits: the processor is as awake as it will be */
	if (roof && getenv("BENCH_VERBOSE"))
		roof_reads(gpu, &f);
	b_feed_start(&f, 0);
	if (roof)
		reads = roof_reads(gpu, &f);
	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.blocks = w->blocks;
	o.grain = w->grain;
	o.direct = w->direct;
	o.pollers = w->pollers;
	o.results_len = SLOTS;
	o.result_size = 4;
	b_require(!cudaMalloc(&o.results, SLOTS * 4));
	b_ok(gpu, rgate_gpu_start(gpu, w->kernel, &o));
	b_sleep_ms(WARM_MS);
	n0 = packets(gpu, rings, &l0, &w0);
	t0 = b_now_ns();
	b_sleep_ms(RUN_MS);
	n1 = packets(gpu, rings, &l1, &w1);
	t1 = b_now_ns();
	memset(&st, 0, sizeof(st));
	st.sz = sizeof(st);
	b_require(!rgate_gpu_query(gpu, &st));
	b_ok(gpu, rgate_gpu_stop(gpu, 5000));
	b_feed_stop(&f);
	pps = (double)(n1 - n0) / ((double)(t1 - t0) / 1e9);
	b_line(name, "size", (double)size, "slot_size", (double)slot_size, "slots",
	       (double)ring_slots, "rings", (double)rings, "pps", pps, "frame_bytes_per_s",
	       pps * size, "read_bytes_per_s",
	       pps * (RGATE_SLOT_HDR + (size + 15) / 16 * 16), "roof_pps", reads, "threads",
	       (double)f.threads, "blocks", (double)st.blocks, "packets_per_look",
	       (double)(n1 - n0) / (double)(l1 - l0 ? l1 - l0 : 1), "warps_at_work",
	       (double)(w1 - w0) / (double)(t1 - t0), NULL);
	rgate_gpu_close(gpu);
	b_feed_close(&f);
	cudaFree(o.results);
}

/* How wide? To choose the defaults by */
static void sweep(void)
{
	static const uint32_t blocks[] = { 2, 4, 8, 16, 32, 64, 128 };
	static const uint32_t rings[] = { 1, 8 };
	char name[64];
	uint32_t i, k;

	for (k = 0; k < 2; k++)
		for (i = 0; i < 7; i++) {
			const struct way ways[] = {
				{ "lanes64", &lanes64, blocks[i] },
				{ "lanes256", &lanes256, blocks[i] },
				{ "warps256", &warps256, blocks[i] },
				{ "warps1504", &warps1504, blocks[i] },
				{ "far1500", &far_kernel, blocks[i] },
			};
			static const uint32_t size[] = { 64, 256, 256, 1500, 1500 };
			uint32_t n;

			for (n = 0; n < 5; n++) {
				if (blocks[i] < rings[k] || (n > 1 && blocks[i] > 128))
					continue;
				snprintf(name, sizeof(name), "sweep_%s", ways[n].name);
				measure(name, B_REARM, &ways[n], size[n],
					size[n] == 64 ? 256 : size[n] == 256 ? 512 : 2048,
					rings[k], i == 0 || (i == 2 && k));
			}
		}
}

static void table(enum b_mode mode)
{
	static const struct {
		struct way way;
		uint32_t size, slot_size;
	} rows[] = {
		{ { "lanes", &lanes64 }, 64, 256 },
		{ { "lanes", &lanes256 }, 256, 512 },
		{ { "warps", &warps512 }, 512, 1024 },
		{ { "warps", &warps1504 }, 1500, 2048 },
	};
	static const uint32_t rings[] = { 1, 2, 4, 8, 14 };
	uint32_t i, k;

	for (i = 0; i < 4; i++)
		for (k = 0; k < 5; k++)
			measure(mode == B_REARM ? "rate" : "rate_produced", mode, &rows[i].way,
				rows[i].size, rows[i].slot_size, rings[k], mode == B_REARM);
}

/* How many slots does one ring need, so that all that is under way has one? */
static void deep(void)
{
	const struct way way = { "lanes", &lanes64 };

	for (; ring_slots <= DEEPEST; ring_slots *= 2)
		measure("rate_deep", B_REARM, &way, 64, 256, 1, true);
}

/*
 * One ring, by number of threads: warps that divide the batches by number, each looking
 * for itself; and one single thread
 */
static __global__ void by_number(struct rgate_dring ring, uint64_t start, uint32_t *results,
				 const uint64_t *stop, uint64_t *count)
{
	__shared__ __align__(128) unsigned char near[8][32 * RGATE_DSTAGE_STRIDE(64)];
	const uint32_t warps = gridDim.x * blockDim.x / 32;
	uint64_t b = start / RGATE_BATCH + (blockIdx.x * blockDim.x + threadIdx.x) / 32, n = 0;
	unsigned char *mine = near[threadIdx.x / 32];
	uint32_t i, sum;

	for (;; b += warps) {
		uint64_t pos = b * RGATE_BATCH;

		while (!rgate_dring_ready(&ring, rgate_dring_last(pos))) {
			if (rgate_dsys_load(stop))
				goto out;
			rgate_dpause(warps > 8 ? 500 : 50);
		}
		__syncwarp();
		rgate_dstage(&ring, pos, RGATE_BATCH, mine, 64);
		sum = 0;
		for (i = 0; i < 64; i += 16)
			sum += sum16(mine + rgate_dlane() * RGATE_DSTAGE_STRIDE(64) +
				     RGATE_SLOT_HDR + i);
		results[(pos + rgate_dlane()) % SLOTS] = sum;
		__syncwarp();
		if (rgate_dlane() == 0)
			rgate_dring_release(&ring, pos);
		n += RGATE_BATCH;
		if (rgate_dlane() == 0)
			rgate_dsys_store(count + b % warps, n);
	}
out:
	__syncwarp();
}

/* Four slots at a time, as a thread has registers for */
static __global__ void single(struct rgate_dring ring, uint64_t start, uint32_t *results,
			      const uint64_t *stop, uint64_t *count)
{
	struct rgate_dvec v[4][4];
	uint64_t pos = start, n = 0;
	uint32_t i, k, s;

	for (;; pos += RGATE_BATCH) {
		while (!rgate_dring_ready(&ring, rgate_dring_last(pos)))
			if (rgate_dsys_load(stop))
				return;
		for (i = 0; i < RGATE_BATCH; i += 4) {
			RGATE_DUNROLL
			for (s = 0; s < 4; s++)
				RGATE_DUNROLL
				for (k = 0; k < 4; k++)
					v[s][k] = rgate_dload16((const unsigned char *)
						rgate_dring_slot(&ring, pos + i + s) +
						RGATE_SLOT_HDR + k * 16);
			RGATE_DUNROLL
			for (s = 0; s < 4; s++) {
				uint32_t sum = 0;

				RGATE_DUNROLL
				for (k = 0; k < 4; k++)
					sum += v[s][k].w[0] + v[s][k].w[1] + v[s][k].w[2] +
					       v[s][k].w[3];
				results[(pos + i + s) % SLOTS] = sum;
			}
		}
		rgate_dring_release(&ring, pos);
		n += RGATE_BATCH;
		rgate_dsys_store(count, n);
	}
}

static uint64_t count_of(const uint64_t *count, uint32_t n)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += __atomic_load_n(&count[i], __ATOMIC_RELAXED);
	return sum;
}

static void threads(uint32_t n)
{
	uint32_t block = n < 256 ? n : 256, warps = n < 32 ? 1 : n / 32, *results;
	uint64_t *words, start, n0, n1, t0, t1;
	struct rgate_dring ring;
	struct rgate_gpu *gpu;
	cudaStream_t stream;
	struct b_feed f;

	b_feed_open(&f, B_REARM, 1, SLOTS, 256, 64);
	b_ok(NULL, rgate_gpu_open(&gpu, NULL));
	b_ok(gpu, rgate_gpu_bind(gpu, f.ring[0], NULL));
	b_ok(gpu, rgate_gpu_ring_view(gpu, 0, &ring, sizeof(ring), &start));
	stream = (cudaStream_t)rgate_gpu_stream(gpu);
	b_require(!cudaMalloc((void **)&results, SLOTS * 4));
	b_require(!cudaHostAlloc((void **)&words, 4096, cudaHostAllocMapped));
	memset(words, 0, 4096);
	if (n == 1)
		single<<<1, 1, 0, stream>>>(ring, start, results, words, words + 8);
	else
		by_number<<<n / block, block, 0, stream>>>(ring, start, results, words, words + 8);
	b_require(!cudaGetLastError());
	b_feed_start(&f, 0);
	b_sleep_ms(WARM_MS);
	n0 = count_of(words + 8, warps);
	t0 = b_now_ns();
	b_sleep_ms(RUN_MS);
	n1 = count_of(words + 8, warps);
	t1 = b_now_ns();
	b_feed_stop(&f);
	__atomic_store_n(words, 1, __ATOMIC_RELEASE);
	b_require(!cudaStreamSynchronize(stream));
	b_line("threads", "threads", (double)n, "pps", (double)(n1 - n0) /
	       ((double)(t1 - t0) / 1e9), NULL);
	rgate_gpu_close(gpu);
	b_feed_close(&f);
	cudaFree(results);
	cudaFreeHost(words);
}

int main(int argc, char **argv)
{
	static const struct way one = { "lanes", &lanes64, 4 }, four = { "lanes", &lanes64, 16 };
	static const struct way order = { "ordered", &ordered64 };
	uint32_t i;

	b_pin(0);
	if (argc > 1 && !strcmp(argv[1], "roofs")) {
		static const struct way w = { "warps", &warps1504 }, l = { "lanes", &lanes64 };

		roof_copy();
		measure("rate", B_REARM, &l, 64, 256, 8, true);
		measure("rate", B_REARM, &w, 1500, 2048, 8, true);
		roof_copy();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "sweep")) {
		roof_copy();
		sweep();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "deep")) {
		roof_copy();
		deep();
		return 0;
	}
	roof_copy();
	table(B_REARM);
	table(B_PRODUCE);
	for (i = 1; i <= 4096; i *= i == 1 ? 64 : i == 64 ? 16 : 4)
		threads(i);
	measure("threads_persistent_1024", B_REARM, &one, 64, 256, 1, true);
	measure("threads_persistent_4096", B_REARM, &four, 64, 256, 1, false);
	for (i = 1; i <= 8; i *= 2)
		measure("rate_ordered", B_REARM, &order, 64, 256, i, false);
	return 0;
}
