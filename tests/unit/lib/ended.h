/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The end of a source, and why it ended before */
#ifndef ENDED_H
#define ENDED_H

#include <ringgate/rgate_source.h>

/* -errno, or 0: it had not ended */
static inline int source_ended(struct rgate_source *src)
{
	struct rgate_source_stats st = { .error = 0 };

	if (src)
		(void)rgate_source_stats(src, &st);
	rgate_source_stop(src);
	return (int)st.error;
}

#endif
