/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* One line of JSON: what a consumer got, and what the ring counted. */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include <ringgate/ringgate.h>

#include "result.h"

/* CPU time before the sender begins and after the last frame */
struct report_cpu {
	uint64_t own_us[2];	/* of the processes that receive */
	uint64_t all_us[2];	/* of the machine */
};

/* @src: NULL for a ring of the module */
void report_ring(struct result *r, const struct rgate_stats *st,
		 const struct rgate_source_stats *src, const struct report_cpu *cpu);
/* ,"cpu_us":...,"machine_us":... */
void report_cpu(const struct report_cpu *cpu);

#endif
