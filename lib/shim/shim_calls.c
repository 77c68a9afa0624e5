// SPDX-License-Identifier: MIT OR GPL-2.0
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct agent_ask question(uint32_t what)
{
	return (struct agent_ask){ .version = AGENT_VERSION, .what = what };
}

/* ---- Made ---- */

static int refused(int family, int type)
{
	struct agent_ask ask = question(AGENT_REFUSED);

	ask.a = (uint32_t)family;
	ask.b = (uint32_t)type;
	(void)shim_ask(&ask, -1, NULL, NULL, true);
	return -EPROTONOSUPPORT;
}

/* The lowest number that is free, as programs know it: the question took one. */
static int lowest(int fd, bool cloexec)
{
	int low = fcntl(fd, cloexec ? F_DUPFD_CLOEXEC : F_DUPFD, 0);

	if (low < 0)
		return fd;
	if (low > fd) {
		close(low);
		return fd;
	}
	close(fd);
	return low;
}

static int make(int family, int type, bool udp)
{
	struct agent_ask ask = question(AGENT_SOCKET);
	struct agent_answer answer;
	const bool cloexec = type & SOCK_CLOEXEC;
	int fd = -1, ret;

	ask.a = (uint32_t)family;
	ask.b = (type & SOCK_NONBLOCK ? AGENT_NONBLOCK : 0) | (udp ? AGENT_DATAGRAM : 0);
	ret = shim_ask(&ask, -1, &answer, &fd, cloexec);
	if (udp)
		shim_datagram_note();
	return ret ? ret : lowest(fd, cloexec);
}

SHIM_EXPORT int socket(int family, int type, int protocol)
{
	const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	const int own = kind == SOCK_STREAM ? IPPROTO_TCP : kind == SOCK_DGRAM ? IPPROTO_UDP : -1;

	if ((family != AF_INET && family != AF_INET6) || !shim_active())
		return NEXT(socket)(family, type, protocol);
	if (own < 0 || (protocol && protocol != own))
		return shim_return(refused(family, kind));
	return shim_return(make(family, type, kind == SOCK_DGRAM));
}

/* ---- Named ---- */

SHIM_EXPORT int bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct agent_ask ask = question(AGENT_BIND);
	struct agent_name name;
	int err;

	if (shim_kind(fd, &name) == SHIM_NONE)
		return NEXT(bind)(fd, sa, len);
	err = shim_addr_get(sa, len, &ask.addr);
	return shim_return(err ? err : shim_ask(&ask, fd, NULL, NULL, true));
}

static int put_name(const struct rgate_socket_addr *a, struct sockaddr *sa, socklen_t *len)
{
	if (!sa || !len)
		return -EFAULT;
	if ((int)*len < 0)
		return -EINVAL;
	shim_addr_put(a, sa, len);
	return 0;
}

static int name_by(uint32_t what, int fd, struct sockaddr *sa, socklen_t *len)
{
	struct agent_ask ask = question(what);
	struct agent_answer answer;
	int err = shim_ask(&ask, fd, &answer, NULL, true);

	return err ? err : put_name(&answer.addr, sa, len);
}

SHIM_EXPORT int getsockname(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct agent_name name;

	switch (shim_kind(fd, &name)) {
	case SHIM_NONE:
		return NEXT(getsockname)(fd, sa, len);
	case SHIM_ACCEPTED:
		return shim_return(put_name(&name.local, sa, len));
	default:
		return shim_return(name_by(AGENT_NAME, fd, sa, len));
	}
}

SHIM_EXPORT int getpeername(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct agent_name name;

	switch (shim_kind(fd, &name)) {
	case SHIM_NONE:
		return NEXT(getpeername)(fd, sa, len);
	case SHIM_ACCEPTED:
		return shim_return(put_name(&name.peer, sa, len));
	default:
		return shim_return(name_by(AGENT_PEER, fd, sa, len));
	}
}

/* ---- Connected ---- */

static bool waits(int fd)
{
	return !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* To a program of the same agent, whose backlog may be full: so it is waited for here, or not. */
static int connect_local(int fd, const struct agent_answer *answer, bool wait)
{
	struct sockaddr_un un;
	uint64_t id;

	memcpy(&id, answer->value, sizeof(id));
	shim_path(id, &un);
	if (!NEXT(connect)(fd, (struct sockaddr *)&un, sizeof(un)))
		return 0;
	switch (errno) {
	case EAGAIN:
		return wait ? -ETIMEDOUT : -ECONNREFUSED;
	case ENOENT:
		return -ECONNREFUSED;
	default:
		return -errno;
	}
}

static int do_connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct agent_ask ask = question(AGENT_CONNECT);
	const int before = errno;
	const bool wait = waits(fd);
	struct agent_answer answer;
	int err = shim_addr_get(sa, len, &ask.addr);

	if (err)
		return err;
	ask.a = wait ? 0 : AGENT_NONBLOCK;
	err = shim_ask(&ask, fd, &answer, NULL, true);
	if (!err && answer.len)
		err = connect_local(fd, &answer, wait);
	errno = before;
	if (err < 0 && err != -EINPROGRESS && wait) {
		int error;
		socklen_t room = sizeof(error);

		/* The kernel's own word of it was told by this one. */
		(void)NEXT(getsockopt)(fd, SOL_SOCKET, SO_ERROR, &error, &room);
	}
	return err;
}

/* It waits for nobody. */
static int connect_datagram(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct agent_ask ask = question(AGENT_CONNECT);
	int err = shim_datagram_peer(fd, sa, len, &ask.addr);

	ask.a = AGENT_NONBLOCK;
	return err ? err : shim_ask(&ask, fd, NULL, NULL, true);
}

SHIM_EXPORT int connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct agent_name name;

	switch (shim_kind(fd, &name)) {
	case SHIM_NONE:
		return NEXT(connect)(fd, sa, len);
	case SHIM_DATAGRAM:
		return shim_return(connect_datagram(fd, sa, len));
	default:
		return shim_return(do_connect(fd, sa, len));
	}
}

SHIM_EXPORT int listen(int fd, int backlog)
{
	struct agent_ask ask = question(AGENT_LISTEN);
	struct agent_name name;

	if (shim_kind(fd, &name) == SHIM_NONE)
		return NEXT(listen)(fd, backlog);
	ask.a = (uint32_t)backlog;
	return shim_return(shim_ask(&ask, fd, NULL, NULL, true));
}

/* ---- Accepted ---- */

/* What the agent waits for before it may let the connection break, see agent_wire.h */
static bool greet(int fd, const struct agent_name *name)
{
	const struct agent_hello hello = { .magic = AGENT_MAGIC, .id = name->id };

	return NEXT(send)(fd, &hello, sizeof(hello), MSG_DONTWAIT | MSG_NOSIGNAL) ==
	       (ssize_t)sizeof(hello);
}

/* Who was accepted as @fd; its number, or -errno */
static int accepted(int fd, struct sockaddr *sa, socklen_t *len)
{
	const int before = errno;
	struct agent_name name;

	switch (shim_kind(fd, &name)) {
	case SHIM_ACCEPTED:
		if (name.error) {
			close(fd);
			return -(int)name.error;
		}
		if (!greet(fd, &name)) {
			close(fd);
			return -ECONNABORTED;
		}
		if (sa)
			(void)put_name(&name.peer, sa, len);
		break;
	case SHIM_LOCAL:
		if (sa && name_by(AGENT_PEER, fd, sa, len))
			*len = 0;
		break;
	default:
		break;
	}
	errno = before;
	return fd;
}

/* Nobody comes any more, and who came before is there to be told of it. */
static bool would_wait_for_ever(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	const struct timespec now = { .tv_nsec = 0 };

	return shim_gone() && !syscall(SYS_ppoll, &p, 1, &now, NULL, 0);
}

static int do_accept(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	int got;

	if (shim_datagram_is(fd))
		return shim_return(-EOPNOTSUPP);
	if (would_wait_for_ever(fd))
		return shim_return(-ENETDOWN);
	got = NEXT(accept4)(fd, NULL, NULL, flags);
	return got < 0 ? got : shim_return(accepted(got, sa, len));
}

SHIM_EXPORT int accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	struct agent_name name;

	if (shim_kind(fd, &name) == SHIM_NONE)
		return NEXT(accept4)(fd, sa, len, flags);
	if (sa && !len)
		return shim_return(-EFAULT);
	return do_accept(fd, sa, len, flags);
}

SHIM_EXPORT int accept(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct agent_name name;

	if (shim_kind(fd, &name) == SHIM_NONE)
		return NEXT(accept)(fd, sa, len);
	if (sa && !len)
		return shim_return(-EFAULT);
	return do_accept(fd, sa, len, 0);
}
