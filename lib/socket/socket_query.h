/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Names that are looked up: what is asked, as getaddrinfo(3) has it, and what comes of it */
#ifndef RGATE_SOCKET_QUERY_H
#define RGATE_SOCKET_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ringgate/request.h>
#include <ringgate/socket.h>

/* A copy, and checked */
struct socket_query {
	uint16_t family, type;
	uint32_t flags;			/* RGATE_SOCKET_RESOLVE_* */
	char name[RGATE_SOCKET_NAME_MAX + 1];
	char service[RGATE_SOCKET_SERVICE_MAX + 1];
};

/* What was found; there may be more addresses than it has */
struct socket_found {
	uint32_t n, there;
	uint32_t canon_len;
	struct rgate_socket_addr last;
	struct rgate_socket_addr addr[RGATE_SOCKET_FOUND_MAX];
	char canon[RGATE_SOCKET_NAME_MAX + 1];
};

/* Letters, digits, and . - _ : % only: whatever looks names up takes each of them as they are */
bool socket_is_name(const char *text, size_t len);

/*
 * socket_query_get - of a request, whose part is at @mem
 * -EINVAL: fields, nothing that is asked for, a part that is too short; -ENAMETOOLONG; -EILSEQ:
 * bytes that no name has; -EAFNOSUPPORT; -ESOCKTNOSUPPORT
 */
int socket_query_get(struct socket_query *q, const struct rgate_request *r, const void *mem);

/* Is anybody asked for it, or only read what it says? */
bool socket_query_asks(const struct socket_query *q);

/*
 * socket_query_run - asks; waits for as long as that takes
 * -ENOENT: there is no such name, and others, see socket_eai_error()
 */
int socket_query_run(const struct socket_query *q, struct socket_found *f);

/* As much as there is room for in the @len bytes at @mem; how many, and the completion's value */
uint32_t socket_found_put(const struct socket_found *f, void *mem, uint32_t len, uint64_t *value);

/*
 * How many addresses are in the @len bytes of an answer; -EPROTO: it is none of what @value says
 */
int socket_found_count(uint32_t len, uint64_t value);

/* -errno for EAI_*; @err: errno, of EAI_SYSTEM */
int socket_eai_error(int eai, int err);

#endif
