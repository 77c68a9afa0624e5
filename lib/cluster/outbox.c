// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "container.h"
#include "outbox.h"
#include "thread.h"

int outbox_init(struct outbox *box, struct rgate_node *node, struct rgate_peer *peer)
{
	unsigned int i;
	int err;

	memset(box, 0, sizeof(*box));
	box->queue = calloc(OUTBOX_QUEUE, sizeof(*box->queue));
	if (!box->queue)
		return -ENOMEM;
	box->pool = rgate_node_stage(node);
	err = rgate_pool_alloc(box->pool, (size_t)OUTBOX_SLOTS * RGATE_HUB_MSG_MAX, &box->mem);
	if (err) {
		free(box->queue);
		box->queue = NULL;
		return err;
	}
	xfer_list_init(&box->xfers, peer);
	for (i = 0; i < OUTBOX_SLOTS; i++)
		box->slots[i].box = box;
	rgate_mutex_init_brief(&box->lock);
	return 0;
}

void outbox_fini(struct outbox *box)
{
	if (!box->queue)
		return;
	xfer_ground(&box->xfers, -ENOTCONN);
	pthread_mutex_destroy(&box->lock);
	rgate_pool_free(box->pool, box->mem);
	free(box->queue);
	box->queue = NULL;
}

/* An error is an end, too: that of the connection. */
static void left(struct xfer *x, int err)
{
	(void)err;
	container_of(x, struct outbox_slot, xfer)->box->done++;
}

static int post(struct outbox *box)
{
	const struct outbox_msg *msg = &box->queue[box->posted % OUTBOX_QUEUE];
	const uint32_t slot = box->posted % OUTBOX_SLOTS;
	struct rgate_sge sge = {
		(unsigned char *)box->mem->addr + slot * (size_t)RGATE_HUB_MSG_MAX, msg->len,
		box->mem->lkey,
	};
	const struct rgate_op op = {
		.kind = RGATE_OP_SEND, .nsge = 1, .sge = &sge, .epoch = box->epoch,
	};
	int err;

	memcpy(sge.addr, msg->data, msg->len);
	err = xfer_post(&box->xfers, &box->slots[slot].xfer, &op, 1, left);
	if (!err)
		box->posted++;
	return err;
}

/* With the lock */
static int pump(struct outbox *box)
{
	int err = 0;

	(void)xfer_reap(&box->xfers);
	while (!err && box->posted != box->in && box->posted - box->done < OUTBOX_SLOTS)
		err = post(box);
	if (err && err != -EAGAIN)
		box->in = box->posted;
	return err;
}

void outbox_reset(struct outbox *box, uint32_t epoch)
{
	pthread_mutex_lock(&box->lock);
	box->epoch = epoch;
	box->in = box->posted;
	pthread_mutex_unlock(&box->lock);
}

int outbox_send(struct outbox *box, const void *msg, size_t len)
{
	struct outbox_msg *place;
	int err = 0;

	if (!len || len > RGATE_HUB_MSG_MAX)
		return -EMSGSIZE;
	pthread_mutex_lock(&box->lock);
	if (!box->epoch)
		err = -ENOTCONN;
	else if (box->in - box->done == OUTBOX_QUEUE)
		err = -EAGAIN;
	if (!err) {
		place = &box->queue[box->in++ % OUTBOX_QUEUE];
		place->len = (uint32_t)len;
		memcpy(place->data, msg, len);
		err = pump(box);
		/* it waits */
		if (err == -EAGAIN)
			err = 0;
	}
	pthread_mutex_unlock(&box->lock);
	return err;
}

bool outbox_pump(struct outbox *box)
{
	bool waits;

	pthread_mutex_lock(&box->lock);
	if (box->in != box->posted)
		(void)pump(box);
	waits = box->in != box->posted;
	pthread_mutex_unlock(&box->lock);
	return waits;
}
