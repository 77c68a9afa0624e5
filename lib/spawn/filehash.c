// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "filehash.h"

#define KNOWN	64

static struct known {
	bool valid;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime, ctime;
	uint8_t sha256[32];
} known[KNOWN];

static struct known *slot_of(const struct stat *st)
{
	return &known[((uint64_t)st->st_ino ^ (uint64_t)st->st_dev) % KNOWN];
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_known(const struct known *k, const struct stat *st)
{
	return k->valid && k->dev == st->st_dev && k->ino == st->st_ino &&
	       k->size == st->st_size && same_time(&k->mtime, &st->st_mtim) &&
	       same_time(&k->ctime, &st->st_ctim);
}

static int digest(int fd, EVP_MD_CTX *ctx, uint8_t out[32])
{
	static uint8_t buf[1 << 16];
	bool first = true;
	ssize_t n;

	if (EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1)
		return -ENOMEM;
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		if (first && n >= 2 && buf[0] == '#' && buf[1] == '!')
			return -ENOEXEC;
		first = false;
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

static int check(int fd, const uint8_t sha256[32])
{
	struct stat before, after;
	struct known *k;
	int err;

	if (fstat(fd, &before))
		return -errno;
	if (!S_ISREG(before.st_mode))
		return -EACCES;
	k = slot_of(&before);
	if (!is_known(k, &before)) {
		*k = (struct known){ .dev = before.st_dev, .ino = before.st_ino,
				     .size = before.st_size, .mtime = before.st_mtim,
				     .ctime = before.st_ctim };
		err = hash(fd, k->sha256);
		if (err)
			return err;
		if (fstat(fd, &after))
			return -errno;
		k->valid = true;
		/* Written to meanwhile: what was read is nothing. */
		k->valid = is_known(k, &after);
		if (!k->valid)
			return -ETXTBSY;
	}
	return memcmp(k->sha256, sha256, 32) ? -EACCES : 0;
}

int rgate_filehash_open(const char *path, const uint8_t sha256[32])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0)
		return -errno;
	err = check(fd, sha256);
	if (!err)
		return fd;
	close(fd);
	return err;
}
