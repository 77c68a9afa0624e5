// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <limits.h>

#include <ringgate/rgate.h>

/*
 * What an error means when it comes from this library, and what mends it. Errors
 * that have several causes name the likeliest first.
 */
static const struct {
	int err;
	const char *text;
} texts[] = {
	{ 0, "success" },
	{ EPERM, "not permitted: this needs CAP_NET_ADMIN (attach) or CAP_NET_RAW "
		 "(packet socket, vlan filter); run as root or grant the capability" },
	{ ENOENT, "not found: the ringgate module is not loaded (run `ringgate load`), "
		  "or there is no ring or attachment of that number "
		  "(see `ringgate status`)" },
	{ EINTR, "interrupted by a signal: call again" },
	{ ENXIO, "no such device: the ringgate module is not loaded; run `ringgate load`" },
	{ EBADF, "the descriptor is not a ring" },
	{ EAGAIN, "nothing there yet: wait and call again" },
	{ ENOMEM, "out of memory, or over the limit of this memory cgroup: use fewer or "
		  "smaller slots" },
	{ EACCES, "permission denied: check the mode of /dev/ringgate, and that the "
		  "area is one that may be written" },
	{ EFAULT, "bad address handed to the library" },
	{ EBUSY, "in use: the ring has a producer, or the file has a ring already" },
	{ EEXIST, "exists already: the ring is part of the attachment" },
	{ ENODEV, "no such network device in this network namespace; see `ip link`" },
	{ EINVAL, "invalid argument: slots must be a power of two from 64 to 1048576, "
		  "slot size one from 256 to 65536 bytes; unknown flags are refused" },
	{ EMFILE, "no more handles: a ring has 32, or the limit of open files is "
		  "reached; close one, or raise `ulimit -n`" },
	{ ENFILE, "the system has no more open files to give; raise fs.file-max" },
	{ ENOSPC, "no space: the ring does not fit in memory; use fewer or smaller slots" },
	{ EPIPE, "the producer is gone and all its frames are taken" },
	{ ERANGE, "number out of range" },
	{ E2BIG, "an option structure has fields this version of the library does not "
		 "know: install the version the program was built for" },
	{ ENOSYS, "this kernel lacks the call; ringgate needs Linux 6.1 or later" },
	{ EPROTO, "malformed message or ring: what came was not made by ringgate, or by "
		  "another version" },
	{ EPROTONOSUPPORT, "the ring is of a version or has features this library does "
			   "not know: install the same version on both sides" },
	{ EOPNOTSUPP, "not supported for this kind of ring or machine: only its creator "
		      "can change or hand on a memfd ring; a module ring needs memory "
		      "that is coherent for DMA" },
	{ EADDRINUSE, "the address is bound by another socket; see `ss -lunp`" },
	{ EADDRNOTAVAIL, "the address is not one of this machine; see `ip addr`" },
	{ ENETDOWN, "the network device is down; `ip link set DEVICE up`" },
	{ ENOBUFS, "over the limit of locked memory, or messages were lost: raise "
		   "`ulimit -l` (or give CAP_IPC_LOCK), or use a smaller ring" },
	{ ETIMEDOUT, "the kernel did not answer in time; look at dmesg" },
	{ ESTALE, "the ring was resized and its new memory did not reach this process: "
		  "have the creator send the ring anew" },
	{ EMSGSIZE, "longer than fits; use larger slots or a ring that chains" },
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
