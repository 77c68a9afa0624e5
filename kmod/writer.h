/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The writer of slots: the one place that knows how frames get into a ring.
 * What a frame is made of (skb, XDP buffer, ...) is its caller's matter:
 *
 *	n = rgate_writer_reserve()	room for a frame: n slots from head on
 *	rgate_writer_slot()		fill each: data and header
 *	rgate_writer_commit()		publish them in order
 *
 * The caller holds the ring's lock over all three. What is not committed is
 * simply reserved again.
 */
#ifndef RGATE_WRITER_H
#define RGATE_WRITER_H

#include <linux/compiler.h>
#include <linux/types.h>
#include <asm/barrier.h>
#include <ringgate/ring.h>

struct rgate_mem;

/**
 * struct rgate_writer - the producer's own state; nothing in it is user memory
 * @head: next position to fill
 * @limit: positions before this are known to be free; a batch boundary
 * @lap: what the slots before @limit get as their seq; a batch lies in one lap
 * @mask: slots - 1
 * @room: bytes of a frame that fit a slot
 * @easy: frames from 1 to this many bytes need no more than a free slot
 * @gap: frames lost since the last one delivered
 * @lap_shift: log2(slots)
 * @size_shift: log2(slot size)
 * @chain: long frames take several slots
 * @overwrite: full is not a state
 * @full: the last reservation found no room
 * @prod: producer area, written and never relied on
 * @stats: in there
 * @cons: consumer area, for the wait words
 * @credits: users' credit words, each read once a batch
 * @slots: slots, only ever written
 */
struct rgate_writer {
	u64 head;
	u64 limit;
	u64 lap;
	u32 mask;
	u32 room;
	u32 easy;
	u32 gap;
	u8 lap_shift;
	u8 size_shift;
	bool chain;
	bool overwrite;
	bool full;
	struct rgate_prod *prod;
	struct rgate_stats *stats;
	const struct rgate_cons *cons;
	u64 *credits;
	u8 *slots;
};

void rgate_writer_init(struct rgate_writer *w, struct rgate_mem *mem,
		       u32 flags, u32 policy);
u32 rgate_writer_reserve_slow(struct rgate_writer *w, u32 len);
void rgate_writer_publish(struct rgate_writer *w, u32 n);

/* rgate_writer_slot - the @i-th slot reserved; the frame goes behind its header */
static inline struct rgate_slot *
rgate_writer_slot(const struct rgate_writer *w, u32 i)
{
	return (struct rgate_slot *)
		(w->slots + ((size_t)((w->head + i) & w->mask) << w->size_shift));
}

/* rgate_writer_count - add to a counter that users see; one writer at a time */
static inline void rgate_writer_count(__u64 *counter, u64 n)
{
	WRITE_ONCE(*counter, *counter + n);
}

static inline u64 rgate_writer_lap(const struct rgate_writer *w, u64 pos)
{
	return (pos >> w->lap_shift) + 1;
}

/* rgate_writer_easy - does a frame of @len bytes get one free slot, and no questions? */
static inline bool rgate_writer_easy(const struct rgate_writer *w, u32 len)
{
	return w->head != w->limit && len - 1 < w->easy;
}

/**
 * rgate_writer_reserve - room for a frame
 * @w: the writer, its ring's lock held
 * @len: bytes to store; more than fit are the caller's to cut
 *
 * Return: how many slots it gets, all in one batch; 0 if the ring is full.
 */
static inline u32 rgate_writer_reserve(struct rgate_writer *w, u32 len)
{
	if (likely(rgate_writer_easy(w, len)))
		return 1;
	return rgate_writer_reserve_slow(w, len);
}

/**
 * rgate_writer_commit_one - publish one filled slot
 * @w: the writer, its ring's lock held since the reservation
 * @slot: rgate_writer_slot(w, 0)
 * @stored: bytes of the frame in it
 */
static inline void rgate_writer_commit_one(struct rgate_writer *w,
					   struct rgate_slot *slot, u32 stored)
{
	struct rgate_prod *prod = w->prod;
	u64 head = w->head + 1;

	/* Pairs with the acquire of rgate_consumer_ready(). */
	smp_store_release(&slot->seq, w->lap);
	w->head = head;
	/* Who acquires head sees the slots before it. */
	smp_store_release(&prod->head, head);
	rgate_writer_count(&prod->stats.delivered, 1);
	rgate_writer_count(&prod->stats.bytes, stored);
	w->gap = 0;
}

/**
 * rgate_writer_commit - publish filled slots
 * @w: the writer, its ring's lock held since the reservation
 * @n: from rgate_writer_reserve()
 * @stored: bytes of the frame in them
 */
static inline void rgate_writer_commit(struct rgate_writer *w, u32 n, u32 stored)
{
	if (n == 1) {
		rgate_writer_commit_one(w, rgate_writer_slot(w, 0), stored);
		return;
	}
	rgate_writer_publish(w, n);
	rgate_writer_count(&w->stats->chained, 1);
	rgate_writer_count(&w->stats->delivered, 1);
	rgate_writer_count(&w->stats->bytes, stored);
	w->gap = 0;
}

#endif
