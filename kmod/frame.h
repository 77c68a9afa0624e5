/* SPDX-License-Identifier: GPL-2.0-only */
/* A received frame on its way into a ring. */
#ifndef RGATE_FRAME_H
#define RGATE_FRAME_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>

struct rgate_ring;
struct xdp_buff;

/**
 * struct rgate_frame - what is known of a frame before it is in a ring
 * @skb: data at the network header, as at netfilter's ingress hook
 * @xdp: or a driver's buffer, before there is an skb; each source's code knows
 *	its own
 * @mac_len: bytes of link-layer header before that; 0 where the device has none
 * @len: of the whole frame with its link-layer header
 * @snap: bytes wanted of it, at most @len
 */
struct rgate_frame {
	union {
		struct sk_buff *skb;
		struct xdp_buff *xdp;
	};
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
 * rgate_frame_of - measure a frame
 * @skb: at netfilter ingress
 *
 * What a tunnel took off may still stand before the packet, and be what the
 * skb calls its MAC header. As for packet sockets, a frame begins there only
 * if the device is one that makes such headers.
 */
static inline struct rgate_frame rgate_frame_of(struct sk_buff *skb)
{
	/* Not by skb_mac_header(), which complains (DEBUG_NET) of one that was never set. */
	int mac_len = (int)skb_headroom(skb) - skb->mac_header;

	/* Such a one lies behind the data. */
	if (mac_len < 0 || unlikely(!dev_has_header(skb->dev)))
		mac_len = 0;
	return (struct rgate_frame){
		.skb = skb,
		.mac_len = mac_len,
		.len = mac_len + skb->len,
		.snap = mac_len + skb->len,
	};
}

enum rgate_outcome rgate_frame_put(const struct rgate_frame *f,
				   struct rgate_ring *ring, bool spill);
enum rgate_outcome rgate_put_full(struct rgate_ring *ring, bool spill);
enum rgate_outcome rgate_put_fault(struct rgate_ring *ring);

#endif
