// SPDX-License-Identifier: GPL-2.0-only
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>
#include "alloc.h"
#include "attach.h"
#include "compat.h"
#include "netlink.h"
#include "ring.h"

static u32 rgate_nl_u32(const struct genl_info *info, int type, u32 otherwise)
{
	return info->attrs[type] ? nla_get_u32(info->attrs[type]) : otherwise;
}

/* One ring: a nest of number and cookie, already checked against its policy */
static int rgate_nl_parse_ring(const struct nlattr *nest,
			       struct netlink_ext_ack *extack,
			       struct rgate_ident *ident)
{
	struct nlattr *tb[RGATE_A_RING_COOKIE + 1];
	int err;

	err = nla_parse_nested(tb, RGATE_A_RING_COOKIE, nest,
			       rgate_ring_ident_nl_policy, extack);
	if (err)
		return err;
	if (!tb[RGATE_A_RING_ID] || !tb[RGATE_A_RING_COOKIE]) {
		NL_SET_ERR_MSG_ATTR(extack, nest, "a ring is named by number and cookie");
		return -EINVAL;
	}
	ident->id = nla_get_u32(tb[RGATE_A_RING_ID]);
	ident->cookie = nla_get_u64(tb[RGATE_A_RING_COOKIE]);
	return 0;
}

/* Return: how many of at most @max rings a request names, or an error. */
static int rgate_nl_parse_rings(const struct genl_info *info,
				struct rgate_ident *rings, int max)
{
	const struct nlattr *attr;
	int rem, err, n = 0;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rem) {
		if (nla_type(attr) != RGATE_A_ATT_RING)
			continue;
		if (n == max) {
			NL_SET_ERR_MSG_ATTR(info->extack, attr, "too many rings");
			return -E2BIG;
		}
		err = rgate_nl_parse_ring(attr, info->extack, &rings[n++]);
		if (err)
			return err;
	}
	if (n)
		return n;
	NL_SET_ERR_MSG(info->extack, "a ring is needed");
	return -EINVAL;
}

/* Who puts frames on a device needs what a raw socket needs, too. */
static int rgate_nl_check_raw(struct sk_buff *skb, struct genl_info *info,
			      u32 kind)
{
	if (kind != RGATE_KIND_TRANSMIT ||
	    netlink_ns_capable(skb, genl_info_net(info)->user_ns, CAP_NET_RAW))
		return 0;
	NL_SET_ERR_MSG(info->extack, "to transmit needs CAP_NET_RAW");
	return -EPERM;
}

/*
 * A thread of the kernel's runs on the account of nobody, so it is not for whoever made
 * himself a network namespace.
 */
static int rgate_nl_check_thread(struct sk_buff *skb, struct genl_info *info,
				 u32 thread)
{
	if (!thread || netlink_capable(skb, CAP_NET_ADMIN))
		return 0;
	NL_SET_ERR_MSG(info->extack, "a thread needs CAP_NET_ADMIN outside of user namespaces");
	return -EPERM;
}

/* What is there for frames that come, and means nothing for those that go */
static int rgate_nl_check_transmit(const struct genl_info *info)
{
	static const int types[] = {
		RGATE_A_ATT_PRIORITY, RGATE_A_ATT_ACTION, RGATE_A_ATT_FANOUT,
		RGATE_A_ATT_SAMPLE,
	};
	const struct nlattr *attr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		attr = info->attrs[types[i]];
		/* 0 is what all but the action have if nothing is said. */
		if (!attr || (types[i] != RGATE_A_ATT_ACTION && !nla_get_u32(attr)))
			continue;
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "frames that are sent have a filter, and nothing else");
		return -EOPNOTSUPP;
	}
	return 0;
}

/* What a program brings is not asked for: it filters, and it was put in its place. */
static int rgate_nl_check_kind(const struct genl_info *info,
			       const struct rgate_att_new *req)
{
	if (req->kind == RGATE_KIND_TRANSMIT)
		return rgate_nl_check_transmit(info);
	if (req->thread) {
		NL_SET_ERR_MSG(info->extack, "only what transmits has a thread");
		return -EOPNOTSUPP;
	}
	if (req->kind != RGATE_KIND_XDP)
		return 0;
	if (req->filter && nla_len(req->filter)) {
		NL_SET_ERR_MSG_ATTR(info->extack, req->filter,
				    "the XDP program is what filters");
		return -EOPNOTSUPP;
	}
	if (req->priority) {
		NL_SET_ERR_MSG(info->extack, "XDP knows no priorities");
		return -EOPNOTSUPP;
	}
	return 0;
}

static int rgate_nl_parse_att(const struct genl_info *info,
			      struct rgate_att_new *req)
{
	int err;

	if (!info->attrs[RGATE_A_ATT_IFINDEX] ==
	    !info->attrs[RGATE_A_ATT_IFNAME]) {
		NL_SET_ERR_MSG(info->extack, "a device is needed, by number or by name");
		return -EINVAL;
	}
	req->ifindex = rgate_nl_u32(info, RGATE_A_ATT_IFINDEX, 0);
	if (!req->ifindex)
		req->ifname = nla_data(info->attrs[RGATE_A_ATT_IFNAME]);
	if (info->attrs[RGATE_A_ATT_PRIORITY])
		req->priority = nla_get_s32(info->attrs[RGATE_A_ATT_PRIORITY]);
	req->action = rgate_nl_u32(info, RGATE_A_ATT_ACTION, RGATE_ACTION_MIRROR);
	req->fanout = rgate_nl_u32(info, RGATE_A_ATT_FANOUT, RGATE_FANOUT_CPU);
	req->sample = rgate_nl_u32(info, RGATE_A_ATT_SAMPLE, 0);
	req->filter = info->attrs[RGATE_A_ATT_FILTER];
	req->kind = rgate_nl_u32(info, RGATE_A_ATT_KIND, RGATE_KIND_HOOK);
	req->thread = rgate_nl_u32(info, RGATE_A_ATT_THREAD, 0);
	err = rgate_nl_check_kind(info, req);
	if (err)
		return err;
	err = rgate_nl_parse_rings(info, req->rings, RGATE_ATT_RINGS_MAX);
	if (err < 0)
		return err;
	req->nrings = err;
	return 0;
}

static int rgate_nl_reply_ident(struct sk_buff *msg, struct genl_info *info,
				const struct rgate_ident *ident)
{
	void *hdr = genlmsg_put_reply(msg, info, &rgate_genl_family, 0,
				      RGATE_CMD_ATT_NEW);

	/* A fresh message has room for two numbers. */
	if (WARN_ON_ONCE(!hdr || nla_put_u32(msg, RGATE_A_ATT_ID, ident->id) ||
			 nla_put_u64_64bit(msg, RGATE_A_ATT_COOKIE, ident->cookie,
					   RGATE_A_ATT_PAD))) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

/* What nobody was told the number of, nobody could end. */
static void rgate_nl_att_undo(struct net *net, const struct rgate_ident *ident)
{
	struct rgate_att *att;

	mutex_lock(&rgate_lock);
	att = rgate_att_find_ident(net, ident);
	if (!IS_ERR(att))
		rgate_att_remove(att);
	mutex_unlock(&rgate_lock);
}

/* @ident: out, what it is called; the attachment itself may be gone by then */
static int rgate_nl_att_make(struct genl_info *info,
			     const struct rgate_att_new *req,
			     struct rgate_ident *ident)
{
	struct rgate_att *att = rgate_att_alloc(genl_info_net(info), req);
	int err;

	if (IS_ERR(att))
		return PTR_ERR(att);
	*ident = att->ident;
	rtnl_lock();
	mutex_lock(&rgate_lock);
	err = rgate_att_hook(att, req, info->extack);
	mutex_unlock(&rgate_lock);
	rtnl_unlock();
	if (err)
		rgate_att_discard(att);
	return err;
}

int rgate_nl_att_new_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct rgate_att_new *req = rgate_kzalloc(sizeof(*req));
	struct rgate_ident ident;
	struct sk_buff *msg;
	int err;

	if (!req)
		return -ENOMEM;
	err = rgate_nl_parse_att(info, req);
	if (!err)
		err = rgate_nl_check_raw(skb, info, req->kind);
	if (!err)
		err = rgate_nl_check_thread(skb, info, req->thread);
	if (err)
		goto free_req;
	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg) {
		err = -ENOMEM;
		goto free_req;
	}
	err = rgate_nl_att_make(info, req, &ident);
	if (err) {
		nlmsg_free(msg);
		goto free_req;
	}
	err = rgate_nl_reply_ident(msg, info, &ident);
	if (err)
		rgate_nl_att_undo(genl_info_net(info), &ident);
free_req:
	kfree(req);
	return err;
}

/* What a request calls the attachment that it is about */
static int rgate_nl_parse_ident(struct genl_info *info, struct rgate_ident *ident)
{
	if (GENL_REQ_ATTR_CHECK(info, RGATE_A_ATT_ID) ||
	    GENL_REQ_ATTR_CHECK(info, RGATE_A_ATT_COOKIE)) {
		NL_SET_ERR_MSG(info->extack, "an attachment is named by number and cookie");
		return -EINVAL;
	}
	ident->id = nla_get_u32(info->attrs[RGATE_A_ATT_ID]);
	ident->cookie = nla_get_u64(info->attrs[RGATE_A_ATT_COOKIE]);
	return 0;
}

/* The attachment that a request names; rgate_lock held. */
static struct rgate_att *rgate_nl_att(struct genl_info *info,
				      const struct rgate_ident *ident)
{
	struct rgate_att *att = rgate_att_find_ident(genl_info_net(info), ident);

	if (IS_ERR(att))
		NL_SET_ERR_MSG(info->extack, "no such attachment in this network namespace");
	return att;
}

int rgate_nl_att_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct rgate_att *att;
	struct rgate_ident ident;
	int err;

	err = rgate_nl_parse_ident(info, &ident);
	if (err)
		return err;
	mutex_lock(&rgate_lock);
	att = rgate_nl_att(info, &ident);
	if (!IS_ERR(att))
		rgate_att_remove(att);
	mutex_unlock(&rgate_lock);
	return PTR_ERR_OR_ZERO(att);
}

/* RGATE_KEEP_*: what a request does not say */
static u32 rgate_nl_kept(const struct genl_info *info)
{
	return (info->attrs[RGATE_A_ATT_ACTION] ? 0 : RGATE_KEEP_ACTION) |
	       (info->attrs[RGATE_A_ATT_SAMPLE] ? 0 : RGATE_KEEP_SAMPLE) |
	       (info->attrs[RGATE_A_ATT_FILTER] ? 0 : RGATE_KEEP_FILTER);
}

/* May this request change that attachment so? */
static int rgate_nl_check_set(struct sk_buff *skb, struct genl_info *info,
			      const struct rgate_att *att,
			      const struct rgate_att_cfg *cfg)
{
	if (att->kind == RGATE_KIND_TRANSMIT)
		return rgate_nl_check_raw(skb, info, att->kind) ?:
		       rgate_nl_check_transmit(info);
	if (att->kind == RGATE_KIND_XDP && cfg->prog) {
		NL_SET_ERR_MSG(info->extack, "the XDP program is what filters");
		return -EOPNOTSUPP;
	}
	return 0;
}

int rgate_nl_att_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct rgate_att_cfg *cfg;
	struct rgate_att *att;
	struct rgate_ident ident;
	int err;

	err = rgate_nl_parse_ident(info, &ident);
	if (err)
		return err;
	cfg = rgate_att_cfg_new(rgate_nl_u32(info, RGATE_A_ATT_ACTION, 0),
				rgate_nl_u32(info, RGATE_A_ATT_SAMPLE, 0),
				info->attrs[RGATE_A_ATT_FILTER]);
	if (IS_ERR(cfg))
		return PTR_ERR(cfg);
	mutex_lock(&rgate_lock);
	att = rgate_nl_att(info, &ident);
	err = PTR_ERR_OR_ZERO(att);
	if (!err)
		err = rgate_nl_check_set(skb, info, att, cfg);
	if (!err)
		rgate_att_set(att, cfg, rgate_nl_kept(info));
	mutex_unlock(&rgate_lock);
	if (err)
		rgate_att_cfg_discard(cfg);
	return err;
}

static int rgate_nl_att_member(struct sk_buff *skb, struct genl_info *info,
			       int (*change)(struct rgate_att *,
					     struct rgate_ring *))
{
	struct rgate_ident att_ident, ring_ident;
	struct rgate_ring *ring;
	struct rgate_att *att;
	int err;

	err = rgate_nl_parse_ident(info, &att_ident);
	if (err)
		return err;
	err = rgate_nl_parse_rings(info, &ring_ident, 1);
	if (err < 0)
		return err;
	mutex_lock(&rgate_lock);
	att = rgate_nl_att(info, &att_ident);
	if (IS_ERR(att)) {
		err = PTR_ERR(att);
		goto unlock;
	}
	ring = rgate_ring_find_ident(genl_info_net(info), &ring_ident);
	if (IS_ERR(ring)) {
		NL_SET_ERR_MSG(info->extack, "no such ring in this network namespace");
		err = PTR_ERR(ring);
		goto unlock;
	}
	err = rgate_nl_check_raw(skb, info, att->kind);
	if (!err && change == rgate_att_join)
		err = rgate_nl_check_thread(skb, info, att->thread);
	if (!err)
		err = change(att, ring);
	if (err && change == rgate_att_join)
		rgate_att_join_failed(err, info->extack);
unlock:
	mutex_unlock(&rgate_lock);
	return err;
}

int rgate_nl_att_join_doit(struct sk_buff *skb, struct genl_info *info)
{
	return rgate_nl_att_member(skb, info, rgate_att_join);
}

int rgate_nl_att_leave_doit(struct sk_buff *skb, struct genl_info *info)
{
	return rgate_nl_att_member(skb, info, rgate_att_leave);
}

static const struct genl_multicast_group rgate_genl_groups[] = {
	/*
	 * Each listener costs whoever sends an event: nobody shall be able to
	 * gather thousands.
	 */
	[RGATE_NLGRP_EVENTS] = { .name = RGATE_GENL_MCGRP, .flags = GENL_MCAST_CAP_NET_ADMIN },
};

struct genl_family rgate_genl_family __ro_after_init = {
	.name = RGATE_GENL_NAME,
	.version = RGATE_GENL_VERSION,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = rgate_nl_ops,
	.n_ops = ARRAY_SIZE(rgate_nl_ops),
	.resv_start_op = RGATE_CMD_RING_GET,
	.mcgrps = rgate_genl_groups,
	.n_mcgrps = ARRAY_SIZE(rgate_genl_groups),
};
