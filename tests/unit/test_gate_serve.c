// SPDX-License-Identifier: MIT OR GPL-2.0
/* A gateway that a node asks for whatever it likes: its sockets are the kernel's own. */
#include "serves_bed.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static uint8_t pattern(uint32_t at)
{
	return (uint8_t)(at * 7 + 1);
}

static void carries_bytes(void **state)
{
	uint8_t bytes[1000], back[1000], piece[GATE_PIECE];
	struct gate_result r;
	uint32_t h, i, at;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = pattern(i);
	/* first those behind the message's */
	serial++;
	for (at = GATE_PIECE; at < sizeof(bytes); at += i) {
		i = sizeof(bytes) - at < GATE_PIECE ? (uint32_t)sizeof(bytes) - at : GATE_PIECE;
		assert_int_equal(ask(QUESTION(GATE_PUT, .off = at, .len = i, .data = bytes + at,
					      .data_len = i)).result, 0);
	}
	serial--;
	r = done_of(SUBMIT(SEND, .handle = h, .len = sizeof(bytes), .data = bytes,
			   .data_len = GATE_PIECE));
	assert_int_equal(r.result, sizeof(bytes));
	assert_int_equal(raw_read(fd, back, sizeof(back)), sizeof(back));
	assert_memory_equal(back, bytes, sizeof(bytes));
	raw_write(fd, bytes, sizeof(bytes));
	r = done_of(SUBMIT(RECV, .handle = h, .len = sizeof(bytes), .a0 = RGATE_SOCKET_ALL));
	assert_int_equal(r.result, sizeof(bytes));
	assert_int_equal(r.len, sizeof(bytes));
	assert_int_equal(r.data_len, GATE_PIECE);
	assert_memory_equal(r.data, bytes, GATE_PIECE);
	for (at = GATE_PIECE; at < sizeof(bytes); at += r.data_len) {
		i = sizeof(bytes) - at < GATE_PIECE ? (uint32_t)sizeof(bytes) - at : GATE_PIECE;
		r = ask(QUESTION(GATE_GET, .off = at, .len = i));
		assert_int_equal(r.result, 0);
		memcpy(piece, r.data, r.data_len);
		assert_int_equal(r.data_len, i);
		assert_memory_equal(piece, bytes + at, i);
	}
	/* and nothing beyond */
	assert_int_equal(ask(QUESTION(GATE_GET, .off = sizeof(bytes) - 1, .len = 2)).result,
			 -ERANGE);
	assert_int_equal(ask(QUESTION(GATE_GET, .off = 4096, .len = 1)).result, -ERANGE);
	close(fd);
}

/* What waits is told when it ends, over each new connection, and can be cancelled. */
static void ends_late(void **state)
{
	struct gate_question q;
	struct gate_result r;
	uint32_t h;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	serial++;
	q = SUBMIT(RECV, .handle = h, .len = 10);
	assert_int_equal(ask(q).result, 0);
	/* its place is taken */
	assert_int_equal(ask(SUBMIT(RECV, .handle = h, .len = 10)).result, -EBUSY);
	assert_int_equal(ask(QUESTION(GATE_PUT, .len = 1, .data = "x", .data_len = 1)).result,
			 -EBUSY);
	assert_int_equal(ask(QUESTION(GATE_GET, .len = 1)).result, -ESTALE);
	other_goes_down();
	raw_write(fd, "late", 4);
	usleep(20000);
	assert_false(other_heard(&heard));
	other_comes_up(7);
	r = hear();
	assert_int_equal(r.kind, GATE_DONE);
	assert_int_equal(r.serial, q.serial);
	assert_int_equal(r.result, 4);
	assert_memory_equal(r.data, "late", 4);
	other_goes_down();
	other_comes_up(7);
	assert_int_equal(hear().result, 4);
	/* an older one's, or the same once more */
	assert_int_equal(ask(q).result, -ESTALE);
	serial++;
	assert_int_equal(ask(SUBMIT(RECV, .handle = h, .len = 10)).result, 0);
	/* of no request: that guest is there */
	q = QUESTION(GATE_CANCEL);
	q.serial = UINT64_MAX;
	assert_int_equal(ask(q).result, 0);
	q.guest++;
	assert_int_equal(ask(q).result, -ECONNRESET);
	assert_int_equal(ask(QUESTION(GATE_CANCEL)).result, 0);
	r = hear();
	assert_int_equal(r.result, -ECANCELED);
	assert_int_equal(r.serial, serial);
	assert_int_equal(ask(QUESTION(GATE_CANCEL)).result, 0);
	close(fd);
}

/* The service may see a connection before the hub has: what is told then is not lost. */
static void told_too_soon(void **state)
{
	struct gate_result r;
	uint32_t h;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	serial++;
	assert_int_equal(ask(SUBMIT(RECV, .handle = h, .len = 10)).result, 0);
	other_goes_down();
	raw_write(fd, "soon", 4);
	usleep(20000);
	other_comes_up_unseen(7);
	serves_turn();
	assert_false(other_heard(&heard));
	peer_is_seen(PEER);
	r = hear();
	assert_int_equal(r.kind, GATE_DONE);
	assert_int_equal(r.serial, serial);
	assert_int_equal(r.result, 4);
	close(fd);
}

/* A handle is one guest's, a guest one user's and one node's. */
static void others_handles(void **state)
{
	const uint32_t h = serves_socket(RGATE_SOCKET_STREAM);
	struct gate_question q = SUBMIT(LISTEN, .handle = h, .a0 = 1);

	(void)state;
	q.serial = ++serial;
	q.uid = 6;
	assert_int_equal(ask(q).result, -EACCES);
	q.kind = GATE_LEAVE;
	q.op = q.handle = 0;
	q.a0 = 0;
	assert_int_equal(ask(q).result, -EACCES);
	assert_int_equal(serves_sockets(), 1);
	/* another session of it */
	guest = 2;
	assert_int_equal(done_of(SUBMIT(LISTEN, .handle = h, .a0 = 1)).result, -EBADF);
	assert_int_equal(done_of(SUBMIT(CLOSE, .handle = h)).result, -EBADF);
	assert_int_equal(done_of(SUBMIT(NAME, .handle = 1234567, .len = GATE_ADDR)).result, -EBADF);
	assert_int_equal(serves_sockets(), 1);
	/* of the gateway's own programs */
	assert_int_equal(done_of(SUBMIT(CLOSE, .handle = net_socket(&net_a, 4, 1))).result, -EBADF);
	assert_int_equal(serves_sockets(), 2);
}

static void not_for_everybody(void **state)
{
	struct gate_question q = SUBMIT(OPEN, .a0 = RGATE_SOCKET_A0(2, 1));
	unsigned int i;

	(void)state;
	q.uid = 13;
	assert_int_equal(ask(q).result, -EACCES);
	q.uid = 14;
	assert_int_equal(ask(q).result, -EACCES);
	for (i = 0; i < 8; i++)
		(void)serves_socket(RGATE_SOCKET_DGRAM);
	assert_int_equal(done_of(SUBMIT(OPEN, .a0 = RGATE_SOCKET_A0(2, 1))).result, -EDQUOT);
	/* the policy is another one */
	o.may = false;
	serial++;
	assert_int_equal(ask(SUBMIT(OPEN, .a0 = RGATE_SOCKET_A0(2, 1))).result, -EACCES);
	o.may = true;
	/* so many sessions */
	for (i = 0; i < 63; i++) {
		guest++;
		assert_int_equal(done_of(SUBMIT(OPEN, .a0 = 0)).result, -EINVAL);
	}
	guest++;
	assert_int_equal(ask(SUBMIT(OPEN, .a0 = 0)).result, -EDQUOT);
	assert_int_equal(serves_stats().guests, 64);
	assert_int_equal(serves_stats().turned_away, 1);
}

/* Who may not ask any more may end what he has: a node that is not to be here can leave. */
static void revoked(void **state)
{
	uint32_t h;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	serial++;
	assert_int_equal(ask(SUBMIT(RECV, .handle = h, .len = 10)).result, 0);
	o.may = false;
	assert_int_equal(ask(QUESTION(GATE_CANCEL)).result, 0);
	assert_int_equal(hear().result, -ECANCELED);
	assert_int_equal(ask(QUESTION(GATE_LEAVE)).result, 0);
	serves_become(0);
	close(fd);
}

/* With another policy guests end that may not be there: a node's, or a user's. */
static void reviewed(void **state)
{
	struct gate_question q;
	struct gate_result r;
	uint32_t h;
	int fd;

	(void)state;
	gate_service_review(NULL);
	h = serves_connected(&fd);
	serial++;
	assert_int_equal(ask(SUBMIT(RECV, .handle = h, .len = 10)).result, 0);
	q = SUBMIT(OPEN, .a0 = RGATE_SOCKET_A0(2, 1));
	q.guest = 2;
	q.uid = 6;
	assert_int_equal(done_of(q).result, 0);
	gate_service_review(serves_sv);
	assert_int_equal(serves_stats().guests, 2);
	assert_false(other_heard(&heard));
	serves_banned = 5;
	gate_service_review(serves_sv);
	/* what waits is told */
	r = hear();
	assert_int_equal(r.kind, GATE_DONE);
	assert_int_equal(r.guest, 1);
	assert_int_equal(r.serial, serial - 1);
	assert_int_equal(r.result, -EACCES);
	assert_int_equal(r.len, 0);
	serves_become(1);
	assert_int_equal(serves_stats().guests, 1);
	assert_int_equal(ask(QUESTION(GATE_CANCEL)).result, -ECONNRESET);
	close(fd);
	o.may = false;
	o.peer.send_full = true;
	gate_service_review(serves_sv);
	o.peer.send_full = false;
	serves_become(0);
	assert_int_equal(serves_stats().guests, 0);
	assert_false(other_heard(&heard));
}

/* Comes, and goes; its result */
static int visit(uid_t uid)
{
	struct gate_question q = SUBMIT(OPEN, .a0 = 0), leave;
	int err;

	guest++;
	q.guest = guest;
	q.uid = uid;
	q.serial = ++serial;
	err = ask(q).result;
	if (!err) {
		assert_int_equal(hear().kind, GATE_DONE);
		leave = QUESTION(GATE_LEAVE);
		leave.uid = uid;
		assert_int_equal(ask(leave).result, 0);
	}
	return err;
}

/* Sessions that come and go are not made as fast as a node asks, whatever its process. */
static void churns(void **state)
{
	const uint64_t began = unit_now_ns();
	uint32_t h = serves_socket(RGATE_SOCKET_DGRAM);
	const uint64_t home = guest;
	unsigned int good = 1, n = 1;
	uint64_t most;
	int err;

	(void)state;
	for (; n < 400; n++) {
		if (n == 300) {
			/* another process of it has nothing of the last one, but its limit */
			other_goes_down();
			other_comes_up(8);
			number = 16;
			guest = 1;
			assert_int_equal(serves_sockets(), 0);
		}
		err = visit(5 + n % 2);
		assert_true(!err || err == -EUSERS);
		good += !err;
		if (n < 128)
			assert_int_equal(err, 0);
		/* who is there is not held up */
		if (n == 250) {
			const uint64_t last = guest;

			guest = home;
			assert_int_equal(done_of(SUBMIT(CLOSE, .handle = h)).result, 0);
			guest = last;
		}
	}
	most = 128 + (unit_now_ns() - began) / 20000000 + 1;
	assert_in_range(good, 128, most);
	assert_int_equal(serves_stats().came, good);
	assert_int_equal(serves_stats().turned_away, 400 - good);
	assert_int_equal(serves_stats().guests, 0);
	/* it is taken again a while later */
	usleep(100000);
	assert_int_equal(visit(5), 0);
}

/* A user who takes all that he can leaves something for the others of his node. */
static void shares(void **state)
{
	const uint64_t began = unit_now_ns();
	unsigned int i, refused = 0;
	struct gate_question q;

	(void)state;
	for (i = 0; i < 200; i++)
		refused += visit(5) == -EUSERS;
	/* unless so much time has passed that all of them may be */
	assert_true(refused || (unit_now_ns() - began) / 20000000 >= 200 - 128);
	for (i = 0; i < 20; i++)
		assert_int_equal(visit(6), 0);
	/* and what he may not have by his own limit he takes from nobody */
	serves_sessions = 2;
	q = SUBMIT(OPEN, .a0 = 0);
	q.uid = 7;
	for (i = 0; i < 300; i++) {
		q.guest = ++guest;
		q.serial = ++serial;
		assert_int_equal(ask(q).result, i < serves_sessions ? 0 : -EDQUOT);
		if (i < serves_sessions)
			assert_int_equal(hear().kind, GATE_DONE);
	}
	assert_int_equal(visit(8), 0);
}

/* Who has no socket may ask for names: the answer is where the question was, and longer. */
static void names(void **state)
{
	struct rgate_socket_addr a;
	struct gate_question q;
	struct gate_result r;

	(void)state;
	q = SUBMIT(RESOLVE, .a0 = RGATE_SOCKET_RESOLVE_A0(2, 1, 0),
		   .a1 = RGATE_SOCKET_RESOLVE_A1(9, 2), .len = 100, .data = "localhost22",
		   .data_len = 11);
	r = done_of(q);
	assert_int_equal(r.result, GATE_ADDR);
	assert_int_equal(r.len, GATE_ADDR);
	assert_int_equal(r.data_len, GATE_ADDR);
	assert_int_equal(RGATE_SOCKET_FOUND(r.value), 1);
	memcpy(&a, r.data, sizeof(a));
	assert_memory_equal(a.addr, serves_loopback(0).addr, sizeof(a.addr));
	assert_int_equal(a.port, 22);
	/* What is behind it is nobody's. */
	r = ask(QUESTION(GATE_GET, .off = GATE_ADDR, .len = 1));
	assert_int_equal(r.result, -ERANGE);
	/* a session's first one, of which some comes before it */
	guest = 2;
	serial++;
	assert_int_equal(ask(QUESTION(GATE_PUT, .off = 9, .len = 2, .data = "22",
				      .data_len = 2)).result, 0);
	serial--;
	q.guest = guest;
	q.data_len = 9;
	r = done_of(q);
	assert_int_equal(r.result, GATE_ADDR);
	memcpy(&a, r.data, sizeof(a));
	assert_int_equal(a.port, 22);
	q.data_len = 11;
	q.data = "local/ost22";
	r = done_of(q);
	assert_int_equal(r.result, -EILSEQ);
	assert_int_equal(r.len, 0);
}

static void unknown(void **state)
{
	uint64_t msg[(RGATE_HUB_MSG_MAX + 8) / sizeof(uint64_t)];
	unsigned char *m = (void *)msg;
	struct gate_question q, got;
	size_t len, i;

	(void)state;
	(void)serves_socket(RGATE_SOCKET_STREAM);
	serial++;
	q = QUESTION(GATE_SUBMIT, .op = RGATE_REQ_CANCEL);
	assert_int_equal(ask(q).result, -EOPNOTSUPP);
	q.op = RGATE_REQ_SOCKET_RESOLVE + 1;
	assert_int_equal(ask(q).result, -EOPNOTSUPP);
	q.op = RGATE_REQ_OP(RGATE_REQ_MEMORY, 0);
	assert_int_equal(ask(q).result, -EOPNOTSUPP);
	q.op = RGATE_REQ_SOCKET_SEND;
	q.addr = &(const struct rgate_socket_addr){ .family = 2 };
	assert_int_equal(ask(q).result, -EINVAL);
	q.addr = NULL;
	q.serial = UINT64_MAX;
	assert_int_equal(ask(q).result, -EINVAL);
	q.serial = serial;
	q.op = RGATE_REQ_SOCKET_RECV;
	q.len = q.data_len = 1;
	q.data = "x";
	assert_int_equal(ask(q).result, -EINVAL);
	/* fields that it has not, and the engine's checks */
	assert_int_equal(done_of(SUBMIT(CLOSE, .handle = 1, .a0 = 1)).result, -EINVAL);
	assert_int_equal(done_of(SUBMIT(LISTEN, .handle = 1, .len = 8)).result, -EINVAL);
	/* malformed ones get no answer */
	q = QUESTION(GATE_PUT, .number = number, .len = 4, .data = "abcd", .data_len = 4);
	len = gate_question_put(&gate_sockets, m, &q);
	assert_int_equal(gate_question_get(&gate_sockets, &got, m, len), 0);
	for (i = 0; i < len; i++)
		assert_int_equal(gate_question_get(&gate_sockets, &got, m, i), -EPROTO);
	assert_int_equal(gate_question_get(&gate_sockets, &got, m, len + 1), -EPROTO);
	m[60] = 0xff;		/* off */
	m[61] = 0xff;
	assert_int_equal(gate_question_get(&gate_sockets, &got, m, len), -EPROTO);
	m[61] = 0;
	m[60] = 0;
	m[32] = GATE_TICKETS;
	assert_int_equal(gate_question_get(&gate_sockets, &got, m, len), -EPROTO);
	m[32] = 0;
	m[34] = 1;		/* op */
	assert_int_equal(gate_question_get(&gate_sockets, &got, m, len), -EPROTO);
	m[34] = 0;
	hub_says(HUB, OTHER, m, len - 1);
	assert_false(other_heard(&heard));
	m[2] = GATE_DONE;
	assert_int_equal(gate_question_get(&gate_sockets, &got, m, len), -EOPNOTSUPP);
	m[1]++;
	assert_int_equal(gate_question_get(&gate_sockets, &got, m, len), -EPROTONOSUPPORT);
	hub_says(HUB, OTHER, m, len);
	assert_int_equal(hear().result, -EPROTONOSUPPORT);
}

/* All that it had ends with it: its session, its process, or its connection for too long. */
static void dies(void **state)
{
	char byte;
	uint32_t h;
	int fd;

	(void)state;
	h = serves_connected(&fd);
	serial++;
	assert_int_equal(ask(SUBMIT(RECV, .handle = h, .len = 10)).result, 0);
	assert_int_equal(ask(QUESTION(GATE_LEAVE)).result, 0);
	serves_become(0);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
	/* that guest is no more, and will not be */
	serial++;
	assert_int_equal(ask(SUBMIT(OPEN, .a0 = RGATE_SOCKET_A0(2, 1))).result, -ECONNRESET);
	guest = 5;
	(void)serves_connected(&fd);
	other_goes_down();
	serves_turn();
	assert_int_equal(serves_sockets(), 1);
	other_comes_up(8);
	serves_become(0);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
	/* the next process counts anew */
	guest = 1;
	serial = 1;
	while (other_heard(&heard))
		;
	(void)serves_connected(&fd);
	close(fd);
}

/* Their first questions may come in any order; but who has left does not come back. */
static void in_any_order(void **state)
{
	struct gate_question q = SUBMIT(OPEN, .a0 = RGATE_SOCKET_A0(2, 1));
	uint64_t id;

	(void)state;
	q.guest = 200;
	assert_int_equal(done_of(q).result, 0);
	/* given before that one's */
	q.guest = 100;
	assert_int_equal(done_of(q).result, 0);
	guest = 200;
	assert_int_equal(ask(QUESTION(GATE_LEAVE)).result, 0);
	assert_int_equal(ask(q).result, -ESTALE);
	q.guest = 200;
	assert_int_equal(ask(q).result, -ECONNRESET);
	/* also when the higher one has left before it came */
	q.guest = 150;
	assert_int_equal(done_of(q).result, 0);
	/* the lower one ends later, which makes the higher ones no younger */
	guest = 100;
	assert_int_equal(ask(QUESTION(GATE_LEAVE)).result, 0);
	q.serial = ++serial;
	for (id = 100; id <= 200; id += 100) {
		q.guest = id;
		assert_int_equal(ask(q).result, -ECONNRESET);
	}
	serves_become(1);
	/* so many have left that all below are taken to have, but for who is there */
	for (guest = 299; guest < 363;)
		assert_int_equal(visit(6), 0);
	for (id = 1; id < 400; id++) {
		q.guest = id;
		q.serial = serial + 1;
		if (id <= 200 && id != 150)
			assert_int_equal(ask(q).result, -ECONNRESET);
		else if (id >= 300 && id < 364)
			assert_int_equal(ask(q).result, -ECONNRESET);
	}
	q.guest = 250;
	assert_int_equal(done_of(q).result, 0);
	q.guest = 150;
	assert_int_equal(done_of(q).result, 0);
	serves_become(3);
	/* the end of one below all that are known takes nobody else for gone */
	guest = 150;
	assert_int_equal(ask(QUESTION(GATE_LEAVE)).result, 0);
	q.guest = 260;
	assert_int_equal(done_of(q).result, 0);
	serves_become(2);
}

static void away_too_long(void **state)
{
	(void)state;
	serves_make(50);
	(void)serves_socket(RGATE_SOCKET_STREAM);
	other_goes_down();
	serves_turn();
	assert_int_equal(serves_sockets(), 1);
	serves_become(0);
	other_comes_up(7);
	serial++;
	assert_int_equal(ask(SUBMIT(OPEN, .a0 = RGATE_SOCKET_A0(2, 1))).result, -ECONNRESET);
	assert_int_equal(ask(QUESTION(GATE_LEAVE)).result, -ECONNRESET);
}

static void no_room(void **state)
{
	const struct gate_question q = SUBMIT(OPEN, .a0 = RGATE_SOCKET_A0(2, 1), .number = 16);
	uint64_t msg[RGATE_HUB_MSG_MAX / sizeof(uint64_t)];
	struct gate_question copy = q;

	(void)state;
	o.peer.send_full = true;
	hub_says(HUB, OTHER, msg, gate_question_put(&gate_sockets, msg, &copy));
	serves_become(1);
	usleep(20000);
	assert_false(other_heard(&heard));
	assert_true(o.hub.asks.tick(o.hub.ctx) >= 0);
	o.peer.send_full = false;
	/* the answer, and then the end */
	assert_int_equal(hear().kind, GATE_SUBMIT);
	assert_int_equal(hear().kind, GATE_DONE);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, serves_setup, serves_teardown)

static const struct CMUnitTest tests[] = {
	BED(carries_bytes), BED(ends_late), BED(told_too_soon), BED(others_handles),
	BED(not_for_everybody), BED(revoked), BED(reviewed), BED(churns), BED(shares), BED(names),
	BED(unknown), BED(dies),
	cmocka_unit_test_teardown(away_too_long, serves_teardown),
	BED(no_room), BED(in_any_order),
};

UNIT_MAIN(tests)
