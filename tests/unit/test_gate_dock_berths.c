// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who is lent berths of a gateway's dock, and for whom it is asked for: the test is the gateway. */
#include "asks_bed.h"

#include <errno.h>
#include <unistd.h>

#define ALL		((size_t)GATE_BERTHS * 65536U)
#define LONG		5000U
#define SILENCE_MS	1000U
#define SHORT_MS	200U

static unsigned char theirs[ALL];

static int setup(void **state)
{
	(void)state;
	asks_make(SILENCE_MS);
	o.hub.node.no_share = false;
	return 0;
}

static void opens(void)
{
	o.peer.asked.n = 0;
	submit(OPEN, 1, .a0 = 99);
	answer(0, 0);
	say(end_of(0, 0, 77));
	assert_int_equal(asks_result(1, NULL), 0);
	o.peer.asked.n = 0;
}

/* The question @i is for the dock, which is there from then on. */
static void docks(unsigned int i)
{
	const struct rgate_desc desc = peer_desc(theirs, ALL, PEER_KEY);
	const struct gate_result r = {
		.kind = GATE_DOCK, .number = question(i).number, .len = sizeof(desc),
		.data = &desc, .data_len = sizeof(desc),
	};

	assert_int_equal(question(i).kind, GATE_DOCK);
	say(r);
}

/* What it was lent */
static uint32_t receives_nothing(uint64_t cookie)
{
	uint32_t out;

	o.peer.asked.n = 0;
	submit(RECV, cookie, .handle = 77, .off = AT, .len = LONG);
	assert_int_equal(question(0).kind, GATE_SUBMIT);
	out = question(0).lent.out;
	answer(0, 0);
	say(end_of(0, 0, 0));
	assert_int_equal(asks_result(cookie, NULL), 0);
	return out;
}

/* The berth of a request that it was never asked for is lent again: nobody writes to it. */
static void unasked(void **state)
{
	uint32_t out;

	(void)state;
	opens();
	submit(RECV, 2, .handle = 77, .off = AT, .len = LONG);
	docks(0);
	answer(1, 0);
	say(end_of(1, 0, 0));
	assert_int_equal(asks_result(2, NULL), 0);
	out = receives_nothing(3);
	assert_int_not_equal(out, 0);
	o.peer.asked.n = 0;
	o.peer.full = true;
	submit(RECV, 4, .handle = 77, .off = AT, .len = LONG);
	usleep((SILENCE_MS + 100) * 1000);
	assert_int_equal(asks_result(4, NULL), -ENOTCONN);
	assert_int_equal(o.peer.asked.n, 0);
	o.peer.full = false;
	/* the first one that is free */
	assert_int_equal(receives_nothing(5), out);
}

/* Nobody who may not be there has it asked for, and refused, in the name of all. */
static void refused(void **state)
{
	unsigned int i;

	(void)state;
	opens();
	for (i = 0; i < 3; i++) {
		o.peer.asked.n = 0;
		submit(OPEN, 2, .a0 = 99);
		answer(0, -EACCES);
		assert_int_equal(asks_result(2, NULL), -EACCES);
		submit(RECV, 3, .handle = 77, .off = AT, .len = LONG);
		assert_int_equal(question(1).kind, GATE_SUBMIT);
		answer(1, -EACCES);
		assert_int_equal(asks_result(3, NULL), -EACCES);
	}
	assert_int_equal(node_shares(&o.hub.node), 0);
	/* by another policy, now */
	assert_int_equal(receives_nothing(4), 0);
	o.peer.asked.n = 0;
	submit(RECV, 5, .handle = 77, .off = AT, .len = LONG);
	docks(0);
	answer(1, 0);
	say(end_of(1, 0, 0));
	assert_int_equal(asks_result(5, NULL), 0);
	assert_int_not_equal(receives_nothing(6), 0);
}

/* One that the node has refused for what it is says nothing of its user. */
static void failed(void **state)
{
	(void)state;
	opens();
	submit(RECV, 2, .handle = 78, .off = AT, .len = 1);
	answer(0, -EBADF);
	assert_int_equal(asks_result(2, NULL), -EBADF);
	o.peer.asked.n = 0;
	submit(RECV, 3, .handle = 77, .off = AT, .len = LONG);
	docks(0);
	answer(1, 0);
	say(end_of(1, 0, 0));
	assert_int_equal(asks_result(3, NULL), 0);
}

/* Receives, which asks for a dock before if one is asked for: is it? */
static bool asks_for_one(void)
{
	unsigned int at;

	o.peer.asked.n = 0;
	submit(RECV, 2, .handle = 77, .off = AT, .len = LONG);
	at = question(0).kind == GATE_DOCK;
	answer(at, 0);
	say(end_of(at, 0, 0));
	assert_int_equal(asks_result(2, NULL), 0);
	assert_int_equal(o.peer.asked.n, at + 1);
	return at;
}

static void waits_ms(unsigned int ms)
{
	usleep(ms * 1000);
	asks_turn();
}

/* A node that says nothing is asked again, but not at once, and a few times in all. */
static void unanswered(void **state)
{
	uint64_t serial = 0;
	unsigned int i;

	(void)state;
	opens();
	for (i = 0; i < 4; i++) {
		assert_true(asks_for_one());
		assert_true(question(0).serial > serial);
		serial = question(0).serial;
		assert_int_equal(asks_stats().docks_again, i);
		/* That one is under way, */
		assert_false(asks_for_one());
		waits_ms(SHORT_MS + 50);
		/* and it has been a moment ago. */
		assert_int_equal(node_shares(&o.hub.node), 0);
		assert_false(asks_for_one());
		waits_ms(SHORT_MS + 50);
	}
	assert_false(asks_for_one());
	/* Another connection: its guest is asked for, and what was before is no matter. */
	other_goes_down();
	o.peer.asked.n = 0;
	other_comes_up(7);
	assert_int_equal(question(0).kind, GATE_CANCEL);
	answer(0, 0);
	assert_true(asks_for_one());
	/* Over this one it is the first. */
	assert_int_equal(asks_stats().docks_again, 3);
}

/* What could not be said for so long was not asked, and is as what was not answered. */
static void unsaid(void **state)
{
	(void)state;
	opens();
	o.peer.full = true;
	submit(RECV, 2, .handle = 77, .off = AT, .len = LONG);
	waits_ms(SHORT_MS + 50);
	assert_int_equal(asks_result(2, NULL), -ENOTCONN);
	assert_int_equal(o.peer.asked.n, 0);
	assert_int_equal(node_shares(&o.hub.node), 0);
	o.peer.full = false;
	assert_false(asks_for_one());
	waits_ms(SHORT_MS + 50);
	assert_true(asks_for_one());
	docks(0);
	assert_int_not_equal(receives_nothing(3), 0);
}

/* The second one that it is asked for it gives. */
static void in_time(void **state)
{
	(void)state;
	opens();
	assert_true(asks_for_one());
	waits_ms(SHORT_MS + 50);
	waits_ms(SHORT_MS + 50);
	assert_true(asks_for_one());
	docks(0);
	assert_int_not_equal(receives_nothing(3), 0);
}

static int setup_short(void **state)
{
	(void)state;
	asks_make(SHORT_MS);
	o.hub.node.no_share = false;
	return 0;
}

#define SHORT(name)	cmocka_unit_test_setup_teardown(name, setup_short, asks_teardown)
#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, asks_teardown)

static const struct CMUnitTest tests[] = {
	BED(unasked), BED(refused), BED(failed), SHORT(unanswered), SHORT(unsaid),
	SHORT(in_time),
};

UNIT_MAIN_ALONE(tests)
