// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <limits.h>

#include <ringgate/rgate.h>

/*
 * What an error means when it comes from this library, whichever call it was: what to do
 * about it depends on that, and is for the caller to say. Errors that several calls have
 * for several reasons name them all; the log says which it was.
 */
static const struct {
	int err;
	const char *text;
} texts[] = {
	{ 0, "success" },
	{ EPERM, "not permitted to this user (CAP_NET_ADMIN, CAP_NET_RAW)" },
	{ ENOENT, "not found: no such ring or attachment, or no ringgate module" },
	{ EINTR, "interrupted by a signal" },
	{ ENXIO, "no ringgate module" },
	{ EBADF, "the descriptor is not a ring" },
	{ EAGAIN, "nothing there yet" },
	{ ENOMEM, "out of memory, or over the limit of this memory cgroup" },
	{ EACCES, "permission denied" },
	{ EFAULT, "bad address" },
	{ EBUSY, "in use" },
	{ EEXIST, "exists already" },
	{ ENODEV, "no such device in this network namespace" },
	{ EINVAL, "invalid argument" },
	{ EMFILE, "no more handles: a ring has 32, or the limit of open files is reached" },
	{ ENFILE, "no more open files in the system (fs.file-max)" },
	{ ENOSPC, "no space left, in memory or on the disk" },
	{ EPIPE, "the other side is gone" },
	{ ERANGE, "number out of range" },
	{ E2BIG, "too much at once, or an option structure of a later version" },
	{ ENOSYS, "this kernel lacks the call" },
	{ EPROTO, "malformed message or ring" },
	{ EPROTONOSUPPORT, "of another version, or with features that are not known" },
	{ EOPNOTSUPP, "not supported for this kind of ring or machine" },
	{ EADDRINUSE, "the address is in use" },
	{ EADDRNOTAVAIL, "the address is not one of this machine" },
	{ ENETDOWN, "the network device is down" },
	{ ENOBUFS, "over the limit of locked memory (RLIMIT_MEMLOCK), or messages were lost" },
	{ ETIMEDOUT, "no answer in time" },
	{ ECONNREFUSED, "nobody listens there" },
	{ EDQUOT, "over what this user may have at once" },
	{ EOWNERDEAD, "of the process that this one was forked from" },
	{ ECANCELED, "cancelled" },
	{ EALREADY, "too late, or under way already" },
	{ ESTALE, "gone: the ring was resized, and its new memory did not reach this process, or "
		  "memory was released" },
	{ ENOTCONN, "no connection to its node" },
	{ ECONNRESET, "the connection was lost: whether it was done is not known" },
	{ EMSGSIZE, "longer than fits" },
	{ EDESTADDRREQ, "not a connected socket" },
	{ ENOTSOCK, "the descriptor is not a socket" },
	{ EAFNOSUPPORT, "address family is neither IPv4 nor IPv6, or is switched off" },
};

const char *rgate_strerror(int err)
{
	size_t i;

	if (err == INT_MIN)
		return "unknown error";
	if (err < 0)
		err = -err;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].err == err)
			return texts[i].text;
	return "unexpected error of the system: see errno(3) for the number";
}
