/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * An output ring: the same layout, with the GPU as the producer and rgate_consumer_*()
 * of the CPU at the other end, or the module, of a transmit ring. Warps divide the slots
 * among themselves by counters in the device's memory; of the host's words each is stored
 * by one warp at a time:
 *
 *	reserve		slots, by a counter; room is known from the credits, which one
 *			warp at a time reads, 32 of them in one go
 *	write		header and frame, whole warps side by side
 *	publish		seq of each, with release, but of a batch's last slot that of who
 *			completes the batch; then, in the order of reservation, tail
 *	tell		head and the counters, now and then: who takes answers looks at seq
 */
#ifndef RINGGATE_GPU_OUT_CUH
#define RINGGATE_GPU_OUT_CUH

#include <ringgate/gpu/poll.cuh>

#define RGATE_DOUT_FULL		(~0ULL)

RGATE_DEV struct rgate_slot *rgate_dout_slot(const struct rgate_dout *o, uint64_t pos)
{
	return (struct rgate_slot *)(o->slots + ((pos & o->mask) << o->size_shift));
}

RGATE_DEV uint32_t rgate_dout_room(const struct rgate_dout *o)
{
	return (1U << o->size_shift) - RGATE_SLOT_HDR;
}

/*
 * The whole warp, holding the lock: reads the next 32 credits. A batch may be entered
 * for a lap once its credit is that of the lap before; the acquire orders the consumer's
 * reads of the slots before the writes that follow. Returns how many there were.
 */
RGATE_DEV uint32_t rgate_dout_scan(const struct rgate_dout *o)
{
	struct rgate_doutstate *st = o->state;
	uint64_t limit = rgate_dgpu_load(&st->limit), b = limit >> RGATE_BATCH_SHIFT;
	uint64_t batches = (o->mask + 1) >> RGATE_BATCH_SHIFT;
	uint32_t lane, mask = 0, n;

	RGATE_DROLL
	for (lane = rgate_dlane(); lane < 32 && lane < batches; lane += RGATE_DWARP) {
		uint64_t lap = (b + lane) >> (o->lap_shift - RGATE_BATCH_SHIFT);

		if (rgate_dsys_acquire(&o->credits[(b + lane) & (batches - 1)]) == lap)
			mask |= 1U << lane;
	}
	mask = rgate_dwarp_or(mask);
	n = rgate_dones(mask);
	rgate_dwarp_sync();
	if (rgate_dlane() == 0 && n)
		rgate_dgpu_release(&st->limit, limit + (uint64_t)n * RGATE_BATCH);
	rgate_dwarp_sync();
	return n;
}

/*
 * One thread, holding the lock: tells the host how far the ring is. Everything before tail
 * is published: the acquire brings it, and the release hands it on.
 */
RGATE_DEV void rgate_dout_tell(const struct rgate_dout *o)
{
	struct rgate_doutstate *st = o->state;
	uint64_t tail = rgate_dgpu_acquire(&st->tail);

	rgate_dsys_store(&o->prod->stats.dropped_full, rgate_dgpu_load(&st->dropped));
	if (tail == st->told)
		return;
	rgate_dsys_store(&o->prod->stats.delivered, rgate_dgpu_load(&st->frames));
	rgate_dsys_store(&o->prod->stats.bytes, rgate_dgpu_load(&st->bytes));
	rgate_dsys_release(&o->prod->head, tail);
	st->told = tail;
}

/* One thread: the same, unless another is at it */
RGATE_DEV void rgate_dout_report(const struct rgate_dout *o)
{
	if (rgate_dgpu_cas(&o->state->lock, 0, 1))
		return;
	rgate_dout_tell(o);
	rgate_dgpu_release(&o->state->lock, 0);
}

/*
 * The whole warp: more room, read by this warp or another? 1: there is none, as a look at
 * the credits has found that began after @since was read of vain: this warp's, or the second
 * one since. That another has the lock says nothing: it may be telling the host.
 */
RGATE_DEV uint64_t rgate_dout_refill(const struct rgate_dout *o, uint64_t since)
{
	struct rgate_doutstate *st = o->state;
	uint64_t none, got = 0;

	if (rgate_dlane() == 0)
		got = rgate_dgpu_cas(&st->lock, 0, 1) == 0;
	if (!rgate_dwarp_first(got)) {
		rgate_dpause(200);
		return rgate_dwarp_first(rgate_dgpu_load(&st->vain) > since + 1);
	}
	/* all lanes load limit next: the barrier hands on what lane 0's exchange acquired */
	rgate_dwarp_sync();
	none = !rgate_dout_scan(o);
	if (rgate_dlane() == 0) {
		if (none)
			rgate_dgpu_add(&st->vain, 1);
		/* a consumer that sleeps is woken by head alone: it may be who makes room */
		rgate_dout_tell(o);
		rgate_dgpu_release(&st->lock, 0);
	}
	return none;
}

/*
 * What a thread knows of head and limit. Both only grow: what was acquired of limit holds
 * for good, and a head that is behind makes the exchange fail, which then tells it. So an
 * answer costs one round to the device's memory in the usual case, not three.
 */
struct rgate_dhint {
	uint64_t head;
	uint64_t limit;
};

/* One thread: @n slots, if there are, from *@pos on; @part: or as many as there are. How many */
RGATE_DEV uint32_t rgate_dout_take(struct rgate_doutstate *st, struct rgate_dhint *hint,
				   uint32_t n, uint32_t part, uint64_t *pos)
{
	for (;;) {
		uint64_t head = hint->head, was;
		uint32_t got = n;

		if (head + n > hint->limit) {
			/* acquire: who stored limit has seen the credits */
			hint->limit = rgate_dgpu_acquire(&st->limit);
			if (head + n > hint->limit)
				got = part && hint->limit > head ?
				      (uint32_t)(hint->limit - head) : 0;
			if (!got)
				return 0;
		}
		was = rgate_dgpu_cas(&st->head, head, head + got);
		hint->head = was == head ? head + got : was;
		if (was == head) {
			*pos = head;
			return got;
		}
	}
}

/* The whole warp, refused @tries times: has it come to an end? */
RGATE_DEV uint64_t rgate_dout_over(const struct rgate_dctx *ctx, uint32_t tries, uint64_t none)
{
	uint64_t over = 0;

	if (!ctx->out.wait)
		return none;
	if (tries <= 2)
		return 0;
	/* a launch that is to return for another reason does so once there is room */
	if (rgate_dlane() == 0)
		over = rgate_dsys_load(&ctx->ctl->drop) != 0;
	over = rgate_dwarp_first(over);
	if (!over)
		rgate_dpause(500);
	return over;
}

/*
 * rgate_dout_reserve - the whole warp: slots, not of one batch necessarily
 * @n: in: wanted, 1 to 32; out: got
 * Returns the first position. Full: where the ring drops, as many as there is room for, and
 * RGATE_DOUT_FULL if there is none; the others are counted as dropped. Else it waits, until
 * the user stops the kernel.
 */
RGATE_DEV uint64_t rgate_dout_reserve(const struct rgate_dctx *ctx, struct rgate_dhint *hint,
				      uint32_t *n)
{
	struct rgate_doutstate *st = ctx->out.state;
	uint64_t pos = RGATE_DOUT_FULL, since = 0, none = 0, over = 0;
	uint32_t tries, got;

	RGATE_DROLL
	for (tries = 1;; tries++) {
		got = 0;
		if (rgate_dlane() == 0)
			got = rgate_dout_take(st, hint, *n, over != 0, &pos);
		got = (uint32_t)rgate_dwarp_first(got);
		if (got || over)
			break;
		over = rgate_dout_over(ctx, tries, none);
		if (over)
			continue;
		if (tries == 1)
			since = rgate_dgpu_load(&st->vain);
		none = rgate_dout_refill(&ctx->out, since);
	}
	if (rgate_dlane() == 0 && got < *n)
		rgate_dgpu_add(&st->dropped, *n - got);
	*n = got;
	/* what lane 0 acquired of limit comes before all lanes' writes to the slots */
	rgate_dwarp_sync();
	return rgate_dwarp_first(pos);
}

/*
 * rgate_dout_header - one thread: the whole header but seq
 * @hdr: fields to take over as rgate_producer_write() does, or null
 * @flags: of its flags these, as rgate_dout.flags has them
 */
RGATE_DEV void rgate_dout_header(struct rgate_slot *s, const struct rgate_slot *hdr,
				 uint32_t len, uint32_t flags)
{
	struct rgate_slot h;

	/* all of it is read before any is written: nobody knows that they are not the same */
	if (hdr) {
		h = *hdr;
	} else {
		h.tstamp = 0;
		h.flags = 0;
		h.ifindex = 0;
		h.hash = 0;
		h.queue = 0;
		h.vlan_tci = 0;
		h.vlan_proto = 0;
		h.protocol = 0;
		h.dev_type = 0xfffe;	/* ARPHRD_NONE */
		h.l3_off = h.l4_off = h.payload_off = RGATE_OFF_NONE;
		h.clock = 0;
		h.ip_proto = 0;
	}
	s->tstamp = h.tstamp;
	s->len = len;
	s->wire_len = len;
	s->flags = h.flags & flags;
	s->ifindex = h.ifindex;
	s->hash = h.hash;
	s->queue = h.queue;
	s->cpu = 0;
	s->vlan_tci = h.vlan_tci;
	s->vlan_proto = h.vlan_proto;
	s->protocol = h.protocol;
	s->dev_type = h.dev_type;
	s->l3_off = h.l3_off;
	s->l4_off = h.l4_off;
	s->payload_off = h.payload_off;
	s->chain_idx = 0;
	s->chain_cnt = 1;
	s->gap = 0;
	s->clock = h.clock;
	s->ip_proto = h.ip_proto;
	s->pkt_type = 4;	/* PACKET_OUTGOING */
	s->reserved = 0;
}

/*
 * One thread: @n slots of a batch, from @pos on, are shown, but for the batch's last one. That is
 * shown by who completes the count, which comes after all that was added to it: so who sees the
 * last slot may take the whole batch, as rgate_dring_look() does, and nobody waits for anybody.
 */
RGATE_DEV void rgate_dout_fill(const struct rgate_dout *o, uint64_t pos, uint32_t n)
{
	uint32_t *count = &o->filled[(pos & o->mask) >> RGATE_BATCH_SHIFT];
	uint64_t lap = (pos >> o->lap_shift) + 1;

	/* the count goes on from lap to lap, and may wrap */
	if (rgate_dgpu_add32(count, n) + n == (uint32_t)lap * RGATE_BATCH)
		rgate_dsys_release(&rgate_dout_slot(o, rgate_dring_last(pos))->seq, lap);
}

/* Slots from @pos to the end of its batch, if @n go that far; else 0 */
RGATE_DEV uint32_t rgate_dout_to_end(uint64_t pos, uint32_t n)
{
	uint32_t to = RGATE_BATCH - (uint32_t)(pos & (RGATE_BATCH - 1));

	return n < to ? 0 : to;
}

/*
 * rgate_dout_show - the whole warp: the @n slots from @pos on are written
 * @n: 1 to 32
 * Who looks at the slots sees them from now on; a batch's last one once the others are there.
 * Their turn is to be passed on then.
 */
RGATE_DEV void rgate_dout_show(const struct rgate_dout *o, uint64_t pos, uint32_t n)
{
	uint32_t i, ends = rgate_dout_to_end(pos, n);

	/* the barrier gives each lane all lanes' writes, its fence those to the system */
	rgate_dwarp_sync();
	rgate_dsys_fence();
	RGATE_DROLL
	for (i = rgate_dlane(); i < n; i += RGATE_DWARP)
		if (i + 1 != ends)
			rgate_dsys_store(&rgate_dout_slot(o, pos + i)->seq,
					 ((pos + i) >> o->lap_shift) + 1);
	rgate_dwarp_sync();
	/* who has the end is the last as a rule: at once, the rest of the count may wait */
	if (ends && rgate_dlane() == 0)
		rgate_dout_fill(o, pos, ends);
}

/*
 * rgate_dout_pass - one thread: counts what was shown, and passes the turn on
 * @bytes: of the frames together
 * All who have slots of a batch come by here, so tail goes beyond it once its last slot is shown.
 */
RGATE_DEV void rgate_dout_pass(const struct rgate_dout *o, uint64_t pos, uint32_t n,
			       uint64_t bytes)
{
	uint32_t ends = rgate_dout_to_end(pos, n);
	struct rgate_doutstate *st = o->state;

	if (ends < n)
		rgate_dout_fill(o, pos + ends, n - ends);
	rgate_dgpu_add(&st->frames, n);
	rgate_dgpu_add(&st->bytes, bytes);
	while (rgate_dgpu_acquire(&st->tail) != pos)
		rgate_dpause(32);
	rgate_dgpu_release(&st->tail, pos + n);
}

/* The whole warp: both */
RGATE_DEV void rgate_dout_publish(const struct rgate_dout *o, uint64_t pos, uint32_t n,
				  uint64_t bytes)
{
	rgate_dout_show(o, pos, n);
	if (rgate_dlane() == 0)
		rgate_dout_pass(o, pos, n, bytes);
	rgate_dwarp_sync();
}

#endif
