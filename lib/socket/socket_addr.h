/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Addresses: as requests have them, as the kernel does, and what kind of place one is */
#ifndef RGATE_SOCKET_ADDR_H
#define RGATE_SOCKET_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <ringgate/socket.h>

/* The kernel's form */
struct socket_name {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
	socklen_t len;
};

/* -EAFNOSUPPORT: of a family that there is not; -EINVAL: what has to be 0 is not */
int socket_addr_get(const struct rgate_socket_addr *a, struct socket_name *to);
/* All 0 for a family that there is not */
void socket_addr_put(struct rgate_socket_addr *a, const struct socket_name *from);

/* An address alone */
struct socket_host {
	bool v6;
	uint8_t addr[16];		/* of IPv4 the first four */
};

/*
 * socket_host_of - where packets to it go
 * An IPv4 address that stands in an IPv6 one, mapped (::ffff:0:0/96), compatible (::/96),
 * translated (64:ff9b::/96) or of 6to4 (2002::/16), is that IPv4 address.
 */
void socket_host_of(const struct rgate_socket_addr *a, struct socket_host *to);

/* Places that are not just somewhere in the network */
enum socket_place {
	PLACE_PLAIN,
	PLACE_LOOPBACK,
	PLACE_LINK_LOCAL,
	PLACE_UNSPECIFIED,
	PLACE_MULTICAST,	/* and what is reserved, with the broadcast address */
};

/* @bits: out, if not NULL: how many of the address say so */
enum socket_place socket_host_place(const struct socket_host *h, unsigned int *bits);

/* Are the first @bits of both the same, and the families? */
bool socket_host_within(const struct socket_host *h, const struct socket_host *net,
			unsigned int bits);

/* ADDRESS or ADDRESS/BITS; bits beyond are 0. -EINVAL */
int socket_host_parse(const char *text, struct socket_host *h, unsigned int *bits);

#define SOCKET_ADDR_TEXT	64

/* 10.0.0.1:80, [::1]:80 */
const char *socket_addr_text(const struct rgate_socket_addr *a, char to[SOCKET_ADDR_TEXT]);
/* The address without the port */
const char *socket_host_text(const struct socket_host *h, char to[SOCKET_ADDR_TEXT]);

#endif
