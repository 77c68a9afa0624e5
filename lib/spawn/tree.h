/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What came of a process, where there are no control groups: found in /proc by
 * session, group, parents, and the mark in its environment. Of the spawner only, which
 * is a subreaper: orphans are its children.
 */
#ifndef RGATE_SPAWN_TREE_H
#define RGATE_SPAWN_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RGATE_TREE_MARK		"RINGGATE_SPAWN_ID="

struct rgate_tree {
	pid_t leader;
	bool reaped;		/* its number may mean somebody else now */
	const char *mark;	/* RGATE_TREE_MARK... as in the environment */
};

/* Sends @sig to each that is found (0: just looks), @max rounds at most until none is
 * new; how many there were in the first */
int rgate_tree_signal(const struct rgate_tree *tree, int sig);

/* Children of this process, or -errno: the kernel does not tell */
int rgate_tree_children(void);

#endif
