// SPDX-License-Identifier: MIT OR GPL-2.0
/* What all parts of the library stand on: sized structures, descriptors, clocks, threads. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "fds.h"
#include "opts.h"
#include "own_cgroup.h"
#include "thread.h"

struct sized {
	size_t sz;
	uint32_t a, b;
};

/* To the caller's structure, which is as long as it says */
static void told(void **state)
{
	static const struct sized from = { .sz = 99, .a = 1, .b = 2 };
	struct {
		struct sized s;
		uint32_t later[2];
	} to;

	(void)state;
	memset(&to, 0xff, sizeof(to));
	to.s.sz = sizeof(size_t) - 1;
	assert_int_equal(rgate_info_copy(&to, &from, sizeof(from)), -EINVAL);
	assert_int_equal(to.s.a, UINT32_MAX);
	to.s.sz = sizeof(size_t);
	assert_int_equal(rgate_info_copy(&to, &from, sizeof(from)), 0);
	assert_int_equal(to.s.sz, sizeof(size_t));
	assert_int_equal(to.s.a, UINT32_MAX);
	to.s.sz = offsetof(struct sized, b);
	assert_int_equal(rgate_info_copy(&to, &from, sizeof(from)), 0);
	assert_int_equal(to.s.a, 1);
	assert_int_equal(to.s.b, UINT32_MAX);
	to.s.sz = sizeof(from);
	assert_int_equal(rgate_info_copy(&to, &from, sizeof(from)), 0);
	assert_int_equal(to.s.b, 2);
	assert_int_equal(to.later[0], UINT32_MAX);
	to.s.sz = sizeof(from) + sizeof(to.later[0]);
	assert_int_equal(rgate_info_copy(&to, &from, sizeof(from)), 0);
	assert_int_equal(to.s.sz, sizeof(from) + sizeof(to.later[0]));
	assert_int_equal(to.later[0], 0);
	assert_int_equal(to.later[1], UINT32_MAX);
}

/* From a caller's, which may be older or newer */
static void asked(void **state)
{
	struct {
		struct sized s;
		uint8_t later[4];
	} from = { .s = { sizeof(from), 1, 2 } };
	struct sized to;

	(void)state;
	memset(&to, 0xff, sizeof(to));
	assert_int_equal(rgate_opts_copy(&to, sizeof(to), NULL), 0);
	assert_int_equal(to.sz + to.a + to.b, 0);
	assert_int_equal(rgate_opts_copy(&to, sizeof(to), &from), 0);
	assert_int_equal(to.a, 1);
	assert_int_equal(to.b, 2);
	from.later[3] = 1;
	assert_int_equal(rgate_opts_copy(&to, sizeof(to), &from), -E2BIG);
	from.later[3] = 0;
	from.later[0] = 1;
	assert_int_equal(rgate_opts_copy(&to, sizeof(to), &from), -E2BIG);
	from.s.sz = sizeof(from.s);
	assert_int_equal(rgate_opts_copy(&to, sizeof(to), &from), 0);
	from.s.sz = offsetof(struct sized, b);
	memset(&to, 0xff, sizeof(to));
	assert_int_equal(rgate_opts_copy(&to, sizeof(to), &from), 0);
	assert_int_equal(to.a, 1);
	assert_int_equal(to.b, 0);
	from.s.sz = sizeof(size_t);
	assert_int_equal(rgate_opts_copy(&to, sizeof(to), &from), 0);
	assert_int_equal(to.a, 0);
	from.s.sz = sizeof(size_t) - 1;
	assert_int_equal(rgate_opts_copy(&to, sizeof(to), &from), -EINVAL);
}

/* Of all that came as many as are wanted are kept; what is no descriptor is skipped. */
static void descriptors(void **state)
{
	char buf[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(3 * sizeof(int))]
		__attribute__((aligned(8))) = "";
	struct msghdr msg = { .msg_control = buf, .msg_controllen = sizeof(buf) };
	const unsigned int before = unit_entries("/proc/self/fd");
	int sent[3], got[3];
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	unsigned int i, most;

	(void)state;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS + 1;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	c = CMSG_NXTHDR(&msg, c);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(sent));
	for (most = 0; most <= 3; most++) {
		for (i = 0; i < 3; i++)
			sent[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		memcpy(CMSG_DATA(c), sent, sizeof(sent));
		assert_int_equal(rgate_take_fds(&msg, got, most), most);
		assert_int_equal(unit_entries("/proc/self/fd"), before + most);
		for (i = 0; i < most; i++) {
			assert_int_equal(got[i], sent[i]);
			close(got[i]);
		}
	}
	c->cmsg_level = SOL_SOCKET + 1;
	assert_int_equal(rgate_take_fds(&msg, got, 3), 0);
	msg.msg_controllen = 0;
	assert_int_equal(rgate_take_fds(&msg, got, 3), 0);
}

static void clocks(void **state)
{
	struct timespec ts;
	uint64_t now;

	(void)state;
	assert_int_equal(rgate_clock_id(RGATE_CLOCK_TAI), CLOCK_TAI);
	assert_int_equal(rgate_clock_id(RGATE_CLOCK_REALTIME), CLOCK_REALTIME);
	assert_int_equal(rgate_clock_id(RGATE_CLOCK_MONOTONIC), CLOCK_MONOTONIC);
	assert_int_equal(rgate_clock_id(99), CLOCK_MONOTONIC);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = rgate_clock_now(CLOCK_MONOTONIC);
	assert_true(now >= (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec);
	assert_true(rgate_clock_now(CLOCK_MONOTONIC) >= now);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	assert_true(now <= (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec);
	ts = rgate_clock_timespec(now);
	assert_int_equal((uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec, now);
	ts = rgate_clock_timespec(7000000000);
	assert_int_equal(ts.tv_sec, 7);
	assert_int_equal(ts.tv_nsec, 0);
	ts = rgate_clock_timespec(8999999999);
	assert_int_equal(ts.tv_sec, 8);
	assert_int_equal(ts.tv_nsec, 999999999);
}

static void *own_mask(void *arg)
{
	pthread_sigmask(SIG_SETMASK, NULL, arg);
	return arg;
}

/* It takes no signal; who starts it takes those that he took. */
static void threads(void **state)
{
	static const int some[] = { SIGTERM, SIGINT, SIGCHLD, SIGUSR1, SIGALRM };
	sigset_t set, was, now, of_thread;
	pthread_t thread;
	void *ret;
	size_t i;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &set, &was);
	assert_int_equal(rgate_thread_start(&thread, NULL, own_mask, &of_thread), 0);
	pthread_join(thread, &ret);
	assert_ptr_equal(ret, &of_thread);
	pthread_sigmask(SIG_SETMASK, &was, &now);
	for (i = 0; i < ARRAY_LEN(some); i++) {
		assert_true(sigismember(&of_thread, some[i]));
		assert_int_equal(sigismember(&now, some[i]), some[i] == SIGUSR1);
	}
}

static void says(const char *call, int err, const char *part)
{
	assert_non_null(strstr(rgate_strerror(call, -err), part));
	assert_ptr_equal(rgate_strerror(call, -err), rgate_strerror(call, err));
}

static void words(void **state)
{
	(void)state;
	assert_string_equal(rgate_strerror(NULL, 0), "success");
	assert_string_equal(rgate_strerror(NULL, -EBUSY), "in use");
	assert_string_equal(rgate_strerror(NULL, EBUSY), "in use");
	assert_string_equal(rgate_strerror(NULL, INT_MIN), "unknown error");
	assert_non_null(strstr(rgate_strerror(NULL, -EAFNOSUPPORT), "neither IPv4 nor IPv6"));
	assert_non_null(strstr(rgate_strerror(NULL, -EXDEV), "unexpected error"));
	assert_non_null(strstr(rgate_strerror(NULL, 1000000), "unexpected error"));
	/* What the call has of its own, what those of its object have, what others lend it */
	says("rgate_ring_open", ENOENT, "module is not loaded");
	says("rgate_ring_recv", EPIPE, "socket is closed");
	says("rgate_ctl_open", ENOENT, "module is not loaded");
	says("rgate_ctl_join", ENOENT, "ring is gone");
	says("rgate_ctl_attach", EPERM, "needs CAP_NET_ADMIN:");
	says("rgate_ctl_attach:transmit", EPERM, "CAP_NET_ADMIN and CAP_NET_RAW");
	says("rgate_ctl_attach:transmit", ESTALE, "that number now");
	says("rgate_ring_attach", ENODEV, "ip link");
	says("rgate_pool_alloc", ENOBUFS, "pool is exhausted: ");
	says("rgate_pool_create", ENODEV, "RDMA");
	says("rgate_barrier_open", EUSERS, "all its members");
	says("rgate_barrier_open", EDQUOT, "requests policy");
	says("rgate_barrier_open", EPROTO, "no ringgated");
	says("rgate_session_lend", EPIPE, "has ended");
	says("rgate_hub_send", EREMOTEIO, "refused it");
	/* Of an object: its own first, then that of one of its calls; not of half a name */
	says("rgate_ring_", ENOENT, "module is not loaded");
	says("rgate_session_", EPIPE, "has ended");
	says("rgate_session_", ECONNREFUSED, "no ringgated runs");
	says("rgate_ring_open_remote", ENOENT, "no ringgated runs");
	assert_ptr_equal(rgate_strerror("rgate_ring_open_memfd", ENOENT),
			 rgate_strerror(NULL, ENOENT));
	says("rgate_sockets_next", EPIPE, "has ended");
	assert_ptr_equal(rgate_strerror("rgate_ring_ope", ENOENT), rgate_strerror(NULL, ENOENT));
	assert_ptr_equal(rgate_strerror("rgate_ring_open", EFBIG), rgate_strerror(NULL, EFBIG));
	/* Not known: what it means in general */
	assert_ptr_equal(rgate_strerror("", ENOENT), rgate_strerror(NULL, ENOENT));
	assert_ptr_equal(rgate_strerror("fork", -ENOENT), rgate_strerror(NULL, ENOENT));
	assert_ptr_equal(rgate_strerror("rgate_ring_open", 0), rgate_strerror(NULL, 0));
	assert_string_equal(rgate_strerror("rgate_ring_open", INT_MIN), "unknown error");
	assert_non_null(strstr(rgate_strerror("rgate_ring_open", INT_MAX), "unexpected error"));
}

static const char *mounts;	/* the file that says what is mounted; NULL: the kernel's */

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

FILE *__wrap_fopen(const char *path, const char *mode)
{
	return __real_fopen(mounts && strstr(path, "mountinfo") ? mounts : path, mode);
}

static const char *say_mounts(char *path, const char *text)
{
	const int fd = mkstemp(strcpy(path, "/tmp/rgate-mounts.XXXXXX"));

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return path;
}

/* This process's group lies where such groups are mounted, or nowhere. */
static void own_group(void **state)
{
	char file[32], path[512], at[512];
	const size_t len = strlen("/some/where");
	size_t root = 0;

	(void)state;
	mounts = "/dev/null";
	assert_int_equal(rgate_own_cgroup(path, sizeof(path), NULL), -ENOENT);
	mounts = "/nowhere/at/all";
	assert_int_equal(rgate_own_cgroup(path, sizeof(path), NULL), -ENOENT);
	mounts = say_mounts(file, "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
			    "2 1 0:2 / /old rw - cgroup none rw\n"
			    "3 1 0:3 / /some/where rw,nosuid - cgroup2 none rw\n"
			    "4 1 0:4 / /another rw - cgroup2 none rw\n");
	assert_int_equal(rgate_own_cgroup(path, sizeof(path), &root), 0);
	assert_int_equal(strncmp(path, "/some/where/", len + 1), 0);
	assert_int_equal(root, len);
	assert_int_equal(rgate_own_cgroup(at, strlen(path), NULL), -ENAMETOOLONG);
	assert_int_equal(rgate_own_cgroup(at, strlen(path) + 1, NULL), 0);
	unlink(file);
	mounts = NULL;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(own_group),
	cmocka_unit_test(told), cmocka_unit_test(asked), cmocka_unit_test(descriptors),
	cmocka_unit_test(clocks), cmocka_unit_test(threads), cmocka_unit_test(words),
};

UNIT_MAIN(tests)
