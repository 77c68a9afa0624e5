// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a home says that cannot be: each call comes to an end, and tells no more than there can be. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "queue_client.h"

static unsigned int asked;
static int result;
static uint64_t told;
static bool turns;		/* as much less, each second time */

int __wrap_sync_client_ask(struct sync_client *sc, struct rgate_request r, int timeout_ms,
			   uint64_t *value);

int __wrap_sync_client_ask(struct sync_client *sc, struct rgate_request r, int timeout_ms,
			   uint64_t *value)
{
	(void)sc;
	(void)r;
	(void)timeout_ms;
	assert_true(++asked <= RGATE_QUEUE_TASKS_MAX);
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

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(always_more),
};

UNIT_MAIN(tests)
