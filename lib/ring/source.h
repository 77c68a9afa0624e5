/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The userspace receive thread, whatever its socket */
#ifndef RGATE_LIB_SOURCE_H
#define RGATE_LIB_SOURCE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

#include <ringgate/rgate_source.h>

#include "producer.h"

#define RGATE_SOURCE_BATCH	32U
#define RGATE_SOURCE_BATCH_MAX	256U
#define RGATE_SOURCE_NAME	32U	/* room for any address used here */
#define RGATE_SOURCE_CTL	64U	/* room for the control messages asked for */
#define RGATE_SOURCE_FRAME	(80U << 10) /* the longest message with headers */

struct rgate_source;

/* What differs between sockets */
struct rgate_source_ops {
	/*
	 * Message @m was received behind src->front bytes at @frame; @have bytes
	 * of the frame are there, front included. Writes the front, and sets what
	 * is known in @hdr, wire_len too. False: not a frame to deliver.
	 */
	bool (*describe)(struct rgate_source *src, const struct msghdr *m,
			 size_t msg_len, unsigned char *frame, size_t have,
			 struct rgate_slot *hdr);
	/* After a failed receive: 0 to go on, or what ends the source */
	int (*survive)(struct rgate_source *src, int err);
	/* Now and then while src->away, which it may clear: 0, or what ends the source */
	int (*look)(struct rgate_source *src);
};

/* All that one recvmmsg needs for message i */
struct rgate_source_msg {
	struct iovec iov[2];
	unsigned char name[RGATE_SOURCE_NAME] __attribute__((aligned(8)));
	unsigned char ctl[RGATE_SOURCE_CTL] __attribute__((aligned(8)));
};

struct rgate_source {
	const struct rgate_source_ops *ops;
	int sock;
	int event;		/* eventfd: stop, or a resize waits */
	bool driven;
	bool ended;		/* driven: no more of it */
	bool stop;		/* atomic */
	int err;		/* what ended the thread early */
	pthread_t thread;
	pthread_mutex_t lock;	/* of drops_* */
	uint32_t drops_seen;	/* the kernel's 32-bit count, last read */
	uint64_t drops;
	struct rgate_source_stats stats; /* atomic; written by the thread */

	unsigned int batch;
	size_t front;		/* bytes before the payload that are made here */
	size_t ctl_len;
	struct mmsghdr *vec;
	struct rgate_source_msg *msg;
	unsigned char *scratch;	/* batch x RGATE_SOURCE_FRAME */
	unsigned int nrings;
	struct rgate_producer *prod;

	struct sockaddr_storage bound; /* UDP */
	socklen_t bound_len;
	bool any;		/* UDP: bound to no one address */
	int ifindex;		/* packet: 0 all */
	bool away;		/* packet: the device is down */
};

/*
 * Starts the thread on a socket that is ready. Takes over @sock, also when it
 * fails. @src: from rgate_source_new(), freed when it fails.
 */
int rgate_source_start(struct rgate_source *src, int sock,
		       struct rgate_ring *const *rings, unsigned int nrings,
		       const struct rgate_source_opts *o);
struct rgate_source *rgate_source_new(const struct rgate_source_ops *ops);
void rgate_source_free(struct rgate_source *src);

/* Options checked; -EINVAL */
int rgate_source_opts_get(struct rgate_source_opts *o,
			  const struct rgate_source_opts *opts);
/* 1 to RGATE_ATT_RINGS_MAX memfd rings of this process, each once; -EOPNOTSUPP
 * otherwise, and for RGATE_POLICY_PASS where @no_pass */
int rgate_source_check_rings(struct rgate_ring *const *rings, unsigned int nrings,
			     bool no_pass);
/* SO_RCVBUF and SO_BUSY_POLL as asked for */
int rgate_source_set_sock(int sock, const struct rgate_source_opts *o);

/* The thread's body: until src->stop, or an error that it returns */
int rgate_source_loop(struct rgate_source *src);

/* The rings have no producer any more. @err: why, or 0 */
void rgate_source_end(struct rgate_source *src, int err);

#endif
