// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A gateway that a node writes bytes to, and that writes them: the test is the node, with a dock of
 * its own, and may write to the gateway's whatever it likes.
 */
#include "serves_bed.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ROOM	65536U
#define LONG	5000U
#define ALL	((size_t)GATE_BERTHS * ROOM)	/* of a node that knows no wide berths */
#define WHOLE	(ALL + (size_t)GATE_WIDE * GATE_LONG)
#define MOST	(GATE_BERTHS + GATE_WIDE)
#define NAME_	77U		/* of the docks */
#define LENT(in_, out_)	{ .dock = NAME_, .in = (in_), .out = (out_) }

static unsigned char node[ALL];		/* the node's dock */
static unsigned char *gateway;

static uint8_t pattern(uint32_t at)
{
	return (uint8_t)(at * 13 + at / 256 + 5);
}

static unsigned char *berth(unsigned char *of, uint32_t n)
{
	return of + (size_t)(n - 1) * ROOM;
}

static void set_bytes(unsigned char *at, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		at[i] = pattern(i);
}

static void check_bytes(const unsigned char *at, uint32_t from, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		assert_int_equal(at[i], pattern(from + i));
}

static struct gate_question dock_of(const struct rgate_desc *desc, uint32_t len)
{
	return (struct gate_question){ .kind = GATE_DOCK, .uid = ME, .guest = 1, .serial = NAME_,
				       .data = desc, .data_len = len };
}

static void docks(void)
{
	const struct rgate_desc desc = peer_desc(node, ALL, PEER_KEY);
	const struct gate_result r = ask(dock_of(&desc, sizeof(desc)));
	struct rgate_desc d;

	assert_int_equal(r.result, 0);
	assert_int_equal(r.data_len, sizeof(d));
	memcpy(&d, r.data, sizeof(d));
	assert_int_equal(d.access, RGATE_ACCESS_REMOTE_WRITE);
	assert_int_equal(le64toh(d.length), WHOLE);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): as peer_desc() made it */
	gateway = (unsigned char *)(uintptr_t)le64toh(d.addr);
}

static int setup(void **state)
{
	(void)serves_setup(state);
	o.hub.node.no_share = false;
	memset(node, 0, sizeof(node));
	docks();
	return 0;
}

static int teardown(void **state)
{
	const int err = serves_teardown(state);

	assert_int_equal(node_shares(&o.hub.node), 0);
	assert_int_equal(o.hub.node.stage.lent, 0);
	return err;
}

/* What is there when it is asked is sent, and nothing that comes later. */
static void sends(void **state)
{
	static unsigned char back[LONG];
	uint32_t h, i;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	for (i = 1; i <= GATE_BERTHS; i++) {
		set_bytes(berth(gateway, i), LONG);
		serial++;
		assert_int_equal(ask(SUBMIT(SEND, .handle = h, .len = LONG,
					    .lent = LENT(i, 0))).result, 0);
		memset(berth(gateway, i), 0xee, LONG);
		assert_int_equal(hear_of(serial).result, LONG);
		assert_int_equal(raw_read(fd, back, LONG), LONG);
		check_bytes(back, 0, LONG);
	}
	close(fd);
}

/* To the berth that it was lent, and no other byte */
static void receives(void **state)
{
	static unsigned char bytes[LONG];
	struct gate_result r;
	uint32_t h, i;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	set_bytes(bytes, LONG);
	for (i = 1; i <= GATE_BERTHS; i++) {
		memset(node, 0xee, ALL);
		raw_write(fd, bytes, LONG);
		r = done_of(SUBMIT(RECV, .handle = h, .len = 2 * LONG - i, .lent = LENT(0, i)));
		assert_int_equal(r.kind, GATE_DONE);
		assert_int_equal(r.result, LONG);
		assert_int_equal(r.len, LONG);
		assert_int_equal(r.data_len, 0);
		assert_int_equal(r.lent.dock, NAME_);
		assert_int_equal(r.lent.out, i);
		peer_places(&o.peer);
		check_bytes(berth(node, i), 0, LONG);
		assert_int_equal(berth(node, i)[LONG], 0xee);
		if (i > 1)
			assert_int_equal(berth(node, i)[-1], 0xee);
	}
	/* what a message has room for is in it */
	raw_write(fd, bytes, GATE_PIECE);
	r = done_of(SUBMIT(RECV, .handle = h, .len = LONG, .lent = LENT(0, 1)));
	assert_int_equal(r.lent.dock, 0);
	assert_int_equal(r.data_len, GATE_PIECE);
	close(fd);
}

/* More than a ticket's room, both ways, by a node whose dock says that it knows wide berths */
static void wide(void **state)
{
	static unsigned char bytes[GATE_LONG], far[WHOLE];
	const struct rgate_desc desc = peer_desc(far, WHOLE, PEER_KEY);
	struct gate_question q = dock_of(&desc, sizeof(desc));
	struct gate_result r;
	uint32_t h, n;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	/* A shorter one has none: its bytes are told without being written. */
	set_bytes(bytes, GATE_LONG);
	raw_write(fd, bytes, GATE_PIECE + 1);
	assert_int_equal(done_of(SUBMIT(RECV, .handle = h, .len = LONG,
					.lent = LENT(0, MOST))).lent.dock, 0);
	q.serial = NAME_ + 1;
	r = ask(q);
	assert_int_equal(r.result, 0);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): as peer_desc() made it */
	gateway = (unsigned char *)(uintptr_t)le64toh(((const struct rgate_desc *)r.data)->addr);
	set_bytes(gateway + ALL + (size_t)(GATE_WIDE - 1) * GATE_LONG, GATE_LONG);
	serial++;
	r = ask(SUBMIT(SEND, .handle = h, .ticket = GATE_TICKETS - 1, .len = GATE_LONG,
		       .lent = { .dock = NAME_ + 1, .in = MOST }));
	assert_int_equal(r.result, 0);
	for (n = 0; n < GATE_LONG; n += LONG) {
		const uint32_t part = GATE_LONG - n < LONG ? GATE_LONG - n : LONG;

		assert_int_equal(raw_read(fd, bytes, part), part);
		check_bytes(bytes, n, part);
	}
	assert_int_equal(hear_of(serial).result, GATE_LONG);
	/* Nothing is written past a berth. */
	set_bytes(bytes, GATE_LONG);
	for (n = 0; n < 2 * LONG; n += LONG)
		raw_write(fd, bytes + n, LONG);
	memset(far, 0xee, WHOLE);
	r = done_of(SUBMIT(RECV, .handle = h, .ticket = GATE_TICKETS - GATE_WIDE,
			   .len = GATE_LONG,
			   .lent = { .dock = NAME_ + 1, .out = GATE_BERTHS + 1 }));
	assert_int_equal(r.lent.out, GATE_BERTHS + 1);
	peer_places(&o.peer);
	check_bytes(far + ALL, 0, r.len);
	assert_int_equal(far[ALL - 1], 0xee);
	assert_int_equal(far[ALL + r.len], 0xee);
	/* Of a narrow ticket, of what is longer than its berth, and of one that there is not */
	ask_only(SUBMIT(SEND, .handle = h, .len = ROOM + 1,
			.lent = { .dock = NAME_ + 1, .in = MOST }));
	ask_only(SUBMIT(SEND, .handle = h, .ticket = GATE_TICKETS - 1, .len = ROOM + 1,
			.lent = { .dock = NAME_ + 1, .in = 1 }));
	ask_only(SUBMIT(SEND, .handle = h, .ticket = GATE_TICKETS - 1, .len = GATE_LONG + 1,
			.lent = { .dock = NAME_ + 1, .in = MOST }));
	ask_only(QUESTION(GATE_GET, .ticket = GATE_TICKETS - 1, .len = ROOM + 1,
			  .lent = { .dock = NAME_ + 1, .out = 1 }));
	close(fd);
}

/* Of what has ended all that is left, or a part of it */
static void asked_for(void **state)
{
	static unsigned char bytes[LONG];
	struct gate_result r;
	uint32_t h;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	set_bytes(bytes, LONG);
	memset(node, 0xee, ALL);
	raw_write(fd, bytes, LONG);
	r = done_of(SUBMIT(RECV, .handle = h, .len = LONG));
	assert_int_equal(r.len, LONG);
	assert_int_equal(r.data_len, GATE_PIECE);
	r = ask(QUESTION(GATE_GET, .off = GATE_PIECE, .len = LONG - GATE_PIECE,
			 .lent = LENT(0, 3)));
	assert_int_equal(r.result, 0);
	assert_int_equal(r.len, LONG - GATE_PIECE);
	assert_int_equal(r.data_len, 0);
	peer_places(&o.peer);
	check_bytes(berth(node, 3) + GATE_PIECE, GATE_PIECE, LONG - GATE_PIECE);
	assert_int_equal(berth(node, 3)[GATE_PIECE - 1], 0xee);
	assert_int_equal(berth(node, 3)[LONG], 0xee);
	/* beyond its end; of another dock; without memory for it */
	assert_int_equal(ask(QUESTION(GATE_GET, .off = 1, .len = LONG, .lent = LENT(0, 3))).result,
			 -ERANGE);
	assert_int_equal(ask(QUESTION(GATE_GET, .len = LONG,
				      .lent = { .dock = NAME_ + 1, .out = 3 })).result, -ENOLINK);
	o.peer.full = true;
	r = ask(QUESTION(GATE_GET, .len = LONG, .lent = LENT(0, 3)));
	assert_int_equal(r.result, -EAGAIN);
	o.peer.full = false;
	assert_int_equal(peer_placed(&o.peer), 1);
	close(fd);
}

/* What a request with many comes to, each in its share of the berth, and one message for each */
static void many(void **state)
{
	static unsigned char bytes[4 * LONG];
	struct gate_result r;
	uint64_t n = 0;
	uint32_t h, i;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	set_bytes(bytes, LONG);
	(void)begin(QUESTION(GATE_SUBMIT_MANY, .op = RGATE_REQ_SOCKET_RECV, .handle = h,
			       .len = 4 * LONG, .a1 = 5, .lent = LENT(0, 2)), 0);
	for (i = 0; i < 4; i++) {
		raw_write(fd, bytes, i == 2 ? 100 : LONG);
		r = hear_of(serial);
		assert_int_equal(r.kind, GATE_MORE);
		assert_int_equal(r.number, n);
		assert_int_equal(r.data_len, i == 2 ? 100 : 0);
		assert_int_equal(r.result, i == 2 ? 100 : LONG);
		assert_int_equal(!r.lent.dock, i == 2);
		n += i == 2 ? 1 : gate_pieces(LONG);
		peer_places(&o.peer);
		if (i != 2)
			check_bytes(berth(node, 2) + i * LONG, 0, LONG);
	}
	hear_end(serial, n, -ENOBUFS);
	/* over another connection they come in pieces, from where they were not heard */
	other_goes_down();
	other_comes_up(7);
	assert_int_equal(asks_of(serial, QUESTION(GATE_HEARD, .a0 = gate_pieces(LONG) + 2)), 0);
	r = hear_of(serial);
	assert_int_equal(r.number, gate_pieces(LONG) + 2);
	assert_int_equal(r.lent.dock, 0);
	assert_int_equal(r.data_len, GATE_PIECE);
	check_bytes(r.data, 2 * GATE_PIECE, GATE_PIECE);
	close(fd);
}

/* A message that has no room is tried again, and its bytes are written once. */
static void no_room(void **state)
{
	static unsigned char bytes[LONG];
	struct gate_result r;
	uint32_t h;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	set_bytes(bytes, LONG);
	(void)begin(SUBMIT(RECV, .handle = h, .len = LONG, .lent = LENT(0, 1)), 1);
	peer_say_full(&o.peer, true);
	raw_write(fd, bytes, LONG);
	while (!peer_placed(&o.peer))
		serves_turn();
	usleep(5000);
	serves_turn();
	peer_say_full(&o.peer, false);
	r = hear_of(serial);
	assert_int_equal(r.lent.out, 1);
	peer_places(&o.peer);
	assert_int_equal(peer_placed(&o.peer), 1);
	check_bytes(node, 0, LONG);
	/* no room for the write: in pieces */
	o.peer.full = true;
	(void)begin(SUBMIT(RECV, .handle = h, .len = LONG, .lent = LENT(0, 1)), 1);
	raw_write(fd, bytes, LONG);
	r = hear_of(serial);
	assert_int_equal(r.lent.dock, 0);
	assert_int_equal(r.data_len, GATE_PIECE);
	close(fd);
}

/* Both docks are of one connection. */
static void lost(void **state)
{
	static unsigned char bytes[LONG];
	struct gate_result r;
	uint32_t h;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	set_bytes(bytes, LONG);
	(void)begin(SUBMIT(RECV, .handle = h, .len = LONG, .lent = LENT(0, 1)), 1);
	other_goes_down();
	assert_int_equal(node_shares(&o.hub.node), 0);
	raw_write(fd, bytes, LONG);
	usleep(20000);
	other_comes_up(7);
	r = hear_of(serial);
	assert_int_equal(r.lent.dock, 0);
	assert_int_equal(r.data_len, GATE_PIECE);
	assert_int_equal(asks_of(serial, QUESTION(GATE_GET, .ticket = 1, .len = LONG,
						  .lent = LENT(0, 1))), -ENOLINK);
	/* nothing is sent that is not there */
	serial++;
	assert_int_equal(ask(SUBMIT(SEND, .handle = h, .len = LONG, .lent = LENT(1, 0))).result,
			 -ENOLINK);
	/* and the ticket is not taken; berths for what comes are as if they were not there */
	(void)begin(SUBMIT(RECV, .handle = h, .len = LONG, .lent = LENT(0, 1)), 0);
	raw_write(fd, bytes, LONG);
	assert_int_equal(hear_of(serial).lent.dock, 0);
	docks();
	set_bytes(berth(gateway, 1), LONG);
	assert_int_equal(done_of(SUBMIT(SEND, .handle = h, .len = LONG,
					.lent = LENT(1, 0))).result, LONG);
	assert_int_equal(raw_read(fd, bytes, LONG), LONG);
	check_bytes(bytes, 0, LONG);
	assert_int_equal(peer_placed(&o.peer), 0);
	close(fd);
}

/* One that has heard no answer asks again: what was is none, and there are four. */
static void again(void **state)
{
	const struct rgate_desc good = peer_desc(node, ALL, PEER_KEY);
	struct gate_question q = dock_of(&good, sizeof(good));
	uint32_t h;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	q.serial = NAME_ - 1;
	assert_int_equal(ask(q).result, -EALREADY);
	for (q.serial = NAME_ + 1; q.serial < NAME_ + 4; q.serial++)
		assert_int_equal(ask(q).result, 0);
	assert_int_equal(node_shares(&o.hub.node), 1);
	serial++;
	assert_int_equal(ask(SUBMIT(SEND, .handle = h, .len = LONG, .lent = LENT(1, 0))).result,
			 -ENOLINK);
	assert_int_equal(ask(q).result, -EALREADY);
	assert_int_equal(node_shares(&o.hub.node), 1);
	close(fd);
}

/* Docks that are none, a second one, and one for whom it does not speak */
static void no_docks(void **state)
{
	const struct rgate_desc good = peer_desc(node, ALL, PEER_KEY);
	struct rgate_desc desc[3] = { good, good, good };
	struct gate_question q;
	unsigned int i;

	(void)state;
	assert_int_equal(ask(dock_of(&good, sizeof(good))).result, -EALREADY);
	other_goes_down();
	other_comes_up(7);
	desc[0].length = htole64(ALL - 1);
	desc[1].access = RGATE_ACCESS_REMOTE_READ;
	desc[2].magic = 0;
	/* no memory is made for them, or there would be another error */
	o.hub.node.no_share = true;
	for (i = 0; i < ARRAY_LEN(desc); i++)
		assert_int_equal(ask(dock_of(&desc[i], sizeof(desc[i]))).result, -EPROTO);
	o.hub.node.no_share = false;
	q = dock_of(&good, sizeof(good));
	q.uid = 13;
	assert_int_equal(ask(q).result, -EACCES);
	o.hub.node.no_share = true;
	assert_int_equal(ask(dock_of(&good, sizeof(good))).result, -ENOSPC);
	o.hub.node.no_share = false;
	assert_int_equal(node_shares(&o.hub.node), 0);
	docks();
}

/* What is no question has no answer, and changes nothing. */
static void malformed(void **state)
{
	static const struct gate_lent lents[] = {
		LENT(0, 0), LENT(MOST + 1, 0), LENT(0, MOST + 1), LENT(65535, 65535),
	};
	const struct rgate_desc good = peer_desc(node, ALL, PEER_KEY);
	unsigned int i;
	uint32_t h;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	serial++;
	for (i = 0; i < ARRAY_LEN(lents); i++) {
		ask_only(SUBMIT(SEND, .handle = h, .len = LONG, .lent = lents[i]));
		ask_only(SUBMIT(RECV, .handle = h, .len = LONG, .lent = lents[i]));
	}
	/* bytes behind it, or none to move; of a question that has none */
	ask_only(SUBMIT(SEND, .handle = h, .len = 1, .data = "x", .data_len = 1,
			.lent = LENT(1, 0)));
	ask_only(SUBMIT(SEND, .handle = h, .lent = LENT(1, 0)));
	ask_only(QUESTION(GATE_GET, .len = 300, .lent = LENT(1, 1)));
	ask_only(QUESTION(GATE_GET, .off = 1, .len = ROOM, .lent = LENT(0, 1)));
	ask_only(QUESTION(GATE_CANCEL, .lent = LENT(0, 1)));
	ask_only(QUESTION(GATE_PUT, .len = 300, .lent = LENT(1, 0)));
	ask_only(dock_of(&good, sizeof(good) - 1));
	ask_only(SUBMIT(SEND, .handle = h, .len = ROOM + 1, .lent = LENT(1, 0)));
	serves_turn();
	assert_false(other_heard(&heard));
	/* of what sends nothing */
	assert_int_equal(ask(SUBMIT(RECV, .handle = h, .len = 10, .lent = LENT(1, 0))).result,
			 -EINVAL);
	close(fd);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	BED(sends), BED(receives), BED(wide), BED(asked_for), BED(many), BED(no_room), BED(lost),
	BED(no_docks), BED(again), BED(malformed),
};

UNIT_MAIN(tests)
