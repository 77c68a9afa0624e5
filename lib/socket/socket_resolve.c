// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "socket_priv.h"
#include "socket_query.h"
#include "socket_resolve.h"
#include "thread.h"

#define SECOND	1000000000ULL

/* A user who asks, or waits for a thread that does */
struct asker {
	struct link turn;		/* the resolver's, in turns */
	struct link jobs;		/* that wait */
	uid_t uid;
	uint32_t waiting, running;
};

/* A request; once it runs it is the thread's */
struct job {
	struct link link;		/* the asker's */
	struct asker *asker;
	struct rgate_req *r;		/* whose word of data this is; NULL: is over */
	void *mem;
	uint32_t len;
	struct socket_query q;
};

struct worker {
	struct resolver *v;
	pthread_t thread;
	bool busy;			/* getaddrinfo() has it */
	bool left;			/* to itself: nobody waits for its end */
};

struct resolver {
	pthread_mutex_t lock;		/* all below; before that of the service */
	pthread_cond_t more;		/* there is a job, or it is over */
	struct socket_service *sv;	/* there while one of its requests is */
	struct link askers;
	struct worker worker[RESOLVE_THREADS];
	uint32_t threads, idle, running, waiting;
	uint32_t left;			/* workers that are */
	bool over;
	bool kept;			/* by who has made it */
	uint64_t said;			/* when a refusal was logged last */
};

/* ---- Users ---- */

/* gcc 12's analyzer loses the list of askers. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
static struct asker *asker_of(struct resolver *v, uid_t uid)
{
	struct asker *a;
	struct link *l;

	for (l = v->askers.next; l != &v->askers; l = l->next) {
		a = container_of(l, struct asker, turn);
		if (a->uid == uid)
			return a;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->uid = uid;
	list_init(&a->jobs);
	list_add_tail(&v->askers, &a->turn);
	return a;
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

static void leave_asker(struct asker *a)
{
	if (a->waiting || a->running)
		return;
	list_del(&a->turn);
	free(a);
}

/* With the lock: the policy as it is now. What is only read as an address asks nobody. */
static bool may(const struct resolver *v, const struct socket_query *q, uid_t uid)
{
	struct socket_service *sv = v->sv;
	bool ok;

	pthread_mutex_lock(&sv->lock);
	ok = !sv->policy || !socket_query_asks(q) ||
	     socket_policy_resolve(sv->policy, uid,
				   q->flags & RGATE_SOCKET_RESOLVE_NUMERIC ? "" : q->name);
	pthread_mutex_unlock(&sv->lock);
	return ok;
}

static void say_refused(struct resolver *v, const struct socket_query *q, uid_t uid)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	const char *name = *q->name ? q->name : "any";

	count_up(&v->sv->refused, 1);
	/* Who is refused often does not fill the log. */
	if (v->said && now - v->said < SECOND)
		return;
	v->said = now;
	rgate_warn("user %u may not resolve %s: 'allow user:%u resolve %s' in the policy of sockets would let him",
		   (unsigned int)uid, name, (unsigned int)uid, name);
}

/* ---- Threads ---- */

static bool may_run(const struct resolver *v, const struct asker *a)
{
	return a->waiting && (a->running < RESOLVE_OWN || v->running < RESOLVE_SHARED);
}

/* The next one's turn; it runs from now on. NULL: there is none that may */
static struct job *take(struct resolver *v)
{
	struct asker *a;
	struct link *l;
	struct job *j;

	for (l = v->askers.next; l != &v->askers; l = l->next) {
		a = container_of(l, struct asker, turn);
		if (!may_run(v, a))
			continue;
		j = container_of(a->jobs.next, struct job, link);
		list_del(&j->link);
		list_del(&a->turn);
		list_add_tail(&v->askers, &a->turn);
		a->waiting--;
		v->waiting--;
		a->running++;
		v->running++;
		return j;
	}
	return NULL;
}

/* With the lock, which is not held when it returns */
static void answer(struct resolver *v, struct job *j, int result, const struct socket_found *f)
{
	struct rgate_req *r = j->r;
	uint64_t value = 0;

	j->asker->running--;
	v->running--;
	/* From here on it cannot be cancelled any more, so its memory stays. */
	if (r) {
		rgate_req_set_data(r, NULL);
		if (!may(v, &j->q, j->asker->uid))
			result = -EACCES;
	}
	leave_asker(j->asker);
	pthread_mutex_unlock(&v->lock);
	if (r && !result)
		result = (int)socket_found_put(f, j->mem, j->len, &value);
	free(j);
	if (r)
		rgate_req_end(r, result, value);
}

static void run(struct worker *w, struct job *j)
{
	struct resolver *v = w->v;
	struct socket_found f;
	int result;

	w->busy = true;
	pthread_mutex_unlock(&v->lock);
	result = socket_query_run(&j->q, &f);
	pthread_mutex_lock(&v->lock);
	w->busy = false;
	answer(v, j, result, &f);
	pthread_mutex_lock(&v->lock);
}

static void free_resolver(struct resolver *v)
{
	pthread_cond_destroy(&v->more);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

static void *resolve(void *arg)
{
	struct worker *w = arg;
	struct resolver *v = w->v;
	bool last = false;
	struct job *j;

	pthread_mutex_lock(&v->lock);
	while (!v->over) {
		j = take(v);
		if (j) {
			run(w, j);
			/* Its user and those who waited for fewer to be busy may have a turn. */
			if (v->waiting)
				pthread_cond_signal(&v->more);
			continue;
		}
		v->idle++;
		pthread_cond_wait(&v->more, &v->lock);
		v->idle--;
	}
	if (w->left)
		last = !--v->left && !v->kept;
	pthread_mutex_unlock(&v->lock);
	if (last)
		free_resolver(v);
	return NULL;
}

/* Somebody will take the job that was added last. */
static int find_thread(struct resolver *v)
{
	struct worker *w = &v->worker[v->threads];
	int err;

	pthread_cond_signal(&v->more);
	if (v->idle >= v->waiting || v->threads == RESOLVE_THREADS)
		return 0;
	w->v = v;
	err = rgate_thread_start(&w->thread, NULL, resolve, w);
	if (!err)
		v->threads++;
	return v->threads ? 0 : err;
}

/* ---- Requests ---- */

/* With the lock */
static int enqueue(struct resolver *v, struct job *j, uid_t uid)
{
	struct asker *a = asker_of(v, uid);
	int err;

	if (!a)
		return -ENOMEM;
	if (a->waiting == RESOLVE_WAIT || v->waiting == RESOLVE_WAIT_ALL) {
		err = a->waiting == RESOLVE_WAIT ? -EDQUOT : -ENOBUFS;
		leave_asker(a);
		return err;
	}
	j->asker = a;
	rgate_req_set_data(j->r, j);
	list_add_tail(&a->jobs, &j->link);
	a->waiting++;
	v->waiting++;
	err = find_thread(v);
	if (!err)
		return 0;
	rgate_req_set_data(j->r, NULL);
	list_del(&j->link);
	a->waiting--;
	v->waiting--;
	leave_asker(a);
	return err;
}

int resolve_begin(struct rgate_req *r, void *ctx)
{
	struct resolver *v = ((struct socket_service *)ctx)->resolver;
	const uid_t uid = rgate_seat_uid(rgate_req_seat(r));
	struct job *j = calloc(1, sizeof(*j));
	int err;

	if (!j)
		return -ENOMEM;
	list_init(&j->link);
	j->r = r;
	j->mem = rgate_req_mem(r);
	j->len = rgate_req_get(r)->len;
	err = socket_query_get(&j->q, rgate_req_get(r), j->mem);
	pthread_mutex_lock(&v->lock);
	if (!err && !may(v, &j->q, uid)) {
		say_refused(v, &j->q, uid);
		err = -EACCES;
	}
	if (!err)
		err = enqueue(v, j, uid);
	pthread_mutex_unlock(&v->lock);
	if (!err)
		return RGATE_REQ_LATER;
	free(j);
	return err;
}

/* Whoever waits for it has it now; who asks for it finds out. */
int resolve_cancel(struct rgate_req *r, void *ctx)
{
	struct resolver *v = ((struct socket_service *)ctx)->resolver;
	struct job *j;

	pthread_mutex_lock(&v->lock);
	j = rgate_req_data(r);
	if (!j) {
		pthread_mutex_unlock(&v->lock);
		return -EALREADY;
	}
	rgate_req_set_data(r, NULL);
	j->r = NULL;
	if (!list_empty(&j->link)) {
		list_del(&j->link);
		j->asker->waiting--;
		v->waiting--;
		leave_asker(j->asker);
		free(j);
	}
	pthread_mutex_unlock(&v->lock);
	rgate_req_end(r, -ECANCELED, 0);
	return 0;
}

/* ---- The object ---- */

int resolver_create(struct resolver **out, struct socket_service *sv)
{
	struct resolver *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	pthread_mutex_init(&v->lock, NULL);
	pthread_cond_init(&v->more, NULL);
	v->sv = sv;
	v->kept = true;
	list_init(&v->askers);
	*out = v;
	return 0;
}

void resolver_destroy(struct resolver *v)
{
	struct worker *w;
	bool last;

	if (!v)
		return;
	pthread_mutex_lock(&v->lock);
	v->over = true;
	pthread_cond_broadcast(&v->more);
	/* Those that ask nobody are gone in a moment; the others are left to themselves. */
	for (w = v->worker; w < v->worker + v->threads; w++) {
		w->left = w->busy;
		v->left += w->left;
		if (w->left)
			pthread_detach(w->thread);
	}
	pthread_mutex_unlock(&v->lock);
	for (w = v->worker; w < v->worker + v->threads; w++)
		if (!w->left)
			pthread_join(w->thread, NULL);
	pthread_mutex_lock(&v->lock);
	v->kept = false;
	last = !v->left;
	pthread_mutex_unlock(&v->lock);
	if (last)
		free_resolver(v);
}

void resolver_lock(struct resolver *v)
{
	pthread_mutex_lock(&v->lock);
}

void resolver_unlock(struct resolver *v)
{
	pthread_mutex_unlock(&v->lock);
}
