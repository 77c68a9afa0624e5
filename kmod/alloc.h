/* SPDX-License-Identifier: GPL-2.0-only */
/* Allocations that tests can make fail, one after the other. */
#ifndef RGATE_ALLOC_H
#define RGATE_ALLOC_H

#include <linux/mm.h>
#include <linux/slab.h>

bool rgate_alloc_fails(void);

static inline void *rgate_kzalloc(size_t size)
{
	return rgate_alloc_fails() ? NULL : kzalloc(size, GFP_KERNEL_ACCOUNT);
}

static inline void *rgate_kvcalloc(size_t n, size_t size)
{
	return rgate_alloc_fails() ? NULL :
		kvcalloc(n, size, GFP_KERNEL_ACCOUNT);
}

#endif
