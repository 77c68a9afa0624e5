/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Kernels for rgate_gpu_start() and _launch() whose warps are threads of this CPU, of one lane
 * each: the loops of ringgate/gpu/kernel.cuh themselves, with a pause that sleeps.
 */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

void fake_pause(uint32_t ns);
#define RGATE_DPAUSE(ns)	fake_pause(ns)

#include <ringgate/gpu/kernel.cuh>

#define FAKE_WORKERS	2U	/* warps that do not look */

/* The thread is a warp that looks */
extern _Thread_local bool fake_polls;

void fake_persist(const struct rgate_dctx *ctx, const struct rgate_dshape *sh);
void fake_snapshot(const struct rgate_dctx *ctx, const struct rgate_dshape *sh);

#define FAKE_KERNEL_(kernel, fn, near_bytes, reply_bytes, kind_, run_) \
	static void kernel##_body(const struct rgate_dctx *ctx) \
	{ \
		static const struct rgate_dshape sh = { (near_bytes), (reply_bytes), 32, 0, fn }; \
		run_(ctx, &sh); \
	} \
	static int kernel##_function(void **function) \
	{ \
		void (*body)(const struct rgate_dctx *ctx) = kernel##_body; \
		memcpy(function, &body, sizeof(*function)); \
		return 0; \
	} \
	static const struct rgate_gpu_kernel kernel = { \
		sizeof(struct rgate_gpu_kernel), kernel##_function, #kernel, (kind_), \
		RGATE_DWARP_BYTES(near_bytes, reply_bytes, 32U), (near_bytes), \
		(reply_bytes), 32, sizeof(struct rgate_dctx), 8, \
	}

#define FAKE_LANES(kernel, fn, near_bytes, reply_bytes) \
	FAKE_KERNEL_(kernel, fn, near_bytes, reply_bytes, RGATE_GPU_KIND_PERSISTENT, fake_persist)
#define FAKE_BATCH(kernel, fn, near_bytes, reply_bytes) \
	FAKE_KERNEL_(kernel, fn, near_bytes, reply_bytes, RGATE_GPU_KIND_BATCH, fake_snapshot)

#endif
