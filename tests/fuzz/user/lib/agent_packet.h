/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Datagrams of an agent's programs, for fuzz_agent.c: the bytes of each say whose it is, which way
 * it goes and how long it is, so that one in the wrong place, or a part of one, is seen.
 */
#ifndef AGENT_PACKET_H
#define AGENT_PACKET_H

#include "agent_program.h"

void packet_begin(void);
/* @up: from the program */
void packet_fill(const struct rgate_socket *s, bool up, unsigned char *p, uint32_t len);
bool packet_is(const struct rgate_socket *s, bool up, const unsigned char *p, uint32_t len);
/* Of any program, up */
bool packet_is_some(const unsigned char *p, uint32_t len);
/* Where those come from that who serves brings */
struct rgate_socket_addr packet_from(const struct rgate_socket *s);
/* One to anywhere, or what is none; @how: a length, and which */
void packet_send(struct program_fd *p, uint16_t how);
/* Looks at the next one */
void packet_read(struct program_fd *p);

#endif
