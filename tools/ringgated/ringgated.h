/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RINGGATED_H
#define RINGGATED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include <ringgate/ringgate.h>

#include "config.h"
#include "json.h"
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
};

/* preflight.c: what the start would refuse, said; before anything is changed */
int preflight(struct daemon *d);

/* daemon.c: the cluster and who we are in it; ... and the spawner, which must be made first */
int daemon_read_cluster(struct daemon *d);
int daemon_load(struct daemon *d);
void daemon_unload(struct daemon *d);
/* For who will be another user when the node is opened */
int daemon_read_key(struct daemon *d);
/* ... node, hub and services */
int daemon_start(struct daemon *d);
void daemon_stop(struct daemon *d);

/* peers.c: the log hears who comes and goes, status who is a daemon */
int peers_watch(struct daemon *d);
/* On its last connection, if that is over; any thread */
bool peers_is_daemon(const struct daemon *d, uint32_t node);
void peers_unwatch(struct daemon *d);

/* gateway.c */
int gateway_start(struct daemon *d);
void gateway_stop(struct daemon *d);
/* Reads the rules' file again; those that hold stay if it is malformed */
int gateway_reload(struct daemon *d);
int rules_check(struct daemon *d);
/* 0, or -errno with words in @why */
int gateway_steer_add(struct daemon *d, const char *before, const char *line, char *why,
		      size_t len);
int gateway_steer_remove(struct daemon *d, const char *name, char *why, size_t len);

/* spawn.c; spawn_prepare() forks: before anything registers memory or makes a thread */
int spawn_prepare(struct daemon *d);
int spawn_start(struct daemon *d);
void spawn_stop(struct daemon *d);
void spawn_destroy(struct daemon *d);	/* of one that was not started */
/* Reads the policy again; the one that holds stays if it is malformed */
int spawn_reload(struct daemon *d);
int spawn_check(struct daemon *d);

/* status.c: what the daemon knows, as JSON or as text */
void status_json(struct daemon *d, FILE *f);
void status_text(struct daemon *d, FILE *f);
void status_counters(struct daemon *d, FILE *f);
void steer_json(struct daemon *d, FILE *f);
void steer_text(struct daemon *d, FILE *f);

/* status_requests.c */
void requests_json(struct daemon *d, struct json *j);
void requests_text(struct daemon *d, FILE *f);

/* control.c: what is asked over the socket */
struct control;
int control_open(struct control **ctl, struct daemon *d);
void control_close(struct control *ctl);
/* Until @stop_fd is readable; 0 or -errno */
int control_serve(struct control *ctl, int signal_fd);

#endif
