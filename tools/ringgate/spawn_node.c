// SPDX-License-Identifier: MIT OR GPL-2.0
#include "spawn_node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "number.h"
#include "spawn_ask.h"
#include "util.h"

#define POOL_BYTES	(32U << 20)
#define STAGE_BYTES	(2U << 20)

error_t spawn_parse_opt(struct spawn_opts *o, int key, char *arg)
{
	switch (key) {
	case 'C':
		o->cluster = arg;
		return 0;
	case 'A':
		o->as = arg;
		return 0;
	case 'S':
		o->socket = arg;
		return 0;
	case 'n':
		o->node = arg;
		return 0;
	case 'a':
		o->all = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int find(const struct spawn_node *sn, const char *what, struct rgate_cluster_node *to)
{
	to->sz = sizeof(*to);
	if (!rgate_cluster_find(sn->cluster, what, to))
		return EXIT_OK;
	say("the cluster has no node '%s'", what);
	return EXIT_USAGE;
}

static int find_gateway(const struct spawn_node *sn, struct rgate_cluster_node *to)
{
	to->sz = sizeof(*to);
	return rgate_cluster_gateway(sn->cluster, to) ? EXIT_USAGE : EXIT_OK;
}

/* Which nodes are to be asked */
static int choose(struct spawn_node *sn, const struct spawn_opts *o, uint32_t self)
{
	struct rgate_cluster_node to;
	unsigned int i;
	int ret;

	if (!o->all) {
		ret = o->node ? find(sn, o->node, &to) : find_gateway(sn, &to);
		if (ret)
			return ret;
		if (to.id == self) {
			say("node %u is this one itself: --as must be another", self);
			return EXIT_USAGE;
		}
		sn->target[sn->n++].to = to;
		return EXIT_OK;
	}
	for (i = 0; i < rgate_cluster_nodes(sn->cluster); i++) {
		to.sz = sizeof(to);
		if (!rgate_cluster_node(sn->cluster, i, &to) && to.id != self)
			sn->target[sn->n++].to = to;
	}
	return EXIT_OK;
}

static int connect_one(struct spawn_node *sn, struct spawn_target *t)
{
	const struct rgate_spawn_opts o = RGATE_OPTS(rgate_spawn_opts, .answer_ms = SPAWN_TIMEOUT);
	int err;

	err = rgate_peer_wait_up(t->peer, SPAWN_TIMEOUT);
	t->up = !err;
	if (!err)
		err = rgate_spawn_open(&t->spawn, sn->node, t->peer, &o);
	t->err = err;
	return err;
}

static int connect_all(struct spawn_node *sn, bool all)
{
	unsigned int i, fine = 0;
	int err = 0;

	/* All of them at once, then wait */
	for (i = 0; i < sn->n; i++) {
		err = rgate_peer_open(&sn->target[i].peer, sn->node, sn->target[i].to.id);
		if (err)
			return fail_in("rgate_peer_open", err, "node %s", sn->target[i].to.name);
	}
	for (i = 0; i < sn->n; i++) {
		err = connect_one(sn, &sn->target[i]);
		fine += !err;
		if (err && !all)
			return fail_in(sn->target[i].up ? "rgate_spawn_open" : "rgate_peer_wait_up",
				       err, "node %s", sn->target[i].to.name);
	}
	return fine ? EXIT_OK : fail_in("rgate_peer_wait_up", err, "no node can be reached");
}

int spawn_node_open(struct spawn_node *sn, const struct spawn_opts *o)
{
	const char *as = o->as ? o->as : getenv("RGATE_NODE");
	const struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .name = "spawn",
		.region_size = POOL_BYTES, .max_size = 8ULL * POOL_BYTES,
		.access = RGATE_ACCESS_REMOTE, .flags = RGATE_POOL_NO_HUGE);
	/* It asks, and stages nothing: no huge pages for that */
	const struct rgate_pool_opts stage = RGATE_OPTS(rgate_pool_opts, .name = "stage",
		.region_size = STAGE_BYTES, .flags = RGATE_POOL_NO_HUGE);
	const struct rgate_node_opts opts = RGATE_OPTS(rgate_node_opts, .pool = &pool,
						       .stage = &stage);
	struct rgate_cluster_node self;
	int err, ret;

	memset(sn, 0, sizeof(*sn));
	if (!as || o->socket)
		return spawn_ask_open(sn, o);
	sn->way = &spawn_way_node;
	err = rgate_cluster_load(&sn->cluster, o->cluster);
	if (err)
		return fail(err, "no cluster to ask");
	ret = find(sn, as, &self);
	if (!ret)
		ret = choose(sn, o, self.id);
	if (ret)
		goto close;
	err = rgate_node_create(&sn->node, sn->cluster, self.id, &opts);
	if (err) {
		ret = fail_in("rgate_node_create", err, "cannot be node %s", self.name);
		goto close;
	}
	ret = connect_all(sn, o->all);
	if (!ret)
		return EXIT_OK;

close:
	spawn_node_close(sn);
	return ret;
}

void spawn_node_close(struct spawn_node *sn)
{
	unsigned int i;

	if (sn->ask) {
		spawn_ask_close(sn);
		return;
	}
	/* What the other side does not let go of ends with the connection. */
	for (i = 0; i < sn->n; i++) {
		rgate_spawn_close(sn->target[i].spawn);
		rgate_peer_close(sn->target[i].peer);
	}
	rgate_node_destroy(sn->node);
	rgate_cluster_destroy(sn->cluster);
}

void spawn_node_name(const struct spawn_node *sn, uint32_t id, char name[32])
{
	struct rgate_cluster_node node;
	unsigned int i;

	snprintf(name, 32, "%u", id);
	if (sn->ask) {
		spawn_ask_name(sn->ask, id, name);
		return;
	}
	for (i = 0; i < rgate_cluster_nodes(sn->cluster); i++) {
		node.sz = sizeof(node);
		if (!rgate_cluster_node(sn->cluster, i, &node) && node.id == id)
			snprintf(name, 32, "%s", node.name);
	}
}

const char *spawn_id_text(uint64_t id, char buf[SPAWN_ID])
{
	snprintf(buf, SPAWN_ID, "%08x-%u", (unsigned int)(id >> 32), (unsigned int)id);
	return buf;
}

int spawn_id_parse(const char *text, uint64_t *id)
{
	char hex[2 + 8 + 1] = "0x";
	const char *minus = strchr(text, '-');
	uint64_t high, low;

	if (!minus || minus - text > 8 || minus[1 + strspn(minus + 1, "0123456789")])
		return -EINVAL;
	memcpy(hex + 2, text, (size_t)(minus - text));
	if (number_parse(hex, false, 0, UINT32_MAX, &high) ||
	    number_parse(minus + 1, false, 0, UINT32_MAX, &low))
		return -EINVAL;
	*id = high << 32 | low;
	return *id ? 0 : -EINVAL;
}
