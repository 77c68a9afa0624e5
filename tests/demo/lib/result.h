/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What demo_ring tells demo_consume and hears from it, in memory both map: the
 * consumer has no other way to speak while it takes frames.
 */
#ifndef DEMO_RESULT_H
#define DEMO_RESULT_H

#include <stdint.h>

#include <ringgate/ring.h>
#include <ringgate/rgate_spin.h>

#include "demo.h"

#define RESULT_FD_SOCK	3	/* the ring's handle comes here */
#define RESULT_FD_MEM	4	/* struct result */
#define RESULT_REMOTE	"DEMO_REMOTE"	/* environment: ringgated's socket, */
#define RESULT_GEOMETRY	"DEMO_GEOMETRY"	/* slots and bytes of one */

enum result_kind {
	RESULT_STREAM,		/* datagrams of demo_send */
	RESULT_TCP,		/* one side of a TCP connection, an HTTP answer */
	RESULT_FRAMES,		/* frames of demo_replay */
	RESULT_KINDS
};

enum result_class {
	CLASS_PLAIN,
	CLASS_VLAN,
	CLASS_FRAGMENT,
	CLASS_IPV6,
	CLASS_JUMBO,
	CLASSES
};

struct result_sample {
	uint64_t sent_ns;
	uint64_t ticks;		/* when the consumer had it */
};

struct result {
	/* set before the consumer starts */
	uint32_t kind;
	uint32_t sha;		/* SHA-256 rather than a plain sum */
	uint32_t polls;		/* never sleeps, and makes no system call at all */
	uint64_t want;		/* end after so many frames; 0: at FIN */

	/* by the owner */
	uint32_t stop;

	/* by the consumer */
	uint32_t ready;
	uint32_t done;
	uint32_t malformed;	/* frames that are not what they should be */
	uint64_t frames;
	uint64_t slots;		/* more than frames where they are chained */
	uint64_t bytes;		/* of payload, or of frames */
	uint64_t holes;		/* datagrams or stream bytes that are missing, or late */
	uint64_t first, last;	/* ticks */
	uint64_t classes[CLASSES];
	struct demo_clock clock; /* first reading by the consumer */
	struct rgate_stats stats; /* of a ring that the consumer has opened itself */
	struct rgate_waits waits;
	char hash[DEMO_SUM_TEXT];
	uint64_t nsamples;
	uint64_t max_samples;
	struct result_sample samples[];
};

static inline size_t result_size(uint64_t samples)
{
	return sizeof(struct result) + samples * sizeof(struct result_sample);
}

#endif
