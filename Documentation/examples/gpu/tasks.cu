/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Warps of a GPU that work on a queue of tasks:
 *
 *	tasks [SOCKET]
 *
 * The program puts 2000 tasks into the queue "demo/pi": each is to throw points at a square and to
 * count those in the circle. 128 warps claim a task for each lane, and answer. With a socket the
 * daemon has the queue, and workers of other programs could have some of the tasks.
 */
#include <ringgate/gpu/tasks.cuh>
#include <ringgate/rgate_gpu.h>
#include <ringgate/rgate_queue.h>

#include <stdio.h>
#include <stdlib.h>

#define NAME	"demo/pi"
#define BLOCKS	32
#define WARPS	4		/* of a block */
#define PART	4096		/* of a warp: 32 tasks of 16 bytes, with their heads */
#define TASKS	2000
#define POINTS	100000

struct job {
	uint64_t seed;
	uint64_t points;
};

static __device__ uint64_t throw_points(const struct job *job)
{
	uint64_t x = job->seed * 2654435769U + 1, hits = 0;

	for (uint64_t i = 0; i < job->points; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		float a = (float)(uint32_t)x, b = (float)(uint32_t)(x >> 32);
		hits += a * a + b * b < 4294967296.0f * 4294967296.0f;
	}
	return hits;
}

/*
 * Until no task has come for a tenth of a second; @error: what went wrong. What a lane hears of its
 * task is its own, but the whole warp goes on or none of it.
 */
static __global__ void work(struct rgate_dask ask, uint32_t handle, int *error)
{
	__shared__ __align__(16) unsigned char near[WARPS][PART];
	const uint32_t warp = threadIdx.x / 32;
	struct rgate_dworker w;
	struct rgate_dtask task;
	int n, err, stop;

	stop = err = rgate_dworker_init(&w, &ask, handle, (blockIdx.x * WARPS + warp) * PART, PART,
				 near[warp]);
	while (!stop) {
		n = rgate_dworker_claim(&w, 0, 32, RGATE_CLAIM_BEGIN, 100000, &task);
		if (n < 0) {
			err = n == -ETIMEDOUT ? 0 : n;
			break;
		}
		if (task.id)
			*(uint64_t *)rgate_dworker_room(&w) =
				throw_points((const struct job *)task.data);
		err = rgate_dworker_complete(&w, &task, sizeof(uint64_t));
		stop = __any_sync(0xffffffffU, err);
	}
	rgate_dworker_fini(&w);
	if (err)
		*error = err;
}

static void check(const char *function, long ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, rgate_strerror(function, (int)ret));
	exit(1);
}

/* Puts the tasks in; the number of the first: the others have the next ones */
static uint64_t submit_all(struct rgate_queue *queue)
{
	static struct rgate_queue_job jobs[TASKS];
	static struct job job[TASKS];
	uint64_t first = 0, id;
	int n;

	for (int i = 0; i < TASKS; i++) {
		job[i].seed = i + 1;
		job[i].points = POINTS;
		jobs[i].data = &job[i];
		jobs[i].len = sizeof(job[i]);
		jobs[i].flags = RGATE_TASK_RESULT;
	}
	for (int done = 0; done < TASKS; done += n) {
		n = rgate_queue_submit(queue, jobs + done, TASKS - done, 30000, &id);
		check("rgate_queue_", n, "submit");
		if (!done)
			first = id;
	}
	return first;
}

static double collect(struct rgate_queue *queue, uint64_t first)
{
	uint64_t hits = 0, more;
	uint32_t state;

	for (int i = 0; i < TASKS; i++) {
		check("rgate_queue_", rgate_queue_wait(queue, first + i, RGATE_WAIT_TAKE, 30000,
						       &more, sizeof(more), &state), "a task");
		hits += more;
	}
	return 4.0 * hits / ((double)TASKS * POINTS);
}

int main(int argc, char **argv)
{
	struct rgate_session_loan loan = {};
	struct rgate_session_opts so = {};
	struct rgate_queue_opts qo = {};
	struct rgate_session *s;
	struct rgate_queue *queue;
	struct rgate_dask ask;
	struct rgate_gpu *gpu;
	unsigned int index;
	uint32_t handle;
	uint64_t first;
	double pi;
	int *error;

	check("rgate_gpu_", rgate_gpu_open(&gpu, NULL), "GPU");
	qo.sz = sizeof(qo);
	so.sz = sizeof(so);
	so.where = qo.where = argc > 1 ? RGATE_SESSION_DAEMON : RGATE_SESSION_PROCESS;
	so.path = qo.path = argc > 1 ? argv[1] : NULL;
	qo.flags = RGATE_QUEUE_CREATE;
	check("rgate_queue_", rgate_queue_open(&queue, NAME, &qo), NAME);
	so.memory = BLOCKS * WARPS * PART;
	so.requests = 8192;	/* each lane has one under way */
	check("rgate_session_", rgate_session_open(&s, &so), "session");
	check("rgate_queue_", rgate_queue_handle(s, NAME, &qo, &handle), NAME);

	loan.sz = sizeof(loan);
	check("rgate_session_", rgate_session_lend(s, &loan), "lend");
	check("rgate_gpu_", rgate_gpu_bind_session(gpu, &loan, NULL, &index), "bind");
	check("rgate_gpu_", rgate_gpu_session_view(gpu, index, &ask, sizeof(ask)), "view");
	if (cudaMallocManaged((void **)&error, sizeof(*error)))
		return 1;
	*error = 0;
	first = submit_all(queue);
	work<<<BLOCKS, WARPS * 32>>>(ask, handle, error);
	pi = collect(queue, first);
	if (cudaDeviceSynchronize() || *error) {
		fprintf(stderr, "the kernel failed: %s\n", rgate_strerror("rgate_queue_", *error));
		return 1;
	}
	printf("%d tasks of %d points: pi is about %.4f\n", TASKS, POINTS, pi);
	cudaFree(error);
	rgate_gpu_close(gpu);
	rgate_session_close(s);
	rgate_queue_close(queue);
	return 0;
}
