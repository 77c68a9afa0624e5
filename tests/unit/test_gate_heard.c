// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * One request that accepts many connections at a gateway: what was heard of them when the
 * connection between the nodes comes and goes, and when it ends.
 */
#include "asks_bed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define N	4U		/* completions: 3 connections */
#define BYTES	((N - 1) * GATE_ADDR)
#define LISTENS	.handle = 77, .a1 = N, .flags = RGATE_REQ_MULTI

static bool no_memory;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory ? NULL : __real_calloc(n, size);
}

static bool is_told_of(uint32_t place, uint16_t port)
{
	struct rgate_socket_addr a;

	memcpy(&a, prog.mem + AT + place * GATE_ADDR, sizeof(a));
	return a.port == port;
}

/* What was heard is said over another connection: none is lost, and none comes twice. */
static void told_again(void **state)
{
	(void)state;
	submit(ACCEPT, 2, LISTENS, .off = AT, .len = BYTES);
	answer(0, 0);
	say(more_of(0, 0, 100));
	came(2, 100);
	other_goes_down();
	/* lost with it */
	say(more_of(0, 1, 101));
	assert_true(asks_quiet());
	other_comes_up(7);
	asks_hears(0, 1);
	memset(prog.mem + AT, 0, BYTES);
	/* the gateway was told that over a connection before */
	say(more_of(0, 0, 100));
	assert_true(asks_quiet());
	assert_true(is_told_of(0, 0));
	say(more_of(0, 1, 101));
	came(2, 101);
	other_goes_down();
	other_comes_up(7);
	asks_hears(0, 2);
	say(more_of(0, 2, 102));
	came(2, 102);
	/* all but the end */
	other_goes_down();
	other_comes_up(7);
	asks_hears(0, 3);
	say(last_of(0, 3, -ENOBUFS));
	assert_int_equal(asks_result(2, NULL), -ENOBUFS);
	/* it is asked for nothing any more */
	other_goes_down();
	o.peer.asked.n = 0;
	other_comes_up(7);
	asks_turn();
	assert_int_equal(o.peer.asked.n, 1);
	assert_int_equal(question(0).kind, GATE_CANCEL);
	answer(0, 0);
	assert_true(asks_quiet());
}

/* The connection is lost while that is said: it is said anew, as more may have been heard. */
static void said_again(void **state)
{
	unsigned int i;

	(void)state;
	submit(ACCEPT, 2, LISTENS);
	answer(0, 0);
	say(more_of(0, 0, 100));
	came(2, 100);
	other_goes_down();
	other_comes_up(7);
	asks_turn();
	i = o.peer.asked.n - 1;
	assert_int_equal(question(i).kind, GATE_HEARD);
	assert_int_equal(question(i).a0, 1);
	/* it was taken, and the answer is lost */
	say(more_of(0, 1, 101));
	came(2, 101);
	other_goes_down();
	other_comes_up(7);
	asks_turn();
	for (i++; question(i).kind != GATE_HEARD; i++)
		;
	assert_int_equal(question(i).a0, 1);
	answer(i, 0);
	asks_hears(0, 2);
	say(more_of(0, 2, 102));
	came(2, 102);
	say(last_of(0, 3, -ENOBUFS));
	assert_int_equal(asks_result(2, NULL), -ENOBUFS);
}

/* Where its end comes before the answer nobody waits for that. */
static void ends_unanswered(void **state)
{
	(void)state;
	submit(ACCEPT, 2, LISTENS);
	answer(0, 0);
	other_goes_down();
	other_comes_up(7);
	asks_turn();
	assert_int_equal(question(o.peer.asked.n - 1).kind, GATE_HEARD);
	other_goes_down();
	other_comes_up(7);
	say(last_of(0, 0, -EMFILE));
	assert_int_equal(asks_result(2, NULL), -EMFILE);
	asks_turn();
	other_goes_down();
	other_comes_up(7);
	assert_true(asks_quiet());
}

/* The gateway has nothing of it: so it is lost, with all that the session has there. */
static void heard_in_vain(void **state)
{
	(void)state;
	submit(ACCEPT, 2, LISTENS);
	answer(0, 0);
	other_goes_down();
	other_comes_up(7);
	asks_turn();
	assert_int_equal(question(o.peer.asked.n - 1).kind, GATE_HEARD);
	answer(o.peer.asked.n - 1, -ESTALE);
	assert_int_equal(asks_result(2, NULL), -ECONNRESET);
	assert_int_equal(question(o.peer.asked.n - 1).kind, GATE_LEAVE);
	submit(ACCEPT, 3, LISTENS);
	assert_int_equal(asks_result(3, NULL), -ECONNRESET);
}

/* Where the answer was lost with the connection, the one that comes says that it was taken. */
static void taken_unheard(void **state)
{
	(void)state;
	submit(ACCEPT, 2, LISTENS);
	other_goes_down();
	other_comes_up(7);
	asks_turn();
	assert_int_equal(o.peer.asked.n, 3);
	assert_int_equal(question(1).kind, GATE_SUBMIT_MANY);
	/* is the guest there? */
	assert_int_equal(question(2).kind, GATE_CANCEL);
	answer(2, 0);
	answer(1, 0);
	asks_hears(0, 0);
	say(more_of(0, 0, 100));
	came(2, 100);
	say(last_of(0, 1, -ECONNABORTED));
	assert_int_equal(asks_result(2, NULL), -ECONNABORTED);
	/* or it is told before */
	submit(ACCEPT, 3, LISTENS);
	other_goes_down();
	other_comes_up(7);
	asks_turn();
	say(more_of(4, 0, 100));
	came(3, 100);
	say(last_of(4, 1, -ECONNABORTED));
	assert_int_equal(asks_result(3, NULL), -ECONNABORTED);
}

/* A policy that does not allow it any more, before it was said what was heard */
static void revoked(void **state)
{
	(void)state;
	submit(ACCEPT, 2, LISTENS);
	answer(0, 0);
	say(more_of(0, 0, 100));
	say(more_of(0, 1, 101));
	other_goes_down();
	other_comes_up(7);
	say(last_of(0, 0, -EACCES));
	came(2, 100);
	came(2, 101);
	assert_int_equal(asks_result(2, NULL), -EACCES);
}

/*
 * A gateway of a version that is not told what was heard: it refuses what it does not know, and the
 * socket is as good as before.
 */
static void former(void **state)
{
	(void)state;
	submit(ACCEPT, 2, LISTENS);
	/* how it would know such a request */
	assert_int_not_equal(o.peer.asked.m[0].data[2], 7);
	answer(0, -EOPNOTSUPP);
	assert_int_equal(asks_result(2, NULL), -EOPNOTSUPP);
	submit(ACCEPT, 3, .handle = 77);
	answer(1, 0);
	other_goes_down();
	other_comes_up(7);
	say(end_of(1, 0, 78));
	assert_int_equal(asks_result(3, NULL), 0);
}

static void comes_up_dry(void)
{
	other_goes_down();
	o.peer.asked.n = 0;
	no_memory = true;
	other_comes_up(7);
	no_memory = false;
}

/*
 * There is no memory for what is to be asked over another connection: what waits is lost with all
 * that the session has there, and its guest hears that it is over as soon as it can be told.
 */
static void dry(void **state)
{
	(void)state;
	submit(RECV, 2, .handle = 77, .off = AT, .len = 8);
	answer(0, 0);
	submit(ACCEPT, 3, LISTENS);
	answer(1, 0);
	submit(ACCEPT, 4, LISTENS);
	answer(2, 0);
	comes_up_dry();
	assert_int_equal(asks_result(3, NULL), -ECONNRESET);
	assert_int_equal(asks_result(2, NULL), -ECONNRESET);
	assert_int_equal(asks_result(4, NULL), -ECONNRESET);
	assert_true(asks_quiet());
	assert_int_equal(o.peer.asked.n, 0);
	submit(RECV, 5, .handle = 77, .off = AT, .len = 8);
	assert_int_equal(asks_result(5, NULL), -ECONNRESET);
	comes_up_dry();
	assert_true(asks_quiet());
	assert_int_equal(o.peer.asked.n, 0);
	/* the session is over, too */
	no_memory = true;
	rgate_seat_remove(prog.seat);
	prog.seat = NULL;
	(void)bed_run(asks_engine);
	no_memory = false;
	comes_up_dry();
	other_goes_down();
	other_comes_up(7);
	asks_turn();
	assert_int_equal(o.peer.asked.n, 1);
	assert_int_equal(question(0).kind, GATE_LEAVE);
	assert_int_equal(question(0).guest, asks_guest);
	answer(0, 0);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, asks_setup, asks_teardown)

static const struct CMUnitTest tests[] = {
	BED(told_again), BED(said_again), BED(ends_unanswered), BED(heard_in_vain),
	BED(taken_unheard), BED(revoked), BED(former), BED(dry),
};

UNIT_MAIN_ALONE(tests)
