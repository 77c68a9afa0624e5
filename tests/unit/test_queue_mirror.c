// SPDX-License-Identifier: MIT OR GPL-2.0
/* The home of a queue with a mirror: nodes that submit, have copies, and do as they like */
#include "req_asks.h"

#include <errno.h>
#include <string.h>

#include <ringgate/queue.h>

#include "board.h"
#include "gate_service.h"
#include "queue_priv.h"

#define ROOM		65536U		/* where a client has what it is told */
#define ME		1U
#define MS		1000000ULL
#define SECOND		(1000 * MS)
#define PROCESS		0x1234567ULL
#define TAG		7U

#define HERE		0U		/* a client that is nobody's guest: node 1 is the home */
#define CLIENTS		4U

static struct rgate_engine *e;
static struct queue_service *sv;
static struct client c[CLIENTS];	/* a program here, and daemons of nodes 2, 0 and 3 */
static const uint32_t node_of[CLIENTS] = { BOARD_HERE, 2, 0, 3 };
static uint32_t nodes = 4;		/* that there are */
static uint32_t h[CLIENTS];
static uint64_t now;

/* ---- Other nodes ---- */

static struct {
	uint32_t node[32];
	struct rgate_req *r[32];	/* NULL: it has ended */
	unsigned int n;
} asked;
static int mirror_says;			/* who is asked; 1: nothing */

int __wrap_gate_service_find(const struct gate_service *s, uint64_t number, uint32_t *node);
int __wrap_gate_service_whose(struct gate_service *s, const struct rgate_seat *seat,
			      uint32_t *node);
uint64_t __wrap_gate_service_process(const struct gate_service *s);
int __wrap_gate_service_limits(struct gate_service *s, uid_t uid, struct rgate_limits *limits);
int __wrap_gate_caller_new(struct gate_service *s, struct rgate_seat *seat, uint32_t node,
			   struct gate_caller **caller);
void __wrap_gate_caller_leave(struct gate_caller *caller);
bool __wrap_gate_caller_is_lost(const struct gate_caller *caller);
int __wrap_gate_forward(struct gate_caller *caller, struct rgate_req *r, const struct gate_as *as);
int __wrap_gate_forward_cancel(struct gate_service *s, struct rgate_req *r);

int __wrap_gate_service_find(const struct gate_service *s, uint64_t number, uint32_t *node)
{
	(void)s;
	*node = number == 1 || number == RGATE_QUEUE_HERE ? BOARD_HERE : (uint32_t)number;
	return *node == BOARD_HERE || number < nodes ? 0 : -ENXIO;
}

int __wrap_gate_service_whose(struct gate_service *s, const struct rgate_seat *seat, uint32_t *node)
{
	unsigned int i;

	(void)s;
	for (i = 1; i < CLIENTS; i++)
		if (c[i].seat == seat) {
			*node = node_of[i];
			return 0;
		}
	return -ENOENT;
}

uint64_t __wrap_gate_service_process(const struct gate_service *s)
{
	(void)s;
	return PROCESS;
}

int __wrap_gate_service_limits(struct gate_service *s, uid_t uid, struct rgate_limits *limits)
{
	(void)s;
	(void)uid;
	rgate_limits_init(limits);
	return 0;
}

/* A caller is the number of its node, and one. */
int __wrap_gate_caller_new(struct gate_service *s, struct rgate_seat *seat, uint32_t node,
			   struct gate_caller **caller)
{
	(void)s;
	(void)seat;
	*caller = (struct gate_caller *)(uintptr_t)(node + 1);
	return 0;
}

void __wrap_gate_caller_leave(struct gate_caller *caller)
{
	(void)caller;
}

bool __wrap_gate_caller_is_lost(const struct gate_caller *caller)
{
	(void)caller;
	return false;
}

int __wrap_gate_forward(struct gate_caller *caller, struct rgate_req *r, const struct gate_as *as)
{
	(void)as;
	assert_int_equal(rgate_req_get(r)->op, RGATE_REQ_QUEUE_MIRROR);
	assert_true(asked.n < ARRAY_LEN(asked.node));
	asked.node[asked.n] = (uint32_t)((uintptr_t)caller - 1);
	asked.r[asked.n++] = mirror_says > 0 ? r : NULL;
	return mirror_says > 0 ? RGATE_REQ_LATER : mirror_says;
}

int __wrap_gate_forward_cancel(struct gate_service *s, struct rgate_req *r)
{
	unsigned int i;

	(void)s;
	for (i = 0; i < asked.n; i++)
		if (asked.r[i] == r) {
			asked.r[i] = NULL;
			rgate_req_end(r, -ECANCELED, 0);
			return 0;
		}
	return -ENOENT;
}

/* ---- Requests ---- */

static uint64_t clock_now(void)
{
	return now;
}

static void run(void)
{
	bed_run(e);
}

/* The engine looks at its own clock, which stands still. */
static void pass(uint64_t ns)
{
	now += ns;
	(void)queue_requests.tick(sv, now);
	run();
	(void)queue_requests.tick(sv, now);
	run();
}

static uint64_t submit(unsigned int i, struct rgate_request q)
{
	const uint64_t n = req_asks_submit(&c[i], q);

	run();
	return n;
}

static int opens_as(unsigned int i, uint32_t flags)
{
	struct rgate_queue_place place = { .name = "q" };
	uint64_t value;
	int result;

	memcpy(c[i].mem, &place, sizeof(place));
	h[i] = 0;
	result = ask_value(i, &value, OPEN, .a0 = RGATE_QUEUE_HERE,
			   .a1 = RGATE_QUEUE_OPEN_A1(ME, flags), .len = sizeof(place));
	h[i] = (uint32_t)value;
	return result;
}

static void opens(unsigned int i, uint32_t flags)
{
	assert_int_equal(opens_as(i, flags), 0);
}

static struct rgate_queue_info info(void)
{
	struct rgate_queue_info in;

	assert_int_equal(ask(HERE, STATE, .off = ROOM, .len = sizeof(in)), 0);
	memcpy(&in, c[HERE].mem + ROOM, sizeof(in));
	return in;
}

static int setup(void **state)
{
	const struct queue_opts qo = RGATE_OPTS(queue_opts, .clock = clock_now,
						.gate = (struct gate_service *)&asked);
	struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = ME, .requests = 64,
					      .completions = 64, .memory = 2 * ROOM + 4096);
	unsigned int i;

	(void)state;
	now = SECOND;
	nodes = 4;
	memset(&asked, 0, sizeof(asked));
	memset(c, 0, sizeof(c));
	mirror_says = 0;
	e = bed_engine();
	req_asks_begin(e);
	assert_int_equal(queue_service_create(&sv, &qo), 0);
	assert_int_equal(queue_service_add(sv, e), 0);
	for (i = 0; i < CLIENTS; i++) {
		assert_int_equal(client_open(&c[i], e, &o), 0);
		run();
		opens(i, i ? 0 : RGATE_QUEUE_CREATE | RGATE_QUEUE_MIRROR);
	}
	return 0;
}

static int teardown(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < CLIENTS; i++)
		if (c[i].seat)
			rgate_seat_remove(c[i].seat);
	run();
	rgate_engine_destroy(e);
	queue_service_destroy(sv);
	for (i = 0; i < CLIENTS; i++)
		client_close(&c[i]);
	return 0;
}

/* One task of each letter */
static uint64_t puts_some(unsigned int i, const char *letters)
{
	unsigned char *to = c[i].mem;
	struct rgate_queue_put put = { .len = 1 };

	for (; *letters; letters++, to += sizeof(put) + 8) {
		memset(to, 0, sizeof(put) + 8);
		memcpy(to, &put, sizeof(put));
		to[sizeof(put)] = (unsigned char)*letters;
	}
	return later(i, SUBMIT, .a1 = RGATE_SUBMIT_A1(i ? TAG : 0, 0),
		     .len = (uint32_t)(to - c[i].mem));
}

/* Claims the next one, and is done with it */
static uint64_t completes(void)
{
	struct rgate_queue_task t;

	assert_true(ask(HERE, CLAIM, .a1 = RGATE_CLAIM_A1(1, RGATE_CLAIM_NOW), .off = ROOM,
			.len = 4096) > 0);
	memcpy(&t, c[HERE].mem + ROOM, sizeof(t));
	assert_int_equal(ask(HERE, COMPLETE, .a0 = t.id, .a1 = t.claim), 0);
	return t.id;
}

static uint64_t kept_unmirrored(void)
{
	struct queue_kept_stats st = { .sz = sizeof(st) };

	assert_int_equal(queue_service_kept(sv, &st), 0);
	return st.unmirrored;
}

/* ---- Who has copies ---- */

static struct copies {
	struct rgate_queue_copies head;
	uint64_t ends[64];
	struct rgate_queue_copy copy[64];
	char letters[65];
} got;

static uint64_t asks_as(unsigned int i, uint64_t after, uint64_t next, uint32_t flags, uint64_t a1)
{
	const struct rgate_queue_copies head = { .after = after, .next = next, .flags = flags };

	memcpy(c[i].mem + ROOM, &head, sizeof(head));
	return later(i, COPIES, .off = ROOM, .len = RGATE_QUEUE_PART_MAX, .a1 = a1);
}

static uint64_t asks(unsigned int i, uint64_t after, uint64_t next)
{
	return asks_as(i, after, next, 0, 0);
}

/* What that has come to */
static void gets(unsigned int i, uint64_t n)
{
	const unsigned char *mem = c[i].mem + ROOM;
	const int len = result_of(i, n, NULL);
	uint32_t off = sizeof(got.head), k;

	memset(&got, 0, sizeof(got));
	assert_true(len >= (int)sizeof(got.head));
	memcpy(&got.head, mem, sizeof(got.head));
	assert_true(got.head.ends <= 64 && got.head.copies <= 64);
	assert_true(got.head.process == PROCESS);
	memcpy(got.ends, mem + off, got.head.ends * 8);
	off += got.head.ends * 8;
	for (k = 0; k < got.head.copies; k++) {
		memcpy(&got.copy[k], mem + off, sizeof(got.copy[k]));
		got.letters[k] = (char)mem[off + sizeof(got.copy[k])];
		off += (uint32_t)(sizeof(got.copy[k]) + RGATE_QUEUE_PADDED(got.copy[k].put.len));
	}
	assert_int_equal(off, len);
}

/* He begins with nothing, and has what there is. */
static void attaches(unsigned int i)
{
	gets(i, asks(i, 0, 0));
}

static void each_has_a_copy(void **state)
{
	uint64_t n, m, at;

	(void)state;
	attaches(2);
	assert_int_equal(got.head.copies, 0);
	m = asks(2, got.head.after, got.head.next);
	assert_false(is_done(2, m));
	n = puts_some(1, "ab");
	gets(2, m);
	assert_string_equal(got.letters, "ab");
	assert_int_equal(got.copy[1].id, 2);
	assert_int_equal(got.copy[1].tag, TAG);
	assert_true(got.copy[1].origin.process == PROCESS);
	assert_int_equal(RGATE_SUBMIT_FIRST(got.copy[1].origin.word), 2);
	/* what was sent is not there yet */
	assert_false(is_done(1, n));
	/* meanwhile others come: they go together, also those of the home's own */
	(void)puts_some(1, "c");
	at = puts_some(0, "de");
	m = asks(2, got.head.after, got.head.next);
	assert_int_equal(result_of(1, n, NULL), 2);
	assert_false(is_done(0, at));
	gets(2, m);
	assert_string_equal(got.letters, "cde");
	assert_int_equal(got.copy[2].tag, 0);
	m = asks(2, got.head.after, got.head.next);
	assert_int_equal(result_of(0, at, NULL), 2);
	/* what ends is told */
	assert_int_equal(completes(), 1);
	gets(2, m);
	assert_int_equal(got.head.ends, 1);
	assert_int_equal(got.ends[0], 1);
	assert_int_equal(got.head.copies, 0);
	assert_int_equal(info().mirror, 1);
	assert_int_equal(info().flags & RGATE_QUEUE_NO_JOURNAL, RGATE_QUEUE_NO_JOURNAL);
	assert_int_equal(kept_unmirrored(), 0);
}

/* Nobody has a copy in time: later ones do not wait, until he has all that there is. */
static void is_late(void **state)
{
	uint64_t n;

	(void)state;
	n = puts_some(1, "ab");
	pass(2 * SECOND - 50 * MS);
	assert_false(is_done(1, n));
	pass(50 * MS);
	assert_int_equal(result_of(1, n, NULL), 2);
	assert_int_equal(info().mirror, RGATE_MIRROR_LATE | 2U << 16);
	assert_int_equal(result_of(1, puts_some(1, "c"), NULL), 1);
	assert_int_equal(RGATE_MIRROR_MISSED(info().mirror), 3);
	assert_int_equal(kept_unmirrored(), 3);
	attaches(2);
	assert_string_equal(got.letters, "abc");
	assert_int_equal(info().mirror & 0xffff, RGATE_MIRROR_LATE | 1);
	(void)asks(2, got.head.after, got.head.next);
	assert_int_equal(info().mirror & 0xffff, 1);
	n = puts_some(1, "d");
	assert_false(is_done(1, n));
}

/* What waits for him who goes waits for the next one, who has nothing. */
static void goes_and_returns(void **state)
{
	uint64_t n;

	(void)state;
	attaches(2);
	(void)puts_some(1, "ab");
	gets(2, asks(2, got.head.after, got.head.next));
	n = puts_some(1, "c");
	rgate_seat_remove(c[2].seat);
	c[2].seat = NULL;
	run();
	assert_false(is_done(1, n));
	assert_int_equal(info().mirror, 0);
	/* of what has ended there is no copy, nor of what is buried */
	assert_int_equal(completes(), 1);
	attaches(3);
	assert_string_equal(got.letters, "bc");
	assert_int_equal(got.head.ends, 0);
	(void)asks(3, got.head.after, got.head.next);
	assert_int_equal(result_of(1, n, NULL), 1);
	assert_int_equal(info().mirror, 4);
	/* who does not know how far he was has it all once more */
	gets(3, asks_as(3, 1, 1, 0, RGATE_COPIES_NOW));
	assert_string_equal(got.letters, "bc");
	assert_int_equal(kept_unmirrored(), 0);
}

/* It is the home's alone: who follows has been told that it has ended. */
static void is_buried(void **state)
{
	struct rgate_queue_task t;
	uint64_t n;

	(void)state;
	attaches(2);
	n = puts_some(1, "ab");
	assert_true(ask(HERE, CLAIM, .a1 = RGATE_CLAIM_A1(1, RGATE_CLAIM_NOW), .off = ROOM,
			.len = 4096) > 0);
	memcpy(&t, c[HERE].mem + ROOM, sizeof(t));
	assert_int_equal(ask(HERE, BURY, .a0 = t.id, .a1 = t.claim), 0);
	gets(2, asks(2, got.head.after, got.head.next));
	assert_string_equal(got.letters, "b");
	assert_int_equal(got.head.ends, 1);
	(void)asks(2, got.head.after, got.head.next);
	assert_int_equal(result_of(1, n, NULL), 2);
	assert_int_equal(info().now[RGATE_TASK_BURIED], 1);
}

static void has_no_room(void **state)
{
	uint64_t n;

	(void)state;
	attaches(2);
	(void)asks(2, got.head.after, got.head.next);
	n = puts_some(1, "ab");
	assert_false(is_done(1, n));
	gets(2, asks(2, 0, 1));
	assert_string_equal(got.letters, "ab");
	gets(2, asks_as(2, got.head.after, got.head.next, RGATE_COPIES_FULL, RGATE_COPIES_NOW));
	assert_int_equal(result_of(1, n, NULL), 2);
	assert_int_equal(info().mirror, 1 | RGATE_MIRROR_LATE | 2U << 16);
	/* what comes then does not wait, and is sent nonetheless */
	assert_int_equal(result_of(1, puts_some(1, "c"), NULL), 1);
	gets(2, asks(2, 0, got.head.next));
	assert_string_equal(got.letters, "abc");
	(void)asks(2, got.head.after, got.head.next);
	assert_int_equal(info().mirror, 1 | 3U << 16);
}

/* What the node submits that has copies goes to another one. */
static void its_own(void **state)
{
	uint64_t n, m;

	(void)state;
	attaches(2);
	m = asks(2, got.head.after, got.head.next);
	n = puts_some(2, "a");
	assert_false(is_done(2, n));
	assert_false(is_done(2, m));
	/* node 2 comes behind the home, but the tasks' own may not be it */
	pass(0);
	assert_int_equal(asked.n, 1);
	assert_int_equal(asked.node[0], 2);
	attaches(1);
	assert_string_equal(got.letters, "a");
	m = asks(1, got.head.after, got.head.next);
	assert_int_equal(result_of(2, n, NULL), 1);
	assert_int_equal(info().mirror, 1 | 3U << 4);
	/* nobody else is one */
	assert_int_equal(result_of(3, asks(3, 0, 0), NULL), -EBUSY);
	/* the first one goes: the second one has the rest, too */
	rgate_seat_remove(c[2].seat);
	c[2].seat = NULL;
	run();
	assert_int_equal(info().mirror, 3);
	/* all of it, once more */
	gets(1, m);
	assert_string_equal(got.letters, "a");
	n = puts_some(0, "b");
	gets(1, asks(1, got.head.after, got.head.next));
	assert_string_equal(got.letters, "b");
	(void)asks(1, got.head.after, got.head.next);
	assert_int_equal(result_of(0, n, NULL), 1);
}

/* ---- Who is asked ---- */

static void who_is_asked(void **state)
{
	uint64_t n;

	(void)state;
	mirror_says = -EACCES;
	(void)puts_some(1, "a");
	pass(0);
	assert_int_equal(asked.n, 1);
	/* behind the home, but not who has submitted it: 3, then 0, and then these again */
	assert_int_equal(asked.node[0], 3);
	pass(20 * MS);
	assert_int_equal(asked.n, 2);
	assert_int_equal(asked.node[1], 0);
	mirror_says = 1;
	pass(20 * MS);
	assert_int_equal(asked.n, 2);
	pass(SECOND);
	/* its session may have ended */
	pass(20 * MS);
	assert_int_equal(asked.n, 3);
	assert_int_equal(asked.node[2], 3);
	/* nothing is asked while that one is */
	pass(SECOND);
	assert_int_equal(asked.n, 3);
	/* it says that it will, and does not: the next one */
	rgate_req_end(asked.r[2], 0, 0);
	asked.r[2] = NULL;
	pass(0);
	pass(SECOND / 2);
	assert_int_equal(asked.n, 3);
	pass(SECOND);
	pass(20 * MS);
	assert_int_equal(asked.n, 4);
	assert_int_equal(asked.node[3], 0);
	attaches(2);
	pass(10 * SECOND);
	assert_int_equal(asked.n, 4);
	/* it goes: others are asked at once */
	mirror_says = 0;
	rgate_req_end(asked.r[3], 0, 0);
	asked.r[3] = NULL;
	pass(0);
	n = asks(2, got.head.after, got.head.next);
	assert_false(is_done(2, n));
	rgate_seat_remove(c[2].seat);
	c[2].seat = NULL;
	run();
	pass(20 * MS);
	pass(20 * MS);
	assert_true(asked.n > 4);
}

static void too_few_nodes(void **state)
{
	(void)state;
	nodes = 2;
	assert_int_equal(opens_as(3, RGATE_QUEUE_CREATE | RGATE_QUEUE_MIRROR), -ENONET);
	nodes = 3;
	assert_int_equal(opens_as(3, RGATE_QUEUE_CREATE | RGATE_QUEUE_MIRROR), 0);
	/* copies are with others in one name alone */
	assert_int_equal(opens_as(3, RGATE_QUEUE_CREATE | RGATE_QUEUE_MIRROR | RGATE_QUEUE_SUBMIT),
			 -EINVAL);
}

/* ---- They come again ---- */

static const struct rgate_queue_origin old = { .process = 99, .word = 3ULL << 40 | 10 };

/* One of each letter, which had numbers from @word on */
static uint64_t again(unsigned int i, uint64_t process, uint64_t word, const char *letters)
{
	unsigned char *to = c[i].mem;
	struct rgate_queue_copy copy = { .tag = TAG, .put = { .len = 1 } };

	for (; *letters; letters++, to += sizeof(copy) + 8, word++) {
		memset(to, 0, sizeof(copy) + 8);
		copy.origin = (struct rgate_queue_origin){ .process = process, .word = word };
		memcpy(to, &copy, sizeof(copy));
		to[sizeof(copy)] = (unsigned char)*letters;
	}
	return later(i, AGAIN, .len = (uint32_t)(to - c[i].mem));
}

static void comes_twice(void **state)
{
	uint64_t value, queue;

	(void)state;
	assert_int_equal(result_of(1, again(1, old.process, old.word, "abc"), &value), 3);
	assert_int_equal(RGATE_SUBMIT_FIRST(value), 1);
	queue = RGATE_SUBMIT_QUEUE(value);
	/* by the other one, with one that only he has: these have other numbers than the next */
	assert_int_equal(result_of(2, again(2, old.process, old.word + 1, "bcd"), &value), 3);
	assert_int_equal(RGATE_SUBMIT_FIRST(value), 2);
	assert_int_equal(result_of(2, again(2, old.process, old.word - 1, "xab"), &value), 1);
	assert_int_equal(RGATE_SUBMIT_FIRST(value), 5);
	assert_int_equal(result_of(2, again(2, old.process, old.word, "ab"), &value), 2);
	assert_int_equal(RGATE_SUBMIT_FIRST(value), 1);
	/* what has ended was there nonetheless */
	assert_int_equal(completes(), 1);
	assert_int_equal(result_of(2, again(2, old.process, old.word, "a"), &value), 1);
	assert_int_equal(RGATE_SUBMIT_FIRST(value), 1);
	assert_int_equal(info().submitted, 5);
	/* of another process, or another queue, it is another one */
	assert_int_equal(result_of(2, again(2, 98, old.word, "y"), &value), 1);
	assert_int_equal(RGATE_SUBMIT_FIRST(value), 6);
	assert_int_equal(result_of(2, again(2, old.process, 4ULL << 40 | 10, "z"), &value), 1);
	assert_int_equal(RGATE_SUBMIT_FIRST(value), 7);
	/* and of this one it is there */
	assert_int_equal(result_of(2, again(2, PROCESS, queue << 40 | 7, "z"), &value), 1);
	assert_int_equal(RGATE_SUBMIT_FIRST(value), 7);
	assert_int_equal(info().submitted, 7);
	/* copies of them are known by what they were first */
	attaches(3);
	assert_string_equal(got.letters, "bcdxyz");
	assert_true(got.copy[0].origin.process == old.process);
	assert_true(got.copy[0].origin.word == old.word + 1);
}

/* Many: a table grows, and is given back */
static void many_again(void **state)
{
	char letters[65] = { 0 };
	uint64_t value;
	unsigned int i;

	(void)state;
	memset(letters, 'm', 64);
	for (i = 0; i < 10; i++)
		assert_int_equal(result_of(1, again(1, 5, 1 + 64ULL * i, letters), NULL), 64);
	for (i = 10; i--;) {
		assert_int_equal(result_of(2, again(2, 5, 1 + 64ULL * i, letters), &value), 64);
		assert_int_equal(RGATE_SUBMIT_FIRST(value), 1 + 64 * i);
	}
	assert_int_equal(info().submitted, 640);
}

/* A task that who has copies has submitted again is his to hear of, too. */
static void its_own_again(void **state)
{
	uint64_t m;

	(void)state;
	attaches(2);
	assert_int_equal(result_of(2, again(2, old.process, old.word, "a"), NULL), 1);
	m = asks(2, got.head.after, got.head.next);
	assert_false(is_done(2, m));
	assert_int_equal(completes(), 1);
	gets(2, m);
	assert_int_equal(got.head.ends, 1);
	/* but not of one that he has submitted himself */
	m = asks(2, got.head.after, got.head.next);
	(void)puts_some(2, "b");
	assert_int_equal(completes(), 2);
	assert_false(is_done(2, m));
}

/* ---- Whatever they like ---- */

static void nonsense(void **state)
{
	struct rgate_queue_copy copy = { .origin = old, .put = { .len = 1 } };

	(void)state;
	/* no program of this node */
	assert_int_equal(result_of(0, asks(0, 0, 0), NULL), -EINVAL);
	assert_int_equal(result_of(0, again(0, 1, 1, "a"), NULL), -EINVAL);
	/* sizes, flags */
	assert_int_equal(ask(2, COPIES, .len = 40), -EINVAL);
	assert_int_equal(ask(2, COPIES, .len = RGATE_QUEUE_PART_MAX, .a1 = 2), -EINVAL);
	assert_int_equal(result_of(2, asks_as(2, 0, 0, 1, 0), NULL), -EINVAL);
	assert_int_equal(ask(2, AGAIN, .len = 47), -EINVAL);
	assert_int_equal(ask(2, AGAIN, .len = RGATE_QUEUE_PART_MAX + 1), -EINVAL);
#define REFUSED() \
	do { \
		memcpy(c[2].mem, &copy, sizeof(copy)); \
		assert_int_equal(ask(2, AGAIN, .len = 56), -EINVAL); \
		copy = (struct rgate_queue_copy){ .origin = old, .put = { .len = 1 } }; \
	} while (0)
	copy.put.len = 9;
	REFUSED();
	copy.put.len = 0xffffffff;
	REFUSED();
	copy.put.type = 64;
	REFUSED();
	copy.id = 1;
	REFUSED();
	copy.reserved = 1;
	REFUSED();
	copy.origin.process = 0;
	REFUSED();
	copy.origin.word = 1ULL << 40;
	REFUSED();
	/* a place that there has not been, as another queue's */
	attaches(2);
	gets(2, asks_as(2, ~0ULL, ~0ULL, 0, RGATE_COPIES_NOW));
	assert_int_equal(got.head.flags, RGATE_ENDS_MISSED);
	assert_int_equal(info().submitted, 0);
	/* and of a queue without a mirror there are no copies */
	assert_int_equal(ask(HERE, REMOVE), 0);
	assert_int_equal(ask(HERE, CLOSE), 0);
	opens(0, RGATE_QUEUE_CREATE);
	assert_int_equal(ask(2, CLOSE), 0);
	opens(2, 0);
	assert_int_equal(result_of(2, asks(2, 0, 0), NULL), -EINVAL);
	assert_int_equal(result_of(2, again(2, 1, 1, "a"), NULL), -EINVAL);
}

/* ---- It ends ---- */

/* It does not stay for who has copies of nothing. */
static void nobody_needs_it(void **state)
{
	uint64_t m;

	(void)state;
	attaches(2);
	m = asks(2, got.head.after, got.head.next);
	assert_int_equal(info().handles, 3);
	assert_int_equal(ask(3, CLOSE), 0);
	assert_int_equal(ask(1, CLOSE), 0);
	assert_int_equal(ask(0, CLOSE), 0);
	assert_int_equal(result_of(2, m, NULL), -ESTALE);
	assert_int_equal(opens_as(3, 0), -ENOENT);
	assert_int_equal(ask(2, CLOSE), 0);
}

/* Who waits for copies is told that it was taken, whatever ends first. */
static void ends_meanwhile(void **state)
{
	uint64_t n;

	(void)state;
	/* all of it is done before anybody has a copy, and then there is nothing to copy */
	attaches(2);
	n = puts_some(1, "a");
	assert_false(is_done(1, n));
	assert_int_equal(completes(), 1);
	assert_int_equal(result_of(1, n, NULL), 1);
	/* it is cancelled: it was done */
	n = puts_some(1, "b");
	client_submit(&c[1], (struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = n,
						     .cookie = req_asks_next() });
	assert_int_equal(result_of(1, n, NULL), 1);
	assert_int_equal(kept_unmirrored(), 1);
	/* its queue is removed */
	n = puts_some(1, "c");
	assert_false(is_done(1, n));
	assert_int_equal(ask(HERE, REMOVE), 0);
	assert_int_equal(result_of(1, n, NULL), 1);
}

/* Its session ends, and then the daemon does. */
static void is_left(void **state)
{
	uint64_t n;

	(void)state;
	n = puts_some(1, "a");
	assert_false(is_done(1, n));
	rgate_seat_remove(c[1].seat);
	c[1].seat = NULL;
	run();
	assert_int_equal(c[1].over, 1);
	n = puts_some(0, "b");
	assert_false(is_done(0, n));
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	BED(each_has_a_copy), BED(is_late), BED(goes_and_returns), BED(is_buried),
	BED(has_no_room), BED(its_own),
	BED(who_is_asked), BED(too_few_nodes), BED(comes_twice), BED(many_again),
	BED(its_own_again), BED(nonsense), BED(nobody_needs_it), BED(ends_meanwhile), BED(is_left),
};

UNIT_MAIN(tests)
