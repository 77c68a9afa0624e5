// SPDX-License-Identifier: MIT OR GPL-2.0
/* One ring that the gateway fills: its memory, what came, what is free again. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "inlet.h"
#include "log.h"
#include "producer.h"
#include "ring_memfd.h"

#define NAP_FIRST	20000		/* ns between looks for free slots */
#define NAP_LAST	1000000

static struct rgate_pool *pool_of(struct rgate_inlet *in)
{
	return rgate_node_pool(in->node);
}

int inlet_ring_make(struct rgate_inlet *in, struct inlet_ring *r,
		    const struct rgate_ring_opts *opts)
{
	const struct rgate_alloc_opts zero = RGATE_OPTS(rgate_alloc_opts,
							.flags = RGATE_ALLOC_ZERO);
	struct rgate_view v;
	uint64_t off;
	int fd, err;

	err = rgate_ring_open_filled(&r->ring, opts, rgate_node_bells(in->node));
	if (err)
		goto none;
	err = rgate_producer_init(&r->p, r->ring);
	if (err)
		goto close_ring;
	err = rgate_pool_alloc_opts(pool_of(in), sizeof(struct net_mail), &zero, &r->mail);
	if (err)
		goto end_producer;
	rgate_ring_view(r->ring, &v);
	fd = rgate_ring_file(r->ring, &off);
	err = rgate_share_create(&r->share, in->node, rgate_ring_slots_rw(r->ring),
				 (size_t)v.nslots * v.slot_size, fd, off,
				 RGATE_ACCESS_REMOTE_WRITE);
	if (err)
		goto free_mail;
	r->bell = rgate_ring_bell(r->ring) >= 0 &&
		  !rgate_share_bell(r->share, rgate_ring_bell(r->ring));
	return 0;

free_mail:
	rgate_pool_free(pool_of(in), r->mail);
end_producer:
	rgate_producer_fini(&r->p);
close_ring:
	rgate_ring_close(r->ring);
none:
	r->ring = NULL;
	return err;
}

void inlet_ring_free(struct rgate_inlet *in, struct inlet_ring *r)
{
	rgate_share_destroy(r->share);
	(void)rgate_producer_find(&r->p);
	rgate_producer_fini(&r->p);
	inlet_pack_end(in, r);
	rgate_pool_free(pool_of(in), r->mail);
	rgate_ring_close(r->ring);
	memset(r, 0, sizeof(*r));
}

static struct net_mail *mail_of(const struct inlet_ring *r)
{
	return r->mail->addr;
}

/* The connection is new: nobody writes here, and what the last one wrote is known. */
void inlet_ring_offer(struct rgate_inlet *in, struct inlet_ring *r)
{
	struct net_offer o = {
		.hdr = { .service = RGATE_SERVICE_NET, .type = NET_OFFER,
			 .ring = htole16((uint16_t)r->number) },
	};
	struct rgate_view v;
	int err;

	r->found += rgate_producer_find(&r->p);
	inlet_pack_end(in, r);
	memset(mail_of(r), 0, sizeof(struct net_mail));
	rgate_ring_view(r->ring, &v);
	r->base = r->p.stats;
	r->told = rgate_producer_free(&r->p);
	r->asked = r->late = false;
	o.hdr.value = htole32(NET_OFFER_PACKS | (r->bell ? NET_OFFER_BELL : 0));
	o.slots = htole32(v.nslots);
	o.slot_size = htole32(v.slot_size);
	o.head = htole64(r->p.head);
	o.free = htole64(r->told);
	memcpy(o.name, v.prod->name, sizeof(o.name));
	err = rgate_share_desc(r->share, 0, (size_t)v.nslots * v.slot_size, &o.slots_at);
	if (!err)
		err = rgate_buf_desc(pool_of(in), r->mail, 0, sizeof(struct net_mail), &o.mail_at);
	if (!err)
		r->offered = !inlet_send(in, &o, sizeof(o));
}

void inlet_ring_taken(struct rgate_inlet *in, struct inlet_ring *r, const struct net_taken *t)
{
	const uint32_t refused = le32toh(t->hdr.value), inbox = le32toh(t->inbox);
	struct rgate_view v;

	rgate_ring_view(r->ring, &v);
	r->error = refused <= 4095 ? -(int)refused : -EPROTO;
	r->least_size = le32toh(t->slot_size);
	if (r->error) {
		rgate_err("ring %s: the gateway does not fill it: %s", v.prod->name,
			  r->error == -EMSGSIZE ? "its slots are smaller than the gateway's" :
			  strerror(-r->error));
		return;
	}
	if (rgate_desc_parse(&r->credit, &t->credit_at, sizeof(t->credit_at)) ||
	    r->credit.length != (inbox ? 16 : 8) ||
	    !(r->credit.access & RGATE_ACCESS_REMOTE_WRITE)) {
		r->errors++;
		return;
	}
	r->epoch = rgate_hub_epoch(in->hub, in->gateway);
	r->taken = true;
	r->sessions++;
	rgate_info("ring %s: filled by node %u", v.prod->name, in->gateway);
	if (inbox)
		inlet_pack_begin(in, r, inbox);
}

/* Once the ring is withdrawn, the gateway's word may be another's soon. */
static bool may_tell(const struct inlet_ring *r)
{
	return r->taken && !r->closing;
}

/* False: it could not be said now */
static bool tell(struct rgate_inlet *in, struct inlet_ring *r, uint64_t free)
{
	/* Where it is read only when it goes out, a later position is as good. */
	uint64_t *words = (uint64_t *)in->words->addr + 2UL * r->number;
	const struct rgate_sge sge = { words, (uint32_t)r->credit.length, in->words->lkey };
	const struct rgate_op op = {
		.kind = r->asked ? RGATE_OP_WRITE_IMM : RGATE_OP_WRITE, .nsge = 1, .sge = &sge,
		.imm = RGATE_SERVICE_NET << RGATE_NOTICE_SHIFT | r->number,
		.remote = r->credit.addr, .rkey = r->credit.rkey, .epoch = r->epoch,
	};

	words[0] = htole64(free);
	words[1] = htole64(r->read);
	if (rgate_peer_post(in->peer, &op, 1, NULL))
		return false;
	/* Slots were asked for; that the inbox is free again is no answer. */
	if (free > r->told)
		r->asked = false;
	r->told = free;
	r->read_told = r->read;
	r->credits++;
	return true;
}

int64_t inlet_ring_tick(struct rgate_inlet *in, struct inlet_ring *r)
{
	const uint64_t free = rgate_producer_free(&r->p);

	if (!may_tell(r))
		return -1;
	if (free > r->told || r->late)
		r->late = !tell(in, r, free);
	if (!r->asked && !r->late)
		return -1;
	r->nap_ns = r->nap_ns * 2 < NAP_LAST ? r->nap_ns * 2 : NAP_LAST;
	return r->nap_ns;
}

void inlet_ring_mail(const struct inlet_ring *r, const struct net_mail *mail, uint64_t *head,
		     struct rgate_stats *stats)
{
	const uint64_t *base = (const uint64_t *)&r->base;
	uint64_t *to = (uint64_t *)stats;
	unsigned int i;

	/* acquire: the slots before it were written before it */
	*head = le64toh(__atomic_load_n(&mail->head, __ATOMIC_ACQUIRE));
	for (i = 0; i < sizeof(*stats) / 8; i++)
		to[i] = base[i] + le64toh(__atomic_load_n(&mail->stats[i], __ATOMIC_RELAXED));
}

/* What was written into the slots, the mail tells */
static int account(struct inlet_ring *r)
{
	struct rgate_stats stats;
	uint64_t head;

	inlet_ring_mail(r, mail_of(r), &head, &stats);
	/* A notice may come before the first mail, and one of a former connection late. */
	return head > r->p.head ? rgate_producer_landed(&r->p, head, &stats) : 0;
}

/* Slots are free, or the inbox is, that the gateway does not know of: enough to tell */
static bool worth_telling(const struct inlet_ring *r, uint64_t free)
{
	struct rgate_view v;

	rgate_ring_view(r->ring, &v);
	return free - r->told >= (r->asked ? 1 : v.nslots / 8) ||
	       (r->inbox && r->read - r->read_told >= net_chunk_max(r->inbox_size));
}

void inlet_ring_notice(struct rgate_inlet *in, struct inlet_ring *r, bool ask)
{
	int err = r->inbox ? inlet_pack_take(r) : account(r);
	uint64_t free;

	if (err) {
		r->errors++;
		rgate_warn("ring %u: what the gateway says of it cannot be", r->number);
	}
	/* Where its next chunk begins, nobody knows then. */
	if (err && r->inbox)
		r->taken = false;
	if (ask) {
		r->asked = true;
		r->nap_ns = NAP_FIRST;
	}
	if (!may_tell(r))
		return;
	free = rgate_producer_free(&r->p);
	if (!worth_telling(r, free) || tell(in, r, free))
		return;
	/* The gateway may have nothing more to say until it is told: no other notice would come. */
	r->late = true;
	r->nap_ns = NAP_FIRST;
}
