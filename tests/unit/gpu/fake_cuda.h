/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * CUDA that is not there: what lib/gpu calls of its runtime and driver, for several devices
 * in memory of this process. Unit tests of the runtime are linked with these, and without
 * libcuda. A current device is each thread's own; kernels run on threads, with the device's
 * code compiled for this CPU, and return when they are done.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#define FAKE_DEVICES	3

struct fake_device {
	unsigned int mallocs;	/* there now */
	unsigned int streams;	/* likewise */
	unsigned int made;	/* cudaMalloc() and cudaStreamCreate(), ever */
	unsigned int launches;	/* ever */
};

/* All are atomic: the runtime's thread is at it, too */
extern struct fake_cuda {
	struct fake_device dev[FAKE_DEVICES];
	unsigned int registered;	/* ranges of the host's memory, now */
	unsigned int hosts;		/* cudaHostAlloc(), now */
	unsigned int strays;		/* launches on another device than the stream's */
	/* Failures: the n-th call from now on (1: the next), once; 0: none */
	unsigned int fail_malloc, fail_register, fail_launch, fail_host_func;
	unsigned int room;		/* threads on a multiprocessor; 0: those of 8 blocks */
	unsigned int fault;		/* cudaError_t that streams tell from now on */
} fake;

/* Waits for the kernels of streams that were never destroyed */
void fake_join(void);
/* No failures; and after a test: nothing is left, nothing went astray */
int fake_setup(void **state);
int fake_teardown(void **state);

#endif
