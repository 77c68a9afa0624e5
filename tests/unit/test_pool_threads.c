// SPDX-License-Identifier: MIT OR GPL-2.0
/* rgate_pool_*: several threads, waiting, thread exit, fork. */
#include "unit.h"
#include "ended.h"
#include "mock_verbs.h"
#include "cache.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB	((size_t)1 << 20)
#define THREADS	4
#define HELD	32

static struct rgate_pool *pool;
static const struct rgate_buf *shared[256];	/* atomic: handed from thread to thread */

static void make(size_t region, size_t max, uint32_t flags)
{
	const struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = region,
						    .max_size = max, .flags = flags);

	rgate_log_set(NULL, NULL);
	assert_int_equal(rgate_pool_create(&pool, NULL, &o), 0);
}

static struct rgate_pool_stats stats(void)
{
	struct rgate_pool_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_pool_stats(pool, &st), 0);
	return st;
}

static void end(void)
{
	struct rgate_pool_stats st;

	assert_int_equal(rgate_pool_flush(pool), 0);
	st = stats();
	assert_int_equal(st.used_buffers, 0);
	assert_int_equal(st.cached_buffers, 0);
	assert_int_equal(st.free_bytes, st.region_bytes);
	assert_int_equal(pool_ended(pool), 0);
}

/* Starts @n threads and waits; each returns NULL if all was well */
static void run(void *(*fn)(void *arg), unsigned int n)
{
	pthread_t t[THREADS * 2];
	unsigned int i;
	void *bad;

	for (i = 0; i < n; i++)
		assert_int_equal(pthread_create(&t[i], NULL, fn, (void *)(uintptr_t)(i + 1)), 0);
	for (i = 0; i < n; i++) {
		assert_int_equal(pthread_join(t[i], &bad), 0);
		if (bad)
			fail_msg("thread %u: line %d", i, (int)(intptr_t)bad);
	}
}

#define CHECK(c) \
	do { \
		if (!(c)) \
			return (void *)(intptr_t)__LINE__; \
	} while (0)

/* Own buffers, whose bytes nobody else may change */
static void *hammer(void *arg)
{
	unsigned int k, i, rounds = unit_rounds(100000);
	uint64_t rnd = (uintptr_t)arg * 7919;
	const struct rgate_buf *b[HELD] = { 0 };

	for (k = 0; k < rounds; k++) {
		i = (unsigned int)(unit_random(&rnd) % HELD);
		if (b[i]) {
			CHECK(!unit_pattern_check(b[i]->addr, (uintptr_t)arg + i, b[i]->length));
			CHECK(!rgate_pool_free(pool, b[i]));
			b[i] = NULL;
		} else {
			size_t most = unit_random(&rnd) % 32 ? 2000 : 150000;
			size_t size = 1 + unit_random(&rnd) % most;
			int err = rgate_pool_alloc(pool, size, &b[i]);

			CHECK(!err || err == -ENOBUFS);
			if (!err)
				unit_pattern(b[i]->addr, (uintptr_t)arg + i, size);
			else
				b[i] = NULL;
		}
	}
	for (i = 0; i < HELD; i++)
		CHECK(!rgate_pool_free(pool, b[i]));
	return NULL;
}

static void hammered(void **state)
{
	(void)state;
	make(8 * MIB, 24 * MIB, 0);
	run(hammer, THREADS);
	end();
}

/* So small that the threads take each other's buffers all the time */
static void hammered_dry(void **state)
{
	(void)state;
	make(2 * MIB, 0, 0);
	run(hammer, THREADS);
	assert_true(stats().refused + stats().reclaims > 0);
	end();
}

/* What one thread allocates another releases */
static void *pass_on(void *arg)
{
	unsigned int k, rounds = unit_rounds(100000);
	const struct rgate_buf *b, *old;
	uint64_t rnd = (uintptr_t)arg;

	for (k = 0; k < rounds; k++) {
		if (rgate_pool_alloc(pool, 64 << unit_random(&rnd) % 8, &b))
			b = NULL;
		else
			*(uint64_t *)b->addr = (uintptr_t)b;
		old = __atomic_exchange_n(&shared[unit_random(&rnd) % 256], b, __ATOMIC_ACQ_REL);
		if (old) {
			CHECK(*(uint64_t *)old->addr == (uintptr_t)old);
			CHECK(!rgate_pool_free(pool, old));
		}
	}
	return NULL;
}

static void handed_on(void **state)
{
	unsigned int i;

	(void)state;
	make(4 * MIB, 0, 0);
	run(pass_on, THREADS);
	for (i = 0; i < 256; i++) {
		rgate_pool_free(pool, shared[i]);
		shared[i] = NULL;
	}
	end();
}

/* Leaves with a full cache; the pool gets it back */
static void *fill_cache(void *arg)
{
	const struct rgate_buf *b[64];

	(void)arg;
	CHECK(!rgate_pool_alloc_batch(pool, 4096, NULL, b, 64));
	CHECK(!rgate_pool_free_batch(pool, b, 64));
	return NULL;
}

static void thread_exit(void **state)
{
	uint64_t meta;
	unsigned int i;

	(void)state;
	make(2 * MIB, 0, 0);
	run(fill_cache, THREADS);
	meta = stats().meta_bytes;
	for (i = 1; i < 20; i++)
		run(fill_cache, THREADS);
	/* Nor is anything left of their caches; slabs may be more than before. */
	assert_true(stats().meta_bytes < meta + sizeof(struct rgate_cache) * THREADS * 10);
	assert_int_equal(stats().cached_buffers, 0);
	assert_int_equal(stats().used_buffers, 0);
	assert_int_equal(stats().allocs, 20 * THREADS * 64);
	end();
}

static pthread_barrier_t barrier;

/* Sits on a full cache while another needs the memory */
static void *idle_owner(void *arg)
{
	void *bad = fill_cache(arg);

	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	CHECK(!bad);
	/* and can go on with it afterwards */
	return fill_cache(arg);
}

static void taken_back(void **state)
{
	const struct rgate_buf *b;
	pthread_t t;
	void *bad;

	(void)state;
	make(2 * MIB, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&t, NULL, idle_owner, NULL), 0);
	pthread_barrier_wait(&barrier);
	/* nothing is lost to the other's cache */
	assert_int_equal(rgate_pool_alloc(pool, 2 * MIB, &b), 0);
	assert_int_equal(stats().cached_buffers, 0);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	pthread_barrier_wait(&barrier);
	assert_int_equal(pthread_join(t, &bad), 0);
	assert_null(bad);
	pthread_barrier_destroy(&barrier);
	end();
	if (unit_asan())
		unit_skip("for AddressSanitizer threads keep nothing: there was nothing to take back");
}

/* Inside of its cache, off its CPU, longer than anything there takes */
static void *slow_owner(void *arg)
{
	struct rgate_cache *c;

	CHECK(!fill_cache(arg));
	c = rgate_cache_last;
	if (c)
		CHECK(rgate_cache_enter(c));
	pthread_barrier_wait(&barrier);
	usleep(400000);
	if (c)
		rgate_cache_leave(c);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* What it keeps is not lost to who waits for it. */
static void owner_off_cpu(void **state)
{
	struct rgate_alloc_opts o = RGATE_OPTS(rgate_alloc_opts, .timeout_ms = 60000);
	const struct rgate_buf *b;
	pthread_t t;
	void *bad;

	(void)state;
	make(2 * MIB, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&t, NULL, slow_owner, NULL), 0);
	pthread_barrier_wait(&barrier);
	o.timeout_ms *= (int)unit_patience();
	assert_int_equal(rgate_pool_alloc_opts(pool, 2 * MIB, &o, &b), 0);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	pthread_barrier_wait(&barrier);
	assert_int_equal(pthread_join(t, &bad), 0);
	assert_null(bad);
	pthread_barrier_destroy(&barrier);
	end();
}

/* Releases all while the pool is dry: into no cache */
static void *release_all(void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; i < 256; i++)
		CHECK(!rgate_pool_free(pool, shared[i]));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void dry_for_all(void **state)
{
	const struct rgate_buf *b;
	pthread_t t;
	unsigned int i;
	void *bad;

	(void)state;
	make(2 * MIB, 0, 0);
	for (i = 0; i < 256; i++)
		assert_int_equal(rgate_pool_alloc(pool, 8192, &shared[i]), 0);
	assert_int_equal(rgate_pool_alloc(pool, 8192, &b), -ENOBUFS);
	assert_int_equal(rgate_pool_alloc(pool, 8192, &b), -ENOBUFS);
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&t, NULL, release_all, NULL), 0);
	pthread_barrier_wait(&barrier);
	assert_int_equal(rgate_pool_alloc(pool, 2 * MIB, &b), 0);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	pthread_barrier_wait(&barrier);
	assert_int_equal(pthread_join(t, &bad), 0);
	assert_null(bad);
	pthread_barrier_destroy(&barrier);
	memset(shared, 0, sizeof(shared));
	end();
}

static void *release_later(void *arg)
{
	usleep(100000);
	return (void *)(intptr_t)rgate_pool_free(pool, arg);
}

static void waits(void **state)
{
	struct rgate_alloc_opts o = RGATE_OPTS(rgate_alloc_opts, .timeout_ms = 50);
	const struct rgate_buf *all, *b;
	uint64_t t0;
	pthread_t t;

	(void)state;
	make(2 * MIB, 0, 0);
	assert_int_equal(rgate_pool_alloc(pool, 2 * MIB, &all), 0);
	t0 = unit_now_ns();
	assert_int_equal(rgate_pool_alloc_opts(pool, 100, &o, &b), -ETIMEDOUT);
	assert_true(unit_now_ns() - t0 >= 50000000);
	assert_int_equal(rgate_pool_alloc_batch(pool, 100, &o, &b, 1), -ETIMEDOUT);
	assert_true(stats().waits >= 1 && stats().timeouts >= 1);
	o.timeout_ms = 30000;
	assert_int_equal(pthread_create(&t, NULL, release_later, (void *)all), 0);
	t0 = unit_now_ns();
	assert_int_equal(rgate_pool_alloc_opts(pool, 100, &o, &b), 0);
	assert_true(unit_now_ns() - t0 < 20000000000ULL);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	end();
}

static unsigned int leave;	/* atomic */

/* Has a cache, whose memory counts, until it is to leave */
static void *keep_cache(void *arg)
{
	const struct rgate_buf *b;

	(void)arg;
	CHECK(!rgate_pool_alloc(pool, 100, &b) && !rgate_pool_free(pool, b));
	pthread_barrier_wait(&barrier);
	while (!__atomic_load_n(&leave, __ATOMIC_ACQUIRE))
		usleep(1000);
	return NULL;
}

static void *leave_later(void *arg)
{
	(void)arg;
	usleep(100000);
	__atomic_store_n(&leave, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Who has no room for what describes his buffers has it when others' caches end. */
static void waits_for_caches(void **state)
{
	const struct rgate_pool_opts po = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
						     .max_size = 2 * MIB, .max_meta = 192 << 10);
	struct rgate_alloc_opts o = RGATE_OPTS(rgate_alloc_opts, .timeout_ms = 20000);
	const struct rgate_buf *held[16], *b;
	unsigned int n = 0, i, classes;
	pthread_t t[64], later;
	uint64_t before;
	void *bad;

	(void)state;
	if (unit_asan())
		unit_skip("for AddressSanitizer threads have no caches");
	leave = 0;
	rgate_log_set(NULL, NULL);
	assert_int_equal(rgate_pool_create(&pool, NULL, &po), 0);
	pthread_barrier_init(&barrier, NULL, 2);
	do {
		before = stats().meta_bytes;
		assert_true(n < 64);
		assert_int_equal(pthread_create(&t[n++], NULL, keep_cache, NULL), 0);
		pthread_barrier_wait(&barrier);
	} while (stats().meta_bytes != before);
	for (classes = 0; classes < 16; classes++)
		if (rgate_pool_alloc(pool, 512UL << classes, &held[classes]))
			break;
	assert_in_range(classes, 0, 8);
	assert_int_equal(pthread_create(&later, NULL, leave_later, NULL), 0);
	o.timeout_ms *= (int)unit_patience();
	assert_int_equal(rgate_pool_alloc_opts(pool, 512UL << classes, &o, &b), 0);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	for (i = 0; i < classes; i++)
		assert_int_equal(rgate_pool_free(pool, held[i]), 0);
	assert_int_equal(pthread_join(later, NULL), 0);
	for (i = 0; i < n; i++) {
		assert_int_equal(pthread_join(t[i], &bad), 0);
		assert_null(bad);
	}
	pthread_barrier_destroy(&barrier);
	end();
}

/* Two more threads than there are buffers: each waits for the others' releases, which
 * go by way of their caches */
static void *take_turns(void *arg)
{
	struct rgate_alloc_opts o = RGATE_OPTS(rgate_alloc_opts, .timeout_ms = 60000);
	unsigned int k, rounds = unit_rounds(2000);
	const struct rgate_buf *b;

	(void)arg;
	for (k = 0; k < rounds; k++) {
		CHECK(!rgate_pool_alloc_opts(pool, MIB, &o, &b));
		*(uint64_t *)b->addr = (uintptr_t)&k;
		if (k % 64 == 0)
			sched_yield();
		CHECK(*(uint64_t *)b->addr == (uintptr_t)&k);
		CHECK(!rgate_pool_free(pool, b));
	}
	return NULL;
}

static void nobody_is_forgotten(void **state)
{
	(void)state;
	make(2 * MIB, 0, 0);
	run(take_turns, THREADS);
	assert_int_equal(stats().timeouts, 0);
	end();
}

/* Several pools, made and ended while the thread lives */
static void *many_pools(void *arg)
{
	const struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
						    .flags = RGATE_POOL_NO_PREFAULT);
	unsigned int k, i, rounds = unit_rounds(300);
	const struct rgate_buf *b;
	struct rgate_pool *p[3];

	(void)arg;
	for (k = 0; k < rounds; k++) {
		for (i = 0; i < 3; i++)
			CHECK(!rgate_pool_create(&p[i], NULL, &o));
		for (i = 0; i < 30; i++) {
			CHECK(!rgate_pool_alloc(p[i % 3], 1000, &b));
			CHECK(rgate_pool_free(p[(i + 1) % 3], b) == -EINVAL);
			CHECK(!rgate_pool_free(p[i % 3], b));
		}
		for (i = 0; i < 3; i++)
			CHECK(!pool_ended(p[i]));
	}
	return NULL;
}

static void pools_come_and_go(void **state)
{
	(void)state;
	rgate_log_set(NULL, NULL);
	run(many_pools, THREADS);
}

/* Buffers that a pool that was destroyed leaves to threads, which are rid of them at once */
static const struct rgate_buf *left_to[THREADS];

static void *gives_back(void *arg)
{
	struct rgate_pool *of = arg;
	static unsigned int next;
	const unsigned int mine = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % THREADS;

	memset(left_to[mine]->addr, 1, 500);
	return rgate_pool_free(of, left_to[mine]) ? (void *)1 : NULL;
}

static void last_one_ends_it(void **state)
{
	unsigned int rounds = unit_rounds(300), i;
	const unsigned int before = unit_mappings("ringgate-last");
	const struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
						    .name = "last",
						    .flags = RGATE_POOL_NO_PREFAULT);
	pthread_t t[THREADS];
	void *bad;

	(void)state;
	rgate_log_set(NULL, NULL);
	while (rounds--) {
		assert_int_equal(rgate_pool_create(&pool, NULL, &o), 0);
		for (i = 0; i < THREADS; i++)
			assert_int_equal(rgate_pool_alloc(pool, 500, &left_to[i]), 0);
		rgate_pool_destroy(pool);
		assert_int_equal(unit_mappings("ringgate-last"), before + 1);
		for (i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&t[i], NULL, gives_back, pool), 0);
		for (i = 0; i < THREADS; i++) {
			assert_int_equal(pthread_join(t[i], &bad), 0);
			assert_null(bad);
		}
		assert_int_equal(unit_mappings("ringgate-last"), before);
	}
}

/* The pool ends while a thread that used it still lives, and ends later */
static void *outlives(void *arg)
{
	void *bad = fill_cache(arg);

	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return bad;
}

static void thread_outlives_pool(void **state)
{
	pthread_t t;
	void *bad;

	(void)state;
	make(2 * MIB, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&t, NULL, outlives, NULL), 0);
	pthread_barrier_wait(&barrier);
	assert_int_equal(pool_ended(pool), 0);
	pthread_barrier_wait(&barrier);
	assert_int_equal(pthread_join(t, &bad), 0);
	assert_null(bad);
	pthread_barrier_destroy(&barrier);
}

static void *grow_together(void *arg)
{
	const struct rgate_buf *b[4];
	unsigned int i;

	(void)arg;
	for (i = 0; i < 4; i++)
		CHECK(!rgate_pool_alloc(pool, MIB, &b[i]));
	for (i = 0; i < 4; i++)
		CHECK(!rgate_pool_free(pool, b[i]));
	return NULL;
}

static void grows_once(void **state)
{
	(void)state;
	make(2 * MIB, 16 * MIB, 0);
	run(grow_together, THREADS);
	/* never more than was needed by all at once */
	assert_true(stats().regions <= 8);
	end();
}

/* A region that is made only when the test says so */
static int making, go_on;	/* atomic */

static void on_progress(void *ctx, size_t done, size_t total)
{
	(void)ctx;
	(void)done;
	(void)total;
	if (__atomic_load_n(&go_on, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&making, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&go_on, __ATOMIC_ACQUIRE))
		usleep(1000);
}

static void *make_region(void *arg)
{
	const struct rgate_buf *b;

	(void)arg;
	CHECK(!rgate_pool_alloc(pool, 2 * MIB, &b));
	CHECK(!rgate_pool_free(pool, b));
	return NULL;
}

/* A deadline holds while another thread makes a region, too. */
static void grows_slowly(void **state)
{
	const struct rgate_pool_opts po = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
						     .max_size = 4 * MIB,
						     .progress = on_progress);
	struct rgate_alloc_opts o = RGATE_OPTS(rgate_alloc_opts, .timeout_ms = 50);
	const struct rgate_buf *all, *b;
	pthread_t t;
	void *bad;

	(void)state;
	go_on = 1;
	making = 0;
	rgate_log_set(NULL, NULL);
	assert_int_equal(rgate_pool_create(&pool, NULL, &po), 0);
	assert_int_equal(rgate_pool_alloc(pool, 2 * MIB, &all), 0);
	__atomic_store_n(&go_on, 0, __ATOMIC_RELEASE);
	assert_int_equal(pthread_create(&t, NULL, make_region, NULL), 0);
	while (!__atomic_load_n(&making, __ATOMIC_ACQUIRE))
		usleep(1000);
	assert_int_equal(rgate_pool_alloc_opts(pool, 100, &o, &b), -ETIMEDOUT);
	__atomic_store_n(&go_on, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(t, &bad), 0);
	assert_null(bad);
	assert_int_equal(rgate_pool_free(pool, all), 0);
	end();
}

static const struct rgate_buf *parents;

/* Where there is AddressSanitizer: is anything lost? */
__attribute__((weak))
int __lsan_do_recoverable_leak_check(void);

static int in_child(int sock, void *arg)
{
	const struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB);
	struct rgate_pool_stats st = { .sz = sizeof(st) };
	const struct rgate_buf *b;
	struct rgate_desc d;
	unsigned char vec;
	char *addr = parents->addr;

	(void)sock;
	(void)arg;
	unit_require(rgate_pool_alloc(pool, 100, &b) == -EPERM);
	unit_require(rgate_pool_alloc_batch(pool, 100, NULL, &b, 1) == -EPERM);
	unit_require(rgate_pool_free(pool, parents) == -EPERM);
	unit_require(rgate_pool_lookup(pool, addr, &b) == -EPERM);
	unit_require(rgate_pool_flush(pool) == -EPERM);
	unit_require(rgate_pool_stats(pool, &st) == -EPERM);
	unit_require(rgate_buf_desc(pool, parents, 0, 0, &d) == -EPERM);
	/* the memory is not there */
	unit_require(mincore(addr, 1, &vec) == -1 && errno == ENOMEM);
	rgate_pool_destroy(pool);
	/* a pool of its own */
	unit_require(!rgate_pool_create(&pool, NULL, &o));
	unit_require(!rgate_pool_alloc(pool, 100, &b));
	memset(b->addr, 0, 100);
	unit_require(!rgate_pool_free(pool, b));
	unit_require(!pool_ended(pool));
	/* of the parent's, too: it ends without looking, as it is no program's end */
	pool = NULL;
	unit_require(!__lsan_do_recoverable_leak_check || !__lsan_do_recoverable_leak_check());
	return 0;
}

static void after_fork(void **state)
{
	int sock, pid, i;

	(void)state;
	make(2 * MIB, 0, 0);
	assert_int_equal(rgate_pool_alloc(pool, 4096, &parents), 0);
	unit_pattern(parents->addr, 1, 4096);
	for (i = 0; i < 3; i++) {
		pid = unit_fork(in_child, NULL, &sock);
		unit_reap(pid, 0);
		close(sock);
	}
	assert_int_equal(unit_pattern_check(parents->addr, 1, 4096), 0);
	assert_int_equal(rgate_pool_free(pool, parents), 0);
	end();
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, mock_setup, mock_teardown)

static const struct CMUnitTest tests[] = {
	TEST(hammered), TEST(hammered_dry), TEST(handed_on), TEST(thread_exit),
	TEST(taken_back), TEST(owner_off_cpu), TEST(dry_for_all), TEST(waits),
	TEST(waits_for_caches),
	TEST(nobody_is_forgotten), TEST(pools_come_and_go),
	TEST(last_one_ends_it), TEST(thread_outlives_pool), TEST(grows_once), TEST(grows_slowly),
	TEST(after_fork),
};

UNIT_MAIN(tests)
