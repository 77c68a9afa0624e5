// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Locks and barriers whose home is another node. Node 0 is the home, 1 and 2 ask; what dies,
 * is cut or stands still does so at the step that the test says.
 */
#include "world.h"

#include <errno.h>
#include <string.h>

#include "call.h"

#define MANY	4U	/* 0: at the home, 1 and 3: at node 1, 2: at node 2 */

static struct wclient c[MANY];
static uint32_t h[MANY];

static int setup(void **state)
{
	static const unsigned int node[MANY] = { 0, 1, 2, 1 };
	unsigned int i;

	(void)state;
	world_make(3);
	for (i = 0; i < MANY; i++)
		wclient_new(&c[i], node[i], 1);
	return 0;
}

static int teardown(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < MANY; i++)
		wclient_end(&c[i]);
	world_unmake();
	return 0;
}

#define ask(i, op_, ...) \
	wask(&c[i], (struct rgate_request){ .op = RGATE_REQ_##op_, .handle = h[i], \
		##__VA_ARGS__ }, NULL)
#define submit(i, op_, ...) \
	wsubmit(&c[i], (struct rgate_request){ .op = RGATE_REQ_##op_, .handle = h[i], \
		##__VA_ARGS__ })
#define cancel(i, cookie) \
	wask(&c[i], (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = (cookie) }, NULL)

static void open_all(void)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		h[i] = lock_at(&c[i], 0, "l", 0);
}

static bool waits(unsigned int i, uint64_t cookie)
{
	settle();
	return !is_done(&c[i], cookie);
}

static struct rgate_lock_info lock_info(unsigned int i)
{
	struct rgate_lock_info info;

	assert_int_equal(ask(i, LOCK_STATE, .off = ROOM, .len = sizeof(info)), 0);
	memcpy(&info, c[i].c.mem + ROOM, sizeof(info));
	return info;
}

/* ---- As it should be ---- */

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

/* ---- Barriers ---- */

static void join_all(void)
{
	unsigned int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(open_at(&c[i], 0, "b", 0, RGATE_SYNC_CREATE, 3, 1, &h[i]), 0);
}

static void meet(void **state)
{
	unsigned int round, i;
	uint64_t wait[3], value;

	(void)state;
	join_all();
	for (round = 1; round < 5; round++) {
		for (i = 0; i < 3; i++) {
			assert_int_equal(ask((i + round) % 3, BARRIER_ARRIVE), 0);
			wait[(i + round) % 3] = submit((i + round) % 3, BARRIER_WAIT);
			if (i < 2)
				assert_true(waits((i + round) % 3, wait[(i + round) % 3]));
			/* news that are lost with the connection are told over the next one */
			if (round == 3)
				link_set(0, 1, false);
			pass(100);
			link_set(0, 1, true);
		}
		for (i = 0; i < 3; i++) {
			assert_int_equal(result_of(&c[i], wait[i], &value), 0);
			assert_int_equal(value, round);
		}
	}
	assert_int_equal(ask(1, BARRIER_CLOSE), 0);
	assert_int_equal(ask(2, BARRIER_CLOSE), 0);
}

static void member_dies(void **state)
{
	struct rgate_barrier_info info;
	uint64_t wait[2];
	unsigned int i;

	(void)state;
	join_all();
	for (i = 0; i < 2; i++) {
		assert_int_equal(ask(i, BARRIER_ARRIVE), 0);
		wait[i] = submit(i, BARRIER_WAIT, .off = ROOM, .len = sizeof(info));
	}
	settle();
	link_set(0, 2, false);
	pass(LEASE);
	assert_true(waits(0, wait[0]) && waits(1, wait[1]));
	pass(LEASE / 4);
	for (i = 0; i < 2; i++) {
		assert_int_equal(result_of(&c[i], wait[i], NULL), -EPIPE);
		memcpy(&info, c[i].c.mem + ROOM, sizeof(info));
		assert_int_equal(info.arrived, 3);
		assert_int_equal(info.dead, 4);
		assert_int_equal(info.node[0], RGATE_BARRIER_HOME);
		assert_int_equal(info.node[1], 1);
		assert_int_equal(info.node[2], 2);
		assert_int_equal(ask(i, BARRIER_ARRIVE), -EPIPE);
	}
	assert_int_equal(ask(2, BARRIER_ARRIVE), -ESTALE);
	/* who comes later finds it broken, too, and whom to blame */
	assert_int_equal(open_at(&c[3], 0, "b", 0, 0, 3, 1, &h[3]), -EPIPE);
	assert_int_equal(ask(1, BARRIER_STATE, .off = ROOM, .len = sizeof(info)), 0);
	memcpy(&info, c[1].c.mem + ROOM, sizeof(info));
	assert_int_equal(info.dead, 4);
}

/* Broken before one has arrived, and known to him by his arrival's end */
static void comes_late(void **state)
{
	struct rgate_barrier_info info;

	(void)state;
	join_all();
	wclient_end(&c[2]);
	settle();
	assert_int_equal(ask(1, BARRIER_ARRIVE), -EPIPE);
	assert_int_equal(ask(1, BARRIER_WAIT, .off = ROOM, .len = sizeof(info)), -EPIPE);
	memcpy(&info, c[1].c.mem + ROOM, sizeof(info));
	assert_int_equal(info.dead, 4);
	assert_int_equal(info.arrived, 0);
	assert_int_equal(info.node[2], 2);
}

static void home_of_barrier_dies(void **state)
{
	uint64_t wait;

	(void)state;
	join_all();
	assert_int_equal(ask(1, BARRIER_ARRIVE), 0);
	wait = submit(1, BARRIER_WAIT);
	settle();
	node_stop(0);
	pass(LEASE);
	assert_int_equal(result_of(&c[1], wait, NULL), -ECONNRESET);
}

/* ---- Lies ---- */

static void say(unsigned int to, const struct sync_result *r)
{
	unsigned char msg[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));

	w.node[to].hub.asks.message(w.node[to].hub.ctx, 0, msg, sync_answer_put(msg, r));
}

static struct sync_question last_question(void)
{
	const struct msgs *all = &w.peer[1][0].asked;
	struct sync_question q;
	const struct msg *m;

	assert_true(all->n);
	m = &all->m[all->n - 1];
	assert_int_equal(sync_question_get(&q, m->data, m->len), 0);
	return q;
}

/* A home's word is handed on, even one that stands for its silence elsewhere. */
static void home_says(void **state)
{
	static const int errs[] = { -ETIMEDOUT, -ENOTCONN };
	struct sync_result r = { .op = SYNC_STATE, .lease_ms = LEASE };
	unsigned int i;
	uint64_t a;

	(void)state;
	open_all();
	for (i = 0; i < 2; i++) {
		a = submit(1, LOCK_STATE, .off = ROOM, .len = sizeof(struct rgate_lock_info));
		node_turn(1);
		assert_int_equal(last_question().op, SYNC_STATE);
		r.number = last_question().number;
		r.err = errs[i];
		say(1, &r);
		assert_true(link_is_up(0, 1));
		assert_int_equal(result_of(&c[1], a, NULL), errs[i]);
	}
}

/* News that do not fit make nobody believe that he has the lock. */
static void false_news(void **state)
{
	struct sync_result r = { .op = SYNC_NEWS, .value = 7, .lease_ms = LEASE };
	struct sync_question q;
	uint64_t a, i;

	(void)state;
	open_all();
	assert_int_equal(ask(0, LOCK_ACQUIRE), 0);
	a = submit(1, LOCK_ACQUIRE);
	node_turn(1);
	q = last_question();
	assert_int_equal(q.op, SYNC_TAKE);
	settle();
	for (i = 0; i < 3; i++) {
		r.claim = q.claim + (i == 0);
		r.number = q.seq + (i == 1);
		r.err = i == 2 ? -EPIPE : 0;
		say(1, &r);
		assert_true(waits(1, a));
		assert_false(is_valid(&c[1], 0));
	}
	/* another node is not its home */
	r.err = 0;
	r.claim = q.claim;
	r.number = q.seq;
	say(2, &r);
	assert_true(waits(1, a));
	assert_int_equal(ask(0, LOCK_RELEASE), 0);
	assert_int_equal(result_of(&c[1], a, NULL), 0);
	/* nor is the end of a hold told by news */
	say(1, &r);
	assert_int_equal(place_of(&c[1], 0)->value, c[1].value[a]);
}

static struct sync_result ask_home(unsigned int from, struct sync_question q)
{
	static uint64_t number;
	unsigned char msg[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));
	struct sync_result r = { .err = 1 };
	struct msg m;

	q.number = (1ULL << 40) + 16 * ++number;
	w.node[0].hub.serves.message(w.node[0].hub.ctx, from, msg, sync_question_put(msg, &q));
	if (msgs_take(&w.peer[0][from].said, &m)) {
		assert_int_equal(sync_answer_get(&r, m.data, m.len), 0);
		assert_int_equal(r.number, q.number);
	}
	return r;
}

/* A node has its own claims alone, those of one user, and one life after the other. */
static void hostile_guest(void **state)
{
	struct sync_question q = { .op = SYNC_OPEN, .life = 5, .uid = 1, .as = {
		.kind = SYNC_LOCK, .owner = 1, .flags = RGATE_SYNC_CREATE, .name = "l" } };
	uint64_t claim;

	(void)state;
	claim = ask_home(1, q).claim;
	assert_true(claim);
	q.as.kind = 3;
	assert_int_equal(ask_home(1, q).err, -EINVAL);
	q = (struct sync_question){ .op = SYNC_TAKE, .life = 5, .uid = 2, .claim = claim };
	assert_int_equal(ask_home(1, q).err, -EACCES);
	assert_int_equal(ask_home(2, q).err, -EBADF);
	q.uid = 1;
	assert_int_equal(ask_home(2, q).err, -EBADF);
	q.claim += TABLE_CLAIMS;
	assert_int_equal(ask_home(1, q).err, -EBADF);
	q.claim = claim;
	q.life = 4;
	assert_int_equal(ask_home(1, q).err, -ESTALE);
	q.life = 5;
	assert_int_equal(ask_home(1, q).err, 0);
	assert_int_equal(ask_home(1, q).err, -EALREADY);
	/* the next life has nothing of this one */
	q.life = 6;
	assert_int_equal(ask_home(1, q).err, -EBADF);
	q.life = 5;
	assert_int_equal(ask_home(1, q).err, -ESTALE);
	h[0] = lock_at(&c[0], 0, "l", 0);
	assert_int_equal(ask(0, LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY), 0);
	/* nor does one that is over at the home come back, if it had something */
	q.life = 6;
	q.op = SYNC_OPEN;
	q.as = (struct sync_open){ .kind = SYNC_LOCK, .owner = 1, .flags = RGATE_SYNC_CREATE,
				   .name = "l" };
	assert_int_equal(ask_home(1, q).err, 0);
	w.node[1].paused = true;
	pass(PATIENCE + 50);
	w.node[1].paused = false;
	link_set(0, 1, true);
	node_turn(0);
	q.op = SYNC_RENEW;
	assert_int_equal(ask_home(1, q).err, -ESTALE);
	q.life = 7;
	assert_int_equal(ask_home(1, q).err, 0);
	peer_lose(&w.peer[0][1]);
	peer_lose(&w.peer[1][0]);
}

/* However many it asks for, there is room for others. */
static void greedy_guest(void **state)
{
	struct sync_question q = { .op = SYNC_OPEN, .life = 5, .as = {
		.kind = SYNC_LOCK, .flags = RGATE_SYNC_CREATE, .name = "l" } };
	unsigned int n = 0;

	(void)state;
	do {
		q.uid = q.as.owner = 100 + n / TABLE_UID;
	} while (!ask_home(1, q).err && ++n < 2 * TABLE_CLAIMS);
	assert_int_equal(n, TABLE_PARTY);
	h[0] = lock_at(&c[0], 0, "l", 0);
	h[2] = lock_at(&c[2], 0, "l", 0);
	peer_lose(&w.peer[0][1]);
}

static void malformed(void **state)
{
	const struct sync_question q = {
		.number = 32, .op = SYNC_OPEN, .uid = 2, .as = { .kind = SYNC_LOCK, .name = "n" },
	};
	unsigned char msg[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));
	struct sync_result r = { .op = SYNC_STATE, .kind = SYNC_LOCK };
	struct sync_question got;
	size_t i, len;

	(void)state;
	len = sync_question_put(msg, &q);
	for (i = 0; i < len; i++)
		assert_int_equal(sync_question_get(&got, msg, i), -EPROTO);
	assert_int_equal(sync_question_get(&got, msg, len + 1), -EPROTO);
	assert_int_equal(sync_question_get(&got, msg, len), 0);
	msg[2] = SYNC_NEWS;
	assert_int_equal(sync_question_get(&got, msg, len), -EOPNOTSUPP);
	assert_int_equal(got.number, 32);
	msg[2] = SYNC_TAKE;
	assert_int_equal(sync_question_get(&got, msg, len), -EPROTO);
	msg[1] = 2;
	assert_int_equal(sync_question_get(&got, msg, len), -EPROTONOSUPPORT);
	len = sync_answer_put(msg, &r);
	for (i = 0; i < len; i++)
		assert_int_equal(sync_answer_get(&r, msg, i), -EPROTO);
	assert_int_equal(sync_answer_get(&r, msg, len), 0);
	msg[3] = SYNC_BARRIER;
	assert_int_equal(sync_answer_get(&r, msg, len), -EPROTO);
	msg[3] = 3;
	assert_int_equal(sync_answer_get(&r, msg, len), -EPROTO);
	msg[1] = 2;
	assert_int_equal(sync_answer_get(&r, msg, len), 0);
	assert_int_equal(r.err, -EPROTONOSUPPORT);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	BED(in_turn), BED(listed), BED(not_listed), BED(list_cancelled), BED(refused),
	BED(cancelled), BED(again_at_once), BED(waiter_killed),
	BED(cut_for_short), BED(cut_for_long), BED(stands_still), BED(answers_too_late),
	BED(late_answer),
	BED(guest_restarts), BED(home_restarts), BED(home_dies), BED(home_quits), BED(opening),
	BED(no_room), BED(told_too_soon), BED(takes_nothing),
	BED(meet), BED(member_dies), BED(comes_late), BED(home_of_barrier_dies),
	BED(home_says), BED(false_news), BED(hostile_guest), BED(greedy_guest), BED(malformed),
};

UNIT_MAIN(tests)
