// SPDX-License-Identifier: MIT OR GPL-2.0
/* Operations on the client's memory: output and status go there, the record comes. */
#include <endian.h>
#include <string.h>

#include "container.h"
#include "spawnd.h"

#define MSG_AT		512	/* in the buffer of the status: the message */
#define ST_BYTES	(MSG_AT + sizeof(struct rgate_spawn_msg))
#define OPS_MAX		8U

struct batch {
	struct rgate_op op[OPS_MAX];
	struct rgate_sge sge[OPS_MAX];
	unsigned int n;
};

/*
 * What a program does not read of its stdin, or was on its way when a connection was lost, stays
 * for as long as the program likes: so each node has a part that others cannot take.
 */
static bool may_stage(const struct spawnd_client *c, size_t len)
{
	const struct rgate_spawnd *sd = c->sd;
	const uint32_t most = sd->o.stage_bytes;

	/* One thing at least, however large */
	return !sd->staged || sd->staged + len <= most ||
	       !c->staged || c->staged + len <= most / RGATE_NODES_MAX;
}

const struct rgate_buf *spawnd_stage(struct spawnd_client *c, size_t len)
{
	const struct rgate_buf *buf;

	if (!may_stage(c, len) || rgate_pool_alloc(c->sd->stage, len, &buf))
		return NULL;
	c->sd->staged += buf->length;
	c->staged += buf->length;
	return buf;
}

void spawnd_unstage(struct spawnd_client *c, const struct rgate_buf **buf)
{
	if (!*buf)
		return;
	c->sd->staged -= (*buf)->length;
	c->staged -= (*buf)->length;
	rgate_pool_free(c->sd->stage, *buf);
	*buf = NULL;
}

static void add_write(struct batch *b, const struct spawnd_job *job, void *from, uint32_t len,
		      uint32_t lkey, uint64_t offset)
{
	b->sge[b->n] = (struct rgate_sge){ from, len, lkey };
	b->op[b->n] = (struct rgate_op){
		.kind = RGATE_OP_WRITE, .nsge = 1, .sge = &b->sge[b->n],
		.remote = job->mem.addr + offset, .rkey = job->mem.rkey,
		.epoch = job->client->session.epoch,
	};
	b->n++;
}

/* The chunk to its place in the ring: two pieces where that ends */
static void add_chunk(struct batch *b, const struct spawnd_job *job,
		      const struct spawnd_stream *s)
{
	const uint32_t at = (uint32_t)(s->produced % s->ring_len), rest = s->ring_len - at;
	const uint32_t first = s->chunk_len < rest ? s->chunk_len : rest;
	uint8_t *from = s->chunk->addr;

	add_write(b, job, from, first, s->chunk->lkey, s->ring + at);
	if (first < s->chunk_len)
		add_write(b, job, from + first, s->chunk_len - first, s->chunk->lkey, s->ring);
}

bool spawnd_batch_has(const struct spawnd_job *job, const struct spawnd_stream *s)
{
	return s->chunk && s->chunk_len && s->chunk_len <= spawnd_io_room(job, s);
}

static uint32_t ended_bits(const struct spawnd_job *job)
{
	uint32_t bits = 0;
	int i;

	for (i = 1; i < 3; i++)
		if (job->s[i].ended && (!job->s[i].chunk || spawnd_batch_has(job, &job->s[i])))
			bits |= i == 1 ? RGATE_SPAWN_OUT_ENDED : RGATE_SPAWN_ERR_ENDED;
	if (job->s[0].closed || job->step >= RGATE_JOB_EXITED)
		bits |= RGATE_SPAWN_IN_CLOSED;
	return bits;
}

/* The status as it will be when the batch is there */
static void fill_status(struct spawnd_job *job, struct rgate_spawn_status *to)
{
	const struct rgate_spawn_status *st = &job->st;
	int i;

	*to = (struct rgate_spawn_status){
		.state = htole64(st->state | ++job->version << 8), .id = htole64(job->id),
		.error = htole32(st->error), .stage = htole32(st->stage),
		.exit_code = htole32(st->exit_code), .signal = htole32(st->signal),
		.flags = htole32(st->flags), .pid = htole32(st->pid),
		.ended = htole32(ended_bits(job)), .signals = htole32(job->last_signal),
		.taken = htole64(job->s[0].taken),
		.queued_ns = htole64(st->queued_ns), .started_ns = htole64(st->started_ns),
		.exited_ns = htole64(st->exited_ns), .utime_us = htole64(st->utime_us),
		.stime_us = htole64(st->stime_us), .maxrss = htole64(st->maxrss),
		.inblock = htole64(st->inblock), .oublock = htole64(st->oublock),
		.minflt = htole64(st->minflt), .majflt = htole64(st->majflt),
	};
	for (i = 0; i < 2; i++) {
		const struct spawnd_stream *s = &job->s[i + 1];

		to->produced[i] = htole64(s->produced +
					  (spawnd_batch_has(job, s) ? s->chunk_len : 0));
		to->dropped[i] = htole64(st->dropped[i]);
	}
	memcpy(to->reason, st->reason, sizeof(to->reason));
}

static void add_status(struct batch *b, struct spawnd_job *job)
{
	struct rgate_spawn_status *st = job->st_buf->addr;
	struct rgate_spawn_msg *msg = (void *)((uint8_t *)job->st_buf->addr + MSG_AT);
	const uint32_t lkey = job->st_buf->lkey;

	fill_status(job, st);
	*msg = (struct rgate_spawn_msg){
		.service = htole32(RGATE_SPAWN_ASKER), .version = RGATE_SPAWN_VERSION,
		.type = RGATE_SPAWN_UPDATE, .cookie = htole64(job->cookie),
		.id = htole64(job->id),
	};
	/* Who polls the word finds the rest in its place. */
	add_write(b, job, (uint8_t *)st + 8, sizeof(*st) - 8, lkey, 8);
	add_write(b, job, st, 8, lkey, 0);
	b->sge[b->n] = (struct rgate_sge){ msg, sizeof(*msg), lkey };
	b->op[b->n] = (struct rgate_op){ .kind = RGATE_OP_SEND, .nsge = 1,
					 .sge = &b->sge[b->n],
					 .epoch = job->client->session.epoch };
	b->n++;
}

static void batch_over(struct xfer *x, int err)
{
	struct spawnd_job *job = container_of(x, struct spawnd_job, batch);
	int i;

	for (i = 1; i < 3; i++) {
		struct spawnd_stream *s = &job->s[i];

		if (!s->posted)
			continue;
		s->posted = false;
		if (err) {
			/* It goes to the same place again. */
			s->produced -= s->chunk_len;
		} else {
			s->chunk_len = 0;
			spawnd_unstage(job->client, &s->chunk);
		}
	}
	if (err) {
		job->tell = true;
		job->told_end = false;
	}
	spawnd_job_mark(job);
}

/* Output that is staged, and the status. False: later */
bool spawnd_batch_post(struct spawnd_job *job)
{
	struct batch b = { .n = 0 };
	int i;

	if (!job->st_buf) {
		job->st_buf = spawnd_stage(job->client, ST_BYTES);
		if (!job->st_buf)
			return false;
	}
	for (i = 1; i < 3; i++)
		if (spawnd_batch_has(job, &job->s[i]))
			add_chunk(&b, job, &job->s[i]);
	add_status(&b, job);
	if (xfer_post(&job->client->xfers, &job->batch, b.op, b.n, batch_over))
		return false;
	for (i = 1; i < 3; i++) {
		struct spawnd_stream *s = &job->s[i];

		s->posted = spawnd_batch_has(job, s);
		if (s->posted)
			s->produced += s->chunk_len;
	}
	job->tell = false;
	job->s[0].taken_told = job->s[0].taken;
	job->told_end = job->step == RGATE_JOB_OVER;
	return true;
}

static void record_over(struct xfer *x, int err)
{
	struct spawnd_job *job = container_of(x, struct spawnd_job, read);

	spawnd_job_record(job, err);
	spawnd_job_mark(job);
}

static void stdin_over(struct xfer *x, int err)
{
	struct spawnd_job *job = container_of(x, struct spawnd_job, read);

	spawnd_io_stdin_done(job, err);
	spawnd_job_mark(job);
}

/* @len bytes at @from of what the client lends, to @at in the chunk */
static bool read_chunk(struct spawnd_job *job, uint64_t from, uint32_t at, uint32_t len,
		       xfer_over_fn over)
{
	struct spawnd_stream *s = &job->s[0];
	struct rgate_sge sge = { (uint8_t *)s->chunk->addr + at, len, s->chunk->lkey };
	const struct rgate_op op = { .kind = RGATE_OP_READ, .nsge = 1, .sge = &sge,
				     .remote = job->lent.addr + from, .rkey = job->lent.rkey,
				     .epoch = job->client->session.epoch };

	if (!xfer_post(&job->client->xfers, &job->read, &op, 1, over))
		return true;
	spawnd_unstage(job->client, &s->chunk);
	return false;
}

bool spawnd_batch_read_stdin(struct spawnd_job *job, uint64_t from, uint32_t len)
{
	return read_chunk(job, from, 0, len, stdin_over);
}

bool spawnd_batch_read_record(struct spawnd_job *job)
{
	struct spawnd_stream *s = &job->s[0];

	if (job->read.under_way)
		return true;
	if (!s->chunk) {
		s->chunk = spawnd_stage(job->client, job->record_len);
		if (!s->chunk)
			return false;
		s->chunk_at = 0;
	}
	s->chunk_len = job->record_len - s->chunk_at;
	if (s->chunk_len > RGATE_SPAWND_READ)
		s->chunk_len = RGATE_SPAWND_READ;
	return read_chunk(job, job->record_off + s->chunk_at, s->chunk_at, s->chunk_len,
			  record_over);
}
