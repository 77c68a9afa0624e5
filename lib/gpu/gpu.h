/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The runtime's inside, common to the files of this directory. */
#ifndef RGATE_LIB_GPU_H
#define RGATE_LIB_GPU_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>

#include <ringgate/gpu/context.cuh>
#include <ringgate/rgate_consumer.h>
#include <ringgate/rgate_gpu.h>
#include <ringgate/rgate_producer.h>
#include <ringgate/rgate_sender.h>

#define RGATE_GPU_TEXT	256

/* The driver's functions that the runtime interface has no equal for */
struct rgate_gpu_driver {
	PFN_cuLaunchCooperativeKernel_v9000 launch;
	PFN_cuFuncSetAttribute_v9000 set_attribute;
	PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050 occupancy;
	PFN_cuGetErrorString_v6000 error_string;
};

/* A ring's three areas, as they are registered */
struct rgate_gpu_areas {
	void *addr[3];
	unsigned int n;
};

struct rgate_gpu_ask;

/* What a ring's number stands for */
enum rgate_gpu_bound {
	RGATE_GPU_BOUND = 0,
	RGATE_GPU_AWAITED,	/* resized; the new memory is on its way */
	RGATE_GPU_UNBOUND,
};

struct rgate_gpu_ring {
	struct rgate_ring *ring;
	enum rgate_gpu_bound bound;
	bool arrived;			/* awaited no longer: mapped, and not registered yet */
	uint64_t since;			/* it is awaited; ns */
	uint64_t taken;			/* times that memory was taken from the device */
	bool event;			/* not told yet: unbound */
	int why;			/* -errno of that */
	struct rgate_view view;
	struct rgate_gpu_areas areas;
	struct rgate_dring host;	/* with addresses of the host */
	uint32_t *finished;		/* device memory */
	uint64_t start;
	/* what the device told last of it, and when that was another */
	uint64_t looks, looks_ns;
	uint64_t done, done_ns;
};

/*
 * A ring that is over and empty: what the device sees in the place of memory that it has no
 * longer. Nothing in it is ever published, at no position.
 */
struct rgate_gpu_nothing {
	struct rgate_prod prod;
	uint64_t credits[8];
	unsigned char slots[RGATE_SLOTS_MIN * RGATE_SLOT_SIZE_MIN];
};

struct rgate_gpu {
	pthread_mutex_t lock;		/* all below */
	pthread_cond_t wake;		/* of the thread */
	pthread_t thread;
	bool quit;			/* the thread is to end */
	bool kick;			/* the thread is to look now; atomic */
	unsigned int waiters;		/* for whom it looks often */
	uint32_t state;			/* enum rgate_gpu_state */
	bool stopping;
	char error[RGATE_GPU_TEXT];
	int event_fd;

	int device;
	struct cudaDeviceProp prop;
	bool readonly;			/* can register read-only memory */
	struct rgate_gpu_driver driver;
	cudaStream_t stream;
	uint64_t tick_ns;
	uint64_t stall_ns;
	int close_ms;

	struct rgate_gpu_ring ring[RGATE_GPU_RINGS_MAX];
	unsigned int nrings;
	struct rgate_gpu_ask *ask[RGATE_GPU_SESSIONS_MAX];	/* NULL: none */

	/* the present kernel */
	const struct rgate_gpu_kernel *kernel;
	CUfunction function;
	struct rgate_dctx ctx;
	uint32_t blocks;
	uint32_t warps;			/* of a block */
	uint64_t launches;
	uint64_t noted;			/* of them, whose return the thread has seen to */
	uint64_t beat_ns;		/* the last sign of life of who gave none for longest */

	/* host memory that the device reaches */
	struct rgate_dctl *ctl;
	struct rgate_dreport *report;
	struct rgate_dstat *stat;
	uint64_t *until;
	struct rgate_gpu_nothing *nothing;

	/* device memory */
	struct rgate_dstate *dstate;
	struct rgate_dshare *dshare;
	struct rgate_dqueue *dqueue;
	struct rgate_dpair *dcells;
	uint64_t ncells;
	struct rgate_doutstate *dout;
	uint32_t *dnothing;		/* slots finished of its batches */

	struct rgate_ring *out_ring;
	struct rgate_view out_view;
	struct rgate_gpu_areas out_areas;
	struct rgate_dout out;
	struct rgate_producer producer;
	/* In the place of a producer where out_ring is the module's, which sends what is in it */
	bool transmits;
	struct rgate_sender sender;
	const struct rgate_prod *module;	/* its producer area: what it has taken */
	struct rgate_prod *own;		/* in that one's place: what was published, and counters */
};

/* Notes @fmt as the error, returns @err */
int rgate_gpu_fail(struct rgate_gpu *gpu, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The error becomes that of rgate_gpu_error(NULL) */
void rgate_gpu_keep_error(const struct rgate_gpu *gpu);
/* What CUDA said to @what, as -errno; 0 for success */
int rgate_gpu_cuda(struct rgate_gpu *gpu, cudaError_t err, const char *what);
int rgate_gpu_cu(struct rgate_gpu *gpu, CUresult err, const char *what);

/*
 * Around what a caller's thread does with CUDA: the current device is the runtime's, then
 * the caller's, @was, again.
 */
int rgate_gpu_enter(struct rgate_gpu *gpu, int *was);
void rgate_gpu_leave(int was);

/*
 * host.c: memory of the host for devices; the same range may be asked for again, by other
 * runtimes. @readonly: it is mapped so.
 */
int rgate_gpu_host_map(struct rgate_gpu *gpu, void *addr, size_t len, bool readonly,
		       void **device);
void rgate_gpu_host_unmap(void *addr);
/* A kernel that does not return has it: it stays registered, and nobody gets it any more. */
void rgate_gpu_host_abandon(void *addr);

/* bind.c: a ring's areas registered; the device's address of its first byte is returned
 * in @device, areas keep their distance from it. */
int rgate_gpu_areas_map(struct rgate_gpu *gpu, struct rgate_ring *ring,
			const struct rgate_view *view, struct rgate_gpu_areas *areas,
			struct rgate_dring *dring);
void rgate_gpu_areas_unmap(struct rgate_gpu_areas *areas);
void rgate_gpu_areas_abandon(const struct rgate_gpu_areas *areas);
void rgate_gpu_unbind_all(struct rgate_gpu *gpu);
/* Memory and state of ring @i, whose handle is there; and the other way */
int rgate_gpu_set_up(struct rgate_gpu *gpu, unsigned int i);
int rgate_gpu_take_away(struct rgate_gpu *gpu, unsigned int i);
/* Position behind the last whole frame published; head is not asked. @from: not handed out */
uint64_t rgate_gpu_published(const struct rgate_gpu_ring *r, uint64_t from);

/*
 * follow.c, with the lock held. No kernel runs: rings that were resized, and are drained, are
 * taken away, new memory that has come is bound, rings that are bad are unbound. How many rings
 * have memory again; -errno: of CUDA, and of no ring
 */
int rgate_gpu_follow(struct rgate_gpu *gpu);
/* A kernel may run: looks whether new memory has come. Is there a reason to stop it? */
bool rgate_gpu_follow_wanted(struct rgate_gpu *gpu);
bool rgate_gpu_awaits(const struct rgate_gpu *gpu);

/* output.c */
/* May an answer be waiting for room? */
bool rgate_gpu_output_full(const struct rgate_gpu *gpu);
void rgate_gpu_output_wake(struct rgate_gpu *gpu);
void rgate_gpu_output_close(struct rgate_gpu *gpu);

/* ask.c */
/* No more kernels: sessions are unbound */
void rgate_gpu_asks_close(struct rgate_gpu *gpu);
/* A kernel that does not return has their memory; it is told that they are over. */
void rgate_gpu_asks_abandon(struct rgate_gpu *gpu);

/* launch.c: with the lock held */
int rgate_gpu_relaunch(struct rgate_gpu *gpu);

/* watch.c */
int rgate_gpu_watch_start(struct rgate_gpu *gpu);
void rgate_gpu_watch_stop(struct rgate_gpu *gpu);
/* With the lock held: a launch begins, all warps are taken for alive */
void rgate_gpu_signs_begin(struct rgate_gpu *gpu);
/*
 * With the lock held, which is let go meanwhile: lets the thread look at the kernel once
 * more, or some. false: it is @end already
 */
bool rgate_gpu_pass(struct rgate_gpu *gpu, uint64_t end);
/* With the lock held: a kernel that has returned is seen to by the thread, before this does */
void rgate_gpu_settle(struct rgate_gpu *gpu);

/* No kernel is on the device */
static inline bool rgate_gpu_returned(const struct rgate_gpu *gpu)
{
	return __atomic_load_n(&gpu->report->exited, __ATOMIC_ACQUIRE) == gpu->launches;
}

static inline bool rgate_gpu_busy(const struct rgate_gpu *gpu)
{
	return gpu->state == RGATE_GPU_RUNNING || gpu->state == RGATE_GPU_STALLED;
}

#endif
