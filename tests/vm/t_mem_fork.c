// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Registered memory over fork(2): whatever the child does, or the parent while there is
 * one, the device and the parent see the same bytes.
 */
#include "lib/vt.h"
#include "lib/vt_rc.h"

#include <malloc.h>
#include <sys/socket.h>

#define RW	(RGATE_ACCESS_REMOTE_READ | RGATE_ACCESS_REMOTE_WRITE)
#define LEN	(16 * 4096)
#define MIB	(1UL << 20)

static struct rgate_device *dev;
static struct rgate_rc *rc;
static struct rgate_pool *pool;
static const struct rgate_buf *held;
static uint8_t *buf;
static struct rgate_mem *bmem;

/* Registered memory that a child gets copies of, or shares, or does not see */
enum { ANON, HEAP, SHARED, POOL, KINDS };

static struct {
	const char *name;
	uint8_t *p;
	struct rgate_mem *mem;
	struct vt_mem_at at;	/* for a peer */
	bool child_sees, common;
} kinds[KINDS] = {
	[ANON] = { .name = "private anonymous memory", .child_sees = true },
	[HEAP] = { .name = "the heap", .child_sees = true },
	[SHARED] = { .name = "shared memory", .child_sees = true, .common = true },
	[POOL] = { .name = "a buffer of a pool" },
};

static void setup(void)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
		.access = RW, .flags = RGATE_POOL_NO_HUGE);
	const int rw = PROT_READ | PROT_WRITE;
	unsigned int i;

	vt_rxe_up(1);
	vt_log_catch();
	dev = vt_dev_rdma(0);
	rc = vt_rc_loop(dev, RW);
	REQUIRE_EQ(rgate_pool_create(&pool, dev, &o), 0);
	REQUIRE_EQ(rgate_pool_alloc(pool, LEN, &held), 0);
	buf = mmap(NULL, LEN, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	kinds[ANON].p = mmap(NULL, LEN, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	kinds[HEAP].p = malloc(LEN);
	kinds[SHARED].p = mmap(NULL, LEN, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	kinds[POOL].p = held->addr;
	REQUIRE(buf != MAP_FAILED && kinds[ANON].p != MAP_FAILED && kinds[HEAP].p &&
		kinds[SHARED].p != MAP_FAILED);
	bmem = vt_mem(dev, buf, LEN, 0);
	for (i = 0; i < KINDS; i++) {
		vt_pkt_fill(kinds[i].p, LEN, i);
		if (i == POOL) {
			kinds[i].at = (struct vt_mem_at){ (uintptr_t)held->addr, held->rkey };
			continue;
		}
		kinds[i].mem = vt_mem(dev, kinds[i].p, LEN, RW);
		kinds[i].at = vt_there(kinds[i].mem, 0);
	}
}

static void done(void)
{
	unsigned int i;

	rgate_rc_destroy(rc);
	for (i = 0; i < POOL; i++)
		vt_mem_drop(kinds[i].mem);
	vt_mem_drop(bmem);
	EXPECT_EQ(rgate_pool_free(pool, held), 0);
	rgate_pool_destroy(pool);
	EXPECT_EQ(rgate_device_mr_count(dev), 0);
	vt_dev_close(dev);
}

/* The device reads what the CPU wrote, the CPU what the device wrote */
static void coherent(const char *when)
{
	unsigned int i;

	for (i = 0; i < KINDS; i++) {
		vt_pkt_fill(kinds[i].p, LEN, vt_rand());
		memset(buf, 0, LEN);
		EXPECT_EQ(vt_rc_do(rc, RGATE_RC_READ, vt_here(bmem, 0), kinds[i].at, LEN), 0);
		if (memcmp(buf, kinds[i].p, LEN))
			FAIL("%s, %s: the device reads other bytes", when, kinds[i].name);
		vt_pkt_fill(buf, LEN, vt_rand());
		EXPECT_EQ(vt_rc_do(rc, RGATE_RC_WRITE, vt_here(bmem, 0), kinds[i].at, LEN), 0);
		if (memcmp(buf, kinds[i].p, LEN))
			FAIL("%s, %s: the device writes elsewhere", when, kinds[i].name);
	}
}

/* May this process touch the byte? */
static bool mapped(const void *p)
{
	int fds[2];
	bool yes;

	REQUIRE(!pipe(fds));
	yes = write(fds[1], p, 1) == 1;
	EXPECT(yes || errno == EFAULT);
	close(fds[0]);
	close(fds[1]);
	return yes;
}

static void calls_are_refused(void)
{
	struct rgate_pool_stats st = { .sz = sizeof(st) };
	const struct rgate_buf *b = NULL;
	struct rgate_mem *mem;
	struct rgate_desc d;

	EXPECT_EQ(vt_mem_try(&mem, dev, buf, LEN, RW), -EPERM);
	EXPECT_EQ(rgate_device_check(dev), -EPERM);
	EXPECT_EQ(rgate_pool_alloc(pool, 100, &b), -EPERM);
	EXPECT(!b);
	EXPECT_EQ(rgate_pool_free(pool, held), -EPERM);
	EXPECT_EQ(rgate_pool_flush(pool), -EPERM);
	EXPECT_EQ(rgate_pool_stats(pool, &st), -EPERM);
	EXPECT_EQ(rgate_pool_check(pool), -EPERM);
	EXPECT_EQ(rgate_pool_lookup(pool, held->addr, &b), -EPERM);
	EXPECT_EQ(rgate_buf_desc(pool, held, 0, 0, &d), -EPERM);
	rgate_mem_deregister(kinds[HEAP].mem);
}

/* All of it that is there */
static void scribble(void)
{
	unsigned int i;

	for (i = 0; i < KINDS; i++)
		if (kinds[i].child_sees && !kinds[i].common)
			memset(kinds[i].p, 0xc0 + (int)i, LEN);
	memset(buf, 0xcc, LEN);
}

static int sock[2];

static int child_scribbles(void *arg)
{
	struct pollfd pfd = { .fd = sock[1], .events = POLLIN };
	unsigned int i;
	char c = 0;

	(void)arg;
	for (i = 0; i < KINDS; i++)
		if (mapped(kinds[i].p) != kinds[i].child_sees)
			FAIL("%s is%s mapped in the child", kinds[i].name,
			     kinds[i].child_sees ? " not" : "");
	calls_are_refused();
	vt_put(sock[1], &c, 1);
	do
		scribble();
	while (poll(&pfd, 1, 1) == 0);
	return 0;
}

static void child_writes(void)
{
	pid_t pid;
	char c;

	setup();
	coherent("before");
	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	pid = vt_fork(child_scribbles, NULL);
	coherent("with a child");
	vt_get(sock[0], &c, 1);
	coherent("while it writes");
	vt_put(sock[0], &c, 1);
	EXPECT_EQ(vt_wait(pid, 10000), 0);
	coherent("after its end");
	done();
}

/* What the child has are copies of its own, as of the fork */
static int child_keeps(void *arg)
{
	uint8_t *want = malloc(LEN);
	char c = 0;

	(void)arg;
	REQUIRE(want);
	vt_get(sock[1], &c, 1);
	vt_pkt_fill(want, LEN, ANON);
	EXPECT(!memcmp(kinds[ANON].p, want, LEN));
	vt_pkt_fill(want, LEN, HEAP);
	EXPECT(!memcmp(kinds[HEAP].p, want, LEN));
	/* shared memory is: the device writes for both */
	vt_pkt_fill(want, LEN, 77);
	EXPECT(!memcmp(kinds[SHARED].p, want, LEN));
	return 0;
}

static void child_has_copies(void)
{
	pid_t pid;
	char c = 0;

	setup();
	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	pid = vt_fork(child_keeps, NULL);
	coherent("with a child");
	vt_pkt_fill(buf, LEN, 77);
	EXPECT_EQ(vt_rc_do(rc, RGATE_RC_WRITE, vt_here(bmem, 0), kinds[SHARED].at, LEN), 0);
	vt_put(sock[0], &c, 1);
	EXPECT_EQ(vt_wait(pid, 10000), 0);
	done();
}

/* Every way a process can end */
static int child_ends(void *arg)
{
	int how = *(int *)arg;

	scribble();
	if (how == 0)
		_exit(0);
	if (how == 1)
		execl("/bin/true", "true", (char *)NULL);
	if (how == 2)
		kill(getpid(), SIGKILL);
	if (how == 3) {
		rgate_pool_destroy(pool);
		rgate_device_close(dev);
	}
	return 0;
}

static void child_goes(void)
{
	int how, st;

	setup();
	for (how = 0; how < 4; how++) {
		st = vt_wait(vt_fork(child_ends, &how), 10000);
		if (how == 2)
			EXPECT(st >= 0 && WIFSIGNALED(st));
		else
			EXPECT_EQ(st, 0);
		coherent("after a child");
	}
	/* what it had been given is still the parent's */
	EXPECT_EQ(rgate_device_mr_count(dev), KINDS + 1);
	done();
}

/* The child may well have a device, a pool and a connection: its own */
static int child_opens(void *arg)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
		.access = RW, .flags = RGATE_POOL_NO_HUGE);
	const struct rgate_buf *a, *b;
	struct rgate_device *mine = vt_dev_rdma(0);
	struct rgate_rc *loop = vt_rc_loop(mine, RW);
	struct rgate_pool *p;

	(void)arg;
	EXPECT(mine != dev);
	EXPECT_EQ(rgate_device_mr_count(mine), 0);
	REQUIRE_EQ(rgate_pool_create(&p, mine, &o), 0);
	REQUIRE_EQ(rgate_pool_alloc(p, 30000, &a), 0);
	REQUIRE_EQ(rgate_pool_alloc(p, 30000, &b), 0);
	vt_pkt_fill(a->addr, 30000, 1);
	EXPECT_EQ(vt_rc_do(loop, RGATE_RC_WRITE,
			   (struct vt_mem_at){ (uintptr_t)a->addr, a->lkey },
			   (struct vt_mem_at){ (uintptr_t)b->addr, b->rkey }, 30000), 0);
	EXPECT(!memcmp(a->addr, b->addr, 30000));
	EXPECT_EQ(rgate_pool_free(p, a), 0);
	EXPECT_EQ(rgate_pool_free(p, b), 0);
	rgate_pool_destroy(p);
	rgate_rc_destroy(loop);
	vt_dev_close(mine);
	return 0;
}

static void child_has_its_own(void)
{
	pid_t pid;

	setup();
	pid = vt_fork(child_opens, NULL);
	coherent("while a child uses the device");
	EXPECT_EQ(vt_wait(pid, 20000), 0);
	coherent("after it");
	done();
}

static const struct vt_case cases[] = {
	{ .name = "a child writes all it has", .fn = child_writes, .flags = VT_HOSTNS },
	{ .name = "a child has copies", .fn = child_has_copies, .flags = VT_HOSTNS },
	{ .name = "children end in every way", .fn = child_goes, .flags = VT_HOSTNS },
	{ .name = "a child opens the device itself", .fn = child_has_its_own,
	  .flags = VT_HOSTNS },
};

VT_RXE_MAIN(cases)
