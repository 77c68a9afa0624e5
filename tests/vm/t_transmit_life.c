// SPDX-License-Identifier: MIT OR GPL-2.0
/* Transmit rings while queues are slow, users hostile, and devices and namespaces end. */
#include "lib/vt.h"
#include "lib/vt_send.h"

#include <linux/virtio_net.h>

static struct vt_nl nl, ev_nl;
static struct vt_send s;
static uint32_t att;

static void setup(uint32_t slots, uint32_t slot_size)
{
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_send_open(&s, slots, slot_size);
	att = vt_send_bind(&nl, &s, "va");
}

/* A queue that lets next to nothing through, and keeps what it has */
static void slow_queue(const char *dev)
{
	if (vt_sh("tc qdisc add dev %s root tbf rate 8kbit burst 2000 limit 4000000", dev))
		vt_skip("no tbf here");
}

static void flight(void)
{
	struct rgate_send out;
	struct pollfd p;
	unsigned int i;

	setup(64, 256);
	slow_queue("va");
	for (i = 0; i < 64; i++)
		EXPECT(vt_send_udp(&s, 150, i));
	EXPECT_EQ(vt_send_kick(&s, 0, &out), 64);
	EXPECT_GE(out.in_flight, 40);
	EXPECT_LE(out.in_flight, 64);
	/* more frames, until as many as there are slots are under way */
	for (i = 0; i < 64; i++)
		EXPECT(vt_send_udp(&s, 150, i));
	while (vt_send_kick(&s, 0, &out) > 0)
		EXPECT_LE(out.in_flight, 64);
	EXPECT_EQ(vt_send_kick(&s, 0, NULL), -EAGAIN);
	EXPECT_LE(s.r.prod->head, 64 + 30);
	p = (struct pollfd){ .fd = s.r.fd, .events = POLLIN | POLLOUT };
	EXPECT_EQ(poll(&p, 1, 0), 0);
	/* what the queue throws away makes room, and wakes */
	vt_must("(sleep 0.3; tc qdisc del dev va root) &");
	EXPECT_EQ(poll(&p, 1, 10000), 1);
	EXPECT_EQ(p.revents, POLLOUT);
	EXPECT(VT_UNTIL(vt_send_kick(&s, 0, &out) >= 0 && out.head == 128 &&
			!out.in_flight, 5000));
}

struct hostile {
	struct vt_send *s;
	int stop;
};

/* Rewrites whatever the kernel reads while it does */
static void *rewrite(void *arg)
{
	struct hostile *h = arg;

	vt_pin(1);
	while (!__atomic_load_n(&h->stop, __ATOMIC_RELAXED)) {
		struct rgate_tx_slot *slot = vt_send_slot(h->s, vt_rand());
		uint64_t head = __atomic_load_n(&h->s->r.prod->head, __ATOMIC_ACQUIRE);

		switch (vt_rand() % 6) {
		case 0:
			slot->len = (uint32_t)vt_rand() >> vt_rand() % 32;
			break;
		case 1:
			slot->flags = (uint32_t)vt_rand() & RGATE_SLOT_TX_FLAGS;
			break;
		case 2:
			slot->seq = vt_rand();
			break;
		case 3:
			vt_pkt_fill((uint8_t *)slot + 40, 24, vt_rand());
			break;
		case 4:
			vt_send_tcp(vt_send_data(slot), (uint32_t)vt_rand() % 1000);
			slot->vnet_flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
			slot->gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
			slot->gso_size = (uint16_t)vt_rand() % 300;
			slot->csum_start = 34;
			slot->csum_offset = 16;
			break;
		default:
			h->s->r.credits[vt_rand() % 2] = vt_rand();
		}
		/* whatever it is by now, the kernel takes it */
		vt_send_slot(h->s, head)->seq = vt_ring_lap(&h->s->r, head);
	}
	return NULL;
}

static void rewritten(void)
{
	struct hostile h = { .s = &s };
	uint64_t end, most, kicks = 0, sent = 0;
	struct rgate_send out;
	pthread_t th;
	unsigned int i;

	/* Beside who rewrites: on one CPU they would see each other's slots at each switch only. */
	vt_pin(0);
	setup(64, 2048);
	vt_send_no_offload();
	for (i = 0; i < 64; i++)
		vt_send_udp(&s, 500, i);
	REQUIRE(!pthread_create(&th, NULL, rewrite, &h));
	end = vt_now() + 3000000000ULL;
	/* On a busy machine the other thread's turns are few. */
	most = end + 30000000000ULL;
	for (; vt_now() < end || (sent < 100 && vt_now() < most); kicks++)
		if (vt_send_kick(&s, 0, &out) > 0)
			sent += out.sent;
	h.stop = 1;
	pthread_join(th, NULL);
	vt_note("%llu kicks, %llu frames sent", (unsigned long long)kicks,
		(unsigned long long)sent);
	EXPECT_GE(sent, 100);
	/* all that went out was one of this ring's, and all of it is gone by now */
	EXPECT_EQ(vt_att_stat(&nl, att, RGATE_A_ATT_STATS_DELIVERED), sent);
	EXPECT(VT_UNTIL(vt_send_kick(&s, 1, &out) >= 0 && !out.in_flight, 3000));
}

/* Kicks in a thread, and frames for it */
static void *feed(void *arg)
{
	struct hostile *h = arg;
	uint64_t seq = 0;

	vt_pin(1);
	while (!__atomic_load_n(&h->stop, __ATOMIC_RELAXED)) {
		while (vt_send_udp(h->s, 180, seq))
			seq++;
		if (vt_send_kick(h->s, 0, NULL) <= 0)
			vt_usleep(200);
	}
	return NULL;
}

static void device_gone(void)
{
	struct hostile h = { .s = &s };
	struct rgate_send out;
	struct vt_event ev;
	pthread_t th;
	unsigned int i;
	int fd;

	vt_nl_open(&nl);
	vt_nl_open(&ev_nl);
	REQUIRE(!vt_nl_subscribe(&ev_nl));
	vt_send_open(&s, 64, 256);
	REQUIRE(!pthread_create(&th, NULL, feed, &h));
	for (i = 0; i < 2; i++) {
		vt_veth("va", "vb", 0);
		att = vt_send_bind(&nl, &s, "va");
		vt_usleep(30000);
		vt_must("ip link del %s", i & 1 ? "va" : "vb");
		EXPECT_EQ(vt_nl_event_of(&ev_nl, RGATE_EVENT_DEVICE_GONE, att, &ev, 3000), 1);
	}
	h.stop = 1;
	pthread_join(th, NULL);
	EXPECT_GE(vt_ring_stats(&s.r).delivered, 1);
	EXPECT_EQ(vt_send_kick(&s, 0, NULL), -ENOTCONN);
	/* the ring is as good as before */
	vt_veth("va", "vb", 0);
	vt_send_bind(&nl, &s, "va");
	fd = vt_stack_open("vb");
	EXPECT(VT_UNTIL(vt_send_kick(&s, 0, &out) >= 0 && out.head == s.pos &&
			!out.in_flight, 5000));
	(void)vt_stack_drain(fd, 200);
	EXPECT(vt_send_udp(&s, 100, 1));
	EXPECT_EQ(vt_send_kick(&s, 0, NULL), 1);
	EXPECT_EQ(vt_stack_drain(fd, 2000), 1);
}

/* The namespace ends while one of its rings is bound; who has it open goes on */
static void namespace_gone(void)
{
	int mine = vt_netns_self(), ns = vt_netns_new();
	struct hostile h = { .s = &s };
	pthread_t th;

	vt_netns_enter(ns);
	setup(64, 256);
	vt_nl_close(&nl);
	vt_netns_enter(mine);
	REQUIRE(!pthread_create(&th, NULL, feed, &h));
	vt_usleep(50000);
	EXPECT_GE(vt_ring_stats(&s.r).delivered, 1);
	close(ns);
	EXPECT(VT_UNTIL(vt_send_kick(&s, 0, NULL) == -ENOTCONN, 10000));
	h.stop = 1;
	pthread_join(th, NULL);
}

/* Frames in a queue outlive their ring, and hold the module until they are gone */
static void module_in_use(void)
{
	struct rgate_send out;
	unsigned int i;
	int err;

	setup(64, 256);
	slow_queue("va");
	for (i = 0; i < 64; i++)
		EXPECT(vt_send_udp(&s, 150, i));
	EXPECT_EQ(vt_send_kick(&s, 0, &out), 64);
	EXPECT_GE(out.in_flight, 40);
	vt_ring_close(&s.r);
	vt_nl_close(&nl);
	err = vt_rmmod();
	EXPECT(err == -EWOULDBLOCK || err == -EBUSY);
	if (!err)
		REQUIRE(!vt_insmod(""));
	/* the frames end with their queue */
	vt_must("tc qdisc del dev va root");
	EXPECT(VT_UNTIL(!vt_rmmod(), 10000));
	EXPECT(!vt_loaded());
	REQUIRE(!vt_insmod(""));
	/* once more, with a delay, where the queue lets go of them at once */
	if (vt_sh("tc qdisc add dev va root netem delay 1s"))
		vt_skip("no netem here");
	vt_nl_open(&nl);
	vt_send_open(&s, 64, 256);
	att = vt_send_bind(&nl, &s, "va");
	for (i = 0; i < 64; i++)
		EXPECT(vt_send_udp(&s, 150, i));
	EXPECT_EQ(vt_send_kick(&s, 0, &out), 64);
	vt_ring_close(&s.r);
	vt_nl_close(&nl);
	EXPECT(VT_UNTIL(!vt_rmmod(), 10000));
	vt_usleep(1200000);
	REQUIRE(!vt_insmod(""));
}

/* @arg: int, is set at the end */
static void *toggle(void *arg)
{
	vt_pin(1);
	EXPECT_EQ(vt_sh("ip -batch /tmp/toggle"), 0);
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * What is below a device says how much room it wants before a frame, at any time: here a
 * bridge, of which the peer is a port now and then. Frames of 688 bytes leave none in what
 * the kernel allocates for them.
 */
static void headroom(void)
{
	uint64_t frames = 0;
	pthread_t th;
	int done = 0;

	vt_pin(0);
	setup(64, 1024);
	vt_send_no_offload();
	if (vt_sh("modprobe -qa bridge vxlan; ip link add br0 type bridge &&"
		  " ip link add vx0 type vxlan id 1 dstport 4789 && ip link set vx0 master br0"))
		vt_skip("no bridge and vxlan here");
	vt_must("for i in $(seq 12); do echo link set vb master br0; echo link set vb nomaster;"
		" done >/tmp/toggle");
	REQUIRE(!pthread_create(&th, NULL, toggle, &done));
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		while (vt_send_udp(&s, 688, frames))
			frames++;
		(void)vt_send_kick(&s, 0, NULL);
	}
	pthread_join(th, NULL);
	vt_note("%llu frames", (unsigned long long)frames);
	EXPECT_GE(frames, 64);
	unlink("/tmp/toggle");
	vt_must("ip link del br0; ip link del vx0");
}

static const struct vt_case cases[] = {
	{ .name = "cap of frames under way", .fn = flight },
	{ .name = "slots rewritten under the kernel", .fn = rewritten, .secs = 60 },
	{ .name = "room that a device wants changes", .fn = headroom, .secs = 60 },
	{ .name = "device removed while bound", .fn = device_gone },
	{ .name = "namespace removed while bound", .fn = namespace_gone },
	{ .name = "frames under way hold the module", .fn = module_in_use },
};

VT_MAIN(cases)
