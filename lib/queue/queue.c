// SPDX-License-Identifier: MIT OR GPL-2.0
#include "queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "journal.h"
#include "mirror.h"
#include "queues.h"

/* ---- The journal ---- */

/* NULL: it has not that task */
static struct journal *journal_of(const struct queue *q, const struct task *t)
{
	return t->seg ? q->home->journal : NULL;
}

static void record_change(struct queue *q, struct task *t)
{
	struct journal *j = journal_of(q, t);

	if (j)
		journal_change(j, t);
}

/*
 * That it was begun, or is put off: it may be so again and again, while nothing can be written. It
 * is left out then: the task is ready for the next process, by the attempts that were recorded.
 */
static void record_try(struct queue *q, struct task *t)
{
	struct journal *j = journal_of(q, t);

	if (j && !journal_is_crowded(j))
		journal_change(j, t);
}

static bool is_recorded(const struct queue *q)
{
	return q->home->journal && q->journaled;
}

static bool is_crowded(const struct queue *q)
{
	return is_recorded(q) && journal_is_crowded(q->home->journal);
}

/* With its queue, which is gone: nothing more is said of it. */
static void record_end(struct queue *q, struct task *t)
{
	struct journal *j = journal_of(q, t);

	if (j && q->journaled)
		journal_gone(j, t);
	else if (j)
		journal_leave(j, t);
}

/*
 * Tasks of other nodes are kept there, and come again: they would be twice. -ENOSPC, -EIO, -EAGAIN,
 * -ENOMEM
 */
static int may_record(const struct queue *q, uint32_t tag, uint32_t len)
{
	if (tag || !is_recorded(q))
		return 0;
	return journal_may_submit(q->home->journal, len);
}

/* ---- States ---- */

static void set_state(struct queue *q, struct task *t, enum rgate_task_state state)
{
	if (t->state)
		q->count.now[t->state]--;
	t->state = (uint8_t)state;
	if (state)
		q->count.now[state]++;
}

/* Of no state: in no list, and without a time */
static void take_out(struct queue *q, struct task *t)
{
	struct link *ready = &q->ready[t->priority][t->type];

	list_del(&t->in);
	if (t->state == RGATE_TASK_READY && list_empty(ready))
		q->types[t->priority] &= ~(1ULL << t->type);
	heap_del(&q->home->timers, &t->timer);
	t->worker = NULL;
}

static uint64_t in_ms(const struct queue *q, uint32_t ms)
{
	return q->home->now + ms * 1000000ULL;
}

/* Behind the others, or where it was claimed before: before those */
static void make_ready(struct queue *q, struct task *t, bool again)
{
	struct link *ready = &q->ready[t->priority][t->type];

	take_out(q, t);
	list_add_tail(again ? ready->next : ready, &t->in);
	q->types[t->priority] |= 1ULL << t->type;
	set_state(q, t, RGATE_TASK_READY);
}

static void make_delayed(struct queue *q, struct task *t, uint32_t ms)
{
	take_out(q, t);
	list_add_tail(&q->delayed, &t->in);
	heap_add(&q->home->timers, &t->timer, in_ms(q, ms));
	set_state(q, t, RGATE_TASK_DELAYED);
}

static void put_off(struct queue *q, struct task *t, uint32_t ms)
{
	make_delayed(q, t, ms);
	record_try(q, t);
}

static void drop_end(struct queue *q, struct task *t)
{
	if (!t->end)
		return;
	quota_give(q->quota, t->end_len);
	if (t->state == RGATE_TASK_DONE)
		q->count.result_bytes -= t->end_len;
	free(t->end);
	t->end = NULL;
	t->end_len = 0;
}

/* -EDQUOT, -ENOMEM; nothing, if there is none */
static int set_end(struct queue *q, struct task *t, const void *end, uint32_t len)
{
	char *copy;
	int err;

	if (!len)
		return 0;
	err = quota_take(q->quota, len);
	if (err)
		return err;
	copy = malloc(len);
	if (!copy) {
		quota_give(q->quota, len);
		return -ENOMEM;
	}
	memcpy(copy, end, len);
	drop_end(q, t);
	t->end = copy;
	t->end_len = len;
	return 0;
}

/* gcc 12's analyzer loses what the task has. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
/* Without memory there is no reason. */
static void bury(struct queue *q, struct task *t, const void *reason, uint32_t len)
{
	drop_end(q, t);
	(void)set_end(q, t, reason, len);
	take_out(q, t);
	list_add_tail(&q->buried, &t->in);
	set_state(q, t, RGATE_TASK_BURIED);
	q->count.buried++;
	record_change(q, t);
	queue_ends_add(q, t);
	queue_tell(t, 0);
	if (t->taken)
		queue_drop(q, t);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

/* It may be begun once more, or was so too often. */
static void give_back(struct queue *q, struct task *t, uint32_t ms, const char *why)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
	if (t->attempts >= t->most)
		bury(q, t, why, (uint32_t)strlen(why));
	else if (ms)
		put_off(q, t, ms);
	else
		make_ready(q, t, true);
}

/* ---- They come and go ---- */

int queue_put_check(const struct rgate_queue_put *put)
{
	if (put->len > RGATE_QUEUE_DATA_MAX || put->delay_ms > RGATE_QUEUE_MS_MAX ||
	    put->attempts > RGATE_QUEUE_ATTEMPTS_MAX || put->type >= RGATE_QUEUE_TYPES ||
	    put->priority >= RGATE_QUEUE_PRIORITIES ||
	    put->flags & ~RGATE_TASK_FLAGS || put->reserved)
		return -EINVAL;
	return 0;
}

static struct task *make_task(struct queue *q, const struct rgate_queue_put *put)
{
	struct task *t = malloc(queue_cost(put->len));

	if (!t)
		return NULL;
	*t = (struct task){
		.queue = q, .born_ns = q->home->now, .len = put->len, .type = put->type,
		.priority = put->priority, .flags = put->flags,
		.most = put->attempts ? put->attempts : q->rules.attempts,
	};
	queue_task_init(t);
	return t;
}

int queue_reserve(struct queue *q, uint32_t len)
{
	int err;

	err = queue_table_grow(q);
	if (!err)
		err = queues_reserve(q->home);
	return err ? err : quota_take(q->quota, queue_cost(len));
}

void queue_task_init(struct task *t)
{
	list_init(&t->in);
	list_init(&t->waiters);
	list_init(&t->of_seg);
}

void queue_add(struct queue *q, struct task *t)
{
	q->n++;
	q->home->ntasks++;
	q->count.bytes += t->len;
	list_add_tail(&q->tasks, &t->of_queue);
	if (q->mirror)
		mirror_comes(q->mirror, t);
	queue_table_enter(q, t);
}

/* Where it is among those of its state, and when its time comes: @at; it has @end by now */
void queue_place(struct queue *q, struct task *t, enum rgate_task_state state, uint64_t at)
{
	take_out(q, t);
	switch (state) {
	case RGATE_TASK_DELAYED:
		list_add_tail(&q->delayed, &t->in);
		break;
	case RGATE_TASK_BURIED:
		list_add_tail(&q->buried, &t->in);
		break;
	case RGATE_TASK_DONE:
		list_add_tail(&q->done, &t->in);
		break;
	default:
		make_ready(q, t, false);
		return;
	}
	if (state != RGATE_TASK_BURIED)
		heap_add(&q->home->timers, &t->timer, at);
	set_state(q, t, state);
}

int queue_set_end(struct queue *q, struct task *t, const void *end, uint32_t len)
{
	drop_end(q, t);
	return set_end(q, t, end, len);
}

int queue_submit(struct queue *q, uid_t uid, uint32_t tag, const struct rgate_queue_put *put,
		 const void *data, uint64_t *id)
{
	struct task *t = NULL;
	int err;

	if (put->len > q->rules.bytes)
		return -EMSGSIZE;
	if (q->n >= q->rules.tasks || q->count.bytes + put->len > q->rules.bytes) {
		q->count.full++;
		return -EAGAIN;
	}
	err = may_record(q, tag, put->len);
	if (!err)
		err = queue_reserve(q, put->len);
	if (err)
		return err;
	t = make_task(q, put);
	if (!t) {
		quota_give(q->quota, queue_cost(put->len));
		return -ENOMEM;
	}
	if (put->len)
		memcpy(t->data, data, put->len);
	t->uid = uid;
	t->tag = tag;
	t->id = ++q->last;
	q->count.submitted++;
	queue_add(q, t);
	if (put->delay_ms)
		make_delayed(q, t, put->delay_ms);
	else
		make_ready(q, t, false);
	if (!tag && is_recorded(q))
		journal_task(q->home->journal, t);
	*id = t->id;
	return 0;
}

void queue_drop(struct queue *q, struct task *t)
{
	take_out(q, t);
	record_end(q, t);
	queue_ends_add(q, t);
	queue_tell(t, -ENOENT);
	drop_end(q, t);
	set_state(q, t, 0);
	if (q->mirror)
		mirror_goes(q->mirror, t);
	list_del(&t->of_queue);
	queue_table_leave(q, t);
	quota_give(q->quota, queue_cost(t->len));
	q->count.bytes -= t->len;
	q->n--;
	q->home->ntasks--;
	free(t);
	if (!q->n && q->places > QUEUE_PLACES_FIRST)
		queue_table_free(q);
}

/* ---- Workers ---- */

struct task *queue_first(const struct queue *q, uint64_t types)
{
	struct task *first = NULL, *t;
	uint64_t left = 0;
	uint32_t p;

	for (p = 0; p < RGATE_QUEUE_PRIORITIES && !left; p++)
		left = q->types[p] & types;
	for (; left; left &= left - 1) {
		t = container_of(q->ready[p - 1][__builtin_ctzll(left)].next, struct task, in);
		if (!first || t->id < first->id)
			first = t;
	}
	return first;
}

static void run(struct queue *q, struct task *t)
{
	set_state(q, t, RGATE_TASK_RUNNING);
	t->attempts++;
	if (q->rules.run_ms)
		heap_add(&q->home->timers, &t->timer, in_ms(q, q->rules.run_ms));
	record_try(q, t);
}

void queue_claim(struct queue *q, struct task *t, struct worker *w, bool begin)
{
	take_out(q, t);
	t->worker = w;
	t->claim++;
	list_add_tail(&w->tasks, &t->in);
	set_state(q, t, RGATE_TASK_CLAIMED);
	if (begin)
		run(q, t);
}

static int claimed(struct queue *q, const struct worker *w, uint64_t id, uint32_t claim,
		   struct task **out)
{
	struct task *t = queue_find(q, id);

	*out = t;
	if (!id || id > q->last)
		return -ENOENT;
	if (t && t->worker == w && t->claim == claim)
		return 0;
	return -ESTALE;
}

int queue_begin(struct queue *q, const struct worker *w, uint64_t id, uint32_t claim,
		uint32_t *attempts)
{
	struct task *t;
	int err = claimed(q, w, id, claim, &t);

	if (err)
		return err;
	if (t->state == RGATE_TASK_CLAIMED)
		run(q, t);
	*attempts = t->attempts;
	return 0;
}

int queue_touch(struct queue *q, const struct worker *w, uint64_t id, uint32_t claim)
{
	struct task *t;
	int err = claimed(q, w, id, claim, &t);

	if (err || t->state != RGATE_TASK_RUNNING || !q->rules.run_ms)
		return err;
	heap_del(&q->home->timers, &t->timer);
	heap_add(&q->home->timers, &t->timer, in_ms(q, q->rules.run_ms));
	return 0;
}

int queue_complete(struct queue *q, const struct worker *w, uint64_t id, uint32_t claim,
		   const void *result, uint32_t len)
{
	bool kept;
	struct task *t;
	int err = claimed(q, w, id, claim, &t);

	if (err) {
		q->count.stale += err == -ESTALE;
		return err;
	}
	kept = t->flags & RGATE_TASK_RESULT;
	if (!kept && list_empty(&t->waiters))
		len = 0;
	/* It would be told for ever. */
	if (len > q->rules.bytes)
		return -EMSGSIZE;
	if (q->count.result_bytes + len > q->rules.bytes)
		return -EAGAIN;
	if (journal_of(q, t))
		err = journal_may_change(q->home->journal, kept ? len : 0);
	if (!err)
		err = set_end(q, t, result, len);
	if (err)
		return err;
	if (t->state == RGATE_TASK_CLAIMED)
		t->attempts++;
	take_out(q, t);
	set_state(q, t, RGATE_TASK_DONE);
	q->count.result_bytes += t->end_len;
	q->count.done++;
	list_add_tail(&q->done, &t->in);
	if (kept) {
		heap_add(&q->home->timers, &t->timer, in_ms(q, q->rules.result_ms));
		record_change(q, t);
	} else {
		record_end(q, t);
	}
	queue_ends_add(q, t);
	queue_tell(t, 0);
	if (!kept || t->taken)
		queue_drop(q, t);
	return 0;
}

int queue_release(struct queue *q, const struct worker *w, uint64_t id, uint32_t claim,
		  uint32_t ms, uint32_t *state)
{
	struct task *t;
	int err = claimed(q, w, id, claim, &t);

	if (err)
		return err;
	q->count.released++;
	*state = t->attempts >= t->most ? RGATE_TASK_BURIED :
		 ms ? RGATE_TASK_DELAYED : RGATE_TASK_READY;
	give_back(q, t, ms, "released, with no attempt left");
	return 0;
}

int queue_bury(struct queue *q, const struct worker *w, uint64_t id, uint32_t claim,
	       const void *reason, uint32_t len)
{
	struct task *t;
	int err = claimed(q, w, id, claim, &t);

	if (!err)
		bury(q, t, reason, len);
	return err;
}

void queue_worker_init(struct queue *q, struct worker *w)
{
	list_init(&w->tasks);
	list_add_tail(&q->workers, &w->of_queue);
}

/* For the next process: what it has begun counts for nothing. */
static void save(struct queue *q, struct task *t)
{
	const bool ran = t->state == RGATE_TASK_RUNNING;

	make_ready(q, t, true);
	if (!ran)
		return;
	t->attempts--;
	record_try(q, t);
}

uint32_t queue_worker_give(struct queue *q, struct worker *w, uint32_t most)
{
	uint32_t n;

	/* The last one first: each goes before the others. */
	for (n = 0; n < most && !list_empty(&w->tasks); n++) {
		struct task *t = container_of(w->tasks.prev, struct task, in);

		q->count.lost++;
		if (journal_of(q, t) && __atomic_load_n(&q->home->stops, __ATOMIC_RELAXED))
			save(q, t);
		else
			give_back(q, t, 0, "its worker ended, with no attempt left");
	}
	return n;
}

void queue_worker_gone(struct queue *q, struct worker *w)
{
	(void)queue_worker_give(q, w, UINT32_MAX);
	list_del(&w->of_queue);
}

static void kick(struct queue *q, struct task *t)
{
	if (t->state == RGATE_TASK_BURIED)
		t->attempts = 0;
	drop_end(q, t);
	make_ready(q, t, false);
	record_change(q, t);
	q->count.kicked++;
}

static struct task *first_of(const struct link *list)
{
	return list_empty(list) ? NULL : container_of(list->next, struct task, in);
}

uint32_t queue_kick(struct queue *q, uint32_t most)
{
	struct task *t;
	uint32_t n;

	/* Those would be buried again, and so on. */
	for (n = 0; n < most && n < QUEUE_STEPS && !is_crowded(q); n++) {
		t = first_of(&q->buried);
		if (!t)
			t = first_of(&q->delayed);
		if (!t)
			break;
		kick(q, t);
	}
	return n;
}

static struct task *first_in(const struct queue *q, uint32_t states)
{
	struct task *t = NULL;

	if (states & RGATE_TASK_BIT(RGATE_TASK_READY))
		t = queue_first(q, UINT64_MAX);
	if (!t && states & RGATE_TASK_BIT(RGATE_TASK_DELAYED))
		t = first_of(&q->delayed);
	if (!t && states & RGATE_TASK_BIT(RGATE_TASK_BURIED))
		t = first_of(&q->buried);
	if (!t && states & RGATE_TASK_BIT(RGATE_TASK_DONE))
		t = first_of(&q->done);
	return t;
}

uint32_t queue_discard(struct queue *q, uint32_t states)
{
	struct task *t;
	uint32_t n;

	for (n = 0; n < QUEUE_STEPS; n++) {
		t = first_in(q, states);
		if (!t)
			break;
		queue_drop(q, t);
	}
	return n;
}

void queue_expire(struct task *t)
{
	struct queue *q = t->queue;

	switch (t->state) {
	case RGATE_TASK_DELAYED:
		make_ready(q, t, false);
		break;
	case RGATE_TASK_RUNNING:
		q->count.late++;
		give_back(q, t, 0, "ran for too long, with no attempt left");
		break;
	default:
		queue_drop(q, t);
	}
}
