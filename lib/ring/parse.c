// SPDX-License-Identifier: MIT OR GPL-2.0
#include <net/ethernet.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "parse.h"

/* As in the module, so that consumers see the same whoever filled the ring */
#define INNER_TAGS	2	/* the outermost tag was taken off already */
#define EXT_HEADERS	8
#define PARSE_MAX	1024U	/* bytes behind the link layer that are looked at */
#define VLAN_LEN	4U
#define IPV6_LEN	40U
#define EXT_MIN		8U	/* of an extension header */
#define ETHERTYPE_QINQ	0x88a8

struct frame {
	const uint8_t *p;
	size_t len;
};

static bool have(const struct frame *f, size_t off, size_t n)
{
	return off <= f->len && n <= f->len - off;
}

static uint16_t be16(const struct frame *f, size_t off)
{
	return (uint16_t)(f->p[off] << 8 | f->p[off + 1]);
}

static void layer4(struct rgate_slot *hdr, const struct frame *f, uint8_t proto,
		   size_t off)
{
	size_t n;

	if (off >= f->len)
		return;
	hdr->ip_proto = proto;
	hdr->l4_off = (uint16_t)off;
	switch (proto) {
	case IPPROTO_TCP:
		if (!have(f, off, 20))
			return;
		n = (size_t)(f->p[off + 12] >> 4) * 4;
		if (n < 20)
			return;
		break;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		n = 8;
		break;
	default:
		return;
	}
	if (have(f, off, n))
		hdr->payload_off = (uint16_t)(off + n);
}

static void ipv4(struct rgate_slot *hdr, const struct frame *f, size_t off)
{
	size_t n;

	if (!have(f, off, 20) || f->p[off] >> 4 != 4)
		return;
	n = (size_t)(f->p[off] & 15) * 4;
	if (n < 20 || !have(f, off, n))
		return;
	if (!(be16(f, off + 6) & 0x1fff))
		layer4(hdr, f, f->p[off + 9], off + n);
}

/* Length of an extension header at @off, 0: none of those that are skipped */
static size_t ext_len(const struct frame *f, uint8_t proto, size_t off)
{
	switch (proto) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
		return ((size_t)f->p[off + 1] + 1) * 8;
	case IPPROTO_AH:
		return ((size_t)f->p[off + 1] + 2) * 4;
	case IPPROTO_FRAGMENT:
		return 8;
	default:
		return 0;
	}
}

static void ipv6(struct rgate_slot *hdr, const struct frame *f, size_t off)
{
	uint8_t proto;
	int i;

	if (!have(f, off, IPV6_LEN) || f->p[off] >> 4 != 6)
		return;
	proto = f->p[off + 6];
	off += IPV6_LEN;
	for (i = 0; i < EXT_HEADERS && have(f, off, EXT_MIN); i++) {
		size_t n = ext_len(f, proto, off);

		if (!n) {
			if (proto != IPPROTO_NONE)
				layer4(hdr, f, proto, off);
			return;
		}
		if (proto == IPPROTO_FRAGMENT && be16(f, off + 2) & 0xfff8)
			return;
		proto = f->p[off];
		off += n;
	}
}

/* Bytes before layer 3, or -1: this link layer is not known here */
static int link_len(uint16_t dev_type)
{
	switch (dev_type) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
		return ETHER_HDR_LEN;
	case ARPHRD_NONE:
	case ARPHRD_RAWIP:
	case ARPHRD_PPP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
		return 0;
	default:
		return -1;
	}
}

void rgate_parse_frame(struct rgate_slot *hdr, const void *frame, size_t len)
{
	struct frame f = { .p = frame, .len = len };
	uint16_t proto = hdr->protocol;
	int i, link = link_len(hdr->dev_type);
	size_t off;

	hdr->l3_off = hdr->l4_off = hdr->payload_off = RGATE_OFF_NONE;
	hdr->ip_proto = 0;
	if (link < 0 || !have(&f, (size_t)link, 1))
		return;
	off = (size_t)link;
	if (len > off + PARSE_MAX)
		f.len = off + PARSE_MAX;
	for (i = 0; proto == ETHERTYPE_VLAN || proto == ETHERTYPE_QINQ; i++) {
		if (i == INNER_TAGS || !have(&f, off, VLAN_LEN))
			return;
		proto = be16(&f, off + 2);
		off += VLAN_LEN;
	}
	hdr->l3_off = (uint16_t)off;
	if (proto == ETHERTYPE_IP)
		ipv4(hdr, &f, off);
	else if (proto == ETHERTYPE_IPV6)
		ipv6(hdr, &f, off);
}
