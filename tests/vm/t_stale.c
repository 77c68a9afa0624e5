// SPDX-License-Identifier: MIT OR GPL-2.0
/* What was in memory, or in a slot, before is never shown. */
#include "lib/vt.h"

static struct vt_nl nl;
static int tx;

static bool all_zero(const uint8_t *p, size_t n)
{
	while (n && !*p) {
		p++;
		n--;
	}
	return !n;
}

static void setup(void)
{
	vt_veth("va", "vb", 9000);
	vt_nl_open(&nl);
	tx = vt_tx_open("va");
}

static void fresh_memory(void)
{
	static const uint32_t shape[][2] = {
		{ 64, 256 }, { 1024, 2048 }, { 4096, 4096 }, { 64, 65536 },
	};
	unsigned int i, round;

	for (round = 0; round < 3; round++)
		for (i = 0; i < VT_COUNT(shape); i++) {
			struct vt_ring r;

			vt_ring_open(&r, shape[i][0], shape[i][1],
				     RGATE_RING_RW_SLOTS, 0);
			EXPECT(all_zero((uint8_t *)r.cons,
					r.geo.map_len - r.geo.cons_off));
			EXPECT(all_zero(r.map + sizeof(*r.prod),
					r.geo.cons_off - sizeof(*r.prod)));
			/* dirt for the next to find */
			memset(r.cons, 0x5a, r.geo.map_len - r.geo.cons_off);
			vt_ring_close(&r);
		}
}

static void after_resize(void)
{
	struct vt_ring r, old;
	unsigned int i;

	vt_ring_open(&r, 256, 2048, RGATE_RING_RW_SLOTS, 0);
	for (i = 0; i < 10; i++) {
		memset(r.cons, 0xa5, r.geo.map_len - r.geo.cons_off);
		old = r;
		REQUIRE(!vt_ring_resize(r.fd, 128U << (i & 3), 2048, &r.geo));
		vt_ring_map(&r);
		vt_ring_unmap(&old);
		EXPECT(all_zero((uint8_t *)r.cons, r.geo.map_len - r.geo.cons_off));
	}
	vt_ring_close(&r);
}

/* Long frames in all slots, then short ones: up to the next 64 all is zero */
static void short_after_long(void)
{
	struct vt_ring r;
	uint8_t f[2000];
	unsigned int i;

	setup();
	vt_ring_open(&r, 64, 2048, 0, 0);
	vt_att_simple(&nl, "vb", r.id);
	memset(f, 0xff, sizeof(f));
	memcpy(f, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x88\xb5", 14);
	for (i = 0; i < 64; i++)
		REQUIRE(!vt_tx_send(tx, f, 1900));
	EXPECT(VT_UNTIL(vt_ring_head(&r) == 64, 3000));
	EXPECT_EQ(vt_ring_drain(&r), 64);
	for (i = 0; i < 64 * 5; i++) {
		size_t len = 14 + (i * 7) % 300;
		const struct rgate_slot *s;
		size_t end;

		REQUIRE(!vt_tx_send(tx, f, len));
		s = vt_ring_wait(&r, 3000);
		REQUIRE(s);
		EXPECT_EQ(s->len, len);
		end = (len + 63) / 64 * 64;
		if (!all_zero(vt_slot_data(s) + len, end - len))
			FAIL("bytes behind a frame of %zu are not zero", len);
		EXPECT(!memcmp(vt_slot_data(s), f, len));
		EXPECT_EQ(s->reserved, 0);
		vt_ring_done(&r);
	}
}

static void chains_too(void)
{
	static uint8_t f[9000];
	struct vt_ring r;
	unsigned int i;

	setup();
	vt_ring_open(&r, 64, 512, RGATE_RING_CHAIN, 0);
	vt_att_simple(&nl, "vb", r.id);
	memset(f, 0xff, sizeof(f));
	memcpy(f, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x88\xb5", 14);
	for (i = 0; i < 200; i++) {
		size_t len = 14 + vt_rand() % 4000;
		const struct rgate_slot *s;
		unsigned int k;

		REQUIRE(!vt_tx_send(tx, f, len));
		s = vt_ring_wait(&r, 3000);
		REQUIRE(s);
		for (k = 0; k < r.cnt; k++) {
			const struct rgate_slot *p = vt_ring_slot(&r, r.pos + k);
			size_t end = (p->len + 63) / 64 * 64;

			EXPECT(all_zero(vt_slot_data(p) + p->len, end - p->len));
		}
		vt_ring_done(&r);
	}
	/* filler says nothing either */
	for (i = 0; i < 64; i++) {
		const struct rgate_slot *p = vt_ring_slot(&r, i);

		if (!(p->flags & RGATE_SLOT_PAD))
			continue;
		EXPECT_EQ(p->len | p->wire_len | p->ifindex | p->hash, 0);
		EXPECT_EQ(p->tstamp, 0);
		EXPECT_EQ(p->vlan_tci | p->vlan_proto | p->queue | p->gap, 0);
	}
}

/* Header fields of an earlier frame do not show in a later one */
static void headers_are_whole(void)
{
	uint8_t tagged[200], f[196];
	const struct rgate_slot *s;
	struct vt_ring r;
	unsigned int i;

	setup();
	vt_ring_open(&r, 64, 512, 0, 0);
	vt_att_simple(&nl, "vb", r.id);
	vt_pkt_udp(f, sizeof(f), 1, 0);
	memcpy(tagged, f, 12);
	memcpy(tagged + 12, "\x81\x00\x0f\xff", 4);
	memcpy(tagged + 16, f + 12, sizeof(f) - 12);
	for (i = 0; i < 64; i++)
		REQUIRE(!vt_tx_send(tx, tagged, sizeof(tagged)));
	EXPECT(VT_UNTIL(vt_ring_head(&r) == 64, 3000));
	EXPECT_EQ(vt_ring_drain(&r), 64);
	f[12] = 0x88;	/* no layer 3 known */
	f[13] = 0xb5;
	for (i = 0; i < 64; i++) {
		REQUIRE(!vt_tx_send(tx, f, 20));
		s = vt_ring_wait(&r, 3000);
		REQUIRE(s);
		EXPECT_EQ(s->vlan_tci | s->vlan_proto | s->ip_proto | s->gap, 0);
		EXPECT_EQ(s->l4_off, RGATE_OFF_NONE);
		EXPECT_EQ(s->payload_off, RGATE_OFF_NONE);
		if (!(s->flags & RGATE_SLOT_HASH))
			EXPECT_EQ(s->hash, 0);
		if (!(s->flags & RGATE_SLOT_QUEUE))
			EXPECT_EQ(s->queue, 0);
		vt_ring_done(&r);
	}
}

/* A pattern written to a ring is in no page of rings made after it is closed */
static void closed_ring(void)
{
	static const char mark[] = "ringgate-stale-page-marker-0123";
	struct vt_ring r[4];
	unsigned int i, round;
	size_t off;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < 4; i++) {
			vt_ring_open(&r[i], 512, 4096, RGATE_RING_RW_SLOTS, 0);
			for (off = 0; off < r[i].geo.map_len - r[i].geo.slots_off;
			     off += 4096) {
				EXPECT(memcmp(r[i].slots + off + 128, mark,
					      sizeof(mark)));
				memcpy(r[i].slots + off + 128, mark, sizeof(mark));
			}
		}
		for (i = 0; i < 4; i++)
			vt_ring_close(&r[i]);
	}
}

static const struct vt_case cases[] = {
	{ .name = "new memory is zero", .fn = fresh_memory },
	{ .name = "memory after a resize is zero", .fn = after_resize },
	{ .name = "short frames after long ones", .fn = short_after_long },
	{ .name = "tails of chained slots, filler", .fn = chains_too },
	{ .name = "no header field stays behind", .fn = headers_are_whole },
	{ .name = "pages of a closed ring", .fn = closed_ring },
};

VT_MAIN(cases)
