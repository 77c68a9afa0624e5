// SPDX-License-Identifier: GPL-2.0-only
/*
 * Received skbs: from netfilter's ingress hook into rings. All that the usual frame
 * needs becomes part of rgate_hook().
 */
#include <linux/if_vlan.h>
#include <linux/netfilter.h>
#include <linux/skbuff.h>
#include "deliver.h"
#include "filter.h"
#include "frame.h"
#include "hook.h"
#include "put.h"

/* Apart, so that the usual frame does not pay for clearing the buffer. */
static noinline struct rgate_offsets
rgate_headers_gather(const struct sk_buff *skb, u32 mac_len)
{
	u32 len = min_t(u32, skb->len, RGATE_HEADERS);
	u8 buf[RGATE_HEADERS];

	if (skb_copy_bits(skb, 0, buf, len))
		len = 0;
	return rgate_parse(buf, len, skb->protocol, mac_len);
}

static __always_inline struct rgate_offsets
rgate_headers(const struct rgate_frame *f)
{
	const struct sk_buff *skb = f->skb;
	u32 len = skb->len;

	if (unlikely(skb_is_nonlinear(skb))) {
		len = skb_headlen(skb);
		if (len < RGATE_HEADERS)
			return rgate_headers_gather(skb, f->mac_len);
	}
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

static __always_inline u32 rgate_frame_flags(const struct rgate_frame *f)
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

static inline u32 rgate_frame_ifindex(const struct rgate_frame *f)
{
	return f->skb->dev->ifindex;
}

static __always_inline void rgate_frame_describe(struct rgate_slot *slot,
						 const struct rgate_frame *f,
						 struct rgate_part *part)
{
	const struct sk_buff *skb = f->skb;
	const struct net_device *dev = skb->dev;
	u32 flags = part->flags;

	if (!part->idx)
		part->headers = rgate_headers(f);
	slot->wire_len = f->len;
	slot->flags = flags;
	slot->ifindex = dev->ifindex;
	slot->hash = skb_get_hash_raw(skb);
	rgate_slot_pair(&slot->queue,
			flags & RGATE_SLOT_QUEUE ? skb_get_rx_queue(skb) : 0,
			smp_processor_id());
	if (unlikely(flags & RGATE_SLOT_VLAN))
		rgate_slot_pair(&slot->vlan_tci, skb_vlan_tag_get(skb),
				ntohs(skb->vlan_proto));
	else
		rgate_slot_pair(&slot->vlan_tci, 0, 0);
	slot->protocol = ntohs(skb->protocol);
	slot->dev_type = dev->type;
	rgate_slot_headers(slot, part->headers);
	slot->pkt_type = skb->pkt_type;
	slot->reserved = 0;
}

/* Some of it may be in fragments. */
static noinline int rgate_frame_copy_bits(const struct sk_buff *skb, u32 mac_len,
					  u32 off, u8 *to, u32 len)
{
	u32 head;

	if (off < mac_len) {
		head = min(len, mac_len - off);
		memcpy(to, skb->data - (mac_len - off), head);
		to += head;
		off += head;
		len -= head;
	}
	return len ? skb_copy_bits(skb, off - mac_len, to, len) : 0;
}

static __always_inline int rgate_frame_copy(const struct rgate_frame *f,
					    u32 off, u8 *to, u32 len)
{
	if (unlikely(skb_is_nonlinear(f->skb)))
		return rgate_frame_copy_bits(f->skb, f->mac_len, off, to, len);
	memcpy(to, f->skb->data - f->mac_len + off, len);
	return 0;
}

/**
 * rgate_frame_put - a received skb into a ring, as a function of its own
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

/* Is this frame for us? Sets how much of it is wanted. */
static __always_inline bool rgate_hook_match(struct rgate_att *att,
					     struct rgate_att_pcpu *p,
					     const struct rgate_att_cfg *cfg,
					     struct rgate_frame *f)
{
	u32 want;

	if (cfg->prog) {
		want = rgate_filter_run(cfg->prog, f->skb, f->mac_len);
		if (!want) {
			rgate_deliver_count(p, RGATE_A_ATT_STATS_FILTERED, 1);
			return false;
		}
		f->snap = min(f->len, want);
	}
	return !rgate_deliver_sampled_out(att, p, cfg);
}

static unsigned int rgate_source_choose(const struct rgate_att *att,
					const struct rgate_frame *f,
					unsigned int n)
{
	switch (att->fanout) {
	case RGATE_FANOUT_CPU:
		return smp_processor_id() % n;
	case RGATE_FANOUT_QUEUE:
		return skb_rx_queue_recorded(f->skb) ?
			skb_get_rx_queue(f->skb) % n : 0;
	case RGATE_FANOUT_HASH:
		return reciprocal_scale(skb_get_hash(f->skb), n);
	default:
		return 0;
	}
}

static enum rgate_outcome rgate_source_put(const struct rgate_frame *f,
					   struct rgate_ring *ring, bool spill)
{
	return rgate_frame_put(f, ring, spill);
}

/**
 * rgate_hook - netfilter's ingress hook on an attached device
 * @priv: the attachment
 * @skb: data at the network header, an outer VLAN tag taken off already
 * @state: where; nothing in it that the attachment does not know
 *
 * Runs under rcu_read_lock with bottom halves off.
 */
unsigned int rgate_hook(void *priv, struct sk_buff *skb,
			const struct nf_hook_state *state)
{
	struct rgate_att *att = priv;
	struct rgate_att_pcpu *p = this_cpu_ptr(att->stats);
	const struct rgate_att_cfg *cfg = rcu_dereference(att->cfg);
	struct rgate_frame f = rgate_frame_of(skb);

	rgate_deliver_count(p, RGATE_A_ATT_STATS_SEEN, 1);
	if (!rgate_hook_match(att, p, cfg, &f))
		return NF_ACCEPT;
	switch (rgate_deliver_fate(p, cfg->action, &f, rgate_deliver(att, p, &f))) {
	case RGATE_FATE_TAKEN:
		/* What is freed is kept for the next frames, for which bottom halves are off. */
		napi_consume_skb(skb, 1);
		return NF_STOLEN;
	case RGATE_FATE_DROP:
		return NF_DROP;
	default:
		return NF_ACCEPT;
	}
}
