// SPDX-License-Identifier: MIT OR GPL-2.0
/* Connections of the agent of programs' sockets, of programs that stop, die, and are late. */
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "agent_bed.h"

/* ---- Those who are gone, or slow ---- */

static void reset_nothing_unread(void **state)
{
	uint16_t port;
	int peer, listener = server(&port), fd = connected(listener, port, &peer);
	char byte;

	(void)state;
	assert_int_equal(write(fd, "ab", 2), 2);
	assert_int_equal(recv(peer, &byte, 1, 0), 1);
	assert_int_equal(recv(peer, &byte, 1, 0), 1);
	reset(peer);
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
	close(listener);
	eventually(info_now().now == 0);
	assert_int_equal(info_now().resets, 1);
}

/* Who accepts past the library sends no hello: nothing of him stays when he goes. */
static void no_hello(void **state)
{
	uint16_t port;
	int fd = listening(&port), peer = outside(port), got;

	(void)state;
	got = accept(fd, NULL, NULL);
	assert_true(got >= 0);
	reset(peer);
	eventually(info_now().resets == 1);
	assert_int_equal(info_now().now, 2);
	close(got);
	close(fd);
	eventually(info_now().now == 0);
}

/* ... and what he sends instead is not taken for one: none of it is lost in silence. */
static void other_hello(void **state)
{
	uint16_t port;
	int fd = listening(&port), peer = outside(port), got;
	char byte;

	(void)state;
	got = accept(fd, NULL, NULL);
	assert_int_equal(write(got, "0123456789", 10), 10);
	assert_int_equal(read(got, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(read(peer, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	close(peer);
	close(got);
	close(fd);
	eventually(info_now().now == 0);
}

/* Its own end is in what it has sent: it is gone when the program has closed it, all the same. */
static void sends_itself(void **state)
{
	uint16_t port;
	int peer, listener = server(&port), fd = connected(listener, port, &peer);
	char byte;

	(void)state;
	assert_int_equal(rgate_wire_send(fd, "x", 1, &fd, 1, 0), 0);
	close(fd);
	eventually(info_now().now == 0);
	assert_int_equal(info_now().resets, 1);
	while (read(peer, &byte, 1) > 0)
		;
	close(peer);
	close(listener);
}

static void reset_before_accept(void **state)
{
	uint16_t port;
	int fd = listening(&port), got;
	char byte = 0;

	(void)state;
	reset(outside(port));
	eventually(info_now().resets == 1);
	got = accept(fd, NULL, NULL);
	(void)send(got, &byte, 1, MSG_NOSIGNAL);
	assert_int_equal(read(got, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	close(got);
	close(fd);
	eventually(info_now().now == 0);
}

/* Names are everybody's: who has the one that may be next keeps nobody out. */
static void taken_name(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct agent_name name;
	struct sockaddr_un un;
	socklen_t len = sizeof(un);
	uint16_t port;
	int fd = listening(&port), peer = outside(port), got, taker, i;

	(void)state;
	got = accept(fd, (struct sockaddr *)&un, &len);
	assert_true(got >= 0);
	close(got);
	close(peer);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(peer, (struct sockaddr *)&in, sizeof(in)), 0);
	len = sizeof(in);
	assert_int_equal(getsockname(peer, (struct sockaddr *)&in, &len), 0);
	memcpy(&name, un.sun_path, sizeof(name));
	name.peer.port = ntohs(in.sin_port);
	name.id++;
	memcpy(un.sun_path, &name, sizeof(name));
	taker = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(taker, (struct sockaddr *)&un,
			      offsetof(struct sockaddr_un, sun_path) + sizeof(name)), 0);
	in.sin_port = htons(port);
	assert_int_equal(connect(peer, (struct sockaddr *)&in, sizeof(in)), 0);
	got = accept(fd, NULL, NULL);
	assert_int_equal(write(peer, "hello", 5), 5);
	for (i = 0; i < 5; i++)
		assert_int_equal(read(got, un.sun_path, 1), 1);
	close(got);
	close(peer);
	close(taker);
	close(fd);
	eventually(info_now().now == 0);
}

/* Its port is free, though nobody told that it was closed. */
static void closed_listener(void **state)
{
	struct rgate_socket_addr at;
	uint16_t port;
	int fd = listening(&port), again;

	(void)state;
	at = loop_at(port);
	again = new_socket();
	assert_int_equal(ASK(again, NULL, NULL, .what = AGENT_BIND, .addr = at), -EADDRINUSE);
	close(fd);
	assert_int_equal(ASK(again, NULL, NULL, .what = AGENT_BIND, .addr = at), 0);
	close(again);
	eventually(info_now().now == 0);
}

/* Two are bound there, as they may be; one listens, and when it is closed the other one does. */
static void closed_for_other(void **state)
{
	struct agent_answer answer;
	int fd[2], i;
	struct rgate_socket_addr at = loop_at(0);

	(void)state;
	for (i = 0; i < 2; i++) {
		fd[i] = new_socket();
		assert_int_equal(ASK(fd[i], NULL, NULL, .what = AGENT_SETOPT,
				     .a = RGATE_SOCKET_REUSEADDR, .len = sizeof(int),
				     .value = { 1 }), 0);
		assert_int_equal(ASK(fd[i], NULL, NULL, .what = AGENT_BIND, .addr = at), 0);
		assert_int_equal(ASK(fd[i], &answer, NULL, .what = AGENT_NAME), 0);
		at = answer.addr;
	}
	assert_int_equal(ASK(fd[0], NULL, NULL, .what = AGENT_LISTEN, .a = 1), 0);
	assert_int_equal(ASK(fd[1], NULL, NULL, .what = AGENT_LISTEN, .a = 1), -EADDRINUSE);
	close(fd[0]);
	assert_int_equal(ASK(fd[1], NULL, NULL, .what = AGENT_LISTEN, .a = 1), 0);
	close(fd[1]);
	eventually(info_now().now == 0);
}

#define LATE	64U

static struct rgate_socket *late[LATE];
static unsigned int nlate;
static atomic_bool is_late;

int __wrap_socket_close_quiet(struct rgate_socket *s);
int __real_socket_close_quiet(struct rgate_socket *s);

/* What is not waited for may be done behind what is asked of others later. */
int __wrap_socket_close_quiet(struct rgate_socket *s)
{
	if (is_late && nlate < LATE) {
		late[nlate++] = s;
		return 0;
	}
	while (nlate)
		(void)__real_socket_close_quiet(late[--nlate]);
	return __real_socket_close_quiet(s);
}

/* Nobody listens there any more, from then on, though nobody told that it was closed. */
static void closed_refuses(void **state)
{
	uint16_t port, other;
	int fd = listening(&port), stays = listening(&other), again, i;

	(void)state;
	is_late = true;
	for (i = 0; i < 20; i++) {
		again = new_socket();
		close(fd);
		assert_int_equal(ASK(again, NULL, NULL, .what = AGENT_CONNECT,
				     .addr = loop_at(port)), -ECONNREFUSED);
		close(again);
		fd = listening(&port);
	}
	/* who is there is met */
	again = new_socket();
	assert_int_equal(ASK(again, NULL, NULL, .what = AGENT_CONNECT, .addr = loop_at(other)), 0);
	/* and its port is anybody's */
	close(fd);
	fd = new_socket();
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(port)), 0);
	is_late = false;
	close(again);
	close(fd);
	close(stays);
	eventually(info_now().now == 0);
}

/* The socket of who serves, which is here */
static int socket_at(uint16_t port)
{
	struct sockaddr_in in;
	socklen_t len;
	int fd;

	for (fd = 0; fd < 1024; fd++) {
		len = sizeof(in);
		if (!getsockname(fd, (struct sockaddr *)&in, &len) && in.sin_family == AF_INET &&
		    ntohs(in.sin_port) == port)
			return fd;
	}
	return -1;
}

static int accept_error(int fd)
{
	struct agent_name name;
	struct sockaddr_un un;
	socklen_t len = sizeof(un);
	int got = accept(fd, (struct sockaddr *)&un, &len);

	assert_true(got >= 0);
	close(got);
	memcpy(&name, un.sun_path, sizeof(name));
	assert_memory_equal(name.magic, AGENT_MAGIC, sizeof(name.magic));
	return (int)name.error;
}

/* Nobody comes any more: whoever accepts is told, and not only the first. */
static void broken_listener(void **state)
{
	const struct timeval most = { .tv_sec = 30 };
	uint16_t port;
	int fd = listening(&port), i;

	(void)state;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)), 0);
	assert_int_equal(shutdown(socket_at(port), SHUT_RD), 0);
	for (i = 0; i < 5; i++)
		assert_int_equal(accept_error(fd), EINVAL);
	close(fd);
	eventually(info_now().now == 0);
}

/* The agent ends: whoever waits to accept is told, and connections are broken. */
static void agent_ends(void **state)
{
	uint16_t port, at;
	int peer, listener = server(&port), fd = connected(listener, port, &peer);
	int waits = listening(&at);
	char byte;

	(void)down(state);
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(read(peer, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	/* As many of those who wait as there may be. */
	assert_int_equal(accept_error(waits), ENETDOWN);
	assert_int_equal(accept_error(waits), ENETDOWN);
	close(waits);
	close(fd);
	close(peer);
	close(listener);
	(void)up(state);
}

/* The agent ends with bytes that the peer did not get: that is no end to the peer. */
static void ends_in_midst(void **state)
{
	static char chunk[1U << 16];
	uint16_t port;
	int peer, listener = server(&port), fd = connected(listener, port, &peer), i;
	ssize_t n;

	(void)state;
	for (i = 0; i < 200; i++)
		if (send(fd, chunk, sizeof(chunk), MSG_DONTWAIT) < 0)
			usleep(5000);
	close(fd);
	usleep(50000);
	(void)down(state);
	while ((n = read(peer, chunk, sizeof(chunk))) > 0)
		;
	assert_int_equal(n, -1);
	assert_int_equal(errno, ECONNRESET);
	close(peer);
	close(listener);
	(void)up(state);
}

/* All is sent, and the program waits for an answer: the peer has seen the end. */
static void ends_half_closed(void **state)
{
	uint16_t port;
	int peer, listener = server(&port), fd = connected(listener, port, &peer);
	char word[8];

	(void)state;
	assert_int_equal(write(fd, "hello", 5), 5);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	eventually(info_now().sent == 5);
	usleep(50000);
	(void)down(state);
	assert_int_equal(recv(peer, word, 5, MSG_WAITALL), 5);
	assert_int_equal(read(peer, word, 1), 0);
	close(fd);
	close(peer);
	close(listener);
	(void)up(state);
}

/* The peer has ended its stream, and is gone then: its end stays one, and what is sent fails. */
static void reset_half_ended(void **state)
{
	static char chunk[1U << 12];
	uint16_t port;
	int peer, listener = server(&port), fd = connected(listener, port, &peer), i;
	ssize_t n = 0;

	(void)state;
	assert_int_equal(shutdown(peer, SHUT_WR), 0);
	assert_int_equal(read(fd, chunk, 1), 0);
	reset(peer);
	for (i = 0; i < 3000 && (n >= 0 || errno == EAGAIN); i++) {
		n = send(fd, chunk, sizeof(chunk), MSG_DONTWAIT | MSG_NOSIGNAL);
		usleep(n < 0 ? 10000 : 1000);
	}
	assert_int_equal(n, -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(read(fd, chunk, 1), 0);
	close(fd);
	close(listener);
	eventually(info_now().now == 0);
}

/* ... also if it is gone when that comes: its program is told, and does not have to send more. */
static void reset_by_answer(void **state)
{
	uint16_t port;
	int peer, listener = server(&port), fd = connected(listener, port, &peer);
	struct pollfd p = { .fd = fd };
	char byte;

	(void)state;
	close(peer);
	assert_int_equal(read(fd, &byte, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(write(fd, "late", 4), 4);
	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_true(p.revents & POLLHUP);
	assert_int_equal(send(fd, "more", 4, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(read(fd, &byte, 1), 0);
	close(fd);
	close(listener);
	eventually(info_now().now == 0);
}

/* The peer has ended its stream, and reads: what is sent goes, and the end of it is one. */
static void answered_half_ended(void **state)
{
	uint16_t port;
	int peer, listener = server(&port), fd = connected(listener, port, &peer), i;
	char byte;

	(void)state;
	assert_int_equal(shutdown(peer, SHUT_WR), 0);
	assert_int_equal(read(fd, &byte, 1), 0);
	for (i = 0; i < 10; i++) {
		assert_int_equal(write(fd, "x", 1), 1);
		assert_int_equal(read(peer, &byte, 1), 1);
	}
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	assert_int_equal(read(peer, &byte, 1), 0);
	close(peer);
	close(fd);
	close(listener);
	eventually(info_now().now == 0);
	assert_int_equal(info_now().resets, 0);
}

static atomic_int send_error;

int __wrap_rgate_sockets_next(struct rgate_sockets *set, struct rgate_socket_end *end,
			      int timeout_ms);
int __real_rgate_sockets_next(struct rgate_sockets *set, struct rgate_socket_end *end,
			      int timeout_ms);

int __wrap_rgate_sockets_next(struct rgate_sockets *set, struct rgate_socket_end *end,
			      int timeout_ms)
{
	const int ret = __real_rgate_sockets_next(set, end, timeout_ms);

	if (ret > 0 && end->what == RGATE_SOCKET_DO_SEND && send_error)
		end->result = -send_error;
	return ret;
}

/* Who serves has no memory, or another reason of its own: no reset comes from the peer then. */
static void send_fails(void **state)
{
	static const int error[] = { ENOMEM, EIO, EACCES, ENOTCONN };
	uint16_t port;
	int listener = server(&port), fd, peer;
	struct pollfd p;
	char byte;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(error) / sizeof(*error); i++) {
		fd = connected(listener, port, &peer);
		send_error = error[i];
		assert_int_equal(write(fd, "lost", 4), 4);
		p = (struct pollfd){ .fd = fd, .events = POLLIN };
		assert_int_equal(poll(&p, 1, 30000), 1);
		assert_int_equal(read(fd, &byte, 1), -1);
		assert_int_equal(errno, ECONNRESET);
		send_error = 0;
		p.fd = peer;
		do
			assert_int_equal(poll(&p, 1, 30000), 1);
		while (read(peer, &byte, 1) > 0);
		assert_int_equal(errno, ECONNRESET);
		close(fd);
		close(peer);
	}
	close(listener);
	eventually(info_now().now == 0);
}

/* SO_LINGER of 0 seconds: the program wants a reset, and sees what it has set. */
static void wants_reset(void **state)
{
	const struct rgate_socket_linger now = { .on = 1 };
	struct agent_ask q = { .version = AGENT_VERSION, .what = AGENT_SETOPT,
			       .a = RGATE_SOCKET_LINGER, .len = sizeof(now) };
	struct agent_answer answer;
	uint16_t port;
	int peer, listener = server(&port), fd = connected(listener, port, &peer);
	char byte;

	(void)state;
	q.what = AGENT_GETOPT;
	assert_int_equal(ask(q, fd, &answer, NULL), 0);
	assert_int_equal(answer.len, sizeof(now));
	assert_int_equal(((struct rgate_socket_linger *)(void *)answer.value)->on, 0);
	q.what = AGENT_SETOPT;
	memcpy(q.value, &now, sizeof(now));
	assert_int_equal(ask(q, fd, NULL, NULL), 0);
	close(fd);
	assert_int_equal(read(peer, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	close(peer);
	close(listener);
	eventually(info_now().now == 0);
}

/* Reads nothing for a while: what is on its way is bounded, and another one goes on at once. */
static void full_window(void **state)
{
	static char chunk[1U << 16];
	uint16_t port;
	int peer, other_peer, listener = server(&port), fd = connected(listener, port, &peer);
	int other = connected(listener, port, &other_peer);
	uint64_t poured = 0, got = 0;
	ssize_t n;
	int i;

	(void)state;
	memset(chunk, 0x5a, sizeof(chunk));
	for (i = 0; i < 200; i++) {
		n = send(peer, chunk, sizeof(chunk), MSG_DONTWAIT);
		if (n > 0)
			poured += (uint64_t)n;
		else
			usleep(5000);
	}
	assert_true(info_now().received < poured);
	for (i = 0; i < 100; i++) {
		char word[4];

		assert_int_equal(write(other_peer, "ping", 4), 4);
		assert_int_equal(recv(other, word, 4, MSG_WAITALL), 4);
	}
	close(peer);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
		for (i = 0; i < n; i++)
			assert_int_equal(chunk[i], 0x5a);
		got += (uint64_t)n;
	}
	assert_int_equal(n, 0);
	assert_int_equal(got, poured);
	close(fd);
	close(other);
	close(other_peer);
	close(listener);
	eventually(info_now().now == 0);
}

/* The peer answers, and resets: a send that fails takes nothing away of what had come before. */
static void answer_before_reset(void **state)
{
	static char chunk[1U << 16];
	uint16_t port;
	int peer, listener = server(&port), fd = connected(listener, port, &peer), i, unsent;
	uint64_t poured = 0, got = 0;
	ssize_t n;

	(void)state;
	assert_int_equal(write(fd, "request", 7), 7);
	for (i = 0; i < 200; i++) {
		n = send(peer, chunk, sizeof(chunk), MSG_DONTWAIT);
		if (n > 0)
			poured += (uint64_t)n;
		else
			usleep(5000);
	}
	assert_int_equal(ioctl(peer, SIOCOUTQ, &unsent), 0);
	reset(peer);
	for (i = 0; i < 10; i++) {
		(void)send(fd, "more", 4, MSG_NOSIGNAL);
		usleep(20000);
	}
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		got += (uint64_t)n;
	assert_int_equal(n, -1);
	assert_int_equal(errno, ECONNRESET);
	assert_true(got >= poured - (uint64_t)unsent);
	close(fd);
	close(listener);
	eventually(info_now().now == 0);
	assert_int_equal(info_now().resets, 1);
}

static uint32_t mix(uint32_t x)
{
	x ^= x << 13;
	x ^= x >> 17;
	return x ^ x << 5;
}

/* In pieces of any size, one by one: what arrives is what went, to the last byte. */
static void pieces(void **state)
{
	static unsigned char out[70000], in[70000];
	uint16_t port;
	int peer, listener = server(&port), fd = connected(listener, port, &peer);
	uint32_t x = 12345, i, n, done;

	(void)state;
	for (i = 0; i < sizeof(out); i++)
		out[i] = (unsigned char)(x = mix(x));
	for (i = 0; i < 400; i++) {
		x = mix(x);
		n = i % 4 ? x % 5 + 1 : x % sizeof(out) + 1;
		for (done = 0; done < n; ) {
			ssize_t k = write(fd, out + done, n - done > 9000 ? 9000 : n - done);

			assert_true(k > 0);
			done += (uint32_t)k;
		}
		assert_int_equal(recv(peer, in, n, MSG_WAITALL), n);
		assert_memory_equal(in, out, n);
	}
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	assert_int_equal(read(peer, in, 1), 0);
	assert_int_equal(write(peer, "end", 3), 3);
	close(peer);
	assert_int_equal(recv(fd, in, 10, MSG_WAITALL), 3);
	assert_int_equal(read(fd, in, 1), 0);
	close(fd);
	close(listener);
	eventually(info_now().now == 0);
	assert_int_equal(info_now().resets, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(reset_nothing_unread, up, down),
	cmocka_unit_test_setup_teardown(no_hello, up, down),
	cmocka_unit_test_setup_teardown(other_hello, up, down),
	cmocka_unit_test_setup_teardown(sends_itself, up, down),
	cmocka_unit_test_setup_teardown(reset_before_accept, up, down),
	cmocka_unit_test_setup_teardown(taken_name, up, down),
	cmocka_unit_test_setup_teardown(closed_listener, up, down),
	cmocka_unit_test_setup_teardown(closed_for_other, up, down),
	cmocka_unit_test_setup_teardown(closed_refuses, up, down),
	cmocka_unit_test_setup_teardown(broken_listener, up, down),
	cmocka_unit_test_setup_teardown(agent_ends, up, down),
	cmocka_unit_test_setup_teardown(ends_in_midst, up, down),
	cmocka_unit_test_setup_teardown(ends_half_closed, up, down),
	cmocka_unit_test_setup_teardown(reset_half_ended, up, down),
	cmocka_unit_test_setup_teardown(reset_by_answer, up, down),
	cmocka_unit_test_setup_teardown(answered_half_ended, up, down),
	cmocka_unit_test_setup_teardown(send_fails, up, down),
	cmocka_unit_test_setup_teardown(wants_reset, up, down),
	cmocka_unit_test_setup_teardown(full_window, up, down),
	cmocka_unit_test_setup_teardown(answer_before_reset, up, down),
	cmocka_unit_test_setup_teardown(pieces, up, down),
};

UNIT_MAIN(tests)
