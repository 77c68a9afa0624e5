/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A hub with a connection to one other node, for fuzz_gate.c: what is asked of that one, and said
 * to it, is kept, and the input says what of it arrives, and whether there is a connection.
 */
#ifndef GATE_PEER_H
#define GATE_PEER_H

#include <ringgate/rgate_hub.h>
#include <ringgate/rgate_pool.h>

#include "fuzz.h"

#define GATE_OTHER	1U	/* the node */
#define GATE_SELF	0U
#define GATE_KEPT	64U

struct gate_msg {
	size_t len;
	unsigned char data[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));
};

struct gate_peer {
	struct rgate_service serves, asks;
	void *ctx;
	bool up, full, held;
	uint32_t epoch;
	uint64_t incarnation, ticket, lost;
	struct gate_msg asked[GATE_KEPT], said[GATE_KEPT]; /* the newest ones */
	unsigned int nasked, nsaid;
	unsigned int lent;
};

extern struct gate_peer gate_peer;
extern char gate_hub_there;	/* an address alone */
#define GATE_HUB	((struct rgate_hub *)&gate_hub_there)

void gate_peer_begin(void);
/* Another connection, to another process of the node, or to the same */
void gate_peer_up(bool other);
void gate_peer_down(void);
/* What the node says, to who serves or to who asks */
void gate_peer_says(bool to_server, const void *msg, size_t len);

#endif
