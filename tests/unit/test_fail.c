// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What needs memory or descriptors is refused each of them in turn: every time
 * there is a proper error, nothing leaks, and the next try succeeds.
 */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Each returns 0 or -errno, and undoes what it did. */

static int make_ring(void)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 64,
					      .slot_size = 256);
	struct rgate_ring *ring, *d;
	int err = rgate_ring_open_memfd(&ring, &o);

	if (err)
		return err;
	err = rgate_ring_dup(&d, ring);
	if (!err)
		rgate_ring_close(d);
	if (!err)
		err = rgate_ring_resize(ring, 128, 256);
	rgate_ring_close(ring);
	return err;
}

static int pass_ring(void)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 64,
					      .slot_size = 256);
	struct rgate_ring *ring, *far;
	int sv[2], err = rgate_ring_open_memfd(&ring, &o);

	if (err)
		return err;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv)) {
		err = -errno;
		rgate_ring_close(ring);
		return err;
	}
	err = rgate_ring_send(ring, sv[0]);
	if (!err)
		err = rgate_ring_recv(&far, sv[1]);
	if (!err)
		rgate_ring_close(far);
	close(sv[0]);
	close(sv[1]);
	rgate_ring_close(ring);
	/* descriptors that find no place are cut off by the kernel */
	return err == -EPROTO ? -EMFILE : err;
}

static int make_source(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 64,
					      .slot_size = 256);
	struct rgate_source *src;
	struct rgate_ring *ring;
	int err = rgate_ring_open_memfd(&ring, &o);

	if (err)
		return err;
	err = rgate_source_udp(&src, &ring, 1, (struct sockaddr *)&a, sizeof(a), NULL);
	if (!err)
		err = rgate_source_stop(src);
	rgate_ring_close(ring);
	return err;
}

static int (*const makers[])(void) = { make_ring, pass_ring, make_source };

static void descriptors(void **state)
{
	struct rlimit was, lim;
	unsigned int before, i;

	(void)state;
	if (unit_slow())
		skip();	/* valgrind has descriptors of its own */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	before = open_fds();
	for (i = 0; i < ARRAY_LEN(makers); i++) {
		unsigned int n, failed = 0;
		int err = -EMFILE;

		for (n = 0; err; n++) {
			lim = was;
			lim.rlim_cur = before - 3 + n;
			assert_int_equal(setrlimit(RLIMIT_NOFILE, &lim), 0);
			err = makers[i]();
			assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
			assert_int_equal(open_fds(), before);
			if (err)
				assert_int_equal(err, -EMFILE);
			failed += err != 0;
			assert_true(n < 64);
		}
		assert_true(failed >= 2);
	}
}

static void address_space(void **state)
{
	static const struct rgate_ring_opts huge = {
		.sz = sizeof(huge),
		.slots = RGATE_SLOTS_MAX,
		.slot_size = RGATE_SLOT_SIZE_MAX,
	};
	struct rgate_ring *ring;
	unsigned int before = open_fds();
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	(void)state;
	if ((uint64_t)pages * (uint64_t)page > 1ULL << 36)
		skip();
	/* more than the machine has: an error, not the OOM killer */
	assert_int_equal(rgate_ring_open_memfd(&ring, &huge), -ENOMEM);
	assert_int_equal(open_fds(), before);
}

/* The library's own allocations, where they can be taken over (not under a
 * sanitizer, which has its own allocator) */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
	!defined(UNIT_NO_WRAP)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNIT_NO_WRAP
#endif
#endif
#else
#define UNIT_NO_WRAP
#endif

#ifndef UNIT_NO_WRAP
static __thread int fail_in = -1;
static __thread int failed;

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);

static bool fails(void)
{
	if (fail_in < 0 || fail_in--)
		return false;
	failed++;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t n)
{
	return fails() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

static void allocations(void **state)
{
	unsigned int before = open_fds(), i;

	(void)state;
	if (unit_slow())
		skip();	/* valgrind has its own allocator, too */
	for (i = 0; i < ARRAY_LEN(makers); i++) {
		int n, err;

		for (n = 0;; n++) {
			failed = 0;
			fail_in = n;
			err = makers[i]();
			fail_in = -1;
			assert_int_equal(open_fds(), before);
			if (!failed)
				break;
			/* the C library may do without, as for a thread's name */
			assert_true(err == -ENOMEM || err == -EAGAIN || !err);
			assert_true(n < 100);
		}
		assert_int_equal(err, 0);
		assert_true(n >= 3);
	}
}
#else
static void allocations(void **state)
{
	(void)state;
	skip();
}
#endif

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(descriptors),
	cmocka_unit_test(address_space),
	cmocka_unit_test(allocations),
};

UNIT_MAIN(tests)
