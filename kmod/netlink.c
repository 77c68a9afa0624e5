// SPDX-License-Identifier: GPL-2.0-only
#include <linux/rtnetlink.h>
#include <linux/user_namespace.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include "attach.h"
#include "netlink.h"
#include "ring.h"

/* struct rgate_stats in the order of enum rgate_a_stats */
static int rgate_nl_put_ring_stats(struct sk_buff *skb,
				   const struct rgate_stats *stats)
{
	const __u64 *v = &stats->delivered;
	struct nlattr *nest;
	int i;

	BUILD_BUG_ON(offsetof(struct rgate_stats, reserved) / sizeof(*v) !=
		     RGATE_A_STATS_MAX - RGATE_A_STATS_DELIVERED + 1);
	nest = nla_nest_start(skb, RGATE_A_RING_STATS);
	if (!nest)
		return -EMSGSIZE;
	for (i = RGATE_A_STATS_DELIVERED; i <= RGATE_A_STATS_MAX; i++, v++)
		if (nla_put_u64_64bit(skb, i, *v, RGATE_A_STATS_PAD))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int rgate_nl_put_ring_attrs(struct sk_buff *skb, struct rgate_ring *ring,
				   const struct rgate_mem *mem,
				   struct user_namespace *userns)
{
	struct rgate_stats stats;
	u64 head;

	rgate_ring_stats(ring, &stats, &head);
	if (nla_put_u32(skb, RGATE_A_RING_ID, ring->id) ||
	    nla_put_string(skb, RGATE_A_RING_NAME, ring->name) ||
	    nla_put_u32(skb, RGATE_A_RING_SLOTS, mem->geo.slots) ||
	    nla_put_u32(skb, RGATE_A_RING_SLOT_SIZE, mem->geo.slot_size) ||
	    nla_put_u32(skb, RGATE_A_RING_FLAGS, ring->flags) ||
	    nla_put_u32(skb, RGATE_A_RING_POLICY, ring->policy) ||
	    nla_put_u32(skb, RGATE_A_RING_CLOCK, ring->clock) ||
	    nla_put_u32(skb, RGATE_A_RING_GENERATION, mem->generation) ||
	    nla_put_u32(skb, RGATE_A_RING_HANDLES, ring->nhandles) ||
	    nla_put_s32(skb, RGATE_A_RING_NODE, ring->node) ||
	    nla_put_u32(skb, RGATE_A_RING_UID,
			from_kuid_munged(userns, ring->uid)) ||
	    nla_put_u64_64bit(skb, RGATE_A_RING_MEM_BYTES, mem->geo.map_len,
			      RGATE_A_RING_PAD) ||
	    nla_put_u64_64bit(skb, RGATE_A_RING_HEAD, head, RGATE_A_RING_PAD))
		return -EMSGSIZE;
	return rgate_nl_put_ring_stats(skb, &stats);
}

/* rgate_lock keeps the ring. */
static int rgate_nl_put_ring(struct sk_buff *skb, u32 portid, u32 seq,
			     int flags, struct rgate_ring *ring,
			     struct user_namespace *userns)
{
	void *hdr = genlmsg_put(skb, portid, seq, &rgate_genl_family, flags,
				RGATE_CMD_RING_GET);
	struct rgate_mem *mem;
	int err;

	if (!hdr)
		return -EMSGSIZE;
	mem = rgate_ring_mem_get(ring);
	err = rgate_nl_put_ring_attrs(skb, ring, mem, userns);
	rgate_mem_put(mem);
	if (err)
		genlmsg_cancel(skb, hdr);
	else
		genlmsg_end(skb, hdr);
	return err;
}

static int rgate_nl_ring_get(struct sk_buff *skb, struct genl_info *info)
{
	struct user_namespace *userns = sk_user_ns(NETLINK_CB(skb).sk);
	struct rgate_ring *ring;
	struct sk_buff *msg;
	int err = -ENOENT;

	if (GENL_REQ_ATTR_CHECK(info, RGATE_A_RING_ID))
		return -EINVAL;
	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	mutex_lock(&rgate_lock);
	ring = rgate_ring_find(genl_info_net(info),
			       nla_get_u32(info->attrs[RGATE_A_RING_ID]));
	if (ring)
		err = rgate_nl_put_ring(msg, info->snd_portid, info->snd_seq, 0,
					ring, userns);
	mutex_unlock(&rgate_lock);
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	return genlmsg_reply(msg, info);
}

static int rgate_nl_ring_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct user_namespace *userns = sk_user_ns(NETLINK_CB(cb->skb).sk);
	struct net *net = sock_net(skb->sk);
	struct rgate_ring *ring;
	unsigned long id;

	mutex_lock(&rgate_lock);
	xa_for_each_start(&rgate_rings, id, ring, cb->args[0]) {
		if (ring->net == net &&
		    rgate_nl_put_ring(skb, NETLINK_CB(cb->skb).portid,
				      cb->nlh->nlmsg_seq, NLM_F_MULTI, ring,
				      userns))
			break;
		cb->args[0] = id + 1;
	}
	mutex_unlock(&rgate_lock);
	return skb->len;
}

static int rgate_nl_put_att_stats(struct sk_buff *skb,
				  const struct rgate_att *att)
{
	struct nlattr *nest = nla_nest_start(skb, RGATE_A_ATT_STATS);
	u64 sum[RGATE_ATT_NSTATS];
	int i;

	if (!nest)
		return -EMSGSIZE;
	rgate_att_sum(att, sum);
	for (i = 0; i < RGATE_ATT_NSTATS; i++)
		if (nla_put_u64_64bit(skb, RGATE_ATT_FIRST + i, sum[i],
				      RGATE_A_ATT_STATS_PAD))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int rgate_nl_put_att_attrs(struct sk_buff *skb,
				  const struct rgate_att *att)
{
	const struct rgate_att_cfg *cfg;
	struct rgate_ring *ring;
	unsigned int i;

	cfg = rcu_dereference_protected(att->cfg, lockdep_is_held(&rgate_lock));
	if (nla_put_u32(skb, RGATE_A_ATT_ID, att->id) ||
	    nla_put_u32(skb, RGATE_A_ATT_IFINDEX, att->ifindex) ||
	    nla_put_string(skb, RGATE_A_ATT_IFNAME, att->dev->name) ||
	    nla_put_s32(skb, RGATE_A_ATT_PRIORITY, att->ops.priority) ||
	    nla_put_u32(skb, RGATE_A_ATT_ACTION, cfg->action) ||
	    nla_put_u32(skb, RGATE_A_ATT_FANOUT, att->fanout) ||
	    nla_put_u32(skb, RGATE_A_ATT_SAMPLE, cfg->sample) ||
	    nla_put_u32(skb, RGATE_A_ATT_FILTER_LEN, cfg->filter_len))
		return -EMSGSIZE;
	for (i = 0; i < att->nrings; i++) {
		ring = rcu_dereference_protected(att->rings[i],
						 lockdep_is_held(&rgate_lock));
		if (nla_put_u32(skb, RGATE_A_ATT_RING, ring->id))
			return -EMSGSIZE;
	}
	return rgate_nl_put_att_stats(skb, att);
}

/* The RTNL keeps the device's name, rgate_lock the rest. */
static int rgate_nl_put_att(struct sk_buff *skb, u32 portid, u32 seq,
			    int flags, const struct rgate_att *att)
{
	void *hdr = genlmsg_put(skb, portid, seq, &rgate_genl_family, flags,
				RGATE_CMD_ATT_GET);
	int err;

	if (!hdr)
		return -EMSGSIZE;
	err = rgate_nl_put_att_attrs(skb, att);
	if (err)
		genlmsg_cancel(skb, hdr);
	else
		genlmsg_end(skb, hdr);
	return err;
}

static int rgate_nl_att_get(struct sk_buff *skb, struct genl_info *info)
{
	struct rgate_att *att;
	struct sk_buff *msg;
	int err = -ENOENT;

	if (GENL_REQ_ATTR_CHECK(info, RGATE_A_ATT_ID))
		return -EINVAL;
	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	rtnl_lock();
	mutex_lock(&rgate_lock);
	att = rgate_att_find(genl_info_net(info),
			     nla_get_u32(info->attrs[RGATE_A_ATT_ID]));
	if (att)
		err = rgate_nl_put_att(msg, info->snd_portid, info->snd_seq, 0,
				       att);
	mutex_unlock(&rgate_lock);
	rtnl_unlock();
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	return genlmsg_reply(msg, info);
}

static int rgate_nl_att_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct net *net = sock_net(skb->sk);
	struct rgate_att *att;
	unsigned long id;

	rtnl_lock();
	mutex_lock(&rgate_lock);
	xa_for_each_start(&rgate_atts, id, att, cb->args[0]) {
		if (att->net == net &&
		    rgate_nl_put_att(skb, NETLINK_CB(cb->skb).portid,
				     cb->nlh->nlmsg_seq, NLM_F_MULTI, att))
			break;
		cb->args[0] = id + 1;
	}
	mutex_unlock(&rgate_lock);
	rtnl_unlock();
	return skb->len;
}

static u32 rgate_nl_u32(const struct genl_info *info, int type, u32 otherwise)
{
	return info->attrs[type] ? nla_get_u32(info->attrs[type]) : otherwise;
}

static int rgate_nl_parse_rings(const struct genl_info *info,
				struct rgate_att_new *req)
{
	const struct nlattr *attr;
	int rem;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rem) {
		if (nla_type(attr) != RGATE_A_ATT_RING)
			continue;
		if (req->nrings == RGATE_ATT_RINGS_MAX) {
			NL_SET_ERR_MSG_ATTR(info->extack, attr, "too many rings");
			return -E2BIG;
		}
		req->rings[req->nrings++] = nla_get_u32(attr);
	}
	if (req->nrings)
		return 0;
	NL_SET_ERR_MSG(info->extack, "a ring is needed");
	return -EINVAL;
}

static int rgate_nl_parse_att(const struct genl_info *info,
			      struct rgate_att_new *req)
{
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
	req->action = rgate_nl_u32(info, RGATE_A_ATT_ACTION, RGATE_ACTION_STEAL);
	req->fanout = rgate_nl_u32(info, RGATE_A_ATT_FANOUT, RGATE_FANOUT_CPU);
	req->sample = rgate_nl_u32(info, RGATE_A_ATT_SAMPLE, 0);
	req->filter = info->attrs[RGATE_A_ATT_FILTER];
	return rgate_nl_parse_rings(info, req);
}

static int rgate_nl_reply_id(struct sk_buff *msg, struct genl_info *info, u32 id)
{
	void *hdr = genlmsg_put_reply(msg, info, &rgate_genl_family, 0,
				      RGATE_CMD_ATT_NEW);

	/* A fresh message has room for one number. */
	if (WARN_ON_ONCE(!hdr || nla_put_u32(msg, RGATE_A_ATT_ID, id))) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

/* What nobody was told the number of, nobody could end. */
static void rgate_nl_att_undo(struct net *net, u32 id)
{
	struct rgate_att *att;

	mutex_lock(&rgate_lock);
	att = rgate_att_find(net, id);
	if (att)
		rgate_att_remove(att);
	mutex_unlock(&rgate_lock);
}

static int rgate_nl_att_new(struct sk_buff *skb, struct genl_info *info)
{
	struct rgate_att_new req = {};
	struct sk_buff *msg;
	int id, err;

	err = rgate_nl_parse_att(info, &req);
	if (err)
		return err;
	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	rtnl_lock();
	mutex_lock(&rgate_lock);
	id = rgate_att_create(genl_info_net(info), &req, info->extack);
	mutex_unlock(&rgate_lock);
	rtnl_unlock();
	if (id < 0) {
		nlmsg_free(msg);
		return id;
	}
	err = rgate_nl_reply_id(msg, info, id);
	if (err)
		rgate_nl_att_undo(genl_info_net(info), id);
	return err;
}

/* The attachment that a request names; rgate_lock held. */
static struct rgate_att *rgate_nl_att(struct genl_info *info)
{
	struct rgate_att *att;

	if (GENL_REQ_ATTR_CHECK(info, RGATE_A_ATT_ID))
		return ERR_PTR(-EINVAL);
	att = rgate_att_find(genl_info_net(info),
			     nla_get_u32(info->attrs[RGATE_A_ATT_ID]));
	if (att)
		return att;
	NL_SET_ERR_MSG(info->extack, "no such attachment in this network namespace");
	return ERR_PTR(-ENOENT);
}

static int rgate_nl_att_del(struct sk_buff *skb, struct genl_info *info)
{
	struct rgate_att *att;

	mutex_lock(&rgate_lock);
	att = rgate_nl_att(info);
	if (!IS_ERR(att))
		rgate_att_remove(att);
	mutex_unlock(&rgate_lock);
	return PTR_ERR_OR_ZERO(att);
}

static int rgate_nl_set_cfg(struct genl_info *info, struct rgate_att *att)
{
	const struct rgate_att_cfg *old;

	old = rcu_dereference_protected(att->cfg, lockdep_is_held(&rgate_lock));
	return rgate_att_set(att,
			     rgate_nl_u32(info, RGATE_A_ATT_ACTION, old->action),
			     rgate_nl_u32(info, RGATE_A_ATT_SAMPLE, old->sample),
			     info->attrs[RGATE_A_ATT_FILTER]);
}

static int rgate_nl_att_set(struct sk_buff *skb, struct genl_info *info)
{
	struct rgate_att *att;
	int err;

	mutex_lock(&rgate_lock);
	att = rgate_nl_att(info);
	err = IS_ERR(att) ? PTR_ERR(att) : rgate_nl_set_cfg(info, att);
	mutex_unlock(&rgate_lock);
	return err;
}

static int rgate_nl_att_member(struct genl_info *info,
			       int (*change)(struct rgate_att *,
					     struct rgate_ring *))
{
	struct rgate_att_new req = {};
	struct rgate_ring *ring;
	struct rgate_att *att;
	int err;

	err = rgate_nl_parse_rings(info, &req);
	if (err)
		return err;
	if (req.nrings > 1) {
		NL_SET_ERR_MSG(info->extack, "one ring at a time");
		return -EINVAL;
	}
	mutex_lock(&rgate_lock);
	att = rgate_nl_att(info);
	if (IS_ERR(att)) {
		err = PTR_ERR(att);
		goto unlock;
	}
	ring = rgate_ring_find(genl_info_net(info), req.rings[0]);
	if (ring) {
		err = change(att, ring);
	} else {
		NL_SET_ERR_MSG(info->extack, "no such ring in this network namespace");
		err = -ENOENT;
	}
unlock:
	mutex_unlock(&rgate_lock);
	return err;
}

static int rgate_nl_att_join(struct sk_buff *skb, struct genl_info *info)
{
	return rgate_nl_att_member(info, rgate_att_join);
}

static int rgate_nl_att_leave(struct sk_buff *skb, struct genl_info *info)
{
	return rgate_nl_att_member(info, rgate_att_leave);
}

#define RGATE_ATT_OP(_cmd, _doit, _policy, _max) {	\
	.cmd = _cmd,					\
	.doit = _doit,					\
	.flags = GENL_UNS_ADMIN_PERM,			\
	.policy = _policy,				\
	.maxattr = _max,				\
}

static const struct genl_ops rgate_genl_ops[] = {
	{
		.cmd = RGATE_CMD_RING_GET,
		.doit = rgate_nl_ring_get,
		.dumpit = rgate_nl_ring_dump,
		.policy = rgate_ring_policy,
		.maxattr = ARRAY_SIZE(rgate_ring_policy) - 1,
	},
	{
		.cmd = RGATE_CMD_ATT_GET,
		.doit = rgate_nl_att_get,
		.dumpit = rgate_nl_att_dump,
		.policy = rgate_att_id_policy,
		.maxattr = ARRAY_SIZE(rgate_att_id_policy) - 1,
	},
	RGATE_ATT_OP(RGATE_CMD_ATT_NEW, rgate_nl_att_new,
		     rgate_att_new_policy, RGATE_A_ATT_RING),
	RGATE_ATT_OP(RGATE_CMD_ATT_DEL, rgate_nl_att_del,
		     rgate_att_id_policy, RGATE_A_ATT_ID),
	RGATE_ATT_OP(RGATE_CMD_ATT_SET, rgate_nl_att_set,
		     rgate_att_set_policy, RGATE_A_ATT_FILTER),
	RGATE_ATT_OP(RGATE_CMD_ATT_JOIN, rgate_nl_att_join,
		     rgate_att_member_policy, RGATE_A_ATT_RING),
	RGATE_ATT_OP(RGATE_CMD_ATT_LEAVE, rgate_nl_att_leave,
		     rgate_att_member_policy, RGATE_A_ATT_RING),
};

static const struct genl_multicast_group rgate_genl_groups[] = {
	{ .name = RGATE_GENL_MCGRP },
};

struct genl_family rgate_genl_family __ro_after_init = {
	.name = RGATE_GENL_NAME,
	.version = RGATE_GENL_VERSION,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = rgate_genl_ops,
	.n_ops = ARRAY_SIZE(rgate_genl_ops),
	.resv_start_op = RGATE_CMD_RING_GET,
	.mcgrps = rgate_genl_groups,
	.n_mcgrps = ARRAY_SIZE(rgate_genl_groups),
};
