// SPDX-License-Identifier: MIT OR GPL-2.0
#include "hist.h"

#define SUB		(1U << RGATE_HIST_SUB_SHIFT)
#define PPM		1000000U

/* Values below SUB have a bucket each; each power of two above has SUB of them. */
static unsigned int bucket_of(uint64_t ns)
{
	unsigned int shift;

	if (ns >> RGATE_HIST_BITS)
		return RGATE_HIST_BUCKETS - 1;
	if (ns < SUB)
		return (unsigned int)ns;
	shift = 63 - RGATE_HIST_SUB_SHIFT - (unsigned int)__builtin_clzll(ns);
	return ((shift + 1) << RGATE_HIST_SUB_SHIFT) + ((unsigned int)(ns >> shift) & (SUB - 1));
}

/* The largest value that falls into bucket @i */
static uint64_t end_of(unsigned int i)
{
	unsigned int shift;

	if (i < SUB)
		return i;
	shift = (i >> RGATE_HIST_SUB_SHIFT) - 1;
	return ((uint64_t)(SUB + (i & (SUB - 1)) + 1) << shift) - 1;
}

static void raise_bucket(uint32_t *bucket, uint32_t by)
{
	*bucket = by > UINT32_MAX - *bucket ? UINT32_MAX : *bucket + by;
}

void rgate_hist_add(struct rgate_hist *hist, uint64_t ns)
{
	if (!hist->count || ns < hist->min)
		hist->min = ns;
	if (ns > hist->max)
		hist->max = ns;
	hist->count++;
	hist->sum += ns;
	raise_bucket(&hist->bucket[bucket_of(ns)], 1);
}

uint64_t rgate_hist_at(const struct rgate_hist *hist, uint32_t ppm)
{
	uint64_t want, seen = 0, end;
	unsigned int i;

	if (!hist->count)
		return 0;
	/* rounded up: at least one, at most all */
	want = hist->count / PPM * ppm + (hist->count % PPM * ppm + PPM - 1) / PPM;
	if (!want)
		return hist->min;
	for (i = 0; i < RGATE_HIST_BUCKETS - 1; i++) {
		seen += hist->bucket[i];
		if (seen < want)
			continue;
		end = end_of(i);
		return end < hist->max ? end : hist->max;
	}
	return hist->max;
}

void rgate_hist_merge(struct rgate_hist *to, const struct rgate_hist *from)
{
	unsigned int i;

	if (!from->count)
		return;
	if (!to->count || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->count += from->count;
	to->sum += from->sum;
	for (i = 0; i < RGATE_HIST_BUCKETS; i++)
		raise_bucket(&to->bucket[i], from->bucket[i]);
}
