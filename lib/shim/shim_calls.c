// SPDX-License-Identifier: MIT OR GPL-2.0
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

/* ---- Made ---- */

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

SHIM_EXPORT int socket(int family, int type, int protocol)
{
	const bool cloexec = type & SOCK_CLOEXEC;
	int kind, fd;

	if ((family != AF_INET && family != AF_INET6) || !shim_active())
		return NEXT(socket)(family, type, protocol);
	kind = shim_type(type, protocol);
	if (kind < 0)
		return shim_return(shim_refuse(family, type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)));
	fd = shim_make(family, type, false, cloexec);
	if (kind == SOCK_DGRAM)
		shim_datagram_note();
	return shim_return(fd < 0 ? fd : lowest(fd, cloexec));
}

/* ---- Named ---- */

SHIM_EXPORT int bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct agent_name name;

	if (shim_kind(fd, &name) == SHIM_NONE)
		return NEXT(bind)(fd, sa, len);
	return shim_return(shim_bind(fd, sa, len));
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

SHIM_EXPORT int getsockname(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct rgate_socket_addr addr;
	struct agent_name name;
	const enum shim_kind kind = shim_kind(fd, &name);
	int err;

	if (kind == SHIM_NONE)
		return NEXT(getsockname)(fd, sa, len);
	err = shim_name(fd, kind, &name, &addr);
	return shim_return(err ? err : put_name(&addr, sa, len));
}

SHIM_EXPORT int getpeername(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct rgate_socket_addr addr;
	struct agent_name name;
	const enum shim_kind kind = shim_kind(fd, &name);
	int err;

	if (kind == SHIM_NONE)
		return NEXT(getpeername)(fd, sa, len);
	err = shim_peer(fd, kind, &name, &addr);
	return shim_return(err ? err : put_name(&addr, sa, len));
}

/* ---- Connected ---- */

/* To a program of the same agent, whose backlog may be full: so it is waited for here, or not. */
static int connect_near(int fd, uint64_t id, bool wait)
{
	int err = shim_connect_near(fd, id);

	return err != -EAGAIN ? err : wait ? -ETIMEDOUT : -ECONNREFUSED;
}

static int do_connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	const bool wait = !(fcntl(fd, F_GETFL) & O_NONBLOCK);
	uint64_t id;
	int err = shim_connect(fd, sa, len, wait, &id);

	if (!err && id)
		err = connect_near(fd, id, wait);
	/* The kernel's own word of it was told by this one. */
	if (err < 0 && err != -EINPROGRESS && wait)
		shim_connect_told(fd);
	return err;
}

SHIM_EXPORT int connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct agent_name name;

	switch (shim_kind(fd, &name)) {
	case SHIM_NONE:
		return NEXT(connect)(fd, sa, len);
	case SHIM_DATAGRAM:
		return shim_return(shim_mark_connect(fd, sa, len));
	default:
		return shim_return(do_connect(fd, sa, len));
	}
}

SHIM_EXPORT int listen(int fd, int backlog)
{
	struct agent_name name;

	if (shim_kind(fd, &name) == SHIM_NONE)
		return NEXT(listen)(fd, backlog);
	return shim_return(shim_listen(fd, backlog));
}

/* ---- Accepted ---- */

static int do_accept(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	struct rgate_socket_addr peer;
	int got, err;

	if (shim_datagram_is(fd))
		return shim_return(-EOPNOTSUPP);
	/* Nobody comes any more, and who came before is there to be told of it. */
	if (shim_accepts_nobody(fd))
		return shim_return(-ENETDOWN);
	got = NEXT(accept4)(fd, NULL, NULL, flags);
	if (got < 0)
		return got;
	err = shim_accepted(got, fd, sa ? &peer : NULL);
	if (err) {
		close(got);
		return shim_return(err);
	}
	if (sa && peer.family)
		(void)put_name(&peer, sa, len);
	else if (sa)
		*len = 0;
	return got;
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

/* ---- Options ---- */

SHIM_EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct agent_name agent_name;

	if (shim_option_is_kernels(level, name) || shim_kind(fd, &agent_name) == SHIM_NONE)
		return NEXT(setsockopt)(fd, level, name, value, len);
	return shim_return(shim_option_set(fd, level, name, value, len));
}

/* What says what kind of socket it is; or its error. False: others are as a stream's */
static bool get_datagram(int fd, int level, int name, int *number)
{
	if (level != SOL_SOCKET || !shim_datagram_is(fd))
		return false;
	if (name != SO_ERROR)
		return shim_mark_kind(level, name, number);
	*number = shim_datagram_error(fd);
	return true;
}

SHIM_EXPORT int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct agent_name agent_name;
	int number;

	if (value && len && (int)*len >= 0 && get_datagram(fd, level, name, &number)) {
		shim_option_put(&number, sizeof(number), value, len);
		return 0;
	}
	if (shim_option_is_kernels(level, name) || shim_kind(fd, &agent_name) == SHIM_NONE)
		return NEXT(getsockopt)(fd, level, name, value, len);
	if (!value || !len)
		return shim_return(-EFAULT);
	return shim_return(shim_option_get(fd, level, name, value, len));
}
