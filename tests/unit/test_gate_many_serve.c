// SPDX-License-Identifier: MIT OR GPL-2.0
/* A gateway whose sockets accept many by one request of a node, which may ask for anything. */
#include "serves_bed.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate_priv.h"

#define ACCEPTS(l, n, ...) \
	QUESTION(GATE_SUBMIT_MANY, .op = RGATE_REQ_SOCKET_ACCEPT, .handle = (l), .a1 = (n), \
		 ##__VA_ARGS__)

static int setup(void **state)
{
	(void)state;
	serves_make(0);
	serves_handles = 10000;
	return 0;
}

static uint64_t handles(void)
{
	struct rgate_engine_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_engine_stats(net_eng, &st), 0);
	return st.handles;
}

/* A guest's listener, and its port */
static uint32_t listener(uint16_t *port)
{
	const uint32_t l = serves_socket(RGATE_SOCKET_STREAM);
	struct rgate_socket_addr a;
	struct gate_result r;

	assert_int_equal(done_of(SUBMIT(LISTEN, .handle = l, .a0 = 512)).result, 0);
	r = done_of(SUBMIT(NAME, .handle = l, .len = GATE_ADDR));
	assert_int_equal(r.result, 0);
	memcpy(&a, r.data, sizeof(a));
	*port = a.port;
	return l;
}

/* A connection of that request, told by message @n: its handle */
static uint32_t hear_more(uint64_t of, uint64_t n, uint32_t len)
{
	const struct gate_result r = hear_of(of);

	assert_int_equal(r.kind, GATE_MORE);
	assert_int_equal(r.serial, of);
	assert_int_equal(r.guest, guest);
	assert_int_equal(r.number, n);
	assert_int_equal(r.result, 0);
	assert_int_equal(r.len, len);
	assert_int_equal(r.data_len, len);
	assert_null(r.addr);
	assert_int_not_equal(r.value, 0);
	return (uint32_t)r.value;
}

/* But ends of others that have one completion */
static void nothing(void)
{
	struct gate_result r;

	usleep(20000);
	serves_turn();
	while (other_heard(&heard)) {
		assert_int_equal(gate_answer_get(&r, heard.data, heard.len), 0);
		assert_int_equal(r.kind, GATE_DONE);
		assert_int_equal(r.number, 0);
	}
}

/* So many messages of that request, over the connection before */
static int has_heard(uint64_t of, uint32_t ticket, uint64_t n)
{
	return asks_of(of, QUESTION(GATE_HEARD, .ticket = ticket, .a0 = n));
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	return (uint16_t)(((unsigned char *)&ss)[2] << 8 | ((unsigned char *)&ss)[3]);
}

/* Each with its handle, which works, and address; then its places are used up. */
static void accepts(void **state)
{
	struct rgate_socket_addr from;
	struct gate_result r;
	uint32_t l, h[3];
	uint16_t port;
	uint64_t c;
	int fd[3], i;

	(void)state;
	l = listener(&port);
	fd[0] = raw_connect(port);
	c = begin(ACCEPTS(l, 4, .len = 3 * GATE_ADDR), 9);
	for (i = 0; i < 3; i++) {
		h[i] = hear_more(c, (uint64_t)i, GATE_ADDR);
		memcpy(&from, heard.data + sizeof(struct gate_answer), sizeof(from));
		assert_int_equal(from.port, port_of(fd[i]));
		if (i < 2)
			fd[i + 1] = raw_connect(port);
	}
	hear_end(c, 3, -ENOBUFS);
	for (i = 0; i < 3; i++) {
		raw_write(fd[i], &"abc"[i], 1);
		r = done_of(SUBMIT(RECV, .handle = h[i], .len = 9));
		assert_int_equal(r.result, 1);
		assert_int_equal(*(const char *)r.data, "abc"[i]);
		close(fd[i]);
	}
	/* nothing of it is to be got besides */
	assert_int_equal(asks_of(c, QUESTION(GATE_GET, .ticket = 9, .len = 1)), -ERANGE);
	nothing();
}

/* Over a new connection nothing is told before the node has said what it heard, then the rest. */
static void told_again(void **state)
{
	uint32_t l, h[2];
	uint16_t port;
	uint64_t c;
	int fd[3];

	(void)state;
	l = listener(&port);
	c = begin(ACCEPTS(l, 4), 1);
	fd[0] = raw_connect(port);
	h[0] = hear_more(c, 0, 0);
	other_goes_down();
	/* meanwhile */
	fd[1] = raw_connect(port);
	nothing();
	other_comes_up(7);
	nothing();
	assert_int_equal(has_heard(c, 1, 1), 0);
	h[1] = hear_more(c, 1, 0);
	assert_int_not_equal(h[0], h[1]);
	/* none of it was heard; nobody comes any more */
	other_goes_down();
	other_comes_up(7);
	assert_int_equal(has_heard(c, 1, 0), 0);
	assert_int_equal(hear_more(c, 0, 0), h[0]);
	assert_int_equal(hear_more(c, 1, 0), h[1]);
	/* once for a connection */
	assert_int_equal(has_heard(c, 1, 0), 0);
	nothing();
	other_goes_down();
	/* the service sees it before the hub does */
	other_comes_up_unseen(7);
	fd[2] = raw_connect(port);
	nothing();
	peer_is_seen(PEER);
	nothing();
	assert_int_equal(has_heard(c, 1, 1), 0);
	assert_int_equal(hear_more(c, 1, 0), h[1]);
	(void)hear_more(c, 2, 0);
	hear_end(c, 3, -ENOBUFS);
	/* all of it but the end */
	other_goes_down();
	other_comes_up(7);
	nothing();
	assert_int_equal(has_heard(c, 1, 3), 0);
	hear_end(c, 3, -ENOBUFS);
	/* while it is told */
	other_goes_down();
	other_comes_up(7);
	assert_int_equal(has_heard(c, 1, 2), 0);
	other_goes_down();
	while (other_heard(&heard))
		;
	other_comes_up(7);
	assert_int_equal(has_heard(c, 1, 2), 0);
	(void)hear_more(c, 2, 0);
	hear_end(c, 3, -ENOBUFS);
	close(fd[0]);
	close(fd[1]);
	close(fd[2]);
}

/* A node that comes and goes, and has heard of the end, is told nothing of it any more. */
static void comes_and_goes(void **state)
{
	struct gate_result r;
	unsigned int i;
	uint16_t port;
	uint64_t c;
	uint32_t l;
	int fd[20];

	(void)state;
	l = listener(&port);
	c = begin(ACCEPTS(l, 21), 1);
	for (i = 0; i < 20; i++)
		fd[i] = raw_connect(port);
	for (i = 0; i < 20; i++)
		(void)hear_more(c, i, 0);
	hear_end(c, 20, -ENOBUFS);
	for (i = 0; i < 5; i++) {
		other_goes_down();
		other_comes_up(7);
		usleep(20000);
		serves_turn();
		/* but the ends of those that have one completion */
		while (other_heard(&heard)) {
			assert_int_equal(gate_answer_get(&r, heard.data, heard.len), 0);
			assert_int_equal(r.kind, GATE_DONE);
			assert_int_not_equal(r.serial, c);
		}
	}
	for (i = 0; i < 20; i++)
		close(fd[i]);
}

/* Of what it has not been told, or of another request, it has heard nothing. */
static void heard_wrong(void **state)
{
	uint16_t port;
	uint64_t c, d;
	uint32_t l;
	int fd;

	(void)state;
	l = listener(&port);
	c = begin(ACCEPTS(l, 4), 1);
	d = begin(SUBMIT(POLL, .handle = l, .a0 = RGATE_SOCKET_IN), 2);
	fd = raw_connect(port);
	(void)hear_more(c, 0, 0);
	other_goes_down();
	other_comes_up(7);
	assert_int_equal(has_heard(c, 1, 2), -EINVAL);
	assert_int_equal(has_heard(c, 1, UINT64_MAX), -EINVAL);
	assert_int_equal(has_heard(c - 1, 1, 0), -ESTALE);
	assert_int_equal(has_heard(c, 3, 0), -ESTALE);
	assert_int_equal(has_heard(d, 2, 0), -ESTALE);
	nothing();
	guest++;
	assert_int_equal(has_heard(c, 1, 0), -ECONNRESET);
	guest--;
	assert_int_equal(has_heard(c, 1, 0), 0);
	(void)hear_more(c, 0, 0);
	close(fd);
}

/* Who does not take what he is told keeps nobody else from hearing, and gets all of it later. */
static void slow(void **state)
{
	uint32_t l, h, i, n;
	struct gate_result r;
	bool poll_heard = false;
	uint64_t c, poll;
	int fd[100], other;
	uint16_t port;

	(void)state;
	l = listener(&port);
	h = serves_connected(&other);
	c = begin(ACCEPTS(l, 101), 0);
	poll = begin(SUBMIT(POLL, .handle = h, .a0 = RGATE_SOCKET_IN), 63);
	peer_say_full(PEER, true);
	/* of another socket, and before the connections: its end has come when all of them have */
	raw_write(other, "x", 1);
	for (i = 0; i < 100; i++)
		fd[i] = raw_connect(port);
	serves_become(102);
	while (handles() != 102)
		usleep(1000);
	nothing();
	peer_say_full(PEER, false);
	for (i = n = 0; n < 100;) {
		r = hear();
		i++;
		if (r.serial == poll) {
			poll_heard = true;
			/* not behind all that is told of the other */
			assert_in_range(i, 1, 3);
			continue;
		}
		assert_int_equal(r.serial, c);
		assert_int_equal(r.kind, GATE_MORE);
		assert_int_equal(r.number, n++);
	}
	hear_end(c, 100, -ENOBUFS);
	assert_true(poll_heard);
	close(other);
	for (i = 0; i < 100; i++)
		close(fd[i]);
}

/* Guests have turns: one with much to tell comes after each one of the others. */
static void turns(void **state)
{
	uint32_t l[2], i, n[2] = { 0, 0 };
	uint64_t c[2], last = 0;
	struct gate_result r;
	uint16_t port[2];
	int fd[40];

	(void)state;
	l[0] = listener(&port[0]);
	c[0] = begin(ACCEPTS(l[0], 31), 0);
	guest = 2;
	l[1] = listener(&port[1]);
	c[1] = begin(ACCEPTS(l[1], 11), 0);
	peer_say_full(PEER, true);
	for (i = 0; i < 40; i++)
		fd[i] = raw_connect(port[i < 30 ? 0 : 1]);
	serves_become(42);
	usleep(20000);
	peer_say_full(PEER, false);
	for (i = 0; i < 42; i++) {
		r = hear();
		assert_true(r.serial == c[r.guest - 1]);
		if (n[1] < 11)
			assert_int_not_equal(r.guest, last);
		last = r.guest;
		assert_int_equal(r.number, n[last - 1]);
		n[last - 1]++;
	}
	assert_int_equal(n[0], 31);
	assert_int_equal(n[1], 11);
	for (i = 0; i < 40; i++)
		close(fd[i]);
}

/* Those that came are told before the end, handles of others are free with it. */
static void cancelled(void **state)
{
	struct gate_result r;
	unsigned int i;
	uint16_t port;
	uint64_t c;
	uint32_t l;
	int fd;

	(void)state;
	l = listener(&port);
	c = begin(ACCEPTS(l, 101), 0);
	fd = raw_connect(port);
	(void)hear_more(c, 0, 0);
	assert_int_equal(handles(), 101);
	peer_say_full(PEER, true);
	close(fd);
	fd = raw_connect(port);
	usleep(20000);
	peer_say_full(PEER, false);
	(void)hear_more(c, 1, 0);
	assert_int_equal(asks_of(c, QUESTION(GATE_CANCEL)), 0);
	hear_end(c, 2, -ECANCELED);
	assert_int_equal(handles(), 3);
	/* when it has ended already */
	assert_int_equal(asks_of(c, QUESTION(GATE_CANCEL)), 0);
	nothing();
	/* the listener's end */
	c = begin(ACCEPTS(l, 101), 0);
	(void)begin(SUBMIT(CLOSE, .handle = l), 1);
	/* two ends, in any order */
	for (i = 0; i < 2; i++) {
		r = hear();
		assert_int_equal(r.result, r.serial == c ? -ECANCELED : 0);
	}
	assert_int_equal(handles(), 2);
	nothing();
	close(fd);
}

/* The session ends, its process, or its connection for too long: so does all that was accepted. */
static void leaves(void **state)
{
	unsigned int how;
	uint16_t port;
	uint64_t c;
	char byte;
	int fd[3];

	(void)state;
	(void)serves_teardown(NULL);
	for (how = 0; how < 3; how++) {
		serves_make(how == 2 ? 50 : 0);
		serves_handles = 1000;
		c = begin(ACCEPTS(listener(&port), 10), 3);
		fd[0] = raw_connect(port);
		(void)hear_more(c, 0, 0);
		/* accepted, and not heard of; or in the backlog */
		peer_say_full(PEER, true);
		fd[1] = raw_connect(port);
		serves_become(10);
		usleep(20000);
		peer_say_full(PEER, false);
		if (!how) {
			peer_say_full(PEER, true);
			fd[2] = raw_connect(port);
			peer_say_full(PEER, false);
			assert_int_equal(ask(QUESTION(GATE_LEAVE)).result, 0);
		} else {
			other_goes_down();
			fd[2] = raw_connect(port);
			if (how == 1)
				other_comes_up(8);
		}
		serves_become(0);
		assert_int_equal(handles(), 0);
		for (unsigned int i = 0; i < 3; i++) {
			assert_true(recv(fd[i], &byte, 1, 0) <= 0);
			close(fd[i]);
		}
		(void)serves_teardown(NULL);
	}
	serves_make(0);
}

/* With another policy it ends: with as many as were told. */
static void revoked(void **state)
{
	uint16_t port;
	uint64_t c;
	int fd;

	(void)state;
	c = begin(ACCEPTS(listener(&port), 10), 3);
	fd = raw_connect(port);
	(void)hear_more(c, 0, 0);
	serves_banned = ME;
	gate_service_review(serves_sv);
	hear_end(c, 1, -EACCES);
	serves_become(0);
	close(fd);
}

/* ---- What can not be ---- */

static int refusal(struct gate_question q)
{
	q.serial = ++serial;
	return ask(q).result;
}

static void hostile(void **state)
{
	struct gate_question q;
	uint16_t port;
	uint64_t c;
	uint32_t l;

	(void)state;
	l = listener(&port);
	assert_int_equal(refusal(ACCEPTS(l, 0)), -EINVAL);
	assert_int_equal(refusal(ACCEPTS(l, 1)), -EINVAL);
	assert_int_equal(refusal(ACCEPTS(l, GATE_MANY + 1)), -EINVAL);
	assert_int_equal(refusal(ACCEPTS(l, (1ULL << 32) + 2)), -EINVAL);
	assert_int_equal(refusal(ACCEPTS(l, UINT64_MAX)), -EINVAL);
	assert_int_equal(refusal(ACCEPTS(l, 4, .len = 1, .data = "x", .data_len = 1)), -EINVAL);
	q = ACCEPTS(l, 4);
	q.op = RGATE_REQ_SOCKET_POLL;
	assert_int_equal(refusal(q), -EOPNOTSUPP);
	q.op = RGATE_REQ_SOCKET_RESOLVE;
	assert_int_equal(refusal(q), -EOPNOTSUPP);
	q.op = RGATE_REQ_CANCEL;
	assert_int_equal(refusal(q), -EOPNOTSUPP);
	assert_int_equal(asks_of(UINT64_MAX, ACCEPTS(l, 4)), -EINVAL);
	/* What the engine and the service refuse ends as it is. */
	assert_int_equal(done_of(ACCEPTS(l, 4, .len = GATE_ADDR)).result, -EINVAL);
	assert_int_equal(done_of(ACCEPTS(l, 4, .a0 = 1)).result, -EINVAL);
	assert_int_equal(done_of(ACCEPTS(l + 1, 4)).result, -EBADF);
	assert_int_equal(done_of(SUBMIT(ACCEPT, .handle = l, .a1 = 4)).result, -EINVAL);
	/* Tickets have one request, and no earlier one comes back. */
	c = begin(ACCEPTS(l, 4), 5);
	assert_int_equal(refusal(ACCEPTS(l, 4, .ticket = 5)), -EBUSY);
	assert_int_equal(asks_of(c, QUESTION(GATE_CANCEL, .ticket = 5)), 0);
	hear_end(c, 0, -ECANCELED);
	assert_int_equal(asks_of(c, ACCEPTS(l, 4, .ticket = 5)), -ESTALE);
	/* of others nothing */
	q = ACCEPTS(l, 4);
	q.guest = 2;
	q.serial = ++serial;
	assert_int_equal(ask(q).result, 0);
	assert_int_equal(hear().result, -EBADF);
	o.may = false;
	assert_int_equal(refusal(ACCEPTS(l, 4)), -EACCES);
	o.may = true;
	assert_int_equal(handles(), 1);
}

/* So many places has a guest for them, and besides those for all others and what cancels. */
static void most(void **state)
{
	uint64_t c, d;
	uint16_t port;
	uint32_t l, i;

	(void)state;
	l = listener(&port);
	c = begin(ACCEPTS(l, GATE_MANY), 0);
	assert_int_equal(refusal(ACCEPTS(l, GATE_SHOTS - GATE_MANY + 3, .ticket = 1)), -ENOSPC);
	d = begin(ACCEPTS(l, GATE_SHOTS - GATE_MANY + 2), 1);
	assert_int_equal(refusal(ACCEPTS(l, 2, .ticket = 2)), -ENOSPC);
	for (i = 2; i < GATE_TICKETS; i++)
		(void)begin(SUBMIT(POLL, .handle = l, .a0 = RGATE_SOCKET_IN), i);
	for (i = GATE_TICKETS - 1; i > 1; i--) {
		assert_int_equal(asks_of(d + i, QUESTION(GATE_CANCEL, .ticket = i)), 0);
		hear_end(d + i, 0, -ECANCELED);
	}
	assert_int_equal(asks_of(c, QUESTION(GATE_CANCEL)), 0);
	hear_end(c, 0, -ECANCELED);
	/* they are free again, once */
	assert_int_equal(refusal(ACCEPTS(l, GATE_MANY + 1, .ticket = 2)), -EINVAL);
	(void)begin(ACCEPTS(l, GATE_MANY), 2);
	assert_int_equal(refusal(ACCEPTS(l, 2, .ticket = 3)), -ENOSPC);
}

/*
 * A node of a version that would not say what it has heard: its request is refused, as it would
 * hear no more of it over another connection. The ticket is free, and all else as ever.
 */
static void former(void **state)
{
	unsigned char m[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));
	struct gate_question q;
	struct gate_result r;
	uint16_t port;
	uint32_t l;
	size_t len;

	(void)state;
	l = listener(&port);
	q = ACCEPTS(l, 5, .number = number++, .ticket = 1);
	q.serial = ++serial;
	len = gate_question_put(&gate_sockets, m, &q);
	m[2] = 7;
	hub_says(HUB, OTHER, m, len);
	r = hear();
	assert_int_equal(r.number, q.number);
	assert_int_equal(r.kind, 7);
	assert_int_equal(r.result, -EOPNOTSUPP);
	assert_int_equal(handles(), 1);
	r = done_of(SUBMIT(NAME, .handle = l, .len = GATE_ADDR, .ticket = 1));
	assert_int_equal(r.result, 0);
}

/* It has no more than its user may have. */
static void limited(void **state)
{
	uint16_t port;
	uint32_t l;

	(void)state;
	serves_handles = 8;
	l = listener(&port);
	assert_int_equal(done_of(ACCEPTS(l, 20)).result, -EDQUOT);
	assert_int_equal(handles(), 1);
	(void)begin(ACCEPTS(l, 8), 0);
	while (handles() != 8)
		usleep(1000);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, serves_teardown)

static const struct CMUnitTest tests[] = {
	BED(accepts), BED(told_again), BED(comes_and_goes), BED(heard_wrong),
	BED(slow), BED(turns), BED(cancelled), BED(leaves),
	BED(revoked), BED(hostile), BED(most), BED(former), BED(limited),
};

UNIT_MAIN(tests)
