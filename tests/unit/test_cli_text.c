// SPDX-License-Identifier: MIT OR GPL-2.0
/* How the CLI writes: frames in a line, numbers, tables, JSON; and what a filter lets through. */
#include "unit.h"

#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "describe.h"
#include "fmt.h"
#include "json.h"
#include "pcapng.h"
#include "sieve.h"
#include "table.h"

#define ROOM	192
#define WHEN	(45296ULL * 1000000000 + 7)	/* 12:34:56 */

static union {
	struct rgate_slot s;
	unsigned char bytes[sizeof(struct rgate_slot) + ROOM];
} slot;
static unsigned char *const data = slot.bytes + sizeof(struct rgate_slot);
static char printed[1024];

/* Ethernet and behind it what @l3 is; @l4: where layer 4 begins */
static void frame(uint16_t protocol, const void *l3, uint32_t len, uint16_t l4, uint8_t proto)
{
	static const unsigned char macs[12] = { 1, 2, 3, 4, 5, 6, 0xa, 0xb, 0xc, 0xd, 0xe, 0xf };

	memset(&slot, 0, sizeof(slot));
	slot.s = (struct rgate_slot){
		.len = 14 + len, .dev_type = ARPHRD_ETHER, .protocol = protocol, .l3_off = 14,
		.l4_off = l4, .ip_proto = proto,
	};
	memcpy(data, macs, 12);
	data[12] = (unsigned char)(protocol >> 8);
	data[13] = (unsigned char)protocol;
	memcpy(data + 14, l3, len);
}

/* What describe_frame() prints, without the time and the device where it is a line */
static const char *described(bool json)
{
	static const char begin[] = "12:34:56.000000007 eth0 60/70 ";
	FILE *f = tmpfile();
	const int out = dup(1);
	size_t n;

	unit_require(f && out >= 0);
	fflush(stdout);
	dup2(fileno(f), 1);
	describe_frame(&slot.s, ROOM, WHEN, 60, 70, "eth0", json);
	fflush(stdout);
	dup2(out, 1);
	close(out);
	rewind(f);
	n = fread(printed, 1, sizeof(printed) - 1, f);
	printed[n] = '\0';
	fclose(f);
	if (json)
		return printed;
	assert_memory_equal(printed, begin, sizeof(begin) - 1);
	return printed + sizeof(begin) - 1;
}

static int up(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	return 0;
}

static const unsigned char v4[] = {
	0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0x12, 0x34, 0, 80,
};

static const unsigned char v6[44] = {
	0x60, [6] = 17, 64, 0x20, 0x01, 0x0d, 0xb8, [23] = 1, 0x20, 0x01, 0x0d, 0xb8, [39] = 2,
	0, 53, 0xff, 0xff,
};

static void of_ipv4(void **state)
{
	static const struct {
		uint8_t proto;
		const char *name;
	} others[] = {
		{ 1, "ICMP" }, { 2, "IGMP" }, { 47, "GRE" }, { 50, "ESP" }, { 58, "ICMP6" },
		{ 99, "proto-99" },
	};
	char want[64];
	size_t i;

	(void)state;
	frame(0x0800, v4, sizeof(v4), 34, 6);
	assert_string_equal(described(false), "TCP 192.0.2.1:4660 > 192.0.2.2:80\n");
	slot.s.ip_proto = 17;
	data[14 + 9] = 17;
	assert_string_equal(described(false), "UDP 192.0.2.1:4660 > 192.0.2.2:80\n");
	slot.s.ip_proto = data[14 + 9] = 136;
	assert_string_equal(described(false), "UDPLITE 192.0.2.1:4660 > 192.0.2.2:80\n");
	slot.s.ip_proto = data[14 + 9] = 132;
	assert_string_equal(described(false), "SCTP 192.0.2.1:4660 > 192.0.2.2:80\n");
	for (i = 0; i < ARRAY_LEN(others); i++) {
		slot.s.ip_proto = data[14 + 9] = others[i].proto;
		snprintf(want, sizeof(want), "%s 192.0.2.1 > 192.0.2.2\n", others[i].name);
		assert_string_equal(described(false), want);
	}
	/* a fragment */
	data[14 + 9] = 6;
	slot.s.l4_off = RGATE_OFF_NONE;
	assert_string_equal(described(false), "IPv4/TCP 192.0.2.1 > 192.0.2.2\n");
}

/* What was cut off is not told, to the byte. */
static void of_cut(void **state)
{
	(void)state;
	frame(0x0800, v4, sizeof(v4) - 1, 34, 6);
	assert_string_equal(described(false), "TCP 192.0.2.1 > 192.0.2.2\n");
	frame(0x0800, v4, 20, 34, 6);
	assert_string_equal(described(false), "TCP 192.0.2.1 > 192.0.2.2\n");
	frame(0x0800, v4, 19, 34, 6);
	assert_string_equal(described(false),
			    "0x0800 0a:0b:0c:0d:0e:0f > 01:02:03:04:05:06\n");
	frame(0x0800, v4, 0, RGATE_OFF_NONE, 0);
	assert_string_equal(described(false),
			    "0x0800 0a:0b:0c:0d:0e:0f > 01:02:03:04:05:06\n");
	slot.s.len = 12;
	assert_string_equal(described(false),
			    "0x0800 0a:0b:0c:0d:0e:0f > 01:02:03:04:05:06\n");
	slot.s.len = 11;
	assert_string_equal(described(false), "0x0800\n");
	frame(0x86dd, v6, 39, 54, 17);
	assert_string_equal(described(false),
			    "0x86dd 0a:0b:0c:0d:0e:0f > 01:02:03:04:05:06\n");
	frame(0x86dd, v6, 40, 54, 17);
	assert_string_equal(described(false), "UDP 2001:db8::1 > 2001:db8::2\n");
}

static void of_ipv6(void **state)
{
	(void)state;
	frame(0x86dd, v6, sizeof(v6), 54, 17);
	assert_string_equal(described(false), "UDP [2001:db8::1]:53 > [2001:db8::2]:65535\n");
	slot.s.l4_off = RGATE_OFF_NONE;
	slot.s.ip_proto = 0;
	assert_string_equal(described(false), "IPv6/UDP 2001:db8::1 > 2001:db8::2\n");
}

static void of_others(void **state)
{
	static const unsigned char arp[28] = {
		0, 1, 8, 0, 6, 4, 0, 1, [14] = 192, 0, 2, 7, [24] = 192, 0, 2, 8,
	};

	(void)state;
	frame(0x0806, arp, 28, RGATE_OFF_NONE, 0);
	assert_string_equal(described(false), "ARP 192.0.2.7 > 192.0.2.8\n");
	frame(0x0806, arp, 27, RGATE_OFF_NONE, 0);
	assert_string_equal(described(false),
			    "0x0806 0a:0b:0c:0d:0e:0f > 01:02:03:04:05:06\n");
	frame(0x88cc, arp, 28, RGATE_OFF_NONE, 0);
	assert_string_equal(described(false),
			    "0x88cc 0a:0b:0c:0d:0e:0f > 01:02:03:04:05:06\n");
	slot.s.dev_type = ARPHRD_LOOPBACK;
	assert_string_equal(described(false),
			    "0x88cc 0a:0b:0c:0d:0e:0f > 01:02:03:04:05:06\n");
	/* Where there are no such addresses */
	slot.s.dev_type = ARPHRD_NONE;
	assert_string_equal(described(false), "0x88cc\n");
	/* behind a tag that is in the frame, and one that is not */
	frame(0x8100, "\x00\x05\x08\x06", 4, RGATE_OFF_NONE, 0);
	memcpy(data + 18, arp, 28);
	slot.s.len = 46;
	slot.s.l3_off = 18;
	slot.s.flags = RGATE_SLOT_VLAN;
	slot.s.vlan_tci = 0xe123;
	slot.s.gap = 4;
	assert_string_equal(described(false),
			    "vlan 291 ARP 192.0.2.7 > 192.0.2.8 (4 lost before)\n");
	slot.s.protocol = 0x88a8;
	assert_non_null(strstr(described(false), "vlan 291 ARP "));
}

static void frames_in_json(void **state)
{
	(void)state;
	frame(0x0800, v4, sizeof(v4), 34, 6);
	slot.s.flags = RGATE_SLOT_VLAN;
	slot.s.vlan_tci = 0xf005;
	slot.s.gap = 9;
	assert_string_equal(described(true),
			    "{\"time_ns\": 45296000000007, \"dev\": \"eth0\", \"len\": 60, "
			    "\"wire_len\": 70, \"vlan\": 5, \"proto\": \"TCP\", "
			    "\"src\": \"192.0.2.1\", \"dst\": \"192.0.2.2\", \"sport\": 4660, "
			    "\"dport\": 80, \"lost_before\": 9}\n");
	slot.s.flags = 0;
	slot.s.dev_type = ARPHRD_NONE;
	slot.s.protocol = 0x88cc;
	assert_string_equal(described(true),
			    "{\"time_ns\": 45296000000007, \"dev\": \"eth0\", \"len\": 60, "
			    "\"wire_len\": 70, \"proto\": \"0x88cc\", \"lost_before\": 9}\n");
}

static void numbers(void **state)
{
	static const struct {
		double v;
		const char *text;
	} si[] = {
		{ 0, "0" }, { 7, "7" }, { 999.4, "999" }, { 999.5, "1.00k" }, { 1234, "1.23k" },
		{ 9994, "9.99k" }, { 9995, "10.0k" }, { 99940, "99.9k" }, { 99950, "100k" },
		{ 999400, "999k" }, { 999500, "1.00M" }, { 2e9, "2.00G" }, { 3e12, "3.00T" },
		{ 4e15, "4.00P" }, { 5e18, "5.00E" }, { 6e21, "6000E" },
	};
	static const struct {
		uint64_t v;
		const char *text;
	} bytes[] = {
		{ 0, "0 B" }, { 1023, "1023 B" }, { 1024, "1.0 KiB" }, { 1536, "1.5 KiB" },
		{ 1048524, "1023.9 KiB" }, { 1048525, "1.0 MiB" }, { 1 << 20, "1.0 MiB" },
		{ 1ULL << 30, "1.0 GiB" }, { 1ULL << 40, "1.0 TiB" }, { 1ULL << 50, "1.0 PiB" },
		{ 1ULL << 60, "1.0 EiB" }, { UINT64_MAX, "16.0 EiB" },
	};
	char buf[FMT_LEN];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(si); i++)
		assert_string_equal(fmt_si(buf, si[i].v), si[i].text);
	for (i = 0; i < ARRAY_LEN(bytes); i++)
		assert_string_equal(fmt_bytes(buf, bytes[i].v), bytes[i].text);
}

static void tables(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct table t;
	int i;

	(void)state;
	assert_non_null(f);
	assert_int_equal(table_init(&t, "<NAME   COUNT <WHERE"), 0);
	assert_int_equal(t.ncols, 3);
	for (i = 0; i < 2; i++) {
		assert_int_equal(table_cell(&t, "%s", i ? "longer" : "a"), 0);
		assert_int_equal(table_cell(&t, "%d", i ? 1 : 1234567), 0);
		assert_int_equal(table_cell(&t, "%s", i ? "x" : "<there"), 0);
	}
	table_print(&t, f);
	table_free(&t);
	/* as many rows as there are */
	assert_int_equal(table_init(&t, "A"), 0);
	for (i = 0; i < 200; i++)
		assert_int_equal(table_cell(&t, "%d", i), 0);
	assert_int_equal(t.ncells, 201);
	assert_string_equal(t.cells[64], "63");
	assert_string_equal(t.cells[200], "199");
	table_free(&t);
	assert_null(t.cells);
	fclose(f);
	assert_string_equal(text, "NAME      COUNT  WHERE\n"
				  "a       1234567  <there\n"
				  "longer        1  x\n");
	free(text);
}

static void put_all(struct json *j)
{
	json_object(j, NULL);
	json_u64(j, "a", UINT64_MAX);
	json_i64(j, "b\"", -5);
	json_array(j, "c");
	json_double(j, NULL, 1.5);
	json_double(j, NULL, 1.0 / 0.0);
	json_bool(j, NULL, true);
	json_bool(j, NULL, false);
	json_array_end(j);
	json_object(j, "d");
	json_object_end(j);
	json_str(j, "e", NULL);
	json_str(j, "f", "\\\"\x1f \x7f\xc3\xa4\xff.");
	json_raw(j, "g", "[0]");
	json_object_end(j);
	json_end(j);
}

static void in_json(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct json j;

	(void)state;
	assert_non_null(f);
	json_init(&j, f, false);
	put_all(&j);
	/* written out, too */
	assert_string_equal(text, "{\"a\": 18446744073709551615, \"b\\\"\": -5, "
			    "\"c\": [1.500, null, true, false], \"d\": {}, \"e\": null, "
			    "\"f\": \"\\\\\\\"\\u001f \\u007f\xc3\xa4\\ufffd.\", \"g\": [0]}\n");
	assert_int_equal(j.depth, 0);
	rewind(f);
	json_init(&j, f, true);
	put_all(&j);
	fclose(f);
	assert_string_equal(text, "{\n  \"a\": 18446744073709551615,\n  \"b\\\"\": -5,\n"
			    "  \"c\": [\n    1.500,\n    null,\n    true,\n    false\n  ],\n"
			    "  \"d\": {},\n  \"e\": null,\n"
			    "  \"f\": \"\\\\\\\"\\u001f \\u007f\xc3\xa4\\ufffd.\",\n"
			    "  \"g\": [0]\n}\n");
	free(text);
}

/* A frame in @n pieces of the same size, but for what is left */
static struct frame in_pieces(uint16_t link, unsigned char *at, size_t len, unsigned int n)
{
	struct frame f = { .link = link, .cap_len = (uint32_t)len, .orig_len = (uint32_t)len,
			   .iovcnt = n };
	const size_t each = len / n;
	unsigned int i;

	for (i = 0; i < n; i++) {
		f.iov[i].iov_base = at + i * each;
		f.iov[i].iov_len = i + 1 < n ? each : len - i * each;
	}
	return f;
}

static void sieves(void **state)
{
	struct sieve *v = NULL;
	struct frame f;
	unsigned int n;

	(void)state;
	frame(0x0800, v4, sizeof(v4), 34, 6);
	assert_int_equal(sieve_new(&v, "tcp dst port 80"), EXIT_OK);
	for (n = 1; n <= 4; n++) {
		f = in_pieces(LINK_ETHERNET, data, 14 + sizeof(v4), n);
		assert_int_equal(sieve_match(v, &f), 1);
	}
	data[37]++;
	for (n = 1; n <= 4; n++) {
		f = in_pieces(LINK_ETHERNET, data, 14 + sizeof(v4), n);
		assert_int_equal(sieve_match(v, &f), 0);
	}
	data[37]--;
	/* of another kind of link, and back */
	f = in_pieces(LINK_RAW, data + 14, sizeof(v4), 1);
	assert_int_equal(sieve_match(v, &f), 1);
	f = in_pieces(LINK_ETHERNET, data, 14 + sizeof(v4), 1);
	assert_int_equal(sieve_match(v, &f), 1);
	/* What was not captured does not match; the length on the wire is another. */
	f.cap_len = 37;
	assert_int_equal(sieve_match(v, &f), 0);
	sieve_free(v);
	assert_int_equal(sieve_new(&v, "greater 100"), EXIT_OK);
	f.orig_len = 100;
	assert_int_equal(sieve_match(v, &f), 1);
	f.orig_len = 99;
	assert_int_equal(sieve_match(v, &f), 0);
	sieve_free(v);
	sieve_free(NULL);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(of_ipv4, up), cmocka_unit_test_setup(of_cut, up),
	cmocka_unit_test_setup(of_ipv6, up), cmocka_unit_test_setup(of_others, up),
	cmocka_unit_test_setup(frames_in_json, up), cmocka_unit_test(numbers),
	cmocka_unit_test(tables), cmocka_unit_test(in_json), cmocka_unit_test(sieves),
};

UNIT_MAIN_ALONE(tests)
