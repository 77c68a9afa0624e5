// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * From CPU to GPU and back: bare words, rings with the plain primitives, and the runtime
 * with a user's function. One at a time, the clock is the CPU's.
 */
#include <ringgate/gpu/kernel.cuh>

#include <stdio.h>
#include <string.h>

#include "gbench.h"

#define ROUNDS	20000U
#define WARM	1000U
#define SIZE	64U

enum path {
	WORD_WORD,	/* a word there, a word back */
	RING_WORD,	/* a frame published; its seq seen, a word back */
	RING_RING,	/* ... a frame published back, nothing read of the first */
	COPY_WORD,	/* as WORD_WORD, and 64 bytes beside each word read and written */
	ECHO_RING,	/* as RING_RING, and the 64 bytes read and written */
	RUNTIME,	/* the same by rgate_gpu_start() and a user's function */
	HANDED,		/* ... handed on by the warp that looks */
	WAYS
};

static const char *const names[WAYS] = {
	"bare_words", "ring_to_word", "ring_to_ring", "bare_words_64", "ring_to_ring_64",
	"runtime_64", "runtime_64_handed",
};

/* Host memory. Each word has a line of its own, and each line beside it a frame. */
struct words {
	uint64_t to;
	uint64_t pad[7];
	unsigned char frame_to[SIZE];
	uint64_t back;
	uint64_t pad2[7];
	unsigned char frame_back[SIZE];
	uint64_t stop;
};

static __global__ void words_kernel(struct words *w, int copy)
{
	const uint32_t lane = threadIdx.x;
	uint64_t n;

	for (n = 1;; n++) {
		while (rgate_dsys_acquire(&w->to) != n)
			if (n > 1 && n % 64 == 0 && rgate_dsys_load(&w->stop))
				return;
		__syncwarp();
		if (copy && lane < 4)
			*(struct rgate_dvec *)(w->frame_back + lane * 16) =
				rgate_dload16(w->frame_to + lane * 16);
		__syncwarp();
		if (lane == 0)
			rgate_dsys_release(&w->back, n);
		if (n == ROUNDS)
			return;
	}
}

/* One warp, the only consumer of one ring and the only producer of the other */
static __global__ void ring_kernel(struct rgate_dring in, struct rgate_dring out, uint64_t start,
				   struct words *w, int way)
{
	const uint32_t lane = threadIdx.x;
	uint64_t n;

	for (n = 0; n < ROUNDS; n++) {
		uint64_t pos = start + n;
		unsigned char *to = (unsigned char *)rgate_dring_slot(&out, n);
		const unsigned char *from = (const unsigned char *)rgate_dring_slot(&in, pos);

		while (!rgate_dring_ready(&in, pos))
			;
		__syncwarp();
		if (way == ECHO_RING && lane < 4)
			*(struct rgate_dvec *)(to + RGATE_SLOT_HDR + lane * 16) =
				rgate_dload16(from + RGATE_SLOT_HDR + lane * 16);
		if (way != RING_WORD && lane == 0)
			rgate_dout_header((struct rgate_slot *)to, NULL, SIZE, RGATE_DOUT_FLAGS);
		__syncwarp();
		if (lane == 0) {
			/* the ring back holds all rounds: no credit has to be looked at */
			if (way == RING_WORD)
				rgate_dsys_release(&w->back, n + 1);
			else
				rgate_dsys_release(&((struct rgate_slot *)to)->seq,
						   rgate_dring_lap(&out, n));
			if ((pos & (RGATE_BATCH - 1)) == RGATE_BATCH - 1)
				rgate_dring_release(&in, pos);
		}
	}
}

static __device__ uint32_t echo(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t i;

	for (i = 0; i < pkt->near_len; i += 16)
		*(uint4 *)((unsigned char *)result + i) = *(const uint4 *)(pkt->near + i);
	return pkt->len;
}

RGATE_GPU_LANES(echo_kernel, echo, 64, 64)

struct bed {
	struct rgate_gpu *gpu;
	struct rgate_ring *in, *out;
	struct rgate_producer p;
	struct rgate_consumer c;
	struct words *w;
	uint64_t got;
};

static void bed_open(struct bed *b)
{
	memset(b, 0, sizeof(*b));
	b_ok(NULL, rgate_gpu_open(&b->gpu, NULL));
	b->in = b_ring(4096, 256);
	b->out = b_ring(32768, 256);
	b_require(!rgate_producer_init(&b->p, b->in));
	b_require(!rgate_consumer_init(&b->c, b->out, NULL));
	b_ok(b->gpu, rgate_gpu_bind(b->gpu, b->in, NULL));
	b_require(!cudaHostAlloc((void **)&b->w, sizeof(*b->w), cudaHostAllocMapped));
	memset(b->w, 0, sizeof(*b->w));
}

static void bed_close(struct bed *b)
{
	__atomic_store_n(&b->w->stop, 1, __ATOMIC_RELEASE);
	b_ok(b->gpu, rgate_gpu_stop(b->gpu, 5000));
	b_require(!cudaStreamSynchronize((cudaStream_t)rgate_gpu_stream(b->gpu)));
	rgate_gpu_close(b->gpu);
	rgate_producer_fini(&b->p);
	rgate_ring_close(b->in);
	rgate_ring_close(b->out);
	cudaFreeHost(b->w);
}

static void launch(struct bed *b, enum path way)
{
	cudaStream_t stream = (cudaStream_t)rgate_gpu_stream(b->gpu);
	struct rgate_gpu_start_opts o;
	struct rgate_dring in, out;
	uint64_t start;

	if (way == WORD_WORD || way == COPY_WORD) {
		words_kernel<<<1, 32, 0, stream>>>(b->w, way == COPY_WORD);
	} else if (way == RUNTIME || way == HANDED) {
		memset(&o, 0, sizeof(o));
		o.sz = sizeof(o);
		o.pause_ns = 1;
		o.direct = way == HANDED ? RGATE_GPU_NO_DIRECT : 0;
		b_ok(b->gpu, rgate_gpu_bind_output(b->gpu, b->out, RGATE_GPU_FULL_DROP));
		b_ok(b->gpu, rgate_gpu_start(b->gpu, &echo_kernel, &o));
	} else {
		b_ok(b->gpu, rgate_gpu_bind(b->gpu, b->out, NULL));	/* as memory alone */
		b_ok(b->gpu, rgate_gpu_ring_view(b->gpu, 0, &in, sizeof(in), &start));
		b_ok(b->gpu, rgate_gpu_ring_view(b->gpu, 1, &out, sizeof(out), NULL));
		ring_kernel<<<1, 32, 0, stream>>>(in, out, start, b->w, way);
	}
	b_require(!cudaGetLastError());
}

static void send_frame(struct bed *b, enum path way, const unsigned char *frame, uint64_t n)
{
	struct rgate_slot *s;

	if (way == WORD_WORD || way == COPY_WORD) {
		if (way == COPY_WORD)
			memcpy(b->w->frame_to, frame, SIZE);
		__atomic_store_n(&b->w->to, n, __ATOMIC_RELEASE);
		return;
	}
	s = rgate_producer_reserve(&b->p);
	while (!s)
		s = rgate_producer_reserve(&b->p);
	memcpy(rgate_producer_data(s), frame, SIZE);
	rgate_producer_fill(&b->p, s, SIZE, SIZE);
	rgate_producer_publish(&b->p);
}

/* Looks until @word has @value; seconds of that are a failure */
template <class T> static void await(const T *word, uint64_t value)
{
	uint32_t looks = 0;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		b_require(++looks);
}

static void receive(struct bed *b, enum path way, const unsigned char *frame, uint64_t n)
{
	const struct rgate_slot *s;

	if (way == WORD_WORD || way == COPY_WORD || way == RING_WORD) {
		await(&b->w->back, n);
		b_require(way != COPY_WORD || !memcmp(b->w->frame_back, frame, SIZE));
		return;
	}
	await(&rgate_consumer_slot(&b->c, n - 1)->seq, rgate_consumer_lap(&b->c, n - 1));
	s = rgate_consumer_next(&b->c);
	b_require(s && s->len == SIZE);
	b_require(way == RING_RING || !memcmp(rgate_slot_data(s), frame, SIZE));
	rgate_consumer_release(&b->c);
}

static double run(enum path way, double bare)
{
	static uint64_t took[ROUNDS];
	unsigned char frame[SIZE];
	struct b_quantiles q;
	struct bed b;
	uint64_t n, t0;

	bed_open(&b);
	launch(&b, way);
	for (n = 1; n <= ROUNDS; n++) {
		memset(frame, (int)n, SIZE);
		memcpy(frame, &n, sizeof(n));
		t0 = b_now_ns();
		send_frame(&b, way, frame, n);
		receive(&b, way, frame, n);
		took[n - 1] = b_now_ns() - t0;
		/* not in step with the GPU's polling */
		t0 = b_now_ns();
		while (b_now_ns() - t0 < n * 7919 % 1000)
			;
	}
	bed_close(&b);
	b_quantiles(took + WARM, ROUNDS - WARM, &q);
	b_line(names[way], "p50_ns", q.p50, "p90_ns", q.p90, "p99_ns", q.p99, "min_ns", q.min,
	       "ratio", bare ? q.p50 / bare : 1.0, NULL);
	return q.p50;
}

/*
 * What the parts take, one after the other, by one thread of the GPU
 */

enum part { READ_HOST, STORE_HOST, ATOMIC, LOAD, CLOCK, PARTS };
#define PART_ROUNDS 2000

static __global__ void parts_kernel(uint64_t *host, uint64_t *dev, uint64_t *took)
{
	uint64_t sum = 0, t0;
	int i, part;

	for (part = 0; part < PARTS; part++) {
		t0 = rgate_dnow();
		for (i = 0; i < PART_ROUNDS; i++) {
			if (part == READ_HOST) {
				sum += rgate_dsys_acquire(host + (sum & 1));
			} else if (part == STORE_HOST) {
				rgate_dsys_store(host + 16, i);
				rgate_dsys_fence();
			} else if (part == ATOMIC) {
				sum += rgate_dgpu_cas(dev, sum, i);
			} else if (part == LOAD) {
				sum += rgate_dgpu_acquire(dev + 16 + (sum & 1));
			} else {
				sum += rgate_dnow() & 1;
			}
		}
		took[part] = rgate_dnow() - t0;
	}
	dev[32] = sum;
}

static void parts(void)
{
	uint64_t *host, *dev, *took;

	b_require(!cudaHostAlloc((void **)&host, 4096, cudaHostAllocMapped));
	b_require(!cudaMallocManaged((void **)&took, 4096));
	b_require(!cudaMalloc((void **)&dev, 4096) && !cudaMemset(dev, 0, 4096));
	memset(host, 0, 4096);
	parts_kernel<<<1, 1>>>(host, dev, took);
	b_require(!cudaDeviceSynchronize());
	b_line("parts", "read_host_ns", (double)took[READ_HOST] / PART_ROUNDS,
	       "store_host_and_fence_ns", (double)took[STORE_HOST] / PART_ROUNDS,
	       "device_atomic_ns", (double)took[ATOMIC] / PART_ROUNDS, "device_load_ns",
	       (double)took[LOAD] / PART_ROUNDS, "clock_ns", (double)took[CLOCK] / PART_ROUNDS,
	       NULL);
	cudaFreeHost(host);
	cudaFree(took);
	cudaFree(dev);
}

int main(void)
{
	double bare[2] = { 0, 0 };
	int round;

	b_pin(2);
	parts();
	for (round = 0; round < 3; round++) {
		bare[0] = run(WORD_WORD, 0);
		run(RING_WORD, bare[0]);
		run(RING_RING, bare[0]);
		bare[1] = run(COPY_WORD, 0);
		run(ECHO_RING, bare[1]);
		run(RUNTIME, bare[1]);
		run(HANDED, bare[1]);
	}
	return 0;
}
