// SPDX-License-Identifier: MIT OR GPL-2.0
#include <string.h>
#include <unistd.h>

#include "fds.h"

void rgate_put_fds(struct msghdr *msg, union rgate_fds_room *room, const int *fds,
		   unsigned int n)
{
	struct cmsghdr *c = &room->align;	/* the first one begins there */

	if (!n)
		return;
	/* What is between descriptors and end goes to the kernel, too. */
	memset(room, 0, sizeof(*room));
	msg->msg_control = room->buf;
	msg->msg_controllen = CMSG_SPACE(n * sizeof(int));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
}

unsigned int rgate_take_fds(struct msghdr *msg, int *fds, unsigned int most)
{
	unsigned int got = 0;
	struct cmsghdr *c;
	size_t i, n;
	int fd;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		/* The kernel pads the room for them, where one more may lie than was asked for. */
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (got < most)
				fds[got++] = fd;
			else
				close(fd);
		}
	}
	return got;
}
