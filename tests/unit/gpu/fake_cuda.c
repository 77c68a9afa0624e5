// SPDX-License-Identifier: MIT OR GPL-2.0
#include "fake_cuda.h"

#include <cuda.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <ringgate/gpu/context.cuh>

#define FUNCS	8	/* of the host's, behind one kernel */

struct alloc {
	struct alloc *next;
	int device;
	/* the memory follows */
} __attribute__((aligned(16)));

struct CUstream_st {
	struct CUstream_st *next;
	int device;
	pthread_mutex_t lock;		/* all below */
	pthread_cond_t done;
	bool busy;			/* a kernel is on it */
	pthread_t thread;
	bool joinable;
	void (*body)(const struct rgate_dctx *ctx);
	struct rgate_dctx ctx;
	unsigned int funcs;
	struct {
		cudaHostFn_t fn;
		void *arg;
	} func[FUNCS];
};

struct fake_cuda fake;

static _Thread_local int current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct alloc *allocs;
static struct CUstream_st *streams;

static unsigned int get(const unsigned int *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void add(unsigned int *p, unsigned int n)
{
	__atomic_fetch_add(p, n, __ATOMIC_ACQ_REL);
}

/* Is this the call that is to fail? */
static bool fails(unsigned int *n)
{
	unsigned int was = get(n);

	while (was && !__atomic_compare_exchange_n(n, &was, was - 1, false, __ATOMIC_ACQ_REL,
						   __ATOMIC_ACQUIRE))
		;
	return was == 1;
}

static struct fake_device *device(void)
{
	return &fake.dev[current];
}

/*
 * Devices
 */

cudaError_t cudaDriverGetVersion(int *version)
{
	*version = 13000;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *n)
{
	*n = FAKE_DEVICES;
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *dev)
{
	*dev = current;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int dev)
{
	if (dev < 0 || dev >= FAKE_DEVICES)
		return cudaErrorInvalidDevice;
	current = dev;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int dev)
{
	if (dev < 0 || dev >= FAKE_DEVICES)
		return cudaErrorInvalidDevice;
	memset(prop, 0, sizeof(*prop));
	strcpy(prop->name, "fake");
	prop->major = 9;
	prop->canMapHostMemory = 1;
	prop->cooperativeLaunch = 1;
	prop->sharedMemPerBlockOptin = 227 << 10;
	prop->multiProcessorCount = 4;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int dev)
{
	(void)dev;
	*value = attr == cudaDevAttrHostRegisterReadOnlySupported;
	return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t err)
{
	return err ? "cudaErrorOfTheTest" : "cudaSuccess";
}

const char *cudaGetErrorString(cudaError_t err)
{
	return err ? "as the test wants it" : "no error";
}

/*
 * Memory: the devices' is the host's
 */

cudaError_t cudaMalloc(void **p, size_t len)
{
	struct alloc *a;

	*p = NULL;
	if (fails(&fake.fail_malloc))
		return cudaErrorMemoryAllocation;
	a = calloc(1, sizeof(*a) + len);
	if (!a)
		return cudaErrorMemoryAllocation;
	a->device = current;
	pthread_mutex_lock(&lock);
	a->next = allocs;
	allocs = a;
	pthread_mutex_unlock(&lock);
	add(&device()->mallocs, 1);
	add(&device()->made, 1);
	*p = a + 1;
	return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
	struct alloc **link, *a;

	if (!p)
		return cudaSuccess;
	pthread_mutex_lock(&lock);
	for (link = &allocs; *link && *link + 1 != p; link = &(*link)->next)
		;
	a = *link;
	unit_require(a);
	*link = a->next;
	pthread_mutex_unlock(&lock);
	add(&fake.dev[a->device].mallocs, -1U);
	free(a);
	return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t len, enum cudaMemcpyKind kind)
{
	(void)kind;
	memcpy(to, from, len);
	return cudaSuccess;
}

cudaError_t cudaMemset(void *p, int c, size_t len)
{
	memset(p, c, len);
	return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **p, size_t len, unsigned int flags)
{
	(void)flags;
	*p = aligned_alloc(4096, (len + 4095) & ~(size_t)4095);
	if (!*p)
		return cudaErrorMemoryAllocation;
	add(&fake.hosts, 1);
	return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
	if (p)
		add(&fake.hosts, -1U);
	free(p);
	return cudaSuccess;
}

cudaError_t cudaHostRegister(void *p, size_t len, unsigned int flags)
{
	(void)p;
	(void)len;
	(void)flags;
	if (fails(&fake.fail_register))
		return cudaErrorUnknown;
	add(&fake.registered, 1);
	return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *p)
{
	(void)p;
	add(&fake.registered, -1U);
	return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **dev, void *p, unsigned int flags)
{
	(void)flags;
	*dev = p;
	return cudaSuccess;
}

/*
 * Streams, and kernels on them
 */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	struct CUstream_st *s = calloc(1, sizeof(*s));

	(void)flags;
	if (!s)
		return cudaErrorMemoryAllocation;
	s->device = current;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->done, NULL);
	pthread_mutex_lock(&lock);
	s->next = streams;
	streams = s;
	pthread_mutex_unlock(&lock);
	add(&device()->streams, 1);
	add(&device()->made, 1);
	*stream = s;
	return cudaSuccess;
}

/* With the lock held: the thread of the last kernel is not needed any longer */
static void join_last(struct CUstream_st *s)
{
	if (s->joinable)
		pthread_join(s->thread, NULL);
	s->joinable = false;
}

void fake_join(void)
{
	struct CUstream_st *s;

	for (s = streams; s; s = s->next)
		join_last(s);
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
	struct CUstream_st **link;

	unit_require(!s->busy);
	pthread_mutex_lock(&lock);
	for (link = &streams; *link != s; link = &(*link)->next)
		;
	*link = s->next;
	pthread_mutex_unlock(&lock);
	join_last(s);
	add(&fake.dev[s->device].streams, -1U);
	pthread_cond_destroy(&s->done);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
	pthread_mutex_lock(&s->lock);
	while (s->busy && !get(&fake.fault))
		pthread_cond_wait(&s->done, &s->lock);
	pthread_mutex_unlock(&s->lock);
	return (cudaError_t)get(&fake.fault);
}

cudaError_t cudaStreamQuery(cudaStream_t s)
{
	bool busy;

	pthread_mutex_lock(&s->lock);
	busy = s->busy;
	pthread_mutex_unlock(&s->lock);
	if (get(&fake.fault))
		return (cudaError_t)get(&fake.fault);
	return busy ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t fn, void *arg)
{
	bool busy;

	if (fails(&fake.fail_host_func))
		return cudaErrorUnknown;
	pthread_mutex_lock(&s->lock);
	busy = s->busy;
	if (busy) {
		unit_require(s->funcs < FUNCS);
		s->func[s->funcs].fn = fn;
		s->func[s->funcs++].arg = arg;
	}
	pthread_mutex_unlock(&s->lock);
	if (!busy)
		fn(arg);
	return cudaSuccess;
}

static void *kernel_main(void *arg)
{
	struct CUstream_st *s = arg;
	unsigned int i;

	s->body(&s->ctx);
	pthread_mutex_lock(&s->lock);
	for (i = 0; i < s->funcs; i++)
		s->func[i].fn(s->func[i].arg);
	s->funcs = 0;
	s->busy = false;
	pthread_cond_broadcast(&s->done);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static CUresult CUDAAPI launch(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
			       unsigned int bx, unsigned int by, unsigned int bz,
			       unsigned int shared, CUstream s, void **args)
{
	(void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
	if (s->device != current)
		add(&fake.strays, 1);
	if (fails(&fake.fail_launch))
		return CUDA_ERROR_UNKNOWN;
	add(&fake.dev[s->device].launches, 1);
	/* one kernel at a time is on it */
	cudaStreamSynchronize(s);
	pthread_mutex_lock(&s->lock);
	join_last(s);
	memcpy(&s->body, &f, sizeof(s->body));
	memcpy(&s->ctx, args[0], sizeof(s->ctx));
	s->busy = s->joinable = true;
	unit_require(!pthread_create(&s->thread, NULL, kernel_main, s));
	pthread_mutex_unlock(&s->lock);
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI set_attribute(CUfunction f, CUfunction_attribute attr, int value)
{
	(void)f, (void)attr, (void)value;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI occupancy(int *blocks, CUfunction f, int threads, size_t shared)
{
	(void)f;
	(void)shared;
	*blocks = fake.room ? (int)fake.room / threads : 8;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI error_string(CUresult err, const char **text)
{
	(void)err;
	*text = "as the test wants it";
	return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **fn, unsigned int version,
					     unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *found)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} entries[] = {
		{ "cuLaunchCooperativeKernel", (void (*)(void))launch },
		{ "cuFuncSetAttribute", (void (*)(void))set_attribute },
		{ "cuOccupancyMaxActiveBlocksPerMultiprocessor", (void (*)(void))occupancy },
		{ "cuGetErrorString", (void (*)(void))error_string },
	};
	size_t i;

	(void)version;
	(void)flags;
	for (i = 0; i < ARRAY_LEN(entries); i++)
		if (!strcmp(name, entries[i].name)) {
			memcpy(fn, &entries[i].fn, sizeof(*fn));
			*found = cudaDriverEntryPointSuccess;
			return cudaSuccess;
		}
	*found = cudaDriverEntryPointSymbolNotFound;
	return cudaSuccess;
}

int fake_setup(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	current = 0;
	return 0;
}

int fake_teardown(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < FAKE_DEVICES; i++)
		if (get(&fake.dev[i].mallocs) || get(&fake.dev[i].streams))
			return -1;
	return get(&fake.registered) || get(&fake.hosts) || get(&fake.strays) ? -1 : 0;
}
