// SPDX-License-Identifier: MIT OR GPL-2.0
/* Claims and waits in the background, and the descriptor that tells when to look */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <ringgate/rgate_queue.h>

#define PATIENT	60000
/* Client and engine have mapped a session's area each for itself. */
#define TSAN	"it does not know that two mappings are the same memory"

static const struct rgate_queue_opts process = {
	.sz = sizeof(process), .where = RGATE_SESSION_PROCESS, .flags = RGATE_QUEUE_CREATE,
};

static struct rgate_queue *q, *other;
static struct rgate_queue_got got[8];

static int setup(void **state)
{
	(void)state;
	q = other = NULL;
	assert_int_equal(rgate_queue_open(&q, "later", &process), 0);
	assert_int_equal(rgate_queue_open(&other, "later", &process), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rgate_queue_remove(other);
	rgate_queue_close(q);
	rgate_queue_close(other);
	return 0;
}

static uint64_t submit(struct rgate_queue *by, uint8_t type)
{
	const struct rgate_queue_job job = { .data = "task", .len = 4, .type = type,
					     .flags = RGATE_TASK_RESULT };
	uint64_t id = 0;

	assert_int_equal(rgate_queue_submit(by, &job, 1, -1, &id), 1);
	return id;
}

static bool readable(int ms)
{
	struct pollfd p = { .fd = rgate_queue_fd(q), .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void start(void)
{
	assert_int_equal(rgate_queue_next_start(q, NULL, 0, 1, 8, RGATE_CLAIM_BEGIN), 0);
}

/* What comes, by the descriptor */
static int await(void)
{
	int n;

	while ((n = rgate_queue_next_take(q, got)) == -EAGAIN)
		assert_true(readable(PATIENT));
	return n;
}

/* What is told elsewhere would be told in its place. */
static void one_at_a_time(void **state)
{
	struct rgate_queue_info info;
	uint64_t after = 0, id;
	char buf[8];

	(void)state;
	unit_not_for_tsan(TSAN);
	assert_int_equal(rgate_queue_next_take(q, got), -EINVAL);
	assert_int_equal(rgate_queue_wait_take(q, buf, 8, NULL), -EINVAL);
	assert_int_equal(rgate_queue_quit(q), -EINVAL);
	assert_int_equal(rgate_queue_next_start(q, NULL, 0, 1, 8, RGATE_CLAIM_NOW), -EINVAL);
	start();
	assert_int_equal(rgate_queue_next_start(q, NULL, 0, 1, 8, 0), -EBUSY);
	assert_int_equal(rgate_queue_wait_start(q, 0, 0), -EBUSY);
	assert_int_equal(rgate_queue_wait_take(q, buf, 8, NULL), -EINVAL);
	assert_int_equal(rgate_queue_claim(q, 0, 1, 0, 0, got), -EBUSY);
	assert_int_equal(rgate_queue_next(q, NULL, 0, 0, 1, 0, 0, got), -EBUSY);
	assert_int_equal(rgate_queue_wait(q, 1, 0, 0, buf, 8, NULL), -EBUSY);
	assert_int_equal(rgate_queue_peek(q, &after, 0, got), -EBUSY);
	assert_int_equal(rgate_queue_info(q, &info), -EBUSY);
	assert_int_equal(rgate_queue_next_take(q, got), -EAGAIN);
	/* Without the descriptor, too; it submits what it claims. */
	id = submit(q, 0);
	while (rgate_queue_next_take(q, got) == -EAGAIN)
		poll(NULL, 0, 1);
	assert_int_equal(got[0].task.id, id);
	assert_memory_equal(got[0].data, "task", 4);
	assert_int_equal(rgate_queue_next_take(q, got), -EINVAL);
	assert_int_equal(rgate_queue_complete(q, &got[0].task, "done", 4), 0);
	/* a task, and all of them */
	assert_int_equal(rgate_queue_wait_start(q, id, RGATE_WAIT_TAKE), 0);
	while (rgate_queue_wait_take(q, buf, 8, &after) == -EAGAIN)
		poll(NULL, 0, 1);
	assert_int_equal(after, RGATE_TASK_DONE);
	assert_memory_equal(buf, "done", 4);
	assert_int_equal(rgate_queue_wait_start(q, 0, 0), 0);
	assert_true(readable(PATIENT));
	assert_int_equal(rgate_queue_wait_take(q, NULL, 0, &after), 0);
	assert_int_equal(after, 0);
	/* longer than there is room for */
	id = submit(q, 0);
	start();
	assert_int_equal(await(), 1);
	assert_int_equal(rgate_queue_complete(q, &got[0].task, "done", 4), 0);
	assert_int_equal(rgate_queue_wait_start(q, id, 0), 0);
	assert_true(readable(PATIENT));
	assert_int_equal(rgate_queue_wait_take(q, buf, 3, NULL), -EMSGSIZE);
}

/* It is readable when there is something, and not before or after that. */
static void readable_in_time(void **state)
{
	unsigned int i;

	(void)state;
	unit_not_for_tsan(TSAN);
	assert_true(rgate_queue_fd(q) >= 0);
	assert_int_equal(rgate_queue_fd(q), rgate_queue_fd(q));
	assert_false(readable(0));
	for (i = 0; i < unit_rounds(100); i++) {
		start();
		assert_int_equal(rgate_queue_next_take(q, got), -EAGAIN);
		assert_false(readable(0));
		submit(other, 0);
		assert_true(readable(PATIENT));
		assert_true(readable(0));
		assert_int_equal(await(), 1);
		assert_false(readable(0));
		/* Other requests leave nothing behind. */
		assert_int_equal(rgate_queue_complete(q, &got[0].task, NULL, 0), 0);
		submit(q, 5);
		assert_false(readable(0));
	}
}

/* Its end comes while another request of the queue is waited for. */
static void beside_others(void **state)
{
	unsigned int i, k;

	(void)state;
	unit_not_for_tsan(TSAN);
	assert_true(rgate_queue_fd(q) >= 0);
	for (i = 0; i < unit_rounds(300); i++) {
		start();
		/* others, which wake nobody for ever */
		for (k = 0; k < i % 3; k++)
			submit(q, 5);
		assert_int_equal(rgate_queue_next_take(q, got), -EAGAIN);
		assert_false(readable(0));
		submit(i % 2 ? q : other, 0);
		if (i % 4 > 1)
			submit(q, 5);
		assert_true(readable(PATIENT));
		assert_int_equal(await(), 1);
		assert_int_equal(rgate_queue_complete(q, &got[0].task, NULL, 0), 0);
		assert_false(readable(0));
	}
}

static void quits(void **state)
{
	struct rgate_queue_info info;

	(void)state;
	unit_not_for_tsan(TSAN);
	start();
	assert_int_equal(rgate_queue_quit(q), 0);
	assert_int_equal(rgate_queue_next_take(q, got), -EINVAL);
	assert_false(readable(0));
	assert_int_equal(rgate_queue_info(q, &info), 0);
	assert_int_equal(info.claims, 0);
	/* It had ended: what it has is not lost. */
	start();
	submit(other, 0);
	assert_true(readable(PATIENT));
	assert_int_equal(rgate_queue_quit(q), 1);
	assert_true(readable(0));
	assert_int_equal(rgate_queue_next_take(q, got), 1);
	assert_false(readable(0));
	/* and it ends with the queue */
	start();
	assert_int_equal(rgate_queue_remove(other), 0);
	assert_int_equal(await(), -ESTALE);
	assert_int_equal(rgate_queue_next_take(q, got), -EINVAL);
}

/* ---- Many, of which each sleeps until its descriptor says something ---- */

#define WORKERS	3U
#define TASKS	3000U

static void *submits(void *arg)
{
	struct rgate_queue *mine = NULL;
	unsigned int i, n = unit_rounds(TASKS) / 2, seed = *(unsigned int *)arg;

	assert_int_equal(rgate_queue_open(&mine, "later", &process), 0);
	for (i = 0; i < n; i++) {
		submit(mine, 0);
		seed = seed * 1103515245 + 12345;
		/* so that they sleep now and then */
		if (seed >> 16 & 1)
			usleep(seed >> 17 & 255);
	}
	rgate_queue_close(mine);
	return NULL;
}

struct storm {
	struct rgate_queue *queue;
	struct rgate_queue_result r[8];
	struct rgate_queue_got got[8];
	unsigned int nr;
};

/* How many it has had, and looked for nothing */
static unsigned int work(struct storm *s, unsigned int *nothing)
{
	unsigned int had = 0;
	int i, n;

	while ((n = rgate_queue_next_take(s->queue, s->got)) > 0) {
		had += (unsigned int)n;
		for (i = 0; i < n; i++)
			s->r[i] = (struct rgate_queue_result){ .task = &s->got[i].task };
		assert_int_equal(rgate_queue_next_start(s->queue, s->r, (unsigned int)n, 0, 8, 0),
				 0);
		for (i = 0; i < n; i++)
			assert_int_equal(s->r[i].error, 0);
	}
	assert_int_equal(n, -EAGAIN);
	*nothing += !had;
	return had;
}

static void storm(void **state)
{
	unsigned int i, all = 0, wakes = 0, nothing = 0, seeds[2] = { 1, 2 };
	const unsigned int want = unit_rounds(TASKS) / 2 * 2;
	const int e = epoll_create1(EPOLL_CLOEXEC);
	struct storm s[WORKERS] = { { .nr = 0 } };
	struct epoll_event ev;
	pthread_t thread[2];

	(void)state;
	unit_not_for_tsan(TSAN);
	for (i = 0; i < WORKERS; i++) {
		ev = (struct epoll_event){ .events = EPOLLIN, .data.u32 = i };
		assert_int_equal(rgate_queue_open(&s[i].queue, "later", &process), 0);
		assert_int_equal(epoll_ctl(e, EPOLL_CTL_ADD, rgate_queue_fd(s[i].queue), &ev), 0);
		assert_int_equal(rgate_queue_next_start(s[i].queue, NULL, 0, 0, 8, 0), 0);
		all += work(&s[i], &(unsigned int){ 0 });
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, submits, &seeds[i]), 0);
	while (all < want) {
		/* A wakeup that is lost ends it here. */
		assert_int_equal(epoll_wait(e, &ev, 1, PATIENT), 1);
		all += work(&s[ev.data.u32], &nothing);
		wakes++;
	}
	assert_int_equal(all, want);
	/* A few for nothing there may be, as a bell rings for what was taken already. */
	assert_true(nothing <= wakes / 2 + 10);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	/* Then nobody wakes any more. */
	for (i = 0; i < WORKERS; i++)
		work(&s[i], &nothing);
	assert_int_equal(epoll_wait(e, &ev, 1, 0), 0);
	for (i = 0; i < WORKERS; i++)
		rgate_queue_close(s[i].queue);
	close(e);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(one_at_a_time), TEST(readable_in_time), TEST(beside_others), TEST(quits), TEST(storm),
};

UNIT_MAIN(tests)
