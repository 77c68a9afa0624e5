// SPDX-License-Identifier: MIT OR GPL-2.0
/* Kinds of memory that are mappings of files; the files have no name. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <linux/magic.h>
#include <unistd.h>

#include "probe_types.h"
#include "util.h"

#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB	(21U << 26)
#endif
#define SHM_DIR		"/dev/shm"
#define HUGE_2M		(2UL << 20)

/* A file without a name, so that none is left, however this process ends */
static int nameless(struct probe_mem *m, const char *dir)
{
	char path[512];

	m->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (m->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return probe_not_made(m, -errno, dir, "give another --dir");
	/* a file system that knows no such files */
	if (snprintf(path, sizeof(path), "%s/ringgate-probe.XXXXXX", dir) >=
	    (int)sizeof(path))
		return probe_not_made(m, -ENAMETOOLONG, dir, "give another --dir");
	m->fd = mkostemp(path, O_CLOEXEC);
	if (m->fd < 0)
		return probe_not_made(m, -errno, path, "give another --dir");
	unlink(path);
	return 0;
}

/* All blocks are there: a full disk is an error here, and no SIGBUS later. */
static int fill(struct probe_mem *m, size_t len)
{
	char buf[4096];
	size_t n;

	memset(buf, 0x5a, sizeof(buf));
	for (n = 0; n < len; n += sizeof(buf))
		if (pwrite(m->fd, buf, sizeof(buf), (off_t)n) != (ssize_t)sizeof(buf))
			return probe_not_made(m, errno ? -errno : -ENOSPC, "pwrite", "");
	return 0;
}

static int map_file(struct probe_mem *m, const char *dir, int prot, int flags,
		    bool alias)
{
	size_t len = PROBE_PAGES * m->page;
	int err;

	err = nameless(m, dir);
	if (!err)
		err = fill(m, len);
	if (!err)
		err = probe_map(m, len, prot, flags);
	if (!err && alias)
		err = probe_map_alias(m, PROT_READ | PROT_WRITE);
	return err;
}

static int make_file_private(struct probe_mem *m, const struct probe_need *need)
{
	return map_file(m, need->dir, PROT_READ | PROT_WRITE, MAP_PRIVATE, false);
}

static int make_file_shared(struct probe_mem *m, const struct probe_need *need)
{
	return map_file(m, need->dir, PROT_READ | PROT_WRITE, MAP_SHARED, true);
}

static int make_file_readonly(struct probe_mem *m, const struct probe_need *need)
{
	return map_file(m, need->dir, PROT_READ, MAP_SHARED, true);
}

static int make_tmpfs(struct probe_mem *m, const struct probe_need *need)
{
	struct statfs fs;

	(void)need;
	if (statfs(SHM_DIR, &fs))
		return probe_not_made(m, -errno, SHM_DIR, "");
	if (fs.f_type != TMPFS_MAGIC) {
		snprintf(m->note, sizeof(m->note), SHM_DIR " is no tmpfs");
		return -ENODEV;
	}
	return map_file(m, SHM_DIR, PROT_READ | PROT_WRITE, MAP_SHARED, true);
}

static int memfd(struct probe_mem *m, size_t len, unsigned int flags)
{
	m->fd = memfd_create("ringgate-probe", MFD_CLOEXEC | flags);
	if (m->fd < 0)
		return probe_not_made(m, -errno, "memfd_create", "");
	if (ftruncate(m->fd, (off_t)len))
		return probe_not_made(m, -errno, "ftruncate", "");
	return 0;
}

static int make_memfd(struct probe_mem *m, const struct probe_need *need)
{
	size_t len = PROBE_PAGES * m->page;
	int err;

	(void)need;
	err = memfd(m, len, 0);
	if (!err)
		err = fill(m, len);
	if (!err)
		err = probe_map(m, len, PROT_READ | PROT_WRITE, MAP_SHARED);
	return err ? err : probe_map_alias(m, PROT_READ | PROT_WRITE);
}

/* mmap(2) reserves the huge pages, or fails: no SIGBUS later */
static int make_memfd_huge(struct probe_mem *m, const struct probe_need *need)
{
	size_t len = 2 * HUGE_2M;
	int err;

	(void)need;
	err = probe_huge_pages(m, HUGE_2M, 2);
	if (!err)
		err = memfd(m, len, MFD_HUGETLB | MFD_HUGE_2MB);
	if (!err)
		err = probe_map(m, len, PROT_READ | PROT_WRITE, MAP_SHARED);
	if (err)
		return err;
	m->page = HUGE_2M;
	return probe_map_alias(m, PROT_READ | PROT_WRITE);
}

const struct probe_type probe_file_types[] = {
	{ "memfd", "memfd, shared", make_memfd, probe_unmap, NULL },
	{ "memfd-hugetlb", "memfd of huge pages of 2 MiB", make_memfd_huge, probe_unmap, NULL },
	{ "tmpfs", "file in a tmpfs, shared", make_tmpfs, probe_unmap, NULL },
	{ "file-private", "file, private mapping", make_file_private, probe_unmap, NULL },
	{ "file-shared", "file, shared writable mapping", make_file_shared, probe_unmap,
	  "the kernel lets no device write pages of this file system for good, as it "
	  "would not notice: use a memfd, a file in a tmpfs, or a private mapping" },
	{ "file-readonly", "file, shared read-only mapping", make_file_readonly,
	  probe_unmap, "the mapping is read-only: register it with "
	  "RGATE_ACCESS_READONLY, which older kernels (6.1) refuse too: there map it "
	  "writable, or copy" },
	{ 0 }
};
