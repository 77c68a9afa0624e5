// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Before a home gives away what a node had that it does not hear of any more, the others end
 * their connections to that node. Node 0 is the home, node 1 is cut off from it, and node 2 is
 * asked, whose memory node 1 could write meanwhile.
 */
#include "world.h"

#include <errno.h>
#include <string.h>

static struct wclient waits, holds;
static uint32_t h_waits, h_holds;
static uint64_t cookie;
static unsigned int refused, unasked;	/* times that the log says so */

static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)ctx;
	(void)level;
	refused += strstr(msg, "did not end") ? 1 : 0;
	unasked += strstr(msg, "locks of node 1 go on, and node 2 cannot be asked") ? 1 : 0;
}

static int setup(void **state)
{
	(void)state;
	refused = unasked = 0;
	rgate_log_set(on_log, NULL);
	world_make(3);
	wclient_new(&waits, 0, 1);
	wclient_new(&holds, 1, 1);
	h_waits = lock_at(&waits, 0, "l", 0);
	h_holds = lock_at(&holds, 0, "l", 0);
	assert_int_equal(wask(&holds, (struct rgate_request){
		.op = RGATE_REQ_LOCK_ACQUIRE, .handle = h_holds }, NULL), 0);
	cookie = wsubmit(&waits, (struct rgate_request){
		.op = RGATE_REQ_LOCK_ACQUIRE, .handle = h_waits });
	settle();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wclient_end(&waits);
	wclient_end(&holds);
	world_unmake();
	rgate_log_set(NULL, NULL);
	return 0;
}

/* The home hears nothing of node 1 until it takes its life for over. */
static void cut_off(void)
{
	link_set(0, 1, false);
	pass(PATIENCE);
	assert_false(is_valid(&holds, 0));
}

static bool is_given(void)
{
	settle();
	return is_done(&waits, cookie);
}

static void asked(void **state)
{
	(void)state;
	cut_off();
	assert_true(is_given());
	assert_int_equal(waits.result[cookie], 0);
	assert_int_equal(w.peer[2][1].cuts, 1);
	/* once, and nobody else's */
	pass(3 * LEASE);
	assert_int_equal(w.peer[2][1].cuts, 1);
	assert_int_equal(w.peer[2][0].cuts, 0);
	assert_int_equal(w.peer[0][2].cuts, 0);
	assert_int_equal(unasked, 0);
	/* and it is as good as any afterwards */
	link_set(0, 1, true);
	link_set(1, 2, true);
	settle();
	assert_int_equal(wask(&waits, (struct rgate_request){
		.op = RGATE_REQ_LOCK_RELEASE, .handle = h_waits }, NULL), 0);
	assert_int_equal(wask(&holds, (struct rgate_request){
		.op = RGATE_REQ_LOCK_CLOSE, .handle = h_holds }, NULL), 0);
	h_holds = lock_at(&holds, 0, "l", 0);
	assert_int_equal(wask(&holds, (struct rgate_request){
		.op = RGATE_REQ_LOCK_ACQUIRE, .handle = h_holds }, NULL), 0);
}

/* The lock is nobody's before node 2 has said so, and before it has done it. */
static void acknowledged(void **state)
{
	struct rgate_peer *said = &w.peer[2][0];
	const struct msg *m;

	(void)state;
	w.node[2].paused = true;
	cut_off();
	pass(LEASE / 2);
	assert_false(is_given());
	assert_int_equal(w.peer[2][1].cuts, 0);
	w.node[2].paused = false;
	assert_true(deliver(0, 2, true));
	assert_int_equal(w.peer[2][1].cuts, 1);
	node_turn(0);
	assert_false(is_done(&waits, cookie));
	assert_int_equal(said->said.n + said->asked.n, 1);
	m = said->said.n ? &said->said.m[0] : &said->asked.m[0];
	assert_int_equal(m->data[2], SYNC_FENCE);
	assert_true(is_given());
}

/* Over a connection that breaks it is asked again. */
static void asked_again(void **state)
{
	(void)state;
	w.node[2].paused = true;
	cut_off();
	link_set(0, 2, false);
	settle();
	assert_false(is_given());
	link_set(0, 2, true);
	settle();
	w.node[2].paused = false;
	assert_true(is_given());
	assert_int_equal(w.peer[2][1].cuts, 1);
}

/* The home takes what it has at node 2 for lost, and waits for no answer there but for this one. */
static void lapsed(void **state)
{
	uint32_t there;

	(void)state;
	there = lock_at(&waits, 1, "m", 2);
	assert_int_equal(wask(&waits, (struct rgate_request){
		.op = RGATE_REQ_LOCK_ACQUIRE, .handle = there }, NULL), 0);
	link_set(0, 1, false);
	pass(PATIENCE - 150);
	assert_true(is_valid(&waits, 1));
	w.node[2].paused = true;
	pass(LEASE);
	assert_false(is_valid(&waits, 1));
	assert_false(is_given());
	/* what was asked first nobody waits for; it is asked twice, and done once */
	w.node[2].paused = false;
	while (deliver(0, 2, true))
		;
	while (deliver(2, 0, false))
		;
	assert_int_equal(refused, 0);
	assert_true(is_given());
	assert_int_equal(w.peer[2][1].cuts, 1);
}

/* Who never answers keeps it from others for a lease, and no longer. */
static void silent(void **state)
{
	(void)state;
	w.node[2].paused = true;
	cut_off();
	pass(LEASE - 100);
	assert_false(is_given());
	pass(150);
	assert_true(is_given());
	/* what it says then is said to nobody */
	w.node[2].paused = false;
	settle();
	assert_int_equal(w.peer[2][1].cuts, 1);
}

/* Its process ends: so have its connections. */
static void another(void **state)
{
	(void)state;
	w.node[2].paused = true;
	cut_off();
	assert_false(is_given());
	node_stop(2);
	settle();
	assert_false(is_given());
	node_start(2);
	link_set(0, 2, true);
	assert_true(is_given());
	assert_int_equal(w.peer[2][1].cuts, 0);
}

/* A node that the home cannot ask is not waited for, and is named. */
static void unreachable(void **state)
{
	(void)state;
	link_set(0, 2, false);
	settle();
	cut_off();
	assert_true(is_given());
	assert_int_equal(w.peer[2][1].cuts, 0);
	assert_int_equal(unasked, 1);
}

/* The home ends while it waits, and is followed by another one. */
static void home_ends(void **state)
{
	(void)state;
	w.node[2].paused = true;
	cut_off();
	assert_false(is_given());
	wclient_end(&waits);
	node_stop(0);
	w.node[2].paused = false;
	node_start(0);
	link_set(0, 2, true);
	pass(2 * LEASE);
	wclient_new(&waits, 0, 1);
	h_waits = lock_at(&waits, 0, "l", 0);
	assert_int_equal(wask(&waits, (struct rgate_request){
		.op = RGATE_REQ_LOCK_ACQUIRE, .handle = h_waits }, NULL), 0);
}

static int ask_node(unsigned int node, unsigned int from, struct sync_question q)
{
	static uint64_t number;
	unsigned char msg[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));
	struct sync_result r = { .err = 1 };
	struct msg m;

	q.number = (1ULL << 40) + 16 * ++number;
	w.node[node].hub.serves.message(w.node[node].hub.ctx, from, msg,
					sync_question_put(msg, &q));
	if (msgs_take(&w.peer[node][from].said, &m)) {
		assert_int_equal(sync_answer_get(&r, m.data, m.len), 0);
		assert_int_equal(r.number, q.number);
		assert_int_equal(r.op, SYNC_FENCE);
	}
	return r.err;
}

/* Whoever asks for nothing has no connection ended more often than a home has a reason to. */
static void liar(void **state)
{
	struct sync_question q = { .op = SYNC_FENCE, .claim = 1, .life = 3 };
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		link_set(1, 2, true);
		settle();
		assert_int_equal(ask_node(2, 0, q), 0);
		assert_int_equal(w.peer[2][1].cuts, i + 1);
		link_set(1, 2, true);
		settle();
		/* it was done */
		assert_int_equal(ask_node(2, 0, q), 0);
		q.life++;
		assert_int_equal(ask_node(2, 0, q), -EAGAIN);
		pass(LEASE - 50);
		assert_int_equal(ask_node(2, 0, q), -EAGAIN);
		assert_int_equal(w.peer[2][1].cuts, i + 1);
		pass(50);
	}
	/* of itself, of the one it asks, of one that is not there */
	q.claim = 0;
	assert_int_equal(ask_node(2, 0, q), -EINVAL);
	q.claim = 2;
	assert_int_equal(ask_node(2, 0, q), -EINVAL);
	q.claim = 7;
	assert_int_equal(ask_node(2, 0, q), -EINVAL);
	q.claim = RGATE_NODES_MAX;
	assert_int_equal(ask_node(2, 0, q), -EINVAL);
	q.claim = UINT64_MAX;
	assert_int_equal(ask_node(2, 0, q), -EINVAL);
	assert_int_equal(w.peer[2][0].cuts, 0);
}

/*
 * Node 2 ended the connection for an earlier life, late, and less than a lease ago: it is asked
 * until it ends another one for this life.
 */
static void asked_for_next(void)
{
	uint64_t next;
	uint32_t h;

	h = lock_at(&holds, 0, "m", 0);
	assert_int_equal(wask(&holds, (struct rgate_request){
		.op = RGATE_REQ_LOCK_ACQUIRE, .handle = h }, NULL), 0);
	h = lock_at(&waits, 0, "m", 0);
	next = wsubmit(&waits, (struct rgate_request){ .op = RGATE_REQ_LOCK_ACQUIRE, .handle = h });
	settle();
	link_set(0, 1, false);
	pass(LEASE - 150);
	w.node[2].paused = false;
	assert_true(is_given());
	assert_int_equal(w.peer[2][1].cuts, 1);
	link_set(1, 2, true);
	pass(LEASE / 2);
	assert_int_equal(w.peer[2][1].cuts, 1);
	assert_false(is_done(&waits, next));
	pass(LEASE);
	assert_int_equal(w.peer[2][1].cuts, 2);
	assert_true(is_done(&waits, next));
	assert_int_equal(waits.result[next], 0);
	assert_int_equal(refused, 0);
}

static void was_asked(void **state)
{
	(void)state;
	w.node[2].paused = true;
	cut_off();
	link_set(0, 1, true);
	asked_for_next();
}

/* Of another process, whose lives are no more the ones of the process before */
static void was_asked_before(void **state)
{
	(void)state;
	w.node[2].paused = true;
	/* in its first life, as it will be then */
	w.node[1].paused = true;
	link_set(0, 1, false);
	pass(PATIENCE);
	node_stop(1);
	wclient_end(&holds);
	node_start(1);
	link_set(0, 1, true);
	wclient_new(&holds, 1, 1);
	asked_for_next();
}

/* A version that knows nothing of it, and one that refuses, are not waited for. */
static void refuses(void **state)
{
	unsigned char msg[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));
	struct sync_result r = { .op = SYNC_FENCE, .err = -EOPNOTSUPP, .lease_ms = LEASE };
	struct sync_question q;
	struct msg m;

	(void)state;
	w.node[2].paused = true;
	cut_off();
	assert_false(is_given());
	assert_true(msgs_take(&w.peer[0][2].asked, &m));
	assert_int_equal(sync_question_get(&q, m.data, m.len), 0);
	assert_int_equal(q.op, SYNC_FENCE);
	assert_int_equal(q.claim, 1);
	assert_true(q.life > 0);
	r.number = q.number;
	w.node[0].hub.asks.message(w.node[0].hub.ctx, 2, msg, sync_answer_put(msg, &r));
	assert_true(is_given());
	assert_int_equal(refused, 1);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	BED(asked), BED(acknowledged), BED(asked_again), BED(lapsed), BED(silent), BED(another),
	BED(unreachable), BED(home_ends), BED(liar), BED(was_asked),
	BED(was_asked_before), BED(refuses),
};

UNIT_MAIN_ALONE(tests)
