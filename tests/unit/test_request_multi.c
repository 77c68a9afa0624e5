// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests with more than one completion: all have their places, and exactly one is the last. */
#include "req_bed.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#define PLACES	64U
#define MOST	(PLACES - RGATE_REQ_BATCH)	/* of one request */
#define MORE	RGATE_COMP_MORE

static struct rgate_engine *e;
static struct client a;

static int setup(void **state)
{
	(void)state;
	e = bed_engine();
	client_new(&a, e, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	while (late.n)
		late_end(rgate_req_get(late.held[0])->cookie, 0, 0);
	bed_run(e);
	rgate_engine_destroy(e);
	client_close(&a);
	return 0;
}

#define ASK(o, ...) ((struct rgate_request){ .op = (o), ##__VA_ARGS__ })
#define MANY(c, n, ...) \
	ASK(LATE_MANY, .cookie = (c), .a1 = (n), .flags = RGATE_REQ_MULTI, ##__VA_ARGS__)

static struct rgate_engine_stats stats(void)
{
	struct rgate_engine_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_engine_stats(e, &st), 0);
	return st;
}

static void expect_of(struct client *c, uint64_t cookie, int result, uint32_t flags)
{
	struct rgate_completion done;

	bed_run(e);
	assert_true(client_poll(c, &done));
	assert_int_equal(done.cookie, cookie);
	assert_int_equal(done.result, result);
	assert_int_equal(done.flags, flags);
}

static void expect(uint64_t cookie, int result, uint32_t flags)
{
	expect_of(&a, cookie, result, flags);
}

static void expect_none(void)
{
	struct rgate_completion done;

	bed_run(e);
	assert_false(client_poll(&a, &done));
}

static void asks(struct rgate_request q, int result)
{
	q.cookie = 4711;
	client_submit(&a, q);
	expect(4711, result, 0);
}

#define CANCEL	99	/* cookie of what cancels */

static void cancel(uint64_t cookie)
{
	client_submit(&a, ASK(RGATE_REQ_CANCEL, .a0 = cookie, .cookie = CANCEL));
}

/* Those before the last one, from @from on */
static void tell(uint64_t cookie, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		late_more(cookie, (int)i, i);
}

/* The last one is kept for the end, which the service makes when it hears that it has no more. */
static void used_up(void **state)
{
	struct rgate_completion done;
	uint32_t i;

	(void)state;
	client_submit(&a, MANY(1, 4));
	expect_none();
	assert_int_equal(rgate_req_shots(late.held[0]), 3);
	assert_int_equal(late_more(1, 10, 100), 2);
	expect(1, 10, MORE);
	assert_int_equal(late_more(1, 11, 101), 1);
	assert_int_equal(late_more(1, -EIO, 102), 0);
	bed_run(e);
	assert_int_equal(late.over, 0);
	/* what is beyond has no place */
	assert_int_equal(late_more(1, 13, 103), 0);
	late_end(1, -ENOBUFS, 0);
	for (i = 0; i < 2; i++) {
		bed_run(e);
		assert_true(client_poll(&a, &done));
		assert_int_equal(done.result, i ? -EIO : 11);
		/* a failure has no value */
		assert_int_equal(done.value, i ? 0 : 101);
		assert_int_equal(done.flags, MORE);
	}
	assert_int_equal(late.over, 1);
	expect(1, -ENOBUFS, 0);
	expect_none();
	assert_int_equal(stats().under_way, 0);
	assert_int_equal(stats().completions, 4);
	assert_int_equal(stats().accepted, 1);
	/* one that can have many may have one */
	client_submit(&a, ASK(LATE_MANY, .cookie = 2));
	expect_none();
	assert_int_equal(rgate_req_shots(late.held[0]), 0);
	late_end(2, 5, 0);
	expect(2, 5, 0);
	assert_int_equal(late.over, 2);
}

/* Of several, and of others, in the order in which they come */
static void out_of_step(void **state)
{
	(void)state;
	client_submit(&a, MANY(1, 10));
	client_submit(&a, MANY(2, 10));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 3));
	expect_none();
	late_more(2, 20, 0);
	expect(2, 20, MORE);
	late_end(3, 30, 0);
	late_more(1, 10, 0);
	expect(3, 30, 0);
	expect(1, 10, MORE);
	/* ended by an error of its own, or by none */
	late_end(2, -EIO, 0);
	expect(2, -EIO, 0);
	late_more(1, 11, 0);
	late_end(1, 7, 0);
	expect(1, 11, MORE);
	expect(1, 7, 0);
	assert_int_equal(stats().under_way, 0);
}

static void hostile(void **state)
{
	const struct {
		struct rgate_request q;
		int result;
	} cases[] = {
		{ MANY(0, 0), -EINVAL }, { MANY(0, 1), -EINVAL },
		{ MANY(0, MOST + 1), -ENOSPC }, { MANY(0, PLACES), -ENOSPC },
		{ MANY(0, RGATE_REQ_PLACES_MAX), -ENOSPC },
		{ MANY(0, RGATE_REQ_PLACES_MAX + 1), -EINVAL },
		{ MANY(0, 1U << 31), -EINVAL }, { MANY(0, 1ULL << 32), -EINVAL },
		{ MANY(0, (1ULL << 32) + 2), -EINVAL }, { MANY(0, UINT64_MAX), -EINVAL },
		{ MANY(0, 4, .a0 = 1), -EINVAL }, { MANY(0, 4, .len = 1), -EINVAL },
		{ ASK(LATE_MANY, .a1 = 4), -EINVAL },
		{ ASK(LATE_MANY, .a1 = 4, .flags = RGATE_REQ_MULTI | RGATE_REQ_LINK), -EINVAL },
		{ ASK(LATE_MANY, .a1 = 4, .flags = RGATE_REQ_MULTI | RGATE_REQ_DRAIN), -EINVAL },
		{ ASK(LATE_MANY, .a1 = 4,
		      .flags = RGATE_REQ_MULTI | RGATE_REQ_NO_COMPLETION), -EINVAL },
		{ ASK(LATE_WAIT, .a1 = 4, .flags = RGATE_REQ_MULTI), -EOPNOTSUPP },
		{ ASK(RGATE_REQ_NOP, .flags = RGATE_REQ_MULTI), -EOPNOTSUPP },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		asks(cases[i].q, cases[i].result);
		/* What one with LINK has failed with ends the next one. */
		if (cases[i].q.flags & RGATE_REQ_LINK)
			asks(ASK(RGATE_REQ_NOP), -ECANCELED);
	}
	assert_int_equal(late.n, 0);
	assert_int_equal(stats().under_way, 0);
	assert_int_equal(stats().refused, ARRAY_LEN(cases));
	/* nothing of them is left behind */
	client_submit(&a, MANY(1, MOST));
	expect_none();
	assert_int_equal(late.n, 1);
}

static void probed(void **state)
{
	struct rgate_completion done;

	(void)state;
	client_submit(&a, ASK(RGATE_REQ_PROBE, .a0 = LATE, .a1 = RGATE_PROBE_MULTI));
	client_submit(&a, ASK(RGATE_REQ_PROBE, .a0 = RGATE_REQ_CORE, .a1 = RGATE_PROBE_MULTI));
	bed_run(e);
	assert_true(client_poll(&a, &done));
	assert_int_equal(done.value, 1U << (LATE_MANY & 63));
	assert_true(client_poll(&a, &done));
	assert_int_equal(done.value, 0);
	asks(ASK(RGATE_REQ_PROBE, .a0 = LATE, .a1 = 3), -EINVAL);
	asks(ASK(RGATE_REQ_PROBE, .a0 = LATE, .a1 = 1ULL << 32 | RGATE_PROBE_MULTI), -EINVAL);
}

/* All places but a batch are one request's: others use that one, and it loses none. */
static void full(void **state)
{
	struct rgate_completion done;
	uint32_t i;

	(void)state;
	client_submit(&a, MANY(1, MOST));
	expect_none();
	/* nobody else gets so many, */
	asks(MANY(0, 2), -ENOSPC);
	/* but those who need one: here nothing is taken */
	for (i = 0; i < RGATE_REQ_BATCH + 10; i++)
		client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 1000 + i));
	bed_run(e);
	assert_int_equal(stats().completions, RGATE_REQ_BATCH);
	assert_int_equal(a.area.server->need, RGATE_REQ_NEED_CREDIT);
	tell(1, MOST - 1);
	late_end(1, -ENOBUFS, 0);
	bed_run(e);
	/* exactly full: all that was published is still there */
	assert_int_equal(stats().completions, 1 + PLACES - 1);
	for (i = 0; i < RGATE_REQ_BATCH - 1; i++) {
		assert_true(client_poll(&a, &done));
		assert_int_equal(done.cookie, 1000 + i);
	}
	for (i = 0; i < MOST - 1; i++) {
		assert_true(client_poll(&a, &done));
		assert_int_equal(done.cookie, 1);
		assert_int_equal(done.result, i);
		assert_int_equal(done.flags, MORE);
	}
	expect(1, -ENOBUFS, 0);
	for (i = RGATE_REQ_BATCH - 1; i < RGATE_REQ_BATCH + 10; i++)
		expect(1000 + i, 0, 0);
	assert_int_equal(stats().under_way, 0);
}

/* However few of a batch have come, what cancels gets through, and the next one with many. */
static void always_a_place(void **state)
{
	uint32_t before;

	(void)state;
	for (before = 0; before < 2 * RGATE_REQ_BATCH; before++) {
		asks(ASK(RGATE_REQ_NOP), 0);
		client_submit(&a, MANY(1, MOST));
		expect_none();
		assert_int_equal(late.n, 1);
		/* its answer comes first, and the other's end then */
		client_submit(&a, ASK(RGATE_REQ_CANCEL, .a0 = 1, .cookie = 2));
		expect(2, 0, 0);
		expect(1, -ECANCELED, 0);
	}
}

/* It waits for completions to be taken, as others do, and for nothing else. */
static void waits_for_credit(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 40; i++)
		client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = i));
	bed_run(e);
	client_submit(&a, MANY(1, MOST));
	bed_run(e);
	assert_int_equal(late.n, 0);
	for (i = 0; i < 40; i++)
		expect(i, 0, 0);
	expect_none();
	assert_int_equal(late.n, 1);
}

/* Those that are given back unused are free at once, though no credit says so. */
static void end_frees(void **state)
{
	uint32_t i;

	(void)state;
	client_submit(&a, MANY(1, MOST));
	bed_run(e);
	for (i = 0; i < RGATE_REQ_BATCH; i++)
		client_submit(&a, ASK(LATE_SURE, .cookie = 100 + i));
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 2));
	expect_none();
	assert_int_equal(a.area.server->need, RGATE_REQ_NEED_CREDIT);
	late_end(1, -EIO, 0);
	expect(1, -EIO, 0);
	expect(2, 0, 0);
	for (i = 0; i < RGATE_REQ_BATCH; i++)
		late_end(100 + i, 0, 0);
	for (i = 0; i < RGATE_REQ_BATCH; i++)
		expect(100 + i, 0, 0);
}

static void cancelled(void **state)
{
	(void)state;
	client_submit(&a, MANY(1, 8));
	expect_none();
	tell(1, 2);
	cancel(1);
	expect(1, 0, MORE);
	expect(1, 1, MORE);
	expect(CANCEL, 0, 0);
	expect(1, -ECANCELED, 0);
	cancel(1);
	expect(CANCEL, -ENOENT, 0);
	/* what was told before the end comes, though it is not wanted any more */
	late.slow = true;
	client_submit(&a, MANY(2, 8));
	expect_none();
	cancel(2);
	expect(CANCEL, 0, 0);
	tell(2, 3);
	cancel(2);
	expect(2, 0, MORE);
	expect(2, 1, MORE);
	expect(2, 2, MORE);
	expect(CANCEL, -EALREADY, 0);
	tell(2, 1);
	late_end(2, -EIO, 0);
	expect(2, 0, MORE);
	expect(2, -ECANCELED, 0);
	assert_int_equal(stats().under_way, 0);
}

/* Cancelled when all but the end was told, and when that was, too */
static void cancelled_last(void **state)
{
	(void)state;
	late.slow = true;
	client_submit(&a, MANY(3, 2));
	expect_none();
	assert_int_equal(late_more(3, 0, 0), 0);
	cancel(3);
	expect(3, 0, MORE);
	expect(CANCEL, 0, 0);
	late_end(3, -ENOBUFS, 0);
	expect(3, -ECANCELED, 0);
	client_submit(&a, MANY(4, 2));
	expect_none();
	late_more(4, 0, 0);
	late_end(4, -ENOBUFS, 0);
	cancel(4);
	expect(4, 0, MORE);
	expect(4, -ENOBUFS, 0);
	expect(CANCEL, -ENOENT, 0);
	assert_int_equal(stats().under_way, 0);
}

static void timed_out(void **state)
{
	struct rgate_completion done;
	unsigned int n = 0;

	(void)state;
	client_submit(&a, MANY(1, 8, .deadline_us = 2000));
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 2));
	bed_run(e);
	tell(1, 1);
	for (;;) {
		bed_run(e);
		if (!client_poll(&a, &done))
			continue;
		n++;
		if (done.cookie == 1 && !done.flags)
			break;
	}
	assert_int_equal(done.result, -ETIMEDOUT);
	assert_int_equal(n, 3);
	assert_int_equal(stats().timed_out, 1);
}

/* It may follow one with LINK: its places are reserved while it waits. */
static void in_a_chain(void **state)
{
	(void)state;
	client_submit(&a, ASK(LATE_WAIT, .cookie = 1, .flags = RGATE_REQ_LINK));
	client_submit(&a, MANY(2, MOST - 1));
	expect_none();
	asks(MANY(0, 2), -ENOSPC);
	late_end(1, 0, 0);
	expect(1, 0, 0);
	tell(2, 1);
	expect(2, 0, MORE);
	late_end(2, 0, 0);
	expect(2, 0, 0);
	client_submit(&a, ASK(LATE_WAIT, .cookie = 1, .flags = RGATE_REQ_LINK));
	client_submit(&a, MANY(2, MOST - 1));
	expect_none();
	late_end(1, -EIO, 0);
	expect(1, -EIO, 0);
	expect(2, -ECANCELED, 0);
	/* What has not begun has nothing to give back. */
	assert_int_equal(late.over, 1);
	asks(MANY(0, MOST + 1), -ENOSPC);
	client_submit(&a, MANY(3, MOST));
	expect_none();
	assert_int_equal(late.n, 1);
}

/* What is told after the session's end is nobody's, and harms nobody. */
static void gone(void **state)
{
	static struct client c;
	uint64_t told;

	(void)state;
	client_new(&c, e, 1);
	client_submit(&c, MANY(1, MOST));
	bed_run(e);
	tell(1, 2);
	late.slow = true;
	rgate_seat_remove(c.seat);
	client_close(&c);
	bed_run(e);
	assert_int_equal(late.asked, 1);
	assert_int_equal(c.over, 0);
	told = stats().completions;
	tell(1, 5);
	bed_run(e);
	late_more(1, 1, 1);
	late_end(1, -ENOBUFS, 0);
	bed_run(e);
	assert_int_equal(stats().completions, told);
	assert_int_equal(c.over, 1);
	assert_int_equal(stats().seats, 1);
	assert_int_equal(stats().under_way, 0);
}

static void new_limited(struct client *c, uid_t uid, uint32_t requests)
{
	struct rgate_limits lim;
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = uid, .requests = 64,
						    .completions = 64, .limits = &lim);

	rgate_limits_init(&lim);
	lim.requests = requests;
	assert_int_equal(client_open(c, e, &o), 0);
}

static void leaves(struct client *c)
{
	rgate_seat_remove(c->seat);
	bed_run(e);
	client_close(c);
}

/* A user's limit counts completions to come, of all his sessions; each that has come frees one. */
static void limits(void **state)
{
	static struct client c, d, f;

	(void)state;
	new_limited(&c, 5, 10);
	new_limited(&d, 5, 10);
	new_limited(&f, 5, 10);
	client_submit(&c, MANY(1, 11));
	expect_of(&c, 1, -EDQUOT, 0);
	client_submit(&c, MANY(1, 8));
	client_submit(&c, MANY(2, 3));
	expect_of(&c, 2, -EDQUOT, 0);
	client_submit(&d, ASK(LATE_WAIT, .cookie = 3));
	client_submit(&d, ASK(LATE_WAIT, .cookie = 4));
	bed_run(e);
	client_submit(&d, ASK(LATE_WAIT, .cookie = 5));
	bed_run(e);
	client_submit(&f, ASK(LATE_WAIT, .cookie = 6));
	bed_run(e);
	assert_int_equal(late.n, 3);
	/* refused, also where others have to wait */
	client_submit(&c, MANY(7, 2));
	expect_of(&c, 7, -EDQUOT, 0);
	tell(1, 1);
	expect_of(&c, 1, 0, MORE);
	assert_int_equal(late.n, 4);
	assert_true(late_has(5));
	/* What it did not use goes to all that wait. */
	client_submit(&d, ASK(LATE_WAIT, .cookie = 8));
	bed_run(e);
	late_end(1, -EIO, 0);
	expect_of(&c, 1, -EIO, 0);
	assert_true(late_has(6) && late_has(8));
	leaves(&c);
	leaves(&d);
	leaves(&f);
	assert_int_equal(stats().users, 1);
}

/* ---- Told by a thread, cancelled by another ---- */

static uint32_t begun, stop;

static void *service(void *arg)
{
	uint32_t seen = 0;
	uint64_t rnd = 7;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&begun, __ATOMIC_ACQUIRE) == seen) {
			sched_yield();
			continue;
		}
		seen++;
		while (late_more(seen, 0, 0) && unit_random(&rnd) % 8)
			;
		if (unit_random(&rnd) & 1)
			sched_yield();
		late_end(seen, -ENOBUFS, 0);
	}
	return NULL;
}

/* Exactly one end each, whoever was first, and no more than there are places for */
static void races(void **state)
{
	const unsigned int rounds = unit_rounds(2000);
	struct rgate_completion done;
	uint32_t i, n, after;
	pthread_t t;
	bool ended;

	(void)state;
	begun = stop = 0;
	/* the thread ends it, whether it is wanted or not */
	late.slow = true;
	assert_int_equal(pthread_create(&t, NULL, service, NULL), 0);
	for (i = 1; i <= rounds; i++) {
		client_submit(&a, MANY(i, 5));
		bed_run(e);
		__atomic_store_n(&begun, i, __ATOMIC_RELEASE);
		if (i & 1)
			sched_yield();
		client_submit(&a, ASK(RGATE_REQ_CANCEL, .a0 = i, .cookie = UINT64_MAX));
		for (n = after = 0, ended = false; !ended || !after;) {
			rgate_engine_turn(e);
			if (!client_poll(&a, &done))
				continue;
			if (done.cookie == UINT64_MAX) {
				assert_true(!done.result || done.result == -ENOENT);
				after++;
				continue;
			}
			assert_int_equal(done.cookie, i);
			assert_false(ended);
			assert_true(++n <= 5);
			ended = !done.flags;
			assert_true(ended == (done.result < 0));
		}
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	assert_int_equal(stats().under_way, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(used_up), TEST(out_of_step), TEST(hostile), TEST(probed), TEST(full),
		TEST(always_a_place), TEST(waits_for_credit), TEST(end_frees), TEST(cancelled),
		TEST(cancelled_last), TEST(timed_out), TEST(in_a_chain), TEST(gone),
		TEST(limits), TEST(races),
	};

	return unit_run(__FILE__, tests, ARRAY_LEN(tests));
}
