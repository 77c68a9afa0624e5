// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A stream's calls are the kernel's. But it has no addresses that these could tell, and takes none:
 * what an AF_UNIX socket calls itself, or refuses, is nothing that a program of TCP knows.
 */
#include "shim.h"

#include <errno.h>

ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags, struct sockaddr *sa,
		       socklen_t *sa_len);

static bool is_ours(int fd)
{
	struct agent_name name;

	return shim_kind(fd, &name) != SHIM_NONE;
}

SHIM_EXPORT ssize_t recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *sa,
			     socklen_t *sa_len)
{
	ssize_t n;

	if (!sa || !is_ours(fd))
		return NEXT(recvfrom)(fd, buf, len, flags, sa, sa_len);
	n = NEXT(recvfrom)(fd, buf, len, flags, NULL, NULL);
	if (n >= 0 && sa_len)
		*sa_len = 0;
	return n;
}

SHIM_EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags,
				   struct sockaddr *sa, socklen_t *sa_len)
{
	ssize_t n;

	if (!sa || !is_ours(fd))
		return NEXT(__recvfrom_chk)(fd, buf, len, room, flags, sa, sa_len);
	n = NEXT(__recvfrom_chk)(fd, buf, len, room, flags, NULL, NULL);
	if (n >= 0 && sa_len)
		*sa_len = 0;
	return n;
}

SHIM_EXPORT ssize_t recvmsg(int fd, struct msghdr *mh, int flags)
{
	void *name = mh ? mh->msg_name : NULL;
	ssize_t n;

	if (!name || !is_ours(fd))
		return NEXT(recvmsg)(fd, mh, flags);
	mh->msg_name = NULL;
	n = NEXT(recvmsg)(fd, mh, flags);
	mh->msg_name = name;
	mh->msg_namelen = 0;
	return n;
}

SHIM_EXPORT ssize_t sendto(int fd, const void *buf, size_t len, int flags,
			   const struct sockaddr *sa, socklen_t sa_len)
{
	if (!sa || !is_ours(fd))
		return NEXT(sendto)(fd, buf, len, flags, sa, sa_len);
	return NEXT(sendto)(fd, buf, len, flags, NULL, 0);
}

SHIM_EXPORT ssize_t sendmsg(int fd, const struct msghdr *mh, int flags)
{
	struct msghdr own;

	if (!mh || !mh->msg_name || !is_ours(fd))
		return NEXT(sendmsg)(fd, mh, flags);
	own = *mh;
	own.msg_name = NULL;
	own.msg_namelen = 0;
	return NEXT(sendmsg)(fd, &own, flags);
}
