// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Messages at a request plane's socket: what was sent comes, with its descriptors; and what
 * is more than there can be is refused as a whole, with nothing of it left open.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire.h"

#define MORE	(RGATE_FDS + 2)

static int sv[2];

static int up(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv);
}

static int down(void **state)
{
	(void)state;
	close(sv[0]);
	close(sv[1]);
	return 0;
}

/* As somebody who does not know the limit: @n descriptors, all of the same */
static void send_many(unsigned int n)
{
	char room[CMSG_SPACE(MORE * sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = "x", .iov_len = 1 };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			     .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
	unsigned int i;

	assert_true(n <= MORE);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (i = 0; i < n; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &sv[0], sizeof(int));
	assert_int_equal(sendmsg(sv[0], &mh, 0), 1);
}

static void all_that_fits(void **state)
{
	int own[RGATE_FDS + 1], fds[RGATE_FDS + 1];
	unsigned int i, n = 99, open;
	char got[16];

	(void)state;
	for (i = 0; i < RGATE_FDS + 1; i++)
		own[i] = sv[0];
	open = unit_entries("/proc/self/fd");
	assert_int_equal(rgate_wire_send(sv[0], "hello", 5, own, RGATE_FDS, 0), 0);
	memset(got, 'x', sizeof(got));
	assert_int_equal(rgate_wire_recv(sv[1], got, sizeof(got), fds, &n, 0), 5);
	assert_int_equal(n, RGATE_FDS);
	assert_memory_equal(got, "hello\0\0\0\0\0\0\0\0\0\0", sizeof(got));
	for (i = 0; i < n; i++) {
		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		close(fds[i]);
	}
	/* none, by somebody who expects some, and by somebody who does not */
	assert_int_equal(rgate_wire_send(sv[0], "hello", 5, NULL, 0, 0), 0);
	assert_int_equal(rgate_wire_recv(sv[1], got, sizeof(got), fds, &n, 0), 5);
	assert_int_equal(n, 0);
	assert_int_equal(rgate_wire_send(sv[0], "hello", 5, NULL, 0, 0), 0);
	assert_int_equal(rgate_wire_recv(sv[1], got, sizeof(got), NULL, NULL, 0), 5);
	assert_int_equal(rgate_wire_send(sv[0], "hello", 5, own, RGATE_FDS + 1, 0), -EINVAL);
	assert_int_equal(rgate_wire_recv(sv[1], got, sizeof(got), NULL, NULL, MSG_DONTWAIT),
			 -EAGAIN);
	assert_int_equal(unit_entries("/proc/self/fd"), open);
}

static void too_many(void **state)
{
	const unsigned int open = unit_entries("/proc/self/fd");
	unsigned int more, n;
	int fds[RGATE_FDS];
	char got[16];

	(void)state;
	for (more = RGATE_FDS + 1; more <= MORE; more++) {
		send_many(more);
		n = 99;
		assert_int_equal(rgate_wire_recv(sv[1], got, sizeof(got), fds, &n, 0), -EPROTO);
		assert_int_equal(n, 0);
		assert_int_equal(unit_entries("/proc/self/fd"), open);
	}
	/* Who takes none gets none, and is told that there were some. */
	send_many(1);
	assert_int_equal(rgate_wire_recv(sv[1], got, sizeof(got), NULL, NULL, 0), -EPROTO);
	assert_int_equal(unit_entries("/proc/self/fd"), open);
	/* what comes next is as good as ever */
	send_many(1);
	assert_int_equal(rgate_wire_recv(sv[1], got, sizeof(got), fds, &n, 0), 1);
	assert_int_equal(n, 1);
	close(fds[0]);
}

static void ends(void **state)
{
	unsigned int n;
	int fds[RGATE_FDS];
	char got[16];

	(void)state;
	assert_int_equal(rgate_wire_recv(sv[1], got, sizeof(got), fds, &n, MSG_DONTWAIT), -EAGAIN);
	assert_int_equal(shutdown(sv[0], SHUT_WR), 0);
	assert_int_equal(rgate_wire_recv(sv[1], got, sizeof(got), fds, &n, 0), -EPIPE);
	assert_int_equal(rgate_wire_send(sv[0], "x", 1, NULL, 0, 0), -EPIPE);
	assert_int_equal(rgate_wire_recv(-1, got, sizeof(got), fds, &n, 0), -EBADF);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)
static const struct CMUnitTest tests[] = { TEST(all_that_fits), TEST(too_many), TEST(ends) };

UNIT_MAIN_ALONE(tests)
