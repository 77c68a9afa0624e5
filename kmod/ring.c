// SPDX-License-Identifier: GPL-2.0-only
#include <linux/bits.h>
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/nodemask.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include "alloc.h"
#include "attach.h"
#include "dmabuf.h"
#include "event.h"
#include "ring.h"
#include "send.h"
#include "wake.h"

/* Registry and attachments, see ring.h */
DEFINE_MUTEX(rgate_lock);
DEFINE_XARRAY_ALLOC1(rgate_rings);

struct workqueue_struct *rgate_wq;

/* Where the search for the next number begins; under the lock of rgate_rings */
static u32 rgate_ring_next_id;

/* Rings that wait for a grace period, their memory still charged */
static atomic_t rgate_rings_dying = ATOMIC_INIT(0);

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
	if (ring->flags & RGATE_RING_TRANSMIT) {
		prod->features = RGATE_FEAT_TRANSMIT;
		/* Nobody looks for frames before there is a thread that does. */
		prod->need_wakeup = 1;
	} else if (ring->policy == RGATE_POLICY_OVERWRITE) {
		prod->features |= RGATE_FEAT_OVERWRITE;
	} else {
		prod->features |= RGATE_FEAT_OWNERS;
		prod->owners_off = mem->geo.owners_off;
	}
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

/* Users write the slots, one frame each, and wait where there is no free one. */
static bool rgate_ring_transmit_valid(const struct rgate_create *arg)
{
	return !(arg->flags & RGATE_RING_TRANSMIT) ||
	       (arg->flags & RGATE_RING_RW_SLOTS &&
		!(arg->flags & (RGATE_RING_CHAIN | RGATE_RING_COARSE)) &&
		arg->policy == RGATE_POLICY_DROP);
}

static int rgate_ring_check(const struct rgate_create *arg,
			    struct rgate_geo *geo)
{
	if (arg->flags & ~RGATE_RING_FLAGS || !rgate_ring_transmit_valid(arg) ||
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

/* Reserves a number: nobody finds the ring by it yet. */
static int rgate_ring_register(struct rgate_ring *ring)
{
	int err;

	ring->cookie = rgate_cookie_new();
	err = rgate_alloc_fails() ? -ENOMEM :
		xa_alloc_cyclic(&rgate_rings, &ring->id, NULL, RGATE_ID_LIMIT,
				&rgate_ring_next_id, GFP_KERNEL_ACCOUNT);
	/* 1: it began anew */
	return min(err, 0);
}

static void rgate_ring_free(struct rgate_ring *ring)
{
	lockdep_assert_not_held(&rgate_lock);
	cancel_delayed_work_sync(&ring->event_work);
	rgate_send_free_ring(ring);
	rgate_mem_put(ring->mem);
	mutex_destroy(&ring->export_lock);
	kfree(ring);
}

static void rgate_ring_free_work(struct work_struct *work)
{
	rgate_ring_free(container_of(to_rcu_work(work), struct rgate_ring,
				     free));
	atomic_dec(&rgate_rings_dying);
}

/* Return: whether rings were freed that had been waiting for it. */
static bool rgate_ring_settle(void)
{
	if (!atomic_read(&rgate_rings_dying))
		return false;
	/* Their grace periods are over then, and the work is queued. */
	rcu_barrier();
	flush_workqueue(rgate_wq);
	return true;
}

/*
 * Who closes a ring and makes another one must not meet its own limit because
 * the first is not quite gone.
 */
static struct rgate_mem *rgate_ring_mem_new(const struct rgate_geo *geo,
					    int node)
{
	struct rgate_mem *mem = rgate_mem_alloc(geo, node);

	lockdep_assert_not_held(&rgate_lock);
	if (mem == ERR_PTR(-ENOBUFS) && rgate_ring_settle())
		mem = rgate_mem_alloc(geo, node);
	return mem;
}

/**
 * rgate_ring_create - a ring without handles
 * @arg: from the user, reserved fields checked
 * @net: the caller's network namespace, which stands as long as the call
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
	mutex_init(&ring->export_lock);
	rgate_event_init(ring);
	INIT_RCU_WORK(&ring->free, rgate_ring_free_work);
	ring->net = net;
	ring->flags = arg->flags;
	ring->policy = arg->policy;
	ring->clock = arg->clock;
	ring->odd_clock = arg->clock != RGATE_CLOCK_MONOTONIC ||
			  arg->flags & RGATE_RING_COARSE;
	ring->node = arg->node;
	ring->uid = current_euid();

	ring->mem = rgate_ring_mem_new(&geo, arg->node);
	if (IS_ERR(ring->mem)) {
		err = PTR_ERR(ring->mem);
		goto free_ring;
	}
	if (ring->flags & RGATE_RING_TRANSMIT) {
		err = rgate_send_init_ring(ring);
		if (err)
			goto put_mem;
	}
	err = rgate_ring_register(ring);
	if (err)
		goto free_tx;
	if (arg->name[0])
		memcpy(ring->name, arg->name, RGATE_NAME_LEN);
	else
		snprintf(ring->name, RGATE_NAME_LEN, "ring%u", ring->id);
	rgate_ring_label(ring, ring->mem, 1);
	rgate_writer_init(&ring->w, ring->mem, ring->flags, ring->policy);
	return ring;

free_tx:
	rgate_send_end_ring(ring);
	rgate_send_free_ring(ring);
put_mem:
	rgate_mem_put(ring->mem);
free_ring:
	mutex_destroy(&ring->export_lock);
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

/**
 * rgate_ring_find_ident - a ring as a request names it
 * @net: only its own rings are seen
 * @ident: number and cookie
 *
 * Return: the ring, valid while the caller holds rgate_lock; -ENOENT, or
 * -ESTALE if the number is another ring's by now.
 */
struct rgate_ring *rgate_ring_find_ident(struct net *net,
					 const struct rgate_ident *ident)
{
	struct rgate_ring *ring = rgate_ring_find(net, ident->id);

	if (!ring)
		return ERR_PTR(-ENOENT);
	return ring->cookie == ident->cookie ? ring : ERR_PTR(-ESTALE);
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

/*
 * A handle was given, or closed. Users see it in the producer area and so can tell
 * whether who holds a batch is still there; the count that matters is ours.
 */
static void rgate_ring_turn(struct rgate_ring *ring, unsigned int i)
{
	struct rgate_prod *prod = ring->mem->prod;

	lockdep_assert_held(&ring->lock);
	WRITE_ONCE(prod->life[i], ++ring->life[i]);
	if (ring->life[i] & 1)
		return;
	/* Who acquires the count finds that life over: see lib/ring/claim.c. */
	smp_store_release(&prod->closed, ++ring->closed);
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

	rgate_wake_begin(h, ring);
	mutex_lock(&rgate_lock);
	spin_lock_bh(&ring->lock);
	if (~ring->handle_mask) {
		h->index = ffz(ring->handle_mask);
		h->mapped = ring->mem->generation;
		ring->handle[h->index] = h;
		ring->handle_mask |= BIT(h->index);
		rgate_ring_turn(ring, h->index);
		err = 0;
	}
	spin_unlock_bh(&ring->lock);
	/* The place in the registry was reserved, so this cannot fail. */
	if (!err && !ring->nhandles++)
		xa_store(&rgate_rings, ring->id, ring, GFP_KERNEL);
	mutex_unlock(&rgate_lock);
	return err;
}

/*
 * The ring lets go of memory: nobody can ask for its dma-bufs any more. Who had them has them
 * still, and the memory with them.
 */
static void rgate_ring_unexport(struct rgate_ring *ring, struct rgate_mem *mem)
{
	unsigned int i;

	mutex_lock(&ring->export_lock);
	for (i = 0; i < RGATE_AREA_COUNT; i++) {
		if (mem->exported[i])
			fput(mem->exported[i]);
		mem->exported[i] = NULL;
	}
	mutex_unlock(&ring->export_lock);
}

static void rgate_ring_destroy(struct rgate_ring *ring)
{
	rgate_send_end_ring(ring);
	rgate_ring_unexport(ring, ring->mem);
	if (!ring->attached) {
		rgate_ring_free(ring);
		return;
	}
	/*
	 * Receive hooks may have found the ring before it left its attachments, and
	 * frames under way before that.
	 * One grace period serves all the rings of a process that dies.
	 */
	atomic_inc(&rgate_rings_dying);
	queue_rcu_work(rgate_wq, &ring->free);
}

/*
 * Nobody wakes the handle any more; consumers asleep may have to go on where its own
 * left off.
 */
static void rgate_ring_clear_handle(struct rgate_ring *ring,
				    struct rgate_handle *h)
{
	spin_lock_bh(&ring->lock);
	ring->handle[h->index] = NULL;
	ring->handle_mask &= ~BIT(h->index);
	ring->polled &= ~BIT(h->index);
	rgate_ring_turn(ring, h->index);
	rgate_ring_wake_all(ring);
	spin_unlock_bh(&ring->lock);
	rgate_wake_end(h);
}

/**
 * rgate_ring_del_handle - a file is closed; the ring ends with its last one
 * @ring: the ring
 * @h: its handle, or NULL for a ring that never had one
 */
void rgate_ring_del_handle(struct rgate_ring *ring, struct rgate_handle *h)
{
	bool last;

	if (h)
		rgate_ring_clear_handle(ring, h);
	mutex_lock(&rgate_lock);
	if (h)
		ring->nhandles--;
	last = !ring->nhandles;
	if (last) {
		xa_erase(&rgate_rings, ring->id);
		rgate_att_drop_ring(ring);
		rgate_event_ring_gone(ring);
		/* The namespace may go before the ring is freed. */
		ring->net = NULL;
	}
	mutex_unlock(&rgate_lock);
	if (last)
		rgate_ring_destroy(ring);
}

/* What a user needs to map the memory; @h: whose wait word */
void rgate_ring_geometry(const struct rgate_geo *geo, u32 generation,
			 const struct rgate_handle *h,
			 struct rgate_geometry *out)
{
	out->slots = geo->slots;
	out->slot_size = geo->slot_size;
	out->generation = generation;
	out->handle = h->index;
	out->map_len = geo->map_len;
	out->cons_off = geo->cons_off;
	out->credits_off = geo->credits_off;
	out->slots_off = geo->slots_off;
}

/* Takes no reference on the memory, whose last one might have to be put. */
void rgate_ring_look(struct rgate_ring *ring, struct rgate_ring_now *now)
{
	spin_lock_bh(&ring->lock);
	now->geo = ring->mem->geo;
	now->generation = ring->mem->generation;
	now->head = ring->w.head;
	now->stats = ring->w.prod->stats;
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
	memcpy(mem->prod->life, ring->life, sizeof(ring->life));
	mem->prod->closed = ring->closed;
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
	struct rgate_mem *mem, *old;
	struct rgate_geo geo;
	int err;

	if (arg->flags)
		return -EINVAL;
	/* What is in there and not yet taken is not ours to lose. */
	if (ring->tx)
		return -EOPNOTSUPP;
	err = rgate_geo_init(&geo, arg->slots, arg->slot_size);
	if (err)
		return err;
	mem = rgate_ring_mem_new(&geo, ring->node);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	/* Another resize may take its turn at once: hold on to what is told. */
	rgate_mem_get(mem);
	old = rgate_ring_switch(ring, mem);
	rgate_ring_unexport(ring, old);
	rgate_mem_put(old);
	rgate_ring_geometry(&mem->geo, mem->generation, h, &arg->geo);
	rgate_mem_put(mem);
	return 0;
}

/**
 * rgate_ring_export - the dma-buf of an area, made when it is first asked for
 * @ring: the ring
 * @area: checked
 * @generation: out, of the memory
 *
 * Return: its file, with a reference for the caller, or an ERR_PTR.
 */
struct file *rgate_ring_export(struct rgate_ring *ring, enum rgate_ring_area area,
			       u32 *generation)
{
	struct rgate_mem *mem;
	struct file *buf;

	if (mutex_lock_interruptible(&ring->export_lock))
		return ERR_PTR(-EINTR);
	/* Under the lock: who resizes comes here after it, and finds what was made of this. */
	mem = rgate_ring_mem_get(ring);
	buf = mem->exported[area];
	if (!buf) {
		buf = rgate_dmabuf_new(mem, area);
		if (!IS_ERR(buf))
			mem->exported[area] = buf;
	}
	if (!IS_ERR(buf))
		get_file(buf);
	*generation = mem->generation;
	mutex_unlock(&ring->export_lock);
	rgate_mem_put(mem);
	return buf;
}

/* Was a handle closed since this one's consumer, who asked for that, looked? */
static bool rgate_ring_closed_since(const struct rgate_ring *ring,
				    const struct rgate_waiter *waiter)
{
	u64 seen = READ_ONCE(waiter->closed);

	return seen && seen - 1 != ring->closed && READ_ONCE(waiter->want);
}

/* rgate_ring_polled - somebody sleeps on this handle, who polled before it had a ring */
void rgate_ring_polled(struct rgate_ring *ring, struct rgate_handle *h)
{
	spin_lock_bh(&ring->lock);
	ring->polled |= BIT(h->index);
	/* Another thread may have had the ring by now, found it empty, and not polled again. */
	rgate_ring_wake(ring);
	spin_unlock_bh(&ring->lock);
}

/**
 * rgate_ring_readable - is there what this handle's consumer waits for?
 * @ring: the ring
 * @h: one of its handles, already on its wait queue
 */
bool rgate_ring_readable(struct rgate_ring *ring, struct rgate_handle *h)
{
	const struct rgate_waiter *waiter;
	bool ready;

	spin_lock_bh(&ring->lock);
	/*
	 * The lock tells the next frame to look for wait words; this one, and those
	 * before it, are seen here.
	 */
	ring->polled |= BIT(h->index);
	waiter = &ring->mem->cons->waiter[h->index];
	ready = h->mapped != ring->mem->generation ||
		rgate_ring_reached(ring, READ_ONCE(waiter->want)) ||
		rgate_ring_closed_since(ring, waiter);
	spin_unlock_bh(&ring->lock);
	return ready;
}

int rgate_ring_init(void)
{
	rgate_wq = alloc_workqueue("ringgate", WQ_UNBOUND, 0);
	return rgate_wq ? 0 : -ENOMEM;
}

void rgate_ring_exit(void)
{
	/* Grace periods over, their work queued; then the work itself. */
	rcu_barrier();
	destroy_workqueue(rgate_wq);
}
