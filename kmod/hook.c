// SPDX-License-Identifier: GPL-2.0-only
#include <linux/netfilter.h>
#include <linux/skbuff.h>
#include "attach.h"
#include "filter.h"
#include "frame.h"
#include "hook.h"
#include "ring.h"

static void rgate_hook_count(struct rgate_att_pcpu *p,
			     enum rgate_a_att_stats which, u64 n)
{
	u64_stats_update_begin(&p->sync);
	u64_stats_add(&p->v[which - RGATE_ATT_FIRST], n);
	u64_stats_update_end(&p->sync);
}

/* Is this frame for us? Sets how much of it is wanted. */
static bool rgate_hook_match(struct rgate_att *att, struct rgate_att_pcpu *p,
			     const struct rgate_att_cfg *cfg,
			     struct rgate_frame *f)
{
	u32 want;

	if (cfg->prog) {
		want = rgate_filter_run(cfg->prog, f);
		if (!want) {
			rgate_hook_count(p, RGATE_A_ATT_STATS_FILTERED, 1);
			return false;
		}
		f->snap = min(f->len, want);
	}
	if (cfg->sample > 1 &&
	    (u32)atomic_inc_return(&att->sampled) % cfg->sample) {
		rgate_hook_count(p, RGATE_A_ATT_STATS_SAMPLED_OUT, 1);
		return false;
	}
	return true;
}

static unsigned int rgate_hook_choose(const struct rgate_att *att,
				      struct sk_buff *skb, unsigned int n)
{
	switch (att->fanout) {
	case RGATE_FANOUT_CPU:
		return smp_processor_id() % n;
	case RGATE_FANOUT_QUEUE:
		return skb_rx_queue_recorded(skb) ?
			skb_get_rx_queue(skb) % n : 0;
	case RGATE_FANOUT_HASH:
		return reciprocal_scale(skb_get_hash(skb), n);
	default:
		return 0;
	}
}

/* Several rings: the one that the frame falls to, or one after it. */
static noinline enum rgate_outcome
rgate_hook_fan_out(struct rgate_att *att, struct rgate_att_pcpu *p,
		   const struct rgate_frame *f, unsigned int n)
{
	unsigned int pick = rgate_hook_choose(att, f->skb, n), i;
	enum rgate_outcome out = RGATE_DROPPED;
	struct rgate_ring *ring;
	bool spill;

	for (i = 0; i < n; i++) {
		ring = rcu_dereference(att->rings[pick]);
		spill = i + 1 < n && (ring->policy == RGATE_POLICY_SPILL ||
				      att->fanout == RGATE_FANOUT_ROLLOVER);
		out = rgate_frame_put(f, ring, spill);
		if (out != RGATE_SPILLED)
			break;
		pick = pick + 1 < n ? pick + 1 : 0;
	}
	if (i && out == RGATE_DELIVERED)
		rgate_hook_count(p, RGATE_A_ATT_STATS_SPILLED, 1);
	return out;
}

static enum rgate_outcome rgate_hook_deliver(struct rgate_att *att,
					     struct rgate_att_pcpu *p,
					     const struct rgate_frame *f)
{
	/* Pairs with the releases in rgate_att_join() and _unlink(). */
	unsigned int n = smp_load_acquire(&att->nrings);

	if (likely(n == 1))
		return rgate_frame_put(f, rcu_dereference(att->rings[0]), false);
	/* The last ring has just left, and the hook goes after it. */
	if (!n)
		return RGATE_PASSED;
	return rgate_hook_fan_out(att, p, f, n);
}

static enum rgate_a_att_stats rgate_hook_loss(enum rgate_outcome out)
{
	switch (out) {
	case RGATE_PASSED:
		return RGATE_A_ATT_STATS_PASSED;
	case RGATE_FAULT:
		return RGATE_A_ATT_STATS_DROPPED_FAULT;
	default:
		return RGATE_A_ATT_STATS_DROPPED_FULL;
	}
}

static unsigned int rgate_hook_verdict(struct rgate_att_pcpu *p, u32 action,
				       const struct rgate_frame *f,
				       enum rgate_outcome out)
{
	if (unlikely(out != RGATE_DELIVERED)) {
		rgate_hook_count(p, rgate_hook_loss(out), 1);
		if (action == RGATE_ACTION_MIRROR || out == RGATE_PASSED)
			return NF_ACCEPT;
		return NF_DROP;
	}
	rgate_hook_count(p, RGATE_A_ATT_STATS_DELIVERED, 1);
	rgate_hook_count(p, RGATE_A_ATT_STATS_BYTES, f->len);
	if (action == RGATE_ACTION_MIRROR)
		return NF_ACCEPT;
	consume_skb(f->skb);
	return NF_STOLEN;
}

/**
 * rgate_hook - netfilter's ingress hook on an attached device
 * @priv: the attachment
 * @skb: data at the network header, an outer VLAN tag taken off already
 * @state: where; nothing in it that the attachment does not know
 *
 * Runs under rcu_read_lock with bottom halves off.
 */
unsigned int rgate_hook(void *priv, struct sk_buff *skb,
			const struct nf_hook_state *state)
{
	struct rgate_att *att = priv;
	struct rgate_att_pcpu *p = this_cpu_ptr(att->stats);
	const struct rgate_att_cfg *cfg = rcu_dereference(att->cfg);
	struct rgate_frame f = rgate_frame_of(skb);

	rgate_hook_count(p, RGATE_A_ATT_STATS_SEEN, 1);
	if (!rgate_hook_match(att, p, cfg, &f))
		return NF_ACCEPT;
	return rgate_hook_verdict(p, cfg->action, &f,
				  rgate_hook_deliver(att, p, &f));
}
