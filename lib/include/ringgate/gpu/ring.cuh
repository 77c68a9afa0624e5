/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The ring as a GPU sees it: the plain primitives, for kernels that go their own way.
 *
 *	struct rgate_dreader rd;
 *	rgate_dreader_init(&rd, ring, start, 0, 1);	(every batch)
 *	for (;;) {
 *		const struct rgate_slot *s = rgate_dreader_next(&rd);
 *		if (!s) { rgate_dpause(200); continue; }
 *		use((const unsigned char *)s + RGATE_SLOT_HDR, s->len);
 *		rgate_dreader_release(&rd);
 *	}
 *
 * Who sees a batch's last slot published sees all of it published, too (Documentation/abi.rst),
 * so one acquire load of that stands for 32. Polling is rationed for the
 * link's sake: two words in the common case, never 32 to learn that nothing is there.
 *
 * None of this is for rings with RGATE_POLICY_OVERWRITE.
 */
#ifndef RINGGATE_GPU_RING_CUH
#define RINGGATE_GPU_RING_CUH

#include <ringgate/ring.h>
#include <ringgate/gpu/port.cuh>

#define RGATE_DLOOK_BATCHES	31U	/* of which the ends are looked at, at most */
#define RGATE_DLOOK_AHEAD	128U	/* ... and which head may tell of */
#define RGATE_DLOOK_SLOTS	16U	/* looked at one by one, at most */

/* All pointers are the device's addresses of memory of the host */
struct rgate_dring {
	const unsigned char *slots;
	uint64_t *credits;
	const struct rgate_prod *prod;
	uint64_t mask;		/* slots - 1 */
	uint32_t lap_shift;	/* log2(slots) */
	uint32_t size_shift;	/* log2(slot size) */
	uint32_t chain;		/* frames may take several slots */
	uint32_t reserved;
};

RGATE_DEV const struct rgate_slot *rgate_dring_slot(const struct rgate_dring *r,
						    uint64_t pos)
{
	return (const struct rgate_slot *)(r->slots + ((pos & r->mask) << r->size_shift));
}

RGATE_DEV uint64_t rgate_dring_lap(const struct rgate_dring *r, uint64_t pos)
{
	return (pos >> r->lap_shift) + 1;
}

/* Frame bytes a slot holds */
RGATE_DEV uint32_t rgate_dring_room(const struct rgate_dring *r)
{
	return (1U << r->size_shift) - RGATE_SLOT_HDR;
}

/*
 * Is position @pos published? If so the slot's contents are visible, and of the last one of a
 * batch all others', too: the acquire pairs with the producer's release of seq.
 */
RGATE_DEV int rgate_dring_ready(const struct rgate_dring *r, uint64_t pos)
{
	return rgate_dsys_acquire(&rgate_dring_slot(r, pos)->seq) == rgate_dring_lap(r, pos);
}

/* The position of a batch's last slot */
RGATE_DEV uint64_t rgate_dring_last(uint64_t pos)
{
	return pos | (RGATE_BATCH - 1);
}

/*
 * How many batches from that on which ends at @last head tells of, @most at most: their slots are
 * published, and what head brought is visible. There may be more.
 */
RGATE_DEV uint32_t rgate_dring_told(const struct rgate_dring *r, uint64_t last, uint32_t most)
{
	uint64_t head = rgate_dsys_acquire(&r->prod->head);
	uint64_t n = head > last ? ((head - last - 1) >> RGATE_BATCH_SHIFT) + 1 : 0;

	return n < most ? (uint32_t)n : most;
}

/*
 * rgate_dring_await - a whole warp looks until something is published from @pos on
 * @batches: 1 to RGATE_DLOOK_AHEAD: batches of which the last slot is looked at; beyond
 *	RGATE_DLOOK_BATCHES there are no lanes, and one looks at head instead
 * @slots: 1 to RGATE_DLOOK_SLOTS: slots from @pos on, of its batch, that are looked at one by
 *	one; fewer where @batches leave fewer lanes
 * @looks: in: how often at most, out: how often
 * @pause_ns: between looks
 * @full: out, this many batches from that of @pos on are published to their ends
 * Returns how many slots from @pos on are published; if @full is not 0 those up to the
 * ends of these. One load a lane, all in flight together. What is not needed to see that
 * nothing is there is left out of the loop: the sooner it looks again the sooner it sees.
 */
RGATE_DEV uint32_t rgate_dring_await(const struct rgate_dring *r, uint64_t pos,
				     uint32_t batches, uint32_t slots, uint32_t *looks,
				     uint32_t pause_ns, uint32_t *full)
{
	const uint32_t ends = batches < RGATE_DLOOK_BATCHES ? batches : RGATE_DLOOK_BATCHES;
	/* the lanes from @first on look at single slots, or the last one at head */
	const uint32_t first = 32 - (slots < 32 - ends ? slots : 32 - ends);
	uint64_t last = rgate_dring_last(pos);
	uint32_t lane, mask = 0, told = 0, most = *looks;

	RGATE_DROLL
	for (*looks = 1;; ++*looks) {
		RGATE_DROLL
		for (lane = rgate_dlane(); lane < 32; lane += RGATE_DWARP) {
			uint64_t at = lane < ends ? last + (uint64_t)lane * RGATE_BATCH :
				      pos + lane - first;

			if (lane == 31 && batches > ends)
				told = rgate_dring_told(r, last, batches);
			else if ((lane < ends || (lane >= first && at <= last)) &&
				 rgate_dring_ready(r, at))
				mask |= 1U << lane;
		}
		mask = rgate_dwarp_or(mask);
		if (batches > ends)
			told = rgate_dwarp_or(told);
		if (mask || told || *looks == most)
			break;
		rgate_dpause(pause_ns);
	}
	rgate_dwarp_sync();	/* what one lane's acquire brought all lanes may read */
	*full = rgate_dones(mask & ((1U << ends) - 1));
	if (told > *full)
		*full = told;
	if (*full)
		return (uint32_t)(last + 1 - pos) + (*full - 1) * RGATE_BATCH;
	return rgate_dones(mask >> first);
}

/* The same, once */
RGATE_DEV uint32_t rgate_dring_look(const struct rgate_dring *r, uint64_t pos,
				    uint32_t batches, uint32_t slots, uint32_t *full)
{
	uint32_t looks = 1;

	return rgate_dring_await(r, pos, batches, slots, &looks, 0, full);
}

/*
 * rgate_dring_whole - makes a run of @n published slots one of whole frames
 * A chain is published slot by slot, so a run that ends inside a batch may end inside a
 * chain: it goes on to the chain's end if that is there, else stops before the chain.
 */
RGATE_DEV uint32_t rgate_dring_whole(const struct rgate_dring *r, uint64_t pos, uint32_t n)
{
	const struct rgate_slot *s;
	uint32_t idx, cnt;

	if (!r->chain || !n || ((pos + n) & (RGATE_BATCH - 1)) == 0)
		return n;
	s = rgate_dring_slot(r, pos + n - 1);
	idx = s->chain_idx;
	cnt = s->chain_cnt;
	if (idx + 1 >= cnt)
		return n;
	if (pos + n + cnt - idx - 2 <= rgate_dring_last(pos + n - 1) &&
	    rgate_dring_ready(r, pos + n + cnt - idx - 2))
		return n + cnt - idx - 1;
	return idx < n ? n - 1 - idx : 0;
}

/*
 * rgate_dring_release - the batch that @pos lies in is done with
 * To be called by one thread, after a barrier with all that have read of it.
 */
RGATE_DEV void rgate_dring_release(const struct rgate_dring *r, uint64_t pos)
{
	rgate_dsys_release(&r->credits[(pos & r->mask) >> RGATE_BATCH_SHIFT],
			   rgate_dring_lap(r, pos));
}

/*
 * Is there no whole frame from @pos on, however often one looks? Of a producer that has
 * ended nothing comes then: the beginning of a chain is no frame. One thread.
 */
RGATE_DEV int rgate_dring_bare(const struct rgate_dring *r, uint64_t pos)
{
	uint64_t last = rgate_dring_last(pos);
	uint32_t n = 0;

	if (rgate_dring_ready(r, last))
		return 0;
	/* as far as a look goes */
	RGATE_DROLL
	while (n < RGATE_DLOOK_SLOTS && pos + n < last && rgate_dring_ready(r, pos + n))
		n++;
	return !rgate_dring_whole(r, pos, n);
}

/*
 * The producer is gone or has retired this memory, and nothing comes from @pos on. Slots
 * tell, not head: state is stored after the last of them, and head may say anything.
 */
RGATE_DEV int rgate_dring_ended(const struct rgate_dring *r, uint64_t pos)
{
	return rgate_dsys_acquire32(&r->prod->state) != RGATE_STATE_ACTIVE &&
	       rgate_dring_bare(r, pos);
}

/*
 * rgate_dclaim - the next batch nobody has, from a counter in the device's memory
 * By one thread; how consumers of one ring agree where they do not go by number.
 */
RGATE_DEV uint64_t rgate_dclaim(uint64_t *counter)
{
	return rgate_dgpu_add(counter, 1);
}

/*
 * A consumer that is one thread, or a warp whose lanes all do the same. Several divide
 * a ring by number: the i-th of n takes batches i, i + n, ...
 */
struct rgate_dreader {
	const struct rgate_dring *r;
	uint64_t pos;		/* of the frame in hand, or to come */
	uint64_t seen;		/* published up to here */
	uint32_t parts;		/* slots of the frame in hand */
	uint32_t stride;
};

/* @start: position of a batch to begin with, as rgate_gpu_ring_view() has it */
RGATE_DEV void rgate_dreader_init(struct rgate_dreader *rd, const struct rgate_dring *r,
				  uint64_t start, uint32_t index, uint32_t count)
{
	uint64_t b = start >> RGATE_BATCH_SHIFT;

	b += (index + count - b % count) % count;
	rd->r = r;
	rd->pos = rd->seen = b << RGATE_BATCH_SHIFT;
	rd->parts = 0;
	rd->stride = count;
}

/* Published slots from rd->pos on, up to the end of the batch; 0: none */
RGATE_DEV uint32_t rgate_dreader_look(struct rgate_dreader *rd)
{
	uint64_t last = rgate_dring_last(rd->pos);

	if (rd->seen > rd->pos)
		return (uint32_t)(rd->seen - rd->pos);
	if (!rgate_dring_ready(rd->r, rd->pos))
		return 0;
	rd->seen = rd->pos + 1;
	if (rd->seen <= last && rgate_dring_ready(rd->r, last))
		rd->seen = last + 1;
	return (uint32_t)(rd->seen - rd->pos);
}

/* Done with @n slots */
RGATE_DEV void rgate_dreader_pass(struct rgate_dreader *rd, uint32_t n)
{
	uint64_t last = rgate_dring_last(rd->pos);

	rd->pos += n;
	rd->parts = 0;
	if (rd->seen < rd->pos)
		rd->seen = rd->pos;
	if (rd->pos <= last)
		return;
	rgate_dwarp_sync();
	if (rgate_dlane() == 0 || RGATE_DWARP == 1)
		rgate_dring_release(rd->r, last);
	rd->pos += (uint64_t)(rd->stride - 1) * RGATE_BATCH;
	rd->seen = rd->pos;
}

/*
 * rgate_dreader_next - the next frame's first slot, or a null pointer
 * Skips filler. rd->parts slots belong to it, all published.
 */
RGATE_DEV const struct rgate_slot *rgate_dreader_next(struct rgate_dreader *rd)
{
	const struct rgate_slot *s;
	uint64_t end;

	for (;;) {
		if (!rgate_dreader_look(rd))
			return NULL;
		s = rgate_dring_slot(rd->r, rd->pos);
		if (s->flags & (RGATE_SLOT_PAD | RGATE_SLOT_CONT)) {
			rgate_dreader_pass(rd, 1);
			continue;
		}
		rd->parts = s->chain_cnt > 1 ? s->chain_cnt : 1;
		end = rd->pos + rd->parts;
		if (end > rgate_dring_last(rd->pos) + 1) {	/* none that is right */
			rgate_dreader_pass(rd, 1);
			continue;
		}
		if (end > rd->seen && !rgate_dring_ready(rd->r, end - 1))
			return NULL;
		if (end > rd->seen)
			rd->seen = end;
		return s;
	}
}

RGATE_DEV void rgate_dreader_release(struct rgate_dreader *rd)
{
	rgate_dreader_pass(rd, rd->parts);
}

#endif
