// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A ring's areas as dma-bufs: who gets one, what can be done with its mapping, and what a
 * driver that imports it sees.
 */
#include "lib/vt.h"
#include "lib/vt_dmabuf.h"

#include <sys/uio.h>

#define BOTH	0
#define TO	1	/* the device reads */
#define FROM	2	/* the device writes */

static struct vt_nl nl;
static struct vt_ring ring;

static void setup(uint32_t flags)
{
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&ring, 256, 2048, flags, 0);
	vt_att_simple(&nl, "vb", ring.id);
}

static void frames(unsigned int n)
{
	int tx = vt_tx_open("va");

	vt_tx_burst(tx, 500, 0, n);
	EXPECT(VT_UNTIL(vt_ring_head(&ring) == n, 3000));
	close(tx);
}

static size_t slots_len(void)
{
	return ring.geo.map_len - ring.geo.slots_off;
}

static size_t cons_len(void)
{
	return ring.geo.slots_off - ring.geo.cons_off;
}

/* The lowest descriptor that is free: neither open nor reserved */
static int next_fd(void)
{
	int fd = dup(ring.fd);

	REQUIRE(fd >= 0);
	close(fd);
	return fd;
}

static void arguments(void)
{
	static const struct rgate_export bad[] = {
		{ .area = RGATE_AREA_COUNT }, { .area = ~0U },
		{ .area = RGATE_AREA_SLOTS, .flags = 1 },
		{ .area = RGATE_AREA_SLOTS, .flags = 1U << 31 },
		{ .area = RGATE_AREA_SLOTS, .fd = 1 },
		{ .area = RGATE_AREA_SLOTS, .fd = -1 },
		{ .area = RGATE_AREA_SLOTS, .generation = 1 },
		{ .area = RGATE_AREA_SLOTS, .len = 1 },
		{ .area = RGATE_AREA_SLOTS, .reserved[0] = 1 },
		{ .area = RGATE_AREA_SLOTS, .reserved[1] = 1ULL << 63 },
	};
	struct rgate_export arg;
	unsigned int i;
	void *readonly;
	int fd, before;

	setup(0);
	before = next_fd();
	for (i = 0; i < VT_COUNT(bad); i++) {
		arg = bad[i];
		EXPECT_ERRNO(ioctl(ring.fd, RGATE_IOC_EXPORT, &arg), EINVAL);
		EXPECT(!memcmp(&arg, &bad[i], sizeof(arg)));
	}
	EXPECT_ERRNO(ioctl(ring.fd, RGATE_IOC_EXPORT, NULL), EFAULT);
	/* can be read, and not be written: no descriptor is left */
	readonly = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(readonly != MAP_FAILED);
	EXPECT_ERRNO(ioctl(ring.fd, RGATE_IOC_EXPORT, readonly), EFAULT);
	fd = vt_dev_open();
	EXPECT_EQ(vt_export(fd, RGATE_AREA_SLOTS, NULL), -ENXIO);
	close(fd);
	EXPECT_EQ(next_fd(), before);
	fd = vt_export(ring.fd, RGATE_AREA_SLOTS, &arg);
	REQUIRE(fd >= 0);
	EXPECT_EQ(arg.generation, 1);
	EXPECT_EQ(arg.len, slots_len());
	EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	EXPECT_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	EXPECT_EQ(lseek(fd, 0, SEEK_END), (off_t)slots_len());
	close(fd);
	fd = vt_export(ring.fd, RGATE_AREA_CONSUMER, &arg);
	REQUIRE(fd >= 0);
	EXPECT_EQ(arg.len, cons_len());
	EXPECT_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
}

/* One for each area and generation, whoever asks, and whether one is open still */
static void the_same(void)
{
	struct rgate_export arg;
	struct vt_ring other;
	int a, b, cons;

	setup(0);
	vt_ring_attach(&other, ring.fd);
	a = vt_exported(ring.fd, RGATE_AREA_SLOTS);
	b = vt_exported(other.fd, RGATE_AREA_SLOTS);
	cons = vt_exported(ring.fd, RGATE_AREA_CONSUMER);
	EXPECT(a != b && vt_same_file(a, b) && !vt_same_file(a, cons));
	close(a);
	a = vt_exported(ring.fd, RGATE_AREA_SLOTS);
	EXPECT(vt_same_file(a, b));
	REQUIRE(!vt_ring_resize(ring.fd, 64, 1024, NULL));
	a = vt_export(other.fd, RGATE_AREA_SLOTS, &arg);
	REQUIRE(a >= 0);
	EXPECT_EQ(arg.generation, 2);
	EXPECT_EQ(arg.len, 64 * 1024);
	EXPECT(!vt_same_file(a, b));
	/* what was there before is what it was */
	EXPECT_EQ(lseek(b, 0, SEEK_END), (off_t)slots_len());
}

/* What is open for less cannot make more of it. */
static void by_access_mode(void)
{
	static const struct {
		int how;
		uint32_t flags, area;
		int err;
	} tries[] = {
		{ O_RDONLY, 0, RGATE_AREA_SLOTS, 0 },
		{ O_RDONLY, 0, RGATE_AREA_CONSUMER, EBADF },
		{ O_RDONLY, RGATE_RING_RW_SLOTS, RGATE_AREA_SLOTS, EBADF },
		{ O_WRONLY, 0, RGATE_AREA_SLOTS, EBADF },
		{ O_WRONLY, 0, RGATE_AREA_CONSUMER, EBADF },
		{ O_RDWR, RGATE_RING_RW_SLOTS, RGATE_AREA_SLOTS, 0 },
	};
	unsigned int i;

	for (i = 0; i < VT_COUNT(tries); i++) {
		struct rgate_attach a = { 0 };
		int fd = open(RGATE_DEVICE, tries[i].how | O_CLOEXEC), buf;

		vt_ring_open(&ring, 64, 256, tries[i].flags, 0);
		a.fd = ring.fd;
		REQUIRE(fd >= 0 && !ioctl(fd, RGATE_IOC_ATTACH, &a));
		buf = vt_export(fd, tries[i].area, NULL);
		if (tries[i].err ? buf != -tries[i].err : buf < 0)
			FAIL("try %u: %d", i, buf);
		close(buf);
		close(fd);
		vt_ring_close(&ring);
	}
}

/* No way to write into what is read-only */
static void stays_readonly(int fd, size_t len)
{
	uint8_t *p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	char path[64];
	void *q;

	REQUIRE(p != MAP_FAILED);
	EXPECT_ERRNO(mprotect(p, len, PROT_READ | PROT_WRITE), EACCES);
	EXPECT_ERRNO(mprotect(p + len - 4096, 4096, PROT_WRITE), EACCES);
	EXPECT_ERRNO(mprotect(p, len, PROT_READ | PROT_EXEC), EACCES);
	munmap(p, len);
	EXPECT_ERRNO(mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), EACCES);
	EXPECT_ERRNO(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, (off_t)len - 4096), EACCES);
	EXPECT_ERRNO(mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0), EINVAL);
	q = mmap(NULL, len, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	EXPECT(q == MAP_FAILED);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	EXPECT(open(path, O_RDWR | O_CLOEXEC) < 0);
}

/* A process of another user, with a file of the ring that is open for reading alone */
static int onlooker(void *arg)
{
	const int look = *(int *)arg;

	close(ring.fd);
	REQUIRE(!setgid(12345) && !setuid(12345));
	EXPECT_EQ(vt_export(look, RGATE_AREA_CONSUMER, NULL), -EBADF);
	stays_readonly(vt_exported(look, RGATE_AREA_SLOTS), slots_len());
	return 0;
}

static void only_looks(void)
{
	struct rgate_attach a = { 0 };
	int look = open(RGATE_DEVICE, O_RDONLY | O_CLOEXEC);

	vt_ring_open(&ring, 64, 2048, 0, 0);
	a.fd = ring.fd;
	REQUIRE(look >= 0 && !ioctl(look, RGATE_IOC_ATTACH, &a));
	EXPECT_EQ(vt_wait(vt_fork(onlooker, &look), 10000), 0);
}

/* The page at @p can be pinned, as for RDMA: a pipe takes it as it is. */
static void pins(uint8_t *p)
{
	struct iovec page = { p, 4096 };
	uint8_t back[4096];
	int ends[2];

	REQUIRE(!pipe(ends));
	REQUIRE_EQ(vmsplice(ends[1], &page, 1, 0), 4096);
	REQUIRE_EQ(read(ends[0], back, 4096), 4096);
	EXPECT(!memcmp(back, p, 4096));
	close(ends[0]);
	close(ends[1]);
}

static void readonly_mapping(void)
{
	const size_t len = (setup(0), slots_len());
	int fd = vt_exported(ring.fd, RGATE_AREA_SLOTS);
	uint8_t *p, *part;

	frames(100);
	p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	part = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 16384);
	REQUIRE(p != MAP_FAILED && part != MAP_FAILED);
	EXPECT(!memcmp(p, ring.slots, len));
	EXPECT(!memcmp(part, ring.slots + 16384, 8192));
	/* thrown out, and found again at the same place */
	REQUIRE(!madvise(part, 8192, MADV_DONTNEED));
	EXPECT(!memcmp(part, ring.slots + 16384, 8192));
	pins(part);
	EXPECT(mremap(part, 8192, 16384, MREMAP_MAYMOVE) == MAP_FAILED);
	stays_readonly(fd, len);
	/* nothing beside the area, before it or behind */
	EXPECT_ERRNO(mmap(NULL, len + 4096, PROT_READ, MAP_SHARED, fd, 0), EINVAL);
	EXPECT_ERRNO(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, (off_t)len), EINVAL);
	fd = vt_exported(ring.fd, RGATE_AREA_CONSUMER);
	EXPECT_ERRNO(mmap(NULL, cons_len() + 4096, PROT_READ, MAP_SHARED, fd, 0), EINVAL);
	/* frames that come later are there as well */
	vt_ring_drain(&ring);
	EXPECT(!memcmp(p, ring.slots, len));
}

static void writable_mapping(void)
{
	uint8_t *p;
	int fd;

	setup(RGATE_RING_RW_SLOTS);
	fd = vt_exported(ring.fd, RGATE_AREA_CONSUMER);
	p = mmap(NULL, cons_len(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(p != MAP_FAILED);
	close(fd);
	/* batches are returned by it: the ring takes more than its slots */
	frames(256);
	memcpy(p + (ring.geo.credits_off - ring.geo.cons_off),
	       &(uint64_t){ 1 }, sizeof(uint64_t));
	EXPECT_EQ(ring.credits[0], 1);
	{
		int tx = vt_tx_open("va");

		vt_tx_burst(tx, 500, 256, 40);
		EXPECT(VT_UNTIL(vt_ring_stats(&ring).dropped_full == 8, 3000));
		EXPECT_EQ(vt_ring_head(&ring), 256 + 32);
	}
	EXPECT_ERRNO(mprotect(p, cons_len(), PROT_READ | PROT_EXEC), EACCES);
	fd = vt_exported(ring.fd, RGATE_AREA_SLOTS);
	p = mmap(NULL, slots_len(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(p != MAP_FAILED);
	p[slots_len() - 1] = 0x5a;
	EXPECT_EQ(ring.slots[slots_len() - 1], 0x5a);
}

static void imported(void)
{
	int im = vt_importer(), fd, i;
	uint8_t data[IMPORT_DATA];
	struct import_arg arg;

	setup(0);
	fd = vt_exported(ring.fd, RGATE_AREA_SLOTS);
	/* who may not write gets no address to write to */
	EXPECT_EQ(vt_import(im, fd, BOTH, NULL), -EACCES);
	EXPECT_EQ(vt_import(im, fd, FROM, NULL), -EACCES);
	REQUIRE(!vt_import(im, fd, TO, &arg));
	EXPECT_EQ(arg.bytes, slots_len());
	EXPECT_GE(arg.runs, slots_len() / 65536);
	EXPECT_LE(arg.runs, slots_len() / 4096);
	/* what a device says it takes at once, unless told */
	EXPECT_LE(arg.longest, 65536);
	vt_note("%u runs, the longest of %u bytes", arg.runs, arg.longest);
	/* frames that come after it was mapped, at the addresses of the device */
	frames(200);
	for (i = 0; i < 256; i++) {
		uint64_t off = (uint64_t)i * 2048;

		REQUIRE(!vt_import_do(im, IMPORT_READ, off + 64, data));
		EXPECT(!memcmp(data, ring.slots + off + 64, sizeof(data)));
		EXPECT(i >= 200 || data[0]);
	}
	/* a driver's own address would let it write */
	EXPECT_EQ(vt_import_do(im, IMPORT_VREAD, 0, data), -EINVAL);
}

static void imported_writable(void)
{
	int im = vt_importer(), second = vt_importer(), fd;
	uint8_t data[IMPORT_DATA];
	struct import_arg arg;
	uint64_t off;

	setup(RGATE_RING_RW_SLOTS);
	frames(10);
	fd = vt_exported(ring.fd, RGATE_AREA_SLOTS);
	REQUIRE(!vt_import(im, fd, BOTH, &arg));
	EXPECT_EQ(arg.bytes, slots_len());
	/* and for another one at the same time */
	EXPECT_EQ(vt_import(second, fd, BOTH, NULL), 0);
	for (off = 0; off < slots_len(); off += 4096) {
		memset(data, (int)(off >> 12), sizeof(data));
		REQUIRE(!vt_import_do(im, IMPORT_WRITE, off + 2048, data));
		EXPECT(!memcmp(data, ring.slots + off + 2048, sizeof(data)));
	}
	close(second);
	/* the fifth frame, by the address that a driver has */
	REQUIRE(!vt_import_do(im, IMPORT_VREAD, 4 * 2048 + 64, data));
	EXPECT(data[0] && !memcmp(data, ring.slots + 4 * 2048 + 64, sizeof(data)));
	ioctl(im, IMPORT_END);
	/* and a credit by a device */
	fd = vt_exported(ring.fd, RGATE_AREA_CONSUMER);
	REQUIRE(!vt_import(im, fd, FROM, &arg));
	EXPECT_EQ(arg.bytes, cons_len());
	memset(data, 0, sizeof(data));
	data[0] = 1;
	off = ring.geo.credits_off - ring.geo.cons_off;
	REQUIRE(!vt_import_do(im, IMPORT_WRITE, off, data));
	EXPECT_EQ(ring.credits[0], 1);
}

/* Each allocation for an import fails in turn. */
static void no_memory(void)
{
	int im = vt_importer(), fd, n;

	if (access("/sys/module/ringgate/parameters/fail_alloc", W_OK))
		vt_skip("the module has no parameter fail_alloc");
	vt_ring_open(&ring, 256, 2048, 0, 0);
	fd = vt_exported(ring.fd, RGATE_AREA_SLOTS);
	for (n = 1; n <= 2; n++) {
		vt_must("echo %d >/sys/module/ringgate/parameters/fail_alloc", n);
		EXPECT_EQ(vt_import(im, fd, TO, NULL), -ENOMEM);
	}
	vt_must("echo 3 >/sys/module/ringgate/parameters/fail_alloc");
	EXPECT_EQ(vt_import(im, fd, TO, NULL), 0);
	vt_must("echo 0 >/sys/module/ringgate/parameters/fail_alloc");
}

/* Of the kernel's interface to graphics cards, whose headers are a package of their own */
struct prime {
	uint32_t handle, flags;
	int32_t fd;
};

#define PRIME_HANDLE_TO_FD	_IOWR('d', 0x2d, struct prime)
#define PRIME_FD_TO_HANDLE	_IOWR('d', 0x2e, struct prime)

/* vgem, a graphics card without hardware: an importer of the kernel's own */
static void graphics_card(void)
{
	struct prime p = { .flags = O_CLOEXEC };
	int card = -1, fd, back;

	if (vt_sh("modprobe -q vgem"))
		vt_skip("no vgem in this kernel");
	VT_UNTIL((card = open("/dev/dri/card0", O_RDWR | O_CLOEXEC)) >= 0, 3000);
	if (card < 0)
		vt_skip("no /dev/dri/card0");
	/* it maps for both directions, or not at all */
	vt_ring_open(&ring, 256, 2048, 0, 0);
	p.fd = vt_exported(ring.fd, RGATE_AREA_SLOTS);
	errno = 0;
	EXPECT(!ioctl(card, PRIME_FD_TO_HANDLE, &p) || errno == EACCES);
	vt_note("read-only slots: %s", strerror(errno));
	close(p.fd);
	vt_ring_close(&ring);
	vt_ring_open(&ring, 256, 2048, RGATE_RING_RW_SLOTS, 0);
	p.fd = fd = vt_exported(ring.fd, RGATE_AREA_SLOTS);
	REQUIRE(!ioctl(card, PRIME_FD_TO_HANDLE, &p));
	p.fd = -1;
	REQUIRE(!ioctl(card, PRIME_HANDLE_TO_FD, &p));
	back = p.fd;
	EXPECT(vt_same_file(fd, back));
	/* the card alone keeps it */
	close(fd);
	close(back);
	vt_ring_close(&ring);
	EXPECT_EQ(vt_rmmod(), -EWOULDBLOCK);
	close(card);
	EXPECT_EQ(vt_rmmod(), 0);
	REQUIRE(!vt_insmod(""));
}

static const struct vt_case cases[] = {
	{ .name = "arguments", .fn = arguments },
	{ .name = "one dma-buf for each area and generation", .fn = the_same },
	{ .name = "by how the file is open", .fn = by_access_mode },
	{ .name = "by a user who may only look", .fn = only_looks },
	{ .name = "a mapping of slots that may be read", .fn = readonly_mapping },
	{ .name = "mappings that may be written", .fn = writable_mapping },
	{ .name = "imported for reading", .fn = imported },
	{ .name = "imported for both", .fn = imported_writable },
	{ .name = "imported without memory for it", .fn = no_memory },
	{ .name = "imported by vgem", .fn = graphics_card },
};

int main(void)
{
	int r;

	vt_importer_load();
	r = vt_run(cases, VT_COUNT(cases));
	vt_importer_unload();
	return r;
}
