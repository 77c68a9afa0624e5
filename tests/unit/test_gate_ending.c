// SPDX-License-Identifier: MIT OR GPL-2.0
/* A request at a gateway, and for how long what is to be said of it is waited for, or its end */
#include "asks_bed.h"

#include <errno.h>
#include <time.h>

#define SILENCE_MS	1000U
#define N		64U

static uint64_t ahead;			/* the clock is, ns */

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	const int err = __real_clock_gettime(id, ts);
	const uint64_t ns = (uint64_t)ts->tv_nsec + ahead;

	ts->tv_sec += (time_t)(ns / 1000000000);
	ts->tv_nsec = (long)(ns % 1000000000);
	return err;
}

static void pass_ms(uint64_t ms)
{
	ahead += ms * 1000000;
	asks_turn();
}

/* It is that of the question 1, with the cookie 2. */
static int setup_wanted(void **state)
{
	(void)state;
	asks_make(SILENCE_MS);
	submit(OPEN, 1);
	answer(0, 0);
	say(end_of(0, 0, 77));
	assert_int_equal(asks_result(1, NULL), 0);
	submit(ACCEPT, 2, .handle = 77, .a1 = N, .flags = RGATE_REQ_MULTI);
	answer(1, 0);
	return 0;
}

/* The gateway knows that it is to end. */
static int setup(void **state)
{
	(void)setup_wanted(state);
	client_submit(&prog, (struct rgate_request){
		.op = RGATE_REQ_CANCEL, .cookie = 99, .a0 = 2 });
	assert_int_equal(asks_result(99, NULL), -EALREADY);
	assert_int_equal(question(2).kind, GATE_CANCEL);
	answer(2, 0);
	return 0;
}

/* For longer than anything is waited for there is no place to say what was heard. */
static void no_place(void **state)
{
	unsigned int i;

	(void)state;
	say(more_of(1, 0, 100));
	came(2, 100);
	other_goes_down();
	o.peer.full = true;
	other_comes_up(7);
	for (i = 0; i < 4; i++)
		pass_ms(600);
	assert_int_equal(o.peer.asked.n, 2);
	o.peer.full = false;
	asks_hears(1, 1);
	say(more_of(1, 1, 101));
	came(2, 101);
	say(last_of(1, 2, -EMFILE));
	assert_int_equal(asks_result(2, NULL), -EMFILE);
}

/* It had much to tell before, and tells it slowly. */
static void goes_on(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		pass_ms(900);
		say(more_of(1, i, 100 + i));
		came(2, 100 + i);
	}
	pass_ms(900);
	say(last_of(1, i, -ECANCELED));
	assert_int_equal(asks_result(2, NULL), -ECANCELED);
	/* the session has all that it had there */
	submit(POLL, 3, .handle = 77, .a0 = 1);
	assert_int_equal(question(3).kind, GATE_SUBMIT);
	answer(3, 0);
	say(end_of(3, 0, 1));
	assert_int_equal(asks_result(3, NULL), 0);
}

/* It says no more, or nothing new. */
static void says_no_more(void **state)
{
	(void)state;
	say(more_of(1, 0, 100));
	came(2, 100);
	pass_ms(600);
	say(more_of(1, 0, 100));
	assert_true(asks_quiet());
	pass_ms(600);
	assert_int_equal(asks_result(2, NULL), -ETIMEDOUT);
	assert_int_equal(question(3).kind, GATE_LEAVE);
}

/* It is looked at when it has been silent for too long, though nothing else happens then. */
static void called_in_time(void **state)
{
	int64_t ns;

	(void)state;
	pass_ms(300);
	ns = o.hub.asks.tick(o.hub.ctx);
	assert_true(ns > 0 && ns <= (int64_t)(SILENCE_MS - 300) * 1000000);
	ahead += (uint64_t)ns;
	asks_turn();
	assert_int_equal(asks_result(2, NULL), -ETIMEDOUT);
}

/* It could say nothing, for nearly as long as it may be silent. */
static void without_connection(void **state)
{
	(void)state;
	pass_ms(500);
	other_goes_down();
	pass_ms(900);
	assert_true(asks_quiet());
	other_comes_up(7);
	pass_ms(900);
	say(last_of(1, 0, -ECANCELED));
	assert_int_equal(asks_result(2, NULL), -ECANCELED);
}

/* It goes on to tell, or comes and goes, and never comes to the end. */
static void in_vain(void **state)
{
	struct rgate_completion done;
	unsigned int i, how, seen = 3;

	for (how = 0; how < 2; how++) {
		for (i = 0; i < 20; i++) {
			pass_ms(900);
			if (!how) {
				say(more_of(1, i, 100 + i));
				continue;
			}
			other_goes_down();
			other_comes_up(7);
			/* and answers whatever it is asked */
			for (asks_turn(); seen < o.peer.asked.n; seen++)
				answer(seen, 0);
		}
		for (i = 0; (done = asks_next()).flags; i++)
			assert_int_equal(done.value, 100 + i);
		if (!how)
			assert_in_range(i, 7, 9);
		assert_int_equal(done.cookie, 2);
		assert_int_equal(done.result, -ETIMEDOUT);
		submit(POLL, 3, .handle = 77, .a0 = 1);
		assert_int_equal(asks_result(3, NULL), -ECONNRESET);
		(void)asks_teardown(state);
		(void)setup(state);
	}
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, asks_teardown)

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(no_place, setup_wanted, asks_teardown),
	BED(goes_on), BED(says_no_more), BED(called_in_time), BED(without_connection), BED(in_vain),
};

UNIT_MAIN_ALONE(tests)
