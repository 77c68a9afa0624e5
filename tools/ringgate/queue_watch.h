/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* How far a queue's tasks are, and how long they will take. */
#ifndef QUEUE_WATCH_H
#define QUEUE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <ringgate/rgate_queue.h>

struct queue_watch {
	const char *name;
	uint64_t interval_ns;
	bool json;		/* an object a line */
	bool follow;		/* goes on when no task is left that is not over */
};

/* Until no task is left that is not over, or a signal comes; an exit code */
int queue_watch(struct rgate_queue *q, const struct queue_watch *watch);

#endif
