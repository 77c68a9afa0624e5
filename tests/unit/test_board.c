// SPDX-License-Identifier: MIT OR GPL-2.0
/* The board of a service: what it hands on, in which order, and when it looks again. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "board.h"
#include "other.h"

#define ROOM	1000000		/* ns: it looks again for room */

static struct fair lock;
static struct board *b;

/* What was called since calls_are(), in its order */
static struct {
	char calls[64];
	unsigned int n;
	uint64_t expire_ns, tick_ns;
} did;

static void called(void *ctx, char what)
{
	assert_ptr_equal(ctx, &did);
	/* with the lock */
	assert_int_equal(pthread_mutex_trylock(&lock.lock), EBUSY);
	assert_true(did.n < sizeof(did.calls) - 1);
	did.calls[did.n++] = what;
}

static void calls_are(const char *calls)
{
	did.calls[did.n] = '\0';
	assert_string_equal(did.calls, calls);
	did.n = 0;
}

static void on_clock(void *ctx, uint32_t node)
{
	assert_int_equal(node, OTHER);
	called(ctx, 'c');
}

static void on_news(void *ctx, uint32_t node, enum session_news what)
{
	assert_int_equal(node, OTHER);
	called(ctx, what == SESSION_UP ? 'U' : what == SESSION_DOWN ? 'D' : 'O');
}

static void on_question(void *ctx, uint32_t node, const void *msg, size_t len)
{
	assert_int_equal(node, OTHER);
	assert_int_equal(len, 1);
	assert_memory_equal(msg, "q", 1);
	called(ctx, 'q');
}

static void on_answer(void *ctx, uint32_t node, const void *msg, size_t len)
{
	assert_int_equal(node, OTHER);
	assert_int_equal(len, 1);
	assert_memory_equal(msg, "a", 1);
	called(ctx, 'a');
}

static void on_pump(void *ctx, uint32_t node)
{
	assert_int_equal(node, OTHER);
	called(ctx, 'p');
}

static uint64_t on_expire(void *ctx, uint32_t node)
{
	assert_int_equal(node, OTHER);
	called(ctx, 'e');
	return did.expire_ns;
}

static uint64_t on_tick(void *ctx)
{
	called(ctx, 't');
	return did.tick_ns;
}

static const struct board_ops all = {
	.service = RGATE_SERVICE_SYNC, .clock = on_clock, .news = on_news,
	.question = on_question, .answer = on_answer, .pump = on_pump, .expire = on_expire,
	.tick = on_tick,
};

static const struct board_ops few = {
	.service = RGATE_SERVICE_SYNC, .question = on_question, .answer = on_answer,
	.pump = on_pump, .expire = on_expire,
};

static bool may(void *ctx, uint32_t node, uid_t uid)
{
	assert_ptr_equal(ctx, &lock);
	return node == OTHER && uid == 5;
}

static void make(const struct board_ops *ops, board_may_fn fn)
{
	const struct board_opts opts = { .hub = HUB, .lock = &lock, .may = fn, .may_ctx = &lock };

	other_init(RGATE_SERVICE_SYNC);
	memset(&did, 0, sizeof(did));
	did.expire_ns = did.tick_ns = UINT64_MAX;
	fair_init(&lock);
	assert_int_equal(board_create(&b, &opts, ops, &did), 0);
	assert_int_equal(o.hub.asks.sz + o.hub.serves.sz, 0);
}

static int setup(void **state)
{
	(void)state;
	make(&all, may);
	assert_int_equal(board_join(b), 0);
	assert_true(o.hub.asks.sz && o.hub.serves.sz);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	board_destroy(b);
	assert_int_equal(o.hub.asks.sz + o.hub.serves.sz, 0);
	assert_int_equal(o.hub.node.stage.lent, 0);
	assert_int_equal(o.hub.users, 0);
	fair_destroy(&lock);
	return 0;
}

static void handed_on(void **state)
{
	(void)state;
	/* before there is a connection, of which nobody can have sent */
	o.hub.serves.message(o.hub.ctx, OTHER, "q", 1);
	calls_are("c");
	other_comes_up(7);
	calls_are("cUp");
	o.hub.serves.message(o.hub.ctx, OTHER, "q", 1);
	calls_are("cq");
	o.hub.asks.message(o.hub.ctx, OTHER, "a", 1);
	calls_are("ca");
	/* from nodes that there are none of */
	o.hub.serves.message(o.hub.ctx, SELF, "q", 1);
	o.hub.asks.message(o.hub.ctx, 2, "a", 1);
	o.hub.asks.state(o.hub.ctx, 2, true);
	calls_are("");
}

/* What comes is of the connection that the service knows of, or of none. */
static void stale(void **state)
{
	(void)state;
	other_comes_up(7);
	calls_are("cUp");
	/* another one is up, and the hub still hands on what the last one brought */
	o.peer.epoch++;
	o.hub.serves.message(o.hub.ctx, OTHER, "q", 1);
	calls_are("cDU");
	o.hub.asks.message(o.hub.ctx, OTHER, "a", 1);
	calls_are("c");
	o.peer.hub_epoch++;
	o.hub.asks.message(o.hub.ctx, OTHER, "a", 1);
	calls_are("ca");
	o.peer.up = false;
	o.hub.serves.message(o.hub.ctx, OTHER, "q", 1);
	calls_are("cD");
	other_comes_up(8);
	calls_are("cOUp");
	other_goes_down();
	calls_are("cDp");
}

static void ticks(void **state)
{
	(void)state;
	assert_int_equal(o.hub.asks.tick(o.hub.ctx), -1);
	calls_are("tcpe");
	did.tick_ns = 5000;
	assert_int_equal(o.hub.asks.tick(o.hub.ctx), 5000);
	did.expire_ns = 300;
	assert_int_equal(o.hub.asks.tick(o.hub.ctx), 300);
	did.tick_ns = UINT64_MAX;
	assert_int_equal(o.hub.asks.tick(o.hub.ctx), 300);
	did.expire_ns = 0;
	assert_int_equal(o.hub.asks.tick(o.hub.ctx), 0);
}

/* Nobody tells of room. */
static void room(void **state)
{
	struct line *l = board_line(b, OTHER);

	(void)state;
	other_comes_up(7);
	assert_true(line_take(l, 16));
	o.peer.send_full = true;
	line_say(l, 16, "x", 1);
	assert_int_equal(o.hub.asks.tick(o.hub.ctx), ROOM);
	did.expire_ns = ROOM - 1;
	assert_int_equal(o.hub.asks.tick(o.hub.ctx), ROOM - 1);
	did.expire_ns = UINT64_MAX;
	o.peer.send_full = false;
	assert_int_equal(o.hub.asks.tick(o.hub.ctx), -1);
	assert_int_equal(o.peer.said.n, 1);
}

static void less(void **state)
{
	(void)state;
	make(&few, NULL);
	assert_int_equal(board_join(b), 0);
	other_comes_up(7);
	calls_are("p");
	o.hub.serves.message(o.hub.ctx, OTHER, "q", 1);
	assert_int_equal(o.hub.asks.tick(o.hub.ctx), -1);
	calls_are("qpe");
	assert_false(board_may(b, OTHER, 5));
}

static void nodes(void **state)
{
	uint32_t node;

	(void)state;
	assert_int_equal(board_find(b, OTHER, 99, &node), 0);
	assert_int_equal(node, OTHER);
	assert_int_equal(board_find(b, SELF, 99, &node), 0);
	assert_int_equal(node, BOARD_HERE);
	assert_int_equal(board_find(b, 99, 99, &node), 0);
	assert_int_equal(node, BOARD_HERE);
	assert_int_equal(board_find(b, 2, 99, &node), -ENXIO);
	assert_int_equal(board_find(b, 1ULL << 32 | OTHER, 99, &node), -ENXIO);
	assert_int_equal(board_find(b, RGATE_NODES_MAX, 99, &node), -ENXIO);
	assert_int_equal(board_find(NULL, 99, 99, &node), 0);
	assert_int_equal(node, BOARD_HERE);
	assert_int_equal(board_find(NULL, SELF, 99, &node), -ENXIO);
	assert_non_null(board_line(b, OTHER));
	assert_null(board_line(b, SELF));
	assert_null(board_line(b, UINT32_MAX));
	assert_null(board_line(NULL, OTHER));
	assert_true(board_may(b, OTHER, 5));
	assert_false(board_may(b, OTHER, 6));
	assert_false(board_may(b, 2, 5));
}

/* Another one has that service: nothing of it stays at the hub. */
static void taken(void **state)
{
	(void)state;
	make(&all, may);
	o.hub.taken = RGATE_SERVICE_SYNC;
	assert_int_equal(board_join(b), -EEXIST);
	o.hub.taken = RGATE_SERVICE_SYNC | RGATE_SERVICE_ASKER;
	assert_int_equal(board_join(b), -EEXIST);
	assert_int_equal(o.hub.asks.sz + o.hub.serves.sz, 0);
	board_leave(b);
	assert_int_equal(o.peer.settles, 0);
	o.hub.taken = 0;
	assert_int_equal(board_join(b), 0);
	board_leave(b);
	board_leave(NULL);
	board_destroy(NULL);
}

static unsigned int cancelled;

static void is_cancelled(struct ask *a, int err, const void *answer, size_t len)
{
	(void)answer;
	(void)len;
	assert_ptr_equal(a->ctx, &did);
	assert_int_equal(err, -ECANCELED);
	cancelled++;
}

/* What leaves is waited for when the hub calls no more, so that nothing is added to it then. */
static void leaves(void **state)
{
	struct line *l = board_line(b, OTHER);
	struct ask *a;

	(void)state;
	cancelled = 0;
	other_comes_up(7);
	o.peer.held = true;
	a = line_open(l);
	assert_non_null(a);
	a->ctx = &did;
	line_ask(a, sizeof(a->number), false, is_cancelled);
	line_send(l, false);
	assert_int_equal(o.peer.asked.n, 1);
	board_leave(b);
	assert_int_equal(o.hub.asks.sz + o.hub.serves.sz, 0);
	assert_int_equal(o.peer.settles, 1);
	assert_false(o.peer.settled_early || o.peer.settled_late);
	assert_int_equal(cancelled, 0);
	board_leave(b);
	board_destroy(b);
	b = NULL;
	assert_int_equal(o.peer.settles, 1);
	assert_int_equal(cancelled, 1);
}

#define BED(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	BED(handed_on), BED(stale), BED(ticks), BED(room), BED(nodes), BED(leaves),
	cmocka_unit_test_teardown(less, teardown),
	cmocka_unit_test_teardown(taken, teardown),
};

UNIT_MAIN_ALONE(tests)
