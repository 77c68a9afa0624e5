// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Tasks whose bytes are in memory that a program of another node has exported: its worker has a
 * copy of them, and is told when they are gone.
 */
#include "asked.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/memory.h>
#include <ringgate/rgate_queue.h>

#include "nodes.h"

#define LEN	(1U << 20)
#define AT	4096U
#define NAME	"far/1"
#define FETCHES	20U

static struct ringgated pair[2];
static int go[2];		/* a pipe: who has submitted may end */

static uint8_t byte_at(uint32_t i)
{
	return (uint8_t)(i * 5 + i / 509);
}

static int open_queue(struct rgate_queue **q, const struct ringgated *of)
{
	const struct rgate_queue_opts o = RGATE_OPTS(rgate_queue_opts,
		.path = of->requests, .where = RGATE_SESSION_DAEMON, .home = 0,
		.flags = RGATE_QUEUE_CREATE | RGATE_QUEUE_AT | RGATE_QUEUE_KEEP,
		.timeout_ms = MS);

	return rgate_queue_open(q, "far", &o);
}

/* At node 1: exports, submits twice, and stays until it is told to end */
static int submit(void)
{
	struct rgate_queue_memory m;
	const struct rgate_queue_job jobs[] = { { .data = &m, .len = sizeof(m) },
						{ .data = &m, .len = sizeof(m) } };
	struct rgate_queue *q;
	uint32_t i;
	char c;

	need(!asker_open(pair[1].requests, AT + LEN));
	for (i = 0; i < LEN; i++)
		mem[AT + i] = byte_at(i);
	memcpy(mem, NAME, sizeof(NAME) - 1);
	need(!ask((struct rgate_request){
		.op = RGATE_REQ_MEMORY_EXPORT, .off = AT, .len = LEN,
		.a1 = RGATE_MEMORY_EXPORT_A1(RGATE_MEMORY_MODE(RGATE_MEMORY_READ, 0),
					     sizeof(NAME) - 1) }, NULL));
	need(!open_queue(&q, &pair[1]));
	need(!rgate_queue_memory(&m, 1, geteuid(), NAME, 0, LEN));
	need(rgate_queue_submit(q, jobs, 2, (int)MS, NULL) == 2);
	(void)!read(go[0], &c, 1);
	rgate_queue_close(q);
	rgate_session_close(session);
	return 0;
}

/* At the home: the task's bytes */
static int take(struct rgate_queue *q, uint8_t *buf, struct rgate_queue_got *got)
{
	struct rgate_queue_memory m;
	int err;

	assert_int_equal(rgate_queue_claim(q, 0, 1, RGATE_CLAIM_BEGIN, (int)MS, got), 1);
	err = rgate_queue_memory_of(got->data, got->task.len, &m);
	return err ? err : rgate_queue_fetch(q, &m, 0, buf, LEN, (int)MS);
}

static void of_another_node(void **state)
{
	static uint8_t buf[LEN];
	struct rgate_queue_got got;
	struct rgate_queue_memory m;
	struct rgate_queue *q;
	char rules[96];
	uint64_t began, handles;
	uint32_t i;
	pid_t pid;
	int err;

	(void)state;
	snprintf(rules, sizeof(rules), "allow any queue memory\nnode any any\nnode any user:%u\n",
		 geteuid());
	ringgated_make_pair(pair);
	ringgated_start(&pair[0], rules, -1);
	ringgated_start(&pair[1], rules, -1);
	wait_for(ringgated_met(pair));
	assert_int_equal(pipe(go), 0);
	pid = begin_as(submit, geteuid());
	assert_int_equal(open_queue(&q, &pair[0]), 0);
	began = unit_now_ns();
	assert_int_equal(take(q, buf, &got), 0);
	for (i = 0; i < LEN && buf[i] == byte_at(i); i++)
		;
	assert_int_equal(i, LEN);
	print_message("# 1 MiB of another node in %llu ms\n",
		      (unsigned long long)(unit_now_ns() - began) / 1000000);
	/* nothing stays open, but what the other node has there may come and go */
	handles = ringgated_count(&pair[0], "handles");
	assert_int_equal(rgate_queue_memory_of(got.data, got.task.len, &m), 0);
	for (i = 0; i < FETCHES; i++)
		assert_int_equal(rgate_queue_fetch(q, &m, i, buf, 8, (int)MS), 0);
	assert_true(ringgated_count(&pair[0], "handles") < handles + FETCHES / 2);
	assert_int_equal(rgate_queue_complete(q, &got.task, NULL, 0), 0);

	/* who has submitted ends: its task is there, and its bytes are not */
	assert_int_equal(write(go[1], "", 1), 1);
	ends_well(pid);
	err = take(q, buf, &got);
	assert_true(err == -ENOENT || err == -ESTALE);
	assert_int_equal(rgate_queue_memory_of(got.data, got.task.len, &m), 0);
	assert_int_equal(rgate_queue_bury(q, &got.task, "its bytes are gone"), 0);

	/* its daemon does not answer, then is gone: that is told, in time */
	assert_int_equal(kill(pair[1].pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pair[1].pid, NULL, WUNTRACED), pair[1].pid);
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, LEN, 300), -ETIMEDOUT);
	began = unit_now_ns();
	assert_true(rgate_queue_fetch(q, &m, 0, buf, LEN, -1) < 0);
	assert_true(unit_now_ns() - began < unit_patience() * 30000000000ULL);
	assert_int_equal(kill(pair[1].pid, SIGCONT), 0);
	ringgated_stop(&pair[1], SIGKILL);
	err = rgate_queue_fetch(q, &m, 0, buf, LEN, (int)MS);
	assert_true(err == -ENOTCONN || err == -ECONNRESET || err == -ESTALE || err == -ETIMEDOUT);
	rgate_queue_close(q);
	assert_int_equal(ringgated_stop(&pair[0], SIGTERM), 0);
	close(go[0]);
	close(go[1]);
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
	ringgated_free(&pair[1]);
	ringgated_free(&pair[0]);
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(of_another_node, up, down),
};

UNIT_MAIN(tests)
