// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Locks of other nodes: what dies, is cut or stands still does so at the step that the test
 * says.
 */
#include "four.h"

#include <errno.h>
#include <string.h>

static void waiter_killed(void **state)
{
	uint64_t a;
	unsigned int step;

	(void)state;
	open_all();
	for (step = 0; step < 4; step++) {
		assert_int_equal(ask(0, LOCK_ACQUIRE), 0);
		(void)submit(1, LOCK_ACQUIRE);
		node_turn(1);
		if (step > 0)
			(void)deliver(1, 0, true);
		if (step > 1)
			(void)deliver(0, 1, false);
		if (step > 2) {
			(void)submit(0, LOCK_RELEASE);
			node_turn(0);
		}
		wclient_end(&c[1]);
		if (step <= 2)
			assert_int_equal(ask(0, LOCK_RELEASE), 0);
		settle();
		a = submit(2, LOCK_ACQUIRE);
		assert_int_equal(result_of(&c[2], a, NULL), 0);
		assert_int_equal(ask(2, LOCK_RELEASE), 0);
		wclient_new(&c[1], 1, 1);
		h[1] = lock_at(&c[1], 0, "l", 0);
	}
	/* nothing is left at the home of those */
	assert_int_equal(lock_info(0).waiters, 0);
}

/* ---- Connections ---- */

/* For less than the lease: nobody notices, whatever was lost with the connection. */
static void cut_for_short(void **state)
{
	unsigned int step;
	uint64_t a;

	(void)state;
	open_all();
	for (step = 0; step < 4; step++) {
		assert_int_equal(ask(0, LOCK_ACQUIRE), 0);
		a = submit(1, LOCK_ACQUIRE);
		node_turn(1);
		if (step > 0)
			(void)deliver(1, 0, true);
		if (step > 1)
			(void)deliver(0, 1, false);
		if (step == 3) {
			(void)submit(0, LOCK_RELEASE);
			node_turn(0);
		}
		link_set(0, 1, false);
		pass(400);
		link_set(0, 1, true);
		settle();
		if (step < 3)
			assert_int_equal(ask(0, LOCK_RELEASE), 0);
		assert_int_equal(result_of(&c[1], a, NULL), 0);
		/* while it is held, too; granted while it was away */
		link_set(0, 1, false);
		pass(400);
		assert_true(is_valid(&c[1], 0));
		link_set(0, 1, true);
		pass(5 * LEASE);
		assert_true(is_valid(&c[1], 0));
		assert_int_equal(ask(1, LOCK_RELEASE), 0);
	}
	assert_int_equal(w.peer[0][1].cuts, 0);
	assert_int_equal(place_of(&c[1], 0)->lost, 0);
}

/* For longer: the holder knows before the home gives it to the next one. */
static void cut_for_long(void **state)
{
	uint64_t a, ms = 0, lost_at = 0, x;

	(void)state;
	open_all();
	assert_int_equal(ask(1, LOCK_ACQUIRE), 0);
	x = submit(3, LOCK_ACQUIRE);
	settle();
	a = submit(2, LOCK_ACQUIRE);
	assert_true(waits(2, a));
	link_set(0, 1, false);
	while (waits(2, a)) {
		assert_true(ms < 2 * LEASE);
		pass(10);
		ms += 10;
		if (!lost_at && !is_valid(&c[1], 0))
			lost_at = ms;
	}
	assert_int_equal(c[2].result[a], 0);
	assert_true(lost_at && lost_at <= LEASE);
	assert_in_range(ms, lost_at + LEASE / 8, PATIENCE + 10);
	assert_int_equal(place_of(&c[1], 0)->lost, 1);
	assert_int_equal(place_of(&c[3], 0)->lost, 0);
	/* who waited there waits no more, and has to open it again */
	assert_int_equal(result_of(&c[3], x, NULL), -ECONNRESET);
	assert_int_equal(ask(1, LOCK_RELEASE), -ESTALE);
	assert_int_equal(ask(1, LOCK_ACQUIRE), -ESTALE);
	link_set(0, 1, true);
	settle();
	assert_int_equal(ask(1, LOCK_ACQUIRE), -ESTALE);
	assert_int_equal(ask(1, LOCK_CLOSE), 0);
	h[1] = lock_at(&c[1], 0, "l", 0);
	a = submit(1, LOCK_ACQUIRE);
	assert_true(waits(1, a));
	assert_int_equal(ask(2, LOCK_RELEASE), 0);
	assert_int_equal(result_of(&c[1], a, NULL), 0);
}

/* The node stands still, its connection is up: it is ended before another one gets the lock. */
static void stands_still(void **state)
{
	uint64_t a;

	(void)state;
	open_all();
	assert_int_equal(ask(1, LOCK_ACQUIRE), 0);
	a = submit(2, LOCK_ACQUIRE);
	settle();
	w.node[1].paused = true;
	pass(LEASE - 50);
	assert_true(waits(2, a));
	pass(50);
	assert_false(is_valid(&c[1], 0));
	assert_int_equal(w.peer[0][1].cuts, 0);
	pass(200);
	assert_int_equal(w.peer[0][1].cuts, 1);
	assert_int_equal(result_of(&c[2], a, NULL), 0);
	/* it goes on, and nothing that it hears makes it believe in the old hold */
	w.node[1].paused = false;
	link_set(0, 1, true);
	settle();
	assert_false(is_valid(&c[1], 0));
	assert_int_equal(ask(1, LOCK_RELEASE), -ESTALE);
	pass(3 * LEASE);
	assert_true(is_valid(&c[2], 0));
	/* healthy again, so nobody cuts it */
	assert_int_equal(w.peer[0][1].cuts, 1);
}

/* It stands still for a lease, but the home has heard of it later: the holder may not go on. */
static void answers_too_late(void **state)
{
	(void)state;
	open_all();
	assert_int_equal(ask(1, LOCK_ACQUIRE), 0);
	pass(LEASE / 4);
	/* it asks, the answer is there, and then the node stands still */
	w.node[2].paused = true;
	w.now += LEASE / 4 * MS;
	node_turn(1);
	assert_true(deliver(1, 0, true));
	w.node[1].paused = true;
	w.now += LEASE * MS;
	assert_false(is_valid(&c[1], 0));
	w.node[1].paused = false;
	assert_true(deliver(0, 1, false));
	assert_false(is_valid(&c[1], 0));
	settle();
	assert_false(is_valid(&c[1], 0));
	assert_int_equal(place_of(&c[1], 0)->lost, 1);
	/* the home need not wait for what that node has given up itself */
	assert_int_equal(ask(0, LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY), 0);
}

/* An answer that takes long prolongs the lease from when it was asked for, and no longer. */
static void late_answer(void **state)
{
	uint64_t a;

	(void)state;
	open_all();
	assert_int_equal(ask(1, LOCK_ACQUIRE), 0);
	a = submit(2, LOCK_ACQUIRE);
	settle();
	w.now += LEASE / 4 * MS;
	node_turn(1);
	assert_true(deliver(1, 0, true));
	w.now += LEASE / 2 * MS;
	node_turn(1);
	node_turn(0);
	assert_true(deliver(0, 1, false));
	node_turn(1);
	link_set(0, 1, false);
	pass(LEASE / 2 + 50);
	assert_false(is_valid(&c[1], 0));
	assert_true(waits(2, a));
	pass(LEASE / 8);
	assert_int_equal(result_of(&c[2], a, NULL), 0);
}

/* ---- Processes ---- */

static void guest_restarts(void **state)
{
	uint64_t a, lease;

	(void)state;
	open_all();
	assert_int_equal(ask(1, LOCK_ACQUIRE), 0);
	a = submit(2, LOCK_ACQUIRE);
	settle();
	lease = place_of(&c[1], 0)->lease_ns;
	node_stop(1);
	/* Who is killed does not say so to its programs. */
	assert_false(is_valid(&c[1], 0));
	place_of(&c[1], 0)->lease_ns = lease;
	node_start(1);
	link_set(0, 1, true);
	settle();
	/* its program may run on for as long as its lease */
	assert_true(is_valid(&c[1], 0));
	assert_true(waits(2, a));
	pass(LEASE);
	assert_false(is_valid(&c[1], 0));
	pass(LEASE / 8 + 50);
	assert_int_equal(result_of(&c[2], a, NULL), 0);
	assert_int_equal(w.peer[0][1].cuts, 0);
	wclient_end(&c[1]);
	wclient_end(&c[3]);
	wclient_new(&c[1], 1, 1);
	h[1] = lock_at(&c[1], 0, "l", 0);
	assert_int_equal(ask(1, LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY), -EAGAIN);
}

static void home_restarts(void **state)
{
	uint64_t token, next, a;

	(void)state;
	open_all();
	assert_int_equal(wask(&c[1], (struct rgate_request){
		.op = RGATE_REQ_LOCK_ACQUIRE, .handle = h[1] }, &token), 0);
	a = submit(2, LOCK_ACQUIRE);
	settle();
	node_stop(0);
	node_start(0);
	assert_true(is_valid(&c[1], 0));
	/* node 2 is there at once, and has to wait for what node 1 may believe */
	link_set(0, 2, true);
	assert_int_equal(result_of(&c[2], a, NULL), -ECONNRESET);
	assert_int_equal(ask(2, LOCK_CLOSE), 0);
	h[2] = lock_at(&c[2], 0, "l", 0);
	assert_int_equal(ask(2, LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY), -EAGAIN);
	a = submit(2, LOCK_ACQUIRE);
	pass(LEASE);
	assert_false(is_valid(&c[1], 0));
	assert_true(waits(2, a));
	pass(LEASE / 8);
	assert_int_equal(result_of(&c[2], a, &next), 0);
	assert_true(next > token);
	link_set(0, 1, true);
	settle();
	assert_int_equal(place_of(&c[1], 0)->lost, 1);
	assert_int_equal(ask(1, LOCK_RELEASE), -ESTALE);
	assert_int_equal(ask(1, LOCK_CLOSE), 0);
}

/* A home's own programs have leases, too: it may die, and another process take its place. */
static void home_dies(void **state)
{
	(void)state;
	open_all();
	assert_int_equal(ask(0, LOCK_ACQUIRE), 0);
	pass(5 * LEASE);
	assert_true(is_valid(&c[0], 0));
	node_stop(0);
	w.now += LEASE * MS;
	assert_false(is_valid(&c[0], 0));
}

/* A home that ends gives nothing to others: who had it may not know yet that he lost it. */
static void home_quits(void **state)
{
	uint64_t a;

	(void)state;
	open_all();
	assert_int_equal(ask(1, LOCK_ACQUIRE), 0);
	a = submit(2, LOCK_ACQUIRE);
	settle();
	node_quit(0);
	assert_true(waits(2, a));
	assert_false(is_valid(&c[2], 0));
	assert_true(is_valid(&c[1], 0));
	pass(LEASE);
	assert_int_equal(result_of(&c[2], a, NULL), -ECONNRESET);
	assert_false(is_valid(&c[1], 0));
}

static void opening(void **state)
{
	struct rgate_sync_place *p = place_of(&c[1], 1);
	const struct rgate_request q = {
		.op = RGATE_REQ_LOCK_OPEN, .a1 = RGATE_SYNC_OPEN_A1(1, RGATE_SYNC_CREATE),
		.off = 128, .len = sizeof(*p),
	};
	uint64_t a;

	(void)state;
	strcpy(p->name, "l");
	link_set(0, 1, false);
	a = wsubmit(&c[1], q);
	assert_true(waits(1, a));
	pass(LEASE);
	assert_int_equal(result_of(&c[1], a, NULL), -ENOTCONN);
	/* for shorter: it is opened when the connection is there */
	a = wsubmit(&c[1], q);
	pass(LEASE / 2);
	link_set(0, 1, true);
	assert_int_equal(result_of(&c[1], a, NULL), 0);
	pass(2 * LEASE);
	/* asked of a home that dies then, it is asked of the next one */
	a = wsubmit(&c[1], q);
	node_turn(1);
	node_stop(0);
	node_start(0);
	link_set(0, 1, true);
	link_set(0, 2, true);
	assert_int_equal(result_of(&c[1], a, NULL), 0);
	pass(PATIENCE);
	/* given up when it was asked, and when that was answered */
	a = wsubmit(&c[1], q);
	node_turn(1);
	assert_int_equal(cancel(1, a), 0);
	assert_int_equal(result_of(&c[1], a, NULL), -ECANCELED);
	w.node[0].paused = true;
	a = wsubmit(&c[1], q);
	assert_true(waits(1, a));
	pass(LEASE);
	assert_int_equal(result_of(&c[1], a, NULL), -ETIMEDOUT);
	w.node[0].paused = false;
	settle();
	h[2] = lock_at(&c[2], 0, "l", 0);
	h[1] = lock_at(&c[1], 0, "l", 0);
	assert_int_equal(ask(1, LOCK_ACQUIRE), 0);
	assert_int_equal(ask(1, LOCK_CLOSE), 0);
	assert_int_equal(ask(2, LOCK_ACQUIRE), 0);
}

/* What the hub has no room for is told later. */
static void no_room(void **state)
{
	uint64_t a;

	(void)state;
	open_all();
	assert_int_equal(ask(0, LOCK_ACQUIRE), 0);
	a = submit(1, LOCK_ACQUIRE);
	settle();
	w.peer[0][1].send_full = true;
	assert_int_equal(ask(0, LOCK_RELEASE), 0);
	assert_true(waits(1, a));
	w.peer[0][1].send_full = false;
	assert_int_equal(result_of(&c[1], a, NULL), 0);
	w.peer[0][1].send_full = true;
	a = submit(1, LOCK_RELEASE);
	assert_true(waits(1, a));
	w.peer[0][1].send_full = false;
	assert_int_equal(result_of(&c[1], a, NULL), 0);
}

/* Over a connection that is there, but not yet for the hub, which has the last word on it */
static void told_too_soon(void **state)
{
	unsigned int wakes;
	uint64_t a;

	(void)state;
	open_all();
	/* granted while it was away */
	assert_int_equal(ask(1, LOCK_ACQUIRE), 0);
	a = submit(2, LOCK_ACQUIRE);
	settle();
	link_set(0, 2, false);
	settle();
	assert_int_equal(ask(1, LOCK_RELEASE), 0);
	link_set(0, 2, true);
	(void)w.node[0].hub.asks.tick(w.node[0].hub.ctx);
	assert_int_equal(result_of(&c[2], a, NULL), 0);
	assert_true(is_valid(&c[2], 0));
	assert_int_equal(ask(2, LOCK_RELEASE), 0);
	/* and just then, by the engine's thread */
	assert_int_equal(ask(0, LOCK_ACQUIRE), 0);
	a = submit(2, LOCK_ACQUIRE);
	settle();
	link_set(0, 2, false);
	settle();
	link_set(0, 2, true);
	(void)w.node[0].hub.asks.tick(w.node[0].hub.ctx);
	wakes = w.node[0].hub.wakes;
	(void)submit(0, LOCK_RELEASE);
	(void)bed_run(w.node[0].e);
	/* who looks again */
	assert_int_equal(w.node[0].hub.wakes, wakes + 1);
	assert_int_equal(result_of(&c[2], a, NULL), 0);
	assert_true(is_valid(&c[2], 0));
	assert_int_equal(w.peer[0][2].cuts, 0);
}

/* Whoever takes nothing: the hub's thread looks for room at its pace, and not all the time. */
static void takes_nothing(void **state)
{
	unsigned int wakes, i;
	uint64_t a;

	(void)state;
	open_all();
	assert_int_equal(ask(0, LOCK_ACQUIRE), 0);
	a = submit(1, LOCK_ACQUIRE);
	settle();
	w.peer[0][1].send_full = true;
	wakes = w.node[0].hub.wakes;
	(void)submit(0, LOCK_RELEASE);
	(void)bed_run(w.node[0].e);
	assert_int_equal(w.node[0].hub.wakes, ++wakes);
	for (i = 0; i < 100; i++)
		assert_int_equal(w.node[0].hub.asks.tick(w.node[0].hub.ctx), MS);
	w.node[0].hub.asks.state(w.node[0].hub.ctx, 1, true);
	assert_int_equal(w.node[0].hub.wakes, wakes);
	assert_true(waits(1, a));
	w.peer[0][1].send_full = false;
	assert_int_equal(result_of(&c[1], a, NULL), 0);
}

static const struct CMUnitTest tests[] = {
	BED(waiter_killed), BED(cut_for_short), BED(cut_for_long), BED(stands_still),
	BED(answers_too_late), BED(late_answer), BED(guest_restarts), BED(home_restarts),
	BED(home_dies), BED(home_quits), BED(opening), BED(no_room), BED(told_too_soon),
	BED(takes_nothing),
};

UNIT_MAIN_ALONE(tests)
