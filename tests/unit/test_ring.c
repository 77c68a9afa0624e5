// SPDX-License-Identifier: MIT OR GPL-2.0
/* One producer, one consumer, one thread: what is published, returned, lost. */
#include "unit.h"
#include "producer.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static uint64_t credit(struct rgate_ring *ring, uint64_t batch)
{
	struct rgate_view v;

	rgate_ring_view(ring, &v);
	return __atomic_load_n(&v.credits[batch % (v.nslots / RGATE_BATCH)],
			       __ATOMIC_RELAXED);
}

static void expect(struct rgate_consumer *c, uint64_t i, size_t len)
{
	const struct rgate_slot *s = rgate_consumer_next(c);

	assert_non_null(s);
	assert_int_equal(s->len, len);
	assert_int_equal(unit_pattern_check(rgate_slot_data(s), i, len), 0);
	rgate_consumer_release(c);
}

static void laps(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	uint64_t in = 0, out = 0, seed = 7;
	struct rgate_producer p;
	struct rgate_consumer c;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	assert_null(rgate_consumer_next(&c));
	while (out < unit_rounds(200000)) {
		unsigned int n = (unsigned int)(unit_random(&seed) % 70);

		while (n-- && !unit_put(&p, in, in % 193))
			in++;
		for (n = (unsigned int)(unit_random(&seed) % 70); n && out < in; n--) {
			expect(&c, out, out % 193);
			out++;
		}
		if (out == in)
			assert_null(rgate_consumer_next(&c));
	}
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

/* The producer stops at exactly the slot whose batch was not returned. */
static void credits(void **state)
{
	struct rgate_ring *ring = unit_ring(128, 256, 0, RGATE_POLICY_DROP);
	struct rgate_producer p;
	struct rgate_consumer c;
	struct rgate_stats st;
	uint64_t in = 0, out;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	while (!unit_put(&p, in, 64))
		in++;
	assert_int_equal(in, 128);
	for (out = 0; out < 31; out++)
		expect(&c, out, 64);
	assert_int_equal(credit(ring, 0), 0);
	assert_int_equal(unit_put(&p, in, 64), -ENOBUFS);
	expect(&c, out++, 64);
	assert_int_equal(credit(ring, 0), 1);
	while (!unit_put(&p, in, 64))
		in++;
	assert_int_equal(in, 160);
	rgate_producer_drop(&p);
	rgate_producer_drop(&p);
	for (; out < 64; out++)
		expect(&c, out, 64);
	assert_int_equal(unit_put(&p, in++, 64), 0);
	for (; out < 160; out++)
		expect(&c, out, 64);
	assert_int_equal(rgate_consumer_next(&c)->gap, 2);
	rgate_producer_flush(&p);
	assert_int_equal(rgate_ring_stats(ring, &st), 0);
	assert_int_equal(st.delivered, 161);
	assert_int_equal(st.bytes, 161 * 64);
	assert_int_equal(st.dropped_full, 2);
	assert_int_equal(st.full_events, 2);
	assert_int_equal(st.overwritten, 0);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

/* Who asks for several slots at once is told how many there are, as of now. */
static void run_of_slots(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_producer p;
	struct rgate_consumer c;
	uint64_t in = 0, out;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	assert_int_equal(rgate_producer_run(&p, 48), 48);
	assert_int_equal(rgate_producer_run(&p, 100), 64);
	while (!unit_put(&p, in, 64))
		in++;
	assert_int_equal(rgate_producer_run(&p, 48), 0);
	for (out = 0; out < 32; out++)
		expect(&c, out, 64);
	assert_int_equal(rgate_producer_run(&p, 48), 32);
	assert_int_equal(unit_put(&p, in++, 64), 0);
	for (; out < 64; out++)
		expect(&c, out, 64);
	assert_int_equal(rgate_producer_run(&p, 48), 48);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

/* What was lost is told with the next frame, once. */
static void one_lost(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_producer p;
	struct rgate_consumer c;
	unsigned int i;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	rgate_producer_drop(&p);
	for (i = 0; i < 2; i++)
		assert_int_equal(unit_put(&p, i, 64), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(rgate_consumer_next(&c)->gap, !i);
		expect(&c, i, 64);
	}
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static void header(void **state)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 64,
		.slot_size = 256, .clock = RGATE_CLOCK_REALTIME, .name = "hdr");
	const struct rgate_slot *s;
	struct rgate_producer p;
	struct rgate_consumer c;
	struct rgate_ring *ring;
	struct rgate_view v;
	size_t len, i;

	(void)state;
	assert_int_equal(rgate_ring_open_memfd(&ring, &o), 0);
	rgate_ring_view(ring, &v);
	assert_string_equal(v.prod->name, "hdr");
	assert_int_equal(v.prod->clock, RGATE_CLOCK_REALTIME);
	assert_int_equal(v.prod->generation, 1);
	memset(rgate_ring_slots_rw(ring), 0xaa, 64 * 256);
	for (i = 0; i < 64; i++)
		memset(rgate_ring_slots_rw(ring) + i * 256, 0, 8);
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	for (len = 0; len <= 192; len++) {
		const unsigned char *d;
		time_t now = time(NULL);

		rgate_producer_stamp(&p);
		assert_int_equal(unit_put(&p, len, len), 0);
		s = rgate_consumer_next(&c);
		assert_non_null(s);
		d = rgate_slot_data(s);
		assert_int_equal(s->len, len);
		assert_int_equal(s->wire_len, len);
		assert_int_equal(s->flags, 0);
		assert_int_equal(s->ifindex, 0);
		assert_int_equal(s->hash, 0);
		assert_int_equal(s->queue, 0);
		assert_int_equal(s->vlan_tci, 0);
		assert_int_equal(s->vlan_proto, 0);
		assert_int_equal(s->protocol, 0);
		assert_int_equal(s->dev_type, 0xfffe);
		assert_int_equal(s->l3_off, RGATE_OFF_NONE);
		assert_int_equal(s->l4_off, RGATE_OFF_NONE);
		assert_int_equal(s->payload_off, RGATE_OFF_NONE);
		assert_int_equal(s->chain_idx, 0);
		assert_int_equal(s->chain_cnt, 1);
		assert_int_equal(s->gap, 0);
		assert_int_equal(s->clock, RGATE_CLOCK_REALTIME);
		assert_int_equal(s->ip_proto, 0);
		assert_int_equal(s->reserved, 0);
		assert_in_range(s->tstamp / 1000000000, now, now + 1);
		for (i = len; i & 63; i++)
			assert_int_equal(d[i], 0);
		rgate_consumer_release(&c);
	}
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static void peek(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	const struct rgate_slot *v[64];
	struct rgate_producer p;
	struct rgate_consumer c;
	uint64_t in = 0;
	unsigned int i;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	assert_int_equal(rgate_consumer_peek(&c, v, 64), 0);
	while (in < 40)
		assert_int_equal(unit_put(&p, in++, 100), 0);
	/* up to the end of the batch, and the same until released */
	assert_int_equal(rgate_consumer_peek(&c, v, 64), 32);
	assert_int_equal(rgate_consumer_peek(&c, v, 5), 5);
	for (i = 0; i < 5; i++)
		assert_int_equal(unit_pattern_check(rgate_slot_data(v[i]), i, 100), 0);
	rgate_consumer_release_n(&c, 5);
	assert_int_equal(rgate_consumer_peek(&c, v, 64), 27);
	assert_int_equal(unit_pattern_check(rgate_slot_data(v[0]), 5, 100), 0);
	rgate_consumer_release_n(&c, 27);
	assert_int_equal(credit(ring, 0), 1);
	assert_int_equal(rgate_consumer_peek(&c, v, 64), 8);
	rgate_consumer_release_n(&c, 8);
	assert_int_equal(credit(ring, 1), 0);
	assert_int_equal(rgate_consumer_peek(&c, v, 64), 0);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

/* A consumer that starts late begins at the oldest batch not returned. */
static void takeover(void **state)
{
	struct rgate_ring *ring = unit_ring(128, 256, 0, RGATE_POLICY_DROP);
	uint64_t in = 0, out = 0, start;
	struct rgate_producer p;
	struct rgate_consumer c;
	unsigned int n;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (start = 0; start < 400; start += 37) {
		while (!unit_put(&p, in, 64))
			in++;
		rgate_producer_flush(&p);
		assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
		/* what the one before had in an unfinished batch comes again */
		out &= ~(uint64_t)(RGATE_BATCH - 1);
		for (n = 0; n < 37; n++)
			expect(&c, out++, 64);
	}
	rgate_producer_fini(&p);
	/* a second producer goes on where the first stopped */
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_false(rgate_ring_retired(ring));
	while (out < in)
		expect(&c, out++, 64);
	assert_int_equal(unit_put(&p, in, 64), 0);
	expect(&c, in, 64);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static void overwrite(void **state)
{
	struct rgate_ring *ring = unit_ring(256, 256, 0, RGATE_POLICY_OVERWRITE);
	const struct rgate_slot *s;
	struct rgate_producer p;
	struct rgate_consumer c;
	struct rgate_stats st;
	uint64_t in = 0, n, got;
	char buf[256];

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	for (; in < 10; in++)
		assert_int_equal(unit_put(&p, in, 64), 0);
	s = rgate_consumer_next(&c);
	assert_non_null(s);
	assert_true(rgate_consumer_intact(&c));
	for (; in < 1000; in++)
		assert_int_equal(unit_put(&p, in, 64), 0);
	/* the frame in hand is gone, and that shows */
	assert_false(rgate_consumer_intact(&c));
	rgate_producer_flush(&p);
	rgate_consumer_resync(&c);
	s = rgate_consumer_next(&c);
	assert_non_null(s);
	memcpy(&n, rgate_slot_data(s), sizeof(n));
	assert_in_range(n, 1000 - 256 + 32, 1000 - 256 + 64);
	assert_int_equal(n % RGATE_BATCH, 0);
	assert_int_equal(rgate_consumer_lost(&c), n);
	for (got = n; got < 1000; got++)
		assert_int_equal(rgate_consumer_copy(&c, NULL, buf, sizeof(buf)), 64);
	assert_int_equal(rgate_consumer_copy(&c, NULL, buf, sizeof(buf)), -EAGAIN);
	rgate_producer_flush(&p);
	rgate_ring_stats(ring, &st);
	assert_int_equal(st.delivered, 1000);
	assert_int_equal(st.dropped_full, 0);
	assert_int_equal(st.overwritten, 1024 - 256);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

/* A slot being overwritten is neither given out nor waited for. */
static void overwrite_busy(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_OVERWRITE);
	struct rgate_producer p;
	struct rgate_consumer c;
	uint64_t in;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	for (in = 0; in < 64; in++)
		assert_int_equal(unit_put(&p, in, 64), 0);
	rgate_producer_flush(&p);
	assert_non_null(rgate_producer_reserve(&p));
	/* it does not sleep on what is not coming */
	assert_int_equal(rgate_consumer_wait(&c, 1000), 1);
	expect(&c, 32, 64);
	assert_int_equal(rgate_consumer_lost(&c), 32);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static void policy_pass(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_PASS);
	struct rgate_producer p;
	struct rgate_stats st;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	while (!unit_put(&p, 0, 64))
		;
	rgate_producer_drop(&p);
	rgate_ring_stats(ring, &st);
	assert_int_equal(st.passed, 1);
	assert_int_equal(st.dropped_full, 0);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static void one_producer(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_producer p, q;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_producer_init(&q, ring), -EBUSY);
	rgate_producer_fini(&p);
	assert_true(rgate_ring_retired(ring));
	assert_int_equal(rgate_producer_init(&q, ring), 0);
	rgate_ring_close(ring);
	/* the producer keeps the memory */
	assert_int_equal(unit_put(&q, 1, 64), 0);
	rgate_producer_fini(&q);
}

static void open_args(void **state)
{
	static const struct {
		struct rgate_ring_opts o;
		int err;
	} bad[] = {
		{ RGATE_OPTS(rgate_ring_opts, .slots = 1), -EINVAL },
		{ RGATE_OPTS(rgate_ring_opts, .slots = 32), -EINVAL },
		{ RGATE_OPTS(rgate_ring_opts, .slots = 65), -EINVAL },
		{ RGATE_OPTS(rgate_ring_opts, .slots = 1U << 21), -EINVAL },
		{ RGATE_OPTS(rgate_ring_opts, .slots = 1U << 31), -EINVAL },
		{ RGATE_OPTS(rgate_ring_opts, .slot_size = 128), -EINVAL },
		{ RGATE_OPTS(rgate_ring_opts, .slot_size = 300), -EINVAL },
		{ RGATE_OPTS(rgate_ring_opts, .slot_size = 1U << 17), -EINVAL },
		{ RGATE_OPTS(rgate_ring_opts, .policy = 4), -EINVAL },
		{ RGATE_OPTS(rgate_ring_opts, .clock = 3), -EINVAL },
		{ RGATE_OPTS(rgate_ring_opts, .flags = 16), -EINVAL },
		{ RGATE_OPTS(rgate_ring_opts, .flags = RGATE_RING_COARSE), -EOPNOTSUPP },
		{ RGATE_OPTS(rgate_ring_opts, .flags = RGATE_RING_RW_SLOTS),
		  -EOPNOTSUPP },
		{ RGATE_OPTS(rgate_ring_opts, .flags = RGATE_RING_TRANSMIT),
		  -EOPNOTSUPP },
		{ RGATE_OPTS(rgate_ring_opts, .name = "a b"), -EINVAL },
		{ RGATE_OPTS(rgate_ring_opts,
			     .name = "0123456789012345678901234567890x"), -EINVAL },
		{ { .sz = 3 }, -EINVAL },
	};
	struct {
		struct rgate_ring_opts o;
		uint64_t more;
	} newer = { .o = RGATE_OPTS(rgate_ring_opts), .more = 1 };
	struct rgate_ring *ring;
	struct rgate_view v;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(rgate_ring_open_memfd(&ring, &bad[i].o), bad[i].err);
	newer.o.sz = sizeof(newer);
	assert_int_equal(rgate_ring_open_memfd(&ring, &newer.o), -E2BIG);
	newer.more = 0;
	assert_int_equal(rgate_ring_open_memfd(&ring, &newer.o), 0);
	rgate_ring_close(ring);
	assert_int_equal(rgate_ring_open_memfd(&ring, NULL), 0);
	rgate_ring_view(ring, &v);
	assert_int_equal(v.nslots, RGATE_SLOTS_DEFAULT);
	assert_int_equal(v.slot_size, RGATE_SLOT_SIZE_DEFAULT);
	assert_int_equal(rgate_ring_id(ring), 0);
	rgate_ring_close(ring);
	rgate_ring_close(NULL);
}

static void consumer_args(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts, .take = 3);
	struct rgate_consumer c;

	(void)state;
	assert_int_equal(rgate_consumer_init(&c, ring, &o), -EINVAL);
	o.take = RGATE_TAKE_STRIDE;
	assert_int_equal(rgate_consumer_init(&c, ring, &o), -EINVAL);
	o.count = 2;
	o.index = 2;
	assert_int_equal(rgate_consumer_init(&c, ring, &o), -EINVAL);
	o.index = 1;
	assert_int_equal(rgate_consumer_init(&c, ring, &o), 0);
	rgate_ring_close(ring);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(laps),
	cmocka_unit_test(credits),
	cmocka_unit_test(run_of_slots),
	cmocka_unit_test(one_lost),
	cmocka_unit_test(header),
	cmocka_unit_test(peek),
	cmocka_unit_test(takeover),
	cmocka_unit_test(overwrite),
	cmocka_unit_test(overwrite_busy),
	cmocka_unit_test(policy_pass),
	cmocka_unit_test(one_producer),
	cmocka_unit_test(open_args),
	cmocka_unit_test(consumer_args),
};

UNIT_MAIN_ALONE(tests)
