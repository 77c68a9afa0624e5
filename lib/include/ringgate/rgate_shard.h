/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Tasks in the memory of one node, the home, that other nodes claim, do and complete by operations
 * of the fabric: no daemon and no thread of the home is in the way. For programs that are nodes;
 * others have queues (rgate_queue.h).
 *
 * A shard has places for a number of tasks. Each is a word, which changes by compare-and-swap
 * alone: empty, ready, claimed by a node, done. Whoever submits has places of his own, and takes
 * the results of what he submitted there. A task is done at least once, and its result taken
 * once: of several who do it the first to complete it counts.
 *
 * The home lets each node in, and again after each loss of the connection, which ends all that
 * the node had claimed over it: so the home calls rgate_shard_step() now and then, every 10 ms
 * say. Claims, completions and results do not wait for that.
 *
 * All functions are thread-safe but those that end it; there is a lock that is held while
 * the fabric is waited for: who wants more under way claims more at once. None waits longer than
 * the shard's timeout_ms for each of the few posts that it makes; what is late by then has ended
 * the connection. A result is visible, and so is a task, to who was given it.
 *
 * What is trusted: a peer can write any word, task and result of the shard, so it can lose, forge
 * or repeat tasks of all who use it, claim all of them, and have others' claims ended. It cannot
 * make the library read or write outside of the shard and the caller's buffers, loop without end,
 * or take two results for one task.
 */
#ifndef RINGGATE_RGATE_SHARD_H
#define RINGGATE_RGATE_SHARD_H

#include <ringgate/rgate_peer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_shard;

#define RGATE_SHARD_TASKS_MAX	65536U
#define RGATE_SHARD_BYTES_MAX	65536U	/* of a task, and of a result */
#define RGATE_SHARD_MANY	32U	/* tasks in one call */

struct rgate_shard_opts {
	size_t sz;
	uint32_t tasks;		/* places, a power of two, 64 to 65536; 0: 1024. As the other
				 * sizes for the home only */
	uint32_t payload_size;	/* bytes of a task at most; 0: 48 */
	uint32_t result_size;	/* bytes of a result at most; 0: 48 */
	uint32_t submitters;	/* bit N: node N submits; each has as many places. 0: the home */
	uint32_t timeout_ms;	/* a post that takes so long has failed; 0: 5000 */
};

/*
 * rgate_shard_create - a shard that has its home here
 * @self: the node's own peer, rgate_peer_open() with its own id: the home changes words by the
 *	device, too. It stays open as long as the shard; if its connection fails, the shard is over
 * The memory is shared on its own, and is zeroed: for each task a word, its bytes and 16 more, and
 * for each node of the cluster its result's and 16 more, in whole cache lines.
 * -EINVAL: sizes, a submitter that the cluster does not have, not the own peer; as
 * rgate_share_create().
 */
RGATE_API int rgate_shard_create(struct rgate_shard **shard, struct rgate_peer *self,
				 const struct rgate_shard_opts *opts);

/* rgate_shard_desc - for the peers that are to open it. -EPERM: the home is not here */
RGATE_API int rgate_shard_desc(const struct rgate_shard *shard, struct rgate_desc *desc);

/*
 * rgate_shard_admit - the node of @peer may claim
 * @peer: of the same node as the home's; stays open as long as the shard
 * -EEXIST; -EPERM: the home is not here; -EINVAL
 */
RGATE_API int rgate_shard_admit(struct rgate_shard *shard, struct rgate_peer *peer);

/*
 * rgate_shard_step - lets nodes in, and makes ready what was claimed by who is gone
 * Looks at all words when a node has gone, else at 4096 of them.
 * Return: tasks that were made ready; -EPERM: the home is not here; as rgate_peer_post().
 */
RGATE_API int rgate_shard_step(struct rgate_shard *shard);

/*
 * rgate_shard_open - a shard whose home is the node of @peer
 * @peer: stays open as long as the shard
 * @desc: of the home, and checked
 * A node opens a shard once at a time: of two that it has open each would end the other's claims.
 * -EPROTO: no shard, or a geometry that is malformed, or larger than @desc says;
 * -EPROTONOSUPPORT: of another version; -EINVAL; as rgate_peer_read().
 */
RGATE_API int rgate_shard_open(struct rgate_shard **shard, struct rgate_peer *peer,
			       const struct rgate_desc *desc, const struct rgate_shard_opts *opts);

/* rgate_shard_close - of who opened it; what is still claimed goes back, with an attempt lost.
 * NULL is allowed. No other thread may use it any more */
RGATE_API void rgate_shard_close(struct rgate_shard *shard);

/*
 * rgate_shard_destroy - of the home; NULL is allowed
 * Tasks and results that are in it are lost. A peer that posts to it afterwards is refused, and
 * over verbs loses its connection by that. No other thread may use it any more.
 */
RGATE_API void rgate_shard_destroy(struct rgate_shard *shard);

struct rgate_shard_task {
	const void *data;
	uint32_t len;
	uint32_t reserved;	/* 0 */
	uint64_t cookie;	/* comes back with the result */
};

/*
 * rgate_shard_submit - up to RGATE_SHARD_MANY tasks
 * @ids: out, of those that were submitted; may be NULL
 * One post; each id comes back once by rgate_shard_take(). One that came with -ECANCELED may be
 * given again.
 * Return: how many, from the first on; fewer: there are no more places; 0: none is free.
 * -EPERM: this node is no submitter; -EMSGSIZE: longer than payload_size; -EINVAL; -ENOTCONN and
 * -EAGAIN: nothing was begun. Where the connection fails under way they count as submitted:
 * take tells of those that were not.
 */
RGATE_API int rgate_shard_submit(struct rgate_shard *shard, const struct rgate_shard_task *tasks,
				 unsigned int n, uint64_t *ids);

struct rgate_shard_claim {	/* to be read only */
	uint64_t id;
	uint64_t word;		/* the claim */
	uint64_t cookie;
	void *data;		/* in the caller's buffer */
	uint32_t len;
	uint32_t attempt;	/* claims of this task that were lost; 255: or more */
	uint64_t reserved;	/* 0 */
};

/*
 * rgate_shard_claim - up to @n tasks (RGATE_SHARD_MANY) that are ready
 * @buf: for n x payload_size bytes
 * One post mostly, of as many compare-and-swaps and reads; where all that is known to be ready was
 * tried, another one to read 512 words. Where it begins is left to chance: no order, and no promise
 * that a task which became ready just now is found.
 * Return: how many; 0: none was found. -EAGAIN: the home has not let this node in yet, call again;
 * -ENOTCONN, or the connection's error: nothing is claimed, what may have been goes back.
 */
RGATE_API int rgate_shard_claim(struct rgate_shard *shard, struct rgate_shard_claim *claims,
				unsigned int n, void *buf);

struct rgate_shard_result {
	const struct rgate_shard_claim *claim;
	const void *data;
	uint32_t len;
	int32_t status;		/* of the work, as the two sides agree */
	int32_t err;		/* out: 0; -ESTALE: it was not ours any more; or as returned */
	uint32_t reserved;	/* 0 */
};

/*
 * rgate_shard_complete - results of up to RGATE_SHARD_MANY claims; ends the claims
 * One post. Return: how many of them count; each one's err tells. -EMSGSIZE: longer than
 * result_size, nothing was done; -EAGAIN: nothing was done, the claims are still there; -ENOTCONN:
 * nothing was, and they go back; the connection's error: not known which count, the others go back.
 */
RGATE_API int rgate_shard_complete(struct rgate_shard *shard, struct rgate_shard_result *results,
				   unsigned int n);

/* rgate_shard_release - up to RGATE_SHARD_MANY claims go back, and no attempt is lost. How many
 * were ours; else as rgate_shard_complete() */
RGATE_API int rgate_shard_release(struct rgate_shard *shard, const struct rgate_shard_claim *claims,
				  unsigned int n);

enum rgate_shard_taken_flags {
	/* submitted by an earlier process of this node: there is no cookie */
	RGATE_SHARD_ADOPTED = 1U << 0,
};

struct rgate_shard_taken {
	uint64_t id;
	uint64_t cookie;
	void *data;		/* in the caller's buffer */
	uint32_t len;
	int32_t status;		/* of the worker; -EBADMSG: task or result was damaged;
				 * -ECANCELED: it was never submitted, the connection failed */
	uint32_t node;		/* that did it */
	uint32_t attempt;
	uint32_t flags;		/* enum rgate_shard_taken_flags */
	uint32_t reserved;
};

/*
 * rgate_shard_take - up to @n results (RGATE_SHARD_MANY) of what this node submitted
 * @buf: for n x result_size bytes
 * Looks at all places that have a task, and sets right what makes no sense there.
 * Return: how many; 0: none yet. -EPERM: this node is no submitter; -ENOTCONN, or the connection's
 * error: none is lost.
 */
RGATE_API int rgate_shard_take(struct rgate_shard *shard, struct rgate_shard_taken *taken,
			       unsigned int n, void *buf);

enum rgate_shard_state {
	RGATE_SHARD_IS_READY = 1,
	RGATE_SHARD_IS_CLAIMED,
	RGATE_SHARD_IS_DONE,
	RGATE_SHARD_IS_GONE,	/* its result was taken, or it was never submitted */
};

/* rgate_shard_look - reads back what became of a task: enum rgate_shard_state; or as
 * rgate_peer_read() */
RGATE_API int rgate_shard_look(struct rgate_shard *shard, uint64_t id);

struct rgate_shard_info {
	size_t sz;
	uint32_t tasks;
	uint32_t payload_size;
	uint32_t result_size;
	uint32_t home;		/* node */
	uint32_t places;	/* for this node to submit */
	uint32_t free;		/* of them */
	uint32_t held;		/* claims of this node that are open */
	uint32_t admitted;	/* at the home: bit N: node N may claim now */
	uint64_t bytes;		/* of the home's memory */
	uint64_t submitted;
	uint64_t claimed;
	uint64_t missed;	/* claims that somebody else was faster at */
	uint64_t completed;
	uint64_t stale;		/* completions and releases that did not count */
	uint64_t released;
	uint64_t taken;
	uint64_t returned;	/* at the home: made ready as their node was gone */
	uint64_t bad;		/* words, tasks and results that made no sense */
};

/* @info->sz is set by the caller */
RGATE_API int rgate_shard_info(struct rgate_shard *shard, struct rgate_shard_info *info);

#ifdef __cplusplus
}
#endif
#endif
