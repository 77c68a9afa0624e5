/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A command for each task of a queue. */
#ifndef QUEUE_RUN_H
#define QUEUE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <ringgate/rgate_queue.h>

struct queue_run {
	const char *name;
	const struct rgate_queue_opts *opts;
	char **command;		/* {} in a word of it is the task */
	uint32_t parallel;
	uint32_t retry_ms;	/* until one that failed is ready again */
	bool follow;		/* waits for more tasks when there are none */
};

/* Until no task is left that is not over, or a signal comes; an exit code */
int queue_run(const struct queue_run *run);

#endif
