// SPDX-License-Identifier: MIT OR GPL-2.0
/* New memory while traffic runs, in this process and in others. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void simple(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP), *d;
	struct rgate_producer p;
	struct rgate_consumer c;
	struct rgate_stats st;
	struct rgate_view v;

	(void)state;
	assert_int_equal(rgate_ring_dup(&d, ring), 0);
	assert_int_equal(rgate_ring_remap(ring), 0);
	assert_int_equal(rgate_ring_resize(ring, 63, 256), -EINVAL);
	/* without a producer, at once */
	assert_int_equal(rgate_ring_resize(ring, 128, 512), 0);
	assert_true(rgate_ring_retired(ring));
	assert_int_equal(rgate_ring_remap(ring), 1);
	assert_false(rgate_ring_retired(ring));
	rgate_ring_view(ring, &v);
	assert_int_equal(v.nslots, 128);
	assert_int_equal(v.slot_size, 512);
	assert_int_equal(v.generation, 2);

	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	assert_int_equal(unit_put(&p, 0, 400), 0);
	assert_int_equal(unit_put(&p, 1, 400), 0);
	assert_int_equal(rgate_ring_resize(d, 256, 1024), 0);
	assert_false(rgate_ring_retired(ring));	/* the producer has to come by */
	rgate_producer_flush(&p);
	assert_true(rgate_ring_retired(ring));
	assert_int_equal(rgate_producer_room(&p), 1024 - 64);
	assert_int_equal(unit_put(&p, 2, 900), 0);
	rgate_producer_flush(&p);

	assert_int_equal(unit_pattern_check(rgate_slot_data(rgate_consumer_next(&c)),
					    0, 400), 0);
	rgate_consumer_release(&c);
	assert_int_equal(rgate_consumer_wait(&c, 0), 1);
	assert_non_null(rgate_consumer_next(&c));
	rgate_consumer_release(&c);
	assert_null(rgate_consumer_next(&c));
	assert_int_equal(rgate_consumer_wait(&c, -1), 1);
	assert_int_equal(unit_pattern_check(rgate_slot_data(rgate_consumer_next(&c)),
					    2, 900), 0);
	rgate_consumer_release(&c);
	/* counters went on, positions began anew */
	rgate_ring_stats(ring, &st);
	assert_int_equal(st.delivered, 3);
	rgate_ring_view(ring, &v);
	assert_int_equal(v.prod->head, 1);
	assert_int_equal(v.generation, 3);
	/* the other handle skips what it did not map */
	assert_int_equal(rgate_ring_remap(d), 1);
	rgate_ring_view(d, &v);
	assert_int_equal(v.generation, 3);
	/* asked for twice before the producer comes by: the last one counts */
	assert_int_equal(rgate_ring_resize(ring, 64, 256), 0);
	assert_int_equal(rgate_ring_resize(ring, 512, 256), 0);
	rgate_producer_fini(&p);
	assert_int_equal(rgate_ring_remap(d), 1);
	rgate_ring_view(d, &v);
	assert_int_equal(v.nslots, 512);
	rgate_ring_close(d);
	rgate_ring_close(ring);
}

static uint64_t frames;

static void take_all(struct rgate_ring *ring)
{
	struct rgate_consumer c;
	uint64_t i = 0;
	int r;

	unit_require(!rgate_consumer_init(&c, ring, NULL));
	for (;;) {
		const struct rgate_slot *s = rgate_consumer_next(&c);

		if (s) {
			unit_require(!unit_pattern_check(rgate_slot_data(s), i++, s->len));
			rgate_consumer_release(&c);
			continue;
		}
		r = rgate_consumer_wait(&c, 10000);
		if (r == -EPIPE)
			break;
		unit_require(r == 1);
	}
	unit_require(i == frames);
}

static void *taker(void *arg)
{
	take_all(arg);
	return NULL;
}

static int child_taker(int sock, void *arg)
{
	struct rgate_ring *ring;

	(void)arg;
	unit_require(!rgate_ring_recv(&ring, sock));
	/* the generation it starts from is read before the first resize */
	unit_require(write(sock, "x", 1) == 1);
	take_all(ring);
	rgate_ring_close(ring);
	return 0;
}

/*
 * A producer that resizes again and again, each time once its consumer has
 * followed: no frame is lost.
 */
static void produce(struct rgate_ring *ring, struct rgate_producer *p)
{
	uint64_t i, at = 97, seed = 9;
	uint32_t slots;

	for (i = 0; i < frames; i++) {
		while (unit_put(p, i, 8 + i % 180)) {
			rgate_producer_flush(p);
			sched_yield();
		}
		if (i != at)
			continue;
		rgate_producer_flush(p);
		slots = 64U << unit_random(&seed) % 5;
		assert_int_equal(rgate_ring_resize(ring, slots, 256), 0);
		rgate_producer_flush(p);
		assert_int_equal(rgate_ring_remap(ring), 1);
		/* at least a whole ring later, so that it was read from this one */
		at += 3000;
	}
}

static void by_thread(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP), *d;
	struct rgate_producer p;
	pthread_t th;

	(void)state;
	frames = unit_rounds(100000);
	assert_int_equal(rgate_ring_dup(&d, ring), 0);
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(pthread_create(&th, NULL, taker, d), 0);
	produce(ring, &p);
	rgate_producer_fini(&p);
	pthread_join(th, NULL);
	rgate_ring_close(d);
	rgate_ring_close(ring);
}

static void by_process(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_producer p;
	int sock, pid;
	char x;

	(void)state;
	frames = unit_rounds(100000);
	pid = unit_fork(child_taker, NULL, &sock);
	assert_int_equal(rgate_ring_send(ring, sock), 0);
	assert_int_equal(read(sock, &x, 1), 1);
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	produce(ring, &p);
	rgate_producer_fini(&p);
	unit_reap(pid, 0);
	close(sock);
	rgate_ring_close(ring);
}

/*
 * Who does not look for so long that the socket fills up does not get the last memory:
 * then that is an error, at once, and not a wait for frames that come elsewhere.
 */
static void not_told(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP), *far;
	struct rgate_consumer c;
	struct rgate_producer p;
	unsigned int i;
	int sv[2], r;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(rgate_ring_send(ring, sv[0]), 0);
	assert_int_equal(rgate_ring_recv(&far, sv[1]), 0);
	assert_int_equal(rgate_consumer_init(&c, far, NULL), 0);
	for (i = 0; i < 1500; i++)
		assert_int_equal(rgate_ring_resize(ring, 64U << (i & 1), 256), 0);
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	unit_put(&p, 1, 100);
	rgate_producer_flush(&p);
	/* It may have got some of the memories between, and follow these. */
	for (i = 0; i < 1500; i++) {
		r = rgate_consumer_wait(&c, 5000);
		if (r)
			break;
	}
	assert_int_equal(r, -ESTALE);
	assert_null(rgate_consumer_next(&c));
	rgate_producer_fini(&p);
	rgate_ring_close(far);
	rgate_ring_close(ring);
	close(sv[0]);
	close(sv[1]);
}

/* Memories that were sent and never mapped: none of their descriptors stays open. */
static void overtaken(void **state)
{
	const unsigned int fds = unit_entries("/proc/self/fd"), maps = unit_mappings("ringgate");
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP), *far;
	unsigned int open, i;
	struct rgate_view v;
	int sv[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(rgate_ring_send(ring, sv[0]), 0);
	assert_int_equal(rgate_ring_recv(&far, sv[1]), 0);
	open = unit_entries("/proc/self/fd");
	for (i = 0; i < 4; i++)
		assert_int_equal(rgate_ring_resize(ring, 64U << (i & 1), 256), 0);
	/* The last one counts, and it is all that is open, until it is mapped. */
	assert_int_equal(rgate_ring_remap(far), 1);
	rgate_ring_view(far, &v);
	assert_int_equal(v.nslots, 128);
	assert_int_equal(v.generation, 5);
	assert_int_equal(rgate_ring_remap(ring), 1);
	assert_int_equal(unit_entries("/proc/self/fd"), open);
	for (i = 0; i < 3; i++)
		assert_int_equal(rgate_ring_resize(ring, 64U << (i & 1), 256), 0);
	assert_true(rgate_ring_retired(far));
	rgate_ring_close(far);
	rgate_ring_close(ring);
	close(sv[0]);
	close(sv[1]);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
	assert_int_equal(unit_mappings("ringgate"), maps);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(simple),
	cmocka_unit_test(overtaken),
	cmocka_unit_test(not_told),
	cmocka_unit_test(by_thread),
	cmocka_unit_test(by_process),
};

UNIT_MAIN(tests)
