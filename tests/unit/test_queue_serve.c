// SPDX-License-Identifier: MIT OR GPL-2.0
/* Queues of this node that another one asks for whatever it likes, as a guest */
#include "queue_bed.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SUBMIT(op_, ...) QUESTION(GATE_SUBMIT, .op = RGATE_REQ_QUEUE_##op_, ##__VA_ARGS__)

static struct gate_question opening(const char *name, uint32_t flags)
{
	static struct rgate_queue_place place;

	memset(&place, 0, sizeof(place));
	strcpy(place.name, name);
	return SUBMIT(OPEN, .a0 = RGATE_QUEUE_HERE, .a1 = RGATE_QUEUE_OPEN_A1(ME, flags),
		      .len = sizeof(place), .data = &place, .data_len = sizeof(place));
}

static uint32_t open_there(const char *name)
{
	const struct gate_result r = done_of(opening(name, 0));

	assert_int_equal(r.result, 0);
	return (uint32_t)r.value;
}

/* It has the task */
static struct rgate_queue_task claims(uint32_t h)
{
	struct rgate_queue_task task;
	struct gate_result r;

	r = done_of(SUBMIT(CLAIM, .handle = h, .len = 4096,
			   .a1 = RGATE_CLAIM_A1(1, RGATE_CLAIM_NOW | RGATE_CLAIM_BEGIN)));
	assert_int_equal(r.value, 1);
	assert_true(r.data_len >= sizeof(task));
	memcpy(&task, r.data, sizeof(task));
	return task;
}

static struct gate_result completes(uint32_t h, const struct rgate_queue_task *t)
{
	return done_of(SUBMIT(COMPLETE, .handle = h, .a0 = t->id,
			      .a1 = RGATE_TASK_A1(t->claim, 0)));
}

static void as_here(void **state)
{
	const uint32_t h = open_here("q");
	struct rgate_queue_info info;
	struct rgate_queue_task task;
	uint32_t there;

	(void)state;
	put_here(h, 20);
	put_here(h, 20);
	there = open_there("q");
	task = claims(there);
	assert_int_equal(task.uid, ME);
	assert_int_equal(info_of(h).now[RGATE_TASK_RUNNING], 1);
	assert_int_equal(completes(there, &task).result, 0);
	/* its claim is over */
	assert_int_equal(completes(there, &task).result, -ESTALE);
	task = claims(there);
	assert_int_equal(done_of(SUBMIT(CLOSE, .handle = there)).result, 0);
	info = info_of(h);
	assert_int_equal(info.done, 1);
	assert_int_equal(info.lost, 1);
	assert_int_equal(info.now[RGATE_TASK_READY], 1);
	assert_int_equal(info.stale, 1);
}

/* All that PEEK can tell of a task: 40 bytes, and 32768 twice */
static void largest(void **state)
{
	struct rgate_queue_task task;
	struct gate_result r;
	uint32_t at, h;

	(void)state;
	h = (uint32_t)done_of(opening("big", RGATE_QUEUE_CREATE)).value;
	/* the task, by messages */
	serial++;
	for (at = 0; at < 16 + RGATE_QUEUE_DATA_MAX; at += r.len) {
		struct rgate_queue_put put = { .len = RGATE_QUEUE_DATA_MAX,
					       .flags = RGATE_TASK_RESULT };
		unsigned char piece[GATE_PIECE];
		uint32_t n = 16 + RGATE_QUEUE_DATA_MAX - at;

		n = n < GATE_PIECE ? n : GATE_PIECE;
		memset(piece, 'y', sizeof(piece));
		if (!at)
			memcpy(piece, &put, sizeof(put));
		assert_int_equal(ask(QUESTION(GATE_PUT, .off = at, .len = n, .data = piece,
					      .data_len = n)).result, 0);
		r.len = n;
	}
	serial--;
	assert_int_equal(done_of(SUBMIT(SUBMIT, .handle = h, .len = 16 + RGATE_QUEUE_DATA_MAX))
			 .result, 1);
	task = (struct rgate_queue_task){ .id = 0 };
	r = done_of(SUBMIT(CLAIM, .handle = h, .len = 65536, .a1 = RGATE_CLAIM_A1(1, 0)));
	assert_int_equal(r.result, 40 + RGATE_QUEUE_DATA_MAX);
	memcpy(&task, r.data, sizeof(task));
	assert_int_equal(done_of(SUBMIT(COMPLETE, .handle = h, .a0 = task.id, .len = 32768,
					.a1 = RGATE_TASK_A1(task.claim, 0))).result, 0);
	r = done_of(SUBMIT(PEEK, .handle = h, .len = GATE_ROOM));
	assert_int_equal(r.result, 40 + 2 * RGATE_QUEUE_DATA_MAX);
	assert_int_equal(r.len, r.result);
	r = ask(QUESTION(GATE_GET, .off = r.len - 1, .len = 1));
	assert_int_equal(r.result, 0);
	/* with less room it is said so */
	assert_int_equal(done_of(SUBMIT(PEEK, .handle = h, .len = 65536)).result, -EMSGSIZE);
}

static void not_shown_on(void **state)
{
	struct gate_question q = opening("q", RGATE_QUEUE_CREATE);

	(void)state;
	/* neither by its own number nor by this one's */
	serial++;
	for (q.a0 = 0; q.a0 < 8; q.a0++) {
		q.serial = serial;
		assert_int_equal(ask(q).result, -EINVAL);
	}
	q = SUBMIT(LIST, .a0 = OTHER, .len = sizeof(struct rgate_queue_info));
	assert_int_equal(ask(q).result, -EINVAL);
	assert_int_equal(o.peer.asked.n, 0);
}

static void hostile(void **state)
{
	const uint32_t mine = open_here("q");
	struct gate_question q;
	uint32_t h;

	(void)state;
	h = open_there("q");
	serial++;
	q = SUBMIT(STATE, .handle = h, .len = sizeof(struct rgate_queue_info));
	/* not for that user, nor that user's */
	q.uid = 13;
	assert_int_equal(ask(q).result, -EACCES);
	q.uid = 14;
	assert_int_equal(ask(q).result, -EACCES);
	q.uid = ME + 1;
	assert_int_equal(ask(q).result, -EACCES);
	/* another service's, or none */
	q = SUBMIT(STATE, .handle = h);
	q.op = RGATE_REQ_SOCKET_OPEN;
	assert_int_equal(ask(q).result, -EOPNOTSUPP);
	q.op = RGATE_REQ_OP(RGATE_REQ_QUEUE, 200);
	assert_int_equal(ask(q).result, -EOPNOTSUPP);
	q.op = RGATE_REQ_CANCEL;
	assert_int_equal(ask(q).result, -EOPNOTSUPP);
	/* sizes, and bytes where there are none */
	assert_int_equal(done_of(SUBMIT(STATE, .handle = h, .len = 8)).result, -EINVAL);
	assert_int_equal(done_of(SUBMIT(COMPLETE, .handle = h, .len = 32769)).result, -EINVAL);
	assert_int_equal(done_of(SUBMIT(CLAIM, .handle = h, .len = GATE_ROOM,
					.a1 = RGATE_CLAIM_A1(1, 0))).result, -EINVAL);
	assert_int_equal(done_of(SUBMIT(SUBMIT, .handle = h, .len = GATE_ROOM)).result, -EINVAL);
	serial++;
	assert_int_equal(ask(SUBMIT(PEEK, .handle = h, .len = 100, .data = "x", .data_len = 1))
			 .result, -EINVAL);
	/* handles of a program of this node, and of another guest */
	assert_int_equal(done_of(SUBMIT(KICK, .handle = mine, .a0 = 1)).result,
			 mine == h ? 0 : -EBADF);
	guest = 2;
	assert_int_equal(done_of(SUBMIT(REMOVE, .handle = h)).result, -EBADF);
	assert_int_equal(done_of(SUBMIT(CLOSE, .handle = 1234567)).result, -EBADF);
	assert_int_equal(info_of(mine).handles, 2);
}

/* Its process is another one: what it had claimed goes back at once, and is counted. */
static void is_restarted(void **state)
{
	const uint32_t h = open_here("q");
	struct rgate_queue_info info;
	struct rgate_queue_task task;
	uint32_t there;

	(void)state;
	put_here(h, 8);
	there = open_there("q");
	task = claims(there);
	other_goes_down();
	turn();
	assert_int_equal(info_of(h).now[RGATE_TASK_RUNNING], 1);
	other_comes_up(8);
	while (other_heard(&heard))
		;
	turn();
	info = info_of(h);
	assert_int_equal(info.now[RGATE_TASK_READY], 1);
	assert_int_equal(info.lost, 1);
	assert_int_equal(info.handles, 1);
	/* and nothing that it says of it counts */
	guest = 1;
	number = 16;
	there = open_there("q");
	assert_int_equal(completes(there, &task).result, -ESTALE);
	assert_int_equal(info_of(h).now[RGATE_TASK_READY], 1);
}

/* It is cut off: for a while nothing happens, then it is as dead, and its guest does not return. */
static void is_silent(void **state)
{
	const uint32_t h = open_here("q");
	const uint64_t until = unit_now_ns() + PATIENCE_MS * 1000000ULL;
	struct rgate_queue_task task;
	uint32_t there;

	(void)state;
	put_here(h, 8);
	there = open_there("q");
	task = claims(there);
	other_goes_down();
	assert_int_equal(info_of(h).now[RGATE_TASK_RUNNING], 1);
	while (info_of(h).now[RGATE_TASK_READY] != 1) {
		assert_true(unit_now_ns() < until);
		usleep(1000);
	}
	assert_int_equal(info_of(h).lost, 1);
	other_comes_up(7);
	serial++;
	assert_int_equal(ask(SUBMIT(COMPLETE, .handle = there, .a0 = task.id,
				    .a1 = RGATE_TASK_A1(task.claim, 0))).result, -ECONNRESET);
	assert_int_equal(info_of(h).now[RGATE_TASK_READY], 1);
}

/* A node of another build is told so, and what it says does nothing; then it is one of this. */
static void newer_node(void **state)
{
	const uint32_t h = open_here("q");
	struct rgate_queue_task task;
	uint32_t there;

	(void)state;
	put_here(h, 20);
	there = open_there("q");
	task = claims(there);
	other_newer = 1;
	assert_int_equal(ask(opening("p", RGATE_QUEUE_CREATE)).result, -EPROTONOSUPPORT);
	assert_int_equal(ask(SUBMIT(COMPLETE, .handle = there, .a0 = task.id,
				    .a1 = RGATE_TASK_A1(task.claim, 0))).result, -EPROTONOSUPPORT);
	assert_int_equal(info_of(h).now[RGATE_TASK_RUNNING], 1);
	assert_int_equal(result_of(submit(open_of("p", RGATE_QUEUE_HERE, 0)), NULL), -ENOENT);
	other_newer = 0;
	assert_int_equal(completes(there, &task).result, 0);
}

static const struct CMUnitTest tests[] = {
	BED(as_here), BED(largest), BED(not_shown_on), BED(hostile), BED(is_restarted),
	SILENT(is_silent), BED(newer_node),
};

UNIT_MAIN(tests)
