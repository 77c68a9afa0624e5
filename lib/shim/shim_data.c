// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A stream's calls are the kernel's. But it has no addresses that these could tell, and takes none:
 * what an AF_UNIX socket calls itself, or refuses, is nothing that a program of TCP knows. Of
 * datagrams all calls have to be seen.
 */
#include "shim.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags, struct sockaddr *sa,
		       socklen_t *sa_len);

static bool is_ours(int fd)
{
	struct agent_name name;

	return shim_kind(fd, &name) != SHIM_NONE;
}

/* -1 and errno of a negative one; else @n */
static ssize_t done(ssize_t n)
{
	if (n >= 0)
		return n;
	errno = (int)-n;
	return -1;
}

/* ---- A stream, by any call ---- */

#define TRASH		(64U << 10)
#define TRASH_PARTS	16U

/* What is not wanted, but counted: it goes nowhere, whatever the program has for it */
static ssize_t drop(int fd, size_t len, int flags)
{
	static char trash[TRASH];
	struct iovec v[TRASH_PARTS];
	struct msghdr mh = { .msg_iov = v };

	for (; len && mh.msg_iovlen < TRASH_PARTS; mh.msg_iovlen++) {
		v[mh.msg_iovlen] = (struct iovec){ .iov_base = trash,
						   .iov_len = len < TRASH ? len : TRASH };
		len -= v[mh.msg_iovlen].iov_len;
	}
	return NEXT(recvmsg)(fd, &mh, flags);
}

/* What the kernel has said of @len bytes at most, where it says something else of one of TCP */
static ssize_t came(int fd, ssize_t n, size_t len, int flags)
{
	if (n >= 0 || (errno != EFAULT && errno != EINVAL))
		return n;
	if (errno == EFAULT && flags & MSG_TRUNC && is_ours(fd))
		return drop(fd, len, flags);
	if (errno == EINVAL && shim_is_idle(fd))
		errno = ENOTCONN;
	return n;
}

/* ---- One datagram, by any call ---- */

static ssize_t get(int fd, void *buf, size_t len, int flags, struct sockaddr *sa,
		   socklen_t *sa_len)
{
	struct iovec v = { .iov_base = buf, .iov_len = len };
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };
	ssize_t n;

	if (sa && (!sa_len || (int)*sa_len < 0))
		return done(sa_len ? -EINVAL : -EFAULT);
	mh.msg_name = sa;
	mh.msg_namelen = sa ? *sa_len : 0;
	n = shim_datagram_recv(fd, &mh, flags);
	if (n >= 0 && sa)
		*sa_len = mh.msg_namelen;
	return done(n);
}

static ssize_t get_parts(int fd, const struct iovec *v, int n)
{
	struct msghdr mh = { .msg_iov = (struct iovec *)(uintptr_t)v, .msg_iovlen = (size_t)n };

	return done(n < 0 ? -EINVAL : shim_datagram_recv(fd, &mh, 0));
}

static ssize_t put(int fd, const void *buf, size_t len, int flags, const struct sockaddr *sa,
		   socklen_t sa_len)
{
	struct iovec v = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	const struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1,
				   .msg_name = (void *)(uintptr_t)sa, .msg_namelen = sa_len };

	return done(shim_datagram_send(fd, &mh, flags));
}

/* ---- Read and written ---- */

SHIM_EXPORT ssize_t read(int fd, void *buf, size_t len)
{
	/* The kernel does not ask a socket for nothing. */
	if (!len || !shim_datagram_is(fd))
		return came(fd, NEXT(read)(fd, buf, len), len, 0);
	return get(fd, buf, len, 0, NULL, NULL);
}

SHIM_EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
	if (!len || len > room || !shim_datagram_is(fd))
		return came(fd, NEXT(__read_chk)(fd, buf, len, room), len, 0);
	return get(fd, buf, len, 0, NULL, NULL);
}

SHIM_EXPORT ssize_t readv(int fd, const struct iovec *v, int n)
{
	return shim_datagram_is(fd) ? get_parts(fd, v, n) : NEXT(readv)(fd, v, n);
}

SHIM_EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
	return shim_datagram_is(fd) ? put(fd, buf, len, 0, NULL, 0) : NEXT(write)(fd, buf, len);
}

SHIM_EXPORT ssize_t writev(int fd, const struct iovec *v, int n)
{
	const struct msghdr mh = { .msg_iov = (struct iovec *)(uintptr_t)v,
				   .msg_iovlen = n < 0 ? 0 : (size_t)n };

	if (!shim_datagram_is(fd))
		return NEXT(writev)(fd, v, n);
	return done(n < 0 ? -EINVAL : shim_datagram_send(fd, &mh, 0));
}

/* ---- Received ---- */

SHIM_EXPORT ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	return shim_datagram_is(fd) ? get(fd, buf, len, flags, NULL, NULL) :
	       came(fd, NEXT(recv)(fd, buf, len, flags), len, flags);
}

SHIM_EXPORT ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags)
{
	return len <= room && shim_datagram_is(fd) ? get(fd, buf, len, flags, NULL, NULL) :
	       came(fd, NEXT(__recv_chk)(fd, buf, len, room, flags), len, flags);
}

SHIM_EXPORT ssize_t recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *sa,
			     socklen_t *sa_len)
{
	ssize_t n;

	if (shim_datagram_is(fd))
		return get(fd, buf, len, flags, sa, sa_len);
	if (!sa || !is_ours(fd))
		return came(fd, NEXT(recvfrom)(fd, buf, len, flags, sa, sa_len), len, flags);
	n = came(fd, NEXT(recvfrom)(fd, buf, len, flags, NULL, NULL), len, flags);
	if (n >= 0 && sa_len)
		*sa_len = 0;
	return n;
}

SHIM_EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags,
				   struct sockaddr *sa, socklen_t *sa_len)
{
	ssize_t n;

	if (len <= room && shim_datagram_is(fd))
		return get(fd, buf, len, flags, sa, sa_len);
	if (!sa || !is_ours(fd))
		return came(fd, NEXT(__recvfrom_chk)(fd, buf, len, room, flags, sa, sa_len), len,
			    flags);
	n = came(fd, NEXT(__recvfrom_chk)(fd, buf, len, room, flags, NULL, NULL), len, flags);
	if (n >= 0 && sa_len)
		*sa_len = 0;
	return n;
}

/* Another process may have passed one on. */
static void note_passed(struct msghdr *mh)
{
	struct agent_name name;
	struct cmsghdr *h;
	size_t at;
	int fd;

	for (h = CMSG_FIRSTHDR(mh); h; h = CMSG_NXTHDR(mh, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (at = 0; at + sizeof(fd) <= h->cmsg_len - CMSG_LEN(0); at += sizeof(fd)) {
			memcpy(&fd, CMSG_DATA(h) + at, sizeof(fd));
			if (shim_kind(fd, &name) == SHIM_DATAGRAM)
				shim_datagram_note();
		}
	}
}

static ssize_t get_message(int fd, struct msghdr *mh, int flags)
{
	ssize_t n = NEXT(recvmsg)(fd, mh, flags);

	if (n >= 0 && mh->msg_controllen)
		note_passed(mh);
	return n;
}

SHIM_EXPORT ssize_t recvmsg(int fd, struct msghdr *mh, int flags)
{
	void *name = mh ? mh->msg_name : NULL;
	ssize_t n;

	if (mh && shim_datagram_is(fd))
		return done(shim_datagram_recv(fd, mh, flags));
	if (!name || !is_ours(fd))
		return mh ? get_message(fd, mh, flags) : NEXT(recvmsg)(fd, mh, flags);
	mh->msg_name = NULL;
	n = get_message(fd, mh, flags);
	mh->msg_name = name;
	mh->msg_namelen = 0;
	return n;
}

static bool is_past(const struct timespec *begin, const struct timespec *most)
{
	struct timespec now;

	if (!most)
		return false;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - begin->tv_sec) * 1000000000LL + now.tv_nsec - begin->tv_nsec >=
	       most->tv_sec * 1000000000LL + most->tv_nsec;
}

/* The time is looked at behind each one, as the kernel does. */
static int get_many(int fd, struct mmsghdr *v, unsigned int n, int flags,
		    const struct timespec *most)
{
	struct timespec begin = { .tv_sec = 0 };
	unsigned int i;
	ssize_t got;

	if (most)
		(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	for (i = 0; i < n; i++) {
		got = shim_datagram_recv(fd, &v[i].msg_hdr, flags & ~MSG_WAITFORONE);
		if (got < 0)
			return i ? (int)i : (int)done(got);
		v[i].msg_len = (unsigned int)got;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (is_past(&begin, most))
			return (int)i + 1;
	}
	return (int)i;
}

SHIM_EXPORT int recvmmsg(int fd, struct mmsghdr *v, unsigned int n, int flags,
			 struct timespec *most)
{
	int got, i;

	if (shim_datagram_is(fd))
		return get_many(fd, v, n, flags, most);
	got = NEXT(recvmmsg)(fd, v, n, flags, most);
	for (i = 0; i < got; i++)
		note_passed(&v[i].msg_hdr);
	return got;
}

SHIM_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request != FIONREAD || !shim_datagram_is(fd))
		return NEXT(ioctl)(fd, request, arg);
	*(int *)arg = shim_datagram_there(fd);
	return 0;
}

/* ---- Sent ---- */

SHIM_EXPORT ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	return shim_datagram_is(fd) ? put(fd, buf, len, flags, NULL, 0) :
	       NEXT(send)(fd, buf, len, flags);
}

SHIM_EXPORT ssize_t sendto(int fd, const void *buf, size_t len, int flags,
			   const struct sockaddr *sa, socklen_t sa_len)
{
	if (shim_datagram_is(fd))
		return put(fd, buf, len, flags, sa, sa_len);
	if (!sa || !is_ours(fd))
		return NEXT(sendto)(fd, buf, len, flags, sa, sa_len);
	return NEXT(sendto)(fd, buf, len, flags, NULL, 0);
}

SHIM_EXPORT ssize_t sendmsg(int fd, const struct msghdr *mh, int flags)
{
	struct msghdr own;

	if (mh && shim_datagram_is(fd))
		return done(shim_datagram_send(fd, mh, flags));
	if (!mh || !mh->msg_name || !is_ours(fd))
		return NEXT(sendmsg)(fd, mh, flags);
	own = *mh;
	own.msg_name = NULL;
	own.msg_namelen = 0;
	return NEXT(sendmsg)(fd, &own, flags);
}

SHIM_EXPORT int sendmmsg(int fd, struct mmsghdr *v, unsigned int n, int flags)
{
	unsigned int i;
	ssize_t sent;

	if (!shim_datagram_is(fd))
		return NEXT(sendmmsg)(fd, v, n, flags);
	for (i = 0; i < n; i++) {
		sent = shim_datagram_send(fd, &v[i].msg_hdr, flags);
		if (sent < 0)
			return i ? (int)i : (int)done(sent);
		v[i].msg_len = (unsigned int)sent;
	}
	return (int)i;
}

SHIM_EXPORT int shutdown(int fd, int how)
{
	const bool is = shim_datagram_is(fd);

	/* Of AF_UNIX it would be shut down for good: it is to connect yet. */
	if (!is && how >= SHUT_RD && how <= SHUT_RDWR && shim_is_idle(fd))
		return shim_return(-ENOTCONN);
	if (NEXT(shutdown)(fd, how) < 0)
		return -1;
	/* It takes effect, and is told as an error all the same. */
	return is && !shim_mark_connected(shim_mark(fd)) ? shim_return(-ENOTCONN) : 0;
}
