// SPDX-License-Identifier: MIT OR GPL-2.0
/* Requests in a row that are answered on the spot, and what does not belong to such a row. */
#include "req_bed.h"

#include <errno.h>

#define BEFORE	5U
#define AFTER	58U		/* a run ends among them; with the others, all places */

static struct rgate_engine *e;
static struct client a, b;

static int setup(void **state)
{
	(void)state;
	e = bed_engine();
	client_new(&a, e, 1);
	client_new(&b, e, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rgate_engine_destroy(e);
	client_close(&a);
	client_close(&b);
	return 0;
}

#define ASK(o, ...) ((struct rgate_request){ .op = (o), ##__VA_ARGS__ })

static void nops(struct client *c, uint64_t from, uint64_t n)
{
	uint64_t i;

	for (i = from; i < from + n; i++)
		client_submit(c, ASK(RGATE_REQ_NOP, .cookie = i, .a0 = i * 3));
}

static void answered(struct client *c, uint64_t from, uint64_t n)
{
	struct rgate_completion done;
	uint64_t i;

	for (i = from; i < from + n; i++) {
		assert_true(client_poll(c, &done));
		assert_int_equal(done.cookie, i);
		assert_int_equal(done.result, 0);
		assert_int_equal(done.value, i * 3);
	}
}

/* Each is refused, or does what it asks for, as if it were alone; those around it, too. */
static void odd_ones(void **state)
{
	static const struct {
		struct rgate_request q;
		int result;
	} odd[] = {
		{ ASK(RGATE_REQ_NOP, .owner = 1U << 30), -ESTALE },
		{ ASK(RGATE_REQ_NOP, .flags = 0x80), -EINVAL },
		{ ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_COUNT), -EINVAL },
		{ ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_BULK), 0 },
		{ ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_URGENT), 0 },
		{ ASK(RGATE_REQ_NOP, .a1 = 1), -EINVAL },
		{ ASK(RGATE_REQ_NOP, .handle = 1), -EINVAL },
		{ ASK(RGATE_REQ_NOP, .mem = RGATE_REQ_MEM_SESSION + 1), -EINVAL },
		{ ASK(RGATE_REQ_NOP, .off = 1), -EINVAL },
		{ ASK(RGATE_REQ_NOP, .len = 1), -EINVAL },
		{ ASK(RGATE_REQ_NOP, .deadline_us = 1000), 0 },
		{ ASK(RGATE_REQ_NOP, .flags = RGATE_REQ_LINK), 0 },
		{ ASK(RGATE_REQ_NOP, .flags = RGATE_REQ_DRAIN), 0 },
		{ ASK(RGATE_REQ_PROBE, .a0 = RGATE_REQ_SERVICES), -ENOENT },
		{ ASK(RGATE_REQ_OP(RGATE_REQ_CORE, 40)), -EOPNOTSUPP },
		{ ASK(RGATE_REQ_OP(RGATE_REQ_SERVICES - 1, 0)), -EOPNOTSUPP },
	};
	struct rgate_completion done;
	struct rgate_request q;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(odd); i++) {
		q = odd[i].q;
		q.cookie = 4711;
		nops(&a, 1, BEFORE);
		client_submit(&a, q);
		nops(&a, 1000, AFTER);
		bed_run(e);
		answered(&a, 1, BEFORE);
		assert_true(client_poll(&a, &done));
		assert_int_equal(done.cookie, 4711);
		assert_int_equal(done.result, odd[i].result);
		answered(&a, 1000, AFTER);
		assert_false(client_poll(&a, &done));
	}
}

/* One that goes on for longer holds nobody back, but one with DRAIN does. */
static void later(void **state)
{
	struct rgate_completion done;

	(void)state;
	nops(&a, 1, 3);
	client_submit(&a, ASK(LATE_WAIT, .cookie = 70));
	nops(&a, 10, 3);
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = 71, .flags = RGATE_REQ_DRAIN));
	nops(&a, 20, 3);
	bed_run(e);
	answered(&a, 1, 3);
	answered(&a, 10, 3);
	assert_false(client_poll(&a, &done));
	late_end(70, 5, 0);
	bed_run(e);
	assert_true(client_poll(&a, &done));
	assert_int_equal(done.cookie, 70);
	assert_int_equal(done.result, 5);
	assert_true(client_poll(&a, &done));
	assert_int_equal(done.cookie, 71);
	answered(&a, 20, 3);
}

static void first_answered(void)
{
	answered(&a, 1, 3);
}

/* Who polls sees what is answered before the next one, which may take its time, begins. */
static void at_once(void **state)
{
	struct rgate_completion done;

	(void)state;
	late.begins = first_answered;
	nops(&a, 1, 3);
	client_submit(&a, ASK(LATE_WAIT, .cookie = 70));
	nops(&a, 10, 3);
	bed_run(e);
	answered(&a, 10, 3);
	assert_false(client_poll(&a, &done));
	late_end(70, 5, 0);
	bed_run(e);
	assert_true(client_poll(&a, &done));
	assert_int_equal(done.result, 5);
}

/* A run ends where there is no place for a completion, and goes on when there is. */
static void no_place(void **state)
{
	const uint64_t places = a.area.comp_mask + 1;
	struct rgate_completion done;

	(void)state;
	nops(&a, 0, places);
	bed_run(e);
	nops(&a, places, 40);
	bed_run(e);
	answered(&a, 0, places);
	assert_false(client_poll(&a, &done));
	bed_run(e);
	answered(&a, places, 40);
	assert_false(client_poll(&a, &done));
}

/* As long as one is, it is not more than a visit: the next session of the user has its turn. */
static void bounded(void **state)
{
	static struct client big;
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = 2, .requests = 8192,
						    .completions = 8192);
	static struct client other;
	struct rgate_completion done;
	uint64_t mine = 0, others = 0;

	(void)state;
	assert_int_equal(client_open(&big, e, &o), 0);
	assert_int_equal(client_open(&other, e, &o), 0);
	bed_run(e);
	nops(&big, 0, 8192);
	nops(&other, 0, 8192);
	rgate_engine_turn(e);
	while (client_poll(&big, &done))
		mine++;
	while (client_poll(&other, &done))
		others++;
	assert_true(mine && others);
	/* both of them all that a visit has, */
	assert_int_equal(mine, others);
	assert_true(mine <= 64);
	/* which they have used up */
	assert_int_equal(mine % 8, 0);
	bed_run(e);
	rgate_seat_remove(big.seat);
	rgate_seat_remove(other.seat);
	bed_run(e);
	client_close(&big);
	client_close(&other);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(odd_ones), TEST(later), TEST(at_once), TEST(no_place), TEST(bounded),
	};

	return unit_run(__FILE__, tests, ARRAY_LEN(tests));
}
