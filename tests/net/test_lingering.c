// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A client sends a descriptor whose last close takes long: that of a TCP connection which lingers,
 * as its other end takes nothing. Whoever closes it waits, and that must not be the daemon.
 */
#include "ringgated.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/rgate_session.h>

#include "fds.h"
#include "../../tools/ringgated/hurry.h"
#include "nodes.h"

#define LINGER_S	3600

static struct ringgated r;

/* A connection of 127.0.0.1 with itself, full; @other: its other end, which stays */
static int lingering(int *other)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);
	int sock, all = socket(AF_INET, SOCK_STREAM, 0);
	static char data[65536];

	assert_int_equal(bind(all, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(listen(all, 1), 0);
	assert_int_equal(getsockname(all, (struct sockaddr *)&sin, &len), 0);
	sock = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(sock, (struct sockaddr *)&sin, sizeof(sin)), 0);
	*other = accept(all, NULL, NULL);
	assert_true(*other >= 0);
	close(all);
	assert_int_equal(setsockopt(sock, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	assert_int_equal(fcntl(sock, F_SETFL, O_NONBLOCK), 0);
	while (write(sock, data, sizeof(data)) > 0)
		;
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fcntl(sock, F_SETFL, 0), 0);
	return sock;
}

static int dial(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	assert_int_equal(connect(sock, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return sock;
}

/* Its last descriptor to who listens at @path; false: that takes none */
static bool send_it(int sock, int fd)
{
	struct iovec iov = { .iov_base = (void *)"status", .iov_len = 6 };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	union rgate_fds_room room;
	bool sent;

	rgate_put_fds(&mh, &room, &fd, 1);
	sent = sendmsg(sock, &mh, MSG_NOSIGNAL) >= 0;
	/* refused, or the connection was closed */
	assert_true(sent || errno == EPERM || errno == EPIPE);
	hurry_close(fd);
	return sent;
}

static void session(void)
{
	const struct rgate_session_opts o = RGATE_OPTS(rgate_session_opts, .path = r.requests,
						       .where = RGATE_SESSION_DAEMON,
						       .timeout_ms = MS);
	struct rgate_session *s;

	assert_int_equal(rgate_session_open(&s, &o), 0);
	rgate_session_close(s);
}

static void requests(void **state)
{
	int sock, other;
	unsigned int i;

	(void)state;
	ringgated_start(&r, NULL, -1);
	for (i = 0; i < 3; i++) {
		sock = dial(r.requests);
		(void)send_it(sock, lingering(&other));
		/* read; and what nobody has read when its socket is closed */
		if (i)
			(void)send_it(sock, lingering(&other));
		if (i == 2)
			close(sock);
		session();
	}
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
}

static void control(void **state)
{
	int other;

	(void)state;
	ringgated_start(&r, NULL, -1);
	(void)send_it(dial(r.control), lingering(&other));
	assert_int_equal(ringgated_count(&r, "malformed"), 0);
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
}

/* Where the kernel takes them, as those before Linux 6.16 do */
static void hurried(void **state)
{
	int other, unread[2];
	uint64_t begun;

	(void)state;
	begun = unit_now_ns();
	hurry_close(lingering(&other));
	/* ... and by the close of what it was on its way through */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, unread), 0);
	assert_true(send_it(unread[0], lingering(&other)));
	assert_true(send_it(unread[0], lingering(&other)));
	hurry_close(unread[1]);
	/* or for as long as it lingers */
	assert_true(unit_now_ns() - begun < LINGER_S * 1000000000ULL);
}

static int up(void **state)
{
	(void)state;
	ringgated_make(&r);
	return 0;
}

static int down(void **state)
{
	(void)state;
	ringgated_free(&r);
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(hurried),
	cmocka_unit_test_setup_teardown(requests, up, down),
	cmocka_unit_test_setup_teardown(control, up, down),
};

int main(void)
{
	if (!ringgated_built()) {
		printf("1..0 # SKIP ringgated is not built\n");
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	return unit_run(__FILE__, tests, ARRAY_LEN(tests));
}
