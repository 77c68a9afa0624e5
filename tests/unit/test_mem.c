// SPDX-License-Identifier: MIT OR GPL-2.0
/* rgate_mem_*: registration, its limits and failures, descriptors, page arithmetic. */
#include "unit.h"
#include "mock_verbs.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static char said[2048];
static struct rgate_device *dev;
static char memory[8192] __attribute__((aligned(4096)));

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
	mock_setup(state);
	return rgate_device_open(&dev, NULL);
}

static int teardown(void **state)
{
	rgate_device_close(dev);
	return mock_teardown(state);
}

static int reg(struct rgate_mem **mem, void *addr, size_t len, uint32_t access)
{
	const struct rgate_mem_opts o = RGATE_OPTS(rgate_mem_opts, .access = access);

	return rgate_mem_register(mem, dev, addr, len, &o);
}

static void registers(void **state)
{
	struct rgate_mem *mem, *again;

	(void)state;
	assert_int_equal(reg(&mem, memory + 5, 1001, RGATE_ACCESS_REMOTE), 0);
	assert_ptr_equal(rgate_mem_addr(mem), memory + 5);
	assert_int_equal(rgate_mem_length(mem), 1001);
	assert_int_equal(rgate_mem_iova(mem), (uintptr_t)memory + 5);
	assert_int_equal(rgate_mem_access(mem), RGATE_ACCESS_REMOTE);
	assert_ptr_equal(rgate_mem_device(mem), dev);
	assert_int_not_equal(rgate_mem_lkey(mem), 0);
	assert_int_equal(rgate_device_mr_count(dev), 1);
	/* the same memory once more */
	assert_int_equal(reg(&again, memory + 5, 1001, 0), 0);
	assert_int_not_equal(rgate_mem_rkey(again), rgate_mem_rkey(mem));
	rgate_mem_deregister(again);
	rgate_mem_deregister(mem);
	rgate_mem_deregister(NULL);
	assert_int_equal(rgate_device_mr_count(dev), 0);
}

/* What is still registered keeps its device, which nobody else gets: it is closed with the last. */
static void closed_before_memory(void **state)
{
	struct rgate_device *next;
	struct rgate_mem *a, *b;

	(void)state;
	assert_int_equal(reg(&a, memory, 100, 0), 0);
	assert_int_equal(reg(&b, memory, 200, 0), 0);
	rgate_device_close(dev);
	assert_non_null(strstr(said, "closed when its 2 memory regions are gone"));
	assert_int_equal(mock.contexts, 1);
	assert_int_equal(rgate_device_open(&next, NULL), 0);
	assert_ptr_not_equal(next, dev);
	assert_int_equal(mock.contexts, 2);
	assert_int_equal(rgate_mem_length(a), 100);
	rgate_mem_deregister(a);
	assert_int_equal(mock.contexts, 2);
	rgate_mem_deregister(b);
	assert_int_equal(mock.contexts, 1);
	assert_int_equal(mock.pds, 1);
	assert_int_equal(mock.mrs, 0);
	dev = next;
}

struct closer {
	pthread_t thread;
	struct rgate_mem *mem;
};

static void *deregisters(void *arg)
{
	struct closer *c = arg;

	rgate_mem_deregister(c->mem);
	return NULL;
}

/* Whoever is last, device or memory, closes it, once. */
static void closed_meanwhile(void **state)
{
	struct closer c[4];
	unsigned int i, k;

	(void)state;
	for (k = 0; k < 200; k++) {
		for (i = 0; i < ARRAY_LEN(c); i++) {
			assert_int_equal(reg(&c[i].mem, memory, 100, 0), 0);
			assert_int_equal(pthread_create(&c[i].thread, NULL, deregisters, &c[i]), 0);
		}
		rgate_device_close(dev);
		for (i = 0; i < ARRAY_LEN(c); i++)
			assert_int_equal(pthread_join(c[i].thread, NULL), 0);
		assert_int_equal(mock.contexts, 0);
		assert_int_equal(mock.pds, 0);
		assert_int_equal(rgate_device_open(&dev, NULL), 0);
	}
}

static void refuses(void **state)
{
	struct rgate_mem_opts o = RGATE_OPTS(rgate_mem_opts);
	struct rgate_mem *mem;

	(void)state;
	assert_int_equal(reg(&mem, memory, 0, 0), -EINVAL);
	assert_int_equal(reg(&mem, (void *)(UINTPTR_MAX - 10), 100, 0), -EINVAL);
	assert_int_equal(reg(&mem, memory, 64, 1U << 20), -EINVAL);
	assert_int_equal(reg(&mem, memory, 64, RGATE_ACCESS_READONLY | RGATE_ACCESS_REMOTE_WRITE),
			 -EINVAL);
	assert_int_equal(reg(&mem, memory, 64, RGATE_ACCESS_READONLY | RGATE_ACCESS_REMOTE_ATOMIC),
			 -EINVAL);
	o.iova = 5;
	assert_int_equal(rgate_mem_register(&mem, dev, memory, 64, &o), -EINVAL);
	o.flags = RGATE_MEM_IOVA;
	o.iova = UINT64_MAX - 10;
	assert_int_equal(rgate_mem_register(&mem, dev, memory, 64, &o), -EINVAL);
	o = RGATE_OPTS(rgate_mem_opts, .flags = RGATE_MEM_ON_DEMAND);
	assert_int_equal(rgate_mem_register(&mem, dev, memory, 64, &o), -EOPNOTSUPP);
	assert_string_equal(said, "mock0 has no on-demand paging");
	assert_int_equal(rgate_mem_register(&mem, NULL, memory, 64, NULL), -EINVAL);
	assert_int_equal(rgate_mem_register_dmabuf(&mem, dev, -1, 0, 64, NULL), -EBADF);
	assert_int_equal(rgate_mem_register_dmabuf(&mem, dev, 999, 0, 64, NULL), -EBADF);
	assert_int_equal(rgate_device_mr_count(dev), 0);
}

/* Each right by itself is asked of the device, and no other */
static void rights(void **state)
{
	static const struct {
		uint32_t access;
		int verbs;
	} cases[] = {
		{ 0, IBV_ACCESS_LOCAL_WRITE },
		{ RGATE_ACCESS_READONLY, 0 },
		{ RGATE_ACCESS_REMOTE_READ, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ },
		{ RGATE_ACCESS_REMOTE_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE },
		{ RGATE_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC },
		{ RGATE_ACCESS_RELAXED, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING },
	};
	struct rgate_mem *mem;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(reg(&mem, memory, 64, cases[i].access), 0);
		assert_int_equal(mock.access, cases[i].verbs);
		rgate_mem_deregister(mem);
	}
}

static void no_atomics(void **state)
{
	struct rgate_mem *mem;

	(void)state;
	rgate_device_close(dev);
	mock.dev[0].no_atomics = true;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_int_equal(reg(&mem, memory, 64, RGATE_ACCESS_REMOTE_ATOMIC), -EOPNOTSUPP);
	assert_string_equal(said, "mock0 has no atomic operations");
	assert_int_equal(reg(&mem, memory, 64, RGATE_ACCESS_REMOTE_WRITE), 0);
	rgate_mem_deregister(mem);
}

static void soft_limit(void **state)
{
	struct rgate_mem *mem[8];
	int i;

	(void)state;
	rgate_device_set_mr_limit(dev, 7);
	for (i = 0; i < 7; i++)
		assert_int_equal(reg(&mem[i], memory, 64, 0), 0);
	assert_int_equal(reg(&mem[7], memory, 64, 0), -ENOSPC);
	assert_non_null(strstr(said, "pool"));
	assert_int_equal(mock.mrs, 7);
	/* a lower limit leaves those there are */
	rgate_device_set_mr_limit(dev, 3);
	rgate_mem_deregister(mem[6]);
	assert_int_equal(reg(&mem[6], memory, 64, 0), -ENOSPC);
	rgate_device_set_mr_limit(dev, 0);
	assert_int_equal(reg(&mem[6], memory, 64, 0), 0);
	for (i = 0; i < 7; i++)
		rgate_mem_deregister(mem[i]);
}

/* A device that is full says ENOMEM or EINVAL: it is told apart from want of memory */
static void device_limit(void **state)
{
	struct rgate_mem *mem[40];
	int i, n, kind;

	(void)state;
	for (kind = 0; kind < 2; kind++) {
		rgate_device_close(dev);
		mock.dev[0].max_mr = 30;
		mock.full_errno = kind ? EINVAL : ENOMEM;
		assert_int_equal(rgate_device_open(&dev, NULL), 0);
		for (n = 0; n < 40 && !reg(&mem[n], memory, 64, 0); n++)
			;
		assert_int_equal(n, 30);
		assert_int_equal(reg(&mem[n], memory, 64, 0), -ENOSPC);
		for (i = 0; i < n; i++)
			rgate_mem_deregister(mem[i]);
	}
	/* far from the limit it is memory */
	mock.fail_mr = 1;
	rgate_device_close(dev);
	mock.dev[0].max_mr = 100000;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_int_equal(reg(&mem[0], memory, 64, 0), -ENOMEM);
}

static void failures(void **state)
{
	struct rgate_mem *mem;

	(void)state;
	mock.fail_mr = 1;
	mock.fail_errno = EFAULT;
	assert_int_equal(reg(&mem, memory, 64, 0), -EFAULT);
	assert_non_null(strstr(said, "ringgate probe"));
	mock.fail_mr = 1;
	mock.fail_errno = EOPNOTSUPP;
	assert_int_equal(rgate_mem_register_dmabuf(&mem, dev, 0, 0, 64, NULL), -EOPNOTSUPP);
	assert_int_equal(rgate_device_mr_count(dev), 0);
	assert_int_equal(reg(&mem, memory, 64, 0), 0);
	mock.gone = true;
	rgate_mem_deregister(mem);
	assert_int_equal(rgate_device_mr_count(dev), 0);
	assert_int_equal(reg(&mem, memory, 64, 0), -EIO);
}

/* What has a memory window on it stays with the device until that is gone, whoever asks then */
static void windows(void **state)
{
	struct rgate_mem *mem[3], *more;
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		assert_int_equal(reg(&mem[i], memory, 64, 0), 0);
	assert_int_equal(rgate_device_mr_left(dev), 0);
	mock.windows = true;
	rgate_mem_deregister(mem[0]);
	assert_non_null(strstr(said, "memory windows"));
	rgate_mem_deregister(mem[1]);
	assert_int_equal(rgate_device_mr_left(dev), 2);
	assert_int_equal(rgate_device_mr_count(dev), 3);
	assert_int_equal(mock.mrs, 3);
	mock.windows = false;
	rgate_mem_deregister(mem[2]);
	assert_int_equal(mock.mrs, 0);
	assert_int_equal(rgate_device_mr_left(dev), 0);
	/* who wants a region gets the place of one that was left */
	rgate_device_set_mr_limit(dev, 1);
	assert_int_equal(reg(&more, memory, 64, 0), 0);
	mock.windows = true;
	rgate_mem_deregister(more);
	assert_int_equal(reg(&more, memory, 64, 0), -ENOSPC);
	mock.windows = false;
	assert_int_equal(reg(&more, memory, 64, 0), 0);
	assert_int_equal(mock.mrs, 1);
	/* nodes look after their device, and after these with it */
	mock.windows = true;
	rgate_mem_deregister(more);
	assert_int_equal(rgate_device_check(dev), 0);
	assert_int_equal(mock.mrs, 1);
	mock.windows = false;
	assert_int_equal(rgate_device_check(dev), 0);
	assert_int_equal(mock.mrs, 0);
	assert_int_equal(reg(&more, memory, 64, 0), 0);
	/* and the last to close takes them along; teardown sees that nothing is there */
	mock.windows = true;
	rgate_mem_deregister(more);
	mock.windows = false;
}

static void too_large(void **state)
{
	struct rgate_mem *mem;

	(void)state;
	rgate_device_close(dev);
	mock.dev[0].max_mr_size = 4096;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_int_equal(reg(&mem, memory, 8192, 0), -ENOSPC);
	assert_int_equal(reg(&mem, memory, 4096, 0), 0);
	rgate_mem_deregister(mem);
}

/* The process may lock nothing, and the device says ENOMEM */
static int without_memlock(int sock, void *arg)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { 0 };
	struct rlimit lim = { 4096, 4096 };
	struct rgate_device *own;
	struct rgate_mem *mem;

	(void)sock;
	(void)arg;
	said[0] = '\0';
	unit_require(!setrlimit(RLIMIT_MEMLOCK, &lim));
	unit_require(!syscall(SYS_capset, &h, d));
	unit_require(!rgate_device_open(&own, NULL));
	mock.fail_mr = 1;
	unit_require(rgate_mem_register(&mem, own, memory, 8192, NULL) == -ENOBUFS);
	unit_require(strstr(said, "ulimit -l 8"));
	unit_require(strstr(said, "LimitMEMLOCK"));
	/* what would fit failed for another reason */
	mock.fail_mr = 1;
	unit_require(rgate_mem_register(&mem, own, memory, 4096, NULL) == -ENOMEM);
	rgate_device_close(own);
	return 0;
}

static void memlock(void **state)
{
	int sock, pid = unit_fork(without_memlock, NULL, &sock);

	(void)state;
	unit_reap(pid, 0);
	close(sock);
}

static int in_child(int sock, void *arg)
{
	struct rgate_mem *mem = arg, *more;

	(void)sock;
	rgate_mem_deregister(mem);
	unit_require(mock.mrs == 1);
	unit_require(rgate_mem_register(&more, dev, memory, 64, NULL) == -EPERM);
	unit_require(rgate_mem_register_dmabuf(&more, dev, 0, 0, 64, NULL) == -EPERM);
	return 0;
}

static void after_fork(void **state)
{
	struct rgate_mem *mem;
	int sock, pid;

	(void)state;
	assert_int_equal(reg(&mem, memory, 64, 0), 0);
	pid = unit_fork(in_child, mem, &sock);
	unit_reap(pid, 0);
	close(sock);
	rgate_mem_deregister(mem);
}

static void descriptors(void **state)
{
	struct rgate_mem_opts o = RGATE_OPTS(rgate_mem_opts, .access = RGATE_ACCESS_REMOTE,
					     .flags = RGATE_MEM_IOVA, .iova = 0x1000000);
	struct rgate_mem *mem, *closed;
	struct rgate_desc d, e;
	struct rgate_remote r;

	(void)state;
	assert_int_equal(rgate_mem_register(&mem, dev, memory, 8192, &o), 0);
	assert_int_equal(rgate_mem_desc(mem, 0, 8192, &d), 0);
	assert_int_equal(rgate_mem_desc(mem, 8191, 1, &d), 0);
	assert_int_equal(rgate_mem_desc(mem, 0, 0, &d), -ERANGE);
	assert_int_equal(rgate_mem_desc(mem, 0, 8193, &d), -ERANGE);
	assert_int_equal(rgate_mem_desc(mem, 8192, 1, &d), -ERANGE);
	assert_int_equal(rgate_mem_desc(mem, SIZE_MAX, 2, &d), -ERANGE);
	assert_int_equal(rgate_mem_desc(mem, 2, SIZE_MAX, &d), -ERANGE);
	assert_int_equal(rgate_mem_desc(mem, 100, 50, &d), 0);
	assert_int_equal(rgate_desc_parse(&r, &d, sizeof(d)), 0);
	assert_int_equal(r.addr, 0x1000000 + 100);
	assert_int_equal(r.length, 50);
	assert_int_equal(r.rkey, rgate_mem_rkey(mem));
	assert_int_equal(r.access, RGATE_ACCESS_REMOTE);
	rgate_mem_deregister(mem);
	/* registered anew it is another one */
	assert_int_equal(rgate_mem_register(&mem, dev, memory, 8192, &o), 0);
	assert_int_equal(rgate_mem_desc(mem, 100, 50, &e), 0);
	assert_int_not_equal(d.epoch, e.epoch);
	rgate_mem_deregister(mem);
	assert_int_equal(reg(&closed, memory, 64, 0), 0);
	assert_int_equal(rgate_mem_desc(closed, 0, 64, &d), -EACCES);
	rgate_mem_deregister(closed);
}

/* Every byte of a descriptor, changed; and every length but the right one */
static void malformed(void **state)
{
	static const struct rgate_desc good = {
		.magic = RGATE_DESC_MAGIC, .version = RGATE_DESC_VERSION,
		.access = RGATE_ACCESS_REMOTE_READ, .rkey = 7, .addr = 4096, .length = 10,
		.epoch = 3,
	};
	unsigned char raw[sizeof(good) + 1];
	struct rgate_remote r;
	struct rgate_desc d;
	unsigned int i, bit;
	size_t len;

	(void)state;
	memcpy(raw + 1, &good, sizeof(good));
	/* at any address */
	assert_int_equal(rgate_desc_parse(&r, raw + 1, sizeof(good)), 0);
	assert_int_equal(r.addr, 4096);
	for (len = 0; len <= sizeof(raw); len++)
		if (len != sizeof(good))
			assert_int_equal(rgate_desc_parse(&r, raw + 1, len), -EPROTO);
	for (i = 0; i < sizeof(good); i++) {
		for (bit = 0; bit < 8; bit++) {
			int want = 0, err;

			raw[1 + i] ^= (unsigned char)(1U << bit);
			err = rgate_desc_parse(&r, raw + 1, sizeof(good));
			if (i < 2 || i >= 28 || (i == 3 && bit > 4))
				want = -EPROTO;
			else if (i == 2)
				want = -EPROTONOSUPPORT;
			assert_int_equal(err, want);
			raw[1 + i] ^= (unsigned char)(1U << bit);
		}
	}
	d = good;
	d.length = 0;
	assert_int_equal(rgate_desc_parse(&r, &d, sizeof(d)), -EPROTO);
	d.length = htole64(UINT64_MAX);
	assert_int_equal(rgate_desc_parse(&r, &d, sizeof(d)), -EPROTO);
	/* up to the very end of the address space */
	d.addr = htole64(UINT64_MAX - 9);
	d.length = htole64(10);
	assert_int_equal(rgate_desc_parse(&r, &d, sizeof(d)), 0);
	d.length = htole64(11);
	assert_int_equal(rgate_desc_parse(&r, &d, sizeof(d)), -EPROTO);
}

static void pages(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *base, *map;
	size_t span;

	(void)state;
	assert_int_equal(rgate_mem_pages((void *)0x12345, 1, 4096, &base, &span), 0);
	assert_ptr_equal(base, (void *)0x12000);
	assert_int_equal(span, 4096);
	assert_int_equal(rgate_mem_pages((void *)0x12fff, 2, 4096, &base, &span), 0);
	assert_int_equal(span, 8192);
	assert_int_equal(rgate_mem_pages((void *)0x200001, 1, 2 << 20, &base, &span), 0);
	assert_ptr_equal(base, (void *)0x200000);
	assert_int_equal(span, 2 << 20);
	assert_int_equal(rgate_mem_pages(memory, 1, 0, &base, &span), 0);
	assert_int_equal(span, page);
	assert_int_equal(rgate_mem_pages(memory, 0, 0, &base, &span), -EINVAL);
	assert_int_equal(rgate_mem_pages(memory, 1, 3000, &base, &span), -EINVAL);
	assert_int_equal(rgate_mem_pages((void *)8, SIZE_MAX, 0, &base, &span), -EOVERFLOW);
	assert_int_equal(rgate_mem_pages((void *)(UINTPTR_MAX - 5), 2, 0, &base, &span),
			 -EOVERFLOW);
	assert_int_equal(rgate_mem_page_size(memory), page);
	map = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(rgate_mem_page_size(map), page);
	munmap(map, page);
	assert_int_equal(rgate_mem_page_size(map), -EFAULT);
	assert_int_equal(rgate_mem_page_size(NULL), -EFAULT);
}

static void in_words(void **state)
{
	(void)state;
	assert_non_null(strstr(rgate_strerror("rgate_mem_", -ENODEV), "RDMA"));
	assert_string_equal(rgate_strerror("rgate_mem_", ENODEV),
			    rgate_strerror("rgate_mem_", -ENODEV));
	/* what is not its own comes from the other list */
	assert_string_equal(rgate_strerror("rgate_mem_", -ENOTSOCK),
			    rgate_strerror(NULL, -ENOTSOCK));
	assert_string_equal(rgate_strerror("rgate_mem_", 0), rgate_strerror(NULL, 0));
	assert_non_null(rgate_strerror("rgate_mem_", INT32_MIN));
}

static void *hammer(void *arg)
{
	unsigned int i, n = unit_rounds(5000);
	struct rgate_mem *mem;

	(void)arg;
	for (i = 0; i < n; i++) {
		int err = reg(&mem, memory, 64, RGATE_ACCESS_REMOTE);

		if (err && err != -ENOSPC)
			return (void *)1;
		if (!err)
			rgate_mem_deregister(mem);
	}
	return NULL;
}

/* The limit holds and is given back whoever meets it */
static void threads(void **state)
{
	pthread_t t[4];
	void *bad;
	int i;

	(void)state;
	rgate_device_set_mr_limit(dev, 2);
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, hammer, NULL), 0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(t[i], &bad), 0);
		assert_null(bad);
	}
	assert_int_equal(rgate_device_mr_count(dev), 0);
	assert_int_equal(mock.mrs, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(registers, setup, teardown),
	cmocka_unit_test_setup_teardown(closed_before_memory, setup, teardown),
	cmocka_unit_test_setup_teardown(closed_meanwhile, setup, teardown),
	cmocka_unit_test_setup_teardown(refuses, setup, teardown),
	cmocka_unit_test_setup_teardown(rights, setup, teardown),
	cmocka_unit_test_setup_teardown(no_atomics, setup, teardown),
	cmocka_unit_test_setup_teardown(soft_limit, setup, teardown),
	cmocka_unit_test_setup_teardown(device_limit, setup, teardown),
	cmocka_unit_test_setup_teardown(failures, setup, teardown),
	cmocka_unit_test_setup_teardown(windows, setup, teardown),
	cmocka_unit_test_setup_teardown(too_large, setup, teardown),
	cmocka_unit_test_setup_teardown(memlock, setup, teardown),
	cmocka_unit_test_setup_teardown(after_fork, setup, teardown),
	cmocka_unit_test_setup_teardown(descriptors, setup, teardown),
	cmocka_unit_test_setup_teardown(malformed, setup, teardown),
	cmocka_unit_test_setup_teardown(pages, setup, teardown),
	cmocka_unit_test_setup_teardown(in_words, setup, teardown),
	cmocka_unit_test_setup_teardown(threads, setup, teardown),
};

UNIT_MAIN(tests)
