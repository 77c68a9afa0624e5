// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Writing frames into a node's ring. A post has the slots of some frames, then their
 * sequences, and often a notice: the fabric places a write before a later one, so what a
 * consumer polls becomes visible last. Those that sleep are woken by their daemon, when it
 * gets the notice, or past it by the bell that the last sequence rings. Within a chain the
 * first slot's sequence comes last, so that a connection that ends in between leaves no half of
 * one.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "container.h"
#include "gateway.h"
#include "log.h"

#define NOTICE_EVERY	8U			/* posts, while there is more to send */
#define MAIL_NS		5000000U		/* positions and counters are that late at most */

struct burst {
	struct rgate_op ops[GW_OPS];
	struct rgate_sge sges[2 * GW_OPS];
	unsigned int nops, nsges;
	struct net_chunk *chunk; /* NULL: not packed */
	uint32_t bytes;		/* of its slots */
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

static void *packed_at(const struct burst *b)
{
	return (unsigned char *)(b->chunk + 1) + b->bytes;
}

/* The slot but for its sequence: up to the next multiple of 64, which is zero there */
static void write_slot(struct gw_dest *d, struct burst *b, const struct gw_source *src,
		       const struct rgate_slot *s, uint32_t len, bool with_gap)
{
	const unsigned char *at = (const unsigned char *)s + 8;
	struct rgate_op *op = add_op(d, b, place(d, d->head + b->slots) + 8, d->slots_at.rkey);

	if (with_gap) {
		struct rgate_slot *head = &scratch_of(d)->heads[d->flight_in % GW_FLIGHTS];

		*head = *s;
		head->gap += d->gap;
		add_sge(b, (unsigned char *)head + 8, GW_HEAD_BYTES, d->scratch->lkey);
		if (len)
			add_sge(b, at + GW_HEAD_BYTES, len, src->lkey);
	} else {
		add_sge(b, at, GW_HEAD_BYTES + len, src->lkey);
	}
	op->nsge = (uint16_t)(&b->sges[b->nsges] - op->sge);
}

static void add_slot(struct gw_dest *d, struct burst *b, const struct gw_source *src,
		     const struct rgate_slot *s, bool first)
{
	const uint32_t wanted = __atomic_load_n(&s->len, __ATOMIC_RELAXED);
	const uint32_t len = net_packed(wanted, src->room);
	const bool with_gap = first && d->gap && !b->gap_told;

	if (b->chunk)
		b->bytes += gw_pack_slot(packed_at(b), s, len, with_gap ? d->gap : 0);
	else
		write_slot(d, b, src, s, len, with_gap);
	b->gap_told |= with_gap;
	b->stats.bytes += wanted < src->room ? wanted : src->room;
	b->slots++;
}

static void add_filler(struct gw_dest *d, struct burst *b)
{
	const struct rgate_slot *pad = &scratch_of(d)->pad;
	struct rgate_op *op;

	if (b->chunk) {
		b->bytes += gw_pack_slot(packed_at(b), pad, 0, 0);
	} else {
		op = add_op(d, b, place(d, d->head + b->slots) + 8, d->slots_at.rkey);
		add_sge(b, (unsigned char *)pad + 8, GW_HEAD_BYTES, d->scratch->lkey);
		op->nsge = 1;
	}
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

static void fill_mail(const struct gw_dest *d, const struct burst *b, struct net_mail *mail)
{
	const uint64_t *from = (const uint64_t *)&d->stats;
	const uint64_t *more = (const uint64_t *)&b->stats;
	unsigned int i;

	mail->head = htole64(d->head + b->slots);
	for (i = 0; i < sizeof(d->stats) / 8; i++)
		mail->stats[i] = htole64(from[i] + more[i]);
}

static uint32_t notice_imm(const struct gw_dest *d, bool ask)
{
	return RGATE_SERVICE_NET << RGATE_NOTICE_SHIFT | d->ring | (ask ? NET_ASK : 0);
}

static void add_notice(struct gw_dest *d, struct burst *b, bool ask)
{
	struct net_mail *mail = &scratch_of(d)->mails[d->flight_in % GW_FLIGHTS];
	struct rgate_op *op = add_op(d, b, d->mail_at.addr, d->mail_at.rkey);

	fill_mail(d, b, mail);
	op->kind = RGATE_OP_WRITE_IMM;
	op->imm = notice_imm(d, ask);
	add_sge(b, mail, sizeof(*mail), d->scratch->lkey);
	op->nsge = 1;
}

/* The whole chunk as one operation */
static void add_chunk(struct gw_dest *d, struct burst *b, bool notice, bool ask)
{
	const uint64_t at = net_chunk_at(d->pack.pos, d->pack.size);
	struct rgate_op *op;

	*b->chunk = (struct net_chunk){
		.mark = htole64(at + 1), .flags = htole32(notice ? NET_CHUNK_NOTICE : 0),
		.slots = htole32(b->slots), .bytes = htole32(b->bytes),
	};
	fill_mail(d, b, &b->chunk->mail);
	b->nops = b->nsges = 0;
	op = add_op(d, b, d->pack.inbox.addr + (at & (d->pack.size - 1)), d->pack.inbox.rkey);
	op->kind = notice ? RGATE_OP_WRITE_IMM : RGATE_OP_WRITE;
	op->imm = notice ? notice_imm(d, ask) : 0;
	add_sge(b, b->chunk, (uint32_t)sizeof(*b->chunk) + b->bytes, d->pack.stage->lkey);
	op->nsge = 1;
}

/* Slots up to where the frame may begin: a chain does not cross a batch */
static unsigned int filler_for(const struct gw_dest *d, const struct burst *b,
			       const struct gw_item *item)
{
	const uint64_t left = RGATE_BATCH - ((d->head + b->slots) & (RGATE_BATCH - 1));

	return item->parts > left ? (unsigned int)left : 0;
}

/* A position that the node told: between @from and @to, or the ring is given up */
static bool look_at(struct gw_dest *d, unsigned int word, uint64_t *was, uint64_t most,
		    const char *what)
{
	/* acquire: the consumers' reads, and the daemon's, come before our writes */
	const uint64_t told = le64toh(__atomic_load_n((uint64_t *)d->credit->addr + word,
						      __ATOMIC_ACQUIRE));

	if (told == *was)
		return false;
	if (told < *was || told > most) {
		rgate_warn("node %u: its ring %s says that %s up to %llu are free, which cannot be",
			   d->node, d->name, what, (unsigned long long)told);
		__atomic_store_n(&d->dead, true, __ATOMIC_RELEASE);
		return false;
	}
	__atomic_store_n(was, told, __ATOMIC_RELAXED);
	return true;
}

static void look_at_credit(struct gw_dest *d)
{
	if (look_at(d, 0, &d->free, d->head + d->slots, "slots"))
		d->asked = false;
	if (d->pack.size)
		(void)look_at(d, 1, &d->pack.read, d->pack.pos, "bytes");
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
	if (d->bell && !b->chunk)
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
	if (b->chunk)
		d->pack.pos = net_chunk_end(net_chunk_at(d->pack.pos, d->pack.size), b->bytes);
	d->flights[d->flight_in % GW_FLIGHTS].pack_end = d->pack.pos;
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
	} else if (d->bell && !b->chunk && !d->mail_by) {
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
	d->pack.landed = f->pack_end;
	/* a notice's flight may be behind what was dropped meanwhile */
	for (; (int32_t)(f->end - d->done) > 0; d->done++) {
		const struct gw_item *item = &d->items[d->done % GW_QUEUE];

		d->ended_frames++;
		d->ended_bytes += gw_slot(d->gw, item)->wire_len;
		gw_unref(d->gw, item);
	}
}

/* One post, with a notice if @notice; as xfer_post() */
static int post_once(struct gw_dest *d, struct burst *b, bool notice, bool ask)
{
	struct gw_flight *f = &d->flights[d->flight_in % GW_FLIGHTS];
	const unsigned int nops = b->nops;
	int err;

	if (b->chunk)
		add_chunk(d, b, notice, ask);
	else if (notice)
		add_notice(d, b, ask);
	err = xfer_post(&d->xfers, &f->xfer, b->ops, b->nops, landed);
	if (err)
		b->nops = nops;
	return err;
}

/* True: it is on its way */
static bool post(struct gw_dest *d, struct burst *b, bool wanted, bool ask)
{
	struct gw_flight *f = &d->flights[d->flight_in % GW_FLIGHTS];
	/* No later chunk could bring the notice of one that fills the inbox. */
	const bool last = b->chunk && gw_pack_last(d, b->bytes);
	bool notice = (wanted || last) && b->nops < GW_OPS;
	int err = -EAGAIN;

	if (f->xfer.under_way)
		return false;
	f->dest = d;
	f->end = b->end;
	if (notice)
		err = post_once(d, b, true, ask);
	if (err == -EAGAIN && b->slots && !last) {
		/* perhaps only for want of a message's credit */
		notice = false;
		err = post_once(d, b, false, false);
	}
	if (err && err != -EAGAIN)
		__atomic_store_n(&d->dead, true, __ATOMIC_RELEASE);
	if (err)
		return false;
	sent(d, b, wanted, notice);
	if (notice && ask)
		d->asked = true;
	return true;
}

/* False: there is no room for a chunk now */
static bool begin(struct gw_dest *d, struct burst *b)
{
	b->end = d->posted;
	b->chunk = d->pack.size ? gw_pack_next(d) : NULL;
	return b->chunk || !d->pack.size;
}

/* Nothing fits: the node shall tell when something does, and what may is dropped */
static unsigned int stalled(struct rgate_gateway *gw, struct gw_dest *d)
{
	const struct gw_item *item = &d->items[d->posted % GW_QUEUE];
	struct burst b = { 0 };

	if (!d->asked) {
		gw_count(&d->info.stalls, 1);
		if (!begin(d, &b) || !post(d, &b, true, true))
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
		struct burst b = { 0 };

		if (!begin(d, &b))
			break;
		collect(gw, d, &b);
		if (!b.slots && !d->mail_due)
			return n + stalled(gw, d);
		if (!b.chunk)
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
