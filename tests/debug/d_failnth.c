// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Every allocation that the kernel makes for a call fails in turn (slab and pages,
 * by fail-nth): also those which the module does not make itself. What comes back is
 * an error that says so, the next try works, and nothing is left behind.
 */
#include "lib/vt.h"
#include "lib/vt_dmabuf.h"

#include <sys/syscall.h>

#define DEBUGFS	"/sys/kernel/debug/"
#define MOST	400
#define OWN	150	/* allocations of the module's start, and some before it */

static struct vt_nl nl;
static struct vt_ring ring;
static uint32_t att;
static int fail_fd = -1;

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		vt_skip("%s: %s: this kernel has no fault injection", path, strerror(errno));
	REQUIRE(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void setup(void)
{
	char path[64];

	vt_sh("mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug");
	put(DEBUGFS "failslab/ignore-gfp-wait", "N");
	put(DEBUGFS "failslab/verbose", "0");
	put(DEBUGFS "fail_page_alloc/ignore-gfp-wait", "N");
	put(DEBUGFS "fail_page_alloc/ignore-gfp-highmem", "N");
	put(DEBUGFS "fail_page_alloc/min-order", "0");
	put(DEBUGFS "fail_page_alloc/verbose", "0");
	snprintf(path, sizeof(path), "/proc/self/task/%ld/fail-nth", syscall(SYS_gettid));
	fail_fd = open(path, O_RDWR | O_CLOEXEC);
	REQUIRE(fail_fd >= 0);
}

/* The @n-th allocation from now on fails; 0: none */
static void set_fail(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	REQUIRE(pwrite(fail_fd, text, (size_t)len, 0) == len);
}

/* Did it come to that? */
static bool failed(void)
{
	char text[16] = "";

	REQUIRE(pread(fail_fd, text, sizeof(text) - 1, 0) > 0);
	return atoi(text) == 0;
}

/*
 * @op: returns 0 or -errno; @undo: of a success, @tidy: after a failure. Some of the
 * kernel's allocations have a fallback, so a failure need not be seen; but an error must be
 * one of memory.
 */
static unsigned int each(const char *what, int (*op)(void), void (*undo)(void),
			 void (*tidy)(void))
{
	unsigned int n, seen = 0;

	for (n = 1; n < MOST; n++) {
		bool was;
		int r;

		set_fail(n);
		r = op();
		was = failed();
		set_fail(0);
		if (!r) {
			undo();
		} else {
			seen++;
			tidy();
			if (r != -ENOMEM && r != -ENOBUFS && r != -EAGAIN)
				FAIL("%s, allocation %u fails: %s", what, n, strerror(-r));
		}
		if (!was) {
			/* without a failure it works */
			EXPECT_EQ(r, 0);
			vt_note("%s: %u allocations, %u errors", what, n - 1, seen);
			return seen;
		}
	}
	FAIL("%s: no end after %u allocations", what, MOST);
	return seen;
}

static void undo_none(void)
{
}

static int op_open(void)
{
	ring.fd = open(RGATE_DEVICE, O_RDWR | O_CLOEXEC);
	return ring.fd < 0 ? -errno : 0;
}

static void undo_open(void)
{
	close(ring.fd);
}

static int op_create(void)
{
	struct rgate_create c = vt_create_req();
	int r;

	c.slots = 64;
	c.slot_size = 512;
	r = ioctl(ring.fd, RGATE_IOC_CREATE, &c) ? -errno : 0;
	if (!r) {
		ring.id = c.ring_id;
		ring.geo = c.geo;
	}
	return r;
}

static void undo_create(void)
{
	close(ring.fd);
	ring.fd = vt_dev_open();
}

static void open_and_create(void)
{
	setup();
	EXPECT_GE(each("open", op_open, undo_open, undo_none), 1);
	ring.fd = vt_dev_open();
	EXPECT_GE(each("CREATE", op_create, undo_create, undo_none), 5);
	vt_nl_open(&nl);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_RING_GET), 0);
}

static int op_mmap(void)
{
	ring.map = mmap(NULL, ring.geo.map_len, PROT_READ, MAP_SHARED, ring.fd, 0);
	if (ring.map == MAP_FAILED)
		return -errno;
	return 0;
}

static void undo_mmap(void)
{
	/* all of it is there, or the call would have failed */
	EXPECT_EQ(((const struct rgate_prod *)ring.map)->magic, RGATE_MAGIC);
	EXPECT_EQ(ring.map[ring.geo.map_len - 1], 0);
	munmap(ring.map, ring.geo.map_len);
}

static int op_attach(void)
{
	struct rgate_attach a = { .fd = ring.fd };
	int fd = open(RGATE_DEVICE, O_RDWR | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = ioctl(fd, RGATE_IOC_ATTACH, &a) ? -errno : 0;
	close(fd);
	return r;
}

static int op_resize(void)
{
	static unsigned int turn;

	return vt_ring_resize(ring.fd, turn++ % 2 ? 128 : 64, 512, NULL);
}

static int op_export(void)
{
	const int fd = vt_export(ring.fd, RGATE_AREA_SLOTS, NULL);

	return fd < 0 ? fd : close(fd);
}

/* The next one is made anew. */
static void undo_export(void)
{
	REQUIRE(!op_resize());
}

static int op_fork(void)
{
	pid_t pid = (pid_t)syscall(SYS_fork);

	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(0);
	REQUIRE(waitpid(pid, NULL, 0) == pid);
	return 0;
}

static void mapping(void)
{
	setup();
	ring.fd = vt_dev_open();
	REQUIRE(!op_create());
	EXPECT_GE(each("mmap", op_mmap, undo_mmap, undo_none), 1);
	EXPECT_GE(each("ATTACH", op_attach, undo_none, undo_none), 1);
	REQUIRE(!op_mmap());
	EXPECT_GE(each("fork with a mapping", op_fork, undo_none, undo_none), 1);
	undo_mmap();
	EXPECT_GE(each("RESIZE", op_resize, undo_none, undo_none), 3);
	EXPECT_GE(each("EXPORT", op_export, undo_export, undo_none), 3);
	close(ring.fd);
}

static int op_att(void)
{
	static const struct sock_filter all[] = { BPF_STMT(BPF_RET | BPF_K, 0x40000) };
	struct vt_att a = {
		.ifname = "vb", .rings = { ring.id }, .n = 1,
		.filter = all, .nfilter = 1,
	};
	int r = vt_att_new(&nl, &a);

	if (r < 0)
		return r;
	att = (uint32_t)r;
	return 0;
}

/*
 * What the request did before its answer could not be made stays done: the answer is
 * lost, as with any netlink family. So look, after each try.
 */
static void undo_att(void)
{
	uint32_t id;

	for (id = 1; vt_nl_count(&nl, RGATE_CMD_ATT_GET) > 0; id++) {
		REQUIRE(id < MOST);
		(void)vt_att_del(&nl, id);
	}
}

static int op_del(void)
{
	return vt_att_del(&nl, att);
}

static void undo_del(void)
{
	undo_att();
	REQUIRE(!op_att());
}

static void attachment(void)
{
	int tx, seen;

	setup();
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&ring, 256, 512, 0, 0);
	seen = (int)each("ATT_NEW", op_att, undo_att, undo_att);
	EXPECT_GE(seen, 3);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
	REQUIRE(!op_att());
	each("ATT_DEL", op_del, undo_del, undo_del);
	tx = vt_tx_open("va");
	vt_tx_burst(tx, 100, 0, 50);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 50, 5000), 50);
	vt_ring_close(&ring);
}

/* Frames arrive while every allocation of the receiving side fails now and then */
static void delivery(void)
{
	struct vt_seen seen;
	unsigned int n;
	int tx;

	setup();
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&ring, 256, 512, 0, 0);
	vt_att_simple(&nl, "vb", ring.id);
	tx = vt_tx_open("va");
	vt_seen_init(&seen, MOST);
	for (n = 1; n < 60; n++) {
		set_fail(n % 12 + 1);
		vt_tx_burst(tx, 100, n, 1);
		set_fail(0);
	}
	/* some were never sent; what came is whole, and none came twice */
	n = vt_ring_verify(&ring, &seen, 59, 500);
	vt_note("%u of 59 frames sent", n);
	EXPECT_GE(n, 10);
	EXPECT_EQ(seen.dup, 0);
	EXPECT_EQ(seen.alien, 0);
	vt_ring_close(&ring);
}

static int ko_fd;

static int op_load(void)
{
	return syscall(SYS_finit_module, ko_fd, "", 0) ? -errno : 0;
}

static void undo_load(void)
{
	REQUIRE(VT_UNTIL(!vt_rmmod(), 5000));
}

/* Did it fail? */
static bool load_failing(unsigned int n)
{
	int r;

	set_fail(n);
	r = op_load();
	set_fail(0);
	if (!r) {
		undo_load();
		return false;
	}
	/* The kernel has an invalid device where it has no memory for its name. */
	if (r != -ENOMEM && r != -EINVAL)
		FAIL("loading, allocation %u fails: %s", n, strerror(-r));
	EXPECT(!vt_loaded());
	EXPECT(access(RGATE_DEVICE, F_OK));
	return true;
}

/*
 * A module that cannot start leaves nothing registered: the next one can. What comes
 * before its own start is the kernel's, and long: every 16th of that will do. The
 * numbers shift from one time to the next: the module's own ones are tried twice.
 */
static void load(void)
{
	const char *ko = getenv("RGATE_KO");
	unsigned int n, all, seen = 0;
	char text[16] = "";

	setup();
	if (!ko)
		vt_skip("RGATE_KO is not set");
	ko_fd = open(ko, O_RDONLY | O_CLOEXEC);
	REQUIRE(ko_fd >= 0);
	undo_load();
	set_fail(1000000);
	EXPECT_EQ(op_load(), 0);
	REQUIRE(pread(fail_fd, text, sizeof(text) - 1, 0) > 0);
	set_fail(0);
	undo_load();
	all = 1000000 - (unsigned int)atoi(text);
	REQUIRE(all > OWN);
	for (n = 1 + (unsigned int)vt_rand() % 16; n <= all; n += n + OWN < all ? 16 : 1)
		seen += load_failing(n);
	for (n = all - OWN; n <= all; n++)
		seen += load_failing(n);
	vt_note("loading: about %u allocations, %u errors", all, seen);
	EXPECT_GE(seen, 20);
	EXPECT_EQ(op_load(), 0);
	EXPECT(VT_UNTIL(!access(RGATE_DEVICE, R_OK | W_OK), 3000));
}

static const struct vt_case cases[] = {
	{ .name = "open, CREATE", .fn = open_and_create, .secs = 120 },
	{ .name = "mmap, ATTACH, fork, RESIZE", .fn = mapping, .secs = 120 },
	{ .name = "attachments", .fn = attachment, .secs = 120 },
	{ .name = "frames", .fn = delivery, .secs = 120 },
	{ .name = "loading", .fn = load, .secs = 120 },
};

int main(void)
{
	/* What the allocators say when they are made to fail */
	puts("# allow-dmesg: vmalloc error|Call Trace|VM_FAULT_OOM leaked|kmemleak: Cannot");
	/* the kernel's own, when it cannot describe a module's trace events */
	puts("# allow-dmesg: cut here|WARNING: .* event_define_fields");
	fflush(stdout);
	return vt_run(cases, VT_COUNT(cases));
}
