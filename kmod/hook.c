// SPDX-License-Identifier: GPL-2.0-only
#include <linux/netfilter.h>
#include <linux/skbuff.h>
#include "deliver.h"
#include "filter.h"
#include "hook.h"

/* Is this frame for us? Sets how much of it is wanted. */
static bool rgate_hook_match(struct rgate_att *att, struct rgate_att_pcpu *p,
			     const struct rgate_att_cfg *cfg,
			     struct rgate_frame *f)
{
	u32 want;

	if (cfg->prog) {
		want = rgate_filter_run(cfg->prog, f);
		if (!want) {
			rgate_deliver_count(p, RGATE_A_ATT_STATS_FILTERED, 1);
			return false;
		}
		f->snap = min(f->len, want);
	}
	return !rgate_deliver_sampled_out(att, p, cfg);
}

static unsigned int rgate_source_choose(const struct rgate_att *att,
					const struct rgate_frame *f,
					unsigned int n)
{
	switch (att->fanout) {
	case RGATE_FANOUT_CPU:
		return smp_processor_id() % n;
	case RGATE_FANOUT_QUEUE:
		return skb_rx_queue_recorded(f->skb) ?
			skb_get_rx_queue(f->skb) % n : 0;
	case RGATE_FANOUT_HASH:
		return reciprocal_scale(skb_get_hash(f->skb), n);
	default:
		return 0;
	}
}

static enum rgate_outcome rgate_source_put(const struct rgate_frame *f,
					   struct rgate_ring *ring, bool spill)
{
	return rgate_frame_put(f, ring, spill);
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

	rgate_deliver_count(p, RGATE_A_ATT_STATS_SEEN, 1);
	if (!rgate_hook_match(att, p, cfg, &f))
		return NF_ACCEPT;
	switch (rgate_deliver_fate(p, cfg->action, &f, rgate_deliver(att, p, &f))) {
	case RGATE_FATE_TAKEN:
		consume_skb(f.skb);
		return NF_STOLEN;
	case RGATE_FATE_DROP:
		return NF_DROP;
	default:
		return NF_ACCEPT;
	}
}
