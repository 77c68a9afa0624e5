// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "opts.h"
#include "spawn_client.h"

#define MS		1000000ULL
#define SPIN_NS		20000	/* looks so long before it sleeps */
#define NAP_MS		10	/* another thread may have taken the sign that woke it */
#define CLIENT_STATUS	320	/* then its rings, in what is written */

RGATE_ASSERT(sizeof(struct rgate_spawn_status) <= CLIENT_STATUS);

void client_wake_at(struct rgate_spawn *sp, uint64_t ns)
{
	const struct itimerspec it = { .it_value = rgate_clock_timespec(ns) };

	if (ns >= sp->wake_ns)
		return;
	sp->wake_ns = ns;
	(void)timerfd_settime(sp->timer_fd, TFD_TIMER_ABSTIME, &it, NULL);
}

void client_need(struct rgate_spawn_job *job, uint32_t need)
{
	struct rgate_spawn *sp = job->spawn;

	job->need |= need;
	if (job->in_work)
		return;
	job->in_work = true;
	job->work_next = NULL;
	*sp->work_last = job;
	sp->work_last = &job->work_next;
}

void client_news(struct rgate_spawn_job *job)
{
	struct rgate_spawn *sp = job->spawn;

	if (job->in_news || job->closed)
		return;
	job->in_news = true;
	job->news_next = NULL;
	*sp->news_last = job;
	sp->news_last = &job->news_next;
}

struct rgate_spawn_job *client_find(struct rgate_spawn *sp, uint64_t cookie)
{
	struct link *const ring = index_at(&sp->by_cookie, cookie), *l;
	struct rgate_spawn_job *job;

	for (l = ring->next; l != ring; l = l->next) {
		job = container_of(l, struct rgate_spawn_job, by_cookie.link);
		if (job->cookie == cookie)
			return job;
	}
	return NULL;
}

static void free_memory(struct rgate_spawn_job *job)
{
	struct rgate_spawn *sp = job->spawn;

	if (job->freed)
		job->freed(job, job->freed_ctx);
	rgate_pool_free(sp->stage, job->said);
	rgate_pool_free(sp->readable, job->lent);
	rgate_pool_free(sp->pool, job->buf);
}

static int alloc_memory(struct rgate_spawn_job *job)
{
	struct rgate_spawn *sp = job->spawn;
	uint32_t lent = (job->record_len + 63) / 64 * 64, at = CLIENT_STATUS;
	int i, err;

	job->ring[0] = lent;
	lent += job->ring_len[0];
	for (i = 1; i < 3; i++) {
		job->ring[i] = at;
		at += job->ring_len[i];
	}
	err = rgate_pool_alloc(sp->pool, at, &job->buf);
	if (!err)
		err = rgate_pool_alloc(sp->readable, lent, &job->lent);
	if (!err)
		err = rgate_pool_alloc(sp->stage, sizeof(struct rgate_spawn_start), &job->said);
	if (err)
		free_memory(job);
	else
		memset(job->buf->addr, 0, CLIENT_STATUS);
	return err;
}

struct rgate_spawn_job *client_job_create(struct rgate_spawn *sp, const uint32_t ring_len[3],
					  uint32_t record_len, int *err)
{
	struct rgate_spawn_job *job = calloc(1, sizeof(*job));

	*err = -ENOMEM;
	if (!job)
		return NULL;
	job->spawn = sp;
	job->record_len = record_len;
	memcpy(job->ring_len, ring_len, sizeof(job->ring_len));
	*err = alloc_memory(job);
	if (*err) {
		free(job);
		return NULL;
	}
	job->cookie = sp->next_cookie++;
	index_add(&sp->by_cookie, &job->by_cookie, job->cookie);
	job->next = sp->jobs;
	job->prev = &sp->jobs;
	if (job->next)
		job->next->prev = &job->next;
	sp->jobs = job;
	job->result.state = RGATE_SPAWN_PENDING;
	return job;
}

static void leave_work(struct rgate_spawn *sp, struct rgate_spawn_job *job)
{
	struct rgate_spawn_job **at;

	for (at = &sp->work; *at != job; at = &(*at)->work_next)
		;
	*at = job->work_next;
	if (sp->work_last == &job->work_next)
		sp->work_last = at;
}

static void leave_news(struct rgate_spawn *sp, struct rgate_spawn_job *job)
{
	struct rgate_spawn_job **at;

	for (at = &sp->news; *at != job; at = &(*at)->news_next)
		;
	*at = job->news_next;
	if (sp->news_last == &job->news_next)
		sp->news_last = at;
}

void client_job_reap(struct rgate_spawn_job *job)
{
	struct rgate_spawn *sp = job->spawn;

	if (!job->closed || job->message.under_way || (job->sent && !job->gone))
		return;
	/* Without a connection there is nobody to be told. */
	if (job->need && sp->session.up)
		return;
	index_del(&sp->by_cookie, &job->by_cookie);
	*job->prev = job->next;
	if (job->next)
		job->next->prev = job->prev;
	if (job->in_work)
		leave_work(sp, job);
	if (job->in_news)
		leave_news(sp, job);
	free_memory(job);
	free(job);
}

void client_job_end(struct rgate_spawn_job *job)
{
	job->ended = job->gone = true;
	job->asked_ns = 0;
	job->need &= RGATE_NEED_RELEASE;
	client_news(job);
}

void client_job_lose(struct rgate_spawn_job *job, int err, uint32_t stage, const char *reason)
{
	if (job->ended)
		return;
	job->result.state = RGATE_SPAWN_ERROR;
	job->result.error = err;
	job->result.stage = stage;
	strncpy(job->result.reason, reason, sizeof(job->result.reason) - 1);
	job->lost = job->answered;
	job->need = 0;
	client_job_end(job);
}

/* @unsent: also those that nobody was asked for yet */
static void lose_all(struct rgate_spawn *sp, bool unsent, int err, const char *reason)
{
	struct rgate_spawn_job *job, *next;

	for (job = sp->jobs; job; job = next) {
		next = job->next;
		if (!job->sent && !unsent)
			continue;
		client_job_lose(job, err, RGATE_SPAWN_AT_LOST, reason);
		client_job_reap(job);
	}
}

static void went_down(struct rgate_spawn *sp)
{
	struct rgate_spawn_job *job, *next;

	client_wake_at(sp, session_due(&sp->session));
	(void)xfer_reap(&sp->xfers);
	call_down(&sp->calls);
	for (job = sp->jobs; job; job = next) {
		next = job->next;
		job->asked_ns = 0;
		if (job->detached || job->ended) {
			/* Nobody reaches its memory any more. */
			job->gone = true;
			job->need = 0;
			if (job->detached)
				client_news(job);
		} else if (job->closed && !job->leaves) {
			job->need = job->sent ? RGATE_NEED_RELEASE : 0;
		}
		client_job_reap(job);
	}
}

/* Those that the server knows are attached again, or given up if they were closed; the
 * others are asked for again. */
static void came_up(struct rgate_spawn *sp)
{
	struct rgate_spawn_job *job;

	for (job = sp->jobs; job; job = job->next) {
		if (job->ended || job->gone || !job->sent)
			continue;
		if (job->closed && !job->leaves) {
			client_need(job, RGATE_NEED_RELEASE);
			continue;
		}
		job->signal_sent = job->signal_seen;
		client_need(job, job->answered || !job->record_len ? RGATE_NEED_ATTACH :
								     RGATE_NEED_START);
	}
}

void client_check_peer(struct rgate_spawn *sp, uint64_t now)
{
	enum session_news news;

	while ((news = session_look(&sp->session, now)) != SESSION_SAME) {
		switch (news) {
		case SESSION_DOWN:
			went_down(sp);
			break;
		case SESSION_LOST:
			lose_all(sp, true, -ENOTCONN, "no connection to its node");
			/* For what is asked for from now on */
			session_wait_again(&sp->session, now);
			client_wake_at(sp, session_due(&sp->session));
			break;
		case SESSION_OTHER:
			lose_all(sp, false, -ECONNRESET, "the node that ran it was started anew");
			call_other(&sp->calls);
			break;
		default:
			came_up(sp);
		}
	}
}

static void check_times(struct rgate_spawn *sp, uint64_t now)
{
	struct rgate_spawn_job *job, *next;
	uint64_t n;

	(void)!read(sp->timer_fd, &n, sizeof(n));
	sp->wake_ns = UINT64_MAX;
	client_wake_at(sp, session_due(&sp->session));
	for (job = sp->jobs; job; job = next) {
		next = job->next;
		if (!job->asked_ns || !sp->session.up)
			continue;
		if (now < job->asked_ns + sp->o.answer_ms * MS) {
			client_wake_at(sp, job->asked_ns + sp->o.answer_ms * MS);
			continue;
		}
		client_job_lose(job, -ETIMEDOUT, RGATE_SPAWN_AT_LOST,
				"no answer: does that node run processes?");
		/* It may answer still: its memory stays until the connection ends. */
		job->gone = false;
	}
}

/* What came */
static void take(struct rgate_spawn *sp)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);

	client_check_peer(sp, now);
	if (!(sp->o.flags & RGATE_SPAWN_SHARED))
		client_receive(sp);
	if (now >= sp->wake_ns)
		check_times(sp, now);
}

/* What is to be sent; then the descriptor tells of what comes */
static void give(struct rgate_spawn *sp)
{
	const bool jobs = client_send(sp), calls = call_send(&sp->calls);

	if (jobs || calls)
		client_wake_at(sp, rgate_clock_now(CLOCK_MONOTONIC) + MS);
	if (sp->o.flags & RGATE_SPAWN_SHARED)
		return;
	(void)rgate_peer_arm(sp->peer);
	/* That takes the sign of what happened since we looked. */
	if (session_changed(&sp->session) || xfer_reap(&sp->xfers))
		client_wake_at(sp, 1);
}

void client_process(struct rgate_spawn *sp)
{
	take(sp);
	give(sp);
}

struct client_wish client_wish(struct rgate_spawn *sp)
{
	struct client_wish w;

	pthread_mutex_lock(&sp->lock);
	w = (struct client_wish){
		.idle = !sp->jobs && call_idle(&sp->calls), .posted = !xfer_list_empty(&sp->xfers),
		.news = sp->news, .wake_ns = sp->wake_ns,
	};
	pthread_mutex_unlock(&sp->lock);
	return w;
}

int rgate_spawn_process(struct rgate_spawn *sp)
{
	pthread_mutex_lock(&sp->lock);
	client_process(sp);
	pthread_mutex_unlock(&sp->lock);
	return 0;
}

int client_wait(struct rgate_spawn *sp, bool (*done)(void *arg), void *arg, int timeout_ms)
{
	const uint64_t begun = rgate_clock_now(CLOCK_MONOTONIC);
	const uint64_t end = begun + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * MS;
	struct pollfd p = { .fd = sp->ev.fd, .events = POLLIN };
	uint64_t now;
	bool is;
	int ms;

	for (;;) {
		pthread_mutex_lock(&sp->lock);
		is = done(arg);
		if (!is) {
			take(sp);
			is = done(arg);
		}
		/* Thanks can wait for the next call. */
		if (!is) {
			give(sp);
			is = done(arg);
		}
		pthread_mutex_unlock(&sp->lock);
		now = rgate_clock_now(CLOCK_MONOTONIC);
		if (is)
			return 0;
		if (now >= end)
			return -ETIMEDOUT;
		if (now - begun < SPIN_NS) {
			rgate_cpu_relax();
			continue;
		}
		ms = end - now > NAP_MS * MS ? NAP_MS : (int)((end - now) / MS) + 1;
		(void)poll(&p, 1, ms);
	}
}

static int open_fds(struct rgate_spawn *sp)
{
	int err = events_open_plain(&sp->ev);

	if (err)
		return err;
	sp->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (sp->timer_fd < 0) {
		err = -errno;
		goto close_events;
	}
	err = events_add(&sp->ev, sp->timer_fd, EPOLLIN, 0);
	if (!err)
		err = events_add(&sp->ev, rgate_peer_fd(sp->peer), EPOLLIN, 0);
	if (!err)
		return 0;
	close(sp->timer_fd);
close_events:
	events_close(&sp->ev);
	return err;
}

int rgate_spawn_open(struct rgate_spawn **out, struct rgate_node *node, struct rgate_peer *peer,
		     const struct rgate_spawn_opts *opts)
{
	struct rgate_spawn *sp;
	int err;

	if (!out || !node || !peer)
		return -EINVAL;
	sp = calloc(1, sizeof(*sp));
	if (!sp)
		return -ENOMEM;
	err = rgate_opts_copy(&sp->o, sizeof(sp->o), opts);
	if (!err && sp->o.flags & ~(uint32_t)RGATE_SPAWN_SHARED)
		err = -EINVAL;
	if (err)
		goto free_sp;
	if (!sp->o.answer_ms)
		sp->o.answer_ms = 10000;
	if (!sp->o.reconnect_ms)
		sp->o.reconnect_ms = 10000;
	sp->node = node;
	sp->pool = rgate_node_pool(node);
	sp->stage = rgate_node_stage(node);
	err = rgate_node_readable(node, &sp->readable);
	if (err)
		goto free_sp;
	sp->peer = peer;
	sp->wake_ns = UINT64_MAX;
	sp->news_last = &sp->news;
	sp->work_last = &sp->work;
	if (getrandom(&sp->next_cookie, sizeof(sp->next_cookie), 0) < 0) {
		err = -errno;
		goto free_sp;
	}
	/* A peer that never comes up is as lost as one that went away. */
	session_init(&sp->session, peer, sp->o.reconnect_ms * MS,
		     rgate_clock_now(CLOCK_MONOTONIC));
	xfer_list_init(&sp->xfers, peer);
	err = call_client_init(&sp->calls, &sp->session, &sp->xfers, sp->stage);
	if (err)
		goto free_sp;
	err = index_init(&sp->by_cookie);
	if (err)
		goto fini_calls;
	err = open_fds(sp);
	if (err)
		goto fini_index;
	pthread_mutex_init(&sp->lock, NULL);
	pthread_mutex_lock(&sp->lock);
	client_wake_at(sp, session_due(&sp->session));
	client_process(sp);
	pthread_mutex_unlock(&sp->lock);
	*out = sp;
	return 0;

fini_index:
	index_fini(&sp->by_cookie);
fini_calls:
	call_client_fini(&sp->calls);
free_sp:
	free(sp);
	return err;
}

/* Nothing of the pool is used by the other side. */
static bool none_left(void *arg)
{
	struct rgate_spawn *sp = arg;

	/* All are closed, and there is nobody who could be told so. */
	if (!sp->session.up)
		lose_all(sp, true, -ENOTCONN, "closed without a connection");
	return !sp->jobs && call_idle(&sp->calls);
}

bool client_settled(struct rgate_spawn *sp)
{
	return !client_wait(sp, none_left, sp, 0);
}

void client_take_back(struct rgate_spawn *sp)
{
	rgate_info("the node that runs processes does not answer: its connection is ended");
	rgate_peer_cut(sp->peer);
	pthread_mutex_lock(&sp->lock);
	client_check_peer(sp, rgate_clock_now(CLOCK_MONOTONIC));
	lose_all(sp, true, -ENOTCONN, "closed without an answer");
	pthread_mutex_unlock(&sp->lock);
}

/* One that the caller still has */
static struct rgate_spawn_job *left_open(struct rgate_spawn *sp)
{
	struct rgate_spawn_job *job;

	pthread_mutex_lock(&sp->lock);
	for (job = sp->jobs; job && job->closed; job = job->next)
		;
	pthread_mutex_unlock(&sp->lock);
	return job;
}

void rgate_spawn_close(struct rgate_spawn *sp)
{
	struct rgate_spawn_job *job;

	if (!sp)
		return;
	while ((job = left_open(sp)))
		rgate_spawn_job_close(job);
	if (client_wait(sp, none_left, sp, CLIENT_CLOSE_MS))
		client_take_back(sp);
	call_client_fini(&sp->calls);
	index_fini(&sp->by_cookie);
	close(sp->timer_fd);
	events_close(&sp->ev);
	pthread_mutex_destroy(&sp->lock);
	free(sp);
}

int rgate_spawn_fd(const struct rgate_spawn *sp)
{
	return sp->ev.fd;
}
