// SPDX-License-Identifier: MIT OR GPL-2.0
/* A line to a node that answers late, out of step, over another connection, twice or never. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "line.h"
#include "other.h"

static struct line *l;

/* Who asks */
struct asker {
	unsigned int over;	/* times */
	int err;
	bool again;		/* asks the next one when this one is over, ... */
	bool got;		/* ... and had a place for it */
	uint64_t word, answer;
};

static struct asker askers[CALL_PLACES + 1];

/* What the line told */
static struct {
	enum session_news what[8];
	unsigned int n;
} told;

static void news(void *ctx, uint32_t node, enum session_news what)
{
	assert_ptr_equal(ctx, &told);
	assert_int_equal(node, OTHER);
	assert_true(told.n < 8);
	/* Before those hear of it who wait at the line */
	assert_true(what != SESSION_OTHER || !askers[1].over);
	told.what[told.n++] = what;
}

static void look(void)
{
	line_look(l, news, &told);
}

static void up(uint64_t incarnation)
{
	other_comes_up(incarnation);
	look();
}

static void down(void)
{
	other_goes_down();
	look();
}

static int setup(void **state)
{
	(void)state;
	other_init(RGATE_SERVICE_MEMORY);
	memset(askers, 0, sizeof(askers));
	assert_int_equal(line_create(&l, HUB, OTHER), 0);
	assert_int_equal(line_node(l), OTHER);
	assert_ptr_equal(line_peer(l), PEER);
	assert_false(line_is_up(l));
	up(7);
	assert_true(line_is_up(l));
	memset(&told, 0, sizeof(told));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	line_destroy(l);
	assert_int_equal(o.hub.node.stage.lent, 0);
	return 0;
}

static bool ask(unsigned int i, bool repeat);

static void over(struct ask *a, int err, const void *answer, size_t len)
{
	struct asker *by = a->ctx;

	by->over++;
	by->err = err;
	by->word = a->word;
	if (err)
		return;
	assert_int_equal(len, sizeof(by->answer));
	memcpy(&by->answer, answer, sizeof(by->answer));
	if (!by->again)
		return;
	by->again = false;
	by->got = ask((unsigned int)(by - askers), false);
}

/* False: there was no place */
static bool ask(unsigned int i, bool repeat)
{
	struct ask *a;

	line_reap(l);
	a = line_open(l);
	if (!a)
		return false;
	a->ctx = &askers[i];
	a->word = i + 100;
	memcpy(a->msg, &a->number, sizeof(a->number));
	line_ask(a, sizeof(a->number), repeat, over);
	line_send(l, false);
	return true;
}

static uint64_t asked(unsigned int i)
{
	uint64_t number;

	assert_true(i < o.peer.asked.n);
	assert_int_equal(o.peer.asked.m[i].len, sizeof(number));
	memcpy(&number, o.peer.asked.m[i].data, sizeof(number));
	return number;
}

static bool answer(uint64_t number, uint64_t what)
{
	return line_answered(l, number, &what, sizeof(what));
}

/* The last one first, and each for who has asked it */
static void out_of_step(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < CALL_PLACES; i++)
		assert_true(ask(i, false));
	assert_int_equal(o.peer.asked.n, CALL_PLACES);
	for (i = CALL_PLACES; i--;) {
		assert_int_equal(askers[i].over, 0);
		assert_true(answer(asked(i), i * 5));
		assert_int_equal(askers[i].over, 1);
		assert_int_equal(askers[i].answer, i * 5);
		assert_int_equal(askers[i].word, i + 100);
		/* once */
		assert_false(answer(asked(i), 1));
	}
	for (i = 0; i < CALL_PLACES; i++)
		assert_int_equal(askers[i].over, 1);
}

/* A place is free with its answer, but not before its message has left. */
static void no_place(void **state)
{
	unsigned int i;

	(void)state;
	o.peer.held = true;
	for (i = 0; i < CALL_PLACES; i++)
		assert_true(ask(i, false));
	assert_false(ask(CALL_PLACES, false));
	assert_true(answer(asked(3), 1));
	assert_false(ask(CALL_PLACES, false));
	o.peer.held = false;
	assert_true(ask(CALL_PLACES, false));
	assert_false(ask(CALL_PLACES, false));
	/* too late: the place is another's */
	assert_false(answer(asked(3), 1));
	assert_true(answer(asked(CALL_PLACES), 2));
	assert_int_equal(askers[CALL_PLACES].answer, 2);
}

/* Who is told has his place back already, for the next question. */
static void again_at_once(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < CALL_PLACES; i++)
		assert_true(ask(i, false));
	assert_false(ask(CALL_PLACES, false));
	askers[5].again = true;
	assert_true(answer(asked(5), 1));
	assert_true(askers[5].got);
	assert_int_equal(o.peer.asked.n, CALL_PLACES + 1);
	assert_int_equal(asked(CALL_PLACES) % CALL_PLACES, asked(5) % CALL_PLACES);
	/* and has it until that is answered */
	assert_false(ask(CALL_PLACES, false));
	assert_int_equal(askers[5].over, 1);
	assert_true(answer(asked(CALL_PLACES), 2));
	assert_int_equal(askers[5].over, 2);
	assert_int_equal(askers[5].answer, 2);
	for (i = 0; i < CALL_PLACES; i++)
		assert_true(i == 5 || answer(asked(i), 1));
}

/* A wire without room, which tells of none, and one without connection, of which the hub tells */
static void no_room(void **state)
{
	unsigned int awaits;

	(void)state;
	o.peer.full = true;
	awaits = o.peer.awaits;
	assert_true(ask(0, false));
	assert_int_equal(o.peer.asked.n, 0);
	assert_true(line_is_stalled(l));
	assert_int_equal(o.peer.awaits, awaits);
	line_send(l, true);
	assert_int_equal(o.peer.awaits, ++awaits);
	o.peer.full = false;
	line_send(l, false);
	assert_int_equal(o.peer.asked.n, 1);
	/* what was posted has an end */
	assert_int_equal(o.peer.awaits, ++awaits);
	assert_false(line_is_stalled(l));
	line_send(l, false);
	assert_int_equal(o.peer.asked.n, 1);
	down();
	assert_true(ask(1, false));
	assert_false(line_is_stalled(l));
	assert_int_equal(o.peer.asked.n, 1);
}

/* The same question over the next connection; answers of the last one are nobody's. */
static void asked_again(void **state)
{
	uint64_t number;

	(void)state;
	assert_true(ask(0, false));
	number = asked(0);
	down();
	assert_false(line_is_up(l));
	assert_false(answer(number, 1));
	up(7);
	assert_int_equal(told.n, 2);
	assert_int_equal(told.what[0], SESSION_DOWN);
	assert_int_equal(told.what[1], SESSION_UP);
	line_send(l, false);
	assert_int_equal(o.peer.asked.n, 2);
	assert_int_equal(asked(1), number);
	assert_int_equal(askers[0].over, 0);
	assert_true(answer(number, 2));
	assert_int_equal(askers[0].answer, 2);
}

/* Another process: nobody knows what the last one did; of what may be repeated it is asked. */
static void other_process(void **state)
{
	(void)state;
	assert_true(ask(1, false));
	assert_true(ask(2, true));
	down();
	assert_true(ask(3, false));
	up(8);
	assert_int_equal(told.n, 3);
	assert_int_equal(told.what[1], SESSION_OTHER);
	assert_int_equal(told.what[2], SESSION_UP);
	assert_int_equal(askers[1].err, -ECONNRESET);
	assert_int_equal(askers[1].over, 1);
	assert_int_equal(askers[2].over + askers[3].over, 0);
	line_send(l, false);
	assert_int_equal(o.peer.asked.n, 4);
	assert_true(answer(asked(2), 1));
	assert_true(answer(asked(3), 1));
	assert_int_equal(askers[2].over + askers[3].over, 2);
}

/* Who leaves hears nothing, and his places come back with the answers, or the connection. */
static void left(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < CALL_PLACES - 1; i++)
		assert_true(ask(0, false));
	assert_true(ask(1, false));
	assert_true(line_leave(l, &askers[0]));
	assert_false(line_leave(l, &askers[0]));
	assert_false(ask(2, false));
	assert_true(answer(asked(4), 1));
	assert_true(ask(2, false));
	assert_false(ask(3, false));
	assert_int_equal(asked(CALL_PLACES) % CALL_PLACES, asked(4) % CALL_PLACES);
	down();
	/* what was not sent is nobody's to have done */
	assert_true(ask(3, false));
	assert_false(line_leave(l, &askers[3]));
	assert_true(ask(4, false));
	up(7);
	line_send(l, false);
	/* those of 1, 2 and 4 */
	assert_int_equal(o.peer.asked.n, CALL_PLACES + 4);
	line_leave_all(l);
	for (i = 0; i < o.peer.asked.n; i++)
		(void)answer(asked(i), 1);
	for (i = 0; i < 5; i++)
		assert_int_equal(askers[i].over, 0);
}

static void when_asked(void **state)
{
	struct ask *a;
	uint64_t then;

	(void)state;
	down();
	a = line_open(l);
	assert_non_null(a);
	a->ctx = &askers[0];
	line_ask(a, sizeof(a->number), false, over);
	line_send(l, false);
	then = line_asked_ns(a);
	assert_true(then > 0);
	up(7);
	line_send(l, false);
	/* it waited for a connection until now */
	assert_true(line_asked_ns(a) > then);
	then = line_asked_ns(a);
	down();
	up(7);
	line_send(l, false);
	assert_int_equal(line_asked_ns(a), then);
	line_leave_all(l);
}

static void destroyed(void **state)
{
	(void)state;
	assert_true(ask(0, false));
	o.peer.held = true;
	assert_true(ask(1, false));
	assert_true(line_leave(l, &askers[1]));
	line_destroy(l);
	l = NULL;
	assert_int_equal(o.peer.settles, 1);
	assert_int_equal(askers[0].over, 1);
	assert_int_equal(askers[0].err, -ECANCELED);
	assert_int_equal(askers[1].over, 0);
}

/* ---- Who answers ---- */

static void say(uint64_t number, uint64_t what)
{
	line_say(l, number, &what, sizeof(what));
}

static uint64_t said(unsigned int i)
{
	uint64_t what;

	assert_true(i < o.peer.said.n);
	assert_int_equal(o.peer.said.m[i].len, sizeof(what));
	memcpy(&what, o.peer.said.m[i].data, sizeof(what));
	return what;
}

/* Carried out once, whatever becomes of the connection */
static void once(void **state)
{
	(void)state;
	assert_true(line_take(l, 16));
	say(16, 5);
	assert_int_equal(said(0), 5);
	assert_false(line_take(l, 16));
	assert_int_equal(said(1), 5);
	down();
	up(7);
	assert_false(line_take(l, 16));
	assert_int_equal(said(2), 5);
	assert_true(line_take(l, 32));
	/* an old one is nobody's, nor what comes of it */
	assert_false(line_take(l, 16));
	say(16, 6);
	assert_int_equal(o.peer.said.n, 3);
	say(32, 7);
	assert_int_equal(said(3), 7);
	down();
	up(8);
	assert_true(line_take(l, 16));
}

/* The answer comes when another thing has ended; those that were asked later may be before it. */
static void said_late(void **state)
{
	(void)state;
	assert_true(line_take(l, 16));
	assert_true(line_take(l, 17));
	say(17, 1);
	assert_false(line_take(l, 16));
	assert_int_equal(o.peer.said.n, 1);
	down();
	/* what it came to is kept */
	say(16, 2);
	assert_int_equal(o.peer.said.n, 1);
	up(7);
	line_say_again(l);
	assert_int_equal(o.peer.said.n, 1);
	assert_false(line_take(l, 16));
	assert_int_equal(said(1), 2);
}

/* Another connection is there, of which the line has not been told: nobody has asked over it. */
static void said_too_soon(void **state)
{
	(void)state;
	assert_true(line_take(l, 16));
	down();
	other_comes_up(7);
	say(16, 5);
	assert_int_equal(o.peer.said.n, 0);
	look();
	line_say_again(l);
	assert_int_equal(o.peer.said.n, 0);
	assert_false(line_take(l, 16));
	assert_int_equal(o.peer.said.n, 1);
	assert_int_equal(said(0), 5);
	/* over which another process is to ask another thing with that number */
	assert_true(line_take(l, 32));
	down();
	other_comes_up(8);
	say(32, 6);
	assert_int_equal(o.peer.said.n, 1);
	look();
	line_say_again(l);
	assert_int_equal(o.peer.said.n, 1);
	assert_true(line_take(l, 32));
	assert_int_equal(o.peer.said.n, 1);
	say(32, 7);
	assert_int_equal(o.peer.said.n, 2);
	assert_int_equal(said(1), 7);
}

static void no_room_to_say(void **state)
{
	uint64_t i;

	(void)state;
	o.peer.send_full = true;
	for (i = 16; i < 32; i++) {
		assert_true(line_take(l, i));
		say(i, i);
	}
	assert_int_equal(o.peer.said.n, 0);
	assert_true(line_is_stalled(l));
	line_say_again(l);
	/* who asks anew in a place waits for that alone, which is not known yet */
	assert_true(line_take(l, 33));
	o.peer.send_full = false;
	line_say_again(l);
	assert_false(line_is_stalled(l));
	assert_int_equal(o.peer.said.n, CALL_PLACES - 1);
	assert_int_equal(said(0), 16);
	assert_int_equal(said(1), 18);
	line_say_again(l);
	assert_int_equal(o.peer.said.n, CALL_PLACES - 1);
	/* with the connection nobody waits any more who does not ask again */
	o.peer.send_full = true;
	say(33, 33);
	assert_true(line_is_stalled(l));
	down();
	assert_false(line_is_stalled(l));
	o.peer.send_full = false;
	up(7);
	line_say_again(l);
	assert_int_equal(o.peer.said.n, CALL_PLACES - 1);
}

/* No answer is longer than there is room for: it is none. */
static void too_long(void **state)
{
	static const uint8_t answer_[CALL_MSG_MAX + 1];

	(void)state;
	assert_true(line_take(l, 16));
	line_say(l, 16, answer_, sizeof(answer_));
	assert_int_equal(o.peer.said.n, 0);
	line_say(l, 16, answer_, CALL_MSG_MAX);
	assert_int_equal(o.peer.said.m[0].len, CALL_MSG_MAX);
}

static void current(void **state)
{
	(void)state;
	assert_true(line_is_current(l));
	/* the hub has not told of it yet */
	o.peer.hub_epoch--;
	assert_false(line_is_current(l));
	o.peer.hub_epoch++;
	down();
	assert_false(line_is_current(l));
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	BED(out_of_step), BED(no_place), BED(again_at_once), BED(no_room), BED(asked_again),
	BED(other_process), BED(left), BED(when_asked), BED(destroyed),
	BED(once), BED(said_late), BED(said_too_soon), BED(no_room_to_say), BED(too_long),
	BED(current),
};

UNIT_MAIN_ALONE(tests)
