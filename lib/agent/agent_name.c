// SPDX-License-Identifier: MIT OR GPL-2.0
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_priv.h"
#include "socket_addr.h"

void agent_path(const struct agent *a, uint64_t id, struct sockaddr_un *un)
{
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	(void)snprintf(un->sun_path, sizeof(un->sun_path), "%s/%" PRIu64, a->dir, id);
}

void agent_data_path(const struct agent *a, struct sockaddr_un *un)
{
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	if (a->data_at < 0)
		(void)stpcpy(stpcpy(un->sun_path, a->dir), "/" AGENT_DATA);
	else
		(void)snprintf(un->sun_path, sizeof(un->sun_path), "/proc/self/fd/%d", a->data_at);
}

uint64_t agent_path_id(const struct agent *a, const struct sockaddr_un *un, socklen_t len)
{
	const size_t dir = strlen(a->dir), head = offsetof(struct sockaddr_un, sun_path);
	char path[sizeof(un->sun_path) + 1] = "";
	struct sockaddr_un named;
	uint64_t id;

	if (un->sun_family != AF_UNIX || len <= head || len > sizeof(*un))
		return 0;
	memcpy(path, un->sun_path, len - head);
	if (strncmp(path, a->dir, dir) || path[dir] != '/')
		return 0;
	/* Only what the agent would call it, which is one name for each. */
	id = strtoull(path + dir + 1, NULL, 10);
	agent_path(a, id, &named);
	return strcmp(named.sun_path, path) ? 0 : id;
}

const struct agent_name *agent_name_of(const struct agent *a, const struct sockaddr_un *un,
				       socklen_t len, struct agent_name *room)
{
	if (un->sun_family != AF_UNIX ||
	    len != offsetof(struct sockaddr_un, sun_path) + sizeof(*room))
		return NULL;
	memcpy(room, un->sun_path, sizeof(*room));
	if (room->zero || memcmp(room->magic, AGENT_MAGIC, sizeof(room->magic)) ||
	    room->agent != a->number)
		return NULL;
	return room;
}

socklen_t agent_name_put(struct sockaddr_un *un, const struct agent_name *name)
{
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, name, sizeof(*name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(*name));
}

static bool is_at(const struct rgate_socket_addr *addr, enum socket_place place)
{
	struct socket_host host;

	socket_host_of(addr, &host);
	return socket_host_place(&host, NULL) == place;
}

bool agent_is_loop(const struct rgate_socket_addr *addr)
{
	return is_at(addr, PLACE_LOOPBACK);
}

bool agent_is_any(const struct rgate_socket_addr *addr)
{
	return is_at(addr, PLACE_UNSPECIFIED);
}
