// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a home, or a node, says that cannot be, or is not its own */
#include "four.h"

#include <errno.h>
#include <string.h>

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

static const struct CMUnitTest tests[] = {
	BED(home_says), BED(false_news), BED(hostile_guest), BED(greedy_guest),
	BED(malformed),
};

UNIT_MAIN_ALONE(tests)
