// SPDX-License-Identifier: GPL-2.0-only
#include <net/genetlink.h>
#include <ringgate/netlink.h>
#include "attach.h"
#include "event.h"
#include "netlink.h"
#include "ring.h"

/* A ring at its limit goes in and out of it all the time: tell at this pace. */
#define RGATE_EVENT_DELAY (HZ / 20)

struct rgate_event_msg {
	u32 type;
	u32 ring_id;
	u32 att_id;
	u32 ifindex;
	u64 full_events;
	u64 dropped;
};

static int rgate_event_put(struct sk_buff *skb,
			   const struct rgate_event_msg *ev)
{
	void *hdr = genlmsg_put(skb, 0, 0, &rgate_genl_family, 0,
				RGATE_CMD_EVENT);

	if (!hdr)
		return -EMSGSIZE;
	if (nla_put_u32(skb, RGATE_A_EVENT_TYPE, ev->type) ||
	    (ev->ring_id &&
	     (nla_put_u32(skb, RGATE_A_EVENT_RING_ID, ev->ring_id) ||
	      nla_put_u64_64bit(skb, RGATE_A_EVENT_FULL_EVENTS,
				ev->full_events, RGATE_A_EVENT_PAD) ||
	      nla_put_u64_64bit(skb, RGATE_A_EVENT_DROPPED, ev->dropped,
				RGATE_A_EVENT_PAD))) ||
	    (ev->att_id &&
	     (nla_put_u32(skb, RGATE_A_EVENT_ATT_ID, ev->att_id) ||
	      nla_put_u32(skb, RGATE_A_EVENT_IFINDEX, ev->ifindex)))) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/* Events are news, not state: one that cannot be sent is left out. */
static void rgate_event_send(struct net *net, const struct rgate_event_msg *ev)
{
	struct sk_buff *skb;

	lockdep_assert_held(&rgate_lock);
	if (!net || !genl_has_listeners(&rgate_genl_family, net,
					RGATE_NLGRP_EVENTS))
		return;
	skb = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb)
		return;
	if (rgate_event_put(skb, ev)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_multicast_netns(&rgate_genl_family, net, skb, 0,
				RGATE_NLGRP_EVENTS, GFP_KERNEL);
}

static void rgate_event_about(struct rgate_ring *ring,
			      struct rgate_event_msg *ev, bool *full)
{
	spin_lock_bh(&ring->lock);
	ev->ring_id = ring->id;
	ev->full_events = ring->w.prod->stats.full_events;
	ev->dropped = ring->w.prod->stats.dropped_full;
	*full = ring->w.full;
	spin_unlock_bh(&ring->lock);
}

static void rgate_event_work(struct work_struct *work)
{
	struct rgate_ring *ring = container_of(to_delayed_work(work),
					       struct rgate_ring, event_work);
	struct rgate_event_msg ev = {};
	bool full;

	mutex_lock(&rgate_lock);
	rgate_event_about(ring, &ev, &full);
	if (ev.full_events != ring->told_events) {
		ring->told_events = ev.full_events;
		ring->told_full = true;
		ev.type = RGATE_EVENT_RING_FULL;
		rgate_event_send(ring->net, &ev);
	}
	if (!full && ring->told_full) {
		ring->told_full = false;
		ev.type = RGATE_EVENT_RING_ROOM;
		rgate_event_send(ring->net, &ev);
	}
	mutex_unlock(&rgate_lock);
}

void rgate_event_init(struct rgate_ring *ring)
{
	INIT_DELAYED_WORK(&ring->event_work, rgate_event_work);
}

/* The ring became full, or has room again; any context */
void rgate_event_full(struct rgate_ring *ring)
{
	lockdep_assert_held(&ring->lock);
	schedule_delayed_work(&ring->event_work, RGATE_EVENT_DELAY);
}

/*
 * Only of rings that were attached: anybody can make and close others as fast as
 * he likes, and would drown the events that listeners wait for.
 */
void rgate_event_ring_gone(struct rgate_ring *ring)
{
	struct rgate_event_msg ev = { .type = RGATE_EVENT_RING_GONE };
	bool full;

	if (!ring->attached)
		return;
	rgate_event_about(ring, &ev, &full);
	rgate_event_send(ring->net, &ev);
}

void rgate_event_device_gone(const struct rgate_att *att)
{
	struct rgate_event_msg ev = {
		.type = RGATE_EVENT_DEVICE_GONE,
		.att_id = att->ident.id,
		.ifindex = att->ifindex,
	};

	rgate_event_send(att->net, &ev);
}
