// SPDX-License-Identifier: MIT OR GPL-2.0
/* Datagrams as a program of an agent has them: errors among threads, and parts of a message */
#include "unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../../lib/shim/shim.h"

#define ALL	65507U

static int ours, theirs;		/* the program's end; the agent's */
static unsigned int thefts;		/* messages that another thread takes when one is seen */

/* ---- What is behind the library ---- */

static ssize_t steals(int fd, struct msghdr *mh, int flags)
{
	struct agent_head head;
	ssize_t n = recvmsg(fd, mh, flags);

	for (; flags & MSG_PEEK && thefts; thefts--)
		assert_true(recv(fd, &head, sizeof(head), MSG_DONTWAIT) >= 0);
	return n;
}

void *shim_next(enum shim_call call)
{
	return call == SHIM_CALL_recvmsg ? (void *)steals : (void *)sendmsg;
}

enum shim_kind shim_kind(int fd, struct agent_name *name)
{
	(void)fd;
	(void)name;
	return SHIM_DATAGRAM;
}

bool shim_active(void)
{
	return true;
}

int shim_ask(const struct agent_ask *ask, int fd, struct agent_answer *answer, int *made,
	     bool cloexec)
{
	(void)ask;
	(void)fd;
	(void)answer;
	(void)made;
	(void)cloexec;
	return 0;
}

/* ---- The agent ---- */

static void gives(uint16_t family, uint32_t scope, const void *data, size_t len)
{
	struct agent_head head = { .addr = { .family = family, .scope = scope } };
	struct iovec v[2] = { { &head, sizeof(head) }, { (void *)(uintptr_t)data, len } };
	const struct msghdr mh = { .msg_iov = v, .msg_iovlen = 2 };

	assert_int_equal(sendmsg(theirs, &mh, 0), sizeof(head) + len);
}

static void fails_with(int error)
{
	gives(0, (uint32_t)error, NULL, 0);
}

static void is_given(const void *data, size_t len)
{
	static unsigned char got[sizeof(struct agent_head) + AGENT_DATAGRAM_MAX];

	assert_int_equal(recv(theirs, got, sizeof(got), MSG_DONTWAIT),
			 sizeof(struct agent_head) + len);
	assert_memory_equal(got + sizeof(struct agent_head), data, len);
}

static ssize_t get(void *buf, size_t len, int flags)
{
	struct iovec v = { buf, len };
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };

	return shim_datagram_recv(ours, &mh, flags | MSG_DONTWAIT);
}

static ssize_t put(const void *buf, size_t len)
{
	struct iovec v = { (void *)(uintptr_t)buf, len };
	const struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };

	return shim_datagram_send(ours, &mh, MSG_DONTWAIT);
}

/* ---- Errors ---- */

static void told_once(void **state)
{
	char byte;

	(void)state;
	fails_with(ECONNREFUSED);
	fails_with(EHOSTUNREACH);
	gives(AF_INET, 0, "x", 1);
	assert_int_equal(get(&byte, 1, MSG_PEEK), -ECONNREFUSED);
	assert_int_equal(get(&byte, 1, 0), -EHOSTUNREACH);
	assert_int_equal(get(&byte, 1, MSG_PEEK), 1);
	assert_int_equal(get(&byte, 1, 0), 1);
	assert_int_equal(get(&byte, 1, MSG_PEEK), -EAGAIN);
	fails_with(EHOSTUNREACH);
	assert_int_equal(shim_datagram_error(ours), EHOSTUNREACH);
	assert_int_equal(shim_datagram_error(ours), 0);
	/* to who sends, too, who has not sent it then */
	fails_with(ECONNREFUSED);
	assert_int_equal(put("y", 1), -ECONNREFUSED);
	assert_int_equal(recv(theirs, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(put("z", 1), 1);
	is_given("z", 1);
}

/* Another thread has taken the one that was seen: it is told there, and the next one here. */
static void taken_by_another(void **state)
{
	char byte = 0;

	(void)state;
	fails_with(ECONNREFUSED);
	fails_with(EHOSTUNREACH);
	thefts = 1;
	assert_int_equal(get(&byte, 1, MSG_PEEK), -EHOSTUNREACH);
	assert_int_equal(get(&byte, 1, 0), -EAGAIN);
	/* or there is none any more */
	fails_with(ECONNREFUSED);
	gives(AF_INET, 0, "x", 1);
	thefts = 1;
	assert_int_equal(get(&byte, 1, MSG_PEEK), 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(get(&byte, 1, 0), 1);
	fails_with(ECONNREFUSED);
	thefts = 1;
	assert_int_equal(get(&byte, 1, MSG_PEEK), -EAGAIN);
}

/* ---- As many parts as the kernel takes ---- */

static unsigned char data[ALL], got[ALL];
static struct iovec parts[UIO_MAXIOV + 1];

/* @shape: how long the first ones are; the last one has the rest */
static void cut(unsigned char *of, size_t len, unsigned int n, unsigned int shape)
{
	unsigned int i;
	size_t at = 0, part;

	for (i = 0; i < n; i++) {
		part = shape == 0 ? len / n : shape == 1 ? (i % 2 ? 0 : 2 * (len / n)) :
		       shape == 2 ? (i ? 0 : len) : i % 100 / 2;
		part = i == n - 1 || part > len - at ? len - at : part;
		parts[i] = (struct iovec){ part ? of + at : NULL, part };
		at += part;
	}
	assert_int_equal(at, len);
}

static void in_parts(unsigned int n, unsigned int shape, size_t len, size_t room)
{
	struct msghdr mh = { .msg_iov = parts, .msg_iovlen = n };

	cut(data, len, n, shape);
	assert_int_equal(shim_datagram_send(ours, &mh, 0), len);
	is_given(data, len);
	gives(AF_INET, 0, data, len);
	memset(got, 0, sizeof(got));
	cut(got, room, n, shape);
	mh.msg_flags = 0;
	assert_int_equal(shim_datagram_recv(ours, &mh, MSG_DONTWAIT), len < room ? len : room);
	assert_int_equal(mh.msg_flags, len > room ? MSG_TRUNC : 0);
	assert_memory_equal(got, data, len < room ? len : room);
	for (; len < room; len++)
		assert_int_equal(got[len], 0);
}

static void many_parts(void **state)
{
	static const size_t lens[] = { 0, 1, 900, 5000, 65000, ALL };
	struct msghdr mh = { .msg_iov = parts, .msg_iovlen = UIO_MAXIOV + 1 };
	const int room = 1 << 20;
	unsigned int shape, i, j;
	size_t k;

	(void)state;
	assert_int_equal(setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	assert_int_equal(setsockopt(theirs, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	for (k = 0; k < ALL; k++)
		data[k] = (unsigned char)(1 + k % 251);
	for (shape = 0; shape < 4; shape++)
		for (i = 0; i < ARRAY_LEN(lens); i++)
			for (j = 0; j < ARRAY_LEN(lens); j++) {
				in_parts(UIO_MAXIOV, shape, lens[i], lens[j]);
				in_parts(UIO_MAXIOV - 1, shape, lens[i], lens[j]);
			}
	cut(data, 5000, UIO_MAXIOV + 1, 0);
	assert_int_equal(shim_datagram_send(ours, &mh, 0), -EMSGSIZE);
	assert_int_equal(shim_datagram_recv(ours, &mh, MSG_DONTWAIT), -EMSGSIZE);
}

/* What lies behind all that can come is nobody's */
static void more_room(void **state)
{
	struct msghdr mh = { .msg_iov = parts, .msg_iovlen = UIO_MAXIOV };
	unsigned int i;

	(void)state;
	for (i = 0; i < UIO_MAXIOV; i++)
		parts[i] = (struct iovec){ got, sizeof(got) };
	gives(AF_INET, 0, "hello", 5);
	assert_int_equal(shim_datagram_recv(ours, &mh, MSG_DONTWAIT), 5);
	assert_memory_equal(got, "hello", 5);
	assert_int_equal(shim_datagram_send(ours, &mh, 0), -EMSGSIZE);
}

static int up(void **state)
{
	int pair[2];
	const int mark = AGENT_MARK_CONNECTED;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ours = pair[0];
	theirs = pair[1];
	thefts = 0;
	return setsockopt(ours, SOL_SOCKET, SO_PRIORITY, &mark, sizeof(mark));
}

static int down(void **state)
{
	(void)state;
	close(ours);
	close(theirs);
	return 0;
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, up, down)

/* What is no error that there is, is one all the same: neither bytes nor success */
static void lies(void **state)
{
	static const uint32_t none[] = { 0, 4096, 0x80000000U, 0xffffffffU };
	char buf[4];
	struct iovec v = { .iov_base = buf, .iov_len = sizeof(buf) };
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(none); i++) {
		gives(0, none[i], "x", 1);
		assert_int_equal(shim_datagram_recv(ours, &mh, MSG_DONTWAIT), -EPROTO);
		gives(0, none[i], "x", 1);
		assert_int_equal(shim_datagram_recv(ours, &mh, MSG_DONTWAIT | MSG_PEEK), -EPROTO);
		gives(0, none[i], NULL, 0);
		assert_int_equal(shim_datagram_error(ours), EPROTO);
	}
	assert_int_equal(shim_datagram_recv(ours, &mh, MSG_DONTWAIT), -EAGAIN);
}

static const struct CMUnitTest tests[] = {
	BED(lies), BED(told_once), BED(taken_by_another), BED(many_parts), BED(more_room),
};

UNIT_MAIN_ALONE(tests)
