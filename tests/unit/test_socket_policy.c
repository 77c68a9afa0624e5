// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who may reach what by sockets: addresses, the lines of the policy, and what follows from them */
#include "socket_bed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "socket_own.h"

#define STREAM	RGATE_SOCKET_STREAM
#define DGRAM	RGATE_SOCKET_DGRAM
#define CONNECT	SOCKET_ACT_CONNECT
#define LISTEN	SOCKET_ACT_LISTEN
#define ADDR	sizeof(struct rgate_socket_addr)
#define A	(&net_a)
#define B	(&net_b)

/* ---- Addresses ---- */

static struct rgate_socket_addr addr_of(const char *text, uint16_t port)
{
	struct rgate_socket_addr a = { .port = port };
	const bool v6 = strchr(text, ':');

	a.family = v6 ? RGATE_SOCKET_INET6 : RGATE_SOCKET_INET;
	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, text, a.addr), 1);
	return a;
}

static const char *host_of(const char *text)
{
	static char to[SOCKET_ADDR_TEXT];
	struct rgate_socket_addr a = addr_of(text, 0);
	struct socket_host h;

	socket_host_of(&a, &h);
	return socket_host_text(&h, to);
}

/* Where packets go that are sent to it */
static void undone(void **state)
{
	(void)state;
	assert_string_equal(host_of("10.1.2.3"), "10.1.2.3");
	assert_string_equal(host_of("::ffff:10.1.2.3"), "10.1.2.3");
	assert_string_equal(host_of("::10.1.2.3"), "10.1.2.3");
	assert_string_equal(host_of("64:ff9b::10.1.2.3"), "10.1.2.3");
	assert_string_equal(host_of("64:ff9b::7f00:1"), "127.0.0.1");
	assert_string_equal(host_of("2002:a01:203::1"), "10.1.2.3");
	assert_string_equal(host_of("2002:7f00:1:ffff::"), "127.0.0.1");
	assert_string_equal(host_of("2003:a01:203::1"), "2003:a01:203::1");
	assert_string_equal(host_of("64:ff9b:1::a01:203"), "64:ff9b:1::a01:203");
	assert_string_equal(host_of("::1"), "::1");
	assert_string_equal(host_of("::"), "::");
	assert_string_equal(host_of("::2"), "0.0.0.2");
	assert_string_equal(host_of("::fffe:10.1.2.3"), "::fffe:a01:203");
	assert_string_equal(host_of("fe80::1"), "fe80::1");
}

static enum socket_place place_of(const char *text)
{
	struct rgate_socket_addr a = addr_of(text, 0);
	struct socket_host h;

	socket_host_of(&a, &h);
	return socket_host_place(&h, NULL);
}

static void places(void **state)
{
	(void)state;
	assert_int_equal(place_of("10.0.0.1"), PLACE_PLAIN);
	assert_int_equal(place_of("126.255.255.255"), PLACE_PLAIN);
	assert_int_equal(place_of("127.0.0.1"), PLACE_LOOPBACK);
	assert_int_equal(place_of("127.255.255.255"), PLACE_LOOPBACK);
	assert_int_equal(place_of("128.0.0.0"), PLACE_PLAIN);
	assert_int_equal(place_of("169.254.169.254"), PLACE_LINK_LOCAL);
	assert_int_equal(place_of("169.253.255.255"), PLACE_PLAIN);
	assert_int_equal(place_of("0.0.0.0"), PLACE_UNSPECIFIED);
	assert_int_equal(place_of("0.1.2.3"), PLACE_UNSPECIFIED);
	assert_int_equal(place_of("223.255.255.255"), PLACE_PLAIN);
	assert_int_equal(place_of("224.0.0.1"), PLACE_MULTICAST);
	assert_int_equal(place_of("239.1.1.1"), PLACE_MULTICAST);
	assert_int_equal(place_of("240.0.0.1"), PLACE_MULTICAST);
	assert_int_equal(place_of("255.255.255.255"), PLACE_MULTICAST);
	assert_int_equal(place_of("::1"), PLACE_LOOPBACK);
	assert_int_equal(place_of("::"), PLACE_UNSPECIFIED);
	assert_int_equal(place_of("fe80::1"), PLACE_LINK_LOCAL);
	assert_int_equal(place_of("febf::1"), PLACE_LINK_LOCAL);
	assert_int_equal(place_of("fec0::1"), PLACE_PLAIN);
	assert_int_equal(place_of("ff02::1"), PLACE_MULTICAST);
	assert_int_equal(place_of("2001:db8::1"), PLACE_PLAIN);
	assert_int_equal(place_of("::ffff:127.0.0.1"), PLACE_LOOPBACK);
	assert_int_equal(place_of("64:ff9b::169.254.169.254"), PLACE_LINK_LOCAL);
	assert_int_equal(place_of("2002:7f00:1::"), PLACE_LOOPBACK);
	assert_int_equal(place_of("::ffff:0.0.0.0"), PLACE_UNSPECIFIED);
}

static void prefixes(void **state)
{
	static const char *const bad[] = {
		"", "/", "10.0.0.1/", "10.0.0.1/33", "10.0.0.1/24", "10.0.0.0/-8", "10.0.0.0/ 8",
		"10.0.0.0/8x", "10.0.0", "10.0.0.0.0", "::1/129", "::1/64", "host", "10.0.0.0/+8",
		"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd:eeee:ffff:0000",
	};
	struct socket_host h, x;
	unsigned int bits, i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(socket_host_parse(bad[i], &h, &bits), -EINVAL);
	assert_int_equal(socket_host_parse("10.128.0.0/9", &h, &bits), 0);
	assert_int_equal(bits, 9);
	assert_int_equal(socket_host_parse("10.255.1.2", &x, &bits), 0);
	assert_int_equal(bits, 32);
	assert_true(socket_host_within(&x, &h, 9));
	assert_false(socket_host_within(&x, &h, 10));
	assert_true(socket_host_within(&x, &h, 0));
	assert_int_equal(socket_host_parse("::/0", &h, &bits), 0);
	assert_int_equal(bits, 0);
	assert_false(socket_host_within(&x, &h, 0));
	assert_int_equal(socket_host_parse("2001:db8::/33", &h, &bits), 0);
	assert_int_equal(socket_host_parse("2001:db8:8000::", &x, &bits), 0);
	assert_true(socket_host_within(&x, &h, 32));
	assert_false(socket_host_within(&x, &h, 33));
	assert_true(socket_host_within(&x, &x, 128));
}

/* The kernel says which addresses are its own. */
static void own(void **state)
{
	struct socket_host h;
	unsigned int bits;
	int fd = socket_own_open();

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(socket_host_parse("127.0.0.1", &h, &bits), 0);
	assert_int_equal(socket_own(fd, &h), 1);
	assert_int_equal(socket_host_parse("127.1.2.3", &h, &bits), 0);
	assert_int_equal(socket_own(fd, &h), 1);
	assert_int_equal(socket_host_parse("198.51.100.77", &h, &bits), 0);
	assert_int_equal(socket_own(fd, &h), 0);
	assert_int_equal(socket_host_parse("2001:db8::77", &h, &bits), 0);
	assert_int_equal(socket_own(fd, &h), 0);
	close(fd);
}

/* What the next answers say of the kind of route; 0: what the kernel said */
static uint8_t route_type;

ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags)
{
	const struct rtmsg route = { .rtm_type = route_type };
	struct nlmsghdr *h = buf;
	ssize_t n = recvfrom(fd, buf, len, flags, NULL, NULL);

	if (!route_type || n < (ssize_t)NLMSG_LENGTH(sizeof(route)))
		return n;
	h->nlmsg_len = NLMSG_LENGTH(sizeof(route));
	h->nlmsg_type = RTM_NEWROUTE;
	memcpy(NLMSG_DATA(h), &route, sizeof(route));
	return n;
}

/* A machine behind another one is none of its own; all that this one itself would hear is. */
static void own_by_route(void **state)
{
	static const uint8_t types[] = {
		RTN_UNICAST, RTN_LOCAL, RTN_BROADCAST, RTN_ANYCAST, RTN_MULTICAST, RTN_BLACKHOLE,
		RTN_UNREACHABLE, RTN_PROHIBIT,
	};
	struct socket_host h;
	unsigned int bits;
	int fd = socket_own_open();
	size_t i;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(socket_host_parse("127.0.0.1", &h, &bits), 0);
	for (i = 0; i < ARRAY_LEN(types); i++) {
		route_type = types[i];
		assert_int_equal(socket_own(fd, &h), i > 0 && i < 5);
	}
	route_type = 0;
	close(fd);
}

/* ---- Lines ---- */

static struct socket_policy *policy;

static int parse(const char *text)
{
	char copy[1024];

	socket_policy_free(policy);
	policy = NULL;
	snprintf(copy, sizeof(copy), "%s", text);
	return socket_policy_parse(&policy, "test", copy, strlen(copy));
}

static int forget(void **state)
{
	(void)state;
	socket_policy_free(policy);
	policy = NULL;
	return 0;
}

static bool may(uid_t uid, enum socket_act act, uint32_t type, const char *host, uint16_t port)
{
	struct rgate_socket_addr a = addr_of(host, port);
	struct socket_wish w = { .uid = uid, .act = act, .type = type, .port = port };

	socket_host_of(&a, &w.host);
	return socket_policy_may(policy, &w);
}

static void lines(void **state)
{
	static const char *const bad[] = {
		"allow", "allow any", "allow any connect", "allow any connect tcp",
		"allow any connect tcp any", "allow any connect tcp any 8080 any",
		"allow any reach tcp any any", "allow any connect sctp any any",
		"allow nobodyatall connect tcp any any", "allow user: connect tcp any any",
		"allow user:no-such-user-here connect tcp any any",
		"allow group:root connect tcp any any", "allow any listen tcp",
		"allow any listen tcp own 8080", "allow any connect tcp 10.0.0.1/8 80",
		"allow any connect tcp host.example 80", "allow any connect tcp any 0",
		"allow any connect tcp any 65536", "allow any connect tcp any 80-70",
		"allow any connect tcp any 80-", "allow any connect tcp any -80",
		"allow any connect tcp any 80-2000", "allow any connect tcp any 1-65535",
		"allow any connect tcp any http", "allow any connect tcp ::ffff:10.0.0.1 8080",
		"allow any connect tcp ::ffff:0:0/96 8080", "limit any sockets", "limit any files 3",
		"limit any sockets 0", "limit any sockets 10000001", "sockets", "sockets 0",
		"sockets 1 2", "deny any connect tcp any any", "\"allow", "allow a b c d e f g h i",
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(parse(bad[i]), -EINVAL);
	assert_int_equal(parse(""), 0);
	assert_int_equal(parse("# nothing\n\n"), 0);
	assert_false(may(1, CONNECT, STREAM, "10.0.0.1", 8080));
	assert_false(may(1, LISTEN, STREAM, "0.0.0.0", 8080));
	/* who this process is always may */
	assert_true(may(geteuid(), CONNECT, STREAM, "127.0.0.1", 22));
	assert_true(may(0, LISTEN, DGRAM, "0.0.0.0", 53));
}

static void allowed(void **state)
{
	(void)state;
	assert_int_equal(parse("allow user:7 connect tcp 10.0.0.0/8 8000-8999\n"
			       "allow any listen udp 5000\n"), 0);
	assert_true(may(7, CONNECT, STREAM, "10.9.9.9", 8000));
	assert_true(may(7, CONNECT, STREAM, "10.9.9.9", 8999));
	assert_true(may(7, CONNECT, STREAM, "::ffff:10.9.9.9", 8080));
	assert_true(may(7, CONNECT, STREAM, "64:ff9b::10.9.9.9", 8080));
	assert_false(may(7, CONNECT, STREAM, "10.9.9.9", 7999));
	assert_false(may(7, CONNECT, STREAM, "10.9.9.9", 9000));
	assert_false(may(7, CONNECT, STREAM, "11.0.0.1", 8080));
	assert_false(may(7, CONNECT, DGRAM, "10.9.9.9", 8080));
	assert_false(may(7, LISTEN, STREAM, "10.9.9.9", 8080));
	assert_false(may(8, CONNECT, STREAM, "10.9.9.9", 8080));
	assert_true(may(8, LISTEN, DGRAM, "0.0.0.0", 5000));
	assert_true(may(8, LISTEN, DGRAM, "::", 5000));
	assert_true(may(8, LISTEN, DGRAM, "10.0.0.1", 5000));
	assert_false(may(8, LISTEN, DGRAM, "127.0.0.1", 5000));
	assert_false(may(8, LISTEN, DGRAM, "0.0.0.0", 0));
}

/* A port that the kernel chooses is also his who may send from one, and only for that. */
static void chosen(void **state)
{
	(void)state;
	assert_int_equal(parse("allow user:7 connect udp 10.0.0.0/8 5353\n"
			       "allow user:8 connect tcp any any\nallow user:9 resolve any\n"
			       "allow user:10 listen udp any\nlimit user:11 sockets 5\n"), 0);
	assert_true(may(7, LISTEN, DGRAM, "0.0.0.0", 0));
	assert_true(may(7, LISTEN, DGRAM, "::", 0));
	assert_false(may(7, LISTEN, DGRAM, "127.0.0.1", 0));
	assert_false(may(7, LISTEN, DGRAM, "::1", 0));
	assert_false(may(7, LISTEN, DGRAM, "10.0.0.1", 0));
	assert_false(may(7, LISTEN, DGRAM, "0.0.0.0", 5353));
	assert_false(may(7, LISTEN, STREAM, "0.0.0.0", 0));
	assert_false(may(8, LISTEN, DGRAM, "0.0.0.0", 0));
	assert_false(may(8, LISTEN, STREAM, "0.0.0.0", 0));
	assert_false(may(9, LISTEN, DGRAM, "0.0.0.0", 0));
	assert_true(may(10, LISTEN, DGRAM, "0.0.0.0", 0));
	assert_false(may(10, CONNECT, DGRAM, "10.0.0.1", 0));
	assert_false(may(11, LISTEN, DGRAM, "0.0.0.0", 0));
}

/* any means nowhere special, and no low port; those need lines that are about them. */
static void special(void **state)
{
	static const char *const places[] = {
		"127.0.0.1", "::ffff:127.0.0.1", "64:ff9b::127.0.0.1", "2002:7f00:1::", "::1",
		"169.254.169.254", "::ffff:169.254.169.254", "2002:a9fe:a9fe::1", "fe80::1",
		"0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "ff02::1",
	};
	unsigned int i;

	(void)state;
	assert_int_equal(parse("allow any connect tcp any any\n"
			       "allow any connect udp any any\n"
			       "allow any connect any 0.0.0.0/0 any\n"
			       "allow any connect any ::/0 any\n"
			       "allow any connect any 96.0.0.0/3 any\n"
			       "allow any connect any 10.0.0.0/8 22\n"
			       "allow any listen tcp any\n"), 0);
	for (i = 0; i < ARRAY_LEN(places); i++)
		assert_false(may(7, CONNECT, STREAM, places[i], 8080));
	assert_true(may(7, CONNECT, STREAM, "10.0.0.1", 8080));
	assert_true(may(7, CONNECT, STREAM, "2001:db8::1", 8080));
	assert_true(may(7, CONNECT, DGRAM, "10.0.0.1", 1024));
	assert_false(may(7, CONNECT, DGRAM, "10.0.0.1", 1023));
	assert_true(may(7, CONNECT, DGRAM, "10.0.0.1", 22));
	assert_false(may(7, CONNECT, DGRAM, "11.0.0.1", 22));
	assert_true(may(7, LISTEN, STREAM, "0.0.0.0", 0));
	assert_true(may(7, LISTEN, STREAM, "0.0.0.0", 8080));
	assert_false(may(7, LISTEN, STREAM, "0.0.0.0", 80));
	assert_int_equal(parse("allow any connect tcp 127.0.0.0/8 any\n"
			       "allow any connect tcp 169.254.169.254 80\n"
			       "allow any connect tcp ::1 any\n"
			       "allow any connect udp 239.0.0.0/8 any\n"), 0);
	assert_true(may(7, CONNECT, STREAM, "127.0.0.1", 8080));
	assert_true(may(7, CONNECT, STREAM, "::ffff:127.0.0.1", 8080));
	assert_true(may(7, CONNECT, STREAM, "169.254.169.254", 80));
	assert_false(may(7, CONNECT, STREAM, "169.254.169.253", 80));
	assert_true(may(7, CONNECT, STREAM, "::1", 8080));
	assert_true(may(7, CONNECT, DGRAM, "239.1.2.3", 8080));
	assert_false(may(7, CONNECT, STREAM, "0.0.0.0", 8080));
}

/* An address of this machine is nobody's, unless a line says own, or that address. */
static void of_this_machine(void **state)
{
	struct socket_wish w = { .uid = 7, .type = STREAM, .port = 8080, .own = true };
	unsigned int bits;

	(void)state;
	assert_int_equal(socket_host_parse("10.0.0.1", &w.host, &bits), 0);
	assert_int_equal(parse("allow any connect tcp any any\n"
			       "allow any connect tcp 10.0.0.0/31 any"), 0);
	assert_false(socket_policy_may(policy, &w));
	assert_int_equal(parse("allow any connect tcp 10.0.0.1 any"), 0);
	assert_true(socket_policy_may(policy, &w));
	assert_int_equal(parse("allow any connect tcp own any"), 0);
	assert_true(socket_policy_may(policy, &w));
	w.own = false;
	assert_false(socket_policy_may(policy, &w));
	/* loopback is another thing */
	w.own = true;
	assert_int_equal(socket_host_parse("127.0.0.1", &w.host, &bits), 0);
	assert_false(socket_policy_may(policy, &w));
}

static void limits(void **state)
{
	(void)state;
	assert_int_equal(parse("limit user:7 sockets 3\nlimit any sockets 5\nsockets 100"), 0);
	assert_int_equal(socket_policy_most(policy, 7), 3);
	assert_int_equal(socket_policy_most(policy, 8), 5);
	assert_int_equal(socket_policy_most(policy, 0), 0);
	assert_int_equal(socket_policy_most_all(policy), 100);
	assert_int_equal(parse(""), 0);
	assert_int_equal(socket_policy_most(policy, 8), 1024);
	assert_int_equal(socket_policy_most_all(policy), 0);
}

static void files(void **state)
{
	char path[] = "/tmp/socket-policy-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "sockets 9\n", 10), 10);
	close(fd);
	assert_int_equal(socket_policy_load(&policy, path), 0);
	assert_int_equal(socket_policy_most_all(policy), 9);
	socket_policy_free(policy);
	policy = NULL;
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(socket_policy_load(&policy, path), -EPERM);
	unlink(path);
	assert_int_equal(socket_policy_load(&policy, path), -ENOENT);
	assert_int_equal(socket_policy_load(&policy, NULL), 0);
	assert_false(may(7, CONNECT, STREAM, "10.0.0.1", 8080));
}

/* ---- What follows ---- */

static void refused(void **state)
{
	uint32_t s, u;
	uint16_t port;
	struct socket_stats st = { .sz = sizeof(st) };
	int fd = raw_listen(8, &port);

	(void)state;
	net_up("allow user:1 connect tcp 127.0.0.0/8 any\n"
	       "allow user:1 connect tcp ::1 any\nallow user:1 listen tcp any\n", 0);
	s = net_socket(A, 4, STREAM);
	assert_int_equal(net_connect(A, s, 4, port), 0);
	s = net_socket(B, 4, STREAM);
	assert_int_equal(net_connect(B, s, 4, port), -EACCES);
	/* however it is written */
	s = net_socket(B, 6, STREAM);
	net_addr_put(B, "::ffff:127.0.0.1", port);
	assert_int_equal(ASK(B, CONNECT, .handle = s, .off = NET_ADDR, .len = ADDR), -EACCES);
	s = net_socket(A, 6, STREAM);
	net_addr_put(A, "::ffff:127.0.0.1", port);
	assert_int_equal(ASK(A, CONNECT, .handle = s, .off = NET_ADDR, .len = ADDR), 0);
	u = net_socket(A, 4, DGRAM);
	net_addr(A, 4, port);
	assert_int_equal(ASK(A, SENDTO, .handle = u, .a1 = NET_ADDR, .len = 1), -EACCES);
	assert_int_equal(net_connect(A, u, 4, port), -EACCES);
	/* what nobody lets him send nobody sends him */
	assert_int_equal(net_bind(A, u, 4, 0), -EACCES);
	/* ports that a client chooses, and those that the kernel does */
	s = net_socket(B, 4, STREAM);
	assert_int_equal(net_bind(B, s, 4, 0), 0);
	assert_int_equal(ASK(B, LISTEN, .handle = s, .a0 = 1), -EACCES);
	s = net_socket(B, 4, STREAM);
	assert_int_equal(net_bind(B, s, 4, 8088), -EACCES);
	s = net_socket(A, 4, STREAM);
	assert_int_equal(ASK(A, LISTEN, .handle = s, .a0 = 1), 0);
	s = net_socket(A, 4, STREAM);
	net_addr_put(A, "0.0.0.0", 88);
	assert_int_equal(ASK(A, BIND, .handle = s, .off = NET_ADDR, .len = ADDR), -EACCES);
	/* loopback is not anywhere */
	s = net_socket(A, 4, STREAM);
	assert_int_equal(net_bind(A, s, 4, 0), 0);
	assert_int_equal(ASK(A, LISTEN, .handle = s, .a0 = 1), -EACCES);
	assert_int_equal(socket_service_stats(net_sv, &st), 0);
	assert_int_equal(st.refused, 9);
	net_down();
	close(fd);
}

/* Another policy under live connections: what it does not allow ends, the rest goes on. */
static void changed(void **state)
{
	uint32_t s, t, l;
	uint16_t port;
	uint64_t recv;
	int fd, fd2;

	(void)state;
	net_up("allow any connect tcp 127.0.0.0/8 any\nallow user:2 listen tcp 127.0.0.0/8 any", 0);
	s = net_pair(A, &fd);
	t = net_pair(B, &fd2);
	l = net_listen(B, 4, &port);
	recv = POST(A, RECV, .handle = s, .len = 8);
	net_new_policy("allow user:2 connect tcp 127.0.0.0/8 any\n");
	assert_int_equal(net_end(A, recv), -EACCES);
	assert_int_equal(raw_read(fd, A->c.mem, 8), 0);
	assert_int_equal(ASK(B, SEND, .handle = t, .len = 5), 5);
	assert_int_equal(raw_read(fd2, B->c.mem, 5), 5);
	assert_int_equal(ASK(B, ACCEPT, .handle = l), -EACCES);
	close(fd);
	close(fd2);
	net_down();
}

static int reuse(struct net_client *c, uint32_t s, uint32_t option)
{
	memcpy(c->c.mem, &(int32_t){ 1 }, 4);
	return ASK(c, SETOPT, .handle = s, .a0 = option, .len = 4);
}

/* The kernel takes all of them for one user's: nobody gets a part of another one's port by it. */
static void ports_of_others(void **state)
{
	uint32_t a, b, i, type;
	uint16_t port;

	(void)state;
	for (i = 0; i < 4; i++) {
		const uint32_t option = i % 2 ? RGATE_SOCKET_REUSEADDR : RGATE_SOCKET_REUSEPORT;

		net_up(NULL, 0);
		type = i / 2 ? DGRAM : STREAM;
		a = net_socket(A, 4, type);
		assert_int_equal(reuse(A, a, option), 0);
		assert_int_equal(net_bind(A, a, 4, 0), 0);
		port = net_port(A, a);
		b = net_socket(B, 4, type);
		assert_int_equal(reuse(B, b, option), 0);
		assert_int_equal(net_bind(B, b, 4, port), -EADDRINUSE);
		net_addr_put(B, "0.0.0.0", port);
		assert_int_equal(ASK(B, BIND, .handle = b, .off = NET_ADDR, .len = ADDR),
				 -EADDRINUSE);
		b = net_socket(B, 6, type);
		assert_int_equal(reuse(B, b, option), 0);
		net_addr_put(B, "::", port);
		assert_int_equal(ASK(B, BIND, .handle = b, .off = NET_ADDR, .len = ADDR),
				 -EADDRINUSE);
		/* his own he may */
		b = net_socket(A, 4, type);
		assert_int_equal(reuse(A, b, option), 0);
		assert_int_equal(net_bind(A, b, 4, port), 0);
		net_down();
	}
}

static void caps(void **state)
{
	uint32_t s, l;
	uint16_t port;
	int fd;

	(void)state;
	net_up("limit user:1 sockets 2\nsockets 4\nallow any listen tcp 127.0.0.0/8 any", 0);
	l = net_listen(A, 4, &port);
	s = net_socket(A, 4, STREAM);
	assert_int_equal(ASK(A, OPEN, .a0 = RGATE_SOCKET_A0(2, 1)), -EDQUOT);
	fd = raw_connect(port);
	assert_int_equal(ASK(A, ACCEPT, .handle = l), -EDQUOT);
	assert_int_equal(net_close(A, s), 0);
	s = net_accept(A, l);
	net_socket(B, 4, STREAM);
	net_socket(B, 4, STREAM);
	assert_int_equal(ASK(B, OPEN, .a0 = RGATE_SOCKET_A0(2, 1)), -ENFILE);
	close(fd);
	net_down();
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(undone),
	cmocka_unit_test(places),
	cmocka_unit_test(prefixes),
	cmocka_unit_test(own),
	cmocka_unit_test(own_by_route),
	cmocka_unit_test_teardown(lines, forget),
	cmocka_unit_test_teardown(allowed, forget),
	cmocka_unit_test_teardown(chosen, forget),
	cmocka_unit_test_teardown(special, forget),
	cmocka_unit_test_teardown(of_this_machine, forget),
	cmocka_unit_test_teardown(limits, forget),
	cmocka_unit_test_teardown(files, forget),
	cmocka_unit_test(refused),
	cmocka_unit_test(changed),
	cmocka_unit_test(ports_of_others),
	cmocka_unit_test(caps),
};

UNIT_MAIN(tests)
