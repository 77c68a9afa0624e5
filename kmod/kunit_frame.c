// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: a frame on its way into a ring, as no device would hand it over. */
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/skbuff.h>
#include <linux/wait.h>
#include "frame.h"
#include "ring.h"
#include "wake.h"

#define SLOTS	64U
#define SIZE	256U
#define ROOM	(SIZE - RGATE_SLOT_HDR)

/* A ring with one handle, on whose file @wait sleeps */
struct rgate_frame_ctx {
	struct rgate_ring ring;
	struct rgate_handle h;
	struct wait_queue_entry wait;
	unsigned int woken;
	struct net_device *dev;
};

static const struct header_ops rgate_ether = { .create = eth_header };

static int rgate_frame_test_woken(struct wait_queue_entry *wait,
				  unsigned int mode, int sync, void *key)
{
	struct rgate_frame_ctx *ctx = wait->private;

	ctx->woken++;
	return 0;
}

static void rgate_frame_test_event(struct work_struct *work)
{
}

static int rgate_frame_test_init(struct kunit *test)
{
	struct rgate_frame_ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	struct rgate_ring *ring;
	struct rgate_geo geo;

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->dev = kunit_kzalloc(test, sizeof(*ctx->dev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx->dev);
	ctx->dev->header_ops = &rgate_ether;
	KUNIT_ASSERT_EQ(test, rgate_geo_init(&geo, SLOTS, SIZE), 0);
	ring = &ctx->ring;
	ring->mem = rgate_mem_alloc(&geo, NUMA_NO_NODE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ring->mem));
	spin_lock_init(&ring->lock);
	rgate_writer_init(&ring->w, ring->mem, RGATE_RING_CHAIN,
			  RGATE_POLICY_DROP);
	INIT_DELAYED_WORK(&ring->event_work, rgate_frame_test_event);
	init_waitqueue_head(&ctx->h.wq);
	rgate_wake_begin(&ctx->h, ring);
	ring->handle[0] = &ctx->h;
	ring->handle_mask = BIT(0);
	ring->polled = BIT(0);
	init_waitqueue_func_entry(&ctx->wait, rgate_frame_test_woken);
	ctx->wait.private = ctx;
	add_wait_queue(&ctx->h.wq, &ctx->wait);
	test->priv = ctx;
	return 0;
}

static void rgate_frame_test_exit(struct kunit *test)
{
	struct rgate_frame_ctx *ctx = test->priv;

	if (!ctx)
		return;
	cancel_delayed_work_sync(&ctx->ring.event_work);
	rgate_wake_end(&ctx->h);
	rgate_mem_put(ctx->ring.mem);
}

/* A frame of 74 bytes; @missing more are promised and not there. */
static enum rgate_outcome rgate_frame_test_put(struct kunit *test,
					       unsigned int missing)
{
	struct rgate_frame_ctx *ctx = test->priv;
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL);
	enum rgate_outcome out;
	struct rgate_frame f;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	memset(skb_put(skb, ETH_HLEN + 60), 0x45, ETH_HLEN + 60);
	skb_reset_mac_header(skb);
	skb_pull(skb, ETH_HLEN);
	skb->protocol = htons(ETH_P_IP);
	skb->dev = ctx->dev;
	skb->len += missing;
	skb->data_len += missing;
	f = rgate_frame_of(skb);
	local_bh_disable();
	out = rgate_frame_put(&f, &ctx->ring, false);
	local_bh_enable();
	skb->len -= missing;
	skb->data_len -= missing;
	kfree_skb(skb);
	return out;
}

/* Filler is published for a chain that then cannot be read: who waits hears. */
static void rgate_frame_fault_wakes(struct kunit *test)
{
	struct rgate_frame_ctx *ctx = test->priv;
	struct rgate_writer *w = &ctx->ring.w;
	u32 i;

	for (i = 0; i < RGATE_BATCH - 2; i++)
		KUNIT_ASSERT_EQ(test, rgate_frame_test_put(test, 0),
				RGATE_DELIVERED);
	ctx->ring.mem->cons->waiter[0].want = w->head + 1;
	KUNIT_EXPECT_EQ(test, rgate_frame_test_put(test, 3 * ROOM), RGATE_FAULT);
	KUNIT_EXPECT_EQ(test, w->head, RGATE_BATCH);
	KUNIT_EXPECT_EQ(test, w->stats->padded, 2);
	KUNIT_EXPECT_EQ(test, w->stats->dropped_fault, 1);
	KUNIT_EXPECT_EQ(test, w->gap, 1);
	KUNIT_EXPECT_EQ(test, ctx->woken, 1);
	/* one that needed no filler leaves the sleeper alone */
	ctx->ring.mem->cons->waiter[0].want = w->head + 1;
	KUNIT_EXPECT_EQ(test, rgate_frame_test_put(test, 3 * ROOM), RGATE_FAULT);
	KUNIT_EXPECT_EQ(test, w->head, RGATE_BATCH);
	KUNIT_EXPECT_EQ(test, ctx->woken, 1);
	/* and the next frame comes */
	KUNIT_EXPECT_EQ(test, rgate_frame_test_put(test, 0), RGATE_DELIVERED);
	KUNIT_EXPECT_EQ(test, w->head, RGATE_BATCH + 1);
	KUNIT_EXPECT_EQ(test, ctx->woken, 2);
}

/* Nobody who sleeps has not polled: until then no wait word is looked at. */
static void rgate_frame_polled_wakes(struct kunit *test)
{
	struct rgate_frame_ctx *ctx = test->priv;
	u64 *want = &ctx->ring.mem->cons->waiter[0].want;

	ctx->ring.polled = 0;
	*want = ctx->ring.w.head + 1;
	KUNIT_EXPECT_EQ(test, rgate_frame_test_put(test, 0), RGATE_DELIVERED);
	KUNIT_EXPECT_EQ(test, ctx->woken, 0);
	/* The poll that sleeps sees that frame. */
	KUNIT_EXPECT_TRUE(test, rgate_ring_readable(&ctx->ring, &ctx->h));
	*want = ctx->ring.w.head + 1;
	KUNIT_EXPECT_FALSE(test, rgate_ring_readable(&ctx->ring, &ctx->h));
	KUNIT_EXPECT_EQ(test, rgate_frame_test_put(test, 0), RGATE_DELIVERED);
	KUNIT_EXPECT_EQ(test, ctx->woken, 1);
}

/* Who had slept before it was known that somebody polls is not left asleep. */
static void rgate_frame_polled_late(struct kunit *test)
{
	struct rgate_frame_ctx *ctx = test->priv;

	ctx->ring.polled = 0;
	ctx->ring.mem->cons->waiter[0].want = ctx->ring.w.head + 1;
	KUNIT_EXPECT_EQ(test, rgate_frame_test_put(test, 0), RGATE_DELIVERED);
	KUNIT_EXPECT_EQ(test, ctx->woken, 0);
	rgate_ring_polled(&ctx->ring, &ctx->h);
	KUNIT_EXPECT_EQ(test, ctx->woken, 1);
}

/* A ring is full until there is room, also if what comes then cannot be copied. */
static void rgate_frame_fault_after_full(struct kunit *test)
{
	struct rgate_frame_ctx *ctx = test->priv;
	struct rgate_writer *w = &ctx->ring.w;
	u32 i;

	for (i = 0; i < SLOTS; i++)
		KUNIT_ASSERT_EQ(test, rgate_frame_test_put(test, 0),
				RGATE_DELIVERED);
	KUNIT_EXPECT_EQ(test, rgate_frame_test_put(test, 0), RGATE_DROPPED);
	KUNIT_EXPECT_TRUE(test, w->full);
	/* The consumer returns its first batch. */
	w->credits[0] = 1;
	KUNIT_EXPECT_EQ(test, rgate_frame_test_put(test, 3 * ROOM), RGATE_FAULT);
	KUNIT_EXPECT_FALSE(test, w->full);
}

static struct kunit_case rgate_frame_cases[] = {
	KUNIT_CASE(rgate_frame_polled_wakes),
	KUNIT_CASE(rgate_frame_polled_late),
	KUNIT_CASE(rgate_frame_fault_after_full),
	KUNIT_CASE(rgate_frame_fault_wakes),
	{}
};

static struct kunit_suite rgate_frame_suite = {
	.name = "ringgate-frame",
	.init = rgate_frame_test_init,
	.exit = rgate_frame_test_exit,
	.test_cases = rgate_frame_cases,
};

kunit_test_suite(rgate_frame_suite);
