/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Memory that an RDMA device may reach. Anything that the kernel can pin can be
 * registered: heap, anonymous and shared mappings, huge pages, memfds, private file
 * mappings, rings of the module and in memfds; and dma-bufs, where driver and
 * exporter can. Not: PFN mappings (remap_pfn_range, dma_mmap_coherent), and writable
 * shared mappings of files on most file systems.
 *
 * All functions are thread-safe.
 */
#ifndef RINGGATE_RGATE_MEM_H
#define RINGGATE_RGATE_MEM_H

#include <ringgate/rgate_device.h>
#include <ringgate/desc.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_mem;

struct rgate_mem_opts {
	size_t sz;
	uint32_t access;	/* enum rgate_access */
	uint32_t flags;		/* RGATE_MEM_* */
	uint64_t iova;		/* with RGATE_MEM_IOVA: address that peers use */
};

enum rgate_mem_flags {
	RGATE_MEM_IOVA		= 1U << 0,	/* else the address in this process */
	RGATE_MEM_ON_DEMAND	= 1U << 1,	/* no pin: pages come when touched (ODP) */
};

/*
 * rgate_mem_register - makes a piece of this process's memory known to the device
 * @dev: must stay open as long as the region is registered
 * @addr, @len: any alignment; what lies around it in the same page is out of reach
 * @opts: NULL: local access only, strictly ordered
 * The device may write the memory unless RGATE_ACCESS_READONLY is given. The same
 * memory can be registered several times, on several devices. The pages stay pinned
 * until rgate_mem_deregister(), even if they are unmapped. After fork(2) they stay
 * with the parent: the child gets copies of private ones, and shares shared ones.
 *
 * -EINVAL: len 0, wraps, or contradictory access; -ENOSPC: the limit of regions is
 * reached; -ENOBUFS: RLIMIT_MEMLOCK too small; -EFAULT: not mapped, or of a kind
 * that cannot be pinned or written; -EOPNOTSUPP: device cannot do @opts; -ENOMEM;
 * -EIO: the device is gone; -EPERM: in a child of the process that opened it.
 * Cause and remedy are said to the log.
 */
RGATE_API int rgate_mem_register(struct rgate_mem **mem, struct rgate_device *dev,
				 void *addr, size_t len,
				 const struct rgate_mem_opts *opts);

/*
 * rgate_mem_register_dmabuf - the same for @len bytes at @offset of a dma-buf
 * @fd: may be closed afterwards
 * Without RGATE_MEM_IOVA the address that peers use begins at 0 + @offset.
 * -EOPNOTSUPP: driver or exporter cannot (soft-RoCE never can); -EBADF, -EINVAL: no
 * dma-buf.
 */
RGATE_API int rgate_mem_register_dmabuf(struct rgate_mem **mem, struct rgate_device *dev,
					int fd, uint64_t offset, size_t len,
					const struct rgate_mem_opts *opts);

/*
 * rgate_mem_deregister - no device reaches it any more; NULL is allowed
 * Operations in flight on it end in an error. Where the device does not let it go, as the
 * caller's own verbs have a memory window on it, the log says so, and pages stay pinned until
 * rgate_device_mr_left() says otherwise; @mem is gone in any case.
 */
RGATE_API void rgate_mem_deregister(struct rgate_mem *mem);

RGATE_API void *rgate_mem_addr(const struct rgate_mem *mem);	/* NULL: dma-buf */
RGATE_API size_t rgate_mem_length(const struct rgate_mem *mem);
RGATE_API uint64_t rgate_mem_iova(const struct rgate_mem *mem);
RGATE_API uint32_t rgate_mem_lkey(const struct rgate_mem *mem);
RGATE_API uint32_t rgate_mem_rkey(const struct rgate_mem *mem);
RGATE_API uint32_t rgate_mem_access(const struct rgate_mem *mem);
RGATE_API struct rgate_device *rgate_mem_device(const struct rgate_mem *mem);

/*
 * rgate_mem_desc - descriptor of @len bytes from @offset, for a peer
 * -ERANGE: not inside; -EACCES: registered without remote access.
 */
RGATE_API int rgate_mem_desc(const struct rgate_mem *mem, size_t offset, size_t len,
			     struct rgate_desc *desc);

/* A descriptor in this machine's byte order */
struct rgate_remote {
	uint64_t addr;
	uint64_t length;
	uint32_t rkey;
	uint32_t access;
	uint32_t epoch;
	uint32_t reserved[3];	/* 0 */
};

/*
 * rgate_desc_parse - reads a descriptor that came from somewhere else
 * @buf, @len: any alignment; @len must be sizeof(struct rgate_desc)
 * -EPROTO: malformed; -EPROTONOSUPPORT: of another version.
 */
RGATE_API int rgate_desc_parse(struct rgate_remote *remote, const void *buf, size_t len);

/*
 * rgate_mem_pages - widens a range to whole pages
 * @page_size: power of two, 0: the system's
 * -EINVAL; -EOVERFLOW: the end wraps
 */
RGATE_API int rgate_mem_pages(const void *addr, size_t len, size_t page_size,
			      void **base, size_t *span);

/* rgate_mem_page_size - size of the pages behind @addr (huge pages of hugetlbfs told,
 * transparent ones not), or -EFAULT: nothing is mapped there */
RGATE_API long rgate_mem_page_size(const void *addr);

#ifdef __cplusplus
}
#endif
#endif
