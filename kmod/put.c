// SPDX-License-Identifier: GPL-2.0-only
/* What is rare of putting a frame into a ring: the same for all sources */
#include "event.h"
#include "frame.h"
#include "ring.h"
#include "trace.h"

/* No room: what the ring's policy makes of it */
enum rgate_outcome rgate_put_full(struct rgate_ring *ring, bool spill)
{
	struct rgate_writer *w = &ring->w;
	enum rgate_outcome out;

	lockdep_assert_held(&ring->lock);
	if (!w->full) {
		w->full = true;
		rgate_writer_count(&w->stats->full_events, 1);
		rgate_event_full(ring);
	}
	if (spill) {
		rgate_writer_count(&w->stats->spilled, 1);
		out = RGATE_SPILLED;
	} else if (ring->policy == RGATE_POLICY_PASS) {
		rgate_writer_count(&w->stats->passed, 1);
		out = RGATE_PASSED;
	} else {
		rgate_writer_count(&w->stats->dropped_full, 1);
		out = RGATE_DROPPED;
	}
	if (w->gap != U32_MAX)
		w->gap++;
	trace_rgate_drop(ring->id, out);
	return out;
}

/* It could not be read. */
enum rgate_outcome rgate_put_fault(struct rgate_ring *ring)
{
	lockdep_assert_held(&ring->lock);
	rgate_writer_count(&ring->w.stats->dropped_fault, 1);
	if (ring->w.gap != U32_MAX)
		ring->w.gap++;
	trace_rgate_drop(ring->id, RGATE_FAULT);
	return RGATE_FAULT;
}
