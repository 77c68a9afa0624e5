/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Descriptors that go over a UNIX socket */
#ifndef RGATE_FDS_H
#define RGATE_FDS_H

#include <sys/socket.h>

#define RGATE_FDS_MAX	8	/* in one message */

/* Where they lie on their way */
union rgate_fds_room {
	struct cmsghdr align;
	char buf[CMSG_SPACE(RGATE_FDS_MAX * sizeof(int))];
};

/* @n of @fds, up to RGATE_FDS_MAX, go with @msg; @room is kept until it is sent */
void rgate_put_fds(struct msghdr *msg, union rgate_fds_room *room, const int *fds,
		   unsigned int n);

/* The first @most that came with @msg, which are the caller's; others are closed. How many */
unsigned int rgate_take_fds(struct msghdr *msg, int *fds, unsigned int most);

#endif
