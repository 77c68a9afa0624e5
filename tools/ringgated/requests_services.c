// SPDX-License-Identifier: MIT OR GPL-2.0
#include <string.h>

#include "memory_service.h"
#include "requests_net.h"
#include "requests_services.h"
#include "service.h"
#include "sync_service.h"
#include "util.h"

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

static int start_sockets(void **service, struct requests *rq, struct rgate_hub *hub)
{
	(void)hub;
	return net_start(service, rq);
}

static const struct {
	const char *name;
	int (*start)(void **service, struct requests *rq, struct rgate_hub *hub);
	void (*stop)(void *service);
} services[REQUESTS_SERVICES] = {
	{ "spawn", start_spawn, stop_spawn },
	{ "memory", start_memory, stop_memory },
	{ "lock and barrier", start_sync, stop_sync },
	{ "socket", start_sockets, net_stop },
};

int services_start(struct requests *rq, struct rgate_hub *hub)
{
	unsigned int i;
	int err;

	for (i = 0; i < REQUESTS_SERVICES; i++) {
		err = services[i].start(&rq->service[i], rq, hub);
		if (!err)
			continue;
		say("cannot serve requests of %s: %s", services[i].name, strerror(-err));
		return err;
	}
	return 0;
}

void services_stop(struct requests *rq)
{
	unsigned int i = REQUESTS_SERVICES;

	while (i--)
		if (rq->service[i])
			services[i].stop(rq->service[i]);
}
