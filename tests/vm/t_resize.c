// SPDX-License-Identifier: MIT OR GPL-2.0
/* Resizing a ring while it is being filled: nothing lost, nothing twice. */
#include "lib/vt.h"

static struct vt_nl nl;
static struct vt_ring ring;
static uint32_t att;

static void setup(uint32_t slots, uint32_t size, uint32_t flags, uint32_t policy)
{
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&ring, slots, size, flags, policy);
	att = vt_att_simple(&nl, "vb", ring.id);
}

/* Drained and retired: go on with the new memory */
static void follow(struct vt_ring *r)
{
	struct rgate_query q;
	struct vt_ring old = *r;

	REQUIRE(!vt_ring_query(r->fd, &q));
	r->geo = q.geo;
	r->pos = 0;
	vt_ring_map(r);
	munmap(old.map, old.geo.map_len);
}

static void drain_into(struct vt_ring *r, struct vt_seen *seen, uint64_t *gaps)
{
	static uint8_t buf[65536];
	const struct rgate_slot *s;

	while ((s = vt_ring_next(r))) {
		size_t n = vt_ring_join(r, s, buf, sizeof(buf));
		uint64_t seq;

		if (!vt_pkt_check_cut(buf, n, s->wire_len, &seq))
			FAIL("a frame is not as sent");
		else
			vt_seen_add(seen, seq);
		*gaps += s->gap;
		vt_ring_done(r);
	}
}

static void live(void)
{
	static const uint32_t shape[][2] = {
		{ 512, 2048 }, { 128, 2048 }, { 128, 256 }, { 4096, 256 },
		{ 64, 4096 }, { 1024, 1024 }, { 256, 65536 }, { 64, 256 },
	};
	struct vt_traffic t = { .ifname = "va", .len = 180, .cpu = 1, .pause_us = 100 };
	struct vt_seen seen;
	uint64_t gaps = 0, end, latest;
	struct rgate_stats st;
	unsigned int i, n = 0;

	setup(256, 512, 0, 0);
	vt_seen_init(&seen, 1 << 22);
	vt_traffic_start(&t);
	end = vt_now() + 4000000000ULL;
	latest = end + vt_slow() * 30000000000ULL;
	/* for a while, and on a slow machine until there were enough */
	for (i = 0; vt_now() < end || (n < 20 && vt_now() < latest); i++) {
		unsigned int k = i % VT_COUNT(shape);
		uint64_t until = vt_now() + 20000000;

		while (vt_now() < until)
			drain_into(&ring, &seen, &gaps);
		EXPECT_EQ(vt_ring_resize(ring.fd, shape[k][0], shape[k][1], NULL), 0);
		n++;
		EXPECT_EQ(vt_ring_state(&ring), RGATE_STATE_RETIRED);
		/* what is in the old memory, up to its final head */
		drain_into(&ring, &seen, &gaps);
		EXPECT_EQ(ring.pos, vt_ring_head(&ring));
		follow(&ring);
		EXPECT_EQ(ring.prod->generation, n + 1);
		EXPECT_EQ(ring.prod->slots, shape[k][0]);
		EXPECT_EQ(ring.prod->slot_size, shape[k][1]);
	}
	vt_traffic_stop(&t);
	EXPECT(VT_UNTIL(vt_att_stat(&nl, att, RGATE_A_ATT_STATS_SEEN) >= t.sent, 3000));
	drain_into(&ring, &seen, &gaps);
	st = vt_ring_stats(&ring);
	vt_note("%u resizes, %llu frames, %llu dropped", n,
		(unsigned long long)t.sent, (unsigned long long)st.dropped_full);
	EXPECT_GE(n, 20);
	EXPECT_EQ(seen.dup, 0);
	EXPECT_EQ(seen.alien, 0);
	EXPECT_EQ(st.delivered, seen.got);
	EXPECT_EQ(seen.got + st.dropped_full, t.sent);
	EXPECT_LE(gaps, st.dropped_full);
	EXPECT_GE(seen.got, 1000);
}

static void counters_go_on(void)
{
	struct vt_ring_info info;
	struct rgate_stats a, b;
	struct vt_ring old;
	int tx;

	setup(64, 512, 0, 0);
	tx = vt_tx_open("va");
	vt_tx_burst(tx, 100, 0, 100);
	EXPECT(VT_UNTIL(vt_ring_stats(&ring).dropped_full == 36, 3000));
	a = vt_ring_stats(&ring);
	old = ring;
	REQUIRE(!vt_ring_resize(ring.fd, 256, 1024, &ring.geo));
	ring.pos = 0;
	vt_ring_map(&ring);
	b = vt_ring_stats(&ring);
	EXPECT(!memcmp(&a, &b, sizeof(a)));
	/* room again, without the old frames having been taken */
	vt_tx_burst(tx, 100, 100, 50);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 50, 1000), 50);
	EXPECT_EQ(vt_ring_stats(&ring).delivered, 114);
	/* the old memory: still all there, and head final */
	EXPECT_EQ(vt_ring_head(&old), 64);
	EXPECT_EQ(vt_ring_stats(&old).delivered, 64);
	EXPECT_EQ(vt_ring_verify(&old, NULL, 64, 50), 64);
	REQUIRE(!vt_ring_info(&nl, ring.id, &info));
	EXPECT_EQ(info.generation, 2);
	EXPECT_EQ(info.slots, 256);
	EXPECT_EQ(info.slot_size, 1024);
	EXPECT_EQ(info.head, 50);
	EXPECT_EQ(info.mem_bytes, ring.geo.map_len);
	EXPECT_EQ(info.st[RGATE_A_STATS_DELIVERED], 114);
	/* the gap before the first frame of the new memory is that of the old */
	EXPECT_EQ(((struct rgate_slot *)ring.slots)->gap, 36);
}

static void to_a_size_that_is_there(void)
{
	struct vt_ring old;
	struct rgate_query q;
	int tx;

	setup(64, 512, 0, 0);
	tx = vt_tx_open("va");
	old = ring;
	REQUIRE(!vt_ring_resize(ring.fd, 64, 512, &ring.geo));
	EXPECT_EQ(ring.geo.generation, 2);
	vt_ring_map(&ring);
	vt_tx_burst(tx, 100, 0, 10);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 10, 1000), 10);
	EXPECT_EQ(vt_ring_head(&old), 0);
	/* a second handle learns of it */
	{
		struct vt_ring h;

		vt_ring_attach(&h, ring.fd);
		EXPECT_EQ(h.geo.generation, 2);
		REQUIRE(!vt_ring_resize(ring.fd, 128, 512, NULL));
		EXPECT_EQ(vt_ring_state(&h), RGATE_STATE_RETIRED);
		REQUIRE(!vt_ring_query(h.fd, &q));
		EXPECT_EQ(q.geo.generation, 3);
		EXPECT_EQ(q.geo.handle, h.geo.handle);
		EXPECT_EQ(q.handles, 2);
		vt_ring_close(&h);
	}
	vt_ring_close(&ring);
	vt_ring_unmap(&old);
}

static void overwrite_ring(void)
{
	struct vt_traffic t = { .ifname = "va", .len = 180, .cpu = 1 };
	uint64_t seq, last = 0, n = 0;
	const struct rgate_slot *s;
	unsigned int i;

	setup(128, 512, 0, RGATE_POLICY_OVERWRITE);
	vt_traffic_start(&t);
	for (i = 0; i < 30; i++) {
		vt_usleep(20000);
		REQUIRE(!vt_ring_resize(ring.fd, i & 1 ? 128 : 256, 512, NULL));
		/* retired: nothing changes under us any more */
		while ((s = vt_ring_next(&ring))) {
			EXPECT(vt_pkt_check(vt_slot_data(s), s->len, &seq));
			EXPECT(!n || seq > last);
			last = seq;
			n++;
			vt_ring_done(&ring);
		}
		EXPECT_EQ(ring.pos, vt_ring_head(&ring));
		follow(&ring);
	}
	vt_traffic_stop(&t);
	EXPECT_GE(n, 30 * 64);
}

static void with_chains(void)
{
	struct vt_traffic t = { .ifname = "va", .len = 1400, .cpu = 1, .pause_us = 200 };
	struct vt_seen seen;
	uint64_t gaps = 0;
	unsigned int i;

	setup(256, 256, RGATE_RING_CHAIN, 0);
	vt_seen_init(&seen, 1 << 20);
	vt_traffic_start(&t);
	for (i = 0; i < 40; i++) {
		uint64_t until = vt_now() + 20000000;

		while (vt_now() < until)
			drain_into(&ring, &seen, &gaps);
		REQUIRE(!vt_ring_resize(ring.fd, 256, i & 1 ? 256 : 512, NULL));
		drain_into(&ring, &seen, &gaps);
		EXPECT_EQ(ring.pos, vt_ring_head(&ring));
		follow(&ring);
	}
	vt_traffic_stop(&t);
	VT_UNTIL(vt_att_stat(&nl, att, RGATE_A_ATT_STATS_SEEN) >= t.sent, 3000);
	drain_into(&ring, &seen, &gaps);
	EXPECT_EQ(seen.dup, 0);
	EXPECT_EQ(seen.got + vt_ring_stats(&ring).dropped_full, t.sent);
}

static const struct vt_case cases[] = {
	{ .name = "live, through eight shapes: nothing lost, nothing twice", .fn = live },
	{ .name = "counters, gap and netlink go on", .fn = counters_go_on },
	{ .name = "to the same size; other handles", .fn = to_a_size_that_is_there },
	{ .name = "an overwriting ring", .fn = overwrite_ring },
	{ .name = "a ring with chains", .fn = with_chains },
};

VT_MAIN(cases)
