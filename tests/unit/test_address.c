// SPDX-License-Identifier: MIT OR GPL-2.0
/* Addresses and ports that the CLI and the daemon are told. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* It belongs to the programs, so it is in no library. */
#include "../../tools/ringgate/address.c"

static void right(void **state)
{
	static const struct {
		const char *text, *addr;	/* NULL: any */
		unsigned int port;
	} good[] = {
		{ "127.0.0.1:9000", "127.0.0.1", 9000 }, { "127.0.0.1:1", "127.0.0.1", 1 },
		{ "192.0.2.7:65535", "192.0.2.7", 65535 }, { "[::1]:9000", "::1", 9000 },
		{ "[2001:db8::1]:00080", "2001:db8::1", 80 },
		{ ":53", NULL, 53 }, { "53", NULL, 53 },
	};
	struct sockaddr_storage sa;
	const char *why;
	char text[INET6_ADDRSTRLEN];
	socklen_t len;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		const struct sockaddr_in *in = (const void *)&sa;
		const struct sockaddr_in6 *in6 = (const void *)&sa;

		memset(&sa, 0xff, sizeof(sa));
		if (address_parse(good[i].text, &sa, &len, &why))
			fail_msg("'%s': %s", good[i].text, why);
		assert_int_equal(len, sa.ss_family == AF_INET ? sizeof(*in) : sizeof(*in6));
		/* at the same place in both */
		assert_int_equal(ntohs(in->sin_port), good[i].port);
		if (!good[i].addr)
			continue;
		inet_ntop(sa.ss_family, sa.ss_family == AF_INET ? (const void *)&in->sin_addr :
			  (const void *)&in6->sin6_addr, text, sizeof(text));
		assert_string_equal(text, good[i].addr);
	}
}

static void wrong(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "", "port" }, { ":", "port" }, { "127.0.0.1", "port" }, { "127.0.0.1:", "port" },
		{ ":0", "port" }, { ":65536", "port" }, { ":74536", "port" },
		{ ":4294967376", "port" }, { ":18446744073709551696", "port" }, { ":-1", "port" },
		{ ":+80", "port" }, { ": 80", "port" }, { ":80 ", "port" }, { ":http", "port" },
		{ ":0x50", "port" }, { ":000080", "port" }, { "[]:80", "brackets" },
		{ "[::1]", "port" }, { "[:80", "" }, { "256.0.0.1:80", "" }, { "]:80", "" },
	};
	char text[HOST_MAX + 8];
	struct sockaddr_storage sa;
	const char *why;
	socklen_t len;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		if (address_parse(bad[i].text, &sa, &len, &why) != -EINVAL)
			fail_msg("'%s' is taken", bad[i].text);
		if (!strstr(why, bad[i].why))
			fail_msg("'%s': %s", bad[i].text, why);
	}
	memset(text, '0', HOST_MAX);
	strcpy(text + HOST_MAX, ":80");
	assert_int_equal(address_parse(text, &sa, &len, &why), -EINVAL);
	assert_non_null(strstr(why, "too long"));
}

/* Loopback may be down where tests run; then nobody has its address. */
static void whose(void **state)
{
	const int lo = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { .ifr_name = "lo" };

	(void)state;
	assert_true(lo >= 0);
	if (!ioctl(lo, SIOCGIFADDR, &ifr))
		assert_true(address_is_here("127.0.0.1"));
	else
		assert_false(address_is_here("127.0.0.1"));
	close(lo);
	assert_false(address_is_here("127.0.0.10"));
	assert_false(address_is_here("127.0.0."));
	assert_false(address_is_here("192.0.2.77"));
	assert_false(address_is_here("2001:db8::77"));
	assert_false(address_is_here("/run/node"));
	assert_false(address_is_here(""));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(right),
	cmocka_unit_test(wrong),
	cmocka_unit_test(whose),
};

UNIT_MAIN_ALONE(tests)
