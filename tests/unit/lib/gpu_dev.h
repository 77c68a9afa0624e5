/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A "device" for the ring's device code, compiled for this CPU with warps of one lane. */
#ifndef GPU_DEV_H
#define GPU_DEV_H

#include <stdint.h>

#include <ringgate/gpu/stage.cuh>
#include <ringgate/rgate_ring.h>

struct gpu_dev {
	struct rgate_dctx ctx;
	struct rgate_dstate state[2];
	struct rgate_dstat stat[2];
	struct rgate_dqueue queue;
	struct rgate_dshare share;
	struct rgate_dctl ctl;
	struct rgate_dreport report;
	struct rgate_doutstate out;
	struct rgate_dpoll poll[2];
	struct rgate_ring *ring[2];
	uint64_t start;
};

/* The ring as the device would have it, with addresses of this process */
struct rgate_dring gpu_dev_dring(struct rgate_ring *ring);

/* A device that consumes from @ring; gpu_dev_free() closes its rings */
struct gpu_dev *gpu_dev_new(struct rgate_ring *ring);
void gpu_dev_free(struct gpu_dev *d);
/* The same by steps, for several rings: zeroed, then rings added, then begun */
void gpu_dev_add(struct gpu_dev *d, struct rgate_ring *ring);
void gpu_dev_begin(struct gpu_dev *d);

/* One look at the first ring */
uint32_t gpu_dev_find(struct gpu_dev *d, struct rgate_drun *run);

#endif
