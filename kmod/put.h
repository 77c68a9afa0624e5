/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A frame into a ring, whatever it is made of. Who includes this is one kind of
 * source (an skb, an XDP buffer) and defines the four functions below; all of it
 * becomes one function there, without a call for each part.
 */
#ifndef RGATE_PUT_H
#define RGATE_PUT_H

#include <linux/timekeeping.h>
#include "event.h"
#include "frame.h"
#include "parse.h"
#include "ring.h"
#include "trace.h"
#include "wake.h"

/* RGATE_SLOT_* that the source knows */
static u32 rgate_frame_flags(const struct rgate_frame *f);
static u32 rgate_frame_ifindex(const struct rgate_frame *f);
/* Copy bytes of the frame, counted from its link-layer header. */
static int rgate_frame_copy(const struct rgate_frame *f, u32 off, u8 *to,
			    u32 len);
/*
 * What the header says of the frame as such. Every field is stored once and
 * none is read back: the slot may be mapped writable.
 */
static void rgate_frame_describe(struct rgate_slot *slot,
				 const struct rgate_frame *f, u32 flags);

/* Headers of a frame that lies in pieces are looked for this far in. */
#define RGATE_HEADERS 192

static inline u64 rgate_clock_ns(u32 clock)
{
	if (clock == RGATE_CLOCK_TAI)
		return ktime_get_clocktai_ns();
	if (clock == RGATE_CLOCK_REALTIME)
		return ktime_get_real_ns();
	return ktime_get_ns();
}

/*
 * The last cache line, before the frame is copied over its beginning: behind
 * the frame's end it is then zero, rather than an older frame's bytes.
 */
static inline void rgate_slot_clear_last(u8 *data, u32 len)
{
	u64 *line = (u64 *)(data + (len & ~(RGATE_SLOT_HDR - 1)));
	unsigned int i;

	if (len & (RGATE_SLOT_HDR - 1))
		for (i = 0; i < RGATE_SLOT_HDR / sizeof(*line); i++)
			line[i] = 0;
}

/**
 * struct rgate_part - what a slot holds of a frame
 * @off: first byte
 * @len: bytes
 * @idx: which slot of the chain
 * @cnt: of how many
 * @flags: RGATE_SLOT_*
 * @now: time of arrival
 */
struct rgate_part {
	u32 off;
	u32 len;
	u32 idx;
	u32 cnt;
	u32 flags;
	u64 now;
};

/* All but seq, which the writer publishes. */
static __always_inline int rgate_put_slot(const struct rgate_frame *f,
					  const struct rgate_ring *ring,
					  struct rgate_part part)
{
	struct rgate_slot *slot = rgate_writer_slot(&ring->w, part.idx);
	u8 *data = (u8 *)(slot + 1);

	rgate_slot_clear_last(data, part.len);
	if (unlikely(rgate_frame_copy(f, part.off, data, part.len)))
		return -EFAULT;
	rgate_frame_describe(slot, f, part.flags);
	slot->tstamp = part.now;
	slot->len = part.len;
	slot->chain_idx = part.idx;
	slot->chain_cnt = part.cnt;
	slot->gap = ring->w.gap;
	slot->clock = ring->clock;
	return 0;
}

static noinline int rgate_put_chain(const struct rgate_frame *f,
				    const struct rgate_ring *ring,
				    u32 n, u32 stored, u32 flags, u64 now)
{
	struct rgate_part part = { .cnt = n, .flags = flags, .now = now };

	for (; part.idx < n; part.idx++, part.off += part.len) {
		part.len = min(stored - part.off, ring->w.room);
		if (rgate_put_slot(f, ring, part))
			return -EFAULT;
		part.flags |= RGATE_SLOT_CONT;
	}
	return 0;
}

static __always_inline int rgate_put_fill(const struct rgate_frame *f,
					  const struct rgate_ring *ring,
					  u32 n, u32 stored)
{
	u64 now = rgate_clock_ns(ring->clock);
	u32 flags = rgate_frame_flags(f);

	if (unlikely(stored < f->len))
		flags |= RGATE_SLOT_TRUNC;
	if (unlikely(n > 1))
		return rgate_put_chain(f, ring, n, stored, flags, now);
	return rgate_put_slot(f, ring, (struct rgate_part){
		.len = stored, .cnt = 1, .flags = flags, .now = now,
	});
}

/**
 * rgate_put - a frame into a ring
 * @f: the frame
 * @ring: the ring
 * @spill: another ring comes next if this one is full
 *
 * Runs with bottom halves off, as frames are received.
 */
static __always_inline enum rgate_outcome
rgate_put(const struct rgate_frame *f, struct rgate_ring *ring, bool spill)
{
	struct rgate_writer *w = &ring->w;
	enum rgate_outcome out = RGATE_DELIVERED;
	u32 n, stored;

	spin_lock(&ring->lock);
	n = rgate_writer_reserve(w, f->snap);
	if (unlikely(!n)) {
		out = rgate_put_full(ring, spill);
		goto wake;
	}
	stored = min(f->snap, n * w->room);
	if (unlikely(rgate_put_fill(f, ring, n, stored))) {
		out = rgate_put_fault(ring);
		goto wake;
	}
	rgate_writer_commit(w, n, stored);
	if (unlikely(stored < f->len))
		rgate_writer_count(&w->stats->truncated, 1);
	if (unlikely(w->full)) {
		w->full = false;
		rgate_event_full(ring);
	}
	if (trace_rgate_deliver_enabled())
		trace_rgate_deliver(ring->id, w->head - n, stored, f->len,
				    rgate_frame_ifindex(f));
wake:
	/* Also without a frame: filler may have been published for it. */
	rgate_ring_wake(ring);
	spin_unlock(&ring->lock);
	return out;
}

#endif
