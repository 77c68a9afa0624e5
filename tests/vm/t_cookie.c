// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Who is meant: a number that was another's a moment ago brings nobody's frames to a
 * stranger. The other one is a process of another user that waits for its chance.
 */
#include "lib/vt.h"

static struct vt_nl nl;
static char buf[VT_NL_BUF];

static struct nlmsghdr *att_new(uint32_t id, uint64_t cookie)
{
	struct nlmsghdr *nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);

	mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, "vb");
	vt_nl_put_ring(nlh, id, cookie);
	return nlh;
}

static int talk(struct nlmsghdr *nlh)
{
	return vt_nl_talk(&nl, nlh, NULL, NULL);
}

static struct nlmsghdr *att_cmd(uint8_t cmd, uint32_t id, uint64_t cookie)
{
	struct nlmsghdr *nlh = vt_nl_req(&nl, buf, cmd, 0);

	vt_nl_put_att(nlh, id, cookie);
	return nlh;
}

/* Makes rings as fast as it can, in the hope for the number @arg; 1 if it has it */
static int stranger(void *arg)
{
	uint32_t want = *(uint32_t *)arg;
	unsigned int i;

	REQUIRE(!setgid(12345) && !setuid(12345));
	for (i = 0; i < 2000; i++) {
		struct rgate_create c = vt_create_req();
		int fd = vt_dev_open();

		c.slots = 64;
		c.slot_size = 256;
		REQUIRE(!ioctl(fd, RGATE_IOC_CREATE, &c));
		close(fd);
		if (c.ring_id == want)
			return 1;
	}
	return 0;
}

static void not_at_once(void)
{
	struct vt_ring r;
	uint32_t id, att;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&r, 64, 256, 0, 0);
	id = r.id;
	vt_ring_close(&r);
	EXPECT_EQ(vt_wait(vt_fork(stranger, &id), 20000), 0);
	/* attachments neither */
	vt_ring_open(&r, 64, 256, 0, 0);
	att = vt_att_simple(&nl, "vb", r.id);
	REQUIRE(!vt_att_del(&nl, att));
	EXPECT(vt_att_simple(&nl, "vb", r.id) != att);
}

static void other_cookie(void)
{
	struct vt_ring r, q;
	struct vt_att_info ai;
	uint32_t att;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&r, 64, 256, 0, 0);
	vt_ring_open(&q, 64, 256, 0, 0);
	EXPECT(r.cookie && q.cookie && r.cookie != q.cookie);
	/* the number is right, the ring is another one by now */
	EXPECT_EQ(talk(att_new(r.id, q.cookie)), -ESTALE);
	EXPECT_EQ(talk(att_new(r.id, r.cookie + 1)), -ESTALE);
	/* nobody's, and none at all */
	EXPECT_EQ(talk(att_new(0x7ffffff0, r.cookie)), -ENOENT);
	EXPECT(talk(att_new(r.id, 0)) < 0);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);

	att = vt_att_simple(&nl, "vb", r.id);
	REQUIRE(!vt_att_get(&nl, att, &ai));
	EXPECT(ai.cookie && ai.cookie != r.cookie);
	EXPECT_EQ(ai.n, 1);
	EXPECT_EQ(ai.rings[0], r.id);
	EXPECT(ai.ring_cookies[0] == r.cookie);
	EXPECT_EQ(talk(att_cmd(RGATE_CMD_ATT_DEL, att, ai.cookie + 1)), -ESTALE);
	EXPECT_EQ(talk(att_cmd(RGATE_CMD_ATT_SET, att, ai.cookie + 1)), -ESTALE);
	{
		struct nlmsghdr *nlh = att_cmd(RGATE_CMD_ATT_JOIN, att, ai.cookie + 1);

		vt_nl_put_ring(nlh, q.id, q.cookie);
		EXPECT_EQ(talk(nlh), -ESTALE);
		nlh = att_cmd(RGATE_CMD_ATT_JOIN, att, ai.cookie);
		vt_nl_put_ring(nlh, q.id, r.cookie);
		EXPECT_EQ(talk(nlh), -ESTALE);
		nlh = att_cmd(RGATE_CMD_ATT_JOIN, att, ai.cookie);
		vt_nl_put_ring(nlh, q.id, q.cookie);
		EXPECT_EQ(talk(nlh), 0);
		nlh = att_cmd(RGATE_CMD_ATT_LEAVE, att, ai.cookie);
		vt_nl_put_ring(nlh, q.id, r.cookie);
		EXPECT_EQ(talk(nlh), -ESTALE);
	}
	REQUIRE(!vt_att_get(&nl, att, &ai));
	EXPECT_EQ(ai.n, 2);
	EXPECT_EQ(talk(att_cmd(RGATE_CMD_ATT_DEL, att, ai.cookie)), 0);
}

/* Without a cookie nothing is changed: who asks by number alone has not looked. */
static void number_alone(void)
{
	static const uint8_t cmds[] = {
		RGATE_CMD_ATT_DEL, RGATE_CMD_ATT_SET, RGATE_CMD_ATT_JOIN,
		RGATE_CMD_ATT_LEAVE,
	};
	struct nlmsghdr *nlh;
	struct nlattr *nest;
	struct vt_ring r;
	uint32_t att;
	size_t i;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&r, 64, 256, 0, 0);
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);
	mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, "vb");
	nest = mnl_attr_nest_start(nlh, RGATE_A_ATT_RING);
	mnl_attr_put_u32(nlh, RGATE_A_RING_ID, r.id);
	mnl_attr_nest_end(nlh, nest);
	EXPECT_EQ(talk(nlh), -EINVAL);
	nlh = vt_nl_req(&nl, buf, RGATE_CMD_ATT_NEW, 0);
	mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, "vb");
	mnl_attr_put_u32(nlh, RGATE_A_ATT_RING, r.id);
	EXPECT_EQ(talk(nlh), -EINVAL);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 0);
	att = vt_att_simple(&nl, "vb", r.id);
	for (i = 0; i < VT_COUNT(cmds); i++) {
		nlh = vt_nl_req(&nl, buf, cmds[i], 0);
		mnl_attr_put_u32(nlh, RGATE_A_ATT_ID, att);
		if (cmds[i] == RGATE_CMD_ATT_JOIN || cmds[i] == RGATE_CMD_ATT_LEAVE)
			vt_nl_put_ring(nlh, r.id, r.cookie);
		EXPECT_EQ(talk(nlh), -EINVAL);
	}
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_ATT_GET), 1);
}

/* The three ways to a ring's cookie agree, and a reload does not give it again. */
static void same_everywhere(void)
{
	struct vt_ring r, h, again;
	struct vt_ring_info ri;
	struct rgate_query q;
	uint64_t was;
	uint32_t id;

	vt_nl_open(&nl);
	vt_ring_open(&r, 64, 256, 0, 0);
	vt_ring_attach(&h, r.fd);
	REQUIRE(!vt_ring_query(h.fd, &q));
	REQUIRE(!vt_ring_info(&nl, r.id, &ri));
	EXPECT(r.cookie && h.cookie == r.cookie && q.cookie == r.cookie &&
	       ri.cookie == r.cookie);
	was = r.cookie;
	id = r.id;
	vt_ring_close(&h);
	vt_ring_close(&r);
	vt_nl_close(&nl);
	REQUIRE(!vt_rmmod() && !vt_insmod(""));
	do {
		vt_ring_open(&again, 64, 256, 0, 0);
		EXPECT(again.cookie != was);
		vt_ring_close(&again);
	} while (again.id < id);
}

/* Events are of rings that an administrator took up; the others are nobody's news. */
static void no_flood(void)
{
	struct vt_nl ears;
	struct vt_event ev;
	struct vt_ring r;
	uint32_t id = 0;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_nl_open(&ears);
	REQUIRE(!vt_nl_subscribe(&ears));
	EXPECT_EQ(vt_wait(vt_fork(stranger, &id), 20000), 0);
	EXPECT_EQ(vt_nl_event(&ears, &ev, 300), 0);
	/* and so the one that matters comes, alone */
	vt_ring_open(&r, 64, 256, 0, 0);
	id = vt_att_simple(&nl, "vb", r.id);
	REQUIRE(!vt_att_del(&nl, id));
	vt_ring_close(&r);
	EXPECT_EQ(vt_nl_event(&ears, &ev, 3000), 1);
	EXPECT_EQ(ev.type, RGATE_EVENT_RING_GONE);
	EXPECT_EQ(ev.ring_id, r.id);
	EXPECT_EQ(vt_nl_event(&ears, &ev, 100), 0);
}

static const struct vt_case cases[] = {
	{ .name = "numbers are not given again at once", .fn = not_at_once },
	{ .name = "the number of another ring or attachment", .fn = other_cookie },
	{ .name = "a number alone is refused", .fn = number_alone },
	{ .name = "the cookie is the same in ioctls and netlink", .fn = same_everywhere,
	  .flags = VT_HOSTNS },
	{ .name = "rings that were never attached bring no events", .fn = no_flood },
};

VT_MAIN(cases)
