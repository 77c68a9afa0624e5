// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "spawn_ask.h"
#include "util.h"

#define START_MS	10000	/* the daemon answers at once, if it is not very busy */

static uint64_t place(const struct spawn_ask *a, const void *mem)
{
	return (uint64_t)((const uint8_t *)mem - a->mem);
}

/* A request about it that is not waited for; a daemon that is gone has told so. */
static void tell(struct ask_job *job, enum ask_what what, struct rgate_request q)
{
	q.handle = job->handle;
	q.cookie = (uint64_t)job->number * ASK_WHATS + what;
	if (what == ASK_UNHEARD)
		q.flags = RGATE_REQ_NO_COMPLETION;
	if (ask_submit(job->ask, q))
		ask_job_lost(job);
}

static void ask_read(struct ask_job *job, int i)
{
	struct ask_stream *s = &job->out[i];

	s->asked = true;
	tell(job, i ? ASK_ERR : ASK_OUT, (struct rgate_request){
		.op = RGATE_REQ_SPAWN_READ, .a0 = (uint64_t)i + 1,
		.off = place(job->ask, s->mem), .len = ASK_PIECE });
}

/* What is left of the input that was handed over; then its end */
static void go_on_writing(struct ask_job *job)
{
	const struct spawn_ask *a = job->ask;

	job->writes = job->in_at < job->in_len && !job->in_ended;
	if (job->writes)
		tell(job, ASK_WRITE, (struct rgate_request){
			.op = RGATE_REQ_SPAWN_WRITE, .off = place(a, a->in + job->in_at),
			.len = job->in_len - job->in_at });
	else if (job->in_close)
		tell(job, ASK_UNHEARD, (struct rgate_request){ .op = RGATE_REQ_SPAWN_CLOSE_STDIN });
}

static void told_output(struct ask_stream *s, int result)
{
	s->asked = false;
	s->at = 0;
	s->len = result > 0 ? (uint32_t)result : 0;
	if (result > 0)
		return;
	s->ended = true;
	s->err = result;
}

void ask_job_told(struct ask_job *job, enum ask_what what, int result)
{
	job->news = true;
	switch (what) {
	case ASK_WAIT:
		job->over = true;
		/* Its end is in the status then, unless there was none to wait for. */
		if ((le64toh(job->status->state) & 0xff) < RGATE_SPAWN_COMPLETE)
			job->err = result < 0 ? result : -EIO;
		break;
	case ASK_OUT:
	case ASK_ERR:
		told_output(&job->out[what - ASK_OUT], result);
		break;
	default:
		if (result > 0)
			job->in_at += (uint32_t)result;
		else
			job->in_ended = true;
		go_on_writing(job);
	}
}

void ask_job_lost(struct ask_job *job)
{
	int i;

	/* What it has told is true all the same. */
	if (!job->over)
		job->err = -EPIPE;
	job->news = job->over = job->in_ended = true;
	job->writes = false;
	for (i = 0; i < 2; i++)
		if (!job->out[i].ended && (job->out[i].asked || !job->out[i].len))
			told_output(&job->out[i], -EPIPE);
}

static int begin(struct spawn_target *t, struct rgate_request q, void **out)
{
	struct spawn_ask *a = t->ask;
	struct ask_job *job = &a->job[t - a->target];
	uint64_t handle = 0;
	int err;

	q.a0 = t->to.id;
	err = ask_alone(a, q, START_MS, &handle);
	job->handle = (uint32_t)handle;
	/* That it is there: what is wanted of it is asked for when it is looked at. */
	job->news = true;
	*out = job;
	return err;
}

static int way_start(struct spawn_target *t, const struct rgate_spawn_request *req, void **job)
{
	const int64_t len = rgate_spawn_record_encode(req, t->ask->mem, t->ask->record);

	if (len < 0)
		return (int)len;
	return begin(t, (struct rgate_request){ .op = RGATE_REQ_SPAWN_START,
						.len = (uint32_t)len }, job);
}

static int way_attach(struct spawn_target *t, uint64_t id, uint32_t ring_bytes, void **job)
{
	(void)ring_bytes;
	return begin(t, (struct rgate_request){ .op = RGATE_REQ_SPAWN_ATTACH, .a1 = id }, job);
}

static ssize_t way_read(void *arg, int stream, void *buf, size_t len)
{
	struct ask_job *job = arg;
	struct ask_stream *s = &job->out[stream - 1];
	size_t n;

	if (s->at == s->len && !s->ended && !s->asked)
		ask_read(job, stream - 1);
	else if (s->at == s->len)
		(void)ask_take(job->ask);
	n = s->len - s->at;
	if (!n)
		return s->ended ? s->err : -EAGAIN;
	n = n < len ? n : len;
	memcpy(buf, s->mem + s->at, n);
	s->at += (uint32_t)n;
	if (s->at == s->len)
		ask_read(job, stream - 1);
	return (ssize_t)n;
}

static ssize_t way_write(void *arg, const void *buf, size_t len)
{
	struct ask_job *job = arg;

	if (job->in_ended)
		return -EPIPE;
	if (job->writes)
		return -EAGAIN;
	job->in_at = 0;
	job->in_len = len < ASK_PIECE ? (uint32_t)len : ASK_PIECE;
	memcpy(job->ask->in, buf, job->in_len);
	go_on_writing(job);
	return job->in_len;
}

static int way_close_stdin(void *arg)
{
	struct ask_job *job = arg;

	job->in_close = true;
	if (!job->writes && !job->in_ended)
		go_on_writing(job);
	return 0;
}

static int take_result(const struct ask_job *job, struct rgate_spawn_result *r)
{
	const int err = rgate_spawn_status_decode(job->status, r);

	if (err || !job->err)
		return err;
	r->state = RGATE_SPAWN_ERROR;
	r->stage = RGATE_SPAWN_AT_LOST;
	r->error = job->err;
	if (job->err == -EPIPE)
		snprintf(r->reason, sizeof(r->reason), "ringgated of this machine has ended");
	return 0;
}

static int way_wait(void *arg, struct rgate_spawn_result *r, int timeout_ms)
{
	const uint64_t end = util_now() + (uint64_t)timeout_ms * 1000000;
	struct ask_job *job = arg;

	if (!job->waits) {
		job->waits = true;
		tell(job, ASK_WAIT, (struct rgate_request){
			.op = RGATE_REQ_SPAWN_WAIT, .off = place(job->ask, job->status),
			.len = sizeof(*job->status) });
	}
	while (timeout_ms && !job->over && util_now() < end) {
		ask_sleep(job->ask, timeout_ms);
		(void)ask_take(job->ask);
	}
	return job->over ? take_result(job, r) : -ETIMEDOUT;
}

/* Where it is waited for with the other's memory, which is not written before its end */
static int way_result(void *arg, struct rgate_spawn_result *r)
{
	struct ask_job *job = arg;
	struct spawn_ask *a = job->ask;
	int err;

	if (job->over)
		return take_result(job, r);
	err = ask_alone(a, (struct rgate_request){
		.op = RGATE_REQ_SPAWN_STATUS, .handle = job->handle, .off = place(a, a->in),
		.len = sizeof(struct rgate_spawn_status) }, SPAWN_TIMEOUT, NULL);
	if (err == -EPIPE)
		return take_result(job, r);
	return err ? err : rgate_spawn_status_decode((void *)a->in, r);
}

static int way_signal(void *arg, int signal, enum rgate_spawn_scope scope)
{
	const struct rgate_request q = {
		.op = RGATE_REQ_SPAWN_SIGNAL, .a0 = (uint64_t)signal, .a1 = scope,
	};

	tell(arg, ASK_UNHEARD, q);
	return 0;
}

static int way_detach(void *arg, int timeout_ms)
{
	struct ask_job *job = arg;

	return ask_alone(job->ask, (struct rgate_request){
		.op = RGATE_REQ_SPAWN_DETACH, .handle = job->handle,
		.deadline_us = (uint32_t)timeout_ms * 1000 }, timeout_ms, NULL);
}

/* It is waited for: with the session's end a process that is kept would go on. */
static void way_close(void *arg)
{
	struct ask_job *job = arg;

	(void)ask_alone(job->ask, (struct rgate_request){ .op = RGATE_REQ_SPAWN_CLOSE,
							  .handle = job->handle }, SPAWN_TIMEOUT,
			NULL);
}

static void take_entry(const struct rgate_spawn_entry *e, struct rgate_spawn_info *info)
{
	*info = (struct rgate_spawn_info){
		.sz = sizeof(*info), .id = le64toh(e->id), .state = le32toh(e->state),
		.node = le32toh(e->node), .pid = (int32_t)le32toh(e->pid),
		.attached = e->attached, .started_ns = le64toh(e->started_ns),
		.owned = e->owner, .owner = e->owner ? le32toh(e->owner) - 1 : 0,
	};
	snprintf(info->user, sizeof(info->user), "%.*s", (int)sizeof(e->user), e->user);
	snprintf(info->command, sizeof(info->command), "%.*s", (int)sizeof(e->command),
		 e->command);
}

static int way_list(struct spawn_target *t,
		    int (*fn)(void *ctx, const struct rgate_spawn_info *info), void *ctx,
		    int timeout_ms)
{
	struct rgate_request q = {
		.op = RGATE_REQ_SPAWN_LIST, .a0 = t->to.id, .off = place(t->ask, t->ask->in),
		.len = ASK_PIECE, .deadline_us = (uint32_t)timeout_ms * 1000,
	};
	const struct rgate_spawn_entry *e = (const void *)t->ask->in;
	struct rgate_spawn_info info;
	uint64_t total, all = 0;
	int n, i, ret;

	do {
		n = ask_alone(t->ask, q, timeout_ms, &total);
		for (i = 0; i < n; i++) {
			take_entry(&e[i], &info);
			q.a1 = info.id;
			ret = fn(ctx, &info);
			if (ret)
				return ret;
		}
		all += n > 0 ? (uint64_t)n : 0;
		if (all > RGATE_SPAWN_LISTED_MAX)
			return -EPROTO;
	} while (n > 0 && total > (uint64_t)n);
	return n < 0 ? n : 0;
}

static int way_kill(struct spawn_target *t, uint64_t id, int signal, enum rgate_spawn_scope scope,
		    int timeout_ms)
{
	return ask_alone(t->ask, (struct rgate_request){
		.op = RGATE_REQ_SPAWN_KILL, .a0 = RGATE_REQ_SPAWN_TO(t->to.id, signal, scope),
		.a1 = id, .deadline_us = (uint32_t)timeout_ms * 1000 }, timeout_ms, NULL);
}

static int way_fd(struct spawn_target *t)
{
	unsigned int i;

	/* What came while another request was waited for */
	for (i = 0; i < RGATE_NODES_MAX; i++)
		if (t->ask->job[i].news)
			return -1;
	return rgate_session_arm(t->ask->session) ? -1 : rgate_session_fd(t->ask->session);
}

static void way_process(struct spawn_target *t)
{
	(void)ask_take(t->ask);
}

static bool way_next(struct spawn_target *t)
{
	struct ask_job *job = &t->ask->job[t - t->ask->target];
	const bool news = job->news;

	job->news = false;
	return news;
}

const struct spawn_way spawn_way_ask = {
	.start = way_start, .attach = way_attach, .read = way_read, .write = way_write,
	.close_stdin = way_close_stdin, .wait = way_wait, .result = way_result,
	.signal = way_signal, .detach = way_detach, .close = way_close, .list = way_list,
	.kill = way_kill, .fd = way_fd, .process = way_process, .next = way_next,
};
