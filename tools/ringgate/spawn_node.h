/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The nodes that a command asks: through the daemon of this machine, or, where it was told
 * which node of the cluster it is, as that node for as long as it runs.
 */
#ifndef SPAWN_NODE_H
#define SPAWN_NODE_H

#include <argp.h>

#include <ringgate/rgate_spawn.h>

struct spawn_opts {
	const char *cluster;		/* file, NULL: as usual */
	const char *as;			/* node that this is; NULL: RGATE_NODE, or none */
	const char *socket;		/* of the daemon; NULL: as usual */
	const struct rgate_spawn_request *request; /* that will be made; NULL: none */
	const char *node;		/* that is asked; NULL: the gateway */
	bool all;
};

#define OPT_CLUSTER	{ "cluster", 'C', "FILE", 0, "The cluster's file", 0 }
#define OPT_AS		{ "as", 'A', "NODE", 0, "Be that node of the cluster oneself, instead of " \
			  "asking the daemon (default: environment RGATE_NODE)", 0 }
#define OPT_SOCKET	{ "socket", 'S', "PATH", 0, "The daemon's socket of requests", 0 }
#define OPT_NODE	{ "node", 'n', "NODE", 0, "Ask that node (default: the gateway)", 0 }
#define OPT_ALL		{ "all", 'a', NULL, 0, "Ask every other node", 0 }

/* 0: it was one of these options */
error_t spawn_parse_opt(struct spawn_opts *o, int key, char *arg);

struct spawn_ask;

struct spawn_target {
	struct rgate_cluster_node to;
	bool up;			/* the node answered */
	int err;			/* why it cannot be asked, -errno */
	struct spawn_ask *ask;		/* through the daemon; */
	struct rgate_peer *peer;	/* as a node */
	struct rgate_spawn *spawn;
};

/* It can be asked */
static inline bool spawn_is_there(const struct spawn_target *t)
{
	return t->ask || t->spawn;
}

/*
 * What is asked of a target, and of a job there, which is the one's or the other's: as the
 * functions of rgate_spawn.h, without waiting but for those with a time.
 */
struct spawn_way {
	int (*start)(struct spawn_target *t, const struct rgate_spawn_request *req, void **job);
	int (*attach)(struct spawn_target *t, uint64_t id, uint32_t ring_bytes, void **job);
	ssize_t (*read)(void *job, int stream, void *buf, size_t len);
	ssize_t (*write)(void *job, const void *buf, size_t len);
	int (*close_stdin)(void *job);
	int (*wait)(void *job, struct rgate_spawn_result *r, int timeout_ms);
	int (*result)(void *job, struct rgate_spawn_result *r);
	int (*signal)(void *job, int signal, enum rgate_spawn_scope scope);
	int (*detach)(void *job, int timeout_ms);
	void (*close)(void *job);
	int (*list)(struct spawn_target *t,
		    int (*fn)(void *ctx, const struct rgate_spawn_info *info), void *ctx,
		    int timeout_ms);
	int (*kill)(struct spawn_target *t, uint64_t id, int signal,
		    enum rgate_spawn_scope scope, int timeout_ms);
	/* To be waited for; -1: not now, there is something to take */
	int (*fd)(struct spawn_target *t);
	/* Takes what came; */
	void (*process)(struct spawn_target *t);
	/* true: the target's job has news that were not told yet */
	bool (*next)(struct spawn_target *t);
};

extern const struct spawn_way spawn_way_node, spawn_way_ask;

struct spawn_node {
	const struct spawn_way *way;
	struct spawn_ask *ask;		/* NULL: as a node */
	struct rgate_cluster *cluster;
	struct rgate_node *node;
	struct spawn_target target[RGATE_NODES_MAX];
	unsigned int n;
};

/* EXIT_OK, or what to exit with, after a message. With @o->all a node that cannot be
 * reached is no error: it is not there. */
int spawn_node_open(struct spawn_node *sn, const struct spawn_opts *o);
void spawn_node_close(struct spawn_node *sn);
/* Of node @id: its name, or its number */
void spawn_node_name(const struct spawn_node *sn, uint32_t id, char name[32]);

#define SPAWN_TIMEOUT	5000	/* ms, to connect and for a first answer */

/* Numbers of processes, as they are shown and typed: 1a2b3c4d-17 */
#define SPAWN_ID	24
const char *spawn_id_text(uint64_t id, char buf[SPAWN_ID]);
int spawn_id_parse(const char *text, uint64_t *id);

#endif
