/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Filling a memfd ring from this process: inline, no system call unless a
 * consumer sleeps.
 *
 *	rgate_producer_init(&p, ring);
 *	for (;;) {
 *		struct rgate_slot *s = rgate_producer_reserve(&p);
 *		if (!s) { rgate_producer_drop(&p); continue; }
 *		memcpy(rgate_producer_data(s), frame, n);
 *		rgate_producer_fill(&p, s, n, n);
 *		s->protocol = 0x0800;		(further header fields)
 *		rgate_producer_publish(&p);
 *		if (nothing_more_at_hand)
 *			rgate_producer_flush(&p);
 *	}
 *	rgate_producer_fini(&p);
 *
 * A producer belongs to one thread, and a ring has one producer at a time.
 *
 * Publishing is one release store into the slot; awake consumers see it at once.
 * rgate_prod.head and the counters are stored, and sleepers woken, once a batch
 * of RGATE_BATCH slots and by rgate_producer_flush(). So call flush whenever
 * nothing more is at hand: without it a consumer that sleeps may sleep on, with
 * up to RGATE_BATCH frames waiting for it.
 */
#ifndef RINGGATE_RGATE_PRODUCER_H
#define RINGGATE_RGATE_PRODUCER_H

#include <ringgate/rgate_ring.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_memfd;

/* Fields are private; they are here for the inline functions only. Not to be
 * copied while in use. */
struct rgate_producer {
	unsigned char *cur;	/* slot of head, while a batch is in hand */
	uint64_t head;		/* next position to fill */
	uint64_t limit;		/* end of the free part of the batch in hand */
	uint64_t lap;		/* of the batch in hand */
	unsigned char *slots;
	uint64_t mask;
	uint32_t lap_shift;
	uint32_t size_shift;
	uint64_t tstamp;	/* the three go into every header filled */
	uint64_t origin;	/* words 4, 5 (part) of the header, see _fill */
	uint32_t ifindex;
	uint32_t clock;		/* as the last word of the header has it */
	uint32_t policy;
	uint32_t gap;		/* frames lost since the last publish */
	uint64_t no_frames;	/* of head: filler, and 2nd and later parts */
	struct rgate_stats stats; /* stored to prod->stats once a batch */
	uint64_t free_end;	/* credits seen: free up to here */
	uint64_t flushed;	/* head at the last flush */
	const uint64_t *credits;
	struct rgate_prod *prod;
	struct rgate_memfd *core;
	uint32_t full;		/* the last reserve found no room */
	uint32_t chain;		/* longer frames are chained */
	uint32_t generation;
	uint32_t pinned;	/* no resize now */
	uint64_t reserved[8];	/* room to grow */
};

/*
 * rgate_producer_init - become the producer of a memfd ring of this process
 * @p: caller's; end with rgate_producer_fini()
 * A ring whose last producer ended goes on where that one stopped, and its state
 * becomes RGATE_STATE_ACTIVE again.
 * -EBUSY: the ring has a producer; -EOPNOTSUPP: not a memfd ring made by this
 * process.
 */
RGATE_API int rgate_producer_init(struct rgate_producer *p,
				  struct rgate_ring *ring);

/*
 * rgate_producer_fini - publish head, mark the ring closed, wake who sleeps
 * A slot reserved and not published is given up.
 */
RGATE_API void rgate_producer_fini(struct rgate_producer *p);

/*
 * rgate_producer_flush - all published so far is accounted, and sleepers woken
 * Stores head and counters, then one full fence, then looks at the wait words.
 * Against the full fence of rgate_consumer_arm(): either this sees the wait word
 * or that sees the slot, so no wakeup is lost. A few ns when nothing was
 * published since the last flush. Also the point where a resize takes effect
 * (it does at batch ends, too): slots reserved before are gone after it.
 */
RGATE_API void rgate_producer_flush(struct rgate_producer *p);

/* rgate_producer_stamp - reads the ring's clock (vDSO, about 25 ns) for the
 * headers filled from now on */
RGATE_API void rgate_producer_stamp(struct rgate_producer *p);

/* rgate_producer_drop - counts a frame that found no slot, by the ring's policy:
 * as passed under RGATE_POLICY_PASS, else as dropped. The next frame published
 * tells in `gap`. */
RGATE_API void rgate_producer_drop(struct rgate_producer *p);

/*
 * rgate_producer_write - copy one frame in: reserve, fill, publish
 * @hdr: header fields to take over (all but seq, tstamp, len, wire_len, chain_*,
 *	gap, clock, cpu, and the RGATE_SLOT_TRUNC, PAD, CONT flags); NULL: none
 * @len: bytes at @data, at least 0
 * @wire_len: bytes of the whole frame, >= @len
 * Frames longer than a slot are chained if the ring chains, and cut after a slot
 * or RGATE_CHAIN_MAX slots. Returns 0 or -ENOBUFS: no room (not counted; see
 * rgate_producer_drop()).
 */
RGATE_API int rgate_producer_write(struct rgate_producer *p,
				   const struct rgate_slot *hdr,
				   const void *data, size_t len, size_t wire_len);

/*
 * rgate_producer_reserve_chain - @n free slots of one batch, or NULL: no room
 * @n: 1 to RGATE_CHAIN_MAX
 * Publishes filler where the batch in hand has fewer than @n left. Returns the
 * first; the others are rgate_producer_slot(p, p->head + i). Publish them all
 * with rgate_producer_publish_chain(). Only in rings with RGATE_RING_CHAIN.
 */
RGATE_API struct rgate_slot *rgate_producer_reserve_chain(struct rgate_producer *p,
							  unsigned int n);

/* rgate_producer_publish_chain - the @n slots reserved and filled, each with
 * rgate_producer_fill_part() */
RGATE_API void rgate_producer_publish_chain(struct rgate_producer *p,
					    unsigned int n);

/* Slow path of rgate_producer_reserve(): every RGATE_BATCH slots, and when full */
RGATE_API bool rgate_producer_refill(struct rgate_producer *p);

/* rgate_producer_sleepers - does any handle's wait word ask to be woken? */
RGATE_API bool rgate_producer_sleepers(const struct rgate_producer *p);

/* rgate_producer_wake - wakes the handles whose position is published.
 * rgate_producer_flush() calls it. */
RGATE_API void rgate_producer_wake(struct rgate_producer *p);

static inline struct rgate_slot *
rgate_producer_slot(const struct rgate_producer *p, uint64_t pos)
{
	return (struct rgate_slot *)
		(p->slots + ((pos & p->mask) << p->size_shift));
}

static inline void *rgate_producer_data(struct rgate_slot *s)
{
	return (unsigned char *)s + RGATE_SLOT_HDR;
}

/* rgate_producer_room - frame bytes a slot holds */
static inline size_t rgate_producer_room(const struct rgate_producer *p)
{
	return ((size_t)1 << p->size_shift) - RGATE_SLOT_HDR;
}

/*
 * rgate_producer_reserve - the next free slot, or NULL: the ring is full
 * Credits are looked at once a batch at most. Under RGATE_POLICY_OVERWRITE there
 * always is one: its seq becomes RGATE_SEQ_BUSY before it is given out. Asking
 * again before publishing gives the same slot.
 */
static inline struct rgate_slot *
rgate_producer_reserve(struct rgate_producer *p)
{
	struct rgate_slot *s;

	if (__builtin_expect(p->head == p->limit, 0) &&
	    !rgate_producer_refill(p))
		return NULL;
	s = (struct rgate_slot *)p->cur;
	if (__builtin_expect(p->policy == RGATE_POLICY_OVERWRITE, 0)) {
		__atomic_store_n(&s->seq, RGATE_SEQ_BUSY, __ATOMIC_RELAXED);
		/* busy is visible before any byte of the new frame */
		__atomic_thread_fence(__ATOMIC_RELEASE);
	}
	return s;
}

/* Zeroes [len, next multiple of 64) without a call: 1 to 63 bytes */
static inline void rgate_producer_zero_tail_(unsigned char *data, size_t len)
{
	unsigned char *p = data + len;
	size_t n = -len & 63;
	const uint64_t zero = 0;

	if (n >= 8) {
		memcpy(p, &zero, 8);	/* the one that is not aligned */
		for (p = data + ((len + 7) & ~(size_t)7); p < data + len + n; p += 8)
			memcpy(p, &zero, 8);
		return;
	}
	if (n & 4) {
		memcpy(p, &zero, 4);
		p += 4;
	}
	if (n & 2) {
		memcpy(p, &zero, 2);
		p += 2;
	}
	if (n & 1)
		*p = 0;
}

typedef uint64_t __attribute__((may_alias)) rgate_producer_word_;

/* Two u32 (the second may hold four u8), or four u16, in memory order */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define RGATE_PRODUCER_PAIR_(a, b) ((uint64_t)(a) << 32 | (b))
#define RGATE_PRODUCER_LINK_	0xfffeULL
#define RGATE_PRODUCER_OFFS_	0xffffffffffff0001ULL
#else
#define RGATE_PRODUCER_PAIR_(a, b) ((uint64_t)(b) << 32 | (a))
#define RGATE_PRODUCER_LINK_	(0xfffeULL << 48)
#define RGATE_PRODUCER_OFFS_	0x0100ffffffffffffULL
#endif

/*
 * rgate_producer_fill - the whole header but seq, and the zero tail of the frame
 * @s: reserved; its data is written already, or will be before publishing
 * @len: frame bytes in this slot, 0 to rgate_producer_room()
 * @wire_len: bytes of the whole frame, at least @len
 * The time is that of the last rgate_producer_stamp(). Offsets are set to
 * RGATE_OFF_NONE, flags to 0 or RGATE_SLOT_TRUNC, the rest to 0. Set what is
 * known after this, before publishing.
 */
static inline void rgate_producer_fill(struct rgate_producer *p,
				       struct rgate_slot *s, uint32_t len,
				       uint32_t wire_len)
{
	/* Words rather than fields: few wide stores. seq is left alone, as
	 * consumers may be reading it. */
	rgate_producer_word_ *w = (rgate_producer_word_ *)s;

	w[1] = p->tstamp;
	w[2] = RGATE_PRODUCER_PAIR_(len, wire_len);
	w[3] = RGATE_PRODUCER_PAIR_(wire_len > len ? RGATE_SLOT_TRUNC : 0, p->ifindex);
	w[4] = p->origin;			/* hash 0, queue 0, cpu */
	w[5] = RGATE_PRODUCER_LINK_;		/* no VLAN, protocol 0, ARPHRD_NONE */
	w[6] = RGATE_PRODUCER_OFFS_;		/* no offsets, slot 0 of 1 */
	w[7] = RGATE_PRODUCER_PAIR_(p->gap, p->clock);
	rgate_producer_zero_tail_((unsigned char *)rgate_producer_data(s), len);
}

/*
 * rgate_producer_fill_part - as rgate_producer_fill(), for slot @i of a chain
 * @n: slots of the chain
 * @len: frame bytes in this slot
 * @total: frame bytes in all of them
 * @wire_len: bytes of the whole frame, at least @total
 */
static inline void rgate_producer_fill_part(struct rgate_producer *p,
					    struct rgate_slot *s, unsigned int i,
					    unsigned int n, uint32_t len,
					    uint32_t total, uint32_t wire_len)
{
	rgate_producer_fill(p, s, len, wire_len);
	s->flags = (wire_len > total ? RGATE_SLOT_TRUNC : 0) |
		   (i ? RGATE_SLOT_CONT : 0);
	s->chain_idx = (uint8_t)i;
	s->chain_cnt = (uint8_t)n;
}

/*
 * rgate_producer_publish - hands the slot reserved and filled to the consumers
 * All that was written to the slot comes before the seq that is stored here with
 * release. No fence: see rgate_producer_flush() for sleeping consumers.
 */
static inline void rgate_producer_publish(struct rgate_producer *p)
{
	struct rgate_slot *s = (struct rgate_slot *)p->cur;

	p->stats.bytes += s->len;
	if (__builtin_expect(s->flags & RGATE_SLOT_TRUNC, 0))
		p->stats.truncated++;
	if (__builtin_expect(p->gap != 0, 0))
		p->gap = 0;
	__atomic_store_n(&s->seq, p->lap, __ATOMIC_RELEASE);
	/* a batch is in one piece; refill goes to the next */
	p->cur += (size_t)1 << p->size_shift;
	p->head++;
}

#ifdef __cplusplus
}
#endif
#endif
