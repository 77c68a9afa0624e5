// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * One request that accepts many connections at a gateway, which tells of them when the test says
 * so: late, anew, of too many, of some that cannot be.
 */
#include "asks_bed.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define N	4U		/* completions: 3 connections */
#define BYTES	((N - 1) * GATE_ADDR)
#define LISTENS	.handle = 77, .a1 = N, .flags = RGATE_REQ_MULTI

static bool is_told_of(uint32_t place, uint16_t port)
{
	struct rgate_socket_addr a;

	memcpy(&a, prog.mem + AT + place * GATE_ADDR, sizeof(a));
	return a.port == port;
}

static void cancel(uint64_t cookie)
{
	client_submit(&prog, (struct rgate_request){
		.op = RGATE_REQ_CANCEL, .cookie = 99, .a0 = cookie });
	/* it ends by itself, with what is still to be told */
	assert_int_equal(asks_result(99, NULL), -EALREADY);
}

/* Each with its handle and address, in their order; then its places are used up. */
static void accepts(void **state)
{
	struct gate_question q;
	uint32_t i;

	(void)state;
	submit(ACCEPT, 2, LISTENS, .off = AT, .len = BYTES);
	q = question(0);
	assert_int_equal(q.kind, GATE_SUBMIT_MANY);
	assert_int_equal(q.op, RGATE_REQ_SOCKET_ACCEPT);
	assert_int_equal(q.a1, N);
	assert_int_equal(q.handle, 77);
	assert_int_equal(q.len, BYTES);
	assert_int_equal(q.data_len, 0);
	answer(0, 0);
	assert_true(asks_quiet());
	for (i = 0; i < 3; i++) {
		say(more_of(0, i, 100 + i));
		came(2, 100 + i);
		assert_true(is_told_of(i, (uint16_t)(100 + i)));
		assert_false(is_told_of(i + 1, (uint16_t)(100 + i)));
	}
	assert_true(asks_quiet());
	say(last_of(0, 3, -ENOBUFS));
	assert_int_equal(asks_result(2, NULL), -ENOBUFS);
	/* its ticket is free, nobody hears what is said of it any more */
	say(more_of(0, 3, 103));
	say(last_of(0, 3, -ENOBUFS));
	assert_true(asks_quiet());
	/* without addresses */
	submit(ACCEPT, 3, LISTENS);
	answer(1, 0);
	say(more_of(1, 0, 200));
	came(3, 200);
	say(last_of(1, 1, -EMFILE));
	assert_int_equal(asks_result(3, NULL), -EMFILE);
	assert_int_equal(o.peer.asked.n, 2);
}

/* Others end meanwhile, and the program may be asleep: all it can have has a place. */
static void out_of_step(void **state)
{
	uint32_t i;

	(void)state;
	submit(ACCEPT, 2, .handle = 77, .a1 = 64, .flags = RGATE_REQ_MULTI);
	submit(POLL, 3, .handle = 77, .a0 = 1);
	answer(0, 0);
	submit(ACCEPT, 4, LISTENS);
	answer(1, 0);
	answer(2, 0);
	for (i = 0; i < 63; i++)
		say(more_of(0, i, 1000 + i));
	say(more_of(2, 0, 5));
	say(last_of(1, 0, 0));
	say(last_of(0, 63, -ENOBUFS));
	for (i = 0; i < 63; i++)
		came(2, 1000 + i);
	came(4, 5);
	assert_int_equal(asks_result(3, NULL), 0);
	assert_int_equal(asks_result(2, NULL), -ENOBUFS);
	/* and the next one gets as many */
	submit(ACCEPT, 5, .handle = 77, .a1 = 64, .flags = RGATE_REQ_MULTI);
	assert_int_equal(o.peer.asked.n, 4);
}

/* What it would refuse it is not asked; what this side cannot have, neither. */
static void refused(void **state)
{
	uint64_t value;

	(void)state;
	submit(ACCEPT, 2, .handle = 77, .a1 = 120, .flags = RGATE_REQ_MULTI);
	assert_int_equal(asks_result(2, NULL), -ENOSPC);
	submit(ACCEPT, 2, .handle = 77, .a1 = 1, .flags = RGATE_REQ_MULTI);
	assert_int_equal(asks_result(2, NULL), -EINVAL);
	submit(ACCEPT, 2, LISTENS, .len = ASKS_MEMORY);
	assert_int_equal(asks_result(2, NULL), -EMSGSIZE);
	submit(RECV, 2, LISTENS, .len = 3 * 65536 / 3 + 3);
	assert_int_equal(asks_result(2, NULL), -EMSGSIZE);
	submit(ACCEPT, 2, .handle = 77, .a1 = N);
	assert_int_equal(asks_result(2, NULL), -EINVAL);
	submit(SEND, 2, LISTENS);
	assert_int_equal(asks_result(2, NULL), -EOPNOTSUPP);
	client_submit(&prog, (struct rgate_request){
		.op = RGATE_REQ_PROBE, .cookie = 3, .a0 = RGATE_REQ_SOCKET,
		.a1 = RGATE_PROBE_MULTI });
	assert_int_equal(asks_result(3, &value), 0);
	assert_int_equal(value, 1U << (RGATE_REQ_SOCKET_ACCEPT & 63) |
				1U << (RGATE_REQ_SOCKET_RECV & 63) |
				1U << (RGATE_REQ_SOCKET_RECVFROM & 63));
	assert_int_equal(o.peer.asked.n, 0);
	/* A gateway of an older version does not know of it; nothing else is lost. */
	submit(ACCEPT, 4, LISTENS);
	answer(0, -EOPNOTSUPP);
	assert_int_equal(asks_result(4, NULL), -EOPNOTSUPP);
	submit(ACCEPT, 5, .handle = 77);
	assert_int_equal(question(1).kind, GATE_SUBMIT);
	answer(1, 0);
	say(end_of(1, 0, 78));
	assert_int_equal(asks_result(5, &value), 0);
	assert_int_equal(value, 78);
}

/* More than there can be, of any place that the program has for them */
static void too_many(void **state)
{
	const struct rgate_seat_opts so = RGATE_OPTS(rgate_seat_opts, .uid = ME, .requests = 64,
						     .completions = 4096);
	static struct client c;
	struct rgate_completion done;

	(void)state;
	memset(&c, 0, sizeof(c));
	assert_int_equal(client_open(&c, asks_engine, &so), 0);
	client_submit(&c, (struct rgate_request){ .op = RGATE_REQ_SOCKET_OPEN, .cookie = 1 });
	asks_turn();
	client_submit(&c, (struct rgate_request){
		.op = RGATE_REQ_SOCKET_ACCEPT, .cookie = 2, .handle = 1, .a1 = GATE_MANY + 1,
		.flags = RGATE_REQ_MULTI });
	asks_turn();
	assert_true(client_poll(&c, &done));
	assert_int_equal(done.cookie, 2);
	assert_int_equal(done.result, -EINVAL);
	rgate_seat_remove(c.seat);
	answer(0, 0);
	asks_turn();
	say(end_of(0, -ECANCELED, 0));
	asks_turn();
	assert_int_equal(c.over, 1);
	client_close(&c);
}

/* Those that came before the end are there: they are told of, and nobody else knows of them. */
static void cancelled(void **state)
{
	(void)state;
	submit(ACCEPT, 2, LISTENS);
	answer(0, 0);
	say(more_of(0, 0, 100));
	came(2, 100);
	cancel(2);
	assert_int_equal(question(1).kind, GATE_CANCEL);
	assert_int_equal(question(1).serial, question(0).serial);
	say(more_of(0, 1, 101));
	came(2, 101);
	answer(1, 0);
	say(more_of(0, 2, 102));
	came(2, 102);
	assert_true(asks_quiet());
	say(last_of(0, 3, -ECANCELED));
	assert_int_equal(asks_result(2, NULL), -ECANCELED);
	submit(ACCEPT, 3, LISTENS, .deadline_us = 1000);
	answer(2, 0);
	usleep(3000);
	asks_turn();
	assert_int_equal(question(3).kind, GATE_CANCEL);
	answer(3, 0);
	say(more_of(2, 0, 103));
	came(3, 103);
	say(last_of(2, 1, -ECANCELED));
	assert_int_equal(asks_result(3, NULL), -ETIMEDOUT);
	/* before the gateway has heard of it */
	other_goes_down();
	submit(SEND, 4, .handle = 77, .off = AT, .len = 1000);
	submit(ACCEPT, 5, LISTENS);
	client_submit(&prog, (struct rgate_request){
		.op = RGATE_REQ_CANCEL, .cookie = 6, .a0 = 5 });
	assert_int_equal(asks_result(6, NULL), 0);
	assert_int_equal(asks_result(5, NULL), -ECANCELED);
}

/* The program is gone: what comes for it then ends with its guest. */
static void leaves(void **state)
{
	(void)state;
	submit(ACCEPT, 2, LISTENS);
	answer(0, 0);
	say(more_of(0, 0, 100));
	rgate_seat_remove(prog.seat);
	asks_turn();
	assert_int_equal(question(1).kind, GATE_CANCEL);
	answer(1, 0);
	say(more_of(0, 1, 101));
	assert_int_equal(prog.over, 0);
	say(last_of(0, 2, -ECANCELED));
	asks_turn();
	assert_int_equal(prog.over, 1);
	assert_int_equal(question(2).kind, GATE_LEAVE);
	assert_int_equal(question(2).guest, asks_guest);
	answer(2, 0);
}

/* What had come is told, and then that it is no more. */
static void gateway_ends(void **state)
{
	(void)state;
	submit(ACCEPT, 2, LISTENS);
	answer(0, 0);
	say(more_of(0, 0, 100));
	other_goes_down();
	other_comes_up(8);
	say(more_of(0, 1, 101));
	came(2, 100);
	assert_int_equal(asks_result(2, NULL), -ECONNRESET);
	submit(ACCEPT, 3, LISTENS);
	assert_int_equal(asks_result(3, NULL), -ECONNRESET);
	/* or it has not been there for too long */
	(void)asks_teardown(NULL);
	asks_make(20);
	submit(OPEN, 1);
	answer(0, 0);
	say(end_of(0, 0, 77));
	assert_int_equal(asks_result(1, NULL), 0);
	submit(ACCEPT, 2, LISTENS);
	answer(1, 0);
	say(more_of(1, 0, 100));
	other_goes_down();
	came(2, 100);
	usleep(40000);
	assert_int_equal(asks_result(2, NULL), -ECONNRESET);
}

/* ---- Lies ---- */

struct lie {
	const char *what;
	bool addresses;			/* it has asked for them */
	uint32_t good;			/* messages before it */
	struct gate_result r;		/* but whose it is */
	const void *data;
};

static const uint8_t zeros[GATE_PIECE];
static const struct rgate_socket_addr addr;
#define MORE(...)	{ .kind = GATE_MORE, ##__VA_ARGS__ }
#define DONE(...)	{ .kind = GATE_DONE, ##__VA_ARGS__ }
#define DATA(n)		.len = (n), .data_len = (n), .data = zeros

static const struct lie lies[] = {
	{ "one is left out", .r = MORE(.number = 1) },
	{ "one of long ago and far away", .good = 1, .r = MORE(.number = UINT64_MAX) },
	{ "more than there can be", .good = 3, .r = MORE(.number = 3) },
	{ "an error", .r = MORE(.result = -EIO) },
	{ "bytes that it has no place for", .r = MORE(DATA(1)) },
	{ "a result of such", .r = MORE(.result = 1) },
	{ "an address in front", .r = MORE(.addr = &addr) },
	{ "no address", true, .r = MORE() },
	{ "half an address", true, .r = MORE(DATA(16)) },
	{ "an address and more", true, .r = MORE(DATA(GATE_ADDR + 1)) },
	{ "its begin", true, .r = MORE(.len = GATE_ADDR, .data_len = 8, .data = zeros) },
	{ "a result longer than its share", true,
	  .r = MORE(.result = GATE_ADDR + 1, DATA(GATE_ADDR)) },
	{ "of addresses, too many", true, .good = 3, .r = MORE(.number = 3, DATA(GATE_ADDR)) },
	{ "an end before all has come", .good = 1, .r = DONE(.number = 2, .result = -ENOBUFS) },
	{ "an end that is none", .r = DONE(.result = 1) },
	{ "an end with bytes", .r = DONE(DATA(1)) },
	{ "an end with the whole part", true, .r = DONE(DATA(BYTES)) },
	{ "an end with an address", .r = DONE(.addr = &addr) },
};

static void tell_lie(const struct lie *l)
{
	const struct gate_question q = question(0);
	struct gate_result r = l->r;
	uint32_t i;

	for (i = 0; i < l->good; i++) {
		say(more_of(0, i, 100 + i));
		came(2, 100 + i);
	}
	r.guest = q.guest;
	r.serial = q.serial;
	r.ticket = q.ticket;
	say(r);
}

static void lies_of_more(void **state)
{
	unsigned int i;

	(void)state;
	(void)asks_teardown(NULL);
	for (i = 0; i < ARRAY_LEN(lies); i++) {
		(void)asks_setup(NULL);
		memset(prog.mem, 0xee, ASKS_MEMORY);
		submit(ACCEPT, 2, LISTENS, .off = AT, .len = lies[i].addresses ? BYTES : 0);
		answer(0, 0);
		tell_lie(&lies[i]);
		if (asks_result(2, NULL) != -EPROTO)
			fail_msg("%s", lies[i].what);
		assert_int_equal(prog.mem[AT + (size_t)lies[i].good * GATE_ADDR], 0xee);
		assert_int_equal(prog.mem[AT + BYTES], 0xee);
		/* nobody believes that one any more: all that it has of the session ends */
		assert_int_equal(question(1).kind, GATE_LEAVE);
		submit(NAME, 3, .handle = 77, .off = AT, .len = GATE_ADDR);
		assert_int_equal(asks_result(3, NULL), -ECONNRESET);
		(void)asks_teardown(NULL);
	}
	(void)asks_setup(NULL);
}

/* Of none that there is, and of one that has a single completion */
static void lies_of_whom(void **state)
{
	struct gate_result r;

	(void)state;
	submit(ACCEPT, 2, LISTENS);
	/* of one that was not taken yet, as far as was told: it may be */
	answer(0, 0);
	r = more_of(0, 0, 100);
	r.guest++;
	say(r);
	r = more_of(0, 0, 100);
	r.serial++;
	say(r);
	r.serial -= 2;
	say(r);
	r = more_of(0, 0, 100);
	r.ticket++;
	say(r);
	assert_true(asks_quiet());
	say(more_of(0, 0, 100));
	came(2, 100);
	submit(ACCEPT, 3, .handle = 77);
	answer(1, 0);
	r = end_of(1, 0, 78);
	r.kind = GATE_MORE;
	say(r);
	assert_int_equal(asks_result(3, NULL), -EPROTO);
	assert_int_equal(asks_result(2, NULL), -ECONNRESET);
}

/* Another version's, or malformed */
static void malformed(void **state)
{
	unsigned char msg[RGATE_HUB_MSG_MAX + 8] __attribute__((aligned(8)));
	struct gate_result r, got;
	size_t len, i;

	(void)state;
	submit(ACCEPT, 2, LISTENS, .off = AT, .len = BYTES);
	answer(0, 0);
	r = more_of(0, 0, 100);
	len = gate_answer_put(&gate_sockets, msg, &r);
	assert_int_equal(gate_answer_get(&got, msg, len), 0);
	assert_int_equal(got.kind, GATE_MORE);
	for (i = 0; i < sizeof(struct gate_answer); i++)
		assert_int_equal(gate_answer_get(&got, msg, i), -EPROTO);
	o.hub.asks.message(o.hub.ctx, OTHER, msg, sizeof(struct gate_answer) - 1);
	o.hub.asks.message(o.hub.ctx, OTHER, msg, len + 1);
	msg[1]++;
	assert_int_equal(gate_answer_get(&got, msg, len), -EPROTO);
	o.hub.asks.message(o.hub.ctx, OTHER, msg, len);
	assert_true(asks_quiet());
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, asks_setup, asks_teardown)

static const struct CMUnitTest tests[] = {
	BED(accepts), BED(out_of_step), BED(refused), BED(too_many), BED(cancelled), BED(leaves),
	BED(gateway_ends), BED(lies_of_more), BED(lies_of_whom), BED(malformed),
};

UNIT_MAIN_ALONE(tests)
