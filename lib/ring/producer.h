/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the sources need of a producer beyond the public part */
#ifndef RGATE_LIB_PRODUCER_H
#define RGATE_LIB_PRODUCER_H

#include <ringgate/rgate_producer.h>

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

/* An eventfd to be written when a resize waits for this producer; -1: none */
void rgate_producer_set_kick(struct rgate_producer *p, int fd);

#endif
