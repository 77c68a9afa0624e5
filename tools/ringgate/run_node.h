/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* At which node of the cluster the sockets of this machine's daemon are */
#ifndef RUN_NODE_H
#define RUN_NODE_H

#include <stdint.h>

/*
 * run_node_check - EXIT_OK: they are @node's; else what to exit with, after a message
 * @socket: the daemon's; NULL: where it is by default. @what: that they are for
 */
int run_node_check(const char *socket, uint32_t node, const char *what);

#endif
