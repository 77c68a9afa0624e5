// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests that have to wait: who is told that they can go on, and what waiting may cost. */
#include "req_bed.h"

#include <errno.h>
#include <unistd.h>

#include "engine_priv.h"

#define ASK(o, ...) ((struct rgate_request){ .op = (o), ##__VA_ARGS__ })

static struct rgate_engine *e;

static int up(void **state)
{
	(void)state;
	e = bed_engine();
	return 0;
}

static int down(void **state)
{
	(void)state;
	while (late.n)
		late_end(rgate_req_get(late.held[0])->cookie, 0, 0);
	bed_run(e);
	rgate_engine_destroy(e);
	return 0;
}

static void leaves(struct client *c)
{
	rgate_seat_remove(c->seat);
	bed_run(e);
	client_close(c);
}

static uint64_t under_way(void)
{
	struct rgate_engine_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_engine_stats(e, &st), 0);
	return st.under_way;
}

/* A session of user 5, who may have @requests under way */
static void limited(struct client *c, uint32_t requests)
{
	struct rgate_limits lim;
	struct rgate_seat_opts o;

	rgate_limits_init(&lim);
	lim.requests = requests;
	o = RGATE_OPTS(rgate_seat_opts, .uid = 5, .requests = 64, .completions = 64,
		       .limits = &lim);
	assert_int_equal(client_open(c, e, &o), 0);
}

static void expect(struct client *c, uint64_t cookie, int result)
{
	struct rgate_completion done;

	bed_run(e);
	assert_true(client_poll(c, &done));
	assert_int_equal(done.cookie, cookie);
	assert_int_equal(done.result, result);
}

/* Ends that are not told make room, too; no credit comes for them. */
static void silent_ends(void **state)
{
	static struct client c;
	uint64_t i;

	(void)state;
	client_new(&c, e, 1);
	for (i = 0; i < 64; i++)
		client_submit(&c, ASK(LATE_WAIT, .cookie = 100 + i,
				      .flags = RGATE_REQ_NO_COMPLETION));
	bed_run(e);
	client_submit(&c, ASK(RGATE_REQ_NOP, .cookie = 5));
	bed_run(e);
	assert_int_equal(c.area.server->need, RGATE_REQ_NEED_CREDIT);
	late_end(130, 0, 0);
	expect(&c, 5, 0);
	leaves(&c);
}

/* What came free of the user's limit goes to who can use it. */
static void passed_on(void **state)
{
	static struct client busy, full, next;
	uint64_t i;

	(void)state;
	limited(&busy, 1);
	limited(&full, 1);
	limited(&next, 1);
	for (i = 0; i < 64; i++)
		client_submit(&full, ASK(RGATE_REQ_NOP));
	bed_run(e);
	client_submit(&busy, ASK(LATE_WAIT, .cookie = 1));
	bed_run(e);
	client_submit(&full, ASK(LATE_WAIT, .cookie = 2));
	bed_run(e);
	client_submit(&next, ASK(LATE_WAIT, .cookie = 3));
	bed_run(e);
	assert_int_equal(late.n, 1);
	/* The first that waits has no place for another completion. */
	late_end(1, 0, 0);
	bed_run(e);
	assert_true(late_has(3));
	late_end(3, 0, 0);
	expect(&next, 3, 0);
	leaves(&busy);
	leaves(&full);
	leaves(&next);
}

/* The engine's own operations are under the user's limit where they have to wait. */
static void chained(void **state)
{
	static struct client c;
	uint64_t i;

	(void)state;
	limited(&c, 4);
	client_submit(&c, ASK(LATE_WAIT, .cookie = 0, .flags = RGATE_REQ_LINK));
	for (i = 1; i < 40; i++)
		client_submit(&c, ASK(RGATE_REQ_NOP, .cookie = i, .flags = RGATE_REQ_LINK));
	client_submit(&c, ASK(RGATE_REQ_NOP, .cookie = 40));
	bed_run(e);
	assert_int_equal(under_way(), 4);
	late_end(0, 0, 0);
	for (i = 0; i <= 40; i++)
		expect(&c, i, 0);
	leaves(&c);
}

/* Requests with much memory take more of a turn, whatever comes of them. */
static void large_ones(void **state)
{
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = 5, .requests = 64,
						    .completions = 64, .memory = 1 << 20);
	static struct client large, small;
	struct rgate_completion done;
	unsigned int i;

	(void)state;
	assert_int_equal(client_open(&large, e, &o), 0);
	client_new(&small, e, 1);
	bed_run(e);
	for (i = 0; i < 60; i++) {
		client_submit(&large, ASK(RGATE_REQ_LOG_WRITE, .cookie = i, .len = 1 << 20));
		client_submit(&small, ASK(RGATE_REQ_NOP, .cookie = i));
	}
	rgate_engine_turn(e);
	assert_true(client_poll(&large, &done));
	assert_int_equal(done.result, -EMSGSIZE);
	assert_false(client_poll(&large, &done));
	for (i = 0; i < 60; i++)
		assert_true(client_poll(&small, &done));
	for (i = 1; i < 60; i++)
		expect(&large, i, -EMSGSIZE);
	leaves(&large);
	leaves(&small);
}

/* Likewise where they begin because what they were linked to has ended. */
static void large_chains(void **state)
{
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = 5, .requests = 64,
						    .completions = 64, .memory = 1 << 20);
	static struct client c;
	uint64_t i;

	(void)state;
	assert_int_equal(client_open(&c, e, &o), 0);
	for (i = 0; i < 20; i++) {
		client_submit(&c, ASK(LATE_WAIT, .cookie = i, .flags = RGATE_REQ_LINK));
		client_submit(&c, ASK(LATE_MEM, .cookie = 100 + i, .len = 1 << 20));
	}
	bed_run(e);
	for (i = 0; i < 20; i++)
		late_end(i, 0, 0);
	rgate_engine_turn(e);
	assert_int_equal(late.n, 1);
	bed_run(e);
	assert_int_equal(late.n, 20);
	while (late.n)
		late_end(rgate_req_get(late.held[0])->cookie, 0, 0);
	bed_run(e);
	leaves(&c);
}

/* A cancel that waited behind a chain goes on when the chain has ended, whoever takes its place. */
static void cancel_after_chain(void **state)
{
	static struct client c, other;
	struct rgate_completion done;
	unsigned int i;

	(void)state;
	limited(&c, 2);
	limited(&other, 2);
	client_submit(&c, ASK(LATE_WAIT, .cookie = 1));
	client_submit(&c, ASK(LATE_WAIT, .cookie = 2, .flags = RGATE_REQ_LINK));
	bed_run(e);
	client_submit(&other, ASK(LATE_WAIT, .cookie = 9));
	bed_run(e);
	client_submit(&c, ASK(RGATE_REQ_CANCEL, .cookie = 3, .a0 = 1));
	bed_run(e);
	assert_int_equal(late.n, 2);
	late_end(2, 0, 0);
	bed_run(e);
	assert_true(late_has(9) && !late_has(1));
	for (i = 0; i < 3; i++) {
		assert_true(client_poll(&c, &done));
		assert_int_equal(done.result, done.cookie == 1 ? -ECANCELED : 0);
	}
	late_end(9, 0, 0);
	expect(&other, 9, 0);
	leaves(&c);
	leaves(&other);
}

static unsigned int longest_bucket(void)
{
	unsigned int n, most = 0;
	const struct link *l;
	uint64_t i;

	for (i = 0; i < e->cookies.places; i++) {
		n = 0;
		for (l = e->cookies.place[i].next; l != &e->cookies.place[i]; l = l->next)
			n++;
		most = n > most ? n : most;
	}
	return most;
}

/* No choice of cookies makes the search for one long. */
static void cookies(void **state)
{
	static struct client c;
	unsigned int shift;
	uint64_t i;

	(void)state;
	client_new(&c, e, 1);
	for (shift = 0; shift <= 58; shift++) {
		for (i = 0; i < 64; i++)
			client_submit(&c, ASK(LATE_WAIT, .cookie = i << shift));
		bed_run(e);
		/* of 64 in 64 places; more than 12 by chance is less than one in 10^7 */
		assert_in_range(longest_bucket(), 1, 12);
		for (i = 0; i < 64; i++)
			late_end(i << shift, 0, 0);
		for (i = 0; i < 64; i++)
			expect(&c, i << shift, 0);
	}
	leaves(&c);
}

/* Answered on the spot, in their order, however they stand between others */
static void run_among_others(void **state)
{
	static const struct {
		struct rgate_request q;
		int result;
	} all[] = {
		{ { .op = RGATE_REQ_NOP }, 0 },
		{ { .op = RGATE_REQ_NOP, .a0 = 7 }, 0 },
		{ { .op = RGATE_REQ_NOP, .a1 = 7 }, -EINVAL },
		{ { .op = RGATE_REQ_TIME, .a0 = 99 }, -EINVAL },
		{ { .op = RGATE_REQ_PROBE, .a0 = LATE }, 0 },
		{ { .op = RGATE_REQ_NOP, .flags = RGATE_REQ_LINK }, 0 },
		{ { .op = RGATE_REQ_NOP }, 0 },
		{ { .op = RGATE_REQ_NOP, .a1 = 1, .flags = RGATE_REQ_LINK }, -EINVAL },
		{ { .op = RGATE_REQ_NOP }, -ECANCELED },
		{ { .op = RGATE_REQ_CANCEL, .a0 = 99 }, -ENOENT },
		{ { .op = RGATE_REQ_NOP, .flags = RGATE_REQ_DRAIN }, 0 },
		{ { .op = RGATE_REQ_NOP, .deadline_us = 1000000 }, 0 },
		{ { .op = RGATE_REQ_NOP, .cls = RGATE_CLASS_COUNT }, -EINVAL },
		{ { .op = RGATE_REQ_NOP }, 0 },
	};
	struct rgate_engine_stats st = { .sz = sizeof(st) };
	struct rgate_request q;
	static struct client c;
	unsigned int i, round;

	(void)state;
	client_new(&c, e, 1);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < ARRAY_LEN(all); i++) {
			q = all[i].q;
			q.cookie = i + 1;
			client_submit(&c, q);
		}
		for (i = 0; i < ARRAY_LEN(all); i++)
			expect(&c, i + 1, all[i].result);
	}
	assert_int_equal(rgate_engine_stats(e, &st), 0);
	assert_int_equal(st.accepted, 50 * ARRAY_LEN(all));
	assert_int_equal(st.completions, 50 * ARRAY_LEN(all));
	assert_int_equal(st.refused, 50 * 3);
	assert_int_equal(st.under_way, 0);
	leaves(&c);
}

/* As many as there are places, and what is under way has its own among them */
static void run_without_places(void **state)
{
	struct rgate_engine_stats st = { .sz = sizeof(st) };
	struct rgate_completion done;
	static struct client c;
	unsigned int i, k;

	(void)state;
	client_new(&c, e, 1);
	client_submit(&c, ASK(LATE_WAIT, .cookie = 1000));
	for (i = 0; i < 64; i++) {
		client_submit(&c, ASK(RGATE_REQ_NOP, .cookie = i, .a0 = i + 1));
		if (i == 31)
			bed_run(e);
	}
	bed_run(e);
	assert_int_equal(rgate_engine_stats(e, &st), 0);
	assert_int_equal(st.completions, 63);
	late_end(1000, 5, 0);
	bed_run(e);
	assert_int_equal(rgate_engine_stats(e, &st), 0);
	assert_int_equal(st.completions, 64);
	for (i = k = 0; k < 65; k++) {
		assert_true(client_poll(&c, &done));
		if (done.cookie == 1000) {
			assert_int_equal(k, 63);
			assert_int_equal(done.result, 5);
		} else {
			assert_int_equal(done.cookie, i++);
			assert_int_equal(done.value, i);
		}
		client_kick(&c);
		bed_run(e);
	}
	assert_false(client_poll(&c, &done));
	leaves(&c);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(silent_ends), TEST(passed_on), TEST(chained), TEST(large_ones), TEST(large_chains),
	TEST(cancel_after_chain), TEST(cookies), TEST(run_among_others), TEST(run_without_places),
};

UNIT_MAIN_ALONE(tests)
