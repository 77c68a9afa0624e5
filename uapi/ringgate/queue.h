/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What the operations of RGATE_REQ_QUEUE have in their words and in the session's memory.
 * Documentation/queue.rst tells what they do.
 */
#ifndef RINGGATE_QUEUE_H
#define RINGGATE_QUEUE_H

#include <linux/types.h>
#include <ringgate/assert.h>

/* rgate_request.a0 of OPEN and LIST: the node that is asked, whichever it is */
#define RGATE_QUEUE_HERE	(~0ULL)
/* Letters, digits, and . _ - / */
#define RGATE_QUEUE_NAME_MAX	63U
#define RGATE_QUEUE_NAME_ROOM	64U

#define RGATE_QUEUE_DATA_MAX	32768U	/* bytes of a task, and of a result */
#define RGATE_QUEUE_REASON_MAX	255U	/* bytes of why it is buried */
#define RGATE_QUEUE_PART_MAX	65536U	/* bytes of a request's part */
#define RGATE_QUEUE_PRIORITIES	4U	/* 0 first */
#define RGATE_QUEUE_TYPES	64U
#define RGATE_QUEUE_CLAIM_MAX	256U	/* tasks of one claim */
#define RGATE_QUEUE_ENDS_MAX	64U	/* tasks of one COMPLETE_MANY */
#define RGATE_QUEUE_TASKS_MAX	(1U << 20) /* of one queue */
#define RGATE_QUEUE_BYTES_MAX	(1ULL << 28)
#define RGATE_QUEUE_ATTEMPTS_MAX 1000000U
#define RGATE_QUEUE_MS_MAX	(7U * 24 * 3600 * 1000) /* of all times: a week */

/* rgate_request.a1 of OPEN: whose it is, and */
#define RGATE_QUEUE_CREATE	(1U << 0)	/* make it if it is not there; by its owner alone */
#define RGATE_QUEUE_EXCLUSIVE	(1U << 1)	/* with CREATE: it must not be there */
#define RGATE_QUEUE_KEEP	(1U << 2)	/* likewise: it stays when it is empty and closed */
#define RGATE_QUEUE_SUBMIT	(1U << 3)	/* likewise: other users may submit, */
#define RGATE_QUEUE_WORK	(1U << 4)	/* likewise: or claim */
#define RGATE_QUEUE_NO_JOURNAL	(1U << 5)	/* likewise: its tasks are in no journal */
/* likewise: other nodes have copies of its tasks; without SUBMIT, and in no journal */
#define RGATE_QUEUE_MIRROR	(1U << 6)
#define RGATE_QUEUE_FLAGS	127U
#define RGATE_QUEUE_JOURNALED	(1U << 31)	/* of STATE, LIST: its tasks outlive the daemon */
#define RGATE_QUEUE_OPEN_A1(owner, flags)	((__u64)(flags) << 32 | (__u32)(owner))

/* What OPEN reads. What is 0 is the default; they are of a queue that is made. */
struct rgate_queue_place {
	__aligned_u64 bytes;	/* of tasks, and as many of results */
	__u32 tasks;		/* of all states */
	__u32 attempts;		/* of a task, before it is buried */
	__u32 run_ms;		/* a task that runs longer without TOUCH is taken away; 0: never */
	__u32 result_ms;	/* results are kept for so long */
	char name[RGATE_QUEUE_NAME_ROOM]; /* ends with a NUL */
};

enum rgate_task_state {
	RGATE_TASK_READY = 1,
	RGATE_TASK_CLAIMED = 2,
	RGATE_TASK_RUNNING = 3,
	RGATE_TASK_DELAYED = 4,
	RGATE_TASK_BURIED = 5,
	RGATE_TASK_DONE = 6,
};
#define RGATE_TASK_STATES	7U
#define RGATE_TASK_BIT(state)	(1U << (state))

/* Of a task, in SUBMIT's part: its bytes follow, then zeros up to a multiple of 8 */
struct rgate_queue_put {
	__u32 len;
	__u32 delay_ms;
	__u32 attempts;		/* 0: as the queue has it */
	__u8 type;
	__u8 priority;
	__u8 flags;		/* RGATE_TASK_* */
	__u8 reserved;
};

/* It stays when it is done, with its result, until that was taken or its time is over. */
#define RGATE_TASK_RESULT	(1U << 0)
#define RGATE_TASK_FLAGS	1U

/* rgate_request.a1 of SUBMIT: the tag of who follows what becomes of them, 0: nobody; and */
#define RGATE_SUBMIT_ROOM	(1U << 0)	/* waits while the queue is full */
#define RGATE_SUBMIT_A1(tag, flags)	((__u64)(tag) << 32 | (__u32)(flags))
/* Its value, with a tag: which of all queues that the home has had; and the first task */
#define RGATE_SUBMIT_QUEUE(value)	((__u32)((value) >> 40))
#define RGATE_SUBMIT_FIRST(value)	((value) & 0xffffffffffULL)

/* rgate_request.a1 of FOLLOW: the tag of SUBMIT, and */
#define RGATE_FOLLOW_NOW	(1U << 0)	/* does not wait */
#define RGATE_FOLLOW_A1(tag, flags)	((__u64)(tag) << 32 | (__u32)(flags))
#define RGATE_QUEUE_OVER_MAX	4096U	/* numbers of one OVER, in steps of 64 */

/* rgate_request.a1 of CLAIM: how many at most, and */
#define RGATE_CLAIM_NOW		(1U << 0)	/* -EAGAIN: there is none */
#define RGATE_CLAIM_BEGIN	(1U << 1)	/* they run */
#define RGATE_CLAIM_FLAGS	3U
#define RGATE_CLAIM_A1(most, flags)	((__u64)(flags) << 32 | (__u32)(most))

/* rgate_request.a1 of those on a task that is claimed; @ms: of RELEASE */
#define RGATE_TASK_A1(claim, ms)	((__u64)(ms) << 32 | (__u32)(claim))

/* Of each task, in COMPLETE_MANY's part: its result follows, then what there is up to @size */
struct rgate_queue_end {
	__aligned_u64 id;	/* 0: of none */
	__u32 claim;
	__u32 len;		/* of the result */
	__u32 size;		/* from this one to the next, a multiple of 8 */
	__u32 reserved;
};

/* rgate_request.a1 of WAIT */
#define RGATE_WAIT_TAKE		(1U << 0)	/* the result is not kept behind that */

/* In the part of CLAIM and PEEK: what follows it has zeros up to a multiple of 8, twice */
struct rgate_queue_task {
	__aligned_u64 id;
	__u32 claim;		/* for what is done with it */
	__u32 attempts;		/* so far, this one too if it was begun */
	__u32 uid;		/* who has submitted it */
	__u32 len;		/* its bytes follow */
	__u32 end_len;		/* then those of result or reason; 0 in CLAIM */
	__u32 ms;		/* since it was submitted */
	__u8 state;		/* enum rgate_task_state */
	__u8 type;
	__u8 priority;
	__u8 flags;
	__u32 reserved;
};

/*
 * What a task, or a result, has where it has no room for its bytes: in which memory they are that a
 * session has exported (<ringgate/memory.h>). It is all of the task, with zeros behind the name.
 */
struct rgate_queue_memory {
	__aligned_u64 magic;	/* RGATE_QUEUE_MEMORY_MAGIC */
	__aligned_u64 off;	/* in what was exported */
	__aligned_u64 len;
	__u32 node;		/* that has it, or RGATE_QUEUE_MEMORY_HERE */
	__u32 owner;		/* uid there */
	char name[RGATE_QUEUE_NAME_ROOM]; /* as RGATE_MEMORY_NAME_MAX says; ends with a NUL */
};
#define RGATE_QUEUE_MEMORY_MAGIC 0x6d656d2e72677101ULL
#define RGATE_QUEUE_MEMORY_HERE	(~0U)	/* the node of who wants it: of those of one node */

#define RGATE_QUEUE_PADDED(len)	(((__u64)(len) + 7) & ~7ULL)

/* In FOLLOW's part: the numbers of tasks that have ended follow it, 8 bytes each */
struct rgate_queue_ends {
	__u32 queue;		/* as RGATE_SUBMIT_QUEUE() has it */
	__u32 n;
	__u32 flags;		/* RGATE_ENDS_* */
	__u32 reserved;
};
#define RGATE_ENDS_MISSED	(1U << 0) /* others have, which nobody remembers: OVER tells */

/*
 * Which task it is, whatever becomes of its home: the number, and the queue as RGATE_SUBMIT_QUEUE()
 * has it, that it had in that process of the home which was first to take it.
 */
struct rgate_queue_origin {
	__aligned_u64 process;
	__aligned_u64 word;	/* as the value of SUBMIT with a tag has it */
};

/* Of a task, in the part of AGAIN and COPIES: its bytes follow, then zeros up to a multiple of 8 */
struct rgate_queue_copy {
	struct rgate_queue_origin origin;
	__aligned_u64 id;	/* now; 0 in AGAIN */
	__u32 tag;		/* of who follows what becomes of it; 0: nobody */
	__u32 reserved;
	struct rgate_queue_put put;	/* its delay is what is left of it */
};

/* In COPIES' part: how far he is who has the copies; then how far he is with what follows it */
struct rgate_queue_copies {
	__aligned_u64 process;	/* of the home; 0 in what is asked */
	__aligned_u64 after;	/* he has all copies of tasks up to that number that are for him */
	__aligned_u64 next;	/* as the value of FOLLOW */
	__u32 queue;		/* as RGATE_SUBMIT_QUEUE() has it; 0 in what is asked */
	__u32 flags;		/* RGATE_ENDS_MISSED; asked: RGATE_COPIES_FULL */
	__u32 ends;		/* so many numbers of tasks that have ended follow, */
	__u32 copies;		/* then so many struct rgate_queue_copy */
};
#define RGATE_COPIES_NOW	(1U << 0)	/* of a1: does not wait */
#define RGATE_COPIES_FULL	(1U << 1)	/* he had no room for some of those */

/* struct rgate_queue_info.mirror: the nodes that have copies, 0 and 1; -1: there is none */
#define RGATE_MIRROR_NODE(mirror, i)	((int)((mirror) >> 4 * (i) & 15) - 1)
#define RGATE_MIRROR_LATE	(1U << 8)	/* not all tasks have copies, and none waits for one */
#define RGATE_MIRROR_MISSED(mirror)	((mirror) >> 16) /* tasks taken without, up to 65535 */

/* STATE and LIST */
struct rgate_queue_info {
	__aligned_u64 submitted;	/* so far */
	__aligned_u64 done;
	__aligned_u64 released;		/* by who had claimed them */
	__aligned_u64 lost;		/* claims that ended with their session */
	__aligned_u64 late;		/* and by the time to run */
	__aligned_u64 buried;		/* so far */
	__aligned_u64 kicked;
	__aligned_u64 stale;		/* completions of claims that were over */
	__aligned_u64 full;		/* submissions that found no room */
	__aligned_u64 bytes;		/* now: of tasks */
	__aligned_u64 result_bytes;
	__aligned_u64 bytes_max;
	__u32 tasks_max;
	__u32 attempts;
	__u32 run_ms;
	__u32 result_ms;
	__u32 now[RGATE_TASK_STATES + 1]; /* tasks of each state */
	__u32 handles;			/* have it open */
	__u32 claims;			/* requests that wait for tasks */
	__u32 owner;			/* uid */
	__u32 flags;			/* RGATE_QUEUE_KEEP, _SUBMIT, _WORK, _JOURNALED, ... */
	__u32 oldest_ms;		/* since its oldest task was submitted */
	__u32 mirror;			/* RGATE_MIRROR_*; 0 without RGATE_QUEUE_MIRROR */
	char name[RGATE_QUEUE_NAME_ROOM];
};

RGATE_AT(struct rgate_queue_place, bytes, 0);
RGATE_AT(struct rgate_queue_place, tasks, 8);
RGATE_AT(struct rgate_queue_place, attempts, 12);
RGATE_AT(struct rgate_queue_place, run_ms, 16);
RGATE_AT(struct rgate_queue_place, result_ms, 20);
RGATE_AT(struct rgate_queue_place, name, 24);
RGATE_ASSERT(sizeof(struct rgate_queue_place) == 88);

RGATE_AT(struct rgate_queue_put, len, 0);
RGATE_AT(struct rgate_queue_put, delay_ms, 4);
RGATE_AT(struct rgate_queue_put, attempts, 8);
RGATE_AT(struct rgate_queue_put, type, 12);
RGATE_AT(struct rgate_queue_put, priority, 13);
RGATE_AT(struct rgate_queue_put, flags, 14);
RGATE_ASSERT(sizeof(struct rgate_queue_put) == 16);

RGATE_AT(struct rgate_queue_task, id, 0);
RGATE_AT(struct rgate_queue_task, claim, 8);
RGATE_AT(struct rgate_queue_task, attempts, 12);
RGATE_AT(struct rgate_queue_task, uid, 16);
RGATE_AT(struct rgate_queue_task, len, 20);
RGATE_AT(struct rgate_queue_task, end_len, 24);
RGATE_AT(struct rgate_queue_task, ms, 28);
RGATE_AT(struct rgate_queue_task, state, 32);
RGATE_AT(struct rgate_queue_task, type, 33);
RGATE_AT(struct rgate_queue_task, priority, 34);
RGATE_AT(struct rgate_queue_task, flags, 35);
RGATE_ASSERT(sizeof(struct rgate_queue_task) == 40);

RGATE_AT(struct rgate_queue_end, id, 0);
RGATE_AT(struct rgate_queue_end, claim, 8);
RGATE_AT(struct rgate_queue_end, len, 12);
RGATE_AT(struct rgate_queue_end, size, 16);
RGATE_ASSERT(sizeof(struct rgate_queue_end) == 24);

RGATE_AT(struct rgate_queue_ends, queue, 0);
RGATE_AT(struct rgate_queue_ends, n, 4);
RGATE_AT(struct rgate_queue_ends, flags, 8);
RGATE_ASSERT(sizeof(struct rgate_queue_ends) == 16);

RGATE_AT(struct rgate_queue_copy, origin, 0);
RGATE_AT(struct rgate_queue_copy, id, 16);
RGATE_AT(struct rgate_queue_copy, tag, 24);
RGATE_AT(struct rgate_queue_copy, put, 32);
RGATE_ASSERT(sizeof(struct rgate_queue_copy) == 48);

RGATE_AT(struct rgate_queue_copies, process, 0);
RGATE_AT(struct rgate_queue_copies, after, 8);
RGATE_AT(struct rgate_queue_copies, next, 16);
RGATE_AT(struct rgate_queue_copies, queue, 24);
RGATE_AT(struct rgate_queue_copies, flags, 28);
RGATE_AT(struct rgate_queue_copies, ends, 32);
RGATE_AT(struct rgate_queue_copies, copies, 36);
RGATE_ASSERT(sizeof(struct rgate_queue_copies) == 40);

RGATE_AT(struct rgate_queue_memory, magic, 0);
RGATE_AT(struct rgate_queue_memory, off, 8);
RGATE_AT(struct rgate_queue_memory, len, 16);
RGATE_AT(struct rgate_queue_memory, node, 24);
RGATE_AT(struct rgate_queue_memory, owner, 28);
RGATE_AT(struct rgate_queue_memory, name, 32);
RGATE_ASSERT(sizeof(struct rgate_queue_memory) == 96);

RGATE_AT(struct rgate_queue_info, submitted, 0);
RGATE_AT(struct rgate_queue_info, bytes, 72);
RGATE_AT(struct rgate_queue_info, tasks_max, 96);
RGATE_AT(struct rgate_queue_info, now, 112);
RGATE_AT(struct rgate_queue_info, handles, 144);
RGATE_AT(struct rgate_queue_info, mirror, 164);
RGATE_AT(struct rgate_queue_info, name, 168);
RGATE_ASSERT(sizeof(struct rgate_queue_info) == 232);

#endif /* RINGGATE_QUEUE_H */
