// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: header offsets. Packets lie in allocations of exactly their length, so
 * that a byte read behind the end is seen by KASAN.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <ringgate/ring.h>
#include "parse.h"

#define NONE	RGATE_OFF_NONE

static const struct {
	const char *name;
	u16 proto;
	u8 len;
	u8 data[96];
	u16 l3, l4, payload;
	u8 ip_proto;
} rgate_packets[] = {
	{ "IPv4 UDP", ETH_P_IP, 32,
	  { 0x45, [9] = 17, [20] = 1 }, 14, 34, 42, 17 },
	{ "IPv4 UDP with options", ETH_P_IP, 40,
	  { 0x47, [9] = 17 }, 14, 42, 50, 17 },
	{ "IPv4 TCP with options", ETH_P_IP, 60,
	  { 0x45, [9] = 6, [32] = 0x80 }, 14, 34, 66, 6 },
	{ "IPv4 TCP, header too short", ETH_P_IP, 60,
	  { 0x45, [9] = 6, [32] = 0x40 }, 14, 34, NONE, 6 },
	{ "IPv4 first fragment", ETH_P_IP, 40,
	  { 0x45, [6] = 0x20, [9] = 17 }, 14, 34, 42, 17 },
	{ "IPv4 later fragment", ETH_P_IP, 40,
	  { 0x45, [6] = 0x00, [7] = 0x10, [9] = 17 }, 14, NONE, NONE, 0 },
	{ "IPv4, header length 4", ETH_P_IP, 40,
	  { 0x41, [9] = 17 }, 14, NONE, NONE, 0 },
	{ "IPv4 that is none", ETH_P_IP, 40,
	  { 0x65, [9] = 17 }, 14, NONE, NONE, 0 },
	{ "IPv4 protocol without ports", ETH_P_IP, 40,
	  { 0x45, [9] = 47 }, 14, 34, NONE, 47 },
	{ "IPv6 UDP", ETH_P_IPV6, 56,
	  { 0x60, [6] = 17 }, 14, 54, 62, 17 },
	{ "IPv6 hop-by-hop, destination, UDP", ETH_P_IPV6, 80,
	  { 0x60, [6] = 0, [40] = 60, [48] = 17, [49] = 1 }, 14, 78, 86, 17 },
	{ "IPv6 first fragment", ETH_P_IPV6, 64,
	  { 0x60, [6] = 44, [40] = 17, [43] = 1 }, 14, 62, 70, 17 },
	{ "IPv6 later fragment", ETH_P_IPV6, 64,
	  { 0x60, [6] = 44, [40] = 17, [43] = 8 }, 14, NONE, NONE, 0 },
	{ "IPv6 without next header", ETH_P_IPV6, 56,
	  { 0x60, [6] = 59 }, 14, NONE, NONE, 0 },
	{ "inner VLAN tag", ETH_P_8021Q, 36,
	  { 0, 5, 0x08, 0x00, 0x45, [13] = 17 }, 18, 38, 46, 17 },
	{ "three inner VLAN tags", ETH_P_8021Q, 50,
	  { 0, 5, 0x81, 0, 0, 6, 0x81, 0, 0, 7, 8, 0, 0x45 },
	  NONE, NONE, NONE, 0 },
	{ "ARP", ETH_P_ARP, 28, { 0, 1 }, 14, NONE, NONE, 0 },
};

static struct rgate_offsets rgate_parse_copy(struct kunit *test, const void *data,
					     u32 len, u16 proto)
{
	struct rgate_offsets o;
	u8 *copy = kmalloc(len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, data, len);
	o = rgate_parse(copy, len, htons(proto), ETH_HLEN);
	kfree(copy);
	return o;
}

static void rgate_parse_known(struct kunit *test)
{
	struct rgate_offsets o;
	int i;

	for (i = 0; i < ARRAY_SIZE(rgate_packets); i++) {
		o = rgate_parse_copy(test, rgate_packets[i].data,
				     rgate_packets[i].len, rgate_packets[i].proto);
		KUNIT_EXPECT_EQ_MSG(test, o.l3, rgate_packets[i].l3, "%s",
				    rgate_packets[i].name);
		KUNIT_EXPECT_EQ_MSG(test, o.l4, rgate_packets[i].l4, "%s",
				    rgate_packets[i].name);
		KUNIT_EXPECT_EQ_MSG(test, o.payload, rgate_packets[i].payload, "%s",
				    rgate_packets[i].name);
		KUNIT_EXPECT_EQ_MSG(test, o.ip_proto, rgate_packets[i].ip_proto,
				    "%s", rgate_packets[i].name);
	}
}

/* What is known of a packet that was cut lies inside of what is left */
static void rgate_parse_inside(struct kunit *test, struct rgate_offsets o, u32 len)
{
	if (o.l4 != NONE) {
		KUNIT_EXPECT_LT(test, o.l3, o.l4);
		KUNIT_EXPECT_LT(test, o.l4, ETH_HLEN + len);
	}
	if (o.payload != NONE) {
		KUNIT_EXPECT_LT(test, o.l4, o.payload);
		KUNIT_EXPECT_LE(test, o.payload, ETH_HLEN + len);
	}
}

static void rgate_parse_cut(struct kunit *test)
{
	u32 len;
	int i;

	for (i = 0; i < ARRAY_SIZE(rgate_packets); i++)
		for (len = 1; len < rgate_packets[i].len; len++)
			rgate_parse_inside(test,
					   rgate_parse_copy(test,
							    rgate_packets[i].data,
							    len,
							    rgate_packets[i].proto),
					   len);
}

static void rgate_parse_random(struct kunit *test)
{
	static const u16 protos[] = { ETH_P_IP, ETH_P_IPV6, ETH_P_8021Q, ETH_P_8021AD };
	/* next headers that lead on, so that chains are long */
	static const u8 next[] = { 0, 43, 44, 51, 60, 6, 17 };
	struct rnd_state rnd;
	u8 data[256];
	u32 len;
	int i;

	prandom_seed_state(&rnd, 0x7061);
	for (i = 0; i < 20000; i++) {
		len = 1 + prandom_u32_state(&rnd) % sizeof(data);
		prandom_bytes_state(&rnd, data, len);
		data[0] = i % 2 ? 0x45 : 0x60;
		if (len > 41) {
			data[6] = next[prandom_u32_state(&rnd) % ARRAY_SIZE(next)];
			data[40] = next[prandom_u32_state(&rnd) % ARRAY_SIZE(next)];
			data[41] %= 8;
		}
		rgate_parse_inside(test,
				   rgate_parse_copy(test, data, len, protos[i % 4]),
				   len);
	}
}

static struct kunit_case rgate_parse_cases[] = {
	KUNIT_CASE(rgate_parse_known),
	KUNIT_CASE(rgate_parse_cut),
	KUNIT_CASE(rgate_parse_random),
	{}
};

static struct kunit_suite rgate_parse_suite = {
	.name = "ringgate-parse",
	.test_cases = rgate_parse_cases,
};

kunit_test_suite(rgate_parse_suite);
