// SPDX-License-Identifier: MIT OR GPL-2.0
/* What of a frame rules look at, to the byte, and what makes a flow */
#include "unit.h"

#include <errno.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <string.h>

#include "steer.h"

#define ROOM	1984U
#define HEAD	512U	/* as far as frames are rebuilt */

struct frame {
	struct rgate_slot hdr;
	unsigned char data[ROOM];
};

static struct rgate_cluster *cluster;

static int setup(void **state)
{
	static const char text[] = "provider local\nnode 0 gateway /s/0 gw\n"
				   "node 1 compute /s/1 one\n" UNIT_KEY_LINE(0) UNIT_KEY_LINE(1);

	(void)state;
	return rgate_cluster_parse(&cluster, "test", text, sizeof(text) - 1);
}

static int teardown(void **state)
{
	(void)state;
	rgate_cluster_destroy(cluster);
	return 0;
}

/* Does a rule of this filter match? */
static bool takes(const struct frame *f, const char *filter)
{
	struct rgate_steer *s;
	char line[128];
	bool does;

	snprintf(line, sizeof(line), "x drop %s", filter);
	assert_int_equal(rgate_steer_create(&s, cluster), 0);
	assert_int_equal(rgate_steer_add(s, line, NULL, NULL, 0), 0);
	does = rgate_steer_match(s, 0, &f->hdr, ROOM);
	rgate_steer_destroy(s);
	return does;
}

/* Byte @at is there, and is @value */
static bool has(const struct frame *f, unsigned int at, unsigned int value)
{
	char filter[64];

	snprintf(filter, sizeof(filter), "ether[%u] = %u", at, value);
	return takes(f, filter);
}

/* Are there exactly @len bytes? */
static bool is_long(const struct frame *f, unsigned int len)
{
	char last[64], behind[64];

	snprintf(last, sizeof(last), "ether[%u] >= 0", len - 1);
	snprintf(behind, sizeof(behind), "ether[%u] >= 0", len);
	return takes(f, last) && !takes(f, behind);
}

/* Bytes that tell where they are from */
static void numbered(struct frame *f, uint32_t len)
{
	unsigned int i;

	memset(f, 0, sizeof(*f));
	for (i = 0; i < ROOM; i++)
		f->data[i] = (unsigned char)(i % 251 + 1);
	f->hdr.len = f->hdr.wire_len = len;
	f->hdr.dev_type = ARPHRD_ETHER;
	f->hdr.protocol = 0x0800;
}

static void whole(void **state)
{
	struct frame f;

	(void)state;
	numbered(&f, 100);
	assert_true(is_long(&f, 100));
	assert_true(has(&f, 99, 100));
	assert_true(takes(&f, "greater 100"));
	assert_false(takes(&f, "greater 101"));
	/* What was cut off counts as length, and is no bytes. */
	f.hdr.wire_len = 1000;
	assert_true(takes(&f, "greater 1000"));
	assert_true(is_long(&f, 100));
	f.hdr.len = f.hdr.wire_len = ROOM + 1;
	assert_true(is_long(&f, ROOM));
}

/* With the tag that its device took off */
static void tagged(void **state)
{
	static const struct {
		uint32_t len, rebuilt;
	} cases[] = {
		{ 5, 5 }, { 11, 11 }, { 12, 12 }, { 13, 12 }, { 14, 18 }, { 15, 19 }, { 100, 104 },
		{ HEAD - 1, HEAD + 3 }, { HEAD, HEAD + 4 }, { HEAD + 1, HEAD + 4 },
		{ 1500, HEAD + 4 },
	};
	struct frame f;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		numbered(&f, cases[i].len);
		f.hdr.flags = RGATE_SLOT_VLAN;
		f.hdr.vlan_proto = 0x88a8;
		f.hdr.vlan_tci = 0x1234;
		if (!is_long(&f, cases[i].rebuilt))
			fail_msg("%u bytes do not become %u", cases[i].len, cases[i].rebuilt);
		assert_true(has(&f, 0, 1));
		assert_true(has(&f, 4, 5));
		if (cases[i].rebuilt < 18)
			continue;
		assert_true(has(&f, 11, 12));
		assert_true(takes(&f, "ether[12:4] = 0x88a81234"));
		assert_true(has(&f, 16, 13));
		assert_true(has(&f, 17, 14));
		assert_true(has(&f, cases[i].rebuilt - 1, (cases[i].rebuilt - 5) % 251 + 1));
		if (cases[i].len == 1500)
			assert_true(takes(&f, "greater 1500"));
	}
}

/* Of a device that is no Ethernet: with a header of nobody, from layer 3 on */
static void headless(void **state)
{
	static const struct {
		uint32_t len, l3_off, skipped;
	} cases[] = {
		{ 60, 0, 0 }, { 60, 4, 4 }, { 60, 59, 59 }, { 60, 60, 60 }, { 60, 61, 0 },
		{ 60, RGATE_OFF_NONE, 0 }, { HEAD, 4, 4 }, { HEAD + 1, 4, 4 }, { 1500, 20, 20 },
	};
	struct frame f;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t seen = HEAD, rebuilt;

		if (cases[i].len < HEAD)
			seen = cases[i].len;
		rebuilt = 14 + seen - cases[i].skipped;
		numbered(&f, cases[i].len);
		f.hdr.dev_type = ARPHRD_NONE;
		f.hdr.protocol = 0x86dd;
		f.hdr.l3_off = (uint16_t)cases[i].l3_off;
		if (!is_long(&f, rebuilt))
			fail_msg("%u bytes, layer 3 at %u", cases[i].len, cases[i].l3_off);
		assert_true(takes(&f, "ether[0:4] = 0 and ether[4:4] = 0 and ether[8:4] = 0"));
		assert_true(takes(&f, "ether[12:2] = 0x86dd"));
		if (rebuilt == 14)
			continue;
		assert_true(has(&f, 14, cases[i].skipped % 251 + 1));
		assert_true(has(&f, rebuilt - 1, (seen - 1) % 251 + 1));
	}
	/* that of loopback is one */
	numbered(&f, 60);
	f.hdr.dev_type = ARPHRD_LOOPBACK;
	f.hdr.l3_off = 14;
	assert_true(has(&f, 0, 1));
}

static void put16(unsigned char *at, unsigned int v)
{
	at[0] = (unsigned char)(v >> 8);
	at[1] = (unsigned char)v;
}

/* 100 bytes of Ethernet; the two ends by a byte and a port each */
static struct frame packet(unsigned int version, unsigned int proto, unsigned int a,
			   unsigned int pa, unsigned int b, unsigned int pb)
{
	struct frame f = { .hdr = { .len = 100, .wire_len = 100, .dev_type = ARPHRD_ETHER,
				    .l3_off = 14, .ip_proto = (uint8_t)proto } };
	unsigned char *ip = f.data + 14;

	f.hdr.protocol = version == 4 ? 0x0800 : 0x86dd;
	f.hdr.l4_off = version == 4 ? 34 : 54;
	ip[0] = (unsigned char)(version << 4 | 5);
	ip[version == 4 ? 9 : 6] = (unsigned char)proto;
	ip[version == 4 ? 15 : 23] = (unsigned char)a;
	ip[version == 4 ? 19 : 39] = (unsigned char)b;
	put16(f.data + f.hdr.l4_off, pa);
	put16(f.data + f.hdr.l4_off + 2, pb);
	return f;
}

static uint64_t flow(struct frame f)
{
	return rgate_steer_flow(&f.hdr, ROOM);
}

static uint64_t flow_of_first(struct frame f, uint32_t len)
{
	f.hdr.len = len;
	return rgate_steer_flow(&f.hdr, ROOM);
}

/* Both directions are one flow, whichever end is the smaller, by whatever it is. */
static void both_ways(void **state)
{
	static const unsigned int versions[] = { 4, 6 };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(versions); i++) {
		const unsigned int v = versions[i];

		assert_int_equal(flow(packet(v, IPPROTO_UDP, 1, 9, 2, 5)),
				 flow(packet(v, IPPROTO_UDP, 2, 5, 1, 9)));
		assert_int_equal(flow(packet(v, IPPROTO_UDP, 1, 5, 2, 9)),
				 flow(packet(v, IPPROTO_UDP, 2, 9, 1, 5)));
		assert_int_equal(flow(packet(v, IPPROTO_UDP, 1, 5, 2, 5)),
				 flow(packet(v, IPPROTO_UDP, 2, 5, 1, 5)));
		assert_int_equal(flow(packet(v, IPPROTO_UDP, 1, 5, 1, 9)),
				 flow(packet(v, IPPROTO_UDP, 1, 9, 1, 5)));
		assert_int_not_equal(flow(packet(v, IPPROTO_UDP, 1, 5, 2, 9)),
				     flow(packet(v, IPPROTO_UDP, 1, 9, 2, 5)));
		assert_int_not_equal(flow(packet(v, IPPROTO_UDP, 1, 5, 2, 9)),
				     flow(packet(v, IPPROTO_TCP, 1, 5, 2, 9)));
	}
}

/* Ports are those of protocols that have some, and of frames that have them whole. */
static void ported(void **state)
{
	static const unsigned int with[] = { IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP,
					     IPPROTO_UDPLITE };
	static const unsigned int without[] = { IPPROTO_ICMP, IPPROTO_GRE, IPPROTO_ESP };
	struct frame f, g;
	unsigned int i, v;

	(void)state;
	for (v = 4; v <= 6; v += 2) {
		for (i = 0; i < ARRAY_LEN(with); i++)
			assert_int_not_equal(flow(packet(v, with[i], 1, 5, 2, 9)),
					     flow(packet(v, with[i], 1, 5, 2, 8)));
		for (i = 0; i < ARRAY_LEN(without); i++)
			assert_int_equal(flow(packet(v, without[i], 1, 5, 2, 9)),
					 flow(packet(v, without[i], 1, 4, 2, 8)));
		f = packet(v, IPPROTO_UDP, 1, 5, 2, 9);
		g = packet(v, IPPROTO_UDP, 1, 4, 2, 8);
		assert_int_not_equal(flow_of_first(f, f.hdr.l4_off + 4U),
				     flow_of_first(g, g.hdr.l4_off + 4U));
		assert_int_equal(flow_of_first(f, f.hdr.l4_off + 3U),
				 flow_of_first(g, g.hdr.l4_off + 3U));
		/* What follows them is no part of it. */
		g = f;
		memset(g.data + g.hdr.l4_off + 4, 7, 20);
		assert_int_equal(flow(f), flow(g));
	}
	/* a fragment of IPv6, the first of which has ports */
	f = packet(6, IPPROTO_UDP, 1, 5, 2, 9);
	f.data[20] = IPPROTO_FRAGMENT;
	g = packet(6, 0, 1, 0, 2, 0);
	g.data[20] = IPPROTO_FRAGMENT;
	assert_int_equal(flow(f), flow(g));
}

/* Frames whose header of layer 3 is not whole, or is none, go by their hardware addresses. */
static void by_hardware(void **state)
{
	struct frame f, g;
	unsigned int v, end;

	(void)state;
	for (v = 4; v <= 6; v += 2) {
		end = v == 4 ? 34 : 54;
		f = packet(v, IPPROTO_UDP, 1, 5, 2, 9);
		g = f;
		g.data[5] = 1;
		assert_int_equal(flow_of_first(f, end), flow_of_first(g, end));
		assert_int_not_equal(flow_of_first(f, end - 1), flow_of_first(g, end - 1));
	}
	/* What looks like a header counts where the protocol says so. */
	f = packet(4, IPPROTO_UDP, 1, 5, 2, 9);
	g = packet(4, IPPROTO_UDP, 3, 6, 4, 7);
	f.hdr.protocol = g.hdr.protocol = 0x0806;
	assert_int_equal(flow(f), flow(g));
	f = packet(4, 0, 0, 0, 0, 0);
	f.hdr.protocol = 0x0806;
	f.hdr.l3_off = RGATE_OFF_NONE;
	f.data[5] = 1;
	g = f;
	g.data[5] = 0;
	g.data[11] = 1;
	assert_int_equal(flow(f), flow(g));
	g.data[11] = 2;
	assert_int_not_equal(flow(f), flow(g));
	assert_int_not_equal(flow_of_first(f, 14), flow_of_first(g, 14));
	assert_int_equal(flow_of_first(f, 13), flow_of_first(g, 13));
	g = f;
	g.hdr.protocol = 0x0807;
	assert_int_not_equal(flow(f), flow(g));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(whole, setup, teardown),
	cmocka_unit_test_setup_teardown(tagged, setup, teardown),
	cmocka_unit_test_setup_teardown(headless, setup, teardown),
	cmocka_unit_test(both_ways),
	cmocka_unit_test(ported),
	cmocka_unit_test(by_hardware),
};

UNIT_MAIN_ALONE(tests)
