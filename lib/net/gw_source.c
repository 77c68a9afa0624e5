// SPDX-License-Identifier: MIT OR GPL-2.0
/* A ring of this machine that the gateway empties: looking, steering, giving back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway.h"
#include "log.h"

#define TAKE_MAX	64U
#define PLACE_TAG	0x6777796174ULL	/* in rgate_cons.user[5], with the generation */

static uint64_t tag_of(const struct gw_source *src)
{
	return PLACE_TAG << 24 ^ src->c.generation;
}

/*
 * Credits tell whole batches; what of the next one was given back, the consumers' own
 * words tell. So a gateway that follows another one sends nothing twice.
 */
static void resume(struct gw_source *src)
{
	struct rgate_consumer *c = &src->c;
	const uint64_t place = __atomic_load_n(&c->cons->user[6], __ATOMIC_RELAXED);

	if (__atomic_load_n(&c->cons->user[5], __ATOMIC_RELAXED) == tag_of(src) &&
	    place > c->done && place - c->done < RGATE_BATCH &&
	    !rgate_consumer_advance_slow(c))
		rgate_consumer_release_n(c, (unsigned int)(place - c->done));
	__atomic_store_n(&c->cons->user[6], c->done, __ATOMIC_RELAXED);
	__atomic_store_n(&c->cons->user[5], tag_of(src), __ATOMIC_RELAXED);
}

int gw_source_bind(struct rgate_gateway *gw, struct gw_source *src)
{
	struct rgate_view v;
	unsigned char *slots;
	int err;

	rgate_ring_view(src->ring, &v);
	/* Read by the device; a mapping that cannot be written can't be pinned everywhere. */
	slots = rgate_ring_slots_rw(src->ring);
	err = rgate_share_create(&src->share, gw->node, slots ? slots : (unsigned char *)v.slots,
				 (size_t)v.nslots * v.slot_size, -1, 0,
				 slots ? 0 : RGATE_ACCESS_READONLY);
	if (err)
		return err;
	src->refs = calloc(v.nslots, 1);
	err = src->refs ? rgate_consumer_init(&src->c, src->ring, NULL) : -ENOMEM;
	if (err) {
		gw_source_unbind(src);
		return err;
	}
	src->lkey = rgate_share_lkey(src->share);
	src->room = v.slot_size - RGATE_SLOT_HDR;
	resume(src);
	src->next = src->c.done;
	return 0;
}

void gw_source_unbind(struct gw_source *src)
{
	free(src->refs);
	src->refs = NULL;
	rgate_share_destroy(src->share);
	src->share = NULL;
}

/* How many slots the frame at the next position takes; 0: it is not (all) there */
static unsigned int parts_of(const struct gw_source *src)
{
	const struct rgate_consumer *c = &src->c;
	const uint64_t left = RGATE_BATCH - (src->next & (RGATE_BATCH - 1));
	unsigned int n;

	if (rgate_consumer_ready(c, src->next) != 1)
		return 0;
	n = rgate_consumer_slot(c, src->next)->chain_cnt;
	if (n <= 1 || n > left)
		return 1;
	return rgate_consumer_ready(c, src->next + n - 1) == 1 ? n : 0;
}

/* The destination that the flow likes best, among the rings of @nodes */
static struct gw_dest *best(struct rgate_gateway *gw, uint32_t nodes, const char *name,
			    uint64_t flow)
{
	struct gw_dest *found = NULL;
	uint64_t most = 0;
	unsigned int i;

	for (i = 0; i < gw->ndests; i++) {
		struct gw_dest *d = gw->dests[i];
		uint64_t w;

		if (!(nodes & 1U << d->node) || (*name && strcmp(name, d->name)) ||
		    gw_flag(&d->dead) || gw_flag(&d->withdrawn))
			continue;
		w = rgate_steer_weight(flow, d->id);
		if (!found || w > most) {
			found = d;
			most = w;
		}
	}
	return found;
}

static void push(struct rgate_gateway *gw, struct gw_dest *d, const struct gw_item *frame,
		 uint8_t flags)
{
	struct gw_item *item = &d->items[d->in % GW_QUEUE];

	*item = *frame;
	item->flags = flags;
	gw->sources[item->source].refs[item->slot]++;
	d->in++;
}

static unsigned int push_copies(struct rgate_gateway *gw, const struct steer_rule *rule,
				const struct gw_item *frame, uint64_t flow, uint8_t flags)
{
	unsigned int n = 0;
	uint32_t id;

	for (id = 0; id < RGATE_NODES_MAX; id++) {
		struct gw_dest *d = rule->nodes & 1U << id ? best(gw, 1U << id, "", flow) : NULL;

		if (d) {
			push(gw, d, frame, flags | GW_DOWN_DROP);
			n++;
		}
	}
	return n;
}

/* True: somebody gets it */
static bool apply(struct rgate_gateway *gw, const struct steer_rule *rule,
		  const struct gw_item *frame, uint64_t flow, bool past)
{
	const uint8_t flags = (rule->full_drop ? GW_FULL_DROP : 0) |
			      (rule->down_drop ? GW_DOWN_DROP : 0);
	struct gw_dest *d;

	if (rule->target == STEER_ALL)
		return push_copies(gw, rule, frame, flow, flags) > 0;
	d = best(gw, rule->nodes, rule->ring, flow);
	/* what had its place in the queue of a ring that is gone may not be refused */
	if (!d || (past && !gw_dest_room(d)))
		return false;
	push(gw, d, frame, flags);
	if (past)
		gw_count(&d->info.resteered, 1);
	return true;
}

static bool nobody(struct rgate_gateway *gw, uint64_t *counter, bool past)
{
	if (!past)
		gw_count(counter, 1);
	(void)gw;
	return false;
}

bool gw_steer(struct rgate_gateway *gw, const struct gw_item *frame, bool past)
{
	const struct gw_source *src = &gw->sources[frame->source];
	const struct rgate_slot *s = gw_slot(gw, frame);
	const uint64_t flow = rgate_steer_flow(s, src->room);
	struct steer_rule *rule;
	bool down = false;
	unsigned int from = 0;

	for (;;) {
		rule = rgate_steer_match(gw->rules, from, s, src->room);
		if (!rule)
			return nobody(gw, down ? &gw->stats.dropped_down :
				      &gw->stats.unmatched, past);
		if (!past)
			gw_count(&rule->hits, 1);
		if (rule->target == STEER_DROP)
			return nobody(gw, &gw->stats.dropped_rule, past);
		if (apply(gw, rule, frame, flow, past))
			return true;
		if (rule->down_drop)
			return nobody(gw, &gw->stats.dropped_down, past);
		down = true;
		from = (unsigned int)(rule - gw->rules->rules) + 1;
	}
}

/* Every ring may get every frame, so the fullest queue says how many can be taken. */
static unsigned int queue_room(const struct rgate_gateway *gw)
{
	unsigned int i, least = TAKE_MAX;

	for (i = 0; i < gw->ndests; i++)
		if (gw_dest_room(gw->dests[i]) < least)
			least = gw_dest_room(gw->dests[i]);
	return least;
}

/* Whoever emptied the ring before may have returned a batch after one that it did not. */
static void skip_returned(struct gw_source *src)
{
	const struct rgate_consumer *c = &src->c;

	while (!(src->next & (RGATE_BATCH - 1)) && src->next < c->check_end &&
	       __atomic_load_n(&c->credits[(src->next & c->mask) >> RGATE_BATCH_SHIFT],
			       __ATOMIC_ACQUIRE) == rgate_consumer_lap(c, src->next))
		src->next += RGATE_BATCH;
}

unsigned int gw_source_take(struct rgate_gateway *gw, struct gw_source *src)
{
	const unsigned int most = queue_room(gw);
	unsigned int n, parts;

	for (n = 0; n < most; n++) {
		const struct rgate_slot *s;
		struct gw_item frame = { .source = (uint8_t)(src - gw->sources) };

		skip_returned(src);
		/* What is not given back cannot have been filled again. */
		if (src->next - src->c.done > src->c.mask)
			break;
		parts = parts_of(src);
		if (!parts)
			break;
		s = rgate_consumer_slot(&src->c, src->next);
		frame.slot = (uint32_t)(src->next & src->c.mask);
		src->next += parts;
		if (s->flags & (RGATE_SLOT_PAD | RGATE_SLOT_CONT))
			continue;
		frame.parts = (uint8_t)parts;
		gw_count(&gw->stats.frames, 1);
		gw_count(&gw->stats.bytes, s->wire_len);
		(void)gw_steer(gw, &frame, false);
	}
	return n;
}

unsigned int gw_source_release(struct gw_source *src)
{
	struct rgate_consumer *c = &src->c;
	unsigned int n = 0;

	while (c->done != src->next && !src->refs[c->done & c->mask]) {
		if (c->done == c->end && rgate_consumer_advance_slow(c))
			break;
		rgate_consumer_release_n(c, 1);
		n++;
	}
	if (n)
		__atomic_store_n(&c->cons->user[6], c->done, __ATOMIC_RELAXED);
	return n;
}
