/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * libringgate-gpu: a GPU as the consumer of rings. The host's side, in C; the device's
 * side is in ringgate/gpu/, headers for nvcc. Documentation/gpu.rst is the guide.
 *
 *	rgate_gpu_open(&gpu, NULL);
 *	rgate_gpu_bind(gpu, ring, NULL);
 *	rgate_gpu_start(gpu, &my_kernel, NULL);		(RGATE_GPU_LANES(my_kernel, ...))
 *	...						(the GPU takes packets)
 *	rgate_gpu_stop(gpu, 1000);
 *	rgate_gpu_close(gpu);
 *
 * A runtime is one CUDA device, the rings bound to it, and one kernel at a time that
 * polls them. There is no CUDA call, nor any other, on a packet's way. A thread of the
 * runtime looks after the kernel: it notices when it has failed, launches it again where
 * its time is limited, follows resized rings, and wakes who sleeps on an output ring.
 *
 * Functions return 0 or a count, or -errno; rgate_gpu_error() then has the details. -EIO
 * is an error of CUDA's. Calls on one runtime may come from several threads, except
 * rgate_gpu_close(). A process that has used CUDA must not be forked for more of it.
 */
#ifndef RINGGATE_RGATE_GPU_H
#define RINGGATE_RGATE_GPU_H

#include <ringgate/rgate_ring.h>
#include <ringgate/rgate_session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_gpu;

enum rgate_gpu_kind {
	RGATE_GPU_KIND_PERSISTENT = 1,	/* rgate_gpu_start() */
	RGATE_GPU_KIND_ORDERED = 2,	/* rgate_gpu_start(), packets of a flow in order */
	RGATE_GPU_KIND_BATCH = 3,	/* rgate_gpu_launch() */
};

/* A kernel, as the macros of ringgate/gpu/kernel.cuh define it. Fields are private. */
struct rgate_gpu_kernel {
	size_t sz;
	int (*function)(void **function);	/* of the CUDA runtime it was linked with */
	const char *name;
	uint32_t kind;
	uint32_t warp_bytes;
	uint32_t near_len;
	uint32_t reply;
	uint32_t run;
	uint32_t context_bytes;
	uint32_t warps;		/* of a block, at most */
};

struct rgate_gpu_opts {
	size_t sz;
	uint32_t device;	/* CUDA's number */
	uint32_t tick_us;	/* of the runtime's thread; 0: 1000 */
	uint32_t stall_ms;	/* without a sign of life: stalled; 0: 2000 */
	uint32_t close_ms;	/* rgate_gpu_close() waits for a kernel so long; 0: 10000 */
};

/*
 * rgate_gpu_open - a runtime on a CUDA device
 * @opts: NULL: device 0
 * -ENODEV: no driver or no such device; -EOPNOTSUPP: the device is older than sm_80, or
 * cannot map memory of the host; -EINVAL; -ENOMEM; -EIO.
 */
RGATE_API int rgate_gpu_open(struct rgate_gpu **gpu, const struct rgate_gpu_opts *opts);

/* rgate_gpu_close - stops, unbinds and frees; NULL is allowed. Rings stay open; the output
 * ring gets the state RGATE_STATE_CLOSED. A kernel that does not return within close_ms keeps
 * its memory as long as the process lives, that of the rings too: these may be closed, but
 * not be bound again (-EBUSY), and the output ring stays as it is. */
RGATE_API void rgate_gpu_close(struct rgate_gpu *gpu);

/* rgate_gpu_error - what went wrong last, in words: valid until the next call that fails.
 * With NULL: of the last rgate_gpu_open() of this thread that failed. */
RGATE_API const char *rgate_gpu_error(const struct rgate_gpu *gpu);

/*
 * rgate_gpu_bind - the GPU becomes a consumer of the ring
 * @ring: stays the caller's and open until rgate_gpu_close(); filled by whatever source
 * @index: out, the ring's number in this runtime; NULL: not wanted
 * Begins at the oldest batch not returned, as rgate_consumer_init() does. There must be
 * no other consumer from here on. Not while a kernel runs (-EBUSY).
 * -EOPNOTSUPP: the ring overwrites (RGATE_POLICY_OVERWRITE), or is read-only here and the
 * device cannot register such memory; -EBUSY: also if a kernel that never returned has the
 * memory, see rgate_gpu_close(); -ENOSPC: RGATE_GPU_RINGS_MAX are bound; -ENOMEM; -EIO.
 */
RGATE_API int rgate_gpu_bind(struct rgate_gpu *gpu, struct rgate_ring *ring,
			     unsigned int *index);

/*
 * rgate_gpu_unbind - the GPU is no longer a consumer of the ring
 * @index: the ring's number, which another ring may get from here on
 * What was not returned of the ring another consumer sees again. Not while a kernel runs
 * (-EBUSY). -EINVAL: no such ring; -EIO.
 */
RGATE_API int rgate_gpu_unbind(struct rgate_gpu *gpu, unsigned int index);

/*
 * A ring was unbound by the runtime, as its producer is not to be relied on: while a kernel
 * runs, or by a start or launch. The others go on. The handle stays the caller's.
 */
struct rgate_gpu_event {
	size_t sz;		/* in: sizeof(struct rgate_gpu_event) */
	uint32_t ring;		/* its number; given to another ring only after this call */
	int32_t error;		/* -EPROTO: it told of what cannot be, or handed over what is no
				 * memory of a ring; -EPIPE: it ended while it resized the ring;
				 * -ETIMEDOUT: resized, and the new memory did not come within
				 * stall_ms; or why that could not be bound */
};

/*
 * rgate_gpu_event - what has happened to a ring
 * @event: out, if there is one
 * 1: there was; 0: none.
 */
RGATE_API int rgate_gpu_event(struct rgate_gpu *gpu, struct rgate_gpu_event *event);

/* rgate_gpu_event_fd - descriptor for poll(2): readable while there are events. The runtime's,
 * until rgate_gpu_close() */
RGATE_API int rgate_gpu_event_fd(const struct rgate_gpu *gpu);

enum rgate_gpu_full {
	RGATE_GPU_FULL_DROP = 0,	/* drop the answer, count it */
	RGATE_GPU_FULL_WAIT = 1,	/* wait for room */
};

/*
 * rgate_gpu_bind_output - the GPU becomes the producer of a memfd ring of this process, or
 * the sender of a transmit ring
 * @ring: open until rgate_gpu_close()
 * @full: enum rgate_gpu_full
 * What a kernel's function answers goes there. Take it out of a memfd ring with
 * rgate_consumer_*(); poll rather than sleep: the GPU can wake nobody, the runtime's thread
 * does so once a tick. What is in a transmit ring (RGATE_RING_TRANSMIT with
 * RGATE_RING_RW_SLOTS, see rgate_sender.h) the module sends through the device that the ring is
 * attached to, whole frames: at once where the attachment has a thread that looks for them,
 * and else when the runtime's thread asks it to, once a tick. Of the flags that an answer
 * has from its packet a tag (RGATE_SLOT_VLAN) is left; a function may set those of
 * RGATE_SLOT_TX_FLAGS in rgate_dreply_header(). The ring has no other sender meanwhile. What
 * the module has not taken when the runtime is closed, as the device is down, is
 * sent before what the next sender publishes.
 * -EBUSY: the ring has a producer, or a kernel runs; -EEXIST: there is an output ring;
 * -EOPNOTSUPP: neither of the two, or one with RGATE_POLICY_OVERWRITE.
 */
RGATE_API int rgate_gpu_bind_output(struct rgate_gpu *gpu, struct rgate_ring *ring,
				    uint32_t full);

struct rgate_gpu_start_opts {
	size_t sz;
	void *arg;		/* for the kernel's function: an address of the device */
	void *results;		/* output array, an address of the device; NULL: none */
	uint64_t results_len;	/* elements, a power of two; packet N goes to N modulo it */
	uint32_t result_size;	/* bytes of an element */
	uint32_t blocks;	/* of 8 warps; 0: chosen by the number of rings */
	uint32_t pollers;	/* warps that look at rings; 0: one a ring */
	uint32_t direct;	/* runs up to this many slots the looking warp does itself;
				 * 0: chosen (none if answers wait for room);
				 * RGATE_GPU_NO_DIRECT: none */
	uint32_t grain;		/* slots of one warp's piece of work, power of two;
				 * 0: chosen */
	uint32_t pause_ns;	/* between looks in vain; 0: 100 */
	uint32_t limit_ms;	/* time limit of one launch, after which it returns and is
				 * launched again; 0: none */
	uint32_t reserved;
};

#define RGATE_GPU_NO_DIRECT	(~0U)

/*
 * rgate_gpu_start - launches the kernel that consumes the bound rings
 * Goes on where the last one stopped: nothing is lost or seen twice.
 * -EBUSY: one runs; -EINVAL: options, no ring bound, or a kernel of another kind or
 * version; -ENODATA: its function answers and there is no output ring; -E2BIG: does not
 * fit on the device at once; -EIO.
 */
RGATE_API int rgate_gpu_start(struct rgate_gpu *gpu, const struct rgate_gpu_kernel *kernel,
			      const struct rgate_gpu_start_opts *opts);

/*
 * rgate_gpu_stop - takes no more, finishes what is in hand, and returns
 * @timeout_ms: -1: no limit
 * Packets not taken stay in the rings, also those of a batch begun. No kernel: 0.
 * -ETIMEDOUT: it still runs, for instance in the user's function; call again. -EIO: the
 * kernel has failed.
 */
RGATE_API int rgate_gpu_stop(struct rgate_gpu *gpu, int timeout_ms);

/*
 * rgate_gpu_drain - waits until all is finished that was published before the call
 * What the kernel's function wrote to memory is visible then. -ETIMEDOUT; -EPIPE: no
 * kernel runs and something is left; -EIO.
 */
RGATE_API int rgate_gpu_drain(struct rgate_gpu *gpu, int timeout_ms);

/*
 * rgate_gpu_launch - one launch over what is there now, instead of a kernel that stays
 * Returns how many slots it has been given, 0: none were there, and nothing was launched.
 * Asynchronous; rgate_gpu_wait() waits for it. Errors as rgate_gpu_start().
 */
RGATE_API long rgate_gpu_launch(struct rgate_gpu *gpu, const struct rgate_gpu_kernel *kernel,
				const struct rgate_gpu_start_opts *opts);

/* rgate_gpu_wait - until the kernel has returned by itself; -ETIMEDOUT, -EIO */
RGATE_API int rgate_gpu_wait(struct rgate_gpu *gpu, int timeout_ms);

enum rgate_gpu_state {
	RGATE_GPU_IDLE = 0,	/* no kernel */
	RGATE_GPU_RUNNING = 1,
	RGATE_GPU_STALLED = 2,	/* no sign of life for stall_ms, of some warp at least */
	RGATE_GPU_ENDED = 3,	/* returned: all rings have lost their producers, all is drained */
	RGATE_GPU_FAILED = 4,	/* CUDA says why: rgate_gpu_error() */
};

struct rgate_gpu_status {
	size_t sz;		/* in: sizeof(struct rgate_gpu_status) */
	uint32_t state;		/* enum rgate_gpu_state */
	uint32_t rings;		/* bound */
	uint64_t launches;	/* so far, with those of a time limit */
	uint64_t beat_age_ns;	/* since the last sign of life of who has given none for longest */
	uint32_t blocks;	/* of the kernel that runs or ran */
	uint32_t pollers;
	uint64_t replies;	/* frames in the output ring; up to date within 64 looks */
	uint64_t reply_bytes;
	uint64_t replies_dropped;
};

RGATE_API int rgate_gpu_query(struct rgate_gpu *gpu, struct rgate_gpu_status *status);

/* Counters of a ring, kept by the device; up to date within 64 looks at the ring */
struct rgate_gpu_stats {
	size_t sz;		/* in: sizeof(struct rgate_gpu_stats) */
	uint64_t packets;
	uint64_t bytes;
	uint64_t taken;		/* slots before this position were taken in hand */
	uint64_t finished;	/* ... and before this one are done with */
	uint64_t looks;		/* times the ring was looked at */
	uint64_t empty;		/* ... in vain */
	uint64_t direct;	/* slots done by the warps that look */
	uint64_t work_ns;	/* time of all warps with packets, reading included */
	uint32_t ended;		/* its producer is gone, all is drained */
	uint32_t reserved;
};

RGATE_API int rgate_gpu_ring_stats(struct rgate_gpu *gpu, unsigned int index,
				   struct rgate_gpu_stats *stats);

/*
 * For kernels that go their own way (ringgate/gpu/ring.cuh): where a bound ring lies for
 * the device, and where to begin
 * @dring: struct rgate_dring, @len its size
 * -EINVAL: no such ring, or another version's structure; -ESTALE: it was resized, and its new
 * memory is not there, or was unbound
 */
RGATE_API int rgate_gpu_ring_view(struct rgate_gpu *gpu, unsigned int index, void *dring,
				  size_t len, uint64_t *start);

/* At most so many sessions are bound to a runtime */
#define RGATE_GPU_SESSIONS_MAX	16U

struct rgate_gpu_session_opts {
	size_t sz;
	uint32_t tickets;	/* requests under way at once; 0: 4096; rounded up to a power of
				 * two, at most RGATE_GPU_TICKETS_MAX */
	uint32_t idle_us;	/* an engine that sleeps is woken after so long, at most, when
				 * nothing has been asked for a while; 0: 1000 */
	uint32_t spin_us;	/* after it was, or has answered and fell asleep, the next time
				 * comes without a pause for so long, 10000 at most; 0: 100;
				 * RGATE_SPIN_NONE: none */
	uint32_t reserved;
};

#define RGATE_GPU_TICKETS_MAX	65536U

/*
 * rgate_gpu_bind_session - the GPU asks in this session's name (ringgate/gpu/ask.cuh)
 * @loan: of rgate_session_lend(); the session stays open until it is unbound
 * @opts: NULL: 4096 requests under way
 * @index: out, the session's number in this runtime
 * Its memory is registered with CUDA, and a thread begins that wakes the engine when it sleeps,
 * which a GPU cannot; it has no part in requests and completions.
 * -EINVAL; -ENOSPC: RGATE_GPU_SESSIONS_MAX are bound; -EBUSY: a kernel of rgate_gpu_start()
 * runs, or one that never returned has the memory; -EMFILE; -ENOMEM; -EIO.
 */
RGATE_API int rgate_gpu_bind_session(struct rgate_gpu *gpu,
				     const struct rgate_session_loan *loan,
				     const struct rgate_gpu_session_opts *opts,
				     unsigned int *index);

/*
 * rgate_gpu_unbind_session - nobody asks in its name any more
 * No kernel may be using it: frees memory of the device, which waits for kernels that run. What
 * is under way is cancelled when the session is closed. -EBUSY: a kernel of rgate_gpu_start()
 * runs; -EINVAL: no such session.
 */
RGATE_API int rgate_gpu_unbind_session(struct rgate_gpu *gpu, unsigned int index);

/*
 * rgate_gpu_session_view - what the device needs to ask: an argument for kernels
 * @dask: struct rgate_dask, @len its size
 * -EINVAL: no such session, or another version's structure
 */
RGATE_API int rgate_gpu_session_view(struct rgate_gpu *gpu, unsigned int index, void *dask,
				     size_t len);

struct rgate_gpu_session_stats {
	size_t sz;		/* in: sizeof(struct rgate_gpu_session_stats) */
	uint64_t submitted;	/* requests, also the CPU's before; up to date within idle_us */
	uint64_t failed;	/* with RGATE_REQ_NO_COMPLETION, and failed */
	uint64_t strays;	/* completions that no ticket was waiting for */
	uint64_t kicks;		/* times that the engine was woken */
	uint64_t looks;		/* times that the thread looked whether to */
	uint32_t over;		/* the session is */
	uint32_t reserved;
};

/* rgate_gpu_session_stats - counters of a session; -EINVAL */
RGATE_API int rgate_gpu_session_stats(struct rgate_gpu *gpu, unsigned int index,
				      struct rgate_gpu_session_stats *stats);

/*
 * rgate_gpu_bench - frames a second that this GPU takes out of rings of this machine
 * @bench: in: the first block, all of it; out: the second
 * One thread a ring fills it, a kernel reads every byte. Takes time_ms and about a second.
 * rgate_gpu_error(NULL) has the details of an error.
 */
struct rgate_gpu_bench {
	size_t sz;
	uint32_t device;
	uint32_t rings;		/* 1 to RGATE_GPU_RINGS_MAX */
	uint32_t slots;
	uint32_t slot_size;
	uint32_t size;		/* bytes of a frame */
	uint32_t time_ms;

	double packets_per_s;
	double copy_bytes_per_s; /* host to device by the copy engine: the roof */
	char device_name[64];
};

RGATE_API int rgate_gpu_bench(struct rgate_gpu_bench *bench);

/* The CUDA stream (cudaStream_t) that the runtime launches on */
RGATE_API void *rgate_gpu_stream(struct rgate_gpu *gpu);

#ifdef __cplusplus
}
#endif
#endif
