// SPDX-License-Identifier: GPL-2.0-only
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/timekeeping.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include "event.h"
#include "frame.h"
#include "ring.h"
#include "trace.h"

/* A tag was taken off already; two more inside is more than anyone sends. */
#define RGATE_INNER_TAGS 2

/**
 * rgate_frame_init - measure a frame
 * @f: out
 * @skb: at netfilter ingress
 */
void rgate_frame_init(struct rgate_frame *f, struct sk_buff *skb)
{
	f->skb = skb;
	f->mac_len = 0;
	if (skb_mac_header_was_set(skb) && skb_mac_header(skb) <= skb->data)
		f->mac_len = skb->data - skb_mac_header(skb);
	f->len = f->mac_len + skb->len;
	f->snap = f->len;
	f->described = false;
}

/* Offsets count from the skb's data here, from the frame's start in the slot. */
static void rgate_describe_l4(struct rgate_frame *f, u8 proto, u32 off)
{
	struct rgate_slot *hdr = &f->hdr;
	struct tcphdr tcp_buf, *tcp;
	u32 len;

	hdr->ip_proto = proto;
	hdr->l4_off = f->mac_len + off;
	switch (proto) {
	case IPPROTO_TCP:
		tcp = skb_header_pointer(f->skb, off, sizeof(tcp_buf), &tcp_buf);
		if (!tcp || tcp->doff < 5)
			return;
		len = tcp->doff * 4;
		break;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		len = sizeof(struct udphdr);
		break;
	default:
		return;
	}
	if (off + len <= f->skb->len)
		hdr->payload_off = f->mac_len + off + len;
}

static void rgate_describe_ipv4(struct rgate_frame *f, u32 off)
{
	struct iphdr buf, *ip;

	ip = skb_header_pointer(f->skb, off, sizeof(buf), &buf);
	if (!ip || ip->version != 4 || ip->ihl < 5 ||
	    off + ip->ihl * 4 > f->skb->len)
		return;
	/* Later fragments have no layer 4 header. */
	if (!(ip->frag_off & htons(IP_OFFSET)))
		rgate_describe_l4(f, ip->protocol, off + ip->ihl * 4);
}

static void rgate_describe_ipv6(struct rgate_frame *f, u32 off)
{
	struct ipv6hdr buf, *ip;
	__be16 frag = 0;
	u8 proto;
	int l4;

	ip = skb_header_pointer(f->skb, off, sizeof(buf), &buf);
	if (!ip || ip->version != 6)
		return;
	proto = ip->nexthdr;
	l4 = off + sizeof(*ip);
	if (ipv6_ext_hdr(proto))
		l4 = ipv6_skip_exthdr(f->skb, l4, &proto, &frag);
	if (l4 < 0 || l4 > f->skb->len || proto == NEXTHDR_NONE ||
	    frag & htons(IP6_OFFSET))
		return;
	rgate_describe_l4(f, proto, l4);
}

static void rgate_describe_l3(struct rgate_frame *f)
{
	__be16 proto = f->skb->protocol;
	struct vlan_hdr buf, *tag;
	u32 off = 0;
	int i;

	for (i = 0; i < RGATE_INNER_TAGS && eth_type_vlan(proto); i++) {
		tag = skb_header_pointer(f->skb, off, sizeof(buf), &buf);
		if (!tag)
			return;
		proto = tag->h_vlan_encapsulated_proto;
		off += VLAN_HLEN;
	}
	f->hdr.l3_off = f->mac_len + off;
	if (proto == htons(ETH_P_IP))
		rgate_describe_ipv4(f, off);
	else if (proto == htons(ETH_P_IPV6))
		rgate_describe_ipv6(f, off);
}

static u32 rgate_describe_flags(struct rgate_frame *f)
{
	struct sk_buff *skb = f->skb;
	struct rgate_slot *hdr = &f->hdr;
	u32 flags = 0;

	if (skb_vlan_tag_present(skb)) {
		hdr->vlan_tci = skb_vlan_tag_get(skb);
		hdr->vlan_proto = ntohs(skb->vlan_proto);
		flags |= RGATE_SLOT_VLAN;
	}
	/* Only if somebody computed it: it costs more than all the rest here. */
	if (skb->l4_hash || skb->sw_hash) {
		hdr->hash = skb_get_hash_raw(skb);
		flags |= RGATE_SLOT_HASH;
	}
	if (skb_rx_queue_recorded(skb)) {
		hdr->queue = skb_get_rx_queue(skb);
		flags |= RGATE_SLOT_QUEUE;
	}
	if (skb->ip_summed == CHECKSUM_UNNECESSARY)
		flags |= RGATE_SLOT_CSUM_OK;
	else if (skb->ip_summed == CHECKSUM_PARTIAL)
		flags |= RGATE_SLOT_CSUM_PARTIAL;
	if (skb_is_gso(skb))
		flags |= RGATE_SLOT_GRO;
	return flags;
}

/* All that does not depend on the ring; done once, for the first that has room. */
static void rgate_frame_describe(struct rgate_frame *f)
{
	struct sk_buff *skb = f->skb;
	struct rgate_slot *hdr = &f->hdr;

	memset(hdr, 0, sizeof(*hdr));
	hdr->wire_len = f->len;
	hdr->ifindex = skb->dev->ifindex;
	hdr->cpu = smp_processor_id();
	hdr->protocol = ntohs(skb->protocol);
	hdr->dev_type = skb->dev->type;
	hdr->pkt_type = skb->pkt_type;
	hdr->l3_off = RGATE_OFF_NONE;
	hdr->l4_off = RGATE_OFF_NONE;
	hdr->payload_off = RGATE_OFF_NONE;
	hdr->flags = rgate_describe_flags(f);
	rgate_describe_l3(f);
	f->described = true;
}

static u64 rgate_clock_ns(u32 clock)
{
	switch (clock) {
	case RGATE_CLOCK_TAI:
		return ktime_get_clocktai_ns();
	case RGATE_CLOCK_REALTIME:
		return ktime_get_real_ns();
	default:
		return ktime_get_ns();
	}
}

/* Copy bytes of the frame, counted from its link-layer header. */
static int rgate_frame_copy(const struct rgate_frame *f, u32 off, u8 *to,
			    u32 len)
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

/* The rest of the last cache line: zero rather than an older frame's bytes. */
static void rgate_slot_trim(struct rgate_slot *slot, u32 len)
{
	u32 tail = -len & (RGATE_SLOT_HDR - 1);

	memset((u8 *)(slot + 1) + len, 0, tail);
}

static int rgate_frame_fill(struct rgate_frame *f, struct rgate_writer *w,
			    const struct rgate_span *span, u32 stored)
{
	struct rgate_slot *slot, *hdr = &f->hdr;
	u32 i, len, off = 0;

	hdr->chain_cnt = span->n;
	for (i = 0; i < span->n; i++, off += len) {
		slot = rgate_writer_slot(w, span, i);
		len = min(stored - off, w->room);
		if (rgate_frame_copy(f, off, (u8 *)(slot + 1), len))
			return -EFAULT;
		rgate_slot_trim(slot, len);
		hdr->len = len;
		hdr->chain_idx = i;
		if (i)
			hdr->flags |= RGATE_SLOT_CONT;
		/* Everything but seq, which the writer publishes. */
		memcpy((u8 *)slot + sizeof(slot->seq),
		       (u8 *)hdr + sizeof(hdr->seq),
		       sizeof(*slot) - sizeof(slot->seq));
	}
	return 0;
}

/* No room: what the ring's policy makes of it. Ring's lock held. */
static enum rgate_outcome rgate_frame_full(struct rgate_ring *ring, bool spill)
{
	struct rgate_writer *w = &ring->w;
	enum rgate_outcome out;

	if (!w->full) {
		w->full = true;
		rgate_writer_count(w, full_events, 1);
		rgate_event_full(ring);
	}
	if (spill) {
		rgate_writer_count(w, spilled, 1);
		out = RGATE_SPILLED;
	} else if (ring->policy == RGATE_POLICY_PASS) {
		rgate_writer_count(w, passed, 1);
		out = RGATE_PASSED;
	} else {
		rgate_writer_count(w, dropped_full, 1);
		out = RGATE_DROPPED;
	}
	if (w->gap != U32_MAX)
		w->gap++;
	trace_rgate_drop(ring->id, out);
	return out;
}

static enum rgate_outcome rgate_frame_fault(struct rgate_ring *ring)
{
	rgate_writer_count(&ring->w, dropped_fault, 1);
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
 */
enum rgate_outcome rgate_frame_put(struct rgate_frame *f,
				   struct rgate_ring *ring, bool spill)
{
	struct rgate_writer *w = &ring->w;
	enum rgate_outcome out = RGATE_DELIVERED;
	struct rgate_span span;
	u32 stored;

	spin_lock_bh(&ring->lock);
	if (!rgate_writer_reserve(w, f->snap, &span)) {
		out = rgate_frame_full(ring, spill);
		goto unlock;
	}
	if (!f->described)
		rgate_frame_describe(f);
	stored = min(f->snap, span.n * w->room);
	f->hdr.flags &= ~(RGATE_SLOT_CONT | RGATE_SLOT_TRUNC);
	if (stored < f->len)
		f->hdr.flags |= RGATE_SLOT_TRUNC;
	f->hdr.tstamp = rgate_clock_ns(ring->clock);
	f->hdr.clock = ring->clock;
	f->hdr.gap = w->gap;
	if (rgate_frame_fill(f, w, &span, stored)) {
		out = rgate_frame_fault(ring);
		goto unlock;
	}
	rgate_writer_commit(w, &span, stored);
	if (stored < f->len)
		rgate_writer_count(w, truncated, 1);
	if (unlikely(w->full)) {
		w->full = false;
		rgate_event_full(ring);
	}
	trace_rgate_deliver(ring->id, span.pos, stored, f->len,
			    f->hdr.ifindex);
	rgate_ring_wake(ring);
unlock:
	spin_unlock_bh(&ring->lock);
	return out;
}
