// SPDX-License-Identifier: MIT OR GPL-2.0
/* The ioctls of /dev/ringgate: what is accepted, and everything that is not. */
#include "lib/vt.h"

#include <sys/stat.h>

static int try_create(const struct rgate_create *req)
{
	struct rgate_create c = *req;
	int fd = vt_dev_open(), r;

	r = ioctl(fd, RGATE_IOC_CREATE, &c) ? -errno : 0;
	/* a file whose CREATE failed is as new: a good one must work on it */
	if (r) {
		struct rgate_create good = vt_create_req();

		good.slots = 64;
		good.slot_size = 256;
		if (ioctl(fd, RGATE_IOC_CREATE, &good))
			FAIL("CREATE after a refused one: %s", strerror(errno));
	}
	close(fd);
	return r;
}

static void expect_einval(const char *what, uint32_t slots, uint32_t size)
{
	struct rgate_create c = vt_create_req();
	int r;

	c.slots = slots;
	c.slot_size = size;
	r = try_create(&c);
	if (r != -EINVAL)
		FAIL("%s: slots %u, slot size %u: %d, not -EINVAL", what, slots,
		     size, r);
}

static void slots_refused(void)
{
	static const uint32_t bad[] = {
		0, 1, 2, 32, 63, 65, 96, 100, 4095, 4097, (1U << 20) - 1,
		(1U << 20) + 1, 1U << 21, 1U << 30, 1U << 31, 0xffffffffU,
		0x80000001U, 3U << 19,
	};
	size_t i;

	for (i = 0; i < VT_COUNT(bad); i++)
		expect_einval("slots", bad[i], 2048);
}

static void slot_sizes_refused(void)
{
	static const uint32_t bad[] = {
		0, 1, 64, 128, 255, 257, 300, 2047, 2049, 3000, (1U << 16) - 1,
		(1U << 16) + 1, 1U << 17, 1U << 30, 1U << 31, 0xffffffffU,
	};
	size_t i;

	for (i = 0; i < VT_COUNT(bad); i++)
		expect_einval("slot size", 256, bad[i]);
}

static void products_that_wrap(void)
{
	/* slots x size is 0, or small, modulo 2^32 */
	expect_einval("product 2^32", 1U << 16, 1U << 31);
	expect_einval("product 2^32", 1U << 31, 1U << 16);
	expect_einval("product 2^62", 1U << 31, 1U << 31);
	expect_einval("product 0", 1U << 31, 2);
	expect_einval("product small", 0x10000001U, 0x10U);
	expect_einval("product 2^33", 1U << 21, 4096);
}

static void smallest_and_shapes(void)
{
	static const uint32_t shape[][2] = {
		{ 64, 256 }, { 64, 65536 }, { 128, 512 }, { 8192, 256 },
		{ 4096, 2048 }, { 1 << 16, 256 },
	};
	size_t i;

	for (i = 0; i < VT_COUNT(shape); i++) {
		uint32_t n = shape[i][0], size = shape[i][1];
		struct vt_ring r;
		const struct rgate_geometry *g = &r.geo;

		vt_ring_open(&r, n, size, 0, 0);
		EXPECT_EQ(g->slots, n);
		EXPECT_EQ(g->slot_size, size);
		EXPECT_EQ(g->generation, 1);
		EXPECT_EQ(g->handle, 0);
		EXPECT_EQ(g->map_len % 4096, 0);
		EXPECT_EQ(g->cons_off % 4096, 0);
		EXPECT_EQ(g->slots_off % 4096, 0);
		EXPECT_GE(g->cons_off, sizeof(struct rgate_prod));
		EXPECT_EQ(g->credits_off, g->cons_off + RGATE_CREDITS_OFF);
		EXPECT_GE(g->slots_off, g->credits_off + 2 * (n / RGATE_BATCH) * 8);
		EXPECT_GE(g->map_len, g->slots_off + (uint64_t)n * size);

		EXPECT_EQ(r.prod->magic, RGATE_MAGIC);
		EXPECT_EQ(r.prod->version, RGATE_ABI_VERSION);
		EXPECT_EQ(r.prod->slot_hdr, RGATE_SLOT_HDR);
		EXPECT_EQ(r.prod->features, RGATE_FEAT_RESIZE | RGATE_FEAT_OWNERS);
		EXPECT_EQ(r.prod->slots, n);
		EXPECT_EQ(r.prod->slot_size, size);
		EXPECT_EQ(r.prod->batch, RGATE_BATCH);
		EXPECT_EQ(r.prod->flags, 0);
		EXPECT_EQ(r.prod->handles, RGATE_HANDLES_MAX);
		EXPECT_EQ(r.prod->map_len, g->map_len);
		EXPECT_EQ(r.prod->cons_off, g->cons_off);
		EXPECT_EQ(r.prod->credits_off, g->credits_off);
		EXPECT_EQ(r.prod->slots_off, g->slots_off);
		EXPECT_EQ(r.prod->ring_id, r.id);
		EXPECT_EQ(r.prod->head, 0);
		EXPECT_EQ(r.prod->state, RGATE_STATE_ACTIVE);
		vt_ring_close(&r);
	}
}

static void largest_does_not_harm(void)
{
	struct rgate_create c = vt_create_req();
	int r;

	/* 64 GiB: more than this machine has. An error, and no OOM killer. */
	c.slots = RGATE_SLOTS_MAX;
	c.slot_size = RGATE_SLOT_SIZE_MAX;
	r = try_create(&c);
	if (r != -ENOMEM && r != -ENOBUFS)
		FAIL("64 GiB ring: %d", r);
}

static void fields_refused(void)
{
	/* those that go without others */
	const uint32_t good = RGATE_RING_RW_SLOTS | RGATE_RING_CHAIN | RGATE_RING_COARSE;
	struct rgate_create ok = vt_create_req(), c;
	unsigned int bit, i;

	for (bit = 0; bit < 32; bit++) {
		c = ok;
		c.flags = 1U << bit;
		EXPECT_EQ(try_create(&c), c.flags & good ? 0 : -EINVAL);
	}
	c = ok;
	c.flags = ~0U;
	EXPECT_EQ(try_create(&c), -EINVAL);
	c = ok;
	c.policy = RGATE_POLICY_COUNT;
	EXPECT_EQ(try_create(&c), -EINVAL);
	c.policy = ~0U;
	EXPECT_EQ(try_create(&c), -EINVAL);
	c = ok;
	c.clock = RGATE_CLOCK_COUNT;
	EXPECT_EQ(try_create(&c), -EINVAL);
	c.clock = 1U << 31;
	EXPECT_EQ(try_create(&c), -EINVAL);
	c = ok;
	c.node = -2;
	EXPECT_EQ(try_create(&c), -EINVAL);
	c.node = 1023;
	EXPECT_EQ(try_create(&c), -EINVAL);
	c.node = INT32_MAX;
	EXPECT_EQ(try_create(&c), -EINVAL);
	c.node = INT32_MIN;
	EXPECT_EQ(try_create(&c), -EINVAL);
	c.node = 0;
	EXPECT_EQ(try_create(&c), 0);
	c = ok;
	c.reserved0 = 1;
	EXPECT_EQ(try_create(&c), -EINVAL);
	for (i = 0; i < VT_COUNT(c.reserved); i++) {
		c = ok;
		c.reserved[i] = 1ULL << 63;
		EXPECT_EQ(try_create(&c), -EINVAL);
	}
	/* out fields are zero on entry */
	c = ok;
	c.cookie = 1;
	EXPECT_EQ(try_create(&c), -EINVAL);
	for (i = 0; i < sizeof(c.geo); i++) {
		c = ok;
		((uint8_t *)&c.geo)[i] = 1;
		EXPECT_EQ(try_create(&c), -EINVAL);
	}
}

static void names(void)
{
	static const char *const bad[] = {
		" ", "a b", "tab\there", "new\nline", "\x01", "del\x7f",
		"umlaut\xc3\xa4", "\xff",
	};
	struct rgate_create c = vt_create_req();
	struct rgate_query q;
	struct vt_ring r;
	char want[RGATE_NAME_LEN];
	size_t i;

	for (i = 0; i < VT_COUNT(bad); i++) {
		memset(c.name, 0, sizeof(c.name));
		strncpy(c.name, bad[i], sizeof(c.name) - 1);
		if (try_create(&c) != -EINVAL)
			FAIL("name %zu was taken", i);
	}
	memset(c.name, 'x', sizeof(c.name));	/* not terminated */
	EXPECT_EQ(try_create(&c), -EINVAL);
	memset(c.name, 0, sizeof(c.name));
	memcpy(c.name, "ab\0cd", 5);		/* something behind the end */
	EXPECT_EQ(try_create(&c), -EINVAL);

	memset(c.name, 0, sizeof(c.name));
	memset(c.name, '~', sizeof(c.name) - 1);	/* the longest */
	vt_ring_create(&r, &c);
	EXPECT(!strncmp(r.prod->name, c.name, RGATE_NAME_LEN));
	vt_ring_close(&r);

	c = vt_create_req();
	vt_ring_create(&r, &c);
	snprintf(want, sizeof(want), "ring%u", r.id);
	EXPECT(!strcmp(r.prod->name, want));
	REQUIRE(!vt_ring_query(r.fd, &q));
	EXPECT(!strcmp(q.name, want));
	vt_ring_close(&r);
}

static void create_twice(void)
{
	struct rgate_create c = vt_create_req();
	struct rgate_attach a = { 0 };
	struct rgate_query q;
	struct vt_ring r, r2;

	vt_ring_open(&r, 64, 256, 0, 0);
	vt_ring_open(&r2, 64, 256, 0, 0);
	EXPECT_ERRNO(ioctl(r.fd, RGATE_IOC_CREATE, &c), EBUSY);
	a.fd = r2.fd;
	EXPECT_ERRNO(ioctl(r.fd, RGATE_IOC_ATTACH, &a), EBUSY);
	REQUIRE(!vt_ring_query(r.fd, &q));
	EXPECT_EQ(q.ring_id, r.id);
	EXPECT_EQ(q.handles, 1);
	vt_ring_close(&r);
	vt_ring_close(&r2);
}

static void before_create(void)
{
	struct rgate_resize rs = { .slots = 64, .slot_size = 256 };
	struct pollfd p = { .events = POLLIN };
	struct rgate_query q = { 0 };
	char buf[16];
	int fd = vt_dev_open(), r;

	r = ioctl(fd, RGATE_IOC_QUERY, &q);
	if (r != -1 || (errno != EINVAL && errno != EBADF && errno != ENXIO &&
			errno != EBADFD && errno != ENODEV))
		FAIL("QUERY without a ring: %d, %s", r, strerror(errno));
	r = ioctl(fd, RGATE_IOC_RESIZE, &rs);
	if (r != -1 || errno == ENOTTY || errno == EFAULT)
		FAIL("RESIZE without a ring: %d, %s", r, strerror(errno));
	if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED)
		FAIL("mmap without a ring worked");
	p.fd = fd;
	EXPECT(poll(&p, 1, 0) >= 0);
	EXPECT(!(p.revents & POLLIN));
	r = (int)read(fd, buf, sizeof(buf));
	EXPECT(r < 0);
	r = (int)write(fd, buf, sizeof(buf));
	EXPECT(r < 0);
	close(fd);
}

static int try_attach(int to, uint32_t flags)
{
	struct rgate_attach a = { .fd = to, .flags = flags };
	int fd = vt_dev_open(), r;

	r = ioctl(fd, RGATE_IOC_ATTACH, &a) ? -errno : 0;
	close(fd);
	return r;
}

static void attach_refused(void)
{
	int fd = vt_dev_open(), null = open("/dev/null", O_RDWR), pfd[2], i;
	struct rgate_attach a = { 0 };
	struct vt_ring r;

	REQUIRE(null >= 0 && !pipe(pfd));
	vt_ring_open(&r, 64, 256, 0, 0);
	EXPECT_EQ(try_attach(-1, 0), -EBADF);
	EXPECT_EQ(try_attach(INT32_MIN, 0), -EBADF);
	EXPECT_EQ(try_attach(4000, 0), -EBADF);
	EXPECT_EQ(try_attach(null, 0), -EINVAL);
	EXPECT_EQ(try_attach(pfd[0], 0), -EINVAL);
	EXPECT_EQ(try_attach(fd, 0), -EINVAL);	/* ours, but without a ring */
	for (i = 0; i < 32; i++)
		EXPECT_EQ(try_attach(r.fd, 1U << i), -EINVAL);
	/* itself: no ring yet, and must not deadlock */
	a.fd = fd;
	EXPECT_ERRNO(ioctl(fd, RGATE_IOC_ATTACH, &a), EINVAL);
	a.fd = r.fd;
	a.reserved0 = 1;
	EXPECT_ERRNO(ioctl(fd, RGATE_IOC_ATTACH, &a), EINVAL);
	a.reserved0 = 0;
	a.reserved = 1;
	EXPECT_ERRNO(ioctl(fd, RGATE_IOC_ATTACH, &a), EINVAL);
	a.reserved = 0;
	a.cookie = 1;
	EXPECT_ERRNO(ioctl(fd, RGATE_IOC_ATTACH, &a), EINVAL);
	a.cookie = 0;
	a.geo.map_len = 4096;
	EXPECT_ERRNO(ioctl(fd, RGATE_IOC_ATTACH, &a), EINVAL);
	/* a ring on itself: has one already */
	memset(&a, 0, sizeof(a));
	a.fd = r.fd;
	EXPECT_ERRNO(ioctl(r.fd, RGATE_IOC_ATTACH, &a), EBUSY);
	/* an O_PATH descriptor is no way in */
	i = open(RGATE_DEVICE, O_PATH);
	EXPECT_EQ(try_attach(i, 0), -EBADF);
	vt_ring_close(&r);
}

static void wait_words_run_out(void)
{
	struct vt_ring r, h[RGATE_HANDLES_MAX];
	uint32_t seen = 1;
	struct rgate_query q;
	unsigned int i;

	vt_ring_open(&r, 64, 256, 0, 0);
	for (i = 1; i < RGATE_HANDLES_MAX; i++) {
		vt_ring_attach(&h[i], r.fd);
		EXPECT_EQ(h[i].id, r.id);
		EXPECT(h[i].geo.handle < RGATE_HANDLES_MAX);
		EXPECT(!(seen & 1U << h[i].geo.handle));
		seen |= 1U << h[i].geo.handle;
	}
	EXPECT_EQ(seen, ~0U);
	EXPECT_EQ(try_attach(r.fd, 0), -EMFILE);
	REQUIRE(!vt_ring_query(r.fd, &q));
	EXPECT_EQ(q.handles, RGATE_HANDLES_MAX);
	/* one goes, one may come: at the same place */
	i = h[7].geo.handle;
	vt_ring_close(&h[7]);
	vt_ring_attach(&h[7], r.fd);
	EXPECT_EQ(h[7].geo.handle, i);
	/* the first file may go first: the ring stays */
	vt_ring_close(&r);
	REQUIRE(!vt_ring_query(h[9].fd, &q));
	EXPECT_EQ(q.handles, RGATE_HANDLES_MAX - 1);
}

static void bad_pointers(void)
{
	static const unsigned long cmd[] = {
		RGATE_IOC_CREATE, RGATE_IOC_ATTACH, RGATE_IOC_RESIZE,
		RGATE_IOC_QUERY,
	};
	uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rgate_create *c;
	struct rgate_attach *a;
	struct rgate_query q;
	struct vt_ring r;
	size_t i;
	int fd;

	REQUIRE(page != MAP_FAILED);
	munmap(page + 4096, 4096);
	vt_ring_open(&r, 64, 256, 0, 0);
	for (i = 0; i < VT_COUNT(cmd); i++) {
		fd = cmd[i] == RGATE_IOC_CREATE || cmd[i] == RGATE_IOC_ATTACH ?
			vt_dev_open() : r.fd;
		EXPECT_ERRNO(ioctl(fd, cmd[i], NULL), EFAULT);
		EXPECT_ERRNO(ioctl(fd, cmd[i], (void *)-4096L), EFAULT);
		EXPECT_ERRNO(ioctl(fd, cmd[i], (void *)0xffff888000000000UL), EFAULT);
		/* half of it there */
		EXPECT_ERRNO(ioctl(fd, cmd[i], page + 4096 - 8), EFAULT);
		if (fd != r.fd)
			close(fd);
	}
	/* readable, not writable: the result cannot be given, so no ring stays */
	c = (void *)page;
	*c = vt_create_req();
	c->slots = 64;
	c->slot_size = 256;
	REQUIRE(!mprotect(page, 4096, PROT_READ));
	fd = vt_dev_open();
	EXPECT_ERRNO(ioctl(fd, RGATE_IOC_CREATE, c), EFAULT);
	close(fd);
	REQUIRE(!mprotect(page, 4096, PROT_READ | PROT_WRITE));
	fd = vt_dev_open();
	EXPECT(!ioctl(fd, RGATE_IOC_CREATE, c));
	close(fd);
	/* ... and no handle, whose wait word another one may have */
	a = (void *)page;
	*a = (struct rgate_attach){ .fd = r.fd };
	REQUIRE(!mprotect(page, 4096, PROT_READ));
	fd = vt_dev_open();
	EXPECT_ERRNO(ioctl(fd, RGATE_IOC_ATTACH, a), EFAULT);
	REQUIRE(!vt_ring_query(r.fd, &q));
	EXPECT_EQ(q.handles, 1);
	EXPECT(vt_ring_query(fd, &q) < 0);
	close(fd);
	vt_ring_close(&r);
}

static void unknown_ioctls(void)
{
	struct vt_ring r;
	uint8_t buf[512] = { 0 };
	int i;

	vt_ring_open(&r, 64, 256, 0, 0);
	for (i = 4; i < 256; i += 7) {
		EXPECT_ERRNO(ioctl(r.fd, _IOC(_IOC_READ | _IOC_WRITE, RGATE_IOC_MAGIC,
					      i, 16), buf), ENOTTY);
		EXPECT_ERRNO(ioctl(r.fd, _IO(RGATE_IOC_MAGIC, i), buf), ENOTTY);
	}
	/* right number, wrong size or direction */
	EXPECT_ERRNO(ioctl(r.fd, _IOC(_IOC_READ, RGATE_IOC_MAGIC, 3, 8), buf), ENOTTY);
	EXPECT_ERRNO(ioctl(r.fd, _IOC(_IOC_READ, RGATE_IOC_MAGIC, 0, 144), buf), ENOTTY);
	EXPECT_ERRNO(ioctl(r.fd, _IO('R', 0), buf), ENOTTY);
	EXPECT_ERRNO(ioctl(r.fd, 0x5401 /* TCGETS */, buf), ENOTTY);
	vt_ring_close(&r);
}

static void query_tells_all(void)
{
	struct rgate_create c = vt_create_req();
	struct rgate_query q;
	struct vt_ring r;

	c.slots = 512;
	c.slot_size = 1024;
	c.flags = RGATE_RING_RW_SLOTS | RGATE_RING_CHAIN;
	c.policy = RGATE_POLICY_OVERWRITE;
	c.clock = RGATE_CLOCK_TAI;
	c.node = 0;
	strcpy(c.name, "query-me");
	vt_ring_create(&r, &c);
	/* what the caller left in the buffer does not matter: QUERY only writes */
	memset(&q, 0xff, sizeof(q));
	REQUIRE(!ioctl(r.fd, RGATE_IOC_QUERY, &q));
	EXPECT_EQ(q.flags, c.flags);
	EXPECT_EQ(q.policy, c.policy);
	EXPECT_EQ(q.clock, c.clock);
	EXPECT_EQ(q.node, 0);
	EXPECT(!strcmp(q.name, "query-me"));
	EXPECT_EQ(q.ring_id, r.id);
	EXPECT_EQ(q.handles, 1);
	EXPECT_GE(q.mem_bytes, r.geo.map_len);
	EXPECT_LE(q.mem_bytes, r.geo.map_len + r.geo.map_len / 16 + 65536);
	EXPECT_EQ(q.reserved[0] | q.reserved[1] | q.reserved[2], 0);
	EXPECT(q.cookie);
	EXPECT(!memcmp(&q.geo, &r.geo, sizeof(q.geo)));
	EXPECT_EQ(q.stats.delivered, 0);
	EXPECT_EQ(r.prod->features, RGATE_FEAT_CHAIN | RGATE_FEAT_OVERWRITE |
		  RGATE_FEAT_RESIZE);
	vt_ring_close(&r);
}

static void resize_refused(void)
{
	static const uint32_t bad[][2] = {
		{ 0, 2048 }, { 1, 2048 }, { 100, 2048 }, { 1U << 31, 2048 },
		{ 256, 0 }, { 256, 100 }, { 256, 1U << 31 }, { 1U << 21, 256 },
		{ 1U << 31, 1U << 31 },
	};
	struct rgate_resize rs;
	struct rgate_query q;
	struct vt_ring r;
	size_t i;

	vt_ring_open(&r, 256, 512, 0, 0);
	for (i = 0; i < VT_COUNT(bad); i++)
		EXPECT_EQ(vt_ring_resize(r.fd, bad[i][0], bad[i][1], NULL), -EINVAL);
	for (i = 0; i < 5; i++) {
		memset(&rs, 0, sizeof(rs));
		rs.slots = 256;
		rs.slot_size = 512;
		rs.flags = i == 0;
		rs.reserved0 = i == 1;
		rs.reserved[0] = i == 2;
		rs.reserved[1] = i == 3;
		rs.geo.generation = i == 4;
		EXPECT_ERRNO(ioctl(r.fd, RGATE_IOC_RESIZE, &rs), EINVAL);
	}
	REQUIRE(!vt_ring_query(r.fd, &q));
	EXPECT_EQ(q.geo.generation, 1);
	EXPECT_EQ(q.geo.slots, 256);
	EXPECT_EQ(vt_ring_state(&r), RGATE_STATE_ACTIVE);
	vt_ring_close(&r);
}

static void device_node(void)
{
	struct stat st;

	REQUIRE(!stat(RGATE_DEVICE, &st));
	EXPECT(S_ISCHR(st.st_mode));
	EXPECT_EQ(st.st_mode & 0777, 0666);
}

static const struct vt_case cases[] = {
	{ .name = "device node is there for all", .fn = device_node },
	{ .name = "good shapes and what the producer area says", .fn = smallest_and_shapes },
	{ .name = "bad numbers of slots are refused", .fn = slots_refused },
	{ .name = "bad slot sizes are refused", .fn = slot_sizes_refused },
	{ .name = "products that wrap are refused", .fn = products_that_wrap },
	{ .name = "the largest ring is an error, not a disaster",
	  .fn = largest_does_not_harm, .secs = 60 },
	{ .name = "unknown flags, values and reserved fields are refused", .fn = fields_refused },
	{ .name = "names", .fn = names },
	{ .name = "one ring a file", .fn = create_twice },
	{ .name = "a file without a ring does nothing", .fn = before_create },
	{ .name = "ATTACH to what is no ring", .fn = attach_refused },
	{ .name = "32 handles, then EMFILE", .fn = wait_words_run_out },
	{ .name = "bad pointers are EFAULT", .fn = bad_pointers },
	{ .name = "unknown ioctls are ENOTTY", .fn = unknown_ioctls },
	{ .name = "QUERY tells all", .fn = query_tells_all },
	{ .name = "bad RESIZE changes nothing", .fn = resize_refused },
};

VT_MAIN(cases)
