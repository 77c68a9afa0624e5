// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A file that is open for reading alone, in the hands of a process of another user:
 * it looks, and finds no way to anything else.
 */
#include <sys/socket.h>

#include "lib/vt.h"

static int look;	/* O_RDONLY, on the ring of somebody else */

static void is_read_only(int fd, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);

	REQUIRE(p != MAP_FAILED);
	EXPECT_EQ(((const struct rgate_prod *)p)->magic, RGATE_MAGIC);
	EXPECT_ERRNO(mprotect(p, len, PROT_READ | PROT_WRITE), EACCES);
	munmap(p, len);
}

static int onlooker(void *arg)
{
	const struct vt_ring *r = arg;
	static const int how[] = { O_RDWR, O_RDONLY, O_WRONLY };
	char path[64];
	struct rgate_query q;
	size_t i;
	int fd;

	close(r->fd);
	REQUIRE(!setgid(12345) && !setuid(12345));
	REQUIRE(!vt_ring_query(look, &q));
	is_read_only(look, q.geo.map_len);
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, look,
		    (off_t)q.geo.cons_off) == MAP_FAILED && errno == EACCES);
	EXPECT_EQ(vt_ring_resize(look, 128, 512, NULL), -EBADF);
	/* no handle from it, however the new file is open */
	for (i = 0; i < VT_COUNT(how); i++) {
		struct rgate_attach a = { .fd = look };

		fd = open(RGATE_DEVICE, how[i] | O_CLOEXEC);
		REQUIRE(fd >= 0);
		EXPECT_ERRNO(ioctl(fd, RGATE_IOC_ATTACH, &a), EACCES);
		/* and that file is as it was */
		EXPECT_EQ(vt_ring_query(fd, &q), -ENXIO);
		close(fd);
	}
	/* opened anew by its name it is a file without a ring */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", look);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		EXPECT_EQ(vt_ring_query(fd, &q), -ENXIO);
	return 0;
}

static void only_looks(void)
{
	struct rgate_attach a = { 0 };
	struct vt_ring r;
	struct rgate_query q;

	vt_ring_open(&r, 64, 256, 0, 0);
	/* this is how its owner makes it */
	look = open(RGATE_DEVICE, O_RDONLY | O_CLOEXEC);
	REQUIRE(look >= 0);
	a.fd = r.fd;
	REQUIRE(!ioctl(look, RGATE_IOC_ATTACH, &a));
	EXPECT(a.cookie == r.cookie);
	EXPECT_EQ(vt_wait(vt_fork(onlooker, &r), 10000), 0);
	/* nothing of it has reached the ring */
	REQUIRE(!vt_ring_query(r.fd, &q));
	EXPECT_EQ(q.handles, 2);
	EXPECT_EQ(q.geo.slots, 64);
}

static const struct vt_case cases[] = {
	{ .name = "who may only look gets no more than that", .fn = only_looks },
};

VT_MAIN(cases)
