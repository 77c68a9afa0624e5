// SPDX-License-Identifier: MIT OR GPL-2.0
/* Warps that work on a queue of tasks, of an engine of this process */
#include "gtest.h"

#include <ringgate/gpu/tasks.cuh>
#include <ringgate/rgate_queue.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WARPS		96U
#define PART		8192U
#define LEN_MAX		200U
#define BATCH		64U
#define TASKS		20000U
#define TYPE_END	9U

/* What kernels found; managed memory, read after they have returned */
struct seen {
	uint64_t done, given_back, wrong;
	int64_t first_wrong;
};

struct bed {
	struct rgate_gpu *gpu;
	struct rgate_queue *queue;
	struct rgate_session *session;
	struct rgate_dask ask;
	struct seen *seen;
	int daemon[2];		/* the second is closed: the device's session is over */
	unsigned int index;
	uint32_t handle;
};

static __host__ __device__ uint64_t sum_of(const unsigned char *data, uint32_t len)
{
	uint64_t sum = 14695981039346656037ULL;
	uint32_t k;

	for (k = 0; k < len; k++)
		sum = (sum ^ data[k]) * 1099511628211ULL;
	return sum;
}

static __device__ void wrong(struct seen *s, int64_t what)
{
	s->first_wrong = what;
	atomicAdd((unsigned long long *)&s->wrong, 1ULL);
}

static __device__ void count(uint64_t *n, uint32_t one)
{
	if (one)
		atomicAdd((unsigned long long *)n, 1ULL);
}

/*
 * Claims until a task of TYPE_END comes, of which each warp takes one. Each fifth task is given
 * back the first time, at the same time as other lanes complete theirs.
 */
static __global__ void work(struct rgate_dask ask, uint32_t handle, struct seen *s)
{
	extern __shared__ __align__(16) unsigned char near[];
	struct rgate_dtask t, back;
	struct rgate_dworker w;
	uint32_t end = 0;
	int n, err;

	err = rgate_dworker_init(&w, &ask, handle, blockIdx.x * PART, PART, near);
	while (!err && !end) {
		n = rgate_dworker_claim(&w, ~(1ULL << TYPE_END), 32, RGATE_CLAIM_BEGIN, 500, &t);
		if (n == -ETIMEDOUT)
			n = rgate_dworker_claim(&w, 1ULL << TYPE_END, 1, RGATE_CLAIM_BEGIN, 0, &t);
		if (n == -EAGAIN)
			continue;
		if (n < 0) {
			err = n;
			break;
		}
		if ((rgate_dlane() < (uint32_t)n) != (t.id != 0))
			wrong(s, n);
		end = rgate_dwarp_or(t.id && t.type == TYPE_END);
		back = t;
		if (t.id && !end && t.attempts == 1 && t.id % 5 == 0)
			t.id = 0;
		else
			back.id = 0;
		count(&s->given_back, back.id != 0);
		count(&s->done, t.id && !end);
		if (t.id)
			*(uint64_t *)rgate_dworker_room(&w) = sum_of(t.data, t.len);
		err = rgate_dworker_complete(&w, &t, 8);
		if (err)
			wrong(s, err);
		err = rgate_dworker_release(&w, &back, 0);
		if (err)
			wrong(s, err);
		err = (int)rgate_dwarp_or(err != 0);
	}
	rgate_dworker_fini(&w);
	if (err)
		wrong(s, err);
}

/* Until the session is over */
static __global__ void stay(struct rgate_dask ask, uint32_t handle, struct seen *s)
{
	extern __shared__ __align__(16) unsigned char near[];
	struct rgate_dworker w;
	struct rgate_dtask t;
	int n = 0;

	if (!rgate_dworker_init(&w, &ask, handle, blockIdx.x * PART, PART, near))
		do
			n = rgate_dworker_claim(&w, 0, 32, 0, 60000000, &t);
		while (n > 0);
	if (n != -EPIPE)
		wrong(s, n);
	count(&s->done, rgate_dlane() == 0);
}

/*
 * The host's side
 */

static void bed_open(struct bed *b)
{
	struct rgate_session_loan loan;
	struct rgate_session_opts o;
	struct rgate_queue_opts qo;

	memset(b, 0, sizeof(*b));
	memset(&qo, 0, sizeof(qo));
	qo.sz = sizeof(qo);
	qo.where = RGATE_SESSION_PROCESS;
	qo.flags = RGATE_QUEUE_CREATE;
	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.where = RGATE_SESSION_PROCESS;
	o.requests = 4096;
	o.memory = WARPS * PART;
	memset(&loan, 0, sizeof(loan));
	loan.sz = sizeof(loan);
	g_ok(NULL, rgate_gpu_open(&b->gpu, NULL));
	g_require(!cudaMallocManaged((void **)&b->seen, sizeof(*b->seen)));
	memset(b->seen, 0, sizeof(*b->seen));
	g_require(!rgate_queue_open(&b->queue, "t_tasks", &qo));
	g_require(!rgate_session_open(&b->session, &o));
	g_require(!rgate_queue_handle(b->session, "t_tasks", &qo, &b->handle));
	g_require(!rgate_session_lend(b->session, &loan));
	g_require(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, b->daemon));
	loan.gone_fd = b->daemon[0];
	g_ok(b->gpu, rgate_gpu_bind_session(b->gpu, &loan, NULL, &b->index));
	g_ok(b->gpu, rgate_gpu_session_view(b->gpu, b->index, &b->ask, sizeof(b->ask)));
}

static void bed_close(struct bed *b)
{
	rgate_gpu_close(b->gpu);
	rgate_session_close(b->session);
	rgate_queue_close(b->queue);
	close(b->daemon[0]);
	cudaFree(b->seen);
}

static void finished(struct bed *b)
{
	g_require(!cudaStreamSynchronize((cudaStream_t)rgate_gpu_stream(b->gpu)));
	if (b->seen->wrong)
		g_note("%llu wrong, the first: %lld", (unsigned long long)b->seen->wrong,
		       (long long)b->seen->first_wrong);
	g_require(!b->seen->wrong);
}

static uint32_t fill(unsigned char *data, uint64_t number)
{
	uint32_t k, len = (uint32_t)(number * 2654435761U >> 8) % (LEN_MAX + 1);

	for (k = 0; k < len; k++)
		data[k] = (unsigned char)(number * 31 + k * 7);
	return len;
}

/* @n tasks, numbered from @at on; the queue's number of the first */
static uint64_t put_some(struct bed *b, uint64_t at, uint32_t n)
{
	static unsigned char data[BATCH][LEN_MAX];
	struct rgate_queue_job jobs[BATCH];
	uint64_t first;
	uint32_t i;

	memset(jobs, 0, sizeof(jobs));
	for (i = 0; i < n; i++) {
		jobs[i].data = data[i];
		jobs[i].len = fill(data[i], at + i);
		jobs[i].flags = RGATE_TASK_RESULT;
		jobs[i].type = (uint8_t)(i % TYPE_END);
		jobs[i].priority = (uint8_t)(i % RGATE_QUEUE_PRIORITIES);
	}
	g_require(rgate_queue_submit(b->queue, jobs, n, 10000, &first) == (int)n);
	return first;
}

static void take_result(struct bed *b, uint64_t id, uint64_t number)
{
	unsigned char data[LEN_MAX];
	uint64_t got = 0;
	uint32_t state;

	g_require(rgate_queue_wait(b->queue, id, RGATE_WAIT_TAKE, 30000, &got, 8, &state) == 8);
	g_require(state == RGATE_TASK_DONE);
	g_require(got == sum_of(data, fill(data, number)));
}

/* Submitted while warps work: each result is there once, and is of its task's bytes */
static void all_done(void)
{
	const uint32_t tasks = (uint32_t)(TASKS / g_slow());
	struct rgate_queue_info info;
	struct rgate_queue_job end;
	static uint64_t id[TASKS];
	struct bed b;
	uint32_t i, n;

	bed_open(&b);
	work<<<WARPS, 32, PART, (cudaStream_t)rgate_gpu_stream(b.gpu)>>>(b.ask, b.handle, b.seen);
	g_require(!cudaGetLastError());
	for (i = 0; i < tasks; i += n) {
		n = tasks - i < BATCH ? tasks - i : BATCH;
		id[i] = put_some(&b, i, n);
		for (uint32_t k = 1; k < n; k++)
			id[i + k] = id[i] + k;
		/* some of the results are taken meanwhile */
		if (i / BATCH % 4 == 3)
			take_result(&b, id[i - BATCH], i - BATCH), id[i - BATCH] = 0;
	}
	for (i = 0; i < tasks; i++)
		if (id[i])
			take_result(&b, id[i], i);
	memset(&end, 0, sizeof(end));
	end.type = TYPE_END;
	for (i = 0; i < WARPS; i++)
		g_require(rgate_queue_submit(b.queue, &end, 1, 10000, NULL) == 1);
	finished(&b);
	g_require(!rgate_queue_info(b.queue, &info));
	g_require(b.seen->done == tasks && b.seen->given_back > 0);
	close(b.daemon[1]);
	g_require(info.done == tasks + WARPS && info.released == b.seen->given_back);
	g_require(!info.lost && !info.stale && !info.buried);
	bed_close(&b);
}

/* The session ends under warps that wait, and that have tasks: those go back */
static void over(void)
{
	struct rgate_queue_info info;
	struct bed b;
	uint64_t i;

	bed_open(&b);
	stay<<<WARPS, 32, PART, (cudaStream_t)rgate_gpu_stream(b.gpu)>>>(b.ask, b.handle, b.seen);
	g_require(!cudaGetLastError());
	for (i = 0; i < 20; i++)
		put_some(&b, i * BATCH, BATCH);
	do
		g_require(!rgate_queue_info(b.queue, &info));
	while (info.now[RGATE_TASK_CLAIMED] < 20 * BATCH || info.claims < 1);
	close(b.daemon[1]);
	finished(&b);
	g_require(b.seen->done == WARPS);
	g_ok(b.gpu, rgate_gpu_unbind_session(b.gpu, b.index));
	rgate_session_close(b.session);
	b.session = NULL;
	do
		g_require(!rgate_queue_info(b.queue, &info));
	while (info.now[RGATE_TASK_READY] < 20 * BATCH);
	g_require(info.lost == 20 * BATCH && !info.claims);
	bed_close(&b);
}

static const struct g_test tests[] = {
	{ "all_done", all_done },
	{ "over", over },
};

int main(int argc, char **argv)
{
	return g_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
