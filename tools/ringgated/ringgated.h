/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RINGGATED_H
#define RINGGATED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include <ringgate/ringgate.h>

#include "config.h"
#include "limit.h"

struct source {
	struct rgate_ring *ring;
	struct rgate_source *src;	/* NULL: the module fills it */
	bool added;
};

struct daemon {
	struct config conf;
	struct rgate_cluster *cluster;
	struct rgate_cluster_node self;
	uint8_t *key;			/* read before the user was become; NULL: not */
	struct rgate_node *node;
	struct rgate_hub *hub;
	uint64_t began_ns;
	struct limit told[RGATE_NODES_MAX];	/* what the log hears of each peer */
	bool is_daemon[RGATE_NODES_MAX];	/* atomic: said so on its last connection */

	struct rgate_inlet *inlet;	/* of a compute node */

	struct rgate_gateway *gw;	/* of the gateway */
	struct source sources[SOURCES_MAX];
	struct rgate_steer *steer;	/* a copy of the rules, to change */

	struct rgate_spawnd *spawnd;	/* NULL: runs nothing for others */
	pthread_t spawn_thread;
	int spawn_stop;			/* eventfd */

	struct requests *requests;	/* NULL: programs here cannot ask */
	struct agents *agents;		/* NULL: `ringgate run` has one each time */
};

/* daemon.c: the cluster and who we are in it; ... and what has to be made before all else */
int daemon_read_cluster(struct daemon *d);
int daemon_load(struct daemon *d);
void daemon_unload(struct daemon *d);
/* For who will be another user when the node is opened */
int daemon_read_key(struct daemon *d);
/* ... node, hub and what is on it: see module.h */
int daemon_start(struct daemon *d);
void daemon_stop(struct daemon *d);

/* peers.c: on its last connection, if that is over; any thread */
bool peers_is_daemon(const struct daemon *d, uint32_t node);

/* control.c: what is asked over the socket */
struct control;
int control_open(struct control **ctl, struct daemon *d);
void control_close(struct control *ctl);
/* Until @stop_fd is readable; 0 or -errno */
int control_serve(struct control *ctl, int signal_fd);

#endif
