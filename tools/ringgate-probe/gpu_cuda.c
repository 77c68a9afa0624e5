// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_cuda.h"
#include "util.h"

/* The part of the driver's binary interface that is used here */
enum cuda_result {
	CUDA_OK = 0,
	CUDA_INVALID_VALUE = 1,
	CUDA_OUT_OF_MEMORY = 2,
	CUDA_NO_DEVICE = 100,
	CUDA_INVALID_DEVICE = 101,
	CUDA_ALREADY_REGISTERED = 712,
	CUDA_NOT_PERMITTED = 800,
	CUDA_NOT_SUPPORTED = 801,
};

#define HOSTREGISTER_PORTABLE	1U
#define HOSTREGISTER_DEVICEMAP	2U
#define HOSTREGISTER_READ_ONLY	8U
#define HOSTALLOC_PORTABLE	1U
#define HOSTALLOC_DEVICEMAP	2U
#define RANGE_HANDLE_DMA_BUF	1

/* Addresses of the device are CUdeviceptr there: 64 bits. */
struct cuda {
	int (*init)(unsigned int flags);
	int (*error_name)(int err, const char **name);
	int (*error_string)(int err, const char **text);
	int (*device_get)(int *device, int ordinal);
	int (*device_name)(char *name, int len, int device);
	int (*ctx_retain)(void **ctx, int device);
	int (*ctx_release)(int device);
	int (*ctx_set)(void *ctx);
	int (*ctx_sync)(void);
	int (*mem_alloc)(uint64_t *ptr, size_t len);
	int (*mem_free)(uint64_t ptr);
	int (*host_alloc)(void **addr, size_t len, unsigned int flags);
	int (*host_free)(void *addr);
	int (*host_register)(void *addr, size_t len, unsigned int flags);
	int (*host_unregister)(void *addr);
	int (*host_pointer)(uint64_t *ptr, void *addr, unsigned int flags);
	int (*copy_in)(uint64_t to, const void *from, size_t len);
	int (*copy_out)(void *to, uint64_t from, size_t len);
	int (*copy)(uint64_t to, uint64_t from, size_t len);
	/* not in old drivers */
	int (*export)(void *handle, uint64_t ptr, size_t len, int type,
		      unsigned long long flags);
};

#define NAME(member, name) { name, offsetof(struct cuda, member) }

static const struct {
	const char *name;
	size_t off;
} names[] = {
	NAME(init, "cuInit"),
	NAME(error_name, "cuGetErrorName"),
	NAME(error_string, "cuGetErrorString"),
	NAME(device_get, "cuDeviceGet"),
	NAME(device_name, "cuDeviceGetName"),
	NAME(ctx_retain, "cuDevicePrimaryCtxRetain"),
	NAME(ctx_release, "cuDevicePrimaryCtxRelease_v2"),
	NAME(ctx_set, "cuCtxSetCurrent"),
	NAME(ctx_sync, "cuCtxSynchronize"),
	NAME(mem_alloc, "cuMemAlloc_v2"),
	NAME(mem_free, "cuMemFree_v2"),
	NAME(host_alloc, "cuMemHostAlloc"),
	NAME(host_free, "cuMemFreeHost"),
	NAME(host_register, "cuMemHostRegister_v2"),
	NAME(host_unregister, "cuMemHostUnregister"),
	NAME(host_pointer, "cuMemHostGetDevicePointer_v2"),
	NAME(copy_in, "cuMemcpyHtoD_v2"),
	NAME(copy_out, "cuMemcpyDtoH_v2"),
	NAME(copy, "cuMemcpyDtoD_v2"),
	NAME(export, "cuMemGetHandleForAddressRange"),
};

struct gpu {
	void *lib;
	struct cuda cu;
	int device;
	bool context;
	uint64_t stage;		/* GPU_COPY_MAX bytes of its memory */
	char name[128];
	char error[256];
};

static int to_errno(int res)
{
	switch (res) {
	case CUDA_INVALID_VALUE:
		return -EINVAL;
	case CUDA_OUT_OF_MEMORY:
		return -ENOMEM;
	case CUDA_NO_DEVICE:
	case CUDA_INVALID_DEVICE:
		return -ENODEV;
	case CUDA_ALREADY_REGISTERED:
		return -EEXIST;
	case CUDA_NOT_PERMITTED:
		return -EPERM;
	case CUDA_NOT_SUPPORTED:
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}

static int result(struct gpu *g, const char *call, int res)
{
	const char *name = NULL, *text = NULL;

	if (res == CUDA_OK)
		return 0;
	g->cu.error_name(res, &name);
	g->cu.error_string(res, &text);
	snprintf(g->error, sizeof(g->error), "%s: %s (%s)", call,
		 name ? name : "unknown error", text ? text : "no text");
	return to_errno(res);
}

static int load(struct gpu *g, char *why, size_t len)
{
	size_t i;

	g->lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!g->lib) {
		snprintf(why, len, "no NVIDIA driver (libcuda.so.1)");
		return -ENODEV;
	}
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		void *f = dlsym(g->lib, names[i].name);

		if (!f && names[i].off != offsetof(struct cuda, export)) {
			snprintf(why, len, "the NVIDIA driver has no %s: too old",
				 names[i].name);
			return -ENODEV;
		}
		*(void **)((char *)&g->cu + names[i].off) = f;
	}
	return 0;
}

static int start(struct gpu *g)
{
	void *ctx;
	int err;

	err = result(g, "cuInit", g->cu.init(0));
	if (!err)
		err = result(g, "cuDeviceGet", g->cu.device_get(&g->device, 0));
	if (!err)
		err = result(g, "cuDeviceGetName",
			     g->cu.device_name(g->name, sizeof(g->name), g->device));
	if (!err)
		err = result(g, "cuDevicePrimaryCtxRetain",
			     g->cu.ctx_retain(&ctx, g->device));
	if (err)
		return err;
	g->context = true;
	err = result(g, "cuCtxSetCurrent", g->cu.ctx_set(ctx));
	if (!err)
		err = result(g, "cuMemAlloc", g->cu.mem_alloc(&g->stage, GPU_COPY_MAX));
	return err;
}

int gpu_open(struct gpu **gpu, char *why, size_t len)
{
	struct gpu *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return -ENOMEM;
	err = load(g, why, len);
	if (err)
		goto fail;
	err = start(g);
	if (err) {
		snprintf(why, len, "%s", g->error);
		goto fail;
	}
	*gpu = g;
	return 0;
fail:
	gpu_close(g);
	return err;
}

void gpu_close(struct gpu *g)
{
	if (!g)
		return;
	if (g->stage)
		g->cu.mem_free(g->stage);
	if (g->context)
		g->cu.ctx_release(g->device);
	if (g->lib)
		dlclose(g->lib);
	free(g);
}

const char *gpu_name(const struct gpu *g)
{
	return g->name;
}

const char *gpu_error(const struct gpu *g)
{
	return g->error;
}

int gpu_map(struct gpu *g, void *addr, size_t len, bool readonly, uint64_t *ptr)
{
	unsigned int flags = HOSTREGISTER_PORTABLE | HOSTREGISTER_DEVICEMAP;
	uint64_t p = 0;
	int err;

	if (readonly)
		flags |= HOSTREGISTER_READ_ONLY;
	err = result(g, readonly ? "cuMemHostRegister(READ_ONLY)" : "cuMemHostRegister",
		     g->cu.host_register(addr, len, flags));
	if (err)
		return err;
	err = result(g, "cuMemHostGetDevicePointer", g->cu.host_pointer(&p, addr, 0));
	if (err)
		g->cu.host_unregister(addr);
	*ptr = p;
	return err;
}

int gpu_unmap(struct gpu *g, void *addr)
{
	return result(g, "cuMemHostUnregister", g->cu.host_unregister(addr));
}

int gpu_host_alloc(struct gpu *g, size_t len, void **addr, uint64_t *ptr)
{
	uint64_t p = 0;
	int err;

	err = result(g, "cuMemHostAlloc",
		     g->cu.host_alloc(addr, len, HOSTALLOC_PORTABLE | HOSTALLOC_DEVICEMAP));
	if (err)
		return err;
	err = result(g, "cuMemHostGetDevicePointer", g->cu.host_pointer(&p, *addr, 0));
	if (err)
		g->cu.host_free(*addr);
	*ptr = p;
	return err;
}

int gpu_host_free(struct gpu *g, void *addr)
{
	return result(g, "cuMemFreeHost", g->cu.host_free(addr));
}

int gpu_alloc(struct gpu *g, size_t len, uint64_t *ptr)
{
	uint64_t p = 0;
	int err = result(g, "cuMemAlloc", g->cu.mem_alloc(&p, len));

	*ptr = p;
	return err;
}

int gpu_free(struct gpu *g, uint64_t ptr)
{
	return result(g, "cuMemFree", g->cu.mem_free(ptr));
}

int gpu_export(struct gpu *g, uint64_t ptr, size_t len, int *fd)
{
	if (!g->cu.export) {
		snprintf(g->error, sizeof(g->error),
			 "the driver has no cuMemGetHandleForAddressRange: too old");
		return -EOPNOTSUPP;
	}
	return result(g, "cuMemGetHandleForAddressRange",
		      g->cu.export(fd, ptr, len, RANGE_HANDLE_DMA_BUF, 0));
}

/* Copies inside the device do not wait until they are done. */
static int copy(struct gpu *g, uint64_t to, uint64_t from, size_t len)
{
	int err = result(g, "cuMemcpyDtoD", g->cu.copy(to, from, len));

	return err ? err : result(g, "cuCtxSynchronize", g->cu.ctx_sync());
}

int gpu_write(struct gpu *g, uint64_t ptr, const void *buf, size_t len)
{
	int err;

	if (len > GPU_COPY_MAX)
		return -EINVAL;
	err = result(g, "cuMemcpyHtoD", g->cu.copy_in(g->stage, buf, len));
	return err ? err : copy(g, ptr, g->stage, len);
}

int gpu_read(struct gpu *g, uint64_t ptr, void *buf, size_t len)
{
	int err;

	if (len > GPU_COPY_MAX)
		return -EINVAL;
	err = copy(g, g->stage, ptr, len);
	return err ? err : result(g, "cuMemcpyDtoH", g->cu.copy_out(buf, g->stage, len));
}
