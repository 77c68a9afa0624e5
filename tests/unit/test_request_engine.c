// SPDX-License-Identifier: MIT OR GPL-2.0
/* The engine, turn by turn: what requests end with, and in which order. */
#include "req_pair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(core), TEST(logged), TEST(refused), TEST(laps), TEST(places),
		TEST(out_of_step), TEST(linked), TEST(chain_fails), TEST(chain_cut),
		TEST(long_chain), TEST(drained), TEST(silent), TEST(cancelled),
		TEST(many_cookies), TEST(deadlines), TEST(deadline_heap),
	};

	return unit_run(__FILE__, tests, ARRAY_LEN(tests));
}
