// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a node asks for: its messages, none of which is trusted. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spawnd.h"

#define LIST_MAX	1024U		/* entries at once */
#define QUEUED_BYTES	(64U << 20)	/* records of one node */
#define KEPT_JOBS	4096U		/* of one node, besides those that wait, */
#define KEPT_OWNED	1024U		/* and of one of its users */

union message {
	struct rgate_spawn_msg h;
	struct rgate_spawn_start start;
	struct rgate_spawn_control control;
	struct rgate_spawn_ask ask;
};

/* @least: of its offset */
static bool ring_ok(const struct rgate_remote *mem, uint32_t least, uint32_t off, uint32_t len)
{
	if (!len)
		return true;
	return len >= RGATE_SPAWN_RING_MIN && len <= RGATE_SPAWN_RING_MAX && !(len & (len - 1)) &&
	       off >= least && off <= mem->length && len <= mem->length - off;
}

static bool rings_ok(const struct rgate_remote *mem, const struct rgate_remote *lent,
		     const struct rgate_spawn_start *m)
{
	const uint32_t status = sizeof(struct rgate_spawn_status);

	return ring_ok(lent, 0, le32toh(m->ring[0]), le32toh(m->ring_len[0])) &&
	       ring_ok(mem, status, le32toh(m->ring[1]), le32toh(m->ring_len[1])) &&
	       ring_ok(mem, status, le32toh(m->ring[2]), le32toh(m->ring_len[2]));
}

static int parse_memory(const struct rgate_spawn_start *m, struct rgate_remote *mem,
			struct rgate_remote *lent)
{
	int err;

	err = rgate_desc_parse(mem, &m->memory, sizeof(m->memory));
	if (!err)
		err = rgate_desc_parse(lent, &m->lent, sizeof(m->lent));
	if (err)
		return err;
	if (!(mem->access & RGATE_ACCESS_REMOTE_WRITE) ||
	    mem->length < sizeof(struct rgate_spawn_status) || mem->addr % 8 ||
	    !(lent->access & RGATE_ACCESS_REMOTE_READ))
		return -EACCES;
	return 0;
}

/* Where the client's memory is, and what is in it */
static int read_memory(struct spawnd_job *job, const struct rgate_spawn_start *m, bool record)
{
	const uint32_t off = le32toh(m->record), len = le32toh(m->record_len);
	struct rgate_remote mem, lent;
	int i, err;

	err = parse_memory(m, &mem, &lent);
	if (err)
		return err;
	if (record && (off > lent.length || len > lent.length - off || !len ||
		       len > RGATE_SPAWN_RECORD_MAX))
		return -EPROTO;
	/* It was not read yet. */
	if (!record && job->step == RGATE_JOB_READING &&
	    (off != job->record_off || len != job->record_len || off > lent.length ||
	     len > lent.length - off))
		return -EPROTO;
	if (!rings_ok(&mem, &lent, m))
		return -EPROTO;
	job->mem = mem;
	job->lent = lent;
	if (record) {
		job->record_off = off;
		job->record_len = len;
	}
	for (i = 0; i < 3; i++) {
		job->s[i].ring = le32toh(m->ring[i]);
		job->s[i].ring_len = le32toh(m->ring_len[i]);
	}
	return 0;
}

/* The client may have seen a chunk that we were not told has arrived */
static bool has_chunk(const struct spawnd_stream *s, uint64_t consumed)
{
	return consumed > s->produced && s->chunk && consumed <= s->produced + s->chunk_len;
}

/* What was written and not read, and given and not taken, must fit in the rings. */
static bool goes_on(const struct spawnd_job *job, const struct rgate_spawn_start *m)
{
	uint64_t consumed, produced;
	int i;

	for (i = 1; i < 3; i++) {
		const struct spawnd_stream *s = &job->s[i];

		consumed = le64toh(m->consumed[i - 1]);
		produced = s->produced + (has_chunk(s, consumed) ? s->chunk_len : 0);
		if (consumed != UINT64_MAX &&
		    (consumed > produced || produced - consumed > le32toh(m->ring_len[i])))
			return false;
		/* It goes out as a whole. */
		if (s->chunk && s->chunk_len > le32toh(m->ring_len[i]))
			return false;
	}
	return le64toh(m->consumed[0]) == UINT64_MAX ||
	       job->s[0].given - job->s[0].taken <= le32toh(m->ring_len[0]);
}

/* Where the client has read up to */
static void resume(struct spawnd_stream *s, uint64_t consumed)
{
	if (has_chunk(s, consumed)) {
		s->produced += s->chunk_len;
		s->chunk_len = 0;
		spawnd_unstage(s->job->client, &s->chunk);
	}
	s->consumed = consumed == UINT64_MAX ? s->produced : consumed;
}

static int attach(struct spawnd_job *job, const struct rgate_spawn_start *m)
{
	struct spawnd_client *c = job->client;
	const uint64_t cookie = le64toh(m->h.cookie);
	int i, err;

	if (job->attached && (job->cookie != cookie || job->incarnation != c->session.incarnation))
		return -EBUSY;
	/* Said twice, over an old connection and this one */
	if (job->attached && (job->batch.under_way || job->read.under_way || job->detaching))
		return 0;
	err = goes_on(job, m) ? read_memory(job, m, false) : -EPROTO;
	if (err)
		return err;
	for (i = 1; i < 3; i++)
		resume(&job->s[i], le64toh(m->consumed[i - 1]));
	job->cookie = cookie;
	job->incarnation = c->session.incarnation;
	job->attached = job->tell = true;
	job->greet = le64toh(m->consumed[0]) == UINT64_MAX;
	/* What it was given and not read yet is in the client's ring still; in another
	 * client's there is nothing. */
	if (le64toh(m->consumed[0]) == UINT64_MAX)
		job->s[0].given = job->s[0].taken;
	if (job->overtime == RGATE_TIME_RETAIN && job->step != RGATE_JOB_OVER)
		job->overtime = RGATE_TIME_NONE;
	spawnd_job_mark(job);
	return 0;
}

static struct spawnd_job *find_cookie(struct spawnd_client *c, uint64_t cookie,
				      uint64_t incarnation)
{
	struct spawnd_job *job;

	for (job = c->jobs; job; job = job->next)
		if (job->cookie == cookie && job->incarnation == incarnation)
			return job;
	return NULL;
}

/* What a node may have waiting, and altogether. One of its users may have half of the places to
 * wait in, so that there are some for others. */
static bool has_room(const struct spawnd_client *c, uint32_t owner)
{
	const uint32_t most = rgate_policy_max_queued(c->sd->policy, c->id), half = (most + 1) / 2;
	uint32_t all = 0, waiting = 0;
	const struct spawnd_job *job;

	if (c->queued >= most || c->queued_bytes > QUEUED_BYTES || c->njobs >= most + KEPT_JOBS)
		return false;
	/* There is no need to count where not even all together are too many. */
	if (owner == RGATE_SPAWN_NODE || (c->queued < half && c->njobs < KEPT_OWNED))
		return true;
	for (job = c->jobs; job; job = job->next) {
		all += job->owner == owner;
		waiting += job->owner == owner && job->step <= RGATE_JOB_QUEUED;
	}
	return all < KEPT_OWNED + half && waiting < half;
}

static void on_start(struct spawnd_client *c, const struct rgate_spawn_start *m)
{
	const uint64_t cookie = le64toh(m->h.cookie);
	struct spawnd_job *job = NULL;
	int err;

	/* It is asked again only after a connection was lost. */
	if (c->session.epoch > 1)
		job = find_cookie(c, cookie, c->session.incarnation);
	if (job) {
		err = job->abandoned ? -ECONNRESET : attach(job, m);
		if (err)
			spawnd_client_answer(c, RGATE_SPAWN_GONE, cookie, job->id, err,
					     job->abandoned ? "its client was away for too long" :
					     "asked again, with other memory");
		return;
	}
	if (!has_room(c, le32toh(m->owner))) {
		c->sd->stats.refused++;
		spawnd_client_answer(c, RGATE_SPAWN_GONE, cookie, 0, -EAGAIN,
				     "too many requests of this node wait");
		return;
	}
	job = spawnd_job_create(c, cookie);
	err = job ? read_memory(job, m, true) : -ENOMEM;
	if (err) {
		if (job) {
			job->record_len = 0;
			spawnd_job_forget(job);
		}
		c->sd->stats.refused++;
		spawnd_client_answer(c, RGATE_SPAWN_GONE, cookie, 0, err,
				     "the memory of the request is malformed");
		return;
	}
	c->queued_bytes += job->record_len;
	job->incarnation = c->session.incarnation;
	job->owner = le32toh(m->owner);
	job->attached = true;
	spawnd_job_mark(job);
}

/* Those of others are none of its business, not even whether there are any. */
static bool may_see(const struct spawnd_client *c, uint32_t owner, const struct spawnd_job *job)
{
	const struct rgate_policy_node *n;

	if (job->client == c)
		return owner == RGATE_SPAWN_NODE || owner == job->owner;
	n = rgate_policy_node(c->sd->policy, c->id);
	return owner == RGATE_SPAWN_NODE && n && n->admin;
}

static void on_attach(struct spawnd_client *c, const struct rgate_spawn_start *m)
{
	const uint64_t id = le64toh(m->h.id);
	struct spawnd_job *job = spawnd_job_find(c->sd, id);
	int err = -ENOENT;

	/* Where to write would be another node's to say: not even an admin's. */
	if (job && job->client == c && may_see(c, le32toh(m->owner), job) &&
	    job->step != RGATE_JOB_READING && !job->abandoned)
		err = attach(job, m);
	if (!err)
		job->sure = true;
	else
		spawnd_client_answer(c, RGATE_SPAWN_GONE, le64toh(m->h.cookie), id, err,
				     err == -ENOENT ? "no such process of this node" :
				     err == -EBUSY ? "somebody is attached to it" :
				     "its memory is malformed, or too small for what waits");
}

static struct spawnd_job *named(struct spawnd_client *c, const struct rgate_spawn_msg *m)
{
	struct spawnd_job *job = m->id ? spawnd_job_find(c->sd, le64toh(m->id)) :
				 find_cookie(c, le64toh(m->cookie), c->session.incarnation);

	return job && job->client == c && job->cookie == le64toh(m->cookie) ? job : NULL;
}

/* The job of a message, which its sender must be attached to */
static struct spawnd_job *of_message(struct spawnd_client *c, const struct rgate_spawn_msg *m)
{
	struct spawnd_job *job = named(c, m);

	return job && job->attached ? job : NULL;
}

static void take_consumed(struct spawnd_stream *s, uint64_t consumed)
{
	if (consumed > s->consumed && consumed <= s->produced)
		s->consumed = consumed;
}

static void on_control(struct spawnd_client *c, const struct rgate_spawn_control *m)
{
	struct spawnd_job *job = of_message(c, &m->h);
	const uint32_t number = le32toh(m->signals);
	struct spawnd_stream *in;
	uint64_t given;
	int i;

	if (!job)
		return;
	job->greet = false;
	for (i = 0; i < 2; i++)
		take_consumed(&job->s[i + 1], le64toh(m->consumed[i]));
	in = &job->s[0];
	given = le64toh(m->given);
	if (given > in->given && given - in->taken <= in->ring_len && !in->given_all)
		in->given = given;
	if (m->given_all && given == in->given)
		in->given_all = true;
	if (number && (int32_t)(number - job->last_signal) > 0) {
		job->last_signal = number;
		job->tell = true;
		if (job->step == RGATE_JOB_QUEUED)
			spawnd_job_fail(job, -ECANCELED, RGATE_SPAWN_AT_REQUEST,
					"killed before its turn came");
		else
			spawnd_job_signal(job, (int)le32toh(m->signal), (int)le32toh(m->scope));
	}
	spawnd_job_mark(job);
}

static int kill_one(struct spawnd_client *c, const struct rgate_spawn_ask *m)
{
	struct spawnd_job *job = spawnd_job_find(c->sd, le64toh(m->h.id));

	if (!job || !may_see(c, le32toh(m->owner), job))
		return -ENOENT;
	if (job->step == RGATE_JOB_OVER)
		return -ESRCH;
	if (job->step <= RGATE_JOB_QUEUED)
		spawnd_job_fail(job, -ECANCELED, RGATE_SPAWN_AT_REQUEST,
				"killed before its turn came");
	else
		spawnd_job_signal(job, (int)le32toh(m->signal), (int)le32toh(m->scope));
	return 0;
}

/* A signal that was sent and not answered in time is not sent again. */
static void on_kill(struct spawnd_client *c, const struct rgate_spawn_ask *m)
{
	const uint64_t number = le64toh(m->h.cookie);
	const void *kept = NULL;
	size_t len = 0;
	int err = 0;

	switch (call_take(&c->calls, number, &kept, &len)) {
	case CALL_FIRST:
		err = kill_one(c, m);
		call_keep(&c->calls, number, &err, sizeof(err));
		break;
	case CALL_AGAIN:
		if (len != sizeof(err))
			return;
		memcpy(&err, kept, sizeof(err));
		break;
	case CALL_OLD:
		return;
	}
	spawnd_client_answer(c, RGATE_SPAWN_DONE, number, le64toh(m->h.id), err, "");
}

static void fill_entry(const struct spawnd_job *job, struct rgate_spawn_entry *e)
{
	*e = (struct rgate_spawn_entry){
		.id = htole64(job->id), .state = htole32((uint32_t)job->st.state),
		.node = htole32(job->client->id), .pid = htole32(job->st.pid),
		.attached = htole32(job->attached), .started_ns = htole64(job->st.started_ns),
		.owner = htole32(job->owner),
	};
	snprintf((char *)e->user, sizeof(e->user), "%.31s", job->user);
	snprintf((char *)e->command, sizeof(e->command), "%s", job->command ? job->command : "");
}

static int by_id(const void *a, const void *b)
{
	const struct spawnd_job *const *x = a, *const *y = b;

	return (*x)->id < (*y)->id ? -1 : (*x)->id > (*y)->id;
}

int spawnd_list(struct spawnd_client *c, uint32_t owner, uint64_t after,
		struct rgate_spawn_entry *to, uint32_t max, uint32_t *total)
{
	const struct spawnd_job **all, *job;
	uint32_t i, count = 0;

	*total = 0;
	all = calloc(c->sd->stats.jobs + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (i = 0; i < RGATE_NODES_MAX; i++)
		for (job = c->sd->client[i].jobs; job; job = job->next)
			if (job->id > after && may_see(c, owner, job))
				all[(*total)++] = job;
	qsort(all, *total, sizeof(*all), by_id);
	for (; count < max && count < *total; count++)
		fill_entry(all[count], &to[count]);
	free(all);
	return (int)count;
}

static void on_list(struct spawnd_client *c, const struct rgate_spawn_ask *m)
{
	const uint64_t number = le64toh(m->h.cookie);
	struct rgate_remote mem;
	struct spawnd_answer *a;
	const void *kept;
	uint64_t max;
	size_t len;

	if (rgate_desc_parse(&mem, &m->memory, sizeof(m->memory)) ||
	    !(mem.access & RGATE_ACCESS_REMOTE_WRITE)) {
		c->sd->stats.garbage++;
		return;
	}
	/* Asked again it is listed again, to where that memory is now. */
	if (call_take(&c->calls, number, &kept, &len) == CALL_OLD)
		return;
	max = mem.length / sizeof(struct rgate_spawn_entry);
	a = spawnd_client_answer(c, RGATE_SPAWN_LISTED, number, le64toh(m->h.id), 0, "");
	a->owner = le32toh(m->owner);
	a->max = max < LIST_MAX ? (uint32_t)max : LIST_MAX;
	a->to = mem;
}

static void on_detach(struct spawnd_client *c, const struct rgate_spawn_msg *m)
{
	struct spawnd_job *job = of_message(c, m);

	if (!job) {
		spawnd_client_answer(c, RGATE_SPAWN_GONE, le64toh(m->cookie), le64toh(m->id),
				     0, "");
		return;
	}
	job->detaching = true;
	spawnd_job_mark(job);
}

/* Of the same client over another connection: it has closed it in between */
static struct spawnd_job *of_the_past(struct spawnd_client *c, const struct rgate_spawn_msg *m)
{
	struct spawnd_job *job = named(c, m);

	return job && !job->attached && job->incarnation == c->session.incarnation ? job : NULL;
}

static void on_release(struct spawnd_client *c, const struct rgate_spawn_msg *m)
{
	struct spawnd_job *job = of_the_past(c, m);

	if (job) {
		spawnd_client_answer(c, RGATE_SPAWN_GONE, job->cookie, job->id, 0, "");
		spawnd_job_abandon(job);
		return;
	}
	job = of_message(c, m);
	if (job && job->step == RGATE_JOB_OVER && job->told_end) {
		if (job->sure)
			spawnd_client_answer(c, RGATE_SPAWN_GONE, job->cookie, job->id, 0, "");
		spawnd_job_forget(job);
		return;
	}
	/* It does not want to see its end. */
	if (job)
		job->abandon = true;
	on_detach(c, m);
}

static size_t size_of(uint8_t type)
{
	switch (type) {
	case RGATE_SPAWN_START:
	case RGATE_SPAWN_ATTACH:
		return sizeof(struct rgate_spawn_start);
	case RGATE_SPAWN_CONTROL:
		return sizeof(struct rgate_spawn_control);
	case RGATE_SPAWN_LIST:
	case RGATE_SPAWN_KILL:
		return sizeof(struct rgate_spawn_ask);
	case RGATE_SPAWN_DETACH:
	case RGATE_SPAWN_RELEASE:
		return sizeof(struct rgate_spawn_msg);
	default:
		return 0;
	}
}

static void dispatch(struct spawnd_client *c, const union message *m)
{
	switch (m->h.type) {
	case RGATE_SPAWN_START:
		on_start(c, &m->start);
		break;
	case RGATE_SPAWN_ATTACH:
		on_attach(c, &m->start);
		break;
	case RGATE_SPAWN_CONTROL:
		on_control(c, &m->control);
		break;
	case RGATE_SPAWN_DETACH:
		on_detach(c, &m->h);
		break;
	case RGATE_SPAWN_RELEASE:
		on_release(c, &m->h);
		break;
	case RGATE_SPAWN_LIST:
		on_list(c, &m->ask);
		break;
	default:
		on_kill(c, &m->ask);
	}
}

int spawnd_client_message(struct spawnd_client *c, const struct rgate_msg *msg, const void *data)
{
	const size_t len = msg->len;
	union message m;

	if (msg->has_imm || len < sizeof(m.h))
		return 0;
	memcpy(&m.h, data, sizeof(m.h));
	if (le32toh(m.h.service) != RGATE_SPAWN_SERVICE || m.h.type >= RGATE_SPAWN_UPDATE)
		return 0;
	if (m.h.version != RGATE_SPAWN_VERSION || m.h.reserved || len != size_of(m.h.type) ||
	    len > sizeof(m)) {
		c->sd->stats.garbage++;
		return 1;
	}
	memcpy(&m, data, len);
	/* It may be the first of a connection that we do not know yet; what an earlier one
	 * brought may tell of memory that is something else by now. */
	if (msg->epoch != c->session.epoch || !c->session.up)
		spawnd_client_check(c);
	if (msg->epoch != c->session.epoch || !c->session.up)
		return 1;
	if ((m.h.type == RGATE_SPAWN_START || m.h.type == RGATE_SPAWN_ATTACH) &&
	    le64toh(m.start.incarnation) != c->session.incarnation)
		return 1;
	if (spawnd_client_ready(c))
		dispatch(c, &m);
	else
		rgate_peer_cut(c->peer);
	return 1;
}
