// SPDX-License-Identifier: MIT OR GPL-2.0
#include <ringgate/gpu/kernel.cuh>

#include "selfbench.h"

static __device__ uint32_t sum_short(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t sum = 0, i;

	/* a slot is zero up to the next multiple of 64 */
	for (i = 0; i < pkt->near_len; i += 16) {
		const uint4 v = *(const uint4 *)(pkt->near + i);

		sum += v.x + v.y + v.z + v.w;
	}
	*(uint32_t *)result = sum;
	return 0;
}

static __device__ uint32_t sum_long(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t sum = 0, i;

	for (i = rgate_dlane() * 16; i < pkt->len; i += 512) {
		const struct rgate_dvec v = rgate_dload16(pkt->data + i);

		sum += v.w[0] + v.w[1] + v.w[2] + v.w[3];
	}
	sum = rgate_dwarp_add(sum);
	if (rgate_dlane() == 0)
		*(uint32_t *)result = sum;
	return 0;
}

RGATE_GPU_LANES(rgate_gpu_sum_short, sum_short, 64, 0)
RGATE_GPU_WARPS(rgate_gpu_sum_long, sum_long, 0, 0)
