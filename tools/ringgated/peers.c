// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Who the peers are, and that they come and go, for log and status: a service of the hub.
 * Daemons say hello to each other by it; a node that only asks for processes says nothing.
 */
#include <errno.h>
#include <string.h>

#include "module.h"
#include "util.h"

#define SERVICE		15	/* one that is the user's */
#define HELLO		1
#define BURST		6	/* lines about a peer at once, */
#define EACH_NS		(10 * NSEC)	/* then one in so long */

struct hello {
	uint8_t service;
	uint8_t type;		/* HELLO */
	uint8_t reserved[6];	/* zeros */
};

static void hello(struct daemon *d, uint32_t node)
{
	const struct hello msg = { .service = SERVICE, .type = HELLO };
	int err;

	__atomic_store_n(&d->is_daemon[node % RGATE_NODES_MAX], false, __ATOMIC_RELAXED);
	err = rgate_hub_send(d->hub, node, &msg, sizeof(msg));
	if (err && err != -ENOTCONN)
		say("node %u is not told that a daemon is here: %s", node, strerror(-err));
}

/* What is longer, or of another type, is a later version's, and a daemon's all the same. */
static void on_message(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct daemon *d = ctx;

	(void)msg;
	if (len >= sizeof(struct hello))
		__atomic_store_n(&d->is_daemon[node % RGATE_NODES_MAX], true, __ATOMIC_RELAXED);
}

/* A word for people: nothing else is read by it, so no order is needed. */
bool peers_is_daemon(const struct daemon *d, uint32_t node)
{
	return __atomic_load_n(&d->is_daemon[node % RGATE_NODES_MAX], __ATOMIC_RELAXED);
}

static void tell(struct daemon *d, uint32_t node, bool up)
{
	struct rgate_peer_info info = { .sz = sizeof(info) };
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	unsigned int swallowed;
	char more[48] = "", id[16];

	/* A peer that connects again and again fills no disk. */
	if (!limit_pass(&d->told[node % RGATE_NODES_MAX], BURST, EACH_NS, util_now(), &swallowed))
		return;
	snprintf(id, sizeof(id), "%u", node);
	if (rgate_cluster_find(d->cluster, id, &n) ||
	    rgate_peer_info(rgate_hub_peer(d->hub, node), &info))
		return;
	if (swallowed)
		snprintf(more, sizeof(more), " (%u such lines were left out)", swallowed);
	if (up)
		say("node %u (%s, %s): connected%s", n.id, n.name, n.addr, more);
	else
		say("node %u (%s, %s): gone: %s%s", n.id, n.name, n.addr,
		    info.error ? strerror(-info.error) : "the connection was closed", more);
}

static void on_state(void *ctx, uint32_t node, bool up)
{
	struct daemon *d = ctx;

	if (up)
		hello(d, node);
	tell(d, node, up);
}

static int peers_start(struct daemon *d)
{
	const struct rgate_service service = {
		.sz = sizeof(service), .state = on_state, .message = on_message,
	};

	return rgate_hub_add(d->hub, SERVICE, &service, d);
}

static void peers_stop(struct daemon *d)
{
	rgate_hub_remove(d->hub, SERVICE);
}

const struct module peers_module = { .start = peers_start, .stop = peers_stop };
