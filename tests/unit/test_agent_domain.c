// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The agent's name server, of programs that ask what there is, what there is not, and no
 * question.
 */
#include "datagram_bed.h"

#include <netdb.h>
#include <unistd.h>

#define A	"\0\1"
#define AAAA	"\0\34"
#define IN	"\0\1"
#define HEAD	12U
#define FAILED_FOR_NOW	2

static const struct rgate_socket_addr name_server = {
	.family = RGATE_SOCKET_INET, .port = AGENT_DOMAIN_PORT, .addr = AGENT_DOMAIN,
};

struct question {
	unsigned char bytes[512];
	size_t len;
};

/* @name: as it is in one; @tail: type and class */
static struct question question(const void *name, size_t len, const char *tail)
{
	struct question q = { .bytes = { 0x12, 0x34, 1, 0, 0, 1 }, .len = HEAD };

	memcpy(q.bytes + q.len, name, len);
	q.len += len;
	memcpy(q.bytes + q.len, tail, 4);
	q.len += 4;
	return q;
}

#define QUESTION(name, tail)	question(name, sizeof(name), tail)

static void put(int fd, const struct question *q, size_t len)
{
	assert_int_equal(send_with(fd, &name_server, q->bytes, len, 0), 0);
}

/* The answer, which is the question's and from the name server; its code */
static int hear(int fd, const struct question *q, unsigned char got[512], size_t *len)
{
	struct rgate_socket_addr from;
	int n = recv_from(fd, &from, got, 512);

	assert_true(n >= (int)HEAD);
	assert_memory_equal(&from, &name_server, sizeof(from));
	assert_memory_equal(got, q->bytes, 2);
	assert_int_equal(got[2], 0x80 | q->bytes[2]);
	assert_int_equal(got[3] & 0xf0, 0x80);
	if (len)
		*len = (size_t)n;
	return got[3] & 15;
}

static int asked(int fd, const struct question *q, unsigned char got[512], size_t *len)
{
	put(fd, q, q->len);
	return hear(fd, q, got, len);
}

static void found(void **state)
{
	static const unsigned char record[] = "\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x7f\0\0\1";
	struct question q = QUESTION("\011localhost", A IN);
	unsigned char got[512];
	int fd = new_udp(AF_INET);
	size_t len, i;

	(void)state;
	assert_int_equal(asked(fd, &q, got, &len), 0);
	assert_true(port_of(fd));
	assert_true(got[7] && !got[6] && !got[8] && !got[9]);
	assert_int_equal(len, q.len + got[7] * (sizeof(record) - 1));
	assert_memory_equal(got + HEAD, q.bytes + HEAD, q.len - HEAD);
	for (i = 0; i < got[7]; i++)
		if (!memcmp(got + q.len + i * (sizeof(record) - 1), record, sizeof(record) - 1))
			break;
	assert_true(i < got[7]);
	/* A number has one kind alone: that there is none of the other is told as just that. */
	q = QUESTION("\003127\0010\0010\0011", AAAA IN);
	assert_int_equal(asked(fd, &q, got, &len), 0);
	assert_int_equal(got[7], 0);
	assert_int_equal(len, q.len);
	/* What follows it is nobody's, such as what more could be agreed on. */
	q = QUESTION("\003127\0010\0010\0011", A IN);
	memcpy(q.bytes + q.len, "\0\0\x29\x10\0\0\0\0\0\0\0", 11);
	q.bytes[11] = 1;
	q.len += 11;
	assert_int_equal(asked(fd, &q, got, &len), 0);
	assert_true(got[7] == 1 && !got[11]);
	assert_int_equal(len, q.len - 11 + sizeof(record) - 1);
	close(fd);
	all_gone();
}

int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **out);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **out);

/* A name with two addresses, and one with more than an answer has room for */
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **out)
{
	struct addrinfo **end = out;
	char address[32];
	int err, i, n;

	n = !name ? 0 :
	    !strcmp(name, "two.test") ? 2 : !strcmp(name, "thirtytwo-are.test") ? 32 : 0;
	if (!n)
		return __real_getaddrinfo(name, service, hints, out);
	for (i = 0; i < n; i++) {
		snprintf(address, sizeof(address), "127.0.0.%d", i + 2);
		err = __real_getaddrinfo(address, service, hints, end);
		if (err && i)
			freeaddrinfo(*out);
		if (err)
			return err;
		while (*end)
			end = &(*end)->ai_next;
	}
	return 0;
}

/* All of its addresses, in their order; where they are too many, those that there is room for */
static void several(void **state)
{
	struct question q = QUESTION("\3two\4test", A IN);
	unsigned char got[512];
	int fd = new_udp(AF_INET);
	size_t len;

	(void)state;
	assert_int_equal(asked(fd, &q, got, &len), 0);
	assert_int_equal(got[7], 2);
	assert_int_equal(len, q.len + 2 * 16);
	assert_memory_equal(got + q.len + 12, "\x7f\0\0\2", 4);
	assert_memory_equal(got + q.len + 28, "\x7f\0\0\3", 4);
	/* Each needs room for the longest one, 12 and 16 bytes: up to the very end of 512. */
	q = QUESTION("\015thirtytwo-are\4test", A IN);
	assert_int_equal((512 - q.len) % 16, (12 + 16) % 16);
	assert_int_equal(asked(fd, &q, got, &len), 0);
	assert_int_equal(got[7], (512 - q.len - 12) / 16);
	assert_int_equal(len, q.len + got[7] * 16);
	close(fd);
	all_gone();
}

static void not_there(void **state)
{
	struct question q = QUESTION("\4a\0bc\3com", A IN);
	unsigned char got[512];
	int fd = new_udp(AF_INET);

	(void)state;
	assert_int_equal(asked(fd, &q, got, NULL), 3);
	q = QUESTION("\3a b\3com", A IN);
	assert_int_equal(asked(fd, &q, got, NULL), 3);
	/* Other types and classes, and other things to do */
	q = QUESTION("\011localhost", "\0\17" IN);
	assert_int_equal(asked(fd, &q, got, NULL), 4);
	q = QUESTION("\011localhost", A "\0\3");
	assert_int_equal(asked(fd, &q, got, NULL), 4);
	q = QUESTION("\011localhost", A IN);
	q.bytes[2] |= 2 << 3;
	assert_int_equal(asked(fd, &q, got, NULL), 4);
	q = QUESTION("", A IN);
	assert_int_equal(asked(fd, &q, got, NULL), 2);
	close(fd);
	all_gone();
}

/* Cut anywhere, too long, and pointing elsewhere: an answer that says so, or none. */
static void malformed(void **state)
{
	struct question q = QUESTION("\011localhost", A IN), r;
	unsigned char got[512], name[256];
	int fd = new_udp(AF_INET);
	size_t len, i;

	(void)state;
	for (len = 0; len < HEAD; len++)
		put(fd, &q, len);
	r = q;
	r.bytes[2] |= 0x80;
	put(fd, &r, r.len);
	assert_true(is_silent(fd));
	for (len = HEAD; len < q.len; len++) {
		put(fd, &q, len);
		assert_int_equal(hear(fd, &q, got, &i), 1);
		assert_int_equal(i, HEAD);
		/* nothing of it comes back */
		assert_int_equal(got[4] | got[5], 0);
	}
	for (i = 0; i < 3; i += 2) {
		r = q;
		r.bytes[5] = (unsigned char)i;
		assert_int_equal(asked(fd, &r, got, NULL), 1);
	}
	r = QUESTION("\300\014", A IN);
	assert_int_equal(asked(fd, &r, got, NULL), 1);
	r = QUESTION("\100aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", A IN);
	assert_int_equal(asked(fd, &r, got, NULL), 1);
	/* 255 bytes, of which the last one is none of a label's, and one more */
	for (i = 0; i < sizeof(name); i++)
		name[i] = i % 2 ? 'a' : 1;
	name[254] = 0;
	r = question(name, 255, A IN);
	assert_int_not_equal(asked(fd, &r, got, NULL), 1);
	name[254] = 1;
	r = question(name, 256, A IN);
	assert_int_equal(asked(fd, &r, got, NULL), 1);
	assert_int_equal(asked(fd, &q, got, NULL), 0);
	close(fd);
	all_gone();
}

/*
 * Who asks and goes is missed by nobody; others are answered: as long as the questions of those who
 * have gone are as many as may wait, that it failed for now, and who asks again then has his
 * answer.
 */
static void gone(void **state)
{
	const struct question q = QUESTION("\011localhost", A IN);
	const uint64_t end = unit_now_ns() + 60000000000ULL;
	unsigned char got[512];
	int fd, i, k, code;

	(void)state;
	for (i = 0; i < 20; i++) {
		fd = new_udp(AF_INET);
		for (k = 0; k < 40; k++)
			put(fd, &q, q.len);
		close(fd);
	}
	fd = new_udp(AF_INET);
	for (k = 0; k < 40; k++)
		put(fd, &q, q.len);
	for (k = 0; k < 40;) {
		code = hear(fd, &q, got, NULL);
		if (!code) {
			k++;
			continue;
		}
		assert_int_equal(code, FAILED_FOR_NOW);
		assert_true(unit_now_ns() < end);
		usleep(1000);
		put(fd, &q, q.len);
	}
	close(fd);
	all_gone();
}

/* Connected to it, and of the other family */
static void connected_to(void **state)
{
	const struct question q = QUESTION("\011localhost", A IN);
	struct rgate_socket_addr mapped = {
		.family = RGATE_SOCKET_INET6, .port = AGENT_DOMAIN_PORT,
		.addr = { [10] = 0xff, 0xff, 127, 0, 71, 53 },
	}, from;
	int fd = new_udp(AF_INET), six = new_udp(AF_INET6);
	struct agent_answer answer;
	unsigned char got[512];

	(void)state;
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .addr = name_server), 0);
	assert_int_equal(mark_of(fd), AGENT_MARK_CONNECTED);
	assert_int_equal(ASK(fd, &answer, NULL, .what = AGENT_PEER), 0);
	assert_memory_equal(&answer.addr, &name_server, sizeof(name_server));
	send_to(fd, 0, q.bytes, q.len);
	assert_int_equal(hear(fd, &q, got, NULL), 0);
	assert_int_equal(send_with(six, &mapped, q.bytes, q.len, 0), 0);
	assert_true(recv_from(six, &from, got, sizeof(got)) > (int)HEAD);
	assert_memory_equal(&from, &mapped, sizeof(from));
	/* Nothing of it is there for streams, so that nobody waits for one. */
	close(fd);
	fd = new_socket();
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .addr = name_server),
			 -ECONNREFUSED);
	close(fd);
	close(six);
	all_gone();
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(found, up, down),
	cmocka_unit_test_setup_teardown(several, up, down),
	cmocka_unit_test_setup_teardown(not_there, up, down),
	cmocka_unit_test_setup_teardown(malformed, up, down),
	cmocka_unit_test_setup_teardown(gone, up, down),
	cmocka_unit_test_setup_teardown(connected_to, up, down),
	{ .name = "found_own", .test_func = found, .setup_func = up_own, .teardown_func = down },
	{ .name = "connected_to_own", .test_func = connected_to, .setup_func = up_own,
	  .teardown_func = down },
};

UNIT_MAIN(tests)
