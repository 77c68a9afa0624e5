// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Memory of other nodes, with one that answers when the test says so: late, out of step, over
 * another connection, not at all, or with lies.
 */
#include "req_bed.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "memory_service.h"
#include "memory_wire.h"
#include "other.h"

#define ALL	RGATE_MEMORY_RIGHTS

#define NAME	0U		/* in a client's page */
#define FROM	64U		/* bytes of it: */
#define SHORT	1000U		/* 6 pieces */
#define LONG	4000U		/* 21 of them: more than are under way */
#define PIECES	16U

/* ---- The bed ---- */

static struct rgate_engine *e;
static struct memory_service *sv;
static struct client a;
static uint32_t handle;		/* of what the other node has */

static void turn(void)
{
	bed_run(e);
	(void)o.hub.asks.tick(o.hub.ctx);
	bed_run(e);
}

static bool speaks(void *ctx, uint32_t node, uid_t uid)
{
	assert_ptr_equal(ctx, &o);
	assert_int_equal(node, OTHER);
	return o.may && uid != 13;
}

static void make(uint32_t silence_ms)
{
	const struct memory_opts opts = RGATE_OPTS(memory_opts, .hub = HUB, .may = speaks,
						   .ctx = &o, .silence_ms = silence_ms);

	other_init(RGATE_SERVICE_MEMORY);
	e = bed_engine();
	assert_int_equal(memory_service_create(&sv, &opts), 0);
	assert_int_equal(memory_service_add(sv, e), 0);
	client_new(&a, e, 1);
	other_comes_up(7);
}

static int unmake(void **state)
{
	(void)state;
	rgate_engine_destroy(e);
	memory_service_destroy(sv);
	client_close(&a);
	return 0;
}

#define submit(op_, ...) \
	client_submit(&a, (struct rgate_request){ .op = (op_), .cookie = 1, ##__VA_ARGS__ })

static int result_of(uint64_t cookie, uint64_t *value)
{
	struct rgate_completion done;

	turn();
	assert_true(client_poll(&a, &done));
	assert_int_equal(done.cookie, cookie);
	if (value)
		*value = done.value;
	return done.result;
}

static bool is_quiet(void)
{
	struct rgate_completion done;

	turn();
	return !client_poll(&a, &done);
}

/* The question as the node reads it */
static struct memory_question question(unsigned int i)
{
	struct memory_question q;

	assert_true(i < o.peer.asked.n);
	assert_int_equal(o.peer.asked.m[i].data[0], RGATE_SERVICE_MEMORY);
	assert_int_equal(memory_question_get(&q, o.peer.asked.m[i].data, o.peer.asked.m[i].len), 0);
	return q;
}

static void say(const struct memory_result *r)
{
	unsigned char msg[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));
	const size_t len = memory_answer_put(msg, r);

	assert_int_equal(msg[0], RGATE_SERVICE_MEMORY | RGATE_SERVICE_ASKER);
	o.hub.asks.message(o.hub.ctx, OTHER, msg, len);
}

static uint8_t pattern(uint64_t at)
{
	return (uint8_t)(at * 7 + 3);
}

/* As a node that has the memory answers */
static struct memory_result right(unsigned int i)
{
	static unsigned char data[MEMORY_PIECE];
	const struct memory_question q = question(i);
	struct memory_result r = { .number = q.number, .op = q.a.op };
	uint32_t at;

	if (q.a.op == MEMORY_OPEN) {
		r.region = 99;
		r.value = LONG;
	}
	if (q.a.op == MEMORY_READ) {
		for (at = 0; at < q.a.len; at++)
			data[at] = pattern(q.a.off + at);
		r.len = q.a.len;
		r.data = data;
	}
	return r;
}

static void answer(unsigned int i)
{
	const struct memory_result r = right(i);

	say(&r);
}

static void submit_open(void)
{
	strcpy((char *)a.mem + NAME, "part");
	submit(RGATE_REQ_MEMORY_OPEN, .a0 = OTHER, .len = 4,
	       .a1 = RGATE_MEMORY_OPEN_A1(5, ALL));
	turn();
}

static void opened(void)
{
	struct memory_question q;
	uint64_t value;

	submit_open();
	assert_int_equal(o.peer.asked.n, 1);
	q = question(0);
	assert_int_equal(q.a.op, MEMORY_OPEN);
	assert_int_equal(q.a.uid, 1);
	assert_int_equal(q.owner, 5);
	assert_int_equal(q.rights, ALL);
	assert_string_equal(q.name, "part");
	assert_true(is_quiet());
	answer(0);
	assert_int_equal(result_of(1, &value), 0);
	assert_int_equal(RGATE_MEMORY_LENGTH(value), LONG);
	handle = RGATE_MEMORY_HANDLE(value);
	o.peer.asked.n = 0;
}

static int setup(void **state)
{
	(void)state;
	make(0);
	opened();
	return 0;
}

static void submit_read(uint64_t cookie, uint32_t len)
{
	client_submit(&a, (struct rgate_request){
		.op = RGATE_REQ_MEMORY_READ, .cookie = cookie, .handle = handle, .off = FROM,
		.len = len });
	turn();
}

static void submit_write(uint64_t cookie, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		a.mem[FROM + i] = pattern(i);
	client_submit(&a, (struct rgate_request){
		.op = RGATE_REQ_MEMORY_WRITE, .cookie = cookie, .handle = handle, .off = FROM,
		.len = len });
	turn();
}

static void submit_add(uint64_t cookie)
{
	client_submit(&a, (struct rgate_request){
		.op = RGATE_REQ_MEMORY_FETCH_ADD, .cookie = cookie, .handle = handle, .a0 = 8,
		.a1 = 5 });
	turn();
}

/* ---- Who asks ---- */

/* The last piece first; all of them belong to the request's own bytes */
static void out_of_step(void **state)
{
	const unsigned int n = (SHORT + MEMORY_PIECE - 1) / MEMORY_PIECE;
	unsigned int i;

	(void)state;
	submit_read(2, SHORT);
	assert_int_equal(o.peer.asked.n, n);
	for (i = n; i--;) {
		assert_true(is_quiet());
		answer(i);
	}
	assert_int_equal(result_of(2, NULL), 0);
	for (i = 0; i < SHORT; i++)
		assert_int_equal(a.mem[FROM + i], pattern(i));
	assert_int_equal(a.mem[FROM + SHORT], 0);
	/* nobody asked for more of it */
	answer(0);
	assert_true(is_quiet());
}

/* A long one has so many pieces under way, and does not hold up what comes after it. */
static void turns(void **state)
{
	struct memory_question q;
	unsigned int i, bytes = 0, adds = 0;
	bool done = false;

	(void)state;
	submit_write(2, LONG);
	submit_add(3);
	assert_int_equal(o.peer.asked.n, PIECES);
	for (i = 0; i < o.peer.asked.n; i++) {
		q = question(i);
		if (q.a.op == MEMORY_FETCH_ADD) {
			assert_int_equal(q.a.operand, 5);
			assert_int_equal(q.a.off, 8);
			adds++;
		} else {
			assert_int_equal(q.a.op, MEMORY_WRITE);
			assert_int_equal(q.a.off, bytes);
			assert_memory_equal(q.a.data, a.mem + FROM + bytes, q.a.len);
			bytes += q.a.len;
			done = done || (adds && bytes == LONG);
		}
		answer(i);
		turn();
	}
	assert_int_equal(bytes, LONG);
	assert_int_equal(adds, 1);
	/* it was asked before the last of the other */
	assert_true(done);
	assert_int_equal(result_of(3, NULL), 0);
	assert_int_equal(result_of(2, NULL), 0);
}

/* Users have turns, whatever each has to ask. */
static void users_turns(void **state)
{
	static struct client b;
	unsigned int i, before;
	bool asked = false;

	(void)state;
	for (i = 0; i < 20; i++)
		submit_write(2 + i, LONG);
	assert_int_equal(o.peer.asked.n, PIECES);
	client_new(&b, e, 2);
	strcpy((char *)b.mem + NAME, "part");
	client_submit(&b, (struct rgate_request){
		.op = RGATE_REQ_MEMORY_OPEN, .cookie = 1, .a0 = OTHER, .off = NAME, .len = 4,
		.a1 = RGATE_MEMORY_OPEN_A1(5, ALL) });
	turn();
	before = o.peer.asked.n;
	for (i = 0; i < 2; i++) {
		answer(i);
		turn();
	}
	for (i = before; i < o.peer.asked.n; i++)
		asked = asked || question(i).a.uid == 2;
	assert_true(asked);
	rgate_seat_remove(b.seat);
	turn();
	client_close(&b);
}

/* What waits for room is sent when there is some. */
static void wire_full(void **state)
{
	(void)state;
	o.peer.full = true;
	submit_add(2);
	assert_int_equal(o.peer.asked.n, 0);
	assert_true(o.hub.asks.tick(o.hub.ctx) >= 0);
	o.peer.full = false;
	assert_true(is_quiet());
	assert_int_equal(o.peer.asked.n, 1);
	answer(0);
	assert_int_equal(result_of(2, NULL), 0);
}

/* The same questions over the next connection: the node knows which it has carried out. */
static void asked_again(void **state)
{
	struct memory_result first;
	uint64_t number, value;

	(void)state;
	submit_add(2);
	number = question(0).number;
	first = right(0);
	other_goes_down();
	/* what the last connection has brought is not for this one */
	first.value = 1000;
	say(&first);
	assert_true(is_quiet());
	o.peer.asked.n = 0;
	other_comes_up(7);
	assert_true(is_quiet());
	assert_int_equal(o.peer.asked.n, 1);
	assert_int_equal(question(0).number, number);
	first.value = 44;
	say(&first);
	assert_int_equal(result_of(2, &value), 0);
	assert_int_equal(value, 44);
}

/* Another process: whether it was done nobody knows; what does no harm is asked anew. */
static void other_process(void **state)
{
	struct memory_result gone = { .err = -ESTALE, .op = MEMORY_READ };

	(void)state;
	submit_add(2);
	submit_read(3, 8);
	other_goes_down();
	submit_add(4);
	o.peer.asked.n = 0;
	other_comes_up(8);
	assert_int_equal(result_of(2, NULL), -ECONNRESET);
	turn();
	assert_int_equal(o.peer.asked.n, 2);
	gone.number = question(0).number;
	gone.op = question(0).a.op;
	say(&gone);
	gone.number = question(1).number;
	say(&gone);
	assert_int_equal(result_of(gone.op == MEMORY_READ ? 3 : 4, NULL), -ESTALE);
	assert_int_equal(result_of(gone.op == MEMORY_READ ? 4 : 3, NULL), -ESTALE);
}

/* One piece fails: no more are asked, and the end is that of the last one under way. */
static void piece_fails(void **state)
{
	struct memory_result bad = { .err = -ESTALE, .op = MEMORY_WRITE };
	unsigned int i;

	(void)state;
	submit_write(2, LONG);
	bad.number = question(3).number;
	say(&bad);
	turn();
	assert_int_equal(o.peer.asked.n, PIECES);
	for (i = 0; i < PIECES; i++) {
		if (i == 3)
			continue;
		assert_true(is_quiet());
		answer(i);
	}
	assert_int_equal(result_of(2, NULL), -ESTALE);
	assert_int_equal(o.peer.asked.n, PIECES);
}

/* What was cancelled writes nothing any more, and its places come back with the answers. */
static void cancelled(void **state)
{
	struct rgate_completion done;
	unsigned int i, n;

	(void)state;
	submit_read(2, LONG);
	client_submit(&a, (struct rgate_request){ .op = RGATE_REQ_CANCEL, .cookie = 9, .a0 = 2 });
	turn();
	for (i = 0; i < 2; i++) {
		assert_true(client_poll(&a, &done));
		assert_int_equal(done.result, done.cookie == 2 ? -ECANCELED : 0);
	}
	submit_add(3);
	assert_int_equal(o.peer.asked.n, PIECES);
	for (i = 0; i < PIECES; i++)
		answer(i);
	turn();
	for (i = 0; i < LONG; i++)
		assert_int_equal(a.mem[FROM + i], 0);
	n = o.peer.asked.n;
	assert_int_equal(n, PIECES + 1);
	answer(n - 1);
	assert_int_equal(result_of(3, NULL), 0);
}

static void session_ends(void **state)
{
	static struct client c;
	unsigned int i;

	(void)state;
	client_new(&c, e, 2);
	strcpy((char *)c.mem, "part");
	client_submit(&c, (struct rgate_request){
		.op = RGATE_REQ_MEMORY_OPEN, .a0 = OTHER, .len = 4,
		.a1 = RGATE_MEMORY_OPEN_A1(5, ALL) });
	turn();
	submit_read(2, SHORT);
	rgate_seat_remove(c.seat);
	turn();
	assert_int_equal(c.over, 1);
	client_close(&c);
	for (i = 0; i < o.peer.asked.n; i++)
		answer(i);
	assert_int_equal(result_of(2, NULL), 0);
}

/* ---- A node that says nothing ---- */

static int result_in_time(uint64_t cookie)
{
	struct rgate_completion done;

	do {
		turn();
		usleep(1000);
	} while (!client_poll(&a, &done));
	assert_int_equal(done.cookie, cookie);
	return done.result;
}

static void silent(void **state)
{
	(void)state;
	make(20);
	other_goes_down();
	submit_open();
	assert_int_equal(result_in_time(1), -ENOTCONN);
	assert_int_equal(o.peer.asked.n, 0);
	other_comes_up(7);
	submit_open();
	assert_int_equal(result_in_time(1), -ETIMEDOUT);
	assert_int_equal(o.peer.asked.n, 1);
	/* too late */
	answer(0);
	assert_true(is_quiet());
}

/* Of what a user may have a handle is taken as long as its node is asked, and no longer. */
static void over_quota(void **state)
{
	struct rgate_limits lim;
	struct memory_result r;

	(void)state;
	make(0);
	rgate_limits_init(&lim);
	lim.handles = 1;
	assert_int_equal(rgate_engine_limits(e, 1, &lim), 0);
	submit_open();
	client_submit(&a, (struct rgate_request){
		.op = RGATE_REQ_MEMORY_OPEN, .cookie = 5, .a0 = OTHER, .len = 4,
		.a1 = RGATE_MEMORY_OPEN_A1(5, ALL) });
	assert_int_equal(result_of(5, NULL), -EDQUOT);
	r = right(0);
	r.err = -ENOENT;
	say(&r);
	assert_int_equal(result_of(1, NULL), -ENOENT);
	o.peer.asked.n = 0;
	opened();
}

/* ---- Lies ---- */

static void refuse_open(struct memory_result r, int result)
{
	submit_open();
	r.number = question(0).number;
	say(&r);
	assert_int_equal(result_of(1, NULL), result);
	o.peer.asked.n = 0;
}

static void lies_of_open(void **state)
{
	const struct memory_result good = { .op = MEMORY_OPEN, .region = 1, .value = 1 };
	struct memory_result r = good;

	(void)state;
	r.region = 0;
	refuse_open(r, -EPROTO);
	r = good;
	r.value = 0;
	refuse_open(r, -EPROTO);
	r.value = 1ULL << 32;
	refuse_open(r, -EPROTO);
	r = good;
	r.op = MEMORY_READ;
	refuse_open(r, -EPROTO);
	r = good;
	r.err = -4096;
	refuse_open(r, -EIO);
	r.err = 1;
	refuse_open(r, -EIO);
	r.err = -EACCES;
	refuse_open(r, -EACCES);
	refuse_open(good, 0);
}

static void lies_of_read(void **state)
{
	unsigned char data[MEMORY_PIECE];
	struct memory_result r = { .op = MEMORY_READ, .data = data };
	unsigned char msg[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));
	unsigned int i;
	size_t len;

	(void)state;
	memset(data, 0xff, sizeof(data));
	for (i = 0; i < 3; i++) {
		submit_read(2, 100);
		r.number = question(0).number;
		r.len = i == 0 ? 0 : i == 1 ? 99 : 101;
		say(&r);
		assert_int_equal(result_of(2, NULL), -EPROTO);
		o.peer.asked.n = 0;
	}
	assert_int_equal(a.mem[FROM], 0);
	/* what is no answer at all, or not to this, changes nothing */
	submit_read(2, 100);
	r = right(0);
	len = memory_answer_put(msg, &r);
	for (i = 0; i < len; i++)
		o.hub.asks.message(o.hub.ctx, OTHER, msg, i);
	o.hub.asks.message(o.hub.ctx, OTHER, msg, len + 1);
	msg[3] = 1;
	o.hub.asks.message(o.hub.ctx, OTHER, msg, len);
	r.number += 16;
	say(&r);
	r.number += 1;
	say(&r);
	assert_true(is_quiet());
	/* an older one says so, however long it goes on */
	msg[1] = MEMORY_VERSION + 1;
	o.hub.asks.message(o.hub.ctx, OTHER, msg, len + 9);
	assert_int_equal(result_of(2, NULL), -EPROTONOSUPPORT);
	assert_int_equal(a.mem[FROM], 0);
}

/* ---- Who is asked ---- */

static uint64_t last_number;

static struct memory_result ask_us(struct memory_question q)
{
	unsigned char msg[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));
	struct memory_result r = { .err = 1 };
	size_t len;

	q.number = last_number;
	o.peer.said.n = 0;
	len = memory_question_put(msg, &q);
	o.hub.serves.message(o.hub.ctx, OTHER, msg, len);
	if (o.peer.said.n) {
		assert_int_equal(o.peer.said.n, 1);
		assert_int_equal(memory_answer_get(&r, o.peer.said.m[0].data,
						   o.peer.said.m[0].len), 0);
		assert_int_equal(r.number, q.number);
	}
	return r;
}

static uint64_t exported(uint32_t mode)
{
	struct memory_question q = {
		.a = { .op = MEMORY_OPEN, .uid = 2 }, .owner = 1, .rights = ALL, .name = "mine",
	};
	struct memory_result r;

	strcpy((char *)a.mem + NAME, "mine");
	submit(RGATE_REQ_MEMORY_EXPORT, .off = 512, .len = 512, .a0 = NAME,
	       .a1 = RGATE_MEMORY_EXPORT_A1(mode, 4));
	assert_int_equal(result_of(1, NULL), 0);
	last_number = 16;
	r = ask_us(q);
	assert_int_equal(r.err, 0);
	assert_int_equal(r.value, 512);
	assert_int_equal(r.op, MEMORY_OPEN);
	return r.region;
}

static void once(void **state)
{
	struct memory_question q = { .a = { .op = MEMORY_FETCH_ADD, .uid = 2, .operand = 3 } };

	(void)state;
	q.a.region = exported(RGATE_MEMORY_MODE(0, ALL));
	last_number = 32;
	assert_int_equal(ask_us(q).value, 0);
	assert_int_equal(ask_us(q).value, 0);
	other_goes_down();
	assert_int_equal(ask_us(q).err, 1);
	other_comes_up(7);
	assert_int_equal(ask_us(q).value, 0);
	assert_int_equal(a.mem[512], 3);
	/* an old one is nobody's */
	last_number = 16;
	assert_int_equal(ask_us(q).err, 1);
	last_number = 48;
	assert_int_equal(ask_us(q).value, 3);
	/* another process counts from its begin */
	other_goes_down();
	other_comes_up(8);
	last_number = 16;
	assert_int_equal(ask_us(q).value, 6);
	/* of a connection that the hub does not know yet */
	o.peer.hub_epoch--;
	last_number = 32;
	assert_int_equal(ask_us(q).err, 1);
	assert_int_equal(a.mem[512], 9);
}

static void said_later(void **state)
{
	struct memory_question q = { .a = { .op = MEMORY_FETCH_ADD, .uid = 2, .operand = 3 } };
	struct memory_result r;

	(void)state;
	q.a.region = exported(RGATE_MEMORY_MODE(0, ALL));
	o.peer.send_full = true;
	last_number = 33;
	assert_int_equal(ask_us(q).err, 1);
	assert_true(o.hub.asks.tick(o.hub.ctx) >= 0);
	o.peer.send_full = false;
	(void)o.hub.asks.tick(o.hub.ctx);
	assert_int_equal(o.peer.said.n, 1);
	assert_int_equal(memory_answer_get(&r, o.peer.said.m[0].data, o.peer.said.m[0].len), 0);
	assert_int_equal(r.number, 33);
	assert_int_equal(r.err, 0);
	(void)o.hub.asks.tick(o.hub.ctx);
	assert_int_equal(o.peer.said.n, 1);
}

/* By whom it is asked, and for what */
static void decided_each_time(void **state)
{
	unsigned char data[MEMORY_PIECE] = "hello";
	struct memory_question q = { .a = { .op = MEMORY_WRITE, .uid = 2, .len = 5,
					    .data = data } };
	struct memory_result r;

	(void)state;
	q.a.region = exported(RGATE_MEMORY_MODE(0, ALL));
	last_number = 32;
	assert_int_equal(ask_us(q).err, 0);
	assert_memory_equal(a.mem + 512, "hello", 5);
	q.a.op = MEMORY_READ;
	last_number += 16;
	r = ask_us(q);
	assert_int_equal(r.len, 5);
	assert_memory_equal(r.data, "hello", 5);
	q.a.off = 508;
	last_number += 16;
	r = ask_us(q);
	assert_int_equal(r.err, -ERANGE);
	assert_int_equal(r.len, 0);
	q.a.off = 0;
	q.a.uid = 13;
	last_number += 16;
	assert_int_equal(ask_us(q).err, -EACCES);
	q.a.uid = 1;
	last_number += 16;
	assert_int_equal(ask_us(q).err, -EACCES);
	q.a.uid = 2;
	o.may = false;
	last_number += 16;
	assert_int_equal(ask_us(q).err, -EACCES);
	o.may = true;
	q.a.region ^= 1;
	last_number += 16;
	assert_int_equal(ask_us(q).err, -ESTALE);
}

static void malformed(void **state)
{
	const struct memory_question q = {
		.number = 32, .a = { .op = MEMORY_OPEN, .uid = 2 }, .owner = 1, .rights = ALL,
		.name = "mine",
	};
	unsigned char msg[RGATE_HUB_MSG_MAX + 8] __attribute__((aligned(8)));
	struct memory_question got;
	const size_t len = memory_question_put(msg, &q);
	size_t i;

	(void)state;
	for (i = 0; i < len; i++)
		assert_int_equal(memory_question_get(&got, msg, i), -EPROTO);
	assert_int_equal(memory_question_get(&got, msg, len + 1), -EPROTO);
	assert_int_equal(memory_question_get(&got, msg, len), 0);
	msg[3] = 1;
	assert_int_equal(memory_question_get(&got, msg, len), -EPROTO);
	msg[3] = 0;
	msg[32] = 193;		/* len */
	assert_int_equal(memory_question_get(&got, msg, sizeof(struct memory_ask) + 193), -EPROTO);
	msg[32] = 4;
	msg[len - 1] = 0;
	assert_int_equal(memory_question_get(&got, msg, len), -EINVAL);
	msg[2] = MEMORY_FLUSH + 1;
	assert_int_equal(memory_question_get(&got, msg, len), -EOPNOTSUPP);
	assert_int_equal(got.number, 32);
	msg[2] = 0;
	assert_int_equal(memory_question_get(&got, msg, len), -EOPNOTSUPP);
	msg[1] = 2;
	assert_int_equal(memory_question_get(&got, msg, len), -EPROTONOSUPPORT);
	/* who can be answered is */
	o.peer.said.n = 0;
	o.hub.serves.message(o.hub.ctx, OTHER, msg, len);
	assert_int_equal(o.peer.said.n, 1);
	o.hub.serves.message(o.hub.ctx, OTHER, msg, 3);
	o.hub.serves.message(o.hub.ctx, SELF, msg, len);
	assert_int_equal(o.peer.said.n, 1);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, unmake)

static const struct CMUnitTest tests[] = {
	BED(out_of_step),
	BED(turns), BED(users_turns),
	BED(wire_full),
	BED(asked_again),
	BED(other_process),
	BED(piece_fails),
	BED(cancelled),
	BED(session_ends),
	cmocka_unit_test_teardown(silent, unmake),
	cmocka_unit_test_teardown(over_quota, unmake),
	BED(lies_of_open),
	BED(lies_of_read),
	BED(once),
	BED(said_later),
	BED(decided_each_time),
	BED(malformed),
};

UNIT_MAIN_ALONE(tests)
