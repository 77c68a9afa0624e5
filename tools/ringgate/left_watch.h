/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A process beside a command that has an agent of its own. It does nothing until that one is gone:
 * if it was killed it tells those programs that wait in accept(2), and removes what the agent has
 * left.
 */
#ifndef LEFT_WATCH_H
#define LEFT_WATCH_H

/* Before there are threads. *@fd: it is gone when nobody has this one; -errno */
int left_watch_begin(int *fd);
/* @path: agent_member_path(); -EIO: it has ended */
int left_watch_tell(int fd, const char *path);

#endif
