// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fds.h"
#include "wire.h"

int rgate_wire_send(int sock, const void *msg, size_t len, const int *fds, unsigned int nfds,
		    int flags)
{
	struct iovec iov = { .iov_base = (void *)msg, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	union rgate_fds_room room;
	ssize_t n;

	if (nfds > RGATE_FDS)
		return -EINVAL;
	if (nfds)
		rgate_put_fds(&mh, &room, fds, nfds);
	do {
		n = sendmsg(sock, &mh, flags | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EMSGSIZE;
}

int rgate_wire_recv(int sock, void *msg, size_t len, int *fds, unsigned int *nfds, int flags)
{
	struct iovec iov = { .iov_base = msg, .iov_len = len };
	int got[RGATE_FDS + 1];
	union rgate_fds_room room;
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	unsigned int n;
	ssize_t bytes;

	if (fds) {
		*nfds = 0;
		mh.msg_control = room.buf;
		mh.msg_controllen = sizeof(room.buf);
	}
	memset(msg, 0, len);
	do {
		bytes = recvmsg(sock, &mh, flags | MSG_CMSG_CLOEXEC);
	} while (bytes < 0 && errno == EINTR);
	if (bytes < 0)
		return -errno;
	/* One more than there can be, so that too many are seen as such */
	n = rgate_take_fds(&mh, got, RGATE_FDS + 1);
	if (n > RGATE_FDS || (mh.msg_flags & MSG_CTRUNC)) {
		while (n)
			close(got[--n]);
		return -EPROTO;
	}
	if (!bytes && !n)
		return -EPIPE;
	if (fds && n) {
		memcpy(fds, got, n * sizeof(*fds));
		*nfds = n;
	}
	return (int)bytes;
}
