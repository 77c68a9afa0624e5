// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What every provider has to do (lib/fabric/provider.h), without nodes and peers:
 * connections, operations, how a connection ends. test_provider_memory.c: what is refused.
 */
#include "ends.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Hello and welcome arrive as they were given, and so does the owner */
static void handshake(void **state)
{
	static const size_t lens[] = { 1, 7, RGATE_PROV_HELLO };
	uint8_t hello[RGATE_PROV_HELLO], welcome[RGATE_PROV_WELCOME];
	struct rgate_prov_event ev;
	struct end e[2];
	struct cluster c;
	unsigned int i;

	(void)state;
	ends_open(&c, e, MS);
	unit_pattern(hello, 1, sizeof(hello));
	unit_pattern(welcome, 2, sizeof(welcome));
	for (i = 0; i < ARRAY_LEN(lens); i++) {
		assert_int_equal(e[1].prov->connect(e[1].ep, &e[0].self, hello, lens[i], &e[1],
						    &e[1].conn), 0);
		assert_ptr_equal(e[1].prov->owner(e[1].conn), &e[1]);
		end_event(&e[0], RGATE_PROV_REQUEST, &ev);
		assert_true(ev.len >= lens[i]);
		assert_memory_equal(ev.data, hello, lens[i]);
		e[0].conn = ev.conn;
		end_prepare(&e[0]);
		assert_int_equal(e[0].prov->accept(ev.conn, welcome, sizeof(welcome), &i), 0);
		assert_ptr_equal(e[0].prov->owner(e[0].conn), &i);
		end_event(&e[1], RGATE_PROV_REPLY, &ev);
		assert_true(ev.len >= sizeof(welcome));
		assert_memory_equal(ev.data, welcome, sizeof(welcome));
		/* It came to nothing: the other end is told. */
		e[1].prov->destroy(e[1].conn);
		end_event(&e[0], RGATE_PROV_DOWN, &ev);
		assert_ptr_equal(ev.conn, e[0].conn);
		e[0].prov->destroy(e[0].conn);
		e[0].conn = NULL;
		e[1].conn = NULL;
	}
	assert_int_equal(e[1].prov->connect(e[1].ep, &e[0].self, welcome, RGATE_PROV_HELLO + 1,
					    &e[1], &e[1].conn), -EINVAL);
	e[1].conn = NULL;
	ends_down(&c, e);
}

/* The end of an attempt: at once or by an event */
static int attempt_fails(struct end *e, const struct rgate_cluster_node *to)
{
	struct rgate_prov_event ev;
	int err;

	err = e->prov->connect(e->ep, to, "x", 1, e, &e->conn);
	if (err) {
		e->conn = NULL;
		return err;
	}
	end_event(e, RGATE_PROV_DOWN, &ev);
	assert_ptr_equal(ev.conn, e->conn);
	e->prov->destroy(e->conn);
	e->conn = NULL;
	return ev.err;
}

static void rejected(void **state)
{
	struct rgate_cluster_node nobody = { .sz = sizeof(nobody) };
	static const int reasons[] = { 0, -EACCES };
	struct rgate_prov_event ev;
	struct end e[2];
	struct cluster c;
	unsigned int i;

	(void)state;
	cluster_make(&c, 2, 0);
	end_open(&e[1], &c, 1, MS);
	assert_int_equal(rgate_cluster_node(c.conf, 0, &nobody), 0);
	assert_int_equal(attempt_fails(&e[1], &nobody), -ECONNREFUSED);
	end_open(&e[0], &c, 0, MS);
	e[0].other = &e[1];
	e[1].other = &e[0];
	for (i = 0; i < ARRAY_LEN(reasons); i++) {
		assert_int_equal(e[1].prov->connect(e[1].ep, &e[0].self, "x", 1, &e[1],
						    &e[1].conn), 0);
		end_event(&e[0], RGATE_PROV_REQUEST, &ev);
		e[0].prov->reject(ev.conn, reasons[i]);
		end_event(&e[1], RGATE_PROV_DOWN, &ev);
		assert_ptr_equal(ev.conn, e[1].conn);
		assert_int_equal(ev.err, reasons[i] ? reasons[i] : -ECONNREFUSED);
		e[1].prov->destroy(e[1].conn);
		e[1].conn = NULL;
	}
	ends_down(&c, e);
}

/* Sizes around what is copied at once, and around pages and packets */
static void transfers(void **state)
{
	uint32_t lens[] = { 1, 7, 8, 9, 63, 64, 65, 255, 0, 0, 0, 1023, 1024, 1025, 4095, 4096,
			    4097, 65536, 300001 };
	struct end e[2];
	struct cluster c;
	unsigned int i;
	uint32_t small;

	(void)state;
	ends_up(&c, e);
	small = e[0].prov->inline_size(e[0].conn);
	if (small > 4096)
		small = 512;
	lens[8] = small ? small - 1 : 1;
	lens[9] = small ? small : 1;
	lens[10] = small + 1;
	for (i = 0; i < ARRAY_LEN(lens); i++) {
		const size_t from = 3 + i, to = 350000 + 5 * i, len = lens[i];
		struct rgate_sge s = end_sge(&e[0], from, len);
		struct rgate_op op = end_op(RGATE_OP_WRITE, &s, &e[1], to);
		uint8_t *remote = e[1].buf->addr, *mine = e[0].buf->addr;

		memset(remote, 0, ENDS_BYTES);
		unit_pattern(mine + from, i, len);
		assert_int_equal(end_do(&e[0], &op), 0);
		end_flush(&e[0], &e[1]);
		assert_int_equal(unit_pattern_check(remote + to, i, len), 0);
		assert_int_equal(remote[to - 1] | remote[to + len], 0);
		memset(mine, 0, from + len + 8);
		op.kind = RGATE_OP_READ;
		assert_int_equal(end_do(&e[0], &op), 0);
		assert_int_equal(unit_pattern_check(mine + from, i, len), 0);
		assert_int_equal(mine[from - 1] | mine[from + len], 0);
	}
	ends_down(&c, e);
}

/* Up to four pieces; a message has one more, for its header */
static void pieces(void **state)
{
	struct rgate_sge s[RGATE_SGE_MAX + 1];
	struct end e[2];
	struct cluster c;
	char *a, *b;
	unsigned int n, i;

	(void)state;
	ends_up(&c, e);
	a = e[0].buf->addr;
	b = e[1].buf->addr;
	for (n = 1; n <= RGATE_SGE_MAX + 1; n++) {
		struct rgate_op op;
		uint32_t total = 0;

		for (i = 0; i < n; i++) {
			s[i] = end_sge(&e[0], 1000 * i + i, 100 * i + 1);
			memset(s[i].addr, 'A' + (int)(n + i), s[i].length);
			total += s[i].length;
		}
		op = end_op(n > RGATE_SGE_MAX ? RGATE_OP_SEND : RGATE_OP_WRITE, s, &e[1], 64);
		op.nsge = (uint16_t)n;
		assert_int_equal(end_do(&e[0], &op), 0);
		if (op.kind == RGATE_OP_SEND) {
			assert_int_equal(end_wait(&e[1]), 0);
			assert_int_equal(e[1].last.len, total);
			b = (char *)e[1].slots->addr + e[1].last.id * ENDS_SLOT - 64;
		} else {
			end_flush(&e[0], &e[1]);
		}
		for (i = 0, total = 64; i < n; total += s[i++].length)
			assert_memory_equal(b + total, s[i].addr, s[i].length);
	}
	/* scattered by a read */
	memcpy(e[1].buf->addr, "onetwothree", 11);
	for (i = 0; i < 3; i++)
		s[i] = end_sge(&e[0], 4000 + 16 * i, i < 2 ? 3 : 5);
	{
		struct rgate_op op = end_op(RGATE_OP_READ, s, &e[1], 0);

		op.nsge = 3;
		assert_int_equal(end_do(&e[0], &op), 0);
	}
	assert_memory_equal(a + 4000, "one", 3);
	assert_memory_equal(a + 4016, "two", 3);
	assert_memory_equal(a + 4032, "three", 5);
	ends_down(&c, e);
}

static void atomics(void **state)
{
	struct rgate_sge s;
	struct rgate_op op;
	struct end e[2];
	struct cluster c;
	uint64_t i, *old;

	(void)state;
	ends_up(&c, e);
	old = e[0].buf->addr;
	s = end_sge(&e[0], 0, 8);
	op = end_op(RGATE_OP_FETCH_ADD, &s, &e[1], 4096 + 8);
	for (i = 0; i < 100; i++) {
		op.operand = i;
		assert_int_equal(end_do(&e[0], &op), 0);
		assert_int_equal(*old, i * (i - 1) / 2);
	}
	assert_int_equal(end_word(&e[1], 4104), 4950);
	op.operand = ~0ULL;	/* less one: it wraps */
	assert_int_equal(end_do(&e[0], &op), 0);
	assert_int_equal(*old, 4950);
	op.kind = RGATE_OP_COMPARE_SWAP;
	op.operand = 4949;
	op.swap = 0xfedcba9876543210;
	assert_int_equal(end_do(&e[0], &op), 0);
	assert_int_equal(*old, 4949);
	assert_int_equal(end_word(&e[1], 4104), 0xfedcba9876543210);
	assert_int_equal(end_do(&e[0], &op), 0);
	assert_int_equal(*old, 0xfedcba9876543210);
	assert_int_equal(end_word(&e[1], 4104), 0xfedcba9876543210);
	assert_int_equal(end_word(&e[1], 4096) | end_word(&e[1], 4112), 0);
	ends_down(&c, e);
}

/* A batch in one post: results depend on the order, which is that of the array */
static void batch(void **state)
{
	struct rgate_prov_work w[8];
	struct rgate_sge s[8];
	struct rgate_op op[8];
	struct end e[2];
	struct cluster c;
	uint64_t *a;
	unsigned int i;

	(void)state;
	ends_up(&c, e);
	a = e[0].buf->addr;
	for (i = 0; i < 8; i++)
		s[i] = end_sge(&e[0], 8 * i, 8);
	a[0] = 5;
	op[0] = end_op(RGATE_OP_WRITE, &s[0], &e[1], 0);
	op[1] = end_op(RGATE_OP_FETCH_ADD, &s[1], &e[1], 0);
	op[1].operand = 10;
	op[2] = end_op(RGATE_OP_COMPARE_SWAP, &s[2], &e[1], 0);
	op[2].operand = 15;
	op[2].swap = 100;
	op[3] = end_op(RGATE_OP_READ, &s[3], &e[1], 0);
	/* what the read brought: without the fence this would be sent before */
	op[4] = end_op(RGATE_OP_WRITE, &s[3], &e[1], 64);
	op[4].flags = RGATE_OP_FENCE;
	op[5] = end_op(RGATE_OP_SEND, &s[2], &e[1], 0);
	op[5].flags = RGATE_OP_FENCE;
	op[6] = end_op(RGATE_OP_WRITE_IMM, &s[1], &e[1], 72);
	op[6].imm = 0xabcdef01;
	op[6].flags = RGATE_OP_FENCE;
	op[7] = end_op(RGATE_OP_WRITE_IMM, NULL, &e[1], 0);
	op[7].imm = 7;
	for (i = 0; i < 8; i++)
		w[i] = (struct rgate_prov_work){ &op[i], 50 + i, i == 7 };
	assert_int_equal(e[0].prov->post(e[0].conn, w, 8), 0);
	assert_int_equal(end_wait(&e[0]), 0);
	assert_int_equal(e[0].last.id, 57);
	end_quiet(&e[0]);
	assert_true(a[1] == 5 && a[2] == 15 && a[3] == 100);
	assert_int_equal(end_wait(&e[1]), 0);
	assert_int_equal(e[1].last.kind, RGATE_PROV_RECV);
	assert_int_equal(e[1].last.len, 8);
	assert_memory_equal((char *)e[1].slots->addr + e[1].last.id * ENDS_SLOT, &a[2], 8);
	assert_int_equal(end_wait(&e[1]), 0);
	assert_int_equal(e[1].last.kind, RGATE_PROV_RECV_IMM);
	assert_int_equal(e[1].last.imm, 0xabcdef01);
	assert_true(end_word(&e[1], 64) == 100 && end_word(&e[1], 72) == 5);
	assert_int_equal(end_wait(&e[1]), 0);
	assert_int_equal(e[1].last.imm, 7);
	ends_down(&c, e);
}

/* Only what asks for it completes, and never out of order; or when it fails */
static void signals(void **state)
{
	struct rgate_prov_work w[ENDS_SEND];
	struct rgate_op op[ENDS_SEND];
	struct rgate_sge s;
	struct end e[2];
	struct cluster c;
	unsigned int i, round;

	(void)state;
	ends_up(&c, e);
	s = end_sge(&e[0], 0, 100);
	for (round = 0; round < 50; round++) {
		const unsigned int n = 1 + round % (ENDS_SEND - 1);

		for (i = 0; i < n; i++) {
			op[i] = end_op(RGATE_OP_WRITE, &s, &e[1], 128 * i);
			w[i] = (struct rgate_prov_work){ &op[i], round * 1000 + i,
							 i % 3 == 2 || i + 1 == n };
		}
		assert_int_equal(e[0].prov->post(e[0].conn, w, n), 0);
		for (i = 0; i < n; i++) {
			if (!w[i].signal)
				continue;
			assert_int_equal(end_wait(&e[0]), 0);
			assert_int_equal(e[0].last.id, w[i].id);
		}
	}
	end_quiet(&e[0]);
	op[0] = end_op(RGATE_OP_WRITE, &s, &e[1], 0);
	op[0].rkey ^= 0x700700;
	w[0] = (struct rgate_prov_work){ &op[0], 77, false };
	assert_int_equal(e[0].prov->post(e[0].conn, w, 1), 0);
	assert_int_equal(end_wait(&e[0]), -EREMOTEIO);
	assert_int_equal(e[0].last.id, 77);
	ends_down(&c, e);
}

/* Takes what has come to an end at the sender: how many more */
static unsigned int sent(struct end *e)
{
	unsigned int n = 0;

	while (e->prov->poll(e->conn, &e->last, 1) == 1) {
		assert_int_equal(e->last.status, 0);
		assert_int_equal(e->last.kind, RGATE_PROV_SENT);
		n++;
	}
	return n;
}

/*
 * Messages to one who does not look: each that was taken comes, and no other. Of devices the
 * fabric asks no such thing, as peers have credits; Soft-RoCE gives up waiting for a receive.
 */
static void unheard(void **state)
{
	const char *provider = getenv("RGATE_FABRIC_PROVIDER");
	unsigned int in = 0, out = 0, got = 0, looks = 0;
	struct rgate_sge s;
	struct rgate_op op;
	struct end e[2];
	struct cluster c;

	(void)state;
	if (provider && strcmp(provider, "local"))
		unit_skip("a device waits for a receive, or gives up");
	ends_up(&c, e);
	s = end_sge(&e[0], 0, 2000);
	op = end_op(RGATE_OP_SEND, &s, &e[1], 0);
	while (in < 4000 && looks < 20) {
		const int err = end_post(&e[0], &op, in);

		if (err)
			assert_int_equal(err, -EAGAIN);
		else
			in++;
		out += sent(&e[0]);
		looks = err ? looks + 1 : 0;
		if (err)
			nodes_nap();
	}
	assert_true(in > ENDS_RECV && in < 4000);
	while (got < in) {
		assert_int_equal(end_wait(&e[1]), 0);
		assert_int_equal(e[1].last.len, 2000);
		got++;
		assert_int_equal(e[1].prov->recv(e[1].conn, e[1].last.id,
						 (char *)e[1].slots->addr +
						 e[1].last.id * ENDS_SLOT,
						 ENDS_SLOT, e[1].slots->lkey), 0);
		out += sent(&e[0]);
	}
	wait_for((out += sent(&e[0])) == in);
	end_quiet(&e[1]);
	ends_down(&c, e);
}

/* As many as were asked for are taken, then none until completions were; none is lost */
static void full(void **state)
{
	struct rgate_prov_work w[ENDS_SEND];
	unsigned int i, in = 0, out = 0;
	struct rgate_op op;
	struct rgate_sge s;
	struct end e[2];
	struct cluster c;

	(void)state;
	ends_up(&c, e);
	s = end_sge(&e[0], 0, 2000);
	op = end_op(RGATE_OP_WRITE, &s, &e[1], 0);
	while (!end_post(&e[0], &op, in) && in < 1000)
		in++;
	assert_int_equal(in, ENDS_SEND);
	assert_int_equal(end_post(&e[0], &op, in), -EAGAIN);
	while (out < 4) {
		assert_int_equal(end_wait(&e[0]), 0);
		assert_int_equal(e[0].last.id, out++);
	}
	/* all or none */
	for (i = 0; i < 8; i++)
		w[i] = (struct rgate_prov_work){ &op, in + i, true };
	assert_int_equal(e[0].prov->post(e[0].conn, w, 8), -EAGAIN);
	assert_int_equal(e[0].prov->post(e[0].conn, w, 4), 0);
	for (in += 4; out < in; out++) {
		assert_int_equal(end_wait(&e[0]), 0);
		assert_int_equal(e[0].last.id, out);
	}
	end_quiet(&e[0]);
	/* receives, too */
	assert_int_equal(e[0].prov->recv(e[0].conn, 99, e[0].slots->addr, ENDS_SLOT,
					 e[0].slots->lkey) < 0, 1);
	ends_down(&c, e);
}

#define TURNS	400

static void *writer(void *arg)
{
	struct end *e = arg;
	struct rgate_sge s[2] = { end_sge(&e[0], 0, 9000), end_sge(&e[0], 16384, 8) };
	uint64_t *seq = s[1].addr;
	struct rgate_prov_work w[2];
	struct rgate_op op[2];
	unsigned int i, turns = unit_rounds(TURNS);

	for (i = 1; i <= turns; i++) {
		unit_pattern(s[0].addr, i, 9000);
		*seq = i;
		op[0] = end_op(RGATE_OP_WRITE, &s[0], &e[1], 100);
		op[1] = end_op(RGATE_OP_WRITE, &s[1], &e[1], 16384);
		w[0] = (struct rgate_prov_work){ &op[0], 2 * i, false };
		w[1] = (struct rgate_prov_work){ &op[1], 2 * i + 1, true };
		unit_require(!e[0].prov->post(e[0].conn, w, 2));
		unit_require(!end_wait(&e[0]));
		/* it says that it has looked */
		while (end_word(&e[0], 32768) != i)
			;
	}
	return NULL;
}

/* Who polls a word that was written later sees what was written before it */
static void order(void **state)
{
	unsigned int i, turns = unit_rounds(TURNS);
	struct end e[2];
	struct cluster c;
	pthread_t th;
	uint64_t *ack;

	(void)state;
	unit_not_for_tsan("the memory is mapped twice");
	ends_up(&c, e);
	ack = (uint64_t *)((char *)e[0].buf->addr + 32768);
	assert_int_equal(pthread_create(&th, NULL, writer, e), 0);
	for (i = 1; i <= turns; i++) {
		wait_for(end_word(&e[1], 16384) == i);
		assert_int_equal(unit_pattern_check((char *)e[1].buf->addr + 100, i, 9000), 0);
		__atomic_store_n(ack, i, __ATOMIC_RELEASE);
	}
	pthread_join(th, NULL);
	/* a notice after its own bytes and those before it */
	for (i = 0; i < ENDS_RECV; i++) {
		struct rgate_sge s[2] = { end_sge(&e[0], 0, 5000), end_sge(&e[0], 5000, 5000) };
		struct rgate_op op = end_op(RGATE_OP_WRITE, &s[0], &e[1], 0);

		unit_pattern(s[0].addr, i, 10000);
		assert_int_equal(end_post(&e[0], &op, 1), 0);
		op = end_op(RGATE_OP_WRITE_IMM, &s[1], &e[1], 5000);
		op.imm = i;
		assert_int_equal(end_post(&e[0], &op, 2), 0);
		assert_int_equal(end_wait(&e[1]), 0);
		assert_int_equal(e[1].last.imm, i);
		assert_int_equal(unit_pattern_check(e[1].buf->addr, i, 10000), 0);
		assert_int_equal(end_wait(&e[0]), 0);
		assert_int_equal(end_wait(&e[0]), 0);
	}
	ends_down(&c, e);
}

static void sleep_until(struct end *e)
{
	struct pollfd p = { e->prov->conn_fd(e->conn), POLLIN, 0 };

	assert_int_equal(poll(&p, 1, MS), 1);
}

/* After arm() whatever comes wakes a sleeper: completions, messages, the end */
static void woken(void **state)
{
	struct rgate_sge s;
	struct rgate_op op;
	struct end e[2];
	struct cluster c;
	unsigned int i;

	(void)state;
	ends_up(&c, e);
	s = end_sge(&e[0], 0, 500000);
	op = end_op(RGATE_OP_WRITE, &s, &e[1], 0);
	for (i = 0; i < 20; i++) {
		assert_true(e[0].prov->arm(e[0].conn) >= 0);
		assert_int_equal(e[0].prov->poll(e[0].conn, &e[0].last, 1), 0);
		assert_int_equal(end_post(&e[0], &op, i), 0);
		while (!e[0].prov->poll(e[0].conn, &e[0].last, 1)) {
			assert_true(e[0].prov->arm(e[0].conn) >= 0);
			if (!e[0].prov->poll(e[0].conn, &e[0].last, 1))
				sleep_until(&e[0]);
			else
				break;
		}
		assert_int_equal(e[0].last.status, 0);
		assert_int_equal(e[0].last.id, i);
	}
	s.length = 10;
	op = end_op(RGATE_OP_SEND, &s, &e[1], 0);
	for (i = 0; i < ENDS_RECV; i++) {
		assert_true(e[1].prov->arm(e[1].conn) >= 0);
		assert_int_equal(e[1].prov->poll(e[1].conn, &e[1].last, 1), 0);
		assert_int_equal(end_post(&e[0], &op, i), 0);
		sleep_until(&e[1]);
		assert_int_equal(end_wait(&e[1]), 0);
		assert_int_equal(e[1].last.len, 10);
		assert_int_equal(end_wait(&e[0]), 0);
	}
	ends_down(&c, e);
}

/* A message longer than the receive is for nobody, and costs the connection */
static void too_long(void **state)
{
	struct rgate_sge s;
	struct rgate_op op;
	struct end e[2];
	struct cluster c;
	int err;

	(void)state;
	ends_up(&c, e);
	s = end_sge(&e[0], 0, ENDS_SLOT);
	op = end_op(RGATE_OP_SEND, &s, &e[1], 0);
	assert_int_equal(end_do(&e[0], &op), 0);
	assert_int_equal(end_wait(&e[1]), 0);
	assert_int_equal(e[1].last.len, ENDS_SLOT);
	s.length++;
	assert_int_equal(end_post(&e[0], &op, 1), 0);
	err = end_wait(&e[1]);
	assert_true(err < 0);
	/* the sender finds out by then, at the latest */
	while (!(err = end_wait(&e[0])))
		(void)end_post(&e[0], &op, 2);
	assert_true(err < 0);
	ends_down(&c, e);
}

/* The peer's end goes: it is told, what is outstanding ends, nothing more is taken */
static void ended(void **state)
{
	struct rgate_prov_event ev;
	struct rgate_sge s;
	struct rgate_op op;
	struct end e[2];
	struct cluster c;
	int err;

	(void)state;
	ends_open(&c, e, 2000);
	ends_connect(e, RGATE_ACCESS_REMOTE);
	s = end_sge(&e[0], 0, 8);
	op = end_op(RGATE_OP_SEND, &s, &e[1], 0);
	assert_int_equal(end_do(&e[0], &op), 0);
	e[1].prov->destroy(e[1].conn);
	e[1].conn = NULL;
	end_event(&e[0], RGATE_PROV_DOWN, &ev);
	assert_ptr_equal(ev.conn, e[0].conn);
	assert_int_equal(ev.err, -ECONNRESET);
	err = end_post(&e[0], &op, 3);
	assert_true(!err || err == -ENOTCONN);
	if (!err)
		assert_true(end_wait(&e[0]) < 0);
	e[0].prov->destroy(e[0].conn);
	e[0].conn = NULL;
	assert_false(end_any_event(&e[0], &ev));
	ends_connect(e, RGATE_ACCESS_REMOTE);
	assert_int_equal(end_do(&e[0], &op), 0);
	ends_down(&c, e);
}

static void churn(void **state)
{
	unsigned int i, files = 0;
	struct end e[2];
	struct cluster c;

	(void)state;
	ends_up(&c, e);
	for (i = 0; i < unit_rounds(100); i++) {
		struct rgate_prov_event ev;
		const unsigned int first = i % 2;

		e[first].prov->destroy(e[first].conn);
		e[first].conn = NULL;
		end_event(&e[!first], RGATE_PROV_DOWN, &ev);
		e[!first].prov->destroy(e[!first].conn);
		e[!first].conn = NULL;
		if (!i)
			files = open_files();
		else
			wait_for(open_files() <= files);
		ends_connect(e, RGATE_ACCESS_REMOTE);
		end_flush(&e[first], &e[!first]);
	}
	ends_down(&c, e);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(handshake),
	cmocka_unit_test(rejected),
	cmocka_unit_test(transfers),
	cmocka_unit_test(pieces),
	cmocka_unit_test(atomics),
	cmocka_unit_test(batch),
	cmocka_unit_test(signals),
	cmocka_unit_test(full),
	cmocka_unit_test(unheard),
	cmocka_unit_test(order),
	cmocka_unit_test(woken),
	cmocka_unit_test(too_long),
	cmocka_unit_test(ended),
	cmocka_unit_test(churn),
};

UNIT_MAIN(tests)
