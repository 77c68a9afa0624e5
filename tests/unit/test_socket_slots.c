// SPDX-License-Identifier: MIT OR GPL-2.0
/* One request that receives many times, each into the next slot */
#include "socket_bed.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDR	((uint32_t)sizeof(struct rgate_socket_addr))
#define A	(&net_a)
#define AT	4096U		/* where slots are */
#define SLOT	8U

/* @n slots */
#define SLOTS(s, n, len_, ...) \
	POST(A, RECV, .handle = (s), .a1 = (n) + 1, .flags = RGATE_REQ_MULTI, .off = AT, \
	     .len = (n) * (len_), ##__VA_ARGS__)
#define FROM(s, n, len_, ...) \
	POST(A, RECVFROM, .handle = (s), .a1 = (n) + 1, .flags = RGATE_REQ_MULTI, .off = AT, \
	     .len = (n) * (len_), ##__VA_ARGS__)

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

/* These bytes, at @at */
static void got(uint64_t cookie, uint32_t at, const char *text)
{
	const struct rgate_completion done = next(cookie);

	assert_int_equal(done.result, strlen(text));
	assert_int_equal(done.flags, RGATE_COMP_MORE);
	assert_memory_equal(A->c.mem + at, text, strlen(text));
}

static void ends(uint64_t cookie, int result)
{
	const struct rgate_completion done = next(cookie);

	assert_int_equal(done.result, result);
	assert_int_equal(done.flags, 0);
	assert_int_equal(done.value, 0);
}

static void nothing(void)
{
	struct rgate_completion done;

	usleep(10000);
	assert_false(client_poll(&A->c, &done));
}

/* What comes at once goes into as many slots as it takes, and no byte beyond what was told. */
static void stream(void **state)
{
	uint32_t s;
	uint64_t c;
	int fd;

	(void)state;
	s = net_pair(A, &fd);
	memset(A->c.mem + AT, '.', 100);
	c = SLOTS(s, 4, SLOT);
	nothing();
	raw_write(fd, "abc", 3);
	got(c, AT, "abc");
	raw_write(fd, "0123456789", 10);
	got(c, AT + SLOT, "01234567");
	got(c, AT + 2 * SLOT, "89");
	nothing();
	assert_memory_equal(A->c.mem + AT, "abc.....0123456789......", 24);
	raw_write(fd, "ABCDEFGHIJKL", 12);
	got(c, AT + 3 * SLOT, "ABCDEFGH");
	ends(c, -ENOBUFS);
	assert_int_equal(A->c.mem[AT + 4 * SLOT], '.');
	/* what is left is for the next one */
	c = SLOTS(s, 2, 3);
	got(c, AT, "IJK");
	got(c, AT + 3, "L");
	ends(c, -ENOBUFS);
	close(fd);
}

static void stream_ends(void **state)
{
	const struct linger reset = { .l_onoff = 1 };
	uint32_t s;
	uint64_t c;
	int fd;

	(void)state;
	s = net_pair(A, &fd);
	c = SLOTS(s, 4, SLOT);
	raw_write(fd, "end", 3);
	close(fd);
	got(c, AT, "end");
	ends(c, 0);
	ends(SLOTS(s, 4, SLOT), 0);
	/* with the last slot */
	s = net_pair(A, &fd);
	raw_write(fd, "x", 1);
	close(fd);
	c = SLOTS(s, 1, SLOT);
	got(c, AT, "x");
	ends(c, -ENOBUFS);
	ends(SLOTS(s, 1, SLOT), 0);
	s = net_pair(A, &fd);
	c = SLOTS(s, 4, SLOT);
	raw_write(fd, "y", 1);
	got(c, AT, "y");
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	close(fd);
	ends(c, -ECONNRESET);
}

static int udp(uint32_t *s, uint16_t *from)
{
	int fd = raw_udp(from);
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	*s = net_socket(A, 4, RGATE_SOCKET_DGRAM);
	assert_int_equal(net_bind(A, *s, 4, 0), 0);
	in.sin_port = htons(net_port(A, *s));
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

/* One each, also of no bytes; a longer one is cut, and its length told. */
static void datagrams(void **state)
{
	static const char *const text[] = { "a", "bc", "def" };
	struct rgate_completion done;
	struct rgate_socket_addr a;
	uint16_t port;
	uint32_t s, i;
	uint64_t c;
	int fd;

	(void)state;
	fd = udp(&s, &port);
	memset(A->c.mem + AT, '.', 300);
	c = SLOTS(s, 3, SLOT);
	raw_write(fd, "one", 3);
	assert_int_equal(send(fd, "", 0, 0), 0);
	raw_write(fd, "much too long", 13);
	done = next(c);
	assert_int_equal(done.result, 3);
	assert_int_equal(done.value, 3);
	done = next(c);
	assert_int_equal(done.result, 0);
	assert_int_equal(done.flags, RGATE_COMP_MORE);
	assert_int_equal(done.value, 0);
	done = next(c);
	assert_int_equal(done.result, SLOT);
	assert_int_equal(done.value, 13);
	ends(c, -ENOBUFS);
	assert_memory_equal(A->c.mem + AT, "one.............much too..", 26);
	/* who has sent each, in front of it */
	c = FROM(s, 3, ADDR + 4);
	for (i = 0; i < 3; i++)
		raw_write(fd, text[i], i + 1);
	for (i = 0; i < 3; i++) {
		done = next(c);
		assert_int_equal(done.result, i + 1);
		assert_int_equal(done.value, i + 1);
		memcpy(&a, A->c.mem + AT + (size_t)i * (ADDR + 4), sizeof(a));
		assert_int_equal(a.port, port);
		assert_int_equal(a.family, RGATE_SOCKET_INET);
		assert_memory_equal(A->c.mem + AT + (size_t)i * (ADDR + 4) + ADDR, text[i],
				    i + 1);
	}
	ends(c, -ENOBUFS);
	close(fd);
}

static void refused(void **state)
{
	uint32_t s;
	int fd;

	(void)state;
	s = net_pair(A, &fd);
	ends(SLOTS(s, 4, SLOT, .a0 = RGATE_SOCKET_PEEK), -EINVAL);
	ends(SLOTS(s, 4, SLOT, .a0 = RGATE_SOCKET_ALL), -EINVAL);
	ends(SLOTS(s, 4, SLOT, .a0 = 1ULL << 32), -EINVAL);
	ends(SLOTS(s, 4, 0), -EINVAL);
	ends(SLOTS(s, 0, SLOT), -EINVAL);
	ends(SLOTS(s, NET_PLACES, SLOT), -ENOSPC);
	ends(POST(A, RECV, .handle = s, .a1 = 4, .flags = RGATE_REQ_MULTI, .len = 2), -EINVAL);
	ends(POST(A, RECV, .handle = s, .a1 = 4, .flags = RGATE_REQ_MULTI, .len = 10), -EINVAL);
	ends(POST(A, RECV, .handle = s, .a1 = 3, .flags = RGATE_REQ_MULTI, .off = NET_MEM - 9,
		  .len = 10), -ERANGE);
	ends(POST(A, RECV, .handle = s, .a1 = 4, .len = 9), -EINVAL);
	ends(FROM(s, 4, ADDR), -EINVAL);
	ends(FROM(s, 4, SLOT), -EINVAL);
	ends(SLOTS(s + 1, 4, SLOT), -EBADF);
	close(fd);
}

/* It is first in its order; what is behind it comes after its end. */
static void ended(void **state)
{
	uint64_t c, d, cancel;
	uint32_t s;
	int fd;

	(void)state;
	s = net_pair(A, &fd);
	c = SLOTS(s, 4, SLOT);
	d = POST(A, RECV, .handle = s, .off = 0, .len = 10);
	raw_write(fd, "first", 5);
	got(c, AT, "first");
	cancel = net_post(A, (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = c });
	ends(cancel, 0);
	ends(c, -ECANCELED);
	raw_write(fd, "next", 4);
	ends(d, 4);
	c = SLOTS(s, 4, SLOT, .deadline_us = 20000);
	ends(c, -ETIMEDOUT);
	/* what is there, and no more */
	ends(SLOTS(s, 4, SLOT, .a0 = RGATE_SOCKET_NOW), -EAGAIN);
	raw_write(fd, "0123456789", 10);
	assert_int_equal(ASK(A, POLL, .handle = s, .a0 = RGATE_SOCKET_IN), 0);
	c = SLOTS(s, 4, SLOT, .a0 = RGATE_SOCKET_NOW);
	got(c, AT, "01234567");
	got(c, AT + SLOT, "89");
	ends(c, -EAGAIN);
	c = SLOTS(s, 4, SLOT);
	d = POST(A, CLOSE, .handle = s);
	ends(c, -ECANCELED);
	ends(d, 0);
	close(fd);
}

#define ROUND	64U		/* bytes */

/* All of that one's, to its end: bytes come in their order */
static void take(uint64_t c, uint32_t slot, uint32_t *seen, uint8_t *sum)
{
	struct rgate_completion done;
	uint32_t i, at = AT;

	for (;;) {
		if (!client_poll(&A->c, &done))
			continue;
		if (done.cookie != c)
			continue;
		if (!done.flags)
			break;
		assert_in_range(done.result, 1, slot);
		for (i = 0; i < (uint32_t)done.result; i++)
			assert_int_equal(A->c.mem[at + i], (uint8_t)(*sum)++);
		*seen += (uint32_t)done.result;
		at += slot;
	}
	assert_true(done.result == -ECANCELED || done.result == -ENOBUFS);
}

/* Cancelled while bytes come: each is told of, once, or is left for the next one. */
static void races(void **state)
{
	const unsigned int rounds = unit_rounds(300);
	uint32_t s, i, k, seen = 0, sent = 0;
	uint8_t bytes[ROUND], sum = 0;
	uint64_t c;
	int fd;

	(void)state;
	s = net_pair(A, &fd);
	for (i = 0; i < rounds; i++) {
		c = SLOTS(s, 8, 16);
		for (k = 0; k < ROUND; k++)
			bytes[k] = (uint8_t)(sent + k);
		raw_write(fd, bytes, ROUND / 2);
		raw_write(fd, bytes + ROUND / 2, ROUND / 2);
		sent += ROUND;
		(void)net_post(A, (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = c });
		take(c, 16, &seen, &sum);
	}
	while (seen < sent) {
		c = SLOTS(s, 1, 16);
		take(c, 16, &seen, &sum);
	}
	assert_int_equal(seen, sent);
	close(fd);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(stream, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(stream_ends, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(datagrams, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(refused, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(ended, net_setup, net_teardown),
	cmocka_unit_test_setup_teardown(races, net_setup, net_teardown),
};

UNIT_MAIN(tests)
