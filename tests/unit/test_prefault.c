// SPDX-License-Identifier: MIT OR GPL-2.0
/* Memory is made present by one or several threads, or there is an error: never a signal. */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "prefault.h"

#define MIB	((size_t)1 << 20)
#define LEN	(40 * MIB)	/* three pieces of 16 MiB, the last one short */

struct heard {
	unsigned int calls;
	size_t done;
};

static void hear(void *ctx, size_t done, size_t total)
{
	struct heard *h = ctx;

	assert_int_equal(total, LEN);
	assert_true(done >= h->done && done <= total);
	h->done = done;
	h->calls++;
}

static size_t present(void *addr, size_t len)
{
	static unsigned char vec[LEN / 4096];
	size_t i, n = 0;

	assert_int_equal(mincore(addr, len, vec), 0);
	for (i = 0; i < len / 4096; i++)
		n += vec[i] & 1;
	return n * 4096;
}

static void *some(int prot)
{
	void *p = mmap(NULL, LEN, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static unsigned int threads_left = UINT_MAX;

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	if (!threads_left)
		return EAGAIN;
	threads_left--;
	return __real_pthread_create(t, a, fn, arg);
}

/* Fewer threads than were wanted, or none, do it as well. */
static void few_threads(void **state)
{
	unsigned int n;

	(void)state;
	if (sysconf(_SC_PAGESIZE) != 4096)
		unit_skip("pages of another size");
	for (n = 0; n < 3; n++) {
		struct heard h = { 0 };
		void *p = some(PROT_READ | PROT_WRITE);

		threads_left = n;
		assert_int_equal(rgate_prefault(p, LEN, 4, hear, &h), 0);
		threads_left = UINT_MAX;
		assert_int_equal(present(p, LEN), LEN);
		assert_int_equal(h.done, LEN);
		munmap(p, LEN);
	}
}

static void all_of_it(void **state)
{
	static const uint32_t threads[] = { 0, 1, 3, 1000 };
	unsigned int i, told;

	(void)state;
	if (sysconf(_SC_PAGESIZE) != 4096)
		unit_skip("pages of another size");
	for (i = 0; i < ARRAY_LEN(threads); i++) {
		for (told = 0; told < 2; told++) {
			struct heard h = { 0 };
			void *p = some(PROT_READ | PROT_WRITE);

			assert_int_equal(rgate_prefault(p, LEN, threads[i], told ? hear : NULL,
							&h), 0);
			assert_int_equal(present(p, LEN), LEN);
			assert_int_equal(h.calls != 0, told);
			assert_int_equal(h.done, told ? LEN : 0);
			munmap(p, LEN);
		}
	}
}

static void short_one(void **state)
{
	char *p = some(PROT_READ | PROT_WRITE);

	(void)state;
	assert_int_equal(rgate_prefault(p, 3 * 4096, 8, NULL, NULL), 0);
	assert_int_equal(present(p, 4 * 4096), 3 * 4096);
	munmap(p, LEN);
}

/* Behind the end of a file there is nothing: a touch would be SIGBUS. */
static void no_memory(void **state)
{
	unsigned int threads, told;
	int fd = memfd_create("short", MFD_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 20 * MIB), 0);
	for (threads = 1; threads < 4; threads++) {
		for (told = 0; told < 2; told++) {
			struct heard h = { 0 };
			void *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

			assert_true(p != MAP_FAILED);
			assert_int_equal(rgate_prefault(p, LEN, threads, told ? hear : NULL,
							&h), -ENOMEM);
			assert_true(h.done < LEN);
			munmap(p, LEN);
		}
	}
	close(fd);
}

static void not_to_be_written(void **state)
{
	void *p = some(PROT_READ);

	(void)state;
	assert_int_equal(rgate_prefault(p, LEN, 2, NULL, NULL), -EINVAL);
	munmap(p, LEN);
	p = some(PROT_READ | PROT_WRITE);
	munmap((char *)p + LEN - MIB, MIB);
	assert_int_equal(rgate_prefault(p, LEN, 2, NULL, NULL), -ENOMEM);
	munmap(p, LEN - MIB);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(all_of_it),
	cmocka_unit_test(few_threads),
	cmocka_unit_test(short_one),
	cmocka_unit_test(no_memory),
	cmocka_unit_test(not_to_be_written),
};

UNIT_MAIN(tests)
