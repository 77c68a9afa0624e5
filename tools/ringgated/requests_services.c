// SPDX-License-Identifier: MIT OR GPL-2.0
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "gate_service.h"
#include "gate_wire.h"
#include "memory_service.h"
#include "queue_service.h"
#include "requests_net.h"
#include "requests_services.h"
#include "service.h"
#include "sync_service.h"
#include "util.h"

/* A node that is not heard of for so long has nothing claimed any more: as long as a lease */
#define QUEUE_SILENCE_MS 3000U

static int start_spawn(void **service, struct requests *rq, struct rgate_hub *hub)
{
	struct spawn_service *sv;
	int err;

	err = spawn_service_create(&sv, hub);
	if (err)
		return err;
	err = spawn_service_add(sv, rq->engine);
	if (err)
		spawn_service_destroy(sv);
	else
		*service = sv;
	return err;
}

static void stop_spawn(void *service)
{
	spawn_service_destroy(service);
}

/* The hub's thread, which must not wait for what clients make of requests.c's lock. */
static bool speaks(void *ctx, uint32_t node, uid_t uid)
{
	struct requests *rq = ctx;
	bool yes;

	pthread_mutex_lock(&rq->policy_lock);
	yes = request_policy_speaks(rq->policy, node, uid);
	pthread_mutex_unlock(&rq->policy_lock);
	return yes;
}

static int start_memory(void **service, struct requests *rq, struct rgate_hub *hub)
{
	const struct memory_opts o = RGATE_OPTS(memory_opts, .hub = hub, .may = speaks, .ctx = rq);
	struct memory_service *sv;
	int err;

	err = memory_service_create(&sv, &o);
	if (err)
		return err;
	err = memory_service_add(sv, rq->engine);
	if (err)
		memory_service_destroy(sv);
	else
		*service = sv;
	return err;
}

static void stop_memory(void *service)
{
	memory_service_destroy(service);
}

static int start_sync(void **service, struct requests *rq, struct rgate_hub *hub)
{
	const struct sync_opts o = RGATE_OPTS(sync_opts, .hub = hub, .may = speaks, .ctx = rq);
	struct sync_service *sv;
	int err;

	err = sync_service_create(&sv, &o);
	if (err)
		return err;
	err = sync_service_add(sv, rq->engine);
	if (err)
		sync_service_destroy(sv);
	else
		*service = sv;
	return err;
}

static void stop_sync(void *service)
{
	sync_service_destroy(service);
}

static uint32_t gateway_of(const struct rgate_hub *hub)
{
	struct rgate_cluster_node node = { .sz = sizeof(node) };

	(void)rgate_cluster_gateway(rgate_node_cluster(rgate_hub_node(hub)), &node);
	return node.id;
}

static bool asks_gateway(const struct requests *rq, const struct rgate_hub *hub)
{
	return rq->sockets_there && gateway_of(hub) != rgate_node_id(rgate_hub_node(hub));
}

static int start_sockets(void **service, struct requests *rq, struct rgate_hub *hub)
{
	/* The gateway's own are here, whatever the file says that it shares with other nodes. */
	return asks_gateway(rq, hub) ? 0 : net_start(service, rq);
}

/* What a user may whom another node speaks for, by no group */
static bool rights_of(struct requests *rq, uint32_t service, uid_t uid,
		      struct rgate_limits *limits)
{
	struct request_rights rights;

	pthread_mutex_lock(&rq->policy_lock);
	rights = request_policy_rights(rq->policy, uid, NULL, 0);
	pthread_mutex_unlock(&rq->policy_lock);
	request_rights_limits(&rights, limits);
	return rights.services & 1U << service;
}

static bool socket_rights(void *ctx, uid_t uid, struct rgate_limits *limits)
{
	return rights_of(ctx, RGATE_REQ_SOCKET, uid, limits);
}

static bool queue_rights(void *ctx, uid_t uid, struct rgate_limits *limits)
{
	return rights_of(ctx, RGATE_REQ_QUEUE, uid, limits);
}

static int start_gate(void **service, struct requests *rq, struct rgate_hub *hub)
{
	struct gate_opts o = RGATE_OPTS(gate_opts, .role = &gate_sockets, .hub = hub,
					.may = speaks, .rights = socket_rights, .ctx = rq,
					.gateway = gateway_of(hub));
	struct gate_service *sv;
	int err;

	if (o.gateway == rgate_node_id(rgate_hub_node(hub)))
		o.engine = rq->engine;
	else if (!rq->sockets_there)
		return 0;
	err = gate_service_create(&sv, &o);
	if (err)
		return err;
	if (!o.engine)
		err = gate_service_add(sv, rq->engine);
	if (err) {
		gate_service_quit(sv);
		gate_service_destroy(sv);
		return err;
	}
	*service = rq->gate = sv;
	return 0;
}

static void quit_gate(void *service)
{
	gate_service_quit(service);
}

static void stop_gate(void *service)
{
	gate_service_destroy(service);
}

static int start_queue_gate(void **service, struct requests *rq, struct rgate_hub *hub)
{
	const struct gate_opts o = RGATE_OPTS(gate_opts, .role = &gate_queues, .hub = hub,
					      .engine = rq->engine, .may = speaks,
					      .rights = queue_rights, .ctx = rq,
					      .silence_ms = QUEUE_SILENCE_MS);
	int err = gate_service_create(&rq->queue_gate, &o);

	*service = rq->queue_gate;
	return err;
}

bool requests_journal(const struct config *c, struct journal_opts *o)
{
	const struct passwd *pw = c->user ? getpwnam(c->user) : NULL;

	*o = RGATE_OPTS(journal_opts, .dir = c->journal, .sync_ms = c->journal_sync_ms,
			.segment = c->journal_segment, .repair = c->journal_repair,
			.uid = pw ? pw->pw_uid : geteuid());
	return c->journal;
}

static int start_queue(void **service, struct requests *rq, struct rgate_hub *hub)
{
	struct queue_opts o = RGATE_OPTS(queue_opts, .gate = rq->queue_gate);
	struct queue_service *sv;
	int err;

	if (rq->journal.dir)
		o.journal = &rq->journal;
	(void)hub;
	err = queue_service_create(&sv, &o);
	if (err)
		return err;
	err = queue_service_add(sv, rq->engine);
	if (err)
		queue_service_destroy(sv);
	else
		*service = rq->queues = sv;
	return err;
}

static void stop_queue(void *service)
{
	queue_service_destroy(service);
}

static const struct {
	const char *name;
	int (*start)(void **service, struct requests *rq, struct rgate_hub *hub);
	void (*stop)(void *service);
	void (*quit)(void *service);	/* NULL: nothing of it is at other nodes */
} services[] = {
	{ "spawn", start_spawn, stop_spawn, NULL },
	{ "memory", start_memory, stop_memory, NULL },
	{ "lock and barrier", start_sync, stop_sync, NULL },
	{ "socket", start_sockets, net_stop, NULL },
	/* Before those that ask it, and gone behind them */
	{ "queues of other nodes", start_queue_gate, stop_gate, quit_gate },
	{ "queue", start_queue, stop_queue, NULL },
	{ "sockets of the gateway", start_gate, stop_gate, quit_gate },
};

_Static_assert(ARRAY_SIZE(services) <= REQUESTS_SERVICES, "struct requests has room for them");

int services_start(struct requests *rq, struct rgate_hub *hub)
{
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(services); i++) {
		err = services[i].start(&rq->service[i], rq, hub);
		if (!err)
			continue;
		say("cannot serve requests of %s: %s", services[i].name, strerror(-err));
		return err;
	}
	return 0;
}

void services_quit(struct requests *rq)
{
	unsigned int i = ARRAY_SIZE(services);

	while (i--)
		if (rq->service[i] && services[i].quit)
			services[i].quit(rq->service[i]);
}

void services_stop(struct requests *rq)
{
	unsigned int i = ARRAY_SIZE(services);

	while (i--)
		if (rq->service[i])
			services[i].stop(rq->service[i]);
}
