// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Two threads write nonsense into every word they can reach, while frames come
 * in. It may cost that ring its own frames; a second ring must not notice.
 */
#include "lib/vt.h"

#define RUN_MS 3500

struct flipper {
	struct vt_ring *r;
	bool slots;		/* the slots too: RW_SLOTS */
	int stop;
	uint64_t writes;
};

static uint64_t nasty(const struct vt_ring *r, uint64_t old)
{
	uint64_t head = vt_ring_head(r);

	switch (vt_rand() % 12) {
	case 0: return 0;
	case 1: return ~0ULL;
	case 2: return old - 1;
	case 3: return old + 1;
	case 4: return 1ULL << (vt_rand() & 63);
	case 5: return head + vt_rand() % 4;
	case 6: return head - vt_rand() % 4;
	case 7: return vt_ring_lap(r, head) - 1;
	case 8: return vt_ring_lap(r, head) + (vt_rand() & 1);
	case 9: return (uint64_t)(uintptr_t)r->map;
	case 10: return 0xffff888000000000ULL | (vt_rand() & 0xffffff8);
	default: return vt_rand();
	}
}

static void *flip(void *arg)
{
	struct flipper *f = arg;
	struct vt_ring *r = f->r;
	uint64_t cons_words = (r->geo.slots_off - r->geo.cons_off) / 8;
	uint64_t slot_words = (r->geo.map_len - r->geo.slots_off) / 8;
	uint64_t *cons = (uint64_t *)r->cons, *slots = (uint64_t *)r->slots;

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED)) {
		unsigned int i;

		for (i = 0; i < 64; i++) {
			uint64_t *p;

			switch (vt_rand() % 4) {
			case 0:		/* wait words */
				p = cons + vt_rand() % (sizeof(*r->cons) / 8);
				break;
			case 1:		/* credits */
				p = (uint64_t *)r->credits +
				    vt_rand() % (r->geo.slots / RGATE_BATCH);
				break;
			case 2:
				p = cons + vt_rand() % cons_words;
				break;
			default:
				p = f->slots ? slots + vt_rand() % slot_words :
					cons + vt_rand() % cons_words;
			}
			__atomic_store_n(p, nasty(r, *p), __ATOMIC_RELAXED);
		}
		f->writes += 64;
		/* let the others have the processors too */
		if (!(f->writes & 0xffff))
			sched_yield();
	}
	return NULL;
}

static void run(uint32_t policy, uint32_t flags, bool sleepers)
{
	struct vt_traffic bad = { .ifname = "ba", .len = 700, .cpu = 1, .pause_us = 100 };
	struct flipper f[2] = { 0 };
	struct vt_ring evil, good, handle;
	uint64_t end, sent = 0, got = 0;
	struct vt_att_info info;
	pthread_t th[2];
	struct vt_seen seen;
	struct rgate_stats st;
	struct vt_nl nl;
	uint32_t id;
	int tx, i;

	vt_nl_open(&nl);
	vt_veth("ba", "bb", 0);
	vt_veth("ga", "gb", 0);
	vt_ring_open(&evil, 128, 256, flags, policy);
	vt_ring_open(&good, 1024, 2048, 0, RGATE_POLICY_DROP);
	id = vt_att_simple(&nl, "bb", evil.id);
	vt_att_simple(&nl, "gb", good.id);
	/* a second handle of the bad ring, asleep: its wait queue gets prodded */
	vt_ring_attach(&handle, evil.fd);
	tx = vt_tx_open("ga");
	vt_seen_init(&seen, 1 << 20);
	for (i = 0; i < 2; i++) {
		f[i].r = &evil;
		f[i].slots = flags & RGATE_RING_RW_SLOTS;
		REQUIRE(!pthread_create(&th[i], NULL, flip, &f[i]));
	}
	vt_traffic_start(&bad);
	end = vt_now() + RUN_MS * 1000000ULL;
	while (vt_now() < end) {
		struct pollfd p = { .fd = handle.fd, .events = POLLIN };

		sent += vt_tx_burst(tx, 500, sent, 8);
		got += vt_ring_verify(&good, &seen, (unsigned int)(sent - got), 2000);
		if (got != sent)
			break;
		if (sleepers)
			poll(&p, 1, 0);
	}
	vt_traffic_stop(&bad);
	for (i = 0; i < 2; i++) {
		__atomic_store_n(&f[i].stop, 1, __ATOMIC_RELAXED);
		pthread_join(th[i], NULL);
	}
	/* the good ring: every frame, once, unharmed; its counters say the same */
	EXPECT_EQ(got, sent);
	EXPECT_EQ(seen.got, sent);
	EXPECT_EQ(seen.dup | seen.alien, 0);
	st = vt_ring_stats(&good);
	EXPECT_EQ(st.delivered, sent);
	EXPECT_EQ(st.dropped_full | st.dropped_fault | st.overwritten, 0);
	EXPECT_EQ(good.prod->magic, RGATE_MAGIC);
	/* the bad one: the kernel's own words are as the kernel wrote them */
	EXPECT(VT_UNTIL(vt_att_stat(&nl, id, RGATE_A_ATT_STATS_SEEN) == bad.sent, 3000));
	REQUIRE(!vt_att_get(&nl, id, &info));
	st = vt_ring_stats(&evil);
	EXPECT_EQ(st.delivered, info.st[RGATE_A_ATT_STATS_DELIVERED]);
	EXPECT_EQ(st.delivered + st.dropped_full + st.passed + st.dropped_fault,
		  bad.sent);
	EXPECT_EQ(st.dropped_fault, 0);
	EXPECT_LE(st.delivered, vt_ring_head(&evil));
	EXPECT_EQ(evil.prod->magic, RGATE_MAGIC);
	EXPECT_EQ(evil.prod->map_len, evil.geo.map_len);
	EXPECT_EQ(vt_ring_state(&evil), RGATE_STATE_ACTIVE);
	vt_note("%llu good frames; bad ring: %llu delivered, %llu dropped, %llu wild writes",
		(unsigned long long)sent, (unsigned long long)st.delivered,
		(unsigned long long)st.dropped_full,
		(unsigned long long)(f[0].writes + f[1].writes));
	EXPECT_GE(sent, 100);
	EXPECT_GE(bad.sent, 100);
	EXPECT_GE(f[0].writes, 10000);
	/* and it still closes */
	vt_ring_close(&handle);
	vt_ring_close(&evil);
	EXPECT_EQ(vt_att_get(&nl, id, &info), -ENOENT);
	vt_ring_close(&good);
}

static void drop(void)
{
	run(RGATE_POLICY_DROP, 0, true);
}

static void overwrite(void)
{
	run(RGATE_POLICY_OVERWRITE, RGATE_RING_RW_SLOTS, false);
}

static void pass(void)
{
	run(RGATE_POLICY_PASS, RGATE_RING_CHAIN, true);
}

static void spill(void)
{
	run(RGATE_POLICY_SPILL, RGATE_RING_RW_SLOTS | RGATE_RING_CHAIN, true);
}

/* After all that nonsense a resize gives a ring that works */
static void recovers_by_resize(void)
{
	struct vt_ring r;
	struct vt_nl nl;
	unsigned int i;
	int tx;

	vt_nl_open(&nl);
	vt_veth("va", "vb", 0);
	vt_ring_open(&r, 128, 512, 0, 0);
	vt_att_simple(&nl, "vb", r.id);
	tx = vt_tx_open("va");
	for (i = 0; i < r.geo.slots / RGATE_BATCH; i++)
		r.credits[i] = ~0ULL;
	vt_tx_burst(tx, 100, 0, 100);
	EXPECT(VT_UNTIL(vt_ring_stats(&r).dropped_full == 100, 3000));
	REQUIRE(!vt_ring_resize(r.fd, 128, 512, &r.geo));
	r.pos = 0;
	vt_ring_map(&r);
	vt_tx_burst(tx, 100, 0, 100);
	EXPECT_EQ(vt_ring_verify(&r, NULL, 100, 1000), 100);
}

static const struct vt_case cases[] = {
	{ .name = "nonsense in every word: drop", .fn = drop },
	{ .name = "nonsense in every word: overwrite, slots writable", .fn = overwrite },
	{ .name = "nonsense in every word: pass, chains", .fn = pass },
	{ .name = "nonsense in every word: spill, slots writable, chains", .fn = spill },
	{ .name = "a resize mends it", .fn = recovers_by_resize },
};

VT_MAIN(cases)
