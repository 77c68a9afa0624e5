// SPDX-License-Identifier: MIT OR GPL-2.0
/* The cluster file, for who makes its keys. */
#include "cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "cmd.h"
#include "util.h"

#define DEFAULT_PATH	"/etc/ringgate/cluster.conf"

const char *cluster_path(const char *path)
{
	const char *env = getenv("RGATE_CLUSTER");

	if (path)
		return path;
	return env && *env ? env : DEFAULT_PATH;
}

int cluster_load(struct rgate_cluster **cluster, const char *path)
{
	int err = rgate_cluster_load_draft(cluster, path);

	return err ? fail(err, "cannot use the cluster file") : EXIT_OK;
}

bool cluster_has_key(const struct rgate_cluster_node *node)
{
	static const uint8_t none[RGATE_KEY_LEN];

	return memcmp(node->public_key, none, sizeof(none));
}

/* The one node whose address this machine has; processes of one machine have none. */
static int by_address(const struct rgate_cluster *cluster, struct rgate_cluster_node *node)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	unsigned int i, found = 0;

	for (i = 0; !rgate_cluster_node(cluster, i, &n); i++)
		if (address_is_here(n.addr)) {
			*node = n;
			found++;
		}
	return found == 1 ? 0 : -ENOENT;
}

int cluster_self(const struct rgate_cluster *cluster, const char *name,
		 struct rgate_cluster_node *node)
{
	if (!name)
		name = getenv("RGATE_NODE");
	if (!name || !*name)
		return by_address(cluster, node);
	node->sz = sizeof(*node);
	return rgate_cluster_find(cluster, name, node);
}
