// SPDX-License-Identifier: MIT OR GPL-2.0
/* Rings and attachments over netlink */
#include "vt.h"

void vt_nl_put_att(struct nlmsghdr *nlh, uint32_t id, uint64_t cookie)
{
	mnl_attr_put_u32(nlh, RGATE_A_ATT_ID, id);
	mnl_attr_put_u64(nlh, RGATE_A_ATT_COOKIE, cookie);
}

void vt_nl_put_ring(struct nlmsghdr *nlh, uint32_t id, uint64_t cookie)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, RGATE_A_ATT_RING);

	mnl_attr_put_u32(nlh, RGATE_A_RING_ID, id);
	mnl_attr_put_u64(nlh, RGATE_A_RING_COOKIE, cookie);
	mnl_attr_nest_end(nlh, nest);
}

/* The cookie that a ring, an attachment has now; 1 if it is not there */
static int ring_cookie(struct vt_nl *nl, uint32_t id, uint64_t *cookie)
{
	struct vt_ring_info info;
	int err = vt_ring_info(nl, id, &info);

	*cookie = err ? 1 : info.cookie;
	return err == -ENOENT || err == -ERANGE ? 0 : err;
}

static int att_cookie(struct vt_nl *nl, uint32_t id, uint64_t *cookie)
{
	struct vt_att_info info;
	int err = vt_att_get(nl, id, &info);

	*cookie = err ? 1 : info.cookie;
	return err == -ENOENT || err == -ERANGE ? 0 : err;
}

uint64_t vt_att_cookie(struct vt_nl *nl, uint32_t id)
{
	uint64_t cookie;

	(void)att_cookie(nl, id, &cookie);
	return cookie;
}

static void id_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[RGATE_A_ATT_MAX + 1];

	vt_nl_parse_msg(nlh, tb, RGATE_A_ATT_MAX);
	if (tb[RGATE_A_ATT_ID])
		*(uint32_t *)arg = mnl_attr_get_u32(tb[RGATE_A_ATT_ID]);
}

int vt_att_new(struct vt_nl *nl, const struct vt_att *a)
{
	char *buf = malloc(VT_NL_BUF);
	uint64_t cookie[RGATE_ATT_RINGS_MAX];
	struct nlmsghdr *nlh;
	uint32_t id = 0;
	unsigned int i;
	int err = 0;

	REQUIRE(buf);
	for (i = 0; i < a->n && !err; i++)
		err = ring_cookie(nl, a->rings[i], &cookie[i]);
	if (err) {
		free(buf);
		return err;
	}
	nlh = vt_nl_req(nl, buf, RGATE_CMD_ATT_NEW, 0);
	if (a->ifname)
		mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, a->ifname);
	if (a->ifindex)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_IFINDEX, a->ifindex);
	for (i = 0; i < a->n; i++)
		vt_nl_put_ring(nlh, a->rings[i], cookie[i]);
	if (a->prio)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_PRIORITY, (uint32_t)a->prio);
	/* what is sent knows no action: only who asks for one gets the error */
	if (a->action || a->kind != RGATE_KIND_TRANSMIT)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_ACTION,
				 a->action ? a->action : RGATE_ACTION_STEAL);
	if (a->fanout)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_FANOUT, a->fanout);
	if (a->sample)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_SAMPLE, a->sample);
	if (a->kind)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_KIND, a->kind);
	if (a->thread)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_THREAD, a->thread);
	if (a->filter)
		mnl_attr_put(nlh, RGATE_A_ATT_FILTER,
			     a->nfilter * sizeof(*a->filter), a->filter);
	err = vt_nl_talk(nl, nlh, id_cb, &id);
	free(buf);
	if (err)
		return err;
	if (!id)
		FAIL("ATT_NEW did not reply with an id");
	return (int)id;
}

uint32_t vt_att_simple(struct vt_nl *nl, const char *ifname, uint32_t ring)
{
	struct vt_att a = { .ifname = ifname, .rings = { ring }, .n = 1 };
	int id = vt_att_new(nl, &a);

	if (id <= 0)
		DIE("attach of ring %u to %s: %s", ring, ifname, strerror(-id));
	return (uint32_t)id;
}

static int att_cmd(struct vt_nl *nl, uint8_t cmd, uint32_t id, uint32_t ring)
{
	uint64_t att_is, ring_is = 0;
	struct nlmsghdr *nlh;
	char buf[256];
	int err;

	err = att_cookie(nl, id, &att_is);
	if (!err && ring)
		err = ring_cookie(nl, ring, &ring_is);
	if (err)
		return err;
	nlh = vt_nl_req(nl, buf, cmd, 0);
	vt_nl_put_att(nlh, id, att_is);
	if (ring)
		vt_nl_put_ring(nlh, ring, ring_is);
	return vt_nl_talk(nl, nlh, NULL, NULL);
}

int vt_att_del(struct vt_nl *nl, uint32_t id)
{
	return att_cmd(nl, RGATE_CMD_ATT_DEL, id, 0);
}

int vt_att_join(struct vt_nl *nl, uint32_t id, uint32_t ring)
{
	return att_cmd(nl, RGATE_CMD_ATT_JOIN, id, ring);
}

int vt_att_leave(struct vt_nl *nl, uint32_t id, uint32_t ring)
{
	return att_cmd(nl, RGATE_CMD_ATT_LEAVE, id, ring);
}

static void stats_of(const struct nlattr *nest, uint64_t *st, int max)
{
	struct nlattr *a;

	if (!nest)
		return;
	mnl_attr_for_each_nested(a, nest)
		if (mnl_attr_get_type(a) <= max && mnl_attr_get_payload_len(a) == 8)
			st[mnl_attr_get_type(a)] = mnl_attr_get_u64(a);
}

static uint32_t u32_of(const struct nlattr *a)
{
	return a ? mnl_attr_get_u32(a) : 0;
}

static uint64_t u64_of(const struct nlattr *a)
{
	return a ? mnl_attr_get_u64(a) : 0;
}

static void att_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[RGATE_A_ATT_MAX + 1], *in[RGATE_A_RING_MAX + 1];
	struct vt_att_info *i = arg;
	struct nlattr *a;

	vt_nl_parse_msg(nlh, tb, RGATE_A_ATT_MAX);
	i->id = u32_of(tb[RGATE_A_ATT_ID]);
	i->cookie = u64_of(tb[RGATE_A_ATT_COOKIE]);
	i->ifindex = u32_of(tb[RGATE_A_ATT_IFINDEX]);
	i->prio = (int32_t)u32_of(tb[RGATE_A_ATT_PRIORITY]);
	i->action = u32_of(tb[RGATE_A_ATT_ACTION]);
	i->fanout = u32_of(tb[RGATE_A_ATT_FANOUT]);
	i->sample = u32_of(tb[RGATE_A_ATT_SAMPLE]);
	i->filter_len = u32_of(tb[RGATE_A_ATT_FILTER_LEN]);
	i->kind = u32_of(tb[RGATE_A_ATT_KIND]);
	i->thread = u32_of(tb[RGATE_A_ATT_THREAD]);
	if (tb[RGATE_A_ATT_IFNAME])
		snprintf(i->ifname, sizeof(i->ifname), "%s",
			 mnl_attr_get_str(tb[RGATE_A_ATT_IFNAME]));
	mnl_attr_for_each(a, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(a) == RGATE_A_ATT_RING &&
		    i->n < RGATE_ATT_RINGS_MAX) {
			vt_nl_parse(mnl_attr_get_payload(a),
				    mnl_attr_get_payload_len(a), in,
				    RGATE_A_RING_MAX);
			i->ring_cookies[i->n] = u64_of(in[RGATE_A_RING_COOKIE]);
			i->rings[i->n++] = u32_of(in[RGATE_A_RING_ID]);
		}
	stats_of(tb[RGATE_A_ATT_STATS], i->st, RGATE_A_ATT_STATS_MAX);
}

int vt_att_get(struct vt_nl *nl, uint32_t id, struct vt_att_info *info)
{
	char buf[256];
	struct nlmsghdr *nlh = vt_nl_req(nl, buf, RGATE_CMD_ATT_GET, 0);

	memset(info, 0, sizeof(*info));
	mnl_attr_put_u32(nlh, RGATE_A_ATT_ID, id);
	return vt_nl_talk(nl, nlh, att_cb, info);
}

uint64_t vt_att_stat(struct vt_nl *nl, uint32_t id, int which)
{
	struct vt_att_info info;
	int err = vt_att_get(nl, id, &info);

	if (err)
		DIE("ATT_GET %u: %s", id, strerror(-err));
	return info.st[which];
}

static void ring_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[RGATE_A_RING_MAX + 1];
	struct vt_ring_info *i = arg;

	vt_nl_parse_msg(nlh, tb, RGATE_A_RING_MAX);
	i->id = u32_of(tb[RGATE_A_RING_ID]);
	i->cookie = u64_of(tb[RGATE_A_RING_COOKIE]);
	i->slots = u32_of(tb[RGATE_A_RING_SLOTS]);
	i->slot_size = u32_of(tb[RGATE_A_RING_SLOT_SIZE]);
	i->flags = u32_of(tb[RGATE_A_RING_FLAGS]);
	i->policy = u32_of(tb[RGATE_A_RING_POLICY]);
	i->clock = u32_of(tb[RGATE_A_RING_CLOCK]);
	i->generation = u32_of(tb[RGATE_A_RING_GENERATION]);
	i->handles = u32_of(tb[RGATE_A_RING_HANDLES]);
	i->uid = u32_of(tb[RGATE_A_RING_UID]);
	i->node = (int32_t)u32_of(tb[RGATE_A_RING_NODE]);
	i->mem_bytes = u64_of(tb[RGATE_A_RING_MEM_BYTES]);
	i->head = u64_of(tb[RGATE_A_RING_HEAD]);
	if (tb[RGATE_A_RING_NAME])
		snprintf(i->name, sizeof(i->name), "%s",
			 mnl_attr_get_str(tb[RGATE_A_RING_NAME]));
	stats_of(tb[RGATE_A_RING_STATS], i->st, RGATE_A_STATS_MAX);
}

int vt_ring_info(struct vt_nl *nl, uint32_t id, struct vt_ring_info *info)
{
	char buf[256];
	struct nlmsghdr *nlh = vt_nl_req(nl, buf, RGATE_CMD_RING_GET, 0);

	memset(info, 0, sizeof(*info));
	mnl_attr_put_u32(nlh, RGATE_A_RING_ID, id);
	return vt_nl_talk(nl, nlh, ring_cb, info);
}

static void count_cb(const struct nlmsghdr *nlh, void *arg)
{
	(void)nlh;
	++*(int *)arg;
}

int vt_nl_count(struct vt_nl *nl, uint8_t cmd)
{
	char buf[256];
	struct nlmsghdr *nlh = vt_nl_req(nl, buf, cmd, NLM_F_DUMP);
	int n = 0, err = vt_nl_talk(nl, nlh, count_cb, &n);

	return err ? err : n;
}
