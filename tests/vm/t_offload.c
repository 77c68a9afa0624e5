// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Frames that are not one piece of memory or not one wire frame: offloads,
 * merged and non-linear skbs. A tap device sets each bit by its vnet header.
 */
#include "lib/vt.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_arp.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#ifndef SO_ZEROCOPY
#define SO_ZEROCOPY 60
#endif
#ifndef MSG_ZEROCOPY
#define MSG_ZEROCOPY 0x4000000
#endif

static struct vt_nl nl;
static struct vt_ring ring;

static const struct rgate_slot *tap_frame(int fd, struct virtio_net_hdr *h,
					  const void *f, size_t len)
{
	struct iovec v[2] = { { h, sizeof(*h) }, { (void *)f, len } };
	const struct rgate_slot *s;

	if (writev(fd, v, 2) != (ssize_t)(len + sizeof(*h)))
		DIE("tap: %s", strerror(errno));
	s = vt_ring_wait(&ring, 3000);
	if (!s)
		DIE("no frame came");
	return s;
}

static void flags_of_the_device(void)
{
	struct virtio_net_hdr h = { 0 };
	const struct rgate_slot *s;
	uint8_t f[1514];
	int fd = vt_tun_open("tap0", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR, 0);

	vt_nl_open(&nl);
	vt_ring_open(&ring, 64, 2048, 0, 0);
	vt_att_simple(&nl, "tap0", ring.id);
	vt_pkt_udp(f, 1000, 1, 0);

	s = tap_frame(fd, &h, f, 1000);
	EXPECT_EQ(s->flags & (RGATE_SLOT_CSUM_OK | RGATE_SLOT_CSUM_PARTIAL |
			      RGATE_SLOT_GRO), 0);
	EXPECT(s->flags & RGATE_SLOT_QUEUE);
	EXPECT_EQ(s->queue, 0);
	EXPECT(!memcmp(vt_slot_data(s), f, 1000));
	vt_ring_done(&ring);

	h.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	h.csum_start = 34;
	h.csum_offset = 6;
	s = tap_frame(fd, &h, f, 1000);
	EXPECT(s->flags & RGATE_SLOT_CSUM_PARTIAL);
	EXPECT(!(s->flags & RGATE_SLOT_CSUM_OK));
	EXPECT(!memcmp(vt_slot_data(s), f, 1000));
	vt_ring_done(&ring);
	close(fd);
}

/* Frames whose bytes lie in page fragments: all lengths and heads */
static void fragments(void)
{
	static uint8_t f[65536], joined[65536];
	static const uint16_t heads[] = { 0, 14, 42, 54, 128, 1000 };
	int fd = vt_tun_open("tap0", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR, 65521);
	unsigned int i;

	vt_nl_open(&nl);
	vt_ring_open(&ring, 256, 4096, RGATE_RING_CHAIN, 0);
	vt_att_simple(&nl, "tap0", ring.id);
	for (i = 0; i < 60; i++) {
		struct virtio_net_hdr h = { .hdr_len = heads[i % 6] };
		size_t len = i == 0 ? 65535 : 1000 + vt_rand() % 64000;
		const struct rgate_slot *s;

		vt_pkt_udp(f, len, i, 0);
		s = tap_frame(fd, &h, f, len);
		EXPECT_EQ(s->wire_len, len);
		EXPECT_EQ(s->l4_off, 34);
		EXPECT_EQ(s->payload_off, 42);
		EXPECT_EQ(vt_ring_join(&ring, s, joined, sizeof(joined)), len);
		if (memcmp(joined, f, len))
			FAIL("contents of %zu bytes with a head of %u", len,
			     heads[i % 6]);
		EXPECT_EQ(s->chain_cnt > 1, len > 4096 - RGATE_SLOT_HDR);
		vt_ring_done(&ring);
	}
	close(fd);
}

/* IFF_NAPI_FRAGS: one fragment per iovec, as a driver does with page pools */
static void napi_frags(void)
{
	static uint8_t f[9000], joined[65536];
	int fd = vt_tun_open("tap0", IFF_TAP | IFF_NO_PI | IFF_NAPI | IFF_NAPI_FRAGS,
			     9000);
	unsigned int i;

	vt_nl_open(&nl);
	vt_ring_open(&ring, 64, 16384, 0, 0);
	vt_att_simple(&nl, "tap0", ring.id);
	for (i = 0; i < 40; i++) {
		size_t cut = 100 + vt_rand() % 900, len = cut + 1118 + vt_rand() % 4000;
		struct iovec v[4] = {
			{ f, cut }, { f + cut, 517 }, { f + cut + 517, 600 },
			{ f + cut + 1117, len - cut - 1117 },
		};
		const struct rgate_slot *s;

		vt_pkt_udp(f, len, i, 0);
		if (writev(fd, v, 4) != (ssize_t)len)
			DIE("tap: %s", strerror(errno));
		s = vt_ring_wait(&ring, 3000);
		REQUIRE(s);
		EXPECT_EQ(s->wire_len, len);
		vt_ring_join(&ring, s, joined, sizeof(joined));
		EXPECT(!memcmp(joined, f, len));
		vt_ring_done(&ring);
	}
	close(fd);
}

static void tun_without_link_layer(void)
{
	int fd = vt_tun_open("tun0", IFF_TUN | IFF_NO_PI, 0);
	const struct rgate_slot *s;
	uint8_t f[1200];
	unsigned int i;

	vt_nl_open(&nl);
	vt_ring_open(&ring, 64, 2048, 0, 0);
	vt_att_simple(&nl, "tun0", ring.id);
	for (i = 0; i < 20; i++) {
		size_t len = VT_PKT_MIN + i * 50;

		vt_pkt_udp(f, len, i, 0);
		REQUIRE(write(fd, f + 14, len - 14) == (ssize_t)len - 14);
		s = vt_ring_wait(&ring, 3000);
		REQUIRE(s);
		EXPECT_EQ(s->dev_type, ARPHRD_NONE);
		EXPECT_EQ(s->len, len - 14);
		EXPECT_EQ(s->protocol, ETH_P_IP);
		EXPECT_EQ(s->l3_off, 0);
		EXPECT_EQ(s->l4_off, 20);
		EXPECT_EQ(s->payload_off, 28);
		EXPECT(!memcmp(vt_slot_data(s), f + 14, len - 14));
		vt_ring_done(&ring);
	}
	close(fd);
}

/* A TCP stream over veth, put together again from what the ring saw */
struct stream {
	uint8_t *data;
	size_t len;
	int how;	/* 0: send, 1: sendfile, 2: MSG_ZEROCOPY */
	int ns;
};

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 131 + (i >> 8) * 17 + (i >> 16));
}

static int tcp_sink(void *arg)
{
	struct stream *t = arg;
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(5001),
	};
	static uint8_t buf[65536];
	size_t got = 0;
	ssize_t n;
	int l, fd, one = 1;

	vt_netns_enter(t->ns);
	l = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(l, (void *)&a, sizeof(a)) || listen(l, 1))
		return 1;
	fd = accept(l, NULL, NULL);
	if (fd < 0)
		return 1;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		got += (size_t)n;
	return got != t->len;
}

static int tcp_source(void *arg)
{
	struct stream *t = arg;
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(5001),
		.sin_addr.s_addr = htonl(0x0a090002),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, f;
	size_t off = 0;
	off_t pos = 0;
	unsigned int tries;

	for (tries = 0; connect(fd, (void *)&a, sizeof(a)) && tries < 200; tries++)
		vt_usleep(20000);
	if (t->how == 1) {
		f = memfd_create("vt", MFD_CLOEXEC);
		if (write(f, t->data, t->len) != (ssize_t)t->len)
			return 1;
		while (pos < (off_t)t->len)
			if (sendfile(fd, f, &pos, t->len - (size_t)pos) < 0)
				return 1;
	} else {
		if (t->how == 2 && setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one,
					      sizeof(one)))
			return 1;
		while (off < t->len) {
			ssize_t n = send(fd, t->data + off, t->len - off,
					 t->how == 2 ? MSG_ZEROCOPY : 0);

			if (n < 0)
				return 1;
			off += (size_t)n;
		}
	}
	shutdown(fd, SHUT_WR);
	/* until the other side has read all */
	while (read(fd, &one, 1) > 0)
		;
	return 0;
}

static void tcp_stream(int how, size_t total, bool want_gro)
{
	static uint8_t f[65536 * 2];
	struct stream t = { .how = how, .len = total };
	uint32_t isn = 0, seq;
	uint8_t *seen;
	uint64_t merged = 0, end;
	size_t got = 0, i;
	pid_t snk, src;
	int old = vt_netns_self();
	bool have_isn = false;

	t.data = mmap(NULL, total, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	seen = calloc(total, 1);
	REQUIRE(t.data != MAP_FAILED && seen);
	for (i = 0; i < total; i++)
		t.data[i] = byte_at(i);
	t.ns = vt_netns_new();
	vt_veth_ns("va", "vb", t.ns, 0);
	if (want_gro)
		vt_netns_must(t.ns, "ethtool -K vb gro on");
	/* the ring is the receiving namespace's */
	vt_netns_enter(t.ns);
	vt_nl_open(&nl);
	vt_ring_open(&ring, 1024, 4096, RGATE_RING_CHAIN, 0);
	{
		struct vt_att a = {
			.ifname = "vb", .rings = { ring.id }, .n = 1,
			.action = RGATE_ACTION_MIRROR,
		};

		REQUIRE(vt_att_new(&nl, &a) > 0);
	}
	vt_netns_enter(old);
	snk = vt_fork(tcp_sink, &t);
	src = vt_fork(tcp_source, &t);
	end = vt_now() + 20000000000ULL;
	while (got < total && vt_now() < end) {
		const struct rgate_slot *s = vt_ring_wait(&ring, 2000);
		size_t n, pay;

		if (!s)
			break;
		n = vt_ring_join(&ring, s, f, sizeof(f));
		EXPECT_EQ(n, s->wire_len);
		if (s->ip_proto != IPPROTO_TCP || s->l4_off == RGATE_OFF_NONE) {
			vt_ring_done(&ring);
			continue;
		}
		memcpy(&seq, f + s->l4_off + 4, 4);
		seq = ntohl(seq);
		if (f[s->l4_off + 13] & 2) {
			isn = seq + 1;
			have_isn = true;
		}
		pay = n - s->payload_off;
		if (n > 1514)
			EXPECT(s->flags & RGATE_SLOT_GRO);
		merged += !!(s->flags & RGATE_SLOT_GRO);
		for (i = 0; have_isn && i < pay; i++) {
			size_t at = seq - isn + i;

			if (at >= total)
				break;
			if (f[s->payload_off + i] != byte_at(at)) {
				FAIL("stream byte %zu is wrong", at);
				break;
			}
			got += !seen[at];
			seen[at] = 1;
		}
		vt_ring_done(&ring);
	}
	EXPECT_EQ(got, total);
	EXPECT_EQ(vt_wait(src, 10000), 0);
	EXPECT_EQ(vt_wait(snk, 10000), 0);
	if (want_gro)
		EXPECT_GE(merged, 1);
	vt_note("%zu bytes in %llu frames, %llu merged", total,
		(unsigned long long)vt_ring_stats(&ring).delivered,
		(unsigned long long)merged);
	free(seen);
}

static void tcp_gso(void)
{
	tcp_stream(0, 1 << 20, true);
}

static void tcp_sendfile(void)
{
	tcp_stream(1, 1 << 20, true);
}

static void tcp_zerocopy(void)
{
	tcp_stream(2, 1 << 19, true);
}

/* Wire-sized segments merged by the receiver's GRO, checksums verified there */
static void gro_merges(void)
{
	int ns = vt_netns_new(), old = vt_netns_self();
	uint64_t merged = 0, ok = 0, total = 0, end;
	struct stream t = { .len = 1 << 19, .ns = ns };
	pid_t snk, src;

	t.data = calloc(1, t.len);
	REQUIRE(t.data);
	vt_veth_ns("va", "vb", ns, 0);
	if (vt_sh("ethtool -K va tso off gso off tx off 2>/dev/null >&2"))
		vt_skip("ethtool cannot switch offloads");
	vt_netns_must(ns, "ethtool -K vb gro on");
	vt_netns_enter(ns);
	vt_nl_open(&nl);
	vt_ring_open(&ring, 1024, 2048, RGATE_RING_CHAIN, 0);
	{
		struct vt_att a = {
			.ifname = "vb", .rings = { ring.id }, .n = 1,
			.action = RGATE_ACTION_MIRROR,
		};

		REQUIRE(vt_att_new(&nl, &a) > 0);
	}
	vt_netns_enter(old);
	snk = vt_fork(tcp_sink, &t);
	src = vt_fork(tcp_source, &t);
	end = vt_now() + 20000000000ULL;
	while (total < t.len && vt_now() < end) {
		const struct rgate_slot *s = vt_ring_wait(&ring, 2000);

		if (!s)
			break;
		if (s->ip_proto == IPPROTO_TCP && s->payload_off != RGATE_OFF_NONE) {
			total += s->wire_len - s->payload_off;
			merged += !!(s->flags & RGATE_SLOT_GRO);
			ok += !!(s->flags & RGATE_SLOT_CSUM_OK);
			/* what came over a wire was not sent here */
			EXPECT(!(s->flags & RGATE_SLOT_CSUM_PARTIAL));
			if (s->flags & RGATE_SLOT_GRO)
				EXPECT(s->flags & RGATE_SLOT_CSUM_OK);
		}
		vt_ring_done(&ring);
	}
	EXPECT_GE(total, t.len);
	EXPECT_EQ(vt_wait(src, 10000), 0);
	EXPECT_EQ(vt_wait(snk, 10000), 0);
	vt_note("merged %llu, checksum verified %llu", (unsigned long long)merged,
		(unsigned long long)ok);
	EXPECT_GE(merged, 1);
	EXPECT_GE(ok, 1);
}

static const struct vt_case cases[] = {
	{ .name = "checksum flags as the device says", .fn = flags_of_the_device },
	{ .name = "frames of page fragments up to 64 KB, chained", .fn = fragments },
	{ .name = "a fragment per iovec", .fn = napi_frags },
	{ .name = "tun: frames without link layer", .fn = tun_without_link_layer },
	{ .name = "TCP over veth with segmentation offload", .fn = tcp_gso, .secs = 60 },
	{ .name = "TCP from sendfile", .fn = tcp_sendfile, .secs = 60 },
	{ .name = "TCP with MSG_ZEROCOPY", .fn = tcp_zerocopy, .secs = 60 },
	{ .name = "segments merged by GRO", .fn = gro_merges, .secs = 60 },
};

VT_MAIN(cases)
