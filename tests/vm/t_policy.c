// SPDX-License-Identifier: MIT OR GPL-2.0
/* A full ring: the four policies, every counter, events. */
#include "lib/vt.h"

static struct vt_nl nl;
static int tx, stack;

static void setup(void)
{
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	tx = vt_tx_open("va");
	stack = vt_stack_open("vb");
}

static void wait_seen(uint32_t id, uint64_t n)
{
	if (!VT_UNTIL(vt_att_stat(&nl, id, RGATE_A_ATT_STATS_SEEN) >= n, 5000))
		DIE("the hook did not see %llu frames", (unsigned long long)n);
}

/* The hook counts a frame before the stack has it. */
static unsigned int from_stack(unsigned int n)
{
	unsigned int got = 0;

	(void)VT_UNTIL((got += vt_stack_drain(stack, 10)) >= n, 5000);
	return got;
}

/* What the mapping says is what netlink and QUERY say */
static void same_everywhere(struct vt_ring *r)
{
	struct rgate_stats m = vt_ring_stats(r);
	struct vt_ring_info info;
	struct rgate_query q;
	const __u64 *v = &m.delivered;
	const __u64 *w = &q.stats.delivered;
	int i;

	REQUIRE(!vt_ring_info(&nl, r->id, &info));
	REQUIRE(!vt_ring_query(r->fd, &q));
	for (i = RGATE_A_STATS_DELIVERED; i <= RGATE_A_STATS_MAX; i++) {
		int k = i - RGATE_A_STATS_DELIVERED;

		if (v[k] != info.st[i] || v[k] != w[k])
			FAIL("counter %d: mapping %llu, netlink %llu, QUERY %llu", i,
			     (unsigned long long)v[k],
			     (unsigned long long)info.st[i],
			     (unsigned long long)w[k]);
	}
	EXPECT_EQ(info.head, vt_ring_head(r));
}

static void drop_new(void)
{
	struct vt_att_info a;
	struct rgate_stats s;
	struct vt_seen seen;
	struct vt_ring r;
	uint32_t id;

	setup();
	vt_ring_open(&r, 128, 512, 0, RGATE_POLICY_DROP);
	id = vt_att_simple(&nl, "vb", r.id);
	EXPECT_EQ(vt_tx_burst(tx, 200, 0, 300), 300);
	wait_seen(id, 300);
	s = vt_ring_stats(&r);
	EXPECT_EQ(s.delivered, 128);
	EXPECT_EQ(s.bytes, 128 * 200);
	EXPECT_EQ(s.dropped_full, 172);
	EXPECT_EQ(s.full_events, 1);
	EXPECT_EQ(s.dropped_fault | s.overwritten | s.passed | s.spilled |
		  s.truncated | s.chained | s.padded | s.wakeups, 0);
	same_everywhere(&r);
	/* the oldest are there */
	vt_seen_init(&seen, 128);
	EXPECT_EQ(vt_ring_verify(&r, &seen, 200, 50), 128);
	EXPECT_EQ(seen.got, 128);
	EXPECT_EQ(seen.alien, 0);
	EXPECT_EQ(vt_stack_drain(stack, 50), 0);
	/* room for exactly the batches that were returned */
	EXPECT_EQ(vt_tx_burst(tx, 200, 0, 128), 128);
	wait_seen(id, 428);
	EXPECT_EQ(vt_ring_stats(&r).delivered, 256);
	EXPECT_EQ(vt_ring_stats(&r).full_events, 1);
	/* 40 taken are one batch of 32 returned */
	EXPECT_EQ(vt_ring_verify(&r, NULL, 40, 1000), 40);
	EXPECT_EQ(vt_tx_burst(tx, 200, 0, 50), 50);
	wait_seen(id, 478);
	EXPECT_EQ(vt_ring_stats(&r).delivered, 288);
	EXPECT_EQ(vt_ring_stats(&r).dropped_full, 190);
	EXPECT_EQ(vt_ring_stats(&r).full_events, 2);
	REQUIRE(!vt_att_get(&nl, id, &a));
	EXPECT_EQ(a.st[RGATE_A_ATT_STATS_DELIVERED], 288);
	EXPECT_EQ(a.st[RGATE_A_ATT_STATS_BYTES], 288 * 200);
	EXPECT_EQ(a.st[RGATE_A_ATT_STATS_DROPPED_FULL], 190);
	EXPECT_EQ(a.st[RGATE_A_ATT_STATS_PASSED], 0);
	same_everywhere(&r);
}

static void mirror_of_a_full_ring(void)
{
	struct vt_att a = { .ifname = "vb", .n = 1, .action = RGATE_ACTION_MIRROR };
	struct vt_ring r;
	int id;

	setup();
	vt_ring_open(&r, 64, 512, 0, RGATE_POLICY_DROP);
	a.rings[0] = r.id;
	id = vt_att_new(&nl, &a);
	REQUIRE(id > 0);
	EXPECT_EQ(vt_tx_burst(tx, 100, 0, 100), 100);
	wait_seen((uint32_t)id, 100);
	/* the stack misses nothing for our being full */
	EXPECT_EQ(from_stack(100), 100);
	EXPECT_EQ(vt_ring_stats(&r).dropped_full, 36);
}

static void pass_to_stack(void)
{
	struct rgate_stats s;
	struct vt_att_info a;
	struct vt_ring r;
	uint32_t id;

	setup();
	vt_ring_open(&r, 64, 512, 0, RGATE_POLICY_PASS);
	id = vt_att_simple(&nl, "vb", r.id);
	EXPECT_EQ(vt_tx_burst(tx, 100, 0, 200), 200);
	wait_seen(id, 200);
	EXPECT_EQ(from_stack(136), 136);
	s = vt_ring_stats(&r);
	EXPECT_EQ(s.delivered, 64);
	EXPECT_EQ(s.passed, 136);
	EXPECT_EQ(s.dropped_full, 0);
	EXPECT_EQ(s.full_events, 1);
	REQUIRE(!vt_att_get(&nl, id, &a));
	EXPECT_EQ(a.st[RGATE_A_ATT_STATS_PASSED], 136);
	EXPECT_EQ(a.st[RGATE_A_ATT_STATS_DROPPED_FULL], 0);
	same_everywhere(&r);
	EXPECT_EQ(vt_ring_verify(&r, NULL, 64, 1000), 64);
	EXPECT_EQ(vt_tx_burst(tx, 100, 0, 10), 10);
	EXPECT_EQ(vt_ring_verify(&r, NULL, 10, 1000), 10);
}

/* The newest is right, in order, and what was lost is told */
static void overwrite_oldest(void)
{
	uint64_t last = 0, n = 0;
	const struct rgate_slot *s;
	struct rgate_stats st;
	struct vt_ring r;
	uint32_t id;

	setup();
	vt_ring_open(&r, 128, 512, 0, RGATE_POLICY_OVERWRITE);
	id = vt_att_simple(&nl, "vb", r.id);
	EXPECT_EQ(vt_tx_burst(tx, 100, 0, 1000), 1000);
	wait_seen(id, 1000);
	st = vt_ring_stats(&r);
	EXPECT_EQ(st.delivered, 1000);
	EXPECT_EQ(st.dropped_full | st.passed | st.full_events, 0);
	/* 1000 frames are 32 batches; the first 4 were free */
	EXPECT_EQ(st.overwritten, (32 - 4) * 32);
	while ((s = vt_ring_next(&r))) {
		uint64_t seq;

		EXPECT(vt_pkt_check(vt_slot_data(s), s->len, &seq));
		EXPECT(!n || seq == last + 1);
		EXPECT_EQ(seq, r.pos);
		last = seq;
		n++;
		vt_ring_done(&r);
	}
	EXPECT_EQ(last, 999);
	EXPECT_GE(n, 128 - 2 * 32);
	EXPECT_EQ(r.lost + n, 1000);
	/* a consumer that keeps up loses nothing */
	EXPECT_EQ(vt_tx_burst(tx, 100, 1000, 24), 24);	/* up to a batch's end */
	EXPECT_EQ(vt_ring_verify(&r, NULL, 24, 1000), 24);
	same_everywhere(&r);
	EXPECT_EQ(vt_stack_drain(stack, 50), 0);
}

static uint64_t head_of(const struct vt_ring *r)
{
	return __atomic_load_n(&r->prod->head, __ATOMIC_ACQUIRE);
}

/* Copies taken while the producer overwrites: intact ones are never torn */
static void overwrite_race(void)
{
	struct vt_traffic t = { .ifname = "va", .len = 600, .cpu = 1 };
	uint64_t start = vt_now(), intact = 0, torn = 0, ms;
	uint8_t buf[1024];
	struct vt_ring r;

	setup();
	vt_ring_open(&r, 64, 1024, 0, RGATE_POLICY_OVERWRITE);
	vt_att_simple(&nl, "vb", r.id);
	vt_pin(0);
	vt_traffic_start(&t);
	/* for a while, and on a slow machine until there was something to see */
	while ((ms = (vt_now() - start) / 1000000) < 3000 ||
	       ((intact < 100 || !(torn + r.lost)) && ms < 20000 * vt_slow())) {
		const struct rgate_slot *s = vt_ring_next(&r);
		uint32_t len;
		uint64_t seq;

		if (!s)
			continue;
		/* on purpose slow enough now and then */
		if (!(vt_rand() & 15))
			vt_usleep(300);
		/* once until the whole ring is new, however slow the sender */
		if (intact == 50 && !(torn + r.lost)) {
			uint64_t head = head_of(&r);

			EXPECT(VT_UNTIL(head_of(&r) > head + 2 * 64, 5000));
		}
		len = __atomic_load_n(&s->len, __ATOMIC_RELAXED);
		if (len > sizeof(buf))
			len = sizeof(buf);
		memcpy(buf, vt_slot_data(s), len);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&s->seq, __ATOMIC_RELAXED) !=
		    vt_ring_lap(&r, r.pos)) {
			torn++;
		} else {
			if (len != 600 || !vt_pkt_check(buf, len, &seq))
				FAIL("an intact copy is wrong: %u bytes, position %llu",
				     len, (unsigned long long)r.pos);
			intact++;
		}
		vt_ring_done(&r);
	}
	vt_traffic_stop(&t);
	vt_note("%llu intact, %llu torn, %llu overtaken",
		(unsigned long long)intact, (unsigned long long)torn,
		(unsigned long long)r.lost);
	EXPECT_GE(intact, 100);
	EXPECT_GE(torn + r.lost, 1);
}

static void spill_to_next(void)
{
	struct vt_att a = { .ifname = "vb", .n = 3, .fanout = RGATE_FANOUT_QUEUE };
	struct vt_att_info info;
	struct vt_ring r[3];
	unsigned int i;
	int id;

	setup();
	for (i = 0; i < 3; i++) {
		vt_ring_open(&r[i], 64, 512, 0, RGATE_POLICY_SPILL);
		a.rings[i] = r[i].id;
	}
	id = vt_att_new(&nl, &a);
	REQUIRE(id > 0);
	/* no queue recorded on veth's receive side, or queue 0: the first ring */
	EXPECT_EQ(vt_tx_burst(tx, 100, 0, 250), 250);
	wait_seen((uint32_t)id, 250);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(vt_ring_stats(&r[i]).delivered, 64);
	EXPECT_EQ(vt_ring_stats(&r[0]).spilled, 250 - 64);
	EXPECT_EQ(vt_ring_stats(&r[1]).spilled, 250 - 128);
	/* after the last there is none: its frames are dropped */
	EXPECT_EQ(vt_ring_stats(&r[2]).spilled, 0);
	EXPECT_EQ(vt_ring_stats(&r[2]).dropped_full, 250 - 192);
	REQUIRE(!vt_att_get(&nl, (uint32_t)id, &info));
	EXPECT_EQ(info.st[RGATE_A_ATT_STATS_DELIVERED], 192);
	EXPECT_EQ(info.st[RGATE_A_ATT_STATS_SPILLED], 128);
	EXPECT_EQ(info.st[RGATE_A_ATT_STATS_DROPPED_FULL], 250 - 192);
	for (i = 0; i < 3; i++) {
		same_everywhere(&r[i]);
		EXPECT_EQ(vt_ring_verify(&r[i], NULL, 64, 500), 64);
	}
}

static void spill_without_next(void)
{
	struct vt_ring r;
	uint32_t id;

	setup();
	vt_ring_open(&r, 64, 512, 0, RGATE_POLICY_SPILL);
	id = vt_att_simple(&nl, "vb", r.id);
	EXPECT_EQ(vt_tx_burst(tx, 100, 0, 100), 100);
	wait_seen(id, 100);
	EXPECT_EQ(vt_ring_stats(&r).dropped_full, 36);
	EXPECT_EQ(vt_ring_stats(&r).spilled, 0);
	EXPECT_EQ(vt_stack_drain(stack, 50), 0);
}

static void full_with_chains(void)
{
	struct rgate_stats s;
	struct vt_ring r;
	uint32_t id;

	setup();
	/* 20 slots a frame: one a batch, and 12 of filler */
	vt_ring_open(&r, 128, 256, RGATE_RING_CHAIN, RGATE_POLICY_DROP);
	vt_must("ip link set va mtu 9000 && ip link set vb mtu 9000");
	id = vt_att_simple(&nl, "vb", r.id);
	vt_tx_burst(tx, 20 * 192, 0, 10);
	wait_seen(id, 10);
	s = vt_ring_stats(&r);
	EXPECT_EQ(s.delivered, 4);
	EXPECT_EQ(s.chained, 4);
	EXPECT_EQ(s.dropped_full, 6);
	/* a short one still fits behind the last chain, if that is not filler yet */
	EXPECT_EQ(vt_ring_head(&r), s.padded + 4 * 20);
	EXPECT_EQ(vt_ring_verify(&r, NULL, 4, 1000), 4);
	EXPECT(!vt_ring_next(&r));
	vt_tx_burst(tx, 20 * 192, 0, 3);
	EXPECT_EQ(vt_ring_verify(&r, NULL, 3, 1000), 3);
	same_everywhere(&r);
}

static void events(void)
{
	struct vt_nl ev_nl;
	struct vt_event ev;
	struct vt_ring r;
	uint32_t id, other;
	unsigned int n = 0;
	uint64_t start, most;

	setup();
	vt_nl_open(&ev_nl);
	REQUIRE(!vt_nl_subscribe(&ev_nl));
	vt_ring_open(&r, 64, 512, 0, RGATE_POLICY_DROP);
	id = vt_att_simple(&nl, "vb", r.id);
	EXPECT_EQ(vt_tx_burst(tx, 100, 0, 100), 100);
	wait_seen(id, 100);
	EXPECT_EQ(vt_nl_event_of(&ev_nl, RGATE_EVENT_RING_FULL, 0, &ev, 3000), 1);
	EXPECT_EQ(ev.ring_id, r.id);
	EXPECT_EQ(ev.full_events, 1);
	EXPECT_GE(ev.dropped, 1);
	EXPECT_LE(ev.dropped, 36);
	vt_ring_drain(&r);
	EXPECT_EQ(vt_tx_burst(tx, 100, 0, 1), 1);
	EXPECT_EQ(vt_nl_event_of(&ev_nl, RGATE_EVENT_RING_ROOM, 0, &ev, 3000), 1);
	EXPECT_EQ(ev.ring_id, r.id);
	EXPECT_EQ(ev.dropped, 36);
	/* in and out of it many times: some events, at most two in each 50 ms or so */
	start = vt_now();
	for (other = 0; other < 300; other++) {
		vt_tx_burst(tx, 100, 0, 70);
		VT_UNTIL(vt_ring_head(&r) % 64 == 0, 5);
		vt_ring_drain(&r);
		/* unread they would fill the socket */
		while (vt_nl_event(&ev_nl, &ev, 0) == 1)
			n++;
	}
	while (vt_nl_event(&ev_nl, &ev, 500) == 1)
		n++;
	most = 2 * ((vt_now() - start) / 40000000 + 1);
	vt_note("%llu times full, %u events, could be %llu",
		(unsigned long long)vt_ring_stats(&r).full_events, n,
		(unsigned long long)most);
	EXPECT_GE(n, 2);
	EXPECT_LE(n, most);
	vt_ring_close(&r);
	EXPECT_EQ(vt_nl_event_of(&ev_nl, RGATE_EVENT_RING_GONE, 0, &ev, 3000), 1);
	vt_nl_close(&ev_nl);
}

static const struct vt_case cases[] = {
	{ .name = "drop new", .fn = drop_new },
	{ .name = "a full mirror takes nothing from the stack", .fn = mirror_of_a_full_ring },
	{ .name = "pass to the stack", .fn = pass_to_stack },
	{ .name = "overwrite the oldest", .fn = overwrite_oldest },
	{ .name = "overwrite under the reader", .fn = overwrite_race },
	{ .name = "spill to the next", .fn = spill_to_next },
	{ .name = "spill with no next", .fn = spill_without_next },
	{ .name = "full with chains", .fn = full_with_chains },
	{ .name = "events of full and room", .fn = events, .secs = 60 },
};

VT_MAIN(cases)
