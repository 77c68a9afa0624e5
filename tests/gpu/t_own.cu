// SPDX-License-Identifier: MIT OR GPL-2.0
/* Kernels of one's own on the plain primitives, and the packet vectors on the device. */
#include "verify.cuh"

#include <errno.h>
#include <string.h>

#include "vectors.cuh"

/* Readers divide a ring by number; all end once the producer is gone and all is read. */
static __global__ void read_by_number(struct rgate_dring ring, uint64_t start, struct v_seen *v,
				      int one_lane)
{
	const uint32_t reader = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
	const uint32_t readers = one_lane ? 1 : gridDim.x * blockDim.x / 32;
	struct rgate_dreader rd;
	struct rgate_dpkt pkt;

	rgate_dreader_init(&rd, &ring, start, reader, readers);
	for (;;) {
		const struct rgate_slot *s = rgate_dreader_next(&rd);

		if (s) {
			rgate_dpkt_view(&pkt, &ring, rd.pos, rd.parts);
			if (one_lane)
				v_lane(&pkt, NULL, v);
			else
				v_warp(&pkt, NULL, v);
			rgate_dreader_release(&rd);
		} else if (rgate_dring_ended(&ring, rd.pos)) {
			return;
		} else {
			rgate_dpause(200);
		}
	}
}

/* Warps take batches from a counter; each waits for its own to be published to the end */
static __global__ void read_claimed(struct rgate_dring ring, uint64_t *counter, struct v_seen *v,
				    uint64_t batches)
{
	for (;;) {
		uint64_t b = 0, pos;
		uint32_t i;

		if (rgate_dlane() == 0)
			b = rgate_dclaim(counter);
		b = rgate_dwarp_first(b);
		if (b >= batches)
			return;
		pos = b * RGATE_BATCH;
		while (!rgate_dring_ready(&ring, rgate_dring_last(pos)))
			rgate_dpause(100);
		__syncwarp();
		for (i = 0; i < RGATE_BATCH; i++) {
			struct rgate_dpkt pkt;

			rgate_dpkt_view(&pkt, &ring, pos + i, 1);
			v_warp(&pkt, NULL, v);
		}
		__syncwarp();
		if (rgate_dlane() == 0)
			rgate_dring_release(&ring, pos);
	}
}

static void begin(struct g_feed *f, struct rgate_gpu **gpu, struct rgate_dring *ring,
		  uint64_t *start, uint32_t flags)
{
	memset(f, 0, sizeof(*f));
	f->ring = g_ring(256, 256, flags);
	f->total = 60000 / (uint32_t)g_slow();
	f->total -= f->total % RGATE_BATCH;
	f->min = 16;
	f->max = flags & RGATE_RING_CHAIN ? 900 : 192;
	g_ok(NULL, rgate_gpu_open(gpu, NULL));
	g_ok(*gpu, rgate_gpu_bind(*gpu, f->ring, NULL));
	g_ok(*gpu, rgate_gpu_ring_view(*gpu, 0, ring, sizeof(*ring), start));
	g_require(rgate_gpu_ring_view(*gpu, 1, ring, sizeof(*ring), start) == -EINVAL);
}

static void end(struct g_feed *f, struct rgate_gpu *gpu, struct v_seen *seen)
{
	g_feed_join(f);
	g_require(!cudaStreamSynchronize((cudaStream_t)rgate_gpu_stream(gpu)));
	v_check(seen, f, 1);
	v_free(seen, f, 1);
	rgate_gpu_close(gpu);
	rgate_ring_close(f->ring);
	g_feed_free(f);
}

static void by_number(uint32_t blocks, uint32_t threads, uint32_t flags)
{
	struct rgate_dring ring;
	struct rgate_gpu *gpu;
	struct v_seen *seen;
	struct g_feed f;
	uint64_t start;

	begin(&f, &gpu, &ring, &start, flags);
	seen = v_new(&f, 1);
	read_by_number<<<blocks, threads, 0, (cudaStream_t)rgate_gpu_stream(gpu)>>>(
		ring, start, seen, threads < 32);
	g_require(!cudaGetLastError());
	g_feed_start(&f);
	end(&f, gpu, seen);
}

static void one_thread(void)
{
	by_number(1, 1, 0);
}

static void one_warp(void)
{
	by_number(1, 32, 0);
}

static void many_warps(void)
{
	by_number(2, 160, 0);
}

static void many_warps_chains(void)
{
	by_number(1, 96, RGATE_RING_CHAIN);
}

static void claimed(void)
{
	struct rgate_dring ring;
	struct rgate_gpu *gpu;
	struct v_seen *seen;
	uint64_t start, *counter;
	struct g_feed f;

	begin(&f, &gpu, &ring, &start, 0);
	seen = v_new(&f, 1);
	g_require(!cudaMalloc((void **)&counter, 8) && !cudaMemset(counter, 0, 8));
	read_claimed<<<2, 128, 0, (cudaStream_t)rgate_gpu_stream(gpu)>>>(
		ring, counter, seen, f.total / RGATE_BATCH);
	g_require(!cudaGetLastError());
	g_feed_start(&f);
	end(&f, gpu, seen);
	cudaFree(counter);
}

/* The vectors: one packet of each, checked on the device */

static __device__ uint32_t check_vector(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	const struct vector *v = (const struct vector *)arg + pkt->pos % V_COUNT;

	*(uint32_t *)result = 1000 + vector_check(v, pkt);
	return 0;
}

RGATE_GPU_LANES(vectors_far, check_vector, 0, 0)
RGATE_GPU_LANES(vectors_part, check_vector, 32, 0)
RGATE_GPU_LANES(vectors_near, check_vector, 128, 0)

static void put_vectors(struct rgate_producer *p, const struct vector *v)
{
	uint32_t i;

	for (i = 0; i < V_COUNT; i++) {
		struct rgate_slot *s = rgate_producer_reserve(p);

		g_require(s);
		memcpy(rgate_producer_data(s), v[i].frame, v[i].len);
		rgate_producer_fill(p, s, v[i].len, v[i].len);
		vector_header(&v[i], s);
		rgate_producer_publish(p);
	}
	rgate_producer_flush(p);
}

static void vectors(void)
{
	static const struct rgate_gpu_kernel *const kernels[] = {
		&vectors_far, &vectors_part, &vectors_near
	};
	static const struct vector all[V_COUNT] = V_ALL;
	struct rgate_ring *ring = g_ring(64, 256, 0);
	struct rgate_gpu_start_opts o;
	struct rgate_producer p;
	struct rgate_gpu *gpu;
	uint32_t got[64], i, k;

	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.results_len = 64;
	o.result_size = 4;
	g_ok(NULL, rgate_gpu_open(&gpu, NULL));
	g_ok(gpu, rgate_gpu_bind(gpu, ring, NULL));
	g_require(!cudaMalloc(&o.arg, sizeof(all)) && !cudaMalloc(&o.results, sizeof(got)));
	g_require(!cudaMemcpy(o.arg, all, sizeof(all), cudaMemcpyHostToDevice));
	g_require(!rgate_producer_init(&p, ring));
	for (k = 0; k < 3; k++) {
		g_require(!cudaMemset(o.results, 0, sizeof(got)));
		g_ok(gpu, rgate_gpu_start(gpu, kernels[k], &o));
		put_vectors(&p, all);
		g_ok(gpu, rgate_gpu_drain(gpu, 5000));
		g_ok(gpu, rgate_gpu_stop(gpu, 5000));
		g_require(!cudaMemcpy(got, o.results, sizeof(got), cudaMemcpyDeviceToHost));
		for (i = 0; i < V_COUNT; i++) {
			if (got[k * V_COUNT + i] != 1000)
				g_note("%s: %u", all[i].name, got[k * V_COUNT + i]);
			g_require(got[k * V_COUNT + i] == 1000);
		}
	}
	rgate_producer_fini(&p);
	rgate_gpu_close(gpu);
	rgate_ring_close(ring);
	cudaFree(o.arg);
	cudaFree(o.results);
}

static const struct g_test tests[] = {
	{ "one_thread", one_thread },
	{ "one_warp", one_warp },
	{ "many_warps", many_warps },
	{ "many_warps_chains", many_warps_chains },
	{ "claimed", claimed },
	{ "vectors", vectors },
};

int main(int argc, char **argv)
{
	return g_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
