/* SPDX-License-Identifier: GPL-2.0-only */
/* Rings and the open files on them. */
#ifndef RGATE_RING_H
#define RGATE_RING_H

#include <linux/bitops.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include "mem.h"
#include "writer.h"

struct net;
struct rgate_ring;

/**
 * struct rgate_handle - an open file
 * @lock: serialises the ioctls that give the file its ring
 * @ring: set once, with release; NULL until then
 * @index: which wait word is this file's
 * @mapped: latest generation mapped through this file; under ring->lock
 * @woken: wait word that a wakeup was already given for; under ring->lock
 * @wq: who sleeps in poll
 */
struct rgate_handle {
	struct mutex lock;	/* giving the file its ring */
	struct rgate_ring *ring;
	u32 index;
	u32 mapped;
	u64 woken;
	wait_queue_head_t wq;
};

/**
 * struct rgate_ring - a ring, from its first handle to its last
 * @lock: the data path: writer, counters, handle table. Taken with BHs off.
 * @w: what fills the slots
 * @handle: open files by index, for wakeups
 * @handle_mask: which of them are there
 * @mem: present memory; under @lock
 * @id: number in rgate_rings
 * @nhandles: open files; under rgate_lock
 * @net: network namespace it belongs to, not counted; NULL once that is gone.
 *	Under rgate_lock.
 * @attached: was ever part of an attachment, so readers may be about
 * @event_work: tells listeners that the ring is full or has room again
 * @told_events: full_events as last told
 * @told_full: the last word was that it is full
 */
struct rgate_ring {
	spinlock_t lock;	/* the data path */
	struct rgate_writer w;
	struct rgate_handle *handle[RGATE_HANDLES_MAX];
	u32 handle_mask;

	struct rgate_mem *mem;
	u32 id;
	u32 flags;
	u32 policy;
	u32 clock;
	int node;
	kuid_t uid;
	char name[RGATE_NAME_LEN];

	unsigned int nhandles;
	struct net *net;
	bool attached;

	struct delayed_work event_work;
	u64 told_events;
	bool told_full;
};

/*
 * What the control paths share: rings, attachments, who belongs to which
 * network namespace. Inside the RTNL, outside everything else here.
 */
extern struct mutex rgate_lock;
extern struct xarray rgate_rings;

struct rgate_ring *rgate_ring_create(const struct rgate_create *arg,
				     struct net *net);
int rgate_ring_add_handle(struct rgate_ring *ring, struct rgate_handle *h);
void rgate_ring_del_handle(struct rgate_ring *ring, struct rgate_handle *h);
struct rgate_ring *rgate_ring_find(struct net *net, u32 id);
void rgate_ring_forget_net(struct net *net);

void rgate_ring_mapped(struct rgate_ring *ring, struct rgate_handle *h,
		       const struct rgate_mem *mem);
struct rgate_mem *rgate_ring_mem_get(struct rgate_ring *ring);
int rgate_ring_resize(struct rgate_ring *ring, struct rgate_handle *h,
		      struct rgate_resize *arg);
void rgate_ring_geometry(const struct rgate_mem *mem,
			 const struct rgate_handle *h,
			 struct rgate_geometry *geo);
void rgate_ring_stats(struct rgate_ring *ring, struct rgate_stats *stats,
		      u64 *head);
bool rgate_ring_readable(struct rgate_ring *ring, struct rgate_handle *h);
void rgate_ring_wake_handle(struct rgate_ring *ring, unsigned int i, u64 want);

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
	const struct rgate_waiter *waiter = ring->w.cons->waiter;
	u32 mask = ring->handle_mask;
	unsigned int i;
	u64 want;

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
