// SPDX-License-Identifier: MIT OR GPL-2.0
/* Calls over a wire that keeps, loses and delays what it is told to. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "container.h"

#define WIRE	64

static unsigned char memory[CALL_PLACES * CALL_MSG_MAX];
static const struct rgate_buf mem = { .addr = memory };

/* What is on its way: numbers of questions, in their order */
static struct {
	uint64_t ticket, done;	/* given; the messages up to it have left */
	bool dead;		/* what has not left never will */
	bool full;
	uint32_t epoch;		/* posts to another one fail */
	uint64_t question[WIRE];
	unsigned int n;
} wire;

int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket);
int __wrap_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket);
int __wrap_rgate_peer_settle(struct rgate_peer *peer, uint64_t ticket, int timeout_ms);
int __wrap_rgate_pool_alloc(struct rgate_pool *pool, size_t len, const struct rgate_buf **buf);
int __wrap_rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *buf);

int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket)
{
	(void)peer;
	assert_int_equal(n, 1);
	assert_int_equal(ops->kind, RGATE_OP_SEND);
	assert_int_equal(ops->sge->length, sizeof(uint64_t));
	if (ops->epoch != wire.epoch)
		return -ENOTCONN;
	if (wire.full || wire.n == WIRE)
		return -EAGAIN;
	memcpy(&wire.question[wire.n++], ops->sge->addr, sizeof(uint64_t));
	*ticket = ++wire.ticket;
	return 0;
}

int __wrap_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket)
{
	(void)peer;
	if (ticket <= wire.done)
		return 1;
	return wire.dead ? -ECONNRESET : 0;
}

/* Calls wait for nothing. */
int __wrap_rgate_peer_settle(struct rgate_peer *peer, uint64_t ticket, int timeout_ms)
{
	(void)peer;
	(void)ticket;
	(void)timeout_ms;
	fail();
	return 0;
}

int __wrap_rgate_pool_alloc(struct rgate_pool *pool, size_t len, const struct rgate_buf **buf)
{
	(void)pool;
	assert_int_equal(len, sizeof(memory));
	*buf = &mem;
	return 0;
}

int __wrap_rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *buf)
{
	(void)pool;
	assert_ptr_equal(buf, &mem);
	return 0;
}

struct asked {
	struct call call;
	bool left;
	unsigned int over;	/* times */
	int err;
	uint64_t answer;
};

static struct session session;
static struct xfer_list xfers;
static struct call_client cc;
static struct call_server cs;

static int setup(void **state)
{
	(void)state;
	memset(&wire, 0, sizeof(wire));
	memset(&cs, 0, sizeof(cs));
	session = (struct session){ .up = true, .epoch = 1 };
	wire.epoch = 1;
	xfer_list_init(&xfers, NULL);
	return call_client_init(&cc, &session, &xfers, NULL);
}

static int teardown(void **state)
{
	(void)state;
	xfer_ground(&xfers, -ENOTCONN);
	call_client_fini(&cc);
	return 0;
}

static void over(struct call *c, int err, const void *answer, size_t len)
{
	struct asked *a = container_of(c, struct asked, call);

	a->over++;
	a->err = err;
	if (err)
		return;
	assert_int_equal(len, sizeof(a->answer));
	memcpy(&a->answer, answer, sizeof(a->answer));
}

static int open_one(struct asked *a)
{
	memset(a, 0, sizeof(*a));
	return call_open(&cc, &a->call);
}

static void ask(struct asked *a, bool repeat)
{
	assert_int_equal(open_one(a), 0);
	memcpy(a->call.msg, &a->call.number, sizeof(a->call.number));
	call_ask(&a->call, sizeof(a->call.number), repeat, over);
}

static void leave(struct asked *a)
{
	a->left = true;
	call_leave(&a->call, over);
}

/* The next question to the server */
static uint64_t taken(void)
{
	uint64_t number;

	assert_true(wire.n > 0);
	number = wire.question[0];
	memmove(wire.question, wire.question + 1, --wire.n * sizeof(number));
	return number;
}

static enum call_asked serve(uint64_t number, const void **kept)
{
	size_t len = 99;
	enum call_asked how = call_take(&cs, number, kept, &len);

	if (how == CALL_AGAIN)
		assert_int_equal(len, *kept ? sizeof(uint64_t) : 0);
	return how;
}

static uint64_t answer_to(uint64_t number)
{
	return number * 1000 + 7;
}

static bool say(uint64_t number, uint64_t answer)
{
	return call_answer(&cc, number, &answer, sizeof(answer));
}

static void all_left(void)
{
	wire.done = wire.ticket;
	(void)xfer_reap(&xfers);
}

static void goes_down(void)
{
	wire.dead = true;
	wire.n = 0;
	session.up = false;
	(void)xfer_reap(&xfers);
	call_down(&cc);
}

static void comes_up(void)
{
	wire.dead = false;
	wire.done = wire.ticket;
	wire.epoch = ++session.epoch;
	session.up = true;
}

static void asked_once(void **state)
{
	const void *kept;
	static struct asked a;
	uint64_t n;

	(void)state;
	assert_true(call_idle(&cc));
	ask(&a, false);
	assert_false(call_idle(&cc));
	assert_int_equal(wire.n, 0);
	assert_false(call_send(&cc));
	assert_false(call_send(&cc));
	assert_int_equal(wire.n, 1);
	n = taken();
	assert_int_equal(n, a.call.number);
	assert_int_equal(serve(n, &kept), CALL_FIRST);
	assert_false(say(n + CALL_PLACES, 1));
	assert_false(say(n + 1, 1));
	assert_false(say(0, 1));
	assert_int_equal(a.over, 0);
	assert_true(say(n, 5));
	assert_false(say(n, 6));
	assert_int_equal(a.over, 1);
	assert_int_equal(a.err, 0);
	assert_int_equal(a.answer, 5);
	/* The message may still be read. */
	assert_false(call_idle(&cc));
	all_left();
	assert_true(call_idle(&cc));
}

static void places(void **state)
{
	static struct asked a[CALL_PLACES], more;
	const void *kept;
	unsigned int i;

	(void)state;
	for (i = 0; i < CALL_PLACES; i++)
		ask(&a[i], false);
	assert_int_equal(open_one(&more), -EAGAIN);
	assert_false(call_send(&cc));
	for (i = 0; i < CALL_PLACES; i++)
		assert_int_equal(serve(taken(), &kept), CALL_FIRST);
	assert_true(say(a[3].call.number, 1));
	/* Its memory is not free before its message has left. */
	assert_int_equal(open_one(&more), -EAGAIN);
	all_left();
	ask(&more, false);
	assert_int_equal(more.call.number % CALL_PLACES, a[3].call.number % CALL_PLACES);
	assert_true(more.call.number > a[3].call.number);
	assert_ptr_equal(more.call.msg, a[3].call.msg);
	assert_false(say(a[3].call.number, 1));
	/* not asked yet */
	assert_false(say(more.call.number, 1));
	assert_int_equal(a[3].over, 1);
	assert_false(call_send(&cc));
	assert_int_equal(serve(taken(), &kept), CALL_FIRST);
	assert_int_equal(serve(a[3].call.number, &kept), CALL_OLD);
	assert_true(say(more.call.number, 2));
}

/* The connection goes with the answer: it is not carried out twice. */
static void answer_lost(void **state)
{
	const uint64_t answer = 11;
	const void *kept = NULL;
	static struct asked a;
	uint64_t n;

	(void)state;
	ask(&a, false);
	assert_false(call_send(&cc));
	n = taken();
	assert_int_equal(serve(n, &kept), CALL_FIRST);
	goes_down();
	assert_false(call_send(&cc));
	/* Over that connection nothing comes any more. */
	assert_false(say(n, 3));
	comes_up();
	assert_false(call_send(&cc));
	assert_int_equal(wire.n, 1);
	/* It is not done yet: who has it in hand answers when it is. */
	assert_int_equal(serve(n, &kept), CALL_AGAIN);
	assert_null(kept);
	call_keep(&cs, n, &answer, sizeof(answer));
	assert_int_equal(serve(taken(), &kept), CALL_AGAIN);
	assert_memory_equal(kept, &answer, sizeof(answer));
	assert_int_equal(a.over, 0);
	assert_true(say(n, answer));
	assert_int_equal(a.answer, answer);
}

static void question_lost(void **state)
{
	const void *kept;
	static struct asked a;

	(void)state;
	session.up = false;
	ask(&a, false);
	assert_false(call_send(&cc));
	assert_int_equal(wire.n, 0);
	comes_up();
	wire.full = true;
	assert_true(call_send(&cc));
	wire.full = false;
	assert_false(call_send(&cc));
	goes_down();
	comes_up();
	assert_false(call_send(&cc));
	assert_int_equal(serve(taken(), &kept), CALL_FIRST);
	assert_true(say(a.call.number, 1));
	assert_int_equal(a.err, 0);
}

/* Who does not wait keeps the place, and the memory it lent, until no answer can come. */
static void left_alone(void **state)
{
	const void *kept;
	static struct asked a, b, c;

	(void)state;
	ask(&a, true);
	leave(&a);
	assert_int_equal(a.over, 1);
	assert_int_equal(a.err, -ECANCELED);
	ask(&a, true);
	ask(&b, true);
	assert_false(call_send(&cc));
	assert_int_equal(serve(taken(), &kept), CALL_FIRST);
	leave(&a);
	leave(&b);
	assert_int_equal(a.over + b.over, 0);
	assert_true(say(a.call.number, 9));
	assert_int_equal(a.over, 1);
	assert_int_equal(a.err, 0);
	goes_down();
	assert_int_equal(b.over, 1);
	assert_int_equal(b.err, -ECANCELED);
	assert_true(call_idle(&cc));
	comes_up();
	assert_false(call_send(&cc));
	assert_int_equal(wire.n, 0);
	/* Its place is another's now. */
	do {
		ask(&c, false);
	} while (c.call.number % CALL_PLACES != b.call.number % CALL_PLACES);
	assert_false(call_send(&cc));
	assert_false(say(b.call.number, 1));
	assert_int_equal(b.over, 1);
}

static void another_process(void **state)
{
	static struct asked once, twice, waits;
	unsigned int i;

	(void)state;
	ask(&waits, false);
	ask(&once, false);
	ask(&twice, true);
	assert_false(call_send(&cc));
	/* One that was not asked yet, in the place of one that was */
	assert_true(say(taken(), 1));
	wire.n = 0;
	all_left();
	ask(&waits, false);
	assert_int_equal(waits.call.number % CALL_PLACES, 0);
	goes_down();
	call_other(&cc);
	memset(&cs, 0, sizeof(cs));
	assert_int_equal(once.over, 1);
	assert_int_equal(once.err, -ECONNRESET);
	assert_int_equal(twice.over + waits.over, 0);
	comes_up();
	assert_false(call_send(&cc));
	assert_int_equal(wire.n, 2);
	for (i = 0; i < 2; i++)
		assert_true(say(taken(), 1));
	assert_int_equal(twice.over + waits.over, 2);
}

static void given_up(void **state)
{
	static struct asked a, b, empty;

	(void)state;
	ask(&empty, false);
	ask(&a, false);
	ask(&b, false);
	assert_false(call_send(&cc));
	all_left();
	/* In a place that had a message: there is none yet. */
	assert_true(say(taken(), 1));
	assert_int_equal(open_one(&empty), 0);
	assert_false(call_send(&cc));
	assert_int_equal(wire.n, 2);
	call_client_fini(&cc);
	assert_int_equal(a.err, -ECANCELED);
	assert_int_equal(b.err, -ECANCELED);
	assert_int_equal(a.over + b.over, 2);
	assert_int_equal(call_client_init(&cc, &session, &xfers, NULL), 0);
	/* Numbers grow in the next one, too: it is the same process. */
	ask(&a, false);
	assert_true(a.call.number / CALL_PLACES > b.call.number / CALL_PLACES);
}

static void kept_answers(void **state)
{
	const uint64_t n = 5 * CALL_PLACES + 2, answer = 1, later = 2;
	static const uint8_t long_one[CALL_MSG_MAX + 1];
	const void *kept;

	(void)state;
	assert_int_equal(serve(n, &kept), CALL_FIRST);
	assert_int_equal(serve(n - CALL_PLACES, &kept), CALL_OLD);
	/* another place */
	assert_int_equal(serve(n - CALL_PLACES + 1, &kept), CALL_FIRST);
	call_keep(&cs, n, long_one, sizeof(long_one));
	assert_int_equal(serve(n, &kept), CALL_AGAIN);
	assert_null(kept);
	call_keep(&cs, n, &later, sizeof(later));
	assert_int_equal(serve(n + CALL_PLACES, &kept), CALL_FIRST);
	call_keep(&cs, n, &answer, sizeof(answer));
	assert_int_equal(serve(n + CALL_PLACES, &kept), CALL_AGAIN);
	assert_null(kept);
	call_keep(&cs, n + CALL_PLACES, &later, sizeof(later));
	assert_int_equal(serve(n + CALL_PLACES, &kept), CALL_AGAIN);
	assert_memory_equal(kept, &later, sizeof(later));
	assert_int_equal(serve(UINT64_MAX, &kept), CALL_FIRST);
	assert_int_equal(serve(UINT64_MAX, &kept), CALL_AGAIN);
	assert_int_equal(serve(0, &kept), CALL_AGAIN);
	assert_null(kept);
}

#define CALLS	4000
#define PENDING	24

/* The server's side of the random run: what it has in hand, and has said */
static struct {
	uint64_t pending[PENDING], said[WIRE];
	unsigned int npending, nsaid;
	unsigned char *carried;		/* times, by number */
	uint64_t least;
} server;

static void one_question(void)
{
	const void *kept;
	uint64_t n;

	if (!wire.n || server.npending == PENDING || server.nsaid == WIRE)
		return;
	n = taken();
	switch (serve(n, &kept)) {
	case CALL_FIRST:
		assert_in_range(n - server.least, 0, 2ULL * CALLS * CALL_PLACES - 1);
		server.carried[n - server.least]++;
		server.pending[server.npending++] = n;
		break;
	case CALL_AGAIN:
		if (kept)
			server.said[server.nsaid++] = n;
		break;
	default:
		break;
	}
}

/* Any of those in hand is done. */
static void one_done(uint64_t *seed)
{
	uint64_t n, answer;
	unsigned int i;

	if (!server.npending || server.nsaid == WIRE)
		return;
	i = (unsigned int)(unit_random(seed) % server.npending);
	n = server.pending[i];
	answer = answer_to(n);
	server.pending[i] = server.pending[--server.npending];
	call_keep(&cs, n, &answer, sizeof(answer));
	if (session.up)
		server.said[server.nsaid++] = n;
}

static void one_answer(void)
{
	if (!server.nsaid)
		return;
	(void)say(server.said[0], answer_to(server.said[0]));
	memmove(server.said, server.said + 1, --server.nsaid * sizeof(server.said[0]));
}

static void step(uint64_t *seed)
{
	switch (unit_random(seed) % 16) {
	case 0:
		if (session.up && unit_random(seed) % 4 == 0) {
			goes_down();
			server.nsaid = 0;
		} else if (!session.up) {
			comes_up();
		}
		break;
	case 1: case 2: case 3:
		if (wire.done < wire.ticket && session.up)
			wire.done++;
		(void)xfer_reap(&xfers);
		break;
	case 4: case 5: case 6:
		one_question();
		break;
	case 7: case 8: case 9:
		one_done(seed);
		break;
	case 10: case 11: case 12:
		one_answer();
		break;
	default:
		(void)call_send(&cc);
	}
}

/* Over whatever happens: carried out once at most, and each with its own answer */
static void at_random(void **state)
{
	struct asked *a = test_calloc(CALLS, sizeof(*a));
	uint64_t seed = 20;
	unsigned int n = 0, i, rounds = 0;

	(void)state;
	assert_non_null(a);
	memset(&server, 0, sizeof(server));
	server.carried = test_calloc(2ULL * CALLS * CALL_PLACES, 1);
	assert_non_null(server.carried);
	assert_int_equal(open_one(&a[0]), 0);
	server.least = a[0].call.number / CALL_PLACES * CALL_PLACES;
	call_ask(&a[0].call, sizeof(uint64_t), false, over);
	leave(&a[0]);
	while (n < CALLS || !call_idle(&cc)) {
		assert_in_range(rounds++, 0, 1000 * CALLS);
		if (n < CALLS && !open_one(&a[n])) {
			memcpy(a[n].call.msg, &a[n].call.number, sizeof(uint64_t));
			call_ask(&a[n].call, sizeof(uint64_t), false, over);
			n++;
		}
		if (n && unit_random(&seed) % 64 == 0) {
			i = n - 1 - (unsigned int)(unit_random(&seed) % (n < 20 ? n : 20));
			if (!a[i].over && !a[i].left)
				leave(&a[i]);
		}
		step(&seed);
	}
	for (i = 0; i < CALLS; i++) {
		const unsigned int times = server.carried[a[i].call.number - server.least];

		assert_int_equal(a[i].over, 1);
		assert_in_range(times, a[i].err ? 0 : 1, 1);
		if (!a[i].err)
			assert_int_equal(a[i].answer, answer_to(a[i].call.number));
		else
			assert_true(a[i].left && a[i].err == -ECANCELED);
	}
	test_free(server.carried);
	test_free(a);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(asked_once, setup, teardown),
	cmocka_unit_test_setup_teardown(places, setup, teardown),
	cmocka_unit_test_setup_teardown(answer_lost, setup, teardown),
	cmocka_unit_test_setup_teardown(question_lost, setup, teardown),
	cmocka_unit_test_setup_teardown(left_alone, setup, teardown),
	cmocka_unit_test_setup_teardown(another_process, setup, teardown),
	cmocka_unit_test_setup_teardown(given_up, setup, teardown),
	cmocka_unit_test_setup_teardown(kept_answers, setup, teardown),
	cmocka_unit_test_setup_teardown(at_random, setup, teardown),
};

UNIT_MAIN_ALONE(tests)
