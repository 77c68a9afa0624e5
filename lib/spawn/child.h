/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* From a request to a process that runs it. Of the spawner only. */
#ifndef RGATE_SPAWN_CHILD_H
#define RGATE_SPAWN_CHILD_H

#include "cgroup.h"
#include "spawner.h"
#include "tree.h"

#define RGATE_CHILD_MARK	64	/* bytes of RGATE_TREE_MARK... */

struct rgate_ahead;

struct rgate_child_env {		/* of all of them */
	struct rgate_cgroups *cg;
	struct rgate_ahead *ahead;
	struct rlimit files;
	int nice;			/* the spawner's own */
};

/* In memory that nobody else reaches: decoded, its limits as the policy leaves them */
struct rgate_request {
	uint64_t id, mark;
	uint32_t node;
	const struct rgate_spawn_policy *policy;
	const struct rgate_policy_node *who;
	struct rgate_spawn_parsed req;
	const uint8_t *record;		/* what it was decoded from */
	uint32_t record_len;
};

struct rgate_child {
	pid_t pid;
	int pidfd;			/* -1: none */
	int result_fd;			/* what becomes of its start; -1: that is known */
	int err;			/* -errno, 0 */
	uint32_t stage;
	char why[RGATE_POLICY_WHY];
	uint64_t group;			/* its control group; 0: it has none */
	char mark[RGATE_CHILD_MARK];
};

/*
 * A process that sets itself up and executes the program. Nothing is waited for: all that
 * may take long is done in the process itself. @fds: stdin, stdout, stderr. What went wrong
 * is in @child; its group is gone then.
 */
void rgate_child_start(struct rgate_child *child, const struct rgate_request *request,
		       const int fds[3], const struct rgate_child_env *env);
/* False: it is not known yet. True: it has called execve(2), or ended, or failed (@child->err).
 * @ended: it was reaped, so there is no more to come */
bool rgate_child_result(struct rgate_child *child, bool ended);
/* It is waited for no longer: its descriptors are closed */
void rgate_child_let_go(struct rgate_child *child);

#endif
