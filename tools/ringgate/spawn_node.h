/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A node of the cluster for as long as a command runs, and the nodes it asks. */
#ifndef SPAWN_NODE_H
#define SPAWN_NODE_H

#include <argp.h>

#include <ringgate/rgate_spawn.h>

struct spawn_opts {
	const char *cluster;		/* file, NULL: as usual */
	const char *as;			/* node that this is; NULL: environment RGATE_NODE */
	const char *node;		/* that is asked; NULL: the gateway */
	bool all;
};

#define OPT_CLUSTER	{ "cluster", 'C', "FILE", 0, "The cluster's file", 0 }
#define OPT_AS		{ "as", 'A', "NODE", 0, "Which node this is, one of its own " \
			  "(default: environment RGATE_NODE)", 0 }
#define OPT_NODE	{ "node", 'n', "NODE", 0, "Ask that node (default: the gateway)", 0 }
#define OPT_ALL		{ "all", 'a', NULL, 0, "Ask every other node", 0 }

/* 0: it was one of these options */
error_t spawn_parse_opt(struct spawn_opts *o, int key, char *arg);

struct spawn_target {
	struct rgate_cluster_node to;
	struct rgate_peer *peer;
	struct rgate_spawn *spawn;
	bool up;			/* the node answered */
	int err;			/* why there is no @spawn, -errno */
};

struct spawn_node {
	struct rgate_cluster *cluster;
	struct rgate_node *node;
	struct spawn_target target[RGATE_NODES_MAX];
	unsigned int n;
};

/* EXIT_OK, or what to exit with, after a message. With @o->all a node that cannot be
 * reached is no error: its target has none. */
int spawn_node_open(struct spawn_node *sn, const struct spawn_opts *o);
void spawn_node_close(struct spawn_node *sn);

#define SPAWN_TIMEOUT	5000	/* ms, to connect and for a first answer */

/* Numbers of processes, as they are shown and typed: 1a2b3c4d-17 */
#define SPAWN_ID	24
const char *spawn_id_text(uint64_t id, char buf[SPAWN_ID]);
int spawn_id_parse(const char *text, uint64_t *id);

#endif
