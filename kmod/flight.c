// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames under way. Each has a destructor of ours, which may run long after the ring is
 * closed, in whatever queue the frame lies: the count outlives the ring, and holds the
 * module, until the last one is freed. No socket stands behind them, as none of a network
 * namespace may be kept by a frame.
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/skbuff.h>
#include "alloc.h"
#include "flight.h"
#include "ring.h"
#include "send_thread.h"

/* In rgate_flight.frames as long as there is a ring */
#define RGATE_FLIGHT_RING BIT(30)

/**
 * struct rgate_flight - frames under way
 * @frames: how many, and RGATE_FLIGHT_RING; 0: it ends
 * @wanted: somebody waits until there are no more than @low
 * @low: see @wanted
 * @ring: whose they are, NULL: it is gone. RCU.
 * @rcu: frees it
 */
struct rgate_flight {
	atomic_t frames;
	u32 wanted;
	u32 low;
	struct rgate_ring __rcu *ring;
	struct rcu_head rcu;
};

/* There was one, so destructors may be in their last instructions */
static bool rgate_flight_were;

static void rgate_flight_end(struct rgate_flight *flight)
{
	kfree_rcu(flight, rcu);
	/* See rgate_flight_exit() for what still runs. */
	module_put(THIS_MODULE);
}

/* Who waits for room looks at the count after it said so: see rgate_flight_want(). */
static void rgate_flight_wake(struct rgate_flight *flight)
{
	struct rgate_ring *ring;
	unsigned int i;

	if (!xchg(&flight->wanted, 0))
		return;
	ring = rcu_dereference(flight->ring);
	if (!ring)
		return;
	spin_lock_bh(&ring->lock);
	for (i = 0; i < RGATE_HANDLES_MAX; i++)
		if (ring->handle[i])
			wake_up_interruptible_poll(&ring->handle[i]->wq,
						   EPOLLOUT | EPOLLWRNORM);
	rgate_thread_wake(ring);
	spin_unlock_bh(&ring->lock);
}

/* Any context that frees skbs */
static void rgate_flight_done(struct sk_buff *skb)
{
	struct rgate_flight *flight = skb_shinfo(skb)->destructor_arg;
	u32 left;

	/* Another one may be the last, and end it, while we look. */
	rcu_read_lock();
	/* Orders the count before the look at @wanted. */
	left = atomic_dec_return(&flight->frames);
	if (unlikely(!left))
		rgate_flight_end(flight);
	else if (unlikely(READ_ONCE(flight->wanted)) &&
		 (left & ~RGATE_FLIGHT_RING) <= flight->low)
		rgate_flight_wake(flight);
	rcu_read_unlock();
}

/**
 * rgate_flight_new - a count for a ring
 * @ring: the ring
 * @low: who waits for room is woken at this many
 */
struct rgate_flight *rgate_flight_new(struct rgate_ring *ring, u32 low)
{
	struct rgate_flight *flight = rgate_kzalloc(sizeof(*flight));

	if (!flight)
		return NULL;
	/* The file that the ring is made through holds the module. */
	__module_get(THIS_MODULE);
	WRITE_ONCE(rgate_flight_were, true);
	atomic_set(&flight->frames, RGATE_FLIGHT_RING);
	flight->low = low;
	RCU_INIT_POINTER(flight->ring, ring);
	return flight;
}

/*
 * The ring goes, once a grace period is over if it ever had frames under way: see
 * rgate_ring_destroy().
 */
void rgate_flight_leave(struct rgate_flight *flight)
{
	RCU_INIT_POINTER(flight->ring, NULL);
	if (!atomic_sub_return(RGATE_FLIGHT_RING, &flight->frames))
		rgate_flight_end(flight);
}

u32 rgate_flight_frames(const struct rgate_flight *flight)
{
	return atomic_read(&flight->frames) & ~RGATE_FLIGHT_RING;
}

/* rgate_flight_begin - count @n frames before they are made */
void rgate_flight_begin(struct rgate_flight *flight, u32 n)
{
	atomic_add(n, &flight->frames);
}

/* rgate_flight_undo - @n of those were not made; the ring is there */
void rgate_flight_undo(struct rgate_flight *flight, u32 n)
{
	if (n)
		atomic_sub(n, &flight->frames);
}

/* rgate_flight_own - a frame that was counted: its end is, too, from here on */
void rgate_flight_own(struct rgate_flight *flight, struct sk_buff *skb)
{
	skb_shinfo(skb)->destructor_arg = flight;
	skb->destructor = rgate_flight_done;
}

/* rgate_flight_want - the next time that there are few, wake the ring's handles */
void rgate_flight_want(struct rgate_flight *flight)
{
	WRITE_ONCE(flight->wanted, 1);
	/* Then the count is looked at again; pairs with rgate_flight_done(). */
	smp_mb();
}

/*
 * All counts have ended, the last within a destructor that may not have returned: on
 * another CPU with bottom halves off, or in a task that lost its CPU right there.
 */
void rgate_flight_exit(void)
{
	if (!READ_ONCE(rgate_flight_were))
		return;
	synchronize_rcu();
	synchronize_rcu_tasks();
}
