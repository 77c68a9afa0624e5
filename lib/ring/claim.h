/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Which of the consumers that share a ring has a batch, and what becomes of it when that
 * one dies. For rings with owner words (RGATE_FEAT_OWNERS); without them these functions
 * do nothing, and consumers share by the counter alone.
 */
#ifndef RGATE_LIB_CLAIM_H
#define RGATE_LIB_CLAIM_H

#include <ringgate/rgate_consumer.h>

/* Once the ring is mapped; the consumer then looks for what others left behind */
void rgate_claim_bind(struct rgate_consumer *c);

/* The next batch, or one that somebody left behind. 0: got one; 1: none, stands before it */
int rgate_claim_advance(struct rgate_consumer *c);

/*
 * Nothing is published where a consumer stands within a batch: is there a batch that
 * somebody left behind? True: that one is in hand, and its own one is anybody's.
 */
bool rgate_claim_aside(struct rgate_consumer *c);

/*
 * Nothing more will be published: notes how far this consumer got in its batch, and
 * looks for what others left behind. True: there is something to take.
 */
bool rgate_claim_last(struct rgate_consumer *c);

/* The batch in hand is anybody's from the first slot on that was not released. */
void rgate_claim_give_up(struct rgate_consumer *c);

/* Nobody has any batch; only while no consumer runs. @c: just bound */
void rgate_claim_reset(struct rgate_consumer *c);

/* Before sleeping: the next look for work is also one for what was left behind. */
void rgate_claim_arm(struct rgate_consumer *c);

/*
 * How long to sleep at most, of @ms (-1: for ever): who dies in a memfd ring wakes
 * nobody. rgate_claim_rested() after a sleep that nothing ended.
 */
int rgate_claim_nap(struct rgate_consumer *c, int ms);
void rgate_claim_rested(struct rgate_consumer *c);

#endif
