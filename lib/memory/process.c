// SPDX-License-Identifier: MIT OR GPL-2.0
/* The services of a process that serves its own sessions, without a node */
#include "memory_service.h"
#include "session_priv.h"

int rgate_process_services(struct rgate_engine *engine, void **services)
{
	struct memory_service *sv;
	int err;

	err = memory_service_create(&sv, NULL);
	if (err)
		return err;
	err = memory_service_add(sv, engine);
	if (err)
		memory_service_destroy(sv);
	else
		*services = sv;
	return err;
}

void rgate_process_services_free(void *services)
{
	memory_service_destroy(services);
}
