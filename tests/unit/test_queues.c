// SPDX-License-Identifier: MIT OR GPL-2.0
/* rgate_queue, by threads of a process that serves itself */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/rgate_queue.h>

#define WORKERS	4U
#define TASKS	400U
/* Client and engine have mapped a session's area each for itself. */
#define TSAN	"it does not know that two mappings are the same memory"

static const struct rgate_queue_opts process = {
	.sz = sizeof(process), .where = RGATE_SESSION_PROCESS, .flags = RGATE_QUEUE_CREATE,
};

static int refused;	/* with which error requests are; 0: they are not */

int __real_rgate_session_submit_many(struct rgate_session *s, const struct rgate_request *reqs,
				     unsigned int n);
int __wrap_rgate_session_submit_many(struct rgate_session *s, const struct rgate_request *reqs,
				     unsigned int n);

int __wrap_rgate_session_submit_many(struct rgate_session *s, const struct rgate_request *reqs,
				     unsigned int n)
{
	const int err = __atomic_load_n(&refused, __ATOMIC_RELAXED);

	return err ? err : __real_rgate_session_submit_many(s, reqs, n);
}

static struct rgate_queue *open_own(const char *name)
{
	struct rgate_queue *q = NULL;

	assert_int_equal(rgate_queue_open(&q, name, &process), 0);
	return q;
}

static bool over;

/* Says what it has got back to front. Every seventh claim ends with its session instead. */
static void *work(void *arg)
{
	struct rgate_queue *q = NULL;
	struct rgate_queue_got got[8];
	unsigned int *done = arg, claims = 0;
	int i, n;

	while (q || !rgate_queue_open(&q, "work", &process)) {
		n = rgate_queue_claim(q, 0, 8, 0, 20, got);
		if (n == -ETIMEDOUT && !__atomic_load_n(&over, __ATOMIC_RELAXED))
			continue;
		if (n < 0)
			break;
		if (++claims % 7 == 0) {
			rgate_queue_close(q);
			q = NULL;
			continue;
		}
		for (i = 0; i < n; i++) {
			unsigned char back[4];
			unsigned int k;

			if (got[i].task.len != sizeof(back))
				continue;
			for (k = 0; k < sizeof(back); k++)
				back[k] = ((const unsigned char *)got[i].data)[3 - k];
			if (!rgate_queue_complete(q, &got[i].task, back, sizeof(back)))
				++*done;
		}
	}
	rgate_queue_close(q);
	return NULL;
}

/* Each task is completed once, whoever ended with it, and has its own result. */
static void each_once(void **state)
{
	unsigned int done[WORKERS] = { 0 }, all = 0;
	struct rgate_queue *q = open_own("work");
	uint64_t id, first = 0, buried = 1;
	struct rgate_queue_info info;
	pthread_t thread[WORKERS];
	unsigned char back[4];
	uint32_t i, told;

	(void)state;
	unit_not_for_tsan(TSAN);
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, &done[i]), 0);
	for (i = 0; i < TASKS; i++) {
		const struct rgate_queue_job job = { .data = &i, .len = sizeof(i),
						     .flags = RGATE_TASK_RESULT };

		assert_int_equal(rgate_queue_submit(q, &job, 1, -1, &id), 1);
		first = first ? first : id;
		assert_int_equal(id, first + i);
	}
	assert_int_equal(rgate_queue_wait_all(q, -1, &buried), 0);
	assert_int_equal(buried, 0);
	for (i = 0; i < TASKS; i++) {
		assert_int_equal(rgate_queue_wait(q, first + i, RGATE_WAIT_TAKE, -1, back,
						  sizeof(back), &told), 4);
		assert_int_equal(told, RGATE_TASK_DONE);
		assert_int_equal(back[3] | back[2] << 8, i);
		assert_int_equal(rgate_queue_wait(q, first + i, 0, -1, back, 4, NULL), -ENOENT);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (i = 0; i < WORKERS; i++) {
		pthread_join(thread[i], NULL);
		all += done[i];
	}
	assert_int_equal(all, TASKS);
	assert_int_equal(rgate_queue_info(q, &info), 0);
	assert_int_equal(info.done, TASKS);
	assert_int_equal(info.handles, 1);
	assert_true(info.lost > 0);
	rgate_queue_close(q);
}

#define MANY	150U

/* More than a request has, some too long to be with others, some that are not this one's */
static void many_at_once(void **state)
{
	static char large[RGATE_QUEUE_DATA_MAX];
	struct rgate_queue *q = open_own("many"), *other = open_own("many");
	struct rgate_queue_result r[MANY + 2];
	struct rgate_queue_got got[MANY];
	struct rgate_queue_job job = { .flags = RGATE_TASK_RESULT };
	uint64_t id, first = 0;
	uint32_t i, told;

	(void)state;
	memset(large, 'x', sizeof(large));
	for (i = 0; i < MANY; i++) {
		assert_int_equal(rgate_queue_submit(q, &job, 1, -1, &id), 1);
		first = first ? first : id;
	}
	assert_int_equal(rgate_queue_claim(q, 0, MANY, RGATE_CLAIM_BEGIN, -1, got), MANY);
	for (i = 0; i < MANY; i++)
		r[i] = (struct rgate_queue_result){ .task = &got[i].task, .data = &got[i].task.id,
						    .len = 8, .error = 77 };
	for (i = 20; i < 24; i++)
		r[i] = (struct rgate_queue_result){ .task = &got[i].task, .data = large,
						    .len = sizeof(large), .error = 77 };
	r[100].len = sizeof(large) + 1;
	/* twice */
	r[MANY] = r[3];
	r[MANY + 1] = r[90];
	assert_int_equal(rgate_queue_complete_many(other, r, 5), -ESTALE);
	assert_int_equal(r[4].error, -ESTALE);
	assert_int_equal(rgate_queue_complete_many(q, r, 0), -EINVAL);
	assert_int_equal(rgate_queue_complete_many(q, r, MANY + 2), MANY - 1);
	for (i = 0; i < MANY + 2; i++)
		assert_int_equal(r[i].error, i == 100 ? -EMSGSIZE : i < MANY ? 0 : -ESTALE);
	for (i = 0; i < MANY; i++) {
		static char back[RGATE_QUEUE_DATA_MAX];

		if (i == 100)
			continue;
		assert_int_equal(rgate_queue_wait(q, first + i, RGATE_WAIT_TAKE, -1, back,
						  sizeof(back), &told), r[i].len);
		if (i >= 20 && i < 24)
			assert_memory_equal(back, large, sizeof(large));
		else
			assert_memory_equal(back, &got[i].task.id, 8);
	}
	rgate_queue_close(other);
	rgate_queue_close(q);
}

/* Nothing is asked for: each of those that would have gone together hears why. */
static void none_asked(void **state)
{
	static const struct rgate_queue_task task = { .id = 1, .claim = 1 };
	struct rgate_queue *q = open_own("many");
	struct rgate_queue_result r[5];
	unsigned int i;

	(void)state;
	unit_not_for_tsan(TSAN);
	for (i = 0; i < 5; i++)
		r[i] = (struct rgate_queue_result){ .task = &task, .error = 77 };
	refused = -EPIPE;
	assert_int_equal(rgate_queue_complete_many(q, r, 4), -EPIPE);
	refused = 0;
	for (i = 0; i < 5; i++)
		assert_int_equal(r[i].error, i < 4 ? -EPIPE : 77);
	rgate_queue_close(q);
}

/* What @n tasks of @got are to be completed with: their numbers */
static void results_of(struct rgate_queue_result *r, const struct rgate_queue_got *got, int n)
{
	int i;

	for (i = 0; i < n; i++)
		r[i] = (struct rgate_queue_result){ .task = &got[i].task, .data = &got[i].task.id,
						    .len = 8, .error = 77 };
}

/* Claims go together with what is done, whose tasks lie where the next ones come to be. */
static void next_ones(void **state)
{
	const struct rgate_queue_job job = { .flags = RGATE_TASK_RESULT };
	struct rgate_queue *q = open_own("next");
	struct rgate_queue_result r[RGATE_QUEUE_CLAIM_MAX];
	struct rgate_queue_got got[RGATE_QUEUE_CLAIM_MAX], kept;
	uint64_t first = 0, id, back;
	unsigned int i;
	int n, k;

	(void)state;
	unit_not_for_tsan(TSAN);
	for (i = 0; i < TASKS; i++) {
		assert_int_equal(rgate_queue_submit(q, &job, 1, -1, &id), 1);
		first = first ? first : id;
	}
	/* As many as a request completes, more, and fewer */
	for (i = 0, n = 0; i < TASKS; i += (unsigned int)n) {
		static const unsigned int most[] = { 32, RGATE_QUEUE_CLAIM_MAX, 5, 1 };
		const int done = n;

		n = rgate_queue_next(q, r, (unsigned int)done, 0, most[i % 4], 0, -1, got);
		assert_in_range(n, 1, most[i % 4]);
		for (k = 0; k < done; k++)
			assert_int_equal(r[k].error, 0);
		results_of(r, got, n);
	}
	/* There are no more: that is no matter of what is done. One of it was another's. */
	kept = got[0];
	assert_int_equal(rgate_queue_next(q, r, (unsigned int)n, 0, 1, RGATE_CLAIM_NOW, 0, got),
			 -EAGAIN);
	for (k = 0; k < n; k++)
		assert_int_equal(r[k].error, 0);
	results_of(r, &kept, 1);
	assert_int_equal(rgate_queue_next(q, r, 1, 0, 1, 0, 20, got), -ETIMEDOUT);
	assert_int_equal(r[0].error, -ESTALE);
	assert_int_equal(rgate_queue_submit(q, &job, 1, -1, &id), 1);
	got[0] = kept;
	results_of(r, got, 1);
	assert_int_equal(rgate_queue_next(q, r, 1, 0, 1, 0, -1, got), 1);
	assert_int_equal(r[0].error, -ESTALE);
	assert_int_equal(got[0].task.id, id);
	results_of(r, got, 1);
	/* What cannot be claimed does not keep what is done. */
	assert_int_equal(rgate_queue_next(q, r, 1, 0, 0, 0, -1, got), -EINVAL);
	assert_int_equal(r[0].error, 0);
	for (i = 0; i < TASKS + 1; i++) {
		assert_int_equal(rgate_queue_wait(q, first + i, RGATE_WAIT_TAKE, -1, &back, 8,
						  NULL), 8);
		assert_int_equal(back, first + i);
	}
	assert_int_equal(rgate_queue_remove(q), 0);
	assert_int_equal(rgate_queue_next(q, r, 1, 0, 1, 0, -1, got), -ESTALE);
	assert_int_equal(r[0].error, -ESTALE);
	rgate_queue_close(q);
}

#define ALL	300U	/* more than requests that go together have results */

/* Whatever is refused of many: each is told its own, and none has another one's bytes. */
static void next_of_many(void **state)
{
	static struct rgate_queue_got got[RGATE_QUEUE_CLAIM_MAX];
	static struct rgate_queue_task tasks[ALL];
	static struct rgate_queue_result r[ALL];
	static char bytes[ALL][600], back[600];
	struct rgate_queue_job jobs[ALL];
	struct rgate_queue *q = open_own("many");
	uint64_t first, id;
	unsigned int i, n;
	int k, some;

	(void)state;
	unit_not_for_tsan(TSAN);
	for (i = 0; i < ALL; i++)
		jobs[i] = (struct rgate_queue_job){ .flags = RGATE_TASK_RESULT };
	assert_int_equal(rgate_queue_submit(q, jobs, ALL, -1, &first), 256);
	assert_int_equal(rgate_queue_submit(q, jobs, ALL - 256, -1, &id), ALL - 256);
	for (n = 0; n < ALL; n += (unsigned int)some) {
		some = rgate_queue_claim(q, 0, RGATE_QUEUE_CLAIM_MAX, 0, -1, got);
		assert_in_range(some, 1, ALL - n);
		for (k = 0; k < some; k++)
			tasks[n + (unsigned int)k] = got[k].task;
	}
	for (i = 0; i < ALL; i++) {
		memset(bytes[i], 'a' + (int)(i % 26), sizeof(bytes[i]));
		r[i] = (struct rgate_queue_result){
			.task = &tasks[i], .data = bytes[i], .len = i % 7 * 100,
		};
		/* of each request some, at its begin, in it and at its end */
		tasks[i].claim += i % 64 == 0 || i % 64 == 63 || i % 64 == 30;
	}
	assert_int_equal(rgate_queue_submit(q, jobs, 3, -1, &id), 3);
	assert_int_equal(rgate_queue_next(q, r, ALL, 0, 8, 0, -1, got), 3);
	assert_int_equal(got[0].task.id, id);
	for (i = 0; i < ALL; i++) {
		const bool stale = i % 64 == 0 || i % 64 == 63 || i % 64 == 30;

		assert_int_equal(r[i].error, stale ? -ESTALE : 0);
		if (stale)
			continue;
		assert_int_equal(rgate_queue_wait(q, first + i, RGATE_WAIT_TAKE, 10000, back,
						  sizeof(back), NULL), r[i].len);
		assert_memory_equal(back, bytes[i], r[i].len);
	}
	rgate_queue_close(q);
}

/* There is no room for a result: its worker hears of it though nothing can be claimed, and does not
 * wait for more tasks, whose submitter may wait for this one. */
static void next_refused(void **state)
{
	const struct rgate_queue_opts small = {
		.sz = sizeof(small), .where = RGATE_SESSION_PROCESS, .flags = RGATE_QUEUE_CREATE,
		.bytes = 10, .result_ms = 600000,
	};
	const struct rgate_queue_job empty = { .len = 0 }, jobs[] = {
		{ .data = "AAAAA", .len = 5, .flags = RGATE_TASK_RESULT },
		{ .data = "BBBBB", .len = 5, .flags = RGATE_TASK_RESULT },
	};
	struct rgate_queue_result r;
	struct rgate_queue *q = NULL;
	struct rgate_queue_got got[2];
	uint64_t first, third;
	char back[16];

	(void)state;
	unit_not_for_tsan(TSAN);
	assert_int_equal(rgate_queue_open(&q, "refused", &small), 0);
	assert_int_equal(rgate_queue_submit(q, jobs, 2, 0, &first), 2);
	assert_int_equal(rgate_queue_claim(q, 0, 2, RGATE_CLAIM_BEGIN, -1, got), 2);
	assert_int_equal(rgate_queue_complete(q, &got[0].task, "012345", 6), 0);
	r = (struct rgate_queue_result){ .task = &got[1].task, .data = "bbbbb", .len = 5 };
	assert_int_equal(rgate_queue_next(q, &r, 1, 0, 1, 0, -1, got), -EAGAIN);
	assert_int_equal(r.error, -EAGAIN);
	/* With another task it is told along with that. */
	assert_int_equal(rgate_queue_submit(q, &empty, 1, 0, &third), 1);
	assert_int_equal(rgate_queue_next(q, &r, 1, 0, 1, 0, -1, got), 1);
	assert_int_equal(r.error, -EAGAIN);
	assert_int_equal(got[0].task.id, third);
	assert_int_equal(rgate_queue_wait(q, first, RGATE_WAIT_TAKE, -1, back, 16, NULL), 6);
	/* got[0] is another one's place by now, and got[1] is as it was. */
	assert_int_equal(rgate_queue_next(q, &r, 1, 0, 1, RGATE_CLAIM_NOW, 0, got), -EAGAIN);
	assert_int_equal(r.error, 0);
	assert_int_equal(rgate_queue_wait(q, first + 1, 0, -1, back, 16, NULL), 5);
	assert_memory_equal(back, "bbbbb", 5);
	rgate_queue_close(q);
}

static void all_calls(void **state)
{
	static char large[RGATE_QUEUE_DATA_MAX];
	const struct rgate_queue_job jobs[] = {
		{ .data = large, .len = sizeof(large), .flags = RGATE_TASK_RESULT },
		{ .data = large, .len = sizeof(large), .priority = 1 },
		{ .type = 5, .priority = 2 },
	};
	struct rgate_queue *q = open_own("calls");
	struct rgate_queue_got got;
	uint64_t first, n, after = 0;
	uint32_t told;
	int seen = 0;

	(void)state;
	unit_not_for_tsan(TSAN);
	memset(large, 'x', sizeof(large));
	/* A request has room for one large one, so what is left is submitted anew. */
	assert_int_equal(rgate_queue_submit(q, jobs, 3, 0, &first), 1);
	assert_int_equal(rgate_queue_submit(q, jobs + 1, 2, 0, NULL), 2);
	assert_int_equal(rgate_queue_submit(q, jobs, 0, 0, NULL), -EINVAL);
	assert_int_equal(rgate_queue_claim(q, 1ULL << 9, 1, RGATE_CLAIM_NOW, 0, &got), -EAGAIN);
	assert_int_equal(rgate_queue_claim(q, 1ULL << 9, 1, 0, 20, &got), -ETIMEDOUT);
	assert_int_equal(rgate_queue_claim(q, 0, 0, 0, 20, &got), -EINVAL);
	assert_int_equal(rgate_queue_claim(q, 0, 1, 0, -1, &got), 1);
	assert_int_equal(got.task.id, first);
	assert_int_equal(got.task.len, sizeof(large));
	assert_memory_equal(got.data, large, sizeof(large));
	assert_int_equal(rgate_queue_begin(q, &got.task), 0);
	assert_int_equal(rgate_queue_touch(q, &got.task), 0);
	assert_int_equal(rgate_queue_complete(q, &got.task, large, sizeof(large) + 1), -EMSGSIZE);
	assert_int_equal(rgate_queue_complete(q, &got.task, large, sizeof(large)), 0);
	assert_int_equal(rgate_queue_complete(q, &got.task, NULL, 0), -ESTALE);
	/* with all its bytes, twice as many as those of a claim */
	assert_int_equal(rgate_queue_peek(q, &after, RGATE_TASK_BIT(RGATE_TASK_DONE), &got), 1);
	assert_int_equal(got.task.end_len, sizeof(large));
	assert_memory_equal(got.end, large, sizeof(large));
	assert_int_equal(rgate_queue_wait(q, first, 0, 0, large, 8, NULL), -EMSGSIZE);
	assert_int_equal(rgate_queue_claim(q, 0, 1, RGATE_CLAIM_BEGIN, 0, &got), 1);
	assert_int_equal(rgate_queue_release(q, &got.task, 60000), 0);
	assert_int_equal(rgate_queue_claim(q, 0, 1, RGATE_CLAIM_BEGIN, 0, &got), 1);
	assert_int_equal(got.task.type, 5);
	assert_int_equal(rgate_queue_bury(q, &got.task, "no such file"), 0);
	assert_int_equal(rgate_queue_wait(q, got.task.id, 0, 0, large, 64, &told), 12);
	assert_int_equal(told, RGATE_TASK_BURIED);
	assert_memory_equal(large, "no such file", 12);
	for (after = 0; rgate_queue_peek(q, &after, 0, &got) == 1; seen++)
		assert_int_equal(got.task.id, first + (unsigned int)seen);
	assert_int_equal(seen, 3);
	assert_int_equal(rgate_queue_wait_all(q, 20, NULL), -ETIMEDOUT);
	assert_int_equal(rgate_queue_kick(q, 1, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rgate_queue_kick(q, ~0ULL, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rgate_queue_discard(q, ~0U & 0x7f, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(rgate_queue_remove(q), 0);
	assert_int_equal(rgate_queue_remove(q), -ESTALE);
	assert_int_equal(rgate_queue_claim(q, 0, 1, 0, -1, &got), -ESTALE);
	rgate_queue_close(q);
}

/* A request does as much as others that count as one do; what is left is submitted anew. */
static void so_many_at_once(void **state)
{
	static const struct rgate_queue_job jobs[300];
	struct rgate_queue *q = open_own("many");
	uint64_t first = 0, more = 0, n = 0;

	(void)state;
	unit_not_for_tsan(TSAN);
	assert_int_equal(rgate_queue_submit(q, jobs, 300, 0, &first), 256);
	assert_int_equal(rgate_queue_submit(q, jobs, 44, 0, &more), 44);
	assert_int_equal(more, first + 256);
	/* Nor do those drop more, but the call goes on. */
	assert_int_equal(rgate_queue_discard(q, RGATE_TASK_BIT(RGATE_TASK_READY), &n), 0);
	assert_int_equal(n, 300);
	rgate_queue_close(q);
}

static int count_it(void *ctx, const struct rgate_queue_info *info)
{
	unsigned int *n = ctx;

	assert_int_equal(info->owner, geteuid());
	return ++*n == 2 ? 7 : 0;
}

static void names(void **state)
{
	struct rgate_queue_opts o = process;
	struct rgate_queue *a = open_own("a"), *b = open_own("b"), *none = NULL;
	unsigned int n = 0;

	(void)state;
	unit_not_for_tsan(TSAN);
	assert_int_equal(rgate_queue_list(&process, count_it, &n), 7);
	assert_int_equal(n, 2);
	rgate_queue_close(a);
	n = 0;
	assert_int_equal(rgate_queue_list(&process, count_it, &n), 0);
	assert_int_equal(n, 1);
	o.flags = 0;
	assert_int_equal(rgate_queue_open(&none, "a", &o), -ENOENT);
	o.flags = RGATE_QUEUE_CREATE | RGATE_QUEUE_EXCLUSIVE;
	assert_int_equal(rgate_queue_open(&none, "b", &o), -EEXIST);
	o.flags = 1U << 20;
	assert_int_equal(rgate_queue_open(&none, "b", &o), -EINVAL);
	o.flags = RGATE_QUEUE_CREATE;
	o.path = "/nonexistent/socket";
	o.where = RGATE_SESSION_DAEMON;
	assert_int_equal(rgate_queue_open(&none, NULL, &o), -EINVAL);
	assert_int_equal(rgate_queue_open(&none, "b", &o), -ECONNREFUSED);
	assert_int_equal(rgate_queue_open(&none, NULL, &process), -EINVAL);
	assert_int_equal(rgate_queue_open(&none, "b c", &process), -EINVAL);
	rgate_queue_close(b);
	rgate_queue_close(NULL);
}

static struct rgate_session *session_of(uint64_t memory)
{
	const struct rgate_session_opts so = {
		.sz = sizeof(so), .where = RGATE_SESSION_PROCESS, .memory = memory,
	};
	struct rgate_session *s = NULL;

	assert_int_equal(rgate_session_open(&s, &so), 0);
	return s;
}

/* By the handle that another session has: how many buried ones are ready again */
static int kicks(struct rgate_session *s, uint32_t handle)
{
	const struct rgate_request r = { .op = RGATE_REQ_QUEUE_KICK, .handle = handle, .a0 = 1 };
	struct rgate_completion c;

	assert_int_equal(rgate_session_submit(s, &r), 0);
	assert_int_equal(rgate_session_wait(s, -1), 1);
	assert_int_equal(rgate_session_poll(s, &c, 1), 1);
	return c.result;
}

static int child_asks(int sock, void *arg)
{
	const struct rgate_queue_task task = { .id = 1 };
	const struct rgate_queue_job job = { .data = "job", .len = 3 };
	struct rgate_queue_result r[2] = { { .task = &task, .data = "r", .len = 1 },
					   { .task = &task } };
	struct rgate_queue_got got;
	struct rgate_queue *q = arg;

	(void)sock;
	unit_require(rgate_queue_submit(q, &job, 1, 0, NULL) == -EOWNERDEAD);
	unit_require(rgate_queue_claim(q, 0, 1, 0, 0, &got) == -EOWNERDEAD);
	unit_require(rgate_queue_complete(q, &task, "r", 1) == -EOWNERDEAD);
	unit_require(rgate_queue_bury(q, &task, "reason") == -EOWNERDEAD);
	unit_require(rgate_queue_complete_many(q, r, 2) == -EOWNERDEAD);
	unit_require(r[0].error == -EOWNERDEAD && r[1].error == -EOWNERDEAD);
	unit_require(rgate_queue_next(q, r, 2, 0, 1, 0, 0, &got) == -EOWNERDEAD);
	unit_require(rgate_queue_next_start(q, r, 2, 0, 1, 0) == -EOWNERDEAD);
	return 0;
}

/* A child has not the memory of what its parent opened: no call touches it. */
static void of_a_child(void **state)
{
	struct rgate_queue *q;
	int pid, sock, st;

	(void)state;
	unit_not_for_tsan(TSAN);
	assert_int_equal(rgate_queue_open(&q, "parents", &process), 0);
	pid = unit_fork(child_asks, q, &sock);
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_int_equal(st, 0);
	close(sock);
	rgate_queue_close(q);
}

static void for_a_session(void **state)
{
	struct rgate_session *s = session_of(4096), *none = session_of(0);
	struct rgate_session_loan loan = { .sz = sizeof(loan) };
	struct rgate_queue_opts o = process;
	struct rgate_queue *q = open_own("given");
	const struct rgate_request nop = { .op = RGATE_REQ_NOP };
	struct rgate_queue_info info;
	struct rgate_completion c;
	uint32_t h = 7;

	(void)state;
	unit_not_for_tsan(TSAN);
	assert_int_equal(rgate_queue_handle(none, "given", &process, &h), -EINVAL);
	assert_int_equal(rgate_queue_handle(s, NULL, &process, &h), -EINVAL);
	o.flags = 1U << 20;
	assert_int_equal(rgate_queue_handle(s, "given", &o, &h), -EINVAL);
	o.flags = 0;
	assert_int_equal(rgate_queue_handle(s, "absent", &o, &h), -ENOENT);
	o.flags = RGATE_QUEUE_CREATE | RGATE_QUEUE_EXCLUSIVE;
	assert_int_equal(rgate_queue_handle(s, "given", &o, &h), -EEXIST);
	/* a completion that its owner waits for is not taken away from him */
	assert_int_equal(rgate_session_submit(s, &nop), 0);
	assert_int_equal(rgate_session_wait(s, -1), 1);
	assert_int_equal(rgate_queue_handle(s, "given", &process, &h), -EBUSY);
	assert_int_equal(rgate_session_poll(s, &c, 1), 1);
	assert_int_equal(h, 7);
	assert_int_equal(rgate_queue_handle(s, "given", NULL, &h), 0);
	assert_int_equal(kicks(s, h), 0);
	assert_int_equal(kicks(s, h + 1), -EBADF);
	assert_int_equal(rgate_queue_info(q, &info), 0);
	assert_int_equal(info.handles, 2);
	/* it is not to be asked, nor its memory written to, when it is another's */
	assert_int_equal(rgate_session_lend(s, &loan), 0);
	memset(rgate_session_memory(s, NULL), 'x', 8);
	assert_int_equal(rgate_queue_handle(s, "given", &process, &h), -EBUSY);
	assert_memory_equal(rgate_session_memory(s, NULL), "xxxxxxxx", 8);
	rgate_session_close(s);
	rgate_session_close(none);
	rgate_queue_close(q);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(each_once),
	cmocka_unit_test(many_at_once), cmocka_unit_test(none_asked),
	cmocka_unit_test(next_ones), cmocka_unit_test(next_refused),
	cmocka_unit_test(next_of_many),
	cmocka_unit_test(all_calls),
	cmocka_unit_test(so_many_at_once), cmocka_unit_test(names),
	cmocka_unit_test(of_a_child),
	cmocka_unit_test(for_a_session),
};

UNIT_MAIN(tests)
