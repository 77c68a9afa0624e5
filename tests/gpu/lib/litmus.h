/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Litmus tests of the hand-overs in the device's headers: many at once, by the functions of the
 * library itself, which litmus_variant.cuh compiles once as they are, and again with mistakes.
 */
#ifndef LITMUS_H
#define LITMUS_H

#include <stdint.h>

enum lit_place {
	LIT_SAME_WARP,		/* two lanes */
	LIT_SAME_BLOCK,
	LIT_OTHER_BLOCK,
	LIT_OTHER_FAR,		/* likewise, with what is handed over in the host's memory */
	LIT_PLACES
};

enum lit_kind {
	LIT_AS_IT_IS,
	LIT_NO_ACQUIRE,		/* acquires are relaxed; what also releases, and fences, do that */
	LIT_NO_RELEASE,		/* each release is relaxed, and there are no fences */
	LIT_NARROW,		/* the order of what has scope gpu or sys holds in a block only */
	LIT_RELAXED,		/* neither acquires nor releases nor fences */
	LIT_KINDS
};

/* What came out; in the device's memory, or of a thread of the host */
struct lit_seen {
	unsigned long long good;	/* hand-overs as they have to be */
	unsigned long long stale;	/* the word came before what it stands for */
	unsigned long long early;	/* memory was written again before it was read */
	unsigned long long lost;	/* words that say themselves what cannot be */
	unsigned long long hung;	/* threads that gave up waiting */
	unsigned long long ahead;	/* slots not there, of a batch whose end was */
	unsigned long long done;	/* threads of the test that are through */
};

struct lit_how {
	enum lit_place place;
	uint32_t rounds;
	uint32_t blocks;
	uint32_t threads;	/* of each; those that have nothing to do make noise */
	uint32_t *noise;	/* LIT_NOISE words of the device's memory */
};

#define LIT_NOISE	(1U << 22)	/* words */
#define LIT_WAIT_NS	4000000000ULL

#endif
