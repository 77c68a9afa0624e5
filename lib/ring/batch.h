/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The batches of a ring, as a consumer sees and enters them */
#ifndef RGATE_LIB_BATCH_H
#define RGATE_LIB_BATCH_H

#include <ringgate/rgate_consumer.h>

static inline uint64_t batch_count(const struct rgate_consumer *c)
{
	return (c->mask + 1) >> RGATE_BATCH_SHIFT;
}

static inline uint64_t batch_lap(const struct rgate_consumer *c, uint64_t batch)
{
	return rgate_consumer_lap(c, batch << RGATE_BATCH_SHIFT);
}

static inline uint64_t batch_credit(const struct rgate_consumer *c, uint64_t batch)
{
	return __atomic_load_n(&c->credits[batch & (batch_count(c) - 1)],
			       __ATOMIC_ACQUIRE);
}

/* Between batches, with the next to look at beginning at batch @b */
static inline void batch_stand_before(struct rgate_consumer *c, uint64_t b)
{
	c->done = c->pos = c->end = b << RGATE_BATCH_SHIFT;
}

static inline void batch_enter(struct rgate_consumer *c, uint64_t b)
{
	c->done = c->pos = b << RGATE_BATCH_SHIFT;
	c->end = c->done + RGATE_BATCH;
	c->cur = (const unsigned char *)rgate_consumer_slot(c, c->done);
	c->lap = rgate_consumer_lap(c, c->done);
}

/*
 * A batch that was returned while a predecessor was not: possible only below
 * check_end, that is in the first lap after a start.
 */
static inline bool batch_returned(const struct rgate_consumer *c, uint64_t b)
{
	return b << RGATE_BATCH_SHIFT < c->check_end &&
	       batch_credit(c, b) == batch_lap(c, b);
}

#endif
