// SPDX-License-Identifier: MIT OR GPL-2.0
/* Warps that work on a queue, on this CPU: each is a thread, of one lane */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "runtime.h"

#include <ringgate/gpu/tasks.cuh>
#include <ringgate/rgate_queue.h>
#include <ringgate/rgate_session.h>

#define PART	2048U
#define PARTS	5U	/* of the session's memory: one a warp, and others */
/*
 * The engine gives places back through its own mapping of the rings, where ThreadSanitizer does not
 * see that one warp's words come before another's in the same place.
 */
#ifdef __SANITIZE_THREAD__
#define WARPS	1U
#else
#define WARPS	PARTS
#endif
#define TASKS	400U
#define LONG	(2000U * unit_patience())	/* ms */

static const struct rgate_queue_opts process = {
	.sz = sizeof(process), .where = RGATE_SESSION_PROCESS, .flags = RGATE_QUEUE_CREATE,
};

struct bed {
	struct runtime r;
	struct rgate_queue *q;		/* the host's */
	struct rgate_session *session;	/* the device's */
	struct rgate_session_loan loan;
	int daemon[2];			/* the second is closed: the device's session is over */
	unsigned int index;
	uint32_t handle;
	struct rgate_dask dask;
};

static void bed_open(struct bed *b, const char *name)
{
	struct rgate_session_opts so = {
		.sz = sizeof(so), .where = RGATE_SESSION_PROCESS, .memory = PARTS * PART,
	};

	memset(b, 0, sizeof(*b));
	runtime_open(&b->r, 0, 0, 64);
	assert_int_equal(rgate_queue_open(&b->q, name, &process), 0);
	assert_int_equal(rgate_session_open(&b->session, &so), 0);
	assert_int_equal(rgate_queue_handle(b->session, name, &process, &b->handle), 0);
	b->loan.sz = sizeof(b->loan);
	assert_int_equal(rgate_session_lend(b->session, &b->loan), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, b->daemon), 0);
	b->loan.gone_fd = b->daemon[0];
	assert_int_equal(rgate_gpu_bind_session(b->r.gpu, &b->loan, NULL, &b->index), 0);
	assert_int_equal(rgate_gpu_session_view(b->r.gpu, b->index, &b->dask, sizeof(b->dask)), 0);
}

/* The device's session ends */
static void bed_end(struct bed *b)
{
	if (!b->session)
		return;
	runtime_close(&b->r);
	rgate_session_close(b->session);
	b->session = NULL;
	close(b->daemon[0]);
	if (b->daemon[1] >= 0)
		close(b->daemon[1]);
}

static void bed_close(struct bed *b)
{
	bed_end(b);
	rgate_queue_close(b->q);
}

static void worker(struct rgate_dworker *w, const struct bed *b, unsigned int number, void *near)
{
	assert_int_equal(rgate_dworker_init(w, &b->dask, b->handle, number * PART, PART, near), 0);
}

static uint64_t submit(struct bed *b, const void *data, uint32_t len)
{
	struct rgate_queue_job job = { .data = data, .len = len, .flags = RGATE_TASK_RESULT };
	uint64_t id;

	assert_int_equal(rgate_queue_submit(b->q, &job, 1, (int)LONG, &id), 1);
	return id;
}

static uint32_t task_len(uint64_t i)
{
	return (uint32_t)(i * 37 % 700);
}

static void fill(unsigned char *data, uint64_t i)
{
	uint32_t k;

	for (k = 0; k < task_len(i); k++)
		data[k] = (unsigned char)(i * 31 + k * 7);
}

static uint64_t sum_of(const unsigned char *data, uint32_t len)
{
	uint64_t sum = 14695981039346656037ULL;
	uint32_t k;

	for (k = 0; k < len; k++)
		sum = (sum ^ data[k]) * 1099511628211ULL;
	return sum;
}

struct warp {
	struct bed *b;
	unsigned int number;
	uint64_t done;
	pthread_t thread;
};

/* Claims until it is told to end: by a task of type 1. Every third one it gives back first. */
static void *work(void *arg)
{
	unsigned char near[PART] RGATE_DALIGN(16);
	struct warp *wp = arg;
	struct rgate_dworker w;
	struct rgate_dtask t;
	int n;

	unit_require(!rgate_dworker_init(&w, &wp->b->dask, wp->b->handle, wp->number * PART, PART,
					 near));
	for (;;) {
		n = rgate_dworker_claim(&w, 0, 32, RGATE_CLAIM_BEGIN, 1000, &t);
		if (n == -ETIMEDOUT)
			continue;
		unit_require(n == 1 && t.id && (uintptr_t)t.data % 8 == 0);
		if (t.type == 1)
			break;
		if (t.attempts == 1 && t.id % 3 == 0) {
			unit_require(!rgate_dworker_release(&w, &t, 0));
			continue;
		}
		*(uint64_t *)rgate_dworker_room(&w) = sum_of(t.data, t.len);
		unit_require(!rgate_dworker_complete(&w, &t, 8));
		unit_require(!t.id);
		wp->done++;
	}
	unit_require(!rgate_dworker_complete(&w, &t, 0));
	rgate_dworker_fini(&w);
	return NULL;
}

/* All tasks come with their bytes, each result is of its task, and all of them work */
static void all_done(void **state)
{
	struct rgate_queue_job end = { .type = 1, .priority = 3 };
	static uint64_t id[TASKS];
	struct warp warp[WARPS];
	unsigned char data[700];
	uint64_t got, done = 0;
	struct bed b;
	uint32_t st;
	unsigned int i;

	(void)state;
	bed_open(&b, "all");
	for (i = 0; i < WARPS; i++) {
		warp[i] = (struct warp){ .b = &b, .number = i };
		assert_int_equal(pthread_create(&warp[i].thread, NULL, work, &warp[i]), 0);
	}
	for (i = 0; i < TASKS; i++) {
		fill(data, i);
		id[i] = submit(&b, data, task_len(i));
	}
	for (i = 0; i < TASKS; i++) {
		fill(data, i);
		assert_int_equal(rgate_queue_wait(b.q, id[i], RGATE_WAIT_TAKE, (int)LONG * 10, &got,
						  8, &st), 8);
		assert_int_equal(st, RGATE_TASK_DONE);
		assert_true(got == sum_of(data, task_len(i)));
	}
	for (i = 0; i < WARPS; i++)
		assert_int_equal(rgate_queue_submit(b.q, &end, 1, (int)LONG, NULL), 1);
	for (i = 0; i < WARPS; i++) {
		pthread_join(warp[i].thread, NULL);
		done += warp[i].done;
	}
	assert_int_equal(done, TASKS);
	bed_close(&b);
}

/* There is nothing, or not enough room for it */
static void none(void **state)
{
	unsigned char near[PART] RGATE_DALIGN(16), data[200] = { 0 };
	struct rgate_dworker w;
	struct rgate_dtask t;
	uint64_t before;
	struct bed b;

	(void)state;
	bed_open(&b, "none");
	worker(&w, &b, 0, near);
	assert_int_equal(rgate_dworker_claim(&w, 0, 32, 0, 0, &t), -EAGAIN);
	before = unit_now_ns();
	assert_int_equal(rgate_dworker_claim(&w, 0, 32, 0, 30000, &t), -ETIMEDOUT);
	assert_true(unit_now_ns() - before >= 30000000);
	assert_int_equal(t.id, 0);
	submit(&b, data, sizeof(data));
	/* another type */
	assert_int_equal(rgate_dworker_claim(&w, 2, 32, 0, 0, &t), -EAGAIN);
	assert_int_equal(rgate_dworker_claim(&w, 0, 0, 0, 0, &t), -EINVAL);
	/* the part is too short: the task stays where it is */
	assert_int_equal(rgate_dworker_init(&w, &b.dask, b.handle, PART, 224, near), 0);
	assert_int_equal(rgate_dworker_claim(&w, 0, 1, 0, 0, &t), -EMSGSIZE);
	assert_int_equal(rgate_dworker_init(&w, &b.dask, b.handle, PART, 240, near), 0);
	assert_int_equal(rgate_dworker_claim(&w, 0, 1, 0, 0, &t), 1);
	assert_int_equal(t.len, sizeof(data));
	/* no such queue */
	assert_int_equal(rgate_dworker_init(&w, &b.dask, b.handle + 77, PART, 240, near), 0);
	assert_int_equal(rgate_dworker_claim(&w, 0, 1, 0, 0, &t), -EBADF);
	bed_close(&b);
}

/* Parts that are not this session's, or not fit for it */
static void parts(void **state)
{
	unsigned char near[PART + 8] RGATE_DALIGN(16);
	struct rgate_dworker w;
	struct bed b;
	uint64_t all;

	(void)state;
	bed_open(&b, "parts");
	all = b.dask.memory_len;
	assert_int_equal(rgate_dworker_init(&w, &b.dask, 1, 0, 48, near), 0);
	assert_int_equal(rgate_dworker_init(&w, &b.dask, 1, 0, 32, near), -EINVAL);
	assert_int_equal(rgate_dworker_init(&w, &b.dask, 1, 8, 64, near), -EINVAL);
	assert_int_equal(rgate_dworker_init(&w, &b.dask, 1, 0, 72, near), -EINVAL);
	assert_int_equal(rgate_dworker_init(&w, &b.dask, 1, 0, 64, near + 8), -EINVAL);
	assert_int_equal(rgate_dworker_init(&w, &b.dask, 1, all - 64, 64, near), 0);
	assert_int_equal(rgate_dworker_init(&w, &b.dask, 1, all - 48, 64, near), -EINVAL);
	assert_int_equal(rgate_dworker_init(&w, &b.dask, 1, 0ULL - 64, 128, near), -EINVAL);
	assert_int_equal(rgate_dworker_init(&w, &b.dask, 1, 0, RGATE_QUEUE_PART_MAX + 16, near),
			 -EINVAL);
	bed_close(&b);
}

/* What becomes of a task */
static void ends(void **state)
{
	unsigned char near[PART] RGATE_DALIGN(16);
	struct rgate_dtask t, same;
	struct rgate_dworker w;
	char why[32];
	struct bed b;
	uint32_t st;
	uint64_t id;

	(void)state;
	bed_open(&b, "ends");
	worker(&w, &b, 0, near);
	id = submit(&b, "abc", 3);
	assert_int_equal(rgate_dworker_claim(&w, 0, 1, 0, 0, &t), 1);
	assert_int_equal(t.id, id);
	assert_memory_equal(t.data, "abc", 3);
	assert_int_equal(t.attempts, 0);
	assert_int_equal(t.uid, geteuid());
	same = t;
	assert_int_equal(rgate_dworker_begin(&w, &t), 0);
	assert_int_equal(rgate_dworker_touch(&w, &t), 0);
	assert_int_equal(t.id, id);
	/* longer than there is room */
	assert_int_equal(rgate_dworker_complete(&w, &t, rgate_dworker_room_len(&w) + 1), -EMSGSIZE);
	assert_int_equal(t.id, id);
	assert_int_equal(rgate_dworker_release(&w, &t, 0), 0);
	assert_int_equal(t.id, 0);
	/* a lane without a task does nothing */
	assert_int_equal(rgate_dworker_complete(&w, &t, 0), 0);
	/* and what is another's now stays */
	assert_int_equal(rgate_dworker_complete(&w, &same, 0), -ESTALE);
	assert_int_equal(rgate_dworker_claim(&w, 0, 1, RGATE_CLAIM_BEGIN, 0, &t), 1);
	assert_int_equal(t.id, id);
	assert_int_equal(t.attempts, 2);
	strcpy(rgate_dworker_room(&w), "no frame");
	assert_int_equal(rgate_dworker_bury(&w, &t, 8), 0);
	assert_int_equal(rgate_queue_wait(b.q, id, 0, (int)LONG, why, sizeof(why), &st), 8);
	assert_int_equal(st, RGATE_TASK_BURIED);
	assert_memory_equal(why, "no frame", 8);
	bed_close(&b);
}

static void *wait_for_tasks(void *arg)
{
	unsigned char near[PART] RGATE_DALIGN(16);
	struct warp *wp = arg;
	struct rgate_dworker w;
	struct rgate_dtask t;
	int n;

	unit_require(!rgate_dworker_init(&w, &wp->b->dask, wp->b->handle, PART, PART, near));
	do {
		n = rgate_dworker_claim(&w, 0, 1, 0, 60000000, &t);
	} while (n == 1);
	unit_require(n == -EPIPE);
	unit_require(rgate_dworker_claim(&w, 0, 1, 0, 0, &t) == -EPIPE);
	return NULL;
}

/* The session ends: who waits hears of it, and what was claimed goes back */
static void over(void **state)
{
	struct rgate_queue_info info;
	struct rgate_queue_got got;
	struct warp warp;
	struct bed b;
	uint64_t id;

	(void)state;
	bed_open(&b, "over");
	warp = (struct warp){ .b = &b };
	assert_int_equal(pthread_create(&warp.thread, NULL, wait_for_tasks, &warp), 0);
	id = submit(&b, "x", 1);
	do {
		assert_int_equal(rgate_queue_info(b.q, &info), 0);
	} while (!info.now[RGATE_TASK_CLAIMED] || !info.claims);
	close(b.daemon[1]);
	b.daemon[1] = -1;
	pthread_join(warp.thread, NULL);
	bed_end(&b);
	assert_int_equal(rgate_queue_claim(b.q, 0, 1, 0, (int)LONG, &got), 1);
	assert_int_equal(got.task.id, id);
	assert_int_equal(rgate_queue_info(b.q, &info), 0);
	assert_int_equal(info.lost, 1);
	bed_close(&b);
}

/* What an engine would never write */
static void lies(void **state)
{
	unsigned char near[PART] RGATE_DALIGN(16) = { 0 };
	struct rgate_queue_task *first = (void *)near, *second = (void *)(near + 48);
	struct rgate_dworker w = { .near = near, .len = PART };
	struct rgate_dtask t;

	(void)state;
	first->id = 1;
	first->len = 5;
	second->id = 2;
	second->len = 8;
	assert_int_equal(rgate_dworker_find(&w, 96, 0, &t), 0);
	assert_int_equal(t.id, 1);
	assert_int_equal(rgate_dworker_find(&w, 96, 1, &t), 0);
	assert_int_equal(t.id, 2);
	assert_ptr_equal(t.data, near + 88);
	assert_int_equal(rgate_dworker_find(&w, 96, 2, &t), -EPROTO);
	assert_int_equal(rgate_dworker_find(&w, 95, 1, &t), -EPROTO);
	assert_int_equal(rgate_dworker_find(&w, 87, 1, &t), -EPROTO);
	assert_int_equal(rgate_dworker_find(&w, 0, 0, &t), -EPROTO);
	second->len = 9;
	assert_int_equal(rgate_dworker_find(&w, 96, 1, &t), -EPROTO);
	first->len = 0xffffffffU;
	assert_int_equal(rgate_dworker_find(&w, 96, 0, &t), -EPROTO);
	assert_int_equal(rgate_dworker_find(&w, 96, 1, &t), -EPROTO);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(all_done, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(none, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(parts, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(ends, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(over, fake_setup, fake_teardown),
	cmocka_unit_test(lies),
};

UNIT_MAIN(tests)
