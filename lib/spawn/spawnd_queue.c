// SPDX-License-Identifier: MIT OR GPL-2.0
/* A request until it is the spawner's: checked, then in the queue of its node. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "spawnd.h"

#define MS		1000000ULL
#define SLOW_MS		100	/* to start: the client hears of it before */

void spawnd_queue_leave(struct spawnd_job *job)
{
	struct spawnd_client *c = job->client;
	struct spawnd_job **at;

	if (job->step > RGATE_JOB_QUEUED)
		return;
	c->queued--;
	c->queued_bytes -= job->record_len;
	if (job->step != RGATE_JOB_QUEUED)
		return;
	for (at = &c->queue; *at != job; at = &(*at)->queue_next)
		;
	*at = job->queue_next;
	if (c->queue_last == &job->queue_next)
		c->queue_last = at;
	job->sd->stats.queued--;
}

static void enqueue(struct spawnd_job *job)
{
	struct spawnd_client *c = job->client;

	job->step = RGATE_JOB_QUEUED;
	job->queue_next = NULL;
	*c->queue_last = job;
	c->queue_last = &job->queue_next;
	job->sd->stats.queued++;
	job->tell = true;
	spawnd_job_mark(job);
}

static int take_record(struct spawnd_job *job)
{
	const struct spawnd_stream *s = &job->s[0];

	/* A copy that no peer can reach: what is checked is what is run. */
	job->record = malloc(job->record_len);
	if (!job->record)
		return -ENOMEM;
	memcpy(job->record, s->chunk->addr, job->record_len);
	return 0;
}

/* Whose it is or would be, as of now: the policy may be another one when it ends. */
static void note_user(struct spawnd_job *job)
{
	const struct rgate_policy_node *n = rgate_policy_node(job->sd->policy, job->client->id);

	snprintf(job->user, sizeof(job->user), "%s", n ? n->user.name : "nobody");
}

static void check_request(struct spawnd_job *job)
{
	char why[RGATE_POLICY_WHY] = "";
	const char *wrong = "";
	int err;

	note_user(job);
	err = rgate_spawn_decode(job->record, job->record_len, &job->req, &wrong);
	if (err) {
		spawnd_job_fail(job, err, RGATE_SPAWN_AT_REQUEST, wrong);
		return;
	}
	job->keep = job->sure = job->req.flags & RGATE_SPAWN_KEEP;
	spawnd_log_describe(job);
	job->grant = calloc(1, sizeof(*job->grant));
	err = job->grant ? 0 : -ENOMEM;
	/* An early answer: the spawner asks its own policy when the turn has come. */
	if (!err)
		err = rgate_policy_check(job->sd->policy, job->client->id, &job->req, job->grant,
					 why);
	if (err == -ENOENT) {
		/* It might have been run, were it there: as execve() would tell */
		spawnd_job_fail(job, err, RGATE_SPAWN_AT_EXEC, why);
		return;
	}
	if (err) {
		spawnd_job_fail(job, err, RGATE_SPAWN_AT_REQUEST, why);
		return;
	}
	spawnd_log_describe(job);
	enqueue(job);
}

void spawnd_job_record(struct spawnd_job *job, int err)
{
	struct spawnd_stream *s = &job->s[0];

	/* It was killed meanwhile: its end is told, and counted, already. */
	if (job->step != RGATE_JOB_READING) {
		spawnd_unstage(job->client, &s->chunk);
		s->chunk_len = s->chunk_at = 0;
		return;
	}
	s->chunk_at += s->chunk_len;
	if (!err && !job->abandoned && s->chunk_at < job->record_len)
		return;		/* the next piece */
	job->sd->stats.requests++;
	if (!err && !job->abandoned)
		err = take_record(job);
	spawnd_unstage(job->client, &s->chunk);
	s->chunk_len = s->chunk_at = 0;
	/* Where the connection failed the client asks again over the next. */
	if (job->abandoned || (err && err != -ENOMEM))
		spawnd_job_forget(job);
	else if (err)
		spawnd_job_fail(job, err, RGATE_SPAWN_AT_REQUEST, "the node is out of memory");
	else
		check_request(job);
}

static void fill_order(const struct spawnd_job *job, struct rgate_order *o)
{
	o->id = job->id;
	o->mark = job->sd->mark;
	o->node = job->client->id;
	o->record_len = job->record_len;
	memcpy(o->record, job->record, job->record_len);
}

static void close_ends(const int fds[3], int null)
{
	int i;

	for (i = 0; i < 3; i++)
		if (fds[i] >= 0 && fds[i] != null && (i < 2 || fds[i] != fds[1]))
			close(fds[i]);
}

/* Hands it to the spawner. False: later */
static bool start(struct spawnd_job *job)
{
	struct rgate_spawnd *sd = job->sd;
	const int null = sd->spawner.null_fd;
	struct rgate_order *order;
	int fds[3], err;

	/* The policy was read anew meanwhile. */
	if (!rgate_policy_node(sd->policy, job->client->id)) {
		spawnd_job_fail(job, -EACCES, RGATE_SPAWN_AT_REQUEST,
				"the policy lets this node run nothing");
		return true;
	}
	if (sd->spawner_lost) {
		spawnd_job_fail(job, -EPIPE, RGATE_SPAWN_AT_LOST, "the node's spawner has ended");
		return true;
	}
	order = rgate_spawner_order(&sd->spawner);
	if (!order) {
		spawnd_wake_at(sd, rgate_clock_now(CLOCK_MONOTONIC) + MS);
		return false;
	}
	note_user(job);
	fill_order(job, order);
	err = spawnd_io_open(job, fds, null);
	/* Its slot is free again, whatever becomes of it. */
	if (err)
		rgate_spawner_cancel(&sd->spawner, order);
	else
		err = rgate_spawner_start(&sd->spawner, order, fds);
	close_ends(fds, null);
	if (err == -EAGAIN) {
		spawnd_io_undo(job);
		spawnd_wake_at(sd, rgate_clock_now(CLOCK_MONOTONIC) + MS);
		return false;
	}
	spawnd_queue_leave(job);
	job->step = RGATE_JOB_STARTING;
	/* Soon there is more to tell. */
	job->tell = false;
	spawnd_wake_at(sd, rgate_clock_now(CLOCK_MONOTONIC) + SLOW_MS * MS);
	job->client->running++;
	sd->running++;
	sd->stats.running++;
	if (err)
		spawnd_job_fail(job, err, RGATE_SPAWN_AT_SETUP,
				"pipes, or the spawner, are not to be had");
	else
		spawnd_job_mark(job);
	return true;
}

static bool has_turn(const struct rgate_spawnd *sd, const struct spawnd_client *c)
{
	const struct rgate_policy_node *n = rgate_policy_node(sd->policy, c->id);

	return c->queue && (!n || !n->max_running || c->running < n->max_running);
}

/* One of each node, as long as there is room */
void spawnd_schedule(struct rgate_spawnd *sd)
{
	unsigned int tried = 0;
	struct spawnd_client *c;

	while (tried < RGATE_NODES_MAX && sd->running < rgate_policy_max_running(sd->policy)) {
		c = &sd->client[sd->turn];
		if (!has_turn(sd, c)) {
			tried++;
		} else {
			if (!start(c->queue))
				return;
			tried = 0;
		}
		sd->turn = (sd->turn + 1) % RGATE_NODES_MAX;
	}
}
