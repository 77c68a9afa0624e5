/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The gateway's end of the packet plane: takes frames out of rings of this machine and
 * writes them into rings of compute nodes, by rules. The fabric's device reads them from
 * the ring's own pages: between the network stack's buffer and the consumer there is the
 * one copy that filled the ring.
 *
 * One thread does it, and is the only consumer of the rings. A slot goes back to its
 * ring when all nodes that get it have it. The order within a flow is kept, except when
 * its node changes.
 *
 * All functions are thread-safe, rgate_gateway_destroy() excepted; none may be called by
 * a service of the hub.
 */
#ifndef RINGGATE_RGATE_GATEWAY_H
#define RINGGATE_RGATE_GATEWAY_H

#include <ringgate/rgate_hub.h>
#include <ringgate/rgate_ring.h>
#include <ringgate/rgate_source.h>
#include <ringgate/rgate_spin.h>
#include <ringgate/rgate_steer.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RGATE_GATEWAY_RINGS_MAX	8

struct rgate_gateway;

enum rgate_pack {
	RGATE_PACK_AUTO,	/* where an operation takes this CPU 1 us or more */
	RGATE_PACK_NEVER,
	RGATE_PACK_ALWAYS,
	RGATE_PACK_COUNT
};

struct rgate_gateway_opts {
	size_t sz;
	uint32_t spin_us;	/* polls so long at most for frames, see rgate_spin.h */
	uint32_t burst;		/* slots written at once, 1 to 32; 0: 32 */
	uint32_t pack;		/* enum rgate_pack: frames go as one write, and the node's daemon
				 * lays them into the ring */
};

/*
 * rgate_gateway_create - adds RGATE_SERVICE_NET to the hub and starts the thread
 * Until rgate_gateway_steer() every flow goes to one of the nodes by hash.
 * -EEXIST: the hub has that service; -EINVAL: options, or this node is no gateway.
 */
RGATE_API int rgate_gateway_create(struct rgate_gateway **gw, struct rgate_hub *hub,
				   const struct rgate_gateway_opts *opts);

/* rgate_gateway_destroy - stops; what is not yet written stays in the rings. NULL is
 * allowed. */
RGATE_API void rgate_gateway_destroy(struct rgate_gateway *gw);

/*
 * rgate_gateway_add - forwards the frames of @ring, too
 * @ring: stays the caller's, and open and alone here until it is removed. Of the module:
 *	made with RGATE_RING_RW_SLOTS, as what the device reads from has to be mapped
 *	writable before Linux 6.12.
 * -ENOSPC: there are RGATE_GATEWAY_RINGS_MAX; -EOPNOTSUPP: it overwrites; -EMSGSIZE: a
 * node's ring has smaller slots; and as rgate_share_create().
 */
RGATE_API int rgate_gateway_add(struct rgate_gateway *gw, struct rgate_ring *ring);

/*
 * rgate_gateway_add_source - as rgate_gateway_add(), and drives @source, which fills @ring
 * alone: one thread receives and forwards, so that a frame wakes one thread less.
 * @source: made with rgate_source_opts.driven; stopped after the ring was removed.
 */
RGATE_API int rgate_gateway_add_source(struct rgate_gateway *gw, struct rgate_ring *ring,
				       struct rgate_source *source);

/* rgate_gateway_remove - frames not yet written to a node stay in the ring; -ENOENT */
RGATE_API int rgate_gateway_remove(struct rgate_gateway *gw, struct rgate_ring *ring);

/* rgate_gateway_steer - @steer holds for all frames taken from now on; it is the gateway's
 * then, to be freed by it. */
RGATE_API int rgate_gateway_steer(struct rgate_gateway *gw, struct rgate_steer *steer);

struct rgate_gateway_stats {
	size_t sz;
	uint64_t frames;	/* taken from rings */
	uint64_t bytes;
	uint64_t unmatched;	/* no rule took them */
	uint64_t dropped_rule;	/* a rule said drop */
	uint64_t dropped_down;	/* no node was there */
	uint64_t refused;	/* offers of rings that made no sense, or did not fit */
	uint64_t sleeps;
	uint64_t busy_ns;	/* CPU time of the thread */
};

/* @stats->sz is set by the caller */
RGATE_API int rgate_gateway_stats(struct rgate_gateway *gw, struct rgate_gateway_stats *stats);

struct rgate_gateway_ring {	/* a ring at a node, while it is connected */
	size_t sz;
	uint32_t node;
	uint32_t slots;
	uint32_t slot_size;
	uint32_t waiting;	/* frames queued for it here */
	char name[RGATE_NAME_LEN];
	uint64_t frames;	/* written and complete */
	uint64_t bytes;
	uint64_t dropped_full;	/* by rules with full=drop */
	uint64_t resteered;	/* to it from a node that went */
	uint64_t stalls;	/* times that it was full */
	uint64_t posts;		/* calls of the fabric */
	uint64_t writes;	/* operations in these */
	uint64_t notices;
	uint64_t head;		/* positions */
	uint64_t free;
	uint32_t packed;	/* 1: its frames are packed, see rgate_gateway_opts */
	uint32_t reserved;
};

/* rgate_gateway_ring - the @i-th; @info->sz is set by the caller. -ENOENT: fewer */
RGATE_API int rgate_gateway_ring(struct rgate_gateway *gw, unsigned int i,
				 struct rgate_gateway_ring *info);

struct rgate_gateway_node {	/* over all connections */
	size_t sz;
	uint64_t frames;
	uint64_t bytes;
	uint64_t lost;		/* frames under way when the connection ended: the node has
				 * them or not */
	uint64_t dropped_full;
	uint64_t dropped_down;	/* queued when it went, and no other took them */
	uint64_t sessions;	/* rings taken */
};

/* @info->sz is set by the caller; -ENOENT: no such node */
RGATE_API int rgate_gateway_node(struct rgate_gateway *gw, uint32_t node,
				 struct rgate_gateway_node *info);

/* rgate_gateway_rule - the @i-th rule's text to @line, and how many frames it took.
 * -ENOENT: fewer */
RGATE_API int rgate_gateway_rule(struct rgate_gateway *gw, unsigned int i, char *line,
				 size_t len, uint64_t *hits);

#ifdef __cplusplus
}
#endif
#endif
