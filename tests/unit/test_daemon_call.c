// SPDX-License-Identifier: MIT OR GPL-2.0
/* What asks a daemon, against one of the test's own: requests to the byte, and each answer. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ringgate/rgate_daemon.h>
#include <ringgate/rgate_inlet.h>

#define CUT	"\001"		/* not a word: the connection ends */
#define EMPTY	"\002"		/* a message without a byte */
#define RING	"\003"		/* "ok " and a ring behind it */

/* It takes one client, and answers so many requests. */
static struct {
	char path[64];
	int listener;
	pthread_t thread;
	const char *const *answers;
	struct rgate_ring *ring;
	char asked[4][5000];
	unsigned int n;
} d;

static void *serve(void *arg)
{
	int sock = accept(d.listener, NULL, NULL);
	const char *answer;
	ssize_t got;

	(void)arg;
	unit_require(sock >= 0);
	for (; (answer = d.answers[d.n]); d.n++) {
		got = recv(sock, d.asked[d.n], sizeof(d.asked[0]) - 1, 0);
		if (got <= 0)
			break;
		if (*answer == *CUT)
			continue;
		if (*answer == *RING) {
			unit_require(send(sock, "ok ", 3, 0) == 3);
			unit_require(!rgate_ring_send(d.ring, sock));
		} else {
			got = *answer == *EMPTY ? 0 : (ssize_t)strlen(answer);
			unit_require(send(sock, answer, (size_t)got, MSG_NOSIGNAL) == got);
		}
	}
	close(sock);
	return NULL;
}

static void begin(const char *const *answers)
{
	d.answers = answers;
	d.n = 0;
	memset(d.asked, 0, sizeof(d.asked));
	assert_int_equal(pthread_create(&d.thread, NULL, serve, NULL), 0);
}

static void end(void)
{
	assert_int_equal(pthread_join(d.thread, NULL), 0);
}

static int up(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	(void)state;
	snprintf(d.path, sizeof(d.path), "/tmp/ringgate-unit.%d", (int)getpid());
	strcpy(sun.sun_path, d.path);
	d.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return d.listener < 0 || bind(d.listener, (struct sockaddr *)&sun, sizeof(sun)) ||
	       listen(d.listener, 4);
}

static int down(void **state)
{
	(void)state;
	close(d.listener);
	return unlink(d.path);
}

/* The one request "what" gets @reply: what comes of it, and the text of it */
static void call(const char *reply, int ret, const char *text)
{
	char answer[64];

	begin((const char *const[]){ reply, NULL });
	memset(answer, 'x', sizeof(answer));
	assert_int_equal(rgate_daemon_call(d.path, "what", answer, sizeof(answer)), ret);
	end();
	assert_string_equal(answer, text);
	assert_string_equal(d.asked[0], "what");
}

#define X20	"xxxxxxxxxxxxxxxxxxxx"

static void answers(void **state)
{
	(void)state;
	call("ok ", 0, "");
	call("ok a word", 0, "a word");
	call("err 2 no such thing", -2, "no such thing");
	call("err 1 ", -1, "");
	call("err 4095 last", -4095, "last");
	/* what is none */
	call("err 0 none", -EPROTO, "err 0 none");
	call("err 4096 none", -EPROTO, "err 4096 none");
	call("err -1 none", -EPROTO, "err -1 none");
	call("err 1", -EPROTO, "err 1");
	call("err x", -EPROTO, "err x");
	call("ok", -EPROTO, "ok");
	call("yes ", -EPROTO, "yes ");
	call("yes 5 x", -EPROTO, "yes 5 x");
	call(CUT, -ECONNRESET, "");
	call(EMPTY, -ECONNRESET, "");
	/* as long as there is room, and one more */
	call("ok " X20 X20 X20, 0, X20 X20 X20);
	call("ok " X20 X20 X20 "y", -EMSGSIZE, "ok " X20 X20 X20);
}

static void arguments(void **state)
{
	const unsigned int fds = unit_entries("/proc/self/fd");
	static char longest[4098], path[120];
	char answer[64] = "x";
	struct rlimit files, none;

	(void)state;
	memset(longest, 'r', sizeof(longest) - 1);
	memset(path, '/', sizeof(path) - 1);
	assert_int_equal(rgate_daemon_call(d.path, "what", NULL, 64), -EINVAL);
	assert_int_equal(rgate_daemon_call(d.path, "what", answer, 63), -EINVAL);
	assert_string_equal(answer, "x");
	assert_int_equal(rgate_daemon_call("/no/such", "what", answer, sizeof(answer)), -ENOENT);
	assert_string_equal(answer, "");
	assert_int_equal(rgate_daemon_call(path, "what", answer, sizeof(answer)), -ENAMETOOLONG);
	path[108] = '\0';
	assert_int_equal(rgate_daemon_call(path, "what", answer, sizeof(answer)), -ENAMETOOLONG);
	/* this one would fit, and is a directory */
	path[107] = '\0';
	assert_int_equal(rgate_daemon_call(path, "what", answer, sizeof(answer)), -ECONNREFUSED);
	/* no descriptor is left */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = (struct rlimit){ 0, files.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(rgate_daemon_call(d.path, "what", answer, sizeof(answer)), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	/* a request that is longer than any is not sent */
	begin((const char *const[]){ "ok ", NULL });
	assert_int_equal(rgate_daemon_call(d.path, longest, answer, sizeof(answer)), -EMSGSIZE);
	end();
	assert_string_equal(d.asked[0], "");
	begin((const char *const[]){ "ok ", NULL });
	assert_int_equal(rgate_daemon_call(d.path, longest + 1, answer, sizeof(answer)), 0);
	end();
	assert_string_equal(d.asked[0], longest + 1);
	/* where it is said in the environment */
	setenv("RGATE_SOCKET", d.path, 1);
	begin((const char *const[]){ "ok here", NULL });
	assert_int_equal(rgate_daemon_call(NULL, "what", answer, sizeof(answer)), 0);
	end();
	assert_string_equal(answer, "here");
	unsetenv("RGATE_SOCKET");
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
}

static void rings(void **state)
{
	const unsigned int fds = unit_entries("/proc/self/fd");
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .device = d.path, .slots = 64,
		.slot_size = 256, .policy = RGATE_POLICY_OVERWRITE, .clock = 1, .name = "web");
	char why[64], name[RGATE_DEVICE_NAME];
	struct rgate_ring *ring;

	(void)state;
	d.ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	begin((const char *const[]){ RING, "ok filled", "ok waits", "err 90 too small", NULL });
	assert_int_equal(rgate_ring_open_remote(&ring, &o), 0);
	snprintf(why, sizeof(why), "ring-open 64 256 %u 1 web", RGATE_POLICY_OVERWRITE);
	assert_int_equal(rgate_ring_remote_state(ring, NULL, 64), -EINVAL);
	assert_int_equal(rgate_ring_remote_state(ring, why, 63), -EINVAL);
	assert_int_equal(rgate_ring_remote_state(ring, why, sizeof(why)), 1);
	assert_string_equal(why, "");
	assert_int_equal(rgate_ring_remote_state(ring, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	assert_int_equal(rgate_ring_remote_state(ring, why, sizeof(why)), -90);
	assert_string_equal(why, "too small");
	end();
	/* the daemon is gone */
	assert_int_equal(rgate_ring_remote_state(ring, why, sizeof(why)), -ECONNRESET);
	rgate_ring_close(ring);
	snprintf(why, sizeof(why), "ring-open 64 256 %u 1 web", RGATE_POLICY_OVERWRITE);
	assert_string_equal(d.asked[0], why);
	assert_string_equal(d.asked[1], "ring-state");
	/* devices of the gateway */
	o.name = NULL;
	begin((const char *const[]){ RING, "ok eth0", "ok ", "err 19 none", NULL });
	assert_int_equal(rgate_ring_open_remote(&ring, &o), 0);
	assert_int_equal(rgate_ring_remote_device(ring, 7, name), 0);
	assert_string_equal(name, "eth0");
	assert_int_equal(rgate_ring_remote_device(ring, 8, name), -EPROTO);
	assert_string_equal(name, "");
	assert_int_equal(rgate_ring_remote_device(ring, 9, name), -19);
	end();
	rgate_ring_close(ring);
	snprintf(why, sizeof(why), "ring-open 64 256 %u 1 ", RGATE_POLICY_OVERWRITE);
	assert_string_equal(d.asked[0], why);
	assert_string_equal(d.asked[1], "ring-device 7");
	/* one that is as long as a name may be, and one that is longer */
	begin((const char *const[]){ RING, "ok fifteen-letters", "ok sixteen--letters", NULL });
	assert_int_equal(rgate_ring_open_remote(&ring, &o), 0);
	assert_int_equal(rgate_ring_remote_device(ring, 7, name), 0);
	assert_string_equal(name, "fifteen-letters");
	assert_int_equal(rgate_ring_remote_device(ring, 7, name), -EPROTO);
	assert_string_equal(name, "");
	end();
	rgate_ring_close(ring);
	rgate_ring_close(d.ring);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
}

static void no_rings(void **state)
{
	const unsigned int fds = unit_entries("/proc/self/fd");
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .device = d.path, .slots = 64);
	struct rgate_ring *ring;
	char why[64];

	(void)state;
	begin((const char *const[]){ "err 12 no memory", NULL });
	assert_int_equal(rgate_ring_open_remote(&ring, &o), -12);
	end();
	/* nothing behind the word */
	begin((const char *const[]){ "ok ", NULL });
	assert_true(rgate_ring_open_remote(&ring, &o) < 0);
	end();
	o.device = "/no/such";
	assert_int_equal(rgate_ring_open_remote(&ring, &o), -ENOENT);
	/* nobody is asked for options of no shape */
	o.sz = 3;
	assert_int_equal(rgate_ring_open_remote(&ring, &o), -EINVAL);
	/* one of this machine has nobody to ask */
	ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	assert_int_equal(rgate_ring_remote_state(ring, why, sizeof(why)), -EINVAL);
	assert_int_equal(rgate_ring_remote_device(ring, 1, why), -EINVAL);
	rgate_ring_close(ring);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)
static const struct CMUnitTest tests[] = {
	TEST(answers),
	TEST(arguments),
	TEST(rings),
	TEST(no_rings),
};

UNIT_MAIN(tests)
