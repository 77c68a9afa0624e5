// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sockets by requests: streams and datagrams over the loopback of this machine */
#include "socket_bed.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define STREAM	RGATE_SOCKET_STREAM
#define NOW	RGATE_SOCKET_NOW
#define ALL	RGATE_SOCKET_ALL
#define ADDR	sizeof(struct rgate_socket_addr)
#define A	(&net_a)
#define B	(&net_b)

static void fill(void *to, size_t len, uint64_t seed)
{
	unsigned char *p = to;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (unsigned char)(unit_random(&seed) >> 32);
}

static uint64_t hash(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t h = 0xcbf29ce484222325;

	while (len--)
		h = (h ^ *p++) * 0x100000001b3;
	return h;
}

static int set_int(struct net_client *c, uint32_t sock, uint32_t option, int32_t v)
{
	memcpy(c->c.mem + NET_ADDR, &v, sizeof(v));
	return ASK(c, SETOPT, .handle = sock, .a0 = option, .off = NET_ADDR, .len = sizeof(v));
}

static int set_linger(struct net_client *c, uint32_t sock, int seconds)
{
	const struct rgate_socket_linger l = { 1, seconds };

	memcpy(c->c.mem + NET_ADDR, &l, sizeof(l));
	return ASK(c, SETOPT, .handle = sock, .a0 = RGATE_SOCKET_LINGER, .off = NET_ADDR,
		   .len = sizeof(l));
}

/* ---- Streams ---- */

/* The names at both ends are those of one connection, and each of @bytes arrives, both ways. */
static void both_ways(int family, uint32_t bytes)
{
	struct rgate_socket_addr from;
	uint32_t l, a, b;
	uint64_t s1, s2, r1, r2, h;
	uint16_t port;

	l = net_listen(A, family, &port);
	b = net_socket(B, family, STREAM);
	s1 = POST(A, ACCEPT, .handle = l, .off = NET_ADDR + 64, .len = ADDR);
	assert_int_equal(net_connect(B, b, family, port), 0);
	assert_int_equal(net_end(A, s1), 0);
	a = (uint32_t)net_value;
	memcpy(&from, A->c.mem + NET_ADDR + 64, sizeof(from));
	assert_int_equal(from.port, net_port(B, b));
	assert_memory_equal(from.addr, net_addr_get(B).addr, sizeof(from.addr));
	assert_int_equal(net_port(A, a), port);
	assert_int_equal(ASK(B, PEER, .handle = b, .off = NET_ADDR, .len = ADDR), 0);
	assert_int_equal(net_addr_get(B).port, port);

	fill(A->c.mem, bytes, 1);
	fill(B->c.mem, bytes, 2);
	h = hash(A->c.mem, bytes);
	s1 = POST(A, SEND, .handle = a, .off = 0, .len = bytes);
	s2 = POST(B, SEND, .handle = b, .off = 0, .len = bytes);
	r1 = POST(A, RECV, .handle = a, .a0 = ALL, .off = bytes, .len = bytes);
	r2 = POST(B, RECV, .handle = b, .a0 = ALL, .off = bytes, .len = bytes);
	assert_int_equal(net_end(A, s1), bytes);
	assert_int_equal(net_end(B, s2), bytes);
	assert_int_equal(net_end(A, r1), bytes);
	assert_int_equal(net_end(B, r2), bytes);
	assert_int_equal(hash(B->c.mem + bytes, bytes), h);
	assert_int_equal(hash(A->c.mem + bytes, bytes), hash(B->c.mem, bytes));
	assert_int_equal(net_close(A, a), 0);
	assert_int_equal(ASK(B, RECV, .handle = b, .len = 16), 0);
	assert_int_equal(net_close(B, b), 0);
	assert_int_equal(net_close(A, l), 0);
}

static void streams(void **state)
{
	struct socket_stats st = { .sz = sizeof(st) };

	(void)state;
	both_ways(4, 3U << 20);
	both_ways(6, 1U << 20);
	assert_int_equal(socket_service_stats(net_sv, &st), 0);
	assert_int_equal(st.sent, 8U << 20);
	assert_int_equal(st.received, 8U << 20);
	assert_int_equal(st.accepted, 2);
	assert_int_equal(st.opened, 6);
}

/* :: is of both families, until it is not */
static void mapped(void **state)
{
	static const uint8_t v4[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	uint32_t l = net_socket(A, 6, STREAM), a, b;
	uint16_t port;

	(void)state;
	net_addr_put(A, "::", 0);
	assert_int_equal(ASK(A, BIND, .handle = l, .off = NET_ADDR, .len = ADDR), 0);
	assert_int_equal(ASK(A, LISTEN, .handle = l, .a0 = 8), 0);
	port = net_port(A, l);
	b = net_socket(B, 4, STREAM);
	assert_int_equal(net_connect(B, b, 4, port), 0);
	assert_int_equal(ASK(A, ACCEPT, .handle = l, .off = NET_ADDR, .len = ADDR), 0);
	a = (uint32_t)net_value;
	assert_int_equal(net_addr_get(A).family, RGATE_SOCKET_INET6);
	assert_memory_equal(net_addr_get(A).addr, v4, sizeof(v4));
	assert_int_equal(net_close(A, a), 0);
	assert_int_equal(net_close(A, l), 0);

	l = net_socket(A, 6, STREAM);
	assert_int_equal(set_int(A, l, RGATE_SOCKET_IPV6_V6ONLY, 1), 0);
	net_addr_put(A, "::", 0);
	assert_int_equal(ASK(A, BIND, .handle = l, .off = NET_ADDR, .len = ADDR), 0);
	assert_int_equal(ASK(A, LISTEN, .handle = l, .a0 = 8), 0);
	port = net_port(A, l);
	b = net_socket(B, 4, STREAM);
	assert_int_equal(net_connect(B, b, 4, port), -ECONNREFUSED);
	b = net_socket(B, 6, STREAM);
	assert_int_equal(net_connect(B, b, 6, port), 0);
}

/* The other half goes on; what was to be sent before goes before the end. */
static void half_close(void **state)
{
	unsigned char got[64];
	uint64_t send, end;
	uint32_t s;
	int fd;

	(void)state;
	s = net_pair(A, &fd);
	memcpy(A->c.mem, "question", 8);
	send = POST(A, SEND, .handle = s, .len = 8);
	end = POST(A, SHUTDOWN, .handle = s, .a0 = RGATE_SOCKET_SHUT_SEND);
	assert_int_equal(net_end(A, send), 8);
	assert_int_equal(net_end(A, end), 0);
	assert_int_equal(raw_read(fd, got, sizeof(got)), 8);
	assert_memory_equal(got, "question", 8);
	raw_write(fd, "answer", 6);
	assert_int_equal(ASK(A, RECV, .handle = s, .len = 64), 6);
	assert_memory_equal(A->c.mem, "answer", 6);
	assert_int_equal(ASK(A, SEND, .handle = s, .len = 8), -EPIPE);
	close(fd);
	assert_int_equal(ASK(A, RECV, .handle = s, .len = 64), 0);
	assert_int_equal(ASK(A, RECV, .handle = s, .len = 64), 0);
}

/* Who waits for bytes hears of an end that this side makes. */
static void shut_receiving(void **state)
{
	uint64_t r;
	uint32_t s;
	int fd;

	(void)state;
	s = net_pair(A, &fd);
	r = POST(A, RECV, .handle = s, .len = 64);
	assert_int_equal(net_end_in(A, r, 50), -ETIME);
	assert_int_equal(ASK(A, SHUTDOWN, .handle = s, .a0 = RGATE_SOCKET_SHUT_RECV), 0);
	assert_int_equal(net_end(A, r), 0);
	close(fd);
}

/* A reset is never a regular end: with bytes unread, and with none. */
static void resets(void **state)
{
	const struct linger now = { .l_onoff = 1 };
	unsigned char byte;
	uint64_t r;
	uint32_t s;
	int fd;

	(void)state;
	s = net_pair(A, &fd);
	r = POST(A, RECV, .handle = s, .len = 64);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(fd);
	assert_int_equal(net_end(A, r), -ECONNRESET);
	/* ... the peer has something unread */
	s = net_pair(A, &fd);
	assert_int_equal(ASK(A, SEND, .handle = s, .len = 8), 8);
	assert_int_equal(recv(fd, &byte, 1, 0), 1);
	close(fd);
	assert_int_equal(ASK(A, RECV, .handle = s, .len = 64), -ECONNRESET);
	/* ... and this side: what it does not read, and SO_LINGER */
	s = net_pair(A, &fd);
	raw_write(fd, "unread", 6);
	while (ASK(A, POLL, .handle = s, .a0 = RGATE_SOCKET_IN))
		;
	assert_int_equal(net_close(A, s), 0);
	assert_int_equal(recv(fd, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
	s = net_pair(A, &fd);
	assert_int_equal(set_linger(A, s, 0), 0);
	assert_int_equal(net_close(A, s), 0);
	assert_int_equal(recv(fd, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
}

/* A lingering close ends when all has arrived, or its time is over, and holds nobody up. */
static void lingers(void **state)
{
	uint32_t s, other, l;
	uint64_t close1, t;
	uint16_t port;
	char *sink = malloc(NET_MEM);
	int fd, fd2, n;

	(void)state;
	assert_non_null(sink);
	for (n = 0; n < 2; n++) {
		s = net_pair(A, &fd);
		other = net_pair(A, &fd2);
		assert_int_equal(set_linger(A, s, n ? 1 : 30), 0);
		while (ASK(A, SEND, .handle = s, .a0 = NOW, .len = 1U << 20) > 0)
			;
		t = unit_now_ns();
		close1 = POST(A, CLOSE, .handle = s);
		assert_int_equal(net_end_in(A, close1, 100), -ETIME);
		raw_write(fd2, "x", 1);
		assert_int_equal(ASK(A, RECV, .handle = other, .len = 1), 1);
		if (!n)
			while (raw_read(fd, sink, NET_MEM) > 0)
				;
		assert_int_equal(net_end(A, close1), 0);
		assert_true(n ? unit_now_ns() - t >= 900000000 : unit_now_ns() - t < 25000000000);
		close(fd);
		close(fd2);
	}
	free(sink);
	/* accepted sockets have what the listener has */
	l = net_listen(A, 4, &port);
	assert_int_equal(set_linger(A, l, 7), 0);
	fd = raw_connect(port);
	s = net_accept(A, l);
	assert_int_equal(ASK(A, GETOPT, .handle = s, .a0 = RGATE_SOCKET_LINGER, .off = 0,
			     .len = 8), 8);
	assert_int_equal(((struct rgate_socket_linger *)A->c.mem)->seconds, 7);
	close(fd);
}

/* ---- Connecting ---- */

static void refused(void **state)
{
	uint32_t s = net_socket(A, 4, STREAM);
	uint16_t port;
	int fd;

	(void)state;
	fd = raw_listen(1, &port);
	close(fd);
	assert_int_equal(net_connect(A, s, 4, port), -ECONNREFUSED);
	assert_int_equal(ASK(A, SEND, .handle = s, .len = 1), -EPIPE);
	/* it can be tried again */
	fd = raw_listen(1, &port);
	assert_int_equal(net_connect(A, s, 4, port), 0);
	assert_int_equal(net_connect(A, s, 4, port), -EISCONN);
	close(fd);
}

/* A listener that takes nobody any more: who connects waits */
static int deaf_listener(uint16_t *port, int fds[8])
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int l = raw_listen(0, port), i;

	in.sin_port = htons(*port);
	for (i = 0; i < 8; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(fds[i], (struct sockaddr *)&in, sizeof(in));
	}
	usleep(20000);
	return l;
}

static void slow_connect(void **state)
{
	uint32_t s = net_socket(A, 4, STREAM);
	int fds[8], l, l2, i;
	uint16_t port, port2;
	uint64_t c, send;

	(void)state;
	l = deaf_listener(&port, fds);
	c = POST(A, CONNECT, .handle = s, .off = net_addr(A, 4, port), .len = ADDR,
		 .deadline_us = 100000);
	send = POST(A, SEND, .handle = s, .len = 5);
	assert_int_equal(net_end(A, c), -ETIMEDOUT);
	assert_int_equal(net_end(A, send), -EPIPE);
	c = POST(A, CONNECT, .handle = s, .off = net_addr(A, 4, port), .len = ADDR);
	assert_int_equal(net_end_in(A, c, 50), -ETIME);
	assert_int_equal(net_cancel(A, c), 0);
	assert_int_equal(net_end(A, c), -ECANCELED);
	/* nothing of the attempt is left */
	l2 = raw_listen(4, &port2);
	assert_int_equal(net_connect(A, s, 4, port2), 0);
	close(raw_accept(l2));
	/* what is closed while it connects */
	s = net_socket(A, 4, STREAM);
	c = POST(A, CONNECT, .handle = s, .off = net_addr(A, 4, port), .len = ADDR);
	assert_int_equal(net_close(A, s), 0);
	assert_int_equal(net_end(A, c), -ECANCELED);
	for (i = 0; i < 8; i++)
		close(fds[i]);
	close(l);
	close(l2);
}

/* Several accepts, connections in their order, cancelling, the end of the listener */
static void accepts(void **state)
{
	uint64_t one, two, three;
	uint32_t l, x, y;
	uint16_t port;
	int f, g;

	(void)state;
	l = net_listen(A, 4, &port);
	assert_int_equal(ASK(A, GETOPT, .handle = l, .a0 = RGATE_SOCKET_ACCEPTCONN, .off = 0,
			     .len = 4), 4);
	assert_int_equal(A->c.mem[0], 1);
	one = POST(A, ACCEPT, .handle = l);
	two = POST(A, ACCEPT, .handle = l);
	three = POST(A, ACCEPT, .handle = l, .deadline_us = 30000);
	assert_int_equal(net_end(A, three), -ETIMEDOUT);
	assert_int_equal(net_cancel(A, one), 0);
	assert_int_equal(net_end(A, one), -ECANCELED);
	f = raw_connect(port);
	assert_int_equal(net_end(A, two), 0);
	x = (uint32_t)net_value;
	g = raw_connect(port);
	y = net_accept(A, l);
	raw_write(f, "f", 1);
	raw_write(g, "g", 1);
	assert_int_equal(ASK(A, RECV, .handle = y, .off = 1, .len = 1), 1);
	assert_int_equal(ASK(A, RECV, .handle = x, .off = 0, .len = 1), 1);
	assert_memory_equal(A->c.mem, "fg", 2);
	/* a name can be asked for meanwhile */
	one = POST(A, ACCEPT, .handle = l);
	assert_int_equal(net_port(A, l), port);
	assert_int_equal(net_close(A, l), 0);
	assert_int_equal(net_end(A, one), -ECANCELED);
	close(f);
	close(g);
}

/* Without a descriptor who waits in the backlog still does; handles of nobody come back. */
static void no_descriptors(void **state)
{
	struct rgate_engine_stats es = { .sz = sizeof(es) };
	struct rlimit was, now;
	uint32_t l, s;
	uint16_t port;
	int fd, i;

	(void)state;
	l = net_listen(A, 4, &port);
	fd = raw_connect(port);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	now = was;
	now.rlim_cur = (rlim_t)dup(fd);
	close((int)now.rlim_cur);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	for (i = 0; i < 50; i++) {
		assert_int_equal(ASK(A, ACCEPT, .handle = l), -EMFILE);
		assert_int_equal(ASK(A, OPEN, .a0 = RGATE_SOCKET_A0(2, STREAM)), -EMFILE);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	s = net_accept(A, l);
	raw_write(fd, "x", 1);
	assert_int_equal(ASK(A, RECV, .handle = s, .len = 1), 1);
	assert_int_equal(net_close(A, s), 0);
	assert_int_equal(rgate_engine_stats(net_eng, &es), 0);
	assert_int_equal(es.handles, 1);
	close(fd);
}

/* ---- Order, and what is cancelled ---- */

/* Sends under way go one after the other, whatever becomes of some. */
static void order(void **state)
{
	enum { N = 12, LEN = 512U << 10 };
	unsigned char *got = malloc(N * LEN + 1);
	size_t len = 0, all = 0, i;
	uint64_t sends[N];
	int n[N], fd;
	uint32_t s;

	(void)state;
	assert_non_null(got);
	s = net_pair(A, &fd);
	for (i = 0; i < N; i++) {
		fill(A->c.mem + i * LEN, LEN, i + 10);
		sends[i] = POST(A, SEND, .handle = s, .off = i * LEN, .len = LEN,
				.deadline_us = i % 4 == 1 ? 100000 : 0);
	}
	usleep(200000);
	/* The last was not begun, and the window is full. */
	assert_int_equal(net_cancel(A, sends[N - 1]), 0);
	assert_int_equal(net_end(A, sends[N - 1]), -ECANCELED);
	assert_int_equal(ASK(A, SEND, .handle = s, .a0 = NOW, .len = 1), -EAGAIN);
	n[N - 1] = 0;
	/* What arrives is as much as is said. */
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	for (i = 0; i < N - 1; i++) {
		while (n[i] = net_end_in(A, sends[i], 1), n[i] == -ETIME) {
			ssize_t k = recv(fd, got + all, N * LEN - all, MSG_DONTWAIT);

			if (k > 0)
				all += (size_t)k;
		}
		assert_true(n[i] > 0 ? n[i] <= LEN : n[i] == -ETIMEDOUT);
		assert_true(i % 4 == 1 || n[i] == LEN);
	}
	assert_int_equal(net_close(A, s), 0);
	all += raw_read(fd, got + all, N * LEN - all);
	for (i = 0, len = 0; i < N; i++) {
		if (n[i] <= 0)
			continue;
		assert_memory_equal(got + len, A->c.mem + i * LEN, (size_t)n[i]);
		len += (size_t)n[i];
	}
	assert_int_equal(all, len);
	close(fd);
	free(got);
}

/* Receives that are cancelled, or run out of time, lose no byte. */
static void no_byte_lost(void **state)
{
	unsigned char next = 0, byte = 0;
	unsigned int i, got, sent = 0, taken = 0, ended[2] = { 0 };
	uint64_t seed = 5, r;
	uint32_t s;
	int fd, n, k;

	(void)state;
	s = net_pair(A, &fd);
	for (i = 0; i < 2000 || taken < sent; i++) {
		r = POST(A, RECV, .handle = s, .len = 64,
			 .deadline_us = i % 3 ? 0 : 1 + (uint32_t)unit_random(&seed) % 100);
		if (i < 2000 && unit_random(&seed) % 2) {
			raw_write(fd, &byte, 1);
			byte++;
			sent++;
		}
		if (i % 3 == 1)
			(void)net_cancel(A, r);
		n = i % 3 == 2 ? net_end_in(A, r, 1) : net_end(A, r);
		if (n == -ETIME) {
			(void)net_cancel(A, r);
			n = net_end(A, r);
		}
		if (n < 0) {
			assert_true(n == -ECANCELED || n == -ETIMEDOUT);
			ended[n == -ECANCELED]++;
			continue;
		}
		got = (unsigned int)n;
		for (k = 0; k < n; k++)
			assert_int_equal(A->c.mem[k], next++);
		taken += got;
	}
	assert_int_equal(taken, sent);
	assert_true(ended[0] && ended[1]);
	close(fd);
}

/* Receives under way get the bytes one after the other. */
static void receives_in_order(void **state)
{
	enum { N = 64 };
	unsigned char data[N * 100];
	uint64_t r[N], peek;
	uint32_t s;
	int fd, i;

	(void)state;
	s = net_pair(A, &fd);
	for (i = 0; i < N; i++)
		r[i] = POST(A, RECV, .handle = s, .a0 = ALL, .off = (uint64_t)i * 100, .len = 100);
	assert_int_equal(ASK(A, RECV, .handle = s, .a0 = NOW, .len = 1), -EAGAIN);
	fill(data, sizeof(data), 3);
	for (i = 0; i < N * 100; i += 37)
		raw_write(fd, data + i, i + 37 <= N * 100 ? 37 : (size_t)(N * 100 - i));
	for (i = 0; i < N; i++)
		assert_int_equal(net_end(A, r[i]), 100);
	assert_memory_equal(A->c.mem, data, sizeof(data));
	peek = POST(A, RECV, .handle = s, .a0 = RGATE_SOCKET_PEEK, .len = 4);
	raw_write(fd, "abcd", 4);
	assert_in_range(net_end(A, peek), 1, 4);
	assert_int_equal(ASK(A, RECV, .handle = s, .a0 = ALL, .len = 4), 4);
	assert_memory_equal(A->c.mem, "abcd", 4);
	/* the end comes in the middle */
	raw_write(fd, "xy", 2);
	close(fd);
	assert_int_equal(ASK(A, RECV, .handle = s, .a0 = ALL, .len = 4), 2);
	assert_int_equal(ASK(A, RECV, .handle = s, .a0 = ALL, .len = 4), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(streams, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(mapped, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(half_close, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(shut_receiving, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(resets, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(lingers, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(refused, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(slow_connect, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(accepts, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(no_descriptors, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(order, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(no_byte_lost, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(receives_in_order, net_setup, net_teardown),
};

UNIT_MAIN(tests)
