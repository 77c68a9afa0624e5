// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "socket_options.h"

#define BOTH		(OPTION_GET | OPTION_SET)
#define NAME_MAX_LEN	16U	/* of a congestion control */
#define ALLOWED		"/proc/sys/net/ipv4/tcp_allowed_congestion_control"

#define INT(n, text, level, there, how) \
	{ RGATE_SOCKET_##n, text, level, there, sizeof(int), how }

static const struct socket_option options[] = {
	INT(ERROR_CODE, "SO_ERROR", SOL_SOCKET, SO_ERROR, OPTION_GET),
	INT(TYPE, "SO_TYPE", SOL_SOCKET, SO_TYPE, OPTION_GET),
	INT(DOMAIN, "SO_DOMAIN", SOL_SOCKET, SO_DOMAIN, OPTION_GET),
	INT(PROTOCOL, "SO_PROTOCOL", SOL_SOCKET, SO_PROTOCOL, OPTION_GET),
	INT(ACCEPTCONN, "SO_ACCEPTCONN", SOL_SOCKET, SO_ACCEPTCONN, OPTION_GET),
	INT(REUSEADDR, "SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR, BOTH),
	INT(REUSEPORT, "SO_REUSEPORT", SOL_SOCKET, SO_REUSEPORT, BOTH),
	INT(KEEPALIVE, "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, BOTH),
	{ RGATE_SOCKET_LINGER, "SO_LINGER", SOL_SOCKET, SO_LINGER, sizeof(struct linger), BOTH },
	INT(SNDBUF, "SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, BOTH),
	INT(RCVBUF, "SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, BOTH),
	INT(BROADCAST, "SO_BROADCAST", SOL_SOCKET, SO_BROADCAST, BOTH),
	INT(TCP_NODELAY, "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, BOTH),
	INT(TCP_CORK, "TCP_CORK", IPPROTO_TCP, TCP_CORK, BOTH),
	INT(TCP_KEEPIDLE, "TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, BOTH),
	INT(TCP_KEEPINTVL, "TCP_KEEPINTVL", IPPROTO_TCP, TCP_KEEPINTVL, BOTH),
	INT(TCP_KEEPCNT, "TCP_KEEPCNT", IPPROTO_TCP, TCP_KEEPCNT, BOTH),
	INT(TCP_SYNCNT, "TCP_SYNCNT", IPPROTO_TCP, TCP_SYNCNT, BOTH),
	INT(TCP_USER_TIMEOUT, "TCP_USER_TIMEOUT", IPPROTO_TCP, TCP_USER_TIMEOUT, BOTH),
	INT(TCP_DEFER_ACCEPT, "TCP_DEFER_ACCEPT", IPPROTO_TCP, TCP_DEFER_ACCEPT, BOTH),
	INT(TCP_QUICKACK, "TCP_QUICKACK", IPPROTO_TCP, TCP_QUICKACK, BOTH),
	INT(TCP_MAXSEG, "TCP_MAXSEG", IPPROTO_TCP, TCP_MAXSEG, BOTH),
	INT(TCP_NOTSENT_LOWAT, "TCP_NOTSENT_LOWAT", IPPROTO_TCP, TCP_NOTSENT_LOWAT, BOTH),
	{ RGATE_SOCKET_TCP_CONGESTION, "TCP_CONGESTION", IPPROTO_TCP, TCP_CONGESTION, NAME_MAX_LEN,
	  BOTH | OPTION_TEXT },
	{ RGATE_SOCKET_TCP_INFO, "TCP_INFO", IPPROTO_TCP, TCP_INFO, RGATE_SOCKET_OPTION_MAX,
	  OPTION_GET | OPTION_PART },
	INT(IP_TTL, "IP_TTL", IPPROTO_IP, IP_TTL, BOTH),
	INT(IP_TOS, "IP_TOS", IPPROTO_IP, IP_TOS, BOTH),
	INT(IP_MTU_DISCOVER, "IP_MTU_DISCOVER", IPPROTO_IP, IP_MTU_DISCOVER, BOTH),
	INT(IPV6_V6ONLY, "IPV6_V6ONLY", IPPROTO_IPV6, IPV6_V6ONLY, BOTH),
	INT(IPV6_HOPS, "IPV6_UNICAST_HOPS", IPPROTO_IPV6, IPV6_UNICAST_HOPS, BOTH),
	INT(IPV6_TCLASS, "IPV6_TCLASS", IPPROTO_IPV6, IPV6_TCLASS, BOTH),
};

#define OPTIONS	(sizeof(options) / sizeof(options[0]))

const struct socket_option *socket_option(uint64_t number)
{
	unsigned int i;

	for (i = 0; i < OPTIONS; i++)
		if (options[i].number == number)
			return &options[i];
	return NULL;
}

const struct socket_option *socket_option_at(unsigned int i)
{
	return i < OPTIONS ? &options[i] : NULL;
}

int socket_option_check(const struct socket_option *o, bool set, uint32_t len)
{
	if (!(o->how & (set ? OPTION_SET : OPTION_GET)))
		return -ENOPROTOOPT;
	if (!len)
		return -EINVAL;
	if (o->how & (OPTION_TEXT | OPTION_PART))
		return len <= RGATE_SOCKET_OPTION_MAX && (!set || len <= o->size) ? 0 : -EINVAL;
	/* Not a part of a number */
	return len == o->size ? 0 : -EINVAL;
}

/*
 * One that everybody may have, and that is there: the kernel would load a module for another one
 * if this process may, by a name that the client chose.
 */
static int check_congestion(const char *name)
{
	FILE *f = fopen(ALLOWED, "re");
	char word[64];
	bool found = false;

	if (!f)
		return -ENOENT;
	while (!found && fscanf(f, "%63s", word) == 1)
		found = !strcmp(word, name);
	fclose(f);
	return found ? 0 : -ENOENT;
}

int socket_option_set(int fd, const struct socket_option *o, const void *value, uint32_t len)
{
	char name[NAME_MAX_LEN + 1];
	int err;

	if (o->how & OPTION_TEXT) {
		memcpy(name, value, len);
		name[len] = '\0';
		err = check_congestion(name);
		if (err)
			return err;
		value = name;
		len = (uint32_t)strlen(name);
	}
	return setsockopt(fd, o->level, o->name_there, value, len) < 0 ? -errno : 0;
}

int socket_option_get(int fd, const struct socket_option *o, void *value, uint32_t len)
{
	socklen_t n = len;

	if (getsockopt(fd, o->level, o->name_there, value, &n) < 0)
		return -errno;
	return (int)n;
}
