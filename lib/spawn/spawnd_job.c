// SPDX-License-Identifier: MIT OR GPL-2.0
/* A request, from its record to its end. */
#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "spawnd.h"

#define MS		1000000ULL
#define CUT_MS		1000	/* after SIGKILL, for its output to end */

struct spawnd_job *spawnd_job_find(struct rgate_spawnd *sd, uint64_t id)
{
	struct link *const ring = index_at(&sd->by_id, id), *l;
	struct spawnd_job *job;

	for (l = ring->next; l != ring; l = l->next) {
		job = container_of(l, struct spawnd_job, by_id.link);
		if (job->id == id)
			return job;
	}
	return NULL;
}

struct spawnd_job *spawnd_job_create(struct spawnd_client *c, uint64_t cookie)
{
	struct spawnd_job *job = calloc(1, sizeof(*job));
	int i;

	if (!job)
		return NULL;
	job->sd = c->sd;
	job->client = c;
	job->cookie = cookie;
	job->id = c->sd->next_id++;
	job->st.state = RGATE_SPAWN_PENDING;
	job->st.queued_ns = rgate_clock_now(CLOCK_REALTIME);
	for (i = 0; i < 3; i++)
		job->s[i] = (struct spawnd_stream){ .tag = { RGATE_EV_STREAM }, .job = job,
						    .fd = -1, .mode = RGATE_SPAWN_OUT_NONE };
	index_add(&c->sd->by_id, &job->by_id, job->id);
	job->next = c->jobs;
	job->prev = &c->jobs;
	if (job->next)
		job->next->prev = &job->next;
	c->jobs = job;
	c->njobs++;
	c->queued++;
	c->sd->stats.jobs++;
	return job;
}

void spawnd_job_mark(struct spawnd_job *job)
{
	struct rgate_spawnd *sd = job->sd;

	if (job->in_work || job->dead)
		return;
	job->in_work = true;
	job->work_next = NULL;
	*sd->work_last = job;
	sd->work_last = &job->work_next;
}

static void leave_running(struct spawnd_job *job)
{
	if (job->step != RGATE_JOB_STARTING && job->step != RGATE_JOB_RUNNING)
		return;
	job->client->running--;
	job->sd->running--;
	job->sd->stats.running--;
}

static void drop_request(struct spawnd_job *job)
{
	rgate_spawn_parsed_free(&job->req);
	free(job->record);
	free(job->grant);
	job->record = NULL;
	job->grant = NULL;
}

/* After its client was told: the journal takes longer than all the rest of it. */
static void log_end(struct spawnd_job *job)
{
	const struct rgate_spawn_status *st = &job->st;

	if (!job->log_end)
		return;
	job->log_end = false;
	spawnd_log(job, "%s %u%s%s", st->signal ? "signal" : "exit code",
		   st->signal ? st->signal : st->exit_code,
		   st->flags & RGATE_SPAWN_TIMED_OUT ? ", its time was over" : "",
		   job->abandoned ? ", its client is gone" : "");
}

void spawnd_job_forget(struct spawnd_job *job)
{
	struct rgate_spawnd *sd = job->sd;

	if (job->dead)
		return;
	if (job->step < RGATE_JOB_OVER)
		spawnd_log(job, job->step > RGATE_JOB_QUEUED ? "killed, the server ends" :
			   "not started: nobody waits for it");
	log_end(job);
	spawnd_queue_leave(job);
	leave_running(job);
	job->step = RGATE_JOB_OVER;
	job->dead = true;
	index_del(&sd->by_id, &job->by_id);
	*job->prev = job->next;
	if (job->next)
		job->next->prev = job->prev;
	job->client->njobs--;
	sd->stats.jobs--;
	job->next = sd->graves;
	sd->graves = job;
}

/* Frees those that no event and no operation can mean any more */
void spawnd_job_bury(struct rgate_spawnd *sd)
{
	struct spawnd_job **at = &sd->graves, *job;

	while ((job = *at)) {
		if (job->batch.under_way || job->read.under_way || job->in_work) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		spawnd_io_free(job);
		drop_request(job);
		free(job->command);
		free(job);
	}
}

static void set_deadline(struct spawnd_job *job, enum spawnd_overtime what, uint64_t ms)
{
	job->overtime = what;
	job->deadline_ns = rgate_clock_now(CLOCK_MONOTONIC) + ms * MS;
	spawnd_wake_at(job->sd, job->deadline_ns);
}

/* Its status will not change any more. */
static void over(struct spawnd_job *job)
{
	spawnd_queue_leave(job);
	leave_running(job);
	job->step = RGATE_JOB_OVER;
	job->tell = true;
	drop_request(job);
	if (job->abandoned) {
		spawnd_job_forget(job);
		return;
	}
	set_deadline(job, RGATE_TIME_RETAIN, job->sd->o.retain_ms);
	spawnd_job_mark(job);
}

void spawnd_job_fail(struct spawnd_job *job, int err, uint32_t stage, const char *reason)
{
	int i;

	if (stage == RGATE_SPAWN_AT_REQUEST)
		job->sd->stats.refused++;
	else
		job->sd->stats.failed++;
	spawnd_log(job, "%s: %s%s%s", stage == RGATE_SPAWN_AT_REQUEST ? "refused" :
		   stage == RGATE_SPAWN_AT_LOST ? "lost" : "not started", strerror(-err),
		   *reason ? ": " : "", reason);
	job->st.state = RGATE_SPAWN_ERROR;
	job->st.error = (uint32_t)-err;
	job->st.stage = stage;
	snprintf((char *)job->st.reason, sizeof(job->st.reason), "%s", reason);
	for (i = 1; i < 3; i++) {
		spawnd_io_close(&job->s[i]);
		job->s[i].ended = true;
	}
	spawnd_io_close(&job->s[0]);
	over(job);
}

void spawnd_job_started(struct spawnd_job *job, const struct rgate_spawner_packet *p)
{
	if (job->step != RGATE_JOB_STARTING)
		return;
	job->st.started_ns = p->when_ns;
	job->st.flags |= p->flags;
	if (p->a < 0) {
		spawnd_job_fail(job, p->a, (uint32_t)p->b, p->why);
		return;
	}
	spawnd_log(job, "process %d", p->a);
	job->sd->stats.started++;
	job->step = RGATE_JOB_RUNNING;
	job->st.state = RGATE_SPAWN_RUNNING;
	job->st.pid = (uint32_t)p->a;
	job->tell = true;
	/* The record is not needed any more, what it says of time and output is. */
	free(job->record);
	job->record = NULL;
	if (p->wall_ms)
		set_deadline(job, RGATE_TIME_WALL, p->wall_ms);
	if (job->abandoned)
		spawnd_job_abandon(job);
	spawnd_job_mark(job);
}

static void fill_usage(struct rgate_spawn_status *st, const struct rusage *u)
{
	st->utime_us = (uint64_t)u->ru_utime.tv_sec * 1000000 + (uint64_t)u->ru_utime.tv_usec;
	st->stime_us = (uint64_t)u->ru_stime.tv_sec * 1000000 + (uint64_t)u->ru_stime.tv_usec;
	st->maxrss = (uint64_t)u->ru_maxrss * 1024;
	st->inblock = (uint64_t)u->ru_inblock;
	st->oublock = (uint64_t)u->ru_oublock;
	st->minflt = (uint64_t)u->ru_minflt;
	st->majflt = (uint64_t)u->ru_majflt;
}

void spawnd_job_exited(struct spawnd_job *job, const struct rgate_spawner_packet *p)
{
	if (job->step != RGATE_JOB_RUNNING)
		return;
	leave_running(job);
	job->step = RGATE_JOB_EXITED;
	job->left = p->b;
	job->st.exited_ns = p->when_ns;
	job->st.flags |= p->flags;
	if (WIFSIGNALED(p->a))
		job->st.signal = (uint32_t)WTERMSIG(p->a);
	else
		job->st.exit_code = (uint32_t)WEXITSTATUS(p->a);
	fill_usage(&job->st, &p->usage);
	spawnd_io_close(&job->s[0]);
	if (!job->read.under_way)
		spawnd_unstage(job->client, &job->s[0].chunk);
	/* Nobody is there to read the rest: not for ever */
	if (!job->attached && job->overtime == RGATE_TIME_NONE)
		set_deadline(job, RGATE_TIME_RETAIN, job->sd->o.retain_ms);
	spawnd_job_mark(job);
}

static void complete(struct spawnd_job *job)
{
	job->sd->stats.completed++;
	job->log_end = true;
	job->st.state = RGATE_SPAWN_COMPLETE;
	over(job);
}

void spawnd_job_finished(struct spawnd_job *job, uint32_t flags)
{
	if (job->step != RGATE_JOB_CLEARING)
		return;
	job->st.flags |= flags;
	complete(job);
}

/* Exited, and perhaps nothing more to come */
static void try_to_end(struct spawnd_job *job)
{
	if (job->step != RGATE_JOB_EXITED || (!spawnd_io_ended(job) && !job->abandoned))
		return;
	if (!job->left) {
		complete(job);
		return;
	}
	if (rgate_spawner_tell(&job->sd->spawner, RGATE_SPAWNER_FINISH, job->id,
			       !!(job->req.flags & RGATE_SPAWN_LEAVE) && !job->abandoned, 0))
		job->blocked = true;
	else
		job->step = RGATE_JOB_CLEARING;
}

void spawnd_job_signal(struct spawnd_job *job, int sig, int scope)
{
	if (job->step != RGATE_JOB_RUNNING && (job->step != RGATE_JOB_EXITED || !job->left)) {
		/* It comes as soon as there is somebody to get it. */
		if (job->step == RGATE_JOB_STARTING) {
			job->todo_signal = sig;
			job->todo_scope = scope;
		}
		return;
	}
	job->todo_signal = 0;
	if (rgate_spawner_tell(&job->sd->spawner, RGATE_SPAWNER_SIGNAL, job->id, sig, scope) ==
	    -EAGAIN) {
		job->todo_signal = sig;
		job->todo_scope = scope;
		job->blocked = true;
	}
}

void spawnd_job_overtime(struct spawnd_job *job, uint64_t now)
{
	int i;

	if (job->step == RGATE_JOB_STARTING && !job->tell) {
		job->tell = true;
		spawnd_job_mark(job);
	}
	if (job->overtime == RGATE_TIME_NONE)
		return;
	if (now < job->deadline_ns) {
		spawnd_wake_at(job->sd, job->deadline_ns);
		return;
	}
	switch (job->overtime) {
	case RGATE_TIME_WALL:
		job->st.flags |= RGATE_SPAWN_TIMED_OUT;
		job->sd->stats.timed_out++;
		spawnd_job_signal(job, SIGTERM, RGATE_SPAWN_TO_TREE);
		set_deadline(job, RGATE_TIME_GRACE, job->req.grace_ms);
		break;
	case RGATE_TIME_GRACE:
		spawnd_job_signal(job, SIGKILL, RGATE_SPAWN_TO_TREE);
		set_deadline(job, RGATE_TIME_CUT, CUT_MS);
		break;
	case RGATE_TIME_CUT:
		/* Again and again while it exits: a process may be slow to die. */
		if (job->step < RGATE_JOB_EXITED) {
			spawnd_job_signal(job, SIGKILL, RGATE_SPAWN_TO_TREE);
			set_deadline(job, RGATE_TIME_CUT, CUT_MS);
			break;
		}
		job->overtime = RGATE_TIME_NONE;
		for (i = 1; i < 3; i++) {
			if (job->s[i].fd < 0)
				continue;
			job->st.flags |= RGATE_SPAWN_CUT;
			if (job->s[i].tail)
				spawnd_tail_close(&job->s[i]);
			else
				spawnd_io_end(&job->s[i]);
		}
		break;
	default:
		spawnd_job_abandon(job);
	}
	spawnd_job_mark(job);
}

void spawnd_job_abandon(struct spawnd_job *job)
{
	job->abandoned = true;
	job->attached = false;
	switch (job->step) {
	case RGATE_JOB_READING:
		/* Its read ends first. */
		if (!job->read.under_way)
			spawnd_job_forget(job);
		break;
	case RGATE_JOB_QUEUED:
	case RGATE_JOB_OVER:
		spawnd_job_forget(job);
		break;
	case RGATE_JOB_RUNNING:
		spawnd_job_signal(job, SIGKILL, RGATE_SPAWN_TO_TREE);
		set_deadline(job, RGATE_TIME_CUT, CUT_MS);
		break;
	default:
		break;
	}
	spawnd_job_mark(job);
}

void spawnd_job_unattach(struct spawnd_job *job)
{
	job->attached = job->detaching = false;
	/* Nobody is there to read the rest: not for ever */
	if (job->step == RGATE_JOB_EXITED && job->overtime == RGATE_TIME_NONE)
		set_deadline(job, RGATE_TIME_RETAIN, job->sd->o.retain_ms);
	spawnd_job_mark(job);
	if (job->abandon)
		spawnd_job_abandon(job);
}

/* The client's memory is its own again. */
static void let_go(struct spawnd_job *job)
{
	if (job->batch.under_way || job->read.under_way)
		return;
	if (!spawnd_client_let_go(job->client, job->cookie, job->id)) {
		job->blocked = true;
		return;
	}
	/* Half a record is read anew, if ever: until then the memory is for others. */
	if (job->step == RGATE_JOB_READING)
		spawnd_unstage(job->client, &job->s[0].chunk);
	spawnd_job_unattach(job);
}

void spawnd_job_advance(struct spawnd_job *job)
{
	if (job->dead)
		return;
	job->blocked = false;
	if (job->step == RGATE_JOB_READING) {
		if (!job->detaching)
			job->blocked = job->attached && !spawnd_batch_read_record(job);
		else
			let_go(job);
		return;
	}
	if (job->todo_signal && job->step > RGATE_JOB_STARTING)
		spawnd_job_signal(job, job->todo_signal, job->todo_scope);
	if (!spawnd_io_advance(job))
		job->blocked = true;
	try_to_end(job);
	/* Its end goes out at once. */
	if (!job->dead && job->step == RGATE_JOB_OVER && !spawnd_io_advance(job))
		job->blocked = true;
	log_end(job);
	if (!job->dead && job->detaching)
		let_go(job);
}
