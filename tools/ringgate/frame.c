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
#ifndef ARPHRD_IP6GRE
#define ARPHRD_IP6GRE	823
#endif
#ifndef ARPHRD_NONE
#define ARPHRD_NONE	0xfffe
#endif

#define PROTO_IPV4	0x0800
#define PROTO_IPV6	0x86dd
#define MAC_LEN		6
#define MAC_ADDRS	12	/* a tag stands behind both addresses */
#define ETH_LEN		14
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
	case ARPHRD_IPGRE:
	case ARPHRD_IP6GRE:
		/* nothing to keep before the IP header, or to hold a tag */
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

/* The end of a header: a tag, if there is one, and the protocol */
static unsigned char *put_protocol(unsigned char *p, const struct rgate_slot *s)
{
	if (s->flags & RGATE_SLOT_VLAN) {
		p = put_be16(p, s->vlan_proto);
		p = put_be16(p, s->vlan_tci);
	}
	return put_be16(p, s->protocol);
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

/* An Ethernet header without addresses */
static uint32_t make_ethernet(struct frame *f, const struct rgate_slot *s)
{
	memset(f->extra, 0, sizeof(f->extra));
	return (uint32_t)(put_protocol(f->extra + MAC_ADDRS, s) - f->extra);
}

/* Cooked header: packet type, ARPHRD, the sender's address where it is known, protocol */
static uint32_t make_cooked(struct frame *f, const struct rgate_slot *s, bool ethernet)
{
	unsigned char *p = f->extra;

	memset(f->extra, 0, sizeof(f->extra));
	p = put_be16(p, s->pkt_type);
	p = put_be16(p, s->dev_type);
	if (ethernet) {
		put_be16(p, MAC_LEN);
		memcpy(p + 2, (const unsigned char *)rgate_slot_data(s) + MAC_LEN, MAC_LEN);
	}
	p += 2 + 8;
	return (uint32_t)(put_protocol(p, s) - f->extra);
}

/* Bytes in front of layer 3, which have no place in a frame of another link type */
static uint32_t before_l3(const struct rgate_slot *s, uint16_t natural)
{
	if (natural == LINK_ETHERNET)
		return ETH_LEN;
	return s->l3_off != RGATE_OFF_NONE && s->l3_off <= s->len ? s->l3_off : 0;
}

/* Of the frames that begin with a radio's header only those whose layer 3 is known */
static bool is_radio(uint16_t link)
{
	return link == LINK_IEEE802_11 || link == LINK_PRISM || link == LINK_RADIOTAP;
}

static bool fits(const struct rgate_slot *s, uint16_t natural, uint16_t link)
{
	if (link == natural)
		return true;
	if (is_radio(link) || (natural == LINK_ETHERNET && s->len < ETH_LEN) ||
	    (is_radio(natural) && s->l3_off == RGATE_OFF_NONE))
		return false;
	return link != LINK_RAW || (!(s->flags & RGATE_SLOT_VLAN) &&
				    (s->protocol == PROTO_IPV4 || s->protocol == PROTO_IPV6));
}

/* Readers refuse longer ones. */
static void cut(struct frame *f)
{
	while (f->cap_len > FRAME_SNAPLEN) {
		struct iovec *last = &f->iov[f->iovcnt - 1];
		const uint32_t over = f->cap_len - FRAME_SNAPLEN;
		const uint32_t n = last->iov_len < over ? (uint32_t)last->iov_len : over;

		last->iov_len -= n;
		f->cap_len -= n;
		f->iovcnt -= !last->iov_len;
	}
}

bool frame_build(struct frame *f, const struct rgate_consumer *c, uint32_t room, uint16_t link)
{
	const struct rgate_slot *s = rgate_consumer_part(c, 0);
	const uint16_t natural = frame_link(s);
	uint32_t skip = 0, head = 0;

	f->link = link;
	f->flags = flags_of(s);
	f->cap_len = 0;
	f->orig_len = s->wire_len;
	f->iovcnt = 0;
	if (!fits(s, natural, link))
		return false;
	if (link == natural && link == LINK_ETHERNET && s->flags & RGATE_SLOT_VLAN &&
	    s->len >= MAC_ADDRS) {
		add_vlan(f, c, s, room);
	} else {
		if (link != natural || link == LINK_RAW || link == LINK_LINUX_SLL)
			skip = before_l3(s, natural);
		f->orig_len -= skip < f->orig_len ? skip : f->orig_len;
		if (link == LINK_LINUX_SLL)
			head = make_cooked(f, s, natural == LINK_ETHERNET);
		else if (link == LINK_ETHERNET && natural != link)
			head = make_ethernet(f, s);
		add(f, f->extra, head);
		f->orig_len += head;
		add_slots(f, c, room, skip);
	}
	cut(f);
	if (f->orig_len < f->cap_len)
		f->orig_len = f->cap_len;
	return true;
}
