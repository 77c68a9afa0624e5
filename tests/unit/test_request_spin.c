// SPDX-License-Identifier: MIT OR GPL-2.0
/* How long the engine polls a seat that asks for nothing: after a request, and after an answer */
#include "req_bed.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "engine_priv.h"

#define SPIN_US	2000U
#define ASK(o, ...) ((struct rgate_request){ .op = (o), ##__VA_ARGS__ })

static struct rgate_engine *e;
static struct client a;

static void open_all(uint32_t spin_us)
{
	const struct rgate_engine_opts o = RGATE_OPTS(rgate_engine_opts,
		.flags = RGATE_ENGINE_LOOP, .spin_us = spin_us);

	assert_int_equal(rgate_engine_create(&e, &o), 0);
	assert_int_equal(rgate_engine_add(e, &late_service, NULL), 0);
	client_new(&a, e, 1);
}

static void close_all(void)
{
	rgate_engine_destroy(e);
	client_close(&a);
}

static bool sleeps(void)
{
	return __atomic_load_n(&a.area.server->need, __ATOMIC_RELAXED) == RGATE_REQ_NEED_REQUEST;
}

static void until_it_sleeps(void)
{
	while (rgate_engine_turn(e) == 0)
		;
	assert_true(sleeps());
}

static void asks(uint64_t cookie)
{
	struct rgate_completion done;

	/* kicks, if need says so */
	client_submit(&a, ASK(RGATE_REQ_NOP, .cookie = cookie));
	rgate_engine_turn(e);
	assert_true(client_poll(&a, &done));
	assert_int_equal(done.cookie, cookie);
}

static void answer(uint64_t cookie)
{
	struct rgate_completion done;

	late_end(cookie, 0, 0);
	rgate_engine_turn(e);
	assert_true(client_poll(&a, &done));
	assert_int_equal(done.cookie, cookie);
}

/* An answer that comes when the engine sleeps has it look for the next request */
static void after_answer(void **state)
{
	unsigned int i;

	(void)state;
	open_all(SPIN_US);
	for (i = 0; i < 3; i++) {
		client_submit(&a, ASK(LATE_WAIT, .cookie = 7));
		until_it_sleeps();
		answer(7);
		assert_false(sleeps());
		asks(8);
		until_it_sleeps();
	}
	close_all();
}

/* It does so as long as that was worth it: what comes later than the limit teaches it to sleep */
static void learns(void **state)
{
	unsigned int i;

	(void)state;
	open_all(SPIN_US);
	for (i = 0; a.seat->spin.ns && i < 32; i++) {
		client_submit(&a, ASK(LATE_WAIT, .cookie = 7));
		until_it_sleeps();
		answer(7);
		until_it_sleeps();
		usleep(2 * SPIN_US);
	}
	assert_int_equal(a.seat->spin.ns, 0);
	client_submit(&a, ASK(LATE_WAIT, .cookie = 9));
	until_it_sleeps();
	answer(9);
	assert_true(sleeps());
	/* the time counts from the answer: it asks at once, and that teaches it to poll */
	asks(10);
	assert_true(a.seat->spin.ns > 0);
	close_all();
}

/* Who is not to poll does not */
static void never(void **state)
{
	(void)state;
	open_all(RGATE_SPIN_NONE);
	client_submit(&a, ASK(LATE_WAIT, .cookie = 7));
	until_it_sleeps();
	answer(7);
	assert_true(sleeps());
	asks(8);
	close_all();
}

/* Who has asked for it is told that the engine sleeps, each time while he asks, and nobody else */
static void told(void **state)
{
	struct epoll_event ev;

	(void)state;
	open_all(SPIN_US);
	until_it_sleeps();
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 0);
	__atomic_store_n(&a.area.client->want, RGATE_REQ_WANT_NEED, __ATOMIC_RELAXED);
	asks(1);
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 0);
	until_it_sleeps();
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 1);
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 0);
	asks(2);
	until_it_sleeps();
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 1);
	__atomic_store_n(&a.area.client->want, 0, __ATOMIC_RELAXED);
	asks(3);
	until_it_sleeps();
	assert_int_equal(epoll_wait(a.wait, &ev, 1, 0), 0);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_answer), cmocka_unit_test(learns), cmocka_unit_test(never),
		cmocka_unit_test(told),
	};

	return unit_run(__FILE__, tests, ARRAY_LEN(tests));
}
