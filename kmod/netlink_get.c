// SPDX-License-Identifier: GPL-2.0-only
/* What there is: rings and attachments as messages, one or all */
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
				   struct user_namespace *userns)
{
	struct rgate_ring_now now;

	rgate_ring_look(ring, &now);
	if (nla_put_u32(skb, RGATE_A_RING_ID, ring->id) ||
	    nla_put_string(skb, RGATE_A_RING_NAME, ring->name) ||
	    nla_put_u32(skb, RGATE_A_RING_SLOTS, now.geo.slots) ||
	    nla_put_u32(skb, RGATE_A_RING_SLOT_SIZE, now.geo.slot_size) ||
	    nla_put_u32(skb, RGATE_A_RING_FLAGS, ring->flags) ||
	    nla_put_u32(skb, RGATE_A_RING_POLICY, ring->policy) ||
	    nla_put_u32(skb, RGATE_A_RING_CLOCK, ring->clock) ||
	    nla_put_u32(skb, RGATE_A_RING_GENERATION, now.generation) ||
	    nla_put_u32(skb, RGATE_A_RING_HANDLES, ring->nhandles) ||
	    nla_put_s32(skb, RGATE_A_RING_NODE, ring->node) ||
	    nla_put_u32(skb, RGATE_A_RING_UID,
			from_kuid_munged(userns, ring->uid)) ||
	    nla_put_u64_64bit(skb, RGATE_A_RING_MEM_BYTES, now.geo.map_len,
			      RGATE_A_RING_PAD) ||
	    nla_put_u64_64bit(skb, RGATE_A_RING_HEAD, now.head,
			      RGATE_A_RING_PAD) ||
	    nla_put_u64_64bit(skb, RGATE_A_RING_COOKIE, ring->cookie,
			      RGATE_A_RING_PAD))
		return -EMSGSIZE;
	return rgate_nl_put_ring_stats(skb, &now.stats);
}

/* rgate_lock keeps the ring. */
static int rgate_nl_put_ring(struct sk_buff *skb, u32 portid, u32 seq,
			     int flags, struct rgate_ring *ring,
			     struct user_namespace *userns)
{
	void *hdr = genlmsg_put(skb, portid, seq, &rgate_genl_family, flags,
				RGATE_CMD_RING_GET);
	int err;

	if (!hdr)
		return -EMSGSIZE;
	err = rgate_nl_put_ring_attrs(skb, ring, userns);
	if (err)
		genlmsg_cancel(skb, hdr);
	else
		genlmsg_end(skb, hdr);
	return err;
}

int rgate_nl_ring_get_doit(struct sk_buff *skb, struct genl_info *info)
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

int rgate_nl_ring_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
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

/* A ring of an attachment, as the requests that name one have it */
static int rgate_nl_put_ident(struct sk_buff *skb, const struct rgate_ring *ring)
{
	struct nlattr *nest = nla_nest_start(skb, RGATE_A_ATT_RING);

	if (!nest || nla_put_u32(skb, RGATE_A_RING_ID, ring->id) ||
	    nla_put_u64_64bit(skb, RGATE_A_RING_COOKIE, ring->cookie,
			      RGATE_A_RING_PAD))
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
	if (nla_put_u32(skb, RGATE_A_ATT_ID, att->ident.id) ||
	    nla_put_u64_64bit(skb, RGATE_A_ATT_COOKIE, att->ident.cookie,
			      RGATE_A_ATT_PAD) ||
	    nla_put_u32(skb, RGATE_A_ATT_IFINDEX, att->ifindex) ||
	    nla_put_string(skb, RGATE_A_ATT_IFNAME, att->ifname) ||
	    nla_put_s32(skb, RGATE_A_ATT_PRIORITY, att->ops.priority) ||
	    nla_put_u32(skb, RGATE_A_ATT_ACTION, cfg->action) ||
	    nla_put_u32(skb, RGATE_A_ATT_FANOUT, att->fanout) ||
	    nla_put_u32(skb, RGATE_A_ATT_SAMPLE, cfg->sample) ||
	    nla_put_u32(skb, RGATE_A_ATT_FILTER_LEN, cfg->filter_len) ||
	    nla_put_u32(skb, RGATE_A_ATT_KIND, att->kind) ||
	    nla_put_u32(skb, RGATE_A_ATT_THREAD, att->thread))
		return -EMSGSIZE;
	for (i = 0; i < att->nrings; i++) {
		ring = rcu_dereference_protected(att->rings[i],
						 lockdep_is_held(&rgate_lock));
		if (rgate_nl_put_ident(skb, ring))
			return -EMSGSIZE;
	}
	return rgate_nl_put_att_stats(skb, att);
}

/* rgate_lock keeps the attachment. */
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

int rgate_nl_att_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct rgate_att *att;
	struct sk_buff *msg;
	int err = -ENOENT;

	if (GENL_REQ_ATTR_CHECK(info, RGATE_A_ATT_ID))
		return -EINVAL;
	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	mutex_lock(&rgate_lock);
	att = rgate_att_find(genl_info_net(info),
			     nla_get_u32(info->attrs[RGATE_A_ATT_ID]));
	if (att)
		err = rgate_nl_put_att(msg, info->snd_portid, info->snd_seq, 0,
				       att);
	mutex_unlock(&rgate_lock);
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	return genlmsg_reply(msg, info);
}

int rgate_nl_att_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct net *net = sock_net(skb->sk);
	struct rgate_att *att;
	unsigned long id;

	mutex_lock(&rgate_lock);
	xa_for_each_start(&rgate_atts, id, att, cb->args[0]) {
		if (att->net == net &&
		    rgate_nl_put_att(skb, NETLINK_CB(cb->skb).portid,
				     cb->nlh->nlmsg_seq, NLM_F_MULTI, att))
			break;
		cb->args[0] = id + 1;
	}
	mutex_unlock(&rgate_lock);
	return skb->len;
}
