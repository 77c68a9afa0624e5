/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Transfers: posts whose memory belongs to them until they are over.
 *
 * A list has what was posted to one peer, in that order, in which it also ends. A transfer
 * is over when its operations were done, or when the connection that they were posted to
 * was taken away: the device neither reads their sources nor writes their answers any
 * more. Then, and from xfer_reap() and its like only, over() is called, which may free or
 * change that memory, and post.
 *
 * A list has no lock: whoever owns it calls its functions one at a time.
 */
#ifndef RGATE_CLUSTER_XFER_H
#define RGATE_CLUSTER_XFER_H

#include <ringgate/rgate_peer.h>

struct xfer;

/* @err: 0; or -errno: what became of the operations at the other end is not known */
typedef void (*xfer_over_fn)(struct xfer *x, int err);

/* Part of an object of its owner's, who sets nothing in it; zeroed at first */
struct xfer {
	struct xfer *next;
	xfer_over_fn over;
	uint64_t ticket;
	bool under_way;		/* posted, and over() was not called */
};

struct xfer_list {
	struct rgate_peer *peer;
	struct xfer *first, **last;
};

void xfer_list_init(struct xfer_list *list, struct rgate_peer *peer);

static inline bool xfer_list_empty(const struct xfer_list *list)
{
	return !list->first;
}

/*
 * Posts @n operations as one transfer. 0, or as rgate_peer_post(): then nothing has
 * begun, and over() is not called. @x must not be under way.
 */
int xfer_post(struct xfer_list *list, struct xfer *x, const struct rgate_op *ops, unsigned int n,
	      xfer_over_fn over);

/* Calls over() of all that are over by now, the oldest first; how many there were */
unsigned int xfer_reap(struct xfer_list *list);

/*
 * None is under way when it returns: one that takes more than @timeout_ms (0 or more) after the
 * one before it ends the connection. No over() may post to this list any more.
 */
void xfer_settle(struct xfer_list *list, int timeout_ms);

/* The peer was closed, and with it everything is over: @err is told. As above */
void xfer_ground(struct xfer_list *list, int err);

#endif
