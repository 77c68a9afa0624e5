// SPDX-License-Identifier: MIT OR GPL-2.0
#include "shim.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Options of the service, as the kernel calls them */
static const struct {
	int level, name;
	uint32_t option;
} table[] = {
	{ SOL_SOCKET, SO_REUSEADDR, RGATE_SOCKET_REUSEADDR },
	{ SOL_SOCKET, SO_REUSEPORT, RGATE_SOCKET_REUSEPORT },
	{ SOL_SOCKET, SO_KEEPALIVE, RGATE_SOCKET_KEEPALIVE },
	{ SOL_SOCKET, SO_LINGER, RGATE_SOCKET_LINGER },
	{ SOL_SOCKET, SO_SNDBUF, RGATE_SOCKET_SNDBUF },
	{ SOL_SOCKET, SO_RCVBUF, RGATE_SOCKET_RCVBUF },
	{ SOL_SOCKET, SO_BROADCAST, RGATE_SOCKET_BROADCAST },
	{ SOL_SOCKET, SO_DOMAIN, RGATE_SOCKET_DOMAIN },
	{ IPPROTO_TCP, TCP_NODELAY, RGATE_SOCKET_TCP_NODELAY },
	{ IPPROTO_TCP, TCP_CORK, RGATE_SOCKET_TCP_CORK },
	{ IPPROTO_TCP, TCP_KEEPIDLE, RGATE_SOCKET_TCP_KEEPIDLE },
	{ IPPROTO_TCP, TCP_KEEPINTVL, RGATE_SOCKET_TCP_KEEPINTVL },
	{ IPPROTO_TCP, TCP_KEEPCNT, RGATE_SOCKET_TCP_KEEPCNT },
	{ IPPROTO_TCP, TCP_SYNCNT, RGATE_SOCKET_TCP_SYNCNT },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT, RGATE_SOCKET_TCP_USER_TIMEOUT },
	{ IPPROTO_TCP, TCP_DEFER_ACCEPT, RGATE_SOCKET_TCP_DEFER_ACCEPT },
	{ IPPROTO_TCP, TCP_QUICKACK, RGATE_SOCKET_TCP_QUICKACK },
	{ IPPROTO_TCP, TCP_MAXSEG, RGATE_SOCKET_TCP_MAXSEG },
	{ IPPROTO_TCP, TCP_NOTSENT_LOWAT, RGATE_SOCKET_TCP_NOTSENT_LOWAT },
	{ IPPROTO_TCP, TCP_CONGESTION, RGATE_SOCKET_TCP_CONGESTION },
	{ IPPROTO_TCP, TCP_INFO, RGATE_SOCKET_TCP_INFO },
	{ IPPROTO_IP, IP_TTL, RGATE_SOCKET_IP_TTL },
	{ IPPROTO_IP, IP_TOS, RGATE_SOCKET_IP_TOS },
	{ IPPROTO_IP, IP_MTU_DISCOVER, RGATE_SOCKET_IP_MTU_DISCOVER },
	{ IPPROTO_IPV6, IPV6_V6ONLY, RGATE_SOCKET_IPV6_V6ONLY },
	{ IPPROTO_IPV6, IPV6_UNICAST_HOPS, RGATE_SOCKET_IPV6_HOPS },
	{ IPPROTO_IPV6, IPV6_TCLASS, RGATE_SOCKET_IPV6_TCLASS },
};

/* 0: there is none */
static uint32_t option_of(int level, int name)
{
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].level == level && table[i].name == name)
			return table[i].option;
	return 0;
}

bool shim_option_is_kernels(int level, int name)
{
	switch (level == SOL_SOCKET ? name : -1) {
	case SO_TYPE:
	case SO_ACCEPTCONN:
	case SO_RCVLOWAT:
	case SO_RCVTIMEO_OLD:
	case SO_SNDTIMEO_OLD:
	case SO_RCVTIMEO_NEW:
	case SO_SNDTIMEO_NEW:
		return true;
	default:
		return false;
	}
}

/* Bytes of an option that is not a number; 0: it is one */
static socklen_t own_len(uint32_t option, socklen_t len)
{
	switch (option) {
	case RGATE_SOCKET_LINGER:
		return sizeof(struct rgate_socket_linger);
	case RGATE_SOCKET_TCP_CONGESTION:
		return len < 16 ? len : 16;
	case RGATE_SOCKET_TCP_INFO:
		return len < RGATE_SOCKET_OPTION_MAX ? len : RGATE_SOCKET_OPTION_MAX;
	default:
		return 0;
	}
}

static int set(int fd, uint32_t option, const void *value, socklen_t len)
{
	struct agent_ask ask = { .version = AGENT_VERSION, .what = AGENT_SETOPT, .a = option };
	socklen_t own = own_len(option, len);
	int number;

	if (own) {
		if (len < own)
			return -EINVAL;
		ask.len = own;
		memcpy(ask.value, value, own);
	} else if (len >= sizeof(number)) {
		ask.len = sizeof(number);
		memcpy(ask.value, value, sizeof(number));
	} else if (len && (option == RGATE_SOCKET_IP_TTL || option == RGATE_SOCKET_IP_TOS)) {
		/* A byte is enough, as the kernel has it. */
		ask.len = sizeof(number);
		ask.value[__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 3 : 0] = *(const uint8_t *)value;
	} else {
		return -EINVAL;
	}
	return shim_ask(&ask, fd, NULL, NULL, true);
}

int shim_option_set(int fd, int level, int name, const void *value, socklen_t len)
{
	const uint32_t option = option_of(level, name);

	if (!option)
		return -ENOPROTOOPT;
	return value ? set(fd, option, value, len) : -EFAULT;
}

void shim_option_put(const void *from, socklen_t n, void *value, socklen_t *len)
{
	n = n < *len ? n : *len;
	memcpy(value, from, n);
	*len = n;
}

static int get(int fd, uint32_t option, void *value, socklen_t *len)
{
	struct agent_ask ask = { .version = AGENT_VERSION, .what = AGENT_GETOPT, .a = option };
	socklen_t own = own_len(option, *len);
	struct agent_answer answer;
	int err;

	ask.len = own ? own : sizeof(int);
	err = shim_ask(&ask, fd, &answer, NULL, true);
	if (err)
		return err;
	shim_option_put(answer.value, answer.len < sizeof(answer.value) ? answer.len :
			(socklen_t)sizeof(answer.value), value, len);
	return 0;
}

/* What the agent knows, and if that is nothing what the kernel does: it tells each once. */
static int error_of(int fd)
{
	const int before = errno;
	int error = 0, kernel = 0, err;
	socklen_t room = sizeof(kernel), own = sizeof(error);

	err = get(fd, RGATE_SOCKET_ERROR_CODE, &error, &own);
	if (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &kernel, &room) < 0)
		kernel = 0;
	errno = before;
	/* With no agent all connections are broken, and the kernel says so. */
	if (err)
		error = 0;
	return error ? error : kernel;
}

int shim_option_get(int fd, int level, int name, void *value, socklen_t *len)
{
	const uint32_t option = option_of(level, name);
	int number = IPPROTO_TCP;

	if ((int)*len < 0)
		return -EINVAL;
	if (level != SOL_SOCKET || (name != SO_ERROR && name != SO_PROTOCOL))
		return option ? get(fd, option, value, len) : -ENOPROTOOPT;
	if (name == SO_ERROR)
		number = error_of(fd);
	shim_option_put(&number, sizeof(number), value, len);
	return 0;
}
