/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A memfd ring that is shared by consumers, some of which are killed */
#ifndef UNIT_BED_H
#define UNIT_BED_H

#include "unit.h"

/* A ring, its producer, and a consumer in this process */
struct bed {
	struct rgate_ring *ring;
	struct rgate_producer p;
	struct rgate_consumer c;
	uint64_t in;		/* frames put in so far; also the next one's number */
};

/* RGATE_TAKE_SHARED, reading again what the dead left, or skipping it */
extern const struct rgate_consumer_opts bed_shared, bed_skipping;

void bed_up(struct bed *b, uint32_t slots, unsigned int n,
	    const struct rgate_consumer_opts *o);
void bed_down(struct bed *b);
void bed_put(struct bed *b, unsigned int n);

/* The number of the next frame, which is whole; UINT64_MAX: none. Also for children */
uint64_t bed_take(struct rgate_consumer *c);

/* The consumer's next frames are @from to @to - 1. */
void bed_expect(struct bed *b, uint64_t from, uint64_t to);

/* The ring goes round: every batch was returned. Wants @b->in at the end of one. */
void bed_round(struct bed *b);

/*
 * A process that takes @n frames and then waits: for a byte in @sock, upon which it
 * takes all that is there and answers; or to be killed
 */
int bed_hold(struct bed *b, unsigned int n, int *sock);
void bed_kill(int pid, int sock);
void bed_hold_and_kill(struct bed *b, unsigned int n);

#endif
