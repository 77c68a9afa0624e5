// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "opts.h"
#include "sync_priv.h"

#define ASKER		(RGATE_SERVICE_SYNC | RGATE_SERVICE_ASKER)
#define LEASE_MS	3000U
#define LEASE_LEAST	100U
#define LEASE_MOST	60000U
#define ROOM_NS		1000000	/* between looks for room for messages, and at the clock */

/* That of leases goes on while the machine is suspended. */
uint64_t sync_now(void)
{
	return rgate_clock_now(CLOCK_BOOTTIME);
}

void sync_await(struct sync_node *n)
{
	/* The end of what was posted makes room, and who waits is given up at some time. */
	if (!xfer_list_empty(&n->xfers) || !list_empty(&n->handles) || !list_empty(&n->queries))
		rgate_hub_await(n->sv->o.hub, sync_node_id(n));
}

static void tell_here(struct claim *c)
{
	struct rgate_barrier_info info;

	if (c->result)
		claim_barrier_info(c, &info);
	handle_granted(c->ctx, c->result, c->value, c->result ? &info : NULL);
}

void sync_tell(struct sync_service *sv)
{
	struct claim *c;

	while ((c = sync_table_news(&sv->table))) {
		if (c->party == &sv->here)
			tell_here(c);
		else
			sync_serve_tell(sv, c);
	}
}

/* ---- The hub's thread ---- */

static void on_news(struct sync_node *n, enum session_news what)
{
	switch (what) {
	case SESSION_DOWN:
		(void)xfer_reap(&n->xfers);
		call_down(&n->calls);
		/* They are asked for again, if somebody waits for them. */
		n->unsaid = 0;
		break;
	case SESSION_OTHER:
		sync_ask_lapse(n);
		call_other(&n->calls);
		sync_serve_other(n);
		break;
	case SESSION_UP:
		sync_serve_up(n);
		break;
	default:
		break;
	}
}

static void look(struct sync_node *n)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	enum session_news what;

	/* First of all: after a pause what comes may be as old as it likes. */
	sync_ask_look(n, sync_now());
	while ((what = session_look(&n->session, now)) != SESSION_SAME)
		on_news(n, what);
}

/* Is what came over the connection that we know of? Looks first */
static bool is_current(struct sync_node *n)
{
	look(n);
	return n->session.up &&
	       rgate_hub_epoch(n->sv->o.hub, sync_node_id(n)) == n->session.epoch;
}

static void hub_question(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct sync_service *sv = ctx;
	struct sync_node *n = &sv->node[node];

	fair_lock(&sv->lock);
	if (n->peer && is_current(n)) {
		sync_serve_question(n, msg, len);
		sync_serve_pump(n);
	}
	fair_unlock(&sv->lock);
}

static void hub_answer(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct sync_service *sv = ctx;
	struct sync_node *n = &sv->node[node];

	fair_lock(&sv->lock);
	if (n->peer && is_current(n)) {
		sync_ask_answer(n, msg, len);
		sync_ask_pump(n);
	}
	fair_unlock(&sv->lock);
}

static void hub_state(void *ctx, uint32_t node, bool up)
{
	struct sync_service *sv = ctx;
	struct sync_node *n = &sv->node[node];

	(void)up;
	fair_lock(&sv->lock);
	if (n->peer) {
		look(n);
		sync_ask_pump(n);
		sync_serve_pump(n);
	}
	fair_unlock(&sv->lock);
}

static uint64_t look_after(struct sync_node *n)
{
	bool waits;
	uint64_t ns;

	look(n);
	sync_ask_pump(n);
	sync_serve_pump(n);
	ns = sync_ask_expire(n, sync_now());
	waits = n->stalled || n->unsaid || (n->guest && !list_empty(&n->guest->untold));
	return (waits && n->session.up) || ns < ROOM_NS ? ROOM_NS : ns;
}

/* What is here has a lease, too: this process may end, and be followed by another one. */
static uint64_t look_here(struct sync_service *sv, uint64_t now)
{
	struct link *l;

	if (now >= sv->begin_ns && !sv->table.begun) {
		sync_table_begin(&sv->table);
		sync_tell(sv);
	}
	if (list_empty(&sv->handles) && sv->table.begun)
		return UINT64_MAX;
	if (now >= sv->refresh_ns) {
		for (l = sv->handles.next; l != &sv->handles; l = l->next)
			handle_lease(container_of(l, struct handle, of_home));
		sv->refresh_ns = now + sv->lease_ns / 4;
	}
	if (!sv->table.begun && sv->begin_ns < sv->refresh_ns)
		return sv->begin_ns - now;
	return sv->refresh_ns - now;
}

static int64_t hub_tick(void *ctx)
{
	struct sync_service *sv = ctx;
	uint64_t least, ns;
	struct sync_node *n;

	fair_lock(&sv->lock);
	ns = sync_serve_expire(sv, sync_now());
	least = look_here(sv, sync_now());
	least = ns < least ? ns : least;
	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++) {
		if (!n->peer)
			continue;
		ns = look_after(n);
		least = ns < least ? ns : least;
	}
	fair_unlock(&sv->lock);
	return least == UINT64_MAX ? -1 : (int64_t)least;
}

/* ---- The object ---- */

static void close_nodes(struct sync_service *sv)
{
	struct sync_node *n;

	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++) {
		if (n->peer)
			sync_ask_fini(n);
		n->peer = NULL;
	}
}

static int open_nodes(struct sync_service *sv)
{
	struct rgate_peer *peer;
	struct sync_node *n;
	int err;

	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++) {
		n->sv = sv;
		peer = rgate_hub_peer(sv->o.hub, sync_node_id(n));
		if (!peer)
			continue;
		session_init(&n->session, peer, 0, 0);
		xfer_list_init(&n->xfers, peer);
		err = sync_ask_init(n);
		if (err)
			return err;
		n->peer = peer;
	}
	return 0;
}

static int join_hub(struct sync_service *sv)
{
	const struct rgate_service serves = RGATE_OPTS(rgate_service, .message = hub_question);
	const struct rgate_service asks = RGATE_OPTS(rgate_service, .state = hub_state,
						     .message = hub_answer, .tick = hub_tick);
	int err;

	sv->self = rgate_node_id(rgate_hub_node(sv->o.hub));
	err = open_nodes(sv);
	if (err)
		goto close_nodes;
	err = rgate_hub_add(sv->o.hub, RGATE_SERVICE_SYNC, &serves, sv);
	if (err)
		goto close_nodes;
	err = rgate_hub_add(sv->o.hub, ASKER, &asks, sv);
	if (!err)
		return 0;
	rgate_hub_remove(sv->o.hub, RGATE_SERVICE_SYNC);
close_nodes:
	close_nodes(sv);
	return err;
}

static void free_service(struct sync_service *sv)
{
	sync_serve_fini(sv);
	sync_table_fini(&sv->table);
	fair_destroy(&sv->lock);
	free(sv);
}

/*
 * Tokens are those of a clock that goes on whatever ends: a home that begins later begins higher,
 * as nobody gives a lock once each ns.
 */
static void init_service(struct sync_service *sv)
{
	fair_init(&sv->lock);
	list_init(&sv->handles);
	list_init(&sv->dead);
	list_init(&sv->orphans);
	party_init(&sv->here, RGATE_SYNC_NO_NODE);
	sync_table_init(&sv->table, rgate_clock_now(CLOCK_REALTIME));
	sv->lease_ns = (sv->o.lease_ms ? sv->o.lease_ms : LEASE_MS) * 1000000ULL;
	sv->begin_ns = sync_now();
	/* A process before this one may have given locks, of which their holders still know. */
	if (sv->o.hub)
		sv->begin_ns += sync_patience(sv);
	else
		sync_table_begin(&sv->table);
}

int sync_service_create(struct sync_service **out, const struct sync_opts *opts)
{
	struct sync_service *sv;
	struct sync_opts o;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (!err && o.lease_ms && (o.lease_ms < LEASE_LEAST || o.lease_ms > LEASE_MOST))
		err = -EINVAL;
	if (err)
		return err;
	sv = calloc(1, sizeof(*sv));
	if (!sv)
		return -ENOMEM;
	sv->o = o;
	init_service(sv);
	if (o.hub)
		err = join_hub(sv);
	if (err) {
		free_service(sv);
		return err;
	}
	*out = sv;
	return 0;
}

int sync_service_add(struct sync_service *sv, struct rgate_engine *engine)
{
	int err;

	err = rgate_engine_add(engine, &lock_requests, sv);
	return err ? err : rgate_engine_add(engine, &barrier_requests, sv);
}

void sync_service_destroy(struct sync_service *sv)
{
	if (!sv)
		return;
	if (sv->o.hub) {
		rgate_hub_remove(sv->o.hub, RGATE_SERVICE_SYNC);
		rgate_hub_remove(sv->o.hub, ASKER);
		close_nodes(sv);
	}
	free_service(sv);
}
