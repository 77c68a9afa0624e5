// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests of a stream that have wide berths, at a gateway that has some: which the test is. */
#include "dock_bed.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define ROOM		65536U
#define NARROW		((size_t)GATE_BERTHS * ROOM)
#define ALL		(NARROW + (size_t)GATE_WIDE * GATE_LONG)
#define SEND_AT		4096U
#define WIDE_TICKET	(GATE_TICKETS - GATE_WIDE)

static unsigned char theirs[ALL], *ours;
static uint64_t dock;

static unsigned char *berth(unsigned char *of, uint32_t n)
{
	return n <= GATE_BERTHS ? of + (size_t)(n - 1) * ROOM :
	       of + NARROW + (size_t)(n - 1 - GATE_BERTHS) * GATE_LONG;
}

/* A receive of nothing brings a dock of that length about. */
static void docks(size_t len)
{
	const struct rgate_desc desc = peer_desc(theirs, len, PEER_KEY);
	struct gate_result docked;
	struct gate_question q;
	struct rgate_desc mine;

	o.peer.asked.n = 0;
	submit(RECV, 2, .handle = 77, .off = AT, .len = ROOM);
	q = question(0);
	assert_int_equal(q.kind, GATE_DOCK);
	memcpy(&mine, q.data, sizeof(mine));
	assert_int_equal(le64toh(mine.length), ALL);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): as peer_desc() made it */
	ours = (unsigned char *)(uintptr_t)le64toh(mine.addr);
	dock = q.serial;
	docked = (struct gate_result){
		.kind = GATE_DOCK, .number = q.number, .len = sizeof(desc),
		.data = &desc, .data_len = sizeof(desc),
	};
	say(docked);
	answer(1, 0);
	say(end_of(1, 0, 0));
	assert_int_equal(asks_result(2, NULL), 0);
	o.peer.asked.n = 0;
}

static int setup(void **state)
{
	(void)dock_setup(state);
	memset(theirs, 0, sizeof(theirs));
	return 0;
}

/* The question of a send of so many bytes, of which @takes are asked for */
static struct gate_question sent(uint64_t cookie, uint32_t len, uint32_t takes)
{
	struct gate_question q;

	dock_set_bytes(prog.mem + SEND_AT, len);
	submit(SEND, cookie, .handle = 77, .off = SEND_AT, .len = len);
	q = question(o.peer.asked.n - 1);
	assert_int_equal(q.kind, GATE_SUBMIT);
	assert_int_equal(q.len, takes);
	assert_int_equal(q.data_len, 0);
	assert_int_equal(q.lent.in > GATE_BERTHS, takes > ROOM);
	assert_int_equal(q.ticket >= WIDE_TICKET, takes > ROOM);
	peer_places(&o.peer);
	dock_check_bytes(berth(theirs, q.lent.in), takes);
	return q;
}

static void ends(unsigned int i, uint64_t cookie, int result)
{
	answer(i, 0);
	say(end_of(i, result, 0));
	assert_int_equal(asks_result(cookie, NULL), result);
}

static void sends(void **state)
{
	unsigned int i;

	(void)state;
	docks(ALL);
	for (i = 0; i < 3 * GATE_WIDE; i++) {
		o.peer.asked.n = 0;
		(void)sent(3, GATE_LONG - i, GATE_LONG - i);
		ends(0, 3, (int)(GATE_LONG - i));
	}
	/* and not more than that */
	o.peer.asked.n = 0;
	(void)sent(3, GATE_LONG + 1, GATE_LONG);
	ends(0, 3, (int)GATE_LONG);
	o.peer.asked.n = 0;
	(void)sent(3, ROOM, ROOM);
	ends(0, 3, (int)ROOM);
}

/* Those behind them are cut; when one has ended there is another one. */
static void sends_many(void **state)
{
	unsigned int i;

	(void)state;
	docks(ALL);
	for (i = 0; i <= GATE_WIDE; i++) {
		(void)sent(10 + i, GATE_LONG, i < GATE_WIDE ? GATE_LONG : ROOM);
		answer(i, 0);
	}
	say(end_of(3, (int)GATE_LONG, 0));
	assert_int_equal(asks_result(13, NULL), GATE_LONG);
	(void)sent(30, GATE_LONG, GATE_LONG);
}

/* A berth is the other side of a ticket: half of them are not lent to what may wait. */
static void receives(void **state)
{
	struct gate_question q;
	struct gate_result r;
	unsigned int i;

	(void)state;
	docks(ALL);
	for (i = 0; i <= GATE_WIDE / 2; i++) {
		submit(RECV, 10 + i, .handle = 77, .off = AT, .len = GATE_LONG + 4096);
		q = question(i);
		assert_int_equal(q.lent.out > GATE_BERTHS, i < GATE_WIDE / 2);
		assert_int_equal(q.len, i < GATE_WIDE / 2 ? GATE_LONG : ROOM);
		answer(i, 0);
	}
	for (i = 0; i <= GATE_WIDE / 2; i++) {
		q = question(i);
		memset(prog.mem + AT, 0, GATE_LONG + 1);
		dock_set_bytes(berth(ours, q.lent.out), q.len);
		r = end_of(i, (int)q.len, 0);
		r.len = q.len;
		r.lent = (struct gate_lent){ .dock = dock, .out = q.lent.out };
		say(r);
		assert_int_equal(asks_result(10 + i, NULL), q.len);
		dock_check_bytes(prog.mem + AT, q.len);
		assert_int_equal(prog.mem[AT + q.len], 0);
	}
}

/* One of an earlier version has a dock without them, and is asked for what it knows. */
static void former(void **state)
{
	(void)state;
	docks(ALL - 1);
	(void)sent(3, GATE_LONG, ROOM);
	ends(0, 3, (int)ROOM);
	o.peer.asked.n = 0;
	submit(RECV, 4, .handle = 77, .off = AT, .len = GATE_LONG);
	assert_int_equal(question(0).len, ROOM);
	assert_int_equal(question(0).lent.out <= GATE_BERTHS, 1);
	ends(0, 4, 0);
}

/* Without a dock, and of what is no stream's or has many completions */
static void others(void **state)
{
	(void)state;
	o.peer.asked.n = 0;
	submit(RECV, 3, .handle = 77, .off = AT, .len = GATE_LONG);
	/* behind the question for the dock */
	assert_int_equal(question(1).len, ROOM);
	answer(1, 0);
	say(end_of(1, 0, 0));
	assert_int_equal(asks_result(3, NULL), 0);
	o.peer.asked.n = 0;
	submit(RECV, 4, .handle = 77, .off = AT, .len = GATE_LONG, .flags = RGATE_REQ_MULTI,
	       .a1 = 4);
	assert_int_equal(asks_result(4, NULL), -EMSGSIZE);
	submit(RECVFROM, 5, .handle = 77, .off = AT, .len = GATE_LONG, .a1 = 0);
	assert_int_equal(question(0).len, ROOM);
}

/* Another connection: what was written to a berth is asked for, which takes pieces. */
static void lost(void **state)
{
	struct gate_question q;
	unsigned int n = 0;
	uint32_t at;

	(void)state;
	docks(ALL);
	q = sent(3, GATE_LONG, GATE_LONG);
	other_goes_down();
	o.peer.asked.n = 0;
	other_comes_up(7);
	asks_turn();
	/* It may have been begun: the same again, and whether its session is there; */
	assert_int_equal(question(0).len, GATE_LONG);
	assert_int_equal(question(0).serial, q.serial);
	assert_int_equal(question(1).kind, GATE_CANCEL);
	answer(1, 0);
	/* but it was not, and fewer bytes go in pieces. */
	answer(0, -ENOLINK);
	for (at = 0; question(2 + n).kind == GATE_PUT; n++) {
		at += question(2 + n).len;
		answer(2 + n, 0);
	}
	assert_int_equal(at, ROOM - GATE_PIECE);
	assert_int_equal(question(2 + n).len, ROOM);
	ends(2 + n, 3, (int)ROOM);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, dock_teardown)

static const struct CMUnitTest tests[] = {
	BED(sends), BED(sends_many), BED(receives), BED(former), BED(others), BED(lost),
};

UNIT_MAIN_ALONE(tests)
