/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Descriptors that come over a UNIX socket */
#ifndef RGATE_FDS_H
#define RGATE_FDS_H

#include <sys/socket.h>

#include "within.h"

/* The first @most that came with @msg, which are the caller's; others are closed. How many */
RGATE_WITHIN unsigned int rgate_take_fds(struct msghdr *msg, int *fds, unsigned int most);

#endif
