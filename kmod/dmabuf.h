/* SPDX-License-Identifier: GPL-2.0-only */
/* An area of a ring's memory as a dma-buf, for drivers that import such. */
#ifndef RGATE_DMABUF_H
#define RGATE_DMABUF_H

#include <linux/err.h>
#include <ringgate/ioctl.h>

struct file;
struct rgate_mem;

#ifdef CONFIG_DMA_SHARED_BUFFER
struct file *rgate_dmabuf_new(struct rgate_mem *mem, enum rgate_ring_area area);
#else
static inline struct file *rgate_dmabuf_new(struct rgate_mem *mem,
					    enum rgate_ring_area area)
{
	return ERR_PTR(-EOPNOTSUPP);
}
#endif

#endif
