/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Taking frames out of a ring: the hot path, inline and without system calls.
 *
 *	struct rgate_consumer c;
 *	rgate_consumer_init(&c, ring, NULL);
 *	for (;;) {
 *		const struct rgate_slot *s = rgate_consumer_next(&c);
 *		if (!s) { rgate_consumer_wait(&c, 1000); continue; }
 *		use(rgate_slot_data(s), s->len);
 *		rgate_consumer_release(&c);
 *	}
 *
 * A consumer belongs to one thread. Several consumers on one ring agree who
 * takes which batch of RGATE_BATCH slots: who is free takes the next
 * (RGATE_TAKE_SHARED), or by number (RGATE_TAKE_STRIDE). Frames are in order
 * within a batch, and batches are taken in order, but for those of the dead.
 *
 * Under RGATE_TAKE_SHARED the batch of a consumer that died (its ring handle was closed,
 * however its process ended) is taken over by another one, see enum rgate_orphan; not in
 * rings that overwrite, nor in those of producers without RGATE_FEAT_OWNERS. What
 * a consumer has in hand that stopped being used while its handle lives stays with it:
 * call rgate_consumer_fini().
 *
 * A consumer sleeps on its ring handle's wait word, and rgate_consumer_wait() may
 * map the ring anew after a resize: give each thread that waits a handle of its
 * own (rgate_ring_dup()). Consumers that only poll may share a handle.
 *
 * Slots given out stay valid until released, and are returned to the producer
 * when their whole batch is released. In a ring with RGATE_POLICY_OVERWRITE the
 * producer may overwrite them any time: copy out, then ask
 * rgate_consumer_intact() whether the copy is good, and where it is not call
 * rgate_consumer_resync() (rgate_consumer_copy() does all of it).
 *
 * The kernel and the sources of this library never publish a len beyond the slot.
 * In a memfd ring got from a process that is not trusted any header field may be
 * wrong and may change while it is read: bound it, or use rgate_consumer_copy(),
 * which does.
 */
#ifndef RINGGATE_RGATE_CONSUMER_H
#define RINGGATE_RGATE_CONSUMER_H

#include <ringgate/rgate_ring.h>
#include <ringgate/rgate_spin.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rgate_take {
	RGATE_TAKE_ALL = 0,	/* the only consumer */
	RGATE_TAKE_SHARED = 1,	/* who is free claims the next batch */
	RGATE_TAKE_STRIDE = 2,	/* batches index, index + count, ... */
};

/* What becomes of a batch whose consumer died, under RGATE_TAKE_SHARED */
enum rgate_orphan {
	RGATE_ORPHAN_REREAD = 0, /* another consumer reads it, from its beginning */
	RGATE_ORPHAN_SKIP = 1,	/* what was published of it is passed over, and counted */
};

/*
 * How often rgate_consumer_wait() looks, at first, whether a consumer of a memfd ring
 * died; one with an event loop of its own should arm again as often.
 */
#define RGATE_ORPHAN_MS	50

struct rgate_consumer_opts {
	size_t sz;
	uint32_t take;		/* enum rgate_take */
	uint32_t index;		/* RGATE_TAKE_STRIDE: 0 to count - 1 */
	uint32_t count;
	uint32_t spin_us;	/* rgate_consumer_wait(): polls so long at most, see rgate_spin.h;
				 * 0: by the number of CPUs; RGATE_SPIN_NONE */
	uint32_t orphans;	/* enum rgate_orphan */
};

/* Fields are private; they are here for the inline functions only. */
struct rgate_consumer {
	const unsigned char *cur; /* slot of done, while a batch is in hand */
	uint64_t done;		/* first position not yet released */
	uint64_t end;		/* end of the batch in hand */
	uint64_t lap;		/* of the batch in hand */
	uint64_t pos;		/* end of the frame in hand */
	const unsigned char *slots;
	uint64_t mask;		/* slots - 1 */
	uint32_t lap_shift;	/* log2(slots) */
	uint32_t size_shift;	/* log2(slot size) */
	uint64_t *credits;
	const struct rgate_prod *prod;
	struct rgate_cons *cons;
	uint32_t take;
	uint32_t index;
	uint32_t count;
	uint32_t overwrite;
	uint64_t lost;		/* slots the producer overwrote under us */
	struct rgate_ring *ring;
	uint32_t handle;
	uint32_t generation;
	uint32_t relax;		/* pauses at the next miss */
	uint64_t check_end;	/* below: others may have returned batches */
	uint64_t missed;	/* position last found empty */
	uint64_t *owners;	/* owner words, NULL: not used */
	uint64_t closed;	/* rgate_prod.closed when all batches were looked at */
	uint64_t look;		/* batch to look at next */
	uint32_t life;		/* of this handle */
	uint16_t idle;		/* looks in vain */
	uint8_t naps;		/* sleeps in vain */
	uint8_t orphans;	/* enum rgate_orphan */
	struct rgate_spin spin;
	uint64_t reserved[8];	/* room to grow */
};

/*
 * rgate_consumer_init - begin at the oldest batch that was not returned
 * @c: caller's; needs no clean-up
 * @opts: NULL: RGATE_TAKE_ALL, waits as suits the machine
 * A consumer that takes over from a dead one, alone or by the same number, thus sees
 * again what that one had not returned, and not what had been. Under RGATE_TAKE_SHARED
 * it is one more among the others, and may come at any time.
 * -EOPNOTSUPP: a ring with RGATE_RING_TRANSMIT, whose frames the module takes;
 * -EINVAL: unknown take or orphans, index not below count, or more than RGATE_SPIN_MOST.
 */
RGATE_API int rgate_consumer_init(struct rgate_consumer *c,
				  struct rgate_ring *ring,
				  const struct rgate_consumer_opts *opts);

/*
 * rgate_consumer_reset_claim - nobody has a batch, and the next to be claimed is the
 * oldest not returned. For consumers of one process that begin anew on handles that
 * live on; only while no RGATE_TAKE_SHARED consumer runs on the ring.
 */
RGATE_API void rgate_consumer_reset_claim(struct rgate_ring *ring);

/*
 * rgate_consumer_fini - end before the ring does
 * Under RGATE_TAKE_SHARED what is left of the batch in hand goes to the other consumers:
 * frames that were released are not seen again, the others are. Without it they see all
 * of the batch once the handle is closed. Otherwise it has no effect.
 */
RGATE_API void rgate_consumer_fini(struct rgate_consumer *c);

/* Slow path of the inline functions below: the next batch. 0: got one */
RGATE_API int rgate_consumer_advance_slow(struct rgate_consumer *c);

/*
 * Slow path: the slot in hand is not published. True: nothing is there; false:
 * look again. The first time for a position it lets some tens to hundreds of ns
 * pass: a consumer that hangs on the slot being written slows both down by a
 * multiple, as its cache line goes to and fro with every store.
 */
RGATE_API bool rgate_consumer_miss(struct rgate_consumer *c);

/*
 * rgate_consumer_resync - the producer overwrote what is in hand: go on with the
 * oldest batch that is likely to last, counting what was lost. No effect while
 * the slot in hand is still whole.
 */
RGATE_API void rgate_consumer_resync(struct rgate_consumer *c);

/*
 * rgate_consumer_arm - ask that the ring's fd becomes readable once there is
 * something to take, for an event loop of the caller's.
 * Returns 1: there is already (nothing is armed then); 0: armed, now sleep, and
 * call rgate_consumer_disarm() afterwards whatever woke the caller; -EPIPE: the
 * producer is gone and all is drained; or what mapping a resized ring says.
 * Follows a resize as rgate_consumer_wait() does. A wait word is armed with a
 * full fence before the slot is looked at again: pairs with the producer's fence
 * between publishing and looking at the wait words.
 */
RGATE_API int rgate_consumer_arm(struct rgate_consumer *c);
RGATE_API void rgate_consumer_disarm(struct rgate_consumer *c);

/*
 * rgate_consumer_wait - poll for a while, then sleep, until there is something to take
 * @timeout_ms: -1: no limit; 0: only look
 * How long it polls is learned from wait to wait (rgate_spin.h), so who has nothing else
 * to do calls this whenever rgate_consumer_next() has nothing.
 * Returns 1: there is; 0: time is up; -EINTR; -EPIPE: the producer is gone and
 * all is drained; or what mapping a resized ring says. Follows a resize by itself:
 * maps the new memory once the old is drained (slots given out before are then
 * invalid, so release them first).
 */
RGATE_API int rgate_consumer_wait(struct rgate_consumer *c, int timeout_ms);

/* rgate_consumer_waits - what the waits of this consumer came to; @out->sz is set by the
 * caller. From any thread. */
RGATE_API int rgate_consumer_waits(const struct rgate_consumer *c, struct rgate_waits *out);

/* Resyncs in one call: a producer that lies could ask for them for ever. */
#define RGATE_RESYNC_MAX	64

static inline const void *rgate_slot_data(const struct rgate_slot *s)
{
	return (const unsigned char *)s + RGATE_SLOT_HDR;
}

static inline const struct rgate_slot *
rgate_consumer_slot(const struct rgate_consumer *c, uint64_t pos)
{
	return (const struct rgate_slot *)
		(c->slots + ((pos & c->mask) << c->size_shift));
}

static inline uint64_t rgate_consumer_lap(const struct rgate_consumer *c,
					  uint64_t pos)
{
	return (pos >> c->lap_shift) + 1;
}

/*
 * Is position @pos published? 1: yes, and the slot's contents are visible (the
 * acquire pairs with the producer's release of seq); 0: not yet; -1: it has
 * been overwritten by a later lap.
 */
static inline int rgate_consumer_ready(const struct rgate_consumer *c,
				       uint64_t pos)
{
	uint64_t seq = __atomic_load_n(&rgate_consumer_slot(c, pos)->seq,
				       __ATOMIC_ACQUIRE);
	uint64_t lap = rgate_consumer_lap(c, pos);

	if (__builtin_expect(seq == lap, 1))
		return 1;
	return seq > lap ? -1 : 0;
}

/*
 * rgate_consumer_peek - the slots that are ready, in order, without copying
 * @v: out, @max entries
 * Returns how many, up to the end of the batch in hand; 0: none yet. Includes
 * filler slots (RGATE_SLOT_PAD) and the continuation slots of chains. Call
 * rgate_consumer_release_n() for as many as are done with, oldest first.
 * Positions already peeked are given again until released.
 */
static inline unsigned int rgate_consumer_peek(struct rgate_consumer *c,
					       const struct rgate_slot **v,
					       unsigned int max)
{
	const size_t stride = (size_t)1 << c->size_shift;
	unsigned int n, most, tries = 0;
	const unsigned char *next;
	uint64_t lap;

	for (;;) {
		if (c->done == c->end && rgate_consumer_advance_slow(c))
			return 0;
		/* A batch lies in one piece and in one lap, which the loop need not ask for. */
		next = c->cur;
		lap = c->lap;
		most = c->end - c->done < max ? (unsigned int)(c->end - c->done) : max;
		for (n = 0; n < most; n++, next += stride) {
			const struct rgate_slot *s = (const struct rgate_slot *)next;

			if (__builtin_expect(__atomic_load_n(&s->seq, __ATOMIC_ACQUIRE) !=
					     lap, 0))
				break;
			v[n] = s;
		}
		if (n || !max || rgate_consumer_miss(c) || ++tries == RGATE_RESYNC_MAX)
			return n;
	}
}

/*
 * rgate_consumer_release_n - done with the @n oldest slots in hand
 * Once the batch is complete its credit is stored with release: all reads of
 * its slots come before the producer's acquire of the credit.
 */
static inline void rgate_consumer_release_n(struct rgate_consumer *c,
					    unsigned int n)
{
	c->done += n;
	c->cur += (size_t)n << c->size_shift;
	if (c->pos < c->done)
		c->pos = c->done;
	if (c->done == c->end && n)
		__atomic_store_n(&c->credits[((c->end - 1) & c->mask) >>
					     RGATE_BATCH_SHIFT],
				 c->lap, __ATOMIC_RELEASE);
}

/*
 * rgate_consumer_next - the next frame, or NULL if none is there yet
 * Skips filler. For a chained frame (chain_cnt > 1) all its slots are ready:
 * rgate_consumer_parts() of them, each by rgate_consumer_part(). One frame at a
 * time: asking again before releasing gives the same frame.
 */
static inline const struct rgate_slot *
rgate_consumer_next(struct rgate_consumer *c)
{
	unsigned int tries = 0;

	for (;;) {
		const struct rgate_slot *s;
		unsigned int cnt;

		if (__builtin_expect(c->done == c->end, 0) &&
		    rgate_consumer_advance_slow(c))
			return NULL;
		s = (const struct rgate_slot *)c->cur;
		if (__builtin_expect(__atomic_load_n(&s->seq, __ATOMIC_ACQUIRE) !=
				     c->lap, 0)) {
			if (rgate_consumer_miss(c) || ++tries == RGATE_RESYNC_MAX)
				return NULL;
			continue;
		}
		if (__builtin_expect(s->flags & RGATE_SLOT_PAD, 0)) {
			rgate_consumer_release_n(c, 1);
			continue;
		}
		cnt = s->chain_cnt;
		c->pos = c->done + 1;
		if (__builtin_expect(cnt <= 1, 1))
			return s;
		/* A chain never crosses a batch; more is torn by overwriting. */
		if (cnt > c->end - c->done || (s->flags & RGATE_SLOT_CONT)) {
			c->lost++;
			rgate_consumer_release_n(c, 1);
			continue;
		}
		switch (rgate_consumer_ready(c, c->done + cnt - 1)) {
		case 1:
			c->pos = c->done + cnt;
			return s;
		case 0:
			c->pos = c->done;
			return NULL;
		default:
			c->pos = c->done;
			rgate_consumer_resync(c);
			if (++tries == RGATE_RESYNC_MAX)
				return NULL;
		}
	}
}

/* rgate_consumer_parts - how many slots the frame in hand takes. To be used
 * rather than chain_cnt, which a hostile producer could change. */
static inline unsigned int rgate_consumer_parts(const struct rgate_consumer *c)
{
	return (unsigned int)(c->pos - c->done);
}

/* rgate_consumer_part - slot @i (0 to chain_cnt - 1) of the frame in hand */
static inline const struct rgate_slot *
rgate_consumer_part(const struct rgate_consumer *c, unsigned int i)
{
	return rgate_consumer_slot(c, c->done + i);
}

/* rgate_consumer_release - done with the frame in hand, all its slots */
static inline void rgate_consumer_release(struct rgate_consumer *c)
{
	rgate_consumer_release_n(c, (unsigned int)(c->pos - c->done));
}

/*
 * rgate_consumer_intact - was the frame in hand untouched until now?
 * The fence orders the caller's reads of the frame before this re-read of its
 * sequence, as the reader of a seqlock does; it pairs with the producer's write
 * barrier between marking a slot busy and filling it. Always true unless the
 * ring overwrites.
 */
static inline bool rgate_consumer_intact(const struct rgate_consumer *c)
{
	uint64_t pos;

	if (!c->overwrite)
		return true;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	for (pos = c->done; pos < c->pos; pos++)
		if (__atomic_load_n(&rgate_consumer_slot(c, pos)->seq,
				    __ATOMIC_RELAXED) != rgate_consumer_lap(c, pos))
			return false;
	return true;
}

/*
 * rgate_consumer_copy - the next frame, joined and checked, into the caller's memory
 * @hdr: out, header of the first slot; NULL: not wanted
 * @buf: out, @len bytes
 * Releases the frame. Returns the bytes of the frame as captured (more than
 * @len: cut), or -EAGAIN: none there. Right for every policy.
 */
RGATE_API long rgate_consumer_copy(struct rgate_consumer *c,
				   struct rgate_slot *hdr, void *buf, size_t len);

/* rgate_consumer_lost - slots lost to overwriting so far */
static inline uint64_t rgate_consumer_lost(const struct rgate_consumer *c)
{
	return c->lost;
}

#ifdef __cplusplus
}
#endif
#endif
