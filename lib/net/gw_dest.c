// SPDX-License-Identifier: MIT OR GPL-2.0
/* A ring at a node, as the gateway sees it: made from an offer that is not trusted. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway.h"
#include "log.h"

static bool power_of_two(uint32_t v, uint32_t least, uint32_t most)
{
	return v >= least && v <= most && !(v & (v - 1));
}

static int check_memory(struct gw_dest *d, const struct net_offer *o, uint32_t slot_size)
{
	if (rgate_desc_parse(&d->slots_at, &o->slots_at, sizeof(o->slots_at)) ||
	    rgate_desc_parse(&d->mail_at, &o->mail_at, sizeof(o->mail_at)))
		return -EPROTO;
	if (d->slots_at.length != (uint64_t)d->slots * slot_size ||
	    d->mail_at.length < sizeof(struct net_mail) ||
	    !(d->slots_at.access & d->mail_at.access & RGATE_ACCESS_REMOTE_WRITE))
		return -EPROTO;
	return 0;
}

uint32_t gw_slot_size(const struct rgate_gateway *gw)
{
	struct rgate_view v;
	uint32_t most = 0;
	unsigned int i;

	for (i = 0; i < RGATE_GATEWAY_RINGS_MAX; i++) {
		if (!gw->sources[i].ring)
			continue;
		rgate_ring_view(gw->sources[i].ring, &v);
		if (v.slot_size > most)
			most = v.slot_size;
	}
	return most;
}

static int check(struct rgate_gateway *gw, struct gw_dest *d, const struct net_offer *o)
{
	const uint32_t slot_size = le32toh(o->slot_size);

	d->slots = le32toh(o->slots);
	d->head = le64toh(o->head);
	d->free = le64toh(o->free);
	d->mailed = d->head;
	d->ring = le16toh(o->hdr.ring);
	d->bell = le32toh(o->hdr.value) & NET_OFFER_BELL;
	if (!power_of_two(d->slots, RGATE_SLOTS_MIN, RGATE_SLOTS_MAX) ||
	    !power_of_two(slot_size, RGATE_SLOT_SIZE_MIN, RGATE_SLOT_SIZE_MAX) ||
	    d->free < d->head || d->free - d->head > d->slots || d->ring >= NET_RINGS_MAX ||
	    d->head > UINT64_MAX / 2 || memchr(o->name, '\0', sizeof(o->name)) == NULL)
		return -EPROTO;
	memcpy(d->name, o->name, sizeof(d->name));
	d->lap_shift = (uint32_t)__builtin_ctz(d->slots);
	d->size_shift = (uint32_t)__builtin_ctz(slot_size);
	if (gw_slot_size(gw) > slot_size)
		return -EMSGSIZE;
	return check_memory(d, o, slot_size);
}

static int alloc(struct rgate_gateway *gw, struct gw_dest *d)
{
	const struct rgate_alloc_opts zero = RGATE_OPTS(rgate_alloc_opts,
							.flags = RGATE_ALLOC_ZERO);
	struct rgate_pool *pool = rgate_node_pool(gw->node);
	int err;

	d->items = calloc(GW_QUEUE, sizeof(*d->items));
	if (!d->items)
		return -ENOMEM;
	err = rgate_pool_alloc_opts(pool, 16, &zero, &d->credit);
	if (err)
		return err;
	return rgate_pool_alloc_opts(rgate_node_stage(gw->node), sizeof(struct gw_scratch), &zero,
				     &d->scratch);
}

int gw_dest_create(struct gw_dest **out, struct rgate_gateway *gw, uint32_t node,
		   const struct net_offer *offer)
{
	struct gw_dest *d = calloc(1, sizeof(*d));
	struct gw_scratch *s;
	int err;

	if (!d)
		return -ENOMEM;
	err = check(gw, d, offer);
	if (!err)
		err = alloc(gw, d);
	if (!err)
		err = gw_pack_want(gw, d, offer);
	if (err) {
		gw_dest_free(gw, d);
		return err;
	}
	d->node = node;
	d->id = node * NET_RINGS_MAX + d->ring;
	d->gw = gw;
	xfer_list_init(&d->xfers, rgate_hub_peer(gw->hub, node));
	d->epoch = rgate_hub_epoch(gw->hub, node);
	s = d->scratch->addr;
	s->pad.flags = RGATE_SLOT_PAD;
	s->pad.l3_off = s->pad.l4_off = s->pad.payload_off = RGATE_OFF_NONE;
	s->pad.chain_cnt = 1;
	*(uint64_t *)d->credit->addr = htole64(d->free);
	*out = d;
	return 0;
}

void gw_dest_free(struct rgate_gateway *gw, struct gw_dest *d)
{
	rgate_pool_free(rgate_node_stage(gw->node), d->scratch);
	rgate_pool_free(rgate_node_stage(gw->node), d->pack.stage);
	rgate_pool_free(rgate_node_pool(gw->node), d->credit);
	free(d->items);
	free(d);
}
