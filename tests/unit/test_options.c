// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Options of a newer caller, who sets what this library does not know: each function that takes
 * options refuses them, before it looks at anything else.
 */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include <ringgate/rgate_barrier.h>
#include <ringgate/rgate_cluster.h>
#include <ringgate/rgate_consumer.h>
#include <ringgate/rgate_gateway.h>
#include <ringgate/rgate_hub.h>
#include <ringgate/rgate_lock.h>
#include <ringgate/rgate_node.h>
#include <ringgate/rgate_pool.h>
#include <ringgate/rgate_session.h>
#include <ringgate/rgate_socket.h>
#include <ringgate/rgate_spawn.h>

#include "engine.h"
#include "rc.h"
#include "gate_service.h"
#include "memory_service.h"
#include "socket_service.h"
#include "sync_service.h"

static char newer[4096] __attribute__((aligned(16)));	/* any options: size, zeroes, a 1 */
static char nothing[4096] __attribute__((aligned(16)));	/* not looked at */

/* What is made, and where it would be told */
static void *out;

static int pool(void)
{
	return rgate_pool_create((void *)&out, NULL, (void *)newer);
}

static int device(void)
{
	return rgate_device_open((void *)&out, (void *)newer);
}

static int pair(void)
{
	return rgate_rc_create((void *)&out, NULL, (void *)newer);
}

static int consumer(void)
{
	struct rgate_consumer c;

	return rgate_consumer_init(&c, (void *)nothing, (void *)newer);
}

static int ring(void)
{
	return rgate_ring_open_memfd((void *)&out, (void *)newer);
}

static int node(void)
{
	return rgate_node_create((void *)&out, (void *)nothing, 0, (void *)newer);
}

static int hub(void)
{
	return rgate_hub_create((void *)&out, (void *)nothing, (void *)newer);
}

static int gateway(void)
{
	return rgate_gateway_create((void *)&out, (void *)nothing, (void *)newer);
}

static int spawn(void)
{
	return rgate_spawn_open((void *)&out, (void *)nothing, (void *)nothing, (void *)newer);
}

static int engine(void)
{
	return rgate_engine_create((void *)&out, (void *)newer);
}

static int seat(void)
{
	struct rgate_welcome w;
	int fds[RGATE_FDS];

	return rgate_seat_add((void *)nothing, (void *)newer, (void *)&out, &w, fds);
}

static int session(void)
{
	return rgate_session_open((void *)&out, (void *)newer);
}

static int sockets(void)
{
	return rgate_sockets_open((void *)&out, (void *)newer);
}

static int lock(void)
{
	return rgate_lock_open((void *)&out, "name", (void *)newer);
}

static int gate_service(void)
{
	return gate_service_create((void *)&out, (void *)newer);
}

static int memory_service(void)
{
	return memory_service_create((void *)&out, (void *)newer);
}

static int socket_service(void)
{
	return socket_service_create((void *)&out, (void *)newer);
}

static int sync_service(void)
{
	return sync_service_create((void *)&out, (void *)newer);
}

static void refused(void **state)
{
	static const struct {
		const char *name;
		int (*call)(void);
	} calls[] = {
		{ "pool", pool }, { "device", device }, { "rc", pair }, { "consumer", consumer },
		{ "ring", ring }, { "node", node }, { "hub", hub }, { "gateway", gateway },
		{ "spawn", spawn }, { "engine", engine }, { "seat", seat },
		{ "session", session }, { "sockets", sockets }, { "lock", lock },
		{ "service of the gate", gate_service }, { "of memory", memory_service },
		{ "of sockets", socket_service }, { "of locks", sync_service },
	};
	const size_t sizes[] = { sizeof(newer), sizeof(size_t) - 1 };
	const int errors[] = { -E2BIG, -EINVAL };
	unsigned int i, k;
	int err;

	(void)state;
	newer[sizeof(newer) - 1] = 1;
	for (k = 0; k < ARRAY_LEN(sizes); k++) {
		memcpy(newer, &sizes[k], sizeof(sizes[k]));
		for (i = 0; i < ARRAY_LEN(calls); i++) {
			err = calls[i].call();
			if (err != errors[k])
				fail_msg("%s: %d", calls[i].name, err);
		}
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(refused),
};

UNIT_MAIN_ALONE(tests)
