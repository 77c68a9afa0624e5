/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Messages to one peer that nobody waits for: they are copied, go out in their order as
 * soon as the connection has room for them, and are forgotten when it ends.
 */
#ifndef RGATE_CLUSTER_OUTBOX_H
#define RGATE_CLUSTER_OUTBOX_H

#include <pthread.h>

#include <ringgate/rgate_hub.h>

#include "xfer.h"

#define OUTBOX_QUEUE	256	/* messages, power of two */
#define OUTBOX_SLOTS	8U	/* of these, handed to the device; power of two */

struct outbox_msg {
	uint32_t len;
	unsigned char data[RGATE_HUB_MSG_MAX];
};

struct outbox {
	pthread_mutex_t lock;
	struct rgate_pool *pool;
	const struct rgate_buf *mem;	/* OUTBOX_SLOTS messages */
	struct outbox_msg *queue;
	struct xfer_list xfers;
	struct outbox_slot {
		struct xfer xfer;
		struct outbox *box;
	} slots[OUTBOX_SLOTS];
	uint32_t epoch;			/* of the connection that they go to; 0: none */
	uint32_t in, posted, done;
};

int outbox_init(struct outbox *box, struct rgate_node *node, struct rgate_peer *peer);
/* The peer must be closed: then nothing reads the memory any more. */
void outbox_fini(struct outbox *box);

/* Another connection, or none (0): what was for the one before is dropped. */
void outbox_reset(struct outbox *box, uint32_t epoch);

/* 0; -ENOTCONN; -EMSGSIZE; -EAGAIN: too many wait already */
int outbox_send(struct outbox *box, const void *msg, size_t len);

/* Sends what can be sent; true: something still waits for room */
bool outbox_pump(struct outbox *box);

#endif
