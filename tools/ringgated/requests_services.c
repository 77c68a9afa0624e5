// SPDX-License-Identifier: MIT OR GPL-2.0
#include <string.h>

#include "requests_services.h"
#include "service.h"
#include "util.h"

static int start_spawn(void **service, struct rgate_engine *engine, struct rgate_hub *hub)
{
	struct spawn_service *sv;
	int err;

	err = spawn_service_create(&sv, hub);
	if (err)
		return err;
	err = spawn_service_add(sv, engine);
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

static const struct {
	const char *name;
	int (*start)(void **service, struct rgate_engine *engine, struct rgate_hub *hub);
	void (*stop)(void *service);
} services[REQUESTS_SERVICES] = {
	{ "spawn", start_spawn, stop_spawn },
};

int services_start(struct requests *rq, struct rgate_hub *hub)
{
	unsigned int i;
	int err;

	for (i = 0; i < REQUESTS_SERVICES; i++) {
		err = services[i].start(&rq->service[i], rq->engine, hub);
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
