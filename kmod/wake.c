// SPDX-License-Identifier: GPL-2.0-only
/*
 * A frame wakes its consumer where it is received, which is quickest. But who
 * waits on a file, and so what waking costs, is the user's to say: a thousand
 * epoll sets on one handle, or one whose own waiters are a thousand, and a wait
 * word that changes with every frame. So only few are woken there, and only
 * while all the waking of the ring has not taken more than its share of the
 * time. What is beyond that a worker does, a tick or more later, without the
 * ring's lock and in its turn among all processes.
 */
#include <linux/jiffies.h>
#include <linux/poll.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include "trace.h"
#include "wake.h"

/* More than wait on a handle where one thread sleeps at a time. */
#define RGATE_WAKE_FEW		4
/* Waking may take one part in this of one processor's time, ... */
#define RGATE_WAKE_SHARE	4
/* ... and ahead of that so much, ns, of that time. */
#define RGATE_WAKE_AHEAD	(10 * NSEC_PER_MSEC)

/* Enters what was done since @start into the ring's account. */
static void rgate_wake_charge(struct rgate_ring *ring, u64 start)
{
	u64 took = ktime_get_ns() - start;

	lockdep_assert_held(&ring->lock);
	ring->wake_paid = max(ring->wake_paid, start) + took * RGATE_WAKE_SHARE;
}

/* By how much the ring's waking is ahead of its share at @now, ns */
static u64 rgate_wake_debt(const struct rgate_ring *ring, u64 now)
{
	now += RGATE_WAKE_AHEAD;
	return ring->wake_paid > now ? ring->wake_paid - now : 0;
}

/* Wakes all who wait on the file, or none of them if they are many. */
static bool rgate_wake_few(struct rgate_handle *h)
{
	const struct list_head *pos;
	unsigned long flags;
	unsigned int n = 0;

	spin_lock_irqsave(&h->wq.lock, flags);
	list_for_each(pos, &h->wq.head)
		if (++n > RGATE_WAKE_FEW)
			break;
	if (n <= RGATE_WAKE_FEW)
		wake_up_locked_poll(&h->wq, EPOLLIN | EPOLLRDNORM);
	spin_unlock_irqrestore(&h->wq.lock, flags);
	return n <= RGATE_WAKE_FEW;
}

static void rgate_wake_late(struct work_struct *work)
{
	struct rgate_handle *h = container_of(to_delayed_work(work),
					      struct rgate_handle, late);
	struct rgate_ring *ring = h->wakes_of;
	u64 start = ktime_get_ns();

	wake_up_interruptible_poll(&h->wq, EPOLLIN | EPOLLRDNORM);
	spin_lock_bh(&ring->lock);
	rgate_wake_charge(ring, start);
	spin_unlock_bh(&ring->lock);
}

/* Now or later */
static void rgate_wake_up(struct rgate_ring *ring, struct rgate_handle *h)
{
	u64 now = ktime_get_ns(), debt = rgate_wake_debt(ring, now);

	lockdep_assert_held(&ring->lock);
	if (!debt && rgate_wake_few(h))
		rgate_wake_charge(ring, now);
	else
		queue_delayed_work(rgate_wq, &h->late,
				   1 + nsecs_to_jiffies(debt));
}

/**
 * rgate_ring_wake_handle - the slow part of rgate_ring_wake()
 * @ring: the ring, its lock held
 * @i: whose wait word
 * @want: what it says; that has been reached
 */
void rgate_ring_wake_handle(struct rgate_ring *ring, unsigned int i, u64 want)
{
	struct rgate_handle *h = ring->handle[i];

	lockdep_assert_held(&ring->lock);
	if (h->woken == want)
		return;
	/*
	 * Who sleeps got onto the queue before poll took ring->lock to look at
	 * head, or will take it after us and see the new head.
	 */
	if (!waitqueue_active(&h->wq))
		return;
	h->woken = want;
	/* Whom the worker wakes looks at head after us, as above. */
	if (delayed_work_pending(&h->late))
		return;
	rgate_writer_count(&ring->w.stats->wakeups, 1);
	trace_rgate_wake(ring->id, i, ring->w.head);
	rgate_wake_up(ring, h);
}

/* Everybody, whatever the wait words say */
void rgate_ring_wake_all(struct rgate_ring *ring)
{
	unsigned long mask = ring->handle_mask;
	unsigned int i;

	lockdep_assert_held(&ring->lock);
	for_each_set_bit(i, &mask, RGATE_HANDLES_MAX) {
		ring->handle[i]->woken = 0;
		rgate_wake_up(ring, ring->handle[i]);
	}
}

/* Before the handle is in the ring's table */
void rgate_wake_begin(struct rgate_handle *h, struct rgate_ring *ring)
{
	h->woken = 0;
	h->wakes_of = ring;
	INIT_DELAYED_WORK(&h->late, rgate_wake_late);
}

/* After it has left the table; may sleep. The ring is still there. */
void rgate_wake_end(struct rgate_handle *h)
{
	cancel_delayed_work_sync(&h->late);
}
