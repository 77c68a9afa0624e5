// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/barrier.h>
#include "mem.h"
#include "writer.h"

/**
 * rgate_writer_init - begin at position 0 of fresh memory
 * @w: the writer; its gap and its full state go on over a resize
 * @mem: memory of the ring
 * @flags: RGATE_RING_*
 * @policy: enum rgate_policy
 */
void rgate_writer_init(struct rgate_writer *w, struct rgate_mem *mem,
		       u32 flags, u32 policy)
{
	w->head = 0;
	w->limit = 0;
	w->mask = mem->geo.slots - 1;
	w->room = mem->geo.slot_size - RGATE_SLOT_HDR;
	w->lap_shift = mem->geo.lap_shift;
	w->size_shift = mem->geo.size_shift;
	w->chain = flags & RGATE_RING_CHAIN;
	w->overwrite = policy == RGATE_POLICY_OVERWRITE;
	/* Marking slots busy, or chaining, is for the slow path. */
	w->easy = w->overwrite ? 0 : w->room;
	w->prod = mem->prod;
	w->stats = &mem->prod->stats;
	w->cons = mem->cons;
	w->credits = mem->credits;
	w->slots = mem->slots;
}

/*
 * At a batch boundary: may the next batch be filled? Its credit word is the
 * only user memory that counts here, it is read once, and the worst that a
 * wrong one can do is to lose that user's own frames. The acquire pairs with
 * the release by which the consumer returned the batch: its reads of the old
 * frames are over before they are overwritten.
 */
static bool rgate_writer_refill(struct rgate_writer *w)
{
	u64 *credit = &w->credits[(w->head & w->mask) >> RGATE_BATCH_SHIFT];
	u64 lap = rgate_writer_lap(w, w->head);

	/* See above for what it pairs with. */
	if (smp_load_acquire(credit) != lap - 1) {
		if (!w->overwrite)
			return false;
		rgate_writer_count(&w->stats->overwritten, RGATE_BATCH);
	}
	w->limit = w->head + RGATE_BATCH;
	w->lap = lap;
	return true;
}

/* Readers of an overwritten slot see it change before they see it wrong. */
static void rgate_writer_busy(struct rgate_writer *w, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		WRITE_ONCE(rgate_writer_slot(w, i)->seq, RGATE_SEQ_BUSY);
	/* Pairs with the fence in rgate_consumer_intact(). */
	smp_wmb();
}

/* rgate_writer_publish - make several slots visible */
void rgate_writer_publish(struct rgate_writer *w, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		/*
		 * In order, so that a slot's successors are never seen before
		 * it. Pairs with the acquire of rgate_consumer_ready().
		 */
		smp_store_release(&rgate_writer_slot(w, i)->seq, w->lap);
	}
	w->head += n;
	/* Who acquires head sees the slots before it. */
	smp_store_release(&w->prod->head, w->head);
}

/* Fill the rest of the batch, so that the chain stands in one consumer's hand. */
static void rgate_writer_pad(struct rgate_writer *w)
{
	u32 n = w->limit - w->head, i;
	struct rgate_slot *slot;

	if (w->overwrite)
		rgate_writer_busy(w, n);
	for (i = 0; i < n; i++) {
		slot = rgate_writer_slot(w, i);
		memset((u8 *)slot + sizeof(slot->seq), 0,
		       sizeof(*slot) - sizeof(slot->seq));
		slot->flags = RGATE_SLOT_PAD;
		slot->chain_cnt = 1;
	}
	rgate_writer_publish(w, n);
	rgate_writer_count(&w->stats->padded, n);
}

/* What rgate_writer_reserve() does where it is not a matter of one free slot. */
u32 rgate_writer_reserve_slow(struct rgate_writer *w, u32 len)
{
	u32 n = 1;

	if (len > w->room && w->chain)
		n = min_t(u32, DIV_ROUND_UP(len, w->room), RGATE_CHAIN_MAX);
	if (w->limit - w->head < n) {
		if (w->head != w->limit)
			rgate_writer_pad(w);
		if (!rgate_writer_refill(w))
			return 0;
	}
	if (w->overwrite)
		rgate_writer_busy(w, n);
	return n;
}
