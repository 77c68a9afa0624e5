// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "shim.h"
#include "super.h"
#include "util.h"

#define NEAR_US		20000	/* that a connect to a program of the same agent waits at a time */

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP	262
#endif

/* ---- What a call points to ---- */

static int get_address(struct super_call *c, uint64_t from, uint64_t len,
		       struct sockaddr_storage *sa)
{
	/* An int, to the kernel */
	if ((uint32_t)len > sizeof(*sa))
		return -EINVAL;
	memset(sa, 0, sizeof(*sa));
	return task_read(&c->task, from, sa, (uint32_t)len);
}

/* How much room there is for an answer */
static int get_len(struct super_call *c, uint64_t from, socklen_t *len)
{
	int err = task_read(&c->task, from, len, sizeof(*len));

	return !err && (int)*len < 0 ? -EINVAL : err;
}

/* @a: family 0: nobody's */
static int put_address(struct super_call *c, const struct rgate_socket_addr *a, uint64_t to,
		       uint64_t len_at)
{
	struct sockaddr_storage sa;
	socklen_t room, len = 0;
	int err = get_len(c, len_at, &room);

	if (err)
		return err;
	if (a->family) {
		len = room < sizeof(sa) ? room : (socklen_t)sizeof(sa);
		shim_addr_put(a, (struct sockaddr *)&sa, &len);
	}
	err = task_write(&c->task, to, &sa, len < room ? len : room);
	return err ? err : task_write(&c->task, len_at, &len, sizeof(len));
}

/* ---- Made ---- */

static int64_t give(struct super_call *c, int fd, bool cloexec)
{
	const int64_t result = super_give(c, fd, cloexec);

	close(fd);
	return result;
}

static int64_t do_socket(struct super_call *c)
{
	const int family = (int)c->data->args[0], type = (int)c->data->args[1];
	const int protocol = (int)c->data->args[2];
	const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	int fd;

	/* Programs try it before TCP. */
	if (protocol == IPPROTO_MPTCP)
		return -EPROTONOSUPPORT;
	fd = shim_type(type, protocol);
	if (fd < 0)
		return shim_refuse(family, kind);
	fd = shim_make(family, type, fd == SOCK_DGRAM, true);
	return fd < 0 ? fd : give(c, fd, type & SOCK_CLOEXEC);
}

/* ---- Named ---- */

static int64_t do_bind(struct super_call *c, int fd)
{
	struct sockaddr_storage sa;
	const socklen_t len = (socklen_t)c->data->args[2];
	int err = get_address(c, c->data->args[1], c->data->args[2], &sa);

	if (!err)
		err = shim_bind(fd, (struct sockaddr *)&sa, len);
	if (err != -EADDRINUSE)
		return err;
	/*
	 * Who had that port may have been killed while a call of his waited here: his parent knows
	 * of his end at once, and the thread that has the descriptor a moment later.
	 */
	super_settle(c);
	return shim_bind(fd, (struct sockaddr *)&sa, len);
}

static int64_t do_name(struct super_call *c, int fd, enum shim_kind kind,
		       const struct agent_name *name, bool peer)
{
	struct rgate_socket_addr addr;
	int err = (peer ? shim_peer : shim_name)(fd, kind, name, &addr);

	return err ? err : put_address(c, &addr, c->data->args[1], c->data->args[2]);
}

/* ---- Connected ---- */

static void set_patience(int fd, const struct timeval *most)
{
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, most, sizeof(*most));
}

/* To a program of the same agent, whose backlog may be full; a while each time, between looks */
static int connect_near(struct super_call *c, int fd, uint64_t id, bool wait, uint64_t until_ns)
{
	const struct timeval some = { .tv_usec = NEAR_US };
	struct timeval before = { .tv_sec = 0 };
	socklen_t len = sizeof(before);
	int err;

	if (!wait) {
		err = shim_connect_near(fd, id);
		return err == -EAGAIN ? -ECONNREFUSED : err;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &before, &len))
		return -errno;
	set_patience(fd, &some);
	while ((err = shim_connect_near(fd, id)) == -EAGAIN) {
		err = until_ns && util_now() >= until_ns ? -ETIMEDOUT : super_nap(c, 0);
		if (err)
			break;
	}
	set_patience(fd, &before);
	return err;
}

/* Is it under way? Begun by this call, or by an earlier one */
static bool goes_on(int err)
{
	return err == -EINPROGRESS || err == -EALREADY;
}

static int connect_to(struct super_call *c, int fd, const struct sockaddr *sa, socklen_t len,
		      bool wait)
{
	const uint64_t until = wait ? super_until(fd, SO_SNDTIMEO) : 0;
	uint64_t id;
	int err = shim_connect(fd, sa, len, false, &id);
	const int first = err;

	if (!err && id)
		return connect_near(c, fd, id, wait, until);
	while (wait && goes_on(err)) {
		err = super_wait(c, fd, POLLOUT, until);
		if (err)
			return err == -EAGAIN ? first : err;
		err = shim_connect(fd, sa, len, false, &id);
	}
	return err;
}

static int64_t do_connect(struct super_call *c, int fd, enum shim_kind kind)
{
	const bool wait = !(fcntl(fd, F_GETFL) & O_NONBLOCK);
	const socklen_t len = (socklen_t)c->data->args[2];
	struct sockaddr_storage sa;
	int err = get_address(c, c->data->args[1], len, &sa);

	if (err)
		return err;
	if (kind == SHIM_DATAGRAM)
		return shim_mark_connect(fd, (struct sockaddr *)&sa, len);
	err = connect_to(c, fd, (struct sockaddr *)&sa, len, wait);
	/* The kernel's own word of it was told by this one. */
	if (err < 0 && !goes_on(err) && wait)
		shim_connect_told(fd);
	return err;
}

/* ---- Accepted ---- */

/* -EAGAIN: nobody is there. It does not wait, whatever the socket does: no other takes who is. */
static int accept_now(int fd, int flags)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int got = -EAGAIN;

	pthread_mutex_lock(&lock);
	if (poll(&p, 1, 0) == 1) {
		got = accept4(fd, NULL, NULL, flags | SOCK_CLOEXEC);
		got = got < 0 ? -errno : got;
	}
	pthread_mutex_unlock(&lock);
	return got;
}

static int accept_one(struct super_call *c, int fd, int flags)
{
	const bool wait = !(fcntl(fd, F_GETFL) & O_NONBLOCK);
	const uint64_t until = wait ? super_until(fd, SO_RCVTIMEO) : 0;
	int got, err;

	for (;;) {
		if (shim_accepts_nobody(fd))
			return -ENETDOWN;
		got = accept_now(fd, flags);
		if (got != -EAGAIN || !wait)
			return got;
		err = super_wait(c, fd, POLLIN, until);
		if (err)
			return err;
	}
}

static int64_t do_accept(struct super_call *c, int fd, enum shim_kind kind, int flags)
{
	const uint64_t to = c->data->args[1], len_at = c->data->args[2];
	struct rgate_socket_addr peer;
	socklen_t len;
	int got, err = 0;

	if (flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC))
		return -EINVAL;
	if (kind == SHIM_DATAGRAM)
		return -EOPNOTSUPP;
	if (to)
		err = get_len(c, len_at, &len);
	if (!err && !task_has_room(&c->task))
		err = -EMFILE;
	if (err)
		return err;
	got = accept_one(c, fd, flags);
	if (got < 0)
		return got;
	err = shim_accepted(got, fd, to ? &peer : NULL);
	if (!err && to)
		err = put_address(c, &peer, to, len_at);
	if (!err)
		return give(c, got, flags & SOCK_CLOEXEC);
	close(got);
	return err;
}

/* ---- Options ---- */

static int64_t do_setsockopt(struct super_call *c, int fd)
{
	const __u64 *arg = c->data->args;
	uint8_t value[RGATE_SOCKET_OPTION_MAX];
	const socklen_t len = (socklen_t)arg[4];
	int err;

	if ((int)len < 0)
		return -EINVAL;
	err = arg[3] ? task_read(&c->task, arg[3], value, len < sizeof(value) ? len :
				 sizeof(value)) : 0;
	if (err)
		return err;
	return shim_option_set(fd, (int)arg[1], (int)arg[2], arg[3] ? value : NULL,
			       len < sizeof(value) ? len : (socklen_t)sizeof(value));
}

/* What says what kind of socket it is; or its error. False: others are as a stream's */
static bool get_datagram(int fd, int level, int name, int *number)
{
	if (level != SOL_SOCKET || name != SO_ERROR)
		return shim_mark_kind(level, name, number);
	*number = super_datagram_error(fd);
	return true;
}

static int64_t do_getsockopt(struct super_call *c, int fd, enum shim_kind kind)
{
	const __u64 *arg = c->data->args;
	const int level = (int)arg[1], name = (int)arg[2];
	uint8_t value[RGATE_SOCKET_OPTION_MAX];
	socklen_t len;
	int err = get_len(c, arg[4], &len), number;

	if (err)
		return err;
	len = len < sizeof(value) ? len : (socklen_t)sizeof(value);
	if (kind == SHIM_DATAGRAM && get_datagram(fd, level, name, &number))
		shim_option_put(&number, sizeof(number), value, &len);
	else if (!shim_option_is_kernels(level, name))
		err = shim_option_get(fd, level, name, value, &len);
	else
		return SUPER_GOES_ON;
	if (!err)
		err = task_write(&c->task, arg[3], value, len);
	return err ? err : task_write(&c->task, arg[4], &len, sizeof(len));
}

/* ---- All of them ---- */

/*
 * Not the agent's. One of TCP or UDP it can have of others only, with a network that the program
 * has not. What a call points to may change until the kernel looks at it.
 */
static int64_t do_others(const struct super_call *c, int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);

	if (c->data->nr != SYS_connect || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len))
		return SUPER_GOES_ON;
	return domain == AF_INET || domain == AF_INET6 ? -ENETUNREACH : SUPER_GOES_ON;
}

static int64_t do_ours(struct super_call *c, int fd, enum shim_kind kind,
		       const struct agent_name *name)
{
	const __u64 *arg = c->data->args;

	switch (c->data->nr) {
	case SYS_bind:
		return do_bind(c, fd);
	case SYS_listen:
		return shim_listen(fd, (int)arg[1]);
	case SYS_connect:
		return do_connect(c, fd, kind);
	case SYS_accept:
		return do_accept(c, fd, kind, 0);
	case SYS_accept4:
		return do_accept(c, fd, kind, (int)arg[3]);
	case SYS_getsockname:
		return do_name(c, fd, kind, name, false);
	case SYS_getpeername:
		return do_name(c, fd, kind, name, true);
	case SYS_setsockopt:
		return shim_option_is_kernels((int)arg[1], (int)arg[2]) ? SUPER_GOES_ON :
		       do_setsockopt(c, fd);
	case SYS_getsockopt:
		return do_getsockopt(c, fd, kind);
	case SYS_recvfrom:
		return kind == SHIM_DATAGRAM ? super_datagram(c, fd) : super_recvfrom(c, fd);
	default:
		/* What has no address, or one that the kernel takes for what it is */
		return kind == SHIM_DATAGRAM ? super_datagram(c, fd) : SUPER_GOES_ON;
	}
}

int64_t super_do(struct super_call *c)
{
	struct agent_name name;
	enum shim_kind kind;
	int64_t result;
	int fd;

	if (c->data->nr == SYS_socket)
		return do_socket(c);
	fd = task_fd(&c->task, (int)c->data->args[0]);
	if (fd < 0)
		return fd;
	kind = shim_kind(fd, &name);
	result = kind == SHIM_NONE ? do_others(c, fd) : do_ours(c, fd, kind, &name);
	close(fd);
	return result;
}
