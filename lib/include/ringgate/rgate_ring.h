/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A packet ring: filled by the kernel module, or in a memfd by a producer of
 * this process (rgate_source.h, rgate_producer.h). Consumed with
 * rgate_consumer.h, whatever fills it.
 *
 * A struct rgate_ring may be used by several threads at once, except
 * rgate_ring_close() and rgate_ring_remap(), which must be alone. Mind that
 * rgate_consumer_wait() and rgate_consumer_arm() may call the latter.
 *
 * Do not use a handle on both sides of fork(2): the mapping is shared with the
 * child, the wait word would have two owners. Send the child a handle instead. A child
 * that goes on without execve(2) also keeps the handle from being taken for dead.
 */
#ifndef RINGGATE_RGATE_RING_H
#define RINGGATE_RGATE_RING_H

#include <ringgate/rgate.h>
#include <ringgate/ioctl.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_ring;

struct rgate_ring_opts {
	size_t sz;		/* sizeof(struct rgate_ring_opts) */
	uint32_t slots;		/* 0: RGATE_SLOTS_DEFAULT; see rgate_ring_open() */
	uint32_t slot_size;	/* bytes, 0: RGATE_SLOT_SIZE_DEFAULT */
	uint32_t flags;		/* RGATE_RING_* */
	uint32_t policy;	/* enum rgate_policy */
	uint32_t clock;		/* enum rgate_clock */
	uint32_t node_plus1;	/* NUMA node + 1 of the memory; 0: any */
	const char *name;	/* NULL: the ring's number */
	const char *device;	/* NULL: RGATE_DEVICE; module rings only */
};

/*
 * rgate_ring_open - a new ring of the kernel module
 * @ring: out; close it with rgate_ring_close()
 * @opts: NULL for the defaults
 * The ring receives nothing until it is attached (rgate_ctl.h). With RGATE_RING_TRANSMIT,
 * and RGATE_RING_RW_SLOTS, it is one that frames are sent from (rgate_sender.h), and is
 * never resized. RGATE_RING_COARSE: the time of a frame is that of the kernel's last tick, up
 * to 10 ms before, which is quicker to read than the clock.
 * Where neither slots nor slot_size is given and RLIMIT_MEMLOCK is too small for
 * the default, half as many slots are tried, down to 512, and a warning logged.
 * rgate_ring_view() tells what it became.
 * -ENOENT, -ENXIO: module not loaded; -EACCES: no permission on the device;
 * -EINVAL: bad geometry; -ENOBUFS: RLIMIT_MEMLOCK too small; -ENOMEM.
 */
RGATE_API int rgate_ring_open(struct rgate_ring **ring,
			      const struct rgate_ring_opts *opts);

/*
 * rgate_ring_open_memfd - a new ring in a memfd, with this process as producer
 * Needs neither module nor privilege. Same options; `node_plus1` and `device` are
 * ignored. The memory is sealed: nobody else can write the producer area or the
 * slots, and none can change its size. RGATE_RING_RW_SLOTS, _TRANSMIT and _COARSE:
 * -EOPNOTSUPP.
 * -EINVAL: bad geometry, policy, clock, flags or name; -ENOMEM, -ENOSPC: does not
 * fit in memory.
 */
RGATE_API int rgate_ring_open_memfd(struct rgate_ring **ring,
				    const struct rgate_ring_opts *opts);

/* rgate_ring_close - unmaps and closes; NULL is allowed */
RGATE_API void rgate_ring_close(struct rgate_ring *ring);

/*
 * rgate_ring_send - gives another process a handle of its own on this ring
 * @sock: connected AF_UNIX socket
 * Sends one message with descriptors (SCM_RIGHTS). The receiver needs no access
 * to the device file; the sender opens it anew. Of a memfd ring only its creator
 * can give handles (-EOPNOTSUPP). A handle that the other end closed, or whose
 * process ended, can be given again.
 * -EMFILE: all RGATE_HANDLES_MAX handles are given; or what sendmsg(2) says.
 */
RGATE_API int rgate_ring_send(struct rgate_ring *ring, int sock);

/*
 * rgate_ring_recv - the other end; blocks as @sock does
 * What a memfd ring says of itself is checked against its sizes and seals before
 * use. -EPROTO: no ring, or a malformed one; -EPROTONOSUPPORT: one of a version
 * or with features unknown here; -EPIPE: the other end of @sock is closed.
 */
RGATE_API int rgate_ring_recv(struct rgate_ring **ring, int sock);

/*
 * rgate_ring_dup - a further handle on the same ring in this process, so that
 * another thread can sleep on its own (one sleeper a handle).
 * -EMFILE: no handle left; -EOPNOTSUPP: a memfd ring of another process.
 */
RGATE_API int rgate_ring_dup(struct rgate_ring **ring, struct rgate_ring *from);

/*
 * rgate_ring_fd - descriptor for the user's own poll/epoll: readable once the
 * position asked for by rgate_consumer_arm() is published, or the producer is
 * gone; that of a ring which a gateway of this machine fills may be for nothing, too.
 * Owned by the ring, the same until rgate_ring_close().
 */
RGATE_API int rgate_ring_fd(const struct rgate_ring *ring);

/* rgate_ring_id - the module's number of the ring, to show; 0: memfd */
RGATE_API uint32_t rgate_ring_id(const struct rgate_ring *ring);

/*
 * What is meant by a ring or an attachment of the module: its number, which others get
 * in their turn, and a cookie that no other has. 0 and 0: none. Stays as it is.
 */
struct rgate_ident {
	uint32_t id;
	uint64_t cookie;
};

/*
 * rgate_ring_ident - this ring, for rgate_ctl.h
 * @ident: out; good as long as the ring is open anywhere, and never another's.
 *	0 and 0 for a memfd ring.
 */
RGATE_API void rgate_ring_ident(const struct rgate_ring *ring,
				struct rgate_ident *ident);

/* The mapping as it is now. Pointers are valid until remap or close. */
struct rgate_view {
	const struct rgate_prod *prod;
	struct rgate_cons *cons;
	uint64_t *credits;		/* slots / RGATE_BATCH words */
	const unsigned char *slots;	/* slots x slot_size bytes */
	size_t map_len;
	uint32_t nslots;
	uint32_t slot_size;
	uint32_t generation;
	uint32_t handle;		/* index of this handle's wait word */
	uint64_t reserved[4];		/* 0 */
};

RGATE_API void rgate_ring_view(const struct rgate_ring *ring,
			       struct rgate_view *view);

/*
 * rgate_ring_slots_rw - the slots, writable; valid until remap or close
 * NULL unless the ring was made with RGATE_RING_RW_SLOTS or is a memfd ring of
 * this process.
 */
RGATE_API unsigned char *rgate_ring_slots_rw(struct rgate_ring *ring);

/* rgate_ring_stats - a snapshot of the counters in the mapping, no system call.
 * Each counter is exact; they are not read at one instant. Over a resize they
 * go on from the old values. */
RGATE_API int rgate_ring_stats(const struct rgate_ring *ring,
			       struct rgate_stats *stats);

/*
 * rgate_ring_orphans - what became of consumers that died with a batch in hand
 * @batches: out, batches that others took over, in the present memory of the ring
 * @skipped: out, frames of those that were passed over (RGATE_ORPHAN_SKIP)
 * Counted by the consumers themselves, so a hostile one can make them wrong.
 */
RGATE_API void rgate_ring_orphans(const struct rgate_ring *ring, uint64_t *batches,
				  uint64_t *skipped);

/*
 * rgate_ring_tstamp_offset - how to read rgate_slot.tstamp on this machine
 * @offset_ns: the clock that stamped the frames less this machine's clock of the same
 *	kind; @error_ns: how much that may be wrong
 * Both 0 unless another machine fills the ring. -ENODATA: not known yet.
 */
RGATE_API int rgate_ring_tstamp_offset(const struct rgate_ring *ring, int64_t *offset_ns,
				       uint64_t *error_ns);

/*
 * rgate_ring_dmabuf - a descriptor of a part of a ring of the module as a dma-buf
 * @area: enum rgate_ring_area: RGATE_AREA_CONSUMER, from prod->cons_off to slots_off, or
 *	RGATE_AREA_SLOTS, from there to the end
 * For drivers that import dma-bufs, and for processes that shall map one area and get no
 * handle. It is of the memory that this handle has mapped, and the same dma-buf for all who
 * ask. Slots are read-only without RGATE_RING_RW_SLOTS: then no device can map them that
 * might write, which RDMA and graphics drivers may always (rgate_mem_register() can). The
 * caller closes it; it keeps that memory, charged to the ring's owner, also after a resize
 * and after the ring's end. Returns the descriptor, close-on-exec.
 * -EINVAL: no such area; -ESTALE: the ring was resized: rgate_ring_remap() first;
 * -EOPNOTSUPP: a memfd ring, or a module or kernel without dma-bufs; -EMFILE; -ENOMEM.
 */
RGATE_API int rgate_ring_dmabuf(struct rgate_ring *ring, uint32_t area);

/* rgate_ring_retired - the ring was resized (or closed by its producer): what
 * is mapped here gets no more frames */
RGATE_API bool rgate_ring_retired(const struct rgate_ring *ring);

/*
 * rgate_ring_resize - new memory of another geometry, while traffic runs
 * Frames in the old memory stay readable until rgate_ring_remap(); consumers
 * call that once they have drained it (rgate_consumer_wait() does so itself).
 * A memfd ring changes over when its producer next flushes or ends a batch, at
 * once if it has none. Counters go on; positions begin at 0 in the new memory.
 * Frames in memory that was replaced again before a consumer mapped it are lost
 * to that consumer.
 * -EINVAL: bad geometry; -ENOMEM, -ENOSPC, -ENOBUFS: no memory for it;
 * -EOPNOTSUPP: a memfd ring not created by this process.
 */
RGATE_API int rgate_ring_resize(struct rgate_ring *ring, uint32_t slots,
				uint32_t slot_size);

/* rgate_ring_remap - map the ring's present memory; no-op where it is mapped.
 * Consumers of this handle must be re-initialised if it returns 1.
 * 1: mapped anew; 0: as was; -ESTALE: resized, and the new memory did not reach
 * this process */
RGATE_API int rgate_ring_remap(struct rgate_ring *ring);

#ifdef __cplusplus
}
#endif
#endif
