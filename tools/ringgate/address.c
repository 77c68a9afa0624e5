// SPDX-License-Identifier: MIT OR GPL-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

#define HOST_MAX	256

/* getaddrinfo() takes numbers above 65535, and uses their lower half. */
static bool is_port(const char *text)
{
	const size_t len = strspn(text, "0123456789");
	const long v = len && len <= 5 && !text[len] ? strtol(text, NULL, 10) : 0;

	return v >= 1 && v <= 65535;
}

int address_parse(const char *text, struct sockaddr_storage *addr, socklen_t *len,
		  const char **why)
{
	const struct addrinfo hints = {
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_DGRAM,
	};
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	const size_t n = colon ? (size_t)(colon - text) : 0;
	char buf[HOST_MAX] = "", *host = buf;
	struct addrinfo *list;
	int err;

	*why = "the port is a number from 1 to 65535";
	if (!is_port(port))
		return -EINVAL;
	/* cut to nothing it would mean any address */
	*why = "the address is too long";
	if (n >= sizeof(buf))
		return -EINVAL;
	memcpy(buf, text, n);
	if (n >= 2 && buf[0] == '[' && buf[n - 1] == ']') {
		*why = "there is no address in the brackets";
		if (n == 2)
			return -EINVAL;
		buf[n - 1] = '\0';
		host++;
	}
	err = getaddrinfo(*host ? host : NULL, port, &hints, &list);
	if (err) {
		*why = gai_strerror(err);
		return -EINVAL;
	}
	memcpy(addr, list->ai_addr, list->ai_addrlen);
	*len = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

static bool is_of(const struct ifaddrs *i, const char *addr)
{
	char text[INET6_ADDRSTRLEN];
	const void *at = NULL;

	if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
		at = &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr;
	else if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6)
		at = &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr;
	return at && inet_ntop(i->ifa_addr->sa_family, at, text, sizeof(text)) &&
	       !strcmp(text, addr);
}

bool address_is_here(const char *addr)
{
	struct ifaddrs *list;
	const struct ifaddrs *i;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (i = list; i && !found; i = i->ifa_next)
		found = is_of(i, addr);
	freeifaddrs(list);
	return found;
}
