// SPDX-License-Identifier: MIT OR GPL-2.0
/* Queues of a home, without requests */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queues.h"

#define MS	1000000ULL
#define ME	1U
#define OTHER	2U

static struct queues home;
static struct queue *q;
static struct worker worker[2];

static struct queue *open_with(const char *name, uint32_t flags, struct rgate_queue_place rules)
{
	struct queue_open as = { .owner = ME, .flags = RGATE_QUEUE_CREATE | flags,
				 .place = rules };
	struct queue *out;

	strcpy(as.place.name, name);
	assert_int_equal(queue_open_check(&as), 0);
	assert_int_equal(queues_open(&home, ME, &as, &out), 0);
	return out;
}

static void begin(struct rgate_queue_place rules)
{
	q = open_with("q", 0, rules);
	queue_worker_init(q, &worker[0]);
	queue_worker_init(q, &worker[1]);
}

static int setup(void **state)
{
	(void)state;
	queues_init(&home);
	home.now = 1000 * MS;
	q = NULL;
	return 0;
}

static void close_queue(struct queue *of)
{
	of->handles--;
	queue_settle(of);
}

static int teardown(void **state)
{
	(void)state;
	if (q) {
		queue_worker_gone(q, &worker[0]);
		queue_worker_gone(q, &worker[1]);
		close_queue(q);
	}
	queues_fini(&home);
	assert_int_equal(home.bytes, 0);
	assert_int_equal(home.ntasks, 0);
	assert_int_equal(home.n, 0);
	assert_true(list_empty(&home.quotas));
	return 0;
}

static uint64_t put(struct rgate_queue_put p, const char *text)
{
	uint64_t id = 0;

	p.len = (uint32_t)strlen(text);
	assert_int_equal(queue_put_check(&p), 0);
	assert_int_equal(queue_submit(q, ME, 0, &p, text, &id), 0);
	assert_int_not_equal(id, 0);
	return id;
}

#define PUT(text, ...)	put((struct rgate_queue_put){ .len = 0, ##__VA_ARGS__ }, text)

/* The next one's number, or 0 */
static uint64_t take(unsigned int w, bool run, uint32_t *claim)
{
	struct task *t = queue_first(q, UINT64_MAX);

	*claim = 0;
	if (!t)
		return 0;
	queue_claim(q, t, &worker[w], run);
	*claim = t->claim;
	return t->id;
}

static void pass(uint64_t ms)
{
	while (queues_tick(&home, home.now + ms * MS) <= home.now + ms * MS)
		ms = 0;
}

static uint32_t state_of(uint64_t id)
{
	struct task *t = queue_find(q, id);

	return t ? t->state : 0;
}

/* ---- In which order ---- */

static void order(void **state)
{
	uint64_t id[6];
	uint32_t claim;

	(void)state;
	begin((struct rgate_queue_place){ .bytes = 0 });
	id[0] = PUT("a", .priority = 1);
	id[1] = PUT("b", .priority = 1, .type = 5);
	id[2] = PUT("c", .priority = 3);
	id[3] = PUT("d", .priority = 0, .type = 63);
	id[4] = PUT("e", .priority = 1);
	assert_int_equal(id[4], id[0] + 4);
	assert_null(queue_first(q, 1ULL << 7));
	assert_int_equal(queue_first(q, 1)->id, id[0]);
	assert_int_equal(queue_first(q, 1ULL << 5)->id, id[1]);
	assert_int_equal(take(0, false, &claim), id[3]);
	assert_null(queue_first(q, 1ULL << 63));
	assert_int_equal(take(0, false, &claim), id[0]);
	assert_int_equal(take(0, false, &claim), id[1]);
	assert_int_equal(take(0, false, &claim), id[4]);
	assert_int_equal(take(0, false, &claim), id[2]);
	assert_int_equal(take(0, false, &claim), 0);
	/* Who ends gives them back in the order in which they were; none was begun. */
	queue_worker_gone(q, &worker[0]);
	queue_worker_init(q, &worker[0]);
	assert_int_equal(q->count.lost, 5);
	assert_int_equal(take(1, false, &claim), id[3]);
	assert_int_equal(take(1, false, &claim), id[0]);
	assert_int_equal(take(1, false, &claim), id[1]);
	assert_int_equal(queue_find(q, id[0])->attempts, 0);
}

/* ---- A claim, and its end ---- */

static void complete_once(void **state)
{
	uint32_t first, second, n;
	uint64_t id;

	(void)state;
	begin((struct rgate_queue_place){ .attempts = 5 });
	id = PUT("x", .flags = RGATE_TASK_RESULT);
	assert_int_equal(queue_complete(q, &worker[0], id, 1, "r", 1), -ESTALE);
	assert_int_equal(take(0, true, &first), id);
	/* another one's claim, by its number */
	assert_int_equal(queue_complete(q, &worker[1], id, first, "r", 1), -ESTALE);
	queue_worker_gone(q, &worker[0]);
	queue_worker_init(q, &worker[0]);
	assert_int_equal(state_of(id), RGATE_TASK_READY);
	assert_int_equal(take(1, false, &second), id);
	assert_int_not_equal(first, second);
	assert_int_equal(queue_begin(q, &worker[1], id, second, &n), 0);
	assert_int_equal(n, 2);
	/* once begun it is not begun again */
	assert_int_equal(queue_begin(q, &worker[1], id, second, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(queue_complete(q, &worker[0], id, first, "late", 4), -ESTALE);
	assert_int_equal(queue_complete(q, &worker[1], id, first, "late", 4), -ESTALE);
	assert_int_equal(queue_complete(q, &worker[1], id, second, "good", 4), 0);
	assert_int_equal(queue_complete(q, &worker[1], id, second, "more", 4), -ESTALE);
	assert_int_equal(state_of(id), RGATE_TASK_DONE);
	assert_memory_equal(queue_find(q, id)->end, "good", 4);
	assert_int_equal(queue_bury(q, &worker[1], id, second, NULL, 0), -ESTALE);
	assert_int_equal(queue_release(q, &worker[1], id, second, 0, &n), -ESTALE);
	assert_int_equal(queue_touch(q, &worker[1], id, second), -ESTALE);
	assert_int_equal(queue_begin(q, &worker[1], id, second, &n), -ESTALE);
	assert_int_equal(queue_complete(q, &worker[1], id + 1, 1, NULL, 0), -ENOENT);
	assert_int_equal(queue_complete(q, &worker[1], 0, 1, NULL, 0), -ENOENT);
	assert_int_equal(q->count.stale, 5);
	assert_int_equal(q->count.done, 1);
	/* Nobody wants this one's result: it is gone when it is done. */
	id = PUT("y");
	assert_int_equal(take(0, false, &first), id);
	assert_int_equal(queue_complete(q, &worker[0], id, first, "r", 1), 0);
	assert_int_equal(state_of(id), 0);
	assert_int_equal(queue_complete(q, &worker[0], id, first, "r", 1), -ESTALE);
	assert_int_equal(q->count.result_bytes, 4);
}

/* Its owner has no room for the result now: the claim stays, and it can be said later. */
static void no_room_for_result(void **state)
{
	struct quota *mine;
	uint32_t claim;
	uint64_t id, rest;

	(void)state;
	begin((struct rgate_queue_place){ .attempts = 5 });
	id = PUT("x", .flags = RGATE_TASK_RESULT);
	assert_int_equal(take(0, true, &claim), id);
	mine = container_of(home.quotas.next, struct quota, of_home);
	rest = QUEUES_UID_BYTES - mine->bytes;
	assert_int_equal(quota_take(mine, rest), 0);
	assert_int_equal(queue_complete(q, &worker[0], id, claim, "r", 1), -EDQUOT);
	assert_int_equal(state_of(id), RGATE_TASK_RUNNING);
	assert_int_equal(q->count.done, 0);
	assert_int_equal(q->count.result_bytes, 0);
	quota_give(mine, rest);
	assert_int_equal(queue_complete(q, &worker[0], id, claim, "r", 1), 0);
	assert_int_equal(state_of(id), RGATE_TASK_DONE);
}

static void attempts(void **state)
{
	uint32_t claim, now;
	uint64_t id;

	(void)state;
	begin((struct rgate_queue_place){ .attempts = 2 });
	id = PUT("x");
	/* What was claimed only burns none. */
	for (unsigned int i = 0; i < 5; i++) {
		assert_int_equal(take(0, false, &claim), id);
		assert_int_equal(queue_release(q, &worker[0], id, claim, 0, &now), 0);
		assert_int_equal(now, RGATE_TASK_READY);
	}
	assert_int_equal(take(0, true, &claim), id);
	assert_int_equal(queue_release(q, &worker[0], id, claim, 7, &now), 0);
	assert_int_equal(now, RGATE_TASK_DELAYED);
	assert_int_equal(take(0, true, &claim), 0);
	pass(6);
	assert_int_equal(take(0, true, &claim), 0);
	pass(1);
	assert_int_equal(take(0, true, &claim), id);
	queue_worker_gone(q, &worker[0]);
	queue_worker_init(q, &worker[0]);
	assert_int_equal(state_of(id), RGATE_TASK_BURIED);
	assert_int_equal(queue_find(q, id)->end_len, 38);
	assert_memory_equal(queue_find(q, id)->end, "its worker ended, with no attempt left", 38);
	assert_int_equal(take(0, true, &claim), 0);
	assert_int_equal(queue_kick(q, 10), 1);
	assert_int_equal(queue_find(q, id)->end_len, 0);
	assert_int_equal(take(0, true, &claim), id);
	assert_int_equal(queue_find(q, id)->attempts, 1);
	assert_int_equal(queue_bury(q, &worker[0], id, claim, "bad input", 9), 0);
	assert_memory_equal(queue_find(q, id)->end, "bad input", 9);
	assert_int_equal(q->count.buried, 2);
	assert_int_equal(queue_discard(q, RGATE_TASK_BIT(RGATE_TASK_READY)), 0);
	assert_int_equal(queue_discard(q, RGATE_TASK_BIT(RGATE_TASK_BURIED)), 1);
	assert_int_equal(q->n, 0);
	/* its own number of attempts */
	id = PUT("y", .attempts = 1);
	assert_int_equal(take(0, true, &claim), id);
	assert_int_equal(queue_release(q, &worker[0], id, claim, 0, &now), 0);
	assert_int_equal(now, RGATE_TASK_BURIED);
	assert_int_equal(state_of(id), RGATE_TASK_BURIED);
}

static void times(void **state)
{
	uint32_t claim, other;
	uint64_t id, later;

	(void)state;
	begin((struct rgate_queue_place){ .run_ms = 100, .result_ms = 1000, .attempts = 9 });
	id = PUT("x", .flags = RGATE_TASK_RESULT);
	later = PUT("y", .delay_ms = 5000);
	assert_int_equal(take(0, false, &claim), id);
	/* What does not run has no time to. */
	pass(500);
	assert_int_equal(queue_touch(q, &worker[0], id, claim), 0);
	assert_int_equal(queue_begin(q, &worker[0], id, claim, &other), 0);
	pass(99);
	assert_int_equal(queue_touch(q, &worker[0], id, claim), 0);
	pass(99);
	assert_int_equal(state_of(id), RGATE_TASK_RUNNING);
	pass(1);
	assert_int_equal(state_of(id), RGATE_TASK_READY);
	assert_int_equal(q->count.late, 1);
	assert_int_equal(queue_complete(q, &worker[0], id, claim, "late", 4), -ESTALE);
	assert_int_equal(take(1, true, &other), id);
	assert_int_equal(queue_complete(q, &worker[1], id, other, "r", 1), 0);
	pass(999);
	assert_int_equal(state_of(id), RGATE_TASK_DONE);
	assert_int_equal(q->count.result_bytes, 1);
	pass(1);
	assert_int_equal(state_of(id), 0);
	assert_int_equal(q->count.result_bytes, 0);
	assert_int_equal(state_of(later), RGATE_TASK_DELAYED);
	assert_int_equal(queue_kick(q, 1), 1);
	assert_int_equal(state_of(later), RGATE_TASK_READY);
	pass(10000);
	assert_int_equal(state_of(later), RGATE_TASK_READY);
}

/* ---- Room ---- */

struct told {
	struct waiter w;
	unsigned int times;
	int err;
};

static void tell(struct waiter *w, int err)
{
	struct told *t = container_of(w, struct told, w);

	t->times++;
	t->err = err;
}

static struct told told(uint64_t types, uint32_t most)
{
	struct told t = { .w = { .types = types, .most = most, .over = tell } };

	return t;
}

static void room(void **state)
{
	const struct rgate_queue_put five = { .len = 5 }, big = { .len = 11 }, none = { .len = 0 };
	struct told a = told(0, 0), b = told(0, 0);
	uint64_t id;
	uint32_t claim;

	(void)state;
	begin((struct rgate_queue_place){ .bytes = 10, .tasks = 3 });
	assert_int_equal(queue_submit(q, ME, 0, &big, "01234567890", &id), -EMSGSIZE);
	PUT("01234");
	PUT("56789");
	assert_int_equal(queue_submit(q, ME, 0, &five, "abcde", &id), -EAGAIN);
	assert_int_equal(queue_submit(q, ME, 0, &none, NULL, &id), 0);
	assert_int_equal(queue_submit(q, ME, 0, &none, NULL, &id), -EAGAIN);
	assert_int_equal(q->count.full, 2);
	list_init(&a.w.in);
	list_init(&b.w.in);
	assert_int_equal(queue_await_room(q, &a.w, 11), -EMSGSIZE);
	assert_int_equal(queue_await_room(q, &a.w, 6), 0);
	assert_int_equal(queue_await_room(q, &b.w, 0), 0);
	queue_settle(q);
	id = take(0, false, &claim);
	queue_settle(q);
	assert_int_equal(a.times + b.times, 0);
	assert_int_equal(queue_complete(q, &worker[0], id, claim, "not wanted", 10), 0);
	/* Who came later does not pass who needs more. */
	queue_settle(q);
	assert_int_equal(a.times + b.times, 0);
	id = take(0, false, &claim);
	assert_int_equal(queue_complete(q, &worker[0], id, claim, NULL, 0), 0);
	queue_settle(q);
	assert_int_equal(a.times, 1);
	assert_int_equal(b.times, 1);
	assert_int_equal(a.err, 0);
}

static void results_have_a_bound(void **state)
{
	uint64_t id[2];
	uint32_t claim[2];

	(void)state;
	begin((struct rgate_queue_place){ .bytes = 10, .result_ms = 100 });
	id[0] = PUT("a", .flags = RGATE_TASK_RESULT);
	id[1] = PUT("b", .flags = RGATE_TASK_RESULT);
	take(0, true, &claim[0]);
	take(0, true, &claim[1]);
	assert_int_equal(queue_complete(q, &worker[0], id[0], claim[0], "0123456789a", 11),
			 -EMSGSIZE);
	assert_int_equal(state_of(id[0]), RGATE_TASK_RUNNING);
	assert_int_equal(queue_complete(q, &worker[0], id[0], claim[0], "012345", 6), 0);
	assert_int_equal(queue_complete(q, &worker[0], id[1], claim[1], "01234", 5), -EAGAIN);
	assert_int_equal(state_of(id[1]), RGATE_TASK_RUNNING);
	pass(100);
	assert_int_equal(queue_complete(q, &worker[0], id[1], claim[1], "01234", 5), 0);
}

static void owners_have_a_bound(void **state)
{
	static const char *const names[] = { "a", "b", "c" };
	static char data[RGATE_QUEUE_DATA_MAX];
	const struct rgate_queue_put large = { .len = sizeof(data) };
	struct queue *more[3];
	unsigned int i, n = 0;
	uint64_t id;
	int err = 0;

	(void)state;
	for (i = 0; i < 3; i++)
		more[i] = open_with(names[i], 0,
				    (struct rgate_queue_place){ .bytes = RGATE_QUEUE_BYTES_MAX });
	for (i = 0; i < 3 && err != -EDQUOT; i++)
		while (!(err = queue_submit(more[i], ME, 0, &large, data, &id)))
			n++;
	assert_int_equal(err, -EDQUOT);
	assert_true(home.bytes <= QUEUES_UID_BYTES && home.bytes + 2 * sizeof(data) >
		    QUEUES_UID_BYTES);
	assert_true(n > 16000);
	for (i = 0; i < 3; i++) {
		while (queue_discard(more[i], ~0U))
			;
		close_queue(more[i]);
	}
}

/* What finds tasks by their numbers is memory of their owner's, too, and goes with them. */
static void tables_have_a_bound(void **state)
{
	const uint64_t each = sizeof(struct task) + sizeof(struct task *);
	unsigned int i;

	(void)state;
	begin((struct rgate_queue_place){ .tasks = 70000 });
	for (i = 0; i < 70000; i++)
		PUT("");
	assert_true(home.bytes >= 70000 * each);
	while (queue_discard(q, ~0U))
		;
	assert_true(home.bytes < 4096);
	PUT("");
	assert_int_equal(queue_discard(q, ~0U), 1);
}

/* ---- Who waits ---- */

static void waits_for_tasks(void **state)
{
	struct told a = told(1, 32), b = told(UINT64_MAX, 32), c = told(1ULL << 3, 1);
	unsigned int i;

	(void)state;
	begin((struct rgate_queue_place){ .bytes = 0 });
	list_init(&a.w.in);
	list_init(&b.w.in);
	list_init(&c.w.in);
	assert_int_equal(queue_await_tasks(q, &c.w), 0);
	assert_int_equal(queue_await_tasks(q, &a.w), 0);
	assert_int_equal(queue_await_tasks(q, &b.w), 0);
	assert_int_equal(q->nclaims, 3);
	for (i = 0; i < 9; i++)
		PUT("x");
	queue_settle(q);
	/* All who wait have some, though here nobody takes any. */
	assert_int_equal(c.times, 0);
	assert_int_equal(a.times, 1);
	assert_int_equal(a.w.most, 4);
	assert_int_equal(b.times, 1);
	assert_int_equal(b.w.most, 9);
	assert_int_equal(q->nclaims, 1);
	PUT("y", .type = 3);
	queue_settle(q);
	assert_int_equal(c.times, 1);
	assert_int_equal(q->nclaims, 0);
	/* left before anything came */
	assert_int_equal(queue_await_tasks(q, &a.w), 0);
	queue_leave(q, &a.w);
	queue_leave(q, &a.w);
	queue_settle(q);
	assert_int_equal(a.times, 1);
	assert_int_equal(q->nclaims, 0);
}

static void waits_for_ends(void **state)
{
	struct told a = told(0, 0), b = told(0, 0), all = told(0, 0);
	uint32_t claim;
	uint64_t id;

	(void)state;
	begin((struct rgate_queue_place){ .bytes = 0 });
	list_init(&a.w.in);
	list_init(&b.w.in);
	list_init(&all.w.in);
	assert_true(queue_is_idle(q));
	id = PUT("x");
	assert_false(queue_is_idle(q));
	queue_await_end(queue_find(q, id), &a.w);
	queue_await_end(queue_find(q, id), &b.w);
	queue_await_idle(q, &all.w);
	queue_settle(q);
	take(0, true, &claim);
	queue_settle(q);
	assert_int_equal(a.times + b.times + all.times, 0);
	assert_int_equal(queue_bury(q, &worker[0], id, claim, "no", 2), 0);
	queue_settle(q);
	assert_int_equal(a.times + b.times + all.times, 3);
	assert_int_equal(a.err, 0);
	queue_await_end(queue_find(q, id), &a.w);
	assert_int_equal(queue_discard(q, ~0U), 1);
	assert_int_equal(a.times, 2);
	assert_int_equal(a.err, -ENOENT);
}

static void removed(void **state)
{
	struct told tasks = told(2, 1), room_ = told(0, 0), idle = told(0, 0), end = told(0, 0);
	uint32_t claim;
	uint64_t id;

	(void)state;
	begin((struct rgate_queue_place){ .tasks = 2 });
	list_init(&tasks.w.in);
	list_init(&room_.w.in);
	list_init(&idle.w.in);
	list_init(&end.w.in);
	id = PUT("x");
	PUT("y", .delay_ms = 1000);
	take(0, true, &claim);
	assert_int_equal(queue_await_tasks(q, &tasks.w), 0);
	assert_int_equal(queue_await_room(q, &room_.w, 0), 0);
	queue_await_idle(q, &idle.w);
	queue_await_end(queue_find(q, id), &end.w);
	queues_remove(q);
	assert_int_equal(tasks.err, -ESTALE);
	assert_int_equal(room_.err, -ESTALE);
	assert_int_equal(idle.err, -ESTALE);
	assert_int_equal(end.err, -ENOENT);
	assert_int_equal(home.ntasks, 0);
	assert_true(list_empty(&worker[0].tasks));
	/* The name is free at once. */
	close_queue(open_with("q", RGATE_QUEUE_EXCLUSIVE,
			      (struct rgate_queue_place){ .tasks = 1 }));
}

/* Who waits for room has it in his turn, if it is not in this one. */
static void rooms_by_parts(void **state)
{
	const struct rgate_queue_put all = { .len = 10 };
	struct told w[40];
	unsigned int i, now = 0;
	uint64_t id;

	(void)state;
	begin((struct rgate_queue_place){ .bytes = 10 });
	assert_int_equal(queue_submit(q, ME, 0, &all, "0123456789", &id), 0);
	for (i = 0; i < ARRAY_LEN(w); i++) {
		w[i] = told(0, 0);
		list_init(&w[i].w.in);
		queue_await_room(q, &w[i].w, 1);
	}
	assert_int_equal(queue_discard(q, RGATE_TASK_BIT(RGATE_TASK_READY)), 1);
	queue_settle(q);
	for (i = 0; i < ARRAY_LEN(w); i++)
		now += w[i].times;
	assert_int_equal(now, 16);
	assert_int_equal(queues_tick(&home, home.now), home.now);
	assert_int_equal(queues_tick(&home, home.now), UINT64_MAX);
	for (i = 0; i < ARRAY_LEN(w); i++)
		assert_int_equal(w[i].times, 1);
}

static unsigned int overs;

static void is_over(struct worker *w)
{
	assert_true(list_empty(&w->tasks));
	overs++;
}

/* What a worker had, and what a queue had, go a part at a time, and all of it. */
static void by_parts(void **state)
{
	const unsigned int many = 3 * QUEUE_STEPS + 7;
	unsigned int i, turns = 0;
	uint64_t first = 0, id;
	uint32_t claim;

	(void)state;
	begin((struct rgate_queue_place){ .tasks = 2 * many });
	for (i = 0; i < many; i++) {
		id = PUT("x");
		first = first ? first : id;
		take(0, false, &claim);
	}
	worker[0].over = is_over;
	overs = 0;
	queues_worker_gone(q, &worker[0]);
	assert_int_equal(q->count.now[RGATE_TASK_READY], QUEUE_STEPS);
	for (; queues_tick(&home, home.now) == home.now; turns++)
		assert_int_equal(overs, 0);
	assert_int_equal(turns, 2);
	assert_int_equal(overs, 1);
	assert_int_equal(q->count.now[RGATE_TASK_READY], many);
	assert_int_equal(q->count.lost, many);
	assert_int_equal(take(1, false, &claim), first);
	queue_worker_init(q, &worker[0]);
	/* Nobody has it open any more when the rest of it goes. */
	queues_remove(q);
	assert_true(home.ntasks >= many - QUEUE_STEPS && home.ntasks < many);
	queue_worker_gone(q, &worker[0]);
	queue_worker_gone(q, &worker[1]);
	close_queue(q);
	q = NULL;
	while (queues_tick(&home, home.now) == home.now)
		assert_true(home.ntasks > 0);
	assert_int_equal(home.ntasks, 0);
	assert_int_equal(home.n, 0);
}

/* ---- Queues ---- */

static int try_open(uid_t uid, uid_t owner, uint32_t flags, const char *name)
{
	struct queue_open as = { .owner = owner, .flags = flags };
	struct queue *out;
	int err;

	memcpy(as.place.name, name, strnlen(name, sizeof(as.place.name)));
	err = queue_open_check(&as);
	if (!err)
		err = queues_open(&home, uid, &as, &out);
	if (!err)
		close_queue(out);
	return err;
}

static void names(void **state)
{
	struct rgate_queue_info info;
	struct queue *kept, *shared;
	uint64_t next;
	unsigned int i;

	(void)state;
	assert_int_equal(try_open(ME, ME, 0, "a"), -ENOENT);
	assert_int_equal(try_open(ME, OTHER, RGATE_QUEUE_CREATE, "a"), -ENOENT);
	assert_int_equal(try_open(ME, ME, RGATE_QUEUE_CREATE, "a b"), -EINVAL);
	assert_int_equal(try_open(ME, ME, RGATE_QUEUE_CREATE, ""), -EINVAL);
	assert_int_equal(try_open(ME, ME, RGATE_QUEUE_KEEP, "a"), -EINVAL);
	assert_int_equal(try_open(ME, ME, 32, "a"), -EINVAL);
	assert_int_equal(try_open(ME, ME, RGATE_QUEUE_CREATE,
				  "01234567890123456789012345678901"
				  "23456789012345678901234567890123"),
			 -EINVAL);
	kept = open_with("kept", RGATE_QUEUE_KEEP, (struct rgate_queue_place){ .tasks = 7 });
	assert_int_equal(try_open(ME, ME, RGATE_QUEUE_CREATE | RGATE_QUEUE_EXCLUSIVE, "kept"),
			 -EEXIST);
	assert_int_equal(try_open(OTHER, ME, 0, "kept"), -EACCES);
	close_queue(kept);
	assert_int_equal(try_open(ME, ME, 0, "kept"), 0);
	shared = open_with("shared", RGATE_QUEUE_WORK, (struct rgate_queue_place){ .tasks = 7 });
	assert_int_equal(try_open(OTHER, ME, 0, "shared"), 0);
	next = queues_list(&home, OTHER, 0, &info);
	assert_string_equal(info.name, "shared");
	assert_int_equal(queues_list(&home, OTHER, next, &info), 0);
	next = queues_list(&home, ME, 0, &info);
	assert_string_equal(info.name, "kept");
	assert_int_equal(info.tasks_max, 7);
	next = queues_list(&home, ME, next, &info);
	assert_string_equal(info.name, "shared");
	close_queue(shared);
	assert_int_equal(try_open(ME, ME, 0, "shared"), -ENOENT);
	for (i = 1; i < QUEUES_UID; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%u", i);
		close_queue(open_with(name, RGATE_QUEUE_KEEP,
				      (struct rgate_queue_place){ .tasks = 1 }));
	}
	assert_int_equal(try_open(ME, ME, RGATE_QUEUE_CREATE, "more"), -EDQUOT);
	assert_int_equal(try_open(OTHER, OTHER, RGATE_QUEUE_CREATE, "more"), 0);
}

static void refused(void **state)
{
	const struct rgate_queue_put bad[] = {
		{ .len = RGATE_QUEUE_DATA_MAX + 1 }, { .delay_ms = RGATE_QUEUE_MS_MAX + 1 },
		{ .attempts = RGATE_QUEUE_ATTEMPTS_MAX + 1 }, { .type = RGATE_QUEUE_TYPES },
		{ .priority = RGATE_QUEUE_PRIORITIES }, { .flags = 2 }, { .reserved = 1 },
	};
	const struct rgate_queue_place rules[] = {
		{ .bytes = RGATE_QUEUE_BYTES_MAX + 1 }, { .tasks = RGATE_QUEUE_TASKS_MAX + 1 },
		{ .attempts = RGATE_QUEUE_ATTEMPTS_MAX + 1 }, { .run_ms = RGATE_QUEUE_MS_MAX + 1 },
		{ .result_ms = RGATE_QUEUE_MS_MAX + 1 },
	};
	struct queue_open as = { .flags = RGATE_QUEUE_CREATE };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(queue_put_check(&bad[i]), -EINVAL);
	for (i = 0; i < ARRAY_LEN(rules); i++) {
		as.place = rules[i];
		strcpy(as.place.name, "a");
		assert_int_equal(queue_open_check(&as), -EINVAL);
	}
	as = (struct queue_open){ .place = { .tasks = 1, .name = "a" } };
	assert_int_equal(queue_open_check(&as), -EINVAL);
}

static void looked_at(void **state)
{
	uint64_t after = 0, first = 0, id, n = 0, calls = 0;
	struct task *t;
	unsigned int i;

	(void)state;
	begin((struct rgate_queue_place){ .tasks = 100000 });
	for (i = 0; i < 20000; i++) {
		id = PUT("x", .type = (uint8_t)(i == 19999));
		first = first ? first : id;
	}
	/* but for the first and the last ones all are gone: a look takes no longer than it may */
	for (i = 1; i < 19990; i++)
		queue_drop(q, queue_find(q, first + i));
	do {
		t = queue_next(q, &after, RGATE_TASK_BIT(RGATE_TASK_READY));
		n += t != NULL;
		calls++;
	} while (after);
	assert_int_equal(n, 11);
	assert_int_equal(calls, 12);
	after = first + 5;
	for (n = calls = 0; (t = queue_next(q, &after, RGATE_TASK_BIT(RGATE_TASK_READY))) || after;
	     calls++)
		n += t != NULL;
	assert_int_equal(n, 10);
	assert_true(calls > 10 && calls < 20);
	after = 0;
	assert_null(queue_next(q, &after, RGATE_TASK_BIT(RGATE_TASK_BURIED)));
	assert_int_equal(after, 0);
}

/* ---- At random, against what is known of each ---- */

#define TASKS	64U

static void at_random(void **state)
{
	uint64_t id[TASKS], done = 0, taken;
	uint32_t claim[TASKS], by[TASKS], other;
	unsigned int i, k, n = 0, ended = 0;

	(void)state;
	srand(1);
	begin((struct rgate_queue_place){ .attempts = 1000, .run_ms = 50 });
	memset(claim, 0, sizeof(claim));
	for (i = 0; i < unit_rounds(20000); i++) {
		k = n ? (unsigned int)rand() % n : 0;
		switch (rand() % 8) {
		case 0:
			if (n == TASKS)
				break;
			id[n++] = PUT("x", .priority = (uint8_t)(rand() % 4),
				      .type = (uint8_t)(rand() % 64),
				      .delay_ms = (uint32_t)(rand() % 3));
			break;
		case 1:
		case 2:
			other = (uint32_t)rand() % 2;
			taken = take(other, rand() % 2, &claim[TASKS - 1]);
			for (k = 0; taken && id[k] != taken; k++)
				;
			if (!taken)
				break;
			claim[k] = queue_find(q, taken)->claim;
			by[k] = other;
			break;
		case 3:
			if (n && !queue_complete(q, &worker[by[k] % 2], id[k], claim[k], NULL, 0)) {
				assert_false(done & 1ULL << k);
				done |= 1ULL << k;
				ended++;
			}
			break;
		case 4:
			if (n)
				(void)queue_release(q, &worker[by[k] % 2], id[k], claim[k],
						    (uint32_t)rand() % 4, &other);
			break;
		case 5:
			if (n)
				(void)queue_bury(q, &worker[by[k] % 2], id[k], claim[k], "r", 1);
			break;
		case 6:
			pass((uint64_t)(rand() % 40));
			break;
		default:
			if (rand() % 8)
				break;
			queue_worker_gone(q, &worker[0]);
			queue_worker_init(q, &worker[0]);
			(void)queue_kick(q, 3);
		}
		queue_settle(q);
		/* None is lost: those that were not completed are there. */
		for (k = 0; k < n; k++)
			assert_true(!(done & 1ULL << k) == !!state_of(id[k]));
		if (ended == TASKS) {
			n = ended = 0;
			done = 0;
		}
	}
	assert_int_equal(q->count.submitted - q->count.done, q->n);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(order), TEST(complete_once), TEST(no_room_for_result), TEST(attempts), TEST(times),
	TEST(room), TEST(results_have_a_bound), TEST(owners_have_a_bound),
	TEST(tables_have_a_bound), TEST(waits_for_tasks), TEST(waits_for_ends), TEST(removed),
	TEST(by_parts), TEST(rooms_by_parts), TEST(names), TEST(refused), TEST(looked_at),
	TEST(at_random),
};

UNIT_MAIN_ALONE(tests)
