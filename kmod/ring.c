// SPDX-License-Identifier: GPL-2.0-only
#include <linux/bits.h>
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/nodemask.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include "alloc.h"
#include "attach.h"
#include "event.h"
#include "ring.h"
#include "trace.h"

/* Registry and attachments, see ring.h */
DEFINE_MUTEX(rgate_lock);
DEFINE_XARRAY_ALLOC1(rgate_rings);

/* The part of the producer area that says what this ring is. */
static void rgate_ring_label(struct rgate_ring *ring, struct rgate_mem *mem,
			     u32 generation)
{
	struct rgate_prod *prod = mem->prod;

	mem->generation = generation;
	mem->rw_slots = ring->flags & RGATE_RING_RW_SLOTS;
	prod->features = RGATE_FEAT_RESIZE;
	if (ring->flags & RGATE_RING_CHAIN)
		prod->features |= RGATE_FEAT_CHAIN;
	if (ring->policy == RGATE_POLICY_OVERWRITE)
		prod->features |= RGATE_FEAT_OVERWRITE;
	prod->flags = ring->flags;
	prod->policy = ring->policy;
	prod->clock = ring->clock;
	prod->generation = generation;
	prod->ring_id = ring->id;
	memcpy(prod->name, ring->name, RGATE_NAME_LEN);
}

/* Printable, without blanks, terminated, nothing behind the end. */
static bool rgate_name_valid(const char *name)
{
	size_t len = strnlen(name, RGATE_NAME_LEN), i;

	if (len == RGATE_NAME_LEN)
		return false;
	for (i = 0; i < len; i++)
		if (!isascii(name[i]) || !isgraph(name[i]))
			return false;
	return !memchr_inv(name + len, 0, RGATE_NAME_LEN - len);
}

static int rgate_ring_check(const struct rgate_create *arg,
			    struct rgate_geo *geo)
{
	if (arg->flags & ~RGATE_RING_FLAGS ||
	    arg->policy >= RGATE_POLICY_COUNT ||
	    arg->clock >= RGATE_CLOCK_COUNT ||
	    !rgate_name_valid(arg->name))
		return -EINVAL;
	if (arg->node != NUMA_NO_NODE &&
	    (arg->node < 0 || arg->node >= MAX_NUMNODES ||
	     !node_online(arg->node)))
		return -EINVAL;
	return rgate_geo_init(geo, arg->slots, arg->slot_size);
}

static int rgate_ring_register(struct rgate_ring *ring, struct net *net)
{
	int err;

	mutex_lock(&rgate_lock);
	err = rgate_alloc_fails() ? -ENOMEM :
		xa_alloc(&rgate_rings, &ring->id, NULL, xa_limit_31b,
			 GFP_KERNEL_ACCOUNT);
	ring->net = net;
	mutex_unlock(&rgate_lock);
	return err;
}

/**
 * rgate_ring_create - a ring without handles
 * @arg: from the user, reserved fields checked
 * @net: the caller's network namespace
 *
 * Others can find it once it has its first handle.
 */
struct rgate_ring *rgate_ring_create(const struct rgate_create *arg,
				     struct net *net)
{
	struct rgate_ring *ring;
	struct rgate_geo geo;
	int err;

	err = rgate_ring_check(arg, &geo);
	if (err)
		return ERR_PTR(err);
	ring = rgate_kzalloc(sizeof(*ring));
	if (!ring)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&ring->lock);
	rgate_event_init(ring);
	ring->flags = arg->flags;
	ring->policy = arg->policy;
	ring->clock = arg->clock;
	ring->node = arg->node;
	ring->uid = current_euid();

	ring->mem = rgate_mem_alloc(&geo, arg->node);
	if (IS_ERR(ring->mem)) {
		err = PTR_ERR(ring->mem);
		goto free_ring;
	}
	err = rgate_ring_register(ring, net);
	if (err)
		goto put_mem;
	if (arg->name[0])
		memcpy(ring->name, arg->name, RGATE_NAME_LEN);
	else
		snprintf(ring->name, RGATE_NAME_LEN, "ring%u", ring->id);
	rgate_ring_label(ring, ring->mem, 1);
	rgate_writer_init(&ring->w, ring->mem, ring->flags, ring->policy);
	return ring;

put_mem:
	rgate_mem_put(ring->mem);
free_ring:
	kfree(ring);
	return ERR_PTR(err);
}

/**
 * rgate_ring_find - a ring by number, as seen from a network namespace
 * @net: only its own rings are seen
 * @id: number
 *
 * Return: the ring, valid while the caller holds rgate_lock; or NULL.
 */
struct rgate_ring *rgate_ring_find(struct net *net, u32 id)
{
	struct rgate_ring *ring = xa_load(&rgate_rings, id);

	lockdep_assert_held(&rgate_lock);
	return ring && ring->net == net ? ring : NULL;
}

/* The namespace goes; rings live on for those who have them mapped. */
void rgate_ring_forget_net(struct net *net)
{
	struct rgate_ring *ring;
	unsigned long id;

	lockdep_assert_held(&rgate_lock);
	xa_for_each(&rgate_rings, id, ring)
		if (ring->net == net)
			ring->net = NULL;
}

/**
 * rgate_ring_add_handle - give an open file its place on a ring
 * @ring: new, or kept alive by another open file
 * @h: the file, without a ring
 *
 * Return: 0, or -EMFILE if all wait words are taken.
 */
int rgate_ring_add_handle(struct rgate_ring *ring, struct rgate_handle *h)
{
	int err = -EMFILE;

	mutex_lock(&rgate_lock);
	spin_lock_bh(&ring->lock);
	if (~ring->handle_mask) {
		h->index = ffz(ring->handle_mask);
		h->mapped = ring->mem->generation;
		h->woken = 0;
		ring->handle[h->index] = h;
		ring->handle_mask |= BIT(h->index);
		err = 0;
	}
	spin_unlock_bh(&ring->lock);
	/* The place in the registry was reserved, so this cannot fail. */
	if (!err && !ring->nhandles++)
		xa_store(&rgate_rings, ring->id, ring, GFP_KERNEL);
	mutex_unlock(&rgate_lock);
	return err;
}

static void rgate_ring_destroy(struct rgate_ring *ring)
{
	/* Receive hooks that found the ring before it left its attachments. */
	if (ring->attached)
		synchronize_rcu();
	cancel_delayed_work_sync(&ring->event_work);
	rgate_mem_put(ring->mem);
	kfree(ring);
}

/**
 * rgate_ring_del_handle - a file is closed; the ring ends with its last one
 * @ring: the ring
 * @h: its handle, or NULL for a ring that never had one
 */
void rgate_ring_del_handle(struct rgate_ring *ring, struct rgate_handle *h)
{
	bool last;

	mutex_lock(&rgate_lock);
	if (h) {
		spin_lock_bh(&ring->lock);
		ring->handle[h->index] = NULL;
		ring->handle_mask &= ~BIT(h->index);
		spin_unlock_bh(&ring->lock);
		ring->nhandles--;
	}
	last = !ring->nhandles;
	if (last) {
		xa_erase(&rgate_rings, ring->id);
		rgate_att_drop_ring(ring);
		if (h)
			rgate_event_ring_gone(ring);
	}
	mutex_unlock(&rgate_lock);
	if (last)
		rgate_ring_destroy(ring);
}

/* What a user needs to map the memory; @h: whose wait word */
void rgate_ring_geometry(const struct rgate_mem *mem,
			 const struct rgate_handle *h,
			 struct rgate_geometry *geo)
{
	geo->slots = mem->geo.slots;
	geo->slot_size = mem->geo.slot_size;
	geo->generation = mem->generation;
	geo->handle = h->index;
	geo->map_len = mem->geo.map_len;
	geo->cons_off = mem->geo.cons_off;
	geo->credits_off = mem->geo.credits_off;
	geo->slots_off = mem->geo.slots_off;
}

/* Counters and head as of one moment. */
void rgate_ring_stats(struct rgate_ring *ring, struct rgate_stats *stats,
		      u64 *head)
{
	spin_lock_bh(&ring->lock);
	*stats = ring->w.prod->stats;
	*head = ring->w.head;
	spin_unlock_bh(&ring->lock);
}

/* The ring's present memory, with a reference for the caller. */
struct rgate_mem *rgate_ring_mem_get(struct rgate_ring *ring)
{
	struct rgate_mem *mem;

	spin_lock_bh(&ring->lock);
	mem = ring->mem;
	rgate_mem_get(mem);
	spin_unlock_bh(&ring->lock);
	return mem;
}

/* A file has mapped memory of the ring; one of two at once may be the older. */
void rgate_ring_mapped(struct rgate_ring *ring, struct rgate_handle *h,
		       const struct rgate_mem *mem)
{
	spin_lock_bh(&ring->lock);
	h->mapped = max(h->mapped, mem->generation);
	spin_unlock_bh(&ring->lock);
}

static void rgate_ring_wake_all(struct rgate_ring *ring)
{
	unsigned long mask = ring->handle_mask;
	unsigned int i;

	for_each_set_bit(i, &mask, RGATE_HANDLES_MAX) {
		ring->handle[i]->woken = 0;
		wake_up_interruptible_poll(&ring->handle[i]->wq,
					   EPOLLIN | EPOLLRDNORM);
	}
}

/*
 * From here on the old memory gets nothing more, and everybody is told so.
 * Return: the old memory, with the reference that the ring had.
 */
static struct rgate_mem *rgate_ring_switch(struct rgate_ring *ring,
					   struct rgate_mem *mem)
{
	struct rgate_mem *old;

	spin_lock_bh(&ring->lock);
	old = ring->mem;
	rgate_ring_label(ring, mem, old->generation + 1);
	mem->prod->stats = old->prod->stats;
	ring->mem = mem;
	rgate_writer_init(&ring->w, mem, ring->flags, ring->policy);
	/* Its head was stored before: who sees RETIRED sees the final one. */
	smp_store_release(&old->prod->state, RGATE_STATE_RETIRED);
	rgate_ring_wake_all(ring);
	spin_unlock_bh(&ring->lock);
	return old;
}

/**
 * rgate_ring_resize - other memory for a ring, while it is being filled
 * @ring: the ring
 * @h: who asks
 * @arg: from the user, reserved fields checked; geometry out
 */
int rgate_ring_resize(struct rgate_ring *ring, struct rgate_handle *h,
		      struct rgate_resize *arg)
{
	struct rgate_mem *mem;
	struct rgate_geo geo;
	int err;

	if (arg->flags)
		return -EINVAL;
	err = rgate_geo_init(&geo, arg->slots, arg->slot_size);
	if (err)
		return err;
	mem = rgate_mem_alloc(&geo, ring->node);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	/* Another resize may take its turn at once: hold on to what is told. */
	rgate_mem_get(mem);
	rgate_mem_put(rgate_ring_switch(ring, mem));
	rgate_ring_geometry(mem, h, &arg->geo);
	rgate_mem_put(mem);
	return 0;
}

/**
 * rgate_ring_readable - is there what this handle's consumer waits for?
 * @ring: the ring
 * @h: one of its handles, already on its wait queue
 */
bool rgate_ring_readable(struct rgate_ring *ring, struct rgate_handle *h)
{
	bool ready;

	spin_lock_bh(&ring->lock);
	ready = h->mapped != ring->mem->generation ||
		rgate_ring_reached(ring,
				   READ_ONCE(ring->mem->cons->waiter[h->index].want));
	spin_unlock_bh(&ring->lock);
	return ready;
}

/* The slow part of rgate_ring_wake(): @want has been reached */
void rgate_ring_wake_handle(struct rgate_ring *ring, unsigned int i, u64 want)
{
	struct rgate_handle *h = ring->handle[i];

	if (h->woken == want)
		return;
	/*
	 * Who sleeps got onto the queue before poll took ring->lock to look at
	 * head, or will take it after us and see the new head.
	 */
	if (!waitqueue_active(&h->wq))
		return;
	h->woken = want;
	rgate_writer_count(&ring->w.stats->wakeups, 1);
	trace_rgate_wake(ring->id, i, ring->w.head);
	wake_up_interruptible_poll(&h->wq, EPOLLIN | EPOLLRDNORM);
}
