/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Requests: what a client, a program or a GPU kernel, and the engine that serves it share.
 *
 * One mapping, the session's area, in two halves that begin on a page each:
 *
 *	server's half	geometry, state, request credits, completions	the engine writes
 *	client's half	wait word, completion credits, requests		the client writes
 *
 * Every word has one writer. A slot is published by storing its lap number in its seq with
 * release; places come back by batches of RGATE_REQ_BATCH, as the lap in the batch's credit
 * word, stored with release by who has read all of them. Position P lies in slot P % n, in
 * lap P / n + 1; credits count likewise. Documentation/requests.rst tells the whole protocol.
 *
 * Nothing in here is an address: a request names memory of its session by offset and length.
 */
#ifndef RINGGATE_REQUEST_H
#define RINGGATE_REQUEST_H

#include <linux/types.h>
#include <ringgate/assert.h>

#define RGATE_REQ_MAGIC		0x51524752U	/* "RGRQ", little endian */
#define RGATE_REQ_VERSION	1

#define RGATE_REQ_BATCH_SHIFT	5
#define RGATE_REQ_BATCH		(1U << RGATE_REQ_BATCH_SHIFT)	/* places a credit */
#define RGATE_REQ_PLACES_MIN	64U		/* of either direction; powers of two */
#define RGATE_REQ_PLACES_MAX	(1U << 16)
#define RGATE_REQ_PLACES_DEFAULT 256U

/* rgate_request.op: service << 8 | operation */
#define RGATE_REQ_OP_SHIFT	8
#define RGATE_REQ_OP(service, op) \
	((__u16)((service) << RGATE_REQ_OP_SHIFT | (op)))
#define RGATE_REQ_SERVICES	32U	/* numbers that there can be */
#define RGATE_REQ_OPS		64U	/* operations of one service, 0 to 63 */

/* Numbers of services; from 16 on they are the user's */
enum rgate_req_service_number {
	RGATE_REQ_CORE = 0,
	RGATE_REQ_LOG = 1,
	RGATE_REQ_SPAWN = 2,
	RGATE_REQ_MEMORY = 3,
	RGATE_REQ_LOCK = 4,
	RGATE_REQ_BARRIER = 5,
	RGATE_REQ_SOCKET = 6,
	RGATE_REQ_QUEUE = 7,
	RGATE_REQ_USER = 16,
};

/* Operations of RGATE_REQ_CORE */
#define RGATE_REQ_NOP		RGATE_REQ_OP(RGATE_REQ_CORE, 0)	/* value: a0 */
/*
 * a0: service; a1: 0, value: a bit for each op; RGATE_PROBE_MULTI, a bit for each that can be so;
 * RGATE_PROBE_NODE, 1 + the node that carries out what names none, 0: it is none of a cluster
 */
#define RGATE_REQ_PROBE		RGATE_REQ_OP(RGATE_REQ_CORE, 1)
#define RGATE_REQ_TIME		RGATE_REQ_OP(RGATE_REQ_CORE, 2)	/* a0: rgate_clock; value: ns */
#define RGATE_REQ_CANCEL	RGATE_REQ_OP(RGATE_REQ_CORE, 3)	/* a0: the cookie of another */

#define RGATE_PROBE_MULTI	1U	/* who does not know it says -EINVAL, and has none */
#define RGATE_PROBE_NODE	2U	/* who does not know it says -EINVAL */

/* Operations of RGATE_REQ_LOG */
#define RGATE_REQ_LOG_WRITE	RGATE_REQ_OP(RGATE_REQ_LOG, 0)	/* mem, off, len: the text */

/*
 * Operations of RGATE_REQ_SPAWN: <ringgate/spawn.h> has what lies in memory. Those on a process
 * name it by the handle that START gave.
 */
/* a0: node; mem, off, len: the record; value: handle */
#define RGATE_REQ_SPAWN_START	RGATE_REQ_OP(RGATE_REQ_SPAWN, 0)
/* mem, off, len: the status */
#define RGATE_REQ_SPAWN_STATUS	RGATE_REQ_OP(RGATE_REQ_SPAWN, 1)
/* likewise, at its end */
#define RGATE_REQ_SPAWN_WAIT	RGATE_REQ_OP(RGATE_REQ_SPAWN, 2)
/* a0: 1, 2: stdout, stderr; mem, off, len: room; result: bytes, 0: the end */
#define RGATE_REQ_SPAWN_READ	RGATE_REQ_OP(RGATE_REQ_SPAWN, 3)
/* mem, off, len: for stdin; result: bytes taken */
#define RGATE_REQ_SPAWN_WRITE	RGATE_REQ_OP(RGATE_REQ_SPAWN, 4)
/* no more for stdin */
#define RGATE_REQ_SPAWN_CLOSE_STDIN RGATE_REQ_OP(RGATE_REQ_SPAWN, 5)
/* a0: number; a1: enum rgate_spawn_scope */
#define RGATE_REQ_SPAWN_SIGNAL	RGATE_REQ_OP(RGATE_REQ_SPAWN, 6)
/* kills it, if it runs */
#define RGATE_REQ_SPAWN_CLOSE	RGATE_REQ_OP(RGATE_REQ_SPAWN, 7)
/* to one that runs: a0: node; a1: its id; value: handle */
#define RGATE_REQ_SPAWN_ATTACH	RGATE_REQ_OP(RGATE_REQ_SPAWN, 8)
/* the handle is gone, the process goes on; value: its id */
#define RGATE_REQ_SPAWN_DETACH	RGATE_REQ_OP(RGATE_REQ_SPAWN, 9)
/*
 * a0: node; a1: an id, 0: from the first; mem, off, len: room for struct rgate_spawn_entry;
 * result: how many of those behind that id; value: how many there are
 */
#define RGATE_REQ_SPAWN_LIST	RGATE_REQ_OP(RGATE_REQ_SPAWN, 10)
/* a signal by id: a0: RGATE_REQ_SPAWN_TO(); a1: the id */
#define RGATE_REQ_SPAWN_KILL	RGATE_REQ_OP(RGATE_REQ_SPAWN, 11)
#define RGATE_REQ_SPAWN_TO(node, signal, scope) \
	((__u64)(node) | (__u64)(signal) << 16 | (__u64)(scope) << 32)
/* mem, off, len: room for struct rgate_spawn_node; result: how many; value: there are */
#define RGATE_REQ_SPAWN_NODES	RGATE_REQ_OP(RGATE_REQ_SPAWN, 12)

/*
 * Operations of RGATE_REQ_MEMORY: <ringgate/memory.h> has what a0, a1 and values are made of.
 * Those on memory that was opened name it by the handle that OPEN gave.
 */
/* mem, off, len: the part; a0: where its name lies; a1: _EXPORT_A1(); value: handle */
#define RGATE_REQ_MEMORY_EXPORT	RGATE_REQ_OP(RGATE_REQ_MEMORY, 0)
/* of either kind of handle */
#define RGATE_REQ_MEMORY_RELEASE RGATE_REQ_OP(RGATE_REQ_MEMORY, 1)
/* a0: node; a1: _OPEN_A1(); mem, off, len: the name; value: _HANDLE(), _LENGTH() */
#define RGATE_REQ_MEMORY_OPEN	RGATE_REQ_OP(RGATE_REQ_MEMORY, 2)
/* a0: from which byte; mem, off, len: to here */
#define RGATE_REQ_MEMORY_READ	RGATE_REQ_OP(RGATE_REQ_MEMORY, 3)
/* a0: to which byte; mem, off, len: from here */
#define RGATE_REQ_MEMORY_WRITE	RGATE_REQ_OP(RGATE_REQ_MEMORY, 4)
/* a0: which byte, of 8 aligned ones; a1: is added; value: what was there */
#define RGATE_REQ_MEMORY_FETCH_ADD RGATE_REQ_OP(RGATE_REQ_MEMORY, 5)
/* likewise; a1: if that is there; mem, off, len: 8 bytes to put there; value: what was there */
#define RGATE_REQ_MEMORY_CMP_SWAP RGATE_REQ_OP(RGATE_REQ_MEMORY, 6)
/* what was written before is visible to the memory's owner */
#define RGATE_REQ_MEMORY_FLUSH	RGATE_REQ_OP(RGATE_REQ_MEMORY, 7)

/*
 * Operations of RGATE_REQ_LOCK: <ringgate/sync.h> has what lies in memory. Those with a handle
 * name a lock by what OPEN gave: it is held, and waited for, by handle.
 */
/* a0: node; a1: _SYNC_OPEN_A1(); mem, off, len: struct rgate_sync_place; value: handle */
#define RGATE_REQ_LOCK_OPEN	RGATE_REQ_OP(RGATE_REQ_LOCK, 0)
/* handle; a0: RGATE_LOCK_*; value: the token */
#define RGATE_REQ_LOCK_ACQUIRE	RGATE_REQ_OP(RGATE_REQ_LOCK, 1)
/* handle */
#define RGATE_REQ_LOCK_RELEASE	RGATE_REQ_OP(RGATE_REQ_LOCK, 2)
/* handle; mem, off, len: room for struct rgate_lock_info */
#define RGATE_REQ_LOCK_STATE	RGATE_REQ_OP(RGATE_REQ_LOCK, 3)
/* handle: releases it, too */
#define RGATE_REQ_LOCK_CLOSE	RGATE_REQ_OP(RGATE_REQ_LOCK, 4)
/*
 * a0: node; a1: where to go on, at first 0; mem, off, len: room for struct rgate_lock_info;
 * result: 1, and value: where to go on; or 0: that was the last
 */
#define RGATE_REQ_LOCK_LIST	RGATE_REQ_OP(RGATE_REQ_LOCK, 5)

/* Operations of RGATE_REQ_BARRIER: likewise */
#define RGATE_REQ_BARRIER_OPEN	RGATE_REQ_OP(RGATE_REQ_BARRIER, 0)
/* handle: counted when it has ended */
#define RGATE_REQ_BARRIER_ARRIVE RGATE_REQ_OP(RGATE_REQ_BARRIER, 1)
/*
 * handle: until all have arrived; value: the generation; mem, off, len: none, or room for struct
 * rgate_barrier_info, which is there if it ends with -EPIPE
 */
#define RGATE_REQ_BARRIER_WAIT	RGATE_REQ_OP(RGATE_REQ_BARRIER, 2)
/* handle; mem, off, len: room for struct rgate_barrier_info */
#define RGATE_REQ_BARRIER_STATE	RGATE_REQ_OP(RGATE_REQ_BARRIER, 3)
/* handle */
#define RGATE_REQ_BARRIER_CLOSE	RGATE_REQ_OP(RGATE_REQ_BARRIER, 4)

/*
 * Operations of RGATE_REQ_SOCKET: <ringgate/socket.h> has what the words and the memory are made
 * of. Those on a socket name it by the handle that SOCKET or ACCEPT gave; an address is a struct
 * rgate_socket_addr.
 */
/* a0: RGATE_SOCKET_A0(); value: handle */
#define RGATE_REQ_SOCKET_OPEN	RGATE_REQ_OP(RGATE_REQ_SOCKET, 0)
/* mem, off, len: an address */
#define RGATE_REQ_SOCKET_BIND	RGATE_REQ_OP(RGATE_REQ_SOCKET, 1)
/* a0: backlog */
#define RGATE_REQ_SOCKET_LISTEN	RGATE_REQ_OP(RGATE_REQ_SOCKET, 2)
/*
 * mem, off, len: room for the peer's address, or none; value: handle. RGATE_REQ_MULTI: a1 is at
 * most RGATE_SOCKET_ACCEPT_MOST, and room is none or for an address of each connection, a1 - 1
 */
#define RGATE_REQ_SOCKET_ACCEPT	RGATE_REQ_OP(RGATE_REQ_SOCKET, 3)
/* mem, off, len: an address */
#define RGATE_REQ_SOCKET_CONNECT RGATE_REQ_OP(RGATE_REQ_SOCKET, 4)
/* a0: flags; mem, off, len: what is sent; result: bytes */
#define RGATE_REQ_SOCKET_SEND	RGATE_REQ_OP(RGATE_REQ_SOCKET, 5)
/*
 * a0: flags; mem, off, len: room; result: bytes, 0: the end; value: of a datagram, all its bytes.
 * RGATE_REQ_MULTI: room is a1 - 1 slots of one length, a completion has the next one; flags are
 * RGATE_SOCKET_NOW or none; the last one's result 0: the end of the stream
 */
#define RGATE_REQ_SOCKET_RECV	RGATE_REQ_OP(RGATE_REQ_SOCKET, 6)
/* likewise; a0: flags; a1: where in the session's memory the address is */
#define RGATE_REQ_SOCKET_SENDTO	RGATE_REQ_OP(RGATE_REQ_SOCKET, 7)
/* likewise; a1: where the sender's address goes; RGATE_REQ_MULTI: in front of the slot's bytes */
#define RGATE_REQ_SOCKET_RECVFROM RGATE_REQ_OP(RGATE_REQ_SOCKET, 8)
/* a0: RGATE_SOCKET_SHUT_* */
#define RGATE_REQ_SOCKET_SHUTDOWN RGATE_REQ_OP(RGATE_REQ_SOCKET, 9)
#define RGATE_REQ_SOCKET_CLOSE	RGATE_REQ_OP(RGATE_REQ_SOCKET, 10)
/* mem, off, len: room for an address */
#define RGATE_REQ_SOCKET_NAME	RGATE_REQ_OP(RGATE_REQ_SOCKET, 11)
/* likewise, of the other end */
#define RGATE_REQ_SOCKET_PEER	RGATE_REQ_OP(RGATE_REQ_SOCKET, 12)
/* a0: enum rgate_socket_option; mem, off, len: the value */
#define RGATE_REQ_SOCKET_SETOPT	RGATE_REQ_OP(RGATE_REQ_SOCKET, 13)
/* a0: likewise; mem, off, len: room for it; result: bytes */
#define RGATE_REQ_SOCKET_GETOPT	RGATE_REQ_OP(RGATE_REQ_SOCKET, 14)
/* a0: RGATE_SOCKET_IN, ...; a1: RGATE_SOCKET_NOW or 0; value: which are */
#define RGATE_REQ_SOCKET_POLL	RGATE_REQ_OP(RGATE_REQ_SOCKET, 15)
/*
 * no handle; a0: RGATE_SOCKET_RESOLVE_A0(); a1: RGATE_SOCKET_RESOLVE_A1(); mem, off, len: name and
 * service, and room for addresses, which take their place; result: bytes; value:
 * RGATE_SOCKET_FOUND(), RGATE_SOCKET_CANON()
 */
#define RGATE_REQ_SOCKET_RESOLVE RGATE_REQ_OP(RGATE_REQ_SOCKET, 16)

/*
 * Operations of RGATE_REQ_QUEUE: <ringgate/queue.h> has what words and memory are made of. Those
 * with a handle name a queue by what OPEN gave; a task by its number, and by the claim that has it.
 */
/* a0: node; a1: _QUEUE_OPEN_A1(); mem, off, len: struct rgate_queue_place; value: handle */
#define RGATE_REQ_QUEUE_OPEN	RGATE_REQ_OP(RGATE_REQ_QUEUE, 0)
/* handle: what it has claimed goes back */
#define RGATE_REQ_QUEUE_CLOSE	RGATE_REQ_OP(RGATE_REQ_QUEUE, 1)
/*
 * handle; a1: _SUBMIT_A1(); mem, off, len: of each task struct rgate_queue_put and its bytes;
 * result: how many were taken; value: the number of the first, the others have the next ones
 */
#define RGATE_REQ_QUEUE_SUBMIT	RGATE_REQ_OP(RGATE_REQ_QUEUE, 2)
/*
 * handle; a0: bits of types, 0: all; a1: _CLAIM_A1(); mem, off, len: room for struct
 * rgate_queue_task and bytes of each; result: bytes there; value: how many tasks
 */
#define RGATE_REQ_QUEUE_CLAIM	RGATE_REQ_OP(RGATE_REQ_QUEUE, 3)
/* handle; a0: task; a1: _TASK_A1(): it runs; value: how often it has begun */
#define RGATE_REQ_QUEUE_BEGIN	RGATE_REQ_OP(RGATE_REQ_QUEUE, 4)
/* likewise: its time to run begins anew */
#define RGATE_REQ_QUEUE_TOUCH	RGATE_REQ_OP(RGATE_REQ_QUEUE, 5)
/* likewise; mem, off, len: the result, or none */
#define RGATE_REQ_QUEUE_COMPLETE RGATE_REQ_OP(RGATE_REQ_QUEUE, 6)
/* likewise: it goes back, for so many ms; value: enum rgate_task_state that it has then */
#define RGATE_REQ_QUEUE_RELEASE	RGATE_REQ_OP(RGATE_REQ_QUEUE, 7)
/* likewise; mem, off, len: the reason, or none */
#define RGATE_REQ_QUEUE_BURY	RGATE_REQ_OP(RGATE_REQ_QUEUE, 8)
/* handle; a0: so many buried ones, then delayed ones, are ready; value: how many */
#define RGATE_REQ_QUEUE_KICK	RGATE_REQ_OP(RGATE_REQ_QUEUE, 9)
/*
 * handle; a0: task; a1: RGATE_WAIT_*; mem, off, len: room for result or reason; result: bytes;
 * value: enum rgate_task_state. Task 0: until none is left that is not over; value: the buried
 */
#define RGATE_REQ_QUEUE_WAIT	RGATE_REQ_OP(RGATE_REQ_QUEUE, 10)
/* handle; mem, off, len: room for struct rgate_queue_info */
#define RGATE_REQ_QUEUE_STATE	RGATE_REQ_OP(RGATE_REQ_QUEUE, 11)
/*
 * a0: node; a1: where to go on, at first 0; mem, off, len: room for struct rgate_queue_info;
 * result: 1, and value: where to go on; or 0: that was the last
 */
#define RGATE_REQ_QUEUE_LIST	RGATE_REQ_OP(RGATE_REQ_QUEUE, 12)
/*
 * handle; a0: behind that task; a1: RGATE_TASK_BIT() of states, 0: all; mem, off, len: room for
 * struct rgate_queue_task and its bytes; result: bytes, 0: none so far; value: where to go on,
 * 0: that was the last
 */
#define RGATE_REQ_QUEUE_PEEK	RGATE_REQ_OP(RGATE_REQ_QUEUE, 13)
/*
 * handle; a0: a task, or 0; a1: RGATE_TASK_BIT() of states: those that nobody has claimed are
 * dropped; value: how many. Not all at once: until it is 0
 */
#define RGATE_REQ_QUEUE_DISCARD	RGATE_REQ_OP(RGATE_REQ_QUEUE, 14)
/* handle, of the owner: the queue is gone, with all that it has */
#define RGATE_REQ_QUEUE_REMOVE	RGATE_REQ_OP(RGATE_REQ_QUEUE, 15)
/*
 * handle; mem, off, len: of each task struct rgate_queue_end and its result; result: how many were
 * looked at, RGATE_QUEUE_ENDS_MAX at most; value: a bit of each that was completed
 */
#define RGATE_REQ_QUEUE_COMPLETE_MANY RGATE_REQ_OP(RGATE_REQ_QUEUE, 16)
/*
 * handle; a0: where to go on, 0: from now on; a1: _FOLLOW_A1(); mem, off, len: room for struct
 * rgate_queue_ends and numbers of the user's own tasks with that tag that have ended; it waits for
 * one; result: bytes; value: where to go on
 */
#define RGATE_REQ_QUEUE_FOLLOW	RGATE_REQ_OP(RGATE_REQ_QUEUE, 17)
/*
 * handle; a0: a task's number; mem, off, len: a bit of that one and of each that follows, read and
 * written: of those that were set the bits are left whose tasks have ended; result: bytes
 */
#define RGATE_REQ_QUEUE_OVER	RGATE_REQ_OP(RGATE_REQ_QUEUE, 18)
/*
 * The next three are of daemons, which keep tasks of queues with RGATE_QUEUE_MIRROR.
 *
 * handle; mem, off, len: of each task struct rgate_queue_copy and its bytes; result: how many are
 * there now, from the first one on, whoever has submitted them again; value: as SUBMIT with a tag
 */
#define RGATE_REQ_QUEUE_AGAIN	RGATE_REQ_OP(RGATE_REQ_QUEUE, 19)
/*
 * handle; a1: RGATE_COPIES_NOW; mem, off, len: struct rgate_queue_copies, read, and written with
 * what follows it; waits for some; result: bytes; value: as FOLLOW
 */
#define RGATE_REQ_QUEUE_COPIES	RGATE_REQ_OP(RGATE_REQ_QUEUE, 20)
/* as OPEN, of a queue of the node that asks: have copies of its tasks, from now on */
#define RGATE_REQ_QUEUE_MIRROR	RGATE_REQ_OP(RGATE_REQ_QUEUE, 21)

/* rgate_request.flags; unknown ones are refused */
#define RGATE_REQ_LINK		(1U << 0)	/* the next begins when this one succeeded */
#define RGATE_REQ_DRAIN		(1U << 1)	/* begins after all before, ends before all after */
#define RGATE_REQ_NO_COMPLETION	(1U << 2)	/* tells of a failure only */
/*
 * a1: how many completions it may have, 2 or more, whose places are all reserved: each but the
 * last has RGATE_COMP_MORE. The last one says why there are no more: -ENOBUFS, all places but its
 * own are used up; an error, or the end of what there is. Not with one of the flags above
 */
#define RGATE_REQ_MULTI		(1U << 3)
#define RGATE_REQ_FLAGS \
	(RGATE_REQ_LINK | RGATE_REQ_DRAIN | RGATE_REQ_NO_COMPLETION | RGATE_REQ_MULTI)

/* rgate_request.cls */
enum rgate_req_class {
	RGATE_CLASS_NORMAL = 0,
	RGATE_CLASS_URGENT = 1,
	RGATE_CLASS_BULK = 2,
	RGATE_CLASS_COUNT
};

/* rgate_completion.flags */
#define RGATE_COMP_MORE		(1U << 0)	/* another one of this request will follow */

#define RGATE_REQ_MEM_SESSION	0U	/* rgate_request.mem: the session's own memory */

struct rgate_request {
	__u16 op;		/* RGATE_REQ_OP() */
	__u8 flags;		/* RGATE_REQ_* */
	__u8 cls;		/* enum rgate_req_class */
	__u32 owner;		/* rgate_req_head.owner, or the request is refused: -ESTALE */
	__aligned_u64 cookie;	/* the client's: comes back, and names it to CANCEL */
	__aligned_u64 a0;	/* of the operation; 0 where it has none */
	__aligned_u64 a1;	/* likewise; RGATE_REQ_MULTI: completions */
	__u32 mem;		/* which memory */
	__u32 len;		/* bytes of it */
	__aligned_u64 off;	/* from its first one */
	__u32 handle;		/* what an operation before gave; 0: none */
	__u32 deadline_us;	/* from when it is taken; 0: none */
	__aligned_u64 seq;	/* lap; stored last, with release */
};

struct rgate_completion {
	__aligned_u64 cookie;	/* stored after result and flags, with release */
	__s32 result;		/* 0 or more, or -errno */
	__u32 flags;		/* RGATE_COMP_* */
	__aligned_u64 value;	/* of the operation */
	__aligned_u64 seq;	/* lap; stored last, with release */
};

/* At the begin of the area. Nothing of it changes while the area lives. */
struct rgate_req_head {
	__u32 magic;
	__u16 version;		/* of this layout; another one is another layout */
	__u16 head_size;	/* sizeof(struct rgate_req_head) */
	__aligned_u64 features;	/* none so far */
	__u32 requests;		/* places, power of two */
	__u32 completions;	/* likewise */
	__u32 batch;		/* RGATE_REQ_BATCH */
	__u32 owner;		/* for rgate_request.owner */
	__aligned_u64 area_len;	/* bytes of the mapping */
	__aligned_u64 server_off; /* struct rgate_req_server, from the mapping's start */
	__aligned_u64 req_credits_off;	/* one __u64 a batch, the engine's */
	__aligned_u64 completions_off;
	__aligned_u64 client_off; /* struct rgate_req_client */
	__aligned_u64 comp_credits_off;	/* one __u64 a batch, the client's */
	__aligned_u64 requests_off;
	__aligned_u64 mem_len;	/* bytes of RGATE_REQ_MEM_SESSION */
	__aligned_u64 reserved[4];
};

/* rgate_req_server.state */
enum rgate_req_state {
	RGATE_REQ_OPEN = 1,
	RGATE_REQ_CLOSED = 2,	/* no more completions: what was under way is cancelled */
};

/* rgate_req_server.need */
#define RGATE_REQ_NEED_REQUEST	(1U << 0)	/* a published request */
#define RGATE_REQ_NEED_CREDIT	(1U << 1)	/* a credit of completions */

/* Written by the engine */
struct rgate_req_server {
	__u32 state;		/* enum rgate_req_state; release */
	__u32 need;		/* asleep: what it has to be woken for, by the eventfd */
	__aligned_u64 reserved[7];
};

/* rgate_req_client.want: until the engine falls asleep, having stored need */
#define RGATE_REQ_WANT_NEED	(~0ULL)

/* Written by the client, by its side that takes completions */
struct rgate_req_client {
	/* asleep, P + 1: until completion P is published, or RGATE_REQ_WANT_NEED; 0: awake */
	__aligned_u64 want;
	__aligned_u64 reserved[7];
};

RGATE_AT(struct rgate_request, op, 0);
RGATE_AT(struct rgate_request, flags, 2);
RGATE_AT(struct rgate_request, cls, 3);
RGATE_AT(struct rgate_request, owner, 4);
RGATE_AT(struct rgate_request, cookie, 8);
RGATE_AT(struct rgate_request, a0, 16);
RGATE_AT(struct rgate_request, a1, 24);
RGATE_AT(struct rgate_request, mem, 32);
RGATE_AT(struct rgate_request, len, 36);
RGATE_AT(struct rgate_request, off, 40);
RGATE_AT(struct rgate_request, handle, 48);
RGATE_AT(struct rgate_request, deadline_us, 52);
RGATE_AT(struct rgate_request, seq, 56);
RGATE_ASSERT(sizeof(struct rgate_request) == 64);

RGATE_AT(struct rgate_completion, cookie, 0);
RGATE_AT(struct rgate_completion, result, 8);
RGATE_AT(struct rgate_completion, flags, 12);
RGATE_AT(struct rgate_completion, value, 16);
RGATE_AT(struct rgate_completion, seq, 24);
RGATE_ASSERT(sizeof(struct rgate_completion) == 32);

RGATE_AT(struct rgate_req_head, magic, 0);
RGATE_AT(struct rgate_req_head, version, 4);
RGATE_AT(struct rgate_req_head, head_size, 6);
RGATE_AT(struct rgate_req_head, features, 8);
RGATE_AT(struct rgate_req_head, requests, 16);
RGATE_AT(struct rgate_req_head, completions, 20);
RGATE_AT(struct rgate_req_head, batch, 24);
RGATE_AT(struct rgate_req_head, owner, 28);
RGATE_AT(struct rgate_req_head, area_len, 32);
RGATE_AT(struct rgate_req_head, server_off, 40);
RGATE_AT(struct rgate_req_head, req_credits_off, 48);
RGATE_AT(struct rgate_req_head, completions_off, 56);
RGATE_AT(struct rgate_req_head, client_off, 64);
RGATE_AT(struct rgate_req_head, comp_credits_off, 72);
RGATE_AT(struct rgate_req_head, requests_off, 80);
RGATE_AT(struct rgate_req_head, mem_len, 88);
RGATE_ASSERT(sizeof(struct rgate_req_head) == 128);

RGATE_AT(struct rgate_req_server, state, 0);
RGATE_AT(struct rgate_req_server, need, 4);
RGATE_ASSERT(sizeof(struct rgate_req_server) == 64);
RGATE_AT(struct rgate_req_client, want, 0);
RGATE_ASSERT(sizeof(struct rgate_req_client) == 64);

#endif /* RINGGATE_REQUEST_H */
