// SPDX-License-Identifier: MIT OR GPL-2.0
/* Streams with a group of consumers; requests are pipelined, as many as a batch has tasks. */
#include "bench.h"
#include "rival.h"

#ifdef HAVE_HIREDIS

#include <hiredis.h>

#define CAP	"1000000"	/* the stream's length, so that its memory has a bound, too */

static redisContext *join(const char *address)
{
	redisContext *c = redisConnectUnix(address);

	if (!c || c->err)
		bench_die(0, "redis at %s: %s", address, c ? c->errstr : "no memory");
	return c;
}

static redisReply *next(redisContext *c)
{
	redisReply *r = NULL;

	if (redisGetReply(c, (void **)&r) != REDIS_OK)
		bench_die(0, "redis: %s", c->errstr);
	if (r->type == REDIS_REPLY_ERROR)
		bench_die(0, "redis: %s", r->str);
	return r;
}

static void prepare(const char *address)
{
	redisContext *c = join(address);

	redisAppendCommand(c, "DEL bench");
	redisAppendCommand(c, "XGROUP CREATE bench workers $ MKSTREAM");
	freeReplyObject(next(c));
	freeReplyObject(next(c));
	redisFree(c);
}

static void submit(const char *address, uint32_t tasks)
{
	redisContext *c = join(address);
	uint32_t i, n;

	for (; tasks; tasks -= n) {
		n = tasks < batch ? tasks : batch;
		for (i = 0; i < n; i++)
			redisAppendCommand(c, "XADD bench MAXLEN ~ " CAP " * t 0");
		for (i = 0; i < n; i++)
			freeReplyObject(next(c));
	}
	redisFree(c);
}

/* Acknowledges all entries of the reply of XREADGROUP by one command: how many */
static uint32_t acknowledge(redisContext *c, const redisReply *r)
{
	const char *argv[3 + BATCH_MOST] = { "XACK", "bench", "workers" };
	const redisReply *entries;
	uint32_t i;

	if (r->type != REDIS_REPLY_ARRAY || r->elements != 1)
		bench_die(0, "redis: no tasks");
	entries = r->element[0]->element[1];
	if (entries->elements > batch)
		bench_die(0, "redis: too many tasks");
	for (i = 0; i < entries->elements; i++)
		argv[3 + i] = entries->element[i]->element[0]->str;
	redisAppendCommandArgv(c, (int)(3 + i), argv, NULL);
	freeReplyObject(next(c));
	return i;
}

static void work(const char *address, uint32_t tasks)
{
	redisContext *c = join(address);
	redisReply *r;

	while (tasks) {
		redisAppendCommand(c, "XREADGROUP GROUP workers one COUNT %u BLOCK 10000 "
				   "STREAMS bench >", batch);
		r = next(c);
		tasks -= acknowledge(c, r);
		freeReplyObject(r);
	}
	redisFree(c);
}

const struct rival redis_streams = { "redis", prepare, submit, work };

#else

const struct rival redis_streams = { .name = "redis" };

#endif
