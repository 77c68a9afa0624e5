// SPDX-License-Identifier: MIT OR GPL-2.0
/* Datagrams on the loopback of an agent's own, from one of its programs to another one */
#include "datagram_bed.h"

static void within(void **state)
{
	struct rgate_socket_addr from;
	uint16_t port, mine;
	int a = new_udp(AF_INET), b = new_udp(AF_INET), c, tcp = listening(&port);
	char got[8];

	(void)state;
	/* A stream's port is another one. */
	assert_int_equal(bind_udp(a, port), port);
	assert_int_equal(ASK(b, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(port)),
			 -EADDRINUSE);
	send_to(b, port, "hello", 5);
	assert_int_equal(recv_from(a, &from, got, sizeof(got)), 5);
	assert_memory_equal(got, "hello", 5);
	mine = port_of(b);
	assert_int_equal(from.port, mine);
	assert_memory_equal(&from.addr, loop_at(0).addr, 16);
	send_to(a, mine, "", 0);
	assert_int_equal(recv_from(b, &from, got, sizeof(got)), 0);
	assert_int_equal(from.port, port);
	/* Connected, it takes from its peer alone. */
	assert_int_equal(connect_udp(b, port), 0);
	assert_int_equal(port_of(b), mine);
	c = new_udp(AF_INET);
	send_to(c, mine, "no", 2);
	send_to(b, 0, "yes", 3);
	assert_int_equal(recv_from(a, NULL, got, sizeof(got)), 3);
	send_to(a, mine, "back", 4);
	assert_int_equal(recv_from(b, NULL, got, sizeof(got)), 4);
	assert_memory_equal(got, "back", 4);
	/* Nobody has the port: as an ICMP tells it. It is free at once. */
	close(a);
	usleep(50000);
	send_to(b, 0, "gone", 4);
	assert_int_equal(recv_from(b, NULL, got, sizeof(got)), -ECONNREFUSED);
	a = new_udp(AF_INET);
	assert_int_equal(bind_udp(a, port), port);
	close(a);
	a = new_udp(AF_INET);
	assert_int_equal(bind_udp(a, port), port);
	assert_int_equal(info_now().sent, 0);
	close(a);
	close(b);
	close(c);
	close(tcp);
	all_gone();
}

/* Of this process: sockets of the kernel at which somebody outside could reach one */
static unsigned int open_ports(void)
{
	struct sockaddr_in6 in6;
	socklen_t len;
	int fd, domain, type;
	unsigned int n = 0;

	for (fd = 0; fd < 1024; fd++) {
		len = sizeof(domain);
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 || domain == AF_UNIX)
			continue;
		len = sizeof(type);
		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_DGRAM)
			continue;
		len = sizeof(in6);
		assert_int_equal(getsockname(fd, (struct sockaddr *)&in6, &len), 0);
		n += in6.sin6_port != 0;
	}
	return n;
}

/* What stays within opens nothing outside, whoever asks for its name, and when. */
static void stays_within(void **state)
{
	const struct rgate_socket_addr any = { .family = AF_INET }, none = { .family = 0 };
	struct rgate_socket_addr from, at;
	int a = new_udp(AF_INET), b = new_udp(AF_INET), c = new_udp(AF_INET), d = new_udp(AF_INET6);
	uint16_t port, mine, other;
	char got[8];

	(void)state;
	port = bind_udp(a, 0);
	send_to(b, port, "one", 3);
	mine = port_of(b);
	assert_true(mine > 60999);
	assert_int_equal(recv_from(a, &from, got, sizeof(got)), 3);
	assert_int_equal(from.port, mine);
	send_to(a, mine, "two", 3);
	assert_int_equal(recv_from(b, &from, got, sizeof(got)), 3);
	assert_int_equal(from.port, port);
	/* it has the port when it is connected, too, as long as that */
	assert_int_equal(connect_udp(b, port), 0);
	assert_int_equal(port_of(b), mine);
	assert_int_equal(connect_udp(c, port), 0);
	other = port_of(c);
	assert_true(other > 60999 && other != mine);
	send_to(c, 0, "three", 5);
	assert_int_equal(recv_from(a, &from, got, sizeof(got)), 5);
	assert_int_equal(from.port, other);
	assert_int_equal(ASK(c, NULL, NULL, .what = AGENT_CONNECT, .addr = none), 0);
	assert_int_equal(port_of(c), 0);
	assert_int_equal(open_ports(), 0);
	/* nobody else is there meanwhile, outside neither */
	at = any;
	at.port = mine;
	assert_int_equal(ASK(c, NULL, NULL, .what = AGENT_BIND, .addr = at), -EADDRINUSE);
	assert_int_equal(ASK(c, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(mine)),
			 -EADDRINUSE);
	at.family = AF_INET6;
	assert_int_equal(ASK(d, NULL, NULL, .what = AGENT_BIND, .addr = at), -EADDRINUSE);
	close(b);
	at.family = AF_INET;
	assert_int_equal(ASK(c, NULL, NULL, .what = AGENT_BIND, .addr = at), 0);
	/* who wants to be reached outside is */
	assert_int_equal(open_ports(), 1);
	close(a);
	close(c);
	close(d);
	all_gone();
}

/* One that has no port yet is not at port 0. */
static void unbound(void **state)
{
	int a = new_udp(AF_INET), b = new_udp(AF_INET);
	uint16_t port;
	char got[8];

	(void)state;
	assert_int_equal(connect_udp(b, 0), 0);
	send_to(b, 0, "stray", 5);
	assert_int_equal(recv_from(b, NULL, got, sizeof(got)), -ECONNREFUSED);
	port = bind_udp(a, 0);
	assert_int_equal(connect_udp(b, port), 0);
	send_to(b, 0, "meant", 5);
	assert_int_equal(recv_from(a, NULL, got, sizeof(got)), 5);
	assert_memory_equal(got, "meant", 5);
	close(a);
	close(b);
	all_gone();
}

/* One at :: hears both families, of which each has its own addresses. */
static void families(void **state)
{
	const struct rgate_socket_addr any = { .family = AF_INET6 };
	struct rgate_socket_addr from, to = { .family = AF_INET6, .addr = { [15] = 1 } };
	int six = new_udp(AF_INET6), four = new_udp(AF_INET), other = new_udp(AF_INET6);
	uint16_t port;
	char got[8];

	(void)state;
	assert_int_equal(ASK(six, NULL, NULL, .what = AGENT_BIND, .addr = any), 0);
	port = to.port = port_of(six);
	send_to(four, port, "four", 4);
	assert_int_equal(recv_from(six, &from, got, sizeof(got)), 4);
	assert_int_equal(from.family, AF_INET6);
	assert_int_equal(from.addr[10], 255);
	assert_int_equal(from.addr[12], 127);
	assert_int_equal(send_with(six, &from, "back", 4, 0), 0);
	assert_int_equal(recv_from(four, &from, got, sizeof(got)), 4);
	assert_int_equal(from.port, port);
	assert_int_equal(from.family, AF_INET);
	assert_memory_equal(&from.addr, loop_at(0).addr, 16);
	assert_int_equal(send_with(other, &to, "six", 3, 0), 0);
	assert_int_equal(recv_from(six, &from, got, sizeof(got)), 3);
	assert_memory_equal(&from.addr, &to.addr, 16);
	close(six);
	close(four);
	close(other);
	all_gone();
}

static struct rgate_socket_addr at_host(const char *host, uint16_t port)
{
	struct rgate_socket_addr a = { .family = strchr(host, ':') ? AF_INET6 : AF_INET,
				       .port = port };

	assert_int_equal(inet_pton(a.family, host, a.addr), 1);
	return a;
}

/* Who is bound at a host, by who is asked for, and whether they meet */
static const struct {
	const char *bound, *asked;
	bool meet;
} hosts[] = {
	{ "127.0.0.1", "127.0.0.1", true }, { "127.0.0.1", "127.0.0.2", false },
	{ "127.0.0.2", "127.0.0.2", true }, { "127.0.0.2", "0.0.0.0", false },
	{ "0.0.0.0", "127.0.0.1", true }, { "0.0.0.0", "127.0.0.2", true },
	{ "0.0.0.0", "0.0.0.0", true }, { "0.0.0.0", "::1", false },
	{ "0.0.0.0", "::ffff:127.0.0.1", true }, { "127.0.0.1", "::ffff:127.0.0.1", true },
	{ "127.0.0.1", "::1", false }, { "127.0.0.1", "::", false },
	{ "::1", "::1", true }, { "::1", "::", true }, { "::1", "127.0.0.1", false },
	{ "::", "::1", true }, { "::", "127.0.0.1", true }, { "::", "0.0.0.0", true },
};

static void which_host(void **state)
{
	struct rgate_socket_addr to;
	unsigned int i;
	int a, b, err;
	char got[4];

	(void)state;
	for (i = 0; i < ARRAY_LEN(hosts); i++) {
		to = at_host(hosts[i].bound, 0);
		a = new_udp(to.family);
		assert_int_equal(ASK(a, NULL, NULL, .what = AGENT_BIND, .addr = to), 0);
		to = at_host(hosts[i].asked, port_of(a));
		b = new_udp(to.family);
		if (hosts[i].meet) {
			assert_int_equal(send_with(b, &to, "x", 1, 0), 0);
			assert_int_equal(recv_from(a, NULL, got, sizeof(got)), 1);
		}
		/* Who is connected is told that there is nobody. */
		assert_int_equal(ASK(b, NULL, NULL, .what = AGENT_CONNECT, .addr = to), 0);
		send_to(b, 0, "xy", 2);
		err = recv_from(hosts[i].meet ? a : b, NULL, got, sizeof(got));
		assert_int_equal(err, hosts[i].meet ? 2 : -ECONNREFUSED);
		close(a);
		close(b);
	}
	all_gone();
	assert_int_equal(info_now().sent, 0);
}

static void which_listener(void **state)
{
	struct rgate_socket_addr to;
	struct agent_answer answer;
	unsigned int i;
	int a, b;

	(void)state;
	for (i = 0; i < ARRAY_LEN(hosts); i++) {
		to = at_host(hosts[i].bound, 0);
		assert_int_equal(ASK(-1, NULL, &a, .what = AGENT_SOCKET, .a = to.family), 0);
		assert_int_equal(ASK(a, NULL, NULL, .what = AGENT_BIND, .addr = to), 0);
		assert_int_equal(ASK(a, NULL, NULL, .what = AGENT_LISTEN, .a = 4), 0);
		to = at_host(hosts[i].asked, port_of(a));
		assert_int_equal(ASK(-1, NULL, &b, .what = AGENT_SOCKET, .a = to.family), 0);
		assert_int_equal(ASK(b, &answer, NULL, .what = AGENT_CONNECT, .addr = to),
				 hosts[i].meet ? 0 : -ECONNREFUSED);
		assert_int_equal(answer.len, hosts[i].meet ? sizeof(uint64_t) : 0);
		close(a);
		close(b);
	}
	all_gone();
}

/* To both: what is connected within hears nothing from outside until it is connected no more. */
static void both_places(void **state)
{
	struct rgate_socket_addr to = { .family = AF_INET };
	uint16_t port, mine, within_port;
	int fd = new_udp(AF_INET), other = new_udp(AF_INET), peer = outer(&port);
	char got[8];

	(void)state;
	within_port = bind_udp(other, 0);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_BIND, .addr = to), 0);
	mine = port_of(fd);
	outer_send(peer, mine, "out", 3);
	assert_int_equal(recv_from(fd, NULL, got, sizeof(got)), 3);
	send_to(other, mine, "in", 2);
	assert_int_equal(recv_from(fd, NULL, got, sizeof(got)), 2);
	/* One that is bound there goes nowhere else. */
	to = (struct rgate_socket_addr){ .family = AF_INET, .port = port, .addr = { 10, 0, 0, 1 } };
	assert_int_equal(ASK(other, NULL, NULL, .what = AGENT_CONNECT, .addr = to), -EINVAL);
	assert_int_equal(connect_udp(fd, within_port), 0);
	outer_send(peer, mine, "out", 3);
	assert_true(is_silent(fd));
	send_to(other, mine, "in", 2);
	assert_int_equal(recv_from(fd, NULL, got, sizeof(got)), 2);
	close(fd);
	close(other);
	close(peer);
	all_gone();
}

/* It ends while it asks for a port of another one: who looks for closed ones leaves it alone. */
static void ends_asking(void **state)
{
	struct agent_ask q = { .version = AGENT_VERSION, .what = AGENT_BIND };
	struct agent_answer answer;
	int a = new_udp(AF_INET), b = new_udp(AF_INET), sock;

	(void)state;
	q.addr = loop_at(bind_udp(a, 0));
	sock = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);
	(void)port_of(a);
	pthread_mutex_lock(&turn);
	assert_int_equal(rgate_wire_send(sock, &q, sizeof(q), &b, 1, 0), 0);
	assert_int_equal(shutdown(b, SHUT_RDWR), 0);
	pthread_mutex_unlock(&turn);
	answers_in_time(sock);
	assert_int_equal(rgate_wire_recv(sock, &answer, sizeof(answer), NULL, NULL, 0),
			 sizeof(answer));
	assert_int_equal(answer.result, -EADDRINUSE);
	close(sock);
	close(a);
	close(b);
	all_gone();
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(within, up_own, down),
	cmocka_unit_test_setup_teardown(stays_within, up_own, down),
	cmocka_unit_test_setup_teardown(unbound, up_own, down),
	cmocka_unit_test_setup_teardown(families, up_own, down),
	cmocka_unit_test_setup_teardown(which_host, up_own, down),
	cmocka_unit_test_setup_teardown(which_listener, up_own, down),
	cmocka_unit_test_setup_teardown(both_places, up_own, down),
	cmocka_unit_test_setup_teardown(ends_asking, up_own, down),
};

UNIT_MAIN(tests)
