/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Which addresses are this machine's: the kernel's routes know. */
#ifndef RGATE_SOCKET_OWN_H
#define RGATE_SOCKET_OWN_H

#include "socket_addr.h"

/* A netlink socket for it, or -errno */
int socket_own_open(void);

/*
 * socket_own - is that address one of this machine's, or one that reaches several machines?
 * Local, broadcast, anycast and multicast routes. Does not wait. 1; 0; -errno: nobody knows
 */
int socket_own(int fd, const struct socket_host *h);

#endif
