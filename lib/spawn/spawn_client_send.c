// SPDX-License-Identifier: MIT OR GPL-2.0
/* What is said to it: at most one message of a job is under way, the next is made when
 * that has left. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "container.h"
#include "spawn_client.h"

#define MS	1000000ULL

static void header(struct rgate_spawn_msg *h, const struct rgate_spawn_job *job, uint8_t type)
{
	*h = (struct rgate_spawn_msg){
		.service = htole32(RGATE_SPAWN_SERVICE), .version = RGATE_SPAWN_VERSION,
		.type = type, .cookie = htole64(job->cookie), .id = htole64(job->id),
	};
}

static size_t fill_start(struct rgate_spawn_job *job, struct rgate_spawn_start *m, bool attach)
{
	int i;

	memset(m, 0, sizeof(*m));
	header(&m->h, job, attach ? RGATE_SPAWN_ATTACH : RGATE_SPAWN_START);
	if (rgate_buf_desc(job->spawn->pool, job->buf, 0, 0, &m->memory) ||
	    rgate_buf_desc(job->spawn->readable, job->lent, 0, 0, &m->lent))
		return 0;
	m->record_len = htole32(job->record_len);
	for (i = 0; i < 3; i++) {
		m->ring[i] = htole32(job->ring[i]);
		m->ring_len[i] = htole32(job->ring_len[i]);
	}
	for (i = 0; i < 2; i++)
		m->consumed[i] = htole64(job->greeted || !attach ? job->consumed[i] : UINT64_MAX);
	m->incarnation = htole64(rgate_node_incarnation(job->spawn->node));
	m->owner = htole32(job->owner);
	return sizeof(*m);
}

static size_t fill_control(struct rgate_spawn_job *job, struct rgate_spawn_control *m)
{
	const struct client_signal *s;

	memset(m, 0, sizeof(*m));
	header(&m->h, job, RGATE_SPAWN_CONTROL);
	m->consumed[0] = htole64(job->consumed[0]);
	m->consumed[1] = htole64(job->consumed[1]);
	m->given = htole64(job->given);
	m->given_all = htole32(job->given_all);
	if (job->signal_sent == job->signal_last)
		return sizeof(*m);
	s = &job->signals[(job->signal_sent + 1) % RGATE_CLIENT_SIGNALS];
	m->signals = htole32(job->signal_base + job->signal_sent + 1);
	m->signal = htole32((uint32_t)s->signal);
	m->scope = htole32(s->scope);
	return sizeof(*m);
}

/* The first of the messages that are needed; 0: none. A job that the server does not know
 * yet is not controlled. */
static uint32_t next_message(const struct rgate_spawn_job *job)
{
	const uint32_t need = job->answered ? job->need : job->need & ~(uint32_t)RGATE_NEED_CONTROL;

	return need & -need;
}

static size_t fill_message(struct rgate_spawn_job *job, void *m, uint32_t what)
{
	switch (what) {
	case RGATE_NEED_START:
		return fill_start(job, m, false);
	case RGATE_NEED_ATTACH:
		return fill_start(job, m, true);
	case RGATE_NEED_CONTROL:
		return fill_control(job, m);
	case RGATE_NEED_DETACH:
		header(m, job, RGATE_SPAWN_DETACH);
		return sizeof(struct rgate_spawn_msg);
	default:
		header(m, job, RGATE_SPAWN_RELEASE);
		return sizeof(struct rgate_spawn_msg);
	}
}

static void note_sent(struct rgate_spawn_job *job, uint32_t what)
{
	job->need &= ~what;
	job->sent = true;
	if (what == RGATE_NEED_START || what == RGATE_NEED_ATTACH) {
		if (!job->answered) {
			job->asked_ns = rgate_clock_now(CLOCK_MONOTONIC);
			client_wake_at(job->spawn, job->asked_ns + job->spawn->o.answer_ms * MS);
		}
		/* It is told anew what it may not have heard. */
		if (job->answered && job->greeted)
			job->need |= RGATE_NEED_CONTROL;
	} else if (what == RGATE_NEED_CONTROL) {
		job->told[0] = job->consumed[0];
		job->told[1] = job->consumed[1];
		if (job->signal_sent != job->signal_last &&
		    ++job->signal_sent != job->signal_last)
			job->need |= RGATE_NEED_CONTROL;
	}
}

/* What is in the place of the message may change; what else there is to do about it: later. */
static void message_over(struct xfer *x, int err)
{
	(void)err;
	client_need(container_of(x, struct rgate_spawn_job, message), 0);
}

/* False: not now */
static bool send_one(struct rgate_spawn_job *job)
{
	void *m = job->said->addr;
	struct rgate_sge sge = { m, 0, job->said->lkey };
	const struct rgate_op op = {
		.kind = RGATE_OP_SEND, .nsge = 1, .sge = &sge, .epoch = job->spawn->session.epoch,
	};
	const uint32_t what = next_message(job);
	int err;

	sge.length = (uint32_t)fill_message(job, m, what);
	if (!sge.length) {
		client_job_lose(job, -EACCES, RGATE_SPAWN_AT_REQUEST,
				"the pool has no remote access");
		return true;
	}
	err = xfer_post(&job->spawn->xfers, &job->message, &op, 1, message_over);
	if (err == -EMSGSIZE) {
		client_job_lose(job, err, RGATE_SPAWN_AT_REQUEST,
				"that node's messages are too short for it");
		return true;
	}
	if (err)
		return false;
	note_sent(job, what);
	return true;
}

bool client_send(struct rgate_spawn *sp)
{
	struct rgate_spawn_job *job, *next;
	bool blocked = false;

	(void)xfer_reap(&sp->xfers);
	job = sp->work;
	sp->work = NULL;
	sp->work_last = &sp->work;
	for (; job; job = next) {
		next = job->work_next;
		job->in_work = false;
		if (!job->message.under_way && next_message(job) && sp->session.up)
			blocked |= !send_one(job);
		/* With one under way it has its turn when that has left. */
		if (job->message.under_way)
			continue;
		if (next_message(job))
			client_need(job, 0);
		else
			client_job_reap(job);
	}
	return blocked;
}
