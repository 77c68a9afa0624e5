// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Tasks that were submitted to a queue of another node, whose home tells late, in another order,
 * with lies, or is another process by then.
 */
#include "queue_home.h"

#include <errno.h>
#include <string.h>

static int small_setup(void **state)
{
	int err;

	keep_bytes = 4096;
	err = home_setup(state);
	keep_bytes = 0;
	return err;
}

/* ---- They are kept until they have ended ---- */

/* Whoever has submitted them may be gone. */
static void without_him(void **state)
{
	uint64_t n, first;

	(void)state;
	n = puts_some(open_far(), "abc");
	assert_int_equal(kept().tasks, 0);
	run();
	assert_int_equal(result_of(n, &first), 3);
	assert_int_equal(first, 1);
	assert_int_equal(kept().tasks, 3);
	has_ended(2);
	rgate_seat_remove(a.seat);
	until(a.over);
	assert_int_equal(kept().tasks, 2);
	has_ended(3, 1);
	assert_int_equal(kept().tasks, 0);
	assert_int_equal(kept().bytes, 0);
	assert_int_equal(home.closes, 1);
	assert_int_equal(kept().refused, 0);
	assert_int_equal(kept().again, 0);
	/* nor does the session stay that had asked for it: the program's own was the other one */
	until(home.leaves == 2);
	assert_int_equal(handles(), 0);
}

/* ---- The home is another process ---- */

static void again(void **state)
{
	const struct rgate_queue_put as = { .priority = 2, .attempts = 5, .type = 3,
					    .flags = RGATE_TASK_RESULT };
	uint64_t n, w;
	uint32_t h;

	(void)state;
	h = open_far();
	n = puts_as(h, "abcd", as);
	run();
	assert_int_equal(result_of(n, NULL), 4);
	n = puts_as(h, "e", (struct rgate_queue_put){ .delay_ms = 60000 });
	run();
	assert_int_equal(result_of(n, NULL), 1);
	w = submit(REQ(WAIT, .handle = h, .a0 = 1, .off = ROOM, .len = 16));
	run();
	has_ended(2);
	assert_false(is_done(w));
	home_dies(8, 0);
	/* who waits is told: the number is none any more */
	assert_int_equal(result_of(w, NULL), -ECONNRESET);
	until(home.ngot == 4);
	assert_string_equal(home.got, "acde");
	assert_int_equal(home.makes, 1);
	assert_string_equal(home.place.name, "far");
	assert_int_equal(home.place.bytes, 4096);
	assert_int_equal(home.place.tasks, 77);
	assert_int_equal(home.place.attempts, 9);
	assert_int_equal(home.place.run_ms, 11);
	assert_int_equal(home.place.result_ms, 13);
	assert_int_equal(home.puts[2].priority, 2);
	assert_int_equal(home.puts[2].attempts, 5);
	assert_int_equal(home.puts[2].type, 3);
	assert_int_equal(home.puts[2].flags, RGATE_TASK_RESULT);
	assert_int_equal(home.puts[2].delay_ms, 0);
	assert_true(home.puts[3].delay_ms > 1000 && home.puts[3].delay_ms < 60000);
	until(kept().again == 4);
	/* by their new numbers */
	has_ended(1, 2, 3);
	assert_int_equal(kept().tasks, 1);
	has_ended(4);
	assert_int_equal(kept().tasks, 0);
	assert_int_equal(kept().refused, 0);
	/* it is there for others */
	until(home.leaves == 1);
	assert_int_equal(home.removes, 0);
}

/* Two SUBMITs that end in another order than that of their numbers */
static void in_order(void **state)
{
	uint64_t n, m;
	uint32_t h;

	(void)state;
	h = open_far();
	home.holds = true;
	n = puts_some(h, "ab");
	run();
	m = puts_some(h, "cd");
	run();
	home_lets_go(1, 2);
	home_lets_go(0, 2);
	assert_int_equal(result_of(n, NULL), 2);
	assert_int_equal(result_of(m, NULL), 2);
	home.holds = false;
	home_dies(8, 9);
	until(kept().again == 4);
	assert_string_equal(home.got, "abcd");
	assert_int_equal(home.makes, 0);
}

/* It dies once more, at any time: before it has answered, or when it has taken some. */
static void dies_again(void **state)
{
	(void)state;
	put_far(open_far(), "abcd");
	home.holds = true;
	home_dies(8, 0);
	until(home.nheld == 1);
	assert_string_equal(home.got, "abcd");
	home.holds = false;
	home.takes = 3;
	home_dies(9, 0);
	until(kept().again == 3);
	assert_string_equal(home.got, "abc");
	home.takes = 0;
	until(kept().again == 4);
	assert_string_equal(home.got, "abcd");
	has_ended(1);
	assert_int_equal(kept().tasks, 3);
	home_dies(10, 0);
	until(kept().again == 7);
	assert_string_equal(home.got, "bcd");
	has_ended(1, 2, 3);
	assert_int_equal(kept().tasks, 0);
	assert_int_equal(kept().refused, 0);
}

/* The next one can never have the first of them, or has no room for now. */
static void no_room(void **state)
{
	(void)state;
	put_far(open_far(), "abc");
	home.fails = -EMSGSIZE;
	home_dies(8, 9);
	until(kept().again == 2);
	assert_string_equal(home.got, "bc");
	assert_int_equal(kept().tasks, 2);
	assert_int_equal(kept().lost, 1);
	assert_int_equal(kept().refused, 0);
	home.fails = -EAGAIN;
	home_dies(9, 9);
	until(kept().again == 4);
	assert_string_equal(home.got, "bc");
	has_ended(1, 2);
	assert_int_equal(kept().tasks, 0);
	assert_int_equal(kept().lost, 1);
	assert_int_equal(kept().refused, 0);
}

/* What comes from the next process before the keeper has looked there is of that one. */
static void next_one(void **state)
{
	uint32_t h;

	(void)state;
	put_far(open_far(), "ab");
	home_dies(8, 0);
	h = open_far();
	put_far(h, "c");
	until(kept().again == 2);
	assert_string_equal(home.got, "cab");
	assert_int_equal(kept().tasks, 3);
	has_ended(1, 2, 3);
	assert_int_equal(kept().tasks, 0);
	assert_int_equal(kept().refused, 0);
}

/* It was removed, and is there anew, while not all is submitted again. */
static void newer(void **state)
{
	(void)state;
	put_far(open_far(), "abcd");
	home.takes = 1;
	home_dies(8, 5);
	until(kept().again == 1);
	home.serial = 6;
	home.last = 0;
	home.takes = 0;
	put_far(open_far(), "ef");
	until(kept().again == 4);
	assert_string_equal(home.got + home.ngot - 3, "bcd");
	assert_int_equal(kept().tasks, 5);
	/* those of the first try were in the queue that the handle was not of */
	has_ended(1, 2, 6, 7, 8);
	assert_int_equal(kept().tasks, 0);
}

/* Whose queue it is makes it anew; others wait for that. */
static void not_his(void **state)
{
	unsigned int asked;

	(void)state;
	home.there = true;
	put_far(open_far_as("far", ME + 1, 0), "ab");
	home_dies(8, 0);
	asked = home.opens;
	until(home.opens > asked + 1);
	assert_int_equal(home.makes, 0);
	assert_int_equal(kept().tasks, 2);
	home.there = true;
	until(kept().again == 2);
	assert_string_equal(home.got, "ab");
}

/* ---- The home is the same one ---- */

static void same_one(void **state)
{
	const unsigned int submits = home.submits + 1;

	(void)state;
	put_far(open_far(), "abcd");
	until(home.followed);
	home.over = 0xa;
	home_stands_still();
	until(kept().tasks == 2);
	assert_int_equal(home.submits, submits);
	has_ended(1, 3);
	assert_int_equal(kept().tasks, 0);
	assert_int_equal(kept().again + kept().refused, 0);
}

/* More have ended than it remembers. */
static void has_missed(void **state)
{
	(void)state;
	put_far(open_far(), "abcd");
	until(home.followed);
	home.over = 0x7;
	home.followed = false;
	home_tells(&home.follow, NULL, 0, RGATE_ENDS_MISSED);
	until(kept().tasks == 1);
	assert_int_equal(kept().refused, 0);
}

/* ... which nobody knew of when it was asked: their SUBMIT was still under way. */
static void not_known(void **state)
{
	uint64_t n;
	uint32_t h;

	(void)state;
	h = open_far();
	home.holds = true;
	(void)puts_some(h, "a");
	run();
	n = puts_some(h, "b");
	run();
	home.over = 0x2;
	home_lets_go(0, 1);
	until(home.followed);
	assert_int_equal(home.overs, 1);
	assert_int_equal(kept().tasks, 1);
	home_lets_go(1, 1);
	assert_int_equal(result_of(n, NULL), 1);
	home.followed = false;
	home_tells(&home.follow, NULL, 0, 0);
	until(home.followed);
	assert_int_equal(kept().tasks, 1);
	assert_int_equal(home.overs, 2);
	/* what begins later is followed */
	n = puts_some(h, "c");
	run();
	home_lets_go(2, 1);
	assert_int_equal(result_of(n, NULL), 1);
	home.followed = false;
	home_tells(&home.follow, NULL, 0, 0);
	until(home.followed);
	assert_int_equal(home.overs, 2);
	/* and so with what was missed */
	n = puts_some(h, "d");
	run();
	home.over = 0x8;
	home.followed = false;
	home_tells(&home.follow, NULL, 0, RGATE_ENDS_MISSED);
	until(home.followed);
	assert_int_equal(home.overs, 3);
	home_lets_go(3, 1);
	assert_int_equal(result_of(n, NULL), 1);
	home.followed = false;
	home_tells(&home.follow, NULL, 0, 0);
	until(home.followed);
	assert_int_equal(kept().tasks, 2);
	assert_int_equal(kept().refused, 0);
}

/* It was removed, by who may: what it had does not come back. */
static void is_removed(void **state)
{
	(void)state;
	put_far(open_far(), "abcd");
	until(home.followed);
	home.followed = false;
	home_ends(&home.follow, -ESTALE, 0, NULL, 0);
	until(kept().tasks == 0);
	assert_int_equal(home.makes, 0);
	until(home.leaves == 1);
	assert_int_equal(kept().bytes, 0);
}

/* ... while nobody heard of it; and there is another one, or none. */
static void was_removed(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		home.there = true;
		put_far(open_far(), "abcd");
		until(home.followed);
		home.serial++;
		home.there = i;
		home.ngot = 0;
		home_stands_still();
		until(kept().tasks == 0);
		until(home.closes == i);
		assert_int_equal(home.ngot, 0);
		/* none is made, nor removed, which others may have tasks in */
		assert_int_equal(home.makes, 0);
		assert_int_equal(home.removes, 0);
		assert_int_equal(home.there, i);
	}
}

/* A new one of that name has tasks by the time at which that is known. */
static void is_made_anew(void **state)
{
	uint32_t h;

	(void)state;
	put_far(open_far(), "abcd");
	until(home.followed);
	home.serial = 6;
	home.last = 0;
	h = open_far();
	put_far(h, "ef");
	assert_int_equal(kept().tasks, 6);
	home.followed = false;
	home_ends(&home.follow, -ESTALE, 0, NULL, 0);
	until(kept().tasks == 2);
	has_ended(1, 2);
	assert_int_equal(kept().tasks, 0);
	assert_int_equal(kept().again + kept().refused, 0);
}

/* What it had taken is said of a queue by the time at which another one is looked at. */
static void told_late(void **state)
{
	uint64_t n;
	uint32_t h;

	(void)state;
	h = open_far();
	put_far(h, "ab");
	until(home.followed);
	home.holds = true;
	n = puts_some(h, "c");
	run();
	home.holds = false;
	home.followed = false;
	home_ends(&home.follow, -ESTALE, 0, NULL, 0);
	until(kept().tasks == 0);
	home.serial = 6;
	home.last = 0;
	put_far(open_far(), "d");
	until(home.followed);
	home.serial = 5;
	home_lets_go(0, 1);
	home.serial = 6;
	assert_int_equal(result_of(n, NULL), 1);
	home.followed = false;
	home_tells(&home.follow, NULL, 0, 0);
	until(kept().tasks == 1);
	has_ended(1);
	assert_int_equal(kept().tasks, 0);
	assert_int_equal(kept().again + kept().refused, 0);
}

/* ---- Late, early, and lies ---- */

static void early(void **state)
{
	uint64_t n;
	uint32_t h;

	(void)state;
	h = open_far();
	put_far(h, "x");
	until(home.followed);
	home.holds = true;
	n = puts_some(h, "y");
	run();
	assert_false(is_done(n));
	has_ended(2);
	assert_int_equal(kept().refused, 0);
	home_lets_go(0, 1);
	assert_int_equal(result_of(n, NULL), 1);
	assert_int_equal(kept().tasks, 1);
	assert_int_equal(kept().refused, 0);
	/* it was of no SUBMIT */
	n = puts_some(h, "z");
	run();
	has_ended(50);
	home_lets_go(1, 1);
	assert_int_equal(result_of(n, NULL), 1);
	assert_int_equal(kept().tasks, 2);
	assert_int_equal(kept().refused, 1);
}

static void lies(void **state)
{
	uint64_t n;
	uint32_t h;

	(void)state;
	h = open_far();
	put_far(h, "abcdefg");
	/* there is none of that number; one that has ended does so once */
	has_ended(99);
	assert_int_equal(kept().refused, 1);
	has_ended(1, 1);
	assert_int_equal(kept().refused, 2);
	assert_int_equal(kept().tasks, 6);
	/* more were taken than there were */
	home.holds = true;
	n = puts_some(h, "hi");
	run();
	home_lets_go(0, 3);
	assert_int_equal(result_of(n, NULL), -EPROTO);
	assert_int_equal(kept().refused, 3);
	assert_int_equal(kept().tasks, 6);
	/* two of one number */
	home.first[0] = 2;
	n = puts_some(h, "j");
	run();
	home.first[1] = 2;
	home_lets_go(1, 1);
	assert_int_equal(kept().refused, 4);
	assert_int_equal(kept().tasks, 6);
	assert_int_equal(kept().bytes, 6 * (kept().bytes / 6));
}

/* What cannot be said at all: it is asked anew, later. */
static void nonsense(void **state)
{
	struct rgate_queue_ends head = { .queue = 5, .n = 2 };
	unsigned int closes;

	(void)state;
	put_far(open_far(), "abc");
	until(home.followed);
	home.followed = false;
	home_ends(&home.follow, sizeof(head), 2, &head, sizeof(head));
	run();
	assert_int_equal(kept().refused, 1);
	until(home.followed);
	/* of another queue */
	head.n = 0;
	head.queue = 6;
	home.followed = false;
	closes = home.closes;
	home_ends(&home.follow, sizeof(head), 2, &head, sizeof(head));
	run();
	assert_int_equal(kept().refused, 2);
	assert_int_equal(home.closes, closes + 1);
	/* bits of which nobody has asked */
	home.adds = 1ULL << 40 | 1;
	until(home.followed);
	assert_int_equal(kept().refused, 3);
	assert_int_equal(kept().tasks, 2);
	assert_int_equal(home.submits, 1);
}

/* ---- Bounded ---- */

/* Until no more is kept: how many were taken */
static unsigned int fills(uint32_t h)
{
	unsigned int n;
	uint64_t r;

	for (n = 0;; n++) {
		assert_true(n < HOME_TASKS);
		r = puts_some(h, "a");
		run();
		if (result_of(r, NULL) < 0)
			break;
	}
	assert_int_equal(done[r].result, -EDQUOT);
	return n;
}

static void never(void **state)
{
	unsigned int n;

	(void)state;
	home.deaf = true;
	n = fills(open_far());
	assert_true(n > 10);
	assert_int_equal(home.submits, n);
	assert_int_equal(kept().tasks, n);
	/* of that queue; another one has some room, and then the user none */
	home.last = 0;
	assert_in_range(fills(open_far_as("other", ME, RGATE_QUEUE_CREATE)), 1, n - 1);
	assert_true(kept().bytes <= 4096);
}

/* It has room again when some have ended. */
static void then_some(void **state)
{
	uint32_t h;

	(void)state;
	h = open_far();
	assert_true(fills(h) > 10);
	has_ended(1);
	assert_int_equal(fills(h), 1);
}

/* What has been refused, or was not taken, is not kept; nor is what is of this node. */
static void not_kept(void **state)
{
	uint64_t n;
	uint32_t h;

	(void)state;
	h = open_here("near");
	put_here(h, 8);
	h = open_far();
	home.holds = true;
	n = puts_some(h, "ab");
	run();
	home_ends(&home.held[0], -EAGAIN, 0, NULL, 0);
	assert_int_equal(result_of(n, NULL), -EAGAIN);
	assert_int_equal(kept().tasks, 0);
	assert_int_equal(kept().bytes, 0);
	n = puts_some(h, "cd");
	run();
	home_lets_go(1, 1);
	assert_int_equal(result_of(n, NULL), 1);
	assert_int_equal(kept().tasks, 1);
	/* who follows is the daemon */
	assert_int_equal(ask_here(SUBMIT, .handle = h, .a1 = RGATE_SUBMIT_A1(3, 0), .len = 24),
			 -EINVAL);
	assert_int_equal(kept().tasks, 1);
}

/* It ends with all that it keeps, and what is under way. */
static void ends_too(void **state)
{
	uint32_t h;

	(void)state;
	h = open_far();
	put_far(h, "abc");
	until(home.followed);
	home.holds = true;
	(void)puts_some(h, "de");
	run();
}

#define KEPT(fn)	cmocka_unit_test_setup_teardown(fn, home_setup, teardown)
#define PAUSE(fn)	cmocka_unit_test_setup_teardown(fn, home_setup_silent, teardown)
#define SMALL(fn)	cmocka_unit_test_setup_teardown(fn, small_setup, teardown)

static const struct CMUnitTest tests[] = {
	KEPT(without_him), KEPT(again), KEPT(in_order), KEPT(dies_again), KEPT(no_room),
	KEPT(next_one), KEPT(newer), KEPT(not_his), PAUSE(same_one), KEPT(has_missed),
	KEPT(not_known), KEPT(is_removed), PAUSE(was_removed), KEPT(is_made_anew),
	KEPT(told_late), KEPT(early), KEPT(lies), KEPT(nonsense), SMALL(never), SMALL(then_some),
	KEPT(not_kept), KEPT(ends_too),
};

UNIT_MAIN(tests)
