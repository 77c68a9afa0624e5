// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Making and mapping the memory of a memfd ring, with each of the system calls
 * failing in turn: the error comes through, and nothing stays open or mapped.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/syscall.h>
#include <unistd.h>

enum call { MEMFD, TRUNCATE, ALLOCATE, SEALS, MAP, FSTAT, SYSINFO, CALLS };

static struct {
	enum call call;
	unsigned int nth;	/* the n-th of these fails, from 1; 0: none */
	int err;
	unsigned int seen;
} plan;

static bool fails(enum call call)
{
	if (!plan.nth || plan.call != call || ++plan.seen != plan.nth)
		return false;
	errno = plan.err;
	return true;
}

/* Instead of those that the library calls, by the linker: what else calls them, as a sanitizer
 * does before it is ready, does not notice.
 */
int __wrap_memfd_create(const char *name, unsigned int flags);
int __wrap_ftruncate(int fd, off_t len);
int __wrap_fallocate(int fd, int mode, off_t off, off_t len);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_sysinfo(struct sysinfo *info);
int __wrap_fcntl(int fd, int cmd, ...);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);

int __wrap_memfd_create(const char *name, unsigned int flags)
{
	return fails(MEMFD) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

int __wrap_ftruncate(int fd, off_t len)
{
	return fails(TRUNCATE) ? -1 : (int)syscall(SYS_ftruncate, fd, len);
}

int __wrap_fallocate(int fd, int mode, off_t off, off_t len)
{
	return fails(ALLOCATE) ? -1 : (int)syscall(SYS_fallocate, fd, mode, off, len);
}

int __wrap_fstat(int fd, struct stat *st)
{
	return fails(FSTAT) ? -1 : fstatat(fd, "", st, AT_EMPTY_PATH);
}

int __wrap_sysinfo(struct sysinfo *info)
{
	return fails(SYSINFO) ? -1 : (int)syscall(SYS_sysinfo, info);
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
	return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (fails(MAP))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

static int make(struct rgate_ring **ring)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 64,
					      .slot_size = 256);

	return rgate_ring_open_memfd(ring, &o);
}

static void set(enum call call, unsigned int nth, int err)
{
	plan.call = call;
	plan.nth = nth;
	plan.err = err;
	plan.seen = 0;
}

/* Making a ring while the @nth @call fails with @err comes to @want. */
static void making(enum call call, unsigned int nth, int err, int want)
{
	unsigned int fds = unit_entries("/proc/self/fd"), maps = unit_mappings("memfd:ringgate");
	struct rgate_ring *ring;
	int got;

	set(call, nth, err);
	got = make(&ring);
	assert_true(plan.seen >= nth);
	set(call, 0, 0);
	assert_int_equal(got, want);
	if (!got)
		rgate_ring_close(ring);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
	assert_int_equal(unit_mappings("memfd:ringgate"), maps);
}

static void making_fails(void **state)
{
	unsigned int i;

	(void)state;
	/* the file that tells who lives, and two of memory */
	for (i = 1; i <= 3; i++) {
		making(MEMFD, i, ENFILE, -ENFILE);
		making(SEALS, i, EPERM, -EPERM);
	}
	for (i = 1; i <= 2; i++) {
		making(TRUNCATE, i, ENOMEM, -ENOMEM);
		making(ALLOCATE, i, ENOSPC, -ENOSPC);
	}
	for (i = 1; i <= 4; i++)	/* a reservation, and three areas over it */
		making(MAP, i, ENOMEM, -ENOMEM);
}

static char words[256];

static void on_log(void *arg, enum rgate_log_level level, const char *text)
{
	(void)arg;
	(void)level;
	snprintf(words, sizeof(words), "%s", text);
}

/* What is no reason to give up */
static void making_goes_on(void **state)
{
	(void)state;
	making(ALLOCATE, 1, EINTR, 0);
	making(ALLOCATE, 1, EOPNOTSUPP, 0);
	making(SYSINFO, 1, EFAULT, 0);
	/* a kernel before 5.1 has no F_SEAL_FUTURE_WRITE: said, not hidden */
	rgate_log_set(on_log, NULL);
	making(SEALS, 3, EINVAL, 0);
	rgate_log_set(NULL, NULL);
	assert_non_null(strstr(words, "cannot seal"));
}

static void resizing_fails(void **state)
{
	struct rgate_ring *ring;
	unsigned int fds;

	(void)state;
	assert_int_equal(make(&ring), 0);
	fds = unit_entries("/proc/self/fd");
	set(ALLOCATE, 2, ENOSPC);
	assert_int_equal(rgate_ring_resize(ring, 128, 256), -ENOSPC);
	set(ALLOCATE, 0, 0);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
	assert_int_equal(rgate_ring_remap(ring), 0);	/* as it was */
	rgate_ring_close(ring);
}

/* The other end maps what it was sent. */
static void receiving_fails(void **state)
{
	static const struct {
		enum call call;
		unsigned int nth;
	} at[] = {
		{ FSTAT, 1 }, { FSTAT, 2 },
		{ MAP, 1 }, { MAP, 2 }, { MAP, 3 }, { MAP, 4 }, { MAP, 5 },
	};
	struct rgate_ring *ring, *far;
	unsigned int i, fds, maps;
	int sv[2];

	(void)state;
	assert_int_equal(make(&ring), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	maps = unit_mappings("memfd:ringgate");
	/* and this side's end of the handle sent */
	fds = unit_entries("/proc/self/fd") + 1;
	for (i = 0; i < ARRAY_LEN(at); i++) {
		assert_int_equal(rgate_ring_send(ring, sv[0]), 0);
		set(at[i].call, at[i].nth, EIO);
		assert_int_equal(rgate_ring_recv(&far, sv[1]), -EIO);
		assert_true(plan.seen >= at[i].nth);
		set(MAP, 0, 0);
		assert_int_equal(unit_mappings("memfd:ringgate"), maps);
		assert_int_equal(unit_entries("/proc/self/fd"), fds + i);
	}
	rgate_ring_close(ring);
	close(sv[0]);
	close(sv[1]);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(making_fails),
	cmocka_unit_test(making_goes_on),
	cmocka_unit_test(resizing_fails),
	cmocka_unit_test(receiving_fails),
};

UNIT_MAIN_ALONE(tests)
