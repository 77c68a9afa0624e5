// SPDX-License-Identifier: MIT OR GPL-2.0
/* How the CLI makes a packet of a capture file from slots: tags, cooked headers, cuts. */
#include "unit.h"

#include <string.h>

/* It belongs to the CLI, so it is in no library. */
#include "../../tools/ringgate/frame.c"

#define ROOM 192

static unsigned char slots[4 * 256] __attribute__((aligned(64)));

static struct rgate_slot *slot(unsigned int i)
{
	return (struct rgate_slot *)(slots + (size_t)i * 256);
}

/* A consumer with the first @n slots in hand, of @len bytes each, 0, 1, 2, ... */
static struct rgate_consumer in_hand(unsigned int n, uint32_t len)
{
	struct rgate_consumer c = {
		.slots = slots, .mask = 3, .lap_shift = 2, .size_shift = 8, .pos = n,
	};
	unsigned int i, k;

	memset(slots, 0, sizeof(slots));
	for (i = 0; i < n; i++) {
		*slot(i) = (struct rgate_slot){
			.len = len, .wire_len = n * len, .dev_type = ARPHRD_ETHER,
			.protocol = PROTO_IPV4, .l3_off = 14, .chain_cnt = (uint8_t)n,
		};
		for (k = 0; k < len; k++)
			((unsigned char *)(slot(i) + 1))[k] = (unsigned char)(i * len + k);
	}
	return c;
}

static size_t flatten(const struct frame *f, unsigned char *buf)
{
	size_t len = 0;
	unsigned int i;

	for (i = 0; i < f->iovcnt; i++) {
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
	frame_build(&f, &c, ROOM);
	assert_int_equal(f.link, LINK_ETHERNET);
	assert_int_equal(f.orig_len, 3 * ROOM);
	assert_int_equal(flatten(&f, buf), 3 * ROOM);
	for (i = 0; i < 3 * ROOM; i++)
		assert_int_equal(buf[i], (unsigned char)i);
	/* a length beyond the slot is cut there */
	slot(2)->len = UINT32_MAX;
	frame_build(&f, &c, ROOM);
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
	frame_build(&f, &c, ROOM);
	assert_int_equal(f.orig_len, 64);
	assert_int_equal(flatten(&f, buf), 64);
	assert_memory_equal(buf, slot(0) + 1, 12);
	assert_memory_equal(buf + 12, tag, 4);
	assert_memory_equal(buf + 16, (unsigned char *)(slot(0) + 1) + 12, 48);
	/* without both addresses there is no place for a tag */
	slot(0)->len = 11;
	frame_build(&f, &c, ROOM);
	assert_int_equal(f.cap_len, 11);
}

static void cooked(void **state)
{
	static const unsigned char head[] = {
		0, 4, 0x03, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0,
	};
	struct rgate_consumer c = in_hand(1, 60);
	unsigned char buf[1024];
	struct frame f;

	(void)state;
	slot(0)->dev_type = 778;	/* ARPHRD_IPGRE */
	slot(0)->pkt_type = PACKET_OUTGOING;
	frame_build(&f, &c, ROOM);
	assert_int_equal(f.link, LINK_LINUX_SLL);
	assert_int_equal(f.orig_len, 60 - 14 + 16);
	assert_int_equal(flatten(&f, buf), 60 - 14 + 16);
	assert_memory_equal(buf, head, sizeof(head));
	assert_memory_equal(buf + 16, (unsigned char *)(slot(0) + 1) + 14, 46);
}

/* A length on the wire that is less than what stands before layer 3 */
static void short_wire(void **state)
{
	struct rgate_consumer c = in_hand(1, 60);
	struct frame f;

	(void)state;
	slot(0)->dev_type = ARPHRD_NONE;
	slot(0)->wire_len = 5;
	frame_build(&f, &c, ROOM);
	assert_int_equal(f.link, LINK_RAW);
	assert_int_equal(f.cap_len, 46);
	assert_int_equal(f.orig_len, 46);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(chained),
	cmocka_unit_test(tagged),
	cmocka_unit_test(cooked),
	cmocka_unit_test(short_wire),
};

UNIT_MAIN(tests)
