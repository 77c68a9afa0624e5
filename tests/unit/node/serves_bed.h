/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* This node is the gateway, with the kernel's sockets; the other one asks it (gate_bed.h). */
#ifndef NODE_SERVES_BED_H
#define NODE_SERVES_BED_H

#include "socket_bed.h"

#include "gate_bed.h"
#include "gate_service.h"

extern struct gate_service *serves_sv;
extern uid_t serves_banned;		/* by the policy as it is now; 14 always is */
extern uint32_t serves_handles;		/* that a user may have: 8 */
extern uint32_t serves_sessions;	/* likewise; 0: as many as he likes */

void serves_make(uint32_t silence_ms);
int serves_setup(void **state);
int serves_teardown(void **state);
void serves_turn(void);

struct gate_stats serves_stats(void);
/* There are, and will be, so many */
uint64_t serves_sockets(void);
void serves_become(uint64_t n);

#define SUBMIT(op_, ...) QUESTION(GATE_SUBMIT, .op = RGATE_REQ_SOCKET_##op_, ##__VA_ARGS__)

/* Handles of the other node's guest */
uint32_t serves_socket(uint32_t type);
/* Connected to the kernel's socket @fd */
uint32_t serves_connected(int *fd);
struct rgate_socket_addr serves_loopback(uint16_t port);

/* A request of its own ticket, which is taken; its serial */
uint64_t begin(struct gate_question q, uint32_t ticket);
/* About that request; what is answered */
int asks_of(uint64_t of, struct gate_question q);
/* What is told of it; ends of others, that are told anew as well, are passed over */
struct gate_result hear_of(uint64_t of);
/* Its end, after so many messages of GATE_MORE, without bytes */
void hear_end(uint64_t of, uint64_t n, int result);

#endif
