/* SPDX-License-Identifier: GPL-2.0-only */
/* Waking consumers who sleep in poll, at a cost that is bounded. */
#ifndef RGATE_WAKE_H
#define RGATE_WAKE_H

#include <linux/bitops.h>
#include <asm/barrier.h>
#include "ring.h"

void rgate_wake_begin(struct rgate_handle *h, struct rgate_ring *ring);
void rgate_wake_end(struct rgate_handle *h);
void rgate_ring_wake_handle(struct rgate_ring *ring, unsigned int i, u64 want);
void rgate_ring_wake_all(struct rgate_ring *ring);

/* Has position @want - 1 been published? Wrong words only cost their writer. */
static inline bool rgate_ring_reached(const struct rgate_ring *ring, u64 want)
{
	return want && (s64)(ring->w.head - want) >= 0;
}

/**
 * rgate_ring_wake - wake consumers who wait for what was just published
 * @ring: the ring, its lock held
 *
 * A wait word brings one wakeup: whoever goes on sleeping on the same word is
 * told at once by poll that there is something.
 */
static inline void rgate_ring_wake(struct rgate_ring *ring)
{
	const struct rgate_waiter *waiter;
	u32 mask = ring->polled;
	unsigned int i;
	u64 want;

	lockdep_assert_held(&ring->lock);
	/* Who polls for the first time takes the lock after us, and looks at head. */
	if (likely(!mask))
		return;
	waiter = ring->w.cons->waiter;
	/*
	 * Publish, then look for sleepers; they store their wait word, then
	 * look at the slot: rgate_consumer_arm() has the other barrier.
	 */
	smp_mb();
	for (; mask; mask &= mask - 1) {
		i = __ffs(mask);
		want = READ_ONCE(waiter[i].want);
		if (unlikely(rgate_ring_reached(ring, want)))
			rgate_ring_wake_handle(ring, i, want);
	}
}

#endif
