// SPDX-License-Identifier: MIT OR GPL-2.0
/* Ring memory is charged to its user: RLIMIT_MEMLOCK and the memory cgroup. */
#include "lib/vt.h"

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ringgate/ringgate.h>	/* libringgate */

#define UID_A	23450
#define UID_B	23451

static void limit(size_t bytes)
{
	struct rlimit l = { bytes, bytes };

	REQUIRE(!setrlimit(RLIMIT_MEMLOCK, &l));
}

static void become(uid_t uid)
{
	REQUIRE(!setgid(uid) && !setuid(uid));
}

/* A ring of @slots x 2048 bytes: its file, or -errno */
static int make(uint32_t slots, struct rgate_geometry *geo)
{
	struct rgate_create c = vt_create_req();
	int fd = vt_dev_open();

	c.slots = slots;
	if (ioctl(fd, RGATE_IOC_CREATE, &c)) {
		int err = -errno;

		close(fd);
		return err;
	}
	if (geo)
		*geo = c.geo;
	return fd;
}

static void enforced(void)
{
	struct rgate_geometry g;
	int fd, fd2, i;

	/* as root there is no limit */
	limit(64 * 1024);
	fd = make(256, &g);
	REQUIRE(fd >= 0);
	close(fd);
	/* exactly one ring fits */
	limit(g.map_len);
	become(UID_A);
	for (i = 0; i < 10; i++) {
		fd = make(256, NULL);
		REQUIRE(fd >= 0);
		EXPECT_EQ(make(256, NULL), -ENOBUFS);
		EXPECT_EQ(make(64, NULL), -ENOBUFS);
		close(fd);
	}
	EXPECT_EQ(make(512, NULL), -ENOBUFS);
	/* handles on a ring cost nothing more */
	fd = make(256, NULL);
	REQUIRE(fd >= 0);
	for (i = 0; i < 5; i++) {
		struct rgate_attach a = { .fd = fd };

		fd2 = vt_dev_open();
		EXPECT(!ioctl(fd2, RGATE_IOC_ATTACH, &a));
	}
}

static void one_page_short(void)
{
	struct rgate_geometry g;
	int fd = make(256, &g);

	REQUIRE(fd >= 0);
	close(fd);
	limit(g.map_len - 4096);
	become(UID_A);
	EXPECT_EQ(make(256, NULL), -ENOBUFS);
}

static void without_limit(void)
{
	limit(0);
	become(UID_A);
	EXPECT_EQ(make(64, NULL), -ENOBUFS);
}

static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)msg;
	*(int *)ctx += level == RGATE_LOG_WARN;
}

/* The library makes its default ring smaller until it fits, and says so */
static void default_ring_shrinks(void)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = RGATE_SLOTS_DEFAULT);
	struct rgate_ring *ring;
	struct rgate_view v;
	int warned = 0;

	rgate_log_set(on_log, &warned);
	limit(8 << 20);
	become(UID_A);
	EXPECT_EQ(rgate_ring_open(&ring, &o), -ENOBUFS);
	EXPECT_EQ(warned, 0);
	REQUIRE(!rgate_ring_open(&ring, NULL));
	rgate_ring_view(ring, &v);
	EXPECT_EQ(v.nslots, RGATE_SLOTS_DEFAULT / 2);
	EXPECT_EQ(v.slot_size, RGATE_SLOT_SIZE_DEFAULT);
	EXPECT_EQ(warned, 1);
	rgate_ring_close(ring);
	limit(64 << 10);
	EXPECT_EQ(rgate_ring_open(&ring, NULL), -ENOBUFS);
}

static int as_a(void *arg)
{
	int *sync = arg;
	char c;
	int fd;

	limit(700 * 1024);
	become(UID_A);
	fd = make(256, NULL);
	if (fd < 0 || write(sync[1], "", 1) != 1)
		return 1;
	return read(sync[2], &c, 1) != 1;
}

static int second_of_a(void *arg)
{
	(void)arg;
	limit(700 * 1024);
	become(UID_A);
	return make(256, NULL) != -ENOBUFS;
}

static int as_b(void *arg)
{
	(void)arg;
	limit(700 * 1024);
	become(UID_B);
	return make(256, NULL) < 0;
}

static void counted_by_user(void)
{
	int sync[4];
	pid_t pid;
	char c;

	/* sync: child -> us, us -> child */
	REQUIRE(!pipe(sync) && !pipe(sync + 2));
	pid = vt_fork(as_a, sync);
	REQUIRE(read(sync[0], &c, 1) == 1);
	/* another process of the same user shares the limit, another user does not */
	EXPECT_EQ(vt_wait(vt_fork(second_of_a, NULL), 5000), 0);
	EXPECT_EQ(vt_wait(vt_fork(as_b, NULL), 5000), 0);
	REQUIRE(write(sync[3], "", 1) == 1);
	EXPECT_EQ(vt_wait(pid, 5000), 0);
	/* it is gone: its share is free */
	EXPECT_EQ(vt_wait(vt_fork(as_b, NULL), 5000), 0);
}

static void with_cap_ipc_lock(void)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { 0 };

	limit(64 * 1024);
	REQUIRE(!prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	become(UID_A);
	d[0].effective = d[0].permitted = 1U << CAP_IPC_LOCK;
	REQUIRE(!syscall(SYS_capset, &h, d));
	EXPECT(make(1024, NULL) >= 0);
	d[0].effective = 0;
	REQUIRE(!syscall(SYS_capset, &h, d));
	EXPECT_EQ(make(64, NULL), -ENOBUFS);
}

static void over_resize(void)
{
	struct rgate_geometry small, big, g;
	struct vt_ring r = { 0 };
	int fd = make(64, &small);

	REQUIRE(fd >= 0);
	close(fd);
	fd = make(256, &big);
	REQUIRE(fd >= 0);
	close(fd);
	limit(small.map_len + big.map_len);
	become(UID_A);
	r.fd = make(64, &r.geo);
	REQUIRE(r.fd >= 0);
	vt_ring_map(&r);
	/* old and new both count while the old is mapped */
	EXPECT_EQ(vt_ring_resize(r.fd, 512, 2048, NULL), -ENOBUFS);
	EXPECT_EQ(vt_ring_resize(r.fd, 256, 2048, &g), 0);
	EXPECT_EQ(make(64, NULL), -ENOBUFS);
	EXPECT_EQ(vt_ring_resize(r.fd, 64, 2048, NULL), -ENOBUFS);
	vt_ring_unmap(&r);
	fd = make(64, NULL);
	EXPECT(fd >= 0);
	close(fd);
	EXPECT_EQ(vt_ring_resize(r.fd, 64, 2048, &r.geo), 0);
	/* all goes while retired memory is mapped: counted until munmap */
	vt_ring_map(&r);
	EXPECT_EQ(vt_ring_resize(r.fd, 256, 2048, NULL), 0);
	close(r.fd);
	EXPECT_EQ(make(256, NULL), -ENOBUFS);
	vt_ring_unmap(&r);
	fd = make(256, NULL);
	EXPECT(fd >= 0);
	close(fd);
}

/* cgroup v2 */
static const char cg_root[] = "/tmp/vt-cgroup";
static const char cg[] = "/tmp/vt-cgroup/vt";

static int put(const char *name, const char *text)
{
	char path[128];
	int fd, r;

	snprintf(path, sizeof(path), "%s/%s", cg, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

static long get(const char *name, const char *key)
{
	char path[128], line[256];
	long v = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", cg, name);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		size_t n = strlen(key);

		if (!n || (!strncmp(line, key, n) && line[n] == ' '))
			v = atol(line + n);
	}
	fclose(f);
	return v;
}

static int in_cgroup(void *arg)
{
	char pid[16];
	long before, with;
	int fd, i;

	(void)arg;
	snprintf(pid, sizeof(pid), "%d", getpid());
	REQUIRE(!put("cgroup.procs", pid));
	before = get("memory.current", "");
	fd = make(1024, NULL);	/* 2 MiB */
	REQUIRE(fd >= 0);
	with = get("memory.current", "");
	EXPECT_GE(with - before, 2 << 20);
	close(fd);
	EXPECT(VT_UNTIL(get("memory.current", "") < before + (1 << 20), 5000));
	/* over the limit: an error, again and again */
	for (i = 0; i < 5; i++)
		EXPECT_EQ(make(32768, NULL), -ENOMEM);	/* 64 MiB of 24 */
	EXPECT(VT_UNTIL(get("memory.current", "") < before + (1 << 20), 5000));
	fd = make(1024, NULL);
	EXPECT(fd >= 0);
	/* the same for a resize, and the ring goes on */
	EXPECT_EQ(vt_ring_resize(fd, 32768, 2048, NULL), -ENOMEM);
	EXPECT_EQ(vt_ring_resize(fd, 512, 2048, NULL), 0);
	close(fd);
	return 0;
}

static int bystander(void *arg)
{
	char pid[16];

	(void)arg;
	snprintf(pid, sizeof(pid), "%d", getpid());
	REQUIRE(!put("cgroup.procs", pid));
	for (;;)
		pause();
}

static void memory_cgroup(void)
{
	pid_t other;
	int fd, st;

	mkdir(cg_root, 0755);
	if (mount("none", cg_root, "cgroup2", 0, NULL) && errno != EBUSY)
		vt_skip("no cgroup2: %s", strerror(errno));
	fd = open("/tmp/vt-cgroup/cgroup.subtree_control", O_WRONLY);
	if (fd < 0 || write(fd, "+memory", 7) != 7) {
		umount(cg_root);
		vt_skip("no memory controller: %s", strerror(errno));
	}
	close(fd);
	mkdir(cg, 0755);
	REQUIRE(!put("memory.max", "25165824"));
	other = vt_fork(bystander, NULL);
	st = vt_wait(vt_fork(in_cgroup, NULL), 20000);
	EXPECT_EQ(st, 0);
	/* nobody in the group was killed for it */
	EXPECT_EQ(get("memory.events", "oom_kill"), 0);
	EXPECT_EQ(waitpid(other, &st, WNOHANG), 0);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	rmdir(cg);
	umount(cg_root);
}

static const struct vt_case cases[] = {
	{ .name = "RLIMIT_MEMLOCK holds", .fn = enforced },
	{ .name = "a page short", .fn = one_page_short },
	{ .name = "limit 0", .fn = without_limit },
	{ .name = "the library shrinks its default ring", .fn = default_ring_shrinks },
	{ .name = "counted by user, not by process", .fn = counted_by_user },
	{ .name = "CAP_IPC_LOCK lifts it", .fn = with_cap_ipc_lock },
	{ .name = "over a resize, with retired memory mapped", .fn = over_resize },
	{ .name = "memory cgroup: ENOMEM, nobody killed", .fn = memory_cgroup },
};

VT_MAIN(cases)
