// SPDX-License-Identifier: MIT OR GPL-2.0
/* Filters, actions, sampling, priorities, and who attaches where. */
#include "lib/vt.h"

static struct vt_nl nl;
static struct vt_ring ring;
static int tx;

static void setup(uint32_t slots)
{
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&ring, slots, 512, 0, 0);
	tx = vt_tx_open("va");
}

static uint32_t attach(struct vt_att *a)
{
	int id = vt_att_new(&nl, a);

	if (id <= 0)
		DIE("ATT_NEW: %s", strerror(-id));
	return (uint32_t)id;
}

/* A tcpdump expression, compiled by tcpdump itself */
static unsigned int compile(const char *expr, struct sock_filter *to, unsigned int max)
{
	unsigned int n = 0, i, code, jt, jf, k;
	char cmd[512];
	FILE *p;

	snprintf(cmd, sizeof(cmd), "tcpdump -ddd -y EN10MB '%s' 2>/dev/null", expr);
	p = popen(cmd, "r");
	REQUIRE(p);
	if (fscanf(p, "%u", &n) != 1)
		vt_skip("tcpdump cannot compile '%s' here", expr);
	REQUIRE(n > 0 && n <= max);
	for (i = 0; i < n; i++) {
		REQUIRE(fscanf(p, "%u %u %u %u", &code, &jt, &jf, &k) == 4);
		to[i] = (struct sock_filter){ (uint16_t)code, (uint8_t)jt,
					      (uint8_t)jf, k };
	}
	pclose(p);
	return n;
}

/* Matches UDP frames of ours of one flow; 6 instructions */
static unsigned int flow_filter(struct sock_filter *f, uint16_t flow)
{
	const struct sock_filter prog[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 17, 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 34),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VT_PKT_SPORT + flow, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0x40000),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};

	memcpy(f, prog, sizeof(prog));
	return VT_COUNT(prog);
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

static void wait_seen(uint32_t id, uint64_t n)
{
	if (!VT_UNTIL(vt_att_stat(&nl, id, RGATE_A_ATT_STATS_SEEN) >= n, 5000))
		DIE("the hook saw %llu of %llu frames",
		    (unsigned long long)vt_att_stat(&nl, id, RGATE_A_ATT_STATS_SEEN),
		    (unsigned long long)n);
}

static void by_port(void)
{
	struct sock_filter f[16];
	struct vt_att a = { .ifname = "vb", .n = 1, .filter = f };
	struct vt_att_info i;
	int stack;
	uint32_t id;

	setup(256);
	a.rings[0] = ring.id;
	a.nfilter = flow_filter(f, 7);
	id = attach(&a);
	stack = vt_stack_open("vb");
	send_flow(20, 7);
	send_flow(30, 8);
	send_flow(20, 7);
	wait_seen(id, 70);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 40, 500), 40);
	EXPECT(!vt_ring_next(&ring));
	EXPECT_EQ(vt_stack_drain(stack, 1000), 30);
	REQUIRE(!vt_att_get(&nl, id, &i));
	EXPECT_EQ(i.filter_len, 6);
	EXPECT_EQ(i.st[RGATE_A_ATT_STATS_SEEN], 70);
	EXPECT_EQ(i.st[RGATE_A_ATT_STATS_FILTERED], 30);
	EXPECT_EQ(i.st[RGATE_A_ATT_STATS_DELIVERED], 40);
	EXPECT_EQ(i.st[RGATE_A_ATT_STATS_BYTES], 4000);
}

static void by_tcpdump(void)
{
	static const struct {
		const char *expr;
		unsigned int want;	/* of 10 frames each of flows 0, 1, 2 */
	} t[] = {
		{ "udp", 30 }, { "tcp", 0 }, { "udp src port 20001", 10 },
		{ "ip host 10.9.0.1 and udp src portrange 20001-20002", 20 },
		{ "not udp src port 20000", 20 }, { "greater 200", 0 },
		{ "less 100", 30 }, { "ether dst 02:00:00:00:00:02", 30 },
		{ "ip6", 0 }, { "udp[8:4] != 0 and ip[8] = 64", 30 },
	};
	struct sock_filter f[256];
	size_t i;

	setup(64);
	for (i = 0; i < VT_COUNT(t); i++) {
		struct vt_att a = {
			.ifname = "vb", .rings = { ring.id }, .n = 1, .filter = f,
		};
		uint32_t id;
		unsigned int flow;

		a.nfilter = compile(t[i].expr, f, VT_COUNT(f));
		id = attach(&a);
		for (flow = 0; flow < 3; flow++)
			send_flow(10, (uint16_t)flow);
		wait_seen(id, 30);
		if (vt_ring_verify(&ring, NULL, 30, 100) != t[i].want)
			FAIL("'%s' did not match %u frames", t[i].expr, t[i].want);
		EXPECT_EQ(vt_att_stat(&nl, id, RGATE_A_ATT_STATS_FILTERED),
			  30 - t[i].want);
		EXPECT(!vt_att_del(&nl, id));
	}
}

static void return_value_is_snap_length(void)
{
	struct sock_filter f[] = { BPF_STMT(BPF_RET | BPF_K, 60) };
	struct vt_att a = {
		.ifname = "vb", .n = 1, .filter = f, .nfilter = 1,
	};
	const struct rgate_slot *s;
	uint8_t buf[300];

	setup(64);
	a.rings[0] = ring.id;
	attach(&a);
	vt_pkt_udp(buf, 300, 1, 0);
	REQUIRE(!vt_tx_send(tx, buf, 300));
	s = vt_ring_wait(&ring, 3000);
	REQUIRE(s);
	EXPECT_EQ(s->len, 60);
	EXPECT_EQ(s->wire_len, 300);
	EXPECT(s->flags & RGATE_SLOT_TRUNC);
	EXPECT(!memcmp(vt_slot_data(s), buf, 60));
}

static int with_filter(const struct sock_filter *f, unsigned int n)
{
	struct vt_att a = {
		.ifname = "vb", .rings = { ring.id }, .n = 1,
		.filter = f, .nfilter = n,
	};
	int id = vt_att_new(&nl, &a);

	if (id > 0)
		EXPECT(!vt_att_del(&nl, (uint32_t)id));
	return id > 0 ? 0 : id;
}

static void bad_programs(void)
{
	static const struct sock_filter no_ret[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
	}, jump_out[] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 5, 0),
		BPF_STMT(BPF_RET | BPF_K, 1),
	}, ja_wraps[] = {
		BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff),
		BPF_STMT(BPF_RET | BPF_K, 1),
	}, div_zero[] = {
		BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 1),
	}, mem_out[] = {
		BPF_STMT(BPF_ST, 16),
		BPF_STMT(BPF_RET | BPF_K, 1),
	}, mem_unset[] = {
		BPF_STMT(BPF_LD | BPF_MEM, 3),
		BPF_STMT(BPF_RET | BPF_A, 0),
	}, unknown[] = {
		{ 0xffff, 0, 0, 0 },
		BPF_STMT(BPF_RET | BPF_K, 1),
	}, shift[] = {
		BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 32),
		BPF_STMT(BPF_RET | BPF_K, 1),
	}, ok[] = {
		BPF_STMT(BPF_RET | BPF_K, 1),
	};
	static struct sock_filter big[RGATE_FILTER_LEN_MAX + 1];
	char buf[256];
	struct nlmsghdr *nlh;
	size_t i, odd[] = { 1, 7, 9, 12 };

	setup(64);
	EXPECT_EQ(with_filter(no_ret, 1), -EINVAL);
	EXPECT_EQ(with_filter(jump_out, 2), -EINVAL);
	EXPECT_EQ(with_filter(ja_wraps, 2), -EINVAL);
	EXPECT_EQ(with_filter(div_zero, 2), -EINVAL);
	EXPECT_EQ(with_filter(mem_out, 2), -EINVAL);
	EXPECT_EQ(with_filter(mem_unset, 2), -EINVAL);
	EXPECT_EQ(with_filter(unknown, 2), -EINVAL);
	EXPECT_EQ(with_filter(shift, 2), -EINVAL);
	EXPECT_EQ(with_filter(ok, 1), 0);
	EXPECT_EQ(with_filter(ok, 0), 0);	/* empty: all match */
	for (i = 0; i < VT_COUNT(big); i++)
		big[i] = ok[0];
	EXPECT_EQ(with_filter(big, RGATE_FILTER_LEN_MAX), 0);
	EXPECT(with_filter(big, RGATE_FILTER_LEN_MAX + 1) < 0);
	/* not a whole number of instructions */
	for (i = 0; i < VT_COUNT(odd); i++) {
		nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);
		mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, "vb");
		vt_nl_put_ring(nlh, ring.id, ring.cookie);
		mnl_attr_put(nlh, RGATE_A_ATT_FILTER, odd[i], ok);
		EXPECT_EQ(vt_nl_talk(&nl, nlh, NULL, NULL), -EINVAL);
	}
	/* none of them left an attachment behind */
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
}

static int att_set(uint32_t id, const struct sock_filter *f, unsigned int n,
		   int action, int sample)
{
	char buf[4096];
	struct nlmsghdr *nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_SET, 0);

	vt_nl_put_att(nlh, id, vt_att_cookie(&nl, id));
	if (f)
		mnl_attr_put(nlh, RGATE_A_ATT_FILTER, n * sizeof(*f), f);
	if (action >= 0)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_ACTION, (uint32_t)action);
	if (sample >= 0)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_SAMPLE, (uint32_t)sample);
	return vt_nl_talk(&nl, nlh, NULL, NULL);
}

static void replace_live(void)
{
	struct vt_traffic t = { .ifname = "va", .len = 100, .cpu = 1 };
	struct sock_filter f[16];
	struct vt_att_info info;
	uint32_t id;
	unsigned int i;

	setup(1024);
	id = vt_att_simple(&nl, "vb", ring.id);
	vt_traffic_start(&t);
	for (i = 0; i < 150; i++) {
		unsigned int n = flow_filter(f, (uint16_t)(i % 2));

		EXPECT(!att_set(id, f, n, i % 3 ? RGATE_ACTION_STEAL : RGATE_ACTION_MIRROR,
				(int)(i % 4)));
		vt_ring_verify(&ring, NULL, 20, 1);
		/* a bad one changes nothing */
		if (i % 10 == 0) {
			f[5].code = 0xffff;
			EXPECT_EQ(att_set(id, f, n, 1, 0), -EINVAL);
		}
	}
	vt_traffic_stop(&t);
	while (vt_ring_verify(&ring, NULL, 1000, 100))
		;
	/* the last: flow 2, by itself; action and sampling as they were */
	EXPECT(!att_set(id, f, flow_filter(f, 2), RGATE_ACTION_STEAL, 0));
	send_flow(10, 2);
	send_flow(10, 1);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 20, 300), 10);
	EXPECT(!att_set(id, NULL, 0, RGATE_ACTION_MIRROR, -1));
	REQUIRE(!vt_att_get(&nl, id, &info));
	EXPECT_EQ(info.filter_len, 6);		/* kept */
	EXPECT_EQ(info.action, RGATE_ACTION_MIRROR);
	send_flow(10, 2);
	send_flow(10, 1);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 20, 300), 10);
	/* empty filter: all match again */
	EXPECT(!att_set(id, f, 0, -1, -1));
	REQUIRE(!vt_att_get(&nl, id, &info));
	EXPECT_EQ(info.filter_len, 0);
	send_flow(10, 1);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 20, 300), 10);
	EXPECT_EQ(att_set(id + 1000, NULL, 0, RGATE_ACTION_STEAL, -1), -ENOENT);
}

static void steal_and_mirror(void)
{
	struct vt_att a = { .ifname = "vb", .n = 1 };
	uint32_t id;
	int stack;

	setup(256);
	stack = vt_stack_open("vb");
	send_flow(5, 0);
	EXPECT_EQ(vt_stack_drain(stack, 1000), 5);	/* the measure works */
	a.rings[0] = ring.id;
	a.action = RGATE_ACTION_MIRROR;
	id = attach(&a);
	send_flow(50, 0);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 50, 1000), 50);
	EXPECT_EQ(vt_stack_drain(stack, 1000), 50);
	EXPECT(!att_set(id, NULL, 0, RGATE_ACTION_STEAL, -1));
	send_flow(50, 0);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 50, 1000), 50);
	EXPECT_EQ(vt_stack_drain(stack, 100), 0);
	EXPECT(!vt_att_del(&nl, id));
	send_flow(5, 0);
	EXPECT_EQ(vt_stack_drain(stack, 1000), 5);
	EXPECT(!vt_ring_next(&ring));
	EXPECT_EQ(vt_att_del(&nl, id), -ENOENT);
}

static void sampling(void)
{
	static const uint32_t rate[] = { 0, 1, 2, 3, 10, 100 };
	int stack;
	size_t i;

	setup(1024);
	stack = vt_stack_open("vb");
	for (i = 0; i < VT_COUNT(rate); i++) {
		struct vt_att a = {
			.ifname = "vb", .rings = { ring.id }, .n = 1,
			.sample = rate[i],
		};
		unsigned int want = rate[i] > 1 ? 600 / rate[i] : 600;
		struct vt_att_info info;
		uint32_t id = attach(&a);

		send_flow(600, 0);
		wait_seen(id, 600);
		EXPECT_EQ(vt_ring_verify(&ring, NULL, 700, 100), want);
		EXPECT_EQ(vt_stack_drain(stack, want < 600 ? 1000 : 50), 600 - want);
		REQUIRE(!vt_att_get(&nl, id, &info));
		EXPECT_EQ(info.sample, rate[i]);
		EXPECT_EQ(info.st[RGATE_A_ATT_STATS_SAMPLED_OUT], 600 - want);
		EXPECT_EQ(info.st[RGATE_A_ATT_STATS_DELIVERED], want);
		EXPECT(!vt_att_del(&nl, id));
	}
}

static void sampling_counts_what_matches(void)
{
	struct sock_filter f[16];
	struct vt_att a = { .ifname = "vb", .n = 1, .filter = f, .sample = 5 };
	struct vt_att_info info;
	unsigned int i;
	uint32_t id;

	setup(256);
	a.rings[0] = ring.id;
	a.nfilter = flow_filter(f, 1);
	id = attach(&a);
	for (i = 0; i < 100; i++) {
		send_flow(1, 1);
		send_flow(2, 0);
	}
	wait_seen(id, 300);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 300, 100), 20);
	REQUIRE(!vt_att_get(&nl, id, &info));
	EXPECT_EQ(info.st[RGATE_A_ATT_STATS_FILTERED], 200);
	EXPECT_EQ(info.st[RGATE_A_ATT_STATS_SAMPLED_OUT], 80);
}

static void priorities(void)
{
	struct vt_att first = { .ifname = "vb", .n = 1, .prio = -100 };
	struct vt_att second = { .ifname = "vb", .n = 1, .prio = 100 };
	struct vt_att_info info;
	uint32_t id1, id2;
	struct vt_ring r2;

	setup(256);
	vt_ring_open(&r2, 256, 512, 0, 0);
	first.rings[0] = ring.id;
	second.rings[0] = r2.id;
	/* in the wrong order of time: the priority counts */
	id2 = attach(&second);
	id1 = attach(&first);
	send_flow(20, 0);
	wait_seen(id1, 20);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 20, 1000), 20);
	EXPECT_EQ(vt_att_stat(&nl, id2, RGATE_A_ATT_STATS_SEEN), 0);
	REQUIRE(!vt_att_get(&nl, id1, &info));
	EXPECT_EQ(info.prio, -100);
	/* mirrored by the first, taken by the second */
	EXPECT(!att_set(id1, NULL, 0, RGATE_ACTION_MIRROR, -1));
	send_flow(20, 0);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 20, 1000), 20);
	EXPECT_EQ(vt_ring_verify(&r2, NULL, 20, 1000), 20);
	/* and with the first gone */
	EXPECT(!vt_att_del(&nl, id1));
	send_flow(20, 0);
	EXPECT_EQ(vt_ring_verify(&r2, NULL, 20, 1000), 20);
	EXPECT(!vt_ring_next(&ring));
}

static void many_devices_one_ring(void)
{
	struct vt_att a = { .n = 1 };
	unsigned int by_dev[3] = { 0 }, i, ifindex[3];
	struct vt_seen seen;
	int txs[3];

	vt_nl_open(&nl);
	vt_ring_open(&ring, 1024, 512, 0, 0);
	for (i = 0; i < 3; i++) {
		char x[8], y[8];

		snprintf(x, sizeof(x), "x%u", i);
		snprintf(y, sizeof(y), "y%u", i);
		vt_veth(x, y, 0);
		ifindex[i] = vt_ifindex(y);
		a.ifindex = ifindex[i];
		a.rings[0] = ring.id;
		attach(&a);
		txs[i] = vt_tx_open(x);
	}
	vt_seen_init(&seen, 300);
	for (i = 0; i < 300; i++)
		vt_tx_burst(txs[i % 3], 100, i, 1);
	while (seen.got + seen.dup < 300) {
		const struct rgate_slot *s = vt_ring_wait(&ring, 2000);
		unsigned int d;
		uint64_t seq;

		if (!s)
			break;
		EXPECT(vt_pkt_check(vt_slot_data(s), s->len, &seq));
		vt_seen_add(&seen, seq);
		for (d = 0; d < 3; d++)
			if (s->ifindex == ifindex[d]) {
				EXPECT_EQ(seq % 3, d);
				by_dev[d]++;
			}
		vt_ring_done(&ring);
	}
	EXPECT_EQ(seen.got, 300);
	EXPECT_EQ(by_dev[0], 100);
	EXPECT_EQ(by_dev[1], 100);
	EXPECT_EQ(by_dev[2], 100);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 3);
	/* the ring goes, and all its attachments with it */
	vt_ring_close(&ring);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
}

static void many_rings_one_device(void)
{
	struct sock_filter f[16];
	struct vt_att a = { .ifname = "vb", .n = 1, .filter = f };
	struct vt_ring r[8];
	unsigned int i;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	tx = vt_tx_open("va");
	for (i = 0; i < 8; i++) {
		vt_ring_open(&r[i], 64, 512, 0, 0);
		a.rings[0] = r[i].id;
		a.nfilter = flow_filter(f, (uint16_t)i);
		a.prio = (int)i - 4;
		attach(&a);
	}
	for (i = 0; i < 8; i++)
		send_flow(i * 5, (uint16_t)i);
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(vt_ring_verify(&r[i], NULL, i * 5, 1000), i * 5);
		EXPECT(!vt_ring_next(&r[i]));
	}
}

static const struct vt_case cases[] = {
	{ .name = "a filter by port, counters and what the stack gets", .fn = by_port },
	{ .name = "programs of tcpdump -ddd", .fn = by_tcpdump, .secs = 60 },
	{ .name = "the program's result is the snap length", .fn = return_value_is_snap_length },
	{ .name = "bad programs are refused", .fn = bad_programs },
	{ .name = "filter, action, sampling replaced under traffic",
	  .fn = replace_live, .secs = 60 },
	{ .name = "steal and mirror", .fn = steal_and_mirror },
	{ .name = "1 in N, exactly", .fn = sampling },
	{ .name = "sampling counts what the filter matched", .fn = sampling_counts_what_matches },
	{ .name = "priorities order attachments", .fn = priorities },
	{ .name = "several devices, one ring", .fn = many_devices_one_ring },
	{ .name = "several rings, one device", .fn = many_rings_one_device },
};

VT_MAIN(cases)
