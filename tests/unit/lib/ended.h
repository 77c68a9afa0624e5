/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What is ended, and whether it was as it should be before */
#ifndef ENDED_H
#define ENDED_H

#include <unistd.h>

#include <ringgate/rgate_node.h>
#include <ringgate/rgate_source.h>

/* 0: nothing of it was held */
static inline int pool_ended(struct rgate_pool *pool)
{
	struct rgate_pool_stats st = { .sz = sizeof(st) };

	if (pool)
		(void)rgate_pool_stats(pool, &st);
	rgate_pool_destroy(pool);
	return st.used_buffers ? -1 : 0;
}

/* 0: nothing of it was in use. Handshakes that others begin hold buffers for a moment. */
static inline int node_ended(struct rgate_node *node)
{
	struct rgate_node_stats st = { .sz = sizeof(st) };
	unsigned int ms = 5000;

	while (node && !rgate_node_stats(node, &st) && st.buffers && ms--)
		usleep(1000);
	rgate_node_destroy(node);
	return st.peers || st.shares || st.buffers ? -1 : 0;
}

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
