// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: what users put into a slot, and what becomes of it. */
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/virtio_net.h>
#include <net/ip.h>
#include <ringgate/ring.h>
#include "send_frame.h"

#define SIZE	65536U
#define ROOM	(SIZE - RGATE_SLOT_HDR)
#define MTU	1500U

struct rgate_send_ctx {
	struct net_device *dev;
	struct rgate_tx_slot *slot;
	u8 *data;
};

static const struct header_ops rgate_ether = { .create = eth_header };

static int rgate_send_test_init(struct kunit *test)
{
	struct rgate_send_ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->dev = kunit_kzalloc(test, sizeof(*ctx->dev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx->dev);
	ctx->dev->type = ARPHRD_ETHER;
	ctx->dev->header_ops = &rgate_ether;
	ctx->dev->hard_header_len = ETH_HLEN;
	ctx->dev->mtu = MTU;
	ctx->slot = kunit_kzalloc(test, SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx->slot);
	ctx->data = (u8 *)(ctx->slot + 1);
	for (i = 0; i < ROOM; i++)
		ctx->data[i] = i * 7 + (i >> 8);
	ctx->data[12] = 0x08;
	ctx->data[13] = 0x00;
	test->priv = ctx;
	return 0;
}

static struct sk_buff *rgate_send_test(struct kunit *test, u32 len, u32 flags)
{
	struct rgate_send_ctx *ctx = test->priv;

	struct sk_buff *skb;

	ctx->slot->len = len;
	ctx->slot->flags = flags;
	local_bh_disable();
	skb = rgate_send_frame(ctx->slot, ctx->dev, ROOM);
	local_bh_enable();
	return skb;
}

static void rgate_send_test_refused(struct kunit *test, u32 len, u32 flags, int err)
{
	struct sk_buff *skb = rgate_send_test(test, len, flags);

	KUNIT_EXPECT_TRUE(test, IS_ERR(skb));
	if (IS_ERR(skb))
		KUNIT_EXPECT_EQ(test, PTR_ERR(skb), err);
	else
		kfree_skb(skb);
}

/* The frame comes, whole and in one piece; the caller looks at the rest. */
static struct sk_buff *rgate_send_test_taken(struct kunit *test, u32 len, u32 flags)
{
	struct rgate_send_ctx *ctx = test->priv;
	struct sk_buff *skb = rgate_send_test(test, len, flags);

	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(skb));
	KUNIT_EXPECT_EQ(test, skb->len, len);
	KUNIT_EXPECT_PTR_EQ(test, skb->dev, ctx->dev);
	KUNIT_EXPECT_EQ(test, skb_network_offset(skb), ETH_HLEN);
	KUNIT_EXPECT_EQ(test, skb_linearize(skb), 0);
	KUNIT_EXPECT_EQ(test, memcmp(skb->data, ctx->data, len), 0);
	return skb;
}

static void rgate_send_lengths(struct kunit *test)
{
	struct rgate_send_ctx *ctx = test->priv;
	static const u32 good[] = { ETH_HLEN, 15, 60, 64, 1000, MTU + ETH_HLEN };
	static const u32 bad[] = {
		0, 1, ETH_HLEN - 1, MTU + ETH_HLEN + 1, ROOM, ROOM + 1, SIZE, INT_MAX,
		1U << 31, U32_MAX,
	};
	struct sk_buff *skb;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		skb = rgate_send_test_taken(test, good[i], 0);
		KUNIT_EXPECT_EQ(test, ntohs(skb->protocol), ETH_P_IP);
		kfree_skb(skb);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		rgate_send_test_refused(test, bad[i], 0, -EMSGSIZE);
	/* A tag in the frame is not counted, and whatever fits the MTU is sent. */
	ctx->data[12] = 0x81;
	kfree_skb(rgate_send_test_taken(test, MTU + ETH_HLEN + VLAN_HLEN, 0));
	rgate_send_test_refused(test, MTU + ETH_HLEN + VLAN_HLEN + 1, 0, -EMSGSIZE);
	ctx->dev->mtu = 65000;
	kfree_skb(rgate_send_test_taken(test, 65000, 0));
	rgate_send_test_refused(test, ROOM + 1, 0, -EMSGSIZE);
}

static void rgate_send_flags(struct kunit *test)
{
	u32 bit;

	for (bit = 1; bit; bit <<= 1)
		if (!(bit & RGATE_SLOT_TX_FLAGS))
			rgate_send_test_refused(test, 100, bit, -EINVAL);
	/* Filler is filler, whatever its length says. */
	KUNIT_EXPECT_NULL(test, rgate_send_test(test, 0, RGATE_SLOT_PAD));
	KUNIT_EXPECT_NULL(test, rgate_send_test(test, U32_MAX, RGATE_SLOT_PAD));
	rgate_send_test_refused(test, 100, RGATE_SLOT_PAD | BIT(31), -EINVAL);
}

static void rgate_send_tag(struct kunit *test)
{
	struct rgate_send_ctx *ctx = test->priv;
	struct sk_buff *skb;

	ctx->slot->vlan_tci = 0x2064;
	rgate_send_test_refused(test, 100, RGATE_SLOT_VLAN, -EINVAL);
	ctx->slot->vlan_proto = ETH_P_IP;
	rgate_send_test_refused(test, 100, RGATE_SLOT_VLAN, -EINVAL);
	ctx->slot->vlan_proto = ETH_P_8021Q;
	skb = rgate_send_test_taken(test, 100, RGATE_SLOT_VLAN);
	KUNIT_EXPECT_TRUE(test, skb_vlan_tag_present(skb));
	KUNIT_EXPECT_EQ(test, skb_vlan_tag_get(skb), 0x2064);
	KUNIT_EXPECT_EQ(test, ntohs(skb->protocol), ETH_P_IP);
	kfree_skb(skb);
	/* Nothing is read that no flag announces. */
	skb = rgate_send_test_taken(test, 100, 0);
	KUNIT_EXPECT_FALSE(test, skb_vlan_tag_present(skb));
	kfree_skb(skb);
}

/* A TCP segment of @len bytes behind plain headers */
static void rgate_send_test_tcp(struct rgate_send_ctx *ctx, u32 len)
{
	struct iphdr *ip = (struct iphdr *)(ctx->data + ETH_HLEN);
	struct tcphdr *tcp = (struct tcphdr *)(ip + 1);

	memset(ip, 0, sizeof(*ip) + sizeof(*tcp));
	ip->version = 4;
	ip->ihl = 5;
	ip->protocol = IPPROTO_TCP;
	ip->tot_len = htons(len - ETH_HLEN);
	tcp->doff = 5;
	ctx->slot->vnet_flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	ctx->slot->csum_start = ETH_HLEN + sizeof(*ip);
	ctx->slot->csum_offset = offsetof(struct tcphdr, check);
}

static void rgate_send_csum(struct kunit *test)
{
	struct rgate_send_ctx *ctx = test->priv;
	struct rgate_tx_slot *slot = ctx->slot;
	struct sk_buff *skb;

	rgate_send_test_tcp(ctx, 200);
	skb = rgate_send_test_taken(test, 200, RGATE_SLOT_OFFLOAD);
	KUNIT_EXPECT_EQ(test, (u32)skb->ip_summed, CHECKSUM_PARTIAL);
	KUNIT_EXPECT_EQ(test, skb_checksum_start_offset(skb), 34);
	kfree_skb(skb);
	slot->csum_start = 199;
	rgate_send_test_refused(test, 200, RGATE_SLOT_OFFLOAD, -EINVAL);
	slot->csum_start = 34;
	slot->csum_offset = 165;
	rgate_send_test_refused(test, 200, RGATE_SLOT_OFFLOAD, -EINVAL);
	slot->csum_start = 0xffff;
	slot->csum_offset = 0xffff;
	rgate_send_test_refused(test, 200, RGATE_SLOT_OFFLOAD, -EINVAL);
	slot->vnet_flags = 0xff;
	rgate_send_test_refused(test, 200, RGATE_SLOT_OFFLOAD, -EINVAL);
	/* No segments are asked for: the MTU holds. */
	rgate_send_test_tcp(ctx, 3000);
	rgate_send_test_refused(test, 3000, RGATE_SLOT_OFFLOAD, -EMSGSIZE);
}

static void rgate_send_gso(struct kunit *test)
{
	struct rgate_send_ctx *ctx = test->priv;
	struct rgate_tx_slot *slot = ctx->slot;
	struct sk_buff *skb;
	u32 type;

	rgate_send_test_tcp(ctx, 60000);
	slot->gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	slot->gso_size = 1400;
	skb = rgate_send_test_taken(test, 60000, RGATE_SLOT_OFFLOAD);
	KUNIT_EXPECT_TRUE(test, skb_is_gso(skb));
	KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->gso_size, 1400);
	kfree_skb(skb);
	slot->gso_size = 0;
	rgate_send_test_refused(test, 60000, RGATE_SLOT_OFFLOAD, -EINVAL);
	slot->gso_size = 1400;
	/* what is not IPv4 by its Ethernet header, nobody cuts as such */
	slot->gso_type = VIRTIO_NET_HDR_GSO_TCPV6;
	rgate_send_test_refused(test, 60000, RGATE_SLOT_OFFLOAD, -EINVAL);
	slot->gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	slot->vnet_flags = 0;
	rgate_send_test_refused(test, 60000, RGATE_SLOT_OFFLOAD, -EINVAL);
	slot->vnet_flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	for (type = 5; type < 0x80; type++) {
		slot->gso_type = type;
		rgate_send_test_refused(test, 60000, RGATE_SLOT_OFFLOAD, -EINVAL);
	}
	slot->gso_type = VIRTIO_NET_HDR_GSO_ECN;
	rgate_send_test_refused(test, 60000, RGATE_SLOT_OFFLOAD, -EINVAL);
}

static void rgate_send_no_header(struct kunit *test)
{
	struct rgate_send_ctx *ctx = test->priv;
	struct sk_buff *skb;

	KUNIT_EXPECT_TRUE(test, rgate_send_device(ctx->dev));
	ctx->dev->type = ARPHRD_IPGRE;
	KUNIT_EXPECT_FALSE(test, rgate_send_device(ctx->dev));
	ctx->dev->type = ARPHRD_NONE;
	ctx->dev->header_ops = NULL;
	ctx->dev->hard_header_len = 0;
	KUNIT_EXPECT_TRUE(test, rgate_send_device(ctx->dev));
	ctx->data[0] = 0x60;
	skb = rgate_send_test(test, 40, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(skb));
	KUNIT_EXPECT_EQ(test, ntohs(skb->protocol), ETH_P_IPV6);
	KUNIT_EXPECT_EQ(test, skb_network_offset(skb), 0);
	kfree_skb(skb);
	ctx->data[0] = 0x50;
	rgate_send_test_refused(test, 40, 0, -EINVAL);
	rgate_send_test_refused(test, 0, 0, -EMSGSIZE);
	rgate_send_test_refused(test, MTU + 1, 0, -EINVAL);
	ctx->data[0] = 0x45;
	rgate_send_test_refused(test, MTU + 1, 0, -EMSGSIZE);
	ctx->slot->vlan_proto = ETH_P_8021Q;
	rgate_send_test_refused(test, 40, RGATE_SLOT_VLAN, -EINVAL);
}

static struct kunit_case rgate_send_cases[] = {
	KUNIT_CASE(rgate_send_lengths),
	KUNIT_CASE(rgate_send_flags),
	KUNIT_CASE(rgate_send_tag),
	KUNIT_CASE(rgate_send_csum),
	KUNIT_CASE(rgate_send_gso),
	KUNIT_CASE(rgate_send_no_header),
	{}
};

static struct kunit_suite rgate_send_suite = {
	.name = "ringgate-send",
	.init = rgate_send_test_init,
	.test_cases = rgate_send_cases,
};

kunit_test_suite(rgate_send_suite);
