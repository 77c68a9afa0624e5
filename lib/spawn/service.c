// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "hub_ref.h"
#include "service_priv.h"

#define NUMBER	(RGATE_SERVICE_SPAWN | RGATE_SERVICE_ASKER)

void spawn_service_poke(struct spawn_service *sv, struct spawn_node *n)
{
	const struct client_wish w = client_wish(n->spawn);

	if (w.idle)
		return;
	n->busy = true;
	if (w.posted || w.news || w.wake_ns < n->due_ns)
		rgate_hub_await(sv->hub, (uint32_t)(n - sv->node));
}

/* In how many ns it is due again; -1: when something comes */
static int64_t look_after(struct spawn_service *sv, struct spawn_node *n)
{
	struct rgate_spawn_job *job;
	struct client_wish w;
	struct task *task;
	uint64_t now, due;

	while (!rgate_spawn_next(n->spawn, &job, 0)) {
		task = rgate_spawn_job_data(job);
		/* NULL: it was closed before its news were taken. */
		if (task)
			spawn_task_news(task);
	}
	due = spawn_inquiries_look(n);
	w = client_wish(n->spawn);
	n->busy = !w.idle;
	n->due_ns = w.idle ? UINT64_MAX : w.wake_ns;
	n->due_ns = due < n->due_ns ? due : n->due_ns;
	if (w.posted)
		rgate_hub_await(sv->hub, (uint32_t)(n - sv->node));
	if (n->due_ns == UINT64_MAX)
		return -1;
	now = rgate_clock_now(CLOCK_MONOTONIC);
	return n->due_ns > now ? (int64_t)(n->due_ns - now) : 0;
}

static int64_t hub_tick(void *ctx)
{
	struct spawn_service *sv = ctx;
	struct spawn_node *n;
	int64_t least = -1, ns;

	pthread_mutex_lock(&sv->lock);
	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++) {
		if (!n->busy)
			continue;
		ns = look_after(sv, n);
		if (ns >= 0 && (least < 0 || ns < least))
			least = ns;
	}
	pthread_mutex_unlock(&sv->lock);
	return least;
}

static void hub_message(void *ctx, uint32_t node, const void *data, size_t len)
{
	struct spawn_service *sv = ctx;
	const struct rgate_msg msg = { .epoch = rgate_hub_epoch(sv->hub, node), .len = len };

	pthread_mutex_lock(&sv->lock);
	(void)rgate_spawn_message(sv->node[node].spawn, &msg, data);
	pthread_mutex_unlock(&sv->lock);
}

static void hub_state(void *ctx, uint32_t node, bool up)
{
	struct spawn_service *sv = ctx;

	(void)up;
	pthread_mutex_lock(&sv->lock);
	(void)rgate_spawn_process(sv->node[node].spawn);
	pthread_mutex_unlock(&sv->lock);
}

static int open_nodes(struct spawn_service *sv)
{
	const struct rgate_spawn_opts o = RGATE_OPTS(rgate_spawn_opts,
						     .flags = RGATE_SPAWN_SHARED);
	struct rgate_node *node = rgate_hub_node(sv->hub);
	struct rgate_peer *peer;
	uint32_t id;
	int err = 0;

	for (id = 0; id < RGATE_NODES_MAX && !err; id++) {
		sv->node[id].due_ns = UINT64_MAX;
		peer = rgate_hub_peer(sv->hub, id);
		if (peer)
			err = rgate_spawn_open(&sv->node[id].spawn, node, peer, &o);
	}
	return err;
}

/* Of jobs nothing is left, so nothing is waited for. */
static void close_nodes(struct spawn_service *sv)
{
	uint32_t id;

	for (id = 0; id < RGATE_NODES_MAX; id++)
		rgate_spawn_close(sv->node[id].spawn);
}

int spawn_service_create(struct spawn_service **out, struct rgate_hub *hub)
{
	const struct rgate_service service = RGATE_OPTS(rgate_service, .state = hub_state,
							.message = hub_message, .tick = hub_tick);
	struct spawn_service *sv;
	int err;

	sv = calloc(1, sizeof(*sv));
	if (!sv)
		return -ENOMEM;
	sv->hub = hub;
	pthread_mutex_init(&sv->lock, NULL);
	pthread_mutex_init(&sv->share_lock, NULL);
	err = open_nodes(sv);
	if (!err)
		err = rgate_hub_add(hub, NUMBER, &service, sv);
	if (err)
		goto close_nodes;
	*out = sv;
	return 0;

close_nodes:
	close_nodes(sv);
	pthread_mutex_destroy(&sv->share_lock);
	pthread_mutex_destroy(&sv->lock);
	free(sv);
	return err;
}

int spawn_service_add(struct spawn_service *sv, struct rgate_engine *engine)
{
	return rgate_engine_add(engine, &spawn_requests, sv);
}

/*
 * The hub still hands on what the node has to say about jobs that were closed: so it is looked at
 * with the service's lock, as all that calls into the client, and not waited for with it.
 */
static void settle(struct spawn_service *sv, struct rgate_spawn *spawn)
{
	const uint64_t end = rgate_clock_now(CLOCK_MONOTONIC) + CLIENT_CLOSE_MS * 1000000ULL;
	bool settled, over;

	do {
		over = rgate_clock_now(CLOCK_MONOTONIC) >= end;
		pthread_mutex_lock(&sv->lock);
		settled = client_settled(spawn);
		if (!settled && over)
			client_take_back(spawn);
		pthread_mutex_unlock(&sv->lock);
		if (!settled && !over)
			usleep(1000);
	} while (!settled && !over);
}

void spawn_service_destroy(struct spawn_service *sv)
{
	struct rgate_hub *hub;
	uint32_t id;

	if (!sv)
		return;
	hub = sv->hub;
	for (id = 0; id < RGATE_NODES_MAX; id++)
		if (sv->node[id].spawn)
			settle(sv, sv->node[id].spawn);
	/* Its node and its peers are used until the end. */
	rgate_hub_get(hub);
	rgate_hub_remove(hub, NUMBER);
	close_nodes(sv);
	pthread_mutex_destroy(&sv->share_lock);
	pthread_mutex_destroy(&sv->lock);
	free(sv);
	rgate_hub_put(hub);
}
