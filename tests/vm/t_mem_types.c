// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What can be registered with an RDMA device and what cannot. Whatever registers is
 * written and read by RDMA, and the CPU sees the same bytes.
 */
#include "lib/vt.h"
#include "lib/vt_rc.h"

#include <malloc.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <linux/memfd.h>
#include <linux/udmabuf.h>
#include <ringgate/ringgate.h>

#define RW	(RGATE_ACCESS_REMOTE_READ | RGATE_ACCESS_REMOTE_WRITE)
#define LEN	(16 * 4096)
#define HUGE	(2U << 20)
#define MOST	32768		/* bytes of a transfer */

static struct rgate_device *dev;
static struct rgate_rc *rc;
static uint8_t *buf;
static struct rgate_mem *bmem;

static void setup(void)
{
	vt_rxe_up(1);
	vt_log_catch();
	dev = vt_dev_rdma(0);
	rc = vt_rc_loop(dev, RW);
	buf = aligned_alloc(4096, MOST);
	REQUIRE(buf);
	bmem = vt_mem(dev, buf, MOST, 0);
}

static void done(void)
{
	rgate_rc_destroy(rc);
	vt_mem_drop(bmem);
	free(buf);
	EXPECT_EQ(rgate_device_mr_count(dev), 0);
	vt_dev_close(dev);
}

static bool all(const uint8_t *p, size_t len, uint8_t value)
{
	return !len || (*p == value && !memcmp(p, p + 1, len - 1));
}

static struct vt_mem_at by_desc(const struct rgate_mem *mem, size_t off, size_t len)
{
	struct rgate_remote r;
	struct rgate_desc d;

	REQUIRE_EQ(rgate_mem_desc(mem, off, len, &d), 0);
	REQUIRE_EQ(rgate_desc_parse(&r, &d, sizeof(d)), 0);
	EXPECT_EQ(r.length, len);
	return (struct vt_mem_at){ r.addr, r.rkey };
}

/* By RDMA into @p, which the CPU sees, and only there; by CPU into @p, and read */
static void transfer(const char *what, uint8_t *p, size_t len, struct rgate_mem *mem)
{
	size_t n = 1 + vt_rand() % (len < 2 * MOST ? len / 2 : MOST);
	size_t off = vt_rand() % (len - n + 1);
	struct vt_mem_at to = by_desc(mem, off, n);
	int err;

	memset(p, 0xa5, len);
	vt_pkt_fill(buf, n, vt_rand());
	err = vt_rc_do(rc, RGATE_RC_WRITE, vt_here(bmem, 0), to, n);
	if (err)
		DIE("%s: RDMA write: %s", what, rgate_strerror("rgate_mem_", err));
	if (memcmp(p + off, buf, n))
		FAIL("%s: %zu bytes written at %zu are not there", what, n, off);
	if (!all(p, off, 0xa5) || !all(p + off + n, len - off - n, 0xa5))
		FAIL("%s: written outside of %zu+%zu", what, off, n);
	vt_pkt_fill(p + off, n, vt_rand());
	err = vt_rc_do(rc, RGATE_RC_READ, vt_here(bmem, 0), to, n);
	if (err)
		DIE("%s: RDMA read: %s", what, rgate_strerror("rgate_mem_", err));
	if (memcmp(p + off, buf, n))
		FAIL("%s: %zu bytes read at %zu are others", what, n, off);
}

static void works(const char *what, void *p, size_t len)
{
	struct rgate_mem *mem;
	int err = vt_mem_try(&mem, dev, p, len, RW);

	if (err) {
		FAIL("%s does not register: %s", what, rgate_strerror("rgate_mem_", err));
		return;
	}
	EXPECT(rgate_mem_addr(mem) == p);
	EXPECT_EQ(rgate_mem_length(mem), len);
	EXPECT_EQ(rgate_mem_iova(mem), (uintptr_t)p);
	EXPECT(rgate_mem_device(mem) == dev);
	transfer(what, p, len, mem);
	transfer(what, p, len, mem);
	rgate_mem_deregister(mem);
}

static void refused(const char *what, void *p, size_t len, uint32_t access, int want)
{
	struct rgate_mem *mem;
	uint32_t before = rgate_device_mr_count(dev);
	int err = vt_mem_try(&mem, dev, p, len, access);

	if (err != want)
		FAIL("%s: %d, not %d", what, err, want);
	if (!err)
		rgate_mem_deregister(mem);
	EXPECT_EQ(rgate_device_mr_count(dev), before);
}

static void *map(size_t len, int prot, int flags, int fd)
{
	void *p = mmap(NULL, len, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		DIE("mmap: %s", strerror(errno));
	return p;
}

static int memfd(unsigned int flags, size_t len)
{
	int fd = memfd_create("vt", flags);

	REQUIRE(fd >= 0 && !ftruncate(fd, (off_t)len));
	return fd;
}

static void heap(void)
{
	const int rw = PROT_READ | PROT_WRITE;
	void *p;

	setup();
	p = malloc(LEN + 123);
	works("malloc", p, LEN + 123);
	free(p);
	p = malloc(100);
	works("malloc of 100 bytes", p, 100);
	free(p);
	REQUIRE(!posix_memalign(&p, 4096, LEN));
	works("posix_memalign", p, LEN);
	EXPECT_EQ(rgate_mem_page_size(p), 4096);
	free(p);
	p = map(LEN, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	works("private anonymous memory", p, LEN);
	munmap(p, LEN);
	EXPECT_EQ(rgate_mem_page_size(p), -EFAULT);
	p = map(LEN, rw, MAP_SHARED | MAP_ANONYMOUS, -1);
	works("shared anonymous memory", p, LEN);
	munmap(p, LEN);
	{
		uint8_t stack[3 * 4096];

		works("the stack", stack, sizeof(stack));
	}
	done();
}

static long anon_huge_kb(void)
{
	char line[128];
	long kb = 0, v;
	FILE *f = fopen("/proc/self/smaps_rollup", "r");

	REQUIRE(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "AnonHugePages: %ld", &v) == 1)
			kb = v;
	fclose(f);
	return kb;
}

static void transparent_huge(void)
{
	uint8_t *raw, *p;

	setup();
	raw = map(3 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	p = (uint8_t *)(((uintptr_t)raw + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	if (madvise(p, 2 * HUGE, MADV_HUGEPAGE))
		vt_skip("no transparent huge pages: %s", strerror(errno));
	memset(p, 1, 2 * HUGE);
	if (!anon_huge_kb())
		vt_note("the kernel gave no huge page");
	works("transparent huge pages", p, 2 * HUGE);
	works("a part of transparent huge pages", p + 12345, HUGE);
	EXPECT_EQ(rgate_mem_page_size(p), 4096);
	munmap(raw, 3 * HUGE);
	done();
}

static long huge_pages(long n)
{
	const char *path = "/proc/sys/vm/nr_hugepages";
	FILE *f = fopen(path, "r");
	long was = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%ld", &was) != 1)
		was = -1;
	fclose(f);
	vt_sh("echo %ld >%s", n, path);
	return was;
}

static void hugetlb(void)
{
	long was = huge_pages(4);
	uint8_t *p;
	int fd;

	setup();
	fd = memfd_create("vt", MFD_HUGETLB | MFD_HUGE_2MB);
	if (fd < 0 || ftruncate(fd, 2 * HUGE)) {
		huge_pages(was);
		vt_skip("no huge pages of 2 MiB: %s", strerror(errno));
	}
	p = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		huge_pages(was);
		vt_skip("no huge pages are free: %s", strerror(errno));
	}
	works("a hugetlb memfd", p, 2 * HUGE);
	works("64 KiB of a hugetlb memfd", p + HUGE - 32768, 65536);
	works("odd bytes of a hugetlb memfd", p + 4097, 100001);
	EXPECT_EQ(rgate_mem_page_size(p + HUGE), HUGE);
	munmap(p, 2 * HUGE);
	close(fd);
	done();
	huge_pages(was);
}

static void memfds(void)
{
	const int rw = PROT_READ | PROT_WRITE;
	int fd;
	void *p;

	setup();
	fd = memfd(0, LEN);
	p = map(LEN, rw, MAP_SHARED, fd);
	works("a memfd", p, LEN);
	munmap(p, LEN);
	p = map(LEN, rw, MAP_PRIVATE, fd);
	works("a private mapping of a memfd", p, LEN);
	munmap(p, LEN);
	close(fd);
	done();
}

static int file(const char *path)
{
	static const uint8_t page[4096] = { [0 ... 4095] = 0x77 };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), i;

	if (fd < 0)
		DIE("%s: %s", path, strerror(errno));
	for (i = 0; i < LEN / 4096; i++)
		REQUIRE(write(fd, page, 4096) == 4096);
	unlink(path);
	return fd;
}

/* A device that writes a private mapping writes its own copy */
static void private_file(const char *where, int fd)
{
	uint8_t *p = map(LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd), back[4096];
	char what[64];
	unsigned int i;

	snprintf(what, sizeof(what), "a private mapping of a file on %s", where);
	works(what, p, LEN);
	for (i = 0; i < LEN / 4096; i++) {
		REQUIRE(pread(fd, back, 4096, i * 4096) == 4096);
		if (!all(back, 4096, 0x77))
			FAIL("%s: the file was written", what);
	}
	munmap(p, LEN);
}

static void files(void)
{
	void *p;
	int fd;

	setup();
	fd = file("/dev/shm/vt-mem");
	p = map(LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	works("a file on tmpfs", p, LEN);
	munmap(p, LEN);
	private_file("tmpfs", file("/dev/shm/vt-mem"));
	private_file("overlayfs", file("/var/tmp/vt-mem"));
	close(fd);
	done();
}

static void disk_file(void)
{
	const int rw = PROT_READ | PROT_WRITE;
	void *p;
	int fd;

	if (vt_sh("modprobe -qa loop ext4 && truncate -s 4M /tmp/vt-img &&"
		  " mkfs.ext4 -q -O ^has_journal /tmp/vt-img && mkdir -p /tmp/vt-mnt &&"
		  " mount -o loop /tmp/vt-img /tmp/vt-mnt"))
		vt_skip("no ext4 here");
	setup();
	fd = file("/tmp/vt-mnt/f");
	private_file("ext4", fd);
	p = map(LEN, rw, MAP_SHARED, fd);
	/* pages that are written back must not be pinned for writing: since 6.5 */
	if (vt_kernel_before(6, 5))
		works("a shared file on ext4", p, LEN);
	else
		refused("a shared file on ext4", p, LEN, RW, -EFAULT);
	munmap(p, LEN);
	close(fd);
	done();
	vt_must("umount /tmp/vt-mnt && rm /tmp/vt-img");
}

static void read_only(void)
{
	const uint32_t ro = RGATE_ACCESS_READONLY | RGATE_ACCESS_REMOTE_READ;
	struct rgate_mem *mem;
	uint8_t *p, *w;
	int fd, err;

	setup();
	fd = memfd(0, LEN);
	w = map(LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	p = map(LEN, PROT_READ, MAP_SHARED, fd);
	vt_pkt_fill(w, LEN, 5);
	refused("a read-only mapping, for writing", p, LEN, RW, -EFAULT);
	refused("a read-only mapping, for local writing", p, LEN, 0, -EFAULT);
	err = vt_mem_try(&mem, dev, p, LEN, ro);
	if (vt_kernel_before(6, 2)) {
		/* it pins for writing, whatever is asked for */
		EXPECT_EQ(err, -EFAULT);
	} else {
		REQUIRE_EQ(err, 0);
		EXPECT_EQ(vt_rc_do(rc, RGATE_RC_READ, vt_here(bmem, 0),
				   by_desc(mem, 7, 20000), 20000), 0);
		EXPECT(!memcmp(buf, w + 7, 20000));
		vt_mem_drop(mem);
	}
	/* what is mapped writable can always be given for reading alone */
	mem = vt_mem(dev, w, LEN, ro);
	EXPECT_EQ(vt_rc_do(rc, RGATE_RC_READ, vt_here(bmem, 0), by_desc(mem, 9, 30000),
			   30000), 0);
	EXPECT(!memcmp(buf, w + 9, 30000));
	vt_mem_drop(mem);
	done();
}

static void unmappable(void)
{
	uint8_t *p;

	setup();
	p = map(2 * LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	refused("no bytes", p, 0, RW, -EINVAL);
	refused("a range that wraps", p, SIZE_MAX - 4096, RW, -EINVAL);
	refused("writing for others but not for the own device", p, LEN,
		RGATE_ACCESS_READONLY | RGATE_ACCESS_REMOTE_WRITE, -EINVAL);
	refused("unknown access", p, LEN, 1U << 17, -EINVAL);
	REQUIRE(!mprotect(p, LEN, PROT_NONE));
	refused("PROT_NONE", p, LEN, RW, -EFAULT);
	munmap(p, LEN);
	refused("nothing at all", p, LEN, RW, -EFAULT);
	refused("half of it mapped", p + LEN / 2, LEN, RW, -EFAULT);
	EXPECT(vt_log_has("map"));
	works("the mapped half", p + LEN, LEN);
	done();
}

/* A dma-buf of @len bytes from the driver udmabuf, or -errno */
static int by_udmabuf(size_t len)
{
	struct udmabuf_create c = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = len };
	int dir = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;

	if (dir < 0)
		return -errno;
	fd = memfd(MFD_ALLOW_SEALING, len);
	REQUIRE(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	c.memfd = (uint32_t)fd;
	fd = ioctl(dir, UDMABUF_CREATE, &c);
	REQUIRE(fd >= 0);
	close((int)c.memfd);
	close(dir);
	return fd;
}

/* Of the kernel's interface to graphics cards, whose headers are a package of their own */
struct dumb {
	uint32_t height, width, bpp, flags;
	uint32_t handle, pitch;		/* out */
	uint64_t size;			/* out */
};

struct prime {
	uint32_t handle, flags;
	int32_t fd;			/* out */
};

#define CREATE_DUMB		_IOWR('d', 0xb2, struct dumb)
#define PRIME_HANDLE_TO_FD	_IOWR('d', 0x2d, struct prime)

/* The same from vgem, a graphics card without hardware */
static int by_vgem(size_t len)
{
	struct dumb dumb = { .width = 1024, .height = (uint32_t)len / 4096, .bpp = 32 };
	struct prime prime = { .flags = O_CLOEXEC | O_RDWR };
	int card;

	if (vt_sh("modprobe -q vgem"))
		return -ENODEV;
	VT_UNTIL((card = open("/dev/dri/card0", O_RDWR | O_CLOEXEC)) >= 0, 3000);
	if (card < 0)
		return -errno;
	REQUIRE(!ioctl(card, CREATE_DUMB, &dumb) && dumb.size >= len);
	prime.handle = dumb.handle;
	REQUIRE(!ioctl(card, PRIME_HANDLE_TO_FD, &prime));
	close(card);
	return prime.fd;
}

static void dma_buf(void)
{
	struct rgate_mem_opts o = RGATE_OPTS(rgate_mem_opts, .access = RW);
	struct rgate_mem *mem = NULL;
	int fd = by_udmabuf(LEN);
	void *p;

	if (fd < 0)
		fd = by_vgem(LEN);
	if (fd < 0)
		vt_skip("nothing here that makes dma-bufs");
	setup();
	EXPECT_EQ(rgate_mem_register_dmabuf(&mem, dev, fd, 0, LEN, &o), -EOPNOTSUPP);
	EXPECT(!mem);
	EXPECT(vt_log_has("dma-buf"));
	EXPECT_EQ(rgate_mem_register_dmabuf(&mem, dev, fd, 0, 0, &o), -EINVAL);
	EXPECT_EQ(rgate_device_mr_count(dev), 1);
	p = map(LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	*(volatile uint8_t *)p = 1;
	/* its mapping has pages that could be pinned on some kernels, udmabuf's on 6.1 */
	if (vt_mem_try(&mem, dev, p, LEN, RW)) {
		refused("a mapping without pages", p, LEN, RW, -EFAULT);
	} else {
		vt_mem_drop(mem);
		works("a mapping of a dma-buf", p, LEN);
	}
	munmap(p, LEN);
	close(fd);
	done();
}

static void on_demand(void)
{
	struct rgate_mem_opts o = RGATE_OPTS(rgate_mem_opts, .access = RW,
					     .flags = RGATE_MEM_ON_DEMAND);
	struct rgate_mem *mem = NULL;
	int err;

	setup();
	err = rgate_mem_register(&mem, dev, buf, MOST, &o);
	/* Soft-RoCE of some kernels offers it and then puts data into wrong places */
	EXPECT_EQ(err, -EOPNOTSUPP);
	EXPECT(vt_log_has(rgate_device_info(dev)->odp ? "not safe" : "no on-demand paging"));
	if (!err)
		vt_mem_drop(mem);
	done();
}

static void module_ring(void)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 256,
					      .flags = RGATE_RING_RW_SLOTS);
	struct rgate_ring *ring, *plain;
	struct rgate_view v;
	size_t slots;

	setup();
	REQUIRE_EQ(rgate_ring_open(&ring, &o), 0);
	rgate_ring_view(ring, &v);
	slots = (size_t)v.nslots * v.slot_size;
	works("the slots of a module's ring", rgate_ring_slots_rw(ring), slots);
	/* one mapping of pages that belong together */
	works("consumer area and slots of a module's ring", v.cons,
	      (size_t)(v.slots - (unsigned char *)v.cons) + slots);
	refused("the producer area", (void *)(uintptr_t)v.prod, 4096, RW, -EFAULT);
	o.flags = 0;
	REQUIRE_EQ(rgate_ring_open(&plain, &o), 0);
	rgate_ring_view(plain, &v);
	EXPECT(!rgate_ring_slots_rw(plain));
	refused("read-only slots", (void *)(uintptr_t)v.slots, slots, RW, -EFAULT);
	rgate_ring_close(plain);
	rgate_ring_close(ring);
	done();
}

static void memfd_ring(void)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 256);
	struct rgate_ring *ring, *other;
	struct rgate_view v, ov;
	struct rgate_mem *mem;
	size_t len;
	int sock[2];

	setup();
	REQUIRE_EQ(rgate_ring_open_memfd(&ring, &o), 0);
	rgate_ring_view(ring, &v);
	len = (size_t)v.nslots * v.slot_size;
	works("the slots of a memfd ring", rgate_ring_slots_rw(ring), len);
	/* what the device writes another process's mapping shows too */
	REQUIRE(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock));
	REQUIRE_EQ(rgate_ring_send(ring, sock[0]), 0);
	REQUIRE_EQ(rgate_ring_recv(&other, sock[1]), 0);
	rgate_ring_view(other, &ov);
	mem = vt_mem(dev, rgate_ring_slots_rw(ring), len, RW);
	vt_pkt_fill(buf, MOST, 3);
	EXPECT_EQ(vt_rc_do(rc, RGATE_RC_WRITE, vt_here(bmem, 0), by_desc(mem, 640, MOST),
			   MOST), 0);
	EXPECT(!memcmp(ov.slots + 640, buf, MOST));
	refused("slots of another's memfd ring", (void *)(uintptr_t)ov.slots, len, RW,
		-EFAULT);
	vt_mem_drop(mem);
	rgate_ring_close(other);
	rgate_ring_close(ring);
	done();
}

static const struct vt_case cases[] = {
	{ .name = "heap, stack, anonymous memory", .fn = heap, .flags = VT_HOSTNS },
	{ .name = "transparent huge pages", .fn = transparent_huge, .flags = VT_HOSTNS },
	{ .name = "hugetlb pages", .fn = hugetlb, .flags = VT_HOSTNS },
	{ .name = "memfds", .fn = memfds, .flags = VT_HOSTNS },
	{ .name = "files on tmpfs, private mappings", .fn = files, .flags = VT_HOSTNS },
	{ .name = "files on a disk", .fn = disk_file, .flags = VT_HOSTNS },
	{ .name = "read-only mappings", .fn = read_only, .flags = VT_HOSTNS },
	{ .name = "what cannot be mapped", .fn = unmappable, .flags = VT_HOSTNS },
	{ .name = "dma-bufs and mappings without pages", .fn = dma_buf, .flags = VT_HOSTNS },
	{ .name = "on-demand paging", .fn = on_demand, .flags = VT_HOSTNS },
	{ .name = "rings of the module", .fn = module_ring, .flags = VT_HOSTNS },
	{ .name = "rings in memfds", .fn = memfd_ring, .flags = VT_HOSTNS },
};

VT_RXE_MAIN(cases)
