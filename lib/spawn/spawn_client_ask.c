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

struct question {
	struct rgate_spawn *spawn;
	struct call call;
	uint8_t type;
	uint64_t id;
	int signal;
	uint32_t scope;
	const struct rgate_buf *entries; /* RGATE_SPAWN_LIST: where they are written to */
	bool over;
	int err;
	struct rgate_spawn_answer answer;
};

#define ENTRY_BYTES	(ENTRIES * sizeof(struct rgate_spawn_entry))

static void free_question(struct question *q)
{
	rgate_pool_free(q->spawn->pool, q->entries);
	free(q);
}

/* Memory of its own, as it may be written for longer than the caller waits */
static struct question *make(struct rgate_spawn *sp, uint8_t type, uint64_t id)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->spawn = sp;
	q->type = type;
	q->id = id;
	if (type == RGATE_SPAWN_LIST && rgate_pool_alloc(sp->pool, ENTRY_BYTES, &q->entries)) {
		free(q);
		return NULL;
	}
	return q;
}

static void answered(struct call *c, int err, const void *answer, size_t len)
{
	struct question *q = container_of(c, struct question, call);

	if (!err) {
		memcpy(&q->answer, answer, len);
		err = -(int)le32toh(q->answer.error);
	}
	q->err = err;
	q->over = true;
}

static void unwanted(struct call *c, int err, const void *answer, size_t len)
{
	(void)err;
	(void)answer;
	(void)len;
	free_question(container_of(c, struct question, call));
}

static int fill(const struct question *q)
{
	struct rgate_spawn_ask *m = q->call.msg;

	*m = (struct rgate_spawn_ask){
		.h = { .service = htole32(RGATE_SPAWN_SERVICE), .version = RGATE_SPAWN_VERSION,
		       .type = q->type, .cookie = htole64(q->call.number), .id = htole64(q->id) },
		.signal = htole32((uint32_t)q->signal), .scope = htole32(q->scope),
	};
	if (!q->entries)
		return 0;
	return rgate_buf_desc(q->spawn->pool, q->entries, 0, ENTRY_BYTES, &m->memory);
}

static bool asked(void *arg)
{
	struct question *q = arg;
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
	const struct question *q = arg;

	return q->over;
}

/* 0, with an answer, or an error; the question is the caller's to free, or NULL */
static int ask(struct question **at, int timeout_ms)
{
	struct question *q = *at;
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

int rgate_spawn_kill(struct rgate_spawn *sp, uint64_t id, int signal,
		     enum rgate_spawn_scope scope, int timeout_ms)
{
	struct question *q;
	int err;

	if (signal < 1 || signal > SIGRTMAX)
		return -EINVAL;
	q = make(sp, RGATE_SPAWN_KILL, id);
	if (!q)
		return -ENOMEM;
	q->signal = signal;
	q->scope = (uint32_t)scope;
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
	struct question *q = make(sp, RGATE_SPAWN_LIST, 0);
	uint32_t n, total;
	int err;

	if (!q)
		return -ENOMEM;
	do {
		n = total = 0;
		err = ask(&q, timeout_ms);
		if (!err) {
			n = le32toh(q->answer.count);
			n = n < ENTRIES ? n : ENTRIES;
			total = le32toh(q->answer.total);
			err = tell(q->entries->addr, n, fn, ctx, &q->id);
		}
	} while (!err && n && total > n);
	if (q)
		free_question(q);
	return err;
}
