// SPDX-License-Identifier: MIT OR GPL-2.0
/* The services of a process that serves its own sessions, without a node */
#include <errno.h>
#include <stdlib.h>

#include "memory_service.h"
#include "session_priv.h"
#include "sync_service.h"

struct process_services {
	struct memory_service *memory;
	struct sync_service *sync;
};

static int start(struct process_services *ps, struct rgate_engine *engine)
{
	int err;

	err = memory_service_create(&ps->memory, NULL);
	if (!err)
		err = sync_service_create(&ps->sync, NULL);
	if (!err)
		err = memory_service_add(ps->memory, engine);
	return err ? err : sync_service_add(ps->sync, engine);
}

int rgate_process_services(struct rgate_engine *engine, void **services)
{
	struct process_services *ps = calloc(1, sizeof(*ps));
	int err;

	if (!ps)
		return -ENOMEM;
	err = start(ps, engine);
	if (err)
		rgate_process_services_free(ps);
	else
		*services = ps;
	return err;
}

void rgate_process_services_free(void *services)
{
	struct process_services *ps = services;

	if (!ps)
		return;
	sync_service_destroy(ps->sync);
	memory_service_destroy(ps->memory);
	free(ps);
}
