// SPDX-License-Identifier: MIT OR GPL-2.0
/* The services of a process that serves its own sessions, without a node */
#include <errno.h>
#include <stdlib.h>

#include "memory_service.h"
#include "queue_service.h"
#include "session_priv.h"
#include "socket_service.h"
#include "sync_service.h"

struct services {
	struct memory_service *memory;
	struct sync_service *sync;
	struct socket_service *sockets;
	struct queue_service *queues;
};

static int add_all(struct services *all, struct rgate_engine *engine)
{
	int err;

	err = memory_service_create(&all->memory, NULL);
	if (err)
		return err;
	err = memory_service_add(all->memory, engine);
	if (err)
		return err;
	err = sync_service_create(&all->sync, NULL);
	if (err)
		return err;
	err = sync_service_add(all->sync, engine);
	if (err)
		return err;
	/* It has the rights that this process has. */
	err = socket_service_create(&all->sockets, NULL);
	if (err)
		return err;
	err = socket_service_add(all->sockets, engine);
	if (err)
		return err;
	err = queue_service_create(&all->queues, NULL);
	return err ? err : queue_service_add(all->queues, engine);
}

int rgate_process_services(struct rgate_engine *engine, void **services)
{
	struct services *all = calloc(1, sizeof(*all));
	int err;

	if (!all)
		return -ENOMEM;
	err = add_all(all, engine);
	if (err)
		rgate_process_services_free(all);
	else
		*services = all;
	return err;
}

void rgate_process_services_fork(void *services, enum rgate_process_fork when)
{
	struct services *all = services;

	if (!all)
		return;
	switch (when) {
	case RGATE_FORK_PREPARE:
		socket_service_fork_prepare(all->sockets);
		break;
	case RGATE_FORK_PARENT:
		socket_service_fork_parent(all->sockets);
		break;
	case RGATE_FORK_CHILD:
		socket_service_fork_child(all->sockets);
		break;
	}
}

void rgate_process_services_free(void *services)
{
	struct services *all = services;

	if (!all)
		return;
	queue_service_destroy(all->queues);
	socket_service_destroy(all->sockets);
	sync_service_destroy(all->sync);
	memory_service_destroy(all->memory);
	free(all);
}
