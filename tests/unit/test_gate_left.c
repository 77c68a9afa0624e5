// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sessions that are over while their gateway cannot be told so */
#include "gate_bed.h"

#include <stdlib.h>
#include <time.h>

#include "gate_priv.h"

#define SILENCE_MS	1000U
#define KEPT		256U	/* that are told later */

static struct gate_service *sv;
static uint64_t ahead;			/* the clock is, ns */

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	const int err = __real_clock_gettime(id, ts);
	const uint64_t ns = (uint64_t)ts->tv_nsec + ahead;

	ts->tv_sec += (time_t)(ns / 1000000000);
	ts->tv_nsec = (long)(ns % 1000000000);
	return err;
}

/* A session has nothing but its user here. */
uid_t __wrap_rgate_seat_uid(const struct rgate_seat *seat);

uid_t __wrap_rgate_seat_uid(const struct rgate_seat *seat)
{
	(void)seat;
	return ME;
}

static void turn(void)
{
	(void)o.hub.asks.tick(o.hub.ctx);
}

static int setup(void **state)
{
	const struct gate_opts opts = RGATE_OPTS(gate_opts, .role = &gate_sockets, .hub = HUB,
						 .gateway = OTHER, .silence_ms = SILENCE_MS);

	(void)state;
	gate_bed_init(&gate_sockets, turn);
	assert_int_equal(gate_service_create(&sv, &opts), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gate_service_quit(sv);
	gate_service_destroy(sv);
	assert_int_equal(o.hub.node.stage.lent, 0);
	return 0;
}

static unsigned int callers(void)
{
	const struct link *l;
	unsigned int n = 0;

	for (l = sv->callers.next; l != &sv->callers; l = l->next)
		n++;
	return n;
}

/* So many come, have something there, and go; nothing is heard of the gateway. */
static void come_and_go(unsigned int n)
{
	static char seats[40000];
	struct gate_caller **c = calloc(n, sizeof(struct gate_caller *));
	unsigned int i;

	assert_non_null(c);
	assert_true(n <= sizeof(seats));
	for (i = 0; i < n; i++) {
		assert_int_equal(gate_caller_new(sv, (struct rgate_seat *)&seats[i], OTHER, &c[i]),
				 0);
		c[i]->there = true;
	}
	for (i = 0; i < n; i++)
		gate_caller_leave(c[i]);
	ahead += (SILENCE_MS + 1) * 1000000ULL;
	turn();
	free(c);
}

/* As many as there can be guests of a node, and more. */
static void bounded(void **state)
{
	unsigned int i, round, done = 0;

	(void)state;
	for (round = 0; round < 2; round++) {
		come_and_go(300);
		assert_int_equal(callers(), KEPT);
		other_comes_up(7);
		for (turn(); done < o.peer.asked.n; turn()) {
			assert_int_equal(question(done).kind, GATE_LEAVE);
			answer(done++, 0);
		}
		assert_int_equal(done, (round + 1) * KEPT);
		assert_int_equal(callers(), 0);
		/* Places of what was told are free. */
		other_goes_down();
	}
	for (i = 0; i < 3; i++)
		come_and_go(100);
	assert_int_equal(callers(), KEPT);
	/* another process of it has nothing of them */
	other_comes_up(8);
	assert_int_equal(callers(), 0);
	other_goes_down();
	come_and_go(10);
	assert_int_equal(callers(), 10);
}

static double cpu_s(unsigned int n)
{
	struct timespec from, to;

	assert_int_equal(__real_clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from), 0);
	come_and_go(n);
	assert_int_equal(__real_clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to), 0);
	return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

/* Many go at once: each costs the same. */
static void many(void **state)
{
	double few = 1e9, all = 1e9, s;
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		s = cpu_s(2500);
		few = s < few ? s : few;
		s = cpu_s(40000);
		all = s < all ? s : all;
	}
	/* 16 times as many */
	assert_true(all < few * 64);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	BED(bounded), BED(many),
};

UNIT_MAIN_ALONE(tests)
