// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include <ringgate/rgate.h>

#include "strerror.h"

/*
 * What an error means when nothing is known of it in the call that returned it: what to do
 * about it depends on that. Errors that several calls have for several reasons name them all.
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

/* Objects whose calls have the errors of others', as they make or use them */
static const struct {
	const char *call, *as;
} also[] = {
	{ "rgate_device_", "rgate_mem_" },
	{ "rgate_pool_", "rgate_mem_" },
	{ "rgate_buf_", "rgate_mem_" },
	{ "rgate_desc_", "rgate_mem_" },
	{ "rgate_share_", "rgate_mem_" },
	{ "rgate_node_", "rgate_mem_" },
	{ "rgate_peer_", "rgate_mem_" },
	{ "rgate_hub_", "rgate_peer_" },
	{ "rgate_shard_", "rgate_peer_" },
	{ "rgate_gateway_", "rgate_mem_" },
	{ "rgate_inlet_", "rgate_mem_" },
	{ "rgate_ring_open_remote", "rgate_daemon_call" },
	{ "rgate_ring_remote_", "rgate_daemon_call" },
	{ "rgate_ring_attach", "rgate_ctl_attach" },
	{ "rgate_ring_detach", "rgate_ctl_detach" },
	{ "rgate_lock_", "rgate_session_open" },
	{ "rgate_barrier_", "rgate_lock_" },
	{ "rgate_queue_", "rgate_session_open" },
	{ "rgate_sockets_", "rgate_socket_" },
	{ "rgate_socket_", "rgate_session_open" },
	{ "rgate_gpu_launch", "rgate_gpu_start" },
	{ "rgate_gpu_bind_session", "rgate_session_" },
	{ "rgate_session_", "rgate_session_open" },
};

static bool begins(const char *call, const char *with)
{
	return !strncmp(call, with, strlen(with));
}

/* Of all calls of an object */
static bool is_object(const char *call)
{
	const size_t len = strlen(call);

	return len && call[len - 1] == '_';
}

/* Is @name, of a row, that of the call, or of its object? */
static bool fits(const char *call, const char *name)
{
	const char *rest = begins(call, name) ? call + strlen(name) : NULL;

	return rest && (is_object(name) || !*rest || *rest == ':');
}

/* The row of the longest name that fits; of an object also the first of one of its calls */
static const struct rgate_error_row *find(const char *call, int err)
{
	static const struct rgate_error_row *const tables[] = {
		rgate_errors_ring, rgate_errors_cluster, rgate_errors_gpu,
	};
	const struct rgate_error_row *best = NULL, *first = NULL, *row;
	size_t i;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		for (row = tables[i]; row->call; row++) {
			if (row->err != err)
				continue;
			if (fits(call, row->call)) {
				if (!best || strlen(row->call) > strlen(best->call))
					best = row;
			} else if (!first && is_object(call) && begins(row->call, call)) {
				first = row;
			}
		}
	}
	return best ? best : first;
}

const char *rgate_error_of(const char *call, int err, bool *whole)
{
	const struct rgate_error_row *row = NULL;
	size_t i = 0;

	if (err < 0 && err != INT_MIN)
		err = -err;
	while (call && !row && err > 0) {
		row = find(call, err);
		for (i = 0; i < sizeof(also) / sizeof(also[0]); i++)
			if (fits(call, also[i].call) && strcmp(call, also[i].as))
				break;
		call = i < sizeof(also) / sizeof(also[0]) ? also[i].as : NULL;
	}
	if (whole)
		*whole = row && row->whole;
	return row ? row->text : NULL;
}

const char *rgate_strerror(const char *call, int err)
{
	const char *text = rgate_error_of(call, err, NULL);
	size_t i;

	if (text)
		return text;
	if (err == INT_MIN)
		return "unknown error";
	if (err < 0)
		err = -err;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].err == err)
			return texts[i].text;
	return "unexpected error of the system: see errno(3) for the number";
}
