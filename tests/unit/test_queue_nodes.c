// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Queues and another node, which asks for whatever it likes as a guest of this home, and which is
 * the home itself: one that answers when the test says so, with lies, or is another process.
 */
#include "req_bed.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/queue.h>

#include "gate_service.h"
#include "gate_wire.h"
#include "other.h"
#include "queue_service.h"

#define PATIENCE_MS	20000U
#define ME		5U
#define ROOM		1024U		/* where the client has what it is told */
#define ROOM_LEN	2048U
#define SILENT_MS	50U

static struct rgate_engine *e;
static struct gate_service *gate;
static struct queue_service *sv;
static struct client a;			/* of this node */
static uint64_t cookie, number, serial, guest;
static struct msg heard;
static struct rgate_completion done[512];

/* ---- The bed ---- */

static bool speaks(void *ctx, uint32_t node, uid_t uid)
{
	(void)ctx;
	return o.may && node == OTHER && uid != 13;
}

static bool rights(void *ctx, uid_t uid, struct rgate_limits *limits)
{
	(void)ctx;
	rgate_limits_init(limits);
	return uid != 14;
}

static void turn(void)
{
	bed_run(e);
	(void)o.hub.asks.tick(o.hub.ctx);
	bed_run(e);
}

static int make(uint32_t silence_ms)
{
	const struct gate_opts go = RGATE_OPTS(gate_opts, .role = &gate_queues, .hub = HUB,
					       .may = speaks, .rights = rights,
					       .silence_ms = silence_ms);
	struct queue_opts qo = { .sz = sizeof(qo) };
	struct gate_opts all = go;

	other_init(RGATE_SERVICE_QUEUE);
	e = bed_engine();
	all.engine = e;
	assert_int_equal(gate_service_create(&gate, &all), 0);
	qo.gate = gate;
	assert_int_equal(queue_service_create(&sv, &qo), 0);
	assert_int_equal(queue_service_add(sv, e), 0);
	memset(&a, 0, sizeof(a));
	client_new(&a, e, ME);
	other_comes_up(7);
	number = 16;
	cookie = 0;
	serial = guest = 1;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return make(0);
}

static int setup_silent(void **state)
{
	(void)state;
	return make(SILENT_MS);
}

static int teardown(void **state)
{
	(void)state;
	gate_service_quit(gate);
	rgate_engine_destroy(e);
	queue_service_destroy(sv);
	gate_service_destroy(gate);
	client_close(&a);
	assert_int_equal(o.hub.node.stage.lent, 0);
	return 0;
}

/* ---- A program of this node ---- */

static uint64_t submit(struct rgate_request q)
{
	q.cookie = ++cookie;
	memset(&done[q.cookie], 0, sizeof(done[0]));
	client_submit(&a, q);
	turn();
	return q.cookie;
}

static bool is_done(uint64_t n)
{
	struct rgate_completion got;

	turn();
	while (client_poll(&a, &got))
		done[got.cookie] = got;
	return done[n].cookie == n;
}

static int result_of(uint64_t n, uint64_t *value)
{
	assert_true(is_done(n));
	if (value)
		*value = done[n].value;
	return done[n].result;
}

#define REQ(op_, ...) \
	((struct rgate_request){ .op = RGATE_REQ_QUEUE_##op_, ##__VA_ARGS__ })
#define ask_here(...)	result_of(submit(REQ(__VA_ARGS__)), NULL)

static struct rgate_request open_of(const char *name, uint64_t node, uint32_t flags)
{
	struct rgate_queue_place place = { .attempts = flags & RGATE_QUEUE_CREATE ? 2 : 0 };

	strcpy(place.name, name);
	memcpy(a.mem, &place, sizeof(place));
	return REQ(OPEN, .a0 = node, .a1 = RGATE_QUEUE_OPEN_A1(ME, flags), .len = sizeof(place));
}

static uint32_t open_here(const char *name)
{
	uint64_t value;

	assert_int_equal(result_of(submit(open_of(name, RGATE_QUEUE_HERE, RGATE_QUEUE_CREATE)),
				   &value), 0);
	return (uint32_t)value;
}

static void put_here(uint32_t h, uint32_t len)
{
	const struct rgate_queue_put put = { .len = len };

	memset(a.mem, 'x', sizeof(put) + RGATE_QUEUE_PADDED(len));
	memcpy(a.mem, &put, sizeof(put));
	assert_int_equal(ask_here(SUBMIT, .handle = h,
				  .len = (uint32_t)(sizeof(put) + RGATE_QUEUE_PADDED(len))), 1);
}

static struct rgate_queue_info info_of(uint32_t h)
{
	struct rgate_queue_info info;

	assert_int_equal(ask_here(STATE, .handle = h, .off = ROOM, .len = sizeof(info)), 0);
	memcpy(&info, a.mem + ROOM, sizeof(info));
	return info;
}

static uint64_t handles(void)
{
	struct rgate_engine_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_engine_stats(e, &st), 0);
	return st.handles;
}

/* ---- The other node asks ---- */

static struct gate_result hear(void)
{
	const uint64_t until = unit_now_ns() + PATIENCE_MS * 1000000ULL;
	struct gate_result r;

	while (!other_heard(&heard)) {
		turn();
		assert_true(unit_now_ns() < until);
		usleep(200);
	}
	assert_int_equal(heard.data[0], RGATE_SERVICE_QUEUE | RGATE_SERVICE_ASKER);
	assert_int_equal(gate_answer_get(&r, heard.data, heard.len), 0);
	return r;
}

static struct gate_result ask(struct gate_question q)
{
	uint64_t msg[RGATE_HUB_MSG_MAX / sizeof(uint64_t)];
	struct gate_result r;

	q.number = number++;
	o.hub.serves.message(o.hub.ctx, OTHER, msg, gate_question_put(&gate_queues, msg, &q));
	do
		r = hear();
	while (r.kind == GATE_DONE);
	assert_int_equal(r.number, q.number);
	return r;
}

#define QUESTION(kind_, ...) \
	((struct gate_question){ .kind = (kind_), .uid = ME, .guest = guest, .serial = serial, \
				 ##__VA_ARGS__ })
#define SUBMIT(op_, ...) QUESTION(GATE_SUBMIT, .op = RGATE_REQ_QUEUE_##op_, ##__VA_ARGS__)

/* Taken, and its end */
static struct gate_result done_of(struct gate_question q)
{
	struct gate_result r;

	q.serial = ++serial;
	assert_int_equal(ask(q).result, 0);
	r = hear();
	assert_int_equal(r.kind, GATE_DONE);
	assert_int_equal(r.serial, q.serial);
	return r;
}

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

/* ---- The other node is the home ---- */

static struct gate_question question(unsigned int i)
{
	struct gate_question q;

	assert_true(i < o.peer.asked.n);
	assert_int_equal(o.peer.asked.m[i].data[0], RGATE_SERVICE_QUEUE);
	assert_int_equal(gate_question_get(&gate_queues, &q, o.peer.asked.m[i].data,
					   o.peer.asked.m[i].len), 0);
	assert_int_equal(q.uid, ME);
	return q;
}

static void say(struct gate_result r)
{
	unsigned char msg[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));

	o.hub.asks.message(o.hub.ctx, OTHER, msg, gate_answer_put(&gate_queues, msg, &r));
	turn();
}

static void answer(unsigned int i, int result)
{
	const struct gate_question q = question(i);

	say((struct gate_result){ .kind = q.kind, .number = q.number, .result = result });
}

/* Taken, and ended */
static void ends(unsigned int i, int result, uint64_t value)
{
	const struct gate_question q = question(i);

	answer(i, 0);
	say((struct gate_result){ .kind = GATE_DONE, .guest = q.guest, .serial = q.serial,
				  .ticket = q.ticket, .result = result, .value = value });
}

/* A queue at OTHER, which has the handle 77 there */
static uint32_t open_at_other(void)
{
	const unsigned int i = o.peer.asked.n;
	struct gate_question q;
	uint64_t n, value;

	n = submit(open_of("far", OTHER, RGATE_QUEUE_CREATE));
	assert_int_equal(o.peer.asked.n, i + 1);
	q = question(i);
	assert_int_equal(q.kind, GATE_SUBMIT);
	assert_int_equal(q.op, RGATE_REQ_QUEUE_OPEN);
	assert_true(q.a0 == RGATE_QUEUE_HERE);
	assert_int_equal(q.a1, RGATE_QUEUE_OPEN_A1(ME, RGATE_QUEUE_CREATE));
	assert_int_equal(q.data_len, sizeof(struct rgate_queue_place));
	assert_false(is_done(n));
	ends(i, 0, 77);
	assert_int_equal(result_of(n, &value), 0);
	return (uint32_t)value;
}

static void goes_there(void **state)
{
	struct gate_question q;
	uint32_t h, here;
	uint64_t n, m;

	(void)state;
	h = open_at_other();
	here = open_here("far");
	assert_int_not_equal(h, here);
	n = submit(REQ(CLAIM, .handle = h, .a0 = 3, .a1 = RGATE_CLAIM_A1(2, 0), .off = ROOM,
		       .len = ROOM_LEN));
	q = question(1);
	assert_int_equal(q.handle, 77);
	assert_int_equal(q.a0, 3);
	assert_int_equal(q.len, ROOM_LEN);
	/* what is this home's is not held up by that */
	m = submit(REQ(STATE, .handle = here, .off = ROOM, .len = sizeof(struct rgate_queue_info)));
	assert_int_equal(result_of(m, NULL), 0);
	ends(1, -EAGAIN, 0);
	assert_int_equal(result_of(n, NULL), -EAGAIN);
	/* checked before it is sent */
	assert_int_equal(ask_here(CLAIM, .handle = h, .a1 = 0, .off = ROOM, .len = ROOM_LEN),
			 -EINVAL);
	assert_int_equal(o.peer.asked.n, 2);
	n = submit(REQ(CLOSE, .handle = h));
	assert_int_equal(question(2).op, RGATE_REQ_QUEUE_CLOSE);
	assert_int_equal(question(2).handle, 77);
	assert_int_equal(ask_here(KICK, .handle = h, .a0 = 1), -EBADF);
	ends(2, 0, 0);
	assert_int_equal(result_of(n, NULL), 0);
	/* no such node; and this one by its number is this one */
	assert_int_equal(result_of(submit(open_of("far", 3, 0)), NULL), -ENXIO);
	assert_int_equal(result_of(submit(open_of("far", 1ULL << 32 | OTHER, 0)), NULL), -ENXIO);
	assert_int_equal(result_of(submit(open_of("far", SELF, 0)), NULL), 0);
	assert_int_equal(o.peer.asked.n, 3);
}

/* The session itself has a handle, too, which nobody can use for anything. */
static void no_queue(void **state)
{
	uint32_t h, place, visit = 0;

	(void)state;
	h = open_at_other();
	/* places are given one after the other */
	for (place = 0; place < 4; place++) {
		const uint32_t other = (h & ~0xffU) | place;

		if (other == h)
			continue;
		visit++;
		assert_int_equal(ask_here(KICK, .handle = other, .a0 = 1), -EBADF);
		assert_int_equal(ask_here(CLOSE, .handle = other), -EBADF);
	}
	assert_true(visit);
	assert_int_equal(handles(), 2);
	assert_int_equal(o.peer.asked.n, 1);
}

/* An OPEN that fails leaves no handle, however often. */
static void is_refused(void **state)
{
	static const struct {
		int result, as;
		uint64_t value;
	} lies[] = {
		{ -ENOENT, -ENOENT, 0 }, { 0, -EPROTO, 0 }, { 0, -EPROTO, 1ULL << 32 },
		{ 1, -EPROTO, 77 }, { -EACCES, -EACCES, 7 },
	};
	unsigned int i;
	uint64_t n;

	(void)state;
	for (i = 0; i < ARRAY_LEN(lies) * 3; i++) {
		n = submit(open_of("far", OTHER, 0));
		ends(i, lies[i % ARRAY_LEN(lies)].result, lies[i % ARRAY_LEN(lies)].value);
		assert_int_equal(result_of(n, NULL), lies[i % ARRAY_LEN(lies)].as);
	}
	/* the last one's goes with the next that is asked for, the session's stays */
	assert_true(handles() <= 2);
	n = submit(open_of("far", OTHER, 0));
	assert_int_equal(submit(REQ(KICK, .handle = 5, .a0 = 1)), n + 1);
	assert_int_equal(handles(), 2);
	rgate_seat_remove(a.seat);
	turn();
	answer(i, 0);
	turn();
	/* it was cancelled; the home says what became of it */
	assert_int_equal(question(i + 1).kind, GATE_CANCEL);
	say((struct gate_result){ .kind = GATE_DONE, .guest = question(i).guest,
				  .serial = question(i).serial, .ticket = question(i).ticket,
				  .result = 0, .value = 78 });
	turn();
	assert_int_equal(a.over, 1);
	assert_int_equal(question(o.peer.asked.n - 1).kind, GATE_LEAVE);
	assert_int_equal(handles(), 0);
}

/* The home is another process: what waits is told, and what was there is no more. */
static void is_lost(void **state)
{
	uint64_t n, first;
	unsigned int i;
	uint32_t h, again;

	(void)state;
	h = open_at_other();
	first = question(0).guest;
	n = submit(REQ(CLAIM, .handle = h, .a1 = RGATE_CLAIM_A1(1, 0), .off = ROOM,
		       .len = ROOM_LEN));
	answer(1, 0);
	assert_false(is_done(n));
	other_goes_down();
	assert_false(is_done(n));
	other_comes_up(8);
	assert_int_equal(result_of(n, NULL), -ECONNRESET);
	i = o.peer.asked.n;
	assert_int_equal(ask_here(KICK, .handle = h, .a0 = 1), -ECONNRESET);
	assert_int_equal(o.peer.asked.n, i);
	/* the same session may have it anew, as another guest */
	again = open_at_other();
	assert_int_not_equal(again, h);
	assert_true(question(i).guest > first);
	assert_int_equal(ask_here(KICK, .handle = h, .a0 = 1), -ECONNRESET);
	assert_int_equal(ask_here(CLOSE, .handle = h), 0);
	assert_int_equal(ask_here(CLOSE, .handle = h), -EBADF);
	n = submit(REQ(KICK, .handle = again, .a0 = 1));
	assert_int_equal(question(i + 1).handle, 77);
	ends(i + 1, 0, 1);
	assert_int_equal(result_of(n, NULL), 0);
}

/* It is not there: bounded. */
static void is_away(void **state)
{
	const uint64_t until = unit_now_ns() + PATIENCE_MS * 1000000ULL;
	uint64_t n, m;

	(void)state;
	other_goes_down();
	n = submit(open_of("far", OTHER, 0));
	m = submit(REQ(LIST, .a0 = OTHER, .off = ROOM, .len = sizeof(struct rgate_queue_info)));
	while (!is_done(n) || !is_done(m)) {
		assert_true(unit_now_ns() < until);
		usleep(1000);
	}
	assert_int_equal(done[n].result, -ENOTCONN);
	assert_int_equal(done[m].result, -ENOTCONN);
	assert_int_equal(o.peer.asked.n, 0);
	other_comes_up(7);
	(void)open_at_other();
}

/* A CLOSE goes on, whatever becomes of who asked for it; what cannot be told ends the guest. */
static void close_goes_on(void **state)
{
	const uint64_t until = unit_now_ns() + PATIENCE_MS * 1000000ULL;
	uint64_t n, m;
	uint32_t h;

	(void)state;
	h = open_at_other();
	/* behind another one, which the home does not take */
	m = submit(REQ(KICK, .handle = h, .a0 = 1));
	n = submit(REQ(CLOSE, .handle = h));
	assert_int_equal(o.peer.asked.n, 2);
	assert_int_equal(result_of(submit((struct rgate_request){ .op = RGATE_REQ_CANCEL,
								  .a0 = n }), NULL), -EALREADY);
	ends(1, 0, 0);
	assert_int_equal(result_of(m, NULL), 0);
	assert_int_equal(question(2).op, RGATE_REQ_QUEUE_CLOSE);
	ends(2, 0, 0);
	assert_int_equal(result_of(n, NULL), 0);
	h = open_at_other();
	other_goes_down();
	n = submit(REQ(CLOSE, .handle = h));
	while (!is_done(n)) {
		assert_true(unit_now_ns() < until);
		usleep(1000);
	}
	assert_true(done[n].result < 0);
	other_comes_up(7);
	turn();
	/* all that it had there goes, though the session goes on */
	assert_int_equal(question(o.peer.asked.n - 1).kind, GATE_LEAVE);
}

static void is_cancelled(void **state)
{
	uint64_t n, m;
	uint32_t h;

	(void)state;
	h = open_at_other();
	n = submit(REQ(WAIT, .handle = h));
	answer(1, 0);
	m = submit((struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = n });
	assert_int_equal(question(2).kind, GATE_CANCEL);
	answer(2, 0);
	say((struct gate_result){ .kind = GATE_DONE, .guest = question(1).guest,
				  .serial = question(1).serial, .ticket = question(1).ticket,
				  .result = -ECANCELED });
	assert_int_equal(result_of(n, NULL), -ECANCELED);
	assert_true(is_done(m));
	/* what waits here is cancelled here */
	h = open_here("near");
	put_here(h, 8);
	n = submit(REQ(WAIT, .handle = h));
	assert_false(is_done(n));
	(void)submit((struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = n });
	assert_int_equal(result_of(n, NULL), -ECANCELED);
}

/* A claim that waits there; the question is the last one */
static uint64_t claims_there(uint32_t h)
{
	const uint64_t n = submit(REQ(CLAIM, .handle = h, .a1 = RGATE_CLAIM_A1(1, 0), .off = ROOM,
				      .len = ROOM_LEN));

	answer(o.peer.asked.n - 1, 0);
	assert_false(is_done(n));
	return n;
}

static void becomes(uint64_t n, int result)
{
	const uint64_t until = unit_now_ns() + PATIENCE_MS * 1000000ULL;

	while (!is_done(n)) {
		assert_true(unit_now_ns() < until);
		usleep(1000);
	}
	assert_int_equal(done[n].result, result);
}

static void session_ends(void)
{
	const uint64_t until = unit_now_ns() + PATIENCE_MS * 1000000ULL;

	rgate_seat_remove(a.seat);
	while (!a.over) {
		turn();
		assert_true(unit_now_ns() < until);
		usleep(1000);
	}
}

/* Nothing has ended the connection, but the home has no such guest. */
static void is_forgotten(void **state)
{
	uint64_t n, m;
	uint32_t h;

	(void)state;
	h = open_at_other();
	n = claims_there(h);
	m = claims_there(h);
	(void)submit((struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = n });
	assert_int_equal(question(o.peer.asked.n - 1).kind, GATE_CANCEL);
	answer(o.peer.asked.n - 1, -ECONNRESET);
	assert_int_equal(result_of(n, NULL), -ECONNRESET);
	assert_int_equal(result_of(m, NULL), -ECONNRESET);
	assert_int_equal(question(o.peer.asked.n - 1).kind, GATE_LEAVE);
	assert_int_equal(ask_here(KICK, .handle = h, .a0 = 1), -ECONNRESET);
	session_ends();
}

/* The home cancels, it says, and tells of no end: what it was told later is not waited for. */
static void never_ends(void **state)
{
	uint64_t n, m;
	unsigned int i;
	uint32_t h;

	(void)state;
	h = open_at_other();
	n = claims_there(h);
	(void)submit((struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = n });
	answer(o.peer.asked.n - 1, 0);
	assert_false(is_done(n));
	becomes(n, -ETIMEDOUT);
	assert_int_equal(question(o.peer.asked.n - 1).kind, GATE_LEAVE);
	answer(o.peer.asked.n - 1, 0);
	/* a CLOSE that is not wanted any more is not cancelled there */
	h = open_at_other();
	m = submit(REQ(CLOSE, .handle = h));
	(void)submit((struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = m });
	i = o.peer.asked.n;
	answer(i - 1, 0);
	assert_int_equal(o.peer.asked.n, i);
	becomes(m, -ETIMEDOUT);
	answer(o.peer.asked.n - 1, 0);
	/* nor does the end of a session wait for it */
	(void)claims_there(open_at_other());
	rgate_seat_remove(a.seat);
	turn();
	assert_int_equal(question(o.peer.asked.n - 1).kind, GATE_CANCEL);
	answer(o.peer.asked.n - 1, 0);
	session_ends();
}

/* Is the guest still there? That is asked of no request, over each new connection: which one is it */
static unsigned int is_asked(unsigned int i, uint64_t guest_there)
{
	struct gate_question q;

	for (; i < o.peer.asked.n; i++) {
		q = question(i);
		if (q.kind == GATE_CANCEL && q.serial == UINT64_MAX && q.guest == guest_there)
			return i;
	}
	fail();
	return 0;
}

/* It had given the guest up while nothing was heard of this node, whose pause was shorter. */
static void is_given_up(void **state)
{
	uint64_t n, first, there;
	unsigned int i;
	uint32_t h;

	(void)state;
	h = open_at_other();
	there = question(0).guest;
	n = claims_there(h);
	i = o.peer.asked.n;
	other_goes_down();
	other_comes_up(7);
	turn();
	/* it is there */
	answer(is_asked(i, there), 0);
	assert_int_equal(o.peer.asked.n, i + 1);
	assert_false(is_done(n));
	/* so it was when that was asked; the answer is that of then, and may be old */
	other_goes_down();
	other_comes_up(7);
	turn();
	i = o.peer.asked.n;
	other_goes_down();
	other_comes_up(7);
	turn();
	assert_int_equal(o.peer.asked.n, i + 1);
	answer(is_asked(i, there), 0);
	assert_false(is_done(n));
	assert_int_equal(o.peer.asked.n, i + 2);
	answer(i + 1, -ECONNRESET);
	assert_int_equal(result_of(n, NULL), -ECONNRESET);
	assert_int_equal(question(o.peer.asked.n - 1).kind, GATE_LEAVE);
	assert_int_equal(ask_here(KICK, .handle = h, .a0 = 1), -ECONNRESET);
	/* a first request is answered once more as it was */
	first = submit(open_of("far", OTHER, RGATE_QUEUE_CREATE));
	i = o.peer.asked.n;
	other_goes_down();
	other_comes_up(7);
	turn();
	assert_true(question(i - 1).guest > there);
	answer(i - 1, 0);
	answer(is_asked(i, question(i - 1).guest), -ECONNRESET);
	assert_int_equal(result_of(first, NULL), -ECONNRESET);
	session_ends();
}

/* Longer than the home is waited for, and than it is waited with what it is to be told then */
static void stands_still(void)
{
	unsigned int i;

	other_goes_down();
	for (i = 0; i < 8; i++) {
		turn();
		usleep(SILENT_MS * 1000 / 2);
	}
	turn();
}

/* A home that stood still has its guest for ever, if nobody tells it of the end. */
static void goes_on(void **state)
{
	uint64_t first, second;
	unsigned int i;
	uint32_t h;

	(void)state;
	h = open_at_other();
	first = question(0).guest;
	stands_still();
	assert_int_equal(o.peer.asked.n, 1);
	other_comes_up(7);
	turn();
	assert_int_equal(ask_here(KICK, .handle = h, .a0 = 1), -ECONNRESET);
	assert_int_equal(o.peer.asked.n, 2);
	assert_int_equal(question(1).kind, GATE_LEAVE);
	assert_true(question(1).guest == first);
	/* it has not heard that either */
	stands_still();
	assert_int_equal(o.peer.asked.n, 2);
	other_comes_up(7);
	turn();
	assert_int_equal(o.peer.asked.n, 3);
	assert_int_equal(question(2).kind, GATE_LEAVE);
	answer(2, 0);
	(void)open_at_other();
	assert_int_equal(o.peer.asked.n, 4);
	second = question(3).guest;
	/* the session has ended meanwhile */
	other_goes_down();
	session_ends();
	stands_still();
	assert_int_equal(o.peer.asked.n, 4);
	other_comes_up(7);
	turn();
	assert_int_equal(o.peer.asked.n, 5);
	assert_int_equal(question(4).kind, GATE_LEAVE);
	assert_true(question(4).guest == second);
	answer(4, -ECONNRESET);
	/* once it knows it is not told again */
	for (i = 0; i < 2; i++) {
		other_goes_down();
		other_comes_up(7);
		turn();
	}
	assert_int_equal(o.peer.asked.n, 5);
}

/* Another process of the home knows nothing of it; and what is kept for it goes with the daemon. */
static void does_not_go_on(void **state)
{
	(void)state;
	(void)open_at_other();
	stands_still();
	other_comes_up(8);
	turn();
	assert_int_equal(o.peer.asked.n, 1);
	(void)open_at_other();
	stands_still();
	session_ends();
	stands_still();
	other_comes_up(9);
	turn();
	assert_int_equal(o.peer.asked.n, 2);
}

static void is_kept(void **state)
{
	(void)state;
	(void)open_at_other();
	stands_still();
	session_ends();
	stands_still();
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)
#define SILENT(name)	cmocka_unit_test_setup_teardown(name, setup_silent, teardown)

static const struct CMUnitTest tests[] = {
	BED(as_here), BED(largest), BED(not_shown_on), BED(hostile), BED(is_restarted),
	SILENT(is_silent),
	BED(goes_there), BED(no_queue), BED(is_refused), BED(is_lost), SILENT(is_away),
	SILENT(close_goes_on), BED(is_cancelled), BED(is_forgotten), SILENT(never_ends),
	BED(is_given_up), SILENT(goes_on), SILENT(does_not_go_on), SILENT(is_kept),
};

UNIT_MAIN(tests)
