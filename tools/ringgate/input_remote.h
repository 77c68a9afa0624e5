/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What only a ring that the cluster's gateway fills has: a daemon that may end, a gateway
 * that may refuse it, times by another machine's clock, devices that are not here. */
#ifndef INPUT_REMOTE_H
#define INPUT_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ringgate/ringgate.h>

struct input_remote {
	struct rgate_ring *ring;
	bool told_waiting;
	bool filled;		/* when last asked */
	uint64_t asked;		/* CLOCK_MONOTONIC ns */
	int64_t shift;		/* from the gateway's CLOCK_MONOTONIC to our CLOCK_REALTIME */
	uint64_t error;		/* of it; UINT64_MAX: it is a guess */
	bool shifted;		/* there is one */
	uint64_t shift_due;
};

/*
 * remote_look - is there still somebody who fills the ring?
 * @idle: nothing came since the last time; @quiet: do not say what is waited for
 * 0; -ECONNRESET, -EMSGSIZE, ...: nothing will come, which has been said
 */
int remote_look(struct input_remote *r, bool idle, bool quiet);

/* When to look again, at the latest; CLOCK_MONOTONIC ns */
uint64_t remote_next_look(const struct input_remote *r, uint64_t now);

/* When the frame came, by this machine's CLOCK_REALTIME; ns */
uint64_t remote_time(struct input_remote *r, const struct rgate_slot *s);

/* What the gateway calls that device, or a number; printable. Waits half a second at most */
void remote_device(struct input_remote *r, uint32_t ifindex, char *name, size_t len);

#endif
