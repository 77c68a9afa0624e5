/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A command that runs as long as something is so. */
#ifndef HELD_RUN_H
#define HELD_RUN_H

#include <stdbool.h>
#include <stdint.h>

#define HELD_LOST	(-1)	/* what held_run() returns: it was ended */

struct held_run {
	char **command;
	bool (*valid)(const void *ctx);	/* looked at all the while */
	const void *ctx;
	uint64_t kill_ns;		/* from SIGTERM to SIGKILL when it is so no more */
};

/*
 * Runs it to its end, and hands on the signals that util_catch_signals() has. Its exit status,
 * 128 and the number of the signal that ended it, 126 or 127 if it cannot be run; HELD_LOST
 */
int held_run(const struct held_run *run);

#endif
