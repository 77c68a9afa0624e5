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
	w->prod = mem->prod;
	w->credits = mem->credits;
	w->slots = mem->slots;
}

static u64 rgate_writer_lap(const struct rgate_writer *w, u64 pos)
{
	return (pos >> w->lap_shift) + 1;
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

	if (smp_load_acquire(credit) != lap - 1) {
		if (!w->overwrite)
			return false;
		rgate_writer_count(w, overwritten, RGATE_BATCH);
	}
	w->limit = w->head + RGATE_BATCH;
	return true;
}

/* Readers of an overwritten slot see it change before they see it wrong. */
static void rgate_writer_busy(struct rgate_writer *w,
			      const struct rgate_span *span)
{
	u32 i;

	for (i = 0; i < span->n; i++)
		WRITE_ONCE(rgate_writer_slot(w, span, i)->seq, RGATE_SEQ_BUSY);
	/* Pairs with the fence in rgate_consumer_intact(). */
	smp_wmb();
}

static void rgate_writer_publish(struct rgate_writer *w,
				 const struct rgate_span *span)
{
	u64 lap = rgate_writer_lap(w, span->pos);
	u32 i;

	/* In order, so that a slot's successors are never seen before it. Each
	 * release pairs with the acquire of rgate_consumer_ready(). */
	for (i = 0; i < span->n; i++)
		smp_store_release(&rgate_writer_slot(w, span, i)->seq, lap);
	w->head += span->n;
	smp_store_release(&w->prod->head, w->head);
}

/* Fill the rest of the batch, so that the chain stands in one consumer's hand. */
static void rgate_writer_pad(struct rgate_writer *w)
{
	struct rgate_span span = { .pos = w->head, .n = w->limit - w->head };
	struct rgate_slot *slot;
	u32 i;

	if (w->overwrite)
		rgate_writer_busy(w, &span);
	for (i = 0; i < span.n; i++) {
		slot = rgate_writer_slot(w, &span, i);
		memset((u8 *)slot + sizeof(slot->seq), 0,
		       sizeof(*slot) - sizeof(slot->seq));
		slot->flags = RGATE_SLOT_PAD;
		slot->chain_cnt = 1;
	}
	rgate_writer_publish(w, &span);
	rgate_writer_count(w, padded, span.n);
}

/**
 * rgate_writer_reserve - room for a frame
 * @w: the writer, its ring's lock held
 * @len: bytes to store; more than fit are the caller's to cut
 * @span: out
 *
 * Return: false if the ring is full.
 */
bool rgate_writer_reserve(struct rgate_writer *w, u32 len,
			  struct rgate_span *span)
{
	u32 n = 1;

	if (unlikely(len > w->room) && w->chain)
		n = min_t(u32, DIV_ROUND_UP(len, w->room), RGATE_CHAIN_MAX);
	if (unlikely(w->limit - w->head < n)) {
		if (w->head != w->limit)
			rgate_writer_pad(w);
		if (!rgate_writer_refill(w))
			return false;
	}
	span->pos = w->head;
	span->n = n;
	if (w->overwrite)
		rgate_writer_busy(w, span);
	return true;
}

/**
 * rgate_writer_commit - publish a filled span
 * @w: the writer, its ring's lock held since the reservation
 * @span: from rgate_writer_reserve()
 * @stored: bytes of the frame in it
 */
void rgate_writer_commit(struct rgate_writer *w, const struct rgate_span *span,
			 u32 stored)
{
	rgate_writer_publish(w, span);
	rgate_writer_count(w, delivered, 1);
	rgate_writer_count(w, bytes, stored);
	if (span->n > 1)
		rgate_writer_count(w, chained, 1);
	w->gap = 0;
}
