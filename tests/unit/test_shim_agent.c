// SPDX-License-Identifier: MIT OR GPL-2.0
/* Where the agent of a program is, which may ask before the library has begun; one that lies */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../lib/shim/shim.h"

/* A constructor of another library is earlier, and makes a socket: that is the agent's, too. */
static void early(void **state)
{
	(void)state;
	assert_int_equal(unsetenv(AGENT_ENV), 0);
	assert_false(shim_active());
	assert_int_equal(setenv(AGENT_ENV, "/run/agent/agent1", 1), 0);
	assert_true(shim_active());
	shim_begin(NULL);
	assert_true(shim_active());
}

/* A program of the same agent is a number, whatever it is. */
static void paths(void **state)
{
	static const uint64_t ids[] = { 0, 7, 9, 10, 99, 100, 4294967296, UINT64_MAX };
	struct sockaddr_un un;
	char path[64];
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(ids); i++) {
		snprintf(path, sizeof(path), "/run/agent/%llu", (unsigned long long)ids[i]);
		shim_path(ids[i], &un);
		assert_int_equal(un.sun_family, AF_UNIX);
		assert_string_equal(un.sun_path, path);
	}
}

/* ---- One that says anything ---- */

struct said {
	int listener;
	struct agent_answer answer;
	size_t len;
	unsigned int fds;
};

static void *say(void *arg)
{
	const struct said *s = arg;
	struct agent_ask ask;
	int fds[3] = { s->listener, s->listener, s->listener };
	int sock = accept(s->listener, NULL, NULL);
	struct iovec v = { .iov_base = (void *)(uintptr_t)&s->answer, .iov_len = s->len };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(fds))];
	} room = { .buf = { 0 } };
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };

	assert_int_equal(recv(sock, &ask, sizeof(ask), 0), sizeof(ask));
	if (s->fds) {
		mh.msg_control = room.buf;
		mh.msg_controllen = CMSG_SPACE(s->fds * sizeof(int));
		*CMSG_FIRSTHDR(&mh) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(s->fds * sizeof(int)) };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), fds, s->fds * sizeof(int));
	}
	assert_int_equal(sendmsg(sock, &mh, 0), s->len);
	close(sock);
	return NULL;
}

static unsigned int open_fds(void)
{
	unsigned int n = 0;
	int fd;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* What comes of a question that asks for a descriptor, of which none is left */
static int hears(struct said *s, int result, size_t len, unsigned int fds)
{
	const struct agent_ask ask = { .version = AGENT_VERSION, .what = AGENT_SOCKET };
	const unsigned int before = open_fds();
	struct agent_answer answer;
	pthread_t thread;
	int made = -1, ret;

	s->answer.result = result;
	s->len = len;
	s->fds = fds;
	assert_int_equal(pthread_create(&thread, NULL, say, s), 0);
	ret = shim_ask(&ask, -1, &answer, &made, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (!ret)
		assert_int_equal(close(made), 0);
	else
		assert_int_equal(made, -1);
	assert_int_equal(open_fds(), before);
	return ret;
}

static void hostile(void **state)
{
	struct said s = { .len = sizeof(s.answer) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const size_t all = sizeof(s.answer);
	char dir[] = "/tmp/ringgate-shim.XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/" AGENT_CONTROL, dir);
	shim_begin(un.sun_path);
	s.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s.listener, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(s.listener, 4), 0);
	assert_int_equal(hears(&s, 0, all, 1), 0);
	assert_int_equal(hears(&s, 0, all, 0), -EMFILE);
	assert_int_equal(hears(&s, -EACCES, all, 0), -EACCES);
	/* More than one, or one with an error, or with what is no answer */
	assert_int_equal(hears(&s, 0, all, 2), 0);
	assert_int_equal(hears(&s, 0, all, 3), 0);
	assert_int_equal(hears(&s, -EACCES, all, 1), -EACCES);
	assert_int_equal(hears(&s, 0, all - 1, 1), -ENETDOWN);
	assert_int_equal(hears(&s, 0, 0, 2), -ENETDOWN);
	/* It would be taken for a descriptor, or for no error at all. */
	assert_int_equal(hears(&s, 5, all, 0), -ENETDOWN);
	assert_int_equal(hears(&s, 1, all, 1), -ENETDOWN);
	assert_int_equal(hears(&s, -4096, all, 0), -ENETDOWN);
	assert_int_equal(hears(&s, INT32_MIN, all, 0), -ENETDOWN);
	close(s.listener);
	unlink(un.sun_path);
	rmdir(dir);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(early), cmocka_unit_test(paths), cmocka_unit_test(hostile),
};

UNIT_MAIN(tests)
