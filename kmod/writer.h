/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The writer of slots: the one place that knows how frames get into a ring.
 * What a frame is made of (skb, XDP buffer, ...) is its caller's matter:
 *
 *	rgate_writer_reserve()		room for a frame, as a span of slots
 *	rgate_writer_slot()		fill each: data, then header
 *	rgate_writer_commit()		publish them in order
 *
 * The caller holds the ring's lock over all three. A span that is not committed
 * is simply reserved again.
 */
#ifndef RGATE_WRITER_H
#define RGATE_WRITER_H

#include <linux/types.h>
#include <ringgate/ring.h>

struct rgate_mem;

/**
 * struct rgate_writer - the producer's own state; nothing in it is user memory
 * @head: next position to fill
 * @limit: positions before this are known to be free; a batch boundary
 * @mask: slots - 1
 * @room: bytes of a frame that fit a slot
 * @gap: frames lost since the last one delivered
 * @lap_shift: log2(slots)
 * @size_shift: log2(slot size)
 * @chain: long frames take several slots
 * @overwrite: full is not a state
 * @full: the last reservation found no room
 * @prod: producer area, written and never relied on
 * @credits: users' credit words, each read once a batch
 * @slots: slots, only ever written
 */
struct rgate_writer {
	u64 head;
	u64 limit;
	u32 mask;
	u32 room;
	u32 gap;
	u8 lap_shift;
	u8 size_shift;
	bool chain;
	bool overwrite;
	bool full;
	struct rgate_prod *prod;
	u64 *credits;
	u8 *slots;
};

/**
 * struct rgate_span - slots reserved for one frame
 * @pos: the first one's position
 * @n: how many, 1 to RGATE_CHAIN_MAX, all in one batch
 */
struct rgate_span {
	u64 pos;
	u32 n;
};

void rgate_writer_init(struct rgate_writer *w, struct rgate_mem *mem,
		       u32 flags, u32 policy);
bool rgate_writer_reserve(struct rgate_writer *w, u32 len,
			  struct rgate_span *span);
void rgate_writer_commit(struct rgate_writer *w, const struct rgate_span *span,
			 u32 stored);

/* rgate_writer_slot - slot @i of a span; the frame goes behind its header */
static inline struct rgate_slot *
rgate_writer_slot(const struct rgate_writer *w, const struct rgate_span *span,
		  u32 i)
{
	return (struct rgate_slot *)
		(w->slots + ((size_t)((span->pos + i) & w->mask) << w->size_shift));
}

/* rgate_writer_count - add to a counter that users see; one writer at a time */
#define rgate_writer_count(w, field, n) \
	WRITE_ONCE((w)->prod->stats.field, (w)->prod->stats.field + (n))

#endif
