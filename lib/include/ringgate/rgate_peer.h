/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Another node, as seen from this one: a connection that is made, kept, and made anew
 * after it failed; operations on the peer's memory, and small messages.
 *
 * Operations on a peer are carried out in the order in which they were posted, and
 * complete in that order: a ticket, the number of an operation, stands for it and all
 * before it. Over one connection a write is placed before a later write; but a read or
 * an atomic may still be under way when a later write or message is placed, unless that
 * one has RGATE_OP_FENCE. A write that has completed has left this node's memory; it
 * is visible to the peer's CPUs once a later flush (or a read, or an atomic) has
 * completed, or once a later write that they poll has become visible. Bytes within one
 * write become visible in any order.
 *
 * When a connection fails, every operation outstanding ends in an error, and
 * rgate_peer_failure() tells which one was the first. Nothing is repeated: what to do
 * over a new connection is for the caller to say.
 *
 * All functions are thread-safe, rgate_peer_close() excepted; one lock per peer.
 */
#ifndef RINGGATE_RGATE_PEER_H
#define RINGGATE_RGATE_PEER_H

#include <ringgate/rgate_node.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_peer;

/*
 * rgate_peer_open - a connection to node @id, which may be this one (loopback: for
 * words of the own memory that receive atomics, which no CPU may change by itself)
 * Of two nodes the one with the higher id connects, and tries again until the peer is
 * closed, after 20 ms at first, 2 s at last. So this returns at once:
 * see rgate_peer_wait_up(). -ENOENT: the cluster has no such node; -EBUSY: open already.
 */
RGATE_API int rgate_peer_open(struct rgate_peer **peer, struct rgate_node *node, uint32_t id);

/* rgate_peer_close - ends the connection; NULL is allowed. No other thread may use the
 * peer. What is outstanding is lost. */
RGATE_API void rgate_peer_close(struct rgate_peer *peer);

/*
 * rgate_peer_wait_up - waits until the connection is there
 * -ETIMEDOUT: not within @timeout_ms, with the last reason in the log; -EACCES: the
 * peer has another key (tried again nonetheless, until the timeout, unless it is 0).
 */
RGATE_API int rgate_peer_wait_up(struct rgate_peer *peer, int timeout_ms);

enum rgate_peer_state {
	RGATE_PEER_DOWN,	/* waiting for the peer, or to try again */
	RGATE_PEER_CONNECTING,
	RGATE_PEER_UP,		/* until it has been taken away after a failure, too */
};

struct rgate_peer_info {
	size_t sz;
	uint32_t id;
	uint32_t state;		/* enum rgate_peer_state */
	uint32_t epoch;		/* connections made so far */
	int32_t error;		/* why the last one ended or failed, -errno; 0 */
	uint64_t incarnation;	/* of the peer, rgate_node_incarnation() */
	uint64_t up_ns;		/* CLOCK_MONOTONIC when it came up */
	uint64_t heard_ns;	/* and when the peer was last heard of */
	uint32_t msg_size;	/* bytes of a message to the peer at most */
	uint32_t outstanding;	/* operations posted and not completed */
	uint32_t credits;	/* messages that can be sent now */
};

/* @info->sz is set by the caller */
RGATE_API int rgate_peer_info(struct rgate_peer *peer, struct rgate_peer_info *info);

enum rgate_op_kind {
	RGATE_OP_WRITE,
	RGATE_OP_WRITE_IMM,	/* a write, then a notice of 32 bits; takes a credit */
	RGATE_OP_READ,
	RGATE_OP_FETCH_ADD,	/* 8 bytes, aligned; the old value goes to sge[0] */
	RGATE_OP_COMPARE_SWAP,
	RGATE_OP_FLUSH,		/* done: what was written before is visible to the peer */
	RGATE_OP_SEND,		/* a message of sge's bytes; takes a credit */
	RGATE_OP_KINDS
};

enum rgate_op_flags {
	RGATE_OP_FENCE	= 1U << 0, /* begin after earlier reads and atomics are done */
	RGATE_OP_BELL	= 1U << 1, /* a write then rings the bell of the peer's memory, where it
				    * has one: rgate_share_bell() */
	RGATE_OP_AT_ONCE = 1U << 2, /* posted alone, and before the provider can reach the peer's
				     * memory: -EAGAIN, instead of waiting for the peer; it is
				     * asked for it, so later there will be a way, or an error
				     */
};

#define RGATE_OP_FLAGS	(RGATE_OP_FENCE | RGATE_OP_BELL | RGATE_OP_AT_ONCE)

#define RGATE_SGE_MAX	4
#define RGATE_POST_MAX	64	/* operations posted at once */

struct rgate_sge {		/* local memory, of the pool or shared; stays as it is */
	void *addr;
	uint32_t length;
	uint32_t lkey;
};

struct rgate_op {
	uint8_t kind;		/* enum rgate_op_kind */
	uint8_t flags;
	uint16_t nsge;		/* up to RGATE_SGE_MAX */
	uint32_t imm;
	const struct rgate_sge *sge; /* read before the call returns */
	uint64_t remote;	/* address, as the peer's descriptor has it */
	uint32_t rkey;
	uint32_t epoch;		/* the connection it is for; 0: whichever there is */
	uint64_t operand;	/* added, or compared with */
	uint64_t swap;
	uint64_t reserved[2];	/* 0, or -EINVAL */
};

/*
 * rgate_peer_post - begins @n operations (1 to RGATE_POST_MAX), all or none
 * @ticket: of the last one; may be NULL
 * The device is told once for all of them. Memory that they use must stay as it is
 * until they completed. What has RGATE_OP_FENCE is read after the fence: it may be what
 * a read or an atomic before it brings. An address that the peer lent over one connection
 * may be something else of its own by the next, which can be there at any time: who posts
 * to it says in epoch which connection is meant (struct rgate_peer_info, rgate_msg).
 * -EAGAIN: too many are outstanding, no credit for a message, or the peer has answered
 * nothing for two heartbeats: poll, then try again;
 * -ENOTCONN: no connection, or another than the one meant; -EINVAL: malformed, or more
 * than can be outstanding; -EMSGSIZE: longer than the peer takes messages.
 */
RGATE_API int rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops,
			      unsigned int n, uint64_t *ticket);

/*
 * rgate_peer_done - 1: all up to @ticket completed; 0: not yet; else the error that one of
 * them ended in
 * Takes completions, without waiting. Either way the device has let go of the memory that
 * they used: an operation that failed is told once its connection has been taken away,
 * which the node's thread does. What became of it at the peer is not known then, but for
 * what rgate_peer_failure() says: a write may have been done in part.
 */
RGATE_API int rgate_peer_done(struct rgate_peer *peer, uint64_t ticket);

/* rgate_peer_finish - waits until all up to @ticket completed. 0, their error, or
 * -ETIMEDOUT: not within @timeout_ms, and still under way. */
RGATE_API int rgate_peer_finish(struct rgate_peer *peer, uint64_t ticket, int timeout_ms);

/*
 * rgate_peer_settle - waits until nothing up to @ticket uses its memory any more
 * For who takes the memory back whatever became of it: what is not over within @timeout_ms
 * ends the connection. Not with the lock of something that the node's thread waits for.
 * Return: 0: all completed; -ETIMEDOUT: it was late, and the connection has been ended; else
 * the error that one of them ended in.
 */
RGATE_API int rgate_peer_settle(struct rgate_peer *peer, uint64_t ticket, int timeout_ms);

/*
 * rgate_peer_cut - ends the connection, if there is one; the peer stays open and makes another
 * For who lent memory to a peer that does not do its part: over this connection it reaches
 * nothing any more when the call returns. What is outstanding ends in -ETIMEDOUT.
 * Any thread, but none that holds a lock which the node's thread waits for.
 */
RGATE_API void rgate_peer_cut(struct rgate_peer *peer);

/*
 * One operation from beginning to end, at byte @offset of @at.
 * @at: as rgate_desc_parse() made it from the peer's descriptor
 * @from, @to: local bytes; the caller's again when the call returns
 * @timeout_ms: 1 or more
 * Not begun: -EINVAL: malformed; -ERANGE: not inside of @at; -EACCES: @at does not
 * allow it; -EAGAIN: no room or no credit all the while; -ENOTCONN: no connection.
 * Refused, without effect, and the connection is lost with it: -EREMOTEIO: by the peer's
 * device; -EPERM: by the own one. Nobody knows whether it was done: -ETIMEDOUT: late, and
 * so the connection is ended; -ECONNRESET, -ECANCELED, -EIO: the connection failed.
 */
RGATE_API int rgate_peer_write(struct rgate_peer *peer, const struct rgate_remote *at,
			       uint64_t offset, const struct rgate_sge *from, int timeout_ms);
RGATE_API int rgate_peer_write_imm(struct rgate_peer *peer, const struct rgate_remote *at,
				   uint64_t offset, const struct rgate_sge *from,
				   uint32_t imm, int timeout_ms);
RGATE_API int rgate_peer_read(struct rgate_peer *peer, const struct rgate_remote *at,
			      uint64_t offset, const struct rgate_sge *to, int timeout_ms);
/* rgate_peer_fetch_add - *@old: what was there; may be NULL; only set on success.
 * rgate_peer_compare_swap - *@old == @expect: it was swapped. Both: 8 aligned bytes in the
 * byte order of the machines, atomic to other nodes' atomics and not to the owner's CPU. */
RGATE_API int rgate_peer_fetch_add(struct rgate_peer *peer, const struct rgate_remote *at,
				   uint64_t offset, uint64_t add, uint64_t *old,
				   int timeout_ms);
RGATE_API int rgate_peer_compare_swap(struct rgate_peer *peer, const struct rgate_remote *at,
				      uint64_t offset, uint64_t expect, uint64_t swap,
				      uint64_t *old, int timeout_ms);
/* rgate_peer_flush - all that was written before is visible to the peer */
RGATE_API int rgate_peer_flush(struct rgate_peer *peer, int timeout_ms);
/* rgate_peer_send - @data: any memory; it is copied. Waits for a credit, too. -EMSGSIZE:
 * longer than the peer takes; -ENOBUFS and others as rgate_pool_alloc() */
RGATE_API int rgate_peer_send(struct rgate_peer *peer, const void *data, size_t len,
			      int timeout_ms);

struct rgate_msg {
	uint32_t imm;
	bool has_imm;		/* a notice of RGATE_OP_WRITE_IMM; else a message */
	uint32_t epoch;		/* of the connection that it came over */
	size_t len;		/* bytes of the message */
	uint64_t reserved[2];	/* 0 */
};

/*
 * rgate_peer_recv - the next message or notice
 * @buf, @cap: where a message is copied to. -EMSGSIZE: it is longer; it is kept, @msg
 * tells its length. -EAGAIN: none within @timeout_ms (0: look once); -ENOTCONN: none
 * is left, and the connection is gone.
 * What the peer wrote before is visible after this (acquire).
 */
RGATE_API int rgate_peer_recv(struct rgate_peer *peer, struct rgate_msg *msg, void *buf,
			      size_t cap, int timeout_ms);

/*
 * rgate_peer_fd - readable when there may be something: poll(2), then call
 * rgate_peer_done() or rgate_peer_recv() until they have nothing, then
 * rgate_peer_arm() before sleeping again. The same fd as long as the peer is open, over all
 * connections; it is the peer's, not to be read or closed.
 */
RGATE_API int rgate_peer_fd(const struct rgate_peer *peer);
/* rgate_peer_arm - from now on the fd tells; it is readable at once if something came before
 * this call and was not taken. Always 0. */
RGATE_API int rgate_peer_arm(struct rgate_peer *peer);
/* rgate_peer_arm_recv - as rgate_peer_arm(), for who only receives while others post: the fd
 * need not tell that operations were done, but for the connection's end. Always 0. */
RGATE_API int rgate_peer_arm_recv(struct rgate_peer *peer);

enum rgate_outcome {
	RGATE_OUTCOME_NOT_DONE,		/* it had no effect at the peer */
	RGATE_OUTCOME_UNKNOWN,		/* it may have had its effect, in part or fully */
};

struct rgate_failure {
	size_t sz;
	uint32_t epoch;		/* connection that failed; 0: none so far */
	int32_t error;		/* -errno of the operation, or of the connection */
	uint32_t kind;		/* enum rgate_op_kind; RGATE_OP_KINDS: none was outstanding */
	uint32_t outcome;	/* enum rgate_outcome, of the operation */
	uint64_t ticket;	/* of the first operation that failed */
	uint64_t lost;		/* operations that ended in an error, with that one */
};

/* rgate_peer_failure - how the last connection ended; @failure->sz is set by the caller */
RGATE_API int rgate_peer_failure(struct rgate_peer *peer, struct rgate_failure *failure);

struct rgate_op_stats {
	size_t sz;
	uint64_t posted;
	uint64_t bytes;
	uint64_t failed;
	uint64_t stalled;	/* times that it was refused by -EAGAIN */
	uint64_t measured;	/* latencies below, post to completion: of what has a ticket;
				 * the first 1024 all, then one in 8 */
	uint64_t min_ns;
	uint64_t p50_ns;
	uint64_t p90_ns;
	uint64_t p99_ns;
	uint64_t p999_ns;
	uint64_t max_ns;
};

/* rgate_peer_stats - since the peer was opened; @stats->sz is set by the caller. Percentiles
 * are at most 3.2 % too high. -EINVAL: no such kind */
RGATE_API int rgate_peer_stats(struct rgate_peer *peer, enum rgate_op_kind kind,
			       struct rgate_op_stats *stats);

/* "write", "fetch-add", ... */
RGATE_API const char *rgate_op_name(uint32_t kind);

#ifdef __cplusplus
}
#endif
#endif
