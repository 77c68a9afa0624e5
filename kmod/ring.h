/* SPDX-License-Identifier: GPL-2.0-only */
/* Rings and the open files on them. */
#ifndef RGATE_RING_H
#define RGATE_RING_H

#include <linux/bitops.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include "mem.h"
#include "writer.h"

struct file;
struct net;
struct rgate_ring;
struct rgate_tx;

/**
 * struct rgate_ident - a ring or an attachment as a request names it
 * @id: its number, which others get in their turn
 * @cookie: who had that number when the caller looked
 */
struct rgate_ident {
	u32 id;
	u64 cookie;
};

/* Numbers of rings and of attachments go round in this. */
#define RGATE_ID_LIMIT XA_LIMIT(1, INT_MAX)

/* Random, so that it tells nothing of others and outlives a reload; never 0. */
static inline u64 rgate_cookie_new(void)
{
	u64 cookie;

	do {
		cookie = get_random_u64();
	} while (!cookie);
	return cookie;
}

/**
 * struct rgate_handle - an open file
 * @lock: serialises the ioctls that give the file its ring
 * @ring: set once, with release; NULL until then
 * @index: which wait word is this file's
 * @mapped: latest generation mapped through this file; under ring->lock
 * @woken: wait word that a wakeup was already given for; under ring->lock
 * @wq: who sleeps in poll
 * @late: wakes them where that is too much for who receives a frame
 * @wakes_of: ring of @late; there as long as the handle is in its table
 */
struct rgate_handle {
	struct mutex lock;	/* giving the file its ring */
	struct rgate_ring *ring;
	u32 index;
	u32 mapped;
	u64 woken;
	wait_queue_head_t wq;
	struct delayed_work late;
	struct rgate_ring *wakes_of;
};

/**
 * struct rgate_ring - a ring, from its first handle to its last
 * @lock: the data path: writer, counters, handle table. Taken with BHs off.
 * @w: what fills the slots
 * @polled: handles that were ever polled, so that somebody may sleep there; a ring
 *	without such costs frames no look at wait words
 * @clock: of arrival times, RGATE_CLOCK_*
 * @policy: enum rgate_policy
 * @handle_mask: which of @handle are there
 * @odd_clock: arrival times are not CLOCK_MONOTONIC's, or coarse
 * @handle: open files by index, for wakeups
 * @wake_paid: until when, CLOCK_MONOTONIC, the share of time that waking may
 *	take has been spent; under @lock
 * @life: rgate_prod.life as it is; under @lock
 * @closed: rgate_prod.closed, likewise
 * @mem: present memory; under @lock
 * @export_lock: makes dma-bufs of @mem, one an area, and lets go of them
 * @tx: of a ring with RGATE_RING_TRANSMIT, whose @w has no frames to write: its head
 *	is what was taken, changed under @tx->lock and @lock. Else NULL.
 * @id: number in rgate_rings
 * @cookie: tells it from others that had or will have that number
 * @nhandles: open files; under rgate_lock
 * @net: network namespace it belongs to, not counted; NULL once that is gone.
 *	Under rgate_lock.
 * @attached: was ever part of an attachment, so readers may be about; under
 *	rgate_lock
 * @free: frees it where they may
 * @event_work: tells listeners that the ring is full or has room again
 * @told_events: full_events as last told
 * @told_full: the last word was that it is full
 */
struct rgate_ring {
	spinlock_t lock;	/* the data path */
	struct rgate_writer w;
	u32 polled;
	u32 clock;
	u32 policy;
	u32 handle_mask;
	bool odd_clock;
	struct rgate_handle *handle[RGATE_HANDLES_MAX];
	u64 wake_paid;
	u32 life[RGATE_HANDLES_MAX];
	u64 closed;

	struct rgate_mem *mem;
	struct mutex export_lock;	/* mem->exported */
	struct rgate_tx *tx;
	u32 id;
	u64 cookie;
	u32 flags;
	int node;
	kuid_t uid;
	char name[RGATE_NAME_LEN];

	unsigned int nhandles;
	struct net *net;
	bool attached;
	struct rcu_work free;

	struct delayed_work event_work;
	u64 told_events;
	bool told_full;
};

/**
 * struct rgate_ring_now - a ring as of one moment
 * @geo: shape of its present memory
 * @generation: of that memory
 * @head: slots published in it
 * @stats: counters
 */
struct rgate_ring_now {
	struct rgate_geo geo;
	u32 generation;
	u64 head;
	struct rgate_stats stats;
};

/*
 * What the control paths share: rings, attachments, who belongs to which
 * network namespace. Inside the RTNL, which others wait for, so nothing long is
 * done under it: filters are compiled before, memory is freed after.
 */
extern struct mutex rgate_lock;
extern struct xarray rgate_rings;

/* Frees what receive hooks may still look at, after a grace period; wakes late. */
extern struct workqueue_struct *rgate_wq;

int rgate_ring_init(void);
void rgate_ring_exit(void);

struct rgate_ring *rgate_ring_create(const struct rgate_create *arg,
				     struct net *net);
int rgate_ring_add_handle(struct rgate_ring *ring, struct rgate_handle *h);
void rgate_ring_del_handle(struct rgate_ring *ring, struct rgate_handle *h);
struct rgate_ring *rgate_ring_find(struct net *net, u32 id);
struct rgate_ring *rgate_ring_find_ident(struct net *net,
					 const struct rgate_ident *ident);
void rgate_ring_forget_net(struct net *net);

void rgate_ring_mapped(struct rgate_ring *ring, struct rgate_handle *h,
		       const struct rgate_mem *mem);
struct rgate_mem *rgate_ring_mem_get(struct rgate_ring *ring);
int rgate_ring_resize(struct rgate_ring *ring, struct rgate_handle *h,
		      struct rgate_resize *arg);
struct file *rgate_ring_export(struct rgate_ring *ring, enum rgate_ring_area area,
			       u32 *generation);
void rgate_ring_geometry(const struct rgate_geo *geo, u32 generation,
			 const struct rgate_handle *h,
			 struct rgate_geometry *out);
void rgate_ring_look(struct rgate_ring *ring, struct rgate_ring_now *now);
bool rgate_ring_readable(struct rgate_ring *ring, struct rgate_handle *h);
void rgate_ring_polled(struct rgate_ring *ring, struct rgate_handle *h);

#endif
