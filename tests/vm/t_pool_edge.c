// SPDX-License-Identifier: MIT OR GPL-2.0
/* RDMA at the edges of regions and of buffers: what the device refuses, what a pool in
 * debug mode finds. */
#include "lib/vt.h"
#include "lib/vt_rc.h"

#define REGION	(2UL << 20)
#define ACCESS	RGATE_ACCESS_REMOTE

/* One buffer that is the region: its first and last bytes, and one beyond */
static void whole_region(void)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = REGION,
		.access = ACCESS, .flags = RGATE_POOL_NO_HUGE);
	struct rgate_pool_region r = { .sz = sizeof(r) };
	static const size_t offs[] = { 0, 1, REGION / 2 - 32, REGION - 65, REGION - 64 };
	struct rgate_pool *pool, *spool;
	struct rgate_device *dev;
	const struct rgate_buf *b, *src;
	struct rgate_rc *rc;
	unsigned int i;

	vt_rxe_up(1);
	dev = vt_dev_rdma(0);
	rc = vt_rc_loop(dev, ACCESS);
	REQUIRE_EQ(rgate_pool_create(&pool, dev, &o), 0);
	REQUIRE_EQ(rgate_pool_create(&spool, dev, &o), 0);
	REQUIRE_EQ(rgate_pool_region(pool, 0, &r), 0);
	REQUIRE_EQ(rgate_pool_alloc(pool, REGION, &b), 0);
	REQUIRE_EQ(rgate_pool_alloc(spool, 64, &src), 0);
	EXPECT(b->addr == r.addr && b->length == REGION);
	for (i = 0; i < VT_COUNT(offs); i++) {
		struct vt_mem_at from = { (uintptr_t)src->addr, src->lkey };
		struct vt_mem_at to = { (uintptr_t)b->addr + offs[i], b->rkey };

		vt_pkt_fill(src->addr, 64, i);
		EXPECT_EQ(vt_rc_do(rc, RGATE_RC_WRITE, from, to, 64), 0);
		EXPECT(!memcmp((char *)b->addr + offs[i], src->addr, 64));
	}
	for (i = 0; i < 2; i++) {
		struct vt_mem_at from = { (uintptr_t)src->addr, src->lkey };
		struct vt_mem_at to = { (uintptr_t)b->addr + (i ? REGION - 63 : -1UL), b->rkey };
		struct rgate_rc *once[2];

		/* one that is its own peer may be flushed before its refusal is back */
		vt_rc_pair(once, dev, dev, ACCESS);
		EXPECT_EQ(vt_rc_do(once[0], RGATE_RC_WRITE, from, to, 64), -EREMOTEIO);
		rgate_rc_destroy(once[0]);
		rgate_rc_destroy(once[1]);
	}
	EXPECT_EQ(rgate_pool_free(pool, b), 0);
	EXPECT_EQ(rgate_pool_free(spool, src), 0);
	rgate_pool_destroy(pool);
	rgate_pool_destroy(spool);
	rgate_rc_destroy(rc);
	vt_dev_close(dev);
}

/* Inside of the region but beyond the buffer no device helps: the red zones tell */
static void overrun_is_found(void)
{
	struct rgate_pool_opts o = RGATE_OPTS(rgate_pool_opts, .region_size = REGION,
		.access = ACCESS, .flags = RGATE_POOL_NO_HUGE | RGATE_POOL_DEBUG);
	struct rgate_pool_stats st = { .sz = sizeof(st) };
	const struct rgate_buf *a, *b, *c, *src;
	struct rgate_device *dev;
	struct rgate_pool *pool;
	struct vt_mem_at from;
	struct rgate_rc *rc;

	vt_rxe_up(1);
	vt_log_catch();
	dev = vt_dev_rdma(0);
	rc = vt_rc_loop(dev, ACCESS);
	REQUIRE_EQ(rgate_pool_create(&pool, dev, &o), 0);
	REQUIRE_EQ(rgate_pool_alloc(pool, 1000, &a), 0);
	REQUIRE_EQ(rgate_pool_alloc(pool, 1000, &b), 0);
	REQUIRE_EQ(rgate_pool_alloc(pool, 1000, &c), 0);
	REQUIRE_EQ(rgate_pool_alloc(pool, 4096, &src), 0);
	memset(src->addr, 0x11, 4096);
	from = (struct vt_mem_at){ (uintptr_t)src->addr, src->lkey };
	EXPECT_EQ(vt_rc_do(rc, RGATE_RC_WRITE, from,
			   (struct vt_mem_at){ (uintptr_t)a->addr, a->rkey }, 1000), 0);
	EXPECT_EQ(rgate_pool_check(pool), 0);
	/* a byte behind, a byte before */
	EXPECT_EQ(vt_rc_do(rc, RGATE_RC_WRITE, from,
			   (struct vt_mem_at){ (uintptr_t)a->addr + 1, a->rkey }, 1000), 0);
	EXPECT_EQ(rgate_pool_check(pool), 1);
	EXPECT_EQ(vt_rc_do(rc, RGATE_RC_WRITE, from,
			   (struct vt_mem_at){ (uintptr_t)b->addr - 1, b->rkey }, 2), 0);
	EXPECT_EQ(rgate_pool_check(pool), 2);
	EXPECT_EQ(rgate_pool_free(pool, a), -EOVERFLOW);
	EXPECT_EQ(rgate_pool_free(pool, b), -EOVERFLOW);
	EXPECT_EQ(rgate_pool_free(pool, c), 0);
	/* a late write into what was released */
	EXPECT_EQ(vt_rc_do(rc, RGATE_RC_WRITE, from,
			   (struct vt_mem_at){ (uintptr_t)c->addr + 500, src->rkey }, 1), 0);
	EXPECT_GE(rgate_pool_check(pool), 1);
	EXPECT_EQ(rgate_pool_stats(pool, &st), 0);
	EXPECT_GE(st.overruns, 2);
	EXPECT_EQ(rgate_pool_free(pool, src), 0);
	rgate_pool_destroy(pool);
	rgate_rc_destroy(rc);
	vt_dev_close(dev);
}

static const struct vt_case cases[] = {
	{ .name = "a buffer that is the region", .fn = whole_region, .flags = VT_HOSTNS },
	{ .name = "what passes a buffer's end is found", .fn = overrun_is_found,
	  .flags = VT_HOSTNS },
};

VT_RXE_MAIN(cases)
