// SPDX-License-Identifier: MIT OR GPL-2.0
/* One request that receives many times at a gateway, in as many messages as the bytes take */
#include "asks_bed.h"

#include <errno.h>
#include <string.h>

static const struct rgate_socket_addr addr;

#define SLOT	500U		/* 3 messages, if it is full */
#define PIECE	GATE_PIECE
#define RECEIVES .handle = 77, .a1 = 4, .flags = RGATE_REQ_MULTI, .off = AT

static uint8_t bytes[SLOT];

/* Message @n, of which @at: the begin of a completion with so many bytes */
static struct gate_result piece_of(unsigned int i, uint64_t n, uint32_t at, uint32_t len)
{
	struct gate_result r = end_of(i, (int)len, 0);
	uint32_t b;

	for (b = 0; b < SLOT; b++)
		bytes[b] = (uint8_t)(n - at / PIECE + b * 7);
	r.kind = GATE_MORE;
	r.number = n;
	r.len = len;
	r.data = bytes + at;
	r.data_len = len - at < PIECE ? len - at : PIECE;
	return r;
}

/* So many of that one, whose first message was @n, are there */
static void received(uint64_t cookie, uint32_t slot, uint64_t n, uint32_t len)
{
	const struct rgate_completion done = asks_next();
	uint32_t b;

	assert_int_equal(done.cookie, cookie);
	assert_int_equal(done.result, len);
	assert_int_equal(done.flags, GOES_ON);
	for (b = 0; b < len; b++)
		assert_int_equal(prog.mem[AT + slot * SLOT + b], (uint8_t)(n + b * 7));
}

static void receives(void **state)
{
	struct gate_question q;

	(void)state;
	memset(prog.mem + AT, 0xee, 4 * SLOT);
	submit(RECV, 2, RECEIVES, .len = 3 * SLOT);
	q = question(0);
	assert_int_equal(q.kind, GATE_SUBMIT_MANY);
	assert_int_equal(q.len, 3 * SLOT);
	assert_int_equal(q.a1, 4);
	answer(0, 0);
	say(piece_of(0, 0, 0, SLOT));
	say(piece_of(0, 1, PIECE, SLOT));
	assert_true(asks_quiet());
	/* in the middle of it */
	other_goes_down();
	other_comes_up(7);
	asks_hears(0, 2);
	/* it has not heard that when it tells of it */
	say(piece_of(0, 1, PIECE, SLOT));
	assert_true(asks_quiet());
	say(piece_of(0, 2, 2 * PIECE, SLOT));
	received(2, 0, 0, SLOT);
	assert_int_equal(prog.mem[AT + SLOT], 0xee);
	say(piece_of(0, 3, 0, 10));
	received(2, 1, 3, 10);
	assert_int_equal(prog.mem[AT + SLOT + 10], 0xee);
	say(piece_of(0, 4, 0, PIECE));
	received(2, 2, 4, PIECE);
	say(last_of(0, 5, -ENOBUFS));
	assert_int_equal(asks_result(2, NULL), -ENOBUFS);
	assert_int_equal(prog.mem[AT + 3 * SLOT], 0xee);
}

static void receives_datagrams(void **state)
{
	struct gate_result r;

	(void)state;
	submit(RECV, 2, RECEIVES, .len = 3 * SLOT);
	answer(0, 0);
	say(piece_of(0, 0, 0, 0));
	received(2, 0, 0, 0);
	r = piece_of(0, 1, 0, 100);
	r.value = 7000;
	say(r);
	assert_int_equal(asks_next().value, 7000);
	/* a stream's end is one of these, too */
	say(last_of(0, 2, 0));
	assert_int_equal(asks_result(2, NULL), 0);
	/* with the senders' addresses, each in its slot */
	submit(RECVFROM, 3, RECEIVES, .len = 3 * SLOT);
	assert_int_equal(question(1).kind, GATE_SUBMIT_MANY);
	assert_int_equal(question(1).a1, 4);
	assert_null(question(1).addr);
	answer(1, 0);
	r = piece_of(1, 0, 0, GATE_ADDR + 100);
	r.result = 100;
	say(r);
	assert_int_equal(asks_next().result, 100);
	assert_memory_equal(prog.mem + AT, bytes, GATE_ADDR + 100);
	r = piece_of(1, 1, 0, SLOT);
	r.result = SLOT - GATE_ADDR;
	say(r);
	r = piece_of(1, 2, PIECE, SLOT);
	r.result = SLOT - GATE_ADDR;
	say(r);
	r = piece_of(1, 3, 2 * PIECE, SLOT);
	r.result = SLOT - GATE_ADDR;
	say(r);
	assert_int_equal(asks_next().result, SLOT - GATE_ADDR);
	say(last_of(1, 4, -ENETDOWN));
	assert_int_equal(asks_result(3, NULL), -ENETDOWN);
}

/* A policy that does not allow it any more, in the middle of one: that one did not come. */
static void revoked(void **state)
{
	(void)state;
	memset(prog.mem + AT, 0xee, 3 * SLOT);
	submit(RECV, 2, RECEIVES, .len = 3 * SLOT);
	submit(POLL, 3, .handle = 77, .a0 = 1);
	answer(0, 0);
	answer(1, 0);
	say(piece_of(0, 0, 0, 10));
	received(2, 0, 0, 10);
	say(piece_of(0, 1, 0, SLOT));
	say(last_of(0, 2, -EACCES));
	assert_int_equal(asks_result(2, NULL), -EACCES);
	assert_int_equal(prog.mem[AT + SLOT + PIECE], 0xee);
	/* no other one is lost for it: it is told of each */
	assert_true(asks_quiet());
	say(end_of(1, -EACCES, 0));
	assert_int_equal(asks_result(3, NULL), -EACCES);
}

enum {
	LONGER, OTHER_RESULT, OTHER_VALUE, SHORT_PIECE, EMPTY_PIECE, WITH_ADDR, ENDS_SO, FROM_ALL,
	FROM_NONE, LIES
};

/* Of a completion that has begun: what follows does not fit it. */
static void lies_of_pieces(void **state)
{
	struct gate_result r;
	unsigned int i;

	(void)state;
	(void)asks_teardown(NULL);
	for (i = 0; i < LIES; i++) {
		const bool from = i >= FROM_ALL;

		(void)asks_setup(NULL);
		memset(prog.mem, 0xee, ASKS_MEMORY);
		if (from)
			submit(RECVFROM, 2, RECEIVES, .len = 3 * SLOT);
		else
			submit(RECV, 2, RECEIVES, .len = 3 * SLOT);
		answer(0, 0);
		r = piece_of(0, 0, 0, i == FROM_NONE ? 20 : SLOT);
		if (!from) {
			say(r);
			assert_true(asks_quiet());
			r = piece_of(0, 1, PIECE, i == LONGER ? SLOT - 1 : SLOT);
		}
		r.result -= i == OTHER_RESULT;
		r.value = i == OTHER_VALUE;
		r.data_len -= i == SHORT_PIECE;
		if (i == EMPTY_PIECE)
			r.data_len = 0;
		if (i == WITH_ADDR)
			r.addr = &addr;
		if (i == ENDS_SO)
			r = last_of(0, 1, -EPIPE);
		say(r);
		if (asks_result(2, NULL) != -EPROTO)
			fail_msg("lie %u", i);
		assert_int_equal(prog.mem[AT + PIECE], 0xee);
		assert_int_equal(prog.mem[AT + SLOT], 0xee);
		assert_int_equal(question(1).kind, GATE_LEAVE);
		(void)asks_teardown(NULL);
	}
	(void)asks_setup(NULL);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, asks_setup, asks_teardown)

static const struct CMUnitTest tests[] = {
	BED(receives), BED(receives_datagrams), BED(revoked), BED(lies_of_pieces),
};

UNIT_MAIN_ALONE(tests)
