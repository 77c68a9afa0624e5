/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the sources need of a producer beyond the public part */
#ifndef RGATE_LIB_PRODUCER_H
#define RGATE_LIB_PRODUCER_H

#include <ringgate/rgate_producer.h>

#include "within.h"

/*
 * How many slots from head on are free by their credits, at most @max, whatever
 * the policy. They need not be reserved before they are written to, but each must
 * be reserved before it is published.
 */
unsigned int rgate_producer_run(struct rgate_producer *p, unsigned int max);

/* Takes over the fields of @hdr that rgate_producer_write() takes over */
void rgate_producer_describe(struct rgate_slot *s, const struct rgate_slot *hdr);

/* Publishes the slot reserved as filler */
void rgate_producer_publish_filler(struct rgate_producer *p);

/* Between these two no resize takes effect. */
void rgate_producer_pin(struct rgate_producer *p);
void rgate_producer_unpin(struct rgate_producer *p);

/* A frame that went to the next ring, as this one was full */
void rgate_producer_spilled(struct rgate_producer *p);

/* The position up to which slots are free; what the consumers read there is read. */
RGATE_WITHIN uint64_t rgate_producer_free(struct rgate_producer *p);

/*
 * Slots up to @head were filled by somebody else, who counted @stats (wakeups are
 * counted here): accounts for them and wakes who sleeps. -EPROTO: @head cannot be.
 */
RGATE_WITHIN int rgate_producer_landed(struct rgate_producer *p, uint64_t head,
				       const struct rgate_stats *stats);

/*
 * Who filled the slots is gone without a last word: takes what is complete for
 * published, and makes sure that nothing beyond can be taken for it. Returns how many
 * slots were found.
 */
RGATE_WITHIN uint64_t rgate_producer_find(struct rgate_producer *p);

/* An eventfd to be written when a resize waits for this producer; -1: none */
void rgate_producer_set_kick(struct rgate_producer *p, int fd);

#endif
