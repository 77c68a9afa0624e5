// SPDX-License-Identifier: MIT OR GPL-2.0
/* Locks and barriers of one machine's sessions */
#include "world.h"

#include <errno.h>
#include <string.h>

#define MANY	8U

static struct wclient c[MANY];
static uint32_t h[MANY];

static int setup(void **state)
{
	unsigned int i;

	(void)state;
	world_make(0);
	for (i = 0; i < MANY; i++)
		wclient_new(&c[i], 0, i < MANY / 2 ? 1 : 2);
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
/* without a handle */
#define plain(i, op_, ...) \
	wask(&c[i], (struct rgate_request){ .op = RGATE_REQ_##op_, ##__VA_ARGS__ }, NULL)
#define submit(i, op_, ...) \
	wsubmit(&c[i], (struct rgate_request){ .op = RGATE_REQ_##op_, .handle = h[i], \
		##__VA_ARGS__ })

/* All of one user's sessions: the first @n have the lock open, in their first place */
static void open_many(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		assert_int_equal(open_at(&c[i], 0, "l", NODES, RGATE_SYNC_CREATE |
					 RGATE_SYNC_OTHERS, 0, 1, &h[i]), i < MANY / 2 ? 0 :
				 i ? 0 : -ENOENT);
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

/* ---- Locks ---- */

static void in_turn(void **state)
{
	uint64_t cookie[MANY], token, last = 0;
	struct rgate_lock_info info;
	unsigned int i;

	(void)state;
	open_many(MANY);
	for (i = 0; i < MANY; i++) {
		assert_false(is_valid(&c[i], 0));
		cookie[i] = submit(i, LOCK_ACQUIRE);
		settle();
	}
	for (i = 0; i < MANY; i++) {
		assert_int_equal(result_of(&c[i], cookie[i], &token), 0);
		assert_true(token > last);
		assert_int_equal(place_of(&c[i], 0)->value, token);
		assert_true(is_valid(&c[i], 0));
		last = token;
		info = lock_info(i);
		assert_int_equal(info.token, token);
		assert_int_equal(info.owner, 1);
		assert_int_equal(info.flags, RGATE_SYNC_OTHERS);
		assert_int_equal(info.holders, 1);
		assert_int_equal(info.waiters, MANY - 1 - i);
		assert_int_equal(info.holder_uid, i < MANY / 2 ? 1 : 2);
		assert_int_equal(info.holder_node, RGATE_SYNC_NO_NODE);
		assert_int_equal(info.shared, 0);
		assert_string_equal(info.name, "l");
		if (i + 1 < MANY)
			assert_true(waits(i + 1, cookie[i + 1]));
		assert_int_equal(ask(i, LOCK_RELEASE), 0);
		assert_false(is_valid(&c[i], 0));
		assert_int_equal(ask(i, LOCK_RELEASE), -ENOLCK);
	}
	info = lock_info(0);
	assert_int_equal(info.holders, 0);
	assert_int_equal(info.waiters, 0);
	assert_int_equal(place_of(&c[0], 0)->lost, 0);
}

static void shared(void **state)
{
	uint64_t r[4], x;

	(void)state;
	open_many(6);
	assert_int_equal(ask(0, LOCK_ACQUIRE, .a0 = RGATE_LOCK_SHARED), 0);
	assert_int_equal(ask(1, LOCK_ACQUIRE, .a0 = RGATE_LOCK_SHARED), 0);
	assert_int_equal(lock_info(0).holders, 2);
	assert_int_equal(lock_info(0).shared, 1);
	x = submit(2, LOCK_ACQUIRE);
	settle();
	/* who comes after one that wants it alone does not pass him */
	r[0] = submit(3, LOCK_ACQUIRE, .a0 = RGATE_LOCK_SHARED);
	settle();
	r[1] = submit(4, LOCK_ACQUIRE, .a0 = RGATE_LOCK_SHARED);
	assert_true(waits(3, r[0]) && waits(4, r[1]) && waits(2, x));
	assert_int_equal(ask(5, LOCK_ACQUIRE, .a0 = RGATE_LOCK_SHARED | RGATE_LOCK_TRY), -EAGAIN);
	assert_int_equal(ask(0, LOCK_RELEASE), 0);
	assert_true(waits(2, x));
	assert_int_equal(ask(1, LOCK_RELEASE), 0);
	assert_int_equal(result_of(&c[2], x, NULL), 0);
	assert_true(waits(3, r[0]));
	assert_int_equal(ask(2, LOCK_RELEASE), 0);
	assert_int_equal(result_of(&c[3], r[0], NULL), 0);
	assert_int_equal(result_of(&c[4], r[1], NULL), 0);
	assert_int_equal(ask(5, LOCK_ACQUIRE, .a0 = RGATE_LOCK_SHARED | RGATE_LOCK_TRY), 0);
	assert_int_equal(ask(2, LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY), -EAGAIN);
	assert_int_equal(lock_info(2).holders, 3);
}

static void try_it(void **state)
{
	(void)state;
	open_many(2);
	assert_int_equal(ask(0, LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY), 0);
	assert_int_equal(ask(0, LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY), -EALREADY);
	assert_int_equal(ask(1, LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY), -EAGAIN);
	assert_int_equal(ask(1, LOCK_RELEASE), -ENOLCK);
	assert_int_equal(lock_info(0).waiters, 0);
	assert_int_equal(ask(0, LOCK_RELEASE), 0);
	assert_int_equal(ask(1, LOCK_ACQUIRE, .a0 = RGATE_LOCK_TRY), 0);
	assert_int_equal(ask(1, LOCK_ACQUIRE, .a0 = 4), -EINVAL);
}

/* Who does not wait any more is passed. */
static void given_up(void **state)
{
	uint64_t a, b, d;

	(void)state;
	open_many(4);
	assert_int_equal(ask(0, LOCK_ACQUIRE), 0);
	a = submit(1, LOCK_ACQUIRE);
	settle();
	b = submit(2, LOCK_ACQUIRE, .deadline_us = 20000);
	settle();
	d = submit(3, LOCK_ACQUIRE);
	assert_true(waits(1, a) && waits(2, b) && waits(3, d));
	assert_int_equal(plain(1, CANCEL, .a0 = a), 0);
	assert_int_equal(result_of(&c[1], a, NULL), -ECANCELED);
	pass(50);
	assert_int_equal(result_of(&c[2], b, NULL), -ETIMEDOUT);
	assert_int_equal(lock_info(0).waiters, 1);
	assert_int_equal(ask(0, LOCK_RELEASE), 0);
	assert_int_equal(result_of(&c[3], d, NULL), 0);
	assert_false(is_valid(&c[1], 0) || is_valid(&c[2], 0));
	/* too late, so it has it */
	a = submit(0, LOCK_ACQUIRE);
	assert_int_equal(ask(3, LOCK_RELEASE), 0);
	assert_int_equal(plain(0, CANCEL, .a0 = a), -ENOENT);
	assert_int_equal(result_of(&c[0], a, NULL), 0);
	assert_true(is_valid(&c[0], 0));
	/* it may come back */
	assert_int_equal(ask(0, LOCK_RELEASE), 0);
	assert_int_equal(ask(1, LOCK_ACQUIRE), 0);
}

static void killed(void **state)
{
	uint64_t a, b;

	(void)state;
	open_many(4);
	assert_int_equal(ask(0, LOCK_ACQUIRE), 0);
	a = submit(1, LOCK_ACQUIRE);
	settle();
	b = submit(2, LOCK_ACQUIRE);
	settle();
	wclient_end(&c[1]);		/* waits */
	assert_true(waits(2, b));
	assert_int_equal(lock_info(2).waiters, 1);
	wclient_end(&c[0]);		/* has it */
	assert_int_equal(result_of(&c[2], b, NULL), 0);
	wclient_end(&c[2]);
	assert_int_equal(ask(3, LOCK_ACQUIRE), 0);
	(void)a;
}

static void closed(void **state)
{
	uint64_t a, b;

	(void)state;
	open_many(3);
	assert_int_equal(ask(0, LOCK_ACQUIRE), 0);
	a = submit(1, LOCK_ACQUIRE);
	settle();
	b = submit(2, LOCK_ACQUIRE);
	settle();
	assert_int_equal(ask(1, LOCK_CLOSE), 0);
	assert_int_equal(result_of(&c[1], a, NULL), -ECANCELED);
	assert_int_equal(ask(1, LOCK_ACQUIRE), -EBADF);
	assert_int_equal(ask(1, LOCK_CLOSE), -EBADF);
	assert_int_equal(ask(0, LOCK_CLOSE), 0);
	assert_false(is_valid(&c[0], 0));
	assert_int_equal(result_of(&c[2], b, NULL), 0);
	/* a handle of the one service is none of the other */
	assert_int_equal(ask(2, BARRIER_CLOSE), -EBADF);
}

static int open_as(unsigned int i, const char *name, uint32_t flags, uid_t owner)
{
	return open_at(&c[i], 1, name, NODES, flags, 0, owner, &h[i]);
}

static void names(void **state)
{
	char longest[RGATE_SYNC_NAME_ROOM + 1];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[RGATE_SYNC_NAME_MAX] = '\0';
	assert_int_equal(open_as(0, longest, RGATE_SYNC_CREATE, 1), 0);
	assert_int_equal(open_as(0, "", RGATE_SYNC_CREATE, 1), -EINVAL);
	assert_int_equal(open_as(0, "a b", RGATE_SYNC_CREATE, 1), -EINVAL);
	longest[RGATE_SYNC_NAME_MAX] = 'x';
	memcpy(place_of(&c[0], 2)->name, longest, RGATE_SYNC_NAME_ROOM);
	assert_int_equal(plain(0, LOCK_OPEN, .a0 = RGATE_SYNC_HERE,
			       .a1 = RGATE_SYNC_OPEN_A1(1, RGATE_SYNC_CREATE), .off = 256,
			     .len = sizeof(struct rgate_sync_place)), -EINVAL);
	/* of each user his own */
	assert_int_equal(open_as(0, "n", 0, 1), -ENOENT);
	assert_int_equal(open_as(4, "n", RGATE_SYNC_CREATE, 1), -ENOENT);
	assert_int_equal(open_as(0, "n", RGATE_SYNC_CREATE, 1), 0);
	assert_int_equal(open_as(4, "n", 0, 1), -EACCES);
	assert_int_equal(open_as(4, "n", RGATE_SYNC_CREATE, 2), 0);
	assert_int_equal(ask(0, LOCK_ACQUIRE), 0);
	assert_int_equal(ask(4, LOCK_ACQUIRE), 0);
	assert_int_equal(open_as(1, "n", 4, 1), -EINVAL);
	/* it is there as long as somebody has it */
	assert_int_equal(ask(4, LOCK_CLOSE), 0);
	assert_int_equal(open_as(5, "n", 0, 2), -ENOENT);
	/* no such node, and what is no place */
	assert_int_equal(plain(0, LOCK_OPEN, .a0 = 1, .len = 96), -ENXIO);
	assert_int_equal(plain(0, LOCK_OPEN, .a0 = RGATE_SYNC_HERE, .len = 95),
			 -EINVAL);
	assert_int_equal(plain(0, LOCK_OPEN, .a0 = RGATE_SYNC_HERE, .len = 96,
			       .off = 4), -EINVAL);
}

static void listed(void **state)
{
	struct rgate_lock_info info;
	uint64_t at = 0;
	unsigned int n = 0;
	int result;

	(void)state;
	assert_int_equal(open_as(0, "own", RGATE_SYNC_CREATE, 1), 0);
	assert_int_equal(open_as(1, "all", RGATE_SYNC_CREATE | RGATE_SYNC_OTHERS, 1), 0);
	assert_int_equal(ask(1, LOCK_ACQUIRE), 0);
	assert_int_equal(open_at(&c[2], 1, "b", NODES, RGATE_SYNC_CREATE | RGATE_SYNC_OTHERS, 2,
				 1, &h[2]), 0);
	while ((result = wask(&c[4], (struct rgate_request){
			.op = RGATE_REQ_LOCK_LIST, .a0 = RGATE_SYNC_HERE, .a1 = at, .off = ROOM,
			.len = sizeof(info) }, &at)) == 1) {
		memcpy(&info, c[4].c.mem + ROOM, sizeof(info));
		assert_string_equal(info.name, "all");
		assert_int_equal(info.holders, 1);
		n++;
	}
	assert_int_equal(result, 0);
	assert_int_equal(n, 1);
	assert_int_equal(plain(0, LOCK_LIST, .a0 = RGATE_SYNC_HERE, .len = 1), -EINVAL);
	assert_int_equal(ask(0, LOCK_STATE, .off = ROOM, .len = sizeof(info) - 1), -EINVAL);
}

static void quota(void **state)
{
	static uint32_t held[TABLE_UID + 1];
	unsigned int i;
	int err = 0;

	(void)state;
	for (i = 0; i <= TABLE_UID && !err; i++)
		err = open_at(&c[i % 4], 0, i % 2 ? "a" : "b", NODES, RGATE_SYNC_CREATE, 0, 1,
			      &held[i]);
	assert_int_equal(err, -EDQUOT);
	assert_int_equal(i - 1, TABLE_UID);
	assert_int_equal(open_at(&c[4], 0, "a", NODES, RGATE_SYNC_CREATE, 0, 2, &h[4]), 0);
	h[0] = held[0];
	assert_int_equal(ask(0, LOCK_CLOSE), 0);
	assert_int_equal(open_at(&c[1], 0, "b", NODES, RGATE_SYNC_CREATE, 0, 1, &h[1]), 0);
}

/* ---- Barriers ---- */

static void join(unsigned int i, uint32_t members, int result)
{
	assert_int_equal(open_at(&c[i], 0, "b", NODES, RGATE_SYNC_CREATE | RGATE_SYNC_OTHERS,
				 members, 1, &h[i]), result);
}

static struct rgate_barrier_info barrier_info(unsigned int i)
{
	struct rgate_barrier_info info;

	assert_int_equal(ask(i, BARRIER_STATE, .off = ROOM, .len = sizeof(info)), 0);
	memcpy(&info, c[i].c.mem + ROOM, sizeof(info));
	return info;
}

static void meet(void **state)
{
	struct rgate_barrier_info info;
	uint64_t round, wait[3], value;
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		join(i, 3, 0);
	join(3, 3, -EUSERS);
	join(3, 4, -EINVAL);
	for (round = 1; round < 4; round++) {
		for (i = 0; i < 3; i++) {
			info = barrier_info(0);
			assert_int_equal(info.generation, round - 1);
			assert_int_equal(info.arrived, (1U << i) - 1);
			assert_int_equal(ask(i, BARRIER_WAIT), -ENOLCK);
			assert_int_equal(ask(i, BARRIER_ARRIVE), 0);
			assert_int_equal(ask(i, BARRIER_ARRIVE), -EALREADY);
			/* the last one waits when all are there */
			if (i == 2)
				break;
			wait[i] = submit(i, BARRIER_WAIT);
			assert_true(waits(i, wait[i]));
			assert_int_equal(ask(i, BARRIER_WAIT), -EALREADY);
		}
		wait[2] = submit(2, BARRIER_WAIT);
		for (i = 0; i < 3; i++) {
			assert_int_equal(result_of(&c[i], wait[i], &value), 0);
			assert_int_equal(value, round);
			assert_int_equal(place_of(&c[i], 0)->value, round);
			assert_false(is_valid(&c[i], 0));
		}
	}
	/* one may leave, and another one come */
	assert_int_equal(ask(1, BARRIER_CLOSE), 0);
	join(3, 3, 0);
	assert_int_equal(barrier_info(3).joined, 3);
	assert_int_equal(barrier_info(3).node[1], RGATE_BARRIER_HOME);
	assert_int_equal(barrier_info(3).dead, 0);
}

static void wait_given_up(void **state)
{
	uint64_t wait;

	(void)state;
	join(0, 2, 0);
	join(1, 2, 0);
	assert_int_equal(ask(0, BARRIER_ARRIVE), 0);
	wait = submit(0, BARRIER_WAIT, .deadline_us = 10000);
	assert_true(waits(0, wait));
	pass(50);
	assert_int_equal(result_of(&c[0], wait, NULL), -ETIMEDOUT);
	/* it has arrived all the same */
	assert_int_equal(ask(1, BARRIER_ARRIVE), 0);
	assert_int_equal(ask(1, BARRIER_WAIT), 0);
	assert_int_equal(ask(0, BARRIER_WAIT), 0);
}

static void broken(void **state)
{
	struct rgate_barrier_info info;
	uint64_t wait;

	(void)state;
	join(0, 4, 0);
	join(1, 4, 0);
	join(2, 4, 0);
	assert_int_equal(ask(0, BARRIER_ARRIVE), 0);
	wait = submit(0, BARRIER_WAIT, .off = ROOM, .len = sizeof(info));
	assert_true(waits(0, wait));
	wclient_end(&c[1]);
	assert_int_equal(result_of(&c[0], wait, NULL), -EPIPE);
	memcpy(&info, c[0].c.mem + ROOM, sizeof(info));
	assert_int_equal(info.arrived, 1);
	assert_int_equal(info.dead, 2);
	assert_int_equal(info.members, 4);
	assert_int_equal(info.joined, 2);
	assert_int_equal(info.generation, 0);
	assert_int_equal(info.node[1], RGATE_BARRIER_HOME);
	assert_int_equal(info.node[3], RGATE_BARRIER_NOBODY);
	/* for all, for ever */
	assert_int_equal(ask(0, BARRIER_ARRIVE), -EPIPE);
	assert_int_equal(ask(0, BARRIER_WAIT), -EPIPE);
	assert_int_equal(ask(2, BARRIER_ARRIVE), -EPIPE);
	assert_int_equal(ask(2, BARRIER_WAIT, .off = ROOM, .len = sizeof(info)), -EPIPE);
	assert_memory_equal(c[2].c.mem + ROOM, &info, sizeof(info));
	join(3, 4, -EPIPE);
	/* but a new one may be made when nobody has the old one */
	assert_int_equal(ask(0, BARRIER_CLOSE), 0);
	assert_int_equal(ask(2, BARRIER_CLOSE), 0);
	join(3, 1, 0);
	assert_int_equal(ask(3, BARRIER_ARRIVE), 0);
	assert_int_equal(ask(3, BARRIER_WAIT), 0);
}

/* Who has arrived is needed: a close is as good as a death then, and none otherwise. */
static void leaves(void **state)
{
	uint64_t wait;

	(void)state;
	join(0, 2, 0);
	join(1, 2, 0);
	assert_int_equal(ask(0, BARRIER_ARRIVE), 0);
	wait = submit(0, BARRIER_WAIT);
	assert_int_equal(ask(1, BARRIER_CLOSE), 0);
	assert_true(waits(0, wait));
	join(1, 2, 0);
	assert_int_equal(ask(0, BARRIER_CLOSE), 0);
	assert_int_equal(result_of(&c[0], wait, NULL), -ECANCELED);
	assert_int_equal(ask(1, BARRIER_ARRIVE), -EPIPE);
}

static void bad_barriers(void **state)
{
	(void)state;
	join(0, RGATE_BARRIER_MEMBERS + 1, -EINVAL);
	join(0, RGATE_BARRIER_MEMBERS, 0);
	assert_int_equal(ask(0, BARRIER_WAIT, .len = 4), -EINVAL);
	assert_int_equal(ask(0, BARRIER_STATE, .len = 4), -EINVAL);
	assert_int_equal(ask(0, LOCK_ACQUIRE), -EBADF);
	place_of(&c[1], 0)->members = 0;
	strcpy(place_of(&c[1], 0)->name, "b");
	assert_int_equal(plain(1, BARRIER_OPEN, .a0 = RGATE_SYNC_HERE,
			       .a1 = RGATE_SYNC_OPEN_A1(1, 1), .len = 96), -EINVAL);
	place_of(&c[1], 0)->members = 1;
	assert_int_equal(plain(1, LOCK_OPEN, .a0 = RGATE_SYNC_HERE,
			       .a1 = RGATE_SYNC_OPEN_A1(1, 1), .len = 96), -EINVAL);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	BED(in_turn), BED(shared), BED(try_it), BED(given_up), BED(killed), BED(closed),
	BED(names), BED(listed), BED(quota),
	BED(meet), BED(wait_given_up), BED(broken), BED(leaves), BED(bad_barriers),
};

UNIT_MAIN_ALONE(tests)
