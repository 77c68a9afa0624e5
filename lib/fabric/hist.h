/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Counts of durations in fixed memory: buckets of 1/32 of their power of two, so that
 * a percentile is at most 3.2 % too high, from 1 ns to about 36 minutes (longer
 * ones are counted in the last bucket). After HdrHistogram. One writer at a time.
 */
#ifndef RGATE_FABRIC_HIST_H
#define RGATE_FABRIC_HIST_H

#include <stdint.h>

#define RGATE_HIST_SUB_SHIFT	5
#define RGATE_HIST_BITS		41
#define RGATE_HIST_BUCKETS	\
	((RGATE_HIST_BITS - RGATE_HIST_SUB_SHIFT + 1) << RGATE_HIST_SUB_SHIFT)

struct rgate_hist {
	uint64_t count;
	uint64_t min;
	uint64_t max;
	uint64_t sum;
	uint32_t bucket[RGATE_HIST_BUCKETS];	/* saturate */
};

void rgate_hist_add(struct rgate_hist *hist, uint64_t ns);
/* The value that @ppm millionths of all are not above (the upper end of its bucket, but
 * not above max); 0 where there is none */
uint64_t rgate_hist_at(const struct rgate_hist *hist, uint32_t ppm);
void rgate_hist_merge(struct rgate_hist *to, const struct rgate_hist *from);

#endif
