// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sleeping and waking: none lost, none for nothing, and an end when there is one. */
#include "unit.h"
#include "consumer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void nap_us(unsigned int us)
{
	struct timespec ts = { 0, (long)us * 1000 };

	nanosleep(&ts, NULL);
}

static uint64_t wakeups(struct rgate_ring *ring)
{
	struct rgate_stats st;

	rgate_ring_stats(ring, &st);
	return st.wakeups;
}

struct ping {
	struct rgate_ring *ring;
	uint64_t n;
	bool by_epoll;
	uint64_t slow;	/* waits that took their whole time: lost wakeups */
};

static int wait_by_epoll(struct rgate_consumer *c, int ep)
{
	struct epoll_event ev;
	int r = rgate_consumer_arm(c);

	if (r)
		return r;
	r = epoll_wait(ep, &ev, 1, 5000);
	rgate_consumer_disarm(c);
	return r;
}

static void *pong(void *arg)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct ping *w = arg;
	struct rgate_consumer c;
	uint64_t i = 0;
	int ep = epoll_create1(EPOLL_CLOEXEC);

	unit_require(ep >= 0);
	unit_require(!epoll_ctl(ep, EPOLL_CTL_ADD, rgate_ring_fd(w->ring), &ev));
	unit_require(!rgate_consumer_init(&c, w->ring, NULL));
	while (i < w->n) {
		const struct rgate_slot *s = rgate_consumer_next(&c);

		if (s) {
			unit_require(!unit_pattern_check(rgate_slot_data(s), i, s->len));
			rgate_consumer_release(&c);
			i++;
			continue;
		}
		if (!(w->by_epoll ? wait_by_epoll(&c, ep) :
		      rgate_consumer_wait(&c, 5000)))
			w->slow++;
	}
	close(ep);
	return NULL;
}

/*
 * One frame and a flush at a time, at moments that hit every place in the
 * consumer's way to sleep.
 */
static void stress(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct ping w = { .n = unit_rounds(40000), .by_epoll = *state != NULL };
	struct rgate_producer p;
	uint64_t i, seed = 5, spin;
	pthread_t th;

	assert_int_equal(rgate_ring_dup(&w.ring, ring), 0);
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(pthread_create(&th, NULL, pong, &w), 0);
	for (i = 0; i < w.n; i++) {
		while (unit_put(&p, i, 8 + i % 64)) {
			rgate_producer_flush(&p);
			nap_us(1);
		}
		rgate_producer_flush(&p);
		for (spin = unit_random(&seed) % 2000; spin; spin--)
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (!(i % 512))
			nap_us(100);
	}
	pthread_join(th, NULL);
	assert_int_equal(w.slow, 0);
	assert_true(wakeups(ring) > 0);
	rgate_producer_fini(&p);
	rgate_ring_close(w.ring);
	rgate_ring_close(ring);
}

/*
 * One frame there, one frame back: with nothing else under way, no later flush makes up
 * for a wakeup that is lost.
 */
struct side {
	struct rgate_ring *to;		/* this side is its producer */
	struct rgate_ring *from;
	uint64_t n;
	bool first;
	uint64_t lost;
};

static void *play(void *arg)
{
	struct side *me = arg;
	struct rgate_producer p;
	struct rgate_consumer c;
	uint64_t i;

	unit_require(!rgate_producer_init(&p, me->to));
	unit_require(!rgate_consumer_init(&c, me->from, NULL));
	for (i = 0; i < me->n && !me->lost; i++) {
		if (me->first) {
			unit_require(!unit_put(&p, i, 8 + i % 64));
			rgate_producer_flush(&p);
		}
		if (rgate_consumer_wait(&c, 3000 * (int)unit_patience()) != 1) {
			me->lost++;
			break;
		}
		const struct rgate_slot *s = rgate_consumer_next(&c);

		unit_require(s && !unit_pattern_check(rgate_slot_data(s), i, s->len));
		rgate_consumer_release(&c);
		if (!me->first) {
			unit_require(!unit_put(&p, i, 8 + i % 64));
			rgate_producer_flush(&p);
		}
	}
	rgate_producer_fini(&p);
	return NULL;
}

static void ping_pong(void **state)
{
	struct rgate_ring *there = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_ring *back = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct side a = { .to = there, .n = unit_rounds(20000), .first = true };
	struct side b = { .from = NULL, .to = back, .n = a.n };
	pthread_t th;

	(void)state;
	assert_int_equal(rgate_ring_dup(&a.from, back), 0);
	assert_int_equal(rgate_ring_dup(&b.from, there), 0);
	assert_int_equal(pthread_create(&th, NULL, play, &b), 0);
	play(&a);
	pthread_join(th, NULL);
	assert_int_equal(a.lost, 0);
	assert_int_equal(b.lost, 0);
	rgate_ring_close(a.from);
	rgate_ring_close(b.from);
	rgate_ring_close(there);
	rgate_ring_close(back);
}

#define LINES	48

/*
 * The fences of waking, as a litmus test: in each round one side arms while the other
 * publishes and flushes. Either the first sees the frame or the second sees the sleeper.
 */
struct litmus {
	struct rgate_ring *ring;
	uint64_t round;		/* begun by the producer */
	uint64_t armed_in;	/* ended by the consumer */
	int armed;		/* what arming returned */
	bool at;		/* rgate_consumer_arm_at() */
	int lead;		/* of the consumer, changed so that it sleeps every other time */
	bool end;
	uint64_t clutter[2][LINES][8];
};

static void await(const uint64_t *word, uint64_t value, const bool *end)
{
	unsigned int i;

	for (i = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) < value; i++) {
		if (__atomic_load_n(end, __ATOMIC_RELAXED))
			return;
		/* the other may have no CPU */
		if (!(i % 4096))
			sched_yield();
	}
}

static void dawdle(int least, uint64_t *seed)
{
	uint64_t i;

	for (i = (uint64_t)(least > 0 ? least : 0) + unit_random(seed) % 16; i; i--)
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Stores that wait for lines which the other side has: those that follow wait behind them
 * in the store buffer, and what is loaded meanwhile overtakes them for long.
 */
static void clutter(struct litmus *l, unsigned int side)
{
	unsigned int i;

	for (i = 0; i < LINES; i++)
		__atomic_store_n(&l->clutter[side][i][0], i, __ATOMIC_RELAXED);
}

static void fetch(struct litmus *l, unsigned int side)
{
	unsigned int i;

	for (i = 0; i < LINES; i++)
		(void)__atomic_load_n(&l->clutter[side][i][0], __ATOMIC_RELAXED);
}

static void *arm_in_rounds(void *arg)
{
	struct litmus *l = arg;
	struct rgate_consumer c;
	uint64_t r, seed = 7;

	unit_require(!rgate_consumer_init(&c, l->ring, NULL));
	for (r = 1;; r++) {
		await(&l->round, r, &l->end);
		if (__atomic_load_n(&l->end, __ATOMIC_RELAXED))
			return NULL;
		dawdle(-l->lead, &seed);
		clutter(l, 0);
		l->armed = l->at ? rgate_consumer_arm_at(&c, r / 2) : rgate_consumer_arm(&c);
		__atomic_store_n(&l->armed_in, r, __ATOMIC_RELEASE);
		fetch(l, 1);
		/* the producer has looked for sleepers by then */
		await(&l->round, r + 1, &l->end);
		if (__atomic_load_n(&l->end, __ATOMIC_RELAXED))
			return NULL;
		if (!l->armed)
			rgate_consumer_disarm(&c);
		unit_require(rgate_consumer_next(&c));
		rgate_consumer_release(&c);
		__atomic_store_n(&l->armed_in, ++r, __ATOMIC_RELEASE);
	}
}

static void fences(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct litmus l = { .at = *state != NULL };
	uint64_t i, woken, rounds = unit_slow() ? 2000 : 100000, seed = 3, lost = 0, slept = 0;
	uint64_t end;
	struct rgate_producer p;
	pthread_t th;

	assert_int_equal(rgate_ring_dup(&l.ring, ring), 0);
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(pthread_create(&th, NULL, arm_in_rounds, &l), 0);
	/* Where others take the CPUs, the two seldom run at once, and slowly. */
	end = unit_now_ns() + 5000000000;
	for (i = 0; i < rounds && !lost && unit_now_ns() < end; i++) {
		woken = wakeups(ring);
		__atomic_store_n(&l.round, 2 * i + 1, __ATOMIC_RELEASE);
		dawdle(l.lead, &seed);
		clutter(&l, 1);
		assert_int_equal(unit_put(&p, i, 8), 0);
		rgate_producer_flush(&p);
		fetch(&l, 0);
		await(&l.armed_in, 2 * i + 1, &l.end);
		slept += !l.armed;
		/* here they meet: one sees the other, or just not */
		l.lead += l.armed ? 1 : -1;
		lost += !l.armed && wakeups(ring) == woken;
		__atomic_store_n(&l.round, 2 * i + 2, __ATOMIC_RELEASE);
		await(&l.armed_in, 2 * i + 2, &l.end);
	}
	__atomic_store_n(&l.end, true, __ATOMIC_RELAXED);
	pthread_join(th, NULL);
	print_message("# %llu of %llu rounds slept\n", (unsigned long long)slept,
		      (unsigned long long)i);
	assert_int_equal(lost, 0);
	rgate_producer_fini(&p);
	rgate_ring_close(l.ring);
	rgate_ring_close(ring);
}

/* A consumer that is awake costs the producer nothing. */
static void awake(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_producer p;
	struct rgate_consumer c;
	uint64_t i;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	for (i = 0; i < 1000; i++) {
		assert_int_equal(unit_put(&p, i, 64), 0);
		rgate_producer_flush(&p);
		assert_non_null(rgate_consumer_next(&c));
		rgate_consumer_release(&c);
	}
	assert_int_equal(wakeups(ring), 0);
	assert_false(rgate_producer_sleepers(&p));
	/* and one that sleeps is woken once */
	assert_int_equal(rgate_consumer_arm(&c), 0);
	assert_true(rgate_producer_sleepers(&p));
	for (i = 0; i < 10; i++) {
		assert_int_equal(unit_put(&p, i, 64), 0);
		rgate_producer_flush(&p);
	}
	assert_int_equal(wakeups(ring), 1);
	rgate_consumer_disarm(&c);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static bool readable(struct rgate_ring *ring)
{
	struct pollfd pfd = { .fd = rgate_ring_fd(ring), .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static void arm_and_disarm(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_producer p;
	struct rgate_consumer c;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	assert_int_equal(rgate_consumer_arm(&c), 0);
	assert_false(readable(ring));
	assert_int_equal(unit_put(&p, 0, 64), 0);
	assert_false(readable(ring));	/* not before the flush that is owed */
	rgate_producer_flush(&p);
	assert_true(readable(ring));
	rgate_consumer_disarm(&c);
	assert_false(readable(ring));
	assert_int_equal(rgate_consumer_arm(&c), 1);
	assert_non_null(rgate_consumer_next(&c));
	rgate_consumer_release(&c);
	assert_int_equal(rgate_consumer_arm(&c), 0);
	rgate_producer_fini(&p);
	assert_true(readable(ring));
	rgate_consumer_disarm(&c);
	assert_int_equal(rgate_consumer_arm(&c), -EPIPE);
	assert_int_equal(rgate_consumer_wait(&c, -1), -EPIPE);
	rgate_ring_close(ring);
}

static void timeouts(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts,
						  .spin_us = 1000000);
	struct rusage a, b;
	struct rgate_producer p;
	struct rgate_consumer c;
	unsigned int i;
	uint64_t t;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	assert_int_equal(rgate_consumer_wait(&c, 0), 0);
	t = unit_now_ns();
	getrusage(RUSAGE_THREAD, &a);
	assert_int_equal(rgate_consumer_wait(&c, 50), 0);
	getrusage(RUSAGE_THREAD, &b);
	t = unit_now_ns() - t;
	assert_true(t >= 50000000 && t < 5000000000);
	/* asleep, not spinning */
	assert_true(b.ru_nvcsw > a.ru_nvcsw);
	/* Spinning for 1 s is bounded by the timeout. Others may have the CPU for as long,
	 * but not each time.
	 */
	for (i = 0; i < 10; i++) {
		assert_int_equal(rgate_consumer_init(&c, ring, &o), 0);
		t = unit_now_ns();
		assert_int_equal(rgate_consumer_wait(&c, 1), 0);
		if (unit_now_ns() - t < 900000000)
			break;
	}
	assert_true(i < 10);
	assert_int_equal(unit_put(&p, 0, 64), 0);
	assert_int_equal(rgate_consumer_wait(&c, 0), 1);
	assert_int_equal(rgate_consumer_wait(&c, -1), 1);
	rgate_producer_fini(&p);
	/* what is left is taken before the end is told */
	assert_int_equal(rgate_consumer_wait(&c, -1), 1);
	assert_non_null(rgate_consumer_next(&c));
	rgate_consumer_release(&c);
	assert_int_equal(rgate_consumer_wait(&c, -1), -EPIPE);
	rgate_ring_close(ring);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static int child_interrupted(int sock, void *arg)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct itimerspec it = { .it_value = { 0, 50000000 },
				 .it_interval = { 0, 50000000 } };
	struct rgate_ring *mine;
	struct rgate_consumer c;
	timer_t t;

	(void)arg;
	unit_require(!rgate_ring_recv(&mine, sock));
	unit_require(!rgate_consumer_init(&c, mine, NULL));
	sigaction(SIGALRM, &sa, NULL);
	unit_require(!timer_create(CLOCK_MONOTONIC, NULL, &t));
	unit_require(!timer_settime(t, 0, &it, NULL));
	unit_require(rgate_consumer_wait(&c, 10000) == -EINTR);
	rgate_ring_close(mine);
	return 0;
}

static void interrupted(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	int sock, pid = unit_fork(child_interrupted, NULL, &sock);

	(void)state;
	assert_int_equal(rgate_ring_send(ring, sock), 0);
	unit_reap(pid, 0);
	close(sock);
	rgate_ring_close(ring);
}

/* A producer that is killed cannot say so; its consumers learn it all the same. */
static int child_producer(int sock, void *arg)
{
	struct rgate_ring *ring;
	struct rgate_producer p;
	uint64_t i;

	(void)arg;
	unit_require(!rgate_ring_open_memfd(&ring, NULL));
	unit_require(!rgate_producer_init(&p, ring));
	unit_require(!rgate_ring_send(ring, sock));
	for (i = 0; i < 5; i++)
		unit_require(!unit_put(&p, i, 64));
	rgate_producer_flush(&p);
	pause();
	return 1;
}

static void producer_killed(void **state)
{
	struct rgate_ring *ring;
	struct rgate_consumer c;
	int sock, pid, i;

	(void)state;
	pid = unit_fork(child_producer, NULL, &sock);
	assert_int_equal(rgate_ring_recv(&ring, sock), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	for (i = 0; i < 5; i++) {
		assert_int_equal(rgate_consumer_wait(&c, 10000), 1);
		assert_non_null(rgate_consumer_next(&c));
		rgate_consumer_release(&c);
	}
	assert_int_equal(rgate_consumer_wait(&c, 10), 0);
	kill(pid, SIGKILL);
	assert_int_equal(rgate_consumer_wait(&c, 10000), -EPIPE);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(sock);
	rgate_ring_close(ring);
}

static const struct CMUnitTest tests[] = {
	{ "stress_poll", stress, NULL, NULL, NULL },
	{ "stress_epoll", stress, NULL, NULL, (void *)1 },
	cmocka_unit_test(ping_pong),
	{ "fences_arm", fences, NULL, NULL, NULL },
	{ "fences_arm_at", fences, NULL, NULL, (void *)1 },
	cmocka_unit_test(awake),
	cmocka_unit_test(arm_and_disarm),
	cmocka_unit_test(timeouts),
	cmocka_unit_test(interrupted),
	cmocka_unit_test(producer_killed),
};

UNIT_MAIN(tests)
