// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Requests of a GPU, against a bare loop: a thread of the CPU that copies 64 bytes of each request
 * and writes 32 back, with nothing checked and nobody told apart. Warps have 32 requests under way
 * each, and ask for the next ones when all are answered.
 *
 *	bench_ask [ROUNDS]		of 8 warps; others in proportion
 */
#include <ringgate/gpu/ask.cuh>
#include <ringgate/rgate_gpu.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gbench.h"

#define PLACES		8192U
#define SHIFT		13U
#define ROUNDS		6000U
#define TRIPS		20000U
#define WARM		1000U
#define LONG		5000000000ULL
#define ENGINE_CPU	2U

/* The same two rings for the bare loop; positions as in a session, credits left out */
struct bare {
	struct rgate_request req[PLACES];
	struct rgate_completion comp[PLACES];
	uint64_t stop;
};

struct result {
	uint64_t wrong;
	uint64_t ended, stop;
	uint64_t took[TRIPS];
};

static __device__ void put_bare(struct bare *b, uint64_t pos, uint64_t value)
{
	struct rgate_dvec *to = (struct rgate_dvec *)&b->req[pos % PLACES];
	struct rgate_request q = { 0 };

	q.cookie = pos;
	q.a0 = value;
	to[0] = ((struct rgate_dvec *)&q)[0];
	to[1] = ((struct rgate_dvec *)&q)[1];
	to[2] = ((struct rgate_dvec *)&q)[2];
	*(uint64_t *)&to[3] = 0;
}

/* Until the answer is there; 0: it is the right one */
static __device__ uint32_t get_bare(struct bare *b, uint64_t pos, uint64_t value)
{
	const struct rgate_completion *c = &b->comp[pos % PLACES];

	/* others may be a lap ahead: nobody holds them back here */
	while (rgate_dsys_acquire(&c->seq) < (pos >> SHIFT) + 1)
		;
	return c->value != value && rgate_dsys_acquire(&c->seq) == (pos >> SHIFT) + 1;
}

static __global__ void bare_rate(struct bare *b, uint64_t *head, struct result *res,
				 uint32_t rounds)
{
	uint32_t i, wrong = 0;
	uint64_t pos = 0;

	for (i = 0; i < rounds; i++) {
		if (rgate_dlane() == 0)
			pos = rgate_dgpu_add(head, 32);
		pos = rgate_dwarp_first(pos) + rgate_dlane();
		put_bare(b, pos, pos ^ i);
		__syncwarp();
		rgate_dsys_fence();
		rgate_dsys_store(&b->req[pos % PLACES].seq, (pos >> SHIFT) + 1);
		wrong += get_bare(b, pos, pos ^ i);
		__syncwarp();
	}
	if (wrong)
		rgate_dgpu_add(&res->wrong, wrong);
}

static __global__ void bare_trip(struct bare *b, struct result *res)
{
	uint64_t i, t;

	for (i = 0; i < TRIPS; i++) {
		t = rgate_dnow();
		put_bare(b, i, i + 7);
		rgate_dsys_release(&b->req[i % PLACES].seq, (i >> SHIFT) + 1);
		res->wrong += get_bare(b, i, i + 7);
		res->took[i] = rgate_dnow() - t;
	}
}

/* The last block, if there is one more than @askers, takes the completions for all others. */
static __global__ void ask_rate(struct rgate_dask ask, struct result *res, uint32_t rounds,
				uint32_t askers)
{
	struct rgate_request q = { 0 };
	struct rgate_danswer a;
	struct rgate_dasker me;
	uint32_t i, wrong = 0;
	uint64_t ticket;
	int err;

	if (blockIdx.x == askers) {
		rgate_dask_serve_warp(&ask, &res->stop);
		return;
	}
	q.op = RGATE_REQ_NOP;
	rgate_dasker_init(&me, &ask, 1);
	for (i = 0; i < rounds; i++) {
		q.a0 = (uint64_t)blockIdx.x << 40 | (uint64_t)i << 16 | threadIdx.x;
		do
			err = rgate_dask_submit_warp(&me, &q, 1, &ticket);
		while (err == -EAGAIN);
		a.value = 0;
		if (err || rgate_dask_wait_warp(&me, ticket, &a, LONG) != 1 || a.result ||
		    a.value != q.a0)
			wrong++;
		__syncwarp();
	}
	rgate_dasker_fini(&me);
	if (wrong)
		rgate_dgpu_add(&res->wrong, wrong);
	__syncwarp();
	if (rgate_dlane() == 0 && rgate_dgpu_add(&res->ended, 1) + 1 == askers)
		rgate_dgpu_store(&res->stop, 1);
}

static __global__ void ask_trip(struct rgate_dask ask, struct result *res)
{
	struct rgate_request q = { 0 };
	struct rgate_danswer a;
	struct rgate_dasker me;
	uint64_t i, t, ticket;

	q.op = RGATE_REQ_NOP;
	rgate_dasker_init(&me, &ask, 1);
	for (i = 0; i < TRIPS; i++) {
		t = rgate_dnow();
		q.a0 = i + 7;
		if (rgate_dask_submit(&me, &q, &ticket) ||
		    rgate_dask_wait(&me, ticket, &a, LONG) != 1 || a.value != q.a0)
			res->wrong++;
		res->took[i] = rgate_dnow() - t;
	}
	rgate_dasker_fini(&me);
}

/* The CPU's side of the bare loop, and it alone: one look a request */
static void *serve_bare(void *arg)
{
	struct bare *b = (struct bare *)arg;
	uint64_t copy[8], pos, i;

	b_pin(ENGINE_CPU);
	for (pos = 0;; pos++) {
		const uint64_t *from = (const uint64_t *)&b->req[pos % PLACES];
		struct rgate_completion *c = &b->comp[pos % PLACES];

		while (__atomic_load_n(from + 7, __ATOMIC_ACQUIRE) != (pos >> SHIFT) + 1)
			if (__atomic_load_n(&b->stop, __ATOMIC_RELAXED))
				return NULL;
		for (i = 0; i < 8; i++)
			copy[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
		c->cookie = copy[1];
		c->result = (int32_t)copy[0];
		c->value = copy[2];
		__atomic_store_n(&c->seq, (pos >> SHIFT) + 1, __ATOMIC_RELEASE);
	}
}

enum way { BARE, ASK, SERVED };

struct bed {
	struct rgate_gpu *gpu;
	struct rgate_session *session;
	struct rgate_dask ask;
	struct result *res;
	uint64_t *head;
	struct bare *bare;
	pthread_t thread;
};

static void ask_open(struct bed *b)
{
	struct rgate_session_loan loan;
	struct rgate_session_opts o;
	unsigned int index;

	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.where = RGATE_SESSION_PROCESS;
	o.requests = o.completions = PLACES;
	o.spin_us = 100000;
	memset(&loan, 0, sizeof(loan));
	loan.sz = sizeof(loan);
	/* its engine begins where this thread is */
	b_pin(ENGINE_CPU);
	b_require(!rgate_session_open(&b->session, &o));
	b_pin(ENGINE_CPU + 2);
	b_require(!rgate_session_lend(b->session, &loan));
	b_ok(b->gpu, rgate_gpu_bind_session(b->gpu, &loan, NULL, &index));
	b_ok(b->gpu, rgate_gpu_session_view(b->gpu, index, &b->ask, sizeof(b->ask)));
}

static void bare_open(struct bed *b)
{
	void *p;

	b_require(!cudaHostAlloc(&p, sizeof(*b->bare), cudaHostAllocMapped));
	b->bare = (struct bare *)memset(p, 0, sizeof(*b->bare));
	b_require(!cudaMemset(b->head, 0, 8));
	b_require(!pthread_create(&b->thread, NULL, serve_bare, b->bare));
}

static void bare_close(struct bed *b)
{
	__atomic_store_n(&b->bare->stop, 1, __ATOMIC_RELAXED);
	pthread_join(b->thread, NULL);
	cudaFreeHost(b->bare);
}

static double rate(struct bed *b, enum way who, uint32_t warps, uint32_t rounds)
{
	cudaStream_t stream = (cudaStream_t)rgate_gpu_stream(b->gpu);
	uint64_t t;

	b_require(!cudaMemsetAsync(&b->res->ended, 0, 16, stream));
	b_require(!cudaStreamSynchronize(stream));
	t = b_now_ns();
	if (who != BARE)
		ask_rate<<<warps + (who == SERVED), 32, 0, stream>>>(b->ask, b->res, rounds,
								      warps);
	else
		bare_rate<<<warps, 32, 0, stream>>>(b->bare, b->head, b->res, rounds);
	b_require(!cudaGetLastError() && !cudaStreamSynchronize(stream));
	return (double)warps * rounds * 32 * 1e9 / (double)(b_now_ns() - t);
}

static void trips(struct bed *b, bool ours)
{
	cudaStream_t stream = (cudaStream_t)rgate_gpu_stream(b->gpu);
	struct b_quantiles q;

	if (ours)
		ask_trip<<<1, 1, 0, stream>>>(b->ask, b->res);
	else
		bare_trip<<<1, 1, 0, stream>>>(b->bare, b->res);
	b_require(!cudaGetLastError() && !cudaStreamSynchronize(stream));
	b_quantiles(b->res->took + WARM, TRIPS - WARM, &q);
	b_line(ours ? "ask_trip" : "bare_trip", "p50_ns", q.p50, "p90_ns", q.p90, "p99_ns", q.p99,
	       "min_ns", q.min, NULL);
}

/* Requests a second by so many warps, in turn; the first launch of a kernel loads its code */
static void rates(struct bed *b, enum way who, uint32_t rounds)
{
	static const char *const name[] = { "bare_rate", "ask_rate", "served_rate" };
	static const uint32_t all[] = { 1, 8, 64 };
	unsigned int i, n;

	rate(b, who, 1, 100);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (n = 0; n < 3; n++)
			b_line(name[who], "warps", (double)all[i], "per_s",
			       rate(b, who, all[i], all[i] > 8 ? rounds / 4 : rounds), NULL);
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : ROUNDS;
	struct bed b;
	int n;

	memset(&b, 0, sizeof(b));
	b_ok(NULL, rgate_gpu_open(&b.gpu, NULL));
	b_require(!cudaMallocManaged((void **)&b.res, sizeof(*b.res)));
	b_require(!cudaMalloc((void **)&b.head, 8));
	memset(b.res, 0, sizeof(*b.res));
	for (n = 0; n < 3; n++) {
		bare_open(&b);
		trips(&b, false);
		bare_close(&b);
	}
	bare_open(&b);
	rates(&b, BARE, rounds);
	bare_close(&b);
	ask_open(&b);
	for (n = 0; n < 3; n++)
		trips(&b, true);
	rates(&b, ASK, rounds);
	rates(&b, SERVED, rounds);
	b_line("wrong", "requests", (double)b.res->wrong, NULL);
	b_require(!b.res->wrong);
	rgate_gpu_close(b.gpu);
	rgate_session_close(b.session);
	return 0;
}
