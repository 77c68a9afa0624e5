// SPDX-License-Identifier: MIT OR GPL-2.0
/* How long waiters poll: by the machine, by the option, and by what came of it. */
#include "unit.h"
#include "spin.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

static void limits(void **state)
{
	(void)state;
	/* none where the waiter would take the CPU of who it waits for */
	assert_int_equal(rgate_spin_limit(0, 1), 0);
	assert_int_equal(rgate_spin_limit(0, 2), 0);
	assert_int_equal(rgate_spin_limit(0, 3), 50000);
	assert_int_equal(rgate_spin_limit(0, 512), 50000);
	assert_int_equal(rgate_spin_limit(7, 1), 7000);
	assert_int_equal(rgate_spin_limit(RGATE_SPIN_MOST, 2), 1000000000);
	assert_int_equal(rgate_spin_limit(RGATE_SPIN_NONE, 512), 0);
}

static void options(void **state)
{
	struct rgate_spin spin;

	(void)state;
	assert_int_equal(rgate_spin_init(&spin, RGATE_SPIN_MOST + 1), -EINVAL);
	assert_int_equal(rgate_spin_init(&spin, RGATE_SPIN_NONE - 1), -EINVAL);
	assert_int_equal(rgate_spin_init(&spin, RGATE_SPIN_MOST), 0);
	assert_int_equal(spin.most_ns, 1000000000);
	assert_int_equal(rgate_spin_init(&spin, 20), 0);
	assert_int_equal(spin.ns, 20000);
}

static void learning(void **state)
{
	struct rgate_spin spin;

	(void)state;
	assert_int_equal(rgate_spin_init(&spin, 40), 0);
	/* what takes longer than the limit is not worth it */
	rgate_spin_learn(&spin, 40001);
	assert_int_equal(spin.ns, 20000);
	rgate_spin_learn(&spin, UINT64_MAX);
	assert_int_equal(spin.ns, 10000);
	/* what came while it polled says nothing new */
	rgate_spin_learn(&spin, 10000);
	assert_int_equal(spin.ns, 10000);
	rgate_spin_learn(&spin, 1);
	assert_int_equal(spin.ns, 10000);
	/* and a bit later: it would have paid to poll for longer */
	rgate_spin_learn(&spin, 10001);
	assert_int_equal(spin.ns, 20000);
	rgate_spin_learn(&spin, 40000);
	rgate_spin_learn(&spin, 40000);
	assert_int_equal(spin.ns, 40000);
	/* down to none, and up again from there */
	rgate_spin_learn(&spin, 50000);
	rgate_spin_learn(&spin, 50000);
	rgate_spin_learn(&spin, 50000);
	assert_int_equal(spin.ns, 5000);
	rgate_spin_learn(&spin, 50000);
	assert_int_equal(spin.ns, 0);
	rgate_spin_learn(&spin, 40001);
	assert_int_equal(spin.ns, 0);
	rgate_spin_learn(&spin, 40000);
	assert_int_equal(spin.ns, 5000);
	/* never beyond the limit, be it less than where it begins */
	assert_int_equal(rgate_spin_init(&spin, 3), 0);
	rgate_spin_learn(&spin, 4000);
	assert_int_equal(spin.ns, 0);
	rgate_spin_learn(&spin, 3000);
	assert_int_equal(spin.ns, 3000);
	assert_int_equal(rgate_spin_init(&spin, RGATE_SPIN_NONE), 0);
	rgate_spin_learn(&spin, 0);
	rgate_spin_learn(&spin, 1);
	assert_int_equal(spin.ns, 0);
}

static struct rgate_waits waits_of(const struct rgate_consumer *c)
{
	struct rgate_waits w = { .sz = sizeof(w) };

	assert_int_equal(rgate_consumer_waits(c, &w), 0);
	return w;
}

/* Waits that end by their timeouts, far beyond the limit */
static void consumer(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts,
						  .spin_us = RGATE_SPIN_NONE);
	struct rgate_waits w = { .sz = 4 };
	struct rgate_producer p;
	struct rgate_consumer c;
	unsigned int i;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	/* told to: it sleeps at once */
	assert_int_equal(rgate_consumer_init(&c, ring, &o), 0);
	assert_int_equal(rgate_consumer_wait(&c, 1), 0);
	assert_int_equal(waits_of(&c).spins, 0);
	assert_int_equal(waits_of(&c).sleeps, 1);
	assert_int_equal(rgate_consumer_waits(&c, &w), -EINVAL);
	/* it polls for less after each time for nothing, and then not at all */
	o.spin_us = 20;
	assert_int_equal(rgate_consumer_init(&c, ring, &o), 0);
	for (i = 0; i < 6; i++)
		assert_int_equal(rgate_consumer_wait(&c, 1), 0);
	w = waits_of(&c);
	assert_int_equal(w.limit_ns, 20000);
	assert_int_equal(w.spin_ns, 0);
	assert_int_equal(w.spins, 3);	/* 20, 10, 5 us */
	assert_int_equal(w.hits, 0);
	assert_int_equal(w.sleeps, 6);
	/* neither for what is there, nor where it may not wait */
	o.spin_us = RGATE_SPIN_MOST;
	assert_int_equal(rgate_consumer_init(&c, ring, &o), 0);
	assert_int_equal(rgate_consumer_wait(&c, 0), 0);
	assert_int_equal(unit_put(&p, 0, 64), 0);
	assert_int_equal(rgate_consumer_wait(&c, -1), 1);
	w = waits_of(&c);
	assert_int_equal(w.spins + w.sleeps, 0);
	o.spin_us = RGATE_SPIN_MOST + 1;
	assert_int_equal(rgate_consumer_init(&c, ring, &o), -EINVAL);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

/* A clock that goes on by 1 us when it is read, and polls that only say what was asked */
static struct {
	bool on;
	uint64_t now;
	unsigned int reads;
	struct rgate_producer *then;	/* a frame comes with the 10th reading */
	int polled;
} fake;

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (!fake.on)
		return __real_clock_gettime(clock, ts);
	fake.now += 1000;
	*ts = (struct timespec){ .tv_sec = 1, .tv_nsec = (long)fake.now };
	if (++fake.reads == 10 && fake.then) {
		(void)unit_put(fake.then, 0, 64);
		rgate_producer_flush(fake.then);
	}
	return 0;
}

int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	if (!fake.on)
		return __real_poll(fds, n, ms);
	fake.polled = ms;
	/* time goes by */
	fake.now += ms > 0 ? (uint64_t)ms * 1000000 : 0;
	if (ms < 0)
		(void)unit_put(fake.then, 0, 64);
	return ms < 0;
}

/* It polls until the limit, and sleeps until the timeout. */
static void how_long(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts, .spin_us = 20);
	struct rgate_producer p;
	struct rgate_consumer c;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, &o), 0);
	memset(&fake, 0, sizeof(fake));
	fake.then = &p;
	fake.on = true;
	assert_int_equal(rgate_consumer_wait(&c, 1000), 1);
	fake.on = false;
	assert_int_equal(fake.reads, 10);
	assert_int_equal(waits_of(&c).hits, 1);
	assert_int_equal(waits_of(&c).sleeps, 0);
	assert_non_null(rgate_consumer_next(&c));
	rgate_consumer_release(&c);

	/* 20 us: 20 readings, then to sleep for the rest of 5 ms, rounded up */
	memset(&fake, 0, sizeof(fake));
	fake.on = true;
	assert_int_equal(rgate_consumer_wait(&c, 5), 0);
	fake.on = false;
	assert_in_range(fake.reads, 21, 24);
	assert_int_equal(fake.polled, 5);
	assert_int_equal(waits_of(&c).sleeps, 1);

	/* no timeout: until something comes */
	memset(&fake, 0, sizeof(fake));
	fake.then = &p;
	fake.reads = 10;
	fake.on = true;
	assert_int_equal(rgate_consumer_wait(&c, -1), 1);
	fake.on = false;
	assert_int_equal(fake.polled, -1);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(limits),
	cmocka_unit_test(options),
	cmocka_unit_test(learning),
	cmocka_unit_test(consumer),
	cmocka_unit_test(how_long),
};

UNIT_MAIN_ALONE(tests)
