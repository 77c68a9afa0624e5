// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/memfd.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "available.h"
#include "backing.h"
#include "log.h"
#include "prefault.h"

#define HUGE_SIZE	((size_t)2 << 20)
#define MAX_NODES	1024

/* Transparent huge pages for memfds: at once, or where they are asked for? */
static bool thp_allowed(void)
{
	static const char path[] = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
	char text[128];
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return strstr(text, "[always]") || strstr(text, "[advise]") ||
	       strstr(text, "[within_size]") || strstr(text, "[force]");
}

static int bind_to(const struct rgate_backing *b, uint32_t node)
{
	unsigned long mask[MAX_NODES / (8 * sizeof(long))] = { 0 };

	if (node >= MAX_NODES)
		return -EINVAL;
	mask[node / (8 * sizeof(long))] |= 1UL << node % (8 * sizeof(long));
	if (syscall(SYS_mbind, b->addr, b->len, MPOL_BIND, mask, MAX_NODES + 1, 0))
		return -errno;
	return 0;
}

static int map_huge(struct rgate_backing *b)
{
	void *addr = mmap(NULL, b->len, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);

	if (addr == MAP_FAILED)
		return -errno;
	b->addr = addr;
	return 0;
}

/*
 * Aligned to huge pages though the pages are ordinary: over a part of a larger mapping.
 * Should that fail, the kernel may have unmapped what was there, and another thread have
 * mapped something; so it is left alone then.
 */
static int map_aligned(struct rgate_backing *b)
{
	const size_t room = b->len + HUGE_SIZE;
	char *at = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t head;
	void *addr;
	int err = 0;

	if (at == MAP_FAILED)
		return -errno;
	head = -(uintptr_t)at & (HUGE_SIZE - 1);
	addr = mmap(at + head, b->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, b->fd, 0);
	if (addr == MAP_FAILED)
		err = -errno;
	else
		b->addr = addr;
	if (head)
		munmap(at, head);
	munmap(at + head + b->len, HUGE_SIZE - head);
	return err;
}

static int fill(struct rgate_backing *b, const struct rgate_backing_opts *opts)
{
	int err;

	/* A child that wrote into it would write into what a device uses. */
	if (madvise(b->addr, b->len, MADV_DONTFORK))
		return -errno;
	if (opts->node_plus1) {
		err = bind_to(b, opts->node_plus1 - 1);
		if (err) {
			rgate_err("%s: memory cannot be bound to NUMA node %u: %s", opts->name,
				  opts->node_plus1 - 1, strerror(-err));
			return err;
		}
		b->node = (int)opts->node_plus1 - 1;
	}
	if (b->huge == RGATE_HUGE_THP && madvise(b->addr, b->len, MADV_HUGEPAGE))
		b->huge = RGATE_HUGE_NONE;
	if (opts->flags & RGATE_POOL_NO_PREFAULT)
		return 0;
	return rgate_prefault(b->addr, b->len, opts->threads, opts->progress,
			      opts->progress_ctx);
}

/*
 * More than there is, is refused here: the kernel would find that out half-way, and
 * might kill a process to go on.
 */
static int check_available(const struct rgate_backing_opts *opts)
{
	char where[PATH_MAX + 32];
	const uint64_t room = rgate_available(where, sizeof(where));

	if (opts->len <= room)
		return 0;
	rgate_err("%s: a region of %zu MiB does not fit: %" PRIu64 " MiB of memory are "
		  "available %s", opts->name, opts->len >> 20, room >> 20, where);
	return -ENOMEM;
}

/* @out is written when all is done: what failed is closed and unmapped here, and nowhere else. */
static int try(struct rgate_backing *out, const struct rgate_backing_opts *opts,
	       enum rgate_pool_huge huge)
{
	struct rgate_backing made = {
		.len = opts->len, .huge = huge, .node = -1,
		.page_size = huge == RGATE_HUGE_TLB ? HUGE_SIZE : (size_t)sysconf(_SC_PAGESIZE),
	}, *b = &made;
	char name[64];
	int err;

	snprintf(name, sizeof(name), "ringgate-%.40s", opts->name);
	b->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING |
			     (huge == RGATE_HUGE_TLB ? MFD_HUGETLB | MFD_HUGE_2MB : 0));
	if (b->fd < 0)
		return -errno;
	/* Who maps it elsewhere can rely on its size. */
	if (ftruncate(b->fd, (off_t)b->len) ||
	    fcntl(b->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		err = -errno;
		goto close;
	}
	err = huge == RGATE_HUGE_TLB ? map_huge(b) : map_aligned(b);
	if (err)
		goto close;
	err = fill(b, opts);
	if (err)
		goto unmap;
	*out = made;
	return 0;

unmap:
	munmap(b->addr, b->len);
close:
	close(b->fd);
	return err;
}

int rgate_backing_make(struct rgate_backing *b, const struct rgate_backing_opts *opts)
{
	int err;

	if (!(opts->flags & RGATE_POOL_NO_HUGE)) {
		err = try(b, opts, RGATE_HUGE_TLB);
		if (!err)
			return 0;
		if (opts->flags & RGATE_POOL_HUGE_ONLY) {
			rgate_err("%s: no %zu free huge pages of 2 MiB: raise vm.nr_hugepages",
				  opts->name, opts->len / HUGE_SIZE);
			return -ENOMEM;
		}
		rgate_dbg("%s: no %zu free huge pages, taking ordinary ones", opts->name,
			  opts->len / HUGE_SIZE);
	}
	if (!(opts->flags & RGATE_POOL_NO_PREFAULT)) {
		err = check_available(opts);
		if (err)
			return err;
	}
	return try(b, opts, opts->flags & RGATE_POOL_NO_HUGE || !thp_allowed() ?
		   RGATE_HUGE_NONE : RGATE_HUGE_THP);
}

void rgate_backing_free(struct rgate_backing *b)
{
	if (!b->addr)
		return;
	munmap(b->addr, b->len);
	close(b->fd);
	b->addr = NULL;
}
