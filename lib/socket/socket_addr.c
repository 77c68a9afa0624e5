// SPDX-License-Identifier: MIT OR GPL-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "socket_addr.h"

_Static_assert((int)RGATE_SOCKET_INET == AF_INET && (int)RGATE_SOCKET_INET6 == AF_INET6,
	       "families are the kernel's");

static bool all_zero(const uint8_t *p, size_t n)
{
	while (n--)
		if (*p++)
			return false;
	return true;
}

int socket_addr_get(const struct rgate_socket_addr *a, struct socket_name *to)
{
	memset(to, 0, sizeof(*to));
	if (a->reserved)
		return -EINVAL;
	switch (a->family) {
	case RGATE_SOCKET_INET:
		if (a->scope || a->flow || !all_zero(a->addr + 4, 12))
			return -EINVAL;
		to->in.sin_family = AF_INET;
		to->in.sin_port = htons(a->port);
		memcpy(&to->in.sin_addr, a->addr, 4);
		to->len = sizeof(to->in);
		return 0;
	case RGATE_SOCKET_INET6:
		to->in6.sin6_family = AF_INET6;
		to->in6.sin6_port = htons(a->port);
		to->in6.sin6_flowinfo = htonl(a->flow);
		to->in6.sin6_scope_id = a->scope;
		memcpy(&to->in6.sin6_addr, a->addr, 16);
		to->len = sizeof(to->in6);
		return 0;
	default:
		return -EAFNOSUPPORT;
	}
}

void socket_addr_put(struct rgate_socket_addr *a, const struct socket_name *from)
{
	memset(a, 0, sizeof(*a));
	if (from->len >= sizeof(from->in) && from->sa.sa_family == AF_INET) {
		a->family = RGATE_SOCKET_INET;
		a->port = ntohs(from->in.sin_port);
		memcpy(a->addr, &from->in.sin_addr, 4);
	} else if (from->len >= sizeof(from->in6) && from->sa.sa_family == AF_INET6) {
		a->family = RGATE_SOCKET_INET6;
		a->port = ntohs(from->in6.sin6_port);
		a->flow = ntohl(from->in6.sin6_flowinfo);
		a->scope = from->in6.sin6_scope_id;
		memcpy(a->addr, &from->in6.sin6_addr, 16);
	}
}

/* Where an IPv4 address begins in the IPv6 one; 0: there is none */
static unsigned int embedded(const uint8_t addr[16])
{
	static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };

	if (addr[0] == 0x20 && addr[1] == 0x02)
		return 2;
	if (!memcmp(addr, nat64, sizeof(nat64)))
		return 12;
	if (all_zero(addr, 10) && addr[10] == 0xff && addr[11] == 0xff)
		return 12;
	/* :: and ::1 are themselves. */
	return all_zero(addr, 12) && (!all_zero(addr + 12, 3) || addr[15] > 1) ? 12 : 0;
}

void socket_host_of(const struct rgate_socket_addr *a, struct socket_host *to)
{
	unsigned int at = 0;

	memset(to, 0, sizeof(*to));
	to->v6 = a->family == RGATE_SOCKET_INET6;
	if (to->v6)
		at = embedded(a->addr);
	if (to->v6 && !at) {
		memcpy(to->addr, a->addr, 16);
		return;
	}
	to->v6 = false;
	memcpy(to->addr, a->addr + at, 4);
}

static const struct {
	bool v6;
	uint8_t addr[2];
	uint8_t last;		/* of the IPv6 address, if all of it counts */
	unsigned int bits;
	enum socket_place place;
} places[] = {
	{ false, { 127 }, 0, 8, PLACE_LOOPBACK },
	{ false, { 169, 254 }, 0, 16, PLACE_LINK_LOCAL },
	{ false, { 0 }, 0, 8, PLACE_UNSPECIFIED },
	{ false, { 224 }, 0, 4, PLACE_MULTICAST },
	{ false, { 240 }, 0, 4, PLACE_MULTICAST },
	{ true, { 0 }, 1, 128, PLACE_LOOPBACK },
	{ true, { 0 }, 0, 128, PLACE_UNSPECIFIED },
	{ true, { 0xfe, 0x80 }, 0, 10, PLACE_LINK_LOCAL },
	{ true, { 0xff }, 0, 8, PLACE_MULTICAST },
};

enum socket_place socket_host_place(const struct socket_host *h, unsigned int *bits)
{
	struct socket_host net;
	unsigned int i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		net = (struct socket_host){ .v6 = places[i].v6 };
		memcpy(net.addr, places[i].addr, 2);
		if (net.v6)
			net.addr[15] = places[i].last;
		if (!socket_host_within(h, &net, places[i].bits))
			continue;
		if (bits)
			*bits = places[i].bits;
		return places[i].place;
	}
	return PLACE_PLAIN;
}

bool socket_host_within(const struct socket_host *h, const struct socket_host *net,
			unsigned int bits)
{
	const unsigned int bytes = bits / 8, rest = bits % 8;

	if (h->v6 != net->v6 || memcmp(h->addr, net->addr, bytes))
		return false;
	return !rest || !((h->addr[bytes] ^ net->addr[bytes]) >> (8 - rest));
}

int socket_host_parse(const char *text, struct socket_host *h, unsigned int *bits)
{
	const size_t n = strcspn(text, "/");
	const char *tail = text + n;
	char addr[INET6_ADDRSTRLEN], *end;
	unsigned int most, i;
	unsigned long v;

	if (n >= sizeof(addr))
		return -EINVAL;
	memcpy(addr, text, n);
	addr[n] = '\0';
	memset(h, 0, sizeof(*h));
	h->v6 = strchr(addr, ':') != NULL;
	if (inet_pton(h->v6 ? AF_INET6 : AF_INET, addr, h->addr) != 1)
		return -EINVAL;
	most = h->v6 ? 128 : 32;
	*bits = most;
	if (!*tail)
		return 0;
	if (tail[1] < '0' || tail[1] > '9')
		return -EINVAL;
	errno = 0;
	v = strtoul(tail + 1, &end, 10);
	if (errno || *end || v > most)
		return -EINVAL;
	*bits = (unsigned int)v;
	for (i = *bits; i < most; i++)
		if (h->addr[i / 8] & 0x80 >> i % 8)
			return -EINVAL;
	return 0;
}

const char *socket_host_text(const struct socket_host *h, char to[SOCKET_ADDR_TEXT])
{
	if (!inet_ntop(h->v6 ? AF_INET6 : AF_INET, h->addr, to, SOCKET_ADDR_TEXT))
		snprintf(to, SOCKET_ADDR_TEXT, "?");
	return to;
}

const char *socket_addr_text(const struct rgate_socket_addr *a, char to[SOCKET_ADDR_TEXT])
{
	char host[INET6_ADDRSTRLEN];

	if (a->family == RGATE_SOCKET_INET && inet_ntop(AF_INET, a->addr, host, sizeof(host)))
		snprintf(to, SOCKET_ADDR_TEXT, "%s:%u", host, a->port);
	else if (a->family == RGATE_SOCKET_INET6 &&
		 inet_ntop(AF_INET6, a->addr, host, sizeof(host)))
		snprintf(to, SOCKET_ADDR_TEXT, "[%s]:%u", host, a->port);
	else
		snprintf(to, SOCKET_ADDR_TEXT, "*");
	return to;
}
