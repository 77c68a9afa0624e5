// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "hub_ref.h"
#include "log.h"
#include "opts.h"
#include "spawnd.h"

#define EVENTS		128
#define ROUNDS		8		/* of work that makes work, before others have a turn */
#define PACKETS		256
#define AGAIN_NS	1000000		/* what could not be done is tried again */
#define STAGE_BYTES	(16ULL << 20)
#define RECONNECT_MS	10000
#define RETAIN_MS	600000
#define START_MS	10000
#define RELOAD_MS	30000		/* users may be looked up far away */

const char *rgate_spawn_stage_name(uint32_t stage)
{
	static const char *const names[] = { "run", "request", "setup", "exec", "lost" };

	return stage < sizeof(names) / sizeof(names[0]) ? names[stage] : "unknown";
}

int spawnd_watch(struct rgate_spawnd *sd, int fd, uint32_t events, struct rgate_spawnd_tag *tag)
{
	return events_add(&sd->ev, fd, events, events_word(tag));
}

void spawnd_wake_at(struct rgate_spawnd *sd, uint64_t ns)
{
	const struct itimerspec it = { .it_value = rgate_clock_timespec(ns) };

	if (ns >= sd->wake_ns)
		return;
	sd->wake_ns = ns;
	(void)timerfd_settime(sd->timer_fd, TFD_TIMER_ABSTIME, &it, NULL);
}

static int load_policy(struct rgate_spawnd *sd)
{
	struct rgate_spawn_policy *policy;
	int err;

	err = rgate_policy_load(&policy, sd->cluster, sd->policy_path);
	if (err == -ENOENT) {
		rgate_info("spawn: there is no %s: nobody may run anything", sd->policy_path);
		err = rgate_policy_nothing(&policy);
	}
	if (err) {
		rgate_err("spawn: %s: %s", sd->policy_path, strerror(-err));
		return err;
	}
	rgate_policy_free(sd->policy);
	sd->policy = policy;
	return 0;
}

int rgate_spawnd_check(const struct rgate_cluster *cluster, const char *path)
{
	struct rgate_spawn_policy *policy;
	int err;

	if (!cluster)
		return -EINVAL;
	err = rgate_policy_load(&policy, cluster, path ? path : RGATE_POLICY_PATH);
	if (err)
		return err;
	rgate_policy_free(policy);
	return rgate_spawner_check();
}

static int open_fds(struct rgate_spawnd *sd)
{
	int err = events_open_plain(&sd->ev);

	if (err)
		return err;
	sd->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (sd->timer_fd < 0) {
		err = -errno;
		goto close_events;
	}
	err = spawnd_io_lift(sd);
	if (err)
		goto close_timer;
	sd->spawner_tag.kind = RGATE_EV_SPAWNER;
	sd->timer_tag.kind = RGATE_EV_TIMER;
	err = spawnd_watch(sd, sd->spawner.sock, EPOLLIN, &sd->spawner_tag);
	if (!err)
		err = spawnd_watch(sd, sd->timer_fd, EPOLLIN, &sd->timer_tag);
	if (err)
		goto close_lift;
	return 0;

close_lift:
	close(sd->lift[0]);
	close(sd->lift[1]);
close_timer:
	close(sd->timer_fd);
close_events:
	events_close(&sd->ev);
	return err;
}

/* The soft limit of descriptors is for programs that use select(2). */
static int start_spawner(struct rgate_spawnd *sd)
{
	struct rgate_spawner_opts o = {
		.cgroup = sd->cgroup, .start_ms = sd->o.start_ms, .cluster = sd->cluster,
		.policy_path = sd->policy_path,
	};
	struct rlimit more;
	int err;

	if (getrlimit(RLIMIT_NOFILE, &o.files))
		return -errno;
	more = o.files;
	more.rlim_cur = more.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &more);
	err = rgate_spawner_create(&sd->spawner, &o);
	if (err)
		rgate_err("spawn: cannot make the spawner: %s", strerror(-err));
	return err;
}

static void init(struct rgate_spawnd *sd)
{
	uint32_t random = 1;
	unsigned int i;

	pthread_mutex_init(&sd->lock, NULL);
	sd->wake_ns = UINT64_MAX;
	sd->work_last = &sd->work;
	sd->stats.sz = sizeof(sd->stats);
	(void)!getrandom(&random, sizeof(random), 0);
	(void)!getrandom(&sd->mark, sizeof(sd->mark), 0);
	/* Those of an earlier server are not taken for ours. */
	sd->next_id = ((uint64_t)(random | 1) << 32) + 1;
	for (i = 0; i < RGATE_NODES_MAX; i++) {
		struct spawnd_client *c = &sd->client[i];

		c->tag.kind = RGATE_EV_CLIENT;
		c->sd = sd;
		c->id = i;
		c->queue_last = &c->queue;
		xfer_list_init(&c->xfers, NULL);
		c->answers_last = &c->answers;
	}
}

/* The spawner leaves the directory, and so may its server. NULL: there is no memory, or no
 * such directory any more (errno) */
static char *absolute(const char *path)
{
	char *here, *all = NULL;

	/* Empty is no path: "none" */
	if (*path == '/' || !*path)
		return strdup(path);
	here = getcwd(NULL, 0);
	if (here && asprintf(&all, "%s/%s", here, path) < 0) {
		all = NULL;
		errno = ENOMEM;
	}
	free(here);
	return all;
}

static int take_paths(struct rgate_spawnd *sd)
{
	sd->policy_path = absolute(sd->o.policy ? sd->o.policy : RGATE_POLICY_PATH);
	if (sd->policy_path && sd->o.cgroup)
		sd->cgroup = absolute(sd->o.cgroup);
	/* They were the caller's. */
	if (!sd->policy_path || (sd->o.cgroup && !sd->cgroup))
		return -errno;
	sd->o.policy = sd->o.cgroup = NULL;
	return 0;
}

static int take_opts(struct rgate_spawnd *sd, const struct rgate_spawnd_opts *user)
{
	int err = rgate_opts_copy(&sd->o, sizeof(sd->o), user);

	if (err)
		return err;
	if (sd->o.flags & ~(uint32_t)RGATE_SPAWND_SHARED)
		return -EINVAL;
	if (!sd->o.reconnect_ms)
		sd->o.reconnect_ms = RECONNECT_MS;
	if (!sd->o.retain_ms)
		sd->o.retain_ms = RETAIN_MS;
	if (!sd->o.start_ms)
		sd->o.start_ms = START_MS;
	if (!sd->o.stage_bytes)
		sd->o.stage_bytes = STAGE_BYTES;
	return take_paths(sd);
}

static void free_spawnd(struct rgate_spawnd *sd)
{
	pthread_mutex_destroy(&sd->lock);
	rgate_policy_free(sd->policy);
	index_fini(&sd->by_id);
	free(sd->cgroup);
	free(sd->policy_path);
	free(sd);
}

int rgate_spawnd_create(struct rgate_spawnd **out, const struct rgate_cluster *cluster,
			const struct rgate_spawnd_opts *opts)
{
	struct rgate_spawnd *sd;
	int err;

	if (!out || !cluster)
		return -EINVAL;
	sd = calloc(1, sizeof(*sd));
	if (!sd)
		return -ENOMEM;
	sd->cluster = cluster;
	init(sd);
	err = index_init(&sd->by_id);
	if (!err)
		err = take_opts(sd, opts);
	if (!err)
		err = load_policy(sd);
	if (!err)
		err = start_spawner(sd);
	if (err)
		goto free_sd;
	err = open_fds(sd);
	if (err)
		goto destroy_spawner;
	*out = sd;
	return 0;

destroy_spawner:
	rgate_spawner_destroy(&sd->spawner);
free_sd:
	free_spawnd(sd);
	return err;
}

int rgate_spawnd_fd(const struct rgate_spawnd *sd)
{
	return sd->ev.fd;
}

/* The spawner is gone, and all that it ran with it. */
static void lose_all(struct rgate_spawnd *sd)
{
	struct spawnd_job *job, *next;
	unsigned int i;

	if (sd->spawner_lost)
		return;
	sd->spawner_lost = true;
	events_remove(&sd->ev, sd->spawner.sock);
	for (i = 0; i < RGATE_NODES_MAX; i++) {
		for (job = sd->client[i].jobs; job; job = next) {
			next = job->next;
			if (job->step >= RGATE_JOB_QUEUED && job->step < RGATE_JOB_OVER)
				spawnd_job_fail(job, -EPIPE, RGATE_SPAWN_AT_LOST,
						"the node's spawner has ended");
		}
	}
}

static void on_packet(struct rgate_spawnd *sd, const struct rgate_spawner_packet *p)
{
	struct spawnd_job *job = spawnd_job_find(sd, p->id);

	if (!job)
		return;
	if (p->type == RGATE_SPAWNER_STARTED)
		spawnd_job_started(job, p);
	else if (p->type == RGATE_SPAWNER_EXITED)
		spawnd_job_exited(job, p);
	else if (p->type == RGATE_SPAWNER_FINISHED)
		spawnd_job_finished(job, p->flags);
}

static void on_spawner(struct rgate_spawnd *sd)
{
	struct rgate_spawner_packet p;
	int i, ret = 1;

	for (i = 0; i < PACKETS && ret > 0; i++) {
		ret = rgate_spawner_recv(&sd->spawner, &p);
		if (ret > 0)
			on_packet(sd, &p);
	}
	if (ret < 0)
		lose_all(sd);
}

/* What the spawner says to an order; what else it says meanwhile is taken, too */
static int await_reloaded(struct rgate_spawnd *sd)
{
	const uint64_t end = rgate_clock_now(CLOCK_MONOTONIC) + RELOAD_MS * 1000000ULL;
	struct pollfd fd = { .fd = sd->spawner.sock, .events = POLLIN };
	struct rgate_spawner_packet p;
	int ret;

	while (rgate_clock_now(CLOCK_MONOTONIC) < end) {
		(void)poll(&fd, 1, 100);
		while ((ret = rgate_spawner_recv(&sd->spawner, &p)) > 0) {
			if (p.type == RGATE_SPAWNER_RELOADED)
				return p.a;
			on_packet(sd, &p);
		}
		if (ret < 0) {
			lose_all(sd);
			return ret;
		}
	}
	return -ETIMEDOUT;
}

/* The spawner's policy is the one that counts: ours, for early answers, is made of what it
 * has read, also to tell what is wrong with it. */
static int take_policy(struct rgate_spawnd *sd, int err)
{
	const struct rgate_spawner_policy *text = &sd->spawner.shared->policy;
	struct rgate_spawn_policy *policy = NULL;
	int ret = 0;

	if (err == -ENOENT) {
		rgate_info("spawn: there is no %s: nobody may run anything", sd->policy_path);
		ret = rgate_policy_nothing(&policy);
	} else if (!err || err == -EINVAL) {
		ret = rgate_policy_parse(&policy, sd->cluster, sd->policy_path, text->text,
					 text->len);
	}
	if (err && err != -ENOENT) {
		rgate_policy_free(policy);
		rgate_err("spawn: %s: %s", sd->policy_path, strerror(-err));
		return err;
	}
	if (ret)
		return ret;
	rgate_policy_free(sd->policy);
	sd->policy = policy;
	return 0;
}

int rgate_spawnd_reload(struct rgate_spawnd *sd)
{
	int err;

	pthread_mutex_lock(&sd->lock);
	err = rgate_spawner_tell(&sd->spawner, RGATE_SPAWNER_RELOAD, 0, 0, 0);
	if (!err) {
		err = await_reloaded(sd);
		if (err != -EPIPE && err != -ETIMEDOUT)
			err = take_policy(sd, err);
	}
	/* Somebody may have a turn, or none any more. */
	spawnd_wake_at(sd, 1);
	pthread_mutex_unlock(&sd->lock);
	return err;
}

/* Some time is over: whose? Sets the timer for the next. */
static void on_timer(struct rgate_spawnd *sd)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	struct spawnd_job *job, *next;
	struct spawnd_client *c;
	uint64_t n;

	(void)!read(sd->timer_fd, &n, sizeof(n));
	sd->wake_ns = UINT64_MAX;
	for (c = sd->client; c < sd->client + RGATE_NODES_MAX; c++) {
		spawnd_wake_at(sd, session_due(&c->session));
		for (job = c->jobs; job; job = next) {
			next = job->next;
			spawnd_job_overtime(job, now);
			if (!job->dead && job->blocked)
				spawnd_job_mark(job);
		}
	}
}

static void on_event(struct rgate_spawnd *sd, const struct epoll_event *ev)
{
	struct rgate_spawnd_tag *tag = ev->data.ptr;
	struct spawnd_stream *s;

	switch (tag->kind) {
	case RGATE_EV_SPAWNER:
		on_spawner(sd);
		break;
	case RGATE_EV_TIMER:
		on_timer(sd);
		break;
	case RGATE_EV_STREAM:
		s = (struct spawnd_stream *)tag;
		if (s->fd < 0 || s->job->dead)
			break;
		spawnd_io_event(s, ev->events);
		spawnd_job_mark(s->job);
		break;
	case RGATE_EV_CLIENT:
		break;	/* each is looked at in any case */
	}
}

static void check_clients(struct rgate_spawnd *sd)
{
	struct spawnd_client *c;

	for (c = sd->client; c < sd->client + RGATE_NODES_MAX; c++)
		spawnd_client_check(c);
}

static void serve_clients(struct rgate_spawnd *sd)
{
	struct spawnd_client *c;

	for (c = sd->client; c < sd->client + RGATE_NODES_MAX; c++) {
		if (!c->peer)
			continue;
		spawnd_client_receive(c);
		(void)xfer_reap(&c->xfers);
	}
}

/* What is marked, once; what that marks anew is for the next round */
static void work_once(struct rgate_spawnd *sd, bool *blocked)
{
	struct spawnd_job *job = sd->work, *next;

	sd->work = NULL;
	sd->work_last = &sd->work;
	for (; job; job = next) {
		next = job->work_next;
		job->in_work = false;
		spawnd_job_advance(job);
		*blocked |= !job->dead && job->blocked;
	}
}

/* Operations that were over as soon as they were posted: over shared memory all of them */
static void take_done(struct rgate_spawnd *sd)
{
	struct spawnd_client *c;

	for (c = sd->client; c < sd->client + RGATE_NODES_MAX; c++)
		(void)xfer_reap(&c->xfers);
}

static void work(struct rgate_spawnd *sd, bool *blocked)
{
	int round;

	for (round = 0; round < ROUNDS && sd->work; round++) {
		work_once(sd, blocked);
		take_done(sd);
		spawnd_schedule(sd);
	}
}

static void arm_own(struct rgate_spawnd *sd, struct spawnd_client *c)
{
	(void)rgate_peer_arm(c->peer);
	/* That takes the sign of what happened since we looked. */
	if (session_changed(&c->session) || xfer_reap(&c->xfers))
		spawnd_wake_at(sd, 1);
}

/* Those whose messages are left lying for now would be told of at once, and again. */
static void arm_clients(struct rgate_spawnd *sd, bool *blocked)
{
	struct spawnd_client *c;

	for (c = sd->client; c < sd->client + RGATE_NODES_MAX; c++) {
		if (!c->peer)
			continue;
		spawnd_client_post(c);
		if (c->own && spawnd_client_ready(c))
			arm_own(sd, c);
		else
			*blocked |= c->own;
		if (sd->hub && !xfer_list_empty(&c->xfers))
			rgate_hub_await(sd->hub, c->id);
	}
}

int rgate_spawnd_process(struct rgate_spawnd *sd)
{
	struct epoll_event ev[EVENTS];
	bool blocked = false;
	int n, i, ret;

	pthread_mutex_lock(&sd->lock);
	n = events_wait(&sd->ev, ev, EVENTS, 0);
	for (i = 0; i < n; i++)
		on_event(sd, &ev[i]);
	/* Nothing goes over a connection to memory that was lent over the last one. */
	check_clients(sd);
	/* Who waits for the end of a process does so now. */
	work(sd, &blocked);
	serve_clients(sd);
	spawnd_schedule(sd);
	work(sd, &blocked);
	spawnd_job_bury(sd);
	arm_clients(sd, &blocked);
	if (sd->work)
		spawnd_wake_at(sd, 1);
	else if (blocked)
		spawnd_wake_at(sd, rgate_clock_now(CLOCK_MONOTONIC) + AGAIN_NS);
	ret = sd->spawner_lost ? -EPIPE : 0;
	pthread_mutex_unlock(&sd->lock);
	return ret;
}

int rgate_spawnd_stats(struct rgate_spawnd *sd, struct rgate_spawnd_stats *stats)
{
	int err;

	pthread_mutex_lock(&sd->lock);
	err = rgate_info_copy(stats, &sd->stats, sizeof(sd->stats));
	pthread_mutex_unlock(&sd->lock);
	return err;
}

void rgate_spawnd_destroy(struct rgate_spawnd *sd)
{
	struct spawnd_client *c;
	struct rgate_hub *hub;
	bool blocked = false;

	if (!sd)
		return;
	hub = sd->hub;
	if (hub) {
		/* Its node and its peers are used until the end. */
		rgate_hub_get(hub);
		rgate_hub_remove(hub, RGATE_SERVICE_SPAWN);
	}
	for (c = sd->client; c < sd->client + RGATE_NODES_MAX; c++) {
		spawnd_client_remove(c);
		free(c->spare);
		while (c->jobs)
			spawnd_job_forget(c->jobs);
	}
	work_once(sd, &blocked);
	spawnd_job_bury(sd);
	rgate_spawner_destroy(&sd->spawner);
	close(sd->lift[0]);
	close(sd->lift[1]);
	close(sd->timer_fd);
	events_close(&sd->ev);
	free_spawnd(sd);
	if (hub)
		rgate_hub_put(hub);
}
