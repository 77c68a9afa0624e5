// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Frames from XDP programs in drivers, before there is an skb: of a veth pair, and of two
 * virtio-net devices on one wire, whose buffers a device has written.
 */
#include "lib/vt.h"
#include "lib/xdp/vt_xdp.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

static struct vt_nl nl;
static struct vt_ring ring;

static uint32_t attach(const char *ifname, uint32_t action)
{
	return vt_xdp_attach(&nl, ifname, ring.id, action);
}

/* In the driver, not behind it, where each frame would have become an skb; or -errno */
static int link_to(int fd, const char *ifname)
{
	const struct bpf_link_create_opts opts = {
		.sz = sizeof(opts), .flags = XDP_FLAGS_DRV_MODE,
	};
	int link = bpf_link_create(fd, (int)vt_ifindex(ifname), BPF_XDP, &opts);

	return link < 0 ? -errno : link;
}

static int in_driver(int fd, const char *ifname)
{
	struct bpf_xdp_query_opts query = { .sz = sizeof(query) };
	int link = link_to(fd, ifname);

	if (link < 0)
		DIE("the link to %s: %s", ifname, strerror(-link));
	REQUIRE(!bpf_xdp_query((int)vt_ifindex(ifname), 0, &query));
	EXPECT_EQ(query.attach_mode, XDP_ATTACHED_DRV);
	return link;
}

/* Frames of @len bytes from one device to another, while attachments come and go there */
static void traffic(const char *from, const char *to, size_t len)
{
	struct vt_traffic t = { .ifname = from, .len = len, .pause_us = 1000 };
	unsigned int i, got = 0;

	vt_ring_open(&ring, 256, 2048, 0, RGATE_POLICY_DROP);
	vt_traffic_start(&t);
	for (i = 0; i < 6; i++) {
		uint32_t att = attach(to, i % 2 ? RGATE_ACTION_STEAL : RGATE_ACTION_MIRROR);
		int fd = vt_xdp_prog(att, vt_att_cookie(&nl, att), VT_XDP_ALL, false);
		int link = in_driver(fd, to);
		const struct rgate_slot *s;

		/* some came, whole, from the driver */
		s = vt_ring_wait(&ring, 20000);
		REQUIRE(s);
		EXPECT_EQ(s->len, len);
		EXPECT_EQ(s->ifindex, vt_ifindex(to));
		EXPECT(vt_pkt_check(vt_slot_data(s), s->len, NULL));
		got += vt_ring_drain(&ring);
		REQUIRE(!vt_att_del(&nl, att));
		/* Frames that were in the driver's hands may still have come until here. */
		vt_ring_drain(&ring);
		if (i % 2) {
			vt_ring_close(&ring);
			vt_ring_open(&ring, 256, 2048, 0, RGATE_POLICY_DROP);
		}
		close(link);
		close(fd);
	}
	vt_traffic_stop(&t);
	vt_ring_close(&ring);
	EXPECT(got > 0);
}

/* Of a hundred frames the ring has all, and the stack @left of them. */
static void hundred(const char *from, const char *to, size_t len, uint32_t action,
		    unsigned int left)
{
	int tx = vt_tx_open(from), stack = vt_stack_open(to), fd, link;
	struct vt_seen seen;
	unsigned int n = 0;
	uint32_t att;

	vt_ring_open(&ring, 256, 16384, 0, RGATE_POLICY_DROP);
	att = attach(to, action);
	fd = vt_xdp_prog(att, vt_att_cookie(&nl, att), VT_XDP_ALL, false);
	link = in_driver(fd, to);
	EXPECT_EQ(vt_tx_burst(tx, len, 0, 100), 100);
	vt_seen_init(&seen, 100);
	EXPECT_EQ(vt_ring_verify(&ring, &seen, 100, 20000), 100);
	EXPECT_EQ(seen.got, 100);
	(void)VT_UNTIL((n += vt_stack_drain(stack, 10)) >= left, 5000);
	n += vt_stack_drain(stack, 300);
	EXPECT_EQ(n, left);
	REQUIRE(!vt_att_del(&nl, att));
	vt_ring_close(&ring);
	close(link);
	close(fd);
	close(stack);
	close(tx);
}

static void all_of(const char *from, const char *to)
{
	vt_xdp_find();
	vt_nl_open(&nl);
	traffic(from, to, 100);
	traffic(from, to, 1514);
	hundred(from, to, 1514, RGATE_ACTION_STEAL, 0);
	hundred(from, to, 1514, RGATE_ACTION_MIRROR, 100);
}

static void veth(void)
{
	vt_veth("va", "vb", 0);
	all_of("va", "vb");
}

/* The two devices that scripts/lab --pair gives a VM come into this namespace. */
static void virtio_pair(char *a, char *b, unsigned int mtu)
{
	int self = vt_netns_self(), init = open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC);

	if (!getenv("LAB_PAIR"))
		vt_skip("no two virtio-net devices with a wire between them (scripts/lab --pair)");
	if (vt_sh("modprobe -q virtio_net"))
		vt_skip("this kernel has no virtio_net");
	REQUIRE(sscanf(getenv("LAB_PAIR"), "%15s %15s", a, b) == 2);
	REQUIRE(init >= 0);
	vt_netns_enter(init);
	/* They are made by and by, and come back so from the namespace that had them last. */
	REQUIRE(VT_UNTIL(!vt_sh("ip link set %s netns %s", a, vt_netns_path(self)), 5000));
	REQUIRE(VT_UNTIL(!vt_sh("ip link set %s netns %s", b, vt_netns_path(self)), 5000));
	vt_netns_enter(self);
	/* A device takes what is for its address, and all if it is asked to. */
	vt_must("ip link set %s mtu %u up && ip link set %s mtu %u promisc on up", a, mtu, b, mtu);
	vt_wait_active(a);
	vt_wait_active(b);
}

static void virtio(void)
{
	char a[16], b[16];

	virtio_pair(a, b, 1500);
	all_of(a, b);
}

/* Frames that lie in several of the driver's buffers */
static void virtio_long(void)
{
	char a[16], b[16];
	int link;

	virtio_pair(a, b, 9000);
	vt_xdp_find();
	vt_nl_open(&nl);
	link = link_to(vt_xdp_prog(1, 1, VT_XDP_ALL, false), b);
	if (link == -EINVAL)
		vt_skip("this kernel's virtio_net takes no program with such an MTU");
	REQUIRE(link >= 0);
	close(link);
	hundred(a, b, 4000, RGATE_ACTION_STEAL, 0);
	hundred(a, b, 9014, RGATE_ACTION_STEAL, 0);
	hundred(a, b, 9014, RGATE_ACTION_MIRROR, 100);
}

static const struct vt_case cases[] = {
	{ .name = "in the driver of a veth", .fn = veth, .secs = 120 },
	{ .name = "in the driver of virtio-net", .fn = virtio, .secs = 120 },
	{ .name = "several buffers of virtio-net", .fn = virtio_long, .secs = 60 },
};

int main(void)
{
	int r = vt_run(cases, VT_COUNT(cases));

	/* Others have an eth0 of their own. */
	(void)vt_sh("modprobe -qr virtio_net");
	return r;
}
