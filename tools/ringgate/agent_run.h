/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A program, what it starts, and the agent that has their sockets. */
#ifndef AGENT_RUN_H
#define AGENT_RUN_H

#include <stdbool.h>
#include <sys/resource.h>

#include "home.h"

struct agent_run {
	char **command;
	const char *preload;	/* the library that is loaded into it; NULL: super.h */
	bool netns;		/* it has a network namespace of its own, with nothing in it */
	struct rlimit files;	/* the program's */
	/* agent_run()'s own: */
	struct watch *watch;	/* of the program, as long as that is called */
	bool ended;		/* it was told to, and has */
};

/* As many descriptors as there may be, for its agent; before that is opened */
void agent_run_prepare(struct agent_run *run);

/*
 * Runs it, until it and all that it started have ended, and what they sent is on its way; hands on
 * the signals of forward_begin(), which comes first. Its exit status, 128 and the number of the
 * signal that ended it, EXIT_FAIL instead of 0 if something of what it sent was lost, 126 or 127 if
 * it cannot be run. The agent is the caller's, and may be closed then.
 */
int agent_run(struct home *home, struct agent_run *run);

/*
 * As agent_opts.enough has it, of a struct agent_run. Who serves may stand still, and this one be
 * told to end: signals are handed on meanwhile, and when its program has ended it ends as well.
 */
bool agent_run_enough(void *run, uint64_t ns);

#endif
