// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the node that runs processes says. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "opts.h"
#include "spawn_client.h"

#define MESSAGES	256	/* taken at once */
#define MSG_MAX		256

static bool take_streams(struct rgate_spawn_job *job, const struct rgate_spawn_status *st)
{
	const uint64_t taken = le64toh(st->taken);
	uint64_t produced;
	int i;

	for (i = 0; i < 2; i++) {
		produced = le64toh(st->produced[i]);
		if (!job->greeted)
			job->consumed[i] = job->told[i] = produced;
		if (produced < job->result.produced[i] ||
		    produced - job->consumed[i] > job->ring_len[i + 1])
			return false;
		job->result.produced[i] = produced;
		job->result.dropped[i] = le64toh(st->dropped[i]);
	}
	if (!job->greeted)
		job->given = taken;
	/* The ring has room for what is given and not taken: that never comes to be more. */
	if (taken < job->taken || taken > job->given)
		return false;
	job->taken = taken;
	return true;
}

/* The server counts the signals of all who were this job's client: those of one that attaches,
 * whom the first status greets, begin where it found the count. More than were asked for, or
 * fewer than before, it never took. */
static bool take_signals(struct rgate_spawn_job *job, const struct rgate_spawn_status *st)
{
	const uint32_t count = le32toh(st->signals);
	uint32_t seen;

	if (!job->greeted)
		job->signal_base = count;
	seen = count - job->signal_base;
	if (seen - job->signal_seen > job->signal_last - job->signal_seen)
		return false;
	job->signal_seen = seen;
	return true;
}

static void take_words(struct rgate_spawn_result *r, const struct rgate_spawn_status *st)
{
	r->id = le64toh(st->id);
	r->error = client_error(st->error);
	r->stage = le32toh(st->stage);
	r->exit_code = (int32_t)le32toh(st->exit_code);
	r->signal = (int32_t)le32toh(st->signal);
	r->flags = le32toh(st->flags);
	r->pid = (int32_t)le32toh(st->pid);
	r->queued_ns = le64toh(st->queued_ns);
	r->started_ns = le64toh(st->started_ns);
	r->exited_ns = le64toh(st->exited_ns);
	r->utime_us = le64toh(st->utime_us);
	r->stime_us = le64toh(st->stime_us);
	r->maxrss = le64toh(st->maxrss);
	r->inblock = le64toh(st->inblock);
	r->oublock = le64toh(st->oublock);
	r->minflt = le64toh(st->minflt);
	r->majflt = le64toh(st->majflt);
	memcpy(r->reason, st->reason, sizeof(r->reason));
	r->reason[sizeof(r->reason) - 1] = '\0';
}

int rgate_spawn_status_decode(const struct rgate_spawn_status *from,
			      struct rgate_spawn_result *result)
{
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	struct rgate_spawn_status st;
	int i;

	memcpy(&st, from, sizeof(st));
	take_words(&r, &st);
	r.state = (uint32_t)le64toh(st.state) & 0xff;
	for (i = 0; i < 2; i++) {
		r.produced[i] = le64toh(st.produced[i]);
		r.dropped[i] = le64toh(st.dropped[i]);
	}
	return rgate_info_copy(result, &r, sizeof(r));
}

static void on_update(struct rgate_spawn_job *job)
{
	const struct rgate_spawn_status *mem = job->buf->addr;
	struct rgate_spawn_status st;
	uint64_t state;

	if (job->ended && !job->gone && !job->detached) {
		/* Too late; it is not wanted any more. */
		job->id = le64toh(mem->id);
		client_need(job, RGATE_NEED_RELEASE);
	}
	if (job->ended || !job->sent)
		return;
	/* What it stands for was written before it; a later update may be on its way, whose
	 * words are as true. */
	state = le64toh(__atomic_load_n(&mem->state, __ATOMIC_ACQUIRE)) & 0xff;
	memcpy(&st, mem, sizeof(st));
	if (!job->answered)
		job->id = le64toh(st.id);
	job->answered = true;
	job->asked_ns = 0;
	if (job->leaves)
		client_job_let_run(job);
	if (state < RGATE_SPAWN_PENDING || state > RGATE_SPAWN_ERROR || !take_streams(job, &st) ||
	    !take_signals(job, &st)) {
		client_job_lose(job, -EPROTO, RGATE_SPAWN_AT_LOST,
				"its status makes no sense");
		return;
	}
	if (!job->greeted) {
		job->greeted = true;
		client_need(job, RGATE_NEED_CONTROL);
	}
	take_words(&job->result, &st);
	job->result.state = (uint32_t)state;
	job->stream_ended |= le32toh(st.ended);
	client_news(job);
	if (job->need)
		client_need(job, 0);
	if (state < RGATE_SPAWN_COMPLETE)
		return;
	job->stream_ended |= RGATE_SPAWN_OUT_ENDED | RGATE_SPAWN_ERR_ENDED |
			     RGATE_SPAWN_IN_CLOSED;
	client_job_end(job);
	/* Who attaches next wants to see it, or may if this one does not. */
	job->kept = job->keep && !job->closed && !job->detached;
	if (job->detached) {
		/* It may have come before a connection was lost that is lost by now. */
		job->gone = !job->spawn->session.up;
		if (job->spawn->session.up)
			client_need(job, RGATE_NEED_DETACH);
	} else if (!job->kept) {
		client_need(job, RGATE_NEED_RELEASE);
	}
}

static void on_gone(struct rgate_spawn_job *job, const struct rgate_spawn_answer *m)
{
	const int err = client_error(m->error);
	char reason[RGATE_SPAWN_REASON];

	memcpy(reason, m->reason, sizeof(reason));
	reason[sizeof(reason) - 1] = '\0';
	if (!err) {
		job->gone = true;
		job->need = 0;
		client_news(job);
		return;
	}
	client_job_lose(job, err, RGATE_SPAWN_AT_REQUEST, reason);
}

static void on_message(struct rgate_spawn *sp, const struct rgate_spawn_msg *h, size_t len)
{
	const struct rgate_spawn_answer *answer = (const void *)h;
	const uint64_t cookie = le64toh(h->cookie);
	struct rgate_spawn_job *job;

	if (h->type == RGATE_SPAWN_UPDATE && len == sizeof(*h)) {
		job = client_find(sp, cookie);
		if (job)
			on_update(job);
	} else if (h->type == RGATE_SPAWN_GONE && len == sizeof(*answer)) {
		job = client_find(sp, cookie);
		if (job)
			on_gone(job, answer);
	} else if (len == sizeof(*answer)) {
		(void)call_answer(&sp->calls, cookie, answer, len);
		return;
	} else {
		return;
	}
	if (job)
		client_job_reap(job);
}

static int take_message(struct rgate_spawn *sp, const struct rgate_msg *msg, const void *data)
{
	const size_t len = msg->len;
	union {
		struct rgate_spawn_msg h;
		struct rgate_spawn_answer answer;
	} m;

	if (msg->has_imm || len < sizeof(m.h))
		return 0;
	memcpy(&m.h, data, sizeof(m.h));
	if (le32toh(m.h.service) != RGATE_SPAWN_ASKER || m.h.type < RGATE_SPAWN_UPDATE)
		return 0;
	if (len > sizeof(m) || m.h.version != RGATE_SPAWN_VERSION)
		return 1;
	memcpy(&m, data, len);
	/* The first of a connection that we do not know yet, or of one that is no more: jobs
	 * that it tells of were asked for anew since. */
	if (msg->epoch != sp->session.epoch)
		client_check_peer(sp, rgate_clock_now(CLOCK_MONOTONIC));
	if (msg->epoch == sp->session.epoch)
		on_message(sp, &m.h, len);
	return 1;
}

int rgate_spawn_message(struct rgate_spawn *sp, const struct rgate_msg *msg, const void *data)
{
	int ret;

	pthread_mutex_lock(&sp->lock);
	ret = take_message(sp, msg, data);
	pthread_mutex_unlock(&sp->lock);
	return ret;
}

void client_receive(struct rgate_spawn *sp)
{
	uint8_t buf[MSG_MAX];
	struct rgate_msg msg;
	int i, err;

	for (i = 0; i < MESSAGES; i++) {
		err = rgate_peer_recv(sp->peer, &msg, buf, sizeof(buf), 0);
		if (err)
			return;
		(void)take_message(sp, &msg, buf);
	}
}
