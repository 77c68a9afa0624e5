// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * How long a consumer that found nothing pauses before it looks again: short where frames come
 * one by one, longer while they stream in, and for each position once.
 */
#include "unit.h"
#include "producer.h"

static struct rgate_ring *ring;
static struct rgate_producer p;
static struct rgate_consumer c;
static uint64_t sent;

static int up(void **state)
{
	(void)state;
	sent = 0;
	ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	return rgate_producer_init(&p, ring) || rgate_consumer_init(&c, ring, NULL);
}

static int down(void **state)
{
	(void)state;
	rgate_consumer_fini(&c);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
	return 0;
}

/* @n frames come and are taken, and then there is none */
static void frames(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		assert_int_equal(unit_put(&p, sent++, 64), 0);
	rgate_producer_flush(&p);
	for (i = 0; i < n; i++) {
		assert_non_null(rgate_consumer_next(&c));
		rgate_consumer_release(&c);
	}
	assert_null(rgate_consumer_next(&c));
	assert_int_equal(c.missed, c.done);
	assert_int_equal(c.done, sent);
}

static void one_by_one(void **state)
{
	const uint32_t least = c.relax;
	unsigned int i;

	(void)state;
	assert_true(least > 0);
	frames(0);
	/* within a batch: the look at the next one is another one */
	for (i = 0; i < 20; i++) {
		frames(1);
		assert_int_equal(c.relax, least);
	}
	/* nothing is there for long: that is no stream */
	for (i = 0; i < 100; i++)
		assert_null(rgate_consumer_next(&c));
	assert_int_equal(c.relax, least);
}

static void streams(void **state)
{
	const uint32_t least = c.relax;
	uint32_t was = least;
	unsigned int i;

	(void)state;
	/* two at a time are a stream already */
	for (i = 0; i < 3; i++) {
		frames(2);
		assert_int_equal(c.relax, 2 * was);
		was = c.relax;
	}
	/* and there it ends, below a microsecond */
	for (i = 0; i < 10; i++)
		frames(7);
	assert_int_equal(c.relax, was);
	was = c.relax;
	frames(5);
	assert_int_equal(c.relax, was);
	/* what comes one by one then is seen at once again */
	frames(1);
	assert_int_equal(c.relax, least);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)
static const struct CMUnitTest tests[] = { TEST(one_by_one), TEST(streams) };

UNIT_MAIN_ALONE(tests)
