// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a worker makes of what its queue says of results, attempts and claims, whatever that is */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue_client.h"
#include "queue_worker.h"

#define MOST	4

static struct rgate_queue_worker worker;
static struct queue_thread t;

/* Of each call: what becomes of all results, and of the request that goes along */
static struct said {
	int result, along;
} said[MOST];
static unsigned int calls, results_of[MOST];
static char reason[64];

int __wrap_queue_complete_along(struct rgate_queue *q, struct rgate_queue_result *results,
				unsigned int n, struct rgate_request along, bool later,
				uint64_t *value);
int __wrap_rgate_queue_complete_many(struct rgate_queue *q, struct rgate_queue_result *results,
				     unsigned int n);
int __wrap_rgate_queue_bury(struct rgate_queue *q, const struct rgate_queue_task *task,
			    const char *why);

static const struct said *next(struct rgate_queue_result *results, unsigned int n)
{
	unsigned int i;

	assert_true(calls < MOST);
	for (i = 0; i < n; i++)
		results[i].error = said[calls].result;
	results_of[calls] = n;
	return &said[calls++];
}

int __wrap_queue_complete_along(struct rgate_queue *q, struct rgate_queue_result *results,
				unsigned int n, struct rgate_request along, bool later,
				uint64_t *value)
{
	const struct said *s = next(results, n);

	(void)q;
	assert_false(later);
	assert_int_equal(along.op, RGATE_REQ_QUEUE_BEGIN);
	*value = 7;
	return s->along;
}

int __wrap_rgate_queue_complete_many(struct rgate_queue *q, struct rgate_queue_result *results,
				     unsigned int n)
{
	(void)q;
	return next(results, n)->result ? results[0].error : (int)n;
}

int __wrap_rgate_queue_bury(struct rgate_queue *q, const struct rgate_queue_task *task,
			    const char *why)
{
	(void)q;
	(void)task;
	snprintf(reason, sizeof(reason), "%s", why);
	return 0;
}

static int claim_says[MOST];		/* of each claim in turn; behind them it is stopped */
static unsigned int claims;

int __wrap_rgate_queue_next_start(struct rgate_queue *q, struct rgate_queue_result *results,
				  unsigned int n, uint64_t types, unsigned int most,
				  uint32_t flags);
int __wrap_rgate_queue_next_take(struct rgate_queue *q, struct rgate_queue_got *got);
int __wrap_rgate_queue_quit(struct rgate_queue *q);
int __wrap_rgate_queue_fd(const struct rgate_queue *q);

int __wrap_rgate_queue_next_start(struct rgate_queue *q, struct rgate_queue_result *results,
				  unsigned int n, uint64_t types, unsigned int most,
				  uint32_t flags)
{
	(void)q;
	(void)results;
	(void)types;
	(void)most;
	(void)flags;
	assert_int_equal(n, 0);
	assert_true(claims < MOST);
	if (!claim_says[claims])
		__atomic_store_n(&worker.state, WORKER_STOPS, __ATOMIC_RELEASE);
	return 0;
}

int __wrap_rgate_queue_next_take(struct rgate_queue *q, struct rgate_queue_got *got)
{
	(void)q;
	(void)got;
	return claim_says[claims] ? claim_says[claims++] : -EAGAIN;
}

int __wrap_rgate_queue_quit(struct rgate_queue *q)
{
	(void)q;
	claim_says[claims] = -ENOBUFS;
	return 1;
}

int __wrap_rgate_queue_fd(const struct rgate_queue *q)
{
	(void)q;
	return -1;
}

static struct taken *task(void)
{
	struct taken *one = calloc(1, sizeof(*one));

	assert_non_null(one);
	return one;
}

/* Two results are to be told */
static int setup(void **state)
{
	unsigned int i;

	(void)state;
	memset(&t, 0, sizeof(t));
	memset(said, 0, sizeof(said));
	memset(claim_says, 0, sizeof(claim_says));
	calls = claims = 0;
	worker = (struct rgate_queue_worker){ .bell = -1 };
	t.worker = &worker;
	list_init(&t.ahead);
	list_init(&t.ended);
	for (i = 0; i < 2; i++) {
		list_add_tail(&t.ended, &task()->link);
		t.nended++;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	worker_forget(&t);
	return 0;
}

/* What a signal has ended is asked again, alone: the results that were refused stay so. */
static void interrupted(void **state)
{
	static const int refusals[] = { -EAGAIN, -EDQUOT, -EINTR, -ENOSPC };
	struct taken *one = task();
	unsigned int i;
	bool ours;

	(void)state;
	for (i = 0; i < ARRAY_LEN(refusals); i++) {
		said[0] = (struct said){ .result = refusals[i], .along = -EINTR };
		said[1].along = -EINTR;
		ours = t.refused = false;
		calls = 0;
		assert_int_equal(worker_begin(&t, one, &ours), 0);
		assert_true(ours);
		assert_int_equal(one->task.attempts, 7);
		assert_int_equal(one->task.state, RGATE_TASK_RUNNING);
		assert_int_equal(calls, 3);
		assert_int_equal(results_of[0], 2);
		assert_int_equal(results_of[1] + results_of[2], 0);
		assert_true(t.refused);
		assert_int_equal(t.nended, 2);
		assert_int_equal(t.n.held, 2);
		assert_int_equal(t.n.completed, 0);
	}
	/* Until they are told again */
	calls = 0;
	said[0] = (struct said){ 0 };
	assert_int_equal(worker_flush(&t), 0);
	assert_false(t.refused);
	assert_int_equal(t.nended + t.n.held, 0);
	assert_int_equal(t.n.completed, 2);
	worker_drop(one);
}

/* A home that is lost is that, and no signal: who opens it again would not. */
static void lost_and_interrupted(void **state)
{
	struct taken *one = task();
	bool ours = true;

	(void)state;
	said[0] = (struct said){ .result = -ECONNRESET, .along = -EINTR };
	assert_int_equal(worker_begin(&t, one, &ours), -ECONNRESET);
	assert_false(ours);
	assert_int_equal(calls, 1);
	assert_int_equal(t.nended, 0);
	worker_drop(one);
}

/* What its queue never has room for is not told for ever, and is no reason to end. */
static void too_long(void **state)
{
	(void)state;
	said[0].result = -EMSGSIZE;
	assert_int_equal(worker_flush(&t), 0);
	assert_string_equal(reason, "its result is too long");
	assert_false(t.refused);
	assert_int_equal(t.nended + t.n.completed, 0);
	assert_int_equal(t.n.buried, 2);
}

/* Where too many wait for tasks it asks again, and does not end; what else is wrong ends it. */
static void crowded(void **state)
{
	(void)state;
	worker_forget(&t);
	fair_init(&t.lock);
	claim_says[0] = claim_says[1] = -ENOBUFS;
	assert_int_equal(worker_loop(&t), 0);
	/* The third one had ended so when it was given up. */
	assert_int_equal(claims, 3);
	__atomic_store_n(&worker.state, WORKER_GOES, __ATOMIC_RELEASE);
	claims = 0;
	claim_says[1] = -EACCES;
	assert_int_equal(worker_loop(&t), -EACCES);
	fair_destroy(&t.lock);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(interrupted), TEST(lost_and_interrupted), TEST(too_long), TEST(crowded),
};

UNIT_MAIN_ALONE(tests)
