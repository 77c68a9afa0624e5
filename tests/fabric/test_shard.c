// SPDX-License-Identifier: MIT OR GPL-2.0
/* Tasks claimed one-sidedly: what each call does, and what comes of nonsense, by two nodes. */
#include "nodes.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_shard.h>
#include <ringgate/shard.h>

#include "shard.h"

#define MANY	RGATE_SHARD_MANY
#define SIZE	48U		/* of tasks and results */

static bool loses_answer;	/* of the next post that changes words: it was done */

int __real_shard_run(struct rgate_shard *s, struct shard_ops *ops, uint32_t epoch, bool *begun);
int __wrap_shard_run(struct rgate_shard *s, struct shard_ops *ops, uint32_t epoch, bool *begun);

int __wrap_shard_run(struct rgate_shard *s, struct shard_ops *ops, uint32_t epoch, bool *begun)
{
	const int err = __real_shard_run(s, ops, epoch, begun);

	if (err || !loses_answer || !ops->cas)
		return err;
	loses_answer = false;
	return -ECONNRESET;
}

/* Node 0 is the home, and node 1 has opened it */
struct bed {
	struct duo d;
	struct rgate_peer *self;
	struct rgate_shard *home, *far;
	struct rgate_desc desc;
	struct rgate_remote at;
	char buf[MANY][SIZE], results[MANY][SIZE];
};

static struct rgate_shard_info info_of(struct rgate_shard *s)
{
	struct rgate_shard_info i = { .sz = sizeof(i) };

	assert_int_equal(rgate_shard_info(s, &i), 0);
	return i;
}

static void bed_up(struct bed *b, uint32_t tasks, uint32_t submitters)
{
	const struct rgate_shard_opts o = RGATE_OPTS(rgate_shard_opts, .tasks = tasks,
						     .submitters = submitters,
						     .timeout_ms = MS);
	const struct rgate_shard_opts far = RGATE_OPTS(rgate_shard_opts, .timeout_ms = MS);

	duo_up(&b->d, 0);
	assert_int_equal(rgate_peer_open(&b->self, b->d.node[0], 0), 0);
	assert_int_equal(rgate_shard_create(&b->home, b->self, &o), 0);
	assert_int_equal(rgate_shard_desc(b->home, &b->desc), 0);
	assert_int_equal(rgate_desc_parse(&b->at, &b->desc, sizeof(b->desc)), 0);
	assert_int_equal(rgate_shard_admit(b->home, b->d.peer[0]), 0);
	assert_int_equal(rgate_shard_open(&b->far, b->d.peer[1], &b->desc, &far), 0);
}

static void bed_down(struct bed *b)
{
	rgate_shard_close(b->far);
	rgate_shard_destroy(b->home);
	rgate_peer_close(b->self);
	duo_down(&b->d);
}

/* Submits @n tasks, which say what they are: numbers from @from on */
static void submit(struct rgate_shard *s, unsigned int n, uint64_t from, uint64_t *ids)
{
	struct rgate_shard_task t[MANY] = { { .len = 0 } };
	uint64_t number[MANY];
	unsigned int i;

	for (i = 0; i < n; i++) {
		number[i] = from + i;
		t[i] = (struct rgate_shard_task){ .data = &number[i], .len = 8,
						  .cookie = ~number[i] };
	}
	assert_int_equal(rgate_shard_submit(s, t, n, ids), n);
}

static int try_claim(struct bed *b, struct rgate_shard *s, struct rgate_shard_claim *c,
		     unsigned int n)
{
	int ret = rgate_shard_claim(s, c, n, b->buf);

	/* Told once that it is another connection, and then until it is let in over that one */
	while (ret == -EAGAIN || ret == -ENOTCONN) {
		assert_true(rgate_shard_step(b->home) >= 0);
		ret = rgate_shard_claim(s, c, n, b->buf);
	}
	return ret;
}

/* Exactly @n, in as many calls as it takes */
static void claim(struct bed *b, struct rgate_shard *s, struct rgate_shard_claim *c, unsigned int n)
{
	unsigned int got = 0;
	uint64_t number;
	int ret;

	while (got < n) {
		ret = try_claim(b, s, &c[got], n - got);
		assert_true(ret > 0);
		for (; ret; ret--, got++) {
			assert_int_equal(c[got].len, 8);
			memcpy(&number, c[got].data, 8);
			assert_int_equal(c[got].cookie, ~number);
		}
	}
}

/* Their results are three times their numbers. */
static int complete(struct rgate_shard *s, const struct rgate_shard_claim *c, unsigned int n)
{
	struct rgate_shard_result r[MANY];
	uint64_t out[MANY];
	unsigned int i;

	for (i = 0; i < n; i++) {
		out[i] = 3 * ~c[i].cookie;
		r[i] = (struct rgate_shard_result){ .claim = &c[i], .data = &out[i], .len = 8,
						    .status = 7 };
	}
	return rgate_shard_complete(s, r, n);
}

/* Takes @n results, all of which are right */
static void take(struct bed *b, struct rgate_shard *s, unsigned int n, uint32_t node)
{
	struct rgate_shard_taken t[MANY];
	unsigned int all = 0;
	uint64_t number;
	int ret, i;

	while (all < n) {
		ret = rgate_shard_take(s, t, n - all, b->results);
		assert_true(ret > 0);
		all += (unsigned int)ret;
		for (i = 0; i < ret; i++) {
			assert_int_equal(t[i].status, 7);
			assert_int_equal(t[i].len, 8);
			assert_int_equal(t[i].node, node);
			memcpy(&number, t[i].data, 8);
			assert_int_equal(number, 3 * ~t[i].cookie);
		}
	}
	assert_int_equal(rgate_shard_take(s, t, 1, b->results), 0);
}

/* What was taken, and is empty by then, though nobody was told, is given once all the same. */
static void answer_lost(void **state)
{
	struct rgate_shard_claim c[MANY];
	struct rgate_shard_taken t[MANY];
	struct bed b;
	uint64_t from;

	(void)state;
	bed_up(&b, 64, 2);
	for (from = 100; from < 300; from += 100) {
		submit(b.far, MANY, from, NULL);
		claim(&b, b.far, c, MANY);
		assert_int_equal(complete(b.far, c, MANY), MANY);
		loses_answer = true;
		assert_int_equal(rgate_shard_take(b.far, t, MANY, b.results), -ECONNRESET);
		assert_int_equal(info_of(b.far).free, 64 - MANY);
		take(&b, b.far, MANY, 1);
	}
	assert_int_equal(info_of(b.far).taken, 2 * MANY);
	assert_int_equal(info_of(b.far).free, 64);
	assert_int_equal(info_of(b.far).bad, 0);
	bed_down(&b);
}

/* One, and many, through all that can become of them; at home and far away */
static void there_and_back(void **state)
{
	struct rgate_shard_claim c[MANY];
	uint64_t id[MANY];
	struct bed b;

	(void)state;
	bed_up(&b, 64, 0);
	assert_int_equal(try_claim(&b, b.far, c, MANY), 0);
	submit(b.home, 1, 1, id);
	assert_int_equal(rgate_shard_look(b.far, id[0]), RGATE_SHARD_IS_READY);
	claim(&b, b.far, c, 1);
	assert_int_equal(c[0].id, id[0]);
	assert_int_equal(c[0].attempt, 0);
	assert_int_equal(rgate_shard_look(b.home, id[0]), RGATE_SHARD_IS_CLAIMED);
	assert_int_equal(try_claim(&b, b.home, c + 1, 1), 0);
	assert_int_equal(complete(b.far, c, 1), 1);
	assert_int_equal(rgate_shard_look(b.far, id[0]), RGATE_SHARD_IS_DONE);
	assert_int_equal(complete(b.far, c, 1), 0);
	take(&b, b.home, 1, 1);
	assert_int_equal(rgate_shard_look(b.far, id[0]), RGATE_SHARD_IS_GONE);
	submit(b.home, MANY, 100, NULL);
	claim(&b, b.far, c, MANY);
	/* what goes back is claimed anew, and no attempt is lost */
	assert_int_equal(rgate_shard_release(b.far, c, MANY), MANY);
	assert_int_equal(rgate_shard_release(b.far, c, 1), 0);
	claim(&b, b.home, c, MANY);
	assert_int_equal(c[0].attempt, 0);
	assert_int_equal(complete(b.home, c, MANY), MANY);
	take(&b, b.home, MANY, 0);
	assert_int_equal(info_of(b.far).released, MANY);
	assert_int_equal(info_of(b.far).stale, 2);
	assert_int_equal(info_of(b.home).taken, MANY + 1);
	assert_int_equal(info_of(b.home).bad, 0);
	bed_down(&b);
}

/* Places are used again, in all their generations, and a full shard says so */
static void full(void **state)
{
	const struct rgate_shard_task t = { .len = 0 };
	struct rgate_shard_claim c[MANY];
	unsigned int i;
	struct bed b;

	(void)state;
	bed_up(&b, 64, 0);
	for (i = 0; i < 20; i++) {
		submit(b.home, MANY, 1000 * i, NULL);
		submit(b.home, MANY, 1000 * i + 500, NULL);
		assert_int_equal(info_of(b.home).free, 0);
		assert_int_equal(rgate_shard_submit(b.home, &t, 1, NULL), 0);
		claim(&b, b.far, c, MANY);
		assert_int_equal(complete(b.far, c, MANY), MANY);
		take(&b, b.home, MANY, 1);
		claim(&b, b.far, c, MANY);
		assert_int_equal(complete(b.far, c, MANY), MANY);
		take(&b, b.home, MANY, 1);
		assert_int_equal(info_of(b.home).free, 64);
	}
	bed_down(&b);
}

/* Both nodes submit; each takes what is its own */
static void two_submit(void **state)
{
	struct rgate_shard_claim c[MANY];
	uint64_t id[2][MANY];
	unsigned int i, n;
	struct bed b;

	(void)state;
	bed_up(&b, 64, 3);
	assert_int_equal(info_of(b.home).places, 32);
	assert_int_equal(info_of(b.far).places, 32);
	submit(b.home, 16, 0, id[0]);
	submit(b.far, 16, 100, id[1]);
	for (n = 0; n < 32; n += 16) {
		claim(&b, n ? b.home : b.far, c, 16);
		assert_int_equal(complete(n ? b.home : b.far, c, 16), 16);
	}
	for (i = 0; i < 2; i++) {
		struct rgate_shard_taken t[MANY];
		struct rgate_shard *s = i ? b.far : b.home;

		assert_int_equal(rgate_shard_take(s, t, MANY, b.results), 16);
		for (n = 0; n < 16; n++)
			assert_in_range(~t[n].cookie, 100 * i, 100 * i + 15);
	}
	assert_int_equal(info_of(b.home).bad + info_of(b.far).bad, 0);
	bed_down(&b);
}

/* Nobody is let in whom the home has not looked at; who leaves gives back what he had */
static void comes_and_goes(void **state)
{
	const struct rgate_shard_opts far = RGATE_OPTS(rgate_shard_opts, .timeout_ms = MS);
	struct rgate_shard_claim c[2], old;
	struct bed b;

	(void)state;
	bed_up(&b, 64, 0);
	submit(b.home, 1, 5, NULL);
	assert_int_equal(rgate_shard_claim(b.far, c, 1, b.buf), -EAGAIN);
	assert_int_equal(rgate_shard_claim(b.far, c, 1, b.buf), -EAGAIN);
	claim(&b, b.far, c, 1);
	assert_int_equal(info_of(b.home).admitted, 3);
	assert_int_equal(info_of(b.far).held, 1);
	old = c[0];
	rgate_shard_close(b.far);
	assert_int_equal(rgate_shard_open(&b.far, b.d.peer[1], &b.desc, &far), 0);
	wait_for(rgate_shard_step(b.home) == 1);
	assert_int_equal(info_of(b.home).admitted, 1);
	/* by the claim of the one before nothing is done */
	assert_int_equal(complete(b.far, &old, 1), 0);
	claim(&b, b.far, c, 1);
	assert_int_equal(c[0].attempt, 1);
	assert_int_not_equal(c[0].word, old.word);
	assert_int_equal(complete(b.far, &old, 1), 0);
	assert_int_equal(complete(b.far, c, 1), 1);
	take(&b, b.home, 1, 1);
	bed_down(&b);
}

static struct rgate_peer_info peer_info(struct rgate_peer *peer)
{
	struct rgate_peer_info i = { .sz = sizeof(i) };

	assert_int_equal(rgate_peer_info(peer, &i), 0);
	return i;
}

/* The connection ends, and there is another one at both ends */
static void reconnect(struct bed *b)
{
	const uint32_t epoch = peer_info(b->d.peer[0]).epoch;

	rgate_peer_cut(b->d.peer[1]);
	wait_for(peer_info(b->d.peer[0]).epoch > epoch);
	assert_int_equal(rgate_peer_wait_up(b->d.peer[0], MS), 0);
	assert_int_equal(rgate_peer_wait_up(b->d.peer[1], MS), 0);
}

/*
 * Claims end with their connection, also where there is another one before anybody looks; and none
 * that was made over that one.
 */
static void cut(void **state)
{
	struct rgate_shard_claim c[MANY];
	unsigned int i;
	struct bed b;
	int ret;

	(void)state;
	bed_up(&b, 64, 0);
	submit(b.home, MANY, 0, NULL);
	for (i = 0; i < 4; i++) {
		claim(&b, b.far, c, MANY);
		assert_int_equal(c[0].attempt, i);
		reconnect(&b);
		ret = complete(b.far, c, MANY);
		assert_int_equal(ret, -ENOTCONN);
		assert_int_equal(complete(b.far, c, MANY), 0);
		if (i == 2)
			assert_int_equal(rgate_shard_claim(b.far, c, 1, b.buf), -EAGAIN);
	}
	claim(&b, b.far, c, MANY);
	assert_int_equal(info_of(b.home).returned, 4 * MANY);
	while (i--)
		assert_int_equal(rgate_shard_step(b.home), 0);
	assert_int_equal(complete(b.far, c, MANY), MANY);
	take(&b, b.home, MANY, 1);
	bed_down(&b);
}

/* Writes a word as any peer can */
static void spoil(struct bed *b, uint64_t offset, uint64_t word)
{
	struct rgate_sge s = duo_sge(&b->d, 1, 0, 8);

	memcpy(s.addr, &word, 8);
	assert_int_equal(rgate_peer_write(b->d.peer[1], &b->at, offset, &s, MS), 0);
	assert_int_equal(rgate_peer_flush(b->d.peer[1], MS), 0);
}

static uint64_t words_at(void)
{
	return sizeof(struct rgate_shard_geometry) + 2 * sizeof(struct rgate_shard_seat);
}

/* Each argument that is not there, and a number of what is none, or one too many */
static void nothing_named(struct bed *b)
{
	struct rgate_shard_claim c[MANY + 1] = { { 0 } };
	struct rgate_shard_result r[MANY + 1] = { { 0 } };
	struct rgate_shard_taken taken[MANY + 1];
	struct rgate_shard_task t[MANY + 1] = { { 0 } };
	struct rgate_desc d;

	assert_int_equal(rgate_shard_claim(NULL, c, 1, b->buf), -EINVAL);
	assert_int_equal(rgate_shard_claim(b->far, NULL, 1, b->buf), -EINVAL);
	assert_int_equal(rgate_shard_claim(b->far, c, 1, NULL), -EINVAL);
	assert_int_equal(rgate_shard_complete(NULL, r, 1), -EINVAL);
	assert_int_equal(rgate_shard_complete(b->far, NULL, 1), -EINVAL);
	assert_int_equal(rgate_shard_complete(b->far, r, 0), -EINVAL);
	assert_int_equal(rgate_shard_complete(b->far, r, MANY + 1), -EINVAL);
	assert_int_equal(rgate_shard_release(NULL, c, 1), -EINVAL);
	assert_int_equal(rgate_shard_release(b->far, NULL, 1), -EINVAL);
	assert_int_equal(rgate_shard_release(b->far, c, 0), -EINVAL);
	assert_int_equal(rgate_shard_release(b->far, c, MANY + 1), -EINVAL);
	assert_int_equal(rgate_shard_submit(NULL, t, 1, NULL), -EINVAL);
	assert_int_equal(rgate_shard_submit(b->home, NULL, 1, NULL), -EINVAL);
	assert_int_equal(rgate_shard_submit(b->home, t, MANY + 1, NULL), -EINVAL);
	assert_int_equal(rgate_shard_take(NULL, taken, 1, b->results), -EINVAL);
	assert_int_equal(rgate_shard_take(b->home, NULL, 1, b->results), -EINVAL);
	assert_int_equal(rgate_shard_take(b->home, taken, 1, NULL), -EINVAL);
	assert_int_equal(rgate_shard_take(b->home, taken, 0, b->results), -EINVAL);
	assert_int_equal(rgate_shard_take(b->home, taken, MANY + 1, b->results), -EINVAL);
	assert_int_equal(rgate_shard_admit(NULL, b->self), -EINVAL);
	assert_int_equal(rgate_shard_admit(b->home, NULL), -EINVAL);
	assert_int_equal(rgate_shard_desc(NULL, &d), -EINVAL);
	assert_int_equal(rgate_shard_desc(b->home, NULL), -EINVAL);
}

/* All kinds of words where there is a task, and where there is none: each task ends once */
static void nonsense(void **state)
{
	uint64_t id[MANY], x = 88172645463325252ULL, word, gen, number;
	struct rgate_shard_claim c[MANY];
	struct rgate_shard_taken t[MANY];
	unsigned int i, round, done;
	struct bed b;
	int ret, k;

	(void)state;
	bed_up(&b, 64, 0);
	for (round = 0; round < 40; round++) {
		uint64_t once = 0;

		submit(b.home, MANY, round * 100, id);
		for (i = 0; i < 64; i++) {
			word = unit_random(&x);
			gen = id[i % MANY] >> 16 << 32;
			if (round % 4 == 1)	/* this generation, and any state of anybody */
				word = (word & 0xffff00f3) | gen;
			if (round % 4 == 2)	/* somebody's name, who has not claimed it */
				word = (word & 0x12) | 0x10012 | gen;
			if (unit_random(&x) % 4)
				spoil(&b, words_at() + 8 * i, word);
		}
		for (done = 0, k = 0; done < MANY; k++) {
			assert_true(k < 1000);
			ret = try_claim(&b, b.far, c, MANY);
			assert_true(ret >= 0);
			if (ret)
				assert_true(complete(b.far, c, (unsigned int)ret) >= 0);
			assert_true(rgate_shard_step(b.home) >= 0);
			ret = rgate_shard_take(b.home, t, MANY, b.results);
			assert_true(ret >= 0);
			while (ret--) {
				number = ~t[ret].cookie - round * 100;
				assert_true(number < MANY);
				once ^= 1ULL << number;
				done++;
			}
			/* What is held in a name that is there: its node has to go. */
			if (k % 4 == 3)
				reconnect(&b);
		}
		assert_int_equal(once, (1ULL << MANY) - 1);
		assert_int_equal(rgate_shard_take(b.home, t, MANY, b.results), 0);
		assert_int_equal(info_of(b.home).free, 64);
	}
	assert_true(info_of(b.home).bad > 0);
	bed_down(&b);
}

/* What a task or a result is said to be, and cannot be */
static void damaged(void **state)
{
	const uint64_t records = words_at() + 8 * 64, outcomes = records + 64ULL * 64;
	struct rgate_shard_claim c[2];
	struct rgate_shard_taken t;
	unsigned int i;
	struct bed b;

	(void)state;
	bed_up(&b, 64, 0);
	for (i = 0; i < 4; i++) {
		submit(b.home, 1, i, NULL);
		/* a generation, a length: of the task; of the result */
		if (i < 2)
			spoil(&b, records + 64 * i, i ? (uint64_t)(SIZE + 1) << 32 : 99);
		if (i < 2) {
			assert_int_equal(try_claim(&b, b.far, c, 1), 0);
		} else {
			claim(&b, b.far, c, 1);
			assert_int_equal(complete(b.far, c, 1), 1);
			spoil(&b, outcomes + (2 * i + 1) * 64,
			      i == 2 ? (uint64_t)(SIZE + 1) << 32 : 99);
		}
		assert_int_equal(rgate_shard_take(b.home, &t, 1, b.results), 1);
		assert_int_equal(t.status, -EBADMSG);
		assert_int_equal(t.len, 0);
		assert_int_equal(~t.cookie, i);
	}
	assert_int_equal(info_of(b.far).bad, 2);
	assert_int_equal(info_of(b.home).bad, 2);
	bed_down(&b);
}

/* Whoever takes a node's seat ends its claims; it is let in again, and the tasks are done once */
static void seat_taken(void **state)
{
	const uint64_t seat = sizeof(struct rgate_shard_geometry) + sizeof(struct rgate_shard_seat);
	const struct rgate_shard_opts far = RGATE_OPTS(rgate_shard_opts, .timeout_ms = MS);
	struct rgate_shard_claim c[2];
	unsigned int i;
	struct bed b;

	(void)state;
	bed_up(&b, 64, 0);
	submit(b.home, 1, 3, NULL);
	claim(&b, b.far, c, 1);
	spoil(&b, seat, 0x123450000);
	wait_for(rgate_shard_step(b.home) == 1);
	assert_int_equal(complete(b.far, c, 1), 0);
	claim(&b, b.far, c, 1);
	assert_int_equal(rgate_shard_step(b.home), 0);
	assert_int_equal(complete(b.far, c, 1), 1);
	take(&b, b.home, 1, 1);
	/* or who writes that it was answered otherwise, in time for the next time that it asks */
	submit(b.home, 1, 4, NULL);
	rgate_shard_close(b.far);
	assert_int_equal(rgate_shard_open(&b.far, b.d.peer[1], &b.desc, &far), 0);
	assert_int_equal(rgate_shard_claim(b.far, c, 1, b.buf), -EAGAIN);
	for (i = 0; i < 4; i++)
		assert_true(rgate_shard_step(b.home) >= 0);
	spoil(&b, seat + 64, 99);
	claim(&b, b.far, c, 1);
	assert_int_equal(complete(b.far, c, 1), 1);
	take(&b, b.home, 1, 1);
	bed_down(&b);
}

static int opened(struct bed *b, size_t at, uint64_t byte, uint64_t length)
{
	const struct rgate_shard_opts o = RGATE_OPTS(rgate_shard_opts, .timeout_ms = MS);
	struct rgate_sge s = duo_sge(&b->d, 0, 0, sizeof(struct rgate_shard_geometry));
	struct rgate_shard *shard = NULL;
	struct rgate_desc d;
	int err;

	/* a copy of the true one, in memory that the other node lends */
	memcpy(b->d.buf[0]->addr, b->results, s.length);
	((unsigned char *)b->d.buf[0]->addr)[at] ^= (unsigned char)byte;
	assert_int_equal(rgate_buf_desc(rgate_node_pool(b->d.node[0]), b->d.buf[0], 0, length, &d),
			 0);
	err = rgate_shard_open(&shard, b->d.peer[1], &d, &o);
	assert_true(err ? !shard : !!shard);
	rgate_shard_close(shard);
	return err;
}

/* A geometry is what it has to be in each of its bytes, or is refused */
static void lies(void **state)
{
	struct rgate_sge s;
	struct bed b;
	size_t i;
	int err;

	(void)state;
	bed_up(&b, 64, 0);
	s = duo_sge(&b.d, 1, 0, sizeof(struct rgate_shard_geometry));
	assert_int_equal(rgate_peer_read(b.d.peer[1], &b.at, 0, &s, MS), 0);
	memcpy(b.results, s.addr, s.length);
	assert_int_equal(opened(&b, 0, 0, DUO_BYTES), 0);
	for (i = 0; i < sizeof(struct rgate_shard_geometry); i++) {
		err = opened(&b, i, 0x80, DUO_BYTES);
		assert_int_equal(err, i == 4 || i == 5 ? -EPROTONOSUPPORT : -EPROTO);
	}
	/* no nodes, no tasks, another submitter; larger than what is lent */
	assert_int_equal(opened(&b, 6, 2, DUO_BYTES), -EPROTO);
	assert_int_equal(opened(&b, 7, 1, DUO_BYTES), -EPROTO);
	assert_int_equal(opened(&b, 8, 64, DUO_BYTES), -EPROTO);
	assert_int_equal(opened(&b, 0, 0, info_of(b.home).bytes - 1), -EPROTO);
	assert_int_equal(opened(&b, 0, 0, sizeof(struct rgate_shard_geometry) - 1), -EPROTO);
	bed_down(&b);
}

static bool stop_cutting;

static void *cutter(void *arg)
{
	const struct bed *b = arg;
	uint64_t x = 2463534242;
	unsigned int i;

	/* Not for ever: then all has to come to its end. */
	for (i = 0; i < 12 && !__atomic_load_n(&stop_cutting, __ATOMIC_RELAXED); i++) {
		(void)rgate_peer_wait_up(b->d.peer[1], MS);
		usleep((useconds_t)(unit_random(&x) % 20000));
		rgate_peer_cut(b->d.peer[1]);
	}
	return NULL;
}

/* All that the other node does, over connections that end at any time; each task ends once */
static void in_doubt(struct bed *b, unsigned int tasks)
{
	unsigned char *seen = calloc(tasks, 1);
	struct rgate_shard_claim c[MANY];
	struct rgate_shard_taken t[MANY];
	unsigned int next = 0, done = 0, i;
	int n;

	assert_non_null(seen);
	while (done < tasks) {
		assert_true(rgate_shard_step(b->home) >= 0);
		for (i = 0; i < 4 && next < tasks; i++) {
			const struct rgate_shard_task task = { .data = &next, .len = 4,
							       .cookie = next };

			next += rgate_shard_submit(b->far, &task, 1, NULL) == 1;
		}
		n = rgate_shard_claim(b->far, c, MANY, b->buf);
		for (; n > 0; n--) {
			struct rgate_shard_result r = { .claim = &c[n - 1], .len = 4,
							.data = c[n - 1].data };

			assert_memory_equal(c[n - 1].data, &c[n - 1].cookie, 4);
			(void)rgate_shard_complete(b->far, &r, 1);
		}
		n = rgate_shard_take(b->far, t, MANY, b->results);
		if (n <= 0)
			nodes_nap();
		for (; n > 0; n--, done++) {
			assert_true(t[n - 1].cookie < tasks);
			assert_true(!seen[t[n - 1].cookie]++);
			if (t[n - 1].status) {
				assert_int_equal(t[n - 1].status, -ECANCELED);
				continue;
			}
			assert_int_equal(t[n - 1].len, 4);
			assert_memory_equal(t[n - 1].data, &t[n - 1].cookie, 4);
		}
	}
	free(seen);
}

static void doubt(void **state)
{
	const char *env = getenv("RGATE_LOCAL_LATE");
	pthread_t thread;
	struct bed b;

	(void)state;
	/* Otherwise an operation is over before anybody can cut it. */
	assert_int_equal(setenv("RGATE_LOCAL_LATE", "300", !env), 0);
	bed_up(&b, 64, 2);
	stop_cutting = false;
	assert_int_equal(pthread_create(&thread, NULL, cutter, &b), 0);
	in_doubt(&b, b.d.c.local ? 200 : 30);
	__atomic_store_n(&stop_cutting, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rgate_peer_wait_up(b.d.peer[1], MS), 0);
	assert_int_equal(info_of(b.far).bad, 0);
	assert_int_equal(info_of(b.far).free, 64);
	bed_down(&b);
	if (!env)
		unsetenv("RGATE_LOCAL_LATE");
}

static void refused(void **state)
{
	struct rgate_shard_opts o = RGATE_OPTS(rgate_shard_opts, .tasks = 64);
	const struct rgate_shard_task t = { .len = SIZE + 1, .data = &o }, none = { .len = 1 };
	struct rgate_shard_claim c[MANY];
	struct rgate_shard_result r = { .claim = c, .data = &o, .len = SIZE + 1 };
	struct rgate_shard_taken taken;
	struct rgate_shard *s;
	struct rgate_desc d;
	struct bed b;

	(void)state;
	bed_up(&b, 64, 0);
	assert_int_equal(rgate_shard_create(&s, b.d.peer[0], NULL), -EINVAL);
	assert_int_equal(rgate_shard_open(&s, b.self, &b.desc, NULL), -EINVAL);
	assert_int_equal(rgate_shard_open(&s, b.d.peer[1], &b.desc, &o), -EINVAL);
	for (o.tasks = 1; o.tasks < 64; o.tasks <<= 1)
		assert_int_equal(rgate_shard_create(&s, b.self, &o), -EINVAL);
	o.tasks = 65;
	assert_int_equal(rgate_shard_create(&s, b.self, &o), -EINVAL);
	o.tasks = 2 * RGATE_SHARD_TASKS_MAX;
	assert_int_equal(rgate_shard_create(&s, b.self, &o), -EINVAL);
	o = RGATE_OPTS(rgate_shard_opts, .payload_size = RGATE_SHARD_BYTES_MAX + 1);
	assert_int_equal(rgate_shard_create(&s, b.self, &o), -EINVAL);
	o = RGATE_OPTS(rgate_shard_opts, .result_size = RGATE_SHARD_BYTES_MAX + 1);
	assert_int_equal(rgate_shard_create(&s, b.self, &o), -EINVAL);
	o = RGATE_OPTS(rgate_shard_opts, .submitters = 4);
	assert_int_equal(rgate_shard_create(&s, b.self, &o), -EINVAL);
	assert_int_equal(rgate_shard_admit(b.home, b.d.peer[0]), -EEXIST);
	assert_int_equal(rgate_shard_admit(b.home, b.self), -EINVAL);
	assert_int_equal(rgate_shard_admit(b.home, b.d.peer[1]), -EINVAL);
	assert_int_equal(rgate_shard_admit(b.far, b.d.peer[1]), -EPERM);
	assert_int_equal(rgate_shard_step(b.far), -EPERM);
	assert_int_equal(rgate_shard_desc(b.far, &d), -EPERM);
	assert_int_equal(rgate_shard_submit(b.far, &(struct rgate_shard_task){ .len = 0 }, 1, NULL),
			 -EPERM);
	assert_int_equal(rgate_shard_take(b.far, &taken, 1, b.results), -EPERM);
	assert_int_equal(rgate_shard_submit(b.home, &t, 1, NULL), -EMSGSIZE);
	assert_int_equal(rgate_shard_submit(b.home, &none, 1, NULL), -EINVAL);
	assert_int_equal(rgate_shard_submit(b.home, &t, 0, NULL), -EINVAL);
	assert_int_equal(rgate_shard_claim(b.far, c, 0, b.buf), -EINVAL);
	assert_int_equal(rgate_shard_claim(b.far, c, MANY + 1, b.buf), -EINVAL);
	assert_int_equal(rgate_shard_complete(b.far, &r, 1), -EMSGSIZE);
	assert_int_equal(rgate_shard_look(b.far, 64), -EINVAL);
	assert_int_equal(rgate_shard_look(NULL, 0), -EINVAL);
	nothing_named(&b);
	/* claims that were never one */
	memset(c, 0xff, sizeof(c));
	r.len = 0;
	assert_int_equal(rgate_shard_complete(b.far, &r, 1), 0);
	assert_int_equal(r.err, -ESTALE);
	assert_int_equal(rgate_shard_release(b.far, c, MANY), 0);
	rgate_shard_close(NULL);
	rgate_shard_destroy(NULL);
	bed_down(&b);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(there_and_back),
	cmocka_unit_test(full),
	cmocka_unit_test(two_submit),
	cmocka_unit_test(comes_and_goes),
	cmocka_unit_test(answer_lost),
	cmocka_unit_test(cut),
	cmocka_unit_test(nonsense),
	cmocka_unit_test(damaged),
	cmocka_unit_test(seat_taken),
	cmocka_unit_test(lies),
	cmocka_unit_test(doubt),
	cmocka_unit_test(refused),
};

UNIT_MAIN(tests)
