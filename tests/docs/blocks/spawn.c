// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The program of spawn.rst as it stands there (BLOCK_1), as the node RGATE_NODE names:
 * runs what its arguments say at the gateway, and prints its output.
 */
#include <errno.h>
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <stdlib.h>

static struct rgate_node *node;
static struct rgate_peer *peer;

static int program(const char *const *argv)
{
	struct rgate_spawn_result result = RGATE_OPTS(rgate_spawn_result);
	struct rgate_spawn_job *job;
	struct rgate_spawn *spawn;
	char buf[4096];
	ssize_t n;
	int err;

#include BLOCK_1
	fprintf(stderr, "exit code %d\n", result.exit_code);
	rgate_spawn_close(spawn);
	return err;
}

int main(int argc, char **argv)
{
	struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 8 << 20,
						 .access = RGATE_ACCESS_REMOTE);
	struct rgate_node_opts opts = RGATE_OPTS(rgate_node_opts, .pool = &pool);
	const char *self = getenv("RGATE_NODE");
	struct rgate_cluster_node me = RGATE_OPTS(rgate_cluster_node);
	struct rgate_cluster *cluster;
	int err;

	if (argc < 2 || !self)
		return 2;
	err = rgate_cluster_load(&cluster, NULL);
	if (!err)
		err = rgate_cluster_find(cluster, self, &me);
	if (!err)
		err = rgate_node_create(&node, cluster, me.id, &opts);
	if (!err)
		err = rgate_peer_open(&peer, node, 0);
	if (!err)
		err = rgate_peer_wait_up(peer, 10000);
	if (!err)
		err = program((const char *const *)argv + 1);
	if (err)
		fprintf(stderr, "%s\n", rgate_strerror("rgate_spawn_", err));
	return !!err;
}
