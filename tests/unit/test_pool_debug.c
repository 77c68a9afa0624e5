// SPDX-License-Identifier: MIT OR GPL-2.0
/* What RGATE_POOL_DEBUG finds: overruns, writes after release, who holds what. */
#include "unit.h"
#include "ended.h"
#include "mock_verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB	((size_t)1 << 20)

static char said[4096];
static struct rgate_pool *pool;

static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)ctx;
	if (level <= RGATE_LOG_WARN)
		strncat(said, msg, sizeof(said) - strlen(said) - 1);
}

static int setup(void **state)
{
	const struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 4 * MIB,
						    .flags = RGATE_POOL_DEBUG);

	said[0] = '\0';
	rgate_log_set(on_log, NULL);
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

static void clean_use(void **state)
{
	struct rgate_alloc_opts o = RGATE_OPTS(rgate_alloc_opts);
	const struct rgate_buf *b;
	size_t size;

	(void)state;
	for (size = 1; size < 3 * MIB; size = size * 2 + 1) {
		for (o.align = 64; o.align <= 65536; o.align *= 4) {
			assert_int_equal(rgate_pool_alloc_opts(pool, size, &o, &b), 0);
			assert_int_equal(b->length, size);
			assert_int_equal((uintptr_t)b->addr % o.align, 0);
			memset(b->addr, 0xa5, size);
			assert_int_equal(rgate_pool_check(pool), 0);
			assert_int_equal(rgate_pool_free(pool, b), 0);
		}
	}
	assert_int_equal(stats().overruns, 0);
	assert_string_equal(said, "");
}

/* One byte, right behind the end and right before the beginning */
static void overrun(void **state)
{
	static const size_t sizes[] = { 1, 63, 64, 100, 4096, 100000 };
	const struct rgate_buf *b, *again;
	size_t i;
	int where;

	(void)state;
	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		for (where = 0; where < 2; where++) {
			uint64_t before = stats().overruns;
			unsigned char *at;

			assert_int_equal(rgate_pool_alloc(pool, sizes[i], &b), 0);
			at = (unsigned char *)b->addr + (where ? b->length : (size_t)-1);
			*at ^= 1;
			assert_int_equal(rgate_pool_check(pool), 1);
			assert_int_equal(rgate_pool_free(pool, b), -EOVERFLOW);
			/* once by who looked, once by who freed it */
			assert_int_equal(stats().overruns, before + 2);
			/* it is never handed out again */
			assert_int_equal(rgate_pool_alloc(pool, sizes[i], &again), 0);
			assert_ptr_not_equal(again, b);
			assert_int_equal(rgate_pool_free(pool, again), 0);
			assert_int_equal(rgate_pool_free(pool, b), -EALREADY);
			assert_int_equal(rgate_pool_check(pool), 0);
		}
	}
	assert_non_null(strstr(said, "red zone"));
}

static void after_release(void **state)
{
	const struct rgate_buf *b, *other;
	unsigned char *at;

	(void)state;
	/* another of its size is held, so that its slab stays */
	assert_int_equal(rgate_pool_alloc(pool, 1000, &other), 0);
	assert_int_equal(rgate_pool_alloc(pool, 1000, &b), 0);
	at = b->addr;
	assert_int_equal(rgate_pool_free(pool, b), 0);
	assert_int_equal(rgate_pool_check(pool), 0);
	at[500] = 1;
	assert_int_equal(rgate_pool_check(pool), 1);
	assert_non_null(strstr(said, "after release"));
	/* and found when it is handed out */
	said[0] = '\0';
	assert_int_equal(rgate_pool_alloc(pool, 1000, &b), 0);
	assert_ptr_equal(b->addr, at);
	assert_non_null(strstr(said, "after release"));
	assert_int_equal(stats().overruns, 2);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	assert_int_equal(rgate_pool_free(pool, other), 0);
}

static void mistakes(void **state)
{
	struct rgate_buf fake = { .addr = said, .length = 10,
				  .reserved = { 0x1234567, 0x7654321 } };
	const struct rgate_buf *b, *second;

	(void)state;
	assert_int_equal(rgate_pool_alloc(pool, 100, &b), 0);
	assert_int_equal(rgate_pool_alloc(pool, 100, &second), 0);
	/* no address is believed, whatever stands there */
	assert_int_equal(rgate_pool_free(pool, &fake), -EINVAL);
	assert_int_equal(rgate_pool_free(pool, (const void *)0x10), -EINVAL);
	assert_int_equal(rgate_pool_free(pool, (const void *)((const char *)b + 4)), -EINVAL);
	assert_int_equal(rgate_pool_free(pool, b->addr), -EINVAL);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	assert_int_equal(rgate_pool_free(pool, b), -EALREADY);
	assert_int_equal(rgate_pool_free(pool, second), 0);
	assert_int_equal(stats().foreign_frees, 4);
	assert_int_equal(stats().double_frees, 1);
}

static int see(void *ctx, const struct rgate_pool_holder *h)
{
	struct rgate_pool_holder *seen = ctx;

	*seen = *h;
	return 0;
}

static void holders(void **state)
{
	struct rgate_alloc_opts o = RGATE_OPTS(rgate_alloc_opts, .tag = "receive queue");
	struct rgate_pool_holder h = { 0 };
	const struct rgate_buf *b;

	(void)state;
	assert_int_equal(rgate_pool_alloc_opts(pool, 777, &o, &b), 0);
	assert_int_equal(rgate_pool_held(pool, see, &h), 0);
	assert_ptr_equal(h.buf, b);
	assert_string_equal(h.tag, "receive queue");
	assert_int_equal(h.thread, syscall(SYS_gettid));
	assert_non_null(h.site);
	rgate_pool_destroy(pool);
	assert_non_null(strstr(said, "777 bytes"));
	assert_non_null(strstr(said, "receive queue"));
	assert_int_equal(rgate_pool_free(pool, b), 0);
	/* one whose red zone was overwritten keeps it no longer than it was held */
	assert_int_equal(setup(state), 0);
	assert_int_equal(rgate_pool_alloc(pool, 64, &b), 0);
	((unsigned char *)b->addr)[64] = 0;
	rgate_pool_destroy(pool);
	assert_int_equal(rgate_pool_free(pool, b), -EOVERFLOW);
	pool = NULL;
}

static void by_environment(void **state)
{
	const struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB);
	struct rgate_pool *p;

	(void)state;
	assert_int_equal(rgate_pool_create(&p, NULL, &o), 0);
	assert_int_equal(rgate_pool_check(p), -EOPNOTSUPP);
	assert_int_equal(pool_ended(p), 0);
	setenv("RGATE_POOL_DEBUG", "1", 1);
	assert_int_equal(rgate_pool_create(&p, NULL, &o), 0);
	assert_int_equal(rgate_pool_check(p), 0);
	assert_int_equal(pool_ended(p), 0);
	setenv("RGATE_POOL_DEBUG", "0", 1);
	assert_int_equal(rgate_pool_create(&p, NULL, &o), 0);
	assert_int_equal(rgate_pool_check(p), -EOPNOTSUPP);
	assert_int_equal(pool_ended(p), 0);
	unsetenv("RGATE_POOL_DEBUG");
}

static void too_large(void **state)
{
	const struct rgate_buf *b;

	(void)state;
	/* with its red zones it does not fit */
	assert_int_equal(rgate_pool_alloc(pool, 4 * MIB, &b), -EMSGSIZE);
	assert_int_equal(rgate_pool_alloc(pool, SIZE_MAX, &b), -EMSGSIZE);
	assert_int_equal(rgate_pool_alloc(pool, 4 * MIB - 128, &b), 0);
	assert_int_equal(rgate_pool_free(pool, b), 0);
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(clean_use), TEST(overrun), TEST(after_release), TEST(mistakes), TEST(holders),
	TEST(by_environment), TEST(too_large),
};

UNIT_MAIN_ALONE(tests)
