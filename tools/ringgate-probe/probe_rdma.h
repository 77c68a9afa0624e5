/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A queue pair connected to itself, and a region that it reads and writes. */
#ifndef PROBE_RDMA_H
#define PROBE_RDMA_H

#include <stddef.h>
#include <stdint.h>

#include <ringgate/rgate_mem.h>

struct rgate_rc;

#define PROBE_RDMA_MAX	(1U << 16)	/* bytes of an operation */

struct probe_rdma {
	struct rgate_device *dev;
	struct rgate_rc *rc;
	void *buf;		/* what goes out or came in */
	struct rgate_mem *buf_mem;
	struct rgate_mem *target;
};

/* 0 or -errno; the device stays the caller's */
int probe_rdma_open(struct probe_rdma *r, struct rgate_device *dev);
void probe_rdma_close(struct probe_rdma *r);

int probe_rdma_write(struct probe_rdma *r, size_t off, const void *buf, size_t len);
int probe_rdma_read(struct probe_rdma *r, size_t off, void *buf, size_t len);
/* Adds @add to the word at @off; @old: what was there */
int probe_rdma_fetch_add(struct probe_rdma *r, size_t off, uint64_t add, uint64_t *old);

#endif
