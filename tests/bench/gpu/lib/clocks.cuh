/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The GPU's clock against CLOCK_MONOTONIC: the CPU asks, the GPU answers with its time;
 * the answer that came soonest counts, and is taken to be of the middle of its way.
 */
#ifndef CLOCKS_CUH
#define CLOCKS_CUH

#include <ringgate/gpu/port.cuh>

#include <string.h>

#include "gbench.h"

#define CLOCK_ROUNDS	5000U

struct b_clocks {
	uint64_t at;		/* CLOCK_MONOTONIC */
	int64_t offset;		/* that less the GPU's */
	uint64_t error;		/* at most */
};

struct b_clock_words {
	uint64_t to;
	uint64_t pad[15];
	uint64_t back;
	uint64_t time;
};

static __global__ void b_clock_kernel(struct b_clock_words *w)
{
	uint64_t n;

	for (n = 1; n <= CLOCK_ROUNDS; n++) {
		while (rgate_dsys_acquire(&w->to) != n)
			;
		rgate_dsys_store(&w->time, rgate_dnow());
		rgate_dsys_release(&w->back, n);
	}
}

/* While no kernel stays on the device */
static inline struct b_clocks b_clocks_compare(void)
{
	struct b_clocks c = { 0, 0, UINT64_MAX };
	struct b_clock_words *w;
	uint64_t n;

	b_require(!cudaHostAlloc((void **)&w, sizeof(*w), cudaHostAllocMapped));
	memset(w, 0, sizeof(*w));
	b_clock_kernel<<<1, 1>>>(w);
	b_require(!cudaGetLastError());
	for (n = 1; n <= CLOCK_ROUNDS; n++) {
		uint64_t t0 = b_now_ns(), t1;

		__atomic_store_n(&w->to, n, __ATOMIC_RELEASE);
		while (__atomic_load_n(&w->back, __ATOMIC_ACQUIRE) != n)
			;
		t1 = b_now_ns();
		if ((t1 - t0) / 2 < c.error) {
			c.error = (t1 - t0) / 2;
			c.at = t0 + c.error;
			c.offset = (int64_t)(c.at - w->time);
		}
	}
	b_require(!cudaDeviceSynchronize());
	cudaFreeHost(w);
	return c;
}

/* The offset at @at, between two comparisons: clocks drift */
static inline int64_t b_clocks_offset(const struct b_clocks *a, const struct b_clocks *b,
				      uint64_t at)
{
	double part = (double)(int64_t)(at - a->at) / (double)(b->at - a->at);

	return a->offset + (int64_t)((double)(b->offset - a->offset) * part);
}

#endif
