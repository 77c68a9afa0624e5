/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * One connection of a peer, from the first hello to its end: what is outstanding, the
 * credits, messages that came. A peer makes a new one each time.
 *
 * Each end has a line of memory that the other writes into: a heartbeat, and how many
 * receives it has posted anew (so the credits cost no message). Heartbeats stand in line
 * behind what the user has posted, for seconds where that is much and the wire slow. So
 * when they are late the other end's own count is read. Until it is installed
 * as its peer's link it belongs to the node's thread; afterwards it is under the peer's
 * lock.
 */
#ifndef RGATE_FABRIC_LINK_H
#define RGATE_FABRIC_LINK_H

#include "handshake.h"
#include "hist.h"
#include "provider.h"

struct rgate_peer;

enum rgate_link_state {
	RGATE_LINK_HELLO,	/* client: waits for a welcome; server: sent one */
	RGATE_LINK_PROOF,	/* server: waits for the proof; client: for ready */
	RGATE_LINK_READY,	/* both have proved who they are: to be installed */
	RGATE_LINK_UP,
	RGATE_LINK_DEAD,
};

/* Counts of operations of one kind, in the peer */
struct rgate_op_count {
	uint64_t posted;
	uint64_t bytes;
	uint64_t failed;
	uint64_t stalled;
	uint64_t waited;	/* that may be measured */
	struct rgate_hist hist;
};

struct rgate_link_opts {
	const struct rgate_prov_ops *prov;
	struct rgate_pool *pool;	/* that peers write */
	struct rgate_pool *stage;	/* that no peer can */
	struct rgate_op_count *counts;	/* RGATE_OP_KINDS of them */
	uint32_t msg_size;
	uint32_t msg_depth;
	uint32_t send_depth;
};

struct rgate_record {		/* of an operation outstanding */
	uint64_t begun_ns;	/* 0: not measured */
	uint8_t kind;
	bool internal;		/* of this library: in no count */
};

struct rgate_inbox {
	uint32_t slot;
	uint32_t len;
	uint32_t imm;
	bool has_imm;
};

#define RGATE_LINK_HS	120	/* bytes of a message of the handshake at most */

struct rgate_line {		/* in registered memory */
	/* written by the peer */
	uint64_t beat;
	uint64_t credit;	/* receives posted anew since the beginning */
	/* read by the peer: the same as my_beat */
	uint64_t pulse;
	uint64_t reserved[5];
	/* written here, sent from here */
	uint64_t my_beat;
	uint64_t my_credit;
	uint64_t header;	/* of a message of the user */
	uint64_t junk;		/* what a flush reads */
	uint64_t peer_pulse;	/* as it was read */
	uint64_t reserved2[3];
	uint64_t hs_header;
	uint8_t hs[RGATE_LINK_HS];
};

struct rgate_link {
	struct rgate_link_opts o;
	struct rgate_conn *conn;
	struct rgate_link *next;	/* of those in a handshake */
	struct rgate_peer *peer;	/* NULL: server, not yet known to be open */
	enum rgate_link_state state;
	bool client;
	bool down;			/* the provider said so, to be dealt with */
	int down_err;
	uint32_t epoch;
	uint64_t deadline_ns;		/* of the handshake */
	struct rgate_hs hs;
	uint64_t incarnation;		/* of the peer */

	const struct rgate_buf *mem;	/* line, message of the handshake */
	const struct rgate_buf *box;	/* receives: what one peer says no other can change */
	struct rgate_line *line;
	struct rgate_remote peer_line;

	struct rgate_record *records;	/* a ring of send_depth, rounded up */
	uint64_t mask;
	uint64_t posted;
	uint64_t done;
	uint64_t signalled;		/* last one with a signal */

	bool spoke;			/* the message of the handshake was sent */
	uint32_t peer_size;		/* of messages that the peer takes */
	uint32_t peer_depth;
	uint64_t sent;			/* that took a credit */
	uint8_t *slots;			/* receives */
	struct rgate_inbox *inbox;	/* a ring of msg_depth */
	uint64_t in, out;
	uint64_t arrived;
	uint64_t arrived_seen;		/* when the beat looked last */
	uint64_t reposted;
	uint64_t told;			/* of these, told to the peer */

	uint64_t beat_ns;		/* when the last one was sent */
	uint64_t beat_seen;
	uint64_t beat_seq;		/* of the last one */
	uint64_t moved;			/* done, when it was seen to change last */
	uint64_t moved_ns;
	bool held;			/* for too long ago: nothing is posted until it does */
	uint64_t heard_ns;
	uint64_t pulse_seq;		/* of the question for it; 0: none is open */
	uint64_t pulse_seen;
	bool late;			/* asked, or to be asked, and no answer yet */
	uint64_t done_seen;		/* of the own operations, while that is so */
	uint64_t done_ns;		/* and when there were more; 0: not yet */

	int err;			/* why it is dead */
	int op_err;			/* of the first operation lost */
	uint64_t failed_seq;		/* which is this one, of the user; 0: none */
	uint32_t failed_kind;
	uint32_t outcome;
};

/* A place in the inbox is the counter modulo msg_depth, which need be no power of two: 32 bits
 * would wrap after hours of messages, and the next place be the wrong one.
 */
_Static_assert(sizeof(((struct rgate_link *)0)->in) == 8 &&
	       sizeof(((struct rgate_link *)0)->out) == 8, "never wrap: in, out");

/* A link without a connection yet. -ENOBUFS: the pool is exhausted */
int rgate_link_create(struct rgate_link **link, const struct rgate_link_opts *opts);
/* Ends the connection too */
void rgate_link_destroy(struct rgate_link *link);
/* The connection ends, messages that came stay */
void rgate_link_disconnect(struct rgate_link *link);

/* Queues and receives, once there is a connection; what the peer may write */
int rgate_link_prepare(struct rgate_link *link);
int rgate_link_my_line(const struct rgate_link *link, struct rgate_desc *desc);
/* @size, @depth: of messages that the peer takes; -EPROTO */
int rgate_link_set_peer(struct rgate_link *link, uint32_t size, uint32_t depth,
			uint64_t incarnation);

#define RGATE_LINK_KEPT_BACK	8U	/* operations, for beats and credits */

/*
 * Begins operations. @internal: may use what is kept back for beats and credits, and is
 * not counted. @seq: out, number of the last one; NULL: nobody waits for it. Errors as
 * rgate_peer_post().
 */
int rgate_link_post(struct rgate_link *link, const struct rgate_op *ops, unsigned int n,
		    bool internal, uint64_t *seq);

/* Takes completions: how many, or the error that the link died of */
int rgate_link_progress(struct rgate_link *link);
/* The link is no more; what is outstanding ends in an error. Only the first time counts. */
void rgate_link_fail(struct rgate_link *link, int err);

/* Credits left for messages */
uint32_t rgate_link_credits(const struct rgate_link *link);
/* Tells the peer how many receives were posted anew, if it does not know */
int rgate_link_tell_credit(struct rgate_link *link);
/* Sends a heartbeat if it is time, and asks for the peer's if it is late; -ETIMEDOUT: the
 * peer was silent for too long */
int rgate_link_beat(struct rgate_link *link, uint64_t now, uint64_t interval_ns,
		    uint64_t timeout_ns);

/*
 * Messages begin with a header of 8 bytes, little-endian: type, and zeros. During the
 * handshake one is sent and awaited; later ones of the user only.
 */
#define RGATE_MSG_HEADER	8
enum rgate_msg_type {
	RGATE_MSG_PROOF = 1,	/* struct rgate_hs_proof */
	RGATE_MSG_READY = 2,	/* struct rgate_hs_ready */
	RGATE_MSG_USER = 3,
};

/* -EALREADY: one was sent */
int rgate_link_send_handshake(struct rgate_link *link, enum rgate_msg_type type,
			      const void *data, size_t len);
/* The next message that came, without header, or NULL; rgate_link_drop_message() after,
 * which gives the receive back and tells the peer now and then */
const void *rgate_link_message(struct rgate_link *link, uint32_t *type,
			       const struct rgate_inbox **at);
void rgate_link_drop_message(struct rgate_link *link);

#endif
