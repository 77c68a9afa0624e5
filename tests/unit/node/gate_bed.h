/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The other node at a gate: it asks, as a guest that the test chooses, and is told; or it is asked,
 * and says what the test wants.
 */
#ifndef NODE_GATE_BED_H
#define NODE_GATE_BED_H

#include "unit.h"

#include "gate_wire.h"
#include "other.h"

#define PATIENCE_MS	20000U
#define ME		5U	/* the user, there and here */

/* The other node is not there yet. @turn: does what there is to do here */
void gate_bed_init(const struct gate_role *role, void (*turn)(void));
/* gate_opts.may: while o.may, and never for the user 13 */
bool gate_bed_may(void *ctx, uint32_t node, uid_t uid);

extern unsigned char other_newer;	/* its build, by so many versions of what it says */

/* ---- It asks ---- */

extern uint64_t number, serial, guest;	/* the next question's, and whose */
extern struct msg heard;		/* what it was told last */

#define QUESTION(kind_, ...) \
	((struct gate_question){ .kind = (kind_), .uid = ME, .guest = guest, .serial = serial, \
				 ##__VA_ARGS__ })

/* What it is told next, and it has to be told something */
struct gate_result hear(void);
/* Without the answer */
void ask_only(struct gate_question q);
/* The answer; ends that were told before it are passed over */
struct gate_result ask(struct gate_question q);
/* A request that is taken: its end */
struct gate_result done_of(struct gate_question q);

/* ---- It is asked ---- */

/* What it was asked, from 0 on: o.peer.asked.n questions */
struct gate_question question(unsigned int i);
void say(struct gate_result r);
/* To the question @i */
void answer(unsigned int i, int result);
/* What the request of the question @i has come to: to be said */
struct gate_result end_of(unsigned int i, int result, uint64_t value);

#endif
