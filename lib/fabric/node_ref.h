/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Who has a node, for the layers above: what is open of it keeps it. */
#ifndef RGATE_FABRIC_NODE_REF_H
#define RGATE_FABRIC_NODE_REF_H

struct rgate_node;

/* One more has the node; one less, and the last one ends it. Not the node's thread */
void rgate_node_get(struct rgate_node *node);
void rgate_node_put(struct rgate_node *node);

#endif
