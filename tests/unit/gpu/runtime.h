/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A runtime with rings of this process, for tests on a CUDA of their own. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include "fake_kernel.h"

#include <ringgate/rgate_producer.h>

#define RUNTIME_RINGS	4U

struct runtime {
	struct rgate_gpu *gpu;
	struct rgate_gpu_opts opts;
	struct rgate_gpu_start_opts start;
	unsigned int rings;
	struct rgate_ring *ring[RUNTIME_RINGS];
	struct rgate_producer p[RUNTIME_RINGS];
	uint64_t next[RUNTIME_RINGS];	/* number of the frame to come */
};

/* A time after which something is wrong, in ms */
int runtime_ms(void);

/* A runtime on @device with @rings rings of @slots slots, and their producers */
void runtime_open(struct runtime *r, uint32_t device, unsigned int rings, uint32_t slots);
/* Only what is there of it before the runtime: r->opts are the test's to change */
void runtime_prepare(struct runtime *r, uint32_t device);
void runtime_begin(struct runtime *r, unsigned int rings, uint32_t slots);
void runtime_close(struct runtime *r);
/* All but the runtime, which is closed */
void runtime_end(struct runtime *r);

/* Publishes @n frames of unit_pattern() in ring @i, waiting for room */
void runtime_put(struct runtime *r, unsigned int i, unsigned int n);

uint32_t runtime_state(struct runtime *r);
uint64_t runtime_launches(struct runtime *r);

/* Until @c is true: what is waited for has to come */
#define runtime_until(c) \
	do { \
		uint64_t end_ = unit_now_ns() + (uint64_t)runtime_ms() * 1000000; \
		while (!(c)) { \
			if (unit_now_ns() > end_) \
				fail_msg("not in time: %s", #c); \
			usleep(200); \
		} \
	} while (0)

#endif
