// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Limits and what is said when they are met: regions of a device, RLIMIT_MEMLOCK,
 * permissions, and devices that are not there or not up.
 */
#include "lib/vt.h"
#include "lib/vt_rc.h"

#include <sys/resource.h>
#include <sys/stat.h>

#define UID	23460
#define MIB	(1UL << 20)
#define RW	(RGATE_ACCESS_REMOTE_READ | RGATE_ACCESS_REMOTE_WRITE)

static struct rgate_mem *mems[128];
static uint8_t page[4096] __attribute__((aligned(4096)));

static void setup(void)
{
	vt_rxe_up(1);
	vt_log_catch();
}

/* How many can be registered of @most, then the error */
static unsigned int fill(struct rgate_device *dev, unsigned int most, int *err)
{
	unsigned int n;

	*err = 0;
	for (n = 0; n < most; n++) {
		*err = vt_mem_try(&mems[n], dev, page, sizeof(page), RW);
		if (*err)
			break;
		EXPECT_EQ(rgate_device_mr_count(dev), n + 1);
	}
	return n;
}

static void empty(unsigned int n)
{
	while (n)
		vt_mem_drop(mems[--n]);
}

static struct rgate_pool *pool_new(struct rgate_device *dev, size_t quota)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
		.max_size = quota, .access = RW, .flags = RGATE_POOL_NO_HUGE);
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

/* By RDMA into a buffer of the pool and back */
static void serves(struct rgate_device *dev, struct rgate_pool *pool)
{
	struct rgate_rc *rc = vt_rc_loop(dev, RW);
	const struct rgate_buf *a, *b;

	REQUIRE_EQ(rgate_pool_alloc(pool, 5000, &a), 0);
	REQUIRE_EQ(rgate_pool_alloc(pool, 5000, &b), 0);
	vt_pkt_fill(a->addr, 5000, vt_rand());
	EXPECT_EQ(vt_rc_do(rc, RGATE_RC_WRITE, (struct vt_mem_at){ (uintptr_t)a->addr, a->lkey },
			   (struct vt_mem_at){ (uintptr_t)b->addr, b->rkey }, 5000), 0);
	EXPECT(!memcmp(a->addr, b->addr, 5000));
	EXPECT_EQ(rgate_pool_free(pool, a), 0);
	EXPECT_EQ(rgate_pool_free(pool, b), 0);
	rgate_rc_destroy(rc);
}

static void a_hundred(void)
{
	const struct rgate_buf *bufs[1000];
	struct rgate_device *dev;
	struct rgate_pool *pool;
	unsigned int i, n;
	int err;

	setup();
	setenv("RGATE_MAX_MR", "100", 1);
	dev = vt_dev_rdma(0);
	EXPECT_EQ(rgate_device_mr_limit(dev), 100);
	EXPECT_GE(rgate_device_info(dev)->max_mr, 1000);
	EXPECT_EQ(fill(dev, 128, &err), 100);
	EXPECT_EQ(err, -ENOSPC);
	EXPECT(vt_log_has("100"));
	/* refused again, as long as it is so; one back, one more */
	EXPECT_EQ(vt_mem_try(&mems[100], dev, page, 64, 0), -ENOSPC);
	vt_mem_drop(mems[99]);
	EXPECT_EQ(vt_mem_try(&mems[99], dev, page, 64, 0), 0);
	EXPECT_EQ(vt_mem_try(&mems[100], dev, page, 64, 0), -ENOSPC);
	vt_mem_drop(mems[99]);
	/* the hundredth for a pool: any number of buffers, no further region */
	pool = pool_new(dev, 0);
	EXPECT_EQ(rgate_device_mr_count(dev), 100);
	EXPECT_EQ(vt_mem_try(&mems[100], dev, page, 64, 0), -ENOSPC);
	n = VT_COUNT(bufs);
	for (i = 0; i < n; i++)
		REQUIRE_EQ(rgate_pool_alloc(pool, 64 + vt_rand() % 1000, &bufs[i]), 0);
	serves(dev, pool);
	EXPECT_EQ(rgate_device_mr_count(dev), 100);
	EXPECT_EQ(rgate_pool_free_batch(pool, bufs, n), 0);
	rgate_pool_destroy(pool);
	empty(99);
	EXPECT_EQ(rgate_device_mr_count(dev), 0);
	vt_dev_close(dev);
}

static void by_call(void)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
					      .access = RW);
	struct rgate_device *dev, *same;
	struct rgate_pool *pool = NULL;
	int err;

	setup();
	unsetenv("RGATE_MAX_MR");
	dev = vt_dev_rdma(0);
	EXPECT_EQ(rgate_device_mr_limit(dev), rgate_device_info(dev)->max_mr);
	rgate_device_set_mr_limit(dev, 3);
	EXPECT_EQ(rgate_device_mr_limit(dev), 3);
	/* of the device in this process, by whichever handle */
	same = vt_dev_rdma(0);
	EXPECT_EQ(rgate_device_mr_limit(same), 3);
	EXPECT_EQ(fill(same, 128, &err), 3);
	EXPECT_EQ(err, -ENOSPC);
	EXPECT_EQ(rgate_pool_create(&pool, dev, &o), -ENOSPC);
	EXPECT(!pool);
	/* less than there are: these stay */
	rgate_device_set_mr_limit(dev, 1);
	EXPECT_EQ(rgate_device_mr_count(dev), 3);
	vt_mem_drop(mems[2]);
	vt_mem_drop(mems[1]);
	EXPECT_EQ(vt_mem_try(&mems[1], dev, page, 64, 0), -ENOSPC);
	rgate_device_set_mr_limit(dev, 0);
	EXPECT_EQ(rgate_device_mr_limit(dev), rgate_device_info(dev)->max_mr);
	EXPECT_EQ(vt_mem_try(&mems[1], dev, page, 64, 0), 0);
	empty(2);
	/* a device in use stays when its last owner closes it, until its memory goes */
	vt_dev_close(same);
	mems[0] = vt_mem(dev, page, 64, 0);
	vt_dev_close(dev);
	EXPECT(vt_log_has("is closed when its"));
	vt_mem_drop(mems[0]);
}

/* The limit meets a pool that wants to grow */
static void growth_fails(void)
{
	const struct rgate_buf *bufs[64], *b;
	struct rgate_pool_stats st;
	struct rgate_device *dev;
	struct rgate_pool *pool;
	unsigned int n = 0;
	int err = 0;

	setup();
	dev = vt_dev_rdma(0);
	rgate_device_set_mr_limit(dev, 3);
	pool = pool_new(dev, 16 * MIB);
	while (n < VT_COUNT(bufs)) {
		err = rgate_pool_alloc(pool, MIB / 2, &bufs[n]);
		if (err)
			break;
		n++;
	}
	/* nearly all of three regions, no byte of a fourth */
	EXPECT_EQ(err, -ENOBUFS);
	EXPECT_GE(n, 9);
	EXPECT_LE(n, 12);
	EXPECT(vt_log_has("limit"));
	st = stats(pool);
	EXPECT_EQ(st.regions, 3);
	EXPECT_EQ(st.grown, 2);
	EXPECT_GE(st.grow_failures, 1);
	EXPECT_GE(st.refused, 1);
	EXPECT_EQ(st.used_buffers, n);
	EXPECT_EQ(rgate_device_mr_count(dev), 3);
	/* it goes on with what there is */
	EXPECT_EQ(rgate_pool_free(pool, bufs[--n]), 0);
	serves(dev, pool);
	EXPECT_EQ(rgate_pool_alloc(pool, MIB / 2, &bufs[n]), 0);
	n++;
	/* and grows once it may */
	rgate_device_set_mr_limit(dev, 4);
	EXPECT_EQ(rgate_pool_alloc(pool, MIB, &b), 0);
	EXPECT_EQ(stats(pool).regions, 4);
	EXPECT_EQ(rgate_pool_free(pool, b), 0);
	EXPECT_EQ(rgate_pool_free_batch(pool, bufs, n), 0);
	rgate_pool_destroy(pool);
	EXPECT_EQ(rgate_device_mr_count(dev), 0);
	vt_dev_close(dev);
}

static void become_user(size_t memlock)
{
	struct rlimit l = { memlock, memlock };

	REQUIRE(!setrlimit(RLIMIT_MEMLOCK, &l));
	REQUIRE(!setgid(UID) && !setuid(UID));
}

static int small_memlock(void *arg)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = 2 * MIB,
		.access = RW, .flags = RGATE_POOL_NO_HUGE);
	struct rgate_device *dev;
	struct rgate_pool *pool = NULL;
	struct rgate_mem *mem;
	size_t len = MIB;
	void *p = aligned_alloc(4096, len);

	(void)arg;
	REQUIRE(p);
	become_user(256 * 1024);
	dev = vt_dev_rdma(0);
	EXPECT_EQ(vt_mem_try(&mem, dev, p, len, RW), -ENOBUFS);
	EXPECT(!mem);
	EXPECT(vt_log_has("RLIMIT_MEMLOCK"));
	/* the line that mends it */
	EXPECT(vt_log_has("ulimit -l") || vt_log_has("limits.conf") ||
	       vt_log_has("LimitMEMLOCK"));
	EXPECT_EQ(rgate_pool_create(&pool, dev, &o), -ENOBUFS);
	EXPECT(!pool);
	EXPECT_EQ(rgate_device_mr_count(dev), 0);
	/* what fits works, and is given back */
	EXPECT_EQ(vt_mem_try(&mem, dev, p, 65536, RW), 0);
	rgate_mem_deregister(mem);
	mem = vt_mem(dev, p, 65536, RW);
	vt_mem_drop(mem);
	vt_dev_close(dev);
	return 0;
}

static int unlimited_memlock(void *arg)
{
	struct rgate_device *dev;
	struct rgate_pool *pool;

	(void)arg;
	become_user(16 * MIB);
	dev = vt_dev_rdma(0);
	pool = pool_new(dev, 0);
	serves(dev, pool);
	rgate_pool_destroy(pool);
	vt_dev_close(dev);
	return 0;
}

static void memlock(void)
{
	setup();
	EXPECT_EQ(vt_wait(vt_fork(small_memlock, NULL), 20000), 0);
	EXPECT_EQ(vt_wait(vt_fork(unlimited_memlock, NULL), 20000), 0);
}

static int try_open(const char *name, const char *addr)
{
	struct rgate_device_opts o = RGATE_OPTS(rgate_device_opts, .name = name,
						.addr = addr);
	struct rgate_device *dev = NULL;
	int err;

	vt_log_catch();
	err = rgate_device_open(&dev, name || addr ? &o : NULL);
	if (!err)
		vt_dev_close(dev);
	else
		EXPECT(!dev);
	return err;
}

static int count(void *ctx, const struct rgate_device_info *info)
{
	(void)info;
	(*(unsigned int *)ctx)++;
	return 0;
}

static int no_permission(void *arg)
{
	unsigned int n = 0;

	(void)arg;
	become_user(MIB);
	EXPECT_EQ(try_open(vt_rxe_name(0), NULL), -EACCES);
	EXPECT(vt_log_has("/dev/infiniband"));
	EXPECT_EQ(try_open(NULL, NULL), -EACCES);
	EXPECT_EQ(rgate_device_each(count, &n), -EACCES);
	return 0;
}

static void permissions(void)
{
	const char *node;

	setup();
	node = vt_rxe_uverbs(0);
	REQUIRE(!chmod(node, 0600));
	EXPECT_EQ(vt_wait(vt_fork(no_permission, NULL), 20000), 0);
	/* root may */
	EXPECT_EQ(try_open(vt_rxe_name(0), NULL), 0);
	REQUIRE(!chmod(node, 0666));
}

static void not_there(void)
{
	unsigned int n = 0;

	setup();
	EXPECT_EQ(try_open("nosuch0", NULL), -ENODEV);
	EXPECT(vt_log_has("nosuch0"));
	EXPECT_EQ(try_open(NULL, "10.99.9.9"), -ENODEV);
	EXPECT_EQ(try_open(NULL, vt_rxe_addr(0)), 0);
	EXPECT_EQ(try_open(vt_rxe_name(0), vt_rxe_addr(0)), 0);
	EXPECT_EQ(try_open(vt_rxe_name(0), "10.99.9.9"), -ENODEV);
	EXPECT(try_open(NULL, "no address") < 0);
	setenv("RGATE_RDMA_DEVICE", "nosuch1", 1);
	EXPECT_EQ(try_open(NULL, NULL), -ENODEV);
	setenv("RGATE_RDMA_DEVICE", vt_rxe_name(0), 1);
	EXPECT_EQ(try_open(NULL, NULL), 0);
	unsetenv("RGATE_RDMA_DEVICE");
	EXPECT_EQ(rgate_device_each(count, &n), 0);
	EXPECT_EQ(n, 1);
	vt_rxe_down();
	/* the kernel can, but there is none */
	EXPECT_EQ(try_open(NULL, NULL), -ENODEV);
	EXPECT_EQ(try_open(vt_rxe_name(0), NULL), -ENODEV);
	n = 0;
	EXPECT_EQ(rgate_device_each(count, &n), 0);
	EXPECT_EQ(n, 0);
}

/* What a device says of itself */
static void told(void)
{
	const struct rgate_device_info *info;
	struct rgate_device *dev;
	char json[4096];

	setup();
	dev = vt_dev_rdma(0);
	info = rgate_device_info(dev);
	EXPECT(!strcmp(info->name, vt_rxe_name(0)));
	EXPECT(!strcmp(info->netdev, vt_rxe_netdev(0)));
	EXPECT(!strcmp(info->addr, vt_rxe_addr(0)));
	EXPECT(info->active && info->ethernet);
	EXPECT_EQ(info->gid_type, RGATE_GID_ROCE_V2);
	EXPECT_EQ(info->gid[15], 1);
	EXPECT_EQ(info->atomic, RGATE_ATOMIC_HCA);
	EXPECT_EQ(info->port, 1);
	EXPECT_EQ(info->mtu, 4096);
	EXPECT_GE(info->max_mr, 1000);
	EXPECT(info->max_mr_size >= 1UL << 40);
	EXPECT_GE(info->max_inline, 64);
	EXPECT_LE(rgate_device_json(info, json, sizeof(json)), sizeof(json) - 1);
	EXPECT(strstr(json, vt_rxe_name(0)) && strstr(json, vt_rxe_addr(0)));
	EXPECT_EQ(rgate_device_json(info, NULL, 0), strlen(json));
	EXPECT_EQ(rgate_device_check(dev), 0);
	vt_dev_close(dev);
}

static void port_down(void)
{
	unsigned int n = 0;

	setup();
	vt_must("ip link set %s down", vt_rxe_netdev(0));
	EXPECT_EQ(try_open(vt_rxe_name(0), NULL), -ENETDOWN);
	EXPECT(vt_log_has(vt_rxe_name(0)));
	EXPECT_EQ(try_open(NULL, NULL), -ENETDOWN);
	/* it is listed nonetheless */
	EXPECT_EQ(rgate_device_each(count, &n), 0);
	EXPECT_EQ(n, 1);
	vt_must("ip link set %s up", vt_rxe_netdev(0));
	EXPECT(VT_UNTIL(!try_open(vt_rxe_name(0), NULL), 5000));
	/* without an address it cannot be reached */
	vt_must("ip addr flush dev %s", vt_rxe_netdev(0));
	EXPECT(VT_UNTIL(try_open(NULL, vt_rxe_addr(0)) == -ENODEV, 5000));
	vt_rxe_down();
}

static const struct vt_case cases[] = {
	{ .name = "RGATE_MAX_MR=100", .fn = a_hundred, .flags = VT_HOSTNS },
	{ .name = "a limit by rgate_device_set_mr_limit", .fn = by_call,
	  .flags = VT_HOSTNS },
	{ .name = "a pool cannot grow, and goes on", .fn = growth_fails,
	  .flags = VT_HOSTNS },
	{ .name = "RLIMIT_MEMLOCK of a user", .fn = memlock, .flags = VT_HOSTNS },
	{ .name = "what a device says of itself", .fn = told, .flags = VT_HOSTNS },
	{ .name = "no permission", .fn = permissions, .flags = VT_HOSTNS },
	{ .name = "no such device, no device", .fn = not_there, .flags = VT_HOSTNS },
	{ .name = "a port that is down", .fn = port_down, .flags = VT_HOSTNS },
};

VT_RXE_MAIN(cases)
