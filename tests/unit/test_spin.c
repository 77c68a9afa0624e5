// SPDX-License-Identifier: MIT OR GPL-2.0
/* How long waiters poll: by the machine, by the option, and by what came of it. */
#include "unit.h"
#include "spin.h"

#include <errno.h>

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

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(limits),
	cmocka_unit_test(options),
	cmocka_unit_test(learning),
	cmocka_unit_test(consumer),
};

UNIT_MAIN(tests)
