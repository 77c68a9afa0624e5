// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a socket of datagrams is, by what the agent has left at it */
#include "shim.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_INET	65507U	/* bytes, of UDP over IPv4 */

int shim_mark(int fd)
{
	int mark = 0;
	socklen_t len = sizeof(mark);

	return syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PRIORITY, &mark, &len) < 0 ? 0 : mark;
}

bool shim_mark_connected(int mark)
{
	return mark & AGENT_MARK_CONNECTED;
}

bool shim_mark_kind(int level, int name, int *number)
{
	switch (level == SOL_SOCKET ? name : -1) {
	case SO_TYPE:
		*number = SOCK_DGRAM;
		return true;
	case SO_PROTOCOL:
		*number = IPPROTO_UDP;
		return true;
	default:
		return false;
	}
}

size_t shim_mark_most(int mark)
{
	return mark & AGENT_MARK_INET6 ? AGENT_DATAGRAM_MAX : MOST_INET;
}

/*
 * One that the program has shut down both ways looks the same, but the agent knows it.
 */
bool shim_mark_over(int fd)
{
	const struct agent_ask ask = { .version = AGENT_VERSION, .what = AGENT_NAME };
	const struct timespec now = { .tv_nsec = 0 };
	struct pollfd p = { .fd = fd };

	return syscall(SYS_ppoll, &p, 1, &now, NULL, 0) == 1 && p.revents & POLLHUP &&
	       shim_ask(&ask, fd, NULL, NULL, true) < 0;
}

static int address(int mark, const struct sockaddr *sa, socklen_t len,
		   struct rgate_socket_addr *to)
{
	int err = shim_addr_get(sa, len, to);

	if (err || to->family == AF_INET6)
		return err || mark & AGENT_MARK_INET6 ? err : -EAFNOSUPPORT;
	if (!(mark & AGENT_MARK_INET6))
		return 0;
	memcpy(to->addr + 12, to->addr, 4);
	memset(to->addr, 0, 10);
	memset(to->addr + 10, 0xff, 2);
	to->family = AF_INET6;
	return 0;
}

int shim_mark_to(int mark, const struct sockaddr *sa, socklen_t len, struct rgate_socket_addr *to)
{
	int err = address(mark, sa, len, to);

	return !err && !to->port ? -EINVAL : err;
}

int shim_mark_connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct agent_ask ask = { .version = AGENT_VERSION, .what = AGENT_CONNECT,
				 .a = AGENT_NONBLOCK };
	int err = 0;

	if (!sa || len < sizeof(sa->sa_family) || sa->sa_family != AF_UNSPEC)
		err = address(shim_mark(fd), sa, len, &ask.addr);
	return err ? err : shim_ask(&ask, fd, NULL, NULL, true);
}
