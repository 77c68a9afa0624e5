// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sockets at a gateway that answers when the test says so: late, over another connection, not at
 * all, or with lies.
 */
#include "asks_bed.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ADDR_AT	64U
#define ROOM	65536U		/* of a request at the gateway */
#define SHORT	100U
#define LONG	1000U		/* 5 messages */

static uint8_t pattern(uint32_t at)
{
	return (uint8_t)(at * 13 + 5);
}

/* Bytes, then the request, then the next one: in the program's order */
static void sends(void **state)
{
	struct gate_question q;
	uint32_t i, at = 0;

	(void)state;
	for (i = 0; i < LONG; i++)
		prog.mem[AT + i] = pattern(i);
	submit(SEND, 2, .handle = 77, .off = AT, .len = LONG);
	submit(SHUTDOWN, 3, .handle = 77, .a0 = 2);
	assert_int_equal(o.peer.asked.n, 5);
	for (i = 0; i < 5; i++) {
		q = question(i);
		assert_int_equal(q.kind, GATE_PUT);
		assert_int_equal(q.guest, asks_guest);
		at += q.len;
		for (uint32_t b = 0; b < q.len; b++)
			assert_int_equal(((const uint8_t *)q.data)[b], pattern(q.off + b));
		assert_true(asks_quiet());
	}
	for (i = 5; i--;)
		answer(i, 0);
	assert_int_equal(o.peer.asked.n, 6);
	q = question(5);
	assert_int_equal(q.kind, GATE_SUBMIT);
	assert_int_equal(q.len, LONG);
	assert_int_equal(q.data_len + at, LONG);
	assert_int_equal(q.handle, 77);
	answer(5, 0);
	assert_int_equal(question(6).op, RGATE_REQ_SOCKET_SHUTDOWN);
	/* the later one ends first */
	answer(6, 0);
	say(end_of(6, 0, 0));
	assert_int_equal(asks_result(3, NULL), 0);
	say(end_of(5, LONG, 0));
	assert_int_equal(asks_result(2, NULL), LONG);
}

static void receives(void **state)
{
	static uint8_t data[GATE_PIECE];
	struct gate_result r;
	struct gate_question q;
	uint32_t i;

	(void)state;
	submit(RECV, 2, .handle = 77, .off = AT, .len = LONG + 50);
	assert_int_equal(question(0).data_len, 0);
	answer(0, 0);
	assert_true(asks_quiet());
	for (i = 0; i < GATE_PIECE; i++)
		data[i] = pattern(i);
	r = end_of(0, LONG, 0);
	r.len = LONG;
	r.data = data;
	r.data_len = GATE_PIECE;
	say(r);
	assert_int_equal(o.peer.asked.n, 6);
	for (i = 6; --i;) {
		q = question(i);
		assert_int_equal(q.kind, GATE_GET);
		assert_true(asks_quiet());
		for (uint32_t b = 0; b < q.len; b++)
			data[b] = pattern(q.off + b);
		say((struct gate_result){
			.kind = GATE_GET, .number = q.number, .data = data, .len = q.len,
			.data_len = q.len });
	}
	assert_int_equal(asks_result(2, NULL), LONG);
	for (i = 0; i < LONG; i++)
		assert_int_equal(prog.mem[AT + i], pattern(i));
	assert_int_equal(prog.mem[AT + LONG], 0);
}

static void addresses(void **state)
{
	const struct rgate_socket_addr from = { .family = 2, .port = 7 };
	struct gate_question q;
	struct gate_result r;

	(void)state;
	memcpy(prog.mem + ADDR_AT, &from, sizeof(from));
	submit(SENDTO, 2, .handle = 77, .off = AT, .len = 3, .a1 = ADDR_AT);
	q = question(0);
	assert_memory_equal(q.addr, &from, sizeof(from));
	assert_int_equal(q.a1, 0);
	answer(0, 0);
	say(end_of(0, 3, 0));
	assert_int_equal(asks_result(2, NULL), 3);
	memset(prog.mem + ADDR_AT, 0, sizeof(from));
	submit(RECVFROM, 3, .handle = 77, .off = AT, .len = 9, .a1 = ADDR_AT);
	answer(1, 0);
	r = end_of(1, 2, 500);
	r.addr = &from;
	r.len = r.data_len = 2;
	r.data = "xy";
	say(r);
	assert_int_equal(asks_result(3, NULL), 2);
	assert_memory_equal(prog.mem + ADDR_AT, &from, sizeof(from));
	submit(SENDTO, 4, .handle = 77, .off = AT, .len = 3, .a1 = ASKS_MEMORY - 8);
	assert_int_equal(asks_result(4, NULL), -ERANGE);
}

static void too_long(void **state)
{
	(void)state;
	submit(SEND, 2, .handle = 77, .off = 0, .len = ROOM + 4096);
	assert_int_equal(question(0).kind, GATE_PUT);
	client_submit(&prog, (struct rgate_request){
		.op = RGATE_REQ_CANCEL, .cookie = 9, .a0 = 2 });
	asks_turn();
	assert_int_equal(asks_result(9, NULL), 0);
	assert_int_equal(asks_result(2, NULL), -ECANCELED);
	submit(RECV, 3, .handle = 77, .len = ROOM + 1, .a0 = RGATE_SOCKET_ALL);
	assert_int_equal(asks_result(3, NULL), -EMSGSIZE);
	submit(GETOPT, 4, .handle = 77, .len = ROOM + 1);
	assert_int_equal(asks_result(4, NULL), -EINVAL);
}

/* There are so many tickets; who has none is told, and those who wait hold up nobody else. */
static void no_ticket(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < GATE_TICKETS; i++) {
		submit(RECV, 100 + i, .handle = 77, .off = AT, .len = 1);
		answer(0, 0);
		if (i < GATE_TICKETS - 1)
			o.peer.asked.n = 0;
	}
	submit(RECV, 2, .handle = 77, .off = AT, .len = 1);
	assert_int_equal(asks_result(2, NULL), -ENOBUFS);
	say(end_of(0, 0, 0));
	assert_int_equal(asks_result(100 + GATE_TICKETS - 1, NULL), 0);
	submit(POLL, 3, .handle = 77, .a0 = 1);
	assert_int_equal(question(1).op, RGATE_REQ_SOCKET_POLL);
}

/* Who asks can hear which node carries requests out */
static void probed_node(void **state)
{
	uint64_t value;

	(void)state;
	client_submit(&prog, (struct rgate_request){
		.op = RGATE_REQ_PROBE, .cookie = 3, .a0 = RGATE_REQ_SOCKET,
		.a1 = RGATE_PROBE_NODE });
	assert_int_equal(asks_result(3, &value), 0);
	assert_int_equal(value, 1 + OTHER);
	assert_int_equal(o.peer.asked.n, 0);
}

/* A name is asked for by who has no socket, too: its answer comes where the question was. */
static void names(void **state)
{
	uint8_t answers[8 * GATE_ADDR];
	struct gate_question q;
	struct gate_result r;

	(void)state;
	asks_make(0);
	memset(answers, 7, sizeof(answers));
	/* of a long one some goes before it */
	submit(RESOLVE, 1, .off = AT, .len = 1000, .a1 = RGATE_SOCKET_RESOLVE_A1(250, 0));
	assert_int_equal(question(0).kind, GATE_PUT);
	assert_int_equal(question(0).len, 250 - GATE_PIECE);
	answer(0, 0);
	assert_int_equal(question(1).kind, GATE_SUBMIT);
	assert_int_equal(question(1).data_len, GATE_PIECE);
	answer(1, 0);
	say(end_of(1, -ENOENT, 0));
	assert_int_equal(asks_result(1, NULL), -ENOENT);
	o.peer.asked.n = 0;
	memcpy(prog.mem + AT, "name.example", 12);
	submit(RESOLVE, 2, .off = AT, .len = 4 * GATE_ADDR, .a0 = 5,
	       .a1 = RGATE_SOCKET_RESOLVE_A1(12, 0));
	q = question(0);
	assert_int_equal(q.op, RGATE_REQ_SOCKET_RESOLVE);
	assert_int_equal(q.a0, 5);
	assert_int_equal(q.a1, 12);
	assert_int_equal(q.data_len, 12);
	assert_int_equal(q.len, 4 * GATE_ADDR);
	assert_memory_equal(q.data, "name.example", 12);
	answer(0, 0);
	r = end_of(0, 3 * GATE_ADDR, 7);
	r.len = r.data_len = 3 * GATE_ADDR;
	r.data = answers;
	say(r);
	assert_int_equal(asks_result(2, NULL), 3 * GATE_ADDR);
	assert_memory_equal(prog.mem + AT, answers, 3 * GATE_ADDR);
	/* more than there was room for */
	submit(RESOLVE, 3, .off = AT, .len = GATE_ADDR, .a1 = 40);
	assert_int_equal(question(1).data_len, GATE_ADDR);
	answer(1, 0);
	r = end_of(1, 2 * GATE_ADDR, 7);
	r.len = r.data_len = 2 * GATE_ADDR;
	r.data = answers;
	say(r);
	assert_int_equal(asks_result(3, NULL), -EPROTO);
	/* whose sockets are none any more */
	submit(RESOLVE, 4, .off = AT, .len = GATE_ADDR, .a1 = 12);
	assert_int_equal(asks_result(4, NULL), -ECONNRESET);
}

/* What the gateway has it ends itself: a stream loses nothing. */
static void cancelled(void **state)
{
	struct gate_result r;

	(void)state;
	submit(RECV, 2, .handle = 77, .off = AT, .len = SHORT);
	client_submit(&prog, (struct rgate_request){
		.op = RGATE_REQ_CANCEL, .cookie = 9, .a0 = 2 });
	asks_turn();
	assert_int_equal(asks_result(9, NULL), -EALREADY);
	assert_int_equal(o.peer.asked.n, 1);
	answer(0, 0);
	assert_int_equal(o.peer.asked.n, 2);
	assert_int_equal(question(1).kind, GATE_CANCEL);
	assert_int_equal(question(1).serial, question(0).serial);
	r = end_of(0, 1, 0);
	r.len = r.data_len = 1;
	r.data = "z";
	say(r);
	assert_int_equal(asks_result(2, NULL), 1);
	assert_int_equal(prog.mem[AT], 'z');
	answer(1, 0);
	assert_true(asks_quiet());
	submit(RECV, 3, .handle = 77, .off = AT, .len = SHORT, .deadline_us = 1000);
	answer(2, 0);
	usleep(3000);
	asks_turn();
	asks_turn();
	assert_int_equal(o.peer.asked.n, 4);
	assert_int_equal(question(3).kind, GATE_CANCEL);
	answer(3, 0);
	assert_true(asks_quiet());
	say(end_of(2, -ECANCELED, 0));
	assert_int_equal(asks_result(3, NULL), -ETIMEDOUT);
}

/* Answer and end are lost with the connection: it is asked again, and told again. */
static void told_again(void **state)
{
	(void)state;
	submit(LISTEN, 2, .handle = 77, .a0 = 1);
	submit(NAME, 3, .handle = 77, .off = AT, .len = GATE_ADDR);
	other_goes_down();
	say(end_of(0, 0, 0));
	assert_true(asks_quiet());
	other_comes_up(7);
	/* before it is answered that it was taken, as it was asked again just now */
	say(end_of(0, 0, 0));
	assert_int_equal(asks_result(2, NULL), 0);
	asks_turn();
	/* and, in between, whether the guest is there at all */
	assert_int_equal(o.peer.asked.n, 4);
	assert_int_equal(question(2).kind, GATE_CANCEL);
	assert_int_equal(question(3).op, RGATE_REQ_SOCKET_NAME);
	answer(2, 0);
	/* the answer finds nobody */
	answer(1, -EBUSY);
	assert_true(asks_quiet());
}

static void gateway_restarts(void **state)
{
	(void)state;
	submit(RECV, 2, .handle = 77, .off = AT, .len = SHORT);
	answer(0, 0);
	other_goes_down();
	assert_true(asks_quiet());
	other_comes_up(8);
	assert_int_equal(asks_result(2, NULL), -ECONNRESET);
	/* its handles are nothing any more; another session has none of that */
	submit(OPEN, 3, .a0 = 99);
	assert_int_equal(asks_result(3, NULL), -ECONNRESET);
	assert_int_equal(o.peer.asked.n, 1);
}

static void gateway_gone(void **state)
{
	unsigned int i;

	(void)state;
	asks_make(20);
	other_goes_down();
	submit(OPEN, 1, .a0 = 99);
	for (i = 0; i < 40; i++) {
		usleep(1000);
		asks_turn();
	}
	assert_int_equal(asks_result(1, NULL), -ENOTCONN);
	other_comes_up(7);
	submit(OPEN, 2, .a0 = 99);
	answer(0, 0);
	say(end_of(0, 0, 77));
	assert_int_equal(asks_result(2, NULL), 0);
	submit(RECV, 3, .handle = 77, .off = AT, .len = SHORT);
	answer(1, 0);
	/* as long as there is a connection it may take for ever */
	usleep(40000);
	assert_true(asks_quiet());
	other_goes_down();
	usleep(40000);
	assert_int_equal(asks_result(3, NULL), -ECONNRESET);
}

static void refused(void **state)
{
	(void)state;
	submit(LISTEN, 2, .handle = 77, .a0 = 1);
	answer(0, -EACCES);
	assert_int_equal(asks_result(2, NULL), -EACCES);
	submit(LISTEN, 3, .handle = 77, .a0 = 1);
	answer(1, -ECONNRESET);
	assert_int_equal(asks_result(3, NULL), -ECONNRESET);
	submit(LISTEN, 4, .handle = 77, .a0 = 1);
	assert_int_equal(asks_result(4, NULL), -ECONNRESET);
	/* What it may have there ends, once, while the session goes on. */
	assert_int_equal(o.peer.asked.n, 3);
	assert_int_equal(question(2).kind, GATE_LEAVE);
	answer(2, -ECONNRESET);
	rgate_seat_remove(prog.seat);
	asks_turn();
	assert_int_equal(prog.over, 1);
	assert_int_equal(o.peer.asked.n, 3);
}

/* The session ends: so does what it has under way, and the gateway is told. */
static void leaves(void **state)
{
	(void)state;
	submit(RECV, 2, .handle = 77, .off = AT, .len = SHORT);
	answer(0, 0);
	rgate_seat_remove(prog.seat);
	asks_turn();
	assert_int_equal(question(1).kind, GATE_CANCEL);
	answer(1, 0);
	assert_int_equal(prog.over, 0);
	say(end_of(0, -ECANCELED, 0));
	asks_turn();
	assert_int_equal(prog.over, 1);
	assert_int_equal(o.peer.asked.n, 3);
	assert_int_equal(question(2).kind, GATE_LEAVE);
	assert_int_equal(question(2).guest, asks_guest);
	answer(2, 0);
}

/* ---- Lies ---- */

static void lie(struct gate_result r, const struct gate_result *add)
{
	r.len = add->len;
	r.data = add->data;
	r.data_len = add->data_len;
	r.addr = add->addr;
	say(r);
}

static void lies_of_recv(void **state)
{
	static const struct rgate_socket_addr addr;
	static const uint8_t data[GATE_PIECE];
	const struct {
		int result;
		struct gate_result add;
	} lies[] = {
		{ (int)SHORT + 1, { .len = SHORT + 1, .data = data, .data_len = SHORT + 1 } },
		{ 10, { .len = 11, .data = data, .data_len = 11 } },
		{ 10, { .len = 9, .data = data, .data_len = 9 } },
		{ 10, { .len = 0 } },
		{ -EPIPE, { .len = 10, .data = data, .data_len = 10 } },
		{ 10, { .len = 10, .data = data, .data_len = 10, .addr = &addr } },
	};
	unsigned int i;

	(void)state;
	(void)asks_teardown(NULL);
	for (i = 0; i < ARRAY_LEN(lies); i++) {
		(void)asks_setup(NULL);
		submit(RECV, 2, .handle = 77, .off = AT, .len = SHORT);
		answer(0, 0);
		/* of other requests, sessions and tickets */
		say((struct gate_result){
			.kind = GATE_DONE, .guest = asks_guest + 1, .serial = 2 });
		say((struct gate_result){
			.kind = GATE_DONE, .guest = asks_guest, .serial = question(0).serial + 1,
			.ticket = question(0).ticket });
		say((struct gate_result){
			.kind = GATE_DONE, .guest = asks_guest, .serial = question(0).serial,
			.ticket = question(0).ticket + 1 });
		assert_true(asks_quiet());
		memset(prog.mem + AT, 0xee, 2 * SHORT);
		lie(end_of(0, lies[i].result, 0), &lies[i].add);
		assert_int_equal(asks_result(2, NULL), -EPROTO);
		assert_int_equal(prog.mem[AT], 0xee);
		assert_int_equal(prog.mem[AT + SHORT], 0xee);
		/* nobody believes that one any more */
		submit(NAME, 3, .handle = 77, .off = AT, .len = GATE_ADDR);
		assert_int_equal(asks_result(3, NULL), -ECONNRESET);
		(void)asks_teardown(NULL);
	}
	(void)asks_setup(NULL);
}

/* A part that is longer or shorter than what it was asked for */
static void lies_of_get(void **state)
{
	static const uint8_t data[GATE_PIECE];
	struct gate_question q;
	struct gate_result r;

	(void)state;
	submit(RECV, 2, .handle = 77, .off = AT, .len = 300);
	answer(0, 0);
	r = end_of(0, 300, 0);
	r.len = 300;
	r.data = data;
	r.data_len = GATE_PIECE;
	say(r);
	q = question(1);
	assert_int_equal(q.len, 300 - GATE_PIECE);
	say((struct gate_result){
		.kind = GATE_GET, .number = q.number, .data = data, .len = q.len + 1,
		.data_len = q.len + 1 });
	assert_int_equal(asks_result(2, NULL), -EPROTO);
	assert_int_equal(prog.mem[AT + 300], 0);
}

/* It has ended there, and nobody knows how: what the node has is lost, whatever it says. */
static void not_got(void **state)
{
	static const uint8_t data[GATE_PIECE];
	struct gate_result r;

	(void)state;
	submit(RECV, 2, .handle = 77, .off = AT, .len = 300);
	answer(0, 0);
	r = end_of(0, 300, 0);
	r.len = 300;
	r.data = data;
	r.data_len = GATE_PIECE;
	say(r);
	assert_int_equal(question(1).kind, GATE_GET);
	answer(1, -EACCES);
	assert_int_equal(asks_result(2, NULL), -ECONNRESET);
	assert_int_equal(question(2).kind, GATE_LEAVE);
	submit(NAME, 3, .handle = 77, .off = AT, .len = GATE_ADDR);
	assert_int_equal(asks_result(3, NULL), -ECONNRESET);
}

static void malformed(void **state)
{
	unsigned char msg[RGATE_HUB_MSG_MAX + 8] __attribute__((aligned(8)));
	struct gate_result r, got;
	size_t len, i;

	(void)state;
	submit(RECV, 2, .handle = 77, .off = AT, .len = SHORT);
	answer(0, 0);
	r = end_of(0, 4, 0);
	r.len = r.data_len = 4;
	r.data = "abcd";
	len = gate_answer_put(&gate_sockets, msg, &r);
	for (i = 0; i < sizeof(struct gate_answer); i++)
		assert_int_equal(gate_answer_get(&got, msg, i), -EPROTO);
	o.hub.asks.message(o.hub.ctx, OTHER, msg, sizeof(struct gate_answer) - 1);
	/* more follows than there is to get, or than goes into a message */
	assert_int_equal(gate_answer_get(&got, msg, len + 1), -EPROTO);
	assert_int_equal(gate_answer_get(&got, msg, sizeof(msg)), -EPROTO);
	msg[34] = 1;
	assert_int_equal(gate_answer_get(&got, msg, len), -EPROTO);
	msg[34] = 0;
	msg[32] = GATE_TICKETS;
	assert_int_equal(gate_answer_get(&got, msg, len), -EPROTO);
	msg[32] = 0;
	msg[3] = 2;
	assert_int_equal(gate_answer_get(&got, msg, len), -EPROTO);
	msg[3] = 0;
	/* of another version nothing is believed but that, and whose answer it is */
	msg[1]++;
	msg[33] = 0xff;
	assert_int_equal(gate_answer_get(&got, msg, len), -EPROTO);
	o.hub.asks.message(o.hub.ctx, OTHER, msg, len);
	msg[2] = GATE_SUBMIT;
	assert_int_equal(gate_answer_get(&got, msg, len), 0);
	assert_int_equal(got.result, -EPROTONOSUPPORT);
	assert_int_equal(got.ticket, 0);
	assert_int_equal(got.len, 0);
	assert_true(asks_quiet());
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, asks_setup, asks_teardown)

static const struct CMUnitTest tests[] = {
	BED(sends), BED(receives), BED(addresses), BED(too_long), BED(no_ticket), BED(cancelled),
	BED(told_again), BED(gateway_restarts),
	cmocka_unit_test_teardown(gateway_gone, asks_teardown),
	cmocka_unit_test_teardown(names, asks_teardown),
	BED(probed_node), BED(refused), BED(leaves), BED(lies_of_recv), BED(lies_of_get),
	BED(not_got), BED(malformed),
};

UNIT_MAIN_ALONE(tests)
