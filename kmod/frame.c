// SPDX-License-Identifier: GPL-2.0-only
#include <linux/if_vlan.h>
#include <linux/skbuff.h>
#include <linux/timekeeping.h>
#include "event.h"
#include "frame.h"
#include "parse.h"
#include "ring.h"
#include "trace.h"
#include "wake.h"

/* Headers of a non-linear skb are looked for this far in. */
#define RGATE_HEADERS 192

/* Apart, so that the usual frame does not pay for clearing the buffer. */
static noinline struct rgate_offsets
rgate_headers_gather(const struct rgate_frame *f)
{
	u32 len = min_t(u32, f->skb->len, RGATE_HEADERS);
	u8 buf[RGATE_HEADERS];

	if (skb_copy_bits(f->skb, 0, buf, len))
		len = 0;
	return rgate_parse(buf, len, f->skb->protocol, f->mac_len);
}

static __always_inline struct rgate_offsets
rgate_headers(const struct rgate_frame *f)
{
	const struct sk_buff *skb = f->skb;
	u32 len = skb_headlen(skb);

	if (unlikely(len < RGATE_HEADERS && skb_is_nonlinear(skb)))
		return rgate_headers_gather(f);
	return rgate_parse(skb->data, len, skb->protocol, f->mac_len);
}

/* By what skb->ip_summed says, two bits */
static const u32 rgate_csum_flags[] = {
	[CHECKSUM_NONE] = 0,
	[CHECKSUM_UNNECESSARY] = RGATE_SLOT_CSUM_OK,
	[CHECKSUM_COMPLETE] = 0,
	[CHECKSUM_PARTIAL] = RGATE_SLOT_CSUM_PARTIAL,
};

/*
 * GRO checks each segment, and leaves the whole as if it had been sent here,
 * checksum field and all. Which of the two it was nobody can tell any more, and
 * neither needs to be checked.
 */
static u32 rgate_gso_flags(u32 flags)
{
	if (flags & RGATE_SLOT_CSUM_PARTIAL)
		flags ^= RGATE_SLOT_CSUM_PARTIAL | RGATE_SLOT_CSUM_OK;
	return flags | RGATE_SLOT_GRO;
}

static u32 rgate_frame_flags(const struct sk_buff *skb)
{
	u32 flags = rgate_csum_flags[skb->ip_summed];

	if (skb_vlan_tag_present(skb))
		flags |= RGATE_SLOT_VLAN;
	/* Only if somebody computed it: it costs more than all the rest here. */
	if (skb_get_hash_raw(skb))
		flags |= RGATE_SLOT_HASH;
	if (skb_rx_queue_recorded(skb))
		flags |= RGATE_SLOT_QUEUE;
	if (skb_is_gso(skb))
		flags = rgate_gso_flags(flags);
	return flags;
}

/*
 * What the header says of the frame as such. Every field is stored once and
 * none is read back: the slot may be mapped writable.
 */
static __always_inline void rgate_slot_describe(struct rgate_slot *slot,
						const struct rgate_frame *f,
						u32 flags)
{
	const struct sk_buff *skb = f->skb;
	struct rgate_offsets o = rgate_headers(f);

	slot->wire_len = f->len;
	slot->flags = flags;
	slot->ifindex = skb->dev->ifindex;
	slot->hash = skb_get_hash_raw(skb);
	slot->queue = flags & RGATE_SLOT_QUEUE ? skb_get_rx_queue(skb) : 0;
	slot->cpu = smp_processor_id();
	if (unlikely(flags & RGATE_SLOT_VLAN)) {
		slot->vlan_tci = skb_vlan_tag_get(skb);
		slot->vlan_proto = ntohs(skb->vlan_proto);
	} else {
		slot->vlan_tci = 0;
		slot->vlan_proto = 0;
	}
	slot->protocol = ntohs(skb->protocol);
	slot->dev_type = skb->dev->type;
	slot->l3_off = o.l3;
	slot->l4_off = o.l4;
	slot->payload_off = o.payload;
	slot->ip_proto = o.ip_proto;
	slot->pkt_type = skb->pkt_type;
	slot->reserved = 0;
}

static u64 rgate_clock_ns(u32 clock)
{
	if (clock == RGATE_CLOCK_TAI)
		return ktime_get_clocktai_ns();
	if (clock == RGATE_CLOCK_REALTIME)
		return ktime_get_real_ns();
	return ktime_get_ns();
}

/* Copy bytes of the frame, counted from its link-layer header. */
static __always_inline int rgate_frame_copy(const struct rgate_frame *f,
					    u32 off, u8 *to, u32 len)
{
	const struct sk_buff *skb = f->skb;
	u32 head;

	if (likely(off + len <= f->mac_len + skb_headlen(skb))) {
		memcpy(to, skb->data - f->mac_len + off, len);
		return 0;
	}
	if (off < f->mac_len) {
		head = f->mac_len - off;
		memcpy(to, skb->data - head, head);
		to += head;
		off += head;
		len -= head;
	}
	return skb_copy_bits(skb, off - f->mac_len, to, len);
}

/*
 * The last cache line, before the frame is copied over its beginning: behind
 * the frame's end it is then zero, rather than an older frame's bytes.
 */
static void rgate_slot_clear_last(u8 *data, u32 len)
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
static __always_inline int rgate_frame_fill_slot(const struct rgate_frame *f,
						 const struct rgate_ring *ring,
						 struct rgate_part part)
{
	struct rgate_slot *slot = rgate_writer_slot(&ring->w, part.idx);
	u8 *data = (u8 *)(slot + 1);

	rgate_slot_clear_last(data, part.len);
	if (unlikely(rgate_frame_copy(f, part.off, data, part.len)))
		return -EFAULT;
	rgate_slot_describe(slot, f, part.flags);
	slot->tstamp = part.now;
	slot->len = part.len;
	slot->chain_idx = part.idx;
	slot->chain_cnt = part.cnt;
	slot->gap = ring->w.gap;
	slot->clock = ring->clock;
	return 0;
}

static noinline int rgate_frame_fill_chain(const struct rgate_frame *f,
					   const struct rgate_ring *ring,
					   u32 n, u32 stored, u32 flags, u64 now)
{
	struct rgate_part part = { .cnt = n, .flags = flags, .now = now };

	for (; part.idx < n; part.idx++, part.off += part.len) {
		part.len = min(stored - part.off, ring->w.room);
		if (rgate_frame_fill_slot(f, ring, part))
			return -EFAULT;
		part.flags |= RGATE_SLOT_CONT;
	}
	return 0;
}

static __always_inline int rgate_frame_fill(const struct rgate_frame *f,
					    const struct rgate_ring *ring,
					    u32 n, u32 stored)
{
	u64 now = rgate_clock_ns(ring->clock);
	u32 flags = rgate_frame_flags(f->skb);

	if (unlikely(stored < f->len))
		flags |= RGATE_SLOT_TRUNC;
	if (unlikely(n > 1))
		return rgate_frame_fill_chain(f, ring, n, stored, flags, now);
	return rgate_frame_fill_slot(f, ring, (struct rgate_part){
		.len = stored, .cnt = 1, .flags = flags, .now = now,
	});
}

/* No room: what the ring's policy makes of it. Ring's lock held. */
static enum rgate_outcome rgate_frame_full(struct rgate_ring *ring, bool spill)
{
	struct rgate_writer *w = &ring->w;
	enum rgate_outcome out;

	if (!w->full) {
		w->full = true;
		rgate_writer_count(&w->stats->full_events, 1);
		rgate_event_full(ring);
	}
	if (spill) {
		rgate_writer_count(&w->stats->spilled, 1);
		out = RGATE_SPILLED;
	} else if (ring->policy == RGATE_POLICY_PASS) {
		rgate_writer_count(&w->stats->passed, 1);
		out = RGATE_PASSED;
	} else {
		rgate_writer_count(&w->stats->dropped_full, 1);
		out = RGATE_DROPPED;
	}
	if (w->gap != U32_MAX)
		w->gap++;
	trace_rgate_drop(ring->id, out);
	return out;
}

static enum rgate_outcome rgate_frame_fault(struct rgate_ring *ring)
{
	rgate_writer_count(&ring->w.stats->dropped_fault, 1);
	if (ring->w.gap != U32_MAX)
		ring->w.gap++;
	trace_rgate_drop(ring->id, RGATE_FAULT);
	return RGATE_FAULT;
}

/**
 * rgate_frame_put - a frame into a ring
 * @f: the frame
 * @ring: the ring
 * @spill: another ring comes next if this one is full
 *
 * Runs with bottom halves off, as frames are received.
 */
enum rgate_outcome rgate_frame_put(const struct rgate_frame *f,
				   struct rgate_ring *ring, bool spill)
{
	struct rgate_writer *w = &ring->w;
	enum rgate_outcome out = RGATE_DELIVERED;
	u32 n, stored;

	spin_lock(&ring->lock);
	n = rgate_writer_reserve(w, f->snap);
	if (unlikely(!n)) {
		out = rgate_frame_full(ring, spill);
		goto wake;
	}
	stored = min(f->snap, n * w->room);
	if (unlikely(rgate_frame_fill(f, ring, n, stored))) {
		out = rgate_frame_fault(ring);
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
				    f->skb->dev->ifindex);
wake:
	/* Also without a frame: filler may have been published for it. */
	rgate_ring_wake(ring);
	spin_unlock(&ring->lock);
	return out;
}
