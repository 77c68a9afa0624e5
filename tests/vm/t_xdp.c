// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Frames from XDP programs: what the module's function takes and refuses, that it
 * counts and cuts as the receive hook does, and that nothing gets through once an
 * attachment is gone. By the kernel's way to run a program on a frame that is handed to
 * it, which comes from lo; t_xdp_driver has devices.
 */
#include "lib/vt.h"
#include "lib/xdp/vt_xdp.h"

#include <bpf/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <pthread.h>
#include <sched.h>

static struct vt_nl nl;
static struct vt_ring ring;

static uint32_t attach(const char *ifname, uint32_t action)
{
	return vt_xdp_attach(&nl, ifname, ring.id, action);
}

static void setup(uint32_t slots, uint32_t slot_size, uint32_t flags, uint32_t policy)
{
	vt_xdp_find();
	vt_nl_open(&nl);
	vt_ring_open(&ring, slots, slot_size, flags, policy);
}

static uint64_t stat_of(uint32_t att, int which)
{
	struct vt_att_info ai;

	REQUIRE(!vt_att_get(&nl, att, &ai));
	return ai.st[which];
}

/* What a program returns that hands all of a frame to such an attachment */
static int once(uint32_t att, uint64_t cookie, void *frame, size_t len)
{
	return vt_xdp_run(vt_xdp_prog(att, cookie, VT_XDP_ALL, true), frame, len);
}

static void every_field(void)
{
	uint32_t att;
	uint8_t f[1514];
	unsigned int i;
	int fd;

	setup(64, 2048, 0, 0);
	att = attach("lo", RGATE_ACTION_MIRROR);
	fd = vt_xdp_prog(att, vt_att_cookie(&nl, att), VT_XDP_ALL, true);
	for (i = 0; i < 100; i++) {
		size_t len = VT_PKT_MIN + (i * 15) % (sizeof(f) - VT_PKT_MIN + 1);
		const struct rgate_slot *s;

		vt_pkt_udp(f, len, i, 3);
		EXPECT_EQ(vt_xdp_run(fd, f, len), XDP_PASS);
		s = vt_ring_next(&ring);
		REQUIRE(s);
		EXPECT_EQ(s->len, len);
		EXPECT_EQ(s->wire_len, len);
		EXPECT(!memcmp(vt_slot_data(s), f, len));
		EXPECT_EQ(s->flags, RGATE_SLOT_QUEUE);
		EXPECT_EQ(s->ifindex, vt_ifindex("lo"));
		EXPECT_EQ(s->protocol, ETH_P_IP);
		EXPECT_EQ(s->l3_off, 14);
		EXPECT_EQ(s->l4_off, 34);
		EXPECT_EQ(s->payload_off, 42);
		EXPECT_EQ(s->ip_proto, 17);
		EXPECT_EQ(s->chain_cnt, 1);
		EXPECT_EQ(s->vlan_tci, 0);
		vt_ring_done(&ring);
	}
	EXPECT_EQ(stat_of(att, RGATE_A_ATT_STATS_SEEN), 100);
	EXPECT_EQ(stat_of(att, RGATE_A_ATT_STATS_DELIVERED), 100);
}

/* Each thing that is not right is refused, and nothing of it reaches the ring. */
static void refusals(void)
{
	struct vt_att hook = { .ifname = "lo", .n = 1, .action = RGATE_ACTION_MIRROR };
	uint32_t att, other;
	uint64_t cookie;
	uint8_t f[64];
	int id;

	setup(64, 2048, 0, 0);
	vt_veth("va", "vb", 0);
	vt_pkt_udp(f, sizeof(f), 1, 3);
	att = attach("lo", RGATE_ACTION_STEAL);
	cookie = vt_att_cookie(&nl, att);
	other = attach("vb", RGATE_ACTION_STEAL);
	hook.rings[0] = ring.id;
	id = vt_att_new(&nl, &hook);
	REQUIRE(id > 0);
	EXPECT_EQ(once(0, cookie, f, sizeof(f)), -ENOENT);
	EXPECT_EQ(once(0x7ffffff0, cookie, f, sizeof(f)), -ENOENT);
	EXPECT_EQ(once(VT_XDP_ALL, cookie, f, sizeof(f)), -ENOENT);
	EXPECT_EQ(once(att, cookie + 1, f, sizeof(f)), -ESTALE);
	EXPECT_EQ(once(att, 0, f, sizeof(f)), -ESTALE);
	EXPECT_EQ(once((uint32_t)id, vt_att_cookie(&nl, (uint32_t)id), f, sizeof(f)), -EINVAL);
	EXPECT_EQ(once(other, vt_att_cookie(&nl, other), f, sizeof(f)), -ENODEV);
	EXPECT_EQ(vt_ring_head(&ring), 0);
	EXPECT_EQ(stat_of(att, RGATE_A_ATT_STATS_SEEN), 0);
	EXPECT_EQ(stat_of(other, RGATE_A_ATT_STATS_SEEN), 0);
	/* and what is right is not */
	EXPECT_EQ(once(att, cookie, f, sizeof(f)), XDP_DROP);
	EXPECT_EQ(vt_ring_head(&ring), 1);
}

/* lo of another network namespace is another device. */
static void other_namespace(void)
{
	int self = vt_netns_self(), fd;
	uint8_t f[64];
	uint32_t att;

	setup(64, 2048, 0, 0);
	vt_pkt_udp(f, sizeof(f), 1, 3);
	att = attach("lo", RGATE_ACTION_MIRROR);
	fd = vt_xdp_prog(att, vt_att_cookie(&nl, att), VT_XDP_ALL, true);
	vt_netns_enter(vt_netns_new());
	EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), -ENODEV);
	vt_netns_enter(self);
	EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), XDP_PASS);
	EXPECT_EQ(vt_ring_head(&ring), 1);
}

static void snap_and_match(void)
{
	const struct rgate_slot *s;
	uint8_t f[300];
	uint64_t cookie;
	uint32_t att;
	int fd;

	setup(64, 2048, 0, 0);
	vt_pkt_udp(f, sizeof(f), 1, 3);
	att = attach("lo", RGATE_ACTION_STEAL);
	cookie = vt_att_cookie(&nl, att);
	/* none of it: it does not match, and is the stack's */
	EXPECT_EQ(vt_xdp_run(vt_xdp_prog(att, cookie, 0, true), f, sizeof(f)), XDP_PASS);
	EXPECT_EQ(vt_ring_head(&ring), 0);
	EXPECT_EQ(stat_of(att, RGATE_A_ATT_STATS_FILTERED), 1);
	EXPECT_EQ(vt_xdp_run(vt_xdp_prog(att, cookie, 100, true), f, sizeof(f)), XDP_DROP);
	s = vt_ring_next(&ring);
	REQUIRE(s);
	EXPECT_EQ(s->len, 100);
	EXPECT_EQ(s->wire_len, sizeof(f));
	EXPECT_EQ(s->flags, RGATE_SLOT_QUEUE | RGATE_SLOT_TRUNC);
	EXPECT(!memcmp(vt_slot_data(s), f, 100));
	vt_ring_done(&ring);
	/* more than there is: all */
	fd = vt_xdp_prog(att, cookie, sizeof(f) + 1, true);
	EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), XDP_DROP);
	s = vt_ring_next(&ring);
	REQUIRE(s);
	EXPECT_EQ(s->len, sizeof(f));
	EXPECT_EQ(stat_of(att, RGATE_A_ATT_STATS_SEEN), 3);
	EXPECT_EQ(stat_of(att, RGATE_A_ATT_STATS_DELIVERED), 2);
	EXPECT_EQ(stat_of(att, RGATE_A_ATT_STATS_BYTES), 2 * sizeof(f));
	EXPECT_EQ(vt_ring_stats(&ring).truncated, 1);
}

/* A frame of several buffers: in a slot that takes it, and in a chain of small ones */
static void multi_buffer(uint32_t slot_size, uint32_t flags)
{
	static uint8_t f[12000], back[12000];
	const size_t lens[] = { 3000, 4000, 5000, 9000, sizeof(f) };
	uint32_t att;
	unsigned int i;
	int fd;

	setup(64, slot_size, flags, 0);
	att = attach("lo", RGATE_ACTION_MIRROR);
	fd = vt_xdp_prog(att, vt_att_cookie(&nl, att), VT_XDP_ALL, true);
	for (i = 0; i < VT_COUNT(lens); i++) {
		const struct rgate_slot *s;

		vt_pkt_udp(f, lens[i], i, 3);
		EXPECT_EQ(vt_xdp_run(fd, f, lens[i]), XDP_PASS);
		s = vt_ring_next(&ring);
		REQUIRE(s);
		EXPECT_EQ(s->wire_len, lens[i]);
		EXPECT_EQ(vt_ring_join(&ring, s, back, sizeof(back)), lens[i]);
		EXPECT(!memcmp(back, f, lens[i]));
		EXPECT_EQ(s->l4_off, 34);
		vt_ring_done(&ring);
	}
}

static void multi_buffer_one_slot(void)
{
	multi_buffer(16384, 0);
}

static void multi_buffer_chain(void)
{
	multi_buffer(2048, RGATE_RING_CHAIN);
	EXPECT(vt_ring_stats(&ring).chained > 0);
}

/* Tags stay in the frame, and what stands behind them is found. */
static void vlan_and_odd_frames(void)
{
	static const uint8_t tag[] = { 0x81, 0x00, 0x00, 0x05 };
	const struct rgate_slot *s;
	uint8_t f[128] = { 0 };
	uint32_t att;
	int fd;

	setup(64, 2048, 0, 0);
	att = attach("lo", RGATE_ACTION_MIRROR);
	fd = vt_xdp_prog(att, vt_att_cookie(&nl, att), VT_XDP_ALL, true);
	vt_pkt_udp(f, 100, 1, 3);
	memmove(f + 16, f + 12, 88);
	memcpy(f + 12, tag, sizeof(tag));
	EXPECT_EQ(vt_xdp_run(fd, f, 104), XDP_PASS);
	s = vt_ring_next(&ring);
	REQUIRE(s);
	EXPECT_EQ(s->protocol, ETH_P_8021Q);
	EXPECT_EQ(s->flags, RGATE_SLOT_QUEUE);
	EXPECT_EQ(s->l3_off, 18);
	EXPECT_EQ(s->l4_off, 38);
	EXPECT_EQ(s->len, 104);
	EXPECT(!memcmp(vt_slot_data(s), f, 104));
	vt_ring_done(&ring);
	/* the shortest there can be, of a length instead of a type */
	memset(f, 0xff, sizeof(f));
	f[12] = 0;
	f[13] = 40;
	EXPECT_EQ(vt_xdp_run(fd, f, 14), XDP_PASS);
	s = vt_ring_next(&ring);
	REQUIRE(s);
	EXPECT_EQ(s->len, 14);
	EXPECT_EQ(s->protocol, ETH_P_802_2);
	EXPECT_EQ(s->pkt_type, PACKET_BROADCAST);
	EXPECT_EQ(s->l4_off, RGATE_OFF_NONE);
	vt_ring_done(&ring);
	EXPECT_EQ(vt_xdp_run(fd, f, 64), XDP_PASS);
	s = vt_ring_next(&ring);
	REQUIRE(s);
	EXPECT_EQ(s->protocol, ETH_P_802_3);
}

/* Full: what is made of the frame is the action's and the policy's. */
static void full_ring(uint32_t policy, int verdict, int which)
{
	uint8_t f[64];
	uint32_t att;
	int fd;
	unsigned int i;

	setup(64, 2048, 0, policy);
	vt_pkt_udp(f, sizeof(f), 1, 3);
	att = attach("lo", RGATE_ACTION_STEAL);
	fd = vt_xdp_prog(att, vt_att_cookie(&nl, att), VT_XDP_ALL, true);
	for (i = 0; i < 64; i++)
		EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), XDP_DROP);
	EXPECT_EQ(stat_of(att, RGATE_A_ATT_STATS_DELIVERED), 64);
	EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), verdict);
	EXPECT_EQ(stat_of(att, which), 1);
	EXPECT_EQ(vt_ring_drain(&ring), 64);
	EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), XDP_DROP);
	EXPECT_EQ(stat_of(att, RGATE_A_ATT_STATS_DELIVERED), 65);
	EXPECT_EQ(vt_ring_next(&ring)->gap, 1);
}

static void full_drop(void)
{
	full_ring(RGATE_POLICY_DROP, XDP_DROP, RGATE_A_ATT_STATS_DROPPED_FULL);
}

static void full_pass(void)
{
	full_ring(RGATE_POLICY_PASS, XDP_PASS, RGATE_A_ATT_STATS_PASSED);
}

static int set_action(uint32_t att, uint32_t action, uint32_t sample)
{
	static char buf[VT_NL_BUF];
	struct nlmsghdr *nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_SET, 0);

	vt_nl_put_att(nlh, att, vt_att_cookie(&nl, att));
	mnl_attr_put_u32(nlh, RGATE_A_ATT_ACTION, action);
	mnl_attr_put_u32(nlh, RGATE_A_ATT_SAMPLE, sample);
	return vt_nl_talk(&nl, nlh, NULL, NULL);
}

static void set_live(void)
{
	uint8_t f[64];
	uint32_t att;
	unsigned int i;
	int fd;

	setup(64, 2048, 0, 0);
	vt_pkt_udp(f, sizeof(f), 1, 3);
	att = attach("lo", RGATE_ACTION_MIRROR);
	fd = vt_xdp_prog(att, vt_att_cookie(&nl, att), VT_XDP_ALL, true);
	EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), XDP_PASS);
	REQUIRE(!set_action(att, RGATE_ACTION_STEAL, 1));
	EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), XDP_DROP);
	REQUIRE(!set_action(att, RGATE_ACTION_MIRROR, 4));
	for (i = 0; i < 8; i++)
		EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), XDP_PASS);
	EXPECT_EQ(stat_of(att, RGATE_A_ATT_STATS_SAMPLED_OUT), 6);
	EXPECT_EQ(stat_of(att, RGATE_A_ATT_STATS_DELIVERED), 4);
}

/* What the program does is not the attachment's to have: refused when it is made and
 * when it is changed. */
static void not_the_modules(void)
{
	static const struct sock_filter all = { 0x06, 0, 0, VT_XDP_ALL };
	static char buf[VT_NL_BUF];
	struct vt_att a = { .ifname = "lo", .n = 1, .kind = RGATE_KIND_XDP };
	struct vt_att_info ai;
	struct nlmsghdr *nlh;
	uint32_t att;

	vt_nl_open(&nl);
	vt_ring_open(&ring, 64, 2048, 0, 0);
	a.rings[0] = ring.id;
	a.filter = &all;
	a.nfilter = 1;
	EXPECT_EQ(vt_att_new(&nl, &a), -EOPNOTSUPP);
	a.filter = NULL;
	a.prio = 5;
	EXPECT_EQ(vt_att_new(&nl, &a), -EOPNOTSUPP);
	a.prio = 0;
	a.kind = RGATE_KIND_COUNT;
	EXPECT_EQ(vt_att_new(&nl, &a), -ERANGE);
	a.kind = RGATE_KIND_XDP;
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
	att = attach("lo", RGATE_ACTION_STEAL);
	REQUIRE(!vt_att_get(&nl, att, &ai));
	EXPECT_EQ(ai.kind, RGATE_KIND_XDP);
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_SET, 0);
	vt_nl_put_att(nlh, att, ai.cookie);
	mnl_attr_put(nlh, RGATE_A_ATT_FILTER, sizeof(all), &all);
	EXPECT_EQ(vt_nl_talk(&nl, nlh, NULL, NULL), -EOPNOTSUPP);
	REQUIRE(!set_action(att, RGATE_ACTION_MIRROR, 0));
	/* a device without Ethernet headers */
	REQUIRE(vt_tun_open("tun7", 0x1001, 0) >= 0);
	a.ifname = "tun7";
	EXPECT_EQ(vt_att_new(&nl, &a), -EOPNOTSUPP);
}

static void fan_out(void)
{
	struct vt_att a = { .ifname = "lo", .n = 2, .kind = RGATE_KIND_XDP,
			    .fanout = RGATE_FANOUT_HASH, .action = RGATE_ACTION_MIRROR };
	struct vt_ring second;
	uint64_t one;
	unsigned int i;
	uint8_t f[64];
	int id, fd;

	setup(256, 256, 0, 0);
	vt_ring_open(&second, 256, 256, 0, 0);
	a.rings[0] = ring.id;
	a.rings[1] = second.id;
	id = vt_att_new(&nl, &a);
	REQUIRE(id > 0);
	fd = vt_xdp_prog((uint32_t)id, vt_att_cookie(&nl, (uint32_t)id), VT_XDP_ALL, true);
	for (i = 0; i < 64; i++) {
		vt_pkt_udp(f, sizeof(f), i, (uint16_t)i);
		EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), XDP_PASS);
	}
	one = vt_ring_head(&ring);
	EXPECT_EQ(one + vt_ring_head(&second), 64);
	/* 64 flows on one side: 2^-63 */
	EXPECT(one && one < 64);
	/* a flow stays where it is */
	for (i = 0; i < 20; i++) {
		vt_pkt_udp(f, sizeof(f), i, 7);
		vt_xdp_run(fd, f, sizeof(f));
	}
	EXPECT(vt_ring_head(&ring) == one || vt_ring_head(&ring) == one + 20);
}

/* The program stays, the attachment goes: by request, with its ring, with its device. */
static void revoked(void)
{
	uint8_t f[64];
	uint32_t att;
	uint64_t head;
	int fd;

	setup(64, 2048, 0, 0);
	vt_pkt_udp(f, sizeof(f), 1, 3);
	att = attach("lo", RGATE_ACTION_STEAL);
	fd = vt_xdp_prog(att, vt_att_cookie(&nl, att), VT_XDP_ALL, true);
	EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), XDP_DROP);
	REQUIRE(!vt_att_del(&nl, att));
	head = vt_ring_head(&ring);
	EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), -ENOENT);
	EXPECT_EQ(vt_ring_head(&ring), head);
	att = attach("lo", RGATE_ACTION_STEAL);
	fd = vt_xdp_prog(att, vt_att_cookie(&nl, att), VT_XDP_ALL, true);
	EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), XDP_DROP);
	vt_ring_close(&ring);
	EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), -ENOENT);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
}

/* A ring that gets full, and has room again; what was attached goes with its device. */
static void events(void)
{
	struct vt_nl heard;
	struct vt_event ev;
	uint32_t att, other;
	uint8_t f[64];
	unsigned int i;
	int fd;

	setup(64, 2048, 0, RGATE_POLICY_DROP);
	vt_nl_open(&heard);
	REQUIRE(!vt_nl_subscribe(&heard));
	vt_pkt_udp(f, sizeof(f), 1, 3);
	att = attach("lo", RGATE_ACTION_STEAL);
	fd = vt_xdp_prog(att, vt_att_cookie(&nl, att), VT_XDP_ALL, true);
	for (i = 0; i < 64; i++)
		EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), XDP_DROP);
	EXPECT_EQ(vt_nl_event(&heard, &ev, 300), 0);
	EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), XDP_DROP);
	EXPECT_EQ(vt_nl_event_of(&heard, RGATE_EVENT_RING_FULL, 0, &ev, 3000), 1);
	EXPECT_EQ(ev.ring_id, ring.id);
	EXPECT_EQ(ev.full_events, 1);
	EXPECT_EQ(ev.dropped, 1);
	EXPECT_EQ(vt_ring_drain(&ring), 64);
	EXPECT_EQ(vt_xdp_run(fd, f, sizeof(f)), XDP_DROP);
	EXPECT_EQ(vt_nl_event_of(&heard, RGATE_EVENT_RING_ROOM, 0, &ev, 3000), 1);
	EXPECT_EQ(ev.ring_id, ring.id);
	EXPECT_EQ(ev.dropped, 1);
	vt_veth("va", "vb", 0);
	other = attach("vb", RGATE_ACTION_STEAL);
	vt_must("ip link del va");
	EXPECT_EQ(vt_nl_event_of(&heard, RGATE_EVENT_DEVICE_GONE, other, &ev, 3000), 1);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 1);
	vt_ring_close(&ring);
	EXPECT_EQ(vt_nl_event_of(&heard, RGATE_EVENT_RING_GONE, 0, &ev, 3000), 1);
	vt_nl_close(&heard);
}

static uint32_t by_hand_stop;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	REQUIRE(!sched_setaffinity(0, sizeof(set), &set));
}

static void *send_all_along(void *arg)
{
	const int tx = *(int *)arg;

	pin(1);
	while (!__atomic_load_n(&by_hand_stop, __ATOMIC_RELAXED))
		vt_tx_burst(tx, 1000, 0, 50);
	return NULL;
}

/*
 * Before Linux 6.3 a program that is run by hand is interrupted by frames that come, which
 * are for the same ring: they are steered to its processor.
 */
static void beside_frames(void)
{
	static uint8_t f[1514];
	struct bpf_test_run_opts opts = {
		.sz = sizeof(opts), .data_in = f, .data_size_in = sizeof(f), .repeat = 20000,
	};
	uint64_t end;
	pthread_t t;
	uint32_t att, hook;
	int fd, tx;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		vt_skip("needs two processors");
	vt_veth("va", "vb", 0);
	setup(256, 2048, 0, RGATE_POLICY_OVERWRITE);
	att = attach("lo", RGATE_ACTION_STEAL);
	hook = vt_att_simple(&nl, "vb", ring.id);
	fd = vt_xdp_prog(att, vt_att_cookie(&nl, att), VT_XDP_ALL, true);
	/* sysfs shows the devices of the namespace that has mounted it */
	vt_must("mount -t sysfs none /mnt && echo 1 >/mnt/class/net/vb/queues/rx-0/rps_cpus && "
		"umount /mnt");
	tx = vt_tx_open("va");
	vt_pkt_udp(f, sizeof(f), 0, 0);
	pin(0);
	REQUIRE(!pthread_create(&t, NULL, send_all_along, &tx));
	REQUIRE(VT_UNTIL(vt_att_stat(&nl, hook, RGATE_A_ATT_STATS_SEEN) > 0, 5000));
	end = vt_now() + 5000000000ULL;
	while (vt_now() < end)
		REQUIRE(!bpf_prog_test_run_opts(fd, &opts));
	__atomic_store_n(&by_hand_stop, 1, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	close(tx);
	EXPECT(stat_of(att, RGATE_A_ATT_STATS_DELIVERED) >= 20000);
}

/* As long as a program is there that calls it, the module stays; then it goes. */
static void holds_module(void)
{
	int fd;

	setup(64, 2048, 0, 0);
	fd = vt_xdp_prog(1, 1, VT_XDP_ALL, true);
	vt_ring_close(&ring);
	vt_nl_close(&nl);
	vt_xdp_forget();
	EXPECT(vt_rmmod() < 0);
	close(fd);
	REQUIRE(VT_UNTIL(!vt_rmmod(), 10000));
	REQUIRE(!vt_insmod(""));
}

static const struct vt_case cases[] = {
	{ .name = "every byte and every field", .fn = every_field },
	{ .name = "what is refused", .fn = refusals },
	{ .name = "another network namespace", .fn = other_namespace },
	{ .name = "how much of a frame, and frames that do not match", .fn = snap_and_match },
	{ .name = "several buffers into one slot", .fn = multi_buffer_one_slot },
	{ .name = "several buffers into a chain", .fn = multi_buffer_chain },
	{ .name = "VLAN tags, and frames of another kind", .fn = vlan_and_odd_frames },
	{ .name = "full: drop", .fn = full_drop },
	{ .name = "full: pass", .fn = full_pass },
	{ .name = "action and sampling change live", .fn = set_live },
	{ .name = "filters and priorities are the program's", .fn = not_the_modules },
	{ .name = "fan-out by flow", .fn = fan_out },
	{ .name = "an attachment that is gone", .fn = revoked },
	{ .name = "events", .fn = events },
	{ .name = "run by hand, beside frames that come", .fn = beside_frames, .secs = 60 },
	{ .name = "programs hold the module", .fn = holds_module, .flags = VT_HOSTNS },
};

VT_MAIN(cases)
