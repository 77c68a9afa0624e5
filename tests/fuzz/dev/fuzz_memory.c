// SPDX-License-Identifier: MIT OR GPL-2.0
/* Random calls on mappings of rings, and random words into them. */
#include "fuzz.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/ring.h>

#define PAGE	4096UL

/*
 * Only the thread that took a mapping out of the table uses or ends it; so memory
 * that the C library may have been given meanwhile is never touched.
 */
static struct fuzz_map take(struct fuzz *f)
{
	struct fuzz_map *m = &f->p->maps[fuzz_below(f, FUZZ_MAPS)];
	struct fuzz_map t;

	t.addr = __atomic_exchange_n(&m->addr, NULL, __ATOMIC_ACQ_REL);
	t.len = __atomic_load_n(&m->len, __ATOMIC_RELAXED);
	if (!t.len)
		t.addr = NULL;
	return t;
}

static void give(struct fuzz *f, struct fuzz_map t)
{
	unsigned int i;

	for (i = 0; t.addr && i < FUZZ_MAPS; i++) {
		struct fuzz_map *m = &f->p->maps[i];
		void *none = NULL;

		/* The length of an empty place is nobody's: keep the mapping to it. */
		if (__atomic_compare_exchange_n(&m->addr, &none, (void *)-1L, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			__atomic_store_n(&m->len, t.len, __ATOMIC_RELAXED);
			__atomic_store_n(&m->addr, t.addr, __ATOMIC_RELEASE);
			return;
		}
	}
	if (t.addr)
		munmap(t.addr, t.len);
}

static void map(struct fuzz *f)
{
	int fd = f->p->fds[fuzz_below(f, FUZZ_FDS)];
	size_t len = (1 + fuzz_below(f, 64)) * PAGE;
	off_t off = fuzz_one_in(f, 2) ? 0 : (off_t)(fuzz_below(f, 8) * PAGE);
	int prot = (int)fuzz_below(f, fuzz_one_in(f, 8) ? 8 : 4);
	void *addr;

	if (fuzz_one_in(f, 8))
		off = (off_t)fuzz_number(f);
	if (fuzz_one_in(f, 16))
		len = (size_t)fuzz_number(f) & 0xffffffff;
	if (fd < 0 || !len)
		return;
	addr = mmap(NULL, len, prot, fuzz_one_in(f, 8) ? MAP_PRIVATE : MAP_SHARED, fd, off);
	if (addr == MAP_FAILED)
		return;
	fuzz_note(f, 0);
	give(f, (struct fuzz_map){ addr, len });
}

/* Words through the kernel, so that what is not there is an error and no signal */
static void scribble(struct fuzz *f, struct fuzz_map m)
{
	uint64_t words[64];
	struct iovec from = { words, sizeof(words) }, to = { 0 };
	unsigned int i;

	for (i = 0; i < 64; i++)
		words[i] = fuzz_number(f);
	to.iov_len = 8 * (1 + fuzz_below(f, 64));
	if (to.iov_len > m.len)
		return;
	to.iov_base = (char *)m.addr + fuzz_below(f, (uint32_t)((m.len - to.iov_len) / 8 + 1)) * 8;
	if (fuzz_one_in(f, 4))
		fuzz_note(f, process_vm_readv(getpid(), &from, 1, &to, 1, 0));
	else
		fuzz_note(f, process_vm_writev(getpid(), &from, 1, &to, 1, 0));
}

/* A child that has the mapping too, for a moment */
static void child(struct fuzz *f, struct fuzz_map m)
{
	pid_t pid = (pid_t)syscall(SYS_fork);

	if (pid < 0)
		return;
	if (!pid) {
		munmap(m.addr, PAGE);
		syscall(SYS_exit_group, 0);
	}
	fuzz_note(f, waitpid(pid, NULL, 0));
}

static struct fuzz_map cut(struct fuzz *f, struct fuzz_map m)
{
	size_t pages = (m.len + PAGE - 1) / PAGE;
	size_t keep = fuzz_below(f, (uint32_t)pages + 1);

	if (keep < pages)
		fuzz_note(f, munmap((char *)m.addr + keep * PAGE, (pages - keep) * PAGE));
	return keep ? (struct fuzz_map){ m.addr, keep * PAGE } : (struct fuzz_map){ 0 };
}

static struct fuzz_map move(struct fuzz *f, struct fuzz_map m)
{
	size_t len = (1 + fuzz_below(f, 64)) * PAGE;
	void *addr = mremap(m.addr, m.len, len, fuzz_one_in(f, 2) ? MREMAP_MAYMOVE : 0);

	if (addr == MAP_FAILED)
		return m;
	fuzz_note(f, 0);
	return (struct fuzz_map){ addr, len };
}

void fuzz_memory_op(struct fuzz *f)
{
	static const int advice[] = {
		MADV_DONTFORK, MADV_DOFORK, MADV_DONTNEED, MADV_REMOVE, MADV_WILLNEED,
		MADV_FREE, MADV_HUGEPAGE, MADV_COLD, MADV_PAGEOUT, MADV_POPULATE_READ,
		MADV_POPULATE_WRITE, MADV_MERGEABLE, MADV_DONTDUMP, MADV_WIPEONFORK,
	};
	struct fuzz_map m;

	if (fuzz_one_in(f, 3)) {
		map(f);
		return;
	}
	m = take(f);
	if (!m.addr || m.addr == (void *)-1L)
		return;
	switch (fuzz_below(f, 9)) {
	case 0:
		m = cut(f, m);
		break;
	case 1:
		fuzz_note(f, mprotect(m.addr, m.len, (int)fuzz_below(f, 8)));
		break;
	case 2:
		m = move(f, m);
		break;
	case 3:
		fuzz_note(f, madvise(m.addr, m.len,
				     advice[fuzz_below(f, sizeof(advice) / sizeof(*advice))]));
		break;
	case 4:
		fuzz_note(f, fuzz_one_in(f, 2) ? mlock(m.addr, m.len) :
			  munlock(m.addr, m.len));
		break;
	case 5:
		if (fuzz_one_in(f, 8))
			child(f, m);
		break;
	case 6:
		fuzz_note(f, msync(m.addr, m.len, MS_SYNC));
		break;
	default:
		scribble(f, m);
	}
	give(f, m);
}
