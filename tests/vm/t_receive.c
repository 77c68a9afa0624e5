// SPDX-License-Identifier: MIT OR GPL-2.0
/* What arrives at a device stands in the ring: every byte, every header field. */
#include "lib/vt.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_arp.h>
#include <linux/if_packet.h>
#include <netinet/in.h>

static struct vt_nl nl;
static struct vt_ring ring;
static uint32_t att;
static int tx;

/* va -> vb, a ring on vb */
static void setup(uint32_t slots, uint32_t slot_size, uint32_t flags, unsigned int mtu)
{
	vt_veth("va", "vb", mtu);
	vt_nl_open(&nl);
	vt_ring_open(&ring, slots, slot_size, flags, 0);
	att = vt_att_simple(&nl, "vb", ring.id);
	tx = vt_tx_open("va");
}

static const struct rgate_slot *expect_frame(const void *frame, size_t len)
{
	const struct rgate_slot *s = vt_ring_wait(&ring, 3000);

	if (!s)
		DIE("no frame came (%zu bytes)", len);
	EXPECT_EQ(s->len, len);
	EXPECT_EQ(s->wire_len, len);
	if (s->len == len && memcmp(vt_slot_data(s), frame, len))
		FAIL("contents differ (%zu bytes)", len);
	return s;
}

static void udp_every_field(void)
{
	uint64_t before, after, last = 0;
	uint8_t f[1514];
	unsigned int i;

	setup(256, 2048, 0, 0);
	for (i = 0; i < 300; i++) {
		size_t len = VT_PKT_MIN + (i * 5) % (sizeof(f) - VT_PKT_MIN + 1);
		const struct rgate_slot *s;

		vt_pkt_udp(f, len, i, 3);
		before = vt_now();
		REQUIRE(!vt_tx_send(tx, f, len));
		s = expect_frame(f, len);
		after = vt_now();
		EXPECT_EQ(s->seq, i / 256 + 1);
		EXPECT_GE(s->tstamp, before);
		EXPECT_LE(s->tstamp, after);
		EXPECT_GE(s->tstamp, last);
		last = s->tstamp;
		EXPECT_EQ(s->flags & ~(RGATE_SLOT_QUEUE | RGATE_SLOT_HASH), 0);
		EXPECT_EQ(s->ifindex, vt_ifindex("vb"));
		EXPECT(s->cpu < vt_cpus());
		EXPECT_EQ(s->vlan_tci | s->vlan_proto, 0);
		EXPECT_EQ(s->protocol, ETH_P_IP);
		EXPECT_EQ(s->dev_type, ARPHRD_ETHER);
		EXPECT_EQ(s->l3_off, 14);
		EXPECT_EQ(s->l4_off, 34);
		EXPECT_EQ(s->payload_off, 42);
		EXPECT_EQ(s->chain_idx, 0);
		EXPECT_EQ(s->chain_cnt, 1);
		EXPECT_EQ(s->gap, 0);
		EXPECT_EQ(s->clock, RGATE_CLOCK_MONOTONIC);
		EXPECT_EQ(s->ip_proto, IPPROTO_UDP);
		EXPECT_EQ(s->pkt_type, PACKET_OTHERHOST);
		EXPECT_EQ(s->reserved, 0);
		vt_ring_done(&ring);
	}
	EXPECT_EQ(vt_ring_stats(&ring).delivered, 300);
	EXPECT_EQ(vt_ring_stats(&ring).truncated, 0);
	EXPECT_EQ(vt_ring_head(&ring), 300);
}

static void clocks(void)
{
	static const clockid_t id[] = {
		[RGATE_CLOCK_MONOTONIC] = CLOCK_MONOTONIC,
		[RGATE_CLOCK_TAI] = CLOCK_TAI,
		[RGATE_CLOCK_REALTIME] = CLOCK_REALTIME,
	};
	uint32_t c;
	uint8_t f[64];

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	tx = vt_tx_open("va");
	for (c = 0; c < RGATE_CLOCK_COUNT; c++) {
		struct rgate_create req = vt_create_req();
		struct timespec a, b;
		uint64_t last = 0;
		unsigned int i;

		req.clock = c;
		vt_ring_create(&ring, &req);
		att = vt_att_simple(&nl, "vb", ring.id);
		for (i = 0; i < 50; i++) {
			const struct rgate_slot *s;

			vt_pkt_udp(f, 64, i, 0);
			clock_gettime(id[c], &a);
			REQUIRE(!vt_tx_send(tx, f, 64));
			s = expect_frame(f, 64);
			clock_gettime(id[c], &b);
			EXPECT_EQ(s->clock, c);
			EXPECT_GE(s->tstamp, a.tv_sec * 1000000000LL + a.tv_nsec);
			EXPECT_LE(s->tstamp, b.tv_sec * 1000000000LL + b.tv_nsec);
			EXPECT_GE(s->tstamp, last);
			last = s->tstamp;
			vt_ring_done(&ring);
		}
		REQUIRE(!vt_att_del(&nl, att));
		vt_ring_close(&ring);
	}
}

/* What a clock without a coarse one is ahead of @other, whole seconds */
static int64_t seconds_ahead(clockid_t clock, clockid_t other)
{
	struct timespec a, b;

	clock_gettime(clock, &a);
	clock_gettime(other, &b);
	return ((a.tv_sec - b.tv_sec) * 1000000000LL + a.tv_nsec - b.tv_nsec + 500000000) /
	       1000000000;
}

/* Ticks of the clock alone are told: what was the last one before is no less */
static void coarse_clocks(void)
{
	static const clockid_t id[] = {
		[RGATE_CLOCK_MONOTONIC] = CLOCK_MONOTONIC_COARSE,
		[RGATE_CLOCK_TAI] = CLOCK_REALTIME_COARSE,
		[RGATE_CLOCK_REALTIME] = CLOCK_REALTIME_COARSE,
	};
	uint32_t c;
	uint8_t f[64];

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	tx = vt_tx_open("va");
	for (c = 0; c < RGATE_CLOCK_COUNT; c++) {
		int64_t ahead = c == RGATE_CLOCK_TAI ?
			seconds_ahead(CLOCK_TAI, CLOCK_REALTIME) * 1000000000LL : 0;
		struct rgate_create req = vt_create_req();
		unsigned int i;

		req.clock = c;
		req.flags = RGATE_RING_COARSE;
		vt_ring_create(&ring, &req);
		att = vt_att_simple(&nl, "vb", ring.id);
		for (i = 0; i < 50; i++) {
			const struct rgate_slot *s;
			struct timespec a, b;

			vt_pkt_udp(f, 64, i, 0);
			clock_gettime(id[c], &a);
			REQUIRE(!vt_tx_send(tx, f, 64));
			s = expect_frame(f, 64);
			clock_gettime(id[c], &b);
			EXPECT_EQ(s->clock, c);
			EXPECT_GE(s->tstamp, ahead + a.tv_sec * 1000000000LL + a.tv_nsec);
			EXPECT_LE(s->tstamp, ahead + b.tv_sec * 1000000000LL + b.tv_nsec);
			vt_ring_done(&ring);
		}
		REQUIRE(!vt_att_del(&nl, att));
		vt_ring_close(&ring);
	}
}

/* Frames written down byte by byte: where does the kernel find the layers? */
struct shape {
	const char *name;
	const char *hex;	/* after the two addresses */
	size_t len;		/* padded with random bytes to this */
	uint16_t protocol, l3, l4, payload;
	uint8_t ip_proto;
};

#define NONE	0xffff
#define V4(tot, frag, proto) "0800 4500" tot "0001" frag "40" proto "0000 0a090001 0a090002"
#define V6(plen, next) "86dd 60000000" plen next "40" \
	"fd000000000000000000000000000001 fd000000000000000000000000000002"

static const struct shape shapes[] = {
	{ "udp", V4("0064", "0000", "11"), 114, 0x800, 14, 34, 42, 17 },
	{ "tcp without options", V4("0064", "0000", "06")
	  "0001 0002 00000000 00000000 5010 1000 0000 0000", 114, 0x800, 14, 34, 54, 6 },
	{ "tcp with 12 bytes of options", V4("0064", "0000", "06")
	  "0001 0002 00000000 00000000 8010 1000 0000 0000", 114, 0x800, 14, 34, 66, 6 },
	{ "icmp", V4("0054", "0000", "01"), 98, 0x800, 14, 34, 42, 1 },
	{ "gre", V4("0054", "0000", "2f"), 98, 0x800, 14, 34, NONE, 47 },
	{ "ipv4 with options", "0800 4600 0068 0001 0000 40 11 0000 0a090001 0a090002 94040000",
	  118, 0x800, 14, 38, 46, 17 },
	{ "first fragment", V4("0064", "2000", "11"), 114, 0x800, 14, 34, 42, 17 },
	{ "later fragment", V4("0064", "2010", "11"), 114, 0x800, 14, NONE, NONE, 0 },
	{ "last fragment", V4("0064", "0010", "11"), 114, 0x800, 14, NONE, NONE, 0 },
	{ "ipv4 cut short", "0800 4500 0064", 24, 0x800, 14, NONE, NONE, 0 },
	{ "ipv4 with ihl 4", "0800 4400 0064 0001 0000 40 11 0000 0a090001 0a090002",
	  114, 0x800, 14, NONE, NONE, 0 },
	{ "version 6 in an ipv4 frame", "0800 6500 0064 0001 0000 40 11 0000 0a090001 0a090002",
	  114, 0x800, 14, NONE, NONE, 0 },
	{ "ihl past the end", "0800 4f00 0064 0001 0000 40 11 0000 0a090001 0a090002",
	  40, 0x800, 14, NONE, NONE, 0 },
	{ "tcp header past the end", V4("0030", "0000", "06")
	  "0001 0002 00000000 00000000 f010 1000 0000 0000", 60, 0x800, 14, 34, NONE, 6 },
	{ "tcp with doff 0", V4("0064", "0000", "06")
	  "0001 0002 00000000 00000000 0010 1000 0000 0000", 114, 0x800, 14, 34, NONE, 6 },
	{ "ipv6 udp", V6("0040", "11"), 118, 0x86dd, 14, 54, 62, 17 },
	{ "ipv6 tcp", V6("0040", "06") "0001 0002 00000000 00000000 5010 1000 0000 0000",
	  118, 0x86dd, 14, 54, 74, 6 },
	{ "icmpv6", V6("0040", "3a"), 118, 0x86dd, 14, 54, 62, 58 },
	{ "ipv6 hop-by-hop, udp", V6("0048", "00") "11 00 0104 00000000",
	  126, 0x86dd, 14, 62, 70, 17 },
	{ "ipv6 first fragment, udp", V6("0048", "2c") "11 00 0001 00000001",
	  126, 0x86dd, 14, 62, 70, 17 },
	{ "ipv6 later fragment", V6("0048", "2c") "11 00 0081 00000001",
	  126, 0x86dd, 14, NONE, NONE, 0 },
	{ "ipv6 no next header", V6("0000", "3b"), 60, 0x86dd, 14, NONE, NONE, 0 },
	{ "ipv6 cut short", "86dd 60000000 0040 11 40", 30, 0x86dd, 14, NONE, NONE, 0 },
	{ "arp", "0806 0001 0800 06 04 0001", 60, 0x806, 14, NONE, NONE, 0 },
	{ "unknown ethertype", "88b5", 200, 0x88b5, 14, NONE, NONE, 0 },
	{ "ethertype of our own and nothing else", "88b5", 14, 0x88b5, 14, NONE, NONE, 0 },
};

static size_t from_hex(uint8_t *to, const char *hex)
{
	size_t n = 0;
	unsigned int b;

	while (*hex) {
		if (*hex == ' ') {
			hex++;
			continue;
		}
		REQUIRE(sscanf(hex, "%2x", &b) == 1);
		to[n++] = (uint8_t)b;
		hex += 2;
	}
	return n;
}

static void layers(void)
{
	uint8_t f[256];
	size_t i;

	setup(256, 512, 0, 0);
	for (i = 0; i < VT_COUNT(shapes); i++) {
		const struct shape *p = &shapes[i];
		const struct rgate_slot *s;

		vt_pkt_fill(f, sizeof(f), i);
		memcpy(f, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01", 12);
		from_hex(f + 12, p->hex);
		REQUIRE(!vt_tx_send(tx, f, p->len));
		s = expect_frame(f, p->len);
		if (s->protocol != p->protocol || s->l3_off != p->l3 ||
		    s->l4_off != p->l4 || s->payload_off != p->payload ||
		    s->ip_proto != p->ip_proto)
			FAIL("%s: protocol %x l3 %u l4 %u payload %u ip_proto %u, expected %x %u %u %u %u",
			     p->name, s->protocol, s->l3_off, s->l4_off,
			     s->payload_off, s->ip_proto, p->protocol, p->l3,
			     p->l4, p->payload, p->ip_proto);
		vt_ring_done(&ring);
	}
}

static void short_frames(void)
{
	uint8_t f[64];
	size_t len;

	setup(128, 256, 0, 0);
	for (len = 14; len <= 64; len++) {
		const struct rgate_slot *s;
		size_t i;

		vt_pkt_fill(f, sizeof(f), len);
		memcpy(f, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x88\xb5", 14);
		REQUIRE(!vt_tx_send(tx, f, len));
		s = expect_frame(f, len);
		for (i = len; i < 64; i++)
			EXPECT_EQ(vt_slot_data(s)[i], 0);
		vt_ring_done(&ring);
	}
}

static void packet_types(void)
{
	static const struct {
		uint8_t mac[6];
		int type;
	} t[] = {
		{ { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, PACKET_BROADCAST },
		{ { 0x01, 0x00, 0x5e, 0, 0, 1 }, PACKET_MULTICAST },
		{ { 0x02, 0, 0, 0, 0, 0x77 }, PACKET_OTHERHOST },
		{ { 0 }, PACKET_HOST },	/* own address, filled in below */
	};
	uint8_t f[64];
	size_t i;

	setup(64, 256, 0, 0);
	for (i = 0; i < VT_COUNT(t); i++) {
		const struct rgate_slot *s;

		vt_pkt_udp(f, 64, i, 0);
		if (t[i].type == PACKET_HOST)
			vt_mac("vb", f);
		else
			memcpy(f, t[i].mac, 6);
		REQUIRE(!vt_tx_send(tx, f, 64));
		s = expect_frame(f, 64);
		EXPECT_EQ(s->pkt_type, t[i].type);
		vt_ring_done(&ring);
	}
}

/* @tags bytes of tags between the addresses and the ethertype */
static size_t tagged(uint8_t *f, size_t len, const void *tags, size_t n)
{
	vt_pkt_udp(f, len, 5, 0);
	memmove(f + 12 + n, f + 12, len - 12);
	memcpy(f + 12, tags, n);
	return len + n;
}

static void vlan(void)
{
	uint8_t f[256], want[256];
	const struct rgate_slot *s;
	size_t len;

	setup(64, 512, 0, 0);
	/* 802.1Q: priority 5, vid 100 */
	len = tagged(f, 100, "\x81\x00\xa0\x64", 4);
	REQUIRE(!vt_tx_send(tx, f, len));
	vt_pkt_udp(want, 100, 5, 0);
	s = expect_frame(want, 100);
	EXPECT(s->flags & RGATE_SLOT_VLAN);
	EXPECT_EQ(s->vlan_tci, 0xa064);
	EXPECT_EQ(s->vlan_proto, 0x8100);
	EXPECT_EQ(s->protocol, ETH_P_IP);
	EXPECT_EQ(s->l3_off, 14);
	EXPECT_EQ(s->payload_off, 42);
	vt_ring_done(&ring);
	/* QinQ: 802.1ad outside, 802.1Q inside; the outer one is taken off */
	len = tagged(f, 100, "\x88\xa8\x00\x07\x81\x00\x10\x2a", 8);
	REQUIRE(!vt_tx_send(tx, f, len));
	tagged(want, 100, "\x81\x00\x10\x2a", 4);
	s = expect_frame(want, 104);
	EXPECT(s->flags & RGATE_SLOT_VLAN);
	EXPECT_EQ(s->vlan_tci, 7);
	EXPECT_EQ(s->vlan_proto, 0x88a8);
	EXPECT_EQ(s->protocol, 0x8100);
	EXPECT_EQ(s->l3_off, 18);
	EXPECT_EQ(s->l4_off, 38);
	EXPECT_EQ(s->payload_off, 46);
	EXPECT_EQ(s->ip_proto, IPPROTO_UDP);
	vt_ring_done(&ring);
	/* vid 0 (priority tag) and an untagged one behind it */
	len = tagged(f, 100, "\x81\x00\x60\x00", 4);
	REQUIRE(!vt_tx_send(tx, f, len));
	vt_pkt_udp(want, 100, 5, 0);
	s = expect_frame(want, 100);
	EXPECT(s->flags & RGATE_SLOT_VLAN);
	EXPECT_EQ(s->vlan_tci, 0x6000);
	vt_ring_done(&ring);
	REQUIRE(!vt_tx_send(tx, want, 100));
	s = expect_frame(want, 100);
	EXPECT(!(s->flags & RGATE_SLOT_VLAN));
	EXPECT_EQ(s->vlan_tci | s->vlan_proto, 0);
	vt_ring_done(&ring);
}

static void truncated(void)
{
	static const size_t lens[] = { 191, 192, 193, 256, 1000, 9014 };
	uint8_t f[9014];
	uint64_t cut = 0;
	size_t i;

	setup(64, 256, 0, 9000);
	for (i = 0; i < VT_COUNT(lens); i++) {
		const struct rgate_slot *s;
		size_t have = lens[i] > 192 ? 192 : lens[i];

		vt_pkt_udp(f, lens[i], i, 0);
		REQUIRE(!vt_tx_send(tx, f, lens[i]));
		s = vt_ring_wait(&ring, 3000);
		REQUIRE(s);
		EXPECT_EQ(s->len, have);
		EXPECT_EQ(s->wire_len, lens[i]);
		EXPECT_EQ(s->chain_cnt, 1);
		EXPECT_EQ(!!(s->flags & RGATE_SLOT_TRUNC), lens[i] > 192);
		EXPECT(!memcmp(vt_slot_data(s), f, have));
		cut += lens[i] > 192;
		vt_ring_done(&ring);
	}
	EXPECT_EQ(vt_ring_stats(&ring).truncated, cut);
	EXPECT_EQ(vt_ring_stats(&ring).chained, 0);
}

static void jumbo_whole(void)
{
	uint8_t f[9014];
	size_t i;

	setup(64, 16384, 0, 9000);
	for (i = 0; i < 100; i++) {
		size_t len = 9014 - i * 61;

		vt_pkt_udp(f, len, i, 0);
		REQUIRE(!vt_tx_send(tx, f, len));
		expect_frame(f, len);
		vt_ring_done(&ring);
	}
}

static void chained(void)
{
	static uint8_t f[9014], joined[65536];
	uint64_t slots = 0, pads = 0, chains = 0;
	unsigned int i;

	setup(128, 512, RGATE_RING_CHAIN, 9000);
	for (i = 0; i < 400; i++) {
		size_t len = VT_PKT_MIN + vt_rand() % (9014 - VT_PKT_MIN + 1);
		uint32_t n = (uint32_t)((len + 447) / 448), left;
		const struct rgate_slot *s;

		left = RGATE_BATCH - (slots & (RGATE_BATCH - 1));
		if (n > left) {
			pads += left;
			slots += left;
		}
		vt_pkt_udp(f, len, i, 0);
		REQUIRE(!vt_tx_send(tx, f, len));
		s = vt_ring_wait(&ring, 3000);
		REQUIRE(s);
		EXPECT_EQ(ring.pos, slots);
		EXPECT_EQ(s->chain_cnt, n);
		EXPECT_EQ(s->wire_len, len);
		EXPECT(!(s->flags & (RGATE_SLOT_TRUNC | RGATE_SLOT_CONT)));
		EXPECT_EQ(vt_ring_join(&ring, s, joined, sizeof(joined)), len);
		EXPECT(!memcmp(joined, f, len));
		slots += n;
		chains += n > 1;
		vt_ring_done(&ring);
	}
	EXPECT_EQ(vt_ring_stats(&ring).padded, pads);
	EXPECT_EQ(vt_ring_stats(&ring).chained, chains);
	EXPECT_EQ(vt_ring_stats(&ring).delivered, 400);
	EXPECT_EQ(vt_ring_head(&ring), slots);
}

static void chain_too_long(void)
{
	static uint8_t f[9014], joined[65536];
	const struct rgate_slot *s;

	/* 32 x 192 bytes is all a batch holds */
	setup(64, 256, RGATE_RING_CHAIN, 9000);
	vt_pkt_udp(f, 9014, 1, 0);
	vt_tx_burst(tx, 100, 0, 3);
	REQUIRE(!vt_tx_send(tx, f, 9014));
	REQUIRE_EQ(vt_ring_verify(&ring, NULL, 3, 3000), 3);
	s = vt_ring_wait(&ring, 3000);
	REQUIRE(s);
	EXPECT_EQ(ring.pos, 32);
	EXPECT_EQ(s->chain_cnt, RGATE_CHAIN_MAX);
	EXPECT(s->flags & RGATE_SLOT_TRUNC);
	EXPECT_EQ(s->wire_len, 9014);
	EXPECT_EQ(vt_ring_join(&ring, s, joined, sizeof(joined)), 32 * 192);
	EXPECT(!memcmp(joined, f, 32 * 192));
	vt_ring_done(&ring);
	EXPECT_EQ(vt_ring_stats(&ring).truncated, 1);
	EXPECT_EQ(vt_ring_stats(&ring).padded, 29);
}

static void gap_after_drops(void)
{
	const struct rgate_slot *s;
	unsigned int i;

	setup(64, 256, 0, 0);
	EXPECT_EQ(vt_tx_burst(tx, 80, 0, 64 + 17), 81);
	EXPECT(VT_UNTIL(vt_ring_stats(&ring).dropped_full == 17, 3000));
	for (i = 0; i < 64; i++) {
		s = vt_ring_next(&ring);
		REQUIRE(s);
		EXPECT_EQ(s->gap, 0);
		vt_ring_done(&ring);
	}
	EXPECT(!vt_ring_next(&ring));
	vt_tx_burst(tx, 80, 81, 2);
	s = vt_ring_wait(&ring, 3000);
	REQUIRE(s);
	EXPECT_EQ(s->gap, 17);
	vt_ring_done(&ring);
	s = vt_ring_wait(&ring, 3000);
	REQUIRE(s);
	EXPECT_EQ(s->gap, 0);
	vt_ring_done(&ring);
}

static void loopback(void)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(VT_PKT_DPORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	const struct rgate_slot *s;
	uint8_t data[1200];

	vt_nl_open(&nl);
	vt_ring_open(&ring, 64, 2048, 0, 0);
	vt_att_simple(&nl, "lo", ring.id);
	vt_pkt_fill(data, sizeof(data), 9);
	REQUIRE(sendto(fd, data, sizeof(data), 0, (void *)&to, sizeof(to)) > 0);
	s = vt_ring_wait(&ring, 3000);
	REQUIRE(s);
	EXPECT_EQ(s->dev_type, ARPHRD_LOOPBACK);
	EXPECT_EQ(s->ifindex, vt_ifindex("lo"));
	EXPECT_EQ(s->wire_len, 14 + 20 + 8 + sizeof(data));
	EXPECT_EQ(s->payload_off, 42);
	EXPECT_EQ(s->pkt_type, PACKET_HOST);
	EXPECT(!memcmp(vt_slot_data(s) + 42, data, sizeof(data)));
	vt_ring_done(&ring);
}

static void frames_outlive(void)
{
	setup(64, 1024, 0, 0);
	REQUIRE_EQ(vt_tx_burst(tx, 900, 0, 40), 40);
	REQUIRE(VT_UNTIL(vt_ring_head(&ring) == 40, 3000));
	/* detach and close the sender's device: what is there stays */
	REQUIRE(!vt_att_del(&nl, att));
	close(tx);
	vt_must("ip link del va");
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 40, 100), 40);
}

static const struct vt_case cases[] = {
	{ .name = "UDP of 58 to 1514 bytes: contents and every header field",
	  .fn = udp_every_field },
	{ .name = "the three clocks", .fn = clocks },
	{ .name = "the three clocks, coarse", .fn = coarse_clocks },
	{ .name = "layers of 26 kinds of frames, broken ones too", .fn = layers },
	{ .name = "frames of 14 to 64 bytes", .fn = short_frames },
	{ .name = "packet types", .fn = packet_types },
	{ .name = "VLAN: 802.1Q, QinQ, priority tag", .fn = vlan },
	{ .name = "frames longer than a slot are cut, both lengths told", .fn = truncated },
	{ .name = "jumbo frames in large slots", .fn = jumbo_whole },
	{ .name = "chains of random lengths with filler", .fn = chained },
	{ .name = "a frame longer than 32 slots", .fn = chain_too_long },
	{ .name = "gap tells how many were lost", .fn = gap_after_drops },
	{ .name = "loopback device", .fn = loopback },
	{ .name = "frames outlive attachment and device", .fn = frames_outlive },
};

VT_MAIN(cases)
