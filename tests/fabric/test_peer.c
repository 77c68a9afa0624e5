// SPDX-License-Identifier: MIT OR GPL-2.0
/* Operations on a peer and messages to it, over whichever provider. */
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static void every_operation(void **state)
{
	uint64_t old = 0, word;
	struct rgate_sge s;
	struct duo d;
	char *a, *b;

	(void)state;
	duo_up(&d, 0);
	a = d.buf[0]->addr;
	b = d.buf[1]->addr;
	unit_pattern(a, 1, 50000);
	s = duo_sge(&d, 0, 0, 50000);
	assert_int_equal(rgate_peer_write(d.peer[0], &d.at[1], 100, &s, MS), 0);
	assert_int_equal(rgate_peer_flush(d.peer[0], MS), 0);
	assert_int_equal(unit_pattern_check(b + 100, 1, 50000), 0);
	assert_int_equal(b[99] | b[50100], 0);
	/* the other way round, into other memory */
	s = duo_sge(&d, 1, 51200, 8000);
	assert_int_equal(rgate_peer_read(d.peer[1], &d.at[0], 0, &s, MS), 0);
	assert_memory_equal(b + 51200, a, 8000);
	word = 40;
	memcpy(b + 64, &word, 8);
	assert_int_equal(rgate_peer_fetch_add(d.peer[0], &d.at[1], 64, 2, &old, MS), 0);
	assert_int_equal(old, 40);
	assert_int_equal(rgate_peer_compare_swap(d.peer[0], &d.at[1], 64, 41, 7, &old, MS), 0);
	assert_int_equal(old, 42);
	assert_int_equal(rgate_peer_compare_swap(d.peer[0], &d.at[1], 64, 42, 7, &old, MS), 0);
	assert_int_equal(old, 42);
	assert_int_equal(rgate_peer_fetch_add(d.peer[0], &d.at[1], 64, 0, NULL, MS), 0);
	memcpy(&word, b + 64, 8);
	assert_int_equal(word, 7);
	duo_down(&d);
}

static void messages(void **state)
{
	static const size_t lens[] = { 0, 1, 7, 8, 63, 64, 200, 1023, 1024 };
	char out[1025], in[1024];
	struct rgate_msg msg;
	struct duo d;
	size_t i;

	(void)state;
	duo_up(&d, 0);
	assert_int_equal(rgate_peer_recv(d.peer[1], &msg, in, sizeof(in), 0), -EAGAIN);
	assert_int_equal(rgate_peer_recv(d.peer[1], &msg, in, sizeof(in), 20), -EAGAIN);
	for (i = 0; i < ARRAY_LEN(lens); i++) {
		unit_pattern(out, i, lens[i]);
		assert_int_equal(rgate_peer_send(d.peer[0], out, lens[i], MS), 0);
	}
	assert_int_equal(rgate_peer_send(d.peer[0], out, 1025, MS), -EMSGSIZE);
	for (i = 0; i < ARRAY_LEN(lens); i++) {
		if (lens[i]) {
			assert_int_equal(rgate_peer_recv(d.peer[1], &msg, in, lens[i] - 1, MS),
					 -EMSGSIZE);
			assert_int_equal(msg.len, lens[i]);
		}
		assert_int_equal(rgate_peer_recv(d.peer[1], &msg, in, sizeof(in), MS), 0);
		assert_int_equal(msg.len, lens[i]);
		assert_false(msg.has_imm);
		assert_int_equal(unit_pattern_check(in, i, lens[i]), 0);
	}
	duo_down(&d);
}

/* More than the peer has room for: refused, then waited for, never lost */
static void credits(void **state)
{
	struct rgate_op_stats st = { .sz = sizeof(st) };
	struct rgate_msg msg;
	uint32_t i, sent, in;
	struct rgate_sge s;
	struct duo d;
	int err;

	(void)state;
	duo_up(&d, 0);
	s = duo_sge(&d, 0, 0, 4);
	for (sent = 0, err = 0; !err; sent++) {
		struct rgate_op op = { .kind = RGATE_OP_SEND, .nsge = 1, .sge = &s };
		uint64_t ticket;

		assert_true(sent < 10000);
		memcpy(d.buf[0]->addr, &sent, 4);
		err = rgate_peer_post(d.peer[0], &op, 1, &ticket);
		if (!err)
			assert_int_equal(rgate_peer_finish(d.peer[0], ticket, MS), 0);
	}
	sent--;
	assert_int_equal(err, -EAGAIN);
	assert_in_range(sent, 64, 128);
	assert_int_equal(rgate_peer_stats(d.peer[0], RGATE_OP_SEND, &st), 0);
	assert_int_equal(st.posted, sent);
	assert_true(st.stalled > 0 && st.measured == sent && st.p50_ns > 0);
	/* that of the handshake may still come back */
	do
		err = rgate_peer_send(d.peer[0], &sent, 4, 50);
	while (!err && ++sent <= 128);
	assert_int_equal(err, -EAGAIN);
	assert_int_equal(peer_state(d.peer[0]), RGATE_PEER_UP);
	for (i = 0; i < 1000; i++) {
		assert_int_equal(rgate_peer_recv(d.peer[1], &msg, &in, 4, MS), 0);
		assert_int_equal(in, i);
		assert_int_equal(rgate_peer_send(d.peer[0], &sent, 4, MS), 0);
		sent++;
	}
	duo_down(&d);
}

/* All of the first ones, then some */
static void measured(void **state)
{
	struct rgate_op_stats st = { .sz = sizeof(st) };
	unsigned int i;
	struct duo d;

	(void)state;
	duo_up(&d, 0);
	for (i = 0; i < 1200; i++)
		assert_int_equal(rgate_peer_flush(d.peer[0], MS), 0);
	assert_int_equal(rgate_peer_stats(d.peer[0], RGATE_OP_FLUSH, &st), 0);
	assert_int_equal(st.posted, 1200);
	assert_int_equal(st.measured, 1024 + (1200 - 1024) / 8);
	assert_true(st.min_ns && st.min_ns <= st.p50_ns && st.p50_ns <= st.p90_ns &&
		    st.p90_ns <= st.p99_ns && st.p99_ns <= st.p999_ns && st.p999_ns <= st.max_ns);
	assert_int_equal(rgate_peer_stats(d.peer[0], RGATE_OP_KINDS, &st), -EINVAL);
	duo_down(&d);
}

/* A notice comes after the bytes of its write, and of those before it */
static void notices(void **state)
{
	struct rgate_msg msg;
	struct rgate_sge s;
	struct duo d;
	uint32_t i;
	char *a, *b;

	(void)state;
	duo_up(&d, 0);
	a = d.buf[0]->addr;
	b = d.buf[1]->addr;
	for (i = 0; i < 300; i++) {
		unit_pattern(a, i, 20000);
		s = duo_sge(&d, 0, 0, 10000);
		assert_int_equal(rgate_peer_write(d.peer[0], &d.at[1], 0, &s, MS), 0);
		s = duo_sge(&d, 0, 10000, 10000);
		assert_int_equal(rgate_peer_write_imm(d.peer[0], &d.at[1], 10000, &s, ~i, MS), 0);
		assert_int_equal(rgate_peer_recv(d.peer[1], &msg, NULL, 0, MS), 0);
		assert_true(msg.has_imm && msg.imm == ~i && !msg.len);
		assert_int_equal(unit_pattern_check(b, i, 20000), 0);
	}
	/* without bytes, too */
	assert_int_equal(rgate_peer_write_imm(d.peer[0], &d.at[1], 0, NULL, 5, MS), 0);
	assert_int_equal(rgate_peer_recv(d.peer[1], &msg, NULL, 0, MS), 0);
	assert_true(msg.has_imm && msg.imm == 5);
	duo_down(&d);
}

static void batches(void **state)
{
	struct rgate_op op[RGATE_POST_MAX];
	struct rgate_sge s[RGATE_POST_MAX];
	uint64_t ticket, first = 0;
	struct duo d;
	unsigned int i, k;
	char *b;

	(void)state;
	duo_up(&d, 0);
	b = d.buf[1]->addr;
	unit_pattern(d.buf[0]->addr, 9, DUO_BYTES);
	for (k = 0; k < 200; k++) {
		memset(b, 0, DUO_BYTES);
		for (i = 0; i < RGATE_POST_MAX; i++) {
			s[i] = duo_sge(&d, 0, i * 1024, 1 + (i * 37 + k) % 1024);
			op[i] = (struct rgate_op){
				.kind = RGATE_OP_WRITE, .nsge = 1, .sge = &s[i],
				.remote = d.at[1].addr + i * 1024, .rkey = d.at[1].rkey,
			};
		}
		assert_int_equal(rgate_peer_post(d.peer[0], op, RGATE_POST_MAX, &ticket), 0);
		assert_true(ticket > first);
		first = ticket;
		op[0] = (struct rgate_op){ .kind = RGATE_OP_FLUSH };
		assert_int_equal(rgate_peer_post(d.peer[0], op, 1, &ticket), 0);
		assert_int_equal(rgate_peer_finish(d.peer[0], ticket, MS), 0);
		assert_int_equal(rgate_peer_done(d.peer[0], first), 1);
		for (i = 0; i < RGATE_POST_MAX; i++)
			assert_memory_equal(b + i * 1024, s[i].addr, s[i].length);
	}
	/* nobody waits for any of these, and yet there is always room again */
	for (k = 0; k < 2000; k++) {
		struct rgate_sge one = duo_sge(&d, 0, 0, 8);
		int err;

		op[0] = (struct rgate_op){ .kind = RGATE_OP_WRITE, .nsge = 1, .sge = &one,
					   .remote = d.at[1].addr, .rkey = d.at[1].rkey };
		do
			err = rgate_peer_post(d.peer[0], op, 1, NULL);
		while (err == -EAGAIN);
		assert_int_equal(err, 0);
	}
	assert_int_equal(rgate_peer_flush(d.peer[0], MS), 0);
	assert_int_equal(rgate_peer_done(d.peer[0], ticket + 100000), -EINVAL);
	duo_down(&d);
}

/* Pieces are written one after another, and a read fills them */
static void pieces(void **state)
{
	struct rgate_sge s[RGATE_SGE_MAX + 1];
	struct rgate_op op;
	struct rgate_msg msg;
	uint64_t ticket;
	char in[64];
	struct duo d;
	char *a, *b;

	(void)state;
	duo_up(&d, 0);
	a = d.buf[0]->addr;
	b = d.buf[1]->addr;
	memcpy(a, "onetwothreefour", 15);
	s[0] = duo_sge(&d, 0, 11, 4);
	s[1] = duo_sge(&d, 0, 6, 5);
	s[2] = duo_sge(&d, 0, 3, 3);
	s[3] = duo_sge(&d, 0, 0, 3);
	op = (struct rgate_op){ .kind = RGATE_OP_WRITE, .nsge = 4, .sge = s,
				.remote = d.at[1].addr, .rkey = d.at[1].rkey };
	assert_int_equal(rgate_peer_post(d.peer[0], &op, 1, &ticket), 0);
	assert_int_equal(rgate_peer_finish(d.peer[0], ticket, MS), 0);
	assert_int_equal(rgate_peer_flush(d.peer[0], MS), 0);
	assert_memory_equal(b, "fourthreetwoone", 16);
	op.kind = RGATE_OP_SEND;
	assert_int_equal(rgate_peer_post(d.peer[0], &op, 1, &ticket), 0);
	assert_int_equal(rgate_peer_recv(d.peer[1], &msg, in, sizeof(in), MS), 0);
	assert_int_equal(msg.len, 15);
	assert_memory_equal(in, "fourthreetwoone", 15);
	memcpy(b, "FOURTHREETWOONE", 15);
	op.kind = RGATE_OP_READ;
	assert_int_equal(rgate_peer_post(d.peer[0], &op, 1, &ticket), 0);
	assert_int_equal(rgate_peer_finish(d.peer[0], ticket, MS), 0);
	assert_memory_equal(a, "ONETWOTHREEFOUR", 15);
	op.nsge = RGATE_SGE_MAX + 1;
	assert_int_equal(rgate_peer_post(d.peer[0], &op, 1, &ticket), -EINVAL);
	duo_down(&d);
}

static void malformed(void **state)
{
	struct rgate_sge s, *none = NULL;
	struct rgate_op op[RGATE_POST_MAX + 1] = { 0 };
	struct rgate_remote narrow;
	struct duo d;

	(void)state;
	duo_up(&d, 0);
	s = duo_sge(&d, 0, 0, 8);
	op[0] = (struct rgate_op){ .kind = RGATE_OP_KINDS };
	assert_int_equal(rgate_peer_post(d.peer[0], op, 1, NULL), -EINVAL);
	op[0] = (struct rgate_op){ .kind = RGATE_OP_WRITE, .flags = 0x80, .nsge = 1, .sge = &s };
	assert_int_equal(rgate_peer_post(d.peer[0], op, 1, NULL), -EINVAL);
	op[0] = (struct rgate_op){ .kind = RGATE_OP_WRITE, .nsge = 1, .sge = none };
	assert_int_equal(rgate_peer_post(d.peer[0], op, 1, NULL), -EINVAL);
	op[0] = (struct rgate_op){ .kind = RGATE_OP_FLUSH, .reserved = { 1 } };
	assert_int_equal(rgate_peer_post(d.peer[0], op, 1, NULL), -EINVAL);
	op[0] = (struct rgate_op){ .kind = RGATE_OP_FLUSH, .reserved = { 0, 1 } };
	assert_int_equal(rgate_peer_post(d.peer[0], op, 1, NULL), -EINVAL);
	op[0] = (struct rgate_op){ .kind = RGATE_OP_FETCH_ADD, .nsge = 1, .sge = &s, .remote = 4 };
	assert_int_equal(rgate_peer_post(d.peer[0], op, 1, NULL), -EINVAL);
	op[0] = (struct rgate_op){ .kind = RGATE_OP_FLUSH, .nsge = 1, .sge = &s };
	assert_int_equal(rgate_peer_post(d.peer[0], op, 1, NULL), -EINVAL);
	assert_int_equal(rgate_peer_post(d.peer[0], op, 0, NULL), -EINVAL);
	assert_int_equal(rgate_peer_post(d.peer[0], NULL, 1, NULL), -EINVAL);
	assert_int_equal(rgate_peer_post(d.peer[0], op, RGATE_POST_MAX + 1, NULL), -EINVAL);
	s = duo_sge(&d, 0, 0, 9);
	assert_int_equal(rgate_peer_write(d.peer[0], &d.at[1], DUO_BYTES - 8, &s, MS), -ERANGE);
	assert_int_equal(rgate_peer_write(d.peer[0], &d.at[1], UINT64_MAX, &s, MS), -ERANGE);
	assert_int_equal(rgate_peer_write(d.peer[0], &d.at[1], 0, &s, 0), -EINVAL);
	assert_int_equal(rgate_peer_flush(d.peer[0], -1), -EINVAL);
	narrow = d.at[1];
	narrow.access = RGATE_ACCESS_REMOTE_READ;
	assert_int_equal(rgate_peer_write(d.peer[0], &narrow, 0, &s, MS), -EACCES);
	assert_int_equal(rgate_peer_fetch_add(d.peer[0], &narrow, 0, 1, NULL, MS), -EACCES);
	assert_int_equal(rgate_peer_read(d.peer[0], &narrow, 0, &s, MS), 0);
	assert_string_equal(rgate_op_name(RGATE_OP_FLUSH), "flush");
	assert_string_equal(rgate_op_name(99), "none");
	duo_down(&d);
}

#define ADDS 400

struct adder {
	struct rgate_peer *peer;
	const struct rgate_remote *at;
	uint8_t *seen;
};

static void *add(void *arg)
{
	struct adder *a = arg;
	unsigned int i;
	uint64_t old;

	for (i = 0; i < ADDS; i++) {
		unit_require(!rgate_peer_fetch_add(a->peer, a->at, 0, 1, &old, MS));
		unit_require(old < 3 * ADDS);
		unit_require(!__atomic_fetch_add(&a->seen[old], 1, __ATOMIC_RELAXED));
	}
	return NULL;
}

/* The owner changes such a word by its connection to itself, like everybody else */
static void loopback(void **state)
{
	static uint8_t seen[3 * ADDS];
	struct rgate_peer *self;
	struct adder a[3];
	struct rgate_msg msg;
	pthread_t th[3];
	struct duo d;
	char in[8];
	int i;

	(void)state;
	memset(seen, 0, sizeof(seen));
	duo_up(&d, 0);
	i = fcntl(STDIN_FILENO, F_GETFD);
	assert_int_equal(rgate_peer_open(&self, d.node[1], RGATE_NODES_MAX - 1), -ENOENT);
	/* nothing was opened for it, nor closed */
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), i);
	assert_int_equal(rgate_peer_open(&self, d.node[1], 1), 0);
	assert_int_equal(rgate_peer_wait_up(self, MS), 0);
	for (i = 0; i < 3; i++) {
		/* two threads share one peer */
		a[i] = (struct adder){ i ? d.peer[0] : self, &d.at[1], seen };
		assert_int_equal(pthread_create(&th[i], NULL, add, &a[i]), 0);
	}
	for (i = 0; i < 3; i++)
		pthread_join(th[i], NULL);
	assert_int_equal(*(uint64_t *)d.buf[1]->addr, 3 * ADDS);
	assert_int_equal(rgate_peer_send(self, "me", 3, MS), 0);
	assert_int_equal(rgate_peer_recv(self, &msg, in, sizeof(in), MS), 0);
	assert_string_equal(in, "me");
	rgate_peer_close(self);
	duo_down(&d);
}

struct echo {
	struct rgate_peer *peer;
	unsigned int rounds;
};

static void *echo_main(void *arg)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct echo *e = arg;
	unsigned int done = 0;
	struct rgate_msg msg;
	char buf[64];
	int ep, err;

	ep = epoll_create1(EPOLL_CLOEXEC);
	unit_require(!epoll_ctl(ep, EPOLL_CTL_ADD, rgate_peer_fd(e->peer), &ev));
	while (done < e->rounds) {
		err = rgate_peer_recv(e->peer, &msg, buf, sizeof(buf), 0);
		if (err == -EAGAIN) {
			unit_require(!rgate_peer_arm(e->peer));
			err = rgate_peer_recv(e->peer, &msg, buf, sizeof(buf), 0);
		}
		if (err == -EAGAIN) {
			/* a wakeup that is lost would end here */
			unit_require(epoll_wait(ep, &ev, 1, MS) == 1);
			continue;
		}
		unit_require(!err);
		unit_require(!rgate_peer_send(e->peer, buf, msg.len, MS));
		done++;
	}
	close(ep);
	return NULL;
}

static void sleeping(void **state)
{
	struct echo e = { .rounds = 1000 };
	struct rgate_msg msg;
	unsigned int i, in;
	pthread_t th;
	struct duo d;

	(void)state;
	duo_up(&d, 0);
	e.peer = d.peer[1];
	assert_int_equal(pthread_create(&th, NULL, echo_main, &e), 0);
	for (i = 0; i < e.rounds; i++) {
		if (i % 100 == 0)
			nodes_nap();
		assert_int_equal(rgate_peer_send(d.peer[0], &i, sizeof(i), MS), 0);
		assert_int_equal(rgate_peer_recv(d.peer[0], &msg, &in, sizeof(in), MS), 0);
		assert_int_equal(in, i);
	}
	pthread_join(th, NULL);
	duo_down(&d);
}

static bool readable(struct rgate_peer *peer, int ms)
{
	struct pollfd p = { .fd = rgate_peer_fd(peer), .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/*
 * Who only receives is woken by messages, and need not be by what others post: over shared
 * memory he is not, but for the few times that the node's thread was at work meanwhile.
 */
static void receiving(void **state)
{
	struct rgate_sge s;
	struct rgate_op op = { .kind = RGATE_OP_WRITE, .nsge = 1, .sge = &s };
	unsigned int i, woken = 0, in;
	struct rgate_msg msg;
	uint64_t ticket;
	struct duo d;

	(void)state;
	duo_up(&d, 0);
	s = duo_sge(&d, 0, 0, 64);
	op.remote = d.at[1].addr;
	op.rkey = d.at[1].rkey;
	for (i = 0; i < 100; i++) {
		assert_int_equal(rgate_peer_arm_recv(d.peer[0]), 0);
		assert_int_equal(rgate_peer_post(d.peer[0], &op, 1, &ticket), 0);
		woken += readable(d.peer[0], 0);
		assert_int_equal(rgate_peer_finish(d.peer[0], ticket, MS), 0);
	}
	if (d.c.local)
		assert_true(woken < 20);
	for (i = 0; i < 20; i++) {
		assert_int_equal(rgate_peer_arm_recv(d.peer[0]), 0);
		assert_int_equal(rgate_peer_send(d.peer[1], &i, sizeof(i), MS), 0);
		assert_true(readable(d.peer[0], MS));
		assert_int_equal(rgate_peer_recv(d.peer[0], &msg, &in, sizeof(in), MS), 0);
		assert_int_equal(in, i);
	}
	duo_down(&d);
}

static uint32_t epoch_of(struct rgate_peer *peer)
{
	struct rgate_peer_info info = { .sz = sizeof(info) };

	assert_int_equal(rgate_peer_info(peer, &info), 0);
	return info.epoch;
}

static int post_pair(struct duo *d, struct rgate_sge *s, uint32_t first, uint32_t second)
{
	const struct rgate_op ops[] = {
		{ .kind = RGATE_OP_WRITE, .nsge = 1, .sge = s, .remote = d->at[1].addr,
		  .rkey = d->at[1].rkey, .epoch = first },
		{ .kind = RGATE_OP_SEND, .nsge = 1, .sge = s, .epoch = second },
	};
	uint64_t ticket;
	int err = rgate_peer_post(d->peer[0], ops, 2, &ticket);

	return err ? err : rgate_peer_finish(d->peer[0], ticket, MS);
}

/* What is meant for one connection does not go over the next. */
static void other_connection(void **state)
{
	struct rgate_sge s;
	struct rgate_msg msg;
	uint32_t old, now;
	struct duo d;
	char in[8], *b;

	(void)state;
	duo_up(&d, 0);
	s = duo_sge(&d, 0, 0, sizeof(in));
	b = d.buf[1]->addr;
	old = epoch_of(d.peer[0]);
	memcpy(s.addr, "the old", sizeof(in));
	assert_int_equal(post_pair(&d, &s, old, old), 0);
	assert_int_equal(rgate_peer_recv(d.peer[1], &msg, in, sizeof(in), MS), 0);
	assert_int_equal(msg.epoch, epoch_of(d.peer[1]));
	assert_string_equal(b, "the old");

	rgate_peer_close(d.peer[1]);
	wait_for(peer_state(d.peer[0]) != RGATE_PEER_UP);
	assert_int_equal(post_pair(&d, &s, old, old), -ENOTCONN);
	assert_int_equal(rgate_peer_open(&d.peer[1], d.node[1], 0), 0);
	assert_int_equal(rgate_peer_wait_up(d.peer[1], MS), 0);
	assert_int_equal(rgate_peer_wait_up(d.peer[0], MS), 0);
	now = epoch_of(d.peer[0]);
	assert_true(now > old);
	memcpy(s.addr, "the new", sizeof(in));
	assert_int_equal(post_pair(&d, &s, old, old), -ENOTCONN);
	assert_int_equal(post_pair(&d, &s, now, old), -ENOTCONN);
	assert_int_equal(post_pair(&d, &s, old, 0), -ENOTCONN);
	assert_int_equal(post_pair(&d, &s, now + 1, now + 1), -ENOTCONN);
	assert_int_equal(rgate_peer_flush(d.peer[0], MS), 0);
	assert_string_equal(b, "the old");
	assert_int_equal(rgate_peer_recv(d.peer[1], &msg, in, sizeof(in), 0), -EAGAIN);
	assert_int_equal(post_pair(&d, &s, now, 0), 0);
	assert_int_equal(rgate_peer_recv(d.peer[1], &msg, in, sizeof(in), MS), 0);
	assert_int_equal(msg.epoch, epoch_of(d.peer[1]));
	assert_string_equal(b, "the new");
	duo_down(&d);
}

struct hammer {
	struct duo *d;
	unsigned int no;
};

/* Each with its piece of memory: write, read back, compare */
static void *hammer_main(void *arg)
{
	const struct hammer *h = arg;
	const size_t off = h->no * 8192;
	uint64_t seed = h->no + 1;
	unsigned int i;

	for (i = 0; i < 300; i++) {
		size_t len = 1 + unit_random(&seed) % 4000;
		struct rgate_sge s = duo_sge(h->d, 0, off, len);
		char *mine = s.addr;

		unit_pattern(mine, i, len);
		unit_require(!rgate_peer_write(h->d->peer[0], &h->d->at[1], off, &s, MS));
		s = duo_sge(h->d, 0, off + 4096, len);
		unit_require(!rgate_peer_read(h->d->peer[0], &h->d->at[1], off, &s, MS));
		unit_require(!unit_pattern_check(mine + 4096, i, len));
	}
	return NULL;
}

static void threads(void **state)
{
	struct hammer h[6];
	pthread_t th[6];
	struct duo d;
	unsigned int i;

	(void)state;
	duo_up(&d, 0);
	for (i = 0; i < 6; i++) {
		h[i] = (struct hammer){ &d, i };
		assert_int_equal(pthread_create(&th[i], NULL, hammer_main, &h[i]), 0);
	}
	for (i = 0; i < 6; i++)
		pthread_join(th[i], NULL);
	duo_down(&d);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_operation),
	cmocka_unit_test(messages),
	cmocka_unit_test(credits),
	cmocka_unit_test(measured),
	cmocka_unit_test(notices),
	cmocka_unit_test(batches),
	cmocka_unit_test(pieces),
	cmocka_unit_test(malformed),
	cmocka_unit_test(loopback),
	cmocka_unit_test(sleeping),
	cmocka_unit_test(receiving),
	cmocka_unit_test(other_connection),
	cmocka_unit_test(threads),
};

UNIT_MAIN(tests)
