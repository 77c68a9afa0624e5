/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* From an order to a process that runs it. Of the spawner only. */
#ifndef RGATE_SPAWN_CHILD_H
#define RGATE_SPAWN_CHILD_H

#include "cgroup.h"
#include "spawner.h"
#include "tree.h"

struct rgate_child_env {		/* of all of them */
	struct rgate_cgroups *cg;
	struct rlimit files;
	int nice;			/* the spawner's own */
};

struct rgate_child {
	pid_t pid;
	int err;			/* -errno, 0 */
	uint32_t stage;
	uint64_t group;			/* its control group; 0: it has none */
	char mark[64];			/* RGATE_TREE_MARK... */
};

/* @fds: stdin, stdout, stderr. What went wrong is in @child; its group is gone then. */
void rgate_child_start(struct rgate_child *child, const struct rgate_order *order,
		       const int fds[3], const struct rgate_child_env *env);

#endif
