// SPDX-License-Identifier: MIT OR GPL-2.0
/* rgate_queue_worker, in a process that serves itself; completions come late and in any order */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/rgate_queue_worker.h>

#include "clock.h"

#define TASKS	300U
#define PATIENT	60000
/* Client and engine have mapped a session's area each for itself. */
#define TSAN	"it does not know that two mappings are the same memory"

/* ---- Completions ---- */

static struct stash {
	struct rgate_session *s;
	struct rgate_completion c[64];
	int n;
	bool late;		/* nothing is there, when it is asked for once */
} stashes[16];
static bool shuffles;
static int loses;		/* what one completion is instead; 0: none */
static pthread_mutex_t stash_lock = PTHREAD_MUTEX_INITIALIZER;

int __real_rgate_session_poll(struct rgate_session *s, struct rgate_completion *c, unsigned int n);
int __real_rgate_session_wait(struct rgate_session *s, int timeout_ms);
int __real_rgate_session_arm(struct rgate_session *s);
void __real_rgate_session_close(struct rgate_session *s);
int __wrap_rgate_session_poll(struct rgate_session *s, struct rgate_completion *c, unsigned int n);
int __wrap_rgate_session_wait(struct rgate_session *s, int timeout_ms);
int __wrap_rgate_session_arm(struct rgate_session *s);
void __wrap_rgate_session_close(struct rgate_session *s);

/* NULL: all are taken */
static struct stash *stash_of(struct rgate_session *s)
{
	struct stash *free_one = NULL;
	unsigned int i;

	pthread_mutex_lock(&stash_lock);
	for (i = 0; i < ARRAY_LEN(stashes) && stashes[i].s != s; i++)
		if (!stashes[i].s)
			free_one = &stashes[i];
	if (i < ARRAY_LEN(stashes))
		free_one = &stashes[i];
	else if (free_one)
		*free_one = (struct stash){ .s = s };
	pthread_mutex_unlock(&stash_lock);
	return free_one;
}

static int lost(struct rgate_completion *c, int n)
{
	int err = __atomic_load_n(&loses, __ATOMIC_RELAXED);

	if (n > 0 && err && __atomic_compare_exchange_n(&loses, &err, 0, false, __ATOMIC_RELAXED,
							__ATOMIC_RELAXED))
		c->result = err;
	return n;
}

/* The last one first, and none when it is asked for the first time */
int __wrap_rgate_session_poll(struct rgate_session *s, struct rgate_completion *c, unsigned int n)
{
	struct stash *st = shuffles ? stash_of(s) : NULL;
	int got;

	if (!st)
		return lost(c, __real_rgate_session_poll(s, c, n));
	got = __real_rgate_session_poll(s, st->c + st->n, 64 - (unsigned int)st->n);
	if (got < 0 && !st->n)
		return got;
	st->n += got > 0 ? got : 0;
	st->late = got > 0;
	if (!st->n || st->late || !n)
		return 0;
	*c = st->c[--st->n];
	return lost(c, 1);
}

static bool stashed(struct rgate_session *s)
{
	const struct stash *st = shuffles ? stash_of(s) : NULL;

	return st && st->n;
}

int __wrap_rgate_session_wait(struct rgate_session *s, int timeout_ms)
{
	return stashed(s) ? 1 : __real_rgate_session_wait(s, timeout_ms);
}

int __wrap_rgate_session_arm(struct rgate_session *s)
{
	return stashed(s) ? 1 : __real_rgate_session_arm(s);
}

void __wrap_rgate_session_close(struct rgate_session *s)
{
	struct stash *st = shuffles ? stash_of(s) : NULL;

	if (st)
		st->s = NULL;
	__real_rgate_session_close(s);
}

/* ---- A queue, and what handlers do ---- */

static struct rgate_queue_opts process = {
	.sz = sizeof(process), .where = RGATE_SESSION_PROCESS, .flags = RGATE_QUEUE_CREATE,
};

static struct rgate_queue *q;
static struct rgate_queue_worker *w;
static int gate;		/* handlers that hold() lets go, atomic */
static int held;		/* and those that are there */

static void nap(void)
{
	poll(NULL, 0, 1);
}

static int setup(void **state)
{
	(void)state;
	process = (struct rgate_queue_opts){ .sz = sizeof(process), .where = RGATE_SESSION_PROCESS,
					     .flags = RGATE_QUEUE_CREATE };
	gate = held = loses = 0;
	shuffles = true;
	w = NULL;
	assert_int_equal(rgate_queue_open(&q, "work", &process), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	__atomic_store_n(&gate, 1 << 20, __ATOMIC_RELAXED);
	if (w) {
		rgate_queue_worker_stop(w);
		rgate_queue_worker_join(w, PATIENT);
		rgate_queue_worker_close(w);
	}
	rgate_queue_remove(q);
	rgate_queue_close(q);
	memset(stashes, 0, sizeof(stashes));
	return 0;
}

/* As setup() has it, but made so */
static void made_anew(void)
{
	rgate_queue_close(q);
	assert_int_equal(rgate_queue_open(&q, "work", &process), 0);
}

#define START(run_, ...) start(&(struct rgate_queue_handler){ .run = (run_) }, 1, \
	(struct rgate_queue_worker_opts){ .sz = sizeof(struct rgate_queue_worker_opts), \
					  ##__VA_ARGS__ })

static void start(const struct rgate_queue_handler *h, uint32_t n, struct rgate_queue_worker_opts o)
{
	o.queue = &process;
	o.handlers = h;
	o.nhandlers = n;
	assert_int_equal(rgate_queue_worker_start(&w, "work", &o), 0);
}

static void finish(int err)
{
	assert_int_equal(rgate_queue_worker_join(w, PATIENT), err);
	assert_int_equal(rgate_queue_worker_close(w), 0);
	w = NULL;
}

static struct rgate_queue_worker_info numbers(void)
{
	struct rgate_queue_worker_info i = { .sz = sizeof(i) };

	assert_int_equal(rgate_queue_worker_info(w, &i), 0);
	return i;
}

#define AWAIT(what) do { while (!(what)) nap(); } while (0)

static uint64_t submit_one(const void *data, uint32_t len, uint8_t type)
{
	const struct rgate_queue_job job = { .data = data, .len = len, .type = type,
					     .flags = RGATE_TASK_RESULT };
	uint64_t id;

	assert_int_equal(rgate_queue_submit(q, &job, 1, -1, &id), 1);
	return id;
}

static uint64_t submit_numbers(uint32_t n)
{
	uint64_t id, first = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		id = submit_one(&i, sizeof(i), 0);
		first = first ? first : id;
	}
	return first;
}

/* A state; and the reason, or the result */
static uint32_t end_of(uint64_t id, char *buf, size_t len)
{
	uint32_t told = 0;
	int n = rgate_queue_wait(q, id, RGATE_WAIT_TAKE, PATIENT, buf, len - 1, &told);

	assert_true(n >= 0);
	buf[n] = 0;
	return told;
}

static int square(void *ctx, struct rgate_queue_work *work)
{
	uint64_t n;

	(void)ctx;
	assert_int_equal(work->task->len, 4);
	assert_int_equal(work->task->state, RGATE_TASK_RUNNING);
	n = *(const uint32_t *)work->data;
	n *= n;
	memcpy(work->result, &n, sizeof(n));
	work->len = sizeof(n);
	return 0;
}

/* Until it is let go */
static int hold(void *ctx, struct rgate_queue_work *work)
{
	const int mine = __atomic_add_fetch(&held, 1, __ATOMIC_RELAXED);

	(void)ctx;
	(void)work;
	AWAIT(__atomic_load_n(&gate, __ATOMIC_RELAXED) >= mine);
	return 0;
}

/* ---- Tests ---- */

/* However they are claimed: each has its own result, and none another one's */
static void each_once(void **state)
{
	static const struct { uint32_t batch, prefetch, flags; } as[] = {
		{ 1, 0, 0 }, { 1, 3, 0 }, { 8, 0, 0 }, { 8, 20, 0 }, { 32, 4, RGATE_WORKER_BEGIN },
		{ RGATE_QUEUE_CLAIM_MAX, 0, RGATE_WORKER_BEGIN },
	};
	struct rgate_queue_worker_info n;
	uint64_t first, back;
	unsigned int a, i;

	(void)state;
	unit_not_for_tsan(TSAN);
	for (a = 0; a < ARRAY_LEN(as); a++) {
		first = submit_numbers(TASKS / 2);
		START(square, .threads = 3, .batch = as[a].batch, .prefetch = as[a].prefetch,
		      .flags = as[a].flags);
		(void)submit_numbers(TASKS / 2);
		for (i = 0; i < TASKS; i++) {
			uint64_t want = i % (TASKS / 2);

			assert_int_equal(rgate_queue_wait(q, first + i, RGATE_WAIT_TAKE, PATIENT,
							  &back, 8, NULL), 8);
			assert_int_equal(back, want * want);
		}
		rgate_queue_worker_stop(w);
		assert_int_equal(rgate_queue_worker_join(w, PATIENT), 0);
		n = numbers();
		assert_int_equal(n.completed, TASKS);
		assert_int_equal(n.claimed, TASKS);
		assert_int_equal(n.threads + n.running + n.ahead + n.held + n.late, 0);
		finish(0);
	}
}

static int by_text(void *ctx, struct rgate_queue_work *work)
{
	const char what = *(const char *)work->data;

	(void)ctx;
	switch (what) {
	case 'a':		/* the second time it goes */
		work->delay_ms = 1;
		return work->task->attempts == 1 ? -EAGAIN : 0;
	case 'r':
		work->reason = "for a reason";
		return -EIO;
	case 'e':
		return -EIO;
	case 'n':
		return 77;
	case 'l':		/* as much as there is room for */
		memset(work->result, 'l', RGATE_QUEUE_DATA_MAX);
		work->len = RGATE_QUEUE_DATA_MAX;
		return 0;
	case 'L':
		work->len = RGATE_QUEUE_DATA_MAX + 1;
		return 0;
	case 'M':
		work->len = SIZE_MAX;
		return 0;
	default:
		work->delay_ms = UINT32_MAX;	/* longer than there can be */
		return -EAGAIN;
	}
}

static void returns(void **state)
{
	static char buf[RGATE_QUEUE_DATA_MAX + 1];
	static const struct { const char *text, *end; uint32_t told; } as[] = {
		{ "a", "", RGATE_TASK_DONE }, { "r", "for a reason", RGATE_TASK_BURIED },
		{ "n", "the handler returned 77", RGATE_TASK_BURIED },
		{ "L", "its result is too long", RGATE_TASK_BURIED },
		{ "M", "its result is too long", RGATE_TASK_BURIED },
	};
	struct rgate_queue_worker_info n;
	struct rgate_queue_info info;
	unsigned int i;

	(void)state;
	unit_not_for_tsan(TSAN);
	START(by_text, .batch = 4, .retry_ms = 100000);
	for (i = 0; i < ARRAY_LEN(as); i++) {
		assert_int_equal(end_of(submit_one(as[i].text, 1, 0), buf, 64), as[i].told);
		assert_string_equal(buf, as[i].end);
	}
	assert_int_equal(end_of(submit_one("e", 1, 0), buf, 64), RGATE_TASK_BURIED);
	assert_string_equal(buf, rgate_strerror(NULL, -EIO));
	assert_int_equal(end_of(submit_one("l", 1, 0), buf, sizeof(buf)), RGATE_TASK_DONE);
	assert_int_equal(buf[RGATE_QUEUE_DATA_MAX - 1], 'l');
	submit_one("z", 1, 0);
	AWAIT(numbers().released == 2);
	n = numbers();
	assert_int_equal(n.completed, 2);
	assert_int_equal(n.buried, 5);
	assert_int_equal(rgate_queue_info(q, &info), 0);
	assert_int_equal(info.now[RGATE_TASK_DELAYED], 1);
	rgate_queue_worker_stop(w);
	finish(0);
}

/* What fails is tried as often as it may be, then it is buried. */
static void retries(void **state)
{
	char buf[64];
	uint64_t id;

	(void)state;
	unit_not_for_tsan(TSAN);
	process.attempts = 3;
	made_anew();
	START(by_text, .flags = RGATE_WORKER_RETRY, .retry_ms = 1);
	id = submit_one("e", 1, 0);
	assert_int_equal(end_of(id, buf, sizeof(buf)), RGATE_TASK_BURIED);
	AWAIT(numbers().released == 3);
	assert_int_equal(numbers().claimed, 3);
}

/* Those that are claimed ahead are given back, and have lost no attempt. */
static void stop_in_the_middle(void **state)
{
	struct rgate_queue_worker_info n;
	struct rgate_queue_info info;
	struct rgate_queue_got got;
	uint64_t after = 0;
	int i;

	(void)state;
	unit_not_for_tsan(TSAN);
	submit_numbers(30);
	START(hold, .batch = 10, .prefetch = 8);
	__atomic_store_n(&gate, 2, __ATOMIC_RELAXED);
	AWAIT(__atomic_load_n(&held, __ATOMIC_RELAXED) == 3);
	assert_true(numbers().ahead >= 7);
	rgate_queue_worker_stop(w);
	assert_int_equal(rgate_queue_worker_join(w, 0), -ETIMEDOUT);
	assert_int_equal(rgate_queue_worker_join(w, 10), -ETIMEDOUT);
	assert_int_equal(rgate_queue_worker_close(w), -EBUSY);
	__atomic_store_n(&gate, 3, __ATOMIC_RELAXED);
	assert_int_equal(rgate_queue_worker_join(w, PATIENT), 0);
	n = numbers();
	/* the third one counts, too */
	assert_int_equal(n.completed, 3);
	assert_int_equal(n.given_back, n.claimed - 3);
	assert_true(n.given_back >= 7);
	assert_int_equal(rgate_queue_info(q, &info), 0);
	assert_int_equal(info.now[RGATE_TASK_READY], 27);
	assert_int_equal(info.lost, 0);
	for (i = 0; rgate_queue_peek(q, &after, RGATE_TASK_BIT(RGATE_TASK_READY), &got) == 1; i++)
		assert_int_equal(got.task.attempts, 0);
	assert_int_equal(i, 27);
	finish(0);
}

/* Another one has it when its time to run is over: this one's result is late, and counts not. */
static int slow(void *ctx, struct rgate_queue_work *work)
{
	struct rgate_queue *other = ctx;
	struct rgate_queue_got got;

	(void)work;
	assert_int_equal(rgate_queue_claim(other, 0, 1, RGATE_CLAIM_BEGIN, -1, &got), 1);
	assert_int_equal(rgate_queue_complete(other, &got.task, "other", 5), 0);
	memcpy(work->result, "mine", 4);
	work->len = 4;
	return 0;
}

static void past_its_lease(void **state)
{
	static const uint32_t flags[] = { 0, RGATE_WORKER_TOUCH };
	struct rgate_queue *other = NULL;
	unsigned int i;
	char buf[64];

	(void)state;
	unit_not_for_tsan(TSAN);
	process.run_ms = 50;
	made_anew();
	assert_int_equal(rgate_queue_open(&other, "work", &process), 0);
	/* The second one is touched so often, and then left alone. */
	for (i = 0; i < 2; i++) {
		const struct rgate_queue_handler h = { .run = slow, .ctx = other };
		uint64_t id = submit_one("", 0, 0);

		start(&h, 1, (struct rgate_queue_worker_opts){ .sz = sizeof(struct
			rgate_queue_worker_opts), .flags = flags[i], .touch_ms = 5,
			.touch_for_ms = 120, .batch = 2 });
		assert_int_equal(end_of(id, buf, sizeof(buf)), RGATE_TASK_DONE);
		assert_string_equal(buf, "other");
		AWAIT(numbers().late == 1);
		assert_int_equal(numbers().completed, 0);
		assert_true(!flags[i] == !numbers().touched);
		rgate_queue_worker_stop(w);
		finish(0);
	}
	rgate_queue_close(other);
}

/* As long as it is touched it is this one's, and so are those of its batch. */
static void touched(void **state)
{
	const uint64_t from = rgate_clock_now(CLOCK_MONOTONIC);
	struct rgate_queue_info info;

	(void)state;
	unit_not_for_tsan(TSAN);
	process.run_ms = 1000 * unit_patience();
	made_anew();
	submit_numbers(4);
	START(hold, .batch = 4, .touch_ms = 50, .flags = RGATE_WORKER_TOUCH | RGATE_WORKER_BEGIN);
	__atomic_store_n(&gate, 1, __ATOMIC_RELAXED);
	AWAIT(rgate_clock_now(CLOCK_MONOTONIC) - from > process.run_ms * 1500000ULL);
	assert_true(numbers().touched >= 4);
	__atomic_store_n(&gate, 4, __ATOMIC_RELAXED);
	AWAIT(numbers().completed == 4);
	assert_int_equal(rgate_queue_info(q, &info), 0);
	assert_int_equal(info.late + info.stale, 0);
}

static void home_dies(void **state)
{
	static const int why[] = { -ECONNRESET, -ENOTCONN };
	struct rgate_queue_info info;
	unsigned int i;
	uint64_t n;

	(void)state;
	unit_not_for_tsan(TSAN);
	for (i = 0; i < ARRAY_LEN(why); i++) {
		START(hold, .threads = 2, .prefetch = 1);
		submit_numbers(1);
		AWAIT(__atomic_load_n(&held, __ATOMIC_RELAXED) == (int)i + 1);
		AWAIT(!rgate_queue_info(q, &info) && info.claims == 2);
		/* The next one to hear anything is the thread whose handler ends. */
		__atomic_store_n(&loses, why[i], __ATOMIC_RELAXED);
		__atomic_store_n(&gate, i + 1, __ATOMIC_RELAXED);
		finish(why[i]);
		/* What was told came after it was done, perhaps. */
		assert_int_equal(rgate_queue_discard(q, RGATE_TASK_BIT(RGATE_TASK_READY), &n), 0);
	}
}

static void home_comes_back(void **state)
{
	uint64_t first, back;
	unsigned int i;

	(void)state;
	unit_not_for_tsan(TSAN);
	process.attempts = 100;
	made_anew();
	first = submit_numbers(40);
	shuffles = false;
	START(square, .threads = 2, .batch = 4, .prefetch = 2, .flags = RGATE_WORKER_REOPEN);
	for (i = 0; i < 40; i++) {
		int n;

		if (i % 10 == 3 && numbers().completed < 40)
			__atomic_store_n(&loses, -ECONNRESET, __ATOMIC_RELAXED);
		/* This one may be who is told. */
		do {
			n = rgate_queue_wait(q, first + i, 0, PATIENT, &back, 8, NULL);
		} while (n == -ECONNRESET);
		assert_int_equal(n, 8);
		assert_int_equal(back, i * i);
	}
	rgate_queue_worker_stop(w);
	assert_int_equal(rgate_queue_worker_join(w, PATIENT), 0);
	assert_true(numbers().completed <= 40);
}

/* A result for which there is no room is kept, and told later; no others are claimed. */
static void no_room(void **state)
{
	struct rgate_queue_info info;
	uint64_t id[4], back;
	uint32_t i;

	(void)state;
	unit_not_for_tsan(TSAN);
	process.bytes = 16;
	process.result_ms = 600000;
	made_anew();
	for (i = 0; i < 4; i++)
		id[i] = submit_one(&i, 4, 0);
	START(square);
	/* and one that was claimed when the first one was told that there is none */
	AWAIT(numbers().held == 2);
	for (i = 0; i < 4; i++) {
		assert_int_equal(rgate_queue_wait(q, id[i], RGATE_WAIT_TAKE, PATIENT, &back, 8,
						  NULL), 8);
		assert_int_equal(back, i * i);
	}
	/* One that is stopped does not wait for ever; others may do it again. */
	for (i = 0; i < 3; i++)
		id[i] = submit_one(&i, 4, 0);
	AWAIT(numbers().held == 1);
	rgate_queue_worker_stop(w);
	finish(0);
	assert_int_equal(rgate_queue_info(q, &info), 0);
	assert_int_equal(info.now[RGATE_TASK_READY], 1);
}

/* A result for which there never is room buries its task, and keeps no others from being done. */
static void never_room(void **state)
{
	char buf[64];
	uint64_t id;

	(void)state;
	unit_not_for_tsan(TSAN);
	process.bytes = 1000;
	made_anew();
	id = submit_one("l", 1, 0);
	START(by_text, .batch = 4);
	assert_int_equal(end_of(id, buf, sizeof(buf)), RGATE_TASK_BURIED);
	assert_string_equal(buf, "its result is too long");
	assert_int_equal(end_of(submit_one("a", 1, 0), buf, sizeof(buf)), RGATE_TASK_DONE);
	AWAIT(numbers().buried == 1 && numbers().completed == 1);
	assert_int_equal(numbers().held, 0);
}

/* Each submits two of a half of it, down to 0; what was to be done by others is counted. */
static int splits(void *ctx, struct rgate_queue_work *work)
{
	uint32_t half = *(const uint32_t *)work->data / 2;
	const struct rgate_queue_job jobs[2] = {
		{ .data = &half, .len = 4, .type = half % 3 }, { .data = &half, .len = 4 },
	};
	unsigned int *n = ctx;

	__atomic_add_fetch(n, 1, __ATOMIC_RELAXED);
	if (!half)
		return 0;
	return rgate_queue_work_submit(work, jobs, 2, PATIENT, NULL) == 2 ? 0 : -EIO;
}

static void drained(void **state)
{
	unsigned int n[2] = { 0, 0 };
	const struct rgate_queue_handler h[] = {
		{ .types = 2, .run = splits, .ctx = &n[1] }, { .run = splits, .ctx = &n[0] },
	};
	const struct rgate_queue_worker_opts o = {
		.sz = sizeof(o), .threads = 3, .batch = 2, .prefetch = 1,
		.flags = RGATE_WORKER_DRAIN,
	};
	struct rgate_queue_info info;
	uint32_t from = 255;

	(void)state;
	unit_not_for_tsan(TSAN);
	submit_one(&from, 4, 1);
	start(h, 2, o);
	assert_int_equal(rgate_queue_worker_join(w, PATIENT), 0);
	assert_int_equal(n[0] + n[1], 255);
	assert_true(n[1] > 1);
	assert_int_equal(numbers().completed, 255);
	finish(0);
	/* It can be told so later, and be stopped while it is. */
	submit_numbers(2);
	START(hold, .threads = 2);
	AWAIT(__atomic_load_n(&held, __ATOMIC_RELAXED) == 2);
	rgate_queue_worker_drain(w);
	__atomic_store_n(&gate, 2, __ATOMIC_RELAXED);
	finish(0);
	assert_int_equal(rgate_queue_info(q, &info), 0);
	assert_int_equal(info.now[RGATE_TASK_READY], 0);
}

/* Of a type that it has no handler for it claims none. */
static void other_types(void **state)
{
	const struct rgate_queue_handler h = { .types = 1U << 5, .run = square };
	const struct rgate_queue_worker_opts o = { .sz = sizeof(o), .batch = 9 };
	struct rgate_queue_info info;
	uint32_t three = 3;
	char buf[16];

	(void)state;
	unit_not_for_tsan(TSAN);
	submit_one(&three, 4, 4);
	start(&h, 1, o);
	assert_int_equal(end_of(submit_one(&three, 4, 5), buf, 16), RGATE_TASK_DONE);
	assert_int_equal(buf[0], 9);
	assert_int_equal(rgate_queue_info(q, &info), 0);
	assert_int_equal(info.now[RGATE_TASK_READY], 1);
	/* The queue is removed: that is why it ends. */
	assert_int_equal(rgate_queue_remove(q), 0);
	finish(-ESTALE);
}

static int ends_itself(void *ctx, struct rgate_queue_work *work)
{
	int *err = ctx;

	(void)work;
	AWAIT(__atomic_load_n(&gate, __ATOMIC_ACQUIRE));
	*err = rgate_queue_worker_join(w, -1);
	if (*err == -EDEADLK)
		*err = rgate_queue_worker_close(w);
	rgate_queue_worker_stop(w);
	return 0;
}

static void by_its_own_handler(void **state)
{
	int err = 0;
	const struct rgate_queue_handler h = { .run = ends_itself, .ctx = &err };

	(void)state;
	unit_not_for_tsan(TSAN);
	submit_numbers(2);
	start(&h, 1, (struct rgate_queue_worker_opts){ .sz = sizeof(struct rgate_queue_worker_opts)
						     });
	__atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
	assert_int_equal(rgate_queue_worker_join(w, PATIENT), 0);
	assert_int_equal(err, -EBUSY);
	assert_int_equal(numbers().completed, 1);
	finish(0);
}

static int waits_for_room(void *ctx, struct rgate_queue_work *work)
{
	const struct rgate_queue_job job = { .len = 0 };
	int *err = ctx;

	*err = rgate_queue_work_submit(work, &job, 1, 1, NULL);
	__atomic_store_n(&held, 1, __ATOMIC_RELAXED);
	if (*err == -ETIMEDOUT || *err == -EAGAIN)
		*err = rgate_queue_work_submit(work, &job, 1, -1, NULL);
	return 0;
}

/* A handler that waits for room for ever does so until the worker is stopped. */
static void stop_while_full(void **state)
{
	int err = 0;
	const struct rgate_queue_handler h = { .run = waits_for_room, .ctx = &err };

	(void)state;
	unit_not_for_tsan(TSAN);
	process.tasks = 2;
	made_anew();
	submit_numbers(2);
	start(&h, 1, (struct rgate_queue_worker_opts){ .sz = sizeof(struct rgate_queue_worker_opts)
						     });
	AWAIT(__atomic_load_n(&held, __ATOMIC_RELAXED));
	rgate_queue_worker_stop(w);
	finish(0);
	assert_int_equal(err, -ECANCELED);
}

/* For longer than its time to run */
static int waits_in_vain(void *ctx, struct rgate_queue_work *work)
{
	const struct rgate_queue_job job = { .data = "", .len = 0 };
	const int ms = (int)process.run_ms * 3;
	int err = rgate_queue_work_submit(work, &job, 1, ms, NULL);

	(void)ctx;
	return err == -ETIMEDOUT ? 0 : -EIO;
}

/* It is touched while its handler waits for room, as are those of other threads. */
static void touched_while_full(void **state)
{
	char buf[64];

	(void)state;
	unit_not_for_tsan(TSAN);
	process.tasks = 1;
	process.run_ms = 300 * unit_patience();
	made_anew();
	START(waits_in_vain, .touch_ms = process.run_ms / 6, .flags = RGATE_WORKER_TOUCH);
	assert_int_equal(end_of(submit_one("", 0, 0), buf, sizeof(buf)), RGATE_TASK_DONE);
	AWAIT(numbers().completed == 1);
	assert_int_equal(numbers().late, 0);
	assert_int_equal(numbers().claimed, 1);
	assert_true(numbers().touched >= 3);
}

static void *joins(void *arg)
{
	(void)arg;
	__atomic_store_n(&held, 1, __ATOMIC_RELAXED);
	rgate_queue_worker_join(w, -1);
	return NULL;
}

/* Who is cancelled while he waits for its end keeps it from nobody. */
static void cancelled(void **state)
{
	pthread_t t;
	void *ret;

	(void)state;
	unit_not_for_tsan(TSAN);
	START(square, .threads = 2);
	assert_int_equal(pthread_create(&t, NULL, joins, NULL), 0);
	AWAIT(__atomic_load_n(&held, __ATOMIC_RELAXED));
	nap();
	assert_int_equal(pthread_cancel(t), 0);
	assert_int_equal(pthread_join(t, &ret), 0);
	assert_ptr_equal(ret, PTHREAD_CANCELED);
	assert_int_equal(numbers().threads, 2);
	rgate_queue_worker_stop(w);
	finish(0);
}

static void wrong_options(void **state)
{
	const struct rgate_queue_handler h[] = {
		{ .types = 3, .run = square }, { .types = 6, .run = square },
		{ .run = square }, { .run = square }, { .types = 1 },
	};
	struct rgate_queue_worker_opts o = { .sz = sizeof(o), .queue = &process, .handlers = h,
					     .nhandlers = 1 };
	struct rgate_queue_opts absent = process;

	(void)state;
#define WRONG(field, value) do { \
	struct rgate_queue_worker_opts o2 = o; \
	o2.field = (value); \
	assert_int_equal(rgate_queue_worker_start(&w, "work", &o2), -EINVAL); \
	assert_null(w); \
} while (0)
	WRONG(handlers, NULL);
	WRONG(handlers, &h[4]);
	WRONG(nhandlers, 0);
	WRONG(nhandlers, 2);
	WRONG(threads, RGATE_WORKER_THREADS_MAX + 1);
	WRONG(batch, RGATE_QUEUE_CLAIM_MAX + 1);
	WRONG(flags, 1U << 5);
	WRONG(prefetch, UINT32_MAX);
	WRONG(retry_ms, UINT32_MAX);
	WRONG(sz, 4);
	o.handlers = &h[2];
	WRONG(nhandlers, 2);
	o.handlers = h;
	assert_int_equal(rgate_queue_worker_start(&w, NULL, &o), -EINVAL);
	assert_int_equal(rgate_queue_worker_start(&w, "work", NULL), -EINVAL);
	absent.flags = 0;
	o.queue = &absent;
	assert_int_equal(rgate_queue_worker_start(&w, "absent", &o), -ENOENT);
	assert_int_equal(rgate_queue_worker_close(NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(each_once), TEST(returns), TEST(retries), TEST(stop_in_the_middle),
	TEST(past_its_lease), TEST(touched), TEST(home_dies), TEST(home_comes_back), TEST(no_room),
	TEST(never_room), TEST(drained), TEST(other_types), TEST(by_its_own_handler),
	TEST(stop_while_full), TEST(touched_while_full), TEST(cancelled),
	TEST(wrong_options),
};

UNIT_MAIN(tests)
