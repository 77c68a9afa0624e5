/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Ways to one piece of memory: through a mapping, by the kernel, by the RDMA
 * device, by the GPU. What goes in through one has to come out through another.
 */
#ifndef PROBE_AGENT_H
#define PROBE_AGENT_H

#include "gpu_cuda.h"
#include "probe_rdma.h"
#include "probe_types.h"

struct probe_agent {
	bool can_write;
	int (*write)(const struct probe_agent *a, size_t off, const void *buf, size_t len);
	int (*read)(const struct probe_agent *a, size_t off, void *buf, size_t len);
	unsigned char *addr;	/* mapping */
	int pipe[2];
	struct gpu *gpu;
	uint64_t ptr;		/* in the GPU */
	struct probe_rdma *rdma;
};

/* The CPU, through a mapping */
void probe_agent_cpu(struct probe_agent *a, void *addr, bool writable);
/* process_vm_readv(2): the kernel looks up the pages and copies */
void probe_agent_pin(struct probe_agent *a, void *addr, bool writable);
/* A pipe: the kernel copies from and to user addresses. 0 or -errno */
int probe_agent_copy(struct probe_agent *a, void *addr, bool writable);
void probe_agent_copy_end(struct probe_agent *a);
void probe_agent_gpu(struct probe_agent *a, struct gpu *gpu, uint64_t ptr, bool writable);
/* The region that @r has as its target */
void probe_agent_rdma(struct probe_agent *a, struct probe_rdma *r, bool writable);

/*
 * probe_agree - fresh random bytes through @x, seen by @base, and the other way
 * round, at both ends of the memory and over the borders of pages
 * @base: NULL or one that cannot write: @writer puts the bytes there
 * @writer: NULL: none
 * 0; -EBADMSG: other bytes came out; -ENODATA: nobody can write; or -errno
 */
int probe_agree(const struct probe_mem *m, const struct probe_agent *base,
		const struct probe_agent *writer, const struct probe_agent *x);

#endif
