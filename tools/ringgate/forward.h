/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Signals that are for a program that this one runs: they wait in a descriptor, and end nobody
 * here. What was ignored when this one began stays so, here and in the program: nohup(1) is not
 * undone.
 */
#ifndef FORWARD_H
#define FORWARD_H

#include <stdbool.h>

/*
 * forward_begin - SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 and SIGWINCH wait from now on,
 * SIGPIPE becomes EPIPE, and children can be waited for
 * Once in a process; threads that there are already have to have these blocked. -errno
 */
int forward_begin(void);

/* Readable: one has come */
int forward_fd(void);

/*
 * forward_next - the number of one that came; 0: none is there
 * @has_group: out, it came from the terminal, to all of the process group
 */
int forward_next(bool *has_group);

/* Has one come that ends who does nothing about it, and was not taken by forward_next()? */
bool forward_ends(void);

/* In a child that becomes the program: all is as it was before forward_begin() */
void forward_undo(void);

#endif
