// SPDX-License-Identifier: MIT OR GPL-2.0
#include "shim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define IN6_LEN_MIN	24U	/* without the scope, as RFC 2133 had it, and the kernel takes it */

int shim_addr_get(const struct sockaddr *sa, socklen_t len, struct rgate_socket_addr *to)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6 = { .sin6_scope_id = 0 };

	memset(to, 0, sizeof(*to));
	if (!sa || len < sizeof(sa->sa_family))
		return -EINVAL;
	to->family = sa->sa_family;
	switch (sa->sa_family) {
	case AF_INET:
		if (len < sizeof(in))
			return -EINVAL;
		memcpy(&in, sa, sizeof(in));
		to->port = ntohs(in.sin_port);
		memcpy(to->addr, &in.sin_addr, 4);
		return 0;
	case AF_INET6:
		if (len < IN6_LEN_MIN)
			return -EINVAL;
		memcpy(&in6, sa, len < sizeof(in6) ? len : sizeof(in6));
		to->port = ntohs(in6.sin6_port);
		to->scope = in6.sin6_scope_id;
		to->flow = ntohl(in6.sin6_flowinfo);
		memcpy(to->addr, &in6.sin6_addr, 16);
		return 0;
	default:
		return -EAFNOSUPPORT;
	}
}

void shim_addr_put(const struct rgate_socket_addr *a, struct sockaddr *sa, socklen_t *len)
{
	union {
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} name;
	socklen_t own = a->family == AF_INET6 ? sizeof(name.in6) : sizeof(name.in);

	memset(&name, 0, sizeof(name));
	if (a->family == AF_INET6) {
		name.in6.sin6_family = AF_INET6;
		name.in6.sin6_port = htons(a->port);
		name.in6.sin6_scope_id = a->scope;
		name.in6.sin6_flowinfo = htonl(a->flow);
		memcpy(&name.in6.sin6_addr, a->addr, 16);
	} else {
		name.in.sin_family = AF_INET;
		name.in.sin_port = htons(a->port);
		memcpy(&name.in.sin_addr, a->addr, 4);
	}
	memcpy(sa, &name, *len < own ? *len : own);
	*len = own;
}
