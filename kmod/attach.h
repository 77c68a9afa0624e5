/* SPDX-License-Identifier: GPL-2.0-only */
/* Attachments: frames of one device for one ring or several. */
#ifndef RGATE_ATTACH_H
#define RGATE_ATTACH_H

#include <linux/atomic.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/u64_stats_sync.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <ringgate/netlink.h>
#include "ring.h"

struct bpf_prog;
struct netlink_ext_ack;

/* Counters by enum rgate_a_att_stats, so that netlink only has to walk them */
#define RGATE_ATT_FIRST	RGATE_A_ATT_STATS_SEEN
#define RGATE_ATT_NSTATS (RGATE_A_ATT_STATS_MAX - RGATE_ATT_FIRST + 1)

struct rgate_att_pcpu {
	u64_stats_t v[RGATE_ATT_NSTATS];
	struct u64_stats_sync sync;
};

/**
 * struct rgate_att_cfg - what can be replaced while frames come in
 * @rcu: frees it, and the program
 * @action: enum rgate_action
 * @sample: one in how many; 0 and 1: all
 * @prog: filter, NULL: all match
 * @filter_len: its instructions as handed over
 * @handed_on: the configuration after this one has @prog now
 */
struct rgate_att_cfg {
	struct rcu_head rcu;
	u32 action;
	u32 sample;
	struct bpf_prog *prog;
	u32 filter_len;
	bool handed_on;
};

/**
 * struct rgate_att - an attachment
 * @ident: number in rgate_atts, and the cookie that tells it from others of that
 *	number
 * @dev: the device, counted until the attachment is removed; XDP programs that
 *	still run compare it and no more
 * @cfg: RCU; replaced under rgate_lock
 * @stats: counters
 * @kind: enum rgate_kind
 * @fanout: enum rgate_fanout
 * @nrings: valid entries of @rings
 * @ifindex: of its device
 * @rings: in fan-out order; RCU, changed under rgate_lock. Entries below
 *	@nrings are never NULL.
 * @ifname: present name of its device; under rgate_lock
 * @net: network namespace of the device; the attachment ends before it does
 * @tracker: of the count on @dev
 * @ops: the hook; its priority alone where @kind has none
 * @thread: of one CPU, in percent, what the thread of each of its rings may take; 0: they
 *	have none
 * @free: frees it once no hook can be running
 * @sampled: frames that the sampling saw
 *
 * What each frame looks at, with the first ring, is one cache line, and what some frames
 * change is on another.
 */
struct rgate_att {
	struct rgate_ident ident;
	struct net_device *dev;
	struct rgate_att_cfg __rcu *cfg;
	struct rgate_att_pcpu __percpu *stats;
	u32 kind;
	u32 fanout;
	unsigned int nrings;
	u32 ifindex;
	struct rgate_ring __rcu *rings[RGATE_ATT_RINGS_MAX];

	char ifname[IFNAMSIZ];
	struct net *net;
	netdevice_tracker tracker;
	struct nf_hook_ops ops;
	u32 thread;
	struct rcu_work free;
	atomic_t sampled ____cacheline_aligned_in_smp;
};

/**
 * struct rgate_att_new - what to attach
 * @ifindex: or 0: by @ifname
 * @nrings: entries of @rings, 1 to RGATE_ATT_RINGS_MAX
 * @rings: rings of the same network namespace
 * @filter: attribute, or NULL
 */
struct rgate_att_new {
	u32 ifindex;
	const char *ifname;
	s32 priority;
	u32 action;
	u32 fanout;
	u32 sample;
	u32 kind;
	u32 thread;
	const struct nlattr *filter;
	unsigned int nrings;
	struct rgate_ident rings[RGATE_ATT_RINGS_MAX];
};

/* What of the configuration rgate_att_set() leaves as it is */
#define RGATE_KEEP_ACTION	BIT(0)
#define RGATE_KEEP_SAMPLE	BIT(1)
#define RGATE_KEEP_FILTER	BIT(2)

extern struct xarray rgate_atts;

int rgate_att_init(void);
void rgate_att_exit(void);

struct rgate_att *rgate_att_alloc(struct net *net,
				  const struct rgate_att_new *req);
int rgate_att_hook(struct rgate_att *att, const struct rgate_att_new *req,
		   struct netlink_ext_ack *extack);
void rgate_att_discard(struct rgate_att *att);
struct rgate_att *rgate_att_find(struct net *net, u32 id);
struct rgate_att *rgate_att_find_ident(struct net *net,
				       const struct rgate_ident *ident);
void rgate_att_remove(struct rgate_att *att);
int rgate_att_join(struct rgate_att *att, struct rgate_ring *ring);
void rgate_att_join_failed(int err, struct netlink_ext_ack *extack);
int rgate_att_leave(struct rgate_att *att, struct rgate_ring *ring);
struct rgate_att_cfg *rgate_att_cfg_new(u32 action, u32 sample,
					const struct nlattr *filter);
void rgate_att_cfg_discard(struct rgate_att_cfg *cfg);
void rgate_att_set(struct rgate_att *att, struct rgate_att_cfg *cfg, u32 keep);
void rgate_att_sum(const struct rgate_att *att, u64 sum[RGATE_ATT_NSTATS]);

void rgate_att_drop_ring(struct rgate_ring *ring);
void rgate_att_drop_net(struct net *net);

#endif
