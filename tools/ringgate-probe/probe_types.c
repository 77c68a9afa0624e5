// SPDX-License-Identifier: MIT OR GPL-2.0
/* Kinds of memory without a file: heap, anonymous, huge pages, System V. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "probe_types.h"
#include "util.h"

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT	26
#endif
#define MIB		(1UL << 20)
#define THP_PROC	"/proc/self/smaps"

size_t probe_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int probe_not_made(struct probe_mem *m, int err, const char *call, const char *remedy)
{
	snprintf(m->note, sizeof(m->note), "%s: %s%s%s", call, strerror(-err),
		 *remedy ? ": " : "", remedy);
	return err;
}

int probe_map(struct probe_mem *m, size_t len, int prot, int flags)
{
	m->map = mmap(NULL, len, prot, flags, m->fd, 0);
	if (m->map == MAP_FAILED) {
		m->map = NULL;
		return probe_not_made(m, -errno, "mmap", "");
	}
	m->map_len = m->len = len;
	m->addr = m->map;
	m->writable = prot & PROT_WRITE;
	return 0;
}

int probe_map_alias(struct probe_mem *m, int prot)
{
	void *p = mmap(NULL, m->map_len, prot, MAP_SHARED, m->fd, 0);

	if (p == MAP_FAILED)
		return probe_not_made(m, -errno, "mmap", "a second mapping");
	m->alias = p;
	m->alias_writable = prot & PROT_WRITE;
	return 0;
}

void probe_unmap(struct probe_mem *m)
{
	/* First a dma-buf's: Linux 6.1 does not expect its memfd to go before it. */
	if (m->map)
		munmap(m->map, m->map_len);
	if (m->alias)
		munmap(m->alias, m->map_len);
	if (m->fd >= 0)
		close(m->fd);
}

/* Not at the beginning of a page, as most of what malloc() gives */
static int make_malloc(struct probe_mem *m, const struct probe_need *need)
{
	(void)need;
	m->len = PROBE_PAGES * m->page + 48;
	m->addr = malloc(m->len);
	m->writable = true;
	return m->addr ? 0 : probe_not_made(m, -ENOMEM, "malloc", "");
}

static int make_memalign(struct probe_mem *m, const struct probe_need *need)
{
	(void)need;
	m->len = PROBE_PAGES * m->page;
	m->writable = true;
	if (posix_memalign(&m->addr, m->page, m->len)) {
		m->addr = NULL;
		return probe_not_made(m, -ENOMEM, "posix_memalign", "");
	}
	return 0;
}

static void free_heap(struct probe_mem *m)
{
	free(m->addr);
}

static int make_private(struct probe_mem *m, const struct probe_need *need)
{
	(void)need;
	return probe_map(m, PROBE_PAGES * m->page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS);
}

static int make_shared(struct probe_mem *m, const struct probe_need *need)
{
	int err;

	(void)need;
	err = probe_map(m, PROBE_PAGES * m->page, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS);
	if (err)
		return err;
	/* an old size of 0 maps shared pages a second time */
	m->alias = mremap(m->map, 0, m->map_len, MREMAP_MAYMOVE);
	if (m->alias == MAP_FAILED)
		m->alias = NULL;
	m->alias_writable = m->alias;
	return 0;
}

/* AnonHugePages of the mapping that holds @addr, in KiB */
static unsigned long huge_kib(const void *addr)
{
	unsigned long start, end, kib, found = 0;
	FILE *f = fopen(THP_PROC, "re");
	char line[512];
	bool in = false;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			in = (unsigned long)addr >= start && (unsigned long)addr < end;
		else if (in && sscanf(line, "AnonHugePages: %lu kB", &kib) == 1)
			found = kib;
	}
	if (f)
		fclose(f);
	return found;
}

static int make_thp(struct probe_mem *m, const struct probe_need *need)
{
	size_t huge = 2 * MIB, len = 2 * huge;
	char words[64] = "";
	int err;

	(void)need;
	err = probe_map(m, len + huge, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS);
	if (err)
		return err;
	m->addr = (void *)(((uintptr_t)m->map + huge - 1) & ~(huge - 1));
	m->len = len;
	if (madvise(m->addr, len, MADV_HUGEPAGE))
		return probe_not_made(m, -errno, "madvise(MADV_HUGEPAGE)",
				      "this kernel has no transparent huge pages");
	memset(m->addr, 1, len);
	if (huge_kib(m->addr) == len / 1024) {
		m->page = huge;
		return 0;
	}
	util_read_line("/sys/kernel/mm/transparent_hugepage/enabled", words, sizeof(words));
	snprintf(m->note, sizeof(m->note), "%lu of %zu KiB are huge pages (%s); the rest "
		 "are ordinary ones", huge_kib(m->addr), len / 1024, words);
	return 0;
}

int probe_huge_pages(struct probe_mem *m, size_t size, size_t pages)
{
	char path[96], line[32];
	int n;

	n = snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%zukB/",
		     size / 1024);
	snprintf(path + n, sizeof(path) - (size_t)n, "free_hugepages");
	if (util_read_line(path, line, sizeof(line))) {
		snprintf(m->note, sizeof(m->note), "this machine has no pages of %zu MiB",
			 size / MIB);
		return -ENOMEM;
	}
	if (atol(line) >= (long)pages)
		return 0;
	snprintf(m->note, sizeof(m->note), "no free pages of %zu MiB: echo %zu >%.*s%s",
		 size / MIB, pages, n, path, "nr_hugepages");
	return -ENOMEM;
}

/* Enough to cross from one page to the next; of very large ones, a part of one */
static int make_huge(struct probe_mem *m, size_t size, unsigned int shift)
{
	size_t pages = size > 64 * MIB ? 1 : 2;
	int err = probe_huge_pages(m, size, pages);

	if (!err)
		err = probe_map(m, pages * size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
				(int)(shift << MAP_HUGE_SHIFT));
	if (err)
		return err;
	m->page = size;
	m->len = pages == 1 ? 4 * MIB : m->map_len;
	return 0;
}

static int make_huge_2m(struct probe_mem *m, const struct probe_need *need)
{
	(void)need;
	return make_huge(m, 2 * MIB, 21);
}

static int make_huge_1g(struct probe_mem *m, const struct probe_need *need)
{
	(void)need;
	return make_huge(m, 1024 * MIB, 30);
}

static int make_sysv(struct probe_mem *m, const struct probe_need *need)
{
	int id;
	void *p;

	(void)need;
	m->len = PROBE_PAGES * m->page;
	id = shmget(IPC_PRIVATE, m->len, IPC_CREAT | 0600);
	if (id < 0)
		return probe_not_made(m, -errno, "shmget", "see kernel.shmmni, kernel.shmall");
	p = shmat(id, NULL, 0);
	if (p != (void *)-1)
		m->addr = p;
	/* it goes when the last mapping goes, however this process ends */
	shmctl(id, IPC_RMID, NULL);
	if (!m->addr)
		return probe_not_made(m, -errno, "shmat", "");
	m->writable = true;
	p = shmat(id, NULL, 0);
	if (p != (void *)-1)
		m->alias = p;
	m->alias_writable = m->alias;
	return 0;
}

static void free_sysv(struct probe_mem *m)
{
	if (m->alias)
		shmdt(m->alias);
	if (m->addr)
		shmdt(m->addr);
}

const struct probe_type probe_anon_types[] = {
	{ "malloc", "heap, not at a page boundary", make_malloc, free_heap, NULL },
	{ "posix_memalign", "heap, whole pages", make_memalign, free_heap, NULL },
	{ "anon-private", "anonymous private mapping", make_private, probe_unmap, NULL },
	{ "anon-shared", "anonymous shared mapping", make_shared, probe_unmap, NULL },
	{ "thp", "transparent huge pages", make_thp, probe_unmap, NULL },
	{ "hugetlb-2M", "huge pages of 2 MiB", make_huge_2m, probe_unmap, NULL },
	{ "hugetlb-1G", "huge pages of 1 GiB", make_huge_1g, probe_unmap, NULL },
	{ "sysv-shm", "System V shared memory", make_sysv, free_sysv, NULL },
	{ 0 }
};

const struct probe_type *probe_type(size_t i)
{
	static const struct probe_type *const parts[] = {
		probe_anon_types, probe_file_types, probe_dev_types,
	};
	size_t part;

	for (part = 0; part < ARRAY_SIZE(parts); part++) {
		const struct probe_type *t = parts[part];

		for (; t->name; t++)
			if (!i--)
				return t;
	}
	return NULL;
}
