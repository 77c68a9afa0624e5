// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Pools and devices from beginning to end: threads that leave, pools in use, processes
 * that are killed, and nothing left behind after a thousand of them.
 */
#include "lib/vt.h"
#include "lib/vt_rc.h"

#include <malloc.h>
#include <sys/socket.h>

#define MIB	(1UL << 20)
#define RW	(RGATE_ACCESS_REMOTE_READ | RGATE_ACCESS_REMOTE_WRITE)
#define THREADS	4
#define KEPT	64

static struct rgate_device *dev;

static struct rgate_pool *pool_new(uint32_t flags, size_t quota)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
		.max_size = quota, .access = RW, .flags = flags | RGATE_POOL_NO_HUGE);
	struct rgate_pool *pool;
	int err = rgate_pool_create(&pool, dev, &o);

	if (err)
		DIE("rgate_pool_create: %s", rgate_strerror("rgate_mem_", err));
	return pool;
}

static struct rgate_pool_stats stats(struct rgate_pool *pool)
{
	struct rgate_pool_stats st = { .sz = sizeof(st) };

	REQUIRE_EQ(rgate_pool_stats(pool, &st), 0);
	return st;
}

static void setup(void)
{
	vt_rxe_up(1);
	vt_log_catch();
	dev = vt_dev_rdma(0);
}

struct worker {
	struct rgate_pool *pool;
	const struct rgate_buf *left;	/* not released */
	pthread_barrier_t *full, *leave;
};

/* Fills its cache to the brim, and leaves */
static void *fills_cache(void *arg)
{
	const struct rgate_buf *bufs[KEPT];
	struct worker *w = arg;
	unsigned int i, k;

	for (k = 0; k < 3; k++) {
		for (i = 0; i < KEPT; i++)
			REQUIRE_EQ(rgate_pool_alloc(w->pool, 1024 << k, &bufs[i]), 0);
		for (i = 0; i < KEPT; i++)
			EXPECT_EQ(rgate_pool_free(w->pool, bufs[i]), 0);
	}
	REQUIRE_EQ(rgate_pool_alloc(w->pool, 300, &w->left), 0);
	pthread_barrier_wait(w->full);
	pthread_barrier_wait(w->leave);
	return NULL;
}

/* With all of its buffers released a pool gives all of its memory in one piece */
static void gives_all(struct rgate_pool *pool)
{
	const struct rgate_buf *b;
	int err = rgate_pool_alloc(pool, 2 * MIB, &b);

	if (err)
		FAIL("the whole region: %s", rgate_strerror("rgate_mem_", err));
	else
		EXPECT_EQ(rgate_pool_free(pool, b), 0);
}

static void caches(bool they_leave)
{
	pthread_barrier_t full, leave;
	struct worker w[THREADS];
	struct rgate_pool *pool;
	pthread_t th[THREADS];
	unsigned int i;

	setup();
	pool = pool_new(0, 0);
	pthread_barrier_init(&full, NULL, THREADS + 1);
	pthread_barrier_init(&leave, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ .pool = pool, .full = &full, .leave = &leave };
		REQUIRE(!pthread_create(&th[i], NULL, fills_cache, &w[i]));
	}
	pthread_barrier_wait(&full);
	EXPECT_GE(stats(pool).cached_buffers, THREADS);
	EXPECT_EQ(stats(pool).used_buffers, THREADS);
	if (they_leave) {
		pthread_barrier_wait(&leave);
		for (i = 0; i < THREADS; i++)
			pthread_join(th[i], NULL);
		EXPECT_EQ(stats(pool).cached_buffers, 0);
	}
	/* what they held is released by another */
	for (i = 0; i < THREADS; i++)
		EXPECT_EQ(rgate_pool_free(pool, w[i].left), 0);
	gives_all(pool);
	if (!they_leave) {
		EXPECT_GE(stats(pool).reclaims, 1);
		pthread_barrier_wait(&leave);
		for (i = 0; i < THREADS; i++)
			pthread_join(th[i], NULL);
		gives_all(pool);
	}
	rgate_pool_destroy(pool);
	vt_dev_close(dev);
}

static void threads_leave(void)
{
	caches(true);
}

static void threads_stay(void)
{
	caches(false);
}

static int count_held(void *ctx, const struct rgate_pool_holder *h)
{
	EXPECT(h->tag && !strcmp(h->tag, "held by the test"));
	EXPECT_EQ(h->thread, gettid());
	EXPECT(h->buf && h->buf->length == 777);
	(*(unsigned int *)ctx)++;
	return 0;
}

static void in_use(void)
{
	struct rgate_alloc_opts o = RGATE_OPTS(rgate_alloc_opts, .tag = "held by the test");
	const struct rgate_buf *a, *b;
	struct vt_rxe_res before;
	struct rgate_pool *pool;
	unsigned int n = 0;

	vt_rxe_up(1);
	before = vt_rxe_res(0);
	vt_log_catch();
	dev = vt_dev_rdma(0);
	pool = pool_new(RGATE_POOL_DEBUG, 0);
	REQUIRE_EQ(rgate_pool_alloc_opts(pool, 777, &o, &a), 0);
	REQUIRE_EQ(rgate_pool_alloc_opts(pool, 777, &o, &b), 0);
	EXPECT_EQ(rgate_pool_held(pool, count_held, &n), 0);
	EXPECT_EQ(n, 2);
	/* the device belongs to the pool as long as there is one */
	vt_dev_close(dev);
	EXPECT(vt_log_has("is closed when its"));
	rgate_pool_destroy(pool);
	EXPECT(vt_log_has("held by the test"));
	/* which is until its last buffer is released */
	EXPECT_EQ(vt_rxe_res(0).mr, before.mr + 1);
	memset(a->addr, 1, 777);
	EXPECT_EQ(rgate_pool_free(pool, a), 0);
	EXPECT_EQ(rgate_pool_free(pool, a), -EALREADY);
	EXPECT_EQ(vt_rxe_res(0).mr, before.mr + 1);
	memset(b->addr, 1, 777);
	EXPECT_EQ(rgate_pool_free(pool, b), 0);
	EXPECT(vt_rxe_settled(0, &before));
}

static int sock[2];

/* Writes into the parent's buffer and its own, without end */
static int transfers(void *arg)
{
	const struct rgate_buf *mine, *own;
	struct rgate_rc *rc, *loop;
	struct rgate_remote to;
	struct rgate_pool *pool;
	char raw[32], c = 0;

	(void)arg;
	dev = vt_dev_rdma(0);
	pool = pool_new(RGATE_POOL_DEBUG, 8 * MIB);
	REQUIRE_EQ(rgate_pool_alloc(pool, 65536, &mine), 0);
	REQUIRE_EQ(rgate_pool_alloc(pool, 65536, &own), 0);
	memset(mine->addr, 0x3c, 65536);
	memset(own->addr, 0x3c, 65536);
	rc = vt_rc_meet(dev, sock[1], RW);
	loop = vt_rc_loop(dev, RW);
	vt_get(sock[1], raw, sizeof(raw));
	REQUIRE_EQ(rgate_desc_parse(&to, raw, sizeof(raw)), 0);
	for (;;) {
		struct vt_mem_at here = { (uintptr_t)mine->addr, mine->lkey };
		const struct rgate_buf *b;

		REQUIRE_EQ(vt_rc_do(rc, RGATE_RC_WRITE, here,
				    (struct vt_mem_at){ to.addr, to.rkey }, 50000), 0);
		REQUIRE_EQ(vt_rc_do(loop, RGATE_RC_READ, here,
				    (struct vt_mem_at){ (uintptr_t)own->addr, own->rkey },
				    50000), 0);
		if (!rgate_pool_alloc(pool, 100000, &b) && vt_rand() % 2)
			rgate_pool_free(pool, b);
		if (c)
			continue;
		c = 1;
		vt_put(sock[1], &c, 1);
	}
}

static void killed(void)
{
	struct vt_rxe_res before, during;
	const struct rgate_buf *b;
	struct rgate_pool *pool;
	struct rgate_rc *rc;
	struct rgate_desc d;
	unsigned int i;
	pid_t pid;
	char c;

	vt_rxe_up(1);
	for (i = 0; i < 5; i++) {
		before = vt_rxe_res(0);
		REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
		pid = vt_fork(transfers, NULL);
		dev = vt_dev_rdma(0);
		pool = pool_new(RGATE_POOL_DEBUG, 0);
		REQUIRE_EQ(rgate_pool_alloc(pool, 50000, &b), 0);
		rc = vt_rc_meet(dev, sock[0], RW);
		REQUIRE_EQ(rgate_buf_desc(pool, b, 0, 0, &d), 0);
		vt_put(sock[0], &d, sizeof(d));
		vt_get(sock[0], &c, 1);
		during = vt_rxe_res(0);
		EXPECT_GE(during.mr, before.mr + 2);
		EXPECT_GE(during.qp, before.qp + 3);
		vt_usleep((unsigned int)(vt_rand() % 50000));
		kill(pid, SIGKILL);
		EXPECT(WIFSIGNALED(vt_wait(pid, 10000)));
		/* its buffer is what it wrote, and nothing else is */
		EXPECT_EQ(*(uint8_t *)b->addr, 0x3c);
		EXPECT_EQ(rgate_pool_check(pool), 0);
		rgate_rc_destroy(rc);
		EXPECT_EQ(rgate_pool_free(pool, b), 0);
		rgate_pool_destroy(pool);
		vt_dev_close(dev);
		close(sock[0]);
		close(sock[1]);
		EXPECT(vt_rxe_settled(0, &before));
	}
}

static long unreclaimable_kb(void)
{
	char line[128];
	long kb = 0, v;
	FILE *f = fopen("/proc/meminfo", "r");

	REQUIRE(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "SUnreclaim: %ld", &v) == 1 ||
		    sscanf(line, "VmallocUsed: %ld", &v) == 1)
			kb += v;
	fclose(f);
	return kb;
}

struct usage {
	unsigned int files;
	size_t heap;
	long kernel_kb;
};

static struct usage usage(void)
{
	struct mallinfo2 m = mallinfo2();

	return (struct usage){ vt_open_files(), m.uordblks, unreclaimable_kb() };
}

/* A pool of a device that was opened for it */
static void one_of_a_thousand(unsigned int i)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
		.access = RW, .flags = RGATE_POOL_NO_HUGE | RGATE_POOL_NO_PREFAULT);
	const struct rgate_buf *b;
	struct rgate_pool *pool;
	static uint8_t page[4096];
	struct rgate_mem *mem;

	/* every tenth registers all of it; the others stand for what costs less */
	if (i % 10 == 0)
		dev = vt_dev_rdma(0);
	if (i % 10 == 9) {
		vt_dev_close(dev);
		return;
	}
	mem = vt_mem(dev, page, sizeof(page), RW);
	if (i % 10 == 5) {
		o.flags &= ~(uint32_t)RGATE_POOL_NO_PREFAULT;
		REQUIRE_EQ(rgate_pool_create(&pool, dev, &o), 0);
	} else {
		o.access = 0;
		REQUIRE_EQ(rgate_pool_create(&pool, NULL, &o), 0);
	}
	REQUIRE_EQ(rgate_pool_alloc(pool, 5000, &b), 0);
	EXPECT_EQ(rgate_pool_free(pool, b), 0);
	rgate_pool_destroy(pool);
	vt_mem_drop(mem);
}

static void thousand(void)
{
	struct vt_rxe_res before;
	struct usage was = { 0 }, is;
	unsigned int i;

	vt_rxe_up(1);
	before = vt_rxe_res(0);
	for (i = 0; i < 1000; i++) {
		if (i == 200)
			was = usage();
		one_of_a_thousand(i);
	}
	is = usage();
	EXPECT(vt_rxe_settled(0, &before));
	EXPECT_EQ(is.files, was.files);
	/* 800 of them: 100 bytes of heap each, or 2 KiB in the kernel, would be seen */
	EXPECT_LE(is.heap, was.heap + 80000);
	EXPECT_LE(is.kernel_kb, was.kernel_kb + 1600);
	vt_note("heap %zd bytes more, kernel %ld KiB more", is.heap - was.heap,
		is.kernel_kb - was.kernel_kb);
}

static const struct vt_case cases[] = {
	{ .name = "threads leave with full caches", .fn = threads_leave,
	  .flags = VT_HOSTNS },
	{ .name = "what threads keep is taken back", .fn = threads_stay,
	  .flags = VT_HOSTNS },
	{ .name = "a pool in use stays until it is not", .fn = in_use, .flags = VT_HOSTNS },
	{ .name = "killed amid transfers", .fn = killed, .flags = VT_HOSTNS, .secs = 60 },
	{ .name = "a thousand leave nothing", .fn = thousand, .flags = VT_HOSTNS,
	  .secs = 90 },
};

VT_RXE_MAIN(cases)
