// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a pool says of itself: each number, after each step. */
#include "unit.h"
#include "ended.h"
#include "mock_verbs.h"
#include "pool_debug.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MIB	((size_t)1 << 20)
#define SLAB	((size_t)64 << 10)	/* what buffers of 1000 bytes are cut from */
#define OF_SLAB	64			/* so many */

static struct rgate_pool *pool;

static int setup(void **state)
{
	const struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
						    .max_size = 4 * MIB,
						    .access = RGATE_ACCESS_REMOTE);

	rgate_log_set(NULL, NULL);
	mock_setup(state);
	return rgate_pool_create(&pool, NULL, &o);
}

static int teardown(void **state)
{
	return pool_ended(pool) || mock_teardown(state) ? -1 : 0;
}

static struct rgate_pool_stats stats(void)
{
	struct rgate_pool_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_pool_stats(pool, &st), 0);
	return st;
}

/* Those of sizes, of which there are at most four here */
static struct rgate_pool_class cls[4];
static unsigned int ncls;

static int see_class(void *ctx, const struct rgate_pool_class *c)
{
	(void)ctx;
	assert_true(ncls < 4);
	cls[ncls++] = *c;
	return 0;
}

static void classes(void)
{
	ncls = 0;
	assert_int_equal(rgate_pool_classes(pool, see_class, NULL), 0);
}

static void empty(void **state)
{
	const struct rgate_pool_stats st = stats();

	(void)state;
	assert_int_equal(st.regions, 1);
	assert_int_equal(st.region_bytes, 2 * MIB);
	assert_int_equal(st.quota_bytes, 4 * MIB);
	assert_int_equal(st.used_buffers, 0);
	assert_int_equal(st.used_bytes, 0);
	assert_int_equal(st.cached_buffers, 0);
	assert_int_equal(st.cached_bytes, 0);
	assert_int_equal(st.free_bytes, 2 * MIB);
	assert_int_equal(st.largest_free, 2 * MIB);
	assert_int_equal(st.fragmentation_ppm, 0);
	assert_int_equal(st.allocs, 0);
	assert_int_equal(st.frees, 0);
	assert_int_equal(st.grown, 0);
	classes();
	assert_int_equal(ncls, 0);
}

static void of_a_class(void **state)
{
	const unsigned int kept = rgate_annotated() ? 0 : 1;
	const struct rgate_buf *b[3];
	struct rgate_pool_stats st;
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		assert_int_equal(rgate_pool_alloc(pool, 1000, &b[i]), 0);
	st = stats();
	assert_int_equal(st.used_buffers, 3);
	assert_int_equal(st.used_bytes, 3 * 1024);
	assert_int_equal(st.allocs, 3);
	assert_int_equal(st.frees, 0);
	assert_int_equal(st.free_bytes, 2 * MIB - SLAB);
	assert_int_equal(st.largest_free, 2 * MIB - SLAB);
	assert_int_equal(st.cached_bytes, 1024 * st.cached_buffers);
	classes();
	assert_int_equal(ncls, 1);
	assert_int_equal(cls[0].size, 1024);
	assert_int_equal(cls[0].used, 3);
	assert_int_equal(cls[0].allocs, 3);
	assert_int_equal(cls[0].slab_bytes, SLAB);
	assert_int_equal(cls[0].cached, st.cached_buffers);
	assert_int_equal(cls[0].free, OF_SLAB - 3 - cls[0].cached);
	/* What is freed is kept by the thread, but where each access is watched. */
	assert_int_equal(rgate_pool_free(pool, b[1]), 0);
	classes();
	assert_int_equal(cls[0].used, 2);
	assert_int_equal(cls[0].cached, st.cached_buffers + kept);
	assert_int_equal(stats().cached_buffers, st.cached_buffers + kept);
	assert_int_equal(stats().cached_bytes, 1024 * (st.cached_buffers + kept));
	assert_int_equal(stats().frees, 1);
	assert_int_equal(stats().used_bytes, 2 * 1024);
	/* until it gives it back */
	assert_int_equal(rgate_pool_flush(pool), 0);
	classes();
	assert_int_equal(cls[0].cached, 0);
	assert_int_equal(cls[0].free, OF_SLAB - 2);
	assert_int_equal(stats().cached_buffers, 0);
	assert_int_equal(stats().cached_bytes, 0);
	assert_int_equal(rgate_pool_free(pool, b[0]), 0);
	assert_int_equal(rgate_pool_free(pool, b[2]), 0);
	assert_int_equal(rgate_pool_flush(pool), 0);
	/* A size that was used once is told, though nothing of it is left. */
	classes();
	assert_int_equal(ncls, 1);
	assert_int_equal(cls[0].allocs, 3);
	assert_int_equal(cls[0].slab_bytes, 0);
	assert_int_equal(cls[0].free, 0);
	st = stats();
	assert_int_equal(st.allocs, 3);
	assert_int_equal(st.frees, 3);
	assert_int_equal(st.used_buffers, 0);
	assert_true(st.high_bytes >= 3 * 1024 && st.high_bytes <= SLAB);
}

/* What a thread keeps is counted as kept until it is flushed, and only then. */
static void kept_by_a_thread(void **state)
{
	const struct rgate_buf *b[20];
	uint64_t kept;
	int i;

	(void)state;
	if (rgate_annotated())
		unit_skip("where each access is watched threads keep nothing");
	for (i = 0; i < 20; i++)
		assert_int_equal(rgate_pool_alloc(pool, 1000, &b[i]), 0);
	kept = stats().cached_buffers;
	for (i = 0; i < 20; i++)
		assert_int_equal(rgate_pool_free(pool, b[i]), 0);
	assert_true(stats().cached_buffers > kept);
	classes();
	assert_int_equal(cls[0].cached, stats().cached_buffers);
	assert_int_equal(cls[0].free + cls[0].cached, OF_SLAB);
	assert_int_equal(stats().free_bytes, 2 * MIB - SLAB);
	assert_int_equal(rgate_pool_flush(pool), 0);
	assert_int_equal(stats().cached_buffers, 0);
	assert_int_equal(stats().free_bytes, 2 * MIB);
}

static int stop_at_second(void *ctx, const struct rgate_pool_class *c)
{
	(void)c;
	return ++*(int *)ctx == 2 ? 33 : 0;
}

static void several(void **state)
{
	static const size_t sizes[] = { 5000, 64, 300 };
	const struct rgate_buf *b[3];
	int i, n = 0;

	(void)state;
	for (i = 0; i < 3; i++)
		assert_int_equal(rgate_pool_alloc(pool, sizes[i], &b[i]), 0);
	classes();
	assert_int_equal(ncls, 3);
	assert_int_equal(cls[0].size, 64);
	assert_int_equal(cls[1].size, 320);
	assert_int_equal(cls[2].size, 5120);
	assert_int_equal(rgate_pool_classes(pool, stop_at_second, &n), 33);
	assert_int_equal(n, 2);
	assert_int_equal(stats().used_buffers, 3);
	assert_int_equal(stats().used_bytes, 64 + 320 + 5120);
	for (i = 0; i < 3; i++)
		assert_int_equal(rgate_pool_free(pool, b[i]), 0);
}

/* What is too large for a class, and what is left then */
static void of_runs(void **state)
{
	const struct rgate_buf *low, *mid, *high;
	struct rgate_pool_stats st;

	(void)state;
	assert_int_equal(rgate_pool_alloc(pool, MIB / 2, &low), 0);
	assert_int_equal(rgate_pool_alloc(pool, MIB / 2, &mid), 0);
	assert_int_equal(rgate_pool_alloc(pool, MIB / 2, &high), 0);
	st = stats();
	assert_int_equal(st.used_bytes, 3 * MIB / 2);
	assert_int_equal(st.free_bytes, MIB / 2);
	assert_int_equal(st.fragmentation_ppm, 0);
	assert_int_equal(rgate_pool_free(pool, mid), 0);
	assert_int_equal(rgate_pool_flush(pool), 0);
	st = stats();
	assert_int_equal(st.used_bytes, MIB);
	assert_int_equal(st.free_bytes, MIB);
	assert_int_equal(st.largest_free, MIB / 2);
	assert_int_equal(st.fragmentation_ppm, 500000);
	/* Two pieces do not make one; so there will be a second region. */
	assert_int_equal(rgate_pool_alloc(pool, 3 * MIB / 4, &mid), 0);
	st = stats();
	assert_int_equal(st.regions, 2);
	assert_int_equal(st.grown, 1);
	assert_int_equal(st.region_bytes, 4 * MIB);
	assert_int_equal(st.largest_free, 5 * MIB / 4);
	assert_int_equal(st.refused, 0);
	assert_int_equal(rgate_pool_free(pool, low), 0);
	assert_int_equal(rgate_pool_free(pool, mid), 0);
	assert_int_equal(rgate_pool_free(pool, high), 0);
}

/* All of it: the number of nothing in parts */
static void full(void **state)
{
	const struct rgate_buf *a, *b, *c;
	struct rgate_pool_stats st;

	(void)state;
	assert_int_equal(rgate_pool_alloc(pool, 2 * MIB, &a), 0);
	assert_int_equal(rgate_pool_alloc(pool, 2 * MIB, &b), 0);
	assert_int_equal(rgate_pool_alloc(pool, 1, &c), -ENOBUFS);
	st = stats();
	assert_int_equal(st.free_bytes, 0);
	assert_int_equal(st.largest_free, 0);
	assert_int_equal(st.fragmentation_ppm, 0);
	assert_int_equal(st.refused, 1);
	assert_int_equal(st.used_bytes, 4 * MIB);
	assert_int_equal(st.used_buffers, 2);
	assert_int_equal(rgate_pool_free(pool, a), 0);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	assert_int_equal(rgate_pool_free(pool, b), -EALREADY);
	assert_int_equal(stats().double_frees, 1);
	assert_int_equal(stats().frees, 2);
	assert_int_equal(stats().foreign_frees, 0);
	assert_int_equal(stats().overruns, 0);
}

/* Larger than any class: a run of its own, which is no class that is told */
static void larger(void **state)
{
	const struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 8 * MIB,
						    .flags = RGATE_POOL_NO_PREFAULT);
	struct rgate_pool *small = pool;
	const struct rgate_buf *b;

	(void)state;
	assert_int_equal(rgate_pool_create(&pool, NULL, &o), 0);
	assert_int_equal(rgate_pool_alloc(pool, 5 * MIB - 1, &b), 0);
	assert_int_equal(stats().used_buffers, 1);
	assert_int_equal(stats().used_bytes, 5 * MIB);
	assert_int_equal(stats().high_bytes, 5 * MIB);
	assert_int_equal(stats().free_bytes, 3 * MIB);
	assert_int_equal(rgate_pool_alloc(pool, 5 * MIB, &b), -ENOBUFS);
	assert_int_equal(stats().high_bytes, 5 * MIB);
	classes();
	assert_int_equal(ncls, 0);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	assert_int_equal(stats().free_bytes, 8 * MIB);
	assert_int_equal(pool_ended(pool), 0);
	pool = small;
}

static int count(void *ctx, const struct rgate_pool_holder *h)
{
	assert_non_null(h->buf);
	assert_null(h->tag);
	assert_null(h->site);
	assert_int_equal(h->thread, 0);
	return ++*(int *)ctx == 3 ? 44 : 0;
}

static void held(void **state)
{
	const struct rgate_buf *b[4];
	int n = 0, i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(rgate_pool_alloc(pool, i < 2 ? 100 : 9000, &b[i]), 0);
	assert_int_equal(rgate_pool_held(pool, count, &n), 44);
	assert_int_equal(n, 3);
	assert_int_equal(rgate_pool_free(pool, b[0]), 0);
	assert_int_equal(rgate_pool_free(pool, b[3]), 0);
	n = 0;
	assert_int_equal(rgate_pool_held(pool, count, &n), 0);
	assert_int_equal(n, 2);
	/* one that is all of its slab */
	assert_int_equal(rgate_pool_alloc(pool, MIB, &b[0]), 0);
	n = -10;
	assert_int_equal(rgate_pool_held(pool, count, &n), 0);
	assert_int_equal(n, -7);
	assert_int_equal(rgate_pool_free(pool, b[0]), 0);
	assert_int_equal(rgate_pool_free(pool, b[1]), 0);
	assert_int_equal(rgate_pool_free(pool, b[2]), 0);
	n = 0;
	assert_int_equal(rgate_pool_held(pool, count, &n), 0);
	assert_int_equal(n, 0);
}

/* Whose buffer it is, and how much of it may be told */
static void described(void **state)
{
	const struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
						    .access = RGATE_ACCESS_REMOTE);
	struct rgate_pool_region region = { .sz = sizeof(region) };
	const struct rgate_buf *b;
	struct rgate_pool *other;
	struct rgate_remote r;
	struct rgate_desc d;

	(void)state;
	assert_int_equal(rgate_pool_create(&other, NULL, &o), 0);
	assert_int_equal(rgate_pool_alloc(pool, 1000, &b), 0);
	assert_int_equal(rgate_buf_desc(other, b, 0, 0, &d), -EINVAL);
	assert_int_equal(rgate_buf_desc(pool, b, 1000, 1, &d), -ERANGE);
	assert_int_equal(rgate_buf_desc(pool, b, 0, 1001, &d), -ERANGE);
	assert_int_equal(rgate_buf_desc(pool, b, 1, 1000, &d), -ERANGE);
	assert_int_equal(rgate_buf_desc(pool, b, 0, 1000, &d), 0);
	assert_int_equal(rgate_buf_desc(pool, b, 999, 1, &d), 0);
	assert_int_equal(rgate_pool_region(pool, 0, &region), 0);
	assert_int_equal(rgate_desc_parse(&r, &d, sizeof(d)), 0);
	assert_int_equal(r.addr, (char *)b->addr - (char *)region.addr + 999);
	assert_int_equal(r.length, 1);
	assert_int_equal(rgate_pool_lookup(pool, &d, &b), -EFAULT);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	assert_int_equal(pool_ended(other), 0);
}

static void regions(void **state)
{
	struct rgate_pool_region r = { .sz = sizeof(r) };
	const struct rgate_buf *a, *b;

	(void)state;
	assert_int_equal(rgate_pool_alloc(pool, 2 * MIB, &a), 0);
	assert_int_equal(rgate_pool_region(pool, 1, &r), -ENOENT);
	assert_int_equal(rgate_pool_alloc(pool, 2 * MIB, &b), 0);
	assert_int_equal(rgate_pool_region(pool, 0, &r), 0);
	assert_ptr_equal(r.addr, a->addr);
	assert_int_equal(r.length, 2 * MIB);
	assert_true(r.page_size >= 4096);
	assert_int_equal(r.lkey, a->lkey);
	assert_int_equal(r.rkey, a->rkey);
	assert_true(r.fd >= 0);
	assert_int_equal(rgate_pool_region(pool, 1, &r), 0);
	assert_ptr_equal(r.addr, b->addr);
	assert_int_equal(r.rkey, b->rkey);
	assert_int_not_equal(a->rkey, b->rkey);
	assert_int_equal(rgate_pool_region(pool, 2, &r), -ENOENT);
	assert_int_equal(rgate_pool_check(pool), -EOPNOTSUPP);
	assert_int_equal(rgate_pool_free(pool, a), 0);
	assert_int_equal(rgate_pool_free(pool, b), 0);
}

/* Nothing of it is there in a child. */
static int in_child(int sock, void *arg)
{
	struct rgate_pool_region r = { .sz = sizeof(r) };
	int n = 0;

	(void)sock;
	(void)arg;
	unit_require(rgate_pool_region(pool, 0, &r) == -EPERM);
	unit_require(rgate_pool_classes(pool, see_class, NULL) == -EPERM);
	unit_require(rgate_pool_held(pool, count, &n) == -EPERM);
	unit_require(rgate_pool_flush(pool) == -EPERM);
	unit_require(rgate_pool_check(pool) == -EPERM);
	return 0;
}

static void after_fork(void **state)
{
	const struct rgate_buf *b;
	int sock, pid;

	(void)state;
	assert_int_equal(rgate_pool_alloc(pool, 100, &b), 0);
	pid = unit_fork(in_child, NULL, &sock);
	unit_reap(pid, 0);
	close(sock);
	assert_int_equal(rgate_pool_free(pool, b), 0);
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(empty), TEST(of_a_class), TEST(kept_by_a_thread), TEST(several), TEST(of_runs),
	TEST(full), TEST(larger), TEST(held), TEST(described), TEST(regions), TEST(after_fork),
};

UNIT_MAIN_ALONE(tests)
