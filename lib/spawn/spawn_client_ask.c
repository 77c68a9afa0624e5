// SPDX-License-Identifier: MIT OR GPL-2.0
/* Questions that are answered once: what runs, a signal by id. And who has news. */
#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "container.h"
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

struct client_question {
	struct rgate_spawn *spawn;
	struct call call;
	struct client_ask ask;		/* without over(): it is waited for */
	const struct rgate_buf *entries; /* RGATE_SPAWN_LIST: where they are written to */
	bool over;
	int err;
	struct rgate_spawn_answer answer;
};

#define ENTRY_BYTES	(ENTRIES * sizeof(struct rgate_spawn_entry))

static void free_question(struct client_question *q)
{
	rgate_pool_free(q->spawn->pool, q->entries);
	free(q);
}

/* Memory of its own, as it may be written for longer than the caller waits */
static int make(struct rgate_spawn *sp, const struct client_ask *ask, struct client_question **out)
{
	struct client_question *q = calloc(1, sizeof(*q));
	int err = 0;

	if (!q)
		return -ENOMEM;
	q->spawn = sp;
	q->ask = *ask;
	if (ask->type == RGATE_SPAWN_LIST)
		err = rgate_pool_alloc(sp->pool, ENTRY_BYTES, &q->entries);
	if (err)
		free(q);
	else
		*out = q;
	return err;
}

static void answered(struct call *c, int err, const void *answer, size_t len)
{
	struct client_question *q = container_of(c, struct client_question, call);

	if (!err) {
		memcpy(&q->answer, answer, len);
		err = client_error(q->answer.error);
		/* No more than there is room for, whatever it says */
		if (le32toh(q->answer.count) > (q->entries ? ENTRIES : 0))
			q->answer.count = htole32(q->entries ? ENTRIES : 0);
	}
	q->err = err;
	q->over = true;
	if (!q->ask.over)
		return;
	q->ask.over(q->ask.arg, err, &q->answer, q->entries ? q->entries->addr : NULL);
	free_question(q);
}

static void unwanted(struct call *c, int err, const void *answer, size_t len)
{
	(void)err;
	(void)answer;
	(void)len;
	free_question(container_of(c, struct client_question, call));
}

static int fill(const struct client_question *q)
{
	struct rgate_spawn_ask *m = q->call.msg;

	*m = (struct rgate_spawn_ask){
		.h = { .service = htole32(RGATE_SPAWN_SERVICE), .version = RGATE_SPAWN_VERSION,
		       .type = q->ask.type, .cookie = htole64(q->call.number),
		       .id = htole64(q->ask.id) },
		.signal = htole32((uint32_t)q->ask.signal), .scope = htole32(q->ask.scope),
		.owner = htole32(q->ask.owner),
	};
	if (!q->entries)
		return 0;
	return rgate_buf_desc(q->spawn->pool, q->entries, 0, ENTRY_BYTES, &m->memory);
}

static bool asked(void *arg)
{
	struct client_question *q = arg;
	int err;

	if (call_open(&q->spawn->calls, &q->call))
		return false;
	err = fill(q);
	/* What is listed may be listed twice. */
	call_ask(&q->call, sizeof(struct rgate_spawn_ask), q->entries, answered);
	if (err) {
		call_leave(&q->call, answered);
		q->err = err;
	}
	return true;
}

static bool is_over(void *arg)
{
	const struct client_question *q = arg;

	return q->over;
}

/* 0, with an answer, or an error; the question is the caller's to free, or NULL */
static int ask(struct client_question **at, int timeout_ms)
{
	struct client_question *q = *at;
	struct rgate_spawn *sp = q->spawn;
	int err;

	q->over = false;
	err = client_wait(sp, asked, q, timeout_ms);
	if (err)
		return err;
	err = client_wait(sp, is_over, q, timeout_ms);
	if (!err)
		return q->err;
	pthread_mutex_lock(&sp->lock);
	if (q->over) {
		err = q->err;
	} else {
		call_leave(&q->call, unwanted);
		*at = NULL;
	}
	pthread_mutex_unlock(&sp->lock);
	return err;
}

int client_ask(struct rgate_spawn *sp, const struct client_ask *what, struct client_question **at)
{
	struct client_question *q;
	int err;

	err = make(sp, what, &q);
	if (err)
		return err;
	/* Nobody is told of what this returns. */
	q->ask.over = NULL;
	pthread_mutex_lock(&sp->lock);
	err = asked(q) ? q->err : -EAGAIN;
	if (err) {
		free_question(q);
	} else {
		*at = q;
		q->ask.over = what->over;
		client_process(sp);
	}
	pthread_mutex_unlock(&sp->lock);
	return err;
}

void client_ask_leave(struct client_question *q)
{
	struct rgate_spawn *sp = q->spawn;

	pthread_mutex_lock(&sp->lock);
	call_leave(&q->call, answered);
	pthread_mutex_unlock(&sp->lock);
}

int rgate_spawn_kill(struct rgate_spawn *sp, uint64_t id, int signal,
		     enum rgate_spawn_scope scope, int timeout_ms)
{
	const struct client_ask what = {
		.type = RGATE_SPAWN_KILL, .owner = RGATE_SPAWN_NODE, .id = id, .signal = signal,
		.scope = (uint32_t)scope,
	};
	struct client_question *q;
	int err;

	if (signal < 1 || signal > SIGRTMAX)
		return -EINVAL;
	err = make(sp, &what, &q);
	if (err)
		return err;
	err = ask(&q, timeout_ms);
	if (q)
		free_question(q);
	return err;
}

static void take_entry(const struct rgate_spawn_entry *e, struct rgate_spawn_info *info)
{
	*info = (struct rgate_spawn_info){
		.sz = sizeof(*info), .id = le64toh(e->id), .state = le32toh(e->state),
		.node = le32toh(e->node), .pid = (int32_t)le32toh(e->pid),
		.attached = e->attached, .started_ns = le64toh(e->started_ns),
		.owned = le32toh(e->owner) != RGATE_SPAWN_NODE, .owner = le32toh(e->owner) - 1,
	};
	if (!info->owned)
		info->owner = 0;
	memcpy(info->user, e->user, sizeof(e->user));
	memcpy(info->command, e->command, sizeof(e->command));
}

int client_take_entry(struct rgate_spawn_entry *to, const struct rgate_spawn_entry *from,
		      uint64_t *last)
{
	memcpy(to, from, sizeof(*to));
	if (le64toh(to->id) <= *last)
		return -EPROTO;
	*last = le64toh(to->id);
	return 0;
}

/* What was listed, to the caller; the last one's id in @last */
static int tell(const struct rgate_spawn_entry *from, uint32_t n,
		int (*fn)(void *ctx, const struct rgate_spawn_info *info), void *ctx,
		uint64_t *last)
{
	struct rgate_spawn_entry e;
	struct rgate_spawn_info info;
	int ret = 0;
	uint32_t i;

	for (i = 0; i < n && !ret; i++) {
		ret = client_take_entry(&e, &from[i], last);
		if (ret)
			break;
		take_entry(&e, &info);
		ret = fn(ctx, &info);
	}
	return ret;
}

int rgate_spawn_list(struct rgate_spawn *sp,
		     int (*fn)(void *ctx, const struct rgate_spawn_info *info), void *ctx,
		     int timeout_ms)
{
	const struct client_ask what = { .type = RGATE_SPAWN_LIST, .owner = RGATE_SPAWN_NODE };
	struct client_question *q;
	uint32_t n, total, all = 0;
	int err;

	err = make(sp, &what, &q);
	if (err)
		return err;
	do {
		n = total = 0;
		err = ask(&q, timeout_ms);
		if (!err) {
			n = le32toh(q->answer.count);
			total = le32toh(q->answer.total);
			err = tell(q->entries->addr, n, fn, ctx, &q->ask.id);
		}
		all += n;
		if (!err && all > RGATE_SPAWN_LISTED_MAX)
			err = -EPROTO;
	} while (!err && n && total > n);
	if (q)
		free_question(q);
	return err;
}
