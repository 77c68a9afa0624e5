// SPDX-License-Identifier: MIT OR GPL-2.0
/* Which peers are served: own ones, the caller's, those of a hub. */
#include <errno.h>
#include <string.h>

#include "opts.h"
#include "spawnd.h"

#define SETTLE_MS	1000	/* for what is under way to a peer that stays */

static int add_peer(struct rgate_spawnd *sd, struct rgate_peer *peer, bool own)
{
	struct rgate_peer_info info = { .sz = sizeof(info) };
	struct spawnd_client *c;
	int err;

	err = rgate_peer_info(peer, &info);
	if (err)
		return err;
	c = &sd->client[info.id];
	if (c->peer)
		return -EBUSY;
	/* Of one that is shared its owner hears, and tells. */
	err = own ? spawnd_watch(sd, rgate_peer_fd(peer), EPOLLIN, &c->tag) : 0;
	if (err)
		return err;
	c->peer = peer;
	c->own = own;
	session_init(&c->session, peer, sd->o.reconnect_ms * 1000000ULL, 0);
	xfer_list_init(&c->xfers, peer);
	return 0;
}

int rgate_spawnd_add_peer(struct rgate_spawnd *sd, struct rgate_peer *peer)
{
	int err;

	if (!sd->node || !(sd->o.flags & RGATE_SPAWND_SHARED))
		return -EINVAL;
	pthread_mutex_lock(&sd->lock);
	err = add_peer(sd, peer, false);
	pthread_mutex_unlock(&sd->lock);
	return err;
}

static int open_peer(struct rgate_spawnd *sd, uint32_t id)
{
	struct rgate_peer *peer;
	int err;

	err = rgate_peer_open(&peer, sd->node, id);
	if (err)
		return err;
	err = add_peer(sd, peer, true);
	if (err)
		rgate_peer_close(peer);
	return err;
}

void spawnd_client_remove(struct spawnd_client *c)
{
	struct rgate_peer *peer = c->peer;

	if (!peer)
		return;
	if (c->own)
		events_remove(&c->sd->ev, rgate_peer_fd(peer));
	c->session.up = false;
	spawnd_client_drop(c);
	spawnd_client_gone(c);
	/* What is under way ends with the connection; of one that stays it is awaited. */
	if (c->own) {
		rgate_peer_close(peer);
		xfer_ground(&c->xfers, -ENOTCONN);
	} else {
		xfer_settle(&c->xfers, SETTLE_MS);
	}
	/* Nor is anything due for who is not served any more. */
	session_init(&c->session, NULL, 0, 0);
	xfer_list_init(&c->xfers, NULL);
	memset(&c->calls, 0, sizeof(c->calls));
	c->peer = NULL;
}

void rgate_spawnd_remove_peer(struct rgate_spawnd *sd, struct rgate_peer *peer)
{
	unsigned int i;

	pthread_mutex_lock(&sd->lock);
	for (i = 0; i < RGATE_NODES_MAX; i++)
		if (sd->client[i].peer == peer)
			spawnd_client_remove(&sd->client[i]);
	pthread_mutex_unlock(&sd->lock);
}

int rgate_spawnd_attach(struct rgate_spawnd *sd, struct rgate_node *node)
{
	uint32_t id;
	int err = 0;

	if (sd->node)
		return -EBUSY;
	sd->node = node;
	sd->stage = rgate_node_stage(node);
	for (id = 0; id < RGATE_NODES_MAX && !(sd->o.flags & RGATE_SPAWND_SHARED) && !err; id++)
		if (id != rgate_node_id(node) && rgate_policy_node(sd->policy, id))
			err = open_peer(sd, id);
	if (!err)
		return 0;
	for (id = 0; id < RGATE_NODES_MAX; id++)
		spawnd_client_remove(&sd->client[id]);
	sd->node = NULL;
	return err;
}

int rgate_spawnd_message(struct rgate_spawnd *sd, uint32_t node_id, const struct rgate_msg *msg,
			 const void *data)
{
	int ret = 0;

	pthread_mutex_lock(&sd->lock);
	if (node_id < RGATE_NODES_MAX && sd->client[node_id].peer)
		ret = spawnd_client_message(&sd->client[node_id], msg, data);
	pthread_mutex_unlock(&sd->lock);
	return ret;
}

static void hub_message(void *ctx, uint32_t node, const void *data, size_t len)
{
	struct rgate_spawnd *sd = ctx;
	const struct rgate_msg msg = { .epoch = rgate_hub_epoch(sd->hub, node), .len = len };

	(void)rgate_spawnd_message(sd, node, &msg, data);
}

static bool is_idle(const struct rgate_spawnd *sd)
{
	const struct spawnd_client *c;

	if (sd->stats.jobs || sd->graves || sd->work)
		return false;
	for (c = sd->client; c < sd->client + RGATE_NODES_MAX; c++)
		if (!xfer_list_empty(&c->xfers) || c->answers)
			return false;
	return true;
}

/* On the hub's thread, whenever something came; for most of that it is not needed. */
static int64_t hub_tick(void *ctx)
{
	struct rgate_spawnd *sd = ctx;
	bool idle;

	pthread_mutex_lock(&sd->lock);
	idle = is_idle(sd);
	pthread_mutex_unlock(&sd->lock);
	if (!idle)
		(void)rgate_spawnd_process(sd);
	return -1;
}

static void hub_state(void *ctx, uint32_t node, bool up)
{
	(void)node;
	(void)up;
	(void)rgate_spawnd_process(ctx);
}

int rgate_spawnd_attach_hub(struct rgate_spawnd *sd, struct rgate_hub *hub)
{
	const struct rgate_service service = RGATE_OPTS(rgate_service, .state = hub_state,
							.message = hub_message, .tick = hub_tick);
	struct rgate_peer *peer;
	uint32_t id;
	int err;

	if (!(sd->o.flags & RGATE_SPAWND_SHARED))
		return -EINVAL;
	err = rgate_spawnd_attach(sd, rgate_hub_node(hub));
	for (id = 0; id < RGATE_NODES_MAX && !err; id++) {
		peer = rgate_hub_peer(hub, id);
		if (peer)
			err = rgate_spawnd_add_peer(sd, peer);
	}
	sd->hub = hub;
	if (!err)
		err = rgate_hub_add(hub, RGATE_SERVICE_SPAWN, &service, sd);
	if (!err)
		return 0;
	sd->hub = NULL;
	for (id = 0; id < RGATE_NODES_MAX; id++)
		spawnd_client_remove(&sd->client[id]);
	sd->node = NULL;
	return err;
}
