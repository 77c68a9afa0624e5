/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Completions of a session's requests, taken by threads of a GPU, one or one warp at a time: who
 * has the lock of the session's state. Each answer goes into the cell of who waits for it.
 */
#ifndef RINGGATE_GPU_ANSWER_CUH
#define RINGGATE_GPU_ANSWER_CUH

#include <ringgate/gpu/asker.cuh>

/*
 * Completions that a lane looks for at once. With 8, defined before this is included, many warps
 * get half as many answers again, one warp an eighth fewer, and each thread needs some 65
 * registers more: Documentation/benchmarks.rst
 */
#ifndef RGATE_DASK_EACH
#define RGATE_DASK_EACH		4U
#endif
#define RGATE_DASK_CHECK	16U	/* looks in vain between those at the session's end */

RGATE_DEV uint64_t rgate_dask_comp_lap(const struct rgate_dask *a, uint64_t pos)
{
	return (pos >> a->comp_shift) + 1;
}

RGATE_DEV const struct rgate_completion *rgate_dask_comp(const struct rgate_dask *a, uint64_t pos)
{
	return &a->completions[pos & ((1U << a->comp_shift) - 1)];
}

/* What became of completions, other than that they are in their cells */
struct rgate_dasktally {
	uint32_t failed, strays;
};

/* The cell of who waits for this answer; null: the cookie is of no request under way */
RGATE_DEV struct rgate_dcell *rgate_dask_cell(const struct rgate_dask *a, uint64_t ticket)
{
	const uint32_t i = (uint32_t)ticket - 1;
	uint64_t has, done;

	if (i >= a->ncells)
		return (struct rgate_dcell *)0;
	has = rgate_dgpu_load(&a->cells[i].ticket);
	done = rgate_dgpu_load(&a->cells[i].done);
	return has == ticket && done != ticket ? &a->cells[i] : (struct rgate_dcell *)0;
}

RGATE_DEV void rgate_dask_tally(struct rgate_dasktally *t, uint64_t cookie)
{
	if (cookie)
		t->strays++;
	else
		t->failed++;
}

/* One thread, with the lock: the credits of the @n completions from @pos on, which were read */
RGATE_DEV void rgate_dask_credit(const struct rgate_dask *a, uint64_t pos, uint32_t n)
{
	const uint64_t end = (pos + n) / RGATE_REQ_BATCH;
	const uint64_t batches = (1U << a->comp_shift) / RGATE_REQ_BATCH;
	uint64_t b;

	for (b = pos / RGATE_REQ_BATCH; b < end; b++)
		rgate_dsys_store(&a->completion_credits[b & (batches - 1)],
				 rgate_dask_comp_lap(a, b * RGATE_REQ_BATCH));
}

/* One thread, with the lock */
RGATE_DEV void rgate_dask_count(const struct rgate_dask *a, const struct rgate_dasktally *t)
{
	struct rgate_daskstate *st = a->state;

	if (t->failed)
		rgate_dsys_store(&a->words->failed, st->failed += t->failed);
	if (t->strays)
		rgate_dsys_store(&a->words->strays, st->strays += t->strays);
}

/*
 * One thread, with the lock: is the session over? All others look at the device's word: loads of
 * many threads from one line of the host are served one after the other, a microsecond each.
 */
RGATE_DEV void rgate_dask_ask_over(const struct rgate_dask *a)
{
	if (rgate_dsys_acquire(&a->words->over))
		rgate_dgpu_release(&a->state->over, 1);
}

/* One thread, with the lock, after a look for nothing */
RGATE_DEV void rgate_dask_idle(const struct rgate_dask *a)
{
	if (a->state->idle++ % RGATE_DASK_CHECK == 0)
		rgate_dask_ask_over(a);
}

RGATE_DEV const uint64_t *rgate_dask_half(const struct rgate_dask *a, uint64_t pos, uint32_t half)
{
	const struct rgate_completion *c = rgate_dask_comp(a, pos);

	return half ? (const uint64_t *)&c->value : (const uint64_t *)&c->cookie;
}

/*
 * A lane's, with the lock: where the answer of a completion that is there belongs. It was read in
 * one round, and in no order. The engine stores the cookie after the result, and seq after the
 * value: so seq tells that @second is right; and a cookie that is that of a request under way can
 * have come with this completion only, so that @first is, too. Else it may be of a lap before, and
 * is read again.
 */
RGATE_DEV struct rgate_dcell *rgate_dask_settle(const struct rgate_dask *a, uint64_t pos,
						struct rgate_dpair *first,
						struct rgate_dasktally *t)
{
	struct rgate_dcell *cell = rgate_dask_cell(a, first->v[0]);

	if (cell)
		return cell;
	rgate_dsys_fence();
	*first = rgate_dsys_pair_load(rgate_dask_half(a, pos, 0));
	cell = rgate_dask_cell(a, first->v[0]);
	if (!cell)
		rgate_dask_tally(t, first->v[0]);
	return cell;
}

/* One thread: value and seq of the completion at @pos */
RGATE_DEV struct rgate_dpair rgate_dask_peek(const struct rgate_dask *a, uint64_t pos)
{
	return rgate_dsys_pair_load_back(rgate_dask_half(a, pos, 1));
}

/* Into the cell of who waits for it, which may be nobody */
RGATE_DEV void rgate_dask_deliver(const struct rgate_dask *a, uint64_t pos,
				  struct rgate_dpair first, struct rgate_dpair second)
{
	struct rgate_dasktally t = { 0, 0 };
	struct rgate_dcell *cell = rgate_dask_settle(a, pos, &first, &t);

	rgate_dask_count(a, &t);
	if (!cell)
		return;
	cell->answer.v[0] = first.v[1];
	cell->answer.v[1] = second.v[0];
	rgate_dgpu_release(&cell->done, first.v[0]);
}

/*
 * One thread, with the lock: the completion at *@pos, if @second, which was read there, says that
 * it is; the answer to @ticket goes to @out alone, of which 0 has none. 1: this was it; 0: another
 * one, or none. The other half is read afterwards: were both, the host would serve them one
 * after the other. The engine stores the cookie with release, so it may be what is acquired.
 */
RGATE_DEV int rgate_dask_take(struct rgate_dasker *me, uint64_t ticket, struct rgate_danswer *out,
			      uint64_t *pos, struct rgate_dpair second)
{
	const struct rgate_dask *a = me->ask;
	const uint64_t at = *pos;
	struct rgate_dpair first;

	if (second.v[1] != rgate_dask_comp_lap(a, at))
		return 0;
	first = rgate_dsys_pair_acquire_first(rgate_dask_half(a, at, 0));
	*pos = at + 1;
	if (!ticket || first.v[0] != ticket)
		rgate_dask_deliver(a, at, first, second);
	if (*pos % RGATE_REQ_BATCH == 0) {
		rgate_dsys_fence();
		rgate_dask_credit(a, at, 1);
	}
	if (!ticket || first.v[0] != ticket)
		return 0;
	out->result = (int32_t)(uint32_t)first.v[1];
	out->flags = (uint32_t)(first.v[1] >> 32);
	out->value = second.v[0];
	rgate_dcell_put(me, ticket);
	return 1;
}

/* The same, for what is there, @most of them; until the answer to @ticket came */
RGATE_DEV int rgate_dask_take_some(struct rgate_dasker *me, uint64_t ticket,
				   struct rgate_danswer *out, uint64_t *pos, uint32_t most)
{
	const uint64_t from = *pos;
	uint32_t i;
	int got = 0;

	for (i = 0; i < most && !got && *pos == from + i; i++)
		got = rgate_dask_take(me, ticket, out, pos, rgate_dask_peek(me->ask, *pos));
	return got;
}

/* The whole warp: the lock, its first lane's; @pos: in each one */
RGATE_DEV uint32_t rgate_dask_lock_warp(const struct rgate_dask *a, uint64_t *pos)
{
	uint64_t have = rgate_dlane() == 0 && rgate_dask_lock(a, pos);

	have = rgate_dwarp_first(have);
	*pos = rgate_dwarp_first(*pos);
	/* the barrier hands on what the first lane acquired */
	rgate_dwarp_sync();
	return (uint32_t)have;
}

/*
 * @fenced: the first lane has come through a fence since it had the lock, and written nothing since
 * but what each reader acquires by itself
 */
RGATE_DEV void rgate_dask_unlock_warp(const struct rgate_dask *a, uint64_t pos, uint32_t fenced)
{
	/* after all that any lane has brought */
	rgate_dwarp_sync();
	if (rgate_dlane() == 0 && fenced)
		rgate_dgpu_store_fenced(&a->state->lock, pos << 1);
	else if (rgate_dlane() == 0)
		rgate_dask_unlock(a, pos);
}

/* What a warp reads of completions, in one round over the link */
struct rgate_dasklook {
	/* one a lane: the rgate_dask_order()-th of each RGATE_DWARP of them */
	struct rgate_dpair first[RGATE_DASK_EACH], second[RGATE_DASK_EACH];
	uint32_t n;		/* that are there, in a row */
};

/*
 * A completion is read by two lanes side by side, half each, as one access: two accesses to the
 * same line of the host take twice the time. So the halves that come are
 *
 *	lane			0	1	2	3	...
 *	of completions		0	0	1	1	...	15	the first load
 *				16	16	17	17	...	31	the second one
 *
 * and each lane gives one of its two to its neighbour.
 */
RGATE_DEV uint32_t rgate_dask_order(void)
{
	return (rgate_dlane() & 1) * (RGATE_DWARP / 2) + rgate_dlane() / 2;
}

/* The whole warp: what is at @pos */
RGATE_DEV void rgate_dask_read(const struct rgate_dask *a, uint64_t pos,
			       struct rgate_dasklook *look)
{
	const uint64_t at = pos + rgate_dlane() / 2;
	const uint32_t odd = rgate_dlane() & 1;
	struct rgate_dpair got;
	uint32_t k, there;

	RGATE_DUNROLL
	for (k = 0; k < RGATE_DASK_EACH; k++) {
		look->first[k] = rgate_dsys_pair_load(
			rgate_dask_half(a, at + (uint64_t)k * RGATE_DWARP, odd));
		/* a warp of one lane reads both */
		look->second[k] = rgate_dsys_pair_load_back(
			rgate_dask_half(a, at + (uint64_t)k * RGATE_DWARP + RGATE_DWARP / 2,
					RGATE_DWARP > 1 ? odd : 1));
	}
	look->n = 0;
	/* in no order: what lies behind one that was not there is the next look's */
	RGATE_DUNROLL
	for (k = 0; k < RGATE_DASK_EACH; k++) {
		got = rgate_dwarp_swap(odd ? look->first[k] : look->second[k]);
		if (odd)
			look->first[k] = got;
		else
			look->second[k] = got;
		there = look->second[k].v[1] ==
			rgate_dask_comp_lap(a, pos + (uint64_t)k * RGATE_DWARP +
					       rgate_dask_order());
		there = rgate_dwarp_or(there << rgate_dask_order());
		if (look->n == k * RGATE_DWARP)
			look->n += rgate_dones(there);
	}
}

/* The whole warp: how many batches from the one on that the room ends at have been copied */
RGATE_DEV uint32_t rgate_dask_room(const struct rgate_dask *a, uint64_t limit)
{
	const uint64_t batch = limit - (1ULL << a->req_shift) +
			       (uint64_t)rgate_dlane() * RGATE_REQ_BATCH;
	uint32_t is = rgate_dsys_load(rgate_dask_req_credit(a, batch)) ==
		      rgate_dask_req_lap(a, batch);

	return rgate_dones(rgate_dwarp_or(is << rgate_dlane()));
}

/* The answers of a look into their cells, of which nobody is told yet */
RGATE_DEV void rgate_dask_bring(const struct rgate_dask *a, uint64_t pos,
				struct rgate_dasklook *look,
				struct rgate_dcell *cell[RGATE_DASK_EACH])
{
	struct rgate_dasktally t = { 0, 0 };
	uint64_t has[RGATE_DASK_EACH], done[RGATE_DASK_EACH], ticket;
	uint32_t k, i;

	/* all in one round of the device's memory, also those of cells that there are not */
	RGATE_DUNROLL
	for (k = 0; k < RGATE_DASK_EACH; k++) {
		i = (uint32_t)look->first[k].v[0] - 1;
		cell[k] = &a->cells[i & (a->ncells - 1)];
		has[k] = rgate_dgpu_load(&cell[k]->ticket);
		done[k] = rgate_dgpu_load(&cell[k]->done);
	}
	RGATE_DUNROLL
	for (k = 0; k < RGATE_DASK_EACH; k++) {
		i = k * RGATE_DWARP + rgate_dask_order();
		ticket = look->first[k].v[0];
		if (i >= look->n)
			cell[k] = (struct rgate_dcell *)0;
		else if ((uint32_t)ticket - 1 >= a->ncells || has[k] != ticket || done[k] == ticket)
			cell[k] = rgate_dask_settle(a, pos + i, &look->first[k], &t);
	}
	RGATE_DUNROLL
	for (k = 0; k < RGATE_DASK_EACH; k++) {
		if (!cell[k])
			continue;
		cell[k]->answer.v[0] = look->first[k].v[1];
		cell[k]->answer.v[1] = look->second[k].v[0];
	}
	t.failed = rgate_dwarp_add(t.failed);
	t.strays = rgate_dwarp_add(t.strays);
	if (rgate_dlane() == 0)
		rgate_dask_count(a, &t);
}

/*
 * The whole warp, the first lane of which has the lock: what is at @pos, 128 of them at most. Where
 * room for requests runs short, this looks for it as well.
 */
RGATE_DEV uint32_t rgate_dask_take_warp(const struct rgate_dask *a, uint64_t pos)
{
	struct rgate_daskstate *st = a->state;
	struct rgate_dcell *cell[RGATE_DASK_EACH];
	struct rgate_dasklook look;
	uint64_t limit, head;
	uint32_t k, copied = 0;

	limit = rgate_dgpu_load(&st->limit);
	head = rgate_dgpu_load(&st->head);
	rgate_dask_read(a, pos, &look);
	limit = rgate_dwarp_first(limit);
	if (limit - rgate_dwarp_first(head) <= 1ULL << a->req_shift >> 1)
		copied = rgate_dask_room(a, limit);
	if (!look.n && !copied)
		return 0;
	rgate_dask_bring(a, pos, &look, cell);
	/*
	 * All lanes' reads come before this fence of the first one, and so before its credits; and
	 * each one's fence makes an acquire of its reads, and a release of what it stores next.
	 */
	rgate_dwarp_sync();
	rgate_dsys_fence();
	RGATE_DUNROLL
	for (k = 0; k < RGATE_DASK_EACH; k++)
		if (cell[k])
			rgate_dgpu_store_fenced(&cell[k]->done, look.first[k].v[0]);
	if (rgate_dlane() == 0)
		rgate_dask_credit(a, pos, look.n);
	rgate_dwarp_sync();
	/* hands on what all lanes have acquired with the credits; others may have got as far */
	if (rgate_dlane() == 0 && copied)
		rgate_dgpu_release(&st->limit, limit + (uint64_t)copied * RGATE_REQ_BATCH);
	return look.n;
}

#endif
