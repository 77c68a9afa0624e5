/* SPDX-License-Identifier: GPL-2.0-only */
/* Rings that are sent from: who takes their frames, and what is under way. */
#ifndef RGATE_SEND_H
#define RGATE_SEND_H

#include <linux/mutex.h>
#include <linux/types.h>

struct rgate_att;
struct rgate_flight;
struct rgate_ring;
struct rgate_send;
struct rgate_thread;

/**
 * struct rgate_tx - what only a ring with RGATE_RING_TRANSMIT has
 * @lock: one taker of slots at a time
 * @att: attachment whose device the frames go to, NULL: none. RCU, changed under
 *	rgate_lock.
 * @flight: frames under way; outlives the ring
 * @cap: how many may be
 * @thread: looks for them, NULL: users ask. Changed under rgate_lock and the ring's lock.
 */
struct rgate_tx {
	struct mutex lock;	/* taking slots */
	struct rgate_att __rcu *att;
	struct rgate_flight *flight;
	u32 cap;
	struct rgate_thread *thread;
};

int rgate_send_init_ring(struct rgate_ring *ring);
void rgate_send_free_ring(struct rgate_ring *ring);
void rgate_send_end_ring(struct rgate_ring *ring);
int rgate_send_bind(struct rgate_ring *ring, struct rgate_att *att);
void rgate_send_unbind(struct rgate_ring *ring);
bool rgate_send_writable(struct rgate_ring *ring);
bool rgate_send_waiting(const struct rgate_ring *ring);
int rgate_send_turn(struct rgate_ring *ring);
int rgate_send(struct rgate_ring *ring, struct rgate_send *arg);

#endif
