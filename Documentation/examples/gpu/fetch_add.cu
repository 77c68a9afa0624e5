/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A kernel that counts in memory of another node:
 *
 *	fetch_add [SOCKET NODE OWNER]
 *
 * Each of 128 threads adds one to the word at the begin of "demo/counter", ten times, and keeps
 * the last number that it drew. With a socket it is what the user OWNER, by number, has exported
 * at NODE, and the daemon is asked; without, this process exports it, and serves itself.
 */
#include <ringgate/gpu/ask.cuh>
#include <ringgate/rgate_gpu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME	"demo/counter"
#define LEN	(sizeof(NAME) - 1)
#define PART	4096
#define BLOCKS	4
#define THREADS	32
#define TURNS	10
#define SECOND	1000000000ULL

struct drawn {
	int error;
	uint64_t number;
};

/* One request and its answer; the result, or what went wrong on the way */
static __device__ int count(struct rgate_dasker *me, uint32_t handle, uint64_t *was)
{
	struct rgate_request q = {};
	struct rgate_danswer a;
	uint64_t ticket;
	int got;

	q.op = RGATE_REQ_MEMORY_FETCH_ADD;
	q.handle = handle;
	q.a0 = 0;
	q.a1 = 1;
	/* no place: answers that others wait for make some */
	while ((got = rgate_dask_submit(me, &q, &ticket)) == -EAGAIN)
		;
	if (!got)
		got = rgate_dask_wait(me, ticket, &a, 30 * SECOND);
	if (got != 1)
		return got ? got : -ETIMEDOUT;
	*was = a.value;
	return a.result;
}

static __global__ void draw(struct rgate_dask ask, uint32_t handle, struct drawn *drawn)
{
	struct drawn *mine = &drawn[blockIdx.x * blockDim.x + threadIdx.x];
	struct rgate_dasker me;

	rgate_dasker_init(&me, &ask, 1);
	mine->error = 0;
	for (int i = 0; i < TURNS && !mine->error; i++)
		mine->error = count(&me, handle, &mine->number);
	rgate_dasker_fini(&me);
}

static void check(struct rgate_gpu *gpu, long ret, const char *what)
{
	const char *why;

	if (ret >= 0)
		return;
	why = rgate_gpu_error(gpu);
	fprintf(stderr, "%s: %s\n", what, *why ? why : rgate_strerror("rgate_gpu_", (int)ret));
	exit(1);
}

/* The CPU's: before the session is the GPU's */
static int ask_once(struct rgate_session *s, const struct rgate_request *q, uint64_t *value)
{
	struct rgate_completion c;
	int n = rgate_session_submit(s, q);

	if (!n)
		n = rgate_session_wait(s, 30000);
	if (n <= 0 || rgate_session_poll(s, &c, 1) != 1)
		return n < 0 ? n : -ETIMEDOUT;
	*value = c.value;
	return c.result;
}

/* A handle of the memory */
static uint32_t open_counter(struct rgate_session *s, int argc, char **argv)
{
	struct rgate_request q = {};
	uint64_t value;

	memcpy(rgate_session_memory(s, NULL), NAME, LEN);
	if (argc < 4) {
		q.op = RGATE_REQ_MEMORY_EXPORT;
		q.off = PART;
		q.len = 64;
		q.a1 = RGATE_MEMORY_EXPORT_A1(RGATE_MEMORY_RIGHTS, LEN);
		check(NULL, ask_once(s, &q, &value), "export");
	}
	q = {};
	q.op = RGATE_REQ_MEMORY_OPEN;
	q.a0 = argc < 4 ? RGATE_MEMORY_HERE : strtoull(argv[2], NULL, 0);
	q.a1 = RGATE_MEMORY_OPEN_A1(argc < 4 ? geteuid() : strtoul(argv[3], NULL, 0),
				    RGATE_MEMORY_ATOMIC);
	q.len = LEN;
	check(NULL, ask_once(s, &q, &value), "open");
	return RGATE_MEMORY_HANDLE(value);
}

static void print(const struct drawn *d)
{
	uint64_t most = 0;

	for (int i = 0; i < BLOCKS * THREADS; i++) {
		check(NULL, d[i].error, "a thread of the GPU");
		most = d[i].number > most ? d[i].number : most;
	}
	printf("%d threads, the last number is %llu\n", BLOCKS * THREADS,
	       (unsigned long long)most);
}

int main(int argc, char **argv)
{
	static struct drawn drawn[BLOCKS * THREADS];
	struct rgate_session_loan loan = {};
	struct rgate_session_opts so = {};
	struct rgate_session *s;
	struct rgate_dask ask;
	struct rgate_gpu *gpu;
	unsigned int index;
	uint32_t handle;
	void *out;

	check(NULL, rgate_gpu_open(&gpu, NULL), "GPU");
	so.sz = sizeof(so);
	so.memory = 2 * PART;
	so.where = argc > 1 ? RGATE_SESSION_DAEMON : RGATE_SESSION_PROCESS;
	so.path = argc > 1 ? argv[1] : NULL;
	check(NULL, rgate_session_open(&s, &so), "session");
	handle = open_counter(s, argc, argv);

	loan.sz = sizeof(loan);
	check(NULL, rgate_session_lend(s, &loan), "lend");
	check(gpu, rgate_gpu_bind_session(gpu, &loan, NULL, &index), "bind");
	check(gpu, rgate_gpu_session_view(gpu, index, &ask, sizeof(ask)), "view");
	if (cudaMalloc(&out, sizeof(drawn)))
		return 1;
	draw<<<BLOCKS, THREADS>>>(ask, handle, (struct drawn *)out);
	if (cudaMemcpy(drawn, out, sizeof(drawn), cudaMemcpyDeviceToHost)) {
		fprintf(stderr, "the kernel failed\n");
		return 1;
	}
	print(drawn);
	cudaFree(out);
	rgate_gpu_close(gpu);
	rgate_session_close(s);
	return 0;
}
