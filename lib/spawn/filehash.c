// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "filehash.h"

#ifndef MFD_EXEC
#define MFD_EXEC	0x0010U		/* since Linux 6.3 */
#endif

static uint8_t buf[1 << 16];

static int digest(int fd, EVP_MD_CTX *ctx, uint8_t out[32])
{
	off_t at = 0;
	ssize_t n;

	if (EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1)
		return -ENOMEM;
	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		if (!at && n >= 2 && buf[0] == '#' && buf[1] == '!')
			return -ENOEXEC;
		at += n;
		if (EVP_DigestUpdate(ctx, buf, (size_t)n) != 1)
			return -EIO;
	}
	if (n < 0)
		return -errno;
	return EVP_DigestFinal_ex(ctx, out, NULL) == 1 ? 0 : -EIO;
}

static int hash(int fd, uint8_t out[32])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	int err = ctx ? digest(fd, ctx, out) : -ENOMEM;

	EVP_MD_CTX_free(ctx);
	return err;
}

/* Who makes a copy could execute what the file's mode or its mount forbid. */
static int may_execute(int fd)
{
	struct statvfs vfs;
	struct stat st;

	if (fstat(fd, &st) || fstatvfs(fd, &vfs))
		return -errno;
	if (!S_ISREG(st.st_mode) || vfs.f_flag & ST_NOEXEC)
		return -EACCES;
	if ((uint64_t)st.st_size > RGATE_FILEHASH_MAX)
		return -EFBIG;
	return faccessat(fd, "", X_OK, AT_EACCESS | AT_EMPTY_PATH) ? -errno : 0;
}

static int write_all(int fd, const uint8_t *from, size_t len)
{
	ssize_t n;

	for (; len; len -= (size_t)n, from += n) {
		n = write(fd, from, len);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
	}
	return 0;
}

static int fill(int to, int from)
{
	uint64_t sum = 0;
	ssize_t n;
	int err;

	while ((n = read(from, buf, sizeof(buf))) > 0) {
		sum += (uint64_t)n;
		err = sum > RGATE_FILEHASH_MAX ? -EFBIG : write_all(to, buf, (size_t)n);
		if (err)
			return err;
	}
	if (n < 0)
		return -errno;
	return fcntl(to, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) ?
	       -errno : 0;
}

/* A copy that stays as it is */
static int copy(int from)
{
	int fd = memfd_create("executed", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC), err;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("executed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	err = fill(fd, from);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int copy_checked(int from, const uint8_t sha256[32])
{
	uint8_t is[32];
	int fd = copy(from), err;

	if (fd < 0)
		return fd;
	err = hash(fd, is);
	if (!err && memcmp(is, sha256, sizeof(is)))
		err = -EACCES;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int rgate_filehash_open(const char *path, const uint8_t sha256[32])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err;

	if (fd < 0)
		return -errno;
	err = may_execute(fd);
	if (!err)
		err = copy_checked(fd, sha256);
	close(fd);
	return err;
}

void rgate_filehash_prepare(void)
{
	uint8_t out[32];

	(void)EVP_Digest("", 0, out, NULL, EVP_sha256(), NULL);
}
