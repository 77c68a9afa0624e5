// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The thread that looks after a kernel. What is to be done about one that has returned it
 * alone does, whose current device is the runtime's: callers wait for it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "clock.h"
#include "gpu.h"
#include "ring_memfd.h"

#define WAIT_NS		20000		/* between two looks while somebody waits */
#define SETTLE_NS	10000000000ULL	/* after its last word a kernel returns at once */

/* Processes that died left their rings as they were: the device is told by a bit. */
static void find_gone(struct rgate_gpu *gpu)
{
	struct pollfd fd[RGATE_GPU_RINGS_MAX];
	uint64_t gone = 0;
	unsigned int i;

	for (i = 0; i < gpu->nrings; i++) {
		fd[i].fd = gpu->ring[i].bound == RGATE_GPU_BOUND ?
			   rgate_ring_life(gpu->ring[i].ring) : -1;
		fd[i].events = 0;	/* hang-ups alone */
	}
	if (poll(fd, gpu->nrings, 0) <= 0)
		return;
	for (i = 0; i < gpu->nrings; i++)
		if (fd[i].revents & POLLHUP)
			gone |= 1ULL << i;
	__atomic_store_n(&gpu->ctl->gone, gone, __ATOMIC_RELEASE);
}

static void failed(struct rgate_gpu *gpu)
{
	gpu->state = RGATE_GPU_FAILED;
}

/* The kernel has returned: is it the end, or its time that was up? */
static void after(struct rgate_gpu *gpu)
{
	uint64_t why = __atomic_load_n(&gpu->report->why, __ATOMIC_RELAXED);
	int err = rgate_gpu_cuda(gpu, cudaStreamSynchronize(gpu->stream), "kernel");

	gpu->noted = gpu->launches;
	if (err) {
		failed(gpu);
		return;
	}
	gpu->state = RGATE_GPU_IDLE;
	if (gpu->kernel->kind == RGATE_GPU_KIND_BATCH || gpu->stopping)
		return;
	err = rgate_gpu_follow(gpu);
	if (!err && why == RGATE_DEXIT_RINGS) {
		/* nothing to launch for; or not yet: looked at again */
		gpu->state = rgate_gpu_awaits(gpu) ? RGATE_GPU_RUNNING : RGATE_GPU_ENDED;
		return;
	}
	/* a stop for a resize's sake is over */
	__atomic_store_n(&gpu->ctl->stop, 0, __ATOMIC_RELEASE);
	if (err < 0 || rgate_gpu_relaunch(gpu))
		failed(gpu);
}

/*
 * Signs of life. Each ring has a warp that looks at it, and tells the number of its looks at
 * every 64th; and what was handed out of it is finished, by whichever warp has it. So a warp
 * that hangs is known by its ring, whatever it is. Who waits for room in the output ring
 * does not hang.
 */
void rgate_gpu_signs_begin(struct rgate_gpu *gpu)
{
	unsigned int i;

	gpu->beat_ns = rgate_clock_now(CLOCK_MONOTONIC);
	for (i = 0; i < gpu->nrings; i++)
		gpu->ring[i].looks_ns = gpu->ring[i].done_ns = gpu->beat_ns;
}

static void ring_signs(struct rgate_gpu *gpu, unsigned int i, bool full, uint64_t now)
{
	const struct rgate_dstat *s = &gpu->stat[i];
	struct rgate_gpu_ring *r = &gpu->ring[i];
	uint64_t looks = __atomic_load_n(&s->looks, __ATOMIC_RELAXED);
	uint64_t done = __atomic_load_n(&s->done, __ATOMIC_ACQUIRE);
	uint64_t next = __atomic_load_n(&s->next, __ATOMIC_RELAXED);

	if (looks != r->looks || full)
		r->looks_ns = now;
	if (done != r->done || done == next || full)
		r->done_ns = now;
	r->looks = looks;
	r->done = done;
}

static void signs(struct rgate_gpu *gpu)
{
	bool batch = gpu->kernel->kind == RGATE_GPU_KIND_BATCH;
	uint64_t now = rgate_clock_now(CLOCK_MONOTONIC), oldest = now, age;
	bool full = rgate_gpu_output_full(gpu);
	unsigned int i, which = 0;

	/* a batch kernel tells nothing before its end */
	for (i = 0; !batch && i < gpu->nrings; i++) {
		const struct rgate_gpu_ring *r = &gpu->ring[i];
		uint64_t last;

		ring_signs(gpu, i, full, now);
		last = r->looks_ns < r->done_ns ? r->looks_ns : r->done_ns;
		if (last < oldest) {
			oldest = last;
			which = i;
		}
	}
	gpu->beat_ns = oldest;
	age = now - oldest;
	if (age > gpu->stall_ns && gpu->state == RGATE_GPU_RUNNING)
		rgate_gpu_fail(gpu, -ETIMEDOUT, "no sign of life from kernel %s for %llu ms, at ring %u",
			       gpu->kernel->name, (unsigned long long)(age / 1000000), which);
	gpu->state = age > gpu->stall_ns ? RGATE_GPU_STALLED : RGATE_GPU_RUNNING;
}

/* What has become of the kernel, by now? */
static void look(struct rgate_gpu *gpu)
{
	if (!rgate_gpu_busy(gpu))
		return;
	if (rgate_gpu_returned(gpu))
		after(gpu);
	else
		signs(gpu);
}

/* Once in some ticks: what CUDA alone can tell, and what needs a pause */
static void look_closely(struct rgate_gpu *gpu)
{
	cudaError_t err;

	if (!rgate_gpu_busy(gpu))
		return;
	err = cudaStreamQuery(gpu->stream);
	if (err && err != cudaErrorNotReady) {
		rgate_gpu_cuda(gpu, err, "kernel");
		failed(gpu);
		return;
	}
	find_gone(gpu);
	if (gpu->kernel->kind != RGATE_GPU_KIND_BATCH && !rgate_gpu_returned(gpu) &&
	    rgate_gpu_follow_wanted(gpu))
		__atomic_store_n(&gpu->ctl->stop, 1, __ATOMIC_RELEASE);
}

static void kick(struct rgate_gpu *gpu)
{
	__atomic_store_n(&gpu->kick, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&gpu->wake);
}

static void sleep_tick(struct rgate_gpu *gpu)
{
	uint64_t tick = gpu->waiters && gpu->tick_ns > WAIT_NS ? WAIT_NS : gpu->tick_ns;
	uint64_t ns = rgate_clock_now(CLOCK_MONOTONIC) + tick;
	struct timespec ts = {
		.tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000),
	};

	while (!gpu->quit && !__atomic_exchange_n(&gpu->kick, false, __ATOMIC_RELAXED))
		if (pthread_cond_timedwait(&gpu->wake, &gpu->lock, &ts) == ETIMEDOUT)
			break;
}

bool rgate_gpu_pass(struct rgate_gpu *gpu, uint64_t end)
{
	struct timespec ts = { .tv_nsec = WAIT_NS };

	if (rgate_clock_now(CLOCK_MONOTONIC) >= end)
		return false;
	if (!gpu->waiters++)
		kick(gpu);
	pthread_mutex_unlock(&gpu->lock);
	nanosleep(&ts, NULL);
	pthread_mutex_lock(&gpu->lock);
	gpu->waiters--;
	return true;
}

void rgate_gpu_settle(struct rgate_gpu *gpu)
{
	uint64_t end = rgate_clock_now(CLOCK_MONOTONIC) + SETTLE_NS;

	while (rgate_gpu_busy(gpu) && rgate_gpu_returned(gpu) && gpu->noted != gpu->launches)
		if (!rgate_gpu_pass(gpu, end))
			break;
}

static void *thread_main(void *arg)
{
	struct rgate_gpu *gpu = arg;
	unsigned int tick = 0;

	cudaSetDevice(gpu->device);
	pthread_mutex_lock(&gpu->lock);
	while (!gpu->quit) {
		sleep_tick(gpu);
		look(gpu);
		if (++tick % 8 == 0)
			look_closely(gpu);
		rgate_gpu_output_wake(gpu);
	}
	pthread_mutex_unlock(&gpu->lock);
	return NULL;
}

int rgate_gpu_watch_start(struct rgate_gpu *gpu)
{
	pthread_condattr_t attr;
	sigset_t all, old;
	int err;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&gpu->wake, &attr);
	pthread_condattr_destroy(&attr);
	/* signals are for the application's threads */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&gpu->thread, NULL, thread_main, gpu);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		pthread_cond_destroy(&gpu->wake);
		return rgate_gpu_fail(gpu, err, "cannot start a thread");
	}
	pthread_setname_np(gpu->thread, "rgate-gpu");
	return 0;
}

void rgate_gpu_watch_stop(struct rgate_gpu *gpu)
{
	pthread_mutex_lock(&gpu->lock);
	gpu->quit = true;
	pthread_cond_signal(&gpu->wake);
	pthread_mutex_unlock(&gpu->lock);
	pthread_join(gpu->thread, NULL);
}
