// SPDX-License-Identifier: MIT OR GPL-2.0
/* Mappings: what may be mapped how, and that nothing gets around it. */
#include "lib/vt.h"

#include <setjmp.h>
#include <sys/uio.h>

static sigjmp_buf fault_env;

static void on_fault(int sig)
{
	siglongjmp(fault_env, sig);
}

/* Does storing to @p fault? The value is put back as it was. */
static bool write_faults(volatile uint8_t *p)
{
	struct sigaction sa = { .sa_handler = on_fault }, old[2];
	bool bad = true;

	sigaction(SIGSEGV, &sa, &old[0]);
	sigaction(SIGBUS, &sa, &old[1]);
	if (!sigsetjmp(fault_env, 1)) {
		*p = *p;
		bad = false;
	}
	sigaction(SIGSEGV, &old[0], NULL);
	sigaction(SIGBUS, &old[1], NULL);
	return bad;
}

static bool read_faults(volatile const uint8_t *p)
{
	struct sigaction sa = { .sa_handler = on_fault }, old[2];
	bool bad = true;

	sigaction(SIGSEGV, &sa, &old[0]);
	sigaction(SIGBUS, &sa, &old[1]);
	if (!sigsetjmp(fault_env, 1)) {
		(void)*p;
		bad = false;
	}
	sigaction(SIGSEGV, &old[0], NULL);
	sigaction(SIGBUS, &old[1], NULL);
	return bad;
}

static void *map(const struct vt_ring *r, size_t off, size_t len, int prot, int flags)
{
	return mmap(NULL, len, prot, flags, r->fd, (off_t)off);
}

static void no_map(const struct vt_ring *r, size_t off, size_t len, int prot,
		   int flags, int err, const char *what)
{
	void *p;

	errno = 0;
	p = map(r, off, len, prot, flags);
	if (p != MAP_FAILED) {
		FAIL("%s: mapped", what);
		munmap(p, len);
	} else if (errno != err) {
		FAIL("%s: %s, not %s", what, strerror(errno), strerror(err));
	}
}

static void ranges(void)
{
	struct vt_ring r;
	size_t len;

	vt_ring_open(&r, 256, 2048, 0, 0);
	len = r.geo.map_len;
	no_map(&r, 0, len + 4096, PROT_READ, MAP_SHARED, EINVAL, "a page too much");
	no_map(&r, 4096, len, PROT_READ, MAP_SHARED, EINVAL, "whole, shifted");
	no_map(&r, len, 4096, PROT_READ, MAP_SHARED, EINVAL, "behind the end");
	no_map(&r, len + (1UL << 20), 4096, PROT_READ, MAP_SHARED, EINVAL, "far behind");
	no_map(&r, 0, 1UL << 40, PROT_READ, MAP_SHARED, EINVAL, "a terabyte");
	no_map(&r, len - 4096, 8192, PROT_READ, MAP_SHARED, EINVAL, "over the end");
	/* offset + length wraps to something small */
	no_map(&r, -(size_t)4096, 4096, PROT_READ, MAP_SHARED, EOVERFLOW, "last page of all");
	no_map(&r, 0x7ffffffffffff000, 4096, PROT_READ, MAP_SHARED, EINVAL, "2^63 - 4096");
	no_map(&r, 0x7fffffffffffe000, 4096, PROT_READ, MAP_SHARED, EINVAL, "2^63 - 8192");
	no_map(&r, 1UL << 44, 4096, PROT_READ, MAP_SHARED, EINVAL, "2^44: pgoff 2^32");
	no_map(&r, (1UL << 44) + r.geo.slots_off, 4096, PROT_READ, MAP_SHARED, EINVAL,
	       "pgoff of 2^32 + good one");
	no_map(&r, 1, 4096, PROT_READ, MAP_SHARED, EINVAL, "unaligned");
	no_map(&r, 2048, 4096, PROT_READ, MAP_SHARED, EINVAL, "half a page");
	no_map(&r, 0, 0, PROT_READ, MAP_SHARED, EINVAL, "nothing");
	vt_ring_close(&r);
}

static void each_area(void)
{
	struct vt_ring r;
	size_t c, s, end;
	uint8_t *p;

	vt_ring_open(&r, 256, 2048, 0, 0);
	c = r.geo.cons_off;
	s = r.geo.slots_off;
	end = r.geo.map_len;
	p = map(&r, 0, c, PROT_READ, MAP_SHARED);
	REQUIRE(p != MAP_FAILED);
	EXPECT_EQ(((struct rgate_prod *)p)->magic, RGATE_MAGIC);
	EXPECT(write_faults(p));
	p = map(&r, c, s - c, PROT_READ | PROT_WRITE, MAP_SHARED);
	REQUIRE(p != MAP_FAILED);
	EXPECT(!write_faults(p));
	((struct rgate_cons *)p)->user[3] = 0x1234567;
	EXPECT_EQ(r.cons->user[3], 0x1234567);
	p = map(&r, s, end - s, PROT_READ, MAP_SHARED);
	REQUIRE(p != MAP_FAILED);
	EXPECT(write_faults(p));
	p = map(&r, c, 4096, PROT_READ | PROT_WRITE, MAP_SHARED);
	EXPECT(p != MAP_FAILED);
	p = map(&r, c, s - c, PROT_READ, MAP_SHARED);
	EXPECT(p != MAP_FAILED);
	p = map(&r, end - 4096, 4096, PROT_READ, MAP_SHARED);
	EXPECT(p != MAP_FAILED);
	p = map(&r, 0, end, PROT_READ, MAP_SHARED);
	EXPECT(p != MAP_FAILED);
	EXPECT(write_faults(p + c));	/* read-only as a whole */
	p = map(&r, 0, end, PROT_NONE, MAP_SHARED);
	EXPECT(p != MAP_FAILED);
	EXPECT(read_faults(p));
	/* writable where it must not be */
	no_map(&r, 0, c, PROT_READ | PROT_WRITE, MAP_SHARED, EACCES, "producer rw");
	no_map(&r, 0, c, PROT_WRITE, MAP_SHARED, EACCES, "producer w");
	no_map(&r, 0, s, PROT_READ | PROT_WRITE, MAP_SHARED, EACCES, "producer+consumer rw");
	no_map(&r, 0, end, PROT_READ | PROT_WRITE, MAP_SHARED, EACCES, "whole rw");
	no_map(&r, s, end - s, PROT_READ | PROT_WRITE, MAP_SHARED, EACCES, "slots rw");
	no_map(&r, s - 4096, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, EACCES,
	       "last consumer page + first slot page rw");
	vt_ring_close(&r);
}

static void rw_slots(void)
{
	struct vt_ring r;
	size_t c, s, end;
	uint8_t *p;

	vt_ring_open(&r, 256, 2048, RGATE_RING_RW_SLOTS, 0);
	c = r.geo.cons_off;
	s = r.geo.slots_off;
	end = r.geo.map_len;
	p = map(&r, c, end - c, PROT_READ | PROT_WRITE, MAP_SHARED);
	REQUIRE(p != MAP_FAILED);
	EXPECT(!write_faults(p) && !write_faults(p + end - c - 1));
	p = map(&r, s, end - s, PROT_READ | PROT_WRITE, MAP_SHARED);
	REQUIRE(p != MAP_FAILED);
	p[77] = 9;
	EXPECT_EQ(r.slots[77], 9);
	no_map(&r, 0, end, PROT_READ | PROT_WRITE, MAP_SHARED, EACCES, "whole rw");
	no_map(&r, 0, c, PROT_READ | PROT_WRITE, MAP_SHARED, EACCES, "producer rw");
	no_map(&r, c - 4096, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, EACCES,
	       "last producer page rw");
	p = map(&r, 0, end, PROT_READ, MAP_SHARED);
	REQUIRE(p != MAP_FAILED);
	EXPECT_ERRNO(mprotect(p, 4096, PROT_READ | PROT_WRITE), EACCES);
	vt_ring_close(&r);
}

static void mprotect_upgrade(void)
{
	struct vt_ring r;
	size_t c, s, end;
	uint8_t *p;

	vt_ring_open(&r, 256, 2048, 0, 0);
	c = r.geo.cons_off;
	s = r.geo.slots_off;
	end = r.geo.map_len;
	p = map(&r, 0, end, PROT_READ, MAP_SHARED);
	REQUIRE(p != MAP_FAILED);
	EXPECT_ERRNO(mprotect(p, end, PROT_READ | PROT_WRITE), EACCES);
	EXPECT_ERRNO(mprotect(p, 4096, PROT_WRITE), EACCES);
	EXPECT_ERRNO(mprotect(p + s, 4096, PROT_READ | PROT_WRITE), EACCES);
	EXPECT_ERRNO(mprotect(p + end - 4096, 4096, PROT_WRITE), EACCES);
	EXPECT_ERRNO(mprotect(p + c, 4096, PROT_READ | PROT_EXEC), EACCES);
	/* split first, then ask again */
	REQUIRE(!mprotect(p + s, 4096, PROT_NONE));
	EXPECT_ERRNO(mprotect(p + s, 4096, PROT_READ | PROT_WRITE), EACCES);
	REQUIRE(!mprotect(p + s, 4096, PROT_READ));
	munmap(p, end);
	p = map(&r, s, end - s, PROT_NONE, MAP_SHARED);
	REQUIRE(p != MAP_FAILED);
	EXPECT_ERRNO(mprotect(p, 4096, PROT_WRITE), EACCES);
	EXPECT(!mprotect(p, 4096, PROT_READ));
	munmap(p, end - s);
	/* the consumer area alone may change its mind */
	p = map(&r, c, s - c, PROT_READ, MAP_SHARED);
	REQUIRE(p != MAP_FAILED);
	EXPECT(!mprotect(p, s - c, PROT_READ | PROT_WRITE));
	EXPECT(!write_faults(p));
	EXPECT_ERRNO(mprotect(p, s - c, PROT_READ | PROT_WRITE | PROT_EXEC), EACCES);
	EXPECT_ERRNO(mprotect(p, s - c, PROT_EXEC), EACCES);
	vt_ring_close(&r);
}

static void exec_and_private(void)
{
	static const int prots[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };
	struct vt_ring r;
	size_t i, c;

	vt_ring_open(&r, 256, 2048, RGATE_RING_RW_SLOTS, 0);
	c = r.geo.cons_off;
	no_map(&r, 0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, EACCES, "exec");
	no_map(&r, c, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, EACCES, "rwx");
	no_map(&r, r.geo.slots_off, 4096, PROT_EXEC, MAP_SHARED, EACCES, "x");
	for (i = 0; i < VT_COUNT(prots); i++) {
		no_map(&r, 0, r.geo.map_len, prots[i], MAP_PRIVATE, EINVAL, "private whole");
		no_map(&r, c, 4096, prots[i], MAP_PRIVATE, EINVAL, "private consumer");
	}
	vt_ring_close(&r);
}

/* A file opened read-only gives no writable mapping, as everywhere */
static void readonly_file(void)
{
	struct rgate_create c = vt_create_req();
	int fd = open(RGATE_DEVICE, O_RDONLY | O_CLOEXEC);
	void *p;

	REQUIRE(fd >= 0);
	REQUIRE(!ioctl(fd, RGATE_IOC_CREATE, &c));
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    (off_t)c.geo.cons_off) == MAP_FAILED && errno == EACCES);
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, (off_t)c.geo.cons_off);
	REQUIRE(p != MAP_FAILED);
	EXPECT_ERRNO(mprotect(p, 4096, PROT_READ | PROT_WRITE), EACCES);
}

static void proc_mem(void)
{
	uint64_t evil = 0x4141414141414141;
	struct iovec l = { &evil, 8 }, rem;
	struct vt_ring r;
	uint64_t back;
	int fd;

	vt_ring_open(&r, 256, 2048, 0, 0);
	fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	REQUIRE(fd >= 0);
	/*
	 * FOLL_FORCE writes through a read-only private mapping; of a shared one
	 * that may not become writable it must not.
	 */
	EXPECT(pwrite(fd, &evil, 8, (off_t)(uintptr_t)r.map) < 0);
	EXPECT(pwrite(fd, &evil, 8, (off_t)(uintptr_t)r.slots) < 0);
	EXPECT_EQ(r.prod->magic, RGATE_MAGIC);
	EXPECT(*(volatile uint64_t *)r.slots != evil);
	rem.iov_len = 8;
	rem.iov_base = r.map;
	EXPECT(process_vm_writev(getpid(), &l, 1, &rem, 1, 0) < 0);
	rem.iov_base = r.slots;
	EXPECT(process_vm_writev(getpid(), &l, 1, &rem, 1, 0) < 0);
	/* reading all of it works, and says the same */
	l.iov_base = &back;
	rem.iov_base = r.map;
	EXPECT_EQ(process_vm_readv(getpid(), &l, 1, &rem, 1, 0), 8);
	EXPECT(!memcmp(&back, r.map, 8));
	EXPECT_EQ(pread(fd, &back, 8, (off_t)(uintptr_t)r.map), 8);
	EXPECT(!memcmp(&back, r.map, 8));
	close(fd);
	vt_ring_close(&r);
}

/* Pages are handed to the kernel by get_user_pages and survive there */
static void write_from_ring(void)
{
	char name[] = "/tmp/vt-mmap-XXXXXX";
	uint8_t back[4096];
	struct vt_ring r;
	int fd = mkstemp(name);

	REQUIRE(fd >= 0);
	unlink(name);
	vt_ring_open(&r, 256, 2048, 0, 0);
	EXPECT_EQ(write(fd, r.map, 4096), 4096);
	EXPECT_EQ(pread(fd, back, 4096, 0), 4096);
	EXPECT(!memcmp(back, (void *)r.prod, 128));
	/* reading a file into the read-only part is refused */
	EXPECT_ERRNO(pread(fd, r.map, 4096, 0), EFAULT);
	EXPECT_ERRNO(pread(fd, r.slots, 4096, 0), EFAULT);
	/* into the consumer area it works */
	EXPECT_EQ(pread(fd, r.credits, 64, 0), 64);
	vt_ring_close(&r);
}

static void mremap_all_ways(void)
{
	struct vt_ring r;
	uint8_t *p, *q;
	size_t end;

	vt_ring_open(&r, 256, 2048, 0, 0);
	end = r.geo.map_len;
	p = map(&r, 0, end, PROT_READ, MAP_SHARED);
	REQUIRE(p != MAP_FAILED);
	/* grow: there is nothing behind the end */
	q = mremap(p, end, end + 4096, MREMAP_MAYMOVE);
	EXPECT(q == MAP_FAILED);
	q = mremap(p, end, end * 2, MREMAP_MAYMOVE);
	EXPECT(q == MAP_FAILED);
	/* move */
	q = mmap(NULL, end, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(q != MAP_FAILED);
	q = mremap(p, end, end, MREMAP_MAYMOVE | MREMAP_FIXED, q);
	REQUIRE(q != MAP_FAILED);
	EXPECT_EQ(((struct rgate_prod *)q)->magic, RGATE_MAGIC);
	EXPECT(write_faults(q));
	EXPECT_ERRNO(mprotect(q, 4096, PROT_READ | PROT_WRITE), EACCES);
	/* shrink; a part of the moved one grown again over its old range */
	p = mremap(q, end, 8192, 0);
	REQUIRE(p == q);
	EXPECT(mremap(q, 8192, 16384, 0) == MAP_FAILED);
	EXPECT(!read_faults(q + 4096));
	EXPECT(read_faults(q + 8192));
	/* old size 0 makes a second mapping of the same: at most as large, same rights */
	p = mremap(q, 0, 4096, MREMAP_MAYMOVE);
	if (p != MAP_FAILED) {
		EXPECT(write_faults(p));
		EXPECT_ERRNO(mprotect(p, 4096, PROT_READ | PROT_WRITE), EACCES);
		munmap(p, 4096);
	}
	p = mremap(q, 0, end * 4, MREMAP_MAYMOVE);
	if (p != MAP_FAILED) {
		/* pages behind the end of the ring must not appear */
		EXPECT(read_faults(p + end));
		munmap(p, end * 4);
	}
	munmap(q, 8192);
	/* DONTUNMAP is for anonymous memory; whatever it says, nothing is lost */
	p = mremap(r.map, 4096, 4096, MREMAP_MAYMOVE | 4 /* DONTUNMAP */, 0);
	if (p != MAP_FAILED)
		EXPECT(!read_faults(p));
	EXPECT(!read_faults(r.slots));
	vt_ring_close(&r);
}

static void partial_munmap(void)
{
	struct vt_ring r;
	size_t off, end;
	uint8_t *p;

	vt_ring_open(&r, 256, 2048, 0, 0);
	end = r.geo.map_len;
	p = map(&r, 0, end, PROT_READ, MAP_SHARED);
	REQUIRE(p != MAP_FAILED);
	/* every third page goes: many pieces */
	for (off = 4096; off + 4096 < end; off += 3 * 4096)
		EXPECT(!munmap(p + off, 4096));
	EXPECT(!read_faults(p));
	EXPECT(read_faults(p + 4096));
	EXPECT(!read_faults(p + end - 1));
	EXPECT_ERRNO(mprotect(p, 4096, PROT_READ | PROT_WRITE), EACCES);
	vt_ring_unmap(&r);
	close(r.fd);
	/* the file is gone, the pieces hold the ring */
	EXPECT_EQ(((struct rgate_prod *)p)->magic, RGATE_MAGIC);
	EXPECT_EQ(((struct rgate_prod *)p)->state, RGATE_STATE_ACTIVE);
	/* pieces over a hole go in one call */
	EXPECT(!munmap(p, end));
}

static int child_reads(void *arg)
{
	struct vt_ring *r = arg;

	return r->prod->magic != RGATE_MAGIC || write_faults((void *)r->cons) ||
	       !write_faults((void *)r->map) ||
	       mprotect(r->map, 4096, PROT_READ | PROT_WRITE) == 0;
}

static int child_sees_none(void *arg)
{
	struct vt_ring *r = arg;

	return !read_faults(r->map) || !read_faults(r->slots);
}

static int child_unmaps(void *arg)
{
	struct vt_ring *r = arg;

	vt_ring_close(r);
	return 0;
}

static void fork_and_madvise(void)
{
	struct vt_ring r;

	vt_ring_open(&r, 256, 2048, 0, 0);
	EXPECT_EQ(vt_wait(vt_fork(child_reads, &r), 5000), 0);
	EXPECT_EQ(vt_wait(vt_fork(child_unmaps, &r), 5000), 0);
	EXPECT(!read_faults(r.map));
	r.cons->user[0] = 1;
	EXPECT_EQ(vt_wait(vt_fork(child_reads, &r), 5000), 0);
	EXPECT(!madvise(r.map, r.geo.map_len, MADV_DONTFORK));
	EXPECT_EQ(vt_wait(vt_fork(child_sees_none, &r), 5000), 0);
	/* Linux 7.2 does not take that back where a mapping must not grow */
	if (madvise(r.map, r.geo.map_len, MADV_DOFORK)) {
		EXPECT_EQ(errno, EINVAL);
		vt_note("this kernel has no MADV_DOFORK for a mapping of one size");
		EXPECT_EQ(vt_wait(vt_fork(child_sees_none, &r), 5000), 0);
	} else {
		EXPECT_EQ(vt_wait(vt_fork(child_reads, &r), 5000), 0);
	}
	EXPECT(!read_faults(r.map));
	vt_ring_close(&r);
}

static int child_outlives(void *arg)
{
	struct vt_ring *r = arg;

	vt_usleep(300000);
	return r->prod->magic != RGATE_MAGIC || r->prod->ring_id != r->id;
}

static void fork_outlives_parent_mapping(void)
{
	struct vt_ring r;
	pid_t pid;

	vt_ring_open(&r, 256, 2048, 0, 0);
	pid = vt_fork(child_outlives, &r);
	vt_ring_close(&r);
	EXPECT_EQ(vt_wait(pid, 10000), 0);
}

static void madvise_all(void)
{
	static const int advice[] = {
		MADV_DONTNEED, MADV_REMOVE, MADV_FREE, MADV_HUGEPAGE,
		MADV_NOHUGEPAGE, MADV_MERGEABLE, MADV_WILLNEED, MADV_SEQUENTIAL,
		MADV_DODUMP, MADV_DONTDUMP, MADV_COLD, MADV_PAGEOUT,
		21 /* PAGEOUT */, 22 /* POPULATE_READ */, 23 /* POPULATE_WRITE */,
		24 /* DONTNEED_LOCKED */, 25 /* COLLAPSE */,
	};
	struct vt_ring r;
	size_t i;

	vt_ring_open(&r, 1024, 4096, 0, 0);
	r.cons->user[5] = 0xabcdef;
	r.credits[3] = 99;
	for (i = 0; i < VT_COUNT(advice); i++) {
		/* success or not is the kernel's matter; the ring stays itself */
		(void)madvise(r.map, r.geo.map_len, advice[i]);
		(void)madvise(r.cons, 4096, advice[i]);
		EXPECT_EQ(r.prod->magic, RGATE_MAGIC);
		EXPECT_EQ(r.cons->user[5], 0xabcdef);
		EXPECT_EQ(r.credits[3], 99);
		EXPECT(write_faults((void *)r.map));
		EXPECT(write_faults(r.slots));
	}
	r.cons->user[6] = 7;
	EXPECT_EQ(r.cons->user[6], 7);
	EXPECT(!mlock(r.map, r.geo.map_len) || errno == ENOMEM || errno == EAGAIN ||
	       errno == EINVAL);
	(void)munlock(r.map, r.geo.map_len);
	(void)msync(r.map, r.geo.map_len, MS_SYNC);
	vt_ring_close(&r);
}

static void close_orders(void)
{
	struct vt_ring_info info;
	struct vt_ring r, r2;
	struct vt_nl nl;
	uint32_t id;

	vt_nl_open(&nl);
	/* file first, mapping later */
	vt_ring_open(&r, 256, 2048, 0, 0);
	close(r.fd);
	EXPECT_EQ(r.prod->magic, RGATE_MAGIC);
	r.cons->user[0] = 5;
	EXPECT_EQ(r.cons->user[0], 5);
	r.fd = -1;
	vt_ring_close(&r);
	/* mapping first, file later; and map again */
	vt_ring_open(&r, 256, 2048, 0, 0);
	r.cons->user[1] = 77;
	vt_ring_unmap(&r);
	vt_ring_map(&r);
	EXPECT_EQ(r.cons->user[1], 77);
	vt_ring_close(&r);
	/* two handles: the first one goes with all it had */
	vt_ring_open(&r, 256, 2048, 0, 0);
	vt_ring_attach(&r2, r.fd);
	EXPECT_EQ(r2.id, r.id);
	r.cons->user[2] = 1234;
	vt_ring_close(&r);
	EXPECT_EQ(r2.cons->user[2], 1234);
	EXPECT_EQ(r2.prod->state, RGATE_STATE_ACTIVE);
	id = r2.id;
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_RING_GET), 1);
	vt_ring_close(&r2);
	EXPECT_EQ(vt_ring_info(&nl, id, &info), -ENOENT);
}

static void retired_memory(void)
{
	struct rgate_geometry g;
	struct vt_ring r, old;

	vt_ring_open(&r, 256, 2048, 0, 0);
	old = r;
	r.cons->user[0] = 42;
	REQUIRE(!vt_ring_resize(r.fd, 128, 1024, &g));
	EXPECT_EQ(g.generation, 2);
	EXPECT_EQ(vt_ring_state(&old), RGATE_STATE_RETIRED);
	EXPECT_EQ(old.cons->user[0], 42);
	EXPECT(write_faults(old.map));
	/* what the file gives now is the new memory, by the new bounds */
	no_map(&r, 0, old.geo.map_len, PROT_READ, MAP_SHARED, EINVAL, "old length");
	r.geo = g;
	vt_ring_map(&r);
	EXPECT_EQ(r.prod->generation, 2);
	EXPECT_EQ(r.prod->slots, 128);
	EXPECT_EQ(r.cons->user[0], 0);
	EXPECT_EQ(old.prod->generation, 1);
	r.cons->user[0] = 43;
	EXPECT_EQ(old.cons->user[0], 42);
	EXPECT_ERRNO(mprotect(old.map, 4096, PROT_READ | PROT_WRITE), EACCES);
	vt_ring_close(&r);
	/* the ring's file is gone, the retired memory is still ours */
	EXPECT_EQ(old.prod->magic, RGATE_MAGIC);
	old.cons->user[0] = 44;
	EXPECT_EQ(old.cons->user[0], 44);
	vt_ring_unmap(&old);
}

static void many_mappings(void)
{
	struct vt_ring r;
	unsigned int i;
	void *p[200];

	/* many VMAs over the same pages; then all go in another order */
	vt_ring_open(&r, 64, 256, 0, 0);
	for (i = 0; i < VT_COUNT(p); i++) {
		p[i] = map(&r, 0, r.geo.map_len, PROT_READ, MAP_SHARED | MAP_POPULATE);
		REQUIRE(p[i] != MAP_FAILED);
	}
	close(r.fd);
	r.fd = -1;
	for (i = 0; i < VT_COUNT(p); i++)
		EXPECT(!munmap(p[(i * 7) % VT_COUNT(p)], r.geo.map_len));
	EXPECT_EQ(r.prod->magic, RGATE_MAGIC);
	vt_ring_close(&r);
}

static const struct vt_case cases[] = {
	{ .name = "ranges outside the ring", .fn = ranges },
	{ .name = "each area alone and together", .fn = each_area },
	{ .name = "consumer area and slots writable with RW_SLOTS", .fn = rw_slots },
	{ .name = "mprotect gives no write and no exec", .fn = mprotect_upgrade },
	{ .name = "PROT_EXEC and MAP_PRIVATE are refused", .fn = exec_and_private },
	{ .name = "a file opened read-only stays so", .fn = readonly_file },
	{ .name = "/proc/self/mem and process_vm_writev", .fn = proc_mem },
	{ .name = "the ring as source and target of system calls", .fn = write_from_ring },
	{ .name = "mremap grows nothing and moves rights along", .fn = mremap_all_ways },
	{ .name = "partial munmap", .fn = partial_munmap },
	{ .name = "fork, MADV_DONTFORK, MADV_DOFORK", .fn = fork_and_madvise },
	{ .name = "a child's mapping outlives the parent's", .fn = fork_outlives_parent_mapping },
	{ .name = "every madvise", .fn = madvise_all },
	{ .name = "close and munmap in any order, two handles", .fn = close_orders },
	{ .name = "retired memory after a resize", .fn = retired_memory },
	{ .name = "200 mappings", .fn = many_mappings },
};

VT_MAIN(cases)
