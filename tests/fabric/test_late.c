// SPDX-License-Identifier: MIT OR GPL-2.0
/* The local provider when it is to be late (RGATE_LOCAL_LATE), as other tests count on it. */
#include "ends.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static char *was;

/* Two connected ends, late by @us at most; skips where devices are so by themselves */
static void late_up(struct cluster *c, struct end e[2], const char *us)
{
	const char *env = getenv("RGATE_LOCAL_LATE");
	bool local;

	cluster_make(c, 2, 0);
	local = c->local;
	cluster_free(c);
	if (!local)
		unit_skip("devices are late by themselves");
	was = env ? strdup(env) : NULL;
	assert_int_equal(setenv("RGATE_LOCAL_LATE", us, 1), 0);
	ends_up(c, e);
}

static void late_down(struct cluster *c, struct end e[2])
{
	ends_down(c, e);
	if (was)
		setenv("RGATE_LOCAL_LATE", was, 1);
	else
		unsetenv("RGATE_LOCAL_LATE");
	free(was);
}

static unsigned int written(const struct end *e)
{
	unsigned int i, n = 0;

	for (i = 0; i < ENDS_SEND; i++)
		n += end_word(e, 64 * i) != 0;
	return n;
}

/* As many writes as there is room for: of the numbers 1, 2, ... */
static void write_all(struct end e[2])
{
	struct rgate_sge s;
	struct rgate_op op;
	unsigned int i;

	for (i = 0; i < ENDS_SEND; i++) {
		s = end_sge(&e[0], 8 * i, 8);
		*(uint64_t *)s.addr = i + 1;
		op = end_op(RGATE_OP_WRITE, &s, &e[1], 64 * i);
		assert_int_equal(end_post(&e[0], &op, i), 0);
	}
}

/*
 * Operations are under way when their posts have returned, and end in their order; who destroys
 * the connection has ended them.
 */
static void lateness(void **state)
{
	unsigned int i, there;
	struct end e[2];
	struct cluster c;

	(void)state;
	late_up(&c, e, "20000");
	write_all(e);
	/* without it they would all be there long before that */
	nodes_nap();
	assert_true(written(&e[1]) < ENDS_SEND);
	for (i = 0; i < ENDS_SEND && e[0].prov->poll(e[0].conn, &e[0].last, 1) == 1; i++)
		assert_int_equal(e[0].last.id, i);
	assert_true(i < ENDS_SEND);
	for (; i < ENDS_SEND; i++) {
		assert_int_equal(end_wait(&e[0]), 0);
		assert_int_equal(e[0].last.id, i);
		/* done before it was told, and in order: those before it, too */
		assert_true(written(&e[1]) > i);
	}
	for (i = 0; i < ENDS_SEND; i++)
		assert_int_equal(end_word(&e[1], 64 * i), i + 1);
	/* and in the middle it ends */
	memset(e[1].buf->addr, 0, 64 * ENDS_SEND);
	write_all(e);
	e[0].prov->destroy(e[0].conn);
	e[0].conn = NULL;
	there = written(&e[1]);
	assert_true(there < ENDS_SEND);
	for (i = 0; i < 50; i++)
		nodes_nap();
	assert_int_equal(written(&e[1]), there);
	late_down(&c, e);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* It waits as a device does: nobody is kept from a CPU by that. */
static void asleep(void **state)
{
	const uint64_t begun = unit_now_ns();
	struct rgate_sge s;
	struct rgate_op op;
	struct end e[2];
	struct cluster c;
	uint64_t cpu;
	unsigned int i;

	(void)state;
	late_up(&c, e, "100000");
	s = end_sge(&e[0], 0, 8);
	op = end_op(RGATE_OP_WRITE, &s, &e[1], 0);
	cpu = cpu_ns();
	/* Each may be over at once. */
	for (i = 0; i < 10 || unit_now_ns() - begun < 100000000; i++) {
		assert_int_equal(end_post(&e[0], &op, i), 0);
		while (!e[0].prov->poll(e[0].conn, &e[0].last, 1))
			nodes_nap();
		assert_int_equal(e[0].last.id, i);
		assert_int_equal(e[0].last.status, 0);
	}
	assert_true(cpu_ns() - cpu < (unit_now_ns() - begun) / 4);
	late_down(&c, e);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(lateness),
	cmocka_unit_test(asleep),
};

UNIT_MAIN(tests)
