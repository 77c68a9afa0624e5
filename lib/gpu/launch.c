// SPDX-License-Identifier: MIT OR GPL-2.0
/* Kernels: launching, stopping, waiting for */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "gpu.h"
#include "opts.h"

#define WARPS_LEAST	8U	/* of a block: RGATE_DBLOCK_WARPS */
#define BLOCKS_A_RING	8U	/* where the caller does not say */
#define BLOCKS_LEAST	16U
#define PAUSE_NS	100U
#define TOLD		3U	/* see struct target */

static bool pow2(uint64_t v)
{
	return v && !(v & (v - 1));
}

/*
 * Cells for as many pieces as there can be at once: one a slot, of the rings as they are now. A
 * clerk that had to wait for one would wait for workers, which may wait for their turn in the
 * output ring, and that for the clerk.
 */
static int make_queue(struct rgate_gpu *gpu)
{
	struct rgate_dqueue q;
	struct rgate_dpair *cells;
	uint64_t n = 64, sum = 0, i;
	int err;

	for (i = 0; i < gpu->nrings; i++)
		sum += gpu->ring[i].view.nslots;
	while (n < sum)
		n *= 2;
	if (n <= gpu->ncells)
		return 0;
	cudaFree(gpu->dcells);
	gpu->dcells = NULL;
	gpu->ncells = 0;
	cells = calloc(n, sizeof(*cells));
	if (!cells)
		return rgate_gpu_fail(gpu, -ENOMEM, "no memory");
	for (i = 0; i < n; i++)
		cells[i].v[1] = RGATE_DCELL_WORD(i, 0, 0);
	err = rgate_gpu_cuda(gpu, cudaMalloc((void **)&gpu->dcells, n * sizeof(*cells)),
			     "cudaMalloc");
	if (!err)
		err = rgate_gpu_cuda(gpu, cudaMemcpy(gpu->dcells, cells, n * sizeof(*cells),
						     cudaMemcpyHostToDevice), "cudaMemcpy");
	free(cells);
	if (err)
		return err;
	memset(&q, 0, sizeof(q));
	q.cell = gpu->dcells;
	q.mask = n - 1;
	gpu->ncells = n;
	return rgate_gpu_cuda(gpu, cudaMemcpy(gpu->dqueue, &q, sizeof(q), cudaMemcpyHostToDevice),
			      "cudaMemcpy");
}

/*
 * Half a batch is near, and done with, sooner than a whole one, so that more slots of a ring come
 * round in the same time; it takes twice the warps. Not where each piece has its turn in the
 * output ring, nor where no producer waits for it.
 */
static bool by_halves(const struct rgate_gpu_kernel *k)
{
	return k->kind == RGATE_GPU_KIND_PERSISTENT && !k->reply && k->run == RGATE_BATCH;
}

static uint32_t least_blocks(const struct rgate_gpu_kernel *k)
{
	return by_halves(k) ? 2 * BLOCKS_LEAST : BLOCKS_LEAST;
}

static uint32_t usual_grain(const struct rgate_gpu *gpu)
{
	const struct rgate_gpu_kernel *k = gpu->kernel;

	return by_halves(k) && gpu->blocks >= least_blocks(k) ? k->run / 2 : k->run;
}

/* Warps of a block: as many as the kernel is made for, or as there is memory near for */
static int size_block(struct rgate_gpu *gpu)
{
	const struct rgate_gpu_kernel *k = gpu->kernel;
	const size_t room = gpu->prop.sharedMemPerBlockOptin;
	unsigned int shared;
	CUresult res;

	for (gpu->warps = k->warps;; gpu->warps--) {
		shared = k->warp_bytes * gpu->warps;
		res = shared > room ? CUDA_ERROR_INVALID_VALUE :
		      gpu->driver.set_attribute(gpu->function,
						CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
						(int)shared);
		if (!res || gpu->warps <= WARPS_LEAST)
			break;
	}
	if (shared > room)
		return rgate_gpu_fail(gpu, -E2BIG, "kernel %s needs %u bytes of shared memory a block, the device has %zu",
				      k->name, shared, room);
	return rgate_gpu_cu(gpu, res, "cuFuncSetAttribute");
}

/* Blocks of gpu->warps that the device has room for at once */
static int count_blocks(struct rgate_gpu *gpu, uint32_t *most)
{
	int n = 0;
	CUresult res = gpu->driver.occupancy(&n, gpu->function, (int)gpu->warps * 32,
					     (size_t)gpu->kernel->warp_bytes * gpu->warps);

	*most = (uint32_t)(n * gpu->prop.multiProcessorCount);
	return rgate_gpu_cu(gpu, res, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
}

/* All blocks must be there at once: they wait for each other. */
static int fit(struct rgate_gpu *gpu, uint32_t wanted)
{
	const struct rgate_gpu_kernel *k = gpu->kernel;
	int err = size_block(gpu);
	uint32_t most = 0;

	if (!err)
		err = count_blocks(gpu, &most);
	/* smaller ones, where so many are needed */
	while (!err && wanted > most && gpu->warps > WARPS_LEAST) {
		gpu->warps--;
		err = count_blocks(gpu, &most);
	}
	if (err)
		return err;
	if (!wanted) {
		wanted = gpu->nrings * BLOCKS_A_RING;
		wanted = wanted > least_blocks(k) ? wanted : least_blocks(k);
		wanted = wanted < most ? wanted : most;
		/* at least one for each polling warp, and one that works */
		wanted = wanted > gpu->ctx.npollers ? wanted : gpu->ctx.npollers + 1;
	}
	if (wanted > most)
		return rgate_gpu_fail(gpu, -E2BIG, "%u blocks of kernel %s do not fit on the device at once, %u do",
				      wanted, k->name, most);
	gpu->blocks = wanted;
	return 0;
}

static int check(struct rgate_gpu *gpu, const struct rgate_gpu_kernel *k,
		 const struct rgate_gpu_start_opts *o, bool batch)
{
	if (k->sz != sizeof(*k) || k->context_bytes != sizeof(struct rgate_dctx))
		return rgate_gpu_fail(gpu, -EINVAL, "kernel %s was built with other headers",
				      k->name);
	if (batch ? k->kind != RGATE_GPU_KIND_BATCH : k->kind == RGATE_GPU_KIND_BATCH)
		return rgate_gpu_fail(gpu, -EINVAL, "kernel %s is to be used with rgate_gpu_%s()",
				      k->name, batch ? "start" : "launch");
	if (!gpu->nrings)
		return rgate_gpu_fail(gpu, -EINVAL, "no ring is bound");
	if (rgate_gpu_busy(gpu))
		return rgate_gpu_fail(gpu, -EBUSY, "a kernel runs");
	if (gpu->state == RGATE_GPU_FAILED)
		return -EIO;	/* the reason stands */
	if (k->reply && !gpu->out_ring)
		return rgate_gpu_fail(gpu, -ENODATA, "kernel %s answers, and there is no output ring",
				      k->name);
	if (k->reply && k->reply > gpu->out_view.slot_size - RGATE_SLOT_HDR)
		return rgate_gpu_fail(gpu, -EINVAL, "answers of %u bytes do not fit in slots of %u",
				      k->reply, gpu->out_view.slot_size);
	if (o->reserved || (o->results && (!pow2(o->results_len) || !o->result_size)) ||
	    (o->grain && (!pow2(o->grain) || o->grain > RGATE_BATCH)) ||
	    (o->direct != RGATE_GPU_NO_DIRECT && o->direct > RGATE_BATCH))
		return rgate_gpu_fail(gpu, -EINVAL, "bad options");
	return 0;
}

static int choose_pollers(struct rgate_gpu *gpu, const struct rgate_gpu_start_opts *o)
{
	uint32_t least = (gpu->nrings + RGATE_DPOLL_RINGS - 1) / RGATE_DPOLL_RINGS;
	uint32_t n = o->pollers ? o->pollers : gpu->nrings;

	if (gpu->kernel->kind == RGATE_GPU_KIND_ORDERED)
		n = gpu->nrings;
	if (n > gpu->nrings || n < least)
		return rgate_gpu_fail(gpu, -EINVAL, "%u polling warps for %u rings: %u to %u can be",
				      n, gpu->nrings, least, gpu->nrings);
	gpu->ctx.npollers = n;
	return 0;
}

static int prepare(struct rgate_gpu *gpu, const struct rgate_gpu_kernel *k,
		   const struct rgate_gpu_start_opts *o)
{
	struct rgate_dctx *c = &gpu->ctx;
	uint32_t wanted = o->blocks;
	void *function;
	int err;

	gpu->kernel = k;
	err = rgate_gpu_cuda(gpu, (cudaError_t)k->function(&function), "cudaGetFuncBySymbol");
	if (err)
		return err;
	gpu->function = function;
	err = choose_pollers(gpu, o);
	if (err)
		return err;
	if (k->kind == RGATE_GPU_KIND_ORDERED)
		wanted = gpu->nrings;
	else if (k->kind == RGATE_GPU_KIND_BATCH && !wanted)
		wanted = (uint32_t)gpu->prop.multiProcessorCount;
	else if (wanted && wanted < c->npollers)
		return rgate_gpu_fail(gpu, -EINVAL, "fewer blocks than polling warps");
	err = fit(gpu, wanted);
	if (err)
		return err;
	c->arg = o->arg;
	c->results = o->results;
	c->results_mask = o->results_len - 1;
	c->result_size = o->result_size;
	c->nrings = gpu->nrings;
	c->limit_ns = o->limit_ms * 1000000ULL;
	c->pause_ns = o->pause_ns ? o->pause_ns : PAUSE_NS;
	c->grain = o->grain ? o->grain : usual_grain(gpu);
	/* who may have to wait for room does not look meanwhile */
	c->direct = o->direct ? o->direct : k->reply && gpu->out.wait ? 0 : k->run;
	if (o->direct == RGATE_GPU_NO_DIRECT)
		c->direct = 0;
	/* with nobody else everything is the polling warps' */
	if (gpu->blocks * gpu->warps == c->npollers)
		c->direct = ~0U;
	c->out = gpu->out;
	if (!k->reply)
		c->out.state = NULL;
	c->until = NULL;
	return 0;
}

/*
 * Tells the thread that a limited launch is over. CUDA waits for this, maybe with the lock
 * held: so without it. A signal that comes a moment too early costs a tick.
 */
static void CUDART_CB returned(void *arg)
{
	struct rgate_gpu *gpu = arg;

	__atomic_store_n(&gpu->kick, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&gpu->wake);
}

int rgate_gpu_relaunch(struct rgate_gpu *gpu)
{
	void *args[] = { &gpu->ctx };
	int err = make_queue(gpu);

	if (err)
		return err;
	err = rgate_gpu_cu(gpu, gpu->driver.launch(gpu->function, gpu->blocks, 1, 1,
						   gpu->warps * 32, 1, 1,
						   gpu->kernel->warp_bytes * gpu->warps,
						   gpu->stream, args), "cuLaunchCooperativeKernel");
	if (err)
		return err;
	/* it is there, whatever fails from here on: without the signal its end costs a tick */
	gpu->launches++;
	if (gpu->ctx.limit_ns && cudaLaunchHostFunc(gpu->stream, returned, gpu))
		cudaGetLastError();
	rgate_gpu_signs_begin(gpu);
	gpu->state = RGATE_GPU_RUNNING;
	return 0;
}

/* The user's stop ends the waiting for room in the output ring, too; a resize's does not. */
static void stopping(struct rgate_gpu *gpu, bool on)
{
	gpu->stopping = on;
	__atomic_store_n(&gpu->ctl->drop, on, __ATOMIC_RELEASE);
	__atomic_store_n(&gpu->ctl->stop, on, __ATOMIC_RELEASE);
}

/* A stop whose caller has given up waiting is not for the kernel to come. */
static int first_launch(struct rgate_gpu *gpu)
{
	stopping(gpu, false);
	return rgate_gpu_relaunch(gpu);
}

static int start(struct rgate_gpu *gpu, const struct rgate_gpu_kernel *kernel,
		 const struct rgate_gpu_start_opts *opts)
{
	struct rgate_gpu_start_opts o;
	int err = rgate_opts_copy(&o, sizeof(o), opts);

	if (err)
		return rgate_gpu_fail(gpu, err, "bad options");
	err = check(gpu, kernel, &o, false);
	if (!err)
		err = rgate_gpu_follow(gpu);
	if (err >= 0)
		err = prepare(gpu, kernel, &o);
	return err ? err : first_launch(gpu);
}

int rgate_gpu_start(struct rgate_gpu *gpu, const struct rgate_gpu_kernel *kernel,
		    const struct rgate_gpu_start_opts *opts)
{
	int err, was;

	pthread_mutex_lock(&gpu->lock);
	rgate_gpu_settle(gpu);
	err = rgate_gpu_enter(gpu, &was);
	if (!err) {
		err = start(gpu, kernel, opts);
		rgate_gpu_leave(was);
	}
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

static uint64_t deadline(int timeout_ms)
{
	if (timeout_ms < 0)
		return UINT64_MAX;
	return rgate_clock_now(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000;
}

static int result_of(const struct rgate_gpu *gpu)
{
	return gpu->state == RGATE_GPU_FAILED ? -EIO : 0;
}

int rgate_gpu_stop(struct rgate_gpu *gpu, int timeout_ms)
{
	uint64_t end = deadline(timeout_ms);
	int err = 0;

	pthread_mutex_lock(&gpu->lock);
	rgate_gpu_settle(gpu);
	stopping(gpu, true);
	while (rgate_gpu_busy(gpu))
		if (!rgate_gpu_pass(gpu, end)) {
			err = rgate_gpu_fail(gpu, -ETIMEDOUT, "the kernel has not returned yet");
			break;
		}
	if (!err) {
		stopping(gpu, false);
		err = result_of(gpu);
		if (gpu->state == RGATE_GPU_ENDED)
			gpu->state = RGATE_GPU_IDLE;
	}
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

int rgate_gpu_wait(struct rgate_gpu *gpu, int timeout_ms)
{
	uint64_t end = deadline(timeout_ms);
	int err = 0;

	pthread_mutex_lock(&gpu->lock);
	rgate_gpu_settle(gpu);
	while (!err && rgate_gpu_busy(gpu))
		if (!rgate_gpu_pass(gpu, end))
			err = rgate_gpu_fail(gpu, -ETIMEDOUT, "the kernel has not returned yet");
	if (!err)
		err = result_of(gpu);
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

/*
 * What a drain waits for in a ring. The device tells of its positions now and then, and may be
 * laps ahead: what is there is counted from one that it told after the call. Of what it tells
 * for the third time a part may be seen; the second time is seen whole then, and began after
 * the call, as the first had ended.
 */
struct target {
	uint64_t pos;
	uint64_t taken;		/* then; taken since: the memory was drained before, or is lost */
	uint64_t looks;		/* as told last */
	unsigned int told;	/* times since the call */
	bool known;		/* pos is */
};

static bool ring_finished(const struct rgate_gpu *gpu, unsigned int i, struct target *t)
{
	const struct rgate_dstat *s = &gpu->stat[i];
	uint64_t looks = __atomic_load_n(&s->looks, __ATOMIC_ACQUIRE);

	if (gpu->ring[i].taken != t->taken)
		return true;
	t->told += looks != t->looks;
	t->looks = looks;
	/* exactly, where no kernel is there */
	if (!t->known && (t->told >= TOLD || rgate_gpu_returned(gpu) || !rgate_gpu_busy(gpu))) {
		t->pos = rgate_gpu_published(&gpu->ring[i], __atomic_load_n(&s->next,
									    __ATOMIC_ACQUIRE));
		t->known = true;
	}
	return t->known && __atomic_load_n(&s->done, __ATOMIC_ACQUIRE) >= t->pos;
}

static bool finished(const struct rgate_gpu *gpu, struct target *t, unsigned int n)
{
	bool all = true;
	unsigned int i;

	for (i = 0; i < n; i++)
		all &= ring_finished(gpu, i, &t[i]);
	return all;
}

int rgate_gpu_drain(struct rgate_gpu *gpu, int timeout_ms)
{
	struct target target[RGATE_GPU_RINGS_MAX];
	uint64_t end = deadline(timeout_ms);
	unsigned int i, n;
	int err = 0;

	memset(target, 0, sizeof(target));
	pthread_mutex_lock(&gpu->lock);
	rgate_gpu_settle(gpu);
	n = gpu->nrings;
	for (i = 0; i < n; i++) {
		target[i].taken = gpu->ring[i].taken;
		target[i].looks = __atomic_load_n(&gpu->stat[i].looks, __ATOMIC_RELAXED);
	}
	while (!err && !finished(gpu, target, n)) {
		if (gpu->state == RGATE_GPU_FAILED)
			err = -EIO;
		else if (!rgate_gpu_busy(gpu))
			err = rgate_gpu_fail(gpu, -EPIPE, "no kernel runs");
		else if (!rgate_gpu_pass(gpu, end))
			err = rgate_gpu_fail(gpu, -ETIMEDOUT, "not all is finished yet");
	}
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

static long launch(struct rgate_gpu *gpu, const struct rgate_gpu_kernel *kernel,
		   const struct rgate_gpu_start_opts *opts)
{
	struct rgate_gpu_start_opts o;
	long n = 0;
	unsigned int i;
	int err = rgate_opts_copy(&o, sizeof(o), opts);

	if (err)
		return rgate_gpu_fail(gpu, err, "bad options");
	err = check(gpu, kernel, &o, true);
	if (!err)
		err = rgate_gpu_follow(gpu);
	if (err < 0)
		return err;
	for (i = 0; i < gpu->nrings; i++) {
		uint64_t from = __atomic_load_n(&gpu->stat[i].next, __ATOMIC_ACQUIRE);

		gpu->until[i] = rgate_gpu_published(&gpu->ring[i], from);
		n += (long)(gpu->until[i] - from);
	}
	if (!n)
		return 0;
	err = prepare(gpu, kernel, &o);
	if (err)
		return err;
	gpu->ctx.limit_ns = 0;
	gpu->ctx.until = gpu->until;
	err = first_launch(gpu);
	return err ? err : n;
}

long rgate_gpu_launch(struct rgate_gpu *gpu, const struct rgate_gpu_kernel *kernel,
		      const struct rgate_gpu_start_opts *opts)
{
	int was;
	long n;

	pthread_mutex_lock(&gpu->lock);
	rgate_gpu_settle(gpu);
	n = rgate_gpu_enter(gpu, &was);
	if (!n) {
		n = launch(gpu, kernel, opts);
		rgate_gpu_leave(was);
	}
	pthread_mutex_unlock(&gpu->lock);
	return n;
}
