// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent_priv.h"
#include "socket_addr.h"

#define NAME_TRIES	8U

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

int agent_name_bind(int fd, struct agent_name *name)
{
	struct sockaddr_un un;
	unsigned int tries;
	socklen_t len;

	/* All users have these names, and one that can be guessed might be taken. */
	for (tries = 0; tries < NAME_TRIES; tries++) {
		(void)getrandom(&name->random, sizeof(name->random), GRND_NONBLOCK);
		len = agent_name_put(&un, name);
		if (!bind(fd, (struct sockaddr *)&un, len))
			return 0;
		if (errno != EADDRINUSE)
			break;
	}
	return -EIO;
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

bool agent_is_v4(const struct rgate_socket_addr *addr)
{
	struct socket_host host;

	socket_host_of(addr, &host);
	return !host.v6;
}

bool agent_same_host(const struct rgate_socket_addr *x, const struct rgate_socket_addr *y)
{
	struct socket_host a, b;

	socket_host_of(x, &a);
	socket_host_of(y, &b);
	return a.v6 == b.v6 && !memcmp(a.addr, b.addr, a.v6 ? 16 : 4);
}

void agent_set_loop(struct rgate_socket_addr *addr)
{
	memset(addr->addr, 0, sizeof(addr->addr));
	if (addr->family == RGATE_SOCKET_INET) {
		addr->addr[0] = 127;
		addr->addr[3] = 1;
	} else {
		addr->addr[15] = 1;
	}
}

void agent_set_family(struct rgate_socket_addr *addr, uint16_t family)
{
	if (addr->family == family)
		return;
	if (family == RGATE_SOCKET_INET6) {
		memcpy(addr->addr + 12, addr->addr, 4);
		memset(addr->addr, 0, 10);
		memset(addr->addr + 10, 0xff, 2);
	} else {
		memcpy(addr->addr, addr->addr + 12, 4);
		memset(addr->addr + 4, 0, 12);
	}
	addr->family = family;
}
