/* SPDX-License-Identifier: GPL-2.0-only */
/* A frame that a user put into a slot, as an skb. */
#ifndef RGATE_SEND_FRAME_H
#define RGATE_SEND_FRAME_H

#include <linux/types.h>

struct net_device;
struct rgate_tx_slot;
struct sk_buff;

bool rgate_send_device(const struct net_device *dev);
struct sk_buff *rgate_send_frame(const struct rgate_tx_slot *slot,
				 struct net_device *dev, u32 room);

#endif
