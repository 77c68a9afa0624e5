/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What threads of a GPU share of a session, and each one's part in it: cells for answers, places
 * for requests. ask.cuh beside this asks with it.
 */
#ifndef RINGGATE_GPU_ASKER_CUH
#define RINGGATE_GPU_ASKER_CUH

#include <errno.h>

#include <ringgate/gpu/pair.cuh>
#include <ringgate/request.h>

#define RGATE_DASK_MANY		32U	/* requests that are published at once */

/* Device memory, one a request under way */
struct rgate_dcell {
	/* these two are read as one */
	uint64_t ticket;	/* of the request whose answer is to come here; 0: none */
	uint64_t done;		/* the ticket whose answer is here, or was last; release */
	struct rgate_dpair answer; /* result and flags, value */
};

/* Device memory, one a session */
struct rgate_daskstate {
	uint64_t head;		/* places given out */
	uint64_t pad[15];
	uint64_t limit;		/* free up to here; release */
	uint64_t room_lock;	/* of who reads credits */
	uint64_t pad2[14];
	uint64_t lock;		/* completions taken * 2; 1 more: one is at it, who has all below */
	uint64_t failed;
	uint64_t strays;
	uint64_t idle;		/* looks for nothing */
	uint64_t pad3[12];
	uint64_t over;		/* the host's word, as seen by one who had the lock */
	uint64_t pad4[15];
};

/* Host memory: told by the host's thread, and by who takes completions */
struct rgate_daskwords {
	uint64_t over;		/* the session is */
	uint64_t pad[7];
	uint64_t failed;	/* requests without completion that failed */
	uint64_t strays;	/* completions that nobody had asked for */
	uint64_t pad2[6];
};

/* What a kernel gets, by value */
struct rgate_dask {
	struct rgate_request *requests;
	const uint64_t *request_credits;
	const struct rgate_completion *completions;
	uint64_t *completion_credits;
	struct rgate_daskwords *words;
	struct rgate_daskstate *state;
	struct rgate_dcell *cells;
	uint32_t *free;		/* a bit a cell: nobody has it */
	unsigned char *memory;	/* the session's, RGATE_REQ_MEM_SESSION; null: none */
	uint64_t memory_len;
	uint32_t owner;
	uint32_t ncells;	/* a power of two, 32 at least */
	uint32_t req_shift, comp_shift;	/* log2 of the places */
};

/* What a thread knows */
struct rgate_dasker {
	const struct rgate_dask *ask;
	uint64_t head;		/* of the state; may be behind */
	uint64_t limit;		/* likewise */
	uint64_t kept;		/* the last ticket, whose cell is this thread's still; 0: none */
	uint32_t keeps;		/* it is to be so */
	uint32_t rover;		/* where it looks for a cell */
	uint32_t in_vain;	/* it asked since it was let */
	uint32_t lost;		/* an answer is out: it may come, and write the memory, at any time */
};

struct rgate_danswer {
	int32_t result;		/* 0 or more, or -errno */
	uint32_t flags;		/* RGATE_COMP_* */
	uint64_t value;
};

/*
 * rgate_dasker_init - what a thread needs to ask
 * @ask: of rgate_gpu_session_view(); stays where it is
 * @keeps: not 0: it will ask again and again, and keeps the cell of an answer that it has taken for
 *	its next request, which saves that two rounds to the device's memory. There have to be more
 *	tickets than threads that do so.
 */
RGATE_DEV void rgate_dasker_init(struct rgate_dasker *me, const struct rgate_dask *ask,
				 uint32_t keeps)
{
	me->ask = ask;
	me->head = me->limit = me->kept = 0;
	me->keeps = keeps;
	me->in_vain = me->lost = 0;
	me->rover = rgate_dsalt() * 2654435769U;
}

/*
 * Cells
 */

/* Is free from here on: what this thread has read of it comes before */
RGATE_DEV void rgate_dcell_free(const struct rgate_dask *a, uint64_t ticket)
{
	uint32_t i = (uint32_t)ticket - 1;

	rgate_dgpu_add32(&a->free[i / 32], 1U << i % 32);
}

/* A bit of @word that was free and is this thread's now, the bit @at if it is; 0: none */
RGATE_DEV uint32_t rgate_dcell_bit(uint32_t *word, uint32_t at)
{
	uint32_t bit = 1U << at, was;

	do {
		was = rgate_dgpu_and32(word, ~bit);
		if (was & bit)
			return bit;
		bit = was & (0U - was);
	} while (bit);
	return 0;
}

/* A ticket with a cell of its own; 0: there is none */
RGATE_DEV uint64_t rgate_dcell_take(struct rgate_dasker *me)
{
	const struct rgate_dask *a = me->ask;
	const uint32_t words = a->ncells / 32;
	uint64_t ticket = me->kept;
	uint32_t n, i, bit = 0;

	if (!ticket) {
		for (n = 0; n < words && !bit; n++) {
			i = (me->rover >> 5) & (words - 1);
			bit = rgate_dcell_bit(&a->free[i], me->rover % 32);
			me->rover += bit ? 1 : 32;
		}
		if (!bit)
			return 0;
		i = i * 32 + rgate_dones(bit - 1);
		ticket = rgate_dgpu_load(&a->cells[i].done) >> 32 << 32 | (i + 1);
	}
	me->kept = 0;
	ticket += 1ULL << 32;
	rgate_dgpu_store(&a->cells[(uint32_t)ticket - 1].ticket, ticket);
	return ticket;
}

/* Nobody waits any more: the ticket is over */
RGATE_DEV void rgate_dcell_end(const struct rgate_dask *a, uint64_t ticket)
{
	struct rgate_dcell *c = &a->cells[(uint32_t)ticket - 1];

	rgate_dgpu_store(&c->done, ticket);
	rgate_dgpu_store(&c->ticket, 0);
}

/* The answer was taken: the cell is kept for the next, or free */
RGATE_DEV void rgate_dcell_put(struct rgate_dasker *me, uint64_t ticket)
{
	rgate_dcell_end(me->ask, ticket);
	if (me->kept || !me->keeps)
		rgate_dcell_free(me->ask, ticket);
	else
		me->kept = ticket;
}

/* It was not submitted. Were the cell kept, those who need several could wait for each other. */
RGATE_DEV void rgate_dcell_give_up(const struct rgate_dask *a, uint64_t ticket)
{
	if (!ticket)
		return;
	rgate_dcell_end(a, ticket);
	rgate_dcell_free(a, ticket);
}

/* rgate_dasker_fini - the last of this thread: its cell is the others' again */
RGATE_DEV void rgate_dasker_fini(struct rgate_dasker *me)
{
	if (me->kept)
		rgate_dcell_free(me->ask, me->kept);
	me->kept = 0;
}

/*
 * Places for requests
 */

RGATE_DEV uint64_t rgate_dask_req_lap(const struct rgate_dask *a, uint64_t pos)
{
	return (pos >> a->req_shift) + 1;
}

RGATE_DEV struct rgate_request *rgate_dask_slot(const struct rgate_dask *a, uint64_t pos)
{
	return &a->requests[pos & ((1U << a->req_shift) - 1)];
}

/* Of the batch that begins at @pos */
RGATE_DEV const uint64_t *rgate_dask_req_credit(const struct rgate_dask *a, uint64_t pos)
{
	return &a->request_credits[(pos & ((1U << a->req_shift) - 1)) >> RGATE_REQ_BATCH_SHIFT];
}

/* Has the engine copied the batch that begins at @pos? Then all before it, too. */
RGATE_DEV uint32_t rgate_dask_copied(const struct rgate_dask *a, uint64_t pos)
{
	return rgate_dsys_acquire(rgate_dask_req_credit(a, pos)) == rgate_dask_req_lap(a, pos);
}

/* One thread: more room, as far as there is, unless another is at it. */
RGATE_DEV void rgate_dask_refill(const struct rgate_dask *a)
{
	const uint64_t places = 1ULL << a->req_shift;
	struct rgate_daskstate *st = a->state;
	uint64_t limit, n;

	if (rgate_dgpu_cas(&st->room_lock, 0, 1))
		return;
	limit = rgate_dgpu_load(&st->limit);
	/* credits come in order, and each look is a round over the link: the farthest first */
	for (n = places / 2; n >= RGATE_REQ_BATCH; n /= 2)
		if (rgate_dask_copied(a, limit + n - RGATE_REQ_BATCH - places))
			limit += n;
	/* hands on what was acquired with the credits */
	rgate_dgpu_release(&st->limit, limit);
	rgate_dgpu_release(&st->room_lock, 0);
}

/* One thread: @n places in a row, from *@pos on; 0: there are not as many */
RGATE_DEV uint32_t rgate_dask_claim(struct rgate_dasker *me, uint32_t n, uint64_t *pos)
{
	struct rgate_daskstate *st = me->ask->state;
	uint32_t looked = 0;
	uint64_t was;

	for (;;) {
		if (me->head + n > me->limit)
			/* acquire: who stored it has seen the credits */
			me->limit = rgate_dgpu_acquire(&st->limit);
		if (me->head + n > me->limit) {
			if (looked++)
				return 0;
			rgate_dask_refill(me->ask);
			continue;
		}
		was = rgate_dgpu_cas(&st->head, me->head, me->head + n);
		if (was == me->head) {
			*pos = was;
			me->head = was + n;
			return 1;
		}
		me->head = was;
	}
}

/* All of a slot but the seq */
RGATE_DEV void rgate_dask_write(const struct rgate_dask *a, uint64_t pos,
				const struct rgate_request *req, uint64_t ticket)
{
	struct rgate_dvec *to = (struct rgate_dvec *)rgate_dask_slot(a, pos);
	union {
		struct rgate_request q;
		struct rgate_dvec v[4];
	} u;

	u.q = *req;
	u.q.owner = a->owner;
	u.q.cookie = ticket;
	to[0] = u.v[0];
	to[1] = u.v[1];
	to[2] = u.v[2];
	*(uint64_t *)&to[3] = u.q.handle | (uint64_t)u.q.deadline_us << 32;
}

/*
 * A slot other than the first one that is published with it: who takes that one has acquired all
 * that was written before its seq, this one's seq as well, and looks at no later one before.
 */
RGATE_DEV void rgate_dask_follow(const struct rgate_dask *a, uint64_t pos)
{
	rgate_dsys_store(&rgate_dask_slot(a, pos)->seq, rgate_dask_req_lap(a, pos));
}

RGATE_DEV void rgate_dask_publish(const struct rgate_dask *a, uint64_t pos)
{
	rgate_dsys_release(&rgate_dask_slot(a, pos)->seq, rgate_dask_req_lap(a, pos));
}

/*
 * Completions: answer.cuh beside this takes them
 */

/* One thread: is the lock this one's now? @pos: out, completions that were taken so far */
RGATE_DEV uint32_t rgate_dask_lock(const struct rgate_dask *a, uint64_t *pos)
{
	uint64_t was = rgate_dgpu_or(&a->state->lock, 1);

	*pos = was >> 1;
	return !(was & 1);
}

RGATE_DEV void rgate_dask_unlock(const struct rgate_dask *a, uint64_t pos)
{
	rgate_dgpu_release(&a->state->lock, pos << 1);
}

/* One thread: does somebody have the lock? Costs those who want it less than to ask for it. */
RGATE_DEV uint32_t rgate_dask_locked(const struct rgate_dask *a)
{
	return rgate_dgpu_load(&a->state->lock) & 1;
}

RGATE_DEV uint32_t rgate_dask_over(const struct rgate_dask *a)
{
	return rgate_dgpu_acquire(&a->state->over) != 0;
}

/* One that was brought, to who waits for it: the ticket is over */
RGATE_DEV void rgate_dask_give(struct rgate_dasker *me, uint64_t ticket, struct rgate_dpair answer,
			       struct rgate_danswer *out)
{
	out->result = (int32_t)(uint32_t)answer.v[0];
	out->flags = (uint32_t)(answer.v[0] >> 32);
	out->value = answer.v[1];
	rgate_dcell_put(me, ticket);
}

/* Was the answer brought? 1: it was, here it is; 0; -EINVAL: nobody waits for such a one */
RGATE_DEV int rgate_dask_got(struct rgate_dasker *me, uint64_t ticket, struct rgate_danswer *out)
{
	const struct rgate_dask *a = me->ask;
	const uint32_t i = (uint32_t)ticket - 1;
	const struct rgate_dcell *c;
	struct rgate_dpair is;

	if (i >= a->ncells)
		return -EINVAL;
	c = &a->cells[i];
	is = rgate_dgpu_pair_load(&c->ticket);
	if (is.v[0] != ticket)
		return -EINVAL;
	if (is.v[1] != ticket || rgate_dgpu_acquire(&c->done) != ticket)
		return 0;
	rgate_dask_give(me, ticket, c->answer, out);
	return 1;
}

/*
 * The same for a lane of the warp that has the lock. Nobody else brings an answer then; what others
 * brought before was acquired with the lock, and what this warp brought is behind its barrier. So
 * answer and done are read in one round of the device's memory, and neither needs an acquire.
 */
RGATE_DEV int rgate_dask_got_locked(struct rgate_dasker *me, uint64_t ticket,
				    struct rgate_danswer *out)
{
	const struct rgate_dask *a = me->ask;
	const uint32_t i = (uint32_t)ticket - 1;
	struct rgate_dpair is, answer;

	if (i >= a->ncells)
		return -EINVAL;
	is = rgate_dgpu_pair_load(&a->cells[i].ticket);
	answer = rgate_dgpu_pair_load(&a->cells[i].answer);
	if (is.v[0] != ticket)
		return -EINVAL;
	if (is.v[1] != ticket)
		return 0;
	rgate_dask_give(me, ticket, answer, out);
	return 1;
}

#endif
