// SPDX-License-Identifier: MIT OR GPL-2.0
/* Devices and network namespaces go away under traffic. */
#include "lib/vt.h"

static struct vt_nl nl, ev_nl;
static struct vt_ring ring;
static uint32_t att;

static void setup(void)
{
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_nl_open(&ev_nl);
	REQUIRE(!vt_nl_subscribe(&ev_nl));
	vt_ring_open(&ring, 256, 512, 0, RGATE_POLICY_OVERWRITE);
	att = vt_att_simple(&nl, "vb", ring.id);
}

/* The ring lives on: attached elsewhere it receives again */
static void still_works(void)
{
	int tx;

	EXPECT_EQ(vt_ring_state(&ring), RGATE_STATE_ACTIVE);
	vt_veth("na", "nb", 0);
	vt_att_simple(&nl, "nb", ring.id);
	tx = vt_tx_open("na");
	ring.pos = vt_ring_head(&ring);
	EXPECT_EQ(vt_tx_burst(tx, 100, 0, 20), 20);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 20, 2000), 20);
	close(tx);
}

static void removed(void)
{
	struct vt_traffic t = { .ifname = "va", .len = 200, .cpu = 1 };
	struct vt_att_info info;
	struct vt_event ev;
	uint32_t ifindex;

	setup();
	ifindex = vt_ifindex("vb");
	vt_traffic_start(&t);
	vt_usleep(300000);
	vt_must("ip link del vb");
	vt_traffic_stop(&t);
	EXPECT(t.err == -ENXIO || t.err == -ENETDOWN || t.err == -ENODEV || !t.err);
	EXPECT_GE(vt_ring_head(&ring), 1);
	EXPECT_EQ(vt_nl_event_of(&ev_nl, RGATE_EVENT_DEVICE_GONE, att, &ev, 3000), 1);
	EXPECT_EQ(ev.ifindex, ifindex);
	EXPECT_EQ(vt_att_get(&nl, att, &info), -ENOENT);
	EXPECT_EQ(vt_att_del(&nl, att), -ENOENT);
	still_works();
}

static void removed_many_times(void)
{
	unsigned int i;

	vt_nl_open(&nl);
	vt_ring_open(&ring, 256, 512, 0, RGATE_POLICY_OVERWRITE);
	for (i = 0; i < 6; i++) {
		struct vt_traffic t = { .ifname = "va", .len = 200, .cpu = i };

		vt_veth("va", "vb", 0);
		att = vt_att_simple(&nl, "vb", ring.id);
		vt_traffic_start(&t);
		vt_usleep((unsigned int)(vt_rand() % 30000));
		vt_must("ip link del %s", i & 1 ? "va" : "vb");
		vt_traffic_stop(&t);
	}
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
	still_works();
}

/* ATT_DEL and removal of the device at the same moment */
static void *deleter(void *arg)
{
	struct vt_nl mine;

	vt_nl_open(&mine);
	(void)vt_att_del(&mine, *(uint32_t *)arg);
	vt_nl_close(&mine);
	return NULL;
}

static void removed_and_detached(void)
{
	unsigned int i;

	vt_nl_open(&nl);
	vt_ring_open(&ring, 256, 512, 0, 0);
	for (i = 0; i < 6; i++) {
		pthread_t th;

		vt_veth("va", "vb", 0);
		att = vt_att_simple(&nl, "vb", ring.id);
		REQUIRE(!pthread_create(&th, NULL, deleter, &att));
		vt_must("ip link del vb");
		pthread_join(th, NULL);
		EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
	}
}

static void moved(void)
{
	struct vt_traffic t = { .ifname = "va", .len = 200, .cpu = 1 };
	struct vt_att_info info;
	struct vt_event ev;
	uint64_t head;
	int ns;

	setup();
	ns = vt_netns_new();
	vt_traffic_start(&t);
	vt_usleep(200000);
	vt_must("ip link set vb netns %s", vt_netns_path(ns));
	EXPECT_EQ(vt_nl_event_of(&ev_nl, RGATE_EVENT_DEVICE_GONE, att, &ev, 3000), 1);
	EXPECT_EQ(vt_att_get(&nl, att, &info), -ENOENT);
	vt_netns_must(ns, "ip link set vb up");
	/* it receives again over there, but not for us */
	vt_usleep(100000);
	head = vt_ring_head(&ring);
	vt_usleep(200000);
	EXPECT_EQ(vt_ring_head(&ring), head);
	vt_traffic_stop(&t);
	still_works();
}

static void renamed(void)
{
	struct vt_att_info info;
	int tx;

	setup();
	vt_must("ip link set vb down && ip link set vb name other && ip link set other up");
	REQUIRE(!vt_att_get(&nl, att, &info));
	EXPECT(!strcmp(info.ifname, "other"));
	tx = vt_tx_open("va");
	vt_tx_burst(tx, 100, 0, 20);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 20, 2000), 20);
}

/* Hold a namespace open only through a child, and kill that */
struct ns_child {
	int ready[2];
};

static int lives_in_ns(void *arg)
{
	struct ns_child *c = arg;
	struct vt_traffic t = { .ifname = "xa", .len = 200, .cpu = 1 };
	struct vt_nl mine;
	struct vt_ring r;

	vt_netns_fresh();
	vt_veth("xa", "xb", 0);
	vt_nl_open(&mine);
	vt_ring_open(&r, 128, 512, 0, RGATE_POLICY_OVERWRITE);
	vt_att_simple(&mine, "xb", r.id);
	vt_traffic_start(&t);
	REQUIRE(write(c->ready[1], &r.fd, sizeof(r.fd)) == sizeof(r.fd));
	for (;;)
		pause();
}

static void netns_deleted(void)
{
	unsigned int i;

	vt_nl_open(&nl);
	for (i = 0; i < 4; i++) {
		struct ns_child c;
		pid_t pid;
		int fd;

		REQUIRE(!pipe(c.ready));
		pid = vt_fork(lives_in_ns, &c);
		REQUIRE(read(c.ready[0], &fd, sizeof(fd)) == sizeof(fd));
		vt_usleep((unsigned int)(vt_rand() % 100000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(c.ready[0]);
		close(c.ready[1]);
	}
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
}

/* The ring was made in a namespace that is gone; its file is here */
static void ring_outlives_netns(void)
{
	struct vt_nl there;
	int here = vt_netns_self(), ns = vt_netns_new(), tx;
	uint64_t head;
	int r;

	vt_netns_enter(ns);
	vt_veth("xa", "xb", 0);
	vt_nl_open(&there);
	vt_ring_open(&ring, 128, 512, 0, 0);
	vt_att_simple(&there, "xb", ring.id);
	tx = vt_tx_open("xa");
	vt_tx_burst(tx, 100, 0, 40);
	EXPECT(VT_UNTIL(vt_ring_head(&ring) == 40, 3000));
	close(tx);
	vt_nl_close(&there);
	vt_netns_enter(here);
	close(ns);
	/* the namespace's end is worked off in the background */
	vt_usleep(1500000);
	EXPECT_EQ(vt_ring_state(&ring), RGATE_STATE_ACTIVE);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 40, 100), 40);
	head = vt_ring_head(&ring);
	EXPECT_EQ(head, 40);
	r = vt_ring_resize(ring.fd, 256, 512, NULL);
	EXPECT_EQ(r, 0);
	/* it belongs to nobody's namespace now */
	vt_nl_open(&nl);
	{
		struct vt_ring_info info;

		EXPECT_EQ(vt_ring_info(&nl, ring.id, &info), -ENOENT);
	}
	vt_ring_close(&ring);
}

static void down_and_up(void)
{
	int tx;

	setup();
	vt_must("ip link set vb down && ip link set vb up");
	tx = vt_tx_open("va");
	vt_tx_burst(tx, 100, 0, 20);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 20, 2000), 20);
}

static const struct vt_case cases[] = {
	{ .name = "device removed under traffic", .fn = removed },
	{ .name = "six times", .fn = removed_many_times },
	{ .name = "device removed while detaching", .fn = removed_and_detached },
	{ .name = "device moved to another namespace", .fn = moved },
	{ .name = "device renamed", .fn = renamed },
	{ .name = "device down and up", .fn = down_and_up },
	{ .name = "namespace deleted under traffic", .fn = netns_deleted },
	{ .name = "a ring outlives its namespace", .fn = ring_outlives_netns },
};

VT_MAIN(cases)
