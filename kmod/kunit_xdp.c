// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: frames for XDP programs that lie in pieces, as no driver of the lab hands them
 * over: cut anywhere, a header in two of them, fewer bytes than promised.
 */
#include <kunit/test.h>
#include <linux/bpf.h>
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/percpu.h>
#include <linux/prandom.h>
#include <linux/skbuff.h>
#include <net/xdp.h>
#include "attach.h"
#include "ring.h"
#include "xdp.h"

#define SLOTS	64U
#define SIZE	256U
#define COOKIE	0x1234
#define HEAD	256U		/* in front of a frame, in its page */
#define PIECES	8U		/* pages of fragments */

/* An attachment of one ring, and a buffer of a driver's */
struct rgate_xdp_ctx {
	struct rgate_ring ring;
	struct rgate_att att;
	struct rgate_att_cfg cfg;
	struct net_device *dev;
	struct xdp_rxq_info rxq;
	struct xdp_buff xdp;
	struct page *head;
	struct page *piece[PIECES];
	u8 frame[2048];
	u8 back[2048];
};

static const u8 rgate_xdp_mac[ETH_ALEN] = { 2, 0, 0, 0, 0, 7 };

static void rgate_xdp_test_event(struct work_struct *work)
{
}

static void rgate_xdp_test_ring(struct kunit *test, struct rgate_ring *ring)
{
	struct rgate_geo geo;

	KUNIT_ASSERT_EQ(test, rgate_geo_init(&geo, SLOTS, SIZE), 0);
	ring->mem = rgate_mem_alloc(&geo, NUMA_NO_NODE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ring->mem));
	spin_lock_init(&ring->lock);
	/* Nobody reads along. */
	rgate_writer_init(&ring->w, ring->mem, RGATE_RING_CHAIN, RGATE_POLICY_OVERWRITE);
	INIT_DELAYED_WORK(&ring->event_work, rgate_xdp_test_event);
}

static int rgate_xdp_test_init(struct kunit *test)
{
	struct rgate_xdp_ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	struct rgate_att *att;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	test->priv = ctx;
	ctx->dev = kunit_kzalloc(test, sizeof(*ctx->dev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx->dev);
	ctx->dev->dev_addr = rgate_xdp_mac;
	ctx->dev->type = ARPHRD_ETHER;
	ctx->dev->ifindex = 7;
	ctx->rxq.dev = ctx->dev;
	ctx->rxq.queue_index = 3;
	ctx->head = alloc_page(GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx->head);
	for (i = 0; i < PIECES; i++) {
		ctx->piece[i] = alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, ctx->piece[i]);
	}
	rgate_xdp_test_ring(test, &ctx->ring);
	att = &ctx->att;
	att->stats = alloc_percpu(struct rgate_att_pcpu);
	KUNIT_ASSERT_NOT_NULL(test, att->stats);
	ctx->cfg.action = RGATE_ACTION_STEAL;
	RCU_INIT_POINTER(att->cfg, &ctx->cfg);
	RCU_INIT_POINTER(att->rings[0], &ctx->ring);
	att->nrings = 1;
	att->kind = RGATE_KIND_XDP;
	att->dev = ctx->dev;
	/* No real one has it: numbers begin at 1, and this comes first. */
	att->ident = (struct rgate_ident){ .id = INT_MAX, .cookie = COOKIE };
	mutex_lock(&rgate_lock);
	rgate_xdp_enter(att);
	mutex_unlock(&rgate_lock);
	return 0;
}

static void rgate_xdp_test_exit(struct kunit *test)
{
	struct rgate_xdp_ctx *ctx = test->priv;
	int i;

	if (!ctx)
		return;
	mutex_lock(&rgate_lock);
	rgate_xdp_leave(&ctx->att);
	mutex_unlock(&rgate_lock);
	synchronize_rcu();
	if (!IS_ERR_OR_NULL(ctx->ring.mem)) {
		cancel_delayed_work_sync(&ctx->ring.event_work);
		rgate_mem_put(ctx->ring.mem);
	}
	free_percpu(ctx->att.stats);
	for (i = 0; i < PIECES; i++)
		if (ctx->piece[i])
			__free_page(ctx->piece[i]);
	if (ctx->head)
		__free_page(ctx->head);
}

/*
 * The frame of @len bytes as a driver's buffer: @linear of them in the first page, the rest
 * in fragments of @each bytes at odd places of pages. Fragments are an skb's, whose making
 * is the same on all kernels.
 */
static void rgate_xdp_test_cut(struct kunit *test, u32 len, u32 linear, u32 each)
{
	struct rgate_xdp_ctx *ctx = test->priv;
	struct xdp_buff *xdp = &ctx->xdp;
	struct skb_shared_info *info;
	u32 off = linear, n, i;
	struct sk_buff *skb;

	memset(page_address(ctx->head), 0xee, PAGE_SIZE);
	xdp_init_buff(xdp, PAGE_SIZE, &ctx->rxq);
	xdp_prepare_buff(xdp, page_address(ctx->head), HEAD, linear, false);
	memcpy(xdp->data, ctx->frame, linear);
	if (linear == len)
		return;
	skb = alloc_skb(0, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	for (i = 0; off < len; i++, off += n) {
		struct page *page = ctx->piece[i % PIECES];
		u32 at = i / PIECES * (each + 8) + 1;

		KUNIT_ASSERT_LT(test, i, (u32)MAX_SKB_FRAGS);
		n = min(each, len - off);
		KUNIT_ASSERT_LE(test, at + n, (u32)PAGE_SIZE);
		memcpy(page_address(page) + at, ctx->frame + off, n);
		skb_fill_page_desc(skb, i, page, at, n);
	}
	info = xdp_get_shared_info_from_buff(xdp);
	memcpy(info->frags, skb_shinfo(skb)->frags, sizeof(info->frags));
	info->nr_frags = i;
	info->xdp_frags_size = len - linear;
	xdp_buff_set_frags_flag(xdp);
	skb_shinfo(skb)->nr_frags = 0;
	kfree_skb(skb);
}

static int rgate_xdp_test_push(struct rgate_xdp_ctx *ctx, u32 snap)
{
	return bpf_ringgate_push((struct xdp_md *)&ctx->xdp, INT_MAX, COOKIE, snap);
}

/* Joins the frame that was put last at @pos; its first slot */
static const struct rgate_slot *rgate_xdp_test_back(struct rgate_xdp_ctx *ctx, u64 pos, u32 *len)
{
	const struct rgate_writer *w = &ctx->ring.w;
	const struct rgate_slot *first, *s;
	u32 i;

	/* Filler stands where a chain would not have fitted into a batch. */
	for (;; pos++) {
		first = (void *)(w->slots + ((size_t)(pos & w->mask) << w->size_shift));
		if (!(first->flags & RGATE_SLOT_PAD))
			break;
	}
	*len = 0;
	for (i = 0; i < first->chain_cnt; i++) {
		s = (void *)(w->slots + ((size_t)((pos + i) & w->mask) << w->size_shift));
		memcpy(ctx->back + *len, s + 1, s->len);
		*len += s->len;
	}
	return first;
}

/* An IPv6 frame with extension headers: what follows lies deep, byte by byte known */
static u32 rgate_xdp_test_frame(struct rgate_xdp_ctx *ctx, u32 len)
{
	u8 *p = ctx->frame;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, len);
	prandom_bytes_state(&rnd, p, len);
	memcpy(p, rgate_xdp_mac, ETH_ALEN);
	p[12] = 0x86;
	p[13] = 0xdd;
	p[14] = 0x60;
	p[20] = 0;		/* hop-by-hop, destination, UDP */
	p[54] = 60;
	p[55] = 0;
	p[62] = 17;
	p[63] = 1;
	return len;
}

/* However it is cut: all bytes, all that is known of it */
static void rgate_xdp_pieces(struct kunit *test)
{
	static const u32 each[] = { 97, 128, 512, 1021 };
	struct rgate_xdp_ctx *ctx = test->priv;
	const struct rgate_slot *s;
	u32 len, linear, got, i;
	u64 pos;

	len = rgate_xdp_test_frame(ctx, 1111);
	for (i = 0; i < ARRAY_SIZE(each); i++) {
		for (linear = ETH_HLEN; linear <= len; linear += linear < 120 ? 1 : 61) {
			rgate_xdp_test_cut(test, len, linear, each[i]);
			pos = ctx->ring.w.head;
			KUNIT_ASSERT_EQ(test, rgate_xdp_test_push(ctx, U32_MAX), XDP_DROP);
			s = rgate_xdp_test_back(ctx, pos, &got);
			KUNIT_ASSERT_EQ(test, got, len);
			KUNIT_ASSERT_EQ(test, s->wire_len, len);
			KUNIT_ASSERT_EQ_MSG(test, memcmp(ctx->back, ctx->frame, len), 0,
					    "%u linear, then %u each", linear, each[i]);
			KUNIT_ASSERT_EQ(test, s->l3_off, 14);
			KUNIT_ASSERT_EQ_MSG(test, s->l4_off, 78, "%u linear, then %u each",
					    linear, each[i]);
			KUNIT_ASSERT_EQ(test, s->payload_off, 86);
			KUNIT_ASSERT_EQ(test, s->ip_proto, 17);
			KUNIT_ASSERT_EQ(test, s->queue, 3);
			KUNIT_ASSERT_EQ(test, s->ifindex, 7);
		}
	}
}

/* Less than an Ethernet header in the first piece: not looked at, nor counted */
static void rgate_xdp_short(struct kunit *test)
{
	struct rgate_xdp_ctx *ctx = test->priv;
	u64 sum[RGATE_ATT_NSTATS];

	rgate_xdp_test_frame(ctx, 200);
	rgate_xdp_test_cut(test, 200, ETH_HLEN - 1, 1000);
	KUNIT_EXPECT_EQ(test, rgate_xdp_test_push(ctx, U32_MAX), -EINVAL);
	rgate_xdp_test_cut(test, ETH_HLEN - 1, ETH_HLEN - 1, 1000);
	KUNIT_EXPECT_EQ(test, rgate_xdp_test_push(ctx, U32_MAX), -EINVAL);
	rgate_att_sum(&ctx->att, sum);
	KUNIT_EXPECT_EQ(test, sum[RGATE_A_ATT_STATS_SEEN - RGATE_ATT_FIRST], 0);
	KUNIT_EXPECT_EQ(test, ctx->ring.w.head, 0);
}

/* More is promised than the pieces have: told as lost, and the next one comes. */
static void rgate_xdp_missing(struct kunit *test)
{
	struct rgate_xdp_ctx *ctx = test->priv;
	struct skb_shared_info *info;

	rgate_xdp_test_frame(ctx, 1000);
	rgate_xdp_test_cut(test, 1000, 100, 300);
	info = xdp_get_shared_info_from_buff(&ctx->xdp);
	info->xdp_frags_size += 1;
	KUNIT_EXPECT_EQ(test, rgate_xdp_test_push(ctx, U32_MAX), XDP_DROP);
	KUNIT_EXPECT_EQ(test, ctx->ring.w.stats->dropped_fault, 1);
	KUNIT_EXPECT_EQ(test, ctx->ring.w.stats->delivered, 0);
	/* of what is wanted nothing is missing */
	KUNIT_EXPECT_EQ(test, rgate_xdp_test_push(ctx, 1000), XDP_DROP);
	KUNIT_EXPECT_EQ(test, ctx->ring.w.stats->delivered, 1);
	KUNIT_EXPECT_EQ(test, ctx->ring.w.stats->truncated, 1);
}

static const struct {
	const char *name;
	u8 head[16];
	u16 protocol;
	u8 pkt_type;
} rgate_xdp_kinds[] = {
	{ "ours", { 2, 0, 0, 0, 0, 7, [12] = 0x08 }, ETH_P_IP, PACKET_HOST },
	{ "another one's", { 2, 0, 0, 0, 0, 8, [12] = 0x08 }, ETH_P_IP, PACKET_OTHERHOST },
	{ "of some", { 3, 0, 0, 0, 0, 7, [12] = 0x88, 0xb5 }, 0x88b5, PACKET_MULTICAST },
	{ "of all", { 255, 255, 255, 255, 255, 255, [12] = 0x08, 0x06 }, ETH_P_ARP,
	  PACKET_BROADCAST },
	{ "the shortest type", { 2, [12] = 0x06, 0x00 }, 0x0600, PACKET_OTHERHOST },
	{ "the longest length", { 2, [12] = 0x05, 0xff }, ETH_P_802_2, PACKET_OTHERHOST },
	{ "without LLC", { 2, [12] = 0, 46, 0xff, 0xff }, ETH_P_802_3, PACKET_OTHERHOST },
};

/* What it is and for whom: also where the first bytes behind the header lie elsewhere */
static void rgate_xdp_kinds_known(struct kunit *test)
{
	struct rgate_xdp_ctx *ctx = test->priv;
	const struct rgate_slot *s;
	u32 i, linear, got;
	u64 pos;

	for (i = 0; i < ARRAY_SIZE(rgate_xdp_kinds); i++) {
		memset(ctx->frame, 0, 60);
		memcpy(ctx->frame, rgate_xdp_kinds[i].head, 16);
		for (linear = ETH_HLEN; linear <= ETH_HLEN + 3; linear++) {
			rgate_xdp_test_cut(test, 60, linear, 97);
			pos = ctx->ring.w.head;
			KUNIT_ASSERT_EQ(test, rgate_xdp_test_push(ctx, U32_MAX), XDP_DROP);
			s = rgate_xdp_test_back(ctx, pos, &got);
			KUNIT_EXPECT_EQ_MSG(test, s->protocol, rgate_xdp_kinds[i].protocol,
					    "%s", rgate_xdp_kinds[i].name);
			KUNIT_EXPECT_EQ_MSG(test, s->pkt_type, rgate_xdp_kinds[i].pkt_type,
					    "%s", rgate_xdp_kinds[i].name);
		}
	}
}

static struct kunit_case rgate_xdp_cases[] = {
	KUNIT_CASE(rgate_xdp_pieces),
	KUNIT_CASE(rgate_xdp_short),
	KUNIT_CASE(rgate_xdp_missing),
	KUNIT_CASE(rgate_xdp_kinds_known),
	{}
};

static struct kunit_suite rgate_xdp_suite = {
	.name = "ringgate-xdp",
	.init = rgate_xdp_test_init,
	.exit = rgate_xdp_test_exit,
	.test_cases = rgate_xdp_cases,
};

kunit_test_suite(rgate_xdp_suite);
