// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a policy knows by its hash: a copy of it is executed, or nothing. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filehash.h"

#define SIZE	150000	/* more than is read at once */
#define SKIPPED	77

static char dir[32], path[64];
static unsigned char data[SIZE];
static uint8_t sha[32];

static int up(void **state)
{
	size_t i;

	(void)state;
	strcpy(dir, "/tmp/ringgate-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	for (i = 0; i < SIZE; i++)
		data[i] = (unsigned char)(i * 7 + i / 255);
	rgate_filehash_prepare();
	return 0;
}

static int down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

/* The file, of @len bytes of data, and what its hash is */
static void put(const void *from, size_t len, mode_t mode)
{
	FILE *f = fopen(path, "w");

	unit_require(f && fwrite(from, 1, len, f) == len && !fclose(f));
	unit_require(!chmod(path, mode));
	unit_require(EVP_Digest(from, len, sha, NULL, EVP_sha256(), NULL) == 1);
}

/* What is opened, of which nothing is left open where it is none */
static int opened(void)
{
	const unsigned int before = unit_entries("/proc/self/fd");
	const int fd = rgate_filehash_open(path, sha);

	assert_int_equal(unit_entries("/proc/self/fd"), before + (fd >= 0));
	return fd;
}

static void copies(void **state)
{
	static unsigned char is[SIZE + 1];
	int fd;

	(void)state;
	put(data, SIZE, 0755);
	fd = opened();
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, is, sizeof(is), 0), SIZE);
	assert_memory_equal(is, data, SIZE);
	/* Nobody writes it any more, nor does the program inherit it. */
	assert_int_equal(fcntl(fd, F_GET_SEALS),
			 F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	/* and it is another file than the one there was */
	put("other", 5, 0755);
	assert_int_equal(pread(fd, is, 5, 0), 5);
	assert_memory_equal(is, data, 5);
	close(fd);
}

static void another(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 32; i += 31) {
		put(data, SIZE, 0755);
		sha[i] ^= 1;
		assert_int_equal(opened(), -EACCES);
	}
	/* The last byte, too, is part of it. */
	put(data, SIZE, 0755);
	assert_int_equal(truncate(path, SIZE - 1), 0);
	assert_int_equal(opened(), -EACCES);
}

static void scripts(void **state)
{
	static const char *const none[] = { "", "#", "!", "#x", "x!", " #!" };
	size_t i;
	int fd;

	(void)state;
	put("#!", 2, 0755);
	assert_int_equal(opened(), -ENOEXEC);
	put("#!/bin/sh\n", 10, 0755);
	assert_int_equal(opened(), -ENOEXEC);
	for (i = 0; i < ARRAY_LEN(none); i++) {
		put(none[i], strlen(none[i]), 0755);
		fd = opened();
		assert_true(fd >= 0);
		close(fd);
	}
	/* What looks like one where the next part is read is none. */
	memcpy(data + (1 << 16), "#!", 2);
	put(data, SIZE, 0755);
	fd = opened();
	assert_true(fd >= 0);
	close(fd);
}

/* Whoever copies it could execute what must not be executed. */
static void not_executable(void **state)
{
	(void)state;
	put(data, 10, 0644);
	assert_int_equal(opened(), -EACCES);
	put(data, 10, 0755);
	assert_int_equal(truncate(path, (off_t)RGATE_FILEHASH_MAX + 1), 0);
	assert_int_equal(opened(), -EFBIG);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(opened(), -ENOENT);
	assert_int_equal(mkfifo(path, 0755), 0);
	assert_int_equal(opened(), -EACCES);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(opened(), -EACCES);
	assert_int_equal(rmdir(path), 0);
}

/* How a copy's write(2) ends; 0: it does not */
static int write_errno;
static bool write_nothing;

ssize_t __wrap_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
	if (write_nothing)
		return 0;
	errno = write_errno;
	return write_errno ? -1 : syscall(SYS_write, fd, buf, len);
}

static void not_copied(void **state)
{
	(void)state;
	put(data, SIZE, 0755);
	write_errno = ENOSPC;
	assert_int_equal(opened(), -ENOSPC);
	write_errno = 0;
	write_nothing = true;
	assert_int_equal(opened(), -EIO);
	write_nothing = false;
}

static const char *meanwhile;	/* takes the file's place when it is looked at */

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
	if (meanwhile)
		unit_require(!rename(meanwhile, path));
	meanwhile = NULL;
	return __real_fstat(fd, st);
}

/* Whether it may be executed is asked of the file that was opened, not of what has its name now. */
static void opened_once(void **state)
{
	char other[80];
	int i, fd;

	(void)state;
	snprintf(other, sizeof(other), "%s/other", dir);
	for (i = 0; i < 2; i++) {
		put(data, SIZE, i ? 0755 : 0644);
		assert_int_equal(rename(path, other), 0);
		put(data, SIZE, i ? 0644 : 0755);
		meanwhile = other;
		fd = opened();
		assert_true(i ? fd == -EACCES : fd >= 0);
		if (fd >= 0)
			close(fd);
	}
}

static int in_noexec(int sock, void *arg)
{
	(void)sock;
	(void)arg;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", MS_NOEXEC, NULL))
		return SKIPPED;
	put(data, SIZE, 0755);
	unit_require(rgate_filehash_open(path, sha) == -EACCES);
	unit_require(!mount("none", dir, NULL, MS_REMOUNT, NULL));
	unit_require(rgate_filehash_open(path, sha) >= 0);
	return 0;
}

static void mounted_noexec(void **state)
{
	int sock, status;

	(void)state;
	assert_true(waitpid(unit_fork(in_noexec, NULL, &sock), &status, 0) > 0);
	close(sock);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		unit_skip("no mounts of its own: not root, or / is none");
	assert_int_equal(status, 0);
}

#define T(name)	cmocka_unit_test_setup_teardown(name, up, down)
static const struct CMUnitTest tests[] = {
	T(copies), T(another), T(scripts), T(not_executable), T(not_copied),
	T(opened_once), T(mounted_noexec),
};

UNIT_MAIN_ALONE(tests)
