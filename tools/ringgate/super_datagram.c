// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Datagrams whose calls name an address, or may. The others are the kernel's: what goes either way
 * is the datagram alone, and whom it is from, or for, comes with a descriptor (AGENT_BARE).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fds.h"
#include "shim.h"
#include "super.h"
#include "util.h"

/* ---- Messages of the program ---- */

/* A struct msghdr as the program has it, its parts and its address copied */
struct message {
	struct msghdr mh;
	struct iovec v[UIO_MAXIOV];
	struct sockaddr_storage sa;
	unsigned char bytes[AGENT_DATAGRAM_MAX];
};

/* @with_name: the address, too, which is looked at */
static int get_parts(struct super_call *c, struct message *m, bool with_name)
{
	const socklen_t len = m->mh.msg_namelen;

	if (m->mh.msg_iovlen > UIO_MAXIOV)
		return -EMSGSIZE;
	if (!m->mh.msg_name)
		m->mh.msg_namelen = 0;
	else if ((int)len < 0)
		return -EINVAL;
	/* More than there can be is left out, as the kernel does. */
	if (m->mh.msg_namelen > sizeof(m->sa))
		m->mh.msg_namelen = sizeof(m->sa);
	if (with_name && m->mh.msg_namelen &&
	    task_read(&c->task, (uintptr_t)m->mh.msg_name, &m->sa, m->mh.msg_namelen))
		return -EFAULT;
	return 0;
}

static int get_message(struct super_call *c, uint64_t from, struct message *m, bool with_name)
{
	int err = task_read(&c->task, from, &m->mh, sizeof(m->mh));
	size_t i;

	if (!err)
		err = get_parts(c, m, with_name);
	if (!err)
		err = task_read(&c->task, (uintptr_t)m->mh.msg_iov, m->v,
				m->mh.msg_iovlen * sizeof(m->v[0]));
	for (i = 0; !err && i < m->mh.msg_iovlen; i++)
		err = (ssize_t)m->v[i].iov_len < 0 ? -EINVAL : 0;
	return err;
}

/* By the arguments of sendto(2) or recvfrom(2), but for the length of the latter's address */
static void one_part(const struct super_call *c, struct message *m)
{
	const __u64 *arg = c->data->args;

	m->v[0] = (struct iovec){ .iov_base = (void *)(uintptr_t)arg[1], .iov_len = arg[2] };
	m->mh = (struct msghdr){ .msg_iovlen = 1, .msg_name = (void *)(uintptr_t)arg[4],
				 .msg_namelen = (socklen_t)arg[5] };
}

static bool may_wait(int fd, int flags)
{
	return !(flags & MSG_DONTWAIT) && !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* ---- Received ---- */

/* The next one, or an error, as recvmsg(2) has it: its whole length. @head: from whom */
static ssize_t take(int fd, void *buf, size_t room, struct agent_head *head, int flags)
{
	struct iovec v = { .iov_base = buf, .iov_len = room };
	union rgate_fds_room fds;
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = fds.buf,
			     .msg_controllen = sizeof(fds.buf) };
	ssize_t n = recvmsg(fd, &mh, flags | MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	int from, seals;

	*head = (struct agent_head){ .addr.family = 0 };
	if (n < 0)
		return errno == ECONNRESET ? -ENETDOWN : -errno;
	if (rgate_take_fds(&mh, &from, 1) != 1)
		return n ? -EPROTO : shim_mark_over(fd) ? -ENETDOWN : 0;
	/* A file that is none of the agent's could be one that is waited for. */
	seals = fcntl(from, F_GET_SEALS);
	/* Of one that is longer than there can be, what is behind the room was not read. */
	if (seals < 0 || !(seals & F_SEAL_WRITE) || n > (ssize_t)AGENT_DATAGRAM_MAX ||
	    pread(from, head, sizeof(*head), 0) != sizeof(*head))
		n = -EPROTO;
	close(from);
	/* An error has no bytes: who looks for one takes it, or finds it again each time. */
	if (!head->addr.family && n)
		return -EPROTO;
	if (!head->addr.family && (!head->addr.scope || head->addr.scope > AGENT_ERROR_MAX))
		head->addr.scope = EPROTO;
	return n;
}

/* It is told once, also to who only looks. Another thread may be earlier. */
int super_datagram_error(int fd)
{
	struct agent_head head;
	char none;

	if (take(fd, &none, 0, &head, MSG_PEEK) || head.addr.family || !head.addr.scope ||
	    take(fd, &none, 0, &head, 0) || head.addr.family)
		return 0;
	return (int)head.addr.scope;
}

static ssize_t wait_for_one(struct super_call *c, int fd, struct message *m, int flags,
			    struct agent_head *head)
{
	const bool wait = may_wait(fd, flags);
	const uint64_t until = wait ? super_until(fd, SO_RCVTIMEO) : 0;
	ssize_t n;
	int err;

	for (;;) {
		n = take(fd, m->bytes, sizeof(m->bytes), head, flags & MSG_PEEK);
		if (n >= 0 && !head->addr.family && head->addr.scope) {
			if (!(flags & MSG_PEEK))
				return -(int)head->addr.scope;
			err = super_datagram_error(fd);
			if (err)
				return -err;
			continue;
		}
		if (n != -EAGAIN || !wait)
			return n;
		err = super_wait(c, fd, POLLIN, until);
		if (err)
			return err;
	}
}

/* How many of @n there was room for */
static ssize_t scatter(struct super_call *c, const struct message *m, size_t n)
{
	size_t i, len, done = 0;
	int err;

	for (i = 0; i < m->mh.msg_iovlen && done < n; i++) {
		len = m->v[i].iov_len < n - done ? m->v[i].iov_len : n - done;
		err = task_write(&c->task, (uintptr_t)m->v[i].iov_base, m->bytes + done, len);
		if (err)
			return err;
		done += len;
	}
	return (ssize_t)done;
}

/* Its parts are written; what it has of the address is in @m; its result */
static ssize_t receive(struct super_call *c, int fd, struct message *m, int flags)
{
	struct agent_head head;
	ssize_t n, done;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return flags & MSG_OOB ? -EOPNOTSUPP : -EAGAIN;
	n = wait_for_one(c, fd, m, flags, &head);
	if (n < 0)
		return n;
	done = scatter(c, m, (size_t)n);
	if (done < 0)
		return done;
	memset(&m->sa, 0, sizeof(m->sa));
	if (m->mh.msg_name && head.addr.family)
		shim_addr_put(&head.addr, (struct sockaddr *)&m->sa, &m->mh.msg_namelen);
	else
		m->mh.msg_namelen = 0;
	m->mh.msg_controllen = 0;
	m->mh.msg_flags = done < n ? MSG_TRUNC : 0;
	return flags & MSG_TRUNC ? n : done;
}

/* @room: bytes that the program has for it */
static int put_name(struct super_call *c, const struct message *m, socklen_t room)
{
	const socklen_t len = m->mh.msg_namelen < room ? m->mh.msg_namelen : room;

	return task_write(&c->task, (uintptr_t)m->mh.msg_name, &m->sa, m->mh.msg_name ? len : 0);
}

static int64_t do_recvfrom(struct super_call *c, int fd, struct message *m)
{
	const __u64 *arg = c->data->args;
	socklen_t room;
	ssize_t n;
	int err;

	one_part(c, m);
	err = task_read(&c->task, arg[5], &room, sizeof(room));
	if (err)
		return err;
	m->mh.msg_namelen = room;
	err = get_parts(c, m, false);
	if (err)
		return err;
	n = receive(c, fd, m, (int)arg[3]);
	err = n < 0 ? 0 : put_name(c, m, room);
	if (!err && n >= 0)
		err = task_write(&c->task, arg[5], &m->mh.msg_namelen, sizeof(socklen_t));
	return err ? err : n;
}

/* What recvmsg(2) changes of a struct msghdr */
static int put_message(struct super_call *c, uint64_t to, const struct message *m, socklen_t room)
{
	int err = put_name(c, m, room);

	if (!err)
		err = task_write(&c->task, to + offsetof(struct msghdr, msg_namelen),
				 &m->mh.msg_namelen, sizeof(m->mh.msg_namelen));
	if (!err)
		err = task_write(&c->task, to + offsetof(struct msghdr, msg_controllen),
				 &m->mh.msg_controllen, sizeof(m->mh.msg_controllen));
	return err ? err : task_write(&c->task, to + offsetof(struct msghdr, msg_flags),
				      &m->mh.msg_flags, sizeof(m->mh.msg_flags));
}

static int64_t recv_message(struct super_call *c, int fd, struct message *m, uint64_t at, int flags)
{
	socklen_t room;
	ssize_t n;
	int err = get_message(c, at, m, false);

	if (err)
		return err;
	room = m->mh.msg_namelen;
	n = receive(c, fd, m, flags);
	err = n < 0 ? 0 : put_message(c, at, m, room);
	return err ? err : n;
}

/* ---- Sent ---- */

static ssize_t gather(struct super_call *c, struct message *m, size_t most)
{
	size_t i, done = 0;
	int err;

	for (i = 0; i < m->mh.msg_iovlen; i++) {
		const size_t len = m->v[i].iov_len;

		if (len > most - done)
			return -EMSGSIZE;
		err = task_read(&c->task, (uintptr_t)m->v[i].iov_base, m->bytes + done, len);
		if (err)
			return err;
		done += len;
	}
	return (ssize_t)done;
}

static ssize_t send_now(struct super_call *c, int fd, const struct msghdr *mh, int flags)
{
	const bool wait = may_wait(fd, flags);
	const uint64_t until = wait ? super_until(fd, SO_SNDTIMEO) : 0;
	ssize_t n;
	int err;

	for (;;) {
		n = sendmsg(fd, mh, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n >= 0)
			return n;
		if (errno == ECONNRESET || (errno == EPIPE && shim_mark_over(fd)))
			return -ENETDOWN;
		if (errno != EAGAIN || !wait)
			return -errno;
		err = super_wait(c, fd, POLLOUT, until);
		if (err)
			return err;
	}
}

static int64_t send_one(struct super_call *c, int fd, struct message *m, int flags)
{
	const int mark = shim_mark(fd);
	struct agent_head head;
	struct iovec v[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) }, { .iov_base = m->bytes },
	};
	struct msghdr mh = { .msg_iov = v, .msg_iovlen = 2 };
	union rgate_fds_room room;
	const bool named = m->mh.msg_namelen;
	ssize_t n;
	int err;

	/* Control messages, and pieces of one, are what there is not. */
	if (m->mh.msg_controllen || flags & (MSG_OOB | MSG_MORE))
		return -EOPNOTSUPP;
	err = shim_mark_connected(mark) ? -super_datagram_error(fd) : named ? 0 : -EDESTADDRREQ;
	if (!err && named)
		err = shim_mark_to(mark, (struct sockaddr *)&m->sa, m->mh.msg_namelen, &head.addr);
	if (err)
		return err;
	n = gather(c, m, shim_mark_most(mark));
	if (n < 0)
		return n;
	v[1].iov_len = (size_t)n;
	if (named) {
		/* Any descriptor will do. */
		rgate_put_fds(&mh, &room, &c->task.pidfd, 1);
	} else {
		mh.msg_iov = v + 1;
		mh.msg_iovlen = 1;
	}
	n = send_now(c, fd, &mh, flags);
	return n >= 0 && named ? n - (ssize_t)sizeof(head) : n;
}

static int64_t do_sendto(struct super_call *c, int fd, struct message *m)
{
	int err;

	one_part(c, m);
	err = get_parts(c, m, true);
	return err ? err : send_one(c, fd, m, (int)c->data->args[3]);
}

static int64_t send_message(struct super_call *c, int fd, struct message *m, uint64_t at, int flags)
{
	int err = get_message(c, at, m, true);

	return err ? err : send_one(c, fd, m, flags);
}

/* ---- Many ---- */

/* The time of recvmmsg(2) is looked at behind each one, as the kernel does; 0: there is none */
static int get_time(struct super_call *c, uint64_t *until_ns)
{
	struct timespec most;
	int err;

	*until_ns = 0;
	if (c->data->nr != SYS_recvmmsg || !c->data->args[4])
		return 0;
	err = task_read(&c->task, c->data->args[4], &most, sizeof(most));
	if (!err && (most.tv_sec < 0 || most.tv_nsec < 0 || most.tv_nsec >= (long)NSEC))
		err = -EINVAL;
	if (!err)
		*until_ns = util_now() + (uint64_t)most.tv_sec * NSEC + (uint64_t)most.tv_nsec;
	return err;
}

static int64_t do_many(struct super_call *c, int fd, struct message *m)
{
	const bool in = c->data->nr == SYS_recvmmsg;
	const unsigned int most = (unsigned int)c->data->args[2];
	int flags = (int)c->data->args[3];
	uint64_t at = c->data->args[1], until;
	unsigned int i, len;
	int64_t n = get_time(c, &until);

	for (i = 0; !n && i < most && i < UIO_MAXIOV; i++, at += sizeof(struct mmsghdr)) {
		n = in ? recv_message(c, fd, m, at, flags & ~MSG_WAITFORONE) :
			 send_message(c, fd, m, at, flags);
		if (n < 0)
			break;
		len = (unsigned int)n;
		n = task_write(&c->task, at + offsetof(struct mmsghdr, msg_len), &len, sizeof(len));
		if (in && flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (until && util_now() >= until) {
			i++;
			break;
		}
	}
	return i ? i : n;
}

/* ---- All of them ---- */

int64_t super_datagram(struct super_call *c, int fd)
{
	const __u64 *arg = c->data->args;
	struct message *m = malloc(sizeof(*m));
	int64_t n;

	if (!m)
		return -ENOMEM;
	switch (c->data->nr) {
	case SYS_sendto:
		n = do_sendto(c, fd, m);
		break;
	case SYS_recvfrom:
		n = do_recvfrom(c, fd, m);
		break;
	case SYS_sendmsg:
		n = send_message(c, fd, m, arg[1], (int)arg[2]);
		break;
	case SYS_recvmsg:
		n = recv_message(c, fd, m, arg[1], (int)arg[2]);
		break;
	default:
		n = do_many(c, fd, m);
		break;
	}
	free(m);
	return n;
}
