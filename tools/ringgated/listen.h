/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* UNIX sockets at which the daemon is found */
#ifndef LISTEN_H
#define LISTEN_H

#include <sys/types.h>

/*
 * listen_open - a SOCK_SEQPACKET socket that listens at @path, and does not block
 * @group: that may use it, beside the user; NULL: as @mode says
 * @mode: of its file, if there is no group; else 0660
 * Removes a socket there that nobody listens at any more, and makes the directory of the
 * default paths. Returns the descriptor, or -errno: -EADDRINUSE, another daemon listens
 * there; -EEXIST, it is no socket; -ENOENT, no such directory, or group.
 */
int listen_open(const char *path, const char *group, mode_t mode);

#endif
