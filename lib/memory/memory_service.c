// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "memory_priv.h"
#include "opts.h"

#define ASKER		(RGATE_SERVICE_MEMORY | RGATE_SERVICE_ASKER)
#define SILENCE_MS	10000U
#define ROOM_NS		1000000	/* between looks for room for messages */

void memory_await(struct memory_node *n)
{
	/* The end of what was posted makes room, and who waits is given up at some time. */
	if (!xfer_list_empty(&n->xfers) || !list_empty(&n->tasks))
		rgate_hub_await(n->sv->o.hub, memory_node_id(n));
}

/* ---- The hub's thread ---- */

static void look(struct memory_node *n)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	enum session_news news;

	while ((news = session_look(&n->session, now)) != SESSION_SAME) {
		switch (news) {
		case SESSION_DOWN:
			(void)xfer_reap(&n->xfers);
			call_down(&n->calls);
			/* They are asked for again, if somebody waits for them. */
			n->unsaid = 0;
			break;
		case SESSION_OTHER:
			call_other(&n->calls);
			memset(&n->asked, 0, sizeof(n->asked));
			break;
		default:
			break;
		}
	}
}

/* Is what came over the connection that we know of? Looks first */
static bool is_current(struct memory_node *n)
{
	look(n);
	return n->session.up &&
	       rgate_hub_epoch(n->sv->o.hub, memory_node_id(n)) == n->session.epoch;
}

static void hub_question(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct memory_service *sv = ctx;
	struct memory_node *n = &sv->node[node];

	memory_lock(sv);
	if (n->peer && is_current(n))
		memory_serve_question(n, msg, len);
	memory_unlock(sv);
}

static void hub_answer(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct memory_service *sv = ctx;
	struct memory_node *n = &sv->node[node];

	memory_lock(sv);
	if (n->peer && is_current(n)) {
		memory_ask_answer(n, msg, len);
		memory_ask_pump(n);
	}
	memory_unlock(sv);
}

static void hub_state(void *ctx, uint32_t node, bool up)
{
	struct memory_service *sv = ctx;
	struct memory_node *n = &sv->node[node];

	(void)up;
	memory_lock(sv);
	if (n->peer) {
		look(n);
		memory_ask_pump(n);
	}
	memory_unlock(sv);
}

static uint64_t look_after(struct memory_node *n)
{
	uint64_t ns;

	look(n);
	memory_ask_pump(n);
	memory_serve_pump(n);
	ns = memory_ask_expire(n, rgate_clock_now(CLOCK_MONOTONIC));
	return (n->stalled || n->unsaid) && ns > ROOM_NS ? ROOM_NS : ns;
}

static int64_t hub_tick(void *ctx)
{
	struct memory_service *sv = ctx;
	uint64_t least = UINT64_MAX, ns;
	struct memory_node *n;

	memory_lock(sv);
	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++) {
		if (!n->peer)
			continue;
		ns = look_after(n);
		least = ns < least ? ns : least;
	}
	memory_unlock(sv);
	return least == UINT64_MAX ? -1 : (int64_t)least;
}

/* ---- The object ---- */

static void close_nodes(struct memory_service *sv)
{
	struct memory_node *n;

	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++) {
		if (n->peer)
			memory_ask_fini(n);
		n->peer = NULL;
	}
}

static int open_nodes(struct memory_service *sv)
{
	struct rgate_peer *peer;
	struct memory_node *n;
	int err;

	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++) {
		n->sv = sv;
		peer = rgate_hub_peer(sv->o.hub, memory_node_id(n));
		if (!peer)
			continue;
		session_init(&n->session, peer, 0, 0);
		xfer_list_init(&n->xfers, peer);
		err = memory_ask_init(n);
		if (err)
			return err;
		n->peer = peer;
	}
	return 0;
}

static int join_hub(struct memory_service *sv)
{
	const struct rgate_service serves = RGATE_OPTS(rgate_service, .message = hub_question);
	const struct rgate_service asks = RGATE_OPTS(rgate_service, .state = hub_state,
						     .message = hub_answer, .tick = hub_tick);
	int err;

	sv->self = rgate_node_id(rgate_hub_node(sv->o.hub));
	err = open_nodes(sv);
	if (err)
		goto close_nodes;
	err = rgate_hub_add(sv->o.hub, RGATE_SERVICE_MEMORY, &serves, sv);
	if (err)
		goto close_nodes;
	err = rgate_hub_add(sv->o.hub, ASKER, &asks, sv);
	if (!err)
		return 0;
	rgate_hub_remove(sv->o.hub, RGATE_SERVICE_MEMORY);
close_nodes:
	close_nodes(sv);
	return err;
}

static void free_service(struct memory_service *sv)
{
	fair_destroy(&sv->lock);
	free(sv);
}

int memory_service_create(struct memory_service **out, const struct memory_opts *opts)
{
	struct memory_service *sv;
	struct memory_opts o;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (err)
		return err;
	sv = calloc(1, sizeof(*sv));
	if (!sv)
		return -ENOMEM;
	sv->o = o;
	sv->silence_ns = (o.silence_ms ? o.silence_ms : SILENCE_MS) * 1000000ULL;
	list_init(&sv->dead);
	fair_init(&sv->lock);
	err = regions_init(&sv->regions);
	if (!err && o.hub)
		err = join_hub(sv);
	if (err) {
		free_service(sv);
		return err;
	}
	*out = sv;
	return 0;
}

int memory_service_add(struct memory_service *sv, struct rgate_engine *engine)
{
	return rgate_engine_add(engine, &memory_requests, sv);
}

void memory_service_destroy(struct memory_service *sv)
{
	if (!sv)
		return;
	if (sv->o.hub) {
		rgate_hub_remove(sv->o.hub, RGATE_SERVICE_MEMORY);
		rgate_hub_remove(sv->o.hub, ASKER);
		close_nodes(sv);
	}
	free_service(sv);
}
