// SPDX-License-Identifier: MIT OR GPL-2.0
/* Datagrams of the agent of programs' sockets, of programs that stop, lie, and are late. */
#include "agent_bed.h"

#define MOST	65507U

static int new_udp(uint16_t family)
{
	int fd = -1;

	assert_int_equal(ASK(-1, NULL, &fd, .what = AGENT_SOCKET, .a = family,
			     .b = AGENT_DATAGRAM), 0);
	assert_true(fd >= 0);
	return fd;
}

/* One that knows nothing of it, and its port */
static int outer(uint16_t *port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval most = { .tv_sec = 30 };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)), 0);
	*port = ntohs(in.sin_port);
	return fd;
}

static void outer_send(int fd, uint16_t port, const void *data, size_t len)
{
	const struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	assert_int_equal(sendto(fd, data, len, 0, (const struct sockaddr *)&in, sizeof(in)), len);
}

/* The port that it came from */
static uint16_t outer_recv(int fd, const void *data, size_t len)
{
	static char got[MOST + 1];
	struct sockaddr_in in;
	socklen_t room = sizeof(in);

	assert_int_equal(recvfrom(fd, got, sizeof(got), 0, (struct sockaddr *)&in, &room), len);
	assert_memory_equal(got, data, len);
	return ntohs(in.sin_port);
}

/* As the library in a program does */
static int send_with(int fd, const struct rgate_socket_addr *to, const void *data, size_t len,
		     int flags)
{
	struct agent_head head = { .addr = *to };
	struct iovec v[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = len },
	};
	const struct msghdr mh = { .msg_iov = v, .msg_iovlen = 2 };

	return sendmsg(fd, &mh, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void send_to(int fd, uint16_t port, const void *data, size_t len)
{
	assert_int_equal(send_with(fd, &(struct rgate_socket_addr){
		.family = port ? AF_INET : 0, .port = port,
		.addr = { port ? 127 : 0, 0, 0, port ? 1 : 0 } }, data, len, 0), 0);
}

/* Its bytes, which came in time; an error that was told: -errno */
static int recv_from(int fd, struct rgate_socket_addr *from, void *data, size_t room)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct agent_head head;
	struct iovec v[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = data, .iov_len = room },
	};
	struct msghdr mh = { .msg_iov = v, .msg_iovlen = 2 };
	ssize_t n;

	assert_int_equal(poll(&p, 1, 30000), 1);
	n = recvmsg(fd, &mh, 0);
	if (n < (ssize_t)sizeof(head))
		return n < 0 ? -errno : -EPIPE;
	if (from)
		*from = head.addr;
	return head.addr.family ? (int)(n - (ssize_t)sizeof(head)) : -(int)head.addr.scope;
}

static bool is_silent(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return !poll(&p, 1, 100);
}

static uint16_t port_of(int fd)
{
	struct agent_answer answer;

	assert_int_equal(ASK(fd, &answer, NULL, .what = AGENT_NAME), 0);
	return answer.addr.port;
}

static uint16_t bind_udp(int fd, uint16_t port)
{
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(port)), 0);
	return port_of(fd);
}

static int connect_udp(int fd, uint16_t port)
{
	return ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .addr = loop_at(port));
}

static int mark_of(int fd)
{
	int mark = -1;
	socklen_t len = sizeof(mark);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PRIORITY, &mark, &len), 0);
	return mark;
}

static void all_gone(void)
{
	eventually(info_now().now == 0);
}

/* ---- Outside ---- */

static void both_ways(void **state)
{
	static unsigned char data[MOST], got[MOST + 1];
	struct rgate_socket_addr from;
	uint16_t port, mine;
	int fd = new_udp(AF_INET), peer = outer(&port);
	size_t len, i;

	(void)state;
	for (i = 0; i < MOST; i++)
		data[i] = (unsigned char)(i * 7 + (i >> 8));
	mine = bind_udp(fd, 0);
	assert_true(mine);
	for (len = 0; len <= MOST; len = len < MOST && len * 3 >= MOST ? MOST : len * 3 + 1) {
		send_to(fd, port, data, len);
		assert_int_equal(outer_recv(peer, data, len), mine);
		outer_send(peer, mine, data, len);
		assert_int_equal(recv_from(fd, &from, got, sizeof(got)), len);
		assert_memory_equal(got, data, len);
		assert_int_equal(from.port, port);
		assert_memory_equal(&from.addr, loop_at(0).addr, 16);
	}
	eventually(info_now().sent == info_now().received && info_now().sent > MOST);
	/* One more byte than there may be */
	send_to(fd, port, got, MOST + 1);
	send_to(fd, port, "x", 1);
	assert_int_equal(outer_recv(peer, "x", 1), mine);
	eventually(info_now().lost == 1);
	close(fd);
	close(peer);
	all_gone();
}

static void names(void **state)
{
	struct agent_answer answer;
	uint16_t port;
	int fd = new_udp(AF_INET), other = new_udp(AF_INET6), peer = outer(&port);

	(void)state;
	assert_int_equal(port_of(fd), 0);
	send_to(fd, port, "x", 1);
	/* Whether that has gone yet or not */
	assert_int_equal(port_of(fd), outer_recv(peer, "x", 1));
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(0)), -EINVAL);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_PEER), -ENOTCONN);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_LISTEN, .a = 1), -EOPNOTSUPP);
	assert_int_equal(ASK(other, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(0)),
			 -EAFNOSUPPORT);
	assert_int_equal(ASK(other, NULL, NULL, .what = AGENT_CONNECT, .addr = loop_at(1)),
			 -EAFNOSUPPORT);
	assert_int_equal(ASK(other, NULL, NULL, .what = AGENT_BIND,
			     .addr = { .family = AF_INET6, .addr = { [15] = 1 } }), 0);
	assert_int_equal(ASK(other, &answer, NULL, .what = AGENT_NAME), 0);
	assert_int_equal(answer.addr.family, AF_INET6);
	assert_int_equal(answer.addr.addr[15], 1);
	assert_int_equal(mark_of(fd), 0);
	assert_int_equal(mark_of(other), AGENT_MARK_INET6);
	close(fd);
	close(other);
	close(peer);
	all_gone();
}

static void connected_to(void **state)
{
	struct agent_answer answer;
	struct rgate_socket_addr from;
	uint16_t port, second, mine;
	int fd = new_udp(AF_INET), peer = outer(&port), other = outer(&second);
	char got[8];

	(void)state;
	assert_int_equal(connect_udp(fd, port), 0);
	assert_int_equal(mark_of(fd), AGENT_MARK_CONNECTED);
	assert_int_equal(ASK(fd, &answer, NULL, .what = AGENT_PEER), 0);
	assert_int_equal(answer.addr.port, port);
	mine = port_of(fd);
	send_to(fd, 0, "one", 3);
	assert_int_equal(outer_recv(peer, "one", 3), mine);
	outer_send(other, mine, "two", 3);
	outer_send(peer, mine, "six", 3);
	assert_int_equal(recv_from(fd, &from, got, sizeof(got)), 3);
	assert_memory_equal(got, "six", 3);
	assert_int_equal(from.port, port);
	/* To another one, though */
	send_to(fd, second, "four", 4);
	assert_int_equal(outer_recv(other, "four", 4), mine);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT), 0);
	assert_int_equal(mark_of(fd), 0);
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_PEER), -ENOTCONN);
	send_to(fd, 0, "nowhere", 7);
	eventually(info_now().lost == 1);
	assert_true(is_silent(fd));
	close(fd);
	close(peer);
	close(other);
	all_gone();
}

/* Nobody is there any more: it is told, once, and only to one that is connected. */
static void refused(void **state)
{
	uint16_t port;
	int fd = new_udp(AF_INET), free_one = new_udp(AF_INET), peer = outer(&port);
	char got[8];

	(void)state;
	assert_int_equal(connect_udp(fd, port), 0);
	close(peer);
	send_to(fd, 0, "x", 1);
	assert_int_equal(recv_from(fd, NULL, got, sizeof(got)), -ECONNREFUSED);
	assert_true(is_silent(fd));
	send_to(free_one, port, "x", 1);
	assert_true(is_silent(free_one));
	close(fd);
	close(free_one);
	all_gone();
}

/* What was sent before goes to where it was connected then; what is sent at last goes, too. */
static void in_order(void **state)
{
	uint16_t port[2];
	int fd = new_udp(AF_INET), peer[2] = { outer(&port[0]), outer(&port[1]) }, i;
	char word[16];

	(void)state;
	for (i = 0; i < 50; i++) {
		assert_int_equal(connect_udp(fd, port[i % 2]), 0);
		snprintf(word, sizeof(word), "%d", i);
		send_to(fd, 0, word, strlen(word));
	}
	close(fd);
	for (i = 0; i < 50; i++) {
		snprintf(word, sizeof(word), "%d", i);
		(void)outer_recv(peer[i % 2], word, strlen(word));
	}
	assert_int_equal(info_now().lost, 0);
	close(peer[0]);
	close(peer[1]);
	all_gone();
}

/* All at once, by a program that ends then */
static void leaves(void **state)
{
	uint16_t port;
	int fd = new_udp(AF_INET), peer = outer(&port), i;

	(void)state;
	pthread_mutex_lock(&turn);
	for (i = 0; i < 100; i++)
		send_to(fd, port, &i, sizeof(i));
	close(fd);
	pthread_mutex_unlock(&turn);
	for (i = 0; i < 100; i++)
		(void)outer_recv(peer, &i, sizeof(i));
	assert_int_equal(info_now().lost, 0);
	close(peer);
	all_gone();
}

/* One does not read: what it does not take is lost, and counted, and all others go on. */
static void deaf(void **state)
{
	static char data[8000];
	uint16_t port, mine;
	int fd = new_udp(AF_INET), other = new_udp(AF_INET), peer = outer(&port), i, n = 0;

	(void)state;
	mine = bind_udp(fd, 0);
	(void)bind_udp(other, 0);
	for (i = 0; i < 400; i++) {
		outer_send(peer, mine, data, sizeof(data));
		send_to(other, port, &i, sizeof(i));
		(void)outer_recv(peer, &i, sizeof(i));
	}
	eventually(info_now().lost > 0);
	while (!is_silent(fd))
		n += recv_from(fd, NULL, data, sizeof(data)) == sizeof(data);
	assert_true(n > 5 && n < 400);
	/* It reads again. */
	outer_send(peer, mine, "again", 5);
	assert_int_equal(recv_from(fd, NULL, data, sizeof(data)), 5);
	close(fd);
	close(other);
	close(peer);
	all_gone();
}

/* As much room as it asks for: none of what fits is lost. */
static void more_room(void **state)
{
	static char data[8000];
	const int wanted = 1 << 20;
	struct agent_ask q = { .what = AGENT_SETOPT, .a = RGATE_SOCKET_RCVBUF,
			       .len = sizeof(wanted) };
	uint16_t port, mine;
	int fd = new_udp(AF_INET), peer = outer(&port), i;

	(void)state;
	memcpy(q.value, &wanted, sizeof(wanted));
	assert_int_equal(ask(q, fd, NULL, NULL), 0);
	mine = bind_udp(fd, 0);
	for (i = 0; i < 80; i++) {
		outer_send(peer, mine, data, sizeof(data));
		eventually(info_now().received == (i + 1) * sizeof(data));
	}
	if (info_now().lost)
		unit_skip("the kernel has no such buffers for this user");
	for (i = 0; i < 80; i++)
		assert_int_equal(recv_from(fd, NULL, data, sizeof(data)), sizeof(data));
	close(fd);
	close(peer);
	all_gone();
}

/* ---- Within ---- */

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

/* ---- Those who lie, and those who go ---- */

static void lies(void **state)
{
	static char junk[70000];
	struct agent_head head = { .addr = loop_at(1) };
	uint16_t port;
	int fd = new_udp(AF_INET), peer = outer(&port), pair[2];
	uint64_t before;
	unsigned int i;
	ssize_t n;

	(void)state;
	srandom(2);
	before = info_now().lies;
	assert_int_equal(send(fd, "", 0, 0), 0);
	assert_int_equal(send(fd, junk, 31, 0), 31);
	head.addr.family = AF_INET6;
	assert_int_equal(send_with(fd, &head.addr, "x", 1, 0), 0);
	head.addr.family = 77;
	assert_int_equal(send_with(fd, &head.addr, "x", 1, 0), 0);
	head.addr = loop_at(port);
	assert_int_equal(send_with(fd, &head.addr, junk, 65528, 0), 0);
	assert_int_equal(send_with(fd, &head.addr, junk, 70000, 0), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(rgate_wire_send(fd, &head, sizeof(head), pair, 2, 0), 0);
	eventually(info_now().lies == before + 7);
	/* What is no IPv4 address who serves says. */
	head.addr.addr[9] = 1;
	assert_int_equal(send_with(fd, &head.addr, "x", 1, 0), 0);
	for (i = 0; i < 300; i++) {
		for (n = 0; n < 40; n++)
			junk[n] = (char)random();
		if (i % 2) {
			head.addr = loop_at(port);
			((char *)&head)[random() % 32] = (char)random();
			memcpy(junk, &head, sizeof(head));
		}
		(void)send(fd, junk, (size_t)random() % 40, MSG_NOSIGNAL);
	}
	/* What came of all that comes before it. */
	send_to(fd, port, "it works", 8);
	do {
		n = recv(peer, junk, sizeof(junk), 0);
		assert_true(n >= 0);
	} while (n != 8 || memcmp(junk, "it works", 8));
	still_works();
	close(pair[0]);
	close(pair[1]);
	close(fd);
	close(peer);
	all_gone();
}

/* The agent ends: who waits to receive is told, and who sends. */
static void agent_ends(void **state)
{
	uint16_t port;
	int fd = new_udp(AF_INET), peer = outer(&port);
	char byte;

	(void)bind_udp(fd, 0);
	(void)down(state);
	assert_int_equal(recv_from(fd, NULL, &byte, 1), -EPIPE);
	assert_int_equal(send_with(fd, &(struct rgate_socket_addr){ .family = 0 }, "x", 1, 0),
			 -EPIPE);
	close(fd);
	close(peer);
	(void)up(state);
}

/* As many as there may be come, and go with something unread, unsent, and half ended. */
static void many(void **state)
{
	uint16_t port, at;
	int fds[16], peer = outer(&port), i, turn_of, made = -1;

	(void)state;
	for (turn_of = 0; turn_of < 20; turn_of++) {
		for (i = 0; i < 16; i++) {
			fds[i] = new_udp(AF_INET);
			at = bind_udp(fds[i], 0);
			send_to(fds[i], at, "self", 4);
			send_to(fds[i], port, "peer", 4);
		}
		assert_int_equal(ASK(-1, NULL, &made, .what = AGENT_SOCKET, .a = AF_INET,
				     .b = AGENT_DATAGRAM), -ENFILE);
		for (i = 0; i < 16; i++) {
			if (i % 3 == turn_of % 3)
				shutdown(fds[i], i % 2 ? SHUT_WR : SHUT_RDWR);
			close(fds[i]);
		}
	}
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
	sock = call_at(AGENT_CONTROL, SOCK_SEQPACKET);
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
	cmocka_unit_test_setup_teardown(both_ways, up, down),
	cmocka_unit_test_setup_teardown(names, up, down),
	cmocka_unit_test_setup_teardown(connected_to, up, down),
	cmocka_unit_test_setup_teardown(refused, up, down),
	cmocka_unit_test_setup_teardown(in_order, up, down),
	cmocka_unit_test_setup_teardown(leaves, up, down),
	cmocka_unit_test_setup_teardown(deaf, up, down),
	cmocka_unit_test_setup_teardown(more_room, up, down),
	cmocka_unit_test_setup_teardown(within, up_own, down),
	cmocka_unit_test_setup_teardown(families, up_own, down),
	cmocka_unit_test_setup_teardown(both_places, up_own, down),
	cmocka_unit_test_setup_teardown(lies, up, down),
	cmocka_unit_test_setup_teardown(agent_ends, up, down),
	cmocka_unit_test_setup_teardown(many, up_own, down),
	cmocka_unit_test_setup_teardown(ends_asking, up_own, down),
};

UNIT_MAIN(tests)
