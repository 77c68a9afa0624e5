// SPDX-License-Identifier: MIT OR GPL-2.0
/* Questions that are answered once: what runs, a signal by id. And who has news. */
#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "opts.h"
#include "spawn_client.h"

#define ENTRIES	64	/* listed at once */

struct news {
	struct rgate_spawn *spawn;
	struct rgate_spawn_job *job;
};

static bool take_news(void *arg)
{
	struct news *n = arg;
	struct rgate_spawn *sp = n->spawn;

	n->job = sp->news;
	if (!n->job)
		return false;
	sp->news = n->job->news_next;
	if (!sp->news)
		sp->news_last = &sp->news;
	n->job->in_news = false;
	return true;
}

int rgate_spawn_next(struct rgate_spawn *sp, struct rgate_spawn_job **job, int timeout_ms)
{
	struct news n = { .spawn = sp };
	int err = client_wait(sp, take_news, &n, timeout_ms);

	if (!err)
		*job = n.job;
	return err;
}

/* Its message lies at the beginning of memory that the entries of the answer go to. */
struct question {
	struct rgate_spawn *spawn;
	uint8_t type;
	uint64_t id;
	int signal;
	uint32_t scope;
	uint64_t ticket;
	bool asks;			/* it is this one's turn */
	bool posted;
	uint32_t epoch;
	int err;
};

#define ENTRY_BYTES	(ENTRIES * sizeof(struct rgate_spawn_entry))

static int fill(struct question *q)
{
	struct rgate_spawn *sp = q->spawn;
	struct rgate_spawn_ask *m;
	int err;

	if (!sp->ask_buf) {
		err = rgate_pool_alloc(sp->pool, sizeof(*m) + ENTRY_BYTES, &sp->ask_buf);
		if (err)
			return err;
	}
	m = sp->ask_buf->addr;
	*m = (struct rgate_spawn_ask){
		.h = { .service = htole32(RGATE_SPAWN_SERVICE), .version = RGATE_SPAWN_VERSION,
		       .type = q->type, .cookie = htole64(sp->ask_cookie), .id = htole64(q->id) },
		.signal = htole32((uint32_t)q->signal), .scope = htole32(q->scope),
	};
	return rgate_buf_desc(sp->pool, sp->ask_buf, sizeof(*m), ENTRY_BYTES, &m->memory);
}

static bool may_ask(void *arg)
{
	struct question *q = arg;
	struct rgate_spawn *sp = q->spawn;

	if (sp->asking)
		return false;
	sp->asking = q->asks = true;
	sp->answered = false;
	sp->ask_cookie = sp->next_cookie++;
	q->err = fill(q);
	return true;
}

static bool is_answered(void *arg)
{
	struct question *q = arg;
	struct rgate_spawn *sp = q->spawn;
	struct rgate_sge sge = { sp->ask_buf->addr, sizeof(struct rgate_spawn_ask),
				 sp->ask_buf->lkey };
	const struct rgate_op op = {
		.kind = RGATE_OP_SEND, .nsge = 1, .sge = &sge, .epoch = sp->session.epoch,
	};

	/* The connection it was asked over is gone, and an answer with it. */
	if (q->posted && (!sp->session.up || sp->session.epoch != q->epoch))
		q->posted = false;
	if (!q->posted && sp->session.up && !rgate_peer_post(sp->peer, &op, 1, &q->ticket)) {
		q->posted = true;
		q->epoch = sp->session.epoch;
	}
	return sp->answered;
}

/* With an answer, entries are in place, and nobody else asks until finish_asking() */
static int ask(struct question *q, int timeout_ms)
{
	struct rgate_spawn *sp = q->spawn;
	int err;

	q->asks = q->posted = false;
	err = client_wait(sp, may_ask, q, timeout_ms);
	if (err)
		return err;
	return q->err ? q->err : client_wait(sp, is_answered, q, timeout_ms);
}

static void finish_asking(struct question *q)
{
	struct rgate_spawn *sp = q->spawn;

	if (!q->asks)
		return;
	/* The message has long left if there is an answer. */
	if (q->posted)
		(void)rgate_peer_settle(sp->peer, q->ticket, 1000);
	pthread_mutex_lock(&sp->lock);
	if (q->posted && !sp->answered) {
		sp->late = true;
		sp->late_cookie = sp->ask_cookie;
		sp->late_epoch = q->epoch;
	}
	sp->asking = false;
	pthread_mutex_unlock(&sp->lock);
}

int rgate_spawn_kill(struct rgate_spawn *sp, uint64_t id, int signal,
		     enum rgate_spawn_scope scope, int timeout_ms)
{
	struct question q = { .spawn = sp, .type = RGATE_SPAWN_KILL, .id = id, .signal = signal,
			      .scope = (uint32_t)scope };
	int err;

	if (signal < 1 || signal > SIGRTMAX)
		return -EINVAL;
	err = ask(&q, timeout_ms);
	if (!err)
		err = -(int)le32toh(sp->answer.error);
	finish_asking(&q);
	return err;
}

static void take_entry(const struct rgate_spawn_entry *e, struct rgate_spawn_info *info)
{
	*info = (struct rgate_spawn_info){
		.sz = sizeof(*info), .id = le64toh(e->id), .state = le32toh(e->state),
		.node = le32toh(e->node), .pid = (int32_t)le32toh(e->pid),
		.attached = e->attached, .started_ns = le64toh(e->started_ns),
	};
	memcpy(info->user, e->user, sizeof(e->user));
	memcpy(info->command, e->command, sizeof(e->command));
}

/* What was listed, to the caller; the last one's id in @last */
static int tell(const struct rgate_spawn_entry *e, uint32_t n,
		int (*fn)(void *ctx, const struct rgate_spawn_info *info), void *ctx,
		uint64_t *last)
{
	struct rgate_spawn_info info;
	int ret = 0;
	uint32_t i;

	for (i = 0; i < n && !ret; i++) {
		take_entry(&e[i], &info);
		*last = info.id;
		ret = fn(ctx, &info);
	}
	return ret;
}

int rgate_spawn_list(struct rgate_spawn *sp,
		     int (*fn)(void *ctx, const struct rgate_spawn_info *info), void *ctx,
		     int timeout_ms)
{
	struct question q = { .spawn = sp, .type = RGATE_SPAWN_LIST };
	struct rgate_spawn_entry entries[ENTRIES];
	uint32_t n, total;
	int err;

	do {
		n = total = 0;
		err = ask(&q, timeout_ms);
		if (!err)
			err = -(int)le32toh(sp->answer.error);
		if (!err) {
			n = le32toh(sp->answer.count);
			total = le32toh(sp->answer.total);
			n = n < ENTRIES ? n : ENTRIES;
			memcpy(entries, (struct rgate_spawn_ask *)sp->ask_buf->addr + 1,
			       n * sizeof(entries[0]));
		}
		finish_asking(&q);
		if (!err)
			err = tell(entries, n, fn, ctx, &q.id);
	} while (!err && n && total > n);
	return err;
}
