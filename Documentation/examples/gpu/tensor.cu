/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Payloads gathered into a tensor: row i of a [ROWS][WIDTH] buffer in the GPU's memory is
 * the i-th packet's payload, zero-padded, ready for a model: tensor [port]
 * A launch takes what is there; a full tensor is handed to the model on the same stream.
 */
#include <ringgate/gpu/kernel.cuh>
#include <ringgate/rgate_source.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROWS	1024U
#define WIDTH	256U

struct tensor {
	uint32_t rows;		/* taken */
	unsigned char data[ROWS][WIDTH];
};

static __device__ uint32_t gather(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t off = pkt->hdr->payload_off, row, i;
	struct tensor *t = (struct tensor *)arg;

	row = atomicAdd(&t->rows, 1);
	if (row >= ROWS)
		return 0;	/* dropped: one may keep it in a second tensor instead */
	for (i = 0; i < WIDTH; i++)
		t->data[row][i] = (unsigned char)rgate_dpkt_u8(pkt, off + i);
	return 0;
}

RGATE_GPU_BATCH(gather_kernel, gather, 320, 0)

/* In place of a model: the mean of each column */
static __global__ void model(struct tensor *t, float *out)
{
	uint32_t rows = t->rows < ROWS ? t->rows : ROWS;
	float sum = 0;

	for (uint32_t i = 0; i < rows; i++)
		sum += t->data[i][threadIdx.x];
	out[threadIdx.x] = sum / rows;
	__syncthreads();
	if (threadIdx.x == 0)
		t->rows = 0;
}

static long check(struct rgate_gpu *gpu, long ret, const char *what)
{
	const char *why;

	if (ret >= 0)
		return ret;
	why = rgate_gpu_error(gpu);
	fprintf(stderr, "%s: %s\n", what, *why ? why : rgate_strerror("rgate_gpu_", (int)ret));
	exit(1);
}

int main(int argc, char **argv)
{
	struct rgate_gpu_start_opts o = {};
	struct sockaddr_in addr = {};
	struct rgate_source *src;
	struct rgate_ring *ring;
	struct rgate_gpu *gpu;
	cudaStream_t stream;
	float *out, first;
	long rows = 0;

	addr.sin_family = AF_INET;
	addr.sin_port = htons(argc > 1 ? (uint16_t)atoi(argv[1]) : 7777);
	check(NULL, rgate_gpu_open(&gpu, NULL), "GPU");
	check(gpu, rgate_ring_open_memfd(&ring, NULL), "ring");
	check(gpu, rgate_source_start_udp(&src, &ring, 1, (struct sockaddr *)&addr, sizeof(addr),
					  NULL),
	      "socket");
	check(gpu, rgate_gpu_bind(gpu, ring, NULL), "bind");
	stream = (cudaStream_t)rgate_gpu_stream(gpu);
	o.sz = sizeof(o);
	if (cudaMalloc(&o.arg, sizeof(struct tensor)) || cudaMalloc(&out, WIDTH * sizeof(float)) ||
	    cudaMemset(o.arg, 0, sizeof(struct tensor)))
		return 1;
	for (;;) {
		rows += check(gpu, rgate_gpu_launch(gpu, &gather_kernel, &o), "launch");
		check(gpu, rgate_gpu_wait(gpu, 1000), "wait");
		if (rows < (long)ROWS / 2) {
			usleep(1000);
			continue;
		}
		model<<<1, WIDTH, 0, stream>>>((struct tensor *)o.arg, out);
		cudaMemcpyAsync(&first, out, sizeof(first), cudaMemcpyDeviceToHost, stream);
		cudaStreamSynchronize(stream);
		printf("%ld rows, mean of the first column %.2f\n", rows, first);
		fflush(stdout);
		rows = 0;
	}
}
