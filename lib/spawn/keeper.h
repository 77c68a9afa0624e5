/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A process that has the memory of another one, too, so that execve(2) of that one need not give
 * it back while somebody waits: the kernel leaves it to the last who has it. Of the spawner only.
 */
#ifndef RGATE_SPAWN_KEEPER_H
#define RGATE_SPAWN_KEEPER_H

/* In the new process. @life is open until it calls execve(2), or ends; else -1 */
typedef void (*keeper_fn)(void *arg, int life);

/*
 * keeper_begin - makes the process that @run is called in, and keeps its memory
 * The caller has just been made for this by the spawner, and is its child, as the new process is.
 * That one is in the group whose directory is @group_fd (-1: the caller's). The caller can do
 * nothing from then on, and ends with the new process, or when that executes something. Where the
 * new process cannot be made the caller ends at once; where nobody knows how, it is that process.
 */
_Noreturn void keeper_begin(int group_fd, keeper_fn run, void *arg);

/* The group in which the caller is to be made */
int keeper_group(int group_fd);

#endif
