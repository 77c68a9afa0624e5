// SPDX-License-Identifier: MIT OR GPL-2.0
/* Kernels that ask: each way of submitting and waiting, against an engine of this process. */
#include "verify.cuh"

#include <ringgate/gpu/ask.cuh>

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG	20000000000ULL	/* ns; nothing takes that long */
#define MEMORY	(1U << 20)
#define PART	65536U		/* exported from there on */
#define PART_LEN 65536U

/* What kernels found; managed memory, read after they have returned */
struct seen {
	uint64_t good, wrong, full;
	int64_t first_wrong;	/* what a call returned, or the result, of one that was wrong */
	uint64_t ticket;
};

struct bed {
	struct rgate_gpu *gpu;
	struct rgate_session *session;
	struct rgate_session_loan loan;
	struct rgate_dask ask;
	unsigned int index;
	struct seen *seen;
	uint32_t handle;	/* of the session's own memory, which it has exported */
};

static __device__ void note(struct seen *s, int good, int64_t what)
{
	if (good) {
		atomicAdd((unsigned long long *)&s->good, 1ULL);
	} else {
		s->first_wrong = what;
		atomicAdd((unsigned long long *)&s->wrong, 1ULL);
	}
}

static __device__ int submit_hard(struct rgate_dasker *me, const struct rgate_request *q,
				  uint64_t *ticket, struct seen *s)
{
	int err;

	while ((err = rgate_dask_submit(me, q, ticket)) == -EAGAIN) {
		atomicAdd((unsigned long long *)&s->full, 1ULL);
		rgate_dpause(500);
	}
	return err;
}

/* Asks for @q, and compares the value of the answer */
static __device__ void one(struct rgate_dasker *me, const struct rgate_request *q, uint64_t value,
			   struct seen *s)
{
	struct rgate_danswer a = { 0, 0, 0 };
	uint64_t ticket = 0;
	int got = submit_hard(me, q, &ticket, s);

	if (!got)
		got = rgate_dask_wait(me, ticket, &a, LONG);
	note(s, got == 1 && !a.result && a.value == value, got == 1 ? a.result : got);
}

/* Each thread by itself */
static __global__ void threads_kernel(struct rgate_dask ask, struct seen *s, uint32_t rounds)
{
	const uint64_t number = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
	struct rgate_request q = { 0 };
	struct rgate_dasker me;
	uint32_t i;

	q.op = RGATE_REQ_NOP;
	rgate_dasker_init(&me, &ask, number % 8 == 0);
	for (i = 0; i < rounds; i++) {
		q.a0 = number << 32 | i;
		one(&me, &q, q.a0, s);
	}
	rgate_dasker_fini(&me);
}

/* A request of each lane, sometimes of a part of them, sometimes without a completion */
static __global__ void warps_kernel(struct rgate_dask ask, struct seen *s, uint32_t rounds)
{
	struct rgate_request q = { 0 };
	struct rgate_dasker me;
	struct rgate_danswer a;
	uint64_t ticket;
	uint32_t i, has, tells;
	int err, got;

	q.op = RGATE_REQ_NOP;
	rgate_dasker_init(&me, &ask, 0);
	for (i = 0; i < rounds; i++) {
		q.a0 = (uint64_t)blockIdx.x << 40 | (uint64_t)i << 8 | threadIdx.x;
		has = i % 4 != 1 || (q.a0 * 2654435761U >> 16 & 3) || rgate_dlane() == 5;
		tells = i % 8 != 6 || rgate_dlane() % 3;
		q.flags = tells ? 0 : RGATE_REQ_NO_COMPLETION;
		while ((err = rgate_dask_submit_warp(&me, &q, has, &ticket)) == -EAGAIN)
			rgate_dpause(500);
		a.value = ~0ULL;
		got = rgate_dask_wait_warp(&me, ticket, &a, LONG);
		if (has && tells)
			note(s, !err && got == 1 && a.value == q.a0 && !a.result, err ? err : got);
		else
			note(s, !err && !got && !ticket && a.value == ~0ULL, err ? err : got);
	}
	rgate_dasker_fini(&me);
}

/* The last block takes the completions of all others, which tell it when they are done. */
static __global__ void served_kernel(struct rgate_dask ask, struct seen *s, uint64_t *words,
				     uint32_t rounds)
{
	struct rgate_request q = { 0 };
	struct rgate_dasker me;
	struct rgate_danswer a;
	uint64_t ticket;
	uint32_t i;
	int got;

	if (blockIdx.x == gridDim.x - 1) {
		got = rgate_dask_serve_warp(&ask, &words[1]);
		if (rgate_dlane() == 0)
			note(s, gridDim.x > 1 ? !got : got == -EPIPE, got);
		return;
	}
	q.op = RGATE_REQ_NOP;
	rgate_dasker_init(&me, &ask, 0);
	for (i = 0; i < rounds; i++) {
		q.a0 = (uint64_t)blockIdx.x << 40 | (uint64_t)i << 8 | threadIdx.x;
		while ((got = rgate_dask_submit_warp(&me, &q, 1, &ticket)) == -EAGAIN)
			;
		if (!got)
			got = rgate_dask_wait_warp(&me, ticket, &a, LONG);
		note(s, got == 1 && a.value == q.a0 && !a.result, got);
	}
	rgate_dasker_fini(&me);
	__syncwarp();
	if (rgate_dlane() == 0 && rgate_dgpu_add(&words[0], 1) + 2 == gridDim.x)
		rgate_dgpu_store(&words[1], 1);
}

/* 32 at once by one thread, answers taken from the last to the first */
static __global__ void many_kernel(struct rgate_dask ask, struct seen *s, uint32_t rounds)
{
	struct rgate_request q[32];
	uint64_t ticket[32];
	struct rgate_dasker me;
	struct rgate_danswer a;
	uint32_t i, k;
	int got;

	memset(q, 0, sizeof(q));
	rgate_dasker_init(&me, &ask, 0);
	for (i = 0; i < rounds; i++) {
		for (k = 0; k < 32; k++) {
			q[k].op = k == 20 ? RGATE_REQ_OP(99, 0) : RGATE_REQ_NOP;
			q[k].a0 = k == 20 ? 0 : (uint64_t)i << 8 | k;
			q[k].flags = k >= 10 && k < 25 ? RGATE_REQ_LINK : 0;
		}
		while ((got = rgate_dask_submit_many(&me, q, 32, ticket)) == -EAGAIN)
			rgate_dpause(500);
		for (k = 32; !got && k--;) {
			int want = k < 20 || k > 25 ? 0 : k == 20 ? -EOPNOTSUPP : -ECANCELED;
			int g = rgate_dask_wait(&me, ticket[k], &a, LONG);

			note(s, g == 1 && a.result == want && (want || a.value == q[k].a0),
			     g == 1 ? a.result : g);
		}
	}
	rgate_dasker_fini(&me);
}

/* -EAGAIN may be for a moment only, and is the same in each thread. */
static __device__ int submit_block_hard(struct rgate_dasker *me, const struct rgate_request *q,
					uint64_t *ticket)
{
	int err;

	do
		err = rgate_dask_submit_block(me, q, ticket);
	while (err == -EAGAIN);
	return err;
}

/*
 * A block writes to the session's memory with all its threads, and asks once for all of that to
 * be written elsewhere; then for it to be read back, and looks at it with other threads.
 */
static __global__ void blocks_kernel(struct rgate_dask ask, struct seen *s, uint32_t handle,
				     uint32_t rounds)
{
	const uint32_t len = blockDim.x * 4, mine = blockIdx.x * 2 * len;
	uint32_t *out = (uint32_t *)(ask.memory + mine), *in = out + blockDim.x, i;
	struct rgate_request q = { 0 };
	struct rgate_dasker me;
	struct rgate_danswer a;
	uint64_t ticket;
	int got;

	q.handle = handle;
	q.len = len;
	q.a0 = (uint64_t)blockIdx.x * len;
	rgate_dasker_init(&me, &ask, 0);
	for (i = 0; i < rounds; i++) {
		out[threadIdx.x] = i << 16 | threadIdx.x;
		q.op = RGATE_REQ_MEMORY_WRITE;
		q.off = mine;
		got = submit_block_hard(&me, &q, &ticket);
		if (!got)
			got = rgate_dask_wait_block(&me, ticket, &a, LONG);
		note(s, got == 1 && a.result >= 0, got == 1 ? a.result : got);
		q.op = RGATE_REQ_MEMORY_READ;
		q.off = mine + len;
		got = submit_block_hard(&me, &q, &ticket);
		if (!got)
			got = rgate_dask_wait_block(&me, ticket, &a, LONG);
		note(s, got == 1 && a.result >= 0 &&
		     in[blockDim.x - 1 - threadIdx.x] == (i << 16 | (blockDim.x - 1 - threadIdx.x)),
		     got == 1 ? a.result : got);
	}
	rgate_dasker_fini(&me);
}

/* Fetch-add by many threads: each value is one that nobody else has got */
static __global__ void count_kernel(struct rgate_dask ask, struct seen *s, uint32_t handle,
				    uint32_t *marks, uint32_t rounds)
{
	const uint64_t all = (uint64_t)gridDim.x * blockDim.x * rounds;
	struct rgate_request q = { 0 };
	struct rgate_danswer a;
	struct rgate_dasker me;
	uint64_t ticket;
	uint32_t i;
	int got;

	q.op = RGATE_REQ_MEMORY_FETCH_ADD;
	q.handle = handle;
	q.a0 = PART_LEN - 8;
	q.a1 = 1;
	rgate_dasker_init(&me, &ask, 0);
	for (i = 0; i < rounds; i++) {
		got = submit_hard(&me, &q, &ticket, s);
		if (!got)
			got = rgate_dask_wait(&me, ticket, &a, LONG);
		note(s, got == 1 && !a.result && a.value < all && !atomicAdd(&marks[a.value], 1),
		     got == 1 ? a.result : got);
	}
	rgate_dasker_fini(&me);
}

static __global__ void submit_kernel(struct rgate_dask ask, struct seen *s, uint16_t op)
{
	struct rgate_request q = { 0 };
	struct rgate_dasker me;
	int err;

	q.op = op;
	rgate_dasker_init(&me, &ask, 0);
	err = rgate_dask_submit(&me, &q, &s->ticket);
	note(s, !err, err);
	rgate_dasker_fini(&me);
}

/* One warp. @want: of waiting for the ticket of a launch before, by its first thread and by all */
static __global__ void wait_kernel(struct rgate_dask ask, struct seen *s, uint64_t limit, int want)
{
	struct rgate_dasker me;
	struct rgate_danswer a;
	int got;

	rgate_dasker_init(&me, &ask, 1);
	if (rgate_dlane() == 0) {
		got = rgate_dask_wait(&me, s->ticket, &a, limit);
		note(s, got == want, got);
	}
	__syncwarp();
	got = rgate_dask_wait_warp(&me, rgate_dlane() ? 0 : s->ticket, &a, limit);
	if (rgate_dlane() == 0)
		note(s, got == (want == 1 ? -EINVAL : want), got);
	rgate_dasker_fini(&me);
}

/* With pauses, in which the engine falls asleep */
static __global__ void lazy_kernel(struct rgate_dask ask, struct seen *s, uint32_t rounds)
{
	struct rgate_request q = { 0 };
	struct rgate_dasker me;
	uint64_t until;
	uint32_t i;

	q.op = RGATE_REQ_NOP;
	rgate_dasker_init(&me, &ask, 0);
	for (i = 0; i < rounds; i++) {
		q.a0 = i + 1;
		one(&me, &q, i + 1, s);
		for (until = rgate_dnow() + 3000000; rgate_dnow() < until;)
			rgate_dpause(1000);
	}
	rgate_dasker_fini(&me);
}

/* A request for each packet, by the function of a kernel of the runtime's */
struct counted {
	struct rgate_dask ask;
	struct seen *seen;
	uint32_t handle;
};

static __device__ uint32_t ask_for_it(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	const struct counted *c = (const struct counted *)arg;
	struct rgate_request q = { 0 };
	struct rgate_danswer a;
	struct rgate_dasker me;
	uint64_t ticket;
	int got;

	q.op = RGATE_REQ_MEMORY_FETCH_ADD;
	q.handle = c->handle;
	q.a0 = PART_LEN - 16;
	q.a1 = pkt->len;
	rgate_dasker_init(&me, &c->ask, 0);
	got = submit_hard(&me, &q, &ticket, c->seen);
	if (!got)
		got = rgate_dask_wait(&me, ticket, &a, LONG);
	note(c->seen, got == 1 && !a.result, got == 1 ? a.result : got);
	rgate_dasker_fini(&me);
	return 0;
}

RGATE_GPU_LANES(counting, ask_for_it, 64, 0)

/*
 * The host's side
 */

static int64_t ask(struct bed *b, const struct rgate_request *q)
{
	struct rgate_completion c;

	g_require(!rgate_session_submit(b->session, q));
	g_require(rgate_session_wait(b->session, 10000) == 1);
	g_require(rgate_session_poll(b->session, &c, 1) == 1 && !c.result);
	return (int64_t)c.value;
}

static void export_memory(struct bed *b)
{
	struct rgate_request q;

	memcpy(rgate_session_memory(b->session, NULL), "t_ask", 5);
	memset(&q, 0, sizeof(q));
	q.op = RGATE_REQ_MEMORY_EXPORT;
	q.off = PART;
	q.len = PART_LEN;
	q.a1 = RGATE_MEMORY_EXPORT_A1(RGATE_MEMORY_RIGHTS, 5);
	ask(b, &q);
	memset(&q, 0, sizeof(q));
	q.op = RGATE_REQ_MEMORY_OPEN;
	q.a0 = RGATE_MEMORY_HERE;
	q.a1 = RGATE_MEMORY_OPEN_A1(geteuid(), RGATE_MEMORY_RIGHTS);
	q.len = 5;
	b->handle = RGATE_MEMORY_HANDLE(ask(b, &q));
}

static void bed_bind(struct bed *b, uint32_t tickets)
{
	struct rgate_gpu_session_opts o;

	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.tickets = tickets;
	g_ok(b->gpu, rgate_gpu_bind_session(b->gpu, &b->loan, &o, &b->index));
	g_ok(b->gpu, rgate_gpu_session_view(b->gpu, b->index, &b->ask, sizeof(b->ask)));
}

static void bed_open(struct bed *b, uint32_t places, uint32_t spin_us)
{
	struct rgate_session_opts o;

	memset(b, 0, sizeof(*b));
	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.where = RGATE_SESSION_PROCESS;
	o.requests = places;
	o.memory = MEMORY;
	o.spin_us = spin_us;
	g_ok(NULL, rgate_gpu_open(&b->gpu, NULL));
	g_require(!cudaMallocManaged((void **)&b->seen, sizeof(*b->seen)));
	memset(b->seen, 0, sizeof(*b->seen));
	g_require(!rgate_session_open(&b->session, &o));
	export_memory(b);
	b->loan.sz = sizeof(b->loan);
	g_require(!rgate_session_lend(b->session, &b->loan));
}

static void bed_run(struct bed *b)
{
	g_require(!cudaGetLastError());
	g_require(!cudaStreamSynchronize((cudaStream_t)rgate_gpu_stream(b->gpu)));
}

#define LAUNCH(b, kernel, blocks, threads) \
	kernel<<<blocks, threads, 0, (cudaStream_t)rgate_gpu_stream((b)->gpu)>>>

/* All was right, no cell was lost, nobody was told of what he had not asked for */
static void bed_close(struct bed *b, uint64_t good)
{
	struct rgate_gpu_session_stats st;
	uint32_t bits[RGATE_GPU_TICKETS_MAX / 32], i, left = 0;

	if (b->seen->wrong || b->seen->good != good)
		g_note("%llu good, %llu wrong (%lld), %llu times full",
		       (unsigned long long)b->seen->good, (unsigned long long)b->seen->wrong,
		       (long long)b->seen->first_wrong, (unsigned long long)b->seen->full);
	g_require(!b->seen->wrong && b->seen->good == good);
	memset(&st, 0, sizeof(st));
	st.sz = sizeof(st);
	g_ok(b->gpu, rgate_gpu_session_stats(b->gpu, b->index, &st));
	g_note("%llu requests, %llu times full, %llu kicks", (unsigned long long)st.submitted,
	       (unsigned long long)b->seen->full, (unsigned long long)st.kicks);
	g_require(!st.strays && !st.failed);
	g_require(!cudaMemcpy(bits, b->ask.free, b->ask.ncells / 8, cudaMemcpyDeviceToHost));
	for (i = 0; i < b->ask.ncells / 32; i++)
		left += bits[i] != ~0U;
	g_require(!left);
	g_ok(b->gpu, rgate_gpu_unbind_session(b->gpu, b->index));
	rgate_session_close(b->session);
	rgate_gpu_close(b->gpu);
	cudaFree(b->seen);
}

static void one_thread(void)
{
	struct bed b;

	bed_open(&b, 256, 1000);
	bed_bind(&b, 32);
	LAUNCH(&b, threads_kernel, 1, 1)(b.ask, b.seen, 5000);
	bed_run(&b);
	bed_close(&b, 5000);
}

/* More of them than places and cells */
static void threads(void)
{
	uint32_t rounds = 50 / (uint32_t)g_slow();
	struct bed b;

	bed_open(&b, 64, 1000);
	bed_bind(&b, 64);
	LAUNCH(&b, threads_kernel, 4, 96)(b.ask, b.seen, rounds);
	bed_run(&b);
	bed_close(&b, 4 * 96 * rounds);
}

static void warps(void)
{
	uint32_t rounds = 2000 / (uint32_t)g_slow();
	struct bed b;

	bed_open(&b, 1024, 1000);
	bed_bind(&b, 4096);
	LAUNCH(&b, warps_kernel, 32, 64)(b.ask, b.seen, rounds);
	bed_run(&b);
	bed_close(&b, 32 * 64 * rounds);
}

static uint64_t *zero_words(void)
{
	uint64_t *w;

	g_require(!cudaMalloc((void **)&w, 16) && !cudaMemset(w, 0, 16));
	return w;
}

/* One warp takes the completions, also where places run short */
static void served(void)
{
	uint32_t rounds = 1000 / (uint32_t)g_slow();
	uint64_t *words = zero_words();
	struct bed b;

	bed_open(&b, 256, 1000);
	bed_bind(&b, 4096);
	LAUNCH(&b, served_kernel, 33, 32)(b.ask, b.seen, words, rounds);
	bed_run(&b);
	cudaFree(words);
	bed_close(&b, 32 * 32 * rounds + 1);
}

/* As many warps, and room for two of them */
static void warps_full(void)
{
	uint32_t rounds = 200 / (uint32_t)g_slow();
	struct bed b;

	bed_open(&b, 64, 1000);
	bed_bind(&b, 128);
	LAUNCH(&b, warps_kernel, 16, 32)(b.ask, b.seen, rounds);
	bed_run(&b);
	bed_close(&b, 16 * 32 * rounds);
}

static void many(void)
{
	struct bed b;

	bed_open(&b, 128, 1000);
	bed_bind(&b, 256);
	LAUNCH(&b, many_kernel, 4, 1)(b.ask, b.seen, 100);
	bed_run(&b);
	bed_close(&b, 4 * 100 * 32);
}

static void blocks(void)
{
	struct bed b;

	bed_open(&b, 256, 1000);
	bed_bind(&b, 256);
	LAUNCH(&b, blocks_kernel, 8, 256)(b.ask, b.seen, b.handle, 100);
	bed_run(&b);
	bed_close(&b, 8 * 256 * 100 * 2);
}

static void fetch_add(void)
{
	const uint32_t n = 4 * 64 * 50;
	uint32_t *marks, i;
	struct bed b;

	bed_open(&b, 256, 1000);
	bed_bind(&b, 256);
	g_require(!cudaMallocManaged((void **)&marks, n * sizeof(*marks)));
	memset(marks, 0, n * sizeof(*marks));
	LAUNCH(&b, count_kernel, 4, 64)(b.ask, b.seen, b.handle, marks, 50);
	bed_run(&b);
	for (i = 0; i < n; i++)
		g_require(marks[i] == 1);
	cudaFree(marks);
	bed_close(&b, n);
}

/* An engine that sleeps is woken, and a ticket outlives its launch */
static void asleep(void)
{
	struct rgate_gpu_session_stats st;
	struct bed b;

	bed_open(&b, 64, RGATE_SPIN_NONE);
	bed_bind(&b, 32);
	LAUNCH(&b, lazy_kernel, 1, 1)(b.ask, b.seen, 100);
	LAUNCH(&b, submit_kernel, 1, 1)(b.ask, b.seen, RGATE_REQ_NOP);
	LAUNCH(&b, wait_kernel, 1, 32)(b.ask, b.seen, LONG, 1);
	bed_run(&b);
	memset(&st, 0, sizeof(st));
	st.sz = sizeof(st);
	g_ok(b.gpu, rgate_gpu_session_stats(b.gpu, b.index, &st));
	g_require(st.kicks >= 50);
	bed_close(&b, 103);
}

/* Nobody answers: waiting ends in time; then the other end of the session is gone */
static void gone(void)
{
	int pair[2], none = eventfd(0, 0);
	uint64_t *words = zero_words(), t;
	struct bed b;

	bed_open(&b, 64, RGATE_SPIN_NONE);
	usleep(20000);	/* the engine sleeps, and is not woken by this descriptor */
	g_require(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	b.loan.kick_fd = none;
	b.loan.gone_fd = pair[0];
	bed_bind(&b, 32);
	LAUNCH(&b, submit_kernel, 1, 1)(b.ask, b.seen, RGATE_REQ_NOP);
	bed_run(&b);
	t = g_now_ns();
	LAUNCH(&b, wait_kernel, 1, 32)(b.ask, b.seen, 10000000, 0);
	g_require(!cudaGetLastError());
	g_require(!cudaStreamSynchronize((cudaStream_t)rgate_gpu_stream(b.gpu)));
	g_note("two waits of 10 ms: %.1f ms", (double)(g_now_ns() - t) / 1e6);
	LAUNCH(&b, wait_kernel, 1, 32)(b.ask, b.seen, LONG, -EPIPE);
	usleep(100000);
	close(pair[1]);
	bed_run(&b);
	/* nor does one stay who takes completions */
	LAUNCH(&b, served_kernel, 1, 32)(b.ask, b.seen, words, 0);
	bed_run(&b);
	cudaFree(words);
	g_require(!b.seen->wrong && b.seen->good == 6);
	g_ok(b.gpu, rgate_gpu_unbind_session(b.gpu, b.index));
	rgate_session_close(b.session);
	rgate_gpu_close(b.gpu);
	close(pair[0]);
	close(none);
	cudaFree(b.seen);
}

static void packets(void)
{
	struct rgate_gpu_start_opts o;
	struct counted c;
	uint64_t *word;
	struct g_feed f;
	struct bed b;

	bed_open(&b, 1024, 1000);
	bed_bind(&b, 4096);
	memset(&f, 0, sizeof(f));
	f.ring = g_ring(1024, 256, 0);
	f.total = 20000 / (uint32_t)g_slow();
	f.min = 16;
	f.max = 192;
	g_ok(b.gpu, rgate_gpu_bind(b.gpu, f.ring, NULL));
	c.ask = b.ask;
	c.seen = b.seen;
	c.handle = b.handle;
	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	g_require(!cudaMalloc(&o.arg, sizeof(c)));
	g_require(!cudaMemcpy(o.arg, &c, sizeof(c), cudaMemcpyHostToDevice));
	g_ok(b.gpu, rgate_gpu_start(b.gpu, &counting, &o));
	g_require(rgate_gpu_unbind_session(b.gpu, b.index) == -EBUSY);
	g_feed_start(&f);
	g_feed_join(&f);
	g_ok(b.gpu, rgate_gpu_drain(b.gpu, 60000));
	g_ok(b.gpu, rgate_gpu_stop(b.gpu, 10000));
	word = (uint64_t *)((unsigned char *)rgate_session_memory(b.session, NULL) + PART +
			    PART_LEN - 16);
	g_require(__atomic_load_n(word, __ATOMIC_ACQUIRE) == f.bytes);
	g_ok(b.gpu, rgate_gpu_unbind(b.gpu, 0));
	cudaFree(o.arg);
	bed_close(&b, f.total);
	rgate_ring_close(f.ring);
	g_feed_free(&f);
}

static const struct g_test tests[] = {
	{ "one_thread", one_thread },
	{ "threads", threads },
	{ "warps", warps },
	{ "warps_full", warps_full },
	{ "served", served },
	{ "many", many },
	{ "blocks", blocks },
	{ "fetch_add", fetch_add },
	{ "asleep", asleep },
	{ "gone", gone },
	{ "packets", packets },
};

int main(int argc, char **argv)
{
	return g_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
