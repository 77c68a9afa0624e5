// SPDX-License-Identifier: MIT OR GPL-2.0
/* What a home says of tasks that have ended, by requests of those who follow them */
#include "req_asks.h"

#include <errno.h>
#include <string.h>

#include <ringgate/queue.h>

#include "queue_priv.h"

#define ROOM		8192U		/* where a client has what it is told */
#define ME		1U
#define OTHER		2U
#define TAG		7U
#define REMEMBERED	4096U

static struct rgate_engine *e;
static struct queue_service *sv;
static struct client c[3];		/* the first two are mine */
static uint32_t h[3];

static uint64_t submit(unsigned int i, struct rgate_request q)
{
	return req_asks_submit(&c[i], q);
}

static void opens(unsigned int i, const char *name, uint32_t flags)
{
	struct rgate_queue_place place = { .attempts = flags ? 1 : 0 };
	uint64_t value;

	strcpy(place.name, name);
	memcpy(c[i].mem, &place, sizeof(place));
	h[i] = 0;
	assert_int_equal(ask_value(i, &value, OPEN, .a0 = RGATE_QUEUE_HERE,
				   .a1 = RGATE_QUEUE_OPEN_A1(ME, flags), .len = sizeof(place)), 0);
	h[i] = (uint32_t)value;
}

static int setup(void **state)
{
	struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .requests = 512, .completions = 512,
					      .memory = 9 * ROOM);
	unsigned int i;

	(void)state;
	e = bed_engine();
	req_asks_begin(e);
	assert_int_equal(queue_service_create(&sv, NULL), 0);
	assert_int_equal(queue_service_add(sv, e), 0);
	for (i = 0; i < 3; i++) {
		o.uid = i < 2 ? ME : OTHER;
		assert_int_equal(client_open(&c[i], e, &o), 0);
		bed_run(e);
		opens(i, "q", i ? 0 : RGATE_QUEUE_CREATE | RGATE_QUEUE_SUBMIT);
	}
	return 0;
}

static int teardown(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		rgate_seat_remove(c[i].seat);
	bed_run(e);
	for (i = 0; i < 3; i++)
		client_close(&c[i]);
	rgate_engine_destroy(e);
	queue_service_destroy(sv);
	return 0;
}

/* @n without bytes: the number of the first */
static uint64_t put(unsigned int i, uint32_t tag, unsigned int n)
{
	const struct rgate_queue_put one = { .len = 0 };
	uint64_t value;
	unsigned int k;

	for (k = 0; k < n; k++)
		memcpy(c[i].mem + k * sizeof(one), &one, sizeof(one));
	assert_int_equal(ask_value(i, &value, SUBMIT, .a1 = RGATE_SUBMIT_A1(tag, 0),
				   .len = (uint32_t)(n * sizeof(one))), n);
	assert_int_equal(!RGATE_SUBMIT_QUEUE(value), !tag);
	return RGATE_SUBMIT_FIRST(value);
}

/* Claims the next one, and is done with it */
static uint64_t completes(void)
{
	struct rgate_queue_task t;

	assert_true(ask(0, CLAIM, .a1 = RGATE_CLAIM_A1(1, RGATE_CLAIM_NOW), .off = ROOM,
			.len = sizeof(t)) > 0);
	memcpy(&t, c[0].mem + ROOM, sizeof(t));
	assert_int_equal(ask(0, COMPLETE, .a0 = t.id, .a1 = t.claim), 0);
	return t.id;
}

static uint64_t follows(unsigned int i, uint64_t at, uint32_t tag, uint32_t flags)
{
	return later(i, FOLLOW, .a0 = at, .a1 = RGATE_FOLLOW_A1(tag, flags), .off = ROOM,
		     .len = 4096);
}

static struct rgate_queue_ends head(unsigned int i)
{
	struct rgate_queue_ends in;

	memcpy(&in, c[i].mem + ROOM, sizeof(in));
	return in;
}

/* What it was told: so many, and the number of the @k-th */
static uint64_t told(unsigned int i, unsigned int k)
{
	uint64_t id;

	assert_true(k < head(i).n);
	memcpy(&id, c[i].mem + ROOM + sizeof(struct rgate_queue_ends) + k * sizeof(id), sizeof(id));
	return id;
}

/* From now on */
static uint64_t begin(unsigned int i, uint32_t tag)
{
	uint64_t at;

	assert_int_equal(result_of(i, follows(i, 0, tag, 0), &at), sizeof(struct rgate_queue_ends));
	assert_int_equal(head(i).n, 0);
	assert_int_equal(head(i).flags, 0);
	assert_true(at);
	return at;
}

static void waits(void **state)
{
	uint64_t at, n, first;

	(void)state;
	at = begin(1, TAG);
	first = put(1, TAG, 3);
	put(1, 0, 1);
	n = follows(1, at, TAG, 0);
	assert_false(is_done(1, n));
	assert_int_equal(completes(), first);
	assert_int_equal(result_of(1, n, &at), sizeof(struct rgate_queue_ends) + 8);
	assert_int_equal(told(1, 0), first);
	/* those that came in between, at once; none without a tag */
	completes();
	completes();
	completes();
	assert_int_equal(result_of(1, follows(1, at, TAG, 0), &at),
			 sizeof(struct rgate_queue_ends) + 16);
	assert_int_equal(told(1, 0), first + 1);
	assert_int_equal(told(1, 1), first + 2);
	assert_int_equal(result_of(1, follows(1, at, TAG, RGATE_FOLLOW_NOW), &at),
			 sizeof(struct rgate_queue_ends));
	n = follows(1, at, TAG, 0);
	assert_false(is_done(1, n));
	(void)submit(1, (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = n });
	assert_int_equal(result_of(1, n, NULL), -ECANCELED);
	n = follows(1, at, TAG, 0);
	assert_false(is_done(1, n));
	assert_int_equal(ask(0, REMOVE), 0);
	assert_int_equal(result_of(1, n, NULL), -ESTALE);
}

/* His own, with his tag; whoever else follows hears of his. */
static void each_his_own(void **state)
{
	uint64_t at[3], n[3], first, others;
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		at[i] = begin(i, i == 1 ? TAG + 1 : TAG);
	first = put(0, TAG, 1);
	others = put(2, TAG, 1);
	for (i = 0; i < 3; i++)
		n[i] = follows(i, at[i], i == 1 ? TAG + 1 : TAG, 0);
	/* what the first one claims with writes where it is told */
	assert_false(is_done(0, n[0]));
	assert_int_equal(ask(0, DISCARD, .a0 = first, .a1 = RGATE_TASK_BIT(RGATE_TASK_READY)), 0);
	assert_true(is_done(0, n[0]));
	assert_int_equal(told(0, 0), first);
	assert_false(is_done(1, n[1]));
	assert_false(is_done(2, n[2]));
	assert_int_equal(ask(0, DISCARD, .a0 = others, .a1 = RGATE_TASK_BIT(RGATE_TASK_READY)), 0);
	assert_true(is_done(2, n[2]));
	assert_int_equal(told(2, 0), others);
	assert_false(is_done(1, n[1]));
}

/* A buried one has ended, whatever becomes of it then */
static void once(void **state)
{
	struct rgate_queue_task t;
	uint64_t at, first;

	(void)state;
	at = begin(1, TAG);
	first = put(1, TAG, 1);
	assert_true(ask(0, CLAIM, .a1 = RGATE_CLAIM_A1(1, RGATE_CLAIM_NOW), .off = ROOM,
			.len = sizeof(t)) > 0);
	memcpy(&t, c[0].mem + ROOM, sizeof(t));
	assert_int_equal(ask(0, BURY, .a0 = t.id, .a1 = t.claim), 0);
	(void)result_of(1, follows(1, at, TAG, RGATE_FOLLOW_NOW), &at);
	assert_int_equal(head(1).n, 1);
	assert_int_equal(told(1, 0), first);
	assert_int_equal(ask(0, KICK, .a0 = 1), 0);
	completes();
	(void)result_of(1, follows(1, at, TAG, RGATE_FOLLOW_NOW), &at);
	assert_int_equal(head(1).n, 0);
}

/* So many are remembered: who comes later has to ask for the rest. */
static void too_many(void **state)
{
	uint64_t at, next;
	uint32_t n;

	(void)state;
	at = begin(1, TAG);
	for (n = 0; n < REMEMBERED; n += 256)
		put(1, TAG, 256);
	assert_int_equal(ask(0, DISCARD, .a1 = RGATE_TASK_BIT(RGATE_TASK_READY)), 0);
	while (is_done(0, later(0, DISCARD, .a1 = RGATE_TASK_BIT(RGATE_TASK_READY))) &&
	       req_asks_last_value())
		;
	assert_int_equal(result_of(1, follows(1, at, TAG, 0), &next), 4096);
	assert_int_equal(head(1).flags, 0);
	assert_int_equal(head(1).n, 510);
	assert_int_equal(told(1, 509), 510);
	put(1, TAG, 1);
	completes();
	(void)result_of(1, follows(1, at, TAG, 0), &at);
	assert_int_equal(head(1).flags, RGATE_ENDS_MISSED);
	assert_int_equal(told(1, 0), 2);
	/* it was not missed by who was further */
	(void)result_of(1, follows(1, next, TAG, 0), &next);
	assert_int_equal(head(1).flags, 0);
	assert_int_equal(told(1, 0), 511);
	/* others have ended while he waited: none of his */
	while (head(1).n)
		(void)result_of(1, follows(1, next, TAG, RGATE_FOLLOW_NOW), &next);
	at = follows(1, next, TAG, 0);
	assert_false(is_done(1, at));
	for (n = 0; n < REMEMBERED + 256; n += 256) {
		put(0, TAG + 1, 256);
		assert_int_equal(ask(0, DISCARD, .a1 = RGATE_TASK_BIT(RGATE_TASK_READY)), 0);
	}
	assert_false(is_done(1, at));
	put(1, TAG, 1);
	completes();
	assert_int_equal(result_of(1, at, NULL), sizeof(struct rgate_queue_ends) + 8);
	assert_int_equal(head(1).flags, 0);
	/* a place that there has not been is of another queue */
	(void)result_of(1, follows(1, 1ULL << 40, TAG, 0), &next);
	assert_int_equal(head(1).flags, RGATE_ENDS_MISSED);
}

static void over_now(void **state)
{
	uint64_t bits[4] = { ~0ULL, ~0ULL, 1, 0 }, got[4], first;
	unsigned int i;

	(void)state;
	/* nobody has followed so far: all the same */
	first = put(1, TAG, 70);
	assert_int_equal(first, 1);
	put(2, 0, 1);
	for (i = 0; i < 66; i++)
		completes();
	assert_int_equal(ask(0, DISCARD, .a0 = 71, .a1 = RGATE_TASK_BIT(RGATE_TASK_READY)), 0);
	memcpy(c[1].mem, bits, sizeof(bits));
	assert_int_equal(ask(1, OVER, .a0 = 1, .len = sizeof(bits)), sizeof(bits));
	memcpy(got, c[1].mem, sizeof(got));
	assert_true(got[0] == ~0ULL);
	/* 67 to 70 are there, 71 is gone, and what has not been has not ended */
	assert_int_equal(got[1], 0x43);
	assert_int_equal(got[2], 0);
	/* only of those that were asked for, wherever it begins */
	bits[0] = 5;
	memcpy(c[1].mem, bits, sizeof(bits[0]));
	assert_int_equal(ask(1, OVER, .a0 = 66, .len = sizeof(bits[0])), sizeof(bits[0]));
	memcpy(got, c[1].mem, sizeof(got[0]));
	assert_int_equal(got[0], 1);
	bits[0] = 3;
	memcpy(c[1].mem, bits, sizeof(bits[0]));
	assert_int_equal(ask(1, OVER, .a0 = ~0ULL, .len = sizeof(bits[0])), sizeof(bits[0]));
	memcpy(got, c[1].mem, sizeof(got[0]));
	assert_int_equal(got[0], 0);
}

/* Its owner's queues have all that they may: who follows hears of the ends nonetheless. */
static void owner_has_no_more(void **state)
{
	struct quota *mine = container_of(sv->home.quotas.next, struct quota, of_home);
	uint64_t at, others;

	(void)state;
	(void)put(1, TAG, 1);
	(void)put(1, 0, 1);
	assert_int_equal(mine->uid, ME);
	/* those of other queues */
	others = QUEUES_UID_BYTES - mine->bytes;
	assert_int_equal(quota_take(mine, others), 0);
	assert_int_equal(ask(1, SUBMIT, .len = sizeof(struct rgate_queue_put)), -EDQUOT);
	assert_int_equal(result_of(1, follows(1, 0, TAG, RGATE_FOLLOW_NOW), &at),
			 sizeof(struct rgate_queue_ends));
	assert_int_equal(completes(), 1);
	assert_int_equal(result_of(1, follows(1, at, TAG, RGATE_FOLLOW_NOW), NULL),
			 sizeof(struct rgate_queue_ends) + 8);
	assert_int_equal(told(1, 0), 1);
	quota_give(mine, others);
}

static void refused(void **state)
{
	struct rgate_queue_put one = { .len = 0 };
	uint64_t at;
	unsigned int i;

	(void)state;
	at = begin(1, TAG);
	assert_int_equal(ask(1, FOLLOW, .a0 = at, .a1 = RGATE_FOLLOW_A1(0, 0), .len = 64), -EINVAL);
	assert_int_equal(ask(1, FOLLOW, .a0 = at, .a1 = RGATE_FOLLOW_A1(1, 2), .len = 64), -EINVAL);
	assert_int_equal(ask(1, FOLLOW, .a0 = at, .a1 = RGATE_FOLLOW_A1(1, 0), .len = 23), -EINVAL);
	assert_int_equal(ask(1, FOLLOW, .a0 = at, .a1 = RGATE_FOLLOW_A1(1, 0),
			     .len = RGATE_QUEUE_PART_MAX + 1), -EINVAL);
	assert_int_equal(ask(1, OVER, .a0 = 1), -EINVAL);
	assert_int_equal(ask(1, OVER, .a0 = 1, .len = 9), -EINVAL);
	assert_int_equal(ask(1, OVER, .a0 = 1, .len = RGATE_QUEUE_OVER_MAX / 8 + 8), -EINVAL);
	assert_int_equal(ask(1, OVER, .a0 = 1, .len = RGATE_QUEUE_OVER_MAX / 8), 512);
	assert_int_equal(ask(1, OVER, .a0 = 1, .a1 = 1, .len = 8), -EINVAL);
	memcpy(c[1].mem, &one, sizeof(one));
	assert_int_equal(ask(1, SUBMIT, .a1 = RGATE_SUBMIT_A1(TAG, 2), .len = sizeof(one)),
			 -EINVAL);
	/* so many wait, and no more */
	for (i = 0; i < 256; i++)
		(void)follows(1, at, TAG, 0);
	bed_run(e);
	assert_int_equal(result_of(2, follows(2, at, TAG, 0), NULL), -ENOBUFS);
	/* those who only work do not */
	opens(0, "w", RGATE_QUEUE_CREATE | RGATE_QUEUE_WORK);
	opens(2, "w", 0);
	assert_int_equal(result_of(2, follows(2, 0, TAG, 0), NULL), -EACCES);
	assert_int_equal(ask(2, OVER, .a0 = 1, .len = 8), -EACCES);
}

/* Of which queue those are that were taken, also where others were not */
static void partly_taken(void **state)
{
	const struct rgate_queue_put two[] = {
		{ .len = 0 }, { .priority = RGATE_QUEUE_PRIORITIES }
	};
	uint64_t value, whole;

	(void)state;
	memcpy(c[1].mem, two, sizeof(two));
	assert_int_equal(ask_value(1, &whole, SUBMIT, .a1 = RGATE_SUBMIT_A1(TAG, 0),
				   .len = sizeof(two[0])), 1);
	assert_int_equal(ask_value(1, &value, SUBMIT, .a1 = RGATE_SUBMIT_A1(TAG, 0),
				   .len = sizeof(two)), 1);
	assert_int_equal(RGATE_SUBMIT_QUEUE(value), RGATE_SUBMIT_QUEUE(whole));
	assert_int_equal(RGATE_SUBMIT_FIRST(value), RGATE_SUBMIT_FIRST(whole) + 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(waits), TEST(each_his_own), TEST(once), TEST(too_many), TEST(over_now),
	TEST(owner_has_no_more), TEST(refused), TEST(partly_taken),
};

UNIT_MAIN_ALONE(tests)
