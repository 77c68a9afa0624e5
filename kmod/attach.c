// SPDX-License-Identifier: GPL-2.0-only
#include <linux/filter.h>
#include <linux/netdevice.h>
#include <linux/netfilter_netdev.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include "alloc.h"
#include "attach.h"
#include "event.h"
#include "filter.h"
#include "hook.h"
#include "ring.h"
#include "send.h"
#include "send_frame.h"
#include "xdp.h"

DEFINE_XARRAY_ALLOC1(rgate_atts);

/* Allocated at a power of two; see the structure. */
static_assert(offsetof(struct rgate_att, rings[1]) <= 64);
static_assert(offsetof(struct rgate_att, sampled) % SMP_CACHE_BYTES == 0);

/* Where the search for the next number begins; under the lock of rgate_atts */
static u32 rgate_att_next_id;

static void rgate_att_cfg_free(struct rcu_head *rcu)
{
	struct rgate_att_cfg *cfg = container_of(rcu, struct rgate_att_cfg, rcu);

	if (!cfg->handed_on)
		rgate_filter_free(cfg->prog);
	kfree(cfg);
}

/**
 * rgate_att_cfg_new - a configuration, not yet in force
 * @action: enum rgate_action
 * @sample: one in how many
 * @filter: attribute, compiled here; NULL or empty for none
 *
 * Compiling takes its time: no lock is held.
 */
struct rgate_att_cfg *rgate_att_cfg_new(u32 action, u32 sample,
					const struct nlattr *filter)
{
	struct rgate_att_cfg *cfg = rgate_kzalloc(sizeof(*cfg));

	lockdep_assert_not_held(&rgate_lock);
	if (!cfg)
		return ERR_PTR(-ENOMEM);
	cfg->action = action;
	cfg->sample = sample;
	cfg->prog = rgate_filter_new(filter);
	if (IS_ERR(cfg->prog)) {
		int err = PTR_ERR(cfg->prog);

		kfree(cfg);
		return ERR_PTR(err);
	}
	if (cfg->prog)
		cfg->filter_len = nla_len(filter) / sizeof(struct sock_filter);
	return cfg;
}

/* It was never in force. */
void rgate_att_cfg_discard(struct rgate_att_cfg *cfg)
{
	rgate_att_cfg_free(&cfg->rcu);
}

/**
 * rgate_att_set - another configuration, from the next frame on
 * @att: the attachment
 * @cfg: the configuration; the attachment's from here on
 * @keep: RGATE_KEEP_*, what is taken over from the old one
 */
void rgate_att_set(struct rgate_att *att, struct rgate_att_cfg *cfg, u32 keep)
{
	struct rgate_att_cfg *old;

	old = rcu_dereference_protected(att->cfg, lockdep_is_held(&rgate_lock));
	if (keep & RGATE_KEEP_ACTION)
		cfg->action = old->action;
	if (keep & RGATE_KEEP_SAMPLE)
		cfg->sample = old->sample;
	if (keep & RGATE_KEEP_FILTER) {
		cfg->prog = old->prog;
		cfg->filter_len = old->filter_len;
		/* Only looked at once no hook reads the old one. */
		old->handed_on = true;
	}
	rcu_assign_pointer(att->cfg, cfg);
	call_rcu(&old->rcu, rgate_att_cfg_free);
}

static void rgate_att_free(struct rgate_att *att)
{
	struct rgate_att_cfg *cfg = rcu_dereference_protected(att->cfg, 1);

	if (cfg)
		rgate_att_cfg_discard(cfg);
	free_percpu(att->stats);
	kfree(att);
}

static void rgate_att_free_work(struct work_struct *work)
{
	rgate_att_free(container_of(to_rcu_work(work), struct rgate_att, free));
}

/**
 * rgate_att_alloc - all of an attachment that takes time, and no lock
 * @net: network namespace
 * @req: what, ranges checked
 *
 * Nobody finds it by its number yet: rgate_att_hook() or rgate_att_discard()
 * comes next.
 */
struct rgate_att *rgate_att_alloc(struct net *net,
				  const struct rgate_att_new *req)
{
	struct rgate_att *att = rgate_kzalloc(sizeof(*att));
	struct rgate_att_cfg *cfg;
	int cpu, err = -ENOMEM;

	if (!att)
		return ERR_PTR(-ENOMEM);
	INIT_RCU_WORK(&att->free, rgate_att_free_work);
	att->net = net;
	att->kind = req->kind;
	att->thread = req->thread;
	att->fanout = req->fanout;
	att->stats = rgate_alloc_fails() ? NULL :
		alloc_percpu_gfp(struct rgate_att_pcpu, GFP_KERNEL_ACCOUNT);
	if (!att->stats)
		goto free_att;
	for_each_possible_cpu(cpu)
		u64_stats_init(&per_cpu_ptr(att->stats, cpu)->sync);
	cfg = rgate_att_cfg_new(req->action, req->sample, req->filter);
	if (IS_ERR(cfg)) {
		err = PTR_ERR(cfg);
		goto free_att;
	}
	RCU_INIT_POINTER(att->cfg, cfg);
	att->ident.cookie = rgate_cookie_new();
	err = rgate_alloc_fails() ? -ENOMEM :
		xa_alloc_cyclic(&rgate_atts, &att->ident.id, NULL, RGATE_ID_LIMIT,
				&rgate_att_next_id, GFP_KERNEL_ACCOUNT);
	/* 1: the numbers began anew */
	if (err < 0)
		goto free_att;
	return att;

free_att:
	rgate_att_free(att);
	return ERR_PTR(err);
}

/* It was never hooked, but somebody may be sending through it just now. */
void rgate_att_discard(struct rgate_att *att)
{
	xa_erase(&rgate_atts, att->ident.id);
	queue_rcu_work(rgate_wq, &att->free);
}

static struct rgate_ring *rgate_att_ring(const struct rgate_att *att,
					 unsigned int i)
{
	return rcu_dereference_protected(att->rings[i],
					 lockdep_is_held(&rgate_lock));
}

/**
 * rgate_att_join - one more ring for an attachment
 * @att: the attachment
 * @ring: of the same network namespace; goes last
 *
 * Return: 0, -EEXIST if it is there already, -ENOSPC if there are too many, -EINVAL if
 * one of them is for frames that come and the other for frames that go, -EBUSY if the
 * ring sends through an attachment already.
 */
int rgate_att_join(struct rgate_att *att, struct rgate_ring *ring)
{
	bool transmit = att->kind == RGATE_KIND_TRANSMIT;
	unsigned int i;
	int err;

	lockdep_assert_held(&rgate_lock);
	for (i = 0; i < att->nrings; i++)
		if (rgate_att_ring(att, i) == ring)
			return -EEXIST;
	if (att->nrings == RGATE_ATT_RINGS_MAX)
		return -ENOSPC;
	if (transmit != !!ring->tx)
		return -EINVAL;
	if (ring->tx) {
		err = rgate_send_bind(ring, att);
		if (err)
			return err;
	}
	ring->attached = true;
	rcu_assign_pointer(att->rings[att->nrings], ring);
	/* Pairs with the acquire in rgate_deliver(): the ring is there. */
	smp_store_release(&att->nrings, att->nrings + 1);
	return 0;
}

/*
 * Readers may see a ring twice or miss one while the rest moves up, and the old
 * one until a grace period has passed; none of them sees an empty place.
 */
static bool rgate_att_unlink(struct rgate_att *att, struct rgate_ring *ring)
{
	unsigned int i;

	lockdep_assert_held(&rgate_lock);
	for (i = 0; i < att->nrings; i++)
		if (rgate_att_ring(att, i) == ring)
			break;
	if (i == att->nrings)
		return false;
	rgate_send_unbind(ring);
	for (; i + 1 < att->nrings; i++)
		rcu_assign_pointer(att->rings[i], rgate_att_ring(att, i + 1));
	/* Pairs with the acquire in rgate_deliver(). */
	smp_store_release(&att->nrings, att->nrings - 1);
	return true;
}

/**
 * rgate_att_leave - one ring less
 * @att: the attachment
 * @ring: one of its rings
 *
 * Return: 0, -ENOENT, or -EBUSY for the last one: then the attachment itself is
 * what has to go.
 */
int rgate_att_leave(struct rgate_att *att, struct rgate_ring *ring)
{
	lockdep_assert_held(&rgate_lock);
	if (att->nrings == 1 && rgate_att_ring(att, 0) == ring)
		return -EBUSY;
	return rgate_att_unlink(att, ring) ? 0 : -ENOENT;
}

/* Why a ring cannot be part of an attachment */
void rgate_att_join_failed(int err, struct netlink_ext_ack *extack)
{
	if (err == -EEXIST)
		NL_SET_ERR_MSG(extack, "a ring is named twice");
	else if (err == -EINVAL)
		NL_SET_ERR_MSG(extack, "rings to receive and rings to transmit do not mix");
	else if (err == -EBUSY)
		NL_SET_ERR_MSG(extack, "the ring sends through another attachment");
}

static int rgate_att_join_all(struct rgate_att *att,
			      const struct rgate_att_new *req,
			      struct netlink_ext_ack *extack)
{
	struct rgate_ring *ring;
	unsigned int i;
	int err;

	for (i = 0; i < req->nrings; i++) {
		ring = rgate_ring_find_ident(att->net, &req->rings[i]);
		if (IS_ERR(ring)) {
			NL_SET_ERR_MSG(extack, "no such ring in this network namespace");
			return PTR_ERR(ring);
		}
		err = rgate_att_join(att, ring);
		if (err) {
			rgate_att_join_failed(err, extack);
			return err;
		}
	}
	return 0;
}

/* Rings that were to be sent from are free for others again. */
static void rgate_att_unbind_all(struct rgate_att *att)
{
	unsigned int i;

	for (i = 0; i < att->nrings; i++)
		rgate_send_unbind(rgate_att_ring(att, i));
}

static struct net_device *rgate_att_device(struct net *net,
					   const struct rgate_att_new *req)
{
	return req->ifindex ? __dev_get_by_index(net, req->ifindex) :
			      __dev_get_by_name(net, req->ifname);
}

/* Netfilter knows why a hook cannot be; for the rest the error says it all. */
static void rgate_att_hook_failed(int err, struct netlink_ext_ack *extack)
{
	if (err == -E2BIG)
		NL_SET_ERR_MSG(extack, "the device takes no further ingress hook");
	else if (err == -EOPNOTSUPP)
		NL_SET_ERR_MSG(extack, "this kernel has no netfilter ingress hook");
}

static int rgate_att_register(struct rgate_att *att, s32 priority,
			      struct netlink_ext_ack *extack)
{
	int err;

	/*
	 * A program brings the frames, and finds the attachment by its number; or
	 * users do, and their ring finds it.
	 */
	if (att->kind != RGATE_KIND_HOOK)
		return 0;
	att->ops.hook = rgate_hook;
	att->ops.priv = att;
	att->ops.dev = att->dev;
	att->ops.pf = NFPROTO_NETDEV;
	att->ops.hooknum = NF_NETDEV_INGRESS;
	att->ops.priority = priority;
	err = rgate_alloc_fails() ? -ENOMEM :
		nf_register_net_hook(att->net, &att->ops);
	if (err)
		rgate_att_hook_failed(err, extack);
	return err;
}

/**
 * rgate_att_hook - rings and device of a new attachment
 * @att: from rgate_att_alloc(); still the caller's if this fails
 * @req: what it was made of
 * @extack: says more about errors
 *
 * The RTNL is held, so that the device cannot go before its hook is in place;
 * and rgate_lock.
 */
int rgate_att_hook(struct rgate_att *att, const struct rgate_att_new *req,
		   struct netlink_ext_ack *extack)
{
	int err;

	ASSERT_RTNL();
	lockdep_assert_held(&rgate_lock);
	att->dev = rgate_att_device(att->net, req);
	if (!att->dev) {
		NL_SET_ERR_MSG(extack, "no such device in this network namespace");
		return -ENODEV;
	}
	if (att->kind == RGATE_KIND_XDP && !rgate_xdp_device(att->dev)) {
		NL_SET_ERR_MSG(extack, "XDP is for devices with Ethernet headers");
		return -EOPNOTSUPP;
	}
	if (att->kind == RGATE_KIND_TRANSMIT && !rgate_send_device(att->dev)) {
		NL_SET_ERR_MSG(extack, "only devices with Ethernet headers, or none, send frames");
		return -EOPNOTSUPP;
	}
	att->ifindex = att->dev->ifindex;
	strscpy(att->ifname, att->dev->name, sizeof(att->ifname));
	/* A ring that joins may send at once. */
	netdev_hold(att->dev, &att->tracker, GFP_KERNEL);
	err = rgate_att_join_all(att, req, extack);
	if (err)
		goto unbind;
	err = rgate_att_register(att, req->priority, extack);
	if (err)
		goto unbind;
	/* The place was reserved, so this cannot fail. */
	xa_store(&rgate_atts, att->ident.id, att, GFP_KERNEL);
	if (att->kind == RGATE_KIND_XDP)
		rgate_xdp_enter(att);
	return 0;

unbind:
	rgate_att_unbind_all(att);
	netdev_put(att->dev, &att->tracker);
	return err;
}

/* An attachment by number, as seen from a network namespace; rgate_lock held. */
struct rgate_att *rgate_att_find(struct net *net, u32 id)
{
	struct rgate_att *att = xa_load(&rgate_atts, id);

	lockdep_assert_held(&rgate_lock);
	return att && att->net == net ? att : NULL;
}

/* The same, as a request names it: -ENOENT, or -ESTALE if it is another by now */
struct rgate_att *rgate_att_find_ident(struct net *net,
				       const struct rgate_ident *ident)
{
	struct rgate_att *att = rgate_att_find(net, ident->id);

	if (!att)
		return ERR_PTR(-ENOENT);
	return att->ident.cookie == ident->cookie ? att : ERR_PTR(-ESTALE);
}

/* Takes the hook out; frees the rest once no frame is under way in it. */
void rgate_att_remove(struct rgate_att *att)
{
	lockdep_assert_held(&rgate_lock);
	xa_erase(&rgate_atts, att->ident.id);
	if (att->kind == RGATE_KIND_HOOK)
		nf_unregister_net_hook(att->net, &att->ops);
	else if (att->kind == RGATE_KIND_XDP)
		rgate_xdp_leave(att);
	else
		rgate_att_unbind_all(att);
	netdev_put(att->dev, &att->tracker);
	queue_rcu_work(rgate_wq, &att->free);
}

/* A ring ends: no attachment hands it frames any more after a grace period. */
void rgate_att_drop_ring(struct rgate_ring *ring)
{
	struct rgate_att *att;
	unsigned long id;

	lockdep_assert_held(&rgate_lock);
	xa_for_each(&rgate_atts, id, att)
		if (rgate_att_unlink(att, ring) && !att->nrings)
			rgate_att_remove(att);
}

void rgate_att_drop_net(struct net *net)
{
	struct rgate_att *att;
	unsigned long id;

	lockdep_assert_held(&rgate_lock);
	xa_for_each(&rgate_atts, id, att)
		if (att->net == net)
			rgate_att_remove(att);
}

void rgate_att_sum(const struct rgate_att *att, u64 sum[RGATE_ATT_NSTATS])
{
	const struct rgate_att_pcpu *p;
	u64 v[RGATE_ATT_NSTATS];
	unsigned int start;
	int cpu, i;

	memset(sum, 0, sizeof(v));
	for_each_possible_cpu(cpu) {
		p = per_cpu_ptr(att->stats, cpu);
		do {
			start = u64_stats_fetch_begin(&p->sync);
			for (i = 0; i < RGATE_ATT_NSTATS; i++)
				v[i] = u64_stats_read(&p->v[i]);
		} while (u64_stats_fetch_retry(&p->sync, start));
		for (i = 0; i < RGATE_ATT_NSTATS; i++)
			sum[i] += v[i];
	}
}

/*
 * The device goes, moves to another network namespace, has another name from now on,
 * or would be of another type. Holds the RTNL.
 */
static int rgate_att_netdev_event(struct notifier_block *nb,
				  unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct rgate_att *att;
	int ret = NOTIFY_DONE;
	unsigned long id;

	if (event != NETDEV_UNREGISTER && event != NETDEV_CHANGENAME &&
	    event != NETDEV_PRE_TYPE_CHANGE)
		return NOTIFY_DONE;
	mutex_lock(&rgate_lock);
	xa_for_each(&rgate_atts, id, att) {
		if (att->dev != dev)
			continue;
		if (event == NETDEV_PRE_TYPE_CHANGE) {
			/* Its headers were looked at when it was attached to. */
			if (att->kind != RGATE_KIND_HOOK)
				ret = NOTIFY_BAD;
			continue;
		}
		if (event == NETDEV_CHANGENAME) {
			strscpy(att->ifname, dev->name, sizeof(att->ifname));
			continue;
		}
		rgate_event_device_gone(att);
		rgate_att_remove(att);
	}
	mutex_unlock(&rgate_lock);
	return ret;
}

static struct notifier_block rgate_att_notifier = {
	.notifier_call = rgate_att_netdev_event,
};

int rgate_att_init(void)
{
	return register_netdevice_notifier(&rgate_att_notifier);
}

void rgate_att_exit(void)
{
	unregister_netdevice_notifier(&rgate_att_notifier);
}
