/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What --mr-limit has found, and how it is shown. */
#ifndef PROBE_LIMIT_H
#define PROBE_LIMIT_H

#include "probe.h"

struct rgate_mem;

enum limit_stop {
	STOP_REFUSED,		/* by the device */
	STOP_SET,		/* by a limit that was set in software */
	STOP_MAX,
	STOP_TIME,
	STOP_MEMORY,
	STOP_SIGNAL,
};

struct limit_cost {
	uint32_t min, median, p99, max;		/* ns */
};

struct limit_result {
	const struct rgate_device_info *info;
	const struct probe_limit_opts *opts;
	uint32_t set_limit;	/* rgate_device_mr_limit() */
	uint32_t registered, deregistered, left;
	enum limit_stop stop;
	int err;		/* with STOP_REFUSED, STOP_SET */
	char said[PROBE_TEXT];
	uint64_t time_ns;	/* of registering */
	struct limit_cost reg, dereg;
	double slab, memory;	/* bytes of the kernel, a region */
};

void limit_print(const struct limit_result *r);

#endif
