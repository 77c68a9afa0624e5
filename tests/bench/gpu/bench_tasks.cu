// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Warps that work on a queue of empty tasks in this process: how many they claim, claim and
 * complete, and what is left of their time when a task takes 20 us; beside requests that do nothing.
 * A warp claims 32 at once.
 *
 *	bench_tasks [TASKS]
 */
#include <ringgate/gpu/tasks.cuh>
#include <ringgate/rgate_gpu.h>
#include <ringgate/rgate_queue.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gbench.h"

#define PLACES		8192U
#define TASKS		800000U
#define PART		2048U
#define WARPS_MAX	1024U
#define TASK_NS		20000U
#define LONG		5000000000ULL
#define ENGINE_CPU	2U
#define ROUNDS		3U

enum kind { NOP, CLAIM, DONE, WORK };

struct result {
	uint64_t tasks;
	uint64_t wrong;
	int64_t first_wrong;
	uint64_t claims;
};

struct bed {
	struct rgate_gpu *gpu;
	struct rgate_queue *queue;
	struct rgate_session *session;
	struct rgate_dask ask;
	struct result *res;
	uint32_t handle, sms;
};

static __global__ void nops(struct rgate_dask ask, struct result *res, uint32_t rounds)
{
	struct rgate_request q = { 0 };
	struct rgate_dasker me;
	struct rgate_danswer a;
	uint64_t ticket;
	uint32_t i;
	int err = 0;

	q.op = RGATE_REQ_NOP;
	rgate_dasker_init(&me, &ask, 1);
	for (i = 0; i < rounds && !err; i++) {
		do
			err = rgate_dask_submit_warp(&me, &q, 1, &ticket);
		while (err == -EAGAIN);
		err = err ? err : rgate_dask_wait_warp(&me, ticket, &a, LONG) != 1;
		__syncwarp();
	}
	rgate_dasker_fini(&me);
	if (err)
		rgate_dgpu_add(&res->wrong, 1);
}

/* A warp's tasks one after the other, all its lanes at each */
static __device__ void take_time(uint32_t n)
{
	uint64_t until;

	while (n--)
		for (until = rgate_dnow() + TASK_NS; rgate_dnow() < until;)
			;
}

static __global__ void work(struct rgate_dask ask, uint32_t handle, struct result *res,
			    enum kind what)
{
	__shared__ __align__(16) unsigned char near[PART];
	struct rgate_dworker w;
	struct rgate_dtask t;
	uint64_t tasks = 0, claims = 0;
	int n, err;

	err = rgate_dworker_init(&w, &ask, handle, blockIdx.x * PART, PART, near);
	while (!err) {		/* the same in each lane */
		n = rgate_dworker_claim(&w, 0, 32, RGATE_CLAIM_BEGIN, 0, &t);
		if (n < 0) {
			err = n == -EAGAIN ? 0 : n;
			break;
		}
		claims++;
		tasks += (uint64_t)n;
		if (what == WORK)
			take_time((uint32_t)n);
		if (what != CLAIM)
			err = rgate_dworker_complete(&w, &t, 0);
		if (__any_sync(0xffffffffU, err))
			break;
	}
	rgate_dworker_fini(&w);
	if (err) {
		res->first_wrong = err;
		rgate_dgpu_add(&res->wrong, 1);
	}
	if (rgate_dlane() == 0) {
		rgate_dgpu_add(&res->tasks, tasks);
		rgate_dgpu_add(&res->claims, claims);
	}
}

static void put_all(struct bed *b, uint32_t tasks)
{
	static struct rgate_queue_job jobs[256];
	uint32_t done;
	int n;

	for (done = 0; done < tasks; done += (uint32_t)n) {
		n = rgate_queue_submit(b->queue, jobs, tasks - done < 256 ? tasks - done : 256, 10000,
				       NULL);
		b_require(n > 0);
	}
}

static void bed_open(struct bed *b, uint32_t tasks)
{
	struct rgate_session_loan loan;
	struct rgate_session_opts o;
	struct rgate_queue_opts qo;
	struct cudaDeviceProp prop;
	unsigned int index;

	memset(&qo, 0, sizeof(qo));
	qo.sz = sizeof(qo);
	qo.where = RGATE_SESSION_PROCESS;
	qo.flags = RGATE_QUEUE_CREATE;
	qo.tasks = tasks;
	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.where = RGATE_SESSION_PROCESS;
	o.requests = o.completions = PLACES;
	o.spin_us = 100000;
	o.memory = WARPS_MAX * PART;
	memset(&loan, 0, sizeof(loan));
	loan.sz = sizeof(loan);
	b_ok(NULL, rgate_gpu_open(&b->gpu, NULL));
	b_require(!cudaGetDeviceProperties(&prop, 0));
	b->sms = (uint32_t)prop.multiProcessorCount;
	b_require(!cudaMallocManaged((void **)&b->res, sizeof(*b->res)));
	/* its engine begins where this thread is */
	b_pin(ENGINE_CPU);
	b_require(!rgate_session_open(&b->session, &o));
	b_pin(ENGINE_CPU + 2);
	b_require(!rgate_queue_open(&b->queue, "bench", &qo));
	b_require(!rgate_queue_handle(b->session, "bench", &qo, &b->handle));
	b_require(!rgate_session_lend(b->session, &loan));
	b_ok(b->gpu, rgate_gpu_bind_session(b->gpu, &loan, NULL, &index));
	b_ok(b->gpu, rgate_gpu_session_view(b->gpu, index, &b->ask, sizeof(b->ask)));
}

static void bed_close(struct bed *b)
{
	rgate_gpu_close(b->gpu);
	rgate_session_close(b->session);
	rgate_queue_close(b->queue);
	cudaFree(b->res);
}

/* Seconds */
static double run(struct bed *b, enum kind what, uint32_t warps, uint32_t tasks)
{
	cudaStream_t stream = (cudaStream_t)rgate_gpu_stream(b->gpu);
	uint64_t t;

	memset(b->res, 0, sizeof(*b->res));
	t = b_now_ns();
	if (what == NOP)
		nops<<<warps, 32, 0, stream>>>(b->ask, b->res, tasks / 32 / warps);
	else
		work<<<warps, 32, 0, stream>>>(b->ask, b->handle, b->res, what);
	b_require(!cudaGetLastError() && !cudaStreamSynchronize(stream));
	if (b->res->wrong)
		fprintf(stderr, "bench_tasks: %lld\n", (long long)b->res->first_wrong);
	b_require(!b->res->wrong);
	b_require(what == NOP || b->res->tasks == tasks);
	return (double)(b_now_ns() - t) / 1e9;
}

/* A queue of its own for each: what is claimed, and stays so, goes with it */
static void turn(enum kind what, uint32_t warps, uint32_t tasks)
{
	static const char *const name[] = { "nops", "claims", "tasks", "work" };
	struct bed b;
	double s;

	memset(&b, 0, sizeof(b));
	bed_open(&b, what == NOP ? 64 : tasks + 64);
	if (!warps)
		warps = b.sms;
	/* the first launch of a kernel loads its code */
	if (what != NOP)
		put_all(&b, 32);
	run(&b, what, 1, 32);
	if (what != NOP)
		put_all(&b, tasks);
	s = run(&b, what, warps, tasks);
	b_line(name[what], "warps", (double)warps, "tasks", (double)tasks, "per_s", tasks / s,
	       "busy", tasks * (TASK_NS / 1e9) / (warps * s), "a_claim",
	       b.res->claims ? (double)tasks / (double)b.res->claims : 0, NULL);
	bed_close(&b);
}

int main(int argc, char **argv)
{
	const uint32_t tasks = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : TASKS;
	static const uint32_t all[] = { 1, 8, 64 };
	unsigned int i, n;

	for (n = 0; n < ROUNDS; n++) {
		for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
			turn(NOP, all[i], all[i] > 1 ? tasks * 4 : tasks);
			turn(CLAIM, all[i], tasks);
			turn(DONE, all[i], all[i] > 1 ? tasks : tasks / 4);
		}
		/* on each multiprocessor a warp */
		turn(WORK, 32, tasks / 4);
		turn(WORK, 64, tasks / 2);
		turn(WORK, 0, tasks);
	}
	return 0;
}
