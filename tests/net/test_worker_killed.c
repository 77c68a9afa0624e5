// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A worker, whose daemon is killed and started again while it has tasks: each is done, the result
 * of each is that of one of those who ran it, and is told once.
 */
#include "ringgated.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_queue_worker.h>

#include "nodes.h"

#define TASKS	300U
#define THREADS	3U
#define BATCH	4U
#define AHEAD	2U
#define KILLS	3U
#define POLICY	"allow any queue\n"
#define RUNS	(TASKS * 8)

static struct ringgated child;
static unsigned int runs;		/* so far, atomic */
static uint32_t ran[RUNS];		/* the task of each, atomic */

static int run(void *ctx, struct rgate_queue_work *work)
{
	const unsigned int n = __atomic_fetch_add(&runs, 1, __ATOMIC_RELAXED);
	uint32_t task;

	(void)ctx;
	if (work->task->len != sizeof(task) || n >= RUNS)
		return -EIO;
	memcpy(&task, work->data, sizeof(task));
	/* Who reads it has its number from the daemon, of which a sanitizer knows nothing. */
	__atomic_store_n(&ran[n], task, __ATOMIC_RELAXED);
	usleep(1000);
	memcpy(work->result, &n, sizeof(n));
	work->len = sizeof(n);
	return 0;
}

static const struct rgate_queue_handler handler = { .run = run };

static struct rgate_queue_opts queue_opts(void)
{
	return RGATE_OPTS(rgate_queue_opts, .path = child.requests,
			  .where = RGATE_SESSION_DAEMON, .timeout_ms = MS, .attempts = 1000,
			  .result_ms = RGATE_QUEUE_MS_MAX,
			  .flags = RGATE_QUEUE_CREATE | RGATE_QUEUE_KEEP);
}

static struct rgate_queue *open_it(void)
{
	const struct rgate_queue_opts o = queue_opts();
	struct rgate_queue *q;

	assert_int_equal(rgate_queue_open(&q, "work", &o), 0);
	return q;
}

static struct rgate_queue_worker_info numbers(struct rgate_queue_worker *w)
{
	struct rgate_queue_worker_info i = { .sz = sizeof(i) };

	assert_int_equal(rgate_queue_worker_info(w, &i), 0);
	return i;
}

/* Each before the first kill: whose SUBMIT was answered is in the journal. */
static uint64_t submit_all(void)
{
	struct rgate_queue *q = open_it();
	uint64_t id, first = 0;
	uint32_t i;

	for (i = 0; i < TASKS; i++) {
		const struct rgate_queue_job job = { .data = &i, .len = sizeof(i),
						     .flags = RGATE_TASK_RESULT };

		assert_int_equal(rgate_queue_submit(q, &job, 1, (int)MS, &id), 1);
		first = first ? first : id;
		assert_int_equal(id, first + i);
	}
	rgate_queue_close(q);
	return first;
}

/* By whom each was, and that nobody is told of it again */
static void take_all(uint64_t first)
{
	struct rgate_queue *q = open_it();
	struct rgate_queue_info info;
	unsigned int i, n;
	uint32_t state;

	for (i = 0; i < TASKS; i++) {
		assert_int_equal(rgate_queue_wait(q, first + i, RGATE_WAIT_TAKE, (int)MS, &n,
						  sizeof(n), &state), sizeof(n));
		assert_int_equal(state, RGATE_TASK_DONE);
		assert_true(n < __atomic_load_n(&runs, __ATOMIC_RELAXED));
		assert_int_equal(__atomic_load_n(&ran[n], __ATOMIC_RELAXED), i);
		assert_int_equal(rgate_queue_wait(q, first + i, 0, 0, &n, sizeof(n), NULL),
				 -ENOENT);
	}
	assert_int_equal(rgate_queue_info(q, &info), 0);
	for (i = 0; i < RGATE_TASK_STATES; i++)
		assert_int_equal(info.now[i], 0);
	rgate_queue_close(q);
}

static void killed(void **state)
{
	const struct rgate_queue_opts of = queue_opts();
	const struct rgate_queue_worker_opts o = RGATE_OPTS(rgate_queue_worker_opts,
		.queue = &of, .handlers = &handler, .nhandlers = 1, .threads = THREADS,
		.batch = BATCH, .prefetch = AHEAD, .flags = RGATE_WORKER_REOPEN);
	struct rgate_queue_worker_info n;
	struct rgate_queue_worker *w;
	char journal[96];
	unsigned int i, lost;
	uint64_t first;

	(void)state;
	ringgated_make(&child);
	snprintf(journal, sizeof(journal), "%s/journal fsync never", child.dir);
	child.journal = journal;
	ringgated_start(&child, POLICY, -1);
	first = submit_all();
	assert_int_equal(rgate_queue_worker_start(&w, "work", &o), 0);
	for (i = 1; i <= KILLS; i++) {
		/* In the middle of what is left */
		wait_for(numbers(w).completed >= i * TASKS / (KILLS + 2));
		ringgated_stop(&child, SIGKILL);
		ringgated_start(&child, POLICY, -1);
		wait_for(numbers(w).reopened == i * THREADS);
	}
	take_all(first);
	rgate_queue_worker_stop(w);
	assert_int_equal(rgate_queue_worker_join(w, (int)MS), 0);
	n = numbers(w);
	assert_int_equal(rgate_queue_worker_close(w), 0);
	/* Of each it is said once that it is completed, or nothing is; what a thread loses
	 * with the daemon is what it had of a claim, of the one before, and had asked for.
	 */
	lost = runs - (unsigned int)(n.completed + n.late);
	print_message("# %u runs: %llu completed, %llu late, %u lost; %llu claimed\n", runs,
		      (unsigned long long)n.completed, (unsigned long long)n.late, lost,
		      (unsigned long long)n.claimed);
	assert_true(n.completed <= TASKS);
	assert_true(n.completed + lost >= TASKS);
	assert_true(n.completed + n.late <= runs);
	assert_true(lost <= KILLS * THREADS * (2 * BATCH + AHEAD));
	assert_true(n.claimed >= runs + n.given_back);
	assert_int_equal(n.late + n.buried + n.released + n.held + n.ahead + n.running, 0);
	assert_int_equal(n.reopened, KILLS * THREADS);
	assert_int_equal(ringgated_stop(&child, SIGTERM), 0);
}

static int up(void **state)
{
	(void)state;
	if (!ringgated_built())
		unit_skip("ringgated is not built");
	return 0;
}

static int down(void **state)
{
	(void)state;
	ringgated_free(&child);
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(killed, up, down),
};

UNIT_MAIN(tests)
