/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What carries bytes between two nodes. A provider makes connections between
 * endpoints and moves memory over them; everything that is the same for all of them
 * (who connects, the proof of who it is, credits, tickets, heartbeats, making a connection
 * anew) is above, in peer.c. Documentation/fabric.rst tells how to write another one;
 * tests/fabric/test_provider*.c are the suite that it has to pass.
 *
 * Connections are made in three steps, so that both can prove who they are on the way:
 *
 *	connect(hello)  ->  RGATE_PROV_REQUEST at the other end
 *	RGATE_PROV_REPLY  <-  accept(welcome), or reject()
 *	establish()  ->  RGATE_PROV_UP at the other end
 *
 * From RGATE_PROV_UP, or establish(), on messages flow. Until allow() the peer can
 * reach no memory. A connection that failed gives RGATE_PROV_DOWN; completions of what
 * was outstanding can be polled until it is destroyed.
 *
 * Functions of the endpoint, and connect() to destroy() of its connections, are called
 * by one thread at a time (the node's); post(), recv(), poll() and arm() of one
 * connection by one thread at a time (under the peer's lock), which may be another
 * one; destroy() while nobody is in the others. None of them blocks, except as said.
 */
#ifndef RGATE_FABRIC_PROVIDER_H
#define RGATE_FABRIC_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ringgate/rgate_peer.h>

#define RGATE_PROV_HELLO	56	/* what rdma_cm has room for */
#define RGATE_PROV_WELCOME	128

struct rgate_ep;	/* a node's end, of the provider */
struct rgate_conn;

struct rgate_ep_opts {
	const struct rgate_cluster_node *self;
	const char *device;		/* RDMA device or NULL */
	bool listen;
	uint32_t send_depth;		/* operations outstanding on a connection */
	uint32_t recv_depth;		/* receives posted on a connection */
	uint32_t timeout_ms;		/* without an answer from the peer's device */
};

enum rgate_prov_event_kind {
	RGATE_PROV_REQUEST,		/* conn is new: accept() or reject() it */
	RGATE_PROV_REPLY,		/* to connect(): establish() or destroy() it */
	RGATE_PROV_UP,			/* of an accepted one */
	RGATE_PROV_DOWN,		/* failed or closed by the peer; err tells */
};

struct rgate_prov_event {
	enum rgate_prov_event_kind kind;
	struct rgate_conn *conn;
	int err;			/* RGATE_PROV_DOWN: -ECONNREFUSED (nobody there, or
					 * reject() with err 0), -EACCES (reject(-EACCES)),
					 * -ETIMEDOUT, -ECONNRESET (closed), ... */
	size_t len;			/* of data: at least what was given, maybe more */
	uint8_t data[196];		/* hello or welcome */
};

struct rgate_prov_work {
	const struct rgate_op *op;	/* any kind but RGATE_OP_FLUSH */
	uint64_t id;
	bool signal;			/* wants a completion though it succeeds */
};

static inline uint64_t rgate_op_bytes(const struct rgate_op *op)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < op->nsge; i++)
		sum += op->sge[i].length;
	return sum;
}

enum rgate_prov_done_kind {
	RGATE_PROV_SENT,		/* an operation of post() */
	RGATE_PROV_RECV,		/* a message into a buffer of recv() */
	RGATE_PROV_RECV_IMM,		/* a notice; a buffer was used up nonetheless */
};

struct rgate_prov_done {
	enum rgate_prov_done_kind kind;
	int status;			/* 0; -EREMOTEIO: refused at the other end, without
					 * effect; -ETIMEDOUT, -ECANCELED (flushed), -EPERM
					 * (local memory), -EIO */
	uint64_t id;
	uint32_t len;			/* RGATE_PROV_RECV */
	uint32_t imm;			/* RGATE_PROV_RECV_IMM */
};

enum rgate_prov_pool {
	RGATE_PROV_POOL,		/* of the node */
	RGATE_PROV_READABLE,		/* that peers can only read */
	RGATE_PROV_POOLS,
};

#define RGATE_PROV_READABLE_KEY	0x80000000U /* without a device: of its first region */

struct rgate_prov_share {		/* memory that was made known */
	uint32_t lkey;
	uint32_t rkey;
	uint64_t addr;			/* of its first byte, for peers */
	void *priv;
};

struct rgate_prov_ops {
	const char *name;

	int (*open)(struct rgate_ep **ep, const struct rgate_ep_opts *opts);
	void (*close)(struct rgate_ep *ep);
	/* NULL: the provider needs no device */
	struct rgate_device *(*device)(struct rgate_ep *ep);
	/* A pool whose regions peers may reach, as its access says, by their keys; NULL: it is
	 * about to be destroyed, after the last connection. Thread-safe */
	int (*use_pool)(struct rgate_ep *ep, enum rgate_prov_pool which,
			const struct rgate_pool *pool);
	int (*share)(struct rgate_ep *ep, void *addr, size_t len, int fd, uint64_t fd_off,
		     uint32_t access, struct rgate_prov_share *share);
	void (*unshare)(struct rgate_ep *ep, struct rgate_prov_share *share);
	/* Operations with RGATE_OP_BELL to what was shared add to @fd; NULL: they do not */
	int (*bell)(struct rgate_ep *ep, struct rgate_prov_share *share, int fd);
	/* An epoll or other descriptor that is readable when event() has something */
	int (*fd)(struct rgate_ep *ep);
	/* 1: an event; 0: none; -errno: the endpoint is broken (device gone) */
	int (*event)(struct rgate_ep *ep, struct rgate_prov_event *event);

	/* @owner comes back from conn_owner(). @len is RGATE_PROV_HELLO at most. -EAGAIN:
	 * too many ask there, soon again */
	int (*connect)(struct rgate_ep *ep, const struct rgate_cluster_node *to,
		       const void *hello, size_t len, void *owner, struct rgate_conn **conn);
	/* An end that is connected to itself, up at once */
	int (*loopback)(struct rgate_ep *ep, void *owner, struct rgate_conn **conn);
	/* Receives must have been posted before: see prepare() */
	int (*accept)(struct rgate_conn *conn, const void *welcome, size_t len, void *owner);
	void (*reject)(struct rgate_conn *conn, int err);	/* destroys it too */
	int (*establish)(struct rgate_conn *conn);
	/* Queues are there from now on: recv() works; before accept() and establish() */
	int (*prepare)(struct rgate_conn *conn);
	/* enum rgate_access: what the peer may do from now on */
	int (*allow)(struct rgate_conn *conn, uint32_t access);
	void *(*owner)(const struct rgate_conn *conn);
	/* Whether it comes from where @node is, as far as that can be told before any proof */
	bool (*is_from)(const struct rgate_conn *conn, const struct rgate_cluster_node *node);
	/* A number of who asks that he cannot choose, 0: not known; NULL: never known */
	uint64_t (*source)(const struct rgate_conn *conn);
	/* Where it comes from, in words, as far as that is known; for the log */
	void (*whence)(const struct rgate_conn *conn, char *text, size_t len);
	/* Tells the peer, as far as that can be done at once */
	void (*destroy)(struct rgate_conn *conn);

	/* 0, or -EAGAIN (full; nothing was begun), -ENOTCONN, -EIO. All or none unless
	 * the connection fails. Operations are done in order. */
	int (*post)(struct rgate_conn *conn, const struct rgate_prov_work *work,
		    unsigned int n);
	int (*recv)(struct rgate_conn *conn, uint64_t id, void *addr, uint32_t len,
		    uint32_t lkey);
	/* How many were put into @done; -errno: the connection is lost */
	int (*poll)(struct rgate_conn *conn, struct rgate_prov_done *done, unsigned int n);
	/* Readable after arm() when poll() has something */
	int (*conn_fd)(const struct rgate_conn *conn);
	/* 0; 1: look again, something came meanwhile */
	int (*arm)(struct rgate_conn *conn);
	/* As arm(); need not tell of operations that were done. 1: what came before is told, too */
	int (*arm_recv)(struct rgate_conn *conn);
	/* Bytes of a message or write that post() copies at once, unless it is fenced */
	uint32_t (*inline_size)(const struct rgate_conn *conn);
};

extern const struct rgate_prov_ops rgate_prov_verbs;
extern const struct rgate_prov_ops rgate_prov_local;

/* Of enum rgate_provider; NULL: there is none such */
const struct rgate_prov_ops *rgate_prov_find(uint32_t provider);

#endif
