// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What calls about sockets ask of the agent. The addresses are this process's memory, and the
 * descriptors its own.
 */
#include "shim.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static struct agent_ask question(uint32_t what)
{
	return (struct agent_ask){ .version = AGENT_VERSION, .what = what };
}

/* ---- Made ---- */

int shim_type(int type, int protocol)
{
	const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	const int own = kind == SOCK_STREAM ? IPPROTO_TCP : kind == SOCK_DGRAM ? IPPROTO_UDP : -1;

	return own < 0 || (protocol && protocol != own) ? -EPROTONOSUPPORT : kind;
}

int shim_refuse(int family, int type)
{
	struct agent_ask ask = question(AGENT_REFUSED);

	ask.a = (uint32_t)family;
	ask.b = (uint32_t)type;
	(void)shim_ask(&ask, -1, NULL, NULL, true);
	return -EPROTONOSUPPORT;
}

int shim_make(int family, int type, bool bare, bool cloexec)
{
	const bool udp = (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_DGRAM;
	struct agent_ask ask = question(AGENT_SOCKET);
	struct agent_answer answer;
	int fd = -1, err;

	ask.a = (uint32_t)family;
	ask.b = (type & SOCK_NONBLOCK ? AGENT_NONBLOCK : 0) | (udp ? AGENT_DATAGRAM : 0) |
		(bare ? AGENT_BARE : 0);
	err = shim_ask(&ask, -1, &answer, &fd, cloexec);
	return err ? err : fd;
}

/* ---- Named ---- */

int shim_bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct agent_ask ask = question(AGENT_BIND);
	int err = shim_addr_get(sa, len, &ask.addr);

	return err ? err : shim_ask(&ask, fd, NULL, NULL, true);
}

static int name_by(uint32_t what, int fd, struct rgate_socket_addr *addr)
{
	struct agent_ask ask = question(what);
	struct agent_answer answer;
	int err = shim_ask(&ask, fd, &answer, NULL, true);

	if (!err)
		*addr = answer.addr;
	return err;
}

int shim_name(int fd, enum shim_kind kind, const struct agent_name *name,
	      struct rgate_socket_addr *addr)
{
	if (kind != SHIM_ACCEPTED)
		return name_by(AGENT_NAME, fd, addr);
	*addr = name->local;
	return 0;
}

int shim_peer(int fd, enum shim_kind kind, const struct agent_name *name,
	      struct rgate_socket_addr *addr)
{
	if (kind != SHIM_ACCEPTED)
		return name_by(AGENT_PEER, fd, addr);
	*addr = name->peer;
	return 0;
}

int shim_listen(int fd, int backlog)
{
	struct agent_ask ask = question(AGENT_LISTEN);

	ask.a = (uint32_t)backlog;
	return shim_ask(&ask, fd, NULL, NULL, true);
}

/* ---- Connected ---- */

int shim_connect(int fd, const struct sockaddr *sa, socklen_t len, bool wait, uint64_t *id)
{
	struct agent_ask ask = question(AGENT_CONNECT);
	struct agent_answer answer;
	int err = shim_addr_get(sa, len, &ask.addr);

	*id = 0;
	if (err)
		return err;
	ask.a = wait ? 0 : AGENT_NONBLOCK;
	err = shim_ask(&ask, fd, &answer, NULL, true);
	if (!err && answer.len)
		memcpy(id, answer.value, sizeof(*id));
	return err;
}

int shim_connect_near(int fd, uint64_t id)
{
	const int before = errno;
	struct sockaddr_un un;
	int err = 0;

	shim_path(id, &un);
	if (syscall(SYS_connect, fd, &un, sizeof(un)) < 0)
		err = errno == ENOENT ? -ECONNREFUSED : -errno;
	errno = before;
	return err;
}

void shim_connect_told(int fd)
{
	const int before = errno;
	int error;
	socklen_t room = sizeof(error);

	(void)syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &room);
	errno = before;
}

/* ---- Accepted ---- */

static void make_room(int fd)
{
	const int room = AGENT_ROOM;

	(void)syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
}

/* What the agent waits for before it may let the connection break, see agent_wire.h */
static bool greet(int fd, const struct agent_name *name)
{
	const struct agent_hello hello = { .magic = AGENT_MAGIC, .id = name->id };

	return syscall(SYS_sendto, fd, &hello, sizeof(hello), MSG_DONTWAIT | MSG_NOSIGNAL, NULL,
		       0) == (long)sizeof(hello);
}

/* How long its calls wait TCP's has from its listener; another AF_UNIX socket has not. */
static void inherit(int fd, int listener, int option)
{
	struct timeval most;
	socklen_t len = sizeof(most);

	if (!syscall(SYS_getsockopt, listener, SOL_SOCKET, option, &most, &len) &&
	    (most.tv_sec || most.tv_usec))
		(void)syscall(SYS_setsockopt, fd, SOL_SOCKET, option, &most, len);
}

int shim_accepted(int fd, int listener, struct rgate_socket_addr *peer)
{
	const int before = errno;
	struct agent_name name;
	int err = 0;

	if (peer)
		peer->family = 0;
	inherit(fd, listener, SO_RCVTIMEO);
	inherit(fd, listener, SO_SNDTIMEO);
	switch (shim_kind(fd, &name)) {
	case SHIM_ACCEPTED:
		make_room(fd);
		if (name.error)
			err = name.error <= AGENT_ERROR_MAX ? -(int)name.error : -ECONNABORTED;
		else if (!greet(fd, &name))
			err = -ECONNABORTED;
		else if (peer)
			*peer = name.peer;
		break;
	case SHIM_LOCAL:
		if (peer && name_by(AGENT_PEER, fd, peer))
			peer->family = 0;
		break;
	default:
		break;
	}
	errno = before;
	return err;
}

bool shim_accepts_nobody(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	const struct timespec now = { .tv_nsec = 0 };

	return shim_gone() && !syscall(SYS_ppoll, &p, 1, &now, NULL, 0);
}

bool shim_is_idle(int fd)
{
	const int before = errno;
	struct agent_name name;
	struct sockaddr_un un;
	socklen_t len = sizeof(un);
	int listens = 0;
	bool idle;

	/* The kernel has those that connect connected. */
	idle = syscall(SYS_getpeername, fd, &un, &len) < 0 && errno == ENOTCONN &&
	       shim_kind(fd, &name) == SHIM_SOCKET;
	len = sizeof(listens);
	if (idle)
		idle = !syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) &&
		       !listens;
	errno = before;
	return idle;
}
