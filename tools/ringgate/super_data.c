// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a stream's kernel would say of an address here is a name of the agent's. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "super.h"
#include "util.h"

#define PIECE	(64U << 10)

uint64_t super_until(int fd, int option)
{
	struct timeval most = { .tv_sec = 0 };
	socklen_t len = sizeof(most);

	if (getsockopt(fd, SOL_SOCKET, option, &most, &len) || (!most.tv_sec && !most.tv_usec))
		return 0;
	return util_now() + (uint64_t)most.tv_sec * NSEC + (uint64_t)most.tv_usec * 1000;
}

/* As recv(2), but that it waits so that the program's signals end it; -errno */
static ssize_t receive(struct super_call *c, int fd, void *buf, size_t len, int flags,
		       uint64_t until_ns)
{
	const bool wait = !(flags & MSG_DONTWAIT) && !(fcntl(fd, F_GETFL) & O_NONBLOCK);
	ssize_t n;
	int err;

	for (;;) {
		n = recv(fd, buf, len, (flags & ~MSG_WAITALL) | MSG_DONTWAIT);
		if (n >= 0)
			return n;
		if (errno != EAGAIN || !wait)
			return -errno;
		err = super_wait(c, fd, POLLIN, until_ns);
		if (err)
			return err;
	}
}

int64_t super_recvfrom(struct super_call *c, int fd)
{
	const uint64_t until = super_until(fd, SO_RCVTIMEO);
	const __u64 *arg = c->data->args;
	const int flags = (int)arg[3];
	const bool all = flags & MSG_WAITALL && !(flags & MSG_PEEK);
	const socklen_t none = 0;
	void *buf = malloc(PIECE);
	uint64_t done = 0;
	ssize_t n = -ENOMEM;
	int err = 0;

	while (buf && !err) {
		n = receive(c, fd, buf, arg[2] - done < PIECE ? arg[2] - done : PIECE, flags,
			    until);
		if (n <= 0)
			break;
		err = task_write(&c->task, arg[1] + done, buf, (size_t)n);
		done += (uint64_t)n;
		if (!all || done >= arg[2])
			break;
	}
	free(buf);
	if (err || (n < 0 && !done))
		return err ? err : n;
	if (arg[5])
		err = task_write(&c->task, arg[5], &none, sizeof(none));
	return err ? err : (int64_t)done;
}
