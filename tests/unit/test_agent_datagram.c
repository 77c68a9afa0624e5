// SPDX-License-Identifier: MIT OR GPL-2.0
/* Datagrams of the agent of programs' sockets, of programs that stop, lie, and are late. */
#include "datagram_bed.h"

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

/* Its port is free as soon as it is closed, and what it has sent goes all the same. */
static void closed_and_bound(void **state)
{
	uint16_t port, mine;
	int peer = outer(&port), fd = new_udp(AF_INET), i, k;

	(void)state;
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(0)), 0);
	mine = port_of(fd);
	for (i = 0; i < 50; i++) {
		const int next = new_udp(AF_INET);

		for (k = 0; k < i % 5; k++)
			send_to(fd, port, "x", 1);
		close(fd);
		fd = next;
		assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(mine)),
				 0);
		for (k = 0; k < i % 5; k++)
			assert_int_equal(outer_recv(peer, "x", 1), mine);
	}
	close(fd);
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

/* Connected to nobody again, it hears everybody. */
static void disconnected(void **state)
{
	uint16_t port, second, mine;
	int fd = new_udp(AF_INET), peer = outer(&port), other = outer(&second);
	char got[8];

	(void)state;
	/* A port that is asked for stays: one that the kernel has chosen does not. */
	close(outer(&mine));
	assert_int_equal(bind_udp(fd, mine), mine);
	assert_int_equal(connect_udp(fd, port), 0);
	outer_send(other, mine, "two", 3);
	assert_true(is_silent(fd));
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT), 0);
	assert_int_equal(port_of(fd), mine);
	outer_send(other, mine, "three", 5);
	assert_int_equal(recv_from(fd, NULL, got, sizeof(got)), 5);
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

/* To be asked while the agent stands still: what connected_later() waits for */
static void connect_later(int sock, int fd, uint16_t port)
{
	const struct agent_ask q = {
		.version = AGENT_VERSION, .what = AGENT_CONNECT, .addr = loop_at(port),
	};

	assert_int_equal(rgate_wire_send(sock, &q, sizeof(q), &fd, 1, 0), 0);
}

static void connected_later(int sock)
{
	struct agent_answer answer;

	answers_in_time(sock);
	assert_int_equal(rgate_wire_recv(sock, &answer, sizeof(answer), NULL, NULL, 0),
			 sizeof(answer));
	assert_int_equal(answer.result, 0);
	close(sock);
}

/* What waits when it connects anew goes at once, if it is little: on a busy machine not always. */
static void goes_first(void **state)
{
	uint16_t port[2];
	int fd = new_udp(AF_INET), peer[2] = { outer(&port[0]), outer(&port[1]) };
	int sock, tries, i, n = 0;

	(void)state;
	for (tries = 0; tries < 20 && n != 8; tries++) {
		assert_int_equal(connect_udp(fd, port[0]), 0);
		sock = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);
		pthread_mutex_lock(&turn);
		for (i = 0; i < 8; i++)
			send_to(fd, 0, &i, sizeof(i));
		connect_later(sock, fd, port[1]);
		pthread_mutex_unlock(&turn);
		connected_later(sock);
		for (n = 0; n < 8 && !is_silent(peer[0]); n++)
			assert_int_equal(recv(peer[0], &i, sizeof(i), 0), sizeof(i));
	}
	assert_int_equal(n, 8);
	assert_true(is_silent(peer[1]));
	close(fd);
	close(peer[0]);
	close(peer[1]);
	all_gone();
}

/* However much waits when it connects anew: it is the old peer's, or nobody's. */
static void changes_peer(void **state)
{
	uint16_t port[2];
	int fd = new_udp(AF_INET), peer[2] = { outer(&port[0]), outer(&port[1]) }, sock;
	int n = 0, came = 0, i;
	bool was[4096] = { false };

	(void)state;
	assert_int_equal(connect_udp(fd, port[0]), 0);
	sock = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);
	pthread_mutex_lock(&turn);
	while (n < 4096 && !send_with(fd, &(struct rgate_socket_addr){ .family = 0 }, &n, sizeof(n),
				      MSG_DONTWAIT))
		n++;
	assert_true(n > 100);
	connect_later(sock, fd, port[1]);
	pthread_mutex_unlock(&turn);
	connected_later(sock);
	send_to(fd, 0, "next", 4);
	(void)outer_recv(peer[1], "next", 4);
	/* One that is under way may be passed by others. */
	while (!is_silent(peer[0])) {
		assert_int_equal(recv(peer[0], &i, sizeof(i), 0), sizeof(i));
		assert_true(i >= 0 && i < n && !was[i]);
		was[i] = true;
		came++;
	}
	assert_in_range(came, 1, n - (int)info_now().lost);
	assert_true(is_silent(peer[1]));
	/* Each of them is counted as one or the other. */
	eventually(info_now().sent == (n - info_now().lost) * sizeof(n) + 4);
	close(fd);
	close(peer[0]);
	close(peer[1]);
	all_gone();
}

/* Shut down both ways it looks as if it were closed, and is there while its program has it. */
static void shut_both_ways(void **state)
{
	uint16_t port;
	int fd = new_udp(AF_INET);

	(void)state;
	port = bind_udp(fd, 0);
	assert_int_equal(shutdown(fd, SHUT_RDWR), 0);
	usleep(300000);
	assert_int_equal(info_now().now, 1);
	assert_int_equal(port_of(fd), port);
	close(fd);
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
	/* Alone an empty one reads as the end does, and is not counted. */
	pthread_mutex_lock(&turn);
	assert_int_equal(send(fd, "", 0, 0), 0);
	assert_int_equal(send(fd, junk, 31, 0), 31);
	pthread_mutex_unlock(&turn);
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
		all_gone();
	}
	close(peer);
	all_gone();
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(both_ways, up, down),
	cmocka_unit_test_setup_teardown(names, up, down),
	cmocka_unit_test_setup_teardown(closed_and_bound, up, down),
	cmocka_unit_test_setup_teardown(connected_to, up, down),
	cmocka_unit_test_setup_teardown(disconnected, up, down),
	cmocka_unit_test_setup_teardown(refused, up, down),
	cmocka_unit_test_setup_teardown(in_order, up, down),
	cmocka_unit_test_setup_teardown(goes_first, up, down),
	cmocka_unit_test_setup_teardown(changes_peer, up, down),
	cmocka_unit_test_setup_teardown(shut_both_ways, up, down),
	cmocka_unit_test_setup_teardown(leaves, up, down),
	cmocka_unit_test_setup_teardown(deaf, up, down),
	cmocka_unit_test_setup_teardown(more_room, up, down),
	cmocka_unit_test_setup_teardown(lies, up, down),
	cmocka_unit_test_setup_teardown(agent_ends, up, down),
	cmocka_unit_test_setup_teardown(many, up_own, down),
};

UNIT_MAIN(tests)
