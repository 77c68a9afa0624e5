/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What errors mean, by the call that returned them. These are words and not code, so they lie
 * in the lowest layer also for the calls of those above it, and one function finds them all.
 */
#ifndef RGATE_BASE_STRERROR_H
#define RGATE_BASE_STRERROR_H

#include <stdbool.h>

struct rgate_error_row {
	const char *call;	/* the function's name; or, ended by _, what those of an object
				 * begin with. The longest one that fits counts */
	int err;
	bool whole;		/* there is nothing else to say, whatever was logged of it */
	const char *text;	/* one cause, and what to do about it */
};

/* Each ends with a row without a call. */
extern const struct rgate_error_row rgate_errors_ring[], rgate_errors_cluster[],
	rgate_errors_gpu[];

/* Text of such a row, NULL: there is none. @whole: out, may be NULL */
const char *rgate_error_of(const char *call, int err, bool *whole);

#endif
