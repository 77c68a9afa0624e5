// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * An RDMA device that is removed, or cut off, under those who use it: errors within
 * bounded time, and everything can be taken down.
 */
#include "lib/vt.h"
#include "lib/vt_rc.h"

#include <ringgate/rgate_ring.h>
#include <ringgate/rgate_ctl.h>

#define MIB	(1UL << 20)
#define RW	(RGATE_ACCESS_REMOTE_READ | RGATE_ACCESS_REMOTE_WRITE)

static struct rgate_device *dev;
static struct rgate_pool *pool;
static int stop;

static struct rgate_pool *pool_new(struct rgate_device *of, size_t quota)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
		.max_size = quota, .access = RW, .flags = RGATE_POOL_NO_HUGE);
	struct rgate_pool *p;

	REQUIRE_EQ(rgate_pool_create(&p, of, &o), 0);
	return p;
}

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

/* Errors that tell of a lost device or peer */
static bool is_loss(int err)
{
	return err == -EIO || err == -ENODEV || err == -ETIMEDOUT || err == -ECANCELED ||
	       err == -ENOTCONN || err == -EREMOTEIO;
}

struct user {
	unsigned long done;
	int err;		/* the first one */
};

static void *transfers(void *arg)
{
	struct rgate_rc *rc = vt_rc_loop(dev, RW);
	const struct rgate_buf *a, *b;
	struct user *u = arg;

	REQUIRE_EQ(rgate_pool_alloc(pool, 20000, &a), 0);
	REQUIRE_EQ(rgate_pool_alloc(pool, 20000, &b), 0);
	while (!stopped() && !u->err) {
		struct vt_mem_at here = { (uintptr_t)a->addr, a->lkey };
		struct vt_mem_at there = { (uintptr_t)b->addr, b->rkey };

		vt_pkt_fill(a->addr, 20000, u->done);
		u->err = vt_rc_do(rc, RGATE_RC_WRITE, here, there, 20000);
		if (!u->err)
			EXPECT(!memcmp(a->addr, b->addr, 20000));
		__atomic_add_fetch(&u->done, 1, __ATOMIC_RELAXED);
	}
	rgate_rc_destroy(rc);
	EXPECT_EQ(rgate_pool_free(pool, a), 0);
	EXPECT_EQ(rgate_pool_free(pool, b), 0);
	return NULL;
}

/* Wants more than there is, so that the pool tries to grow, and registers memory */
static void *allocates(void *arg)
{
	struct user *u = arg;
	static uint8_t page[4096];

	while (!stopped() && !u->err) {
		const struct rgate_buf *bufs[8];
		struct rgate_mem *mem;
		unsigned int n = 0;

		while (n < 8 && !rgate_pool_alloc(pool, MIB, &bufs[n]))
			n++;
		while (n)
			EXPECT_EQ(rgate_pool_free(pool, bufs[--n]), 0);
		u->err = vt_mem_try(&mem, dev, page, sizeof(page), RW);
		if (!u->err)
			rgate_mem_deregister(mem);
		__atomic_add_fetch(&u->done, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* The kernel waits in this until the last user is gone */
static int remover(void *arg)
{
	(void)arg;
	execlp("rdma", "rdma", "link", "del", vt_rxe_name(0), (char *)NULL);
	return 127;
}

static int open_again(void)
{
	struct rgate_device_opts o = RGATE_OPTS(rgate_device_opts, .name = vt_rxe_name(0));
	struct rgate_device *d;

	return rgate_device_open(&d, &o);
}

static void removed(void)
{
	struct rgate_pool_region r = { .sz = sizeof(r) };
	struct user users[2] = { 0 };
	struct rgate_mem *mem;
	unsigned int files, i;
	static uint8_t mine[8192];
	pthread_t th[2];
	pid_t pid;

	vt_rxe_up(1);
	vt_log_catch();
	files = vt_open_files();
	dev = vt_dev_rdma(0);
	pool = pool_new(dev, 8 * MIB);
	mem = vt_mem(dev, mine, sizeof(mine), RW);
	EXPECT_EQ(rgate_device_check(dev), 0);
	REQUIRE(!pthread_create(&th[0], NULL, transfers, &users[0]));
	REQUIRE(VT_UNTIL(__atomic_load_n(&users[0].done, __ATOMIC_RELAXED) > 20, 10000));
	/* after the first has its buffers, as this one takes all that is left */
	REQUIRE(!pthread_create(&th[1], NULL, allocates, &users[1]));
	REQUIRE(VT_UNTIL(__atomic_load_n(&users[1].done, __ATOMIC_RELAXED) > 3, 10000));
	EXPECT(!users[0].err && !users[1].err);
	pid = vt_fork(remover, NULL);
	/* who asks learns of it */
	EXPECT(VT_UNTIL(rgate_device_check(dev) == -EIO, 10000));
	vt_usleep(300000);
	EXPECT_EQ(waitpid(pid, NULL, WNOHANG), 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++) {
		struct timespec end;

		clock_gettime(CLOCK_REALTIME, &end);
		end.tv_sec += 15;
		if (pthread_timedjoin_np(th[i], NULL, &end))
			DIE("thread %u hangs", i);
		if (users[i].err && !is_loss(users[i].err))
			FAIL("thread %u: %s", i, rgate_strerror("rgate_mem_", users[i].err));
		vt_note("thread %u: %lu, then %d", i, users[i].done, users[i].err);
	}
	EXPECT_EQ(rgate_device_check(dev), -EIO);
	EXPECT_EQ(open_again(), -ENODEV);
	/* the memory itself is as good as ever */
	REQUIRE_EQ(rgate_pool_region(pool, 0, &r), 0);
	memset(r.addr, 1, r.length);
	rgate_mem_deregister(mem);
	rgate_pool_destroy(pool);
	EXPECT_EQ(rgate_device_mr_count(dev), 0);
	vt_dev_close(dev);
	EXPECT_EQ(vt_open_files(), files);
	/* with us gone the kernel can finish */
	EXPECT_EQ(vt_wait(pid, 10000), 0);
	EXPECT_EQ(open_again(), -ENODEV);
	/* one of the same name is another one */
	vt_rxe_up(1);
	dev = vt_dev_rdma(0);
	EXPECT_EQ(rgate_device_check(dev), 0);
	pool = pool_new(dev, 0);
	__atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
	memset(users, 0, sizeof(users));
	REQUIRE(!pthread_create(&th[0], NULL, transfers, &users[0]));
	REQUIRE(VT_UNTIL(__atomic_load_n(&users[0].done, __ATOMIC_RELAXED) > 10, 10000));
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(th[0], NULL);
	EXPECT_EQ(users[0].err, 0);
	rgate_pool_destroy(pool);
	vt_dev_close(dev);
}

/* Two devices, a buffer on each, and a connection */
static struct ends {
	struct rgate_device *dev[2];
	struct rgate_pool *pool[2];
	const struct rgate_buf *buf[2];
	struct rgate_rc *rc[2];
} e;

static void ends_connect(void)
{
	vt_rc_pair(e.rc, e.dev[0], e.dev[1], RW);
}

static void ends_disconnect(void)
{
	rgate_rc_destroy(e.rc[0]);
	rgate_rc_destroy(e.rc[1]);
}

static void ends_up(void)
{
	unsigned int i;

	vt_rxe_up(2);
	vt_log_catch();
	for (i = 0; i < 2; i++) {
		e.dev[i] = vt_dev_rdma(i);
		e.pool[i] = pool_new(e.dev[i], 0);
		REQUIRE_EQ(rgate_pool_alloc(e.pool[i], 20000, &e.buf[i]), 0);
	}
	ends_connect();
}

static void ends_down(void)
{
	unsigned int i;

	ends_disconnect();
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(rgate_pool_free(e.pool[i], e.buf[i]), 0);
		rgate_pool_destroy(e.pool[i]);
		vt_dev_close(e.dev[i]);
	}
}

/* A write from the first to the second, all of @value */
static int write_over(uint8_t value, int ms)
{
	struct rgate_rc_work w = {
		.op = RGATE_RC_WRITE, .addr = e.buf[0]->addr, .length = 20000,
		.lkey = e.buf[0]->lkey, .remote = (uintptr_t)e.buf[1]->addr,
		.rkey = e.buf[1]->rkey,
	};

	memset(e.buf[0]->addr, value, 20000);
	return rgate_rc_do(e.rc[0], &w, ms);
}

static bool arrived(uint8_t value)
{
	const uint8_t *p = e.buf[1]->addr;

	return p[0] == value && p[19999] == value && !memcmp(p, p + 1, 19999);
}

/* A ring takes all frames off the wire: no answer is an error, not a hang */
static void unanswered(void)
{
	struct rgate_attach_opts steal = RGATE_OPTS(rgate_attach_opts,
						    .action = RGATE_ACTION_STEAL);
	struct rgate_ring *ring;
	int err;

	ends_up();
	EXPECT_EQ(write_over(1, VT_MS), 0);
	EXPECT(arrived(1));
	REQUIRE_EQ(rgate_ring_open(&ring, NULL), 0);
	REQUIRE_EQ(rgate_ring_attach(ring, vt_rxe_netdev(1), &steal, NULL), 0);
	EXPECT_EQ(write_over(2, 20000), -ETIMEDOUT);
	EXPECT(arrived(1));
	/* the connection has failed for good, the device has not */
	err = write_over(3, 5000);
	EXPECT(err == -ENOTCONN || err == -ECANCELED);
	EXPECT_EQ(rgate_device_check(e.dev[0]), 0);
	rgate_ring_close(ring);
	err = write_over(4, 5000);
	EXPECT(err == -ENOTCONN || err == -ECANCELED);
	ends_disconnect();
	ends_connect();
	EXPECT_EQ(write_over(5, VT_MS), 0);
	EXPECT(arrived(5));
	ends_down();
}

static void port_down(void)
{
	ends_up();
	EXPECT_EQ(write_over(1, VT_MS), 0);
	vt_must("ip link set %s down", vt_rxe_netdev(1));
	/* soft-RoCE itself waits here for ever */
	EXPECT_EQ(write_over(2, 2000), -ETIMEDOUT);
	EXPECT(arrived(1));
	EXPECT_EQ(rgate_device_check(e.dev[0]), 0);
	EXPECT_EQ(rgate_device_check(e.dev[1]), 0);
	ends_down();
	vt_rxe_down();
}

static const struct vt_case cases[] = {
	{ .name = "removed under transfers and allocations", .fn = removed,
	  .flags = VT_HOSTNS, .secs = 90 },
	{ .name = "no answer", .fn = unanswered, .flags = VT_HOSTNS, .secs = 60 },
	{ .name = "a port goes down", .fn = port_down, .flags = VT_HOSTNS, .secs = 60 },
};

VT_RXE_MAIN(cases)
