// SPDX-License-Identifier: MIT OR GPL-2.0
/* What takes its time to be closed, left to the agent of programs' sockets in each way there is */
#include <sys/epoll.h>

#include "agent_bed.h"

#define LINGER_S	300

/* Of a socket whose last close waits for a peer that reads nothing */
static int slow, slow_peer;

static void make_slow(void)
{
	static char chunk[1U << 16];
	const struct linger seconds = { .l_onoff = 1, .l_linger = LINGER_S };
	const int room = 1 << 16;
	uint16_t port;
	int listener = server(&port);

	slow = outside(port);
	/* There are many in one of the tests. */
	assert_int_equal(setsockopt(slow, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	slow_peer = accept(listener, NULL, NULL);
	assert_true(slow_peer >= 0);
	while (send(slow, chunk, sizeof(chunk), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(slow, SOL_SOCKET, SO_LINGER, &seconds, sizeof(seconds)), 0);
	close(listener);
}

/* With something unread: who waits for it to take that waits no longer. */
static void end_slow(void)
{
	close(slow_peer);
}

/* The agent has all that was left to it, the last of it, and goes on. */
static void left_to_it(void)
{
	close(slow);
	pthread_mutex_unlock(&turn);
	still_works();
	still_works();
}

/* As what a question is about */
static void asked_about(void **state)
{
	const struct agent_ask q = { .version = AGENT_VERSION, .what = AGENT_NAME };
	int sock;

	(void)state;
	make_slow();
	sock = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);
	pthread_mutex_lock(&turn);
	assert_int_equal(rgate_wire_send(sock, &q, sizeof(q), &slow, 1, 0), 0);
	left_to_it();
	end_slow();
	close(sock);
}

/* More of them than one question may have; and behind it, where nobody reads */
static void too_many(void **state)
{
	const struct agent_ask q = { .version = AGENT_VERSION, .what = AGENT_NAME };
	int sock, many[RGATE_FDS], i;

	(void)state;
	make_slow();
	for (i = 0; i < (int)RGATE_FDS; i++)
		many[i] = slow;
	sock = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);
	pthread_mutex_lock(&turn);
	assert_int_equal(rgate_wire_send(sock, &q, sizeof(q), many, RGATE_FDS, 0), 0);
	left_to_it();
	end_slow();
	close(sock);

	make_slow();
	sock = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);
	pthread_mutex_lock(&turn);
	assert_int_equal(rgate_wire_send(sock, &q, sizeof(q), NULL, 0, 0), 0);
	assert_int_equal(rgate_wire_send(sock, &q, sizeof(q), &slow, 1, 0), 0);
	left_to_it();
	end_slow();
	close(sock);
}

/* Unread in a socket of the kind that there should be */
static void within(void **state)
{
	const struct agent_ask q = { .version = AGENT_VERSION, .what = AGENT_CONNECT };
	int sock, pair[2];

	(void)state;
	make_slow();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(rgate_wire_send(pair[0], "x", 1, &slow, 1, 0), 0);
	sock = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);
	pthread_mutex_lock(&turn);
	assert_int_equal(rgate_wire_send(sock, &q, sizeof(q), &pair[1], 1, 0), 0);
	close(pair[1]);
	close(pair[0]);
	left_to_it();
	end_slow();
	close(sock);
}

/* In the midst of a stream, and at its end */
static void in_stream(void **state)
{
	uint16_t port;
	int peer, listener, fd, last;

	(void)state;
	for (last = 0; last < 2; last++) {
		make_slow();
		listener = server(&port);
		fd = connected(listener, port, &peer);
		pthread_mutex_lock(&turn);
		assert_int_equal(write(fd, "before", 6), 6);
		assert_int_equal(rgate_wire_send(fd, "with", 4, &slow, 1, 0), 0);
		if (!last)
			assert_int_equal(write(fd, "behind", 6), 6);
		close(fd);
		left_to_it();
		end_slow();
		eventually(info_now().now == 0);
		close(peer);
		close(listener);
	}
}

/* Instead of the hello */
static void accepted(void **state)
{
	uint16_t port;
	int fd, peer, got;

	(void)state;
	make_slow();
	fd = listening(&port);
	peer = outside(port);
	got = accept(fd, NULL, NULL);
	assert_true(got >= 0);
	pthread_mutex_lock(&turn);
	assert_int_equal(rgate_wire_send(got, "x", 1, &slow, 1, 0), 0);
	close(got);
	left_to_it();
	end_slow();
	close(fd);
	close(peer);
	eventually(info_now().now == 0);
}

/* As urgent bytes, which the kernel drops with all that they have once what follows is read */
static void urgent(void **state)
{
	struct agent_hello hello = { .magic = AGENT_MAGIC };
	struct agent_name name;
	struct sockaddr_un un;
	socklen_t len = sizeof(un);
	uint16_t port;
	int fd, peer, got;

	(void)state;
	make_slow();
	fd = listening(&port);
	peer = outside(port);
	got = accept(fd, (struct sockaddr *)&un, &len);
	assert_true(got >= 0);
	assert_int_equal(len, offsetof(struct sockaddr_un, sun_path) + sizeof(name));
	memcpy(&name, un.sun_path, sizeof(name));
	hello.id = name.id;
	pthread_mutex_lock(&turn);
	assert_int_equal(rgate_wire_send(got, "u", 1, &slow, 1, MSG_OOB), 0);
	assert_int_equal(write(got, &hello, sizeof(hello)), sizeof(hello));
	left_to_it();
	end_slow();
	close(got);
	close(fd);
	close(peer);
	eventually(info_now().now == 0);
}

static void urgent_later(void **state)
{
	uint16_t port;
	int peer, listener = server(&port), fd;

	(void)state;
	make_slow();
	fd = connected(listener, port, &peer);
	pthread_mutex_lock(&turn);
	assert_int_equal(write(fd, "before", 6), 6);
	assert_int_equal(rgate_wire_send(fd, "u", 1, &slow, 1, MSG_OOB), 0);
	assert_int_equal(write(fd, "behind", 6), 6);
	close(fd);
	left_to_it();
	end_slow();
	eventually(info_now().now == 0);
	close(peer);
	close(listener);
}

/* While it connects, and then it fails: where nobody answers any more */
static void connecting(void **state)
{
	uint16_t port;
	int full = server(&port), other, fd;

	(void)state;
	assert_int_equal(listen(full, 0), 0);
	other = outside(port);
	fd = new_socket();
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .a = AGENT_NONBLOCK,
			     .addr = loop_at(port)), -EINPROGRESS);
	make_slow();
	/* The agent has filled it. */
	assert_int_equal(rgate_wire_send(fd, "x", 1, &slow, 1, MSG_DONTWAIT), -EAGAIN);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ 1U << 16 }, sizeof(int)), 0);
	pthread_mutex_lock(&turn);
	assert_int_equal(rgate_wire_send(fd, "x", 1, &slow, 1, MSG_DONTWAIT), 0);
	close(fd);
	close(other);
	close(full);
	left_to_it();
	end_slow();
}

#define NEVER	40U	/* that do not end */
#define ASKED	400U	/* more than may wait to be closed */

/* Many do not end: questions are answered yet, each of which leaves something to be closed, too. */
static void many(void **state)
{
	const struct agent_ask q = { .version = AGENT_VERSION, .what = AGENT_NAME };
	int sock, peers[NEVER], peer, listener, fd;
	unsigned int i;
	uint16_t port;
	char word[4];

	(void)state;
	listener = server(&port);
	fd = connected(listener, port, &peer);
	for (i = 0; i < NEVER; i++) {
		make_slow();
		peers[i] = slow_peer;
		sock = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);
		pthread_mutex_lock(&turn);
		assert_int_equal(rgate_wire_send(sock, &q, sizeof(q), &slow, 1, 0), 0);
		close(slow);
		pthread_mutex_unlock(&turn);
		assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_NAME), 0);
		assert_int_equal(write(fd, "ping", 4), 4);
		assert_int_equal(recv(peer, word, 4, MSG_WAITALL), 4);
		close(sock);
	}
	for (i = 0; i < ASKED; i++)
		assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_NAME), 0);
	for (i = 0; i < NEVER; i++)
		close(peers[i]);
	still_works();
	close(fd);
	close(peer);
	close(listener);
	eventually(info_now().now == 0);
}

/* The agent ends before what was left to it does. */
static void agent_ends(void **state)
{
	const struct agent_ask q = { .version = AGENT_VERSION, .what = AGENT_NAME };
	uint16_t port;
	int sock, fd, peer, listener;
	char byte;

	make_slow();
	listener = server(&port);
	fd = connected(listener, port, &peer);
	sock = call_at(AGENT_CONTROL "1", SOCK_SEQPACKET);
	pthread_mutex_lock(&turn);
	assert_int_equal(rgate_wire_send(sock, &q, sizeof(q), &slow, 1, 0), 0);
	left_to_it();
	(void)down(state);
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	end_slow();
	close(sock);
	close(fd);
	close(peer);
	close(listener);
	(void)up(state);
}

/* What the program has closed epoll tells nothing of: the agent has it no more when it answers. */
static void closed_before_it_answers(void **state)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT };
	int ep = epoll_create1(EPOLL_CLOEXEC), fd, i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		fd = new_socket();
		assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), 0);
		assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_SETOPT, .len = 4, .value = { 1 },
				     .a = RGATE_SOCKET_REUSEADDR), 0);
		close(fd);
		assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
	}
	close(ep);
	eventually(info_now().now == 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(closed_before_it_answers, up, down),
	cmocka_unit_test_setup_teardown(asked_about, up, down),
	cmocka_unit_test_setup_teardown(too_many, up, down),
	cmocka_unit_test_setup_teardown(within, up, down),
	cmocka_unit_test_setup_teardown(in_stream, up, down),
	cmocka_unit_test_setup_teardown(accepted, up, down),
	cmocka_unit_test_setup_teardown(urgent, up, down),
	cmocka_unit_test_setup_teardown(urgent_later, up, down),
	cmocka_unit_test_setup_teardown(connecting, up, down),
	cmocka_unit_test_setup_teardown(many, up, down),
	cmocka_unit_test_setup_teardown(agent_ends, up, down),
};

UNIT_MAIN(tests)
