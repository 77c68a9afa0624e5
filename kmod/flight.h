/* SPDX-License-Identifier: GPL-2.0-only */
/* Frames of a ring that queues and devices have, and have not freed yet. */
#ifndef RGATE_FLIGHT_H
#define RGATE_FLIGHT_H

#include <linux/types.h>

struct rgate_flight;
struct rgate_ring;
struct sk_buff;

struct rgate_flight *rgate_flight_new(struct rgate_ring *ring, u32 low);
void rgate_flight_leave(struct rgate_flight *flight);
u32 rgate_flight_frames(const struct rgate_flight *flight);
void rgate_flight_begin(struct rgate_flight *flight, u32 n);
void rgate_flight_undo(struct rgate_flight *flight, u32 n);
void rgate_flight_own(struct rgate_flight *flight, struct sk_buff *skb);
void rgate_flight_want(struct rgate_flight *flight);
void rgate_flight_exit(void);

#endif
