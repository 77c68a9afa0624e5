/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Runs a command on one node or on several, with streams and signals, to its end. */
#ifndef SPAWN_RUN_H
#define SPAWN_RUN_H

#include "spawn_node.h"

#define SPAWN_EXIT_LOST		255	/* it was not run, or nobody knows */
#define SPAWN_EXIT_TIME		124

struct spawn_run {
	struct spawn_node *node;
	const struct rgate_spawn_request *request;
	uint64_t attach;		/* 0: not */
	const char *input;		/* file; NULL: standard input */
	bool json;
	bool all;			/* lines with the node's name before them */
};

/* The exit code */
int spawn_run(const struct spawn_run *run);

/* Until it runs, or is known not to */
int spawn_wait_running(const struct spawn_node *sn, void *job, struct rgate_spawn_result *r);
void spawn_say_error(const char *node, const char *command, const struct rgate_spawn_result *r);

#endif
