// SPDX-License-Identifier: MIT OR GPL-2.0
/* Queues by requests of one machine's sessions */
#include "req_asks.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/queue.h>

#include "queue_service.h"

#define MS		1000000ULL
#define CLIENTS		4U
#define ROOM		1024U		/* where a client has what it is told */
#define ROOM_LEN	2048U
#define ME		1U
#define OTHER		2U

static struct rgate_engine *e;
static struct queue_service *sv;
static struct client c[CLIENTS];
static bool there[CLIENTS];
static uint64_t now;
static uint32_t h[CLIENTS];

static uint64_t clock_now(void)
{
	return now;
}

static void new_client(unsigned int i, uid_t uid)
{
	client_new(&c[i], e, uid);
	there[i] = true;
	bed_run(e);
}

static void end_client(unsigned int i)
{
	if (!there[i])
		return;
	there[i] = false;
	rgate_seat_remove(c[i].seat);
	bed_run(e);
	client_close(&c[i]);
}

static int setup(void **state)
{
	const struct queue_opts o = RGATE_OPTS(queue_opts, .clock = clock_now);

	(void)state;
	now = 1000 * MS;
	e = bed_engine();
	req_asks_begin(e);
	assert_int_equal(queue_service_create(&sv, &o), 0);
	assert_int_equal(queue_service_add(sv, e), 0);
	return 0;
}

static int teardown(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < CLIENTS; i++)
		end_client(i);
	rgate_engine_destroy(e);
	queue_service_destroy(sv);
	return 0;
}

static uint64_t submit(unsigned int i, struct rgate_request q)
{
	return req_asks_submit(&c[i], q);
}

static int open_as(unsigned int i, const char *name, uint32_t flags, uid_t owner,
		   struct rgate_queue_place place)
{
	uint64_t value = 0;
	int err;

	strcpy(place.name, name);
	memcpy(c[i].mem, &place, sizeof(place));
	h[i] = 0;
	err = ask_value(i, &value, OPEN, .a0 = RGATE_QUEUE_HERE,
			.a1 = RGATE_QUEUE_OPEN_A1(owner, flags), .len = sizeof(place));
	h[i] = (uint32_t)value;
	return err;
}

static void open_own(unsigned int i, struct rgate_queue_place place)
{
	new_client(i, ME);
	assert_int_equal(open_as(i, "q", RGATE_QUEUE_CREATE, ME, place), 0);
}

/* Writes @n tasks with one letter each; bytes */
static uint32_t write_tasks(unsigned int i, unsigned int n, struct rgate_queue_put put)
{
	unsigned char *to = c[i].mem;
	unsigned int k;

	put.len = 1;
	for (k = 0; k < n; k++, to += sizeof(put) + 8) {
		memcpy(to, &put, sizeof(put));
		to[sizeof(put)] = (unsigned char)('a' + k);
	}
	return (uint32_t)(to - c[i].mem);
}

static uint64_t submit_some(unsigned int i, unsigned int n, struct rgate_queue_put put)
{
	uint64_t first;

	assert_int_equal(ask_value(i, &first, SUBMIT, .len = write_tasks(i, n, put)), n);
	return first;
}

#define SUBMIT(i, n, ...) submit_some(i, n, (struct rgate_queue_put){ .len = 0, ##__VA_ARGS__ })

/* The @k-th of what a CLAIM wrote */
static struct rgate_queue_task head_of(unsigned int i, unsigned int k)
{
	struct rgate_queue_task t;

	memcpy(&t, c[i].mem + ROOM + k * (sizeof(t) + 8), sizeof(t));
	return t;
}

static int claim(unsigned int i, uint32_t most, uint32_t flags, struct rgate_queue_task *first)
{
	uint64_t n = 0;
	int result = ask_value(i, &n, CLAIM, .a1 = RGATE_CLAIM_A1(most, flags | RGATE_CLAIM_NOW),
			       .off = ROOM, .len = ROOM_LEN);

	if (result < 0)
		return result;
	assert_int_equal(result, n * (sizeof(*first) + 8));
	*first = head_of(i, 0);
	return (int)n;
}

static struct rgate_queue_info info(unsigned int i)
{
	struct rgate_queue_info in;

	assert_int_equal(ask(i, STATE, .off = ROOM, .len = sizeof(in)), 0);
	memcpy(&in, c[i].mem + ROOM, sizeof(in));
	return in;
}

/* ---- The usual way ---- */

static void the_usual_way(void **state)
{
	struct rgate_queue_task t;
	uint64_t first, wait, all, value;
	unsigned int i;

	(void)state;
	open_own(0, (struct rgate_queue_place){ .tasks = 0 });
	open_own(1, (struct rgate_queue_place){ .tasks = 0 });
	first = SUBMIT(0, 5, .flags = RGATE_TASK_RESULT, .priority = 2);
	wait = later(0, WAIT, .a0 = first + 2, .off = ROOM, .len = 16);
	all = later(0, WAIT);
	assert_false(is_done(0, wait));
	assert_int_equal(claim(1, 3, 0, &t), 3);
	for (i = 0; i < 3; i++) {
		t = head_of(1, i);
		assert_int_equal(t.id, first + i);
		assert_int_equal(t.state, RGATE_TASK_CLAIMED);
		assert_int_equal(t.len, 1);
		assert_int_equal(t.uid, ME);
		assert_int_equal(t.priority, 2);
		assert_int_equal(c[1].mem[ROOM + i * 48 + 40], 'a' + i);
		assert_int_equal(ask_value(1, &value, BEGIN, .a0 = t.id, .a1 = t.claim), 0);
		assert_int_equal(value, 1);
		memcpy(c[1].mem, "result", 6);
		assert_int_equal(ask(1, COMPLETE, .a0 = t.id, .a1 = t.claim, .len = 6), 0);
		assert_int_equal(ask(1, COMPLETE, .a0 = t.id, .a1 = t.claim, .len = 6), -ESTALE);
	}
	assert_int_equal(result_of(0, wait, &value), 6);
	assert_int_equal(value, RGATE_TASK_DONE);
	assert_memory_equal(c[0].mem + ROOM, "result", 6);
	assert_false(is_done(0, all));
	assert_int_equal(claim(1, 3, RGATE_CLAIM_BEGIN, &t), 2);
	assert_int_equal(t.state, RGATE_TASK_RUNNING);
	memcpy(c[1].mem, "broken", 6);
	assert_int_equal(ask(1, BURY, .a0 = t.id, .a1 = t.claim, .len = 6), 0);
	t = head_of(1, 1);
	assert_int_equal(ask_value(1, &value, RELEASE, .a0 = t.id, .a1 = t.claim), 0);
	assert_int_equal(value, RGATE_TASK_READY);
	assert_int_equal(claim(1, 3, 0, &t), 1);
	assert_int_equal(t.attempts, 1);
	assert_int_equal(ask(1, COMPLETE, .a0 = t.id, .a1 = t.claim), 0);
	assert_int_equal(result_of(0, all, &value), 0);
	assert_int_equal(value, 1);
	assert_int_equal(claim(1, 3, 0, &t), -EAGAIN);
	assert_int_equal(ask_value(0, &value, WAIT, .a0 = first + 3, .off = ROOM, .len = 16), 6);
	assert_int_equal(value, RGATE_TASK_BURIED);
	assert_memory_equal(c[0].mem + ROOM, "broken", 6);
	/* taken once */
	assert_int_equal(ask(0, WAIT, .a0 = first, .a1 = RGATE_WAIT_TAKE, .off = ROOM, .len = 5),
			 -EMSGSIZE);
	assert_int_equal(ask(0, WAIT, .a0 = first, .a1 = RGATE_WAIT_TAKE, .off = ROOM, .len = 6),
			 6);
	assert_int_equal(ask(0, WAIT, .a0 = first), -ENOENT);
	assert_int_equal(info(0).now[RGATE_TASK_DONE], 3);
	assert_int_equal(info(0).done, 4);
	assert_int_equal(ask_value(0, &value, KICK, .a0 = ~0ULL), 0);
	assert_int_equal(value, 1);
	assert_int_equal(ask(0, CLOSE), 0);
	assert_int_equal(ask(0, CLOSE), -EBADF);
	assert_int_equal(ask(0, STATE, .len = sizeof(struct rgate_queue_info)), -EBADF);
}

static void claims_wait(void **state)
{
	uint64_t w[3], n;

	(void)state;
	open_own(0, (struct rgate_queue_place){ .tasks = 0 });
	open_own(1, (struct rgate_queue_place){ .tasks = 0 });
	open_own(2, (struct rgate_queue_place){ .tasks = 0 });
	w[0] = later(1, CLAIM, .a0 = 2, .a1 = RGATE_CLAIM_A1(8, 0), .off = ROOM, .len = ROOM_LEN);
	assert_false(is_done(1, w[0]));
	w[1] = later(2, CLAIM, .a1 = RGATE_CLAIM_A1(8, 0), .off = ROOM, .len = ROOM_LEN);
	assert_false(is_done(2, w[1]));
	assert_int_equal(info(0).claims, 2);
	SUBMIT(0, 2);
	assert_true(is_done(2, w[1]));
	assert_false(is_done(1, w[0]));
	SUBMIT(0, 3, .type = 1);
	assert_int_equal(result_of(1, w[0], &n), 3 * 48);
	assert_int_equal(n, 3);
	/* one for a short while */
	w[2] = later(2, CLAIM, .a0 = 4, .a1 = RGATE_CLAIM_A1(1, 0), .off = ROOM, .len = ROOM_LEN,
		     .deadline_us = 1000);
	while (!is_done(2, w[2]))
		usleep(1000);
	assert_int_equal(result_of(2, w[2], NULL), -ETIMEDOUT);
	/* and one that is not wanted any more: nothing is claimed for it */
	w[2] = later(2, CLAIM, .a0 = 4, .a1 = RGATE_CLAIM_A1(1, 0), .off = ROOM, .len = ROOM_LEN);
	assert_false(is_done(2, w[2]));
	(void)submit(2, (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = w[2] });
	assert_int_equal(result_of(2, w[2], NULL), -ECANCELED);
	SUBMIT(0, 1, .type = 2);
	assert_int_equal(info(0).now[RGATE_TASK_READY], 1);
	/* closing ends it, too */
	w[2] = later(2, CLAIM, .a0 = 8, .a1 = RGATE_CLAIM_A1(1, 0), .off = ROOM, .len = ROOM_LEN);
	assert_int_equal(ask(2, CLOSE), 0);
	assert_int_equal(result_of(2, w[2], NULL), -ECANCELED);
	assert_int_equal(info(0).claims, 0);
}

static void a_session_ends(void **state)
{
	struct rgate_queue_task t;
	uint64_t w, n;

	(void)state;
	open_own(0, (struct rgate_queue_place){ .attempts = 2 });
	open_own(1, (struct rgate_queue_place){ .tasks = 0 });
	open_own(2, (struct rgate_queue_place){ .tasks = 0 });
	SUBMIT(0, 3);
	/* Who has submitted them may go. */
	end_client(0);
	assert_int_equal(claim(1, 1, RGATE_CLAIM_BEGIN, &t), 1);
	assert_int_equal(claim(1, 8, 0, &t), 2);
	w = later(2, CLAIM, .a1 = RGATE_CLAIM_A1(8, RGATE_CLAIM_BEGIN), .off = ROOM,
		  .len = ROOM_LEN);
	assert_false(is_done(2, w));
	/* with one that still waits for a task itself */
	(void)later(1, CLAIM, .a1 = RGATE_CLAIM_A1(8, 0), .off = ROOM, .len = ROOM_LEN);
	bed_run(e);
	end_client(1);
	assert_int_equal(result_of(2, w, &n), 3 * 48);
	assert_int_equal(n, 3);
	assert_int_equal(head_of(2, 0).attempts, 2);
	assert_int_equal(head_of(2, 1).attempts, 1);
	assert_int_equal(info(2).lost, 3);
	end_client(2);
	/* Nobody has it open, but it has tasks: one is buried by now. */
	new_client(0, ME);
	assert_int_equal(open_as(0, "q", 0, ME, (struct rgate_queue_place){ .tasks = 0 }), 0);
	assert_int_equal(info(0).now[RGATE_TASK_BURIED], 1);
	assert_int_equal(info(0).now[RGATE_TASK_READY], 2);
}

static void by_the_clock(void **state)
{
	struct rgate_queue_task t;
	uint64_t w;

	(void)state;
	open_own(0, (struct rgate_queue_place){ .run_ms = 100 });
	open_own(1, (struct rgate_queue_place){ .tasks = 0 });
	SUBMIT(0, 1, .delay_ms = 30);
	w = later(1, CLAIM, .a1 = RGATE_CLAIM_A1(1, RGATE_CLAIM_BEGIN), .off = ROOM,
		  .len = ROOM_LEN);
	assert_false(is_done(1, w));
	now += 29 * MS;
	assert_false(is_done(1, w));
	now += MS;
	assert_true(is_done(1, w));
	t = head_of(1, 0);
	assert_int_equal(ask(1, TOUCH, .a0 = t.id, .a1 = t.claim), 0);
	now += 99 * MS;
	assert_int_equal(info(0).now[RGATE_TASK_RUNNING], 1);
	now += MS;
	bed_run(e);
	assert_int_equal(info(0).now[RGATE_TASK_READY], 1);
	assert_int_equal(ask(1, COMPLETE, .a0 = t.id, .a1 = t.claim), -ESTALE);
	assert_int_equal(info(0).late, 1);
}

static void waits_for_room(void **state)
{
	struct rgate_queue_task t;
	uint64_t w, first;

	(void)state;
	open_own(0, (struct rgate_queue_place){ .tasks = 3 });
	open_own(1, (struct rgate_queue_place){ .tasks = 0 });
	/* as many as there is room for */
	assert_int_equal(ask(0, SUBMIT, .len = write_tasks(0, 5, (struct rgate_queue_put){
			     .len = 0 })), 3);
	assert_int_equal(ask(0, SUBMIT, .len = 24), -EAGAIN);
	w = later(0, SUBMIT, .a1 = RGATE_SUBMIT_ROOM, .len = 48);
	assert_false(is_done(0, w));
	assert_int_equal(ask(0, SUBMIT, .len = 24), -EAGAIN);
	assert_int_equal(claim(1, 1, RGATE_CLAIM_BEGIN, &t), 1);
	assert_false(is_done(0, w));
	assert_int_equal(ask(1, COMPLETE, .a0 = t.id, .a1 = t.claim), 0);
	assert_int_equal(result_of(0, w, &first), 1);
	assert_int_equal(first, 4);
}

static uint64_t wants_room(uint32_t len)
{
	const struct rgate_queue_put put = { .len = len };
	const uint32_t off = len * 64;

	memcpy(c[0].mem + off, &put, sizeof(put));
	return later(0, SUBMIT, .a1 = RGATE_SUBMIT_ROOM, .off = off,
		     .len = (uint32_t)(sizeof(put) + RGATE_QUEUE_PADDED(len)));
}

/* Who wants less gets it when the one before gives up; who wants too much is told at once. */
static void gives_up_room(void **state)
{
	uint64_t much, little;

	(void)state;
	open_own(0, (struct rgate_queue_place){ .bytes = 10 });
	assert_int_equal(result_of(0, wants_room(8), NULL), 1);
	much = wants_room(4);
	little = wants_room(2);
	assert_int_equal(result_of(0, wants_room(11), NULL), -EMSGSIZE);
	assert_false(is_done(0, much) || is_done(0, little));
	(void)submit(0, (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = much });
	assert_int_equal(result_of(0, much, NULL), -ECANCELED);
	assert_int_equal(result_of(0, little, NULL), 1);
}

/* What comes in that way has its times from then on, however long nothing had happened. */
static void delays_from_then(void **state)
{
	const struct rgate_queue_put late = { .len = 2, .delay_ms = 30 };
	uint64_t much, little;

	(void)state;
	open_own(0, (struct rgate_queue_place){ .bytes = 10 });
	assert_int_equal(result_of(0, wants_room(8), NULL), 1);
	much = wants_room(4);
	memcpy(c[0].mem, &late, sizeof(late));
	little = later(0, SUBMIT, .a1 = RGATE_SUBMIT_ROOM, .len = sizeof(late) + 8);
	assert_false(is_done(0, much) || is_done(0, little));
	now += 1000 * MS;
	(void)submit(0, (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = much });
	assert_int_equal(result_of(0, little, NULL), 1);
	assert_int_equal(info(0).now[RGATE_TASK_DELAYED], 1);
	now += 30 * MS;
	bed_run(e);
	assert_int_equal(info(0).now[RGATE_TASK_READY], 2);
}

/* ---- Who may what ---- */

static void rights(void **state)
{
	struct rgate_queue_task t;
	uint64_t own;

	(void)state;
	new_client(0, ME);
	new_client(1, OTHER);
	assert_int_equal(open_as(0, "mine", RGATE_QUEUE_CREATE, ME,
				 (struct rgate_queue_place){ .tasks = 0 }), 0);
	assert_int_equal(open_as(1, "mine", 0, ME, (struct rgate_queue_place){ .tasks = 0 }),
			 -EACCES);
	assert_int_equal(open_as(0, "in", RGATE_QUEUE_CREATE | RGATE_QUEUE_SUBMIT, ME,
				 (struct rgate_queue_place){ .tasks = 0 }), 0);
	assert_int_equal(open_as(1, "in", 0, ME, (struct rgate_queue_place){ .tasks = 0 }), 0);
	own = SUBMIT(1, 1);
	SUBMIT(0, 1);
	assert_int_equal(claim(1, 1, 0, &t), -EACCES);
	assert_int_equal(ask(1, PEEK, .off = ROOM, .len = ROOM_LEN), -EACCES);
	assert_int_equal(ask(1, KICK, .a0 = 1), -EACCES);
	assert_int_equal(ask(1, DISCARD, .a1 = 2), -EACCES);
	assert_int_equal(ask(1, REMOVE), -EACCES);
	assert_int_equal(ask(1, WAIT, .a0 = own + 1), -EACCES);
	assert_false(is_done(1, later(1, WAIT, .a0 = own)));
	assert_int_equal(open_as(0, "out", RGATE_QUEUE_CREATE | RGATE_QUEUE_WORK, ME,
				 (struct rgate_queue_place){ .tasks = 0 }), 0);
	own = SUBMIT(0, 1, .flags = RGATE_TASK_RESULT);
	assert_int_equal(open_as(1, "out", 0, ME, (struct rgate_queue_place){ .tasks = 0 }), 0);
	assert_int_equal(ask(1, SUBMIT, .len = write_tasks(1, 1, (struct rgate_queue_put){
			     .len = 0 })), -EACCES);
	assert_int_equal(claim(1, 1, 0, &t), 1);
	assert_int_equal(ask(1, COMPLETE, .a0 = t.id, .a1 = t.claim), 0);
	assert_int_equal(ask(1, WAIT, .a0 = own, .a1 = RGATE_WAIT_TAKE), -EACCES);
	assert_int_equal(ask(1, WAIT, .a0 = own), 0);
}

/* ---- What there is ---- */

static void shows(void **state)
{
	struct rgate_queue_info in;
	struct rgate_queue_task t;
	uint64_t next = 0, n = 0, first;

	(void)state;
	open_own(0, (struct rgate_queue_place){
		.tasks = 9, .bytes = 99, .attempts = 4, .run_ms = 5, .result_ms = 6 });
	first = SUBMIT(0, 3, .delay_ms = 100);
	SUBMIT(0, 1);
	in = info(0);
	assert_int_equal(in.tasks_max, 9);
	assert_int_equal(in.bytes_max, 99);
	assert_int_equal(in.attempts, 4);
	assert_int_equal(in.run_ms, 5);
	assert_int_equal(in.result_ms, 6);
	assert_int_equal(in.bytes, 4);
	assert_int_equal(in.now[RGATE_TASK_DELAYED], 3);
	assert_int_equal(in.submitted, 4);
	assert_int_equal(in.handles, 1);
	assert_int_equal(in.owner, ME);
	assert_string_equal(in.name, "q");
	for (n = 0; ask_value(0, &next, PEEK, .a0 = next, .a1 = RGATE_TASK_BIT(
			      RGATE_TASK_DELAYED), .off = ROOM, .len = ROOM_LEN) > 0; n++) {
		t = head_of(0, 0);
		assert_int_equal(t.id, first + n);
		assert_int_equal(c[0].mem[ROOM + 40], 'a' + n);
	}
	assert_int_equal(n, 3);
	assert_int_equal(next, 0);
	assert_int_equal(ask_value(0, &n, DISCARD, .a0 = first + 1,
				   .a1 = RGATE_TASK_BIT(RGATE_TASK_READY)), -EBUSY);
	assert_int_equal(ask_value(0, &n, DISCARD, .a0 = first + 1, .a1 = 0x7e), 0);
	assert_int_equal(ask_value(0, &n, DISCARD, .a0 = first + 1, .a1 = 0x7e), -ENOENT);
	assert_int_equal(ask_value(0, &n, DISCARD, .a1 = 0x7e), 0);
	assert_int_equal(n, 3);
	new_client(1, ME);
	assert_int_equal(open_as(1, "r", RGATE_QUEUE_CREATE, ME,
				 (struct rgate_queue_place){ .tasks = 0 }), 0);
	h[1] = 0;
	for (n = next = 0; ask_value(1, &next, LIST, .a0 = RGATE_QUEUE_HERE, .a1 = next,
				     .off = ROOM, .len = sizeof(in)) == 1; n++) {
		memcpy(&in, c[1].mem + ROOM, sizeof(in));
		assert_string_equal(in.name, n ? "r" : "q");
	}
	assert_int_equal(n, 2);
}

static void is_removed(void **state)
{
	uint64_t w, idle;

	(void)state;
	open_own(0, (struct rgate_queue_place){ .tasks = 0 });
	open_own(1, (struct rgate_queue_place){ .tasks = 0 });
	SUBMIT(0, 1, .delay_ms = 1000);
	w = later(1, CLAIM, .a1 = RGATE_CLAIM_A1(1, 0), .off = ROOM, .len = ROOM_LEN);
	idle = later(1, WAIT);
	assert_false(is_done(1, w));
	assert_int_equal(ask(0, REMOVE), 0);
	assert_int_equal(result_of(1, w, NULL), -ESTALE);
	assert_int_equal(result_of(1, idle, NULL), -ESTALE);
	assert_int_equal(ask(1, WAIT), -ESTALE);
	assert_int_equal(ask(0, REMOVE), -ESTALE);
	assert_int_equal(open_as(0, "q", 0, ME, (struct rgate_queue_place){ .tasks = 0 }), -ENOENT);
	assert_int_equal(ask(1, CLOSE), 0);
}

/* ---- What nobody may ask ---- */

static void hostile(void **state)
{
	const struct rgate_queue_put long_ = { .len = 100 };
	struct rgate_queue_task t;
	uint64_t id;

	(void)state;
	open_own(0, (struct rgate_queue_place){ .tasks = 0 });
	assert_int_equal(ask(0, SUBMIT), -EINVAL);
	assert_int_equal(ask(0, SUBMIT, .len = 15), -EINVAL);
	assert_int_equal(ask(0, SUBMIT, .len = 24, .a1 = 2), -EINVAL);
	memcpy(c[0].mem, &long_, sizeof(long_));
	assert_int_equal(ask(0, SUBMIT, .len = 16 + 99), -EINVAL);
	assert_int_equal(ask(0, SUBMIT, .len = 16 + 100), 1);
	/* A good one, and one that is cut off: the first is taken. */
	memcpy(c[0].mem + 120, &long_, sizeof(long_));
	assert_int_equal(ask(0, SUBMIT, .len = 120 + 50), 1);
	memset(c[0].mem, 0xff, 64);
	assert_int_equal(ask(0, SUBMIT, .len = 64), -EINVAL);
	assert_int_equal(ask(0, CLAIM, .a1 = RGATE_CLAIM_A1(0, 0), .len = 100), -EINVAL);
	assert_int_equal(ask(0, CLAIM, .a1 = RGATE_CLAIM_A1(257, 0), .len = 100), -EINVAL);
	assert_int_equal(ask(0, CLAIM, .a1 = RGATE_CLAIM_A1(1, 4), .len = 100), -EINVAL);
	assert_int_equal(ask(0, CLAIM, .a1 = RGATE_CLAIM_A1(1, 0), .len = 39), -EINVAL);
	assert_int_equal(ask(0, CLAIM, .a1 = RGATE_CLAIM_A1(1, 0)), -EINVAL);
	/* Where it does not fit it is not claimed. */
	assert_int_equal(ask(0, CLAIM, .a1 = RGATE_CLAIM_A1(1, 0), .len = 40 + 103), -EMSGSIZE);
	assert_int_equal(info(0).now[RGATE_TASK_READY], 2);
	assert_int_equal(ask(0, CLAIM, .a1 = RGATE_CLAIM_A1(1, 0), .off = ROOM, .len = 40 + 104),
			 144);
	t = head_of(0, 0);
	id = t.id;
	assert_int_equal(ask(0, BEGIN, .a0 = id, .a1 = t.claim | 1ULL << 32), -EINVAL);
	assert_int_equal(ask(0, RELEASE, .a0 = id, .a1 = RGATE_TASK_A1(t.claim, ~0U)), -EINVAL);
	assert_int_equal(ask(0, BURY, .a0 = id, .a1 = t.claim, .len = 256), -EINVAL);
	assert_int_equal(ask(0, COMPLETE, .a0 = ~0ULL, .a1 = t.claim), -ENOENT);
	assert_int_equal(ask(0, WAIT, .a0 = id, .a1 = 2), -EINVAL);
	assert_int_equal(ask(0, WAIT, .a0 = ~0ULL), -ENOENT);
	assert_int_equal(ask(0, PEEK, .a1 = 128, .len = 100), -EINVAL);
	assert_int_equal(ask(0, PEEK, .a0 = ~0ULL, .len = 100), 0);
	assert_int_equal(ask(0, DISCARD, .a1 = 128), -EINVAL);
	assert_int_equal(ask(0, DISCARD, .a1 = 0x7e), 0);
	assert_int_equal(info(0).now[RGATE_TASK_CLAIMED], 1);
	assert_int_equal(ask(0, STATE, .len = 8), -EINVAL);
	assert_int_equal(open_as(0, "x", RGATE_QUEUE_CREATE, ME,
				 (struct rgate_queue_place){ .tasks = ~0U }), -EINVAL);
	assert_int_equal(ask(0, OPEN, .a0 = 1, .len = sizeof(struct rgate_queue_place)), -ENXIO);
	assert_int_equal(ask(0, OPEN, .a0 = RGATE_QUEUE_HERE, .len = 87), -EINVAL);
	assert_int_equal(ask(0, LIST, .a0 = 1, .len = sizeof(struct rgate_queue_info)), -ENXIO);
	assert_int_equal(ask(0, LIST, .a0 = RGATE_QUEUE_HERE, .len = 8), -EINVAL);
}

/* ---- Many at once ---- */

#define END	32U	/* bytes of one, with 8 for its result */

static void write_end(unsigned int i, unsigned int k, const struct rgate_queue_task *t,
		      const char *result)
{
	struct rgate_queue_end end = { .size = END };

	if (t) {
		end.id = t->id;
		end.claim = t->claim;
		end.len = (uint32_t)strlen(result);
		memcpy(c[i].mem + k * END + sizeof(end), result, end.len);
	}
	memcpy(c[i].mem + k * END, &end, sizeof(end));
}

static void completes_many(void **state)
{
	struct rgate_queue_task t[3];
	uint64_t bits, first;
	unsigned int k;

	(void)state;
	open_own(0, (struct rgate_queue_place){ .tasks = 0 });
	open_own(1, (struct rgate_queue_place){ .tasks = 0 });
	first = SUBMIT(0, 3, .flags = RGATE_TASK_RESULT);
	assert_int_equal(claim(0, 3, RGATE_CLAIM_BEGIN, t), 3);
	for (k = 0; k < 3; k++)
		t[k] = head_of(0, k);
	/* one of none, and one whose claim is another */
	write_end(0, 0, &t[0], "one");
	write_end(0, 1, NULL, "");
	t[1].claim++;
	write_end(0, 2, &t[1], "no");
	t[1].claim--;
	write_end(0, 3, &t[2], "");
	assert_int_equal(ask_value(0, &bits, COMPLETE_MANY, .len = 4 * END), 4);
	assert_int_equal(bits, 1 | 8);
	assert_int_equal(info(0).stale, 1);
	assert_int_equal(ask(0, WAIT, .a0 = first, .off = ROOM, .len = 8), 3);
	assert_memory_equal(c[0].mem + ROOM, "one", 3);
	assert_int_equal(ask(0, WAIT, .a0 = first + 2, .off = ROOM, .len = 8), 0);
	/* another session's */
	write_end(1, 0, &t[1], "two");
	assert_int_equal(ask_value(1, &bits, COMPLETE_MANY, .len = END), 1);
	assert_int_equal(bits, 0);
	write_end(0, 0, &t[1], "two");
	assert_int_equal(ask_value(0, &bits, COMPLETE_MANY, .len = END), 1);
	assert_int_equal(bits, 1);
	assert_int_equal(ask_value(0, &bits, COMPLETE_MANY, .len = END), 1);
	assert_int_equal(bits, 0);
	assert_int_equal(info(0).done, 3);
}

/* What is wrong ends it there */
static void hostile_many(void **state)
{
	struct rgate_queue_end bad[] = {
		{ .size = 23 }, { .size = 28 }, { .size = 0 }, { .size = 40 },
		{ .size = 32, .len = 9 }, { .size = 32, .len = ~0U }, { .size = ~7U },
		{ .size = 32, .reserved = 1 },
	};
	struct rgate_queue_task t[2];
	uint64_t bits;
	unsigned int k;

	(void)state;
	open_own(0, (struct rgate_queue_place){ .tasks = 0 });
	SUBMIT(0, 10);
	assert_int_equal(ask(0, COMPLETE_MANY), -EINVAL);
	for (k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		assert_int_equal(claim(0, 1, RGATE_CLAIM_BEGIN, t), 1);
		write_end(0, 0, &t[0], "");
		bad[k].id = t[0].id;
		bad[k].claim = t[0].claim;
		memcpy(c[0].mem + END, &bad[k], sizeof(bad[k]));
		assert_int_equal(ask_value(0, &bits, COMPLETE_MANY, .len = 2 * END), 1);
		assert_int_equal(bits, 1);
		assert_int_equal(info(0).done, k + 1);
		memcpy(c[0].mem, &bad[k], sizeof(bad[k]));
		assert_int_equal(ask(0, COMPLETE_MANY, .len = END), -EINVAL);
	}
	assert_int_equal(claim(0, 1, RGATE_CLAIM_BEGIN, t), 1);
	write_end(0, 0, &t[0], "");
	assert_int_equal(ask_value(0, &bits, COMPLETE_MANY, .len = END + 23), 1);
	assert_int_equal(bits, 1);
	for (k = 0; k < RGATE_QUEUE_ENDS_MAX + 1; k++)
		write_end(0, k, NULL, "");
	assert_int_equal(ask(0, COMPLETE_MANY, .len = RGATE_QUEUE_ENDS_MAX * END), 64);
	assert_int_equal(ask(0, COMPLETE_MANY, .len = (RGATE_QUEUE_ENDS_MAX + 1) * END), 64);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(the_usual_way), TEST(claims_wait), TEST(a_session_ends), TEST(by_the_clock),
	TEST(waits_for_room), TEST(gives_up_room), TEST(delays_from_then),
	TEST(rights), TEST(shows), TEST(is_removed), TEST(hostile),
	TEST(completes_many), TEST(hostile_many),
};

UNIT_MAIN_ALONE(tests)
