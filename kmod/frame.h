/* SPDX-License-Identifier: GPL-2.0-only */
/* A received skb on its way into a ring. */
#ifndef RGATE_FRAME_H
#define RGATE_FRAME_H

#include <linux/types.h>
#include <ringgate/ring.h>

struct sk_buff;
struct rgate_ring;

/**
 * struct rgate_frame - what the receive hook knows of a frame
 * @skb: data at the network header, as at netfilter's ingress hook
 * @mac_len: bytes of link-layer header before that
 * @len: of the whole frame with its link-layer header
 * @snap: bytes wanted of it, at most @len
 * @described: @hdr is filled in
 * @hdr: header for its slots, but for what differs from slot to slot
 */
struct rgate_frame {
	struct sk_buff *skb;
	u32 mac_len;
	u32 len;
	u32 snap;
	bool described;
	struct rgate_slot hdr;
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

void rgate_frame_init(struct rgate_frame *f, struct sk_buff *skb);
enum rgate_outcome rgate_frame_put(struct rgate_frame *f,
				   struct rgate_ring *ring, bool spill);

#endif
