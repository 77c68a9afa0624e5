// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_parse.h"

enum kind {
	KIND_NONE,	/* not wanted */
	KIND_U16,
	KIND_U32,
	KIND_U64,
	KIND_STR,	/* NUL-terminated, at most room - 1 characters */
	KIND_NEST,
	KIND_LIST,	/* may come several times */
};

/* One attribute, and where it goes in the structure read */
struct field {
	enum kind kind;
	uint16_t room;
	size_t off;
	const struct table *nest;
};

struct table {
	uint16_t max;			/* highest attribute known */
	uint16_t must;			/* attribute that has to be there, 0: none */
	const struct field *fields;
	/* KIND_LIST, and nests without a table */
	int (*other)(const struct nlattr *attr, void *to);
};

static const void *payload(const struct nlattr *attr)
{
	return (const char *)attr + MNL_ATTR_HDRLEN;
}

static int store(const struct nlattr *attr, const struct field *f, void *to)
{
	size_t len = attr->nla_len - MNL_ATTR_HDRLEN;
	char *at = (char *)to + f->off;
	size_t want;

	switch (f->kind) {
	case KIND_U16:
		want = 2;
		break;
	case KIND_U32:
		want = 4;
		break;
	case KIND_U64:
		want = 8;
		break;
	case KIND_STR:
		if (!len || len > f->room || memchr(payload(attr), 0, len) !=
		    (const char *)payload(attr) + len - 1)
			return -EPROTO;
		memcpy(at, payload(attr), len);
		return 0;
	default:
		return 0;
	}
	if (len != want)
		return -EPROTO;
	memcpy(at, payload(attr), want);
	return 0;
}

static int walk(const void *start, size_t len, const struct table *t, void *to);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables are nested */
static int take(const struct nlattr *attr, const struct table *t, void *to)
{
	unsigned int type = attr->nla_type & NLA_TYPE_MASK;
	const struct field *f;

	if (type > t->max)
		return 0;
	f = &t->fields[type];
	if (f->kind == KIND_LIST || (f->kind == KIND_NEST && !f->nest))
		return t->other(attr, to);
	if (f->kind == KIND_NEST)
		return walk(payload(attr), attr->nla_len - MNL_ATTR_HDRLEN, f->nest,
			    to);
	return store(attr, f, to);
}

/* NOLINTNEXTLINE(misc-no-recursion): see take() */
static int walk(const void *start, size_t len, const struct table *t, void *to)
{
	const char *p = start, *end = p + len;
	bool found = !t->must;

	while (p < end) {
		const struct nlattr *attr = (const struct nlattr *)p;
		size_t step;
		int err;

		if ((size_t)(end - p) < sizeof(*attr) ||
		    attr->nla_len < MNL_ATTR_HDRLEN || attr->nla_len > end - p)
			return -EPROTO;
		err = take(attr, t, to);
		if (err)
			return err;
		if ((attr->nla_type & NLA_TYPE_MASK) == t->must)
			found = true;
		step = MNL_ALIGN(attr->nla_len);
		p += step < (size_t)(end - p) ? step : (size_t)(end - p);
	}
	return found ? 0 : -EPROTO;
}

static int read_genl(const struct nlmsghdr *nlh, uint8_t cmd, const struct table *t,
		     void *to)
{
	const struct genlmsghdr *g = (const struct genlmsghdr *)
				     ((const char *)nlh + MNL_NLMSG_HDRLEN);

	if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN + GENL_HDRLEN || g->cmd != cmd)
		return -EPROTO;
	return walk((const char *)g + GENL_HDRLEN,
		    nlh->nlmsg_len - MNL_NLMSG_HDRLEN - GENL_HDRLEN, t, to);
}

#define FIELD(k, type, f) { .kind = (k), .off = offsetof(type, f) }
#define STRING(type, f) { .kind = KIND_STR, .off = offsetof(type, f), \
			  .room = sizeof(((type *)0)->f) }

#define STAT(f) FIELD(KIND_U64, struct rgate_ring_info, stats.f)
static const struct field ring_stats_fields[] = {
	[RGATE_A_STATS_DELIVERED] = STAT(delivered),
	[RGATE_A_STATS_BYTES] = STAT(bytes),
	[RGATE_A_STATS_DROPPED_FULL] = STAT(dropped_full),
	[RGATE_A_STATS_DROPPED_FAULT] = STAT(dropped_fault),
	[RGATE_A_STATS_OVERWRITTEN] = STAT(overwritten),
	[RGATE_A_STATS_PASSED] = STAT(passed),
	[RGATE_A_STATS_SPILLED] = STAT(spilled),
	[RGATE_A_STATS_TRUNCATED] = STAT(truncated),
	[RGATE_A_STATS_CHAINED] = STAT(chained),
	[RGATE_A_STATS_PADDED] = STAT(padded),
	[RGATE_A_STATS_WAKEUPS] = STAT(wakeups),
	[RGATE_A_STATS_FULL_EVENTS] = STAT(full_events),
};

static const struct table ring_stats = {
	.max = RGATE_A_STATS_MAX,
	.fields = ring_stats_fields,
};

#define RING32(f) FIELD(KIND_U32, struct rgate_ring_info, f)
static const struct field ring_fields[] = {
	[RGATE_A_RING_ID] = RING32(ring_id),
	[RGATE_A_RING_NAME] = STRING(struct rgate_ring_info, name),
	[RGATE_A_RING_SLOTS] = RING32(slots),
	[RGATE_A_RING_SLOT_SIZE] = RING32(slot_size),
	[RGATE_A_RING_FLAGS] = RING32(flags),
	[RGATE_A_RING_POLICY] = RING32(policy),
	[RGATE_A_RING_CLOCK] = RING32(clock),
	[RGATE_A_RING_GENERATION] = RING32(generation),
	[RGATE_A_RING_HANDLES] = RING32(handles),
	[RGATE_A_RING_NODE] = RING32(node),
	[RGATE_A_RING_UID] = RING32(uid),
	[RGATE_A_RING_MEM_BYTES] = FIELD(KIND_U64, struct rgate_ring_info, mem_bytes),
	[RGATE_A_RING_HEAD] = FIELD(KIND_U64, struct rgate_ring_info, head),
	[RGATE_A_RING_STATS] = { .kind = KIND_NEST, .nest = &ring_stats },
	[RGATE_A_RING_COOKIE] = FIELD(KIND_U64, struct rgate_ring_info, cookie),
};

static const struct table ring_table = {
	.max = RGATE_A_RING_MAX,
	.must = RGATE_A_RING_ID,
	.fields = ring_fields,
};

#define ATT64(f) FIELD(KIND_U64, struct rgate_att_info, f)
static const struct field att_stats_fields[] = {
	[RGATE_A_ATT_STATS_SEEN] = ATT64(seen),
	[RGATE_A_ATT_STATS_FILTERED] = ATT64(filtered),
	[RGATE_A_ATT_STATS_SAMPLED_OUT] = ATT64(sampled_out),
	[RGATE_A_ATT_STATS_DELIVERED] = ATT64(delivered),
	[RGATE_A_ATT_STATS_BYTES] = ATT64(bytes),
	[RGATE_A_ATT_STATS_DROPPED_FULL] = ATT64(dropped_full),
	[RGATE_A_ATT_STATS_DROPPED_FAULT] = ATT64(dropped_fault),
	[RGATE_A_ATT_STATS_PASSED] = ATT64(passed),
	[RGATE_A_ATT_STATS_SPILLED] = ATT64(spilled),
	[RGATE_A_ATT_STATS_BAD_LENGTH] = ATT64(bad_length),
	[RGATE_A_ATT_STATS_BAD_FLAGS] = ATT64(bad_flags),
	[RGATE_A_ATT_STATS_REFUSED] = ATT64(refused),
};

static const struct table att_stats = {
	.max = RGATE_A_ATT_STATS_MAX,
	.fields = att_stats_fields,
};

static const struct field ident_fields[] = {
	[RGATE_A_RING_ID] = FIELD(KIND_U32, struct rgate_ident, id),
	[RGATE_A_RING_COOKIE] = FIELD(KIND_U64, struct rgate_ident, cookie),
};

static const struct table ident_table = {
	.max = RGATE_A_RING_COOKIE,
	.must = RGATE_A_RING_ID,
	.fields = ident_fields,
};

/* NOLINTNEXTLINE(misc-no-recursion): see take() */
static int add_ring(const struct nlattr *attr, void *to)
{
	struct rgate_att_info *info = to;

	if (info->nrings == RGATE_ATT_RINGS_MAX)
		return -EPROTO;
	return walk(payload(attr), attr->nla_len - MNL_ATTR_HDRLEN, &ident_table,
		    &info->rings[info->nrings++]);
}

#define ATT32(f) FIELD(KIND_U32, struct rgate_att_info, f)
static const struct field att_fields[] = {
	[RGATE_A_ATT_ID] = ATT32(att_id),
	[RGATE_A_ATT_IFINDEX] = ATT32(ifindex),
	[RGATE_A_ATT_IFNAME] = STRING(struct rgate_att_info, ifname),
	[RGATE_A_ATT_PRIORITY] = ATT32(priority),
	[RGATE_A_ATT_ACTION] = ATT32(action),
	[RGATE_A_ATT_FANOUT] = ATT32(fanout),
	[RGATE_A_ATT_SAMPLE] = ATT32(sample),
	[RGATE_A_ATT_FILTER_LEN] = ATT32(filter_len),
	[RGATE_A_ATT_RING] = { .kind = KIND_LIST },
	[RGATE_A_ATT_STATS] = { .kind = KIND_NEST, .nest = &att_stats },
	[RGATE_A_ATT_COOKIE] = FIELD(KIND_U64, struct rgate_att_info, cookie),
	[RGATE_A_ATT_KIND] = ATT32(kind),
	[RGATE_A_ATT_THREAD] = ATT32(thread),
};

static const struct table att_table = {
	.max = RGATE_A_ATT_MAX,
	.must = RGATE_A_ATT_ID,
	.fields = att_fields,
	.other = add_ring,
};

#define EV(k, f) FIELD(k, struct rgate_event_info, f)
static const struct field event_fields[] = {
	[RGATE_A_EVENT_TYPE] = EV(KIND_U32, type),
	[RGATE_A_EVENT_RING_ID] = EV(KIND_U32, ring_id),
	[RGATE_A_EVENT_ATT_ID] = EV(KIND_U32, att_id),
	[RGATE_A_EVENT_IFINDEX] = EV(KIND_U32, ifindex),
	[RGATE_A_EVENT_FULL_EVENTS] = EV(KIND_U64, full_events),
	[RGATE_A_EVENT_DROPPED] = EV(KIND_U64, dropped),
};

static const struct table event_table = {
	.max = RGATE_A_EVENT_MAX,
	.must = RGATE_A_EVENT_TYPE,
	.fields = event_fields,
};

int rgate_parse_ring(const struct nlmsghdr *nlh, struct rgate_ring_info *info)
{
	memset(info, 0, sizeof(*info));
	return read_genl(nlh, RGATE_CMD_RING_GET, &ring_table, info);
}

int rgate_parse_att(const struct nlmsghdr *nlh, struct rgate_att_info *info)
{
	memset(info, 0, sizeof(*info));
	return read_genl(nlh, RGATE_CMD_ATT_GET, &att_table, info);
}

int rgate_parse_att_ident(const struct nlmsghdr *nlh, struct rgate_ident *ident)
{
	struct rgate_att_info info = { 0 };
	int err = read_genl(nlh, RGATE_CMD_ATT_NEW, &att_table, &info);

	ident->id = info.att_id;
	ident->cookie = info.cookie;
	return err;
}

int rgate_parse_event(const struct nlmsghdr *nlh, struct rgate_event_info *ev)
{
	memset(ev, 0, sizeof(*ev));
	return read_genl(nlh, RGATE_CMD_EVENT, &event_table, ev);
}

/* The controller's description of a family */

struct group {
	char name[GENL_NAMSIZ];
	uint32_t id;
};

struct family {
	uint16_t id;
	uint32_t events;
};

static const struct field group_fields[] = {
	[CTRL_ATTR_MCAST_GRP_NAME] = STRING(struct group, name),
	[CTRL_ATTR_MCAST_GRP_ID] = FIELD(KIND_U32, struct group, id),
};

static const struct table group_table = {
	.max = CTRL_ATTR_MCAST_GRP_ID,
	.must = CTRL_ATTR_MCAST_GRP_ID,
	.fields = group_fields,
};

static int add_group(const struct nlattr *attr, void *to)
{
	struct family *fam = to;
	struct group grp = { .id = 0 };
	int err;

	err = walk(payload(attr), attr->nla_len - MNL_ATTR_HDRLEN, &group_table, &grp);
	if (!err && !strcmp(grp.name, RGATE_GENL_MCGRP))
		fam->events = grp.id;
	return err;
}

/* Groups are numbered from 1 by the kernel; each is a nest. */
static int add_groups(const struct nlattr *attr, void *to)
{
	const char *p = payload(attr), *end = (const char *)attr + attr->nla_len;

	while (p < end) {
		const struct nlattr *g = (const struct nlattr *)p;
		int err;

		if ((size_t)(end - p) < sizeof(*g) || g->nla_len < MNL_ATTR_HDRLEN ||
		    g->nla_len > end - p)
			return -EPROTO;
		err = add_group(g, to);
		if (err)
			return err;
		if ((long)MNL_ALIGN(g->nla_len) >= end - p)
			break;
		p += MNL_ALIGN(g->nla_len);
	}
	return 0;
}

static const struct field family_fields[] = {
	[CTRL_ATTR_FAMILY_ID] = FIELD(KIND_U16, struct family, id),
	[CTRL_ATTR_MCAST_GROUPS] = { .kind = KIND_NEST },
};

static const struct table family_table = {
	.max = CTRL_ATTR_MCAST_GROUPS,
	.must = CTRL_ATTR_FAMILY_ID,
	.fields = family_fields,
	.other = add_groups,
};

int rgate_parse_family(const struct nlmsghdr *nlh, uint16_t *family, uint32_t *group)
{
	struct family fam = { 0 };
	int err = read_genl(nlh, CTRL_CMD_NEWFAMILY, &family_table, &fam);

	*family = fam.id;
	*group = fam.events;
	return err;
}

/* Errors with the kernel's extended acknowledgment */

struct ack {
	const char *text;
	size_t len;
};

static int add_text(const struct nlattr *attr, void *to)
{
	struct ack *ack = to;

	ack->text = payload(attr);
	ack->len = attr->nla_len - MNL_ATTR_HDRLEN;
	return 0;
}

static const struct field ack_fields[] = {
	[NLMSGERR_ATTR_MSG] = { .kind = KIND_LIST },
};

static const struct table ack_table = {
	.max = NLMSGERR_ATTR_MSG,
	.fields = ack_fields,
	.other = add_text,
};

int rgate_parse_error(const struct nlmsghdr *nlh, char *msg, size_t len)
{
	const struct nlmsgerr *e = (const struct nlmsgerr *)
				   ((const char *)nlh + MNL_NLMSG_HDRLEN);
	size_t off = MNL_NLMSG_HDRLEN + sizeof(*e);
	struct ack ack = { .text = "" };

	if (len)
		msg[0] = 0;
	if (nlh->nlmsg_len < off || e->error > 0 || e->error < -4095)
		return -EPROTO;
	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return e->error;
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED)) {
		if (e->msg.nlmsg_len < MNL_NLMSG_HDRLEN ||
		    e->msg.nlmsg_len > nlh->nlmsg_len)
			return -EPROTO;
		off += MNL_ALIGN(e->msg.nlmsg_len - MNL_NLMSG_HDRLEN);
	}
	if (off < nlh->nlmsg_len &&
	    !walk((const char *)nlh + off, nlh->nlmsg_len - off, &ack_table, &ack) &&
	    len)
		snprintf(msg, len, "%.*s", (int)strnlen(ack.text, ack.len), ack.text);
	return e->error;
}
