// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a gateway keeps of requests with many completions that were not begun, or came to nothing */
#include "serves_bed.h"

#include <errno.h>
#include <stdlib.h>

#include "gate_priv.h"

#define ACCEPTS(n) \
	QUESTION(GATE_SUBMIT_MANY, .op = RGATE_REQ_SOCKET_ACCEPT, .handle = 9999, .a1 = (n))

/* Of the thread that asks: */
static _Thread_local int fails;		/* the engine, with that; 0: it does not */
static _Thread_local void *places;	/* for what one can come to, while it fails; NULL: none */
static _Thread_local unsigned int made;

int __real_rgate_session_submit(struct rgate_session *s, const struct rgate_request *r);
int __wrap_rgate_session_submit(struct rgate_session *s, const struct rgate_request *r);

int __wrap_rgate_session_submit(struct rgate_session *s, const struct rgate_request *r)
{
	return fails ? fails : __real_rgate_session_submit(s, r);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	void *p = __real_calloc(n, size);

	if (fails && n * size >= (GATE_MANY - 1) * sizeof(((struct shots *)0)->shot[0])) {
		places = p;
		made++;
	}
	return p;
}

void __real_free(void *p);
void __wrap_free(void *p);

void __wrap_free(void *p)
{
	if (p == places)
		places = NULL;
	__real_free(p);
}

static void keeps_nothing(void **state)
{
	struct gate_question q;
	uint32_t i;

	(void)state;
	/* there is a guest */
	(void)serves_socket(RGATE_SOCKET_STREAM);
	fails = -EAGAIN;
	for (i = 0; i < GATE_TICKETS; i++) {
		q = ACCEPTS(GATE_MANY);
		q.serial = ++serial;
		q.ticket = i;
		assert_int_equal(ask(q).result, -EAGAIN);
		assert_null(places);
	}
	assert_int_equal(made, GATE_TICKETS);
	fails = 0;
	/* nor does it count: there is no such socket, but a place */
	assert_int_equal(done_of(ACCEPTS(GATE_MANY)).result, -EBADF);
}

static bool given_back;			/* all of its places; by any thread: atomic */

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_realloc(void *p, size_t size)
{
	if (size == sizeof(struct shots))
		__atomic_store_n(&given_back, true, __ATOMIC_RELAXED);
	return __real_realloc(p, size);
}

/* One that has ended has memory for what it came to alone. */
static void came_to_little(void **state)
{
	uint64_t c;
	uint32_t h;

	(void)state;
	h = serves_socket(RGATE_SOCKET_STREAM);
	assert_int_equal(done_of(SUBMIT(LISTEN, .handle = h, .a0 = 9)).result, 0);
	c = begin(QUESTION(GATE_SUBMIT_MANY, .op = RGATE_REQ_SOCKET_ACCEPT, .handle = h,
			   .a1 = 5), 1);
	assert_int_equal(asks_of(c, QUESTION(GATE_CANCEL, .ticket = 1)), 0);
	hear_end(c, 0, -ECANCELED);
	assert_true(__atomic_load_n(&given_back, __ATOMIC_RELAXED));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(keeps_nothing, serves_setup, serves_teardown),
	cmocka_unit_test_setup_teardown(came_to_little, serves_setup, serves_teardown),
};

UNIT_MAIN(tests)
