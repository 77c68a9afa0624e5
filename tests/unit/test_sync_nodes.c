// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Locks whose home is another node: what is asked, and refused, and cancelled. test_sync_lost.c:
 * who dies, is cut off or stands still; test_sync_barriers.c; test_sync_lies.c: what others make
 * up.
 */
#include "four.h"

#include <errno.h>
#include <string.h>

#include "call.h"

static void in_turn(void **state)
{
	static const unsigned int order[] = { 1, 2, 0, 3 };
	uint64_t cookie[MANY], token, last = 0;
	struct rgate_lock_info info;
	unsigned int i, n;

	(void)state;
	open_all();
	for (i = 0; i < MANY; i++) {
		cookie[order[i]] = submit(order[i], LOCK_ACQUIRE);
		settle();
	}
	for (i = 0; i < MANY; i++) {
		n = order[i];
		assert_int_equal(result_of(&c[n], cookie[n], &token), 0);
		assert_true(token > last);
		last = token;
		info = lock_info(order[(i + 1) % MANY]);
		assert_int_equal(info.token, token);
		assert_int_equal(info.waiters, MANY - 1 - i);
		assert_int_equal(info.holder_node, c[n].node ? c[n].node : RGATE_SYNC_NO_NODE);
		assert_int_equal(info.holder_uid, 1);
		assert_string_equal(info.name, "l");
		/* for longer than a lease */
		pass(5 * LEASE);
		assert_true(is_valid(&c[n], 0));
		assert_int_equal(ask(n, LOCK_RELEASE), 0);
		assert_false(is_valid(&c[n], 0));
		assert_int_equal(place_of(&c[n], 0)->lost, 0);
	}
	assert_int_equal(ask(1, LOCK_ACQUIRE, .a0 = RGATE_LOCK_SHARED), 0);
	assert_int_equal(ask(2, LOCK_ACQUIRE, .a0 = RGATE_LOCK_SHARED), 0);
	assert_int_equal(ask(3, LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY), -EAGAIN);
	assert_int_equal(ask(1, LOCK_CLOSE), 0);
	assert_int_equal(ask(2, LOCK_CLOSE), 0);
	assert_int_equal(ask(3, LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY), 0);
	assert_int_equal(ask(3, LOCK_ACQUIRE), -EALREADY);
	assert_int_equal(ask(3, BARRIER_ARRIVE), -EBADF);
}

static void listed(void **state)
{
	uint64_t at = 0;
	unsigned int n = 0;

	(void)state;
	h[0] = lock_at(&c[0], 0, "a", 0);
	h[2] = lock_at(&c[2], 0, "b", 0);
	while (wask(&c[1], (struct rgate_request){
			.op = RGATE_REQ_LOCK_LIST, .a0 = 0, .a1 = at, .off = ROOM,
			.len = sizeof(struct rgate_lock_info) }, &at) == 1)
		n++;
	assert_int_equal(n, 2);
	link_set(0, 1, false);
	at = wsubmit(&c[1], (struct rgate_request){
		.op = RGATE_REQ_LOCK_LIST, .off = ROOM, .len = sizeof(struct rgate_lock_info) });
	assert_true(waits(1, at));
	pass(LEASE);
	assert_int_equal(result_of(&c[1], at, NULL), -ENOTCONN);
}

static uint64_t submit_list(void)
{
	return wsubmit(&c[1], (struct rgate_request){ .op = RGATE_REQ_LOCK_LIST, .off = ROOM,
						      .len = sizeof(struct rgate_lock_info) });
}

/* A list does nothing, so what matters is whether there is a node, and not what it was asked. */
static void not_listed(void **state)
{
	uint64_t a[CALL_PLACES + 1];
	unsigned int i;

	(void)state;
	/* asked, and then the connection ends */
	a[0] = submit_list();
	node_turn(1);
	assert_int_equal(w.peer[1][0].ticket, 1);
	link_set(0, 1, false);
	assert_true(waits(1, a[0]));
	pass(LEASE);
	assert_int_equal(result_of(&c[1], a[0], NULL), -ENOTCONN);
	/* there is one, and those before it have all the places */
	link_set(0, 1, true);
	settle();
	w.node[0].paused = true;
	for (i = 0; i < CALL_PLACES + 1; i++)
		a[i] = submit_list();
	node_turn(1);
	assert_int_equal(w.peer[1][0].asked.n, CALL_PLACES);
	pass(LEASE - 50);
	assert_true(waits(1, a[CALL_PLACES]));
	pass(50);
	for (i = 0; i < CALL_PLACES + 1; i++)
		assert_int_equal(result_of(&c[1], a[i], NULL), -ETIMEDOUT);
	assert_true(link_is_up(0, 1));
	w.node[0].paused = false;
}

/* Given up by who asked, while the node is silent: the answer is nobody's then. */
static void list_cancelled(void **state)
{
	uint64_t a;

	(void)state;
	settle();
	w.node[0].paused = true;
	a = submit_list();
	node_turn(1);
	assert_int_equal(w.peer[1][0].asked.n, 1);
	assert_int_equal(cancel(1, a), 0);
	assert_int_equal(result_of(&c[1], a, NULL), -ECANCELED);
	assert_int_equal(cancel(1, a), -ENOENT);
	w.node[0].paused = false;
	settle();
	h[0] = lock_at(&c[0], 0, "a", 0);
	assert_int_equal(result_of(&c[1], submit_list(), NULL), 1);
}

static void refused(void **state)
{
	static struct wclient odd;
	uint32_t handle;

	(void)state;
	assert_int_equal(open_at(&c[1], 1, "x", 0, 0, 0, 1, &handle), -ENOENT);
	assert_int_equal(open_at(&c[1], 1, "x", 0, RGATE_SYNC_CREATE, 0, 2, &handle), -ENOENT);
	wclient_new(&odd, 1, 13);
	assert_int_equal(open_at(&odd, 1, "x", 0, RGATE_SYNC_CREATE, 0, 13, &handle), -EACCES);
	wclient_end(&odd);
	open_all();
	w.may = false;
	assert_int_equal(ask(1, LOCK_ACQUIRE), -EACCES);
	w.may = true;
	assert_int_equal(ask(1, LOCK_ACQUIRE), 0);
	w.may = false;
	assert_int_equal(ask(1, LOCK_STATE, .off = ROOM, .len = 104), -EACCES);
	assert_int_equal(ask(1, LOCK_RELEASE), 0);
	w.may = true;
	assert_int_equal(ask(2, LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY), 0);
}

/* ---- Given up, at each step ---- */

/* Whatever is under way when it is cancelled, the lock is free for the next one. */
static void cancelled(void **state)
{
	unsigned int step;
	uint64_t a;

	(void)state;
	open_all();
	for (step = 0; step < 5; step++) {
		assert_int_equal(ask(0, LOCK_ACQUIRE), 0);
		a = submit(1, LOCK_ACQUIRE);
		node_turn(1);
		if (step > 0)
			(void)deliver(1, 0, true);	/* the question, */
		if (step > 1)
			(void)deliver(0, 1, false);	/* and its answer */
		if (step > 2)
			(void)submit(0, LOCK_RELEASE);
		if (step > 2)
			node_turn(0);
		if (step > 3)
			(void)deliver(0, 1, false);	/* news */
		wsubmit(&c[1], (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = a });
		node_turn(1);
		assert_true(is_done(&c[1], a));
		assert_int_equal(c[1].result[a], step < 4 ? -ECANCELED : 0);
		assert_int_equal(is_valid(&c[1], 0), step == 4);
		settle();
		if (step < 3)
			assert_int_equal(ask(0, LOCK_RELEASE), 0);
		if (step == 4)
			assert_int_equal(ask(1, LOCK_RELEASE), 0);
		assert_int_equal(ask(2, LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY), 0);
		assert_int_equal(ask(2, LOCK_RELEASE), 0);
	}
}

/* And wanted again before the home has heard of that: it is another hold. */
static void again_at_once(void **state)
{
	uint64_t a, first, second;
	unsigned int step;

	(void)state;
	open_all();
	for (step = 0; step < 3; step++) {
		assert_int_equal(wask(&c[1], (struct rgate_request){
			.op = RGATE_REQ_LOCK_ACQUIRE, .handle = h[1] }, &first), 0);
		a = submit(2, LOCK_ACQUIRE);
		settle();
		(void)submit(1, LOCK_RELEASE);
		if (step > 0)
			node_turn(1);
		if (step > 1)
			(void)deliver(1, 0, true);
		second = submit(1, LOCK_ACQUIRE);
		assert_true(waits(1, second));
		assert_false(is_valid(&c[1], 0));
		assert_int_equal(result_of(&c[2], a, NULL), 0);
		assert_int_equal(ask(2, LOCK_RELEASE), 0);
		assert_int_equal(result_of(&c[1], second, &second), 0);
		assert_true(second > first);
		assert_int_equal(ask(1, LOCK_RELEASE), 0);
	}
}

static const struct CMUnitTest tests[] = {
	BED(in_turn), BED(listed), BED(not_listed), BED(list_cancelled), BED(refused),
	BED(cancelled), BED(again_at_once),
};

UNIT_MAIN_ALONE(tests)
