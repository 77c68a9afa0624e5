/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A process that is made before there is a job for it, so that no job waits for a fork and what
 * comes with it. It is the spawner's user's, is in a session and a control group of its own, and
 * waits at a socket for a job, as which it goes on. It knows the policy that held when it was
 * made. Its memory is that of a keeper, too (keeper.h). Of the spawner only. Where there is none,
 * whoever needs a process makes one.
 */
#ifndef RGATE_SPAWN_AHEAD_H
#define RGATE_SPAWN_AHEAD_H

#include "child.h"

#define RGATE_AHEAD_RECORD	(16U << 10)	/* bytes of a larger one do not go to it */

struct rgate_ahead {
	pid_t pid;			/* of its keeper, which is made first; 0: there is none */
	pid_t runner;			/* its own; 0: it has not said so yet, or was reaped */
	bool dying;			/* it was killed, and both are to be reaped */
	int sock, pidfd, result_fd, group_fd; /* -1: none */
	uint64_t group;			/* 0: none */
	uint64_t again_ns;		/* CLOCK_MONOTONIC: no other one is made before */
};

/* Is there nothing to be made? */
bool rgate_ahead_idle(const struct rgate_ahead *ahead);
/* How many processes of it are there, if not one more */
unsigned int rgate_ahead_count(struct rgate_ahead *ahead);
/* When there will be, in ms; -1: not because of time */
int rgate_ahead_due(const struct rgate_ahead *ahead);
/* Makes it, if it can be made */
void rgate_ahead_make(struct rgate_ahead *ahead, const struct rgate_spawn_policy *policy,
		      const struct rgate_child_env *env);
/* It knows a policy that does not hold any more, or nobody needs it. Waits for nothing */
void rgate_ahead_drop(struct rgate_ahead *ahead);
/* The spawner has reaped @pid. True: it was this one */
bool rgate_ahead_reaped(struct rgate_ahead *ahead, pid_t pid, const struct rgate_child_env *env);

/*
 * rgate_ahead_start - it becomes the process of a job
 * False: it cannot: another one has to be made. Otherwise @child is as of rgate_child_start().
 */
bool rgate_ahead_start(struct rgate_ahead *ahead, struct rgate_child *child,
		       const struct rgate_request *request, const int fds[3],
		       const struct rgate_child_env *env);

#endif
