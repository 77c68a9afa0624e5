// SPDX-License-Identifier: MIT OR GPL-2.0
/* Steering rules: their text, what they match, and where flows go. */
#include "unit.h"

#include <errno.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "steer.h"

#define ROOM	1984U
#define LINE_BYTES	2048	/* a rule has fewer */

static struct rgate_cluster *cluster;

static int setup(void **state)
{
	static const char text[] = "provider local\nnode 0 gateway /s/0 gw\n"
				   "node 1 compute /s/1 one\nnode 2 compute /s/2 two\n"
				   "node 5 compute /s/5 five\n"
				   UNIT_KEY_LINE(0) UNIT_KEY_LINE(1) UNIT_KEY_LINE(2)
				   UNIT_KEY_LINE(5);

	(void)state;
	return rgate_cluster_parse(&cluster, "test", text, sizeof(text) - 1);
}

static int teardown(void **state)
{
	(void)state;
	rgate_cluster_destroy(cluster);
	return 0;
}

struct frame {
	struct rgate_slot hdr;
	unsigned char data[ROOM];
};

static void put16(unsigned char *at, unsigned int v)
{
	at[0] = (unsigned char)(v >> 8);
	at[1] = (unsigned char)v;
}

/* IPv4 UDP in Ethernet; ends 1 and 2 by a byte and a port each */
static void ipv4(struct frame *f, unsigned int a, unsigned int pa, unsigned int b,
		 unsigned int pb)
{
	unsigned char *p = f->data;

	memset(f, 0, sizeof(*f));
	f->hdr.len = f->hdr.wire_len = 100;
	f->hdr.dev_type = ARPHRD_ETHER;
	f->hdr.protocol = 0x0800;
	f->hdr.l3_off = 14;
	f->hdr.l4_off = 34;
	f->hdr.payload_off = 42;
	f->hdr.ip_proto = IPPROTO_UDP;
	put16(p + 12, 0x0800);
	p[14] = 0x45;
	put16(p + 16, 86);
	p[22] = 64;
	p[23] = IPPROTO_UDP;
	p[26] = p[30] = 10;
	p[29] = (unsigned char)a;
	p[33] = (unsigned char)b;
	put16(p + 34, pa);
	put16(p + 36, pb);
	put16(p + 38, 66);
}

static void ipv6(struct frame *f, unsigned int a, unsigned int pa, unsigned int b,
		 unsigned int pb)
{
	unsigned char *p = f->data;

	ipv4(f, 0, pa, 0, pb);
	f->hdr.protocol = 0x86dd;
	f->hdr.l4_off = 54;
	f->hdr.payload_off = 62;
	memset(p + 12, 0, 80);
	put16(p + 12, 0x86dd);
	p[14] = 0x60;
	put16(p + 18, 46);
	p[20] = IPPROTO_UDP;
	p[22] = p[38] = 0x20;
	p[37] = (unsigned char)a;
	p[53] = (unsigned char)b;
	put16(p + 54, pa);
	put16(p + 56, pb);
}

static struct rgate_steer *table(const char *text)
{
	struct rgate_steer *s;

	assert_int_equal(rgate_steer_create(&s, cluster), 0);
	assert_int_equal(rgate_steer_parse(s, "test", text, strlen(text)), 0);
	return s;
}

static const char *matched(struct rgate_steer *s, const struct frame *f)
{
	const struct steer_rule *r = rgate_steer_match(s, 0, &f->hdr, ROOM);

	return r ? r->name : "none";
}

static void texts(void **state)
{
	struct rgate_steer *s = table("# comment\n\n  dns   node:1/gpu0 full=drop udp port 53 # more\n"
				      "flows\thash:two,5 down=drop\r\nall all:*\nrest drop");

	(void)state;
	assert_int_equal(rgate_steer_count(s), 4);
	assert_string_equal(rgate_steer_line(s, 0), "dns   node:1/gpu0 full=drop udp port 53");
	assert_null(rgate_steer_line(s, 4));
	assert_int_equal(s->rules[0].target, STEER_NODE);
	assert_int_equal(s->rules[0].nodes, 1U << 1);
	assert_string_equal(s->rules[0].ring, "gpu0");
	assert_true(s->rules[0].full_drop && !s->rules[0].down_drop);
	assert_int_equal(s->rules[1].target, STEER_HASH);
	assert_int_equal(s->rules[1].nodes, 1U << 2 | 1U << 5);
	assert_true(s->rules[1].down_drop);
	assert_int_equal(s->rules[1].prog.bf_len, 0);
	assert_int_equal(s->rules[2].nodes, 1U << 1 | 1U << 2 | 1U << 5);
	assert_int_equal(s->rules[3].target, STEER_DROP);
	rgate_steer_destroy(s);
}

static void wrong_texts(void **state)
{
	static const struct {
		const char *line;
		const char *why;
	} bad[] = {
		{ "", "a line" },
		{ "name", "no target" },
		{ "name node", "no target" },
		{ "name fly:1", "no target" },
		{ "name node:", "no node" },
		{ "name node:7", "no node '7'" },
		{ "name node:1,2", "takes one node" },
		{ "name node:*", "takes one node" },
		{ "name node:1/", "ring's name" },
		{ "name node:1/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ring's name" },
		{ "name hash:1,nine", "no node 'nine'" },
		{ "name all:,", "no node is named" },
		{ "na/me drop", "names are of" },
		{ "a-name-of-more-than-thirty-one-bytes drop", "rule's name" },
		{ "name drop full=often", "full= is" },
		{ "name drop down=up", "down= is" },
		{ "name drop udp port", "syntax error" },
		{ "name drop host", "syntax error" },
	};
	struct rgate_steer *s = table("there drop\n");
	char why[256], line[64];
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(rgate_steer_add(s, bad[i].line, NULL, why, sizeof(why)), -EINVAL);
		if (!strstr(why, bad[i].why))
			fail_msg("'%s': %s", bad[i].line, why);
	}
	assert_int_equal(rgate_steer_add(s, "there drop", NULL, why, sizeof(why)), -EEXIST);
	assert_int_equal(rgate_steer_add(s, "x drop", "nowhere", why, sizeof(why)), -ENOENT);
	assert_int_equal(rgate_steer_remove(s, "nowhere"), -ENOENT);
	assert_int_equal(rgate_steer_count(s), 1);
	/* all or none of a file */
	assert_int_equal(rgate_steer_parse(s, "f", "a drop\nb fly\n", 13), -EINVAL);
	assert_int_equal(rgate_steer_count(s), 1);
	for (i = 1; i < RGATE_RULES_MAX; i++) {
		snprintf(line, sizeof(line), "r%u drop", i);
		assert_int_equal(rgate_steer_add(s, line, i % 2 ? "there" : NULL, NULL, 0), 0);
	}
	assert_int_equal(rgate_steer_add(s, "more drop", NULL, why, sizeof(why)), -ENOSPC);
	assert_int_equal(rgate_steer_remove(s, "there"), 0);
	rgate_steer_destroy(s);
	rgate_steer_destroy(NULL);
}

static char said[512];

static void on_error(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)ctx;
	if (level == RGATE_LOG_ERROR)
		snprintf(said, sizeof(said), "%s", msg);
}

/* As long as they may be, and a byte more; messages say how long that is. */
static void lengths(void **state)
{
	static const char longest[] = "a-name-of-exactly-thirty-one-bs";
	struct rgate_steer *s = table("");
	char line[LINE_BYTES + 64], why[256];

	(void)state;
	assert_int_equal(strlen(longest), 31);
	snprintf(line, sizeof(line), "%s node:1/%s", longest, longest);
	assert_int_equal(rgate_steer_add(s, line, NULL, why, sizeof(why)), 0);
	assert_string_equal(s->rules[0].name, longest);
	assert_string_equal(s->rules[0].ring, longest);
	snprintf(line, sizeof(line), "%sx node:1", longest);
	assert_int_equal(rgate_steer_add(s, line, NULL, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "1 to 31 bytes"));
	snprintf(line, sizeof(line), "x node:1/%sx", longest);
	assert_int_equal(rgate_steer_add(s, line, NULL, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, " 31 "));
	memset(line, ' ', sizeof(line));
	memcpy(line, "x drop", 6);
	memcpy(line + LINE_BYTES - 4, "udp", 4);
	assert_int_equal(strlen(line), LINE_BYTES - 1);
	assert_int_equal(rgate_steer_add(s, line, NULL, why, sizeof(why)), 0);
	memcpy(line, "y drop", 6);
	memcpy(line + LINE_BYTES - 3, "udp", 4);
	assert_int_equal(strlen(line), LINE_BYTES);
	assert_int_equal(rgate_steer_add(s, line, NULL, why, sizeof(why)), -EINVAL);
	snprintf(line, sizeof(line), "1 to %d bytes", LINE_BYTES - 1);
	assert_non_null(strstr(why, line));
	/* who does not want to know why */
	assert_int_equal(rgate_steer_add(s, "z fly", NULL, NULL, 0), -EINVAL);
	assert_int_equal(rgate_steer_add(s, "z fly", NULL, why, 0), -EINVAL);
	rgate_steer_destroy(s);
}

/* What is wrong in a file is said, with its line. */
static void error_lines(void **state)
{
	struct rgate_steer *s = table("");

	(void)state;
	rgate_log_set(on_error, NULL);
	said[0] = '\0';
	assert_int_equal(rgate_steer_parse(s, "rules", "# 1\na drop\n\nb fly:1\n", 20), -EINVAL);
	rgate_log_set(NULL, NULL);
	assert_int_equal(strncmp(said, "rules:4: ", 9), 0);
	assert_non_null(strstr(said, "no target"));
	rgate_steer_destroy(s);
}

/* Who got it, too, lets go of it: then it goes. */
static void held(void **state)
{
	struct rgate_steer *s = table("a drop\nb node:1 udp\n");

	(void)state;
	assert_ptr_equal(rgate_steer_get(s), s);
	assert_int_equal(s->refs, 2);
	rgate_steer_destroy(s);
	assert_int_equal(s->refs, 1);
	assert_string_equal(rgate_steer_line(s, 0), "a drop");
	rgate_steer_destroy(s);
}

/* The rules' names, in their order */
static const char *names(struct rgate_steer *s)
{
	static char text[256];
	unsigned int i;

	text[0] = '\0';
	for (i = 0; i < s->count; i++) {
		strcat(text, i ? " " : "");
		strcat(text, s->rules[i].name);
	}
	return text;
}

static unsigned int warnings;

static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)ctx;
	(void)msg;
	warnings += level == RGATE_LOG_WARN;
}

/* The default is the last rule whatever comes when, and wherever it stands. */
static void default_last(void **state)
{
	struct rgate_steer *s = table("default hash:*\n");
	struct frame f;
	char why[256];

	(void)state;
	assert_int_equal(rgate_steer_add(s, "dns node:1 udp port 53", NULL, NULL, 0), 0);
	assert_int_equal(rgate_steer_add(s, "flows hash:1,2 ip", NULL, NULL, 0), 0);
	assert_string_equal(names(s), "dns flows default");
	assert_int_equal(rgate_steer_add(s, "near drop arp", "default", NULL, 0), 0);
	assert_int_equal(rgate_steer_add(s, "first drop ip6", "dns", NULL, 0), 0);
	assert_string_equal(names(s), "first dns flows near default");
	ipv4(&f, 1, 1000, 2, 53);
	assert_string_equal(matched(s, &f), "dns");
	assert_int_equal(rgate_steer_remove(s, "default"), 0);
	assert_int_equal(rgate_steer_add(s, "default drop", "dns", why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "always the last"));
	assert_int_equal(rgate_steer_add(s, "default drop", NULL, NULL, 0), 0);
	assert_int_equal(rgate_steer_add(s, "more drop vlan", NULL, NULL, 0), 0);
	assert_string_equal(names(s), "first dns flows near more default");
	/* a file that fails leaves what was there */
	assert_int_equal(rgate_steer_parse(s, "f", "a drop\nb drop\nc fly\n", 20), -EINVAL);
	assert_string_equal(names(s), "first dns flows near more default");
	assert_int_equal(rgate_steer_parse(s, "f", "a drop\n", 7), 0);
	assert_string_equal(names(s), "first dns flows near more a default");
	rgate_steer_destroy(s);
	/* as it was written before, and said once for each rule that now counts */
	rgate_log_set(on_log, NULL);
	s = table("a drop arp\ndefault hash:*\n# and more\n\ndns node:1 udp port 53\nz drop ip6\n");
	rgate_log_set(NULL, NULL);
	assert_string_equal(names(s), "a dns z default");
	assert_int_equal(warnings, 2);
	assert_string_equal(matched(s, &f), "dns");
	rgate_steer_destroy(s);
	assert_int_equal(rgate_steer_create(&s, cluster), 0);
	assert_int_equal(rgate_steer_parse(s, "f", "default drop\nb drop\nc fly\n", 26), -EINVAL);
	assert_int_equal(rgate_steer_count(s), 0);
	rgate_steer_destroy(s);
}

static void matching(void **state)
{
	struct rgate_steer *s = table("dns node:1 udp port 53\nsix node:1 ip6\n"
				      "tag node:1 vlan 7\narp drop arp\nbig node:1 greater 1000\n");
	struct frame f;

	(void)state;
	ipv4(&f, 1, 1000, 2, 53);
	assert_string_equal(matched(s, &f), "dns");
	ipv4(&f, 1, 1000, 2, 54);
	assert_string_equal(matched(s, &f), "none");
	ipv6(&f, 1, 1000, 2, 54);
	assert_string_equal(matched(s, &f), "six");
	/* what the slot's header says of a tag that was taken off */
	ipv4(&f, 1, 1000, 2, 54);
	f.hdr.flags = RGATE_SLOT_VLAN;
	f.hdr.vlan_proto = 0x8100;
	f.hdr.vlan_tci = 7;
	assert_string_equal(matched(s, &f), "tag");
	f.hdr.vlan_tci = 8;
	assert_string_equal(matched(s, &f), "none");
	/* a frame without an Ethernet header */
	ipv4(&f, 1, 1000, 2, 53);
	memmove(f.data, f.data + 14, 86);
	f.hdr.dev_type = ARPHRD_NONE;
	f.hdr.l3_off = 0;
	f.hdr.l4_off = 20;
	f.hdr.len = f.hdr.wire_len = 86;
	assert_string_equal(matched(s, &f), "dns");
	/* a length that lies reads no further than the slot */
	ipv4(&f, 1, 1000, 2, 54);
	f.hdr.len = f.hdr.wire_len = UINT32_MAX;
	assert_string_equal(matched(s, &f), "big");
	rgate_steer_destroy(s);
}

static uint64_t flow_of(const struct frame *f)
{
	return rgate_steer_flow(&f->hdr, ROOM);
}

static void flows(void **state)
{
	void (*const make[])(struct frame *, unsigned int, unsigned int, unsigned int,
			     unsigned int) = { ipv4, ipv6 };
	struct frame f, g;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(make); i++) {
		make[i](&f, 1, 1000, 2, 53);
		make[i](&g, 2, 53, 1, 1000);
		assert_int_equal(flow_of(&f), flow_of(&g));
		make[i](&g, 1, 53, 2, 1000);
		assert_int_not_equal(flow_of(&f), flow_of(&g));
		make[i](&g, 1, 1001, 2, 53);
		assert_int_not_equal(flow_of(&f), flow_of(&g));
		make[i](&g, 1, 1000, 3, 53);
		assert_int_not_equal(flow_of(&f), flow_of(&g));
		/* the frame's other bytes do not matter */
		make[i](&g, 1, 1000, 2, 53);
		memset(g.data, 7, 12);
		memset(g.data + 70, 7, 20);
		assert_int_equal(flow_of(&f), flow_of(&g));
	}
	/* all fragments of a datagram are together */
	ipv4(&f, 1, 1000, 2, 53);
	f.data[20] = 0x20;
	ipv4(&g, 1, 9, 2, 9);
	g.data[21] = 100;
	g.hdr.l4_off = g.hdr.payload_off = RGATE_OFF_NONE;
	g.hdr.ip_proto = 0;
	assert_int_equal(flow_of(&f), flow_of(&g));
	/* offsets that lie, and frames of no bytes, are survived */
	f.hdr.l3_off = f.hdr.l4_off = 0xfff0;
	(void)flow_of(&f);
	f.hdr.len = 0;
	(void)flow_of(&f);
}

/* Spread evenly; and when a node goes only its flows move */
static void weights(void **state)
{
	unsigned int count[4] = { 0 }, i, moved = 0, mine = 0;

	(void)state;
	for (i = 0; i < 4000; i++) {
		uint64_t flow = i * 0x9e3779b97f4a7c15ULL, most = 0, most3 = 0;
		unsigned int best = 0, best3 = 0, id;

		for (id = 0; id < 4; id++) {
			uint64_t w = rgate_steer_weight(flow, id * 64);

			if (w > most) {
				most = w;
				best = id;
			}
			if (id < 3 && w > most3) {
				most3 = w;
				best3 = id;
			}
		}
		count[best]++;
		mine += best == 3;
		moved += best != best3;
	}
	assert_int_equal(moved, mine);
	for (i = 0; i < 4; i++)
		assert_in_range(count[i], 850, 1150);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(texts, setup, teardown),
	cmocka_unit_test_setup_teardown(wrong_texts, setup, teardown),
	cmocka_unit_test_setup_teardown(lengths, setup, teardown),
	cmocka_unit_test_setup_teardown(error_lines, setup, teardown),
	cmocka_unit_test_setup_teardown(held, setup, teardown),
	cmocka_unit_test_setup_teardown(default_last, setup, teardown),
	cmocka_unit_test_setup_teardown(matching, setup, teardown),
	cmocka_unit_test(flows),
	cmocka_unit_test(weights),
};

UNIT_MAIN_ALONE(tests)
