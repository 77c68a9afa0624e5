// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module as the one who takes frames out of a ring. It goes slot by slot, from the
 * first position on, as long as they are published; slots are only read, credits and
 * head only written. What it needs to know it knows itself.
 */
#include <linux/filter.h>
#include <linux/netdevice.h>
#include <linux/sched/signal.h>
#include <linux/skbuff.h>
#include "alloc.h"
#include "attach.h"
#include "filter.h"
#include "flight.h"
#include "ring.h"
#include "send.h"
#include "send_frame.h"
#include "send_thread.h"
#include "trace.h"

/* Memory in queues that nobody is charged for: as much as of ring that somebody is */
#define RGATE_SEND_BYTES (16U << 20)

/**
 * struct rgate_batch - what became of a few slots, to be counted together
 * @taken: slots
 * @made: skbs, whoever has them now
 * @sent: of those, taken by the device's queue
 * @bytes: of those
 * @filtered: of those made, held back by the filter
 * @refused: of those made, dropped by the queue
 * @length: slots whose length cannot be
 * @flags: slots whose flags, tag or offload cannot be
 */
struct rgate_batch {
	u32 taken;
	u32 made;
	u32 sent;
	u64 bytes;
	u32 filtered;
	u32 refused;
	u32 length;
	u32 flags;
};

/* rgate_send_init_ring - a new ring, with its memory, gets what takes frames out of it */
int rgate_send_init_ring(struct rgate_ring *ring)
{
	const struct rgate_geo *geo = &ring->mem->geo;
	struct rgate_tx *tx = rgate_kzalloc(sizeof(*tx));

	if (!tx)
		return -ENOMEM;
	mutex_init(&tx->lock);
	tx->cap = min(geo->slots, RGATE_SEND_BYTES / geo->slot_size);
	tx->flight = rgate_flight_new(ring, tx->cap / 2);
	if (!tx->flight) {
		kfree(tx);
		return -ENOMEM;
	}
	ring->tx = tx;
	return 0;
}

/* rgate_send_end_ring - nobody finds the ring any more: destructors leave it alone */
void rgate_send_end_ring(struct rgate_ring *ring)
{
	if (ring->tx)
		rgate_flight_leave(ring->tx->flight);
}

/* rgate_send_free_ring - a grace period after rgate_send_end_ring() */
void rgate_send_free_ring(struct rgate_ring *ring)
{
	if (ring->tx)
		mutex_destroy(&ring->tx->lock);
	kfree(ring->tx);
}

/**
 * rgate_send_bind - from here on the ring's frames go to a device
 * @ring: of kind transmit
 * @att: of kind transmit, with its device
 *
 * Return: 0, -EBUSY if they go to one already, or why their thread cannot be.
 */
int rgate_send_bind(struct rgate_ring *ring, struct rgate_att *att)
{
	int err;

	lockdep_assert_held(&rgate_lock);
	if (rcu_access_pointer(ring->tx->att))
		return -EBUSY;
	/* Before a frame can be under way, and if the thread fails: see rgate_ring_destroy(). */
	ring->attached = true;
	rcu_assign_pointer(ring->tx->att, att);
	if (!att->thread)
		return 0;
	err = rgate_thread_start(ring, att->thread);
	if (err)
		RCU_INIT_POINTER(ring->tx->att, NULL);
	return err;
}

/* rgate_send_unbind - no more frames to that device after a grace period */
void rgate_send_unbind(struct rgate_ring *ring)
{
	lockdep_assert_held(&rgate_lock);
	if (!ring->tx)
		return;
	RCU_INIT_POINTER(ring->tx->att, NULL);
	rgate_thread_stop(ring);
}

/* rgate_send_writable - for poll, which waits on the ring's handles already */
bool rgate_send_writable(struct rgate_ring *ring)
{
	struct rgate_tx *tx = ring->tx;

	if (rgate_flight_frames(tx->flight) < tx->cap)
		return true;
	rgate_flight_want(tx->flight);
	return rgate_flight_frames(tx->flight) < tx->cap;
}

/* The slot at @pos, or NULL: it is not published */
static const struct rgate_tx_slot *rgate_send_slot(const struct rgate_writer *w,
						   u64 pos)
{
	const struct rgate_tx_slot *slot;

	slot = (const void *)(w->slots + ((size_t)(pos & w->mask) << w->size_shift));
	/* Pairs with the release by which the user publishes a slot. */
	if (smp_load_acquire(&slot->seq) != rgate_writer_lap(w, pos))
		return NULL;
	return slot;
}

/* rgate_send_waiting - is there a frame to be taken? Somebody else may be taking it. */
bool rgate_send_waiting(const struct rgate_ring *ring)
{
	return rgate_send_slot(&ring->w, READ_ONCE(ring->w.head));
}

static void rgate_send_skb(struct sk_buff *skb, const struct rgate_att_cfg *cfg,
			   struct rgate_batch *b)
{
	u32 len = skb->len;
	int err;

	if (cfg->prog && !rgate_filter_run(cfg->prog, skb, 0)) {
		b->filtered++;
		kfree_skb(skb);
		return;
	}
	err = dev_queue_xmit(skb);
	if (unlikely(net_xmit_eval(err))) {
		b->refused++;
		return;
	}
	b->sent++;
	b->bytes += len;
}

/* At most @n slots from @pos on. Return: 0, or why it ended before. */
static int rgate_send_slots(struct rgate_ring *ring, const struct rgate_att *att,
			    u64 pos, u32 n, struct rgate_batch *b)
{
	const struct rgate_att_cfg *cfg = rcu_dereference_bh(att->cfg);
	const struct rgate_writer *w = &ring->w;
	const struct rgate_tx_slot *slot;
	struct sk_buff *skb;

	for (; b->taken < n; b->taken++) {
		slot = rgate_send_slot(w, pos + b->taken);
		if (!slot)
			break;
		skb = rgate_send_frame(slot, att->dev, w->room);
		if (!IS_ERR_OR_NULL(skb)) {
			rgate_flight_own(ring->tx->flight, skb);
			b->made++;
			rgate_send_skb(skb, cfg, b);
			continue;
		}
		if (skb == ERR_PTR(-ENOBUFS))
			return -ENOBUFS;
		if (skb == ERR_PTR(-EMSGSIZE))
			b->length++;
		else if (skb)
			b->flags++;
	}
	return 0;
}

static void rgate_send_count_att(const struct rgate_att *att,
				 const struct rgate_batch *b)
{
	struct rgate_att_pcpu *p = this_cpu_ptr(att->stats);
	u64_stats_t *v = p->v - RGATE_ATT_FIRST;

	u64_stats_update_begin(&p->sync);
	u64_stats_add(&v[RGATE_A_ATT_STATS_SEEN], b->made + b->length + b->flags);
	u64_stats_add(&v[RGATE_A_ATT_STATS_DELIVERED], b->sent);
	u64_stats_add(&v[RGATE_A_ATT_STATS_BYTES], b->bytes);
	u64_stats_add(&v[RGATE_A_ATT_STATS_FILTERED], b->filtered);
	u64_stats_add(&v[RGATE_A_ATT_STATS_REFUSED], b->refused);
	u64_stats_add(&v[RGATE_A_ATT_STATS_BAD_LENGTH], b->length);
	u64_stats_add(&v[RGATE_A_ATT_STATS_BAD_FLAGS], b->flags);
	u64_stats_update_end(&p->sync);
}

/* Tells the user what was taken, and gives a whole batch back. */
static void rgate_send_return(struct rgate_ring *ring, const struct rgate_batch *b)
{
	struct rgate_writer *w = &ring->w;
	u64 lap = rgate_writer_lap(w, w->head), head = w->head + b->taken;

	lockdep_assert_held(&ring->tx->lock);
	spin_lock(&ring->lock);
	rgate_writer_count(&w->stats->delivered, b->sent);
	rgate_writer_count(&w->stats->bytes, b->bytes);
	rgate_writer_count(&w->stats->dropped_fault, b->length + b->flags);
	rgate_writer_count(&w->stats->dropped_full, b->refused);
	if (!(head & (RGATE_BATCH - 1))) {
		u64 *credit = &w->credits[((head - 1) & w->mask) >> RGATE_BATCH_SHIFT];

		/* The slots were read before: who acquires this may write them anew. */
		smp_store_release(credit, lap);
	}
	/* The same for each slot below it. */
	smp_store_release(&w->prod->head, head);
	WRITE_ONCE(w->head, head);
	spin_unlock(&ring->lock);
}

/*
 * Up to @n slots, and no further than to the end of the batch. Bottom halves are off:
 * what veth and the like receive of it waits until the batch is through.
 */
static int rgate_send_batch(struct rgate_ring *ring, u32 n, struct rgate_send *arg)
{
	struct rgate_tx *tx = ring->tx;
	u32 under_way = rgate_flight_frames(tx->flight);
	struct rgate_batch b = {};
	struct rgate_att *att;
	int err = -ENOTCONN;

	lockdep_assert_held(&tx->lock);
	n = min_t(u32, n, RGATE_BATCH - (ring->w.head & (RGATE_BATCH - 1)));
	if (!rgate_send_slot(&ring->w, ring->w.head))
		n = 0;
	else if (under_way >= tx->cap)
		return -EAGAIN;
	n = min(n, tx->cap - min(under_way, tx->cap));
	rcu_read_lock_bh();
	att = rcu_dereference_bh(tx->att);
	if (!att)
		goto unlock;
	err = -ENETDOWN;
	if (!(READ_ONCE(att->dev->flags) & IFF_UP))
		goto unlock;
	rgate_flight_begin(tx->flight, n);
	err = rgate_send_slots(ring, att, ring->w.head, n, &b);
	rgate_flight_undo(tx->flight, n - b.made);
	rgate_send_count_att(att, &b);
	trace_rgate_send(ring->id, ring->w.head, att->ifindex, b.taken, b.sent,
			 b.filtered, b.refused, b.length + b.flags);
	if (b.taken)
		rgate_send_return(ring, &b);
unlock:
	rcu_read_unlock_bh();
	arg->taken += b.taken;
	arg->sent += b.sent;
	return err ? err : b.taken;
}

/**
 * rgate_send_turn - take a batch, if nobody else does
 * @ring: of kind transmit
 *
 * Return: slots taken, or why there is no use in looking for them; -EBUSY: somebody
 * else does.
 */
int rgate_send_turn(struct rgate_ring *ring)
{
	struct rgate_send done = {};
	int n;

	if (!mutex_trylock(&ring->tx->lock))
		return -EBUSY;
	n = rgate_send_batch(ring, RGATE_BATCH, &done);
	mutex_unlock(&ring->tx->lock);
	return done.taken ?: n;
}

/**
 * rgate_send - take frames and send them
 * @ring: of kind transmit
 * @arg: from the user, input checked; what was done
 *
 * Return: 0, or why nothing was taken.
 */
int rgate_send(struct rgate_ring *ring, struct rgate_send *arg)
{
	u32 most = min(arg->budget ?: U32_MAX, ring->mem->geo.slots);
	int done;

	if (mutex_lock_interruptible(&ring->tx->lock))
		return -EINTR;
	do {
		done = rgate_send_batch(ring, most - arg->taken, arg);
		cond_resched();
		if (done > 0 && signal_pending(current))
			done = -EINTR;
	} while (done > 0 && arg->taken < most);
	arg->head = ring->w.head;
	mutex_unlock(&ring->tx->lock);
	rgate_thread_kicked(ring);
	arg->in_flight = rgate_flight_frames(ring->tx->flight);
	return arg->taken ? 0 : min(done, 0);
}
