// SPDX-License-Identifier: MIT OR GPL-2.0
/* Barriers whose home is another node */
#include "four.h"

#include <errno.h>
#include <string.h>

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

/* Who arrives and waits by one submission, and cannot arrive, has nothing to wait for. */
static void is_refused(void **state)
{
	uint64_t arrive, wait;

	(void)state;
	join_all();
	w.may = false;
	arrive = submit(1, BARRIER_ARRIVE);
	wait = submit(1, BARRIER_WAIT);
	assert_int_equal(result_of(&c[1], arrive, NULL), -EACCES);
	assert_int_equal(result_of(&c[1], wait, NULL), -ENOLCK);
	w.may = true;
	assert_int_equal(ask(1, BARRIER_ARRIVE), 0);
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

static const struct CMUnitTest tests[] = {
	BED(meet), BED(member_dies), BED(comes_late), BED(is_refused),
	BED(home_of_barrier_dies),
};

UNIT_MAIN_ALONE(tests)
