// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: classic BPF from an attribute, run from the link-layer header on. */
#include <kunit/test.h>
#include <linux/err.h>
#include <linux/etherdevice.h>
#include <linux/filter.h>
#include <linux/skbuff.h>
#include <net/netlink.h>
#include "filter.h"
#include "frame.h"

/* An attribute with @len bytes of @data */
static struct nlattr *rgate_attr(struct kunit *test, const void *data, int len)
{
	struct nlattr *attr = kunit_kzalloc(test, NLA_HDRLEN + len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, attr);
	attr->nla_len = NLA_HDRLEN + len;
	memcpy(nla_data(attr), data, len);
	return attr;
}

static struct bpf_prog *rgate_program(struct kunit *test,
				      const struct sock_filter *code, int n)
{
	return rgate_filter_new(rgate_attr(test, code, n * sizeof(*code)));
}

static void rgate_filter_none(struct kunit *test)
{
	KUNIT_EXPECT_NULL(test, rgate_filter_new(NULL));
	KUNIT_EXPECT_NULL(test, rgate_filter_new(rgate_attr(test, "", 0)));
	rgate_filter_free(NULL);
}

static void rgate_filter_refused(struct kunit *test)
{
	static const struct sock_filter bad[][2] = {
		/* no return at the end */
		{ BPF_STMT(BPF_LD | BPF_IMM, 1), BPF_STMT(BPF_LD | BPF_IMM, 1) },
		/* jump behind the end */
		{ BPF_STMT(BPF_JMP | BPF_JA, 7), BPF_STMT(BPF_RET | BPF_K, 1) },
		/* jump back */
		{ BPF_STMT(BPF_JMP | BPF_JA, U32_MAX), BPF_STMT(BPF_RET | BPF_K, 1) },
		/* scratch memory that is not there */
		{ BPF_STMT(BPF_ST, 16), BPF_STMT(BPF_RET | BPF_K, 1) },
		/* scratch memory read before it is written */
		{ BPF_STMT(BPF_LD | BPF_MEM, 3), BPF_STMT(BPF_RET | BPF_A, 0) },
		/* division by zero */
		{ BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 1) },
		/* no such instruction */
		{ BPF_STMT(0xffff, 0), BPF_STMT(BPF_RET | BPF_K, 1) },
	};
	const struct sock_filter ret = BPF_STMT(BPF_RET | BPF_K, 1);
	struct sock_filter *many;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ_MSG(test, PTR_ERR(rgate_program(test, bad[i], 2)),
				    -EINVAL, "program %d", i);
	/* not a whole number of instructions */
	for (i = 1; i < sizeof(ret); i++)
		KUNIT_EXPECT_EQ(test,
				PTR_ERR(rgate_filter_new(rgate_attr(test, &ret, i))),
				-EINVAL);
	many = kunit_kcalloc(test, BPF_MAXINSNS + 1, sizeof(*many), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, many);
	for (i = 0; i <= BPF_MAXINSNS; i++)
		many[i] = ret;
	KUNIT_EXPECT_EQ(test, PTR_ERR(rgate_program(test, many, BPF_MAXINSNS + 1)),
			-EINVAL);
}

static const struct header_ops rgate_ether = { .create = eth_header };

static struct net_device *rgate_test_dev(struct kunit *test,
					 const struct header_ops *ops)
{
	struct net_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->header_ops = ops;
	return dev;
}

/* A frame as the hook gets it: data at the network header */
static struct sk_buff *rgate_test_skb(struct kunit *test, u8 *mac, u16 type,
				      struct net_device *dev)
{
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL);
	struct ethhdr *eth;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb->dev = dev;
	eth = skb_put(skb, sizeof(*eth));
	memcpy(eth->h_dest, mac, ETH_ALEN);
	memcpy(eth->h_source, mac, ETH_ALEN);
	eth->h_proto = htons(type);
	memset(skb_put(skb, 60), 0x45, 60);
	skb_reset_mac_header(skb);
	skb_pull(skb, sizeof(*eth));
	skb_reset_network_header(skb);
	return skb;
}

static void rgate_filter_runs(struct kunit *test)
{
	/* 33 bytes of whatever has this ethertype and this first IP byte */
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 14),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x45, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 33),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	static u8 mac[ETH_ALEN] = { 2, 3, 4, 5, 6, 7 };
	struct net_device *dev = rgate_test_dev(test, &rgate_ether);
	struct bpf_prog *prog;
	struct rgate_frame f;
	struct sk_buff *skb;
	unsigned char *data;
	unsigned int len;

	prog = rgate_program(test, code, ARRAY_SIZE(code));
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(prog));
	skb = rgate_test_skb(test, mac, ETH_P_IP, dev);
	data = skb->data;
	len = skb->len;
	f = rgate_frame_of(skb);
	KUNIT_EXPECT_EQ(test, f.mac_len, ETH_HLEN);
	KUNIT_EXPECT_EQ(test, f.len, ETH_HLEN + 60);
	KUNIT_EXPECT_EQ(test, rgate_filter_run(prog, f.skb, f.mac_len), 33);
	/* the skb is as it was */
	KUNIT_EXPECT_PTR_EQ(test, skb->data, data);
	KUNIT_EXPECT_EQ(test, skb->len, len);
	kfree_skb(skb);

	skb = rgate_test_skb(test, mac, ETH_P_IPV6, dev);
	f = rgate_frame_of(skb);
	KUNIT_EXPECT_EQ(test, rgate_filter_run(prog, f.skb, f.mac_len), 0);
	kfree_skb(skb);
	rgate_filter_free(prog);
}

/*
 * A device without link-layer headers: offsets count from the packet, whatever
 * header a tunnel took off before it; and none was ever set.
 */
static void rgate_filter_no_mac(struct kunit *test)
{
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct bpf_prog *prog = rgate_program(test, code, ARRAY_SIZE(code));
	static u8 mac[ETH_ALEN] = { 2, 3, 4, 5, 6, 7 };
	struct rgate_frame f;
	struct sk_buff *skb;
	int i;

	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(prog));
	for (i = 0; i < 3; i++) {
		skb = rgate_test_skb(test, mac, ETH_P_IP,
				     rgate_test_dev(test, i == 2 ? &rgate_ether : NULL));
		if (i)
			skb_unset_mac_header(skb);
		f = rgate_frame_of(skb);
		KUNIT_EXPECT_EQ(test, f.mac_len, 0);
		KUNIT_EXPECT_EQ(test, f.len, 60);
		KUNIT_EXPECT_EQ(test, rgate_filter_run(prog, f.skb, f.mac_len), 0x45);
		kfree_skb(skb);
	}
	rgate_filter_free(prog);
}

static struct kunit_case rgate_filter_cases[] = {
	KUNIT_CASE(rgate_filter_none),
	KUNIT_CASE(rgate_filter_refused),
	KUNIT_CASE(rgate_filter_runs),
	KUNIT_CASE(rgate_filter_no_mac),
	{}
};

static struct kunit_suite rgate_filter_suite = {
	.name = "ringgate-filter",
	.test_cases = rgate_filter_cases,
};

kunit_test_suite(rgate_filter_suite);
