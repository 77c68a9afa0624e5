/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What forwarders need of a consumer beyond the public part */
#ifndef RGATE_LIB_CONSUMER_H
#define RGATE_LIB_CONSUMER_H

#include <ringgate/rgate_consumer.h>

#include "within.h"

/*
 * As rgate_consumer_arm(), for a consumer that has looked further than it has released:
 * asks for position @pos, and follows no resize. 1: it is published; 0: armed;
 * -EPIPE: nothing more comes to this mapping. rgate_consumer_disarm() afterwards.
 */
RGATE_WITHIN int rgate_consumer_arm_at(struct rgate_consumer *c, uint64_t pos);

#endif
