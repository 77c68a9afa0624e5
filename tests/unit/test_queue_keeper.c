// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who keeps tasks that were submitted to another node, when its home does not go along */
#include "queue_home.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "gate_service.h"

#define SECOND	(1000 * MS)

#define LOOKS	12U

static uint64_t ahead;			/* the clock is */
static unsigned int looks;		/* at it, while the engine stops */
static unsigned int jump;		/* at which of them it is later; 0: it does not stop */

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	const int err = __real_clock_gettime(id, ts);
	uint64_t ns;

	if (jump && ++looks == jump)
		ahead += 5 * SECOND;
	ns = (uint64_t)ts->tv_nsec + ahead;
	ts->tv_sec += (time_t)(ns / SECOND);
	ts->tv_nsec = (long)(ns % SECOND);
	return err;
}

static uint32_t full;			/* for the next request of that op; 0: for none */

int __real_rgate_session_submit(struct rgate_session *s, const struct rgate_request *r);
int __wrap_rgate_session_submit(struct rgate_session *s, const struct rgate_request *r);

int __wrap_rgate_session_submit(struct rgate_session *s, const struct rgate_request *r)
{
	if (!full || r->op != full)
		return __real_rgate_session_submit(s, r);
	full = 0;
	return -EAGAIN;
}

static uint32_t no_ticket;		/* likewise, when the home is to be asked it */

int __real_gate_forward(struct gate_caller *c, struct rgate_req *r, const struct gate_as *as);
int __wrap_gate_forward(struct gate_caller *c, struct rgate_req *r, const struct gate_as *as);

int __wrap_gate_forward(struct gate_caller *c, struct rgate_req *r, const struct gate_as *as)
{
	if (!no_ticket || rgate_req_get(r)->op != no_ticket)
		return __real_gate_forward(c, r, as);
	no_ticket = 0;
	return -ENOBUFS;
}

/* What the process there had is removed, while what a former one had waits for a queue. */
static void one_was_removed(void **state)
{
	(void)state;
	put_far(open_far(), "ab");
	home_dies(8, 0);
	put_far(open_far(), "c");
	home.there = false;
	home.serial++;
	until(kept().again == 2);
	assert_string_equal(home.got, "cab");
	assert_int_equal(home.makes, 1);
	assert_int_equal(kept().tasks, 2);
	has_ended(2, 3);
	assert_int_equal(kept().tasks, 0);
	until(home.leaves == 1);
	assert_int_equal(home.removes + kept().refused, 0);
	assert_true(home.there);
}

/* It has taken what was submitted again, and never says so. */
static void says_nothing(void **state)
{
	unsigned int s;

	(void)state;
	put_far(open_far(), "ab");
	home.holds = true;
	home_dies(8, 0);
	until(home.nheld == 1);
	home.holds = false;
	for (s = 0; s < 5; s++) {
		ahead += SECOND;
		run();
	}
	assert_int_equal(home.submits, 2);
	/* and then as long as it may be silent of what is cancelled */
	for (s = 0; s < 9; s++) {
		ahead += SECOND;
		run();
	}
	until(kept().again == 2);
	assert_string_equal(home.got, "abab");
	assert_int_equal(kept().tasks, 2);
	has_ended(3, 4);
	assert_int_equal(kept().tasks, 0);
}

static void *ends_late(void *cookie)
{
	usleep(30000);
	late_end(*(uint64_t *)cookie, 0, 0);
	return NULL;
}

/* The engine takes its seat away, which was to be given back then, or a little later. */
static void engine_stops(void **state)
{
	unsigned int i;
	pthread_t thread;
	uint64_t last;

	for (i = 1; i < LOOKS; i++) {
		put_far(open_far(), "a");
		has_ended(1);
		until(home.closes == 1);
		last = submit((struct rgate_request){ .op = LATE_SURE });
		assert_true(late_has(last));
		looks = 0;
		jump = i;
		assert_int_equal(pthread_create(&thread, NULL, ends_late, &last), 0);
		(void)teardown(state);
		pthread_join(thread, NULL);
		jump = 0;
		assert_false(late_has(last));
		(void)home_setup(state);
	}
}

/* A request of it finds no place once: it is made later, and of the same tasks. */
static void no_place(void **state)
{
	(void)state;
	put_far(open_far(), "abc");
	until(home.followed);
	full = RGATE_REQ_QUEUE_OVER;
	home.over = 0x2;
	home.followed = false;
	home_tells(&home.follow, NULL, 0, RGATE_ENDS_MISSED);
	until(kept().tasks == 2);
	assert_int_equal(full, 0);
	full = RGATE_REQ_QUEUE_SUBMIT;
	home_dies(8, 0);
	until(kept().again == 2);
	assert_int_equal(full, 0);
	assert_string_equal(home.got, "ac");
	has_ended(1, 2);
	assert_int_equal(kept().tasks, 0);
}

/* Others have all the places to wait in at the queue. */
static void no_place_there(void **state)
{
	(void)state;
	put_far(open_far(), "abc");
	until(home.followed);
	home.crowded = true;
	has_ended(1);
	home.ended = 2;
	until(kept().tasks == 1);
	home.crowded = false;
	has_ended(3);
	assert_int_equal(kept().tasks + kept().refused, 0);
}

/* So it is asked, and less often where nothing ends. */
static void quiet(void **state)
{
	unsigned int i;

	(void)state;
	put_far(open_far(), "abc");
	until(home.followed);
	home.crowded = true;
	has_ended(1);
	home.asked_now = 0;
	for (i = 0; i < 100; i++) {
		ahead += 100 * MS;
		run();
	}
	/* each time but the first ones 900 ms later: there is no place to wait in, either */
	assert_in_range(home.asked_now, 10, 15);
	/* and as often as before when something does */
	home.ended = 2;
	for (i = 0; kept().tasks == 2; i++) {
		assert_true(i < 10);
		ahead += 100 * MS;
		run();
	}
	home.asked_now = 0;
	for (i = 0; i < 10; i++) {
		ahead += 100 * MS;
		run();
	}
	assert_in_range(home.asked_now, 3, 10);
}

/* It is closed when the home can be told so. */
static void closes_later(void **state)
{
	(void)state;
	put_far(open_far(), "a");
	no_ticket = RGATE_REQ_QUEUE_CLOSE;
	has_ended(1);
	until(!no_ticket);
	assert_int_equal(home.closes, 0);
	until(home.closes == 1);
	/* it is no more than closed, and another one is opened */
	put_far(open_far(), "b");
	has_ended(2);
	assert_int_equal(kept().tasks + kept().refused, 0);
}

/* It is not there, and is, and so on: the home is not asked all the time. */
static void there_and_not(void **state)
{
	uint64_t start;

	(void)state;
	put_far(open_far(), "ab");
	home.hidden = true;
	home_dies(8, 9);
	until(home.makes);
	start = unit_now_ns();
	until(home.makes == 4);
	assert_true(unit_now_ns() - start > 200 * MS);
	home.hidden = false;
	until(kept().again == 2);
	assert_string_equal(home.got, "ab");
}

/* An end that was asked for is told as well: that is no lie, and the next one is. */
static void told_late(void **state)
{
	uint64_t n;
	uint32_t h;

	(void)state;
	h = open_far();
	put_far(h, "abcd");
	until(home.followed);
	home.over = 0x7;
	home.followed = false;
	home_tells(&home.follow, NULL, 0, RGATE_ENDS_MISSED);
	until(kept().tasks == 1);
	has_ended(1, 2);
	assert_int_equal(kept().late, 2);
	/* as a stray that is of nothing that is submitted */
	home.holds = true;
	n = puts_some(h, "e");
	run();
	has_ended(3, 1);
	assert_int_equal(kept().late + kept().refused, 2);
	home_lets_go(0, 1);
	assert_int_equal(result_of(n, NULL), 1);
	assert_int_equal(kept().late, 3);
	assert_int_equal(kept().refused, 1);
	assert_int_equal(kept().tasks, 2);
}

/* The home has taken it, and that was not heard: its end is told. */
static void taken_unheard(void **state)
{
	uint64_t n;
	uint32_t h;

	(void)state;
	h = open_far();
	put_far(h, "a");
	home.holds = true;
	n = puts_some(h, "bc");
	run();
	home.holds = false;
	home_stands_still();
	assert_int_equal(result_of(n, NULL), -ECONNRESET);
	has_ended(2, 3);
	assert_int_equal(kept().late, 2);
	has_ended(3);
	assert_int_equal(kept().late, 2);
	assert_int_equal(kept().refused, 1);
	/* nor is that of another queue */
	home_dies(8, 9);
	until(kept().again == 1);
	has_ended(1);
	assert_int_equal(kept().tasks, 0);
}

/* The number of a queue begins anew when there have been 2^24: the later one is the later one. */
static void serials_wrap(void **state)
{
	uint64_t n;
	uint32_t h;

	(void)state;
	home.serial = 0xffffff;
	h = open_far();
	put_far(h, "ab");
	until(home.followed);
	home.holds = true;
	n = puts_some(h, "c");
	run();
	home.holds = false;
	/* it was removed, and is there anew, with tasks */
	home.serial = 0;
	home.last = 0;
	h = open_far();
	put_far(h, "ef");
	assert_int_equal(kept().tasks, 4);
	home.followed = false;
	home_ends(&home.follow, -ESTALE, 0, NULL, 0);
	until(kept().tasks == 2);
	until(home.followed);
	/* what was taken by the former one is said now */
	home.serial = 0xffffff;
	home_lets_go(0, 1);
	home.serial = 0;
	assert_int_equal(result_of(n, NULL), 1);
	home.followed = false;
	home_tells(&home.follow, NULL, 0, 0);
	until(home.followed);
	assert_int_equal(kept().tasks, 2);
	has_ended(1, 2);
	assert_int_equal(kept().tasks, 0);
	assert_int_equal(kept().again + kept().refused, 0);
}

/* None is there, and the tasks were of one before that, or after it. */
static void serials_wrap_unheard(void **state)
{
	(void)state;
	home.serial = 0xffffff;
	put_far(open_far(), "ab");
	home.serial = 0;
	home.last = 0;
	put_far(open_far(), "cd");
	home.there = false;
	home_stands_still();
	until(kept().tasks == 0);
	assert_int_equal(home.makes + kept().again, 0);
	/* a process later they are submitted again, of whichever they were */
	home.serial = 0xffffff;
	put_far(open_far(), "ab");
	home.serial = 0;
	home.last = 0;
	put_far(open_far(), "cd");
	home_dies(8, 0);
	until(kept().again == 4);
	assert_string_equal(home.got, "abcd");
}

#define FAR	(5 + (1U << 23) + 9)	/* which looks as if it were before 5 */

/* Of two numbers none says which is the older: it was removed, and so many were made meanwhile. */
static void serials_far(void **state)
{
	(void)state;
	put_far(open_far(), "ab");
	until(home.followed);
	home.serial = FAR;
	home.last = 0;
	home_stands_still();
	until(kept().tasks == 0);
	put_far(open_far(), "cd");
	assert_int_equal(kept().tasks, 2);
	has_ended(1, 2);
	assert_int_equal(kept().tasks + kept().again + kept().refused, 0);
}

/* Nor of one that is there by now, of which tasks were heard before it was known to be removed */
static void serials_far_ahead(void **state)
{
	uint64_t n;
	uint32_t h;

	(void)state;
	h = open_far();
	put_far(h, "ab");
	until(home.followed);
	home.holds = true;
	n = puts_some(h, "e");
	run();
	home.holds = false;
	home.serial = FAR;
	home.last = 0;
	put_far(open_far(), "cd");
	home.followed = false;
	home_ends(&home.follow, -ESTALE, 0, NULL, 0);
	until(kept().tasks == 2);
	until(home.followed);
	assert_int_equal(kept().tasks, 2);
	/* and what the former one has taken is heard last of all */
	home.serial = 5;
	home_lets_go(0, 1);
	home.serial = FAR;
	assert_int_equal(result_of(n, NULL), 1);
	home.followed = false;
	home_tells(&home.follow, NULL, 0, 0);
	until(home.followed);
	assert_int_equal(kept().tasks, 2);
	has_ended(1, 2);
	assert_int_equal(kept().tasks + kept().again + kept().refused, 0);
}

/* A home that does not know tags: it has to be said, as nobody would hear of an end there. */
static void older_home(void **state)
{
	uint64_t n;
	uint32_t h;

	(void)state;
	h = open_far();
	home.fails = -EINVAL;
	n = puts_some(h, "ab");
	run();
	assert_int_equal(result_of(n, NULL), -EOPNOTSUPP);
	assert_int_equal(kept().tasks + kept().bytes + kept().refused, 0);
	/* what it would refuse in any case */
	home.fails = -EINVAL;
	n = puts_as(h, "a", (struct rgate_queue_put){ .flags = 0x80 });
	run();
	assert_int_equal(result_of(n, NULL), -EINVAL);
	home.fails = -EINVAL;
	n = submit(REQ(SUBMIT, .handle = h, .a1 = RGATE_SUBMIT_A1(0, 0x80), .len = 24));
	run();
	assert_int_equal(result_of(n, NULL), -EINVAL);
}

#define KEPT(fn)	cmocka_unit_test_setup_teardown(fn, home_setup, teardown)
#define PAUSE(fn)	cmocka_unit_test_setup_teardown(fn, home_setup_silent, teardown)

static const struct CMUnitTest tests[] = {
	KEPT(one_was_removed), KEPT(says_nothing), KEPT(engine_stops),
	KEPT(no_place), KEPT(no_place_there), KEPT(quiet), KEPT(closes_later), KEPT(there_and_not),
	KEPT(older_home), KEPT(serials_wrap), PAUSE(serials_wrap_unheard),
	PAUSE(serials_far), KEPT(serials_far_ahead),
	KEPT(told_late), PAUSE(taken_unheard),
};

UNIT_MAIN(tests)
