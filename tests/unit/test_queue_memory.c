// SPDX-License-Identifier: MIT OR GPL-2.0
/* Tasks and results in exported memory, by threads of a process that serves itself */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/memory.h>
#include <ringgate/rgate_queue_worker.h>

#include "sync_client.h"

#define LEN	200000U		/* more than a task has, and than a request of a queue's */
#define FROM	4096U		/* where it begins, of the session's memory */
#define MINE	RGATE_MEMORY_MODE(RGATE_MEMORY_RIGHTS, 0)

static struct rgate_session *session;
static uint8_t *mem;
static struct rgate_queue *q;
static uint8_t buf[LEN + 1];
static bool is_slow;

static int ask(struct rgate_request r, uint64_t *value)
{
	struct rgate_completion c;

	assert_int_equal(rgate_session_submit(session, &r), 0);
	assert_int_equal(rgate_session_wait(session, 10000), 1);
	assert_int_equal(rgate_session_poll(session, &c, 1), 1);
	*value = c.value;
	return c.result;
}

/* All of it, under that name; its handle */
static uint32_t export(const char *name, uint32_t mode)
{
	uint64_t value;

	memcpy(mem, name, strlen(name));
	assert_int_equal(ask((struct rgate_request){
		.op = RGATE_REQ_MEMORY_EXPORT, .off = FROM, .len = LEN,
		.a1 = RGATE_MEMORY_EXPORT_A1(mode, strlen(name)) }, &value), 0);
	return (uint32_t)value;
}

static void take_back(uint32_t handle)
{
	uint64_t value;

	assert_int_equal(ask((struct rgate_request){
		.op = RGATE_REQ_MEMORY_RELEASE, .handle = handle }, &value), 0);
}

static struct rgate_queue_memory at(const char *name, uint64_t off, uint64_t len)
{
	struct rgate_queue_memory m;

	assert_int_equal(rgate_queue_memory(&m, RGATE_QUEUE_MEMORY_HERE, geteuid(), name, off, len),
			 0);
	return m;
}

static int setup(void **state)
{
	const struct rgate_session_opts so = RGATE_OPTS(rgate_session_opts,
		.where = RGATE_SESSION_PROCESS, .memory = FROM + LEN);
	const struct rgate_queue_opts qo = RGATE_OPTS(rgate_queue_opts,
		.where = RGATE_SESSION_PROCESS, .flags = RGATE_QUEUE_CREATE);
	uint32_t i;

	(void)state;
	assert_int_equal(rgate_session_open(&session, &so), 0);
	mem = rgate_session_memory(session, NULL);
	for (i = 0; i < LEN; i++)
		mem[FROM + i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(rgate_queue_open(&q, "m", &qo), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rgate_queue_close(q);
	rgate_session_close(session);
	session = NULL;
	return 0;
}

static void task_and_result(void **state)
{
	const struct rgate_queue_memory whole = at("jobs/1", 0, LEN);
	const struct rgate_queue_memory half = at("jobs/1", 3, LEN / 2);
	const struct rgate_queue_job jobs[] = {
		{ .data = &whole, .len = sizeof(whole), .flags = RGATE_TASK_RESULT },
		{ .data = "next", .len = 4 },
	};
	struct rgate_queue_memory m;
	struct rgate_queue_got got[2];
	uint64_t id;
	uint32_t told;

	(void)state;
	export("jobs/1", MINE);
	assert_int_equal(rgate_queue_submit(q, jobs, 2, -1, &id), 2);
	assert_int_equal(rgate_queue_claim(q, 0, 2, RGATE_CLAIM_BEGIN, -1, got), 2);
	assert_int_equal(rgate_queue_memory_of(got[0].data, got[0].task.len, &m), 0);
	assert_int_equal(m.len, LEN);
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, LEN, 10000), 0);
	assert_memory_equal(buf, mem + FROM, LEN);
	/* a part of it, and none */
	assert_int_equal(rgate_queue_fetch(q, &m, LEN - 100, buf, 100, -1), 0);
	assert_memory_equal(buf, mem + FROM + LEN - 100, 100);
	assert_int_equal(rgate_queue_fetch(q, &m, LEN, buf, 0, -1), 0);
	/* what was claimed is there still */
	assert_memory_equal(got[1].data, "next", 4);
	assert_int_equal(rgate_queue_memory_of(got[1].data, 4, &m), -EINVAL);
	assert_int_equal(rgate_queue_complete(q, &got[0].task, &half, sizeof(half)), 0);
	assert_int_equal(rgate_queue_wait(q, id, RGATE_WAIT_TAKE, -1, buf, LEN, &told),
			 sizeof(half));
	assert_int_equal(rgate_queue_memory_of(buf, sizeof(half), &m), 0);
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, LEN / 2, -1), 0);
	assert_memory_equal(buf, mem + FROM + 3, LEN / 2);
	/* its owner writes: the copy stays */
	memset(mem + FROM, 0, LEN);
	assert_int_equal(buf[1000], (uint8_t)(1003 * 7 + 1003 / 251));
}

/* Whoever has exported it is gone, or it is not what was said */
static void not_there(void **state)
{
	const uint64_t end = unit_now_ns() + 10000000000ULL * unit_patience();
	struct rgate_queue_memory m = at("jobs/2", 0, LEN);
	uint32_t handle;

	(void)state;
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, LEN, -1), -ENOENT);
	handle = export("jobs/2", MINE);
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, LEN, -1), 0);
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, LEN + 1, -1), -ERANGE);
	assert_int_equal(rgate_queue_fetch(q, &m, UINT64_MAX, buf, 2, -1), -ERANGE);
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, LEN, -2), -EINVAL);
	m = at("jobs/2", 1, LEN);
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, LEN, -1), -ERANGE);
	m.owner++;
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, LEN, -1), -ENOENT);
	m.node = 3;
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, LEN, -1), -ENXIO);
	take_back(handle);
	m = at("jobs/2", 0, LEN);
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, LEN, -1), -ENOENT);
	/* not to be read */
	export("jobs/2", RGATE_MEMORY_MODE(RGATE_MEMORY_WRITE, 0));
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, LEN, -1), -EACCES);
	/* With its session it goes soon. */
	rgate_session_close(session);
	session = NULL;
	while (rgate_queue_fetch(q, &m, 0, buf, LEN, -1) == -EACCES && unit_now_ns() < end)
		;
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, LEN, -1), -ENOENT);
}

/* What others have written */
static void lies(void **state)
{
	struct rgate_queue_memory good = at("jobs/3", 0, LEN), m, out;

	(void)state;
	assert_int_equal(rgate_queue_memory(&m, 0, 0, "a b", 0, 1), -EINVAL);
	assert_int_equal(rgate_queue_memory(&m, 0, 0, "", 0, 1), -EINVAL);
	assert_int_equal(rgate_queue_memory(&m, 0, 0, NULL, 0, 1), -EINVAL);
	memset(buf, 'a', 64);
	buf[64] = '\0';
	assert_int_equal(rgate_queue_memory(&m, 0, 0, (char *)buf, 0, 1), -EINVAL);
	buf[63] = '\0';
	assert_int_equal(rgate_queue_memory(&m, 0, 0, (char *)buf, 0, 1), 0);
	assert_int_equal(rgate_queue_memory(&m, 0, 0, "a", 2, UINT64_MAX - 1), -EINVAL);
	assert_int_equal(rgate_queue_memory_of(&good, sizeof(good) - 1, &out), -EINVAL);
	m = good;
	m.magic++;
	assert_int_equal(rgate_queue_memory_of(&m, sizeof(m), &out), -EINVAL);
	m = good;
	memset(m.name, 'a', sizeof(m.name));
	assert_int_equal(rgate_queue_memory_of(&m, sizeof(m), &out), -EINVAL);
	assert_int_equal(rgate_queue_fetch(q, &m, 0, buf, 1, -1), -EINVAL);
}

#define RUN_MS	(600 * unit_patience())

int __real_sync_client_ask(struct sync_client *sc, struct rgate_request r, int timeout_ms,
			   uint64_t *value);
int __wrap_sync_client_ask(struct sync_client *sc, struct rgate_request r, int timeout_ms,
			   uint64_t *value);

/* Each piece takes its time. */
int __wrap_sync_client_ask(struct sync_client *sc, struct rgate_request r, int timeout_ms,
			   uint64_t *value)
{
	if (is_slow && r.op == RGATE_REQ_MEMORY_READ)
		usleep(RUN_MS * 1000 / 3);
	return __real_sync_client_ask(sc, r, timeout_ms, value);
}

/* For longer than its time to run */
static int fetches(void *ctx, struct rgate_queue_work *work)
{
	struct rgate_queue_memory m;
	int err;

	(void)ctx;
	err = rgate_queue_memory_of(work->data, work->task->len, &m);
	return err ? err : rgate_queue_work_fetch(work, &m, 0, buf, LEN, -1);
}

/* A handler that fetches much has its task touched meanwhile. */
static void touched(void **state)
{
	const struct rgate_queue_handler h = { .run = fetches };
	const struct rgate_queue_opts qo = RGATE_OPTS(rgate_queue_opts,
		.where = RGATE_SESSION_PROCESS, .flags = RGATE_QUEUE_CREATE, .run_ms = RUN_MS);
	const struct rgate_queue_worker_opts wo = RGATE_OPTS(rgate_queue_worker_opts,
		.queue = &qo, .handlers = &h, .nhandlers = 1, .flags = RGATE_WORKER_TOUCH);
	struct rgate_queue_worker_info n = { .sz = sizeof(n) };
	const struct rgate_queue_memory m = at("jobs/4", 0, LEN);
	const struct rgate_queue_job job = { .data = &m, .len = sizeof(m) };
	struct rgate_queue_worker *w;
	uint32_t handle = export("jobs/4", MINE);

	(void)state;
	unit_not_for_tsan("it does not know that two mappings are the same memory");
	is_slow = true;
	rgate_queue_close(q);
	assert_int_equal(rgate_queue_open(&q, "long", &qo), 0);
	assert_int_equal(rgate_queue_submit(q, &job, 1, -1, NULL), 1);
	assert_int_equal(rgate_queue_worker_start(&w, "long", &wo), 0);
	rgate_queue_worker_drain(w);
	assert_int_equal(rgate_queue_worker_join(w, 60000), 0);
	assert_int_equal(rgate_queue_worker_info(w, &n), 0);
	rgate_queue_worker_close(w);
	assert_true(n.touched > 1);
	assert_int_equal(n.completed, 1);
	assert_int_equal(n.claimed + n.late, 1);
	is_slow = false;
	take_back(handle);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(task_and_result, setup, teardown),
	cmocka_unit_test_setup_teardown(not_there, setup, teardown),
	cmocka_unit_test_setup_teardown(lies, setup, teardown),
	cmocka_unit_test_setup_teardown(touched, setup, teardown),
};

UNIT_MAIN(tests)
