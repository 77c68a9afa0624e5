// SPDX-License-Identifier: MIT OR GPL-2.0
/* Slow paths of the consumer: claiming batches, starting, losing, sleeping. */
#include <errno.h>
#include <string.h>

#include <ringgate/rgate_consumer.h>

#include "batch.h"
#include "claim.h"
#include "clock.h"
#include "consumer.h"
#include "opts.h"
#include "ring.h"
#include "spin.h"

#define SPIN_CHECK	64	/* looks between two readings of the clock */
#define RELAX_MIN	8	/* pause instructions after catching up */
#define RELAX_MAX	64

static uint64_t head_of(const struct rgate_consumer *c)
{
	return __atomic_load_n(&c->prod->head, __ATOMIC_ACQUIRE);
}

/* The first batch not returned among those the producer may still keep. */
static uint64_t oldest_batch(const struct rgate_consumer *c)
{
	uint64_t head = head_of(c);
	uint64_t top = head >> RGATE_BATCH_SHIFT;	/* being filled */
	uint64_t nb = batch_count(c);
	uint64_t b = top > nb ? top - nb : 0;

	if (top >= nb && head & (RGATE_BATCH - 1))
		b = top - nb + 1;
	while (b < top && batch_credit(c, b) >= batch_lap(c, b))
		b++;
	return b;
}

/* The next batch from @b on that is this consumer's by number */
static uint64_t stride_from(const struct rgate_consumer *c, uint64_t b)
{
	if (c->take != RGATE_TAKE_STRIDE)
		return b;
	return b + (c->index + c->count - b % c->count) % c->count;
}

static uint64_t stride_step(const struct rgate_consumer *c)
{
	return c->take == RGATE_TAKE_STRIDE ? c->count : 1;
}

/*
 * What is the first batch that will last a while, as the slot at @pos was found
 * overwritten? head may be stored late, but that slot's own sequence tells too.
 */
static uint64_t surviving_batch(const struct rgate_consumer *c, uint64_t pos)
{
	uint64_t slots = c->mask + 1, head = head_of(c), seen, seq;

	seq = __atomic_load_n(&rgate_consumer_slot(c, pos)->seq, __ATOMIC_ACQUIRE);
	if (seq == RGATE_SEQ_BUSY || seq <= rgate_consumer_lap(c, pos))
		seq = rgate_consumer_lap(c, pos) + 1;
	seen = ((seq - 1) << c->lap_shift) + (pos & c->mask) + 1;
	if (head < seen)
		head = seen;
	/* one batch of margin where that is little, then up to the next border */
	if (slots / RGATE_BATCH >= 8)
		head += RGATE_BATCH;
	return (head - slots + RGATE_BATCH - 1) >> RGATE_BATCH_SHIFT;
}

/*
 * Not published and never to be: in a ring that overwrites the slot may be busy
 * for a later lap, for as long as the producer likes. Being below head tells, and
 * being so still once head was loaded.
 */
static bool gone(const struct rgate_consumer *c, uint64_t pos)
{
	const __u64 *seq = &rgate_consumer_slot(c, pos)->seq;

	return c->overwrite &&
	       __atomic_load_n(seq, __ATOMIC_RELAXED) == RGATE_SEQ_BUSY &&
	       head_of(c) > pos && !rgate_consumer_ready(c, pos);
}

/*
 * Takes the shared counter from @b on, past what was overwritten. A producer that
 * does not overwrite came by @b only because it was returned, before this one
 * began: then that batch alone is skipped, and nothing was lost.
 */
static uint64_t skip_shared(struct rgate_consumer *c, __u64 b)
{
	uint64_t to = b + 1;

	if (c->overwrite)
		to = surviving_batch(c, b << RGATE_BATCH_SHIFT);
	if (__atomic_compare_exchange_n(&c->cons->claim, &b, to, false,
					__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		if (c->overwrite)
			c->lost += (to - b) << RGATE_BATCH_SHIFT;
		return to;
	}
	return b;
}

/*
 * By the counter alone, where there are no owner words. A batch is claimed once its
 * first slot is published, so that a consumer that is idle holds none.
 */
static int advance_shared(struct rgate_consumer *c)
{
	__u64 b = __atomic_load_n(&c->cons->claim, __ATOMIC_RELAXED);
	/* others may have returned all of a lap; more is a producer's lie */
	uint64_t skips = 2 * batch_count(c) + RGATE_RESYNC_MAX;

	for (;;) {
		int r = rgate_consumer_ready(c, b << RGATE_BATCH_SHIFT);

		if (r == 0 && !gone(c, b << RGATE_BATCH_SHIFT)) {
			batch_stand_before(c, b);
			return 1;
		}
		if (r <= 0 && skips--) {
			b = skip_shared(c, b);
			continue;
		}
		if (r <= 0) {
			batch_stand_before(c, b);
			return 1;
		}
		if (!__atomic_compare_exchange_n(&c->cons->claim, &b, b + 1, false,
						 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		if (batch_returned(c, b)) {
			b++;
			continue;
		}
		batch_enter(c, b);
		return 0;
	}
}

int rgate_consumer_advance_slow(struct rgate_consumer *c)
{
	uint64_t b;

	if (c->owners)
		return rgate_claim_advance(c);
	if (c->take == RGATE_TAKE_SHARED)
		return advance_shared(c);
	/* end is the border before the next batch; STRIDE moves on from there */
	b = stride_from(c, c->end >> RGATE_BATCH_SHIFT);
	while (batch_returned(c, b))
		b += stride_step(c);
	batch_enter(c, b);
	return 0;
}

void rgate_consumer_resync(struct rgate_consumer *c)
{
	uint64_t b, to, mine;

	if (__atomic_load_n(&rgate_consumer_slot(c, c->done)->seq,
			    __ATOMIC_ACQUIRE) == rgate_consumer_lap(c, c->done))
		return;
	b = c->done >> RGATE_BATCH_SHIFT;
	to = surviving_batch(c, c->done);
	if (to <= b)
		return;
	if (c->done < c->end) {
		c->lost += c->end - c->done;
		b++;
	}
	if (c->take == RGATE_TAKE_SHARED) {
		/* the counter is moved when the next batch is claimed */
		batch_stand_before(c, b);
		return;
	}
	b = stride_from(c, b);
	to = stride_from(c, to);
	mine = to > b ? (to - b) / stride_step(c) : 0;
	c->lost += mine << RGATE_BATCH_SHIFT;
	batch_enter(c, to > b ? to : b);
}

/*
 * The pause grows while several frames are there after each one, that is while
 * they stream in; it stays short where they come one by one, as then what comes
 * next shall be seen at once.
 */
bool rgate_consumer_miss(struct rgate_consumer *c)
{
	uint32_t i;

	if (rgate_consumer_ready(c, c->done) < 0 || gone(c, c->done)) {
		rgate_consumer_resync(c);
		return false;
	}
	if (rgate_claim_aside(c))
		return false;
	if (c->done - c->missed < 2)
		c->relax = RELAX_MIN;
	else if (c->relax < RELAX_MAX)
		c->relax *= 2;
	if (c->missed == c->done)
		return true;
	c->missed = c->done;
	for (i = 0; i < c->relax; i++)
		rgate_cpu_relax();
	return true;
}

/* Everything that depends on the mapping */
static void bind_view(struct rgate_consumer *c)
{
	const struct rgate_view *v = &c->ring->view;

	c->slots = v->slots;
	c->mask = v->nslots - 1;
	c->lap_shift = (uint32_t)__builtin_ctz(v->nslots);
	c->size_shift = (uint32_t)__builtin_ctz(v->slot_size);
	c->credits = v->credits;
	c->prod = v->prod;
	c->cons = v->cons;
	c->handle = v->handle;
	c->generation = v->generation;
	rgate_claim_bind(c);
}

static void start(struct rgate_consumer *c)
{
	__u64 claim;
	uint64_t b;

	bind_view(c);
	c->missed = UINT64_MAX;
	c->relax = RELAX_MIN;
	b = oldest_batch(c);
	/* head may lag behind what others took by up to a lap */
	c->check_end = (b << RGATE_BATCH_SHIFT) + 2 * (c->mask + 1);
	if (c->take != RGATE_TAKE_SHARED) {
		batch_stand_before(c, b);
		return;
	}
	claim = __atomic_load_n(&c->cons->claim, __ATOMIC_RELAXED);
	while (claim < b &&
	       !__atomic_compare_exchange_n(&c->cons->claim, &claim, b, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	batch_stand_before(c, claim > b ? claim : b);
}

int rgate_consumer_init(struct rgate_consumer *c, struct rgate_ring *ring,
			const struct rgate_consumer_opts *opts)
{
	struct rgate_consumer_opts o;
	int err = rgate_opts_copy(&o, sizeof(o), opts);

	if (err)
		return err;
	if (o.take > RGATE_TAKE_STRIDE ||
	    (o.take == RGATE_TAKE_STRIDE && o.index >= o.count) ||
	    o.orphans > RGATE_ORPHAN_SKIP)
		return -EINVAL;
	if (ring->flags & RGATE_RING_TRANSMIT)
		return -EOPNOTSUPP;
	memset(c, 0, sizeof(*c));
	err = rgate_spin_init(&c->spin, o.spin_us);
	if (err)
		return err;
	c->ring = ring;
	c->take = o.take;
	c->index = o.index;
	c->count = o.count;
	c->overwrite = ring->policy == RGATE_POLICY_OVERWRITE;
	c->orphans = (uint8_t)o.orphans;
	start(c);
	return 0;
}

void rgate_consumer_reset_claim(struct rgate_ring *ring)
{
	struct rgate_consumer c = { .ring = ring, .take = RGATE_TAKE_SHARED };

	bind_view(&c);
	rgate_claim_reset(&c);
	__atomic_store_n(&c.cons->claim, oldest_batch(&c), __ATOMIC_RELAXED);
}

void rgate_consumer_fini(struct rgate_consumer *c)
{
	rgate_claim_give_up(c);
}

/* Is there something to take (or to skip) at the place in hand? */
static bool ready_now(struct rgate_consumer *c)
{
	if (c->done == c->end && rgate_consumer_advance_slow(c))
		return false;
	if (rgate_consumer_ready(c, c->done))
		return true;
	if (rgate_claim_aside(c))
		return rgate_consumer_ready(c, c->done);
	/* being below head, its wait word would not let anyone sleep */
	if (!gone(c, c->done))
		return false;
	rgate_consumer_resync(c);
	return true;
}

/*
 * The first frame after an end of the mapping: follow it. 1: there is something
 * to take; 0: mapping is live and empty; negative: the end.
 */
static int follow(struct rgate_consumer *c)
{
	for (;;) {
		uint32_t state;
		uint64_t lost;
		int r;

		state = __atomic_load_n(&c->prod->state, __ATOMIC_ACQUIRE);
		/* after state: what was published before the end is seen now */
		if (ready_now(c))
			return 1;
		if ((state != RGATE_STATE_ACTIVE || c->ring->peer_gone) && rgate_claim_last(c))
			return 1;
		if (state == RGATE_STATE_CLOSED ||
		    (state == RGATE_STATE_ACTIVE && c->ring->peer_gone))
			return -EPIPE;
		if (state != RGATE_STATE_RETIRED)
			return 0;
		r = rgate_ring_remap(c->ring);
		if (r < 0)
			return r;
		if (!r && c->generation == c->ring->view.generation)
			return 0;	/* retired, but not yet replaced */
		lost = c->lost;
		start(c);
		c->lost = lost;
	}
}

static uint64_t *want_word(const struct rgate_consumer *c)
{
	return (uint64_t *)&c->cons->waiter[c->handle].want;
}

int rgate_consumer_arm(struct rgate_consumer *c)
{
	int r = follow(c);

	if (r)
		return r;
	rgate_claim_arm(c);
	__atomic_store_n(want_word(c), c->done + 1, __ATOMIC_RELAXED);
	/* the wait word is visible before the slot is looked at again */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!ready_now(c) &&
	    __atomic_load_n(&c->prod->state, __ATOMIC_ACQUIRE) == RGATE_STATE_ACTIVE)
		return 0;
	__atomic_store_n(want_word(c), 0, __ATOMIC_RELAXED);
	return follow(c);
}

int rgate_consumer_arm_at(struct rgate_consumer *c, uint64_t pos)
{
	uint32_t state;

	__atomic_store_n(want_word(c), pos + 1, __ATOMIC_RELAXED);
	/* as in rgate_consumer_arm() */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	state = __atomic_load_n(&c->prod->state, __ATOMIC_ACQUIRE);
	if (!rgate_consumer_ready(c, pos)) {
		if (state == RGATE_STATE_ACTIVE && !c->ring->peer_gone)
			return 0;
		rgate_consumer_disarm(c);
		return -EPIPE;
	}
	rgate_consumer_disarm(c);
	return 1;
}

void rgate_consumer_disarm(struct rgate_consumer *c)
{
	__atomic_store_n(want_word(c), 0, __ATOMIC_RELAXED);
	c->ring->ops->drain_fd(c->ring);
}

/* Polls for as long as was learned, from @begun on; true: something came */
static bool spin(struct rgate_consumer *c, uint64_t begun, uint64_t end)
{
	uint64_t until = begun + c->spin.ns;
	unsigned int i;

	if (!c->spin.ns)
		return false;
	rgate_spin_count(&c->spin.spins);
	if (until > end)
		until = end;
	do {
		for (i = 0; i < SPIN_CHECK; i++) {
			if (ready_now(c)) {
				rgate_spin_count(&c->spin.hits);
				return true;
			}
			rgate_cpu_relax();
		}
	} while (rgate_clock_now(CLOCK_MONOTONIC) < until);
	return false;
}

/* Of the time until @end, in ms, rounded up; -1: there is no end */
static int ms_left(uint64_t now, uint64_t end)
{
	if (end == UINT64_MAX)
		return -1;
	return now >= end ? 0 : (int)((end - now + 999999) / 1000000);
}

/* Sleeps once. 1: there is something; 0: not yet, or time is up; negative: the end */
static int doze(struct rgate_consumer *c, int ms)
{
	int n, r = rgate_consumer_arm(c);

	if (r)
		return r;
	rgate_spin_count(&c->spin.sleeps);
	n = c->ring->ops->sleep(c->ring, rgate_claim_nap(c, ms));
	if (!n)
		rgate_claim_rested(c);
	__atomic_store_n(want_word(c), 0, __ATOMIC_RELAXED);
	r = follow(c);
	return r || n > 0 ? r : n;
}

int rgate_consumer_wait(struct rgate_consumer *c, int timeout_ms)
{
	uint64_t begun, now, end = UINT64_MAX;
	int r;

	r = follow(c);
	if (r || !timeout_ms)
		return r;
	begun = now = rgate_clock_now(CLOCK_MONOTONIC);
	if (timeout_ms > 0)
		end = begun + (uint64_t)timeout_ms * 1000000;
	if (spin(c, begun, end))
		return 1;
	for (;;) {
		/* it may wake for nothing, again and again */
		r = doze(c, ms_left(now, end));
		now = rgate_clock_now(CLOCK_MONOTONIC);
		if (r || now >= end)
			break;
	}
	/* what did not come was not worth polling for, either */
	if (r >= 0)
		rgate_spin_learn(&c->spin, r ? now - begun : UINT64_MAX);
	return r;
}

int rgate_consumer_waits(const struct rgate_consumer *c, struct rgate_waits *out)
{
	return rgate_spin_info(&c->spin, out);
}

/* Bytes of slot @s that may be read, whatever its header says */
static uint32_t slot_len(const struct rgate_consumer *c, const struct rgate_slot *s)
{
	uint32_t room = (1U << c->size_shift) - RGATE_SLOT_HDR;
	uint32_t len = __atomic_load_n(&s->len, __ATOMIC_RELAXED);

	return len < room ? len : room;
}

/*
 * Under RGATE_POLICY_OVERWRITE the bytes may change while they are copied: what was
 * copied counts only once rgate_consumer_intact() has said that they did not.
 */
long rgate_consumer_copy(struct rgate_consumer *c, struct rgate_slot *hdr,
			 void *buf, size_t len)
{
	const struct rgate_slot *s;

	while ((s = rgate_consumer_next(c))) {
		unsigned int i, parts = rgate_consumer_parts(c);
		uint64_t lost = c->lost;
		size_t total = 0;

		if (hdr)
			memcpy(hdr, s, sizeof(*hdr));
		for (i = 0; i < parts; i++) {
			const struct rgate_slot *part = rgate_consumer_part(c, i);
			uint32_t n = slot_len(c, part);

			if (total < len)
				memcpy((unsigned char *)buf + total,
				       rgate_slot_data(part),
				       n < len - total ? n : len - total);
			total += n;
		}
		if (rgate_consumer_intact(c)) {
			rgate_consumer_release(c);
			return (long)total;
		}
		rgate_consumer_resync(c);
		if (c->lost == lost) {
			/* a later slot of the chain went first */
			c->lost += parts;
			rgate_consumer_release(c);
		}
	}
	return -EAGAIN;
}
