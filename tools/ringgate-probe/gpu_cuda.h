/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The GPU that CUDA calls the first, through the driver's own interface, loaded
 * when asked for: the program needs neither CUDA to be built nor a GPU to run.
 * Not to be carried over fork(2). Functions return 0 or -errno;
 * gpu_error() tells what the driver said.
 */
#ifndef GPU_CUDA_H
#define GPU_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu;

/* -ENODEV: no driver, or no GPU; @why: which, in words */
int gpu_open(struct gpu **gpu, char *why, size_t len);
void gpu_close(struct gpu *gpu);
const char *gpu_name(const struct gpu *gpu);
/* Of the call that failed last: "cuMemHostRegister: CUDA_ERROR_..." */
const char *gpu_error(const struct gpu *gpu);

/* Memory of this process that the GPU is to reach; @ptr: its address there */
int gpu_map(struct gpu *gpu, void *addr, size_t len, bool readonly, uint64_t *ptr);
int gpu_unmap(struct gpu *gpu, void *addr);

/* Memory of the host that the driver allocates */
int gpu_host_alloc(struct gpu *gpu, size_t len, void **addr, uint64_t *ptr);
int gpu_host_free(struct gpu *gpu, void *addr);

/* Memory of the GPU; and the same as a dma-buf */
int gpu_alloc(struct gpu *gpu, size_t len, uint64_t *ptr);
int gpu_free(struct gpu *gpu, uint64_t ptr);
int gpu_export(struct gpu *gpu, uint64_t ptr, size_t len, int *fd);

/* The GPU copies between @ptr and its own memory, GPU_COPY_MAX bytes at most */
#define GPU_COPY_MAX	(1U << 16)
int gpu_write(struct gpu *gpu, uint64_t ptr, const void *buf, size_t len);
int gpu_read(struct gpu *gpu, uint64_t ptr, void *buf, size_t len);

#endif
