// SPDX-License-Identifier: MIT OR GPL-2.0
/* Which ring of an attachment gets a frame; joining and leaving live. */
#include "lib/vt.h"

#include <linux/if_tun.h>
#include <net/if.h>

#define RINGS 4

static struct vt_nl nl;
static struct vt_ring r[RINGS];
static int tx;

static void rings(uint32_t slots)
{
	unsigned int i;

	vt_nl_open(&nl);
	for (i = 0; i < RINGS; i++)
		vt_ring_open(&r[i], slots, 512, 0, 0);
}

static uint32_t attach(const char *ifname, uint32_t fanout, unsigned int n)
{
	struct vt_att a = { .ifname = ifname, .n = n, .fanout = fanout };
	unsigned int i;
	int id;

	for (i = 0; i < n; i++)
		a.rings[i] = r[i].id;
	id = vt_att_new(&nl, &a);
	if (id <= 0)
		DIE("ATT_NEW: %s", strerror(-id));
	return (uint32_t)id;
}

static void send_flow(unsigned int n, uint16_t flow)
{
	uint8_t f[100];
	unsigned int i;

	for (i = 0; i < n; i++) {
		vt_pkt_udp(f, sizeof(f), i, flow);
		REQUIRE(!vt_tx_send(tx, f, sizeof(f)));
	}
}

static uint64_t delivered(void)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < RINGS; i++)
		n += vt_ring_stats(&r[i]).delivered;
	return n;
}

static void by_cpu(void)
{
	unsigned int cpu, i;

	vt_veth("va", "vb", 0);
	rings(1024);
	tx = vt_tx_open("va");
	attach("vb", RGATE_FANOUT_CPU, 2);
	for (cpu = 0; cpu < vt_cpus(); cpu++) {
		vt_pin(cpu);
		send_flow(200, 0);
	}
	EXPECT(VT_UNTIL(delivered() == 200 * vt_cpus(), 3000));
	for (i = 0; i < 2; i++) {
		const struct rgate_slot *s;

		while ((s = vt_ring_next(&r[i]))) {
			EXPECT_EQ(s->cpu % 2, i);
			vt_ring_done(&r[i]);
		}
	}
	if (vt_cpus() >= 2) {
		EXPECT_GE(vt_ring_stats(&r[0]).delivered, 1);
		EXPECT_GE(vt_ring_stats(&r[1]).delivered, 1);
	}
}

static void by_queue(void)
{
	int fd[RINGS], i, k;
	uint8_t f[100];

	for (i = 0; i < RINGS; i++)
		fd[i] = vt_tun_open("tap0", IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE, 0);
	rings(256);
	attach("tap0", RGATE_FANOUT_QUEUE, 3);
	for (k = 0; k < 30; k++)
		for (i = 0; i < RINGS; i++) {
			vt_pkt_udp(f, sizeof(f), (uint64_t)(k * RINGS + i), 0);
			REQUIRE(write(fd[i], f, sizeof(f)) == sizeof(f));
		}
	EXPECT(VT_UNTIL(delivered() == 30 * RINGS, 3000));
	for (i = 0; i < 3; i++) {
		const struct rgate_slot *s;
		unsigned int n = 0;
		uint64_t seq;

		while ((s = vt_ring_next(&r[i]))) {
			EXPECT(s->flags & RGATE_SLOT_QUEUE);
			EXPECT_EQ(s->queue % 3, i);
			EXPECT(vt_pkt_check(vt_slot_data(s), s->len, &seq));
			EXPECT_EQ(seq % RINGS, s->queue);
			vt_ring_done(&r[i]);
			n++;
		}
		EXPECT_EQ(n, i == 0 ? 60 : 30);
	}
}

static void by_hash(void)
{
	unsigned int flow, i, k, used = 0;
	int home[64];

	vt_veth("va", "vb", 0);
	rings(4096);
	tx = vt_tx_open("va");
	attach("vb", RGATE_FANOUT_HASH, RINGS);
	memset(home, -1, sizeof(home));
	for (k = 0; k < 20; k++)
		for (flow = 0; flow < 64; flow++) {
			vt_pin(k + flow);
			send_flow(1, (uint16_t)flow);
		}
	EXPECT(VT_UNTIL(delivered() == 20 * 64, 3000));
	for (i = 0; i < RINGS; i++) {
		const struct rgate_slot *s;

		while ((s = vt_ring_next(&r[i]))) {
			const uint8_t *d = vt_slot_data(s);

			flow = (unsigned int)(d[34] << 8 | d[35]) - VT_PKT_SPORT;
			if (flow < 64) {
				if (home[flow] < 0)
					home[flow] = (int)i;
				EXPECT_EQ(home[flow], i);
			} else {
				FAIL("alien flow %u", flow);
			}
			EXPECT(s->flags & RGATE_SLOT_HASH);
			vt_ring_done(&r[i]);
		}
		used += vt_ring_stats(&r[i]).delivered > 0;
	}
	/* 64 flows all on one of 4 rings: once in 4^63 */
	EXPECT_GE(used, 3);
}

static void rollover(void)
{
	unsigned int i;
	uint32_t id;

	vt_veth("va", "vb", 0);
	rings(64);
	tx = vt_tx_open("va");
	id = attach("vb", RGATE_FANOUT_ROLLOVER, RINGS);
	/* all DROP by policy: the fan-out rule looks for room all the same */
	send_flow(200, 0);
	EXPECT(VT_UNTIL(delivered() == 200, 3000));
	EXPECT_EQ(vt_ring_stats(&r[0]).delivered, 64);
	EXPECT_EQ(vt_ring_stats(&r[1]).delivered, 64);
	EXPECT_EQ(vt_ring_stats(&r[2]).delivered, 64);
	EXPECT_EQ(vt_ring_stats(&r[3]).delivered, 8);
	EXPECT_EQ(vt_ring_stats(&r[0]).spilled, 136);
	EXPECT_EQ(vt_att_stat(&nl, id, RGATE_A_ATT_STATS_SPILLED), 136);
	send_flow(100, 0);
	EXPECT(VT_UNTIL(vt_att_stat(&nl, id, RGATE_A_ATT_STATS_DROPPED_FULL) == 44,
			3000));
	EXPECT_EQ(vt_ring_stats(&r[3]).dropped_full, 44);
	/* room in the first again: it is the first choice again */
	for (i = 0; i < 3; i++)
		EXPECT_EQ(vt_ring_stats(&r[i]).dropped_full, 0);
	EXPECT_EQ(vt_ring_drain(&r[0]), 64);
	send_flow(10, 0);
	EXPECT(VT_UNTIL(vt_ring_stats(&r[0]).delivered == 74, 3000));
}

static void order_is_as_given(void)
{
	struct vt_att_info info;
	unsigned int i;
	uint32_t id;

	vt_veth("va", "vb", 0);
	rings(64);
	id = attach("vb", RGATE_FANOUT_HASH, RINGS);
	REQUIRE(!vt_att_get(&nl, id, &info));
	REQUIRE_EQ(info.n, RINGS);
	for (i = 0; i < RINGS; i++)
		EXPECT_EQ(info.rings[i], r[i].id);
	EXPECT_EQ(info.fanout, RGATE_FANOUT_HASH);
	EXPECT(!vt_att_leave(&nl, id, r[1].id));
	EXPECT(!vt_att_join(&nl, id, r[1].id));
	REQUIRE(!vt_att_get(&nl, id, &info));
	EXPECT_EQ(info.n, RINGS);
	EXPECT_EQ(info.rings[1], r[2].id);
	EXPECT_EQ(info.rings[3], r[1].id);
	EXPECT_EQ(vt_att_join(&nl, id, r[1].id), -EEXIST);
	EXPECT_EQ(vt_att_join(&nl, id, 999999), -ENOENT);
	EXPECT_EQ(vt_att_leave(&nl, id, 999999), -ENOENT);
	EXPECT_EQ(vt_att_leave(&nl, 999999, r[0].id), -ENOENT);
	EXPECT(!vt_att_leave(&nl, id, r[0].id));
	EXPECT_EQ(vt_att_leave(&nl, id, r[0].id), -ENOENT);
	EXPECT(!vt_att_leave(&nl, id, r[1].id));
	EXPECT(!vt_att_leave(&nl, id, r[2].id));
	EXPECT_EQ(vt_att_leave(&nl, id, r[3].id), -EBUSY);
	/* a ring that closes leaves by itself; with the last the attachment ends */
	EXPECT(!vt_att_join(&nl, id, r[0].id));
	vt_ring_close(&r[3]);
	REQUIRE(!vt_att_get(&nl, id, &info));
	EXPECT_EQ(info.n, 1);
	EXPECT_EQ(info.rings[0], r[0].id);
	vt_ring_close(&r[0]);
	EXPECT_EQ(vt_att_get(&nl, id, &info), -ENOENT);
}

static void most_rings(void)
{
	struct vt_att a = { .ifname = "vb", .fanout = RGATE_FANOUT_HASH };
	static struct vt_ring many[RGATE_ATT_RINGS_MAX + 1];
	struct vt_att_info info;
	unsigned int i;
	int id;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	for (i = 0; i < RGATE_ATT_RINGS_MAX + 1; i++)
		vt_ring_open(&many[i], 64, 256, 0, 0);
	for (i = 0; i < RGATE_ATT_RINGS_MAX; i++)
		a.rings[i] = many[i].id;
	a.n = RGATE_ATT_RINGS_MAX;
	id = vt_att_new(&nl, &a);
	REQUIRE(id > 0);
	EXPECT(vt_att_join(&nl, (uint32_t)id, many[i].id) == -ENOSPC);
	REQUIRE(!vt_att_get(&nl, (uint32_t)id, &info));
	EXPECT_EQ(info.n, RGATE_ATT_RINGS_MAX);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 1);
	a.rings[5] = a.rings[4];
	EXPECT_EQ(vt_att_new(&nl, &a), -EEXIST);
}

static void change_live(void)
{
	struct vt_traffic t = { .ifname = "va", .len = 100, .cpu = 1, .pause_us = 100 };
	struct vt_seen seen;
	uint64_t end;
	unsigned int i = 0, k;
	uint32_t id;

	vt_veth("va", "vb", 0);
	rings(1024);
	id = attach("vb", RGATE_FANOUT_CPU, 1);
	vt_seen_init(&seen, 1 << 22);
	vt_traffic_start(&t);
	end = vt_now() + 3000000000ULL;
	while (vt_now() < end) {
		unsigned int j = 1 + i % (RINGS - 1);

		if (i++ % 6 < 3)
			EXPECT(!vt_att_join(&nl, id, r[j].id));
		else
			EXPECT(!vt_att_leave(&nl, id, r[j].id));
		for (k = 0; k < RINGS; k++)
			while (vt_ring_next(&r[k]))
				vt_ring_verify(&r[k], &seen, 1, 1);
	}
	vt_traffic_stop(&t);
	VT_UNTIL(vt_att_stat(&nl, id, RGATE_A_ATT_STATS_SEEN) >= t.sent, 3000);
	for (k = 0; k < RINGS; k++)
		while (vt_ring_next(&r[k]))
			vt_ring_verify(&r[k], &seen, 1, 1);
	vt_note("%u changes, %llu frames", i, (unsigned long long)t.sent);
	EXPECT_EQ(seen.dup, 0);
	EXPECT_EQ(seen.got, vt_att_stat(&nl, id, RGATE_A_ATT_STATS_DELIVERED));
	EXPECT_EQ(vt_att_stat(&nl, id, RGATE_A_ATT_STATS_SEEN),
		  vt_att_stat(&nl, id, RGATE_A_ATT_STATS_DELIVERED) +
		  vt_att_stat(&nl, id, RGATE_A_ATT_STATS_DROPPED_FULL));
}

static const struct vt_case cases[] = {
	{ .name = "by CPU", .fn = by_cpu },
	{ .name = "by receive queue", .fn = by_queue },
	{ .name = "by flow: the same flow in the same ring", .fn = by_hash },
	{ .name = "rollover", .fn = rollover },
	{ .name = "order of rings; join, leave, close", .fn = order_is_as_given },
	{ .name = "64 rings and no more", .fn = most_rings },
	{ .name = "join and leave under traffic", .fn = change_live },
};

VT_MAIN(cases)
