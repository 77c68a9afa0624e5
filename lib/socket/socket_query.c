// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <ringgate/rgate_socket.h>

#include "socket_addr.h"
#include "socket_query.h"

#define N(array)	(sizeof(array) / sizeof((array)[0]))
#define ADDR	((uint32_t)sizeof(struct rgate_socket_addr))

/* ---- What is asked ---- */

/* Whatever the locale is */
static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_made_of(const char *text, size_t len, const char *others)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!text[i] || (!is_plain(text[i]) && !strchr(others, text[i])))
			return false;
	return true;
}

bool socket_is_name(const char *text, size_t len)
{
	return is_made_of(text, len, ".-_:%");
}

static int check_words(const struct rgate_request *r)
{
	const uint32_t flags = (uint32_t)(r->a0 >> 32);
	const uint32_t family = (uint16_t)r->a0, type = (uint16_t)(r->a0 >> 16);

	if (flags & ~RGATE_SOCKET_RESOLVE_FLAGS)
		return -EINVAL;
	if (family && family != RGATE_SOCKET_INET && family != RGATE_SOCKET_INET6)
		return -EAFNOSUPPORT;
	return type && type != RGATE_SOCKET_STREAM && type != RGATE_SOCKET_DGRAM ?
	       -ESOCKTNOSUPPORT : 0;
}

int socket_query_get(struct socket_query *q, const struct rgate_request *r, const void *mem)
{
	const uint32_t name = (uint16_t)r->a1, service = (uint16_t)(r->a1 >> 16);
	int err = check_words(r);

	if (err)
		return err;
	if (r->a1 >> 32 || !(name + service) || !mem || r->len < name + service || r->len < ADDR)
		return -EINVAL;
	if (name > RGATE_SOCKET_NAME_MAX || service > RGATE_SOCKET_SERVICE_MAX)
		return -ENAMETOOLONG;
	memset(q, 0, sizeof(*q));
	q->family = (uint16_t)r->a0;
	q->type = (uint16_t)(r->a0 >> 16);
	q->flags = (uint32_t)(r->a0 >> 32);
	memcpy(q->name, mem, name);
	memcpy(q->service, (const char *)mem + name, service);
	return socket_is_name(q->name, name) && is_made_of(q->service, service, ".-_+") ?
	       0 : -EILSEQ;
}

bool socket_query_asks(const struct socket_query *q)
{
	return (*q->name && !(q->flags & RGATE_SOCKET_RESOLVE_NUMERIC)) ||
	       (*q->service && !(q->flags & RGATE_SOCKET_RESOLVE_PORT));
}

/* ---- What comes of it ---- */

static int flags_of(const struct socket_query *q)
{
	static const struct {
		uint32_t flag;
		int ai;
	} flags[] = {
		{ RGATE_SOCKET_RESOLVE_PASSIVE, AI_PASSIVE },
		{ RGATE_SOCKET_RESOLVE_CANON, AI_CANONNAME },
		{ RGATE_SOCKET_RESOLVE_NUMERIC, AI_NUMERICHOST },
		{ RGATE_SOCKET_RESOLVE_PORT, AI_NUMERICSERV },
		{ RGATE_SOCKET_RESOLVE_V4MAPPED, AI_V4MAPPED },
		{ RGATE_SOCKET_RESOLVE_ALL, AI_ALL },
		{ RGATE_SOCKET_RESOLVE_CONFIGURED, AI_ADDRCONFIG },
	};
	unsigned int i;
	int ai = 0;

	for (i = 0; i < N(flags); i++)
		if (q->flags & flags[i].flag)
			ai |= flags[i].ai;
	return ai;
}

static const struct {
	int eai;
	int err;
} errors[] = {
	{ EAI_NONAME, ENOENT },
	{ EAI_NODATA, ENODATA },
	{ EAI_ADDRFAMILY, EADDRNOTAVAIL },
	{ EAI_AGAIN, EHOSTUNREACH },
	{ EAI_FAIL, EREMOTEIO },
	{ EAI_SERVICE, EPROTONOSUPPORT },
	{ EAI_SOCKTYPE, ESOCKTNOSUPPORT },
	{ EAI_FAMILY, EAFNOSUPPORT },
	{ EAI_MEMORY, ENOMEM },
	{ EAI_BADFLAGS, EINVAL },
	/* what is only the way back */
	{ EAI_NONAME, ENAMETOOLONG },
	{ EAI_NONAME, EILSEQ },
	{ EAI_AGAIN, ETIMEDOUT },
	{ EAI_AGAIN, EAGAIN },
	{ EAI_AGAIN, EDQUOT },
	{ EAI_AGAIN, ENOBUFS },
	{ EAI_AGAIN, EUSERS },
	{ EAI_FAIL, EACCES },
};

int socket_eai_error(int eai, int err)
{
	unsigned int i;

	for (i = 0; i < N(errors); i++)
		if (errors[i].eai == eai)
			return -errors[i].err;
	/* Too many descriptors, say; but of errors that mean something else here */
	return eai == EAI_SYSTEM && err > 0 && err != EAGAIN && err != ENOENT ? -err : -EIO;
}

int rgate_socket_eai(int err)
{
	unsigned int i;

	if (!err)
		return 0;
	for (i = 0; i < N(errors); i++)
		if (errors[i].err == -err)
			return errors[i].eai;
	errno = -err;
	return EAI_SYSTEM;
}

static bool is_known(const struct socket_found *f, const struct rgate_socket_addr *a)
{
	uint32_t i;

	for (i = 0; i < f->n; i++)
		if (!memcmp(&f->addr[i], a, sizeof(*a)))
			return true;
	/* Of those that it has no room for, the same ones come together. */
	return !memcmp(&f->last, a, sizeof(*a));
}

/* An address comes once for each type that is not asked for by name. */
static void take_addr(struct socket_found *f, const struct addrinfo *ai)
{
	struct socket_name name = { .len = ai->ai_addrlen };
	struct rgate_socket_addr a;

	if (!ai->ai_addr || name.len > sizeof(name.in6) ||
	    (ai->ai_socktype != SOCK_STREAM && ai->ai_socktype != SOCK_DGRAM))
		return;
	memcpy(&name.sa, ai->ai_addr, name.len);
	socket_addr_put(&a, &name);
	if (!a.family || is_known(f, &a))
		return;
	f->there++;
	f->last = a;
	if (f->n < RGATE_SOCKET_FOUND_MAX)
		f->addr[f->n++] = a;
}

/* It is a name server's word: nothing that is no name */
static void take_canon(struct socket_found *f, const char *canon)
{
	const size_t len = canon ? strnlen(canon, sizeof(f->canon)) : 0;

	if (!len || len == sizeof(f->canon) || !socket_is_name(canon, len))
		return;
	memcpy(f->canon, canon, len + 1);
	f->canon_len = (uint32_t)len;
}

int socket_query_run(const struct socket_query *q, struct socket_found *f)
{
	const struct addrinfo hints = {
		.ai_family = q->family ? q->family : AF_UNSPEC, .ai_socktype = q->type,
		.ai_flags = flags_of(q),
	};
	struct addrinfo *list = NULL, *ai;
	int err;

	memset(f, 0, sizeof(*f));
	errno = 0;
	err = getaddrinfo(*q->name ? q->name : NULL, *q->service ? q->service : NULL, &hints,
			  &list);
	if (err)
		return socket_eai_error(err, errno);
	if (list)
		take_canon(f, list->ai_canonname);
	for (ai = list; ai; ai = ai->ai_next)
		take_addr(f, ai);
	if (list)
		freeaddrinfo(list);
	return f->n ? 0 : -ENODATA;
}

uint32_t socket_found_put(const struct socket_found *f, void *mem, uint32_t len, uint64_t *value)
{
	const uint32_t n = f->n < len / ADDR ? f->n : len / ADDR, bytes = n * ADDR;
	const bool canon = f->canon_len && len - bytes > f->canon_len;

	memcpy(mem, f->addr, bytes);
	if (canon)
		memcpy((char *)mem + bytes, f->canon, f->canon_len + 1);
	*value = f->there | (uint64_t)(canon ? f->canon_len : 0) << 32;
	return bytes + (canon ? f->canon_len + 1 : 0);
}

int socket_found_count(uint32_t len, uint64_t value)
{
	const uint32_t canon = RGATE_SOCKET_CANON(value), behind = canon ? canon + 1 : 0;

	if (canon > RGATE_SOCKET_NAME_MAX || behind > len || (len - behind) % ADDR ||
	    (len - behind) / ADDR > RGATE_SOCKET_FOUND(value))
		return -EPROTO;
	return (int)((len - behind) / ADDR);
}
