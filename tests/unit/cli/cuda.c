// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The NVIDIA driver of that machine: libcuda.so.1, where cli.cuda says so, as it is used by
 * tools/ringgate-probe/gpu_cuda.c. It has one GPU, whose memory is this process's, too, and
 * does not export it: it is an old one.
 */
#include "unit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define INVALID_VALUE	1

static char lib;	/* what its handle points to */
static void *registered, *allocated;	/* memory of the host's */

static int init(unsigned int flags)
{
	(void)flags;
	return 0;
}

static int error_text(int err, const char **text)
{
	(void)err;
	*text = "of the test's driver";
	return 0;
}

static int device_get(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

static int device_name(char *name, int len, int device)
{
	snprintf(name, (size_t)len, "GPU %d of the test", device);
	return 0;
}

static int ctx_retain(void **ctx, int device)
{
	(void)device;
	*ctx = &lib;
	return 0;
}

static int ctx_release(int device)
{
	(void)device;
	return 0;
}

static int ctx_set(void *ctx)
{
	return ctx == &lib ? 0 : INVALID_VALUE;
}

static int ctx_sync(void)
{
	return 0;
}

static int mem_alloc(uint64_t *ptr, size_t len)
{
	*ptr = (uintptr_t)calloc(1, len);
	return 0;
}

static int mem_free(uint64_t ptr)
{
	free((void *)(uintptr_t)ptr);
	return 0;
}

static int host_alloc(void **addr, size_t len, unsigned int flags)
{
	(void)flags;
	*addr = allocated = calloc(1, len);
	return 0;
}

static int host_register(void *addr, size_t len, unsigned int flags)
{
	(void)len;
	(void)flags;
	registered = addr;
	return 0;
}

/* Of what is not the device's it has no address. */
static int host_pointer(uint64_t *ptr, void *addr, unsigned int flags)
{
	(void)flags;
	*ptr = (uintptr_t)addr;
	return addr && (addr == registered || addr == allocated) ? 0 : INVALID_VALUE;
}

static int host_unregister(void *addr)
{
	if (addr != registered)
		return INVALID_VALUE;
	registered = NULL;
	return 0;
}

static int host_free(void *addr)
{
	if (addr != allocated)
		return INVALID_VALUE;
	free(addr);
	allocated = NULL;
	return 0;
}

static int copy_in(uint64_t to, const void *from, size_t len)
{
	memcpy((void *)(uintptr_t)to, from, len);
	return 0;
}

static int copy_out(void *to, uint64_t from, size_t len)
{
	memcpy(to, (const void *)(uintptr_t)from, len);
	return 0;
}

static int copy(uint64_t to, uint64_t from, size_t len)
{
	return copy_in(to, (const void *)(uintptr_t)from, len);
}

#define FN(name, fn) { name, (void *)(uintptr_t)(fn) }

static const struct {
	const char *name;
	void *fn;
} functions[] = {
	FN("cuInit", init),
	FN("cuGetErrorName", error_text),
	FN("cuGetErrorString", error_text),
	FN("cuDeviceGet", device_get),
	FN("cuDeviceGetName", device_name),
	FN("cuDevicePrimaryCtxRetain", ctx_retain),
	FN("cuDevicePrimaryCtxRelease_v2", ctx_release),
	FN("cuCtxSetCurrent", ctx_set),
	FN("cuCtxSynchronize", ctx_sync),
	FN("cuMemAlloc_v2", mem_alloc),
	FN("cuMemFree_v2", mem_free),
	FN("cuMemHostAlloc", host_alloc),
	FN("cuMemFreeHost", host_free),
	FN("cuMemHostRegister_v2", host_register),
	FN("cuMemHostUnregister", host_unregister),
	FN("cuMemHostGetDevicePointer_v2", host_pointer),
	FN("cuMemcpyHtoD_v2", copy_in),
	FN("cuMemcpyDtoH_v2", copy_out),
	FN("cuMemcpyDtoD_v2", copy),
};

extern __typeof__(dlopen) __real_dlopen, __wrap_dlopen;
void *__wrap_dlopen(const char *name, int flags)
{
	if (strcmp(name, "libcuda.so.1"))
		return __real_dlopen(name, flags);
	return cli.cuda ? &lib : NULL;
}

extern __typeof__(dlsym) __real_dlsym, __wrap_dlsym;
void *__wrap_dlsym(void *handle, const char *name)
{
	size_t i;

	if (handle != &lib)
		return __real_dlsym(handle, name);
	for (i = 0; i < ARRAY_LEN(functions); i++)
		if (!strcmp(functions[i].name, name))
			return functions[i].fn;
	return NULL;
}

extern __typeof__(dlclose) __real_dlclose, __wrap_dlclose;
int __wrap_dlclose(void *handle)
{
	return handle == &lib ? 0 : __real_dlclose(handle);
}
