// SPDX-License-Identifier: MIT OR GPL-2.0
/* The reader of netlink answers, fed with good, cut, garbled and hostile ones. */
#include "unit.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_parse.h"

static char buf[16384];

static struct nlmsghdr *begin(uint8_t cmd)
{
	struct nlmsghdr *nlh;
	struct genlmsghdr *g;

	memset(buf, 0, sizeof(buf));
	nlh = mnl_nlmsg_put_header(buf);
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = cmd;
	return nlh;
}

static struct nlmsghdr *good_ring(void)
{
	struct nlmsghdr *nlh = begin(RGATE_CMD_RING_GET);
	struct nlattr *nest;
	uint16_t i;

	mnl_attr_put_u32(nlh, RGATE_A_RING_ID, 7);
	mnl_attr_put_strz(nlh, RGATE_A_RING_NAME, "ring7");
	mnl_attr_put_u32(nlh, RGATE_A_RING_SLOTS, 4096);
	mnl_attr_put_u32(nlh, RGATE_A_RING_SLOT_SIZE, 2048);
	mnl_attr_put_u32(nlh, RGATE_A_RING_NODE, (uint32_t)-1);
	mnl_attr_put(nlh, RGATE_A_RING_PAD, 0, NULL);
	mnl_attr_put_u64(nlh, RGATE_A_RING_MEM_BYTES, 1ULL << 40);
	mnl_attr_put_u64(nlh, RGATE_A_RING_HEAD, 99);
	nest = mnl_attr_nest_start(nlh, RGATE_A_RING_STATS);
	for (i = RGATE_A_STATS_DELIVERED; i <= RGATE_A_STATS_MAX; i++)
		mnl_attr_put_u64(nlh, i, i * 1000ULL);
	mnl_attr_nest_end(nlh, nest);
	mnl_attr_put_u64(nlh, RGATE_A_RING_COOKIE, 1ULL << 63 | 7);
	return nlh;
}

static void put_ring(struct nlmsghdr *nlh, uint32_t id, uint64_t cookie)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, RGATE_A_ATT_RING);

	mnl_attr_put_u64(nlh, RGATE_A_RING_COOKIE, cookie);
	mnl_attr_put_u32(nlh, RGATE_A_RING_ID, id);
	mnl_attr_nest_end(nlh, nest);
}

static struct nlmsghdr *good_att(unsigned int rings)
{
	struct nlmsghdr *nlh = begin(RGATE_CMD_ATT_GET);
	struct nlattr *nest;
	uint16_t i;

	mnl_attr_put_u32(nlh, RGATE_A_ATT_ID, 3);
	mnl_attr_put_u32(nlh, RGATE_A_ATT_IFINDEX, 2);
	mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, "veth0");
	mnl_attr_put_u32(nlh, RGATE_A_ATT_PRIORITY, (uint32_t)-300);
	mnl_attr_put_u64(nlh, RGATE_A_ATT_COOKIE, 303);
	for (i = 0; i < rings; i++)
		put_ring(nlh, 10U + i, 1000U + i);
	nest = mnl_attr_nest_start(nlh, RGATE_A_ATT_STATS);
	for (i = RGATE_A_ATT_STATS_SEEN; i <= RGATE_A_ATT_STATS_MAX; i++)
		mnl_attr_put_u64(nlh, i, i);
	mnl_attr_nest_end(nlh, nest);
	return nlh;
}

static void rings(void **state)
{
	struct rgate_ring_info info;
	struct nlmsghdr *nlh;

	(void)state;
	assert_int_equal(rgate_parse_ring(good_ring(), &info), 0);
	assert_int_equal(info.ring_id, 7);
	assert_int_equal(info.cookie, 1ULL << 63 | 7);
	assert_string_equal(info.name, "ring7");
	assert_int_equal(info.slots, 4096);
	assert_int_equal(info.node, -1);
	assert_true(info.mem_bytes == 1ULL << 40);
	assert_int_equal(info.head, 99);
	assert_int_equal(info.stats.delivered, 1000 * RGATE_A_STATS_DELIVERED);
	assert_int_equal(info.stats.full_events, 1000 * RGATE_A_STATS_FULL_EVENTS);
	/* what a later kernel adds is passed over */
	nlh = good_ring();
	mnl_attr_put_u64(nlh, RGATE_A_RING_MAX + 1, 5);
	assert_int_equal(rgate_parse_ring(nlh, &info), 0);
	/* another command, or no number */
	nlh = good_att(1);
	assert_int_equal(rgate_parse_ring(nlh, &info), -EPROTO);
	nlh = begin(RGATE_CMD_RING_GET);
	assert_int_equal(rgate_parse_ring(nlh, &info), -EPROTO);
	/* wrong sizes */
	nlh = begin(RGATE_CMD_RING_GET);
	mnl_attr_put_u16(nlh, RGATE_A_RING_ID, 7);
	assert_int_equal(rgate_parse_ring(nlh, &info), -EPROTO);
	nlh = begin(RGATE_CMD_RING_GET);
	mnl_attr_put_u64(nlh, RGATE_A_RING_ID, 7);
	assert_int_equal(rgate_parse_ring(nlh, &info), -EPROTO);
	nlh = good_ring();
	mnl_attr_put_u32(nlh, RGATE_A_RING_HEAD, 7);
	assert_int_equal(rgate_parse_ring(nlh, &info), -EPROTO);
	/* names that do not end, end early, or are too long */
	nlh = good_ring();
	mnl_attr_put(nlh, RGATE_A_RING_NAME, 4, "abcd");
	assert_int_equal(rgate_parse_ring(nlh, &info), -EPROTO);
	nlh = good_ring();
	mnl_attr_put(nlh, RGATE_A_RING_NAME, 5, "ab\0c");
	assert_int_equal(rgate_parse_ring(nlh, &info), -EPROTO);
	nlh = good_ring();
	mnl_attr_put(nlh, RGATE_A_RING_NAME, 0, NULL);
	assert_int_equal(rgate_parse_ring(nlh, &info), -EPROTO);
	nlh = good_ring();
	mnl_attr_put_strz(nlh, RGATE_A_RING_NAME, "01234567890123456789012345678901");
	assert_int_equal(rgate_parse_ring(nlh, &info), -EPROTO);
}

static void atts(void **state)
{
	struct rgate_att_info info;
	struct rgate_ident att;
	struct nlmsghdr *nlh;
	struct nlattr *nest;

	(void)state;
	assert_int_equal(rgate_parse_att(good_att(5), &info), 0);
	assert_int_equal(info.att_id, 3);
	assert_string_equal(info.ifname, "veth0");
	assert_int_equal(info.priority, -300);
	assert_int_equal(info.cookie, 303);
	assert_int_equal(info.nrings, 5);
	assert_int_equal(info.rings[4].id, 14);
	assert_int_equal(info.rings[4].cookie, 1004);
	assert_int_equal(info.seen, RGATE_A_ATT_STATS_SEEN);
	assert_int_equal(info.spilled, RGATE_A_ATT_STATS_SPILLED);
	assert_int_equal(info.bad_length, RGATE_A_ATT_STATS_BAD_LENGTH);
	assert_int_equal(info.bad_flags, RGATE_A_ATT_STATS_BAD_FLAGS);
	assert_int_equal(info.refused, RGATE_A_ATT_STATS_REFUSED);
	assert_int_equal(rgate_parse_att(good_att(RGATE_ATT_RINGS_MAX), &info), 0);
	assert_int_equal(rgate_parse_att(good_att(RGATE_ATT_RINGS_MAX + 1), &info),
			 -EPROTO);
	/* rings that are no nest, or one without a number, or with half a cookie */
	nlh = good_att(1);
	mnl_attr_put_u32(nlh, RGATE_A_ATT_RING, 10);
	assert_int_equal(rgate_parse_att(nlh, &info), -EPROTO);
	nlh = good_att(1);
	nest = mnl_attr_nest_start(nlh, RGATE_A_ATT_RING);
	mnl_attr_put_u64(nlh, RGATE_A_RING_COOKIE, 10);
	mnl_attr_nest_end(nlh, nest);
	assert_int_equal(rgate_parse_att(nlh, &info), -EPROTO);
	nlh = good_att(1);
	nest = mnl_attr_nest_start(nlh, RGATE_A_ATT_RING);
	mnl_attr_put_u32(nlh, RGATE_A_RING_ID, 10);
	mnl_attr_put_u32(nlh, RGATE_A_RING_COOKIE, 10);
	mnl_attr_nest_end(nlh, nest);
	assert_int_equal(rgate_parse_att(nlh, &info), -EPROTO);
	nlh = begin(RGATE_CMD_ATT_NEW);
	mnl_attr_put_u32(nlh, RGATE_A_ATT_ID, 42);
	mnl_attr_put_u64(nlh, RGATE_A_ATT_COOKIE, 1ULL << 40);
	assert_int_equal(rgate_parse_att_ident(nlh, &att), 0);
	assert_int_equal(att.id, 42);
	assert_int_equal(att.cookie, 1ULL << 40);
	assert_int_equal(rgate_parse_att_ident(begin(RGATE_CMD_ATT_NEW), &att), -EPROTO);
}

static void events(void **state)
{
	struct rgate_event_info ev;
	struct nlmsghdr *nlh = begin(RGATE_CMD_EVENT);

	(void)state;
	assert_int_equal(rgate_parse_event(nlh, &ev), -EPROTO);
	mnl_attr_put_u32(nlh, RGATE_A_EVENT_TYPE, RGATE_EVENT_RING_FULL);
	mnl_attr_put_u32(nlh, RGATE_A_EVENT_RING_ID, 4);
	mnl_attr_put_u64(nlh, RGATE_A_EVENT_DROPPED, 1ULL << 33);
	assert_int_equal(rgate_parse_event(nlh, &ev), 0);
	assert_int_equal(ev.type, RGATE_EVENT_RING_FULL);
	assert_int_equal(ev.ring_id, 4);
	assert_int_equal(ev.att_id, 0);
	assert_true(ev.dropped == 1ULL << 33);
}

static struct nlmsghdr *good_family(void)
{
	struct nlmsghdr *nlh = begin(CTRL_CMD_NEWFAMILY);
	struct nlattr *groups, *g;

	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, "ringgate");
	mnl_attr_put_u16(nlh, CTRL_ATTR_FAMILY_ID, 33);
	groups = mnl_attr_nest_start(nlh, CTRL_ATTR_MCAST_GROUPS);
	g = mnl_attr_nest_start(nlh, 1);
	mnl_attr_put_u32(nlh, CTRL_ATTR_MCAST_GRP_ID, 8);
	mnl_attr_put_strz(nlh, CTRL_ATTR_MCAST_GRP_NAME, "other");
	mnl_attr_nest_end(nlh, g);
	g = mnl_attr_nest_start(nlh, 2);
	mnl_attr_put_u32(nlh, CTRL_ATTR_MCAST_GRP_ID, 9);
	mnl_attr_put_strz(nlh, CTRL_ATTR_MCAST_GRP_NAME, RGATE_GENL_MCGRP);
	mnl_attr_nest_end(nlh, g);
	mnl_attr_nest_end(nlh, groups);
	return nlh;
}

/* A family whose groups are @len bytes of @attr */
static int with_groups(const struct nlattr *attr, size_t len, uint32_t *group)
{
	struct nlmsghdr *nlh = begin(CTRL_CMD_NEWFAMILY);
	uint16_t id;

	mnl_attr_put_u16(nlh, CTRL_ATTR_FAMILY_ID, 33);
	mnl_attr_put(nlh, CTRL_ATTR_MCAST_GROUPS, len, attr);
	return rgate_parse_family(nlh, &id, group);
}

static void family(void **state)
{
	struct nlmsghdr *nlh;
	struct nlattr *groups, *g;
	uint32_t group;
	uint16_t id;

	(void)state;
	assert_int_equal(rgate_parse_family(good_family(), &id, &group), 0);
	assert_int_equal(id, 33);
	assert_int_equal(group, 9);
	nlh = begin(CTRL_CMD_NEWFAMILY);
	mnl_attr_put_u16(nlh, CTRL_ATTR_FAMILY_ID, 33);
	assert_int_equal(rgate_parse_family(nlh, &id, &group), 0);
	assert_int_equal(group, 0);
	nlh = begin(CTRL_CMD_NEWFAMILY);
	assert_int_equal(rgate_parse_family(nlh, &id, &group), -EPROTO);
	/* groups that are shorter than their head, or longer than what they are in */
	assert_int_equal(with_groups(&(struct nlattr){ 3, 1 }, 4, &group), -EPROTO);
	assert_int_equal(with_groups(&(struct nlattr){ 0, 1 }, 4, &group), -EPROTO);
	assert_int_equal(with_groups(&(struct nlattr){ 5, 1 }, 4, &group), -EPROTO);
	assert_int_equal(with_groups(&(struct nlattr){ 4, 1 }, 3, &group), -EPROTO);
	/* an empty one has no number; none at all is no error */
	assert_int_equal(with_groups(&(struct nlattr){ 4, 1 }, 4, &group), -EPROTO);
	assert_int_equal(with_groups(&(struct nlattr){ 4, 1 }, 0, &group), 0);
	assert_int_equal(group, 0);
	/* another one behind it changes nothing */
	nlh = good_family();
	groups = mnl_attr_nest_start(nlh, CTRL_ATTR_MCAST_GROUPS);
	g = mnl_attr_nest_start(nlh, 1);
	mnl_attr_put_u32(nlh, CTRL_ATTR_MCAST_GRP_ID, 8);
	mnl_attr_put_strz(nlh, CTRL_ATTR_MCAST_GRP_NAME, "other");
	mnl_attr_nest_end(nlh, g);
	mnl_attr_nest_end(nlh, groups);
	assert_int_equal(rgate_parse_family(nlh, &id, &group), 0);
	assert_int_equal(group, 9);
	/* one that is wrong inside */
	nlh = good_family();
	groups = mnl_attr_nest_start(nlh, CTRL_ATTR_MCAST_GROUPS);
	g = mnl_attr_nest_start(nlh, 1);
	mnl_attr_put_u16(nlh, CTRL_ATTR_MCAST_GRP_ID, 8);
	mnl_attr_nest_end(nlh, g);
	mnl_attr_nest_end(nlh, groups);
	assert_int_equal(rgate_parse_family(nlh, &id, &group), -EPROTO);
}

static struct nlmsghdr *error_msg(int error, uint16_t flags, size_t inner)
{
	struct nlmsghdr *nlh;
	struct nlmsgerr *e;

	memset(buf, 0, sizeof(buf));
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = NLMSG_ERROR;
	nlh->nlmsg_flags = flags;
	e = mnl_nlmsg_put_extra_header(nlh, sizeof(*e));
	e->error = error;
	e->msg.nlmsg_len = (uint32_t)(sizeof(e->msg) + inner);
	if (!(flags & NLM_F_CAPPED))
		mnl_nlmsg_put_extra_header(nlh, inner);
	return nlh;
}

static void errors(void **state)
{
	struct nlmsghdr *nlh;
	char msg[64];

	(void)state;
	assert_int_equal(rgate_parse_error(error_msg(0, 0, 0), msg, sizeof(msg)), 0);
	assert_int_equal(rgate_parse_error(error_msg(-EPERM, 0, 20), msg, sizeof(msg)),
			 -EPERM);
	assert_string_equal(msg, "");
	nlh = error_msg(-EINVAL, NLM_F_ACK_TLVS, 20);
	mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, "no such ring");
	assert_int_equal(rgate_parse_error(nlh, msg, sizeof(msg)), -EINVAL);
	assert_string_equal(msg, "no such ring");
	nlh = error_msg(-EINVAL, NLM_F_ACK_TLVS | NLM_F_CAPPED, 2000);
	mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, "capped");
	assert_int_equal(rgate_parse_error(nlh, msg, sizeof(msg)), -EINVAL);
	assert_string_equal(msg, "capped");
	/* words without an end are cut where the attribute ends */
	nlh = error_msg(-EINVAL, NLM_F_ACK_TLVS | NLM_F_CAPPED, 0);
	mnl_attr_put(nlh, NLMSGERR_ATTR_MSG, 4, "abcdef");
	assert_int_equal(rgate_parse_error(nlh, msg, sizeof(msg)), -EINVAL);
	assert_string_equal(msg, "abcd");
	/* a length inside that leads out of the message */
	nlh = error_msg(-EINVAL, NLM_F_ACK_TLVS, 20);
	((struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->msg.nlmsg_len = 1 << 30;
	assert_int_equal(rgate_parse_error(nlh, msg, sizeof(msg)), -EPROTO);
	/* ... one that is all of it, so that there is no room for words, and one without a head */
	nlh = error_msg(-EINVAL, NLM_F_ACK_TLVS, 20);
	((struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->msg.nlmsg_len = nlh->nlmsg_len;
	assert_int_equal(rgate_parse_error(nlh, msg, sizeof(msg)), -EINVAL);
	assert_string_equal(msg, "");
	((struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->msg.nlmsg_len = nlh->nlmsg_len + 1;
	assert_int_equal(rgate_parse_error(nlh, msg, sizeof(msg)), -EPROTO);
	((struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->msg.nlmsg_len = sizeof(*nlh) - 1;
	assert_int_equal(rgate_parse_error(nlh, msg, sizeof(msg)), -EPROTO);
	nlh = error_msg(-EINVAL, NLM_F_ACK_TLVS, 0);
	mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, "at once");
	assert_int_equal(rgate_parse_error(nlh, msg, sizeof(msg)), -EINVAL);
	assert_string_equal(msg, "at once");
	/* what is not said to be words is none */
	nlh->nlmsg_flags = 0;
	assert_int_equal(rgate_parse_error(nlh, msg, sizeof(msg)), -EINVAL);
	assert_string_equal(msg, "");
	nlh->nlmsg_flags = NLM_F_ACK_TLVS;
	/* nobody asks for the words, or has room for some of them */
	assert_int_equal(rgate_parse_error(nlh, NULL, 0), -EINVAL);
	assert_int_equal(rgate_parse_error(nlh, msg, 3), -EINVAL);
	assert_string_equal(msg, "at");
	/* what is no attribute is no words */
	mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, "more");
	nlh->nlmsg_len -= 4;
	assert_int_equal(rgate_parse_error(nlh, msg, sizeof(msg)), -EINVAL);
	assert_int_equal(rgate_parse_error(error_msg(5, 0, 0), msg, sizeof(msg)),
			 -EPROTO);
	assert_int_equal(rgate_parse_error(error_msg(-4095, 0, 0), msg, sizeof(msg)), -4095);
	assert_int_equal(rgate_parse_error(error_msg(-4096, 0, 0), msg, sizeof(msg)), -EPROTO);
	nlh = error_msg(0, 0, 0);
	nlh->nlmsg_len -= 4;
	assert_int_equal(rgate_parse_error(nlh, msg, sizeof(msg)), -EPROTO);
}

static void parse_all(const struct nlmsghdr *nlh)
{
	struct rgate_ring_info ring;
	struct rgate_att_info att;
	struct rgate_event_info ev;
	struct rgate_ident ident;
	uint32_t x;
	uint16_t y;
	char msg[64];

	if (!rgate_parse_ring(nlh, &ring))
		assert_true(memchr(ring.name, 0, sizeof(ring.name)) != NULL);
	if (!rgate_parse_att(nlh, &att)) {
		assert_true(memchr(att.ifname, 0, sizeof(att.ifname)) != NULL);
		assert_true(att.nrings <= RGATE_ATT_RINGS_MAX);
	}
	rgate_parse_att_ident(nlh, &ident);
	rgate_parse_event(nlh, &ev);
	rgate_parse_family(nlh, &y, &x);
	rgate_parse_error(nlh, msg, sizeof(msg));
	assert_true(memchr(msg, 0, sizeof(msg)) != NULL);
}

static struct nlmsghdr *any_message(uint64_t which)
{
	struct nlmsghdr *nlh;

	switch (which % 5) {
	case 0:
		return good_ring();
	case 1:
		return good_att(3);
	case 2:
		return good_family();
	case 3:
		nlh = error_msg(-EINVAL, NLM_F_ACK_TLVS, 20);
		mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, "words");
		return nlh;
	default:
		nlh = begin(RGATE_CMD_EVENT);
		mnl_attr_put_u32(nlh, RGATE_A_EVENT_TYPE, 1);
		return nlh;
	}
}

/* Cut anywhere, with bytes changed anywhere, in memory that ends with the message */
static void garbled(void **state)
{
	uint64_t seed = 23, r;

	(void)state;
	for (r = 0; r < unit_rounds(200000); r++) {
		struct nlmsghdr *nlh = any_message(unit_random(&seed)), *exact;
		size_t n = nlh->nlmsg_len, k;

		for (k = unit_random(&seed) % 5; k; k--)
			buf[4 + unit_random(&seed) % (n - 4)] =
				(char)unit_random(&seed);
		if (unit_random(&seed) & 1)
			n = sizeof(*nlh) + unit_random(&seed) % (n - sizeof(*nlh) + 1);
		exact = malloc(n);
		memcpy(exact, buf, n);
		exact->nlmsg_len = (uint32_t)n;
		parse_all(exact);
		free(exact);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(rings),
	cmocka_unit_test(atts),
	cmocka_unit_test(events),
	cmocka_unit_test(family),
	cmocka_unit_test(errors),
	cmocka_unit_test(garbled),
};

UNIT_MAIN_ALONE(tests)
