// SPDX-License-Identifier: MIT OR GPL-2.0
#include <stddef.h>

#include "xfer.h"

void xfer_list_init(struct xfer_list *list, struct rgate_peer *peer)
{
	list->peer = peer;
	list->first = NULL;
	list->last = &list->first;
}

int xfer_post(struct xfer_list *list, struct xfer *x, const struct rgate_op *ops, unsigned int n,
	      xfer_over_fn over)
{
	int err = rgate_peer_post(list->peer, ops, n, &x->ticket);

	if (err)
		return err;
	x->over = over;
	x->under_way = true;
	x->next = NULL;
	*list->last = x;
	list->last = &x->next;
	return 0;
}

/* Out of the list before its owner hears of it: he may post it again, or free it. */
static void end_first(struct xfer_list *list, int err)
{
	struct xfer *x = list->first;

	list->first = x->next;
	if (!list->first)
		list->last = &list->first;
	x->under_way = false;
	x->over(x, err);
}

unsigned int xfer_reap(struct xfer_list *list)
{
	unsigned int n = 0;
	int ret;

	while (list->first) {
		ret = rgate_peer_done(list->peer, list->first->ticket);
		if (!ret)
			break;
		end_first(list, ret < 0 ? ret : 0);
		n++;
	}
	return n;
}

void xfer_settle(struct xfer_list *list, int timeout_ms)
{
	/* Once one was too late, its connection is gone, and with it all the others are over. */
	while (list->first) {
		(void)rgate_peer_settle(list->peer, list->first->ticket, timeout_ms);
		(void)xfer_reap(list);
	}
}

void xfer_ground(struct xfer_list *list, int err)
{
	while (list->first)
		end_first(list, err);
}
