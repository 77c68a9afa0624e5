/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The kernels of rgate_gpu_bench(): every byte of every frame is summed. */
#ifndef RGATE_LIB_GPU_SELFBENCH_H
#define RGATE_LIB_GPU_SELFBENCH_H

#include <ringgate/rgate_gpu.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const struct rgate_gpu_kernel rgate_gpu_sum_short;	/* up to 64 bytes */
extern const struct rgate_gpu_kernel rgate_gpu_sum_long;

#ifdef __cplusplus
}
#endif
#endif
