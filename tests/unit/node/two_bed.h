/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A program of one node whose sockets are another one's, both of which are here: what they say to
 * each other arrives when the test says so, and the connection between them comes and goes.
 */
#ifndef NODE_TWO_BED_H
#define NODE_TWO_BED_H

#include "serves_bed.h"

#define TWO_ASKS	0U	/* nodes */
#define TWO_SERVES	1U

extern struct rgate_hub two_hub[2];
extern struct rgate_peer two_peer[2];	/* each node's end */
extern struct client two_prog;
extern uint64_t two_rnd;		/* of unit_random() */

/* @so: of the program's seat */
void two_make(const struct rgate_seat_opts *so);
void two_free(void);

/* One time in so many */
bool two_chance(unsigned int in);
void two_link_is(bool up);
/* Some of what is under way arrives, and what was written before it is there. */
void two_carry(unsigned int n);
void two_turn(void);

#define TWO_SUBMIT(op_, cookie_, ...) \
	client_submit(&two_prog, (struct rgate_request){ .op = RGATE_REQ_SOCKET_##op_, \
							 .cookie = (cookie_), ##__VA_ARGS__ })

/* Waits for that one, over a good connection */
struct rgate_completion two_wait_for(uint64_t cookie);

#endif
