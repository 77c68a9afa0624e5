// SPDX-License-Identifier: MIT OR GPL-2.0
/* The engine, turn by turn: what requests end with, in which order, and what users may have. */
#include "req_bed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static struct rgate_engine *e;
static struct client a, b;

/* A turn looks for what is there, and leaves it to the caller to wait. */
int __real_epoll_wait(int ep, struct epoll_event *ev, int n, int ms);
int __wrap_epoll_wait(int ep, struct epoll_event *ev, int n, int ms);

int __wrap_epoll_wait(int ep, struct epoll_event *ev, int n, int ms)
{
	unit_require(!ms);
	return __real_epoll_wait(ep, ev, n, ms);
}

static int setup(void **state)
{
	(void)state;
	e = bed_engine();
	client_new(&a, e, 1);
	client_new(&b, e, 2);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	/* what a test that failed has left */
	while (late.n)
		late_end(rgate_req_get(late.held[0])->cookie, 0, 0);
	rgate_engine_destroy(e);
	client_close(&a);
	client_close(&b);
	return 0;
}

static struct rgate_engine_stats stats(void)
{
	struct rgate_engine_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_engine_stats(e, &st), 0);
	return st;
}

/* The next completion is this one's */
static void expect(struct client *c, uint64_t cookie, int result)
{
	struct rgate_completion done;

	bed_run(e);
	assert_true(client_poll(c, &done));
	assert_int_equal(done.cookie, cookie);
	assert_int_equal(done.result, result);
	assert_int_equal(done.flags, 0);
}

static void expect_none(struct client *c)
{
	struct rgate_completion done;

	bed_run(e);
	assert_false(client_poll(c, &done));
}

static uint64_t value_of(struct client *c, struct rgate_request q, int result)
{
	struct rgate_completion done;

	q.cookie = 4711;
	client_submit(c, q);
	bed_run(e);
	assert_true(client_poll(c, &done));
	assert_int_equal(done.cookie, 4711);
	assert_int_equal(done.result, result);
	return done.value;
}

#define ASK(o, ...) ((struct rgate_request){ .op = (o), ##__VA_ARGS__ })

static void core(void **state)
{
	uint64_t before, now;

	(void)state;
	assert_int_equal(value_of(&a, ASK(RGATE_REQ_NOP, .a0 = 1ULL << 60), 0), 1ULL << 60);
	assert_int_equal(value_of(&a, ASK(RGATE_REQ_PROBE), 0), 15);
	assert_int_equal(value_of(&a, ASK(RGATE_REQ_PROBE, .a0 = RGATE_REQ_LOG), 0), 1);
	assert_int_equal(value_of(&a, ASK(RGATE_REQ_PROBE, .a0 = LATE), 0), 63);
	assert_int_equal(value_of(&a, ASK(RGATE_REQ_PROBE, .a0 = LATE, .a1 = RGATE_PROBE_NODE),
				  0), 6);
	value_of(&a, ASK(RGATE_REQ_PROBE, .a0 = LATE + 1), -ENOENT);
	value_of(&a, ASK(RGATE_REQ_PROBE, .a0 = RGATE_REQ_SERVICES), -ENOENT);
	value_of(&a, ASK(RGATE_REQ_PROBE, .a0 = UINT64_MAX), -ENOENT);
	before = unit_now_ns();
	now = value_of(&a, ASK(RGATE_REQ_TIME, .a0 = RGATE_CLOCK_MONOTONIC), 0);
	assert_in_range(now, before, unit_now_ns());
	now = value_of(&a, ASK(RGATE_REQ_TIME, .a0 = RGATE_CLOCK_REALTIME), 0);
	assert_in_range(now / 1000000000, (uint64_t)time(NULL) - 100, (uint64_t)time(NULL));
	value_of(&a, ASK(RGATE_REQ_TIME, .a0 = RGATE_CLOCK_COUNT), -EINVAL);
}

static char said[512];

static void hear(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)ctx;
	(void)level;
	snprintf(said, sizeof(said), "%s", msg);
}

static void logged(void **state)
{
	static const char text[] = "a line\nand \033 more";

	(void)state;
	rgate_log_set(hear, NULL);
	memcpy(a.mem + 5, text, sizeof(text) - 1);
	value_of(&a, ASK(RGATE_REQ_LOG_WRITE, .off = 5, .len = sizeof(text) - 1), 0);
	rgate_log_set(NULL, NULL);
	assert_string_equal(said, "user 1: a line?and ? more");
	value_of(&a, ASK(RGATE_REQ_LOG_WRITE), -EINVAL);
	value_of(&a, ASK(RGATE_REQ_LOG_WRITE, .len = 256), 0);
	value_of(&a, ASK(RGATE_REQ_LOG_WRITE, .len = 257), -EMSGSIZE);
}

static void refused(void **state)
{
	const uint64_t page = (uint64_t)getpagesize();
	const struct {
		struct rgate_request q;
		int result;
	} cases[] = {
		{ ASK(RGATE_REQ_NOP, .flags = 16), -EINVAL },
		{ ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_COUNT), -EINVAL },
		{ ASK(RGATE_REQ_NOP, .owner = 0xffffffff), -ESTALE },
		{ ASK(RGATE_REQ_OP(RGATE_REQ_CORE, 4)), -EOPNOTSUPP },
		{ ASK(RGATE_REQ_OP(RGATE_REQ_CORE, 64)), -EOPNOTSUPP },
		{ ASK(RGATE_REQ_OP(RGATE_REQ_CORE, 255)), -EOPNOTSUPP },
		{ ASK(RGATE_REQ_OP(RGATE_REQ_SPAWN, 0)), -EOPNOTSUPP },
		{ ASK(RGATE_REQ_OP(RGATE_REQ_SERVICES, 0)), -EOPNOTSUPP },
		{ ASK(0xffff), -EOPNOTSUPP },
		{ ASK(LATE_WAIT, .a0 = 1), -EINVAL },
		{ ASK(LATE_WAIT, .a1 = 1), -EINVAL },
		{ ASK(LATE_WAIT, .mem = 1), -EINVAL },
		{ ASK(LATE_WAIT, .off = 1), -EINVAL },
		{ ASK(LATE_WAIT, .len = 1), -EINVAL },
		{ ASK(LATE_WAIT, .handle = 1), -EINVAL },
		{ ASK(LATE_MEM, .mem = 1, .len = 1), -ENOENT },
		{ ASK(LATE_MEM, .off = page, .len = 1), -ERANGE },
		{ ASK(LATE_MEM, .off = page - 1, .len = 2), -ERANGE },
		{ ASK(LATE_MEM, .off = page + 1), -ERANGE },
		{ ASK(LATE_MEM, .off = UINT64_MAX, .len = 2), -ERANGE },
		{ ASK(LATE_MEM, .len = UINT32_MAX), -ERANGE },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++)
		value_of(&a, cases[i].q, cases[i].result);
	assert_int_equal(late.n, 0);
	assert_int_equal(stats().refused, ARRAY_LEN(cases));
	/* the last byte, and none */
	client_submit(&a, ASK(LATE_MEM, .cookie = 1, .off = page - 1, .len = 1));
	client_submit(&a, ASK(LATE_MEM, .cookie = 2, .off = page));
	bed_run(e);
	assert_int_equal(late.n, 2);
	a.mem[page - 1] = 0x5a;
	assert_int_equal(*(unsigned char *)rgate_req_mem(late.held[0]), 0x5a);
	assert_null(rgate_req_mem(late.held[1]));
	late_end(1, 0, 0);
	late_end(2, 0, 0);
	expect(&a, 1, 0);
	expect(&a, 2, 0);
}

/* Each lap, each place, of either direction */
static void laps(void **state)
{
	uint64_t i, j;

	(void)state;
	for (i = 0; i < 64 * 5; i += 16) {
		for (j = 0; j < 16; j++)
			client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = i + j));
		for (j = 0; j < 16; j++)
			expect(&a, i + j, 0);
	}
	assert_int_equal(stats().completions, 64 * 5);
	assert_int_equal(stats().under_way, 0);
}

/* No request begins whose completion would find no place. */
static void places(void **state)
{
	struct rgate_completion done;
	uint64_t i, taken = 0, rounds = 0;

	(void)state;
	for (i = 0; i < 64; i++)
		client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = i));
	bed_run(e);
	for (i = 64; i < 96; i++)
		client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = i));
	bed_run(e);
	assert_int_equal(stats().completions, 64);
	assert_int_equal(a.area.server->need, RGATE_REQ_NEED_CREDIT);
	/* a batch less one gives nothing back */
	while (taken < 31) {
		assert_true(client_poll(&a, &done));
		assert_int_equal(done.cookie, taken++);
	}
	bed_run(e);
	assert_int_equal(stats().completions, 64);
	while (taken < 96) {
		if (client_poll(&a, &done))
			assert_int_equal(done.cookie, taken++);
		bed_run(e);
		assert_true(++rounds < 1000);
	}
	assert_int_equal(stats().completions, 96);
	/* What is under way has its places, too. */
	for (i = 0; i < 64; i++)
		client_submit(&a, ASK(LATE_WAIT, .cookie = 1000 + i));
	bed_run(e);
	assert_int_equal(late.n, 64);
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 5));
	expect_none(&a);
	for (i = 64; i--;)
		late_end(1000 + i, 0, i);
	for (i = 64; i--;) {
		bed_run(e);
		assert_true(client_poll(&a, &done));
		assert_int_equal(done.cookie, 1000 + i);
		assert_int_equal(done.value, i);
	}
	expect(&a, 5, 0);
}

static void out_of_step(void **state)
{
	(void)state;
	client_submit(&a, ASK(LATE_WAIT, .cookie = 1));
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 2));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 3));
	expect(&a, 2, 0);
	expect_none(&a);
	late_end(3, 33, 1);
	expect(&a, 3, 33);
	late_end(1, -EIO, 1);
	expect(&a, 1, -EIO);
	assert_int_equal(stats().under_way, 0);
}

#define LINK(o, c) ASK(o, .cookie = (c), .flags = RGATE_REQ_LINK)

static void linked(void **state)
{
	(void)state;
	client_submit(&a, LINK(LATE_WAIT, 1));
	client_submit(&a, LINK(RGATE_REQ_NOP, 2));
	client_submit(&a, LINK(LATE_WAIT, 3));
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 4));
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 5));	/* of no chain */
	expect(&a, 5, 0);
	assert_int_equal(late.n, 1);
	late_end(1, 7, 0);
	expect(&a, 1, 7);
	expect(&a, 2, 0);
	expect_none(&a);
	assert_true(late_has(3));
	late_end(3, 0, 0);
	expect(&a, 3, 0);
	expect(&a, 4, 0);
}

static void chain_fails(void **state)
{
	(void)state;
	client_submit(&a, LINK(LATE_WAIT, 1));
	client_submit(&a, LINK(LATE_WAIT, 2));
	client_submit(&a, LINK(LATE_WAIT, 3));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 4));
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 5));
	expect(&a, 5, 0);
	late_end(1, -EIO, 0);
	expect(&a, 1, -EIO);
	expect(&a, 2, -ECANCELED);
	expect(&a, 3, -ECANCELED);
	expect(&a, 4, -ECANCELED);
	assert_int_equal(late.n, 0);
	/* also by what is refused, */
	client_submit(&a, LINK(0xffff, 1));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 2));
	expect(&a, 1, -EOPNOTSUPP);
	expect(&a, 2, -ECANCELED);
	/* and of those that come later */
	client_submit(&a, LINK(LATE_WAIT, 1));
	bed_run(e);
	late_end(1, -EIO, 0);
	expect(&a, 1, -EIO);
	client_submit(&a, LINK(LATE_WAIT, 2));
	expect(&a, 2, -ECANCELED);
	client_submit(&a, ASK(LATE_WAIT, .cookie = 3));
	expect(&a, 3, -ECANCELED);
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 4));
	expect(&a, 4, 0);
	/* A chain that went on before the next one came goes on. */
	client_submit(&a, LINK(RGATE_REQ_NOP, 1));
	expect(&a, 1, 0);
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 2));
	expect(&a, 2, 0);
}

/* One in the middle of a chain ends before its turn. */
static void chain_cut(void **state)
{
	(void)state;
	client_submit(&a, LINK(LATE_WAIT, 1));
	client_submit(&a, LINK(LATE_WAIT, 2));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 3));
	client_submit(&a, ASK(RGATE_REQ_CANCEL, .cookie = 4, .a0 = 2));
	expect(&a, 2, -ECANCELED);
	expect(&a, 4, 0);
	expect(&a, 3, -ECANCELED);
	late_end(1, 0, 0);
	expect(&a, 1, 0);
	/* the last one so far: what follows is of its chain */
	client_submit(&a, LINK(LATE_WAIT, 1));
	client_submit(&a, LINK(LATE_WAIT, 2));
	bed_run(e);
	/* by another way, as CANCEL would be the next one of the chain */
	client_submit(&a, ASK(LATE_WAIT, .cookie = 3));
	bed_run(e);
	late_end(1, 0, 0);
	expect(&a, 1, 0);
	assert_int_equal(late.n, 1);
	late_end(2, 0, 0);
	expect(&a, 2, 0);
	late_end(3, 0, 0);
	expect(&a, 3, 0);
}

/* Long ones, of what ends at once, in one turn and another */
static void long_chain(void **state)
{
	uint64_t i;

	(void)state;
	client_submit(&a, LINK(LATE_WAIT, 0));
	for (i = 1; i < 63; i++)
		client_submit(&a, LINK(RGATE_REQ_NOP, i));
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 63));
	expect_none(&a);
	late_end(0, 0, 0);
	for (i = 0; i < 64; i++)
		expect(&a, i, 0);
}

static void drained(void **state)
{
	(void)state;
	client_submit(&a, ASK(LATE_WAIT, .cookie = 1));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 2));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 3, .flags = RGATE_REQ_DRAIN));
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 4));
	expect_none(&a);
	assert_int_equal(late.n, 2);
	late_end(2, 0, 0);
	expect(&a, 2, 0);
	expect_none(&a);
	assert_int_equal(late.n, 1);
	late_end(1, 0, 0);
	expect(&a, 1, 0);
	expect_none(&a);
	assert_true(late_has(3));
	/* others do not wait */
	client_submit(&b, ASK(RGATE_REQ_NOP, .cookie = 9));
	expect(&b, 9, 0);
	late_end(3, 0, 0);
	expect(&a, 3, 0);
	expect(&a, 4, 0);
}

static void silent(void **state)
{
	uint64_t i;

	(void)state;
	for (i = 0; i < 200; i++) {
		client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = i,
				      .flags = RGATE_REQ_NO_COMPLETION));
		if (i % 32 == 0)
			bed_run(e);
	}
	expect_none(&a);
	assert_int_equal(stats().accepted, 200);
	client_submit(&a, ASK(LATE_WAIT, .a0 = 1, .cookie = 7, .flags = RGATE_REQ_NO_COMPLETION));
	expect(&a, 7, -EINVAL);
	client_submit(&a, ASK(LATE_WAIT, .cookie = 8, .flags = RGATE_REQ_NO_COMPLETION));
	bed_run(e);
	late_end(8, 1, 0);
	expect_none(&a);
	assert_int_equal(stats().under_way, 0);
}

static void cancelled(void **state)
{
	(void)state;
	client_submit(&a, ASK(RGATE_REQ_CANCEL, .cookie = 1, .a0 = 50));
	expect(&a, 1, -ENOENT);
	client_submit(&a, ASK(LATE_WAIT, .cookie = 50));
	client_submit(&b, ASK(RGATE_REQ_CANCEL, .cookie = 1, .a0 = 50));
	expect(&b, 1, -ENOENT);	/* another session's */
	client_submit(&a, ASK(RGATE_REQ_CANCEL, .cookie = 2, .a0 = 50));
	expect(&a, 2, 0);
	expect(&a, 50, -ECANCELED);	/* whatever it ended with */
	assert_int_equal(late.asked, 1);
	client_submit(&a, ASK(RGATE_REQ_CANCEL, .cookie = 3, .a0 = 50));
	expect(&a, 3, -ENOENT);
	/* twice, before it ends */
	late.slow = true;
	client_submit(&a, ASK(LATE_WAIT, .cookie = 51));
	client_submit(&a, ASK(RGATE_REQ_CANCEL, .cookie = 4, .a0 = 51));
	client_submit(&a, ASK(RGATE_REQ_CANCEL, .cookie = 5, .a0 = 51));
	expect(&a, 4, 0);
	expect(&a, 5, -EALREADY);
	assert_int_equal(late.asked, 2);
	late_end(51, 5, 5);
	expect(&a, 51, -ECANCELED);
	/* what cannot be */
	client_submit(&a, ASK(LATE_SURE, .cookie = 52));
	client_submit(&a, ASK(RGATE_REQ_CANCEL, .cookie = 6, .a0 = 52));
	expect(&a, 6, -EALREADY);
	late_end(52, 5, 5);
	expect(&a, 52, 5);
	/* what says itself that it is too late, and is not asked again */
	late.refuses = true;
	client_submit(&a, ASK(LATE_WAIT, .cookie = 53));
	client_submit(&a, ASK(RGATE_REQ_CANCEL, .cookie = 7, .a0 = 53));
	client_submit(&a, ASK(RGATE_REQ_CANCEL, .cookie = 8, .a0 = 53));
	expect(&a, 7, -EALREADY);
	expect(&a, 8, -EALREADY);
	assert_int_equal(late.asked, 3);
	late_end(53, 6, 6);
	expect(&a, 53, 6);
	assert_int_equal(stats().cancelled, 2);
}

/* Many cookies, so that their table grows */
static void many_cookies(void **state)
{
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = 3, .requests = 256,
						    .completions = 1024);
	static struct client c;
	uint64_t i;

	(void)state;
	assert_int_equal(client_open(&c, e, &o), 0);
	for (i = 0; i < 200; i++)
		client_submit(&c, ASK(LATE_WAIT, .cookie = i << 32));
	bed_run(e);
	for (i = 0; i < 200; i += 2)
		client_submit(&c, ASK(RGATE_REQ_CANCEL, .a0 = i << 32, .flags =
				      RGATE_REQ_NO_COMPLETION));
	for (i = 0; i < 200; i += 2)
		expect(&c, i << 32, -ECANCELED);
	expect_none(&c);
	for (i = 1; i < 200; i += 2)
		late_end(i << 32, 0, 0);
	for (i = 1; i < 200; i += 2)
		expect(&c, i << 32, 0);
	rgate_seat_remove(c.seat);
	bed_run(e);
	client_close(&c);
}

static void deadlines(void **state)
{
	struct rgate_completion done;
	unsigned int n = 0;
	int64_t ns;

	(void)state;
	/* far away: the engine says when it wants to be called */
	client_submit(&a, ASK(LATE_WAIT, .cookie = 1, .deadline_us = 4000000000U));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 2, .deadline_us = 3900000000U));
	ns = bed_run(e);
	assert_in_range(ns, 1, 3900000000000);
	late_end(2, 0, 0);
	expect(&a, 2, 0);
	assert_in_range(bed_run(e), 1, 4000000000000);
	late_end(1, 0, 0);
	expect(&a, 1, 0);
	assert_int_equal(bed_run(e), -1);
	/* near, of one that waits in a chain, and of one that cannot be cancelled */
	client_submit(&a, ASK(LATE_SURE, .cookie = 3, .deadline_us = 1,
			      .flags = RGATE_REQ_LINK));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 4, .deadline_us = 2,
			      .flags = RGATE_REQ_LINK));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 5));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 6, .deadline_us = 3));
	while (n < 3) {
		bed_run(e);
		if (!client_poll(&a, &done))
			continue;
		n++;
		assert_in_range(done.cookie, 4, 6);
		assert_int_equal(done.result, done.cookie == 5 ? -ECANCELED : -ETIMEDOUT);
	}
	assert_int_equal(stats().timed_out, 2);
	late_end(3, 9, 0);
	expect(&a, 3, 9);
}

/* Any order of deadlines and ends: the engine always names the nearest one. */
static void deadline_heap(void **state)
{
	uint64_t rnd = 42, i, at[48], nearest, left = 48;
	int64_t ns;

	(void)state;
	for (i = 0; i < 48; i++) {
		at[i] = 1000000000 + unit_random(&rnd) % 48 * 10000000;	/* us */
		if (at[i] > UINT32_MAX)
			at[i] = UINT32_MAX;
		client_submit(&a, ASK(LATE_WAIT, .cookie = i, .deadline_us = (uint32_t)at[i]));
	}
	while (left) {
		ns = bed_run(e);
		nearest = UINT64_MAX;
		for (i = 0; i < 48; i++)
			nearest = at[i] < nearest ? at[i] : nearest;
		/* taken not long ago: less than the 10 s between two of them, by far */
		assert_in_range(ns / 1000, nearest - 9000000, nearest);
		do {
			i = unit_random(&rnd) % 48;
		} while (at[i] == UINT64_MAX);
		late_end(i, 0, 0);
		at[i] = UINT64_MAX;
		left--;
		expect(&a, i, 0);
	}
	assert_int_equal(bed_run(e), -1);
}

/* The client goes while its requests are under way. */
static void gone(void **state)
{
	static struct client c;
	void *mem;

	(void)state;
	client_new(&c, e, 1);
	client_submit(&c, ASK(LATE_WAIT, .cookie = 1));
	client_submit(&c, ASK(LATE_SURE, .cookie = 2, .flags = RGATE_REQ_LINK));
	client_submit(&c, ASK(LATE_WAIT, .cookie = 3));
	client_submit(&c, ASK(LATE_MEM, .cookie = 4, .len = 64));
	client_submit(&c, ASK(LATE_OPEN, .cookie = 5));
	bed_run(e);
	assert_int_equal(late.n, 3);
	mem = rgate_req_mem(late.held[2]);
	late.slow = true;
	rgate_seat_remove(c.seat);
	client_close(&c);
	bed_run(e);
	assert_int_equal(late.asked, 2);
	assert_int_equal(c.over, 0);
	assert_int_equal(stats().seats, 3);
	/* what is still under way may use its memory */
	memset(mem, 1, 64);
	late_end(4, 0, 0);
	late_end(1, 0, 0);
	bed_run(e);
	assert_int_equal(c.over, 0);
	assert_int_equal(late.dropped, 0);
	late_end(2, 0, 0);
	bed_run(e);
	assert_int_equal(c.over, 1);
	assert_int_equal(late.dropped, 1);
	assert_int_equal(stats().seats, 2);
	assert_int_equal(stats().under_way, 0);
	assert_int_equal(stats().handles, 0);
}

static void handles(void **state)
{
	uint64_t h, g, i;

	(void)state;
	value_of(&a, ASK(LATE_CLOSE), -EBADF);
	value_of(&a, ASK(LATE_CLOSE, .handle = 77), -EBADF);
	h = value_of(&a, ASK(LATE_OPEN), 0);
	assert_int_not_equal(h, 0);
	value_of(&b, ASK(LATE_CLOSE, .handle = (uint32_t)h), -EBADF);	/* not its own */
	value_of(&a, ASK(LATE_CLOSE, .handle = (uint32_t)h), 0);
	value_of(&a, ASK(LATE_CLOSE, .handle = (uint32_t)h), -EBADF);
	g = value_of(&a, ASK(LATE_OPEN), 0);
	assert_int_not_equal(g, h);
	value_of(&a, ASK(LATE_CLOSE, .handle = (uint32_t)h), -EBADF);	/* an old one */
	for (i = 0; i < 20; i++)
		value_of(&a, ASK(LATE_OPEN), 0);
	assert_int_equal(stats().handles, 21);
	value_of(&a, ASK(LATE_CLOSE, .handle = (uint32_t)g), 0);
	assert_int_equal(stats().handles, 20);
}

static struct rgate_seat_opts limited(uid_t uid, struct rgate_limits *lim)
{
	return RGATE_OPTS(rgate_seat_opts, .uid = uid, .requests = 64, .completions = 64,
			  .limits = lim);
}

static void limits(void **state)
{
	struct rgate_limits lim;
	struct rgate_seat_opts o;
	static struct client c, d, none;
	uint64_t area = rgate_area_len(64, 64);

	(void)state;
	rgate_limits_init(&lim);
	lim.sessions = 2;
	lim.memory = 2 * area + (uint64_t)getpagesize();
	lim.requests = 3;
	lim.handles = 1;
	lim.classes = 1U << RGATE_CLASS_NORMAL;
	lim.ops[RGATE_REQ_LOG] = 0;
	lim.ops[LATE] &= ~2ULL;
	o = limited(5, &lim);
	o.memory = 2 * (uint64_t)getpagesize();
	assert_int_equal(client_open(&c, e, &o), 0);
	o.memory = 0;
	assert_int_equal(client_open(&d, e, &o), -EDQUOT);	/* memory */
	rgate_seat_remove(c.seat);
	client_close(&c);
	bed_run(e);
	o.memory = (uint64_t)getpagesize();
	assert_int_equal(client_open(&c, e, &o), 0);
	o.memory = 0;
	assert_int_equal(client_open(&d, e, &o), 0);
	lim.memory = 0;
	assert_int_equal(client_open(&none, e, &o), -EDQUOT);	/* sessions */
	assert_int_equal(c.w.services, 1ULL << RGATE_REQ_CORE | 1ULL << LATE);
	assert_int_equal(c.w.max_requests, 3);

	value_of(&c, ASK(RGATE_REQ_LOG_WRITE, .len = 1), -EACCES);
	value_of(&c, ASK(LATE_SURE), -EACCES);
	value_of(&c, ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_URGENT), -EACCES);
	assert_int_equal(value_of(&c, ASK(RGATE_REQ_PROBE, .a0 = LATE), 0), 61);
	value_of(&c, ASK(LATE_OPEN), 0);
	value_of(&d, ASK(LATE_OPEN), -EDQUOT);

	/* Three under way of both; others wait, but for what the engine does itself. */
	client_submit(&c, ASK(LATE_WAIT, .cookie = 1));
	client_submit(&c, ASK(LATE_WAIT, .cookie = 2));
	client_submit(&d, ASK(LATE_WAIT, .cookie = 3));
	bed_run(e);
	client_submit(&d, ASK(LATE_WAIT, .cookie = 4));
	client_submit(&c, ASK(RGATE_REQ_NOP, .cookie = 5));
	client_submit(&c, ASK(LATE_WAIT, .cookie = 6));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 7));
	expect(&c, 5, 0);
	assert_int_equal(late.n, 4);
	assert_false(late_has(4) || late_has(6));
	late_end(1, 0, 0);
	expect(&c, 1, 0);
	assert_int_equal(late.n, 4);
	late_end(2, 0, 0);
	expect(&c, 2, 0);
	assert_true(late_has(4) && late_has(6));
	/* the first of those that wait goes away: the other one's turn comes all the same */
	client_submit(&c, ASK(LATE_WAIT, .cookie = 8));
	bed_run(e);
	client_submit(&d, ASK(LATE_WAIT, .cookie = 9));
	bed_run(e);
	rgate_seat_remove(c.seat);
	bed_run(e);
	assert_true(late_has(9));
	client_close(&c);
	rgate_seat_remove(d.seat);
	bed_run(e);
	client_close(&d);
	assert_int_equal(stats().users, 2);
	late_end(7, 0, 0);
	expect(&a, 7, 0);
}

/* Another node's guest has no say about the limits of a user who is here, but where nobody has. */
static void modest(void **state)
{
	struct rgate_limits all, less;
	struct rgate_seat_opts here, guest;
	static struct client c, d;

	(void)state;
	rgate_limits_init(&all);
	rgate_limits_init(&less);
	less.classes = 1U << RGATE_CLASS_NORMAL;
	here = limited(6, &all);
	guest = limited(6, &less);
	guest.modest = true;
	assert_int_equal(client_open(&c, e, &here), 0);
	assert_int_equal(client_open(&d, e, &guest), 0);
	value_of(&c, ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_URGENT), 0);
	/* limits that are set later hold, although a guest comes right then */
	rgate_seat_remove(d.seat);
	client_close(&d);
	bed_run(e);
	assert_int_equal(rgate_engine_limits(e, 6, &less), 0);
	assert_int_equal(client_open(&d, e, &guest), 0);
	value_of(&c, ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_URGENT), -EACCES);
	rgate_seat_remove(c.seat);
	rgate_seat_remove(d.seat);
	client_close(&c);
	client_close(&d);
	bed_run(e);
	/* Guests alone have theirs, until the user himself comes. */
	assert_int_equal(client_open(&d, e, &guest), 0);
	value_of(&d, ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_URGENT), -EACCES);
	assert_int_equal(client_open(&c, e, &here), 0);
	value_of(&d, ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_URGENT), 0);
	rgate_seat_remove(c.seat);
	rgate_seat_remove(d.seat);
	client_close(&c);
	client_close(&d);
	bed_run(e);
}

/* Whose session came first goes on first, also when another one's request made the room. */
static void in_order(void **state)
{
	struct rgate_limits lim;
	struct rgate_seat_opts o;
	static struct client c, d;

	(void)state;
	rgate_limits_init(&lim);
	lim.requests = 1;
	o = limited(5, &lim);
	assert_int_equal(client_open(&c, e, &o), 0);
	assert_int_equal(client_open(&d, e, &o), 0);
	client_submit(&c, ASK(LATE_WAIT, .cookie = 1));
	bed_run(e);
	client_submit(&d, ASK(LATE_WAIT, .cookie = 2));
	bed_run(e);
	client_submit(&c, ASK(LATE_WAIT, .cookie = 3));
	bed_run(e);
	late_end(1, 0, 0);
	expect(&c, 1, 0);
	assert_true(late_has(2) && !late_has(3));
	late_end(2, 0, 0);
	expect(&d, 2, 0);
	assert_true(late_has(3));
	late_end(3, 0, 0);
	expect(&c, 3, 0);
	rgate_seat_remove(c.seat);
	rgate_seat_remove(d.seat);
	bed_run(e);
	client_close(&c);
	client_close(&d);
}

/* Where things are in an area is what clients of all versions reckon by themselves. */
static void layout(void **state)
{
	static const struct {
		uint32_t requests, completions;
		uint64_t req_credits, completed, client, comp_credits, requested, len;
	} areas[] = {
		{ 64, 64, 192, 256, 4096, 4160, 4224, 12288 },
		{ 64, 128, 192, 256, 8192, 8256, 8320, 16384 },
		{ 4096, 64, 192, 1216, 4096, 4160, 4224, 270336 },
		{ 65536, 65536, 192, 16576, 2117632, 2117696, 2134080, 6332416 },
	};
	struct rgate_area area;
	unsigned int i;
	int fd;

	(void)state;
	if (getpagesize() != 4096)
		unit_skip("areas begin at pages, which are larger here");
	for (i = 0; i < ARRAY_LEN(areas); i++) {
		assert_int_equal(rgate_area_create(&area, areas[i].requests, areas[i].completions,
						   0, 1, &fd), 0);
		assert_int_equal(area.head->server_off, 128);
		assert_int_equal(area.head->req_credits_off, areas[i].req_credits);
		assert_int_equal(area.head->completions_off, areas[i].completed);
		assert_int_equal(area.head->client_off, areas[i].client);
		assert_int_equal(area.head->comp_credits_off, areas[i].comp_credits);
		assert_int_equal(area.head->requests_off, areas[i].requested);
		assert_int_equal(area.head->area_len, areas[i].len);
		assert_int_equal(area.len, areas[i].len);
		rgate_area_unmap(&area);
		close(fd);
	}
}

/* The head of an area is the engine's word: one that does not fit what was asked for is none. */
static void heads(void **state)
{
	static const struct {
		size_t at, len;
		int err;
	} fields[] = {
#define FIELD(f, err) { offsetof(struct rgate_req_head, f), \
			sizeof(((struct rgate_req_head *)NULL)->f), err }
		FIELD(magic, -EPROTO), FIELD(version, -EPROTONOSUPPORT),
		FIELD(features, -EPROTONOSUPPORT), FIELD(requests, -EPROTO),
		FIELD(completions, -EPROTO), FIELD(batch, -EPROTO), FIELD(area_len, -EPROTO),
		FIELD(mem_len, -EPROTO), FIELD(server_off, -EPROTO), FIELD(client_off, -EPROTO),
		FIELD(req_credits_off, -EPROTO), FIELD(comp_credits_off, -EPROTO),
		FIELD(requests_off, -EPROTO), FIELD(completions_off, -EPROTO),
	};
	struct rgate_area own, other;
	struct rgate_req_head was;
	unsigned int i, maps;
	int fd;

	(void)state;
	assert_int_equal(rgate_area_create(&own, 64, 128, 4096, 1, &fd), 0);
	was = *own.head;
	maps = unit_mappings("memfd:ringgate-requests");
	for (i = 0; i < ARRAY_LEN(fields); i++) {
		((unsigned char *)own.head)[fields[i].at] ^= 1;
		assert_int_equal(rgate_area_map(&other, fd, 64, 128, 4096), fields[i].err);
		*own.head = was;
	}
	/* A longer head has more at its end, a shorter one less than there must be. */
	own.head->head_size = sizeof(was) + 8;
	assert_int_equal(rgate_area_map(&other, fd, 64, 128, 4096), 0);
	rgate_area_unmap(&other);
	own.head->head_size = sizeof(was) - 8;
	assert_int_equal(rgate_area_map(&other, fd, 64, 128, 4096), -EPROTO);
	*own.head = was;
	assert_int_equal(rgate_area_map(&other, fd, 64, 128, 0), -EPROTO);
	assert_int_equal(rgate_area_map(&other, fd, 128, 64, 4096), -EPROTO);
	assert_int_equal(rgate_area_map(&other, fd, 64, 1024, 4096), -EPROTO);
	assert_int_equal(rgate_area_map(&other, fd, 63, 128, 4096), -EPROTO);
	assert_int_equal(rgate_area_map(&other, fd, 64, 0, 4096), -EPROTO);
	assert_int_equal(unit_mappings("memfd:ringgate-requests"), maps);
	assert_int_equal(rgate_area_map(&other, fd, 64, 128, 4096), 0);
	rgate_area_unmap(&other);
	rgate_area_unmap(&own);
	close(fd);
	assert_int_equal(rgate_area_map(&other, fd, 64, 128, 4096), -EBADF);
}

/* A client with more places than one turn takes, and always with more requests than that */
static void big(struct client *c, uid_t uid)
{
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = uid, .requests = 256,
						    .completions = 256);

	assert_int_equal(client_open(c, e, &o), 0);
}

static void fill(struct client *c, unsigned int cls)
{
	while (c->submitted - c->completed < 200)
		client_submit(c, ASK(RGATE_REQ_NOP, .cls = (uint8_t)cls));
}

static uint64_t collect(struct client *c)
{
	struct rgate_completion done;
	uint64_t n = 0;

	while (client_poll(c, &done))
		n++;
	return n;
}

static void leaves(struct client *c)
{
	rgate_seat_remove(c->seat);
	client_close(c);
}

/* Users have the same, whatever the number of their sessions. */
static void fair(void **state)
{
	static struct client many[8], alone;
	uint64_t one = 0, other = 0;
	unsigned int i, turn;

	(void)state;
	big(&alone, 4);
	for (i = 0; i < ARRAY_LEN(many); i++)
		big(&many[i], 3);
	for (turn = 0; turn < 200; turn++) {
		for (i = 0; i < ARRAY_LEN(many); i++)
			fill(&many[i], RGATE_CLASS_NORMAL);
		fill(&alone, RGATE_CLASS_NORMAL);
		rgate_engine_turn(e);
		for (i = 0; i < ARRAY_LEN(many); i++)
			other += collect(&many[i]);
		one += collect(&alone);
	}
	assert_true(one > 200 * 32);
	assert_in_range(other * 100, one * 90, one * 110);
	for (i = 0; i < ARRAY_LEN(many); i++) {
		/* none starves */
		assert_true(many[i].completed * ARRAY_LEN(many) * 2 > other);
		leaves(&many[i]);
	}
	leaves(&alone);
}

/* Of one user: urgent ones first, and others all the same */
static void classes(void **state)
{
	static struct client bulk, normal, urgent;
	uint64_t n[3] = { 0, 0, 0 };
	unsigned int turn;

	(void)state;
	big(&bulk, 3);
	big(&normal, 3);
	big(&urgent, 3);
	for (turn = 0; turn < 100; turn++) {
		fill(&bulk, RGATE_CLASS_BULK);
		fill(&normal, RGATE_CLASS_NORMAL);
		fill(&urgent, RGATE_CLASS_URGENT);
		rgate_engine_turn(e);
		n[0] += collect(&bulk);
		n[1] += collect(&normal);
		n[2] += collect(&urgent);
	}
	assert_true(n[2] > n[1] && n[1] > n[0] * 2);
	assert_true(n[0] >= 100);
	leaves(&bulk);
	leaves(&normal);
	leaves(&urgent);
}

/* Once for each sleep, and not before what is wanted is there */
static void woken(void **state)
{
	struct epoll_event ev;

	(void)state;
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 1));
	expect(&a, 1, 0);
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 0);
	__atomic_store_n(&a.area.client->want, 3, __ATOMIC_SEQ_CST);
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 2));
	expect(&a, 2, 0);
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 0);
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 3));
	expect(&a, 3, 0);
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 1);
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 0);	/* an edge is taken by that */
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 4));
	expect(&a, 4, 0);
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 0);
	assert_int_equal(stats().wakeups, 1);
}

static void options(void **state)
{
	struct rgate_engine_opts eo = RGATE_OPTS(rgate_engine_opts, .flags = 2);
	struct rgate_req_service s = late_service;
	struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .requests = 64,
					      .completions = 64);
	struct rgate_engine *other;
	struct client none;

	(void)state;
	assert_int_equal(rgate_engine_create(&other, &eo), -EINVAL);
	eo = RGATE_OPTS(rgate_engine_opts, .flags = RGATE_ENGINE_LOOP,
			.spin_us = RGATE_SPIN_MOST + 1);
	assert_int_equal(rgate_engine_create(&other, &eo), -EINVAL);
	eo.spin_us = 0;
	assert_int_equal(rgate_engine_create(&other, &eo), 0);
	assert_int_equal(rgate_engine_add(other, &s, NULL), 0);
	assert_int_equal(rgate_engine_add(other, &s, NULL), -EEXIST);
	s.number = RGATE_REQ_SERVICES;
	assert_int_equal(rgate_engine_add(other, &s, NULL), -EINVAL);
	s.number = 17;
	s.nops = RGATE_REQ_OPS + 1;
	assert_int_equal(rgate_engine_add(other, &s, NULL), -EINVAL);
	s.nops = 0;
	assert_int_equal(rgate_engine_add(other, &s, NULL), -EINVAL);
	rgate_engine_destroy(other);
	rgate_engine_destroy(NULL);
	s.nops = 1;
	assert_int_equal(rgate_engine_add(e, &s, NULL), -EBUSY);

	o.requests = 32;
	assert_int_equal(client_open(&none, e, &o), -EINVAL);
	o.requests = 65;
	assert_int_equal(client_open(&none, e, &o), -EINVAL);
	o.requests = 64;
	o.completions = RGATE_REQ_PLACES_MAX * 2;
	assert_int_equal(client_open(&none, e, &o), -EINVAL);
	o.completions = 64;
	o.memory = 1;
	assert_int_equal(client_open(&none, e, &o), -EINVAL);
}

/* Memory that the owner of the engine brings */
static void own_memory(void **state)
{
	const size_t page = (size_t)getpagesize();
	int fd = rgate_area_memfd("test", 2 * page);
	unsigned char *at;
	struct rgate_seat_opts o;
	static struct client c;

	(void)state;
	assert_true(fd >= 0);
	at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	o = RGATE_OPTS(rgate_seat_opts, .uid = 9, .requests = 64, .completions = 64,
		       .memory = page, .mem_addr = at + page, .mem_fd = fd, .mem_off = page);
	assert_int_equal(client_open(&c, e, &o), 0);
	c.mem[3] = 0x77;
	assert_int_equal(at[page + 3], 0x77);
	client_submit(&c, ASK(LATE_MEM, .cookie = 1, .off = 3, .len = 1));
	bed_run(e);
	assert_ptr_equal(rgate_req_mem(late.held[0]), at + page + 3);
	late_end(1, 0, 0);
	expect(&c, 1, 0);
	rgate_seat_remove(c.seat);
	bed_run(e);
	client_close(&c);
	assert_int_equal(at[page + 3], 0x77);	/* not unmapped */
	munmap(at, 2 * page);
	close(fd);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(core), TEST(logged), TEST(refused), TEST(laps), TEST(places),
		TEST(out_of_step), TEST(linked), TEST(chain_fails), TEST(chain_cut),
		TEST(long_chain), TEST(drained), TEST(silent), TEST(cancelled),
		TEST(many_cookies), TEST(deadlines), TEST(deadline_heap), TEST(gone),
		TEST(handles), TEST(limits), TEST(modest), TEST(in_order), TEST(layout),
		TEST(heads),
		TEST(fair), TEST(classes), TEST(woken),
		TEST(options), TEST(own_memory),
	};

	return unit_run(__FILE__, tests, ARRAY_LEN(tests));
}
