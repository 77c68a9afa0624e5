// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What needs memory or descriptors is refused each of them in turn: every time
 * there is a proper error, nothing leaks, and the next try succeeds.
 */
#include "unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/rgate_pool.h>

/* What can be left behind: descriptors, threads, mapped rings, allocations */
struct held {
	unsigned int fds, threads, maps;
	long blocks;
};

static long live_blocks(void);

static struct held held(void)
{
	return (struct held){
		.fds = unit_entries("/proc/self/fd"), .threads = unit_entries("/proc/self/task"),
		.maps = unit_mappings("memfd:ringgate"), .blocks = live_blocks(),
	};
}

static void nothing_left(const struct held *before)
{
	struct held now;
	int i;

	/* A thread that was waited for may stay in /proc for a moment. */
	for (i = 0; i < 1000; i++) {
		now = held();
		if (now.threads <= before->threads)
			break;
		usleep(1000);
	}
	assert_int_equal(now.fds, before->fds);
	assert_int_equal(now.threads, before->threads);
	assert_int_equal(now.maps, before->maps);
	assert_int_equal(now.blocks, before->blocks);
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
	err = rgate_source_start_udp(&src, &ring, 1, (struct sockaddr *)&a, sizeof(a), NULL);
	if (!err)
		rgate_source_stop(src);
	rgate_ring_close(ring);
	return err;
}

/* A buffer of each size that is a slab of its own, or a part of one */
static int make_pool(void)
{
	const struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 << 20,
						    .flags = RGATE_POOL_NO_HUGE);
	static const size_t sizes[] = { 64, 4096, 1 << 20 };
	const struct rgate_buf *bufs[ARRAY_LEN(sizes)] = { NULL };
	struct rgate_pool *pool;
	unsigned int i, n = 0;
	int err = rgate_pool_create(&pool, NULL, &o);

	if (err)
		return err;
	while (n < ARRAY_LEN(sizes) && !(err = rgate_pool_alloc(pool, sizes[n], &bufs[n])))
		n++;
	for (i = 0; i < n; i++)
		rgate_pool_free(pool, bufs[i]);
	rgate_pool_destroy(pool);
	return err == -ENOBUFS ? -ENOMEM : err;
}

static int (*const makers[])(void) = { make_ring, pass_ring, make_source, make_pool };
#define WITH_FDS	3	/* so many of them are nothing without descriptors */

static void descriptors(void **state)
{
	struct rlimit was, lim;
	struct held before;
	unsigned int i, open;

	(void)state;
	if (unit_slow())
		unit_skip("valgrind has descriptors of its own");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	open = unit_entries("/proc/self/fd");
	for (i = 0; i < WITH_FDS; i++) {
		unsigned int n, failed = 0;
		int err = -EMFILE;

		/* what the C library keeps of a first time is kept */
		assert_int_equal(makers[i](), 0);
		before = held();

		for (n = 0; err; n++) {
			lim = was;
			lim.rlim_cur = open - 3 + n;
			assert_int_equal(setrlimit(RLIMIT_NOFILE, &lim), 0);
			err = makers[i]();
			assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
			nothing_left(&before);
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
	struct held before = held();
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	(void)state;
	if ((uint64_t)pages * (uint64_t)page > 1ULL << 36)
		unit_skip("the machine has more memory than a ring may");
	/* more than the machine has: an error, not the OOM killer */
	assert_int_equal(rgate_ring_open_memfd(&ring, &huge), -ENOMEM);
	nothing_left(&before);
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
extern void *__libc_memalign(size_t align, size_t n);
extern void *__libc_realloc(void *p, size_t n);
extern void __libc_free(void *p);

static bool fails(void)
{
	if (fail_in < 0 || fail_in--)
		return false;
	failed++;
	errno = ENOMEM;
	return true;
}

static long live;

static long live_blocks(void)
{
	return __atomic_load_n(&live, __ATOMIC_RELAXED);
}

static void *counted(void *p)
{
	if (p)
		__atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
	return p;
}

void *malloc(size_t n)
{
	return fails() ? NULL : counted(__libc_malloc(n));
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *p, size_t n)
{
	if (fails())
		return NULL;
	return p ? __libc_realloc(p, n) : counted(__libc_malloc(n));
}

int posix_memalign(void **p, size_t align, size_t n)
{
	*p = fails() ? NULL : counted(__libc_memalign(align, n));
	return *p ? 0 : ENOMEM;
}

void free(void *p)
{
	if (p)
		__atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
	__libc_free(p);
}

static void allocations(void **state)
{
	struct held before;
	unsigned int i;

	(void)state;
	if (unit_slow())
		unit_skip("valgrind has an allocator of its own");
	for (i = 0; i < ARRAY_LEN(makers); i++) {
		int n, err;

		assert_int_equal(makers[i](), 0);
		before = held();
		for (n = 0;; n++) {
			failed = 0;
			fail_in = n;
			err = makers[i]();
			fail_in = -1;
			nothing_left(&before);
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
/* The sanitizer looks for what is left behind itself. */
static long live_blocks(void)
{
	return 0;
}

static void allocations(void **state)
{
	(void)state;
	unit_skip("the sanitizer has an allocator of its own");
}
#endif

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(descriptors),
	cmocka_unit_test(address_space),
	cmocka_unit_test(allocations),
};

UNIT_MAIN(tests)
