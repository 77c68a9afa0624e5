// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/ring.h>

#include "fds.h"
#include "handover.h"

int rgate_handover_send(int sock, uint8_t kind, uint32_t handle, const int *fds,
			unsigned int nfds, int flags)
{
	struct rgate_handover msg = {
		.magic = RGATE_HANDOVER_MAGIC,
		.version = RGATE_HANDOVER_VERSION,
		.kind = kind,
		.nfds = (uint8_t)nfds,
		.handle = handle,
	};
	struct iovec iov = { .iov_base = &msg, .iov_len = sizeof(msg) };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	union rgate_fds_room room;
	ssize_t n;

	rgate_put_fds(&mh, &room, fds, nfds);
	do {
		n = sendmsg(sock, &mh, flags | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == sizeof(msg) ? 0 : -EMSGSIZE;
}

static bool may_have(uint8_t kind, unsigned int fds)
{
	switch (kind) {
	case RGATE_HANDOVER_MODULE:
		return fds == 1;
	case RGATE_HANDOVER_LIFE:
		return fds == 1 || fds == 2;
	case RGATE_HANDOVER_MEMFD:
		return fds == 3;
	case RGATE_HANDOVER_MEMORY:
		return fds == 2;
	default:
		return !fds;
	}
}

int rgate_handover_recv(int sock, struct rgate_handover *msg,
			int fds[RGATE_HANDOVER_FDS], int flags)
{
	struct iovec iov = { .iov_base = msg, .iov_len = sizeof(*msg) };
	union rgate_fds_room room;
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room.buf,
		.msg_controllen = CMSG_SPACE(sizeof(int) * RGATE_HANDOVER_FDS),
	};
	unsigned int n;
	ssize_t len;

	memset(msg, 0, sizeof(*msg));
	len = recvmsg(sock, &mh, flags | MSG_CMSG_CLOEXEC);
	if (len < 0)
		return -errno;
	n = rgate_take_fds(&mh, fds, RGATE_HANDOVER_FDS);
	if (len == 0 && !n)
		return -EPIPE;
	if ((size_t)len == sizeof(*msg) && !(mh.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) &&
	    msg->magic == RGATE_HANDOVER_MAGIC &&
	    msg->version == RGATE_HANDOVER_VERSION && !msg->reserved &&
	    msg->nfds == n && may_have(msg->kind, n) &&
	    msg->handle < RGATE_HANDLES_MAX)
		return 0;
	while (n)
		close(fds[--n]);
	return -EPROTO;
}
