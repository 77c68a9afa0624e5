/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Memory of a region: a memfd, of huge pages where there are some. */
#ifndef RGATE_MEM_BACKING_H
#define RGATE_MEM_BACKING_H

#include <ringgate/rgate_pool.h>

struct rgate_backing {
	void *addr;		/* aligned to huge pages */
	size_t len;
	size_t page_size;
	enum rgate_pool_huge huge;
	int fd;
	int node;		/* NUMA node it is bound to, or -1 */
};

struct rgate_backing_opts {
	const char *name;
	size_t len;		/* multiple of 2 MiB */
	uint32_t flags;		/* RGATE_POOL_NO_HUGE, HUGE_ONLY, NO_PREFAULT */
	uint32_t node_plus1;
	uint32_t threads;	/* that prefault, 0: chosen */
	rgate_pool_progress_fn progress;
	void *progress_ctx;
};

/* @b is left as it was by what fails. -ENOMEM: not so much memory, or no huge pages where only
 * these will do; -EINVAL: the node; what memfd_create(2) and mmap(2) say */
int rgate_backing_make(struct rgate_backing *b, const struct rgate_backing_opts *opts);
void rgate_backing_free(struct rgate_backing *b);

#endif
