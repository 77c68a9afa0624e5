// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "opts.h"
#include "queue_priv.h"

void queue_look_at_clock(struct queue_service *sv)
{
	sv->home.now = sv->clock ? sv->clock() : rgate_clock_now(CLOCK_MONOTONIC);
}

static void worker_over(struct worker *w)
{
	free(container_of(w, struct opened, worker));
}

void opened_free(struct opened *o)
{
	struct queue *q = o->queue;

	o->worker.over = worker_over;
	queues_worker_gone(q, &o->worker);
	if (q->mirror) {
		mirror_close(q, o);
		mirror_detach(q, o);
	}
	q->handles--;
	queue_settle(q);
}

int queue_service_create(struct queue_service **out, const struct queue_opts *opts)
{
	struct queue_service *sv;
	struct queue_opts o;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (err)
		return err;
	sv = calloc(1, sizeof(*sv));
	if (!sv)
		return -ENOMEM;
	sv->clock = o.clock;
	sv->gate = o.gate;
	list_init(&sv->visits);
	queues_init(&sv->home);
	queue_look_at_clock(sv);
	if (o.journal)
		err = journal_open(&sv->journal, &sv->home, o.journal);
	if (err) {
		queues_fini(&sv->home);
		free(sv);
		return err;
	}
	keeper_init(&sv->keeper, &sv->home, sv->gate, o.keep_bytes);
	*out = sv;
	return 0;
}

int queue_service_add(struct queue_service *sv, struct rgate_engine *engine)
{
	sv->keeper.engine = engine;
	return rgate_engine_add(engine, &queue_requests, sv);
}

static uint64_t read_count(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

int queue_service_kept(const struct queue_service *sv, struct queue_kept_stats *stats)
{
	const struct queue_kept_stats *c = &sv->keeper.count;

	if (stats->sz != sizeof(*stats))
		return -EINVAL;
	stats->tasks = read_count(&c->tasks);
	stats->bytes = read_count(&c->bytes);
	stats->again = read_count(&c->again);
	stats->refused = read_count(&c->refused);
	stats->late = read_count(&c->late);
	stats->lost = read_count(&c->lost);
	stats->copies = read_count(&c->copies);
	stats->unmirrored = read_count(&sv->home.unmirrored);
	return 0;
}

int queue_service_journal(const struct queue_service *sv, struct journal_stats *stats)
{
	return sv->journal ? journal_stats(sv->journal, stats) : -ENOENT;
}

/* It is told when another node has copies. */
static int hold(struct rgate_req *r, const struct queue *q, int result, uint64_t value)
{
	const struct opened *o = container_of(rgate_req_object(r), struct opened, named);
	const struct held as = {
		.r = r, .result = result, .value = value, .by = o, .from = o->from,
		.last = RGATE_SUBMIT_FIRST(value) + (uint32_t)result - 1,
	};

	return mirror_hold(q->mirror->queue, &as);
}

/* What was read of memory that may be lost is told when it cannot be any more. */
int queue_tell_later(struct queue_service *sv, struct rgate_req *r, const struct queue *q,
		     int result, uint64_t value)
{
	const struct journal_answer a = {
		.r = r, .result = result, .value = value, .queue = q->serial,
		.submit = rgate_req_get(r)->op == RGATE_REQ_QUEUE_SUBMIT,
		.wait = rgate_req_get(r)->op == RGATE_REQ_QUEUE_WAIT,
	};

	if (a.submit && result > 0 && q->mirror)
		return hold(r, q, result, value);
	/* Who keeps them knows what to do: they are in no journal, and cannot be taken back. */
	if (a.submit && queue_high(rgate_req_get(r)->a1))
		return result;
	if (!sv->journal || !(q->journaled || q->removed) || result < 0 ||
	    !journal_is_behind(sv->journal))
		return result;
	journal_hold(sv->journal, &a);
	return RGATE_REQ_LATER;
}

void queue_service_stops(struct queue_service *sv)
{
	__atomic_store_n(&sv->home.stops, true, __ATOMIC_RELAXED);
}

void queue_service_destroy(struct queue_service *sv)
{
	if (!sv)
		return;
	queue_away_sweep(sv);
	keeper_fini(&sv->keeper);
	/* What goes now goes with the process, and is there for the next one. */
	journal_close(sv->journal);
	queues_fini(&sv->home);
	free(sv);
}
