/* SPDX-License-Identifier: GPL-2.0-only */
/* A received skb on its way into a ring. */
#ifndef RGATE_FRAME_H
#define RGATE_FRAME_H

#include <linux/skbuff.h>

struct rgate_ring;

/**
 * struct rgate_frame - what the receive hook knows of a frame
 * @skb: data at the network header, as at netfilter's ingress hook
 * @mac_len: bytes of link-layer header before that
 * @len: of the whole frame with its link-layer header
 * @snap: bytes wanted of it, at most @len
 */
struct rgate_frame {
	struct sk_buff *skb;
	u32 mac_len;
	u32 len;
	u32 snap;
};

/**
 * enum rgate_outcome - what became of a frame at one ring
 * @RGATE_DELIVERED: it is in the ring
 * @RGATE_DROPPED: full; the frame is to be dropped
 * @RGATE_PASSED: full; the frame is the stack's
 * @RGATE_SPILLED: full; the next ring is to be tried
 * @RGATE_FAULT: its data could not be read
 */
enum rgate_outcome {
	RGATE_DELIVERED,
	RGATE_DROPPED,
	RGATE_PASSED,
	RGATE_SPILLED,
	RGATE_FAULT,
};

/**
 * rgate_frame_init - measure a frame
 * @f: out
 * @skb: at netfilter ingress
 */
static inline void rgate_frame_init(struct rgate_frame *f, struct sk_buff *skb)
{
	u32 mac_len = 0;

	if (skb_mac_header_was_set(skb) && skb_mac_header(skb) <= skb->data)
		mac_len = skb->data - skb_mac_header(skb);
	f->skb = skb;
	f->mac_len = mac_len;
	f->len = mac_len + skb->len;
	f->snap = f->len;
}

enum rgate_outcome rgate_frame_put(const struct rgate_frame *f,
				   struct rgate_ring *ring, bool spill);

#endif
