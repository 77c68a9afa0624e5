/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A ring in memory between two threads of this process, timed. */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>

struct bench_opts {
	uint32_t slots;
	uint32_t slot_size;
	int cpu[2];		/* of producer and consumer; -1: not pinned */
	uint64_t time_ns;	/* of one measurement */
	uint32_t yield;		/* one CPU only: give way instead of spinning */
};

struct bench_rate {
	uint32_t size;		/* bytes of a frame */
	uint64_t frames;
	double seconds;
	uint64_t full;		/* times the producer found no room */
};

struct bench_latency {
	uint64_t samples;
	uint32_t p50, p90, p99, p999, max;	/* ns */
	uint32_t clock;		/* ns that reading the clock takes, in each of
				 * the above once */
};

/*
 * bench_rate - frames of r->size bytes as fast as they go
 * The producer copies each frame in, the consumer copies it out and checks its
 * number at both ends. 0, -EBADMSG: a frame came out wrong, or -errno
 */
int bench_rate(const struct bench_opts *o, struct bench_rate *r);

/* bench_latency - from before publishing one slot until a polling consumer has
 * seen it, one frame at a time. 0 or -errno */
int bench_latency(const struct bench_opts *o, struct bench_latency *l);

/* The command `ringgate bench gpu` */
int bench_gpu(int argc, char **argv);

#endif
