// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Writing frames into a node's ring. A post has the slots of some frames, then their
 * sequences, and often a notice: the fabric places a write before a later one, so what a
 * consumer polls becomes visible last. Those that sleep are woken by their daemon, when it
 * gets the notice, or past it by the bell that the last sequence rings. Within a chain the first slot's sequence comes
 * last, so that a connection that ends in between leaves no half of one.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "container.h"
#include "gateway.h"
#include "log.h"

#define HEAD_BYTES	(RGATE_SLOT_HDR - 8U)	/* a header without its sequence */
#define NOTICE_EVERY	8U			/* posts, while there is more to send */
#define MAIL_NS		5000000U		/* positions and counters are that late at most */

struct burst {
	struct rgate_op ops[GW_OPS];
	struct rgate_sge sges[2 * GW_OPS];
	unsigned int nops, nsges;
	unsigned int slots;	/* of the ring, with filler */
	uint64_t order[RGATE_CHAIN_MAX]; /* positions, as their sequences are written */
	uint32_t end;		/* items */
	struct rgate_stats stats;
	bool gap_told;
};

static struct gw_scratch *scratch_of(const struct gw_dest *d)
{
	return d->scratch->addr;
}

static uint64_t place(const struct gw_dest *d, uint64_t pos)
{
	return d->slots_at.addr + ((pos & (d->slots - 1)) << d->size_shift);
}

static void add_sge(struct burst *b, const void *addr, uint32_t len, uint32_t lkey)
{
	b->sges[b->nsges++] = (struct rgate_sge){ (void *)addr, len, lkey };
}

static struct rgate_op *add_op(const struct gw_dest *d, struct burst *b, uint64_t remote,
			       uint32_t rkey)
{
	struct rgate_op *op = &b->ops[b->nops++];

	*op = (struct rgate_op){
		.kind = RGATE_OP_WRITE, .sge = &b->sges[b->nsges], .remote = remote,
		.rkey = rkey, .epoch = d->epoch,
	};
	return op;
}

/* The slot but for its sequence: up to the next multiple of 64, which is zero there */
static void add_slot(struct gw_dest *d, struct burst *b, const struct gw_source *src,
		     const struct rgate_slot *s, bool first)
{
	const uint32_t wanted = __atomic_load_n(&s->len, __ATOMIC_RELAXED);
	uint32_t len = wanted < src->room ? (wanted + 63) & ~63U : src->room;
	const unsigned char *at = (const unsigned char *)s + 8;
	struct rgate_op *op = add_op(d, b, place(d, d->head + b->slots) + 8, d->slots_at.rkey);

	if (len > src->room)
		len = src->room;
	if (first && d->gap && !b->gap_told) {
		struct rgate_slot *head = &scratch_of(d)->heads[d->flight_in % GW_FLIGHTS];

		*head = *s;
		head->gap += d->gap;
		add_sge(b, (unsigned char *)head + 8, HEAD_BYTES, d->scratch->lkey);
		if (len)
			add_sge(b, at + HEAD_BYTES, len, src->lkey);
		b->gap_told = true;
	} else {
		add_sge(b, at, HEAD_BYTES + len, src->lkey);
	}
	op->nsge = (uint16_t)(&b->sges[b->nsges] - op->sge);
	b->stats.bytes += wanted < src->room ? wanted : src->room;
	b->slots++;
}

static void add_filler(struct gw_dest *d, struct burst *b)
{
	struct rgate_op *op = add_op(d, b, place(d, d->head + b->slots) + 8, d->slots_at.rkey);

	add_sge(b, (unsigned char *)&scratch_of(d)->pad + 8, HEAD_BYTES, d->scratch->lkey);
	op->nsge = 1;
	b->order[b->slots] = d->head + b->slots;
	b->slots++;
	b->stats.padded++;
}

static void add_frame(struct rgate_gateway *gw, struct gw_dest *d, struct burst *b,
		      const struct gw_item *item)
{
	const struct gw_source *src = &gw->sources[item->source];
	const struct rgate_slot *s = gw_slot(gw, item);
	const unsigned int from = b->slots;
	unsigned int i;

	if (s->flags & RGATE_SLOT_TRUNC)
		b->stats.truncated++;
	if (item->parts > 1)
		b->stats.chained++;
	for (i = 0; i < item->parts; i++) {
		b->order[from + i] = d->head + from + item->parts - 1 - i;
		add_slot(d, b, src, rgate_consumer_slot(&src->c, item->slot + i), !i);
	}
	b->stats.delivered++;
	b->end++;
}

static void add_sequences(struct gw_dest *d, struct burst *b)
{
	struct gw_scratch *s = scratch_of(d);
	unsigned int i;

	for (i = 0; i < b->slots; i++) {
		const uint64_t pos = b->order[i], lap = (pos >> d->lap_shift) + 1;
		struct rgate_op *op = add_op(d, b, place(d, pos), d->slots_at.rkey);

		s->laps[lap % 64] = lap;
		add_sge(b, &s->laps[lap % 64], 8, d->scratch->lkey);
		op->nsge = 1;
		if (d->bell && i + 1 == b->slots)
			op->flags = RGATE_OP_BELL;
	}
}

static void add_notice(struct gw_dest *d, struct burst *b, bool ask)
{
	struct net_mail *mail = &scratch_of(d)->mails[d->flight_in % GW_FLIGHTS];
	struct rgate_op *op = add_op(d, b, d->mail_at.addr, d->mail_at.rkey);
	const uint64_t *from = (const uint64_t *)&d->stats;
	const uint64_t *more = (const uint64_t *)&b->stats;
	unsigned int i;

	mail->head = htole64(d->head + b->slots);
	for (i = 0; i < sizeof(d->stats) / 8; i++)
		mail->stats[i] = htole64(from[i] + more[i]);
	op->kind = RGATE_OP_WRITE_IMM;
	op->imm = RGATE_SERVICE_NET << RGATE_NOTICE_SHIFT | d->ring | (ask ? NET_ASK : 0);
	add_sge(b, mail, sizeof(*mail), d->scratch->lkey);
	op->nsge = 1;
}

/* Slots up to where the frame may begin: a chain does not cross a batch */
static unsigned int filler_for(const struct gw_dest *d, const struct burst *b,
			       const struct gw_item *item)
{
	const uint64_t left = RGATE_BATCH - ((d->head + b->slots) & (RGATE_BATCH - 1));

	return item->parts > left ? (unsigned int)left : 0;
}

static void look_at_credit(struct gw_dest *d)
{
	/* acquire: the consumers' reads come before our writes */
	const uint64_t told = le64toh(__atomic_load_n((uint64_t *)d->credit->addr,
						      __ATOMIC_ACQUIRE));

	if (told == d->free)
		return;
	if (told < d->free || told > d->head + d->slots) {
		rgate_warn("node %u: its ring %s says that slots up to %llu are free, which cannot be",
			   d->node, d->name, (unsigned long long)told);
		__atomic_store_n(&d->dead, true, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(&d->free, told, __ATOMIC_RELAXED);
	d->asked = false;
}

/* As many frames as there is room for; true: there would be more room in the post */
static void collect(struct rgate_gateway *gw, struct gw_dest *d, struct burst *b)
{
	const unsigned int most = gw->o.burst;

	while (b->end != d->in) {
		const struct gw_item *item = &d->items[b->end % GW_QUEUE];
		unsigned int pad = filler_for(d, b, item), need = pad ? pad : item->parts;

		if (b->slots && b->slots + need > most)
			return;
		if (d->head + b->slots + need > d->free)
			return;
		if (!pad) {
			add_frame(gw, d, b, item);
			continue;
		}
		while (pad--)
			add_filler(d, b);
	}
}

static bool notice_wanted(const struct gw_dest *d, const struct burst *b)
{
	const uint64_t head = d->head + b->slots;

	if (d->mail_due || d->free - head < d->slots / 2)
		return true;
	/* Nobody waits for it, but for the free slots that the node tells when it comes. */
	if (d->bell)
		return head - d->mailed >= d->slots / 8;
	return b->end == d->in || d->quiet + 1 >= NOTICE_EVERY;
}

/* The mail becomes due by itself where the bell saved its notice. */
static void look_at_mail(struct gw_dest *d)
{
	if (d->mail_by && rgate_clock_now(CLOCK_MONOTONIC) >= d->mail_by)
		d->mail_due = true;
}

static void sent(struct gw_dest *d, const struct burst *b, bool wanted, bool notice)
{
	const uint64_t *more = (const uint64_t *)&b->stats;
	uint64_t *to = (uint64_t *)&d->stats;
	unsigned int i;

	for (i = 0; i < sizeof(d->stats) / 8; i++)
		to[i] += more[i];
	__atomic_store_n(&d->head, d->head + b->slots, __ATOMIC_RELAXED);
	d->posted = b->end;
	if (b->gap_told)
		d->gap = 0;
	d->flight_in++;
	gw_count(&d->info.posts, 1);
	gw_count(&d->info.writes, b->nops);
	if (notice)
		gw_count(&d->info.notices, 1);
	d->quiet = notice ? 0 : d->quiet + 1;
	d->mail_due = wanted && !notice;
	if (notice) {
		d->mailed = d->head;
		d->mail_by = 0;
	} else if (d->bell && !d->mail_by) {
		d->mail_by = rgate_clock_now(CLOCK_MONOTONIC) + MAIL_NS;
	}
}

/* What it has brought is there, or nobody is left who could read it. */
static void landed(struct xfer *x, int err)
{
	const struct gw_flight *f = container_of(x, struct gw_flight, xfer);
	struct gw_dest *d = f->dest;

	if (err) {
		__atomic_store_n(&d->dead, true, __ATOMIC_RELEASE);
		return;
	}
	/* a notice's flight may be behind what was dropped meanwhile */
	for (; (int32_t)(f->end - d->done) > 0; d->done++) {
		const struct gw_item *item = &d->items[d->done % GW_QUEUE];

		d->ended_frames++;
		d->ended_bytes += gw_slot(d->gw, item)->wire_len;
		gw_unref(d->gw, item);
	}
}

/* True: it is on its way */
static bool post(struct gw_dest *d, struct burst *b, bool wanted, bool ask)
{
	struct gw_flight *f = &d->flights[d->flight_in % GW_FLIGHTS];
	bool notice = wanted && b->nops < GW_OPS;
	int err = -EAGAIN;

	if (f->xfer.under_way)
		return false;
	f->dest = d;
	f->end = b->end;
	if (notice) {
		add_notice(d, b, ask);
		err = xfer_post(&d->xfers, &f->xfer, b->ops, b->nops, landed);
		if (err == -EAGAIN) {	/* perhaps only for want of a message's credit */
			b->nops--;
			notice = false;
		}
	}
	if (err == -EAGAIN && b->nops)
		err = xfer_post(&d->xfers, &f->xfer, b->ops, b->nops, landed);
	if (err && err != -EAGAIN)
		__atomic_store_n(&d->dead, true, __ATOMIC_RELEASE);
	if (err)
		return false;
	sent(d, b, wanted, notice);
	if (notice && ask)
		d->asked = true;
	return true;
}

/* Nothing fits: the node shall tell when something does, and what may is dropped */
static unsigned int stalled(struct rgate_gateway *gw, struct gw_dest *d)
{
	const struct gw_item *item = &d->items[d->posted % GW_QUEUE];
	struct burst b = { .end = d->posted };

	if (!d->asked) {
		gw_count(&d->info.stalls, 1);
		if (!post(d, &b, true, true))
			return 0;
	}
	if (!(item->flags & GW_FULL_DROP) || d->posted != d->done)
		return 0;
	/* nothing is under way, so the first in line is all there is to take out */
	gw_unref(gw, item);
	d->gap++;
	d->stats.dropped_full++;
	gw_count(&d->info.dropped_full, 1);
	gw_count(&gw->nodes[d->node].dropped_full, 1);
	d->posted++;
	d->done++;
	return 1;
}

unsigned int gw_dest_send(struct rgate_gateway *gw, struct gw_dest *d)
{
	unsigned int n = 0;

	look_at_credit(d);
	look_at_mail(d);
	while (!gw_flag(&d->dead) && !gw_flag(&d->withdrawn) &&
	       (d->in != d->posted || d->mail_due)) {
		struct burst b = { .end = d->posted };

		collect(gw, d, &b);
		if (!b.slots && !d->mail_due)
			return n + stalled(gw, d);
		add_sequences(d, &b);
		if (!post(d, &b, notice_wanted(d, &b), false))
			break;
		n++;
	}
	return n;
}

unsigned int gw_dest_reap(struct rgate_gateway *gw, struct gw_dest *d)
{
	uint64_t frames, bytes;

	(void)xfer_reap(&d->xfers);
	frames = d->ended_frames;
	bytes = d->ended_bytes;
	d->ended_frames = d->ended_bytes = 0;
	__atomic_store_n(&d->info.waiting, d->in - d->done, __ATOMIC_RELAXED);
	gw_count(&d->info.frames, frames);
	gw_count(&d->info.bytes, bytes);
	gw_count(&gw->nodes[d->node].frames, frames);
	gw_count(&gw->nodes[d->node].bytes, bytes);
	return frames ? 1 : 0;
}
