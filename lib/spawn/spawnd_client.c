// SPDX-License-Identifier: MIT OR GPL-2.0
/* A node that asks: its connection, its messages, what it is answered. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "container.h"
#include "log.h"
#include "spawnd.h"

#define MESSAGES	256		/* taken at once */
/* Of one node, that wait or are under way: more than it has messages under way, or it would
 * wait for us to take one while we wait for it to take an answer. */
#define ANSWERS_MAX	4096U
#define POSTED_MAX	64U
#define AGAIN_NS	1000000
#define MSG_MAX		256

static void free_answer(struct spawnd_client *c, struct spawnd_answer *a)
{
	c->nposted -= !!a->buf;
	spawnd_unstage(c, &a->buf);
	c->nanswers--;
	free(a);
}

static void answer_over(struct xfer *x, int err)
{
	struct spawnd_answer *a = container_of(x, struct spawnd_answer, xfer);

	(void)err;
	free_answer(a->client, a);
}

/* Into memory that operations use, with the list as it is now. False: later */
static bool stage_answer(struct spawnd_client *c, struct spawnd_answer *a, uint32_t *entries)
{
	struct rgate_spawn_answer *msg;
	uint32_t total = 0;
	int n = 0;

	a->buf = spawnd_stage(c, sizeof(*msg) + a->max * sizeof(struct rgate_spawn_entry));
	if (!a->buf)
		return false;
	c->nposted++;
	msg = a->buf->addr;
	*msg = a->msg;
	if (a->msg.h.type == RGATE_SPAWN_LISTED)
		n = spawnd_list(c, a->owner, le64toh(a->msg.h.id), (void *)(msg + 1), a->max,
				&total);
	if (n < 0)
		msg->error = htole32((uint32_t)-n);
	n = n < 0 ? 0 : n;
	msg->count = htole32((uint32_t)n);
	msg->total = htole32(total);
	*entries = (uint32_t)n * (uint32_t)sizeof(struct rgate_spawn_entry);
	return true;
}

static bool post_answer(struct spawnd_client *c, struct spawnd_answer *a)
{
	struct rgate_sge sge[2];
	struct rgate_op op[2];
	uint32_t entries = 0;
	unsigned int n = 0;

	if (!stage_answer(c, a, &entries))
		return false;
	if (entries) {
		sge[n] = (struct rgate_sge){
			(uint8_t *)a->buf->addr + sizeof(struct rgate_spawn_answer),
			entries, a->buf->lkey,
		};
		op[n] = (struct rgate_op){ .kind = RGATE_OP_WRITE, .nsge = 1, .sge = &sge[n],
					   .remote = a->to.addr, .rkey = a->to.rkey,
					   .epoch = c->session.epoch };
		n++;
	}
	sge[n] = (struct rgate_sge){ a->buf->addr, sizeof(struct rgate_spawn_answer),
				     a->buf->lkey };
	op[n] = (struct rgate_op){ .kind = RGATE_OP_SEND, .nsge = 1, .sge = &sge[n],
				   .epoch = c->session.epoch };
	if (!xfer_post(&c->xfers, &a->xfer, op, n + 1, answer_over))
		return true;
	c->nposted--;
	spawnd_unstage(c, &a->buf);
	return false;
}

void spawnd_client_post(struct spawnd_client *c)
{
	struct spawnd_answer *a;

	while (c->peer && c->session.up && (a = c->answers) && c->nposted < POSTED_MAX) {
		if (!post_answer(c, a)) {
			spawnd_wake_at(c->sd, rgate_clock_now(CLOCK_MONOTONIC) + AGAIN_NS);
			return;
		}
		c->answers = a->next;
		if (!c->answers)
			c->answers_last = &c->answers;
	}
}

bool spawnd_client_ready(struct spawnd_client *c)
{
	if (c->nanswers >= ANSWERS_MAX)
		return false;
	if (!c->spare)
		c->spare = calloc(1, sizeof(*c->spare));
	return c->spare;
}

static void queue_answer(struct spawnd_client *c, struct spawnd_answer *a, uint32_t type,
			 uint64_t cookie, uint64_t id)
{
	a->msg.h = (struct rgate_spawn_msg){
		.service = htole32(RGATE_SPAWN_ASKER), .version = RGATE_SPAWN_VERSION,
		.type = (uint8_t)type, .cookie = htole64(cookie), .id = htole64(id),
	};
	a->client = c;
	*c->answers_last = a;
	c->answers_last = &a->next;
	c->nanswers++;
}

struct spawnd_answer *spawnd_client_answer(struct spawnd_client *c, uint32_t type,
					   uint64_t cookie, uint64_t id, int err,
					   const char *reason)
{
	struct spawnd_answer *a = c->spare;

	c->spare = NULL;
	a->msg.error = htole32((uint32_t)-err);
	snprintf((char *)a->msg.reason, sizeof(a->msg.reason), "%s", reason);
	queue_answer(c, a, type, cookie, id);
	return a;
}

bool spawnd_client_let_go(struct spawnd_client *c, uint64_t cookie, uint64_t id)
{
	struct spawnd_answer *a;

	/* Without a connection nobody waits for it. */
	if (!c->session.up)
		return true;
	a = calloc(1, sizeof(*a));
	if (a)
		queue_answer(c, a, RGATE_SPAWN_GONE, cookie, id);
	return a;
}

/* Its process, or at least its connection, is gone for good. */
void spawnd_client_drop(struct spawnd_client *c)
{
	struct spawnd_job *job, *next;

	for (job = c->jobs; job; job = next) {
		next = job->next;
		job->attached = false;
		/* Results, too, are kept for those who asked for it; a client that knew of
		 * its end may have gone before we were told so. */
		if (job->keep) {
			spawnd_job_mark(job);
			continue;
		}
		c->sd->stats.killed += !job->abandoned && job->step >= RGATE_JOB_STARTING &&
				       job->step <= RGATE_JOB_RUNNING;
		spawnd_job_abandon(job);
	}
}

void spawnd_client_gone(struct spawnd_client *c)
{
	struct spawnd_job *job, *next;
	struct spawnd_answer *a;

	while ((a = c->answers)) {
		c->answers = a->next;
		free_answer(c, a);
	}
	c->answers_last = &c->answers;
	/* The client's memory is out of reach until it attaches again. */
	for (job = c->jobs; job; job = next) {
		next = job->next;
		spawnd_job_unattach(job);
	}
}

void spawnd_client_check(struct spawnd_client *c)
{
	enum session_news news;
	uint64_t now;

	if (!c->peer)
		return;
	now = rgate_clock_now(CLOCK_MONOTONIC);
	while ((news = session_look(&c->session, now)) != SESSION_SAME) {
		switch (news) {
		case SESSION_DOWN:
			spawnd_wake_at(c->sd, session_due(&c->session));
			/* All of what was under way has ended with the connection. */
			(void)xfer_reap(&c->xfers);
			spawnd_client_gone(c);
			break;
		case SESSION_LOST:
			spawnd_client_drop(c);
			break;
		case SESSION_OTHER:
			spawnd_client_drop(c);
			memset(&c->calls, 0, sizeof(c->calls));
			break;
		default:
			break;
		}
	}
}

void spawnd_client_receive(struct spawnd_client *c)
{
	uint8_t buf[MSG_MAX];
	struct rgate_msg msg;
	int i, err;

	/* What there is no place for stays where it is, and slows who sends it. */
	for (i = 0; i < MESSAGES && c->own && spawnd_client_ready(c); i++) {
		err = rgate_peer_recv(c->peer, &msg, buf, sizeof(buf), 0);
		if (err == -EMSGSIZE) {
			/* Nobody who means well sends that; taken all the same. */
			void *big = malloc(msg.len);

			c->sd->stats.garbage++;
			if (!big || rgate_peer_recv(c->peer, &msg, big, msg.len, 0))
				i = MESSAGES;
			free(big);
			continue;
		}
		if (err)
			break;
		if (!spawnd_client_message(c, &msg, buf))
			c->sd->stats.garbage++;
	}
}
