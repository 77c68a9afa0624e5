// SPDX-License-Identifier: MIT OR GPL-2.0
/* A runtime: opening, closing, and what it says of itself */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "gpu.h"
#include "opts.h"

#define TICK_US		1000
#define STALL_MS	2000
#define CLOSE_MS	10000

static _Thread_local char open_error[RGATE_GPU_TEXT];

int rgate_gpu_fail(struct rgate_gpu *gpu, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(gpu->error, sizeof(gpu->error), fmt, ap);
	va_end(ap);
	return err;
}

void rgate_gpu_keep_error(const struct rgate_gpu *gpu)
{
	memcpy(open_error, gpu->error, sizeof(open_error));
}

static int code_of(cudaError_t err)
{
	switch (err) {
	case cudaSuccess:
		return 0;
	case cudaErrorMemoryAllocation:
		return -ENOMEM;
	case cudaErrorNoDevice:
	case cudaErrorInvalidDevice:
	case cudaErrorInsufficientDriver:
	case cudaErrorSystemDriverMismatch:
		return -ENODEV;
	case cudaErrorCooperativeLaunchTooLarge:
	case cudaErrorLaunchOutOfResources:
		return -E2BIG;
	default:
		return -EIO;
	}
}

int rgate_gpu_cuda(struct rgate_gpu *gpu, cudaError_t err, const char *what)
{
	if (!err)
		return 0;
	cudaGetLastError();	/* it is told here, once */
	return rgate_gpu_fail(gpu, code_of(err), "%s: %s (%s)", what, cudaGetErrorString(err),
			      cudaGetErrorName(err));
}

int rgate_gpu_cu(struct rgate_gpu *gpu, CUresult err, const char *what)
{
	const char *text = "unknown error";

	if (err == CUDA_SUCCESS)
		return 0;
	gpu->driver.error_string(err, &text);
	return rgate_gpu_fail(gpu, err == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE ||
			      err == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ? -E2BIG : -EIO,
			      "%s: %s", what, text);
}

int rgate_gpu_enter(struct rgate_gpu *gpu, int *was)
{
	int err = rgate_gpu_cuda(gpu, cudaGetDevice(was), "cudaGetDevice");

	return err ? err : rgate_gpu_cuda(gpu, cudaSetDevice(gpu->device), "cudaSetDevice");
}

void rgate_gpu_leave(int was)
{
	int now;

	/* setting a device makes a context on it: not for nothing */
	if (!cudaGetDevice(&now) && now != was)
		cudaSetDevice(was);
}

static int entry(struct rgate_gpu *gpu, const char *name, void **fn)
{
	enum cudaDriverEntryPointQueryResult found;
	cudaError_t err;

	err = cudaGetDriverEntryPointByVersion(name, fn, 12000, cudaEnableDefault, &found);
	if (!err && found != cudaDriverEntryPointSuccess)
		return rgate_gpu_fail(gpu, -ENODEV, "the CUDA driver is too old: no %s", name);
	return rgate_gpu_cuda(gpu, err, "cudaGetDriverEntryPointByVersion");
}

static int load_driver(struct rgate_gpu *gpu)
{
	struct rgate_gpu_driver *d = &gpu->driver;
	int err;

	err = entry(gpu, "cuGetErrorString", (void **)&d->error_string);
	if (!err)
		err = entry(gpu, "cuLaunchCooperativeKernel", (void **)&d->launch);
	if (!err)
		err = entry(gpu, "cuFuncSetAttribute", (void **)&d->set_attribute);
	if (!err)
		err = entry(gpu, "cuOccupancyMaxActiveBlocksPerMultiprocessor",
			    (void **)&d->occupancy);
	return err;
}

static int check_device(struct rgate_gpu *gpu)
{
	int v = 0, err;

	err = rgate_gpu_cuda(gpu, cudaGetDeviceProperties(&gpu->prop, gpu->device),
			     "cudaGetDeviceProperties");
	if (err)
		return err;
	if (gpu->prop.major < 8)
		return rgate_gpu_fail(gpu, -EOPNOTSUPP, "%s is of compute capability %d.%d: 8.0 is needed",
				      gpu->prop.name, gpu->prop.major, gpu->prop.minor);
	if (!gpu->prop.canMapHostMemory || !gpu->prop.cooperativeLaunch)
		return rgate_gpu_fail(gpu, -EOPNOTSUPP,
				      "%s cannot map memory of the host, or has no cooperative launch",
				      gpu->prop.name);
	cudaDeviceGetAttribute(&v, cudaDevAttrHostRegisterReadOnlySupported, gpu->device);
	gpu->readonly = v;
	return 0;
}

static int host_words(struct rgate_gpu *gpu, void **p, size_t len)
{
	int err = rgate_gpu_cuda(gpu, cudaHostAlloc(p, len, cudaHostAllocMapped |
						    cudaHostAllocPortable), "cudaHostAlloc");

	if (!err)
		memset(*p, 0, len);
	return err;
}

static int device_words(struct rgate_gpu *gpu, void **p, size_t len)
{
	int err = rgate_gpu_cuda(gpu, cudaMalloc(p, len), "cudaMalloc");

	return err ? err : rgate_gpu_cuda(gpu, cudaMemset(*p, 0, len), "cudaMemset");
}

static int alloc_words(struct rgate_gpu *gpu)
{
	const size_t n = RGATE_GPU_RINGS_MAX;
	int err;

	err = host_words(gpu, (void **)&gpu->ctl, sizeof(*gpu->ctl));
	if (!err)
		err = host_words(gpu, (void **)&gpu->report, sizeof(*gpu->report));
	if (!err)
		err = host_words(gpu, (void **)&gpu->stat, n * sizeof(*gpu->stat));
	if (!err)
		err = host_words(gpu, (void **)&gpu->until, n * sizeof(*gpu->until));
	if (!err)
		err = device_words(gpu, (void **)&gpu->dstate, n * sizeof(*gpu->dstate));
	if (!err)
		err = device_words(gpu, (void **)&gpu->dshare, sizeof(*gpu->dshare));
	if (!err)
		err = device_words(gpu, (void **)&gpu->dqueue, sizeof(*gpu->dqueue));
	if (!err)
		err = device_words(gpu, (void **)&gpu->dout, sizeof(*gpu->dout));
	if (!err)
		err = host_words(gpu, (void **)&gpu->nothing, sizeof(*gpu->nothing));
	if (!err)
		err = host_words(gpu, (void **)&gpu->own, sizeof(*gpu->own));
	if (!err)
		err = device_words(gpu, (void **)&gpu->dnothing,
				   RGATE_SLOTS_MIN / RGATE_BATCH * sizeof(*gpu->dnothing));
	return err;
}

static void free_words(struct rgate_gpu *gpu)
{
	cudaFree(gpu->dnothing);
	cudaFreeHost(gpu->own);
	cudaFreeHost(gpu->nothing);
	cudaFree(gpu->dout);
	cudaFree(gpu->dcells);
	cudaFree(gpu->dqueue);
	cudaFree(gpu->dshare);
	cudaFree(gpu->dstate);
	cudaFreeHost(gpu->until);
	cudaFreeHost(gpu->stat);
	cudaFreeHost(gpu->report);
	cudaFreeHost(gpu->ctl);
}

/* The parts of the context that stay; unified addressing gives both sides one address */
static void set_context(struct rgate_gpu *gpu)
{
	gpu->ctx.state = gpu->dstate;
	gpu->ctx.stat = gpu->stat;
	gpu->ctx.queue = gpu->dqueue;
	gpu->ctx.share = gpu->dshare;
	gpu->ctx.ctl = gpu->ctl;
	gpu->ctx.report = gpu->report;
	gpu->nothing->prod.state = RGATE_STATE_CLOSED;
}

static int set_up(struct rgate_gpu *gpu)
{
	int err;

	err = check_device(gpu);
	if (!err)
		err = load_driver(gpu);
	if (!err)
		err = rgate_gpu_cuda(gpu, cudaStreamCreateWithFlags(&gpu->stream,
								    cudaStreamNonBlocking),
				     "cudaStreamCreateWithFlags");
	if (err)
		return err;
	err = alloc_words(gpu);
	if (!err) {
		set_context(gpu);
		err = rgate_gpu_watch_start(gpu);
	}
	if (err) {
		free_words(gpu);
		cudaStreamDestroy(gpu->stream);
	}
	return err;
}

/*
 * The kernel has not returned: all that it may read or write stays as long as the process
 * lives, this structure with it, of which CUDA has the address.
 */
static void abandon(struct rgate_gpu *gpu)
{
	unsigned int i;

	for (i = 0; i < gpu->nrings; i++)
		rgate_gpu_areas_abandon(&gpu->ring[i].areas);
	rgate_gpu_areas_abandon(&gpu->out_areas);
	rgate_gpu_asks_abandon(gpu);
}

static int open_device(struct rgate_gpu *gpu)
{
	int err, n = 0, was;

	/* 0 for want of one: CUDA's own words would be that it is too old */
	if (!cudaDriverGetVersion(&n) && !n)
		return rgate_gpu_fail(gpu, -ENODEV, "no NVIDIA driver (libcuda.so.1)");
	err = rgate_gpu_cuda(gpu, cudaGetDeviceCount(&n), "cudaGetDeviceCount");
	if (err)
		return err;
	if (gpu->device >= n)
		return rgate_gpu_fail(gpu, -ENODEV, "no CUDA device %d, there are %d", gpu->device,
				      n);
	err = rgate_gpu_enter(gpu, &was);
	if (err)
		return err;
	err = set_up(gpu);
	rgate_gpu_leave(was);
	return err;
}

int rgate_gpu_open(struct rgate_gpu **out, const struct rgate_gpu_opts *opts)
{
	struct rgate_gpu_opts o;
	struct rgate_gpu *gpu;
	int err;

	open_error[0] = 0;
	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (!err && (o.device > INT32_MAX || o.tick_us > 1000000 || o.stall_ms > 3600000 ||
		     o.close_ms > 3600000))
		err = -EINVAL;
	if (err) {
		snprintf(open_error, sizeof(open_error), "bad options");
		return err;
	}
	gpu = calloc(1, sizeof(*gpu));
	if (!gpu)
		return -ENOMEM;
	pthread_mutex_init(&gpu->lock, NULL);
	gpu->device = (int)o.device;
	gpu->tick_ns = (o.tick_us ? o.tick_us : TICK_US) * 1000ULL;
	gpu->stall_ns = (o.stall_ms ? o.stall_ms : STALL_MS) * 1000000ULL;
	gpu->close_ms = o.close_ms ? (int)o.close_ms : CLOSE_MS;
	gpu->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = gpu->event_fd < 0 ? rgate_gpu_fail(gpu, -errno, "no descriptor") :
				  open_device(gpu);
	if (err) {
		rgate_gpu_keep_error(gpu);
		if (gpu->event_fd >= 0)
			close(gpu->event_fd);
		pthread_mutex_destroy(&gpu->lock);
		free(gpu);
		return err;
	}
	*out = gpu;
	return 0;
}

void rgate_gpu_close(struct rgate_gpu *gpu)
{
	bool hangs;
	int was = 0;

	if (!gpu)
		return;
	hangs = rgate_gpu_stop(gpu, gpu->close_ms) == -ETIMEDOUT;
	/* from here on nobody looks at the rings, which the caller may close */
	rgate_gpu_watch_stop(gpu);
	close(gpu->event_fd);
	if (hangs) {
		abandon(gpu);
		return;
	}
	rgate_gpu_enter(gpu, &was);
	rgate_gpu_asks_close(gpu);
	rgate_gpu_output_close(gpu);
	rgate_gpu_unbind_all(gpu);
	free_words(gpu);
	cudaStreamDestroy(gpu->stream);
	rgate_gpu_leave(was);
	pthread_cond_destroy(&gpu->wake);
	pthread_mutex_destroy(&gpu->lock);
	free(gpu);
}

const char *rgate_gpu_error(const struct rgate_gpu *gpu)
{
	return gpu ? gpu->error : open_error;
}

void *rgate_gpu_stream(struct rgate_gpu *gpu)
{
	return gpu->stream;
}

int rgate_gpu_query(struct rgate_gpu *gpu, struct rgate_gpu_status *status)
{
	struct rgate_gpu_status st = { .sz = sizeof(st) };
	unsigned int i;

	pthread_mutex_lock(&gpu->lock);
	rgate_gpu_settle(gpu);
	st.state = gpu->state;
	for (i = 0; i < gpu->nrings; i++)
		st.rings += gpu->ring[i].bound != RGATE_GPU_UNBOUND;
	st.launches = gpu->launches;
	st.beat_age_ns = rgate_gpu_busy(gpu) ?
			 rgate_clock_now(CLOCK_MONOTONIC) - gpu->beat_ns : 0;
	st.blocks = gpu->blocks;
	st.pollers = gpu->ctx.npollers;
	if (gpu->out_ring) {
		const struct rgate_stats *s = &gpu->out_view.prod->stats;

		st.replies = __atomic_load_n(&s->delivered, __ATOMIC_RELAXED);
		st.reply_bytes = __atomic_load_n(&s->bytes, __ATOMIC_RELAXED);
		st.replies_dropped = __atomic_load_n(&s->dropped_full, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&gpu->lock);
	return rgate_info_copy(status, &st, sizeof(st));
}

static uint64_t word(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

int rgate_gpu_ring_stats(struct rgate_gpu *gpu, unsigned int index,
			 struct rgate_gpu_stats *stats)
{
	struct rgate_gpu_stats st = { .sz = sizeof(st) };
	const struct rgate_dstat *s;

	if (index >= gpu->nrings)
		return -EINVAL;
	s = &gpu->stat[index];
	st.finished = __atomic_load_n(&s->done, __ATOMIC_ACQUIRE);
	st.packets = word(&s->packets);
	st.bytes = word(&s->bytes);
	st.taken = word(&s->next);
	st.looks = word(&s->looks);
	st.empty = word(&s->empty);
	st.direct = word(&s->direct);
	st.work_ns = word(&s->work_ns);
	st.ended = (uint32_t)word(&s->ended);
	return rgate_info_copy(stats, &st, sizeof(st));
}
