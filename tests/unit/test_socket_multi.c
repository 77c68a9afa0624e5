// SPDX-License-Identifier: MIT OR GPL-2.0
/* One request that accepts many connections */
#include "socket_bed.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDR	sizeof(struct rgate_socket_addr)
#define A	(&net_a)
#define MOST	RGATE_SOCKET_ACCEPT_MOST
#define NOW	RGATE_SOCKET_NOW

#define ACCEPTS(client, l, n, ...) \
	POST(client, ACCEPT, .handle = (l), .a1 = (n), .flags = RGATE_REQ_MULTI, ##__VA_ARGS__)

/* A's next completion, which is that one's */
static struct rgate_completion next(uint64_t cookie)
{
	const uint64_t until = unit_now_ns() + 20000000000ULL * unit_patience();
	struct rgate_completion done;

	while (!client_poll(&A->c, &done)) {
		assert_true(unit_now_ns() < until);
		usleep(20);
	}
	assert_int_equal(done.cookie, cookie);
	return done;
}

/* A connection that has come: its handle */
static uint32_t came(uint64_t cookie)
{
	const struct rgate_completion done = next(cookie);

	assert_int_equal(done.result, 0);
	assert_int_equal(done.flags, RGATE_COMP_MORE);
	assert_int_not_equal(done.value, 0);
	return (uint32_t)done.value;
}

static void ends(uint64_t cookie, int result)
{
	const struct rgate_completion done = next(cookie);

	assert_int_equal(done.result, result);
	assert_int_equal(done.flags, 0);
	assert_int_equal(done.value, 0);
}

static uint64_t handles(void)
{
	struct rgate_engine_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_engine_stats(net_eng, &st), 0);
	return st.handles;
}

static uint64_t sockets(void)
{
	struct socket_stats st = { .sz = sizeof(st) };

	assert_int_equal(socket_service_stats(net_sv, &st), 0);
	return st.sockets;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	return (uint16_t)(((unsigned char *)&ss)[2] << 8 | ((unsigned char *)&ss)[3]);
}

/* Each with its handle and its peer's address, in their order; then it has no more places. */
static void many(void **state)
{
	struct rgate_socket_addr from;
	uint32_t l, h[3];
	uint16_t port;
	uint64_t c;
	int fd[4], i;
	char byte;

	(void)state;
	l = net_listen(A, 4, &port);
	fd[0] = raw_connect(port);
	c = ACCEPTS(A, l, 4, .off = 100, .len = 3 * ADDR);
	for (i = 1; i < 4; i++) {
		h[i - 1] = came(c);
		if (i < 3)
			fd[i] = raw_connect(port);
	}
	ends(c, -ENOBUFS);
	for (i = 0; i < 3; i++) {
		memcpy(&from, A->c.mem + 100 + (size_t)i * ADDR, sizeof(from));
		assert_int_equal(from.port, port_of(fd[i]));
		byte = (char)('a' + i);
		raw_write(fd[i], &byte, 1);
		assert_int_equal(ASK(A, RECV, .handle = h[i], .off = 0, .len = 1), 1);
		assert_int_equal(A->c.mem[0], byte);
	}
	/* who comes meanwhile waits in the backlog: nobody is lost */
	fd[3] = raw_connect(port);
	c = ACCEPTS(A, l, 2);
	h[0] = came(c);
	ends(c, -ENOBUFS);
	raw_write(fd[3], "x", 1);
	assert_int_equal(ASK(A, RECV, .handle = h[0], .off = 0, .len = 1), 1);
	for (i = 0; i < 4; i++)
		close(fd[i]);
}

static void refused(void **state)
{
	uint64_t before;
	uint16_t port;
	uint32_t l;

	(void)state;
	l = net_listen(A, 4, &port);
	before = handles();
	ends(ACCEPTS(A, l, 0), -EINVAL);
	ends(ACCEPTS(A, l, 1), -EINVAL);
	ends(ACCEPTS(A, l, 1U << 31), -EINVAL);
	ends(ACCEPTS(A, l, NET_PLACES), -ENOSPC);
	ends(ACCEPTS(A, l, 4, .len = ADDR), -EINVAL);
	ends(ACCEPTS(A, l, 4, .len = 4 * ADDR), -EINVAL);
	ends(ACCEPTS(A, l, 4, .a0 = 1), -EINVAL);
	ends(ACCEPTS(A, l + 1, 4), -EBADF);
	ends(POST(A, ACCEPT, .handle = l, .a1 = 4), -EINVAL);
	ends(POST(A, SEND, .handle = l, .a1 = 4, .flags = RGATE_REQ_MULTI), -EOPNOTSUPP);
	assert_int_equal(handles(), before);
}

/* More than one request may ask for, however many places there are */
static void most(void **state)
{
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = 7, .requests = 64,
						    .completions = 4 * MOST);
	static struct net_client c;
	uint32_t l;

	(void)state;
	memset(&c, 0, sizeof(c));
	assert_int_equal(client_open(&c.c, net_eng, &o), 0);
	l = net_socket(&c, 4, RGATE_SOCKET_STREAM);
	assert_int_equal(ASK(&c, LISTEN, .handle = l, .a0 = 8), 0);
	assert_int_equal(net_end(&c, ACCEPTS(&c, l, MOST + 1)), -EINVAL);
	assert_int_equal(handles(), 1);
	(void)ACCEPTS(&c, l, MOST);
	/* its handles are there from the begin */
	assert_int_equal(ASK(&c, LISTEN, .handle = l, .a0 = 8), 0);
	assert_int_equal(handles(), MOST);
	net_part(&c);
	assert_int_equal(handles(), 0);
}

/* One handle too many: none of them is kept. */
static void no_handles(void **state)
{
	struct rgate_limits lim;
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = 7, .requests = 64,
						    .completions = 64, .limits = &lim);
	static struct net_client c;
	uint32_t l;

	(void)state;
	rgate_limits_init(&lim);
	lim.handles = 5;
	memset(&c, 0, sizeof(c));
	assert_int_equal(client_open(&c.c, net_eng, &o), 0);
	l = net_socket(&c, 4, RGATE_SOCKET_STREAM);
	assert_int_equal(ASK(&c, LISTEN, .handle = l, .a0 = 8), 0);
	assert_int_equal(net_end(&c, ACCEPTS(&c, l, 6)), -EDQUOT);
	assert_int_equal(handles(), 1);
	(void)ACCEPTS(&c, l, 5);
	assert_int_equal(ASK(&c, LISTEN, .handle = l, .a0 = 8), 0);
	assert_int_equal(handles(), 5);
	net_part(&c);
}

/* Ended by client, time, the listener's end: what came stays, what did not leaves nothing. */
static void ended(void **state)
{
	uint64_t c, d, cancel;
	uint16_t port;
	uint32_t l, h;
	int fd;

	(void)state;
	l = net_listen(A, 4, &port);
	c = ACCEPTS(A, l, 10);
	/* another one stands behind it */
	d = ACCEPTS(A, l, 10, .deadline_us = 30000);
	ends(d, -ETIMEDOUT);
	fd = raw_connect(port);
	h = came(c);
	cancel = net_post(A, (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = c });
	ends(cancel, 0);
	ends(c, -ECANCELED);
	/* those that nobody came for are free as soon as it is told */
	assert_int_equal(handles(), 2);
	raw_write(fd, "x", 1);
	assert_int_equal(ASK(A, RECV, .handle = h, .off = 0, .len = 1), 1);
	c = ACCEPTS(A, l, 10, .deadline_us = 30000);
	ends(c, -ETIMEDOUT);
	assert_int_equal(handles(), 2);
	c = POST(A, ACCEPT, .handle = l, .deadline_us = 3000);
	ends(c, -ETIMEDOUT);
	assert_int_equal(handles(), 2);
	/* Closing frees what was reserved: one that came is left. */
	c = ACCEPTS(A, l, 10);
	d = POST(A, CLOSE, .handle = l);
	ends(c, -ECANCELED);
	ends(d, 0);
	assert_int_equal(net_close(A, h), 0);
	assert_int_equal(handles(), 0);
	close(fd);
}

static void session_ends(void **state)
{
	static struct net_client c;
	unsigned int i;
	uint16_t port;
	uint32_t l;
	int fd[3];

	(void)state;
	net_join(&c, 3);
	l = net_listen(&c, 4, &port);
	(void)ACCEPTS(&c, l, 100);
	for (i = 0; i < 3; i++)
		fd[i] = raw_connect(port);
	net_part(&c);
	for (i = 0; i < 3; i++) {
		/* accepted or not, it ends */
		assert_int_equal(raw_read(fd[i], &port, 1), 0);
		close(fd[i]);
	}
	for (i = 0; i < 20000 && sockets(); i++)
		usleep(1000);
	assert_int_equal(sockets(), 0);
}

/* They come while it is cancelled: each is told, or stays in the backlog, for the next one. */
static void races(void **state)
{
	const unsigned int rounds = unit_rounds(300);
	struct rgate_completion done;
	unsigned int i, n, there = 0;
	uint64_t c, cancel;
	uint16_t port;
	uint32_t l;
	int fd[3];

	(void)state;
	l = net_listen(A, 4, &port);
	for (i = 0; i < rounds; i++) {
		c = ACCEPTS(A, l, 3);
		for (n = 0; n < 3; n++)
			fd[n] = raw_connect(port);
		cancel = net_post(A, (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = c });
		for (n = 0; n < 2;) {
			if (!client_poll(&A->c, &done))
				continue;
			if (done.cookie == cancel) {
				n++;
				continue;
			}
			assert_int_equal(done.cookie, c);
			if (done.flags) {
				there++;
				(void)POST(A, CLOSE, .handle = (uint32_t)done.value,
					   .flags = RGATE_REQ_NO_COMPLETION);
				continue;
			}
			assert_true(done.result == -ENOBUFS || done.result == -ECANCELED);
			n++;
		}
		for (n = 0; n < 3; n++)
			close(fd[n]);
		/* those that were left */
		while (!ASK(A, POLL, .handle = l, .a0 = RGATE_SOCKET_IN, .a1 = NOW)) {
			there++;
			assert_int_equal(net_close(A, net_accept(A, l)), 0);
		}
	}
	assert_int_equal(there, 3 * rounds);
	assert_int_equal(net_close(A, l), 0);
	assert_int_equal(handles(), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(many, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(refused, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(most, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(no_handles, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(ended, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(session_ends, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(races, net_setup, net_teardown),
};

UNIT_MAIN(tests)
