/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Queues of tasks that bench_queue measures: each end is a process. */
#ifndef RIVAL_H
#define RIVAL_H

#include <stdint.h>

#define BATCH_MOST	256U

extern unsigned int batch;	/* tasks of a call, or of all requests under way at once */

struct rival {
	const char *name;
	/* Once, before either of these: the queue is there, with nothing of a former round in it */
	void (*prepare)(const char *address);
	void (*submit)(const char *address, uint32_t tasks);
	/* Returns when it has completed so many */
	void (*work)(const char *address, uint32_t tasks);
};

extern const struct rival ringgate_queue, redis_streams, beanstalkd, chase_lev;

#endif
