/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The first 16 bytes of each datagram are four floats; the GPU multiplies them by a matrix
 * into an array: float4 [port]
 */
#include <ringgate/gpu/kernel.cuh>
#include <ringgate/rgate_source.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESULTS 65536	/* the newest */

struct matrix {
	float4 row[4];
};

static __device__ float dot(float4 a, float4 b)
{
	return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

static __device__ uint32_t transform(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	const struct matrix *m = (const struct matrix *)arg;
	uint32_t off = pkt->hdr->payload_off;
	float4 v;

	if (off == RGATE_OFF_NONE || off + sizeof(v) > pkt->near_len)
		return 0;
	/* as the frame has it, at any alignment */
	memcpy(&v, pkt->near + off, sizeof(v));
	*(float4 *)result = make_float4(dot(m->row[0], v), dot(m->row[1], v), dot(m->row[2], v),
					dot(m->row[3], v));
	return 0;
}

RGATE_GPU_LANES(transform_kernel, transform, 64, 0)

static void check(struct rgate_gpu *gpu, long ret, const char *what)
{
	const char *why;

	if (ret >= 0)
		return;
	why = rgate_gpu_error(gpu);
	fprintf(stderr, "%s: %s\n", what, *why ? why : rgate_strerror("rgate_gpu_", (int)ret));
	exit(1);
}

int main(int argc, char **argv)
{
	struct matrix m = { { { 2, 0, 0, 0 }, { 0, 2, 0, 0 }, { 0, 0, 2, 0 }, { 1, 1, 1, 1 } } };
	struct rgate_gpu_start_opts o = {};
	struct sockaddr_in addr = {};
	struct rgate_source *src;
	struct rgate_ring *ring;
	struct rgate_gpu *gpu;

	addr.sin_family = AF_INET;
	addr.sin_port = htons(argc > 1 ? (uint16_t)atoi(argv[1]) : 7777);
	check(NULL, rgate_gpu_open(&gpu, NULL), "GPU");
	check(gpu, rgate_ring_open_memfd(&ring, NULL), "ring");
	check(gpu, rgate_source_start_udp(&src, &ring, 1, (struct sockaddr *)&addr, sizeof(addr),
					  NULL),
	      "socket");
	check(gpu, rgate_gpu_bind(gpu, ring, NULL), "bind");
	o.sz = sizeof(o);
	o.results_len = RESULTS;
	o.result_size = sizeof(float4);
	if (cudaMalloc(&o.arg, sizeof(m)) || cudaMalloc(&o.results, RESULTS * sizeof(float4)) ||
	    cudaMemcpy(o.arg, &m, sizeof(m), cudaMemcpyHostToDevice))
		return 1;
	check(gpu, rgate_gpu_start(gpu, &transform_kernel, &o), "start");
	for (;;) {
		struct rgate_gpu_stats st = {};
		float4 v;

		sleep(1);
		st.sz = sizeof(st);
		check(gpu, rgate_gpu_ring_stats(gpu, 0, &st), "stats");
		if (!st.finished)
			continue;
		cudaMemcpy(&v, (float4 *)o.results + (st.finished - 1) % RESULTS, sizeof(v),
			   cudaMemcpyDeviceToHost);
		printf("%llu packets, the last: %g %g %g %g\n", (unsigned long long)st.packets,
		       v.x, v.y, v.z, v.w);
		fflush(stdout);
	}
}
