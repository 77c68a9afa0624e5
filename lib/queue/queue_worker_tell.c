// SPDX-License-Identifier: MIT OR GPL-2.0
#include "queue_worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "queue_client.h"

#define MS	1000000ULL
#define MOST	RGATE_QUEUE_CLAIM_MAX	/* results at once */

void worker_drop(struct taken *task)
{
	free(task->result);
	free(task);
}

static void drop_all(struct link *list)
{
	while (!list_empty(list)) {
		struct taken *task = container_of(list->next, struct taken, link);

		list_del(&task->link);
		worker_drop(task);
	}
}

void worker_forget(struct queue_thread *t)
{
	drop_all(&t->ahead);
	drop_all(&t->ended);
	t->nended = 0;
	__atomic_store_n(&t->nahead, 0, __ATOMIC_RELAXED);
	t->asked = t->refused = false;
	t->now = NULL;
}

/* The claim is over: somebody else has the task, or it is no more. */
static bool too_late(int err)
{
	return err == -ESTALE || err == -ENOENT;
}

/* It is so, but the home's journal cannot be written for now. */
static bool is_unwritten(int err)
{
	return err == -ENOSPC || err == -EIO;
}

/* As the queue was removed, that is so of each: the next claim says it. */
static int settled(struct queue_thread *t, int err)
{
	if (is_unwritten(err))
		return 0;
	if (too_late(err)) {
		worker_count(t, late, 1);
		err = 0;
	}
	return err;
}

static int bury(struct queue_thread *t, const struct taken *task, const char *reason)
{
	int err;

	do {
		err = rgate_queue_bury(t->queue, &task->task, reason);
	} while (err == -EINTR);
	if (!err || is_unwritten(err))
		worker_count(t, buried, 1);
	return settled(t, err);
}

/* ---- Results ---- */

#define TOO_LONG	"its result is too long"

/* The oldest ones */
static unsigned int list_results(struct queue_thread *t, struct rgate_queue_result *r)
{
	struct link *l = t->ended.next;
	unsigned int n;

	for (n = 0; n < MOST && l != &t->ended; n++, l = l->next) {
		const struct taken *task = container_of(l, struct taken, link);

		r[n] = (struct rgate_queue_result){ .task = &task->task, .data = task->result,
						    .len = task->len };
	}
	return n;
}

/* May it be taken yet? */
static bool for_now(int err)
{
	return err == -EAGAIN || err == -EDQUOT || err == -EINTR || err == -ETIMEDOUT ||
	       is_unwritten(err);
}

static int read_results(struct queue_thread *t, const struct rgate_queue_result *r, unsigned int n)
{
	struct link *l = t->ended.next;
	unsigned int i;
	uint32_t held = 0;
	int ret = 0;

	/* Then nothing was told, and what was refused still is. */
	if (!n)
		return 0;
	t->refused = false;
	t->told = rgate_clock_now(CLOCK_MONOTONIC);
	for (i = 0; i < n; i++) {
		struct taken *task = container_of(l, struct taken, link);
		int err = r[i].error;

		l = l->next;
		/* Of several that went together each is told so: some may not be over. */
		task->unwritten |= is_unwritten(err);
		if (task->unwritten && too_late(err))
			err = 0;
		if (for_now(err)) {
			t->refused = true;
			held++;
			continue;
		}
		if (!err)
			worker_count(t, completed, 1);
		err = err == -EMSGSIZE ? bury(t, task, TOO_LONG) : settled(t, err);
		ret = ret ? ret : err;
		list_del(&task->link);
		t->nended--;
		worker_drop(task);
	}
	__atomic_store_n(&t->n.held, held, __ATOMIC_RELAXED);
	return ret;
}

int worker_flush(struct queue_thread *t)
{
	struct rgate_queue_result r[MOST];
	unsigned int n = list_results(t, r);

	if (!n)
		return 0;
	(void)rgate_queue_complete_many(t->queue, r, n);
	return read_results(t, r, n);
}

int worker_ask(struct queue_thread *t, uint32_t flags)
{
	struct rgate_queue_result r[MOST];
	unsigned int n = list_results(t, r);
	int err, ret;

	err = rgate_queue_next_start(t->queue, r, n, t->worker->types, t->worker->o.batch, flags);
	t->asked = !err;
	ret = read_results(t, r, n);
	return err ? err : ret;
}

/* ---- Tasks ---- */

int worker_begin(struct queue_thread *t, struct taken *task, bool *ours)
{
	const struct rgate_request begin = {
		.op = RGATE_REQ_QUEUE_BEGIN, .a0 = task->task.id,
		.a1 = RGATE_TASK_A1(task->task.claim, 0),
	};
	struct rgate_queue_result r[MOST];
	unsigned int n = list_results(t, r);
	uint64_t attempts = 0;
	int err, ret;

	do {
		err = queue_complete_along(t->queue, r, n, begin, false, &attempts);
		ret = read_results(t, r, n);
		n = 0;
	} while (err == -EINTR && !ret);
	*ours = !err;
	if (*ours) {
		task->task.attempts = (uint32_t)attempts;
		task->task.state = RGATE_TASK_RUNNING;
	}
	err = settled(t, err);
	/* What became of results says whether the queue is lost: the other may be a signal. */
	return ret ? ret : err;
}

static int release(struct queue_thread *t, const struct taken *task, uint32_t delay_ms)
{
	int err;

	if (delay_ms > RGATE_QUEUE_MS_MAX)
		delay_ms = RGATE_QUEUE_MS_MAX;
	do {
		err = rgate_queue_release(t->queue, &task->task, delay_ms);
	} while (err == -EINTR);
	if (!err || is_unwritten(err))
		worker_count(t, released, 1);
	return settled(t, err);
}

/* Its result goes with the next claim, or with the beginning of the next one. */
static bool keep_result(struct queue_thread *t, struct taken *task, size_t len)
{
	if (len) {
		task->result = malloc(len);
		if (!task->result)
			return false;
		memcpy(task->result, t->buf, len);
	}
	task->len = (uint32_t)len;
	if (!t->nended)
		t->told = rgate_clock_now(CLOCK_MONOTONIC);
	list_add_tail(&t->ended, &task->link);
	t->nended++;
	return true;
}

static int tell_error(struct queue_thread *t, const struct taken *task, int ret,
		      const struct rgate_queue_work *work)
{
	char text[RGATE_QUEUE_REASON_MAX + 1];

	if (ret == -EAGAIN || t->worker->o.flags & RGATE_WORKER_RETRY)
		return release(t, task, work->delay_ms);
	if (work->reason)
		return bury(t, task, work->reason);
	if (ret < 0 && ret > -4096)
		snprintf(text, sizeof(text), "%s", rgate_strerror(NULL, ret));
	else
		snprintf(text, sizeof(text), "the handler returned %d", ret);
	return bury(t, task, text);
}

int worker_tell(struct queue_thread *t, struct taken *task, int ret,
		const struct rgate_queue_work *work)
{
	int err;

	t->now = NULL;
	if (!ret && work->len <= RGATE_QUEUE_DATA_MAX && keep_result(t, task, work->len))
		return 0;
	if (ret)
		err = tell_error(t, task, ret, work);
	else if (work->len > RGATE_QUEUE_DATA_MAX)
		err = bury(t, task, TOO_LONG);
	else
		err = release(t, task, t->worker->o.retry_ms);
	worker_drop(task);
	return err;
}

int worker_give_back(struct queue_thread *t)
{
	int err = 0;

	while (!list_empty(&t->ahead) && !err) {
		struct taken *task = container_of(t->ahead.next, struct taken, link);

		do {
			err = rgate_queue_release(t->queue, &task->task, 0);
		} while (err == -EINTR);
		if (!err || is_unwritten(err))
			worker_count(t, given_back, 1);
		err = settled(t, err);
		list_del(&task->link);
		__atomic_store_n(&t->nahead, t->nahead - 1, __ATOMIC_RELAXED);
		worker_drop(task);
	}
	return err;
}

/* ---- While they run ---- */

static int touch_one(struct queue_thread *t, struct taken *task, uint64_t now, uint64_t every,
		     uint64_t longest)
{
	int err;

	if (!task->begun || now - task->touched < every ||
	    (longest && now - task->begun > longest))
		return 0;
	task->touched = now;
	err = rgate_queue_touch(t->queue, &task->task);
	if (!err)
		worker_count(t, touched, 1);
	/* What is said of the task later tells that it is late, or that nothing can be said. */
	return too_late(err) || err == -EINTR ? 0 : err;
}

static int touch_all(struct queue_thread *t, struct link *list, uint64_t now, uint64_t every,
		     uint64_t longest)
{
	struct link *l;
	int err = 0;

	for (l = list->next; l != list && !err; l = l->next)
		err = touch_one(t, container_of(l, struct taken, link), now, every, longest);
	return err;
}

int worker_touch(struct queue_thread *t)
{
	const struct rgate_queue_worker_opts *o = &t->worker->o;
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC), every = o->touch_ms * MS,
		       longest = o->touch_for_ms * MS;
	int err;

	if (!t->worker->touches)
		return 0;
	err = t->now ? touch_one(t, t->now, now, every, longest) : 0;
	/* Those of a batch that was begun, and those whose results are held */
	if (!err)
		err = touch_all(t, &t->ahead, now, every, longest);
	return err ? err : touch_all(t, &t->ended, now, every, 0);
}
