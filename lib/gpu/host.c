// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Host memory registered with CUDA. A range can be registered once in a process, while
 * several runtimes may want it: so they are counted here.
 */
#include <errno.h>
#include <stdlib.h>

#include "gpu.h"

struct range {
	struct range *next;
	void *addr;
	size_t len;
	unsigned int users;
	bool foreign;		/* registered by somebody else, who ends it */
	bool abandoned;		/* has no end */
};

static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;

static struct range **find(const void *addr)
{
	struct range **r = &ranges;

	while (*r && (*r)->addr != addr)
		r = &(*r)->next;
	return r;
}

/*
 * Would it be memory that a kernel still has? The ring may have been closed since, and other
 * memory lie at this address: CUDA goes by the address.
 */
static bool is_abandoned(const unsigned char *addr, size_t len)
{
	const struct range *r;

	for (r = ranges; r; r = r->next) {
		const unsigned char *from = r->addr;

		if (r->abandoned && addr < from + r->len && from < addr + len)
			return true;
	}
	return false;
}

static int add(struct rgate_gpu *gpu, void *addr, size_t len, bool readonly)
{
	unsigned int flags = cudaHostRegisterMapped | cudaHostRegisterPortable;
	struct range *r = calloc(1, sizeof(*r));
	cudaError_t err;

	if (!r)
		return rgate_gpu_fail(gpu, -ENOMEM, "no memory");
	if (readonly)
		flags |= cudaHostRegisterReadOnly;
	err = cudaHostRegister(addr, len, flags);
	if (err == cudaErrorHostMemoryAlreadyRegistered) {
		cudaGetLastError();
		r->foreign = true;
	} else if (err) {
		free(r);
		return rgate_gpu_cuda(gpu, err, "cudaHostRegister");
	}
	r->addr = addr;
	r->len = len;
	r->users = 1;
	r->next = ranges;
	ranges = r;
	return 0;
}

int rgate_gpu_host_map(struct rgate_gpu *gpu, void *addr, size_t len, bool readonly,
		       void **device)
{
	struct range *r;
	int err = 0;

	pthread_mutex_lock(&ranges_lock);
	r = *find(addr);
	if (is_abandoned(addr, len))
		err = rgate_gpu_fail(gpu, -EBUSY,
				     "a kernel that did not return has the memory at this address");
	else if (r && r->len != len)
		err = rgate_gpu_fail(gpu, -EEXIST, "other memory is registered at this address");
	else if (r)
		r->users++;
	else
		err = add(gpu, addr, len, readonly);
	pthread_mutex_unlock(&ranges_lock);
	if (err)
		return err;
	err = rgate_gpu_cuda(gpu, cudaHostGetDevicePointer(device, addr, 0),
			     "cudaHostGetDevicePointer");
	if (err)
		rgate_gpu_host_unmap(addr);
	return err;
}

void rgate_gpu_host_abandon(void *addr)
{
	struct range *r;

	pthread_mutex_lock(&ranges_lock);
	r = *find(addr);
	if (r)
		r->abandoned = true;
	pthread_mutex_unlock(&ranges_lock);
}

void rgate_gpu_host_unmap(void *addr)
{
	struct range **link, *r;

	pthread_mutex_lock(&ranges_lock);
	link = find(addr);
	r = *link;
	if (r && !--r->users) {
		*link = r->next;
		if (!r->foreign)
			cudaHostUnregister(addr);
		free(r);
	}
	pthread_mutex_unlock(&ranges_lock);
}
