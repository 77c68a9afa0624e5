// SPDX-License-Identifier: GPL-2.0-only
#include <linux/if_vlan.h>
#include <linux/skbuff.h>
#include "frame.h"
#include "put.h"

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

static u32 rgate_frame_flags(const struct rgate_frame *f)
{
	const struct sk_buff *skb = f->skb;
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

static u32 rgate_frame_ifindex(const struct rgate_frame *f)
{
	return f->skb->dev->ifindex;
}

static __always_inline void rgate_frame_describe(struct rgate_slot *slot,
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

/**
 * rgate_frame_put - a received skb into a ring
 * @f: the frame
 * @ring: the ring
 * @spill: another ring comes next if this one is full
 *
 * Runs with bottom halves off, as frames are received.
 */
enum rgate_outcome rgate_frame_put(const struct rgate_frame *f,
				   struct rgate_ring *ring, bool spill)
{
	return rgate_put(f, ring, spill);
}
