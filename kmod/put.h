/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A frame into a ring, whatever it is made of. Who includes this is one kind of
 * source (an skb, an XDP buffer) and defines the four functions below; all of it
 * becomes one function there, without a call for each part. So that what is known
 * of a frame stays in registers, nothing that is not inlined takes its address.
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

/**
 * struct rgate_part - what a slot holds of a frame
 * @off: first byte
 * @len: bytes
 * @idx: which slot of the chain
 * @cnt: of how many
 * @flags: RGATE_SLOT_*
 * @headers: where they are; looked for with the first slot, whatever @cnt is
 * @now: time of arrival
 */
struct rgate_part {
	u32 off;
	u32 len;
	u32 idx;
	u32 cnt;
	u32 flags;
	struct rgate_offsets headers;
	u64 now;
};

/* RGATE_SLOT_* that the source knows */
static u32 rgate_frame_flags(const struct rgate_frame *f);
static u32 rgate_frame_ifindex(const struct rgate_frame *f);
/* Copy bytes of the frame, counted from its link-layer header. */
static int rgate_frame_copy(const struct rgate_frame *f, u32 off, u8 *to,
			    u32 len);
/*
 * What the header says of the frame as such; the chain's fields are stored after it. None
 * is read back: the slot may be mapped writable.
 */
static void rgate_frame_describe(struct rgate_slot *slot,
				 const struct rgate_frame *f,
				 struct rgate_part *part);

/* Two neighbouring fields of a slot in one store: the second follows @first. */
static inline void rgate_slot_pair(__u16 *first, u16 a, u16 b)
{
#ifdef __LITTLE_ENDIAN
	*(u32 *)first = a | (u32)b << 16;
#else
	*(u32 *)first = (u32)a << 16 | b;
#endif
}

/*
 * Where the headers are, in one store for the three: what a slot has behind them, and is stored
 * later, has the length of what stands behind them here.
 */
static __always_inline void rgate_slot_headers(struct rgate_slot *slot,
					       struct rgate_offsets o)
{
	BUILD_BUG_ON(offsetof(struct rgate_slot, l4_off) -
		     offsetof(struct rgate_slot, l3_off) != offsetof(struct rgate_offsets, l4));
	BUILD_BUG_ON(offsetof(struct rgate_slot, payload_off) -
		     offsetof(struct rgate_slot, l3_off) !=
		     offsetof(struct rgate_offsets, payload));
	BUILD_BUG_ON(offsetof(struct rgate_slot, l3_off) + sizeof(o) !=
		     offsetofend(struct rgate_slot, chain_cnt));
	*(u64 *)&slot->l3_off = o.all;
	slot->ip_proto = rgate_offsets_ip_proto(o.all);
}

/* Headers of a frame that lies in pieces are looked for this far in. */
#define RGATE_HEADERS 192

static noinline u64 rgate_clock_ns_odd(const struct rgate_ring *ring)
{
	bool coarse = ring->flags & RGATE_RING_COARSE;

	if (ring->clock == RGATE_CLOCK_TAI)
		return coarse ? ktime_get_coarse_clocktai_ns() : ktime_get_clocktai_ns();
	if (ring->clock == RGATE_CLOCK_REALTIME)
		return coarse ? ktime_get_coarse_real_ns() : ktime_get_real_ns();
	return ktime_get_coarse_ns();
}

static __always_inline u64 rgate_clock_ns(const struct rgate_ring *ring)
{
	return likely(!ring->odd_clock) ? ktime_get_ns() : rgate_clock_ns_odd(ring);
}

/*
 * What is behind the frame's end in its last cache line, before the frame is copied: zero
 * then, rather than an older frame's bytes. Half a line at a time, and words that the
 * compiler cannot make a string instruction of, which takes longer to begin than this does.
 */
static __always_inline void rgate_slot_clear_last(u8 *data, u32 len)
{
	u64 *line = (u64 *)(data + (len & ~(RGATE_SLOT_HDR - 1)));
	u32 used = len & (RGATE_SLOT_HDR - 1);

	if (!used)
		return;
	WRITE_ONCE(line[4], 0);
	WRITE_ONCE(line[5], 0);
	WRITE_ONCE(line[6], 0);
	WRITE_ONCE(line[7], 0);
	if (used >= RGATE_SLOT_HDR / 2)
		return;
	WRITE_ONCE(line[0], 0);
	WRITE_ONCE(line[1], 0);
	WRITE_ONCE(line[2], 0);
	WRITE_ONCE(line[3], 0);
}

/* All but seq, which the writer publishes. */
static __always_inline int rgate_put_slot(const struct rgate_frame *f,
					  const struct rgate_ring *ring,
					  struct rgate_slot *slot,
					  struct rgate_part *part)
{
	u8 *data = (u8 *)(slot + 1);

	slot->tstamp = part->now;
	slot->len = part->len;
	slot->gap = ring->w.gap;
	slot->clock = ring->clock;
	rgate_frame_describe(slot, f, part);
	slot->chain_idx = part->idx;
	slot->chain_cnt = part->cnt;
	/* Last, when little of all that has to outlast the call. */
	rgate_slot_clear_last(data, part->len);
	return rgate_frame_copy(f, part->off, data, part->len) ? -EFAULT : 0;
}

/* A frame is in the ring: counts what was cut off, and tells who traces. */
static __always_inline void rgate_put_told(const struct rgate_frame *f,
					   struct rgate_ring *ring, u32 n,
					   u32 stored)
{
	if (unlikely(stored < f->len))
		rgate_writer_count(&ring->w.stats->truncated, 1);
	if (trace_rgate_deliver_enabled())
		trace_rgate_deliver(ring->id, ring->w.head - n, stored, f->len,
				    rgate_frame_ifindex(f));
}

/* A full ring has room again. */
static inline void rgate_put_room(struct rgate_ring *ring)
{
	lockdep_assert_held(&ring->lock);
	if (unlikely(ring->w.full)) {
		ring->w.full = false;
		rgate_event_full(ring);
	}
}

/* Into @n slots that are reserved. @f: by value, see above */
static noinline enum rgate_outcome rgate_put_chain(struct rgate_frame f,
						   struct rgate_ring *ring, u32 n)
{
	struct rgate_part part = {
		.cnt = n,
		.flags = rgate_frame_flags(&f),
		.now = rgate_clock_ns(ring),
	};
	u32 stored = min(f.snap, n * ring->w.room);

	if (stored < f.len)
		part.flags |= RGATE_SLOT_TRUNC;
	for (; part.idx < n; part.idx++, part.off += part.len) {
		part.len = min(stored - part.off, ring->w.room);
		if (rgate_put_slot(&f, ring, rgate_writer_slot(&ring->w, part.idx),
				   &part))
			return rgate_put_fault(ring);
		part.flags |= RGATE_SLOT_CONT;
	}
	rgate_writer_commit(&ring->w, n, stored);
	rgate_put_told(&f, ring, n, stored);
	return RGATE_DELIVERED;
}

/* Into the one slot that is reserved */
static __always_inline enum rgate_outcome rgate_put_one(const struct rgate_frame *f,
							struct rgate_ring *ring,
							u32 stored)
{
	/* First, while few values are live that would have to outlast the call. */
	struct rgate_part part = { .cnt = 1, .now = rgate_clock_ns(ring) };
	struct rgate_slot *slot = rgate_writer_slot(&ring->w, 0);

	/* An addition, for a carry takes no register. */
	BUILD_BUG_ON(RGATE_SLOT_TRUNC != 1);
	part.flags = rgate_frame_flags(f) + (stored < f->len);
	part.len = stored;
	if (unlikely(rgate_put_slot(f, ring, slot, &part)))
		return rgate_put_fault(ring);
	rgate_writer_commit_one(&ring->w, slot, stored);
	rgate_put_told(f, ring, 1, stored);
	return RGATE_DELIVERED;
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
	u32 stored = f->snap, n;
	enum rgate_outcome out;

	spin_lock(&ring->lock);
	if (unlikely(!rgate_writer_easy(&ring->w, stored))) {
		n = rgate_writer_reserve_slow(&ring->w, stored);
		/*
		 * The first frame after a full ring always comes by here, and
		 * there is room for it, whatever becomes of its bytes.
		 */
		if (n)
			rgate_put_room(ring);
		if (n != 1) {
			out = n ? rgate_put_chain(*f, ring, n) :
				  rgate_put_full(ring, spill);
			goto wake;
		}
		stored = min(stored, ring->w.room);
	}
	out = rgate_put_one(f, ring, stored);
wake:
	/* Also without a frame: filler may have been published for it. */
	rgate_ring_wake(ring);
	spin_unlock(&ring->lock);
	return out;
}

#endif
