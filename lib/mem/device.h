/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* An open RDMA device, as the rest of this layer sees it. */
#ifndef RGATE_MEM_DEVICE_H
#define RGATE_MEM_DEVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <sys/types.h>

#include <ringgate/rgate_device.h>

/* A region that the device has. One that is allocated by malloc(3) begins with it */
struct rgate_mr {
	struct rgate_mr *next;
	struct ibv_mr *mr;
};

/*
 * @refs, @next, @left: under the registry's lock. @mrs, @limit: atomic, relaxed: a count and
 * no order, which sinks under that lock; both 0: it is closed. @nleft: likewise, of @left.
 * The rest does not change.
 */
struct rgate_device {
	struct rgate_device *next;
	unsigned int refs;
	pid_t pid;		/* whose context it is */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	uint32_t mrs;
	uint32_t limit;
	struct rgate_mr *left;	/* deregistered, and the device holds them still */
	uint32_t nleft;
	bool gone;		/* atomic: removed or failed */
	bool in_sysfs;		/* had a name there when it was opened */
	struct rgate_device_info info;
};

/* -EPERM where this process is not the one that opened it */
int rgate_device_own(const struct rgate_device *dev);

/*
 * A region more or less; -ENOSPC: the limit is reached, which was logged. After the last one less
 * of a device that was closed it is not there any more.
 */
int rgate_device_take_mr(struct rgate_device *dev);
void rgate_device_give_mr(struct rgate_device *dev);
/* Deregisters @r, frees it, and is one region less: now, or when the device lets it go */
void rgate_device_drop_mr(struct rgate_device *dev, struct rgate_mr *r);

#endif
