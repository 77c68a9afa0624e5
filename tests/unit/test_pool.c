// SPDX-License-Identifier: MIT OR GPL-2.0
/* rgate_pool_*: what one thread sees of it. */
#include "unit.h"
#include "ended.h"
#include "mock_verbs.h"
#include "cache.h"
#include "sizeclass.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB	((size_t)1 << 20)
#define MANY	4096

static char said[4096];
static struct rgate_pool *pool;
static const struct rgate_buf *bufs[MANY];

static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)ctx;
	if (level <= RGATE_LOG_WARN)
		strncat(said, msg, sizeof(said) - strlen(said) - 1);
}

static int setup(void **state)
{
	said[0] = '\0';
	rgate_log_set(on_log, NULL);
	return mock_setup(state);
}

static int fds(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void make(size_t region, size_t max, uint32_t flags)
{
	const struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = region,
						    .max_size = max, .flags = flags,
						    .access = RGATE_ACCESS_REMOTE);

	assert_int_equal(rgate_pool_create(&pool, NULL, &o), 0);
}

static struct rgate_pool_stats stats(void)
{
	struct rgate_pool_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_pool_stats(pool, &st), 0);
	return st;
}

/* All that was allocated is free again, and the regions whole */
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

static void options(void **state)
{
	static const struct rgate_pool_opts bad[] = {
		{ .sz = sizeof(bad[0]), .flags = 1U << 20 },
		{ .sz = sizeof(bad[0]), .access = 1U << 20 },
		{ .sz = sizeof(bad[0]), .access = RGATE_ACCESS_READONLY },
		{ .sz = sizeof(bad[0]), .reserved = 1 },
		{ .sz = sizeof(bad[0]), .region_size = 2 * MIB - 1 },
		{ .sz = sizeof(bad[0]), .region_size = SIZE_MAX },
		{ .sz = sizeof(bad[0]), .region_size = 4 * MIB, .max_size = 2 * MIB },
		{ .sz = sizeof(bad[0]), .max_size = 2 * MIB - 1 },
		{ .sz = sizeof(bad[0]), .flags = RGATE_POOL_NO_HUGE | RGATE_POOL_HUGE_ONLY },
		{ .sz = sizeof(bad[0]), .cache_buffers = UINT32_MAX },
		{ .sz = 3 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(rgate_pool_create(&pool, NULL, &bad[i]), -EINVAL);
	rgate_pool_destroy(NULL);
}

/* The quota holds where nothing is said of the regions, too. */
static void small_quota(void **state)
{
	static const size_t max[] = { 2 * MIB, 4 * MIB, 5 * MIB, 127 * MIB, 128 * MIB, 300 * MIB };
	static const size_t region[] = { 2 * MIB, 4 * MIB, 4 * MIB, 126 * MIB, 128 * MIB,
					 128 * MIB };
	/* ThreadSanitizer touches what is only reserved, and several times that */
	const size_t n = unit_tsan() ? 3 : ARRAY_LEN(max);
	size_t i;

	(void)state;
	for (i = 0; i < n; i++) {
		make(0, max[i], RGATE_POOL_NO_PREFAULT);
		assert_int_equal(stats().region_bytes, region[i]);
		assert_int_equal(stats().quota_bytes, max[i] / region[i] * region[i]);
		end();
	}
}

static void a_buffer(void **state)
{
	const struct rgate_buf *b;

	(void)state;
	make(2 * MIB, 0, 0);
	assert_int_equal(rgate_pool_alloc(pool, 0, &b), -EINVAL);
	assert_int_equal(rgate_pool_alloc(pool, 2 * MIB + 1, &b), -EMSGSIZE);
	assert_int_equal(rgate_pool_alloc(pool, SIZE_MAX, &b), -EMSGSIZE);
	assert_int_equal(rgate_pool_alloc(pool, 100, &b), 0);
	assert_int_equal(b->length, 100);
	assert_int_equal((uintptr_t)b->addr % 64, 0);
	assert_int_equal(b->lkey, 0);
	assert_int_equal(b->rkey, 1);
	memset(b->addr, 1, 100);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	assert_int_equal(rgate_pool_free(pool, NULL), 0);
	/* the whole region is a buffer too */
	assert_int_equal(rgate_pool_flush(pool), 0);
	assert_int_equal(rgate_pool_alloc(pool, 2 * MIB, &b), 0);
	memset(b->addr, 1, b->length);
	assert_int_equal(rgate_pool_alloc(pool, 1, &bufs[0]), -ENOBUFS);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	end();
}

/* No two share a line, whatever the mix; contents stay */
static void apart(const struct rgate_buf *a, const struct rgate_buf *b)
{
	const uintptr_t x = (uintptr_t)a->addr, y = (uintptr_t)b->addr;

	if (x < y)
		assert_true((x + a->length + 63) / 64 <= y / 64);
	else
		assert_true((y + b->length + 63) / 64 <= x / 64);
}

static void mixes(void **state)
{
	unsigned int i, j, k, n = 0, rounds = unit_rounds(20000);
	uint64_t rnd = 7;

	(void)state;
	make(4 * MIB, 0, 0);
	for (k = 0; k < rounds; k++) {
		size_t size = 1 + unit_random(&rnd) % (unit_random(&rnd) % 8 ? 3000 : 200000);

		i = (unsigned int)(unit_random(&rnd) % 200);
		if (bufs[i]) {
			assert_int_equal(unit_pattern_check(bufs[i]->addr, i, bufs[i]->length), 0);
			assert_int_equal(rgate_pool_free(pool, bufs[i]), 0);
			bufs[i] = NULL;
			n--;
		} else if (!rgate_pool_alloc(pool, size, &bufs[i])) {
			assert_int_equal(bufs[i]->length, size);
			unit_pattern(bufs[i]->addr, i, size);
			n++;
		} else {
			bufs[i] = NULL;
		}
		if (k % 500 == 0)
			for (i = 0; i < 200; i++)
				for (j = 0; j < i; j++)
					if (bufs[i] && bufs[j])
						apart(bufs[i], bufs[j]);
	}
	assert_int_equal(stats().used_buffers, n);
	for (i = 0; i < 200; i++) {
		rgate_pool_free(pool, bufs[i]);
		bufs[i] = NULL;
	}
	end();
}

static void carved_exactly(void **state)
{
	/* ThreadSanitizer does touch them, and several times that */
	const size_t size = unit_tsan() ? 16 << 10 : 512 << 10;
	const struct rgate_buf *b;
	unsigned int i, round;
	char *base;

	(void)state;
	/* without touching them: 4096 buffers of 512 KiB are 2 GiB */
	make(MANY * size, 0, RGATE_POOL_NO_PREFAULT | RGATE_POOL_NO_HUGE);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < MANY; i++)
			assert_int_equal(rgate_pool_alloc(pool, size, &bufs[i]), 0);
		assert_int_equal(rgate_pool_alloc(pool, 1, &b), -ENOBUFS);
		assert_int_equal(stats().used_bytes, MANY * size);
		assert_int_equal(stats().free_bytes, 0);
		assert_int_equal(stats().fragmentation_ppm, 0);
		base = bufs[0]->addr;
		for (i = 0; i < MANY; i++)
			if ((char *)bufs[i]->addr < base)
				base = bufs[i]->addr;
		for (i = 0; i < MANY; i++)
			assert_int_equal((uintptr_t)((char *)bufs[i]->addr - base) % size, 0);
		for (i = 0; i < MANY; i++)
			assert_int_equal(rgate_pool_free(pool, bufs[i]), 0);
	}
	memset(bufs, 0, sizeof(bufs));
	end();
}

static void aligned(void **state)
{
	struct rgate_alloc_opts o = RGATE_OPTS(rgate_alloc_opts);
	const struct rgate_buf *b;
	size_t align, size;

	(void)state;
	make(8 * MIB, 0, 0);
	for (align = 1; align <= 4 * MIB; align *= 2) {
		for (size = 1; size <= 3 * MIB; size = size * 3 + 1) {
			o.align = align;
			assert_int_equal(rgate_pool_alloc_opts(pool, size, &o, &b), 0);
			assert_int_equal((uintptr_t)b->addr % align, 0);
			assert_int_equal(b->length, size);
			assert_int_equal(rgate_pool_free(pool, b), 0);
		}
	}
	o.align = 3;
	assert_int_equal(rgate_pool_alloc_opts(pool, 1, &o, &b), -EINVAL);
	o.align = (size_t)2 << 30;
	assert_int_equal(rgate_pool_alloc_opts(pool, 1, &o, &b), -EINVAL);
	o.align = 16 * MIB;
	assert_int_equal(rgate_pool_alloc_opts(pool, 1, &o, &b), -EMSGSIZE);
	o.align = 0;
	o.timeout_ms = -1;
	assert_int_equal(rgate_pool_alloc_opts(pool, 1, &o, &b), -EINVAL);
	o.timeout_ms = 0;
	o.flags = 8;
	assert_int_equal(rgate_pool_alloc_opts(pool, 1, &o, &b), -EINVAL);
	end();
}

static void zeroed(void **state)
{
	struct rgate_alloc_opts o = RGATE_OPTS(rgate_alloc_opts, .flags = RGATE_ALLOC_ZERO);
	const struct rgate_buf *b;
	unsigned int i, k;

	(void)state;
	make(2 * MIB, 0, 0);
	for (k = 0; k < 100; k++) {
		assert_int_equal(rgate_pool_alloc_opts(pool, 1000, &o, &b), 0);
		for (i = 0; i < 1000; i++)
			assert_int_equal(((char *)b->addr)[i], 0);
		memset(b->addr, 0xff, 1000);
		assert_int_equal(rgate_pool_free(pool, b), 0);
		assert_int_equal(rgate_pool_alloc_batch(pool, 1000, &o, bufs, 5), 0);
		for (i = 0; i < 5; i++) {
			assert_int_equal(((char *)bufs[i]->addr)[999], 0);
			memset(bufs[i]->addr, 0xff, 1000);
		}
		assert_int_equal(rgate_pool_free_batch(pool, bufs, 5), 0);
	}
	memset(bufs, 0, sizeof(bufs));
	end();
}

static void batches(void **state)
{
	const struct rgate_buf *b;
	unsigned int i, k;

	(void)state;
	make(2 * MIB, 0, 0);
	for (k = 0; k < 50; k++) {
		assert_int_equal(rgate_pool_alloc_batch(pool, 4096, NULL, bufs, 300), 0);
		for (i = 0; i < 300; i++)
			memset(bufs[i]->addr, (int)i, 4096);
		assert_int_equal(stats().used_buffers, 300);
		assert_int_equal(rgate_pool_free_batch(pool, bufs, 300), 0);
		assert_int_equal(stats().used_buffers, 0);
	}
	/* all or none */
	assert_int_equal(rgate_pool_alloc_batch(pool, 4096, NULL, bufs, 512), 0);
	assert_int_equal(rgate_pool_free(pool, bufs[0]), 0);
	assert_int_equal(rgate_pool_alloc_batch(pool, 4096, NULL, bufs + 600, 2), -ENOBUFS);
	assert_int_equal(stats().used_buffers, 511);
	assert_int_equal(rgate_pool_alloc(pool, 4096, &bufs[0]), 0);
	assert_int_equal(rgate_pool_alloc_batch(pool, 4096, NULL, bufs + 600, 0), 0);
	/* one that is no good does not keep the others */
	b = bufs[100];
	assert_int_equal(rgate_pool_free(pool, b), 0);
	assert_int_equal(rgate_pool_free_batch(pool, bufs, 512), -EALREADY);
	assert_int_equal(stats().used_buffers, 0);
	memset(bufs, 0, sizeof(bufs));
	end();
}

/* A batch of some of those that the thread keeps: what it freed last, each once */
static void batch_of_some(void **state)
{
	const struct rgate_buf *some[3];
	unsigned int i, k, found = 0;

	(void)state;
	make(2 * MIB, 0, 0);
	for (i = 0; i < 8; i++)
		assert_int_equal(rgate_pool_alloc(pool, 4096, &bufs[i]), 0);
	for (i = 0; i < 8; i++)
		assert_int_equal(rgate_pool_free(pool, bufs[i]), 0);
	for (k = 0; k < 2; k++) {
		assert_int_equal(rgate_pool_alloc_batch(pool, 4096, NULL, some, 3), 0);
		assert_true(some[0] != some[1] && some[1] != some[2] && some[0] != some[2]);
		for (i = 0; i < 8; i++)
			found += bufs[i] == some[0] || bufs[i] == some[1] || bufs[i] == some[2];
		assert_int_equal(found, 3 * (k + 1));
		assert_int_equal(stats().used_buffers, 3);
		assert_int_equal(rgate_pool_free_batch(pool, some, 3), 0);
	}
	memset(bufs, 0, sizeof(bufs));
	end();
}

static unsigned int fences;

long __real_syscall(long n, ...);
long __wrap_syscall(long n, ...);
long __wrap_syscall(long n, ...)
{
	long a[6];
	va_list ap;
	unsigned int i;

	va_start(ap, n);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	fences += n == SYS_membarrier && a[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED;
	return __real_syscall(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Who empties other threads' caches has them all pass a barrier first. */
static void fenced(void **state)
{
	(void)state;
	make(2 * MIB, 0, 0);
	if (!rgate_cache_fenced) {
		end();
		unit_skip("no membarrier() on this kernel");
	}
	fences = 0;
	assert_true(rgate_cache_reclaim(pool, UINT64_MAX));
	assert_int_equal(fences, 1);
	end();
}

static unsigned int asked;

pid_t __wrap_getpid(void);
pid_t __real_getpid(void);
pid_t __wrap_getpid(void)
{
	asked++;
	return __real_getpid();
}

/* A system call costs as much as thirty buffers: there is none for each of a batch. */
static void asked_once(void **state)
{
	(void)state;
	make(4 * MIB, 0, 0);
	asked = 0;
	assert_int_equal(rgate_pool_alloc_batch(pool, 1000, NULL, bufs, 3000), 0);
	assert_in_range(asked, 1, 2);
	asked = 0;
	assert_int_equal(rgate_pool_free_batch(pool, bufs, 3000), 0);
	/* For AddressSanitizer threads keep nothing, and are asked each time. */
	if (!unit_asan())
		assert_int_equal(asked, 0);
	memset(bufs, 0, sizeof(bufs));
	end();
}

static size_t moved;

void *__wrap_memmove(void *to, const void *from, size_t len);
void *__real_memmove(void *to, const void *from, size_t len);
void *__wrap_memmove(void *to, const void *from, size_t len)
{
	moved += len;
	return __real_memmove(to, from, len);
}

/* A cache of any size makes room at the same price: each of its pointers is moved once. */
static void room_is_cheap(void **state)
{
	const struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 4 * MIB,
						    .cache_buffers = 1000);
	unsigned int i;

	(void)state;
	assert_int_equal(rgate_pool_create(&pool, NULL, &o), 0);
	assert_int_equal(rgate_pool_alloc_batch(pool, 64, NULL, bufs, MANY), 0);
	moved = 0;
	for (i = 0; i < MANY; i++)
		assert_int_equal(rgate_pool_free(pool, bufs[i]), 0);
	assert_true(moved <= MANY * sizeof(bufs[0]));
	memset(bufs, 0, sizeof(bufs));
	end();
}

/* What is used up is looked for once; and found as soon as there is some again. */
static void dry(void **state)
{
	const struct rgate_buf *b;
	unsigned int i, n;

	(void)state;
	make(2 * MIB, 0, 0);
	for (n = 0; !rgate_pool_alloc(pool, 4096, &bufs[n]); n++)
		;
	assert_int_equal(n, 512);
	fences = 0;
	for (i = 0; i < 1000; i++)
		assert_int_equal(rgate_pool_alloc(pool, 4096, &b), -ENOBUFS);
	assert_int_equal(fences, 0);
	assert_true(stats().reclaims <= 1);
	assert_int_equal(stats().refused, 1001);
	/* one, and the same one over and over */
	for (i = 0; i < 100; i++) {
		assert_int_equal(rgate_pool_free(pool, bufs[i]), 0);
		assert_int_equal(rgate_pool_alloc(pool, 4096, &bufs[i]), 0);
		assert_int_equal(rgate_pool_alloc(pool, 4096, &b), -ENOBUFS);
	}
	assert_true(stats().reclaims <= 1);
	/* of another size, from what others leave behind */
	for (i = 0; i < n; i++)
		assert_int_equal(rgate_pool_free(pool, bufs[i]), 0);
	assert_int_equal(rgate_pool_alloc(pool, 2 * MIB, &b), 0);
	assert_int_equal(rgate_pool_alloc(pool, 64, &bufs[0]), -ENOBUFS);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	assert_int_equal(fences, 0);
	/* There is plenty: threads keep some again. */
	for (i = 0; i < 64; i++)
		assert_int_equal(rgate_pool_alloc(pool, 4096, &bufs[i]), 0);
	for (i = 0; i < 64; i++)
		assert_int_equal(rgate_pool_free(pool, bufs[i]), 0);
	n = stats().cached_buffers;
	memset(bufs, 0, sizeof(bufs));
	end();
	if (unit_asan())
		unit_skip("for AddressSanitizer threads keep nothing: not all of it was tried");
	assert_true(n > 0);
}

/* What describes buffers has a quota of its own: small ones take more of it than their size. */
static void meta_quota(void **state)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
					      .max_size = 4 * MIB, .max_meta = 100,
					      .flags = RGATE_POOL_NO_CACHE);
	const struct rgate_buf *b;
	unsigned int i, n, round;
	uint64_t before;

	(void)state;
	assert_int_equal(rgate_pool_create(&pool, NULL, &o), -ENOBUFS);
	o.max_meta = 300 << 10;
	assert_int_equal(rgate_pool_create(&pool, NULL, &o), 0);
	before = stats().meta_bytes;
	assert_in_range(before, 128 * 21, 16384);
	for (round = 0; round < 2; round++) {
		for (n = 0; n < MANY && !rgate_pool_alloc(pool, 64, &bufs[n]); n++)
			;
		/* four slabs of 1024, not five */
		assert_int_equal(n, 4096);
		assert_int_equal(rgate_pool_alloc(pool, 64, &b), -ENOBUFS);
		assert_in_range(stats().meta_bytes, before + 4 * 65536, o.max_meta);
		assert_int_equal(stats().regions, 1);
		for (i = 0; i < n; i++)
			assert_int_equal(rgate_pool_free(pool, bufs[i]), 0);
	}
	memset(bufs, 0, sizeof(bufs));
	end();
}

static void mistakes(void **state)
{
	struct rgate_buf fake = { .addr = &fake, .length = 5 };
	struct rgate_pool *other, *first;
	const struct rgate_buf *b;

	(void)state;
	make(2 * MIB, 0, 0);
	first = pool;
	make(2 * MIB, 0, 0);
	other = pool;
	pool = first;
	assert_int_equal(rgate_pool_alloc(pool, 100, &b), 0);
	assert_int_equal(rgate_pool_free(other, b), -EINVAL);
	assert_int_equal(rgate_pool_free(pool, &fake), -EINVAL);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	assert_int_equal(rgate_pool_free(pool, b), -EALREADY);
	assert_non_null(strstr(said, "released before"));
	assert_int_equal(stats().double_frees, 1);
	assert_int_equal(stats().foreign_frees, 1);
	end();
	pool = other;
	assert_int_equal(stats().foreign_frees, 1);
	end();
}

static void looked_up(void **state)
{
	const struct rgate_buf *b, *big, *found;
	struct rgate_pool_region r = { .sz = sizeof(r) };
	int local;

	(void)state;
	make(4 * MIB, 0, 0);
	assert_int_equal(rgate_pool_alloc(pool, 100, &b), 0);
	assert_int_equal(rgate_pool_alloc(pool, 700000, &big), 0);
	assert_int_equal(rgate_pool_lookup(pool, b->addr, &found), 0);
	assert_ptr_equal(found, b);
	assert_int_equal(rgate_pool_lookup(pool, (char *)b->addr + 99, &found), 0);
	assert_ptr_equal(found, b);
	assert_int_equal(rgate_pool_lookup(pool, (char *)b->addr + 100, &found), -ENOENT);
	assert_int_equal(rgate_pool_lookup(pool, (char *)big->addr + 699999, &found), 0);
	assert_ptr_equal(found, big);
	assert_int_equal(rgate_pool_lookup(pool, (char *)big->addr + 700000, &found), -ENOENT);
	assert_int_equal(rgate_pool_lookup(pool, &local, &found), -EFAULT);
	assert_int_equal(rgate_pool_region(pool, 0, &r), 0);
	assert_int_equal(rgate_pool_lookup(pool, (char *)r.addr + r.length - 1, &found), -ENOENT);
	assert_int_equal(rgate_pool_lookup(pool, (char *)r.addr + r.length, &found), -EFAULT);
	assert_int_equal(rgate_pool_lookup(pool, (char *)r.addr - 1, &found), -EFAULT);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	assert_int_equal(rgate_pool_lookup(pool, b->addr, &found), -ENOENT);
	assert_int_equal(rgate_pool_free(pool, big), 0);
	end();
}

static void described(void **state)
{
	struct rgate_pool_region reg = { .sz = sizeof(reg) };
	const struct rgate_buf *b;
	struct rgate_remote r;
	struct rgate_desc d;
	char *map;

	(void)state;
	make(4 * MIB, 0, 0);
	assert_int_equal(rgate_pool_alloc(pool, 1000, &b), 0);
	assert_int_equal(rgate_buf_desc(pool, b, 1000, 0, &d), -ERANGE);
	assert_int_equal(rgate_buf_desc(pool, b, 999, 2, &d), -ERANGE);
	assert_int_equal(rgate_buf_desc(pool, b, SIZE_MAX, 2, &d), -ERANGE);
	assert_int_equal(rgate_buf_desc(pool, b, 10, 0, &d), 0);
	assert_int_equal(rgate_desc_parse(&r, &d, sizeof(d)), 0);
	assert_int_equal(r.length, 990);
	/* another process finds the bytes in the region's file */
	assert_int_equal(rgate_pool_region(pool, r.rkey - 1, &reg), 0);
	map = mmap(NULL, reg.length, PROT_READ, MAP_SHARED, reg.fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	strcpy((char *)b->addr + 10, "shared");
	assert_string_equal(map + r.addr, "shared");
	munmap(map, reg.length);
	assert_int_equal(rgate_pool_region(pool, 1, &reg), -ENOENT);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	end();
}

static int count_held(void *ctx, const struct rgate_pool_holder *h)
{
	assert_non_null(h->buf);
	++*(int *)ctx;
	return 0;
}

static int stop_at_once(void *ctx, const struct rgate_pool_holder *h)
{
	(void)ctx;
	(void)h;
	return 99;
}

static void held(void **state)
{
	int n = 0;

	(void)state;
	make(2 * MIB, 0, 0);
	assert_int_equal(rgate_pool_alloc(pool, 100, &bufs[0]), 0);
	assert_int_equal(rgate_pool_alloc(pool, 5000, &bufs[1]), 0);
	assert_int_equal(rgate_pool_alloc(pool, 300000, &bufs[2]), 0);
	assert_int_equal(rgate_pool_held(pool, count_held, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(rgate_pool_held(pool, stop_at_once, NULL), 99);
	assert_int_equal(rgate_pool_free_batch(pool, bufs, 3), 0);
	memset(bufs, 0, sizeof(bufs));
	end();
}

/* A pool that was destroyed is there, and the device has it, until its last buffer comes back */
static void held_beyond_its_end(void **state)
{
	const struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB);
	static const size_t sizes[] = { 100, 5000, 300000, 100, 2048 };
	const int before = fds();
	struct rgate_device *dev;
	unsigned int i;

	(void)state;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_int_equal(rgate_pool_create(&pool, dev, &o), 0);
	for (i = 0; i < ARRAY_LEN(sizes); i++)
		assert_int_equal(rgate_pool_alloc(pool, sizes[i], &bufs[i]), 0);
	/* this one is the thread's own again */
	assert_int_equal(rgate_pool_free(pool, bufs[3]), 0);
	rgate_device_close(dev);
	rgate_pool_destroy(pool);
	assert_non_null(strstr(said, "5000 bytes"));
	assert_non_null(strstr(said, "4 buffers are held"));
	assert_int_equal(mock.mrs, 1);
	memset(bufs[2]->addr, 1, 300000);
	assert_int_equal(rgate_pool_free(pool, bufs[2]), 0);
	memset(bufs[1]->addr, 2, 5000);
	memset(bufs[0]->addr, 3, 100);
	/* what is no buffer, or none any more, is not counted */
	assert_int_equal(rgate_pool_free(pool, NULL), 0);
	assert_int_equal(rgate_pool_free(pool, bufs[3]), -EALREADY);
	bufs[3] = NULL;
	bufs[2] = bufs[4];
	assert_int_equal(mock.mrs, 1);
	assert_int_equal(rgate_pool_free_batch(pool, bufs, 2), 0);
	assert_int_equal(mock.contexts, 1);
	assert_int_equal(rgate_pool_free_batch(pool, bufs + 2, 2), 0);
	memset(bufs, 0, sizeof(bufs));
	assert_int_equal(mock.mrs, 0);
	assert_int_equal(mock.contexts, 0);
	assert_int_equal(fds(), before);
}

static int see_class(void *ctx, const struct rgate_pool_class *c)
{
	struct rgate_pool_class *want = ctx;

	if (c->size == want->size)
		*want = *c;
	return 0;
}

static void counted(void **state)
{
	struct rgate_pool_class c = { .size = 4096 };
	struct rgate_pool_stats st, small = {
		.sz = offsetof(struct rgate_pool_stats, used_buffers),
	};
	unsigned int i;

	(void)state;
	make(4 * MIB, 0, 0);
	for (i = 0; i < 10; i++)
		assert_int_equal(rgate_pool_alloc(pool, 4000, &bufs[i]), 0);
	st = stats();
	assert_int_equal(st.regions, 1);
	assert_int_equal(st.region_bytes, 4 * MIB);
	assert_int_equal(st.used_buffers, 10);
	assert_int_equal(st.used_bytes, 40960);
	assert_int_equal(st.allocs, 10);
	assert_true(st.high_bytes >= st.used_bytes);
	assert_int_equal(rgate_pool_classes(pool, see_class, &c), 0);
	assert_int_equal(c.used, 10);
	assert_int_equal(c.allocs, 10);
	for (i = 0; i < 10; i++)
		assert_int_equal(rgate_pool_free(pool, bufs[i]), 0);
	st = stats();
	assert_int_equal(st.used_buffers, 0);
	assert_int_equal(st.frees, 10);
	/* an older caller's structure is not overrun */
	small.used_buffers = 4711;
	assert_int_equal(rgate_pool_stats(pool, &small), 0);
	assert_int_equal(small.regions, 1);
	assert_int_equal(small.used_buffers, 4711);
	small.sz = 2;
	assert_int_equal(rgate_pool_stats(pool, &small), -EINVAL);
	memset(bufs, 0, sizeof(bufs));
	end();
}

/* What a thread counts beside its buffers ends nowhere: it begins anew, and nothing is lost. */
static void counted_on(void **state)
{
	const uint64_t many = (1ULL << (64 - RGATE_BIN_SHIFT)) - 3;
	const struct rgate_buf *b;
	struct rgate_bin *bin;
	unsigned int i;

	(void)state;
	if (unit_asan())
		unit_skip("for AddressSanitizer threads keep nothing, and count nothing");
	make(2 * MIB, 0, 0);
	assert_int_equal(rgate_pool_alloc(pool, 64, &b), 0);
	bin = &rgate_cache_last->bin[rgate_class_of(64)];
	bin->state += many << RGATE_BIN_SHIFT;
	for (i = 0; i < 10; i++) {
		assert_int_equal(stats().allocs, 1 + many + i);
		assert_int_equal(stats().used_buffers, 1);
		assert_int_equal(rgate_pool_free(pool, b), 0);
		assert_int_equal(stats().frees, 1 + many + i);
		assert_int_equal(rgate_pool_alloc(pool, 64, &b), 0);
	}
	assert_false(rgate_bin_many(bin->state));
	assert_int_equal(rgate_pool_alloc_batch(pool, 64, NULL, bufs, 100), 0);
	assert_int_equal(stats().allocs, 1 + many + i + 100);
	assert_int_equal(stats().used_buffers, 101);
	assert_int_equal(rgate_pool_free_batch(pool, bufs, 100), 0);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	memset(bufs, 0, sizeof(bufs));
	end();
}

static void fragmented(void **state)
{
	struct rgate_pool_stats st;
	unsigned int i;

	(void)state;
	make(4 * MIB, 0, RGATE_POOL_NO_CACHE);
	for (i = 0; i < 16; i++)
		assert_int_equal(rgate_pool_alloc(pool, 256 << 10, &bufs[i]), 0);
	for (i = 0; i < 16; i += 2)
		assert_int_equal(rgate_pool_free(pool, bufs[i]), 0);
	st = stats();
	assert_int_equal(st.free_bytes, 2 * MIB);
	assert_int_equal(st.largest_free, 256 << 10);
	assert_in_range(st.fragmentation_ppm, 874000, 876000);
	assert_int_equal(rgate_pool_alloc(pool, 257 << 10, &bufs[0]), -ENOBUFS);
	assert_int_equal(stats().refused, 1);
	for (i = 1; i < 16; i += 2)
		assert_int_equal(rgate_pool_free(pool, bufs[i]), 0);
	memset(bufs, 0, sizeof(bufs));
	end();
}

static void grows(void **state)
{
	struct rgate_pool_region r = { .sz = sizeof(r) };
	unsigned int i;

	(void)state;
	make(2 * MIB, 7 * MIB, 0);
	assert_int_equal(stats().quota_bytes, 6 * MIB);
	for (i = 0; i < 6; i++)
		assert_int_equal(rgate_pool_alloc(pool, MIB, &bufs[i]), 0);
	assert_int_equal(rgate_pool_alloc(pool, MIB, &bufs[i]), -ENOBUFS);
	assert_int_equal(stats().regions, 3);
	assert_int_equal(stats().grown, 2);
	assert_int_equal(rgate_pool_region(pool, 2, &r), 0);
	assert_int_equal(r.rkey, 3);
	for (i = 0; i < 6; i++)
		assert_int_equal(rgate_pool_free(pool, bufs[i]), 0);
	memset(bufs, 0, sizeof(bufs));
	end();
}

/* The limit of the device, or a failure, on the way */
static void growth_fails(void **state)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
					      .max_size = 20 * MIB);
	struct rgate_device *dev;
	unsigned int i, n;

	(void)state;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	rgate_device_set_mr_limit(dev, 3);
	assert_int_equal(rgate_pool_create(&pool, dev, &o), 0);
	assert_int_equal(rgate_device_mr_count(dev), 1);
	for (n = 0; !rgate_pool_alloc(pool, MIB, &bufs[n]); n++)
		assert_int_not_equal(bufs[n]->lkey, 0);
	assert_int_equal(n, 6);
	assert_int_equal(stats().regions, 3);
	assert_int_equal(stats().grow_failures, 1);
	assert_non_null(strstr(said, "limit of 3"));
	/* it goes on, and grows when it can */
	rgate_device_set_mr_limit(dev, 0);
	mock.fail_mr = 1;
	assert_int_equal(rgate_pool_alloc(pool, MIB, &bufs[n]), -ENOBUFS);
	assert_int_equal(rgate_pool_alloc(pool, MIB, &bufs[n]), 0);
	assert_int_equal(stats().regions, 4);
	/* It has the device until it is gone itself. */
	rgate_device_close(dev);
	assert_int_equal(rgate_pool_alloc(pool, MIB, &bufs[++n]), 0);
	for (i = 0; i <= n; i++)
		assert_int_equal(rgate_pool_free(pool, bufs[i]), 0);
	memset(bufs, 0, sizeof(bufs));
	assert_int_equal(mock.contexts, 1);
	end();
	assert_int_equal(mock.contexts, 0);
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	/* the first region */
	for (i = 1; i < 2; i++) {
		mock.fail_mr = i;
		mock.fail_errno = EFAULT;
		assert_int_equal(rgate_pool_create(&pool, dev, &o), -EFAULT);
	}
	o.flags = RGATE_POOL_NO_PREFAULT;
	assert_int_equal(rgate_pool_create(&pool, dev, &o), -EINVAL);
	rgate_device_close(dev);
}

static void device_descriptor(void **state)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
					      .access = RGATE_ACCESS_REMOTE_READ);
	const struct rgate_buf *b;
	struct rgate_device *dev;
	struct rgate_remote r;
	struct rgate_desc d;

	(void)state;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_int_equal(rgate_pool_create(&pool, dev, &o), 0);
	assert_int_equal(rgate_pool_alloc(pool, 1000, &b), 0);
	assert_int_equal(rgate_buf_desc(pool, b, 5, 10, &d), 0);
	assert_int_equal(rgate_desc_parse(&r, &d, sizeof(d)), 0);
	assert_int_equal(r.addr, (uintptr_t)b->addr + 5);
	assert_int_equal(r.rkey, b->rkey);
	assert_int_equal(r.access, RGATE_ACCESS_REMOTE_READ);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	end();
	o.access = 0;
	assert_int_equal(rgate_pool_create(&pool, dev, &o), 0);
	assert_int_equal(rgate_pool_alloc(pool, 1000, &b), 0);
	assert_int_equal(rgate_buf_desc(pool, b, 5, 10, &d), -EACCES);
	assert_int_equal(rgate_pool_free(pool, b), 0);
	end();
	rgate_device_close(dev);
}

static size_t last_done;

static void on_progress(void *ctx, size_t done, size_t total)
{
	assert_ptr_equal(ctx, &last_done);
	assert_int_equal(total, 64 * MIB);
	assert_true(done >= last_done && done <= total);
	last_done = done;
}

static void memory(void **state)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 64 * MIB,
					      .progress = on_progress,
					      .progress_ctx = &last_done, .threads = 3);
	struct rgate_pool_region r = { .sz = sizeof(r) };
	struct stat st;

	(void)state;
	assert_int_equal(rgate_pool_create(&pool, NULL, &o), 0);
	assert_int_equal(last_done, 64 * MIB);
	assert_int_equal(rgate_pool_region(pool, 0, &r), 0);
	assert_int_equal(r.length, 64 * MIB);
	assert_int_equal((uintptr_t)r.addr % (2 * MIB), 0);
	/* all of it is there before it is used */
	assert_int_equal(fstat(r.fd, &st), 0);
	assert_true(st.st_blocks * 512 >= 64 * (long)MIB || r.huge == RGATE_HUGE_TLB);
	assert_int_equal(rgate_mem_page_size(r.addr), r.page_size);
	end();
	o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB, .node_plus1 = 1000);
	assert_int_equal(rgate_pool_create(&pool, NULL, &o), -EINVAL);
	/* ThreadSanitizer makes ready for what is only reserved, and takes 20 GB to do so */
	if (unit_tsan())
		return;
	/* more than there is; AddressSanitizer makes ready for it, too, but by the CPU alone */
	o = RGATE_OPTS(rgate_pool_opts, .region_size = (size_t)1 << (unit_asan() ? 42 : 44));
	assert_int_equal(rgate_pool_create(&pool, NULL, &o), -ENOMEM);
	assert_non_null(strstr(said, "available"));
	o = RGATE_OPTS(rgate_pool_opts, .region_size = (size_t)1 << (unit_asan() ? 38 : 42),
		       .flags = RGATE_POOL_HUGE_ONLY);
	assert_int_equal(rgate_pool_create(&pool, NULL, &o), -ENOMEM);
	assert_non_null(strstr(said, "nr_hugepages"));
}

static void over_and_over(void **state)
{
	unsigned int i, n = unit_rounds(3000);
	const struct rgate_buf *b;
	int before = fds();

	(void)state;
	for (i = 0; i < n; i++) {
		make(2 * MIB, 0, RGATE_POOL_NO_PREFAULT);
		assert_int_equal(rgate_pool_alloc(pool, 1 + i * 10 % 100000, &b), 0);
		assert_int_equal(rgate_pool_free(pool, b), 0);
		assert_int_equal(pool_ended(pool), 0);
	}
	assert_int_equal(fds(), before);
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, mock_teardown)

static const struct CMUnitTest tests[] = {
	TEST(options), TEST(small_quota), TEST(a_buffer), TEST(mixes), TEST(carved_exactly),
	TEST(aligned),
	TEST(zeroed), TEST(batches), TEST(batch_of_some), TEST(fenced),
	TEST(asked_once), TEST(room_is_cheap), TEST(dry), TEST(meta_quota),
	TEST(mistakes), TEST(looked_up), TEST(described),
	TEST(held), TEST(held_beyond_its_end), TEST(counted), TEST(counted_on), TEST(fragmented),
	TEST(grows), TEST(growth_fails),
	TEST(device_descriptor), TEST(memory), TEST(over_and_over),
};

UNIT_MAIN(tests)
