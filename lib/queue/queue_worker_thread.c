// SPDX-License-Identifier: MIT OR GPL-2.0
#include "queue_worker.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "queue_client.h"

#define MS		1000000ULL
#define HOLD_MS		10U	/* a result is held no longer, while others are to be done */
#define REFUSED_MS	50	/* until what was refused is told, or asked for, again */
#define DRAIN_MS	200	/* between looks whether all is over */
#define GIVE_UP_MS	1000U	/* results that are refused still when the worker was stopped */
#define SLICE_MS	50	/* of a handler's wait for room */
#define DRAINED		1

/* What a handler is called with */
struct job {
	struct rgate_queue_work work;
	struct queue_thread *t;
};

/* ---- Claims ---- */

static uint32_t claim_flags(const struct rgate_queue_worker *w)
{
	const bool at_once = w->o.batch == 1 && !w->o.prefetch;

	return at_once || w->o.flags & RGATE_WORKER_BEGIN ? RGATE_CLAIM_BEGIN : 0;
}

static int ask(struct queue_thread *t)
{
	/* What is refused may be what somebody waits for before he takes others. */
	if (t->asked || t->refused)
		return 0;
	t->crowded = false;
	return worker_ask(t, claim_flags(t->worker));
}

static int add(struct queue_thread *t, const struct rgate_queue_got *got)
{
	struct taken *task = malloc(sizeof(*task) + got->task.len);

	if (!task)
		return -ENOMEM;
	memset(task, 0, sizeof(*task));
	task->task = got->task;
	memcpy(task->data, got->data, got->task.len);
	if (got->task.state == RGATE_TASK_RUNNING)
		task->begun = task->touched = rgate_clock_now(CLOCK_MONOTONIC);
	list_add_tail(&t->ahead, &task->link);
	__atomic_store_n(&t->nahead, t->nahead + 1, __ATOMIC_RELAXED);
	worker_count(t, claimed, 1);
	return 0;
}

/* What has come in the background; -EAGAIN: it has not, or too many wait there already */
static int take(struct queue_thread *t)
{
	int i, n, err = 0;

	n = rgate_queue_next_take(t->queue, t->got);
	if (n == -EAGAIN)
		return n;
	t->asked = false;
	t->crowded = n == -ENOBUFS;
	if (t->crowded)
		return -EAGAIN;
	/* A home that tells of none would be asked for ever. */
	if (n <= 0)
		return n ? n : -EPROTO;
	for (i = 0; i < n && !err; i++)
		err = add(t, &t->got[i]);
	return err;
}

/* No claim is in the background then; what one had is there. */
static int quit(struct queue_thread *t)
{
	int ret;

	if (!t->asked)
		return 0;
	ret = rgate_queue_quit(t->queue);
	if (ret == 1)
		ret = take(t);
	t->asked = false;
	return ret == -EAGAIN ? 0 : ret;
}

/* DRAINED: no task is left that is not over */
static int look_whether_over(struct queue_thread *t)
{
	struct rgate_queue_info info;
	int err = quit(t);

	if (err || t->nahead || t->nended)
		return err;
	err = rgate_queue_info(t->queue, &info);
	if (err)
		return err == -EINTR ? 0 : err;
	return info.now[RGATE_TASK_READY] + info.now[RGATE_TASK_DELAYED] +
	       info.now[RGATE_TASK_CLAIMED] + info.now[RGATE_TASK_RUNNING] ? 0 : DRAINED;
}

/* Until there may be something to do, without the lock. 0: a time is over */
static int rest(struct queue_thread *t)
{
	const bool drains = worker_state(t->worker) == WORKER_DRAINS;
	struct pollfd p[2] = {
		{ .fd = t->asked ? rgate_queue_fd(t->queue) : -1, .events = POLLIN },
		{ .fd = drains ? -1 : t->worker->bell, .events = POLLIN },
	};
	int n, ms = drains ? DRAIN_MS : -1;

	if (t->refused || t->crowded)
		ms = REFUSED_MS;
	fair_unlock(&t->lock);
	n = poll(p, 2, ms);
	fair_lock(&t->lock);
	return n;
}

/* There is none to do. */
static int wait_for_tasks(struct queue_thread *t)
{
	if (rest(t))
		return 0;
	if (t->refused)
		return worker_flush(t);
	return worker_state(t->worker) == WORKER_DRAINS ? look_whether_over(t) : 0;
}

/* Asks for more when it is time to, takes what has come, and waits if there is none. */
static int get_tasks(struct queue_thread *t)
{
	int err = t->nahead ? 0 : ask(t);

	if (!err && t->asked)
		err = take(t);
	if (err && err != -EAGAIN)
		return err;
	if (t->nahead || worker_state(t->worker) == WORKER_STOPS)
		return 0;
	/* The claim was asked for before they were there. */
	return t->nended && !t->refused ? worker_flush(t) : wait_for_tasks(t);
}

/* ---- Tasks ---- */

static int handle(struct queue_thread *t, struct taken *task, struct rgate_queue_work *work)
{
	const uint8_t type = task->task.type;
	const struct rgate_queue_handler *h = type < RGATE_QUEUE_TYPES ?
					      t->worker->by_type[type] : NULL;
	uint64_t from;
	int ret;

	if (!h) {
		work->reason = "no handler has its type";
		return -EINVAL;
	}
	from = rgate_clock_now(CLOCK_MONOTONIC);
	worker_count(t, running, 1);
	ret = h->run(h->ctx, work);
	worker_count(t, running, -1U);
	worker_count(t, busy_ns, rgate_clock_now(CLOCK_MONOTONIC) - from);
	return ret;
}

static int do_one(struct queue_thread *t)
{
	struct taken *task = container_of(t->ahead.next, struct taken, link);
	struct job job = { .t = t, .work = {
		.task = &task->task, .data = task->data, .result = t->buf,
		.delay_ms = t->worker->o.retry_ms,
		.thread = (uint32_t)(t - t->worker->threads),
	} };
	bool ours = true;
	int ret = 0;

	list_del(&task->link);
	__atomic_store_n(&t->nahead, t->nahead - 1, __ATOMIC_RELAXED);
	if (!task->begun)
		ret = worker_begin(t, task, &ours);
	/* They come while the handler runs. */
	if (!ret && t->nahead < t->worker->o.prefetch)
		ret = ask(t);
	if (ret || !ours) {
		worker_drop(task);
		return ret;
	}
	if (!task->begun)
		task->begun = task->touched = rgate_clock_now(CLOCK_MONOTONIC);
	t->now = task;
	fair_unlock(&t->lock);
	ret = handle(t, task, &job.work);
	fair_lock(&t->lock);
	ret = worker_tell(t, task, ret, &job.work);
	if (ret || !t->nended || !t->nahead)
		return ret;
	/* Who waits for a result does not wait for the tasks behind it. */
	if (rgate_clock_now(CLOCK_MONOTONIC) - t->told < (t->refused ? REFUSED_MS : HOLD_MS) * MS)
		return 0;
	return worker_flush(t);
}

/* It was stopped, or is drained: a handler's work is not lost if it can be told. */
static int wind_up(struct queue_thread *t)
{
	const uint64_t until = rgate_clock_now(CLOCK_MONOTONIC) + GIVE_UP_MS * MS;
	int err = quit(t);

	if (!err)
		err = worker_give_back(t);
	if (!err)
		err = worker_flush(t);
	while (!err && t->refused && rgate_clock_now(CLOCK_MONOTONIC) < until) {
		poll(NULL, 0, REFUSED_MS);
		err = worker_flush(t);
	}
	return err;
}

int worker_loop(struct queue_thread *t)
{
	int err = 0;

	fair_lock(&t->lock);
	while (!err && worker_state(t->worker) != WORKER_STOPS) {
		err = get_tasks(t);
		if (!err && t->nahead && worker_state(t->worker) != WORKER_STOPS)
			err = do_one(t);
	}
	if (!err || err == DRAINED)
		err = wind_up(t);
	fair_unlock(&t->lock);
	return err;
}

/* ---- For handlers ---- */

int rgate_queue_work_submit(struct rgate_queue_work *work, const struct rgate_queue_job *jobs,
			    unsigned int n, int timeout_ms, uint64_t *first)
{
	struct queue_thread *t = container_of(work, struct job, work)->t;
	const uint64_t from = rgate_clock_now(CLOCK_MONOTONIC);
	uint64_t gone = 0;
	int ret, slice;

	/* Meanwhile its task may have to be touched. */
	do {
		slice = SLICE_MS;
		if (timeout_ms >= 0 && (uint64_t)timeout_ms - gone < SLICE_MS)
			slice = timeout_ms - (int)gone;
		fair_lock(&t->lock);
		ret = rgate_queue_submit(t->queue, jobs, n, slice, first);
		if (ret < 0)
			(void)worker_touch(t);
		fair_unlock(&t->lock);
		if (ret != -ETIMEDOUT && (ret != -EAGAIN || !timeout_ms))
			return ret;
		if (worker_state(t->worker) == WORKER_STOPS)
			return -ECANCELED;
		gone = (rgate_clock_now(CLOCK_MONOTONIC) - from) / MS;
	} while (timeout_ms < 0 || gone < (uint64_t)timeout_ms);
	return ret;
}

/* A piece is there */
static void let_touch(void *ctx)
{
	struct queue_thread *t = ctx;

	(void)worker_touch(t);
	fair_unlock(&t->lock);
	fair_lock(&t->lock);
}

int rgate_queue_work_fetch(struct rgate_queue_work *work, const struct rgate_queue_memory *memory,
			   uint64_t off, void *buf, size_t len, int timeout_ms)
{
	struct queue_thread *t = container_of(work, struct job, work)->t;
	int err;

	fair_lock(&t->lock);
	err = queue_fetch(t->queue, memory, off, buf, len, timeout_ms, let_touch, t);
	fair_unlock(&t->lock);
	return err;
}
