/* SPDX-License-Identifier: GPL-2.0-only */
/* A thread that takes frames out of a transmit ring while nobody asks for it. */
#ifndef RGATE_SEND_THREAD_H
#define RGATE_SEND_THREAD_H

#include <linux/types.h>

struct rgate_ring;

int rgate_thread_start(struct rgate_ring *ring, u32 share);
void rgate_thread_stop(struct rgate_ring *ring);
void rgate_thread_wake(struct rgate_ring *ring);
void rgate_thread_kicked(struct rgate_ring *ring);

#endif
