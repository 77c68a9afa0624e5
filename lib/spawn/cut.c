// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>

#include "cut.h"
#include "node.h"

void rgate_spawn_cut(struct rgate_peer *peer)
{
	pthread_mutex_lock(&peer->lock);
	if (peer->link)
		rgate_link_fail(peer->link, -ETIMEDOUT);
	pthread_mutex_unlock(&peer->lock);
	rgate_node_wake(peer->node);
}
