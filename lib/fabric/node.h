/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A node and its peers, as the node's thread and the callers share them. The node's
 * lock is taken before a peer's. The thread only tries to take a peer's lock: who holds
 * it may be waiting for this thread.
 */
#ifndef RGATE_FABRIC_NODE_H
#define RGATE_FABRIC_NODE_H

#include <pthread.h>

#include "events.h"
#include "link.h"
#include "node_ref.h"
#include "secret.h"

#define RGATE_PAST	64	/* ended connections whose tickets are known */
#define RGATE_SUSPECTS	64	/* who asked in vain, and are known for a while */

struct rgate_suspect {
	uint64_t source;		/* of the provider */
	uint64_t until_ns;
};

struct rgate_node {
	const struct rgate_cluster *cluster;
	const struct rgate_prov_ops *prov;
	struct rgate_ep *ep;
	struct rgate_device *dev;	/* NULL: none is needed; owned by the endpoint */
	struct rgate_pool *pool;
	struct rgate_pool *stage;
	struct rgate_pool *readable;	/* NULL: nobody has asked for it; with the lock */
	struct rgate_pool_opts readable_opts;
	struct rgate_cluster_node self;
	uint64_t incarnation;
	uint64_t timeout_ns;
	uint64_t spin_ns;
	uint32_t msg_size;
	uint32_t msg_depth;
	uint32_t send_depth;
	struct rgate_secret *secret;

	pthread_t thread;
	struct events ev;		/* woken: look at the peers now */
	bool stop;			/* atomic */

	pthread_mutex_t lock;
	struct rgate_peer *peers;
	struct rgate_link *incoming;	/* handshakes with those who connected */
	int broken;			/* -errno: why the endpoint has failed; 0 */
	bool busy;			/* more events wait than one turn takes */
	struct rgate_suspect suspects[RGATE_SUSPECTS];
	uint32_t next_suspect;
	uint32_t shares;		/* atomic */
	uint32_t users;			/* atomic: who made it, its peers, shares and hubs */
	struct rgate_node_stats stats;	/* atomic words */
	uint64_t refused_told_ns;	/* when the log heard of one last */
	uint64_t refused_more;		/* and those since */
};

struct rgate_past {
	uint32_t epoch;			/* 0: none */
	int err;			/* of the first operation that was lost, */
	uint64_t failed;		/* this one; what came after it is cancelled */
	uint64_t done;
};

struct rgate_peer {
	struct rgate_node *node;
	struct rgate_peer *next;	/* under the node's lock */
	struct rgate_cluster_node to;

	/* of the node's thread */
	struct rgate_link *attempt;	/* to connect, in a handshake */
	uint64_t retry_ns;
	uint32_t backoff_ms;
	bool linked;			/* when it last looked */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct rgate_link *link;	/* up, or dead and not yet taken away */
	struct rgate_link *husk;	/* ended, with messages that nobody took yet */
	bool wanted;			/* atomic: by the thread, which did not get the lock */
	bool connecting;
	uint32_t epoch;
	int last_err;
	uint64_t up_ns;
	struct rgate_failure failure;
	struct rgate_past past[RGATE_PAST];
	struct rgate_op_count counts[RGATE_OP_KINDS];
	const struct rgate_buf *word;	/* atomic: for the answer of an atomic, unless in use */
	uint32_t inline_size;		/* atomic: of the provider */
	struct events ev;		/* the user's: the connection's, and what it is rung by */
	bool rung;			/* it was, and was not taken since; with the lock */
};

#define RGATE_EPOCH_SHIFT	48	/* a ticket: epoch of the connection, number */
#define RGATE_SEQ_MASK		((1ULL << RGATE_EPOCH_SHIFT) - 1)

static inline uint64_t rgate_ticket(const struct rgate_link *link, uint64_t seq)
{
	return (uint64_t)(link->epoch & 0xffff) << RGATE_EPOCH_SHIFT | seq;
}

/* The thread; started by rgate_node_create() */
void *rgate_node_main(void *node);
void rgate_node_wake(struct rgate_node *node);
/* -ENOENT, and says so */
int rgate_node_find(const struct rgate_cluster *cluster, uint32_t id,
		    struct rgate_cluster_node *node);
/* How a link of this node is made */
struct rgate_link_opts rgate_node_link_opts(const struct rgate_node *node,
					    struct rgate_peer *peer);

/* With both locks, or before anybody else knows the peer */
int rgate_peer_install(struct rgate_peer *peer, struct rgate_link *link);
/* With the peer's lock: heartbeat and credits, if it is time; or why the link has to end */
int rgate_node_beat(const struct rgate_node *node, struct rgate_link *link, uint64_t now);
/* With the peer's lock: takes a dead link away */
void rgate_peer_reap(struct rgate_peer *peer);
void rgate_peer_signal(struct rgate_peer *peer);
/* Makes the user's fd readable until it is armed again; with the lock */
void rgate_peer_ring(struct rgate_peer *peer);
/* With the peer's lock: what becomes of @failure if the link is dead */
/*
 * As rgate_peer_post(), as soon as there is room for them, of which RGATE_LINK_KEPT_BACK is never
 * theirs. -EAGAIN: there was none in time
 */
int rgate_peer_post_in_time(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			    int timeout_ms, uint64_t *ticket);
void rgate_peer_describe(const struct rgate_link *link, struct rgate_failure *failure);

#endif
