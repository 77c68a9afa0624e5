// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Each allocation of the control paths fails in turn, by the module parameter
 * fail_alloc. An error comes back, nothing leaks, and the next try works.
 */
#include "lib/vt.h"
#include "lib/vt_dmabuf.h"

#include <sys/resource.h>

#define PARAM	"/sys/module/ringgate/parameters/fail_alloc"
#define MOST	200

static struct vt_nl nl;

static void set_fail(int n)
{
	char text[16];
	int fd = open(PARAM, O_WRONLY | O_CLOEXEC), len;

	if (fd < 0)
		DIE("%s: %s", PARAM, strerror(errno));
	len = snprintf(text, sizeof(text), "%d", n);
	REQUIRE(write(fd, text, (size_t)len) == len);
	close(fd);
}

static int get_fail(void)
{
	char text[16] = "";
	int fd = open(PARAM, O_RDONLY | O_CLOEXEC);

	REQUIRE(fd >= 0);
	REQUIRE(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return atoi(text);
}

/*
 * Runs @op with the 1st, 2nd, ... allocation failing, until none was left to
 * fail. Returns how many there were. @undo: of a success.
 */
static unsigned int each(const char *what, int (*op)(void), void (*undo)(void))
{
	unsigned int n;

	for (n = 1; n < MOST; n++) {
		int r, left;

		set_fail((int)n);
		r = op();
		left = get_fail();
		set_fail(0);
		if (!r) {
			undo();
			if (left)
				return n - 1;
			/* failed and all the same a success: only a fallback may */
			continue;
		}
		if (r != -ENOMEM)
			FAIL("%s, allocation %u fails: %d, not ENOMEM", what, n, r);
	}
	FAIL("%s: no end after %u allocations", what, MOST);
	return n;
}

static struct vt_ring ring;
static uint32_t att;

static int op_open(void)
{
	int fd = open(RGATE_DEVICE, O_RDWR | O_CLOEXEC);

	ring.fd = fd;
	return fd < 0 ? -errno : 0;
}

static void undo_open(void)
{
	close(ring.fd);
}

static int op_create(void)
{
	struct rgate_create c = vt_create_req();
	int r;

	c.slots = 128;
	c.slot_size = 512;
	r = ioctl(ring.fd, RGATE_IOC_CREATE, &c) ? -errno : 0;
	if (!r)
		ring.id = c.ring_id;
	return r;
}

static void undo_create(void)
{
	close(ring.fd);
	ring.fd = vt_dev_open();
}

static int op_resize(void)
{
	return vt_ring_resize(ring.fd, 128, 1024, NULL);
}

static void undo_none(void)
{
}

static const struct sock_filter all[] = { BPF_STMT(BPF_RET | BPF_K, 0x40000) };

static int op_att(void)
{
	struct vt_att a = {
		.ifname = "vb", .rings = { ring.id }, .n = 1,
		.filter = all, .nfilter = 1,
	};
	int r = vt_att_new(&nl, &a);

	/* for want of memory, and for nothing else */
	if (r == -ENOMEM && nl.why[0])
		FAIL("ENOMEM is explained by: %s", nl.why);
	if (r < 0)
		return r;
	att = (uint32_t)r;
	return 0;
}

static void undo_att(void)
{
	EXPECT(!vt_att_del(&nl, att));
}

static int op_set(void)
{
	char buf[256];
	struct nlmsghdr *nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_SET, 0);

	vt_nl_put_att(nlh, att, vt_att_cookie(&nl, att));
	mnl_attr_put(nlh, RGATE_A_ATT_FILTER, sizeof(all), all);
	return vt_nl_talk(&nl, nlh, NULL, NULL);
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

static int op_export(void)
{
	const int fd = vt_export(ring.fd, RGATE_AREA_SLOTS, NULL);

	return fd < 0 ? fd : close(fd);
}

static void need_param(void)
{
	if (access(PARAM, W_OK))
		vt_skip("the module has no parameter fail_alloc");
}

static void create(void)
{
	struct vt_nl mine;
	unsigned int n, m;

	need_param();
	n = each("open", op_open, undo_open);
	ring.fd = vt_dev_open();
	m = each("CREATE", op_create, undo_create);
	vt_note("open: %u allocations, CREATE: %u", n, m);
	EXPECT_GE(n, 1);
	EXPECT_GE(m, 4);
	/* a ring whose CREATE failed is in nobody's list */
	vt_nl_open(&mine);
	EXPECT_EQ(vt_nl_count(&mine, RGATE_CMD_RING_GET), 0);
}

static void resize(void)
{
	struct rgate_query q;
	struct vt_ring old;
	unsigned int n;

	need_param();
	vt_ring_open(&ring, 256, 512, 0, 0);
	old = ring;
	for (n = 1; n < MOST; n++) {
		set_fail((int)n);
		if (!op_resize())
			break;
		/* nothing changed by a resize that failed */
		set_fail(0);
		REQUIRE(!vt_ring_query(ring.fd, &q));
		EXPECT_EQ(q.geo.generation, 1);
		EXPECT_EQ(q.geo.slots, 256);
		EXPECT_EQ(vt_ring_state(&old), RGATE_STATE_ACTIVE);
	}
	set_fail(0);
	EXPECT_GE(n, 4);
	vt_note("RESIZE: %u allocations", n - 1);
	REQUIRE(!vt_ring_query(ring.fd, &q));
	EXPECT_EQ(q.geo.generation, 2);
	EXPECT_GE(each("RESIZE", op_resize, undo_none), 3);
	EXPECT_EQ(each("ATTACH", op_attach, undo_none), 1);
	/* once it is made there is nothing to be allocated */
	EXPECT_EQ(each("EXPORT", op_export, undo_none), 2);
	EXPECT_EQ(each("EXPORT again", op_export, undo_none), 0);
	vt_ring_close(&ring);
}

static void attachment(void)
{
	unsigned int n, m;
	int tx;

	need_param();
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&ring, 256, 512, 0, 0);
	n = each("ATT_NEW", op_att, undo_att);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
	REQUIRE(!op_att());
	m = each("ATT_SET", op_set, undo_none);
	vt_note("ATT_NEW: %u allocations, ATT_SET: %u", n, m);
	EXPECT_GE(n, 3);
	EXPECT_GE(m, 1);
	/* after all that it receives */
	tx = vt_tx_open("va");
	vt_tx_burst(tx, 100, 0, 50);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 50, 2000), 50);
	vt_ring_close(&ring);
}

/* Failures give back what was charged: at the very limit all works again */
static int at_the_limit(void *arg)
{
	struct rgate_create c = vt_create_req();
	struct rlimit lim;
	int k;

	(void)arg;
	lim.rlim_cur = lim.rlim_max = 256 * 1024;
	REQUIRE(!setrlimit(RLIMIT_MEMLOCK, &lim));
	REQUIRE(!setgid(12345) && !setuid(12345));
	c.slots = 64;
	c.slot_size = 2048;	/* 128 KiB and some pages: one fits, two do not */
	for (k = 0; k < 3; k++) {
		struct rgate_create one = c, two = c;
		int fd = vt_dev_open(), fd2 = vt_dev_open();

		EXPECT(!ioctl(fd, RGATE_IOC_CREATE, &one));
		EXPECT_ERRNO(ioctl(fd2, RGATE_IOC_CREATE, &two), ENOBUFS);
		close(fd);
		two = c;
		EXPECT(!ioctl(fd2, RGATE_IOC_CREATE, &two));
		close(fd2);
	}
	return 0;
}

static int fails_as_user(void *arg)
{
	struct rgate_create c = vt_create_req();
	int fd;

	(void)arg;
	REQUIRE(!setgid(12345) && !setuid(12345));
	c.slots = 64;
	c.slot_size = 2048;
	fd = vt_dev_open();
	return ioctl(fd, RGATE_IOC_CREATE, &c) ? 0 : 2;
}

static void charges_return(void)
{
	unsigned int n;

	need_param();
	/* opening the file is the first allocation, so begin behind it */
	for (n = 2; n < 12; n++) {
		int st;

		set_fail((int)n);
		st = vt_wait(vt_fork(fails_as_user, NULL), 10000);
		set_fail(0);
		EXPECT(st >= 0);
	}
	EXPECT_EQ(vt_wait(vt_fork(at_the_limit, NULL), 10000), 0);
}

/* What the kernel itself has in use: slabs and the vmalloc area, and other pages */
struct in_use {
	long pages, slab;
};

/* Free pages that a CPU keeps at hand: MemFree is without them. */
static long cached_by_cpus(void)
{
	long page = sysconf(_SC_PAGESIZE) / 1024, sum = 0, n;
	FILE *f = fopen("/proc/zoneinfo", "r");
	char line[128];

	REQUIRE(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %ld", &n) == 1)
			sum += n * page;
	fclose(f);
	return sum;
}

static struct in_use in_use_kb(void)
{
	static const struct {
		const char *name;
		int pages, slab;
	} sums[] = {
		{ "MemTotal:", 1, 0 }, { "MemFree:", -1, 0 }, { "Buffers:", -1, 0 },
		{ "Cached:", -1, 0 }, { "AnonPages:", -1, 0 }, { "SReclaimable:", -1, 0 },
		{ "SUnreclaim:", -1, 1 }, { "VmallocUsed:", -1, 1 },
	};
	struct in_use u = { .pages = -cached_by_cpus() };
	char line[128], name[32];
	unsigned int i;
	FILE *f = fopen("/proc/meminfo", "r");
	long v;

	REQUIRE(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%31s %ld", name, &v) != 2)
			continue;
		for (i = 0; i < sizeof(sums) / sizeof(*sums); i++) {
			if (strcmp(name, sums[i].name))
				continue;
			u.pages += sums[i].pages * v;
			u.slab += sums[i].slab * v;
		}
	}
	fclose(f);
	return u;
}

/* KASAN keeps what was freed in a quarantine, which counts as slab. */
static bool has_quarantine(void)
{
	char line[256];
	bool found = false;
	FILE *f = fopen("/proc/kallsyms", "r");

	REQUIRE(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, " kasan_quarantine_");
	fclose(f);
	return found;
}

static void no_leak(void)
{
	struct rgate_create big = vt_create_req();
	struct in_use before = { 0 }, after;
	unsigned int i, n;

	need_param();
	big.slots = 512;
	big.slot_size = 4096;	/* 512 pages */
	for (i = 0; i < 40; i++) {
		if (i == 8) {
			vt_usleep(200000);
			before = in_use_kb();
		}
		for (n = 1; n < 10; n++) {
			struct rgate_create c = big;
			int fd = vt_dev_open();

			set_fail((int)n);
			(void)ioctl(fd, RGATE_IOC_CREATE, &c);
			set_fail(0);
			close(fd);
		}
	}
	/* 32 tries of each allocation: the pages of a ring would be 64 MiB. They are given
	 * back a little later than close() returns. */
	EXPECT(VT_UNTIL((after = in_use_kb()).pages <= before.pages + 8 * 1024, 10000));
	vt_note("slab and vmalloc: %ld KiB before, %ld after; other pages %ld and %ld",
		before.slab, after.slab, before.pages, after.pages);
	/* 288 tries: a page each would be 1152 KiB */
	if (has_quarantine())
		vt_note("slabs are left to kmemleak: this kernel keeps what was freed");
	else
		EXPECT_LE(after.slab, before.slab + 1000);
}

static void unloads(void)
{
	need_param();
	EXPECT_EQ(vt_rmmod(), 0);
	REQUIRE(!vt_insmod("fail_alloc=0"));
}

static const struct vt_case cases[] = {
	{ .name = "CREATE", .fn = create },
	{ .name = "RESIZE, ATTACH and EXPORT", .fn = resize },
	{ .name = "attachments", .fn = attachment },
	{ .name = "memlock charges are given back", .fn = charges_return },
	{ .name = "no memory is lost", .fn = no_leak },
	{ .name = "the module unloads after all that", .fn = unloads },
};

VT_MAIN(cases)
