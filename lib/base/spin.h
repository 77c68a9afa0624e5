/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* How long to poll before sleeping, for whoever waits: see <ringgate/rgate_spin.h> */
#ifndef RGATE_LIB_SPIN_H
#define RGATE_LIB_SPIN_H

#include <stdint.h>

#include <ringgate/rgate_spin.h>

#include "within.h"

/* @limit_us: as in the header; -EINVAL */
RGATE_WITHIN int rgate_spin_init(struct rgate_spin *spin, uint32_t limit_us);

/* The limit in ns for @limit_us on @cpus CPUs */
uint32_t rgate_spin_limit(uint32_t limit_us, unsigned int cpus);

/* Something came @ns after the waiter began to wait, be it polling or asleep. */
RGATE_WITHIN void rgate_spin_learn(struct rgate_spin *spin, uint64_t ns);

/* Counters have one writer and any readers; -EINVAL: sz */
int rgate_spin_info(const struct rgate_spin *spin, struct rgate_waits *out);

static inline void rgate_spin_count(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

#endif
