/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A program of this node whose sockets are at the other one, the gateway (gate_bed.h) */
#ifndef NODE_ASKS_BED_H
#define NODE_ASKS_BED_H

#include "req_bed.h"

#include "gate_bed.h"
#include "gate_service.h"

#define ASKS_MEMORY	(256U << 10)	/* of the program */
#define AT		4096U		/* where bytes are in it */

extern struct rgate_engine *asks_engine;
extern struct client prog;
extern uint64_t asks_guest;		/* that its session is there */

struct gate_stats asks_stats(void);

/* The gateway is there. @silence_ms: as gate_opts has it */
void asks_make(uint32_t silence_ms);
/* Besides, the program has a socket, with the handle 77 */
int asks_setup(void **state);
int asks_teardown(void **state);

/* Whatever can be done is done. */
void asks_turn(void);
#define submit(op_, cookie_, ...) do { \
		client_submit(&prog, (struct rgate_request){ \
			.op = RGATE_REQ_SOCKET_##op_, .cookie = (cookie_), ##__VA_ARGS__ }); \
		asks_turn(); \
	} while (0)

/* The next completion, which has to be there, */
struct rgate_completion asks_next(void);
/* and of that one */
int asks_result(uint64_t cookie, uint64_t *value);
/* There is none */
bool asks_quiet(void);

#define GOES_ON		RGATE_COMP_MORE
/* The end of the question @i's request, after so many messages of GATE_MORE */
struct gate_result last_of(unsigned int i, uint64_t n, int result);
/* A message of the request of the question @i, as it should be: of that handle's connection */
struct gate_result more_of(unsigned int i, uint64_t n, uint64_t value);
/* The next completion is of one of these. */
void came(uint64_t cookie, uint64_t value);
/* It is asked last, over another connection, that so many messages of GATE_MORE were heard. */
void asks_hears(unsigned int i, uint64_t n);

#endif
