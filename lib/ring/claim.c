// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A consumer has a batch once its compare-and-swap put its handle, and that handle's
 * life, into the batch's owner word. The shared counter only says where to look. So there
 * is no moment at which a batch is taken and nobody can tell by whom.
 *
 * Others find a batch by its owner word when its holder is dead: the life ended, as the
 * producer area says, or in a memfd ring the kernel let go of the handle's lock. Order
 * matters then: known to be dead first, credit looked at second. A credit that was looked
 * at before may be stored by a holder that dies only afterwards, and its batch be filled
 * anew while it is read.
 */
#include "batch.h"
#include "claim.h"
#include "ring.h"

#define LOOK_EVERY	1024U	/* looks in vain between two at what others hold */
#define LOOK_STEP	64U	/* batches in one such look */
#define NAPS_MAX	4U	/* RGATE_ORPHAN_MS is doubled so often */
#define NAPS_NONE	0xff	/* nobody else holds a batch: sleep */

static uint64_t *owner_of(const struct rgate_consumer *c, uint64_t b)
{
	return &c->owners[b & (batch_count(c) - 1)];
}

static bool swap(uint64_t *word, uint64_t was, uint64_t to)
{
	/*
	 * release: who reads this word (owner_word()) also sees the credit of the lap before,
	 * without which the batch would not have been there to take. Frames themselves come
	 * by seq, and go by the credit.
	 */
	return __atomic_compare_exchange_n(word, &was, to, false, __ATOMIC_RELEASE,
					   __ATOMIC_RELAXED);
}

/* acquire: a credit that is looked at afterwards is no older than the word */
static uint64_t owner_word(const struct rgate_consumer *c, uint64_t b)
{
	return __atomic_load_n(owner_of(c, b), __ATOMIC_ACQUIRE);
}

static bool is_of(uint64_t word, uint64_t lap)
{
	return word >> RGATE_OWNER_LAP_SHIFT == (uint32_t)lap;
}

static uint64_t nobodys(uint64_t lap, uint64_t done)
{
	return lap << RGATE_OWNER_LAP_SHIFT | done << RGATE_OWNER_DONE_SHIFT;
}

static uint64_t mine(const struct rgate_consumer *c, uint64_t lap, uint64_t done)
{
	return nobodys(lap, done) | (uint64_t)c->life << RGATE_OWNER_LIFE_SHIFT | c->handle;
}

static uint32_t life_in(uint64_t word)
{
	return word >> RGATE_OWNER_LIFE_SHIFT & RGATE_OWNER_LIFE_MASK;
}

static uint64_t done_in(uint64_t word)
{
	return word >> RGATE_OWNER_DONE_SHIFT & RGATE_OWNER_DONE_MASK;
}

static uint32_t life_now(const struct rgate_consumer *c, uint32_t handle)
{
	/* acquire: what that life stored is seen once it is over */
	return __atomic_load_n(&c->prod->life[handle], __ATOMIC_ACQUIRE) &
	       RGATE_OWNER_LIFE_MASK;
}

static uint64_t closed_now(const struct rgate_consumer *c)
{
	return __atomic_load_n(&c->prod->closed, __ATOMIC_ACQUIRE);
}

/*
 * Is nobody there any more whom the word names? A process that is stopped is there.
 * @alive: handles found alive in this look, so that the kernel is asked once for each
 */
static bool left(const struct rgate_consumer *c, uint64_t word, uint32_t *alive)
{
	uint32_t handle = word & RGATE_OWNER_HANDLE_MASK, life = life_in(word);

	if (!(life & 1) || life != life_now(c, handle))
		return true;
	if (handle == c->handle || *alive & 1U << handle)
		return false;
	if (c->ring->ops->holder_gone && c->ring->ops->holder_gone(c->ring, handle))
		return true;
	*alive |= 1U << handle;
	return false;
}

/* Passes over the whole frames from @pos on that are there; counts them */
static uint64_t skip_frames(struct rgate_consumer *c, uint64_t pos, uint64_t end)
{
	uint64_t frames = 0;

	while (pos < end && rgate_consumer_ready(c, pos) > 0) {
		const struct rgate_slot *s = rgate_consumer_slot(c, pos);
		uint64_t n = s->chain_cnt;

		n = n < 1 || n > end - pos ? 1 : n;
		if (rgate_consumer_ready(c, pos + n - 1) <= 0)
			break;
		frames += !(s->flags & RGATE_SLOT_PAD);
		pos += n;
	}
	__atomic_add_fetch(&c->cons->skipped, frames, __ATOMIC_RELAXED);
	return pos;
}

static void stand_in(struct rgate_consumer *c, uint64_t b, uint64_t pos)
{
	batch_enter(c, b);
	c->cur += (pos - c->done) << c->size_shift;
	c->done = c->pos = pos;
}

/* Batch @b, left behind by somebody who had it, is ours by now: false if it is done with. */
static bool inherit(struct rgate_consumer *c, uint64_t b, uint64_t pos)
{
	const uint64_t end = (b + 1) << RGATE_BATCH_SHIFT;

	__atomic_add_fetch(&c->cons->orphans, 1, __ATOMIC_RELAXED);
	if (c->orphans == RGATE_ORPHAN_SKIP)
		pos = skip_frames(c, pos, end);
	if (pos == end) {
		__atomic_store_n(&c->credits[b & (batch_count(c) - 1)], batch_lap(c, b),
				 __ATOMIC_RELEASE);
		return false;
	}
	stand_in(c, b, pos);
	return true;
}

/*
 * Takes batch @b if it was not returned and its holder is dead, or if the counter passed
 * it and nobody took it. @hungry: only if there is something in it to read now
 */
static bool take_over(struct rgate_consumer *c, uint64_t b, uint32_t *alive, bool hungry)
{
	const uint64_t lap = batch_lap(c, b), first = b << RGATE_BATCH_SHIFT;
	uint64_t word, done = 0;
	bool unread;

	if (batch_credit(c, b) >= lap)
		return false;
	word = owner_word(c, b);
	if (is_of(word, lap)) {
		if (!left(c, word, alive))
			return false;
		done = done_in(word);
	}
	/* looked at again: see the top of this file */
	if (batch_credit(c, b) >= lap || rgate_consumer_ready(c, first) <= 0)
		return false;
	unread = rgate_consumer_ready(c, first + done) > 0;
	if (hungry && !unread)
		return false;
	if (!swap(owner_of(c, b), word, mine(c, lap, done))) {
		/* somebody has it now, who may die as well */
		*alive |= 1U << c->handle;
		return false;
	}
	if (unread && is_of(word, lap) && life_in(word) & 1)
		return inherit(c, b, first + done);
	stand_in(c, b, first + done);
	return true;
}

/* Looks at batches before @top: some, or @all that the producer may still wait for */
static bool look(struct rgate_consumer *c, uint64_t top, bool all, bool hungry)
{
	const uint64_t closed = closed_now(c);
	const uint64_t lo = top > batch_count(c) ? top - batch_count(c) : 0;
	uint64_t n = top - lo;
	uint32_t alive = 0;

	if (!all && n > LOOK_STEP)
		n = LOOK_STEP;
	for (; n; n--) {
		if (c->look < lo || c->look >= top)
			c->look = lo;
		if (take_over(c, c->look++, &alive, hungry))
			return true;
	}
	if (all) {
		c->closed = closed;
		if (!alive)
			c->naps = NAPS_NONE;
	}
	return false;
}

/* A handle was closed since all was looked at, or this one looked in vain for a while. */
static bool look_if_due(struct rgate_consumer *c, uint64_t top, bool hungry)
{
	const bool all = closed_now(c) != c->closed;

	if (!all && ++c->idle % LOOK_EVERY)
		return false;
	return look(c, top, all, hungry);
}

/*
 * A batch that was not returned although others are three quarters of a lap further:
 * looked at before the producer has to wait for it.
 */
static bool take_late(struct rgate_consumer *c, uint64_t b)
{
	const uint64_t nb = batch_count(c), behind = nb - (nb > 4 ? nb / 4 : 1);
	uint32_t alive = 0;

	return b >= behind && batch_credit(c, b - behind) < batch_lap(c, b - behind) &&
	       take_over(c, b - behind, &alive, false);
}

/*
 * Takes the published batch @b, or a late one; false: somebody has it, or had. Who has it
 * may have died before it moved the counter, and so where look() did not look.
 *
 * This thread may have slept since it saw the batch published, for laps. The word is then
 * of a later one, and whoever it names holds that: the credit, looked at second, tells.
 */
static bool take(struct rgate_consumer *c, uint64_t b)
{
	const uint64_t lap = batch_lap(c, b), word = owner_word(c, b);
	uint32_t alive = 0;

	if (is_of(word, lap))
		return take_over(c, b, &alive, false);
	if (batch_credit(c, b) >= lap)
		return false;
	if (take_late(c, b))
		return true;
	if (!swap(owner_of(c, b), word, mine(c, lap, 0)))
		return false;
	batch_enter(c, b);
	return true;
}

/* Moves the counter on from @b, which is another's, or was overwritten, and so returned */
static uint64_t pass(struct rgate_consumer *c, uint64_t b, bool overwritten)
{
	const uint64_t nb = batch_count(c);
	uint64_t next = b + 1, was = b;

	if (overwritten) {
		uint64_t seq = __atomic_load_n(
			&rgate_consumer_slot(c, b << RGATE_BATCH_SHIFT)->seq, __ATOMIC_RELAXED);
		uint64_t there = ((seq - 1) << (c->lap_shift - RGATE_BATCH_SHIFT)) +
				 (b & (nb - 1));

		/* what stands there now was filled after all up to a lap before it */
		if (there >= next + nb)
			next = there - nb + 1;
	}
	if (__atomic_compare_exchange_n(&c->cons->claim, (__u64 *)&was, next, false,
					__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return next;
	return was > next ? was : next;
}

int rgate_claim_advance(struct rgate_consumer *c)
{
	uint64_t b = __atomic_load_n(&c->cons->claim, __ATOMIC_RELAXED);
	/* others may have returned all of a lap; more is a lie in some word */
	uint64_t tries = 2 * batch_count(c) + RGATE_RESYNC_MAX;

	if (closed_now(c) != c->closed && look(c, b, true, false))
		return 0;
	for (; tries; tries--) {
		int r = rgate_consumer_ready(c, b << RGATE_BATCH_SHIFT);

		if (r == 0)
			break;
		c->naps = 0;
		if (r > 0 && take(c, b)) {
			if (c->end == (b + 1) << RGATE_BATCH_SHIFT)
				pass(c, b, false);
			return 0;
		}
		b = pass(c, b, r < 0);
	}
	if (look_if_due(c, b, false))
		return 0;
	batch_stand_before(c, b);
	return 1;
}

/*
 * The slots of a batch before @pos are done with. @keep: the rest stays this consumer's,
 * else it is anybody's
 */
static void leave(struct rgate_consumer *c, uint64_t pos, bool keep)
{
	const uint64_t b = pos >> RGATE_BATCH_SHIFT, lap = batch_lap(c, b);
	const uint64_t done = pos & RGATE_OWNER_DONE_MASK;
	const uint64_t word = __atomic_load_n(owner_of(c, b), __ATOMIC_RELAXED);

	if (word == mine(c, lap, done_in(word)))
		swap(owner_of(c, b), word, keep ? mine(c, lap, done) : nobodys(lap, done));
}

bool rgate_claim_aside(struct rgate_consumer *c)
{
	const uint64_t pos = c->done;

	if (!c->owners || pos == c->end ||
	    !look_if_due(c, __atomic_load_n(&c->cons->claim, __ATOMIC_RELAXED), true))
		return false;
	leave(c, pos, false);
	/* it is behind the counter now, where only a look at all finds it again */
	c->closed = UINT64_MAX;
	return true;
}

bool rgate_claim_last(struct rgate_consumer *c)
{
	if (!c->owners)
		return false;
	c->closed = UINT64_MAX;
	if (c->done == c->end) {
		if (rgate_claim_advance(c))
			return false;
	} else {
		leave(c, c->done, true);
		if (!rgate_claim_aside(c))
			return false;
	}
	return rgate_consumer_ready(c, c->done) != 0;
}

void rgate_claim_give_up(struct rgate_consumer *c)
{
	if (c->owners && c->done != c->end) {
		leave(c, c->done, false);
		batch_stand_before(c, c->done >> RGATE_BATCH_SHIFT);
	}
}

void rgate_claim_reset(struct rgate_consumer *c)
{
	uint64_t b;

	for (b = 0; c->owners && b < batch_count(c); b++)
		__atomic_store_n(&c->owners[b], 0, __ATOMIC_RELAXED);
}

void rgate_claim_bind(struct rgate_consumer *c)
{
	c->owners = c->take == RGATE_TAKE_SHARED ? c->ring->owners : NULL;
	c->life = c->owners ? life_now(c, c->handle) : 0;
	c->closed = UINT64_MAX;
	c->naps = 0;
}

void rgate_claim_arm(struct rgate_consumer *c)
{
	if (!c->owners)
		return;
	c->idle = LOOK_EVERY - 1;
	__atomic_store_n(&c->cons->waiter[c->handle].closed, c->closed + 1, __ATOMIC_RELAXED);
}

int rgate_claim_nap(struct rgate_consumer *c, int ms)
{
	int nap = RGATE_ORPHAN_MS << c->naps % 8;

	if (!c->owners || !c->ring->ops->holder_gone || c->naps == NAPS_NONE ||
	    (ms >= 0 && ms <= nap))
		return ms;
	if (c->naps < NAPS_MAX)
		c->naps++;
	return nap;
}

void rgate_claim_rested(struct rgate_consumer *c)
{
	c->closed = UINT64_MAX;
}
