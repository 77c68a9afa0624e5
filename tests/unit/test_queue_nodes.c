// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Queues whose home is another node: one that answers when the test says so, with lies, or is
 * another process.
 */
#include "queue_bed.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ROOM_LEN	2048U

/* Taken, and ended */
static void ends(unsigned int i, int result, uint64_t value)
{
	answer(i, 0);
	say(end_of(i, result, value));
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
	say((struct gate_result){
		.kind = GATE_DONE, .guest = question(i).guest, .serial = question(i).serial,
		.ticket = question(i).ticket, .result = 0, .value = 78 });
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
	assert_int_equal(result_of(submit((struct rgate_request){
		.op = RGATE_REQ_CANCEL, .a0 = n }), NULL), -EALREADY);
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
	say((struct gate_result){
		.kind = GATE_DONE, .guest = question(1).guest, .serial = question(1).serial,
		.ticket = question(1).ticket, .result = -ECANCELED });
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
	becomes(n, -ECONNRESET);
	assert_int_equal(question(o.peer.asked.n - 1).kind, GATE_LEAVE);
	answer(o.peer.asked.n - 1, 0);
	/* a CLOSE that is not wanted any more is not cancelled there */
	h = open_at_other();
	m = submit(REQ(CLOSE, .handle = h));
	(void)submit((struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = m });
	i = o.peer.asked.n;
	answer(i - 1, 0);
	assert_int_equal(o.peer.asked.n, i);
	becomes(m, -ECONNRESET);
	answer(o.peer.asked.n - 1, 0);
	/* nor does the end of a session wait for it */
	(void)claims_there(open_at_other());
	rgate_seat_remove(a.seat);
	turn();
	assert_int_equal(question(o.peer.asked.n - 1).kind, GATE_CANCEL);
	answer(o.peer.asked.n - 1, 0);
	session_ends();
}

static uint64_t submits_there(uint32_t h, uint32_t deadline_us)
{
	memset(a.mem + ROOM, 0, sizeof(struct rgate_queue_put));
	return submit(REQ(SUBMIT, .handle = h, .off = ROOM, .len = sizeof(struct rgate_queue_put),
			  .deadline_us = deadline_us));
}

/*
 * A task that is not wanted any more, and whose home says nothing for too long, may be there: that
 * is no end in time, as which who submits would take it that it is not.
 */
static void not_known(void **state)
{
	uint64_t n;

	(void)state;
	/* it has said that it took the request, and says no more */
	n = submits_there(open_at_other(), 0);
	answer(o.peer.asked.n - 1, 0);
	(void)submit((struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = n });
	answer(o.peer.asked.n - 1, 0);
	becomes(n, -ECONNRESET);
	answer(o.peer.asked.n - 1, 0);
	/* it has not said even that */
	n = submits_there(open_at_other(), 0);
	(void)submit((struct rgate_request){ .op = RGATE_REQ_CANCEL, .a0 = n });
	becomes(n, -ECONNRESET);
	answer(o.peer.asked.n - 1, 0);
	assert_int_equal(kept().tasks, 0);
	/* whoever says how long that is to take knows what it means */
	n = submits_there(open_at_other(), 1000);
	becomes(n, -ETIMEDOUT);
}

/* Is the guest still there? That is asked of no request, over each new connection: which is it */
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

/* A home of another build: whoever asks is told, at once; nothing of what it says is believed */
static void newer_home(void **state)
{
	uint64_t n;
	uint32_t h;

	(void)state;
	h = open_at_other();
	other_newer = 1;
	n = submit(REQ(CLAIM, .handle = h, .a1 = RGATE_CLAIM_A1(2, 0), .off = ROOM,
		       .len = ROOM_LEN));
	answer(1, 0);
	assert_int_equal(result_of(n, NULL), -EPROTONOSUPPORT);
	n = submit(open_of("near", OTHER, RGATE_QUEUE_CREATE));
	answer(2, 0);
	assert_int_equal(result_of(n, NULL), -EPROTONOSUPPORT);
	other_newer = 0;
	n = submit(REQ(KICK, .handle = h, .a0 = 1));
	ends(3, 0, 1);
	assert_int_equal(result_of(n, NULL), 0);
}

static const struct CMUnitTest tests[] = {
	BED(goes_there), BED(no_queue), BED(is_refused), BED(is_lost), SILENT(is_away),
	SILENT(close_goes_on), BED(is_cancelled), BED(is_forgotten), SILENT(never_ends),
	BED(is_given_up), SILENT(goes_on), SILENT(does_not_go_on), SILENT(is_kept),
	BED(newer_home), SILENT(not_known),
};

UNIT_MAIN(tests)
