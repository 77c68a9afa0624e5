/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The options that sockets have here: a table, beyond which there are none. */
#ifndef RGATE_SOCKET_OPTIONS_H
#define RGATE_SOCKET_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <ringgate/socket.h>

#define OPTION_GET	(1U << 0)
#define OPTION_SET	(1U << 1)
#define OPTION_TEXT	(1U << 2)	/* up to `size` bytes */
#define OPTION_PART	(1U << 3)	/* get: as much of it as there is room for */

struct socket_option {
	uint32_t number;	/* enum rgate_socket_option */
	const char *name;
	int level, name_there;	/* the kernel's */
	uint32_t size;
	uint32_t how;		/* OPTION_* */
};

/* NULL: there is none of that number */
const struct socket_option *socket_option(uint64_t number);
/* The @i-th of the table; NULL: there are not so many */
const struct socket_option *socket_option_at(unsigned int i);

/* Lengths that the option can have: 0, -EINVAL, or -ENOPROTOOPT: it cannot be set, or read */
int socket_option_check(const struct socket_option *o, bool set, uint32_t len);

/*
 * socket_option_set, socket_option_get - of the descriptor
 * _get(): how many bytes. -errno of setsockopt(2), getsockopt(2). Neither waits: what a lingering
 * close would is not the kernel's here, and no congestion control is loaded.
 */
int socket_option_set(int fd, const struct socket_option *o, const void *value, uint32_t len);
int socket_option_get(int fd, const struct socket_option *o, void *value, uint32_t len);

#endif
