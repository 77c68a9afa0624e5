/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * How a process comes to be:
 *
 *	child.c		it is made, and what became of its start
 *	ahead.c		one that is made before there is anything for it to do
 *	keeper.c	what has its memory, too
 *	child_run.c	in the process itself, until it executes its program
 */
#ifndef RGATE_SPAWN_CHILD_PRIV_H
#define RGATE_SPAWN_CHILD_PRIV_H

#include "child.h"

/* All that the process needs; it has a copy of the spawner's memory. */
struct child_plan {
	const struct rgate_request *request;
	const struct rgate_child_env *env;
	const char *mark;		/* NULL: a control group has it */
	int fds[3];
	int result_fd;
	int life_fd;			/* is open until execve(2), no more; -1: none */
	int group_fd;			/* directory of its control group; -1: none */
	int procs_fd;			/* -1: it is made in the group, or there is none */
	bool memory_by_group, pids_by_group;
	pid_t spawner;
};

/* What a process says that will not execute anything. One write(2) to a pipe, whole or not */
struct child_result {
	int32_t err;
	uint32_t stage;
	char why[RGATE_POLICY_WHY];
};

/* Straight to the kernel. As fork(2) with the number or -errno, in the group if not -1 */
pid_t child_clone(int group_fd, int *pidfd);
/* Descriptors of a pipe by which a process tells what became of its start. 0 or -errno */
int child_pipe(int fds[2]);
/* Of the job, in its environment */
void child_mark(char mark[RGATE_CHILD_MARK], uint64_t mark_of_all, uint64_t id);

/* In the process: nothing else of the spawner's stays open in it but these, and 0 to 2. -1: none */
void child_keep(const int *fds, unsigned int n);
/* In the process: what is the same for any job. 0 or -errno */
int child_prepare(const struct child_plan *plan);
/* What child_run() does in memory, and no more: for what the first time costs */
void child_rehearse(const struct rgate_request *request);
/* And the rest; unless @err has gone wrong already */
_Noreturn void child_run(struct child_plan *plan, int err);

#endif
