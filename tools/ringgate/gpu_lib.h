/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * libringgate-gpu, loaded when asked for: the program needs neither it nor CUDA to be
 * built or to run.
 */
#ifndef GPU_LIB_H
#define GPU_LIB_H

#include <stddef.h>

#include <ringgate/rgate_gpu.h>

struct gpu_lib {
	void *handle;
	int (*open)(struct rgate_gpu **gpu, const struct rgate_gpu_opts *opts);
	void (*close)(struct rgate_gpu *gpu);
	const char *(*error)(const struct rgate_gpu *gpu);
	int (*bench)(struct rgate_gpu_bench *bench);
};

/* 0; -ENOENT: it is not installed; -ENOEXEC: not one that fits; @why: in words */
int gpu_lib_load(struct gpu_lib *l, char *why, size_t len);
void gpu_lib_unload(struct gpu_lib *l);

#endif
