/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A compute node's end of the packet plane: rings in this node's memory that the
 * gateway fills over the fabric. A program that does not want to be a node itself asks
 * the daemon for one: rgate_ring_open_remote().
 *
 * All functions are thread-safe, rgate_inlet_destroy() excepted; none may be called by
 * a service of the hub.
 */
#ifndef RINGGATE_RGATE_INLET_H
#define RINGGATE_RGATE_INLET_H

#include <ringgate/rgate_hub.h>
#include <ringgate/rgate_ring.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_inlet;

/*
 * rgate_inlet_create - adds RGATE_SERVICE_NET to the hub of a compute node
 * The gateway need not be there yet. -EEXIST: the hub has that service; -EINVAL: this
 * node is the gateway, or the hub has no peer for it.
 */
RGATE_API int rgate_inlet_create(struct rgate_inlet **inlet, struct rgate_hub *hub);

/* rgate_inlet_destroy - removes the rings that are there, all at once, as rgate_inlet_remove(): who
 * has handles of them may drain them; NULL is allowed */
RGATE_API void rgate_inlet_destroy(struct rgate_inlet *inlet);

/*
 * rgate_inlet_add - a ring that the gateway fills
 * @ring: out, a handle as of rgate_ring_open_memfd(); the caller closes it. More by
 *	rgate_ring_dup() and rgate_ring_send().
 * @opts: as rgate_ring_open_memfd(); chains are always possible. slot_size has to be
 *	that of the gateway's ring or more, or the gateway says no (to the log). `clock`
 *	is the one whose offset rgate_ring_tstamp_offset() tells.
 * @number: out, for the functions below
 * Frames come as soon as the gateway is connected and a rule sends some here. Over a
 * lost connection the ring goes on: what was complete in it stays.
 * -EOPNOTSUPP: RGATE_POLICY_OVERWRITE; -ENOSPC: 64 rings are open; -EEXIST: one has
 * that name; and as rgate_ring_open_memfd(), rgate_share_create().
 */
RGATE_API int rgate_inlet_add(struct rgate_inlet *inlet, struct rgate_ring **ring,
			      const struct rgate_ring_opts *opts, uint32_t *number);

/* rgate_inlet_remove - the gateway is told, and once it has left (2 s at most) the ring is
 * closed: its consumers may drain it. A gateway that knows the ring and does not leave it in that
 * time loses its connection first, as it could write there still. -ENOENT */
RGATE_API int rgate_inlet_remove(struct rgate_inlet *inlet, uint32_t number);

struct rgate_inlet_ring {
	size_t sz;
	uint32_t number;
	uint32_t slots;
	uint32_t slot_size;
	int32_t error;		/* -errno: why the gateway refused it; 0 */
	bool filled;		/* the gateway has it */
	char name[RGATE_NAME_LEN];
	uint64_t sessions;	/* times that a gateway took it */
	uint64_t found;		/* slots complete that a lost gateway had not told of */
	uint64_t errors;	/* notices that made no sense */
	uint64_t credits;	/* times that free slots were told */
	int64_t tstamp_offset;	/* as rgate_ring_tstamp_offset() */
	uint64_t tstamp_error;
	struct rgate_stats stats;
	uint32_t least_slot_size; /* that the gateway takes; 0: it said nothing yet */
	uint32_t reserved;
};

/* rgate_inlet_info - the @i-th open ring; @info->sz is set by the caller. -ENOENT: fewer */
RGATE_API int rgate_inlet_info(struct rgate_inlet *inlet, unsigned int i,
			       struct rgate_inlet_ring *info);

#define RGATE_DEVICE_NAME	16	/* bytes of a network device's name, with the NUL */

/*
 * rgate_inlet_device - what the gateway calls the device of a frame
 * @ifindex: rgate_slot.ifindex; @name: out, as the gateway says it: whatever bytes it likes
 * Does not wait: the gateway is asked, and a later call gets the answer.
 * -EAGAIN: call again in some milliseconds; -ENODEV: it has no such device; -ENOTCONN: there
 * is no gateway; -EINVAL: no number of a device.
 */
RGATE_API int rgate_inlet_device(struct rgate_inlet *inlet, uint32_t ifindex,
				 char name[RGATE_DEVICE_NAME]);

#ifdef __cplusplus
}
#endif
#endif
