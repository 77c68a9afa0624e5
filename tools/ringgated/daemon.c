// SPDX-License-Identifier: MIT OR GPL-2.0
/* The node that the daemon is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "module.h"
#include "preflight.h"
#include "util.h"

#define SEND_DEPTH	4096	/* operations outstanding to a peer */
#define MSG_DEPTH	256

/* The one node whose address this machine has */
static int by_address(struct daemon *d)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	unsigned int i, found = 0;

	for (i = 0; !rgate_cluster_node(d->cluster, i, &n); i++)
		if (address_is_here(n.addr)) {
			d->self = n;
			found++;
		}
	if (found == 1)
		return 0;
	say("%s node of the cluster has an address of this machine: say which one it is, by --node",
	    found ? "more than one" : "no");
	return -ENOENT;
}

static int who_am_i(struct daemon *d)
{
	int err;

	if (!d->conf.node)
		return by_address(d);
	d->self.sz = sizeof(d->self);
	err = rgate_cluster_find(d->cluster, d->conf.node, &d->self);
	if (err)
		say("the cluster has no node '%s'", d->conf.node);
	return err;
}

/* The node has its own copy, where it is safer. */
static void forget_key(struct daemon *d)
{
	if (d->key)
		explicit_bzero(d->key, RGATE_KEY_LEN);
	free(d->key);
	d->key = NULL;
}

static int open_node(struct daemon *d)
{
	const struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .name = "node",
						       .region_size = d->conf.pool,
						       .access = RGATE_ACCESS_REMOTE);
	const struct rgate_node_opts o = RGATE_OPTS(rgate_node_opts, .pool = &pool,
						    .send_depth = SEND_DEPTH,
						    .msg_depth = MSG_DEPTH, .key = d->key);
	int err;

	err = rgate_node_create(&d->node, d->cluster, d->self.id, &o);
	forget_key(d);
	if (err)
		say("cannot become node %u: %s", d->self.id,
		    rgate_strerror("rgate_node_create", err));
	return err;
}

static int read_cluster(struct daemon *d)
{
	const char *path = d->conf.cluster, *text = d->conf.cluster_text;
	int err;

	if (path && text) {
		say("the cluster is given twice: by a file and by lines");
		return -EINVAL;
	}
	if (text)
		return rgate_cluster_parse(&d->cluster, "cluster-line", text, strlen(text));
	err = rgate_cluster_load(&d->cluster, path);
	if (err)
		say("cannot read the cluster's file %s: %s", path ? path : "", strerror(-err));
	return err;
}

int daemon_read_cluster(struct daemon *d)
{
	int err = read_cluster(d);

	if (err)
		return err;
	err = who_am_i(d);
	if (err)
		rgate_cluster_destroy(d->cluster);
	return err;
}

int daemon_load(struct daemon *d)
{
	int err;

	err = daemon_read_cluster(d);
	if (err)
		return err;
	err = preflight(d);
	if (!err)
		err = modules_prepare(d);
	if (err)
		rgate_cluster_destroy(d->cluster);
	return err;
}

int daemon_read_key(struct daemon *d)
{
	d->key = malloc(RGATE_KEY_LEN);
	if (!d->key)
		return -ENOMEM;
	return rgate_cluster_read_key(d->cluster, d->self.id, d->key);
}

void daemon_unload(struct daemon *d)
{
	forget_key(d);
	modules_discard(d);
	rgate_cluster_destroy(d->cluster);
}

int daemon_start(struct daemon *d)
{
	const struct rgate_hub_opts o = RGATE_OPTS(rgate_hub_opts, .flags = RGATE_HUB_PAUSED);
	int err;

	d->began_ns = util_now();
	err = open_node(d);
	if (err)
		return err;
	err = rgate_hub_create(&d->hub, d->node, &o);
	if (err) {
		say("cannot open the peers: %s", strerror(-err));
		goto destroy_node;
	}
	err = modules_start(d);
	if (err)
		goto destroy_hub;
	/* What another node asks before all services are there would be for nobody. */
	err = rgate_hub_start(d->hub);
	if (!err)
		return 0;
	say("cannot start the services: %s", strerror(-err));
	modules_stop(d);
destroy_hub:
	rgate_hub_destroy(d->hub);
	d->hub = NULL;
destroy_node:
	rgate_node_destroy(d->node);
	return err;
}

void daemon_stop(struct daemon *d)
{
	modules_stop(d);
	rgate_hub_destroy(d->hub);
	rgate_node_destroy(d->node);
	d->hub = NULL;
}
