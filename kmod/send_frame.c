// SPDX-License-Identifier: GPL-2.0-only
/*
 * From slot to skb. The slot is user memory that changes while it is looked at: each
 * word is read once, into a variable, and what is checked is the copy; so are the
 * frame's bytes, of which nothing is believed before they are in the skb.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/virtio_net.h>
#include <ringgate/ring.h>
#include "send_frame.h"

/* Longer frames lie in pages behind this many bytes, in which all headers are. */
#define RGATE_SEND_HEAD 4096

/* Nobody waits for memory: the frame stays where it is, and is tried again. */
#define RGATE_SEND_GFP (GFP_NOWAIT | __GFP_NOWARN)

static bool rgate_send_ethernet(const struct net_device *dev)
{
	return dev->type == ARPHRD_ETHER || dev->type == ARPHRD_LOOPBACK;
}

/* rgate_send_device - are frames for this device of a kind that we know? */
bool rgate_send_device(const struct net_device *dev)
{
	return rgate_send_ethernet(dev) ||
	       (!dev->hard_header_len && !dev_has_header(dev));
}

static struct sk_buff *rgate_send_alloc(u32 len, const struct net_device *dev)
{
	/* Once: what is above or below the device may change it just now, without a lock. */
	const unsigned int before = LL_RESERVED_SPACE(dev);
	const unsigned int around = before + READ_ONCE(dev->needed_tailroom);
	u32 head = len;
	struct sk_buff *skb;
	int err;

	if (likely(len <= SKB_MAX_ALLOC - around)) {
		skb = __alloc_skb(around + len, RGATE_SEND_GFP, SKB_ALLOC_NAPI,
				  NUMA_NO_NODE);
	} else {
		head = RGATE_SEND_HEAD;
		skb = alloc_skb_with_frags(around + head, len - head,
					   PAGE_ALLOC_COSTLY_ORDER, &err,
					   RGATE_SEND_GFP);
	}
	if (unlikely(!skb))
		return NULL;
	skb_reserve(skb, before);
	skb_put(skb, head);
	skb->data_len = len - head;
	skb->len += len - head;
	return skb;
}

static struct sk_buff *rgate_send_copy(const void *data, u32 len,
				       const struct net_device *dev)
{
	struct sk_buff *skb = rgate_send_alloc(len, dev);

	if (unlikely(!skb))
		return NULL;
	if (likely(!skb->data_len)) {
		memcpy(skb->data, data, len);
	} else if (skb_store_bits(skb, 0, data, len)) {
		kfree_skb(skb);
		return NULL;
	}
	return skb;
}

/* Where the packet begins, and what it is */
static int rgate_send_headers(struct sk_buff *skb, struct net_device *dev)
{
	skb->dev = dev;
	skb_reset_mac_header(skb);
	if (likely(rgate_send_ethernet(dev))) {
		skb->protocol = eth_hdr(skb)->h_proto;
		skb_set_network_header(skb, ETH_HLEN);
		return 0;
	}
	skb_reset_network_header(skb);
	switch (skb->data[0] >> 4) {
	case 4:
		skb->protocol = htons(ETH_P_IP);
		return 0;
	case 6:
		skb->protocol = htons(ETH_P_IPV6);
		return 0;
	default:
		return -EINVAL;
	}
}

static int rgate_send_vlan(struct sk_buff *skb, const struct rgate_tx_slot *slot)
{
	__be16 proto = htons(READ_ONCE(slot->vlan_proto));

	if (!eth_type_vlan(proto) || !rgate_send_ethernet(skb->dev))
		return -EINVAL;
	__vlan_hwaccel_put_tag(skb, proto, READ_ONCE(slot->vlan_tci));
	return 0;
}

static bool rgate_send_gso_known(u8 type)
{
	switch (type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
	case VIRTIO_NET_HDR_GSO_TCPV6:
		return true;
	default:
		return type == VIRTIO_NET_HDR_GSO_NONE;
	}
}

/* What the kernel takes from virtual machines, it takes from here. */
static int rgate_send_offload(struct sk_buff *skb,
			      const struct rgate_tx_slot *slot)
{
	bool le = virtio_legacy_is_little_endian();
	struct virtio_net_hdr h = {
		.flags = READ_ONCE(slot->vnet_flags),
		.gso_type = READ_ONCE(slot->gso_type),
		.gso_size = __cpu_to_virtio16(le, READ_ONCE(slot->gso_size)),
		.csum_start = __cpu_to_virtio16(le, READ_ONCE(slot->csum_start)),
		.csum_offset = __cpu_to_virtio16(le, READ_ONCE(slot->csum_offset)),
	};

	if (h.flags & ~VIRTIO_NET_HDR_F_NEEDS_CSUM ||
	    !rgate_send_gso_known(h.gso_type))
		return -EINVAL;
	/* Each segment has a checksum of its own, which somebody has to fill in. */
	if (h.gso_type && !(h.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return -EINVAL;
	if (h.gso_type && !virtio_net_hdr_match_proto(skb->protocol, h.gso_type))
		return -EINVAL;
	return virtio_net_hdr_to_skb(skb, &h, le);
}

/* A tag in the frame is not the MTU's matter; segments are made to fit it. */
static bool rgate_send_fits(const struct sk_buff *skb)
{
	const struct net_device *dev = skb->dev;
	u32 most = READ_ONCE(dev->mtu) + dev->hard_header_len;

	if (skb_is_gso(skb))
		return true;
	if (unlikely(skb->len > most))
		return eth_type_vlan(skb->protocol) && skb->len - VLAN_HLEN <= most;
	return true;
}

static int rgate_send_request(struct sk_buff *skb,
			      const struct rgate_tx_slot *slot, u32 flags)
{
	int err = 0;

	if (flags & RGATE_SLOT_VLAN)
		err = rgate_send_vlan(skb, slot);
	if (!err && flags & RGATE_SLOT_OFFLOAD)
		err = rgate_send_offload(skb, slot);
	return err;
}

/**
 * rgate_send_frame - what a user put into a slot, as an skb
 * @slot: user memory
 * @dev: rgate_send_device()
 * @room: bytes behind the slot's header
 *
 * Bottom halves are off, for this CPU's store of skbs.
 * Return: an skb for dev_queue_xmit(); NULL for filler; -EMSGSIZE: its length cannot be;
 * -EINVAL: what it asks for cannot be; -ENOBUFS: no memory, try again.
 */
struct sk_buff *rgate_send_frame(const struct rgate_tx_slot *slot,
				 struct net_device *dev, u32 room)
{
	u32 flags = READ_ONCE(slot->flags), len = READ_ONCE(slot->len);
	struct sk_buff *skb;
	int err;

	if (unlikely(flags & ~RGATE_SLOT_TX_FLAGS))
		return ERR_PTR(-EINVAL);
	if (unlikely(flags & RGATE_SLOT_PAD))
		return NULL;
	if (unlikely(len > room || len < (rgate_send_ethernet(dev) ? ETH_HLEN : 1)))
		return ERR_PTR(-EMSGSIZE);
	skb = rgate_send_copy(slot + 1, len, dev);
	if (unlikely(!skb))
		return ERR_PTR(-ENOBUFS);
	err = rgate_send_headers(skb, dev);
	if (!err && unlikely(flags))
		err = rgate_send_request(skb, slot, flags);
	if (!err && unlikely(!rgate_send_fits(skb)))
		err = -EMSGSIZE;
	if (unlikely(err)) {
		kfree_skb(skb);
		return ERR_PTR(err);
	}
	return skb;
}
