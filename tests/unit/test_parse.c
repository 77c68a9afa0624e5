// SPDX-License-Identifier: MIT OR GPL-2.0
/* Where headers lie: known frames, and frames cut or garbled everywhere. */
#include "unit.h"

#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

#define NONE RGATE_OFF_NONE

struct shape {
	const char *name;
	uint16_t dev_type;
	uint16_t protocol;
	const char *hex;	/* blanks are skipped */
	uint16_t l3, l4, payload;
	uint8_t ip_proto;
};

#define ETH(type) "020000000001 020000000002 " type " "
#define IP4(proto, frag) "4500 0030 0001 " frag " 40 " proto " 0000 0a000001 0a000002 "
#define IP6(next) "60000000 0040 " next " 40 " \
	"20010db8000000000000000000000001 20010db8000000000000000000000002 "
#define UDP "1111 2222 0010 0000 "
#define TCP(off) "1111 2222 00000001 00000002 " off "10 ffff 0000 0000 "
#define DST "3c00 010400000000 "	/* options, and more of them behind */
#define DATA "0102030405060708090a0b0c"

static const struct shape shapes[] = {
	{ "udp4", ARPHRD_ETHER, 0x0800, ETH("0800") IP4("11", "0000") UDP DATA,
	  14, 34, 42, 17 },
	{ "tcp4", ARPHRD_ETHER, 0x0800, ETH("0800") IP4("06", "0000") TCP("50") DATA,
	  14, 34, 54, 6 },
	{ "tcp4 options", ARPHRD_ETHER, 0x0800,
	  ETH("0800") IP4("06", "0000") TCP("80") DATA DATA, 14, 34, 66, 6 },
	{ "tcp4 short offset", ARPHRD_ETHER, 0x0800,
	  ETH("0800") IP4("06", "0000") TCP("40") DATA, 14, 34, NONE, 6 },
	{ "tcp4 options cut", ARPHRD_ETHER, 0x0800,
	  ETH("0800") IP4("06", "0000") TCP("f0") DATA, 14, 34, NONE, 6 },
	{ "icmp", ARPHRD_LOOPBACK, 0x0800, ETH("0800") IP4("01", "0000") UDP DATA,
	  14, 34, 42, 1 },
	{ "gre: no payload known", ARPHRD_ETHER, 0x0800,
	  ETH("0800") IP4("2f", "0000") UDP DATA, 14, 34, NONE, 47 },
	{ "first fragment", ARPHRD_ETHER, 0x0800, ETH("0800") IP4("11", "2000") UDP DATA,
	  14, 34, 42, 17 },
	{ "later fragment", ARPHRD_ETHER, 0x0800, ETH("0800") IP4("11", "2010") DATA,
	  14, NONE, NONE, 0 },
	{ "ip options", ARPHRD_ETHER, 0x0800,
	  ETH("0800") "4600 0034 0001 0000 40 11 0000 0a000001 0a000002 94040000 "
	  UDP DATA, 14, 38, 46, 17 },
	{ "header length 4", ARPHRD_ETHER, 0x0800,
	  ETH("0800") "4400 0034 0001 0000 40 11 0000 0a000001 0a000002 " UDP,
	  14, NONE, NONE, 0 },
	{ "version 5", ARPHRD_ETHER, 0x0800,
	  ETH("0800") "5500 0034 0001 0000 40 11 0000 0a000001 0a000002 " UDP,
	  14, NONE, NONE, 0 },
	{ "inner tag", ARPHRD_ETHER, 0x8100,
	  ETH("8100") "0005 0800 " IP4("11", "0000") UDP DATA, 18, 38, 46, 17 },
	{ "two inner tags", ARPHRD_ETHER, 0x88a8,
	  ETH("88a8") "0005 8100 0006 86dd " IP6("11") UDP DATA, 22, 62, 70, 17 },
	{ "udp6", ARPHRD_ETHER, 0x86dd, ETH("86dd") IP6("11") UDP DATA, 14, 54, 62, 17 },
	{ "hop by hop, destination", ARPHRD_ETHER, 0x86dd,
	  ETH("86dd") IP6("00") "3c00 050200000000 0600 010400000000 " TCP("50") DATA,
	  14, 70, 90, 6 },
	{ "authentication", ARPHRD_ETHER, 0x86dd,
	  ETH("86dd") IP6("33") "1101 0000 00000001 00000001 " UDP DATA, 14, 66, 74, 17 },
	{ "first fragment6", ARPHRD_ETHER, 0x86dd,
	  ETH("86dd") IP6("2c") "1100 0001 00000001 " UDP DATA, 14, 62, 70, 17 },
	{ "later fragment6", ARPHRD_ETHER, 0x86dd,
	  ETH("86dd") IP6("2c") "1100 0011 00000001 " DATA, 14, NONE, NONE, 0 },
	{ "nothing follows", ARPHRD_ETHER, 0x86dd, ETH("86dd") IP6("3b"),
	  14, NONE, NONE, 0 },
	/* as the module's parser has it, too */
	{ "extension header cut", ARPHRD_ETHER, 0x86dd, ETH("86dd") IP6("00") "11",
	  14, NONE, NONE, 0 },
	{ "extension header only", ARPHRD_ETHER, 0x86dd,
	  ETH("86dd") IP6("3c") "1100 010400000000", 14, NONE, NONE, 0 },
	{ "eight extension headers", ARPHRD_ETHER, 0x86dd,
	  ETH("86dd") IP6("3c") DST DST DST DST DST DST DST "1100 010400000000" UDP DATA,
	  14, NONE, NONE, 0 },
	{ "seven extension headers", ARPHRD_ETHER, 0x86dd,
	  ETH("86dd") IP6("3c") DST DST DST DST DST DST "1100 010400000000" UDP DATA,
	  14, 110, 118, 17 },
	{ "nothing behind the header", ARPHRD_ETHER, 0x0800, ETH("0800") IP4("11", "0000"),
	  14, NONE, NONE, 0 },
	{ "three inner tags", ARPHRD_ETHER, 0x8100,
	  ETH("8100") "0005 8100 0006 8100 0007 0800 " IP4("11", "0000") UDP DATA,
	  NONE, NONE, NONE, 0 },
	{ "icmp6", ARPHRD_ETHER, 0x86dd, ETH("86dd") IP6("3a") UDP DATA, 14, 54, 62, 58 },
	{ "arp", ARPHRD_ETHER, 0x0806, ETH("0806") "0001 0800 0604 0001",
	  14, NONE, NONE, 0 },
	{ "raw ip", ARPHRD_NONE, 0x0800, IP4("11", "0000") UDP DATA, 0, 20, 28, 17 },
	{ "unknown link", 999, 0x0800, ETH("0800") IP4("11", "0000") UDP,
	  NONE, NONE, NONE, 0 },
	{ "runt", ARPHRD_ETHER, 0x0800, "0200000000", NONE, NONE, NONE, 0 },
};

static size_t bytes_of(const char *hex, unsigned char *out)
{
	size_t n = 0;
	char two[3] = { 0 };

	for (; *hex; hex++) {
		if (*hex == ' ')
			continue;
		two[0] = *hex++;
		two[1] = *hex;
		out[n++] = (unsigned char)strtoul(two, NULL, 16);
	}
	return n;
}

static void known(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(shapes); i++) {
		const struct shape *s = &shapes[i];
		struct rgate_slot hdr = { .dev_type = s->dev_type,
					  .protocol = s->protocol, .ip_proto = 99 };
		unsigned char buf[256];
		size_t n = bytes_of(s->hex, buf);

		rgate_parse_frame(&hdr, buf, n);
		if (hdr.l3_off != s->l3 || hdr.l4_off != s->l4 ||
		    hdr.payload_off != s->payload || hdr.ip_proto != s->ip_proto)
			fail_msg("%s: %u %u %u %u", s->name, hdr.l3_off, hdr.l4_off,
				 hdr.payload_off, hdr.ip_proto);
	}
}

static void check_bounds(const struct rgate_slot *hdr, size_t n)
{
	assert_true(hdr->l3_off == NONE || hdr->l3_off <= n);
	assert_true(hdr->l4_off == NONE || hdr->l4_off <= n);
	assert_true(hdr->payload_off == NONE || hdr->payload_off <= n);
	assert_true(hdr->payload_off == NONE || hdr->l4_off != NONE);
	assert_true(hdr->l4_off != NONE || !hdr->ip_proto);
}

/* Far into a frame nothing is looked for, in the module neither. */
static void far(void **state)
{
	unsigned char buf[2048] = { 0 };
	const char *ip = ETH("86dd") IP6("3c");
	struct rgate_slot hdr = { .dev_type = ARPHRD_ETHER, .protocol = 0x86dd };
	size_t at = bytes_of(ip, buf);

	(void)state;
	buf[at] = 17;
	buf[at + 1] = 255;		/* 2048 bytes of options: more than there are */
	rgate_parse_frame(&hdr, buf, sizeof(buf));
	assert_int_equal(hdr.l3_off, 14);
	assert_int_equal(hdr.l4_off, NONE);
	buf[at + 1] = 121;		/* 976: 1016 bytes behind the link layer */
	rgate_parse_frame(&hdr, buf, sizeof(buf));
	assert_int_equal(hdr.l4_off, 14 + 40 + 976);
	assert_int_equal(hdr.payload_off, 14 + 40 + 976 + 8);
	buf[at + 1] = 122;
	rgate_parse_frame(&hdr, buf, sizeof(buf));
	assert_int_equal(hdr.l4_off, NONE);
}

/* Every cut of every frame, in memory that ends where the frame does */
static void cut(void **state)
{
	size_t i, n, len;

	(void)state;
	for (i = 0; i < ARRAY_LEN(shapes); i++) {
		unsigned char buf[256], *exact;

		len = bytes_of(shapes[i].hex, buf);
		for (n = 0; n <= len; n++) {
			struct rgate_slot hdr = { .dev_type = shapes[i].dev_type,
						  .protocol = shapes[i].protocol };

			exact = malloc(n ? n : 1);
			memcpy(exact, buf, n);
			rgate_parse_frame(&hdr, exact, n);
			check_bounds(&hdr, n);
			free(exact);
		}
	}
}

static void garbled(void **state)
{
	uint64_t seed = 17, r;

	(void)state;
	for (r = 0; r < unit_rounds(200000); r++) {
		const struct shape *s = &shapes[unit_random(&seed) % ARRAY_LEN(shapes)];
		struct rgate_slot hdr = { .dev_type = s->dev_type,
					  .protocol = s->protocol };
		unsigned char buf[256], *exact;
		size_t n = bytes_of(s->hex, buf), k;

		for (k = unit_random(&seed) % 4; k; k--)
			buf[unit_random(&seed) % n] = (unsigned char)unit_random(&seed);
		n = unit_random(&seed) % (n + 1);
		exact = malloc(n ? n : 1);
		memcpy(exact, buf, n);
		rgate_parse_frame(&hdr, exact, n);
		check_bounds(&hdr, n);
		free(exact);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(known),
	cmocka_unit_test(far),
	cmocka_unit_test(cut),
	cmocka_unit_test(garbled),
};

UNIT_MAIN_ALONE(tests)
