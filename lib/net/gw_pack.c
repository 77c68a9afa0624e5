// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Frames for a node in one write each burst, which its daemon lays into the ring: two copies more,
 * a dozen operations less. For devices that are CPUs, as Soft-RoCE's, where an operation costs
 * more than copying what it moves.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "gateway.h"
#include "log.h"

#define COST_ROUNDS	4
#define COST_OPS	8U
#define COST_MS		1000	/* a device that takes longer is not asked */
#define COST_BYTES	64U

/* CPU time of one post of COST_OPS writes, which then are done. 0: that failed */
static uint64_t one_post(struct rgate_peer *peer, const struct rgate_op *op)
{
	struct rgate_op ops[COST_OPS];
	uint64_t begun, ns, ticket;
	unsigned int i;

	for (i = 0; i < COST_OPS; i++)
		ops[i] = *op;
	begun = rgate_clock_now(CLOCK_THREAD_CPUTIME_ID);
	if (rgate_peer_post(peer, ops, COST_OPS, &ticket))
		return 0;
	ns = rgate_clock_now(CLOCK_THREAD_CPUTIME_ID) - begun;
	return rgate_peer_settle(peer, ticket, COST_MS) ? 0 : ns + 1;
}

static uint64_t least_cost(struct rgate_peer *peer, const struct rgate_op *op)
{
	uint64_t ns, least = 0;
	unsigned int i;

	for (i = 0; i < COST_ROUNDS; i++) {
		ns = one_post(peer, op);
		if (!ns)
			return 0;
		if (!least || ns < least)
			least = ns;
	}
	return least / COST_OPS;
}

/* From the stage to the pool, as frames go */
static uint64_t cost_to(struct rgate_node *node, struct rgate_peer *peer)
{
	const struct rgate_buf *from = NULL, *to = NULL;
	struct rgate_op op = { .kind = RGATE_OP_WRITE, .nsge = 1 };
	struct rgate_remote at;
	struct rgate_desc desc;
	struct rgate_sge sge;
	uint64_t ns = 0;

	if (rgate_pool_alloc(rgate_node_stage(node), COST_BYTES, &from) ||
	    rgate_pool_alloc(rgate_node_pool(node), COST_BYTES, &to) ||
	    rgate_buf_desc(rgate_node_pool(node), to, 0, COST_BYTES, &desc) ||
	    rgate_desc_parse(&at, &desc, sizeof(desc)))
		goto free_bufs;
	sge = (struct rgate_sge){ from->addr, COST_BYTES, from->lkey };
	op.sge = &sge;
	op.remote = at.addr;
	op.rkey = at.rkey;
	ns = least_cost(peer, &op);
free_bufs:
	if (to)
		rgate_pool_free(rgate_node_pool(node), to);
	if (from)
		rgate_pool_free(rgate_node_stage(node), from);
	return ns;
}

uint64_t gw_pack_cost(struct rgate_node *node)
{
	struct rgate_peer *self;
	uint64_t ns = 0;

	if (!rgate_node_device(node) || rgate_peer_open(&self, node, rgate_node_id(node)))
		return 0;
	if (!rgate_peer_wait_up(self, COST_MS))
		ns = cost_to(node, self);
	rgate_peer_close(self);
	return ns;
}

/* Four chunks of what the rings' largest slots may be, and no fewer bytes than NET_INBOX_MIN */
static uint32_t inbox_for(const struct gw_dest *d, uint32_t burst)
{
	const uint64_t chunk = sizeof(struct net_chunk) + ((uint64_t)burst << d->size_shift);
	uint64_t size = NET_INBOX_MIN;

	while (size / 4 < chunk || size < 4ULL * NET_INBOX_MIN)
		size *= 2;
	return size > NET_INBOX_MAX ? 0 : (uint32_t)size;
}

int gw_pack_want(struct rgate_gateway *gw, struct gw_dest *d, const struct net_offer *offer)
{
	const struct rgate_alloc_opts zero = RGATE_OPTS(rgate_alloc_opts,
							.flags = RGATE_ALLOC_ZERO);
	const uint32_t size = inbox_for(d, gw->o.burst);
	int err;

	if (!gw->pack || !size || !(le32toh(offer->hdr.value) & NET_OFFER_PACKS))
		return 0;
	err = rgate_pool_alloc_opts(rgate_node_stage(gw->node), size, &zero, &d->pack.stage);
	if (!err)
		d->pack.size = size;
	return err;
}

bool gw_pack_inbox(struct gw_dest *d, const struct net_inbox *msg)
{
	struct gw_pack *p = &d->pack;

	if (!msg->hdr.value && !rgate_desc_parse(&p->inbox, &msg->at, sizeof(msg->at)) &&
	    p->inbox.length == p->size && p->inbox.access & RGATE_ACCESS_REMOTE_WRITE)
		return true;
	rgate_warn("node %u: its ring %s has no inbox: each frame is written by itself", d->node,
		   d->name);
	p->size = 0;
	return false;
}

bool gw_pack_last(const struct gw_dest *d, uint32_t bytes)
{
	const struct gw_pack *p = &d->pack;
	const uint64_t end = net_chunk_end(net_chunk_at(p->pos, p->size), bytes);

	return net_chunk_at(end, p->size) + net_chunk_max(p->size) > p->read + p->size;
}

struct net_chunk *gw_pack_next(const struct gw_dest *d)
{
	const struct gw_pack *p = &d->pack;
	const uint64_t at = net_chunk_at(p->pos, p->size);
	const uint64_t end = at + net_chunk_max(p->size);

	/* The device may read the stage again as long as the peer's did not acknowledge it. */
	if (end > p->read + p->size || end > p->landed + p->size)
		return NULL;
	return (struct net_chunk *)((unsigned char *)p->stage->addr + (at & (p->size - 1)));
}

uint32_t gw_pack_slot(void *to, const struct rgate_slot *s, uint32_t len, uint32_t gap)
{
	struct rgate_slot head;

	memcpy(to, (const unsigned char *)s + 8, GW_HEAD_BYTES + len);
	if (gap) {
		head = *s;
		head.gap += gap;
		memcpy(to, (unsigned char *)&head + 8, GW_HEAD_BYTES);
	}
	return GW_HEAD_BYTES + len;
}
