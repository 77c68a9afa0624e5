// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The memory of a pool's region: which pages it has, where it is bound to, and what is left
 * when one of the system calls fails, each in turn: nothing.
 */
#include "unit.h"
#include "backing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB	((size_t)1 << 20)
#define LEN	(4 * MIB)
#define THP	"/sys/kernel/mm/transparent_hugepage/shmem_enabled"

enum call { NONE, MEMFD, TRUNCATE, SEALS, MAP, ADVISE, BIND };

static struct {
	enum call call;		/* of these the n-th fails, from 1 */
	unsigned int nth, seen;
	int err;
	const char *thp, *meminfo;	/* what those files say; NULL: there is none */
	const char *max[3], *used[3];	/* of the control groups, from the outermost */
	bool grouped;
	bool huge;		/* There are huge pages: ordinary ones are as good here. */
	unsigned int huge_asked;
	/* The last mbind() */
	unsigned long mask[16], mode, bits;
	const void *bound;
} fake;

static bool fails(enum call call)
{
	if (fake.call != call || ++fake.seen != fake.nth)
		return false;
	errno = fake.err;
	return true;
}

int __wrap_memfd_create(const char *name, unsigned int flags);
int __wrap_ftruncate(int fd, off_t len);
int __wrap_fcntl(int fd, int cmd, ...);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int __wrap_madvise(void *addr, size_t len, int advice);
int __wrap_open(const char *path, int flags, ...);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);
long __wrap_syscall(long n, ...);
long __real_syscall(long n, ...);

int __wrap_memfd_create(const char *name, unsigned int flags)
{
	if (flags & MFD_HUGETLB) {
		fake.huge_asked++;
		if (!fake.huge) {
			errno = ENOMEM;
			return -1;
		}
		flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	}
	return fails(MEMFD) ? -1 : (int)__real_syscall(SYS_memfd_create, name, flags);
}

int __wrap_ftruncate(int fd, off_t len)
{
	return fails(TRUNCATE) ? -1 : (int)__real_syscall(SYS_ftruncate, fd, len);
}

int __wrap_fcntl(int fd, int cmd, ...)
{
	va_list ap;
	long arg;

	va_start(ap, cmd);
	arg = va_arg(ap, long);
	va_end(ap);
	if (cmd == F_ADD_SEALS && fails(SEALS))
		return -1;
	return (int)__real_syscall(SYS_fcntl, fd, cmd, arg);
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	const size_t off_by = 3 * (size_t)sysconf(_SC_PAGESIZE);
	char *at;

	if (fails(MAP))
		return MAP_FAILED;
	/* Room for what is to be aligned never is itself. */
	if (flags & MAP_NORESERVE) {
		at = (char *)__real_syscall(SYS_mmap, addr, len + off_by, prot, flags, fd, off);
		munmap(at, off_by);
		return at + off_by;
	}
	return (void *)__real_syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

int __wrap_madvise(void *addr, size_t len, int advice)
{
	return fails(ADVISE) ? -1 : (int)__real_syscall(SYS_madvise, addr, len, advice);
}

/* A file that says @text */
static int saying(const char *text)
{
	const int fd = (int)__real_syscall(SYS_memfd_create, "text", MFD_CLOEXEC);

	if (!text) {
		close(fd);
		errno = ENOENT;
		return -1;
	}
	unit_require(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	lseek(fd, 0, SEEK_SET);
	return fd;
}

int __wrap_open(const char *path, int flags, ...)
{
	if (!strcmp(path, THP))
		return saying(fake.thp);
	return (int)__real_syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

/* Control groups of which this process is in the innermost */
static const char *const groups[] = { "/groups", "/groups/a", "/groups/a/b" };

static const char *group_file(const char *path)
{
	size_t i, len;

	for (i = 0; i < ARRAY_LEN(groups); i++) {
		len = strlen(groups[i]);
		if (strncmp(path, groups[i], len))
			continue;
		if (!strcmp(path + len, "/memory.max"))
			return fake.max[i];
		if (!strcmp(path + len, "/memory.current"))
			return fake.used[i];
		if (!strcmp(path + len, "/memory.stat"))
			return "anon 77\ninactive_file 1048576\nactive_file 2097152\n";
	}
	return NULL;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	const char *text;
	int fd;

	if (!strcmp(path, "/proc/meminfo"))
		text = fake.meminfo;
	else if (!strcmp(path, "/proc/self/mountinfo"))
		text = "21 1 0:19 / /proc rw - proc none rw\n"
		       "22 1 0:20 / /groups rw - cgroup2 cgroup2 rw\n";
	else if (!strcmp(path, "/proc/self/cgroup"))
		text = fake.grouped ? "4:memory:/a/b\n0::/a/b\n" : "4:memory:/a/b\n";
	else if (!strncmp(path, groups[0], strlen(groups[0])))
		text = group_file(path);
	else
		return __real_fopen(path, mode);
	fd = saying(text);
	return fd < 0 ? NULL : fdopen(fd, "r");
}

/* Nodes are the test's. */
long __wrap_syscall(long n, ...)
{
	unsigned long a[6];
	unsigned int i;
	va_list ap;

	va_start(ap, n);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (n != SYS_mbind)
		return __real_syscall(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (fails(BIND))
		return -1;
	fake.bound = (const void *)a[0];
	fake.mode = a[2];
	fake.bits = a[4];
	memcpy(fake.mask, (const void *)a[3], 1024 / 8);
	return 0;
}

static struct rgate_backing b;

static int make(uint32_t flags, uint32_t node_plus1)
{
	const struct rgate_backing_opts o = { .name = "test", .len = LEN, .flags = flags,
					      .node_plus1 = node_plus1, .threads = 1 };

	fake.seen = 0;
	return rgate_backing_make(&b, &o);
}

/* Pages that are mapped here, of whatever kind */
static unsigned long mapped(void)
{
	FILE *f = __real_fopen("/proc/self/statm", "r");
	unsigned long n = 0;

	unit_require(f && fscanf(f, "%lu", &n) == 1);
	fclose(f);
	/* A sanitizer maps as it likes. */
	return unit_asan() || unit_tsan() ? 0 : n;
}

static int setup(void **state)
{
	(void)state;
	rgate_log_set(NULL, NULL);
	memset(&fake, 0, sizeof(fake));
	fake.thp = "always within_size advise [never] deny force\n";
	return 0;
}

static void whole(void **state)
{
	unsigned int fds;
	unsigned long before;
	struct stat st;
	int i;

	(void)state;
	(void)mapped();
	fds = unit_entries("/proc/self/fd");
	before = mapped();
	/* wherever the kernel finds room */
	for (i = 0; i < 4; i++) {
		assert_int_equal(make(RGATE_POOL_NO_HUGE | RGATE_POOL_NO_PREFAULT, 0), 0);
		assert_int_equal((uintptr_t)b.addr % (2 * MIB), 0);
		assert_int_equal(b.len, LEN);
		assert_int_equal(b.page_size, sysconf(_SC_PAGESIZE));
		assert_int_equal(b.huge, RGATE_HUGE_NONE);
		assert_int_equal(b.node, -1);
		assert_int_equal(fake.huge_asked, 0);
		/* No more is mapped than that, nor is more open. */
		if (before)
			assert_int_equal((mapped() - before) * b.page_size, LEN);
		assert_int_equal(unit_entries("/proc/self/fd"), fds + 1);
		assert_int_equal(fstat(b.fd, &st), 0);
		assert_int_equal(st.st_size, LEN);
		assert_int_equal(fcntl(b.fd, F_GET_SEALS),
				 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
		assert_int_equal(fcntl(b.fd, F_GETFD), FD_CLOEXEC);
		((char *)b.addr)[0] = 1;
		((char *)b.addr)[LEN - 1] = 1;
		rgate_backing_free(&b);
		assert_null(b.addr);
		assert_int_equal(mapped(), before);
		assert_int_equal(unit_entries("/proc/self/fd"), fds);
		rgate_backing_free(&b);
	}
}

static void failures(void **state)
{
	static const struct {
		enum call call;
		unsigned int nth;
		int err;
	} cases[] = {
		{ MEMFD, 1, EMFILE }, { TRUNCATE, 1, ENOSPC }, { SEALS, 1, EPERM },
		{ MAP, 1, ENOMEM }, { MAP, 2, EAGAIN }, { ADVISE, 1, EINVAL },
		{ BIND, 1, EIO },
	};
	unsigned int fds;
	unsigned long before;
	size_t i;
	int other;

	(void)state;
	fds = unit_entries("/proc/self/fd");
	before = mapped();
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		fake.call = cases[i].call;
		fake.nth = cases[i].nth;
		fake.err = cases[i].err;
		assert_int_equal(make(RGATE_POOL_NO_PREFAULT | RGATE_POOL_NO_HUGE, 1),
				 -cases[i].err);
		assert_int_equal(unit_entries("/proc/self/fd"), fds);
		assert_int_equal(unit_mappings("ringgate-test"), 0);
		/* What could not be mapped over is left alone: it may be another's by now. */
		if (before && cases[i].call == MAP && cases[i].nth == 2)
			before += LEN / (size_t)sysconf(_SC_PAGESIZE);
		assert_int_equal(mapped(), before);
		/* Nothing is left to be freed: the number may be another's file by now. */
		other = dup(0);
		rgate_backing_free(&b);
		assert_int_equal(fcntl(other, F_GETFD), 0);
		close(other);
	}
}

static void huge(void **state)
{
	(void)state;
	/* There are none, and nothing else will do. */
	assert_int_equal(make(RGATE_POOL_HUGE_ONLY | RGATE_POOL_NO_PREFAULT, 0), -ENOMEM);
	assert_int_equal(fake.huge_asked, 1);
	/* ... or will */
	assert_int_equal(make(RGATE_POOL_NO_PREFAULT, 0), 0);
	assert_int_equal(b.huge, RGATE_HUGE_NONE);
	assert_int_equal(b.page_size, sysconf(_SC_PAGESIZE));
	rgate_backing_free(&b);
	fake.huge = true;
	assert_int_equal(make(RGATE_POOL_HUGE_ONLY | RGATE_POOL_NO_PREFAULT, 0), 0);
	assert_int_equal(b.huge, RGATE_HUGE_TLB);
	assert_int_equal(b.page_size, 2 * MIB);
	rgate_backing_free(&b);
	/* They are there, but cannot be mapped. */
	fake.call = MAP;
	fake.nth = 1;
	fake.err = ENOMEM;
	assert_int_equal(make(RGATE_POOL_HUGE_ONLY | RGATE_POOL_NO_PREFAULT, 0), -ENOMEM);
	assert_int_equal(make(RGATE_POOL_NO_PREFAULT, 0), 0);
	assert_int_equal(b.huge, RGATE_HUGE_NONE);
	rgate_backing_free(&b);
	assert_int_equal(unit_mappings("ringgate-test"), 0);
}

/* As the system has transparent huge pages for memory of this kind */
static void transparent(void **state)
{
	static const struct {
		const char *text;
		enum rgate_pool_huge huge;
	} cases[] = {
		{ "[always] within_size advise never deny force\n", RGATE_HUGE_THP },
		{ "always [within_size] advise never deny force\n", RGATE_HUGE_THP },
		{ "always within_size [advise] never deny force\n", RGATE_HUGE_THP },
		{ "always within_size advise never deny [force]\n", RGATE_HUGE_THP },
		{ "always within_size advise [never] deny force\n", RGATE_HUGE_NONE },
		{ "always within_size advise never [deny] force\n", RGATE_HUGE_NONE },
		{ "", RGATE_HUGE_NONE }, { NULL, RGATE_HUGE_NONE },
	};
	const unsigned int fds = unit_entries("/proc/self/fd");
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		fake.thp = cases[i].text;
		assert_int_equal(make(RGATE_POOL_NO_PREFAULT, 0), 0);
		assert_int_equal(b.huge, cases[i].huge);
		rgate_backing_free(&b);
		assert_int_equal(make(RGATE_POOL_NO_PREFAULT | RGATE_POOL_NO_HUGE, 0), 0);
		assert_int_equal(b.huge, RGATE_HUGE_NONE);
		rgate_backing_free(&b);
	}
	/* The kernel does not know of them after all. */
	fake.thp = cases[0].text;
	fake.call = ADVISE;
	fake.nth = 2;
	fake.err = EINVAL;
	assert_int_equal(make(RGATE_POOL_NO_PREFAULT, 0), 0);
	assert_int_equal(b.huge, RGATE_HUGE_NONE);
	rgate_backing_free(&b);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
}

static void nodes(void **state)
{
	static const uint32_t node[] = { 0, 1, 63, 64, 1023 };
	const uint32_t flags = RGATE_POOL_NO_HUGE | RGATE_POOL_NO_PREFAULT;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(node); i++) {
		assert_int_equal(make(flags, node[i] + 1), 0);
		assert_int_equal(b.node, node[i]);
		assert_ptr_equal(fake.bound, b.addr);
		assert_int_equal(fake.mode, MPOL_BIND);
		/* The kernel takes one bit less than it is told. */
		assert_int_equal(fake.bits, 1024 + 1);
		for (k = 0; k < 16; k++)
			assert_true(fake.mask[k] ==
				    (k == node[i] / 64 ? 1UL << node[i] % 64 : 0));
		rgate_backing_free(&b);
	}
	assert_int_equal(make(flags, 1025), -EINVAL);
	assert_int_equal(unit_mappings("ringgate-test"), 0);
}

/* What there is not is not begun with; it is another thing where nothing is touched. */
static void available(void **state)
{
	(void)state;
	fake.meminfo = "MemTotal: 1 kB\nMemAvailable: 4096 kB\nMemFree: 1 kB\n";
	assert_int_equal(make(RGATE_POOL_NO_HUGE, 0), 0);
	rgate_backing_free(&b);
	fake.meminfo = "MemTotal: 9999 kB\nMemAvailable: 4095 kB\nMemFree: 9999 kB\n";
	assert_int_equal(make(RGATE_POOL_NO_HUGE, 0), -ENOMEM);
	assert_int_equal(make(0, 0), -ENOMEM);
	assert_int_equal(make(RGATE_POOL_NO_HUGE | RGATE_POOL_NO_PREFAULT, 0), 0);
	rgate_backing_free(&b);
	fake.meminfo = "MemFree: 1 kB\n";
	assert_int_equal(make(RGATE_POOL_NO_HUGE, 0), 0);
	rgate_backing_free(&b);
	fake.meminfo = NULL;
	assert_int_equal(make(RGATE_POOL_NO_HUGE, 0), 0);
	rgate_backing_free(&b);
}

/* A limit of this process's group, or of one above it, is as good as the machine's. */
static void limited(void **state)
{
	/* LEN, and 1 MiB less; of what is used 3 MiB are pages of files. */
	static const char fits[] = "20971520\n", short_of_it[] = "19922944\n";
	static const char used[] = "19922944\n";
	size_t i;

	(void)state;
	fake.grouped = true;
	assert_int_equal(make(RGATE_POOL_NO_HUGE, 0), 0);
	rgate_backing_free(&b);
	for (i = 0; i < ARRAY_LEN(groups); i++) {
		fake.max[0] = fake.max[1] = fake.max[2] = "max\n";
		fake.used[0] = fake.used[1] = fake.used[2] = used;
		assert_int_equal(make(RGATE_POOL_NO_HUGE, 0), 0);
		rgate_backing_free(&b);
		fake.max[i] = fits;
		assert_int_equal(make(RGATE_POOL_NO_HUGE, 0), 0);
		rgate_backing_free(&b);
		fake.max[i] = short_of_it;
		assert_int_equal(make(RGATE_POOL_NO_HUGE, 0), -ENOMEM);
		assert_int_equal(make(RGATE_POOL_NO_HUGE | RGATE_POOL_NO_PREFAULT, 0), 0);
		rgate_backing_free(&b);
		/* It is full, and more. */
		fake.max[i] = "4096\n";
		assert_int_equal(make(RGATE_POOL_NO_HUGE, 0), -ENOMEM);
	}
	/* Not in any, says the kernel */
	fake.grouped = false;
	assert_int_equal(make(RGATE_POOL_NO_HUGE, 0), 0);
	rgate_backing_free(&b);
}

#define TEST(f)	cmocka_unit_test_setup(f, setup)

static const struct CMUnitTest tests[] = {
	TEST(whole), TEST(failures), TEST(huge), TEST(transparent), TEST(nodes), TEST(available),
	TEST(limited),
};

UNIT_MAIN_ALONE(tests)
