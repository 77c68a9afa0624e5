// SPDX-License-Identifier: MIT OR GPL-2.0
/* A producer that laps its consumers: no torn frame is ever taken for a whole one. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

struct racer {
	struct rgate_ring *ring;
	struct rgate_consumer_opts o;
	uint64_t good;
	uint64_t slots;		/* of those frames */
	uint64_t lost;
	pthread_t th;
	bool began;
};

static void *consume(void *arg)
{
	static __thread unsigned char buf[32 * 192];
	struct racer *w = arg;
	struct rgate_slot hdr;
	struct rgate_consumer c;
	uint64_t last = 0, i;
	long n;

	unit_require(!rgate_consumer_init(&c, w->ring, &w->o));
	__atomic_store_n(&w->began, true, __ATOMIC_RELEASE);
	for (;;) {
		n = rgate_consumer_copy(&c, &hdr, buf, sizeof(buf));
		if (n < 0) {
			const int r = rgate_consumer_wait(&c, 5000);

			/* never sleeps on what is not coming */
			unit_require(r != 0);
			if (r == -EPIPE)
				break;
			continue;
		}
		unit_require(n >= 8 && hdr.wire_len == n && hdr.len <= n);
		memcpy(&i, buf, sizeof(i));
		unit_require(!unit_pattern_check(buf, i, (size_t)n));
		unit_require(!w->good || i > last);
		last = i;
		w->slots += hdr.chain_cnt;
		__atomic_add_fetch(&w->good, 1, __ATOMIC_RELAXED);
	}
	w->lost = rgate_consumer_lost(&c);
	return NULL;
}

static void race(uint32_t take, unsigned int workers, uint32_t slots)
{
	struct rgate_ring *ring;
	static unsigned char frame[32 * 192];
	uint64_t i, n = unit_rounds(400000), good = 0, taken = 0, head;
	uint64_t padded;
	struct racer w[4];
	struct rgate_producer p;
	unsigned int k;

	unit_not_for_tsan(UNIT_TSAN_SEQLOCK);
	ring = unit_ring(slots, 256, RGATE_RING_CHAIN, RGATE_POLICY_OVERWRITE);
	for (k = 0; k < workers; k++) {
		w[k] = (struct racer){
			.o = RGATE_OPTS(rgate_consumer_opts, .take = take, .index = k,
					.count = workers),
		};
		assert_int_equal(rgate_ring_dup(&w[k].ring, ring), 0);
		assert_int_equal(pthread_create(&w[k].th, NULL, consume, &w[k]), 0);
	}
	/* who begins later has not lost what was overwritten before */
	for (k = 0; k < workers; k++)
		while (!__atomic_load_n(&w[k].began, __ATOMIC_ACQUIRE))
			sched_yield();
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (i = 0; i < n || __atomic_load_n(&w[0].good, __ATOMIC_RELAXED) < 10; i++) {
		size_t len = i % 7 ? 8 + i % 185 : 8 + i % 2000;

		unit_pattern(frame, i, len);
		assert_int_equal(rgate_producer_write(&p, NULL, frame, len, len), 0);
		if (!(i % 64)) {
			rgate_producer_flush(&p);
			if (!(i % 4096))
				sched_yield();
		}
	}
	head = p.head;
	padded = p.stats.padded;
	rgate_producer_fini(&p);
	for (k = 0; k < workers; k++) {
		pthread_join(w[k].th, NULL);
		good += w[k].good;
		taken += w[k].slots + w[k].lost;
		rgate_ring_close(w[k].ring);
	}
	assert_true(good > 0 && good <= i);
	/* what was not taken is known to be lost, or a filler */
	print_message("# %llu of %llu slots, %llu fillers\n", (unsigned long long)taken,
		      (unsigned long long)head, (unsigned long long)padded);
	assert_true(taken <= head + (uint64_t)workers * slots);
	assert_true(taken + padded + (uint64_t)workers * slots >= head);
	rgate_ring_close(ring);
}

/* One who was overtaken finds what is there in one look, not by asking again. */
static void found_at_once(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_OVERWRITE);
	const struct rgate_slot *s;
	struct rgate_producer p;
	struct rgate_consumer c;
	uint64_t i;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	for (i = 0; i < 200; i++)
		assert_int_equal(unit_put(&p, i, 64), 0);
	rgate_producer_flush(&p);
	s = rgate_consumer_next(&c);
	assert_non_null(s);
	assert_int_equal(unit_pattern_check(rgate_slot_data(s), rgate_consumer_lost(&c), 64), 0);
	rgate_consumer_release(&c);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static void alone(void **state)
{
	(void)state;
	race(RGATE_TAKE_ALL, 1, 64);
}

static void alone_larger(void **state)
{
	(void)state;
	race(RGATE_TAKE_ALL, 1, 512);
}

static void stride(void **state)
{
	(void)state;
	race(RGATE_TAKE_STRIDE, 2, 256);
}

static void shared(void **state)
{
	(void)state;
	race(RGATE_TAKE_SHARED, 3, 256);
}

/*
 * A slot that is busy for the next lap is not "not yet": the frames behind it are
 * there, and would wait for the producer's next one.
 */
static void busy(uint32_t take)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_OVERWRITE);
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts, .take = take,
						  .count = 1);
	unsigned char buf[192];
	struct rgate_producer p;
	struct rgate_consumer c;
	uint64_t i;

	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, &o), 0);
	for (i = 0; i < 64; i++)
		assert_int_equal(unit_put(&p, i, 64), 0);
	rgate_producer_flush(&p);
	assert_non_null(rgate_producer_reserve(&p));	/* marks it busy */
	for (i = 32; i < 64; i++) {
		assert_int_equal(rgate_consumer_wait(&c, 0), 1);
		assert_int_equal(rgate_consumer_copy(&c, NULL, buf, sizeof(buf)), 64);
		assert_int_equal(unit_pattern_check(buf, i, 64), 0);
	}
	assert_int_equal(rgate_consumer_lost(&c), 32);
	assert_int_equal(rgate_consumer_wait(&c, 0), 0);
	assert_int_equal(unit_put(&p, 64, 64), 0);
	assert_int_equal(rgate_consumer_copy(&c, NULL, buf, sizeof(buf)), 64);
	assert_int_equal(unit_pattern_check(buf, 64, 64), 0);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static void busy_all(void **state)
{
	(void)state;
	busy(RGATE_TAKE_ALL);
}

static void busy_shared(void **state)
{
	(void)state;
	busy(RGATE_TAKE_SHARED);
}

static void busy_stride(void **state)
{
	(void)state;
	busy(RGATE_TAKE_STRIDE);
}

/* The same for one that never calls rgate_consumer_wait() */
static void busy_polled(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_OVERWRITE);
	const struct rgate_slot *s;
	struct rgate_producer p;
	struct rgate_consumer c;
	uint64_t i;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	for (i = 0; i < 64; i++)
		assert_int_equal(unit_put(&p, i, 64), 0);
	rgate_producer_flush(&p);
	assert_non_null(rgate_producer_reserve(&p));
	s = rgate_consumer_next(&c);
	assert_non_null(s);
	assert_int_equal(unit_pattern_check(rgate_slot_data(s), 32, 64), 0);
	assert_int_equal(rgate_consumer_lost(&c), 32);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(found_at_once),
	cmocka_unit_test(alone),
	cmocka_unit_test(alone_larger),
	cmocka_unit_test(stride),
	cmocka_unit_test(shared),
	cmocka_unit_test(busy_all),
	cmocka_unit_test(busy_shared),
	cmocka_unit_test(busy_stride),
	cmocka_unit_test(busy_polled),
};

UNIT_MAIN(tests)
