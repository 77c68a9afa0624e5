// SPDX-License-Identifier: MIT OR GPL-2.0
/* Clients that write any word they can reach, at full speed, beside one that behaves */
#include "req_bed.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define BAD	3

static struct rgate_engine *engine;
static struct client bad[BAD], good;
static uint32_t stop;

/* What could be a lap, a batch, a position; or anything */
static uint64_t some_word(uint64_t *rnd)
{
	uint64_t r = unit_random(rnd);

	return r & 1 ? r >> 1 : (r >> 1) % 8;
}

/* A nop, so that engines have something to do for it, into every slot of the lap */
static void nops(struct client *c, uint64_t lap)
{
	uint64_t i, *words;

	for (i = 0; i <= c->area.req_mask; i++) {
		words = (void *)&c->area.requests[i];
		__atomic_store_n(&words[0], (uint64_t)c->w.owner << 32 | RGATE_REQ_NOP,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&words[7], lap, __ATOMIC_RELEASE);
	}
}

static void *scribble(void *arg)
{
	struct client *c = arg;
	uint64_t rnd = (uint64_t)(c - bad) + 3, n, lap = 1, got, many = UINT64_MAX - 1;
	uint64_t *words = (void *)c->area.base;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		nops(c, lap++ % 64);
		for (n = 0; n < 200; n++)
			__atomic_store_n(&words[unit_random(&rnd) % (c->area.len / sizeof(*words))],
					 some_word(&rnd), __ATOMIC_RELAXED);
		/* full, or empty: the engine must not mind */
		if (n & lap)
			(void)!write(c->kick, &many, sizeof(many));
		else
			(void)!read(c->kick, &got, sizeof(got));
		(void)!write(c->kick, &(uint64_t){ 1 }, sizeof(uint64_t));
	}
	return NULL;
}

/* Answered, and rightly, in its turn */
static void one_nop(uint64_t i)
{
	uint64_t until = unit_now_ns() + 20000000000ULL * unit_patience();
	const struct rgate_request q = { .op = RGATE_REQ_NOP, .cookie = i, .a0 = ~i };
	struct rgate_completion done;

	client_submit(&good, q);
	while (!client_poll(&good, &done)) {
		assert_true(unit_now_ns() < until);
		sched_yield();
	}
	assert_int_equal(done.cookie, i);
	assert_int_equal(done.result, 0);
	assert_int_equal(done.value, ~i);
}

static void garbage(void **state)
{
	pthread_t t[BAD];
	uint64_t i;

	(void)state;
	assert_int_equal(rgate_engine_create(&engine, NULL), 0);
	client_new(&good, engine, 1);
	for (i = 0; i < BAD; i++) {
		client_new(&bad[i], engine, (uid_t)(2 + i % 2));
		assert_int_equal(pthread_create(&t[i], NULL, scribble, &bad[i]), 0);
	}
	for (i = 0; i < unit_rounds(2000); i++)
		one_nop(i);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < BAD; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < BAD; i++)
		rgate_seat_remove(bad[i].seat);
	one_nop(4711);
	rgate_seat_remove(good.seat);
	rgate_engine_destroy(engine);
	for (i = 0; i < BAD; i++) {
		assert_int_equal(bad[i].over, 1);
		client_close(&bad[i]);
	}
	client_close(&good);
}

/*
 * The flag that keeps reads from waiting is the client's, too, who takes his own kicks away
 * before the engine has seen them: an engine that read them would wait for ever.
 */
static void blocking(void **state)
{
	struct rgate_completion done;
	struct client c;
	uint64_t i, got;

	(void)state;
	engine = bed_engine();
	client_new(&c, engine, 1);
	bed_run(engine);
	assert_int_equal(fcntl(c.kick, F_SETFL, 0), 0);
	assert_int_equal(fcntl(c.wait, F_SETFL, 0), 0);
	for (i = 0; i < 100; i++) {
		/* woken for each want, though nobody takes that */
		c.area.client->want = i + 1;
		client_submit(&c, (struct rgate_request){ .op = RGATE_REQ_NOP });
		assert_int_equal(read(c.kick, &got, sizeof(got)), sizeof(got));
		assert_int_not_equal(bed_run(engine), 0);
		client_kick(&c);
		bed_run(engine);
		assert_true(client_poll(&c, &done));
		(void)!read(c.kick, &got, sizeof(got));
	}
	rgate_seat_remove(c.seat);
	rgate_engine_destroy(engine);
	client_close(&c);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(garbage),
	cmocka_unit_test(blocking),
};

UNIT_MAIN(tests)
