// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A key that is set if it is not there, with a lease, and asked for again at once where it is; and
 * a list that has one entry while the lock is free, for which BLPOP waits.
 */
#include "bench.h"
#include "rival.h"

#ifdef HAVE_HIREDIS

#include <hiredis.h>

static redisContext *connect_to(const char *address)
{
	redisContext *c = redisConnectUnix(address);

	if (!c || c->err)
		bench_die(0, "redis at %s: %s", address, c ? c->errstr : "no memory");
	return c;
}

/* The answer's type; errors end it */
static int ask(redisContext *c, const char *command)
{
	redisReply *r = redisCommand(c, command);
	int type;

	if (!r || r->type == REDIS_REPLY_ERROR)
		bench_die(0, "redis: %s", r ? r->str : c->errstr);
	type = r->type;
	freeReplyObject(r);
	return type;
}

static void prepare(const char *address)
{
	redisContext *c = connect_to(address);

	(void)ask(c, "DEL " NAME);
	redisFree(c);
}

static void prepare_list(const char *address)
{
	redisContext *c = connect_to(address);

	(void)ask(c, "DEL " NAME);
	(void)ask(c, "RPUSH " NAME " free");
	redisFree(c);
}

static void *join(const char *address, unsigned int i, unsigned int members)
{
	(void)i;
	(void)members;
	return connect_to(address);
}

static void acquire(void *h)
{
	while (ask(h, "SET " NAME " me NX PX 30000") == REDIS_REPLY_NIL)
		;
}

static void release(void *h)
{
	(void)ask(h, "DEL " NAME);
}

static void acquire_list(void *h)
{
	if (ask(h, "BLPOP " NAME " 30") == REDIS_REPLY_NIL)
		bench_die(0, "redis: nobody has released it");
}

static void release_list(void *h)
{
	(void)ask(h, "RPUSH " NAME " free");
}

static void leave(void *h)
{
	redisFree(h);
}

const struct rival redis_set = { "redis", prepare, join, acquire, release, NULL, leave };
const struct rival redis_list = { "redis-list", prepare_list, join, acquire_list, release_list,
				  NULL, leave };

#else

const struct rival redis_set = { .name = "redis" };
const struct rival redis_list = { .name = "redis-list" };

#endif
