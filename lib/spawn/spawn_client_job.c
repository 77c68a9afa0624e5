// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a client does with a job. */
#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "opts.h"
#include "spawn_client.h"

#define RING_BYTES	(64U << 10)
#define DRAIN		(64U << 10)	/* collected at once */

static int ring_size(uint32_t asked, uint32_t *bytes)
{
	*bytes = asked ? asked : RING_BYTES;
	return *bytes >= RGATE_SPAWN_RING_MIN && *bytes <= RGATE_SPAWN_RING_MAX &&
	       !(*bytes & (*bytes - 1)) ? 0 : -EINVAL;
}

static bool has_ring(uint32_t mode)
{
	return mode == RGATE_SPAWN_OUT_STREAM || mode == RGATE_SPAWN_OUT_TAIL;
}

int client_start(struct rgate_spawn *sp, const struct rgate_spawn_request *user, uint32_t owner,
		 struct rgate_spawn_job **out)
{
	struct rgate_spawn_request req;
	struct rgate_spawn_job *job;
	uint32_t bytes, ring[3];
	int64_t len;
	int err;

	if (!sp || !user || !out)
		return -EINVAL;
	err = rgate_opts_copy(&req, sizeof(req), user);
	if (!err)
		err = ring_size(req.ring_bytes, &bytes);
	if (err)
		return err;
	len = rgate_spawn_encoded_size(&req);
	if (len < 0)
		return (int)len;
	ring[0] = req.stdin_mode == RGATE_SPAWN_IN_STREAM ? bytes : 0;
	ring[1] = has_ring(req.stdout_mode) ? bytes : 0;
	ring[2] = has_ring(req.stderr_mode) ? bytes : 0;
	pthread_mutex_lock(&sp->lock);
	job = client_job_create(sp, ring, (uint32_t)len, &err);
	if (job) {
		rgate_spawn_encode(&req, job->lent->addr, (size_t)len);
		/* Its streams begin at 0. */
		job->greeted = true;
		job->owner = owner;
		job->keep = req.flags & RGATE_SPAWN_KEEP;
		client_need(job, RGATE_NEED_START);
		client_process(sp);
		*out = job;
		err = 0;
	}
	pthread_mutex_unlock(&sp->lock);
	return err;
}

int rgate_spawn_start(struct rgate_spawn *sp, const struct rgate_spawn_request *user,
		      struct rgate_spawn_job **out)
{
	return client_start(sp, user, RGATE_SPAWN_NODE, out);
}

int client_attach(struct rgate_spawn *sp, uint64_t id, uint32_t ring_bytes, uint32_t owner,
		  struct rgate_spawn_job **out)
{
	struct rgate_spawn_job *job;
	uint32_t ring[3];
	int err;

	if (!sp || !id || !out)
		return -EINVAL;
	err = ring_size(ring_bytes, &ring[0]);
	if (err)
		return err;
	ring[1] = ring[2] = ring[0];
	pthread_mutex_lock(&sp->lock);
	job = client_job_create(sp, ring, 0, &err);
	if (job) {
		job->id = job->result.id = id;
		job->keep = true;
		job->owner = owner;
		client_need(job, RGATE_NEED_ATTACH);
		client_process(sp);
		*out = job;
		err = 0;
	}
	pthread_mutex_unlock(&sp->lock);
	return err;
}

int rgate_spawn_attach(struct rgate_spawn *sp, uint64_t id, uint32_t ring_bytes,
		       struct rgate_spawn_job **out)
{
	return client_attach(sp, id, ring_bytes, RGATE_SPAWN_NODE, out);
}

uint64_t rgate_spawn_job_id(struct rgate_spawn_job *job)
{
	uint64_t id;

	pthread_mutex_lock(&job->spawn->lock);
	id = job->id;
	pthread_mutex_unlock(&job->spawn->lock);
	return id;
}

void rgate_spawn_job_set_data(struct rgate_spawn_job *job, void *data)
{
	job->data = data;
}

void *rgate_spawn_job_data(const struct rgate_spawn_job *job)
{
	return job->data;
}

int rgate_spawn_job_result(struct rgate_spawn_job *job, struct rgate_spawn_result *result)
{
	int err;

	pthread_mutex_lock(&job->spawn->lock);
	job->result.sz = sizeof(job->result);
	err = rgate_info_copy(result, &job->result, sizeof(job->result));
	pthread_mutex_unlock(&job->spawn->lock);
	return err;
}

void client_job_status(struct rgate_spawn_job *job, struct rgate_spawn_status *to)
{
	const struct rgate_spawn_result *r = &job->result;
	int i;

	pthread_mutex_lock(&job->spawn->lock);
	*to = (struct rgate_spawn_status){
		.state = htole64(r->state), .id = htole64(job->id),
		.error = htole32((uint32_t)-r->error), .stage = htole32(r->stage),
		.exit_code = htole32((uint32_t)r->exit_code),
		.signal = htole32((uint32_t)r->signal), .flags = htole32(r->flags),
		.pid = htole32((uint32_t)r->pid), .ended = htole32(job->stream_ended),
		.taken = htole64(job->taken), .queued_ns = htole64(r->queued_ns),
		.started_ns = htole64(r->started_ns), .exited_ns = htole64(r->exited_ns),
		.utime_us = htole64(r->utime_us), .stime_us = htole64(r->stime_us),
		.maxrss = htole64(r->maxrss), .inblock = htole64(r->inblock),
		.oublock = htole64(r->oublock), .minflt = htole64(r->minflt),
		.majflt = htole64(r->majflt),
	};
	for (i = 0; i < 2; i++) {
		to->produced[i] = htole64(r->produced[i]);
		to->dropped[i] = htole64(r->dropped[i]);
	}
	memcpy(to->reason, r->reason, sizeof(to->reason));
	pthread_mutex_unlock(&job->spawn->lock);
}

static bool is_ended(void *arg)
{
	return ((struct rgate_spawn_job *)arg)->ended;
}

int rgate_spawn_job_wait(struct rgate_spawn_job *job, struct rgate_spawn_result *result,
			 int timeout_ms)
{
	int err = client_wait(job->spawn, is_ended, job, timeout_ms);

	if (!err && result)
		err = rgate_spawn_job_result(job, result);
	return err;
}

struct piece {			/* of a stream */
	struct rgate_spawn_job *job;
	int stream;
	uint8_t *buf;
	const uint8_t *from;
	size_t len;
	ssize_t ret;
};

/* Out of or into the ring, from byte number @at on: two pieces where it ends */
static void copy_out(const struct rgate_spawn_job *job, int stream, uint64_t at, uint8_t *to,
		     size_t len)
{
	const uint32_t size = job->ring_len[stream], off = (uint32_t)(at % size);
	const size_t first = len < size - off ? len : size - off;
	const uint8_t *ring = client_ring(job, stream);

	memcpy(to, ring + off, first);
	memcpy(to + first, ring, len - first);
}

static void copy_in(const struct rgate_spawn_job *job, uint64_t at, const uint8_t *from,
		    size_t len)
{
	const uint32_t size = job->ring_len[0], off = (uint32_t)(at % size);
	const size_t first = len < size - off ? len : size - off;
	uint8_t *ring = client_ring(job, 0);

	memcpy(ring + off, from, first);
	memcpy(ring, from + first, len - first);
}

/* Has something for the reader: bytes, the end, or an error */
static bool try_read(void *arg)
{
	struct piece *p = arg;
	struct rgate_spawn_job *job = p->job;
	const int i = p->stream - 1;
	uint64_t there = job->greeted ? job->result.produced[i] - job->consumed[i] : 0;

	if (there) {
		if (p->len > there)
			p->len = (size_t)there;
		copy_out(job, p->stream, job->consumed[i], p->buf, p->len);
		job->consumed[i] += p->len;
		p->ret = (ssize_t)p->len;
		if (!job->ended && job->consumed[i] - job->told[i] >= job->ring_len[p->stream] / 4)
			client_need(job, RGATE_NEED_CONTROL);
		return true;
	}
	if (!job->ended && !(job->stream_ended & (i ? RGATE_SPAWN_ERR_ENDED :
						      RGATE_SPAWN_OUT_ENDED)))
		return false;
	p->ret = job->ended && job->lost ? -EPIPE : 0;
	return true;
}

ssize_t rgate_spawn_job_read(struct rgate_spawn_job *job, int stream, void *buf, size_t len,
			     int timeout_ms)
{
	struct piece p = { .job = job, .stream = stream, .buf = buf, .len = len };

	if ((stream != 1 && stream != 2) || !buf || !len)
		return -EINVAL;
	if (!job->ring_len[stream])
		return -EINVAL;
	if (client_wait(job->spawn, try_read, &p, timeout_ms))
		return -EAGAIN;
	/* The server hears at once that there is room. */
	if (p.ret > 0 && job->need & RGATE_NEED_CONTROL)
		(void)rgate_spawn_process(job->spawn);
	return p.ret;
}

static bool try_write(void *arg)
{
	struct piece *p = arg;
	struct rgate_spawn_job *job = p->job;
	uint64_t room;

	if (job->ended || job->given_all || job->stream_ended & RGATE_SPAWN_IN_CLOSED) {
		p->ret = -EPIPE;
		return true;
	}
	room = job->greeted ? job->ring_len[0] - (job->given - job->taken) : 0;
	if (!room)
		return false;
	if (p->len > room)
		p->len = (size_t)room;
	copy_in(job, job->given, p->from, p->len);
	job->given += p->len;
	p->ret = (ssize_t)p->len;
	client_need(job, RGATE_NEED_CONTROL);
	return true;
}

ssize_t rgate_spawn_job_write(struct rgate_spawn_job *job, const void *buf, size_t len,
			      int timeout_ms)
{
	struct piece p = { .job = job, .from = buf, .len = len };

	if (!buf || !len || !job->ring_len[0])
		return -EINVAL;
	if (client_wait(job->spawn, try_write, &p, timeout_ms))
		return -EAGAIN;
	if (p.ret > 0)
		(void)rgate_spawn_process(job->spawn);
	return p.ret;
}

int rgate_spawn_job_close_stdin(struct rgate_spawn_job *job)
{
	struct rgate_spawn *sp = job->spawn;

	if (!job->ring_len[0])
		return -EINVAL;
	pthread_mutex_lock(&sp->lock);
	if (!job->given_all && !job->ended) {
		job->given_all = true;
		client_need(job, RGATE_NEED_CONTROL);
		client_process(sp);
	}
	pthread_mutex_unlock(&sp->lock);
	return 0;
}

/* Appends what there is of a stream, up to the limit. -ENOMEM */
static int drain(struct rgate_spawn_job *job, int stream, struct rgate_spawn_output_buf *out,
		 size_t limit, bool *some)
{
	char *more, waste[4096];
	size_t room, want;
	ssize_t n;

	for (;;) {
		room = limit > out->len ? limit - out->len : 0;
		want = room < DRAIN ? room : DRAIN;
		if (want) {
			/* A power of two, so that it is not copied again and again */
			size_t cap = DRAIN;

			while (cap < out->len + want + 1)
				cap *= 2;
			more = realloc(out->data, cap);
			if (!more)
				return -ENOMEM;
			out->data = more;
		}
		n = rgate_spawn_job_read(job, stream, want ? out->data + out->len : waste,
					 want ? want : sizeof(waste), 0);
		if (n <= 0)
			return 0;
		*some = true;
		if (want)
			out->len += (size_t)n;
		else
			out->lost += (uint64_t)n;
	}
}

static bool has_more(void *arg)
{
	const struct rgate_spawn_job *job = arg;

	return job->ended || job->result.produced[0] != job->consumed[0] ||
	       job->result.produced[1] != job->consumed[1];
}

int rgate_spawn_job_collect(struct rgate_spawn_job *job, struct rgate_spawn_output_buf out[2],
			    size_t limit, struct rgate_spawn_result *result, int timeout_ms)
{
	bool some;
	int i, err;

	for (;;) {
		err = client_wait(job->spawn, has_more, job, timeout_ms);
		if (err)
			return err;
		for (i = 0, some = false; i < 2 && !err; i++)
			if (job->ring_len[i + 1])
				err = drain(job, i + 1, &out[i], limit, &some);
		for (i = 0; i < 2 && !err; i++) {
			if (!out[i].data)
				out[i].data = calloc(1, 1);
			if (!out[i].data)
				return -ENOMEM;
			out[i].data[out[i].len] = '\0';
		}
		if (err)
			return err;
		if (!some && is_ended(job))
			return rgate_spawn_job_wait(job, result, 0);
	}
}

int rgate_spawn_job_kill(struct rgate_spawn_job *job, int signal, enum rgate_spawn_scope scope)
{
	struct rgate_spawn *sp = job->spawn;
	struct client_signal *s;
	int err = 0;

	if (signal < 1 || signal > SIGRTMAX || (uint32_t)scope > RGATE_SPAWN_TO_LEADER)
		return -EINVAL;
	pthread_mutex_lock(&sp->lock);
	if (job->ended) {
		err = -ESRCH;
	} else if (job->signal_last - job->signal_seen >= RGATE_CLIENT_SIGNALS - 1) {
		err = -EAGAIN;
	} else {
		s = &job->signals[++job->signal_last % RGATE_CLIENT_SIGNALS];
		*s = (struct client_signal){ .signal = signal, .scope = (uint32_t)scope };
		client_need(job, RGATE_NEED_CONTROL);
		client_process(sp);
	}
	pthread_mutex_unlock(&sp->lock);
	return err;
}

static bool is_gone(void *arg)
{
	return ((struct rgate_spawn_job *)arg)->gone;
}

/* With the lock: the caller does not have it any more */
static void hand_in(struct rgate_spawn_job *job)
{
	job->closed = true;
	if (!job->sent)
		job->need = 0;
}

/* What was written is in the server's hands. */
static bool is_taken(void *arg)
{
	const struct rgate_spawn_job *job = arg;

	return job->ended || job->given == job->taken ||
	       job->stream_ended & RGATE_SPAWN_IN_CLOSED;
}

void client_job_let_run(struct rgate_spawn_job *job)
{
	if (job->detached)
		return;
	if (!job->ended) {
		/* What was read counts: the next one goes on behind it. */
		client_need(job, RGATE_NEED_CONTROL | RGATE_NEED_DETACH);
		job->detached = true;
	} else if (job->kept && job->spawn->session.up) {
		/* Its end is there for the next one. */
		client_need(job, RGATE_NEED_DETACH);
		job->detached = true;
		job->gone = job->kept = false;
	}
}

bool client_job_detach(struct rgate_spawn_job *job, int *err)
{
	struct rgate_spawn *sp = job->spawn;
	bool over;

	pthread_mutex_lock(&sp->lock);
	if (job->ended || (job->answered && is_taken(job)))
		client_job_let_run(job);
	over = job->detached ? job->gone : job->ended;
	*err = job->result.error;
	client_process(sp);
	pthread_mutex_unlock(&sp->lock);
	return over;
}

void client_job_leave(struct rgate_spawn_job *job)
{
	struct rgate_spawn *sp = job->spawn;

	pthread_mutex_lock(&sp->lock);
	hand_in(job);
	if (job->answered || job->ended)
		client_job_let_run(job);
	else
		job->leaves = true;
	client_job_reap(job);
	client_process(sp);
	pthread_mutex_unlock(&sp->lock);
}

int rgate_spawn_job_detach(struct rgate_spawn_job *job, int timeout_ms)
{
	struct rgate_spawn *sp = job->spawn;
	int err;

	err = client_wait(sp, is_taken, job, timeout_ms);
	if (err)
		return err;
	pthread_mutex_lock(&sp->lock);
	if (!job->answered) {
		pthread_mutex_unlock(&sp->lock);
		return -EAGAIN;
	}
	client_job_let_run(job);
	pthread_mutex_unlock(&sp->lock);
	err = client_wait(sp, is_gone, job, timeout_ms);
	if (err)
		return err;
	pthread_mutex_lock(&sp->lock);
	hand_in(job);
	client_job_reap(job);
	pthread_mutex_unlock(&sp->lock);
	return 0;
}

void rgate_spawn_job_close(struct rgate_spawn_job *job)
{
	struct rgate_spawn *sp;

	if (!job)
		return;
	sp = job->spawn;
	pthread_mutex_lock(&sp->lock);
	hand_in(job);
	/* Of one that has ended it is on its way, unless it is kept: then it is waited for
	 * until the server has forgotten it. */
	if (job->kept && sp->session.up) {
		job->gone = false;
		client_need(job, RGATE_NEED_RELEASE);
	}
	if (!job->ended && job->sent) {
		/* Without a connection the next one brings it. */
		job->need &= ~(uint32_t)(RGATE_NEED_START | RGATE_NEED_ATTACH);
		client_need(job, RGATE_NEED_RELEASE);
	}
	client_job_reap(job);
	client_process(sp);
	pthread_mutex_unlock(&sp->lock);
}
