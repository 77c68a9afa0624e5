/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Who has a hub, for the services above: who goes on with its peers, or its node, keeps it. */
#ifndef RGATE_CLUSTER_HUB_REF_H
#define RGATE_CLUSTER_HUB_REF_H

struct rgate_hub;

/* One more has the hub; one less, and the last one ends it. Not the hub's thread */
void rgate_hub_get(struct rgate_hub *hub);
void rgate_hub_put(struct rgate_hub *hub);

#endif
