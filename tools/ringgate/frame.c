// SPDX-License-Identifier: MIT OR GPL-2.0
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <stdbool.h>
#include <string.h>

#include "frame.h"
#include "pcapng.h"

#ifndef ARPHRD_RAWIP
#define ARPHRD_RAWIP	519
#endif
#ifndef ARPHRD_NONE
#define ARPHRD_NONE	0xfffe
#endif

#define PROTO_IPV4	0x0800
#define PROTO_IPV6	0x86dd
#define MAC_ADDRS	12	/* a tag stands behind both addresses */
#define VLAN_LEN	4
#define SLL_LEN		16

uint16_t frame_link(const struct rgate_slot *s)
{
	switch (s->dev_type) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
		return LINK_ETHERNET;
	case ARPHRD_IEEE80211:
		return LINK_IEEE802_11;
	case ARPHRD_IEEE80211_PRISM:
		return LINK_PRISM;
	case ARPHRD_IEEE80211_RADIOTAP:
		return LINK_RADIOTAP;
	case ARPHRD_NONE:
	case ARPHRD_RAWIP:
	case ARPHRD_PPP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
		/* nothing before the IP header, and nothing to hold a tag */
		if ((s->protocol == PROTO_IPV4 || s->protocol == PROTO_IPV6) &&
		    !(s->flags & RGATE_SLOT_VLAN))
			return LINK_RAW;
		return LINK_LINUX_SLL;
	default:
		return LINK_LINUX_SLL;
	}
}

static uint32_t flags_of(const struct rgate_slot *s)
{
	switch (s->pkt_type) {
	case PACKET_HOST:
		return PCAPNG_INBOUND | PCAPNG_UNICAST;
	case PACKET_BROADCAST:
		return PCAPNG_INBOUND | PCAPNG_BROADCAST;
	case PACKET_MULTICAST:
		return PCAPNG_INBOUND | PCAPNG_MULTICAST;
	case PACKET_OTHERHOST:
		return PCAPNG_INBOUND | PCAPNG_PROMISCUOUS;
	case PACKET_OUTGOING:
		return PCAPNG_OUTBOUND;
	default:
		return 0;
	}
}

static unsigned char *put_be16(unsigned char *p, uint16_t v)
{
	p[0] = v >> 8;
	p[1] = v;
	return p + 2;
}

static void add(struct frame *f, const void *data, size_t len)
{
	if (!len)
		return;
	f->iov[f->iovcnt].iov_base = (void *)data;
	f->iov[f->iovcnt++].iov_len = len;
	f->cap_len += len;
}

/* The slots' bytes but the first @skip, which the first slot has */
static void add_slots(struct frame *f, const struct rgate_consumer *c,
		      uint32_t room, uint32_t skip)
{
	unsigned int i, n = rgate_consumer_parts(c);

	for (i = 0; i < n; i++) {
		const struct rgate_slot *s = rgate_consumer_part(c, i);
		uint32_t len = s->len < room ? s->len : room;
		uint32_t from = skip < len ? skip : len;

		add(f, (const char *)rgate_slot_data(s) + from, len - from);
		skip = 0;
	}
}

static void add_vlan(struct frame *f, const struct rgate_consumer *c,
		     const struct rgate_slot *s, uint32_t room)
{
	unsigned char *p = f->extra;

	p = put_be16(p, s->vlan_proto);
	put_be16(p, s->vlan_tci);
	add(f, rgate_slot_data(s), MAC_ADDRS);
	add(f, f->extra, VLAN_LEN);
	add_slots(f, c, room, MAC_ADDRS);
	f->orig_len += VLAN_LEN;
}

/* Cooked header: packet type, ARPHRD, no address, protocol; a tag follows it */
static void add_cooked(struct frame *f, const struct rgate_slot *s)
{
	bool vlan = s->flags & RGATE_SLOT_VLAN;
	unsigned char *p = f->extra;

	memset(f->extra, 0, sizeof(f->extra));
	p = put_be16(p, s->pkt_type);
	p = put_be16(p, s->dev_type);
	p += 2 + 8;
	p = put_be16(p, vlan ? s->vlan_proto : s->protocol);
	if (vlan) {
		p = put_be16(p, s->vlan_tci);
		put_be16(p, s->protocol);
	}
	add(f, f->extra, SLL_LEN + (vlan ? VLAN_LEN : 0));
	f->orig_len += SLL_LEN + (vlan ? VLAN_LEN : 0);
}

void frame_build(struct frame *f, const struct rgate_consumer *c, uint32_t room)
{
	const struct rgate_slot *s = rgate_consumer_part(c, 0);
	uint32_t skip = 0;

	f->link = frame_link(s);
	f->flags = flags_of(s);
	f->cap_len = 0;
	f->orig_len = s->wire_len;
	f->iovcnt = 0;
	if (f->link == LINK_ETHERNET && s->flags & RGATE_SLOT_VLAN &&
	    s->len >= MAC_ADDRS) {
		add_vlan(f, c, s, room);
	} else {
		/* What stands before layer 3 has no place in these. */
		if ((f->link == LINK_RAW || f->link == LINK_LINUX_SLL) &&
		    s->l3_off != RGATE_OFF_NONE && s->l3_off <= s->len)
			skip = s->l3_off;
		f->orig_len -= skip < f->orig_len ? skip : f->orig_len;
		if (f->link == LINK_LINUX_SLL)
			add_cooked(f, s);
		add_slots(f, c, room, skip);
	}
	if (f->orig_len < f->cap_len)
		f->orig_len = f->cap_len;
}
