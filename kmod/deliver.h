/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an attachment does with a frame that is for it: which ring gets it, what
 * is counted, what becomes of it then. Who includes this is one kind of source
 * and defines the two functions below; they become part of its receive path.
 */
#ifndef RGATE_DELIVER_H
#define RGATE_DELIVER_H

#include "attach.h"
#include "frame.h"
#include "put.h"
#include "ring.h"

/* Which of @n rings a frame falls to by the attachment's fan-out rule */
static unsigned int rgate_source_choose(const struct rgate_att *att,
					const struct rgate_frame *f,
					unsigned int n);
/* rgate_put() of the source, as a function of its own */
static enum rgate_outcome rgate_source_put(const struct rgate_frame *f,
					   struct rgate_ring *ring, bool spill);

/* Receive paths have bottom halves off, which grace periods wait for as well. */
#define rgate_deliver_rcu(p) rcu_dereference_check(p, rcu_read_lock_bh_held())

/**
 * enum rgate_fate - what becomes of a frame behind the attachment
 * @RGATE_FATE_STACK: the network stack has it
 * @RGATE_FATE_DROP: nobody has it
 * @RGATE_FATE_TAKEN: a ring has it, and nobody else
 */
enum rgate_fate {
	RGATE_FATE_STACK,
	RGATE_FATE_DROP,
	RGATE_FATE_TAKEN,
};

static inline void rgate_deliver_count(struct rgate_att_pcpu *p,
				       enum rgate_a_att_stats which, u64 n)
{
	u64_stats_update_begin(&p->sync);
	u64_stats_add(&p->v[which - RGATE_ATT_FIRST], n);
	u64_stats_update_end(&p->sync);
}

/* Does the sampling leave this one to the stack? */
static inline bool rgate_deliver_sampled_out(struct rgate_att *att,
					     struct rgate_att_pcpu *p,
					     const struct rgate_att_cfg *cfg)
{
	if (cfg->sample > 1 &&
	    (u32)atomic_inc_return(&att->sampled) % cfg->sample) {
		rgate_deliver_count(p, RGATE_A_ATT_STATS_SAMPLED_OUT, 1);
		return true;
	}
	return false;
}

/* Several rings: the one that the frame falls to, or one after it. */
static noinline enum rgate_outcome
rgate_deliver_fan_out(struct rgate_att *att, struct rgate_att_pcpu *p,
		      struct rgate_frame f, unsigned int n)
{
	unsigned int pick = rgate_source_choose(att, &f, n), i;
	enum rgate_outcome out = RGATE_DROPPED;
	struct rgate_ring *ring;
	bool spill;

	for (i = 0; i < n; i++) {
		ring = rgate_deliver_rcu(att->rings[pick]);
		spill = i + 1 < n && (ring->policy == RGATE_POLICY_SPILL ||
				      att->fanout == RGATE_FANOUT_ROLLOVER);
		out = rgate_source_put(&f, ring, spill);
		if (out != RGATE_SPILLED)
			break;
		pick = pick + 1 < n ? pick + 1 : 0;
	}
	if (i && out == RGATE_DELIVERED)
		rgate_deliver_count(p, RGATE_A_ATT_STATS_SPILLED, 1);
	return out;
}

static __always_inline enum rgate_outcome
rgate_deliver(struct rgate_att *att, struct rgate_att_pcpu *p,
	      const struct rgate_frame *f)
{
	/* Pairs with the releases in rgate_att_join() and _unlink(). */
	unsigned int n = smp_load_acquire(&att->nrings);

	if (likely(n == 1))
		return rgate_put(f, rgate_deliver_rcu(att->rings[0]), false);
	/* The last ring has just left, and the attachment goes after it. */
	if (!n)
		return RGATE_PASSED;
	return rgate_deliver_fan_out(att, p, *f, n);
}

static inline enum rgate_a_att_stats rgate_deliver_loss(enum rgate_outcome out)
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

/* Counts what became of a frame, and says who has it now. */
static inline enum rgate_fate rgate_deliver_fate(struct rgate_att_pcpu *p,
						 u32 action,
						 const struct rgate_frame *f,
						 enum rgate_outcome out)
{
	if (unlikely(out != RGATE_DELIVERED)) {
		rgate_deliver_count(p, rgate_deliver_loss(out), 1);
		if (action == RGATE_ACTION_MIRROR || out == RGATE_PASSED)
			return RGATE_FATE_STACK;
		return RGATE_FATE_DROP;
	}
	rgate_deliver_count(p, RGATE_A_ATT_STATS_DELIVERED, 1);
	rgate_deliver_count(p, RGATE_A_ATT_STATS_BYTES, f->len);
	return action == RGATE_ACTION_MIRROR ? RGATE_FATE_STACK : RGATE_FATE_TAKEN;
}

#endif
