/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The local provider: processes of one machine. Connections, messages and notices are
 * packets over UNIX sockets (local.c); memory is mapped from the peer's memfds, and
 * operations are done by the CPU that posts them (local_ops.c, local_map.c).
 */
#ifndef RGATE_FABRIC_LOCAL_H
#define RGATE_FABRIC_LOCAL_H

#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "events.h"
#include "provider.h"

#define SHARE_BASE	0x10000U	/* rkeys below are regions of the pool, from 1 */
#define READABLE_BASE	RGATE_PROV_READABLE_KEY /* and from here on of the one that is only read */
#define PEER_MAPS	64U		/* regions of a peer that are mapped at most */
#define LOCAL_LATE_INLINE 64U		/* bytes that local_late.c copies at once */

enum local_packet_type {
	LOCAL_HELLO = 1,
	LOCAL_WELCOME,
	LOCAL_REJECT,
	LOCAL_UP,		/* with two sockets, see struct rgate_conn */
	LOCAL_MESSAGE,
	LOCAL_NOTICE,
};

struct local_packet {		/* then bytes; both ends are of this machine */
	uint32_t type;
	int32_t arg;		/* LOCAL_REJECT: error; LOCAL_NOTICE: imm */
};

struct local_question {
	uint32_t rkey;
	uint32_t reserved;
};

struct local_answer {		/* with the memfd unless err, and its bell if it has one */
	int32_t err;
	uint32_t access;
	uint64_t offset;	/* of the memory in the memfd */
	uint64_t len;
};

struct local_share {
	struct local_share *next;
	unsigned char *addr;
	size_t len;
	int fd;
	uint64_t fd_off;
	uint32_t access;
	uint32_t rkey;
	int bell;		/* -1: none */
};

struct rgate_ep {
	struct rgate_cluster_node self;
	struct rgate_ep_opts opts;
	pthread_mutex_t lock;	/* of the pools and the shares */
	const struct rgate_pool *pool[RGATE_PROV_POOLS];
	struct local_share *shares;
	uint32_t next_rkey;
	int listen_fd;		/* -1: takes no connections */
	uint64_t deaf_until;	/* not before this time, as descriptors ran out; or 0 */
	int lock_fd;		/* who holds this lock owns the socket's path */
	struct events ev;
	pthread_t server;
	struct events served;	/* woken: no more will come */
	unsigned int serving;	/* atomic: of struct local_serve */
	struct rgate_conn *strangers; /* connected, and have not said hello yet */
};

struct local_map {		/* memory of the peer, as it is mapped here */
	uint32_t rkey;
	uint32_t access;
	unsigned char *addr;
	size_t len;
	int bell;		/* -1: none */
};

struct local_recv {
	uint64_t id;
	void *addr;
	uint32_t len;
};

/* Where a peer asks for memory. Of the connection and of the thread, until both let go */
struct local_serve {
	struct rgate_ep *ep;
	int sock;
	unsigned int refs;	/* atomic */
	uint32_t allow;		/* atomic: enum rgate_access, 0: nothing yet */
};

struct rgate_conn {
	struct rgate_ep *ep;
	struct rgate_conn *next;	/* of the strangers */
	void *owner;
	int sock;		/* packets out, and in unless in_sock differs */
	int in_sock;
	struct local_serve *serve; /* the peer asks here for memory; NULL until it is up */
	int ask_sock;		/* we ask here */
	struct events ev;	/* in_sock; woken: completions */
	bool armed;
	bool rung;		/* it was woken, and that was not taken since */
	bool up;
	bool failed;		/* posts end in errors */
	bool flushing;		/* an operation failed: those behind it are not done */
	struct local_late *late; /* NULL: operations are done as they are posted */
	bool told;		/* RGATE_PROV_DOWN */
	uint32_t allow;		/* what the peer may do */

	struct local_recv *recv;	/* a ring of recv_depth */
	uint64_t recv_in, recv_out;	/* never wrap: no depth need be a power of two */
	struct rgate_prov_done *done;	/* a ring of done_depth */
	uint32_t done_depth;
	uint64_t done_in, done_out;
	struct local_map map[PEER_MAPS];
	uint32_t maps;
	uint32_t next_map;	/* to go when there is no room */
	bool asking;		/* the peer is asked for memory, and has not answered: */
	uint32_t asked;		/* its rkey */
};

/*
 * Counters of entries, whose place is the counter modulo a depth that need be no power of two. One
 * of 32 bits would come to 0 after hours of traffic, and its next place would be the wrong one.
 */
#define LOCAL_COUNTS(type, in, out) \
	_Static_assert(sizeof((*(type *)0).in) == 8 && sizeof((*(type *)0).out) == 8, \
		       "never wrap: " #in ", " #out)

LOCAL_COUNTS(struct rgate_conn, recv_in, recv_out);
LOCAL_COUNTS(struct rgate_conn, done_in, done_out);

/* local_ops.c */
int local_post(struct rgate_conn *conn, const struct rgate_prov_work *work, unsigned int n);
/* One operation; 0, -EAGAIN: not begun; or how it failed. @first: of a post */
int local_perform(struct rgate_conn *conn, const struct rgate_op *op, bool first);
/* It ended in @err: its completion, if it has one, and the connection's end */
void local_performed(struct rgate_conn *conn, uint64_t id, bool signal, int err);
int local_poll(struct rgate_conn *conn, struct rgate_prov_done *done, unsigned int n);
int local_recv(struct rgate_conn *conn, uint64_t id, void *addr, uint32_t len, uint32_t lkey);
int local_arm(struct rgate_conn *conn);
/* 1: what the peer sent keeps its socket readable until it is taken */
int local_arm_recv(struct rgate_conn *conn);
/* No more operations; the peer is told */
void local_fail(struct rgate_conn *conn);

/* local_late.c: RGATE_LOCAL_LATE, 0 without. From when the connection is up to its end;
 * what posts and polls has the lock, which there is none of otherwise */
unsigned long local_late_us(void);
int local_late_begin(struct rgate_conn *conn);
void local_late_end(struct rgate_conn *conn);
int local_late_post(struct rgate_conn *conn, const struct rgate_prov_work *work, unsigned int n);
void local_lock(struct rgate_conn *conn);
void local_unlock(struct rgate_conn *conn);

struct local_place {
	unsigned char *at;
	int bell;		/* of the memory that it is in, the map's; -1: none */
};

/*
 * local_map.c: where @len bytes at @remote of the peer's memory @rkey are here.
 * -EREMOTEIO: not there, or not allowed. Asks the peer the first time, and waits for
 * it: -ETIMEDOUT, -ECONNRESET; or does not, unless @wait: -EAGAIN
 */
int local_reach(struct rgate_conn *conn, uint32_t rkey, uint64_t remote, uint64_t len,
		uint32_t access, bool wait, struct local_place *place);
/* What @rkey stands for at this end, and where it is here; -ENOENT. @fds: unless NULL,
 * descriptors of it and of its bell, or -1, the caller's to close */
int local_describe(struct rgate_ep *ep, uint32_t rkey, struct local_answer *a,
		   unsigned char **addr, int fds[2]);
void local_unmap_all(struct rgate_conn *conn);
int local_share_add(struct rgate_ep *ep, void *addr, size_t len, int fd, uint64_t fd_off,
		    uint32_t access, struct rgate_prov_share *share);
void local_share_del(struct rgate_ep *ep, struct rgate_prov_share *share);
int local_share_bell(struct rgate_ep *ep, struct rgate_prov_share *share, int fd);

/* local_serve.c; -errno. The socket is taken over, also where it fails */
int local_server_start(struct rgate_ep *ep);
void local_server_stop(struct rgate_ep *ep);
int local_serve_begin(struct rgate_conn *conn, int sock);
void local_serve_end(struct rgate_conn *conn);

/* local_packet.c: one packet with up to two descriptors; 0 or -errno (-EAGAIN: no room) */
int local_send(int sock, const struct local_packet *p, const struct iovec *iov, unsigned int n,
	       const int *fds, unsigned int nfds);
/* 0, or -ETIMEDOUT: none of @events (poll(2)) within @timeout_ms */
int local_wait(int fd, short events, uint32_t timeout_ms);

#endif
