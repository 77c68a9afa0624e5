/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory of a ring: pages, charged, seen by kernel and users. */
#ifndef RGATE_MEM_H
#define RGATE_MEM_H

#include <linux/kref.h>
#include "geometry.h"

struct cred;
struct file;
struct vm_area_struct;

/**
 * struct rgate_mem - one generation of a ring's memory
 * @ref: the ring, each VMA, and each dma-buf. Pins (get_user_pages) hold the pages alone.
 * @geo: its shape
 * @generation: 1 for a new ring, one more a resize
 * @rw_slots: users may map the slots writable
 * @npages: pages of @pages
 * @pages: order-0 pages, physically contiguous where that was to be had
 * @base: kernel mapping of all of them
 * @cred: whose user is charged for @charged pages
 * @charged: pages counted against RLIMIT_MEMLOCK
 * @prod: producer area; users cannot write it
 * @cons: consumer area; users write it, so read each word once
 * @credits: credit words; likewise
 * @slots: the slots; written, never read by the kernel
 * @exported: dma-bufs of its areas, which hold it in their turn; under the ring's
 *	export_lock, and put when the ring lets go of the memory
 */
struct rgate_mem {
	struct kref ref;
	struct rgate_geo geo;
	u32 generation;
	bool rw_slots;
	unsigned long npages;
	struct page **pages;
	void *base;
	const struct cred *cred;
	unsigned long charged;

	struct rgate_prod *prod;
	struct rgate_cons *cons;
	u64 *credits;
	u8 *slots;

	struct file *exported[RGATE_AREA_COUNT];
};

struct rgate_mem *rgate_mem_alloc(const struct rgate_geo *geo, int node);
void rgate_mem_get(struct rgate_mem *mem);
void rgate_mem_put(struct rgate_mem *mem);
int rgate_mem_mmap(struct rgate_mem *mem, struct vm_area_struct *vma);

#endif
