// SPDX-License-Identifier: MIT OR GPL-2.0
#include "queue_worker.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "opts.h"
#include "thread.h"

#define MS		1000000ULL
#define REOPEN_MS	200
#define PREFETCH_MAX	4096U
#define FLAGS		31U

/* ---- Stopping ---- */

static void set_state(struct rgate_queue_worker *w, int state)
{
	const uint64_t one = 1;
	int now = worker_state(w);

	/* It goes one way. */
	while (now < state && !__atomic_compare_exchange_n(&w->state, &now, state, false,
							   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	(void)!write(w->bell, &one, sizeof(one));
}

void rgate_queue_worker_stop(struct rgate_queue_worker *w)
{
	set_state(w, WORKER_STOPS);
}

void rgate_queue_worker_drain(struct rgate_queue_worker *w)
{
	set_state(w, WORKER_DRAINS);
}

/* ---- A thread ---- */

int worker_open(struct queue_thread *t)
{
	struct rgate_queue_worker *w = t->worker;
	struct rgate_queue *q;
	int err;

	err = rgate_queue_open(&q, w->name, w->o.queue);
	if (err)
		return err;
	err = rgate_queue_fd(q);
	if (err < 0) {
		rgate_queue_close(q);
		return err;
	}
	t->queue = q;
	return 0;
}

/* What it had is given back. */
static void shut(struct queue_thread *t)
{
	fair_lock(&t->lock);
	worker_forget(t);
	rgate_queue_close(t->queue);
	t->queue = NULL;
	fair_unlock(&t->lock);
}

/* May the next one that is opened be another one's, who is there? */
static bool is_lost(int err)
{
	switch (err) {
	case -ECONNRESET:
	case -ENOTCONN:
	case -EPIPE:
	case -ECONNREFUSED:
	case -ETIMEDOUT:
	case -EUSERS:
		return true;
	default:
		return false;
	}
}

/*
 * Can it be opened later? -ENOENT: it is another process's queue, which is not there yet; -ENOSPC,
 * -EIO: it would have to be made, and the home's journal cannot be written
 */
static bool may_come(int err)
{
	return is_lost(err) || err == -ENOENT || err == -ENOSPC || err == -EIO;
}

/* Until it is open again; 0 also when it was stopped meanwhile: there is none then */
static int reopen(struct queue_thread *t)
{
	struct pollfd bell = { .fd = t->worker->bell, .events = POLLIN };
	int err = -ECONNREFUSED;

	shut(t);
	while (may_come(err) && worker_state(t->worker) != WORKER_STOPS) {
		/* One that drains has nothing to wait for that it could be woken by. */
		if (worker_state(t->worker) == WORKER_DRAINS)
			bell.fd = -1;
		(void)poll(&bell, 1, REOPEN_MS);
		fair_lock(&t->lock);
		err = worker_open(t);
		fair_unlock(&t->lock);
	}
	if (!err)
		worker_count(t, reopened, 1);
	return may_come(err) ? 0 : err;
}

/* When one ends by an error, all do. */
static void end(struct queue_thread *t, int err)
{
	struct rgate_queue_worker *w = t->worker;

	/* First, or another one would begin what this one gives back. */
	if (err)
		rgate_queue_worker_stop(w);
	shut(t);
	pthread_mutex_lock(&w->lock);
	w->error = w->error ? w->error : err;
	w->nrunning--;
	pthread_cond_broadcast(&w->ended);
	pthread_mutex_unlock(&w->lock);
}

static void *run(void *arg)
{
	struct queue_thread *t = arg;
	struct rgate_queue_worker *w = t->worker;
	int err;

	/* Until all have been started */
	pthread_mutex_lock(&w->lock);
	pthread_mutex_unlock(&w->lock);
	do {
		err = worker_loop(t);
		if (!is_lost(err) || !(w->o.flags & RGATE_WORKER_REOPEN))
			break;
		err = reopen(t);
	} while (!err && t->queue);
	end(t, err);
	return NULL;
}

/* ---- Who touches ---- */

/* False: it is at something, which is not waited for */
static bool touch_thread(struct queue_thread *t, bool waits)
{
	if (waits)
		fair_lock(&t->lock);
	else if (!fair_trylock(&t->lock))
		return false;
	if (t->queue)
		(void)worker_touch(t);
	fair_unlock(&t->lock);
	return true;
}

/* Those that run do not wait for others that ask, or wait for room. */
static void touch_all(struct rgate_queue_worker *w)
{
	unsigned int i;

	for (i = 0; i < w->nthreads; i++)
		w->threads[i].passed_by = !touch_thread(&w->threads[i], false);
	for (i = 0; i < w->nthreads; i++)
		if (w->threads[i].passed_by)
			touch_thread(&w->threads[i], true);
}

static void *touch(void *arg)
{
	struct rgate_queue_worker *w = arg;
	const uint64_t every = w->o.touch_ms * MS / 2;
	struct timespec until;

	pthread_mutex_lock(&w->lock);
	while (w->nrunning) {
		until = rgate_clock_timespec(rgate_clock_now(CLOCK_MONOTONIC) + every);
		if (pthread_cond_timedwait(&w->ended, &w->lock, &until) != ETIMEDOUT)
			continue;
		pthread_mutex_unlock(&w->lock);
		touch_all(w);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* Only where a queue takes away what runs long */
static int start_touching(struct rgate_queue_worker *w)
{
	struct rgate_queue_info info;
	int err;

	if (!(w->o.flags & RGATE_WORKER_TOUCH))
		return 0;
	err = rgate_queue_info(w->threads[0].queue, &info);
	if (err || !info.run_ms)
		return err;
	if (!w->o.touch_ms)
		w->o.touch_ms = info.run_ms < 6 ? 2 : info.run_ms / 3;
	err = rgate_thread_start(&w->toucher, NULL, touch, w);
	w->touches = !err;
	return err;
}

/* ---- The object ---- */

static int read_handlers(struct rgate_queue_worker *w)
{
	const struct rgate_queue_handler *rest = NULL, *h;
	unsigned int i, k;
	uint64_t types = 0;

	w->handlers = calloc(w->o.nhandlers, sizeof(*w->handlers));
	if (!w->handlers)
		return -ENOMEM;
	memcpy(w->handlers, w->o.handlers, w->o.nhandlers * sizeof(*w->handlers));
	for (i = 0; i < w->o.nhandlers; i++) {
		h = &w->handlers[i];
		if (!h->run || h->types & types || (!h->types && rest))
			return -EINVAL;
		types |= h->types;
		rest = h->types ? rest : h;
		for (k = 0; k < RGATE_QUEUE_TYPES; k++)
			if (h->types >> k & 1)
				w->by_type[k] = h;
	}
	w->types = rest ? 0 : types;
	for (k = 0; k < RGATE_QUEUE_TYPES; k++)
		w->by_type[k] = w->by_type[k] ? w->by_type[k] : rest;
	return 0;
}

static int read_opts(struct rgate_queue_worker *w, const struct rgate_queue_worker_opts *opts)
{
	struct rgate_queue_worker_opts *o = &w->o;
	int err;

	err = rgate_opts_copy(o, sizeof(*o), opts);
	if (!err && o->queue)
		err = rgate_opts_copy(&w->queue, sizeof(w->queue), o->queue);
	if (err)
		return err;
	o->threads = o->threads ? o->threads : 1;
	o->batch = o->batch ? o->batch : 1;
	if (!o->handlers || !o->nhandlers || o->nhandlers > RGATE_QUEUE_TYPES + 1 ||
	    o->threads > RGATE_WORKER_THREADS_MAX || o->batch > RGATE_QUEUE_CLAIM_MAX ||
	    o->prefetch > PREFETCH_MAX || o->flags & ~FLAGS || o->retry_ms > RGATE_QUEUE_MS_MAX)
		return -EINVAL;
	/* The caller's may be gone when it is opened again. */
	if (o->queue && w->queue.path) {
		w->path = strdup(w->queue.path);
		w->queue.path = w->path;
		if (!w->path)
			return -ENOMEM;
	}
	if (o->queue) {
		w->queue.sz = sizeof(w->queue);
		o->queue = &w->queue;
	}
	return read_handlers(w);
}

static int init_waiting(struct rgate_queue_worker *w)
{
	pthread_mutex_init(&w->lock, NULL);
	rgate_cond_init(&w->ended);
	w->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return w->bell < 0 ? -errno : 0;
}

static int init_thread(struct rgate_queue_worker *w, struct queue_thread *t)
{
	t->worker = w;
	list_init(&t->ahead);
	list_init(&t->ended);
	t->buf = malloc(RGATE_QUEUE_DATA_MAX);
	if (!t->buf)
		return -ENOMEM;
	fair_init(&t->lock);
	w->nthreads++;
	return worker_open(t);
}

/* All threads have ended. */
static void free_it(struct rgate_queue_worker *w)
{
	unsigned int i;

	if (w->touches)
		pthread_join(w->toucher, NULL);
	for (i = 0; i < w->nstarted; i++)
		pthread_join(w->threads[i].id, NULL);
	for (i = 0; i < w->nthreads; i++) {
		shut(&w->threads[i]);
		free(w->threads[i].buf);
		fair_destroy(&w->threads[i].lock);
	}
	if (w->bell >= 0)
		close(w->bell);
	pthread_cond_destroy(&w->ended);
	pthread_mutex_destroy(&w->lock);
	free(w->threads);
	free(w->handlers);
	free(w->path);
	free(w->name);
	free(w);
}

/* None goes on before all are there, or one of them cannot be. */
static int start_threads(struct rgate_queue_worker *w)
{
	int err = 0;

	pthread_mutex_lock(&w->lock);
	w->nrunning = w->nthreads;
	err = start_touching(w);
	while (!err && w->nstarted < w->nthreads) {
		struct queue_thread *t = &w->threads[w->nstarted];

		err = rgate_thread_start(&t->id, NULL, run, t);
		w->nstarted += !err;
	}
	w->nrunning = w->nstarted;
	if (err)
		rgate_queue_worker_stop(w);
	pthread_cond_broadcast(&w->ended);
	pthread_mutex_unlock(&w->lock);
	return err;
}

int rgate_queue_worker_start(struct rgate_queue_worker **out, const char *name,
			     const struct rgate_queue_worker_opts *opts)
{
	struct rgate_queue_worker *w = calloc(1, sizeof(*w));
	unsigned int i;
	int err;

	if (!w)
		return -ENOMEM;
	err = init_waiting(w);
	if (!err)
		err = name && opts ? read_opts(w, opts) : -EINVAL;
	if (!err) {
		w->name = strdup(name);
		w->threads = calloc(w->o.threads, sizeof(*w->threads));
		err = w->name && w->threads ? 0 : -ENOMEM;
	}
	for (i = 0; !err && i < w->o.threads; i++)
		err = init_thread(w, &w->threads[i]);
	if (!err && w->o.flags & RGATE_WORKER_DRAIN)
		rgate_queue_worker_drain(w);
	if (!err)
		err = start_threads(w);
	if (err)
		free_it(w);
	else
		*out = w;
	return err;
}

static bool is_own(const struct rgate_queue_worker *w)
{
	unsigned int i;

	for (i = 0; i < w->nstarted; i++)
		if (pthread_equal(w->threads[i].id, pthread_self()))
			return true;
	return false;
}

static void unlock(void *lock)
{
	pthread_mutex_unlock(lock);
}

/* With the lock: how many threads have not ended. Who waits may be cancelled. */
static unsigned int await_end(struct rgate_queue_worker *w, int timeout_ms)
{
	const uint64_t wait = (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * MS;
	const struct timespec until = rgate_clock_timespec(rgate_clock_now(CLOCK_MONOTONIC) + wait);

	while (w->nrunning)
		if (timeout_ms < 0)
			pthread_cond_wait(&w->ended, &w->lock);
		else if (pthread_cond_timedwait(&w->ended, &w->lock, &until))
			break;
	return w->nrunning;
}

int rgate_queue_worker_join(struct rgate_queue_worker *w, int timeout_ms)
{
	int err;

	if (is_own(w))
		return -EDEADLK;
	pthread_mutex_lock(&w->lock);
	pthread_cleanup_push(unlock, &w->lock);
	err = await_end(w, timeout_ms) ? -ETIMEDOUT : w->error;
	pthread_cleanup_pop(1);
	return err;
}

int rgate_queue_worker_close(struct rgate_queue_worker *w)
{
	int err;

	if (!w)
		return 0;
	err = rgate_queue_worker_join(w, 0);
	if (err == -ETIMEDOUT || err == -EDEADLK)
		return -EBUSY;
	free_it(w);
	return 0;
}

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

int rgate_queue_worker_info(const struct rgate_queue_worker *w,
			    struct rgate_queue_worker_info *info)
{
	struct rgate_queue_worker_info all = { .threads = 0 };
	struct rgate_queue_worker *mine = (struct rgate_queue_worker *)w;
	unsigned int i;

	pthread_mutex_lock(&mine->lock);
	all.threads = w->nrunning;
	pthread_mutex_unlock(&mine->lock);
	for (i = 0; i < w->nthreads; i++) {
		const struct queue_thread *t = &w->threads[i];

		all.running += __atomic_load_n(&t->n.running, __ATOMIC_RELAXED);
		all.claimed += load(&t->n.claimed);
		all.completed += load(&t->n.completed);
		all.released += load(&t->n.released);
		all.buried += load(&t->n.buried);
		all.given_back += load(&t->n.given_back);
		all.touched += load(&t->n.touched);
		all.late += load(&t->n.late);
		all.reopened += load(&t->n.reopened);
		all.busy_ns += load(&t->n.busy_ns);
		all.ahead += __atomic_load_n(&t->nahead, __ATOMIC_RELAXED);
		all.held += __atomic_load_n(&t->n.held, __ATOMIC_RELAXED);
	}
	return rgate_info_copy(info, &all, sizeof(all));
}
