// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * close, munmap (whole and in part), mremap, fork, madvise, resize in random
 * order, under traffic. Nothing that is mapped may fault, change its identity or
 * become writable; in the end nothing is left.
 */
#include "lib/vt.h"

#define MAPS	12
#define FILES	4
#define STEPS	1500

struct piece {
	uint8_t *at;
	size_t len;
	bool prod;	/* begins with the producer area */
	bool alone;	/* children do not get it */
	uint32_t id;
};

static struct piece maps[MAPS];
static int fds[FILES];
static struct vt_nl nl;

static unsigned int any(unsigned int n)
{
	return (unsigned int)(vt_rand() % n);
}

static void check(const struct piece *p)
{
	volatile const uint8_t *b = p->at;
	size_t off;

	for (off = 0; off < p->len; off += 4096)
		(void)b[off];
	if (p->prod) {
		const struct rgate_prod *prod = (const void *)p->at;

		EXPECT_EQ(prod->magic, RGATE_MAGIC);
		EXPECT_EQ(prod->ring_id, p->id);
	}
}

static void do_open(void)
{
	unsigned int i = any(FILES);
	struct rgate_create c = vt_create_req();
	struct vt_att a = { .ifname = "vb", .n = 1, .action = RGATE_ACTION_MIRROR };

	if (fds[i] >= 0)
		return;
	c.slots = 64U << any(3);
	c.slot_size = 256U << any(3);
	c.policy = RGATE_POLICY_OVERWRITE;
	fds[i] = vt_dev_open();
	if (any(3) == 0 && fds[any(FILES)] >= 0) {
		struct rgate_attach at = { .fd = fds[any(FILES)] };

		if (!ioctl(fds[i], RGATE_IOC_ATTACH, &at))
			return;
	}
	REQUIRE(!ioctl(fds[i], RGATE_IOC_CREATE, &c));
	a.rings[0] = c.ring_id;
	EXPECT_GE(vt_att_new(&nl, &a), 1);
}

static void do_mmap(void)
{
	struct piece *p = &maps[any(MAPS)];
	int fd = fds[any(FILES)];
	struct rgate_query q;
	size_t off = 0;
	void *at;

	if (p->at || vt_ring_query(fd, &q))
		return;
	if (!any(3))
		off = any((unsigned int)(q.geo.map_len / 4096)) * 4096UL;
	at = mmap(NULL, q.geo.map_len - off, PROT_READ, MAP_SHARED, fd, (off_t)off);
	if (at == MAP_FAILED) {
		FAIL("mmap as QUERY said: %s", strerror(errno));
		return;
	}
	*p = (struct piece){
		.at = at, .len = q.geo.map_len - off, .prod = off == 0, .id = q.ring_id,
	};
}

static void do_munmap(struct piece *p)
{
	size_t cut;

	if (any(2)) {
		munmap(p->at, p->len);
		p->at = NULL;
		return;
	}
	/* a part: the end, or a hole whose far side is given up with it */
	cut = (1 + any((unsigned int)(p->len / 4096))) * 4096UL;
	if (cut >= p->len) {
		munmap(p->at, p->len);
		p->at = NULL;
		return;
	}
	munmap(p->at + cut, 4096);
	if (cut + 4096 < p->len)
		munmap(p->at + cut + 4096, p->len - cut - 4096);
	p->len = cut;
}

static void do_mremap(struct piece *p)
{
	void *to = mmap(NULL, p->len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *at;

	REQUIRE(to != MAP_FAILED);
	at = mremap(p->at, p->len, p->len, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	REQUIRE(at == to);
	p->at = at;
	if (p->len > 8192 && any(2)) {
		REQUIRE(mremap(p->at, p->len, 8192, 0) == p->at);
		p->len = 8192;
	}
}

static void step(bool in_child);

static int child(void *arg)
{
	unsigned int i;

	(void)arg;
	/* pieces not to be inherited were struck off before the fork */
	for (i = 0; i < 20; i++)
		step(true);
	for (i = 0; i < MAPS; i++)
		if (maps[i].at)
			check(&maps[i]);
	return 0;
}

/* Linux 7.2 does not take MADV_DONTFORK back where a mapping must not grow */
static void inherit(struct piece *p)
{
	if (!madvise(p->at, p->len, MADV_DOFORK))
		p->alone = false;
	else
		EXPECT_EQ(errno, EINVAL);
}

static void do_fork(void)
{
	struct piece kept[MAPS];
	unsigned int i;
	pid_t pid;

	for (i = 0; i < MAPS; i++)
		if (maps[i].at && any(2)) {
			REQUIRE(!madvise(maps[i].at, maps[i].len, MADV_DONTFORK));
			maps[i].alone = true;
			if (any(2))
				inherit(&maps[i]);
		}
	memcpy(kept, maps, sizeof(kept));
	for (i = 0; i < MAPS; i++)
		if (maps[i].alone)
			maps[i].at = NULL;
	pid = vt_fork(child, NULL);
	memcpy(maps, kept, sizeof(kept));
	for (i = 0; i < MAPS; i++)
		if (maps[i].at && maps[i].alone)
			inherit(&maps[i]);
	if (any(2))
		for (i = 0; i < 5; i++)
			step(true);
	EXPECT_EQ(vt_wait(pid, 10000), 0);
}

static void step(bool in_child)
{
	struct piece *p = &maps[any(MAPS)];
	unsigned int i = any(FILES);

	switch (any(in_child ? 7 : 9)) {
	case 0:
	case 1:
		do_mmap();
		break;
	case 2:
		if (p->at)
			do_munmap(p);
		break;
	case 3:
		if (p->at)
			do_mremap(p);
		break;
	case 4:
		if (p->at)
			(void)madvise(p->at, p->len, any(2) ? MADV_DONTNEED : MADV_REMOVE);
		break;
	case 5:
		if (p->at)
			EXPECT_ERRNO(mprotect(p->at, p->len, PROT_READ | PROT_WRITE),
				     EACCES);
		break;
	case 6:
		if (fds[i] >= 0) {
			close(fds[i]);
			fds[i] = -1;
		}
		break;
	case 7:
		do_open();
		if (fds[i] >= 0)
			EXPECT_EQ(vt_ring_resize(fds[i], 64U << any(3), 256U << any(3),
						 NULL), 0);
		break;
	default:
		do_open();
		if (!any(4))
			do_fork();
	}
	if (p->at)
		check(p);
}

static void any_order(void)
{
	struct vt_traffic t = { .ifname = "va", .len = 300, .cpu = 1, .pause_us = 500 };
	unsigned int i;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	for (i = 0; i < FILES; i++)
		fds[i] = -1;
	vt_traffic_start(&t);
	for (i = 0; i < STEPS; i++)
		step(false);
	for (i = 0; i < MAPS; i++)
		if (maps[i].at)
			check(&maps[i]);
	for (i = 0; i < FILES; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	for (i = 0; i < MAPS; i++)
		if (maps[i].at) {
			check(&maps[i]);
			munmap(maps[i].at, maps[i].len);
		}
	vt_traffic_stop(&t);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_RING_GET), 0);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
}

static const struct vt_case cases[] = {
	{ .name = "1500 random steps under traffic", .fn = any_order, .secs = 60 },
	{ .name = "another 1500", .fn = any_order, .secs = 60 },
};

VT_MAIN(cases)
