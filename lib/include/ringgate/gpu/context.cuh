/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the runtime of the host (lib/gpu) and its kernels share. Each word of the host's
 * memory has one writer: the host those of rgate_dctl, the device the others.
 */
#ifndef RINGGATE_GPU_CONTEXT_CUH
#define RINGGATE_GPU_CONTEXT_CUH

#include <ringgate/gpu/pair.cuh>
#include <ringgate/gpu/ring.cuh>

#define RGATE_GPU_RINGS_MAX	64U	/* bound to one runtime; they travel by value */
#define RGATE_DPOLL_RINGS	8U	/* rings a polling warp has at most */

/* Host memory, written by the host */
struct rgate_dctl {
	uint64_t stop;		/* not 0: hand out no more, then return */
	uint64_t gone;		/* bits of rings of which the producer's process has ended */
	uint64_t drop;		/* not 0: answers do not wait for room any longer */
	uint64_t reserved[13];
};

/* Why a launch returned */
enum rgate_dexit {
	RGATE_DEXIT_STOP = 1,	/* asked to */
	RGATE_DEXIT_TIME = 2,	/* its time was up */
	RGATE_DEXIT_RINGS = 3,	/* all rings have ended and are drained */
};

/* Host memory, written by the device */
struct rgate_dreport {
	uint64_t reserved0;
	uint64_t exited;	/* launches that have returned; release */
	uint64_t why;		/* enum rgate_dexit; before exited */
	uint64_t reserved[13];
};

/* Host memory, one a ring, written by the warp that polls the ring */
struct rgate_dstat {
	uint64_t next;		/* slots before this position were handed out */
	uint64_t done;		/* ... and before this one are finished; release */
	uint64_t packets;
	uint64_t bytes;
	uint64_t looks;		/* times the ring was looked at */
	uint64_t empty;		/* ... in vain */
	uint64_t direct;	/* slots that the polling warp took itself */
	uint64_t work_ns;	/* time spent with packets, of all warps */
	uint64_t ended;		/* the ring gets no more; stored last */
	uint64_t reserved[7];
};

/* Device memory, one a ring; kept from launch to launch */
struct rgate_dstate {
	/* between launches; the polling warp works on a copy */
	uint64_t next;
	uint64_t done;
	uint64_t check_end;	/* before: batches may have been returned by others */
	uint64_t looks;
	uint64_t empty;
	uint64_t direct;
	uint64_t reserved[10];
	/* all warps', by atomics */
	uint64_t packets;
	uint64_t bytes;
	uint64_t work_ns;
	uint32_t *finished;	/* slots, of each batch, since it was first used */
	uint64_t reserved2[12];
};

/* That copy, in shared memory */
struct rgate_dpoll {
	uint64_t next;
	uint64_t done;
	uint64_t check_end;
	uint64_t looks;
	uint64_t empty;
	uint64_t direct;
	uint64_t over;		/* batches before this number have the lap before behind them */
	uint64_t idle;		/* looks in vain, in a row */
	uint32_t batches;	/* how far to look ahead */
	uint32_t slots;
	uint32_t ended;
	uint32_t ring;
	uint32_t told;		/* messages to who tells, with the last report of this ring */
	uint32_t due;		/* a report is */
};

/*
 * What a cell holds: a run's position, and RGATE_DCELL_WORD(). Turn is the ticket's lower
 * half where the cell is free for it, one more where it is filled.
 */
#define RGATE_DCELL_WORD(turn, ring, count) \
	((uint64_t)(uint32_t)(turn) << 32 | (uint64_t)(ring) << 16 | (count))
#define RGATE_DCELL_TURN(word)	((uint32_t)((word) >> 32))
#define RGATE_DCELL_RING(word)	((uint32_t)(word) >> 16)
#define RGATE_DCELL_COUNT(word)	((uint32_t)(word) & 0xffffU)

/* Device memory. Runs of slots, from polling warps to others, first come first served */
struct rgate_dqueue {
	uint64_t tail;		/* tickets given to polling warps */
	uint64_t pad[15];
	uint64_t head;		/* ... and to those that wait */
	uint64_t pad2[15];
	struct rgate_dpair *cell;
	uint64_t mask;		/* cells - 1 */
};

/* Device memory, one launch's */
struct rgate_dshare {
	uint32_t quit;		/* enum rgate_dexit; pollers are to return */
	uint32_t pollers_out;
	uint32_t warps_out;
	uint32_t ended;		/* rings */
	uint64_t until;		/* when its time is up; 0: never */
	uint64_t launches;	/* that have returned; of all */
};

/* Device memory, one an output ring */
struct rgate_doutstate {
	uint64_t head;		/* given out to warps */
	uint64_t pad2[15];
	uint64_t limit;		/* free up to here */
	uint64_t lock;		/* of the warp that reads credits, or tells the host */
	uint64_t told;		/* of tail, to the host; under lock */
	uint64_t vain;		/* looks at credits that found none; under lock */
	uint64_t pad3[12];
	uint64_t tail;		/* published, in order */
	uint64_t frames;	/* these three: atomic */
	uint64_t bytes;
	uint64_t dropped;
	uint64_t pad4[12];
};

/* What a consumer is told of the flags in an answer's header, and what a transmit ring takes */
#define RGATE_DOUT_FLAGS	(RGATE_SLOT_VLAN | RGATE_SLOT_HASH | RGATE_SLOT_QUEUE)
#define RGATE_DOUT_TX_FLAGS	RGATE_SLOT_VLAN

/*
 * The output ring; slots, credits and producer area are the host's. By value, as what is
 * read from memory would be read again after each acquire.
 */
struct rgate_dout {
	unsigned char *slots;
	const uint64_t *credits;
	struct rgate_prod *prod;	/* head and counters alone; a transmit ring has its own */
	struct rgate_doutstate *state;	/* null: there is no output ring */
	uint32_t *filled;	/* slots shown of each batch, since it was first used; atomic */
	uint64_t mask;
	uint32_t lap_shift;
	uint32_t size_shift;
	uint32_t wait;		/* full: wait rather than drop */
	uint32_t flags;		/* RGATE_DOUT_FLAGS, or RGATE_DOUT_TX_FLAGS */
};

/* What a launch gets, by value */
struct rgate_dctx {
	struct rgate_dstate *state;
	struct rgate_dstat *stat;
	struct rgate_dqueue *queue;
	struct rgate_dshare *share;
	const struct rgate_dctl *ctl;
	struct rgate_dreport *report;
	struct rgate_dout out;	/* where answers go */
	const uint64_t *until;	/* batch kernels: handed out, by ring */
	void *arg;		/* the user's */
	unsigned char *results;	/* the output array; null: none */
	uint64_t results_mask;	/* elements - 1 */
	uint64_t limit_ns;	/* of one launch; 0: none */
	uint32_t result_size;	/* bytes of an element */
	uint32_t nrings;
	uint32_t npollers;
	uint32_t direct;	/* runs up to this long are the polling warp's own */
	uint32_t grain;		/* slots of one warp's piece of work, 1 to 32 */
	uint32_t pause_ns;	/* between looks in vain */
	struct rgate_dring ring[RGATE_GPU_RINGS_MAX];
};

#endif
