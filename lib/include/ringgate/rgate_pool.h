/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Buffers of any size from few memory regions. A device may allow as few as a
 * hundred regions; a pool registers one for each large piece of memory and carves it
 * in software, so that the number of buffers, sizes and peers costs none.
 *
 * All that describes buffers lies outside of the regions: a peer that may write into
 * them cannot confuse the pool. Buffers are multiples of a cache line (64 bytes) and
 * begin on one, so that no two share a line.
 *
 * Allocation and release are thread-safe and may happen in different threads. Each
 * thread keeps some released buffers for itself; when the pool runs dry these are
 * taken back, so that exhaustion is real. No function may be called from a signal
 * handler. In a child of fork(2) the regions are not mapped, and every function
 * returns -EPERM (rgate_pool_destroy() frees what the child has of it).
 */
#ifndef RINGGATE_RGATE_POOL_H
#define RINGGATE_RGATE_POOL_H

#include <ringgate/rgate_mem.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RGATE_POOL_LINE		64	/* bytes: grain and least alignment of buffers */

struct rgate_pool;

/*
 * A buffer. Belongs to the pool; to be read only, and only until it is released:
 * a scatter/gather entry is { (uintptr_t)addr, length, lkey }.
 */
struct rgate_buf {
	void *addr;
	size_t length;		/* bytes, as asked for */
	uint32_t lkey;		/* 0 without a device */
	uint32_t rkey;		/* without a device: number of the region + 1 */
	uintptr_t reserved[2];
} __attribute__((aligned(RGATE_POOL_LINE)));	/* threads that hold neighbours share no line */

typedef void (*rgate_pool_progress_fn)(void *ctx, size_t done, size_t total);

enum rgate_pool_flags {
	RGATE_POOL_DEBUG	= 1U << 0, /* red zones, poison, who holds what; slow */
	RGATE_POOL_NO_HUGE	= 1U << 1, /* ordinary pages */
	RGATE_POOL_HUGE_ONLY	= 1U << 2, /* hugetlb pages or -ENOMEM */
	RGATE_POOL_NO_PREFAULT	= 1U << 3, /* pages come when touched; without a device only */
	RGATE_POOL_NO_CACHE	= 1U << 4, /* no buffers kept by threads */
};

struct rgate_pool_opts {
	size_t sz;
	const char *name;	/* in messages; NULL: "pool" */
	size_t region_size;	/* bytes, 2 MiB or more; 0: 128 MiB, or max_size if that is less */
	size_t max_size;	/* quota of all regions in bytes, 2 MiB or more; 0: region_size,
				 * so no growth */
	uint32_t flags;		/* RGATE_POOL_* */
	uint32_t access;	/* enum rgate_access; 0: local only */
	uint32_t node_plus1;	/* NUMA node + 1 of the memory; 0: any */
	uint32_t threads;	/* that prefault; 0: as many as CPUs, 8 at most */
	uint32_t cache_buffers;	/* kept by a thread, of one size; 0: 64 */
	uint32_t reserved;	/* 0 */
	size_t cache_bytes;	/* kept by a thread, all sizes; 0: region_size / 8 */
	rgate_pool_progress_fn progress; /* called by the thread that makes the region,
					  * with bytes ready so far */
	void *progress_ctx;
	size_t max_meta;	/* quota, in bytes, of what describes regions, slabs, buffers and
				 * caches, which is heap memory; 0: none. It is at most four times
				 * max_size, if all of it was cut into buffers of each size in
				 * turn, and a hundredth with buffers of 8 KiB */
};

/*
 * rgate_pool_create - a pool with its first region
 * @dev: whose memory regions it makes; NULL: memory without a device, for use on one
 *	machine (lkey is 0)
 * @opts: NULL for the defaults
 * Memory is a memfd per region: of huge pages where there are enough free ones, else
 * ordinary ones with transparent huge pages asked for; rgate_pool_region() tells. It
 * is not inherited over fork(2). Environment RGATE_POOL_DEBUG=1 sets the flag. Under
 * valgrind and AddressSanitizer buffers are marked for them.
 * -EINVAL: sizes or flags; -ENOMEM; -ENOBUFS, -ENOSPC and others as
 * rgate_mem_register().
 */
RGATE_API int rgate_pool_create(struct rgate_pool **pool, struct rgate_device *dev,
				const struct rgate_pool_opts *opts);

/*
 * rgate_pool_destroy - ends a pool; NULL is allowed
 * No other thread may be in the pool meanwhile. Buffers that are held stay what they are, for the
 * device as well: the memory goes when the last is released, by rgate_pool_free() or
 * rgate_pool_free_batch(), which are all that there is of the pool from then on; any thread. The
 * log names them (the first 16). Who wants to know before asks rgate_pool_held().
 */
RGATE_API void rgate_pool_destroy(struct rgate_pool *pool);

/*
 * rgate_pool_alloc - a buffer of @size bytes, on a cache line; contents undefined
 * @buf: out
 * Grows the pool where the quota allows (this takes long: a region is registered).
 * -EINVAL: size 0; -EMSGSIZE: larger than a region; -ENOBUFS: the pool is exhausted,
 * or too fragmented for this size; or why it could not grow, in the log.
 */
RGATE_API int rgate_pool_alloc(struct rgate_pool *pool, size_t size,
			       const struct rgate_buf **buf);

struct rgate_alloc_opts {
	size_t sz;
	size_t align;		/* power of two up to 1 GiB or the region; 0: a cache line */
	int timeout_ms;		/* wait so long for others to release; 0: not, -EINVAL: < 0 */
	uint32_t flags;		/* RGATE_ALLOC_* */
	const char *tag;	/* debug: named by rgate_pool_held(); must outlive the buffer */
};

enum rgate_alloc_flags {
	RGATE_ALLOC_ZERO = 1U << 0,
};

/* rgate_pool_alloc_opts - the same with alignment, waiting, zeroed memory.
 * -ETIMEDOUT: nothing was released in time that would do; -EINVAL: alignment. */
RGATE_API int rgate_pool_alloc_opts(struct rgate_pool *pool, size_t size,
				    const struct rgate_alloc_opts *opts,
				    const struct rgate_buf **buf);

/* rgate_pool_alloc_batch - @n buffers of @size bytes, or none and -errno.
 * @opts: may be NULL; a timeout is for all of them together */
RGATE_API int rgate_pool_alloc_batch(struct rgate_pool *pool, size_t size,
				     const struct rgate_alloc_opts *opts,
				     const struct rgate_buf **bufs, unsigned int n);

/*
 * rgate_pool_free - releases a buffer; NULL is allowed
 * Whatever was written before in this thread happens before whatever the next owner
 * of the buffer does. Operations of the device on it must have completed.
 * -EINVAL: not a buffer of this pool; -EALREADY: it is free already. Both are
 * counted, logged, and change nothing; without RGATE_POOL_DEBUG they are found only as
 * far as that costs nothing: a second release racing with the first may be missed, and
 * @buf must point to a struct rgate_buf of some pool. -EOVERFLOW (debug): a red zone was
 * overwritten: the buffer is set aside and never handed out again.
 */
RGATE_API int rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *buf);

/* rgate_pool_free_batch - releases all that can be; the first error is returned */
RGATE_API int rgate_pool_free_batch(struct rgate_pool *pool,
				    const struct rgate_buf *const *bufs, unsigned int n);

/*
 * rgate_pool_lookup - the held buffer that an address lies in
 * @addr: any byte of it, for example from a completion
 * -EFAULT: not in this pool; -ENOENT: in no held buffer. Lock-free; if another thread
 * releases that buffer meanwhile the answer is stale.
 */
RGATE_API int rgate_pool_lookup(const struct rgate_pool *pool, const void *addr,
				const struct rgate_buf **buf);

/* rgate_buf_desc - descriptor of @len bytes from @offset of a buffer for a peer; @len 0:
 * to the end. -ERANGE: not inside; -EACCES: the pool was made without remote access.
 * Without a device @desc->addr is the offset in the memfd of region @desc->rkey - 1. */
RGATE_API int rgate_buf_desc(const struct rgate_pool *pool, const struct rgate_buf *buf,
			     size_t offset, size_t len, struct rgate_desc *desc);

/* rgate_pool_flush - gives what the calling thread keeps back to the pool */
RGATE_API int rgate_pool_flush(struct rgate_pool *pool);

enum rgate_pool_huge {
	RGATE_HUGE_NONE,	/* ordinary pages */
	RGATE_HUGE_THP,		/* transparent huge pages asked for and allowed */
	RGATE_HUGE_TLB,		/* hugetlb pages */
};

struct rgate_pool_region {
	size_t sz;
	void *addr;
	size_t length;		/* bytes */
	size_t page_size;
	uint32_t huge;		/* enum rgate_pool_huge */
	uint32_t lkey;
	uint32_t rkey;
	int fd;			/* memfd, owned by the pool */
	int node;		/* NUMA node it is on, -1: not bound */
};

/* rgate_pool_region - the @i-th region; -ENOENT: there are fewer. @region->sz is set by
 * the caller. */
RGATE_API int rgate_pool_region(const struct rgate_pool *pool, unsigned int i,
				struct rgate_pool_region *region);

/* Not read at one instant while others allocate: sums may be off by what moves. */
struct rgate_pool_stats {
	size_t sz;
	uint64_t regions;
	uint64_t region_bytes;		/* in all regions */
	uint64_t quota_bytes;
	uint64_t used_buffers;		/* held by users */
	uint64_t used_bytes;		/* of these, with padding */
	uint64_t cached_buffers;	/* kept by threads */
	uint64_t cached_bytes;
	uint64_t free_bytes;		/* in no class: runs of whole grains */
	uint64_t largest_free;		/* the largest buffer that could be had now */
	uint64_t fragmentation_ppm;	/* 1e6 x (1 - largest_free / free_bytes); 0 if full */
	uint64_t high_bytes;		/* most that was held and cached at once */
	uint64_t allocs;
	uint64_t frees;
	uint64_t refused;		/* allocations that failed for want of memory */
	uint64_t waits;			/* that had to wait */
	uint64_t timeouts;		/* of these, in vain */
	uint64_t reclaims;		/* times that threads' buffers were taken back */
	uint64_t grown;			/* regions added */
	uint64_t grow_failures;
	uint64_t double_frees;
	uint64_t foreign_frees;
	uint64_t overruns;		/* red zones found overwritten */
	uint64_t meta_bytes;		/* heap memory that describes all this */
};

/* @stats->sz is set by the caller */
RGATE_API int rgate_pool_stats(const struct rgate_pool *pool, struct rgate_pool_stats *stats);

struct rgate_pool_class {
	uint64_t size;			/* bytes of a buffer, with padding */
	uint64_t used;			/* buffers held */
	uint64_t cached;		/* kept by threads */
	uint64_t free;			/* in slabs of this class, ready */
	uint64_t allocs;
	uint64_t slab_bytes;		/* taken from regions for this class */
	uint64_t reserved[4];		/* 0 */
};

/* rgate_pool_classes - calls @fn for each size that was ever used, small to large; what
 * @fn returns other than 0 ends it and is returned. @fn may not call into the pool. */
RGATE_API int rgate_pool_classes(const struct rgate_pool *pool,
				 int (*fn)(void *ctx, const struct rgate_pool_class *c),
				 void *ctx);

struct rgate_pool_holder {
	const struct rgate_buf *buf;
	const char *tag;		/* debug, else NULL */
	const void *site;		/* debug: return address of the allocation */
	int thread;			/* debug: thread that allocated (gettid), else 0 */
	uint64_t reserved[2];		/* 0 */
};

/* rgate_pool_held - the same for each buffer that is held; allocation and release are
 * shut out meanwhile as far as they leave the thread's own cache */
RGATE_API int rgate_pool_held(const struct rgate_pool *pool,
			      int (*fn)(void *ctx, const struct rgate_pool_holder *h),
			      void *ctx);

/* rgate_pool_check - looks at every red zone and every poisoned free buffer (debug):
 * number of buffers found overwritten, or -EOPNOTSUPP without RGATE_POOL_DEBUG */
RGATE_API int rgate_pool_check(struct rgate_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
