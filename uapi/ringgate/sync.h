/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What the operations of RGATE_REQ_LOCK and RGATE_REQ_BARRIER have in their words and in the
 * session's memory. Documentation/sync.rst tells what they do.
 */
#ifndef RINGGATE_SYNC_H
#define RINGGATE_SYNC_H

#include <linux/types.h>
#include <ringgate/assert.h>

/* rgate_request.a0 of OPEN and LIST: the node that is asked, whichever it is */
#define RGATE_SYNC_HERE		(~0ULL)
/* Letters, digits, and . _ - / */
#define RGATE_SYNC_NAME_MAX	63U
#define RGATE_SYNC_NAME_ROOM	64U
#define RGATE_BARRIER_MEMBERS	64U	/* of one barrier at most */

/* rgate_request.a1 of OPEN: whose it is, and */
#define RGATE_SYNC_CREATE	(1U << 0)	/* make it if it is not there; by its owner alone */
#define RGATE_SYNC_OTHERS	(1U << 1)	/* with CREATE: other users may open it, too */
#define RGATE_SYNC_FLAGS	3U
#define RGATE_SYNC_OPEN_A1(owner, flags)	((__u64)(flags) << 32 | (__u32)(owner))

/* rgate_request.a0 of ACQUIRE */
#define RGATE_LOCK_SHARED	(1U << 0)	/* with others that want it shared */
#define RGATE_LOCK_TRY		(1U << 1)	/* now, or -EAGAIN */
#define RGATE_LOCK_FLAGS	3U

#define RGATE_SYNC_FOREVER	(~0ULL)

/*
 * What OPEN names of the session's memory, at a multiple of 8. The first three words are
 * written by the engine as long as there is the handle.
 */
struct rgate_sync_place {
	/*
	 * a lock is held until then, CLOCK_BOOTTIME; 0: it is not; RGATE_SYNC_FOREVER: until it is
	 * released. Release
	 */
	__aligned_u64 lease_ns;
	__aligned_u64 value;	/* token of the lock, generation of the barrier */
	__aligned_u64 lost;	/* locks held, and lost before they were released, so far */
	__u32 members;		/* of a barrier, 1 to RGATE_BARRIER_MEMBERS; of a lock 0 */
	__u32 reserved;
	char name[RGATE_SYNC_NAME_ROOM]; /* ends with a NUL */
};

/* STATE and LIST of locks */
struct rgate_lock_info {
	__aligned_u64 token;	/* given last; 0: none so far */
	__u32 owner;		/* uid */
	__u32 flags;		/* RGATE_SYNC_OTHERS */
	__u32 holders;		/* several: they share it */
	__u32 waiters;
	__u32 holder_uid;	/* of the one that has it longest */
	__u32 holder_node;	/* RGATE_SYNC_NO_NODE: the lock's own */
	__u32 shared;		/* it is held so */
	__u32 reserved;
	char name[RGATE_SYNC_NAME_ROOM];
};

#define RGATE_SYNC_NO_NODE	(~0U)
#define RGATE_BARRIER_NOBODY	0xffU	/* rgate_barrier_info.node: never came */
#define RGATE_BARRIER_HOME	0xfeU	/* at the barrier's own node */

/* STATE of barriers, and WAIT that ended with -EPIPE. Members are bits, by when they came */
struct rgate_barrier_info {
	__aligned_u64 generation; /* how often all have arrived */
	__aligned_u64 arrived;	/* bit N: member N, in this generation, also if it died then */
	__aligned_u64 dead;	/* bit N: it broke the barrier */
	__u32 members;
	__u32 joined;		/* have it open now */
	__u8 node[RGATE_BARRIER_MEMBERS]; /* of each: or RGATE_BARRIER_NOBODY, _HOME */
};

RGATE_AT(struct rgate_sync_place, lease_ns, 0);
RGATE_AT(struct rgate_sync_place, value, 8);
RGATE_AT(struct rgate_sync_place, lost, 16);
RGATE_AT(struct rgate_sync_place, members, 24);
RGATE_AT(struct rgate_sync_place, name, 32);
RGATE_ASSERT(sizeof(struct rgate_sync_place) == 96);

RGATE_AT(struct rgate_lock_info, token, 0);
RGATE_AT(struct rgate_lock_info, owner, 8);
RGATE_AT(struct rgate_lock_info, flags, 12);
RGATE_AT(struct rgate_lock_info, holders, 16);
RGATE_AT(struct rgate_lock_info, waiters, 20);
RGATE_AT(struct rgate_lock_info, holder_uid, 24);
RGATE_AT(struct rgate_lock_info, holder_node, 28);
RGATE_AT(struct rgate_lock_info, shared, 32);
RGATE_AT(struct rgate_lock_info, name, 40);
RGATE_ASSERT(sizeof(struct rgate_lock_info) == 104);

RGATE_AT(struct rgate_barrier_info, generation, 0);
RGATE_AT(struct rgate_barrier_info, arrived, 8);
RGATE_AT(struct rgate_barrier_info, dead, 16);
RGATE_AT(struct rgate_barrier_info, members, 24);
RGATE_AT(struct rgate_barrier_info, joined, 28);
RGATE_AT(struct rgate_barrier_info, node, 32);
RGATE_ASSERT(sizeof(struct rgate_barrier_info) == 96);

#endif /* RINGGATE_SYNC_H */
