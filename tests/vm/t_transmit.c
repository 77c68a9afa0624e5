// SPDX-License-Identifier: MIT OR GPL-2.0
/* What users put into a transmit ring leaves through its device, and nothing else does. */
#include "lib/vt.h"
#include "lib/vt_send.h"

#include <arpa/inet.h>
#include <linux/capability.h>
#include <linux/if_arp.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/tcp.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static struct vt_nl nl;
static struct vt_send s;
static uint32_t att;

static void setup(uint32_t slots, uint32_t slot_size)
{
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_send_open(&s, slots, slot_size);
	att = vt_send_bind(&nl, &s, "va");
}

/* All that vb gets */
static int listen_vb(void)
{
	return vt_stack_open("vb");
}

/* The next frame within @ms; its length, or -1 */
static ssize_t hear(int fd, uint8_t *buf, size_t size, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, ms * (int)vt_slow()) <= 0)
		return -1;
	return recv(fd, buf, size, 0);
}

/* Our frames until @n came or nothing more does */
static unsigned int hear_udp(int fd, struct vt_seen *seen, unsigned int n)
{
	static uint8_t buf[65536];
	unsigned int got = 0;
	uint64_t seq;
	ssize_t len;

	while (got < n && (len = hear(fd, buf, sizeof(buf), 1000)) > 0) {
		if (!vt_pkt_check(buf, (size_t)len, &seq)) {
			FAIL("a frame of %zd bytes is not one of ours", len);
			continue;
		}
		vt_seen_add(seen, seq);
		got++;
	}
	return got;
}

static void create(void)
{
	static const struct { uint32_t flags, policy; } bad[] = {
		{ RGATE_RING_TRANSMIT, RGATE_POLICY_DROP },
		{ RGATE_RING_FLAGS, RGATE_POLICY_DROP },
		{ RGATE_RING_TRANSMIT | RGATE_RING_CHAIN, RGATE_POLICY_DROP },
		{ RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS | RGATE_RING_COARSE,
		  RGATE_POLICY_DROP },
		{ RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS, RGATE_POLICY_OVERWRITE },
		{ RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS, RGATE_POLICY_PASS },
	};
	struct rgate_create c;
	struct vt_ring rx;
	unsigned int i;
	int fd = vt_dev_open();

	for (i = 0; i < VT_COUNT(bad); i++) {
		c = vt_create_req();
		c.flags = bad[i].flags;
		c.policy = bad[i].policy;
		EXPECT_ERRNO(ioctl(fd, RGATE_IOC_CREATE, &c), EINVAL);
	}
	close(fd);
	vt_send_open(&s, 64, 256);
	EXPECT_EQ(s.r.prod->features, RGATE_FEAT_TRANSMIT);
	EXPECT_EQ(s.r.prod->owners_off, 0);
	EXPECT_EQ(vt_send_kick(&s, 0, NULL), -ENOTCONN);
	EXPECT_EQ(vt_ring_resize(s.r.fd, 128, 256, NULL), -EOPNOTSUPP);
	/* rings of the other kind send nothing */
	vt_ring_open(&rx, 64, 256, RGATE_RING_RW_SLOTS, 0);
	EXPECT_EQ(vt_send_kick(&(struct vt_send){ .r = rx }, 0, NULL), -EOPNOTSUPP);
}

static void arguments(void)
{
	struct rgate_send arg;
	char path[64];
	size_t i;
	int fd;

	setup(64, 256);
	for (i = 4; i < sizeof(arg); i += 4) {
		memset(&arg, 0, sizeof(arg));
		((uint8_t *)&arg)[i] = 1;
		EXPECT_ERRNO(ioctl(s.r.fd, RGATE_IOC_SEND, &arg), EINVAL);
	}
	EXPECT_ERRNO(ioctl(s.r.fd, RGATE_IOC_SEND, (void *)8), EFAULT);
	fd = vt_dev_open();
	memset(&arg, 0, sizeof(arg));
	EXPECT_ERRNO(ioctl(fd, RGATE_IOC_SEND, &arg), ENXIO);
	close(fd);
	/* who may only look sends nothing */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s.r.fd);
	fd = open(RGATE_DEVICE, O_RDONLY | O_CLOEXEC);
	REQUIRE(fd >= 0);
	REQUIRE(!ioctl(fd, RGATE_IOC_ATTACH, &(struct rgate_attach){ .fd = s.r.fd }));
	EXPECT_ERRNO(ioctl(fd, RGATE_IOC_SEND, &arg), EBADF);
	close(fd);
	vt_must("ip link set va down");
	EXPECT(vt_send_udp(&s, 100, 0));
	EXPECT_EQ(vt_send_kick(&s, 0, NULL), -ENETDOWN);
	EXPECT_EQ(s.r.prod->head, 0);
}

/* Kinds do not mix, a ring has one device, and only what means something is taken */
static void binding(void)
{
	struct vt_att a = { .ifname = "va", .n = 1, .kind = RGATE_KIND_TRANSMIT };
	struct vt_att_info info;
	struct vt_send s2;
	struct vt_ring rx;
	int id;

	setup(64, 256);
	EXPECT_EQ(vt_att_get(&nl, att, &info), 0);
	EXPECT_EQ(info.kind, RGATE_KIND_TRANSMIT);
	EXPECT_EQ(info.rings[0], s.r.id);
	EXPECT_EQ(vt_send_try_bind(&nl, &s, "vb"), -EBUSY);
	vt_ring_open(&rx, 64, 256, RGATE_RING_RW_SLOTS, 0);
	a.rings[0] = rx.id;
	EXPECT_EQ(vt_att_new(&nl, &a), -EINVAL);
	EXPECT_EQ(vt_att_join(&nl, att, rx.id), -EINVAL);
	vt_send_open(&s2, 64, 256);
	a.rings[0] = s2.r.id;
	a.kind = RGATE_KIND_HOOK;
	EXPECT_EQ(vt_att_new(&nl, &a), -EINVAL);
	a.kind = RGATE_KIND_TRANSMIT;
	a.action = RGATE_ACTION_MIRROR;
	EXPECT_EQ(vt_att_new(&nl, &a), -EOPNOTSUPP);
	a.action = 0;
	a.sample = 2;
	EXPECT_EQ(vt_att_new(&nl, &a), -EOPNOTSUPP);
	a.sample = 0;
	a.prio = 1;
	EXPECT_EQ(vt_att_new(&nl, &a), -EOPNOTSUPP);
	a.prio = 0;
	/* one that fails with its second ring leaves the first free */
	a.rings[1] = s.r.id;
	a.n = 2;
	EXPECT_EQ(vt_att_new(&nl, &a), -EBUSY);
	a.n = 1;
	id = vt_att_new(&nl, &a);
	EXPECT_GE(id, 1);
	EXPECT_EQ(vt_att_join(&nl, att, s2.r.id), -EBUSY);
	EXPECT_EQ(vt_att_del(&nl, (uint32_t)id), 0);
	EXPECT_EQ(vt_att_join(&nl, att, s2.r.id), 0);
	EXPECT(vt_send_udp(&s2, 100, 0));
	EXPECT_EQ(vt_send_kick(&s2, 0, NULL), 1);
	EXPECT_EQ(vt_att_leave(&nl, att, s2.r.id), 0);
	EXPECT_EQ(vt_send_kick(&s2, 0, NULL), -ENOTCONN);
	EXPECT_EQ(vt_att_del(&nl, att), 0);
	EXPECT_EQ(vt_send_kick(&s, 0, NULL), -ENOTCONN);
}

/* As a user with no more than the capabilities of @mask */
static int bind_with(uint64_t mask)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = {
		{ .effective = (uint32_t)mask, .permitted = (uint32_t)mask },
	};
	struct vt_nl mine;

	if (syscall(SYS_capset, &h, d))
		return 1;
	vt_nl_open(&mine);
	return -vt_send_try_bind(&mine, &s, "va");
}

static int child_admin(void *arg)
{
	(void)arg;
	return bind_with(1ULL << CAP_NET_ADMIN) == EPERM ? 0 : 1;
}

static int child_raw(void *arg)
{
	(void)arg;
	return bind_with(1ULL << CAP_NET_RAW) == EPERM ? 0 : 1;
}

static int child_both(void *arg)
{
	(void)arg;
	return bind_with(1ULL << CAP_NET_RAW | 1ULL << CAP_NET_ADMIN) < 0 ? 0 : 1;
}

static int child_user(void *arg)
{
	struct vt_nl mine;

	(void)arg;
	REQUIRE(!setgid(12345) && !setuid(12345));
	vt_nl_open(&mine);
	return vt_send_try_bind(&mine, &s, "va") == -EPERM ? 0 : 1;
}

/* A device does not become one with other headers than those that were looked at */
static void type_stays(void)
{
	int fd = vt_tun_open("tap0", IFF_TAP | IFF_NO_PI, 0);
	uint32_t id;

	vt_nl_open(&nl);
	vt_send_open(&s, 64, 256);
	id = vt_send_bind(&nl, &s, "tap0");
	vt_must("ip link set tap0 down");
	EXPECT_EQ(ioctl(fd, TUNSETLINK, ARPHRD_NONE) ? -errno : 0, -EPERM);
	EXPECT_EQ(vt_att_del(&nl, id), 0);
	EXPECT_EQ(ioctl(fd, TUNSETLINK, ARPHRD_NONE) ? -errno : 0, 0);
	close(fd);
}

static void rights(void)
{
	vt_veth("va", "vb", 0);
	vt_send_open(&s, 64, 256);
	EXPECT_EQ(vt_wait(vt_fork(child_user, NULL), 5000), 0);
	EXPECT_EQ(vt_wait(vt_fork(child_admin, NULL), 5000), 0);
	EXPECT_EQ(vt_wait(vt_fork(child_raw, NULL), 5000), 0);
	EXPECT_EQ(vt_wait(vt_fork(child_both, NULL), 5000), 0);
}

/* Every length, several laps of a small ring, byte by byte */
static void all_lengths(void)
{
	const unsigned int n = 1514 - VT_PKT_MIN + 1;
	struct vt_seen seen;
	unsigned int sent = 0, got = 0;
	struct rgate_send out;
	struct rgate_stats st;
	int fd;

	setup(64, 2048);
	fd = listen_vb();
	vt_seen_init(&seen, n);
	while (sent < n) {
		unsigned int now = 0;

		while (sent < n && vt_send_udp(&s, VT_PKT_MIN + sent, sent)) {
			sent++;
			now++;
		}
		REQUIRE(now);
		REQUIRE_EQ(vt_send_kick(&s, 0, &out), now);
		EXPECT_EQ(out.sent, now);
		EXPECT_EQ(out.head, s.pos);
		EXPECT_EQ(s.r.prod->head, s.pos);
		got += hear_udp(fd, &seen, now);
	}
	EXPECT_EQ(got, n);
	EXPECT_EQ(seen.got, n);
	EXPECT_EQ(seen.dup + seen.alien, 0);
	st = vt_ring_stats(&s.r);
	EXPECT_EQ(st.delivered, n);
	EXPECT_EQ(vt_att_stat(&nl, att, RGATE_A_ATT_STATS_SEEN), n);
	EXPECT_EQ(vt_att_stat(&nl, att, RGATE_A_ATT_STATS_DELIVERED), n);
	EXPECT_EQ(vt_att_stat(&nl, att, RGATE_A_ATT_STATS_BYTES),
		  (uint64_t)n * (VT_PKT_MIN + 1514) / 2);
	close(fd);
}

/* As many are under way as may be, until whoever has them is done with one. */
static int kick_when_through(struct rgate_send *out)
{
	const uint64_t end = vt_now() + 10000000000ULL;
	int n;

	do {
		n = vt_send_kick(&s, 0, out);
	} while (n == -EAGAIN && vt_now() < end);
	return n;
}

/* A kick takes what it may, and returns no batch that is not through */
static void budget(void)
{
	struct rgate_send out;
	unsigned int i;

	setup(64, 256);
	for (i = 0; i < 64; i++)
		EXPECT(vt_send_udp(&s, 100, i));
	EXPECT(!vt_send_next(&s));
	EXPECT_EQ(vt_send_kick(&s, 1, &out), 1);
	EXPECT_EQ(vt_send_kick(&s, 30, &out), 30);
	EXPECT(!vt_send_next(&s));
	EXPECT_EQ(vt_send_kick(&s, 1, &out), 1);
	EXPECT(vt_send_next(&s));
	EXPECT_EQ(vt_send_kick(&s, 1000, &out), 32);
	EXPECT_EQ(vt_send_kick(&s, 0, &out), 0);
	/* filler and what cannot be sent is returned as well */
	for (i = 0; i < 32; i++) {
		REQUIRE(vt_send_next(&s));
		vt_send_publish(&s, i & 1 ? 0 : UINT32_MAX, i & 1 ? RGATE_SLOT_PAD : 0);
	}
	EXPECT_EQ(kick_when_through(&out), 32);
	EXPECT_EQ(out.sent, 0);
	EXPECT_EQ(vt_att_stat(&nl, att, RGATE_A_ATT_STATS_BAD_LENGTH), 16);
	EXPECT_EQ(vt_ring_stats(&s.r).dropped_fault, 16);
	REQUIRE(vt_send_next(&s));
	vt_send_publish(&s, 100, RGATE_SLOT_HASH);
	EXPECT_EQ(kick_when_through(&out), 1);
	EXPECT_EQ(vt_att_stat(&nl, att, RGATE_A_ATT_STATS_BAD_FLAGS), 1);
	EXPECT_EQ(vt_att_stat(&nl, att, RGATE_A_ATT_STATS_SEEN), 64 + 16 + 1);
}

/* Of 64 frames those with an even number come out, and no other one does. */
static void even_arrive(int fd)
{
	struct vt_seen seen;
	unsigned int i;

	vt_seen_init(&seen, 64);
	for (i = 0; i < 64; i++)
		EXPECT(vt_send_udp(&s, 100, i));
	EXPECT_EQ(vt_send_kick(&s, 0, NULL), 64);
	EXPECT_EQ(hear_udp(fd, &seen, 32), 32);
	for (i = 0; i < 64; i++)
		EXPECT_EQ(seen.map[i], !(i & 1));
	EXPECT_EQ(vt_stack_drain(fd, 100), 0);
}

static void filter(void)
{
	/* frames with an even sequence number: its lowest byte, behind 42 + 8 others */
	static const struct sock_filter even[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 50),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 65535),
	};
	struct vt_att a = {
		.ifname = "va", .n = 1, .kind = RGATE_KIND_TRANSMIT,
		.filter = even, .nfilter = VT_COUNT(even),
	};
	int id;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_send_open(&s, 64, 256);
	a.rings[0] = s.r.id;
	id = vt_att_new(&nl, &a);
	REQUIRE(id > 0);
	even_arrive(listen_vb());
	EXPECT_EQ(vt_att_stat(&nl, (uint32_t)id, RGATE_A_ATT_STATS_FILTERED), 32);
}

/* The device's queue has its say: a filter of traffic control drops half */
static void queue(void)
{
	setup(64, 256);
	if (vt_sh("tc qdisc add dev va root handle 1: prio && "
		  "tc filter add dev va parent 1: u32 match u8 1 1 at 36 action drop"))
		vt_skip("no prio, u32 or gact here");
	even_arrive(listen_vb());
	EXPECT_EQ(vt_sh("tc -s qdisc show dev va | grep -q 'dropped 32'"), 0);
}

/* Is the checksum of this TCP segment right? */
static bool tcp_right(const uint8_t *frame, size_t len)
{
	uint32_t pseudo = 0x0a09 + 1 + 0x0a09 + 2 + IPPROTO_TCP + (uint32_t)(len - 34);

	return !vt_csum(frame + 34, len - 34, pseudo);
}

static void offload(uint32_t data, uint16_t gso_size)
{
	struct rgate_tx_slot *slot = vt_send_next(&s);

	REQUIRE(slot);
	vt_send_tcp(vt_send_data(slot), data);
	slot->vnet_flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	slot->csum_start = 34;
	slot->csum_offset = offsetof(struct tcphdr, check);
	slot->gso_type = gso_size ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_NONE;
	slot->gso_size = gso_size;
	vt_send_publish(&s, 54 + data, RGATE_SLOT_OFFLOAD);
}

static void checksum(void)
{
	uint8_t buf[2048];
	int fd;

	setup(64, 2048);
	vt_send_no_offload();
	fd = listen_vb();
	offload(301, 0);
	EXPECT_EQ(vt_send_kick(&s, 0, NULL), 1);
	EXPECT_EQ(hear(fd, buf, sizeof(buf), 2000), 355);
	EXPECT(tcp_right(buf, 355));
	/* one that lies outside of the frame is none */
	offload(301, 0);
	vt_send_slot(&s, s.pos - 1)->csum_start = 354;
	EXPECT_EQ(vt_send_kick(&s, 0, NULL), 1);
	EXPECT_EQ(vt_att_stat(&nl, att, RGATE_A_ATT_STATS_BAD_FLAGS), 1);
	EXPECT_EQ(vt_stack_drain(fd, 100), 0);
}

static void segments(void)
{
	static uint8_t buf[65536], want[65536], got[65536];
	const uint32_t data = 60000;
	uint32_t have = 0, n = 0;
	ssize_t len;
	int fd;

	setup(64, 65536);
	vt_send_no_offload();
	fd = listen_vb();
	offload(data, 1000);
	EXPECT_EQ(vt_send_kick(&s, 0, NULL), 1);
	while (have < data && (len = hear(fd, buf, sizeof(buf), 2000)) > 54) {
		struct tcphdr tcp;

		EXPECT_LE(len, 1054);
		EXPECT(tcp_right(buf, (size_t)len));
		memcpy(&tcp, buf + 34, sizeof(tcp));
		REQUIRE(ntohl(tcp.seq) + (uint32_t)len - 54 <= data);
		memcpy(got + ntohl(tcp.seq), buf + 54, (size_t)len - 54);
		have += (uint32_t)len - 54;
		n++;
	}
	EXPECT_EQ(have, data);
	EXPECT_EQ(n, 60);
	vt_pkt_fill(want, data, 7);
	EXPECT(!memcmp(want, got, data));
	/* the same without being asked to cut it is too long */
	offload(data, 0);
	EXPECT_EQ(vt_send_kick(&s, 0, NULL), 1);
	EXPECT_EQ(vt_att_stat(&nl, att, RGATE_A_ATT_STATS_BAD_LENGTH), 1);
}

static const struct vt_case cases[] = {
	{ .name = "what a transmit ring is", .fn = create },
	{ .name = "arguments of the kick", .fn = arguments },
	{ .name = "binding", .fn = binding },
	{ .name = "the type of a bound device stays", .fn = type_stays },
	{ .name = "who may bind", .fn = rights },
	{ .name = "every length, byte by byte", .fn = all_lengths },
	{ .name = "budget, filler, frames that cannot be", .fn = budget },
	{ .name = "egress filter", .fn = filter },
	{ .name = "the device's queue", .fn = queue },
	{ .name = "a checksum that is asked for", .fn = checksum },
	{ .name = "segments that are asked for", .fn = segments },
};

VT_MAIN(cases)
