/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Waiting: how long to poll before sleeping.
 *
 * Polling saves the sleep and the wakeup, 5 to 50 us, where the next frame is that near;
 * else it takes a CPU from who would bring it. So each waiter polls no longer than its
 * limit, and learns: what came within the limit after it slept makes it poll for longer,
 * up to the limit, and what took longer than the limit halves the time, down to none.
 *
 * Limits are in us: 0: by the number of CPUs that the process may run on when the waiter is
 * made (50 from three on; fewer are needed by who fills the ring and who works with it:
 * none); RGATE_SPIN_NONE: sleeps at once; at most RGATE_SPIN_MOST.
 */
#ifndef RINGGATE_RGATE_SPIN_H
#define RINGGATE_RGATE_SPIN_H

#include <stddef.h>
#include <stdint.h>

#define RGATE_SPIN_NONE	UINT32_MAX
#define RGATE_SPIN_MOST	1000000U

/* Fields are private: the state of one waiter */
struct rgate_spin {
	uint32_t most_ns;
	uint32_t ns;		/* as learned */
	uint64_t spins, hits, sleeps;
	uint64_t reserved[3];	/* 0 */
};

/* What a waiter did so far. @sz is set by the caller */
struct rgate_waits {
	size_t sz;
	uint64_t spins;		/* waits that began by polling */
	uint64_t hits;		/* and ended so */
	uint64_t sleeps;	/* system calls that may have slept */
	uint32_t limit_ns;
	uint32_t spin_ns;	/* how long it would poll now */
};

#endif
