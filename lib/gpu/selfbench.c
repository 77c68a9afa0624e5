// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a GPU does with rings here: threads fill them, a kernel sums every frame. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "gpu.h"
#include "opts.h"
#include "selfbench.h"

#define WARM_MS		50
#define RESULTS		4096

struct feeder {
	struct rgate_ring *ring;
	struct rgate_producer p;
	pthread_t thread;
	uint32_t size;
	bool *stop;
};

struct bench {
	struct rgate_gpu_bench o;
	struct rgate_gpu *gpu;
	struct feeder f[RGATE_GPU_RINGS_MAX];
	unsigned int rings;	/* that are there */
	unsigned int threads;	/* that run */
	bool stop;		/* atomic */
	void *results;
};

static void *feed(void *arg)
{
	struct feeder *f = arg;
	uint64_t n = 0;

	while (!__atomic_load_n(f->stop, __ATOMIC_RELAXED)) {
		struct rgate_slot *s = rgate_producer_reserve(&f->p);

		if (!s)
			continue;
		memset(rgate_producer_data(s), (int)n, f->size);
		memcpy(rgate_producer_data(s), &n, f->size < 8 ? f->size : 8);
		rgate_producer_fill(&f->p, s, f->size, f->size);
		rgate_producer_publish(&f->p);
		n++;
	}
	return NULL;
}

static void sleep_ms(uint32_t ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

static int open_rings(struct bench *b)
{
	struct rgate_ring_opts o = {
		.sz = sizeof(o),
		.slots = b->o.slots,
		.slot_size = b->o.slot_size,
		.name = "bench-gpu",
	};
	int err = 0;

	while (!err && b->rings < b->o.rings) {
		struct feeder *f = &b->f[b->rings];

		err = rgate_ring_open_memfd(&f->ring, &o);
		if (err)
			return err;
		b->rings++;
		f->size = b->o.size;
		f->stop = &b->stop;
		err = rgate_producer_init(&f->p, f->ring);
		if (!err)
			err = rgate_gpu_bind(b->gpu, f->ring, NULL);
	}
	return err;
}

static uint64_t packets(struct bench *b)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < b->rings; i++) {
		struct rgate_gpu_stats st = { .sz = sizeof(st) };

		rgate_gpu_ring_stats(b->gpu, i, &st);
		sum += st.packets;
	}
	return sum;
}

static int measure(struct bench *b)
{
	struct rgate_gpu_start_opts o = {
		.sz = sizeof(o),
		.results = b->results,
		.results_len = RESULTS,
		.result_size = sizeof(uint32_t),
	};
	uint64_t n, t;
	int err;

	err = rgate_gpu_start(b->gpu, b->o.size <= 64 ? &rgate_gpu_sum_short :
			      &rgate_gpu_sum_long, &o);
	for (; !err && b->threads < b->rings; b->threads++)
		err = -pthread_create(&b->f[b->threads].thread, NULL, feed, &b->f[b->threads]);
	if (!err) {
		sleep_ms(WARM_MS);
		n = packets(b);
		t = rgate_clock_now(CLOCK_MONOTONIC);
		sleep_ms(b->o.time_ms);
		n = packets(b) - n;
		t = rgate_clock_now(CLOCK_MONOTONIC) - t;
		b->o.packets_per_s = (double)n * 1e9 / (double)t;
	}
	return err;
}

static int finish(struct bench *b)
{
	int err = rgate_gpu_stop(b->gpu, 5000);

	__atomic_store_n(&b->stop, true, __ATOMIC_RELAXED);
	while (b->threads)
		pthread_join(b->f[--b->threads].thread, NULL);
	return err;
}

/* Host to device by the copy engine: the roof of all that reads over the link */
static int measure_copy(struct bench *b)
{
	const size_t len = 64U << 20;
	void *host = NULL, *dev = NULL;
	uint64_t t, best = UINT64_MAX;
	cudaError_t err;
	int i;

	err = cudaHostAlloc(&host, len, cudaHostAllocDefault);
	if (!err)
		err = cudaMalloc(&dev, len);
	if (!err)
		memset(host, 1, len);
	for (i = 0; !err && i < 5; i++) {
		t = rgate_clock_now(CLOCK_MONOTONIC);
		err = cudaMemcpy(dev, host, len, cudaMemcpyHostToDevice);
		t = rgate_clock_now(CLOCK_MONOTONIC) - t;
		best = t < best ? t : best;
	}
	cudaFree(dev);
	cudaFreeHost(host);
	b->o.copy_bytes_per_s = (double)len * 1e9 / (double)best;
	return rgate_gpu_cuda(b->gpu, err, "cudaMemcpy");
}

static void close_all(struct bench *b)
{
	unsigned int i;

	rgate_gpu_close(b->gpu);
	for (i = 0; i < b->rings; i++) {
		if (b->f[i].p.core)
			rgate_producer_fini(&b->f[i].p);
		rgate_ring_close(b->f[i].ring);
	}
	cudaFree(b->results);
	free(b);
}

static int run(struct bench *b)
{
	int err, end;

	memcpy(b->o.device_name, b->gpu->prop.name, sizeof(b->o.device_name) - 1);
	err = measure_copy(b);
	if (!err)
		err = open_rings(b);
	if (!err)
		err = rgate_gpu_cuda(b->gpu, cudaMalloc(&b->results, RESULTS * sizeof(uint32_t)),
				     "cudaMalloc");
	if (!err) {
		err = measure(b);
		end = finish(b);
		err = err ? err : end;
	}
	if (err)
		rgate_gpu_keep_error(b->gpu);
	return err;
}

int rgate_gpu_bench(struct rgate_gpu_bench *bench)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct rgate_gpu_opts go = { .sz = sizeof(go) };
	int err, was;

	if (!b)
		return -ENOMEM;
	err = rgate_opts_copy(&b->o, sizeof(b->o), bench);
	if (!err && (!b->o.rings || b->o.rings > RGATE_GPU_RINGS_MAX || !b->o.time_ms ||
		     b->o.time_ms > 3600000 || !b->o.size || b->o.slot_size < RGATE_SLOT_HDR ||
		     b->o.size > b->o.slot_size - RGATE_SLOT_HDR))
		err = -EINVAL;
	go.device = b->o.device;
	if (!err)
		err = rgate_gpu_open(&b->gpu, &go);
	if (err) {
		free(b);
		return err;
	}
	err = rgate_gpu_enter(b->gpu, &was);
	if (!err) {
		err = run(b);
		if (!err)
			err = rgate_info_copy(bench, &b->o, sizeof(b->o));
		close_all(b);
		rgate_gpu_leave(was);
	} else {
		rgate_gpu_keep_error(b->gpu);
		rgate_gpu_close(b->gpu);
		free(b);
	}
	return err;
}
