/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The generic netlink family "ringgate": attachments of rings to network
 * devices, counters and events. Documentation/netlink/specs/ringgate.yaml is
 * the same as a specification.
 *
 * An attachment hands the frames of one device to one ring, or to one of several by
 * its fan-out rule. They come from a receive hook, or from an XDP program that calls
 *
 *	int bpf_ringgate_push(struct xdp_md *ctx, __u32 attachment, __u64 cookie,
 *			      __u32 snap);
 *
 * with number and cookie of an attachment of kind XDP; such a one has no filter and
 * no priority of its own (EOPNOTSUPP). One of kind TRANSMIT goes the other way: what
 * users put into its rings, which are made with RGATE_RING_TRANSMIT, is sent through the
 * device, when they ask for it, or, with THREAD, by a thread of each ring that looks for
 * frames. It has a filter, but no action, fan-out, sampling and priority, and making,
 * changing or joining it needs CAP_NET_RAW, too; with THREAD, making or joining it needs
 * CAP_NET_ADMIN in the initial user namespace. All commands act in the network
 * namespace of the socket; those that change something, and the events, need
 * CAP_NET_ADMIN there.
 *
 * Numbers are handed out in a circle and come again one day. So each ring and each
 * attachment has a cookie too, a random number that is never 0, and what changes
 * something names its objects by both: ENOENT if there is none of that number,
 * ESTALE if it is another one by now. A cookie says who is meant; it is no secret
 * and gives no right.
 */
#ifndef RINGGATE_NETLINK_H
#define RINGGATE_NETLINK_H

#define RGATE_GENL_NAME		"ringgate"
#define RGATE_GENL_VERSION	1
#define RGATE_GENL_MCGRP	"events"

#define RGATE_ATT_RINGS_MAX	64	/* rings of one attachment */
#define RGATE_FILTER_LEN_MAX	4096	/* instructions, as BPF_MAXINSNS */

enum rgate_cmd {
	RGATE_CMD_UNSPEC,
	RGATE_CMD_RING_GET,	/* one by RGATE_A_RING_ID, or dump */
	RGATE_CMD_ATT_NEW,	/* replies with RGATE_A_ATT_ID and _COOKIE */
	RGATE_CMD_ATT_DEL,
	RGATE_CMD_ATT_GET,	/* one by RGATE_A_ATT_ID, or dump */
	RGATE_CMD_ATT_SET,	/* replace filter, action or sampling, live */
	RGATE_CMD_ATT_JOIN,	/* add a ring to an attachment */
	RGATE_CMD_ATT_LEAVE,	/* take a ring out of it */
	RGATE_CMD_EVENT,	/* notification, group "events" */
	__RGATE_CMD_MAX
};
#define RGATE_CMD_MAX (__RGATE_CMD_MAX - 1)

/* Attributes of RGATE_CMD_RING_GET, and of RGATE_A_ATT_RING */
enum rgate_a_ring {
	RGATE_A_RING_UNSPEC,
	RGATE_A_RING_PAD,
	RGATE_A_RING_ID,	/* u32 */
	RGATE_A_RING_NAME,	/* string */
	RGATE_A_RING_SLOTS,	/* u32 */
	RGATE_A_RING_SLOT_SIZE,	/* u32, bytes */
	RGATE_A_RING_FLAGS,	/* u32, RGATE_RING_* */
	RGATE_A_RING_POLICY,	/* u32, enum rgate_policy */
	RGATE_A_RING_CLOCK,	/* u32, enum rgate_clock */
	RGATE_A_RING_GENERATION, /* u32 */
	RGATE_A_RING_HANDLES,	/* u32, open files */
	RGATE_A_RING_NODE,	/* s32, -1: any */
	RGATE_A_RING_UID,	/* u32, who is charged, as the asker sees it */
	RGATE_A_RING_MEM_BYTES,	/* u64 */
	RGATE_A_RING_HEAD,	/* u64 */
	RGATE_A_RING_STATS,	/* nest of enum rgate_a_stats */
	RGATE_A_RING_COOKIE,	/* u64 */
	__RGATE_A_RING_MAX
};
#define RGATE_A_RING_MAX (__RGATE_A_RING_MAX - 1)

/* A ring's counters, as struct rgate_stats; all u64 */
enum rgate_a_stats {
	RGATE_A_STATS_UNSPEC,
	RGATE_A_STATS_PAD,
	RGATE_A_STATS_DELIVERED,
	RGATE_A_STATS_BYTES,
	RGATE_A_STATS_DROPPED_FULL,
	RGATE_A_STATS_DROPPED_FAULT,
	RGATE_A_STATS_OVERWRITTEN,
	RGATE_A_STATS_PASSED,
	RGATE_A_STATS_SPILLED,
	RGATE_A_STATS_TRUNCATED,
	RGATE_A_STATS_CHAINED,
	RGATE_A_STATS_PADDED,
	RGATE_A_STATS_WAKEUPS,
	RGATE_A_STATS_FULL_EVENTS,
	__RGATE_A_STATS_MAX
};
#define RGATE_A_STATS_MAX (__RGATE_A_STATS_MAX - 1)

/*
 * What becomes of a frame that a ring took. Who does not say gets a mirror: only a
 * word takes frames from the stack, never a 0 that was left behind.
 */
enum rgate_action {
	RGATE_ACTION_MIRROR = 1,	/* the stack gets it too; the default */
	RGATE_ACTION_STEAL = 2,		/* the stack never sees it */
};

/* Which of an attachment's rings gets a frame */
enum rgate_fanout {
	RGATE_FANOUT_CPU = 0,		/* receiving CPU modulo rings */
	RGATE_FANOUT_QUEUE = 1,		/* receive queue modulo rings */
	RGATE_FANOUT_HASH = 2,		/* flow hash, scaled to rings */
	RGATE_FANOUT_ROLLOVER = 3,	/* the first that has room */
	RGATE_FANOUT_COUNT
};

/* What brings an attachment its frames */
enum rgate_kind {
	RGATE_KIND_HOOK = 0,		/* netfilter's ingress hook; the default */
	RGATE_KIND_XDP = 1,		/* XDP programs that call bpf_ringgate_push() */
	RGATE_KIND_TRANSMIT = 2,	/* none: it sends what users put into its rings */
	RGATE_KIND_COUNT
};

/* Attributes of the RGATE_CMD_ATT_* commands */
enum rgate_a_att {
	RGATE_A_ATT_UNSPEC,
	RGATE_A_ATT_PAD,
	RGATE_A_ATT_ID,		/* u32 */
	RGATE_A_ATT_IFINDEX,	/* u32 */
	RGATE_A_ATT_IFNAME,	/* string; ATT_NEW takes this or IFINDEX */
	RGATE_A_ATT_PRIORITY,	/* s32, netfilter hook priority, default 0 */
	RGATE_A_ATT_ACTION,	/* u32, enum rgate_action; ATT_NEW: default mirror */
	RGATE_A_ATT_FANOUT,	/* u32, enum rgate_fanout */
	RGATE_A_ATT_SAMPLE,	/* u32, 1 in N of what matches; 0 and 1: all */
	RGATE_A_ATT_FILTER,	/* binary: struct sock_filter[]; empty: match all */
	RGATE_A_ATT_FILTER_LEN,	/* u32, instructions; replies only */
	RGATE_A_ATT_RING,	/* nest of RGATE_A_RING_ID and _COOKIE; once a ring, in order */
	RGATE_A_ATT_STATS,	/* nest of enum rgate_a_att_stats */
	RGATE_A_ATT_COOKIE,	/* u64 */
	RGATE_A_ATT_KIND,	/* u32, enum rgate_kind; ATT_NEW: default hook */
	RGATE_A_ATT_THREAD,	/* u32, percent of a CPU for a thread that sends; 0: none */
	__RGATE_A_ATT_MAX
};
#define RGATE_A_ATT_MAX (__RGATE_A_ATT_MAX - 1)

/* An attachment's counters, frames unless said otherwise; all u64 */
enum rgate_a_att_stats {
	RGATE_A_ATT_STATS_UNSPEC,
	RGATE_A_ATT_STATS_PAD,
	RGATE_A_ATT_STATS_SEEN,		/* all that came to the hook */
	RGATE_A_ATT_STATS_FILTERED,	/* did not match: left to the stack */
	RGATE_A_ATT_STATS_SAMPLED_OUT,	/* matched, not chosen: left to the stack */
	RGATE_A_ATT_STATS_DELIVERED,
	RGATE_A_ATT_STATS_BYTES,	/* on the wire, of those delivered */
	RGATE_A_ATT_STATS_DROPPED_FULL,
	RGATE_A_ATT_STATS_DROPPED_FAULT,
	RGATE_A_ATT_STATS_PASSED,	/* no free slot: left to the stack */
	RGATE_A_ATT_STATS_SPILLED,	/* delivered to another than the first choice */
	/* Of kind TRANSMIT, where SEEN are those taken, FILTERED and these are not sent: */
	RGATE_A_ATT_STATS_BAD_LENGTH,	/* no whole header, longer than the slot or the MTU */
	RGATE_A_ATT_STATS_BAD_FLAGS,	/* flags, a tag or an offload that cannot be */
	RGATE_A_ATT_STATS_REFUSED,	/* dropped by the device's queue, or the device */
	__RGATE_A_ATT_STATS_MAX
};
#define RGATE_A_ATT_STATS_MAX (__RGATE_A_ATT_STATS_MAX - 1)

enum rgate_event {
	RGATE_EVENT_RING_FULL = 1,	/* a ring became full */
	RGATE_EVENT_RING_ROOM = 2,	/* it takes frames again */
	RGATE_EVENT_DEVICE_GONE = 3,	/* an attachment ended with its device */
	RGATE_EVENT_RING_GONE = 4	/* a ring that was attached once was closed */
};

/* Attributes of RGATE_CMD_EVENT */
enum rgate_a_event {
	RGATE_A_EVENT_UNSPEC,
	RGATE_A_EVENT_PAD,
	RGATE_A_EVENT_TYPE,	/* u32, enum rgate_event */
	RGATE_A_EVENT_RING_ID,	/* u32 */
	RGATE_A_EVENT_ATT_ID,	/* u32 */
	RGATE_A_EVENT_IFINDEX,	/* u32 */
	RGATE_A_EVENT_FULL_EVENTS, /* u64, times full so far (events are coalesced) */
	RGATE_A_EVENT_DROPPED,	/* u64, frames dropped so far */
	__RGATE_A_EVENT_MAX
};
#define RGATE_A_EVENT_MAX (__RGATE_A_EVENT_MAX - 1)

#endif /* RINGGATE_NETLINK_H */
