// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Names are looked up where the sockets are. What is no name, and services, are the C library's,
 * and so is a name that is not found there: this machine's files may have it.
 */
#include "shim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXT_MAX	(INET6_ADDRSTRLEN + sizeof("%4294967295"))

static const struct {
	int err, eai, h;
} errors[] = {
	{ ENOENT, EAI_NONAME, HOST_NOT_FOUND },
	{ ENAMETOOLONG, EAI_NONAME, HOST_NOT_FOUND },
	{ EILSEQ, EAI_NONAME, HOST_NOT_FOUND },
	{ ENODATA, EAI_NODATA, NO_DATA },
	{ EADDRNOTAVAIL, EAI_ADDRFAMILY, NO_DATA },
	{ EREMOTEIO, EAI_FAIL, NO_RECOVERY },
	{ EACCES, EAI_FAIL, NO_RECOVERY },
	{ ENOMEM, EAI_MEMORY, NO_RECOVERY },
	{ EINVAL, EAI_BADFLAGS, NO_RECOVERY },
};

/* Others are over some time. */
static int eai_of(int err)
{
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].err == -err)
			return errors[i].eai;
	return EAI_AGAIN;
}

static int h_of(int err)
{
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].err == -err)
			return errors[i].h;
	return TRY_AGAIN;
}

/* Nobody has to be asked for it, or nobody else knows it. */
static bool is_here(const char *name)
{
	struct in_addr any;

	return !name || !*name || strchr(name, ':') || inet_aton(name, &any) ||
	       !strcasecmp(name, "localhost");
}

static uint32_t flags_of(int ai)
{
	return (ai & AI_CANONNAME ? RGATE_SOCKET_RESOLVE_CANON : 0) |
	       (ai & AI_V4MAPPED ? RGATE_SOCKET_RESOLVE_V4MAPPED : 0) |
	       (ai & AI_ALL ? RGATE_SOCKET_RESOLVE_ALL : 0) |
	       (ai & AI_ADDRCONFIG ? RGATE_SOCKET_RESOLVE_CONFIGURED : 0);
}

/* 0; -errno */
static int look_up(const char *name, int family, uint32_t flags, struct agent_answer *answer)
{
	struct agent_ask ask = { .version = AGENT_VERSION, .what = AGENT_RESOLVE,
				 .a = (uint32_t)family, .b = flags };
	const size_t len = strlen(name);
	int err;

	if (len > RGATE_SOCKET_NAME_MAX)
		return -ENAMETOOLONG;
	ask.len = (uint32_t)len;
	memcpy(ask.value, name, len);
	err = shim_ask(&ask, -1, answer, NULL, true);
	if (err)
		return err;
	if (answer->len > sizeof(answer->value) || answer->found > RGATE_SOCKET_FOUND_MAX ||
	    answer->found * sizeof(answer->addr) > answer->len)
		return -EREMOTEIO;
	return answer->found ? 0 : -ENODATA;
}

static struct rgate_socket_addr found(const struct agent_answer *answer, uint32_t i)
{
	struct rgate_socket_addr a;

	memcpy(&a, answer->value + i * sizeof(a), sizeof(a));
	return a;
}

/* What stands behind the addresses; NULL: nothing, or there was no memory */
static char *canon_of(const struct agent_answer *answer)
{
	const size_t from = answer->found * sizeof(struct rgate_socket_addr);

	if (answer->len <= from)
		return NULL;
	return strndup((const char *)answer->value + from, answer->len - from);
}

/* ---- getaddrinfo ---- */

/* As the library makes it of a number: its memory, with each type that the hints let it have */
static int add(const struct rgate_socket_addr *a, const char *service,
	       const struct addrinfo *hints, struct addrinfo ***last)
{
	char text[TEXT_MAX] = "";
	int ret;

	if (!inet_ntop(a->family, a->addr, text, sizeof(text)))
		return EAI_FAIL;
	if (a->scope)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%%%u", a->scope);
	ret = NEXT(getaddrinfo)(text, service, hints, *last);
	while (!ret && **last)
		*last = &(**last)->ai_next;
	return ret;
}

static int make_list(const struct agent_answer *answer, const char *name, const char *service,
		     const struct addrinfo *hints, struct addrinfo **res)
{
	struct addrinfo own = *hints, *all = NULL, **last = &all;
	struct rgate_socket_addr a;
	uint32_t i;
	int ret = 0;

	own.ai_family = AF_UNSPEC;
	own.ai_flags = (own.ai_flags & (AI_NUMERICSERV | AI_PASSIVE)) | AI_NUMERICHOST;
	for (i = 0; i < answer->found && !ret; i++) {
		a = found(answer, i);
		/* whatever who serves says: the caller looks at what he has asked for */
		if (hints->ai_family == AF_UNSPEC || hints->ai_family == (int)a.family)
			ret = add(&a, service, &own, &last);
	}
	if (!ret && !all)
		ret = EAI_NODATA;
	if (!ret && hints->ai_flags & AI_CANONNAME) {
		all->ai_canonname = canon_of(answer);
		if (!all->ai_canonname)
			all->ai_canonname = strdup(name);
		ret = all->ai_canonname ? 0 : EAI_MEMORY;
	}
	if (!ret)
		*res = all;
	else if (all)
		freeaddrinfo(all);
	return ret;
}

SHIM_EXPORT int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
			    struct addrinfo **res)
{
	static const struct addrinfo none;
	struct addrinfo own = hints ? *hints : none;
	struct agent_answer answer;
	int err;

	if (!shim_active())
		return NEXT(getaddrinfo)(node, service, hints, res);
	/* There is no address in this namespace, and so AI_ADDRCONFIG would leave none. */
	own.ai_flags &= ~AI_ADDRCONFIG;
	if (is_here(node) || own.ai_flags & AI_NUMERICHOST ||
	    (own.ai_family != AF_UNSPEC && own.ai_family != AF_INET && own.ai_family != AF_INET6))
		return NEXT(getaddrinfo)(node, service, &own, res);
	err = look_up(node, own.ai_family, flags_of(hints ? hints->ai_flags : 0), &answer);
	if (!err)
		return make_list(&answer, node, service, &own, res);
	return NEXT(getaddrinfo)(node, service, &own, res) ? eai_of(err) : 0;
}

/* ---- gethostbyname ---- */

/* From @at on, which moves on; NULL: there is no room */
static void *take(char **at, const char *end, size_t len)
{
	const size_t align = alignof(char *);
	const size_t over = (uintptr_t)*at % align;
	char *p = *at + (over ? align - over : 0);

	if (p > end || len > (size_t)(end - p))
		return NULL;
	*at = p + len;
	return p;
}

/* Who serves may have named others, too. */
static size_t count_of(const struct agent_answer *answer, int family)
{
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < answer->found; i++)
		n += found(answer, i).family == family;
	return n;
}

/* -ERANGE; -ENODATA */
static int fill(const struct agent_answer *answer, const char *name, int family,
		struct hostent *h, char *buf, size_t len)
{
	const size_t n = count_of(answer, family), size = family == AF_INET6 ? 16 : 4;
	const char *end = buf + len;
	struct rgate_socket_addr a;
	uint32_t i, at = 0;

	if (!n)
		return -ENODATA;
	h->h_addrtype = family;
	h->h_length = (int)size;
	h->h_aliases = take(&buf, end, sizeof(char *));
	h->h_addr_list = take(&buf, end, (n + 1) * sizeof(char *));
	h->h_name = take(&buf, end, strlen(name) + 1);
	if (!h->h_aliases || !h->h_addr_list || !h->h_name)
		return -ERANGE;
	h->h_aliases[0] = NULL;
	(void)stpcpy(h->h_name, name);
	for (i = 0; i < answer->found; i++) {
		a = found(answer, i);
		if (a.family != family)
			continue;
		h->h_addr_list[at] = take(&buf, end, size);
		if (!h->h_addr_list[at])
			return -ERANGE;
		memcpy(h->h_addr_list[at++], a.addr, size);
	}
	h->h_addr_list[n] = NULL;
	return 0;
}

SHIM_EXPORT int gethostbyname2_r(const char *name, int family, struct hostent *h, char *buf,
				 size_t len, struct hostent **result, int *error)
{
	struct agent_answer answer;
	int err, ret;

	if (!shim_active() || is_here(name) || (family != AF_INET && family != AF_INET6))
		return NEXT(gethostbyname2_r)(name, family, h, buf, len, result, error);
	err = look_up(name, family, 0, &answer);
	if (err) {
		ret = NEXT(gethostbyname2_r)(name, family, h, buf, len, result, error);
		if (!*result && ret != ERANGE)
			*error = h_of(err);
		return ret;
	}
	err = fill(&answer, name, family, h, buf, len);
	*result = err ? NULL : h;
	*error = !err ? NETDB_SUCCESS : err == -ERANGE ? NETDB_INTERNAL : h_of(err);
	return err == -ERANGE ? ERANGE : 0;
}

SHIM_EXPORT int gethostbyname_r(const char *name, struct hostent *h, char *buf, size_t len,
				struct hostent **result, int *error)
{
	return gethostbyname2_r(name, AF_INET, h, buf, len, result, error);
}

/* What it returns is there until the next call, by any thread, as ever. */
SHIM_EXPORT struct hostent *gethostbyname2(const char *name, int family)
{
	static char buf[4096];
	static struct hostent h;
	struct hostent *result = NULL;

	if (!shim_active() || is_here(name))
		return NEXT(gethostbyname2)(name, family);
	(void)gethostbyname2_r(name, family, &h, buf, sizeof(buf), &result, &h_errno);
	return result;
}

SHIM_EXPORT struct hostent *gethostbyname(const char *name)
{
	if (!shim_active() || is_here(name))
		return NEXT(gethostbyname)(name);
	return gethostbyname2(name, AF_INET);
}
