// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The copy engine as an alternative: a batch of slots copied to the device's memory, then
 * processed there; beside a kernel that reads the same slots over the link itself.
 */
#include <ringgate/gpu/kernel.cuh>

#include <string.h>

#include "gbench.h"

#define SLOTS	8192U
#define REPEATS	200U
#define STREAMS	2U

/* Sums frames of @width bytes that lie @pitch apart; a warp a frame, from either memory */
static __global__ void sum(const unsigned char *from, uint32_t pitch, uint32_t width, uint32_t n,
			   uint32_t *out)
{
	const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
	const uint32_t warps = gridDim.x * blockDim.x / 32, per = width / 16;
	const uint32_t group = per >= 256 ? 1 : 256 / per;
	uint32_t g, c, k, s = 0;

	for (g = warp * group; g < n; g += warps * group) {
		uint32_t total = (n - g < group ? n - g : group) * per;

		for (c = rgate_dlane(); c < total; c += 256) {
			struct rgate_dvec v[8];

			RGATE_DUNROLL
			for (k = 0; k < 8; k++)
				if (c + k * 32 < total)
					v[k] = rgate_dload16(from + (uint64_t)(g + (c + k * 32) / per) *
							     pitch + (c + k * 32) % per * 16);
			RGATE_DUNROLL
			for (k = 0; k < 8; k++)
				if (c + k * 32 < total)
					s += v[k].w[0] + v[k].w[1] + v[k].w[2] + v[k].w[3];
		}
	}
	s = rgate_dwarp_add(s);
	if (rgate_dlane() == 0)
		atomicAdd(out, s);
}

struct bed {
	const unsigned char *slots;
	unsigned char *dev[STREAMS];
	uint32_t *out[STREAMS];
	cudaStream_t stream[STREAMS];
	uint32_t size, slot_size, width;
};

static void submit(struct bed *b, bool copy, uint32_t n, uint32_t at, uint32_t i)
{
	const unsigned char *from = b->slots + (uint64_t)(at % (SLOTS / n)) * n * b->slot_size;
	uint32_t blocks = n / 64 ? n / 64 < 132 ? n / 64 : 132 : 1, pitch = b->slot_size;

	if (copy) {
		b_require(!cudaMemcpy2DAsync(b->dev[i], b->width, from, b->slot_size, b->width, n,
					     cudaMemcpyHostToDevice, b->stream[i]));
		from = b->dev[i];
		pitch = b->width;
	}
	sum<<<blocks, 256, 0, b->stream[i]>>>(from, pitch, b->width, n, b->out[i]);
}

static void measure(struct bed *b, bool copy, uint32_t n)
{
	static uint64_t took[REPEATS];
	uint64_t t0, t1, rounds = 0;
	struct b_quantiles q;
	uint32_t i;

	for (i = 0; i < REPEATS; i++) {
		t0 = b_now_ns();
		submit(b, copy, n, i, 0);
		b_require(!cudaStreamSynchronize(b->stream[0]));
		took[i] = b_now_ns() - t0;
	}
	b_quantiles(took, REPEATS, &q);
	t0 = b_now_ns();
	while (b_now_ns() - t0 < 100000000) {
		for (i = 0; i < 16; i++)
			submit(b, copy, n, (uint32_t)rounds * 16 + i, i % STREAMS);
		b_require(!cudaStreamSynchronize(b->stream[rounds % STREAMS]));
		rounds++;
	}
	b_require(!cudaDeviceSynchronize());
	t1 = b_now_ns();
	b_line(copy ? "copy_engine" : "kernel_reads", "size", (double)b->size, "batch", (double)n,
	       "latency_p50_ns", q.p50, "pps", (double)rounds * 16 * n / ((double)(t1 - t0) / 1e9),
	       "bytes_per_s", (double)rounds * 16 * n * b->width / ((double)(t1 - t0) / 1e9), NULL);
}

static void run(uint32_t size, uint32_t slot_size)
{
	struct rgate_dring ring;
	struct rgate_gpu *gpu;
	struct b_feed f;
	struct bed b;
	uint32_t n, i;

	memset(&b, 0, sizeof(b));
	b.size = size;
	b.slot_size = slot_size;
	b.width = RGATE_SLOT_HDR + (size + 15) / 16 * 16;
	b_feed_open(&f, B_REARM, 1, SLOTS, slot_size, size);
	b_ok(NULL, rgate_gpu_open(&gpu, NULL));
	b_ok(gpu, rgate_gpu_bind(gpu, f.ring[0], NULL));
	b_ok(gpu, rgate_gpu_ring_view(gpu, 0, &ring, sizeof(ring), NULL));
	b.slots = ring.slots;
	for (i = 0; i < STREAMS; i++)
		b_require(!cudaMalloc((void **)&b.dev[i], (size_t)SLOTS * b.width) &&
			  !cudaMalloc((void **)&b.out[i], 4) &&
			  !cudaStreamCreateWithFlags(&b.stream[i], cudaStreamNonBlocking));
	for (n = 32; n <= SLOTS; n *= 4) {
		measure(&b, true, n);
		measure(&b, false, n);
	}
	for (i = 0; i < STREAMS; i++) {
		cudaFree(b.dev[i]);
		cudaFree(b.out[i]);
		cudaStreamDestroy(b.stream[i]);
	}
	rgate_gpu_close(gpu);
	b_feed_close(&f);
}

int main(void)
{
	b_pin(2);
	run(64, 256);
	run(256, 512);
	run(1500, 2048);
	return 0;
}
