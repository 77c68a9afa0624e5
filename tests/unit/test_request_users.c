// SPDX-License-Identifier: MIT OR GPL-2.0
/* What who runs an engine sets and sees while it serves: limits, numbers by user, the log. */
#include "req_bed.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct rgate_engine *e;
static struct client a, b;

static void value_of(struct client *c, struct rgate_request q, int result)
{
	struct rgate_completion done;

	client_submit(c, q);
	bed_run(e);
	assert_true(client_poll(c, &done));
	assert_int_equal(done.result, result);
}

#define ASK(o, ...) ((struct rgate_request){ .op = (o), ##__VA_ARGS__ })

static struct rgate_user_stats user(uid_t uid)
{
	struct rgate_user_stats st = { .sz = sizeof(st) };
	unsigned int i;

	for (i = 0; !rgate_engine_user(e, i, &st); i++)
		if (st.uid == uid)
			return st;
	fail_msg("no user %u", uid);
	return st;
}

/* Of two users; one has two seats. Users 1 and 2 have a page of memory each. */
static void numbers(void **state)
{
	const uint64_t each = rgate_area_len(64, 64) + (uint64_t)getpagesize();
	struct rgate_user_stats st = { .sz = sizeof(st) };
	static struct client more;

	(void)state;
	client_new(&more, e, 1);
	value_of(&a, ASK(RGATE_REQ_NOP), 0);
	value_of(&a, ASK(RGATE_REQ_NOP, .flags = 16), -EINVAL);
	value_of(&more, ASK(LATE_OPEN), 0);
	client_submit(&more, ASK(LATE_WAIT, .cookie = 1));
	bed_run(e);
	st = user(1);
	assert_int_equal(st.seats, 2);
	assert_int_equal(st.memory, 2 * each);
	assert_int_equal(st.accepted, 4);
	assert_int_equal(st.refused, 1);
	assert_int_equal(st.completions, 3);
	assert_int_equal(st.under_way, 1);
	assert_int_equal(st.handles, 1);
	st = user(2);
	assert_int_equal(st.seats, 1);
	assert_int_equal(st.memory, each);
	assert_int_equal(st.accepted + st.completions + st.under_way + st.handles, 0);
	assert_int_equal(rgate_engine_user(e, 2, &st), -ENOENT);
	st.sz = 1;
	assert_int_equal(rgate_engine_user(e, 0, &st), -EINVAL);
	/* the request is cancelled, the handle taken away */
	rgate_seat_remove(more.seat);
	bed_run(e);
	client_close(&more);
	st = user(1);
	assert_int_equal(st.seats, 1);
	assert_int_equal(st.under_way + st.handles, 0);
}

/* A user's other ones hold from now on, for what waits, too. */
static void limits(void **state)
{
	struct rgate_completion done;
	struct rgate_limits lim;
	static struct client c;

	(void)state;
	rgate_limits_init(&lim);
	lim.requests = 1;
	assert_int_equal(rgate_engine_limits(e, 3, &lim), -ENOENT);
	assert_int_equal(rgate_engine_limits(e, 1, &lim), 0);
	client_submit(&a, ASK(LATE_WAIT, .cookie = 1));
	client_submit(&a, ASK(LATE_WAIT, .cookie = 2));
	client_submit(&b, ASK(LATE_WAIT, .cookie = 3));
	client_submit(&b, ASK(LATE_WAIT, .cookie = 4));
	bed_run(e);
	assert_true(late_has(1) && !late_has(2) && late_has(3) && late_has(4));
	lim.requests = 2;
	assert_int_equal(rgate_engine_limits(e, 1, &lim), 0);
	bed_run(e);
	assert_true(late_has(2));
	/* less than there is: what was begun goes on */
	lim.requests = 1;
	lim.ops[LATE] = 0;
	lim.classes = 1U << RGATE_CLASS_NORMAL;
	assert_int_equal(rgate_engine_limits(e, 1, &lim), 0);
	value_of(&a, ASK(RGATE_REQ_NOP, .cls = RGATE_CLASS_BULK), -EACCES);
	assert_true(late_has(1) && late_has(2));
	late_end(1, 0, 0);
	late_end(2, 0, 0);
	late_end(3, 0, 0);
	late_end(4, 0, 0);
	bed_run(e);
	assert_true(client_poll(&a, &done) && client_poll(&a, &done));
	assert_int_equal(done.result, 0);
	value_of(&a, ASK(LATE_WAIT), -EACCES);
	/* those of a seat that comes are later ones, also than those not looked at yet */
	assert_int_equal(rgate_engine_limits(e, 1, &lim), 0);
	client_new(&c, e, 1);
	value_of(&a, ASK(LATE_OPEN), 0);
	assert_int_equal(rgate_engine_limits(e, 1, &lim), 0);
	value_of(&a, ASK(LATE_OPEN), -EACCES);
	rgate_seat_remove(c.seat);
	bed_run(e);
	client_close(&c);
}

static struct {
	uid_t uid;
	char text[300];
	size_t len;
	int result;
	unsigned int calls;
} heard;

static int hear(void *ctx, uid_t uid, const char *text, size_t len)
{
	assert_ptr_equal(ctx, &heard);
	heard.uid = uid;
	heard.len = len;
	heard.calls++;
	memcpy(heard.text, text, len);
	return heard.result;
}

static void lines(void **state)
{
	static const char text[] = "\n\0\x1b";
	struct rgate_engine_opts o = { .sz = sizeof(o), .flags = RGATE_ENGINE_LOOP, .log = hear,
				       .log_ctx = &heard };
	struct rgate_engine *other = e;
	static struct client c;

	(void)state;
	assert_int_equal(rgate_engine_create(&e, &o), 0);
	client_new(&c, e, 77);
	memcpy(c.mem + 9, text, sizeof(text));
	value_of(&c, ASK(RGATE_REQ_LOG_WRITE, .off = 9, .len = sizeof(text)), 0);
	assert_int_equal(heard.uid, 77);
	assert_int_equal(heard.len, sizeof(text));
	assert_memory_equal(heard.text, text, sizeof(text));
	heard.result = -EAGAIN;
	value_of(&c, ASK(RGATE_REQ_LOG_WRITE, .len = RGATE_ENGINE_LINE), -EAGAIN);
	assert_int_equal(heard.len, RGATE_ENGINE_LINE);
	value_of(&c, ASK(RGATE_REQ_LOG_WRITE, .len = RGATE_ENGINE_LINE + 1), -EMSGSIZE);
	value_of(&c, ASK(RGATE_REQ_LOG_WRITE), -EINVAL);
	assert_int_equal(heard.calls, 2);
	rgate_seat_remove(c.seat);
	rgate_engine_destroy(e);
	client_close(&c);
	e = other;
}

static int up(void **state)
{
	(void)state;
	memset(&late, 0, sizeof(late));
	e = bed_engine();
	client_new(&a, e, 1);
	client_new(&b, e, 2);
	return 0;
}

static int down(void **state)
{
	(void)state;
	rgate_engine_destroy(e);
	client_close(&a);
	client_close(&b);
	return 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = { TEST(numbers), TEST(limits), TEST(lines) };

UNIT_MAIN_ALONE(tests)
