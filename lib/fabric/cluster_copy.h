/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_FABRIC_CLUSTER_COPY_H
#define RGATE_FABRIC_CLUSTER_COPY_H

#include <ringgate/rgate_cluster.h>

/*
 * rgate_cluster_copy - what another process said of its cluster
 * @cluster: out; for rgate_cluster_destroy(). To find nodes in; no node can be made of it
 * @nodes: @n, as rgate_cluster_node() has them
 * 0; -EINVAL: they are none; -ENOMEM
 */
int rgate_cluster_copy(struct rgate_cluster **cluster, uint32_t provider,
		       const struct rgate_cluster_node *nodes, unsigned int n);

#endif
