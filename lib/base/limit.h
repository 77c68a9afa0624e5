/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* How often something may be said, or done: a bucket of tokens, which peers cannot empty for
 * others than themselves if each has its own. */
#ifndef RGATE_LIB_LIMIT_H
#define RGATE_LIB_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct limit {
	uint64_t at;		/* CLOCK_MONOTONIC ns: filled up to here; 0: full */
	unsigned int left;
	unsigned int swallowed;	/* since it was last passed */
};

/*
 * limit_pass - may it be now?
 * @l: zeroed at first; the caller's lock protects it
 * @burst: how much at once; @each_ns: one more in so long
 * @swallowed: out, if it may: how often the answer was no since the last yes
 */
bool limit_pass(struct limit *l, unsigned int burst, uint64_t each_ns, uint64_t now,
		unsigned int *swallowed);

/* It was not done: what was passed for it may be again. @l was not passed by anybody else since. */
void limit_back(struct limit *l);

#endif
