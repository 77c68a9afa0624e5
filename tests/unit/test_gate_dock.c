// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Sockets at a gateway to which bytes go by writes, and from which they come so: the test is the
 * gateway, with a dock of its own, and writes to this node's.
 */
#include "dock_bed.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM	65536U
#define LONG	5000U
#define ALL	((size_t)GATE_BERTHS * ROOM)	/* of a node that knows no wide berths */
#define WHOLE	(ALL + (size_t)GATE_WIDE * GATE_LONG)
#define SOME	(GATE_BERTHS / 2)	/* lent to requests that wait */

static unsigned int callocs;	/* after so many one fails; 0: none */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return callocs && !--callocs ? NULL : __real_calloc(n, size);
}

static unsigned char theirs[ALL];
static unsigned char *ours;
static uint64_t dock;

static unsigned char *berth(unsigned char *of, uint32_t n)
{
	assert_in_range(n, 1, GATE_BERTHS);
	return of + (size_t)(n - 1) * ROOM;
}

/* The answer to the question @i: that @desc is its dock */
static void gives(unsigned int i, const void *desc, uint32_t len)
{
	const struct gate_result r = { .kind = GATE_DOCK, .number = question(i).number,
				       .len = len, .data = desc, .data_len = len };

	say(r);
}

/* It is asked for the dock, which is there from then on. */
static void docks(unsigned int i)
{
	const struct rgate_desc desc = peer_desc(theirs, ALL, PEER_KEY);
	const struct gate_question q = question(i);
	struct rgate_desc mine;

	assert_int_equal(q.kind, GATE_DOCK);
	assert_int_equal(q.data_len, sizeof(mine));
	memcpy(&mine, q.data, sizeof(mine));
	assert_int_equal(le64toh(mine.length), WHOLE);
	assert_int_equal(mine.access, RGATE_ACCESS_REMOTE_WRITE);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): as peer_desc() made it */
	ours = (unsigned char *)(uintptr_t)le64toh(mine.addr);
	dock = q.serial;
	gives(i, &desc, sizeof(desc));
}

/* A receive of nothing brings the dock about. */
static void first(void)
{
	o.peer.asked.n = 0;
	submit(RECV, 2, .handle = 77, .off = AT, .len = LONG);
	assert_int_equal(o.peer.asked.n, 2);
	docks(0);
	assert_int_equal(question(1).lent.dock, 0);
	answer(1, 0);
	say(end_of(1, 0, 0));
	assert_int_equal(asks_result(2, NULL), 0);
	o.peer.asked.n = 0;
}

static int setup_old(void **state)
{
	(void)dock_setup(state);
	memset(theirs, 0, sizeof(theirs));
	return 0;
}

static int setup(void **state)
{
	(void)setup_old(state);
	first();
	return 0;
}

/* The answer to a question for bytes, with @data of them or, if it has a berth, without */
static void gets(const struct gate_question *q, const void *data, uint32_t len)
{
	const struct gate_result r = { .kind = GATE_GET, .number = q->number, .len = q->len,
				       .data = data, .data_len = len };

	say(r);
}

static struct gate_result laid_end(unsigned int i, uint32_t len)
{
	struct gate_result r = end_of(i, (int)len, 0);

	r.len = len;
	r.lent = (struct gate_lent){ .dock = dock, .out = question(i).lent.out };
	return r;
}

/* One write, then the request; its berth is free as soon as that was taken */
static void sends(void **state)
{
	struct gate_question q;
	unsigned int i;

	(void)state;
	for (i = 0; i < 3 * GATE_BERTHS; i++) {
		dock_set_bytes(prog.mem + AT, LONG);
		o.peer.asked.n = 0;
		submit(SEND, 3, .handle = 77, .off = AT, .len = LONG);
		assert_int_equal(o.peer.asked.n, 1);
		q = question(0);
		assert_int_equal(q.kind, GATE_SUBMIT);
		assert_int_equal(q.len, LONG);
		assert_int_equal(q.data_len, 0);
		assert_int_equal(q.lent.dock, dock);
		assert_int_equal(q.lent.out, 0);
		/* the program may do what it likes with its memory */
		memset(prog.mem + AT, 0, LONG);
		peer_places(&o.peer);
		dock_check_bytes(berth(theirs, q.lent.in), LONG);
		answer(0, 0);
		say(end_of(0, LONG, 0));
		assert_int_equal(asks_result(3, NULL), LONG);
	}
	/* what a message has room for */
	o.peer.asked.n = 0;
	submit(SEND, 3, .handle = 77, .off = AT, .len = GATE_PIECE);
	assert_int_equal(question(0).data_len, GATE_PIECE);
	assert_int_equal(question(0).lent.dock, 0);
}

/* Those that are taken wait all at once; a refusal gives the berth back as well. */
static void sends_many(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 2 * GATE_BERTHS; i++) {
		submit(SEND, 10 + i, .handle = 77, .off = AT, .len = LONG);
		assert_int_not_equal(question(i).lent.in, 0);
		answer(i, i & 1 ? -EBADF : 0);
		if (i & 1)
			assert_int_equal(asks_result(10 + i, NULL), -EBADF);
	}
	for (i = 0; i < 2 * GATE_BERTHS; i += 2) {
		say(end_of(i, LONG, 0));
		assert_int_equal(asks_result(10 + i, NULL), LONG);
	}
}

static void receives(void **state)
{
	struct gate_question q;
	unsigned int i;

	(void)state;
	for (i = 0; i < 3 * GATE_BERTHS; i++) {
		memset(prog.mem + AT, 0, LONG + 1);
		o.peer.asked.n = 0;
		submit(RECV, 3, .handle = 77, .off = AT, .len = 2 * LONG);
		q = question(0);
		assert_int_equal(q.lent.dock, dock);
		assert_int_equal(q.lent.in, 0);
		answer(0, 0);
		dock_set_bytes(berth(ours, q.lent.out), LONG);
		assert_true(asks_quiet());
		say(laid_end(0, LONG));
		/* late */
		memset(berth(ours, q.lent.out), 0xee, LONG);
		assert_int_equal(asks_result(3, NULL), LONG);
		dock_check_bytes(prog.mem + AT, LONG);
		assert_int_equal(prog.mem[AT + LONG], 0);
	}
}

/* Not all are lent to who may wait for long: the bytes of the others are asked for. */
static void waits(void **state)
{
	static uint8_t data[GATE_PIECE];
	struct gate_question q;
	struct gate_result r;
	unsigned int i;

	(void)state;
	for (i = 0; i <= SOME; i++) {
		submit(RECV, 10 + i, .handle = 77, .off = AT, .len = LONG);
		assert_int_equal(!question(i).lent.out, i == SOME);
		answer(i, 0);
	}
	r = end_of(SOME, LONG, 0);
	r.len = LONG;
	dock_set_bytes(data, GATE_PIECE);
	r.data = data;
	r.data_len = GATE_PIECE;
	say(r);
	q = question(SOME + 1);
	assert_int_equal(q.kind, GATE_GET);
	assert_int_equal(q.off, GATE_PIECE);
	assert_int_equal(q.len, LONG - GATE_PIECE);
	assert_int_equal(q.lent.dock, dock);
	for (i = 0; i < SOME; i++)
		assert_int_not_equal(question(i).lent.out, q.lent.out);
	for (i = q.off; i < LONG; i++)
		berth(ours, q.lent.out)[i] = dock_byte(i);
	assert_true(asks_quiet());
	gets(&q, NULL, 0);
	assert_int_equal(asks_result(10 + SOME, NULL), LONG);
	dock_check_bytes(prog.mem + AT, LONG);
}

/* The node has no memory for it just now, or another dock: then they come in pieces. */
static void refused(void **state)
{
	static const int errs[] = { -EAGAIN, -ENOLINK };
	static uint8_t data[GATE_PIECE];
	struct gate_question q;
	struct gate_result r;
	unsigned int i, n;

	(void)state;
	for (i = 0; i < ARRAY_LEN(errs); i++) {
		o.peer.asked.n = 0;
		submit(RECV, 3, .handle = 77, .off = AT, .len = LONG);
		answer(0, 0);
		r = end_of(0, 300, 0);
		r.len = 300 + 192;
		r.result = 300 + 192;
		dock_set_bytes(data, GATE_PIECE);
		r.data = data;
		say(r);
		assert_int_equal(question(1).lent.dock, dock);
		answer(1, errs[i]);
		assert_int_equal(o.peer.asked.n, 2 + 3);
		for (n = 2; n < 5; n++) {
			q = question(n);
			assert_int_equal(q.lent.dock, 0);
			for (uint32_t b = 0; b < q.len; b++)
				data[b] = dock_byte(q.off + b);
			gets(&q, data, q.len);
		}
		assert_int_equal(asks_result(3, NULL), 300 + 192);
		dock_check_bytes(prog.mem + AT, 300 + 192);
	}
	/* and those of a send, once */
	o.peer.asked.n = 0;
	submit(SEND, 3, .handle = 77, .off = AT, .len = 300);
	assert_int_not_equal(question(0).lent.in, 0);
	answer(0, -ENOLINK);
	assert_int_equal(question(1).kind, GATE_PUT);
	answer(1, 0);
	q = question(2);
	assert_int_equal(q.kind, GATE_SUBMIT);
	assert_int_equal(q.lent.dock, 0);
	answer(2, -ENOLINK);
	assert_int_equal(asks_result(3, NULL), -ENOLINK);
	assert_int_equal(o.peer.asked.n, 3);
}

/* Else they are nowhere, whatever it said of them before: nobody gets what the berth had in it. */
static void refused_for_good(void **state)
{
	struct gate_result r;

	(void)state;
	submit(RECV, 3, .handle = 77, .off = AT, .len = LONG);
	answer(0, 0);
	r = end_of(0, 500, 0);
	r.len = 500;
	say(r);
	assert_int_equal(question(1).lent.dock, dock);
	answer(1, -EIO);
	assert_int_equal(asks_result(3, NULL), -ECONNRESET);
	/* nothing of the session is believed any more */
	assert_int_equal(o.peer.asked.n, 3);
	assert_int_equal(question(2).kind, GATE_LEAVE);
	answer(2, 0);
}

/* Without memory for it there is no dock, half a one neither. */
static void no_memory(void **state)
{
	unsigned int i, fails, asked = 0, failed = 0;
	bool all = false;

	for (fails = 1; !all; fails++) {
		o.peer.asked.n = 0;
		client_submit(&prog, (struct rgate_request){
			.op = RGATE_REQ_SOCKET_RECV, .cookie = 3, .handle = 77, .off = AT,
			.len = LONG });
		callocs = fails;
		asks_turn();
		all = callocs;
		callocs = 0;
		for (i = asked = 0; i < o.peer.asked.n; i++)
			asked += question(i).kind == GATE_DOCK;
		assert_int_equal(node_shares(&o.hub.node), asked);
		failed += !asked;
		(void)asks_teardown(state);
		(void)setup_old(state);
	}
	assert_int_equal(asked, 1);
	assert_true(failed);
}

/* A node of an earlier version is asked once over each connection, and gets and gives pieces. */
static void former(void **state)
{
	unsigned int i, n = 0;

	(void)state;
	for (i = 0; i < 2; i++) {
		submit(SEND, 3, .handle = 77, .off = AT, .len = 300);
		assert_int_equal(question(n).kind, GATE_DOCK);
		assert_int_equal(question(n + 1).kind, GATE_PUT);
		answer(n, -EOPNOTSUPP);
		answer(n + 1, 0);
		assert_int_equal(question(n + 2).kind, GATE_SUBMIT);
		assert_int_equal(question(n + 2).lent.dock, 0);
		answer(n + 2, 0);
		assert_int_equal(node_shares(&o.hub.node), 0);
		say(end_of(n + 2, 300, 0));
		assert_int_equal(asks_result(3, NULL), 300);
		submit(SEND, 4, .handle = 77, .off = AT, .len = 300);
		assert_int_equal(question(n + 3).kind, GATE_PUT);
		answer(n + 3, 0);
		answer(n + 4, 0);
		say(end_of(n + 4, 300, 0));
		assert_int_equal(asks_result(4, NULL), 300);
		other_goes_down();
		other_comes_up(7);
		asks_turn();
		n = o.peer.asked.n;
		/* what it has is asked about */
		answer(n - 1, 0);
		assert_int_equal(o.peer.asked.n, n);
	}
}

/* Docks that are none */
static void lies_of_docks(void **state)
{
	struct rgate_desc desc[4];
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++)
		desc[i] = peer_desc(theirs, ALL, PEER_KEY);
	desc[0].length = htole64(ALL - 1);
	desc[1].access = RGATE_ACCESS_REMOTE_READ;
	desc[2].magic = 0;
	for (i = 0; i < 4; i++) {
		submit(RECV, 3, .handle = 77, .off = AT, .len = LONG);
		gives(0, &desc[i], i < 3 ? sizeof(desc[i]) : sizeof(desc[i]) - 1);
		answer(1, 0);
		assert_int_equal(node_shares(&o.hub.node), 0);
		say(end_of(1, 0, 0));
		assert_int_equal(asks_result(3, NULL), 0);
		submit(SEND, 3, .handle = 77, .off = AT, .len = 300);
		assert_int_equal(question(2).kind, GATE_PUT);
		(void)asks_teardown(NULL);
		(void)setup_old(NULL);
	}
}

/* What it was written to, and what it was asked with, are of that connection. */
static void lost_send(void **state)
{
	struct gate_question q;
	uint32_t at;

	(void)state;
	submit(SEND, 3, .handle = 77, .off = AT, .len = 300);
	at = question(0).lent.in;
	assert_int_not_equal(at, 0);
	other_goes_down();
	assert_int_equal(node_shares(&o.hub.node), 0);
	other_comes_up(7);
	asks_turn();
	/* as it was asked; and whether there still is such a session */
	q = question(1);
	assert_int_equal(q.number, question(0).number);
	assert_int_equal(q.lent.in, at);
	answer(2, 0);
	answer(1, -ENOLINK);
	/* there is no dock yet */
	assert_int_equal(question(3).kind, GATE_PUT);
	answer(3, 0);
	assert_int_equal(question(4).kind, GATE_SUBMIT);
	answer(4, 0);
	say(end_of(4, 300, 0));
	assert_int_equal(asks_result(3, NULL), 300);
	first();
}

static void lost_receive(void **state)
{
	static uint8_t data[GATE_PIECE];
	struct gate_question q;
	struct gate_result r;
	unsigned int i;
	uint64_t was;

	(void)state;
	submit(RECV, 3, .handle = 77, .off = AT, .len = LONG);
	answer(0, 0);
	r = end_of(0, 500, 0);
	r.len = 500;
	dock_set_bytes(data, sizeof(data));
	r.data = data;
	r.data_len = GATE_PIECE;
	say(r);
	q = question(1);
	assert_int_equal(q.kind, GATE_GET);
	assert_int_not_equal(q.lent.out, 0);
	memset(berth(ours, q.lent.out), 0xee, 500);
	was = q.number;
	other_goes_down();
	other_comes_up(7);
	asks_turn();
	/* asked again, and whether there is such a session: the answer that was kept there */
	answer(o.peer.asked.n - 1, 0);
	i = o.peer.asked.n;
	say((struct gate_result){ .kind = GATE_GET, .number = was, .len = 500 - GATE_PIECE });
	/* but nothing was written to the dock that there is, or will be */
	assert_true(asks_quiet());
	assert_int_equal(o.peer.asked.n, i + 3);
	for (; i < o.peer.asked.n; i++) {
		q = question(i);
		if (q.kind == GATE_DOCK)
			continue;
		assert_int_equal(q.kind, GATE_GET);
		assert_int_equal(q.lent.dock, 0);
		for (uint32_t b = 0; b < q.len; b++)
			data[b] = dock_byte(q.off + b);
		gets(&q, data, q.len);
	}
	assert_int_equal(asks_result(3, NULL), 500);
	dock_check_bytes(prog.mem + AT, 500);
}

/* While it is asked for */
static void lost_dock(void **state)
{
	(void)state;
	submit(RECV, 2, .handle = 77, .off = AT, .len = LONG);
	assert_int_equal(question(0).kind, GATE_DOCK);
	assert_int_equal(node_shares(&o.hub.node), 1);
	other_goes_down();
	assert_int_equal(node_shares(&o.hub.node), 0);
	other_comes_up(7);
	asks_turn();
	/* its answer comes late */
	gives(0, theirs, sizeof(struct rgate_desc));
	answer(1, 0);
	answer(o.peer.asked.n - 1, 0);
	say(end_of(1, 0, 0));
	assert_int_equal(asks_result(2, NULL), 0);
	first();
}

/* Where it says that bytes are, and they cannot be */
static void lies(void **state)
{
	enum lie { OTHER_BERTH, OTHER_DOCK, TOO_MANY, AS_WELL, LIES };
	static uint8_t data[GATE_PIECE];
	struct gate_question q;
	struct gate_result r;
	unsigned int i;

	for (i = 0; i < LIES; i++) {
		memset(prog.mem + AT, 0xee, LONG + 1);
		submit(RECV, 3, .handle = 77, .off = AT, .len = LONG);
		answer(0, 0);
		r = laid_end(0, LONG);
		if (i == OTHER_BERTH)
			r.lent.out = 1 + r.lent.out % GATE_BERTHS;
		else if (i == OTHER_DOCK)
			r.lent.dock++;
		else if (i == TOO_MANY)
			r.result = (int)(r.len += 1);
		say(r);
		if (i == TOO_MANY) {
			assert_int_equal(asks_result(3, NULL), -EPROTO);
		} else if (i < TOO_MANY) {
			/* they are asked for: but not those that are there */
			q = question(1);
			assert_int_equal(q.kind, GATE_GET);
			assert_int_equal(q.off, 0);
			q.len--;
			gets(&q, NULL, 0);
			assert_int_equal(asks_result(3, NULL), -EPROTO);
		}
		assert_int_equal(prog.mem[AT + LONG], 0xee);
		(void)dock_teardown(state);
		(void)setup(state);
	}
	/* an answer of that length, with bytes that nobody has asked to be in it */
	submit(RECV, 3, .handle = 77, .off = AT, .len = LONG);
	answer(0, 0);
	r = laid_end(0, LONG);
	r.lent.dock = 0;
	r.data = data;
	say(r);
	q = question(1);
	gets(&q, data, 1);
	assert_int_equal(asks_result(3, NULL), -EPROTO);
}

/* There is no room for a write: the bytes go all the same. */
static void no_room(void **state)
{
	(void)state;
	o.peer.full = true;
	submit(SEND, 3, .handle = 77, .off = AT, .len = 300);
	assert_int_equal(o.peer.asked.n, 0);
	o.peer.full = false;
	asks_turn();
	assert_int_equal(question(0).kind, GATE_PUT);
	answer(0, 0);
	answer(1, 0);
	say(end_of(1, 300, 0));
	assert_int_equal(asks_result(3, NULL), 300);
}

/* Berths of a session that is lost are lent to nobody before the node knows of that. */
static void abandoned(void **state)
{
	const struct rgate_seat_opts so = RGATE_OPTS(rgate_seat_opts, .uid = ME, .requests = 128,
						     .completions = 128, .memory = ASKS_MEMORY);
	struct client was = prog;
	unsigned int i, n, leave;
	uint32_t in, out;

	(void)state;
	submit(RECV, 3, .handle = 77, .off = AT, .len = LONG);
	out = question(0).lent.out;
	answer(0, 0);
	submit(RECV, 4, .handle = 77, .off = AT, .len = 10);
	answer(1, 0);
	submit(SEND, 5, .handle = 77, .off = AT, .len = LONG);
	in = question(2).lent.in;
	/* it is not believed any more */
	say(end_of(1, 11, 0));
	leave = o.peer.asked.n - 1;
	assert_int_equal(question(leave).kind, GATE_LEAVE);
	memset(&prog, 0, sizeof(prog));
	assert_int_equal(client_open(&prog, asks_engine, &so), 0);
	for (i = 0; i < 8; i++) {
		n = o.peer.asked.n;
		submit(OPEN, 5, .a0 = 99);
		answer(n, 0);
		say(end_of(n, 0, 77));
		assert_int_equal(asks_result(5, NULL), 0);
		n = o.peer.asked.n;
		submit(SEND, 6, .handle = 77, .off = AT, .len = LONG);
		submit(RECV, 7, .handle = 77, .off = AT, .len = LONG);
		answer(n, 0);
		answer(n + 1, 0);
		assert_int_equal(question(n).lent.in == in, i >= 4);
		assert_int_equal(question(n + 1).lent.out == out, i >= 4);
		say(end_of(n, LONG, 0));
		assert_int_equal(asks_result(6, NULL), LONG);
		say(end_of(n + 1, 0, 0));
		assert_int_equal(asks_result(7, NULL), 0);
		if (i == 3)
			answer(leave, 0);
	}
	rgate_seat_remove(was.seat);
	asks_turn();
	client_close(&was);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, dock_teardown)
#define OLD(name)	cmocka_unit_test_setup_teardown(name, setup_old, dock_teardown)

static const struct CMUnitTest tests[] = {
	BED(sends), BED(sends_many), BED(receives), BED(waits), BED(refused), BED(refused_for_good),
	OLD(no_memory), OLD(former), OLD(lies_of_docks), BED(lost_send), BED(lost_receive),
	OLD(lost_dock), BED(lies), BED(no_room), BED(abandoned),
};

UNIT_MAIN_ALONE(tests)
