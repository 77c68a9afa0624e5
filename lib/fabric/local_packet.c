// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fds.h"
#include "local.h"

int local_send(int sock, const struct local_packet *p, const struct iovec *iov, unsigned int n,
	       const int *fds, unsigned int nfds)
{
	struct iovec all[RGATE_SGE_MAX + 2] = { { (void *)p, sizeof(*p) } };
	union rgate_fds_room room;
	struct msghdr msg = { .msg_iov = all, .msg_iovlen = n + 1 };

	if (n)
		memcpy(all + 1, iov, n * sizeof(*iov));
	rgate_put_fds(&msg, &room, fds, nfds);
	if (sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return errno == EAGAIN || errno == ENOBUFS ? -EAGAIN : -errno;
}

int local_wait(int fd, short events, uint32_t timeout_ms)
{
	const uint64_t end = rgate_clock_now(CLOCK_MONOTONIC) + timeout_ms * 1000000ULL;
	struct pollfd pfd = { .fd = fd, .events = events };
	uint64_t now;
	int n;

	do {
		now = rgate_clock_now(CLOCK_MONOTONIC);
		n = poll(&pfd, 1, now < end ? (int)((end - now) / 1000000) + 1 : 0);
		if (n > 0)
			return 0;
		/* A signal of the caller's is no reason to give up. */
		if (n < 0 && errno != EINTR)
			return -errno;
	} while (now < end);
	return -ETIMEDOUT;
}
