// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a home says that cannot be: each call ends, and tells no more than there can be. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include <ringgate/rgate_lock.h>

#include "queue_client.h"

static unsigned int asked;
static int result;
static uint64_t told;
static bool counts;		/* one more each time */
static bool turns;		/* as much less, each second time */

int __wrap_sync_client_ask(struct sync_client *sc, struct rgate_request r, int timeout_ms,
			   uint64_t *value);

int __wrap_rgate_session_open(struct rgate_session **s, const struct rgate_session_opts *opts);
void *__wrap_rgate_session_memory(struct rgate_session *s, size_t *len);
void __wrap_rgate_session_close(struct rgate_session *s);

static uint64_t memory[2 * RGATE_QUEUE_PART_MAX / sizeof(uint64_t)];

int __wrap_rgate_session_open(struct rgate_session **s, const struct rgate_session_opts *opts)
{
	(void)opts;
	*s = NULL;
	return 0;
}

void *__wrap_rgate_session_memory(struct rgate_session *s, size_t *len)
{
	(void)s;
	(void)len;
	return memory;
}

void __wrap_rgate_session_close(struct rgate_session *s)
{
	(void)s;
}

int __wrap_sync_client_ask(struct sync_client *sc, struct rgate_request r, int timeout_ms,
			   uint64_t *value)
{
	(void)sc;
	(void)r;
	(void)timeout_ms;
	assert_true(++asked <= RGATE_QUEUE_TASKS_MAX);
	if (counts)
		told++;
	*value = turns && asked % 2 ? -told : told;
	return result;
}

/* Of each request it says that it has done one, and so there is always more. */
static void always_more(void **state)
{
	struct rgate_queue q = { .out = NULL };
	uint64_t n;

	(void)state;
	told = 1;
	asked = 0;
	assert_int_equal(rgate_queue_kick(&q, UINT64_MAX, &n), 0);
	assert_int_equal(n, RGATE_QUEUE_TASKS_MAX);
	asked = 0;
	assert_int_equal(rgate_queue_discard(&q, 1, &n), 0);
	assert_int_equal(n, RGATE_QUEUE_TASKS_MAX);
	turns = true;
	asked = 0;
	assert_int_equal(rgate_queue_discard(&q, 1, &n), -EPROTO);
	assert_int_equal(n, 0);
	turns = false;
	/* or more than it was asked for */
	told = UINT64_MAX;
	asked = 0;
	assert_int_equal(rgate_queue_kick(&q, 5, &n), -EPROTO);
	assert_int_equal(n, 0);
}

static int each_queue(void *ctx, const struct rgate_queue_info *info)
{
	(void)info;
	++*(unsigned int *)ctx;
	return 0;
}

static int each_lock(void *ctx, const struct rgate_lock_info *info)
{
	(void)info;
	++*(unsigned int *)ctx;
	return 0;
}

/* Another one each time, without end: whoever lists them has memory for so many. */
static void always_another(void **state)
{
	struct rgate_queue_info *queue = (void *)((char *)memory + OUT_LEN);
	struct rgate_lock_info *lock = (void *)((char *)memory + SYNC_CLIENT_ROOM);
	unsigned int n = 0;

	(void)state;
	memset(memory, 0, sizeof(memory));
	strcpy(queue->name, "q");
	strcpy(lock->name, "l");
	told = 0;
	result = 1;
	counts = true;
	asked = 0;
	assert_int_equal(rgate_queue_list(NULL, each_queue, &n), -EPROTO);
	assert_in_range(n, 1024, 100000);
	n = asked = 0;
	assert_int_equal(rgate_lock_list(NULL, each_lock, &n), -EPROTO);
	assert_in_range(n, 4096, 100000);
	counts = false;
	result = 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(always_more), cmocka_unit_test(always_another),
};

UNIT_MAIN_ALONE(tests)
