// SPDX-License-Identifier: MIT OR GPL-2.0
/* The generic netlink family: bad requests, permissions, dumps, namespaces. */
#include "lib/vt.h"

static struct vt_nl nl;
static struct vt_ring ring;
static char buf[VT_NL_BUF];

static void setup(void)
{
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&ring, 64, 256, 0, 0);
}

static struct nlmsghdr *att_new(void)
{
	struct nlmsghdr *nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);

	mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, "vb");
	vt_nl_put_ring(nlh, ring.id, ring.cookie);
	return nlh;
}

static int talk(struct nlmsghdr *nlh)
{
	return vt_nl_talk(&nl, nlh, NULL, NULL);
}

static void refused(struct nlmsghdr *nlh, const char *what)
{
	int r = talk(nlh);

	if (r != -EINVAL && r != -ERANGE && r != -E2BIG)
		FAIL("%s: %d", what, r);
}

static void wrong_sizes(void)
{
	static const int u32s[] = {
		RGATE_A_ATT_PRIORITY, RGATE_A_ATT_ACTION, RGATE_A_ATT_FANOUT,
		RGATE_A_ATT_SAMPLE, RGATE_A_ATT_RING,
	};
	static const size_t sizes[] = { 0, 1, 2, 3, 5, 8, 64 };
	static const uint8_t ones[64] = { 1, 0, 0, 0, 1 };
	struct nlmsghdr *nlh;
	size_t i, k;

	setup();
	for (i = 0; i < VT_COUNT(u32s); i++)
		for (k = 0; k < VT_COUNT(sizes); k++) {
			nlh = att_new();
			mnl_attr_put(nlh, (uint16_t)u32s[i], sizes[k], ones);
			refused(nlh, "attribute of a wrong size");
		}
	for (k = 0; k < VT_COUNT(sizes); k++) {
		nlh = vt_nl_req(&nl, buf, RGATE_CMD_RING_GET, 0);
		mnl_attr_put(nlh, RGATE_A_RING_ID, sizes[k], ones);
		refused(nlh, "ring id of a wrong size");
		nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_GET, 0);
		mnl_attr_put(nlh, RGATE_A_ATT_ID, sizes[k], ones);
		refused(nlh, "attachment id of a wrong size");
	}
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
}

static void wrong_values(void)
{
	struct nlmsghdr *nlh;

	setup();
	nlh = att_new();
	mnl_attr_put_u32(nlh, RGATE_A_ATT_ACTION, RGATE_ACTION_STEAL + 1);
	refused(nlh, "action");
	nlh = att_new();
	mnl_attr_put_u32(nlh, RGATE_A_ATT_ACTION, 0);
	refused(nlh, "action 0");
	nlh = att_new();
	mnl_attr_put_u32(nlh, RGATE_A_ATT_ACTION, ~0U);
	refused(nlh, "action -1");
	nlh = att_new();
	mnl_attr_put_u32(nlh, RGATE_A_ATT_FANOUT, RGATE_FANOUT_COUNT);
	refused(nlh, "fanout");
	nlh = att_new();
	vt_nl_put_ring(nlh, 0, ring.cookie);
	refused(nlh, "ring 0");
	/* both ways to name the device, or none */
	nlh = att_new();
	mnl_attr_put_u32(nlh, RGATE_A_ATT_IFINDEX, vt_ifindex("vb"));
	refused(nlh, "name and number");
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);
	vt_nl_put_ring(nlh, ring.id, ring.cookie);
	refused(nlh, "no device");
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);
	mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, "vb");
	refused(nlh, "no ring");
	/* devices and rings that are not there */
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);
	mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, "nosuch0");
	vt_nl_put_ring(nlh, ring.id, ring.cookie);
	EXPECT_EQ(talk(nlh), -ENODEV);
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);
	mnl_attr_put_u32(nlh, RGATE_A_ATT_IFINDEX, 0x7fffffff);
	vt_nl_put_ring(nlh, ring.id, ring.cookie);
	EXPECT_EQ(talk(nlh), -ENODEV);
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);
	mnl_attr_put_u32(nlh, RGATE_A_ATT_IFINDEX, 0x80000001);
	vt_nl_put_ring(nlh, ring.id, ring.cookie);
	EXPECT(talk(nlh) < 0);
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);
	mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, "vb");
	vt_nl_put_ring(nlh, 0x7ffffffe, ring.cookie);
	EXPECT_EQ(talk(nlh), -ENOENT);
	/* names: not terminated, too long, empty */
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);
	mnl_attr_put(nlh, RGATE_A_ATT_IFNAME, 2, "vb");
	vt_nl_put_ring(nlh, ring.id, ring.cookie);
	refused(nlh, "name without end");
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);
	mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, "a-name-that-is-much-too-long-for-a-device");
	vt_nl_put_ring(nlh, ring.id, ring.cookie);
	refused(nlh, "long name");
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);
	mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, "");
	vt_nl_put_ring(nlh, ring.id, ring.cookie);
	EXPECT(talk(nlh) < 0);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
}

static void id_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[RGATE_A_ATT_MAX + 1];

	vt_nl_parse_msg(nlh, tb, RGATE_A_ATT_MAX);
	if (tb[RGATE_A_ATT_ID])
		*(uint32_t *)arg = mnl_attr_get_u32(tb[RGATE_A_ATT_ID]);
}

/* The least that names a device and a ring takes nothing from the stack. */
static void mirror_by_default(void)
{
	struct vt_att_info info;
	int tx, stack;
	uint32_t id = 0;

	setup();
	REQUIRE(!vt_nl_talk(&nl, att_new(), id_cb, &id));
	REQUIRE(!vt_att_get(&nl, id, &info));
	EXPECT_EQ(info.action, RGATE_ACTION_MIRROR);
	tx = vt_tx_open("va");
	stack = vt_stack_open("vb");
	vt_tx_burst(tx, 100, 0, 20);
	EXPECT_EQ(vt_ring_verify(&ring, NULL, 20, 1000), 20);
	EXPECT_EQ(vt_stack_drain(stack, 1000), 20);
}

static void unknown_things(void)
{
	struct nlmsghdr *nlh;
	unsigned int i;

	setup();
	/* attributes that are not of the request, or of nothing */
	nlh = att_new();
	mnl_attr_put_u32(nlh, RGATE_A_ATT_MAX + 1, 1);
	refused(nlh, "unknown attribute");
	nlh = att_new();
	mnl_attr_put_u32(nlh, 1000, 1);
	refused(nlh, "attribute 1000");
	nlh = att_new();
	mnl_attr_put_u32(nlh, RGATE_A_ATT_ID, 5);
	refused(nlh, "an id of the user's choice");
	nlh = att_new();
	mnl_attr_put_u32(nlh, RGATE_A_ATT_FILTER_LEN, 5);
	refused(nlh, "a reply's attribute");
	nlh = att_new();
	mnl_attr_put_u32(nlh, RGATE_A_ATT_STATS, 5);
	refused(nlh, "counters in a request");
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_RING_GET, 0);
	mnl_attr_put_u32(nlh, RGATE_A_RING_ID, ring.id);
	mnl_attr_put_u32(nlh, RGATE_A_RING_SLOTS, 64);
	refused(nlh, "RING_GET with more than an id");
	/* commands */
	for (i = 0; i < 256; i++) {
		int r;

		if (i > RGATE_CMD_UNSPEC && i < RGATE_CMD_EVENT)
			continue;
		nlh = vt_nl_req(&nl, buf, (uint8_t)i, 0);
		r = talk(nlh);
		if (r != -EOPNOTSUPP)
			FAIL("command %u: %d", i, r);
	}
	/* dump of what cannot be dumped */
	nlh = att_new();
	nlh->nlmsg_flags |= NLM_F_DUMP;
	EXPECT(talk(nlh) < 0);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
}

static void malformed(void)
{
	struct nlmsghdr *nlh;
	struct nlattr *a;
	unsigned int i;

	setup();
	/* an attribute that claims more than there is, or less than its header */
	nlh = att_new();
	mnl_attr_put_u32(nlh, RGATE_A_ATT_SAMPLE, 1);
	a = (struct nlattr *)((char *)nlh + nlh->nlmsg_len - 8);
	a->nla_len = 4000;
	EXPECT(talk(nlh) < 0);
	nlh = att_new();
	mnl_attr_put_u32(nlh, RGATE_A_ATT_SAMPLE, 1);
	a = (struct nlattr *)((char *)nlh + nlh->nlmsg_len - 8);
	a->nla_len = 3;
	EXPECT(talk(nlh) < 0);
	/* a nested flag on something flat */
	nlh = att_new();
	mnl_attr_put_u32(nlh, RGATE_A_ATT_SAMPLE | NLA_F_NESTED, 1);
	EXPECT(talk(nlh) < 0);
	/* rubbish behind the command, 2000 times */
	for (i = 0; i < 2000; i++) {
		size_t len = vt_rand() % 200, k;
		uint8_t *p;

		nlh = vt_nl_req(&nl, buf, (uint8_t)(1 + vt_rand() % RGATE_CMD_EVENT),
				vt_rand() & 1 ? NLM_F_DUMP : 0);
		p = (uint8_t *)nlh + nlh->nlmsg_len;
		for (k = 0; k < len; k++)
			p[k] = (uint8_t)vt_rand();
		/* half of them with a plausible first attribute */
		if (len >= 8 && vt_rand() & 1) {
			a = (struct nlattr *)p;
			a->nla_len = (uint16_t)(4 + vt_rand() % 8);
			a->nla_type = (uint16_t)(vt_rand() % 16);
		}
		nlh->nlmsg_len += (uint32_t)len;
		(void)talk(nlh);
	}
	/* alive, and nothing was attached by chance to a device of ours */
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_RING_GET), 1);
	EXPECT(talk(att_new()) == 0);
	EXPECT_GE(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 1);
}

static void missing(void)
{
	static const uint8_t need_id[] = {
		RGATE_CMD_RING_GET, RGATE_CMD_ATT_DEL, RGATE_CMD_ATT_GET,
		RGATE_CMD_ATT_SET, RGATE_CMD_ATT_JOIN, RGATE_CMD_ATT_LEAVE,
	};
	struct nlmsghdr *nlh;
	uint32_t id;
	size_t i;

	setup();
	for (i = 0; i < VT_COUNT(need_id); i++) {
		nlh = vt_nl_req(&nl, buf, need_id[i], 0);
		EXPECT_EQ(talk(nlh), -EINVAL);
		/* an id of nobody */
		nlh = vt_nl_req(&nl, buf, need_id[i], 0);
		if (need_id[i] == RGATE_CMD_RING_GET)
			mnl_attr_put_u32(nlh, RGATE_A_RING_ID, 0x7ffffff0);
		else if (need_id[i] == RGATE_CMD_ATT_GET)
			mnl_attr_put_u32(nlh, RGATE_A_ATT_ID, 0x7ffffff0);
		else
			vt_nl_put_att(nlh, 0x7ffffff0, 1);
		if (need_id[i] == RGATE_CMD_ATT_JOIN || need_id[i] == RGATE_CMD_ATT_LEAVE)
			vt_nl_put_ring(nlh, ring.id, ring.cookie);
		EXPECT_EQ(talk(nlh), -ENOENT);
	}
	/* JOIN without a ring */
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_JOIN, 0);
	id = vt_att_simple(&nl, "vb", ring.id);
	vt_nl_put_att(nlh, id, vt_att_cookie(&nl, id));
	EXPECT_EQ(talk(nlh), -EINVAL);
}

static void set_is_limited(void)
{
	static const int fixed[] = {
		RGATE_A_ATT_IFINDEX, RGATE_A_ATT_PRIORITY, RGATE_A_ATT_FANOUT,
		RGATE_A_ATT_RING,
	};
	struct vt_att_info before, after;
	uint32_t id;
	size_t i;

	setup();
	id = vt_att_simple(&nl, "vb", ring.id);
	REQUIRE(!vt_att_get(&nl, id, &before));
	for (i = 0; i < VT_COUNT(fixed); i++) {
		struct nlmsghdr *nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_SET, 0);

		vt_nl_put_att(nlh, id, vt_att_cookie(&nl, id));
		mnl_attr_put_u32(nlh, (uint16_t)fixed[i], 1);
		mnl_attr_put_u32(nlh, RGATE_A_ATT_ACTION, RGATE_ACTION_MIRROR);
		EXPECT(talk(nlh) < 0);
	}
	REQUIRE(!vt_att_get(&nl, id, &after));
	EXPECT(!memcmp(&before, &after, sizeof(before)));
}

static void ids_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[RGATE_A_RING_MAX + 1];
	uint8_t *seen = arg;
	uint32_t id;

	vt_nl_parse_msg(nlh, tb, RGATE_A_RING_MAX);
	EXPECT(nlh->nlmsg_flags & NLM_F_MULTI);
	if (!tb[RGATE_A_RING_ID]) {
		FAIL("an object without number");
		return;
	}
	id = mnl_attr_get_u32(tb[RGATE_A_RING_ID]);
	if (id < 100000)
		seen[id]++;
}

static void long_dumps(void)
{
	static uint8_t seen[100000];
	static struct vt_ring many[300];
	struct nlmsghdr *nlh;
	unsigned int i;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	for (i = 0; i < 300; i++) {
		struct rgate_create c = vt_create_req();

		c.slots = 64;
		c.slot_size = 256;
		many[i].fd = vt_dev_open();
		REQUIRE(!ioctl(many[i].fd, RGATE_IOC_CREATE, &c));
		many[i].id = c.ring_id;
	}
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_RING_GET, NLM_F_DUMP);
	EXPECT_EQ(vt_nl_talk(&nl, nlh, ids_cb, seen), 0);
	EXPECT_GE(nl.dump_msgs, 3);	/* more than one skb */
	for (i = 0; i < 300; i++)
		if (many[i].id < sizeof(seen))
			EXPECT_EQ(seen[many[i].id], 1);
	for (i = 0; i < 150; i++)
		vt_att_simple(&nl, "vb", many[i].id);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 150);
	EXPECT_GE(nl.dump_msgs, 3);
	for (i = 0; i < 300; i += 2)
		close(many[i].fd);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_RING_GET), 150);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 75);
}

static void isolation(void)
{
	int here = vt_netns_self(), there = vt_netns_new();
	struct vt_att a = { .n = 1 };
	struct vt_ring_info ri;
	struct vt_att_info ai;
	struct vt_event ev;
	struct vt_nl other;
	uint32_t id, ifindex;

	setup();
	id = vt_att_simple(&nl, "vb", ring.id);
	ifindex = vt_ifindex("vb");
	vt_netns_enter(there);
	vt_veth("va", "vb", 0);
	vt_nl_open(&other);
	vt_netns_enter(here);
	REQUIRE(!vt_nl_subscribe(&other));
	/* nothing of it is seen or touched from the other namespace */
	EXPECT_EQ(vt_nl_count(&other, RGATE_CMD_RING_GET), 0);
	EXPECT_EQ(vt_nl_count(&other, RGATE_CMD_ATT_GET), 0);
	EXPECT_EQ(vt_ring_info(&other, ring.id, &ri), -ENOENT);
	EXPECT_EQ(vt_att_get(&other, id, &ai), -ENOENT);
	EXPECT_EQ(vt_att_del(&other, id), -ENOENT);
	EXPECT_EQ(vt_att_join(&other, id, ring.id), -ENOENT);
	a.ifname = "vb";
	a.rings[0] = ring.id;
	EXPECT_EQ(vt_att_new(&other, &a), -ENOENT);
	a.ifname = NULL;
	a.ifindex = ifindex;
	EXPECT(vt_att_new(&other, &a) < 0);
	/* a device of the other namespace cannot be had from here */
	vt_must("ip link add own type veth peer name own2");
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_RING_GET), 1);
	/* its events stay at home */
	REQUIRE(!vt_att_del(&nl, id));
	vt_ring_close(&ring);
	EXPECT_EQ(vt_nl_event(&other, &ev, 300), 0);
}

static int without_caps(void *arg)
{
	struct vt_att a = { .ifname = "vb", .rings = { ring.id }, .n = 1 };
	uint32_t id = *(uint32_t *)arg;
	struct nlmsghdr *nlh;
	struct vt_att_info ai;
	struct vt_ring_info ri;
	struct vt_nl mine;

	REQUIRE(!setgid(12345) && !setuid(12345));
	vt_nl_open(&mine);
	EXPECT_EQ(vt_att_new(&mine, &a), -EPERM);
	EXPECT_EQ(vt_att_del(&mine, id), -EPERM);
	EXPECT_EQ(vt_att_join(&mine, id, ring.id), -EPERM);
	EXPECT_EQ(vt_att_leave(&mine, id, ring.id), -EPERM);
	nlh = vt_nl_req(&mine, buf, RGATE_CMD_ATT_SET, 0);
	vt_nl_put_att(nlh, id, vt_att_cookie(&nl, id));
	mnl_attr_put_u32(nlh, RGATE_A_ATT_ACTION, 1);
	EXPECT_EQ(vt_nl_talk(&mine, nlh, NULL, NULL), -EPERM);
	/* looking is allowed, as with ip(8) */
	EXPECT_EQ(vt_att_get(&mine, id, &ai), 0);
	EXPECT_EQ(vt_ring_info(&mine, ring.id, &ri), 0);
	EXPECT_EQ(ri.uid, 0);
	EXPECT_EQ(vt_nl_count(&mine, RGATE_CMD_RING_GET), 1);
	/* events are not: each listener costs whoever sends one */
	EXPECT_EQ(vt_nl_subscribe(&mine), -EPERM);
	return 0;
}

static void permission(void)
{
	uint32_t id;

	setup();
	id = vt_att_simple(&nl, "vb", ring.id);
	EXPECT_EQ(vt_wait(vt_fork(without_caps, &id), 10000), 0);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 1);
}

static void too_many_rings(void)
{
	struct nlmsghdr *nlh;
	unsigned int i;
	uint32_t id;

	setup();
	nlh = att_new();
	for (i = 0; i < RGATE_ATT_RINGS_MAX; i++)
		vt_nl_put_ring(nlh, ring.id, ring.cookie);
	EXPECT_EQ(talk(nlh), -E2BIG);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
	id = vt_att_simple(&nl, "vb", ring.id);
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_JOIN, 0);
	vt_nl_put_att(nlh, id, vt_att_cookie(&nl, id));
	vt_nl_put_ring(nlh, ring.id, ring.cookie);
	vt_nl_put_ring(nlh, ring.id + 1, 1);
	EXPECT_EQ(talk(nlh), -E2BIG);
}

/* How many answers wait in @deaf */
static unsigned int answers_of(struct vt_nl *deaf)
{
	struct pollfd p = { .fd = mnl_socket_get_fd(deaf->sock), .events = POLLIN };
	const struct nlmsghdr *nlh = (const void *)buf;
	unsigned int n = 0;

	while (poll(&p, 1, 100) > 0) {
		/* It is told once that there was no room. */
		if (mnl_socket_recvfrom(deaf->sock, buf, sizeof(buf)) > 0)
			n += nlh->nlmsg_type == deaf->family;
		else
			REQUIRE(errno == ENOBUFS);
	}
	return n;
}

/* An attachment whose number could not be told is not left behind. */
static void unread_answers(void)
{
	enum { ASKED = 100 };
	struct vt_nl deaf;
	struct nlmsghdr *nlh;
	unsigned int i, told;
	int small = 1;

	setup();
	vt_nl_open(&deaf);
	REQUIRE(!setsockopt(mnl_socket_get_fd(deaf.sock), SOL_SOCKET, SO_RCVBUF, &small,
			    sizeof(small)));
	for (i = 0; i < ASKED; i++) {
		nlh = vt_nl_req(&deaf, buf, RGATE_CMD_ATT_NEW, 0);
		mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, "vb");
		vt_nl_put_ring(nlh, ring.id, ring.cookie);
		REQUIRE(mnl_socket_sendto(deaf.sock, nlh, nlh->nlmsg_len) > 0);
	}
	told = answers_of(&deaf);
	EXPECT_GE(told, 1);
	EXPECT(told < ASKED);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), told);
	vt_nl_close(&deaf);
}

/* The name is the present one, which a device may change while it is up or down. */
static void renamed_device(void)
{
	struct vt_att_info info;
	uint32_t id;

	setup();
	id = vt_att_simple(&nl, "vb", ring.id);
	vt_must("ip link set vb down");
	vt_must("ip link set vb name other");
	vt_must("ip link set other up");
	REQUIRE(!vt_att_get(&nl, id, &info));
	EXPECT(!strcmp(info.ifname, "other"));
	EXPECT_EQ(info.ifindex, vt_ifindex("other"));
	/* the other end is nobody's here */
	vt_must("ip link set va down && ip link set va name vb");
	REQUIRE(!vt_att_get(&nl, id, &info));
	EXPECT(!strcmp(info.ifname, "other"));
}

/* Ask the same of a ring in the three ways there are */
static void ring_is_told_whole(void)
{
	struct rgate_create c = vt_create_req();
	struct vt_ring_info i;

	vt_nl_open(&nl);
	c.slots = 512;
	c.slot_size = 1024;
	c.flags = RGATE_RING_CHAIN;
	c.policy = RGATE_POLICY_PASS;
	c.clock = RGATE_CLOCK_REALTIME;
	strcpy(c.name, "told");
	vt_ring_create(&ring, &c);
	REQUIRE(!vt_ring_info(&nl, ring.id, &i));
	EXPECT_EQ(i.id, ring.id);
	EXPECT(!strcmp(i.name, "told"));
	EXPECT_EQ(i.slots, 512);
	EXPECT_EQ(i.slot_size, 1024);
	EXPECT_EQ(i.flags, RGATE_RING_CHAIN);
	EXPECT_EQ(i.policy, RGATE_POLICY_PASS);
	EXPECT_EQ(i.clock, RGATE_CLOCK_REALTIME);
	EXPECT_EQ(i.generation, 1);
	EXPECT_EQ(i.handles, 1);
	EXPECT_EQ(i.node, -1);
	EXPECT_EQ(i.uid, 0);
	EXPECT_EQ(i.head, 0);
	EXPECT_GE(i.mem_bytes, ring.geo.map_len);
}

/* One cause has one reason, which is told */
static void too_many_hooks(void)
{
	struct vt_att a = { .ifname = "vb", .n = 1 };
	unsigned int i;
	int r = 0;

	setup();
	a.rings[0] = ring.id;
	for (i = 0; i < 2000 && r >= 0; i++)
		r = vt_att_new(&nl, &a);
	EXPECT_EQ(r, -E2BIG);
	EXPECT(!strcmp(nl.why, "the device takes no further ingress hook"));
	vt_note("%u hooks", i - 1);
}

static const struct vt_case cases[] = {
	{ .name = "attributes of wrong sizes", .fn = wrong_sizes },
	{ .name = "wrong values", .fn = wrong_values },
	{ .name = "without a word, a mirror", .fn = mirror_by_default },
	{ .name = "unknown attributes and commands", .fn = unknown_things },
	{ .name = "malformed messages", .fn = malformed },
	{ .name = "missing attributes, ids of nobody", .fn = missing },
	{ .name = "ATT_SET changes what it may, or nothing", .fn = set_is_limited },
	{ .name = "dumps of 300 rings and 150 attachments", .fn = long_dumps },
	{ .name = "network namespaces do not see each other", .fn = isolation },
	{ .name = "changes need CAP_NET_ADMIN", .fn = permission },
	{ .name = "more rings than there may be", .fn = too_many_rings },
	{ .name = "more hooks than a device takes", .fn = too_many_hooks, .secs = 60 },
	{ .name = "attachments whose number nobody was told", .fn = unread_answers },
	{ .name = "a renamed device", .fn = renamed_device },
	{ .name = "RING_GET tells all", .fn = ring_is_told_whole },
};

VT_MAIN(cases)
