/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A process in a cluster: its device, its memory that others reach, and the thread
 * that makes connections, keeps them alive and makes them anew.
 *
 * All functions are thread-safe, what ends the node excepted: rgate_node_destroy(), or the close
 * of the last of its peers, shares and hubs after it. Not to be used in a child of fork(2).
 */
#ifndef RINGGATE_RGATE_NODE_H
#define RINGGATE_RGATE_NODE_H

#include <ringgate/rgate_cluster.h>
#include <ringgate/rgate_pool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_node;
struct rgate_share;

struct rgate_node_opts {
	size_t sz;
	const char *device;	/* RDMA device; NULL: the one with the node's address */
	const struct rgate_pool_opts *pool; /* NULL: its defaults, with all remote access */
	const uint8_t *key;	/* private, RGATE_KEY_LEN bytes; NULL: read from the node's file */
	uint32_t timeout_ms;	/* a peer silent for so long is dead; 0: the cluster's */
	uint32_t msg_size;	/* bytes of a message at most; 0: 1024, 64 to 65536 */
	uint32_t msg_depth;	/* messages a peer may have under way; 0: 128, 4 to 4096 */
	uint32_t send_depth;	/* operations outstanding to a peer; 0: 128, 16 to 16384 */
	uint32_t flags;		/* RGATE_NODE_* */
	uint32_t spin_us;	/* a waiting call looks for so long, then sleeps; 0: 30, 1 to
				 * 1000000 */
	const struct rgate_pool_opts *stage; /* NULL: regions of 8 MiB, 256 MiB at most; its
					      * access must be 0 */
	/* For rgate_node_readable(); NULL: as the stage. Its access must be
	 * RGATE_ACCESS_REMOTE_READ; its name must stay as long as the node */
	const struct rgate_pool_opts *readable;
};

enum rgate_node_flags {
	RGATE_NODE_NO_LISTEN = 1U << 0,	/* takes no connections (a tool, not a daemon) */
};

/*
 * rgate_node_create - become node @id of @cluster
 * @cluster: must stay as long as the node, its peers, shares and hubs
 * @opts: NULL for the defaults
 * Opens device and pool, listens, and starts a thread, which blocks all signals (and with
 * RGATE_PROVIDER_LOCAL one that answers where memory is). The key is copied.
 * -ENOENT: the cluster has no such node, or there is no key; -EADDRINUSE: somebody is that
 * node already; -EACCES: the key is not that of this node, or its file readable by others;
 * -EINVAL: an option is out of its range, the stage or what is readable is to have other
 * access, or the file has no key; and as rgate_device_open(), rgate_pool_create().
 */
RGATE_API int rgate_node_create(struct rgate_node **node, const struct rgate_cluster *cluster,
				uint32_t id, const struct rgate_node_opts *opts);

/*
 * rgate_node_destroy - the node is nobody's any more; NULL is allowed
 * Peers, shares and hubs that are open go on, and the node with them, as it was: it ends with the
 * last of them, and the log says that there are some. Its pools go as rgate_pool_destroy() says:
 * buffers that are held stay until they are released. rgate_node_stats() tells all that before.
 */
RGATE_API void rgate_node_destroy(struct rgate_node *node);

RGATE_API uint32_t rgate_node_id(const struct rgate_node *node);
RGATE_API const struct rgate_cluster *rgate_node_cluster(const struct rgate_node *node);
/* Buffers that peers may be given descriptors of; owned by the node */
RGATE_API struct rgate_pool *rgate_node_pool(const struct rgate_node *node);
/*
 * rgate_node_stage - buffers that the own device reads and writes, and no peer can
 * What peers send is received there, too.
 * Sources and answers of operations belong here: a buffer of rgate_node_pool() lies in one
 * region with all others of it, and a peer that was given a descriptor of one of them can
 * write to every one. rgate_buf_desc() refuses these with -EACCES. Owned by the node.
 */
RGATE_API struct rgate_pool *rgate_node_stage(const struct rgate_node *node);
/*
 * rgate_node_readable - buffers that peers can read, and no peer can write
 * @pool: out; owned by the node
 * What is lent for reading belongs here: a request that another node fetches stays what it was
 * when it was made, whatever a third one has descriptors of. The first call makes the pool.
 * As rgate_pool_create().
 */
RGATE_API int rgate_node_readable(struct rgate_node *node, struct rgate_pool **pool);
/* NULL: the provider needs none; owned by the node */
RGATE_API struct rgate_device *rgate_node_device(const struct rgate_node *node);
/* Different each time a node is made: what the last one of that id shared is gone */
RGATE_API uint64_t rgate_node_incarnation(const struct rgate_node *node);

struct rgate_node_stats {
	size_t sz;
	uint64_t accepted;	/* connections from peers that proved to be these nodes */
	uint64_t bad_key;	/* connections that ended without that proof, or from elsewhere */
	uint64_t garbage;	/* connections refused: malformed, wrong version or id */
	uint64_t timeouts;	/* connections that did not get ready in time, or gave way
				 * to a newer one of the same node */
	/* What is in use now, also after an error */
	uint64_t buffers;	/* held of its pools, by the library for its connections too */
	uint32_t peers;		/* open */
	uint32_t shares;
	int32_t error;		/* -errno: the device is gone, or the endpoint has failed, and no
				 * connection comes up any more; 0 */
	uint32_t reserved;	/* 0 */
};

/* @stats->sz is set by the caller */
RGATE_API int rgate_node_stats(const struct rgate_node *node, struct rgate_node_stats *stats);

/*
 * rgate_share_create - memory outside of the pool that peers may reach
 * @addr, @len: mapped in this process as long as it is shared
 * @fd: what is mapped there, from offset @fd_off on: a memfd. -1 where there is none
 *	(-EOPNOTSUPP with RGATE_PROVIDER_LOCAL, which maps it into the peers that may
 *	reach it)
 * @access: enum rgate_access; without a remote one it is for rgate_sge only
 * Memory and descriptor stay the caller's; the descriptor may be closed. -EINVAL: no memory,
 * unknown access, or (local) no memfd that cannot shrink, mapped from a whole page on; and
 * as rgate_mem_register().
 */
RGATE_API int rgate_share_create(struct rgate_share **share, struct rgate_node *node,
				 void *addr, size_t len, int fd, uint64_t fd_off,
				 uint32_t access);
/* rgate_share_destroy - no peer may reach it any more, but for those of the local provider that
 * have it mapped: until their connection ends; and as rgate_mem_deregister(). NULL is allowed. */
RGATE_API void rgate_share_destroy(struct rgate_share *share);
/*
 * rgate_share_bell - writes of peers to this memory with RGATE_OP_BELL wake who waits for @fd
 * @fd: an eventfd with EFD_NONBLOCK; stays the caller's, and may be closed. Each such write adds
 * 1 to it, once it is placed; nobody need read it (EPOLLET). Peers get a descriptor of it.
 * Once, before the first descriptor of the memory is given away. Without a bell, or where a peer
 * could not take it, such a write is a write: who must learn of it sends a notice as well.
 * -EOPNOTSUPP: only processes of one machine have bells (RGATE_PROVIDER_LOCAL); -EINVAL: it
 * has one, or no peer may reach the memory; -EMFILE
 */
RGATE_API int rgate_share_bell(struct rgate_share *share, int fd);
/* rgate_node_bells - whether rgate_share_bell() can be had */
RGATE_API bool rgate_node_bells(const struct rgate_node *node);
/* For rgate_sge.lkey */
RGATE_API uint32_t rgate_share_lkey(const struct rgate_share *share);
/* rgate_share_desc - a descriptor of @len bytes from @offset on, for peers. -EACCES: no remote
 * access was asked for; -ERANGE: not inside of it */
RGATE_API int rgate_share_desc(const struct rgate_share *share, size_t offset, size_t len,
			       struct rgate_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
