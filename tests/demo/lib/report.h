/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* One line of JSON: what a consumer got, and what the ring counted. */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include <ringgate/ringgate.h>

#include "result.h"

/* @src: NULL for a ring of the module */
void report_ring(struct result *r, const struct rgate_stats *st,
		 const struct rgate_source_stats *src);

#endif
