// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Locks of three nodes while everything goes wrong by a seed: messages late and out of step,
 * connections cut, nodes that stand still, are killed, come back; clients that give up or die.
 * At each moment a lock is taken by one client at most for his own, and what he has is
 * newer than all before. When it is over everybody gets the locks again.
 */
#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS	6U
#define LOCKS	2U		/* their homes are the nodes 0 and 1, their places the first ones */
#define SEEDS	60U
#define STEPS	1500U

enum act_state {
	ACT_NONE, ACT_OPENING, ACT_OPEN, ACT_ACQUIRING, ACT_HOLDING, ACT_RELEASING, ACT_CLOSING,
};

/* A client's doings with one lock */
struct actor {
	enum act_state state;
	uint64_t cookie;
	uint32_t handle;
	bool shared;		/* what it wants or has */
	bool was_valid;
	uint64_t token;		/* when it was */
};

static struct wclient c[CLIENTS];
static struct actor act[CLIENTS][LOCKS];
static uint64_t last[LOCKS];	/* token of a hold, */
static uint64_t alone_last[LOCKS]; /* and of one that was not shared */
static uint64_t random_state;
static unsigned long holds, losses;

static uint64_t some(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 11) % n;
}

/* ---- What has to hold ---- */

static void check(void)
{
	unsigned int i, lock, valid, alone;

	for (lock = 0; lock < LOCKS; lock++) {
		uint64_t newest = last[lock];

		valid = alone = 0;
		for (i = 0; i < CLIENTS; i++) {
			struct actor *a = &act[i][lock];
			const uint64_t token = c[i].there ? place_of(&c[i], lock)->value : 0;
			const bool now = c[i].there && is_valid(&c[i], lock);

			valid += now;
			alone += now && !a->shared;
			/* At the home a hold can be seen again, after the daemon stood still. */
			if (now && !a->was_valid) {
				assert_true(token > (a->shared ? alone_last : last)[lock] ||
					    (token == a->token && c[i].node == lock));
				a->token = token;
				newest = token > newest ? token : newest;
				if (!a->shared && token > alone_last[lock])
					alone_last[lock] = token;
				holds++;
			}
			a->was_valid = now;
		}
		last[lock] = newest;
		assert_true(!alone || valid == 1);
	}
}

/* ---- What clients do ---- */

static bool lives(unsigned int i)
{
	const struct wnode *n = &w.node[c[i].node];

	return c[i].there && n->e && n->incarnation == c[i].of;
}

static void client_submit_for(unsigned int i, unsigned int lock, struct rgate_request q,
			      enum act_state next)
{
	struct actor *a = &act[i][lock];

	q.handle = q.op == RGATE_REQ_LOCK_OPEN ? 0 : a->handle;
	a->cookie = wsubmit(&c[i], q);
	a->state = next;
}

static void begin_open(unsigned int i, unsigned int lock)
{
	struct rgate_sync_place *p = place_of(&c[i], lock);

	p->members = 0;
	strcpy(p->name, "l");
	client_submit_for(i, lock, (struct rgate_request){
		.op = RGATE_REQ_LOCK_OPEN, .a0 = lock, .off = lock * 128, .len = sizeof(*p),
		.a1 = RGATE_SYNC_OPEN_A1(1, RGATE_SYNC_CREATE) }, ACT_OPENING);
}

static void begin_acquire(unsigned int i, unsigned int lock)
{
	struct actor *a = &act[i][lock];
	const uint32_t flags = (some(4) ? 0 : RGATE_LOCK_SHARED) | (some(4) ? 0 : RGATE_LOCK_TRY);

	a->shared = flags & RGATE_LOCK_SHARED;
	client_submit_for(i, lock, (struct rgate_request){
		.op = RGATE_REQ_LOCK_ACQUIRE, .a0 = flags,
		.deadline_us = some(3) ? 0 : (uint32_t)some(500000) + 1 }, ACT_ACQUIRING);
}

static void ended(unsigned int i, unsigned int lock, int result)
{
	struct actor *a = &act[i][lock];
	const enum act_state was = a->state;

	a->state = ACT_OPEN;
	switch (was) {
	case ACT_OPENING:
		a->handle = (uint32_t)c[i].value[a->cookie];
		if (result)
			a->state = ACT_NONE;
		break;
	case ACT_ACQUIRING:
		if (!result)
			a->state = ACT_HOLDING;
		break;
	case ACT_CLOSING:
		assert_int_equal(result, 0);
		a->state = ACT_NONE;
		break;
	default:
		break;
	}
	if (result == -ESTALE || result == -ECONNRESET) {
		losses++;
		if (was != ACT_OPENING)
			client_submit_for(i, lock,
					  (struct rgate_request){ .op = RGATE_REQ_LOCK_CLOSE },
					  ACT_CLOSING);
	}
}

static void act_on(unsigned int i, unsigned int lock, bool wants)
{
	struct actor *a = &act[i][lock];

	if (!lives(i) || c[i].cookie > COOKIES - 20)
		return;
	if (a->state == ACT_NONE) {
		begin_open(i, lock);
		return;
	}
	if (a->state == ACT_OPEN && wants)
		begin_acquire(i, lock);
	else if (a->state == ACT_HOLDING)
		client_submit_for(i, lock, (struct rgate_request){ .op = RGATE_REQ_LOCK_RELEASE },
				  ACT_RELEASING);
	else if (a->state == ACT_ACQUIRING && !some(4))
		wsubmit(&c[i], (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = a->cookie });
	else if (a->state == ACT_OPEN && !some(4))
		client_submit_for(i, lock, (struct rgate_request){ .op = RGATE_REQ_LOCK_CLOSE },
				  ACT_CLOSING);
}

static void look_at(unsigned int i)
{
	unsigned int lock;

	if (!lives(i))
		return;
	for (lock = 0; lock < LOCKS; lock++) {
		struct actor *a = &act[i][lock];

		if (a->state != ACT_NONE && a->state != ACT_OPEN && a->state != ACT_HOLDING &&
		    is_done(&c[i], a->cookie))
			ended(i, lock, c[i].result[a->cookie]);
	}
}

static void new_client(unsigned int i)
{
	wclient_end(&c[i]);
	memset(act[i], 0, sizeof(act[i]));
	if (w.node[i % NODES].e && !w.node[i % NODES].paused)
		wclient_new(&c[i], i % NODES, 1);
}

/* ---- What goes wrong ---- */

/* Its clients are told nothing, and may go on for as long as they think that they may. */
static void kill_node(unsigned int n)
{
	uint64_t lease[CLIENTS][LOCKS];
	unsigned int i, lock;

	for (i = n; i < CLIENTS; i += NODES)
		for (lock = 0; lock < LOCKS; lock++)
			lease[i][lock] = c[i].there ? place_of(&c[i], lock)->lease_ns : 0;
	node_stop(n);
	for (i = n; i < CLIENTS; i += NODES)
		for (lock = 0; lock < LOCKS; lock++)
			if (c[i].there)
				place_of(&c[i], lock)->lease_ns = lease[i][lock];
}

static void go_wrong(void)
{
	const unsigned int n = (unsigned int)some(NODES);
	const unsigned int to = (n + 1 + (unsigned int)some(NODES - 1)) % NODES;

	switch (some(12)) {
	case 0:
		link_set(n, to, false);
		break;
	case 1:
	case 2:
	case 3:
		link_set(n, to, true);
		break;
	case 4:
		w.node[n].paused = w.node[n].e && !some(3);
		break;
	case 5:
		if (w.node[n].e && !some(8))
			kill_node(n);
		break;
	case 6:
	case 7:
		if (!w.node[n].e)
			node_start(n);
		break;
	case 8:
		w.peer[n][to].send_full = !some(4);
		break;
	case 9:
		w.now += some(12) ? 0 : some(3 * LEASE) * MS;
		break;
	case 10:
		if (!some(5))
			new_client((unsigned int)some(CLIENTS));
		break;
	default:
		w.node[n].paused = false;
	}
}

static void step(void)
{
	unsigned int i, n = (unsigned int)some(NODES), to = (unsigned int)some(NODES);

	if (!some(10))
		go_wrong();
	w.now += some(8) ? 0 : some(40) * MS;
	check();
	act_on((unsigned int)some(CLIENTS), (unsigned int)some(LOCKS), true);
	for (i = 0; i < 4; i++) {
		if (n != to)
			(void)deliver(n, to, some(2));
		check();
		n = (unsigned int)some(NODES);
		to = (unsigned int)some(NODES);
		node_turn(n);
		check();
	}
	for (i = 0; i < CLIENTS; i++)
		look_at(i);
	check();
}

/* Nothing goes wrong any more: each gets each lock. */
static void heal(void)
{
	unsigned int i, j, lock, round;

	for (i = 0; i < NODES; i++) {
		if (!w.node[i].e)
			node_start(i);
		w.node[i].paused = false;
		for (j = 0; j < NODES; j++)
			w.peer[i][j].send_full = false;
	}
	for (round = 0; round < 60; round++) {
		for (i = 0; i < NODES; i++)
			for (j = i + 1; j < NODES; j++)
				link_set(i, j, true);
		for (i = 0; i < CLIENTS; i++) {
			if (!lives(i))
				new_client(i);
			look_at(i);
			for (lock = 0; lock < LOCKS; lock++)
				act_on(i, lock, false);
		}
		pass(100);
		check();
	}
	for (i = 0; i < CLIENTS; i++) {
		for (lock = 0; lock < LOCKS; lock++) {
			/* until it is open, and nobody asks for it */
			for (round = 0; round < 20 && act[i][lock].state != ACT_OPEN; round++) {
				act_on(i, lock, false);
				settle();
				look_at(i);
			}
			assert_int_equal(act[i][lock].state, ACT_OPEN);
			act[i][lock].shared = false;
			assert_int_equal(wask(&c[i], (struct rgate_request){
				.op = RGATE_REQ_LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY,
				.handle = act[i][lock].handle }, NULL), 0);
			check();
			assert_int_equal(wask(&c[i], (struct rgate_request){
				.op = RGATE_REQ_LOCK_RELEASE,
				.handle = act[i][lock].handle }, NULL), 0);
			check();
		}
	}
}

static void storm(void **state)
{
	const char *only = getenv("RGATE_TEST_SEED");
	unsigned int seed, i;

	(void)state;
	holds = losses = 0;
	for (seed = 1; seed <= (only ? 1 : unit_rounds(SEEDS)); seed++) {
		random_state = 88172645463325252ULL + (only ? strtoul(only, NULL, 0) : seed);
		memset(act, 0, sizeof(act));
		memset(last, 0, sizeof(last));
		memset(alone_last, 0, sizeof(alone_last));
		print_message("# seed %u\n", seed);
		world_make(NODES);
		for (i = 0; i < CLIENTS; i++)
			new_client(i);
		for (i = 0; i < STEPS; i++)
			step();
		heal();
		for (i = 0; i < CLIENTS; i++)
			wclient_end(&c[i]);
		world_unmake();
	}
	print_message("# %lu holds, %lu lost\n", holds, losses);
	assert_true(holds > 10 * seed && losses > seed);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(storm),
};

UNIT_MAIN_ALONE(tests)
