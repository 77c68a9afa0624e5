// SPDX-License-Identifier: MIT OR GPL-2.0
/* How the CLI makes a packet of a capture file from slots: tags, cooked headers, cuts. */
#include "unit.h"

#include <string.h>

/* It belongs to the CLI, so it is in no library. */
#include "../../tools/ringgate/frame.c"

#define ROOM 192

#define BIG_SHIFT 17	/* of slots that can hold more together than a frame may have */

static unsigned char slots[4UL << BIG_SHIFT] __attribute__((aligned(64)));
static unsigned int shift;

static int small_slots(void **state)
{
	(void)state;
	shift = 8;
	return 0;
}

static struct rgate_slot *slot(unsigned int i)
{
	return (struct rgate_slot *)(slots + ((size_t)i << shift));
}

static unsigned char *data(unsigned int i)
{
	return (unsigned char *)(slot(i) + 1);
}

/* A consumer with the first @n slots in hand, of @len bytes each, 0, 1, 2, ... */
static struct rgate_consumer in_hand(unsigned int n, uint32_t len)
{
	struct rgate_consumer c = {
		.slots = slots, .mask = 3, .lap_shift = 2, .size_shift = (uint8_t)shift, .pos = n,
	};
	unsigned int i, k;

	memset(slots, 0, sizeof(slots));
	for (i = 0; i < n; i++) {
		*slot(i) = (struct rgate_slot){
			.len = len, .wire_len = n * len, .dev_type = ARPHRD_ETHER,
			.protocol = PROTO_IPV4, .l3_off = 14, .chain_cnt = (uint8_t)n,
		};
		for (k = 0; k < len; k++)
			data(i)[k] = (unsigned char)(i * len + k);
	}
	return c;
}

static size_t flatten(const struct frame *f, unsigned char *buf)
{
	size_t len = 0;
	unsigned int i;

	for (i = 0; i < f->iovcnt; i++) {
		assert_true(f->iov[i].iov_len > 0);
		memcpy(buf + len, f->iov[i].iov_base, f->iov[i].iov_len);
		len += f->iov[i].iov_len;
	}
	assert_int_equal(len, f->cap_len);
	return len;
}

static void chained(void **state)
{
	struct rgate_consumer c = in_hand(3, ROOM);
	unsigned char buf[1024];
	struct frame f;
	size_t i;

	(void)state;
	assert_true(frame_build(&f, &c, ROOM, frame_link(slot(0))));
	assert_int_equal(f.link, LINK_ETHERNET);
	assert_int_equal(f.orig_len, 3 * ROOM);
	assert_int_equal(flatten(&f, buf), 3 * ROOM);
	for (i = 0; i < 3 * ROOM; i++)
		assert_int_equal(buf[i], (unsigned char)i);
	/* a length beyond the slot is cut there */
	slot(2)->len = UINT32_MAX;
	assert_true(frame_build(&f, &c, ROOM, frame_link(slot(0))));
	assert_int_equal(f.cap_len, 3 * ROOM);
}

static void tagged(void **state)
{
	static const unsigned char tag[] = { 0x88, 0xa8, 0x20, 0x05 };
	struct rgate_consumer c = in_hand(1, 60);
	unsigned char buf[1024];
	struct frame f;

	(void)state;
	slot(0)->flags = RGATE_SLOT_VLAN;
	slot(0)->vlan_proto = 0x88a8;
	slot(0)->vlan_tci = 0x2005;
	assert_true(frame_build(&f, &c, ROOM, frame_link(slot(0))));
	assert_int_equal(f.orig_len, 64);
	assert_int_equal(flatten(&f, buf), 64);
	assert_memory_equal(buf, slot(0) + 1, 12);
	assert_memory_equal(buf + 12, tag, 4);
	assert_memory_equal(buf + 16, (unsigned char *)(slot(0) + 1) + 12, 48);
	/* without both addresses there is no place for a tag */
	slot(0)->len = 11;
	assert_true(frame_build(&f, &c, ROOM, frame_link(slot(0))));
	assert_int_equal(f.cap_len, 11);
}

static void cooked(void **state)
{
	static const unsigned char head[] = {
		0, 4, 0x00, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0,
	};
	struct rgate_consumer c = in_hand(1, 60);
	unsigned char buf[1024];
	struct frame f;

	(void)state;
	slot(0)->dev_type = ARPHRD_INFINIBAND;
	slot(0)->pkt_type = PACKET_OUTGOING;
	assert_true(frame_build(&f, &c, ROOM, frame_link(slot(0))));
	assert_int_equal(f.link, LINK_LINUX_SLL);
	assert_int_equal(f.orig_len, 60 - 14 + 16);
	assert_int_equal(flatten(&f, buf), 60 - 14 + 16);
	assert_memory_equal(buf, head, sizeof(head));
	assert_memory_equal(buf + 16, (unsigned char *)(slot(0) + 1) + 14, 46);
}

/* Out of a tunnel: the packet alone, also where the device had a header for it */
static void raw(void **state)
{
	static const uint16_t types[] = {
		ARPHRD_NONE, ARPHRD_PPP, ARPHRD_TUNNEL, ARPHRD_TUNNEL6, ARPHRD_SIT, ARPHRD_IPGRE,
		ARPHRD_IP6GRE,
	};
	static const uint16_t headers[] = { 0, 24 };
	struct rgate_consumer c = in_hand(1, 60);
	unsigned char buf[1024];
	struct frame f;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(types); i++)
		for (k = 0; k < 2; k++) {
			slot(0)->dev_type = types[i];
			slot(0)->l3_off = headers[k];
			assert_true(frame_build(&f, &c, ROOM, frame_link(slot(0))));
			assert_int_equal(f.link, LINK_RAW);
			assert_int_equal(f.orig_len, 60 - headers[k]);
			assert_int_equal(flatten(&f, buf), 60 - headers[k]);
			assert_memory_equal(buf, data(0) + headers[k],
					    60 - headers[k]);
		}
	/* what is no IP packet cannot be told as one */
	slot(0)->protocol = 0x8847;
	assert_true(frame_build(&f, &c, ROOM, frame_link(slot(0))));
	assert_int_equal(f.link, LINK_LINUX_SLL);
}

/* A length on the wire that is less than what stands before layer 3 */
static void short_wire(void **state)
{
	struct rgate_consumer c = in_hand(1, 60);
	struct frame f;

	(void)state;
	slot(0)->dev_type = ARPHRD_NONE;
	slot(0)->wire_len = 5;
	assert_true(frame_build(&f, &c, ROOM, frame_link(slot(0))));
	assert_int_equal(f.link, LINK_RAW);
	assert_int_equal(f.cap_len, 46);
	assert_int_equal(f.orig_len, 46);
}

/* As one of @link: @head, then all but the first @skip bytes of the slot */
static void converted(struct rgate_consumer *c, uint16_t link, const void *head, size_t len,
		      size_t skip)
{
	const size_t rest = slot(0)->len - skip;
	unsigned char buf[1024];
	struct frame f;

	assert_true(frame_build(&f, c, ROOM, link));
	assert_int_equal(f.link, link);
	assert_int_equal(flatten(&f, buf), len + rest);
	assert_memory_equal(buf, head, len);
	assert_memory_equal(buf + len, data(0) + skip, rest);
	assert_int_equal(f.orig_len, len + slot(0)->wire_len - skip);
}

static void refused(struct rgate_consumer *c, uint16_t link)
{
	struct frame f;

	assert_false(frame_build(&f, c, ROOM, link));
	assert_int_equal(f.iovcnt, 0);
	assert_int_equal(f.cap_len, 0);
}

static void ethernet_to_cooked(void **state)
{
	static const unsigned char head[] = {
		0, 2, 0, 1, 0, 6, 6, 7, 8, 9, 10, 11, 0, 0, 0x08, 0,
	}, tagged_head[] = {
		0, 2, 0, 1, 0, 6, 6, 7, 8, 9, 10, 11, 0, 0, 0x81, 0, 0x20, 5, 0x08, 0,
	};
	struct rgate_consumer c = in_hand(1, 60);

	(void)state;
	slot(0)->pkt_type = PACKET_MULTICAST;
	converted(&c, LINK_LINUX_SLL, head, sizeof(head), 14);
	/* one that was cut has its length on the wire all the same */
	slot(0)->wire_len = 1000;
	converted(&c, LINK_LINUX_SLL, head, sizeof(head), 14);
	slot(0)->flags = RGATE_SLOT_VLAN;
	slot(0)->vlan_proto = 0x8100;
	slot(0)->vlan_tci = 0x2005;
	converted(&c, LINK_LINUX_SLL, tagged_head, sizeof(tagged_head), 14);
	slot(0)->len = 14;
	converted(&c, LINK_LINUX_SLL, tagged_head, sizeof(tagged_head), 14);
	slot(0)->len = 13;
	refused(&c, LINK_LINUX_SLL);
}

static void raw_to_ethernet(void **state)
{
	static const unsigned char head[14] = { [12] = 0x86, [13] = 0xdd },
		tagged_head[18] = { [12] = 0x88, [13] = 0xa8, [14] = 0x20, [15] = 5,
				    [16] = 0x86, [17] = 0xdd };
	struct rgate_consumer c = in_hand(1, 60);

	(void)state;
	slot(0)->dev_type = ARPHRD_NONE;
	slot(0)->protocol = PROTO_IPV6;
	slot(0)->l3_off = 0;
	converted(&c, LINK_ETHERNET, head, sizeof(head), 0);
	/* what is before layer 3 has no place */
	slot(0)->l3_off = 4;
	converted(&c, LINK_ETHERNET, head, sizeof(head), 4);
	slot(0)->l3_off = 60;
	converted(&c, LINK_ETHERNET, head, sizeof(head), 60);
	slot(0)->l3_off = 61;
	converted(&c, LINK_ETHERNET, head, sizeof(head), 0);
	slot(0)->l3_off = RGATE_OFF_NONE;
	converted(&c, LINK_ETHERNET, head, sizeof(head), 0);
	slot(0)->flags = RGATE_SLOT_VLAN;
	slot(0)->vlan_proto = 0x88a8;
	slot(0)->vlan_tci = 0x2005;
	slot(0)->l3_off = 0;
	converted(&c, LINK_ETHERNET, tagged_head, sizeof(tagged_head), 0);
}

static void to_raw(void **state)
{
	struct rgate_consumer c = in_hand(1, 60);

	(void)state;
	converted(&c, LINK_RAW, "", 0, 14);
	slot(0)->protocol = PROTO_IPV6;
	converted(&c, LINK_RAW, "", 0, 14);
	/* what is no IP packet, or has a tag, is none with nothing before it */
	slot(0)->protocol = 0x0806;
	refused(&c, LINK_RAW);
	slot(0)->protocol = PROTO_IPV4;
	slot(0)->flags = RGATE_SLOT_VLAN;
	refused(&c, LINK_RAW);
}

static void radio(void **state)
{
	static const unsigned char head[14] = { [12] = 0x08 };
	struct rgate_consumer c = in_hand(1, 60);

	(void)state;
	refused(&c, LINK_IEEE802_11);
	refused(&c, LINK_PRISM);
	refused(&c, LINK_RADIOTAP);
	slot(0)->dev_type = ARPHRD_IEEE80211_RADIOTAP;
	slot(0)->l3_off = 40;
	converted(&c, LINK_RADIOTAP, "", 0, 0);
	converted(&c, LINK_ETHERNET, head, sizeof(head), 40);
	refused(&c, LINK_PRISM);
	slot(0)->l3_off = RGATE_OFF_NONE;
	converted(&c, LINK_RADIOTAP, "", 0, 0);
	refused(&c, LINK_ETHERNET);
	refused(&c, LINK_LINUX_SLL);
}

/* Slots of which the third holds what is left of the longest frame, and the fourth too much */
static void too_long(void **state)
{
	static unsigned char buf[FRAME_SNAPLEN];
	const uint32_t room = (1U << BIG_SHIFT) - RGATE_SLOT_HDR;
	struct rgate_consumer c;
	struct frame f;
	uint32_t i;

	(void)state;
	shift = BIG_SHIFT;
	c = in_hand(4, room);
	assert_true(frame_build(&f, &c, room, LINK_ETHERNET));
	assert_int_equal(f.cap_len, FRAME_SNAPLEN);
	assert_int_equal(f.orig_len, 4 * room);
	assert_int_equal(f.iovcnt, 3);
	flatten(&f, buf);
	for (i = 0; i < FRAME_SNAPLEN; i++)
		if (buf[i] != (unsigned char)i)
			fail_msg("byte %u is %u", i, buf[i]);
	/* as long as it may be, and one more */
	slot(0)->chain_cnt = 3;
	c.pos = 3;
	slot(2)->len = FRAME_SNAPLEN - 2 * room;
	slot(0)->wire_len = FRAME_SNAPLEN;
	assert_true(frame_build(&f, &c, room, LINK_ETHERNET));
	assert_int_equal(f.cap_len, FRAME_SNAPLEN);
	assert_int_equal(f.iov[2].iov_len, slot(2)->len);
	slot(2)->len++;
	slot(0)->wire_len++;
	assert_true(frame_build(&f, &c, room, LINK_ETHERNET));
	assert_int_equal(f.cap_len, FRAME_SNAPLEN);
	assert_int_equal(f.orig_len, FRAME_SNAPLEN + 1);
	assert_int_equal(f.iov[2].iov_len, slot(2)->len - 1);
	/* the header that was put in front counts, too */
	assert_true(frame_build(&f, &c, room, LINK_LINUX_SLL));
	assert_int_equal(f.cap_len, FRAME_SNAPLEN);
	assert_int_equal(f.orig_len, FRAME_SNAPLEN + 1 - 14 + 16);
	assert_int_equal(f.iov[3].iov_len, slot(2)->len - 1 - 2);
	/* where layer 3 is not known nothing is before it, however long the slot is */
	slot(0)->dev_type = ARPHRD_NONE;
	slot(0)->l3_off = RGATE_OFF_NONE;
	assert_true(frame_build(&f, &c, room, LINK_ETHERNET));
	assert_int_equal(f.orig_len, FRAME_SNAPLEN + 1 + 14);
}

static void directions(void **state)
{
	static const struct {
		unsigned int pkt_type;
		uint32_t flags;
	} rows[] = {
		{ PACKET_HOST, PCAPNG_INBOUND | PCAPNG_UNICAST },
		{ PACKET_BROADCAST, PCAPNG_INBOUND | PCAPNG_BROADCAST },
		{ PACKET_MULTICAST, PCAPNG_INBOUND | PCAPNG_MULTICAST },
		{ PACKET_OTHERHOST, PCAPNG_INBOUND | PCAPNG_PROMISCUOUS },
		{ PACKET_OUTGOING, PCAPNG_OUTBOUND },
		{ 77, 0 },
	};
	struct rgate_consumer c = in_hand(1, 60);
	struct frame f;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		slot(0)->pkt_type = (uint8_t)rows[i].pkt_type;
		assert_true(frame_build(&f, &c, ROOM, LINK_ETHERNET));
		assert_int_equal(f.flags, rows[i].flags);
	}
}

static void link_types(void **state)
{
	static const struct {
		uint16_t dev_type, protocol, flags, link;
	} rows[] = {
		{ ARPHRD_ETHER, 0x0806, RGATE_SLOT_VLAN, LINK_ETHERNET },
		{ ARPHRD_LOOPBACK, PROTO_IPV4, 0, LINK_ETHERNET },
		{ ARPHRD_IEEE80211, PROTO_IPV4, 0, LINK_IEEE802_11 },
		{ ARPHRD_IEEE80211_PRISM, PROTO_IPV4, 0, LINK_PRISM },
		{ ARPHRD_IEEE80211_RADIOTAP, PROTO_IPV4, 0, LINK_RADIOTAP },
		{ ARPHRD_NONE, PROTO_IPV4, 0, LINK_RAW },
		{ ARPHRD_RAWIP, PROTO_IPV6, 0, LINK_RAW },
		{ ARPHRD_PPP, PROTO_IPV4, 0, LINK_RAW },
		{ ARPHRD_TUNNEL, PROTO_IPV4, 0, LINK_RAW },
		{ ARPHRD_TUNNEL6, PROTO_IPV6, 0, LINK_RAW },
		{ ARPHRD_SIT, PROTO_IPV6, 0, LINK_RAW },
		{ ARPHRD_SIT, PROTO_IPV6, RGATE_SLOT_VLAN, LINK_LINUX_SLL },
		{ ARPHRD_NONE, 0x0806, 0, LINK_LINUX_SLL },
		{ ARPHRD_IPGRE, PROTO_IPV4, 0, LINK_RAW },
		{ ARPHRD_IP6GRE, PROTO_IPV6, 0, LINK_RAW },
		{ ARPHRD_IPGRE, 0x6558, 0, LINK_LINUX_SLL },
		{ ARPHRD_INFINIBAND, PROTO_IPV4, 0, LINK_LINUX_SLL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct rgate_slot s = {
			.dev_type = rows[i].dev_type, .protocol = rows[i].protocol,
			.flags = rows[i].flags,
		};

		assert_int_equal(frame_link(&s), rows[i].link);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(chained, small_slots),
	cmocka_unit_test_setup(tagged, small_slots),
	cmocka_unit_test_setup(cooked, small_slots),
	cmocka_unit_test_setup(raw, small_slots),
	cmocka_unit_test_setup(short_wire, small_slots),
	cmocka_unit_test_setup(ethernet_to_cooked, small_slots),
	cmocka_unit_test_setup(raw_to_ethernet, small_slots),
	cmocka_unit_test_setup(to_raw, small_slots),
	cmocka_unit_test_setup(radio, small_slots),
	cmocka_unit_test(too_long),
	cmocka_unit_test_setup(directions, small_slots),
	cmocka_unit_test(link_types),
};

UNIT_MAIN_ALONE(tests)
