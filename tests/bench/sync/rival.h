/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Locks and barriers that bench_sync measures: each process has its own handle. */
#ifndef RIVAL_H
#define RIVAL_H

#include <stdint.h>

#define NAME	"bench"

struct rival {
	const char *name;
	/* Once, before the processes are made: nothing of a former run is left */
	void (*prepare)(const char *address);
	/* Process @i's. @members: of the barrier, 0: a lock */
	void *(*join)(const char *address, unsigned int i, unsigned int members);
	void (*acquire)(void *h);
	void (*release)(void *h);
	void (*meet)(void *h);
	void (*leave)(void *h);
};

extern const struct rival ringgate_lock, ringgate_requests, ringgate_meet, ringgate_add,
	ringgate_swap, redis_set, redis_list, etcd_lock, file_lock, robust_mutex;

/* All of a barrier's members, each of which mpirun has started: ns for one of @times, in one of
 * them; 0 in the others */
double mpi_barriers(unsigned int times);

#endif
