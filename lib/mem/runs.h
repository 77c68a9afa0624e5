/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Runs of grains of one region: two-level segregated fit (Masmano and others, TLSF,
 * ECRTS 2004), with all bookkeeping in arrays beside the region. Takes and gives in
 * constant time, neighbours that are free become one. Not thread-safe.
 */
#ifndef RGATE_MEM_RUNS_H
#define RGATE_MEM_RUNS_H

#include <stddef.h>
#include <stdint.h>

#define RGATE_RUNS_LEVELS	32
#define RGATE_RUNS_STEPS	8
#define RGATE_RUNS_NONE		UINT32_MAX

struct rgate_runs {
	uint32_t grains;
	uint32_t free;		/* grains in free runs */
	uint32_t *len;		/* at the first grain of a run, and at the last of a free one */
	uint32_t *next;		/* free runs of one bin, by first grain */
	uint32_t *prev;
	uint8_t *state;		/* enum, at the first grain, and at the last of a free run */
	uint32_t levels;	/* bit: some bin of the level has a run */
	uint8_t steps[RGATE_RUNS_LEVELS];
	uint32_t head[RGATE_RUNS_LEVELS][RGATE_RUNS_STEPS];
};

/* Of the heap that those of @grains take */
size_t rgate_runs_bytes(uint32_t grains);
/* One free run of @grains. 0 or -ENOMEM */
int rgate_runs_init(struct rgate_runs *r, uint32_t grains);
void rgate_runs_fini(struct rgate_runs *r);

/*
 * A run of @n grains whose first one's number + @phase is a multiple of @align (a
 * power of two); RGATE_RUNS_NONE: there is none
 */
uint32_t rgate_runs_take(struct rgate_runs *r, uint32_t n, uint32_t align, uint32_t phase);
/* A run that was taken, by its first grain */
void rgate_runs_give(struct rgate_runs *r, uint32_t first);
/* Grains of the largest free run */
uint32_t rgate_runs_largest(const struct rgate_runs *r);

#endif
